#include "operations.h"

#define H(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

void operands_new(struct operands *on, size_t bytes, CUstream stream)
{
    size_t host_bytes = bytes < 4096 ? 4096 : bytes;
    on->bytes = bytes;
    on->stream = stream;
    on->pageable = pages_new(host_bytes);
    MUST(d.cuMemAlloc(&on->device, bytes));
    MUST(d.cuMemAlloc(&on->other, bytes));
    MUST(d.cuMemHostAlloc(&on->pinned, host_bytes, CU_MEMHOSTALLOC_PORTABLE));
}

/* Rows of 8 bytes in 16. */
CUDA_MEMCPY2D copy2d_host_to_device(const struct operands *on, void *host)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = host,
                           .srcPitch = 16,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = on->device,
                           .dstPitch = 16,
                           .WidthInBytes = 8,
                           .Height = on->bytes / 16};
}

CUDA_MEMCPY2D copy2d_device_to_host(const struct operands *on, void *host)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = on->device,
                           .srcPitch = 16,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = host,
                           .dstPitch = 16,
                           .WidthInBytes = 8,
                           .Height = on->bytes / 16};
}

CUDA_MEMCPY2D copy2d_device_to_device(const struct operands *on)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = on->device,
                           .srcPitch = 16,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = on->other,
                           .dstPitch = 16,
                           .WidthInBytes = 8,
                           .Height = on->bytes / 16};
}

CUDA_MEMCPY3D copy3d_from_2d(const CUDA_MEMCPY2D *copy)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = copy->srcMemoryType,
                           .srcHost = copy->srcHost,
                           .srcDevice = copy->srcDevice,
                           .srcPitch = copy->srcPitch,
                           .srcHeight = copy->Height,
                           .dstMemoryType = copy->dstMemoryType,
                           .dstHost = copy->dstHost,
                           .dstDevice = copy->dstDevice,
                           .dstPitch = copy->dstPitch,
                           .dstHeight = copy->Height,
                           .WidthInBytes = copy->WidthInBytes,
                           .Height = copy->Height,
                           .Depth = 1};
}

#define OPERATION(function, expression)                                                                                \
    static CUresult function(const struct operands *on) { return expression; }
#define OPERATION_2D(function, entry, copy)                                                                            \
    static CUresult function(const struct operands *on)                                                                \
    {                                                                                                                  \
        CUDA_MEMCPY2D plane = copy;                                                                                    \
        return d.entry(&plane);                                                                                        \
    }                                                                                                                  \
    static CUresult function##_async(const struct operands *on)                                                        \
    {                                                                                                                  \
        CUDA_MEMCPY2D plane = copy;                                                                                    \
        return d.cuMemcpy2DAsync(&plane, on->stream);                                                                  \
    }                                                                                                                  \
    static CUresult function##_3d(const struct operands *on)                                                           \
    {                                                                                                                  \
        CUDA_MEMCPY2D plane = copy;                                                                                    \
        CUDA_MEMCPY3D box = copy3d_from_2d(&plane);                                                                    \
        return d.cuMemcpy3D(&box);                                                                                     \
    }                                                                                                                  \
    static CUresult function##_3d_async(const struct operands *on)                                                     \
    {                                                                                                                  \
        CUDA_MEMCPY2D plane = copy;                                                                                    \
        CUDA_MEMCPY3D box = copy3d_from_2d(&plane);                                                                    \
        return d.cuMemcpy3DAsync(&box, on->stream);                                                                    \
    }

OPERATION(htod_pageable, d.cuMemcpyHtoD(on->device, on->pageable, on->bytes))
OPERATION(htod_pinned, d.cuMemcpyHtoD(on->device, on->pinned, on->bytes))
OPERATION(dtoh_pageable, d.cuMemcpyDtoH(on->pageable, on->device, on->bytes))
OPERATION(dtoh_pinned, d.cuMemcpyDtoH(on->pinned, on->device, on->bytes))
OPERATION(dtod_from, d.cuMemcpyDtoD(on->other, on->device, on->bytes))
OPERATION(dtod_to, d.cuMemcpyDtoD(on->device, on->other, on->bytes))
OPERATION(dtod_within, d.cuMemcpyDtoD(on->device, on->device + on->bytes / 2, on->bytes / 2))
OPERATION(any_h_pageable, d.cuMemcpy(on->device, H(on->pageable), on->bytes))
OPERATION(any_h_pinned, d.cuMemcpy(on->device, H(on->pinned), on->bytes))
OPERATION(any_to_pageable, d.cuMemcpy(H(on->pageable), on->device, on->bytes))
OPERATION(any_to_pinned, d.cuMemcpy(H(on->pinned), on->device, on->bytes))
OPERATION(any_dtod, d.cuMemcpy(on->other, on->device, on->bytes))
OPERATION(peer_from, d.cuMemcpyPeer(on->other, fix.context, on->device, fix.context, on->bytes))
static CUresult peer3d(const struct operands *on, CUstream stream, bool async)
{
    CUDA_MEMCPY3D_PEER box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = on->device,
                              .srcContext = fix.context,
                              .srcPitch = 16,
                              .srcHeight = on->bytes / 16,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = on->other,
                              .dstContext = fix.context,
                              .dstPitch = 16,
                              .dstHeight = on->bytes / 16,
                              .WidthInBytes = 8,
                              .Height = on->bytes / 16,
                              .Depth = 1};
    return async ? d.cuMemcpy3DPeerAsync(&box, stream) : d.cuMemcpy3DPeer(&box);
}
OPERATION(peer3d_from, peer3d(on, NULL, false))
OPERATION(peer3d_from_async, peer3d(on, on->stream, true))
OPERATION(set8, d.cuMemsetD8(on->device, 1, on->bytes))
OPERATION(set16, d.cuMemsetD16(on->device, 1, on->bytes / 2))
OPERATION(set32, d.cuMemsetD32(on->device, 1, on->bytes / 4))
OPERATION(set2d8, d.cuMemsetD2D8(on->device, 16, 1, 8, on->bytes / 16))
OPERATION(set2d16, d.cuMemsetD2D16(on->device, 16, 1, 4, on->bytes / 16))
OPERATION(set2d32, d.cuMemsetD2D32(on->device, 16, 1, 2, on->bytes / 16))
OPERATION_2D(h2d_2d_pageable, cuMemcpy2D, copy2d_host_to_device(on, on->pageable))
OPERATION_2D(h2d_2d_pinned, cuMemcpy2DUnaligned, copy2d_host_to_device(on, on->pinned))
OPERATION_2D(d2h_2d_pageable, cuMemcpy2D, copy2d_device_to_host(on, on->pageable))
OPERATION_2D(d2h_2d_pinned, cuMemcpy2DUnaligned, copy2d_device_to_host(on, on->pinned))
OPERATION_2D(d2d_2d, cuMemcpy2DUnaligned, copy2d_device_to_device(on))

const struct operation operations_sync[] = {
    {"HtoD pageable", htod_pageable},
    {"HtoD pinned", htod_pinned},
    {"DtoH pageable", dtoh_pageable},
    {"DtoH pinned", dtoh_pinned},
    {"DtoD from", dtod_from},
    {"DtoD to", dtod_to},
    {"DtoD within", dtod_within},
    {"cuMemcpy from pageable", any_h_pageable},
    {"cuMemcpy from pinned", any_h_pinned},
    {"cuMemcpy to pageable", any_to_pageable},
    {"cuMemcpy to pinned", any_to_pinned},
    {"cuMemcpy device", any_dtod},
    {"cuMemcpyPeer", peer_from},
    {"cuMemcpy3DPeer", peer3d_from},
    {"MemsetD8", set8},
    {"MemsetD16", set16},
    {"MemsetD32", set32},
    {"MemsetD2D8", set2d8},
    {"MemsetD2D16", set2d16},
    {"MemsetD2D32", set2d32},
    {"2D HtoD pageable", h2d_2d_pageable},
    {"2D HtoD pinned", h2d_2d_pinned},
    {"2D DtoH pageable", d2h_2d_pageable},
    {"2D DtoH pinned", d2h_2d_pinned},
    {"2D DtoD", d2d_2d},
    {"3D HtoD pageable", h2d_2d_pageable_3d},
    {"3D HtoD pinned", h2d_2d_pinned_3d},
    {"3D DtoH pageable", d2h_2d_pageable_3d},
    {"3D DtoH pinned", d2h_2d_pinned_3d},
    {"3D DtoD", d2d_2d_3d},
    {NULL, NULL},
};

OPERATION(htod_pageable_async, d.cuMemcpyHtoDAsync(on->device, on->pageable, on->bytes, on->stream))
OPERATION(htod_pinned_async, d.cuMemcpyHtoDAsync(on->device, on->pinned, on->bytes, on->stream))
OPERATION(dtoh_pageable_async, d.cuMemcpyDtoHAsync(on->pageable, on->device, on->bytes, on->stream))
OPERATION(dtoh_pinned_async, d.cuMemcpyDtoHAsync(on->pinned, on->device, on->bytes, on->stream))
OPERATION(dtod_from_async, d.cuMemcpyDtoDAsync(on->other, on->device, on->bytes, on->stream))
OPERATION(dtod_to_async, d.cuMemcpyDtoDAsync(on->device, on->other, on->bytes, on->stream))
OPERATION(dtod_within_async, d.cuMemcpyDtoDAsync(on->device, on->device + on->bytes / 2, on->bytes / 2, on->stream))
OPERATION(any_h_pageable_async, d.cuMemcpyAsync(on->device, H(on->pageable), on->bytes, on->stream))
OPERATION(any_h_pinned_async, d.cuMemcpyAsync(on->device, H(on->pinned), on->bytes, on->stream))
OPERATION(any_to_pageable_async, d.cuMemcpyAsync(H(on->pageable), on->device, on->bytes, on->stream))
OPERATION(any_to_pinned_async, d.cuMemcpyAsync(H(on->pinned), on->device, on->bytes, on->stream))
OPERATION(any_dtod_async, d.cuMemcpyAsync(on->other, on->device, on->bytes, on->stream))
OPERATION(peer_from_async, d.cuMemcpyPeerAsync(on->other, fix.context, on->device, fix.context, on->bytes, on->stream))
OPERATION(set8_async, d.cuMemsetD8Async(on->device, 1, on->bytes, on->stream))
OPERATION(set16_async, d.cuMemsetD16Async(on->device, 1, on->bytes / 2, on->stream))
OPERATION(set32_async, d.cuMemsetD32Async(on->device, 1, on->bytes / 4, on->stream))
OPERATION(set2d8_async, d.cuMemsetD2D8Async(on->device, 16, 1, 8, on->bytes / 16, on->stream))
OPERATION(set2d16_async, d.cuMemsetD2D16Async(on->device, 16, 1, 4, on->bytes / 16, on->stream))
OPERATION(set2d32_async, d.cuMemsetD2D32Async(on->device, 16, 1, 2, on->bytes / 16, on->stream))

static CUresult batch(CUdeviceptr to, CUdeviceptr from, const struct operands *on)
{
    size_t bytes = on->bytes, first = 0;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    return d.cuMemcpyBatchAsync(&to, &from, &bytes, 1, &attributes, &first, 1, on->stream);
}
OPERATION(batch_from_pageable, batch(on->device, H(on->pageable), on))
OPERATION(batch_from_pinned, batch(on->device, H(on->pinned), on))
OPERATION(batch_to_pageable, batch(H(on->pageable), on->device, on))
OPERATION(batch_to_pinned, batch(H(on->pinned), on->device, on))
OPERATION(batch_device, batch(on->other, on->device, on))

static CUresult batch3d(CUdeviceptr to, CUdeviceptr from, const struct operands *on)
{
    CUDA_MEMCPY3D_BATCH_OP copy = {.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
                                           .op.ptr = {.ptr = from, .rowLength = 16, .layerHeight = on->bytes / 16}},
                                   .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
                                           .op.ptr = {.ptr = to, .rowLength = 16, .layerHeight = on->bytes / 16}},
                                   .extent = {.width = 8, .height = on->bytes / 16, .depth = 1},
                                   .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    return d.cuMemcpy3DBatchAsync(1, &copy, 0, on->stream);
}
OPERATION(batch3d_from_pageable, batch3d(on->device, H(on->pageable), on))
OPERATION(batch3d_from_pinned, batch3d(on->device, H(on->pinned), on))
OPERATION(batch3d_to_pageable, batch3d(H(on->pageable), on->device, on))
OPERATION(batch3d_to_pinned, batch3d(H(on->pinned), on->device, on))
OPERATION(batch3d_device, batch3d(on->other, on->device, on))

const struct operation operations_async[] = {
    {"HtoDAsync pageable", htod_pageable_async},
    {"HtoDAsync pinned", htod_pinned_async},
    {"DtoHAsync pageable", dtoh_pageable_async},
    {"DtoHAsync pinned", dtoh_pinned_async},
    {"DtoDAsync from", dtod_from_async},
    {"DtoDAsync to", dtod_to_async},
    {"DtoDAsync within", dtod_within_async},
    {"cuMemcpyAsync from pageable", any_h_pageable_async},
    {"cuMemcpyAsync from pinned", any_h_pinned_async},
    {"cuMemcpyAsync to pageable", any_to_pageable_async},
    {"cuMemcpyAsync to pinned", any_to_pinned_async},
    {"cuMemcpyAsync device", any_dtod_async},
    {"cuMemcpyPeerAsync", peer_from_async},
    {"cuMemcpy3DPeerAsync", peer3d_from_async},
    {"MemsetD8Async", set8_async},
    {"MemsetD16Async", set16_async},
    {"MemsetD32Async", set32_async},
    {"MemsetD2D8Async", set2d8_async},
    {"MemsetD2D16Async", set2d16_async},
    {"MemsetD2D32Async", set2d32_async},
    {"2DAsync HtoD pageable", h2d_2d_pageable_async},
    {"2DAsync HtoD pinned", h2d_2d_pinned_async},
    {"2DAsync DtoH pageable", d2h_2d_pageable_async},
    {"2DAsync DtoH pinned", d2h_2d_pinned_async},
    {"2DAsync DtoD", d2d_2d_async},
    {"3DAsync HtoD pageable", h2d_2d_pageable_3d_async},
    {"3DAsync HtoD pinned", h2d_2d_pinned_3d_async},
    {"3DAsync DtoH pageable", d2h_2d_pageable_3d_async},
    {"3DAsync DtoH pinned", d2h_2d_pinned_3d_async},
    {"3DAsync DtoD", d2d_2d_3d_async},
    {"Batch from pageable", batch_from_pageable},
    {"Batch from pinned", batch_from_pinned},
    {"Batch to pageable", batch_to_pageable},
    {"Batch to pinned", batch_to_pinned},
    {"Batch device", batch_device},
    {"3DBatch from pageable", batch3d_from_pageable},
    {"3DBatch from pinned", batch3d_from_pinned},
    {"3DBatch to pageable", batch3d_to_pageable},
    {"3DBatch to pinned", batch3d_to_pinned},
    {"3DBatch device", batch3d_device},
    {NULL, NULL},
};

/* The forms of the per-thread default stream; the asynchronous ones are given the stream NULL. */
#include "operations.h"

#define AT(pointer) ((CUdeviceptr)(uintptr_t)(pointer))
#define OPERATION(function, expression)                                                                                \
    static CUresult function(const struct operands *on) { return expression; }
#define OPERATION_2D(function, entry_2d, copy)                                                                         \
    static CUresult function(const struct operands *on)                                                                \
    {                                                                                                                  \
        CUDA_MEMCPY2D plane = copy;                                                                                    \
        return d.entry_2d(&plane);                                                                                     \
    }                                                                                                                  \
    static CUresult function##_async(const struct operands *on)                                                        \
    {                                                                                                                  \
        CUDA_MEMCPY2D plane = copy;                                                                                    \
        return d.cuMemcpy2DAsync_ptsz(&plane, NULL);                                                                   \
    }                                                                                                                  \
    static CUresult function##_3d(const struct operands *on)                                                           \
    {                                                                                                                  \
        CUDA_MEMCPY2D plane = copy;                                                                                    \
        CUDA_MEMCPY3D box = copy3d_from_2d(&plane);                                                                    \
        return d.cuMemcpy3D_ptds(&box);                                                                                \
    }                                                                                                                  \
    static CUresult function##_3d_async(const struct operands *on)                                                     \
    {                                                                                                                  \
        CUDA_MEMCPY2D plane = copy;                                                                                    \
        CUDA_MEMCPY3D box = copy3d_from_2d(&plane);                                                                    \
        return d.cuMemcpy3DAsync_ptsz(&box, NULL);                                                                     \
    }

OPERATION(htod_pageable, d.cuMemcpyHtoD_ptds(on->device, on->pageable, on->bytes))
OPERATION(htod_pinned, d.cuMemcpyHtoD_ptds(on->device, on->pinned, on->bytes))
OPERATION(dtoh_pageable, d.cuMemcpyDtoH_ptds(on->pageable, on->device, on->bytes))
OPERATION(dtoh_pinned, d.cuMemcpyDtoH_ptds(on->pinned, on->device, on->bytes))
OPERATION(dtod, d.cuMemcpyDtoD_ptds(on->other, on->device, on->bytes))
OPERATION(set8, d.cuMemsetD8_ptds(on->device, 1, on->bytes))
OPERATION(set16, d.cuMemsetD16_ptds(on->device, 1, on->bytes / 2))
OPERATION(set32, d.cuMemsetD32_ptds(on->device, 1, on->bytes / 4))
OPERATION(set2d8, d.cuMemsetD2D8_ptds(on->device, 16, 1, 8, on->bytes / 16))
OPERATION(any_from_pageable, d.cuMemcpy_ptds(on->device, AT(on->pageable), on->bytes))
OPERATION(any_to_pageable, d.cuMemcpy_ptds(AT(on->pageable), on->device, on->bytes))
OPERATION(peer, d.cuMemcpyPeer_ptds(on->other, fix.context, on->device, fix.context, on->bytes))
OPERATION_2D(htod_2d, cuMemcpy2D_ptds, copy2d_host_to_device(on, on->pageable))
OPERATION_2D(dtoh_2d, cuMemcpy2DUnaligned_ptds, copy2d_device_to_host(on, on->pageable))
OPERATION_2D(dtod_2d, cuMemcpy2DUnaligned_ptds, copy2d_device_to_device(on))

const struct operation operations_ptds[] = {
    {"HtoD_ptds pageable", htod_pageable},
    {"HtoD_ptds pinned", htod_pinned},
    {"DtoH_ptds pageable", dtoh_pageable},
    {"DtoH_ptds pinned", dtoh_pinned},
    {"DtoD_ptds", dtod},
    {"MemsetD8_ptds", set8},
    {"MemsetD16_ptds", set16},
    {"MemsetD32_ptds", set32},
    {"MemsetD2D8_ptds", set2d8},
    {"cuMemcpy_ptds from pageable", any_from_pageable},
    {"cuMemcpy_ptds to pageable", any_to_pageable},
    {"cuMemcpyPeer_ptds", peer},
    {"2D_ptds HtoD", htod_2d},
    {"2D_ptds DtoH", dtoh_2d},
    {"2D_ptds DtoD", dtod_2d},
    {"3D_ptds HtoD", htod_2d_3d},
    {"3D_ptds DtoH", dtoh_2d_3d},
    {"3D_ptds DtoD", dtod_2d_3d},
    {NULL, NULL},
};

OPERATION(htod_pageable_async, d.cuMemcpyHtoDAsync_ptsz(on->device, on->pageable, on->bytes, NULL))
OPERATION(htod_pinned_async, d.cuMemcpyHtoDAsync_ptsz(on->device, on->pinned, on->bytes, NULL))
OPERATION(dtoh_pageable_async, d.cuMemcpyDtoHAsync_ptsz(on->pageable, on->device, on->bytes, NULL))
OPERATION(dtoh_pinned_async, d.cuMemcpyDtoHAsync_ptsz(on->pinned, on->device, on->bytes, NULL))
OPERATION(dtod_async, d.cuMemcpyDtoDAsync_ptsz(on->other, on->device, on->bytes, NULL))
OPERATION(any_async, d.cuMemcpyAsync_ptsz(on->device, AT(on->pageable), on->bytes, NULL))
OPERATION(peer_async, d.cuMemcpyPeerAsync_ptsz(on->other, fix.context, on->device, fix.context, on->bytes, NULL))
OPERATION(set8_async, d.cuMemsetD8Async_ptsz(on->device, 1, on->bytes, NULL))
OPERATION(set32_async, d.cuMemsetD32Async_ptsz(on->device, 1, on->bytes / 4, NULL))

static CUresult batch_pinned(const struct operands *on)
{
    CUdeviceptr to = on->device, from = AT(on->pinned);
    size_t bytes = on->bytes, first = 0;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    return d.cuMemcpyBatchAsync_ptsz(&to, &from, &bytes, 1, &attributes, &first, 1, NULL);
}

const struct operation operations_ptsz[] = {
    {"HtoDAsync_ptsz pageable", htod_pageable_async},
    {"HtoDAsync_ptsz pinned", htod_pinned_async},
    {"DtoHAsync_ptsz pageable", dtoh_pageable_async},
    {"DtoHAsync_ptsz pinned", dtoh_pinned_async},
    {"DtoDAsync_ptsz", dtod_async},
    {"cuMemcpyAsync_ptsz from pageable", any_async},
    {"cuMemcpyPeerAsync_ptsz", peer_async},
    {"MemsetD8Async_ptsz", set8_async},
    {"MemsetD32Async_ptsz", set32_async},
    {"2DAsync_ptsz HtoD", htod_2d_async},
    {"2DAsync_ptsz DtoH", dtoh_2d_async},
    {"2DAsync_ptsz DtoD", dtod_2d_async},
    {"3DAsync_ptsz HtoD", htod_2d_3d_async},
    {"3DAsync_ptsz DtoH", dtoh_2d_3d_async},
    {"3DAsync_ptsz DtoD", dtod_2d_3d_async},
    {"Batch_ptsz from pinned", batch_pinned},
    {NULL, NULL},
};

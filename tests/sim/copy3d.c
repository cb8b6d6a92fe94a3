/* Copies of two and three dimensions. */
#include "copy.h"

/* One end of a 3D copy: type, the three ways to say where, offsets, pitch and rows. */
static CUresult end_from(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array, size_t x, size_t y,
                         size_t z, size_t pitch, size_t rows, const struct copy_request *request,
                         struct claimed_end *end)
{
    if (type == CU_MEMORYTYPE_ARRAY) {
        if (!array_valid(array)) return CUDA_ERROR_INVALID_HANDLE;
        size_t offset = z * array->slice + y * array->pitch + x;
        if (offset > array->bytes || x + request->width > array->pitch) return CUDA_ERROR_INVALID_VALUE;
        *end = (struct claimed_end){CLAIM_ARRAY, (uintptr_t)array->data + offset, array->pitch, array->slice,
                                    array->bytes - offset};
        return CUDA_SUCCESS;
    }
    if (!pitch) pitch = request->width + x;
    if (!rows) rows = request->height + y;
    if (request->height > 1 && pitch < request->width) return CUDA_ERROR_INVALID_VALUE;
    if (request->depth > 1 && rows < request->height) return CUDA_ERROR_INVALID_VALUE;
    uint64_t start = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
    enum claim claim = type == CU_MEMORYTYPE_HOST     ? CLAIM_HOST
                       : type == CU_MEMORYTYPE_DEVICE ? CLAIM_DEVICE
                                                      : CLAIM_UNIFIED;
    if (type < CU_MEMORYTYPE_HOST || type > CU_MEMORYTYPE_UNIFIED) return CUDA_ERROR_INVALID_VALUE;
    *end = (struct claimed_end){claim, start + (z * rows + y) * pitch + x, pitch, pitch * rows, 0};
    return CUDA_SUCCESS;
}

CUresult request_from_3d(const CUDA_MEMCPY3D *in, struct copy_request *out)
{
    if (!in) return CUDA_ERROR_INVALID_VALUE;
    out->width = in->WidthInBytes;
    out->height = in->Height;
    out->depth = in->Depth;
    CUresult result = end_from(in->srcMemoryType, in->srcHost, in->srcDevice, in->srcArray, in->srcXInBytes, in->srcY,
                               in->srcZ, in->srcPitch, in->srcHeight, out, &out->from);
    if (result) return result;
    return end_from(in->dstMemoryType, in->dstHost, in->dstDevice, in->dstArray, in->dstXInBytes, in->dstY, in->dstZ,
                    in->dstPitch, in->dstHeight, out, &out->to);
}

CUresult request_from_2d(const CUDA_MEMCPY2D *in, struct copy_request *out)
{
    if (!in) return CUDA_ERROR_INVALID_VALUE;
    out->width = in->WidthInBytes;
    out->height = in->Height;
    out->depth = 1;
    CUresult result = end_from(in->srcMemoryType, in->srcHost, in->srcDevice, in->srcArray, in->srcXInBytes, in->srcY,
                               0, in->srcPitch, 0, out, &out->from);
    if (result) return result;
    return end_from(in->dstMemoryType, in->dstHost, in->dstDevice, in->dstArray, in->dstXInBytes, in->dstY, 0,
                    in->dstPitch, 0, out, &out->to);
}

static CUresult copied_2d(const CUDA_MEMCPY2D *copy, CUstream stream, bool per_thread, bool async)
{
    struct copy_request request = {.stream = stream, .per_thread = per_thread, .async = async};
    CUresult result = request_from_2d(copy, &request);
    return result ? result : copy_submit(&request);
}

static CUresult copied_3d(const CUDA_MEMCPY3D *copy, CUstream stream, bool per_thread, bool async)
{
    struct copy_request request = {.stream = stream, .per_thread = per_thread, .async = async};
    CUresult result = request_from_3d(copy, &request);
    return result ? result : copy_submit(&request);
}

static CUresult copied_3d_peer(const CUDA_MEMCPY3D_PEER *peer, CUstream stream, bool per_thread, bool async)
{
    if (!peer) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = {.srcXInBytes = peer->srcXInBytes,
                          .srcY = peer->srcY,
                          .srcZ = peer->srcZ,
                          .srcMemoryType = peer->srcMemoryType,
                          .srcHost = peer->srcHost,
                          .srcDevice = peer->srcDevice,
                          .srcArray = peer->srcArray,
                          .srcPitch = peer->srcPitch,
                          .srcHeight = peer->srcHeight,
                          .dstXInBytes = peer->dstXInBytes,
                          .dstY = peer->dstY,
                          .dstZ = peer->dstZ,
                          .dstMemoryType = peer->dstMemoryType,
                          .dstHost = peer->dstHost,
                          .dstDevice = peer->dstDevice,
                          .dstArray = peer->dstArray,
                          .dstPitch = peer->dstPitch,
                          .dstHeight = peer->dstHeight,
                          .WidthInBytes = peer->WidthInBytes,
                          .Height = peer->Height,
                          .Depth = peer->Depth};
    return copied_3d(&copy, stream, per_thread, async);
}

#define SYNC(symbol, type, body)                                                                                       \
    CUresult symbol(const type *copy)                                                                                  \
    {                                                                                                                  \
        SIM_ENTER(symbol);                                                                                             \
        return body(copy, NULL, false, false);                                                                         \
    }                                                                                                                  \
    CUresult symbol##_ptds(const type *copy)                                                                           \
    {                                                                                                                  \
        SIM_ENTER(symbol##_ptds);                                                                                      \
        return body(copy, NULL, true, false);                                                                          \
    }
#define ASYNC(symbol, type, body)                                                                                      \
    CUresult symbol(const type *copy, CUstream stream)                                                                 \
    {                                                                                                                  \
        SIM_ENTER(symbol);                                                                                             \
        return body(copy, stream, false, true);                                                                        \
    }                                                                                                                  \
    CUresult symbol##_ptsz(const type *copy, CUstream stream)                                                          \
    {                                                                                                                  \
        SIM_ENTER(symbol##_ptsz);                                                                                      \
        return body(copy, stream, true, true);                                                                         \
    }

SYNC(cuMemcpy2D_v2, CUDA_MEMCPY2D, copied_2d)
SYNC(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, copied_2d)
ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copied_2d)
SYNC(cuMemcpy3D_v2, CUDA_MEMCPY3D, copied_3d)
ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copied_3d)
SYNC(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, copied_3d_peer)
ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, copied_3d_peer)

/* One operand of a 3D batch: pitched memory or an array. */
static CUresult operand_end(const CUmemcpy3DOperand *operand, const CUextent3D *extent,
                            const struct copy_request *request, struct claimed_end *end)
{
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        CUarray array = operand->op.array.array;
        if (!array_valid(array)) return CUDA_ERROR_INVALID_HANDLE;
        size_t x = operand->op.array.offset.x * array->element_bytes;
        return end_from(CU_MEMORYTYPE_ARRAY, NULL, 0, array, x, operand->op.array.offset.y, operand->op.array.offset.z,
                        0, 0, request, end);
    }
    size_t pitch = operand->op.ptr.rowLength ? operand->op.ptr.rowLength : extent->width;
    size_t rows = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : extent->height;
    *end = (struct claimed_end){CLAIM_UNIFIED, operand->op.ptr.ptr, pitch, pitch * rows, 0};
    return CUDA_SUCCESS;
}

static CUresult batched_3d(size_t count, const CUDA_MEMCPY3D_BATCH_OP *copies, CUstream stream, bool per_thread)
{
    if (!count || !copies || !stream || stream == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && !result; i++) {
        struct copy_request request = {.width = copies[i].extent.width,
                                       .height = copies[i].extent.height,
                                       .depth = copies[i].extent.depth,
                                       .stream = stream,
                                       .per_thread = per_thread,
                                       .async = true};
        result = operand_end(&copies[i].src, &copies[i].extent, &request, &request.from);
        if (!result) result = operand_end(&copies[i].dst, &copies[i].extent, &request, &request.to);
        if (!result) result = copy_submit(&request);
    }
    return result;
}

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, unsigned long long flags,
                                 CUstream stream)
{
    SIM_ENTER(cuMemcpy3DBatchAsync_v2);
    return flags ? CUDA_ERROR_INVALID_VALUE : batched_3d(count, copies, stream, false);
}

CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, unsigned long long flags,
                                      CUstream stream)
{
    SIM_ENTER(cuMemcpy3DBatchAsync_v2_ptsz);
    return flags ? CUDA_ERROR_INVALID_VALUE : batched_3d(count, copies, stream, true);
}

static CUresult batched_3d_first(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, size_t *failed, unsigned long long flags,
                                 CUstream stream, bool per_thread)
{
    CUresult result = flags ? CUDA_ERROR_INVALID_VALUE : batched_3d(count, copies, stream, per_thread);
    if (result && failed) *failed = SIZE_MAX;
    return result;
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, size_t *failed, unsigned long long flags,
                              CUstream stream)
{
    SIM_ENTER(cuMemcpy3DBatchAsync);
    return batched_3d_first(count, copies, failed, flags, stream, false);
}

CUresult cuMemcpy3DBatchAsync_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, size_t *failed,
                                   unsigned long long flags, CUstream stream)
{
    SIM_ENTER(cuMemcpy3DBatchAsync_ptsz);
    return batched_3d_first(count, copies, failed, flags, stream, true);
}

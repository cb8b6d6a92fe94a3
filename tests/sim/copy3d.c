/* Copies of two and three dimensions, and arrays as the plain memory that they are here. */
#include "copy.h"

#define ARRAY_MAGIC 0x41525230u

static bool array_valid(CUarray array) { return array && array->magic == ARRAY_MAGIC; }

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

static CUresult array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    if (!array || !descriptor || !descriptor->Width) return CUDA_ERROR_INVALID_VALUE;
    size_t channel = descriptor->Format & 0x2 || descriptor->Format == CU_AD_FORMAT_HALF ? 2 : 1;
    if (descriptor->Format == CU_AD_FORMAT_UNSIGNED_INT32 || descriptor->Format == CU_AD_FORMAT_SIGNED_INT32 ||
        descriptor->Format == CU_AD_FORMAT_FLOAT)
        channel = 4;
    unsigned channels = descriptor->NumChannels;
    if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
    struct CUarray_st *made = calloc(1, sizeof *made);
    made->magic = ARRAY_MAGIC;
    made->descriptor = *descriptor;
    made->element_bytes = channel * channels;
    made->pitch = descriptor->Width * made->element_bytes;
    made->slice = made->pitch * (descriptor->Height ? descriptor->Height : 1);
    made->bytes = made->slice * (descriptor->Depth ? descriptor->Depth : 1);
    made->data = calloc(1, made->bytes);
    *array = made;
    return CUDA_SUCCESS;
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    SIM_ENTER(cuArray3DCreate_v2);
    return array_create(array, descriptor);
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
    SIM_ENTER(cuArrayCreate_v2);
    if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
    return array_create(array, &(CUDA_ARRAY3D_DESCRIPTOR){.Width = descriptor->Width,
                                                          .Height = descriptor->Height,
                                                          .Format = descriptor->Format,
                                                          .NumChannels = descriptor->NumChannels});
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array)
{
    SIM_ENTER(cuArray3DGetDescriptor_v2);
    if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
    if (!array_valid(array)) return CUDA_ERROR_INVALID_HANDLE;
    *descriptor = array->descriptor;
    return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array)
{
    SIM_ENTER(cuArrayDestroy);
    if (!array_valid(array)) return CUDA_ERROR_INVALID_HANDLE;
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) context_drain(context);
    sim_unlock();
    if (result) return result;
    array->magic = 0;
    free(array->data);
    return CUDA_SUCCESS;
}

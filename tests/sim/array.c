/* Arrays: plain memory here. */
#include "copy.h"

#define ARRAY_MAGIC 0x41525230u

bool array_valid(CUarray array) { return array && array->magic == ARRAY_MAGIC; }

static size_t format_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    default:
        return 4;
    }
}

static CUresult array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    CUcontext context;
    if (!array || !descriptor || !descriptor->Width) return CUDA_ERROR_INVALID_VALUE;
    unsigned channels = descriptor->NumChannels;
    if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context_current(&context);
    sim_unlock();
    if (result) return result;
    struct CUarray_st *made = calloc(1, sizeof *made);
    made->magic = ARRAY_MAGIC;
    made->descriptor = *descriptor;
    made->element_bytes = format_bytes(descriptor->Format) * channels;
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

/* One row between an array, from an offset on, and something else. */
static CUresult row(CUarray to_array, uint64_t to, enum claim to_claim, CUarray from_array, uint64_t from,
                    enum claim from_claim, size_t bytes, CUstream stream, bool per_thread, bool async)
{
    struct copy_request request = {.to = {to_claim, to, bytes, bytes, 0},
                                   .from = {from_claim, from, bytes, bytes, 0},
                                   .width = bytes,
                                   .height = 1,
                                   .depth = 1,
                                   .stream = stream,
                                   .per_thread = per_thread,
                                   .async = async};
    for (int end = 0; end < 2; end++) {
        CUarray array = end ? from_array : to_array;
        struct claimed_end *which = end ? &request.from : &request.to;
        if (which->claim != CLAIM_ARRAY) continue;
        if (!array_valid(array)) return CUDA_ERROR_INVALID_HANDLE;
        if (which->address > array->bytes) return CUDA_ERROR_INVALID_VALUE;
        which->slack = array->bytes - which->address;
        which->address += (uintptr_t)array->data;
    }
    return copy_submit(&request);
}

#define SYNC(symbol, parameters, ...)                                                                                  \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        SIM_ENTER(symbol);                                                                                             \
        return row(__VA_ARGS__, NULL, false, false);                                                                   \
    }                                                                                                                  \
    CUresult symbol##_ptds parameters                                                                                  \
    {                                                                                                                  \
        SIM_ENTER(symbol##_ptds);                                                                                      \
        return row(__VA_ARGS__, NULL, true, false);                                                                    \
    }
#define ASYNC(symbol, parameters, ...)                                                                                 \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        SIM_ENTER(symbol);                                                                                             \
        return row(__VA_ARGS__, stream, false, true);                                                                  \
    }                                                                                                                  \
    CUresult symbol##_ptsz parameters                                                                                  \
    {                                                                                                                  \
        SIM_ENTER(symbol##_ptsz);                                                                                      \
        return row(__VA_ARGS__, stream, true, true);                                                                   \
    }

SYNC(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes), to, offset, CLAIM_ARRAY, NULL, from,
     CLAIM_DEVICE, bytes)
SYNC(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes), NULL, to, CLAIM_DEVICE, from, offset,
     CLAIM_ARRAY, bytes)
SYNC(cuMemcpyHtoA_v2, (CUarray to, size_t offset, const void *from, size_t bytes), to, offset, CLAIM_ARRAY, NULL,
     (uintptr_t)from, CLAIM_HOST, bytes)
SYNC(cuMemcpyAtoH_v2, (void *to, CUarray from, size_t offset, size_t bytes), NULL, (uintptr_t)to, CLAIM_HOST, from,
     offset, CLAIM_ARRAY, bytes)
SYNC(cuMemcpyAtoA_v2, (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes), to, to_offset,
     CLAIM_ARRAY, from, from_offset, CLAIM_ARRAY, bytes)
ASYNC(cuMemcpyHtoAAsync_v2, (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream), to, offset,
      CLAIM_ARRAY, NULL, (uintptr_t)from, CLAIM_HOST, bytes)
ASYNC(cuMemcpyAtoHAsync_v2, (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream), NULL, (uintptr_t)to,
      CLAIM_HOST, from, offset, CLAIM_ARRAY, bytes)

/* The one-dimensional copies. */
#include "copy.h"

static CUresult linear(enum claim to_claim, uint64_t to, enum claim from_claim, uint64_t from, size_t bytes,
                       CUstream stream, bool per_thread, bool async)
{
    return copy_submit(&(struct copy_request){.to = {to_claim, to, bytes, bytes, 0},
                                              .from = {from_claim, from, bytes, bytes, 0},
                                              .width = bytes,
                                              .height = 1,
                                              .depth = 1,
                                              .stream = stream,
                                              .per_thread = per_thread,
                                              .async = async});
}

/* Each entry point and its per-thread twin: LINEAR(name, twin's ending, parameters, what they mean). */
#define LINEAR(symbol, ending, parameters, to_claim, to, from_claim, from, bytes, stream, async)                       \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        SIM_ENTER(symbol);                                                                                             \
        return linear(to_claim, (uint64_t)(to), from_claim, (uint64_t)(from), bytes, stream, false, async);            \
    }                                                                                                                  \
    CUresult symbol##ending parameters                                                                                 \
    {                                                                                                                  \
        SIM_ENTER(symbol##ending);                                                                                     \
        return linear(to_claim, (uint64_t)(to), from_claim, (uint64_t)(from), bytes, stream, true, async);             \
    }

LINEAR(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void *from, size_t bytes), CLAIM_DEVICE, to, CLAIM_HOST, from,
       bytes, NULL, false)
LINEAR(cuMemcpyDtoH_v2, _ptds, (void *to, CUdeviceptr from, size_t bytes), CLAIM_HOST, to, CLAIM_DEVICE, from, bytes,
       NULL, false)
LINEAR(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), CLAIM_DEVICE, to, CLAIM_DEVICE, from,
       bytes, NULL, false)
LINEAR(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), CLAIM_UNIFIED, to, CLAIM_UNIFIED, from, bytes,
       NULL, false)
LINEAR(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), CLAIM_DEVICE, to,
       CLAIM_HOST, from, bytes, stream, true)
LINEAR(cuMemcpyDtoHAsync_v2, _ptsz, (void *to, CUdeviceptr from, size_t bytes, CUstream stream), CLAIM_HOST, to,
       CLAIM_DEVICE, from, bytes, stream, true)
LINEAR(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), CLAIM_DEVICE, to,
       CLAIM_DEVICE, from, bytes, stream, true)
LINEAR(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), CLAIM_UNIFIED, to,
       CLAIM_UNIFIED, from, bytes, stream, true)

static CUresult contexts_check(CUcontext to, CUcontext from)
{
    sim_lock();
    bool valid = context_valid(to) && context_valid(from);
    sim_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                     CUstream stream, bool per_thread, bool async)
{
    CUresult result = contexts_check(to_context, from_context);
    return result ? result : linear(CLAIM_DEVICE, to, CLAIM_DEVICE, from, bytes, stream, per_thread, async);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
    SIM_ENTER(cuMemcpyPeer);
    return peer(to, to_context, from, from_context, bytes, NULL, false, false);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
    SIM_ENTER(cuMemcpyPeer_ptds);
    return peer(to, to_context, from, from_context, bytes, NULL, true, false);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream)
{
    SIM_ENTER(cuMemcpyPeerAsync);
    return peer(to, to_context, from, from_context, bytes, stream, false, true);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t bytes, CUstream stream)
{
    SIM_ENTER(cuMemcpyPeerAsync_ptsz);
    return peer(to, to_context, from, from_context, bytes, stream, true, true);
}

/* Copies of a batch are independent; done in order they are right. */
static CUresult batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes, size_t count,
                      const CUmemcpyAttributes *attributes, const size_t *starts, size_t attribute_count,
                      CUstream stream, bool per_thread)
{
    if (!to || !from || !bytes || !count || !attributes || !starts || !attribute_count || starts[0])
        return CUDA_ERROR_INVALID_VALUE;
    if (!stream || stream == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && !result; i++)
        result = copy_submit(&(struct copy_request){.to = {CLAIM_UNIFIED, to[i], bytes[i], bytes[i], 0},
                                                    .from = {CLAIM_UNIFIED, from[i], bytes[i], bytes[i], 0},
                                                    .width = bytes[i],
                                                    .height = 1,
                                                    .depth = 1,
                                                    .stream = stream,
                                                    .per_thread = per_thread,
                                                    .async = true,
                                                    .batch = true});
    return result;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                               CUmemcpyAttributes *attributes, size_t *starts, size_t attribute_count, CUstream stream)
{
    SIM_ENTER(cuMemcpyBatchAsync_v2);
    return batch(to, from, bytes, count, attributes, starts, attribute_count, stream, false);
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                    CUmemcpyAttributes *attributes, size_t *starts, size_t attribute_count,
                                    CUstream stream)
{
    SIM_ENTER(cuMemcpyBatchAsync_v2_ptsz);
    return batch(to, from, bytes, count, attributes, starts, attribute_count, stream, true);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *starts, size_t attribute_count, size_t *failed,
                            CUstream stream)
{
    SIM_ENTER(cuMemcpyBatchAsync);
    CUresult result = batch(to, from, bytes, count, attributes, starts, attribute_count, stream, false);
    if (result && failed) *failed = SIZE_MAX;
    return result;
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                 CUmemcpyAttributes *attributes, size_t *starts, size_t attribute_count, size_t *failed,
                                 CUstream stream)
{
    SIM_ENTER(cuMemcpyBatchAsync_ptsz);
    CUresult result = batch(to, from, bytes, count, attributes, starts, attribute_count, stream, true);
    if (result && failed) *failed = SIZE_MAX;
    return result;
}

/* Smaller things: first versions that differ from later ones in name only, profiling, attributes of streams, pools by
 * place. */
#include "memory.h"

/* Names of CUDA 2 and 3 whose signatures did not change. */
CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device)
{
    return cuCtxCreate_v2(context, flags, device);
}
CUresult cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }
CUresult cuCtxPopCurrent(CUcontext *context) { return cuCtxPopCurrent_v2(context); }
CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }
CUresult cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }
CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

#define PROFILER(symbol, parameters)                                                                                   \
    __attribute__((visibility("default"))) CUresult symbol parameters;                                                 \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        SIM_ENTER_ANY(symbol);                                                                                         \
        return CUDA_SUCCESS;                                                                                           \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
PROFILER(cuProfilerInitialize, (const char *configuration, const char *output, int mode))
PROFILER(cuProfilerStart, (void))
PROFILER(cuProfilerStop, (void))

CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
    SIM_ENTER(cuCtxRecordEvent);
    (void)context;
    return cuEventRecord(event, CU_STREAM_LEGACY);
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)
{
    SIM_ENTER(cuFlushGPUDirectRDMAWrites);
    return CUDA_SUCCESS;
}

/* Attributes of streams say how fast or where; nothing here depends on them. */
static CUresult stream_check(CUstream handle, const void *value, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    sim_unlock();
    return result ? result : value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#define STREAM_ATTRIBUTE(symbol, per_thread)                                                                           \
    CUresult cuStreamGetAttribute##symbol(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value)         \
    {                                                                                                                  \
        SIM_ENTER(cuStreamGetAttribute##symbol);                                                                       \
        CUresult result = stream_check(stream, value, per_thread);                                                     \
        if (!result) memset(value, 0, sizeof *value);                                                                  \
        return result;                                                                                                 \
    }                                                                                                                  \
    CUresult cuStreamSetAttribute##symbol(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value)   \
    {                                                                                                                  \
        SIM_ENTER(cuStreamSetAttribute##symbol);                                                                       \
        return stream_check(stream, value, per_thread);                                                                \
    }                                                                                                                  \
    CUresult cuStreamCopyAttributes##symbol(CUstream to, CUstream from)                                                \
    {                                                                                                                  \
        SIM_ENTER(cuStreamCopyAttributes##symbol);                                                                     \
        return stream_check(to, from, per_thread);                                                                     \
    }
STREAM_ATTRIBUTE(, false)
STREAM_ATTRIBUTE(_ptsz, true)

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    SIM_ENTER(cuMemPoolSetAccess);
    return pool && access && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    SIM_ENTER(cuMemPoolGetAccess);
    if (!flags || !pool || !location) return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

static CUresult pool_location_check(CUmemLocation *location, CUmemAllocationType type)
{
    if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    SIM_ENTER(cuMemGetDefaultMemPool);
    CUresult result = pool_location_check(location, type);
    return result ? result : cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    SIM_ENTER(cuMemGetMemPool);
    CUresult result = pool_location_check(location, type);
    return result ? result : cuDeviceGetMemPool(pool, location->id);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    SIM_ENTER(cuMemSetMemPool);
    CUresult result = pool_location_check(location, type);
    return result ? result : cuDeviceSetMemPool(location->id, pool);
}

/* What contexts answer about themselves: device, flags, limits, caches. */
#include "memory.h"

#define WITH_CURRENT(symbol, context)                                                                                  \
    SIM_ENTER(symbol);                                                                                                 \
    CUcontext context;                                                                                                 \
    sim_lock();                                                                                                        \
    CUresult current_ = context_current(&context);                                                                     \
    sim_unlock();                                                                                                      \
    if (current_) return current_

CUresult cuCtxGetDevice(CUdevice *device)
{
    SIM_ENTER(cuCtxGetDevice);
    CUcontext context = NULL;
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context_current(&context);
    if (result == CUDA_SUCCESS || (context && context->lost)) {
        *device = context->device;
        result = CUDA_SUCCESS;
    }
    sim_unlock();
    return result;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    if (!context) return cuCtxGetDevice(device);
    SIM_ENTER(cuCtxGetDevice_v2);
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context_valid(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (!result) *device = context->device;
    sim_unlock();
    return result;
}

CUresult cuCtxGetFlags(unsigned *flags)
{
    WITH_CURRENT(cuCtxGetFlags, context);
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags)
{
    WITH_CURRENT(cuCtxSetFlags, context);
    context->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    SIM_ENTER(cuCtxGetId);
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context ? CUDA_SUCCESS : context_current(&context);
    if (!result && !context_valid(context)) result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!result) *id = context->id;
    sim_unlock();
    return result;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    SIM_ENTER(cuCtxGetApiVersion);
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context ? CUDA_SUCCESS : context_current(&context);
    if (!result && !context_valid(context)) result = CUDA_ERROR_INVALID_CONTEXT;
    if (!result) *version = context->api_version;
    sim_unlock();
    return result;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    WITH_CURRENT(cuCtxGetLimit, context);
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    WITH_CURRENT(cuCtxSetLimit, context);
    if ((unsigned)limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    WITH_CURRENT(cuCtxGetCacheConfig, context);
    (void)context;
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    WITH_CURRENT(cuCtxSetCacheConfig, context);
    (void)context, (void)config;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    WITH_CURRENT(cuCtxGetSharedMemConfig, context);
    (void)context;
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    WITH_CURRENT(cuCtxSetSharedMemConfig, context);
    (void)context, (void)config;
    return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    WITH_CURRENT(cuCtxResetPersistingL2Cache, context);
    (void)context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    WITH_CURRENT(cuCtxGetStreamPriorityRange, context);
    (void)context;
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    WITH_CURRENT(cuCtxEnablePeerAccess, context);
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context_valid(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (!result && peer->device == context->device) result = CUDA_ERROR_INVALID_DEVICE;
    if (!result && context->peers & 1u << peer->device) result = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (!result) context->peers |= 1u << peer->device;
    sim_unlock();
    return result;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    WITH_CURRENT(cuCtxDisablePeerAccess, context);
    sim_lock();
    CUresult result = context_valid(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (!result && !(context->peers & 1u << peer->device)) result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    if (!result) context->peers &= ~(1u << peer->device);
    sim_unlock();
    return result;
}

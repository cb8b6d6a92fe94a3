/* Questions about devices. */
#include "cudart.h"
#include <dlfcn.h>

cudaError_t cudaDriverGetVersion(int *version)
{
    if (!version) return remember(cudaErrorInvalidValue);
    cudaError_t error = driver_open();
    return remember(error ? error : (cudaError_t)driver->cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version) return remember(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaError_t error = driver_open();
    return remember(error ? error
                          : (cudaError_t)driver->cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    cudaError_t error = driver_open();
    if (!error && !properties) error = cudaErrorInvalidValue;
    if (error) return remember(error);
    memset(properties, 0, sizeof *properties);
    CUresult result = driver->cuDeviceGetName(properties->name, sizeof properties->name, device);
    if (result) return remember_result(result);
    driver->cuDeviceTotalMem(&properties->totalGlobalMem, device);
    driver->cuDeviceGetUuid((CUuuid *)&properties->uuid, device);
    static const struct {
        CUdevice_attribute attribute;
        size_t offset;
        bool wide;
    } fields[] = {
#define INT(attribute, field) {CU_DEVICE_ATTRIBUTE_##attribute, offsetof(struct cudaDeviceProp, field), false}
#define SIZE(attribute, field)                                                                                         \
    {                                                                                                                  \
        CU_DEVICE_ATTRIBUTE_##attribute, offsetof(struct cudaDeviceProp, field), true                                  \
    }
        SIZE(MAX_SHARED_MEMORY_PER_BLOCK, sharedMemPerBlock),
        INT(MAX_REGISTERS_PER_BLOCK, regsPerBlock),
        INT(WARP_SIZE, warpSize),
        SIZE(MAX_PITCH, memPitch),
        INT(MAX_THREADS_PER_BLOCK, maxThreadsPerBlock),
        INT(MAX_BLOCK_DIM_X, maxThreadsDim[0]),
        INT(MAX_BLOCK_DIM_Y, maxThreadsDim[1]),
        INT(MAX_BLOCK_DIM_Z, maxThreadsDim[2]),
        INT(MAX_GRID_DIM_X, maxGridSize[0]),
        INT(MAX_GRID_DIM_Y, maxGridSize[1]),
        INT(MAX_GRID_DIM_Z, maxGridSize[2]),
        SIZE(TOTAL_CONSTANT_MEMORY, totalConstMem),
        INT(COMPUTE_CAPABILITY_MAJOR, major),
        INT(COMPUTE_CAPABILITY_MINOR, minor),
        SIZE(TEXTURE_ALIGNMENT, textureAlignment),
        SIZE(TEXTURE_PITCH_ALIGNMENT, texturePitchAlignment),
        INT(MULTIPROCESSOR_COUNT, multiProcessorCount),
        INT(INTEGRATED, integrated),
        INT(CAN_MAP_HOST_MEMORY, canMapHostMemory),
        SIZE(SURFACE_ALIGNMENT, surfaceAlignment),
        INT(CONCURRENT_KERNELS, concurrentKernels),
        INT(ECC_ENABLED, ECCEnabled),
        INT(PCI_BUS_ID, pciBusID),
        INT(PCI_DEVICE_ID, pciDeviceID),
        INT(PCI_DOMAIN_ID, pciDomainID),
        INT(ASYNC_ENGINE_COUNT, asyncEngineCount),
        INT(UNIFIED_ADDRESSING, unifiedAddressing),
        INT(GLOBAL_MEMORY_BUS_WIDTH, memoryBusWidth),
        INT(L2_CACHE_SIZE, l2CacheSize),
        INT(MAX_THREADS_PER_MULTIPROCESSOR, maxThreadsPerMultiProcessor),
        INT(STREAM_PRIORITIES_SUPPORTED, streamPrioritiesSupported),
        INT(GLOBAL_L1_CACHE_SUPPORTED, globalL1CacheSupported),
        INT(LOCAL_L1_CACHE_SUPPORTED, localL1CacheSupported),
        SIZE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, sharedMemPerMultiprocessor),
        INT(MAX_REGISTERS_PER_MULTIPROCESSOR, regsPerMultiprocessor),
        INT(MANAGED_MEMORY, managedMemory),
        INT(HOST_NATIVE_ATOMIC_SUPPORTED, hostNativeAtomicSupported),
        INT(PAGEABLE_MEMORY_ACCESS, pageableMemoryAccess),
        INT(CONCURRENT_MANAGED_ACCESS, concurrentManagedAccess),
        INT(COMPUTE_PREEMPTION_SUPPORTED, computePreemptionSupported),
        INT(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, canUseHostPointerForRegisteredMem),
        INT(COOPERATIVE_LAUNCH, cooperativeLaunch),
        SIZE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, sharedMemPerBlockOptin),
        INT(MAX_BLOCKS_PER_MULTIPROCESSOR, maxBlocksPerMultiProcessor),
        SIZE(RESERVED_SHARED_MEMORY_PER_BLOCK, reservedSharedMemPerBlock),
        INT(HOST_REGISTER_SUPPORTED, hostRegisterSupported),
        INT(READ_ONLY_HOST_REGISTER_SUPPORTED, hostRegisterReadOnlySupported),
        INT(MEMORY_POOLS_SUPPORTED, memoryPoolsSupported),
        INT(IPC_EVENT_SUPPORTED, ipcEventSupported),
        INT(UNIFIED_FUNCTION_POINTERS, unifiedFunctionPointers),
#undef INT
#undef SIZE
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int value = 0;
        driver->cuDeviceGetAttribute(&value, fields[i].attribute, device);
        char *field = (char *)properties + fields[i].offset;
        if (fields[i].wide)
            *(size_t *)field = (size_t)value;
        else
            *(int *)field = value;
    }
    return cudaSuccess;
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *properties)
{
    if (!device || !properties) return remember(cudaErrorInvalidValue);
    *device = 0;
    return remember(driver_open());
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    int device;
    cudaError_t error = device_current(&device);
    return remember(error ? error : (cudaError_t)driver->cuDevicePrimaryCtxSetFlags(device, flags & 0x1f));
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    int device, active;
    cudaError_t error = device_current(&device);
    if (!error && !flags) error = cudaErrorInvalidValue;
    if (!error) error = (cudaError_t)driver->cuDevicePrimaryCtxGetState(device, flags, &active);
    if (!error) *flags |= cudaDeviceMapHost;
    return remember(error);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) { CALL(0, cuCtxGetLimit, value, (CUlimit)limit); }
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) { CALL(0, cuCtxSetLimit, (CUlimit)limit, value); }
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    CALL(0, cuCtxGetCacheConfig, (CUfunc_cache *)config);
}
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) { CALL(0, cuCtxSetCacheConfig, (CUfunc_cache)config); }
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    CALL(0, cuCtxGetStreamPriorityRange, least, greatest);
}
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device) { CALL(0, cuDeviceGetPCIBusId, id, bytes, device); }
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) { CALL(0, cuDeviceGetByPCIBusId, device, id); }
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    CALL(0, cuDeviceCanAccessPeer, can, device, peer);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    CALL(0, cuDeviceGetDefaultMemPool, pool, device);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) { CALL(0, cuDeviceGetMemPool, pool, device); }
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) { CALL(0, cuDeviceSetMemPool, device, pool); }
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

/* Another device's primary context. */
static cudaError_t peer_context(int device, CUcontext *context)
{
    CUresult result = driver->cuDevicePrimaryCtxRetain(context, device);
    return (cudaError_t)result;
}

cudaError_t cudaDeviceEnablePeerAccess(int device, unsigned flags)
{
    CUcontext peer;
    cudaError_t error = context_ensure();
    if (!error) error = peer_context(device, &peer);
    return remember(error ? error : (cudaError_t)driver->cuCtxEnablePeerAccess(peer, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int device)
{
    CUcontext peer;
    cudaError_t error = context_ensure();
    if (!error) error = peer_context(device, &peer);
    return remember(error ? error : (cudaError_t)driver->cuCtxDisablePeerAccess(peer));
}

static cudaError_t copied_to_peer(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                  cudaStream_t stream, bool async)
{
    CUcontext to_context, from_context;
    cudaError_t error = context_ensure();
    if (!error) error = peer_context(to_device, &to_context);
    if (!error) error = peer_context(from_device, &from_context);
    if (error) return remember(error);
    CUdeviceptr target = (CUdeviceptr)to, source = (CUdeviceptr)from;
    if (async)
        return remember_result(driver->cuMemcpyPeerAsync(target, to_context, source, from_context, bytes, stream));
    return remember_result(driver->cuMemcpyPeer(target, to_context, source, from_context, bytes));
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    return copied_to_peer(to, to_device, from, from_device, bytes, NULL, false);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream)
{
    return copied_to_peer(to, to_device, from, from_device, bytes, stream, true);
}

static cudaError_t entry_point(const char *name, void **address, unsigned version, unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *status)
{
    static __typeof__(cuGetProcAddress_v2) *look_up;
    cudaError_t error = driver_open();
    if (error) return remember(error);
    if (!name || !address) return remember(cudaErrorInvalidValue);
    if (!look_up)
        look_up = (__typeof__(cuGetProcAddress_v2) *)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult result = look_up(name, address, (int)version, flags, &found);
    if (status) {
        *status = (enum cudaDriverEntryPointQueryResult)found;
        if (result == CUDA_ERROR_NOT_FOUND) return cudaSuccess;
    }
    return remember_result(result);
}

cudaError_t cudaGetDriverEntryPoint(const char *name, void **address, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(name, address, CUDART_VERSION, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **address, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(name, address, version, flags, status);
}

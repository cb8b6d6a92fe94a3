/* Smaller functions that pass through. */
#include "cudart.h"

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int from, int to)
{
    CALL(0, cuDeviceGetP2PAttribute, value, (CUdevice_P2PAttribute)attribute, from, to);
}

EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(const char *name, void **address, unsigned long long flags,
                                                enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPoint(name, address, flags ? flags : cudaEnablePerThreadDefaultStream, status);
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **address, unsigned version,
                                                         unsigned long long flags,
                                                         enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(name, address, version, flags ? flags : cudaEnablePerThreadDefaultStream,
                                            status);
}

cudaError_t cudaCtxResetPersistingL2Cache(void) { return remember(context_ensure()); }

cudaError_t cudaSetValidDevices(int *devices, int count)
{
    return remember(devices || !count ? driver_open() : cudaErrorInvalidValue);
}

cudaError_t cudaFuncSetSharedMemConfig(const void *function, enum cudaSharedMemConfig config)
{
    CUfunction kernel;
    (void)config;
    cudaError_t error = context_ensure();
    return remember(error ? error : kernel_of(function, &kernel));
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
    if (!config) return remember(cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
    return remember(context_ensure());
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    (void)config;
    return remember(context_ensure());
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}

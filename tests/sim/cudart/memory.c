/* Memory: device, pinned, managed, pools, and what a pointer is. */
#include "cudart.h"

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    cudaError_t error = context_ensure();
    if (!error && !pointer) error = cudaErrorInvalidValue;
    if (error) return remember(error);
    CUdeviceptr address = 0;
    CUresult result = bytes ? driver->cuMemAlloc(&address, bytes) : CUDA_SUCCESS;
    if (!result) *pointer = (void *)address;
    return remember_result(result);
}

cudaError_t cudaFree(void *pointer)
{
    cudaError_t error = context_ensure();
    if (error || !pointer) return remember(error);
    return remember_result(driver->cuMemFree((CUdeviceptr)pointer));
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    cudaError_t error = context_ensure();
    if (!error && (!pointer || !pitch)) error = cudaErrorInvalidValue;
    if (error) return remember(error);
    CUdeviceptr address = 0;
    CUresult result = CUDA_SUCCESS;
    *pitch = 0;
    if (width && height) result = driver->cuMemAllocPitch(&address, pitch, width, height, 4);
    if (!result) *pointer = (void *)address;
    return remember_result(result);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
    if (!pitched) return remember(cudaErrorInvalidValue);
    void *pointer = NULL;
    size_t pitch = 0;
    cudaError_t error = cudaMallocPitch(&pointer, &pitch, extent.width, extent.height * extent.depth);
    if (!error) *pitched = (struct cudaPitchedPtr){pointer, pitch, extent.width, extent.height};
    return error;
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
    cudaError_t error = context_ensure();
    if (!error && !pointer) error = cudaErrorInvalidValue;
    if (error) return remember(error);
    CUdeviceptr address = 0;
    CUresult result = driver->cuMemAllocManaged(&address, bytes, flags);
    if (!result) *pointer = (void *)address;
    return remember_result(result);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    cudaError_t error = context_ensure();
    if (!error && !pointer) error = cudaErrorInvalidValue;
    if (!error && !bytes) *pointer = NULL;
    if (error || !bytes) return remember(error);
    return remember_result(driver->cuMemHostAlloc(pointer, bytes, flags));
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

cudaError_t cudaFreeHost(void *pointer)
{
    cudaError_t error = context_ensure();
    if (error || !pointer) return remember(error);
    return remember_result(driver->cuMemFreeHost(pointer));
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    CALL(0, cuMemHostRegister, pointer, bytes, flags);
}

cudaError_t cudaHostUnregister(void *pointer) { CALL(0, cuMemHostUnregister, pointer); }

cudaError_t cudaHostGetDevicePointer(void **address, void *pointer, unsigned flags)
{
    CALL(0, cuMemHostGetDevicePointer, (CUdeviceptr *)address, pointer, flags);
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *pointer) { CALL(0, cuMemHostGetFlags, flags, pointer); }
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) { CALL(0, cuMemGetInfo, free_bytes, total_bytes); }

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    cudaError_t error = context_ensure();
    if (!error && !attributes) error = cudaErrorInvalidValue;
    if (error) return remember(error);
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = NULL;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *answers[] = {&type, &managed, &ordinal, &device_pointer, &host_pointer};
    CUresult result = driver->cuPointerGetAttributes(5, asked, answers, (CUdeviceptr)pointer);
    if (result) return remember_result(result);
    memset(attributes, 0, sizeof *attributes);
    attributes->type = managed                        ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                       : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                      : cudaMemoryTypeUnregistered;
    attributes->device = ordinal;
    attributes->devicePointer = (void *)device_pointer;
    attributes->hostPointer = host_pointer;
    if (attributes->type == cudaMemoryTypeUnregistered) {
        attributes->device = -1;
        attributes->devicePointer = NULL;
        attributes->hostPointer = (void *)pointer;
    }
    return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    CALL(0, cuIpcGetMemHandle, (CUipcMemHandle *)handle, (CUdeviceptr)pointer);
}

cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};
    CALL(0, cuMemAdvise, (CUdeviceptr)pointer, bytes, (CUmem_advise)advice, where);
}

static cudaError_t prefetched(const void *pointer, size_t bytes, struct cudaMemLocation location, unsigned flags,
                              cudaStream_t stream, int per_thread)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};
    CALL(per_thread, cuMemPrefetchAsync, (CUdeviceptr)pointer, bytes, where, flags, stream);
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, struct cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream)
{
    return prefetched(pointer, bytes, location, flags, stream, 0);
}

EXPORT cudaError_t cudaMemPrefetchAsync_ptsz(const void *pointer, size_t bytes, struct cudaMemLocation location,
                                             unsigned flags, cudaStream_t stream)
{
    return prefetched(pointer, bytes, location, flags, stream, 1);
}

static cudaError_t allocated_async(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                                   int per_thread)
{
    cudaError_t error = context_ensure();
    if (!error && !pointer) error = cudaErrorInvalidValue;
    if (error) return remember(error);
    CUdeviceptr address = 0;
    CUresult result = CUDA_SUCCESS;
    if (bytes && pool)
        result = driver[per_thread].cuMemAllocFromPoolAsync(&address, bytes, pool, stream);
    else if (bytes)
        result = driver[per_thread].cuMemAllocAsync(&address, bytes, stream);
    if (!result) *pointer = (void *)address;
    return remember_result(result);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
    return allocated_async(pointer, bytes, NULL, stream, 0);
}

EXPORT cudaError_t cudaMallocAsync_ptsz(void **pointer, size_t bytes, cudaStream_t stream)
{
    return allocated_async(pointer, bytes, NULL, stream, 1);
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    return pool ? allocated_async(pointer, bytes, pool, stream, 0) : remember(cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaMallocFromPoolAsync_ptsz(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    return pool ? allocated_async(pointer, bytes, pool, stream, 1) : remember(cudaErrorInvalidValue);
}

static cudaError_t freed_async(void *pointer, cudaStream_t stream, int per_thread)
{
    CALL(per_thread, cuMemFreeAsync, (CUdeviceptr)pointer, stream);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) { return freed_async(pointer, stream, 0); }
EXPORT cudaError_t cudaFreeAsync_ptsz(void *pointer, cudaStream_t stream) { return freed_async(pointer, stream, 1); }

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    CALL(0, cuMemPoolCreate, pool, (const CUmemPoolProps *)properties);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { CALL(0, cuMemPoolDestroy, pool); }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes) { CALL(0, cuMemPoolTrimTo, pool, keep_bytes); }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    CALL(0, cuMemPoolSetAttribute, pool, (CUmemPool_attribute)attribute, value);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    CALL(0, cuMemPoolGetAttribute, pool, (CUmemPool_attribute)attribute, value);
}

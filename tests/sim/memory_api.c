/* cuMemAlloc and cuMemFree, and the questions about device memory. */
#include "cost.h"
#include "memory.h"

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (address) *address = 0;
    SIM_ENTER(cuMemAlloc_v2);
    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context;
    struct allocation *allocation;
    uint64_t start_ns = time_now_ns();
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) result = capture_refuses_unsafe();
    if (!result) result = allocation_create(context, bytes, ALLOCATION_PLAIN, &allocation);
    if (!result) *address = allocation->address;
    sim_unlock();
    if (!result) cost_allocate(bytes, start_ns);
    return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element_bytes)
{
    if (address) *address = 0;
    if (pitch) *pitch = 0;
    SIM_ENTER(cuMemAllocPitch_v2);
    if (!address || !pitch || !width || !height) return CUDA_ERROR_INVALID_VALUE;
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return CUDA_ERROR_INVALID_VALUE;
    size_t row = (width + SIM_SLOT_BYTES - 1) / SIM_SLOT_BYTES * SIM_SLOT_BYTES;
    CUcontext context;
    struct allocation *allocation;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) result = capture_refuses_unsafe();
    if (!result) result = allocation_create(context, row * height, ALLOCATION_PLAIN, &allocation);
    if (!result) {
        *address = allocation->address;
        *pitch = row;
    }
    sim_unlock();
    return result;
}

/* Waits for every stream of the context, as the real one does; a pool's memory is given back in stream order instead.
 */
static CUresult freed(CUdeviceptr address)
{
    CUcontext context;
    CUresult result = context_current(&context); /* none is needed, but a lost one is noticed */
    if (result && result != CUDA_ERROR_INVALID_CONTEXT) return result;
    result = capture_refuses_unsafe();
    if (result || !address) return result;
    struct location location;
    location_of(address, &location);
    bool managed = location.place == PLACE_MANAGED;
    struct allocation *allocation = location.allocation;
    if (location.base != address || (!managed && (!allocation || allocation->kind > ALLOCATION_POOL)))
        return CUDA_ERROR_INVALID_VALUE;
    if (allocation && allocation->being_freed) return CUDA_ERROR_INVALID_VALUE;
    context = managed ? location.span->context : allocation->context;
    if (allocation && allocation->kind == ALLOCATION_POOL) {
        allocation_free_in(allocation, context->legacy);
        return context->lost;
    }
    if (allocation) allocation->being_freed = true;
    context_drain(context);
    if (managed)
        managed_free(span_at(address));
    else
        allocation_free(allocation);
    return context->lost;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    SIM_ENTER(cuMemFree_v2);
    sim_lock();
    CUresult result = freed(address);
    sim_unlock();
    return result;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    SIM_ENTER(cuMemGetInfo_v2);
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) {
        struct sim_device *device = &sim.devices[context->device];
        if (free_bytes) *free_bytes = device->memory_bytes - device->used_bytes;
        if (total_bytes) *total_bytes = device->memory_bytes;
    }
    sim_unlock();
    return result;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    SIM_ENTER(cuMemGetAddressRange_v2);
    CUcontext context;
    struct location location;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) {
        location_of(address, &location);
        bool known = location.place != PLACE_PAGEABLE;
        if (base) *base = known ? location.base : 0;
        if (bytes) *bytes = known ? location.bytes : 0;
        if (!known) result = CUDA_ERROR_NOT_FOUND;
    }
    sim_unlock();
    return result;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    SIM_ENTER(cuIpcGetMemHandle);
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    struct allocation *allocation = allocation_at(address);
    if (!result && (!allocation || allocation->kind != ALLOCATION_PLAIN)) result = CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        memset(handle, 0, sizeof *handle);
        memcpy(handle->reserved, &allocation->address, sizeof allocation->address);
        memcpy(handle->reserved + 8, &allocation->id, sizeof allocation->id);
    }
    sim_unlock();
    return result;
}

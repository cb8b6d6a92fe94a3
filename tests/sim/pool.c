/* Stream-ordered memory: cuMemAllocAsync and pools. Memory is there at once; freeing is done by the stream. */
#include "memory.h"

#define POOL_MAGIC 0x504f4f30u
struct CUmemPoolHandle_st {
    uint32_t magic;
    CUdevice device;
    uint64_t threshold, used, used_high;
    int reuse[3];
};

static bool pool_valid(CUmemoryPool pool) { return pool && pool->magic == POOL_MAGIC; }

static CUmemoryPool pool_create(CUdevice device)
{
    CUmemoryPool pool = calloc(1, sizeof *pool);
    *pool = (struct CUmemPoolHandle_st){.magic = POOL_MAGIC, .device = device, .reuse = {1, 1, 1}};
    return pool;
}

static CUmemoryPool pool_default(CUdevice device)
{
    struct sim_device *owner = &sim.devices[device];
    if (!owner->default_pool) owner->default_pool = owner->current_pool = pool_create(device);
    return owner->default_pool;
}

static CUmemoryPool pool_current(CUdevice device)
{
    pool_default(device);
    return sim.devices[device].current_pool;
}

static CUresult allocated(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream handle, bool per_thread)
{
    CUstream stream;
    struct allocation *allocation;
    if (!address) return CUDA_ERROR_INVALID_VALUE;
    *address = 0;
    if (!bytes) return CUDA_SUCCESS;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result) result = capture_refuses_legacy(stream);
    if (!result && !pool) pool = pool_current(stream->context->device);
    if (!result) result = allocation_create(stream->context, bytes, ALLOCATION_POOL, &allocation);
    if (!result) {
        allocation->pool = pool;
        pool->used += bytes;
        if (pool->used > pool->used_high) pool->used_high = pool->used;
        *address = allocation->address;
        if (stream->capture) { /* the memory is there from now on; a node stands for it */
            struct work work = {.kind = WORK_EMPTY};
            allocation->in_graph = true;
            result = capture_add_typed(stream, &work, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
        }
    }
    sim_unlock();
    return result;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    SIM_ENTER(cuMemAllocAsync);
    return allocated(address, bytes, NULL, stream, false);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    SIM_ENTER(cuMemAllocAsync_ptsz);
    return allocated(address, bytes, NULL, stream, true);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    SIM_ENTER(cuMemAllocFromPoolAsync);
    return pool_valid(pool) ? allocated(address, bytes, pool, stream, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    SIM_ENTER(cuMemAllocFromPoolAsync_ptsz);
    return pool_valid(pool) ? allocated(address, bytes, pool, stream, true) : CUDA_ERROR_INVALID_VALUE;
}

void allocation_free_in(struct allocation *allocation, CUstream stream)
{
    allocation->being_freed = true;
    if (allocation->pool) allocation->pool->used -= allocation->bytes;
    stream_submit(stream, &(struct work){.kind = WORK_FREE, .free = {allocation->address}}, NULL);
}

/* In a capture: memory that was allocated in it. */
static CUresult freed_in_capture(CUstream stream, CUdeviceptr address)
{
    struct allocation *allocation = allocation_at(address);
    if (!allocation->in_graph) return CUDA_ERROR_INVALID_VALUE;
    struct work work = {.kind = WORK_EMPTY};
    return capture_add_typed(stream, &work, CU_GRAPH_NODE_TYPE_MEM_FREE);
}

/* Takes what cuMemAlloc gave, too. */
static CUresult freed(CUdeviceptr address, CUstream handle, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    struct allocation *allocation = allocation_at(address);
    struct location location;
    location_of(address, &location);
    if (!result && address && location.place == PLACE_MANAGED) result = CUDA_ERROR_NOT_SUPPORTED;
    if (!result && address &&
        (!allocation || allocation->address != address || allocation->kind > ALLOCATION_POOL ||
         allocation->being_freed))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result && address && stream->capture) {
        result = freed_in_capture(stream, address);
    } else if (!result && address) {
        if (allocation->kind == ALLOCATION_PLAIN) result = capture_refuses_unsafe();
        if (!result) result = capture_refuses_legacy(stream);
        if (!result) allocation_free_in(allocation, stream);
    }
    sim_unlock();
    return result;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    SIM_ENTER(cuMemFreeAsync);
    return freed(address, stream, false);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    SIM_ENTER(cuMemFreeAsync_ptsz);
    return freed(address, stream, true);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    SIM_ENTER(cuMemPoolCreate);
    if (!pool || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id < 0 ||
        properties->location.id >= sim.device_count)
        return CUDA_ERROR_INVALID_VALUE;
    *pool = pool_create(properties->location.id);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    SIM_ENTER(cuMemPoolDestroy);
    if (!pool_valid(pool) || pool == sim.devices[pool->device].default_pool) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    if (sim.devices[pool->device].current_pool == pool)
        sim.devices[pool->device].current_pool = sim.devices[pool->device].default_pool;
    pool->magic = 0;
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    SIM_ENTER(cuMemPoolTrimTo);
    (void)keep_bytes;
    return pool_valid(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    SIM_ENTER(cuMemPoolSetAttribute);
    if (!pool_valid(pool) || !value) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute - 1] = *(int *)value;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(cuuint64_t *)value;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        pool->used_high = pool->used;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    SIM_ENTER(cuMemPoolGetAttribute);
    if (!pool_valid(pool) || !value) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = pool->reuse[attribute - 1];
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pool->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->used;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = pool->used_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    SIM_ENTER(cuDeviceGetDefaultMemPool);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.device_count) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    *pool = pool_default(device);
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    SIM_ENTER(cuDeviceGetMemPool);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.device_count) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    *pool = pool_current(device);
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    SIM_ENTER(cuDeviceSetMemPool);
    if (!pool_valid(pool)) return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.device_count || pool->device != device) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    pool_default(device);
    sim.devices[device].current_pool = pool;
    sim_unlock();
    return CUDA_SUCCESS;
}

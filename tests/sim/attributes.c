/* What a pointer is, asked one attribute at a time or several; and advice on managed memory. */
#include "memory.h"

/* NOT for memory that nobody knows: the single question fails then, the plural one answers zeros. */
static CUresult attribute_get(CUpointer_attribute attribute, const struct location *location, uint64_t address,
                              void *data)
{
    bool known = location->place != PLACE_PAGEABLE;
    bool on_host = location->place == PLACE_PINNED, managed = location->place == PLACE_MANAGED;
    struct allocation *allocation = location->allocation;
    CUcontext context = allocation ? allocation->context : location->span ? location->span->context : NULL;
    if (allocation && allocation->kind == ALLOCATION_MAPPING) context = NULL;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = context;
        return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = !known ? 0 : on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = known ? address : 0;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = on_host || managed ? (void *)(uintptr_t)address : NULL;
        return on_host || managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(int *)data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = allocation       ? allocation->id
                                      : location->span ? location->span->id | 1ull << 40
                                                       : 0;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned char *)data = managed;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = allocation ? allocation->device : location->span ? location->span->device : -2;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(int *)data = allocation && allocation->kind == ALLOCATION_PLAIN;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = known ? location->base : 0;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = known ? location->bytes : 0;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(int *)data = known;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = allocation ? allocation->pool : NULL;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    SIM_ENTER(cuPointerGetAttribute);
    if (!data) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context;
    struct location location;
    unsigned long long scratch = 0;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) {
        location_of(address, &location);
        result = attribute_get(attribute, &location, address, &scratch);
        if (!result) attribute_get(attribute, &location, address, data); /* outputs only on success */
    }
    sim_unlock();
    return result;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    SIM_ENTER(cuPointerGetAttributes);
    if (!count || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context;
    struct location location;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) location_of(address, &location);
    for (unsigned i = 0; i < count && !result; i++) {
        if (!data[i])
            result = CUDA_ERROR_INVALID_VALUE;
        else
            attribute_get(attributes[i], &location, address, data[i]);
    }
    sim_unlock();
    return result;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    SIM_ENTER(cuPointerSetAttribute);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    struct location location;
    sim_lock();
    location_of(address, &location);
    sim_unlock();
    return location.allocation ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult managed_check(CUdeviceptr address, size_t bytes)
{
    struct location location;
    sim_lock();
    location_of(address, &location);
    bool holds = location.place == PLACE_MANAGED && location_holds(&location, address, bytes);
    sim_unlock();
    return holds && bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
    SIM_ENTER(cuMemAdvise_v2);
    (void)advice, (void)location;
    return managed_check(address, bytes);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    SIM_ENTER(cuMemAdvise);
    (void)advice, (void)device;
    return managed_check(address, bytes);
}

#define PREFETCH(symbol, ...)                                                                                          \
    CUresult symbol(CUdeviceptr address, size_t bytes, __VA_ARGS__, CUstream stream)                                   \
    {                                                                                                                  \
        SIM_ENTER(symbol);                                                                                             \
        (void)stream;                                                                                                  \
        return managed_check(address, bytes);                                                                          \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
PREFETCH(cuMemPrefetchAsync, CUdevice device)
PREFETCH(cuMemPrefetchAsync_ptsz, CUdevice device)
PREFETCH(cuMemPrefetchAsync_v2, CUmemLocation location, unsigned flags)
PREFETCH(cuMemPrefetchAsync_v2_ptsz, CUmemLocation location, unsigned flags)

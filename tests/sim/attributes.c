/* What a pointer is, asked one attribute at a time or several; and advice on managed memory. */
#include "memory.h"

static size_t chunk_round(size_t bytes) { return (bytes + SIM_CHUNK_BYTES - 1) / SIM_CHUNK_BYTES * SIM_CHUNK_BYTES; }

/* What maps the memory: the driver takes device and pinned memory in chunks, a pool in larger ones. */
static size_t mapping_bytes(const struct location *location)
{
    if (location->span) return location->span->kind == SPAN_REGISTERED ? location->bytes : chunk_round(location->bytes);
    if (!location->allocation) return 0;
    return location->allocation->kind == ALLOCATION_POOL ? (size_t)32 << 20 : chunk_round(location->bytes);
}

static void range_get(const struct location *location, uint64_t *base, size_t *bytes)
{
    *base = location->base;
    *bytes = location->bytes;
    if (location->allocation && location->allocation->kind == ALLOCATION_MAPPING)
        reservation_bounds(location->base, base, bytes);
}

/* For memory that nobody knows, the answers of the plural question; it leaves some alone. NOT_FOUND: no such attribute.
 */
static CUresult attribute_get(CUpointer_attribute attribute, const struct location *location, uint64_t address,
                              void *data)
{
    bool known = location->place != PLACE_PAGEABLE;
    bool on_host = location->place == PLACE_PINNED, managed = location->place == PLACE_MANAGED;
    struct allocation *allocation = location->allocation;
    struct span *span = location->span;
    bool plain = allocation && allocation->kind == ALLOCATION_PLAIN;
    uint64_t base;
    size_t bytes;
    range_get(location, &base, &bytes);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = plain ? allocation->context : span ? span->context : NULL;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = !known ? 0 : on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = known ? address : 0;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = allocation ? NULL : (void *)(uintptr_t)address;
        if (allocation) return CUDA_ERROR_INVALID_VALUE;
        break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: /* whoever asks for these wants its synchronous operations to be so */
        if (!plain) return CUDA_ERROR_INVALID_VALUE;
        memset(data, 0, sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS));
        ((CUDA_POINTER_ATTRIBUTE_P2P_TOKENS *)data)->p2pToken = allocation->id;
        allocation->sync_operations = true;
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(bool *)data = managed || (allocation && allocation->sync_operations);
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = allocation ? allocation->id : span ? span->id | 1ull << 40 : 0;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(bool *)data = managed;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = allocation ? allocation->device : span ? span->device : -2;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(bool *)data = plain;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        if (known) *(CUdeviceptr *)data = base;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        if (known) *(size_t *)data = bytes;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(bool *)data = known;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(bool *)data = plain;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = known ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE : 0;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = allocation ? allocation->pool : NULL;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = mapping_bytes(location);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = !known || span ? location->base * known : address & ~(SIM_CHUNK_BYTES - 1);
        break;
    default:
        return CUDA_ERROR_NOT_FOUND;
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    SIM_ENTER(cuPointerGetAttribute);
    if (!data) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context;
    struct location location;
    sim_lock();
    CUresult result = context_current(&context);
    /* This one is answered without a context, and in a lost one. */
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) result = CUDA_SUCCESS;
    if (!result) {
        location_of(address, &location);
        if (location.place == PLACE_PAGEABLE || attribute_get(attribute, &location, address, data))
            result = CUDA_ERROR_INVALID_VALUE;
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
        if (!data[i] || attribute_get(attributes[i], &location, address, data[i]) == CUDA_ERROR_NOT_FOUND)
            result = CUDA_ERROR_INVALID_VALUE;
    }
    sim_unlock();
    return result;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    SIM_ENTER(cuPointerSetAttribute);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct allocation *allocation = allocation_at(address);
    if (allocation) allocation->sync_operations = *(const bool *)value;
    sim_unlock();
    return allocation ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- managed memory ---- */

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

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define PREFETCH(symbol, ...)                                                                                          \
    CUresult symbol(CUdeviceptr address, size_t bytes, __VA_ARGS__, CUstream stream)                                   \
    {                                                                                                                  \
        SIM_ENTER(symbol);                                                                                             \
        return managed_check(address, bytes);                                                                          \
    }
PREFETCH(cuMemPrefetchAsync, CUdevice device)
PREFETCH(cuMemPrefetchAsync_ptsz, CUdevice device)
PREFETCH(cuMemPrefetchAsync_v2, CUmemLocation location, unsigned flags)
PREFETCH(cuMemPrefetchAsync_v2_ptsz, CUmemLocation location, unsigned flags)

CUresult cuMemRangeGetAttribute(void *data, size_t data_bytes, CUmem_range_attribute attribute, CUdeviceptr address,
                                size_t bytes)
{
    SIM_ENTER(cuMemRangeGetAttribute);
    if (!data || !data_bytes || managed_check(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    memset(data, 0, data_bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttributes(void **data, size_t *data_bytes, CUmem_range_attribute *attributes, size_t count,
                                 CUdeviceptr address, size_t bytes)
{
    SIM_ENTER(cuMemRangeGetAttributes);
    if (!data || !data_bytes || !attributes || !count || managed_check(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) memset(data[i], 0, data_bytes[i]);
    return CUDA_SUCCESS;
}

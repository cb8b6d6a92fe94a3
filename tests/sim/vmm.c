/* Virtual memory management: reservations, handles of physical memory, mappings. */
#include "cost.h"
#include "memory.h"
#include <sys/mman.h>

struct reservation {
    struct reservation *next;
    uint64_t address;
    size_t bytes;
    char *inside;
    CUcontext context;
};
struct handle {
    struct handle *next;
    uint64_t id;
    CUdevice device;
    int64_t physical;
    size_t bytes;
    unsigned references, mappings;
    CUmemAllocationProp properties;
};
static struct reservation *reservations;
static struct handle *handles;
static uint64_t next_handle = 0x1000;

static struct reservation *reservation_at(uint64_t address, size_t bytes)
{
    for (struct reservation *each = reservations; each; each = each->next)
        if (address >= each->address && address - each->address < each->bytes &&
            bytes <= each->bytes - (address - each->address))
            return each;
    return NULL;
}

static struct handle *handle_find(CUmemGenericAllocationHandle id)
{
    for (struct handle *each = handles; each; each = each->next)
        if (each->id == id) return each;
    return NULL;
}

static void handle_drop(struct handle *handle)
{
    if (handle->references || handle->mappings) return;
    for (struct handle **link = &handles; *link; link = &(*link)->next)
        if (*link == handle) {
            *link = handle->next;
            break;
        }
    physical_give(handle->device, handle->physical, handle->bytes);
    free(handle);
}

static void mapping_end(struct allocation *mapping)
{
    struct handle *handle = handle_find(mapping->handle);
    chunks_hide(mapping);
    physical_unmap(mapping->inside, mapping->bytes);
    free(mapping);
    if (handle) {
        handle->mappings--;
        handle_drop(handle);
    }
}

static bool aligned(uint64_t value) { return value % SIM_CHUNK_BYTES == 0; }

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    SIM_ENTER(cuMemAddressReserve);
    (void)hint; /* as the real one: not honoured */
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    if (!address || !bytes || !aligned(bytes) || flags || alignment & (alignment - 1)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes >= (size_t)1 << 46) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t slack = alignment > SIM_CHUNK_BYTES ? alignment : 0;
    sim_lock();
    CUcontext context = NULL;
    context_current(&context);
    CUresult result = CUDA_SUCCESS;
    char *outside = address_reserve(bytes + slack), *inside = outside ? address_reserve(bytes) : NULL;
    if (!result && !inside) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result) {
        struct reservation *made = calloc(1, sizeof *made);
        size_t skip = slack ? -(uintptr_t)outside % alignment : 0;
        *made = (struct reservation){reservations, (uintptr_t)outside + skip, bytes, inside, context};
        reservations = made;
        *address = made->address;
    }
    sim_unlock();
    return result;
}

static void reservation_end(struct reservation *reservation)
{
    for (struct reservation **link = &reservations; *link; link = &(*link)->next)
        if (*link == reservation) {
            *link = reservation->next;
            break;
        }
    munmap((void *)reservation->address, reservation->bytes);
    munmap(reservation->inside, reservation->bytes);
    free(reservation);
}

static bool range_is_mapped_at_all(uint64_t address, size_t bytes)
{
    for (uint64_t at = address; at < address + bytes; at += SIM_CHUNK_BYTES)
        if (allocation_at(at)) return true;
    return false;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    SIM_ENTER(cuMemAddressFree);
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    sim_lock();
    struct reservation *reservation = reservation_at(address, bytes);
    CUresult result = CUDA_SUCCESS;
    if (!reservation || reservation->address != address || reservation->bytes != bytes ||
        range_is_mapped_at_all(address, bytes) || span_in(address, bytes))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result) reservation_end(reservation);
    sim_unlock();
    return result;
}

static CUresult properties_check(const CUmemAllocationProp *properties)
{
    if (!properties || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (properties->location.id < 0 || properties->location.id >= sim.device_count) return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    SIM_ENTER(cuMemGetAllocationGranularity);
    (void)option;
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    if (!granularity) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = properties_check(properties);
    if (!result) *granularity = SIM_CHUNK_BYTES;
    return result;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *id, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags)
{
    SIM_ENTER(cuMemCreate);
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    if (!id || !bytes || !aligned(bytes) || flags) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = properties_check(properties);
    if (result) return result;
    sim_lock();
    int64_t physical = physical_take(properties->location.id, bytes);
    if (!result && physical < 0) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result) {
        struct handle *made = calloc(1, sizeof *made);
        *made = (struct handle){.next = handles,
                                .id = next_handle++,
                                .device = properties->location.id,
                                .physical = physical,
                                .bytes = bytes,
                                .references = 1,
                                .properties = *properties};
        handles = made;
        *id = made->id;
    }
    sim_unlock();
    return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle id)
{
    SIM_ENTER(cuMemRelease);
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    sim_lock();
    struct handle *handle = handle_find(id);
    CUresult result = handle && handle->references ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        handle->references--;
        handle_drop(handle);
    }
    sim_unlock();
    return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle id,
                  unsigned long long flags)
{
    SIM_ENTER(cuMemMap);
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    if (!bytes || !aligned(address) || !aligned(bytes) || offset || flags) return CUDA_ERROR_INVALID_VALUE;
    uint64_t start_ns = time_now_ns();
    sim_lock();
    struct reservation *reservation = reservation_at(address, bytes);
    struct handle *handle = handle_find(id);
    CUresult result = CUDA_SUCCESS;
    if (!reservation || !handle || bytes > handle->bytes || range_is_mapped_at_all(address, bytes))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result && span_in(address, bytes)) result = CUDA_ERROR_INVALID_VALUE; /* registered memory is in the way */
    if (!result) {
        struct allocation *mapping = calloc(1, sizeof *mapping);
        *mapping = (struct allocation){.address = address,
                                       .bytes = bytes,
                                       .kind = ALLOCATION_MAPPING,
                                       .handle = id,
                                       .inside = reservation->inside + (address - reservation->address),
                                       .context = reservation->context,
                                       .device = handle->device};
        if (physical_map(mapping->inside, handle->physical, bytes) && chunks_show(mapping))
            handle->mappings++;
        else
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_unlock();
    if (!result) cost_map(start_ns);
    return result;
}

/* The mappings that make up exactly this range, each handed to `each`; INVALID_VALUE if they do not. */
static CUresult mappings_visit(uint64_t address, size_t bytes, void (*visit)(struct allocation *, unsigned),
                               unsigned flags)
{
    uint64_t at = address;
    while (at < address + bytes) {
        struct allocation *mapping = allocation_at(at);
        if (!mapping || mapping->kind != ALLOCATION_MAPPING || mapping->address != at) return CUDA_ERROR_INVALID_VALUE;
        at += mapping->bytes;
    }
    if (at != address + bytes || !bytes) return CUDA_ERROR_INVALID_VALUE;
    for (at = address; at < address + bytes;) {
        struct allocation *mapping = allocation_at(at);
        at += mapping->bytes;
        visit(mapping, flags);
    }
    return CUDA_SUCCESS;
}

static void visit_unmap(struct allocation *mapping, unsigned flags)
{
    (void)flags;
    mapping_end(mapping);
}

static void visit_access(struct allocation *mapping, unsigned flags)
{
    mapping->accessible = flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    mapping->writable = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    SIM_ENTER(cuMemUnmap);
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    sim_lock();
    CUresult result = mappings_visit(address, bytes, visit_unmap, 0);
    sim_unlock();
    return result;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    SIM_ENTER(cuMemSetAccess);
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    if (!access || !count) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    sim_lock();
    for (size_t i = 0; i < count && !result; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id < 0 ||
            access[i].location.id >= sim.device_count)
            result = CUDA_ERROR_INVALID_DEVICE;
        else
            result = mappings_visit(address, bytes, visit_access, access[i].flags);
    }
    sim_unlock();
    return result;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
    SIM_ENTER(cuMemGetAccess);
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    if (!flags || !location || !address) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct allocation *allocation = allocation_at(address);
    *flags = 0;
    if (allocation && allocation->kind == ALLOCATION_MAPPING)
        *flags = allocation->writable     ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : allocation->accessible ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    sim_unlock();
    return allocation ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *id, void *pointer)
{
    SIM_ENTER(cuMemRetainAllocationHandle);
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct allocation *mapping = allocation_at((uintptr_t)pointer);
    struct handle *handle = mapping && mapping->kind == ALLOCATION_MAPPING ? handle_find(mapping->handle) : NULL;
    if (handle) {
        handle->references++;
        *id = handle->id;
    }
    sim_unlock();
    return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties, CUmemGenericAllocationHandle id)
{
    SIM_ENTER(cuMemGetAllocationPropertiesFromHandle);
    if (!sim.vmm) return CUDA_ERROR_NOT_SUPPORTED;
    if (!properties) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct handle *handle = handle_find(id);
    if (handle) *properties = handle->properties;
    sim_unlock();
    return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool reservation_bounds(uint64_t address, uint64_t *start, size_t *bytes)
{
    struct reservation *reservation = reservation_at(address, 1);
    if (!reservation) return false;
    *start = reservation->address;
    *bytes = reservation->bytes;
    return true;
}

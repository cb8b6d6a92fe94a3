/* Memory that the CPU and the device share: allocated pinned, registered, managed. */
#include "cost.h"
#include "memory.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static struct span *spans; /* by address */
static size_t span_count, span_room;
static uint64_t next_id = 1;

/* The first span that ends behind the address. */
static size_t span_index(uint64_t address)
{
    size_t low = 0, high = span_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (spans[middle].address + spans[middle].bytes > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct span *span_at(uint64_t address)
{
    size_t index = span_index(address);
    return index < span_count && spans[index].address <= address ? &spans[index] : NULL;
}

struct span *span_in(uint64_t address, size_t bytes)
{
    size_t index = span_index(address);
    return index < span_count && spans[index].address < address + bytes ? &spans[index] : NULL;
}

CUresult span_add(struct span span)
{
    size_t index = span_index(span.address);
    if (span_count == span_room) {
        size_t room = span_room ? 2 * span_room : 64;
        struct span *grown = realloc(spans, room * sizeof *spans);
        if (!grown) return CUDA_ERROR_OUT_OF_MEMORY;
        spans = grown;
        span_room = room;
    }
    memmove(&spans[index + 1], &spans[index], (span_count - index) * sizeof *spans);
    span.id = next_id++;
    spans[index] = span;
    span_count++;
    return CUDA_SUCCESS;
}

void span_remove(struct span *span)
{
    pages_release(span->pages);
    size_t index = (size_t)(span - spans);
    memmove(span, span + 1, (span_count - index - 1) * sizeof *spans);
    span_count--;
}

static size_t page_round(size_t bytes) { return (bytes + 4095) & ~(size_t)4095; }

void managed_free(struct span *span)
{
    void *address = (void *)(uintptr_t)span->address;
    size_t bytes = span->bytes;
    span_remove(span);
    munmap(address, page_round(bytes));
}

void spans_forget(CUcontext context)
{
    for (size_t i = span_count; i-- > 0;)
        if (spans[i].context == context) {
            if (spans[i].kind == SPAN_REGISTERED)
                span_remove(&spans[i]);
            else
                managed_free(&spans[i]);
        }
}

static CUresult pages_allocate(size_t bytes, enum span_kind kind, unsigned flags, void **pointer)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (!result) result = capture_refuses_unsafe();
    if (result) return result;
    void *pages = mmap(NULL, page_round(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    result = span_add((struct span){.address = (uintptr_t)pages,
                                    .bytes = bytes,
                                    .kind = kind,
                                    .flags = flags,
                                    .context = context,
                                    .device = context->device});
    if (result)
        munmap(pages, page_round(bytes));
    else
        *pointer = pages;
    return result;
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    SIM_ENTER(cuMemHostAlloc);
    if (!pointer || flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
    *pointer = NULL;
    if (!bytes) return CUDA_SUCCESS;
    flags = (flags & CU_MEMHOSTALLOC_WRITECOMBINED) | CU_MEMHOSTALLOC_DEVICEMAP; /* what cuMemHostGetFlags tells */
    uint64_t start_ns = time_now_ns();
    sim_lock();
    CUresult result = pages_allocate(bytes, SPAN_ALLOCATED, flags, pointer);
    sim_unlock();
    if (!result) cost_pin(bytes, start_ns);
    return result;
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    SIM_ENTER(cuMemAllocHost_v2);
    if (!pointer || !bytes) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = pages_allocate(bytes, SPAN_ALLOCATED, CU_MEMHOSTALLOC_DEVICEMAP, pointer);
    sim_unlock();
    return result;
}

CUresult cuMemFreeHost(void *pointer)
{
    SIM_ENTER(cuMemFreeHost);
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    if (result == CUDA_ERROR_INVALID_CONTEXT) result = CUDA_SUCCESS;
    if (!result) result = capture_refuses_unsafe();
    struct span *span = span_at((uintptr_t)pointer);
    if (!pointer) {
        sim_unlock();
        return result;
    }
    if (!result && (!span || span->kind != SPAN_ALLOCATED || span->address != (uintptr_t)pointer))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        context_drain(span->context);
        span = span_at((uintptr_t)pointer);
        if (span) managed_free(span);
    }
    sim_unlock();
    return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    SIM_ENTER(cuMemAllocManaged);
    if (!address || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    void *pages;
    sim_lock();
    CUresult result = pages_allocate(bytes, SPAN_MANAGED, flags, &pages);
    sim_unlock();
    if (!result) *address = (uintptr_t)pages;
    return result;
}

/* Whether a page is of a file or shared, from the kernel's page map. */
static bool page_is_of_file(uintptr_t address)
{
    uint64_t entry = 0;
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    bool known = map >= 0 && pread(map, &entry, sizeof entry, (off_t)(address / 4096 * 8)) == sizeof entry;
    if (map >= 0) close(map);
    return known && entry >> 61 & 1;
}

/* A file's pages, shared and written to, cannot stay pinned; memory files can. */
static bool maps_a_file_shared(uintptr_t address)
{
    FILE *maps = page_is_of_file(address) ? fopen("/proc/self/maps", "re") : NULL;
    char line[512];
    bool found = false;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end, offset, inode;
        char access[8], path[256] = "";
        unsigned major, minor;
        if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %255s", &start, &end, access, &offset, &major, &minor, &inode,
                   path) < 7)
            continue;
        if (address < start || address >= end) continue;
        found = access[3] == 's' && inode && strncmp(path, "/memfd:", 7) && strncmp(path, "/dev/zero", 9) &&
                strncmp(path, "/dev/shm/", 9);
        break;
    }
    if (maps) fclose(maps);
    return found;
}

/* Pins as the driver does: every page must be there, and writable unless the program said that reading is enough. */
static bool pages_can_be_pinned(uintptr_t address, size_t bytes, bool read_only)
{
    uintptr_t start = address & ~(uintptr_t)4095, end = page_round(address + bytes);
    if (madvise((void *)start, end - start, read_only ? MADV_POPULATE_READ : MADV_POPULATE_WRITE)) return false;
    return read_only || !maps_a_file_shared(start);
}

static CUresult registered(void *pointer, size_t bytes, unsigned flags)
{
    uint64_t start_ns = time_now_ns();
    CUcontext context;
    if (!pointer || !bytes || flags & ~15u) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) result = capture_refuses_unsafe();
    if (!result && (!sim.can_register || (!sim.can_map_host && flags & CU_MEMHOSTREGISTER_DEVICEMAP)))
        result = CUDA_ERROR_NOT_SUPPORTED;
    struct span span = {.address = (uintptr_t)pointer, .bytes = bytes, .kind = SPAN_REGISTERED, .flags = flags};
    struct span *other = result ? NULL : span_in(span.address, bytes);
    if (!result && (allocation_at(span.address) || (other && other->kind != SPAN_REGISTERED)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result && (other || bytes >= (size_t)1 << 39)) result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (!result && !pages_can_be_pinned(span.address, bytes, flags & CU_MEMHOSTREGISTER_READ_ONLY))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        span.context = context;
        span.device = context->device;
        if (!(flags & CU_MEMHOSTREGISTER_READ_ONLY)) span.pages = pages_hold(span.address, bytes);
        result = span_add(span);
        if (result) pages_release(span.pages);
    }
    sim_unlock();
    if (!result) cost_register(bytes, start_ns);
    return result;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    SIM_ENTER(cuMemHostRegister_v2);
    return registered(pointer, bytes, flags);
}

CUresult cuMemHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    SIM_ENTER(cuMemHostRegister);
    return registered(pointer, bytes, flags);
}

static CUresult unregistered(void *pointer)
{
    uint64_t start_ns = time_now_ns();
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    if (result == CUDA_ERROR_INVALID_CONTEXT) result = CUDA_SUCCESS;
    if (!result) result = capture_refuses_unsafe();
    struct location location;
    location_of((uintptr_t)pointer, &location);
    if (!result && pointer && location.place == PLACE_PAGEABLE)
        result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    else if (!result &&
             (!location.span || location.span->kind != SPAN_REGISTERED || location.base != (uintptr_t)pointer))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        context_drain(location.span->context);
        struct span *span = span_at((uintptr_t)pointer);
        if (span) span_remove(span);
    }
    sim_unlock();
    if (!result) cost_unregister(location.bytes, start_ns);
    return result;
}

CUresult cuMemHostUnregister(void *pointer)
{
    static struct call_site site = {.name = "cuMemHostUnregister"};
    CUresult refused = call_enter(&site, 1);
    if (refused && refused != CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED) return refused;
    /* Told to answer that it is not registered: then no page is held either. */
    CUresult result = unregistered(pointer);
    return refused ? refused : result;
}

/* Mapped virtual memory answers here as if it were host memory; so does the real driver. */
static bool is_mapping(uintptr_t address)
{
    struct allocation *allocation = allocation_at(address);
    return allocation && allocation->kind == ALLOCATION_MAPPING;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned flags)
{
    SIM_ENTER(cuMemHostGetDevicePointer_v2);
    if (!address || flags) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    struct span *span = span_at((uintptr_t)pointer);
    bool mapped = (span && span->kind != SPAN_MANAGED && sim.can_map_host) || is_mapping((uintptr_t)pointer);
    if (!result) *address = mapped ? (uintptr_t)pointer : 0;
    if (!result && !mapped) result = CUDA_ERROR_INVALID_VALUE;
    sim_unlock();
    return result;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *pointer)
{
    SIM_ENTER(cuMemHostGetFlags);
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    struct span *span = span_at((uintptr_t)pointer);
    unsigned found = 0;
    if (is_mapping((uintptr_t)pointer))
        found = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    else if (span && span->kind == SPAN_MANAGED)
        found = CU_MEMHOSTALLOC_DEVICEMAP;
    else if (span && span->kind == SPAN_ALLOCATED)
        found = span->flags;
    else if (span)
        found = (span->flags & CU_MEMHOSTREGISTER_PORTABLE) | CU_MEMHOSTREGISTER_DEVICEMAP;
    if (!result && !found) result = CUDA_ERROR_INVALID_VALUE;
    if (!result) *flags = found;
    sim_unlock();
    return result;
}

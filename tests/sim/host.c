/* Memory that the CPU and the device share: allocated pinned, registered, managed. */
#include "memory.h"
#include <sys/mman.h>

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

CUresult span_add(struct span span)
{
    size_t index = span_index(span.address);
    if (index < span_count && spans[index].address < span.address + span.bytes)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
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
    if (!pointer || !bytes || flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = pages_allocate(bytes, SPAN_ALLOCATED, flags | CU_MEMHOSTALLOC_DEVICEMAP, pointer);
    sim_unlock();
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
    if (!result) result = capture_refuses_unsafe();
    struct span *span = span_at((uintptr_t)pointer);
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

/* Pins as the driver does: every page must be there, and writable unless the program said that reading is enough. */
static bool pages_can_be_pinned(uintptr_t address, size_t bytes, bool read_only)
{
    uintptr_t start = address & ~(uintptr_t)4095, end = page_round(address + bytes);
    return !madvise((void *)start, end - start, read_only ? MADV_POPULATE_READ : MADV_POPULATE_WRITE);
}

static CUresult registered(void *pointer, size_t bytes, unsigned flags)
{
    CUcontext context;
    if (!pointer || !bytes || flags & ~15u) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) result = capture_refuses_unsafe();
    if (!result && (!sim.can_register || (!sim.can_map_host && flags & CU_MEMHOSTREGISTER_DEVICEMAP)))
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (!result && allocation_at((uintptr_t)pointer)) result = CUDA_ERROR_INVALID_VALUE;
    struct span span = {.address = (uintptr_t)pointer, .bytes = bytes, .kind = SPAN_REGISTERED, .flags = flags};
    if (!result) {
        span.context = context;
        span.device = context->device;
        size_t index = span_index(span.address);
        if (index < span_count && spans[index].address < span.address + span.bytes)
            result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        else if (bytes >= (size_t)1 << 39 ||
                 !pages_can_be_pinned(span.address, bytes, flags & CU_MEMHOSTREGISTER_READ_ONLY))
            result = CUDA_ERROR_INVALID_VALUE;
    }
    if (!result) result = span_add(span);
    sim_unlock();
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

CUresult cuMemHostUnregister(void *pointer)
{
    SIM_ENTER(cuMemHostUnregister);
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) result = capture_refuses_unsafe();
    struct span *span = span_at((uintptr_t)pointer);
    if (!result && (!span || span->address != (uintptr_t)pointer))
        result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    else if (!result && span->kind != SPAN_REGISTERED)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        context_drain(span->context);
        span = span_at((uintptr_t)pointer);
        if (span) span_remove(span);
    }
    sim_unlock();
    return result;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned flags)
{
    SIM_ENTER(cuMemHostGetDevicePointer_v2);
    if (!address || flags) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result && (!sim.can_map_host || !span_at((uintptr_t)pointer))) result = CUDA_ERROR_INVALID_VALUE;
    if (!result) *address = (uintptr_t)pointer;
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
    if (!result && (!span || span->kind == SPAN_MANAGED)) result = CUDA_ERROR_INVALID_VALUE;
    if (!result) *flags = span->flags | (span->kind == SPAN_REGISTERED ? CU_MEMHOSTALLOC_DEVICEMAP : 0);
    sim_unlock();
    return result;
}

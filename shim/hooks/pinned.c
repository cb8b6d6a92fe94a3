/* Pinned and registered host memory of the program: tracked for the report; what the shim itself registered stays
 * unseen. */
#include "shim/buffer.h"
#include "shim/context.h"
#include "shim/hooks/hooks.h"
#include "shim/hostmem.h"
#include "shim/report.h"
#include "shim/window.h"

static void *ask_about(void *p) { return (void *)address_to_ask((CUdeviceptr)p); }

static void track(CUresult result, void *p, size_t bytes, enum buffer_kind kind)
{
    context_memory_changed();
    if (result != CUDA_SUCCESS || !p) return;
    struct context *context = context_current();
    struct buffer buffer = {.address = (uintptr_t)p,
                            .bytes = bytes,
                            .kind = kind,
                            .device = -1,
                            .context = context,
                            .site = site_capture(),
                            .id = buffer_next_id()};
    buffer_add(&buffer);
}

CUresult hook_cuMemHostAlloc(DRIVER(cuMemHostAlloc) forward, bool per_thread, void **pp, size_t bytesize,
                             unsigned int Flags)
{
    (void)per_thread;
    CUresult result = forward(pp, bytesize, Flags);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && hostmem_trim()) result = forward(pp, bytesize, Flags);
    track(result, result == CUDA_SUCCESS ? *pp : NULL, bytesize, BUFFER_PINNED);
    return result;
}

CUresult hook_cuMemAllocHost_v2(DRIVER(cuMemAllocHost_v2) forward, bool per_thread, void **pp, size_t bytesize)
{
    (void)per_thread;
    CUresult result = forward(pp, bytesize);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && hostmem_trim()) result = forward(pp, bytesize);
    track(result, result == CUDA_SUCCESS ? *pp : NULL, bytesize, BUFFER_PINNED);
    return result;
}

/* Names what was wrong with a free that the driver refused. */
static void note_bad_free(void *p, bool in_window)
{
    struct buffer buffer;
    struct site *allocated = hostmem_site(p);
    enum misuse kind = in_window ? MISUSE_FREE_HOST_OF_DEVICE : MISUSE_FREE_HOST_OF_MALLOC;
    if (buffer_find_containing((uintptr_t)p, &buffer)) {
        allocated = buffer.site;
        if (buffer.kind == BUFFER_PINNED)
            kind = MISUSE_INTERIOR_FREE;
        else if (buffer.kind != BUFFER_REGISTERED)
            kind = MISUSE_FREE_HOST_OF_DEVICE;
    } else if (buffer_was_freed((uintptr_t)p)) {
        kind = MISUSE_DOUBLE_FREE;
    }
    report_misuse(kind, p, allocated, site_capture());
}

CUresult hook_cuMemFreeHost(DRIVER(cuMemFreeHost) forward, bool per_thread, void *p)
{
    (void)per_thread;
    struct buffer buffer;
    struct window *window = window_at((uintptr_t)p);
    bool known = !window && p && buffer_find((uintptr_t)p, &buffer) && buffer.kind == BUFFER_PINNED &&
                 buffer_remove((uintptr_t)p, &buffer);
    CUresult result = forward(ask_about(p));
    if (known && result != CUDA_SUCCESS) buffer_add(&buffer);
    if (!known && p && result == CUDA_ERROR_INVALID_VALUE) note_bad_free(p, window != NULL);
    return result;
}

CUresult hook_cuMemHostRegister_v2(DRIVER(cuMemHostRegister_v2) forward, bool per_thread, void *p, size_t bytesize,
                                   unsigned int Flags)
{
    (void)per_thread;
    struct window *window = window_at((uintptr_t)p);
    if (window)
        return forward((void *)window->context->exemplar, bytesize < WINDOW_SLOT ? bytesize : WINDOW_SLOT, Flags);
    bool block = hostmem_owns(p);
    if (block) hostmem_program_registers(p, bytesize);
    CUresult result = forward(p, bytesize, Flags);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && hostmem_trim()) result = forward(p, bytesize, Flags);
    if (block && result != CUDA_SUCCESS) hostmem_program_unregistered(p);
    track(result, p, bytesize, BUFFER_REGISTERED);
    return result;
}

CUresult hook_cuMemHostUnregister(DRIVER(cuMemHostUnregister) forward, bool per_thread, void *p)
{
    (void)per_thread;
    struct buffer buffer;
    bool known = p && buffer_find((uintptr_t)p, &buffer) && buffer.kind == BUFFER_REGISTERED &&
                 buffer_remove((uintptr_t)p, &buffer);
    CUresult result = forward(ask_about(p));
    if (known && result != CUDA_SUCCESS) buffer_add(&buffer);
    if (known && result == CUDA_SUCCESS && hostmem_owns(p)) hostmem_program_unregistered(p);
    if (!known && result != CUDA_SUCCESS && p && buffer_find((uintptr_t)p, &buffer) && buffer.kind == BUFFER_PINNED)
        report_misuse(MISUSE_UNREGISTER_OF_ALLOC, p, buffer.site, site_capture());
    return result;
}

CUresult hook_cuMemHostGetDevicePointer_v2(DRIVER(cuMemHostGetDevicePointer_v2) forward, bool per_thread,
                                           CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    (void)per_thread;
    return forward(pdptr, ask_about(p), Flags);
}

CUresult hook_cuMemHostGetFlags(DRIVER(cuMemHostGetFlags) forward, bool per_thread, unsigned int *pFlags, void *p)
{
    (void)per_thread;
    return forward(pFlags, ask_about(p));
}

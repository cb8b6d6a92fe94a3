/* Device memory: allocate and free. */
#include "shim/buffer.h"
#include "shim/choice.h"
#include "shim/context.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/hostmem.h"
#include "shim/lend.h"
#include "shim/placement.h"
#include "shim/report.h"
#include "shim/window.h"

static void track(CUresult result, const CUdeviceptr *dptr, size_t bytes, enum buffer_kind kind)
{
    context_memory_changed();
    if (result != CUDA_SUCCESS || !dptr || !*dptr) return;
    struct context *context = context_current();
    struct buffer buffer = {.address = *dptr,
                            .bytes = bytes,
                            .kind = kind,
                            .device = context ? (int)context->device : -1,
                            .context = context,
                            .site = site_capture(),
                            .id = buffer_next_id()};
    buffer_add(&buffer);
}

/* Enters a window's new buffer in the table; 0 if that fails (the slot is given back). */
static CUdeviceptr track_in_window(struct context *context, struct site *site, CUdeviceptr address, size_t bytes)
{
    if (!address) return 0;
    struct buffer buffer = {.address = address,
                            .bytes = bytes,
                            .kind = BUFFER_DEVICE,
                            .device = (int)context->device,
                            .context = context,
                            .window = window_at(address),
                            .site = site,
                            .id = buffer_next_id()};
    if (buffer_add(&buffer)) return address;
    window_free(buffer.window, address);
    return 0;
}

/* A buffer of a window, or 0. */
static CUdeviceptr allocate_in_window(size_t bytes)
{
    enum window_place place;
    struct context *context = context_current();
    if (!context || !bytes) return 0;
    struct site *site = site_capture();
    if (placement_for(context, site, bytes, &place))
        return track_in_window(context, site, window_alloc(context, site, bytes, place), bytes);
    if (placement_for_large(context, site, bytes, &place))
        return track_in_window(context, site, window_alloc_sole(context, site, bytes, place), bytes);
    if (lend_wanted(context, site, bytes))
        return track_in_window(context, site, window_alloc_lendable(context, site, bytes), bytes);
    return 0;
}

/* The device has no memory left: with option spill the buffer lives on the host instead. */
static CUdeviceptr spill(size_t bytes)
{
    struct context *context = context_current();
    if (!context || !placement_may_spill(context)) return 0;
    struct site *site = site_capture();
    CUdeviceptr address = track_in_window(context, site, window_alloc_sole(context, site, bytes, WINDOW_HOST), bytes);
    if (address)
        report_note("the device was out of memory: a buffer of %zu bytes lives on the host (ZCSHIM_SPILL)", bytes);
    return address;
}

CUresult hook_cuMemAlloc_v2(DRIVER(cuMemAlloc_v2) forward, bool per_thread, CUdeviceptr *dptr, size_t bytesize)
{
    (void)per_thread;
    PLACEMENT_STRESS();
    CUdeviceptr address = dptr ? allocate_in_window(bytesize) : 0;
    if (!address) {
        CUresult result = forward(dptr, bytesize);
        track(result, dptr, bytesize, BUFFER_DEVICE);
        if (result != CUDA_ERROR_OUT_OF_MEMORY || !dptr || !shim.options.spill) return result;
        address = spill(bytesize);
        if (!address) return result;
    }
    *dptr = address;
    return CUDA_SUCCESS;
}

CUresult hook_cuMemAllocPitch_v2(DRIVER(cuMemAllocPitch_v2) forward, bool per_thread, CUdeviceptr *dptr, size_t *pPitch,
                                 size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes)
{
    (void)per_thread;
    CUresult result = forward(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    track(result, dptr, result == CUDA_SUCCESS ? *pPitch * Height : 0, BUFFER_DEVICE);
    return result;
}

CUresult hook_cuMemAllocManaged(DRIVER(cuMemAllocManaged) forward, bool per_thread, CUdeviceptr *dptr, size_t bytesize,
                                unsigned int flags)
{
    (void)per_thread;
    CUresult result = forward(dptr, bytesize, flags);
    track(result, dptr, bytesize, BUFFER_MANAGED);
    return result;
}

CUresult hook_cuMemAllocAsync(DRIVER(cuMemAllocAsync) forward, bool per_thread, CUdeviceptr *dptr, size_t bytesize,
                              CUstream hStream)
{
    (void)per_thread;
    CUresult result = forward(dptr, bytesize, hStream);
    track(result, dptr, bytesize, BUFFER_POOL);
    return result;
}

CUresult hook_cuMemAllocFromPoolAsync(DRIVER(cuMemAllocFromPoolAsync) forward, bool per_thread, CUdeviceptr *dptr,
                                      size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
    (void)per_thread;
    CUresult result = forward(dptr, bytesize, pool, hStream);
    track(result, dptr, bytesize, BUFFER_POOL);
    return result;
}

/* Names what was wrong with a free that the driver refused. */
static void note_bad_free(CUdeviceptr dptr)
{
    struct buffer buffer;
    if (buffer_find_containing(dptr, &buffer)) {
        bool host = buffer.kind == BUFFER_PINNED || buffer.kind == BUFFER_REGISTERED;
        report_misuse(host ? MISUSE_FREE_OF_HOST : MISUSE_INTERIOR_FREE, (void *)dptr, buffer.site, site_capture());
    } else if (buffer_was_freed(dptr)) {
        report_misuse(MISUSE_DOUBLE_FREE, (void *)dptr, NULL, site_capture());
    } else if (hostmem_owns((void *)dptr)) {
        report_misuse(MISUSE_FREE_OF_HOST, (void *)dptr, hostmem_site((void *)dptr), site_capture());
    }
}

/* A context that may read the buffer, too. */
static CUresult wait_for_peer(CUcontext peer)
{
    CUcontext popped;
    CUresult result = shim.real.cuCtxPushCurrent_v2(peer);
    if (result != CUDA_SUCCESS) return CUDA_SUCCESS; /* it is gone, and with it what it ran */
    result = shim.real.cuCtxSynchronize();
    shim.real.cuCtxPopCurrent_v2(&popped);
    return result;
}

/* A window's buffer: waits as cuMemFree does, then the slot is free. */
static CUresult free_in_window(struct window *window, CUdeviceptr dptr)
{
    struct context *context = window->context;
    struct buffer buffer;
    bool pushed;
    CUcontext current = NULL;
    CUresult result = shim.real.cuCtxGetCurrent(&current); /* refused inside a host function, as a free is */
    if (result == CUDA_SUCCESS) result = (CUresult)context->lost;
    if (result != CUDA_SUCCESS) return result;
    if (!buffer_remove(dptr, &buffer)) {
        note_bad_free(dptr);
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = CUDA_ERROR_INVALID_CONTEXT;
    if (!context_enter(context, &pushed)) {
        buffer_add(&buffer);
        return result;
    }
    result = context_wait_all(context);
    for (int i = 0; i < context->peer_count && result == CUDA_SUCCESS; i++) result = wait_for_peer(context->peers[i]);
    if (result == CUDA_SUCCESS) {
        lend_freed(window);
        window_free(window, dptr);
    } else {
        buffer_add(&buffer);
    }
    context_leave(pushed);
    return result;
}

/* What a free means during a capture, the driver tells by an allocation of its own, which is then freed in the same
 * way. */
static CUresult capture_probe(CUdeviceptr *probe) { return shim.real.cuMemAlloc_v2(probe, 1); }

CUresult hook_cuMemFree_v2(DRIVER(cuMemFree_v2) forward, bool per_thread, CUdeviceptr dptr)
{
    (void)per_thread;
    struct buffer buffer;
    struct window *window = window_at(dptr);
    PLACEMENT_STRESS();
    if (window && !context_capturing()) return free_in_window(window, dptr);
    if (window) {
        CUdeviceptr probe;
        CUresult result = capture_probe(&probe);
        if (result == CUDA_SUCCESS) result = forward(probe);
        if (result != CUDA_SUCCESS) return result;
        if (!buffer_remove(dptr, &buffer)) return CUDA_ERROR_INVALID_VALUE;
        lend_freed(window);
        window_free(window, dptr);
        return CUDA_SUCCESS;
    }
    if (!dptr) return forward(dptr);
    bool known = buffer_remove(dptr, &buffer);
    CUresult result = forward(dptr);
    if (known && result != CUDA_SUCCESS) buffer_add(&buffer);
    if (known && buffer.bytes > shim.options.max_size) choice_freed();
    if (result == CUDA_ERROR_INVALID_VALUE) note_bad_free(dptr);
    return result;
}

CUresult hook_cuMemFreeAsync(DRIVER(cuMemFreeAsync) forward, bool per_thread, CUdeviceptr dptr, CUstream hStream)
{
    struct buffer buffer;
    struct window *window = window_at(dptr);
    if (window && context_capturing() && !context_stream_capturing(named_stream(hStream, per_thread))) {
        CUdeviceptr probe;
        CUresult result = capture_probe(&probe);
        if (result == CUDA_SUCCESS) result = forward(probe, hStream);
        if (result != CUDA_SUCCESS) return result;
    } else if (window && context_capturing()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (window && window->context->lost) return (CUresult)window->context->lost;
    if (window) {
        /* Libraries free with this what they got from cuMemAlloc. */
        if (!buffer_remove(dptr, &buffer)) {
            note_bad_free(dptr);
            return CUDA_ERROR_INVALID_VALUE;
        }
        bool pushed, freed = false;
        if (context_enter(window->context, &pushed)) {
            freed = window_free_in_stream(window, dptr, named_stream(hStream, per_thread));
            /* Without an event nobody would know when the stream has passed: free it as cuMemFree does. */
            if (!freed && !context_capturing() && context_wait_all(window->context) == CUDA_SUCCESS) {
                lend_freed(window);
                window_free(window, dptr);
                freed = true;
            }
            context_leave(pushed);
        }
        if (freed) return CUDA_SUCCESS;
        buffer_add(&buffer);
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool known = dptr && buffer_remove(dptr, &buffer);
    CUresult result = forward(dptr, hStream);
    if (known && result != CUDA_SUCCESS) buffer_add(&buffer);
    if (result == CUDA_ERROR_INVALID_VALUE) note_bad_free(dptr);
    return result;
}

CUresult hook_cuMemGetInfo_v2(DRIVER(cuMemGetInfo_v2) forward, bool per_thread, size_t *free, size_t *total)
{
    (void)per_thread;
    CUresult result = forward(free, total);
    struct context *context = result == CUDA_SUCCESS && context_hull.high ? context_current() : NULL;
    if (!context || !free) return result;
    /* A window on the host holds no device memory, where natively its buffers would. */
    size_t host_windows = 0;
    lock_acquire(&context->lock);
    for (struct window *window = context->windows; window; window = window->next)
        if (window->live && !window->has_device) host_windows += window->bytes;
    lock_release(&context->lock);
    *free -= host_windows < *free ? host_windows : *free;
    return result;
}

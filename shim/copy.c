#include <errno.h>
#include <string.h>
#include "shim/buffer.h"
#include "shim/choice.h"
#include "shim/clock.h"
#include "shim/context.h"
#include "shim/copy.h"
#include "shim/gate.h"
#include "shim/hostmem.h"
#include "shim/kernel.h"
#include "shim/lend.h"
#include "shim/placement.h"
#include "shim/shim.h"
#include "shim/staging.h"
#include "shim/window.h"

/* Sizes that do not fit are SIZE_MAX: inside no buffer. */
static size_t product(size_t a, size_t b)
{
    size_t result;
    return __builtin_mul_overflow(a, b, &result) ? SIZE_MAX : result;
}

static size_t sum(size_t a, size_t b)
{
    size_t result;
    return __builtin_add_overflow(a, b, &result) ? SIZE_MAX : result;
}

static size_t request_bytes(const struct copy_request *request)
{
    return product(product(request->width, request->height), request->depth);
}

/* One byte past the last that a pitched side touches, as an offset. */
size_t copy_extent(size_t width, size_t height, size_t depth, size_t pitch, size_t slice)
{
    return sum(sum(product(depth - 1, slice), product(height - 1, pitch)), width);
}

static size_t device_extent(const struct copy_request *r)
{
    return copy_extent(r->width, r->height, r->depth, r->device_pitch, r->device_slice);
}

static size_t host_extent(const struct copy_request *r)
{
    return copy_extent(r->width, r->height, r->depth, r->host_pitch, r->host_slice);
}

enum copy_side copy_side(uintptr_t address)
{
    unsigned type = 0, managed = 0;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&type, &managed};
    if (window_at(address)) return SIDE_WINDOW;
    /* The form for several attributes succeeds on addresses that CUDA does not know: their type is 0. */
    if (shim.real.cuPointerGetAttributes(2, attributes, values, address) != CUDA_SUCCESS) return SIDE_OTHER;
    if (managed) return SIDE_OTHER;
    if (type == CU_MEMORYTYPE_DEVICE) return SIDE_DEVICE;
    if (type == CU_MEMORYTYPE_HOST) return hostmem_hides((void *)address) ? SIDE_PAGEABLE : SIDE_PINNED;
    return type == 0 ? SIDE_PAGEABLE : SIDE_OTHER;
}

/* Pages that this thread found to be host memory. They can only become something else by a call that gives out memory:
 * each of those begins a new epoch. */
#define TOUCHABLE_PAGES 4
static __thread struct touchable {
    uintptr_t page;
    uint32_t epoch;
} touchable[TOUCHABLE_PAGES];

/* May the CPU touch it? "Host" arguments can be device pointers by mistake or by unified addressing; the driver sorts
 * those out. */
static bool cpu_may_touch(const void *host)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), page = (uintptr_t)host >> 12;
    uint32_t epoch = atomic_load_explicit(&context_memory_epoch, memory_order_relaxed);
    struct touchable *known = &touchable[page % TOUCHABLE_PAGES];
    if ((uintptr_t)host - here < 16384) return true; /* the calling stack */
    if (known->page == page && known->epoch == epoch) return true;
    enum copy_side side = copy_side((uintptr_t)host);
    if (side != SIDE_PAGEABLE && side != SIDE_PINNED) return false;
    *known = (struct touchable){page, epoch};
    return true;
}

static void copy_by_cpu(const struct copy_request *r)
{
    char *device = (char *)r->device, *host = r->host;
    int error = errno;
    for (size_t z = 0; z < r->depth; z++) {
        for (size_t y = 0; y < r->height; y++) {
            char *d = device + z * r->device_slice + y * r->device_pitch;
            char *h = host + z * r->host_slice + y * r->host_pitch;
            if (r->direction == COPY_H2D)
                memcpy(d, h, r->width);
            else
                memcpy(h, d, r->width);
        }
    }
    /* Whoever launches next sees these stores: launching writes to the device after them. */
    atomic_thread_fence(memory_order_seq_cst);
    errno = error;
}

/* Enqueues the copy behind what is in the stream. False: nothing was enqueued. */
static bool copy_by_kernel(const struct copy_request *r, CUdeviceptr host, CUresult *result)
{
    *result = kernel_copy(r->context, r, host, r->stream);
    return *result == CUDA_SUCCESS;
}

/* The source is copied away first: the program may change it as soon as the call returns. */
static bool copy_staged(const struct copy_request *r, CUresult *result)
{
    struct stage *stage = staging_take(&r->context->staging, request_bytes(r));
    if (!stage) return false;
    struct copy_request inward = *r, onward = *r;
    inward.device = (CUdeviceptr)stage->host;
    inward.device_pitch = onward.host_pitch = r->width;
    inward.device_slice = onward.host_slice = r->width * r->height;
    copy_by_cpu(&inward);
    if (!copy_by_kernel(&onward, (CUdeviceptr)stage->host, result)) {
        staging_cancel(stage);
        return false;
    }
    staging_give(stage, r->stream);
    return true;
}

/* Behind a busy stream. False: the driver has to do it. */
static bool copy_busy(const struct copy_request *r, CUresult *result)
{
    enum copy_side side = copy_side((uintptr_t)r->host);
    bool kernel = __atomic_load_n(&r->context->copy_kernel, __ATOMIC_ACQUIRE) != NULL;
    if (side == SIDE_PAGEABLE && r->direction == COPY_D2H) {
        *result = context_stream_wait(r->context, r->stream);
        if (*result == CUDA_SUCCESS) copy_by_cpu(r);
        return true;
    }
    if (!kernel) return false;
    if (side == SIDE_PAGEABLE) return copy_staged(r, result);
    CUdeviceptr host = 0;
    if (side != SIDE_PINNED || shim.real.cuMemHostGetDevicePointer_v2(&host, r->host, 0) != CUDA_SUCCESS) return false;
    return copy_by_kernel(r, host, result);
}

/* The per-thread H2D from pageable memory waits for its own stream and not for the legacy one (conformance:
 * order_threads). */
static bool copy_may_outrun_legacy(const struct copy_request *r)
{
    return r->stream == CU_STREAM_PER_THREAD && r->direction == COPY_H2D &&
           copy_side((uintptr_t)r->host) == SIDE_PAGEABLE;
}

/* Waits as the synchronous forms do. */
static CUresult copy_wait(const struct copy_request *r)
{
    if (r->stream == CU_STREAM_LEGACY) return context_wait_blocking(r->context);
    /* Asked before any event is recorded in the stream, which would itself wait for the legacy one. */
    if (copy_may_outrun_legacy(r))
        return context_known_idle(r->context) ? CUDA_SUCCESS : shim.real.cuStreamSynchronize(r->stream);
    return context_stream_wait(r->context, r->stream);
}

static bool copy_without_driver(struct copy_request *r, CUresult *result, bool *elided)
{
    if (!(r->context = context_current()) || r->context != r->window->context || r->context->lost ||
        !context_owns_stream(r->context, r->stream))
        return false;
    if (!request_bytes(r) || !r->host || !cpu_may_touch(r->host)) return false;
    *result = CUDA_SUCCESS;
    if (!r->async) *result = copy_wait(r);
    if (*result != CUDA_SUCCESS) return true;
    if ((r->async || copy_may_outrun_legacy(r)) && !context_stream_idle(r->context, r->stream))
        return copy_busy(r, result);
    copy_by_cpu(r);
    *elided = true;
    return true;
}

/* The device side is a buffer in a window on the host. Inside the gate. While some stream captures, asynchronous copies
 * in others go on: the driver's form would block until their stream drains. What they ask of the driver is asked in
 * relaxed mode, which spoils no capture. */
static bool copy_on_host(struct copy_request *r, CUresult *result, bool *elided)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!context_capturing()) return copy_without_driver(r, result, elided);
    if (!r->async || r->stream == CU_STREAM_LEGACY || context_stream_capturing(r->stream)) return false;
    if (!shim.real.cuThreadExchangeStreamCaptureMode ||
        shim.real.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        return false;
    bool done = copy_without_driver(r, result, elided);
    shim.real.cuThreadExchangeStreamCaptureMode(&mode);
    return done;
}

void copy_freeze_captured(CUstream stream, CUdeviceptr a, CUdeviceptr b)
{
    if (!context_capturing() || (!context_hull_has(a) && !context_hull_has(b)) || !context_stream_capturing(stream))
        return;
    placement_freeze(a, "named by a captured copy or memset");
    placement_freeze(b, "named by a captured copy or memset");
}

static void count(const struct copy_request *r, bool elided)
{
    size_t bytes = request_bytes(r);
    if (!elided) {
        STAT_ADD(copies_native, 1);
        STAT_ADD(bytes_native, bytes);
        return;
    }
    if (r->direction == COPY_H2D)
        STAT_ADD(copies_h2d_elided, 1);
    else
        STAT_ADD(copies_d2h_elided, 1);
    STAT_ADD(bytes_elided, bytes);
}

/* From or to a large host block, whatever its size: a copy that crosses two registrations fails in the driver, and an
 * asynchronous one would read a registered source later. Under a capture the block's registration goes, and a graph
 * that names it keeps it away. */
static bool copy_of_block(struct copy_request *r, CUresult *result)
{
    if (!request_bytes(r)) return false;
    if (context_capturing()) {
        hostmem_make_native(r->host, host_extent(r), context_stream_capturing(r->stream));
        return false;
    }
    if (hostmem_copy_small(r, result)) return true;
    r->context = context_current();
    return r->context && hostmem_copy(r, result);
}

/* A window that pages may be lent to. True: the upload is done (or failed) in that way. Outside the gate. */
static bool copy_lendable(struct copy_request *r, CUresult *result)
{
    if (r->direction == COPY_H2D && request_bytes(r) >= shim.options.lend_min && hostmem_owns(r->host) &&
        !context_capturing() && (r->context = context_current()) && r->context == r->window->context) {
        *result = CUDA_SUCCESS;
        if (!r->async) *result = copy_wait(r);
        if (*result != CUDA_SUCCESS) return true;
        if ((!r->async && !copy_may_outrun_legacy(r)) || context_stream_idle(r->context, r->stream))
            if (lend_upload(r)) return true;
    }
    lend_named(r->device);
    return false;
}

/* The device side is no window's. */
static bool begin_elsewhere(struct copy_request *r, CUresult *result)
{
    bool observes = shim.options.mode == MODE_OBSERVE, done;
    if (placement_wants_time() && observes) r->started_ns = clock_ns();
    if (hostmem_owns(r->host)) {
        done = copy_of_block(r, result);
    } else if (request_bytes(r) < HOSTMEM_COPY_MIN || !shim.options.host || context_capturing() || observes) {
        done = false;
    } else {
        r->context = context_current();
        done = r->context && hostmem_copy(r, result);
    }
    if (done && r->async) gate_note_submitted();
    return done;
}

/* In the gate, which `true` leaves; after `false` the driver makes the copy and copy_end leaves it. */
static bool begin_window(struct copy_request *r, CUresult *result)
{
    bool elided = false;
    if (request_bytes(r) && !window_covers(r->window, r->device, device_extent(r)) && !context_capturing()) {
        *result = CUDA_ERROR_INVALID_VALUE;
        gate_leave();
    } else if (r->window->place != WINDOW_HOST) {
        bool large = request_bytes(r) >= HOSTMEM_COPY_MIN && shim.options.host;
        if ((!large && !hostmem_owns(r->host)) || !copy_of_block(r, result)) return false;
        copy_end(r, *result);
    } else {
        if (!copy_on_host(r, result, &elided)) return false;
        if (elided)
            gate_leave();
        else
            gate_leave_submitted();
        count(r, elided);
        placement_copied(r->window, r, elided, r->started_ns);
    }
    return true;
}

bool copy_begin(struct copy_request *r, CUresult *result)
{
    r->window = window_at(r->device);
    if (!r->window) return begin_elsewhere(r, result);
    PLACEMENT_STRESS();
    if (r->window->lendable && copy_lendable(r, result)) return true;
    copy_freeze_captured(r->stream, r->device, 0);
    if (placement_wants_time()) r->started_ns = clock_ns();
    if (r->window->place != WINDOW_HOST) hostmem_lend_end(r); /* inside the gate it would find the GPU busy */
    lend_gate_enter_named(r->device, 0);
    return begin_window(r, result);
}

void copy_end(struct copy_request *r, CUresult result)
{
    if (!r->window) {
        if (r->async) gate_note_submitted(); /* it may still read or write the host side */
        if (shim.options.mode == MODE_AUTO && result == CUDA_SUCCESS) choice_native_copy(r);
        if (r->started_ns && result == CUDA_SUCCESS) {
            struct buffer buffer;
            struct site_copies *copies;
            count(r, false);
            if (!buffer_find(r->device, &buffer) || !buffer.site) return;
            copies = r->direction == COPY_H2D ? &buffer.site->native_h2d : &buffer.site->native_d2h;
            atomic_fetch_add_explicit(&copies->count, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&copies->bytes, request_bytes(r), memory_order_relaxed);
            atomic_fetch_add_explicit(&copies->ns, clock_ns() - r->started_ns, memory_order_relaxed);
        }
        return;
    }
    gate_leave_submitted();
    context_note(result);
    if (result != CUDA_SUCCESS) return;
    count(r, false);
    if (r->window->lendable && shim.options.mode == MODE_AUTO) choice_native_copy(r);
    placement_copied(r->window, r, false, r->started_ns);
}

static bool on_host(CUdeviceptr address)
{
    struct window *window = window_at(address);
    return window && window->place == WINDOW_HOST;
}

bool copy_out_of_bounds(uintptr_t address, size_t bytes)
{
    struct window *window = window_at(address);
    return window && bytes && !context_capturing() && !window_covers(window, address, bytes);
}

static bool sync_memops(CUdeviceptr address)
{
    uintptr_t start;
    size_t bytes;
    struct window *window = window_at(address);
    return window && window_buffer(window, address, &start, &bytes) && window_sync_memops(window, start);
}

/* Both sides are host memory as the driver sees it (windows on the host, pinned memory): its copy would block until the
 * stream drains, where natively only a synchronous copy with a pinned side waits. */
static bool copy_between_hosts(struct copy_between *b, CUresult *result)
{
    struct context *context = context_current();
    enum copy_side to = on_host(b->to) ? SIDE_WINDOW : copy_side(b->to),
                   from = on_host(b->from) ? SIDE_WINDOW : copy_side(b->from);
    bool windows = on_host(b->to) && on_host(b->from);
    if (!context || !context_owns_stream(context, b->stream) || (!windows && to != SIDE_PINNED && from != SIDE_PINNED))
        return false;
    if (!b->async && !windows) {
        *result = context_stream_wait(context, b->stream);
        if (*result != CUDA_SUCCESS) return true;
    }
    if (context_stream_idle(context, b->stream)) {
        memmove((void *)b->to, (void *)b->from, b->bytes);
        atomic_thread_fence(memory_order_seq_cst);
        *result = CUDA_SUCCESS;
        return true;
    }
    struct copy_request r = copy_linear(COPY_H2D, b->to, (void *)b->from, b->bytes, b->stream, true);
    r.context = context;
    return context->copy_kernel && copy_by_kernel(&r, b->from, result);
}

bool copy_between_begin(struct copy_between *b, CUresult *result)
{
    b->entered = b->wait_after = false;
    if (!context_hull_has(b->to) && !context_hull_has(b->from)) return false;
    PLACEMENT_STRESS();
    copy_freeze_captured(b->stream, b->to, b->from);
    lend_gate_enter_named(b->to, b->from);
    b->entered = true;
    if (copy_out_of_bounds(b->to, b->bytes) || copy_out_of_bounds(b->from, b->bytes)) {
        *result = copy_between_end(b, CUDA_ERROR_INVALID_VALUE);
        return true;
    }
    bool to_host = on_host(b->to), from_host = on_host(b->from);
    if (context_capturing()) return false;
    b->wait_after = !b->async && (sync_memops(b->to) || sync_memops(b->from));
    if ((!to_host && !from_host) || !b->bytes) return false;
    /* The plain form would block on host memory where it natively returns at once. */
    if (!copy_between_hosts(b, result)) *result = shim.real.cuMemcpyDtoDAsync_v2(b->to, b->from, b->bytes, b->stream);
    *result = copy_between_end(b, *result);
    return true;
}

CUresult copy_between_end(struct copy_between *b, CUresult result)
{
    if (b->wait_after && result == CUDA_SUCCESS) {
        struct context *context = context_current();
        if (context) result = context_stream_wait(context, b->stream);
    }
    if (b->entered)
        gate_leave_submitted();
    else
        gate_note_submitted();
    return result;
}

bool copy_gate_enter(CUdeviceptr a, CUdeviceptr b)
{
    if (!context_hull_has(a) && !context_hull_has(b)) return false;
    PLACEMENT_STRESS();
    lend_gate_enter_named(a, b);
    return true;
}

void copy_gate_leave(bool entered)
{
    if (entered)
        gate_leave_submitted();
    else
        gate_note_submitted();
}

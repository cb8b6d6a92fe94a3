/* The memset family. On a window on the host the plain form would block where natively it returns at once (facts.md):
 * it goes out in its asynchronous form on the same stream, or is done by the CPU when nothing runs. */
#include "shim/context.h"
#include "shim/copy.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/placement.h"
#include "shim/window.h"

enum memset_route { MEMSET_FORWARD, MEMSET_ASYNC, MEMSET_DONE, MEMSET_REFUSED };

struct memset_request {
    CUdeviceptr to;
    unsigned value;
    size_t unit, width, height, pitch; /* width in units, pitch in bytes */
    CUstream stream;
    bool sync, entered, wait_after; /* plain form; the gate; CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
};

static void fill(char *to, unsigned value, size_t unit, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (unit == 1)
            to[i] = (char)value;
        else if (unit == 2)
            ((unsigned short *)(void *)to)[i] = (unsigned short)value;
        else
            ((unsigned *)(void *)to)[i] = value;
    }
}

static bool memset_waits(const struct window *window, CUdeviceptr to)
{
    uintptr_t start;
    size_t bytes;
    return window_buffer(window, to, &start, &bytes) && window_sync_memops(window, start);
}

static enum memset_route memset_begin(struct memset_request *r)
{
    copy_freeze_captured(r->stream, r->to, 0);
    r->entered = copy_gate_enter(r->to, 0);
    struct window *window = r->entered ? window_at(r->to) : NULL;
    if (!window || !r->width || !r->height) return MEMSET_FORWARD;
    size_t row = r->width > SIZE_MAX / r->unit ? SIZE_MAX : r->width * r->unit;
    size_t extent = copy_extent(row, r->height, 1, r->pitch, 0);
    if (copy_out_of_bounds(r->to, extent)) return MEMSET_REFUSED;
    r->wait_after = r->sync && !context_capturing() && memset_waits(window, r->to);
    if (window->place != WINDOW_HOST) return MEMSET_FORWARD;
    if (context_capturing()) return MEMSET_FORWARD;
    struct context *context = context_current();
    if ((r->to | r->pitch) % r->unit || (r->height > 1 && r->pitch < r->width * r->unit)) return MEMSET_FORWARD;
    if (context != window->context || !context_owns_stream(context, r->stream) ||
        !context_stream_idle(context, r->stream))
        return MEMSET_ASYNC;
    for (size_t y = 0; y < r->height; y++) fill((char *)r->to + y * r->pitch, r->value, r->unit, r->width);
    atomic_thread_fence(memory_order_seq_cst);
    return MEMSET_DONE;
}

static CUresult memset_end(const struct memset_request *r, CUresult result)
{
    struct context *context = r->wait_after && result == CUDA_SUCCESS ? context_current() : NULL;
    if (context) result = context_stream_wait(context, r->stream);
    copy_gate_leave(r->entered);
    return result;
}

#define MEMSET_FORM(to, value, unit, width, height, pitch, stream, is_sync, forward_call, async_call)                  \
    do {                                                                                                               \
        struct memset_request request = {to, value, unit, width, height, pitch, stream, is_sync, false, false};        \
        enum memset_route route = memset_begin(&request);                                                              \
        if (route == MEMSET_REFUSED) return memset_end(&request, CUDA_ERROR_INVALID_VALUE);                            \
        if (route == MEMSET_DONE) return memset_end(&request, CUDA_SUCCESS);                                           \
        if (route == MEMSET_ASYNC) return memset_end(&request, async_call);                                            \
        return memset_end(&request, forward_call);                                                                     \
    } while (0)

/* The four entry points of one width. */
#define MEMSET_HOOKS(bits, type)                                                                                       \
    CUresult hook_cuMemsetD##bits##_v2(DRIVER(cuMemsetD##bits##_v2) forward, bool per_thread, CUdeviceptr to,          \
                                       type value, size_t count)                                                       \
    {                                                                                                                  \
        MEMSET_FORM(to, value, bits / 8, count, 1, 0, default_stream(per_thread), true, forward(to, value, count),     \
                    shim.real.cuMemsetD##bits##Async(to, value, count, default_stream(per_thread)));                   \
    }                                                                                                                  \
                                                                                                                       \
    CUresult hook_cuMemsetD##bits##Async(DRIVER(cuMemsetD##bits##Async) forward, bool per_thread, CUdeviceptr to,      \
                                         type value, size_t count, CUstream stream)                                    \
    {                                                                                                                  \
        MEMSET_FORM(to, value, bits / 8, count, 1, 0, named_stream(stream, per_thread), false,                         \
                    forward(to, value, count, stream), forward(to, value, count, stream));                             \
    }                                                                                                                  \
                                                                                                                       \
    CUresult hook_cuMemsetD2D##bits##_v2(DRIVER(cuMemsetD2D##bits##_v2) forward, bool per_thread, CUdeviceptr to,      \
                                         size_t pitch, type value, size_t width, size_t height)                        \
    {                                                                                                                  \
        MEMSET_FORM(to, value, bits / 8, width, height, pitch, default_stream(per_thread), true,                       \
                    forward(to, pitch, value, width, height),                                                          \
                    shim.real.cuMemsetD2D##bits##Async(to, pitch, value, width, height, default_stream(per_thread)));  \
    }                                                                                                                  \
                                                                                                                       \
    CUresult hook_cuMemsetD2D##bits##Async(DRIVER(cuMemsetD2D##bits##Async) forward, bool per_thread, CUdeviceptr to,  \
                                           size_t pitch, type value, size_t width, size_t height, CUstream stream)     \
    {                                                                                                                  \
        MEMSET_FORM(to, value, bits / 8, width, height, pitch, named_stream(stream, per_thread), false,                \
                    forward(to, pitch, value, width, height, stream),                                                  \
                    forward(to, pitch, value, width, height, stream));                                                 \
    }

MEMSET_HOOKS(8, unsigned char)
MEMSET_HOOKS(16, unsigned short)
MEMSET_HOOKS(32, unsigned int)

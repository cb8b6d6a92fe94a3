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

CUresult hook_cuMemsetD8_v2(DRIVER(cuMemsetD8_v2) forward, bool per_thread, CUdeviceptr dstDevice, unsigned char uc,
                            size_t N)
{
    MEMSET_FORM(dstDevice, uc, 1, N, 1, 0, default_stream(per_thread), true, forward(dstDevice, uc, N),
                shim.real.cuMemsetD8Async(dstDevice, uc, N, default_stream(per_thread)));
}

CUresult hook_cuMemsetD8Async(DRIVER(cuMemsetD8Async) forward, bool per_thread, CUdeviceptr dstDevice, unsigned char uc,
                              size_t N, CUstream hStream)
{
    MEMSET_FORM(dstDevice, uc, 1, N, 1, 0, named_stream(hStream, per_thread), false, forward(dstDevice, uc, N, hStream),
                forward(dstDevice, uc, N, hStream));
}

CUresult hook_cuMemsetD2D8_v2(DRIVER(cuMemsetD2D8_v2) forward, bool per_thread, CUdeviceptr dstDevice, size_t dstPitch,
                              unsigned char uc, size_t Width, size_t Height)
{
    MEMSET_FORM(dstDevice, uc, 1, Width, Height, dstPitch, default_stream(per_thread), true,
                forward(dstDevice, dstPitch, uc, Width, Height),
                shim.real.cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, default_stream(per_thread)));
}

CUresult hook_cuMemsetD2D8Async(DRIVER(cuMemsetD2D8Async) forward, bool per_thread, CUdeviceptr dstDevice,
                                size_t dstPitch, unsigned char uc, size_t Width, size_t Height, CUstream hStream)
{
    MEMSET_FORM(dstDevice, uc, 1, Width, Height, dstPitch, named_stream(hStream, per_thread), false,
                forward(dstDevice, dstPitch, uc, Width, Height, hStream),
                forward(dstDevice, dstPitch, uc, Width, Height, hStream));
}

CUresult hook_cuMemsetD16_v2(DRIVER(cuMemsetD16_v2) forward, bool per_thread, CUdeviceptr dstDevice, unsigned short us,
                             size_t N)
{
    MEMSET_FORM(dstDevice, us, 2, N, 1, 0, default_stream(per_thread), true, forward(dstDevice, us, N),
                shim.real.cuMemsetD16Async(dstDevice, us, N, default_stream(per_thread)));
}

CUresult hook_cuMemsetD16Async(DRIVER(cuMemsetD16Async) forward, bool per_thread, CUdeviceptr dstDevice,
                               unsigned short us, size_t N, CUstream hStream)
{
    MEMSET_FORM(dstDevice, us, 2, N, 1, 0, named_stream(hStream, per_thread), false, forward(dstDevice, us, N, hStream),
                forward(dstDevice, us, N, hStream));
}

CUresult hook_cuMemsetD2D16_v2(DRIVER(cuMemsetD2D16_v2) forward, bool per_thread, CUdeviceptr dstDevice,
                               size_t dstPitch, unsigned short us, size_t Width, size_t Height)
{
    MEMSET_FORM(dstDevice, us, 2, Width, Height, dstPitch, default_stream(per_thread), true,
                forward(dstDevice, dstPitch, us, Width, Height),
                shim.real.cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, default_stream(per_thread)));
}

CUresult hook_cuMemsetD2D16Async(DRIVER(cuMemsetD2D16Async) forward, bool per_thread, CUdeviceptr dstDevice,
                                 size_t dstPitch, unsigned short us, size_t Width, size_t Height, CUstream hStream)
{
    MEMSET_FORM(dstDevice, us, 2, Width, Height, dstPitch, named_stream(hStream, per_thread), false,
                forward(dstDevice, dstPitch, us, Width, Height, hStream),
                forward(dstDevice, dstPitch, us, Width, Height, hStream));
}

CUresult hook_cuMemsetD32_v2(DRIVER(cuMemsetD32_v2) forward, bool per_thread, CUdeviceptr dstDevice, unsigned int ui,
                             size_t N)
{
    MEMSET_FORM(dstDevice, ui, 4, N, 1, 0, default_stream(per_thread), true, forward(dstDevice, ui, N),
                shim.real.cuMemsetD32Async(dstDevice, ui, N, default_stream(per_thread)));
}

CUresult hook_cuMemsetD32Async(DRIVER(cuMemsetD32Async) forward, bool per_thread, CUdeviceptr dstDevice,
                               unsigned int ui, size_t N, CUstream hStream)
{
    MEMSET_FORM(dstDevice, ui, 4, N, 1, 0, named_stream(hStream, per_thread), false, forward(dstDevice, ui, N, hStream),
                forward(dstDevice, ui, N, hStream));
}

CUresult hook_cuMemsetD2D32_v2(DRIVER(cuMemsetD2D32_v2) forward, bool per_thread, CUdeviceptr dstDevice,
                               size_t dstPitch, unsigned int ui, size_t Width, size_t Height)
{
    MEMSET_FORM(dstDevice, ui, 4, Width, Height, dstPitch, default_stream(per_thread), true,
                forward(dstDevice, dstPitch, ui, Width, Height),
                shim.real.cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, default_stream(per_thread)));
}

CUresult hook_cuMemsetD2D32Async(DRIVER(cuMemsetD2D32Async) forward, bool per_thread, CUdeviceptr dstDevice,
                                 size_t dstPitch, unsigned int ui, size_t Width, size_t Height, CUstream hStream)
{
    MEMSET_FORM(dstDevice, ui, 4, Width, Height, dstPitch, named_stream(hStream, per_thread), false,
                forward(dstDevice, dstPitch, ui, Width, Height, hStream),
                forward(dstDevice, dstPitch, ui, Width, Height, hStream));
}

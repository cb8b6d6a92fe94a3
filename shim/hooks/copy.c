/* The copy family: each form is put into a copy_request or copy_between, or forwarded inside the gate. */
#include "shim/context.h"
#include "shim/copy.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/hostmem.h"
#include "shim/lend.h"
#include "shim/placement.h"
#include "shim/window.h"

#define COPY_TO_HOST_FORM(request_, forward_call)                                                                      \
    do {                                                                                                               \
        struct copy_request request = request_;                                                                        \
        CUresult result;                                                                                               \
        if (copy_begin(&request, &result)) return result;                                                              \
        result = forward_call;                                                                                         \
        copy_end(&request, result);                                                                                    \
        return result;                                                                                                 \
    } while (0)

#define COPY_BETWEEN_FORM(between_, forward_call)                                                                      \
    do {                                                                                                               \
        struct copy_between between = between_;                                                                        \
        CUresult result;                                                                                               \
        if (copy_between_begin(&between, &result)) return result;                                                      \
        return copy_between_end(&between, forward_call);                                                               \
    } while (0)

#define COPY_GATED_FORM(captured_stream, a, b, bytes, forward_call)                                                    \
    do {                                                                                                               \
        if (copy_out_of_bounds(a, bytes) || copy_out_of_bounds(b, bytes)) return CUDA_ERROR_INVALID_VALUE;             \
        hostmem_make_native((void *)(a), bytes, context_capturing());                                                  \
        hostmem_make_native((void *)(b), bytes, context_capturing());                                                  \
        copy_freeze_captured(captured_stream, a, b);                                                                   \
        bool entered = copy_gate_enter(a, b);                                                                          \
        CUresult result = forward_call;                                                                                \
        copy_gate_leave(entered);                                                                                      \
        return result;                                                                                                 \
    } while (0)

static struct copy_between copy_from_to(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, bool async)
{
    return (struct copy_between){.to = to, .from = from, .bytes = bytes, .stream = stream, .async = async};
}

CUresult hook_cuMemcpyHtoD_v2(DRIVER(cuMemcpyHtoD_v2) forward, bool per_thread, CUdeviceptr dstDevice,
                              const void *srcHost, size_t ByteCount)
{
    COPY_TO_HOST_FORM(copy_linear(COPY_H2D, dstDevice, srcHost, ByteCount, default_stream(per_thread), false),
                      forward(dstDevice, srcHost, ByteCount));
}

CUresult hook_cuMemcpyDtoH_v2(DRIVER(cuMemcpyDtoH_v2) forward, bool per_thread, void *dstHost, CUdeviceptr srcDevice,
                              size_t ByteCount)
{
    COPY_TO_HOST_FORM(copy_linear(COPY_D2H, srcDevice, dstHost, ByteCount, default_stream(per_thread), false),
                      forward(dstHost, srcDevice, ByteCount));
}

CUresult hook_cuMemcpyHtoDAsync_v2(DRIVER(cuMemcpyHtoDAsync_v2) forward, bool per_thread, CUdeviceptr dstDevice,
                                   const void *srcHost, size_t ByteCount, CUstream hStream)
{
    COPY_TO_HOST_FORM(copy_linear(COPY_H2D, dstDevice, srcHost, ByteCount, named_stream(hStream, per_thread), true),
                      forward(dstDevice, srcHost, ByteCount, hStream));
}

CUresult hook_cuMemcpyDtoHAsync_v2(DRIVER(cuMemcpyDtoHAsync_v2) forward, bool per_thread, void *dstHost,
                                   CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    COPY_TO_HOST_FORM(copy_linear(COPY_D2H, srcDevice, dstHost, ByteCount, named_stream(hStream, per_thread), true),
                      forward(dstHost, srcDevice, ByteCount, hStream));
}

CUresult hook_cuMemcpyDtoD_v2(DRIVER(cuMemcpyDtoD_v2) forward, bool per_thread, CUdeviceptr dstDevice,
                              CUdeviceptr srcDevice, size_t ByteCount)
{
    COPY_BETWEEN_FORM(copy_from_to(dstDevice, srcDevice, ByteCount, default_stream(per_thread), false),
                      forward(dstDevice, srcDevice, ByteCount));
}

CUresult hook_cuMemcpyDtoDAsync_v2(DRIVER(cuMemcpyDtoDAsync_v2) forward, bool per_thread, CUdeviceptr dstDevice,
                                   CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    COPY_BETWEEN_FORM(copy_from_to(dstDevice, srcDevice, ByteCount, named_stream(hStream, per_thread), true),
                      forward(dstDevice, srcDevice, ByteCount, hStream));
}

/* The forms that find out the direction by the addresses. */
enum unified { UNIFIED_H2D, UNIFIED_D2H, UNIFIED_BETWEEN, UNIFIED_UNKNOWN };

static enum unified unified_direction(CUdeviceptr to, CUdeviceptr from)
{
    if (!context_hull_has(to) && !context_hull_has(from)) {
        return UNIFIED_UNKNOWN;
    }
    if (!to || !from) return UNIFIED_UNKNOWN;
    enum copy_side to_side = copy_side(to), from_side = copy_side(from);
    bool to_host = to_side == SIDE_PAGEABLE || to_side == SIDE_PINNED;
    bool from_host = from_side == SIDE_PAGEABLE || from_side == SIDE_PINNED;
    if (to_side == SIDE_WINDOW && from_host) return UNIFIED_H2D;
    if (from_side == SIDE_WINDOW && to_host) return UNIFIED_D2H;
    if (to_side == SIDE_OTHER || from_side == SIDE_OTHER) return UNIFIED_UNKNOWN;
    return UNIFIED_BETWEEN;
}

/* Large copies between memory of the driver and pageable memory: hostmem.h wants them whatever their form. */
static enum unified large_direction(CUdeviceptr to, CUdeviceptr from)
{
    enum copy_side to_side = copy_side(to), from_side = copy_side(from);
    if (to_side == SIDE_DEVICE && from_side == SIDE_PAGEABLE) return UNIFIED_H2D;
    if (from_side == SIDE_DEVICE && to_side == SIDE_PAGEABLE) return UNIFIED_D2H;
    return UNIFIED_UNKNOWN;
}

#define COPY_UNIFIED_FORM(to, from, bytes, stream, async, forward_call)                                                \
    do {                                                                                                               \
        enum unified direction = unified_direction(to, from);                                                          \
        bool block = hostmem_owns((void *)(to)) || hostmem_owns((void *)(from));                                       \
        if (direction == UNIFIED_UNKNOWN && shim.options.host && (block || (bytes) >= HOSTMEM_COPY_MIN))               \
            direction = large_direction(to, from);                                                                     \
        switch (direction) {                                                                                           \
        case UNIFIED_H2D:                                                                                              \
            COPY_TO_HOST_FORM(copy_linear(COPY_H2D, to, (void *)(from), bytes, stream, async), forward_call);          \
        case UNIFIED_D2H:                                                                                              \
            COPY_TO_HOST_FORM(copy_linear(COPY_D2H, from, (void *)(to), bytes, stream, async), forward_call);          \
        case UNIFIED_BETWEEN:                                                                                          \
            COPY_BETWEEN_FORM(copy_from_to(to, from, bytes, stream, async), forward_call);                             \
        default:                                                                                                       \
            COPY_GATED_FORM(stream, to, from, bytes, forward_call);                                                    \
        }                                                                                                              \
    } while (0)

CUresult hook_cuMemcpy(DRIVER(cuMemcpy) forward, bool per_thread, CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    COPY_UNIFIED_FORM(dst, src, ByteCount, default_stream(per_thread), false, forward(dst, src, ByteCount));
}

CUresult hook_cuMemcpyAsync(DRIVER(cuMemcpyAsync) forward, bool per_thread, CUdeviceptr dst, CUdeviceptr src,
                            size_t ByteCount, CUstream hStream)
{
    COPY_UNIFIED_FORM(dst, src, ByteCount, named_stream(hStream, per_thread), true,
                      forward(dst, src, ByteCount, hStream));
}

/* A peer copy within one context is a device copy. */
static bool is_current(CUcontext handle)
{
    struct context *context = context_current();
    return context && context->handle == handle;
}

CUresult hook_cuMemcpyPeer(DRIVER(cuMemcpyPeer) forward, bool per_thread, CUdeviceptr dstDevice, CUcontext dstContext,
                           CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount)
{
    if (dstContext == srcContext && is_current(dstContext))
        COPY_BETWEEN_FORM(copy_from_to(dstDevice, srcDevice, ByteCount, default_stream(per_thread), false),
                          forward(dstDevice, dstContext, srcDevice, srcContext, ByteCount));
    COPY_GATED_FORM(default_stream(per_thread), dstDevice, srcDevice, ByteCount,
                    forward(dstDevice, dstContext, srcDevice, srcContext, ByteCount));
}

CUresult hook_cuMemcpyPeerAsync(DRIVER(cuMemcpyPeerAsync) forward, bool per_thread, CUdeviceptr dstDevice,
                                CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
                                CUstream hStream)
{
    if (dstContext == srcContext && is_current(dstContext))
        COPY_BETWEEN_FORM(copy_from_to(dstDevice, srcDevice, ByteCount, named_stream(hStream, per_thread), true),
                          forward(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream));
    COPY_GATED_FORM(named_stream(hStream, per_thread), dstDevice, srcDevice, ByteCount,
                    forward(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream));
}

CUresult hook_cuMemcpyDtoA_v2(DRIVER(cuMemcpyDtoA_v2) forward, bool per_thread, CUarray dstArray, size_t dstOffset,
                              CUdeviceptr srcDevice, size_t ByteCount)
{
    COPY_GATED_FORM(default_stream(per_thread), srcDevice, 0, ByteCount,
                    forward(dstArray, dstOffset, srcDevice, ByteCount));
}

CUresult hook_cuMemcpyAtoD_v2(DRIVER(cuMemcpyAtoD_v2) forward, bool per_thread, CUdeviceptr dstDevice, CUarray srcArray,
                              size_t srcOffset, size_t ByteCount)
{
    COPY_GATED_FORM(default_stream(per_thread), dstDevice, 0, ByteCount,
                    forward(dstDevice, srcArray, srcOffset, ByteCount));
}

/* A batch whose copies name windows on the host would block as they do one by one: it is taken apart and each copy goes
 * its own way, in order (a batch promises no order among its copies). */
static bool batch_on_host(const CUdeviceptr *dsts, const CUdeviceptr *srcs, size_t count)
{
    if (!dsts || !srcs || context_capturing() || !context_hull.high) return false;
    for (size_t i = 0; i < count; i++) {
        struct window *to = window_at(dsts[i]), *from = window_at(srcs[i]);
        if ((to && to->place == WINDOW_HOST) || (from && from->place == WINDOW_HOST)) return true;
    }
    return false;
}

static CUresult batch_apart(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes, size_t count,
                            size_t *failed, CUstream stream, bool per_thread)
{
    for (size_t i = 0; i < count; i++) {
        CUresult result = hook_cuMemcpyAsync(shim.real.cuMemcpyAsync, per_thread, dsts[i], srcs[i], sizes[i],
                                             named_stream(stream, per_thread));
        if (result == CUDA_SUCCESS) continue;
        if (failed) *failed = i;
        return result;
    }
    return CUDA_SUCCESS;
}

/* The driver must see large host blocks as the pageable memory that they are to the program. */
static void batch_native(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes, size_t count)
{
    for (size_t i = 0; dsts && srcs && sizes && i < count; i++) {
        hostmem_make_native((void *)dsts[i], sizes[i], context_capturing());
        hostmem_make_native((void *)srcs[i], sizes[i], context_capturing());
    }
}

static void batch_freeze(CUstream stream, const CUdeviceptr *dsts, const CUdeviceptr *srcs, size_t count)
{
    for (size_t i = 0; dsts && srcs && context_capturing() && i < count; i++)
        copy_freeze_captured(stream, dsts[i], srcs[i]);
}

/* Taken apart, a copy could not keep a promise that its source is read during the call, and the driver's checks would
 * be left out. */
static bool batch_simple(const size_t *sizes, const CUmemcpyAttributes *attrs, const size_t *indices, size_t count)
{
    if (!sizes || !attrs || !indices || !count) return false;
    for (size_t i = 0; i < count; i++)
        if (attrs[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL) return false;
    return true;
}

CUresult hook_cuMemcpyBatchAsync(DRIVER(cuMemcpyBatchAsync) forward, bool per_thread, CUdeviceptr *dsts,
                                 CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
                                 size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
    CUstream stream = named_stream(hStream, per_thread);
    batch_freeze(stream, dsts, srcs, count);
    if (stream != CU_STREAM_LEGACY && batch_simple(sizes, attrs, attrsIdxs, numAttrs) &&
        batch_on_host(dsts, srcs, count))
        return batch_apart(dsts, srcs, sizes, count, failIdx, hStream, per_thread);
    batch_native(dsts, srcs, sizes, count);
    struct lend_work work = {.launch = NULL};
    lend_gate_enter(&work);
    CUresult result = forward(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, hStream);
    gate_leave_submitted();
    return result;
}

CUresult hook_cuMemcpyBatchAsync_v2(DRIVER(cuMemcpyBatchAsync_v2) forward, bool per_thread, CUdeviceptr *dsts,
                                    CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
                                    size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
    CUstream stream = named_stream(hStream, per_thread);
    batch_freeze(stream, dsts, srcs, count);
    if (stream != CU_STREAM_LEGACY && batch_simple(sizes, attrs, attrsIdxs, numAttrs) &&
        batch_on_host(dsts, srcs, count))
        return batch_apart(dsts, srcs, sizes, count, NULL, hStream, per_thread);
    batch_native(dsts, srcs, sizes, count);
    struct lend_work work = {.launch = NULL};
    lend_gate_enter(&work);
    CUresult result = forward(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
    gate_leave_submitted();
    return result;
}

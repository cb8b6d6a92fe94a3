/* Waiting for what runs in a context, and asking whether anything does. */
#include <string.h>
#include "shim/context.h"
#include "shim/gate.h"
#include "shim/report.h"
#include "shim/shim.h"

static void advance(_Atomic uint64_t *done, uint64_t work)
{
    uint64_t before = atomic_load_explicit(done, memory_order_relaxed);
    while (before < work && !atomic_compare_exchange_weak(done, &before, work)) continue;
}

void context_waited_all(struct context *context, uint64_t work)
{
    advance(&context->done_all, work);
    advance(&context->done_blocking, work);
}

void context_waited_blocking(struct context *context, uint64_t work) { advance(&context->done_blocking, work); }

CUresult context_wait_all(struct context *context)
{
    uint64_t work = gate_work();
    if (atomic_load_explicit(&context->done_all, memory_order_acquire) == work) return CUDA_SUCCESS;
    CUresult result = shim.real.cuCtxSynchronize();
    context_note(result);
    if (result == CUDA_SUCCESS) context_waited_all(context, work);
    return result;
}

CUresult context_wait_blocking(struct context *context)
{
    uint64_t work = gate_work();
    if (atomic_load_explicit(&context->done_blocking, memory_order_acquire) == work) {
        STAT_ADD(waits_skipped, 1);
        return CUDA_SUCCESS;
    }
    CUresult result = shim.real.cuStreamSynchronize(CU_STREAM_LEGACY);
    context_note(result);
    if (result == CUDA_SUCCESS) context_waited_blocking(context, work);
    return result;
}

static int event_take(struct context *context)
{
    uint64_t busy = atomic_load_explicit(&context->events_busy, memory_order_relaxed);
    for (;;) {
        if (~busy == 0) return -1;
        int i = __builtin_ctzll(~busy);
        if (atomic_compare_exchange_weak(&context->events_busy, &busy, busy | 1ull << i)) {
            if (context->events[i] ||
                shim.real.cuEventCreate(&context->events[i], CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
                return i;
            atomic_fetch_and(&context->events_busy, ~(1ull << i));
            return -1;
        }
    }
}

static void event_give(struct context *context, int i) { atomic_fetch_and(&context->events_busy, ~(1ull << i)); }

bool context_stream_idle(struct context *context, CUstream stream)
{
    uint64_t work = gate_work();
    if (atomic_load_explicit(&context->done_all, memory_order_acquire) == work) return true;
    if (stream == CU_STREAM_LEGACY && atomic_load_explicit(&context->done_blocking, memory_order_acquire) == work)
        return true;
    int event = event_take(context);
    if (event < 0) return false;
    bool idle = shim.real.cuEventRecord(context->events[event], stream) == CUDA_SUCCESS &&
                shim.real.cuEventQuery(context->events[event]) == CUDA_SUCCESS;
    event_give(context, event);
    if (idle && stream == CU_STREAM_LEGACY) context_waited_blocking(context, work);
    return idle;
}

CUresult context_stream_wait(struct context *context, CUstream stream)
{
    uint64_t work = gate_work();
    if (stream == CU_STREAM_LEGACY) return context_wait_blocking(context);
    if (atomic_load_explicit(&context->done_all, memory_order_acquire) == work) return CUDA_SUCCESS;
    int event = event_take(context);
    if (event < 0) {
        /* All are in use by other threads: one of this call's own, since waiting for more than the stream could be for
         * ever. */
        CUevent own;
        CUresult made = shim.real.cuEventCreate(&own, CU_EVENT_DISABLE_TIMING);
        /* Not even that: everything is waited for. */
        if (made != CUDA_SUCCESS) return context_wait_all(context);
        made = shim.real.cuEventRecord(own, stream);
        if (made == CUDA_SUCCESS) made = shim.real.cuEventSynchronize(own);
        shim.real.cuEventDestroy_v2(own);
        return made;
    }
    CUresult result = shim.real.cuEventRecord(context->events[event], stream);
    bool recorded = result == CUDA_SUCCESS;
    if (recorded) result = shim.real.cuEventSynchronize(context->events[event]);
    event_give(context, event);
    return recorded ? result : context_wait_all(context);
}

void context_orphan(struct context *context, CUstream stream)
{
    CUevent event = NULL;
    bool kept = false, pushed;
    if (!context_capturing() && context_enter(context, &pushed)) {
        if (shim.real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
            shim.real.cuEventRecord(event, stream) == CUDA_SUCCESS) {
            lock_acquire(&context->lock);
            kept = context->orphan_count < CONTEXT_ORPHANS;
            if (kept) context->orphans[context->orphan_count++] = event;
            lock_release(&context->lock);
        }
        if (event && !kept) shim.real.cuEventDestroy_v2(event);
        context_leave(pushed);
    }
    if (!kept) atomic_store_explicit(&context->orphaned, gate_work() + 1, memory_order_release);
}

/* One thread at a time; another is told that something may run. */
static bool orphans_done(struct context *context)
{
    bool done = true;
    lock_acquire(&context->lock);
    int count = context->orphan_count;
    bool asked = context->orphans_asked;
    if (count) context->orphans_asked = true;
    lock_release(&context->lock);
    if (!count || asked) return !count;
    for (int i = 0; i < count && done; i++) /* others only add */
        done = shim.real.cuEventQuery(context->orphans[i]) == CUDA_SUCCESS;
    for (int i = 0; i < count && done; i++) shim.real.cuEventDestroy_v2(context->orphans[i]);
    lock_acquire(&context->lock);
    if (done) {
        context->orphan_count -= count;
        memmove(context->orphans, context->orphans + count, (size_t)context->orphan_count * sizeof *context->orphans);
    }
    context->orphans_asked = false;
    lock_release(&context->lock);
    return done;
}

bool context_quiet(struct context *context)
{
    uint64_t work = gate_work();
    if (context_capturing()) return false;
    if (atomic_load_explicit(&context->done_all, memory_order_acquire) == work) return true;
    if (atomic_load_explicit(&context->done_all, memory_order_acquire) < atomic_load(&context->orphaned)) return false;
    if (shim.real.cuStreamQuery(CU_STREAM_LEGACY) != CUDA_SUCCESS) return false;
    lock_acquire(&context->lock);
    size_t left = context->stream_count;
    lock_release(&context->lock);
    /* From the last on: a stream that is removed meanwhile has the last one put in its place. */
    while (left-- > 0) {
        lock_acquire(&context->lock);
        CUstream stream = left < context->stream_count ? context->streams[left] : NULL;
        lock_release(&context->lock);
        if (stream && shim.real.cuStreamQuery(stream) != CUDA_SUCCESS) return false;
    }
    if (!orphans_done(context)) return false;
    context_waited_all(context, work);
    return true;
}

static _Atomic bool unknown_streams;

void context_unknown_stream(void) { atomic_store(&unknown_streams, true); }

static void ask_quiet(struct context *context, void *answer)
{
    bool *quiet = answer, pushed;
    if (!*quiet || (context_known_idle(context) && !context_capturing())) return;
    *quiet = context_enter(context, &pushed);
    if (!*quiet) return;
    *quiet = context_quiet(context);
    context_leave(pushed);
}

bool contexts_quiet(void)
{
    bool quiet = !unknown_streams;
    if (quiet) context_for_each(ask_quiet, &quiet);
    return quiet && !context_capturing();
}

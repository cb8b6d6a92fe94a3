/* Waiting for what runs in a context, and asking whether anything does. */
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

bool context_quiet(struct context *context)
{
    uint64_t work = gate_work();
    if (context_capturing()) return false;
    if (atomic_load_explicit(&context->done_all, memory_order_acquire) == work) return true;
    if (atomic_load_explicit(&context->done_all, memory_order_acquire) < atomic_load(&context->orphans)) return false;
    if (shim.real.cuStreamQuery(CU_STREAM_LEGACY) != CUDA_SUCCESS) return false;
    for (size_t i = 0;; i++) {
        lock_acquire(&context->lock);
        CUstream stream = i < context->stream_count ? context->streams[i] : NULL;
        lock_release(&context->lock);
        if (!stream) break;
        if (shim.real.cuStreamQuery(stream) != CUDA_SUCCESS) return false;
    }
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

/* Events. */
#include "memory.h"

static CUevent free_events; /* structures are reused, never returned, so that a stale handle may still be looked at */

/* It ends with its context. */
bool event_valid(CUevent event)
{
    return event && event->magic == EVENT_MAGIC && context_valid(event->context) &&
           event->context->id == event->context_id;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    SIM_ENTER(cuEventCreate);
    if (!event || flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) {
        CUevent made = free_events;
        if (made)
            free_events = made->next;
        else
            made = malloc(sizeof *made);
        *made =
            (struct CUevent_st){.magic = EVENT_MAGIC, .context = context, .context_id = context->id, .flags = flags};
        *event = made;
    }
    sim_unlock();
    return result;
}

/* A queued record or wait holds what it needs of the event; the structure may be used anew only when nothing is. */
CUresult cuEventDestroy_v2(CUevent event)
{
    SIM_ENTER(cuEventDestroy_v2);
    sim_lock();
    CUresult result = event_valid(event) ? event->context->lost : CUDA_ERROR_INVALID_HANDLE;
    if (event_valid(event)) {
        event->magic = 0;
        if (!event->recorded.stream || event->recorded.stream->completed >= event->recorded.sequence) {
            event->next = free_events;
            free_events = event;
        }
    }
    sim_unlock();
    return result;
}

static CUresult recorded(CUevent event, CUstream handle, unsigned flags, bool per_thread)
{
    CUstream stream;
    if (flags & ~CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result && !event_valid(event)) result = CUDA_ERROR_INVALID_HANDLE;
    if (!result && event->context != stream->context) result = CUDA_ERROR_INVALID_HANDLE;
    if (!result && stream->capture) {
        result = capture_event_record(stream, event);
    } else if (!result) {
        result = capture_refuses_legacy(stream);
        if (!result) {
            event->capture = NULL;
            event->recorded = (struct dependency){stream, stream->submitted + 1};
            stream_submit(stream, &(struct work){.kind = WORK_EVENT, .event = {event}}, NULL);
        }
    }
    sim_unlock();
    return result;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    SIM_ENTER(cuEventRecord);
    return recorded(event, stream, 0, false);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    SIM_ENTER(cuEventRecord_ptsz);
    return recorded(event, stream, 0, true);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    SIM_ENTER(cuEventRecordWithFlags);
    return recorded(event, stream, flags, false);
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags)
{
    SIM_ENTER(cuEventRecordWithFlags_ptsz);
    return recorded(event, stream, flags, true);
}

static CUresult event_check(CUevent event)
{
    if (!event_valid(event)) return CUDA_ERROR_INVALID_HANDLE;
    return event->context->lost;
}

static bool event_done(CUevent event)
{
    return !event->recorded.stream || event->recorded.stream->completed >= event->recorded.sequence;
}

CUresult cuEventQuery(CUevent event)
{
    SIM_ENTER_ASK(cuEventQuery);
    sim_lock();
    CUresult result = event_check(event);
    if (!result) result = capture_refuses_event(event);
    if (!result && !event_done(event)) result = CUDA_ERROR_NOT_READY;
    sim_unlock();
    return result;
}

CUresult cuEventSynchronize(CUevent event)
{
    SIM_ENTER(cuEventSynchronize);
    sim_lock();
    CUresult result = event_check(event);
    if (!result) result = capture_refuses_event(event);
    if (!result) {
        struct dependency until = event->recorded;
        while (until.stream && until.stream->completed < until.sequence) sim_wait();
        result = event->context->lost;
    }
    sim_unlock();
    return result;
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end)
{
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = event_check(start);
    if (!result) result = event_check(end);
    if (!result && (capture_event_is_captured(start) || capture_event_is_captured(end)))
        result = CUDA_ERROR_CAPTURED_EVENT;
    if (!result && (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) result = CUDA_ERROR_INVALID_HANDLE;
    if (!result && (!start->recorded.stream || !end->recorded.stream)) result = CUDA_ERROR_INVALID_HANDLE;
    if (!result && (!event_done(start) || !event_done(end))) result = CUDA_ERROR_NOT_READY;
    if (!result) *milliseconds = (float)((double)(int64_t)(end->completed_ns - start->completed_ns) * 1e-6);
    sim_unlock();
    return result;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    SIM_ENTER(cuEventElapsedTime);
    return elapsed(milliseconds, start, end);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    SIM_ENTER(cuEventElapsedTime_v2);
    return elapsed(milliseconds, start, end);
}

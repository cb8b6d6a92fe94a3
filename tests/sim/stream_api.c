/* Streams as the program sees them. */
#include "memory.h"

static CUresult created(CUstream *stream, unsigned flags, int priority)
{
    CUcontext context;
    if (!stream || flags & ~CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result)
        *stream = stream_create(context, STREAM_CREATED, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    sim_unlock();
    return result;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    SIM_ENTER(cuStreamCreate);
    return created(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    SIM_ENTER(cuStreamCreateWithPriority);
    return created(stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    SIM_ENTER(cuStreamDestroy_v2);
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
    sim_lock();
    CUresult result = stream->magic == STREAM_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (!result) {
        result = stream->context->lost;
        stream_retire(stream);
    }
    sim_unlock();
    return result;
}

static CUresult queried(CUstream handle, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result) result = capture_refuses_wait(stream);
    if (!result) result = capture_refuses_legacy(stream);
    if (!result) result = capture_refuses_unsafe();
    if (!result && !stream_is_idle(stream)) result = CUDA_ERROR_NOT_READY;
    sim_unlock();
    return result;
}

static CUresult synchronized(CUstream handle, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result) result = capture_refuses_wait(stream);
    if (!result) result = capture_refuses_legacy(stream);
    if (!result) result = capture_refuses_unsafe();
    if (!result) result = stream_drain(stream);
    sim_unlock();
    return result;
}

/* Each with its twin for programs compiled for per-thread default streams. */
#define TWINS(symbol, parameters, call)                                                                                \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        enum { per_thread = false };                                                                                   \
        SIM_ENTER(symbol);                                                                                             \
        return call;                                                                                                   \
    }                                                                                                                  \
    CUresult symbol##_ptsz parameters                                                                                  \
    {                                                                                                                  \
        enum { per_thread = true };                                                                                    \
        SIM_ENTER(symbol##_ptsz);                                                                                      \
        return call;                                                                                                   \
    }

/* The one question that a host function may ask. */
CUresult cuStreamQuery(CUstream stream)
{
    SIM_ENTER_ASK(cuStreamQuery);
    return queried(stream, false);
}

CUresult cuStreamQuery_ptsz(CUstream stream)
{
    SIM_ENTER_ASK(cuStreamQuery_ptsz);
    return queried(stream, true);
}

TWINS(cuStreamSynchronize, (CUstream stream), synchronized(stream, per_thread))

enum question { ASK_PRIORITY, ASK_FLAGS, ASK_ID, ASK_CONTEXT, ASK_DEVICE };

static CUresult asked(CUstream handle, bool per_thread, enum question question, void *answer)
{
    CUstream stream;
    if (!answer) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result) switch (question) {
        case ASK_PRIORITY:
            *(int *)answer = stream->priority;
            break;
        case ASK_FLAGS:
            *(unsigned *)answer = stream->flags;
            break;
        case ASK_ID:
            *(unsigned long long *)answer = stream->id;
            break;
        case ASK_CONTEXT:
            *(CUcontext *)answer = stream->context;
            break;
        case ASK_DEVICE:
            *(CUdevice *)answer = stream->context->device;
            break;
        }
    sim_unlock();
    return result;
}

TWINS(cuStreamGetPriority, (CUstream stream, int *priority), asked(stream, per_thread, ASK_PRIORITY, priority))
TWINS(cuStreamGetFlags, (CUstream stream, unsigned *flags), asked(stream, per_thread, ASK_FLAGS, flags))
TWINS(cuStreamGetId, (CUstream stream, unsigned long long *id), asked(stream, per_thread, ASK_ID, id))
TWINS(cuStreamGetCtx, (CUstream stream, CUcontext *context), asked(stream, per_thread, ASK_CONTEXT, context))
TWINS(cuStreamGetDevice, (CUstream stream, CUdevice *device), asked(stream, per_thread, ASK_DEVICE, device))

static CUresult waited(CUstream handle, CUevent event, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result && !event_valid(event)) result = CUDA_ERROR_INVALID_HANDLE;
    if (!result && (stream->capture || capture_event_is_captured(event)))
        result = capture_event_wait(stream, event);
    else if (!result)
        result = capture_refuses_legacy(stream);
    if (!result && !stream->capture && event->recorded.stream)
        stream_submit(stream, &(struct work){.kind = WORK_EVENT_WAIT}, &event->recorded);
    sim_unlock();
    return result;
}

TWINS(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
      ((void)flags, waited(stream, event, per_thread)))

static CUresult accepted(CUstream handle, bool per_thread, struct work work)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result && work.kind == WORK_CALLBACK) {
        work.callback.stream = handle;
        result = capture_refuses_wait(stream); /* a callback has no node */
    }
    if (!result) result = stream_accept(stream, &work);
    sim_unlock();
    return result;
}

static CUresult host_function(CUstream stream, CUhostFn function, void *data, bool per_thread)
{
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    return accepted(stream, per_thread, (struct work){.kind = WORK_HOST, .host = {function, data}});
}

static CUresult callback(CUstream stream, CUstreamCallback function, void *data, unsigned flags, bool per_thread)
{
    if (!function || flags) return CUDA_ERROR_INVALID_VALUE;
    return accepted(stream, per_thread, (struct work){.kind = WORK_CALLBACK, .callback = {function, data, NULL}});
}

TWINS(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),
      host_function(stream, function, data, per_thread))
TWINS(cuStreamAddCallback, (CUstream stream, CUstreamCallback function, void *data, unsigned flags),
      callback(stream, function, data, flags, per_thread))

static CUresult value_operation(CUstream stream, CUdeviceptr address, uint64_t value, unsigned bytes, unsigned flags,
                                enum work_kind kind, bool per_thread)
{
    struct location location;
    if (address % bytes) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    location_of(address, &location);
    bool reachable = location.place != PLACE_PAGEABLE;
    sim_unlock();
    if (!reachable) return CUDA_ERROR_INVALID_VALUE;
    return accepted(stream, per_thread, (struct work){.kind = kind, .value = {address, value, bytes, flags}});
}

TWINS(cuStreamWriteValue32, (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),
      value_operation(stream, address, value, 4, flags, WORK_WRITE, per_thread))
TWINS(cuStreamWriteValue32_v2, (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),
      value_operation(stream, address, value, 4, flags, WORK_WRITE, per_thread))
TWINS(cuStreamWriteValue64, (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),
      value_operation(stream, address, value, 8, flags, WORK_WRITE, per_thread))
TWINS(cuStreamWriteValue64_v2, (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),
      value_operation(stream, address, value, 8, flags, WORK_WRITE, per_thread))
TWINS(cuStreamWaitValue32, (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),
      value_operation(stream, address, value, 4, flags, WORK_WAIT, per_thread))
TWINS(cuStreamWaitValue32_v2, (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),
      value_operation(stream, address, value, 4, flags, WORK_WAIT, per_thread))
TWINS(cuStreamWaitValue64, (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),
      value_operation(stream, address, value, 8, flags, WORK_WAIT, per_thread))
TWINS(cuStreamWaitValue64_v2, (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),
      value_operation(stream, address, value, 8, flags, WORK_WAIT, per_thread))

static CUresult batched(CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags,
                        bool per_thread)
{
    if (!count || count > 256 || !operations || flags) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && !result; i++) {
        CUstreamBatchMemOpParams *each = &operations[i];
        switch (each->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            result = value_operation(stream, each->waitValue.address, each->waitValue.value, 4, each->waitValue.flags,
                                     WORK_WAIT, per_thread);
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            result = value_operation(stream, each->waitValue.address, each->waitValue.value64, 8, each->waitValue.flags,
                                     WORK_WAIT, per_thread);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            result = value_operation(stream, each->writeValue.address, each->writeValue.value, 4,
                                     each->writeValue.flags, WORK_WRITE, per_thread);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            result = value_operation(stream, each->writeValue.address, each->writeValue.value64, 8,
                                     each->writeValue.flags, WORK_WRITE, per_thread);
            break;
        default:
            break;
        }
    }
    return result;
}

TWINS(cuStreamBatchMemOp, (CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags),
      batched(stream, count, operations, flags, per_thread))
TWINS(cuStreamBatchMemOp_v2, (CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags),
      batched(stream, count, operations, flags, per_thread))

static CUresult attached(CUstream stream, CUdeviceptr address, bool per_thread)
{
    struct location location;
    sim_lock();
    location_of(address, &location);
    CUstream resolved;
    CUresult result = stream_resolve(stream, per_thread, &resolved);
    sim_unlock();
    return result ? result : location.place == PLACE_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

TWINS(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags),
      ((void)bytes, (void)flags, attached(stream, address, per_thread)))

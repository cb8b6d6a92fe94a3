/* The machinery of streams: each has a queue and, once needed, a thread. */
#include "memory.h"
#include <signal.h>

CUstream stream_create(CUcontext context, enum stream_kind kind, unsigned flags, int priority)
{
    CUstream stream = calloc(1, sizeof *stream);
    stream->magic = STREAM_MAGIC;
    stream->kind = kind;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = sim.next_id++;
    pthread_cond_init(&stream->work, NULL);
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

static CUstream retired_streams; /* so that they are not lost to leak checkers */

void stream_unlink(CUstream stream)
{
    for (CUstream *link = &stream->context->streams; *link; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            stream->next = retired_streams;
            retired_streams = stream;
            return;
        }
}

/* What is queued in it still runs, and others still wait for it; then its thread ends. */
void stream_retire(CUstream stream)
{
    capture_forget(stream);
    stream->magic = 0;
    stream->destroyed = true;
    if (stream->has_worker)
        pthread_cond_signal(&stream->work);
    else if (!stream->head)
        stream_unlink(stream);
}

static bool dependency_met(const struct dependency *on) { return on->stream->completed >= on->sequence; }

static bool operation_ready(const struct operation *operation)
{
    for (unsigned i = 0; i < operation->dependency_count; i++)
        if (!dependency_met(&operation->dependencies[i])) return false;
    return true;
}

/* Threads that wait with a queued operation may be waiting for what has just been done. */
static void workers_wake(void)
{
    for (CUcontext context = sim.contexts; context; context = context->next)
        for (CUstream stream = context->streams; stream; stream = stream->next)
            if (stream->worker_waits && stream->head) pthread_cond_signal(&stream->work);
}

static void operation_done(CUstream stream, struct operation *operation, CUresult result)
{
    stream->head = operation->next;
    if (!stream->head) stream->tail = NULL;
    stream->completed = operation->sequence;
    if (result) context_lose(stream->context, result);
    if (operation->work.kind == WORK_EVENT) operation->work.event.event->completed_ns = time_now_ns();
    work_release(&operation->work);
    free(operation);
    workers_wake();
    sim_notify();
}

static void *stream_thread(void *argument)
{
    CUstream stream = argument;
    sim_lock();
    for (;;) {
        struct operation *operation = stream->head;
        if (!operation && stream->destroyed) break;
        if (!operation || operation->here || !operation_ready(operation)) {
            stream->worker_waits = true;
            if (stream->destroyed)
                sim_wait(); /* it may be in no list any more */
            else
                pthread_cond_wait(&stream->work, &sim.mutex);
            stream->worker_waits = false;
            continue;
        }
        CUresult result = CUDA_SUCCESS;
        if (!stream->context->lost) {
            sim_unlock();
            result = work_run(&operation->work, stream->context, false);
            sim_lock();
        }
        operation_done(stream, operation, result);
    }
    stream->has_worker = false;
    stream_unlink(stream);
    sim_unlock();
    return NULL;
}

static void worker_start(CUstream stream)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* the program's signals are for the program's threads */
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 20);
    stream->has_worker = !pthread_create(&thread, &attributes, stream_thread, stream);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool depends_on(CUstream stream, CUstream other)
{
    if (stream == other) return false;
    if (stream->kind == STREAM_LEGACY) return stream_is_blocking(other);
    return other->kind == STREAM_LEGACY && stream_is_blocking(stream);
}

static struct operation *operation_queue(CUstream stream, const struct work *work, const struct dependency *after)
{
    unsigned count = 1;
    for (CUstream other = stream->context->streams; other; other = other->next) count += depends_on(stream, other);
    struct operation *operation = calloc(1, sizeof *operation + count * sizeof(struct dependency));
    operation->work = *work;
    operation->sequence = ++stream->submitted;
    for (CUstream other = stream->context->streams; other; other = other->next)
        if (depends_on(stream, other) && other->completed < other->submitted)
            operation->dependencies[operation->dependency_count++] = (struct dependency){other, other->submitted};
    if (after && !dependency_met(after)) operation->dependencies[operation->dependency_count++] = *after;
    if (stream->tail)
        stream->tail->next = operation;
    else
        stream->head = operation;
    stream->tail = operation;
    return operation;
}

static bool is_marker(const struct work *work)
{
    return work->kind == WORK_EMPTY || work->kind == WORK_EVENT || work->kind == WORK_EVENT_WAIT;
}

void stream_submit(CUstream stream, const struct work *work, const struct dependency *after)
{
    struct operation *operation = operation_queue(stream, work, after);
    bool now = stream->head == operation && operation_ready(operation);
    if (now && work->kind == WORK_FREE) allocation_free(allocation_at(work->free.address));
    if (now && (is_marker(work) || work->kind == WORK_FREE)) {
        operation_done(stream, operation, CUDA_SUCCESS);
        return;
    }
    if (!stream->has_worker)
        worker_start(stream);
    else
        pthread_cond_signal(&stream->work);
}

CUresult stream_run_here(CUstream stream, const struct work *work)
{
    struct operation *operation = operation_queue(stream, work, NULL);
    operation->here = true;
    while (stream->head != operation || !operation_ready(operation)) sim_wait();
    CUresult result = stream->context->lost;
    if (!result) {
        sim_unlock();
        result = work_run(&operation->work, stream->context, false);
        sim_lock();
    }
    operation_done(stream, operation, result);
    return stream->context->lost;
}

bool stream_is_idle(CUstream stream)
{
    if (stream->completed < stream->submitted) return false;
    if (stream->kind == STREAM_LEGACY)
        for (CUstream other = stream->context->streams; other; other = other->next)
            if (stream_is_blocking(other) && other->completed < other->submitted) return false;
    return true;
}

CUresult stream_drain(CUstream stream)
{
    unsigned count = 1;
    for (CUstream other = stream->context->streams; other; other = other->next) count++;
    struct dependency *until = malloc(count * sizeof *until);
    until[0] = (struct dependency){stream, stream->submitted};
    count = 1;
    if (stream->kind == STREAM_LEGACY)
        for (CUstream other = stream->context->streams; other; other = other->next)
            if (other != stream && stream_is_blocking(other))
                until[count++] = (struct dependency){other, other->submitted};
    for (unsigned i = 0; i < count; i++)
        while (!dependency_met(&until[i])) sim_wait();
    free(until);
    return stream->context->lost;
}

CUresult stream_accept(CUstream stream, struct work *work)
{
    CUresult result = stream->capture ? capture_add(stream, work) : capture_refuses_legacy(stream);
    if (stream->capture) return result;
    if (result)
        work_release(work);
    else
        stream_submit(stream, work, NULL);
    return result;
}

/* ---- which stream a handle means ---- */
struct thread_stream {
    struct thread_stream *next;
    CUcontext context;
    uint64_t context_id;
    CUstream stream;
};
static pthread_key_t thread_streams;
static pthread_once_t thread_streams_once = PTHREAD_ONCE_INIT;

static void thread_ends(void *list)
{
    if (sim.forked) return;
    sim_lock();
    for (struct thread_stream *each = list, *next; each; each = next) {
        next = each->next;
        if (!each->stream->destroyed) stream_retire(each->stream);
        free(each);
    }
    sim_unlock();
}

static void thread_streams_key(void) { pthread_key_create(&thread_streams, thread_ends); }

static CUstream per_thread_stream(CUcontext context)
{
    pthread_once(&thread_streams_once, thread_streams_key);
    struct thread_stream *list = pthread_getspecific(thread_streams);
    for (struct thread_stream *each = list; each; each = each->next)
        if (each->context_id == context->id) return each->stream;
    struct thread_stream *added = calloc(1, sizeof *added);
    *added = (struct thread_stream){list, context, context->id, stream_create(context, STREAM_PER_THREAD, 0, 0)};
    pthread_setspecific(thread_streams, added);
    return added->stream;
}

CUresult stream_resolve(CUstream handle, bool per_thread, CUstream *stream)
{
    if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        CUcontext context;
        CUresult result = context_current(&context);
        if (result) return result;
        bool own = handle == CU_STREAM_PER_THREAD || (!handle && per_thread);
        *stream = own ? per_thread_stream(context) : context->legacy;
        return CUDA_SUCCESS;
    }
    if (handle->magic != STREAM_MAGIC) return CUDA_ERROR_INVALID_HANDLE;
    *stream = handle;
    return handle->context->lost;
}

/* Streams, what is queued in them, and events. */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "sim.h"

/* One end of a copy as the program named it. */
enum place { PLACE_PAGEABLE, PLACE_PINNED, PLACE_DEVICE, PLACE_MANAGED, PLACE_ARRAY };
struct copy_end {
    uint64_t address; /* first byte */
    enum place place;
    uint64_t registration; /* of a PINNED end: which registration it was when the copy was made; 0 otherwise */
    size_t pitch, slice;   /* bytes from row to row, from plane to plane */
};
struct copy {
    struct copy_end to, from;
    size_t width, height, depth; /* bytes, rows, planes */
    void *staging;               /* packed bytes of a pageable source, owned */
    CUcontext staged_in;
};
struct fill {
    uint64_t address;
    size_t pitch, width, height; /* width in elements */
    unsigned element_bytes, value;
    uint64_t registration;
};
struct launch {
    CUfunction function;
    unsigned grid[3], block[3], shared_bytes;
    void *arguments; /* packed, owned: kernel_arguments_copy() */
    bool cooperative;
};
enum work_kind {
    WORK_EMPTY,
    WORK_COPY,
    WORK_FILL,
    WORK_LAUNCH,
    WORK_HOST,
    WORK_CALLBACK,
    WORK_WRITE,
    WORK_WAIT,
    WORK_GRAPH,
    WORK_EVENT,
    WORK_EVENT_WAIT,
    WORK_FREE
};
struct work {
    enum work_kind kind;
    union {
        struct copy copy;
        struct fill fill;
        struct launch launch;
        struct {
            CUhostFn function;
            void *data;
        } host;
        struct {
            CUstreamCallback function;
            void *data;
            CUstream stream;
        } callback;
        struct {
            uint64_t address, value;
            unsigned bytes, flags;
        } value;
        struct {
            CUgraphExec exec;
        } graph;
        struct {
            CUevent event;
        } event;
        struct {
            uint64_t address;
        } free;
    };
};
/* Does it, without the lock; what it answers loses the context. `replayed`: as a node of a graph. */
CUresult work_run(const struct work *work, CUcontext context, bool replayed);
/* locked: a copy's registered end is no longer one */
bool copy_registration_gone(const struct work *work);
void work_release(struct work *work); /* what it owns */
CUresult work_copy(struct work *to, const struct work *from);

struct dependency {
    CUstream stream;
    uint64_t sequence;
};
struct operation {
    struct operation *next;
    uint64_t sequence;
    bool here; /* the submitting thread does it itself when its turn comes */
    struct work work;
    unsigned dependency_count;
    struct dependency dependencies[];
};

#define STREAM_MAGIC 0x53545230u
enum stream_kind { STREAM_LEGACY, STREAM_PER_THREAD, STREAM_CREATED };
struct capture;
struct CUstream_st { /* never freed: a destroyed one is only unlinked, so that what depends on it may still look */
    uint32_t magic;
    enum stream_kind kind;
    CUcontext context;
    unsigned flags;
    int priority;
    uint64_t id, submitted, completed;
    struct operation *head, *tail;
    bool has_worker, worker_waits, destroyed;
    pthread_cond_t work;
    struct capture *capture;
    struct CUstream_st *next; /* in the context */
};
static inline bool stream_is_blocking(CUstream stream) { return !(stream->flags & CU_STREAM_NON_BLOCKING); }

/* All locked. */
CUstream stream_create(CUcontext context, enum stream_kind kind, unsigned flags, int priority);
void stream_retire(CUstream stream);
void stream_unlink(CUstream stream);
/* The stream that a handle means: 0 and the two special ones need a current context. Answers INVALID_HANDLE, the
 * context's sticky error. */
CUresult stream_resolve(CUstream handle, bool per_thread, CUstream *stream);
/* Queues the work behind what the stream's kind says, and, if given, behind `after`. Takes over what the work owns. */
void stream_submit(CUstream stream, const struct work *work, const struct dependency *after);
/* The same, done by this thread when its turn comes (the lock is dropped meanwhile). */
CUresult stream_run_here(CUstream stream, const struct work *work);
bool stream_is_idle(CUstream stream);   /* as cuStreamQuery sees it */
CUresult stream_drain(CUstream stream); /* as cuStreamSynchronize waits; the lock is dropped meanwhile */

/* What every asynchronous call does with its work: a node if the stream is being captured, else submit.
 * Answers capture errors. Takes the work over in every case. */
CUresult stream_accept(CUstream stream, struct work *work);

#define EVENT_MAGIC 0x45564e30u
struct CUevent_st {
    uint32_t magic;
    CUcontext context;
    uint64_t context_id;
    unsigned flags;
    struct dependency recorded; /* stream NULL: never recorded */
    uint64_t completed_ns;
    struct capture *capture; /* recorded in a stream under capture */
    CUgraphNode node;
    uint64_t capture_id;
    struct CUevent_st *next;
};
bool event_valid(CUevent event);

/* ---- capture.c (locked) ---- */
/* May this thread make a call that waits or allocates now? While somebody captures, mostly not: the captures concerned
 * become invalid and the answer is STREAM_CAPTURE_UNSUPPORTED. */
CUresult capture_refuses_unsafe(void);
/* The legacy stream is about to be used: STREAM_CAPTURE_IMPLICIT if a blocking stream of its context is being captured.
 */
CUresult capture_refuses_legacy(CUstream stream);
/* A wait or query of this stream: STREAM_CAPTURE_UNSUPPORTED if it is being captured. */
CUresult capture_refuses_wait(CUstream stream);
CUresult capture_refuses_context(CUcontext context);
CUresult capture_add(CUstream stream, struct work *work);
CUresult capture_add_typed(CUstream stream, struct work *work, CUgraphNodeType type);
CUresult capture_event_record(CUstream stream, CUevent event);
CUresult capture_event_wait(CUstream stream, CUevent event);
bool capture_event_is_captured(CUevent event);
/* A wait or query of this event. */
CUresult capture_refuses_event(CUevent event);
void capture_forget(CUstream stream);

#endif

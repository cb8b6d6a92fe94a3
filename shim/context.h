/* What the shim knows of a CUDA context: its device's abilities, its window addresses, its streams, what was waited
 * for.
 *
 * Contexts are met at their first stream, allocation or copy and forgotten when the program destroys or resets them.
 * Entries are reused but never unmapped, so a stale pointer reads a dead context, not freed memory. Thread-safe. */
#ifndef SHIM_CONTEXT_H
#define SHIM_CONTEXT_H
#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "shim/gate.h"
#include "shim/lock.h"

struct window;
struct staging;

#define CONTEXT_MAX     64
#define CONTEXT_EVENTS  64
#define CONTEXT_PEERS   16
#define CONTEXT_ORPHANS 32
#define WINDOW_UNIT     ((size_t)2 << 20) /* device VMM granularity, facts.md */
#define CONTEXT_RESERVE ((size_t)16 << 30)
#define CONTEXT_UNITS   (CONTEXT_RESERVE / WINDOW_UNIT)

/* What moves and zero-copy need; found once per context. */
enum context_support {
    CONTEXT_NATIVE,    /* nothing of ours: the device cannot map or register host memory at its own address */
    CONTEXT_HOST_ONLY, /* no VMM: host-backed windows that never move */
    CONTEXT_MOVES,     /* the same address can have either backing */
};

struct context {
    _Atomic(CUcontext) handle; /* NULL: entry unused */
    CUdevice device;
    uint32_t generation; /* changes when the entry is reused */
    bool integrated, primary;
    _Atomic int setup; /* 0 not yet, 1 under way, 2 done */
    enum context_support support;

    /* Waits: the value of gate_work() up to which everything in blocking streams (or everything) is complete. */
    _Atomic uint64_t done_blocking, done_all;
    _Atomic uint64_t orphaned; /* gate_work() when a stream was destroyed whose work nobody can ask about any more */

    _Atomic int lost; /* the error that every call in it answers since a kernel failed; 0: alive */

    struct lock lock;      /* the fields below; never held across a driver call */
    uintptr_t base;        /* of the reservation; CONTEXT_RESERVE bytes */
    struct window **units; /* window of each 2 MiB of the reservation */
    size_t units_used, window_bytes;
    struct window *windows; /* all, newest first; dead ones stay in it */
    int pending;            /* slots freed in stream order and not collected yet */

    CUstream *streams; /* non-blocking streams alive: cuStreamQuery(legacy) does not see them */
    size_t stream_count, stream_capacity;

    CUevent orphans[CONTEXT_ORPHANS]; /* behind the work of destroyed streams */
    int orphan_count;
    bool orphans_asked; /* some thread is asking them */

    CUcontext peers[CONTEXT_PEERS]; /* contexts that may read this one's memory (cuCtxEnablePeerAccess) */
    CUdevice peer_devices[CONTEXT_PEERS];
    int peer_count;

    CUevent events[CONTEXT_EVENTS]; /* for "is this stream idle for my next operation?" */
    _Atomic uint64_t events_busy;   /* bit set: in use */

    bool kernel_tried;
    CUmodule module; /* the copy kernel, loaded while the context was idle; NULL: not available */
    CUfunction copy_kernel;

    struct staging *staging; /* staging.c */
    CUdeviceptr exemplar;    /* a small buffer of the driver's: asked when a window's buffer must answer as one */
};

/* The current context, known from now on. NULL: no current context, too many contexts, or not at work. */
struct context *context_current(void);
/* Its windows can be used: abilities asked, addresses reserved, probed. Driver calls on the first call of a context. */
bool context_ready(struct context *context);

/* "Is it ours?" for a device address: two comparisons for all contexts together, then the context. */
extern struct context_hull {
    _Atomic uintptr_t low, high;
} context_hull;
static inline bool context_hull_has(uintptr_t address)
{
    return address - atomic_load_explicit(&context_hull.low, memory_order_relaxed) <
           atomic_load_explicit(&context_hull.high, memory_order_relaxed) -
               atomic_load_explicit(&context_hull.low, memory_order_relaxed);
}
struct context *context_of_address(uintptr_t address);

/* Makes `context` current for the calls up to context_leave; false if that failed. Cheap when it is current already. */
bool context_enter(struct context *context, bool *pushed);
void context_leave(bool pushed);

/* Waits for everything in the context (as cuMemFree does) or for the legacy stream and blocking streams (as the legacy
 * cuMemcpy does); no driver call if nothing was submitted since the last such wait. The context is current. */
CUresult context_wait_all(struct context *context);
CUresult context_wait_blocking(struct context *context);
/* After a wait by the program itself that began when gate_work() was `work`. */
void context_waited_all(struct context *context, uint64_t work);
void context_waited_blocking(struct context *context, uint64_t work);

/* Nothing was submitted since a complete wait: no driver call. */
static inline bool context_known_idle(const struct context *context)
{
    return atomic_load_explicit(&context->done_all, memory_order_acquire) == gate_work();
}

/* Would an operation enqueued in `stream` now start at once? An event recorded there is asked (facts.md: cuStreamQuery
 * misses the legacy stream). Does not wait. False when it cannot be told. */
bool context_stream_idle(struct context *context, CUstream stream);
/* Waits for what is in the stream, and for what its next operation would wait for. */
CUresult context_stream_wait(struct context *context, CUstream stream);
/* Does the stream belong to this context? Natively a copy may be enqueued in a stream of another one; then nothing is
 * known of it. */
bool context_owns_stream(struct context *context, CUstream stream);
/* More than one context was ever met. */
bool contexts_several(void);
/* No known context has work: other contexts may read a window, too. As context_quiet. */
bool contexts_quiet(void);
/* No stream of the context has work. Asks, never waits; for moves, with the gate closed. */
bool context_quiet(struct context *context);

/* Remembers that the current context is lost if `result` is one of the errors that stay (a fault of a kernel). Inline:
 * one comparison. */
void context_note_lost(CUresult result);
static inline void context_note(CUresult result)
{
    if (__builtin_expect(result != CUDA_SUCCESS, 0)) context_note_lost(result);
}

void context_add_stream(struct context *context, CUstream stream);
/* There is a non-blocking stream that belongs to no known context: nobody can ask whether it is idle, so nothing moves
 * any more. */
void context_unknown_stream(void);
/* The context in whose list it was, or NULL. */
struct context *context_remove_stream(CUstream stream);
/* That stream will be destroyed: what still runs in it runs on. Inside the gate. */
void context_orphan(struct context *context, CUstream stream);

/* Changes whenever the driver may have given out addresses: what was host memory before may be asked about again. */
extern _Atomic uint32_t context_memory_epoch;
static inline void context_memory_changed(void)
{
    atomic_fetch_add_explicit(&context_memory_epoch, 1, memory_order_relaxed);
}

/* Captures under way in the process. While there are any, the shim makes no wait or query that could invalidate one. */
extern _Atomic int context_captures;
static inline bool context_capturing(void) { return atomic_load_explicit(&context_captures, memory_order_acquire) > 0; }
bool context_stream_capturing(CUstream stream);

/* A handle of a green context: shares its memory with others, so everything in it is left to the driver. */
void context_note_green(CUcontext handle);

/* Captures by the stream that began them; any end counts: cuStreamEndCapture, the stream's or its context's
 * destruction. */
void context_capture_began(CUstream stream, CUcontext context);
void context_capture_ended(CUstream stream);
void context_captures_end(CUcontext context);

/* Peers: device-backed windows must be mapped for them as cuMemAlloc memory would be. */
void context_peer_enabled(CUcontext owner, struct context *reader);
/* May kernels of `reader` touch the context's memory? */
bool context_read_by(const struct context *context, const struct context *reader);
void context_peer_disabled(CUcontext owner, struct context *reader);

/* The driver has dropped the context: forgets its windows and buffers without a driver call. */
void context_forget(CUcontext handle);
/* Before the driver drops it: gives back what the shim holds in it. */
void context_retire(CUcontext handle);
/* Is it the primary context of its device? */
bool context_is_primary(CUcontext handle);
/* All contexts of a device (primary context reset or released to zero). */
void context_for_each(void (*visit)(struct context *context, void *argument), void *argument);
#endif

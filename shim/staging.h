/* Pinned pieces that a pageable source is copied to when its copy must wait in a busy stream, so that the program may
 * reuse the source at once, as it natively may. A piece is reused when the stream has passed the copy.
 *
 * A pool belongs to one CUDA context, which must be current in every call but staging_cancel and staging_close; its
 * owner keeps the pointer, NULL before the first use. Thread-safe, except that staging_close is the last call. */
#ifndef SHIM_STAGING_H
#define SHIM_STAGING_H
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct staging;
struct stage {
    void *host;        /* GPU and CPU use the same address */
    size_t bytes;      /* of the piece */
    CUevent event;     /* recorded behind the copy that reads it */
    _Atomic int state; /* 0 free, 1 being filled, 2 in flight */
};

/* A free piece of at least `bytes` (at most STAGING_LARGEST). NULL: too large, or all are in flight (the driver then
 * also waits). Makes driver calls only to grow, or to ask whether pieces in flight are done. */
#define STAGING_LARGEST ((size_t)2 << 20)
struct stage *staging_take(struct staging **pool, size_t bytes);
/* The copy that reads the piece is enqueued in `stream`: it is free once the stream has passed. */
void staging_give(struct stage *stage, CUstream stream);
/* Nothing was enqueued. */
void staging_cancel(struct stage *stage);
/* Allocates the first pieces; call while the context is quiet. */
void staging_prepare(struct staging **pool);
/* The context is about to end, and takes the pinned memory and the events along. NULL is allowed. */
void staging_close(struct staging *pool);
#endif

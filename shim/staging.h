/* Small pinned pieces that a pageable source is copied to when its copy must wait in a busy stream, so that the program
 * may reuse the source at once, as it natively may. A piece is reused when the stream has passed the copy. Thread-safe.
 */
#ifndef SHIM_STAGING_H
#define SHIM_STAGING_H
#include "shim/context.h"

struct stage {
    void *host;        /* GPU and CPU use the same address */
    size_t bytes;      /* of the piece */
    CUevent event;     /* recorded behind the copy that reads it */
    _Atomic int state; /* 0 free, 1 being filled, 2 in flight */
};

/* A free piece of at least `bytes`. NULL: too large, or all are in flight (the driver then also waits). Makes driver
 * calls only to grow, or to ask whether pieces in flight are done. */
struct stage *staging_take(struct context *context, size_t bytes);
/* The copy that reads the piece is enqueued in `stream`: it is free once the stream has passed. */
void staging_give(struct stage *stage, CUstream stream);
/* Nothing was enqueued. */
void staging_cancel(struct stage *stage);
/* Allocates the first pieces; call while the context is quiet. */
void staging_prepare(struct context *context);
#endif

#include "shim/staging.h"
#include "shim/arena.h"
#include "shim/shim.h"

/* The driver gives out 64 KiB of pinned memory in some us, 1 MiB in more than one ms.
 * Natively some 1000 copies of up to 64 KiB, or about 2 MiB of larger ones, go into a busy stream before one waits. */
static const struct {
    size_t bytes;
    unsigned chunk, most; /* pieces made at once; pieces in all */
} staging_classes[] = {{4096, 16, 2048}, {64 << 10, 1, 256}, {1 << 20, 2, 4}, {STAGING_LARGEST, 1, 4}};
#define CLASSES    (sizeof staging_classes / sizeof *staging_classes)
#define CHUNKS_MAX 256

struct staging {
    struct {
        struct stage *chunks[CHUNKS_MAX];
        _Atomic unsigned count; /* pieces made */
        _Atomic unsigned next;  /* where to look first */
        _Atomic int growing;
    } classes[CLASSES];
};

static struct staging *staging_of(struct staging **pool)
{
    struct staging *staging = __atomic_load_n(pool, __ATOMIC_ACQUIRE);
    if (staging) return staging;
    struct staging *fresh = arena_calloc(sizeof *fresh);
    if (fresh && !__atomic_compare_exchange_n(pool, &staging, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        arena_free(fresh, sizeof *fresh);
        return staging;
    }
    return fresh;
}

/* One more chunk of pieces in one pinned allocation. */
static void grow(struct staging *staging, size_t class)
{
    unsigned chunk = staging_classes[class].chunk, count = staging->classes[class].count;
    size_t bytes = staging_classes[class].bytes;
    void *host = NULL;
    if (count >= staging_classes[class].most || count / chunk >= CHUNKS_MAX) return;
    if (atomic_exchange(&staging->classes[class].growing, 1)) return;
    struct stage *pieces = arena_calloc(chunk * sizeof *pieces);
    if (pieces && shim.real.cuMemHostAlloc(&host, chunk * bytes,
                                           CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS) {
        for (unsigned i = 0; i < chunk; i++) {
            pieces[i].host = (char *)host + i * bytes;
            pieces[i].bytes = bytes;
        }
        staging->classes[class].chunks[count / chunk] = pieces;
        atomic_store_explicit(&staging->classes[class].count, count + chunk, memory_order_release);
    } else if (pieces) {
        arena_free(pieces, chunk * sizeof *pieces);
    }
    atomic_store(&staging->classes[class].growing, 0);
}

static struct stage *take_one(struct staging *staging, size_t class)
{
    unsigned count = atomic_load_explicit(&staging->classes[class].count, memory_order_acquire);
    unsigned from = atomic_fetch_add_explicit(&staging->classes[class].next, 1, memory_order_relaxed);
    unsigned chunk = staging_classes[class].chunk;
    for (unsigned i = 0; i < count; i++) {
        unsigned at = (from + i) % count;
        struct stage *stage = &staging->classes[class].chunks[at / chunk][at % chunk];
        int state = 0;
        if (atomic_compare_exchange_strong(&stage->state, &state, 1)) return stage;
        if (state == 2 && atomic_compare_exchange_strong(&stage->state, &state, 1)) {
            if (shim.real.cuEventQuery(stage->event) == CUDA_SUCCESS) return stage; /* an error tells nothing */
            atomic_store(&stage->state, 2);
        }
        /* Pieces are used in turn: when the oldest ones are still in flight, more are better than asking all. */
        if (i >= 4 && count < staging_classes[class].most) break;
    }
    return NULL;
}

struct stage *staging_take(struct staging **pool, size_t bytes)
{
    struct staging *staging = staging_of(pool);
    size_t class = 0;
    while (class < CLASSES && staging_classes[class].bytes < bytes) class ++;
    if (!staging || class == CLASSES) return NULL;
    struct stage *stage = take_one(staging, class);
    if (stage) return stage;
    grow(staging, class);
    return take_one(staging, class);
}

void staging_give(struct stage *stage, CUstream stream)
{
    if ((stage->event || shim.real.cuEventCreate(&stage->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) &&
        shim.real.cuEventRecord(stage->event, stream) == CUDA_SUCCESS)
        atomic_store_explicit(&stage->state, 2, memory_order_release);
    /* Without an event nobody knows when it is free: it stays taken. */
}

void staging_cancel(struct stage *stage) { atomic_store_explicit(&stage->state, 0, memory_order_release); }

void staging_prepare(struct staging **pool)
{
    struct staging *staging = staging_of(pool);
    if (staging && !staging->classes[0].count) grow(staging, 0);
}

void staging_close(struct staging *pool)
{
    if (!pool) return;
    for (size_t class = 0; class < CLASSES; class ++)
        for (int i = 0; i < CHUNKS_MAX && pool->classes[class].chunks[i]; i++)
            arena_free(pool->classes[class].chunks[i], staging_classes[class].chunk * sizeof(struct stage));
    arena_free(pool, sizeof *pool);
}

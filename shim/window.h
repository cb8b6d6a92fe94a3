/* Address windows: memory whose backing can change behind a fixed address.
 *
 * A window is one or more 2 MiB units of a context's reservation. Its backing is device memory (cuMemCreate, cuMemMap)
 * or host pages (mmap over the reservation, cuMemHostRegister: the device address equals the host address; facts.md,
 * "The same address can change its backing"). It is cut into slots of 512 bytes; a buffer takes a run of slots. A
 * window belongs to one call site of one context.
 *
 * Slots are guarded by the context's lock, a site's list of windows by one lock of window.c inside it. `place` changes
 * only with the submission gate closed and the context quiet, so it is stable inside the gate. */
#ifndef SHIM_WINDOW_H
#define SHIM_WINDOW_H
#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "shim/context.h"
#include "shim/site.h"

#define WINDOW_SLOT       ((size_t)512)
#define WINDOW_SLOTS      (WINDOW_UNIT / WINDOW_SLOT)
#define WINDOW_HOST_FIRST ((size_t)64 << 10) /* a site's first host region; its next windows grow fourfold */

enum window_place { WINDOW_DEVICE, WINDOW_HOST, WINDOW_BARE /* nothing: about to be freed */, WINDOW_DEAD };

struct window {
    struct context *context;
    struct site *site;
    struct window *next;         /* of the context */
    struct window *next_of_site; /* of the site */
    uintptr_t base;
    size_t bytes;  /* multiple of WINDOW_UNIT */
    size_t usable; /* slots are given out below this; host registration covers exactly it while on the host */
    size_t high;   /* no live slot at or above this offset */
    _Atomic int place;
    _Atomic bool frozen; /* named by a graph or texture: its backing must not change any more */
    bool linked;         /* in the context's list, where it stays */
    bool lendable;       /* a large buffer that pages may be lent to (lend.h); its memory does not count as windows' */
    bool reusable;       /* dead, its addresses free for a window of the same size */
    bool moving;         /* under the context's lock: no slot is given out */
    bool has_device;     /* `memory` is held, also while the window is on the host */
    CUmemGenericAllocationHandle memory;

    size_t sole_bytes;    /* a large window: one buffer of this size at base, no slots; 0 otherwise */
    uint32_t live;        /* buffers */
    size_t live_bytes;    /* of them */
    uint32_t search_from; /* first slot that may be free */
    uint64_t taken[WINDOW_SLOTS / 64];
    uint16_t first[WINDOW_SLOTS];    /* of a taken slot: the first slot of its buffer */
    uint32_t bytes_of[WINDOW_SLOTS]; /* at a buffer's first slot: its size; 0 once it was freed in stream order */
    uint64_t sync_memops[WINDOW_SLOTS / 64]; /* at a buffer's first slot: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */

    _Atomic(struct loan *) loan; /* lend_loan.c; NULL: none */
    uintptr_t lend_host;         /* lend.c: the block that was uploaded last, how often in a row before */
    uint64_t lend_serial;
    uint32_t lend_repeats;
    struct pending *pending; /* slots freed in stream order, not yet reusable */
    void *policy;            /* placement.c */
};

/* The live window at an address, NULL if there is none. Lock-free. */
struct window *window_at(uintptr_t address);

/* The buffer of a window that contains the address: start and size; false in a gap. Lock-free for a live buffer. */
bool window_buffer(const struct window *window, uintptr_t address, uintptr_t *start, size_t *bytes);

/* Is [address, address + bytes) inside one live buffer of the window? */
bool window_covers(const struct window *window, uintptr_t address, size_t bytes);

/* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the buffer at `start`: memsets and device copies wait for themselves. */
bool window_sync_memops(const struct window *window, uintptr_t start);
void window_set_sync_memops(struct window *window, uintptr_t start, bool on);

/* Takes `bytes` from a window of the site, making one (at `place`) if need be. 0: no window to be had, allocate
 * natively. The context is current and ready; makes driver calls only for a new window. */
uintptr_t window_alloc(struct context *context, struct site *site, size_t bytes, enum window_place place);

/* A window of its own for one large buffer. */
uintptr_t window_alloc_sole(struct context *context, struct site *site, size_t bytes, enum window_place place);

/* The same on the device, for lending: not counted in option window_limit. */
uintptr_t window_alloc_lendable(struct context *context, struct site *site, size_t bytes);

/* Gives the buffer at `start` back. The GPU is done with it. */
void window_free(struct window *window, uintptr_t start);
/* Gives it back once `stream` has come this far. False: could not be arranged (nothing done). */
bool window_free_in_stream(struct window *window, uintptr_t start, CUstream stream);

/* Moves: the gate is closed, the context quiet and current. A failed move leaves the window where it was. */
bool window_to_host(struct window *window);
bool window_to_device(struct window *window);
/* What such a move leaves behind, for moves made elsewhere (lend_loan.c), too: a dead window stays dead. */
void window_moved(struct window *window, enum window_place place, size_t usable);

/* How the windows of a context end. */
enum window_end {
    WINDOW_END_QUIET, /* the context is current and quiet: everything is given back */
    WINDOW_END_BUSY,  /* work runs in it and the driver will end it: everything is left to the driver */
    WINDOW_END_LOST   /* the driver has reset it: registrations are gone and their addresses may be another's; device
                         memory that was mapped   would stay and is given back */
};
void window_retire_all(struct context *context, enum window_end end);

/* Lets a device read (or no longer read) the context's device-backed windows. */
void window_set_peer(struct context *context, CUdevice device, bool allowed);

/* Makes and moves one throw-away window both ways. */
bool window_probe(struct context *context);
#endif

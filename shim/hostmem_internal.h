/* What the files of hostmem share. Nobody else includes this.
 *
 * One lock, hostmem.lock, guards every field of every block, piece, cache list and context entry, unless said
 * otherwise. It is never held across a driver call, and not across a system call that frees memory. A piece that is
 * being registered or unregistered is PIECE_BUSY meanwhile and its block's `changing` counts it; who needs it waits on
 * hostmem.changed. */
#ifndef SHIM_HOSTMEM_INTERNAL_H
#define SHIM_HOSTMEM_INTERNAL_H
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>
#include "shim/host_owner.h"
#include "shim/hostmem.h"
#include "shim/staging.h"
#include "shim/system.h"

#define HOST_UNIT           ((size_t)2 << 20) /* a huge page; blocks start at a multiple of it, plus their colour */
#define HOST_COLOUR_LARGEST ((size_t)64 << 10)
#define HOST_PIECES_MAX     1024
#define HOST_DROPS_MAX      3 /* then the block stays unregistered: pinning again and again costs more than it saves */

enum piece_state { PIECE_NONE, PIECE_BUSY, PIECE_REGISTERED };

/* A part of a block that is registered as one. */
struct piece {
    uint8_t state;
    uint8_t refused;   /* the driver said no: not asked again for this block */
    size_t bytes;      /* registered length */
    size_t evidence;   /* bytes copied from or to it unregistered */
    CUcontext context; /* through which it was registered */
};

struct block {
    uintptr_t base;          /* multiple of HOST_UNIT */
    uintptr_t start;         /* what the program has */
    size_t units;            /* address space */
    size_t mapped;           /* bytes from base, whole pages */
    uint32_t users;          /* copies under way on registered pieces */
    uint32_t natives;        /* native copies under way: no piece is registered meanwhile */
    uint32_t changing;       /* pieces that are PIECE_BUSY */
    bool cached;             /* freed by the program, kept for the next allocation */
    bool plain;              /* cached with nothing registered */
    bool native;             /* never registered again (captured, or forms that cannot be split) */
    bool altered;            /* the program changed protection or mapping of a part: not reused */
    bool lent;               /* see hostmem_lend */
    bool patched;            /* its pages lie in several mappings */
    uint32_t readers;        /* copies under way, of whatever kind */
    bool torn;               /* the program moved a part away: its addresses are not ours to map again */
    uint8_t drops;           /* registrations dropped for copies that cannot be split; see hostmem_make_native */
    uint32_t program_ranges; /* registrations by the program that touch it */
    uint32_t piece_count;
    size_t piece_bytes; /* of all but the last, which may be up to half as long again */
    struct piece *pieces;
    size_t registered;             /* bytes */
    struct host_owner owner;       /* for the report */
    uint64_t serial;               /* of the allocation, see hostmem_serial */
    struct block *newer, *older;   /* all cached blocks by age */
    struct block *next, *previous; /* cached blocks of one size class */
};

struct host_options {
    size_t min_bytes; /* SIZE_MAX: no blocks of ours */
    bool on;
};

extern struct hostmem {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic uintptr_t base; /* of the reserved range; 0: none yet */
    _Atomic size_t bytes;
    _Atomic bool driver_seen;
    _Atomic bool ended;        /* after the exit report: no driver call but the program's own copies */
    _Atomic bool child;        /* a forked child: nothing is registered */
    _Atomic int lent;          /* blocks */
    _Atomic bool register_off; /* this driver cannot, or will not any more */
    _Atomic unsigned blocks;   /* that exist, cached ones included */
    bool range_failed;
    _Atomic pthread_t forking;
    _Atomic bool fork_locked;
    size_t page;
    size_t registered;             /* bytes, all blocks; being registered included */
    size_t kept;                   /* bytes resident in cached blocks, as far as known */
    struct block *newest, *oldest; /* cached */
} hostmem;

/* The lock; re-entered by the thread that forks (a program's own fork handlers may allocate). */
void hostmem_lock(void);
void hostmem_unlock(void);
/* Waits on hostmem.changed; the lock is held. */
void hostmem_wait(void);
static inline size_t page_up(size_t bytes) { return (bytes + hostmem.page - 1) & ~(hostmem.page - 1); }
/* A driver call may be made for our own ends: not after exit, not in a child (also one made by clone). */
bool hostmem_driver_usable(void);

/* --- hostmem_range.c: addresses ------------------------------------------------------------------------------------
 */
/* Reserves the range at the first call; false: no such addresses here (ulimit -v, or no room). Lock held. */
bool range_ready(void);
/* A run of units whose first address is a multiple of `alignment`; 0: none left. Lock held. The run is PROT_NONE. */
uintptr_t range_take(size_t units, size_t alignment);
/* Exactly these units, if free: for growth in place. Lock held. */
bool range_take_at(uintptr_t address, size_t units);
/* Lock held; the run is PROT_NONE again. */
void range_give(uintptr_t address, size_t units);
/* The block that has this address in one of its units, or NULL. Lock held. */
struct block *range_block(uintptr_t address);
void range_set_block(uintptr_t address, size_t units, struct block *block);
/* Maps fresh zero pages, or makes addresses inaccessible and gives their memory back. No lock needed. */
bool range_map(uintptr_t address, size_t bytes);
bool range_unmap(uintptr_t address, size_t bytes);

/* --- hostmem_blocks.c: blocks as malloc sees them; see hostmem_alloc.h ---------------------------------------------
 */
/* The block in which [address, address + bytes) lies wholly and which the program holds, or NULL. Lock held. */
struct block *block_containing(uintptr_t address, size_t bytes);
/* Unmaps a block that is in no list and has no piece registered, and forgets it. Lock not held. */
void block_destroy(struct block *block);

/* --- hostmem_lend.c -------------------------------------------------------------------------------------------------
 */
/* Ends the loans of all blocks that the range touches. Lock not held. Inline: one comparison when nothing is lent. */
void recall_range(uintptr_t address, size_t bytes, bool freed);
static inline void recall(const void *address, size_t bytes, bool freed)
{
    if (__builtin_expect(atomic_load_explicit(&hostmem.lent, memory_order_acquire) != 0, 0))
        recall_range((uintptr_t)address, bytes, freed);
}

/* --- hostmem_cache.c ------------------------------------------------------------------------------------------------
 */
/* A cached block for `bytes` at this alignment, taken out, or NULL. Lock held. */
struct block *cache_take(size_t bytes, size_t alignment);
/* Keeps a freed block, or returns false: destroy it. Blocks that had to make room are linked by `next` in front of
 * *victims: destroy them. Lock held. */
bool cache_keep(struct block *block, struct block **victims);
/* Takes out the oldest cached block that is idle; NULL: none. Lock held. */
struct block *cache_take_oldest(void);
/* Gives cached blocks back, oldest first, until at least `bytes` are given back or none is left; returns the bytes.
 * Lock not held. May wait for the GPU (unregistering does). */
size_t cache_trim(size_t bytes);
/* Trims what the budget no longer allows, if the GPU is idle. Lock not held. */
void cache_trim_to_budget(void);

/* --- hostmem_register.c ---------------------------------------------------------------------------------------------
 */
/* Divides a block into pieces if that was not done. False: out of memory. Lock held. */
bool pieces_ready(struct block *block);
uint32_t piece_index(const struct block *block, uintptr_t address);
uintptr_t piece_start(const struct block *block, uint32_t index);
uintptr_t piece_end(const struct block *block, uint32_t index); /* as it would be registered now */
/* Does any part of the range lie in a piece that is registered or about to be? Lock held. */
bool pieces_any(struct block *block, uintptr_t address, size_t bytes);
/* Ends with the piece registered (true) or not (false). `earned`: a registration that is not there may be made;
 * `may_wait`: cached blocks may be unregistered for it. Lock held, released while the driver works. */
bool piece_register(struct block *block, uint32_t index, bool earned, bool may_wait, CUcontext context);
/* Drops the registration of all pieces that the range touches; waits for copies under way. Where no driver call may be
 * made (after exit, inside a host function) they stay registered. Lock held, released meanwhile. */
void pieces_drop(struct block *block, uintptr_t address, size_t bytes);
/* Forgets registrations without a driver call (a child, a reset context). Lock held. */
void pieces_forget(struct block *block);
void pieces_free(struct block *block);
/* Calls `visit` for each block, cached or not, lock held. */
void blocks_for_each(void (*visit)(struct block *block, void *argument), void *argument);
/* ns that registering one byte took lately (0: not known yet). */
double register_ns_per_byte(void);

/* --- hostmem_quiet.c ------------------------------------------------------------------------------------------------
 */
/* No context of the process has work on its GPU. Asks, never waits; false when it cannot be told. */
bool gpu_is_quiet(void);

/* --- hostmem_budget.c -----------------------------------------------------------------------------------------------
 */
/* Bytes that may be registered or kept in all, as of the last refresh. Any thread. */
size_t budget_bytes(void);
/* Re-reads the machine, at most once in 100 ms. Lock not held. */
void budget_refresh(void);
/* Memory that the machine and the cgroup could still give, bytes, and the CPUs that this process may use (affinity,
 * cgroup quota). */
size_t budget_available(void);
unsigned budget_cpus(void);
/* THP: do fresh anonymous mappings get huge pages (always), may they (madvise), or not (never)? */
enum thp_mode { THP_NEVER, THP_MADVISE, THP_ALWAYS };
enum thp_mode budget_thp(void);

/* --- hostmem_context.c ----------------------------------------------------------------------------------------------
 */
#define HOST_LANES      4
#define HOST_LANE_SLOTS 16
struct lane;
struct host_context {
    CUcontext handle; /* NULL: free entry */
    CUevent events[32];
    unsigned event_count; /* in the pool, not lent out */
    struct lane *lanes[HOST_LANES];
    struct staging *staging; /* staging.c */
    size_t staged_wish;      /* bytes that could have been staged before the first lane was made */
};
/* The entry of the context that `stream` belongs to (the current one for the special streams); NULL: none. Lock not
 * held. */
struct host_context *host_context_of(CUstream stream);
/* An event without timing of that context; NULL: none to be had. */
CUevent host_event_take(struct host_context *context);
void host_event_give(struct host_context *context, CUevent event);
/* Would an operation enqueued in the stream now start at once? Asks, never waits. */
bool host_stream_idle(struct host_context *context, CUstream stream);
/* Makes a context current around a call; false: not possible. */
bool host_context_enter(CUcontext context);
void host_context_leave(void);
/* Memory of ours, huge-page aligned, registered in the current context; NULL: refused. */
void *pinned_take(size_t bytes);
void pinned_give(void *memory, size_t bytes, bool driver_calls);

/* --- hostmem_copy.c, hostmem_rows.c: copies
 * --------------------------------------------------------------------------- */
/* Enqueues a part of the request with the driver's Async entry points in the request's stream. 1D when rows and slices
 * are 1. */
CUresult copy_enqueue(const struct copy_request *request);
bool copy_is_flat(const struct copy_request *request);
size_t copy_bytes(const struct copy_request *request);
/* Bytes from the first to the last one touched on the host. */
size_t copy_host_extent(const struct copy_request *request);
/* Does the device side lie in memory that the driver knows? A copy that would natively fail as a whole must not be
 * begun. */
bool copy_device_valid(const struct copy_request *request);
/* The calls below are made with the request's bytes, none of them registered. */
CUresult copy_native(const struct copy_request *request);

/* --- hostmem_stage.c: pageable copies by several threads
 * -------------------------------------------------------------- */
#define HOST_STAGE_MIN ((size_t)1 << 20)
/* True: done, *result says how. False: nothing was done. The host side is not registered. *cold: slots or threads had
 * to be made first. */
bool stage_copy(struct host_context *context, const struct copy_request *request, CUresult *result, bool *cold);
/* The same, or the driver's pageable copy if that is faster, or staging is not possible. `idle`: the stream was when it
 * was asked. */
CUresult stage_or_native(struct host_context *context, const struct copy_request *request, bool idle);
void lane_close(struct lane *lane, bool driver_calls);

/* --- hostmem_pool.c: the threads, which only ever copy memory
 * --------------------------------------------------------- */
enum chunk_state { CHUNK_IDLE, CHUNK_QUEUED, CHUNK_DONE, CHUNK_FAULT };
struct chunk {
    char *program; /* the program's memory */
    size_t pitch;  /* from row to row there; rows are dense in the slot */
    char *slot;
    size_t width, rows;
    bool to_slot; /* reads the program's memory; else writes it */
    bool checked; /* plain anonymous memory: no check for faults needed */
    _Atomic int state;
    struct chunk *next;
};
/* Threads that a copy may use now: 0, the driver's way. Re-reads affinity and quota now and then. */
unsigned pool_threads(void);
/* Starts threads up to `threads`; *cold is set if any had to be. False: none could be started. */
bool pool_start(unsigned threads, bool *cold);
void pool_push(struct chunk *chunk);
/* Waits until the chunk is CHUNK_DONE or CHUNK_FAULT and returns which. */
int pool_wait(struct chunk *chunk);
/* Ends all threads; chunks in the queue stay there. Then no thread of ours exists. */
void pool_stop(void);
/* Threads again if there is work. */
void pool_resume(void);
void pool_after_fork_child(void);
/* Readable (or writable) anonymous memory throughout, as the kernel says. False: not, or it cannot be told. */
bool memory_is_plain(const void *address, size_t bytes, bool write);
/* Was the page at this address never touched (anonymous memory)? A guess from one page. */
bool memory_is_fresh(const void *address);
/* Copies one chunk; false: the program's memory faulted. */
bool chunk_copy(struct chunk *chunk);

/* --- hostmem_rate.c: what is faster here
 * ------------------------------------------------------------------------------ */
enum rate_way { RATE_NATIVE, RATE_STAGED, RATE_WAYS };
/* This copy goes the driver's way whatever would be found out about it: no need to ask. */
bool rate_passes(enum copy_direction direction, size_t bytes);
/* Which way for a copy of this direction and size? `fresh`: into memory that was never touched. */
enum rate_way rate_choose(enum copy_direction direction, size_t bytes, bool fresh);
/* A copy took so long with the stream idle at its start. */
void rate_observe(enum copy_direction direction, size_t bytes, bool fresh, enum rate_way way, uint64_t ns);
/* ns that the driver's pageable copy takes, as far as known; for decisions and the estimate of time saved. */
double rate_native_ns(enum copy_direction direction, size_t bytes);
void rate_saved(enum copy_direction direction, size_t bytes, uint64_t ns);
#endif

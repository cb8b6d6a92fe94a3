/* Large blocks as malloc sees them: take, give, resize. */
#include <string.h>
#include <sys/mman.h>
#include "shim/arena.h"
#include "shim/hostmem_alloc.h"
#include "shim/hostmem_internal.h"
#include "shim/lend_watch.h"
#include "shim/log.h"
#include "shim/shim.h"

#define BLOCK_LARGEST ((size_t)1 << 39)
/* Up to here a CUDA program's block asks for huge pages where the system leaves that to programs. Larger ones are too
 * often sparse. */
#define HUGE_LARGEST ((size_t)1 << 30)

size_t hostmem_min_bytes(void)
{
    bool on = shim.options.host && shim.options.mode != MODE_OFF && shim.options.mode != MODE_OBSERVE;
    return on ? shim.options.host_min : SIZE_MAX;
}

static size_t units_of(size_t bytes) { return (bytes + HOST_UNIT - 1) / HOST_UNIT; }

/* Pages move between a block and a device buffer fast only where both are aligned alike: no colour for what may be
 * lent. */
static bool may_be_lent(size_t bytes)
{
    return bytes >= shim.options.lend_min && shim.options.lend == LEND_AUTO && shim.options.mode == MODE_AUTO &&
           watch_possible();
}

/* Starts differ by pages, so that huge pages walked together do not meet in the same sets of the second-level cache.
 * But four blocks in a row start at the same place of a page, as libc's do: streams that cross pages together are
 * fetched ahead better, and copies between them go faster (measured: up to 10 %). Many more would not fit into the ways
 * of the first-level cache: the next four start elsewhere (18 arrays walked together: 2.6 times as fast). */
#define COLOUR_PAGE  ((size_t)4096)
#define COLOUR_PAGES 16
#define COLOUR_GROUP 4
#define COLOUR_SHIFT ((size_t)512)
static size_t colour_of(unsigned blocks, size_t alignment)
{
    size_t pages = blocks % COLOUR_PAGES * COLOUR_PAGE;
    size_t shift = blocks / COLOUR_GROUP * COLOUR_SHIFT % COLOUR_PAGE;
    return alignment >= HOST_UNIT ? 0 : (pages + shift) & ~(alignment - 1);
}
_Static_assert(COLOUR_PAGES *COLOUR_PAGE <= HOST_COLOUR_LARGEST, "what the cache allows for");

static void advise_huge(uintptr_t address, size_t bytes)
{
    if (bytes <= HUGE_LARGEST && atomic_load_explicit(&hostmem.driver_seen, memory_order_relaxed) &&
        budget_thp() == THP_MADVISE)
        system_madvise((void *)address, bytes, MADV_HUGEPAGE);
}

/* Maps a run of its own for the block; an allocation that would fail empties the cache first. */
static bool map_or_trim(uintptr_t base, size_t bytes)
{
    if (range_map(base, bytes)) return true;
    return cache_trim(SIZE_MAX) > 0 && range_map(base, bytes);
}

static void give_run(uintptr_t base, size_t units)
{
    hostmem_lock();
    range_give(base, units);
    hostmem_unlock();
}

static struct block *block_create(size_t bytes, size_t alignment)
{
    struct block *block = arena_calloc(sizeof *block);
    if (!block) return NULL;
    size_t colour =
        may_be_lent(bytes) ? 0 : colour_of(atomic_load_explicit(&hostmem.blocks, memory_order_relaxed), alignment);
    block->mapped = page_up(colour + bytes);
    block->units = units_of(block->mapped);
    hostmem_lock();
    block->base = range_take(block->units, alignment);
    hostmem_unlock();
    if (block->base && !map_or_trim(block->base, block->mapped)) {
        give_run(block->base, block->units);
        block->base = 0;
    }
    if (!block->base) {
        arena_free(block, sizeof *block);
        return NULL;
    }
    advise_huge(block->base, block->mapped);
    block->start = block->base + colour;
    atomic_fetch_add_explicit(&hostmem.blocks, 1, memory_order_relaxed);
    hostmem_lock();
    range_set_block(block->base, block->units, block);
    hostmem_unlock();
    return block;
}

/* Memory of a block that was used before, as calloc gives it. What is not registered and large goes back to the system
 * instead of becoming resident. */
static void block_zero(struct block *block, size_t bytes)
{
    hostmem_lock();
    bool registered = block->registered != 0;
    hostmem_unlock();
    if (registered || block->mapped <= ((size_t)32 << 20) || !block->base)
        memset((void *)block->start, 0, bytes);
    else if (system_madvise((void *)block->base, block->mapped, MADV_DONTNEED) != 0)
        memset((void *)block->start, 0, bytes);
}

/* The caller of malloc has it from now on. Lock not held. */
static void block_owned(struct block *block, size_t bytes)
{
    struct host_owner owner = host_owner_count(bytes);
    static uint64_t serial; /* the lock guards it */
    hostmem_lock();
    block->owner = owner;
    block->serial = ++serial;
    hostmem_unlock();
}

void *hostmem_block_take(size_t bytes, size_t alignment, bool zeroed)
{
    if (bytes > BLOCK_LARGEST || alignment > BLOCK_LARGEST) return NULL;
    hostmem_lock();
    struct block *block = range_ready() ? cache_take(bytes, alignment) : NULL;
    bool ready = atomic_load_explicit(&hostmem.base, memory_order_relaxed) != 0;
    hostmem_unlock();
    if (!ready) return NULL;
    if (block) {
        if (zeroed) block_zero(block, bytes);
    } else {
        block = block_create(bytes, alignment);
    }
    if (!block) return NULL;
    block_owned(block, bytes);
    STAT_ADD(host_blocks, 1);
    return (void *)block->start;
}

static struct block *block_at(const void *address)
{
    struct block *block = range_block((uintptr_t)address);
    return block && !block->cached && block->start == (uintptr_t)address ? block : NULL;
}

struct block *block_containing(uintptr_t address, size_t bytes)
{
    struct block *block = range_block(address);
    if (!block || block->cached || address < block->base || address - block->base > block->mapped) return NULL;
    return bytes <= block->mapped - (address - block->base) ? block : NULL;
}

void block_destroy(struct block *block)
{
    /* A registration that the program left behind, or a part that it moved away: those addresses are not used again. */
    bool reuse = !block->torn && !block->program_ranges;
    atomic_fetch_sub_explicit(&hostmem.blocks, 1, memory_order_relaxed);
    if (!block->torn && !range_unmap(block->base, block->mapped)) reuse = false;
    hostmem_lock();
    range_set_block(block->base, block->units, NULL);
    if (reuse) range_give(block->base, block->units);
    pieces_free(block);
    hostmem_unlock();
    arena_free(block, sizeof *block);
}

bool hostmem_block_give(void *address)
{
    struct block *victims = NULL;
    if (atomic_load_explicit(&hostmem.driver_seen, memory_order_relaxed)) budget_refresh();
    recall(address, 1, true);
    hostmem_lock();
    struct block *block = block_at(address);
    if (!block) {
        hostmem_unlock();
        return false;
    }
    while (block->users || block->changing) hostmem_wait();
    struct host_owner owner = block->owner;
    if (cache_keep(block, &victims)) {
        block = NULL;
    } else {
        block->cached = true; /* nobody's until it is gone */
        if (block->registered) pieces_drop(block, block->base, block->mapped);
    }
    hostmem_unlock();
    host_owner_uncount(owner);
    if (block && !block->registered) block_destroy(block);
    while (victims) {
        struct block *next = victims->next;
        block_destroy(victims);
        victims = next;
    }
    return true;
}

struct site *hostmem_site(const void *address)
{
    if (!hostmem_owns(address)) return NULL;
    hostmem_lock();
    struct block *block = range_block((uintptr_t)address);
    struct site *site = block && !block->cached ? block->owner.site : NULL;
    hostmem_unlock();
    return site;
}

size_t hostmem_block_usable(const void *address)
{
    hostmem_lock();
    struct block *block = block_at(address);
    size_t bytes = block ? block->base + block->mapped - block->start : 0;
    hostmem_unlock();
    return bytes;
}

/* Gives back whole pages behind `mapped`. Lock held; the block has no registered piece. */
static void block_shrink(struct block *block, size_t mapped)
{
    size_t units = units_of(mapped);
    if (!range_unmap(block->base + mapped, block->mapped - mapped)) return;
    block->mapped = mapped;
    if (units < block->units) {
        uintptr_t end = block->base + units * HOST_UNIT;
        range_set_block(end, block->units - units, NULL);
        range_give(end, block->units - units);
        block->units = units;
    }
    pieces_free(block);
}

/* More pages behind the block's end, where the addresses are free. Lock held. */
static bool block_extend(struct block *block, size_t mapped)
{
    size_t units = units_of(mapped);
    uintptr_t end = block->base + block->units * HOST_UNIT;
    size_t more = units > block->units ? units - block->units : 0;
    if (more && !range_take_at(end, more)) return false;
    if (!range_map(block->base + block->mapped, mapped - block->mapped)) {
        if (more) range_give(end, more);
        return false;
    }
    if (more) range_set_block(end, more, block);
    block->units += more;
    advise_huge(block->base, mapped);
    block->mapped = mapped;
    pieces_free(block);
    return true;
}

/* Moves the pages themselves to a run that leaves room to grow. The old addresses stay mapped until they are reserved
 * again, so that no other mapping can come between. Lock held, released meanwhile: the block is in the hands of the
 * thread that resizes it. */
static bool block_move(struct block *block, size_t mapped)
{
    size_t units = units_of(mapped + mapped / 2), colour = block->start - block->base;
    uintptr_t to = range_take(units, HOST_UNIT);
    if (!to) return false;
    hostmem_unlock();
    /* What is added first: once the pages have moved nothing can fail. */
    bool grown = range_map(to + block->mapped, mapped - block->mapped) &&
                 system_mremap((void *)block->base, block->mapped, block->mapped,
                               MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, (void *)to) != MAP_FAILED;
    if (grown) {
        advise_huge(to, mapped);
        range_unmap(block->base, block->mapped);
    } else {
        range_unmap(to, mapped);
    }
    hostmem_lock();
    if (!grown) {
        range_give(to, units);
        return false;
    }
    range_set_block(block->base, block->units, NULL);
    range_give(block->base, block->units);
    block->base = to;
    block->start = to + colour;
    block->mapped = mapped;
    block->units = units;
    range_set_block(to, units, block);
    pieces_free(block);
    return true;
}

/* A little less is not worth a registration; half as much is. */
static bool shrink_drops(const struct block *block, size_t bytes)
{
    return block->registered && page_up(block->start - block->base + bytes) <= block->mapped / 2;
}

/* `may_drop`: registrations, which would wait for the GPU if that was not idle. */
static bool resize_in_place(struct block *block, size_t bytes, bool may_drop)
{
    size_t mapped = page_up(block->start - block->base + bytes);
    if (block->altered || block->torn || block->program_ranges) return mapped <= block->mapped;
    if (mapped <= block->mapped) {
        if (may_drop && shrink_drops(block, bytes)) pieces_drop(block, block->base, block->mapped);
        if (!block->registered && mapped < block->mapped) block_shrink(block, mapped);
        return true;
    }
    if (block->registered || block->users || block->changing) return false;
    return block_extend(block, mapped) || block_move(block, mapped);
}

void *hostmem_block_resize(void *address, size_t bytes)
{
    if (bytes > BLOCK_LARGEST) return NULL;
    recall(address, 1, false);
    hostmem_lock();
    struct block *block = block_at(address);
    bool drops = block && shrink_drops(block, bytes);
    if (drops) {
        hostmem_unlock();
        drops = gpu_is_quiet();
        hostmem_lock();
        block = block_at(address);
    }
    if (block && resize_in_place(block, bytes, drops)) {
        void *start = (void *)block->start;
        struct host_owner owner = block->owner;
        hostmem_unlock();
        host_owner_uncount(owner);
        block_owned(block, bytes);
        return start;
    }
    size_t usable = block ? block->base + block->mapped - block->start : 0;
    hostmem_unlock();
    void *fresh = block ? hostmem_block_take(bytes, 16, false) : NULL;
    if (!fresh) return NULL;
    memcpy(fresh, address, usable < bytes ? usable : bytes);
    hostmem_block_give(address);
    return fresh;
}

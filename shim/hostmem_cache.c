/* Freed blocks, kept for the next allocation of about their size.
 *
 * Before the process has a driver they are kept as glibc would keep chunks of that size: blocks of up to 32 MiB, once
 * one as large was freed before, and no more than twice the largest of those. Afterwards registered blocks are kept up
 * to the budget (what is registered never exceeds it), unregistered ones up to a quarter of it. */
#include "shim/arena.h"
#include "shim/hostmem_internal.h"
#include "shim/shim.h"

#define CLASSES       (64 * 4)
#define CLASS_LOOK    8
#define PLAIN_LARGEST ((size_t)32 << 20)

static struct {
    struct block *classes[CLASSES];
    size_t unregistered;  /* bytes of cached blocks with nothing registered */
    size_t plain_largest; /* largest block up to PLAIN_LARGEST that was given back before there was a driver */
} cache;

/* Four classes for each power of two. */
static unsigned class_of(size_t bytes)
{
    unsigned high = 63 - (unsigned)__builtin_clzl(bytes | 4);
    return high * 4 + (unsigned)(bytes >> (high - 2) & 3);
}

static void cache_insert(struct block *block)
{
    struct block **head = &cache.classes[class_of(block->mapped)];
    block->cached = true;
    block->previous = NULL;
    block->next = *head;
    if (*head) (*head)->previous = block;
    *head = block;
    block->newer = NULL;
    block->older = hostmem.newest;
    if (hostmem.newest) hostmem.newest->newer = block;
    hostmem.newest = block;
    if (!hostmem.oldest) hostmem.oldest = block;
    hostmem.kept += block->mapped;
    block->plain = !block->registered;
    if (block->plain) cache.unregistered += block->mapped;
}

static void cache_remove(struct block *block)
{
    if (block->previous)
        block->previous->next = block->next;
    else
        cache.classes[class_of(block->mapped)] = block->next;
    if (block->next) block->next->previous = block->previous;
    if (block->newer)
        block->newer->older = block->older;
    else
        hostmem.newest = block->older;
    if (block->older)
        block->older->newer = block->newer;
    else
        hostmem.oldest = block->newer;
    block->newer = block->older = block->next = block->previous = NULL;
    hostmem.kept -= block->mapped;
    if (block->plain) cache.unregistered -= block->mapped;
}

static bool block_fits(const struct block *block, size_t bytes, size_t alignment, size_t largest)
{
    return block->base + block->mapped - block->start >= bytes && block->mapped <= largest &&
           (block->start & (alignment - 1)) == 0;
}

struct block *cache_take(size_t bytes, size_t alignment)
{
    if (!hostmem.newest) return NULL;
    /* At most a quarter more than asked: a block's memory is the program's for as long as it holds it. */
    size_t largest = bytes + bytes / 4 + HOST_COLOUR_LARGEST;
    for (unsigned class = class_of(bytes), last = class_of(largest); class <= last; class ++) {
        struct block *block = cache.classes[class];
        for (int looked = 0; block && looked < CLASS_LOOK; looked++, block = block->next) {
            if (!block_fits(block, bytes, alignment, largest)) continue;
            cache_remove(block);
            block->cached = false;
            block->drops = 0;
            return block;
        }
    }
    return NULL;
}

static bool keep_plain(const struct block *block)
{
    if (block->mapped > PLAIN_LARGEST) return false;
    if (block->mapped > cache.plain_largest) {
        cache.plain_largest = block->mapped;
        return false;
    }
    return hostmem.kept + block->mapped <= 2 * cache.plain_largest;
}

bool cache_keep(struct block *block, struct block **victims)
{
    if (block->altered || block->torn || block->program_ranges) return false;
    if (atomic_load_explicit(&hostmem.child, memory_order_relaxed) ||
        !atomic_load_explicit(&hostmem.driver_seen, memory_order_relaxed)) {
        if (!keep_plain(block)) return false;
    } else if (!block->registered) {
        size_t limit = budget_bytes() / 4;
        if (block->mapped > limit) return false;
        for (struct block *old = hostmem.oldest; old && cache.unregistered + block->mapped > limit;) {
            struct block *newer = old->newer;
            if (old->plain && !old->registered) {
                cache_remove(old);
                old->next = *victims;
                *victims = old;
            }
            old = newer;
        }
    }
    cache_insert(block);
    return true;
}

struct block *cache_take_oldest(void)
{
    for (struct block *block = hostmem.oldest; block; block = block->newer) {
        if (block->users || block->changing) continue;
        cache_remove(block);
        return block;
    }
    return NULL;
}

size_t cache_trim(size_t bytes)
{
    size_t given = 0;
    while (given < bytes) {
        bool driver = hostmem_driver_usable();
        hostmem_lock();
        struct block *block = cache_take_oldest();
        if (block && block->registered) {
            if (driver) pieces_drop(block, block->base, block->mapped);
            if (block->registered) { /* no driver call may be made: it stays */
                cache_insert(block);
                block = NULL;
            }
        }
        hostmem_unlock();
        if (!block) break;
        given += block->mapped;
        block_destroy(block);
    }
    return given;
}

void cache_trim_to_budget(void)
{
    budget_refresh();
    hostmem_lock();
    size_t limit = budget_bytes();
    size_t held = hostmem.registered > hostmem.kept ? hostmem.registered : hostmem.kept;
    size_t excess = held > limit && hostmem.kept ? held - limit : 0;
    hostmem_unlock();
    if (excess && gpu_is_quiet()) cache_trim(excess < hostmem.kept ? excess : hostmem.kept);
}

/* When the program changes the mapping of a part of a block: the registration is dropped first, the addresses stay
 * reserved. */
#include <sys/mman.h>
#include "shim/hostmem_alloc.h"
#include "shim/hostmem_internal.h"

/* Calls `change` for each block that the range touches, lock held. */
static void for_each_touched(uintptr_t address, size_t bytes, void (*change)(struct block *, uintptr_t, size_t, int),
                             int argument)
{
    uintptr_t end = address + bytes;
    for (uintptr_t at = address; at < end && at >= address;) {
        struct block *block = range_block(at);
        if (block) change(block, address, bytes, argument);
        at = block ? block->base + block->units * HOST_UNIT : (at & ~(uintptr_t)(HOST_UNIT - 1)) + HOST_UNIT;
    }
}

static void drop_and_mark(struct block *block, uintptr_t address, size_t bytes, int change)
{
    if (block->cached) return;
    if (block->registered) pieces_drop(block, address, bytes);
    if (change != HOSTMEM_DISCARDS) block->altered = true;
}

void hostmem_mapping_changes(void *address, size_t bytes, enum hostmem_change change)
{
    if (!hostmem_owns(address)) return;
    recall(address, bytes, false);
    hostmem_lock();
    for_each_touched((uintptr_t)address, bytes, drop_and_mark, (int)change);
    hostmem_unlock();
}

bool hostmem_unmap(void *address, size_t bytes)
{
    if (!hostmem_owns(address) || !hostmem_owns((char *)address + bytes - 1) || !bytes) return false;
    if ((uintptr_t)address & (hostmem.page - 1)) return false;
    hostmem_mapping_changes(address, bytes, HOSTMEM_MOVES);
    return range_unmap((uintptr_t)address, page_up(bytes));
}

static void mark_torn(struct block *block, uintptr_t address, size_t bytes, int argument)
{
    (void)address, (void)bytes, (void)argument;
    block->torn = true;
}

void hostmem_moved_away(void *address, size_t bytes)
{
    if (!hostmem_owns(address)) return;
    void *at = mmap(address, page_up(bytes), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == address) return;
    if (at != MAP_FAILED) system_munmap(at, page_up(bytes));
    hostmem_lock();
    for_each_touched((uintptr_t)address, bytes, mark_torn, 0);
    hostmem_unlock();
}

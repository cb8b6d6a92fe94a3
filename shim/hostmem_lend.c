/* Blocks whose pages are lent to the GPU: who may be, and who must be called back. */
#include "shim/hostmem_internal.h"

static void (*_Atomic recall_function)(uintptr_t, size_t, bool);

void hostmem_lend_recall(void (*recall)(uintptr_t, size_t, bool)) { atomic_store(&recall_function, recall); }

size_t hostmem_available(void) { return budget_available(); }

uint64_t hostmem_serial(uintptr_t address)
{
    hostmem_lock();
    const struct block *block = range_block(address);
    uint64_t serial = block ? block->serial : 0;
    hostmem_unlock();
    return serial;
}

void hostmem_saved(size_t bytes, uint64_t ns) { rate_saved(COPY_H2D, bytes, ns); }

static bool is_idle(const struct block *block)
{
    return !block->users && !block->natives && !block->changing && !block->readers && !block->program_ranges &&
           !block->native && !block->altered && !block->torn && !block->lent;
}

bool hostmem_lend(uintptr_t address, size_t bytes, bool *patched)
{
    hostmem_lock();
    struct block *block = block_containing(address, bytes);
    bool ours = block && is_idle(block);
    if (ours && block->registered) {
        pieces_drop(block, block->base, block->mapped); /* the lock was released meanwhile */
        ours = block_containing(address, bytes) == block && is_idle(block) && !block->registered;
    }
    if (ours) {
        block->lent = true;
        *patched = block->patched;
        atomic_fetch_add(&hostmem.lent, 1);
    }
    hostmem_unlock();
    return ours;
}

void hostmem_lent_back(uintptr_t address, bool patched)
{
    hostmem_lock();
    struct block *block = range_block(address);
    if (block && block->lent) {
        block->lent = false;
        block->patched |= patched;
        atomic_fetch_sub(&hostmem.lent, 1);
    }
    hostmem_unlock();
}

void recall_range(uintptr_t address, size_t bytes, bool freed)
{
    uintptr_t end = address + (bytes ? bytes : 1);
    if (end < address) end = UINTPTR_MAX;
    for (uintptr_t at = address; at < end && hostmem_owns((void *)at);) {
        hostmem_lock();
        struct block *block = range_block(at);
        bool lent = block && block->lent;
        uintptr_t base = block ? block->base : 0, next = block ? base + block->units * HOST_UNIT : 0;
        size_t mapped = block ? block->mapped : 0;
        hostmem_unlock();
        if (lent) recall_function(base, mapped, freed);
        at = block ? next : (at & ~(uintptr_t)(HOST_UNIT - 1)) + HOST_UNIT;
    }
}

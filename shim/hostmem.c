/* The state of hostmem, its answers to the other hooks, and its part in fork and exit. */
#include <sys/utsname.h>
#include "shim/hostmem_alloc.h"
#include "shim/hostmem_internal.h"
#include "shim/shim.h"

#define PROGRAM_RANGES 256

struct hostmem hostmem = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .page = 4096};

/* Registrations that the program made inside the range; bytes 0: free entry. */
static struct program_range {
    uintptr_t address;
    size_t bytes;
} program_ranges[PROGRAM_RANGES];

void hostmem_lock(void)
{
    if (atomic_load_explicit(&hostmem.fork_locked, memory_order_acquire) &&
        pthread_equal(hostmem.forking, pthread_self()))
        return;
    pthread_mutex_lock(&hostmem.lock);
}

void hostmem_unlock(void)
{
    if (atomic_load_explicit(&hostmem.fork_locked, memory_order_acquire) &&
        pthread_equal(hostmem.forking, pthread_self()))
        return;
    pthread_mutex_unlock(&hostmem.lock);
}

void hostmem_wait(void)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_cond_wait(&hostmem.changed, &hostmem.lock);
    pthread_setcancelstate(state, NULL);
}

static void forget_block(struct block *block, void *argument)
{
    (void)argument;
    pieces_forget(block);
    block->program_ranges = 0;
}

/* A child has memory like its parent's and no registration. */
static void become_child(void)
{
    atomic_store(&hostmem.child, true);
    blocks_for_each(forget_block, NULL);
    hostmem.registered = 0;
}

bool hostmem_driver_usable(void)
{
    if (atomic_load_explicit(&hostmem.ended, memory_order_relaxed) ||
        atomic_load_explicit(&hostmem.child, memory_order_relaxed))
        return false;
    if (getpid() == shim.pid) return true;
    atomic_store(&hostmem.child, true); /* made by clone, which runs no fork handler */
    return false;
}

bool hostmem_owns(const void *address)
{
    return (uintptr_t)address - atomic_load_explicit(&hostmem.base, memory_order_relaxed) <
           atomic_load_explicit(&hostmem.bytes, memory_order_relaxed);
}

void hostmem_range(uintptr_t *base, size_t *bytes)
{
    *base = atomic_load_explicit(&hostmem.base, memory_order_relaxed);
    *bytes = atomic_load_explicit(&hostmem.bytes, memory_order_relaxed);
}

void hostmem_driver_appeared(void) { atomic_store_explicit(&hostmem.driver_seen, true, memory_order_relaxed); }

bool hostmem_hides(const void *address)
{
    if (!hostmem_owns(address) || atomic_load_explicit(&hostmem.child, memory_order_relaxed)) return false;
    hostmem_lock();
    struct block *block = range_block((uintptr_t)address);
    bool hidden = block && (uintptr_t)address < block->base + block->mapped && pieces_any(block, (uintptr_t)address, 1);
    hostmem_unlock();
    return hidden;
}

bool hostmem_registered(const void *address, size_t bytes)
{
    if (!hostmem_owns(address) || atomic_load_explicit(&hostmem.child, memory_order_relaxed)) return false;
    hostmem_lock();
    struct block *block = range_block((uintptr_t)address);
    bool any = block && (uintptr_t)address < block->base + block->mapped &&
               pieces_any(block, (uintptr_t)address, bytes ? bytes : 1);
    hostmem_unlock();
    return any;
}

void hostmem_make_native(const void *address, size_t bytes, bool for_good)
{
    if (!hostmem_owns(address)) return;
    recall(address, bytes, false);
    hostmem_lock();
    struct block *block = range_block((uintptr_t)address);
    if (block && !block->cached) {
        if (for_good) block->native = true;
        if (block->drops < HOST_DROPS_MAX && pieces_any(block, (uintptr_t)address, bytes ? bytes : 1)) block->drops++;
        pieces_drop(block, (uintptr_t)address, bytes ? bytes : 1);
    }
    hostmem_unlock();
}

bool hostmem_trim(void) { return cache_trim(SIZE_MAX) > 0; }

static void count_range(uintptr_t address, size_t bytes, int change)
{
    for (uintptr_t at = address, end = address + bytes; at < end;) {
        struct block *block = range_block(at);
        if (block) block->program_ranges += (uint32_t)change;
        at = block ? block->base + block->units * HOST_UNIT : (at & ~(uintptr_t)(HOST_UNIT - 1)) + HOST_UNIT;
    }
}

void hostmem_program_registers(void *address, size_t bytes)
{
    if (!hostmem_owns(address) || !bytes) return;
    hostmem_lock();
    for (int i = 0; i <= PROGRAM_RANGES; i++) {
        if (i < PROGRAM_RANGES && program_ranges[i].bytes) continue;
        if (i < PROGRAM_RANGES) program_ranges[i] = (struct program_range){(uintptr_t)address, bytes};
        /* Past the table they are never counted down: the blocks stay native. */
        count_range((uintptr_t)address, bytes, 1);
        break;
    }
    struct block *block = range_block((uintptr_t)address);
    if (block && block->registered) pieces_drop(block, (uintptr_t)address, bytes);
    hostmem_unlock();
    recall(address, bytes, false); /* none is lent from here on: the ranges are counted */
}

void hostmem_program_unregistered(void *address)
{
    if (!hostmem_owns(address)) return;
    hostmem_lock();
    for (int i = 0; i < PROGRAM_RANGES; i++) {
        if (!program_ranges[i].bytes || program_ranges[i].address != (uintptr_t)address) continue;
        count_range(program_ranges[i].address, program_ranges[i].bytes, -1);
        program_ranges[i].bytes = 0;
        break;
    }
    hostmem_unlock();
}

/* Before 5.12 fork write-protected pinned pages: the parent's next write went to a copy that the device does not see.
 */
static bool fork_loses_pins(void)
{
    struct utsname name;
    int major = 0, minor = 0;
    if (uname(&name) != 0) return true;
    const char *at = name.release;
    for (; *at >= '0' && *at <= '9'; at++) major = major * 10 + *at - '0';
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++) minor = minor * 10 + *at - '0';
    return major < 5 || (major == 5 && minor < 12);
}

static void drop_block(struct block *block, void *must)
{
    if (!block->registered || (!must && (block->users || block->changing))) return;
    pieces_drop(block, block->base, block->mapped);
}

/* The kernel copies pinned pages at fork, one by one, for a child that seldom wants them: giving the registrations up
 * and renewing them on use is many times cheaper, in time and memory. But it may wait for the GPU, which fork does not:
 * only when that is idle. */
static void drop_for_fork(void)
{
    bool must = fork_loses_pins();
    hostmem_lock();
    bool any = hostmem.registered > 0;
    hostmem_unlock();
    if (!any || !hostmem_driver_usable()) return;
    if (!must && !gpu_is_quiet()) return;
    hostmem_lock();
    blocks_for_each(drop_block, must ? &hostmem : NULL);
    hostmem_unlock();
}

void hostmem_before_fork(void)
{
    pool_stop();
    drop_for_fork();
    hostmem_lock();
    hostmem.forking = pthread_self();
    atomic_store(&hostmem.fork_locked, true);
}

void hostmem_after_fork_parent(void)
{
    atomic_store(&hostmem.fork_locked, false);
    pthread_mutex_unlock(&hostmem.lock);
    pool_resume();
}

void hostmem_after_fork_child(void)
{
    hostmem.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    hostmem.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    atomic_store(&hostmem.fork_locked, false);
    become_child();
    pool_after_fork_child();
}

void hostmem_at_exit(void)
{
    atomic_store(&hostmem.ended, true);
    pool_stop();
}

#include "shim/buffer.h"

#include <stdatomic.h>
#include <string.h>
#include "shim/arena.h"
#include "shim/clock.h"
#include "shim/lock.h"
#include "shim/report.h"

/* uthash on the shim's memory: when that is short, an entry is not added and nothing else happens. */
#define HASH_NONFATAL_OOM            1
#define uthash_malloc(bytes)         arena_alloc(bytes)
#define uthash_free(block, bytes)    arena_free(block, bytes)
#define uthash_nonfatal_oom(element) ((element)->added = false)
#define HASH_FUNCTION(key, length, hash)                                                                               \
    do {                                                                                                               \
        uint64_t mixed_ = *(const uintptr_t *)(key)*0x9e3779b97f4a7c15u;                                               \
        (hash) = (unsigned)(mixed_ >> 32);                                                                             \
    } while (0)
#include <uthash.h>

enum { SLAB_ENTRIES = 64, FREED_KEPT = 4096 };

struct entry {
    struct buffer buffer;
    UT_hash_handle hh;
    bool added;
};

struct freed {
    uintptr_t address;
    struct site *site; /* that had allocated it */
};

static struct {
    struct lock lock;
    struct entry *table;
    struct entry *unused; /* linked through hh.next */
    struct site_usage totals[BUFFER_KINDS];
    struct freed freed[FREED_KEPT]; /* a ring */
    uint32_t freed_next;
    _Atomic uint64_t id;
} buffers = {.lock = LOCK_INITIALIZER};

static struct entry *entry_new(void)
{
    if (!buffers.unused) {
        struct entry *slab = arena_alloc(SLAB_ENTRIES * sizeof *slab);
        if (!slab) return NULL;
        for (unsigned i = 0; i < SLAB_ENTRIES; i++) {
            slab[i].hh.next = buffers.unused;
            buffers.unused = &slab[i];
        }
    }
    struct entry *entry = buffers.unused;
    buffers.unused = entry->hh.next;
    return entry;
}

static void entry_free(struct entry *entry)
{
    entry->hh.next = buffers.unused;
    buffers.unused = entry;
}

static struct entry *entry_find(uintptr_t address)
{
    struct entry *entry;
    HASH_FIND(hh, buffers.table, &address, sizeof address, entry);
    return entry;
}

/* Only written under the lock, but for BUFFER_HOST; others read them any time. */
static void raise(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

static void peak(_Atomic uint64_t *highest, const _Atomic uint64_t *now)
{
    uint64_t value = atomic_load_explicit(now, memory_order_relaxed);
    if (value > atomic_load_explicit(highest, memory_order_relaxed))
        atomic_store_explicit(highest, value, memory_order_relaxed);
}

static void usage_grow(struct site_usage *usage, uint64_t bytes)
{
    raise(&usage->live_bytes, bytes);
    raise(&usage->live_count, 1);
    raise(&usage->total_bytes, bytes);
    raise(&usage->total_count, 1);
    peak(&usage->peak_bytes, &usage->live_bytes);
}

static void usage_shrink(struct site_usage *usage, uint64_t bytes)
{
    raise(&usage->live_bytes, -bytes);
    raise(&usage->live_count, (uint64_t)-1);
}

static void usage_abandon(struct site_usage *usage, uint64_t bytes)
{
    usage_shrink(usage, bytes);
    raise(&usage->abandoned_bytes, bytes);
    raise(&usage->abandoned_count, 1);
}

static void account(const struct buffer *buffer, void (*change)(struct site_usage *usage, uint64_t bytes))
{
    if (buffer->site) change(&buffer->site->usage[buffer->kind], buffer->bytes);
    change(&buffers.totals[buffer->kind], buffer->bytes);
}

static void entry_remove(struct entry *entry, void (*change)(struct site_usage *usage, uint64_t bytes))
{
    account(&entry->buffer, change);
    HASH_DELETE(hh, buffers.table, entry);
    entry_free(entry);
}

bool buffer_add(const struct buffer *buffer)
{
    bool added = false;
    lock_acquire(&buffers.lock);
    struct entry *stale = entry_find(buffer->address); /* freed where the shim could not see it */
    if (stale) entry_remove(stale, usage_shrink);
    struct entry *entry = entry_new();
    if (entry) {
        entry->buffer = *buffer;
        entry->added = true;
        HASH_ADD(hh, buffers.table, buffer.address, sizeof entry->buffer.address, entry);
        added = entry->added;
        if (added)
            account(buffer, usage_grow);
        else
            entry_free(entry);
    }
    lock_release(&buffers.lock);
    report_tick(clock_ns());
    return added;
}

bool buffer_find(uintptr_t address, struct buffer *out)
{
    lock_acquire(&buffers.lock);
    struct entry *entry = entry_find(address);
    if (entry) *out = entry->buffer;
    lock_release(&buffers.lock);
    return entry != NULL;
}

bool buffer_remove(uintptr_t address, struct buffer *out)
{
    lock_acquire(&buffers.lock);
    struct entry *entry = entry_find(address);
    if (entry) {
        *out = entry->buffer;
        entry_remove(entry, usage_shrink);
        buffers.freed[buffers.freed_next++ % FREED_KEPT] = (struct freed){address, out->site};
    }
    lock_release(&buffers.lock);
    if (entry) report_tick(clock_ns());
    return entry != NULL;
}

bool buffer_find_containing(uintptr_t address, struct buffer *out)
{
    bool found = false;
    lock_acquire(&buffers.lock);
    for (struct entry *entry = buffers.table; entry && !found; entry = entry->hh.next)
        if (address - entry->buffer.address < entry->buffer.bytes) {
            *out = entry->buffer;
            found = true;
        }
    lock_release(&buffers.lock);
    return found;
}

void buffer_forget_context(struct context *context)
{
    lock_acquire(&buffers.lock);
    for (struct entry *entry = buffers.table, *next; entry; entry = next) {
        next = entry->hh.next;
        if (entry->buffer.context == context) entry_remove(entry, usage_abandon);
    }
    lock_release(&buffers.lock);
}

void buffer_for_each(void (*visit)(const struct buffer *buffer, void *argument), void *argument)
{
    lock_acquire(&buffers.lock);
    for (struct entry *entry = buffers.table; entry; entry = entry->hh.next) visit(&entry->buffer, argument);
    lock_release(&buffers.lock);
}

bool buffer_was_freed(uintptr_t address) { return buffer_freed_site(address, NULL); }

bool buffer_freed_site(uintptr_t address, struct site **site)
{
    bool freed = false;
    lock_acquire(&buffers.lock);
    if (address && !entry_find(address)) /* else it was handed out again */
        for (unsigned i = 1; i <= FREED_KEPT && !freed; i++) {
            const struct freed *latest = &buffers.freed[(buffers.freed_next - i) % FREED_KEPT];
            freed = latest->address == address;
            if (freed && site) *site = latest->site;
        }
    lock_release(&buffers.lock);
    return freed;
}

/* The same without the lock, so that every step is atomic by itself. */
static void host_grow(struct site_usage *usage, uint64_t bytes)
{
    uint64_t live = atomic_fetch_add_explicit(&usage->live_bytes, bytes, memory_order_relaxed) + bytes;
    uint64_t highest = atomic_load_explicit(&usage->peak_bytes, memory_order_relaxed);
    while (live > highest && !atomic_compare_exchange_weak_explicit(&usage->peak_bytes, &highest, live,
                                                                    memory_order_relaxed, memory_order_relaxed))
        continue;
    atomic_fetch_add_explicit(&usage->live_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&usage->total_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&usage->total_count, 1, memory_order_relaxed);
}

static void host_shrink(struct site_usage *usage, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&usage->live_bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&usage->live_count, 1, memory_order_relaxed);
}

void buffer_count_host(struct site *site, size_t bytes)
{
    host_grow(&buffers.totals[BUFFER_HOST], bytes);
    if (site) host_grow(&site->usage[BUFFER_HOST], bytes);
}

void buffer_uncount_host(struct site *site, size_t bytes)
{
    host_shrink(&buffers.totals[BUFFER_HOST], bytes);
    if (site) host_shrink(&site->usage[BUFFER_HOST], bytes);
}

uint64_t buffer_next_id(void) { return atomic_fetch_add_explicit(&buffers.id, 1, memory_order_relaxed) + 1; }

void buffer_totals(struct usage totals[BUFFER_KINDS])
{
    lock_acquire(&buffers.lock);
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) totals[kind] = usage_read(&buffers.totals[kind]);
    lock_release(&buffers.lock);
}

void buffer_before_fork(void) { lock_acquire(&buffers.lock); }

void buffer_after_fork(void) { lock_release(&buffers.lock); }

#include "shim/site.h"

#include <string.h>
#include <unwind.h>
#include "shim/arena.h"
#include "shim/hash.h"
#include "shim/lock.h"
#include "shim/modules.h"
#include "shim/python.h"
#include "shim/shim.h"

enum {
    SKIPPED_MAX = 24, /* frames of the shim and of CUDA libraries between the hook and the program */
    SLOTS_MAX = SITE_DEPTH_MAX + SKIPPED_MAX,
    CACHE_ENTRIES = 256,
    BUCKETS = 4096,
    DEPTH_DEFAULT = 16
};

/* What a stack looked like at a capture: where each return address lay, relative to the innermost, and what it was. If
 * all are the same again, so is the stack. Shared by all threads, since the key holds the stack pointer; an entry in
 * use by another thread is a miss. */
struct seen {
    _Atomic uint32_t busy;
    uint32_t slots;
    uintptr_t stack, caller;
    struct site *site;
    uint32_t offsets[SLOTS_MAX];
    uintptr_t values[SLOTS_MAX];
    struct python_moment moment;
};

struct interned {
    struct site site; /* first: the two are the same address */
    struct interned *_Atomic chain;
    uint64_t key;
};

static struct {
    struct lock lock; /* for adding */
    struct interned *_Atomic buckets[BUCKETS];
    struct site *_Atomic newest;
    uint32_t count;
    struct interned rest;
    struct seen seen[CACHE_ENTRIES];
} sites = {.lock = LOCK_INITIALIZER};

struct walk {
    uintptr_t stack; /* the slot of site_capture's return address: what lies below is the capture itself */
    unsigned depth;  /* frames of the program wanted */
    unsigned frames, leading;
    bool repeatable; /* every return address lies where the cache would look */
    uint32_t slots;
    uint32_t offsets[SLOTS_MAX];
    uintptr_t values[SLOTS_MAX];
    uintptr_t pcs[SLOTS_MAX];
    uint16_t modules[SLOTS_MAX];
    struct python_moment moment;
    const struct python_stack *python;
};

#ifdef __x86_64__
/* Keeps the place of a return address, if it is just below the frame of its caller, as the x86-64 call instruction
 * leaves it. */
static void walk_slot(struct walk *walk, uintptr_t slot, uintptr_t value)
{
    uintptr_t offset = slot - walk->stack;
    if (walk->slots == SLOTS_MAX || offset > UINT32_MAX || *(const uintptr_t *)slot != value) {
        walk->repeatable = false;
        return;
    }
    walk->offsets[walk->slots] = (uint32_t)offset;
    walk->values[walk->slots++] = value;
}
#endif

static _Unwind_Reason_Code walk_frame(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    int before = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &before);
    uintptr_t slot = _Unwind_GetCFA(context) - sizeof(uintptr_t);
    if (!pc) return _URC_END_OF_STACK;
#ifdef __x86_64__
    if (slot < walk->stack) return _URC_NO_REASON;
    walk_slot(walk, slot, pc);
#else
    (void)slot;
    walk->repeatable = false;
#endif
    pc += before != 0; /* an interrupted frame: as if the instruction were a call */
    if (module_is_own(pc - 1)) return _URC_NO_REASON;
    unsigned number = module_of(pc - 1);
    const struct module *module = module_get(number);
    walk->pcs[walk->frames] = pc;
    walk->modules[walk->frames] = (uint16_t)number;
    if (walk->leading == walk->frames && module && module->cuda) walk->leading++;
    walk->frames++;
    return walk->frames == SLOTS_MAX || walk->frames - walk->leading >= walk->depth ? _URC_END_OF_STACK
                                                                                    : _URC_NO_REASON;
}

/* The library of NVIDIA's that the call came out of, the runtime and the driver apart, since those only pass it on. */
static uint16_t walk_via(const struct walk *walk)
{
    for (unsigned i = walk->leading; i > 0; i--) {
        const struct module *module = module_get(walk->modules[i - 1]);
        if (module && !module->runtime) return walk->modules[i - 1];
    }
    return 0;
}

static struct interned *interned_find(const struct walk *walk, uint64_t key, uint16_t via)
{
    struct interned *one = atomic_load_explicit(&sites.buckets[key % BUCKETS], memory_order_acquire);
    for (; one; one = atomic_load_explicit(&one->chain, memory_order_acquire))
        if (one->key == key && one->site.via == via && one->site.python == walk->python &&
            one->site.depth == walk->frames &&
            memcmp(one->site.frames, walk->pcs, walk->frames * sizeof *walk->pcs) == 0 &&
            memcmp(one->site.modules, walk->modules, walk->frames * sizeof *walk->modules) == 0)
            return one;
    return NULL;
}

/* Equal in every run: offsets in files, not addresses; the C library's frames are the same everywhere and its build is
 * not the program's. */
static uint64_t site_hash(const struct site *site)
{
    uint64_t hash = 1;
    for (unsigned i = 0; i < site->depth; i++) {
        const struct module *module = module_get(site->modules[i]);
        if (!module)
            hash = hash_word(hash, 1);
        else if (!module->system)
            hash = hash_word(hash_word(hash, module->identity), site->frames[i] - module->bias);
    }
    if (site->python) hash = hash_word(hash, site->python->hash);
    return hash ? hash : 1;
}

/* Called with the lock held. */
static struct interned *interned_make(const struct walk *walk, uint64_t key, uint16_t via)
{
    bool full = sites.count >= SITE_MOST;
    struct interned *one = full ? &sites.rest : arena_calloc(sizeof *one);
    if (!one || (full && one->site.id)) return one;
    struct site *site = &one->site;
    if (!full) {
        site->depth = walk->frames;
        site->via = via;
        site->python = walk->python;
        memcpy(site->frames, walk->pcs, walk->frames * sizeof *walk->pcs);
        memcpy(site->modules, walk->modules, walk->frames * sizeof *walk->modules);
    }
    site->hash = site_hash(site);
    site->id = ++sites.count;
    site->next = atomic_load_explicit(&sites.newest, memory_order_relaxed);
    one->key = key;
    if (!full) {
        struct interned *_Atomic *bucket = &sites.buckets[key % BUCKETS];
        atomic_store_explicit(&one->chain, atomic_load_explicit(bucket, memory_order_relaxed), memory_order_relaxed);
        atomic_store_explicit(bucket, one, memory_order_release);
    }
    atomic_store_explicit(&sites.newest, site, memory_order_release);
    return one;
}

static struct site *walk_intern(struct walk *walk)
{
    uint16_t via = walk_via(walk);
    if (walk->leading < walk->frames && walk->leading > 0) {
        walk->frames -= walk->leading;
        memmove(walk->pcs, walk->pcs + walk->leading, walk->frames * sizeof *walk->pcs);
        memmove(walk->modules, walk->modules + walk->leading, walk->frames * sizeof *walk->modules);
    }
    if (walk->frames > walk->depth) walk->frames = walk->depth;
    uint64_t key = hash_word(via, (uintptr_t)walk->python);
    for (unsigned i = 0; i < walk->frames; i++) key = hash_word(key, walk->pcs[i]);
    struct interned *one = interned_find(walk, key, via);
    if (one) return &one->site;
    lock_acquire(&sites.lock);
    one = interned_find(walk, key, via);
    if (!one) one = interned_make(walk, key, via);
    lock_release(&sites.lock);
    return one ? &one->site : NULL;
}

/* Unwinds. The result goes into `seen` unless another thread has that entry. NULL also if `of_program` and a library of
 * CUDA's is the caller. */
static __attribute__((noinline)) struct site *site_unwind(struct seen *seen, uintptr_t stack, uintptr_t caller,
                                                          bool of_program)
{
    struct walk walk;
    walk.stack = stack;
    walk.depth = (unsigned)shim.options.site_depth;
    if (walk.depth == 0 || walk.depth > SITE_DEPTH_MAX) walk.depth = DEPTH_DEFAULT;
    walk.frames = walk.leading = walk.slots = 0;
    walk.repeatable = true;
    _Unwind_Backtrace(walk_frame, &walk);
    if (of_program && walk.leading > 0) return NULL;
    walk.python = python_capture(&walk.moment);
    struct site *site = walk_intern(&walk);
    if (!site || !walk.repeatable || walk.slots == 0) return site;
    if (atomic_exchange_explicit(&seen->busy, 1, memory_order_acquire) != 0) return site;
    seen->stack = stack;
    seen->caller = caller;
    seen->site = site;
    seen->slots = walk.slots;
    memcpy(seen->offsets, walk.offsets, walk.slots * sizeof *walk.offsets);
    memcpy(seen->values, walk.values, walk.slots * sizeof *walk.values);
    seen->moment = walk.moment;
    atomic_store_explicit(&seen->busy, 0, memory_order_release);
    return site;
}

/* From the innermost out: that a return address is the same makes it certain that the place of the next one is part of
 * the stack. */
__attribute__((no_sanitize("address", "thread"))) static bool seen_again(const struct seen *seen, uintptr_t stack)
{
    for (uint32_t i = 0; i < seen->slots; i++)
        if (*(const volatile uintptr_t *)(stack + seen->offsets[i]) != seen->values[i]) return false;
    return true;
}

static inline struct site *capture(uintptr_t stack, uintptr_t caller, bool of_program)
{
    struct seen *seen = &sites.seen[(stack ^ caller << 7) * 0x9e3779b97f4a7c15u >> 56];
    struct site *site = NULL;
    if (atomic_exchange_explicit(&seen->busy, 1, memory_order_acquire) == 0) {
        if (seen->stack == stack && seen->caller == caller && seen_again(seen, stack) && python_same(&seen->moment))
            site = seen->site;
        atomic_store_explicit(&seen->busy, 0, memory_order_release);
    }
    return site ? site : site_unwind(seen, stack, caller, of_program);
}

/* Each needs a frame of its own: entries of `seen` are told apart by where it lies and where it returns to. */
__attribute__((noinline)) struct site *site_capture(void)
{
    return capture((uintptr_t)__builtin_frame_address(0) + sizeof(uintptr_t), (uintptr_t)__builtin_return_address(0),
                   false);
}

__attribute__((noinline)) struct site *site_capture_malloc(void)
{
    return capture((uintptr_t)__builtin_frame_address(0) + sizeof(uintptr_t), (uintptr_t)__builtin_return_address(0),
                   true);
}

struct site *site_first(void) { return atomic_load_explicit(&sites.newest, memory_order_acquire); }

void site_after_fork(void)
{
    sites.lock = (struct lock)LOCK_INITIALIZER;
    for (unsigned i = 0; i < CACHE_ENTRIES; i++) atomic_store_explicit(&sites.seen[i].busy, 0, memory_order_relaxed);
    module_after_fork();
    python_after_fork();
}

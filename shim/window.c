#include <string.h>
#include "shim/arena.h"
#include "shim/backing.h"
#include "shim/gate.h"
#include "shim/placement.h"
#include "shim/report.h"
#include "shim/shim.h"
#include "shim/window.h"
#include "shim/window_slots.h"

/* Guards every site's list of windows: a site is a call stack, shared by all contexts. Inside a context's lock. */
static struct lock window_sites = LOCK_INITIALIZER;

/* Memory in windows, of all contexts together: device memory held and host pages registered. */
static _Atomic uint64_t window_memory;

struct window *window_at(uintptr_t address)
{
    if (!context_hull_has(address)) return NULL;
    struct context *context = context_of_address(address);
    if (!context) return NULL;
    struct window *window = __atomic_load_n(&context->units[(address - context->base) / WINDOW_UNIT], __ATOMIC_ACQUIRE);
    return window && window->place != WINDOW_DEAD ? window : NULL;
}

/* What counts against option window_limit. */
static size_t held_bytes(const struct window *window)
{
    return window->lendable ? 0 : window->has_device ? window->bytes : window->usable;
}

/* Lendable windows leave a quarter of the addresses to others, and a unit free on both sides of each: addresses near a
 * buffer are no other one's. */
static bool has_room(const struct context *context, size_t units, bool lendable)
{
    size_t most = lendable ? CONTEXT_UNITS / 4 * 3 : CONTEXT_UNITS;
    return context->units_used <= most && units <= most - context->units_used;
}

/* Addresses for a window that is not yet anyone's: those of a dead one of the same size, or new ones. */
static struct window *reserve_window(struct context *context, size_t bytes, bool lendable)
{
    size_t units = bytes / WINDOW_UNIT + 2 * lendable;
    lock_acquire(&context->lock);
    struct window *window = context->windows;
    while (window && !(window->reusable && window->bytes == bytes && window->lendable == lendable))
        window = window->next;
    if (window) {
        window->reusable = false;
        window->high = 0;
    } else if (has_room(context, units, lendable) && (window = arena_calloc(sizeof *window))) {
        window->base = context->base + (context->units_used + lendable) * WINDOW_UNIT;
        window->context = context;
        window->bytes = bytes;
        window->lendable = lendable;
        context->units_used += units;
    }
    lock_release(&context->lock);
    return window;
}

static struct window *make_window(struct context *context, size_t bytes, size_t usable, enum window_place place,
                                  bool lendable)
{
    size_t wanted = lendable ? 0 : place == WINDOW_HOST ? usable : bytes;
    if (wanted && atomic_fetch_add(&window_memory, wanted) + wanted > shim.options.window_limit) {
        atomic_fetch_sub(&window_memory, wanted);
        report_note("windows are full (ZCSHIM_WINDOW_LIMIT): further small buffers are native");
        return NULL;
    }
    struct window *window = reserve_window(context, bytes, lendable);
    if (window) {
        window->usable = place == WINDOW_HOST ? usable : bytes;
        if (place == WINDOW_HOST ? backing_make_host(window) : backing_make_device(window)) {
            atomic_store_explicit(&window->place, place, memory_order_relaxed);
            STAT_ADD(windows_created, 1);
            return window;
        }
        /* The addresses of a fresh one stay unused: a range that failed once is not tried again. */
        if (window->linked)
            window->reusable = true;
        else
            arena_free(window, sizeof *window);
    }
    atomic_fetch_sub(&window_memory, wanted);
    return NULL;
}

/* The context's lock is held. */
static void join_site(struct window *window, struct site *site)
{
    window->site = site;
    if (window->lendable) return; /* placement is not asked about it */
    placement_window(window);
    if (!site) return;
    lock_acquire(&window_sites);
    window->next_of_site = site->windows;
    site->windows = window;
    lock_release(&window_sites);
}

static void leave_site(struct window *window)
{
    lock_acquire(&window_sites);
    for (struct window **at = window->site ? &window->site->windows : NULL; at && *at; at = &(*at)->next_of_site) {
        if (*at != window) continue;
        *at = window->next_of_site;
        break;
    }
    lock_release(&window_sites);
}

/* The context's lock is held. */
static void publish(struct context *context, struct window *window)
{
    if (!window->linked) {
        window->linked = true;
        window->next = context->windows;
        __atomic_store_n(&context->windows, window, __ATOMIC_RELEASE);
    }
    for (size_t i = 0; i < window->bytes / WINDOW_UNIT; i++)
        __atomic_store_n(&context->units[(window->base - context->base) / WINDOW_UNIT + i], window, __ATOMIC_RELEASE);
}

/* From the site's windows in this context; `*usable` is what its next window on the host should register. The context's
 * lock is held. */
static uintptr_t take_from_site(struct context *context, struct site *site, size_t bytes, size_t *usable)
{
    uintptr_t start = 0;
    lock_acquire(&window_sites);
    for (struct window *window = site ? site->windows : NULL; window && !start; window = window->next_of_site) {
        if (window->context != context) continue;
        start = slots_take(window, bytes);
        if (*usable < WINDOW_UNIT) *usable *= 4;
    }
    lock_release(&window_sites);
    return start;
}

uintptr_t window_alloc(struct context *context, struct site *site, size_t bytes, enum window_place place)
{
    size_t usable = WINDOW_HOST_FIRST;
    slots_collect(context);
    lock_acquire(&context->lock);
    uintptr_t start = take_from_site(context, site, bytes, &usable);
    /* A window that another site has left empty serves before a new one is made. */
    for (struct window *window = context->windows; window && !start; window = window->next) {
        if (window->live || window->frozen || window->moving || window->pending || window->sole_bytes ||
            window->place != (int)place || window->site == site || window->usable < bytes)
            continue;
        leave_site(window);
        join_site(window, site);
        start = slots_take(window, bytes);
    }
    lock_release(&context->lock);
    if (start) {
        placement_bytes(window_at(start));
        return start;
    }

    while (usable < bytes) usable *= 4;
    if (usable > WINDOW_UNIT) usable = WINDOW_UNIT;
    struct window *window = make_window(context, WINDOW_UNIT, usable, place, false);
    if (!window) return 0;
    lock_acquire(&context->lock);
    start = slots_take(window, bytes);
    join_site(window, site); /* rules ask for the buffer's size */
    publish(context, window);
    lock_release(&context->lock);
    return start;
}

static uintptr_t alloc_sole(struct context *context, struct site *site, size_t bytes, enum window_place place,
                            bool lendable)
{
    size_t whole = (bytes + WINDOW_UNIT - 1) / WINDOW_UNIT * WINDOW_UNIT;
    slots_collect(context);
    struct window *window = make_window(context, whole, whole, place, lendable);
    if (!window) return 0;
    window->sole_bytes = bytes;
    window->lend_host = 0;
    window->live = 1;
    window->live_bytes = bytes;
    window->high = whole;
    lock_acquire(&context->lock);
    join_site(window, site);
    publish(context, window);
    lock_release(&context->lock);
    return window->base;
}

uintptr_t window_alloc_sole(struct context *context, struct site *site, size_t bytes, enum window_place place)
{
    return alloc_sole(context, site, bytes, place, false);
}

uintptr_t window_alloc_lendable(struct context *context, struct site *site, size_t bytes)
{
    return alloc_sole(context, site, bytes, WINDOW_DEVICE, true);
}

/* A large window goes with its buffer. The context is current and was waited for. Inside the gate, so that no move is
 * under way. */
static void retire_sole(struct window *window)
{
    struct context *context = window->context;
    gate_enter();
    size_t held = held_bytes(window);
    lock_acquire(&context->lock);
    leave_site(window);
    for (size_t i = 0; i < window->bytes / WINDOW_UNIT; i++)
        __atomic_store_n(&context->units[(window->base - context->base) / WINDOW_UNIT + i], NULL, __ATOMIC_RELEASE);
    int place = atomic_exchange(&window->place, WINDOW_DEAD);
    lock_release(&context->lock);
    placement_window_gone(window);
    backing_drop(window, place);
    atomic_fetch_sub(&window_memory, held);
    lock_acquire(&context->lock);
    window->sole_bytes = 0;
    window->frozen = false;
    window->reusable = true;
    lock_release(&context->lock);
    gate_leave();
}

void window_free(struct window *window, uintptr_t start)
{
    lock_acquire(&window->context->lock);
    slots_give(window, start,
               window->sole_bytes ? window->sole_bytes : window->bytes_of[(start - window->base) / WINDOW_SLOT]);
    lock_release(&window->context->lock);
    if (window->sole_bytes)
        retire_sole(window);
    else
        placement_bytes(window);
}

static size_t begin_move(struct window *window)
{
    lock_acquire(&window->context->lock);
    window->moving = true;
    size_t high = window->high;
    lock_release(&window->context->lock);
    return high;
}

void window_moved(struct window *window, enum window_place place, size_t usable)
{
    lock_acquire(&window->context->lock);
    window->usable = usable;
    window->moving = false;
    if (window->place != WINDOW_DEAD) atomic_store_explicit(&window->place, place, memory_order_release);
    lock_release(&window->context->lock);
}

static bool end_move(struct window *window, bool moved, enum window_place place, size_t usable)
{
    window_moved(window, moved ? place : (enum window_place)window->place, usable);
    if (!moved) STAT_ADD(moves_failed, 1);
    return moved;
}

bool window_to_host(struct window *window)
{
    size_t extent = (begin_move(window) + WINDOW_HOST_FIRST - 1) / WINDOW_HOST_FIRST * WINDOW_HOST_FIRST;
    size_t usable = window->usable;
    window->usable = extent ? extent : WINDOW_HOST_FIRST;
    bool moved = backing_to_host(window);
    if (moved) STAT_ADD(moves_to_host, 1);
    return end_move(window, moved, WINDOW_HOST, moved ? window->usable : usable);
}

bool window_to_device(struct window *window)
{
    size_t held = held_bytes(window);
    bool moved = backing_to_device(window, begin_move(window));
    if (moved) {
        STAT_ADD(moves_to_device, 1);
        atomic_fetch_add(&window_memory, held_bytes(window) - held);
    }
    return end_move(window, moved, WINDOW_DEVICE, moved ? window->bytes : window->usable);
}

void window_retire_all(struct context *context, enum window_end end)
{
    for (struct window *window = context->windows; window; window = window->next) {
        if (window->place == WINDOW_DEAD) continue;
        lock_acquire(&context->lock);
        leave_site(window);
        int place = atomic_exchange(&window->place, WINDOW_DEAD);
        lock_release(&context->lock);
        placement_window_gone(window);
        atomic_fetch_sub(&window_memory, held_bytes(window));
        if (end == WINDOW_END_QUIET || (end == WINDOW_END_LOST && place == WINDOW_DEVICE)) backing_drop(window, place);
    }
    context->windows = NULL;
}

void window_set_peer(struct context *context, CUdevice device, bool allowed)
{
    for (struct window *window = context->windows; window; window = window->next)
        if (window->place == WINDOW_DEVICE) backing_allow(window, device, allowed);
}

bool window_probe(struct context *context)
{
    uint32_t pattern = 0x5a430000u + (uint32_t)context->device, seen = 0;
    struct window *window = make_window(context, WINDOW_UNIT, WINDOW_HOST_FIRST, WINDOW_HOST, false);
    if (!window) return false;
    CUdeviceptr last = window->base + WINDOW_HOST_FIRST - sizeof pattern;
    window->high = WINDOW_HOST_FIRST;
    memcpy((void *)last, &pattern, sizeof pattern);
    bool works = backing_to_device(window, WINDOW_HOST_FIRST) &&
                 shim.real.cuMemcpyDtoH_v2(&seen, last, sizeof seen) == CUDA_SUCCESS && seen == pattern;
    if (works) {
        atomic_store(&window->place, WINDOW_DEVICE);
        window->usable = window->bytes;
        if (shim.options.mode == MODE_ALWAYS) {
            if (!window_to_host(window)) return false;
            backing_release_device(window);
        }
        atomic_fetch_add(&window_memory, held_bytes(window) - WINDOW_HOST_FIRST);
        window->high = 0;
        lock_acquire(&context->lock);
        publish(context, window);
        lock_release(&context->lock);
    }
    return works;
}

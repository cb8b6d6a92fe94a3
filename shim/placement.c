#include "shim/choice.h"
#include "shim/clock.h"
#include "shim/context.h"
#include "shim/earning.h"
#include "shim/gate.h"
#include "shim/kernel.h"
#include "shim/lend.h"
#include "shim/placement.h"
#include "shim/report.h"
#include "shim/shim.h"
#include "shim/staging.h"

bool placement_for(struct context *context, struct site *site, size_t bytes, enum window_place *place)
{
    unsigned mode = shim.options.mode;
    if (mode != MODE_ALWAYS && mode != MODE_AUTO) return false;
    if (bytes > shim.options.max_size || context_capturing() || (site && site->native_only) || context->lost)
        return false;
    if (!context_ready(context)) return false;
    *place = WINDOW_HOST;
    if (mode == MODE_AUTO && !context->integrated && !earning_initial(site, bytes, place)) return false;
    if (context->support == CONTEXT_HOST_ONLY && *place == WINDOW_DEVICE) return false;
    return true;
}

bool placement_for_large(struct context *context, struct site *site, size_t bytes, enum window_place *place)
{
    struct earn_past past;
    if (shim.options.mode != MODE_AUTO || bytes <= shim.options.max_size || context->lost || context_capturing())
        return false;
    if (!choice_sparse(site, &past) || !context_ready(context)) return false;
    *place = past.place == EARN_HOST ? WINDOW_HOST : WINDOW_DEVICE;
    return context->support == CONTEXT_MOVES;
}

bool placement_may_spill(struct context *context)
{
    unsigned mode = shim.options.mode;
    return shim.options.spill && (mode == MODE_AUTO || mode == MODE_ALWAYS) && !context->lost && !context_capturing() &&
           context_ready(context);
}

bool placement_wants_time(void) { return shim.options.mode == MODE_OBSERVE; }

void placement_window(struct window *window)
{
    if (shim.options.mode == MODE_ALWAYS && window->site) {
        atomic_store_explicit(&window->site->on_host, window->place == WINDOW_HOST, memory_order_relaxed);
        atomic_store_explicit(&window->site->reason, "mode always", memory_order_relaxed);
    }
    if (shim.options.mode == MODE_AUTO) earning_window(window);
}

void placement_window_gone(struct window *window)
{
    if (shim.options.mode == MODE_AUTO) earning_window_gone(window);
}

void placement_bytes(struct window *window)
{
    if (shim.options.mode == MODE_AUTO) earning_bytes(window);
}

void placement_launch(const struct launch *launch)
{
    PLACEMENT_STRESS();
    if (shim.options.mode == MODE_AUTO) earning_launch(launch);
}

static void add(struct site_copies *copies, size_t bytes, uint64_t ns)
{
    atomic_fetch_add_explicit(&copies->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&copies->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&copies->ns, ns, memory_order_relaxed);
}

void placement_copied(struct window *window, const struct copy_request *request, bool elided, uint64_t started_ns)
{
    struct site *site = window->site;
    size_t bytes = request->width * request->height * request->depth;
    uint64_t ns = started_ns ? clock_ns() - started_ns : 0;
    if (__builtin_expect(shim.options.dump != 0, 0)) report_tick(clock_ns());
    if (!site) return;
    if (request->direction == COPY_H2D)
        add(elided ? &site->elided_h2d : &site->native_h2d, bytes, ns);
    else
        add(elided ? &site->elided_d2h : &site->native_d2h, bytes, ns);
    if (shim.options.mode == MODE_AUTO) earning_copied(window, request);
}

enum placement_answer placement_move(struct window *window, enum window_place place, const char *reason)
{
    struct context *context = window->context;
    bool moved = false, tried = false, pushed;
    if (window->frozen || window->lendable || window->place == (int)place || context->support != CONTEXT_MOVES ||
        context_capturing())
        return PLACEMENT_BUSY;
    if (!gate_try_close()) {
        STAT_ADD(moves_refused, 1);
        return PLACEMENT_BUSY;
    }
    if (context_enter(context, &pushed)) {
        if (!window->frozen && window->place != WINDOW_DEAD && contexts_quiet()) {
            uint64_t started = clock_ns();
            tried = true;
            if (place == WINDOW_HOST) {
                kernel_load(context);
                staging_prepare(&context->staging);
                moved = context->copy_kernel && window_to_host(window);
            } else {
                moved = window_to_device(window);
            }
            uint64_t now = clock_ns();
            STAT_ADD(moves_ns, now - started);
            if (moved && window->site)
                report_moved(window->site, place == WINDOW_HOST, window->live_bytes, now, now - started);
        } else {
            STAT_ADD(moves_refused, 1);
        }
        context_leave(pushed);
    }
    gate_open();
    struct site *site = window->site;
    if (moved && site) {
        atomic_fetch_add_explicit(place == WINDOW_HOST ? &site->moves_to_host : &site->moves_to_device, 1,
                                  memory_order_relaxed);
        atomic_store_explicit(&site->on_host, place == WINDOW_HOST, memory_order_relaxed);
        atomic_store_explicit(&site->reason, reason, memory_order_relaxed);
    }
    return moved ? PLACEMENT_MOVED : tried ? PLACEMENT_FAILED : PLACEMENT_BUSY;
}

/* A move that the policy did not ask for: it is told. */
static void move_and_tell(struct window *window, enum window_place place, const char *reason)
{
    if (placement_move(window, place, reason) == PLACEMENT_MOVED && shim.options.mode == MODE_AUTO)
        earning_moved(window, place);
}

void placement_freeze(uintptr_t address, const char *reason)
{
    struct window *window = window_at(address);
    if (!window || window->frozen) return;
    lend_named(address);
    /* On the device if that can be had without asking the driver anything that could harm a capture. */
    if (window->place == WINDOW_HOST && !context_capturing()) move_and_tell(window, WINDOW_DEVICE, reason);
    /* A move under way ends before the gate opens; after this none begins. */
    atomic_store(&window->frozen, true);
    gate_enter();
    gate_leave();
    if (window->site) atomic_store_explicit(&window->site->reason, reason, memory_order_relaxed);
    if (shim.options.mode == MODE_AUTO) earning_frozen(window, reason);
}

void placement_stress(void)
{
    static _Atomic uint64_t dice;
    uint64_t n = atomic_fetch_add_explicit(&dice, 1, memory_order_relaxed) + shim.options.stress_moves;
    n = (n ^ n >> 31) * 0x9e3779b97f4a7c15ull;
    n ^= n >> 29;
    if (n % 4) return;
    struct context *context = context_current();
    if (!context || context->setup != 2 || context->support != CONTEXT_MOVES) return;
    unsigned windows = 0, chosen = 0;
    for (struct window *window = context->windows; window; window = window->next) windows++;
    if (!windows) return;
    chosen = (unsigned)(n >> 8) % windows;
    struct window *window = context->windows;
    while (chosen--) window = window->next;
    if (window->place == WINDOW_HOST)
        move_and_tell(window, WINDOW_DEVICE, "moved by ZCSHIM_STRESS_MOVES");
    else if (window->place == WINDOW_DEVICE)
        move_and_tell(window, WINDOW_HOST, "moved by ZCSHIM_STRESS_MOVES");
}

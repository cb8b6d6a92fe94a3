#include "earn_inside.h"

#include <string.h>

void earn_run_begin(struct earn_run *run, const struct cost *cost, double regret, uint64_t now_ns)
{
    memset(run, 0, sizeof *run);
    run->cost = cost;
    run->regret = regret;
    run->start_ns = now_ns;
    atomic_store(&run->cleared_ns, now_ns);
    atomic_store(&run->forgets, 1);
}

double earn_budget_ns(const struct earn_run *run, uint64_t now_ns)
{
    return run->regret * (double)(now_ns - run->start_ns) + (double)EARN_CONSTANT_NS -
           (double)atomic_load_explicit(&run->spent_ns, memory_order_relaxed);
}

void earn_run_forget_kernels(struct earn_run *run, uint64_t now_ns)
{
    atomic_fetch_add(&run->forgets, 1);
    atomic_store(&run->cleared_ns, now_ns);
    atomic_store(&run->told_ns, now_ns);
    for (unsigned i = 0; i < EARN_KERNEL_WORDS; i++) atomic_store(&run->met[i], 0);
}

bool earn_run_other_on_trial(const struct earn_run *run, const struct earn_window *window, uint64_t now_ns)
{
    uintptr_t trial = atomic_load_explicit(&run->trial, memory_order_relaxed);
    return trial && trial != (uintptr_t)window &&
           now_ns < atomic_load_explicit(&run->trial_end_ns, memory_order_relaxed);
}

bool earn_run_take_turn(struct earn_run *run, const struct earn_window *window, uint64_t now_ns)
{
    uintptr_t trial = atomic_load(&run->trial);
    if (trial && trial != (uintptr_t)window && now_ns < atomic_load(&run->trial_end_ns)) return false;
    return atomic_compare_exchange_strong(&run->trial, &trial, (uintptr_t)window);
}

void earn_run_end_turn(struct earn_run *run, const struct earn_window *window)
{
    uintptr_t self = (uintptr_t)window;
    atomic_compare_exchange_strong(&run->trial, &self, 0);
}

bool earn_run_has_turn(const struct earn_run *run, const struct earn_window *window)
{
    return atomic_load_explicit(&run->trial, memory_order_relaxed) == (uintptr_t)window;
}

void earn_run_next_epoch(struct earn_run *run, struct earn_window *window)
{
    window->epoch = atomic_fetch_add(&run->epoch, 1) + 1;
}

bool earn_tick_due(struct earn_run *run, uint64_t now_ns)
{
    if (now_ns < atomic_load_explicit(&run->tick_ns, memory_order_relaxed)) return false;
    atomic_store_explicit(&run->tick_ns, now_ns + EARN_TICK_NS, memory_order_relaxed);
    return true;
}

/* ---- kernels ---- */

uint64_t earn_kernel_id(const void *function, uint64_t threads, uint64_t reach)
{
    unsigned magnitude = threads ? (unsigned)(63 - __builtin_clzll(threads)) / 2 : 0;
    uint64_t id = ((uintptr_t)function ^ reach) + magnitude * 0x9e3779b97f4a7c15ull;
    id = (id ^ id >> 30) * 0xbf58476d1ce4e5b9ull;
    id = (id ^ id >> 27) * 0x94d049bb133111ebull;
    return id ^ id >> 31;
}

bool earn_kernels_have(const struct earn_kernels *kernels, uint64_t kernel)
{
    uint64_t one = kernels->words[kernel >> 6 & (EARN_KERNEL_WORDS - 1)] >> (kernel & 63);
    uint64_t two = kernels->words[kernel >> 38 & (EARN_KERNEL_WORDS - 1)] >> (kernel >> 32 & 63);
    return one & two & 1;
}

void earn_kernels_add(struct earn_kernels *kernels, uint64_t kernel)
{
    kernels->words[kernel >> 6 & (EARN_KERNEL_WORDS - 1)] |= 1ull << (kernel & 63);
    kernels->words[kernel >> 38 & (EARN_KERNEL_WORDS - 1)] |= 1ull << (kernel >> 32 & 63);
}

void earn_kernels_join(struct earn_kernels *kernels, const struct earn_kernels *more)
{
    for (unsigned i = 0; i < EARN_KERNEL_WORDS; i++) kernels->words[i] |= more->words[i];
}

bool earn_run_kernels_among(const struct earn_run *run, const struct earn_kernels *kernels)
{
    bool any = false;
    for (unsigned i = 0; i < EARN_KERNEL_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&run->met[i], memory_order_relaxed);
        if (word & ~kernels->words[i]) return false;
        any |= word != 0;
    }
    return any;
}

void earn_announce(struct earn_run *run, uint64_t kernel, uint64_t now_ns)
{
    atomic_store(&run->told_ns, now_ns);
    atomic_fetch_or(&run->met[kernel >> 6 & (EARN_KERNEL_WORDS - 1)], 1ull << (kernel & 63));
    atomic_fetch_or(&run->met[kernel >> 38 & (EARN_KERNEL_WORDS - 1)], 1ull << (kernel >> 32 & 63));
}

/* ---- what a window was told of them ---- */

bool earn_was_told(const struct earn_window *window, const struct earn_run *run)
{
    return window->told_forgets == atomic_load_explicit(&run->forgets, memory_order_relaxed);
}

void earn_tell(struct earn_window *window, const struct earn_run *run, enum cost_class kernels, double loss_ns)
{
    bool more = earn_was_told(window, run);
    window->told_forgets = atomic_load_explicit(&run->forgets, memory_order_relaxed);
    if (!more || window->told_class < kernels) window->told_class = kernels;
    if (!more || window->told_loss_ns < loss_ns) window->told_loss_ns = loss_ns;
}

enum cost_class earn_told_class(const struct earn_window *window, const struct earn_run *run)
{
    return earn_was_told(window, run) ? window->told_class : COST_UNKNOWN;
}

double earn_told_loss_ns(const struct earn_window *window, const struct earn_run *run)
{
    return earn_was_told(window, run) ? window->told_loss_ns : __builtin_inf();
}

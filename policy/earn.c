#include "earn.h"

#include <string.h>

enum {
    GROUP_COPIES = 64,      /* a period ends after so many copies even if none repeats the anchor */
    REFERENCE_PERIODS = 16, /* seen on the device before a trial */
    JUDGED_PERIODS = 32,
    WARMUP_PERIODS = 4, /* of a start from a profile: modules load, caches fill */
    FAILURES_MOST = 20,
    LEARNED_MOST = 10,
    UNSTEADY_MOST = 64, /* then the loop is taken to be like that */
};
#define SETTLE_BLOCK_NS 50000000ull /* a slow loop's block of periods ends early */
#define PROVEN_FACTOR   4           /* worst case of kernels that ran well with the window on the host before */
#define LAUNCH_NS       2000.0      /* no two launches are closer */
#define TURN_NS         20000000.0  /* a trial without a copy keeps its turn at least so long */

/* ---- the run ---- */

void earn_run_begin(struct earn_run *run, const struct cost *cost, double regret, uint64_t now_ns)
{
    memset(run, 0, sizeof *run);
    run->cost = cost;
    run->regret = regret;
    run->start_ns = now_ns;
    atomic_store(&run->cleared_ns, now_ns);
    atomic_store(&run->kernels_class, COST_CLASSES);
}

double earn_budget_ns(const struct earn_run *run, uint64_t now_ns)
{
    return run->regret * (double)(now_ns - run->start_ns) + (double)EARN_CONSTANT_NS -
           (double)atomic_load_explicit(&run->spent_ns, memory_order_relaxed);
}

static enum cost_class run_class(const struct earn_run *run)
{
    unsigned worst = atomic_load_explicit(&run->kernels_class, memory_order_relaxed);
    return worst < COST_CLASSES ? (enum cost_class)worst : COST_UNKNOWN;
}

/* Asks for every kernel to be told again: after a move to the host, or to learn what runs now. */
static void run_forget_kernels(struct earn_run *run, uint64_t now_ns)
{
    atomic_store(&run->kernels_class, COST_CLASSES);
    atomic_store(&run->kernels_loss_ns, 0);
    atomic_store(&run->cleared_ns, now_ns);
    atomic_store(&run->told_ns, now_ns);
    for (unsigned i = 0; i < EARN_KERNEL_WORDS; i++) atomic_store(&run->met[i], 0);
}

static bool run_other_on_trial(const struct earn_run *run, const struct earn_window *window, uint64_t now_ns)
{
    uintptr_t trial = atomic_load_explicit(&run->trial, memory_order_relaxed);
    return trial && trial != (uintptr_t)window &&
           now_ns < atomic_load_explicit(&run->trial_end_ns, memory_order_relaxed);
}

static bool run_take_turn(struct earn_run *run, const struct earn_window *window, uint64_t now_ns)
{
    uintptr_t trial = atomic_load(&run->trial);
    if (trial && trial != (uintptr_t)window && now_ns < atomic_load(&run->trial_end_ns)) return false;
    return atomic_compare_exchange_strong(&run->trial, &trial, (uintptr_t)window);
}

static void run_end_turn(struct earn_run *run, const struct earn_window *window)
{
    uintptr_t self = (uintptr_t)window;
    atomic_compare_exchange_strong(&run->trial, &self, 0);
}

static bool run_has_turn(const struct earn_run *run, const struct earn_window *window)
{
    return atomic_load_explicit(&run->trial, memory_order_relaxed) == (uintptr_t)window;
}

static void run_next_epoch(struct earn_run *run, struct earn_window *window)
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

uint64_t earn_kernel_id(const void *function, uint64_t threads)
{
    unsigned magnitude = threads ? (unsigned)(63 - __builtin_clzll(threads)) / 2 : 0;
    uint64_t id = (uintptr_t)function + magnitude * 0x9e3779b97f4a7c15ull;
    id = (id ^ id >> 30) * 0xbf58476d1ce4e5b9ull;
    id = (id ^ id >> 27) * 0x94d049bb133111ebull;
    return id ^ id >> 31;
}

static bool kernels_have(const struct earn_kernels *kernels, uint64_t kernel)
{
    uint64_t one = kernels->words[kernel >> 6 & (EARN_KERNEL_WORDS - 1)] >> (kernel & 63);
    uint64_t two = kernels->words[kernel >> 38 & (EARN_KERNEL_WORDS - 1)] >> (kernel >> 32 & 63);
    return one & two & 1;
}

static void kernels_add(struct earn_kernels *kernels, uint64_t kernel)
{
    kernels->words[kernel >> 6 & (EARN_KERNEL_WORDS - 1)] |= 1ull << (kernel & 63);
    kernels->words[kernel >> 38 & (EARN_KERNEL_WORDS - 1)] |= 1ull << (kernel >> 32 & 63);
}

static void kernels_join(struct earn_kernels *kernels, const struct earn_kernels *more)
{
    for (unsigned i = 0; i < EARN_KERNEL_WORDS; i++) kernels->words[i] |= more->words[i];
}

/* Every kernel that was told is among `kernels`, and there was one. */
static bool run_kernels_among(const struct earn_run *run, const struct earn_kernels *kernels)
{
    bool any = false;
    for (unsigned i = 0; i < EARN_KERNEL_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&run->met[i], memory_order_relaxed);
        if (word & ~kernels->words[i]) return false;
        any |= word != 0;
    }
    return any;
}

void earn_announce(struct earn_run *run, uint64_t kernel, enum cost_class kernels, double loss_ns, uint64_t now_ns)
{
    atomic_store(&run->told_ns, now_ns);
    uint64_t loss = loss_ns >= 0 && loss_ns < 1e15 ? (uint64_t)loss_ns : UINT64_MAX;
    uint64_t most = atomic_load(&run->kernels_loss_ns);
    while (most < loss && !atomic_compare_exchange_weak(&run->kernels_loss_ns, &most, loss)) {
    }
    unsigned worst = atomic_load(&run->kernels_class);
    while ((worst == COST_CLASSES || worst < (unsigned)kernels) &&
           !atomic_compare_exchange_weak(&run->kernels_class, &worst, (unsigned)kernels)) {
    }
    atomic_fetch_or(&run->met[kernel >> 6 & (EARN_KERNEL_WORDS - 1)], 1ull << (kernel & 63));
    atomic_fetch_or(&run->met[kernel >> 38 & (EARN_KERNEL_WORDS - 1)], 1ull << (kernel >> 32 & 63));
}

/* ---- a window's life ---- */

static double window_copies(const struct earn_window *window)
{
    return window->period_count > 0 ? window->period_copies / window->period_count : 1;
}

static void window_forget_periods(struct earn_window *window)
{
    periods_clear(&window->periods);
    window->native_ns = window->period_copies = window->period_count = 0;
}

/* What the stay on the host is compared with: the device's periods, per copy. */
static void window_set_reference(struct earn_window *window, double usual_ns, double mean_ns, double high_ns)
{
    window->usual_ns = usual_ns;
    window->mean_ns = mean_ns;
    window->clip_ns = 4 * usual_ns;
    window->alarm_ns = 1.5 * high_ns > window->clip_ns ? 1.5 * high_ns : window->clip_ns;
}

static void window_begin_stay(struct earn_window *window, struct earn_run *run, bool from_past, uint64_t now_ns)
{
    double round_trip = cost_round_trip_ns(run->cost, window->bytes);
    double period = window->usual_ns * window_copies(window);
    unsigned patience = window->patience;
    window->place = EARN_HOST;
    window->state = EARN_TRYING;
    window->from_past = from_past;
    window->excess_ns = 0;
    window->balance_ns = 0;
    window->bar_ns = 2 * round_trip > 4 * period ? 2 * round_trip : 4 * period;
    while (patience-- && 2 * window->bar_ns < (window->gained_ns - window->lost_ns) / 2) window->bar_ns *= 2;
    window->late_ns = period > 0 ? 4 * period + window->bar_ns / 2 : __builtin_inf();
    window->clipped_ns = 0;
    window->start_ns = now_ns;
    window->copies_in_period = 0;
    window->last_ns = now_ns;
    window->skip = 0;
    window->rebase = false;
    window->drifted = 0;
    window->learned = 0;
    memset(&window->met, 0, sizeof window->met);
    for (unsigned i = 0; i < EARN_KERNEL_WORDS; i++) window->seen.words[i] = atomic_load(&run->met[i]);
    periods_clear(&window->periods);
    run_forget_kernels(run, now_ns);
}

static void window_end_stay(struct earn_window *window, struct earn_run *run)
{
    if (window->settled) atomic_fetch_sub(&run->settled, 1);
    window->settled = false;
    if (window->balance_ns >= 0) {
        window->gained_ns += window->balance_ns;
    } else {
        window->lost_ns -= window->balance_ns;
        atomic_fetch_add(&run->spent_ns, (uint64_t)-window->balance_ns);
    }
    window->balance_ns = 0;
}

void earn_begin(struct earn_window *window, struct earn_run *run, uint64_t live_bytes, const struct earn_past *past,
                uint64_t now_ns)
{
    memset(window, 0, sizeof *window);
    window->bytes = live_bytes;
    window->reason = "too few copies yet";
    window->epoch = atomic_load(&run->epoch);
    window->recheck_every_ns = EARN_RECHECK_NS;
    window->needed_ns = cost_round_trip_ns(run->cost, live_bytes);
    if (!past) return;
    window->failures = past->failures < FAILURES_MOST ? past->failures : FAILURES_MOST;
    if (past->place == EARN_DEVICE) {
        window->reason = "an earlier run or window ended on the device";
        return;
    }
    window_set_reference(window, past->device_ns, past->device_ns, 0);
    window->host_ns = past->host_ns;
    window->kernels_ns = past->device_ns;
    window->charge_ns = (cost_worst_factor(run->cost, live_bytes, COST_UNKNOWN) - 1) * past->device_ns;
    window_begin_stay(window, run, true, now_ns);
    window->start_ns = 0;
    window->reason = "an earlier run or window ended on the host";
}

void earn_end(struct earn_window *window, struct earn_run *run)
{
    run_end_turn(run, window);
    if (window->place == EARN_HOST) window_end_stay(window, run);
}

void earn_bytes(struct earn_window *window, uint64_t live_bytes) { window->bytes = live_bytes; }

struct earn_past earn_past_of(const struct earn_window *window)
{
    struct earn_past past = {window->place, window->failures, window->usual_ns, window->host_ns, window->evidence_ns};
    if (window->place == EARN_DEVICE && window->periods.count >= 8) past.device_ns = periods_usual(&window->periods);
    return past;
}

void earn_fix(struct earn_window *window, struct earn_run *run, const char *reason)
{
    run_end_turn(run, window);
    window->state = EARN_FIXED;
    window->asked = EARN_STAY;
    window->reason = reason;
}

void earn_free_again(struct earn_window *window, const char *reason)
{
    if (window->state != EARN_FIXED || window->failed) return;
    window->state = window->place == EARN_HOST ? EARN_TRYING : EARN_WATCHING;
    window->from_past = true;
    window->start_ns = 0;
    window->reason = reason;
    window_forget_periods(window);
}

/* ---- moves ---- */

static void host_charge(struct earn_window *window, double over_ns)
{
    window->excess_ns += over_ns;
    if (window->excess_ns < 0) window->excess_ns = 0;
    window->balance_ns -= over_ns < window->charge_ns ? over_ns : window->charge_ns;
}

/* Asks for the way back. */
static enum earn_decision window_ask_back(struct earn_window *window, struct earn_run *run, const char *reason,
                                          double evidence)
{
    host_charge(window, window->clipped_ns);
    window->clipped_ns = 0;
    window->needed_ns = cost_round_trip_ns(run->cost, window->bytes) * (double)(1u << window->failures);
    window->evidence_ns = evidence * window->needed_ns;
    window->reason = reason;
    window->asked = EARN_TO_DEVICE;
    window->busy = window->skip = 0;
    return EARN_TO_DEVICE;
}

/* Back for reasons that say nothing against the host: part of the evidence for the next trial is granted. */
static enum earn_decision window_go_back(struct earn_window *window, struct earn_run *run, const char *reason,
                                         double evidence)
{
    window->hiccup = false;
    return window_ask_back(window, run, reason, evidence);
}

/* Back because of what was seen on the host: a stay that lost makes the next trial harder, by a factor of 2^lessons. */
static enum earn_decision window_give_up(struct earn_window *window, struct earn_run *run, const char *reason,
                                         unsigned lessons)
{
    bool lost = window->balance_ns < 0 || window->state == EARN_TRYING;
    window->hiccup = !lost;
    if (lost) {
        window->failures = window->failures + lessons < FAILURES_MOST ? window->failures + lessons : FAILURES_MOST;
        window->patience = 0;
    } else {
        window->failures /= 2;
    }
    if (lost || window->excess_ns > 4 * window->bar_ns)
        for (unsigned i = 0; i < EARN_KERNEL_WORDS; i++) window->proven.words[i] &= ~window->met.words[i];
    return window_ask_back(window, run, reason, 0);
}

/* The verdict on a usual period on the host. */
static unsigned lessons_of(const struct earn_window *window, double host_ns)
{
    return host_ns > 1.5 * window->usual_ns ? 3 : 1;
}

static void window_moved_to_host(struct earn_window *window, struct earn_run *run, double cost_ns, uint64_t now_ns)
{
    bool on_trial = run_has_turn(run, window);
    double period = window->usual_ns * window_copies(window);
    window->moves_to_host++;
    if (on_trial) {
        window->trials++;
    } else {
        window_set_reference(window, 0, 0, 0);
        window->reason = "moved for another reason than to earn";
    }
    window_begin_stay(window, run, !on_trial, now_ns);
    window->balance_ns = -cost_ns;
    atomic_store(&run->trial_end_ns, now_ns + (uint64_t)(64 * period > TURN_NS ? 64 * period : TURN_NS));
    run_next_epoch(run, window);
}

static void window_moved_to_device(struct earn_window *window, struct earn_run *run, double cost_ns, uint64_t now_ns)
{
    window->moves_to_device++;
    atomic_fetch_add(&run->moved, 1);
    if (window->place == EARN_HOST) {
        window->returns++;
        window->balance_ns -= cost_ns;
        window_end_stay(window, run);
    }
    window->place = EARN_DEVICE;
    if (window->state != EARN_FIXED) window->state = EARN_WATCHING;
    window_forget_periods(window);
    window->start_ns = now_ns;
    window->copies_in_period = 0;
    window->last_ns = now_ns;
    run_end_turn(run, window);
    run_next_epoch(run, window);
}

void earn_moved(struct earn_window *window, struct earn_run *run, enum earn_place place, enum earn_answer answer,
                double cost_ns, uint64_t now_ns)
{
    window->skip = 0;
    if (answer == EARN_BUSY) {
        if (place == EARN_DEVICE) atomic_fetch_add(&run->refused, 1);
        if (window->busy < 6) window->busy++;
        window->skip = 1u << window->busy >> 1;
        if (place == EARN_HOST) {
            window->asked = EARN_STAY;
            run_end_turn(run, window);
        }
        return;
    }
    window->asked = EARN_STAY;
    window->busy = 0;
    if (answer == EARN_FAILED) {
        window->failed = true;
        earn_fix(window, run,
                 place == EARN_HOST ? "the driver refused to move it to the host"
                                    : "the driver refused to move it back");
    } else if (place == EARN_HOST) {
        window_moved_to_host(window, run, cost_ns, now_ns);
    } else {
        window_moved_to_device(window, run, cost_ns, now_ns);
    }
}

/* ---- on the device: evidence, then a trial ---- */

/* The most that a period of the device's loop can lose on the host. */
static double window_worst_ns(const struct earn_window *window, const struct earn_run *run, double kernels_ns)
{
    double factor = cost_worst_factor(run->cost, window->bytes, run_class(run));
    uint64_t loss = atomic_load_explicit(&run->kernels_loss_ns, memory_order_relaxed);
    if (factor > PROVEN_FACTOR && run_kernels_among(run, &window->proven)) factor = PROVEN_FACTOR;
    double worst = (factor - 1) * kernels_ns;
    double launches = 1 + kernels_ns / LAUNCH_NS;
    bool told = atomic_load_explicit(&run->kernels_class, memory_order_relaxed) != COST_CLASSES;
    if (told && loss != UINT64_MAX && launches * (double)loss < worst) worst = launches * (double)loss;
    /* A way back that is refused costs further periods. */
    return worst * (1 + (double)atomic_load(&run->refused) / (1 + (double)atomic_load(&run->moved)));
}

static enum earn_decision window_consider(struct earn_window *window, struct earn_run *run, uint64_t now_ns)
{
    double round_trip = cost_round_trip_ns(run->cost, window->bytes);
    window->needed_ns = round_trip * (double)(1u << window->failures);
    if (window->evidence_ns < window->needed_ns || window->periods.count < REFERENCE_PERIODS) return EARN_STAY;

    double copies = window_copies(window), usual = periods_usual(&window->periods), period = usual * copies;
    double since_told = (double)(now_ns - atomic_load(&run->cleared_ns));
    window->skip = 4;
    if (run_other_on_trial(run, window, now_ns)) {
        window->reason = "waits for another trial to end";
        return EARN_STAY;
    }
    if (window->quiet < 8) return EARN_STAY;
    if (!periods_steady(&window->periods, 0.25) && window->unsteady < UNSTEADY_MOST) {
        window->unsteady++;
        window->reason = "its loop is changing";
        return EARN_STAY;
    }
    window->unsteady = 0;

    double kernels_ns = period - window->native_ns / window->period_count;
    if (kernels_ns < period / 8) kernels_ns = period / 8;
    double high = periods_second_longest(&window->periods);
    window_set_reference(window, usual, periods_clipped_mean(&window->periods, 4 * usual),
                         high > window->learned_high_ns ? high : window->learned_high_ns);
    double worst = window_worst_ns(window, run, kernels_ns);
    if (period + worst < window->alarm_ns * copies) worst *= 2; /* the first such period would pass for a pause */
    double bar = round_trip > 2 * period ? round_trip : 2 * period;
    if (worst + bar + round_trip > earn_budget_ns(run, now_ns)) {
        window->reason = "the worst case of a trial does not fit in the regret budget yet";
        window->skip = 32;
        if (run_class(run) != COST_PLAIN && since_told > 64 * period &&
            since_told > 1e7 * (double)(1u << window->learned)) {
            if (window->learned < LEARNED_MOST) window->learned++;
            run_forget_kernels(run, now_ns);
        }
        return EARN_STAY;
    }
    if (since_told > 24 * period) { /* what is known of the kernels should be of this loop */
        window->reason = "which kernels its loop runs is being learned";
        run_forget_kernels(run, now_ns);
        return EARN_STAY;
    }
    if (!run_take_turn(run, window, now_ns)) return EARN_STAY;
    atomic_store(&run->trial_end_ns, now_ns + (uint64_t)TURN_NS);

    window->charge_ns = 1.5 * (cost_worst_factor(run->cost, window->bytes, COST_UNKNOWN) - 1) * kernels_ns;
    window->median_ns = periods_median(&window->periods);
    window->kernels_ns = kernels_ns;
    window->was_ns = usual;
    window->reason = "on trial: its copies would have paid for the move";
    return window->asked = EARN_TRY_HOST;
}

static enum earn_decision device_period(struct earn_window *window, struct earn_run *run, double period_ns,
                                        double copy_ns, uint64_t now_ns)
{
    uint64_t told_ns = atomic_load_explicit(&run->told_ns, memory_order_relaxed);
    window->quiet = told_ns == window->told_ns ? window->quiet + 1 : 0;
    window->told_ns = told_ns;
    periods_add(&window->periods, copy_ns);
    if (copy_ns > window->outlier_ns / 2 && copy_ns < window->outlier_ns * 2 && copy_ns > window->learned_high_ns)
        window->learned_high_ns = copy_ns;
    if (window->strange_watch) {
        window->strange_watch--;
        if (period_ns > window->strange_ns) window->strange_ns = period_ns;
    }
    if (window->evidence_ns < window->needed_ns) return EARN_STAY;
    if (window->skip) {
        window->skip--;
        return EARN_STAY;
    }
    return window_consider(window, run, now_ns);
}

/* ---- on the host: judged, then watched ---- */

static enum earn_decision window_settle(struct earn_window *window, struct earn_run *run, double usual_ns,
                                        uint64_t now_ns)
{
    if (window->usual_ns <= 0) window_set_reference(window, 1.25 * usual_ns, 1.25 * usual_ns, 2 * usual_ns);
    window->state = EARN_SETTLED;
    window->settled = true;
    window->unexplained = 0;
    window->reason = "its loop is faster on the host";
    window->excess_ns = 0;
    window->host_ns = periods_clipped_mean(&window->periods, window->clip_ns);
    window->block_ns = 0;
    window->block_count = 0;
    window->block_start_ns = now_ns;
    window->settled_ns = now_ns;
    if (window->rechecking && window->recheck_every_ns < EARN_RECHECK_MOST_NS) window->recheck_every_ns *= 2;
    window->rechecking = false;
    if (window->hiccup && window->patience < 6) window->patience++;
    window->hiccup = false;
    kernels_join(&window->proven, &window->met);
    window->recheck_ns = now_ns + window->recheck_every_ns * (1 + atomic_fetch_add(&run->settled, 1));
    run_end_turn(run, window);
    run_next_epoch(run, window);
    return EARN_STAY;
}

/* Nothing but elided copies makes a period shorter; a gain far beyond theirs means that the loop itself has changed.
 * Once is believed. */
static bool trial_explained(const struct earn_window *window, double gain_ns)
{
    double copies = window->cached_saved_ns[COST_H2D] > window->cached_saved_ns[COST_D2H]
                        ? window->cached_saved_ns[COST_H2D]
                        : window->cached_saved_ns[COST_D2H];
    return gain_ns <= 2 * copies + 0.15 * window->usual_ns || window->unexplained;
}

static const char far_above[] = "a period on the host was far above the usual one";

static enum earn_decision trial_period(struct earn_window *window, struct earn_run *run, double copy_ns,
                                       uint64_t now_ns)
{
    unsigned count = window->periods.count;
    double usual = window->usual_ns;
    if (window->from_past && count <= WARMUP_PERIODS) {
        window->excess_ns = 0;
        if (window->balance_ns < 0) window->balance_ns = 0;
        return EARN_STAY;
    }
    if (!window->from_past) {
        double turn = 64 * usual * window_copies(window);
        if (!run_has_turn(run, window)) return window_go_back(window, run, "its trial was interrupted", 1);
        atomic_store_explicit(&run->trial_end_ns, now_ns + (uint64_t)(turn > TURN_NS ? turn : TURN_NS),
                              memory_order_relaxed);
    }
    if (window->excess_ns > window->bar_ns / 2) {
        window->tried_ns = periods_usual(&window->periods);
        if (copy_ns <= window->alarm_ns)
            return window_give_up(window, run, "slower on the host", lessons_of(window, window->tried_ns));
        window->outlier_ns = copy_ns;
        return window_give_up(window, run, far_above, 2);
    }
    if (count < 4 || (count & (count - 1)) || count > JUDGED_PERIODS) return EARN_STAY;

    double mid = periods_usual(&window->periods);
    double limit = count == 8 ? 0.7 : count == 16 ? 0.8 : count == 32 ? 0.95 : 0;
    window->tried_ns = mid;
    if (usual <= 0) return count < JUDGED_PERIODS ? EARN_STAY : window_settle(window, run, mid, now_ns);
    if (mid <= limit * usual && !trial_explained(window, usual - mid)) {
        window->unexplained++;
        return window_go_back(window, run, "its loop changed during the trial", 1);
    }
    if (mid <= limit * usual && periods_clipped_mean(&window->periods, window->clip_ns) <= window->mean_ns &&
        (window->median_ns <= 0 || periods_median(&window->periods) < 0.97 * window->median_ns))
        return window_settle(window, run, mid, now_ns);
    if (mid > 1.25 * usual) return window_give_up(window, run, "slower on the host", lessons_of(window, mid));
    if (count == JUDGED_PERIODS) return window_give_up(window, run, "not clearly faster on the host", 1);
    return EARN_STAY;
}

/* The end of a block of settled periods: has the loop changed, or is it time to compare again? */
static enum earn_decision settled_block(struct earn_window *window, struct earn_run *run, uint64_t now_ns)
{
    double mean = window->block_ns / window->block_count;
    double before = window->host_ns;
    window->block_ns = 0;
    window->block_count = 0;
    window->block_start_ns = now_ns;
    if (window->rebase) {
        double shift = before - mean, scale = window->alarm_ns / window->usual_ns;
        window->rebase = false;
        if (shift <= 0 || window->usual_ns - shift <= mean) return EARN_STAY;
        window_set_reference(window, window->usual_ns - shift, window->mean_ns - shift, 0);
        window->alarm_ns = scale * window->usual_ns;
        window->host_ns = mean;
        return EARN_STAY;
    }
    window->drifted = mean > 1.25 * before || mean < 0.75 * before ? window->drifted + 1 : 0;
    bool drift = window->drifted >= 2 && now_ns - window->settled_ns > window->recheck_every_ns / 16;
    if (!drift && now_ns < window->recheck_ns) return EARN_STAY;

    double again = window_worst_ns(window, run, window->kernels_ns) + window->bar_ns +
                   2 * cost_round_trip_ns(run->cost, window->bytes);
    if (again > earn_budget_ns(run, now_ns)) return EARN_STAY;
    window->rechecking = true;
    return window_go_back(window, run,
                          drift ? "to compare again: its period has drifted" : "to compare again after a while", 1);
}

static enum earn_decision settled_period(struct earn_window *window, struct earn_run *run, double copy_ns,
                                         uint64_t now_ns)
{
    if (window->excess_ns > window->bar_ns) {
        if (copy_ns <= window->alarm_ns) return window_give_up(window, run, "has become slower than on the device", 1);
        window->outlier_ns = copy_ns;
        return window_give_up(window, run, far_above, 2);
    }
    window->block_ns += copy_ns < window->clip_ns ? copy_ns : window->clip_ns;
    window->block_count++;
    if (window->block_count < 64 && (window->block_count < 8 || now_ns - window->block_start_ns < SETTLE_BLOCK_NS))
        return EARN_STAY;
    return settled_block(window, run, now_ns);
}

/* Periods up to the alarm were seen on the device, too: they count as at most 4 times the usual one, unless there are
 * two in a row. */
static void host_count(struct earn_window *window, double copies, double copy_ns)
{
    if (window->mean_ns <= 0) return;
    double over = (copy_ns - window->mean_ns) * copies, before = window->clipped_ns;
    bool natural = copy_ns > window->clip_ns && copy_ns <= window->alarm_ns;
    window->clipped_ns = 0;
    if (natural && before > 0) over += before;
    if (natural && before <= 0) {
        window->clipped_ns = (copy_ns - window->clip_ns) * copies;
        over -= window->clipped_ns;
    }
    host_charge(window, over);
}

static enum earn_decision host_period(struct earn_window *window, struct earn_run *run, double copies, double copy_ns,
                                      uint64_t now_ns)
{
    if (window->state == EARN_SETTLED && run_other_on_trial(run, window, now_ns)) {
        window->block_ns = 0; /* what the loop does now is that trial's doing */
        window->block_count = 0;
        window->block_start_ns = now_ns;
        return EARN_STAY;
    }
    host_count(window, copies, copy_ns);
    if (window->state == EARN_SETTLED) return settled_period(window, run, copy_ns, now_ns);
    periods_add(&window->periods, copy_ns);
    return trial_period(window, run, copy_ns, now_ns);
}

/* ---- copies ---- */

/* A move back that was refused is asked for again, ever more rarely. */
static enum earn_decision window_ask_again(struct earn_window *window)
{
    if (__builtin_expect(window->asked != EARN_TO_DEVICE, 1)) return EARN_STAY;
    if (!window->skip) return EARN_TO_DEVICE;
    window->skip--;
    return EARN_STAY;
}

static enum earn_decision window_period(struct earn_window *window, struct earn_run *run, double period_ns,
                                        uint32_t copies, uint64_t now_ns)
{
    uint32_t epoch = atomic_load_explicit(&run->epoch, memory_order_relaxed);
    double copy_ns = period_ns / copies;
    if (__builtin_expect(window->asked == EARN_TO_DEVICE, 0)) {
        host_count(window, copies, copy_ns);
        return window_ask_again(window);
    }
    if (__builtin_expect(epoch != window->epoch, 0)) {
        window->epoch = epoch;
        if (window->place == EARN_DEVICE) {
            window_forget_periods(window);
            return EARN_STAY;
        }
        if (window->state == EARN_TRYING && !window->from_past)
            return window_go_back(window, run, "another window moved during its trial", 1);
        window->rebase = true;
        window->block_ns = 0;
        window->block_count = 0;
        window->block_start_ns = now_ns;
    }
    window->period_copies += copies;
    window->period_count++;
    if (window->period_count >= 64) {
        window->period_count /= 2;
        window->period_copies /= 2;
        window->native_ns /= 2;
    }
    if (window->place == EARN_DEVICE) return device_period(window, run, period_ns, copy_ns, now_ns);
    return host_period(window, run, copies, copy_ns, now_ns);
}

static void window_price(struct earn_window *window, const struct cost *cost, enum cost_direction direction,
                         uint64_t bytes)
{
    window->cached_bytes[direction] = bytes + 1;
    window->cached_native_ns[direction] = cost_native_ns(cost, direction, bytes);
    window->cached_saved_ns[direction] = cost_saved_ns(cost, direction, bytes);
}

enum earn_decision earn_copy(struct earn_window *window, struct earn_run *run, const struct earn_copy *copy)
{
    enum cost_direction direction = copy->direction;
    uint64_t now_ns = copy->now_ns, key = copy->offset << 1 | direction;

    if (window->cached_bytes[direction] != copy->bytes + 1) window_price(window, run->cost, direction, copy->bytes);
    window->copies++;
    window->last_ns = now_ns;
    if (window->place == EARN_HOST) {
        window->elided++;
        window->saved_ns += window->cached_saved_ns[direction];
    } else if (copy->waited) {
        window->evidence_ns += window->cached_saved_ns[direction];
        window->missed_ns += window->cached_saved_ns[direction];
        window->native_ns += window->cached_native_ns[direction];
    }
    if (window->state == EARN_FIXED || !copy->waited) return EARN_STAY;
    uint32_t copies = ++window->copies_in_period;
    if (key != window->anchor && copies < GROUP_COPIES && window->start_ns &&
        (window->place == EARN_DEVICE || (double)(now_ns - window->start_ns) < window->late_ns))
        return window_ask_again(window);

    uint64_t start_ns = window->start_ns;
    window->anchor = key;
    window->start_ns = now_ns;
    window->copies_in_period = 0;
    if (!start_ns) return window_ask_again(window);
    return window_period(window, run, (double)(now_ns - start_ns), copies, now_ns);
}

/* ---- launches ---- */

enum earn_decision earn_kernel(struct earn_window *window, struct earn_run *run, uint64_t kernel,
                               enum cost_class kernels, double loss_ns, uint64_t now_ns)
{
    static const char unknown[] = "a kernel was about to run that this window had not met on the host";
    if (window->place == EARN_DEVICE || window->state == EARN_FIXED) return EARN_STAY;
    if (window->asked == EARN_TO_DEVICE) return EARN_TO_DEVICE;
    if (kernels_have(&window->met, kernel)) return EARN_STAY;

    bool expected = window->state == EARN_TRYING && (window->from_past || kernels_have(&window->seen, kernel));
    bool harmless = loss_ns < cost_round_trip_ns(run->cost, window->bytes) / 4;
    if (!expected && !harmless) {
        double worst = (cost_worst_factor(run->cost, window->bytes, kernels) - 1) * window->strange_ns + window->bar_ns;
        bool known = kernels_have(&window->strange, kernel) && window->strange_ns > 0;
        if (!known || worst > earn_budget_ns(run, now_ns)) {
            kernels_add(&window->strange, kernel);
            window->strange_watch = 2;
            return window_go_back(window, run, unknown, 0.5);
        }
    }
    kernels_add(&window->met, kernel);
    return EARN_STAY;
}

enum earn_decision earn_tick(struct earn_window *window, struct earn_run *run, uint64_t now_ns)
{
    if (window->place == EARN_DEVICE || window->state == EARN_FIXED) return EARN_STAY;
    if (window->asked == EARN_TO_DEVICE) return EARN_TO_DEVICE;
    if (window->state == EARN_SETTLED && run_other_on_trial(run, window, now_ns)) return EARN_STAY;

    double copies = window_copies(window);
    double waited = now_ns > window->last_ns ? (double)(now_ns - window->last_ns) : 0;
    double over = waited - window->mean_ns * copies;
    double bar = window->state == EARN_SETTLED ? window->bar_ns : window->bar_ns / 2;
    if (waited / copies <= window->alarm_ns || window->excess_ns + over <= bar) return EARN_STAY;
    if (window->mean_ns <= 0 && waited < TURN_NS) return EARN_STAY;
    window->outlier_ns = waited / copies;
    host_charge(window, over);
    return window_give_up(window, run, "no longer copied while kernels run", 1);
}

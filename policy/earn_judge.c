#include "earn_inside.h"

enum {
    REFERENCE_PERIODS = 16, /* seen on the device before a trial */
    JUDGED_PERIODS = 32,
    QUIET_PERIODS = 8,  /* without a new kernel before a trial */
    LOOP_PERIODS = 24,  /* a kernel that did not run for so long is no part of the loop */
    UNSTEADY_MOST = 64, /* refusals; then the loop is taken to be like that */
    LEARNED_MOST = 10,
};
#define SETTLE_BLOCK_NS 50000000ull /* a slow loop's block of periods ends early */
#define PROVEN_FACTOR   4           /* worst case of kernels that ran well with the window on the host before */
#define LAUNCH_NS       2000.0      /* no two launches are closer */

/* ---- on the device: evidence, then a trial ---- */

/* The most that a period of the device's loop can lose on the host. */
static double window_worst_ns(const struct earn_window *window, const struct earn_run *run, double kernels_ns)
{
    double factor = cost_worst_factor(run->cost, window->bytes, earn_told_class(window, run));
    double loss = earn_told_loss_ns(window, run);
    if (factor > PROVEN_FACTOR && earn_run_kernels_among(run, &window->proven)) factor = PROVEN_FACTOR;
    double worst = (factor - 1) * kernels_ns;
    double launches = window->most_submitted ? (double)window->most_submitted : 1 + kernels_ns / LAUNCH_NS;
    if (launches * loss < worst) worst = launches * loss;
    /* A way back that is refused costs further periods. */
    return worst * (1 + (double)atomic_load(&run->refused) / (1 + (double)atomic_load(&run->moved)));
}

static const char being_learned[] = "which kernels its loop runs is being learned";

static enum earn_decision window_consider(struct earn_window *window, struct earn_run *run, uint64_t now_ns)
{
    double round_trip = cost_round_trip_ns(run->cost, window->bytes);
    double moves = round_trip;
    if (!atomic_load_explicit(&run->first_made, memory_order_relaxed)) moves += EARN_FIRST_NS;
    window->needed_ns = moves * (double)(1u << window->failures);
    if (window->evidence_ns < window->needed_ns || window->periods.count < REFERENCE_PERIODS) return EARN_STAY;

    double copies = periods_mean_copies(&window->periods), usual = periods_usual(&window->periods),
           period = usual * copies;
    double since_told = (double)(now_ns - atomic_load(&run->cleared_ns));
    window->skip = 4;
    if (earn_run_other_on_trial(run, window, now_ns)) {
        window->reason = "waits for another trial to end";
        return EARN_STAY;
    }
    if (window->quiet < QUIET_PERIODS) return EARN_STAY;
    if (!periods_steady(&window->periods, 0.25) && window->unsteady < UNSTEADY_MOST) {
        window->unsteady++;
        window->reason = "its loop is changing";
        return EARN_STAY;
    }
    window->unsteady = 0;
    if (!atomic_exchange(&run->learning, true)) {
        window->reason = being_learned;
        earn_run_forget_kernels(run, now_ns);
        return EARN_STAY;
    }

    double kernels_ns = period - periods_mean_native_ns(&window->periods);
    if (kernels_ns < period / 8) kernels_ns = period / 8;
    double high = periods_second_longest(&window->periods);
    earn_set_reference(window, usual, periods_clipped_mean(&window->periods, 4 * usual),
                       high > window->learned_high_ns ? high : window->learned_high_ns);
    double swing = high / usual; /* a longer kernel loses more; longer still is a pause */
    double worst = window_worst_ns(window, run, kernels_ns * (swing < 1 ? 1 : swing > 1.5 ? 1.5 : swing));
    if (period + worst < window->alarm_ns * copies) worst *= 2; /* the first such period would pass for a pause */
    double bar = round_trip > 2 * period ? round_trip : 2 * period;
    if (worst + bar + moves > earn_budget_ns(run, now_ns)) {
        window->reason = "the worst case of a trial does not fit in the regret budget yet";
        window->skip = 32;
        double patience = earn_was_told(window, run) ? 1e7 * (double)(1u << window->learned) : 0;
        if (earn_told_class(window, run) != COST_PLAIN && since_told > 64 * period && since_told > patience) {
            if (window->learned < LEARNED_MOST) window->learned++;
            earn_run_forget_kernels(run, now_ns);
        }
        return EARN_STAY;
    }
    if (since_told > LOOP_PERIODS * period) { /* what is known of the kernels should be of this loop */
        window->reason = being_learned;
        earn_run_forget_kernels(run, now_ns);
        return EARN_STAY;
    }
    if (!earn_run_take_turn(run, window, now_ns)) return EARN_STAY;
    atomic_store(&run->trial_end_ns, now_ns + (uint64_t)EARN_TURN_NS);

    window->charge_ns = 1.5 * (cost_worst_factor(run->cost, window->bytes, COST_UNKNOWN) - 1) * kernels_ns;
    window->median_ns = periods_median(&window->periods);
    window->mean_copies = copies;
    window->spread_ns = periods_spread(&window->periods);
    window->kernels_ns = kernels_ns;
    window->was_ns = usual;
    window->reason = "on trial: its copies would have paid for the move";
    return window->asked = EARN_TRY_HOST;
}

enum earn_decision earn_device_period(struct earn_window *window, struct earn_run *run, double period_ns, double copies,
                                      uint64_t now_ns)
{
    double copy_ns = period_ns / copies;
    uint64_t told_ns = atomic_load_explicit(&run->told_ns, memory_order_relaxed);
    window->quiet = told_ns == window->told_ns ? window->quiet + 1 : 0;
    window->told_ns = told_ns;
    periods_add(&window->periods, copy_ns, copies, window->native_ns);
    window->native_ns = 0;
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
    if (window->usual_ns <= 0) earn_set_reference(window, 1.25 * usual_ns, 1.25 * usual_ns, 2 * usual_ns);
    window->state = EARN_SETTLED;
    window->settled = true;
    window->unexplained = 0;
    window->reason = "its loop is faster on the host";
    window->excess_ns = 0;
    window->host_ns = periods_clipped_mean(&window->periods, window->clip_ns);
    if (window->from_past) window->mean_copies = periods_mean_copies(&window->periods);
    window->block_ns = 0;
    window->block_count = 0;
    window->block_start_ns = now_ns;
    window->settled_ns = now_ns;
    if (window->rechecking && window->recheck_every_ns < EARN_RECHECK_MOST_NS) window->recheck_every_ns *= 2;
    window->rechecking = false;
    if (window->hiccup && window->patience < 6) window->patience++;
    window->hiccup = false;
    earn_kernels_join(&window->proven, &window->met);
    window->recheck_ns = now_ns + window->recheck_every_ns * (1 + atomic_fetch_add(&run->settled, 1));
    earn_run_end_turn(run, window);
    earn_run_next_epoch(run, window);
    return EARN_STAY;
}

/* The verdict on a usual period on the host. */
static unsigned lessons_of(const struct earn_window *window, double host_ns)
{
    return host_ns > 1.5 * window->usual_ns ? 3 : 1;
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

/* The gain is more than the noise of both sides could feign. */
static bool trial_certain(const struct earn_window *window, double gain_ns)
{
    double spread = periods_spread(&window->periods),
           kept = window->periods.count < PERIODS_KEPT ? window->periods.count : PERIODS_KEPT;
    double variance = (spread * spread + window->spread_ns * window->spread_ns) / kept;
    return gain_ns > 0 && gain_ns * gain_ns > 6.25 * variance;
}

static const char far_above[] = "a period on the host was far above the usual one";

static enum earn_decision trial_period(struct earn_window *window, struct earn_run *run, double copy_ns,
                                       uint64_t now_ns)
{
    unsigned count = window->periods.count;
    double usual = window->usual_ns;
    if (window->warmup) {
        window->warmup--;
        window->excess_ns = 0;
        if (window->balance_ns < 0) window->balance_ns = 0;
        periods_clear(&window->periods);
        return EARN_STAY;
    }
    if (!window->from_past) {
        double turn = 64 * usual * window->mean_copies;
        if (!earn_run_has_turn(run, window)) return earn_go_back(window, run, "its trial was interrupted", 1);
        atomic_store_explicit(&run->trial_end_ns, now_ns + (uint64_t)(turn > EARN_TURN_NS ? turn : EARN_TURN_NS),
                              memory_order_relaxed);
    }
    if (window->excess_ns > window->bar_ns / 2) {
        window->tried_ns = periods_usual(&window->periods);
        if (copy_ns <= window->alarm_ns)
            return earn_give_up(window, run, "slower on the host", lessons_of(window, window->tried_ns));
        window->outlier_ns = copy_ns;
        return earn_give_up(window, run, far_above, 2);
    }
    if (count < 4 || (count & (count - 1)) || count > JUDGED_PERIODS) return EARN_STAY;

    double mid = periods_usual(&window->periods);
    double limit = count == 8 ? 0.7 : count == 16 ? 0.8 : count == 32 ? 0.95 : 0;
    window->tried_ns = mid;
    if (usual <= 0) return count < JUDGED_PERIODS ? EARN_STAY : window_settle(window, run, mid, now_ns);
    if (mid <= limit * usual && !trial_explained(window, usual - mid)) {
        window->unexplained++;
        return earn_go_back(window, run, "its loop changed during the trial", 1);
    }
    if (mid <= limit * usual && periods_clipped_mean(&window->periods, window->clip_ns) <= window->mean_ns &&
        trial_certain(window, usual - mid) &&
        (window->median_ns <= 0 || periods_median(&window->periods) < 0.97 * window->median_ns))
        return window_settle(window, run, mid, now_ns);
    if (mid > 1.25 * usual) return earn_give_up(window, run, "slower on the host", lessons_of(window, mid));
    if (count == JUDGED_PERIODS) return earn_give_up(window, run, "not clearly faster on the host", 1);
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
        earn_set_reference(window, window->usual_ns - shift, window->mean_ns - shift, 0);
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
    return earn_go_back(window, run,
                        drift ? "to compare again: its period has drifted" : "to compare again after a while", 1);
}

static enum earn_decision settled_period(struct earn_window *window, struct earn_run *run, double copy_ns,
                                         uint64_t now_ns)
{
    if (window->excess_ns > window->bar_ns) {
        if (copy_ns <= window->alarm_ns) return earn_give_up(window, run, "has become slower than on the device", 1);
        window->outlier_ns = copy_ns;
        return earn_give_up(window, run, far_above, 2);
    }
    window->block_ns += copy_ns < window->clip_ns ? copy_ns : window->clip_ns;
    window->block_count++;
    if (window->block_count < 64 && (window->block_count < 8 || now_ns - window->block_start_ns < SETTLE_BLOCK_NS))
        return EARN_STAY;
    return settled_block(window, run, now_ns);
}

/* Periods up to the alarm were seen on the device, too: they count as at most 4 times the usual one, unless there are
 * two in a row. */
void earn_count_period(struct earn_window *window, double copies, double copy_ns)
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
    earn_charge(window, over);
}

enum earn_decision earn_host_period(struct earn_window *window, struct earn_run *run, double copies, double copy_ns,
                                    uint64_t now_ns)
{
    if (window->state == EARN_SETTLED && earn_run_other_on_trial(run, window, now_ns)) {
        window->block_ns = 0; /* what the loop does now is that trial's doing */
        window->block_count = 0;
        window->block_start_ns = now_ns;
        return EARN_STAY;
    }
    earn_count_period(window, copies, copy_ns);
    if (window->state == EARN_SETTLED) return settled_period(window, run, copy_ns, now_ns);
    periods_add(&window->periods, copy_ns, copies, 0);
    return trial_period(window, run, copy_ns, now_ns);
}

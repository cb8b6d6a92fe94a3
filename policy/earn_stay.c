#include "earn_inside.h"

#include <string.h>

void earn_forget_periods(struct earn_window *window)
{
    periods_clear(&window->periods);
    window->native_ns = 0;
    window->most_submitted = 0;
    window->most_unwaited = 0;
}

void earn_set_reference(struct earn_window *window, double usual_ns, double mean_ns, double high_ns)
{
    window->usual_ns = usual_ns;
    window->mean_ns = mean_ns;
    window->clip_ns = 4 * usual_ns;
    window->alarm_ns = 1.5 * high_ns > window->clip_ns ? 1.5 * high_ns : window->clip_ns;
}

static void window_begin_stay(struct earn_window *window, struct earn_run *run, bool from_past, uint64_t now_ns)
{
    double round_trip = cost_round_trip_ns(run->cost, window->bytes);
    double period = window->usual_ns * window->mean_copies;
    unsigned patience = window->patience;
    window->place = EARN_HOST;
    window->state = EARN_TRYING;
    window->from_past = from_past;
    window->warmup = from_past ? EARN_WARMUP_PERIODS : 0;
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
    earn_run_forget_kernels(run, now_ns);
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
    window->mean_copies = 1;
    if (!past) return;
    window->failures = past->failures < EARN_FAILURES_MOST ? past->failures : EARN_FAILURES_MOST;
    if (past->place == EARN_DEVICE) {
        window->reason = "an earlier run or window ended on the device";
        return;
    }
    earn_set_reference(window, past->device_ns, past->device_ns, 0);
    window->host_ns = past->host_ns;
    window->kernels_ns = past->device_ns;
    window->charge_ns = (cost_worst_factor(run->cost, live_bytes, COST_UNKNOWN) - 1) * past->device_ns;
    window_begin_stay(window, run, true, now_ns);
    window->start_ns = 0;
    window->reason = "an earlier run or window ended on the host";
}

void earn_end(struct earn_window *window, struct earn_run *run)
{
    earn_run_end_turn(run, window);
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
    earn_run_end_turn(run, window);
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
    earn_forget_periods(window);
}

/* ---- moves ---- */

void earn_charge(struct earn_window *window, double over_ns)
{
    window->excess_ns += over_ns;
    if (window->excess_ns < 0) window->excess_ns = 0;
    window->balance_ns -= over_ns < window->charge_ns ? over_ns : window->charge_ns;
}

/* Asks for the way back. */
static enum earn_decision window_ask_back(struct earn_window *window, struct earn_run *run, const char *reason,
                                          double evidence)
{
    earn_charge(window, window->clipped_ns);
    window->clipped_ns = 0;
    window->needed_ns = cost_round_trip_ns(run->cost, window->bytes) * (double)(1u << window->failures);
    window->evidence_ns = evidence * window->needed_ns;
    window->reason = reason;
    window->asked = EARN_TO_DEVICE;
    window->busy = window->skip = 0;
    return EARN_TO_DEVICE;
}

enum earn_decision earn_go_back(struct earn_window *window, struct earn_run *run, const char *reason, double evidence)
{
    window->hiccup = false;
    return window_ask_back(window, run, reason, evidence);
}

enum earn_decision earn_give_up(struct earn_window *window, struct earn_run *run, const char *reason, unsigned lessons)
{
    bool lost = window->balance_ns < 0 || window->state == EARN_TRYING;
    window->hiccup = !lost;
    if (lost) {
        window->failures =
            window->failures + lessons < EARN_FAILURES_MOST ? window->failures + lessons : EARN_FAILURES_MOST;
        window->patience = 0;
    } else {
        window->failures /= 2;
    }
    if (lost || window->excess_ns > 4 * window->bar_ns)
        for (unsigned i = 0; i < EARN_KERNEL_WORDS; i++) window->proven.words[i] &= ~window->met.words[i];
    return window_ask_back(window, run, reason, 0);
}

static void window_moved_to_host(struct earn_window *window, struct earn_run *run, double cost_ns, uint64_t now_ns)
{
    bool on_trial = earn_run_has_turn(run, window);
    double period = window->usual_ns * window->mean_copies;
    window->moves_to_host++;
    if (on_trial) {
        window->trials++;
        atomic_store(&run->first_made, true);
    } else {
        earn_set_reference(window, 0, 0, 0);
        window->reason = "moved for another reason than to earn";
    }
    window_begin_stay(window, run, !on_trial, now_ns);
    window->balance_ns = -cost_ns;
    atomic_store(&run->trial_end_ns, now_ns + (uint64_t)(64 * period > EARN_TURN_NS ? 64 * period : EARN_TURN_NS));
    earn_run_next_epoch(run, window);
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
    earn_forget_periods(window);
    window->start_ns = now_ns;
    window->copies_in_period = 0;
    window->last_ns = now_ns;
    earn_run_end_turn(run, window);
    earn_run_next_epoch(run, window);
}

void earn_moved(struct earn_window *window, struct earn_run *run, enum earn_place place, enum earn_answer answer,
                double cost_ns, uint64_t now_ns)
{
    window->skip = 0;
    if (answer == EARN_BUSY) {
        if (place == EARN_DEVICE) atomic_fetch_add(&run->refused, 1);
        if (1u << window->busy >> 1 < EARN_BUSY_SKIP) window->busy++;
        window->skip = 1u << window->busy >> 1;
        if (place == EARN_HOST) {
            window->seeks_quiet = true;
            window->asked = EARN_STAY;
            earn_run_end_turn(run, window);
        }
        return;
    }
    window->busy = 0;
    if (answer == EARN_FAILED && place == EARN_DEVICE) { /* for want of memory, perhaps */
        window->skip = EARN_FAILED_SKIP;
        window->reason = "the driver refused to move it back";
        return;
    }
    window->asked = EARN_STAY;
    if (answer == EARN_FAILED) {
        window->failed = true;
        earn_fix(window, run, "the driver refused to move it to the host");
    } else if (place == EARN_HOST) {
        window_moved_to_host(window, run, cost_ns, now_ns);
    } else {
        window_moved_to_device(window, run, cost_ns, now_ns);
    }
}

#include "earn_inside.h"

#define UNWAITED_MOST 16 /* more asynchronous copies in a row are no part of a loop to be judged */
#define GROUP_COPIES  64 /* a period ends after so many copies even if none repeats the anchor */

/* A move back that was refused is asked for again, ever more rarely. */
static enum earn_decision window_ask_again(struct earn_window *window)
{
    if (__builtin_expect(window->asked != EARN_TO_DEVICE, 1)) return EARN_STAY;
    if (!window->skip) return EARN_TO_DEVICE;
    window->skip--;
    return EARN_STAY;
}

/* The same for launches, which are no reason to wait unless the driver failed. */
static enum earn_decision window_ask_now(struct earn_window *window)
{
    return window->skip > EARN_BUSY_SKIP ? window_ask_again(window) : EARN_TO_DEVICE;
}

static enum earn_decision window_period(struct earn_window *window, struct earn_run *run, double period_ns,
                                        uint32_t copies, uint64_t now_ns)
{
    uint32_t epoch = atomic_load_explicit(&run->epoch, memory_order_relaxed);
    double copy_ns = period_ns / copies;
    if (__builtin_expect(window->asked == EARN_TO_DEVICE, 0)) {
        earn_count_period(window, copies, copy_ns);
        return window_ask_again(window);
    }
    if (__builtin_expect(epoch != window->epoch, 0)) {
        window->epoch = epoch;
        if (window->place == EARN_DEVICE) {
            earn_forget_periods(window);
            return EARN_STAY;
        }
        if (window->state == EARN_TRYING && !window->from_past)
            return earn_go_back(window, run, "another window moved during its trial", 1);
        window->rebase = true;
        window->block_ns = 0;
        window->block_count = 0;
        window->block_start_ns = now_ns;
    }
    if (window->place == EARN_DEVICE) return earn_device_period(window, run, period_ns, copies, now_ns);
    return earn_host_period(window, run, copies, copy_ns, now_ns);
}

static void window_price(struct earn_window *window, const struct cost *cost, enum cost_direction direction,
                         uint64_t bytes)
{
    window->cached_bytes[direction] = bytes + 1;
    window->cached_native_ns[direction] = cost_native_ns(cost, direction, bytes);
    window->cached_saved_ns[direction] = cost_saved_ns(cost, direction, bytes);
}

/* On the host asynchronous copies save nothing, and between them no period ends that could be judged. */
static enum earn_decision window_unwaited(struct earn_window *window, struct earn_run *run)
{
    window->unwaited++;
    if (window->place == EARN_DEVICE) return EARN_STAY;
    if (window->asked == EARN_TO_DEVICE) return window_ask_again(window);
    if (window->unwaited <= 2 * window->most_unwaited + 4) return EARN_STAY;
    window->start_ns = 0;
    return earn_go_back(window, run, "its copies have become asynchronous", 0.5);
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
    } else if (copy->waited) {
        window->evidence_ns += window->cached_saved_ns[direction];
        window->missed_ns += window->cached_saved_ns[direction];
        window->native_ns += window->cached_native_ns[direction];
    }
    if (window->state == EARN_FIXED) return EARN_STAY;
    if (!copy->waited) return window_unwaited(window, run);
    if (window->place == EARN_DEVICE && window->unwaited > window->most_unwaited)
        window->most_unwaited = window->unwaited < UNWAITED_MOST ? window->unwaited : UNWAITED_MOST;
    window->unwaited = 0;
    if (__builtin_expect(window->seeks_quiet, 0) && direction == COST_D2H && window->place == EARN_DEVICE) {
        window->seeks_quiet = false;
        window->anchor = key;
        window->start_ns = now_ns;
        window->submitted = copy->submissions;
        window->copies_in_period = window->skip = 0;
        window->native_ns = 0;
        return EARN_STAY;
    }
    uint32_t copies = ++window->copies_in_period;
    if (key != window->anchor && copies < GROUP_COPIES && window->start_ns &&
        (window->place == EARN_DEVICE || (double)(now_ns - window->start_ns) < window->late_ns))
        return window_ask_again(window);

    uint64_t start_ns = window->start_ns;
    uint64_t submitted = copy->submissions - window->submitted;
    window->anchor = key;
    window->start_ns = now_ns;
    window->copies_in_period = 0;
    window->submitted = copy->submissions;
    if (start_ns && copy->submissions && submitted > window->most_submitted) window->most_submitted = submitted;
    if (!start_ns) return window_ask_again(window);
    return window_period(window, run, (double)(now_ns - start_ns), copies, now_ns);
}

/* ---- launches ---- */

enum earn_decision earn_kernel(struct earn_window *window, struct earn_run *run, uint64_t kernel,
                               enum cost_class kernels, double loss_ns, uint64_t now_ns)
{
    static const char unknown[] = "a kernel was about to run that this window had not met on the host";
    earn_tell(window, run, kernels, loss_ns);
    if (window->place == EARN_DEVICE || window->state == EARN_FIXED) return EARN_STAY;
    if (window->asked == EARN_TO_DEVICE) return window_ask_now(window);
    if (earn_kernels_have(&window->met, kernel)) return EARN_STAY;

    bool expected = window->state == EARN_TRYING && (window->from_past || earn_kernels_have(&window->seen, kernel));
    bool harmless = loss_ns < cost_round_trip_ns(run->cost, window->bytes) / 4;
    if (!expected && !harmless) {
        double worst = (cost_worst_factor(run->cost, window->bytes, kernels) - 1) * window->strange_ns + window->bar_ns;
        bool known = earn_kernels_have(&window->strange, kernel) && window->strange_ns > 0;
        if (!known || worst > earn_budget_ns(run, now_ns)) {
            earn_kernels_add(&window->strange, kernel);
            window->strange_watch = 2;
            return earn_go_back(window, run, unknown, 0.5);
        }
    }
    earn_kernels_add(&window->met, kernel);
    return EARN_STAY;
}

enum earn_decision earn_tick(struct earn_window *window, struct earn_run *run, uint64_t now_ns)
{
    if (window->place == EARN_DEVICE || window->state == EARN_FIXED) return EARN_STAY;
    if (window->asked == EARN_TO_DEVICE) return window_ask_now(window);
    if (window->state == EARN_SETTLED && earn_run_other_on_trial(run, window, now_ns)) return EARN_STAY;

    double copies = window->mean_copies;
    double waited = now_ns > window->last_ns ? (double)(now_ns - window->last_ns) : 0;
    double over = waited - window->mean_ns * copies;
    double bar = window->state == EARN_SETTLED ? window->bar_ns : window->bar_ns / 2;
    if (waited / copies <= window->alarm_ns || window->excess_ns + over <= bar) return EARN_STAY;
    if (window->mean_ns <= 0 && waited < EARN_TURN_NS) return EARN_STAY;
    if (window->warmup && waited < 5 * EARN_TURN_NS) return EARN_STAY;
    window->outlier_ns = waited / copies;
    earn_charge(window, over);
    return earn_give_up(window, run, "no longer copied while kernels run", 1);
}

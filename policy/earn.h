/* Policy `auto`: a window of small device buffers earns its place on the host, and a run never loses more than its
 * regret budget.
 *
 * A pure state machine per window. In go time-stamped copies and the answers of moves; out come EARN_STAY,
 * EARN_TRY_HOST or EARN_TO_DEVICE, each with a reason (static text, window->reason). All times are ns of one monotonic
 * clock.
 *
 * HOW IT DECIDES
 *
 * Evidence is what the window's synchronizing copies would have saved on the host, by the cost table.
 *
 * A period is the time from one copy of an anchor (same place in the window, same direction) to its next, divided by
 * the copies in between; at most 64 copies, so that copies which never repeat a place still make periods. Only copies
 * that wait for the GPU count, since only the time between waits tells what the GPU took. A move that was refused after
 * a copy to the device, which may still be under way, makes the next copy back the anchor: the GPU is idle after it.
 *
 * Try: when the evidence pays for moving there and back, times 2^(failures so far); when 16 steady periods have passed
 * since any window moved, the last 8 without a new kernel; when no other window is on trial; and when the worst case of
 * the trial fits in what is left of the budget. The worst case is this window's: what the kernels of the loop can do to
 * it, as the caller tells (learned once a window has the evidence, since it costs the caller time).
 *
 * Judge: every host period is compared with the device's mean; the sum of what periods took longer (never below zero)
 * is the excess. An excess beyond a bar (the price of a needless move) moves the window back, so one hot period does it
 * at once and a slightly slower loop does it soon. After 4, 8 and 16 periods a usual period that is 25 % slower moves
 * it back; after 8, 16 and 32 one that is 30, 20 and 5 % faster settles it, if noise could not feign that and copies
 * can explain it; after 32 without that, back, and the evidence asked for doubles (times 8 if it was much slower).
 *
 * Settled: the excess goes on. A kernel that never ran with this window on the host moves it back before the launch
 * (earn_kernel). A window that is no longer copied while kernels run goes back (earn_tick). When the period has drifted
 * by a quarter, and after 0.1, 0.2, 0.4, ... s (times the windows settled) in any case, it goes back for 16 periods to
 * compare again, if the budget has room for another trial.
 *
 * THE REGRET ARGUMENT
 *
 * loss = time of this run - time of the same run with every window on the device.
 *
 * Claim: loss <= REGRET x run time + EARN_CONSTANT_NS + sum over windows of (bar + one period of a changed loop).
 *
 * A trial starts only if spent + worst <= REGRET x time so far + EARN_CONSTANT_NS. Spent is what all stays on the host
 * lost so far: their periods against the device's, moves included, no credit for stays that gained. Worst is (longest
 * factor - 1) x the part of a period in which kernels can run, plus the bar and the moves. One trial runs at a time,
 * and it ends at the first copy after it passed its bar: after at most the bar, one worst period and the moves, which
 * is what was reserved. A window on the host whose loop does not change loses nothing more, as it settled because its
 * periods were shorter. When its loop changes, it loses at most the bar and one period before it leaves (the last
 * term); that is charged to spent, so repeated changes delay trials instead of adding up.
 *
 * Assumptions: (1) no kernel takes longer than cost_worst_factor() times its time on the device, or
 * cost_launch_loss_ns() more; (2) kernels do not overlap the synchronizing copies of the loop; (3) a changed loop
 * shows: by a kernel that did not run in the 24 periods before the trial, by longer periods, by a period drifted by a
 * quarter, or else it is found at the next re-check; (4) a move back that is asked for happens within a few copies or
 * launches (each refusal costs a period and is charged); (5) moves cost what the table says, within its noise; (6) a
 * start from a profile is vouched for by the profile. tests/unit/policy_regret.c and make policy-sim check the claim on
 * random worlds.
 *
 * THREADS
 *
 * A struct earn_window is used by one thread at a time (the caller's lock for that window). A struct earn_run is shared
 * by all, without a lock. earn_copy on a steady loop takes some 10 ns. */
#ifndef POLICY_EARN_H
#define POLICY_EARN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cost.h"
#include "periods.h"

#define EARN_CONSTANT_NS     3000000ull   /* lost at most by a run too short to have a budget */
#define EARN_FIRST_NS        1000000ull   /* more for the first move of a process: code is loaded, memory set aside */
#define EARN_TICK_NS         1000000ull   /* between two rounds of earn_tick */
#define EARN_RECHECK_NS      100000000ull /* x windows settled: the first time; then doubled */
#define EARN_RECHECK_MOST_NS 64000000000ull

enum earn_place { EARN_DEVICE, EARN_HOST };
enum earn_decision { EARN_STAY, EARN_TRY_HOST, EARN_TO_DEVICE };
enum earn_answer {
    EARN_MOVED,
    EARN_BUSY,  /* the context was not quiet: asked again at a later copy */
    EARN_FAILED /* the driver refused: to the host never asked again, back to the device seldom */
};
enum earn_state {
    EARN_WATCHING, /* on the device, gathering */
    EARN_TRYING,   /* on the host, being judged */
    EARN_SETTLED,  /* on the host, judged faster */
    EARN_FIXED     /* stays where it is: a rule, a hold, or a failed move */
};

struct earn_copy {
    uint64_t now_ns; /* at the end of the copy */
    uint64_t offset; /* of the copied bytes in the window */
    uint64_t bytes;
    enum cost_direction direction;
    bool waited; /* it returns only after the GPU work before it (as the native form does), whether or not there was any
                  */
    uint64_t submissions; /* launches and the like so far, of all threads; 0: not counted */
};

#define EARN_KERNEL_WORDS 32

/* A set of kernels, two bits each: one that is not in it may seem to be (among 30 others: once in 1000). */
struct earn_kernels {
    uint64_t words[EARN_KERNEL_WORDS];
};

/* Shared by all windows of a process. */
struct earn_run {
    const struct cost *cost;
    double regret; /* a fraction */
    uint64_t start_ns;
    _Atomic uint64_t spent_ns;               /* lost by stays that ended */
    _Atomic uintptr_t trial;                 /* the window on trial, or 0 */
    _Atomic uint64_t trial_end_ns;           /* then others may take its turn */
    _Atomic uint32_t epoch;                  /* counts moves; periods of different epochs are not compared */
    _Atomic uint64_t met[EARN_KERNEL_WORDS]; /* kernels that every window was told of */
    _Atomic uint32_t forgets;                /* times met was cleared */
    _Atomic uint64_t cleared_ns, told_ns;    /* when met was cleared; when a kernel was last told */
    _Atomic bool first_made;                 /* a window has been on trial */
    _Atomic bool learning; /* what kernels can do to the windows is wanted; before, kernels may be told as unknown */
    _Atomic uint64_t tick_ns;
    _Atomic uint32_t settled;        /* windows */
    _Atomic uint32_t moved, refused; /* moves back: done, answered EARN_BUSY */
};

/* Where a window (or its site) ended: kept in profiles, and given to further windows of the same site. */
struct earn_past {
    enum earn_place place;
    uint32_t failures;
    double device_ns, host_ns; /* usual periods per copy; 0: not known */
    double evidence_ns;
};

struct earn_window {
    enum earn_state state;
    enum earn_place place;
    enum earn_decision asked; /* not answered yet, or to be asked again */
    const char *reason;       /* why it lives where it lives, static text, never null */
    uint64_t bytes;           /* live bytes: what a move carries and a kernel can reach */

    /* the worst that it was told of kernels since run->forgets was so */
    uint32_t told_forgets;
    enum cost_class told_class;
    double told_loss_ns;

    /* the period that is running */
    uint64_t anchor;   /* key of the copy that starts periods */
    uint64_t start_ns; /* 0: none running */
    uint64_t last_ns;  /* of any copy or move */
    uint32_t copies_in_period;
    uint32_t skip; /* periods until a trial may be thought of; copies until a move is asked for again */
    uint32_t epoch;
    uint32_t busy;    /* answers EARN_BUSY in a row */
    bool seeks_quiet; /* a move was refused after a copy to the device: periods shall start with one back */
    struct periods periods;
    double native_ns;                   /* what the period's copies cost natively */
    uint64_t submitted, most_submitted; /* when the period began; in any period of the epoch, 0: not counted */
    uint32_t unwaited, most_unwaited;   /* asynchronous copies since the last that waited; most on the device */
    double mean_copies;                 /* of a period of the device's loop, once known; else 1 */

    /* the device's loop as it was when the trial began; per copy */
    double usual_ns, clip_ns, mean_ns, alarm_ns, median_ns, spread_ns;
    double learned_high_ns; /* long periods that were seen on the device too */
    double outlier_ns;      /* the period that ended the last stay */
    double kernels_ns;      /* the part of a device period in which kernels can run */
    double charge_ns;       /* most that one period may be charged with: the worst any kernel could do */
    double late_ns;         /* a period on the host that lasts longer is over, whatever its copies */
    double bar_ns;          /* excess that ends the stay; half of it while on trial */
    uint32_t patience;      /* doublings of the bar: long periods that turned out to be nothing */
    bool hiccup;            /* the last stay gained and ended by a long period */

    /* the stay on the host */
    double excess_ns;
    double clipped_ns; /* what was not counted of the last period because such long ones were usual */
    uint32_t unsteady, unexplained, learned;
    uint32_t quiet; /* periods since a kernel was told */
    uint64_t told_ns;
    double balance_ns; /* gained less lost by periods, moves included */
    double host_ns;    /* usual period when settled, per copy */
    double block_ns;
    uint32_t block_count, drifted, warmup;
    bool rebase;     /* another window moved: find the new level of this one */
    bool from_past;  /* started on the host, not by a trial */
    bool settled;    /* counted in run->settled */
    bool rechecking; /* left to compare again */
    bool failed;     /* the driver refused a move */
    uint64_t block_start_ns, settled_ns, recheck_ns, recheck_every_ns;
    struct earn_kernels seen, met, strange, proven; /* by the device's loop; on the host; unexpected; good for it */
    double strange_ns;                              /* longest period with a strange kernel on the device */
    uint32_t strange_watch;

    uint32_t failures;  /* doublings of the evidence asked for */
    double evidence_ns; /* since the last stay */
    double needed_ns;

    /* the last copy's price, by direction */
    uint64_t cached_bytes[2];
    double cached_native_ns[2], cached_saved_ns[2];

    /* for the report */
    uint64_t copies, elided;
    uint32_t trials, returns, moves_to_host, moves_to_device;
    double missed_ns;        /* by the cost table, copies on the device */
    double gained_ns;        /* by periods, stays that gained */
    double lost_ns;          /* by periods, stays that lost */
    double tried_ns, was_ns; /* usual periods of the last trial, host and device, per copy */
};

/* `cost` must outlive the run; `regret` is a fraction (options.regret). */
void earn_run_begin(struct earn_run *run, const struct cost *cost, double regret, uint64_t now_ns);

/* A new window. `past` (may be null) is where an earlier run or another window of the site ended: with place EARN_HOST
 * the caller must create the window on the host, and it is judged there at once. */
void earn_begin(struct earn_window *window, struct earn_run *run, uint64_t live_bytes, const struct earn_past *past,
                uint64_t now_ns);

/* The window is gone. Its site's past is earn_past_of before this call. */
void earn_end(struct earn_window *window, struct earn_run *run);

/* Live bytes changed. */
void earn_bytes(struct earn_window *window, uint64_t live_bytes);

/* One copy. An answer other than EARN_STAY asks for a move now; the caller tries it and says so by earn_moved before
 * the next call for this window. */
enum earn_decision earn_copy(struct earn_window *window, struct earn_run *run, const struct earn_copy *copy);

/* What came of a move to `place`, asked for or not (the shim moves windows for reasons of its own, too). `cost_ns` is
 * what it took. */
void earn_moved(struct earn_window *window, struct earn_run *run, enum earn_place place, enum earn_answer answer,
                double cost_ns, uint64_t now_ns);

/* Keeps the window where it is (after a move there, if it has to be elsewhere) until earn_free_again. */
void earn_fix(struct earn_window *window, struct earn_run *run, const char *reason);
void earn_free_again(struct earn_window *window, const char *reason);

/* Launches. Before each launch: if earn_launch is true, the caller asks earn_kernel for every window (moving those that
 * say EARN_TO_DEVICE, if the context is quiet), then calls earn_announce. A kernel takes this way once between two
 * clearings of met; else the cost is one load. Graphs are kernels, too. */

/* The same for launches of about the same size (factor 4) with arguments of the same `reach`: a hash of the windows
 * they point to, 0 if that is not known. */
uint64_t earn_kernel_id(const void *function, uint64_t threads, uint64_t reach);
static inline bool earn_launch(const struct earn_run *run, uint64_t kernel)
{
    uint64_t one = atomic_load_explicit(&run->met[kernel >> 6 & (EARN_KERNEL_WORDS - 1)], memory_order_relaxed);
    uint64_t two = atomic_load_explicit(&run->met[kernel >> 38 & (EARN_KERNEL_WORDS - 1)], memory_order_relaxed);
    return !(one >> (kernel & 63) & two >> (kernel >> 32 & 63) & 1);
}
/* `kernels`, `loss_ns`: class of what the launch does with this window, and the most it can lose with the window on the
 * host, see cost_launch_loss_ns; infinite: not known. A launch that does not touch it is COST_PLAIN and loses 0. */
enum earn_decision earn_kernel(struct earn_window *window, struct earn_run *run, uint64_t kernel,
                               enum cost_class kernels, double loss_ns, uint64_t now_ns);
void earn_announce(struct earn_run *run, uint64_t kernel, uint64_t now_ns);

/* At every launch, or every few: if earn_tick_due, the caller asks earn_tick for every window on the
 * host. */
bool earn_tick_due(struct earn_run *run, uint64_t now_ns);
enum earn_decision earn_tick(struct earn_window *window, struct earn_run *run, uint64_t now_ns);

/* Where the window would start if it were made again. */
struct earn_past earn_past_of(const struct earn_window *window);

/* What is left of the budget; negative when overdrawn. */
double earn_budget_ns(const struct earn_run *run, uint64_t now_ns);

#endif

/* What the files of policy/earn share: earn.c (copies and launches), earn_judge.c (what periods mean), earn_stay.c (a
 * window's life and moves) and earn_run.c (what all windows share). See earn.h for the whole. */
#ifndef POLICY_EARN_INSIDE_H
#define POLICY_EARN_INSIDE_H

#include "earn.h"

#define EARN_FAILURES_MOST  20
#define EARN_BUSY_SKIP      32   /* most copies, or rounds of earn_tick, until a refused move is asked for again */
#define EARN_FAILED_SKIP    1000 /* the same when the driver failed */
#define EARN_WARMUP_PERIODS 4    /* of a start from a profile: modules load, caches fill */
#define EARN_TURN_NS        20000000.0 /* a trial without a copy keeps its turn at least so long */

/* ---- earn_run.c ---- */

/* Worst class of the launches that the window was told of since they were last forgotten, COST_UNKNOWN if none was; and
 * the most that one launch can lose, infinite if that is not known. */
void earn_tell(struct earn_window *window, const struct earn_run *run, enum cost_class kernels, double loss_ns);
bool earn_was_told(const struct earn_window *window, const struct earn_run *run);
enum cost_class earn_told_class(const struct earn_window *window, const struct earn_run *run);
double earn_told_loss_ns(const struct earn_window *window, const struct earn_run *run);
/* Asks for every kernel to be told again: after a move to the host, or to learn what runs now. */
void earn_run_forget_kernels(struct earn_run *run, uint64_t now_ns);
/* Every kernel that was told is among `kernels`, and there was one. */
bool earn_run_kernels_among(const struct earn_run *run, const struct earn_kernels *kernels);
/* One window is on trial at a time. A turn that is not renewed ends at run->trial_end_ns. */
bool earn_run_other_on_trial(const struct earn_run *run, const struct earn_window *window, uint64_t now_ns);
bool earn_run_take_turn(struct earn_run *run, const struct earn_window *window, uint64_t now_ns);
void earn_run_end_turn(struct earn_run *run, const struct earn_window *window);
bool earn_run_has_turn(const struct earn_run *run, const struct earn_window *window);
/* This window moved or settled: periods of others begin anew. */
void earn_run_next_epoch(struct earn_run *run, struct earn_window *window);

bool earn_kernels_have(const struct earn_kernels *kernels, uint64_t kernel);
void earn_kernels_add(struct earn_kernels *kernels, uint64_t kernel);
void earn_kernels_join(struct earn_kernels *kernels, const struct earn_kernels *more);

/* ---- earn_stay.c ---- */

void earn_forget_periods(struct earn_window *window);
/* What the stay on the host is compared with: the device's periods, per copy. */
void earn_set_reference(struct earn_window *window, double usual_ns, double mean_ns, double high_ns);
/* Adds to the excess and takes from the balance what a period took longer than usual on the device. */
void earn_charge(struct earn_window *window, double over_ns);
/* Back for reasons that say nothing against the host: part of the evidence for the next trial is granted. */
enum earn_decision earn_go_back(struct earn_window *window, struct earn_run *run, const char *reason, double evidence);
/* Back because of what was seen on the host: a stay that lost makes the next trial harder, by a factor of 2^lessons. */
enum earn_decision earn_give_up(struct earn_window *window, struct earn_run *run, const char *reason, unsigned lessons);

/* ---- earn_judge.c ---- */

/* A period of so many copies ended on the device, or on the host (copy_ns: its time per copy). */
enum earn_decision earn_device_period(struct earn_window *window, struct earn_run *run, double period_ns, double copies,
                                      uint64_t now_ns);
enum earn_decision earn_host_period(struct earn_window *window, struct earn_run *run, double copies, double copy_ns,
                                    uint64_t now_ns);
/* Counts a host period without judging it. */
void earn_count_period(struct earn_window *window, double copies, double copy_ns);

#endif

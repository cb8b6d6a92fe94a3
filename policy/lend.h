/* Lending: does it pay to let kernels read a buffer where its source lies, in registered host memory?
 *
 * A copy from a registered block runs at the speed of the bus, so the first upload of a block is never worth a loan;
 * what is worth one is the same block uploaded again and again, unchanged, for kernels that read little of it. Nobody
 * can know that before trying. The tries are bounded by what was gained so far.
 *
 * Pure. The constants are those of facts.md and docs/results for one machine; they only have to be right within a
 * factor of two. */
#ifndef POLICY_LEND_H
#define POLICY_LEND_H
#include <stdbool.h>
#include <stdint.h>

/* Most time that reading so many places takes over the bus, ns; LEND_UNBOUNDED when no bound is known. */
#define LEND_UNBOUNDED 1e18
double lend_read_ns(uint64_t accesses_per_thread, uint64_t threads);

/* What a loan of so many bytes can cost when it turns out to be a mistake, ns: the program touches all of the block. */
double lend_worst_ns(uint64_t bytes);
/* The block was uploaded to this buffer `repeats` times before: is it tried? gained_ns: what the run has gained over
 * the driver's own copies, less what tries may have lost, and what the user allows to be lost. */
bool lend_is_tried(uint64_t bytes, uint32_t repeats, double gained_ns);

/* The kernel about to run after the upload reads for read_ns. Better than a copy? */
bool lend_pays(uint64_t bytes, double read_ns);
/* read_ns were spent on the loan since the last upload. Would it be better on the device? */
bool lend_has_cost_too_much(uint64_t bytes, double spent_ns);

/* An upload of the same block again, of which `changed` of `units` were touched: are these copied into the pages where
 * they are, rather than everything anew? */
bool lend_refreshes(uint32_t changed, uint32_t units);

/* Did a loan that served so many further uploads pay for itself? */
bool lend_has_paid(uint32_t uploads_again);
#endif

/* Lending: does it pay to let kernels read a buffer where its source lies, in registered host memory?
 *
 * Pure. The constants are those of facts.md for one machine; they only have to be right within a factor of two, since
 * what is lent is bounded: the most that all kernels together can read of a loan before it goes to the device. */
#ifndef POLICY_LEND_H
#define POLICY_LEND_H
#include <stdbool.h>
#include <stdint.h>

/* Most time that reading so many places takes over the bus, ns; LEND_UNBOUNDED when no bound is known. */
#define LEND_UNBOUNDED 1e18
double lend_read_ns(uint64_t accesses_per_thread, uint64_t threads);

/* First decision: bytes were uploaded, the kernel about to run reads for read_ns. Worth a registration? */
bool lend_pays(uint64_t bytes, double read_ns);

/* Later ones: read_ns were spent on the loan so far. Would it have been better on the device? */
bool lend_has_cost_too_much(uint64_t bytes, double spent_ns);

/* The program touched so much of the lent block: lending to this buffer again is no good. */
bool lend_is_touched_much(uint32_t touched, uint32_t units);

/* An upload of the same block again, of which `changed` of `units` were touched: are these copied into the pages where
 * they are, rather than everything being lent anew? */
bool lend_refreshes(uint32_t changed, uint32_t units);
#endif

/* The last periods of a loop and what is usual among them. Plain arithmetic on a small ring; one owner at a time. */
#ifndef POLICY_PERIODS_H
#define POLICY_PERIODS_H

#include <stdbool.h>
#include <stdint.h>

#define PERIODS_KEPT 32

struct periods {
    float ns[PERIODS_KEPT];        /* per copy */
    float copies[PERIODS_KEPT];    /* in the period */
    float native_ns[PERIODS_KEPT]; /* what its copies cost natively */
    uint32_t count;                /* since the last periods_clear; may exceed PERIODS_KEPT */
};

static inline void periods_clear(struct periods *periods) { periods->count = 0; }

static inline void periods_add(struct periods *periods, double ns, double copies, double native_ns)
{
    unsigned at = periods->count++ % PERIODS_KEPT;
    periods->ns[at] = (float)ns;
    periods->copies[at] = (float)copies;
    periods->native_ns[at] = (float)native_ns;
}

/* Plain means; 1 copy and 0 ns if there are no periods. */
double periods_mean_copies(const struct periods *periods);
double periods_mean_native_ns(const struct periods *periods);

/* Mean without the longest eighth: what is usual, whatever a few pauses or a preempted thread did. 0 if there are none.
 */
double periods_usual(const struct periods *periods);

/* How far the usual ones lie from their mean: the standard deviation without the longest eighth. */
double periods_spread(const struct periods *periods);

/* The middle one. 0 if there are none. */
double periods_median(const struct periods *periods);

/* Mean with each period taken as at most `most_ns`: pauses count, but no single one decides. */
double periods_clipped_mean(const struct periods *periods, double most_ns);

/* The second longest: a length that was seen more than once, or nearly. 0 if there are fewer than two. */
double periods_second_longest(const struct periods *periods);

/* Whether what is usual in the older half and in the newer half differs by at most `share` of the smaller one: no
 * change of the loop lies among them. */
bool periods_steady(const struct periods *periods, double share);

#endif

#include "lend.h"

/* ns: one random read over the bus with many under way; the first of them; a MiB copied from a registered block; a MiB
 * back from a loan (DMA, unregistering, mapping); a MiB touched page by page by the program. */
#define READ_NS       2.0
#define LATENCY_NS    5000.0
#define COPY_MIB_NS   20000.0
#define RETURN_MIB_NS 45000.0
#define TOUCH_MIB_NS  350000.0

#define REPEATS_LEAST 2
#define AGAIN_LEAST   4 /* uploads: a loan costs about three copies more than a copy */
#define REFRESH_LEAST 8 /* the CPU copies a unit in the time that the bus takes for some eight */

static double mebibytes(uint64_t bytes) { return (double)bytes / (1 << 20); }

double lend_read_ns(uint64_t accesses_per_thread, uint64_t threads)
{
    uint64_t accesses;
    if (accesses_per_thread == UINT64_MAX || __builtin_mul_overflow(accesses_per_thread, threads, &accesses))
        return LEND_UNBOUNDED;
    return LATENCY_NS + READ_NS * (double)accesses;
}

double lend_worst_ns(uint64_t bytes) { return mebibytes(bytes) * (TOUCH_MIB_NS + 2 * RETURN_MIB_NS); }

bool lend_is_tried(uint64_t bytes, uint32_t repeats, double gained_ns)
{
    return repeats >= REPEATS_LEAST && lend_worst_ns(bytes) <= gained_ns;
}

bool lend_pays(uint64_t bytes, double read_ns) { return read_ns <= mebibytes(bytes) * COPY_MIB_NS / 2; }

bool lend_has_cost_too_much(uint64_t bytes, double spent_ns) { return spent_ns > mebibytes(bytes) * RETURN_MIB_NS; }

bool lend_refreshes(uint32_t changed, uint32_t units) { return (uint64_t)changed * REFRESH_LEAST <= units; }

bool lend_has_paid(uint32_t uploads_again) { return uploads_again >= AGAIN_LEAST; }

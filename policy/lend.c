#include "lend.h"

/* ns: one random read over the bus with many under way; the first of them; a MiB registered, staged to the device, and
 * back from a loan (DMA, unregistering, mapping). */
#define READ_NS        2.0
#define LATENCY_NS     5000.0
#define UPLOAD_MIB_NS  31000.0
#define RETURN_MIB_NS  45000.0
#define REFRESH_LEAST  3 /* copying a unit by the CPU costs about as much as lending three anew */

double lend_read_ns(uint64_t accesses_per_thread, uint64_t threads)
{
    uint64_t accesses;
    if (accesses_per_thread == UINT64_MAX || __builtin_mul_overflow(accesses_per_thread, threads, &accesses))
        return LEND_UNBOUNDED;
    return LATENCY_NS + READ_NS * (double)accesses;
}

static double mebibytes(uint64_t bytes) { return (double)bytes / (1 << 20); }

bool lend_pays(uint64_t bytes, double read_ns) { return read_ns <= mebibytes(bytes) * UPLOAD_MIB_NS / 2; }

bool lend_has_cost_too_much(uint64_t bytes, double spent_ns) { return spent_ns > mebibytes(bytes) * RETURN_MIB_NS; }

bool lend_is_touched_much(uint32_t touched, uint32_t units) { return (uint64_t)touched * 4 > units; }

bool lend_refreshes(uint32_t changed, uint32_t units) { return (uint64_t)changed * REFRESH_LEAST <= units; }

/* Which way is faster here, from what this run measured; starts from the values measured on one H200 machine. */
#include "shim/hostmem_internal.h"
#include "shim/shim.h"

#define SIZES        8
#define SMALL_STAGED ((size_t)12 << 20)
#define CHECK_USES   64 /* copies until the slower way gets another try */

/* Moving averages in picoseconds a byte; 0: not measured. Racing observers may lose a sample. */
struct rate {
    _Atomic uint64_t way[RATE_WAYS];
    _Atomic uint32_t uses;
};
static struct rate rates[2][2][SIZES]; /* by direction, fresh, size */

static unsigned size_of(size_t bytes)
{
    unsigned mib = (unsigned)(bytes >> 20), size = mib ? 31 - (unsigned)__builtin_clz(mib) : 0;
    return size < SIZES ? size : SIZES - 1;
}

static uint64_t native_default(enum copy_direction direction, bool fresh)
{
    return direction == COPY_H2D ? 121 : fresh ? 280 : 80;
}

/* Uploads of a few MiB gain little or nothing by staging: the driver's way first, the other tried once the loop goes
 * on. */
static bool waits_for_its_try(const struct rate *rate, enum copy_direction direction, size_t bytes, uint32_t uses)
{
    return direction == COPY_H2D && bytes < SMALL_STAGED && uses % CHECK_USES != CHECK_USES / 4 &&
           !atomic_load_explicit(&rate->way[RATE_STAGED], memory_order_relaxed);
}

bool rate_passes(enum copy_direction direction, size_t bytes)
{
    struct rate *rate = &rates[direction][false][size_of(bytes)];
    uint32_t uses = atomic_load_explicit(&rate->uses, memory_order_relaxed);
    /* Every fourth is still measured: the try will be compared with it. */
    if (uses % 4 == 0 || !waits_for_its_try(rate, direction, bytes, uses)) return false;
    atomic_fetch_add_explicit(&rate->uses, 1, memory_order_relaxed);
    return true;
}

enum rate_way rate_choose(enum copy_direction direction, size_t bytes, bool fresh)
{
    struct rate *rate = &rates[direction][fresh][size_of(bytes)];
    uint64_t staged = atomic_load_explicit(&rate->way[RATE_STAGED], memory_order_relaxed);
    uint64_t native = atomic_load_explicit(&rate->way[RATE_NATIVE], memory_order_relaxed);
    uint32_t uses = atomic_fetch_add_explicit(&rate->uses, 1, memory_order_relaxed);
    if (!staged) return waits_for_its_try(rate, direction, bytes, uses) ? RATE_NATIVE : RATE_STAGED;
    if (!native) return staged * 4 <= native_default(direction, fresh) * 3 ? RATE_STAGED : RATE_NATIVE;
    enum rate_way better = staged < native ? RATE_STAGED : RATE_NATIVE;
    uint64_t best = staged < native ? staged : native, worst = staged < native ? native : staged;
    /* A machine changes, and one sample may have met a busy moment: what lost by little is tried again now and then,
     * the rest seldom. */
    bool again = uses % CHECK_USES == CHECK_USES - 1 && (worst < best * 2 || (uses & (uses + 1)) == 0);
    return again ? (enum rate_way) !better : better;
}

void rate_observe(enum copy_direction direction, size_t bytes, bool fresh, enum rate_way way, uint64_t ns)
{
    if (!bytes) return;
    _Atomic uint64_t *average = &rates[direction][fresh][size_of(bytes)].way[way];
    uint64_t now = ns * 1000 / bytes + 1, before = atomic_load_explicit(average, memory_order_relaxed);
    atomic_store_explicit(average, before ? (3 * before + now) / 4 : now, memory_order_relaxed);
}

double rate_native_ns(enum copy_direction direction, size_t bytes)
{
    uint64_t native = atomic_load_explicit(&rates[direction][0][size_of(bytes)].way[RATE_NATIVE], memory_order_relaxed);
    if (!native) native = native_default(direction, false);
    return (double)native * (double)bytes / 1000.0;
}

void rate_saved(enum copy_direction direction, size_t bytes, uint64_t ns)
{
    double saved = rate_native_ns(direction, bytes) - (double)ns;
    if (saved > 0) STAT_ADD(host_saved_ns, (uint64_t)saved);
}

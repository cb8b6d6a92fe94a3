/* Counters of the whole process. */
#ifndef SHIM_STATS_H
#define SHIM_STATS_H
#include <stdatomic.h>
#include <stdint.h>

struct stats {
#define STAT(name, unit, what) _Atomic uint64_t name;
#include "shim/stats.def"
#undef STAT
};
#define STAT_ADD(name, n) atomic_fetch_add_explicit(&shim.stats.name, (n), memory_order_relaxed)
#define STAT_GET(name)    atomic_load_explicit(&shim.stats.name, memory_order_relaxed)
#endif

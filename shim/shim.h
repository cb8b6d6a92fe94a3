/* The one state of the library and its life.
 *
 * shim_start() runs once, from the constructor or the first hook that is called (whichever comes first); it reads the
 * options, allocates nothing through malloc and makes no driver call. shim_active() is false before that, in a forked
 * child, and in mode `off`; every hook then forwards. */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "policy/policy.h"
#include "shim/driver.h"
#include "shim/stats.h"

struct shim {
    _Atomic int state; /* enum shim_state */
    pid_t pid;         /* of the process that started it */
    struct options options;
    struct driver real; /* the driver's own entry points; all NULL until libcuda is seen */
    struct stats stats;
};
extern struct shim shim;

/* Ended: the report is written; the hooks go on, since later destructors of the program may still free and copy. */
enum shim_state { SHIM_NEW, SHIM_STARTING, SHIM_OFF, SHIM_CHILD, SHIM_ACTIVE, SHIM_ENDED };

void shim_start(void);
static inline bool shim_active(void) { return atomic_load_explicit(&shim.state, memory_order_relaxed) >= SHIM_ACTIVE; }
#endif

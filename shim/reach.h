/* What a launch can do to a range of addresses, by the kernel's PTX and the launch's arguments. Pure. */
#ifndef SHIM_REACH_H
#define SHIM_REACH_H
#include "policy/cost.h"
#include "shim/launch.h"

struct reach {
    const struct ptx_kernel *facts; /* NULL: nothing is known */
    bool by_arguments;              /* false: every pointer may point anywhere, whatever the arguments are now */
};

/* Class of the worst that the launch can do to [base, base + bytes), and in *loss_ns the most that it can take longer
 * with only this range on the host: 0 if it does not touch it, infinite if there is no bound. */
enum cost_class reach_class(const struct reach *reach, const struct launch *launch, uintptr_t base, size_t bytes,
                            double *loss_ns);

/* The same for launches whose pointers point into the same units of [low, high), 0 if they are not looked at. */
uint64_t reach_hash(const struct reach *reach, const struct launch *launch, uintptr_t low, uintptr_t high, size_t unit);
#endif

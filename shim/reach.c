#include "shim/reach.h"

/* Of launch_names: windows lie side by side. */
#define BEFORE ((uintptr_t)4096)
static bool points_into(const struct reach *reach, const struct launch *launch, const struct ptx_pointer *pointer,
                        uintptr_t base, size_t bytes)
{
    uintptr_t value;
    if (!reach->by_arguments || !launch_pointer(launch, reach->facts, pointer, &value)) return true;
    return launch_names(value, base, bytes, BEFORE);
}

enum cost_class reach_class(const struct reach *reach, const struct launch *launch, uintptr_t base, size_t bytes,
                            double *loss_ns)
{
    const struct ptx_kernel *facts = reach->facts;
    *loss_ns = __builtin_inf();
    if (!facts) return COST_UNKNOWN;
    bool unbounded = facts->loads_elsewhere || facts->stores_elsewhere || facts->atomics_elsewhere;
    bool atomic = facts->atomics_elsewhere || (unbounded && facts->polls);
    uint64_t accesses = 0, atomics = 0;
    for (uint32_t i = 0; i < facts->pointer_count; i++) {
        const struct ptx_pointer *pointer = &facts->pointers[i];
        if (!points_into(reach, launch, pointer, base, bytes)) continue;
        uint64_t most = pointer->accesses_per_thread;
        atomic |= pointer->atomics || pointer->polls;
        unbounded |= pointer->polls || __builtin_add_overflow(accesses, most, &accesses);
        if (pointer->atomics) atomics += most;
    }
    if (!unbounded) *loss_ns = accesses ? cost_launch_loss_ns(launch->threads, accesses, atomics) : 0;
    return atomic ? COST_ATOMICS : COST_PLAIN;
}

uint64_t reach_hash(const struct reach *reach, const struct launch *launch, uintptr_t low, uintptr_t high, size_t unit)
{
    uint64_t hash = 1;
    uintptr_t value;
    if (!reach->facts || !reach->by_arguments) return 0;
    for (uint32_t i = 0; i < reach->facts->pointer_count; i++)
        if (launch_pointer(launch, reach->facts, &reach->facts->pointers[i], &value) &&
            value + BEFORE - low < high - low + BEFORE)
            hash = (hash ^ (i + (value - low) / unit + ((value + BEFORE - low) / unit << 32))) * 0x9e3779b97f4a7c15ull;
    return hash;
}

/* Costs: a fixed part and bytes over a rate, in microseconds and bytes per microsecond. */
#include "cost.h"

static void spend(uint64_t start_ns, double fixed_us, size_t bytes, double bytes_per_us)
{
    if (sim.costs <= 0) return;
    double us = fixed_us + (bytes_per_us > 0 ? (double)bytes / bytes_per_us : 0);
    uint64_t until = start_ns + (uint64_t)(us * 1000 * sim.costs);
    while (time_now_ns() < until) __builtin_ia32_pause();
}

void cost_copy(const struct copy *copy, uint64_t start_ns)
{
    size_t bytes = copy->width * copy->height * copy->depth;
    bool from_device = copy->from.place == PLACE_DEVICE, to_device = copy->to.place == PLACE_DEVICE;
    bool pageable = copy->from.place == PLACE_PAGEABLE || copy->to.place == PLACE_PAGEABLE;
    if (from_device && to_device)
        spend(start_ns, 4, bytes, 2e6);
    else if (to_device)
        spend(start_ns, 5.7, bytes, pageable ? 10e3 : 50e3);
    else
        spend(start_ns, 8.5, bytes, pageable ? 12e3 : 50e3);
}

void cost_kernel(size_t shared_bytes, uint64_t start_ns) { spend(start_ns, shared_bytes ? 7 : 5, shared_bytes, 50e3); }
void cost_register(size_t bytes, uint64_t start_ns) { spend(start_ns, 60, bytes, 25e3); }
void cost_unregister(size_t bytes, uint64_t start_ns) { spend(start_ns, 10, bytes, 50e3); }
void cost_map(uint64_t start_ns) { spend(start_ns, 60, 0, 0); }
void cost_allocate(size_t bytes, uint64_t start_ns) { spend(start_ns, bytes < SIM_CHUNK_BYTES / 2 ? 3 : 48, 0, 0); }
void cost_pin(size_t bytes, uint64_t start_ns) { spend(start_ns, 2.8, bytes <= 65536 ? 0 : bytes, 900); }

/* What things cost on a real machine, for programs that measure: ZCSIM_COSTS=1 as measured on an H200, 10 ten times
 * that. Off by default. A cost is spent by spinning from `start_ns` on, so that what the simulator took anyway is part
 * of it. */
#ifndef SIM_COST_H
#define SIM_COST_H

#include "stream.h"

/* All without the lock; they return at once when costs are off. */
void cost_copy(const struct copy *copy, uint64_t start_ns);
void cost_kernel(size_t shared_bytes, uint64_t start_ns); /* bytes of host memory that its pointers name */
void cost_register(size_t bytes, uint64_t start_ns);
void cost_unregister(size_t bytes, uint64_t start_ns);
void cost_map(uint64_t start_ns);
void cost_allocate(size_t bytes, uint64_t start_ns);
void cost_pin(size_t bytes, uint64_t start_ns);

#endif

/* Time for statistics and policy: nanoseconds of CLOCK_MONOTONIC (about 20 ns a reading). */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif

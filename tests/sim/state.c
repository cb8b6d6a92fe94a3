/* The one structure, its lock, start and end. */
#include "sim.h"
#include <time.h>
#include <unistd.h>

struct sim sim = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .next_id = 1};
__thread bool in_host_function;

void sim_lock(void) { pthread_mutex_lock(&sim.mutex); }
void sim_unlock(void) { pthread_mutex_unlock(&sim.mutex); }

void sim_wait(void)
{
    sim.waiters++;
    pthread_cond_wait(&sim.changed, &sim.mutex);
    sim.waiters--;
}

void sim_notify(void)
{
    if (sim.waiters) pthread_cond_broadcast(&sim.changed);
}

uint64_t time_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Streams' threads do not exist in a child, so nothing works there; a driver answers NOT_INITIALIZED. */
static void child_after_fork(void) { sim.forked = true; }

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

void sim_start(void)
{
    if (sim.initialized) return;
    sim.device_count = (int)setting("ZCSIM_DEVICES", 1);
    if (sim.device_count > SIM_MAX_DEVICES) sim.device_count = SIM_MAX_DEVICES;
    sim.can_map_host = setting("ZCSIM_CAN_MAP_HOST", 1);
    sim.vmm = setting("ZCSIM_VMM", 1);
    sim.can_register = setting("ZCSIM_REGISTER", 1);
    sim.integrated = setting("ZCSIM_INTEGRATED", 0);
    const char *costs = getenv("ZCSIM_COSTS");
    sim.costs = costs ? atof(costs) : 0;
    for (int i = 0; i < sim.device_count; i++)
        sim.devices[i].memory_bytes = setting("ZCSIM_MEMORY", (size_t)16 << 30) / SIM_CHUNK_BYTES * SIM_CHUNK_BYTES;
    pthread_atfork(NULL, NULL, child_after_fork);
    sim.initialized = true;
}

__attribute__((destructor)) static void sim_end(void)
{
    if (!sim.forked) calls_report();
    sim.shut_down = true;
}

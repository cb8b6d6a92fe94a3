/* A small world for policy/earn: loops of copies and kernels with noise, pauses and phases, in which a run takes as
 * long as the placements of its windows make it. The same world (same random numbers) runs under several policies. */
#ifndef TESTS_POLICY_WORLD_H
#define TESTS_POLICY_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "policy/cost.h"
#include "policy/earn.h"

#define WORLD_WINDOWS 6
#define WORLD_PHASES  12

struct world_window {
    uint64_t bytes;      /* live bytes of the window */
    uint64_t copy_bytes; /* of each copy */
};

/* One kind of loop. An iteration: CPU work, copies in, the kernel, copies out. */
struct world_phase {
    uint64_t iterations;
    double cpu_ns;    /* between iterations */
    double kernel_ns; /* with every window on the device */
    uint64_t kernel;  /* id */
    enum cost_class kernels;
    unsigned launches;           /* of it in an iteration, at least 1 */
    unsigned h2d[WORLD_WINDOWS]; /* copies an iteration */
    unsigned d2h[WORLD_WINDOWS];
    double factor[WORLD_WINDOWS]; /* kernel time with only this window on the host / kernel_ns */
    double noise;                 /* CPU and kernel times vary by up to this share */
    double pause_ns, pause_odds;  /* a pause of the CPU (a hiccup, a file) in some iterations */
};

struct world {
    uint64_t seed;
    unsigned windows, phases;
    struct world_window window[WORLD_WINDOWS];
    struct world_phase phase[WORLD_PHASES];
    double busy_odds;  /* a move is refused for now */
    bool announces;    /* kernels are announced before launches */
    double move_noise; /* moves take up to this share longer than the table says */
};

enum world_policy { WORLD_NEVER, WORLD_ALWAYS, WORLD_EARN };

struct world_result {
    double time_ns;
    unsigned moves, trials;
    double lost_ns;    /* as earn counts it */
    double change_ns;  /* what the claim of earn.h allows for windows that were on the host when a phase began */
    double waiting_ns; /* truly lost while moves back were refused */
    enum earn_place place[WORLD_WINDOWS]; /* at the end */
    const char *reason[WORLD_WINDOWS];
};

/* `trace` may be null; else every copy is written to it as a line of the trace format. */
struct world_result world_run(const struct world *world, const struct cost *cost, enum world_policy policy,
                              double regret, FILE *trace);

/* The least time that any sequence of placements can reach, moves included, known in advance. */
double world_best_ns(const struct world *world, const struct cost *cost);

/* A random number in [0, 1) that depends on its arguments only. */
double world_random(uint64_t seed, uint64_t a, uint64_t b);

/* A random world: friendly and hostile loops, phases, pauses. */
struct world world_make(uint64_t seed);

#endif

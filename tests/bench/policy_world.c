#include "policy_world.h"

#include <string.h>

double world_random(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15ull ^ a * 0xbf58476d1ce4e5b9ull ^ b * 0x94d049bb133111ebull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return (double)((x ^ x >> 31) >> 11) / 9007199254740992.0;
}

struct running {
    const struct world *world;
    const struct cost *cost;
    enum world_policy policy;
    struct earn_run run;
    struct earn_window window[WORLD_WINDOWS];
    enum earn_place place[WORLD_WINDOWS];
    double now_ns, bar_ns[WORLD_WINDOWS];
    bool changed[WORLD_WINDOWS]; /* was on the host when a phase began */
    bool refused[WORLD_WINDOWS]; /* a move back was, and has not come since */
    uint64_t draws;
    FILE *trace;
    struct world_result result;
};

static uint64_t now(const struct running *r) { return 1000000000ull + (uint64_t)r->now_ns; }

static void follow(struct running *r, unsigned w, enum earn_decision decision)
{
    if (decision == EARN_STAY) return;
    enum earn_place place = decision == EARN_TRY_HOST ? EARN_HOST : EARN_DEVICE;
    if (world_random(r->world->seed, 7, ++r->draws) < r->world->busy_odds) {
        earn_moved(&r->window[w], &r->run, place, EARN_BUSY, 0, now(r));
        r->refused[w] = place == EARN_DEVICE;
        return;
    }
    double took = cost_move_ns(r->cost, place == EARN_HOST, r->world->window[w].bytes);
    took *= 1 + r->world->move_noise * world_random(r->world->seed, 8, ++r->draws);
    r->now_ns += took;
    r->place[w] = place;
    r->refused[w] = false;
    r->result.moves++;
    earn_moved(&r->window[w], &r->run, place, EARN_MOVED, took, now(r));
}

static void copy(struct running *r, unsigned w, unsigned nth, enum cost_direction direction)
{
    uint64_t bytes = r->world->window[w].copy_bytes;
    bool host = r->place[w] == EARN_HOST;
    r->now_ns += host ? cost_elided_ns(r->cost, direction, bytes) : cost_native_ns(r->cost, direction, bytes);
    if (r->trace)
        fprintf(r->trace, "%llu %u %s %llu 1 %s\n", (unsigned long long)now(r), w,
                direction == COST_H2D ? "h2d" : "d2h", (unsigned long long)bytes, host ? "host" : "device");
    if (r->policy != WORLD_EARN) return;
    struct earn_copy copy = {now(r), nth * bytes, bytes, direction, true, 0};
    follow(r, w, earn_copy(&r->window[w], &r->run, &copy));
    if (r->window[w].bar_ns > r->bar_ns[w]) r->bar_ns[w] = r->window[w].bar_ns;
}

static void launch(struct running *r, const struct world_phase *phase)
{
    if (r->policy != WORLD_EARN) return;
    if (r->world->announces && earn_launch(&r->run, phase->kernel)) {
        for (unsigned w = 0; w < r->world->windows; w++)
            follow(r, w, earn_kernel(&r->window[w], &r->run, phase->kernel, phase->kernels, __builtin_inf(), now(r)));
        earn_announce(&r->run, phase->kernel, now(r));
    }
    if (earn_tick_due(&r->run, now(r)))
        for (unsigned w = 0; w < r->world->windows; w++)
            if (r->place[w] == EARN_HOST) follow(r, w, earn_tick(&r->window[w], &r->run, now(r)));
}

/* How long CPU and kernel of an iteration would take on the device, noise and pauses included. */
static void iteration_times(const struct world *world, const struct world_phase *phase, uint64_t iteration,
                            double *cpu_ns, double *kernel_ns)
{
    double noise = 1 + phase->noise * (2 * world_random(world->seed, 1, iteration) - 1);
    *cpu_ns = phase->cpu_ns * noise;
    *kernel_ns = phase->kernel_ns * (1 + phase->noise * (2 * world_random(world->seed, 2, iteration) - 1));
    if (world_random(world->seed, 3, iteration) < phase->pause_odds) *cpu_ns += phase->pause_ns;
}

static void iterate(struct running *r, const struct world_phase *phase, uint64_t iteration)
{
    double cpu_ns, kernel_ns;
    iteration_times(r->world, phase, iteration, &cpu_ns, &kernel_ns);
    r->now_ns += cpu_ns;
    for (unsigned w = 0; w < r->world->windows; w++)
        for (unsigned i = 0; i < phase->h2d[w]; i++) copy(r, w, i, COST_H2D);
    for (unsigned i = 0; i < phase->launches; i++) {
        double slower = 1;
        launch(r, phase);
        for (unsigned w = 0; w < r->world->windows; w++)
            if (r->place[w] == EARN_HOST) {
                slower += phase->factor[w] - 1;
                if (r->refused[w]) r->result.waiting_ns += kernel_ns * (phase->factor[w] - 1) / phase->launches;
            }
        r->now_ns += kernel_ns * slower / phase->launches;
    }
    for (unsigned w = 0; w < r->world->windows; w++)
        for (unsigned i = 0; i < phase->d2h[w]; i++) copy(r, w, i, COST_D2H);
}

/* The longest that one iteration can lose to window w on the host. */
static double worst_iteration_ns(const struct world *world, unsigned w)
{
    double worst = 0;
    for (unsigned p = 0; p < world->phases; p++) {
        double lost = world->phase[p].kernel_ns * (1 + world->phase[p].noise) * (world->phase[p].factor[w] - 1);
        if (lost > worst) worst = lost;
    }
    return worst;
}

struct world_result world_run(const struct world *world, const struct cost *cost, enum world_policy policy,
                              double regret, FILE *trace)
{
    struct running r = {.world = world, .cost = cost, .policy = policy, .trace = trace};
    uint64_t iteration = 0;
    earn_run_begin(&r.run, cost, regret, now(&r));
    for (unsigned w = 0; w < world->windows; w++) {
        earn_begin(&r.window[w], &r.run, world->window[w].bytes, NULL, now(&r));
        if (policy == WORLD_ALWAYS) r.place[w] = EARN_HOST;
    }
    for (unsigned p = 0; p < world->phases; p++) {
        for (unsigned w = 0; w < world->windows; w++) r.changed[w] |= policy == WORLD_EARN && r.place[w] == EARN_HOST;
        for (uint64_t i = 0; i < world->phase[p].iterations; i++) iterate(&r, &world->phase[p], iteration++);
    }
    r.result.time_ns = r.now_ns;
    for (unsigned w = 0; w < world->windows; w++) {
        r.result.place[w] = r.place[w];
        r.result.reason[w] = r.window[w].reason;
        r.result.trials += r.window[w].trials;
        r.result.lost_ns += r.window[w].lost_ns;
        if (r.changed[w]) r.result.change_ns += r.bar_ns[w] + worst_iteration_ns(world, w);
    }
    return r.result;
}

double world_best_ns(const struct world *world, const struct cost *cost)
{
    double never = world_run(world, cost, WORLD_NEVER, 0, NULL).time_ns, gained = 0;
    for (unsigned w = 0; w < world->windows; w++) {
        double to_host = cost_move_ns(cost, true, world->window[w].bytes),
               back = cost_move_ns(cost, false, world->window[w].bytes);
        double device = 0, host = 0; /* least extra time so far, ending there; the host costs nothing at the start */
        uint64_t iteration = 0;
        for (unsigned p = 0; p < world->phases; p++) {
            const struct world_phase *phase = &world->phase[p];
            double saved = phase->h2d[w] * cost_saved_ns(cost, COST_H2D, world->window[w].copy_bytes) +
                           phase->d2h[w] * cost_saved_ns(cost, COST_D2H, world->window[w].copy_bytes);
            for (uint64_t i = 0; i < phase->iterations; i++) {
                double cpu_ns, kernel_ns;
                iteration_times(world, phase, iteration++, &cpu_ns, &kernel_ns);
                if (device + to_host < host) host = device + to_host;
                if (host + back < device) device = host + back;
                host += kernel_ns * (phase->factor[w] - 1) - saved;
            }
        }
        gained += device < host ? device : host;
    }
    return never + gained;
}

static uint64_t pick(uint64_t seed, uint64_t what, uint64_t count)
{
    return (uint64_t)(world_random(seed, 11, what) * (double)count);
}

/* Small values are likelier. */
static double between(uint64_t seed, uint64_t what, double low, double high)
{
    double part = world_random(seed, 12, what);
    return low + (high - low) * part * part * part;
}

struct world world_make(uint64_t seed)
{
    static const double hot[] = {1, 1, 1.05, 1.3, 2, 4, 18, 120, 370, 700};
    struct world world = {
        .seed = seed, .windows = 1 + (unsigned)pick(seed, 1, 4), .phases = 1 + (unsigned)pick(seed, 2, 5)};
    world.busy_odds = pick(seed, 3, 3) ? 0 : 0.3;
    world.announces = pick(seed, 4, 4) != 0;
    world.move_noise = 0.2;
    for (unsigned w = 0; w < world.windows; w++) {
        world.window[w].bytes = 4096ull << pick(seed, 20 + w, 7);
        world.window[w].copy_bytes = 4ull << pick(seed, 30 + w, 11);
    }
    for (unsigned p = 0; p < world.phases; p++) {
        struct world_phase *phase = &world.phase[p];
        uint64_t at = 100 * (p + 1);
        double length_ns = between(seed, at, 5e6, 1e9), loop_ns;
        phase->cpu_ns = between(seed, at + 1, 500, 300000);
        phase->kernel_ns = between(seed, at + 2, 3000, 3000000);
        phase->noise = between(seed, at + 3, 0.01, 0.5);
        phase->kernel = earn_kernel_id((const void *)(uintptr_t)(4096 * (seed * 64 + p + 1)), 1, 0);
        phase->kernels = (enum cost_class)pick(seed, at + 5, COST_CLASSES);
        phase->launches = 1 + (unsigned)pick(seed, at + 6, 3);
        if (!pick(seed, at + 7, 3)) {
            phase->pause_odds = between(seed, at + 8, 0.001, 0.2);
            phase->pause_ns = between(seed, at + 9, 50000, 5000000);
        }
        loop_ns = phase->cpu_ns + phase->kernel_ns + phase->pause_odds * phase->pause_ns;
        for (unsigned w = 0; w < world.windows; w++) {
            double worst = hot[pick(seed, at + 10 + w, sizeof hot / sizeof *hot)];
            struct cost cost;
            cost_default(&cost);
            double most = cost_worst_factor(&cost, world.window[w].bytes, phase->kernels);
            phase->factor[w] = worst < most ? worst : most;
            if (pick(seed, at + 20 + w, 5)) phase->h2d[w] = (unsigned)pick(seed, at + 30 + w, 4);
            if (pick(seed, at + 40 + w, 5)) phase->d2h[w] = (unsigned)pick(seed, at + 50 + w, 4);
            loop_ns += 8000.0 * (phase->h2d[w] + phase->d2h[w]);
        }
        phase->iterations = 1 + (uint64_t)(length_ns / loop_ns);
        if (p > 1 && pick(seed, at + 4, 2)) *phase = world.phase[p - 2]; /* phases alternate */
    }
    return world;
}

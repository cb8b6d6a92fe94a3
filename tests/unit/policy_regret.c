/* policy/earn: over thousands of random worlds the regret stays within the bound that earn.h states. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "tests/bench/policy_world.h"

static void bound_holds(uint64_t first, uint64_t count, double regret)
{
    struct cost cost;
    cost_default(&cost);
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct world world = world_make(seed);
        double never_ns = world_run(&world, &cost, WORLD_NEVER, regret, NULL).time_ns;
        struct world_result earn = world_run(&world, &cost, WORLD_EARN, regret, NULL);
        double bound_ns = regret * earn.time_ns + (double)EARN_CONSTANT_NS + earn.change_ns + earn.waiting_ns;
        cr_assert_leq(earn.time_ns - never_ns, bound_ns, "world %llu: regret %.0f ns, bound %.0f ns",
                      (unsigned long long)seed, earn.time_ns - never_ns, bound_ns);
    }
}

Test(policy_regret, holds_in_3000_random_worlds) { bound_holds(50000, 3000, 0.02); }

Test(policy_regret, holds_with_a_small_budget) { bound_holds(60000, 1500, 0.002); }

Test(policy_regret, holds_with_a_large_budget) { bound_holds(70000, 1500, 0.1); }

Test(policy_regret, auto_is_better_than_never_over_all_worlds)
{
    struct cost cost;
    double never_ns = 0, earn_ns = 0;
    cost_default(&cost);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct world world = world_make(seed);
        never_ns += world_run(&world, &cost, WORLD_NEVER, 0.02, NULL).time_ns;
        earn_ns += world_run(&world, &cost, WORLD_EARN, 0.02, NULL).time_ns;
    }
    cr_assert_lt(earn_ns, never_ns);
}

/* Several threads, a window each, one run: for SAN=tsan. */
struct worker {
    struct earn_run *run;
    struct earn_window window;
    uint64_t kernel;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    uint64_t now_ns = 1000000000;
    for (int i = 0; i < 20000; i++) {
        struct earn_window *window = &worker->window;
        if (earn_launch(worker->run, worker->kernel)) {
            earn_kernel(window, worker->run, worker->kernel, COST_PLAIN, 1e9, now_ns);
            earn_announce(worker->run, worker->kernel, COST_PLAIN, 1e9, now_ns);
        }
        if (earn_tick_due(worker->run, now_ns)) earn_tick(window, worker->run, now_ns);
        struct earn_copy copy = {now_ns += window->place == EARN_HOST ? 6000 : 12000, 0, 4, i & 1, true};
        enum earn_decision decision = earn_copy(window, worker->run, &copy);
        if (decision == EARN_STAY) continue;
        enum earn_place place = decision == EARN_TRY_HOST ? EARN_HOST : EARN_DEVICE;
        earn_moved(window, worker->run, place, i % 7 ? EARN_MOVED : EARN_BUSY, 150000, now_ns += 150000);
    }
    return NULL;
}

Test(policy_regret, threads_share_a_run_without_a_lock)
{
    enum { THREADS = 4 };
    static struct worker workers[THREADS];
    static struct earn_run run;
    pthread_t threads[THREADS];
    struct cost cost;
    unsigned settled = 0;
    cost_default(&cost);
    earn_run_begin(&run, &cost, 0.02, 1000000000);
    for (int i = 0; i < THREADS; i++) {
        workers[i].run = &run;
        workers[i].kernel = earn_kernel_id(&workers[i], 32);
        earn_begin(&workers[i].window, &run, 4096, NULL, 1000000000);
    }
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        settled += workers[i].window.state == EARN_SETTLED;
        earn_end(&workers[i].window, &run);
    }
    cr_assert_geq(settled, 1);
    cr_assert_eq(atomic_load(&run.trial), 0);
    cr_assert_eq(atomic_load(&run.settled), 0);
}

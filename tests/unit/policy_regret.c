/* policy/earn: over thousands of random worlds the regret stays within the bound that earn.h states. */
#include <criterion/criterion.h>

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

/* policy/lend: when lending pays, and when it has cost too much. */
#include <criterion/criterion.h>

#include "policy/lend.h"

#define MIB ((uint64_t)1 << 20)

Test(policy_lend, what_has_no_bound_is_never_lent)
{
    cr_assert(!lend_pays(UINT64_MAX, lend_read_ns(UINT64_MAX, 1)));
    cr_assert(!lend_pays(UINT64_MAX, lend_read_ns(UINT64_MAX / 2, 3)));
}

Test(policy_lend, a_few_reads_of_much_memory_pay_and_many_reads_of_little_do_not)
{
    cr_assert(lend_pays(64 * MIB, lend_read_ns(1, 16384)));
    cr_assert(!lend_pays(64 * MIB, lend_read_ns(1, 64 * MIB / 4)));
    cr_assert(!lend_pays(2 * MIB, lend_read_ns(64, 16384)));
}

Test(policy_lend, more_reads_never_make_it_pay)
{
    for (uint64_t bytes = 2 * MIB; bytes < 1 << 30; bytes *= 2) {
        bool paid = true;
        for (uint64_t threads = 1; threads < 1 << 30; threads *= 2) {
            bool pays = lend_pays(bytes, lend_read_ns(1, threads));
            cr_assert(paid || !pays);
            paid = pays;
        }
        cr_assert(!paid);
    }
}

Test(policy_lend, reading_again_and_again_ends_it_before_it_costs_more_than_twice_the_copy)
{
    double spent = 0, once = lend_read_ns(1, 50000);
    cr_assert(lend_pays(64 * MIB, once));
    for (int launches = 0; !lend_has_cost_too_much(64 * MIB, spent); launches++) {
        spent += once;
        cr_assert_lt(launches, 100);
    }
    cr_assert_lt(spent, 2 * 64 * 45000.0);
}

Test(policy_lend, few_changes_are_copied_and_many_end_the_loan)
{
    cr_assert(lend_refreshes(0, 1) && lend_refreshes(1, 32));
    cr_assert(!lend_refreshes(1, 1) && !lend_refreshes(20, 32));
}

Test(policy_lend, nothing_is_tried_before_it_was_repeated_and_what_may_be_lost_was_gained)
{
    for (uint64_t bytes = 2 * MIB; bytes < 1 << 30; bytes *= 2) {
        cr_assert(!lend_is_tried(bytes, 0, 1e18) && !lend_is_tried(bytes, 1, 1e18));
        cr_assert(lend_is_tried(bytes, 2, lend_worst_ns(bytes)));
        cr_assert(!lend_is_tried(bytes, 1000, 0.99 * lend_worst_ns(bytes)));
    }
}

Test(policy_lend, a_loan_that_served_no_further_upload_was_in_vain)
{
    cr_assert(!lend_has_paid(0));
    cr_assert(lend_has_paid(10));
}

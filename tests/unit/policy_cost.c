/* policy/cost: curves, calibration text, running estimates. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "policy/cost.h"

static struct cost fresh(void)
{
    struct cost cost;
    cost_default(&cost);
    return cost;
}

Test(policy_cost, defaults_are_the_measured_times)
{
    struct cost cost = fresh();
    cr_assert_float_eq(cost_native_ns(&cost, COST_H2D, 4), 2500, 1);
    cr_assert_float_eq(cost_native_ns(&cost, COST_D2H, 4096), 9090, 1);
    cr_assert_float_eq(cost_elided_ns(&cost, COST_H2D, 4), 985, 1);
    cr_assert_float_eq(cost_move_ns(&cost, true, 64 << 10), 152000, 1);
    cr_assert_float_eq(cost_round_trip_ns(&cost, 64 << 10), 279000, 1);
    cr_assert(!cost.calibrated);
}

Test(policy_cost, between_points_is_a_line_and_past_the_last_it_goes_on)
{
    struct cost cost = fresh();
    double middle = cost_native_ns(&cost, COST_H2D, (1024 + 4096) / 2);
    cr_assert_float_eq(middle, (3200 + 4450) / 2.0, 1);
    cr_assert_float_eq(cost_native_ns(&cost, COST_H2D, 0), 2500, 1);
    cr_assert_gt(cost_native_ns(&cost, COST_H2D, 1ull << 30), cost_native_ns(&cost, COST_H2D, 256 << 20) * 3);
}

Test(policy_cost, curves_never_fall_with_size)
{
    struct cost cost = fresh();
    for (uint64_t bytes = 1; bytes < 1ull << 30; bytes += bytes / 3 + 1)
        for (int direction = 0; direction < 2; direction++) {
            cr_assert_leq(cost_native_ns(&cost, direction, bytes),
                          cost_native_ns(&cost, direction, bytes + bytes / 3 + 1));
            cr_assert_leq(cost_elided_ns(&cost, direction, bytes),
                          cost_elided_ns(&cost, direction, bytes + bytes / 3 + 1));
        }
}

Test(policy_cost, the_worst_case_depends_on_size_and_on_what_the_kernels_do)
{
    struct cost cost = fresh();
    cr_assert_float_eq(cost_worst_factor(&cost, 4096, COST_PLAIN), 22.4, 0.01);
    cr_assert_float_eq(cost_worst_factor(&cost, 65536, COST_PLAIN), 34.3, 0.01);
    cr_assert_geq(cost_worst_factor(&cost, 4, COST_ATOMICS), 1507);
    cr_assert_geq(cost_worst_factor(&cost, 4, COST_UNKNOWN), cost_worst_factor(&cost, 4, COST_ATOMICS));
    cr_assert_float_eq(cost_worst_factor(&cost, 1ull << 40, COST_PLAIN), 230, 0.01);
}

Test(policy_cost, a_launch_with_bounded_accesses_has_a_bounded_loss)
{
    cr_assert(isinf(cost_launch_loss_ns(1, UINT64_MAX, 0)));
    cr_assert(isinf(cost_launch_loss_ns(1, 0, UINT64_MAX)));
    cr_assert_geq(cost_launch_loss_ns(262144, 0, 1), 14353e3 - 38e3, "262 144 atomics took 14.3 ms more");
    cr_assert_geq(cost_launch_loss_ns(8600000, 1, 0), 12.7e6, "8.6 M look-ups in 1 MiB took 12.7 ms more");
    cr_assert_lt(cost_launch_loss_ns(256, 2, 1), 50e3);
}

Test(policy_cost, what_is_written_reads_back_the_same)
{
    struct cost cost = fresh(), back = fresh();
    char text[4096], again[4096], error[256] = "";
    cost_observe(&cost, COST_NATIVE_H2D, 4, 9000);
    size_t length = cost_format(text, sizeof text, &cost, "Some GPU");
    cr_assert_lt(length, sizeof text);
    cr_assert(cost_parse(&back, text, length, error, sizeof error), "%s", error);
    cr_assert(back.calibrated);
    cost_format(again, sizeof again, &back, "Some GPU");
    cr_assert_str_eq(text, again);
}

Test(policy_cost, a_broken_file_is_refused_with_its_line_and_changes_nothing)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "line 1: does not start"},
        {"zcshim-cost 2\n", "line 1: another version"},
        {"zcshim-cost\n", "line 1: another version"},
        {"zcshim-cost 1\n\nnative 4:5\n", "line 3: unknown word"},
        {"zcshim-cost 1\nnative-h2d\n", "line 2: no points"},
        {"zcshim-cost 1\nnative-h2d 4:5000 4:6000\n", "line 2: sizes do not ascend"},
        {"zcshim-cost 1\nnative-h2d 4\n", "line 2: not size:number"},
        {"zcshim-cost 1\nnative-h2d x:1\n", "line 2: not a size"},
        {"zcshim-cost 1\nnative-h2d 4:-1\n", "line 2: not a number"},
        {"zcshim-cost 1\nworst-plain 4:0.5\n", "line 2: number out of range"},
        {"zcshim-cost 1\nnative-h2d 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1 12:1 13:1 14:1 15:1 16:1 17:1\n",
         "more than 16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cost cost = fresh(), before = fresh();
        char error[256] = "", a[4096], b[4096];
        cr_assert(!cost_parse(&cost, cases[i].text, strlen(cases[i].text), error, sizeof error));
        cr_assert(strstr(error, cases[i].said), "%s -> %s", cases[i].text, error);
        cr_assert_null(strchr(error, '\n'));
        cost_format(a, sizeof a, &cost, NULL);
        cost_format(b, sizeof b, &before, NULL);
        cr_assert_str_eq(a, b);
    }
}

Test(policy_cost, curves_that_a_file_does_not_name_keep_their_values)
{
    struct cost cost = fresh();
    const char text[] = "zcshim-cost 1\n# one curve\nelided-h2d 4:100 1M:90000";
    char error[256];
    cr_assert(cost_parse(&cost, text, strlen(text), error, sizeof error));
    cr_assert_float_eq(cost_elided_ns(&cost, COST_H2D, 4), 100, 0.01);
    cr_assert_float_eq(cost_elided_ns(&cost, COST_D2H, 4), 1020, 0.01);
}

Test(policy_cost, estimates_follow_the_median_and_not_an_outlier)
{
    struct cost cost = fresh();
    for (int i = 0; i < 400; i++) cost_observe(&cost, COST_NATIVE_D2H, 4, i % 10 ? 12000 : 5e8);
    cr_assert_float_eq(cost_native_ns(&cost, COST_D2H, 4), 12000, 1500);
    cr_assert_geq(cost_native_ns(&cost, COST_D2H, 1024), cost_native_ns(&cost, COST_D2H, 4));
    cost_observe(&cost, COST_NATIVE_D2H, 4, NAN);
    cost_observe(&cost, COST_NATIVE_D2H, 4, -1);
    cr_assert_float_eq(cost_native_ns(&cost, COST_D2H, 4), 12000, 1500);
}

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include "kernels/zcbench.h"

/* The real table is beside the kernels, in a file for the GPU. */
const struct bench_case bench_cases[CASES] = {
    [CASE_READ] = {"stream_read", "", DATA_IN, NULL, 0},
    [CASE_GATHER] = {"gather", "", DATA_IN, "fraction", 0},
    [CASE_LOOKUP] = {"lookup", "", DATA_IN, "look-ups", 0},
};

static struct spread took(double ns) { return (struct spread){ns, ns, ns, 5}; }

/* A cell of stream_read whose explicit copies take 100 ns and whose zero-copy takes `zero`. */
static void add(struct bench *b, size_t bytes, double zero)
{
    struct cell *c = &b->cells[b->cell_count++];
    *c = (struct cell){.id = CASE_READ, .bytes = bytes, .density = 1};
    c->trip[SIDE_PAGEABLE] = took(300);
    c->trip[SIDE_PINNED] = took(100);
    c->trip[SIDE_MAPPED] = took(zero);
}

static size_t faster_up_to(const struct bench *b, double limit)
{
    return crossover(b, CASE_READ, 1, limit, NULL, NULL);
}

Test(crossover, lies_between_the_last_win_and_the_first_loss)
{
    static struct bench b;
    add(&b, 1024, 50);
    add(&b, 4096, 200);
    size_t at = faster_up_to(&b, 1.0);
    cr_assert(at > 2000 && at < 2100, "half of the ratios and of the sizes, by logarithms: %zu", at);
    cr_assert(faster_up_to(&b, 1.1) > at, "10 % more is allowed");
}

Test(crossover, never_and_always_are_told_apart)
{
    static struct bench never, always;
    size_t largest;
    unsigned sizes;
    add(&never, 1024, 200);
    add(&never, 4096, 150);
    cr_assert_eq(faster_up_to(&never, 1.0), 0);
    add(&always, 1024, 50);
    add(&always, 4096, 90);
    cr_assert_eq(crossover(&always, CASE_READ, 1, 1.0, &largest, &sizes), SIZE_MAX);
    cr_assert_eq(largest, 4096);
    cr_assert_eq(sizes, 2);
}

Test(crossover, a_loss_between_two_wins_does_not_end_the_curve)
{
    static struct bench b;
    add(&b, 1024, 50);
    add(&b, 4096, 200);
    add(&b, 16384, 50);
    cr_assert_eq(faster_up_to(&b, 1.0), SIZE_MAX);
}

Test(crossover, a_curve_that_begins_with_a_loss_and_ends_with_a_win_has_a_size_to_begin_at)
{
    static struct bench wins_late, wins_early, wins_between;
    add(&wins_late, 1024, 300);
    add(&wins_late, 4096, 200);
    add(&wins_late, 16384, 50);
    cr_assert_eq(faster_up_to(&wins_late, 1.0), SIZE_MAX);
    size_t at = crossover_from(&wins_late, CASE_READ, 1, 1.0);
    cr_assert(at > 8000 && at < 8400, "half of the ratios and of the sizes, by logarithms: %zu", at);
    add(&wins_early, 1024, 50);
    add(&wins_early, 4096, 200);
    add(&wins_early, 16384, 50);
    cr_assert_eq(crossover_from(&wins_early, CASE_READ, 1, 1.0), 0);
    add(&wins_between, 1024, 200);
    add(&wins_between, 4096, 50);
    add(&wins_between, 16384, 200);
    cr_assert_eq(crossover_from(&wins_between, CASE_READ, 1, 1.0), 0);
}

Test(crossover, other_kernels_and_densities_are_left_out)
{
    static struct bench b;
    size_t largest;
    add(&b, 1024, 50);
    cr_assert_eq(crossover(&b, CASE_WRITE, 1, 1.0, &largest, NULL), 0);
    cr_assert_eq(largest, 0);
    cr_assert_eq(crossover(&b, CASE_READ, 0.5, 1.0, &largest, NULL), 0);
}

Test(sides, the_faster_copy_and_the_fastest_zero_copy_are_compared)
{
    static struct bench b;
    add(&b, 1024, 50);
    cr_assert_eq(cell_best_copy(&b.cells[0]), SIDE_PINNED);
    cr_assert_eq(cell_best_zero(&b.cells[0]), SIDE_MAPPED, "sides that were not measured do not win");
    b.cells[0].trip[SIDE_COMBINED] = took(40);
    cr_assert_eq(cell_best_zero(&b.cells[0]), SIDE_COMBINED);
}

Test(spread, is_the_median_and_the_tenth_parts)
{
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, many[101];
    for (int i = 0; i < 101; i++) many[i] = 100 - i;
    cr_assert_eq(spread_of(odd, 3).median, 3);
    cr_assert_eq(spread_of(even, 4).median, 2.5);
    struct spread s = spread_of(many, 101);
    cr_assert(s.p10 == 10 && s.median == 50 && s.p90 == 90 && s.samples == 101);
    cr_assert_eq(spread_of(many, 0).samples, 0);
}

Test(format, times_and_sizes_have_three_digits_and_a_unit)
{
    char text[32];
    cr_assert_str_eq(format_ns(1234, text, sizeof text), "1.23 us");
    cr_assert_str_eq(format_ns(45678, text, sizeof text), "45.7 us");
    cr_assert_str_eq(format_ns(12345678, text, sizeof text), "12.3 ms");
    cr_assert_str_eq(format_bytes(4, text, sizeof text), "4 B");
    cr_assert_str_eq(format_bytes(64 * KIB, text, sizeof text), "64 KiB");
    cr_assert_str_eq(format_bytes(3 * MIB / 2, text, sizeof text), "1.5 MiB");
}

Test(format, a_density_is_said_in_the_words_of_its_case)
{
    char text[32];
    struct cell cell = {.id = CASE_READ, .density = 1};
    cr_assert_str_eq(format_density(&cell, text, sizeof text), "");
    cell = (struct cell){.id = CASE_GATHER, .density = 0x1p-20};
    cr_assert_str_eq(format_density(&cell, text, sizeof text), "1/1048576 of words");
    cell.density = 1;
    cr_assert_str_eq(format_density(&cell, text, sizeof text), "all words");
    cell = (struct cell){.id = CASE_LOOKUP, .density = 16384};
    cr_assert_str_eq(format_density(&cell, text, sizeof text), "16384 look-ups");
}

/* shim/reach, shim/launch: what a launch can do to a window. */
#include <criterion/criterion.h>
#include <math.h>

#include "shim/reach.h"

static struct ptx_parameter parameters[] = {
    {.offset_bytes = 0, .size_bytes = 4}, {.offset_bytes = 8, .size_bytes = 8}, {.offset_bytes = 16, .size_bytes = 24}};
/* The second parameter is read once a thread, a pointer in the third, a struct, is added to by atomics. */
static struct ptx_pointer pointers[] = {
    {.parameter = 1, .offset_bytes = 8, .use = PTX_READS, .accesses_per_thread = 1},
    {.parameter = 2, .offset_bytes = 32, .use = PTX_MAY_WRITE, .atomics = true, .accesses_per_thread = 2}};
static struct ptx_kernel kernel = {
    .parameters = parameters, .parameter_count = 3, .pointers = pointers, .pointer_count = 2, .atomics = true};

static int count;
static uintptr_t read_from = 0x200000, structure[3] = {0, 0, 0x600010};
static void *arguments[] = {&count, &read_from, structure};
static struct launch launch = {.threads = 1000, .parameters = arguments};
static const size_t bytes = 0x200000;

static double loss(struct reach reach, uintptr_t base, enum cost_class expected)
{
    double ns = -1;
    cr_assert_eq(reach_class(&reach, &launch, base, bytes, &ns), expected);
    return ns;
}

Test(launch_reach, a_window_that_no_argument_points_into_loses_nothing)
{
    cr_assert_eq(loss((struct reach){&kernel, true}, 0x800000, COST_PLAIN), 0);
}

Test(launch_reach, each_window_is_judged_by_the_pointers_into_it)
{
    cr_assert_float_eq(loss((struct reach){&kernel, true}, 0x200000, COST_PLAIN), cost_launch_loss_ns(1000, 1, 0), 1);
    cr_assert_float_eq(loss((struct reach){&kernel, true}, 0x600000, COST_ATOMICS), cost_launch_loss_ns(1000, 2, 2), 1);
}

Test(launch_reach, an_address_at_a_windows_end_may_be_of_the_one_before)
{
    read_from = 0x400000;
    cr_assert_gt(loss((struct reach){&kernel, true}, 0x200000, COST_PLAIN), 0);
    cr_assert_gt(loss((struct reach){&kernel, true}, 0x400000, COST_PLAIN), 0);
}

Test(launch_reach, an_address_just_before_a_window_may_be_of_an_array_in_it)
{
    read_from = 0x200000 - 8;
    cr_assert_gt(loss((struct reach){&kernel, true}, 0x200000, COST_PLAIN), 0);
    cr_assert_eq(loss((struct reach){&kernel, true}, 0x400000, COST_PLAIN), 0);
    struct reach reach = {&kernel, true};
    uint64_t before = reach_hash(&reach, &launch, 0x100000, 0x900000, bytes / 2);
    read_from = 0x180000;
    cr_assert_neq(reach_hash(&reach, &launch, 0x100000, 0x900000, bytes / 2), before);
}

Test(launch_reach, without_arguments_every_pointer_may_point_anywhere)
{
    cr_assert_float_eq(loss((struct reach){&kernel, false}, 0x800000, COST_ATOMICS), cost_launch_loss_ns(1000, 3, 2),
                       1);
    launch.parameters = NULL;
    cr_assert_float_eq(loss((struct reach){&kernel, true}, 0x800000, COST_ATOMICS), cost_launch_loss_ns(1000, 3, 2), 1);
}

Test(launch_reach, a_buffer_of_arguments_is_read_as_far_as_it_goes)
{
    unsigned char buffer[40] = {0};
    size_t size = sizeof buffer;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    uintptr_t value = 0;
    memcpy(buffer + 8, &(uintptr_t){0x200008}, 8);
    memcpy(buffer + 32, &(uintptr_t){0x600008}, 8);
    launch = (struct launch){.threads = 1, .extra = extra};
    cr_assert(launch_pointer(&launch, &kernel, &pointers[1], &value));
    cr_assert_eq(value, 0x600008);
    size = 36;
    cr_assert(!launch_pointer(&launch, &kernel, &pointers[1], &value));
}

Test(launch_reach, loaded_pointers_and_unbounded_loops_have_no_bound)
{
    kernel.loads_elsewhere = true;
    cr_assert(isinf(loss((struct reach){&kernel, true}, 0x800000, COST_PLAIN)));
    kernel.loads_elsewhere = false;
    pointers[0].accesses_per_thread = PTX_UNBOUNDED;
    cr_assert(isinf(loss((struct reach){&kernel, true}, 0x200000, COST_PLAIN)));
    cr_assert(isinf(loss((struct reach){&kernel, false}, 0x200000, COST_ATOMICS)));
    cr_assert(isinf(loss((struct reach){NULL, true}, 0x800000, COST_UNKNOWN)));
}

Test(launch_reach, the_hash_tells_launches_on_other_windows_apart)
{
    struct reach reach = {&kernel, true};
    uint64_t one = reach_hash(&reach, &launch, 0x200000, 0x1000000, 0x200000), same, other;
    read_from += 16;
    same = reach_hash(&reach, &launch, 0x200000, 0x1000000, 0x200000);
    read_from += 0x400000;
    other = reach_hash(&reach, &launch, 0x200000, 0x1000000, 0x200000);
    cr_assert_eq(one, same);
    cr_assert_neq(one, other);
    reach.by_arguments = false;
    cr_assert_eq(reach_hash(&reach, &launch, 0x200000, 0x1000000, 0x200000), 0);
}

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "shim/site.h"
#include "tests/report/fake_shim.h"

static volatile int after;

__attribute__((noinline)) static struct site *here(void)
{
    struct site *site = fake_capture();
    after++;
    return site;
}

__attribute__((noinline)) static struct site *deep(int depth)
{
    struct site *site = depth ? deep(depth - 1) : here();
    after++;
    return site;
}

Test(site, equal_stacks_are_one_site)
{
    struct site *first = NULL;
    for (int i = 0; i < 10; i++) {
        struct site *site = here();
        cr_assert_not_null(site);
        if (!first) first = site;
        cr_assert_eq(site, first);
    }
}

Test(site, other_callers_are_other_sites)
{
    struct site *one = here();
    struct site *other = here();
    cr_assert_neq(one, other);
    cr_assert_neq(one->hash, other->hash);
    cr_assert_neq(one->id, other->id);
    cr_assert_neq(deep(3), deep(4));
}

Test(site, the_stack_pointer_does_not_matter)
{
    struct site *first = NULL;
    for (int i = 0; i < 50; i++) {
        volatile char *hole = __builtin_alloca((size_t)i * 16 + 16);
        hole[0] = 1;
        struct site *site = deep(2);
        if (!first) first = site;
        cr_assert_eq(site, first);
    }
}

Test(site, begins_at_the_caller_of_the_hook)
{
    Dl_info info;
    struct site *site = here();
    cr_assert_gt(site->depth, 2);
    cr_assert_lt((char *)site->frames[0] - (char *)here, 64, "not a frame of the shim");
    cr_assert(dladdr((void *)site->frames[0], &info));
    cr_assert_not(strstr(info.dli_fname, "libfakeshim"));
}

Test(site, is_never_deeper_than_the_option)
{
    setenv("ZCSHIM_SITE_DEPTH", "4", 1);
    fake_start();
    struct site *site = deep(20);
    cr_assert_eq(site->depth, 4);
    cr_assert_eq(site, deep(10), "the innermost frames tell sites apart, and these are the same");
}

/* The same return addresses further in, another caller further out, the same place on the stack: the cache must see it.
 */
__attribute__((noinline)) static struct site *one_way(void)
{
    struct site *site = deep(5);
    after++;
    return site;
}
__attribute__((noinline)) static struct site *other_way(void)
{
    struct site *site = deep(5);
    after++;
    return site;
}

Test(site, the_cache_sees_a_change_far_up_the_stack)
{
    struct site *(*volatile ways[2])(void) = {one_way, other_way};
    struct site *sites[2] = {NULL, NULL};
    for (int i = 0; i < 20; i++) {
        struct site *site = ways[i % 2]();
        if (i < 2) sites[i] = site;
        cr_assert_eq(site, sites[i % 2]);
    }
    cr_assert_neq(sites[0], sites[1]);
}

static void *in_thread(void *unused)
{
    (void)unused;
    struct site *first = NULL;
    for (int i = 0; i < 20000; i++) {
        struct site *site = deep(i % 2);
        if (i == 0) first = site;
        if (i % 2 == 0 && site != first) return NULL;
    }
    return first;
}

Test(site, threads_agree)
{
    pthread_t threads[8];
    void *results[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, in_thread, NULL);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], &results[i]);
    for (int i = 0; i < 8; i++) {
        cr_assert_not_null(results[i]);
        cr_assert_eq(results[i], results[0]);
    }
}

static ucontext_t main_context, fiber;
static struct site *fiber_site;
static void in_fiber(void) { fiber_site = deep(1); }

Test(site, other_stacks_work_too)
{
    static char stacks[2][65536] __attribute__((aligned(4096)));
    struct site *sites[2];
    for (volatile int i = 0; i < 2; i++) {
        getcontext(&fiber);
        fiber.uc_stack.ss_sp = stacks[i];
        fiber.uc_stack.ss_size = sizeof stacks[i];
        fiber.uc_link = &main_context;
        makecontext(&fiber, in_fiber, 0);
        swapcontext(&main_context, &fiber);
        sites[i] = fiber_site;
    }
    cr_assert_not_null(sites[0]);
    cr_assert_eq(sites[0], sites[1]);
}

Test(site, the_first_capture_allocates_nothing_through_malloc)
{
    struct mallinfo2 before = mallinfo2();
    here();
    deep(10);
    struct mallinfo2 now = mallinfo2();
    cr_assert_eq(before.uordblks, now.uordblks);
    cr_assert_eq(before.hblkhd, now.hblkhd);
}

Test(site, the_hash_is_the_same_in_a_process_loaded_elsewhere)
{
    char line[64], again[64];
    for (int i = 0; i < 2; i++) {
        FILE *run = popen(FAKE_PROGRAM " hash", "r");
        cr_assert_not_null(fgets(i ? again : line, sizeof line, run));
        pclose(run);
    }
    cr_assert_str_eq(line, again);
}

/* Costs of the pieces that hooks call: prints ns each. With a number as argument, fails if one is above its bar times
 * that number. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "tests/report/fake_shim.h"

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct site *volatile kept;

/* A call chain as deep as one through a framework. */
__attribute__((noinline)) static struct site *deep(int depth)
{
    struct site *site = depth ? deep(depth - 1) : fake_capture();
    kept = site;
    return site;
}

static int failed;
static double slack;

static void show(const char *what, double ns, double bar)
{
    int over = slack > 0 && ns > bar * slack;
    printf("%-44s %9.1f ns  (bar %.0f)%s\n", what, ns, bar, over ? "  TOO SLOW" : "");
    failed |= over;
}

enum { ROUNDS = 200000, ENTRIES = 200000 };

static void bench_site(void)
{
    double start = now_ns();
    kept = fake_capture();
    double first = now_ns() - start;
    start = now_ns();
    for (int i = 0; i < ROUNDS; i++) kept = fake_capture();
    show("capture, same stack", (now_ns() - start) / ROUNDS, 150);
    for (int i = 0; i < 2; i++) deep(20);
    start = now_ns();
    for (int i = 0; i < ROUNDS; i++) deep(20);
    show("capture, same stack, 20 frames", (now_ns() - start) / ROUNDS, 200);
    start = now_ns();
    for (int i = 0; i < 1000; i++) {
        volatile char *moved = __builtin_alloca((size_t)(i % 1000 + 1) * 16); /* another stack pointer: never seen */
        moved[0] = 1;
        deep(20);
    }
    show("capture, unwound, 20 frames", (now_ns() - start) / 1000, 8000);
    show("first capture of the process", first, 200000);
}

static void bench_buffers(void)
{
    uintptr_t *addresses = malloc(ENTRIES * sizeof *addresses);
    double start = now_ns();
    for (int i = 0; i < ENTRIES; i++) addresses[i] = fake_allocate(0, 64);
    double add = now_ns() - start;
    for (int i = ENTRIES - 1; i > 0; i--) {
        int other = rand() % (i + 1);
        uintptr_t one = addresses[i];
        addresses[i] = addresses[other];
        addresses[other] = one;
    }
    start = now_ns();
    for (int i = 0; i < ENTRIES; i++) fake_free(addresses[i]);
    double gone = now_ns() - start;
    show("site + add, growing to 200 000", add / ENTRIES, 300);
    show("site + remove, random order of 200 000", gone / ENTRIES, 400);
    start = now_ns();
    for (int i = 0; i < ROUNDS; i++) fake_free(fake_allocate(0, 64));
    show("2 sites + add + remove, small table", (now_ns() - start) / ROUNDS, 400);
    free(addresses);
}

int main(int argc, char **argv)
{
    slack = argc > 1 ? atof(argv[1]) : 0;
    bench_site();
    bench_buffers();
    return failed;
}

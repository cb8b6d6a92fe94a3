/* CPU programs without CUDA: walks over several large arrays, copies of one, and small allocations. cpu PART: prints
 * lines "name value" (ms or ns). */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MIB ((size_t)1 << 20)

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The best of several rounds: noise only adds. */
#define BEST(rounds, body)                                                                                             \
    ({                                                                                                                 \
        double best = 1e18;                                                                                            \
        for (int round_ = 0; round_ < (rounds); round_++) {                                                            \
            double began = now_ns();                                                                                   \
            body;                                                                                                      \
            double took = now_ns() - began;                                                                            \
            if (took < best) best = took;                                                                              \
        }                                                                                                              \
        best;                                                                                                          \
    })

/* Each part is measured with libc's own allocator and with malloc, which is the library's when that is preloaded: by
 * turns in one process, since where a process's pages lie decides more than what is compared here. Without the library
 * both are the same, and their ratio is the noise. */
void *__libc_malloc(size_t bytes);
void __libc_free(void *block);
enum side { LIBC, OURS, SIDES };
#define TURNS 6
static inline __attribute__((always_inline)) void *take(enum side side, size_t bytes)
{
    void *block = side == LIBC ? __libc_malloc(bytes) : malloc(bytes);
    if (!block) exit(1);
    return block;
}
static inline __attribute__((always_inline)) void give(enum side side, void *block)
{
    if (side == LIBC)
        __libc_free(block);
    else
        free(block);
}

/* The best of the turns: noise only adds. */
static void print_best(const char *name, const char *suffix, double (*samples)[TURNS], double unit)
{
    for (int side = 0; side < SIDES; side++) {
        double best = samples[side][0];
        for (int turn = 1; turn < TURNS; turn++)
            if (samples[side][turn] < best) best = samples[side][turn];
        printf("%s%s%s %.4f\n", name, side == LIBC ? "_libc" : "", suffix, best / unit);
    }
}

static void walks(void)
{
    for (size_t mib = 8; mib <= 64; mib *= 2) {
        size_t n = mib * MIB / sizeof(double), row = 1;
        double triad[SIDES][TURNS], fma[SIDES][TURNS], stencil[SIDES][TURNS];
        while ((row * 2) * (row * 2) <= n) row *= 2;
        for (int turn = 0; turn < TURNS * SIDES; turn++) {
            enum side side = (enum side)((turn + turn / SIDES) % SIDES);
            double *a = take(side, n * sizeof *a), *b = take(side, n * sizeof *b), *c = take(side, n * sizeof *c),
                   *d = take(side, n * sizeof *d);
            for (size_t i = 0; i < n; i++) a[i] = b[i] = c[i] = d[i] = (double)i;
            triad[side][turn / SIDES] = BEST(5, for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i]);
            fma[side][turn / SIDES] = BEST(5, for (size_t i = 0; i < n; i++) d[i] = a[i] * b[i] + c[i]);
            stencil[side][turn / SIDES] =
                BEST(5, for (size_t y = 1; y + 1 < row; y++) for (size_t x = 1; x + 1 < row; x++) a[y * row + x] =
                            b[y * row + x] + b[y * row + x - 1] + b[y * row + x + 1] + b[(y - 1) * row + x] +
                            b[(y + 1) * row + x]);
            if (a[5] + d[7] == 0.5) puts("");
            give(side, a);
            give(side, b);
            give(side, c);
            give(side, d);
        }
        char suffix[32];
        snprintf(suffix, sizeof suffix, "_ms_%zuM", mib);
        print_best("triad", suffix, triad, 1e6);
        print_best("fma", suffix, fma, 1e6);
        print_best("stencil", suffix, stencil, 1e6);
    }
}

/* Many arrays at once: where each starts decides whether they share the first-level cache. */
static void many(int count)
{
    size_t n = 8 * MIB / sizeof(double);
    double *arrays[16], samples[SIDES][TURNS];
    for (int turn = 0; turn < TURNS * SIDES; turn++) {
        enum side side = (enum side)((turn + turn / SIDES) % SIDES);
        double *sum = take(side, n * sizeof *sum);
        for (int k = 0; k < count; k++) {
            arrays[k] = take(side, n * sizeof **arrays);
            for (size_t i = 0; i < n; i++) arrays[k][i] = (double)i;
        }
        samples[side][turn / SIDES] = BEST(
            5, for (size_t i = 0; i < n; i++) {
                double all = 0;
                for (int k = 0; k < count; k++) all += arrays[k][i];
                sum[i] = all;
            });
        for (int k = 0; k < count; k++) give(side, arrays[k]);
        give(side, sum);
    }
    char suffix[32];
    snprintf(suffix, sizeof suffix, "_ms_%d", count);
    print_best("sum", suffix, samples, 1e6);
}

/* As a framework copies an array into pinned memory before it sends it. */
static void copies(void)
{
    size_t bytes = 64 * MIB;
    char *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double samples[SIDES][TURNS];
    if (to == MAP_FAILED) exit(1);
    memset(to, 1, bytes);
    for (int turn = 0; turn < TURNS * SIDES; turn++) {
        enum side side = (enum side)((turn + turn / SIDES) % SIDES);
        char *from = take(side, bytes);
        memset(from, 1, bytes);
        samples[side][turn / SIDES] = BEST(5, memcpy(to, from, bytes));
        give(side, from);
    }
    print_best("memcpy", "_ms", samples, 1e6);
    munmap(to, bytes);
}

/* Allocates blocks of 64 B to 1 KiB, frees them in another order. Who allocates writes, and reads what was written:
 * `whole` does so with all of the block, otherwise only its first 64 bytes are written (nearly a bare malloc loop). */
struct churn {
    unsigned seed;
    unsigned long sum;
};
static inline __attribute__((always_inline)) void churn(struct churn *churn, enum side side, bool whole)
{
    unsigned seed = churn->seed;
    struct {
        unsigned char *start;
        size_t bytes;
    } held[256] = {0};
    for (int i = 0; i < 500000; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned slot = seed >> 24;
        for (size_t at = 0; whole && at < held[slot].bytes; at += 8)
            churn->sum += *(unsigned long *)(void *)(held[slot].start + at);
        give(side, held[slot].start);
        held[slot].bytes = 64 + (seed >> 8) % 960 / 8 * 8;
        held[slot].start = take(side, held[slot].bytes);
        memset(held[slot].start, 1, whole ? held[slot].bytes : 64);
    }
    for (int i = 0; i < 256; i++) give(side, held[i].start);
}
static void *churn_libc(void *argument) { return churn(argument, LIBC, true), NULL; }
static void *churn_ours(void *argument) { return churn(argument, OURS, true), NULL; }
static void *churn_libc_bare(void *argument) { return churn(argument, LIBC, false), NULL; }
static void *churn_ours_bare(void *argument) { return churn(argument, OURS, false), NULL; }

static void heavy(int threads, bool whole)
{
    void *(*const work[][SIDES])(void *) = {{churn_libc_bare, churn_ours_bare}, {churn_libc, churn_ours}};
    pthread_t ids[8];
    struct churn churns[8];
    double samples[SIDES][TURNS];
    for (int turn = 0; turn < TURNS * SIDES; turn++) {
        enum side side = (enum side)((turn + turn / SIDES) % SIDES);
        samples[side][turn / SIDES] = BEST(3, ({
                                               for (int i = 0; i < threads; i++) {
                                                   churns[i] = (struct churn){.seed = (unsigned)i + 1};
                                                   pthread_create(&ids[i], NULL, work[whole][side], &churns[i]);
                                               }
                                               for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
                                           }));
    }
    char suffix[32];
    snprintf(suffix, sizeof suffix, "_ms_%d", threads);
    print_best(whole ? "churn" : "churn_bare", suffix, samples, 1e6);
}

static void pairs(void)
{
    double samples[SIDES][TURNS];
    for (int turn = 0; turn < TURNS * SIDES; turn++) {
        enum side side = (enum side)((turn + turn / SIDES) % SIDES);
        /* Each side has a loop of its own: nothing is decided in it. */
#define PAIRS(which)                                                                                                   \
    BEST(                                                                                                              \
        10, for (int i = 0; i < 1000000; i++) {                                                                        \
            void *volatile block = take(which, 64 + (size_t)(i & 511));                                                \
            give(which, block);                                                                                        \
        })
        samples[side][turn / SIDES] = side == LIBC ? PAIRS(LIBC) : PAIRS(OURS);
    }
    print_best("pair", "_ns", samples, 1e6);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "walks")) walks();
        if (!strcmp(argv[i], "many")) many(6), many(16);
        if (!strcmp(argv[i], "memcpy")) copies();
        if (!strcmp(argv[i], "heavy")) heavy(1, true), heavy(8, true), heavy(1, false), heavy(8, false);
        if (!strcmp(argv[i], "pairs")) pairs();
    }
    return 0;
}

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

static void walks(void)
{
    for (size_t mib = 8; mib <= 64; mib *= 2) {
        size_t n = mib * MIB / sizeof(double), side = 1;
        double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c),
               *d = malloc(n * sizeof *d);
        for (size_t i = 0; i < n; i++) a[i] = b[i] = c[i] = d[i] = (double)i;
        while ((side * 2) * (side * 2) <= n) side *= 2;
        double triad = BEST(7, for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i]);
        double fma = BEST(7, for (size_t i = 0; i < n; i++) d[i] = a[i] * b[i] + c[i]);
        double stencil = BEST(7, for (size_t y = 1; y + 1 < side; y++) for (size_t x = 1; x + 1 < side; x++)
                                     a[y * side + x] = b[y * side + x] + b[y * side + x - 1] + b[y * side + x + 1] +
                                                       b[(y - 1) * side + x] + b[(y + 1) * side + x]);
        printf("triad_ms_%zuM %.4f\nfma_ms_%zuM %.4f\nstencil_ms_%zuM %.4f\n", mib, triad / 1e6, mib, fma / 1e6, mib,
               stencil / 1e6);
        if (a[5] + d[7] == 0.5) puts("");
        free(a);
        free(b);
        free(c);
        free(d);
    }
}

/* Many arrays at once: where each starts decides whether they share the first-level cache. */
static void many(int count)
{
    size_t n = 8 * MIB / sizeof(double);
    double *arrays[16], *sum = malloc(n * sizeof *sum);
    for (int k = 0; k < count; k++) {
        arrays[k] = malloc(n * sizeof **arrays);
        for (size_t i = 0; i < n; i++) arrays[k][i] = (double)i;
    }
    double ns = BEST(
        7, for (size_t i = 0; i < n; i++) {
            double all = 0;
            for (int k = 0; k < count; k++) all += arrays[k][i];
            sum[i] = all;
        });
    printf("sum_ms_%d %.4f\n", count, ns / 1e6);
    for (int k = 0; k < count; k++) free(arrays[k]);
    free(sum);
}

/* As a framework copies an array into pinned memory before it sends it. */
static void copies(void)
{
    size_t bytes = 64 * MIB;
    char *from = malloc(bytes), *to;
    to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!from || to == MAP_FAILED) exit(1);
    memset(from, 1, bytes);
    memset(to, 1, bytes);
    printf("memcpy_ms %.4f\n", BEST(15, memcpy(to, from, bytes)) / 1e6);
    munmap(to, bytes);
    free(from);
}

/* Allocates blocks of 64 B to 1 KiB, frees them in another order. Who allocates writes, and reads what was written:
 * `whole` does so with all of the block, otherwise only its first 64 bytes are written (nearly a bare malloc loop). */
struct churn {
    unsigned seed;
    bool whole;
    unsigned long sum;
};
static void *churn(void *argument)
{
    struct churn *churn = argument;
    unsigned seed = churn->seed;
    struct {
        unsigned char *start;
        size_t bytes;
    } held[256] = {0};
    for (int i = 0; i < 1500000; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned slot = seed >> 24;
        for (size_t at = 0; churn->whole && at < held[slot].bytes; at += 8)
            churn->sum += *(unsigned long *)(void *)(held[slot].start + at);
        free(held[slot].start);
        held[slot].bytes = 64 + (seed >> 8) % 960 / 8 * 8;
        held[slot].start = malloc(held[slot].bytes);
        memset(held[slot].start, 1, churn->whole ? held[slot].bytes : 64);
    }
    for (int i = 0; i < 256; i++) free(held[i].start);
    return NULL;
}

static void heavy(int threads, bool whole)
{
    pthread_t ids[8];
    struct churn churns[8];
    double ns = BEST(4, ({
                         for (int i = 0; i < threads; i++) {
                             churns[i] = (struct churn){.seed = (unsigned)i + 1, .whole = whole};
                             pthread_create(&ids[i], NULL, churn, &churns[i]);
                         }
                         for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
                     }));
    printf("churn%s_ms_%d %.4f\n", whole ? "" : "_bare", threads, ns / 1e6);
}

static void pairs(void)
{
    double ns = BEST(
        30, for (int i = 0; i < 1000000; i++) {
            void *volatile block = malloc(64 + (size_t)(i & 511));
            free(block);
        });
    printf("pair_ns %.4f\n", ns / 1e6);
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

/* CPU programs without CUDA: walks over several large arrays, and small allocations. cpu PART: prints lines "name
 * value" (ms or ns). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void *churn(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    void *held[256] = {0};
    for (int i = 0; i < 3000000; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned slot = seed >> 24;
        free(held[slot]);
        held[slot] = malloc(64 + (seed >> 8) % 960);
        memset(held[slot], 1, 64); /* who allocates writes */
    }
    for (int i = 0; i < 256; i++) free(held[i]);
    return NULL;
}

static void heavy(int threads)
{
    pthread_t ids[8];
    double ns = BEST(4, ({
                         for (int i = 0; i < threads; i++)
                             pthread_create(&ids[i], NULL, churn, (void *)(size_t)(i + 1));
                         for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
                     }));
    printf("churn_ms_%d %.4f\n", threads, ns / 1e6);
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
        if (!strcmp(argv[i], "heavy")) heavy(1), heavy(8);
        if (!strcmp(argv[i], "pairs")) pairs();
    }
    return 0;
}

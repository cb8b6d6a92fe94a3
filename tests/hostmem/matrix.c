/* Every way to allocate, times every way to give back, at sizes around the limit. Prints nothing and returns 0, or says
 * what broke. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define BROKEN(...)                                                                                                    \
    do {                                                                                                               \
        fprintf(stderr, "matrix: " __VA_ARGS__);                                                                       \
        fputc('\n', stderr);                                                                                           \
        exit(1);                                                                                                       \
    } while (0)

static void *by_malloc(size_t n) { return malloc(n); }
static void *by_calloc(size_t n) { return calloc(n / 2 + n % 2, 2); }
static void *by_realloc(size_t n) { return realloc(NULL, n); }
static void *by_growing(size_t n) { return realloc(malloc(n / 3), n); }
static void *by_shrinking(size_t n) { return realloc(malloc(n * 3), n); }
static void *by_reallocarray(size_t n) { return reallocarray(NULL, n / 2 + n % 2, 2); }
static void *by_memalign(size_t n) { return memalign(128, n); }
static void *by_memalign_huge(size_t n) { return memalign(16 * MIB, n); }
static void *by_aligned_alloc(size_t n) { return aligned_alloc(4096, n); }
static void *by_valloc(size_t n) { return valloc(n); }
static void *by_pvalloc(size_t n) { return pvalloc(n); }
static void *by_posix_memalign(size_t n)
{
    void *p = NULL;
    return posix_memalign(&p, 64, n) ? NULL : p;
}
static const struct {
    const char *name;
    void *(*take)(size_t);
    size_t alignment;
} takes[] = {{"malloc", by_malloc, 16},
             {"calloc", by_calloc, 16},
             {"realloc", by_realloc, 16},
             {"growing", by_growing, 16},
             {"shrinking", by_shrinking, 16},
             {"reallocarray", by_reallocarray, 16},
             {"memalign", by_memalign, 128},
             {"memalign 16M", by_memalign_huge, 16 * MIB},
             {"aligned_alloc", by_aligned_alloc, 4096},
             {"valloc", by_valloc, 4096},
             {"pvalloc", by_pvalloc, 4096},
             {"posix_memalign", by_posix_memalign, 64}};

static void by_free(unsigned char *p, size_t n)
{
    (void)n;
    free(p);
}
static void to_nothing(unsigned char *p, size_t n)
{
    (void)n;
    if (realloc(p, 0)) BROKEN("realloc to 0 gave a block");
}
static void resized(unsigned char *p, size_t n, size_t to)
{
    unsigned char first = p[0], last = p[(n < to ? n : to) - 1], middle = p[(n < to ? n : to) / 2];
    unsigned char *q = realloc(p, to);
    if (!q) BROKEN("realloc from %zu to %zu failed", n, to);
    if (q[0] != first || q[(n < to ? n : to) - 1] != last || q[(n < to ? n : to) / 2] != middle)
        BROKEN("realloc from %zu to %zu lost bytes", n, to);
    if (malloc_usable_size(q) < to) BROKEN("usable after realloc to %zu", to);
    memset(q, 3, to);
    free(q);
}
static void to_small(unsigned char *p, size_t n) { resized(p, n, 100); }
static void to_half(unsigned char *p, size_t n) { resized(p, n, n / 2 + 1); }
static void to_less(unsigned char *p, size_t n) { resized(p, n, n - 1); }
static void to_more(unsigned char *p, size_t n) { resized(p, n, n + 5000); }
static void to_triple(unsigned char *p, size_t n) { resized(p, n, n * 3); }
static void (*const gives[])(unsigned char *, size_t) = {by_free, to_nothing, to_small, to_half,
                                                         to_less, to_more,    to_triple};

int main(void)
{
    size_t sizes[] = {2, 1000, 200 * 1024, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 9 * MIB + 77, 70 * MIB};
    for (int round = 0; round < 2; round++)
        for (size_t t = 0; t < sizeof takes / sizeof *takes; t++)
            for (size_t g = 0; g < sizeof gives / sizeof *gives; g++)
                for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                    size_t n = sizes[s];
                    if (n > 10 * MIB && (g & 1)) continue;
                    errno = 77;
                    unsigned char *p = takes[t].take(n);
                    if (!p) BROKEN("%s of %zu failed", takes[t].name, n);
                    if ((uintptr_t)p % takes[t].alignment) BROKEN("%s of %zu is at %p", takes[t].name, n, (void *)p);
                    size_t usable = malloc_usable_size(p);
                    if (usable < n) BROKEN("%s of %zu has %zu usable", takes[t].name, n, usable);
                    if (takes[t].take == by_calloc)
                        for (size_t i = 0; i<n; i += n> 9999 ? 511 : 1)
                            if (p[i]) BROKEN("calloc of %zu is not zero at %zu", n, i);
                    memset(p, (int)(t + g), n);
                    memset(p, (int)(t + g), usable);
                    gives[g](p, n);
                    if (errno != 77) BROKEN("%s of %zu: errno %d", takes[t].name, n, errno);
                }
    errno = 0;
    volatile size_t too_much = (size_t)1 << 62;
    if (malloc(too_much) || errno != ENOMEM) BROKEN("malloc of 2^62");
    if (calloc(too_much, 16) || reallocarray(NULL, too_much, 16)) BROKEN("product that overflows");
    void *p = malloc(8 * MIB);
    if (realloc(p, too_much)) BROKEN("realloc to 2^62");
    memset(p, 1, 8 * MIB);
    free(p);
    free(NULL);
    if (posix_memalign(&p, 24, 8 * MIB) != EINVAL) BROKEN("posix_memalign with alignment 24");
    return 0;
}

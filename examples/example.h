// What every example shares: checked CUDA calls, options, a clock, a loop that can be made longer, a checksum.
// Results go to stdout and are the same in every run; times go to stderr.
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t status_ = (call);                                                                                  \
        if (status_ != cudaSuccess) {                                                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_));                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static inline int option_given(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name)) return i;
    return 0;
}

static inline const char *option_text(int argc, char **argv, const char *name, const char *otherwise)
{
    int i = option_given(argc, argv, name);
    return i && i + 1 < argc ? argv[i + 1] : otherwise;
}

// A number, with K, M or G behind it for powers of 1024.
static inline double option_number(int argc, char **argv, const char *name, double otherwise)
{
    const char *text = option_text(argc, argv, name, NULL);
    if (!text) return otherwise;
    char *end;
    double value = strtod(text, &end);
    return *end == 'K' ? value * 1024 : *end == 'M' ? value * 1048576 : *end == 'G' ? value * 1073741824 : value;
}

// Repeats rounds of the same work: once, or until --seconds or --iterations are reached. Usage:
//     struct loop loop = loop_start(argc, argv);
//     do { ...; loop.iterations += n; } while (loop_again(&loop));
struct loop {
    double seconds, started_us;
    double excluded_us; // what the program spent on something else than the loop
    long iterations, wanted;
};

static inline struct loop loop_start(int argc, char **argv)
{
    struct loop loop = {option_number(argc, argv, "--seconds", 0), now_us(), 0, 0,
                        (long)option_number(argc, argv, "--iterations", 0)};
    return loop;
}

// Says whether to go round again; when not, prints what an iteration took.
static inline int loop_again(const struct loop *loop)
{
    double spent_us = now_us() - loop->started_us - loop->excluded_us;
    if (spent_us < loop->seconds * 1e6 || loop->iterations < loop->wanted) return 1;
    fprintf(stderr, "loop: %.3f us per iteration (%ld iterations)\n", spent_us / loop->iterations, loop->iterations);
    return 0;
}

// The same numbers everywhere.
static inline uint32_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 33);
}

// FNV-1a of the bytes of a result.
static inline uint64_t checksum(const void *data, size_t bytes)
{
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211ull;
    return hash;
}

// Prints the verdict of the CPU check; its value is the exit code.
static inline int verdict(const char *name, long wrong)
{
    if (wrong)
        printf("%s: FAILED, %ld wrong\n", name, wrong);
    else
        printf("%s: passed\n", name);
    return wrong != 0;
}

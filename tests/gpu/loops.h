// What the loops of loops.cu share: their clock, and on the CPU what their kernels compute.
#pragma once
#include "examples/example.h"
#include "loops_kernels.cuh"
#include <string>
#include <vector>

struct run {
    double seconds, setup_us, started_us, now_us, total_us, first_us, next_mark;
    long wanted, first, done, unit, wrong;
    uint64_t hash;
    int small;
    std::string marks, more;
};

// The loop is about to start. It ends on a multiple of `unit` iterations.
static void run_start(run *run, long unit = 1)
{
    run->unit = unit;
    CUDA(cudaDeviceSynchronize());
    run->started_us = now_us();
}

// Says whether to go round once more; counts the rounds.
static bool run_next(run *run)
{
    const double spent_us = now_us() - run->started_us;
    if (run->done == run->first) run->first_us = spent_us;
    if (run->done >= run->next_mark) {
        char text[64];
        snprintf(text, sizeof(text), "%s[%ld, %.4f]", run->done > 1 ? ", " : "", run->done, spent_us / 1e3);
        run->marks += text;
        run->next_mark = run->done * 1.05;
    }
    if (run->done % run->unit || run->done < run->wanted || spent_us < run->seconds * 1e6) {
        run->done++;
        return true;
    }
    CUDA(cudaDeviceSynchronize());
    run->total_us = now_us() - run->started_us;
    return false;
}

static void expect(run *run, bool right) { run->wrong += !right; }

#define LOOPS_FACTOR 1664525u

// A grid that fills the GPU, or a few threads.
static int grid_of(const run *run, int blocks) { return run->small ? 2 : blocks; }

static unsigned look_up_on_cpu(unsigned x, const unsigned *table, unsigned mask, int lookups)
{
    unsigned sum = 0;
    for (int k = 0; k < lookups; k++) {
        x = x * LOOPS_FACTOR + 1013904223u;
        sum += table[(x >> 8) & mask];
    }
    return sum;
}

// One thread of a block of 256.
static unsigned passes_on_cpu(unsigned thread, const unsigned *buffer, int words, int passes)
{
    unsigned hash = thread;
    for (int pass = 0; pass < passes; pass++)
        for (int i = thread; i < words; i += 256) hash = hash * 31 + buffer[(i + pass) & (words - 1)];
    return hash;
}

static std::vector<unsigned> random_words(size_t count, uint64_t seed)
{
    std::vector<unsigned> words(count);
    for (unsigned &word : words) word = random_next(&seed);
    return words;
}

// A table on both sides, changed 64 bytes at a time.
struct table {
    std::vector<unsigned> host;
    unsigned *device, turn;
    size_t places;
};

static void table_update(table *table)
{
    const size_t at = table->turn % table->places * 16;
    for (int i = 0; i < 16; i++) table->host[at + i] += table->turn + i;
    table->turn++;
    CUDA(cudaMemcpy(table->device + at, &table->host[at], 64, cudaMemcpyHostToDevice));
}

static void check_look_ups(run *run, const unsigned *device_out, int threads, const table &table, int lookups)
{
    std::vector<unsigned> out(threads);
    CUDA(cudaMemcpy(out.data(), device_out, threads * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (int i = 0; i < threads; i += 61)
        expect(run, out[i] == look_up_on_cpu(i * 2654435761u, table.host.data(), table.host.size() - 1, lookups));
    run->hash = checksum(out.data(), threads * sizeof(unsigned));
}

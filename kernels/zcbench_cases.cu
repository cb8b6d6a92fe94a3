/* The table of cases and their launches. */
#include "kernels/copy_kernels.cuh"
#include "kernels/count_kernels.cuh"
#include "kernels/filter_kernels.cuh"
#include "kernels/sparse_kernels.cuh"
#include "kernels/stream_kernels.cuh"
#include "kernels/zcbench.h"

extern "C" const struct bench_case bench_cases[CASES] = {
    {"stream_read", "every word read once", DATA_IN, NULL, 0},
    {"stream_write", "every word written once", DATA_OUT, NULL, 0},
    {"read_modify_write", "every word changed", DATA_IN | DATA_OUT, NULL, 0},
    {"multi_pass", "every word read several times", DATA_IN, "passes", 0},
    {"lookup", "random look-ups in a table", DATA_IN | DATA_POWER_OF_2, "look-ups", 0},
    {"lookup_shared", "look-ups, table first in shared memory", DATA_IN | DATA_POWER_OF_2, "look-ups",
     ZC_SHARED_WORDS * 4},
    {"gather", "a fraction of the words read, in random order", DATA_IN, "fraction", 0},
    {"scatter", "a fraction of the words written, in random order", DATA_IN | DATA_OUT, "fraction", 0},
    {"histogram_int", "counters under atomic adds", DATA_IN | DATA_OUT | DATA_POWER_OF_2, "adds", 0},
    {"pixel_lookup", "a colour map for 1 M pixels", DATA_IN | DATA_POWER_OF_2, NULL, 65536 * 4},
    {"pixel_lookup_shared", "a colour map, first in shared memory", DATA_IN | DATA_POWER_OF_2, NULL,
     ZC_SHARED_COLOURS * 4},
    {"poll_word", "a word that every thread polls", DATA_IN, "reads", 4},
    {"histogram_float", "float counters under atomic adds", DATA_IN | DATA_OUT | DATA_FLOAT | DATA_POWER_OF_2, "adds",
     0},
    {"reduction", "the sum of floats", DATA_IN | DATA_FLOAT, NULL, 0},
    {"fir", "filter coefficients for 64 K samples", DATA_IN | DATA_FLOAT, NULL, ZC_SHARED_TAPS * 4},
    {"fir_shared", "filter coefficients, first in shared memory", DATA_IN | DATA_FLOAT, NULL, ZC_SHARED_TAPS * 4},
    {"stencil", "a field under a five-point mean", DATA_IN | DATA_FLOAT, NULL, 0},
};

extern "C" unsigned gather_count(size_t words, double density)
{
    unsigned count = 1;
    while (count * 2.0 <= words * density * 1.0001 && count < (1u << 31)) count *= 2;
    return count;
}

static unsigned blocks_for(struct launch *launch, size_t items)
{
    size_t blocks = (items + ZC_BLOCK - 1) / ZC_BLOCK;
    if (blocks > launch->max_blocks) blocks = launch->max_blocks;
    if (blocks > PARTIALS_MAX) blocks = PARTIALS_MAX;
    launch->blocks = blocks ? (unsigned)blocks : 1;
    return launch->blocks;
}

/* Each block of a _shared kernel loads the whole table: no more of them than it takes to fill the GPU. */
static unsigned blocks_shared(struct launch *launch, size_t items)
{
    unsigned max = launch->max_blocks;
    launch->max_blocks = max > 3 ? max / 4 : 1;
    blocks_for(launch, items);
    launch->max_blocks = max;
    return launch->blocks;
}

extern "C" cudaError_t case_launch(struct launch *l)
{
    unsigned *words = (unsigned *)l->data;
    float *floats = (float *)l->data;
    size_t count = l->bytes / 4;
    unsigned mask = (unsigned)count - 1, times = (unsigned)l->density;
    unsigned sparse = l->id == CASE_GATHER || l->id == CASE_SCATTER ? gather_count(count, l->density) : 0;
    unsigned stride = sparse ? (unsigned)(count / sparse) : 0;

    switch (l->id) {
    case CASE_READ:
        stream_read<<<blocks_for(l, count / 4), ZC_BLOCK>>>(words, count, l->partial);
        break;
    case CASE_WRITE:
        stream_write<<<blocks_for(l, count / 4), ZC_BLOCK>>>(words, count, l->seed);
        break;
    case CASE_MODIFY:
        read_modify_write<<<blocks_for(l, count / 4), ZC_BLOCK>>>(words, count, l->seed | 1, l->seed ^ 77);
        break;
    case CASE_PASSES:
        multi_pass<<<blocks_for(l, count / 4), ZC_BLOCK>>>(words, count, times, l->partial);
        break;
    case CASE_LOOKUP:
        lookup<<<blocks_for(l, times), ZC_BLOCK>>>(words, mask, times, l->seed, l->partial);
        break;
    case CASE_LOOKUP_SHARED:
        lookup_shared<<<blocks_shared(l, times), ZC_BLOCK>>>(words, mask, times, l->seed, l->partial);
        break;
    case CASE_GATHER:
        gather<<<blocks_for(l, sparse), ZC_BLOCK>>>(words, (unsigned *)l->out, sparse, stride, l->seed);
        break;
    case CASE_SCATTER:
        scatter<<<blocks_for(l, sparse), ZC_BLOCK>>>(words, sparse, stride, l->seed);
        break;
    case CASE_HISTOGRAM_INT:
        histogram_int<<<blocks_for(l, times), ZC_BLOCK>>>(words, mask, times, l->seed);
        break;
    case CASE_HISTOGRAM_FLOAT:
        histogram_float<<<blocks_for(l, times), ZC_BLOCK>>>(floats, mask, times, l->seed);
        break;
    case CASE_PIXEL:
        pixel_lookup<<<blocks_for(l, PIXELS), ZC_BLOCK>>>(l->image, (unsigned *)l->out, PIXELS, words, mask);
        break;
    case CASE_PIXEL_SHARED:
        pixel_lookup_shared<<<blocks_shared(l, PIXELS), ZC_BLOCK>>>(l->image, (unsigned *)l->out, PIXELS, words, mask);
        break;
    case CASE_POLL:
        poll_word<<<blocks_for(l, 4096), ZC_BLOCK>>>(words, times, l->partial);
        break;
    case CASE_REDUCTION:
        /* The first float after the partials is the answer. */
        reduction<<<blocks_for(l, count / 4), ZC_BLOCK>>>(floats, count, (float *)l->partial);
        reduction<<<1, ZC_BLOCK>>>((float *)l->partial, l->blocks, (float *)(l->partial + PARTIALS_MAX));
        break;
    case CASE_FIR:
        fir<<<blocks_for(l, FIR_SAMPLES), ZC_BLOCK>>>(l->signal, (float *)l->out, FIR_SAMPLES, floats, (unsigned)count);
        break;
    case CASE_FIR_SHARED:
        fir_shared<<<blocks_shared(l, FIR_SAMPLES), ZC_BLOCK>>>(l->signal, (float *)l->out, FIR_SAMPLES, floats,
                                                                (unsigned)count);
        break;
    case CASE_STENCIL: {
        unsigned width = 64;
        while ((size_t)width * width < count) width *= 2;
        if (width > count) width = (unsigned)count;
        stencil<<<blocks_for(l, count), ZC_BLOCK>>>(floats, (float *)l->out, width, (unsigned)(count / width));
        break;
    }
    case CASES:
        return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

extern "C" cudaError_t transform_launch(const float *in, float *out, size_t count, unsigned rounds, cudaStream_t stream)
{
    size_t blocks = (count + ZC_BLOCK - 1) / ZC_BLOCK;
    transform_rounds<<<(unsigned)(blocks < 1024 ? blocks : 1024), ZC_BLOCK, 0, stream>>>(in, out, count, rounds);
    return cudaGetLastError();
}

extern "C" cudaError_t histogram_launch(unsigned *counts, unsigned mask, unsigned adds, bool system, unsigned blocks)
{
    if (system)
        histogram_system<<<blocks, ZC_BLOCK>>>(counts, mask, adds, 1);
    else
        histogram_int<<<blocks, ZC_BLOCK>>>(counts, mask, adds, 1);
    return cudaGetLastError();
}

extern "C" cudaError_t copy_launch(void *dst, const void *src, const size_t extent[3], const size_t dst_pitch[2],
                                   const size_t src_pitch[2], unsigned blocks)
{
    zc_copy<<<blocks, ZC_BLOCK>>>((char *)dst, (const char *)src, extent[0], extent[1], extent[2], dst_pitch[0],
                                  src_pitch[0], dst_pitch[1], src_pitch[1]);
    return cudaGetLastError();
}

extern "C" cudaError_t touch_launch(unsigned *data, size_t words, bool write)
{
    if (write)
        stream_write<<<1, ZC_BLOCK>>>(data, words, 1);
    else
        read_modify_write<<<1, ZC_BLOCK>>>(data, words, 1, 0);
    return cudaGetLastError();
}

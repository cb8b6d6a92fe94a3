/* Counting: histograms by atomics, counters shared with the CPU, and a reduction. */
#ifndef ZC_COUNT_KERNELS_CUH
#define ZC_COUNT_KERNELS_CUH
#include "kernels/common.cuh"

/* counts[mix(i + seed) & mask] += 1 for i in 0..adds-1 */
extern "C" __global__ void histogram_int(unsigned int *counts, unsigned int mask, unsigned int adds, unsigned int seed)
{
    for (unsigned long long i = zc_first(); i < adds; i += zc_step())
        atomicAdd(&counts[zc_mix((unsigned int)i + seed) & mask], 1u);
}

/* The same in float: exact while no bin passes 2^24. */
extern "C" __global__ void histogram_float(float *counts, unsigned int mask, unsigned int adds, unsigned int seed)
{
    for (unsigned long long i = zc_first(); i < adds; i += zc_step())
        atomicAdd(&counts[zc_mix((unsigned int)i + seed) & mask], 1.0f);
}

/* As histogram_int, with atomics that are promised to be atomic towards the CPU too. */
extern "C" __global__ void histogram_system(unsigned int *counts, unsigned int mask, unsigned int adds,
                                            unsigned int seed)
{
    for (unsigned long long i = zc_first(); i < adds; i += zc_step()) {
#ifdef __CUDACC__
        atomicAdd_system(&counts[zc_mix((unsigned int)i + seed) & mask], 1u);
#else
        atomicAdd(&counts[zc_mix((unsigned int)i + seed) & mask], 1u);
#endif
    }
}

/* Every thread reads the word `times` times, each time anew; partial[block] = the block's sum of what it saw. */
extern "C" __global__ void poll_word(const volatile unsigned int *word, unsigned int times, unsigned long long *partial)
{
    unsigned long long sum = 0;
    for (unsigned int i = 0; i < times; i++) sum += *word;
    sum = zc_block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__device__ static inline float zc_block_sum_float(float value)
{
    __shared__ float lane[ZC_BLOCK];
    lane[threadIdx.x] = value;
    __syncthreads();
    for (unsigned int half = ZC_BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) lane[threadIdx.x] += lane[threadIdx.x + half];
        __syncthreads();
    }
    return lane[0];
}

/* partial[block] = the block's share of the sum. A second launch of one block over `partial` finishes it. */
extern "C" __global__ void reduction(const float *data, unsigned long long count, float *partial)
{
    struct alignas(16) quad {
        float value[4];
    };
    const quad *quads = (const quad *)data;
    unsigned long long full = count / 4;
    float sum = 0;
    for (unsigned long long i = zc_first(); i < full; i += zc_step()) {
        quad q = quads[i];
        sum += (q.value[0] + q.value[1]) + (q.value[2] + q.value[3]);
    }
    if (zc_first() < count % 4) sum += data[full * 4 + zc_first()];
    sum = zc_block_sum_float(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

#endif

/* Sparse access: random look-ups in a table, gather from and scatter into a large array. */
#ifndef ZC_SPARSE_KERNELS_CUH
#define ZC_SPARSE_KERNELS_CUH
#include "kernels/common.cuh"

#define ZC_SHARED_WORDS 8192 /* the largest table that the _shared kernels take: 32 KiB */

/* partial[block] = the block's share of the sum of `count` look-ups. `mask` + 1, a power of two, is the table's size.
 */
extern "C" __global__ void lookup(const unsigned int *table, unsigned int mask, unsigned int count, unsigned int seed,
                                  unsigned long long *partial)
{
    unsigned long long sum = 0;
    for (unsigned long long i = zc_first(); i < count; i += zc_step())
        sum += table[zc_mix((unsigned int)i + seed) & mask];
    sum = zc_block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* The same with the table first loaded to shared memory: each block crosses the bus once for the table. */
extern "C" __global__ void lookup_shared(const unsigned int *table, unsigned int mask, unsigned int count,
                                         unsigned int seed, unsigned long long *partial)
{
    __shared__ unsigned int local[ZC_SHARED_WORDS];
    for (unsigned int i = threadIdx.x; i <= mask; i += blockDim.x) local[i] = table[i];
    __syncthreads();
    unsigned long long sum = 0;
    for (unsigned long long i = zc_first(); i < count; i += zc_step())
        sum += local[zc_mix((unsigned int)i + seed) & mask];
    sum = zc_block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* out[k] = data[position k]; `count`, a power of two, of data's words, one in each `stride`. */
extern "C" __global__ void gather(const unsigned int *data, unsigned int *out, unsigned int count, unsigned int stride,
                                  unsigned int seed)
{
    for (unsigned long long k = zc_first(); k < count; k += zc_step())
        out[k] = data[zc_position((unsigned int)k, count, stride, seed)];
}

/* data[position k] = mix(k + seed) */
extern "C" __global__ void scatter(unsigned int *data, unsigned int count, unsigned int stride, unsigned int seed)
{
    for (unsigned long long k = zc_first(); k < count; k += zc_step())
        data[zc_position((unsigned int)k, count, stride, seed)] = zc_mix((unsigned int)k + seed);
}

#endif

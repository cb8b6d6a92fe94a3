/* What the bundled kernels share. `zc_mix` is also what the CPU references and the fills use, so that a kernel's
 * indices and values need no index buffers, which would be one more thing to place and to pay for. */
#ifndef ZC_COMMON_CUH
#define ZC_COMMON_CUH

#define ZC_BLOCK 256 /* threads a block of every bundled kernel */

struct alignas(16) zc_quad {
    unsigned int word[4];
};

__device__ static inline unsigned int zc_mix(unsigned int x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ (x >> 16);
}

__device__ static inline unsigned long long zc_first(void)
{
    return (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ static inline unsigned long long zc_step(void) { return (unsigned long long)gridDim.x * blockDim.x; }

/* The block's sum, valid in thread 0. */
__device__ static inline unsigned long long zc_block_sum(unsigned long long value)
{
    __shared__ unsigned long long lane[ZC_BLOCK];
    lane[threadIdx.x] = value;
    __syncthreads();
    for (unsigned int half = ZC_BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) lane[threadIdx.x] += lane[threadIdx.x + half];
        __syncthreads();
    }
    return lane[0];
}

/* The k-th of `count` (a power of two) distinct positions among at least count * stride, in a random-looking order. */
__device__ static inline unsigned long long zc_position(unsigned int k, unsigned int count, unsigned int stride,
                                                        unsigned int seed)
{
    unsigned int slot = (k * 0x9e3779b1U + seed) & (count - 1);
    unsigned int jitter = (unsigned int)(((unsigned long long)zc_mix(slot ^ seed) * stride) >> 32);
    return (unsigned long long)slot * stride + jitter;
}

#endif

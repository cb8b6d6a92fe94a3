/* Streaming kernels: every byte once, or every byte several times. 16-byte accesses; reads keep four in flight. `data`
 * is 16-byte aligned; `words` is any number. */
#ifndef ZC_STREAM_KERNELS_CUH
#define ZC_STREAM_KERNELS_CUH
#include "kernels/common.cuh"

__device__ static inline unsigned long long zc_quad_sum(const zc_quad &q)
{
    return (unsigned long long)q.word[0] + q.word[1] + q.word[2] + q.word[3];
}

__device__ static inline unsigned long long zc_stream_sum(const unsigned int *data, unsigned long long words)
{
    const zc_quad *quads = (const zc_quad *)data;
    unsigned long long count = words / 4, step = zc_step(), i = zc_first(), sum = 0;
    for (; i + 3 * step < count; i += 4 * step) {
        zc_quad a = quads[i], b = quads[i + step], c = quads[i + 2 * step], d = quads[i + 3 * step];
        sum += zc_quad_sum(a) + zc_quad_sum(b) + zc_quad_sum(c) + zc_quad_sum(d);
    }
    for (; i < count; i += step) sum += zc_quad_sum(quads[i]);
    if (zc_first() < words % 4) sum += data[count * 4 + zc_first()];
    return sum;
}

/* partial[block] = the block's share of the sum of all words. */
extern "C" __global__ void stream_read(const unsigned int *data, unsigned long long words, unsigned long long *partial)
{
    unsigned long long sum = zc_block_sum(zc_stream_sum(data, words));
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* data[i] = mix(i + seed) */
extern "C" __global__ void stream_write(unsigned int *data, unsigned long long words, unsigned int seed)
{
    zc_quad *quads = (zc_quad *)data;
    unsigned long long count = words / 4;
    for (unsigned long long i = zc_first(); i < count; i += zc_step()) {
        zc_quad q;
        for (int k = 0; k < 4; k++) q.word[k] = zc_mix((unsigned int)(4 * i) + k + seed);
        quads[i] = q;
    }
    if (zc_first() < words % 4) {
        unsigned long long i = count * 4 + zc_first();
        data[i] = zc_mix((unsigned int)i + seed);
    }
}

/* data[i] = data[i] * mul + add */
extern "C" __global__ void read_modify_write(unsigned int *data, unsigned long long words, unsigned int mul,
                                             unsigned int add)
{
    zc_quad *quads = (zc_quad *)data;
    unsigned long long count = words / 4, step = zc_step(), i = zc_first();
    for (; i + step < count; i += 2 * step) {
        zc_quad a = quads[i], b = quads[i + step];
        for (int k = 0; k < 4; k++) {
            a.word[k] = a.word[k] * mul + add;
            b.word[k] = b.word[k] * mul + add;
        }
        quads[i] = a;
        quads[i + step] = b;
    }
    for (; i < count; i += step) {
        zc_quad a = quads[i];
        for (int k = 0; k < 4; k++) a.word[k] = a.word[k] * mul + add;
        quads[i] = a;
    }
    if (zc_first() < words % 4) {
        unsigned int *last = data + count * 4 + zc_first();
        *last = *last * mul + add;
    }
}

/* As stream_read, `passes` times over the same data; pass p counts p + 1 fold. */
extern "C" __global__ void multi_pass(const unsigned int *data, unsigned long long words, unsigned int passes,
                                      unsigned long long *partial)
{
    unsigned long long sum = 0;
    for (unsigned int pass = 0; pass < passes; pass++) sum += (pass + 1) * zc_stream_sum(data, words);
    sum = zc_block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* out[i] = in[i] put `rounds` times through x * 0.999 + 0.001: arithmetic to overlap with copies. in may be out. */
extern "C" __global__ void transform_rounds(const float *in, float *out, unsigned long long count, unsigned int rounds)
{
    for (unsigned long long i = zc_first(); i < count; i += zc_step()) {
        float x = in[i];
        for (unsigned int r = 0; r < rounds; r++) x = x * 0.999f + 0.001f;
        out[i] = x;
    }
}

#endif

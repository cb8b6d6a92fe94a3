/* Filters: small tables (coefficients, colour maps) that the CPU changes between launches, and a stencil. */
#ifndef ZC_FILTER_KERNELS_CUH
#define ZC_FILTER_KERNELS_CUH
#include "kernels/common.cuh"

#define ZC_SHARED_TAPS    4096 /* the longest filter that fir_shared takes: 16 KiB */
#define ZC_SHARED_COLOURS 8192 /* the largest map that pixel_lookup_shared takes: 32 KiB */

/* out[i] = sum of coefficient[t] * signal[i + t]; signal has count + taps values. */
extern "C" __global__ void fir(const float *signal, float *out, unsigned int count, const float *coefficient,
                               unsigned int taps)
{
    for (unsigned long long i = zc_first(); i < count; i += zc_step()) {
        float sum = 0;
        for (unsigned int t = 0; t < taps; t++) sum += coefficient[t] * signal[i + t];
        out[i] = sum;
    }
}

extern "C" __global__ void fir_shared(const float *signal, float *out, unsigned int count, const float *coefficient,
                                      unsigned int taps)
{
    __shared__ float local[ZC_SHARED_TAPS];
    for (unsigned int t = threadIdx.x; t < taps; t += blockDim.x) local[t] = coefficient[t];
    __syncthreads();
    for (unsigned long long i = zc_first(); i < count; i += zc_step()) {
        float sum = 0;
        for (unsigned int t = 0; t < taps; t++) sum += local[t] * signal[i + t];
        out[i] = sum;
    }
}

/* out[i] = map[image[i] & mask] */
extern "C" __global__ void pixel_lookup(const unsigned short *image, unsigned int *out, unsigned int pixels,
                                        const unsigned int *map, unsigned int mask)
{
    for (unsigned long long i = zc_first(); i < pixels; i += zc_step()) out[i] = map[image[i] & mask];
}

extern "C" __global__ void pixel_lookup_shared(const unsigned short *image, unsigned int *out, unsigned int pixels,
                                               const unsigned int *map, unsigned int mask)
{
    __shared__ unsigned int local[ZC_SHARED_COLOURS];
    for (unsigned int i = threadIdx.x; i <= mask; i += blockDim.x) local[i] = map[i];
    __syncthreads();
    for (unsigned long long i = zc_first(); i < pixels; i += zc_step()) out[i] = local[image[i] & mask];
}

/* Five-point mean of a width x height field; the border is copied. */
extern "C" __global__ void stencil(const float *in, float *out, unsigned int width, unsigned int height)
{
    for (unsigned long long i = zc_first(); i < (unsigned long long)width * height; i += zc_step()) {
        unsigned int x = (unsigned int)(i % width), y = (unsigned int)(i / width);
        if (x == 0 || y == 0 || x == width - 1 || y == height - 1)
            out[i] = in[i];
        else
            out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
    }
}

#endif

#pragma once
#define FIR_TAPS    1024
#define FIR_THREADS 256

// output[i] = sum over t of taps[t] * input[i + t]; input holds FIR_TAPS - 1 samples more than output.
extern "C" __global__ void fir_convolve(float *output, const float *input, const float *taps)
{
    __shared__ float tap[FIR_TAPS];
    __shared__ float sample[FIR_THREADS + FIR_TAPS];
    int first = blockIdx.x * FIR_THREADS;
    for (int i = threadIdx.x; i < FIR_TAPS; i += FIR_THREADS) tap[i] = taps[i];
    for (int i = threadIdx.x; i < FIR_THREADS + FIR_TAPS - 1; i += FIR_THREADS) sample[i] = input[first + i];
    __syncthreads();
    float sum = 0;
    for (int t = 0; t < FIR_TAPS; t++) sum += tap[t] * sample[threadIdx.x + t];
    output[first + threadIdx.x] = sum;
}

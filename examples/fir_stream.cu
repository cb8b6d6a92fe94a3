// A filter whose coefficients the CPU changes every millisecond: for each block of samples the coefficients and the
// samples are copied in, the GPU convolves, the result is copied out.
//     fir_stream [--small] [--paced] [--seconds S] [--iterations N]      --paced waits for the next millisecond
#include "example.h"
#include "fir_stream_kernels.cuh"

#define OUTPUTS 2048
#define INPUTS  (OUTPUTS + FIR_TAPS - 1)

// Whole numbers, so that the sums are exact in any order.
static void fill(float *values, int count, uint64_t *random)
{
    for (int i = 0; i < count; i++) values[i] = (float)(random_next(random) % 16) - 8;
}

int main(int argc, char **argv)
{
    const int blocks = option_given(argc, argv, "--small") ? 4 : 64;
    const int paced = option_given(argc, argv, "--paced");
    float *taps = (float *)malloc(blocks * FIR_TAPS * sizeof(float));
    float *input = (float *)malloc(blocks * INPUTS * sizeof(float));
    float *expected = (float *)calloc(blocks * OUTPUTS, sizeof(float));
    float *output = (float *)malloc(OUTPUTS * sizeof(float));
    uint64_t random = 1;
    fill(taps, blocks * FIR_TAPS, &random);
    fill(input, blocks * INPUTS, &random);
    for (int b = 0; b < blocks; b++)
        for (int t = 0; t < FIR_TAPS; t++)
            for (int i = 0; i < OUTPUTS; i++)
                expected[b * OUTPUTS + i] += taps[b * FIR_TAPS + t] * input[b * INPUTS + i + t];

    float *device_taps, *device_input, *device_output;
    CUDA(cudaMalloc((void **)&device_taps, FIR_TAPS * sizeof(float)));
    CUDA(cudaMalloc((void **)&device_input, INPUTS * sizeof(float)));
    CUDA(cudaMalloc((void **)&device_output, OUTPUTS * sizeof(float)));
    long wrong = 0;
    struct loop loop = loop_start(argc, argv);
    double next_us = loop.started_us;
    do {
        for (int b = 0; b < blocks; b++) {
            for (next_us += 1000; paced && now_us() < next_us;)
                ;
            CUDA(cudaMemcpy(device_taps, taps + b * FIR_TAPS, FIR_TAPS * sizeof(float), cudaMemcpyHostToDevice));
            CUDA(cudaMemcpy(device_input, input + b * INPUTS, INPUTS * sizeof(float), cudaMemcpyHostToDevice));
            fir_convolve<<<OUTPUTS / FIR_THREADS, FIR_THREADS>>>(device_output, device_input, device_taps);
            CUDA(cudaMemcpy(output, device_output, OUTPUTS * sizeof(float), cudaMemcpyDeviceToHost));
            wrong += memcmp(output, expected + b * OUTPUTS, OUTPUTS * sizeof(float)) != 0;
        }
        loop.iterations += blocks;
    } while (loop_again(&loop));

    CUDA(cudaFree(device_taps));
    CUDA(cudaFree(device_input));
    CUDA(cudaFree(device_output));
    printf("%d blocks of %d samples, %d taps, checksum of the last %016llx\n", blocks, OUTPUTS, FIR_TAPS,
           (unsigned long long)checksum(output, OUTPUTS * sizeof(float)));
    free(taps);
    free(input);
    free(expected);
    free(output);
    return verdict("fir_stream", wrong);
}

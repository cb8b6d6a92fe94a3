// Adds two vectors on the GPU, again and again with new contents: copy in, kernel, copy out.
//     vector_add [--small] [--count N] [--rounds N] [--seconds S] [--iterations N]
#include "example.h"
#include "vector_add_kernels.cuh"

int main(int argc, char **argv)
{
    const int count = (int)option_number(argc, argv, "--count", 10000);
    const int rounds = (int)option_number(argc, argv, "--rounds", option_given(argc, argv, "--small") ? 10 : 100);
    const size_t bytes = count * sizeof(float);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *sum = (float *)malloc(bytes);
    float *device_a, *device_b, *device_sum;
    CUDA(cudaMalloc((void **)&device_a, bytes));
    CUDA(cudaMalloc((void **)&device_b, bytes));
    CUDA(cudaMalloc((void **)&device_sum, bytes));

    long wrong = 0;
    uint64_t hash = 0;
    struct loop loop = loop_start(argc, argv);
    do {
        hash = 0;
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < count; i++) {
                a[i] = (float)(i + round);
                b[i] = (float)(2 * i % 1000);
            }
            CUDA(cudaMemcpy(device_a, a, bytes, cudaMemcpyHostToDevice));
            CUDA(cudaMemcpy(device_b, b, bytes, cudaMemcpyHostToDevice));
            vector_add<<<(count + 255) / 256, 256>>>(device_sum, device_a, device_b, count);
            CUDA(cudaGetLastError());
            CUDA(cudaMemcpy(sum, device_sum, bytes, cudaMemcpyDeviceToHost));
            for (int i = 0; i < count; i++) wrong += sum[i] != a[i] + b[i];
            hash = hash * 31 + checksum(sum, bytes);
        }
        loop.iterations += rounds;
    } while (loop_again(&loop));

    CUDA(cudaFree(device_a));
    CUDA(cudaFree(device_b));
    CUDA(cudaFree(device_sum));
    free(a);
    free(b);
    free(sum);
    printf("%d sums, %d rounds, checksum %016llx\n", count, rounds, (unsigned long long)hash);
    return verdict("vector_add", wrong);
}

// lupine#631: a pageable asynchronous download has arrived when it returns, at every size from 4 bytes on; libraries
// such as cuSPARSE read their scalars relying on it.
//     lupine_631 [--small]
#include "examples/example.h"
#include "lupine_631_kernels.cuh"

int main(int argc, char **argv)
{
    const long long cycles = option_given(argc, argv, "--small") ? 20000 : 4000000;
    static const int counts[] = {1, 2, 4, 16, 64, 1024, 16384, 65536, 1 << 20};
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    long wrong = 0;
    double shortest_us = 1e9;
    for (int count : counts) {
        unsigned *device, *host = (unsigned *)calloc(count, sizeof(unsigned));
        CUDA(cudaMalloc((void **)&device, count * sizeof(unsigned)));
        for (unsigned round = 1; round < 6; round++) {
            spin_then_fill<<<1, 256, 0, stream>>>(device, round, count, cycles);
            const double before_us = now_us();
            CUDA(cudaMemcpyAsync(host, device, count * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
            const double took_us = now_us() - before_us;
            wrong += host[0] != round || host[count - 1] != round + count - 1;
            shortest_us = took_us < shortest_us ? took_us : shortest_us;
        }
        CUDA(cudaFree(device));
        free(host);
    }
    CUDA(cudaStreamDestroy(stream));
    printf("{\"user\": \"lupine#631\", \"shortest_wait_us\": %.0f, \"hash\": \"%s\"}\n", shortest_us,
           wrong ? "wrong" : "right");
    return wrong != 0;
}

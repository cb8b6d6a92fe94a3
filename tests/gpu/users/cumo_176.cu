// cumo#176: the pageable source of an asynchronous copy is reused as soon as the call returns; the old bytes must
// arrive.
//     cumo_176 [--small]
#include "examples/example.h"

int main(int argc, char **argv)
{
    const int rounds = option_given(argc, argv, "--small") ? 20 : 300;
    static const size_t sizes[] = {4, 100, 4096, 65536, 300000, 1 << 20, 2 << 20, 9 << 20};
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    long wrong = 0;
    double spent_us = 0;
    for (size_t size : sizes) {
        unsigned char *host = (unsigned char *)malloc(size), *back = (unsigned char *)malloc(size), *device;
        CUDA(cudaMalloc((void **)&device, size));
        for (int round = 0; round < (size > 100000 ? rounds / 10 : rounds); round++) {
            const unsigned char value = (unsigned char)(round * 2 + 1);
            memset(host, value, size);
            const double before_us = now_us();
            CUDA(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, stream));
            spent_us += now_us() - before_us;
            memset(host, 0, size);
            CUDA(cudaMemcpyAsync(back, device, size, cudaMemcpyDeviceToHost, stream));
            wrong += back[0] != value || back[size / 2] != value || back[size - 1] != value;
        }
        CUDA(cudaFree(device));
        free(host);
        free(back);
    }
    CUDA(cudaStreamDestroy(stream));
    printf("{\"user\": \"cumo#176\", \"uploads_us\": %.1f, \"hash\": \"%s\"}\n", spent_us, wrong ? "wrong" : "right");
    return wrong != 0;
}

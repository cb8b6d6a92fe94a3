// Times of single calls, measured inside one program that knows nothing of the shim; one JSON line on stdout.
//     micro calls [--small]      launches, pinned copies, allocations, 4-byte copies
//     micro many [--count N]     N live 64-byte buffers
//     micro lookup [--count N]   a question about an interior pointer among N live buffers
#include "examples/example.h"
#include "micro_kernels.cuh"
#include <algorithm>
#include <cuda.h>
#include <dlfcn.h>
#include <vector>

// Median over batches of the time of one call.
template <class Call> static double median_us(int batches, int calls, Call call)
{
    std::vector<double> times;
    for (int batch = -1; batch < batches; batch++) {
        const double before_us = now_us();
        for (int i = 0; i < calls; i++) call(i);
        CUDA(cudaDeviceSynchronize());
        if (batch >= 0) times.push_back((now_us() - before_us) / calls);
    }
    std::sort(times.begin(), times.end());
    return times[batches / 2];
}

static double allocate_and_free_us(size_t bytes, int batches, int calls)
{
    return median_us(batches, calls, [&](int) {
        void *device;
        CUDA(cudaMalloc(&device, bytes));
        CUDA(cudaFree(device));
    });
}

static int calls(int argc, char **argv)
{
    const int less = option_given(argc, argv, "--small") ? 50 : 1;
    const size_t large = 16 << 20;
    char *device, *pinned, *small, value[4] = {1};
    CUDA(cudaMalloc((void **)&device, large));
    CUDA(cudaMallocHost((void **)&pinned, large));
    CUDA(cudaMalloc((void **)&small, 4));
    const double launch_us = median_us(10, 10000 / less, [](int) { micro_nothing<<<1, 32>>>(); });
    const double pinned_in_us =
        median_us(9, 20 / less + 1, [&](int) { CUDA(cudaMemcpy(device, pinned, large, cudaMemcpyHostToDevice)); });
    const double pinned_out_us =
        median_us(9, 20 / less + 1, [&](int) { CUDA(cudaMemcpy(pinned, device, large, cudaMemcpyDeviceToHost)); });
    const double upload_us =
        median_us(9, 2000 / less, [&](int) { CUDA(cudaMemcpy(small, value, 4, cudaMemcpyHostToDevice)); });
    const double download_us =
        median_us(9, 2000 / less, [&](int) { CUDA(cudaMemcpy(value, small, 4, cudaMemcpyDeviceToHost)); });
    const double large_us = allocate_and_free_us(1 << 20, 9, 100 / less);
    const double small_us = allocate_and_free_us(256, 9, 2000 / less);
    printf("{\"launch_us\": %.4f, \"pinned_in_us\": %.3f, \"pinned_out_us\": %.3f, \"upload_4_us\": %.4f, "
           "\"download_4_us\": %.4f, "
           "\"allocate_1m_us\": %.4f, \"allocate_256_us\": %.4f}\n",
           launch_us, pinned_in_us, pinned_out_us, upload_us, download_us, large_us, small_us);
    CUDA(cudaFree(device));
    CUDA(cudaFree(small));
    CUDA(cudaFreeHost(pinned));
    return 0;
}

static std::vector<char *> live_buffers(int count)
{
    std::vector<char *> buffers(count);
    for (char *&buffer : buffers) CUDA(cudaMalloc((void **)&buffer, 64));
    return buffers;
}

static int many(int argc, char **argv)
{
    const int count = (int)option_number(argc, argv, "--count", 100000);
    const double before_us = now_us();
    std::vector<char *> buffers = live_buffers(count);
    const double allocated_us = now_us();
    char value[64] = {2};
    for (char *buffer : buffers) CUDA(cudaMemcpy(buffer, value, sizeof(value), cudaMemcpyHostToDevice));
    const double copied_us = now_us();
    for (char *buffer : buffers) CUDA(cudaFree(buffer));
    printf("{\"count\": %d, \"allocate_us\": %.4f, \"copy_us\": %.4f, \"free_us\": %.4f}\n", count,
           (allocated_us - before_us) / count, (copied_us - allocated_us) / count, (now_us() - copied_us) / count);
    return 0;
}

static int lookup(int argc, char **argv)
{
    const int count = (int)option_number(argc, argv, "--count", 200000);
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    decltype(&cuPointerGetAttribute) attribute = (decltype(attribute))dlsym(libcuda, "cuPointerGetAttribute");
    std::vector<char *> buffers = live_buffers(count);
    std::vector<CUdeviceptr> inside(10000);
    uint64_t random = 1;
    long wrong = 0;
    for (CUdeviceptr &pointer : inside) pointer = (CUdeviceptr)buffers[random_next(&random) % count] + 33;
    CUdeviceptr start;
    const double among_us = median_us(9, (int)inside.size(), [&](int i) {
        attribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside[i]);
        wrong += inside[i] - start != 33;
    });
    const double same_us = median_us(9, (int)inside.size(),
                                     [&](int) { attribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside[0]); });
    for (char *buffer : buffers) CUDA(cudaFree(buffer));
    printf("{\"count\": %d, \"among_ns\": %.1f, \"same_ns\": %.1f, \"wrong\": %ld}\n", count, among_us * 1e3,
           same_us * 1e3, wrong);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "calls")) return calls(argc, argv);
    if (!strcmp(what, "many")) return many(argc, argv);
    if (!strcmp(what, "lookup")) return lookup(argc, argv);
    fprintf(stderr, "usage: micro calls | many | lookup\n");
    return 64;
}

// The round trip of a small buffer, three ways: copied from and to ordinary memory, copied from and to pinned memory,
// and written by hand for zero-copy (the GPU works on the host's memory, no copies). Prints one JSON line with its
// times.
//     round_trip [--mode copy|pinned|zero-copy] [--bytes N] [--iterations N] [--check]
// --check prints the checksum instead of the times.
#include "example.h"
#include "round_trip_kernels.cuh"

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const char *mode = option_text(argc, argv, "--mode", "copy");
    const size_t bytes = (size_t)option_number(argc, argv, "--bytes", 4096), count = bytes / sizeof(float);
    const int iterations = (int)option_number(argc, argv, "--iterations", 2000), warm_up = 100;
    const int zero_copy = !strcmp(mode, "zero-copy"), pinned = !strcmp(mode, "pinned");
    const int grid = count > 1056 * 256 ? 1056 : (int)((count + 255) / 256);
    if (count < 1 || iterations < 1 || (!zero_copy && !pinned && strcmp(mode, "copy"))) {
        fprintf(stderr, "usage: round_trip [--mode copy|pinned|zero-copy] [--bytes N] [--iterations N] [--check]\n");
        return 1;
    }
    float *host, *device, *times_us = (float *)malloc(iterations * sizeof(float));
    if (zero_copy)
        CUDA(cudaHostAlloc((void **)&host, bytes, cudaHostAllocMapped));
    else if (pinned)
        CUDA(cudaMallocHost((void **)&host, bytes));
    else
        host = (float *)malloc(bytes);
    if (zero_copy)
        CUDA(cudaHostGetDevicePointer((void **)&device, host, 0));
    else
        CUDA(cudaMalloc((void **)&device, bytes));
    for (size_t i = 0; i < count; i++) host[i] = (float)(i % 100);

    double started_us = 0;
    for (int i = -warm_up; i < iterations; i++) {
        const double before_us = now_us();
        if (i == 0) started_us = before_us;
        if (!zero_copy) CUDA(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
        round_trip_touch<<<grid, 256>>>(device, count);
        if (zero_copy)
            CUDA(cudaStreamSynchronize(0));
        else
            CUDA(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
        if (i >= 0) times_us[i] = (float)(now_us() - before_us);
    }
    const double mean_ns = (now_us() - started_us) / iterations * 1e3;
    qsort(times_us, iterations, sizeof(float), ascending);

    long wrong = 0;
    for (size_t i = 0; i < count; i++) {
        float expected = (float)(i % 100), before = -1;
        for (int step = 0; step < iterations + warm_up && expected != before; step++) {
            before = expected;
            expected = expected * 0.5f + 1;
        }
        wrong += host[i] != expected;
    }
    const uint64_t hash = checksum(host, bytes);
    if (!zero_copy) CUDA(cudaFree(device));
    if (zero_copy || pinned)
        CUDA(cudaFreeHost(host));
    else
        free(host);
    if (option_given(argc, argv, "--check")) {
        printf("%zu bytes, %d iterations, checksum %016llx\n", bytes, iterations, (unsigned long long)hash);
        return verdict("round_trip", wrong);
    }
    printf("{\"mode\": \"%s\", \"bytes\": %zu, \"iterations\": %d, \"ns_per_iteration\": %.0f, \"median_ns\": %.0f, "
           "\"wrong\": %ld}\n",
           mode, bytes, iterations, mean_ns, times_us[iterations / 2] * 1e3, wrong);
    free(times_us);
    return wrong != 0;
}

// A big table is uploaded and the GPU reads a few thousand elements of it.
//     sparse_gather [--small] [--bytes N] [--fresh] [--seconds S] [--iterations N]
// --fresh takes a new table for each iteration; its time is not counted. Otherwise the same one is uploaded again.
#include "example.h"
#include "sparse_gather_kernels.cuh"

static float *table_make(size_t elements)
{
    float *table = (float *)malloc(elements * sizeof(float));
    if (!table) exit(1);
    for (size_t i = 0; i < elements; i++) table[i] = (float)(i % 16777213);
    return table;
}

int main(int argc, char **argv)
{
    const int small = option_given(argc, argv, "--small"), fresh = option_given(argc, argv, "--fresh");
    const size_t bytes = (size_t)option_number(argc, argv, "--bytes", small ? 1 << 20 : 64 << 20);
    const size_t elements = bytes / sizeof(float);
    const int count = small ? 1024 : 16384;
    unsigned long long *index = (unsigned long long *)malloc(count * sizeof(*index));
    float *result = (float *)malloc(count * sizeof(float)), *table = table_make(elements);
    uint64_t random = 5;
    for (int i = 0; i < count; i++) {
        const uint64_t high = random_next(&random);
        index[i] = (high << 31 | random_next(&random)) % elements;
    }
    float *device_table, *device_result;
    unsigned long long *device_index;
    CUDA(cudaMalloc((void **)&device_table, elements * sizeof(float)));
    CUDA(cudaMalloc((void **)&device_result, count * sizeof(float)));
    CUDA(cudaMalloc((void **)&device_index, count * sizeof(*index)));
    CUDA(cudaMemcpy(device_index, index, count * sizeof(*index), cudaMemcpyHostToDevice));

    long wrong = 0;
    struct loop loop = loop_start(argc, argv);
    do {
        if (fresh && loop.iterations) {
            const double before_us = now_us();
            free(table);
            table = table_make(elements);
            loop.excluded_us += now_us() - before_us;
        }
        CUDA(cudaMemcpy(device_table, table, elements * sizeof(float), cudaMemcpyHostToDevice));
        sparse_gather<<<(count + 127) / 128, 128>>>(device_result, device_table, device_index, count);
        CUDA(cudaMemcpy(result, device_result, count * sizeof(float), cudaMemcpyDeviceToHost));
        loop.iterations++;
    } while (loop_again(&loop));

    for (int i = 0; i < count; i++) wrong += result[i] != (float)(index[i] % 16777213);
    for (size_t i = 0; i < elements; i += 1021) // and the table is still the program's own
        wrong += table[i] != (float)(i % 16777213);
    CUDA(cudaFree(device_table));
    CUDA(cudaFree(device_result));
    CUDA(cudaFree(device_index));
    printf("%d of %zu elements, checksum %016llx\n", count, elements,
           (unsigned long long)checksum(result, count * sizeof(float)));
    free(table);
    free(index);
    free(result);
    return verdict("sparse_gather", wrong);
}

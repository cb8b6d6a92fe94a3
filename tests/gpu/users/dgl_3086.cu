// dgl#3086: a feature table of 8 GiB is uploaded and 100 000 rows of it are gathered; then a dense pass over all of it.
//     dgl_3086 [--small] [--bytes N]
#include "examples/example.h"
#include "dgl_3086_kernels.cuh"

int main(int argc, char **argv)
{
    const int small = option_given(argc, argv, "--small"), blocks = 1024;
    const size_t bytes = (size_t)option_number(argc, argv, "--bytes", small ? 64 << 20 : 8589934592.0),
                 rows = bytes / (ROW * sizeof(float));
    const unsigned count = small ? 1000 : 100000;
    float *table = (float *)malloc(rows * ROW * sizeof(float)),
          *out = (float *)malloc((size_t)count * ROW * sizeof(float));
    unsigned *wanted = (unsigned *)malloc(count * sizeof(unsigned));
    double *sums = (double *)malloc(blocks * ROW * sizeof(double)), expected = 0, total = 0;
    if (!table || !out) return 1;
    for (size_t row = 0; row < rows; row++)
        for (int i = 0; i < ROW; i++) table[row * ROW + i] = (float)((row * 7 + i) % 1024);
    uint64_t random = 9;
    for (unsigned i = 0; i < count; i++) wanted[i] = random_next(&random) % rows;
    float *device_table, *device_out;
    unsigned *device_wanted;
    double *device_sums;
    CUDA(cudaMalloc((void **)&device_table, rows * ROW * sizeof(float)));
    CUDA(cudaMalloc((void **)&device_out, (size_t)count * ROW * sizeof(float)));
    CUDA(cudaMalloc((void **)&device_wanted, count * sizeof(unsigned)));
    CUDA(cudaMalloc((void **)&device_sums, blocks * ROW * sizeof(double)));
    CUDA(cudaMemcpy(device_wanted, wanted, count * sizeof(unsigned), cudaMemcpyHostToDevice));

    double before_us = now_us();
    CUDA(cudaMemcpy(device_table, table, rows * ROW * sizeof(float), cudaMemcpyHostToDevice));
    gather_rows<<<blocks, ROW>>>(device_out, device_table, device_wanted, count);
    CUDA(cudaMemcpy(out, device_out, (size_t)count * ROW * sizeof(float), cudaMemcpyDeviceToHost));
    const double gather_us = now_us() - before_us;
    double dense_us[3];
    for (double &pass_us : dense_us) {
        before_us = now_us();
        sum_rows<<<blocks, ROW>>>(device_sums, device_table, rows);
        CUDA(cudaMemcpy(sums, device_sums, blocks * ROW * sizeof(double), cudaMemcpyDeviceToHost));
        pass_us = now_us() - before_us;
    }
    before_us = now_us();
    long wrong = 0;
    for (unsigned i = 0; i < count; i++)
        wrong += memcmp(out + (size_t)i * ROW, table + (size_t)wanted[i] * ROW, ROW * sizeof(float)) != 0;
    const double touch_us = now_us() - before_us;
    for (size_t i = 0; i < rows * ROW; i++) expected += table[i];
    for (int i = 0; i < blocks * ROW; i++) total += sums[i];
    wrong += total != expected;
    printf("{\"user\": \"dgl#3086\", \"upload_gather_ms\": %.2f, \"dense_ms\": [%.2f, %.2f, %.2f], \"host_check_ms\": "
           "%.2f, \"hash\": \"%s\"}\n",
           gather_us / 1e3, dense_us[0] / 1e3, dense_us[1] / 1e3, dense_us[2] / 1e3, touch_us / 1e3,
           wrong ? "wrong" : "right");
    return wrong != 0;
}

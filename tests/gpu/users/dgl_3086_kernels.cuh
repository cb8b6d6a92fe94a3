#pragma once

#define ROW 128

extern "C" __global__ void gather_rows(float *out, const float *table, const unsigned *rows, unsigned count)
{
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x)
        out[(size_t)i * ROW + threadIdx.x] = table[(size_t)rows[i] * ROW + threadIdx.x];
}

extern "C" __global__ void sum_rows(double *sums, const float *table, size_t rows)
{
    double sum = 0;
    for (size_t i = blockIdx.x; i < rows; i += gridDim.x) sum += table[i * ROW + threadIdx.x];
    sums[blockIdx.x * ROW + threadIdx.x] = sum;
}

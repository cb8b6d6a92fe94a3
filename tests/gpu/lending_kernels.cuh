#pragma once

// Every element, once for each pass: nobody can tell how many from outside.
extern "C" __global__ void lending_dense(double *result, const float *table, unsigned long long elements, int passes)
{
    double sum = 0;
    unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
    for (int pass = 0; pass < passes; pass++)
        for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += threads) sum += table[i];
    atomicAdd((float *)result, (float)(sum > 0));
}

extern "C" __global__ void lending_gather(float *result, const float *table, const unsigned long long *index, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) result[i] = table[index[i]];
}

extern "C" __global__ void lending_scatter(float *table, const unsigned long long *index, int count, float value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) table[index[i]] = value;
}

#pragma once

// result[i] = table[index[i]]: a few reads of a big table.
extern "C" __global__ void sparse_gather(float *result, const float *table, const unsigned long long *index, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) result[i] = table[index[i]];
}

#pragma once

// One pass over the data.
extern "C" __global__ void round_trip_touch(float *data, unsigned long long count)
{
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count;
         i += (unsigned long long)gridDim.x * blockDim.x)
        data[i] = data[i] * 0.5f + 1;
}

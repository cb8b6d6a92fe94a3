#pragma once

extern "C" __global__ void spin_then_fill(unsigned *data, unsigned value, int count, long long cycles)
{
    long long started = clock64();
    while (clock64() - started < cycles)
        ;
    for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] = value + i;
}

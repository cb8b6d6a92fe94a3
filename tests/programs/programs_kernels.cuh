#ifndef PROGRAMS_KERNELS_CUH
#define PROGRAMS_KERNELS_CUH

extern "C" __global__ void programs_fill(unsigned *data, unsigned value, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = value + i;
}

extern "C" __global__ void programs_add(unsigned *data, unsigned value, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] += value;
}

extern "C" __global__ void programs_copy(unsigned *destination, const unsigned *source, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) destination[i] = source[i];
}

// One thread: waits for the host's flag, then copies.
extern "C" __global__ void programs_gate(volatile int *open, unsigned *destination, const volatile unsigned *source,
                                         int count)
{
    while (!*open)
        ;
    for (int i = 0; i < count; i++) destination[i] = source[i];
}

// cells: add, min, max, exchanged, swapped by compare
extern "C" __global__ void programs_atomics(int *cells, unsigned long long *wide, float *real, int threads)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= threads) return;
    atomicAdd(&cells[0], i);
    atomicMin(&cells[1], 1000 - i);
    atomicMax(&cells[2], i * 3);
    atomicExch(&cells[3], 77);
    int seen = cells[4];
    for (int before = seen + 1; before != seen;) {
        before = seen;
        seen = atomicCAS(&cells[4], before, before + 2);
    }
    atomicAdd(wide, (unsigned long long)i << 20);
    atomicAdd(real, 1.0f);
}
#endif

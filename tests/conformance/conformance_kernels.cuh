/* Kernels of the conformance program; found by name, on the GPU and on the software driver. */

/* Holds its stream until *open is not 0 (host memory, mapped), or until limit ticks of the clock have passed. */
extern "C" __global__ void gate_hold(volatile int *open, long long limit)
{
    long long start = clock64();
    while (*open == 0 && clock64() - start < limit) {
    }
}

/* Adds amount to each of count integers. */
extern "C" __global__ void ints_add(int *ints, int count, int amount)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        ints[i] += amount;
    }
}

/* Copies count integers. */
extern "C" __global__ void ints_copy(int *destination, const int *source, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        destination[i] = source[i];
    }
}

/* Adds 1 to *counter from every thread. */
extern "C" __global__ void counter_add(int *counter)
{
    atomicAdd(counter, 1);
}

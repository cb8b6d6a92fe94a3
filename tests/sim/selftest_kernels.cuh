/* Kernels of the simulator's own test. */
extern "C" __global__ void add(float *sum, const float *a, const float *b, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] = a[i] + b[i];
}

/* Reverses each block's part: every thread must have written before any reads. */
extern "C" __global__ void reverse(int *values)
{
    __shared__ int part[256];
    int i = threadIdx.x, size = blockDim.x, start = blockIdx.x * size;
    part[i] = values[start + i];
    __syncthreads();
    values[start + i] = part[size - 1 - i];
    __syncthreads();
    part[i] = 0;
}

extern "C" __global__ void count(unsigned *total, float *sum)
{
    atomicAdd(total, 1u);
    atomicAdd(sum, 0.5f);
}

/* Holds the stream until *open is not 0. */
extern "C" __global__ void hold(volatile int *open)
{
    while (*open == 0) {
    }
}

struct pair {
    int *at;
    int value;
};
extern "C" __global__ void store(pair what) { *what.at = what.value; }

__device__ int scale = 3;
extern "C" __global__ void scaled(int *value) { *value *= scale; }

#pragma once

// Few reads of a big table.
extern "C" __global__ void torture_gather(unsigned long long *result, const unsigned long long *table,
                                          const unsigned *index, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) result[i] = table[index[i]];
}

// As many as there are, for all the host knows.
extern "C" __global__ void torture_sum(unsigned long long *result, const unsigned long long *table,
                                       const unsigned *index, int count)
{
    unsigned long long sum = 0;
    for (int i = 0; i < count; i++) sum += table[index[i]];
    *result = sum;
}

extern "C" __global__ void torture_scatter(unsigned long long *table, const unsigned *index, int count,
                                           unsigned long long value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) table[index[i]] = value + i;
}

// Counts from one.
extern "C" __global__ void torture_scatter_after(unsigned long long *table, const unsigned *index, int count,
                                                 unsigned long long value, long long skipped)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) table[skipped + index[i]] = value + i;
}

// Reads one table and writes another.
extern "C" __global__ void torture_both(unsigned long long *to, const unsigned long long *from, const unsigned *index,
                                        int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[index[i]] = from[index[i]];
}

// Writes through a pointer that no parameter holds.
extern "C" __global__ void torture_chase(unsigned long long *const *list, const unsigned *index, int count,
                                         unsigned long long value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) list[0][index[i]] = value + i;
}

struct torture_pair {
    int count;
    const unsigned long long *table;
    unsigned long long *result;
};

// The pointers lie in a structure.
extern "C" __global__ void torture_gather_pair(torture_pair pair, const unsigned *index)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pair.count) pair.result[i] = pair.table[index[i]];
}

// Keeps its stream busy until the host says otherwise.
extern "C" __global__ void torture_hold(volatile int *open)
{
    while (!*open)
        ;
}

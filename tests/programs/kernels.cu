// The kernels' launches, for programs in C.
#include "programs_kernels.cuh"
#include "programs.h"
#include <cuda_runtime.h>

static int blocks_of(int count) { return (count + 127) / 128; }

void kernels_load(void)
{
    cudaFuncAttributes attributes;
    const void *kernels[] = {(const void *)programs_fill, (const void *)programs_add, (const void *)programs_copy,
                             (const void *)programs_gate, (const void *)programs_atomics};
    for (const void *kernel : kernels) MUST(cudaFuncGetAttributes(&attributes, kernel));
}

void launch_fill(unsigned *data, unsigned value, int count, cudaStream_t stream)
{
    programs_fill<<<blocks_of(count), 128, 0, stream>>>(data, value, count);
}

void launch_add(unsigned *data, unsigned value, int count, cudaStream_t stream)
{
    programs_add<<<blocks_of(count), 128, 0, stream>>>(data, value, count);
}

void launch_copy(unsigned *destination, const unsigned *source, int count, cudaStream_t stream)
{
    programs_copy<<<blocks_of(count), 128, 0, stream>>>(destination, source, count);
}

void launch_copy_of(const struct copy_arguments *arguments, int count, cudaStream_t stream)
{
    const void *parameters[] = {&arguments->destination, &arguments->source, &arguments->count};
    MUST(cudaLaunchKernel((const void *)programs_copy, dim3(blocks_of(count)), dim3(128),
                          (void **)parameters, 0, stream));
}

void launch_gate(volatile int *open, unsigned *destination, const unsigned *source, int count, cudaStream_t stream)
{
    programs_gate<<<1, 1, 0, stream>>>(open, destination, source, count);
}

void launch_atomics(int *cells, unsigned long long *wide, float *real, int threads, cudaStream_t stream)
{
    programs_atomics<<<blocks_of(threads), 128, 0, stream>>>(cells, wide, real, threads);
}

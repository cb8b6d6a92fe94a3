// Conjugate gradients on a grid: the CPU needs two scalars from the GPU in every iteration.
//     cg_solver [--small] [--seconds S] [--iterations N]
#include "example.h"
#include "cg_solver_kernels.cuh"
#include <math.h>

// The scalars come back as one share a block, a few hundred bytes.
static double sum_of_blocks(double *shares, const double *device_shares, int blocks)
{
    CUDA(cudaMemcpy(shares, device_shares, blocks * sizeof(double), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (int i = 0; i < blocks; i++) sum += shares[i];
    return sum;
}

// |b - A x| / |b|
static double relative_residual(const double *x, const double *b, int side)
{
    double error = 0, norm = 0;
    for (int i = 0; i < side * side; i++) {
        const int column = i % side, row = i / side;
        double value = 4 * x[i];
        if (column > 0) value -= x[i - 1];
        if (column < side - 1) value -= x[i + 1];
        if (row > 0) value -= x[i - side];
        if (row < side - 1) value -= x[i + side];
        error += (b[i] - value) * (b[i] - value);
        norm += b[i] * b[i];
    }
    return sqrt(error / norm);
}

int main(int argc, char **argv)
{
    const int side = option_given(argc, argv, "--small") ? 16 : 96, count = side * side;
    const int blocks = (count + CG_THREADS - 1) / CG_THREADS;
    const size_t bytes = count * sizeof(double);
    double *b = (double *)malloc(bytes), *x = (double *)malloc(bytes), *shares = (double *)malloc(blocks * 8),
           start = 0;
    uint64_t random = 4;
    for (int i = 0; i < count; i++) {
        b[i] = (double)(random_next(&random) % 2001) / 1000 - 1;
        start += b[i] * b[i];
    }
    double *device_x, *device_r, *device_p, *device_q, *device_shares;
    CUDA(cudaMalloc((void **)&device_x, bytes));
    CUDA(cudaMalloc((void **)&device_r, bytes));
    CUDA(cudaMalloc((void **)&device_p, bytes));
    CUDA(cudaMalloc((void **)&device_q, bytes));
    CUDA(cudaMalloc((void **)&device_shares, blocks * sizeof(double)));

    int iterations;
    struct loop loop = loop_start(argc, argv);
    do {
        CUDA(cudaMemset(device_x, 0, bytes));
        CUDA(cudaMemcpy(device_r, b, bytes, cudaMemcpyHostToDevice));
        CUDA(cudaMemcpy(device_p, device_r, bytes, cudaMemcpyDeviceToDevice));
        double residual = start;
        for (iterations = 0; residual > 1e-16 * start && iterations < 10 * side; iterations++) {
            cg_multiply<<<blocks, CG_THREADS>>>(device_q, device_p, device_shares, side);
            const double alpha = residual / sum_of_blocks(shares, device_shares, blocks);
            cg_advance<<<blocks, CG_THREADS>>>(device_x, device_r, device_p, device_q, alpha, device_shares, count);
            const double next = sum_of_blocks(shares, device_shares, blocks);
            cg_direction<<<blocks, CG_THREADS>>>(device_p, device_r, next / residual, count);
            residual = next;
        }
        loop.iterations += iterations;
    } while (loop_again(&loop));
    CUDA(cudaMemcpy(x, device_x, bytes, cudaMemcpyDeviceToHost));

    CUDA(cudaFree(device_x));
    CUDA(cudaFree(device_r));
    CUDA(cudaFree(device_p));
    CUDA(cudaFree(device_q));
    CUDA(cudaFree(device_shares));
    const double error = relative_residual(x, b, side);
    printf("%d unknowns, %d iterations, relative residual %.3e, checksum %016llx\n", count, iterations, error,
           (unsigned long long)checksum(x, bytes));
    free(b);
    free(x);
    free(shares);
    return verdict("cg_solver", !(error < 1e-7));
}

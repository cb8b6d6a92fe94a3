#pragma once
#define CG_THREADS 256

// The five-point stencil on a square grid with a border of zeros.
static __device__ double cg_stencil(const double *p, int i, int side)
{
    int x = i % side, y = i / side;
    double value = 4 * p[i];
    if (x > 0) value -= p[i - 1];
    if (x < side - 1) value -= p[i + 1];
    if (y > 0) value -= p[i - side];
    if (y < side - 1) value -= p[i + side];
    return value;
}

// Adds up one value of each thread of a block, always in the same order; part is the block's shared memory.
static __device__ void cg_block_sum(double *part, double value, double *sum)
{
    part[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = CG_THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sum[blockIdx.x] = part[0];
}

// q = A p, and the blocks' shares of p.q
extern "C" __global__ void cg_multiply(double *q, const double *p, double *sums, int side)
{
    __shared__ double part[CG_THREADS];
    int i = blockIdx.x * CG_THREADS + threadIdx.x;
    double product = 0;
    if (i < side * side) {
        q[i] = cg_stencil(p, i, side);
        product = p[i] * q[i];
    }
    cg_block_sum(part, product, sums);
}

// x += alpha p, r -= alpha q, and the blocks' shares of r.r
extern "C" __global__ void cg_advance(double *x, double *r, const double *p, const double *q, double alpha,
                                      double *sums, int count)
{
    __shared__ double part[CG_THREADS];
    int i = blockIdx.x * CG_THREADS + threadIdx.x;
    double square = 0;
    if (i < count) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        square = r[i] * r[i];
    }
    cg_block_sum(part, square, sums);
}

// p = r + beta p
extern "C" __global__ void cg_direction(double *p, const double *r, double beta, int count)
{
    int i = blockIdx.x * CG_THREADS + threadIdx.x;
    if (i < count) p[i] = r[i] + beta * p[i];
}

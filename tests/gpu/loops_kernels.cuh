#pragma once

// One pass over a small buffer.
extern "C" __global__ void loops_touch(unsigned *cells, int count, unsigned turn)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) cells[i] = cells[i] * 1664525u + turn;
}

// Random look-ups in a table of a power of two of words.
extern "C" __global__ void loops_look_up(unsigned *out, const unsigned *table, unsigned mask, int lookups)
{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = thread * 2654435761u, sum = 0;
    for (int k = 0; k < lookups; k++) {
        x = x * 1664525u + 1013904223u;
        sum += table[(x >> 8) & mask];
    }
    out[thread] = sum;
}

extern "C" __global__ void loops_histogram(unsigned *bins, const unsigned *data, int count, unsigned mask)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&bins[data[i] & mask], 1u);
}

extern "C" __global__ void loops_count(float *counter, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(counter, 1.0f);
}

// Every block reads the whole buffer, many times.
extern "C" __global__ void loops_passes(unsigned *out, const unsigned *buffer, int words, int passes)
{
    unsigned hash = threadIdx.x;
    for (int pass = 0; pass < passes; pass++)
        for (int i = threadIdx.x; i < words; i += blockDim.x) hash = hash * 31 + buffer[(i + pass) & (words - 1)];
    out[blockIdx.x * blockDim.x + threadIdx.x] = hash;
}

// Parameters read once a thread, a table looked up often, a few results.
extern "C" __global__ void loops_mix(unsigned *result, const unsigned *parameters, const unsigned *table, unsigned mask,
                                     int lookups)
{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = thread + parameters[threadIdx.x & 63], sum = 0;
    for (int k = 0; k < lookups; k++) {
        x = x * 1664525u + 1013904223u;
        sum += table[(x >> 8) & mask];
    }
    if (thread < 256) result[thread] = sum;
}

// Reads scattered over a table of a power of two of words.
extern "C" __global__ void loops_gather(unsigned *out, const unsigned *table, unsigned mask, int count, unsigned turn)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (unsigned)count) out[i] = table[(i * 2654435761u + turn * 2246822519u) & mask];
}

#define LOOPS_TILE 16

extern "C" __global__ void loops_multiply(float *c, const float *a, const float *b, int n)
{
    __shared__ float tile_a[LOOPS_TILE][LOOPS_TILE], tile_b[LOOPS_TILE][LOOPS_TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int column = blockIdx.x * LOOPS_TILE + x, row = blockIdx.y * LOOPS_TILE + y;
    float sum = 0;
    for (int k = 0; k < n; k += LOOPS_TILE) {
        tile_a[y][x] = a[row * n + k + x];
        tile_b[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < LOOPS_TILE; i++) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// Five points with weights of their own; the rim stays.
extern "C" __global__ void loops_stencil(float *to, const float *from, const float *weights, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const size_t i = (size_t)y * width + x;
    to[i] = weights[0] * from[i] + weights[1] * from[i - 1] + weights[2] * from[i + 1] + weights[3] * from[i - width] +
            weights[4] * from[i + width];
}

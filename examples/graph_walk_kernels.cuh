#pragma once

static __host__ __device__ unsigned graph_random(unsigned long long *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(*state >> 33);
}

// Each walker goes from node to node and leaves where it ends. The graph is only read.
extern "C" __global__ void graph_walk(unsigned *ends, const unsigned long long *first, const unsigned *neighbour,
                                      unsigned nodes, int walkers, int steps)
{
    int walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker >= walkers) return;
    unsigned long long state = walker;
    unsigned node = graph_random(&state) % nodes;
    for (int step = 0; step < steps; step++) {
        unsigned long long from = first[node];
        unsigned degree = (unsigned)(first[node + 1] - from);
        node = neighbour[from + graph_random(&state) % degree];
    }
    ends[walker] = node;
}

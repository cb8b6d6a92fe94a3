// Random walks over a graph (compressed sparse rows) that is much larger than what they touch, and only read.
//     graph_walk [--small] [--bytes N] [--registered] [--seconds S] [--iterations N]
// --registered is the program as one would write it by hand for zero-copy: no upload, the GPU reads the host's arrays.
#include "example.h"
#include "graph_walk_kernels.cuh"

int main(int argc, char **argv)
{
    const int small = option_given(argc, argv, "--small"), registered = option_given(argc, argv, "--registered");
    const size_t bytes = (size_t)option_number(argc, argv, "--bytes", small ? 1 << 20 : 64 << 20);
    const int walkers = small ? 256 : 4096, steps = small ? 16 : 64;
    const unsigned nodes = (unsigned)(bytes / (8 + 8 * 4));
    const size_t first_bytes = (nodes + 1ull) * sizeof(unsigned long long);
    unsigned long long *first = (unsigned long long *)malloc(first_bytes);
    for (unsigned node = 0, x = 1; node <= nodes; node++, x = x * 1664525u + 1013904223u)
        first[node] = node ? first[node - 1] + 6 + (x >> 30) : 0; // 6 to 9 neighbours each
    const unsigned long long edges = first[nodes];
    const size_t neighbour_bytes = edges * sizeof(unsigned);
    unsigned *neighbour = (unsigned *)malloc(neighbour_bytes);
    unsigned *ends = (unsigned *)malloc(walkers * sizeof(unsigned));
    for (unsigned long long edge = 0, x = 6; edge < edges;
         edge++, x = x * 6364136223846793005ull + 1442695040888963407ull)
        neighbour[edge] = (unsigned)((x >> 32) * nodes >> 32);

    unsigned long long *device_first;
    unsigned *device_neighbour, *device_ends;
    CUDA(cudaMalloc((void **)&device_ends, walkers * sizeof(unsigned)));
    if (!registered) {
        CUDA(cudaMalloc((void **)&device_first, first_bytes));
        CUDA(cudaMalloc((void **)&device_neighbour, neighbour_bytes));
    }
    struct loop loop = loop_start(argc, argv);
    do {
        if (registered) {
            CUDA(cudaHostRegister(first, first_bytes, cudaHostRegisterMapped));
            CUDA(cudaHostRegister(neighbour, neighbour_bytes, cudaHostRegisterMapped));
            CUDA(cudaHostGetDevicePointer((void **)&device_first, first, 0));
            CUDA(cudaHostGetDevicePointer((void **)&device_neighbour, neighbour, 0));
        } else {
            CUDA(cudaMemcpy(device_first, first, first_bytes, cudaMemcpyHostToDevice));
            CUDA(cudaMemcpy(device_neighbour, neighbour, neighbour_bytes, cudaMemcpyHostToDevice));
        }
        graph_walk<<<(walkers + 127) / 128, 128>>>(device_ends, device_first, device_neighbour, nodes, walkers, steps);
        CUDA(cudaMemcpy(ends, device_ends, walkers * sizeof(unsigned), cudaMemcpyDeviceToHost));
        loop.iterations++;
        if (registered) {
            const double before_us = now_us();
            CUDA(cudaHostUnregister(first));
            CUDA(cudaHostUnregister(neighbour));
            loop.excluded_us += now_us() - before_us;
        }
    } while (loop_again(&loop));

    long wrong = 0;
    for (int walker = 0; walker < walkers; walker++) {
        unsigned long long state = walker;
        unsigned node = graph_random(&state) % nodes;
        for (int step = 0; step < steps; step++) {
            const unsigned degree = (unsigned)(first[node + 1] - first[node]);
            node = neighbour[first[node] + graph_random(&state) % degree];
        }
        wrong += ends[walker] != node;
    }
    CUDA(cudaFree(device_ends));
    if (!registered) {
        CUDA(cudaFree(device_first));
        CUDA(cudaFree(device_neighbour));
    }
    printf("%u nodes, %llu edges, %d walks of %d steps, checksum %016llx\n", nodes, edges, walkers, steps,
           (unsigned long long)checksum(ends, walkers * sizeof(unsigned)));
    free(first);
    free(neighbour);
    free(ends);
    return verdict("graph_walk", wrong);
}

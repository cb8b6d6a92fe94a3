// Breadth-first search, one kernel a level: a 4-byte flag goes to the GPU and back for every level.
//     bfs_levels [--small] [--seconds S] [--iterations N]        an iteration is a level
#include "example.h"
#include "bfs_levels_kernels.cuh"

// A square grid with walls: nodes without neighbours.
static int *grid_neighbours(int side, int *first)
{
    const int nodes = side * side, step[4] = {-1, 1, -side, side};
    char *wall = (char *)calloc(nodes, 1);
    int *neighbour = (int *)malloc(4 * nodes * sizeof(int));
    uint64_t random = 3;
    for (int node = 1; node < nodes; node++) wall[node] = random_next(&random) % 8 == 0;
    int edges = 0;
    for (int node = 0; node < nodes; node++) {
        const int x = node % side, y = node / side;
        const int inside[4] = {x != 0, x != side - 1, y != 0, y != side - 1};
        first[node] = edges;
        for (int k = 0; k < 4 && !wall[node]; k++)
            if (inside[k] && !wall[node + step[k]]) neighbour[edges++] = node + step[k];
    }
    first[nodes] = edges;
    free(wall);
    return neighbour;
}

// The same search with a queue; returns how many nodes it reached.
static int search_on_cpu(const int *first, const int *neighbour, int *levels, int nodes)
{
    int *queue = (int *)malloc(nodes * sizeof(int)), head = 0, tail = 0;
    memset(levels, -1, nodes * sizeof(int));
    levels[0] = 0;
    queue[tail++] = 0;
    while (head < tail) {
        int node = queue[head++];
        for (int edge = first[node]; edge < first[node + 1]; edge++)
            if (levels[neighbour[edge]] < 0) {
                levels[neighbour[edge]] = levels[node] + 1;
                queue[tail++] = neighbour[edge];
            }
    }
    free(queue);
    return tail;
}

int main(int argc, char **argv)
{
    const int side = option_given(argc, argv, "--small") ? 24 : 160, nodes = side * side;
    const size_t bytes = nodes * sizeof(int);
    int *first = (int *)malloc(bytes + sizeof(int)), *neighbour = grid_neighbours(side, first);
    int *levels = (int *)malloc(bytes), *expected = (int *)malloc(bytes), *start = (int *)malloc(bytes);
    const int reached = search_on_cpu(first, neighbour, expected, nodes);
    memset(start, -1, bytes);
    start[0] = 0;

    int *device_first, *device_neighbour, *device_levels, *device_again;
    CUDA(cudaMalloc((void **)&device_first, bytes + sizeof(int)));
    CUDA(cudaMalloc((void **)&device_neighbour, 4 * bytes));
    CUDA(cudaMalloc((void **)&device_levels, bytes));
    CUDA(cudaMalloc((void **)&device_again, sizeof(int)));
    CUDA(cudaMemcpy(device_first, first, bytes + sizeof(int), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(device_neighbour, neighbour, first[nodes] * sizeof(int), cudaMemcpyHostToDevice));

    int level;
    struct loop loop = loop_start(argc, argv);
    do {
        int again = 1;
        CUDA(cudaMemcpy(device_levels, start, bytes, cudaMemcpyHostToDevice));
        for (level = 0; again; level++) {
            again = 0;
            CUDA(cudaMemcpy(device_again, &again, sizeof(int), cudaMemcpyHostToDevice));
            bfs_expand<<<(nodes + 255) / 256, 256>>>(device_first, device_neighbour, device_levels, level, nodes,
                                                     device_again);
            CUDA(cudaMemcpy(&again, device_again, sizeof(int), cudaMemcpyDeviceToHost));
        }
        loop.iterations += level;
    } while (loop_again(&loop));
    CUDA(cudaMemcpy(levels, device_levels, bytes, cudaMemcpyDeviceToHost));

    CUDA(cudaFree(device_first));
    CUDA(cudaFree(device_neighbour));
    CUDA(cudaFree(device_levels));
    CUDA(cudaFree(device_again));
    printf("%d nodes, %d reached, %d levels, checksum %016llx\n", nodes, reached, level,
           (unsigned long long)checksum(levels, bytes));
    const int wrong = memcmp(levels, expected, bytes) != 0;
    free(first);
    free(neighbour);
    free(levels);
    free(expected);
    free(start);
    return verdict("bfs_levels", wrong);
}

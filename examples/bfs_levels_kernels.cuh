#pragma once

// Gives level + 1 to the unvisited neighbours of the nodes at this level, and says whether there was one.
extern "C" __global__ void bfs_expand(const int *first, const int *neighbour, int *levels, int level, int nodes,
                                      int *again)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || levels[node] != level) return;
    for (int edge = first[node]; edge < first[node + 1]; edge++) {
        int next = neighbour[edge];
        if (levels[next] < 0) {
            levels[next] = level + 1;
            *again = 1;
        }
    }
}

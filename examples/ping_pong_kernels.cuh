#pragma once
#define PING_PONG_CELLS 64

// The GPU's move: one block of PING_PONG_CELLS threads, each cell mixed with its neighbour.
extern "C" __global__ void ping_pong_move(unsigned *cells, unsigned turn)
{
    __shared__ unsigned before[PING_PONG_CELLS];
    before[threadIdx.x] = cells[threadIdx.x];
    __syncthreads();
    cells[threadIdx.x] = before[threadIdx.x] * 1664525u + before[(threadIdx.x + 1) % PING_PONG_CELLS] + turn;
}

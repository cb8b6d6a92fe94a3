// CPU and GPU take turns on a small buffer: copy in, the GPU's move, copy out, the CPU's move.
//     ping_pong [--small] [--seconds S] [--iterations N]        an iteration is a turn of both
#include "example.h"
#include "ping_pong_kernels.cuh"

static void cpu_move(unsigned *cells, unsigned turn)
{
    for (int i = 0; i < PING_PONG_CELLS; i++) cells[i] = (cells[i] << 5 | cells[i] >> 27) ^ (turn + i);
}

// What the kernel does.
static void gpu_move_on_cpu(unsigned *cells, unsigned turn)
{
    const unsigned first = cells[0];
    for (int i = 0; i < PING_PONG_CELLS; i++)
        cells[i] = cells[i] * 1664525u + (i + 1 < PING_PONG_CELLS ? cells[i + 1] : first) + turn;
}

int main(int argc, char **argv)
{
    const int turns = option_given(argc, argv, "--small") ? 100 : 2000;
    unsigned cells[PING_PONG_CELLS], expected[PING_PONG_CELLS] = {0}, *device_cells;
    for (int turn = 0; turn < turns; turn++) {
        gpu_move_on_cpu(expected, turn);
        cpu_move(expected, turn);
    }
    CUDA(cudaMalloc((void **)&device_cells, sizeof(cells)));
    long wrong = 0;
    struct loop loop = loop_start(argc, argv);
    do {
        memset(cells, 0, sizeof(cells));
        for (int turn = 0; turn < turns; turn++) {
            CUDA(cudaMemcpy(device_cells, cells, sizeof(cells), cudaMemcpyHostToDevice));
            ping_pong_move<<<1, PING_PONG_CELLS>>>(device_cells, turn);
            CUDA(cudaMemcpy(cells, device_cells, sizeof(cells), cudaMemcpyDeviceToHost));
            cpu_move(cells, turn);
        }
        wrong += memcmp(cells, expected, sizeof(cells)) != 0;
        loop.iterations += turns;
    } while (loop_again(&loop));
    CUDA(cudaFree(device_cells));
    printf("%d turns, checksum %016llx\n", turns, (unsigned long long)checksum(cells, sizeof(cells)));
    return verdict("ping_pong", wrong);
}

/* What the snippets of the runtime API share: checked calls, and kernels that hold a stream busy. */
#include "programs.h"

void must(cudaError_t status, const char *call, const char *file, int line)
{
    if (status == cudaSuccess) return;
    printf("%s:%d: %s: %s\n", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, call, cudaGetErrorName(status));
    fflush(stdout);
    _exit(2);
}

void show(cudaError_t status, const char *text)
{
    printf("%s: %s\n", text, cudaGetErrorName(status));
    cudaGetLastError();
}

uint64_t hash_device(const void *device, size_t count)
{
    void *host = malloc(count);
    MUST(cudaMemcpy(host, device, count, cudaMemcpyDeviceToHost));
    uint64_t hash = hash_bytes(host, count);
    free(host);
    return hash;
}

/* Loads what the driver itself may load at first use, while nothing is busy yet. */
static void driver_warm_up(void)
{
    static bool warm;
    unsigned *scratch;
    if (warm) return;
    warm = true;
    kernels_load();
    MUST(cudaMalloc((void **)&scratch, 1 << 20));
    MUST(cudaMemset(scratch, 0, 100));
    MUST(cudaMemset(scratch, 0, 1 << 20));
    MUST(cudaMemset2D(scratch, 64, 0, 16, 4));
    MUST(cudaMemcpy(scratch, scratch + 4096, 4096, cudaMemcpyDeviceToDevice));
    MUST(cudaMemcpy2D(scratch, 64, scratch + 4096, 128, 64, 16, cudaMemcpyDeviceToDevice));
    MUST(cudaFree(scratch));
}

struct gate *gate_close_then_copy(cudaStream_t stream, unsigned *destination, const unsigned *source, int count)
{
    struct gate *gate = calloc(1, sizeof(*gate));
    void *open, *device_open;
    driver_warm_up();
    MUST(cudaHostAlloc(&open, sizeof(int), cudaHostAllocMapped));
    MUST(cudaHostGetDevicePointer(&device_open, open, 0));
    gate->open = open;
    *gate->open = 0;
    launch_gate(device_open, destination, source, count, stream);
    MUST(cudaGetLastError());
    return gate;
}

struct gate *gate_close(cudaStream_t stream) { return gate_close_then_copy(stream, NULL, NULL, 0); }

void gate_open(struct gate *gate) { *gate->open = 1; }

static void *open_after(void *argument)
{
    struct gate *gate = argument;
    usleep(gate->after_ms * 1000);
    gate_open(gate);
    return NULL;
}

void gate_open_later(struct gate *gate, int milliseconds)
{
    gate->after_ms = milliseconds;
    pthread_create(&gate->opener, NULL, open_after, gate);
}

void gate_finish(struct gate *gate)
{
    if (gate->opener) pthread_join(gate->opener, NULL);
    MUST(cudaFreeHost((void *)gate->open));
    free(gate);
}

// A program of known leaks, for the report and for a comparison with other leak checkers: forgetful CASE...
// Every case leaves buffers of one kind behind; "tidy" and "churn" leave nothing.
#include <pthread.h>
#include "examples/example.h"

#define CHURN 5000

static void *forget(size_t bytes)
{
    void *device;
    CUDA(cudaMalloc(&device, bytes));
    return device;
}

// 10 of 200 from one call site.
static void forget_in_a_loop(void)
{
    for (int i = 0; i < 200; i++) {
        void *device = forget(1000);
        if (i % 20) CUDA(cudaFree(device));
    }
}

static void *forget_in_a_thread(void *unused)
{
    forget(3000);
    return unused;
}

static void forget_in_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, forget_in_a_thread, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static void forget_large(void)
{
    for (int i = 0; i < 3; i++) forget((size_t)64 << 20);
}

static void forget_pitched(void)
{
    void *device;
    size_t pitch;
    CUDA(cudaMallocPitch(&device, &pitch, 1000, 100));
}

static void forget_pool(void)
{
    void *device;
    CUDA(cudaMallocAsync(&device, 5000, 0));
    CUDA(cudaStreamSynchronize(0));
}

static void forget_managed(void)
{
    void *managed;
    CUDA(cudaMallocManaged(&managed, 6000));
}

static void forget_pinned(void)
{
    void *pinned;
    CUDA(cudaMallocHost(&pinned, 7000));
}

static void forget_and_reset(void)
{
    forget(8000);
    CUDA(cudaDeviceReset());
}

// Each of these gets the driver's error, and the report tells what was freed how.
static void free_wrongly(void)
{
    void *pinned, *host = malloc((size_t)8 << 20);
    char *device = (char *)forget((size_t)1 << 20);
    CUDA(cudaMallocHost(&pinned, 7000));
    cudaFreeHost(device);
    cudaFreeHost(host);
    cudaFree(host);
    cudaFree(pinned);
    cudaFree(device + 512);
    cudaFreeHost((char *)pinned + 64);
    CUDA(cudaFreeHost(pinned));
    cudaFreeHost(pinned);
    CUDA(cudaFree(device));
    cudaFree(device);
    cudaGetLastError();
    free(host);
}

// Most allocators end the program here.
static void free_pinned(void)
{
    void *pinned;
    CUDA(cudaMallocHost(&pinned, 7000));
    free(pinned);
}

// The same block every round, never freed: large enough to be the shim's own.
static void *volatile block;
static void forget_host_memory(void)
{
    forget(9000);
    for (int i = 0; i < 2; i++) {
        block = malloc((size_t)8 << 20);
        memset(block, i, 4096);
    }
}

static void tidy(void)
{
    void *device[1000];
    for (int i = 0; i < 1000; i++) device[i] = forget(2000);
    for (int i = 0; i < 1000; i++) CUDA(cudaFree(device[i]));
}

static void churn(void)
{
    int value = 0;
    for (int i = 0; i < CHURN; i++) {
        void *device = forget(256);
        CUDA(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice));
        CUDA(cudaFree(device));
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"loop", forget_in_a_loop},
                 {"threads", forget_in_threads},
                 {"large", forget_large},
                 {"pitch", forget_pitched},
                 {"pool", forget_pool},
                 {"managed", forget_managed},
                 {"pinned", forget_pinned},
                 {"reset", forget_and_reset},
                 {"host", forget_host_memory},
                 {"wrong", free_wrongly},
                 {"free", free_pinned},
                 {"tidy", tidy},
                 {"churn", churn}};
    CUDA(cudaFree(NULL));
    for (int i = 1; i < argc; i++)
        for (size_t j = 0; j < sizeof cases / sizeof *cases; j++)
            if (!strcmp(argv[i], cases[j].name)) cases[j].run();
    return 0;
}

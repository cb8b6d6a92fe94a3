// Right results, bad manners: it forgets one of each kind of memory and frees one pointer with the wrong function.
#include "example.h"
#include "leaky_kernels.cuh"

#define COUNT 1024
#define BYTES (COUNT * sizeof(int))

static int *forget_device_memory(void)
{
    int *device;
    CUDA(cudaMalloc((void **)&device, BYTES));
    return device;
}

static int *forget_pinned_memory(void)
{
    int *pinned;
    CUDA(cudaHostAlloc((void **)&pinned, BYTES, cudaHostAllocMapped));
    return pinned;
}

static int *forget_registration(void)
{
    int *memory = (int *)aligned_alloc(4096, BYTES);
    CUDA(cudaHostRegister(memory, BYTES, cudaHostRegisterMapped));
    return memory;
}

static void free_with_the_wrong_function(void)
{
    void *memory = malloc(BYTES);
    printf("cudaFreeHost of malloc memory: %s\n", cudaGetErrorName(cudaFreeHost(memory)));
    printf("and the error is kept: %s\n", cudaGetErrorName(cudaGetLastError()));
    free(memory);
}

int main(void)
{
    int *device = forget_device_memory(), *pinned = forget_pinned_memory(), *registered = forget_registration();
    for (int i = 0; i < COUNT; i++) registered[i] = i;
    CUDA(cudaMemcpy(device, registered, BYTES, cudaMemcpyHostToDevice));
    leaky_double<<<COUNT / 256, 256>>>(device, COUNT);
    CUDA(cudaMemcpy(pinned, device, BYTES, cudaMemcpyDeviceToHost));
    free_with_the_wrong_function();

    long wrong = 0;
    for (int i = 0; i < COUNT; i++) wrong += pinned[i] != 2 * i;
    return verdict("leaky", wrong);
}

/* What the driver says of pointers, and of errors. */
#include "programs.h"

static void show_attributes(const char *name, const void *pointer)
{
    struct cudaPointerAttributes a;
    memset(&a, 0x55, sizeof(a));
    cudaError_t status = cudaPointerGetAttributes(&a, pointer);
    printf("%s: %s, type %d, device %d, device pointer %s, host pointer %s\n", name, cudaGetErrorName(status), a.type,
           a.device,
           !a.devicePointer             ? "null"
           : a.devicePointer == pointer ? "same"
                                        : "other",
           !a.hostPointer             ? "null"
           : a.hostPointer == pointer ? "same"
                                      : "other");
    cudaGetLastError();
}

SNIPPET(pointer_attributes, "", "attributes of every kind of memory, at its start, inside and after it is freed")
{
    char *small, *large, *pinned, *mapped, *managed, *heap = malloc(65536), *block = malloc(16 << 20), *registered;
    MUST(cudaMalloc((void **)&small, 1000));
    MUST(cudaMalloc((void **)&large, 8 << 20));
    MUST(cudaMallocHost((void **)&pinned, 4096));
    MUST(cudaHostAlloc((void **)&mapped, 4096, cudaHostAllocMapped));
    MUST(cudaMallocManaged((void **)&managed, 4096, cudaMemAttachGlobal));
    registered = aligned_alloc(4096, 8192);
    MUST(cudaHostRegister(registered, 8192, cudaHostRegisterMapped));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) { /* so that a buffer may move */
            MUST(cudaMemcpy(small, heap, 1000, cudaMemcpyHostToDevice));
            MUST(cudaMemcpy(large, block, 8 << 20, cudaMemcpyHostToDevice));
            launch_add((unsigned *)small, 1, 250, 0);
            MUST(cudaMemcpy(heap, small, 1000, cudaMemcpyDeviceToHost));
        }
        show_attributes("small", small);
        show_attributes("small, inside", small + 501);
        show_attributes("large", large);
        show_attributes("large, inside", large + (5 << 20));
        show_attributes("pinned", pinned);
        show_attributes("pinned, inside", pinned + 100);
        show_attributes("mapped", mapped);
        show_attributes("managed", managed);
        show_attributes("registered", registered);
        show_attributes("heap", heap);
        show_attributes("large heap block", block);
        show_attributes("large heap block, inside", block + (9 << 20));
        show_attributes("stack", &small);
        show_attributes("null", NULL);
    }
    MUST(cudaFree(small));
    MUST(cudaHostUnregister(registered));
    show_attributes("unregistered", registered);
    MUST(cudaFree(large));
    MUST(cudaFree(managed));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFreeHost(mapped));
    free(heap);
    free(block);
    free(registered);
}

SNIPPET(register_rules, "", "the program's own registrations: overlaps, wrong unregistration, flags, two on one page")
{
    char *page = aligned_alloc(4096, 4 * 4096), *block = malloc(16 << 20), *pinned, *device;
    unsigned flags = 9;
    SHOW(cudaHostRegister(page, 8192, cudaHostRegisterDefault));
    SHOW(cudaHostRegister(page, 8192, cudaHostRegisterDefault));
    SHOW(cudaHostRegister(page + 4096, 8192, cudaHostRegisterDefault));
    SHOW(cudaHostUnregister(page + 4096));
    SHOW(cudaHostGetFlags(&flags, page));
    SHOW(cudaHostUnregister(page));
    SHOW(cudaHostUnregister(page));
    SHOW(cudaHostRegister(page + 64, 100, cudaHostRegisterDefault));
    SHOW(cudaHostRegister(page + 1064, 100, cudaHostRegisterDefault));
    SHOW(cudaHostUnregister(page + 64));
    SHOW(cudaHostUnregister(page + 1064));
    MUST(cudaMallocHost((void **)&pinned, 8192));
    SHOW(cudaHostUnregister(pinned));
    SHOW(cudaHostRegister(pinned, 8192, cudaHostRegisterDefault));
    SHOW(cudaHostGetFlags(&flags, pinned));
    printf("flags %u\n", flags);
    SHOW(cudaHostGetFlags(&flags, block));

    MUST(cudaMalloc((void **)&device, 16 << 20));
    memset(block, 1, 16 << 20);
    for (int round = 0; round < 3; round++) {
        MUST(cudaMemcpy(device, block, 16 << 20, cudaMemcpyHostToDevice));
        SHOW(cudaHostGetFlags(&flags, block));
        SHOW(cudaHostRegister(block, 16 << 20, cudaHostRegisterMapped));
        SHOW(cudaHostRegister(block + (1 << 20), 1 << 20, cudaHostRegisterMapped));
        MUST(cudaMemcpy(device, block, 16 << 20, cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(block, device, 16 << 20, cudaMemcpyDeviceToHost));
        SHOW(cudaHostUnregister(block));
        SHOW(cudaHostUnregister(block));
    }
    MUST(cudaFree(device));
    MUST(cudaFreeHost(pinned));
    free(page);
    free(block);
}

SNIPPET(last_error, "", "no error is left behind by anything that succeeded")
{
    char *device[4], host[4096] = {0}, *block = malloc(12 << 20), *large;
    unsigned *pinned;
    MUST(cudaMalloc((void **)&large, 12 << 20));
    MUST(cudaMallocHost((void **)&pinned, 4096));
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 4; i++) MUST(cudaMalloc((void **)&device[i], 100 << i));
        for (int i = 0; i < 4; i++) {
            MUST(cudaMemcpy(device[i], host, 100 << i, cudaMemcpyHostToDevice));
            launch_add((unsigned *)device[i], 1, 25, 0);
            MUST(cudaMemcpyAsync(pinned, device[i], 100, cudaMemcpyDeviceToHost, 0));
            MUST(cudaMemcpy(host, device[i], 100 << i, cudaMemcpyDeviceToHost));
        }
        MUST(cudaMemcpy(large, block, 12 << 20, cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(block, large, 12 << 20, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 4; i++) MUST(cudaFree(device[i]));
        if (cudaPeekAtLastError() != cudaSuccess) break;
    }
    SHOW(cudaPeekAtLastError());
    SHOW(cudaGetLastError());
    cudaFree(host); /* wrong: this one must stay until it is asked for */
    char *more;
    MUST(cudaMalloc((void **)&more, 64));
    MUST(cudaMemcpy(more, host, 64, cudaMemcpyHostToDevice));
    MUST(cudaFree(more));
    SHOW(cudaPeekAtLastError());
    SHOW(cudaGetLastError());
    MUST(cudaFree(large));
    MUST(cudaFreeHost(pinned));
    free(block);
}

SNIPPET(memory_info, "", "free and total memory are plausible")
{
    size_t free_before, free_after, total;
    void *large;
    MUST(cudaFree(0));
    MUST(cudaMemGetInfo(&free_before, &total));
    MUST(cudaMalloc(&large, 64 << 20));
    MUST(cudaMemGetInfo(&free_after, &total));
    /* Other processes may free memory meanwhile: before and after cannot be compared. */
    expect(free_before <= total && free_after <= total, "free <= total");
    MUST(cudaFree(large));
}

SNIPPET(no_device_calls_after_reset, "", "cudaDeviceReset, then new work with the same program")
{
    unsigned *device, host[64], back[64];
    fill_random(host, sizeof(host), 1);
    for (int round = 0; round < 3; round++) {
        MUST(cudaMalloc((void **)&device, sizeof(host)));
        for (int i = 0; i < 20; i++) {
            MUST(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
            launch_add(device, round, 64, 0);
            MUST(cudaMemcpy(back, device, sizeof(host), cudaMemcpyDeviceToHost));
        }
        expect(back[63] == host[63] + round, "round %d", round);
        if (round == 1) MUST(cudaFree(device));
        SHOW(cudaDeviceReset());
        if (round == 0) SHOW(cudaFree(device));
    }
    SHOW(cudaMemcpy(back, device, sizeof(host), cudaMemcpyDeviceToHost));
}

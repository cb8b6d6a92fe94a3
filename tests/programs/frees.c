/* Every allocator with every free, and frees of what cannot be freed. */
#include "programs.h"

enum { KINDS = 9, FREES = 4, BYTES = 4096 };

static const char *const kind_name[KINDS] = {"cudaMalloc",      "cudaMalloc large", "cudaMallocPitch",
                                             "cudaMallocHost",  "cudaHostAlloc",    "cudaMallocManaged",
                                             "cudaMallocAsync", "registered",       "malloc"};
static const char *const free_name[FREES] = {"cudaFree", "cudaFreeHost", "cudaFreeAsync", "cudaHostUnregister"};

static void *allocate(int kind)
{
    void *memory = NULL;
    size_t pitch;
    switch (kind) {
    case 0:
        MUST(cudaMalloc(&memory, BYTES));
        break;
    case 1:
        MUST(cudaMalloc(&memory, 8 << 20));
        break;
    case 2:
        MUST(cudaMallocPitch(&memory, &pitch, 100, 20));
        break;
    case 3:
        MUST(cudaMallocHost(&memory, BYTES));
        break;
    case 4:
        MUST(cudaHostAlloc(&memory, BYTES, cudaHostAllocMapped));
        break;
    case 5:
        MUST(cudaMallocManaged(&memory, BYTES, cudaMemAttachGlobal));
        break;
    case 6:
        MUST(cudaMallocAsync(&memory, BYTES, 0));
        break;
    case 7:
        memory = aligned_alloc(4096, BYTES);
        MUST(cudaHostRegister(memory, BYTES, cudaHostRegisterMapped));
        break;
    default:
        memory = aligned_alloc(4096, BYTES);
    }
    return memory;
}

static cudaError_t release(void *memory, int how)
{
    switch (how) {
    case 0:
        return cudaFree(memory);
    case 1:
        return cudaFreeHost(memory);
    case 2:
        return cudaFreeAsync(memory, 0);
    default:
        return cudaHostUnregister(memory);
    }
}

SNIPPET(cross_frees, "", "every kind of memory given to every free function")
{
    static const int right[KINDS] = {0, 0, 0, 1, 1, 0, 2, 3, -1};
    for (int kind = 0; kind < KINDS; kind++)
        for (int how = 0; how < FREES; how++) {
            void *memory = allocate(kind);
            cudaError_t status = release(memory, how);
            MUST(cudaDeviceSynchronize());
            printf("%s, %s: %s; last error %s\n", kind_name[kind], free_name[how], cudaGetErrorName(status),
                   cudaGetErrorName(cudaGetLastError()));
            if (right[kind] >= 0 && status != cudaSuccess) MUST(release(memory, right[kind]));
            MUST(cudaDeviceSynchronize());
            if (kind >= 7) free(memory);
        }
}

SNIPPET(wrong_frees, "", "interior pointers, double frees, null")
{
    char *small, *large, *pinned, *other;
    MUST(cudaMalloc((void **)&small, 1000));
    MUST(cudaMalloc((void **)&other, 1000));
    MUST(cudaMalloc((void **)&large, 8 << 20));
    MUST(cudaMallocHost((void **)&pinned, 8192));
    SHOW(cudaFree(small + 1));
    SHOW(cudaFree(small + 512));
    SHOW(cudaFree(small + 999));
    SHOW(cudaFree(large + 4096));
    SHOW(cudaFreeHost(pinned + 4096));
    SHOW(cudaFreeAsync(small + 256, 0));
    MUST(cudaMemset(small, 3, 1000));
    printf("still usable %016llx\n", (unsigned long long)hash_device(small, 1000));
    SHOW(cudaFree(small));
    SHOW(cudaFree(small));
    SHOW(cudaFreeAsync(small, 0));
    SHOW(cudaFree(large));
    SHOW(cudaFree(large));
    SHOW(cudaFreeHost(pinned));
    SHOW(cudaFreeHost(pinned));
    SHOW(cudaFree(NULL));
    SHOW(cudaFreeHost(NULL));
    SHOW(cudaFree((void *)0x1234));
    SHOW(cudaFree(&small));
    MUST(cudaFree(other));
}

SNIPPET(free_and_reuse, "", "memory given back and taken again, with fresh contents each time")
{
    enum { LIVE = 32, ROUNDS = 3000 };
    unsigned char *device[LIVE] = {0}, first[LIVE];
    uint64_t random = 7;
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const int i = random_next(&random) % LIVE;
        if (device[i]) {
            unsigned char seen[2];
            MUST(cudaMemcpy(seen, device[i], 2, cudaMemcpyDeviceToHost));
            wrong += seen[0] != first[i] || seen[1] != first[i];
            MUST(cudaFree(device[i]));
        }
        const size_t bytes = 2 + random_next(&random) % 3000;
        MUST(cudaMalloc((void **)&device[i], bytes));
        first[i] = (unsigned char)round;
        MUST(cudaMemset(device[i], first[i], bytes));
        wrong += (uintptr_t)device[i] % 256 != 0;
    }
    expect(!wrong, "%d rounds", ROUNDS);
    for (int i = 0; i < LIVE; i++) MUST(cudaFree(device[i]));
}

SNIPPET(freed_async, "", "memory of cudaMalloc freed with cudaFreeAsync, as cuSPARSE does")
{
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    for (int round = 0; round < 50; round++) {
        unsigned *device, value = round, back = 0;
        MUST(cudaMalloc((void **)&device, 64));
        MUST(cudaMemcpyAsync(device, &value, 4, cudaMemcpyHostToDevice, stream));
        launch_add(device, 1, 1, stream);
        MUST(cudaMemcpyAsync(&back, device, 4, cudaMemcpyDeviceToHost, stream));
        MUST(cudaFreeAsync(device, stream));
        if (back != value + 1) expect(false, "round %d: %u", round, back);
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamDestroy(stream));
    expect(cudaGetLastError() == cudaSuccess, "no error is left");
}

SNIPPET(out_of_memory, "", "an allocation that cannot be served answers so, and everything goes on")
{
    void *huge = (void *)8;
    unsigned *small;
    SHOW(cudaMalloc(&huge, (size_t)1 << 50));
    MUST(cudaMalloc((void **)&small, 256));
    MUST(cudaMemset(small, 1, 256));
    SHOW(cudaMallocHost(&huge, (size_t)1 << 50));
    SHOW(cudaMalloc(&huge, 0));
    printf("%s %016llx\n", huge ? "pointer" : "null", (unsigned long long)hash_device(small, 256));
    SHOW(cudaFree(small));
}

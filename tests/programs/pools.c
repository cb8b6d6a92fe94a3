/* Stream-ordered, managed and mapped memory beside small device buffers. */
#include "programs.h"

enum { WORDS = 500, BYTES = 4 * WORDS };

SNIPPET(stream_ordered_mix, "", "cudaMallocAsync and cudaMalloc side by side, copied from one to the other")
{
    cudaStream_t stream;
    unsigned *plain, host[WORDS], back[WORDS];
    int wrong = 0;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMalloc((void **)&plain, BYTES));
    for (unsigned round = 0; round < 100; round++) {
        unsigned *ordered;
        for (int i = 0; i < WORDS; i++) host[i] = round * WORDS + i;
        MUST(cudaMallocAsync((void **)&ordered, BYTES, stream));
        MUST(cudaMemcpyAsync(ordered, host, BYTES, cudaMemcpyHostToDevice, stream));
        launch_add(ordered, 3, WORDS, stream);
        MUST(cudaMemcpyAsync(plain, ordered, BYTES, cudaMemcpyDeviceToDevice, stream));
        if (round % 2)
            MUST(cudaFreeAsync(ordered, stream));
        else {
            MUST(cudaStreamSynchronize(stream)); /* for such memory cudaFree does not wait */
            MUST(cudaFree(ordered));
        }
        launch_add(plain, 1, WORDS, stream);
        MUST(cudaMemcpyAsync(back, plain, BYTES, cudaMemcpyDeviceToHost, stream));
        MUST(cudaMemcpy(back, plain, BYTES, cudaMemcpyDeviceToHost));
        for (int i = 0; i < WORDS; i++) wrong += back[i] != host[i] + 4;
    }
    expect(!wrong, "%016llx", (unsigned long long)hash_bytes(back, BYTES));
    MUST(cudaFree(plain));
    MUST(cudaStreamDestroy(stream));
}

SNIPPET(managed, "", "managed memory, written by both sides, copied to and from small buffers")
{
    unsigned *managed, *device;
    MUST(cudaMallocManaged((void **)&managed, BYTES, cudaMemAttachGlobal));
    MUST(cudaMalloc((void **)&device, BYTES));
    for (unsigned round = 0; round < 20; round++) {
        for (int i = 0; i < WORDS; i++) managed[i] = round + i;
        launch_add(managed, 1, WORDS, 0);
        MUST(cudaMemcpy(device, managed, BYTES, cudaMemcpyDefault));
        launch_add(device, 1, WORDS, 0);
        MUST(cudaMemcpy(managed, device, BYTES, cudaMemcpyDefault));
        MUST(cudaDeviceSynchronize());
        if (managed[9] != round + 11) expect(false, "round %u: %u", round, managed[9]);
    }
    expect(managed[WORDS - 1] == 19 + WORDS + 1, "%016llx", (unsigned long long)hash_bytes(managed, BYTES));
    MUST(cudaFree(managed));
    MUST(cudaFree(device));
}

SNIPPET(mapped, "", "the program's own zero-copy memory stays what it is")
{
    unsigned *host, *alias, *device, back[WORDS];
    MUST(cudaHostAlloc((void **)&host, BYTES, cudaHostAllocMapped));
    MUST(cudaHostGetDevicePointer((void **)&alias, host, 0));
    MUST(cudaMalloc((void **)&device, BYTES));
    for (unsigned round = 0; round < 20; round++) {
        for (int i = 0; i < WORDS; i++) host[i] = round + i;
        launch_add(alias, 1, WORDS, 0);
        launch_copy(device, alias, WORDS, 0);
        MUST(cudaMemcpy(alias, device, BYTES / 2, cudaMemcpyDeviceToDevice));
        MUST(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
        if (host[9] != round + 10 || memcmp(host, back, BYTES)) expect(false, "round %u", round);
    }
    expect(back[0] == 20, "%016llx", (unsigned long long)hash_bytes(back, BYTES));
    MUST(cudaFreeHost(host));
    MUST(cudaFree(device));
}

SNIPPET(atomics, "", "atomic operations on small buffers are exact, wherever the buffers are")
{
    enum { THREADS = 4096, ROUNDS = 10 };
    int *cells, seen[5];
    unsigned long long *wide, total;
    float *real, sum;
    MUST(cudaMalloc((void **)&cells, sizeof(seen)));
    MUST(cudaMalloc((void **)&wide, sizeof(total)));
    MUST(cudaMalloc((void **)&real, sizeof(sum)));
    for (int round = 0; round < ROUNDS; round++) {
        const int start[5] = {round, 1 << 20, -5, 0, 1};
        total = 1ull << 50;
        sum = 0;
        MUST(cudaMemcpy(cells, start, sizeof(start), cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(wide, &total, sizeof(total), cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(real, &sum, sizeof(sum), cudaMemcpyHostToDevice));
        launch_atomics(cells, wide, real, THREADS, 0);
        MUST(cudaMemcpy(seen, cells, sizeof(seen), cudaMemcpyDeviceToHost));
        MUST(cudaMemcpy(&total, wide, sizeof(total), cudaMemcpyDeviceToHost));
        MUST(cudaMemcpy(&sum, real, sizeof(sum), cudaMemcpyDeviceToHost));
        const int added = THREADS / 2 * (THREADS - 1);
        expect(seen[0] == round + added && seen[1] == 1001 - THREADS && seen[2] == 3 * (THREADS - 1) && seen[3] == 77 &&
                   seen[4] == 1 + 2 * THREADS && total == (1ull << 50) + ((unsigned long long)added << 20) &&
                   sum == THREADS,
               "%d %d %d %d %d %llu %.0f", seen[0], seen[1], seen[2], seen[3], seen[4], total, sum);
    }
    MUST(cudaFree(cells));
    MUST(cudaFree(wide));
    MUST(cudaFree(real));
}

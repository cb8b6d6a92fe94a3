/* Every kind and form of copy and memset on small buffers. */
#include "programs.h"

#define SIDES 3 /* pageable host, small device, large device (never on the host) */

static enum cudaMemcpyKind kind_of(int from, int to)
{
    if (from == 0) return to == 0 ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return to == 0 ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

/* Puts bytes into memory of any side, or fetches them, by whole-buffer copies that other snippets check. */
static void put(void *memory, int side, const void *bytes, size_t count)
{
    MUST(cudaMemcpy(memory, bytes, count, side ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost));
}

static void fetch(void *bytes, const void *memory, int side, size_t count)
{
    MUST(cudaMemcpy(bytes, memory, count, side ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost));
}

SNIPPET(copy_1d, "", "cudaMemcpy and cudaMemcpyAsync of every kind, many sizes and offsets")
{
    enum { BYTES = 65536 };
    static unsigned char pattern[BYTES], shadow[SIDES][BYTES], result[BYTES];
    static const size_t sizes[] = {1, 3, 4, 255, 256, 1000, 4096, 30000};
    void *side[SIDES] = {malloc(BYTES)};
    cudaStream_t stream;
    MUST(cudaMalloc(&side[1], BYTES));
    MUST(cudaMalloc(&side[2], 4 * BYTES));
    MUST(cudaStreamCreate(&stream));
    fill_random(pattern, BYTES, 1);
    for (int s = 0; s < SIDES; s++) {
        for (int i = 0; i < BYTES; i++) shadow[s][i] = (unsigned char)(pattern[i] + s);
        put(side[s], s, shadow[s], BYTES);
    }
    uint64_t random = 2;
    for (int form = 0; form < 4; form++)
        for (int from = 0; from < SIDES; from++)
            for (int to = 0; to < SIDES; to++)
                for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
                    const size_t bytes = sizes[k], room = BYTES / 2 - bytes + 1;
                    const size_t at = random_next(&random) % room, source_at = BYTES / 2 + random_next(&random) % room;
                    enum cudaMemcpyKind kind = form & 1 ? cudaMemcpyDefault : kind_of(from, to);
                    char *destination = (char *)side[to] + at, *source = (char *)side[from] + source_at;
                    if (form < 2) {
                        MUST(cudaMemcpy(destination, source, bytes, kind));
                        MUST(cudaStreamSynchronize(0)); /* not ordered before other streams where it is per-thread */
                    } else {
                        MUST(cudaMemcpyAsync(destination, source, bytes, kind, stream));
                        MUST(cudaStreamSynchronize(stream));
                    }
                    memcpy(shadow[to] + at, shadow[from] + source_at, bytes);
                }
    for (int s = 0; s < SIDES; s++) {
        fetch(result, side[s], s, BYTES);
        expect(!memcmp(result, shadow[s], BYTES), "side %d %016llx", s, (unsigned long long)hash_bytes(result, BYTES));
    }
    MUST(cudaMemcpy(side[1], side[2], 0, cudaMemcpyDeviceToDevice));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(side[1]));
    MUST(cudaFree(side[2]));
    free(side[0]);
}

SNIPPET(copy_2d, "", "cudaMemcpy2D and its Async form of every kind")
{
    enum { PITCH = 192, ROWS = 40, BYTES = PITCH * ROWS, WIDTH = 100, HEIGHT = 20 };
    static unsigned char shadow[SIDES][BYTES], result[BYTES];
    void *side[SIDES] = {malloc(BYTES)};
    cudaStream_t stream;
    MUST(cudaMalloc(&side[1], BYTES));
    MUST(cudaMalloc(&side[2], 1 << 20));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int s = 0; s < SIDES; s++) {
        fill_random(shadow[s], BYTES, 10 + s);
        put(side[s], s, shadow[s], BYTES);
    }
    for (int form = 0; form < 4; form++)
        for (int from = 0; from < SIDES; from++)
            for (int to = 0; to < SIDES; to++) {
                if (from == to) continue;
                enum cudaMemcpyKind kind = form & 1 ? cudaMemcpyDefault : kind_of(from, to);
                const int x = 3 * form + from, y = 4 * to + form, u = 7 * from + 1, v = form + 2;
                char *destination = (char *)side[to] + y * PITCH + x, *source = (char *)side[from] + v * PITCH + u;
                if (form < 2) {
                    MUST(cudaMemcpy2D(destination, PITCH, source, PITCH, WIDTH - form, HEIGHT, kind));
                    MUST(cudaStreamSynchronize(0)); /* a device copy may still be under way */
                } else {
                    MUST(cudaMemcpy2DAsync(destination, PITCH, source, PITCH, WIDTH - form, HEIGHT, kind, stream));
                    MUST(cudaStreamSynchronize(stream));
                }
                for (int row = 0; row < HEIGHT; row++)
                    memcpy(shadow[to] + (y + row) * PITCH + x, shadow[from] + (v + row) * PITCH + u, WIDTH - form);
            }
    for (int s = 0; s < SIDES; s++) {
        fetch(result, side[s], s, BYTES);
        expect(!memcmp(result, shadow[s], BYTES), "side %d %016llx", s, (unsigned long long)hash_bytes(result, BYTES));
    }
    void *pitched;
    size_t pitch;
    MUST(cudaMallocPitch(&pitched, &pitch, WIDTH, HEIGHT));
    MUST(cudaMemcpy2D(pitched, pitch, side[1], PITCH, WIDTH, HEIGHT, cudaMemcpyDeviceToDevice));
    MUST(cudaMemset2D(pitched, pitch, 0x5a, 10, 5));
    memset(result, 0, BYTES);
    MUST(cudaMemcpy2D(result, WIDTH, pitched, pitch, WIDTH, HEIGHT, cudaMemcpyDeviceToHost));
    printf("pitched %016llx\n", (unsigned long long)hash_bytes(result, WIDTH * HEIGHT));
    SHOW(cudaMemcpy2D(side[1], 50, side[0], PITCH, WIDTH, HEIGHT, cudaMemcpyHostToDevice)); /* pitch below width */
    MUST(cudaFree(pitched));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(side[1]));
    MUST(cudaFree(side[2]));
    free(side[0]);
}

SNIPPET(copy_3d, "", "cudaMemcpy3D and its Async form")
{
    enum { PITCH = 64, ROWS = 16, SLICES = 8, BYTES = PITCH * ROWS * SLICES };
    static unsigned char shadow[SIDES][BYTES], result[BYTES];
    void *side[SIDES] = {malloc(BYTES)};
    MUST(cudaMalloc(&side[1], BYTES));
    MUST(cudaMalloc(&side[2], 1 << 20));
    for (int s = 0; s < SIDES; s++) {
        fill_random(shadow[s], BYTES, 20 + s);
        put(side[s], s, shadow[s], BYTES);
    }
    for (int form = 0; form < 2; form++)
        for (int from = 0; from < SIDES; from++)
            for (int to = 0; to < SIDES; to++) {
                if (from == to) continue;
                struct cudaMemcpy3DParms copy = {.srcPtr = {side[from], PITCH, PITCH, ROWS},
                                                 .srcPos = {from, 2, 1},
                                                 .dstPtr = {side[to], PITCH, PITCH, ROWS},
                                                 .dstPos = {to + form, 1, 2},
                                                 .extent = {50, 10, 5},
                                                 .kind = kind_of(from, to)};
                MUST(form ? cudaMemcpy3DAsync(&copy, 0) : cudaMemcpy3D(&copy));
                MUST(cudaDeviceSynchronize());
                for (int z = 0; z < 5; z++)
                    for (int y = 0; y < 10; y++)
                        memcpy(shadow[to] + ((z + 2) * ROWS + y + 1) * PITCH + to + form,
                               shadow[from] + ((z + 1) * ROWS + y + 2) * PITCH + from, 50);
            }
    for (int s = 0; s < SIDES; s++) {
        fetch(result, side[s], s, BYTES);
        expect(!memcmp(result, shadow[s], BYTES), "side %d %016llx", s, (unsigned long long)hash_bytes(result, BYTES));
    }
    MUST(cudaFree(side[1]));
    MUST(cudaFree(side[2]));
    free(side[0]);
}

SNIPPET(memset_mix, "", "memsets, device copies, kernels and host copies on one small buffer, in turn")
{
    enum { WORDS = 1024, BYTES = 4 * WORDS };
    unsigned *small, *other, *large, host[WORDS], shadow[WORDS];
    MUST(cudaMalloc((void **)&small, BYTES));
    MUST(cudaMalloc((void **)&other, BYTES));
    MUST(cudaMalloc((void **)&large, 1 << 20));
    for (unsigned round = 0; round < 50; round++) {
        MUST(cudaMemset(small, round, BYTES));
        launch_add(small, round, WORDS, 0);
        MUST(cudaMemcpy(other, small, BYTES, cudaMemcpyDeviceToDevice));
        MUST(cudaMemcpy(large + 512, other, BYTES, cudaMemcpyDeviceToDevice));
        MUST(cudaMemsetAsync(other, 0xff, 100, 0));
        launch_add(large + 512, 1, WORDS, 0);
        MUST(cudaMemcpyAsync(small, large + 512, BYTES, cudaMemcpyDeviceToDevice, 0));
        MUST(cudaMemcpy(other, &round, sizeof(round), cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(small + 7, other, sizeof(round), cudaMemcpyDeviceToDevice));
        MUST(cudaMemcpy(host, small, BYTES, cudaMemcpyDeviceToHost));
        for (int i = 0; i < WORDS; i++) shadow[i] = round * 0x01010101u + round + 1;
        shadow[7] = round;
        if (memcmp(host, shadow, BYTES)) expect(false, "round %u", round);
    }
    expect(true, "%016llx %016llx", (unsigned long long)hash_device(small, BYTES),
           (unsigned long long)hash_device(other, BYTES));
    MUST(cudaFree(small));
    MUST(cudaFree(other));
    MUST(cudaFree(large));
}

SNIPPET(copy_peer, "", "cudaMemcpyPeer and its Async form within one device")
{
    unsigned *a, *b, host[64];
    MUST(cudaMalloc((void **)&a, sizeof(host)));
    MUST(cudaMalloc((void **)&b, sizeof(host)));
    fill_random(host, sizeof(host), 30);
    MUST(cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice));
    SHOW(cudaMemcpyPeer(b, 0, a, 0, sizeof(host)));
    expect(hash_device(b, sizeof(host)) == hash_bytes(host, sizeof(host)), "peer copy");
    MUST(cudaMemset(b, 0, sizeof(host)));
    SHOW(cudaMemcpyPeerAsync(b, 0, a, 0, sizeof(host), 0));
    expect(hash_device(b, sizeof(host)) == hash_bytes(host, sizeof(host)), "asynchronous peer copy");
    MUST(cudaFree(a));
    MUST(cudaFree(b));
}

SNIPPET(copy_errors, "", "copies with wrong kinds, sizes and pointers answer as natively, and change nothing")
{
    char *device, host[256] = {1};
    MUST(cudaMalloc((void **)&device, sizeof(host)));
    MUST(cudaMemset(device, 7, sizeof(host)));
    SHOW(cudaMemcpy(device, host, 257, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(device + 200, host, 100, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(host, device + 200, 100, cudaMemcpyDeviceToHost));
    SHOW(cudaMemcpy(device, NULL, 4, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(NULL, host, 4, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(device, host, 4, (enum cudaMemcpyKind)9));
    SHOW(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice));
    SHOW(cudaMemset(device + 200, 1, 100));
    printf("%016llx\n", (unsigned long long)hash_device(device, sizeof(host)));
    MUST(cudaFree(device));
}

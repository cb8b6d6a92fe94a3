/* Long random sequences of operations on small buffers, beside a shadow of them in host memory. */
#include "programs.h"

enum { BUFFERS = 12, STREAMS = 4, LARGEST = 65536 };

struct mix {
    unsigned char *device[BUFFERS], *shadow[BUFFERS];
    size_t bytes[BUFFERS];
    cudaStream_t stream[STREAMS];
    cudaEvent_t event[STREAMS];
    unsigned char *pinned; /* LARGEST bytes */
    uint64_t random;
    int last; /* the stream of the last operation */
};

static void mix_renew(struct mix *mix, int i)
{
    if (mix->device[i]) MUST(cudaFree(mix->device[i]));
    free(mix->shadow[i]);
    mix->bytes[i] = 4 + random_next(&mix->random) % (i % 3 ? 1000 : LARGEST - 4) / 4 * 4;
    mix->shadow[i] = calloc(1, mix->bytes[i]);
    MUST(cudaMalloc((void **)&mix->device[i], mix->bytes[i]));
    MUST(cudaMemset(mix->device[i], 0, mix->bytes[i]));
    MUST(cudaDeviceSynchronize());
}

/* The next operation's stream; it waits for the last operation, wherever that was. */
static cudaStream_t mix_stream(struct mix *mix, bool several)
{
    if (!several) return 0;
    const int next = random_next(&mix->random) % STREAMS;
    if (next != mix->last) {
        MUST(cudaEventRecord(mix->event[mix->last], mix->stream[mix->last]));
        MUST(cudaStreamWaitEvent(mix->stream[next], mix->event[mix->last], 0));
        mix->last = next;
    }
    return mix->stream[next];
}

static bool mix_step(struct mix *mix, bool several)
{
    unsigned char host[4096];
    const uint32_t choice = random_next(&mix->random) % 100;
    const int a = random_next(&mix->random) % BUFFERS,
              b = (a + 1 + random_next(&mix->random) % (BUFFERS - 1)) % BUFFERS;
    const size_t at = random_next(&mix->random) % (mix->bytes[a] / 4) * 4, left = mix->bytes[a] - at;
    const size_t most = left < sizeof(host) ? left : sizeof(host), n = 1 + random_next(&mix->random) % most;
    cudaStream_t stream = choice < 2 ? 0 : mix_stream(mix, several);
    if (choice < 2) {
        MUST(cudaDeviceSynchronize());
        mix_renew(mix, a);
    } else if (choice < 35) {
        fill_random(host, n, random_next(&mix->random));
        memcpy(mix->shadow[a] + at, host, n);
        if (several)
            MUST(cudaMemcpyAsync(mix->device[a] + at, host, n, cudaMemcpyHostToDevice, stream));
        else
            MUST(cudaMemcpy(mix->device[a] + at, host, n, cudaMemcpyHostToDevice));
        memset(host, 0xee, n); /* pageable: the source is free again */
    } else if (choice < 60) {
        if (several && choice % 2) {
            MUST(cudaMemcpyAsync(mix->pinned, mix->device[a] + at, n, cudaMemcpyDeviceToHost, stream));
            MUST(cudaStreamSynchronize(stream));
            return !memcmp(mix->pinned, mix->shadow[a] + at, n);
        }
        if (several)
            MUST(cudaMemcpyAsync(host, mix->device[a] + at, n, cudaMemcpyDeviceToHost, stream));
        else
            MUST(cudaMemcpy(host, mix->device[a] + at, n, cudaMemcpyDeviceToHost));
        return !memcmp(host, mix->shadow[a] + at, n);
    } else if (choice < 75) {
        const unsigned value = random_next(&mix->random);
        const int words = (int)(left / 4);
        launch_add((unsigned *)(mix->device[a] + at), value, words, stream);
        for (int i = 0; i < words; i++) ((unsigned *)(mix->shadow[a] + at))[i] += value;
    } else if (choice < 85) {
        if (several)
            MUST(cudaMemsetAsync(mix->device[a] + at, (int)choice, n, stream));
        else
            MUST(cudaMemset(mix->device[a] + at, (int)choice, n));
        memset(mix->shadow[a] + at, (int)choice, n);
    } else {
        const size_t bytes = n < mix->bytes[b] ? n : mix->bytes[b];
        if (several)
            MUST(cudaMemcpyAsync(mix->device[a] + at, mix->device[b], bytes, cudaMemcpyDeviceToDevice, stream));
        else
            MUST(cudaMemcpy(mix->device[a] + at, mix->device[b], bytes, cudaMemcpyDeviceToDevice));
        memcpy(mix->shadow[a] + at, mix->shadow[b], bytes);
    }
    return true;
}

static void mix_run(uint64_t seed, int steps, bool several, unsigned stream_flags)
{
    struct mix mix = {.random = seed};
    MUST(cudaMallocHost((void **)&mix.pinned, LARGEST));
    for (int i = 0; i < STREAMS; i++) {
        MUST(cudaStreamCreateWithFlags(&mix.stream[i], stream_flags));
        MUST(cudaEventCreateWithFlags(&mix.event[i], cudaEventDisableTiming));
    }
    for (int i = 0; i < BUFFERS; i++) mix_renew(&mix, i);
    int step = 0;
    while (step < steps && mix_step(&mix, several)) step++;
    expect(step == steps, "%d steps", step);
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < BUFFERS; i++)
        expect(hash_device(mix.device[i], mix.bytes[i]) == hash_bytes(mix.shadow[i], mix.bytes[i]), "buffer %d %016llx",
               i, (unsigned long long)hash_bytes(mix.shadow[i], mix.bytes[i]));
    for (int i = 0; i < STREAMS; i++) {
        MUST(cudaStreamDestroy(mix.stream[i]));
        MUST(cudaEventDestroy(mix.event[i]));
    }
    for (int i = 0; i < BUFFERS; i++) {
        MUST(cudaFree(mix.device[i]));
        free(mix.shadow[i]);
    }
    MUST(cudaFreeHost(mix.pinned));
}

SNIPPET(mix_default, "", "3000 random operations in the default stream") { mix_run(1, 3000, false, cudaStreamDefault); }
SNIPPET(mix_streams, "", "3000 random operations in four streams, ordered by events")
{
    mix_run(2, 3000, true, cudaStreamDefault);
}
SNIPPET(mix_non_blocking, "", "the same in non-blocking streams") { mix_run(3, 3000, true, cudaStreamNonBlocking); }

/* The per-thread default stream: its uploads do not wait, and are ordered behind what is ahead of them. These say
 * something only in programs built for it. */
#include "programs.h"

#define WORDS 16
#define BYTES (WORDS * sizeof(unsigned))

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
/* waits: the native upload waits for this stream, and the gate opens by itself. */
static void upload_behind(cudaStream_t busy, bool waits, const char *name)
{
    unsigned *device, *seen, host[WORDS], old[WORDS];
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaMalloc((void **)&seen, BYTES));
    fill_random(old, BYTES, 1);
    fill_random(host, BYTES, 2);
    MUST(cudaMemcpy(device, old, BYTES, cudaMemcpyHostToDevice));
    MUST(cudaMemset(seen, 0, BYTES));
    MUST(cudaDeviceSynchronize());
    struct gate *gate = gate_close_then_copy(busy, seen, device, WORDS);
    if (waits) gate_open_later(gate, 20);
    MUST(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice)); /* otherwise never ends if it waits */
    memset(host, 0, BYTES);
    if (!waits) gate_open(gate);
    MUST(cudaDeviceSynchronize());
    gate_finish(gate);
    expect(hash_device(seen, BYTES) == hash_bytes(old, BYTES), "behind the %s stream the kernel saw the old words",
           name);
    fill_random(host, BYTES, 2);
    expect(hash_device(device, BYTES) == hash_bytes(host, BYTES), "and the buffer holds the new ones");
    MUST(cudaFree(device));
    MUST(cudaFree(seen));
}
#endif

SNIPPET(per_thread_upload_does_not_wait, "ptds",
        "a per-thread upload waits for its own stream only, and overtakes nothing")
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    upload_behind(cudaStreamPerThread, true, "per-thread");
    upload_behind(cudaStreamLegacy, false, "legacy");
#endif
}

SNIPPET(per_thread_ignores_other_streams, "ptds", "per-thread copies do not wait for other streams")
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    unsigned *device, host[WORDS], back[WORDS];
    cudaStream_t stream;
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaStreamCreate(&stream));
    fill_random(host, BYTES, 3);
    struct gate *gate = gate_close(stream);
    MUST(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
    launch_add(device, 1, WORDS, 0);
    MUST(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
    printf("still busy: %s\n", cudaGetErrorName(cudaStreamQuery(stream)));
    cudaGetLastError();
    gate_open(gate);
    MUST(cudaDeviceSynchronize());
    gate_finish(gate);
    expect(back[3] == host[3] + 1, "copy, kernel, copy");
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(device));
#endif
}

SNIPPET(per_thread_download_waits, "ptds", "a per-thread download waits for the kernel before it")
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    unsigned *device, *seen, host[WORDS], back[WORDS] = {0};
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaMalloc((void **)&seen, BYTES));
    fill_random(host, BYTES, 4);
    MUST(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
    struct gate *gate = gate_close_then_copy(0, seen, device, WORDS);
    gate_open_later(gate, 20);
    MUST(cudaMemcpy(back, seen, BYTES, cudaMemcpyDeviceToHost));
    gate_finish(gate);
    expect(!memcmp(back, host, BYTES), "it saw what the kernel wrote");
    MUST(cudaFree(device));
    MUST(cudaFree(seen));
#endif
}

struct worker {
    pthread_t thread;
    unsigned number, wrong;
    pthread_barrier_t *barrier;
    unsigned *shared; /* a slice of WORDS for each */
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    unsigned *slice = worker->shared + worker->number * WORDS, host[WORDS], back[WORDS];
    pthread_barrier_wait(worker->barrier);
    for (unsigned round = 0; round < 300; round++) {
        for (int i = 0; i < WORDS; i++) host[i] = worker->number * 1000 + round + i;
        MUST(cudaMemcpy(slice, host, BYTES, cudaMemcpyHostToDevice));
        launch_add(slice, 7, WORDS, 0);
        MUST(cudaMemcpy(back, slice, BYTES, cudaMemcpyDeviceToHost));
        for (int i = 0; i < WORDS; i++) worker->wrong += back[i] != host[i] + 7;
    }
    return NULL;
}

SNIPPET(threads_share_a_buffer, "", "eight threads, each with its slice of one small buffer, in their default streams")
{
    enum { THREADS = 8 };
    struct worker workers[THREADS] = {0};
    pthread_barrier_t barrier;
    unsigned *device;
    MUST(cudaMalloc((void **)&device, THREADS * BYTES));
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t].number = t;
        workers[t].barrier = &barrier;
        workers[t].shared = device;
        pthread_create(&workers[t].thread, NULL, work, &workers[t]);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
        expect(!workers[t].wrong, "thread %u", t);
    }
    printf("%016llx\n", (unsigned long long)hash_device(device, THREADS * BYTES));
    MUST(cudaFree(device));
}

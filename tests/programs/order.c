/* What waits, what must not wait, and what a copy may see. A call that blocks where the native one does not never ends:
 * the gate is opened by the same thread afterwards. */
#include "programs.h"
#include <stdatomic.h>

#define WORDS 1024
#define BYTES (WORDS * sizeof(unsigned))

static unsigned *device_words(unsigned first)
{
    unsigned *device;
    MUST(cudaMalloc((void **)&device, BYTES));
    launch_fill(device, first, WORDS, 0);
    MUST(cudaDeviceSynchronize());
    return device;
}

/* "Not ready" is also the last error. */
static const char *answer(cudaError_t status)
{
    cudaGetLastError();
    return cudaGetErrorName(status);
}

static void fill_words(unsigned *words, unsigned first)
{
    for (int i = 0; i < WORDS; i++) words[i] = first + i;
}

static bool holds(const unsigned *device, unsigned first)
{
    unsigned words[WORDS], expected[WORDS];
    MUST(cudaMemcpy(words, device, BYTES, cudaMemcpyDeviceToHost));
    fill_words(expected, first);
    return !memcmp(words, expected, BYTES);
}

SNIPPET(async_upload_source_reused, "",
        "a pageable source may be overwritten as soon as the asynchronous upload returns")
{
    static const size_t sizes[] = {4, 4096, 65536, 1 << 20, 2 << 20};
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
        const size_t bytes = sizes[k];
        unsigned char *device, *host = malloc(bytes), *result = malloc(bytes);
        MUST(cudaMalloc((void **)&device, bytes));
        memset(host, 11, bytes);
        struct gate *gate = gate_close(stream);
        MUST(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
        memset(host, 22, bytes);
        gate_open(gate);
        MUST(cudaStreamSynchronize(stream));
        gate_finish(gate);
        MUST(cudaMemcpy(result, device, bytes, cudaMemcpyDeviceToHost));
        memset(host, 11, bytes);
        expect(!memcmp(host, result, bytes), "%zu bytes", bytes);
        MUST(cudaFree(device));
        free(host);
        free(result);
    }
    MUST(cudaStreamDestroy(stream));
}

SNIPPET(async_download_complete, "", "a pageable asynchronous download is complete when it returns")
{
    static const size_t sizes[] = {4, 4096, 65536, 1 << 20};
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
        const size_t bytes = sizes[k];
        unsigned *device, *host = calloc(1, bytes);
        int wrong = 0;
        MUST(cudaMalloc((void **)&device, bytes));
        for (unsigned round = 1; round < 20; round++) {
            launch_fill(device, round, (int)(bytes / 4), stream);
            MUST(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
            wrong += host[0] != round || host[bytes / 4 - 1] != round + bytes / 4 - 1;
        }
        expect(!wrong, "%zu bytes", bytes);
        MUST(cudaFree(device));
        free(host);
    }
    unsigned *device = device_words(3), *host = calloc(1, BYTES);
    struct gate *gate = gate_close(stream);
    launch_add(device, 4, WORDS, stream);
    gate_open_later(gate, 20);
    MUST(cudaMemcpyAsync(host, device, BYTES, cudaMemcpyDeviceToHost, stream));
    expect(host[5] == 12, "behind a busy stream");
    gate_finish(gate);
    MUST(cudaFree(device));
    MUST(cudaStreamDestroy(stream));
    free(host);
}

/* Every asynchronous operation on small buffers, behind a closed gate in this stream. */
static void all_return_at_once(cudaStream_t stream)
{
    unsigned *device = device_words(0), *other = device_words(100), pageable[WORDS], *pinned, *landed;
    MUST(cudaMallocHost((void **)&pinned, BYTES));
    MUST(cudaMallocHost((void **)&landed, 2 * BYTES));
    cudaEvent_t event;
    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    fill_words(pageable, 5000);
    fill_words(pinned, 6000);

    struct gate *gate = gate_close(stream);
    MUST(cudaMemcpyAsync(device, pageable, BYTES, cudaMemcpyHostToDevice, stream));
    memset(pageable, 0, BYTES);
    launch_add(device, 1, WORDS, stream);
    MUST(cudaMemcpyAsync(other, pinned, BYTES / 2, cudaMemcpyHostToDevice, stream));
    MUST(cudaMemsetAsync(other + WORDS / 2, 1, BYTES / 2, stream));
    MUST(cudaMemcpyAsync(other + 8, device + 8, 32, cudaMemcpyDeviceToDevice, stream));
    MUST(cudaMemcpyAsync(landed, device, BYTES, cudaMemcpyDeviceToHost, stream));
    MUST(cudaMemcpy2DAsync(landed + WORDS, 64, other, 128, 64, 16, cudaMemcpyDeviceToHost, stream));
    MUST(cudaEventRecord(event, stream));
    printf("stream %s, event %s\n", answer(cudaStreamQuery(stream)), answer(cudaEventQuery(event)));
    gate_open(gate);
    MUST(cudaStreamSynchronize(stream));
    gate_finish(gate);
    printf("stream %s, event %s\n", answer(cudaStreamQuery(stream)), answer(cudaEventQuery(event)));
    expect(landed[0] == 5001 && landed[WORDS - 1] == 5001 + WORDS - 1, "the download saw the upload and the kernel");
    expect(landed[WORDS + 8] == 5009 && landed[WORDS + 16] == 6000 + 32, "the 2D download saw the device copy");
    expect(holds(device, 5001), "device");
    printf("%016llx\n", (unsigned long long)hash_device(other, BYTES));
    MUST(cudaEventDestroy(event));
    MUST(cudaFree(device));
    MUST(cudaFree(other));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFreeHost(landed));
}

SNIPPET(async_behind_busy_stream, "", "asynchronous copies and memsets return at once behind a busy stream")
{
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    all_return_at_once(stream);
    MUST(cudaStreamDestroy(stream));
    MUST(cudaStreamCreate(&stream));
    all_return_at_once(stream);
    MUST(cudaStreamDestroy(stream));
}

SNIPPET(async_behind_busy_legacy, "", "the same in the legacy stream, and in a blocking stream behind it")
{
    all_return_at_once(cudaStreamLegacy);
    unsigned *device = device_words(0), host[WORDS];
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    fill_words(host, 70);
    struct gate *gate = gate_close(cudaStreamLegacy);
    MUST(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream));
    memset(host, 0, BYTES);
    printf("behind legacy: %s\n", answer(cudaStreamQuery(cudaStreamLegacy)));
    gate_open(gate);
    MUST(cudaDeviceSynchronize());
    gate_finish(gate);
    expect(holds(device, 70), "upload in a blocking stream");
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(device));
}

SNIPPET(async_upload_ordered, "", "an asynchronous upload does not overtake the kernels before it")
{
    unsigned *device = device_words(1), *seen = device_words(0), host[WORDS];
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    fill_words(host, 900);
    struct gate *gate = gate_close_then_copy(stream, seen, device, WORDS);
    MUST(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream));
    gate_open(gate);
    MUST(cudaStreamSynchronize(stream));
    gate_finish(gate);
    expect(holds(seen, 1), "the kernel saw the old words");
    expect(holds(device, 900), "the buffer holds the new ones");

    /* A blocking stream with nothing in it, behind the busy legacy stream: its next operation waits. */
    cudaStream_t blocking;
    MUST(cudaStreamCreate(&blocking));
    fill_words(host, 901);
    gate = gate_close_then_copy(cudaStreamLegacy, seen, device, WORDS);
    MUST(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, blocking));
    gate_open(gate);
    MUST(cudaDeviceSynchronize());
    gate_finish(gate);
    expect(holds(seen, 900), "the legacy kernel saw the old words");
    expect(holds(device, 901), "the buffer holds the new ones");
    MUST(cudaStreamDestroy(stream));
    MUST(cudaStreamDestroy(blocking));
    MUST(cudaFree(device));
    MUST(cudaFree(seen));
}

SNIPPET(sync_copy_waits_for_blocking_streams, "", "cudaMemcpy of the legacy stream waits for blocking streams")
{
#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
    unsigned *device = device_words(1), *seen = device_words(0), host[WORDS];
    cudaStream_t stream;
    cudaEvent_t event;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int upload = 0; upload < 2; upload++) {
        fill_words(host, 50);
        struct gate *gate = gate_close_then_copy(stream, seen, device, WORDS);
        MUST(cudaEventRecord(event, stream));
        gate_open_later(gate, 20);
        MUST(cudaMemcpy(upload ? (void *)device : host, upload ? (void *)host : seen, BYTES,
                        upload ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
        printf("the stream's event after the copy: %s\n", answer(cudaEventQuery(event)));
        MUST(cudaDeviceSynchronize());
        gate_finish(gate);
        expect(holds(seen, 1), "the kernel saw the old words");
        if (!upload) expect(host[3] == 4, "the download saw the kernel's");
    }
    expect(holds(device, 50), "the buffer holds the new ones");
    MUST(cudaStreamDestroy(stream));
    MUST(cudaEventDestroy(event));
    MUST(cudaFree(device));
    MUST(cudaFree(seen));
#endif
}

SNIPPET(sync_copy_ignores_non_blocking_streams, "", "synchronous copies do not wait for non-blocking streams")
{
    unsigned *device = device_words(1), *fresh, host[WORDS];
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    fill_words(host, 300);
    struct gate *gate = gate_close(stream);
    MUST(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
    launch_add(device, 1, WORDS, 0);
    MUST(cudaMemcpy(host, device, BYTES, cudaMemcpyDeviceToHost));
    expect(host[9] == 310, "copy, kernel, copy");
    MUST(cudaMemset(device, 0, 64));
    MUST(cudaMemcpy(device + 16, device, 64, cudaMemcpyDeviceToDevice));
    MUST(cudaMalloc((void **)&fresh, BYTES));
    MUST(cudaMemcpy(fresh, host, BYTES, cudaMemcpyHostToDevice));
    printf("still busy: %s\n", answer(cudaStreamQuery(stream)));
    gate_open(gate);
    MUST(cudaDeviceSynchronize());
    gate_finish(gate);
    printf("%016llx %016llx\n", (unsigned long long)hash_device(device, BYTES),
           (unsigned long long)hash_device(fresh, BYTES));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(device));
    MUST(cudaFree(fresh));
}

SNIPPET(sync_memset_returns_at_once, "", "cudaMemset and device-to-device cudaMemcpy do not wait for their own stream")
{
    unsigned *device = device_words(1), *other = device_words(40);
    struct gate *gate = gate_close(0);
    MUST(cudaMemset(device, 0x11, BYTES));
    MUST(cudaMemcpy(device, other, 64, cudaMemcpyDeviceToDevice));
    MUST(cudaMemset2D(device + 64, 64, 0x22, 16, 4));
    printf("still busy: %s\n", answer(cudaStreamQuery(0)));
    gate_open(gate);
    MUST(cudaDeviceSynchronize());
    gate_finish(gate);
    printf("%016llx\n", (unsigned long long)hash_device(device, BYTES));
    MUST(cudaFree(device));
    MUST(cudaFree(other));
}

SNIPPET(free_waits, "", "cudaFree waits for every stream, cudaMalloc for none")
{
    for (int flags = 0; flags < 2; flags++) {
        unsigned *device = device_words(1), *other = device_words(2), *fresh;
        cudaStream_t stream;
        cudaEvent_t event;
        MUST(cudaStreamCreateWithFlags(&stream, flags ? cudaStreamNonBlocking : cudaStreamDefault));
        MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        struct gate *gate = gate_close_then_copy(stream, other, device, WORDS);
        MUST(cudaEventRecord(event, stream));
        MUST(cudaMalloc((void **)&fresh, BYTES));
        printf("after cudaMalloc: %s\n", answer(cudaEventQuery(event)));
        gate_open_later(gate, 20);
        MUST(cudaFree(device));
        printf("after cudaFree: %s\n", answer(cudaEventQuery(event)));
        gate_finish(gate);
        expect(holds(other, 1), "the kernel read the buffer before it went");
        MUST(cudaFree(other));
        MUST(cudaFree(fresh));
        MUST(cudaStreamDestroy(stream));
        MUST(cudaEventDestroy(event));
    }
}

static void add_to_pinned(void *argument)
{
    usleep(5000);
    *(unsigned *)argument += 1000;
}

SNIPPET(host_function_then_upload, "", "an upload from pinned memory sees what a host function before it wrote there")
{
    unsigned *device = device_words(0), *pinned;
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMallocHost((void **)&pinned, BYTES));
    fill_words(pinned, 10);
    for (int round = 0; round < 3; round++) {
        MUST(cudaLaunchHostFunc(stream, add_to_pinned, pinned));
        MUST(cudaMemcpyAsync(device, pinned, BYTES, cudaMemcpyHostToDevice, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    unsigned first;
    MUST(cudaMemcpy(&first, device, sizeof(first), cudaMemcpyDeviceToHost));
    expect(first == 3010, "%u", first);
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(device));
}

static void wait_for_flag(void *argument)
{
    while (!atomic_load((atomic_int *)argument)) usleep(200);
}

SNIPPET(host_function_gate, "", "a stream held by a host function: copies behind it return, and happen after it")
{
    unsigned *device = device_words(1), host[WORDS], *pinned;
    static atomic_int flag;
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMallocHost((void **)&pinned, BYTES));
    fill_words(host, 20);
    fill_words(pinned, 30);
    MUST(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream));
    MUST(cudaLaunchHostFunc(stream, wait_for_flag, &flag));
    MUST(cudaMemcpyAsync(device, pinned, BYTES / 2, cudaMemcpyHostToDevice, stream));
    MUST(cudaMemcpyAsync(pinned + WORDS / 2, device + WORDS / 2, BYTES / 2, cudaMemcpyDeviceToHost, stream));
    printf("%s\n", answer(cudaStreamQuery(stream)));
    atomic_store(&flag, 1);
    MUST(cudaStreamSynchronize(stream));
    expect(pinned[WORDS / 2] == 20 + WORDS / 2, "download");
    MUST(cudaMemcpy(host, device, BYTES, cudaMemcpyDeviceToHost));
    expect(host[0] == 30 && host[WORDS - 1] == 20 + WORDS - 1, "upload");
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(device));
}

SNIPPET(destroyed_stream_still_works, "", "work of a destroyed stream is still ahead of what must wait for it")
{
    unsigned *device = device_words(1), *seen = device_words(0);
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct gate *gate = gate_close_then_copy(stream, seen, device, WORDS);
    launch_add(device, 1, WORDS, stream);
    MUST(cudaStreamDestroy(stream));
    gate_open(gate);
    MUST(cudaDeviceSynchronize());
    gate_finish(gate);
    expect(holds(seen, 1) && holds(device, 2), "both kernels ran");
    MUST(cudaFree(device));
    MUST(cudaFree(seen));
}

SNIPPET(event_chain, "", "small buffers handed from stream to stream by events")
{
    enum { STREAMS = 16, ROUNDS = 40 };
    unsigned *device[STREAMS], host[WORDS], *pinned;
    cudaStream_t stream[STREAMS];
    cudaEvent_t event[STREAMS];
    MUST(cudaMallocHost((void **)&pinned, BYTES));
    for (int i = 0; i < STREAMS; i++) {
        device[i] = device_words(0);
        MUST(cudaStreamCreateWithFlags(&stream[i], i % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
        MUST(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
    }
    unsigned total = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill_words(host, round);
        MUST(cudaMemcpyAsync(device[0], host, BYTES, cudaMemcpyHostToDevice, stream[0]));
        for (int i = 0; i < STREAMS; i++) {
            if (i) {
                MUST(cudaStreamWaitEvent(stream[i], event[i - 1], 0));
                MUST(cudaMemcpyAsync(device[i], device[i - 1], BYTES, cudaMemcpyDeviceToDevice, stream[i]));
            }
            launch_add(device[i], 1, WORDS, stream[i]);
            MUST(cudaEventRecord(event[i], stream[i]));
        }
        MUST(cudaMemcpyAsync(pinned, device[STREAMS - 1], BYTES, cudaMemcpyDeviceToHost, stream[STREAMS - 1]));
        MUST(cudaStreamSynchronize(stream[STREAMS - 1]));
        total += pinned[0] == round + STREAMS && pinned[WORDS - 1] == round + STREAMS + WORDS - 1;
    }
    expect(total == ROUNDS, "%u rounds", total);
    for (int i = 0; i < STREAMS; i++) {
        MUST(cudaStreamDestroy(stream[i]));
        MUST(cudaEventDestroy(event[i]));
        MUST(cudaFree(device[i]));
    }
    MUST(cudaFreeHost(pinned));
}

SNIPPET(first_allocation_behind_busy_stream, "", "the first small buffer of a program does not wait for running work")
{
    volatile int *open;
    unsigned *device, back = 0, value = 4711;
    MUST(cudaHostAlloc((void **)&open, sizeof *open, cudaHostAllocMapped));
    kernels_load();
    *open = 0;
    launch_gate(open, NULL, NULL, 0, 0);
    MUST(cudaMalloc((void **)&device, sizeof value)); /* never returns if it waits */
    *open = 1;
    MUST(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(&back, device, sizeof back, cudaMemcpyDeviceToHost));
    expect(back == value, "the value came back");
    MUST(cudaFree(device));
    MUST(cudaFreeHost((void *)open));
}

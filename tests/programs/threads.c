/* Threads: own streams, allocation, thread exit, signals, many buffers. */
#include "programs.h"
#include <signal.h>
#include <sys/time.h>

enum { THREADS = 8, WORDS = 512, BYTES = 4 * WORDS };

struct worker {
    pthread_t thread;
    unsigned number, wrong;
    uint64_t hash;
};

static void run_workers(void *(*work)(void *))
{
    struct worker workers[THREADS] = {0};
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t].number = t;
        pthread_create(&workers[t].thread, NULL, work, &workers[t]);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
        expect(!workers[t].wrong, "thread %u %016llx", t, (unsigned long long)workers[t].hash);
    }
}

static void *work_in_stream(void *argument)
{
    struct worker *worker = argument;
    unsigned *device, host[WORDS], back[WORDS];
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, worker->number % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
    MUST(cudaMalloc((void **)&device, BYTES));
    for (unsigned round = 0; round < 200; round++) {
        for (int i = 0; i < WORDS; i++) host[i] = worker->number * 100000 + round * 10 + i;
        MUST(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream));
        launch_add(device, round, WORDS, stream);
        MUST(cudaMemcpyAsync(back, device, BYTES, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        for (int i = 0; i < WORDS; i++) worker->wrong += back[i] != host[i] + round;
        worker->hash = worker->hash * 31 + hash_bytes(back, BYTES);
    }
    MUST(cudaFree(device));
    MUST(cudaStreamDestroy(stream));
    return NULL;
}

SNIPPET(threads_own_streams, "", "eight threads, each with its stream and its small buffer")
{
    run_workers(work_in_stream);
}

static void *allocate_and_free(void *argument)
{
    struct worker *worker = argument;
    uint64_t random = worker->number;
    unsigned *device[16] = {0}, value;
    for (unsigned round = 0; round < 400; round++) {
        const int i = random_next(&random) % 16;
        if (device[i]) {
            MUST(cudaMemcpy(&value, device[i], 4, cudaMemcpyDeviceToHost));
            worker->wrong += value != worker->number * 16u + i;
            MUST(cudaFree(device[i]));
        }
        value = worker->number * 16 + i;
        MUST(cudaMalloc((void **)&device[i], 4 + random_next(&random) % 5000));
        MUST(cudaMemcpy(device[i], &value, 4, cudaMemcpyHostToDevice));
    }
    for (int i = 0; i < 16; i++) MUST(cudaFree(device[i]));
    return NULL;
}

SNIPPET(threads_allocate, "", "eight threads allocate, copy and free") { run_workers(allocate_and_free); }

static pthread_key_t at_exit;

static void free_at_thread_exit(void *device)
{
    unsigned value = 0;
    MUST(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
    if (value != 5) expect(false, "at thread exit: %u", value);
    MUST(cudaFree(device));
    free(malloc(8 << 20));
}

static void *leave_to_destructor(void *argument)
{
    unsigned *device, value = 5;
    (void)argument;
    MUST(cudaMalloc((void **)&device, 256));
    MUST(cudaMemcpy(device, &value, sizeof(value), cudaMemcpyHostToDevice));
    /* The destructor may copy in a new per-thread stream, which does not wait for an upload still under way in this one. */
    MUST(cudaDeviceSynchronize());
    pthread_setspecific(at_exit, device);
    return NULL;
}

SNIPPET(threads_exit, "", "thread-specific data whose destructor copies and frees")
{
    MUST(cudaFree(0));
    pthread_key_create(&at_exit, free_at_thread_exit);
    for (int round = 0; round < 10; round++) run_workers(leave_to_destructor);
}

static void *current_device(void *argument)
{
    struct worker *worker = argument;
    int device = -1;
    void *memory;
    worker->wrong += cudaGetDevice(&device) != cudaSuccess || device != 0;
    worker->wrong += cudaMalloc(&memory, 100) != cudaSuccess || cudaFree(memory) != cudaSuccess;
    return NULL;
}

SNIPPET(threads_fresh, "", "the first CUDA call of a thread is an allocation") { run_workers(current_device); }

static volatile sig_atomic_t ticks;
static void tick(int number) { ticks += number > 0; }

SNIPPET(signals, "", "an interval timer interrupts everything")
{
    struct sigaction action = {.sa_handler = tick};
    struct itimerval every = {{0, 500}, {0, 500}};
    unsigned *device, host[WORDS], back[WORDS], wrong = 0;
    char *block = malloc(8 << 20), *large;
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaMalloc((void **)&large, 8 << 20));
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (unsigned round = 0; round < 500; round++) {
        for (int i = 0; i < WORDS; i++) host[i] = round + i;
        MUST(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
        launch_add(device, 1, WORDS, 0);
        MUST(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
        wrong += back[11] != round + 12;
        if (round % 100 == 0) {
            memset(block, (int)round, 8 << 20);
            MUST(cudaMemcpy(large, block, 8 << 20, cudaMemcpyHostToDevice));
            MUST(cudaMemcpy(block, large, 8 << 20, cudaMemcpyDeviceToHost));
            wrong += block[12345] != (char)round;
        }
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    expect(!wrong, "500 rounds");
    MUST(cudaFree(device));
    MUST(cudaFree(large));
    free(block);
}

static void many_live(int count)
{
    unsigned **device = calloc(count, sizeof(*device)), host[16], back[16];
    int wrong = 0;
    for (int i = 0; i < count; i++) MUST(cudaMalloc((void **)&device[i], 64));
    for (int i = 0; i < count; i += 37) {
        for (int k = 0; k < 16; k++) host[k] = i + k;
        MUST(cudaMemcpy(device[i], host, 64, cudaMemcpyHostToDevice));
    }
    launch_add(device[37], 1, 16, 0);
    for (int i = 0; i < count; i += 37) {
        MUST(cudaMemcpy(back, device[i], 64, cudaMemcpyDeviceToHost));
        for (unsigned k = 0; k < 16; k++) wrong += back[k] != i + k + (i == 37);
    }
    expect(!wrong, "contents");
    for (int i = 0; i < count; i++) MUST(cudaFree(device[(i * 7919ll) % count]));
    SHOW(cudaFree(device[5]));
    free(device);
}

SNIPPET(many_small, "slow", "100 000 live buffers of 64 bytes") { many_live(100000); }
SNIPPET(many_smaller, "", "3000 of them, so that they can be moved about") { many_live(3000); }

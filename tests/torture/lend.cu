// Lending against a model: random programs that write, read, upload, launch, free and fork.
//     lend [STEPS [THREADS [SEED [gpu]]]]
// Terminated (timeout does that), it says how far each thread is, twice: one that stands still hangs.
// Run under the library with ZCSHIM_LEND=auto ZCSHIM_LEND_MIN=2M ZCSHIM_HOST_MIN=2M; bare it checks the model itself. Each thread has
// blocks, buffers and a stream of its own, and knows what every place of them must hold. `gpu`: also kernels that
// follow pointers in memory or count from far before a buffer, which the driver in software cannot translate.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <csignal>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include "tests/torture/lend_kernels.cuh"

typedef unsigned long long word;
static const size_t CELL = 64 << 10, MIB = 1 << 20;
static bool is_gpu, alone;
static const int BLOCKS = 3, BUFFERS = 3, INDICES = 32;

static void fail(const char *what, long step, word is, word should)
{
    fprintf(stderr, "lend torture: %s at step %ld: %llx instead of %llx\n", what, step, is, should);
    _exit(1);
}
#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "lend torture: step %ld, line %d: %s\n", step, __LINE__, cudaGetErrorName(error_));        \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

// What is watched of memory: three words of each cell.
struct model {
    size_t bytes = 0;
    std::vector<word> known;
    std::vector<bool> is_known;
    size_t places() const { return bytes / CELL * 3; }
    static size_t place_word(size_t place)
    {
        static const size_t in_cell[3] = {0, 4001, 8191};
        return place / 3 * (CELL / 8) + in_cell[place % 3];
    }
    void resize(size_t to)
    {
        bytes = to;
        known.resize(places());
        is_known.resize(places(), false);
    }
    void forget()
    {
        known.assign(places(), 0);
        is_known.assign(places(), false);
    }
    void set(size_t place, word value)
    {
        known[place] = value;
        is_known[place] = true;
    }
    void take(const model &from, size_t place)
    {
        known[place] = from.known[place];
        is_known[place] = from.is_known[place];
    }
};

struct block : model {
    word *memory = nullptr;
};
struct buffer : model {
    word *memory = nullptr;
};

struct torture {
    block blocks[BLOCKS];
    buffer buffers[BUFFERS];
    cudaStream_t stream;
    word *result, **list;
    unsigned *index;
    int *open;
    uint64_t state;
    long step = 0;
    int files[2];

    uint64_t dice()
    {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return state * 0x2545f4914f6cdd1dull >> 16;
    }
    size_t below(size_t n) { return dice() % n; }
    size_t size() { return (2 + below(3)) * MIB + (below(3) ? 0 : 3 * CELL); }

    void start(int thread, uint64_t seed)
    {
        state = seed * 1000003 + thread * 77777 + 1;
        CUDA(cudaStreamCreate(&stream));
        CUDA(cudaMalloc((void **)&result, INDICES * sizeof *result));
        CUDA(cudaMalloc((void **)&index, INDICES * sizeof *index));
        CUDA(cudaMalloc((void **)&list, sizeof *list));
        CUDA(cudaHostAlloc((void **)&open, sizeof *open, cudaHostAllocMapped));
        if (pipe2(files, O_CLOEXEC) != 0) _exit(2);
    }

    void check_host(block &b, size_t place)
    {
        if (!b.is_known[place]) return;
        word is = b.memory[model::place_word(place)];
        if (is != b.known[place]) fail("host memory", step, is, b.known[place]);
    }

    void host_new(block &b)
    {
        size_t bytes = size();
        bool zeroed = below(4) == 0;
        b.memory = (word *)(zeroed ? calloc(1, bytes) : malloc(bytes));
        b.resize(bytes);
        b.forget();
        for (size_t p = 0; p < b.places(); p++) {
            if (!zeroed && below(4)) b.memory[model::place_word(p)] = dice(), b.set(p, b.memory[model::place_word(p)]);
            if (zeroed) b.set(p, 0);
        }
    }

    void host_step(block &b)
    {
        if (!b.memory) return host_new(b);
        size_t place = below(b.places()), at = model::place_word(place);
        switch (below(16)) {
        case 0:
            free(b.memory);
            b.memory = nullptr;
            return;
        case 1: {
            size_t bytes = size();
            b.memory = (word *)realloc(b.memory, bytes);
            b.resize(bytes);
            break;
        }
        case 2: { // a system call writes
            word value = dice();
            if (write(files[1], &value, 8) != 8 || read(files[0], &b.memory[at], 8) != 8) _exit(2);
            b.set(place, value);
            break;
        }
        case 3: { // a system call reads
            word value;
            if (write(files[1], &b.memory[at], 8) != 8 || read(files[0], &value, 8) != 8) _exit(2);
            if (b.is_known[place] && value != b.known[place]) fail("write(2)", step, value, b.known[place]);
            break;
        }
        case 4: { // pages are discarded
            uintptr_t cell = (uintptr_t)b.memory + place / 3 * CELL, page = (cell + 4095) / 4096 * 4096;
            if (below(4) || page != cell) break;
            madvise((void *)page, CELL, MADV_DONTNEED);
            for (size_t p = place / 3 * 3; p < place / 3 * 3 + 3; p++) b.set(p, 0);
            break;
        }
        case 5:
            for (size_t p = 0; p < b.places(); p++) check_host(b, p);
            break;
        case 6:
        case 7:
        case 8:
        case 9:
            check_host(b, place);
            break;
        default:
            b.memory[at] = dice();
            b.set(place, b.memory[at]);
        }
    }

    void device_new(buffer &d)
    {
        size_t bytes = size();
        for (block &b : blocks)
            if (b.memory && below(4)) bytes = b.bytes;
        CUDA(cudaMalloc((void **)&d.memory, bytes));
        d.resize(bytes);
        d.forget();
    }

    // The same range of a block and a buffer, mostly all of it.
    void range(size_t bytes, size_t *first, size_t *count)
    {
        size_t cells = bytes / CELL;
        *first = below(4) ? 0 : below(cells);
        *count = *first ? 1 + below(cells - *first) : cells;
    }

    void copy_step(block &b, buffer &d)
    {
        size_t first, count, bytes = b.bytes < d.bytes ? b.bytes : d.bytes;
        range(bytes, &first, &count);
        bool async = below(4) == 0, up = below(4) != 0;
        char *host = (char *)b.memory + first * CELL, *device = (char *)d.memory + first * CELL;
        cudaMemcpyKind kind = up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
        if (async)
            CUDA(cudaMemcpyAsync(up ? device : host, up ? host : device, count * CELL, kind, stream));
        else
            CUDA(cudaMemcpy(up ? device : host, up ? host : device, count * CELL, below(2) ? kind : cudaMemcpyDefault));
        for (size_t p = first * 3; p < (first + count) * 3; p++) {
            if (up)
                d.take(b, p);
            else
                b.take(d, p);
        }
        if (!up && async) CUDA(cudaStreamSynchronize(stream));
    }

    void read_back(unsigned count, const word *expected, const std::vector<bool> &known, const char *what)
    {
        word values[INDICES];
        CUDA(cudaMemcpy(values, result, count * sizeof *values, cudaMemcpyDeviceToHost));
        for (unsigned i = 0; i < count; i++)
            if (known[i] && values[i] != expected[i]) fail(what, step, values[i], expected[i]);
    }

    void kernel_step(buffer &d, buffer &other)
    {
        unsigned places[INDICES], words[INDICES], count = 1 + (unsigned)below(INDICES);
        size_t most = d.places() < other.places() ? d.places() : other.places();
        for (unsigned i = 0; i < count; i++) { // different ones
            places[i] = (unsigned)(most / INDICES * i + below(most / INDICES));
            words[i] = (unsigned)model::place_word(places[i]);
        }
        CUDA(cudaMemcpy(index, words, count * sizeof *words, cudaMemcpyHostToDevice));
        cudaStream_t in = below(2) ? stream : 0;
        word value = dice(), expected[INDICES], sum = 0;
        std::vector<bool> known(INDICES), all(1, true);
        for (unsigned i = 0; i < count; i++) {
            expected[i] = d.known[places[i]];
            known[i] = d.is_known[places[i]];
            sum += expected[i];
            if (!known[i]) all[0] = false;
        }
        switch (below(12)) {
        case 0:
            torture_sum<<<1, 1, 0, in>>>(result, d.memory, index, count);
            return read_back(1, &sum, all, "a sum");
        case 1:
            torture_scatter<<<1, INDICES, 0, in>>>(d.memory, index, count, value);
            for (unsigned i = 0; i < count; i++) d.set(places[i], value + i);
            return;
        case 2:
            if (&d == &other) return;
            torture_both<<<1, INDICES, 0, in>>>(other.memory, d.memory, index, count);
            for (unsigned i = 0; i < count; i++) other.take(d, places[i]);
            return;
        case 3:
            if (!is_gpu || below(4)) return;
            if (below(2)) {
                torture_scatter_after<<<1, INDICES, 0, in>>>(d.memory - MIB / 8, index, count, value, MIB / 8);
            } else {
                CUDA(cudaMemcpy(list, &d.memory, sizeof d.memory, cudaMemcpyHostToDevice));
                torture_chase<<<1, INDICES, 0, in>>>(list, index, count, value);
            }
            for (unsigned i = 0; i < count; i++) d.set(places[i], value + i);
            return;
        case 4: { // written while the GPU is held up by the program itself
            if (!alone || below(4))
                return; // with other threads, a call of theirs may hold up the driver until the GPU is idle
            *(volatile int *)open = 0;
            torture_hold<<<1, 1, 0, stream>>>(open);
            torture_gather<<<1, INDICES, 0, stream>>>(result, d.memory, index, count);
            torture_scatter<<<1, INDICES, 0, stream>>>(d.memory, index, count, value);
            *(volatile int *)open = 1;
            read_back(count, expected, known, "a gather before a write");
            for (unsigned i = 0; i < count; i++) d.set(places[i], value + i);
            return;
        }
        case 5:
        case 6: {
            torture_pair pair = {(int)count, d.memory, result};
            torture_gather_pair<<<1, INDICES, 0, in>>>(pair, index);
            return read_back(count, expected, known, "a gather by structure");
        }
        default:
            torture_gather<<<1, INDICES, 0, in>>>(result, d.memory, index, count);
            if (below(3)) return read_back(count, expected, known, "a gather");
        }
    }

    void device_step(buffer &d)
    {
        if (!d.memory) return device_new(d);
        buffer &other = buffers[below(BUFFERS)];
        block &b = blocks[below(BLOCKS)];
        switch (below(32)) {
        case 0:
            CUDA(cudaFree(d.memory));
            d.memory = nullptr;
            return;
        case 1: {
            size_t cell = below(d.bytes / CELL);
            CUDA(cudaMemset((char *)d.memory + cell * CELL, 0x5a, CELL));
            for (size_t p = cell * 3; p < cell * 3 + 3; p++) d.set(p, 0x5a5a5a5a5a5a5a5aull);
            return;
        }
        case 2: {
            if (!other.memory || &other == &d) return;
            size_t bytes = d.bytes < other.bytes ? d.bytes : other.bytes;
            CUDA(cudaMemcpy(other.memory, d.memory, bytes, cudaMemcpyDeviceToDevice));
            for (size_t p = 0; p < bytes / CELL * 3; p++) other.take(d, p);
            return;
        }
        case 3:
        case 4:
        case 5:
        case 6:
        case 7:
        case 8:
        case 9:
        case 10:
        case 11:
            if (b.memory) copy_step(b, d);
            return;
        case 12:
            CUDA(below(2) ? cudaDeviceSynchronize() : cudaStreamSynchronize(stream));
            return;
        default:
            kernel_step(d, other.memory ? other : d);
        }
    }

    void fork_step()
    {
        pid_t child = fork();
        if (child == 0) {
            for (block &b : blocks)
                for (size_t p = 0; b.memory && p < b.places(); p++)
                    if (b.is_known[p] && b.memory[model::place_word(p)] != b.known[p]) _exit(3);
            _exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status) fail("a forked child's memory", step, (word)status, 0);
    }

    void run(int thread, uint64_t seed, long steps, bool forks)
    {
        start(thread, seed);
        for (step = 0; step < steps; step++) {
            if (forks && below(2000) == 0) fork_step();
            if (below(2))
                host_step(blocks[below(BLOCKS)]);
            else
                device_step(buffers[below(BUFFERS)]);
        }
        for (block &b : blocks)
            for (size_t p = 0; b.memory && p < b.places(); p++) check_host(b, p);
        CUDA(cudaDeviceSynchronize());
        for (block &b : blocks) free(b.memory);
        for (buffer &d : buffers) CUDA(cudaFree(d.memory));
    }
};

static std::vector<torture> states;
static void terminated(int)
{
    static std::atomic<bool> told;
    if (told.exchange(true)) return; // timeout sends the signal twice, and the second finds another thread
    for (int times = 0; times < 2; times++) {
        for (torture &state : states) dprintf(2, "lend torture: terminated at step %ld\n", state.step);
        struct timespec second = {1, 0};
        if (!times) nanosleep(&second, nullptr);
    }
    _exit(124);
}

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 20000;
    int count = argc > 2 ? atoi(argv[2]) : 2;
    uint64_t seed = argc > 3 ? strtoull(argv[3], nullptr, 10) : 1;
    is_gpu = argc > 4 && strcmp(argv[4], "gpu") == 0;
    alone = count == 1;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); // loading a kernel may wait for the GPU, which may wait for us
    std::vector<std::thread> threads;
    states.resize(count);
    signal(SIGTERM, terminated);
    long step = 0;
    CUDA(cudaFree(nullptr));
    for (int i = 0; i < count; i++) threads.emplace_back([&, i] { states[i].run(i, seed, steps / count, true); });
    for (std::thread &thread : threads) thread.join();
    printf("lend torture: %ld steps in %d threads, seed %llu: passed\n", steps, count, (word)seed);
    return 0;
}

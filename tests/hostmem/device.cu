// Large host blocks on a driver: device MODE. Prints what it sees; the same lines are expected bare and under the
// library.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <cuda_runtime.h>

static const size_t MIB = 1 << 20;
#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            printf("%s: %s\n", #call, cudaGetErrorName(error_));                                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void fill(char *memory, size_t bytes, size_t seed)
{
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        size_t word = (i + seed) * 0x9e3779b97f4a7c15ull;
        memcpy(memory + i, &word, 8);
    }
}
static char *take(size_t bytes, size_t seed)
{
    char *block = static_cast<char *>(malloc(bytes));
    fill(block, bytes, seed);
    return block;
}
static char *device(size_t bytes)
{
    char *memory;
    CUDA(cudaMalloc(reinterpret_cast<void **>(&memory), bytes));
    return memory;
}
// What the device holds, through memory that the program pinned.
static bool device_has(const char *device, const char *expected, size_t bytes)
{
    static char *pinned;
    static size_t room;
    if (bytes > room) {
        if (pinned) CUDA(cudaFreeHost(pinned));
        CUDA(cudaMallocHost(reinterpret_cast<void **>(&pinned), room = bytes));
    }
    CUDA(cudaMemcpy(pinned, device, bytes, cudaMemcpyDeviceToHost));
    return memcmp(pinned, expected, bytes) == 0;
}

// A stream that does not go on until it is let go.
struct Held {
    std::atomic<bool> open{false};
    cudaStream_t stream;
    Held() { CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
    void hold()
    {
        open = false;
        CUDA(cudaLaunchHostFunc(
            stream,
            [](void *self) {
                while (!static_cast<Held *>(self)->open) usleep(100);
            },
            this));
    }
    void let_go() { open = true; }
    void let_go_in(int ms)
    {
        std::thread([this, ms] {
            usleep(ms * 1000);
            let_go();
        }).detach();
    }
};

static void mode_forms()
{
    size_t bytes = 40 * MIB;
    char *host = take(bytes, 1), *d = device(bytes), *back = take(bytes, 9);
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    for (int round = 0; round < 3; round++) {
        fill(host, bytes, round);
        CUDA(cudaMemcpy(d, host, bytes, cudaMemcpyHostToDevice));
        printf("whole %d", device_has(d, host, bytes));
        CUDA(cudaMemcpy(back, d, bytes, cudaMemcpyDefault));
        printf(" back %d", memcmp(back, host, bytes) == 0);
        memset(back, 0, bytes);
        CUDA(cudaMemcpyAsync(back, d, bytes, cudaMemcpyDeviceToHost, stream));
        printf(" async %d\n", memcmp(back, host, bytes) == 0);
        bool good = true;
        char *edge = reinterpret_cast<char *>((reinterpret_cast<size_t>(host) + 8 * MIB) & ~(2 * MIB - 1));
        for (long from : {-4097L, -4096L, -63L, -1L, 0L, 1L})
            for (size_t length : {size_t(1), size_t(64), size_t(5000), size_t(70000), 3 * MIB}) {
                CUDA(cudaMemsetAsync(d, 0, length, stream));
                CUDA(cudaMemcpyAsync(d, edge + from, length, cudaMemcpyHostToDevice, stream));
                CUDA(cudaStreamSynchronize(stream));
                good &= device_has(d, edge + from, length);
                CUDA(cudaMemcpy(back, d, length, cudaMemcpyDeviceToHost));
                good &= memcmp(back, edge + from, length) == 0;
            }
        printf("edges %d\n", good);
        CUDA(cudaMemset(d, 0, bytes));
        CUDA(cudaMemcpy2D(d, 8192, host + 4096 * 3 + 5, 12288, 7001, 3000, cudaMemcpyHostToDevice));
        CUDA(cudaMemcpy2DAsync(back, 9000, d, 8192, 7001, 3000, cudaMemcpyDeviceToHost, stream));
        for (size_t y = 0; y < 3000; y++) good &= memcmp(back + y * 9000, host + 4096 * 3 + 5 + y * 12288, 7001) == 0;
        cudaMemcpy3DParms box = {};
        box.srcPtr = make_cudaPitchedPtr(host, 4096, 3000, 100);
        box.dstPtr = make_cudaPitchedPtr(d, 3072, 3000, 80);
        box.extent = make_cudaExtent(3000, 80, 90);
        box.kind = cudaMemcpyHostToDevice;
        CUDA(cudaMemcpy3D(&box));
        box.srcPtr = make_cudaPitchedPtr(d, 3072, 3000, 80);
        box.dstPtr = make_cudaPitchedPtr(back, 4096, 3000, 100);
        box.kind = cudaMemcpyDeviceToHost;
        CUDA(cudaMemcpy3D(&box));
        for (size_t z = 0; z < 90; z++)
            for (size_t y = 0; y < 80; y++)
                good &= memcmp(back + z * 409600 + y * 4096, host + z * 409600 + y * 4096, 3000) == 0;
        printf("pitched %d\n", good);
    }
    printf("last error %s\n", cudaGetErrorName(cudaGetLastError()));
}

static void mode_order()
{
    size_t bytes = 32 * MIB;
    char *host = take(bytes, 1), *d = device(bytes);
    std::vector<char> old(bytes);
    Held held;
    for (int round = 0; round < 3; round++) {
        CUDA(cudaMemcpy(d, host, bytes, cudaMemcpyHostToDevice));
        for (size_t length : {size_t(4), size_t(4096), size_t(65536), MIB, 2 * MIB}) {
            fill(host + MIB, length, length + round);
            memcpy(old.data(), host + MIB, length);
            held.hold();
            CUDA(cudaMemcpyAsync(d + 5, host + MIB, length, cudaMemcpyHostToDevice, held.stream)); // hangs if it waits
            memset(host + MIB, 0xee, length);
            held.let_go();
            CUDA(cudaStreamSynchronize(held.stream));
            printf("behind a busy stream %zu: old bytes %d\n", length, device_has(d + 5, old.data(), length));
        }
        for (size_t rows : {size_t(3), size_t(40), size_t(300)}) {
            fill(host + MIB, 2 * MIB, rows + round);
            memcpy(old.data(), host + MIB, 2 * MIB);
            held.hold();
            held.let_go_in(10);
            CUDA(cudaMemcpy2DAsync(d, 6000, host + MIB, 6500, 6000, rows, cudaMemcpyHostToDevice, held.stream));
            memset(host + MIB, 0xee, 2 * MIB);
            CUDA(cudaStreamSynchronize(held.stream));
            bool good = true;
            for (size_t y = 0; y < rows; y++) good &= device_has(d + y * 6000, old.data() + y * 6500, 6000);
            printf("pitched behind a busy stream %zu: old bytes %d\n", rows, good);
        }
        fill(host, bytes, round + 77);
        memcpy(old.data(), host, bytes);
        held.hold();
        held.let_go_in(30);
        CUDA(cudaMemcpyAsync(d, host, bytes, cudaMemcpyHostToDevice, held.stream));
        memset(host, 0xdd, bytes);
        CUDA(cudaStreamSynchronize(held.stream));
        printf("large behind a busy stream: old bytes %d\n", device_has(d, old.data(), bytes));
        for (size_t length : {size_t(4), MIB, bytes}) {
            held.hold();
            held.let_go_in(20);
            memset(host, 0, length);
            CUDA(cudaMemcpyAsync(host, d, length, cudaMemcpyDeviceToHost, held.stream));
            printf("to the host %zu: arrived %d\n", length, memcmp(host, old.data(), length) == 0);
        }
    }
}

// Pageable memory that is not a large block of malloc's: every form, both directions, synchronous and not.
static bool forms_arrive(char *host, size_t bytes, char *d, cudaStream_t stream)
{
    std::vector<char> expected(bytes);
    bool good = true;
    for (int async = 0; async < 2; async++) {
        fill(host, bytes, bytes + async);
        memcpy(expected.data(), host, bytes);
        CUDA(async ? cudaMemcpyAsync(d, host, bytes, cudaMemcpyHostToDevice, stream)
                   : cudaMemcpy(d, host, bytes, cudaMemcpyDefault));
        memset(host, 0, bytes); // the source is the program's again
        CUDA(cudaStreamSynchronize(stream));
        good &= device_has(d, expected.data(), bytes);
        CUDA(async ? cudaMemcpyAsync(host, d, bytes, cudaMemcpyDeviceToHost, stream)
                   : cudaMemcpy(host, d, bytes, cudaMemcpyDefault));
        good &= memcmp(host, expected.data(), bytes) == 0;
        size_t pitch = 6007, width = 5003, rows = bytes / pitch;
        CUDA(cudaMemset(d, 1, bytes));
        CUDA(cudaDeviceSynchronize()); // a non-blocking stream would not wait for it
        CUDA(async ? cudaMemcpy2DAsync(d, width, host, pitch, width, rows, cudaMemcpyHostToDevice, stream)
                   : cudaMemcpy2D(d, width, host, pitch, width, rows, cudaMemcpyHostToDevice));
        memset(host, 0, bytes);
        CUDA(async ? cudaMemcpy2DAsync(host, pitch, d, width, width, rows, cudaMemcpyDeviceToHost, stream)
                   : cudaMemcpy2D(host, pitch, d, width, width, rows, cudaMemcpyDeviceToHost));
        for (size_t y = 0; y < rows; y++) {
            good &= memcmp(host + y * pitch, expected.data() + y * pitch, width) == 0;
            if (y + 1 < rows) good &= host[y * pitch + width] == 0 && host[(y + 1) * pitch - 1] == 0;
        }
        size_t slices = bytes / (600 * 1000);
        cudaMemcpy3DParms box = {};
        box.extent = make_cudaExtent(500, 900, slices);
        box.kind = cudaMemcpyHostToDevice;
        memcpy(host, expected.data(), bytes);
        box.srcPtr = make_cudaPitchedPtr(host, 600, 500, 1000);
        box.dstPtr = make_cudaPitchedPtr(d, 512, 500, 900);
        CUDA(async ? cudaMemcpy3DAsync(&box, stream) : cudaMemcpy3D(&box));
        memset(host, 0, bytes);
        box.kind = cudaMemcpyDeviceToHost;
        box.srcPtr = make_cudaPitchedPtr(d, 512, 500, 900);
        box.dstPtr = make_cudaPitchedPtr(host, 600, 500, 1000);
        CUDA(async ? cudaMemcpy3DAsync(&box, stream) : cudaMemcpy3D(&box));
        for (size_t z = 0; z < slices; z++)
            for (size_t y = 0; y < 900; y++)
                good &= memcmp(host + (z * 1000 + y) * 600, expected.data() + (z * 1000 + y) * 600, 500) == 0;
    }
    return good;
}

static void __attribute__((noinline)) forms_on_the_stack(char *d, cudaStream_t stream)
{
    static const size_t bytes = 3 * MIB;
    char host[bytes];
    printf("stack %d\n", forms_arrive(host, bytes, d, stream));
}

static void mode_foreign()
{
    static char in_the_program[24 * MIB];
    size_t bytes = 40 * MIB + 4321;
    char *d = device(48 * MIB), name[] = "/tmp/zcshim-foreign-XXXXXX";
    cudaStream_t streams[2];
    CUDA(cudaStreamCreate(&streams[0]));
    CUDA(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
    int file = mkstemp(name);
    unlink(name);
    if (ftruncate(file, 48 * MIB)) exit(9);
    for (cudaStream_t stream : streams) {
        for (int flags : {MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED}) {
            bool named = !(flags & MAP_ANONYMOUS);
            char *map = static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, named ? file : -1, 0));
            printf("mapped %d\n", forms_arrive(map, bytes, d, stream));
            munmap(map, bytes);
        }
        char *small = static_cast<char *>(malloc(3 * MIB + 100));
        printf("below the limit %d\n", forms_arrive(small, 3 * MIB + 100, d, stream));
        free(small);
        printf("static %d\n", forms_arrive(in_the_program, sizeof in_the_program, d, stream));
        forms_on_the_stack(d, stream);
        char *fresh =
            static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        CUDA(cudaMemset(d, 5, bytes));
        CUDA(cudaMemcpy(fresh, d, bytes, cudaMemcpyDeviceToHost));
        printf("never touched %d\n", fresh[0] == 5 && fresh[bytes / 2] == 5 && fresh[bytes - 1] == 5);
        munmap(fresh, bytes);
    }
    close(file);
    printf("last error %s\n", cudaGetErrorName(cudaGetLastError()));
}

static const char *kind_of(void *address)
{
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) return "error";
    return attributes.type == cudaMemoryTypeUnregistered ? "pageable"
           : attributes.type == cudaMemoryTypeHost       ? "host"
                                                         : "other";
}
static void mode_answers()
{
    size_t bytes = 32 * MIB;
    char *host = take(bytes, 1), *d = device(bytes);
    for (int i = 0; i < 3; i++) CUDA(cudaMemcpy(d, host, bytes, cudaMemcpyHostToDevice));
    unsigned flags = 0;
    void *mapped = nullptr;
    printf("%s %s\n", kind_of(host), kind_of(host + 17 * MIB));
    printf("flags %s\n", cudaGetErrorName(cudaHostGetFlags(&flags, host)));
    printf("device pointer %s\n", cudaGetErrorName(cudaHostGetDevicePointer(&mapped, host, 0)));
    printf("unregister %s\n", cudaGetErrorName(cudaHostUnregister(host)));
    cudaGetLastError();
    char *page = reinterpret_cast<char *>((reinterpret_cast<size_t>(host) + 4095) & ~size_t(4095));
    printf("register %s\n", cudaGetErrorName(cudaHostRegister(page, 9 * MIB, 0)));
    printf("again %s\n", cudaGetErrorName(cudaHostRegister(page, 9 * MIB, 0)));
    printf("%s %s\n", kind_of(page + 4096), kind_of(page + 20 * MIB));
    CUDA(cudaMemcpy(d, page, 8 * MIB, cudaMemcpyHostToDevice));
    printf("arrived %d\n", device_has(d, page, 8 * MIB));
    printf("unregister %s %s\n", cudaGetErrorName(cudaHostUnregister(page)), kind_of(page));
    cudaGetLastError();
    for (int i = 0; i < 2; i++) CUDA(cudaMemcpy(d, host, bytes, cudaMemcpyHostToDevice));
    printf("arrived %d %s\n", device_has(d, host, bytes), kind_of(page));
    printf("too long %s\n", cudaGetErrorName(cudaMemcpy(d + 20 * MIB, host, bytes, cudaMemcpyHostToDevice)));
    cudaGetLastError();
    free(host);
    printf("last error %s\n", cudaGetErrorName(cudaGetLastError()));
}

static void mode_fork()
{
    size_t bytes = 32 * MIB;
    char *host = take(bytes, 1), *d = device(bytes);
    for (int round = 0; round < 3; round++) {
        CUDA(cudaMemcpy(d, host, bytes, cudaMemcpyHostToDevice));
        pid_t child = fork();
        if (!child) {
            char *expected = take(bytes, round == 0 ? 1 : round + 10);
            bool good = memcmp(host, expected, bytes) == 0;
            memset(host, 0, bytes);
            free(host);
            free(expected);
            char *more = static_cast<char *>(calloc(1, bytes));
            good &= more[bytes / 2] == 0;
            _exit(good ? 0 : 1);
        }
        fill(host, bytes, round + 11);
        CUDA(cudaMemcpy(d, host, bytes, cudaMemcpyHostToDevice));
        int status;
        waitpid(child, &status, 0);
        printf("child %d, parent's writes seen %d\n", status, device_has(d, host, bytes));
    }
}

static void mode_graph()
{
    size_t bytes = 32 * MIB;
    char *host = take(bytes, 1), *d = device(bytes);
    for (int i = 0; i < 2; i++) CUDA(cudaMemcpy(d, host, bytes, cudaMemcpyHostToDevice));
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemcpyAsync(d, host, bytes, cudaMemcpyHostToDevice, stream));
    CUDA(cudaMemcpyAsync(host + 16 * MIB, d, MIB, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 3; round++) {
        fill(host, bytes, round + 50);
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        printf("replayed %d %d\n", device_has(d, host, 16 * MIB), memcmp(host, host + 16 * MIB, MIB) == 0);
        CUDA(cudaMemcpy(d, host, bytes, cudaMemcpyHostToDevice));
    }
}

static void mode_life()
{
    bool good = true;
    char *d = device(64 * MIB);
    for (int i = 0; i < 60; i++) {
        size_t bytes = (4 + i * 7 % 40) * MIB + i * 1000;
        char *block = i % 3 ? static_cast<char *>(malloc(bytes)) : static_cast<char *>(calloc(bytes, 1));
        if (i % 3 == 0)
            for (size_t k = 0; k < bytes; k += 4096) good &= block[k] == 0;
        fill(block, bytes, i);
        CUDA(cudaMemcpy(d, block, bytes, cudaMemcpyHostToDevice));
        if (i % 5 == 0) {
            block = static_cast<char *>(realloc(block, bytes + 9 * MIB));
            fill(block + bytes / 8 * 8, 9 * MIB, i);
            CUDA(cudaMemcpy(block, d, bytes, cudaMemcpyDeviceToHost));
        }
        if (i % 7 == 0) {
            madvise(reinterpret_cast<char *>((reinterpret_cast<size_t>(block) + MIB) & ~size_t(4095)), MIB,
                    MADV_DONTNEED);
            CUDA(cudaMemcpy(d, block, bytes, cudaMemcpyHostToDevice));
        }
        good &= device_has(d, block, bytes);
        free(block);
    }
    printf("lives %d\n", good);
    char *block = take(32 * MIB, 3);
    CUDA(cudaMemcpy(d, block, 32 * MIB, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceReset());
    printf("reset, block unchanged %d\n", block[8] == take(32 * MIB, 3)[8]);
    CUDA(cudaMalloc(reinterpret_cast<void **>(&d), 64 * MIB));
    std::vector<char> back(32 * MIB);
    for (int i = 0; i < 3; i++) {
        CUDA(cudaMemcpy(d, block, 32 * MIB, cudaMemcpyHostToDevice));
        CUDA(cudaMemcpy(back.data(), d, 32 * MIB, cudaMemcpyDeviceToHost));
        printf("after reset %d\n", memcmp(back.data(), block, 32 * MIB) == 0);
    }
    free(block);
}

static void mode_threads()
{
    std::atomic<int> bad{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++)
        threads.emplace_back([t, &bad] {
            size_t bytes = 24 * MIB;
            bool mapped = t & 1;
            char *host = mapped ? static_cast<char *>(
                                      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
                                : static_cast<char *>(malloc(bytes));
            std::vector<char> back(bytes);
            char *d = device(bytes);
            cudaStream_t stream;
            CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            for (int i = 0; i < 12; i++) {
                fill(host, bytes, i * 8 + t);
                CUDA(cudaMemcpyAsync(d, host, bytes, cudaMemcpyHostToDevice, stream));
                char first = host[1];
                host[1] = 0;
                CUDA(cudaMemcpyAsync(back.data(), d, bytes, cudaMemcpyDeviceToHost, stream));
                host[1] = first;
                bad += memcmp(back.data(), host, bytes) != 0;
            }
        });
    for (auto &thread : threads) thread.join();
    printf("bad %d\n", bad.load());
}

// How a copy from memory that cannot be read ends is the driver's affair: the exit status is compared.
static void mode_cut()
{
    char name[] = "/tmp/zcshim-cut-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    if (ftruncate(file, 64 * MIB)) exit(9);
    char *map = static_cast<char *>(mmap(nullptr, 64 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)),
         *d = device(64 * MIB);
    fill(map, 64 * MIB, 1);
    for (int i = 0; i < 2; i++) CUDA(cudaMemcpy(d, map, 64 * MIB, cudaMemcpyHostToDevice));
    printf("whole %d\n", device_has(d, map, 64 * MIB));
    fflush(stdout);
    if (ftruncate(file, 40 * MIB)) exit(9);
    printf("cut %s\n", cudaGetErrorName(cudaMemcpy(d, map, 64 * MIB, cudaMemcpyHostToDevice)));
}
static void mode_hole()
{
    char *map =
             static_cast<char *>(mmap(nullptr, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
         *d = device(64 * MIB);
    fill(map, 64 * MIB, 1);
    for (int i = 0; i < 2; i++) CUDA(cudaMemcpy(d, map, 64 * MIB, cudaMemcpyHostToDevice));
    munmap(map + 40 * MIB, 4 * MIB);
    printf("hole\n");
    fflush(stdout);
    printf("ends %s\n", cudaGetErrorName(cudaMemcpy(d, map, 64 * MIB, cudaMemcpyHostToDevice)));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    CUDA(cudaFree(nullptr));
    const struct {
        const char *name;
        void (*run)();
    } modes[] = {{"forms", mode_forms}, {"order", mode_order},    {"answers", mode_answers}, {"fork", mode_fork},
                 {"graph", mode_graph}, {"life", mode_life},      {"threads", mode_threads}, {"cut", mode_cut},
                 {"hole", mode_hole},   {"foreign", mode_foreign}};
    for (auto &mode : modes)
        if (argc > 1 && !strcmp(argv[1], mode.name)) return mode.run(), 0;
    return 2;
}

// Pageable copies as a program meets them. bench PART...: each part prints lines "name value"; times in us, bandwidths
// in GB/s. The same program is run bare and under the library; what is pinned by hand is measured beside it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>
#include <cuda_runtime.h>

static const size_t MIB = 1 << 20;
static char *device;
static double scale = 1; // of sizes and repetitions, for short runs

static double now_us()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
static double median(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v.empty() ? 0 : v[v.size() / 2];
}
static void must(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return;
    fprintf(stderr, "bench: %s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}
static void report(const char *name, size_t mib, double value)
{
    if (mib)
        printf("%s_%zuM %.4f\n", name, mib, value);
    else
        printf("%s %.4f\n", name, value);
}
static int times(int n) { return std::max(2, static_cast<int>(n * scale)); }

static double copy_us(bool in, char *host, size_t bytes)
{
    double began = now_us();
    must(
        cudaMemcpy(in ? device : host, in ? host : device, bytes, in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost),
        "copy");
    return now_us() - began;
}

// Third and later copies of one block, and the same from memory pinned by the program.
static void part_repeat()
{
    for (size_t mib : {16, 64, 256}) {
        size_t bytes = mib * MIB;
        char *block = static_cast<char *>(malloc(bytes)), *pinned;
        memset(block, 1, bytes);
        must(cudaMallocHost(reinterpret_cast<void **>(&pinned), bytes), "cudaMallocHost");
        memset(pinned, 1, bytes);
        for (bool in : {true, false}) {
            std::vector<double> ours, theirs;
            for (int i = 0; i < times(mib > 64 ? 9 : 21) + 2; i++) {
                double a = copy_us(in, block, bytes), b = copy_us(in, pinned, bytes);
                if (i < 2) continue;
                ours.push_back(a);
                theirs.push_back(b);
            }
            report(in ? "h2d_us" : "d2h_us", mib, median(ours));
            report(in ? "h2d_of_pinned" : "d2h_of_pinned", mib, median(theirs) / median(ours));
        }
        cudaFreeHost(pinned);
        free(block);
    }
}

// The first copy of a block that was filled just before; blocks are kept, so that each is fresh.
static void part_first()
{
    for (size_t mib : {4, 6, 8, 16, 64, 256}) {
        size_t bytes = mib * MIB;
        std::vector<double> samples;
        std::vector<char *> kept;
        for (int i = 0; i < times(mib > 64 ? 3 : 9); i++) {
            char *block = static_cast<char *>(malloc(bytes));
            memset(block, i, bytes);
            samples.push_back(copy_us(true, block, bytes));
            kept.push_back(block);
        }
        report("first_h2d_us", mib, median(samples));
        for (char *block : kept) free(block);
    }
}

static void part_heap()
{
    size_t bytes = 64 * MIB;
    char *memory =
        static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memset(memory, 1, bytes);
    std::vector<double> in, out;
    for (int i = 0; i < times(12); i++) {
        in.push_back(copy_us(true, memory, bytes));
        out.push_back(copy_us(false, memory, bytes));
    }
    report("other_h2d_us", 64, median(in));
    report("other_d2h_us", 64, median(out));
    for (size_t small : {1, 2, 4, 8, 16}) {
        std::vector<double> some;
        for (int i = 0; i < times(15); i++) some.push_back(copy_us(true, memory, small * MIB));
        report("other_h2d_us", small, median(some));
    }
    munmap(memory, bytes);
}

static void part_file()
{
    size_t bytes = static_cast<size_t>(1024 * std::min(scale, 1.0)) * MIB;
    const char *folder = getenv("BENCH_FOLDER") ? getenv("BENCH_FOLDER") : "/tmp";
    char name[512];
    snprintf(name, sizeof name, "%s/zcshim-bench-XXXXXX", folder);
    int file = mkstemp(name);
    if (file < 0) return;
    unlink(name);
    std::vector<char> chunk(16 * MIB, 3);
    for (size_t at = 0; at < bytes; at += chunk.size())
        if (write(file, chunk.data(), chunk.size()) < 0) return;
    std::vector<double> samples;
    for (int i = 0; i < 4; i++) {
        char *map = static_cast<char *>(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0));
        samples.push_back(copy_us(true, map, bytes));
        munmap(map, bytes);
    }
    report("file_h2d_us", 1024, median(samples));
    close(file);
}

static void part_fresh()
{
    size_t bytes = 256 * MIB;
    std::vector<double> samples;
    for (int i = 0; i < times(5); i++) {
        char *memory =
            static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        samples.push_back(copy_us(false, memory, bytes));
        munmap(memory, bytes);
    }
    report("fresh_d2h_us", 256, median(samples));
}

// What a step of a program does that allocates its buffers anew.
static void part_cycle()
{
    size_t bytes = 64 * MIB;
    std::vector<double> samples;
    for (int i = 0; i < times(12) + 2; i++) {
        double began = now_us();
        char *block = static_cast<char *>(malloc(bytes));
        memset(block, i, bytes);
        copy_us(true, block, bytes);
        copy_us(false, block, bytes);
        free(block);
        if (i >= 2) samples.push_back(now_us() - began);
    }
    report("cycle_us", 64, median(samples));
}

// Small and async copies out of a large block must not get slower than pageable ones.
static void part_small()
{
    size_t bytes = 64 * MIB;
    char *block = static_cast<char *>(malloc(bytes));
    memset(block, 1, bytes);
    copy_us(true, block, bytes);
    copy_us(true, block, bytes);
    cudaStream_t stream;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    for (size_t small : {size_t(4), size_t(4096), size_t(65536), MIB, 4 * MIB}) {
        std::vector<double> sync_in, sync_out, async_in, async_out;
        for (int i = 0; i < times(60); i++) {
            char *at = block + static_cast<size_t>(i) % 7 * 8 * MIB + 3 * MIB;
            sync_in.push_back(copy_us(true, at, small));
            sync_out.push_back(copy_us(false, at, small));
            double began = now_us();
            must(cudaMemcpyAsync(device, at, small, cudaMemcpyHostToDevice, stream), "async");
            cudaStreamSynchronize(stream);
            async_in.push_back(now_us() - began);
            began = now_us();
            must(cudaMemcpyAsync(at, device, small, cudaMemcpyDeviceToHost, stream), "async");
            cudaStreamSynchronize(stream);
            async_out.push_back(now_us() - began);
        }
        printf(
            "small_h2d_us_%zu %.4f\nsmall_d2h_us_%zu %.4f\nsmall_async_h2d_us_%zu %.4f\nsmall_async_d2h_us_%zu %.4f\n",
            small, median(sync_in), small, median(sync_out), small, median(async_in), small, median(async_out));
    }
    cudaStreamDestroy(stream);
    free(block);
}

int main(int argc, char **argv)
{
    if (getenv("BENCH_SCALE")) scale = atof(getenv("BENCH_SCALE"));
    must(cudaMalloc(reinterpret_cast<void **>(&device), 1024 * MIB), "cudaMalloc");
    must(cudaMemset(device, 7, 1024 * MIB), "cudaMemset");
    must(cudaDeviceSynchronize(), "synchronize");
    const struct {
        const char *name;
        void (*run)();
    } parts[] = {{"first", part_first}, {"repeat", part_repeat}, {"heap", part_heap},  {"file", part_file},
                 {"fresh", part_fresh}, {"cycle", part_cycle},   {"small", part_small}};
    for (auto &part : parts)
        for (int i = 1; i < argc; i++)
            if (!strcmp(argv[i], part.name)) part.run();
    cudaFree(device);
    return 0;
}

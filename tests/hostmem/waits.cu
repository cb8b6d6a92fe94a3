// Which calls wait for a busy GPU? Times in us, beside a kernel of 100 ms in a non-blocking stream. GPU only; informative.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <cuda_runtime.h>

__global__ void spin(long long clocks)
{
    for (long long began = clock64(); clock64() - began < clocks;) continue;
}
static double now_us()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
int main()
{
    size_t bytes = 16 << 20;
    int khz = 0;
    cudaStream_t stream;
    cudaFree(nullptr);
    cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    char *memory = static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), *pinned, *device;
    memset(memory, 1, bytes);
    spin<<<1, 1, 0, stream>>>(1000);
    cudaStreamSynchronize(stream);
    for (int busy = 0; busy < 2; busy++) {
        double began;
#define TIMED(name, call)                                                                                              \
    if (busy) spin<<<1, 1, 0, stream>>>(100ll * khz);                                                                  \
    began = now_us();                                                                                                  \
    call;                                                                                                              \
    printf("%-40s %s %10.1f us\n", name, busy ? "busy" : "idle", now_us() - began);                                    \
    cudaStreamSynchronize(stream);
        TIMED("register 16 MiB", cudaHostRegister(memory, bytes, cudaHostRegisterPortable))
        TIMED("unregister 16 MiB", cudaHostUnregister(memory))
        TIMED("cudaMallocHost 1 MiB", cudaMallocHost(reinterpret_cast<void **>(&pinned), 1 << 20))
        TIMED("cudaFreeHost 1 MiB", cudaFreeHost(pinned))
        TIMED("cudaMalloc 16 MiB", cudaMalloc(reinterpret_cast<void **>(&device), bytes))
        TIMED("cudaFree 16 MiB", cudaFree(device))
    }
    return 0;
}

/* The simulator's own test: kernels, order, faults, what the CPU may not touch. Runs itself again for each environment.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: not so: %s\n", __func__, __LINE__, #condition);                                             \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)
#define IS(call, code)                                                                                                 \
    do {                                                                                                               \
        int got_ = (int)(call);                                                                                        \
        if (got_ != (int)(code)) {                                                                                     \
            printf("%s:%d: %s is %d, not %d\n", __func__, __LINE__, #call, got_, (int)(code));                         \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)
#define OK(call) IS(call, 0)

/* ---- as nvcc's host code does it ---- */
extern void **__cudaRegisterFatBinary(void *image);
extern void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *,
                                   int *);
extern void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
static char add_stub, scaled_stub, scale_stub;

static void runtime_adds_vectors(void)
{
    void **binary = __cudaRegisterFatBinary(&add_stub);
    __cudaRegisterFunction(binary, &add_stub, NULL, "add", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(binary, &scaled_stub, NULL, "scaled", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(binary, &scale_stub, NULL, "scale", 0, 4, 0, 0);
    float host[1000], *a, *b, *sum;
    int n = 1000;
    for (int i = 0; i < n; i++) host[i] = (float)i;
    OK(cudaMalloc((void **)&a, sizeof host));
    OK(cudaMalloc((void **)&b, sizeof host));
    OK(cudaMalloc((void **)&sum, sizeof host));
    OK(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice));
    void *arguments[] = {&sum, &a, &b, &n};
    OK(cudaLaunchKernel(&add_stub, (dim3){4, 1, 1}, (dim3){256, 1, 1}, arguments, 0, NULL));
    OK(cudaMemcpy(host, sum, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host[999] == 1998 && host[1] == 2);
    int three = 3, five = 5, value;
    OK(cudaMemcpyToSymbol(&scale_stub, &five, 4, 0, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(a, &three, 4, cudaMemcpyHostToDevice));
    OK(cudaLaunchKernel(&scaled_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, (void *[]){&a}, 0, NULL));
    OK(cudaMemcpy(&value, a, 4, cudaMemcpyDeviceToHost));
    EXPECT(value == 15);
    IS(cudaLaunchKernel(&add_stub, (dim3){1, 1, 1}, (dim3){2000, 1, 1}, arguments, 0, NULL),
       cudaErrorInvalidConfiguration);
    IS(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
    IS(cudaGetLastError(), cudaErrorInvalidConfiguration);
    IS(cudaGetLastError(), cudaSuccess);
    IS(cudaMemcpy(a, host, 1 << 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT(!strcmp(cudaGetErrorString(cudaGetLastError()), "invalid argument"));
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaFree(sum));
    IS(cudaFree(sum), cudaErrorInvalidValue);
    cudaGetLastError();
}

/* ---- the driver ---- */
static CUmodule module;

static CUfunction kernel(const char *name)
{
    CUfunction function = NULL;
    if (!module) OK(cuModuleLoadData(&module, ""));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static void launch(const char *name, int blocks, int threads, CUstream stream, void **arguments)
{
    OK(cuLaunchKernel(kernel(name), (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, stream, arguments, NULL));
}

static void barriers_and_atomics_work(void)
{
    CUdeviceptr values, total, sum;
    int host[1024];
    unsigned counted;
    float summed;
    OK(cuMemAlloc(&values, sizeof host));
    OK(cuMemAlloc(&total, 4));
    OK(cuMemAlloc(&sum, 4));
    OK(cuMemsetD32(total, 0, 1));
    OK(cuMemsetD32(sum, 0, 1));
    for (int i = 0; i < 1024; i++) host[i] = i;
    OK(cuMemcpyHtoD(values, host, sizeof host));
    launch("reverse", 4, 256, NULL, (void *[]){&values});
    launch("count", 100, 128, NULL, (void *[]){&total, &sum});
    OK(cuMemcpyDtoH(host, values, sizeof host));
    OK(cuMemcpyDtoH(&counted, total, 4));
    OK(cuMemcpyDtoH(&summed, sum, 4));
    EXPECT(host[0] == 255 && host[255] == 0 && host[256] == 511 && host[1023] == 768);
    EXPECT(counted == 12800 && summed == 6400);
    struct {
        CUdeviceptr at;
        int value;
    } pair = {values + 4, 77};
    launch("store", 1, 1, NULL, (void *[]){&pair});
    OK(cuMemcpyDtoH(host, values, 8));
    EXPECT(host[1] == 77);
    OK(cuMemFree(values));
    OK(cuMemFree(total));
    OK(cuMemFree(sum));
}

static bool cpu_can_touch(CUdeviceptr address)
{
    int ends[2];
    if (pipe(ends)) return false;
    bool touched = write(ends[1], (void *)(uintptr_t)address, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return touched;
}

static volatile int *gate;

static CUstream busy(unsigned flags)
{
    CUstream stream;
    CUdeviceptr open = (CUdeviceptr)(uintptr_t)gate;
    *gate = 0;
    OK(cuStreamCreate(&stream, flags));
    launch("hold", 1, 1, stream, (void *[]){&open});
    return stream;
}

static void *opens_later(void *unused)
{
    usleep(30000);
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    return unused;
}

#define WAITS(call)                                                                                                    \
    ({                                                                                                                 \
        pthread_t opener;                                                                                              \
        pthread_create(&opener, NULL, opens_later, NULL);                                                              \
        OK(call);                                                                                                      \
        bool waited = __atomic_load_n(gate, __ATOMIC_ACQUIRE);                                                         \
        pthread_join(opener, NULL);                                                                                    \
        OK(cuCtxSynchronize());                                                                                        \
        waited;                                                                                                        \
    })

static void streams_wait_for_each_other(void)
{
    CUdeviceptr device;
    void *pinned;
    int host = 5;
    OK(cuMemHostAlloc((void **)&gate, 4096, 0));
    OK(cuMemHostAlloc(&pinned, 4096, 0));
    OK(cuMemAlloc(&device, 4096));
    CUstream stream = busy(CU_STREAM_DEFAULT);
    EXPECT(WAITS(cuMemcpyHtoD(device, &host, 4)));
    OK(cuStreamDestroy(stream));
    stream = busy(CU_STREAM_NON_BLOCKING);
    EXPECT(!WAITS(cuMemcpyHtoD(device, &host, 4)));
    OK(cuStreamDestroy(stream));
    stream = busy(CU_STREAM_NON_BLOCKING);
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    EXPECT(!WAITS(cuMemcpyHtoDAsync(device, pinned, 4, stream)));
    OK(cuStreamDestroy(stream));
    stream = busy(CU_STREAM_NON_BLOCKING);
    EXPECT(!WAITS(cuMemcpyHtoDAsync(device, &host, 4, stream)));
    OK(cuStreamDestroy(stream));
    stream = busy(CU_STREAM_NON_BLOCKING);
    EXPECT(WAITS(cuMemcpyDtoHAsync(&host, device, 4, stream)));
    OK(cuStreamDestroy(stream));
    stream = busy(CU_STREAM_NON_BLOCKING);
    EXPECT(WAITS(cuMemFree(device)));
    OK(cuStreamDestroy(stream));
    OK(cuMemFreeHost(pinned));
}

static void windows_change_their_backing(void)
{
    size_t bytes = 2 << 20;
    CUdeviceptr at;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int value = 0, n = 3;
    OK(cuMemAddressReserve(&at, 2 * bytes, 0, 0, 0));
    OK(cuMemCreate(&handle, bytes, &properties, 0));
    for (int round = 1; round < 4; round++) {
        int *host = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        OK(cuMemHostRegister(host, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
        IS(cuMemHostRegister(host, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        *host = round;
        launch("scaled", 1, 1, NULL, (void *[]){&at});
        OK(cuCtxSynchronize());
        EXPECT(*host == round * 5);
        OK(cuMemHostUnregister(host));
        IS(cuMemHostUnregister(host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        mmap((void *)at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        OK(cuMemMap(at, bytes, 0, handle, 0));
        IS(cuMemcpyHtoD(at, &n, 4), CUDA_ERROR_INVALID_VALUE);
        OK(cuMemSetAccess(at, bytes, &access, 1));
        OK(cuMemcpyHtoD(at, &n, 4));
        launch("scaled", 1, 1, NULL, (void *[]){&at});
        OK(cuMemcpyDtoH(&value, at, 4));
        EXPECT(value == 15 && !cpu_can_touch(at));
        OK(cuMemUnmap(at, bytes));
    }
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(at, 2 * bytes));
}

/* Of what the simulator needs for it. */
static bool pages_can_be_watched(void)
{
    uint64_t entry = 0;
    int map = open("/proc/self/pagemap", O_RDONLY),
        ring = (int)syscall(SYS_io_uring_setup, 1, &(struct io_uring_params){0});
    bool told = pread(map, &entry, sizeof entry, (off_t)((uintptr_t)&entry / 4096 * 8)) == sizeof entry && entry << 9;
    close(map);
    close(ring);
    return told && ring >= 0;
}

/* What the kernel counts as pinned by others, kB. A driver's pins are not counted, and the shim lends nothing else. */
static long pinned_by_others(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long pinned = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmPin: %ld", &pinned) == 1) break;
    if (file) fclose(file);
    return pinned;
}

/* A driver has pinned what was registered: pages that the program puts there later are not the device's. */
static void a_registration_holds_its_pages(void)
{
    enum { BYTES = 16 * 4096, AT = 5 * 4096 };
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (!pages_can_be_watched()) {
        puts("sim: pages of registrations are not watched here, for want of io_uring or CAP_SYS_ADMIN");
        return;
    }
    for (int change = 0; change < 3; change++) {
        CUcontext context;
        CUdeviceptr device;
        char *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
        char *other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
        OK(cuCtxCreate(&context, NULL, 0, 0));
        OK(cuMemAlloc(&device, BYTES));
        OK(cuMemHostRegister(pages, BYTES, 0));
        EXPECT(pinned_by_others() == 0);
        pid_t child = fork();
        if (!child) _exit(pages[AT]);
        memset(pages, 2, BYTES); /* the parent keeps the pages, the child has copies */
        waitpid(child, NULL, 0);
        OK(cuMemcpyHtoD(device, pages, BYTES));
        if (change == 0) madvise(pages + AT, 4096, MADV_DONTNEED);
        if (change == 1) mmap(pages + AT, 4096, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
        if (change == 2) mremap(other, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, pages + AT);
        memset(pages + AT, 3, 4096);
        OK(cuMemcpyHtoD(device, pages, AT));
        OK(cuMemcpyDtoH(pages + AT + 4096, device, BYTES - AT - 4096));
        IS(cuMemcpyHtoD(device, pages, BYTES), CUDA_ERROR_ILLEGAL_ADDRESS);
        OK(cuCtxDestroy(context));
        munmap(pages, BYTES);
        if (change != 2) munmap(other, 4096);
    }
}

static void loading_waits_and_handles_end_with_their_context(void)
{
    CUcontext context;
    CUmodule loaded;
    CUfunction function;
    CUevent event;
    CUdeviceptr device = (CUdeviceptr)(uintptr_t)gate;
    CUstream stream = busy(CU_STREAM_NON_BLOCKING);
    EXPECT(WAITS(cuModuleLoadData(&loaded, "")));
    OK(cuStreamDestroy(stream));
    OK(cuModuleGetFunction(&function, loaded, "scaled"));
    OK(cuModuleUnload(loaded));
    IS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&device}, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxCreate(&context, NULL, 0, 0));
    OK(cuEventCreate(&event, 0));
    IS(cuLaunchKernel(kernel("scaled"), 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&device}, NULL),
       CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxDestroy(context));
    IS(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

static void a_captured_graph_replays(void)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr device;
    int host[2] = {2, 0};
    OK(cuMemAlloc(&device, 4));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUfunction scaled = kernel("scaled");
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemcpyHtoDAsync(device, &host[0], 4, stream));
    OK(cuLaunchKernel(scaled, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&device}, NULL));
    OK(cuMemcpyDtoHAsync(&host[1], device, 4, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    for (host[0] = 2; host[0] < 5; host[0]++) {
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        EXPECT(host[1] == 5 * host[0]);
    }
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUdeviceptr other;
    IS(cuMemAlloc(&other, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(device));
}

static void memory_is_counted_in_chunks(void)
{
    size_t before, after, total;
    CUdeviceptr small[3], large;
    OK(cuMemAlloc(&small[0], 1));
    OK(cuMemGetInfo(&before, &total));
    OK(cuMemAlloc(&small[1], 700));
    OK(cuMemAlloc(&small[2], 1));
    EXPECT(small[1] - small[0] == 512 && small[2] - small[1] == 1024);
    OK(cuMemAlloc(&large, 3 << 20));
    OK(cuMemGetInfo(&after, &total));
    EXPECT(before - after == 4 << 20);
    EXPECT(!cpu_can_touch(large) && !cpu_can_touch(small[0]));
    OK(cuMemFree(large));
    for (int i = 0; i < 3; i++) OK(cuMemFree(small[i]));
}

static void entry_points_are_exported_symbols(void)
{
    void *function;
    OK(cuGetProcAddress("cuMemAlloc", &function, 3020, 0, NULL));
    EXPECT(function == (void *)cuMemAlloc);
    OK(cuGetProcAddress("cuMemcpyHtoD", &function, 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    EXPECT(function && function != (void *)cuMemcpyHtoD);
    CUdriverProcAddressQueryResult status;
    OK(cuGetProcAddress("cuNoSuchThing", &function, 13000, 0, &status));
    EXPECT(!function && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

static void a_child_has_no_driver(void)
{
    pid_t child = fork();
    if (!child) {
        CUdeviceptr device;
        _exit(cuMemAlloc(&device, 4) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_wrong_address_loses_the_context(void)
{
    int host = 1;
    CUdeviceptr wrong = (CUdeviceptr)(uintptr_t)&host, device;
    launch("scaled", 1, 1, NULL, (void *[]){&wrong});
    IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cuMemAlloc(&device, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(host == 1);
}

/* ---- in a process of its own, with an environment ---- */

static void context_begin(void)
{
    CUcontext context;
    CUdevice device;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
}

static int attribute(CUdevice_attribute which)
{
    int value = -1;
    OK(cuDeviceGetAttribute(&value, which, 0));
    return value;
}

static void run_in_environment(const char *name)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr at;
    if (!strcmp(name, "no-device")) {
        IS(cuInit(0), CUDA_ERROR_NO_DEVICE);
        return;
    }
    context_begin();
    if (!strcmp(name, "fault")) {
        OK(cuMemHostRegister(page, 4096, 0));
        OK(cuMemHostUnregister(page));
        IS(cuMemHostRegister(page, 4096, 0), CUDA_ERROR_NOT_SUPPORTED);
        OK(cuMemHostRegister(page, 4096, 0));
        IS(cuMemGetInfo(&(size_t){0}, &(size_t){0}), 999);
        IS(cuMemGetInfo(&(size_t){0}, &(size_t){0}), 999);
    } else if (!strcmp(name, "properties")) {
        int count;
        size_t free_bytes, total;
        OK(cuDeviceGetCount(&count));
        OK(cuMemGetInfo(&free_bytes, &total));
        EXPECT(count == 2 && total == 64 << 20 && free_bytes == total);
        EXPECT(attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED) == 1 &&
               attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) == 0);
        IS(cuMemAddressReserve(&at, 2 << 20, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
        IS(cuMemHostRegister(page, 4096, 0), CUDA_ERROR_NOT_SUPPORTED);
        IS(cuMemAlloc(&at, 65 << 20), CUDA_ERROR_OUT_OF_MEMORY);
    }
}

static void again(const char *self, const char *name, const char *settings[])
{
    pid_t child = fork();
    if (!child) {
        for (; *settings; settings += 2) setenv(settings[0], settings[1], 1);
        execl(self, self, name, NULL);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    if (status) printf("in environment %s: status %x\n", name, status);
    failures += status != 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) {
        run_in_environment(argv[1]);
        return failures != 0;
    }
    again("/proc/self/exe", "no-device", (const char *[]){"ZCSIM_DEVICES", "0", NULL});
    again("/proc/self/exe", "fault",
          (const char *[]){"ZCSIM_FAULT", "cuMemHostRegister_v2:2:801,cuMemGetInfo_v2:0:999", NULL});
    again("/proc/self/exe", "properties",
          (const char *[]){"ZCSIM_DEVICES", "2", "ZCSIM_INTEGRATED", "1", "ZCSIM_CAN_MAP_HOST", "0", "ZCSIM_VMM", "0",
                           "ZCSIM_REGISTER", "0", "ZCSIM_MEMORY", "67108864", NULL});
    runtime_adds_vectors();
    context_begin();
    barriers_and_atomics_work();
    streams_wait_for_each_other();
    windows_change_their_backing();
    a_registration_holds_its_pages();
    loading_waits_and_handles_end_with_their_context();
    a_captured_graph_replays();
    memory_is_counted_in_chunks();
    entry_points_are_exported_symbols();
    a_child_has_no_driver();
    a_wrong_address_loses_the_context();
    puts(failures ? "sim: failed" : "sim: passed");
    return failures != 0;
}

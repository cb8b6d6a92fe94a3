/* What each wrong use of host memory answers. Uses that may kill the process or its context run in a process of their
 * own (this program again, with --wrong-use=NAME), so that the others are not touched. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kernels/zcbench.h"

#define BYTES (64 * KIB)

static void answer(struct bench *b, const char *use, cudaError_t e)
{
    if (b->wrong_count == WRONG_MAX) return;
    struct wrong_row *row = &b->wrongs[b->wrong_count++];
    row->use = use;
    if (e == cudaSuccess)
        snprintf(row->answer, sizeof row->answer, "0 cudaSuccess");
    else
        snprintf(row->answer, sizeof row->answer, "%d %s", e, cudaGetErrorName(e));
    (void)cudaGetLastError();
}

static void frees(struct bench *b, void *pageable, void *pinned, void *device)
{
    answer(b, "cudaFreeHost of malloc memory", cudaFreeHost(pageable));
    answer(b, "cudaFree of malloc memory", cudaFree(pageable));
    answer(b, "cudaFree of the middle of device memory", cudaFree((char *)device + 4096));
    answer(b, "cudaFreeHost of device memory", cudaFreeHost(device));
    answer(b, "cudaFreeHost of the middle of pinned memory", cudaFreeHost((char *)pinned + 4096));
}

/* Undoes the registration should it succeed after all, so that the rest is not changed by it. */
static void registers(struct bench *b, const char *use, void *host, size_t bytes, unsigned flags)
{
    cudaError_t e = cudaHostRegister(host, bytes, flags);
    answer(b, use, e);
    if (e == cudaSuccess) (void)cudaHostUnregister(host);
    (void)cudaGetLastError();
}

static void registrations(struct bench *b, char *pageable, void *pinned, void *device)
{
    answer(b, "cudaHostUnregister of malloc memory", cudaHostUnregister(pageable));
    answer(b, "cudaHostUnregister of cudaHostAlloc memory", cudaHostUnregister(pinned));
    registers(b, "cudaHostRegister of cudaHostAlloc memory", pinned, BYTES, cudaHostRegisterMapped);
    registers(b, "cudaHostRegister of device memory", device, BYTES, cudaHostRegisterMapped);
    registers(b, "cudaHostRegister of a null pointer", NULL, BYTES, cudaHostRegisterMapped);
    registers(b, "cudaHostRegister of 0 bytes", pageable, 0, cudaHostRegisterMapped);
    registers(b, "cudaHostRegister with unknown flags", pageable, BYTES, 0x4000);
    registers(b, "cudaHostRegister of ordinary memory as io-memory", pageable, BYTES, cudaHostRegisterIoMemory);
    if (cudaHostRegister(pageable, BYTES, cudaHostRegisterMapped) != cudaSuccess) return;
    answer(b, "cudaHostRegister a second time", cudaHostRegister(pageable, BYTES, cudaHostRegisterMapped));
    answer(b, "cudaHostRegister of a part that is registered",
           cudaHostRegister(pageable + 4096, 4096, cudaHostRegisterMapped));
    answer(b, "cudaHostUnregister of the middle of a registration", cudaHostUnregister(pageable + 4096));
    answer(b, "cudaFreeHost of registered memory", cudaFreeHost(pageable));
    (void)cudaHostUnregister(pageable);
    (void)cudaGetLastError();
    answer(b, "cudaHostUnregister a second time", cudaHostUnregister(pageable));
}

static void pointers(struct bench *b, void *pageable, void *pinned, void *device)
{
    void *there;
    answer(b, "cudaHostGetDevicePointer of malloc memory", cudaHostGetDevicePointer(&there, pageable, 0));
    answer(b, "cudaHostGetDevicePointer of device memory", cudaHostGetDevicePointer(&there, device, 0));
    answer(b, "cudaHostGetDevicePointer of memory pinned without Mapped", cudaHostGetDevicePointer(&there, pinned, 0));
    if (cudaHostRegister(pageable, BYTES, cudaHostRegisterDefault) == cudaSuccess) {
        answer(b, "cudaHostGetDevicePointer of memory registered without Mapped",
               cudaHostGetDevicePointer(&there, pageable, 0));
        (void)cudaHostUnregister(pageable);
    }
}

static int end_with(cudaError_t e)
{
    printf("%d %s\n", e, cudaGetErrorName(e));
    fflush(stdout);
    return 0;
}

int wrong_use_child(const char *name)
{
    void *pinned, *device;
    char *pageable;
    if (posix_memalign((void **)&pageable, 4096, BYTES)) return 1;
    memset(pageable, 1, BYTES);
    if (!strncmp(name, "map-", 4)) { /* for devices that cannot map host memory */
        cudaError_t e = !strcmp(name, "map-register") ? cudaHostRegister(pageable, BYTES, cudaHostRegisterMapped)
                                                      : cudaHostAlloc(&pinned, BYTES, cudaHostAllocMapped);
        return end_with(e != cudaSuccess || strcmp(name, "map-pointer") ? e
                                                                        : cudaHostGetDevicePointer(&device, pinned, 0));
    }
    if (!TRY(cudaHostAlloc(&pinned, BYTES, cudaHostAllocMapped)) || !TRY(cudaMalloc(&device, BYTES))) return 1;
    if (!strcmp(name, "free-pinned")) {
        free(pinned);
        return end_with(cudaSuccess);
    }
    if (!strcmp(name, "cudaFree-pinned")) return end_with(cudaFree(pinned));
    if (!strcmp(name, "free-registered")) {
        void *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED || !TRY(cudaHostRegister(map, BYTES, cudaHostRegisterMapped))) return 1;
        munmap(map, BYTES);
        return end_with(cudaHostUnregister(map));
    }
    if (!strcmp(name, "cpu-device")) {
        *(volatile int *)device = 1;
        return end_with(cudaSuccess);
    }
    unsigned *target = (unsigned *)pageable;
    if (!strcmp(name, "kernel-unregistered")) {
        if (!TRY(cudaHostRegister(pageable, BYTES, cudaHostRegisterMapped)) || !TRY(cudaHostUnregister(pageable)))
            return 1;
    } else if (!strcmp(name, "kernel-read-only")) {
        cudaError_t e = cudaHostRegister(pageable, BYTES, cudaHostRegisterMapped | cudaHostRegisterReadOnly);
        if (e != cudaSuccess) return end_with(e);
    } else if (strcmp(name, "kernel-pageable")) {
        return 2;
    }
    cudaError_t e = touch_launch(target, BYTES / 4, true);
    return end_with(e != cudaSuccess ? e : cudaDeviceSynchronize());
}

/* `reply` gets the child's first line, or how it died. False: it could not be run. */
static bool in_a_process(const struct bench *b, const char *name, char *reply, size_t size)
{
    char use[64], device[32];
    int out[2], status;
    snprintf(use, sizeof use, "--wrong-use=%s", name);
    snprintf(device, sizeof device, "--device=%d", b->machine.device);
    if (pipe(out)) return false;
    pid_t pid = fork();
    if (pid < 0) return false;
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        if (!freopen("/dev/null", "w", stderr)) _exit(126);
        alarm(30);
        execl("/proc/self/exe", "zcbench", use, device, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    size_t length = 0;
    for (ssize_t n; length + 1 < size && (n = read(out[0], reply + length, size - 1 - length)) > 0;)
        length += (size_t)n;
    reply[length] = 0;
    reply[strcspn(reply, "\n")] = 0;
    close(out[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status))
        snprintf(reply, size, "the process dies: %s", strsignal(WTERMSIG(status)));
    else if (!length)
        snprintf(reply, size, "not tried (exit code %d)", WEXITSTATUS(status));
    return true;
}

static bool deadly(struct bench *b)
{
    static const struct {
        const char *use, *name;
    } uses[] = {
        {"free() of pinned memory", "free-pinned"},
        {"cudaFree of pinned memory", "cudaFree-pinned"},
        {"cudaHostUnregister after munmap", "free-registered"},
        {"the CPU writes to device memory", "cpu-device"},
        {"a kernel writes to malloc memory", "kernel-pageable"},
        {"a kernel writes to memory that was unregistered", "kernel-unregistered"},
        {"a kernel writes to memory registered read-only", "kernel-read-only"},
    };
    for (size_t i = 0; i < sizeof uses / sizeof *uses && b->wrong_count < WRONG_MAX; i++) {
        struct wrong_row *row = &b->wrongs[b->wrong_count++];
        row->use = uses[i].use;
        if (!in_a_process(b, uses[i].name, row->answer, sizeof row->answer)) return false;
    }
    return true;
}

bool wrong_uses(struct bench *b)
{
    void *pinned, *device;
    char *pageable;
    if (posix_memalign((void **)&pageable, 4096, BYTES)) return false;
    memset(pageable, 1, BYTES);
    if (!TRY(cudaHostAlloc(&pinned, BYTES, cudaHostAllocDefault)) || !TRY(cudaMalloc(&device, BYTES))) return false;
    frees(b, pageable, pinned, device);
    registrations(b, pageable, pinned, device);
    pointers(b, pageable, pinned, device);
    bool ok = TRY(cudaFree(device));
    ok &= TRY(cudaFreeHost(pinned));
    free(pageable);
    return ok && (b->quick || deadly(b));
}

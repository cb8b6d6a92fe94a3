/* The kinds of host memory: what each costs to have, how fast copies, kernels and the CPU are on it; and whether
 * atomics on mapped memory count right, alone and against the CPU. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/zcbench.h"

enum way { WAY_PAGEABLE, WAY_ALLOCATE, WAY_REGISTER };

static const struct {
    const char *name, *call;
    enum way way;
    unsigned flags;
} kinds[] = {
    {"pageable", "malloc", WAY_PAGEABLE, 0},
    {"pinned", "cudaHostAlloc(Default)", WAY_ALLOCATE, cudaHostAllocDefault},
    {"mapped", "cudaHostAlloc(Mapped)", WAY_ALLOCATE, cudaHostAllocMapped},
    {"portable", "cudaHostAlloc(Portable)", WAY_ALLOCATE, cudaHostAllocPortable},
    {"write-combined", "cudaHostAlloc(WriteCombined)", WAY_ALLOCATE, cudaHostAllocWriteCombined},
    {"mapped, write-combined", "cudaHostAlloc(Mapped|WriteCombined)", WAY_ALLOCATE,
     cudaHostAllocMapped | cudaHostAllocWriteCombined},
    {"registered", "cudaHostRegister(Default)", WAY_REGISTER, cudaHostRegisterDefault},
    {"registered, mapped", "cudaHostRegister(Mapped)", WAY_REGISTER, cudaHostRegisterMapped},
    {"registered, portable", "cudaHostRegister(Portable)", WAY_REGISTER, cudaHostRegisterPortable},
    {"registered, read-only", "cudaHostRegister(Mapped|ReadOnly)", WAY_REGISTER,
     cudaHostRegisterMapped | cudaHostRegisterReadOnly},
    {"registered, io-memory", "cudaHostRegister(IoMemory)", WAY_REGISTER, cudaHostRegisterIoMemory},
};

#define TIMES 5

static double median_gbs(double *samples, size_t bytes) { return bytes / spread_of(samples, TIMES).median; }

/* The work of one repeat, by number. */
enum work { WORK_H2D, WORK_D2H, WORK_READ, WORK_WRITE };

static bool timed(enum work work, void *host, void *device, const struct places *p, size_t bytes, cudaEvent_t events[2],
                  double *gbs)
{
    double samples[TIMES];
    for (int i = -1; i < TIMES; i++) {
        struct launch l = {.id = work == WORK_WRITE ? CASE_WRITE : CASE_READ, .bytes = bytes, .density = 1};
        cudaError_t e = cudaEventRecord(events[0], 0);
        float ms;
        places_launch(p, &l, SIDE_MAPPED);
        l.data = device;
        if (e == cudaSuccess && work == WORK_H2D)
            e = cudaMemcpyAsync(p->device[SIDE_PAGEABLE], host, bytes, cudaMemcpyHostToDevice, 0);
        else if (e == cudaSuccess && work == WORK_D2H)
            e = cudaMemcpyAsync(host, p->device[SIDE_PAGEABLE], bytes, cudaMemcpyDeviceToHost, 0);
        else if (e == cudaSuccess)
            e = case_launch(&l);
        if (e == cudaSuccess) e = cudaEventRecord(events[1], 0);
        if (!TRY(e) || !TRY(cudaEventSynchronize(events[1])) || !TRY(cudaEventElapsedTime(&ms, events[0], events[1])))
            return false;
        if (i >= 0) samples[i] = ms * 1e6;
    }
    *gbs = median_gbs(samples, bytes);
    return true;
}

static void timed_cpu(struct kind_row *row, void *host, void *ordinary, size_t bytes)
{
    double write[TIMES], read[TIMES];
    size_t read_bytes = bytes < MIB ? bytes : MIB; /* a CPU read of write-combined memory is very slow */
    for (int i = -1; i < TIMES; i++) {
        double start = now_ns();
        memcpy(host, ordinary, bytes);
        double middle = now_ns();
        memcpy(ordinary, host, read_bytes);
        double end = now_ns();
        if (i >= 0) write[i] = middle - start, read[i] = end - middle;
    }
    row->cpu_write_gbs = median_gbs(write, bytes);
    row->cpu_read_gbs = median_gbs(read, read_bytes);
}

static bool kind_release(enum way way, void *host)
{
    return way == WAY_ALLOCATE ? TRY(cudaFreeHost(host)) : way == WAY_REGISTER ? TRY(cudaHostUnregister(host)) : true;
}

static bool kind_row(struct kind_row *row, int kind, const struct places *p, size_t bytes, cudaEvent_t events[2],
                     void *ordinary)
{
    void *host = NULL, *device = NULL;
    double get[TIMES], release[TIMES];
    enum way way = kinds[kind].way;
    cudaError_t e = cudaSuccess;
    bool ok = true;
    *row = (struct kind_row){.name = kinds[kind].name, .call = kinds[kind].call};
    if (way != WAY_ALLOCATE) {
        if (posix_memalign(&host, 4096, bytes)) return false;
        memset(host, 1, bytes);
    }
    for (int i = 0; i < TIMES; i++) { /* all but the last are given back at once */
        double start = now_ns();
        if (way == WAY_ALLOCATE) e = cudaHostAlloc(&host, bytes, kinds[kind].flags);
        if (way == WAY_REGISTER) e = cudaHostRegister(host, bytes, kinds[kind].flags);
        get[i] = now_ns() - start;
        if (e != cudaSuccess || i == TIMES - 1) break;
        start = now_ns();
        if (!kind_release(way, host)) return false;
        release[i] = now_ns() - start;
    }
    if (e != cudaSuccess) {
        snprintf(row->error, sizeof row->error, "%d %s", e, cudaGetErrorName(e));
        (void)cudaGetLastError();
        if (way != WAY_ALLOCATE) free(host);
        return true;
    }
    row->present = true;
    memcpy(host, ordinary, bytes);
    ok = timed(WORK_H2D, host, NULL, p, bytes, events, &row->h2d_gbs);
    bool read_only = way == WAY_REGISTER && (kinds[kind].flags & cudaHostRegisterReadOnly);
    if (ok && !read_only) ok = timed(WORK_D2H, host, NULL, p, bytes, events, &row->d2h_gbs);
    if (way != WAY_PAGEABLE && cudaHostGetDevicePointer(&device, host, 0) == cudaSuccess) {
        ok = ok && timed(WORK_READ, host, device, p, bytes, events, &row->kernel_read_gbs);
        if (ok && !read_only) ok = timed(WORK_WRITE, host, device, p, bytes, events, &row->kernel_write_gbs);
    }
    (void)cudaGetLastError();
    timed_cpu(row, host, ordinary, bytes);
    double start = now_ns();
    ok &= kind_release(way, host);
    release[TIMES - 1] = now_ns() - start;
    if (way != WAY_PAGEABLE) {
        row->allocate_ns = spread_of(get, TIMES).median;
        row->release_ns = spread_of(release, TIMES).median;
    }
    if (way != WAY_ALLOCATE) free(host);
    return ok;
}

bool kinds_measure(struct bench *bench)
{
    size_t bytes = bench->quick ? 4 * MIB : 16 * MIB;
    struct places p;
    cudaEvent_t events[2];
    void *ordinary = malloc(bytes);
    if (!ordinary || !places_create(&p, bytes, (unsigned)bench->machine.sms * 4)) return false;
    fill_words(ordinary, bytes, 5);
    bool ok = TRY(cudaEventCreate(&events[0])) && TRY(cudaEventCreate(&events[1]));
    for (unsigned i = 0; ok && i < sizeof kinds / sizeof *kinds; i++)
        ok = kind_row(&bench->kinds[bench->kind_count++], (int)i, &p, bytes, events, ordinary);
    cudaEventDestroy(events[0]);
    cudaEventDestroy(events[1]);
    places_destroy(&p);
    free(ordinary);
    return ok;
}

struct adder {
    unsigned *counters;
    unsigned mask;
    unsigned long long added;
    bool stop, started;
};

static void *adder_run(void *arg)
{
    struct adder *a = arg;
    while (!__atomic_load_n(&a->stop, __ATOMIC_RELAXED)) {
        __atomic_fetch_add(&a->counters[a->added & a->mask], 1, __ATOMIC_SEQ_CST);
        a->added++;
        __atomic_store_n(&a->started, true, __ATOMIC_RELEASE);
    }
    return NULL;
}

static bool atomic_row(struct atomic_row *row, unsigned *host, unsigned *device, bool system, bool with_cpu)
{
    const unsigned bins = 16, adds = 20000;
    struct adder adder = {.counters = host, .mask = bins - 1};
    pthread_t thread;
    memset(host, 0, bins * sizeof *host);
    if (with_cpu) {
        if (pthread_create(&thread, NULL, adder_run, &adder)) return false;
        while (!__atomic_load_n(&adder.started, __ATOMIC_ACQUIRE)) {
        }
    }
    double start = now_ns();
    bool ok = TRY(histogram_launch(device, bins - 1, adds, system, 8)) && TRY(cudaDeviceSynchronize());
    row->ns = now_ns() - start;
    if (with_cpu) {
        __atomic_store_n(&adder.stop, true, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
    }
    row->who = with_cpu ? "GPU and CPU at the same time" : "GPU alone";
    row->scope = system ? "system (atomicAdd_system)" : "device (atomicAdd)";
    row->expected = adds + adder.added;
    row->counted = 0;
    for (unsigned i = 0; i < bins; i++) row->counted += host[i];
    return ok;
}

bool atomics_measure(struct bench *bench)
{
    void *host, *device;
    if (!TRY(cudaHostAlloc(&host, 4096, cudaHostAllocMapped))) return false;
    bool ok = TRY(cudaHostGetDevicePointer(&device, host, 0));
    for (int with_cpu = 0; with_cpu < 2; with_cpu++)
        for (int system = 0; system < 2; system++)
            if (ok) ok = atomic_row(&bench->atomics[bench->atomic_count++], host, device, system, with_cpu);
    cudaFreeHost(host);
    return ok;
}

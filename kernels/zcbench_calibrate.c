/* zcbench --calibrate: measures every number of the policy's cost file. The moves are made as libzcshim makes them, by
 * the driver's virtual memory calls; where those are missing, the machine cannot be calibrated and says so. */
#include <cuda.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "kernels/zcbench.h"
#include "policy/cost.h"

#define COPIES_TIMES 60
#define MOVES_TIMES  7

struct driver {
    __typeof__(cuMemAddressReserve) *reserve;
    __typeof__(cuMemAddressFree) *unreserve;
    __typeof__(cuMemCreate) *create;
    __typeof__(cuMemRelease) *release;
    __typeof__(cuMemMap) *map;
    __typeof__(cuMemUnmap) *unmap;
    __typeof__(cuMemSetAccess) *set_access;
    __typeof__(cuMemHostRegister) *enroll;
    __typeof__(cuMemHostUnregister) *unenroll;
};

struct calibration {
    struct driver cu;
    struct places places;
    struct cost cost;
    char *window, *saved; /* the moved window's address; pinned memory that its bytes wait in */
    size_t window_bytes;
    CUmemAccessDesc access;
};

static void point_add(struct cost_curve *curve, uint64_t bytes, double value)
{
    if (curve->count == COST_POINTS) return;
    curve->bytes[curve->count] = bytes;
    curve->value[curve->count++] = (float)value;
}

static bool driver_find(struct driver *cu)
{
    struct {
        const char *name;
        void **into;
    } wanted[] = {{"cuMemAddressReserve", (void **)&cu->reserve},
                  {"cuMemAddressFree", (void **)&cu->unreserve},
                  {"cuMemCreate", (void **)&cu->create},
                  {"cuMemRelease", (void **)&cu->release},
                  {"cuMemMap", (void **)&cu->map},
                  {"cuMemUnmap", (void **)&cu->unmap},
                  {"cuMemSetAccess", (void **)&cu->set_access},
                  {"cuMemHostRegister", (void **)&cu->enroll},
                  {"cuMemHostUnregister", (void **)&cu->unenroll}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        enum cudaDriverEntryPointQueryResult found;
        if (!TRY(cudaGetDriverEntryPointByVersion(wanted[i].name, wanted[i].into, 11020, cudaEnableDefault, &found)))
            return false;
        if (found == cudaDriverEntryPointSuccess && *wanted[i].into) continue;
        fprintf(stderr, "zcbench: this driver has no %s\n", wanted[i].name);
        return false;
    }
    return true;
}

static bool driver_ok(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS) return true;
    fprintf(stderr, "zcbench: %s fails with driver error %d\n", what, result);
    return false;
}
#define CU(call) driver_ok((call), #call)

/* The GPU used the memory since the last copy, and is idle: the usual state when a program copies. */
static bool settle(void *device, size_t bytes)
{
    return TRY(touch_launch(device, bytes / 4, false)) && TRY(cudaDeviceSynchronize());
}

static bool native_copies(struct calibration *c)
{
    static const size_t sizes[] = {4, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB};
    double samples[2][COPIES_TIMES];
    void *host = c->places.host[SIDE_PAGEABLE], *device = c->places.device[SIDE_PAGEABLE];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t bytes = sizes[s];
        int times = bytes > MIB ? 9 : COPIES_TIMES;
        for (int i = -3; i < times; i++) {
            for (int down = 0; down < 2; down++) {
                if (!settle(device, bytes)) return false;
                double start = now_ns();
                cudaError_t e = down ? cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost)
                                     : cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
                double ns = now_ns() - start;
                if (!TRY(e)) return false;
                if (i >= 0) samples[down][i] = ns;
            }
        }
        point_add(&c->cost.curves[COST_NATIVE_H2D], bytes, spread_of(samples[0], (unsigned)times).median);
        point_add(&c->cost.curves[COST_NATIVE_D2H], bytes, spread_of(samples[1], (unsigned)times).median);
    }
    return true;
}

/* "Is the stream idle for what I am about to do?" is asked by an event recorded in it, then the CPU copies. */
static bool elided_copies(struct calibration *c)
{
    static const size_t sizes[] = {4, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 16 * MIB};
    double samples[2][COPIES_TIMES];
    char *host = c->places.host[SIDE_PAGEABLE], *mapped = c->places.host[SIDE_REGISTERED];
    cudaEvent_t event;
    bool ok = TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (size_t s = 0; ok && s < sizeof sizes / sizeof *sizes; s++) {
        size_t bytes = sizes[s];
        int times = bytes > MIB ? 9 : COPIES_TIMES;
        for (int i = -3; ok && i < times; i++) {
            for (int down = 0; ok && down < 2; down++) {
                ok = settle(c->places.device[SIDE_REGISTERED], bytes);
                double start = now_ns();
                cudaError_t e = cudaEventRecord(event, 0);
                if (e == cudaSuccess) e = cudaEventSynchronize(event);
                memcpy(down ? host : mapped, down ? mapped : host, bytes);
                double ns = now_ns() - start;
                ok = ok && TRY(e);
                if (i >= 0) samples[down][i] = ns;
            }
        }
        point_add(&c->cost.curves[COST_ELIDED_H2D], bytes, spread_of(samples[0], (unsigned)times).median);
        point_add(&c->cost.curves[COST_ELIDED_D2H], bytes, spread_of(samples[1], (unsigned)times).median);
    }
    cudaEventDestroy(event);
    return ok;
}

static bool back_with_device(struct calibration *c, size_t live, bool first, CUmemGenericAllocationHandle *handle)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = c->access.location};
    CUdeviceptr at = (CUdeviceptr)c->window;
    size_t host_bytes = (live + 0xffff) & ~(size_t)0xffff;
    if (!first) {
        memcpy(c->saved, c->window, live);
        if (!CU(c->cu.unenroll(c->window))) return false;
        if (mmap(c->window, host_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ==
            MAP_FAILED)
            return false;
    }
    return CU(c->cu.create(handle, c->window_bytes, &prop, 0)) && CU(c->cu.map(at, c->window_bytes, 0, *handle, 0)) &&
           CU(c->cu.set_access(at, c->window_bytes, &c->access, 1)) &&
           (first || TRY(cudaMemcpy(c->window, c->saved, live, cudaMemcpyHostToDevice)));
}

static bool back_with_host(struct calibration *c, size_t live, CUmemGenericAllocationHandle handle)
{
    size_t host_bytes = (live + 0xffff) & ~(size_t)0xffff;
    if (!TRY(cudaMemcpy(c->saved, c->window, live, cudaMemcpyDeviceToHost)) ||
        !CU(c->cu.unmap((CUdeviceptr)c->window, c->window_bytes)) || !CU(c->cu.release(handle)))
        return false;
    if (mmap(c->window, host_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        return false;
    if (host_bytes >= 2 * MIB) madvise(c->window, host_bytes, MADV_HUGEPAGE);
    memcpy(c->window, c->saved, live);
    return CU(c->cu.enroll(c->window, host_bytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE));
}

static bool moves_of(struct calibration *c, size_t live)
{
    double to_host[MOVES_TIMES], to_device[MOVES_TIMES];
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    c->window_bytes = (live + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    if (!CU(c->cu.reserve(&at, c->window_bytes, 0, 0, 0))) return false;
    c->window = (char *)at;
    bool ok = back_with_device(c, live, true, &handle);
    for (int i = -1; ok && i < MOVES_TIMES; i++) { /* the first of a process costs twice */
        ok = settle(c->window, live);
        double start = now_ns();
        ok = ok && back_with_host(c, live, handle);
        double middle = now_ns();
        ok = ok && settle(c->window, live);
        double again = now_ns();
        ok = ok && back_with_device(c, live, false, &handle);
        double end = now_ns();
        if (i >= 0) to_host[i] = middle - start, to_device[i] = end - again;
    }
    if (!ok) return false;
    point_add(&c->cost.curves[COST_MOVE_TO_HOST], live, spread_of(to_host, MOVES_TIMES).median);
    point_add(&c->cost.curves[COST_MOVE_TO_DEVICE], live, spread_of(to_device, MOVES_TIMES).median);
    return CU(c->cu.unmap(at, c->window_bytes)) && CU(c->cu.release(handle)) &&
           CU(c->cu.unreserve(at, c->window_bytes));
}

static bool moves(struct calibration *c, int device)
{
    static const size_t sizes[] = {4 * KIB, 64 * KIB, 512 * KIB, 2 * MIB, 16 * MIB};
    c->access = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    c->saved = c->places.host[SIDE_PINNED];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        if (!moves_of(c, sizes[s])) return false;
    return true;
}

/* The slowest that one case gets on the host, as a multiple of its time on the device. */
static bool slowdown(struct calibration *c, enum case_id id, size_t bytes, double density, double *worst)
{
    struct cell cell = {.id = id, .bytes = bytes, .density = density};
    if (bench_cases[id].bytes_max && bytes > bench_cases[id].bytes_max) return true;
    if (!cell_measure(&cell, &c->places, 30e6)) return false;
    for (int side = SIDE_MAPPED; side <= SIDE_REGISTERED; side++) {
        double factor = cell.kernel[side].p90 / cell.kernel[SIDE_PAGEABLE].median;
        if (factor > *worst) *worst = factor;
    }
    return true;
}

static bool worst_plain(struct calibration *c)
{
    static const size_t sizes[] = {256, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB};
    static const struct {
        enum case_id id;
        double density;
    } cases[] = {{CASE_READ, 1},    {CASE_MODIFY, 1}, {CASE_PASSES, 16}, {CASE_LOOKUP, 4 * MIB}, {CASE_GATHER, 1},
                 {CASE_SCATTER, 1}, {CASE_PIXEL, 1},  {CASE_FIR, 1},     {CASE_STENCIL, 1},      {CASE_LOOKUP, 65536}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double worst = 1;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            if (!slowdown(c, cases[i].id, sizes[s], cases[i].density, &worst)) return false;
        point_add(&c->cost.curves[COST_WORST_PLAIN], sizes[s], worst);
    }
    return true;
}

static bool worst_atomics(struct calibration *c)
{
    static const size_t sizes[] = {4, KIB, 64 * KIB, MIB, 16 * MIB};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double worst = 1;
        if (!slowdown(c, CASE_HISTOGRAM_INT, sizes[s], 262144, &worst) ||
            !slowdown(c, CASE_HISTOGRAM_FLOAT, sizes[s], 262144, &worst) ||
            !slowdown(c, CASE_POLL, sizes[s], 256, &worst))
            return false;
        point_add(&c->cost.curves[COST_WORST_ATOMICS], sizes[s], worst);
        double plain = cost_worst_factor(&c->cost, sizes[s], COST_PLAIN);
        point_add(&c->cost.curves[COST_WORST_UNKNOWN], sizes[s], plain > worst ? plain : worst);
    }
    return true;
}

static bool cache_path(const struct machine *m, char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[3800];
    if (cache && *cache == '/')
        snprintf(folder, sizeof folder, "%s", cache);
    else if (home && *home == '/')
        snprintf(folder, sizeof folder, "%s/.cache", home);
    else {
        fprintf(stderr, "zcbench: neither XDG_CACHE_HOME nor HOME says where the cache folder is; give a file name\n");
        return false;
    }
    mkdir(folder, 0700);
    strncat(folder, "/zcshim", sizeof folder - strlen(folder) - 1);
    if (mkdir(folder, 0755) && errno != EEXIST) {
        fprintf(stderr, "zcbench: cannot make %s: %m\n", folder);
        return false;
    }
    return snprintf(path, size, "%s/GPU-%s.cost", folder, m->uuid) < (int)size;
}

/* A reader sees the old file or the new one, whole. */
static bool cost_write(const char *path, const struct cost *cost, const char *gpu)
{
    char text[8192], temporary[4200];
    size_t length = cost_format(text, sizeof text, cost, gpu);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *f = fopen(temporary, "w");
    if (!f || fwrite(text, 1, length, f) != length || fclose(f) || rename(temporary, path)) {
        fprintf(stderr, "zcbench: cannot write %s: %m\n", path);
        return false;
    }
    printf("%.*swritten to %s\n", (int)length, text, path);
    return true;
}

bool calibrate_run(const struct machine *machine, const char *path)
{
    struct calibration *c = calloc(1, sizeof *c);
    char own_path[4096];
    if (!c) return false;
    bool ok = (path || cache_path(machine, own_path, sizeof own_path)) && driver_find(&c->cu) &&
              places_create(&c->places, 16 * MIB, (unsigned)machine->sms * 4);
    if (ok) {
        places_fill(&c->places, true, 7);
        ok = native_copies(c) && elided_copies(c) && moves(c, machine->device) && worst_plain(c) && worst_atomics(c);
    }
    ok = ok && cost_write(path ? path : own_path, &c->cost, machine->gpu);
    places_destroy(&c->places);
    free(c);
    return ok;
}

/* Cells: round trip by the host's clock, kernel alone by events; sides alternated, warm. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "kernels/zcbench.h"

#define SAMPLES_MAX 1000

double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

bool cuda_ok(cudaError_t error, const char *what, const char *file, int line)
{
    if (error == cudaSuccess) return true;
    fprintf(stderr, "zcbench: %s:%d: %s: %s\n", file, line, what, cudaGetErrorString(error));
    return false;
}

static bool side_applies(const struct cell *cell, enum side side)
{
    return side != SIDE_COMBINED || !(bench_cases[cell->id].flags & DATA_OUT); /* the CPU must only write there */
}

/* Change the input, get it to the kernel, wait for the result and look at it. */
bool round_trip(const struct cell *cell, struct places *p, enum side side, unsigned turn, double *ns)
{
    unsigned flags = bench_cases[cell->id].flags;
    struct launch l = {.id = cell->id, .bytes = cell->bytes, .density = cell->density, .seed = turn};
    volatile unsigned *host = p->host[side];
    bool ok = true;
    places_launch(p, &l, side);
    double start = now_ns();
    if (flags & DATA_IN) *host = turn;
    if ((flags & DATA_IN) && side == SIDE_PAGEABLE)
        ok = TRY(cudaMemcpy(l.data, p->host[side], l.bytes, cudaMemcpyHostToDevice));
    else if ((flags & DATA_IN) && side == SIDE_PINNED)
        ok = TRY(cudaMemcpyAsync(l.data, p->host[side], l.bytes, cudaMemcpyHostToDevice, 0));
    if (!ok || !TRY(case_launch(&l))) return false;
    if ((flags & DATA_OUT) && side == SIDE_PAGEABLE)
        ok = TRY(cudaMemcpy(p->host[side], l.data, l.bytes, cudaMemcpyDeviceToHost));
    else if ((flags & DATA_OUT) && side == SIDE_PINNED)
        ok = TRY(cudaMemcpyAsync(p->host[side], l.data, l.bytes, cudaMemcpyDeviceToHost, 0));
    if (!ok || !TRY(cudaDeviceSynchronize())) return false;
    if (flags & DATA_OUT) (void)*host;
    *ns = now_ns() - start;
    return true;
}

bool kernel_alone(const struct cell *cell, struct places *p, enum side side, unsigned turn, double *ns,
                  cudaEvent_t events[2])
{
    struct launch l = {.id = cell->id, .bytes = cell->bytes, .density = cell->density, .seed = turn};
    float ms;
    places_launch(p, &l, side);
    if (!TRY(cudaEventRecord(events[0], 0)) || !TRY(case_launch(&l)) || !TRY(cudaEventRecord(events[1], 0)) ||
        !TRY(cudaEventSynchronize(events[1])) || !TRY(cudaEventElapsedTime(&ms, events[0], events[1])))
        return false;
    *ns = ms * 1e6;
    return true;
}

static bool measure_mode(struct cell *cell, struct places *p, double budget_ns, cudaEvent_t events[2])
{
    static double samples[SIDES][SAMPLES_MAX];
    struct spread *into = events ? cell->kernel : cell->trip;
    double deadline = 0, ns;
    unsigned count = 0;
    struct timespec gap = {.tv_nsec = cell->gap_us * 1000l};
    for (unsigned turn = 0; turn <= SAMPLES_MAX; turn++) { /* turn 0 warms up and is not counted */
        if (turn == 1) deadline = now_ns() + budget_ns;
        if (count >= 3 && now_ns() > deadline) break;
        for (int i = 0; i < SIDES; i++) {
            enum side side = (enum side)(turn % 2 ? i : SIDES - 1 - i);
            if (!side_applies(cell, side) || (events && side == SIDE_PINNED)) continue;
            if (cell->gap_us) nanosleep(&gap, NULL);
            if (!(events ? kernel_alone(cell, p, side, turn, &ns, events) : round_trip(cell, p, side, turn, &ns)))
                return false;
            if (turn) samples[side][count] = ns;
        }
        if (turn) count++;
    }
    for (int side = 0; side < SIDES; side++) {
        if (!side_applies(cell, (enum side)side)) continue;
        if (events && side == SIDE_PINNED)
            into[side] = into[SIDE_PAGEABLE]; /* the same device buffer */
        else
            into[side] = spread_of(samples[side], count);
    }
    return true;
}

bool cell_measure(struct cell *cell, struct places *p, double budget_ns)
{
    cudaEvent_t events[2];
    if (!TRY(cudaEventCreate(&events[0])) || !TRY(cudaEventCreate(&events[1]))) return false;
    bool ok = measure_mode(cell, p, budget_ns * 0.6, NULL) && measure_mode(cell, p, budget_ns * 0.4, events);
    cudaEventDestroy(events[0]);
    cudaEventDestroy(events[1]);
    return ok;
}

bool warm_up(struct places *p, double ns)
{
    double end = now_ns() + ns;
    while (now_ns() < end) {
        struct launch l = {.id = CASE_MODIFY, .bytes = p->bytes, .density = 1};
        places_launch(p, &l, SIDE_PINNED);
        if (!TRY(case_launch(&l)) || !TRY(cudaDeviceSynchronize())) return false;
    }
    return true;
}

static bool engine_copies(struct bandwidth *b, struct places *p, cudaStream_t streams[2], cudaEvent_t events[2])
{
    double samples[3][7];
    void *device = p->device[SIDE_PAGEABLE], *host = p->host[SIDE_PINNED];
    for (int i = -1; i < 7; i++) {
        for (int way = 0; way < 3; way++) { /* to the device, from it, both */
            float ms;
            cudaError_t e = cudaEventRecord(events[0], streams[0]);
            if (way == 2 && !e) e = cudaStreamWaitEvent(streams[1], events[0], 0);
            if (way != 1 && !e) e = cudaMemcpyAsync(device, host, p->bytes, cudaMemcpyHostToDevice, streams[0]);
            if (way && !e)
                e = cudaMemcpyAsync(p->host[SIDE_MAPPED], p->out, p->bytes, cudaMemcpyDeviceToHost, streams[way == 2]);
            if (way == 2 && !e) e = cudaEventRecord(events[1], streams[1]);
            if (way == 2 && !e) e = cudaStreamWaitEvent(streams[0], events[1], 0);
            if (!e) e = cudaEventRecord(events[1], streams[0]);
            if (!TRY(e) || !TRY(cudaEventSynchronize(events[1])) ||
                !TRY(cudaEventElapsedTime(&ms, events[0], events[1])))
                return false;
            if (i >= 0) samples[way][i] = ms * 1e6;
        }
    }
    b->copy_h2d = p->bytes / spread_of(samples[0], 7).median;
    b->copy_d2h = p->bytes / spread_of(samples[1], 7).median;
    b->copy_both = 2 * p->bytes / spread_of(samples[2], 7).median;
    return true;
}

static bool default_kernels(struct bandwidth *b, struct places *p, cudaEvent_t events[2])
{
    for (int write = 0; write < 2; write++) {
        struct cell cell = {.id = write ? CASE_WRITE : CASE_READ, .bytes = p->bytes, .density = 1};
        double samples[7];
        for (int i = -1; i < 7; i++) {
            double ns;
            if (!kernel_alone(&cell, p, SIDE_MAPPED, (unsigned)(i + 1), &ns, events)) return false;
            if (i >= 0) samples[i] = ns;
        }
        *(write ? &b->default_write : &b->default_read) = p->bytes / spread_of(samples, 7).median;
    }
    return true;
}

bool bandwidth_measure(struct bench *bench)
{
    size_t bytes = bench->quick ? 16 * MIB : 64 * MIB;
    struct places p;
    cudaStream_t streams[2];
    cudaEvent_t events[2];
    void *huge = NULL;
    if (!places_create(&p, bytes, (unsigned)bench->machine.sms * 4)) return false;
    places_fill(&p, false, 3);
    if (!bench->quick && !posix_memalign(&huge, 2 * MIB, bytes)) {
        madvise(huge, bytes, MADV_HUGEPAGE);
        memcpy(huge, p.host[SIDE_MAPPED], bytes);
        if (!TRY(cudaHostRegister(huge, bytes, cudaHostRegisterMapped))) {
            free(huge);
            huge = NULL;
        }
    }
    bool ok = TRY(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking)) &&
              TRY(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking)) && TRY(cudaEventCreate(&events[0])) &&
              TRY(cudaEventCreate(&events[1])) && engine_copies(&bench->bandwidth, &p, streams, events) &&
              default_kernels(&bench->bandwidth, &p, events);
    if (ok) {
        places_fill(&p, false, 3);
        if (huge) memcpy(huge, p.host[SIDE_MAPPED], bytes);
        ok = tune_measure(bench, p.device[SIDE_MAPPED], huge, bytes);
    }
    for (int i = 0; i < 2; i++) {
        cudaStreamDestroy(streams[i]);
        cudaEventDestroy(events[i]);
    }
    if (huge) cudaHostUnregister(huge);
    free(huge);
    places_destroy(&p);
    return ok;
}

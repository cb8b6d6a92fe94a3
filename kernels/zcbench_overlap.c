/* One job three ways: copy in, compute, copy out one after another; the same in chunks on streams, copies and kernels
 * at once; one zero-copy kernel, whose reads, arithmetic and writes overlap by themselves. Each bar of the timeline is
 * bracketed by events. */
#include <string.h>
#include "kernels/zcbench.h"

#define CHUNKS     8
#define STREAMS    4
#define ROUNDS_MAX 4096

struct overlap {
    float *in, *out, *in_device, *out_device; /* pinned and mapped; device */
    size_t count;
    unsigned rounds;
    cudaStream_t streams[STREAMS];
    cudaEvent_t start, from[CHUNKS][3], to[CHUNKS][3];
};

static bool enqueue(struct overlap *o, int chunk, int lane, cudaStream_t stream, size_t count)
{
    size_t at = count * (size_t)chunk, bytes = count * sizeof(float);
    cudaError_t e = cudaEventRecord(o->from[chunk][lane], stream);
    if (e == cudaSuccess && lane == 0)
        e = cudaMemcpyAsync(o->in_device + at, o->in + at, bytes, cudaMemcpyHostToDevice, stream);
    if (e == cudaSuccess && lane == 1)
        e = transform_launch(o->in_device + at, o->out_device + at, count, o->rounds, stream);
    if (e == cudaSuccess && lane == 2)
        e = cudaMemcpyAsync(o->out + at, o->out_device + at, bytes, cudaMemcpyDeviceToHost, stream);
    if (e == cudaSuccess) e = cudaEventRecord(o->to[chunk][lane], stream);
    return TRY(e);
}

/* way 0: one chunk, one stream; way 1: chunks over streams; way 2: one kernel on mapped memory. */
static bool run_way(struct overlap *o, int way, double *ns)
{
    int chunks = way == 1 ? CHUNKS : 1;
    double start = now_ns();
    if (!TRY(cudaEventRecord(o->start, o->streams[0]))) return false;
    if (way == 2) {
        float *in, *out;
        if (!TRY(cudaHostGetDevicePointer((void **)&in, o->in, 0)) ||
            !TRY(cudaHostGetDevicePointer((void **)&out, o->out, 0)))
            return false;
        cudaError_t e = cudaEventRecord(o->from[0][1], o->streams[0]);
        if (e == cudaSuccess) e = transform_launch(in, out, o->count, o->rounds, o->streams[0]);
        if (e == cudaSuccess) e = cudaEventRecord(o->to[0][1], o->streams[0]);
        if (!TRY(e)) return false;
    } else {
        for (int c = 0; c < chunks; c++)
            for (int lane = 0; lane < 3; lane++)
                if (!enqueue(o, c, lane, o->streams[c % STREAMS], o->count / (size_t)chunks)) return false;
    }
    for (int s = 0; s < STREAMS; s++)
        if (!TRY(cudaStreamSynchronize(o->streams[s]))) return false;
    *ns = now_ns() - start;
    return true;
}

static bool collect_bars(struct bench *b, struct overlap *o, int way)
{
    for (int c = 0; c < (way == 1 ? CHUNKS : 1); c++) {
        for (int lane = way == 2; lane < (way == 2 ? 2 : 3) && b->bar_count < BARS_MAX; lane++) {
            float from, to;
            if (!TRY(cudaEventElapsedTime(&from, o->start, o->from[c][lane])) ||
                !TRY(cudaEventElapsedTime(&to, o->start, o->to[c][lane])))
                return false;
            b->bars[b->bar_count++] = (struct bar){way, lane, c, from * 1e6, to * 1e6};
        }
    }
    return true;
}

/* As much arithmetic as takes about as long as one copy: where overlap has most to give. */
static bool choose_rounds(struct overlap *o)
{
    for (o->rounds = 8; o->rounds < ROUNDS_MAX; o->rounds *= 2) {
        float copy, kernel;
        double ns;
        if (!run_way(o, 0, &ns) || !TRY(cudaEventElapsedTime(&copy, o->from[0][0], o->to[0][0])) ||
            !TRY(cudaEventElapsedTime(&kernel, o->from[0][1], o->to[0][1])))
            return false;
        if (kernel > copy * 0.7f) return true;
    }
    return true;
}

static bool overlap_create(struct overlap *o, size_t bytes)
{
    memset(o, 0, sizeof *o);
    o->count = bytes / sizeof(float);
    bool ok = TRY(cudaHostAlloc((void **)&o->in, bytes, cudaHostAllocMapped)) &&
              TRY(cudaHostAlloc((void **)&o->out, bytes, cudaHostAllocMapped)) &&
              TRY(cudaMalloc((void **)&o->in_device, bytes)) && TRY(cudaMalloc((void **)&o->out_device, bytes)) &&
              TRY(cudaEventCreate(&o->start));
    for (int s = 0; ok && s < STREAMS; s++) ok = TRY(cudaStreamCreateWithFlags(&o->streams[s], cudaStreamNonBlocking));
    for (int c = 0; ok && c < CHUNKS; c++)
        for (int lane = 0; ok && lane < 3; lane++)
            ok = TRY(cudaEventCreate(&o->from[c][lane])) && TRY(cudaEventCreate(&o->to[c][lane]));
    if (ok) fill_floats(o->in, bytes, 21);
    return ok;
}

static void overlap_destroy(struct overlap *o)
{
    for (int s = 0; s < STREAMS; s++) cudaStreamDestroy(o->streams[s]);
    for (int c = 0; c < CHUNKS; c++) {
        for (int lane = 0; lane < 3; lane++) {
            cudaEventDestroy(o->from[c][lane]);
            cudaEventDestroy(o->to[c][lane]);
        }
    }
    cudaEventDestroy(o->start);
    cudaFreeHost(o->in);
    cudaFreeHost(o->out);
    cudaFree(o->in_device);
    cudaFree(o->out_device);
}

bool overlap_measure(struct bench *b)
{
    struct overlap o;
    double samples[3][9], ns;
    unsigned times = b->quick ? 3 : 9;
    bool ok = overlap_create(&o, b->quick ? 8 * MIB : 32 * MIB) && choose_rounds(&o);
    for (unsigned i = 0; ok && i <= times; i++) {
        for (int way = 0; ok && way < 3; way++) {
            ok = run_way(&o, way, &ns);
            if (i) samples[way][i - 1] = ns;
            if (ok && i == times) ok = collect_bars(b, &o, way);
        }
    }
    for (int way = 0; ok && way < 3; way++) b->overlap_ns[way] = spread_of(samples[way], times).median;
    overlap_destroy(&o);
    return ok;
}

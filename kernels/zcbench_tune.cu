/* What a streaming kernel over mapped memory is limited by: width of the accesses, loads in flight a thread, the bulk
 * copy engine of sm_90, the number of blocks; and what happens when every block reads the same bytes. Templates, so
 * they are for the GPU alone. Order of the accesses and cache hints made no difference on an H200 and are not here. */
#include <string.h>
#include "kernels/common.cuh"
#include "kernels/zcbench.h"

#define SAME_BYTES (64 * KIB) /* what every block reads in the "same" variants; a power of two */

struct alignas(4) word1 {
    unsigned word[1];
};

template <typename T> __device__ static inline unsigned long long sum_of(const T &q)
{
    unsigned long long sum = 0;
#pragma unroll
    for (unsigned k = 0; k < sizeof(T) / 4; k++) sum += q.word[k];
    return sum;
}

template <typename T, int FLIGHT> __global__ void tune_read(const T *data, size_t count, unsigned long long *partial)
{
    unsigned long long sum = 0;
    size_t spacing = (size_t)gridDim.x * blockDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < count; i += spacing * FLIGHT) {
        T q[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; k++)
            if (i + k * spacing < count) q[k] = data[i + k * spacing];
#pragma unroll
        for (int k = 0; k < FLIGHT; k++)
            if (i + k * spacing < count) sum += sum_of(q[k]);
    }
    sum = zc_block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* Every block reads all of the same data: from its beginning, or each block from a place of its own on, and around. */
template <bool APART> __global__ void tune_read_same(const zc_quad *data, size_t count, unsigned long long *partial)
{
    size_t start = APART ? count * blockIdx.x / gridDim.x : 0;
    unsigned long long sum = 0;
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) sum += sum_of(data[(start + i) & (count - 1)]);
    sum = zc_block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* Bulk copies of STAGE bytes into shared memory, STAGES of them in flight a block. */
template <int STAGE, int STAGES>
__global__ void tune_read_bulk(const zc_quad *data, size_t count, unsigned long long *partial)
{
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(128) zc_quad stage[STAGES][STAGE / 16];
    __shared__ alignas(8) unsigned long long barrier[STAGES];
    const size_t tiles = count * 16 / STAGE;
    unsigned long long sum = 0;
    auto shared_address = [](const void *p) { return (unsigned)__cvta_generic_to_shared(p); };
    auto issue = [&](size_t tile, int slot) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier[slot])),
                     "r"(STAGE)
                     : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(stage[slot])),
                     "l"(data + tile * (STAGE / 16)), "r"(STAGE), "r"(shared_address(&barrier[slot]))
                     : "memory");
    };
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier[s])) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES; s++)
            if (blockIdx.x + (size_t)s * gridDim.x < tiles) issue(blockIdx.x + (size_t)s * gridDim.x, s);
    size_t turn = 0;
    for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn++) {
        int slot = (int)(turn % STAGES);
        unsigned parity = (unsigned)(turn / STAGES & 1), done = 0;
        while (!done)
            asm volatile("{\n.reg .pred p;\n"
                         "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                         "selp.u32 %0, 1, 0, p;\n}"
                         : "=r"(done)
                         : "r"(shared_address(&barrier[slot])), "r"(parity)
                         : "memory");
        for (unsigned k = threadIdx.x; k < STAGE / 16; k += blockDim.x) sum += sum_of(stage[slot][k]);
        __syncthreads();
        size_t next = tile + (size_t)STAGES * gridDim.x;
        if (threadIdx.x == 0 && next < tiles) issue(next, slot);
    }
    sum = zc_block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
#endif
}

template <typename T> __global__ void tune_write(T *data, size_t count, unsigned long long *)
{
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        T q;
#pragma unroll
        for (unsigned w = 0; w < sizeof(T) / 4; w++) q.word[w] = (unsigned)i + w;
        data[i] = q;
    }
}

typedef void (*runner)(void *data, size_t bytes, unsigned blocks, unsigned long long *partial);

template <typename T, int FLIGHT>
static void run_read(void *data, size_t bytes, unsigned blocks, unsigned long long *partial)
{
    tune_read<T, FLIGHT><<<blocks, ZC_BLOCK>>>((const T *)data, bytes / sizeof(T), partial);
}
template <bool APART> static void run_same(void *data, size_t, unsigned blocks, unsigned long long *partial)
{
    tune_read_same<APART><<<blocks, ZC_BLOCK>>>((const zc_quad *)data, SAME_BYTES / 16, partial);
}
template <int STAGE, int STAGES>
static void run_bulk(void *data, size_t bytes, unsigned blocks, unsigned long long *partial)
{
    tune_read_bulk<STAGE, STAGES><<<blocks, ZC_BLOCK>>>((const zc_quad *)data, bytes / 16, partial);
}
template <typename T> static void run_write(void *data, size_t bytes, unsigned blocks, unsigned long long *partial)
{
    tune_write<T><<<blocks, ZC_BLOCK>>>((T *)data, bytes / sizeof(T), partial);
}

enum variant_kind { STREAM_READ, STREAM_BULK, STREAM_WRITE, SAME_READ };

static const struct variant {
    const char *name;
    runner run;
    enum variant_kind kind;
} variants[] = {
    {"read 16 B, 4 in flight", run_read<zc_quad, 4>,
     STREAM_READ}, /* as stream_read; the first is also run on huge pages */
    {"read 16 B, 1 in flight", run_read<zc_quad, 1>, STREAM_READ},
    {"read 4 B, 4 in flight", run_read<word1, 4>, STREAM_READ},
    {"read 4 B, 1 in flight", run_read<word1, 1>, STREAM_READ},
    {"read bulk 8 KiB, 4 in flight a block", run_bulk<8192, 4>, STREAM_BULK},
    {"write 16 B", run_write<zc_quad>, STREAM_WRITE},
    {"write 4 B", run_write<word1>, STREAM_WRITE},
    {"every block reads the same 64 KiB", run_same<false>, SAME_READ},
    {"... each from another place on", run_same<true>, SAME_READ},
};

struct tuner {
    cudaEvent_t from, to;
    unsigned long long *partial;
    unsigned long long stream_sum, same_sum; /* of the whole data, and of one block's share; 0: not known yet */
};

/* This file's kernels are missing where neither their code nor a compiler for it is: then nothing is tuned. */
static bool runs_here(void *data, unsigned long long *partial)
{
    run_read<word1, 1>(data, sizeof(word1), 1, partial);
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
}

static bool sum_check(struct tuner *t, const struct variant *v, unsigned blocks)
{
    unsigned long long host[PARTIALS_MAX], sum = 0;
    if (v->kind == STREAM_WRITE) return true;
    if (!TRY(cudaMemcpy(host, t->partial, blocks * sizeof *host, cudaMemcpyDeviceToHost))) return false;
    for (unsigned b = 0; b < blocks; b++) sum += host[b];
    unsigned long long *known = v->kind == SAME_READ ? &t->same_sum : &t->stream_sum;
    unsigned long long times = v->kind == SAME_READ ? blocks : 1;
    if (!*known) *known = sum / times;
    if (sum == *known * times) return true;
    fprintf(stderr, "zcbench: \"%s\" with %u blocks gives the sum %llu instead of %llu\n", v->name, blocks, sum,
            *known * times);
    return false;
}

/* Median GB/s of `times` runs. */
static bool run_variant(struct tuner *t, const struct variant *v, void *data, size_t bytes, unsigned blocks,
                        unsigned times, double *gbs)
{
    double samples[16];
    for (unsigned i = 0; i <= times; i++) { /* the first is not counted */
        float ms;
        if (!TRY(cudaEventRecord(t->from, 0))) return false;
        v->run(data, bytes, blocks, t->partial);
        if (!TRY(cudaGetLastError()) || !TRY(cudaEventRecord(t->to, 0)) || !TRY(cudaEventSynchronize(t->to)) ||
            !TRY(cudaEventElapsedTime(&ms, t->from, t->to)))
            return false;
        if (i) samples[i - 1] = ms * 1e6;
    }
    double moved = v->kind == SAME_READ ? (double)SAME_BYTES * blocks : (double)bytes;
    *gbs = moved / spread_of(samples, times).median;
    return sum_check(t, v, blocks);
}

static bool tune_row(struct bench *bench, struct tuner *t, const struct variant *v, void *data, size_t bytes,
                     const char *memory)
{
    unsigned sms = (unsigned)bench->machine.sms;
    const unsigned grids[] = {2, 8, sms / 4, sms / 2, sms, 2 * sms, 4 * sms};
    struct tune_row row = {};
    snprintf(row.name, sizeof row.name, "%s%s", v->name, memory);
    for (unsigned grid : grids) {
        double gbs;
        if (grid > PARTIALS_MAX || !grid || (row.grids && grid <= row.grid[row.grids - 1])) continue;
        if (!run_variant(t, v, data, bytes, grid, bench->quick ? 2 : 5, &gbs)) return false;
        row.grid[row.grids] = grid;
        row.grid_gbs[row.grids++] = gbs;
        if (gbs > row.gbs) row.gbs = gbs;
    }
    for (unsigned g = row.grids; g-- > 0;)
        if (row.grid_gbs[g] > row.gbs * 0.99) row.blocks = row.grid[g];
    if (bench->tune_count < TUNES_MAX) bench->tunes[bench->tune_count++] = row;
    double *top = v->kind == STREAM_WRITE ? &bench->bandwidth.zero_write : &bench->bandwidth.zero_read;
    if (v->kind != SAME_READ && row.gbs > *top) *top = row.gbs;
    return true;
}

extern "C" bool tune_measure(struct bench *bench, void *mapped, void *mapped_huge, size_t bytes)
{
    struct tuner t = {};
    int major = 0;
    bool ok = TRY(cudaEventCreate(&t.from)) && TRY(cudaEventCreate(&t.to)) &&
              TRY(cudaMalloc((void **)&t.partial, PARTIALS_MAX * sizeof *t.partial)) &&
              TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, bench->machine.device));
    if (ok && runs_here(mapped, t.partial)) {
        if (mapped_huge) ok = tune_row(bench, &t, &variants[0], mapped_huge, bytes, " (huge pages)");
        for (const struct variant &v : variants)
            if (ok && (v.kind != STREAM_BULK || major >= 9)) ok = tune_row(bench, &t, &v, mapped, bytes, "");
    }
    cudaEventDestroy(t.from);
    cudaEventDestroy(t.to);
    cudaFree(t.partial);
    return ok;
}

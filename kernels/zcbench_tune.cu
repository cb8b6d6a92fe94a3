/* Variants of the streaming kernels over mapped memory: access width, loads in flight, order of the accesses, cache
 * hints, the bulk copy engine of sm_90, and the number of blocks. One run tells which of them the bus likes best.
 * Templates, so they are for the GPU alone; what wins becomes the bundled kernel. */
#include <string.h>
#include "kernels/common.cuh"
#include "kernels/zcbench.h"

enum order {
    ORDER_GRID,
    ORDER_TILE,
    ORDER_CHUNK
}; /* neighbours: the whole grid's, the block's, each block its own part */
enum hint { HINT_NONE, HINT_L2_128, HINT_L2_256, HINT_STREAMING };

struct alignas(4) word1 {
    unsigned word[1];
};
struct alignas(8) word2 {
    unsigned word[2];
};

template <typename T, int HINT> __device__ static inline T load(const T *from)
{
    if constexpr (sizeof(T) == 16 && HINT != HINT_NONE) {
        T q;
        if constexpr (HINT == HINT_L2_128)
            asm volatile("ld.global.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
                         : "=r"(q.word[0]), "=r"(q.word[1]), "=r"(q.word[2]), "=r"(q.word[3])
                         : "l"(from));
        else if constexpr (HINT == HINT_L2_256)
            asm volatile("ld.global.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
                         : "=r"(q.word[0]), "=r"(q.word[1]), "=r"(q.word[2]), "=r"(q.word[3])
                         : "l"(from));
        else
            asm volatile("ld.global.cs.v4.u32 {%0,%1,%2,%3}, [%4];"
                         : "=r"(q.word[0]), "=r"(q.word[1]), "=r"(q.word[2]), "=r"(q.word[3])
                         : "l"(from));
        return q;
    } else {
        return *from;
    }
}

template <typename T> __device__ static inline unsigned long long sum_of(const T &q)
{
    unsigned long long sum = 0;
#pragma unroll
    for (unsigned k = 0; k < sizeof(T) / 4; k++) sum += q.word[k];
    return sum;
}

/* `count` is a multiple of all that any grid takes in one turn; the caller sees to it. */
template <typename T, int FLIGHT, int ORDER, int HINT>
__global__ void tune_read(const T *data, size_t count, unsigned long long *partial)
{
    unsigned long long sum = 0;
    size_t spacing = ORDER == ORDER_GRID ? (size_t)gridDim.x * blockDim.x : blockDim.x;
    size_t i = threadIdx.x, end = count, step = (size_t)gridDim.x * blockDim.x * FLIGHT;
    if (ORDER == ORDER_GRID) {
        i += (size_t)blockIdx.x * blockDim.x;
    } else if (ORDER == ORDER_TILE) {
        i += (size_t)blockIdx.x * blockDim.x * FLIGHT;
    } else {
        size_t part = (count + gridDim.x - 1) / gridDim.x, tile = (size_t)blockDim.x * FLIGHT;
        part = (part + tile - 1) / tile * tile;
        i += part * blockIdx.x;
        if (part * (blockIdx.x + 1) < end) end = part * (blockIdx.x + 1);
        step = tile;
    }
    for (; i < end; i += step) {
        T q[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; k++)
            if (i + k * spacing < end) q[k] = load<T, HINT>(data + i + k * spacing);
#pragma unroll
        for (int k = 0; k < FLIGHT; k++)
            if (i + k * spacing < end) sum += sum_of(q[k]);
    }
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

template <typename T, int FLIGHT, int ORDER, int HINT>
__global__ void tune_write(T *data, size_t count, unsigned long long *)
{
    size_t spacing = ORDER == ORDER_GRID ? (size_t)gridDim.x * blockDim.x : blockDim.x;
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x * (ORDER == ORDER_GRID ? 1 : FLIGHT);
    size_t step = (size_t)gridDim.x * blockDim.x * FLIGHT;
    for (; i < count; i += step) {
#pragma unroll
        for (int k = 0; k < FLIGHT; k++) {
            size_t at = i + k * spacing;
            if (at >= count) continue;
            T q;
#pragma unroll
            for (unsigned w = 0; w < sizeof(T) / 4; w++) q.word[w] = (unsigned)at + w;
            if constexpr (HINT == HINT_STREAMING && sizeof(T) == 16)
                asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(data + at), "r"(q.word[0]),
                             "r"(q.word[1]), "r"(q.word[2]), "r"(q.word[3])
                             : "memory");
            else
                data[at] = q;
        }
    }
}

typedef void (*runner)(void *data, size_t bytes, unsigned blocks, unsigned long long *partial);

template <typename T, int FLIGHT, int ORDER, int HINT>
static void run_read(void *data, size_t bytes, unsigned blocks, unsigned long long *partial)
{
    tune_read<T, FLIGHT, ORDER, HINT><<<blocks, ZC_BLOCK>>>((const T *)data, bytes / sizeof(T), partial);
}
template <int STAGE, int STAGES>
static void run_bulk(void *data, size_t bytes, unsigned blocks, unsigned long long *partial)
{
    tune_read_bulk<STAGE, STAGES><<<blocks, ZC_BLOCK>>>((const zc_quad *)data, bytes / 16, partial);
}
template <typename T, int FLIGHT, int ORDER, int HINT>
static void run_write(void *data, size_t bytes, unsigned blocks, unsigned long long *partial)
{
    tune_write<T, FLIGHT, ORDER, HINT><<<blocks, ZC_BLOCK>>>((T *)data, bytes / sizeof(T), partial);
}

struct variant {
    const char *name;
    runner run;
    bool writes, bulk;
};
static const struct variant variants[] = {
    {"read 4 B, 1 in flight", run_read<word1, 1, ORDER_GRID, HINT_NONE>, false, false},
    {"read 4 B, 4 in flight", run_read<word1, 4, ORDER_GRID, HINT_NONE>, false, false},
    {"read 8 B, 4 in flight", run_read<word2, 4, ORDER_GRID, HINT_NONE>, false, false},
    {"read 16 B, 1 in flight", run_read<zc_quad, 1, ORDER_GRID, HINT_NONE>, false, false},
    {"read 16 B, 4 in flight", run_read<zc_quad, 4, ORDER_GRID, HINT_NONE>, false, false},
    {"read 16 B, 8 in flight", run_read<zc_quad, 8, ORDER_GRID, HINT_NONE>, false, false},
    {"read 16 B, 2 in flight, tiles", run_read<zc_quad, 2, ORDER_TILE, HINT_NONE>, false, false},
    {"read 16 B, 4 in flight, tiles", run_read<zc_quad, 4, ORDER_TILE, HINT_NONE>, false, false},
    {"read 16 B, 8 in flight, tiles", run_read<zc_quad, 8, ORDER_TILE, HINT_NONE>, false, false},
    {"read 16 B, 4 in flight, a part a block", run_read<zc_quad, 4, ORDER_CHUNK, HINT_NONE>, false, false},
    {"read 16 B, 4 in flight, tiles, L2 128 B", run_read<zc_quad, 4, ORDER_TILE, HINT_L2_128>, false, false},
    {"read 16 B, 4 in flight, tiles, L2 256 B", run_read<zc_quad, 4, ORDER_TILE, HINT_L2_256>, false, false},
    {"read 16 B, 4 in flight, tiles, streaming", run_read<zc_quad, 4, ORDER_TILE, HINT_STREAMING>, false, false},
    {"read bulk 2 KiB, 4 in flight", run_bulk<2048, 4>, false, true},
    {"read bulk 8 KiB, 4 in flight", run_bulk<8192, 4>, false, true},
    {"read bulk 16 KiB, 2 in flight", run_bulk<16384, 2>, false, true},
    {"write 4 B", run_write<word1, 1, ORDER_GRID, HINT_NONE>, true, false},
    {"write 16 B", run_write<zc_quad, 1, ORDER_GRID, HINT_NONE>, true, false},
    {"write 16 B, 4 a thread, tiles", run_write<zc_quad, 4, ORDER_TILE, HINT_NONE>, true, false},
    {"write 16 B, streaming", run_write<zc_quad, 1, ORDER_GRID, HINT_STREAMING>, true, false},
};

struct tuner {
    cudaEvent_t from, to;
    unsigned long long *partial;
};

/* This file's kernels are missing where neither their code nor a compiler for it is: then nothing is tuned. */
static bool runs_here(void *data, unsigned long long *partial)
{
    run_read<word1, 1, ORDER_GRID, HINT_NONE>(data, sizeof(word1), 1, partial);
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
}

/* Median GB/s of `times` runs; with `sum`, the sum that the variant found. */
static bool run_variant(struct tuner *t, const struct variant *v, void *data, size_t bytes, unsigned blocks,
                        unsigned times, double *gbs, unsigned long long *sum)
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
    *gbs = bytes / spread_of(samples, times).median;
    unsigned long long host[PARTIALS_MAX];
    *sum = 0;
    if (v->writes) return true;
    if (!TRY(cudaMemcpy(host, t->partial, blocks * sizeof *host, cudaMemcpyDeviceToHost))) return false;
    for (unsigned b = 0; b < blocks; b++) *sum += host[b];
    return true;
}

static bool tune_buffer(struct bench *bench, struct tuner *t, void *data, size_t bytes, const char *memory,
                        bool read_only_best)
{
    unsigned sms = (unsigned)bench->machine.sms,
             grids[] = {sms / 8 + 1, sms / 4, sms / 2, sms, 2 * sms, 4 * sms, 8 * sms};
    unsigned times = bench->quick ? 2 : 5;
    unsigned long long expected = 0;
    int major = 0;
    if (!TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, bench->machine.device))) return false;
    for (const struct variant &v : variants) {
        struct tune_row best = {};
        if ((v.bulk && major < 9) || (v.writes && read_only_best)) continue;
        for (unsigned grid : grids) {
            double gbs;
            unsigned long long sum;
            if (grid > PARTIALS_MAX || grid == 0) continue;
            if (!run_variant(t, &v, data, bytes, grid, times, &gbs, &sum)) return false;
            if (!v.writes && !expected) expected = sum;
            if (!v.writes && sum != expected) {
                fprintf(stderr, "zcbench: \"%s\" with %u blocks gives the sum %llu instead of %llu\n", v.name, grid,
                        sum, expected);
                return false;
            }
            if (gbs > best.gbs) best.gbs = gbs, best.blocks = grid;
        }
        snprintf(best.name, sizeof best.name, "%s%s", v.name, memory);
        if (bench->tune_count < TUNES_MAX) bench->tunes[bench->tune_count++] = best;
        double *top = v.writes ? &bench->bandwidth.zero_write : &bench->bandwidth.zero_read;
        if (best.gbs > *top) *top = best.gbs;
    }
    return true;
}

extern "C" bool tune_measure(struct bench *bench, void *mapped, void *mapped_huge, size_t bytes)
{
    struct tuner t;
    bool ok = TRY(cudaEventCreate(&t.from)) && TRY(cudaEventCreate(&t.to)) &&
              TRY(cudaMalloc((void **)&t.partial, PARTIALS_MAX * sizeof *t.partial));
    if (ok && runs_here(mapped, t.partial))
        ok = tune_buffer(bench, &t, mapped, bytes, "", false) &&
             (!mapped_huge || tune_buffer(bench, &t, mapped_huge, bytes, " (huge pages)", true));
    cudaEventDestroy(t.from);
    cudaEventDestroy(t.to);
    cudaFree(t.partial);
    return ok;
}

// Kernels with known answers for the PTX analysis: see ptx_corpus.def for what each does to the memory of its parameters.
// Compiled to PTX only, never run.
#include <cstdint>
#include <cassert>
#include <cstdio>
#include <cuda_fp16.h>
#include <mma.h>

#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)

// Plain reads and writes
KERNEL k_nothing() {}
KERNEL k_unused(const float *a, float *b, int n) {}
KERNEL k_write(float *out) { out[I] = 1; }
KERNEL k_copy(float *out, const float *in) { out[I] = in[I]; }
KERNEL k_in_place(float *a) { a[I] *= 2; }
KERNEL k_read_twice(float *out, const float *a, int shift) { out[I] = a[I] + a[I + shift]; }
KERNEL k_bounds_check(float *out, const float *a, int n) { if (I < n) out[I] = a[I]; }
KERNEL k_gather(float *out, const float *table, const int *index, int n) { if (I < n) out[I] = table[index[I]]; }
KERNEL k_gather_long(float *out, const float *table, const int64_t *index) { out[I] = table[index[I]]; }
KERNEL k_gather_bytes(char *out, const char *table, const unsigned *index) { out[I] = table[index[I]]; }
KERNEL k_scatter(float *out, const float *in, const int *index) { out[index[I]] = in[I]; }
KERNEL k_vector(float4 *out, const float4 *a, const double2 *b) { float4 v = a[I]; v.x += b[I].y + b[I].x; out[I] = v; }
KERNEL k_ldg(float *out, const float *__restrict__ a) { out[I] = __ldg(&a[I]); }
KERNEL k_double_half(double *out, const __half *a, const short *b) { out[I] = __half2float(a[I]) + b[I]; }
KERNEL k_alternative(float *out, const float *a, const float *b, int which) { const float *p = which ? a : b; out[I] = p[I]; }
KERNEL k_alternative_write(float *a, float *b, const float *in, int which) { float *p = which ? a : b; p[I] = in[I]; }
KERNEL k_two_dimensions(float *out, const float *in, size_t pitch) { out[I] = *(const float *)((const char *)in + blockIdx.y * pitch + threadIdx.x * 4); }
KERNEL k_difference(float *out, const float *from, const float *to) { out[I] = to - from; }
KERNEL k_32_bit_halves(float *out, unsigned low, unsigned high) { *(float *)((uint64_t)high << 32 | low) = 1; }
KERNEL k_xor_pointers(float *out, uint64_t mixed) { *(float *)(mixed ^ (uint64_t)out) = 1; }
KERNEL k_align_down(const char *in, int *out) { out[I] = *(const int *)((uint64_t)(in + I) & ~15ull); }
KERNEL k_integer_parameter(uint64_t where, int v) { ((int *)where)[I] = v; }

// Loops
KERNEL k_loop_constant(float *out, const float *in) { float s = 0; for (int k = 0; k < 1000; k++) s = s * s + in[I * 1000 + k]; out[I] = s; }
KERNEL k_loop_nested(float *out, const float *in) {
    float s = 0;
#pragma unroll 1
    for (int k = 0; k < 100; k++)
#pragma unroll 1
        for (int j = 0; j < 50; j += 2) s = s * s + in[k * j + I];
    out[I] = s;
}
KERNEL k_loop_down(float *out, const float *in) {
    float s = 0;
#pragma unroll 1
    for (int k = 300; k > 0; k -= 3) s = s * s + in[k * I];
    out[I] = s;
}
KERNEL k_loop_parameter(float *out, const float *in, int n) { float s = 0; for (int k = 0; k < n; k++) s += in[k]; out[I] = s; }
KERNEL k_loop_grid_stride(float *out, const float *in, int n) { for (int k = I; k < n; k += gridDim.x * blockDim.x) out[k] = in[k]; }
KERNEL k_loop_break(float *out, const float *in) {
    float s = 0;
#pragma unroll 1
    for (int k = 0; k < 64; k++) { float v = in[I + k * k]; if (v < 0) break; s = s * s + v; }
    out[I] = s;
}
KERNEL k_loop_data(int *out, const int *next) { int at = I; while (at >= 0) at = next[at]; out[I] = at; }
KERNEL k_unrolled(float *out, const float *in) { float s = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) s += in[I * 8 + k];
    out[I] = s; }
KERNEL k_triangle(float *out, const float *in) {
    float s = 0;
#pragma unroll 1
    for (int k = 0; k < 10; k++)
#pragma unroll 1
        for (int j = 0; j < k; j++) s = s * s + in[k * j + I];
    out[I] = s;
}

// Structures by value
struct Pair { const float *in; float *out; };
struct Packed { char tag; const float *in; float *out; } __attribute__((packed));
struct Many { float *p[4]; int n; };
struct Deep { int n; Pair a, b; double scale; };
KERNEL k_struct(Pair p) { p.out[I] = p.in[I]; }
KERNEL k_struct_deep(int x, Deep d) { d.b.out[I] = d.a.in[I] * d.scale + x; }
KERNEL k_struct_packed(Packed p) { p.out[I] = p.in[I]; }
KERNEL k_struct_indexed(Many m, int which) { m.p[which & 3][I] = which; }
KERNEL k_struct_grid_constant(const __grid_constant__ Many m, int which) { m.p[which & 3][I] = which; }
KERNEL k_struct_unused(Many m, float *out) { out[I] = m.n; }

// Pointers in memory
struct Node { Node *next; float value; };
KERNEL k_pointer_table(float *out, float *const *rows) { out[I] = rows[I][threadIdx.x]; }
KERNEL k_pointer_table_write(float **rows, float v) { rows[I][threadIdx.x] = v; }
KERNEL k_list(float *out, const Node *node) { float s = 0; for (; node; node = node->next) s += node->value; out[I] = s; }
KERNEL k_pointer_shared(float *out, const float *in) {
    __shared__ float *where[32];
    if (threadIdx.x < 32) where[threadIdx.x] = out;
    __syncthreads();
    where[threadIdx.x & 31][I] = in[I];
}
KERNEL k_pointer_local(float *a, float *b, const float *in, int which) { float *p[2] = {a, b}; p[which & 1][I] = in[I]; }
KERNEL k_pointer_escapes(float **slot, float *p) { *slot = p; }
KERNEL k_pointer_comes_back(float **slot, float *p) { *(float *volatile *)slot = p; **(float *volatile *)slot = 1; }
KERNEL k_heap(float *out) { float *p = (float *)malloc(64); if (p) { p[threadIdx.x] = 1; out[I] = p[0]; free(p); } }

// Shared and local memory
KERNEL k_shared(float *out, const float *in) { __shared__ float a[256]; a[threadIdx.x] = in[I]; __syncthreads(); out[I] = a[255 - threadIdx.x]; }
KERNEL k_shared_dynamic(float *out, const float *in) { extern __shared__ float d[]; d[threadIdx.x] = in[I]; __syncthreads(); out[I] = d[threadIdx.x ^ 1]; }
KERNEL k_shared_generic(float *out, const float *in, int which) {
    __shared__ float a[256];
    const float *p = which ? a : in;
    a[threadIdx.x] = which;
    __syncthreads();
    out[I] = p[threadIdx.x];
}
KERNEL k_shared_index(float *out, const float *in, const int *index) {
    __shared__ int a[256];
    a[threadIdx.x] = index[I];
    __syncthreads();
    out[I] = in[a[threadIdx.x ^ 1]];
}
KERNEL k_shared_atomic(int *out) { __shared__ int count; if (!threadIdx.x) count = 0; __syncthreads(); atomicAdd(&count, 1); __syncthreads(); out[I] = count; }
KERNEL k_shared_async(float *out, const float *in) {
    __shared__ float a[256];
    unsigned to = (unsigned)__cvta_generic_to_shared(&a[threadIdx.x]);
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in + I) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
#else
    asm volatile("{ .reg .f32 t; ld.global.f32 t, [%1]; st.shared.f32 [%0], t; }" ::"r"(to), "l"(in + I) : "memory");
#endif
    out[I] = a[threadIdx.x];
}
KERNEL k_local_array(float *out, const float *in, int which) { float a[16]; for (int k = 0; k < 16; k++) a[k] = in[I * 16 + k]; out[I] = a[which & 15]; }

// Atomics and polling
__device__ int counter;
__device__ float *hidden;
__constant__ float weights[16];
__constant__ float *constant_pointer;
KERNEL k_atomic(int *a, const int *in) { atomicAdd(&a[in[I]], 1); }
KERNEL k_atomic_result(int *out, int *a) { out[I] = atomicAdd(a, 1); }
KERNEL k_atomic_float(float *a, double *b) { atomicAdd(a, 1.f); atomicAdd(b, 1.); }
KERNEL k_atomic_cas(int *lock, int *out) { while (atomicCAS(lock, 0, 1)) continue; *out += 1; __threadfence(); atomicExch(lock, 0); }
KERNEL k_atomic_variable(int *out) { out[I] = atomicAdd(&counter, 1); }
KERNEL k_poll(volatile int *flag, float *out) { while (!*flag) continue; out[I] = 1; }
KERNEL k_poll_acquire(int *flag, float *out) {
    int v;
    do
        asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    while (!v);
    out[I] = 1;
}
KERNEL k_volatile_once(volatile int *flag, int *out) { out[I] = *flag; }

// Module variables
KERNEL k_variable_write(const int *in) { counter = in[I]; }
KERNEL k_variable_pointer(float v) { hidden[I] = v; }
KERNEL k_constant_read(float *out, int which) { out[I] = weights[which]; }
KERNEL k_constant_pointer(float v) { constant_pointer[I] = v; }

// Calls
__device__ __noinline__ float called_read(const float *p, int i) { return p[i] * 2; }
__device__ __noinline__ void called_write(float *p, int i) { p[i] = 2; }
__device__ __noinline__ float *called_choose(float *a, float *b, int which) { return which ? a : b; }
__device__ __noinline__ float called_struct(Pair p, int i) { p.out[i] = 3; return p.in[i]; }
__device__ __noinline__ int called_recursive(const int *p, int n) { return n < 2 ? p[n] : called_recursive(p, n - 1) + called_recursive(p, n - 2); }
__device__ float operation_a(float x) { return x + 1; }
__device__ float operation_b(float x) { return x * 2; }
KERNEL k_call_read(float *out, const float *in) { out[I] = called_read(in, I); }
KERNEL k_call_write(float *out, const float *in) { called_write(out, in[I]); }
KERNEL k_call_both(float *out, const float *in, float *other) { other[I] = called_read(out, I) + called_read(in, I); }
KERNEL k_call_choose(float *a, float *b, const float *in) { called_choose(a, b, in[I])[I] = 1; }
KERNEL k_call_struct(Pair p, float *out) { out[I] = called_struct(p, I); }
KERNEL k_call_loop(float *out, const float *in) {
    float s = 0;
#pragma unroll 1
    for (int k = 0; k < 20; k++) s = s * s + called_read(in, k * I);
    out[I] = s;
}
KERNEL k_call_recursive(int *out, const int *in) { out[I] = called_recursive(in, 7); }
KERNEL k_call_pointer(float *out, const float *in, int which) {
    float (*f)(float) = which & 1 ? operation_a : operation_b;
    for (int k = 0; k < which; k++) f = k & 2 ? operation_b : f;
    out[I] = f(in[I]);
}
KERNEL k_printf(const float *in) { printf("%f\n", in[I]); }
KERNEL k_assert(float *out, const int *in) { assert(in[I] < 7); out[I] = 1; }

// Textures, surfaces, matrices, warps
KERNEL k_texture(float *out, cudaTextureObject_t t) { out[I] = tex1Dfetch<float>(t, I); }
KERNEL k_surface(cudaSurfaceObject_t s, const float *in) { surf1Dwrite(in[I], s, I * 4); }
KERNEL k_matrix(float *out, const __half *a, const __half *b) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> c;
    fill_fragment(c, 0.f);
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    mma_sync(c, fa, fb, c);
    store_matrix_sync(out, c, 16, mem_row_major);
}
KERNEL k_shuffle(float *out, const float *in) { float v = in[I]; for (int k = 16; k; k /= 2) v += __shfl_xor_sync(~0u, v, k); out[I] = v; }
KERNEL k_ballot(int *out, const int *in) { out[I] = __ballot_sync(~0u, in[I] > 0) + __popc(__activemask()); }

// Inline assembly
KERNEL k_asm_store(float *out, float v) { asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(out + I), "f"(v) : "memory"); }
KERNEL k_asm_scope(int *out, const int *in) {
    int v;
    asm volatile("{ .reg .pred p; .reg .b64 a; mov.u64 a, %1; setp.eq.u64 p, a, 0; @p bra SKIP; ld.global.s32 %0, [a]; SKIP: }" : "=r"(v) : "l"(in + I));
    asm volatile("{ .reg .pred p; .reg .b64 a; mov.u64 a, %1; setp.eq.u64 p, a, 0; @p bra SKIP; st.global.s32 [a], %0; SKIP: }" ::"r"(v), "l"(out + I) : "memory");
}
KERNEL k_asm_carry(const float *in, float *out, unsigned step) {
    unsigned low, high, zero = 0;
    asm volatile("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(in));
    asm volatile("add.cc.u32 %0, %0, %2; addc.u32 %1, %1, %3;" : "+r"(low), "+r"(high) : "r"(step), "r"(zero));
    const float *p;
    asm volatile("mov.b64 %0, {%1, %2};" : "=l"(p) : "r"(low), "r"(high));
    out[I] = *p;
}
KERNEL k_asm_reduction(int *a) { asm volatile("red.global.add.s32 [%0], 1;" ::"l"(a + I) : "memory"); }
KERNEL k_asm_generic_reduction(int *a) { asm volatile("red.add.s32 [%0], 1;" ::"l"(a + I) : "memory"); }

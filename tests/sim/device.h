/* Lets g++ compile a file of kernels: `g++ -include tests/sim/device.h`.
 * Offers what the project's kernels may use: thread indices, static shared memory, barriers, atomics, vector types. */
#ifndef ZCSIM_DEVICE_H
#define ZCSIM_DEVICE_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <type_traits>
#include <utility>
#include <vector_types.h>
#include <vector_functions.h>
#include "tests/sim/kernel_abi.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __managed__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#undef __restrict__
#define __global__ __attribute__((visibility("default"), unused))
#define __device__ __attribute__((visibility("default"), unused))
#define __host__
#define __shared__   static thread_local
#define __constant__ __attribute__((visibility("default")))
#define __managed__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict

extern thread_local zcsim_thread *zcsim_self;
#define threadIdx (zcsim_self->thread)
#define blockIdx  (zcsim_self->block)
#define blockDim  (zcsim_self->block_size)
#define gridDim   (zcsim_self->grid_size)
static const int warpSize = 32;

static inline void __syncthreads() { zcsim_self->barrier(); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __nanosleep(unsigned) {}
static inline void __trap() { __builtin_trap(); }

/* A clock of 2 GHz. */
static inline long long clock64()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 2 * (now.tv_sec * 1000000000ll + now.tv_nsec);
}
static inline long long zcsim_clock() { return clock64(); }
#define clock() zcsim_clock()
static inline unsigned long long __globaltimer() { return (unsigned long long)clock64() / 2; }

/* Atomics: any type of 4 or 8 bytes, by compare and swap on its bits. */
template <class T> using zcsim_bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T, class F> static inline T zcsim_atomic(T *at, F change)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics are of 4 or 8 bytes");
    auto *bits = reinterpret_cast<zcsim_bits<T> *>(at);
    zcsim_bits<T> before = __atomic_load_n(bits, __ATOMIC_RELAXED), after;
    T old, changed;
    do {
        memcpy(&old, &before, sizeof old);
        changed = change(old);
        memcpy(&after, &changed, sizeof after);
    } while (!__atomic_compare_exchange_n(bits, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return old;
}
template <class T> struct zcsim_same {
    using type = T;
};
template <class T> using zcsim_same_t = typename zcsim_same<T>::type;
#define ZCSIM_ATOMIC(name, expression)                                                                                 \
    template <class T> static inline T name(T *at, zcsim_same_t<T> value)                                              \
    {                                                                                                                  \
        return zcsim_atomic(at, [value](T old) -> T { return expression; });                                           \
    }                                                                                                                  \
    template <class T> static inline T name##_system(T *at, zcsim_same_t<T> value) { return name(at, value); }         \
    template <class T> static inline T name##_block(T *at, zcsim_same_t<T> value) { return name(at, value); }
ZCSIM_ATOMIC(atomicAdd, static_cast<T>(old + value))
ZCSIM_ATOMIC(atomicSub, static_cast<T>(old - value))
ZCSIM_ATOMIC(atomicMin, old < value ? old : value)
ZCSIM_ATOMIC(atomicMax, old > value ? old : value)
ZCSIM_ATOMIC(atomicAnd, static_cast<T>(old &value))
ZCSIM_ATOMIC(atomicOr, static_cast<T>(old | value))
ZCSIM_ATOMIC(atomicXor, static_cast<T>(old ^ value))
ZCSIM_ATOMIC(atomicExch, ((void)old, value))
ZCSIM_ATOMIC(atomicInc, static_cast<T>(old >= value ? 0 : old + 1))
ZCSIM_ATOMIC(atomicDec, static_cast<T>(old == 0 || old > value ? value : old - 1))
template <class T> static inline T atomicCAS(T *at, zcsim_same_t<T> expected, zcsim_same_t<T> value)
{
    return zcsim_atomic(at, [expected, value](T old) -> T { return old == expected ? value : old; });
}

template <class T> static inline T __ldg(const T *at) { return *at; }
template <class T> static inline T __ldcg(const T *at) { return *at; }
template <class T> static inline T __ldcs(const T *at) { return *at; }
template <class T> static inline void __stcs(T *at, T value) { *at = value; }

/* glibc declares some of these names for itself, so they are macros. */
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
#define __expf(x)    expf(x)
#define __logf(x)    logf(x)
#define __sinf(x)    sinf(x)
#define __cosf(x)    cosf(x)
#define __powf(x, y) powf(x, y)
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static inline int __float_as_int(float x)
{
    int y;
    memcpy(&y, &x, 4);
    return y;
}
static inline unsigned __float_as_uint(float x)
{
    unsigned y;
    memcpy(&y, &x, 4);
    return y;
}
static inline float __int_as_float(int x)
{
    float y;
    memcpy(&y, &x, 4);
    return y;
}
static inline float __uint_as_float(unsigned x)
{
    float y;
    memcpy(&y, &x, 4);
    return y;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
template <class A, class B> static inline std::common_type_t<A, B> min(A a, B b)
{
    using T = std::common_type_t<A, B>;
    return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B> static inline std::common_type_t<A, B> max(A a, B b)
{
    using T = std::common_type_t<A, B>;
    return (T)a < (T)b ? (T)b : (T)a;
}
using std::abs;
using std::isfinite;
using std::isinf;
using std::isnan;

/* ---- used by the generated list of kernels ---- */
template <class F> struct zcsim_entry;
template <class... A> struct zcsim_entry<void (*)(A...)> {
    template <class T> static constexpr zcsim_argument_kind kind()
    {
        return std::is_pointer_v<T> ? ZCSIM_POINTER : std::is_class_v<T> ? ZCSIM_STRUCTURE : ZCSIM_SCALAR;
    }
    static constexpr zcsim_argument arguments[sizeof...(A) + 1] = {{sizeof(A), alignof(A), kind<A>()}...,
                                                                   {0, 1, ZCSIM_SCALAR}};
    template <void (*kernel)(A...), size_t... I> static void call(void **values, std::index_sequence<I...>)
    {
        (void)values;
        kernel(*static_cast<A *>(values[I])...);
    }
    template <void (*kernel)(A...)> static void invoke(void **values)
    {
        call<kernel>(values, std::index_sequence_for<A...>{});
    }
    template <void (*kernel)(A...)> static constexpr zcsim_kernel describe(const char *name)
    {
        return {name, invoke<kernel>, sizeof...(A), arguments};
    }
};
#define ZCSIM_KERNEL(name) zcsim_entry<decltype(&name)>::describe<&name>(#name)

#endif

/* The exported functions of the malloc family, for machines without an assembly version. Included by libc.c only. */
static inline bool is_small(size_t bytes) { return bytes < __atomic_load_n(&libc_next.min, __ATOMIC_ACQUIRE); }

static inline bool is_foreign(const void *address)
{
    uintptr_t base = __atomic_load_n(&libc_next.base, __ATOMIC_ACQUIRE);
    return (uintptr_t)address - base >= __atomic_load_n(&libc_next.bytes, __ATOMIC_ACQUIRE) &&
           ((uintptr_t)address & 0xfff);
}

EXPORT void *malloc(size_t bytes) { return is_small(bytes) ? libc_next.malloc(bytes) : libc_malloc_slow(bytes); }

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    bool small = !__builtin_mul_overflow(count, size, &bytes) && is_small(bytes);
    return small ? libc_next.calloc(count, size) : libc_calloc_slow(count, size);
}

EXPORT void *realloc(void *address, size_t bytes)
{
    return is_foreign(address) && is_small(bytes) ? libc_next.realloc(address, bytes)
                                                  : libc_realloc_slow(address, bytes);
}

EXPORT void free(void *address)
{
    if (is_foreign(address))
        libc_next.free(address);
    else
        libc_free_slow(address);
}

EXPORT int posix_memalign(void **address, size_t alignment, size_t bytes)
{
    return is_small(bytes) ? libc_next.posix_memalign(address, alignment, bytes)
                           : libc_posix_memalign_slow(address, alignment, bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    return is_small(bytes) ? libc_next.aligned_alloc(alignment, bytes) : libc_aligned_alloc_slow(alignment, bytes);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    return is_small(bytes) ? libc_next.memalign(alignment, bytes) : libc_memalign_slow(alignment, bytes);
}

EXPORT void *valloc(size_t bytes) { return is_small(bytes) ? libc_next.valloc(bytes) : libc_valloc_slow(bytes); }

EXPORT void *pvalloc(size_t bytes) { return is_small(bytes) ? libc_next.pvalloc(bytes) : libc_pvalloc_slow(bytes); }

EXPORT size_t malloc_usable_size(void *address)
{
    return is_foreign(address) ? libc_next.malloc_usable_size(address) : libc_usable_slow(address);
}

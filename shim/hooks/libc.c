/* The malloc family and the calls that change mappings.
 *
 * Small requests and foreign pointers are tail jumps to the next allocator in scope (libc's, or another preloaded one).
 * The numbers that the jumps compare with start so that everything goes the slow way, which finds the next functions
 * and settles what can be settled: a library's IFUNC resolver may get here before this library is relocated, a
 * constructor before this library's own. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "shim/buffer.h"
#include "shim/hooks/libc_early.h"
#include "shim/hostmem.h"
#include "shim/hostmem_alloc.h"
#include "shim/log.h"
#include "shim/report.h"
#include "shim/route.h"
#include "shim/shim.h"

#define EXPORT __attribute__((visibility("default")))

/* Read by the assembly below: the order is part of it. Written with release, the functions first. What malloc and free
 * read lies in one cache line, and nothing that is written in the same one. */
struct libc_next {
    size_t min;     /* requests from here on go the slow way; 0 until the options are known */
    uintptr_t base; /* of the large blocks' range */
    size_t bytes;   /* SIZE_MAX: the functions below are not known yet */
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
    bool usable_is_known; /* malloc and malloc_usable_size are of one allocator */
} __attribute__((aligned(64)));
__attribute__((visibility("hidden"))) struct libc_next libc_next = {.bytes = SIZE_MAX};

static __thread bool resolving;

static bool same_object(void *one, void *other)
{
    Dl_info first, second;
    return one && other && dladdr(one, &first) && dladdr(other, &second) && first.dli_fbase == second.dli_fbase;
}

static void resolve(void)
{
    struct libc_next *next = &libc_next;
    resolving = true;
#define FIND(name) __atomic_store_n((void **)&next->name, route_real_dlsym(RTLD_NEXT, #name), __ATOMIC_RELEASE)
    FIND(calloc);
    FIND(realloc);
    FIND(free);
    FIND(posix_memalign);
    FIND(aligned_alloc);
    FIND(memalign);
    FIND(valloc);
    FIND(pvalloc);
    FIND(malloc_usable_size);
    void *found = route_real_dlsym(RTLD_NEXT, "malloc");
    next->usable_is_known = same_object(found, (void *)next->malloc_usable_size);
    __atomic_store_n((void **)&next->malloc, found, __ATOMIC_RELEASE);
    resolving = false;
    size_t unknown = SIZE_MAX;
    __atomic_compare_exchange_n(&next->bytes, &unknown, (size_t)0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* The next allocator's functions are known (true), or only the early arena can serve (false). */
static bool libc_ready(void)
{
    if (!early_relocated()) return false;
    if (__atomic_load_n((void **)&libc_next.malloc, __ATOMIC_ACQUIRE)) return true;
    if (resolving) return false;
    resolve();
    return __atomic_load_n((void **)&libc_next.malloc, __ATOMIC_ACQUIRE) != NULL;
}

/* The smallest block of ours, settled once the options are read. Before, everything is libc's. */
static size_t settled_min(void)
{
    size_t min = __atomic_load_n(&libc_next.min, __ATOMIC_RELAXED);
    if (min) return min;
    int state = atomic_load_explicit(&shim.state, memory_order_acquire);
    if (state == SHIM_NEW || state == SHIM_STARTING) return SIZE_MAX;
    min = hostmem_min_bytes();
    __atomic_store_n(&libc_next.min, min, __ATOMIC_RELEASE);
    return min;
}

/* A block of ours, or NULL: libc's turn. */
static void *take(size_t bytes, size_t alignment, bool zeroed)
{
    if (bytes < settled_min() || bytes > PTRDIFF_MAX || (alignment & (alignment - 1))) return NULL;
    int kept = errno;
    void *block = hostmem_block_take(bytes, alignment, zeroed);
    errno = kept;
    if (block && !__atomic_load_n(&libc_next.base, __ATOMIC_RELAXED)) {
        uintptr_t base;
        size_t range;
        hostmem_range(&base, &range);
        __atomic_store_n(&libc_next.base, base, __ATOMIC_RELEASE);
        __atomic_store_n(&libc_next.bytes, range, __ATOMIC_RELEASE);
    }
    return block;
}

#define SLOW __attribute__((visibility("hidden"), noinline, used))

SLOW void *libc_malloc_slow(size_t bytes)
{
    if (!libc_ready()) return early_take(bytes);
    void *block = take(bytes, 16, false);
    return block ? block : libc_next.malloc(bytes);
}

SLOW void *libc_calloc_slow(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    if (!libc_ready()) return bytes == SIZE_MAX ? NULL : early_take(bytes); /* its pages are fresh */
    void *block = take(bytes, 16, true);
    return block ? block : libc_next.calloc(count, size);
}

static __attribute__((noreturn)) void invalid_pointer(const char *function, const void *address)
{
    log_always("%s(): invalid pointer %p in the range of large host blocks (freed before, or not its start)", function,
               address);
    abort();
}

static void check_pinned(void *address)
{
    struct buffer buffer;
    if (!shim_active() || !shim.real.cuMemHostAlloc || !buffer_find((uintptr_t)address, &buffer) ||
        buffer.kind != BUFFER_PINNED)
        return;
    report_misuse(MISUSE_FREE_OF_PINNED, address, buffer.site, site_capture());
    log_always("free(%p) of memory from cudaHostAlloc or cudaMallocHost: it is freed by cudaFreeHost", address);
    report_dump(); /* most allocators abort the program now */
}

SLOW void libc_free_slow(void *address)
{
    if (!address || early_owns(address)) return;
    if (!libc_ready()) return;
    int kept = errno;
    if (!hostmem_owns(address)) {
        check_pinned(address);
        errno = kept;
        libc_next.free(address);
        return;
    }
    if (!hostmem_block_give(address)) invalid_pointer("free", address);
    errno = kept;
}

/* From an early or a large block to the next allocator, or from there to a block of ours. */
static void *move(void *address, size_t usable, size_t bytes, void *fresh)
{
    if (!fresh) return NULL;
    memcpy(fresh, address, usable < bytes ? usable : bytes);
    free(address);
    return fresh;
}

static void *realloc_large(void *address, size_t bytes)
{
    size_t usable = hostmem_block_usable(address);
    if (!usable) invalid_pointer("realloc", address);
    if (!bytes) {
        free(address);
        return NULL;
    }
    if (bytes < settled_min() / 2) return move(address, usable, bytes, libc_next.malloc(bytes));
    int kept = errno;
    void *resized = hostmem_block_resize(address, bytes);
    errno = kept;
    return resized ? resized : move(address, usable, bytes, libc_next.malloc(bytes));
}

SLOW void *libc_realloc_slow(void *address, size_t bytes)
{
    if (!address) return malloc(bytes);
    if (early_owns(address)) return move(address, early_usable(address), bytes, malloc(bytes));
    if (!libc_ready()) return NULL;
    if (hostmem_owns(address)) return realloc_large(address, bytes);
    /* A large foreign block is resized by its own allocator, which may do it without a copy. */
    if (bytes >= settled_min() && libc_next.usable_is_known) {
        size_t usable = libc_next.malloc_usable_size(address);
        void *block = usable < settled_min() ? take(bytes, 16, false) : NULL;
        if (block) return move(address, usable, bytes, block);
    }
    return libc_next.realloc(address, bytes);
}

SLOW int libc_posix_memalign_slow(void **address, size_t alignment, size_t bytes)
{
    if (!libc_ready()) return (*address = early_take_aligned(bytes, alignment)) ? 0 : ENOMEM;
    bool valid = alignment && alignment % sizeof(void *) == 0 && !(alignment & (alignment - 1));
    void *block = valid ? take(bytes, alignment < 16 ? 16 : alignment, false) : NULL;
    if (!block) return libc_next.posix_memalign(address, alignment, bytes);
    *address = block;
    return 0;
}

SLOW void *libc_aligned_alloc_slow(size_t alignment, size_t bytes)
{
    if (!libc_ready()) return early_take_aligned(bytes, alignment);
    void *block = alignment ? take(bytes, alignment < 16 ? 16 : alignment, false) : NULL;
    return block ? block : libc_next.aligned_alloc(alignment, bytes);
}

SLOW void *libc_memalign_slow(size_t alignment, size_t bytes)
{
    if (!libc_ready()) return early_take_aligned(bytes, alignment);
    void *block = alignment ? take(bytes, alignment < 16 ? 16 : alignment, false) : NULL;
    return block ? block : libc_next.memalign(alignment, bytes);
}

SLOW void *libc_valloc_slow(size_t bytes)
{
    if (!libc_ready()) return early_take(bytes);
    void *block = take(bytes, (size_t)sysconf(_SC_PAGESIZE), false);
    return block ? block : libc_next.valloc(bytes);
}

SLOW void *libc_pvalloc_slow(size_t bytes)
{
    if (!libc_ready()) return early_take(bytes);
    void *block = take(bytes, (size_t)sysconf(_SC_PAGESIZE), false);
    return block ? block : libc_next.pvalloc(bytes);
}

SLOW size_t libc_usable_slow(void *address)
{
    if (!address) return 0;
    if (early_owns(address)) return early_usable(address);
    if (!libc_ready()) return 0;
    return hostmem_owns(address) ? hostmem_block_usable(address) : libc_next.malloc_usable_size(address);
}

EXPORT void *reallocarray(void *address, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(address, bytes);
}

#if defined __x86_64__
#include "shim/hooks/libc_x86_64.h"
#else
#include "shim/hooks/libc_generic.h"
#endif

EXPORT int madvise(void *address, size_t bytes, int advice)
{
    switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
    case 24: /* MADV_DONTNEED_LOCKED */
        hostmem_mapping_changes(address, bytes, HOSTMEM_DISCARDS);
        break;
    case MADV_DONTFORK:
    case 18: /* MADV_WIPEONFORK */
        hostmem_mapping_changes(address, bytes, HOSTMEM_PROTECTS);
        break;
    default:
        break;
    }
    return (int)syscall(SYS_madvise, address, bytes, advice);
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    if (flags & MAP_FIXED) hostmem_mapping_changes(address, bytes, HOSTMEM_PROTECTS);
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset);
}

_Static_assert(sizeof(off_t) == 8, "mmap64 is mmap");
EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset)
    __attribute__((alias("mmap")));

EXPORT int munmap(void *address, size_t bytes)
{
    if (hostmem_owns(address) && hostmem_unmap(address, bytes)) return 0;
    return (int)syscall(SYS_munmap, address, bytes);
}

EXPORT int mprotect(void *address, size_t bytes, int protection)
{
    hostmem_mapping_changes(address, bytes, HOSTMEM_PROTECTS);
    return (int)syscall(SYS_mprotect, address, bytes, protection);
}

EXPORT void *mremap(void *address, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *target = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    hostmem_mapping_changes(address, old_bytes, HOSTMEM_MOVES);
    if (flags & MREMAP_FIXED) hostmem_mapping_changes(target, bytes, HOSTMEM_PROTECTS);
    void *result = (void *)syscall(SYS_mremap, address, old_bytes, bytes, flags, target);
    if (result == MAP_FAILED || !hostmem_owns(address)) return result;
    if (result != address)
        hostmem_moved_away(address, old_bytes);
    else if (bytes < old_bytes)
        hostmem_moved_away((char *)address + bytes, old_bytes - bytes);
    return result;
}

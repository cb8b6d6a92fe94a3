/* System calls on mappings, past the library's own hooks of the same names: those would take the shim's calls for the
 * program's. As the calls themselves: errno is set on failure. */
#ifndef SHIM_SYSTEM_H
#define SHIM_SYSTEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int system_madvise(void *address, size_t bytes, int advice)
{
    return (int)syscall(SYS_madvise, address, bytes, advice);
}
static inline int system_mprotect(void *address, size_t bytes, int protection)
{
    return (int)syscall(SYS_mprotect, address, bytes, protection);
}
static inline void *system_mremap(void *address, size_t bytes, size_t new_bytes, int flags, void *to)
{
    return (void *)syscall(SYS_mremap, address, bytes, new_bytes, flags, to);
}
/* Private anonymous pages in place of what is there. */
static inline bool system_map(void *address, size_t bytes, int protection, int flags)
{
    return (void *)syscall(SYS_mmap, address, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1,
                           0) != MAP_FAILED;
}
static inline int system_munmap(void *address, size_t bytes) { return (int)syscall(SYS_munmap, address, bytes); }

/* New private anonymous pages at a multiple of `alignment`, a power of two; whole pages. NULL: none to be had. */
static inline void *system_map_aligned(size_t bytes, size_t alignment, int protection, int flags)
{
    void *at =
        (void *)syscall(SYS_mmap, NULL, bytes + alignment, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (at == MAP_FAILED) return NULL;
    size_t before = -(uintptr_t)at & (alignment - 1);
    char *start = (char *)at + before;
    if (before) system_munmap(at, before);
    system_munmap(start + bytes, alignment - before);
    return start;
}
#endif

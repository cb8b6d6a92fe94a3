/* One chunk of a staged copy, made so that a fault in the program's memory is an answer and not a signal in a thread of
 * ours.
 *
 * Anonymous memory with the right protection cannot fault for good; the kernel is asked once for the whole copy
 * (PROCMAP_QUERY, Linux 6.11). Other memory (files, which may be cut short) is populated chunk by chunk first:
 * MADV_POPULATE_READ and _WRITE (5.14) fault the pages in as a copy would and say EFAULT where a copy would get a
 * signal. Older kernels copy with process_vm_readv and _writev. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include "shim/hostmem_internal.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* linux/fs.h of 6.11 */
struct map_query {
    uint64_t size, query_flags, query_addr, vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
    uint64_t vma_name_addr, build_id_addr;
};
#define MAP_QUERY    _IOWR('f', 17, struct map_query)
#define MAP_READABLE 1u
#define MAP_WRITABLE 2u

bool memory_is_plain(const void *address, size_t bytes, bool write)
{
    static _Atomic bool unknown; /* this kernel does not answer */
    if (atomic_load_explicit(&unknown, memory_order_relaxed)) return false;
    int kept = errno, fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    uintptr_t at = (uintptr_t)address, end = at + bytes;
    while (fd >= 0 && at < end) {
        struct map_query query = {
            .size = sizeof query, .query_flags = write ? MAP_WRITABLE : MAP_READABLE, .query_addr = at};
        if (ioctl(fd, MAP_QUERY, &query) != 0) {
            if (errno == ENOTTY) atomic_store_explicit(&unknown, true, memory_order_relaxed);
            break;
        }
        if (query.inode || query.dev_major || query.dev_minor) break;
        at = query.vma_end;
    }
    if (fd >= 0) syscall(SYS_close, fd);
    errno = kept;
    return fd >= 0 && at >= end;
}

bool memory_is_fresh(const void *address)
{
    unsigned char resident = 1;
    uintptr_t page = (uintptr_t)address & ~(hostmem.page - 1);
    return mincore((void *)page, hostmem.page, &resident) == 0 && !(resident & 1);
}

/* 0, or the error that the kernel gives for memory which a copy cannot touch. */
static int populate(const struct chunk *chunk)
{
    uintptr_t start = (uintptr_t)chunk->program & ~(hostmem.page - 1);
    uintptr_t end = (uintptr_t)chunk->program + (chunk->rows - 1) * chunk->pitch + chunk->width;
    return system_madvise((void *)start, page_up(end - start),
                          chunk->to_slot ? MADV_POPULATE_READ : MADV_POPULATE_WRITE) == 0
               ? 0
               : errno;
}

static bool copy_by_kernel(const struct chunk *chunk)
{
    for (size_t row = 0; row < chunk->rows; row++) {
        char *ours = chunk->slot + row * chunk->width, *theirs = chunk->program + row * chunk->pitch;
        for (size_t done = 0; done < chunk->width;) {
            struct iovec local = {ours + done, chunk->width - done}, remote = {theirs + done, chunk->width - done};
            ssize_t moved = chunk->to_slot ? process_vm_readv(getpid(), &local, 1, &remote, 1, 0)
                                           : process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
            if (moved <= 0) return false;
            done += (size_t)moved;
        }
    }
    return true;
}

static void copy_rows(const struct chunk *chunk)
{
    for (size_t row = 0; row < chunk->rows; row++) {
        char *ours = chunk->slot + row * chunk->width, *theirs = chunk->program + row * chunk->pitch;
        memcpy(chunk->to_slot ? ours : theirs, chunk->to_slot ? theirs : ours, chunk->width);
    }
}

bool chunk_copy(struct chunk *chunk)
{
    int kept = errno, failed = 0;
    bool gaps = chunk->rows > 1 && chunk->pitch - chunk->width >= hostmem.page;
    if (!chunk->checked) /* The gaps between rows are not ours to make resident. */
        failed = gaps ? EINVAL : populate(chunk);
    else if (!chunk->to_slot && !gaps && memory_is_fresh(chunk->program))
        populate(chunk); /* one call for many faults */
    bool done = true;
    if (failed == EINVAL)
        done = copy_by_kernel(chunk);
    else if (failed)
        done = false;
    else
        copy_rows(chunk);
    errno = kept;
    return done;
}

/* The pages that a registration holds. A driver pins them, and the device goes on using them whatever the program later
 * maps at their addresses. Kernels and copies here use the addresses, so the pages are pinned as a driver does (as
 * buffers of a ring that is never used), and the kernel's page map tells whether they are still what the addresses
 * show. Needs io_uring and a page map that tells page numbers (CAP_SYS_ADMIN); without them nothing is noticed. */
#include "memory.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_BYTES    ((size_t)4096)
#define BUFFERS_MAX   16384u            /* of a ring */
#define BUFFER_BYTES  ((size_t)1 << 30) /* at most */
#define NUMBER_BITS   (((uint64_t)1 << 55) - 1)
#define ASKED_AT_ONCE 512

struct pages {
    uintptr_t start;
    size_t count, held_bytes; /* the latter: all of this, header included */
    unsigned first_buffer, buffers;
    uint64_t numbers[];
};
static int ring = -1;
static bool buffer_taken[BUFFERS_MAX];

/* In a process of its own that shares only the open files: the kernel counts a ring's pages as pinned (VmPin) for the
 * memory of its maker, and a driver's pins are not counted. */
static int ring_made(void)
{
    _Atomic int *made = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return -1;
    *made = -1;
    long child = syscall(SYS_clone, CLONE_FILES, 0, 0, 0, 0);
    if (!child) {
        struct io_uring_params parameters = {0};
        *made = (int)syscall(SYS_io_uring_setup, 1, &parameters);
        syscall(SYS_exit, 0);
    }
    while (child > 0 && waitpid((pid_t)child, NULL, __WALL) < 0 && errno == EINTR)
        ;
    int result = *made;
    munmap((void *)made, PAGE_BYTES);
    return result;
}

static bool ring_open(void)
{
    static bool tried;
    if (tried) return ring >= 0;
    tried = true;
    struct io_uring_rsrc_register table = {.nr = BUFFERS_MAX, .flags = IORING_RSRC_REGISTER_SPARSE};
    ring = ring_made();
    if (ring >= 0 && syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS2, &table, sizeof table)) {
        close(ring);
        ring = -1;
    }
    return ring >= 0;
}

static bool buffer_set(unsigned buffer, void *start, size_t bytes)
{
    struct iovec memory = {start, bytes};
    struct io_uring_rsrc_update2 update = {.offset = buffer, .data = (uintptr_t)&memory, .nr = 1};
    return syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof update) == 1;
}

/* Adjacent free buffers; BUFFERS_MAX if there are none. */
static unsigned buffers_take(unsigned want)
{
    for (unsigned i = 0, run = 0; i < BUFFERS_MAX; i++) {
        run = buffer_taken[i] ? 0 : run + 1;
        if (run < want) continue;
        memset(&buffer_taken[i + 1 - want], true, want);
        return i + 1 - want;
    }
    return BUFFERS_MAX;
}

static void pages_unpin(struct pages *pages)
{
    for (unsigned i = 0; i < pages->buffers; i++) {
        buffer_set(pages->first_buffer + i, NULL, 0);
        buffer_taken[pages->first_buffer + i] = false;
    }
}

static bool pages_pin(struct pages *pages)
{
    size_t bytes = pages->count * PAGE_BYTES;
    unsigned want = (unsigned)((bytes + BUFFER_BYTES - 1) / BUFFER_BYTES), first = buffers_take(want);
    if (first == BUFFERS_MAX) return false;
    pages->first_buffer = first;
    pages->buffers = want;
    for (unsigned i = 0; i < want; i++) {
        size_t done = i * BUFFER_BYTES, rest = bytes - done;
        if (!buffer_set(first + i, (void *)(pages->start + done), rest < BUFFER_BYTES ? rest : BUFFER_BYTES)) {
            pages_unpin(pages);
            return false;
        }
    }
    return true;
}

/* The numbers of pages; 0 where there is none or the kernel does not tell. */
static bool numbers_read(int map, uintptr_t address, uint64_t *numbers, size_t count)
{
    ssize_t bytes = (ssize_t)(count * sizeof *numbers);
    if (pread(map, numbers, (size_t)bytes, (off_t)(address / PAGE_BYTES * sizeof *numbers)) != bytes) return false;
    for (size_t i = 0; i < count; i++) numbers[i] = numbers[i] >> 63 ? numbers[i] & NUMBER_BITS : 0;
    return true;
}

static int map_open(void) { return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC); }

static bool pages_remember(struct pages *pages)
{
    int map = map_open();
    bool told = map >= 0 && numbers_read(map, pages->start, pages->numbers, pages->count);
    if (map >= 0) close(map);
    for (size_t i = 0; told && i < pages->count; i++) told = pages->numbers[i] != 0;
    return told;
}

struct pages *pages_hold(uintptr_t address, size_t bytes)
{
    uintptr_t start = address & ~(PAGE_BYTES - 1);
    size_t count = (address + bytes - start + PAGE_BYTES - 1) / PAGE_BYTES;
    size_t held_bytes = sizeof(struct pages) + count * sizeof(uint64_t);
    if (!ring_open()) return NULL;
    struct pages *pages = mmap(NULL, held_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    *pages = (struct pages){.start = start, .count = count, .held_bytes = held_bytes};
    if (pages_pin(pages)) {
        if (pages_remember(pages)) return pages;
        pages_unpin(pages);
    }
    munmap(pages, held_bytes);
    return NULL;
}

void pages_release(struct pages *pages)
{
    if (!pages) return;
    pages_unpin(pages);
    munmap(pages, pages->held_bytes);
}

bool pages_are_there(const struct pages *pages, uintptr_t address, size_t bytes)
{
    if (!pages || !bytes) return true;
    size_t first = (address - pages->start) / PAGE_BYTES;
    size_t end = (address + bytes - pages->start + PAGE_BYTES - 1) / PAGE_BYTES;
    if (end > pages->count) end = pages->count;
    int map = map_open();
    bool there = true;
    for (size_t i = first; there && map >= 0 && i < end; i += ASKED_AT_ONCE) {
        uint64_t now[ASKED_AT_ONCE];
        size_t count = end - i < ASKED_AT_ONCE ? end - i : ASKED_AT_ONCE;
        there = numbers_read(map, pages->start + i * PAGE_BYTES, now, count) &&
                !memcmp(now, &pages->numbers[i], count * sizeof *now);
    }
    if (map >= 0) close(map);
    if (!there)
        dprintf(STDERR_FILENO, "sim: the device holds other pages than the program has at %#lx, %zu bytes\n", address,
                bytes);
    return there;
}

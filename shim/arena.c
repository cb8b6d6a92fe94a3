#include "shim/arena.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include "shim/lock.h"

/* Classes: multiples of 16 up to 512, then powers of two up to 64 KiB. */
enum {
    STEP_BYTES = 16,
    STEPPED_MAX_BYTES = 512,
    STEPPED_CLASSES = STEPPED_MAX_BYTES / STEP_BYTES,
    CLASS_MAX_BYTES = 64 << 10,
    CLASSES = STEPPED_CLASSES + 7,
    CHUNK_MIN_BYTES = 128 << 10,
    CHUNK_MAX_BYTES = 2 << 20
};

struct free_block {
    struct free_block *next;
};

static struct {
    struct lock lock;
    struct free_block *free[CLASSES];
    char *at, *end; /* the rest of the newest chunk */
    size_t chunk_bytes;
} arena = {.lock = LOCK_INITIALIZER};

static size_t page_round(size_t bytes) { return (bytes + 4095) & ~(size_t)4095; }

static void *map_pages(size_t bytes)
{
    int kept = errno;
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = kept;
    return pages == MAP_FAILED ? NULL : pages;
}

static unsigned class_of(size_t bytes)
{
    if (bytes <= STEPPED_MAX_BYTES) return bytes ? (unsigned)((bytes - 1) / STEP_BYTES) : 0;
    return STEPPED_CLASSES + (unsigned)(63 - __builtin_clzl(bytes - 1)) - 9;
}

static size_t class_bytes(unsigned class)
{
    return class < STEPPED_CLASSES ? (class + 1) * (size_t)STEP_BYTES : (size_t)1024 << (class - STEPPED_CLASSES);
}

/* A fresh block from the newest chunk. Called with the lock held. */
static void *arena_carve(size_t bytes)
{
    if ((size_t)(arena.end - arena.at) < bytes) {
        size_t chunk = arena.chunk_bytes ? arena.chunk_bytes : CHUNK_MIN_BYTES;
        char *pages = map_pages(chunk);
        if (!pages) return NULL;
        arena.at = pages;
        arena.end = pages + chunk;
        arena.chunk_bytes = chunk < CHUNK_MAX_BYTES ? chunk * 2 : chunk;
    }
    void *block = arena.at;
    arena.at += bytes;
    return block;
}

void *arena_alloc(size_t bytes)
{
    if (bytes > CLASS_MAX_BYTES) return bytes < SIZE_MAX / 2 ? map_pages(page_round(bytes)) : NULL;
    unsigned class = class_of(bytes);
    lock_acquire(&arena.lock);
    struct free_block *block = arena.free[class];
    if (block)
        arena.free[class] = block->next;
    else
        block = arena_carve(class_bytes(class));
    lock_release(&arena.lock);
    return block;
}

void *arena_calloc(size_t bytes)
{
    void *block = arena_alloc(bytes);
    if (block && bytes <= CLASS_MAX_BYTES) memset(block, 0, bytes); /* larger ones are fresh pages */
    return block;
}

void arena_free(void *block, size_t bytes)
{
    if (!block) return;
    if (bytes > CLASS_MAX_BYTES) {
        int kept = errno;
        munmap(block, page_round(bytes));
        errno = kept;
        return;
    }
    unsigned class = class_of(bytes);
    lock_acquire(&arena.lock);
    struct free_block *head = block;
    head->next = arena.free[class];
    arena.free[class] = head;
    lock_release(&arena.lock);
}

void arena_before_fork(void) { lock_acquire(&arena.lock); }

void arena_after_fork(void) { lock_release(&arena.lock); }

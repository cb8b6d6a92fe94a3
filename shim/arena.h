/* The shim's own memory: small blocks from mmapped chunks, never from the hooked malloc.
 *
 * Thread-safe (one short lock, no driver call under it). Blocks are 16-byte aligned and not cleared. NULL when the
 * system has no memory: callers then track less, they do not fail the program's call. Blocks above 64 KiB are mappings
 * of their own and go back to the system when freed; the others are kept for reuse. errno is kept. */
#ifndef SHIM_ARENA_H
#define SHIM_ARENA_H
#include <stddef.h>

void *arena_alloc(size_t bytes);
void *arena_calloc(size_t bytes);
/* `bytes` as asked for. */
void arena_free(void *block, size_t bytes);
/* Around fork, innermost of all locks: the child can go on using the arena. */
void arena_before_fork(void);
void arena_after_fork(void); /* in parent and child */
#endif

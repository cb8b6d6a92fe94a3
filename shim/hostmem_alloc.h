/* Large blocks as the malloc family uses them (shim/hooks/libc.c). Thread-safe. None sets errno. */
#ifndef SHIM_HOSTMEM_ALLOC_H
#define SHIM_HOSTMEM_ALLOC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block of at least `bytes`, its start a multiple of `alignment` (a power of two). NULL: use libc. `zeroed`: as
 * calloc. */
void *hostmem_block_take(size_t bytes, size_t alignment, bool zeroed);
/* The address lies in the range: is it a block that the program holds, exactly? Then it is given back. False: it never
 * was, or no more. */
bool hostmem_block_give(void *address);
/* Bytes that may be used from `address` on; 0: not the start of a block. */
size_t hostmem_block_usable(const void *address);
/* The same block at its new size, moved or not; NULL: no memory, the old one stays as it is. `bytes` >= host_min / 2.
 */
void *hostmem_block_resize(void *address, size_t bytes);

/* The reserved range, once a block was taken. */
void hostmem_range(uintptr_t *base, size_t *bytes);

/* The program is about to change or has changed the mapping of part of the range (two comparisons for everybody else).
 */
enum hostmem_change { HOSTMEM_DISCARDS, HOSTMEM_PROTECTS, HOSTMEM_MOVES };
void hostmem_mapping_changes(void *address, size_t bytes, enum hostmem_change change);
/* munmap of part of the range: gives the memory back and keeps the addresses. False: not ours, call munmap. */
bool hostmem_unmap(void *address, size_t bytes);
/* After mremap moved part of the range away: keeps the addresses. */
void hostmem_moved_away(void *address, size_t bytes);

/* Smallest block for the range; SIZE_MAX: none (host=off, mode=off). Valid once the shim has read its options. */
size_t hostmem_min_bytes(void);
#endif

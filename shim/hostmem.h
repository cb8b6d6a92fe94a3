/* Large host blocks and pageable copies.
 *
 * Blocks of at least option `host_min` come from the shim's own mappings in one reserved range; copies from or to them
 * run on registered memory, copies from or to other pageable memory are staged by threads. See docs/design.md. */
#ifndef SHIM_HOSTMEM_H
#define SHIM_HOSTMEM_H
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "shim/copy.h"

struct site;

/* Is the address inside the reserved range of large blocks? Two comparisons. */
bool hostmem_owns(const void *address);

/* Tries to do the copy faster than the driver's pageable path, with exactly its ordering. The device side is memory of
 * the driver or a device-backed window. True: done, *result is the answer. False: nothing was done, forward the call.
 * Called by the copy hooks inside the submission gate, no lock held, no capture active in the process, when the request
 * is at least HOSTMEM_COPY_MIN bytes in all, AND at any size when hostmem_owns(host): a copy that crosses two
 * registrations fails in the driver, and an asynchronous one from a registered source would read it later. For such
 * memory also after the exit report (state ended) and in every mode. request->stream: a 0 of a per-thread (_ptsz) form
 * must be given as CU_STREAM_PER_THREAD; 0 means the legacy stream. */
#define HOSTMEM_COPY_MIN ((size_t)256 << 10)
bool hostmem_copy(const struct copy_request *request, CUresult *result);

/* The same for an upload of a few KiB of one row out of memory that hostmem_owns(): needs no current context to be
 * known, costs next to nothing. False: nothing was done, ask hostmem_copy. */
bool hostmem_copy_small(const struct copy_request *request, CUresult *result);

/* Where the large block that holds the address was allocated; NULL: it is none of ours, or nobody counted it. */
struct site *hostmem_site(const void *address);

/* Any part of the range is registered by the shim. For forms that no copy_request describes (arrays, batches, peer
 * copies, host to host): make it native before the call is forwarded. */
bool hostmem_registered(const void *address, size_t bytes);
/* Drops the shim's registrations of what the range touches; may wait for the GPU. `for_good`: the block is never
 * registered again (a graph names it); otherwise it is on use, but not over and over. May be called while a capture is
 * active; costs two comparisons when the address is not ours. */
void hostmem_make_native(const void *address, size_t bytes, bool for_good);

/* Gives every cached block back; true if there was one. Call it and try again when a program's pinned or registered
 * allocation failed for want of memory. May wait for the GPU. */
bool hostmem_trim(void);

/* Before the driver sees a program's own cuMemHostRegister of a range: drops the shim's registration of what the range
 * touches, and keeps off it until the program unregisters (after a cuMemHostUnregister that succeeded, or a
 * cuMemHostRegister that the driver refused). */
void hostmem_program_registers(void *address, size_t bytes);
void hostmem_program_unregistered(void *address);

/* Pointer attributes and host flags must answer as for pageable memory: is this address inside a piece that the shim
 * registered? */
bool hostmem_hides(const void *address);

/* A context is about to be destroyed or reset: registrations made through it must go. Call it before the driver's
 * function. */
void hostmem_context_gone(CUcontext context);

/* libcuda was seen in the process (called once, cheap, from a look-up: no lock, allocation or driver call inside). */
void hostmem_driver_appeared(void);

/* Lending (lend.h) takes whole pages of a block away and leaves watched addresses. hostmem_lend: the program holds
 * [address, address + bytes) within one block, nothing else uses or names it, and from now on it is lent; its
 * registrations are dropped, so the GPU must be idle. `*patched`: its pages lie in several mappings. Every function
 * here and of hostmem_alloc.h that names a lent block first calls the recall function (no lock held), which ends the
 * loan and calls hostmem_lent_back. `freed`: what the block holds is of no use any more. */
#define HOSTMEM_LEND_UNIT ((size_t)2 << 20) /* blocks from option lend_min on start at a multiple of it */
bool hostmem_lend(uintptr_t address, size_t bytes, bool *patched);
void hostmem_lent_back(uintptr_t address, bool patched);
/* Ends the loan of the block that a copy names, unless the copy only touches it. Outside the gate. */
void hostmem_lend_end(const struct copy_request *request);
void hostmem_lend_recall(void (*recall)(uintptr_t address, size_t bytes, bool freed));
/* Memory that the machine and the cgroup could still give, bytes. */
size_t hostmem_available(void);
/* Which allocation the block at the address is: no two have the same number. 0: not a block of ours. */
uint64_t hostmem_serial(uintptr_t address);
/* An upload of so many pageable bytes took so long: what the driver's copy would have taken more counts as saved. */
void hostmem_saved(size_t bytes, uint64_t ns);

/* Around fork, hostmem before all other rooms in prepare and after them in parent and child. A fork handler of the
 * program may allocate. */
void hostmem_before_fork(void);
void hostmem_after_fork_parent(void);
void hostmem_after_fork_child(void);
/* From the library's destructor: ends the copy threads; no driver call. Blocks and copies of registered ones still
 * work. */
void hostmem_at_exit(void);
#endif

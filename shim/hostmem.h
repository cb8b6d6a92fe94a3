/* Large host blocks and pageable copies.
 *
 * Blocks of at least option `host_min` come from the shim's own mappings in one reserved range; copies from or to them run on
 * registered memory, copies from or to other pageable memory are staged by threads. See docs/design.md. */
#ifndef SHIM_HOSTMEM_H
#define SHIM_HOSTMEM_H
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include "shim/copy.h"

/* Is the address inside the reserved range of large blocks? Two comparisons. */
bool hostmem_owns(const void *address);

/* Tries to do the copy faster than the driver's pageable path, with exactly its ordering. The device side is memory of the driver or a
 * device-backed window. True: done, *result is the answer. False: nothing was done, forward the call.
 * Called by the copy hooks inside the submission gate, no lock held, no capture active in the process, when the request is at least
 * HOSTMEM_COPY_MIN bytes in all. */
#define HOSTMEM_COPY_MIN ((size_t)256 << 10)
bool hostmem_copy(const struct copy_request *request, CUresult *result);

/* Before the driver sees a program's own cuMemHostRegister or cuMemHostUnregister of a range: drops the shim's registration
 * of what the range touches, and keeps off it until the program unregisters. */
void hostmem_program_registers(void *address, size_t bytes);
void hostmem_program_unregistered(void *address);

/* Pointer attributes and host flags must answer as for pageable memory: is this address inside a piece that the shim registered? */
bool hostmem_hides(const void *address);

/* A context is about to be destroyed or was reset: registrations made through it are gone or must go. */
void hostmem_context_gone(CUcontext context);

/* libcuda was seen in the process (called once, cheap, from a look-up: no lock, allocation or driver call inside). */
void hostmem_driver_appeared(void);

void hostmem_before_fork(void);
void hostmem_after_fork_parent(void);
void hostmem_after_fork_child(void);
/* From the library's destructor: ends the copy threads; no driver call. */
void hostmem_at_exit(void);
#endif

/* What is behind a window's addresses: device memory or registered host pages. Only driver and system calls; the caller
 * (window.c) keeps the books, has the window to itself, and has its context current and (for a change) quiet.
 *
 * Sources of the rules: facts.md, "Addresses and backing". Every function leaves the backing as it was when it fails.
 */
#ifndef SHIM_BACKING_H
#define SHIM_BACKING_H
#include "shim/window.h"

/* First backing of a fresh window: host pages for [base, base + usable), or device memory for all of it. */
bool backing_make_host(struct window *window);
bool backing_make_device(struct window *window);

/* Device to host: [base, base + usable) becomes host pages with the same bytes; the device memory is kept for the way
 * back. */
bool backing_to_host(struct window *window);
/* Host to device, the bytes of [base, base + high) kept. */
bool backing_to_device(struct window *window, size_t high);

/* Gives back the device memory that a window on the host keeps for its way back. */
void backing_release_device(struct window *window);

/* Steps of a loan (lend_loan.c): device memory that is held appears at the window's addresses or no longer does; the
 * pages at [base, base + usable) are registered or no longer are; inaccessible pages keep the addresses. */
bool backing_map(struct window *window);
bool backing_unmap(struct window *window);
bool backing_register(struct window *window);
bool backing_unregister(struct window *window);
void backing_seal(struct window *window);

/* Gives everything back to driver and system; the addresses are inaccessible afterwards. */
void backing_drop(struct window *window, int place);

/* Maps device memory for another device too, or no longer. */
void backing_allow(struct window *window, CUdevice device, bool allowed);
#endif

/* The program's kernels: their names, and what their PTX says they may do to memory. Mode `auto` only.
 *
 * Images are seen when modules and libraries are loaded and read when the first of their kernels is about to run
 * (images on the heap at once, since they may go). Texts over KERNELS_TEXT_MOST are not read: reading would cost more
 * than it can save. Thread-safe. */
#ifndef SHIM_KERNELS_H
#define SHIM_KERNELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/policy.h"

#define KERNELS_TEXT_MOST ((size_t)256 << 10)

struct kernel_info {
    const char *name; /* lives as long as the process */
    enum cost_class class;
    uint64_t accesses, atomics; /* most of each that one thread makes; UINT64_MAX: no bound */
};

/* `owner` is the CUmodule or CUlibrary that `image` was loaded into. A context is current. */
void kernels_loaded(const void *owner, const void *image);
void kernels_unloaded(const void *owner);
/* `function` (CUfunction or CUkernel) is `owner`'s kernel `name`; or the same kernel as `kernel`. */
void kernels_named(const void *function, const void *owner, const char *name);
void kernels_same(const void *function, const void *kernel);

/* False: nothing is known of it. */
bool kernels_find(const void *function, struct kernel_info *info);
#endif

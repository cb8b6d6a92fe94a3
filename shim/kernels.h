/* The program's kernels: their names, and what their PTX says they do to memory. Mode `auto` only.
 *
 * Images are seen when modules and libraries are loaded; a kernel's text is read when somebody first asks for its facts
 * (texts that may change or go, on the heap or in variables, are kept from the start). Texts over KERNELS_TEXT_MOST are
 * not read: reading would cost more than it can save. Thread-safe. */
#ifndef SHIM_KERNELS_H
#define SHIM_KERNELS_H
#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/ptx.h"

#define KERNELS_TEXT_MOST ((size_t)256 << 10)

/* `owner` is the CUmodule or CUlibrary that `image` was loaded into; NULL: it is not known what was. `context`: which a
 * module ends with, NULL for a library, which outlives them. A context is current. */
void kernels_loaded(const void *owner, const void *image, CUcontext context);
void kernels_unloaded(const void *owner);
void kernels_context_gone(CUcontext context);
/* `function` (CUfunction or CUkernel) is `owner`'s kernel `name`; or the same kernel as `kernel`. It ends with its
 * owner, and with `context` unless that is NULL. */
void kernels_named(const void *function, const void *owner, const char *name, CUcontext context);
void kernels_same(const void *function, const void *kernel, CUcontext context);

/* Changes when the handle has ceased to be the kernel that it was, and may be another's: a count for handles alike. */
#define KERNELS_ENDED 1024
extern _Atomic uint32_t kernels_ended[KERNELS_ENDED];
static inline _Atomic uint32_t *kernels_ended_of(const void *handle)
{
    return &kernels_ended[((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 54];
}

/* Its name, NULL if not known; valid while the function is. */
const char *kernels_name(const void *function);
/* What is known of the function: understood (why is NULL), or NULL. Valid while the function is. A context is current.
 * The first question about a function takes some 100 us, later ones some ns. */
const struct ptx_kernel *kernels_facts(const void *function);
/* Is there a kernel in the program's own modules (not in NVIDIA's libraries) that reads through some pointer a bounded
 * number of times? Reads texts that were not read yet, a few at most. A context is current. */
bool kernels_any_bounded(void);
#endif

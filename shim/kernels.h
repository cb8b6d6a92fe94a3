/* The program's kernels: their names, and what their PTX says they do to memory. Mode `auto` only.
 *
 * Images are seen when modules and libraries are loaded; a kernel's text is read when somebody first asks for its facts
 * (texts on the heap are kept from the start, since they may go). Texts over KERNELS_TEXT_MOST are not read: reading
 * would cost more than it can save. Thread-safe. */
#ifndef SHIM_KERNELS_H
#define SHIM_KERNELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/ptx.h"

#define KERNELS_TEXT_MOST ((size_t)256 << 10)

/* `owner` is the CUmodule or CUlibrary that `image` was loaded into. A context is current. */
void kernels_loaded(const void *owner, const void *image);
void kernels_unloaded(const void *owner);
/* `function` (CUfunction or CUkernel) is `owner`'s kernel `name`; or the same kernel as `kernel`. */
void kernels_named(const void *function, const void *owner, const char *name);
void kernels_same(const void *function, const void *kernel);

/* Its name, NULL if not known; lives as long as the process. */
const char *kernels_name(const void *function);
/* What is known of the function: understood (why is NULL), or NULL. Lives as long as the process. A context is current.
 * The first question about a function takes some 100 us, later ones some ns. */
const struct ptx_kernel *kernels_facts(const void *function);
/* Is there a kernel in the program's own modules (not in NVIDIA's libraries) that reads through some pointer a bounded
 * number of times? Reads texts that were not read yet, a few at most. A context is current. */
bool kernels_any_bounded(void);
#endif

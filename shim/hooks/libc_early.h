/* Memory for who asks before the next allocator is known: from a resolver that runs before this library is relocated,
 * or from the loader's own look-up of malloc. A few blocks in a process's life; each starts at a page, which is how
 * free recognizes it, and stays. Only system calls are made, nothing that would need a relocation. */
#ifndef SHIM_HOOKS_LIBC_EARLY_H
#define SHIM_HOOKS_LIBC_EARLY_H
#include <stdbool.h>
#include <stddef.h>

/* Has the loader relocated this library? */
bool early_relocated(void);
void *early_take(size_t bytes);
void *early_take_aligned(size_t bytes, size_t alignment);
bool early_owns(const void *address);
size_t early_usable(const void *address);
#endif

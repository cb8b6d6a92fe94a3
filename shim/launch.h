/* A kernel launch as the program asked for it, and the pointers among its arguments. */
#ifndef SHIM_LAUNCH_H
#define SHIM_LAUNCH_H
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "policy/ptx.h"

struct launch {
    const void *function;                   /* CUfunction or CUkernel, or a graph */
    uint64_t threads;                       /* of the whole grid */
    void *const *parameters, *const *extra; /* as cuLaunchKernel takes them; both NULL: not known */
};

/* The value of the 8 bytes that `pointer` describes among the launch's arguments. False: they cannot be had. The
 * arguments are laid out as the kernel's PTX says: it is what the driver's code was made from (see module_image.h). */
static inline bool launch_pointer(const struct launch *launch, const struct ptx_kernel *kernel,
                                  const struct ptx_pointer *pointer, uintptr_t *value)
{
    const char *at = NULL;
    if (launch->parameters) {
        at = launch->parameters[pointer->parameter];
        if (at) at += pointer->offset_bytes - kernel->parameters[pointer->parameter].offset_bytes;
    } else if (launch->extra) {
        size_t bytes = 0;
        for (void *const *pair = launch->extra; pair[0] != CU_LAUNCH_PARAM_END; pair += 2) {
            if (pair[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) at = pair[1];
            if (pair[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && pair[1]) bytes = *(const size_t *)pair[1];
        }
        if (bytes < pointer->offset_bytes + sizeof *value) at = NULL;
        if (at) at += pointer->offset_bytes;
    }
    if (at) memcpy(value, at, sizeof *value);
    return at != NULL;
}

/* Does a pointer's value name the buffer? Arrays that begin at 1, or behind a border, are named by an address up to
 * `before` bytes before their buffer; one at its end may be where the next range begins. */
static inline bool launch_names(uintptr_t value, uintptr_t base, size_t bytes, size_t before)
{
    return value + before - base <= bytes + before;
}
#endif

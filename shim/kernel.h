/* The asynchronous copy kernel: what a copy becomes when it must be ordered in a busy stream and the driver's own copy
 * would block (facts.md: async copies between registered memory and a host partner block until the stream drains). */
#ifndef SHIM_KERNEL_H
#define SHIM_KERNEL_H
#include "shim/context.h"
#include "shim/copy.h"

/* Loads and warms the kernel in the current context, once; call while the context is quiet (loading may wait for the
 * GPU). */
void kernel_load(struct context *context);

/* Enqueues the copy in the stream: `device` and `host` of the request must both be addresses that the GPU can use. */
CUresult kernel_copy(struct context *context, const struct copy_request *request, CUdeviceptr host, CUstream stream);
#endif

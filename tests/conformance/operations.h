/* Memory operations on one set of operands, so that a section can ask the same of all of them in a loop. */
#ifndef TESTS_CONFORMANCE_OPERATIONS_H
#define TESTS_CONFORMANCE_OPERATIONS_H
#include "conformance.h"

struct operands {
    CUdeviceptr device; /* what the question is about */
    CUdeviceptr other;  /* ordinary device memory */
    void *pageable;
    void *pinned;
    size_t bytes;    /* a multiple of 16 */
    CUstream stream; /* for the asynchronous ones */
};

struct operation {
    const char *name;
    CUresult (*run)(const struct operands *on);
};

/* Each list ends with a NULL name. */
extern const struct operation operations_sync[], operations_async[], operations_ptds[], operations_ptsz[];

/* Two device blocks, a pageable and a pinned block of at least 4 KiB each. */
void operands_new(struct operands *on, size_t bytes, CUstream stream);

CUDA_MEMCPY2D copy2d_host_to_device(const struct operands *on, void *host);
CUDA_MEMCPY2D copy2d_device_to_host(const struct operands *on, void *host);
CUDA_MEMCPY2D copy2d_device_to_device(const struct operands *on);
CUDA_MEMCPY3D copy3d_from_2d(const CUDA_MEMCPY2D *copy);
#endif

/* Changes what is behind an address that registered_new() made. */
#ifndef TESTS_CONFORMANCE_BACKING_H
#define TESTS_CONFORMANCE_BACKING_H
#include "conformance.h"

/* From registered pages to device memory, contents kept, and back. `bytes` is a multiple of 2 MiB. */
CUresult backing_to_device(CUdeviceptr address, size_t bytes);
CUresult backing_to_host(CUdeviceptr address, size_t bytes);
#endif

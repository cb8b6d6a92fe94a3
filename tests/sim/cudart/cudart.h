/* libcudart in small: what programs built by `nvcc -cudart shared` import.
 *
 * It reaches the driver as the real one does: dlopen("libcuda.so.1"), dlsym("cuGetProcAddress_v2"), everything else
 * through that; so a library that is preloaded between the two sees the same calls. The driver's error codes are the
 * runtime's.
 */
#ifndef CUDART_H
#define CUDART_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct driver {
#define DRIVER(name, version, symbol)             __typeof__(symbol) *name;
#define TWIN(name, version, symbol, twin_version) __typeof__(symbol) *name;
#include "driver.def"
#undef DRIVER
#undef TWIN
};
extern struct driver driver[2]; /* [1]: with the per-thread default stream */

/* Opens the driver and initializes it, once; makes the device's primary context current unless there is a context. */
cudaError_t driver_open(void);
cudaError_t context_ensure(void);
cudaError_t device_current(int *device);
/* Remembers an error for cudaGetLastError, and passes it on. */
cudaError_t remember(cudaError_t error);
cudaError_t remember_result(CUresult result);

/* What a registered host symbol is on the device. */
cudaError_t symbol_find(const void *symbol, CUdeviceptr *address, size_t *bytes);
cudaError_t kernel_of(const void *function, CUfunction *kernel);

/* The body of most functions: context, driver call, remembered error. */
#define CALL(per_thread, name, ...)                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = context_ensure();                                                                         \
        return remember(error_ ? error_ : (cudaError_t)driver[per_thread].name(__VA_ARGS__));                          \
    } while (0)
#endif

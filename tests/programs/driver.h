/* Programs of the driver API. Built twice: linked with libcuda, and (DRIVER_DLOPEN) with every function found by dlsym.
 */
#ifndef DRIVER_H
#define DRIVER_H
#include "programs.h"
#include <cuda.h>

#define DRIVER_FUNCTIONS(F)                                                                                            \
    F(cuInit)                                                                                                          \
    F(cuDeviceGet)                                                                                                     \
    F(cuDeviceGetCount)                                                                                                \
    F(cuDevicePrimaryCtxRetain)                                                                                        \
    F(cuDevicePrimaryCtxRelease) F(cuDevicePrimaryCtxReset) F(cuCtxCreate) F(cuCtxDestroy) F(cuCtxPushCurrent)         \
        F(cuCtxPopCurrent) F(cuCtxSetCurrent) F(cuCtxGetCurrent) F(cuCtxSynchronize) F(cuModuleLoadData)               \
            F(cuModuleUnload) F(cuModuleGetFunction) F(cuLaunchKernel) F(cuMemAlloc) F(cuMemAllocPitch) F(cuMemFree)   \
                F(cuMemAllocHost) F(cuMemHostAlloc) F(cuMemFreeHost) F(cuMemHostRegister) F(cuMemHostUnregister)       \
                    F(cuMemcpy) F(cuMemcpyAsync) F(cuMemcpyHtoD) F(cuMemcpyDtoH) F(cuMemcpyDtoD) F(cuMemcpyHtoDAsync)  \
                        F(cuMemcpyDtoHAsync) F(cuMemcpyDtoDAsync) F(cuMemcpy2D) F(cuMemcpy2DUnaligned) F(cuMemsetD8)   \
                            F(cuMemsetD16) F(cuMemsetD32) F(cuMemsetD2D32) F(cuMemsetD8Async) F(cuMemGetAddressRange)  \
                                F(cuMemGetInfo) F(cuPointerGetAttribute) F(cuPointerGetAttributes) F(cuStreamCreate)   \
                                    F(cuStreamDestroy) F(cuStreamSynchronize) F(cuStreamQuery) F(cuStreamWriteValue32) \
                                        F(cuStreamWaitValue32)

/* D(cuMemAlloc)(...) calls the function by whichever way this build has. */
#ifdef DRIVER_DLOPEN
#define D_(name)              driver_##name
#define DRIVER_DECLARE(name)  DRIVER_DECLARE_(name)
#define DRIVER_DECLARE_(name) extern __typeof__(name) *driver_##name;
DRIVER_FUNCTIONS(DRIVER_DECLARE)
#else
#define D_(name) name
#endif
#define D(name) D_(name)

/* cuInit, the device and its primary context, and the module; ends the program where that fails. */
void driver_start(void);
const char *driver_error(CUresult status);
#define SHOW_DRIVER(call) printf("%s: %s\n", #call, driver_error(call))
#define MUST_DRIVER(call) must_driver((call), #call)
void must_driver(CUresult status, const char *call);
/* device[i] += value for `count` words. */
void driver_add(CUdeviceptr device, unsigned value, int count, CUstream stream);
/* The module's function in the current context. */
CUfunction driver_function(const char *name);
#endif

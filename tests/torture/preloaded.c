/* Plain malloc and plain driver calls: run under the library, on a GPU or on the simulator; without a driver only
 * memory is tortured. */
#include <cuda.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/torture/torture.h"

static CUresult (*copy_h2d)(CUdeviceptr, const void *, size_t);
static CUresult (*copy_d2h)(void *, CUdeviceptr, size_t);
static CUresult (*copy_h2d_async)(CUdeviceptr, const void *, size_t, CUstream);
static CUresult (*copy_d2h_async)(void *, CUdeviceptr, size_t, CUstream);
static CUresult (*stream_synchronize)(CUstream);
static CUresult (*set_current)(CUcontext);
static CUdeviceptr device[TORTURE_THREADS_MAX];
static CUstream streams[TORTURE_THREADS_MAX];
static CUcontext context;
static _Thread_local bool current;

static void *take(size_t bytes, size_t alignment, bool zeroed)
{
    void *block = NULL;
    if (zeroed) return calloc(1, bytes);
    if (alignment == 16) return malloc(bytes);
    return posix_memalign(&block, alignment, bytes) ? NULL : block;
}
static void ready(void)
{
    if (!current) set_current(context);
    current = true;
}
static bool copy_in(size_t offset, const void *host, size_t bytes, bool async, int thread)
{
    ready();
    return (async ? copy_h2d_async(device[thread] + offset, host, bytes, streams[thread])
                  : copy_h2d(device[thread] + offset, host, bytes)) == CUDA_SUCCESS;
}
static bool copy_out(void *host, size_t offset, size_t bytes, bool async, int thread)
{
    ready();
    return (async ? copy_d2h_async(host, device[thread] + offset, bytes, streams[thread])
                  : copy_d2h(host, device[thread] + offset, bytes)) == CUDA_SUCCESS;
}
static void wait(int thread) { stream_synchronize(streams[thread]); }
static void nothing(void) {}
static void nothing_after(bool child) { (void)child; }

static bool open_device(int threads)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return false;
#define FIND(pointer, name) (*(void **)&(pointer) = dlsym(driver, name))
    CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*alloc)(CUdeviceptr *, size_t),
        (*create)(CUstream *, unsigned);
    FIND(init, "cuInit");
    FIND(retain, "cuDevicePrimaryCtxRetain");
    FIND(alloc, "cuMemAlloc_v2");
    FIND(create, "cuStreamCreate");
    FIND(set_current, "cuCtxSetCurrent");
    FIND(copy_h2d, "cuMemcpyHtoD_v2");
    FIND(copy_d2h, "cuMemcpyDtoH_v2");
    FIND(copy_h2d_async, "cuMemcpyHtoDAsync_v2");
    FIND(copy_d2h_async, "cuMemcpyDtoHAsync_v2");
    FIND(stream_synchronize, "cuStreamSynchronize");
    if (!init || !retain || !alloc || !create || init(0) != CUDA_SUCCESS || retain(&context, 0) != CUDA_SUCCESS)
        return false;
    set_current(context);
    for (int i = 0; i < threads; i++)
        /* A blocking stream: synchronous copies of the legacy stream are ordered with it. */
        if (alloc(&device[i], DEVICE_BYTES) != CUDA_SUCCESS || create(&streams[i], 0) != CUDA_SUCCESS) return false;
    return true;
}

bool backend_start(struct backend *backend, int threads)
{
    *backend =
        (struct backend){take, realloc, free, copy_in, copy_out, wait, nothing, nothing_after, open_device(threads)};
    return true;
}

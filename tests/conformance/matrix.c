/* Every way to allocate x every way to release. */
#include <stdlib.h>
#include "operations.h"

static CUstream stream;

static void *alloc_device(void)
{
    CUdeviceptr at = 0;
    MUST(d.cuMemAlloc(&at, 256));
    return (void *)at;
}
static void *alloc_large(void)
{
    CUdeviceptr at = 0;
    MUST(d.cuMemAlloc(&at, 8 << 20));
    return (void *)at;
}
static void *alloc_pitch(void)
{
    CUdeviceptr at = 0;
    size_t pitch;
    MUST(d.cuMemAllocPitch(&at, &pitch, 100, 10, 4));
    return (void *)at;
}
static void *alloc_pool(void)
{
    CUdeviceptr at = 0;
    MUST(d.cuMemAllocAsync(&at, 256, stream));
    MUST(d.cuStreamSynchronize(stream));
    return (void *)at;
}
static void *alloc_managed(void)
{
    CUdeviceptr at = 0;
    MUST(d.cuMemAllocManaged(&at, 256, CU_MEM_ATTACH_GLOBAL));
    return (void *)at;
}
static void *alloc_host(void)
{
    void *at = NULL;
    MUST(d.cuMemHostAlloc(&at, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    return at;
}
static void *alloc_host_plain(void)
{
    void *at = NULL;
    MUST(d.cuMemAllocHost(&at, 4096));
    return at;
}
static void *alloc_registered(void)
{
    void *at = pages_new(4096);
    MUST(d.cuMemHostRegister(at, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    return at;
}
static void *alloc_virtual(void)
{
    CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = fix.device}};
    CUmemGenericAllocationHandle chunk;
    CUdeviceptr at = 0;
    MUST(d.cuMemAddressReserve(&at, 2 << 20, 0, 0, 0));
    MUST(d.cuMemCreate(&chunk, 2 << 20, &kind, 0));
    MUST(d.cuMemMap(at, 2 << 20, 0, chunk, 0));
    MUST(d.cuMemRelease(chunk));
    return (void *)at;
}
static void *alloc_malloc(void) { return malloc(4096); }
static void *alloc_malloc_large(void) { return malloc(16 << 20); }

static CUresult free_device(void *at) { return d.cuMemFree((CUdeviceptr)at); }
static CUresult free_async(void *at)
{
    CUresult code = d.cuMemFreeAsync((CUdeviceptr)at, stream);
    d.cuStreamSynchronize(stream);
    return code;
}
static CUresult free_host(void *at) { return d.cuMemFreeHost(at); }
static CUresult free_registered(void *at) { return d.cuMemHostUnregister(at); }
static CUresult free_virtual(void *at) { return d.cuMemUnmap((CUdeviceptr)at, 2 << 20); }

void matrix(void)
{
    static const struct {
        const char *name;
        void *(*get)(void);
    } gets[] = {{"cuMemAlloc", alloc_device},
                {"cuMemAlloc of 8 MiB", alloc_large},
                {"cuMemAllocPitch", alloc_pitch},
                {"cuMemAllocAsync", alloc_pool},
                {"cuMemAllocManaged", alloc_managed},
                {"cuMemHostAlloc", alloc_host},
                {"cuMemAllocHost", alloc_host_plain},
                {"cuMemHostRegister", alloc_registered},
                {"cuMemMap", alloc_virtual},
                {"malloc", alloc_malloc},
                {"malloc of 16 MiB", alloc_malloc_large}};
    static const struct {
        const char *name;
        CUresult (*release)(void *);
    } frees[] = {{"cuMemFree", free_device},
                 {"cuMemFreeAsync", free_async},
                 {"cuMemFreeHost", free_host},
                 {"cuMemHostUnregister", free_registered},
                 {"cuMemUnmap", free_virtual}};
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < sizeof gets / sizeof *gets; i++) {
        for (size_t k = 0; k < sizeof frees / sizeof *frees; k++) {
            if (!question("%s, %s", gets[i].name, frees[k].name)) continue;
            void *at = gets[i].get();
            CUresult code = frees[k].release(at);
            unsigned type = 0;
            CUresult still = d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)at);
            answer("%s, afterwards %s", error_name(code), still == CUDA_SUCCESS ? "known" : error_name(still));
        }
    }
}

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "shim/backing.h"
#include "shim/report.h"
#include "shim/shim.h"

static void *host_pages(uintptr_t at, size_t bytes, int protection, int flags)
{
    int error = errno;
    void *pages = mmap((void *)at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    errno = error;
    return pages == MAP_FAILED ? NULL : pages;
}

/* Puts inaccessible pages back over a piece of the reservation, so that nobody else is given its addresses. */
static void seal(uintptr_t at, size_t bytes) { host_pages(at, bytes, PROT_NONE, MAP_FIXED | MAP_NORESERVE); }

bool backing_register(struct window *window)
{
    CUresult result = shim.real.cuMemHostRegister_v2((void *)window->base, window->usable,
                                                     CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
    if (result == CUDA_SUCCESS) {
        STAT_ADD(registrations, 1);
        return true;
    }
    report_note("registering host memory for buffers failed (CUDA error %d): they stay on the device", (int)result);
    return false;
}

static bool allow(struct window *window, CUdevice device, CUmemAccess_flags flags)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}, .flags = flags};
    return shim.real.cuMemSetAccess(window->base, window->bytes, &access, 1) == CUDA_SUCCESS;
}

bool backing_map(struct window *window)
{
    if (shim.real.cuMemMap(window->base, window->bytes, 0, window->memory, 0) != CUDA_SUCCESS) return false;
    bool allowed = allow(window, window->context->device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    for (int i = 0; allowed && i < window->context->peer_count; i++)
        allowed = allow(window, window->context->peer_devices[i], CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (!allowed) shim.real.cuMemUnmap(window->base, window->bytes);
    return allowed;
}

static bool create_device(struct window *window)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = window->context->device}};
    if (!window->has_device)
        window->has_device = shim.real.cuMemCreate(&window->memory, window->bytes, &prop, 0) == CUDA_SUCCESS;
    return window->has_device;
}

bool backing_unmap(struct window *window) { return shim.real.cuMemUnmap(window->base, window->bytes) == CUDA_SUCCESS; }

bool backing_unregister(struct window *window)
{
    return shim.real.cuMemHostUnregister((void *)window->base) == CUDA_SUCCESS;
}

void backing_seal(struct window *window) { seal(window->base, window->usable); }

void backing_release_device(struct window *window)
{
    if (window->has_device) shim.real.cuMemRelease(window->memory);
    window->has_device = false;
}

bool backing_make_host(struct window *window)
{
    if (!host_pages(window->base, window->usable, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_POPULATE)) return false;
    if (backing_register(window)) return true;
    seal(window->base, window->usable);
    return false;
}

bool backing_make_device(struct window *window)
{
    if (!create_device(window)) return false;
    if (backing_map(window)) return true;
    backing_release_device(window);
    return false;
}

bool backing_to_host(struct window *window)
{
    size_t bytes = window->usable;
    void *copy = host_pages(0, bytes, PROT_READ | PROT_WRITE, MAP_POPULATE);
    if (!copy) return false;
    if (shim.real.cuMemcpyDtoH_v2(copy, window->base, bytes) != CUDA_SUCCESS) goto fail;
    if (shim.real.cuMemUnmap(window->base, window->bytes) != CUDA_SUCCESS) goto fail;
    /* The pages themselves move under the address; in one step, so that no other mapping can slip in. */
    if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)window->base) == MAP_FAILED) goto remap;
    copy = NULL;
    if (backing_register(window)) return true;
    seal(window->base, bytes);
remap:
    /* The device memory still has the bytes: it was unmapped, not released. */
    if (!backing_map(window)) report_note("a window could not be mapped back after a failed move");
fail:
    if (copy) munmap(copy, bytes);
    return false;
}

bool backing_to_device(struct window *window, size_t high)
{
    size_t bytes = high ? high : WINDOW_SLOT;
    void *copy = host_pages(0, bytes, PROT_READ | PROT_WRITE, MAP_POPULATE);
    if (!copy) return false;
    bool created = !window->has_device, restored = false;
    if (!create_device(window)) goto fail;
    memcpy(copy, (void *)window->base, bytes);
    if (shim.real.cuMemHostUnregister((void *)window->base) != CUDA_SUCCESS) goto release;
    seal(window->base, window->usable);
    if (!backing_map(window)) goto restore;
    /* The copy returns when its source has been read; a non-blocking stream would not wait for the rest of it. */
    if (shim.real.cuMemcpyHtoD_v2(window->base, copy, bytes) == CUDA_SUCCESS &&
        shim.real.cuStreamSynchronize(CU_STREAM_LEGACY) == CUDA_SUCCESS) {
        munmap(copy, bytes);
        return true;
    }
    shim.real.cuCtxSynchronize(); /* what has begun must end before its addresses go */
    shim.real.cuMemUnmap(window->base, window->bytes);
restore:
    if (host_pages(window->base, window->usable, PROT_READ | PROT_WRITE, MAP_FIXED)) {
        memcpy((void *)window->base, copy, bytes);
        restored = backing_register(window) || backing_register(window);
    }
    if (!restored) report_note("a window could not be registered again after a failed move: kernels cannot use it");
release:
    if (created) backing_release_device(window);
fail:
    munmap(copy, bytes);
    return false;
}

void backing_drop(struct window *window, int place)
{
    if (place == WINDOW_HOST) {
        shim.real.cuMemHostUnregister((void *)window->base);
        seal(window->base, window->usable);
    } else if (place == WINDOW_DEVICE) {
        shim.real.cuMemUnmap(window->base, window->bytes);
    }
    backing_release_device(window);
}

void backing_allow(struct window *window, CUdevice device, bool allowed)
{
    allow(window, device, allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

/* Just enough of a driver for windows: addresses, device memory that is plain memory, registrations that always succeed
 * or fail on demand. For unit tests and benchmarks of shim/window.c without any driver; include it once. */
#ifndef TESTS_FAKE_VMM_H
#define TESTS_FAKE_VMM_H
#include <string.h>
#include <sys/mman.h>
#include "shim/context.h"
#include "shim/earning.h"
#include "shim/kernel.h"
#include "shim/placement.h"
#include "shim/report.h"
#include "shim/shim.h"
#include "shim/window.h"

struct shim shim;

static struct {
    _Atomic int registrations, live_registrations, mapped, handles;
    const char *note; /* the last */
    bool refuse_register, refuse_create, refuse_map, events_ready, events_fail;
} fake = {.events_ready = true};

void report_note(const char *format, ...) { fake.note = format; }
void report_tick(uint64_t now_ns) { (void)now_ns; }
void kernel_load(struct context *context) { context->copy_kernel = (CUfunction)&fake; }
void earning_start(void) {}
void placement_window(struct window *window) { (void)window; }
void placement_bytes(struct window *window) { (void)window; }
void placement_window_gone(struct window *window) { (void)window; }

static CUresult fake_register(void *p, size_t bytes, unsigned flags)
{
    (void)p, (void)bytes, (void)flags;
    if (fake.refuse_register) return CUDA_ERROR_NOT_SUPPORTED;
    fake.registrations++;
    fake.live_registrations++;
    return CUDA_SUCCESS;
}

static CUresult fake_unregister(void *p)
{
    (void)p;
    fake.live_registrations--;
    return CUDA_SUCCESS;
}

static CUresult fake_create(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                            unsigned long long flags)
{
    (void)prop, (void)flags;
    if (fake.refuse_create) return CUDA_ERROR_OUT_OF_MEMORY;
    fake.handles++;
    /* The handle is memory that keeps the bytes while nothing is mapped. */
    *handle =
        (CUmemGenericAllocationHandle)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return CUDA_SUCCESS;
}

static CUresult fake_release(CUmemGenericAllocationHandle handle)
{
    (void)handle;
    fake.handles--;
    return CUDA_SUCCESS;
}

static struct {
    _Atomic CUdeviceptr at; /* 0: unused; 1: being filled */
    CUmemGenericAllocationHandle handle;
    _Atomic size_t bytes;
} fake_maps[1024];

static CUresult fake_map(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags)
{
    (void)offset, (void)flags;
    if (fake.refuse_map) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 1024; i++) {
        CUdeviceptr unused = 0;
        if (!atomic_compare_exchange_strong(&fake_maps[i].at, &unused, 1)) continue;
        fake_maps[i].handle = handle;
        fake_maps[i].bytes = bytes;
        fake_maps[i].at = at;
        fake.mapped++;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_unmap(CUdeviceptr at, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < 1024; i++) {
        if (fake_maps[i].at != at) continue;
        fake_maps[i].at = 0;
        fake.mapped--;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
    (void)at, (void)bytes, (void)desc, (void)count;
    return CUDA_SUCCESS;
}

/* Where the bytes behind a device address are. */
static char *fake_bytes(CUdeviceptr at)
{
    for (int i = 0; i < 1024; i++) {
        CUdeviceptr start = fake_maps[i].at;
        if (start > 1 && at - start < fake_maps[i].bytes) return (char *)fake_maps[i].handle + (at - start);
    }
    return (char *)at;
}

static CUresult fake_htod(CUdeviceptr to, const void *from, size_t bytes)
{
    memcpy(fake_bytes(to), from, bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_dtoh(void *to, CUdeviceptr from, size_t bytes)
{
    memcpy(to, fake_bytes(from), bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_synchronize(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

static CUresult fake_event_create(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = (CUevent)&fake;
    return CUDA_SUCCESS;
}
static CUresult fake_event_record(CUevent event, CUstream stream)
{
    (void)event, (void)stream;
    return CUDA_SUCCESS;
}
static CUresult fake_event_query(CUevent event)
{
    (void)event;
    return fake.events_fail ? CUDA_ERROR_UNKNOWN : fake.events_ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
static CUresult fake_event_destroy(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}
static CUresult fake_current(CUcontext *context)
{
    *context = (CUcontext)&fake;
    return CUDA_SUCCESS;
}
static CUresult fake_device(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}
static CUresult fake_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = attribute != CU_DEVICE_ATTRIBUTE_INTEGRATED;
    return CUDA_SUCCESS;
}
static CUresult fake_reserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    (void)hint, (void)flags;
    uintptr_t range =
        (uintptr_t)mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *at = (range + alignment - 1) / alignment * alignment;
    return CUDA_SUCCESS;
}
static CUresult fake_alloc(CUdeviceptr *at, size_t bytes)
{
    (void)bytes;
    *at = (CUdeviceptr)&fake;
    return CUDA_SUCCESS;
}
static CUresult fake_primary(CUdevice device, unsigned *flags, int *active)
{
    (void)device, (void)flags;
    *active = 0;
    return CUDA_SUCCESS;
}

/* The one context, set up; mode and limits as in shim.options. */
static struct context *fake_context(enum option_mode mode)
{
    options_default(&shim.options);
    shim.options.mode = mode;
    shim.real = (struct driver){.cuMemHostRegister_v2 = fake_register,
                                .cuMemHostUnregister = fake_unregister,
                                .cuMemCreate = fake_create,
                                .cuMemRelease = fake_release,
                                .cuMemMap = fake_map,
                                .cuMemUnmap = fake_unmap,
                                .cuMemSetAccess = fake_access,
                                .cuMemcpyHtoD_v2 = fake_htod,
                                .cuMemcpyDtoH_v2 = fake_dtoh,
                                .cuStreamSynchronize = fake_synchronize,
                                .cuEventCreate = fake_event_create,
                                .cuEventRecord = fake_event_record,
                                .cuEventQuery = fake_event_query,
                                .cuEventDestroy_v2 = fake_event_destroy,
                                .cuCtxGetCurrent = fake_current,
                                .cuCtxGetDevice = fake_device,
                                .cuDeviceGetAttribute = fake_attribute,
                                .cuMemAddressReserve = fake_reserve,
                                .cuMemAlloc_v2 = fake_alloc,
                                .cuDevicePrimaryCtxGetState = fake_primary};
    struct context *context = context_current();
    return context && context_ready(context) ? context : NULL;
}
#endif

#include "tests/hostmem/fake_driver.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "shim/hostmem.h"
#include "shim/shim.h"

#define REGISTRATIONS 65536
#define STREAMS       16
#define EVENTS        4096
#define DEVICES       64
#define PAGEABLE_MAX  ((size_t)2 << 20)

struct work {
    char *to, *from;
    size_t bytes;
    char *owned; /* staging to free */
    struct event *event;
    struct work *next;
};
struct stream {
    CUstream handle;
    bool held;
    struct work *first, **last;
};
struct event {
    bool pending, alive;
};
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        uintptr_t address;
        size_t bytes;
    } registrations[REGISTRATIONS];
    int registration_count, registered, unregistered, pageable, direct;
    size_t registered_bytes;
    struct stream streams[STREAMS];
    struct event events[EVENTS];
    struct {
        uintptr_t address;
        size_t bytes;
    } devices[DEVICES];
    int refuse;
    CUresult refusal;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

#define LOCKED(expression)                                                                                             \
    ({                                                                                                                 \
        pthread_mutex_lock(&fake.lock);                                                                                \
        __typeof__(expression) locked_value = (expression);                                                            \
        pthread_mutex_unlock(&fake.lock);                                                                              \
        locked_value;                                                                                                  \
    })

static struct stream *stream_of(CUstream handle)
{
    if (!handle) handle = CU_STREAM_LEGACY;
    for (int i = 0; i < STREAMS; i++) {
        if (!fake.streams[i].handle) {
            fake.streams[i].handle = handle;
            fake.streams[i].last = &fake.streams[i].first;
        }
        if (fake.streams[i].handle == handle) return &fake.streams[i];
    }
    abort();
}

static void run(struct work *work)
{
    if (work->event) work->event->pending = false;
    if (work->bytes) memcpy(work->to, work->from, work->bytes);
    free(work->owned);
    free(work);
}

static void add(struct stream *stream, struct work work)
{
    struct work *copy = malloc(sizeof *copy);
    *copy = work;
    if (work.event) work.event->pending = true;
    if (!stream->held) {
        run(copy);
        return;
    }
    *stream->last = copy;
    stream->last = &copy->next;
}

void fake_hold(CUstream handle)
{
    pthread_mutex_lock(&fake.lock);
    stream_of(handle)->held = true;
    pthread_mutex_unlock(&fake.lock);
}

void fake_let_go(CUstream handle)
{
    pthread_mutex_lock(&fake.lock);
    struct stream *stream = stream_of(handle);
    stream->held = false;
    for (struct work *work = stream->first, *next; work; work = next) {
        next = work->next;
        run(work);
    }
    stream->first = NULL;
    stream->last = &stream->first;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

/* Index of the registration that has the address; -1: none. */
static int registration_of(uintptr_t address)
{
    for (int i = 0; i < fake.registration_count; i++)
        if (address - fake.registrations[i].address < fake.registrations[i].bytes) return i;
    return -1;
}

static CUresult register_memory(void *address, size_t bytes, unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&fake.lock);
    CUresult result = CUDA_SUCCESS;
    if (fake.refuse) {
        result = fake.refusal;
        if (fake.refuse > 0) fake.refuse--;
    }
    unsigned char resident;
    if (mincore((void *)((uintptr_t)address & ~4095ul), bytes < 4096 ? bytes : 4096, &resident) != 0)
        result = CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < fake.registration_count && result == CUDA_SUCCESS; i++)
        if (fake.registrations[i].bytes &&
            (uintptr_t)address < fake.registrations[i].address + fake.registrations[i].bytes &&
            fake.registrations[i].address < (uintptr_t)address + bytes)
            result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (result == CUDA_SUCCESS) {
        int i = 0;
        while (i < fake.registration_count && fake.registrations[i].bytes) i++;
        if (i == REGISTRATIONS) abort();
        if (i == fake.registration_count) fake.registration_count++;
        fake.registrations[i].address = (uintptr_t)address;
        fake.registrations[i].bytes = bytes;
        fake.registered_bytes += bytes;
        fake.registered++;
    }
    pthread_mutex_unlock(&fake.lock);
    return result;
}

static CUresult unregister_memory(void *address)
{
    pthread_mutex_lock(&fake.lock);
    CUresult result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    for (int i = 0; i < fake.registration_count; i++)
        if (fake.registrations[i].bytes && fake.registrations[i].address == (uintptr_t)address) {
            fake.registered_bytes -= fake.registrations[i].bytes;
            fake.registrations[i].bytes = 0;
            fake.unregistered++;
            result = CUDA_SUCCESS;
        }
    pthread_mutex_unlock(&fake.lock);
    return result;
}

static bool device_valid(uintptr_t address, size_t bytes)
{
    for (int i = 0; i < DEVICES; i++)
        if (address - fake.devices[i].address < fake.devices[i].bytes)
            return bytes <= fake.devices[i].bytes - (address - fake.devices[i].address);
    return false;
}

/* Lock held. A copy that begins or ends in a registration and does not lie in it is refused, as the driver does. */
static CUresult copy(bool to_device, char *device, char *host, size_t bytes, CUstream handle, bool async)
{
    struct stream *stream = stream_of(handle);
    if (!device_valid((uintptr_t)device, bytes)) return CUDA_ERROR_INVALID_VALUE;
    int first = registration_of((uintptr_t)host), last = registration_of((uintptr_t)host + bytes - 1);
    if (first != last) return CUDA_ERROR_INVALID_VALUE;
    bool pageable = first < 0;
    if (pageable)
        fake.pageable++;
    else
        fake.direct++;
    struct work work = {.to = to_device ? device : host, .from = to_device ? host : device, .bytes = bytes};
    bool waits = !async || (pageable && (!to_device || bytes > PAGEABLE_MAX));
    if (handle == CU_STREAM_PER_THREAD && to_device && pageable && bytes <= PAGEABLE_MAX) waits = false;
    if (waits) {
        while (stream->held) pthread_cond_wait(&fake.changed, &fake.lock);
    } else if (pageable && stream->held) {
        work.owned = malloc(bytes);
        memcpy(work.owned, host, bytes);
        work.from = work.owned;
    }
    add(stream, work);
    return CUDA_SUCCESS;
}

static CUresult h2d(CUdeviceptr to, const void *from, size_t bytes)
{
    return LOCKED(copy(true, (char *)to, (char *)from, bytes, CU_STREAM_LEGACY, false));
}
static CUresult d2h(void *to, CUdeviceptr from, size_t bytes)
{
    return LOCKED(copy(false, (char *)from, to, bytes, CU_STREAM_LEGACY, false));
}
static CUresult h2d_own(CUdeviceptr to, const void *from, size_t bytes)
{
    return LOCKED(copy(true, (char *)to, (char *)from, bytes, CU_STREAM_PER_THREAD, false));
}
static CUresult d2h_own(void *to, CUdeviceptr from, size_t bytes)
{
    return LOCKED(copy(false, (char *)from, to, bytes, CU_STREAM_PER_THREAD, false));
}
static CUresult h2d_async(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return LOCKED(copy(true, (char *)to, (char *)from, bytes, stream, true));
}
static CUresult d2h_async(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return LOCKED(copy(false, (char *)from, to, bytes, stream, true));
}

static CUresult copy_box(const CUDA_MEMCPY3D *form, CUstream stream, bool async)
{
    bool to_device = form->srcMemoryType == CU_MEMORYTYPE_HOST;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&fake.lock);
    for (size_t z = 0; z < form->Depth && result == CUDA_SUCCESS; z++)
        for (size_t y = 0; y < form->Height && result == CUDA_SUCCESS; y++) {
            size_t from = z * form->srcPitch * form->srcHeight + y * form->srcPitch;
            size_t to = z * form->dstPitch * form->dstHeight + y * form->dstPitch;
            char *device = to_device ? (char *)form->dstDevice + to : (char *)form->srcDevice + from;
            char *host = to_device ? (char *)form->srcHost + from : (char *)form->dstHost + to;
            result = copy(to_device, device, host, form->WidthInBytes, stream, async);
        }
    pthread_mutex_unlock(&fake.lock);
    return result;
}

static CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D *form)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = form->srcMemoryType,
                           .srcHost = form->srcHost,
                           .srcDevice = form->srcDevice,
                           .srcPitch = form->srcPitch,
                           .dstMemoryType = form->dstMemoryType,
                           .dstHost = form->dstHost,
                           .dstDevice = form->dstDevice,
                           .dstPitch = form->dstPitch,
                           .WidthInBytes = form->WidthInBytes,
                           .Height = form->Height,
                           .Depth = 1};
}
static CUresult copy_2d(const CUDA_MEMCPY2D *form)
{
    CUDA_MEMCPY3D box = box_of(form);
    return copy_box(&box, CU_STREAM_LEGACY, false);
}
static CUresult copy_2d_async(const CUDA_MEMCPY2D *form, CUstream stream)
{
    CUDA_MEMCPY3D box = box_of(form);
    return copy_box(&box, stream, true);
}
static CUresult copy_3d(const CUDA_MEMCPY3D *form) { return copy_box(form, CU_STREAM_LEGACY, false); }
static CUresult copy_3d_async(const CUDA_MEMCPY3D *form, CUstream stream) { return copy_box(form, stream, true); }

static CUresult event_create(CUevent *event, unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&fake.lock);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < EVENTS && result != CUDA_SUCCESS; i++)
        if (!fake.events[i].alive) {
            fake.events[i] = (struct event){.alive = true};
            *event = (CUevent)&fake.events[i];
            result = CUDA_SUCCESS;
        }
    pthread_mutex_unlock(&fake.lock);
    return result;
}
static CUresult event_destroy(CUevent event)
{
    pthread_mutex_lock(&fake.lock);
    ((struct event *)event)->alive = false;
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}
static CUresult event_record(CUevent event, CUstream stream)
{
    pthread_mutex_lock(&fake.lock);
    add(stream_of(stream), (struct work){.event = (struct event *)event});
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}
static CUresult event_query(CUevent event)
{
    return LOCKED(((struct event *)event)->pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}
static CUresult event_synchronize(CUevent event)
{
    pthread_mutex_lock(&fake.lock);
    while (((struct event *)event)->pending) pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}
static CUresult stream_synchronize(CUstream stream)
{
    pthread_mutex_lock(&fake.lock);
    while (stream_of(stream)->held) pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}

static CUresult current(CUcontext *context)
{
    *context = (CUcontext)0x1000;
    return CUDA_SUCCESS;
}
static CUresult push(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}
static CUresult pop(CUcontext *context) { return current(context); }
static CUresult stream_context(CUstream stream, CUcontext *context)
{
    (void)stream;
    return current(context);
}
static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    pthread_mutex_lock(&fake.lock);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < DEVICES; i++)
        if (address - fake.devices[i].address < fake.devices[i].bytes) {
            *base = fake.devices[i].address;
            *bytes = fake.devices[i].bytes;
            result = CUDA_SUCCESS;
        }
    pthread_mutex_unlock(&fake.lock);
    return result;
}
static CUresult attribute(void *data, CUpointer_attribute which, CUdeviceptr address)
{
    (void)which;
    *(unsigned *)data = 0;
    return LOCKED(registration_of(address)) < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult host_alloc(void **memory, size_t bytes, unsigned flags)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = register_memory(at, bytes, flags);
    if (result == CUDA_SUCCESS)
        *memory = at;
    else
        munmap(at, bytes);
    return result;
}

void fake_start(void)
{
    pthread_mutex_lock(&fake.lock);
    memset(fake.registrations, 0, sizeof fake.registrations);
    memset(fake.streams, 0, sizeof fake.streams);
    memset(fake.devices, 0, sizeof fake.devices);
    fake.registration_count = fake.registered = fake.unregistered = fake.pageable = fake.direct = fake.refuse = 0;
    fake.registered_bytes = 0;
    pthread_mutex_unlock(&fake.lock);
    shim.pid = getpid();
    shim.real = (struct driver){.cuMemHostRegister_v2 = register_memory,
                                .cuMemHostUnregister = unregister_memory,
                                .cuMemHostAlloc = host_alloc,
                                .cuMemcpyHtoD_v2 = h2d,
                                .cuMemcpyDtoH_v2 = d2h,
                                .cuMemcpyHtoD_v2_ptds = h2d_own,
                                .cuMemcpyDtoH_v2_ptds = d2h_own,
                                .cuMemcpyHtoDAsync_v2 = h2d_async,
                                .cuMemcpyDtoHAsync_v2 = d2h_async,
                                .cuMemcpy2DUnaligned_v2 = copy_2d,
                                .cuMemcpy2DAsync_v2 = copy_2d_async,
                                .cuMemcpy3D_v2 = copy_3d,
                                .cuMemcpy3DAsync_v2 = copy_3d_async,
                                .cuEventCreate = event_create,
                                .cuEventDestroy_v2 = event_destroy,
                                .cuEventRecord = event_record,
                                .cuEventQuery = event_query,
                                .cuEventSynchronize = event_synchronize,
                                .cuStreamSynchronize = stream_synchronize,
                                .cuStreamGetCtx = stream_context,
                                .cuCtxGetCurrent = current,
                                .cuCtxPushCurrent_v2 = push,
                                .cuCtxPopCurrent_v2 = pop,
                                .cuMemGetAddressRange_v2 = address_range,
                                .cuPointerGetAttribute = attribute};
    hostmem_driver_appeared();
}

void fake_refuse_registration(int count, CUresult code)
{
    pthread_mutex_lock(&fake.lock);
    fake.refuse = count;
    fake.refusal = code;
    pthread_mutex_unlock(&fake.lock);
}
size_t fake_registered_bytes(void) { return LOCKED(fake.registered_bytes); }
int fake_registrations(void) { return LOCKED(fake.registered); }
int fake_unregistrations(void) { return LOCKED(fake.unregistered); }
bool fake_is_registered(const void *address) { return LOCKED(registration_of((uintptr_t)address)) >= 0; }
int fake_copies_pageable(void) { return LOCKED(fake.pageable); }
int fake_copies_registered(void) { return LOCKED(fake.direct); }

void *fake_device(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < DEVICES; i++)
        if (!fake.devices[i].bytes) {
            fake.devices[i].address = (uintptr_t)memory;
            fake.devices[i].bytes = bytes;
            break;
        }
    pthread_mutex_unlock(&fake.lock);
    return memory;
}

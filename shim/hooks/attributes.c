/* What a pointer is. A buffer of a window answers as device memory of its own: the driver is asked about a small
 * allocation of its own in the same context (the exemplar), and what depends on the address is put right. Memory that
 * the shim registered for the program answers as the pageable memory that it is to the program. */
#include <string.h>
#include "shim/buffer.h"
#include "shim/choice.h"
#include "shim/context.h"
#include "shim/copy.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/hostmem.h"
#include "shim/placement.h"
#include "shim/report.h"
#include "shim/window.h"

/* An address that CUDA does not know, to ask about instead of one that it must not know. */
static const char pageable_example[64];

struct subject {
    struct window *window; /* NULL: forward as it is */
    CUdeviceptr ask;       /* the address to ask the driver about */
    uintptr_t start;
    size_t bytes;
    bool live; /* inside a live buffer of a window */
};

static struct subject subject_of(CUdeviceptr ptr)
{
    struct subject subject = {.ask = ptr};
    if (hostmem_owns((void *)ptr) && hostmem_hides((void *)ptr)) subject.ask = (CUdeviceptr)pageable_example;
    if (!context_hull_has(ptr) || !context_of_address(ptr)) return subject;
    subject.window = window_at(ptr);
    subject.live = subject.window && window_buffer(subject.window, ptr, &subject.start, &subject.bytes);
    subject.ask = subject.live ? subject.window->context->exemplar : (CUdeviceptr)pageable_example;
    return subject;
}

CUdeviceptr address_to_ask(CUdeviceptr ptr) { return subject_of(ptr).ask; }

static uint64_t buffer_id(uintptr_t start)
{
    struct buffer buffer;
    return buffer_find(start, &buffer) ? buffer.id : 0;
}

/* Puts right what depends on the address. Reads and writes only what the driver has just written. */
static void correct(const struct subject *subject, CUpointer_attribute attribute, void *data, CUdeviceptr ptr)
{
    if (!data) return;
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && !subject->live && subject->ask != ptr)
        memcpy(data, &ptr, sizeof ptr);
    if (!subject->live) return;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        memcpy(data, &ptr, sizeof ptr);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        memcpy(data, &subject->start, sizeof subject->start);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        memcpy(data, &subject->bytes, sizeof subject->bytes);
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: {
        uint64_t id = buffer_id(subject->start);
        memcpy(data, &id, sizeof id);
        break;
    }
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: {
        CUdeviceptr base = ptr / WINDOW_UNIT * WINDOW_UNIT;
        memcpy(data, &base, sizeof base);
        break;
    }
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: {
        bool on = window_sync_memops(subject->window, subject->start);
        memcpy(data, &on, sizeof on);
        break;
    }
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: /* whoever asks makes the buffer's operations synchronous */
        window_set_sync_memops(subject->window, subject->start, true);
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        memset(data, 0, 1);
        break; /* a window cannot be shared */
    default:
        break;
    }
}

CUresult hook_cuPointerGetAttribute(DRIVER(cuPointerGetAttribute) forward, bool per_thread, void *data,
                                    CUpointer_attribute attribute, CUdeviceptr ptr)
{
    (void)per_thread;
    struct subject subject = subject_of(ptr);
    CUresult result = forward(data, attribute, subject.ask);
    if (result == CUDA_SUCCESS) correct(&subject, attribute, data, ptr);
    return result;
}

CUresult hook_cuPointerGetAttributes(DRIVER(cuPointerGetAttributes) forward, bool per_thread,
                                     unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                     CUdeviceptr ptr)
{
    (void)per_thread;
    struct subject subject = subject_of(ptr);
    CUresult result = forward(numAttributes, attributes, data, subject.ask);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < numAttributes; i++)
        correct(&subject, attributes[i], data[i], ptr);
    return result;
}

CUresult hook_cuPointerSetAttribute(DRIVER(cuPointerSetAttribute) forward, bool per_thread, const void *value,
                                    CUpointer_attribute attribute, CUdeviceptr ptr)
{
    (void)per_thread;
    struct subject subject = subject_of(ptr);
    if (subject.live && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && value) {
        /* Of this buffer only; the exemplar, and with it every other buffer, keeps its own. */
        window_set_sync_memops(subject.window, subject.start, *(const unsigned *)value != 0);
        return CUDA_SUCCESS;
    }
    return forward(value, attribute, subject.ask);
}

CUresult hook_cuMemGetAddressRange_v2(DRIVER(cuMemGetAddressRange_v2) forward, bool per_thread, CUdeviceptr *pbase,
                                      size_t *psize, CUdeviceptr dptr)
{
    (void)per_thread;
    struct subject subject = subject_of(dptr);
    CUresult result = forward(pbase, psize, subject.ask);
    if (result == CUDA_SUCCESS && subject.live) {
        if (pbase) *pbase = subject.start;
        if (psize) *psize = subject.bytes;
    }
    return result;
}

/* Ways to hand memory to others, which a window does not have: the driver's own answer, a line in the report, and from
 * now on the site stays native. */
static void cannot_share(CUdeviceptr dptr, const char *call)
{
    struct window *window = window_at(dptr);
    if (!window) return;
    placement_freeze(dptr, "exported");
    if (window->site) atomic_store(&window->site->native_only, true);
    choice_mark(window->site, PROFILE_IPC);
    report_note(
        "%s of a buffer in a window: buffers that the shim may move cannot be shared; ZCSHIM_MODE=off or a rule "
        "place=device for "
        "its site avoids this",
        call);
}

CUresult hook_cuIpcGetMemHandle(DRIVER(cuIpcGetMemHandle) forward, bool per_thread, CUipcMemHandle *pHandle,
                                CUdeviceptr dptr)
{
    (void)per_thread;
    cannot_share(dptr, "cuIpcGetMemHandle");
    return forward(pHandle, dptr);
}

CUresult hook_cuMemGetHandleForAddressRange(DRIVER(cuMemGetHandleForAddressRange) forward, bool per_thread,
                                            void *handle, CUdeviceptr dptr, size_t size,
                                            CUmemRangeHandleType handleType, unsigned long long flags)
{
    (void)per_thread;
    cannot_share(dptr, "cuMemGetHandleForAddressRange");
    return forward(handle, dptr, size, handleType, flags);
}

/* Calls for VMM, managed or advised memory, natively refused for memory from cuMemAlloc: asked about the exemplar, so
 * that the window behind the buffer cannot be harmed. */
CUresult hook_cuMemRetainAllocationHandle(DRIVER(cuMemRetainAllocationHandle) forward, bool per_thread,
                                          CUmemGenericAllocationHandle *handle, void *addr)
{
    (void)per_thread;
    return forward(handle, (void *)subject_of((CUdeviceptr)addr).ask);
}

CUresult hook_cuMemUnmap(DRIVER(cuMemUnmap) forward, bool per_thread, CUdeviceptr ptr, size_t size)
{
    (void)per_thread;
    return forward(subject_of(ptr).ask, size);
}

CUresult hook_cuMemSetAccess(DRIVER(cuMemSetAccess) forward, bool per_thread, CUdeviceptr ptr, size_t size,
                             const CUmemAccessDesc *desc, size_t count)
{
    (void)per_thread;
    return forward(subject_of(ptr).ask, size, desc, count);
}

CUresult hook_cuMemGetAccess(DRIVER(cuMemGetAccess) forward, bool per_thread, unsigned long long *flags,
                             const CUmemLocation *location, CUdeviceptr ptr)
{
    (void)per_thread;
    return forward(flags, location, subject_of(ptr).ask);
}

CUresult hook_cuMemAddressFree(DRIVER(cuMemAddressFree) forward, bool per_thread, CUdeviceptr ptr, size_t size)
{
    (void)per_thread;
    return forward(subject_of(ptr).ask, size);
}

CUresult hook_cuMemAdvise(DRIVER(cuMemAdvise) forward, bool per_thread, CUdeviceptr devPtr, size_t count,
                          CUmem_advise advice, CUdevice device)
{
    (void)per_thread;
    return forward(subject_of(devPtr).ask, count, advice, device);
}

CUresult hook_cuMemAdvise_v2(DRIVER(cuMemAdvise_v2) forward, bool per_thread, CUdeviceptr devPtr, size_t count,
                             CUmem_advise advice, CUmemLocation location)
{
    (void)per_thread;
    return forward(subject_of(devPtr).ask, count, advice, location);
}

CUresult hook_cuMemRangeGetAttribute(DRIVER(cuMemRangeGetAttribute) forward, bool per_thread, void *data,
                                     size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count)
{
    (void)per_thread;
    return forward(data, dataSize, attribute, subject_of(devPtr).ask, count);
}

CUresult hook_cuMemRangeGetAttributes(DRIVER(cuMemRangeGetAttributes) forward, bool per_thread, void **data,
                                      size_t *dataSizes, CUmem_range_attribute *attributes, size_t numAttributes,
                                      CUdeviceptr devPtr, size_t count)
{
    (void)per_thread;
    return forward(data, dataSizes, attributes, numAttributes, subject_of(devPtr).ask, count);
}

CUresult hook_cuStreamAttachMemAsync(DRIVER(cuStreamAttachMemAsync) forward, bool per_thread, CUstream hStream,
                                     CUdeviceptr dptr, size_t length, unsigned int flags)
{
    (void)per_thread;
    return forward(hStream, subject_of(dptr).ask, length, flags);
}

CUresult hook_cuMemPrefetchAsync(DRIVER(cuMemPrefetchAsync) forward, bool per_thread, CUdeviceptr devPtr, size_t count,
                                 CUdevice dstDevice, CUstream hStream)
{
    (void)per_thread;
    return forward(subject_of(devPtr).ask, count, dstDevice, hStream);
}

CUresult hook_cuMemPrefetchAsync_v2(DRIVER(cuMemPrefetchAsync_v2) forward, bool per_thread, CUdeviceptr devPtr,
                                    size_t count, CUmemLocation location, unsigned int flags, CUstream hStream)
{
    (void)per_thread;
    return forward(subject_of(devPtr).ask, count, location, flags, hStream);
}

/* A texture holds the address. Whether also what is behind it, nobody says: the backing stays. */
CUresult hook_cuTexObjectCreate(DRIVER(cuTexObjectCreate) forward, bool per_thread, CUtexObject *pTexObject,
                                const CUDA_RESOURCE_DESC *pResDesc, const CUDA_TEXTURE_DESC *pTexDesc,
                                const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    (void)per_thread;
    if (pResDesc && pResDesc->resType == CU_RESOURCE_TYPE_LINEAR)
        placement_freeze(pResDesc->res.linear.devPtr, "read by a texture");
    if (pResDesc && pResDesc->resType == CU_RESOURCE_TYPE_PITCH2D)
        placement_freeze(pResDesc->res.pitch2D.devPtr, "read by a texture");
    return forward(pTexObject, pResDesc, pTexDesc, pResViewDesc);
}

CUresult hook_cuTexRefSetAddress_v2(DRIVER(cuTexRefSetAddress_v2) forward, bool per_thread, size_t *ByteOffset,
                                    CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
    (void)per_thread;
    placement_freeze(dptr, "read by a texture");
    return forward(ByteOffset, hTexRef, dptr, bytes);
}

CUresult hook_cuTexRefSetAddress2D_v3(DRIVER(cuTexRefSetAddress2D_v3) forward, bool per_thread, CUtexref hTexRef,
                                      const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
    (void)per_thread;
    placement_freeze(dptr, "read by a texture");
    return forward(hTexRef, desc, dptr, Pitch);
}

/* 2D and 3D copies: those between a window or device memory and linear host memory become a copy_request, all others are forwarded inside
 * the gate. */
#include "shim/context.h"
#include "shim/copy.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/hostmem.h"
#include "shim/window.h"

/* One side of a pitched copy: where its first byte is. */
struct side {
    enum copy_side kind;
    uintptr_t start;
    size_t pitch, slice;
};

static bool side_linear(struct side *side, CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch, size_t rows,
                        size_t x, size_t y, size_t z)
{
    uintptr_t base = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : (uintptr_t)device;
    if (type == CU_MEMORYTYPE_ARRAY) return false;
    side->pitch = pitch;
    side->slice = pitch * rows;
    side->start = base + z * side->slice + y * pitch + x;
    if (type == CU_MEMORYTYPE_HOST) side->kind = context_hull_has(base) ? SIDE_OTHER : SIDE_PAGEABLE;
    else side->kind = copy_side(side->start);
    /* Natively refused: pageable memory that is called device or unified. */
    if (type != CU_MEMORYTYPE_HOST && side->kind == SIDE_PAGEABLE) side->kind = SIDE_OTHER;
    return true;
}

/* True if the pitched copy is one between device and linear host memory that copy_begin should see. */
static bool request_from_sides(struct copy_request *request, const struct side *to, const struct side *from)
{
    const struct side *device = to, *host = from;
    request->direction = COPY_H2D;
    if (from->kind == SIDE_WINDOW || from->kind == SIDE_DEVICE) {
        device = from;
        host = to;
        request->direction = COPY_D2H;
    }
    if (device->kind != SIDE_WINDOW && device->kind != SIDE_DEVICE) return false;
    if (host->kind != SIDE_PAGEABLE && host->kind != SIDE_PINNED) return false;
    request->device = device->start;
    request->host = (void *)host->start;
    request->device_pitch = device->pitch;
    request->host_pitch = host->pitch;
    request->device_slice = device->slice;
    request->host_slice = host->slice;
    /* Rows that overlap, or a pitch that the driver must refuse: its affair. */
    if (request->height > 1 && (device->pitch < request->width || host->pitch < request->width)) return false;
    if (request->depth > 1 && (device->slice < request->height * device->pitch || host->slice < request->height * host->pitch))
        return false;
    return request->width && request->height && request->depth;
}

static bool worth_a_look(CUdeviceptr a, CUdeviceptr b, size_t bytes)
{
    return context_hull_has(a) || context_hull_has(b) || (bytes >= HOSTMEM_COPY_MIN && shim.options.host);
}

static bool request_2d(struct copy_request *request, const CUDA_MEMCPY2D *p, CUstream stream, bool async)
{
    struct side to, from;
    if (!p || !worth_a_look(p->dstDevice, p->srcDevice, p->WidthInBytes * p->Height)) return false;
    *request = copy_linear(COPY_H2D, 0, NULL, p->WidthInBytes, stream, async);
    request->height = p->Height;
    return side_linear(&to, p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch ? p->dstPitch : p->WidthInBytes, p->Height,
                       p->dstXInBytes, p->dstY, 0) &&
           side_linear(&from, p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch ? p->srcPitch : p->WidthInBytes,
                       p->Height, p->srcXInBytes, p->srcY, 0) &&
           request_from_sides(request, &to, &from);
}

static bool request_3d(struct copy_request *request, const CUDA_MEMCPY3D *p, CUstream stream, bool async)
{
    struct side to, from;
    if (!p || !worth_a_look(p->dstDevice, p->srcDevice, p->WidthInBytes * p->Height * p->Depth)) return false;
    if (p->srcLOD || p->dstLOD) return false;
    *request = copy_linear(COPY_H2D, 0, NULL, p->WidthInBytes, stream, async);
    request->height = p->Height;
    request->depth = p->Depth;
    return side_linear(&to, p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch ? p->dstPitch : p->WidthInBytes,
                       p->dstHeight ? p->dstHeight : p->Height, p->dstXInBytes, p->dstY, p->dstZ) &&
           side_linear(&from, p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch ? p->srcPitch : p->WidthInBytes,
                       p->srcHeight ? p->srcHeight : p->Height, p->srcXInBytes, p->srcY, p->srcZ) &&
           request_from_sides(request, &to, &from);
}

/* `between`: no host partner, or none that is ours to copy. Its plain form would block on a window on the host where natively it returns at
 * once, so it goes out in its asynchronous form on the same stream. */
#define COPY_PITCHED(request_call, a, b, forward_call, async_call)                                                     \
    do {                                                                                                               \
        struct copy_request request;                                                                                   \
        CUresult result;                                                                                               \
        if (request_call) {                                                                                            \
            if (copy_begin(&request, &result)) return result;                                                          \
            result = forward_call;                                                                                     \
            copy_end(&request, result);                                                                                \
            return result;                                                                                             \
        }                                                                                                              \
        bool entered = pCopy && copy_gate_enter(a, b);                                                                 \
        result = entered && !context_capturing() && no_host(pCopy->srcMemoryType, pCopy->dstMemoryType) ? async_call   \
                                                                                                         : forward_call; \
        copy_gate_leave(entered);                                                                                      \
        return result;                                                                                                 \
    } while (0)

static bool no_host(CUmemorytype a, CUmemorytype b) { return a == CU_MEMORYTYPE_DEVICE && b == CU_MEMORYTYPE_DEVICE; }

CUresult hook_cuMemcpy2D_v2(DRIVER(cuMemcpy2D_v2) forward, bool per_thread, const CUDA_MEMCPY2D *pCopy)
{
    COPY_PITCHED(request_2d(&request, pCopy, default_stream(per_thread), false), pCopy->dstDevice, pCopy->srcDevice,
                 forward(pCopy), shim.real.cuMemcpy2DAsync_v2(pCopy, default_stream(per_thread)));
}

CUresult hook_cuMemcpy2DUnaligned_v2(DRIVER(cuMemcpy2DUnaligned_v2) forward, bool per_thread, const CUDA_MEMCPY2D *pCopy)
{
    COPY_PITCHED(request_2d(&request, pCopy, default_stream(per_thread), false), pCopy->dstDevice, pCopy->srcDevice,
                 forward(pCopy), shim.real.cuMemcpy2DAsync_v2(pCopy, default_stream(per_thread)));
}

CUresult hook_cuMemcpy2DAsync_v2(DRIVER(cuMemcpy2DAsync_v2) forward, bool per_thread, const CUDA_MEMCPY2D *pCopy,
                                 CUstream hStream)
{
    COPY_PITCHED(request_2d(&request, pCopy, named_stream(hStream, per_thread), true), pCopy->dstDevice, pCopy->srcDevice,
                 forward(pCopy, hStream), forward(pCopy, hStream));
}

CUresult hook_cuMemcpy3D_v2(DRIVER(cuMemcpy3D_v2) forward, bool per_thread, const CUDA_MEMCPY3D *pCopy)
{
    COPY_PITCHED(request_3d(&request, pCopy, default_stream(per_thread), false), pCopy->dstDevice, pCopy->srcDevice,
                 forward(pCopy), shim.real.cuMemcpy3DAsync_v2(pCopy, default_stream(per_thread)));
}

CUresult hook_cuMemcpy3DAsync_v2(DRIVER(cuMemcpy3DAsync_v2) forward, bool per_thread, const CUDA_MEMCPY3D *pCopy,
                                 CUstream hStream)
{
    COPY_PITCHED(request_3d(&request, pCopy, named_stream(hStream, per_thread), true), pCopy->dstDevice, pCopy->srcDevice,
                 forward(pCopy, hStream), forward(pCopy, hStream));
}

CUresult hook_cuMemcpy3DPeer(DRIVER(cuMemcpy3DPeer) forward, bool per_thread, const CUDA_MEMCPY3D_PEER *pCopy)
{
    (void)per_thread;
    bool entered = pCopy && copy_gate_enter(pCopy->dstDevice, pCopy->srcDevice);
    CUresult result = forward(pCopy);
    copy_gate_leave(entered);
    return result;
}

CUresult hook_cuMemcpy3DPeerAsync(DRIVER(cuMemcpy3DPeerAsync) forward, bool per_thread, const CUDA_MEMCPY3D_PEER *pCopy,
                                  CUstream hStream)
{
    (void)per_thread;
    bool entered = pCopy && copy_gate_enter(pCopy->dstDevice, pCopy->srcDevice);
    CUresult result = forward(pCopy, hStream);
    copy_gate_leave(entered);
    return result;
}

/* 2D and 3D copies: those between a window or device memory and linear host memory become a copy_request, all others
 * are forwarded inside the gate. */
#include "shim/context.h"
#include "shim/copy.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/hostmem.h"
#include "shim/kernel.h"
#include "shim/window.h"

/* One side of a pitched copy: where its first byte is. */
struct side {
    enum copy_side kind;
    uintptr_t start;
    size_t pitch, slice;
};

static bool side_linear(struct side *side, CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch,
                        size_t rows, size_t x, size_t y, size_t z)
{
    uintptr_t base = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : (uintptr_t)device;
    if (type == CU_MEMORYTYPE_ARRAY) return false;
    side->pitch = pitch;
    side->slice = pitch * rows;
    side->start = base + z * side->slice + y * pitch + x;
    if (type == CU_MEMORYTYPE_HOST)
        side->kind = context_hull_has(base) ? SIDE_OTHER : SIDE_PAGEABLE;
    else
        side->kind = copy_side(side->start);
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
    if (request->depth > 1 &&
        (device->slice < request->height * device->pitch || host->slice < request->height * host->pitch))
        return false;
    return true;
}

/* What a pitched copy is, seen from here. */
enum pitched { PITCHED_FORWARD, PITCHED_HOST, PITCHED_BETWEEN, PITCHED_REFUSED };

/* Large host blocks at any size: a forwarded copy would cost them their registration. */
static bool worth_a_look(CUdeviceptr a, CUdeviceptr b, const void *host_a, const void *host_b, size_t bytes)
{
    return context_hull_has(a) || context_hull_has(b) || hostmem_owns(host_a) || hostmem_owns(host_b) ||
           (bytes >= HOSTMEM_COPY_MIN && shim.options.host);
}

static bool side_out_of_bounds(const struct copy_request *request, const struct side *side)
{
    if (side->kind != SIDE_WINDOW) return false;
    return copy_out_of_bounds(side->start,
                              copy_extent(request->width, request->height, request->depth, side->pitch, side->slice));
}

static bool side_on_host(const struct side *side)
{
    struct window *window = side->kind == SIDE_WINDOW ? window_at(side->start) : NULL;
    return window && window->place == WINDOW_HOST;
}

static enum pitched classify(struct copy_request *request, const struct side *to, const struct side *from)
{
    if (!request->width || !request->height || !request->depth) return PITCHED_FORWARD;
    if (side_out_of_bounds(request, to) || side_out_of_bounds(request, from)) return PITCHED_REFUSED;
    if (request_from_sides(request, to, from)) return PITCHED_HOST;
    bool to_device = to->kind == SIDE_WINDOW || to->kind == SIDE_DEVICE;
    bool from_device = from->kind == SIDE_WINDOW || from->kind == SIDE_DEVICE;
    if (!to_device || !from_device || !(side_on_host(to) || side_on_host(from))) return PITCHED_FORWARD;
    request->direction = COPY_H2D;
    request->device = to->start;
    request->device_pitch = to->pitch;
    request->device_slice = to->slice;
    request->host = (void *)from->start;
    request->host_pitch = from->pitch;
    request->host_slice = from->slice;
    return PITCHED_BETWEEN;
}

static enum pitched classify_2d(struct copy_request *request, const CUDA_MEMCPY2D *p, CUstream stream, bool async)
{
    struct side to, from;
    if (!p || !worth_a_look(p->dstDevice, p->srcDevice, p->dstHost, p->srcHost, p->WidthInBytes * p->Height))
        return PITCHED_FORWARD;
    *request = copy_linear(COPY_H2D, 0, NULL, p->WidthInBytes, stream, async);
    request->height = p->Height;
    bool to_linear = side_linear(&to, p->dstMemoryType, p->dstHost, p->dstDevice,
                                 p->dstPitch ? p->dstPitch : p->WidthInBytes, p->Height, p->dstXInBytes, p->dstY, 0);
    bool from_linear = side_linear(&from, p->srcMemoryType, p->srcHost, p->srcDevice,
                                   p->srcPitch ? p->srcPitch : p->WidthInBytes, p->Height, p->srcXInBytes, p->srcY, 0);
    if (to_linear && from_linear) return classify(request, &to, &from);
    if (request->width && request->height &&
        ((to_linear && side_out_of_bounds(request, &to)) || (from_linear && side_out_of_bounds(request, &from))))
        return PITCHED_REFUSED;
    return PITCHED_FORWARD;
}

static enum pitched classify_3d(struct copy_request *request, const CUDA_MEMCPY3D *p, CUstream stream, bool async)
{
    struct side to, from;
    if (!p || !worth_a_look(p->dstDevice, p->srcDevice, p->dstHost, p->srcHost, p->WidthInBytes * p->Height * p->Depth))
        return PITCHED_FORWARD;
    if (p->srcLOD || p->dstLOD) return PITCHED_FORWARD;
    *request = copy_linear(COPY_H2D, 0, NULL, p->WidthInBytes, stream, async);
    request->height = p->Height;
    request->depth = p->Depth;
    if (!side_linear(&to, p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch ? p->dstPitch : p->WidthInBytes,
                     p->dstHeight ? p->dstHeight : p->Height, p->dstXInBytes, p->dstY, p->dstZ) ||
        !side_linear(&from, p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch ? p->srcPitch : p->WidthInBytes,
                     p->srcHeight ? p->srcHeight : p->Height, p->srcXInBytes, p->srcY, p->srcZ))
        return PITCHED_FORWARD;
    return classify(request, &to, &from);
}

/* Between device buffers of which one is in a window on the host, every form of the driver's blocks behind a busy
 * stream (conformance: order_pinned): the copy kernel does it. The gate is held. */
static bool between_by_kernel(struct copy_request *request, CUresult *result)
{
    struct context *context = context_current();
    /* With several devices the other side may be where this one's kernels cannot reach. */
    if (!context || context_capturing() || !context->copy_kernel || contexts_several()) return false;
    *result = kernel_copy(context, request, (CUdeviceptr)request->host, request->stream);
    return *result == CUDA_SUCCESS;
}

/* A forwarded copy must find large host blocks as pageable as they are to the program. `rows`: all that the side may
 * touch, and more. */
static void host_native(CUmemorytype type, const void *host, CUdeviceptr unified, size_t pitch, size_t rows)
{
    if (type == CU_MEMORYTYPE_UNIFIED) host = (void *)unified;
    if (type != CU_MEMORYTYPE_ARRAY && type != CU_MEMORYTYPE_DEVICE && hostmem_owns(host))
        hostmem_make_native(host, pitch * rows, context_capturing());
}

#define ROWS_2D(side) (pCopy->side##Y + pCopy->Height + 1)
#define ROWS_3D(side)                                                                                                  \
    ((pCopy->side##Height ? pCopy->side##Height : pCopy->Height) * (pCopy->side##Z + pCopy->Depth) + pCopy->side##Y + 1)
#define COPY_PITCHED(classify_call, captured_stream, a, b, src_rows, dst_rows, forward_call)                           \
    do {                                                                                                               \
        struct copy_request request;                                                                                   \
        CUresult result;                                                                                               \
        enum pitched pitched = classify_call;                                                                          \
        if (pitched == PITCHED_REFUSED) return CUDA_ERROR_INVALID_VALUE;                                               \
        if (pitched == PITCHED_HOST) {                                                                                 \
            if (copy_begin(&request, &result)) return result;                                                          \
            result = forward_call;                                                                                     \
            copy_end(&request, result);                                                                                \
            return result;                                                                                             \
        }                                                                                                              \
        if (pCopy)                                                                                                     \
            host_native(pCopy->srcMemoryType, pCopy->srcHost, pCopy->srcDevice,                                        \
                        pCopy->srcPitch ? pCopy->srcPitch : pCopy->WidthInBytes, src_rows);                            \
        if (pCopy)                                                                                                     \
            host_native(pCopy->dstMemoryType, pCopy->dstHost, pCopy->dstDevice,                                        \
                        pCopy->dstPitch ? pCopy->dstPitch : pCopy->WidthInBytes, dst_rows);                            \
        if (pCopy) copy_freeze_captured(captured_stream, a, b);                                                        \
        bool entered = pCopy && copy_gate_enter(a, b);                                                                 \
        if (pitched != PITCHED_BETWEEN || !between_by_kernel(&request, &result)) result = forward_call;                \
        copy_gate_leave(entered);                                                                                      \
        return result;                                                                                                 \
    } while (0)

CUresult hook_cuMemcpy2D_v2(DRIVER(cuMemcpy2D_v2) forward, bool per_thread, const CUDA_MEMCPY2D *pCopy)
{
    COPY_PITCHED(classify_2d(&request, pCopy, default_stream(per_thread), false), default_stream(per_thread),
                 pCopy->dstDevice, pCopy->srcDevice, ROWS_2D(src), ROWS_2D(dst), forward(pCopy));
}

CUresult hook_cuMemcpy2DUnaligned_v2(DRIVER(cuMemcpy2DUnaligned_v2) forward, bool per_thread,
                                     const CUDA_MEMCPY2D *pCopy)
{
    COPY_PITCHED(classify_2d(&request, pCopy, default_stream(per_thread), false), default_stream(per_thread),
                 pCopy->dstDevice, pCopy->srcDevice, ROWS_2D(src), ROWS_2D(dst), forward(pCopy));
}

CUresult hook_cuMemcpy2DAsync_v2(DRIVER(cuMemcpy2DAsync_v2) forward, bool per_thread, const CUDA_MEMCPY2D *pCopy,
                                 CUstream hStream)
{
    COPY_PITCHED(classify_2d(&request, pCopy, named_stream(hStream, per_thread), true),
                 named_stream(hStream, per_thread), pCopy->dstDevice, pCopy->srcDevice, ROWS_2D(src), ROWS_2D(dst),
                 forward(pCopy, hStream));
}

CUresult hook_cuMemcpy3D_v2(DRIVER(cuMemcpy3D_v2) forward, bool per_thread, const CUDA_MEMCPY3D *pCopy)
{
    COPY_PITCHED(classify_3d(&request, pCopy, default_stream(per_thread), false), default_stream(per_thread),
                 pCopy->dstDevice, pCopy->srcDevice, ROWS_3D(src), ROWS_3D(dst), forward(pCopy));
}

CUresult hook_cuMemcpy3DAsync_v2(DRIVER(cuMemcpy3DAsync_v2) forward, bool per_thread, const CUDA_MEMCPY3D *pCopy,
                                 CUstream hStream)
{
    COPY_PITCHED(classify_3d(&request, pCopy, named_stream(hStream, per_thread), true),
                 named_stream(hStream, per_thread), pCopy->dstDevice, pCopy->srcDevice, ROWS_3D(src), ROWS_3D(dst),
                 forward(pCopy, hStream));
}

/* A 3D peer copy within one context, as the 3D copy that it is. */
static enum pitched classify_peer(struct copy_request *request, const CUDA_MEMCPY3D_PEER *p, CUstream stream,
                                  bool async)
{
    struct context *context = p && p->srcContext == p->dstContext ? context_current() : NULL;
    if (!context || context->handle != p->srcContext) return PITCHED_FORWARD;
    CUDA_MEMCPY3D plain = {.srcXInBytes = p->srcXInBytes,
                           .srcY = p->srcY,
                           .srcZ = p->srcZ,
                           .srcLOD = p->srcLOD,
                           .srcMemoryType = p->srcMemoryType,
                           .srcHost = p->srcHost,
                           .srcDevice = p->srcDevice,
                           .srcArray = p->srcArray,
                           .srcPitch = p->srcPitch,
                           .srcHeight = p->srcHeight,
                           .dstXInBytes = p->dstXInBytes,
                           .dstY = p->dstY,
                           .dstZ = p->dstZ,
                           .dstLOD = p->dstLOD,
                           .dstMemoryType = p->dstMemoryType,
                           .dstHost = p->dstHost,
                           .dstDevice = p->dstDevice,
                           .dstArray = p->dstArray,
                           .dstPitch = p->dstPitch,
                           .dstHeight = p->dstHeight,
                           .WidthInBytes = p->WidthInBytes,
                           .Height = p->Height,
                           .Depth = p->Depth};
    return classify_3d(request, &plain, stream, async);
}

CUresult hook_cuMemcpy3DPeer(DRIVER(cuMemcpy3DPeer) forward, bool per_thread, const CUDA_MEMCPY3D_PEER *pCopy)
{
    COPY_PITCHED(classify_peer(&request, pCopy, default_stream(per_thread), false), default_stream(per_thread),
                 pCopy->dstDevice, pCopy->srcDevice, ROWS_3D(src), ROWS_3D(dst), forward(pCopy));
}

CUresult hook_cuMemcpy3DPeerAsync(DRIVER(cuMemcpy3DPeerAsync) forward, bool per_thread, const CUDA_MEMCPY3D_PEER *pCopy,
                                  CUstream hStream)
{
    COPY_PITCHED(classify_peer(&request, pCopy, named_stream(hStream, per_thread), true),
                 named_stream(hStream, per_thread), pCopy->dstDevice, pCopy->srcDevice, ROWS_3D(src), ROWS_3D(dst),
                 forward(pCopy, hStream));
}

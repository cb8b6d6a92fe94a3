/* Contexts that end take their windows, buffers and registrations with them. */
#include "shim/context.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/hostmem.h"
#include "shim/kernels.h"
#include "shim/lend.h"

#define DESTROY(ctx, forward_call)                                                                                     \
    do {                                                                                                               \
        /* The driver refuses to destroy a primary context; those end by release or reset. */                          \
        if (!context_is_primary(ctx)) {                                                                                \
            lend_context_ends(ctx);                                                                                    \
            context_retire(ctx);                                                                                       \
            hostmem_context_gone(ctx);                                                                                 \
            kernels_context_gone(ctx);                                                                                 \
        }                                                                                                              \
        return forward_call;                                                                                           \
    } while (0)

CUresult hook_cuCtxDestroy_v2(DRIVER(cuCtxDestroy_v2) forward, bool per_thread, CUcontext ctx)
{
    (void)per_thread;
    DESTROY(ctx, forward(ctx));
}

CUresult hook_cuCtxDestroy(DRIVER(cuCtxDestroy) forward, bool per_thread, CUcontext ctx)
{
    (void)per_thread;
    DESTROY(ctx, forward(ctx));
}

CUresult hook_cuCtxDetach(DRIVER(cuCtxDetach) forward, bool per_thread, CUcontext ctx)
{
    (void)per_thread;
    unsigned version;
    lend_end_all(); /* it may be the end of the context */
    CUresult result = forward(ctx);
    /* It may only have counted down. */
    if (result == CUDA_SUCCESS && shim.real.cuCtxGetApiVersion(ctx, &version) != CUDA_SUCCESS) {
        hostmem_context_gone(ctx);
        kernels_context_gone(ctx);
        context_forget(ctx);
    }
    return result;
}

struct gone {
    CUdevice device;
    CUcontext contexts[CONTEXT_MAX];
    int count;
};

static void visit(struct context *context, void *argument)
{
    struct gone *gone = argument;
    if (context->primary && context->device == gone->device) gone->contexts[gone->count++] = context->handle;
}

/* The driver has dropped registrations and reservations itself (facts.md: cuDevicePrimaryCtxReset). */
static void primary_gone(CUdevice device)
{
    struct gone gone = {.device = device};
    context_for_each(visit, &gone);
    for (int i = 0; i < gone.count; i++) {
        hostmem_context_gone(gone.contexts[i]);
        kernels_context_gone(gone.contexts[i]);
        context_forget(gone.contexts[i]);
    }
}

/* Before a reset: what can be given back in order, is. */
static void primary_retire(CUdevice device)
{
    struct gone gone = {.device = device};
    context_for_each(visit, &gone);
    for (int i = 0; i < gone.count; i++) {
        lend_context_ends(gone.contexts[i]);
        context_retire(gone.contexts[i]);
        hostmem_context_gone(gone.contexts[i]);
        kernels_context_gone(gone.contexts[i]);
    }
}

static CUresult released(CUresult result, CUdevice device)
{
    unsigned flags;
    int active = 1;
    if (result == CUDA_SUCCESS && shim.real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
        !active)
        primary_gone(device);
    return result;
}

CUresult hook_cuDevicePrimaryCtxReset(DRIVER(cuDevicePrimaryCtxReset) forward, bool per_thread, CUdevice dev)
{
    (void)per_thread;
    primary_retire(dev);
    return forward(dev);
}

CUresult hook_cuDevicePrimaryCtxReset_v2(DRIVER(cuDevicePrimaryCtxReset_v2) forward, bool per_thread, CUdevice dev)
{
    (void)per_thread;
    primary_retire(dev);
    return forward(dev);
}

CUresult hook_cuDevicePrimaryCtxRelease(DRIVER(cuDevicePrimaryCtxRelease) forward, bool per_thread, CUdevice dev)
{
    (void)per_thread;
    lend_end_all(); /* it may be the end of the context */
    return released(forward(dev), dev);
}

CUresult hook_cuDevicePrimaryCtxRelease_v2(DRIVER(cuDevicePrimaryCtxRelease_v2) forward, bool per_thread, CUdevice dev)
{
    (void)per_thread;
    lend_end_all(); /* it may be the end of the context */
    return released(forward(dev), dev);
}

CUresult hook_cuCtxFromGreenCtx(DRIVER(cuCtxFromGreenCtx) forward, bool per_thread, CUcontext *pContext,
                                CUgreenCtx hCtx)
{
    (void)per_thread;
    CUresult result = forward(pContext, hCtx);
    if (result == CUDA_SUCCESS) context_note_green(*pContext);
    return result;
}

CUresult hook_cuCtxEnablePeerAccess(DRIVER(cuCtxEnablePeerAccess) forward, bool per_thread, CUcontext peerContext,
                                    unsigned int Flags)
{
    (void)per_thread;
    lend_end_all();
    CUresult result = forward(peerContext, Flags);
    struct context *reader = result == CUDA_SUCCESS ? context_current() : NULL;
    gate_enter(); /* no window moves meanwhile */
    if (reader) context_peer_enabled(peerContext, reader);
    gate_leave();
    return result;
}

CUresult hook_cuCtxDisablePeerAccess(DRIVER(cuCtxDisablePeerAccess) forward, bool per_thread, CUcontext peerContext)
{
    (void)per_thread;
    CUresult result = forward(peerContext);
    struct context *reader = result == CUDA_SUCCESS ? context_current() : NULL;
    gate_enter();
    if (reader) context_peer_disabled(peerContext, reader);
    gate_leave();
    return result;
}

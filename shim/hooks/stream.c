/* Streams: known from their creation, and the program's own waits, which spare the shim its own. */
#include "shim/context.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"

static void created(CUresult result, const CUstream *stream, bool non_blocking)
{
    struct context *context = result == CUDA_SUCCESS && non_blocking ? context_current() : NULL;
    if (context)
        context_add_stream(context, *stream);
    else if (result == CUDA_SUCCESS && non_blocking)
        context_unknown_stream();
}

CUresult hook_cuStreamCreate(DRIVER(cuStreamCreate) forward, bool per_thread, CUstream *phStream, unsigned int Flags)
{
    (void)per_thread;
    CUresult result = forward(phStream, Flags);
    created(result, phStream, Flags & CU_STREAM_NON_BLOCKING);
    return result;
}

CUresult hook_cuStreamCreateWithPriority(DRIVER(cuStreamCreateWithPriority) forward, bool per_thread,
                                         CUstream *phStream, unsigned int flags, int priority)
{
    (void)per_thread;
    CUresult result = forward(phStream, flags, priority);
    created(result, phStream, flags & CU_STREAM_NON_BLOCKING);
    return result;
}

CUresult hook_cuGreenCtxStreamCreate(DRIVER(cuGreenCtxStreamCreate) forward, bool per_thread, CUstream *phStream,
                                     CUgreenCtx greenCtx, unsigned int flags, int priority)
{
    (void)per_thread;
    CUresult result = forward(phStream, greenCtx, flags, priority);
    created(result, phStream, true);
    return result;
}

static CUresult destroy(DRIVER(cuStreamDestroy_v2) forward, CUstream stream)
{
    gate_enter();
    struct context *context = context_remove_stream(stream);
    if (context && (context_capturing() || shim.real.cuStreamQuery(stream) != CUDA_SUCCESS))
        context_orphan(context, stream);
    CUresult result = forward(stream);
    if (context && result != CUDA_SUCCESS) context_add_stream(context, stream);
    if (result == CUDA_SUCCESS) context_capture_ended(stream);
    gate_leave_submitted();
    return result;
}

CUresult hook_cuStreamDestroy(DRIVER(cuStreamDestroy) forward, bool per_thread, CUstream hStream)
{
    (void)per_thread;
    return destroy(forward, hStream);
}

CUresult hook_cuStreamDestroy_v2(DRIVER(cuStreamDestroy_v2) forward, bool per_thread, CUstream hStream)
{
    (void)per_thread;
    return destroy(forward, hStream);
}

CUresult hook_cuStreamSynchronize(DRIVER(cuStreamSynchronize) forward, bool per_thread, CUstream hStream)
{
    uint64_t work = gate_work();
    CUresult result = forward(hStream);
    context_note(result);
    if (result == CUDA_SUCCESS && named_stream(hStream, per_thread) == CU_STREAM_LEGACY) {
        struct context *context = context_current();
        if (context) context_waited_blocking(context, work);
    }
    return result;
}

CUresult hook_cuCtxSynchronize(DRIVER(cuCtxSynchronize) forward, bool per_thread)
{
    (void)per_thread;
    uint64_t work = gate_work();
    CUresult result = forward();
    context_note(result);
    struct context *context = result == CUDA_SUCCESS ? context_current() : NULL;
    if (context) context_waited_all(context, work);
    return result;
}

CUresult hook_cuCtxSynchronize_v2(DRIVER(cuCtxSynchronize_v2) forward, bool per_thread, CUcontext ctx)
{
    (void)per_thread;
    uint64_t work = gate_work();
    CUresult result = forward(ctx);
    context_note(result);
    struct context *context = result == CUDA_SUCCESS ? context_current() : NULL;
    if (context && (!ctx || ctx == context->handle)) context_waited_all(context, work);
    return result;
}

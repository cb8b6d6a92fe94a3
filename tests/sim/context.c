/* Contexts: primary ones and created ones, and which is current where. */
#include "memory.h"

#define STACK_MAX 64
/* The last one is current. Aligned because leak checkers misread a thread's block of such variables that begins 16
 * bytes into a page. */
static __thread CUcontext stack[STACK_MAX] __attribute__((aligned(64)));
static __thread int stack_depth;

bool context_valid(CUcontext context)
{
    for (CUcontext each = sim.contexts; each; each = each->next)
        if (each == context) return true;
    return false;
}

static CUcontext context_top(void) { return stack_depth ? stack[stack_depth - 1] : NULL; }

CUresult context_current(CUcontext *context)
{
    CUcontext top = context_top();
    if (!top) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_valid(top)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = top;
    return top->lost;
}

void context_lose(CUcontext context, CUresult why)
{
    if (!context->lost) context->lost = why;
    sim_notify();
}

void context_drain(CUcontext context)
{
    for (bool again = true; again;) {
        again = false;
        for (CUstream stream = context->streams; stream; stream = stream->next)
            if (stream->completed < stream->submitted) again = true;
        if (again) sim_wait();
    }
}

/* A device's primary context is always the same structure, so that its handle is good again after a reset. */
static CUcontext context_create(CUdevice device, unsigned flags, bool primary)
{
    CUcontext context = primary ? sim.devices[device].primary_storage : NULL;
    if (context)
        memset(context, 0, sizeof *context);
    else
        context = calloc(1, sizeof *context);
    if (primary) sim.devices[device].primary_storage = context;
    context->magic = CONTEXT_MAGIC;
    context->device = device;
    context->flags = flags;
    context->api_version = 3020;
    context->primary = primary;
    context->id = sim.next_id++;
    context->limits[CU_LIMIT_STACK_SIZE] = 1024;
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7 << 20;
    context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    context->legacy = stream_create(context, STREAM_LEGACY, 0, 0);
    context->next = sim.contexts;
    sim.contexts = context;
    return context;
}

/* Everything that belongs to it goes; the structure stays, since handles to it may. */
static void context_destroy(CUcontext context)
{
    if (!context->lost) context_drain(context);
    for (CUcontext *link = &sim.contexts; *link; link = &(*link)->next)
        if (*link == context) {
            *link = context->next;
            break;
        }
    while (context->streams) {
        CUstream stream = context->streams;
        stream_retire(stream);
        stream_unlink(stream);
    }
    allocations_forget(context);
    spans_forget(context);
    context->magic = 0;
    sim_notify();
}

static CUresult context_push(CUcontext context)
{
    if (stack_depth == STACK_MAX) return CUDA_ERROR_OUT_OF_MEMORY;
    stack[stack_depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult created(CUcontext *context, unsigned flags, CUdevice device)
{
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.device_count) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    CUcontext made = context_create(device, flags, false);
    CUresult result = context_push(made);
    sim_unlock();
    *context = made;
    return result;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    SIM_ENTER(cuCtxCreate_v2);
    return created(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned flags, CUdevice device)
{
    SIM_ENTER(cuCtxCreate_v3);
    if (affinity || count) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return created(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned flags, CUdevice device)
{
    SIM_ENTER(cuCtxCreate_v4);
    if (parameters && parameters->numExecAffinityParams) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return created(context, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    SIM_ENTER(cuCtxDestroy_v2);
    sim_lock();
    CUresult result = context_valid(context) && !context->primary ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (!result) {
        context_destroy(context);
        if (context_top() == context) stack_depth--;
    }
    sim_unlock();
    return result;
}

static CUresult primary_retain(CUcontext *context, CUdevice device)
{
    struct sim_device *owner = &sim.devices[device];
    if (!owner->primary) owner->primary = context_create(device, owner->primary_flags, true);
    owner->primary_references++;
    *context = owner->primary;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    SIM_ENTER(cuDevicePrimaryCtxRetain);
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.device_count) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    CUresult result = primary_retain(context, device);
    sim_unlock();
    return result;
}

static void primary_end(struct sim_device *owner)
{
    CUcontext context = owner->primary;
    owner->primary = NULL;
    if (context) context_destroy(context);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    SIM_ENTER(cuDevicePrimaryCtxRelease_v2);
    if (device < 0 || device >= sim.device_count) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_device *owner = &sim.devices[device];
    CUresult result = owner->primary_references ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (!result && !--owner->primary_references) primary_end(owner);
    sim_unlock();
    return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    SIM_ENTER(cuDevicePrimaryCtxReset_v2);
    if (device < 0 || device >= sim.device_count) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_device *owner = &sim.devices[device];
    primary_end(owner);
    owner->primary_references = 0;
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    SIM_ENTER(cuDevicePrimaryCtxSetFlags_v2);
    if (device < 0 || device >= sim.device_count) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    sim.devices[device].primary_flags = flags;
    if (sim.devices[device].primary) sim.devices[device].primary->flags = flags;
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    SIM_ENTER(cuDevicePrimaryCtxGetState);
    if (device < 0 || device >= sim.device_count) return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    *flags = sim.devices[device].primary_flags;
    *active = sim.devices[device].primary != NULL;
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    SIM_ENTER(cuCtxGetCurrent);
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = context_top();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    SIM_ENTER(cuCtxSetCurrent);
    sim_lock();
    CUresult result = CUDA_SUCCESS;
    if (context && !context_valid(context))
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (!context)
        stack_depth -= stack_depth > 0;
    else if (stack_depth)
        stack[stack_depth - 1] = context;
    else
        result = context_push(context);
    sim_unlock();
    return result;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    SIM_ENTER(cuCtxPushCurrent_v2);
    sim_lock();
    CUresult result = context_valid(context) ? context_push(context) : CUDA_ERROR_INVALID_CONTEXT;
    sim_unlock();
    return result;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    SIM_ENTER(cuCtxPopCurrent_v2);
    if (!stack_depth) return CUDA_ERROR_INVALID_CONTEXT;
    stack_depth--;
    if (context) *context = stack[stack_depth];
    return CUDA_SUCCESS;
}

static CUresult synchronized(CUcontext context)
{
    CUresult result = context_valid(context) ? context->lost : CUDA_ERROR_INVALID_CONTEXT;
    if (!result) result = capture_refuses_context(context);
    if (result) return result;
    context_drain(context);
    return context->lost;
}

CUresult cuCtxSynchronize(void)
{
    SIM_ENTER(cuCtxSynchronize);
    CUcontext context;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) result = synchronized(context);
    sim_unlock();
    return result;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    SIM_ENTER(cuCtxSynchronize_v2);
    sim_lock();
    if (!context) context = context_top();
    CUresult result = synchronized(context);
    sim_unlock();
    return result;
}

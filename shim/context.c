#include <string.h>
#include "shim/arena.h"
#include "shim/buffer.h"
#include "shim/context.h"
#include "shim/earning.h"
#include "shim/gate.h"
#include "shim/kernel.h"
#include "shim/report.h"
#include "shim/shim.h"
#include "shim/window.h"

struct context_hull context_hull;
_Atomic uint32_t context_memory_epoch = 1;

static struct {
    struct context entries[CONTEXT_MAX];
    _Atomic int used; /* entries ever used */
    struct lock lock; /* adding and removing entries */
} contexts = {.lock = LOCK_INITIALIZER};

/* The last context of this thread; the generation tells a reused entry. */
static __thread struct context *last_context;

static struct context *find(CUcontext handle)
{
    int used = atomic_load_explicit(&contexts.used, memory_order_acquire);
    for (int i = 0; i < used; i++)
        if (atomic_load_explicit(&contexts.entries[i].handle, memory_order_acquire) == handle)
            return &contexts.entries[i];
    return NULL;
}

#define GREEN_MAX 64
static _Atomic(CUcontext) green_contexts[GREEN_MAX];

void context_note_green(CUcontext handle)
{
    for (int i = 0; i < GREEN_MAX; i++) {
        CUcontext none = NULL;
        if (green_contexts[i] == handle || atomic_compare_exchange_strong(&green_contexts[i], &none, handle)) return;
    }
}

static bool is_green(CUcontext handle)
{
    for (int i = 0; i < GREEN_MAX && green_contexts[i]; i++)
        if (green_contexts[i] == handle) return true;
    return false;
}

static struct context *add(CUcontext handle)
{
    if (is_green(handle)) return NULL;
    CUdevice device;
    if (shim.real.cuCtxGetDevice(&device) != CUDA_SUCCESS) return NULL;
    CUcontext primary = NULL;
    unsigned flags;
    int active = 0;
    /* Retaining an active primary context only counts it once more; that is undone at once. */
    shim.real.cuDevicePrimaryCtxGetState(device, &flags, &active);
    if (active && shim.real.cuDevicePrimaryCtxRetain(&primary, device) == CUDA_SUCCESS)
        shim.real.cuDevicePrimaryCtxRelease_v2(device);
    lock_acquire(&contexts.lock);
    struct context *context = find(handle);
    for (int i = 0; !context && i < CONTEXT_MAX; i++) {
        if (contexts.entries[i].handle) continue;
        context = &contexts.entries[i];
        struct context before = *context; /* tables that the entry had are used again */
        memset(context, 0, sizeof *context);
        context->lock = (struct lock)LOCK_INITIALIZER;
        context->generation = before.generation + 1;
        context->device = device;
        context->primary = primary == handle;
        context->units = before.units;
        context->streams = before.streams;
        context->stream_capacity = before.stream_capacity;
        atomic_store_explicit(&context->handle, handle, memory_order_release);
        if (i >= contexts.used) atomic_store_explicit(&contexts.used, i + 1, memory_order_release);
    }
    lock_release(&contexts.lock);
    return context;
}

struct context *context_current(void)
{
    CUcontext handle = NULL;
    if (shim.real.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || !handle) return NULL;
    struct context *context = last_context;
    if (context && atomic_load_explicit(&context->handle, memory_order_relaxed) == handle) return context;
    context = find(handle);
    if (!context) context = add(handle);
    last_context = context;
    return context;
}

static int attribute(CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    return shim.real.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

/* Abilities, addresses, copy kernel, probe: the first use of windows in a context pays for them. */
static void set_up(struct context *context)
{
    const struct driver *real = &shim.real;
    CUdevice device = context->device;
    context->integrated = attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED);
    if (!real->cuMemAddressReserve || !attribute(device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) ||
        !attribute(device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) ||
        !attribute(device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED) ||
        !attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)) {
        report_note("device %d cannot map registered host memory at its own address: small buffers stay native",
                    device);
        return;
    }
    bool vmm = attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    size_t table_bytes = CONTEXT_UNITS * sizeof *context->units;
    CUdeviceptr base = 0;
    if (!vmm || real->cuMemAddressReserve(&base, CONTEXT_RESERVE, WINDOW_UNIT, 0, 0) != CUDA_SUCCESS) {
        report_note("device %d has no virtual memory management: small buffers stay native", device);
        return;
    }
    if (context->units)
        memset(context->units, 0, table_bytes);
    else
        context->units = arena_calloc(table_bytes);
    if (!context->units || real->cuMemAlloc_v2(&context->exemplar, WINDOW_SLOT) != CUDA_SUCCESS) return;
    if (shim.options.mode == MODE_AUTO) earning_start();
    context->base = base;
    context->support = CONTEXT_MOVES;
    if (shim.options.mode == MODE_ALWAYS || shim.options.stress_moves) {
        kernel_load(context);
        /* Without it an asynchronous copy behind a busy stream would wait: for ever, if the program lets the stream go
         * on after that copy. */
        if (!context->copy_kernel) {
            context->support = CONTEXT_NATIVE;
            return;
        }
    }
    lock_acquire(&contexts.lock);
    if (!context_hull.low || base < context_hull.low) atomic_store(&context_hull.low, base);
    if (base + CONTEXT_RESERVE > context_hull.high) atomic_store(&context_hull.high, base + CONTEXT_RESERVE);
    lock_release(&contexts.lock);
    if (!window_probe(context)) {
        context->support = shim.options.mode == MODE_ALWAYS ? CONTEXT_HOST_ONLY : CONTEXT_NATIVE;
        report_note("device %d: memory at a fixed address cannot change its backing with this driver: %s", device,
                    context->support == CONTEXT_NATIVE ? "small buffers stay native"
                                                       : "small buffers stay on the host");
    }
}

bool context_ready(struct context *context)
{
    int setup = atomic_load_explicit(&context->setup, memory_order_acquire);
    if (setup == 0) {
        /* A thread that meets a set-up under way does not wait for it: its allocation is native. */
        /* The probe's moves and the loading of code wait for running work, which may itself wait for the caller. */
        if (!context_quiet(context) || !atomic_compare_exchange_strong(&context->setup, &setup, 1)) return false;
        set_up(context);
        atomic_store_explicit(&context->setup, 2, memory_order_release);
        setup = 2;
    }
    return setup == 2 && context->support != CONTEXT_NATIVE;
}

struct context *context_of_address(uintptr_t address)
{
    int used = atomic_load_explicit(&contexts.used, memory_order_acquire);
    for (int i = 0; i < used; i++) {
        struct context *context = &contexts.entries[i];
        if (context->base && address - context->base < CONTEXT_RESERVE) return context;
    }
    return NULL;
}

bool context_enter(struct context *context, bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    shim.real.cuCtxGetCurrent(&current);
    if (current == context->handle) return true;
    *pushed = shim.real.cuCtxPushCurrent_v2(context->handle) == CUDA_SUCCESS;
    return *pushed;
}

void context_leave(bool pushed)
{
    CUcontext popped;
    if (pushed) shim.real.cuCtxPopCurrent_v2(&popped);
}

void context_note_lost(CUresult result)
{
    switch ((int)result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
        break;
    default:
        return;
    }
    struct context *context = context_current();
    if (context) atomic_store(&context->lost, (int)result);
}

void context_add_stream(struct context *context, CUstream stream)
{
    lock_acquire(&context->lock);
    if (context->stream_count == context->stream_capacity) {
        size_t capacity = context->stream_capacity ? 2 * context->stream_capacity : 32;
        CUstream *grown = arena_alloc(capacity * sizeof *grown);
        if (grown) {
            if (context->stream_count) memcpy(grown, context->streams, context->stream_count * sizeof *grown);
            if (context->streams) arena_free(context->streams, context->stream_capacity * sizeof *grown);
            context->streams = grown;
            context->stream_capacity = capacity;
        }
    }
    if (context->stream_count < context->stream_capacity) context->streams[context->stream_count++] = stream;
    lock_release(&context->lock);
}

struct context *context_remove_stream(CUstream stream)
{
    int used = atomic_load_explicit(&contexts.used, memory_order_acquire);
    struct context *found = NULL;
    for (int c = 0; c < used && !found; c++) {
        struct context *context = &contexts.entries[c];
        if (!context->handle) continue;
        lock_acquire(&context->lock);
        for (size_t i = 0; i < context->stream_count && !found; i++) {
            if (context->streams[i] != stream) continue;
            context->streams[i] = context->streams[--context->stream_count];
            found = context;
        }
        lock_release(&context->lock);
    }
    return found;
}

bool context_owns_stream(struct context *context, CUstream stream)
{
    CUcontext owner = NULL;
    if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return true;
    if (atomic_load_explicit(&contexts.used, memory_order_acquire) < 2 || !shim.real.cuStreamGetCtx) return true;
    return shim.real.cuStreamGetCtx(stream, &owner) == CUDA_SUCCESS && owner == context->handle;
}

bool contexts_several(void) { return atomic_load_explicit(&contexts.used, memory_order_acquire) > 1; }

void context_peer_enabled(CUcontext owner, struct context *reader)
{
    CUcontext popped;
    /* The owner may not have been met yet: peers are usually enabled before anything is allocated. */
    if (!find(owner) && shim.real.cuCtxPushCurrent_v2(owner) == CUDA_SUCCESS) {
        context_current();
        shim.real.cuCtxPopCurrent_v2(&popped);
    }
    struct context *context = find(owner);
    if (!context || context->device == reader->device) return;
    if (context->peer_count == CONTEXT_PEERS) {
        context->support = CONTEXT_NATIVE; /* no further windows: one that not every peer can read would be wrong */
        return;
    }
    context->peers[context->peer_count] = reader->handle;
    context->peer_devices[context->peer_count++] = reader->device;
    window_set_peer(context, reader->device, true);
}

bool context_read_by(const struct context *context, const struct context *reader)
{
    bool any = false;
    for (int i = 0; i < context->peer_count; i++) any |= context->peers[i] == reader->handle;
    return any;
}

void context_peer_disabled(CUcontext owner, struct context *reader)
{
    struct context *context = find(owner);
    for (int i = 0; context && i < context->peer_count; i++) {
        if (context->peers[i] != reader->handle) continue;
        window_set_peer(context, context->peer_devices[i], false);
        context->peers[i] = context->peers[--context->peer_count];
        context->peer_devices[i] = context->peer_devices[context->peer_count];
        return;
    }
}

static void drop(struct context *context, enum window_end end)
{
    context_captures_end(context->handle);
    window_retire_all(context, end);
    buffer_forget_context(context);
    uintptr_t base = context->base;
    context->base = 0;
    if (base && end != WINDOW_END_BUSY) shim.real.cuMemAddressFree(base, CONTEXT_RESERVE);
    atomic_store_explicit(&context->handle, NULL, memory_order_release);
}

void context_forget(CUcontext handle)
{
    struct context *context = find(handle);
    if (context) drop(context, WINDOW_END_LOST);
}

void context_retire(CUcontext handle)
{
    struct context *context = find(handle);
    bool pushed;
    if (!context || !context_enter(context, &pushed)) return;
    /* The driver ends what runs in a context that it destroys; the shim must not wait for it, and leaves its mappings
     * to the driver unless nothing runs. */
    drop(context, context_quiet(context) ? WINDOW_END_QUIET : WINDOW_END_BUSY);
    context_leave(pushed);
}

void context_for_each(void (*visit)(struct context *, void *), void *argument)
{
    int used = atomic_load_explicit(&contexts.used, memory_order_acquire);
    for (int i = 0; i < used; i++)
        if (contexts.entries[i].handle) visit(&contexts.entries[i], argument);
}

bool context_is_primary(CUcontext handle)
{
    struct context *context = find(handle);
    return context && context->primary;
}

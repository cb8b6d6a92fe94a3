/* What the copies need in each CUDA context: events, pinned memory of the shim's own. */
#include <sys/mman.h>
#include "shim/hostmem_internal.h"
#include "shim/shim.h"

#define CONTEXTS 64

static struct host_context contexts[CONTEXTS]; /* entries are reused, guarded by hostmem.lock */

static struct host_context *find(CUcontext handle)
{
    struct host_context *empty = NULL;
    for (int i = 0; i < CONTEXTS; i++) {
        if (contexts[i].handle == handle) return &contexts[i];
        if (!contexts[i].handle && !empty) empty = &contexts[i];
    }
    if (empty) empty->handle = handle;
    return empty;
}

static bool is_special(CUstream stream)
{
    return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

struct host_context *host_context_of(CUstream stream)
{
    CUcontext handle = NULL, owner = NULL;
    if (!shim.real.cuCtxGetCurrent || shim.real.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || !handle) return NULL;
    if (!is_special(stream) && shim.real.cuStreamGetCtx && shim.real.cuStreamGetCtx(stream, &owner) == CUDA_SUCCESS &&
        owner)
        handle = owner;
    hostmem_lock();
    struct host_context *context = find(handle);
    hostmem_unlock();
    return context;
}

bool host_context_enter(CUcontext context) { return shim.real.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS; }

void host_context_leave(void)
{
    CUcontext left;
    shim.real.cuCtxPopCurrent_v2(&left);
}

CUevent host_event_take(struct host_context *context)
{
    CUevent event = NULL;
    hostmem_lock();
    if (context->event_count) event = context->events[--context->event_count];
    hostmem_unlock();
    if (event || !host_context_enter(context->handle)) return event;
    if (shim.real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) event = NULL;
    host_context_leave();
    return event;
}

void host_event_give(struct host_context *context, CUevent event)
{
    if (!event) return;
    hostmem_lock();
    bool kept = context->event_count < sizeof context->events / sizeof *context->events;
    if (kept) context->events[context->event_count++] = event;
    hostmem_unlock();
    if (!kept) shim.real.cuEventDestroy_v2(event);
}

bool host_stream_idle(struct host_context *context, CUstream stream)
{
    CUevent event = host_event_take(context);
    bool idle = event && shim.real.cuEventRecord(event, stream) == CUDA_SUCCESS &&
                shim.real.cuEventQuery(event) == CUDA_SUCCESS;
    host_event_give(context, event);
    return idle;
}

void *pinned_take(size_t bytes)
{
    budget_refresh();
    hostmem_lock();
    bool room = hostmem.registered + bytes <= budget_bytes() && !atomic_load(&hostmem.register_off);
    if (room) hostmem.registered += bytes;
    hostmem_unlock();
    if (!room || !hostmem_driver_usable()) room = false;
    char *start = room ? system_map_aligned(bytes, HOST_UNIT, PROT_READ | PROT_WRITE, 0) : NULL;
    if (!start) {
        if (room) {
            hostmem_lock();
            hostmem.registered -= bytes;
            hostmem_unlock();
        }
        return NULL;
    }
    if (budget_thp() != THP_NEVER) system_madvise(start, bytes, MADV_HUGEPAGE);
    system_madvise(start, bytes, MADV_DONTFORK); /* a child has no use for a copy of it */
    if (shim.real.cuMemHostRegister_v2(start, bytes, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS) return start;
    pinned_give(start, bytes, false);
    return NULL;
}

void pinned_give(void *memory, size_t bytes, bool driver_calls)
{
    if (driver_calls) shim.real.cuMemHostUnregister(memory);
    system_munmap(memory, bytes);
    hostmem_lock();
    hostmem.registered -= bytes;
    hostmem_unlock();
}

static void drop_of_context(struct block *block, void *argument)
{
    for (uint32_t i = 0; block->pieces && i < block->piece_count; i++)
        if (block->pieces[i].state == PIECE_REGISTERED && block->pieces[i].context == (CUcontext)argument)
            pieces_drop(block, piece_start(block, i), 1);
}

void hostmem_context_gone(CUcontext handle)
{
    if (!handle) return;
    hostmem_lock();
    blocks_for_each(drop_of_context, handle);
    struct host_context gone = {0};
    for (int i = 0; i < CONTEXTS; i++)
        if (contexts[i].handle == handle) {
            gone = contexts[i];
            contexts[i] = (struct host_context){0};
        }
    hostmem_unlock();
    /* Its events go with it. */
    bool entered = gone.handle && hostmem_driver_usable() && host_context_enter(handle);
    for (int i = 0; i < HOST_LANES; i++)
        if (gone.lanes[i]) lane_close(gone.lanes[i], entered);
    staging_close(gone.staging);
    if (entered) host_context_leave();
}

/* What a stream's thread does: moving bytes, filling, running kernels and host functions. Called without the lock. */
#include "cost.h"
#include "memory.h"
#include "graph.h"
#include "kernel.h"
#include <sched.h>

/* The bytes behind an address now, at the moment of doing; a program that changed the backing meanwhile gets what the
 * hardware would give it. */
static char *reach(uint64_t address, enum place place, size_t bytes)
{
    if (place == PLACE_PAGEABLE || place == PLACE_ARRAY) return (char *)(uintptr_t)address;
    sim_lock();
    char *inside = location_inside(address, bytes);
    sim_unlock();
    return inside;
}

/* A graph's copy node keeps what it was made for. When that was registered memory which has moved to device memory
 * since, the real driver's replay dies. */
static bool registration_gone(const struct copy_end *end)
{
    return end->registration && (allocation_at(end->address) || !span_at(end->address));
}

bool copy_registration_gone(const struct work *work)
{
    return work->kind == WORK_COPY && (registration_gone(&work->copy.to) || registration_gone(&work->copy.from));
}

static char *reach_end(const struct copy *copy, const struct copy_end *end)
{
    size_t bytes = (copy->depth - 1) * end->slice + (copy->height - 1) * end->pitch + copy->width;
    return reach(end->address, end->place, copy->width ? bytes : 0);
}

static CUresult run_copy(const struct work *work, bool replayed)
{
    const struct copy *copy = &work->copy;
    uint64_t start_ns = time_now_ns();
    sim_lock();
    bool gone = replayed && copy_registration_gone(work);
    sim_unlock();
    if (gone) return CUDA_ERROR_LAUNCH_FAILED;
    size_t from_pitch = copy->staging ? copy->width : copy->from.pitch;
    size_t from_slice = copy->staging ? copy->width * copy->height : copy->from.slice;
    char *to = reach_end(copy, &copy->to);
    const char *from = copy->staging ? copy->staging : reach_end(copy, &copy->from);
    if (!to || !from) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++)
            memmove(to + z * copy->to.slice + y * copy->to.pitch, from + z * from_slice + y * from_pitch, copy->width);
    cost_copy(copy, start_ns);
    return CUDA_SUCCESS;
}

static CUresult run_fill(const struct fill *fill)
{
    char *start =
        reach(fill->address, PLACE_DEVICE, (fill->height - 1) * fill->pitch + fill->width * fill->element_bytes);
    if (!start) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (size_t y = 0; y < fill->height; y++) {
        char *row = start + y * fill->pitch;
        if (fill->element_bytes == 1)
            memset(row, (int)fill->value, fill->width);
        else if (fill->element_bytes == 2)
            for (size_t x = 0; x < fill->width; x++) ((uint16_t *)row)[x] = (uint16_t)fill->value;
        else
            for (size_t x = 0; x < fill->width; x++) ((uint32_t *)row)[x] = fill->value;
    }
    return CUDA_SUCCESS;
}

static CUresult run_write(uint64_t address, uint64_t value, unsigned bytes)
{
    char *at = reach(address, PLACE_DEVICE, bytes);
    if (!at) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (bytes == 4)
        __atomic_store_n((uint32_t *)at, (uint32_t)value, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((uint64_t *)at, value, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

static bool value_reached(uint64_t now, uint64_t value, unsigned bytes, unsigned how)
{
    switch (how & 3) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return now & value;
    case CU_STREAM_WAIT_VALUE_NOR:
        return bytes == 4 ? (uint32_t) ~(now | value) : ~(now | value);
    default:
        return bytes == 4 ? (int32_t)(now - value) >= 0 : (int64_t)(now - value) >= 0;
    }
}

static CUresult run_wait(uint64_t address, uint64_t value, unsigned bytes, unsigned how)
{
    for (;;) {
        char *at = reach(address, PLACE_DEVICE, bytes);
        if (!at) return CUDA_ERROR_ILLEGAL_ADDRESS;
        uint64_t now = bytes == 4 ? __atomic_load_n((uint32_t *)at, __ATOMIC_SEQ_CST)
                                  : __atomic_load_n((uint64_t *)at, __ATOMIC_SEQ_CST);
        if (value_reached(now, value, bytes, how)) return CUDA_SUCCESS;
        sched_yield();
    }
}

CUresult work_run(const struct work *work, CUcontext context, bool replayed)
{
    switch (work->kind) {
    case WORK_COPY:
        return run_copy(work, replayed);
    case WORK_FILL:
        return run_fill(&work->fill);
    case WORK_LAUNCH:
        return kernel_run(&work->launch);
    case WORK_WRITE:
        return run_write(work->value.address, work->value.value, work->value.bytes);
    case WORK_WAIT:
        return run_wait(work->value.address, work->value.value, work->value.bytes, work->value.flags);
    case WORK_GRAPH:
        return graph_exec_run(work->graph.exec, context);
    case WORK_HOST:
        in_host_function = true;
        work->host.function(work->host.data);
        in_host_function = false;
        return CUDA_SUCCESS;
    case WORK_CALLBACK:
        in_host_function = true;
        work->callback.function(work->callback.stream, CUDA_SUCCESS, work->callback.data);
        in_host_function = false;
        return CUDA_SUCCESS;
    case WORK_FREE: {
        sim_lock();
        struct allocation *allocation = allocation_at(work->free.address);
        if (allocation) allocation_free(allocation);
        sim_unlock();
        return CUDA_SUCCESS;
    }
    default:
        return CUDA_SUCCESS;
    }
}

void work_release(struct work *work)
{
    if (work->kind == WORK_COPY && work->copy.staging) {
        work->copy.staged_in->staged_bytes -= work->copy.width * work->copy.height * work->copy.depth;
        free(work->copy.staging);
        work->copy.staging = NULL;
    } else if (work->kind == WORK_LAUNCH) {
        free(work->launch.arguments);
        work->launch.arguments = NULL;
    } else if (work->kind == WORK_GRAPH) {
        graph_exec_release(work->graph.exec);
    }
}

CUresult work_copy(struct work *to, const struct work *from)
{
    *to = *from;
    if (from->kind == WORK_LAUNCH) to->launch.arguments = kernel_arguments_duplicate(&from->launch);
    if (from->kind == WORK_GRAPH) graph_exec_retain(from->graph.exec);
    return CUDA_SUCCESS;
}

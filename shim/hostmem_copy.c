/* Which way a copy goes: registered pieces by DMA where they are, the rest staged or natively, all in the program's
 * stream. */
#include <string.h>
#include "shim/arena.h"
#include "shim/clock.h"
#include "shim/hostmem_alloc.h"
#include "shim/hostmem_internal.h"
#include "shim/shim.h"

/* Up to here the driver takes asynchronous pageable copies into a busy stream without waiting; larger ones may wait. */
#define UNWAITED_MAX STAGING_LARGEST
/* Up to here such a copy out of registered memory is staged without asking whether it could wait. */
#define STAGED_UNASKED ((size_t)64 << 10)

struct copy_run {
    struct host_context *context;
    CUcontext current;
    struct block *block;
    const struct copy_request *request;
    bool idle;     /* the stream was, when it was asked */
    bool may_wait; /* natively this copy may wait for other work */
    bool sole;     /* the request is one flat copy */
    bool pending;  /* DMA from or to registered pieces is on its way */
    size_t direct; /* bytes that went by DMA */
    CUresult result;
};

static bool is_nonblocking(const struct copy_request *request)
{
    return request->direction == COPY_H2D && (request->async || request->stream == CU_STREAM_PER_THREAD);
}

/* A native copy of part of a block, which must not be registered meanwhile: the driver decides by what it sees at some
 * point of the call. False: some of it is registered by now, nothing was done. Lock not held. */
static bool copy_native_counted(struct block *block, const struct copy_request *request, CUresult *result)
{
    hostmem_lock();
    bool registered = pieces_any(block, (uintptr_t)request->host, copy_host_extent(request));
    if (!registered) block->natives++;
    hostmem_unlock();
    if (registered) return false;
    *result = copy_native(request);
    hostmem_lock();
    block->natives--;
    hostmem_unlock();
    return true;
}

/* A copy registers a piece when it covers half of it, or when the copies so far add up to it; twice that where
 * registering is known to be slower than copying. Lock held. */
static bool earns(const struct copy_run *run, uint32_t index, size_t covered)
{
    struct piece *piece = &run->block->pieces[index];
    size_t whole = piece_end(run->block, index) - piece_start(run->block, index);
    double native = rate_native_ns(run->request->direction, whole), cost = register_ns_per_byte() * (double)whole;
    piece->evidence += covered;
    if (run->block->natives) return false;
    if (cost > native * 0.9) return piece->evidence >= 2 * whole;
    return covered >= whole / 2 || piece->evidence >= whole;
}

/* One part of the request that lies in one piece (direct), or in unregistered ones. Lock held, released while the
 * driver works. */
static void run_part(struct copy_run *run, const struct copy_request *part, bool direct, bool last)
{
    if (!direct) {
        run->block->natives++;
        hostmem_unlock();
        run->result = stage_or_native(run->context, part, run->idle && !run->pending);
        hostmem_lock();
        run->block->natives--;
        return;
    }
    hostmem_unlock();
    run->direct += copy_bytes(part);
    /* The driver's own synchronous call ends a synchronous copy: it waits for its stream as the native one does. */
    if (last && !part->async && part->stream == CU_STREAM_LEGACY && run->sole) {
        run->result = copy_native(part);
        if (run->result == CUDA_SUCCESS) run->pending = false;
    } else {
        run->result = copy_enqueue(part);
        run->pending |= run->result == CUDA_SUCCESS;
    }
    hostmem_lock();
}

static bool piece_direct(struct copy_run *run, uint32_t index, size_t covered)
{
    bool earned = earns(run, index, covered);
    return piece_register(run->block, index, earned, run->may_wait, run->current);
}

/* Lock held; released while the driver works. */
static void run_flat(struct copy_run *run, const struct copy_request *request)
{
    uintptr_t start = (uintptr_t)request->host, end = start + copy_bytes(request);
    bool known = false, direct = false; /* of the piece at `at` */
    for (uintptr_t at = start; at < end && run->result == CUDA_SUCCESS;) {
        uint32_t index = piece_index(run->block, at);
        uintptr_t stop = piece_end(run->block, index) < end ? piece_end(run->block, index) : end;
        if (!known) direct = piece_direct(run, index, stop - at);
        known = false;
        /* Unregistered neighbours go in one call. */
        while (!direct && stop < end && !known) {
            index = piece_index(run->block, stop);
            uintptr_t next = piece_end(run->block, index) < end ? piece_end(run->block, index) : end;
            if (piece_direct(run, index, next - stop)) {
                known = true;
                break;
            }
            stop = next;
        }
        if (!direct && pieces_any(run->block, at, stop - at)) { /* by another copy, meanwhile */
            known = false;
            continue;
        }
        struct copy_request part = *request;
        part.host = (void *)at;
        part.device = request->device + (at - start);
        part.width = stop - at;
        part.height = part.depth = 1;
        run_part(run, &part, direct, stop == end);
        if (known) direct = true;
        at = stop;
    }
}

/* Rows that lie in one piece go together; a row that crosses pieces is a flat copy of its own. Lock held; released
 * meanwhile. */
static void run_rows(struct copy_run *run, const struct copy_request *request)
{
    for (size_t slice = 0; slice < request->depth; slice++) {
        for (size_t row = 0; row < request->height && run->result == CUDA_SUCCESS;) {
            struct copy_request part = *request;
            part.host = (char *)request->host + slice * request->host_slice + row * request->host_pitch;
            part.device = request->device + slice * request->device_slice + row * request->device_pitch;
            part.depth = part.height = 1;
            uintptr_t at = (uintptr_t)part.host, end = at + request->width;
            uint32_t index = piece_index(run->block, at);
            uintptr_t limit = piece_end(run->block, index);
            if (end > limit) {
                run_flat(run, &part);
                row++;
                continue;
            }
            part.height = request->host_pitch ? (limit - end) / request->host_pitch + 1 : 1;
            if (part.height > request->height - row) part.height = request->height - row;
            bool direct = piece_direct(run, index, part.height * request->width);
            run_part(run, &part, direct, false);
            row += part.height;
        }
    }
}

static void run_finish(struct copy_run *run)
{
    if (!run->pending) return;
    /* The source is in use, or the data on its way, until the stream has passed. The copy is in the stream, so that the
     * wait includes what it waits for. */
    CUresult waited = shim.real.cuStreamSynchronize(run->request->stream);
    if (run->result == CUDA_SUCCESS) run->result = waited;
}

static CUresult copy_pieces(struct host_context *context, struct block *block, const struct copy_request *request,
                            bool idle)
{
    struct copy_run run = {.context = context,
                           .current = context->handle,
                           .block = block,
                           .request = request,
                           .idle = idle,
                           .sole = copy_is_flat(request)};
    run.may_wait = !is_nonblocking(request) || copy_bytes(request) > UNWAITED_MAX;
    uint64_t began = clock_ns();
    shim.real.cuCtxGetCurrent(&run.current);
    budget_refresh();
    hostmem_lock();
    block->users++;
    if (copy_is_flat(request))
        run_flat(&run, request);
    else
        run_rows(&run, request);
    hostmem_unlock();
    run_finish(&run);
    hostmem_lock();
    block->users--;
    pthread_cond_broadcast(&hostmem.changed);
    hostmem_unlock();
    if (run.direct && run.result == CUDA_SUCCESS) {
        STAT_ADD(host_copies_registered, 1);
        STAT_ADD(host_bytes_copied, run.direct);
        if (idle && run.direct == copy_bytes(request)) rate_saved(request->direction, run.direct, clock_ns() - began);
    }
    return run.result;
}

/* The request's source, row by row, close together. */
static struct copy_request copy_packed(const struct copy_request *request, char *to)
{
    struct copy_request packed = *request;
    packed.host = to;
    packed.host_pitch = request->width;
    packed.host_slice = request->width * request->height;
    for (size_t slice = 0; slice < request->depth; slice++)
        for (size_t row = 0; row < request->height; row++, to += request->width)
            memcpy(to, (char *)request->host + slice * request->host_slice + row * request->host_pitch, request->width);
    return packed;
}

/* A copy out of registered memory that natively never waits: the driver would read the source later, although the
 * program may overwrite it as soon as the call returns. So the DMA reads a copy of it. False: nothing done. */
static bool copy_by_way_of_staging(struct host_context *context, const struct copy_request *request, CUresult *result)
{
    size_t bytes = copy_bytes(request);
    if (bytes > UNWAITED_MAX || !hostmem_driver_usable() || !host_context_enter(context->handle)) return false;
    struct stage *stage = staging_take(&context->staging, bytes);
    if (stage) {
        struct copy_request part = copy_packed(request, stage->host);
        *result = copy_enqueue(&part);
        if (*result == CUDA_SUCCESS)
            staging_give(stage, request->stream);
        else
            staging_cancel(stage);
    }
    host_context_leave();
    return stage != NULL;
}

/* The same when no staging memory is to be had: the driver's own staging, from a copy that is pageable. */
static bool copy_by_way_of_heap(const struct copy_request *request, CUresult *result)
{
    size_t bytes = copy_bytes(request);
    char *heap = arena_alloc(bytes);
    if (!heap) return false;
    struct copy_request part = copy_packed(request, heap);
    part.async = true; /* in its stream: the per-thread synchronous form does not wait either */
    *result = copy_native(&part);
    arena_free(heap, bytes);
    return true;
}

/* True: handled. A copy that natively returns at once, whatever its stream does. */
static bool copy_without_waiting(struct host_context *context, const struct copy_request *request, bool registered,
                                 bool *idle, CUresult *result)
{
    *idle = host_stream_idle(context, request->stream);
    if (*idle || !registered) return false;
    return copy_by_way_of_staging(context, request, result) || copy_by_way_of_heap(request, result);
}

/* A copy that natively waits, from or to one registered piece, is the driver's own call. Lock held at the call,
 * released when true is returned. */
static bool copy_one_piece(struct block *block, const struct copy_request *request, CUresult *result)
{
    uintptr_t at = (uintptr_t)request->host, end = at + copy_bytes(request);
    if (is_nonblocking(request) || !copy_is_flat(request)) return false;
    uint32_t index = piece_index(block, at);
    if (block->pieces[index].state != PIECE_REGISTERED || end > piece_start(block, index) + block->pieces[index].bytes)
        return false;
    block->users++;
    hostmem_unlock();
    *result = copy_native(request);
    if (request->async && *result == CUDA_SUCCESS) *result = shim.real.cuStreamSynchronize(request->stream);
    hostmem_lock();
    block->users--;
    pthread_cond_broadcast(&hostmem.changed);
    hostmem_unlock();
    STAT_ADD(host_copies_registered, 1);
    STAT_ADD(host_bytes_copied, copy_bytes(request));
    return true;
}

/* COPY_AGAIN: another copy has registered what this one took for pageable. Lock held at the call, released when it
 * returns. */
enum copied { COPY_NOT_OURS, COPY_DONE, COPY_AGAIN };
static enum copied copy_block_once(struct block *block, const struct copy_request *request, CUresult *result)
{
    size_t bytes = copy_bytes(request), extent = copy_host_extent(request);
    bool ready = block && pieces_ready(block);
    bool registered = ready && pieces_any(block, (uintptr_t)request->host, extent);
    if (registered && bytes < HOSTMEM_COPY_MIN && copy_one_piece(block, request, result)) return COPY_DONE;
    hostmem_unlock();
    if (!ready) return COPY_NOT_OURS;
    struct host_context *context = host_context_of(request->stream);
    bool worth = registered || (bytes >= HOSTMEM_COPY_MIN && hostmem_driver_usable());
    /* One memcpy costs less than asking whether the stream is idle. */
    if (context && registered && is_nonblocking(request) && bytes <= STAGED_UNASKED &&
        copy_by_way_of_staging(context, request, result))
        return COPY_DONE;
    bool nonblocking = is_nonblocking(request) && bytes <= UNWAITED_MAX, idle = false;
    bool native = !context || !worth || !copy_device_valid(request);
    if (native && registered) { /* refused by the driver, too */
        *result = copy_native(request);
        return COPY_DONE;
    }
    if (!native && nonblocking) {
        if (copy_without_waiting(context, request, registered, &idle, result)) return COPY_DONE;
        native = !idle; /* nothing registered: the driver stages it */
    } else if (!native) {
        idle = host_stream_idle(context, request->stream);
    }
    if (native) return copy_native_counted(block, request, result) ? COPY_DONE : COPY_AGAIN;
    *result = copy_pieces(context, block, request, idle);
    if (!nonblocking) cache_trim_to_budget();
    return COPY_DONE;
}

/* Handles every copy of a block that the program holds: what the driver does itself is counted, see natives. */
static bool copy_block(const struct copy_request *request, CUresult *result)
{
    uintptr_t host = (uintptr_t)request->host;
    size_t extent = copy_host_extent(request);
    hostmem_lock();
    struct block *block = block_containing(host, extent);
    while (block && block->lent) {
        hostmem_unlock();
        recall(request->host, extent, false);
        hostmem_lock();
        block = block_containing(host, extent);
    }
    if (block) block->readers++;
    enum copied copied = copy_block_once(block, request, result);
    while (copied == COPY_AGAIN) {
        hostmem_lock();
        copied = copy_block_once(block, request, result);
    }
    if (!block) return copied == COPY_DONE;
    hostmem_lock();
    block->readers--;
    hostmem_unlock();
    return copied == COPY_DONE;
}

/* Memory that CUDA knows (pinned, registered by the program, managed, device) is not pageable. */
static bool is_pageable(const void *address)
{
    unsigned type;
    return shim.real.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)address) !=
           CUDA_SUCCESS;
}

static bool copy_foreign(const struct copy_request *request, CUresult *result)
{
    size_t bytes = copy_bytes(request);
    if (bytes < HOST_STAGE_MIN || hostmem_min_bytes() == SIZE_MAX || !hostmem_driver_usable() || !pool_threads())
        return false;
    if (rate_passes(request->direction, bytes)) return false;
    if (!is_pageable(request->host) || !is_pageable((char *)request->host + copy_host_extent(request) - 1))
        return false;
    struct host_context *context = host_context_of(request->stream);
    if (!context || !copy_device_valid(request)) return false;
    bool idle = host_stream_idle(context, request->stream);
    /* Behind a busy stream the driver takes up to this much without waiting. */
    if (!idle && is_nonblocking(request) && bytes <= UNWAITED_MAX) return false;
    *result = stage_or_native(context, request, idle);
    return true;
}

/* The driver puts small pageable sources into its command stream, but sends registered ones by DMA and waits for that
 * (4 bytes: 11 us against 3 to 6). So it is shown a copy that is not registered. A copy of a few bytes costs less than
 * the question whether it is needed. */
#define SMALL_UPLOAD      ((size_t)16 << 10)
#define UNQUESTIONED_COPY ((size_t)256)
static bool is_small(const struct copy_request *request, size_t most)
{
    return request->direction == COPY_H2D && request->width <= most && request->height == 1 && request->depth == 1;
}

void hostmem_lend_end(const struct copy_request *request)
{
    if (copy_bytes(request) && hostmem_owns(request->host) && !is_small(request, UNQUESTIONED_COPY))
        recall(request->host, copy_host_extent(request), false);
}

bool hostmem_copy_small(const struct copy_request *request, CUresult *result)
{
    char copy[SMALL_UPLOAD];
    size_t bytes = request->width;
    if (!is_small(request, sizeof copy)) return false;
    if (bytes > UNQUESTIONED_COPY && !hostmem_hides(request->host)) return false;
    struct copy_request shown = *request;
    memcpy(copy, request->host, bytes);
    shown.host = copy;
    *result = copy_native(&shown);
    return true;
}

bool hostmem_copy(const struct copy_request *request, CUresult *result)
{
    if (!copy_bytes(request) || atomic_load_explicit(&hostmem.child, memory_order_relaxed)) return false;
    struct copy_request plain = *request;
    if (!plain.stream) plain.stream = CU_STREAM_LEGACY;
    /* What is asked and waited for here must neither fail nor do harm when another thread begins a capture meanwhile.
     */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool relaxed = copy_bytes(request) >= HOSTMEM_COPY_MIN && shim.real.cuThreadExchangeStreamCaptureMode &&
                   shim.real.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
    bool done = hostmem_owns(request->host) ? copy_block(&plain, result) : copy_foreign(&plain, result);
    if (relaxed) shim.real.cuThreadExchangeStreamCaptureMode(&mode);
    return done;
}

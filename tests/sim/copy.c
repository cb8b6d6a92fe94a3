/* Copies: which wait, which return at once, which are refused. The rules are those measured on a real driver:
 *   - a copy with a pageable end that the device writes to returns when the bytes have arrived;
 *   - pageable sources are staged, up to 2 MiB behind a busy stream, and may be reused on return;
 *   - pinned host memory and device memory together are asynchronous in the Async forms;
 *   - host memory at both ends, pinned or not, blocks until the stream drains: so does registered memory that is named
 * as a device address, with a host partner;
 *   - plain DtoD does not wait unless an end is registered memory.
 */
#include "copy.h"

static size_t extent(const struct claimed_end *end, size_t width, size_t height, size_t depth)
{
    return (depth - 1) * end->slice + (height - 1) * end->pitch + width;
}

static CUresult end_resolve(const struct claimed_end *end, const struct copy_request *request, struct copy_end *out)
{
    size_t bytes = extent(end, request->width, request->height, request->depth);
    *out = (struct copy_end){.address = end->address, .pitch = end->pitch, .slice = end->slice};
    if (end->claim == CLAIM_ARRAY) {
        out->place = PLACE_ARRAY;
        return bytes <= end->slack ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    struct location location;
    location_of(end->address, &location);
    out->place = location.place;
    out->registration = location.registration;
    if (location.place == PLACE_PAGEABLE) {
        /* Addresses of a device's that are nobody's memory: neither end may be there. */
        return end->claim == CLAIM_DEVICE || !end->address ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    return location_holds(&location, end->address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_canonical(const struct copy_request *request, struct copy *copy)
{
    *copy = (struct copy){.width = request->width, .height = request->height, .depth = request->depth};
    CUresult result = end_resolve(&request->to, request, &copy->to);
    return result ? result : end_resolve(&request->from, request, &copy->from);
}

static bool is_on_device(enum place place)
{
    return place == PLACE_DEVICE || place == PLACE_ARRAY || place == PLACE_MANAGED;
}

enum manner { WAIT, RETURN, STAGE };

static bool wants_sync(uint64_t address, enum place place)
{
    struct allocation *allocation = place == PLACE_DEVICE ? allocation_at(address) : NULL;
    return allocation && allocation->sync_operations;
}

static enum manner copy_manner(const struct copy_request *request, const struct copy *copy, CUstream stream)
{
    enum place to = copy->to.place, from = copy->from.place;
    bool own_busy = stream->completed < stream->submitted; /* what the legacy stream has queued does not count */
    if (request->batch) return from == PLACE_PAGEABLE && is_on_device(to) ? own_busy ? WAIT : STAGE : RETURN;
    if (to == PLACE_PAGEABLE) return WAIT;
    if (from == PLACE_PAGEABLE) {
        if (!is_on_device(to)) return WAIT;
        if (!request->async && request->per_thread) return own_busy ? WAIT : STAGE;
        return request->async ? STAGE : WAIT;
    }
    if (is_on_device(to) && is_on_device(from)) {
        bool sync = wants_sync(copy->to.address, to) || wants_sync(copy->from.address, from);
        return !request->async && sync ? WAIT : RETURN;
    }
    /* Pinned memory: as one end, asynchronous in the Async forms; as both, never. */
    return request->async && (is_on_device(to) || is_on_device(from)) ? RETURN : WAIT;
}

/* Takes the bytes of a pageable source now, if the driver would; waits for room behind a busy stream. */
static bool copy_stage(CUstream stream, struct copy *copy)
{
    size_t bytes = copy->width * copy->height * copy->depth;
    CUcontext context = stream->context;
    if (bytes > SIM_STAGING_BYTES) return false;
    while (context->staged_bytes && context->staged_bytes + bytes > SIM_STAGING_BYTES && !context->lost) sim_wait();
    char *staging = malloc(bytes);
    if (!staging) return false;
    context->staged_bytes += bytes;
    copy->staging = staging;
    copy->staged_in = context;
    sim_unlock();
    const char *from = (const char *)(uintptr_t)copy->from.address;
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++, staging += copy->width)
            memcpy(staging, from + z * copy->from.slice + y * copy->from.pitch, copy->width);
    sim_lock();
    return true;
}

static CUresult copy_by_stream(CUstream stream, const struct copy_request *request, struct work *work)
{
    if (stream->capture) {
        if (!request->async) return capture_refuses_wait(stream);
        return capture_add(stream, work);
    }
    CUresult result = capture_refuses_legacy(stream);
    if (result) return result;
    enum manner manner = copy_manner(request, &work->copy, stream);
    if (manner == STAGE && !copy_stage(stream, &work->copy)) manner = WAIT;
    if (manner == WAIT && !request->async && work->copy.from.place == PLACE_PAGEABLE &&
        is_on_device(work->copy.to.place)) {
        /* The driver waits for what is ahead, reads the source, and returns before the last bytes have arrived. */
        struct work ahead = *work;
        ahead.copy.width = 0;
        result = stream_run_here(stream, &ahead);
        if (result) return result;
        if (copy_stage(stream, &work->copy)) manner = RETURN;
    }
    if (manner == WAIT) return stream_run_here(stream, work);
    stream_submit(stream, work, NULL);
    return CUDA_SUCCESS;
}

CUresult copy_submit(const struct copy_request *request)
{
    struct work work = {.kind = WORK_COPY};
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(request->stream, request->per_thread, &stream);
    bool nothing = !request->width || !request->height || !request->depth;
    if (!result && nothing && !request->async) result = capture_refuses_legacy(stream);
    if (!result && !nothing) result = copy_canonical(request, &work.copy);
    if (!result && !nothing) result = copy_by_stream(stream, request, &work);
    sim_unlock();
    return result;
}

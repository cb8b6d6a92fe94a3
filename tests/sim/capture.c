/* Stream capture: what is queued in a capturing stream becomes nodes of a graph.
 *
 * A capture has one origin stream; others join it by waiting for an event recorded in it. A call that the capture
 * cannot stand makes it invalid: its streams answer STREAM_CAPTURE_INVALIDATED until the origin ends it. */
#include "graph.h"
#include "memory.h"

struct capture {
    struct capture *next; /* all live ones */
    CUgraph graph;
    uint64_t id;
    CUstream origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool invalid, into_given_graph;
    unsigned unjoined; /* other streams in it */
};
/* What the next node of a stream waits for, in captured streams. */
struct frontier {
    struct frontier *next;
    CUstream stream;
    CUgraphNode *nodes;
    size_t count;
};
static struct capture *captures;
static struct frontier *frontiers;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static struct frontier *frontier_of(CUstream stream)
{
    for (struct frontier *each = frontiers; each; each = each->next)
        if (each->stream == stream) return each;
    struct frontier *made = calloc(1, sizeof *made);
    made->stream = stream;
    made->next = frontiers;
    return frontiers = made;
}

static void frontier_set(CUstream stream, const CUgraphNode *nodes, size_t count)
{
    struct frontier *frontier = frontier_of(stream);
    CUgraphNode *copy = malloc((count + 1) * sizeof *copy);
    if (count) memcpy(copy, nodes, count * sizeof *copy);
    free(frontier->nodes);
    frontier->nodes = copy;
    frontier->count = count;
}

static void frontier_merge(CUstream stream, const CUgraphNode *nodes, size_t count)
{
    struct frontier *frontier = frontier_of(stream);
    frontier->nodes = realloc(frontier->nodes, (frontier->count + count + 1) * sizeof *frontier->nodes);
    for (size_t i = 0; i < count; i++) {
        bool there = false;
        for (size_t k = 0; k < frontier->count; k++) there |= frontier->nodes[k] == nodes[i];
        if (!there) frontier->nodes[frontier->count++] = nodes[i];
    }
}

static void frontier_drop(CUstream stream)
{
    for (struct frontier **link = &frontiers; *link; link = &(*link)->next)
        if ((*link)->stream == stream) {
            struct frontier *gone = *link;
            *link = gone->next;
            free(gone->nodes);
            free(gone);
            return;
        }
}

/* Which captures a call of this thread disturbs that may wait or touch what others do. */
static bool disturbs(const struct capture *capture)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    bool own = pthread_equal(capture->thread, pthread_self());
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (own) return true;
    return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_refuses_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;
    for (struct capture *each = captures; each; each = each->next)
        if (disturbs(each)) {
            each->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result;
}

CUresult capture_refuses_legacy(CUstream stream)
{
    if (stream->kind != STREAM_LEGACY) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (CUstream each = stream->context->streams; each; each = each->next)
        if (each->capture && stream_is_blocking(each)) {
            each->capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    return result;
}

CUresult capture_refuses_wait(CUstream stream)
{
    if (!stream->capture) return CUDA_SUCCESS;
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_refuses_context(CUcontext context)
{
    CUresult result = CUDA_SUCCESS;
    for (CUstream each = context->streams; each; each = each->next)
        if (each->capture) {
            each->capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result;
}

static CUgraphNodeType node_type(enum work_kind kind)
{
    switch (kind) {
    case WORK_COPY:
        return CU_GRAPH_NODE_TYPE_MEMCPY;
    case WORK_FILL:
        return CU_GRAPH_NODE_TYPE_MEMSET;
    case WORK_LAUNCH:
        return CU_GRAPH_NODE_TYPE_KERNEL;
    case WORK_HOST:
        return CU_GRAPH_NODE_TYPE_HOST;
    case WORK_WRITE:
    case WORK_WAIT:
        return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    case WORK_GRAPH:
        return CU_GRAPH_NODE_TYPE_GRAPH;
    default:
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

/* For the GetParams calls: a captured copy as the program could have written it. */
static void parameters_fill(CUgraphNode node)
{
    const struct work *work = &node->work;
    if (work->kind == WORK_COPY) {
        const struct copy *copy = &work->copy;
        bool from_host = copy->from.place == PLACE_PAGEABLE, to_host = copy->to.place == PLACE_PAGEABLE;
        node->parameters.copy = (CUDA_MEMCPY3D){.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                                                .srcHost = from_host ? (void *)(uintptr_t)copy->from.address : NULL,
                                                .srcDevice = from_host ? 0 : copy->from.address,
                                                .srcPitch = copy->from.pitch,
                                                .srcHeight = copy->from.pitch ? copy->from.slice / copy->from.pitch : 0,
                                                .dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                                                .dstHost = to_host ? (void *)(uintptr_t)copy->to.address : NULL,
                                                .dstDevice = to_host ? 0 : copy->to.address,
                                                .dstPitch = copy->to.pitch,
                                                .dstHeight = copy->to.pitch ? copy->to.slice / copy->to.pitch : 0,
                                                .WidthInBytes = copy->width,
                                                .Height = copy->height,
                                                .Depth = copy->depth};
    } else if (work->kind == WORK_FILL) {
        const struct fill *fill = &work->fill;
        node->parameters.fill = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = fill->address,
                                                             .pitch = fill->pitch,
                                                             .value = fill->value,
                                                             .elementSize = fill->element_bytes,
                                                             .width = fill->width,
                                                             .height = fill->height};
    }
}

CUresult capture_add_typed(CUstream stream, struct work *work, CUgraphNodeType type)
{
    struct capture *capture = stream->capture;
    if (capture->invalid) {
        work_release(work);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    struct frontier *frontier = frontier_of(stream);
    CUgraphNode node = graph_add(capture->graph, type, work, frontier->nodes, frontier->count);
    parameters_fill(node);
    frontier_set(stream, &node, 1);
    return CUDA_SUCCESS;
}

CUresult capture_add(CUstream stream, struct work *work)
{
    return capture_add_typed(stream, work, node_type(work->kind));
}

/* The event remembers what the stream's next node would wait for: through an empty node when that is not one node. */
CUresult capture_event_record(CUstream stream, CUevent event)
{
    struct capture *capture = stream->capture;
    if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    struct frontier *frontier = frontier_of(stream);
    if (frontier->count > 1) {
        struct work nothing = {.kind = WORK_EMPTY};
        CUgraphNode node =
            graph_add(capture->graph, CU_GRAPH_NODE_TYPE_EMPTY, &nothing, frontier->nodes, frontier->count);
        frontier_set(stream, &node, 1);
    }
    event->capture = capture;
    event->capture_id = capture->id;
    event->node = frontier->count ? frontier->nodes[0] : NULL;
    return CUDA_SUCCESS;
}

static struct capture *event_capture(CUevent event)
{
    for (struct capture *each = event->capture ? captures : NULL; each; each = each->next)
        if (each == event->capture && each->id == event->capture_id) return each;
    return NULL;
}

bool capture_event_is_captured(CUevent event) { return event_capture(event) != NULL; }

CUresult capture_refuses_event(CUevent event)
{
    struct capture *capture = event_capture(event);
    if (!capture) return capture_refuses_unsafe();
    capture->invalid = true;
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult capture_event_wait(CUstream stream, CUevent event)
{
    bool captured = capture_event_is_captured(event);
    if (stream->capture && stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!captured) { /* a captured stream may not wait for work outside */
        if (!event->recorded.stream) return CUDA_SUCCESS;
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (stream->capture && stream->capture != event->capture) {
        stream->capture->invalid = event->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream->kind == STREAM_LEGACY) {
        event->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!stream->capture) {
        stream->capture = event->capture;
        stream->capture->unjoined++;
        frontier_set(stream, NULL, 0);
    }
    if (event->node) frontier_merge(stream, &event->node, 1);
    return CUDA_SUCCESS;
}

/* A stream that is destroyed while it captures makes the capture invalid. */
void capture_forget(CUstream stream)
{
    if (!stream->capture) return;
    stream->capture->invalid = true;
    if (stream->capture->origin == stream) stream->capture->origin = NULL;
    stream->capture = NULL;
    frontier_drop(stream);
}

static CUresult begun(CUstream handle, CUgraph graph, const CUgraphNode *before, size_t count, CUstreamCaptureMode mode,
                      bool per_thread)
{
    CUstream stream;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result && stream->kind == STREAM_LEGACY) result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!result && stream->capture) result = CUDA_ERROR_ILLEGAL_STATE;
    if (!result) {
        struct capture *capture = calloc(1, sizeof *capture);
        *capture = (struct capture){.next = captures,
                                    .graph = graph ? graph : graph_create(),
                                    .id = sim.next_id++,
                                    .origin = stream,
                                    .mode = mode,
                                    .thread = pthread_self(),
                                    .into_given_graph = graph != NULL};
        captures = capture;
        stream->capture = capture;
        frontier_set(stream, before, count);
    }
    sim_unlock();
    return result;
}

/* Every stream of the capture is an ordinary one again. */
static bool capture_close(struct capture *capture)
{
    bool unjoined = false;
    struct frontier *origin = frontier_of(capture->origin);
    for (CUstream each = capture->origin->context->streams; each; each = each->next) {
        if (each->capture != capture) continue;
        if (each != capture->origin) {
            /* Joined if all that it waits for is before something that the origin waits for. */
            struct frontier *frontier = frontier_of(each);
            for (size_t i = 0; i < frontier->count; i++) {
                bool reached = false;
                for (CUgraphNode node = capture->graph->nodes; node && !reached; node = node->next)
                    for (size_t k = 0; k < node->before_count; k++) reached |= node->before[k] == frontier->nodes[i];
                for (size_t k = 0; k < origin->count; k++) reached |= origin->nodes[k] == frontier->nodes[i];
                unjoined |= !reached;
            }
            frontier_drop(each);
        }
        each->capture = NULL;
    }
    frontier_drop(capture->origin);
    for (struct capture **link = &captures; *link; link = &(*link)->next)
        if (*link == capture) {
            *link = capture->next;
            break;
        }
    return unjoined;
}

static CUresult ended(CUstream handle, CUgraph *graph, bool per_thread)
{
    CUstream stream;
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    struct capture *capture = result ? NULL : stream->capture;
    if (!result && !capture) result = CUDA_ERROR_ILLEGAL_STATE;
    if (!result && capture->origin != stream) {
        capture->invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (!result && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self())) {
        result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    if (!result) {
        bool invalid = capture->invalid, unjoined = capture_close(capture);
        result = invalid    ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                 : unjoined ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                            : CUDA_SUCCESS;
        if (!result)
            *graph = capture->graph;
        else if (!capture->into_given_graph)
            graph_destroy(capture->graph);
        if (result) *graph = NULL;
        free(capture);
    }
    sim_unlock();
    return result;
}

static CUresult is_capturing(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count, bool per_thread)
{
    CUstream stream;
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    /* Asking of the legacy stream while a blocking stream captures is itself refused, without harm. */
    if (!result && stream->kind == STREAM_LEGACY)
        for (CUstream each = stream->context->streams; each; each = each->next)
            if (each->capture && stream_is_blocking(each)) result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (!result) {
        struct capture *capture = stream->capture;
        *status = !capture           ? CU_STREAM_CAPTURE_STATUS_NONE
                  : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        if (capture && !capture->invalid) {
            struct frontier *frontier = frontier_of(stream);
            if (id) *id = capture->id;
            if (graph) *graph = capture->graph;
            if (nodes) *nodes = frontier->nodes;
            if (edges) *edges = NULL;
            if (count) *count = frontier->count;
        }
    }
    sim_unlock();
    return result;
}

static CUresult updated(CUstream handle, CUgraphNode *nodes, size_t count, unsigned flags, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result && !stream->capture) result = CUDA_ERROR_ILLEGAL_STATE;
    if (!result && stream->capture->invalid) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!result && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        frontier_set(stream, nodes, count);
    else if (!result)
        frontier_merge(stream, nodes, count);
    sim_unlock();
    return result;
}

#define TWINS(symbol, parameters, call)                                                                                \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        enum { per_thread = false };                                                                                   \
        SIM_ENTER(symbol);                                                                                             \
        return call;                                                                                                   \
    }                                                                                                                  \
    CUresult symbol##_ptsz parameters                                                                                  \
    {                                                                                                                  \
        enum { per_thread = true };                                                                                    \
        SIM_ENTER(symbol##_ptsz);                                                                                      \
        return call;                                                                                                   \
    }

TWINS(cuStreamBeginCapture, (CUstream stream), begun(stream, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL, per_thread))
TWINS(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
      begun(stream, NULL, NULL, 0, mode, per_thread))
TWINS(cuStreamBeginCaptureToGraph,
      (CUstream stream, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *edges, size_t count,
       CUstreamCaptureMode mode),
      ((void)edges,
       graph_valid(graph) ? begun(stream, graph, before, count, mode, per_thread) : CUDA_ERROR_INVALID_VALUE))
TWINS(cuStreamEndCapture, (CUstream stream, CUgraph *graph), ended(stream, graph, per_thread))
TWINS(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
      is_capturing(stream, status, NULL, NULL, NULL, NULL, NULL, per_thread))
TWINS(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id),
      is_capturing(stream, status, id, NULL, NULL, NULL, NULL, per_thread))
TWINS(cuStreamGetCaptureInfo_v2,
      (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
       size_t *count),
      is_capturing(stream, status, id, graph, nodes, NULL, count, per_thread))
TWINS(cuStreamGetCaptureInfo_v3,
      (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
       const CUgraphEdgeData **edges, size_t *count),
      is_capturing(stream, status, id, graph, nodes, edges, count, per_thread))
TWINS(cuStreamUpdateCaptureDependencies, (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags),
      updated(stream, nodes, count, flags, per_thread))
TWINS(cuStreamUpdateCaptureDependencies_v2,
      (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count, unsigned flags),
      ((void)edges, updated(stream, nodes, count, flags, per_thread)))

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    SIM_ENTER(cuThreadExchangeStreamCaptureMode);
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

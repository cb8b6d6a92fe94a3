/* Pageable copies through pinned slots: threads move memory between the program and the slots, this thread gives the
 * slots to the driver, in the program's own stream, so that the order is that of one native copy. */
#include <string.h>
#include "shim/arena.h"
#include "shim/clock.h"
#include "shim/hostmem_internal.h"
#include "shim/report.h"
#include "shim/shim.h"

#define SLOT_BYTES  ((size_t)1 << 20)
#define CHUNK_LEAST ((size_t)128 << 10)
#define SLOTS_LEAST 4
/* Making a lane costs some ms once: worth it when so much was or is to be copied. */
#define LANE_EARNED ((size_t)32 << 20)

struct slot {
    CUevent event;  /* recorded behind the copy that uses the slot */
    bool in_flight; /* the driver may still use it */
    bool lost;      /* its event could not be recorded */
    struct chunk chunk;
    struct copy_request part; /* the chunk's device side, host side in the slot */
};

struct lane {
    char *memory;
    _Atomic bool busy;
    struct slot slots[HOST_LANE_SLOTS];
};

/* How a request is cut: `parts` pieces of a row, or `rows` rows together, never across slices. */
struct plan {
    const struct copy_request *request;
    size_t row_part, parts, rows,
        groups; /* bytes of a part; parts a row; rows a chunk; chunks a slice when parts is 1 */
    size_t count;
    bool checked;
    unsigned slots; /* usable ones, by index */
    struct slot *slot[HOST_LANE_SLOTS];
};

static struct lane *lane_create(struct host_context *context)
{
    struct lane *lane = arena_calloc(sizeof *lane);
    char *memory = lane ? pinned_take(SLOT_BYTES * HOST_LANE_SLOTS) : NULL;
    if (!memory) {
        if (lane) arena_free(lane, sizeof *lane);
        return NULL;
    }
    lane->memory = memory;
    for (int i = 0; i < HOST_LANE_SLOTS; i++) {
        lane->slots[i].chunk.slot = memory + (size_t)i * SLOT_BYTES;
        lane->slots[i].event = host_event_take(context);
        lane->slots[i].lost = !lane->slots[i].event;
    }
    return lane;
}

void lane_close(struct lane *lane, bool driver_calls)
{
    pinned_give(lane->memory, SLOT_BYTES * HOST_LANE_SLOTS, driver_calls);
    arena_free(lane, sizeof *lane);
}

/* Slots of the lane that nothing uses any more. Asks, never waits. */
static unsigned lane_free_slots(struct lane *lane, struct slot **slots)
{
    unsigned count = 0;
    for (int i = 0; i < HOST_LANE_SLOTS; i++) {
        struct slot *slot = &lane->slots[i];
        if (slot->in_flight && shim.real.cuEventQuery(slot->event) == CUDA_SUCCESS) slot->in_flight = false;
        if (!slot->in_flight && !slot->lost) slots[count++] = slot;
    }
    return count;
}

static bool lane_claim(struct lane *lane) { return !atomic_exchange_explicit(&lane->busy, true, memory_order_acquire); }
static void lane_leave(struct lane *lane) { atomic_store_explicit(&lane->busy, false, memory_order_release); }

/* A lane with enough free slots, claimed; NULL: all are in use, or it has not been earned. */
static struct lane *lane_take(struct host_context *context, size_t bytes, struct plan *plan, bool *cold)
{
    hostmem_lock();
    context->staged_wish += bytes;
    bool earned = context->staged_wish >= LANE_EARNED;
    hostmem_unlock();
    for (int i = 0; i < HOST_LANES && earned; i++) {
        hostmem_lock();
        struct lane *lane = context->lanes[i];
        hostmem_unlock();
        if (!lane) {
            bool entered = host_context_enter(context->handle);
            lane = entered ? lane_create(context) : NULL;
            if (entered) host_context_leave();
            *cold = true;
            if (!lane) {
                hostmem_lock();
                context->staged_wish = 0; /* refused: not asked again soon */
                hostmem_unlock();
                return NULL;
            }
            lane->busy = true;
            plan->slots = lane_free_slots(lane, plan->slot);
            hostmem_lock();
            bool mine = !context->lanes[i];
            if (mine) context->lanes[i] = lane;
            hostmem_unlock();
            if (mine && plan->slots >= SLOTS_LEAST) return lane;
            lane_leave(lane);
            if (!mine) lane_close(lane, true);
            continue;
        }
        if (!lane_claim(lane)) continue;
        plan->slots = lane_free_slots(lane, plan->slot);
        if (plan->slots >= SLOTS_LEAST) return lane;
        lane_leave(lane);
    }
    return NULL;
}

static void plan_cut(struct plan *plan, const struct copy_request *request, unsigned threads)
{
    size_t bytes = copy_bytes(request), wanted = bytes / (threads * 2);
    size_t chunk = wanted < CHUNK_LEAST ? CHUNK_LEAST : wanted > SLOT_BYTES ? SLOT_BYTES : wanted & ~(size_t)4095;
    plan->request = request;
    if (copy_is_flat(request) || request->width > chunk) {
        plan->row_part = chunk;
        plan->rows = 1;
        plan->parts = ((copy_is_flat(request) ? bytes : request->width) + chunk - 1) / chunk;
        plan->groups = copy_is_flat(request) ? 1 : request->height;
    } else {
        plan->rows = chunk / request->width;
        plan->parts = 1;
        plan->groups = (request->height + plan->rows - 1) / plan->rows;
    }
    plan->count = plan->parts * plan->groups * (copy_is_flat(request) ? 1 : request->depth);
}

/* The program's side of chunk `index` as a request of its own. */
static struct copy_request plan_part(const struct plan *plan, size_t index)
{
    struct copy_request part = *plan->request;
    bool flat = copy_is_flat(&part);
    size_t part_index = index % plan->parts, group = index / plan->parts % plan->groups;
    size_t slice = index / plan->parts / plan->groups;
    size_t width = flat ? copy_bytes(&part) : part.width, row = group * plan->rows;
    size_t left = part_index * plan->row_part;
    part.width = plan->parts > 1 || flat ? (width - left < plan->row_part ? width - left : plan->row_part) : width;
    part.height = flat ? 1 : part.height - row < plan->rows ? part.height - row : plan->rows;
    part.depth = 1;
    size_t device = flat ? left : slice * part.device_slice + row * part.device_pitch + left;
    part.device += device;
    part.host = (char *)part.host + (flat ? left : slice * part.host_slice + row * part.host_pitch + left);
    return part;
}

static void slot_fill(struct plan *plan, struct slot *slot, size_t index)
{
    struct copy_request part = plan_part(plan, index);
    slot->chunk.program = part.host;
    slot->chunk.pitch = part.height > 1 ? part.host_pitch : part.width;
    slot->chunk.width = part.width;
    slot->chunk.rows = part.height;
    slot->chunk.to_slot = part.direction == COPY_H2D;
    slot->chunk.checked = plan->checked;
    slot->part = part;
    slot->part.host = slot->chunk.slot;
    slot->part.host_pitch = part.width;
    slot->part.host_slice = part.width * part.height;
}

/* Gives the slot's copy to the driver. */
static CUresult slot_enqueue(struct slot *slot)
{
    CUresult result = copy_enqueue(&slot->part);
    if (result != CUDA_SUCCESS) return result;
    slot->in_flight = true;
    result = shim.real.cuEventRecord(slot->event, slot->part.stream);
    if (result != CUDA_SUCCESS) slot->lost = true;
    return result;
}

static CUresult slot_settle(struct slot *slot)
{
    if (!slot->in_flight) return CUDA_SUCCESS;
    CUresult result = shim.real.cuEventSynchronize(slot->event);
    slot->in_flight = result != CUDA_SUCCESS;
    return result;
}

/* From chunk `index` on the driver copies itself: a fault is then its affair, in the program's own thread. */
static CUresult native_from(const struct plan *plan, size_t index)
{
    CUresult result = CUDA_SUCCESS;
    report_note("staged copies: memory that a thread could not touch was left to the driver");
    for (; index < plan->count && result == CUDA_SUCCESS; index++) {
        struct copy_request part = plan_part(plan, index);
        result = copy_native(&part);
    }
    return result;
}

static CUresult stage_h2d(struct plan *plan)
{
    size_t filled = 0, sent = 0;
    CUresult result = CUDA_SUCCESS;
    bool fault = false;
    while (sent < plan->count && result == CUDA_SUCCESS && !fault) {
        while (filled < plan->count && filled - sent < plan->slots) {
            struct slot *slot = plan->slot[filled % plan->slots];
            /* With others still on their way this slot can wait for its turn. */
            if (slot->in_flight && filled > sent && shim.real.cuEventQuery(slot->event) != CUDA_SUCCESS) break;
            if ((result = slot_settle(slot)) != CUDA_SUCCESS) break;
            slot_fill(plan, slot, filled++);
            pool_push(&slot->chunk);
        }
        if (filled == sent) break;
        struct slot *slot = plan->slot[sent % plan->slots];
        fault = pool_wait(&slot->chunk) == CHUNK_FAULT;
        if (fault || result != CUDA_SUCCESS) break;
        result = slot_enqueue(slot);
        sent++;
    }
    for (size_t i = sent; i < filled; i++) pool_wait(&plan->slot[i % plan->slots]->chunk);
    return fault && result == CUDA_SUCCESS ? native_from(plan, sent) : result;
}

static CUresult stage_d2h(struct plan *plan)
{
    size_t asked = 0, arrived = 0, stored = 0;
    CUresult result = CUDA_SUCCESS;
    bool fault = false;
    while (stored < plan->count && result == CUDA_SUCCESS && !fault) {
        for (; asked < plan->count && asked - stored < plan->slots && result == CUDA_SUCCESS; asked++) {
            struct slot *slot = plan->slot[asked % plan->slots];
            slot_fill(plan, slot, asked);
            result = slot_enqueue(slot);
        }
        if (result != CUDA_SUCCESS) break;
        if (arrived < asked) {
            struct slot *slot = plan->slot[arrived % plan->slots];
            if ((result = slot_settle(slot)) != CUDA_SUCCESS) break;
            pool_push(&slot->chunk);
            arrived++;
        }
        /* Slots that are stored are asked again at once; when all are with the threads, wait for the oldest. */
        while (stored < arrived && !fault) {
            struct chunk *chunk = &plan->slot[stored % plan->slots]->chunk;
            bool full = arrived == asked;
            int state = full ? pool_wait(chunk) : atomic_load_explicit(&chunk->state, memory_order_acquire);
            if (state == CHUNK_QUEUED) break;
            fault = state == CHUNK_FAULT;
            if (!fault) stored++;
        }
    }
    for (size_t i = stored; i < arrived; i++) pool_wait(&plan->slot[i % plan->slots]->chunk);
    for (size_t i = arrived; i < asked; i++) slot_settle(plan->slot[i % plan->slots]);
    return fault && result == CUDA_SUCCESS ? native_from(plan, stored) : result;
}

bool stage_copy(struct host_context *context, const struct copy_request *request, CUresult *result, bool *cold)
{
    size_t bytes = copy_bytes(request);
    unsigned threads = bytes >= HOST_STAGE_MIN && hostmem_driver_usable() ? pool_threads() : 0;
    if (!threads) return false;
    /* Small slices would make chunks that are not worth their calls. */
    if (!copy_is_flat(request) && request->width * request->height < CHUNK_LEAST && request->depth > 1) return false;
    struct plan plan = {0};
    plan_cut(&plan, request, threads);
    if (plan.count < 2) return false;
    struct lane *lane = lane_take(context, bytes, &plan, cold);
    if (!lane) return false;
    plan.checked = memory_is_plain(request->host, copy_host_extent(request), request->direction == COPY_D2H);
    bool done = pool_start(threads < plan.count ? threads : (unsigned)plan.count, cold);
    if (done) {
        *result = request->direction == COPY_H2D ? stage_h2d(&plan) : stage_d2h(&plan);
        if (request->direction == COPY_H2D && !request->async && request->stream != CU_STREAM_PER_THREAD) {
            CUresult waited = shim.real.cuStreamSynchronize(request->stream);
            if (*result == CUDA_SUCCESS) *result = waited;
        }
        STAT_ADD(host_copies_staged, 1);
        STAT_ADD(host_bytes_staged, bytes);
    }
    lane_leave(lane);
    return done;
}

CUresult stage_or_native(struct host_context *context, const struct copy_request *request, bool idle)
{
    size_t bytes = copy_bytes(request);
    bool fresh =
        request->direction == COPY_D2H && memory_is_fresh((char *)request->host + copy_host_extent(request) / 2);
    bool large = bytes >= HOST_STAGE_MIN;
    uint64_t began = clock_ns(), ns;
    CUresult result;
    bool cold = false;
    if (large && rate_choose(request->direction, bytes, fresh) == RATE_STAGED &&
        stage_copy(context, request, &result, &cold)) {
        ns = clock_ns() - began;
        if (idle && result == CUDA_SUCCESS) {
            if (!cold) rate_observe(request->direction, bytes, fresh, RATE_STAGED, ns);
            rate_saved(request->direction, bytes, ns);
        }
        return result;
    }
    result = copy_native(request);
    if (idle && large && result == CUDA_SUCCESS)
        rate_observe(request->direction, bytes, fresh, RATE_NATIVE, clock_ns() - began);
    return result;
}

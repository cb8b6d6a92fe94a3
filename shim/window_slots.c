/* Slots of a window: which are taken, by what, and those that are free once a stream has passed. */
#include "shim/window_slots.h"
#include "shim/arena.h"
#include "shim/shim.h"
#include "shim/window.h"

/* A slot that is free once the event is complete. */
struct pending {
    struct pending *next;
    uintptr_t start;
    size_t bytes;
    CUevent event;
};

static bool is_taken(const struct window *window, size_t slot) { return window->taken[slot / 64] >> (slot % 64) & 1; }

bool window_buffer(const struct window *window, uintptr_t address, uintptr_t *start, size_t *bytes)
{
    if (window->sole_bytes) {
        *start = window->base;
        *bytes = window->sole_bytes;
        return address - window->base < window->sole_bytes;
    }
    size_t slot = (address - window->base) / WINDOW_SLOT;
    if (!is_taken(window, slot)) return false;
    size_t first = window->first[slot];
    *start = window->base + first * WINDOW_SLOT;
    *bytes = window->bytes_of[first];
    return address - *start < *bytes;
}

bool window_covers(const struct window *window, uintptr_t address, size_t bytes)
{
    uintptr_t start;
    size_t size;
    return window_buffer(window, address, &start, &size) && bytes <= size - (address - start);
}

bool window_sync_memops(const struct window *window, uintptr_t start)
{
    size_t slot = (start - window->base) / WINDOW_SLOT;
    return window->sync_memops[slot / 64] >> (slot % 64) & 1;
}

void window_set_sync_memops(struct window *window, uintptr_t start, bool on)
{
    size_t slot = (start - window->base) / WINDOW_SLOT;
    lock_acquire(&window->context->lock);
    if (on)
        window->sync_memops[slot / 64] |= 1ull << (slot % 64);
    else
        window->sync_memops[slot / 64] &= ~(1ull << (slot % 64));
    lock_release(&window->context->lock);
}

/* The first run of `count` free slots below usable, or WINDOW_SLOTS. */
static size_t find_run(struct window *window, size_t count)
{
    size_t end = window->usable / WINDOW_SLOT, run = 0;
    for (size_t slot = window->search_from; slot < end; slot++) {
        if (slot % 64 == 0 && window->taken[slot / 64] == ~0ull) {
            run = 0;
            slot += 63;
            continue;
        }
        run = is_taken(window, slot) ? 0 : run + 1;
        if (run == count) return slot + 1 - count;
    }
    return WINDOW_SLOTS;
}

uintptr_t slots_take(struct window *window, size_t bytes)
{
    size_t count = (bytes + WINDOW_SLOT - 1) / WINDOW_SLOT;
    if (window->sole_bytes || window->moving || window->place == WINDOW_DEAD) return 0;
    size_t first = find_run(window, count);
    if (first == WINDOW_SLOTS) return 0;
    for (size_t slot = first; slot < first + count; slot++) {
        window->taken[slot / 64] |= 1ull << (slot % 64);
        window->first[slot] = (uint16_t)first;
    }
    window->bytes_of[first] = (uint32_t)bytes;
    window->live++;
    window->live_bytes += bytes;
    if (first == window->search_from) window->search_from = (uint32_t)(first + count);
    if ((first + count) * WINDOW_SLOT > window->high) window->high = (first + count) * WINDOW_SLOT;
    return window->base + first * WINDOW_SLOT;
}

void slots_give(struct window *window, uintptr_t start, size_t bytes)
{
    size_t first = (start - window->base) / WINDOW_SLOT;
    size_t count = (bytes + WINDOW_SLOT - 1) / WINDOW_SLOT;
    window->live--;
    window->live_bytes -= bytes;
    window->sync_memops[first / 64] &= ~(1ull << (first % 64));
    if (window->sole_bytes) return;
    for (size_t slot = first; slot < first + count; slot++) window->taken[slot / 64] &= ~(1ull << (slot % 64));
    if (first < window->search_from) window->search_from = (uint32_t)first;
    while (window->high > 0 && !is_taken(window, window->high / WINDOW_SLOT - 1)) window->high -= WINDOW_SLOT;
}

/* Frees the slots whose stream has come to the free. Queries outside the lock. */
static void collect_pending(struct context *context, struct window *window)
{
    lock_acquire(&context->lock);
    struct pending *list = window->pending;
    window->pending = NULL;
    lock_release(&context->lock);
    while (list) {
        struct pending *entry = list;
        list = entry->next;
        bool done = shim.real.cuEventQuery(entry->event) == CUDA_SUCCESS; /* an error tells nothing */
        lock_acquire(&context->lock);
        if (done) {
            slots_give(window, entry->start, entry->bytes);
            context->pending--;
        } else {
            entry->next = window->pending;
            window->pending = entry;
        }
        lock_release(&context->lock);
        if (!done) continue;
        shim.real.cuEventDestroy_v2(entry->event);
        arena_free(entry, sizeof *entry);
    }
}

/* Windows are never unlinked, so the list can be walked without its lock. */
void slots_collect(struct context *context)
{
    if (!context->pending) return;
    for (struct window *window = context->windows; window; window = window->next)
        if (window->pending) collect_pending(context, window);
}

bool window_free_in_stream(struct window *window, uintptr_t start, CUstream stream)
{
    /* The window of one large buffer goes with it, and only a wait tells when it may. */
    struct pending *entry = window->sole_bytes ? NULL : arena_alloc(sizeof *entry);
    if (!entry) return false;
    if (shim.real.cuEventCreate(&entry->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) goto fail;
    if (shim.real.cuEventRecord(entry->event, stream) != CUDA_SUCCESS) {
        shim.real.cuEventDestroy_v2(entry->event);
        goto fail;
    }
    entry->start = start;
    lock_acquire(&window->context->lock);
    /* From now on nobody's buffer, but not yet anybody else's. */
    entry->bytes = window->bytes_of[(start - window->base) / WINDOW_SLOT];
    window->bytes_of[(start - window->base) / WINDOW_SLOT] = 0;
    window->context->pending++;
    entry->next = window->pending;
    window->pending = entry;
    lock_release(&window->context->lock);
    return true;
fail:
    arena_free(entry, sizeof *entry);
    return false;
}

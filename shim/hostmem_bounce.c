/* Pinned memory that small copies out of registered blocks go through when they must not wait.
 *
 * The driver would read a registered source later, although the program may overwrite it as soon as the call returns.
 * So the source is copied here by the CPU and the DMA reads the copy. Space comes in pages; each copy has an event that
 * says when its pages are free. */
#include <string.h>
#include "shim/arena.h"
#include "shim/hostmem_internal.h"
#include "shim/shim.h"

#define BOUNCE_BYTES ((size_t)16 << 20)
#define BOUNCE_PAGE  ((size_t)4096)
#define BOUNCE_PAGES (BOUNCE_BYTES / BOUNCE_PAGE)
#define BOUNCE_USES  512

struct use {
    CUevent event;         /* kept from use to use */
    uint32_t first, pages; /* pages 0: free entry */
    bool filling;          /* its event is not recorded yet */
};

/* Guarded by hostmem.lock; events are asked without it by whoever set `sweeping`. */
struct bounce {
    char *memory;
    bool opening, sweeping;
    uint32_t next; /* where the search for pages goes on */
    uint64_t taken[BOUNCE_PAGES / 64];
    struct use uses[BOUNCE_USES];
};

static bool page_taken(const struct bounce *bounce, uint32_t page)
{
    return bounce->taken[page / 64] >> (page % 64) & 1;
}

static void mark(struct bounce *bounce, uint32_t first, uint32_t pages, bool taken)
{
    for (uint32_t page = first; page < first + pages; page++) {
        uint64_t bit = (uint64_t)1 << (page % 64);
        if (taken)
            bounce->taken[page / 64] |= bit;
        else
            bounce->taken[page / 64] &= ~bit;
    }
}

/* First fit from where the last search ended. BOUNCE_PAGES: none. */
static uint32_t find_pages(struct bounce *bounce, uint32_t pages)
{
    for (int round = 0; round < 2; round++) {
        uint32_t free_pages = 0;
        uint32_t end = round ? bounce->next : BOUNCE_PAGES;
        for (uint32_t page = round ? 0 : bounce->next; page < end; page++) {
            if (page % 64 == 0 && bounce->taken[page / 64] == UINT64_MAX) {
                free_pages = 0;
                page += 63;
                continue;
            }
            free_pages = page_taken(bounce, page) ? 0 : free_pages + 1;
            if (free_pages == pages) {
                bounce->next = (page + 1) % BOUNCE_PAGES;
                return page + 1 - pages;
            }
        }
    }
    return BOUNCE_PAGES;
}

/* Frees the pages of copies that are done. Lock held, released meanwhile. */
static void sweep(struct bounce *bounce)
{
    if (bounce->sweeping) return;
    bounce->sweeping = true;
    for (size_t i = 0; i < BOUNCE_USES; i++) {
        struct use *use = &bounce->uses[i];
        if (!use->pages || use->filling) continue;
        hostmem_unlock();
        bool done = shim.real.cuEventQuery(use->event) != CUDA_ERROR_NOT_READY;
        hostmem_lock();
        if (!done) continue;
        mark(bounce, use->first, use->pages, false);
        use->pages = 0;
    }
    bounce->sweeping = false;
}

static struct use *try_take(struct bounce *bounce, uint32_t pages)
{
    struct use *use = NULL;
    for (size_t i = 0; i < BOUNCE_USES && !use; i++)
        if (!bounce->uses[i].pages) use = &bounce->uses[i];
    uint32_t first = use ? find_pages(bounce, pages) : BOUNCE_PAGES;
    if (first == BOUNCE_PAGES) return NULL;
    mark(bounce, first, pages, true);
    use->first = first;
    use->pages = pages;
    use->filling = true;
    return use;
}

/* The context's bounce memory, made at the first need. Lock held, released meanwhile. */
static struct bounce *bounce_of(struct host_context *context)
{
    struct bounce *bounce = context->bounce;
    if (!bounce) {
        bounce = arena_calloc(sizeof *bounce);
        if (!bounce) return NULL;
        bounce->opening = true;
        context->bounce = bounce;
        hostmem_unlock();
        char *memory = NULL;
        if (host_context_enter(context->handle)) {
            memory = pinned_take(BOUNCE_BYTES);
            host_context_leave();
        }
        hostmem_lock();
        bounce->memory = memory;
        bounce->opening = false;
    }
    return bounce->memory ? bounce : NULL;
}

static struct use *use_take(struct host_context *context, struct bounce **of, size_t bytes)
{
    uint32_t pages = (uint32_t)((bytes + BOUNCE_PAGE - 1) / BOUNCE_PAGE);
    hostmem_lock();
    struct bounce *bounce = bounce_of(context);
    struct use *use = bounce ? try_take(bounce, pages) : NULL;
    if (bounce && !use) {
        sweep(bounce);
        use = try_take(bounce, pages);
    }
    hostmem_unlock();
    *of = bounce;
    if (use && !use->event) use->event = host_event_take(context);
    return use;
}

static void use_give(struct bounce *bounce, struct use *use, bool in_flight)
{
    hostmem_lock();
    if (!in_flight) {
        mark(bounce, use->first, use->pages, false);
        use->pages = 0;
    }
    use->filling = false;
    hostmem_unlock();
}

static void pack(char *to, const struct copy_request *request)
{
    for (size_t slice = 0; slice < request->depth; slice++)
        for (size_t row = 0; row < request->height; row++, to += request->width)
            memcpy(to, (char *)request->host + slice * request->host_slice + row * request->host_pitch, request->width);
}

bool bounce_copy(struct host_context *context, const struct copy_request *request, CUresult *result)
{
    size_t bytes = copy_bytes(request);
    if (bytes > HOST_BOUNCE_MAX || atomic_load_explicit(&hostmem.ended, memory_order_relaxed)) return false;
    struct bounce *bounce;
    struct use *use = use_take(context, &bounce, bytes);
    if (!use) return false;
    if (!use->event) {
        use_give(bounce, use, false);
        return false;
    }
    char *at = bounce->memory + use->first * BOUNCE_PAGE;
    struct copy_request part = *request;
    part.host = at;
    part.host_pitch = request->width;
    part.host_slice = request->width * request->height;
    pack(at, request);
    *result = copy_enqueue(&part);
    bool in_flight = *result == CUDA_SUCCESS;
    if (in_flight && shim.real.cuEventRecord(use->event, request->stream) != CUDA_SUCCESS) {
        /* Nothing would ever say when the pages are free: they stay taken. */
        hostmem_lock();
        use->filling = true;
        hostmem_unlock();
        return true;
    }
    use_give(bounce, use, in_flight);
    return true;
}

void bounce_close(struct bounce *bounce, bool driver_calls)
{
    if (bounce->memory) pinned_give(bounce->memory, BOUNCE_BYTES, driver_calls);
    arena_free(bounce, sizeof *bounce);
}

/* Device allocations: chunks of 2 MiB, small allocations within them at multiples of 512 bytes, as the driver does. */
#include "memory.h"
#include <sys/mman.h>

/* A chunk that small allocations share. */
struct shared_chunk {
    struct shared_chunk *next;
    uint64_t address;
    char *inside;
    int64_t physical;
    CUcontext context;
    CUdevice device;
    enum allocation_kind kind;
    size_t used_slots, largest_free; /* the latter: no longer run than this is free */
    struct allocation *slots[SIM_SLOTS];
};
/* Which 2 MiB of the address space is what: by address / 2 MiB. The lowest bit says that small allocations share it. */
#define DIRECTORY_ENTRIES ((size_t)1 << (47 - 21))
static uintptr_t *directory;
static struct shared_chunk *shared_chunks;
static struct allocation *allocations;
static uint64_t next_id = 1;

/* Addresses for chunks: arenas of 1 GiB, twice each, outside and inside. */
struct arena {
    struct arena *next;
    char *outside, *inside;
    size_t chunks;
    unsigned char *taken;
};
static struct arena *arenas;

static bool directory_open(void)
{
    if (directory) return true;
    void *map = mmap(NULL, DIRECTORY_ENTRIES * sizeof *directory, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return false;
    madvise(map, DIRECTORY_ENTRIES * sizeof *directory, MADV_DONTFORK);
    directory = map;
    return true;
}

static uintptr_t *directory_entry(uint64_t address)
{
    size_t index = address / SIM_CHUNK_BYTES;
    return directory && index < DIRECTORY_ENTRIES ? &directory[index] : NULL;
}

static struct arena *arena_add(size_t chunks)
{
    if (chunks < 512) chunks = 512;
    struct arena *arena = calloc(1, sizeof *arena);
    arena->chunks = chunks;
    arena->taken = calloc(chunks, 1);
    arena->outside = address_reserve(chunks * SIM_CHUNK_BYTES);
    arena->inside = address_reserve(chunks * SIM_CHUNK_BYTES);
    if (!arena->outside || !arena->inside) return NULL;
    arena->next = arenas;
    return arenas = arena;
}

static bool arena_find(struct arena *arena, size_t want, char **outside, char **inside)
{
    size_t run = 0;
    for (size_t i = 0; i < arena->chunks; i++) {
        run = arena->taken[i] ? 0 : run + 1;
        if (run < want) continue;
        size_t first = i + 1 - want;
        memset(arena->taken + first, 1, want);
        *outside = arena->outside + first * SIM_CHUNK_BYTES;
        *inside = arena->inside + first * SIM_CHUNK_BYTES;
        return true;
    }
    return false;
}

static bool addresses_take(size_t chunks, char **outside, char **inside)
{
    for (struct arena *arena = arenas; arena; arena = arena->next)
        if (arena_find(arena, chunks, outside, inside)) return true;
    struct arena *arena = arena_add(chunks);
    return arena && arena_find(arena, chunks, outside, inside);
}

static void addresses_give(uint64_t address, size_t chunks)
{
    for (struct arena *arena = arenas; arena; arena = arena->next) {
        size_t first = (address - (uintptr_t)arena->outside) / SIM_CHUNK_BYTES;
        if (address >= (uintptr_t)arena->outside && first < arena->chunks) memset(arena->taken + first, 0, chunks);
    }
}

static void allocation_link(struct allocation *allocation)
{
    allocation->id = next_id++;
    allocation->previous = NULL;
    allocation->next = allocations;
    if (allocations) allocations->previous = allocation;
    allocations = allocation;
}

static void allocation_unlink(struct allocation *allocation)
{
    if (allocation->previous)
        allocation->previous->next = allocation->next;
    else
        allocations = allocation->next;
    if (allocation->next) allocation->next->previous = allocation->previous;
}

bool chunk_is_there(uint64_t address)
{
    uintptr_t *entry = directory_entry(address);
    return entry && *entry;
}

struct allocation *allocation_at(uint64_t address)
{
    uintptr_t *entry = directory_entry(address);
    if (!entry || !*entry) return NULL;
    if (!(*entry & 1)) {
        struct allocation *whole = (struct allocation *)*entry;
        return address - whole->address < whole->bytes ? whole : NULL;
    }
    struct shared_chunk *chunk = (struct shared_chunk *)(*entry & ~(uintptr_t)1);
    struct allocation *slot = chunk->slots[address % SIM_CHUNK_BYTES / SIM_SLOT_BYTES];
    return slot && address - slot->address < slot->bytes ? slot : NULL;
}

bool chunks_show(struct allocation *mapping)
{
    if (!directory_open()) return false;
    for (uint64_t at = mapping->address; at < mapping->address + mapping->bytes; at += SIM_CHUNK_BYTES)
        *directory_entry(at) = (uintptr_t)mapping;
    allocation_link(mapping);
    return true;
}

void chunks_hide(struct allocation *mapping)
{
    for (uint64_t at = mapping->address; at < mapping->address + mapping->bytes; at += SIM_CHUNK_BYTES)
        *directory_entry(at) = 0;
    allocation_unlink(mapping);
}

static CUresult large_create(CUcontext context, size_t bytes, struct allocation *allocation)
{
    size_t chunks = (bytes + SIM_CHUNK_BYTES - 1) / SIM_CHUNK_BYTES;
    int64_t physical = physical_take(context->device, bytes);
    char *outside, *inside;
    if (physical < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!addresses_take(chunks, &outside, &inside) || !physical_map(inside, physical, chunks * SIM_CHUNK_BYTES)) {
        physical_give(context->device, physical, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->address = (uintptr_t)outside;
    allocation->inside = inside;
    allocation->handle = (CUmemGenericAllocationHandle)physical;
    for (size_t i = 0; i < chunks; i++)
        *directory_entry(allocation->address + i * SIM_CHUNK_BYTES) = (uintptr_t)allocation;
    return CUDA_SUCCESS;
}

static void large_free(struct allocation *allocation)
{
    size_t chunks = (allocation->bytes + SIM_CHUNK_BYTES - 1) / SIM_CHUNK_BYTES;
    for (size_t i = 0; i < chunks; i++) *directory_entry(allocation->address + i * SIM_CHUNK_BYTES) = 0;
    physical_unmap(allocation->inside, chunks * SIM_CHUNK_BYTES);
    physical_give(allocation->device, (int64_t)allocation->handle, allocation->bytes);
    addresses_give(allocation->address, chunks);
}

/* A run of free slots, first fit; SIM_SLOTS if there is none. */
static size_t slots_find(struct shared_chunk *chunk, size_t want)
{
    size_t run = 0, longest = 0;
    for (size_t i = 0; i < SIM_SLOTS; i++) {
        run = chunk->slots[i] ? 0 : run + 1;
        if (run > longest) longest = run;
        if (run == want) return i + 1 - want;
    }
    chunk->largest_free = longest;
    return SIM_SLOTS;
}

static struct shared_chunk *shared_chunk_add(CUcontext context, enum allocation_kind kind)
{
    char *outside, *inside;
    int64_t physical = kind == ALLOCATION_VARIABLE ? 0 : physical_take(context->device, SIM_CHUNK_BYTES);
    if (physical < 0 || !addresses_take(1, &outside, &inside)) return NULL;
    if (kind != ALLOCATION_VARIABLE && !physical_map(inside, physical, SIM_CHUNK_BYTES)) return NULL;
    struct shared_chunk *chunk = calloc(1, sizeof *chunk);
    *chunk = (struct shared_chunk){.next = shared_chunks,
                                   .address = (uintptr_t)outside,
                                   .inside = inside,
                                   .physical = physical,
                                   .context = context,
                                   .device = context->device,
                                   .kind = kind,
                                   .largest_free = SIM_SLOTS};
    *directory_entry(chunk->address) = (uintptr_t)chunk | 1;
    return shared_chunks = chunk;
}

static CUresult small_create(CUcontext context, size_t bytes, struct allocation *allocation)
{
    size_t want = (bytes + SIM_SLOT_BYTES - 1) / SIM_SLOT_BYTES, first = SIM_SLOTS;
    struct shared_chunk *chunk;
    for (chunk = shared_chunks; chunk; chunk = chunk->next)
        if (chunk->context == context && chunk->kind == allocation->kind && chunk->largest_free >= want &&
            (first = slots_find(chunk, want)) < SIM_SLOTS)
            break;
    if (!chunk) {
        chunk = shared_chunk_add(context, allocation->kind);
        if (!chunk) return CUDA_ERROR_OUT_OF_MEMORY;
        first = 0;
    }
    for (size_t i = 0; i < want; i++) chunk->slots[first + i] = allocation;
    chunk->used_slots += want;
    allocation->address = chunk->address + first * SIM_SLOT_BYTES;
    allocation->inside = chunk->inside + first * SIM_SLOT_BYTES;
    return CUDA_SUCCESS;
}

static void small_free(struct allocation *allocation)
{
    uintptr_t *entry = directory_entry(allocation->address);
    struct shared_chunk *chunk = (struct shared_chunk *)(*entry & ~(uintptr_t)1);
    size_t first = allocation->address % SIM_CHUNK_BYTES / SIM_SLOT_BYTES;
    size_t count = (allocation->bytes + SIM_SLOT_BYTES - 1) / SIM_SLOT_BYTES;
    for (size_t i = 0; i < count; i++) chunk->slots[first + i] = NULL;
    chunk->used_slots -= count;
    chunk->largest_free = SIM_SLOTS;
    if (chunk->used_slots) return;
    for (struct shared_chunk **link = &shared_chunks; *link; link = &(*link)->next)
        if (*link == chunk) {
            *link = chunk->next;
            break;
        }
    *entry = 0;
    if (chunk->kind != ALLOCATION_VARIABLE) {
        physical_unmap(chunk->inside, SIM_CHUNK_BYTES);
        physical_give(chunk->device, chunk->physical, SIM_CHUNK_BYTES);
    }
    addresses_give(chunk->address, 1);
    free(chunk);
}

static bool is_small(size_t bytes) { return bytes < SIM_CHUNK_BYTES / 2; }

CUresult allocation_create(CUcontext context, size_t bytes, enum allocation_kind kind, struct allocation **result)
{
    if (!directory_open() || bytes > sim.devices[context->device].memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    struct allocation *allocation = calloc(1, sizeof *allocation);
    *allocation = (struct allocation){.bytes = bytes,
                                      .kind = kind,
                                      .context = context,
                                      .device = context->device,
                                      .accessible = true,
                                      .writable = true};
    CUresult failed =
        is_small(bytes) ? small_create(context, bytes, allocation) : large_create(context, bytes, allocation);
    if (failed) {
        free(allocation);
        return failed;
    }
    allocation_link(allocation);
    *result = allocation;
    return CUDA_SUCCESS;
}

CUresult allocation_name(CUcontext context, char *inside, size_t bytes, struct allocation **result)
{
    for (struct allocation *each = allocations; each; each = each->next)
        if (each->kind == ALLOCATION_VARIABLE && each->inside == inside && each->context == context) {
            *result = each;
            return CUDA_SUCCESS;
        }
    if (!is_small(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult failed = allocation_create(context, bytes, ALLOCATION_VARIABLE, result);
    if (!failed) (*result)->inside = inside;
    return failed;
}

void allocation_free(struct allocation *allocation)
{
    allocation_unlink(allocation);
    if (is_small(allocation->bytes))
        small_free(allocation);
    else
        large_free(allocation);
    free(allocation);
}

void allocations_forget(CUcontext context)
{
    for (struct allocation *each = allocations, *next; each; each = next) {
        next = each->next;
        if (each->context == context && each->kind != ALLOCATION_MAPPING) allocation_free(each);
    }
}

/* ---- what an address is ---- */

void location_of(uint64_t address, struct location *location)
{
    *location = (struct location){.place = PLACE_PAGEABLE, .base = address};
    struct allocation *allocation = allocation_at(address);
    if (allocation) {
        *location = (struct location){
            .place = PLACE_DEVICE, .base = allocation->address, .bytes = allocation->bytes, .allocation = allocation};
        return;
    }
    struct span *span = span_at(address);
    if (!span) return;
    *location = (struct location){.place = span->kind == SPAN_MANAGED ? PLACE_MANAGED : PLACE_PINNED,
                                  .base = span->address,
                                  .bytes = span->bytes,
                                  .registration = span->id,
                                  .span = span};
}

bool location_holds(const struct location *location, uint64_t address, size_t bytes)
{
    if (location->place == PLACE_PAGEABLE || (location->allocation && !location->allocation->accessible)) return false;
    uint64_t end = location->base + location->bytes;
    if (address >= location->base && bytes <= end - address) return true;
    if (!location->allocation || location->allocation->kind != ALLOCATION_MAPPING) return false;
    struct location next; /* mappings side by side are one range of addresses */
    location_of(end, &next);
    return next.allocation && next.allocation->kind == ALLOCATION_MAPPING &&
           location_holds(&next, end, address + bytes - end);
}

static char *allocation_inside(const struct allocation *allocation, uint64_t address)
{
    return allocation->accessible ? allocation->inside + (address - allocation->address) : NULL;
}

char *location_inside(uint64_t address, size_t bytes)
{
    struct allocation *allocation = allocation_at(address);
    if (allocation) return allocation_inside(allocation, address);
    struct span *span = span_at(address);
    return span && pages_are_there(span->pages, address, bytes) ? (char *)(uintptr_t)address : NULL;
}

char *location_inside_whole(uint64_t address)
{
    struct allocation *allocation = allocation_at(address);
    if (allocation) return allocation_inside(allocation, address);
    struct span *span = span_at(address);
    return span && pages_are_there(span->pages, span->address, span->bytes) ? (char *)(uintptr_t)address : NULL;
}

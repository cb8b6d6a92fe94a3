/* Memory: what an address is. All functions here are called locked unless they say otherwise. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "sim.h"
#include "stream.h"

/* ---- physical.c: the memory file ---- */
/* Physical memory of a device, whole chunks; the offset in the file, or -1 when the device has no more. */
int64_t physical_take(CUdevice device, size_t bytes);
void physical_give(CUdevice device, int64_t offset, size_t bytes);
/* Shows physical memory at an inside address / takes it away again. */
bool physical_map(char *inside, int64_t offset, size_t bytes);
void physical_unmap(char *inside, size_t bytes);
/* Reserves addresses, chunk-aligned, PROT_NONE; NULL when there are none. */
char *address_reserve(size_t bytes);

/* ---- memory.c ---- */
enum allocation_kind { ALLOCATION_PLAIN, ALLOCATION_POOL, ALLOCATION_MAPPING, ALLOCATION_VARIABLE };
struct allocation {
    uint64_t address;
    size_t bytes;
    char *inside; /* the simulator's address of the same byte */
    enum allocation_kind kind;
    CUcontext context;
    CUdevice device;
    CUmemoryPool pool;
    uint64_t id;
    bool accessible; /* a mapping before cuMemSetAccess is not */
    bool writable, being_freed, sync_operations, in_graph;
    CUmemGenericAllocationHandle handle; /* of a mapping */
    size_t handle_offset;
    struct allocation *next, *previous; /* all allocations */
};
bool chunk_is_there(uint64_t address);              /* device memory is mapped there, be it anybody's or free */
struct allocation *allocation_at(uint64_t address); /* interior addresses too */
CUresult allocation_create(CUcontext context, size_t bytes, enum allocation_kind kind, struct allocation **allocation);
/* A name for memory that lies inside the simulator already, a kernel file's variable. */
CUresult allocation_name(CUcontext context, char *inside, size_t bytes, struct allocation **allocation);
void allocation_free(struct allocation *allocation);
/* Frees it when what is queued in the stream is done. */
void allocation_free_in(struct allocation *allocation, CUstream stream);
void allocations_forget(CUcontext context);
/* For vmm.c: chunks of a reservation show a mapping. */
bool chunks_show(struct allocation *mapping);
void chunks_hide(struct allocation *mapping);

/* ---- pages.c: what a registration has pinned ---- */
struct pages;
struct pages *pages_hold(uintptr_t address, size_t bytes); /* NULL where that cannot be watched */
void pages_release(struct pages *pages);
/* Whether these addresses still show the pages that are held. */
bool pages_are_there(const struct pages *pages, uintptr_t address, size_t bytes);

/* ---- host.c: memory that the CPU and the device share ---- */
enum span_kind { SPAN_REGISTERED, SPAN_ALLOCATED, SPAN_MANAGED };
struct span {
    uint64_t address;
    size_t bytes;
    enum span_kind kind;
    unsigned flags;
    CUcontext context;
    CUdevice device;
    uint64_t id;
    struct pages *pages; /* of a registration */
};
struct span *span_at(uint64_t address);
struct span *span_in(uint64_t address, size_t bytes); /* any that overlaps */
CUresult span_add(struct span span);
void span_remove(struct span *span);
void spans_forget(CUcontext context);
void managed_free(struct span *span);

/* ---- vmm.c ---- */
bool reservation_bounds(uint64_t address, uint64_t *start, size_t *bytes);

/* ---- what an address is ---- */
struct location {
    enum place place;
    uint64_t base;
    size_t bytes;
    uint64_t registration;
    struct allocation *allocation;
    struct span *span;
};
void location_of(uint64_t address, struct location *location);
/* Whether [address, address + bytes) lies in one allocation, registration or run of mappings. */
bool location_holds(const struct location *location, uint64_t address, size_t bytes);
/* The CPU's pointer to device or shared memory; NULL if the device could not reach it either, or would reach other
 * pages than the program has there, somewhere in these bytes. */
char *location_inside(uint64_t address, size_t bytes);
/* The same for all of what the address lies in. */
char *location_inside_whole(uint64_t address);

#endif

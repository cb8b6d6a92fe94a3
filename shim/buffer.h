/* The table of live allocations: every pointer that the program got from CUDA and has not given back.
 *
 * A uthash table by start address; interior pointers into windows are found through the window's slot map (window.h).
 * Thread-safe: one lock, held for a few tens of ns, never across a driver call. Entries are handed out by value. */
#ifndef SHIM_BUFFER_H
#define SHIM_BUFFER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "shim/site.h"

struct window;
struct context;

struct buffer {
    uintptr_t address;
    size_t bytes; /* as the program asked */
    enum buffer_kind kind;
    int device;              /* ordinal, -1 unknown */
    struct context *context; /* NULL: not tracked */
    struct window *window;   /* NULL: memory of the driver */
    struct site *site;       /* may be NULL */
    uint64_t id;             /* unique in the process, as CU_POINTER_ATTRIBUTE_BUFFER_ID is */
};

/* Adds; false when out of memory (the allocation is then merely untracked). Counts it at its site. An entry that starts
 * at the same address is replaced: whatever freed it was not seen. */
bool buffer_add(const struct buffer *buffer);
/* The entry that starts at `address`. */
bool buffer_find(uintptr_t address, struct buffer *out);
/* Takes out the entry that starts at `address`; the caller puts it back with buffer_add if the driver then refuses to
 * free it. */
bool buffer_remove(uintptr_t address, struct buffer *out);
/* The pinned, registered or device entry that contains `address`, by a walk over all: for the rare path that names a
 * mistake. */
bool buffer_find_containing(uintptr_t address, struct buffer *out);
/* Takes out all entries of a context that is gone; they count as abandoned. */
void buffer_forget_context(struct context *context);
/* Calls `visit` for each entry, the table locked. */
void buffer_for_each(void (*visit)(const struct buffer *buffer, void *argument), void *argument);
/* Remembers the last few thousand freed addresses, so that a second free can be named; true if `address` is among them
 * and was not handed out again. */
bool buffer_was_freed(uintptr_t address);
/* The same, and where it had been allocated. */
bool buffer_freed_site(uintptr_t address, struct site **site);
/* Counts a large host block (BUFFER_HOST), which has no entry in the table, and takes it out of the count. `site` may
 * be NULL. No lock: called inside malloc, also by handlers of fork. */
void buffer_count_host(struct site *site, size_t bytes);
void buffer_uncount_host(struct site *site, size_t bytes);
uint64_t buffer_next_id(void);
/* Of all buffers, by kind. */
void buffer_totals(struct usage totals[BUFFER_KINDS]);
/* The table's lock, around fork. */
void buffer_before_fork(void);
void buffer_after_fork(void); /* in parent and child */
#endif

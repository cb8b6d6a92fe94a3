/* What the shim tells at exit. Text for people or JSON, from the same emitter. Makes no driver call and no allocation
 * through the hooked malloc; works with fd 2 closed; one report per process (a forked child that did not exec reports
 * nothing; compare getpid()). Silent when there is nothing to say and nobody asked. */
#ifndef SHIM_REPORT_H
#define SHIM_REPORT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "shim/site.h"

/* Something that the user should know once: a fall-back, a bypass, a refusal. Equal lines are counted, not repeated.
 * At most 128 distinct lines are kept (the rest are counted). Safe wherever log_line is. */
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum misuse {
    MISUSE_DOUBLE_FREE,         /* a device buffer freed twice */
    MISUSE_INTERIOR_FREE,       /* a pointer into a buffer freed */
    MISUSE_FREE_OF_PINNED,      /* free() of memory from cudaHostAlloc */
    MISUSE_FREE_HOST_OF_MALLOC, /* cudaFreeHost of memory that CUDA did not allocate */
    MISUSE_FREE_HOST_OF_DEVICE, /* cudaFreeHost of a device buffer */
    MISUSE_FREE_OF_HOST,        /* cudaFree of host memory */
    MISUSE_UNREGISTER_OF_ALLOC, /* cudaHostUnregister of memory from cudaHostAlloc */
    MISUSE_KINDS
};
/* The driver's answer was given to the program; this only remembers it. `allocated` may be NULL (unknown). */
void report_misuse(enum misuse kind, const void *address, struct site *allocated, struct site *freed);

/* The run over time, for the trace and the charts. Cheap enough for every copy and every allocation: one comparison,
 * unless a sample is due. `now_ns` is of clock_ns(). */
void report_tick(uint64_t now_ns);
/* A window of the site moved. The first few thousand moves are kept. */
void report_moved(struct site *site, bool to_host, size_t bytes, uint64_t now_ns, uint64_t took_ns);

/* Writes the report of the run so far, to where the last one goes. No lock is held. */
void report_dump(void);
/* Writes the report if there is one to write. Called once, from the library's destructor (shim.c). */
void report_at_exit(void);
#endif

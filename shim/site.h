/* Call sites: where in the program a buffer was allocated.
 *
 * A site is the calling stack (return addresses, innermost first, the shim's own frames left out), interned: equal stacks give the same
 * pointer, and sites live as long as the process. Capture costs about 0.1 us when this thread was here before with the same stack
 * (the recorded return-address slots are compared, no unwinding), else a few us.
 * Symbols are looked up at report time only. Thread-safe. NULL only when out of memory; callers accept that. */
#ifndef SHIM_SITE_H
#define SHIM_SITE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SITE_DEPTH_MAX 32

/* What a site can allocate; the report counts each apart. */
enum buffer_kind {
    BUFFER_DEVICE,     /* cuMemAlloc, cuMemAllocPitch */
    BUFFER_POOL,       /* cuMemAllocAsync and from pools */
    BUFFER_MANAGED,    /* cuMemAllocManaged */
    BUFFER_PINNED,     /* cuMemHostAlloc, cuMemAllocHost */
    BUFFER_REGISTERED, /* cuMemHostRegister by the program */
    BUFFER_KINDS
};

struct site_usage {
    _Atomic uint64_t live_bytes, live_count, peak_bytes, total_count, total_bytes;
};

/* Copies from and to the buffers of a site. ns are measured where a clock was read, else estimated. */
struct site_copies {
    _Atomic uint64_t count, bytes, ns;
};

struct site {
    uint64_t hash;
    uint32_t id;    /* 1, 2, ... in order of first use */
    uint32_t depth; /* frames used */
    uintptr_t frames[SITE_DEPTH_MAX];
    struct site *next; /* all sites, newest first; read by the report */
    struct site_usage usage[BUFFER_KINDS];
    struct site_copies native_h2d, native_d2h, elided_h2d, elided_d2h;
    _Atomic uint64_t moves_to_host, moves_to_device, saved_ns, lost_ns;
    _Atomic(const char *) reason; /* static text: why its buffers live where they live; NULL: never placed */
    _Atomic bool on_host;         /* where its windows live now */
    _Atomic bool native_only;     /* never put into windows (rule, profile, IPC) */
    void *policy;                 /* belongs to the code that drives policy/ (shim/placement.c) */
};

/* The site of the present call. Call from a hook. */
struct site *site_capture(void);

/* Forgets the per-thread caches of a forked child. */
void site_after_fork(void);
#endif

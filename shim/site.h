/* Call sites: where in the program a buffer was allocated.
 *
 * A site is the calling stack (return addresses, innermost first, without the shim's own frames and without the frames
 * of CUDA libraries that lead to it), interned: equal stacks give the same pointer, and sites live as long as the
 * process. In a Python program the site is also where the interpreter was, since all its code shares a native stack.
 * Capture costs about 0.1 us when this thread was here before with the same stack (the recorded return-address
 * slots are compared, no unwinding), else a few us. Symbols are looked up at report time only. Thread-safe, no lock but
 * for a new site. NULL only when out of memory; callers accept that. After SITE_MOST different sites all further ones
 * are one site without frames. */
#ifndef SHIM_SITE_H
#define SHIM_SITE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SITE_DEPTH_MAX 32
#define SITE_MOST      16384

/* What a site can allocate; the report counts each apart. BUFFER_HOST is the last. */
enum buffer_kind {
    BUFFER_DEVICE,     /* cuMemAlloc, cuMemAllocPitch */
    BUFFER_POOL,       /* cuMemAllocAsync and from pools */
    BUFFER_MANAGED,    /* cuMemAllocManaged */
    BUFFER_PINNED,     /* cuMemHostAlloc, cuMemAllocHost */
    BUFFER_REGISTERED, /* cuMemHostRegister by the program */
    BUFFER_HOST,       /* large blocks of malloc that the shim mapped: no memory of CUDA's, listed apart */
    BUFFER_KINDS
};

struct usage {
#define USAGE(name) uint64_t name;
#include "shim/usage.def"
#undef USAGE
};
struct site_usage {
#define USAGE(name) _Atomic uint64_t name;
#include "shim/usage.def"
#undef USAGE
};
static inline struct usage usage_read(const struct site_usage *from)
{
    return (struct usage){
#define USAGE(name) .name = atomic_load_explicit(&from->name, memory_order_relaxed),
#include "shim/usage.def"
#undef USAGE
    };
}

/* Copies from and to the buffers of a site. ns are measured where a clock was read, else estimated. */
struct site_copies {
    _Atomic uint64_t count, bytes, ns;
};

struct window;
struct python_stack;

struct site {
    uint64_t hash;  /* of module and offset of each frame: the same in every run of the same program */
    uint32_t id;    /* 1, 2, ... in order of first use */
    uint32_t depth; /* frames used */
    uintptr_t frames[SITE_DEPTH_MAX];
    uint16_t modules[SITE_DEPTH_MAX];  /* of each frame, see modules.h */
    const struct python_stack *python; /* see python.h; NULL: not called from Python, or it cannot be told */
    uint16_t via;      /* the CUDA library that asked (libcublas, ... but not the runtime); 0: the program itself */
    struct site *next; /* all sites, newest first; read by the report */
    struct site_usage usage[BUFFER_KINDS];
    struct site_copies native_h2d, native_d2h, elided_h2d, elided_d2h;
    _Atomic uint64_t moves_to_host, moves_to_device, saved_ns, lost_ns;
    _Atomic(const char *) reason; /* static text: why its buffers live where they live; NULL: never placed */
    _Atomic bool on_host;         /* where its windows live now */
    _Atomic bool native_only;     /* never put into windows (rule, profile, IPC) */
    _Atomic uint8_t lend_refused; /* lending to its buffers did not pay, so often */
    struct window *windows;       /* window.c: the windows whose buffers were allocated here, newest first */
    void *policy;                 /* belongs to the code that drives policy/ (shim/placement.c) */
};

/* The site of the present call. Call from a hook. */
struct site *site_capture(void);

/* The same inside malloc. NULL also if a library of CUDA's calls it for itself. */
struct site *site_capture_malloc(void);

/* The newest site; the others follow by `next`. Sites may be added meanwhile, never removed. */
struct site *site_first(void);

/* In a forked child: other threads are gone, whatever they were about to do. */
void site_after_fork(void);
#endif

/*
 * What the kernels of a module do with the memory that their parameters point to, read from the module's PTX text.
 *
 * The answers err on one side: "may write", "unbounded", "elsewhere". Whatever is not understood (a call into unknown
 * code, an instruction that is not in ptx_ops.def, text that ends early, too much work) makes the kernel `why` != NULL:
 * nothing is known of it, every pointer must be taken as written.
 *
 * What the answers stand on:
 * - addresses are formed as compilers form them: a base plus offsets. A value that was scaled, narrowed to 32 bits or
 *   computed in floating point is an offset, not a base; where no base is left, the access is "elsewhere". Values that
 *   may have been put together from pieces (pack, or, shift by 32) count as bases again;
 * - a pointer stays inside the allocation that it was made for (anything else is undefined in CUDA C++);
 * - kernel parameters are matched by value: `pointers` lists every 8-byte window of the parameter buffer through which
 *   memory is accessed. A window whose value is no address of the caller's interest may be ignored;
 * - module variables (__device__, __constant__) are the module's own memory; writes to them are told apart. A pointer
 *   that was loaded from any global memory is "elsewhere";
 * - the text is what runs: the caller checks that the driver runs code made from this PTX (see shim/module_image.h).
 *
 * Pure: no allocation (the caller lends scratch memory), no globals, no clock, no I/O; calls from any thread at the
 * same time are fine with a scratch of their own. Work is bounded by a multiple of the text's length.
 */
#ifndef ZCSHIM_POLICY_PTX_H
#define ZCSHIM_POLICY_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTX_UNBOUNDED UINT64_MAX

/* Ordered: a larger one is the more careful answer. */
enum ptx_use {
    PTX_UNUSED,    /* no access through it */
    PTX_READS,     /* loads only */
    PTX_MAY_WRITE, /* stores, atomics, or something that could be one */
    PTX_UNKNOWN,   /* the kernel was not understood: to be taken as PTX_MAY_WRITE */
};

/* One 8-byte window of the parameter buffer whose value serves as the base of an address. */
struct ptx_pointer {
    uint32_t parameter;           /* index into parameters */
    uint32_t offset_bytes;        /* of the window, from the start of the whole parameter buffer */
    enum ptx_use use;             /* never UNUSED; MAY_WRITE if the kernel stores elsewhere */
    bool atomics;                 /* atom or red through it */
    bool polls;                   /* load through it in a loop that a first-level cache may not answer */
    bool in_loop;                 /* some access through it is in a loop */
    uint64_t bytes_per_thread;    /* upper bound of what one thread touches through it; PTX_UNBOUNDED: none known */
    uint64_t accesses_per_thread; /* likewise, in loads, stores and atomics of up to 32 bytes */
};

struct ptx_parameter {
    uint32_t offset_bytes, size_bytes, align_bytes; /* as cuFuncGetParamInfo answers offset and size */
    bool pointer_like;                              /* some window of it serves, or is declared, as a pointer */
    enum ptx_use use;                               /* the largest of its windows; by-value structs hold several */
};

struct ptx_kernel {
    const char *name; /* inside the text, not terminated */
    size_t name_bytes;
    const char *why;   /* NULL: understood. Else a constant sentence: what was not understood */
    unsigned why_line; /* line of the text it refers to, from 1; 0 if none */
    const struct ptx_parameter *parameters;
    uint32_t parameter_count;
    const struct ptx_pointer *pointers; /* in order of offset; empty if not understood */
    uint32_t pointer_count;
    bool stores_elsewhere;  /* may store through something that is neither a parameter nor a module variable */
    bool loads_elsewhere;   /* likewise loads (loaded pointers, textures): then no bound holds for any buffer */
    bool stores_variables;  /* stores to module variables */
    bool atomics;           /* atomics or reductions on global memory, wherever */
    bool atomics_elsewhere; /* some of them not through a parameter (module variables included) */
    bool polls;             /* loads of global memory in a loop that a first-level cache may not answer, wherever:
                               volatile, relaxed, acquire, .cg, bulk copies, and all where a fence is in a loop */
    bool calls;             /* calls functions of the module (their bodies are part of the answer) */
};

enum ptx_status {
    PTX_COMPLETE, /* every entry of the text was visited */
    PTX_PARTIAL,  /* the text is malformed, truncated or too much: kernels may exist that were not visited */
    PTX_STOPPED,  /* the visitor returned false */
};

/* Called once a kernel; everything behind `kernel` is valid only during the call. False stops. */
typedef bool ptx_visit(void *context, const struct ptx_kernel *kernel);

/*
 * Analyses each .entry of `text` (`bytes` long, a terminating NUL ends it earlier). `only`, if not NULL, names the one
 * kernel to analyse. `scratch` is any memory, aligned to 16; ptx_scratch_bytes(bytes) is a size that suffices for what
 * compilers emit; with less, kernels come out as not understood, never wrong.
 */
enum ptx_status ptx_analyse(const char *text, size_t bytes, const char *only, void *scratch, size_t scratch_bytes,
                            ptx_visit *visit, void *context);
size_t ptx_scratch_bytes(size_t text_bytes);

/* What the kernel does through the 8-byte window at this offset of the parameter buffer. */
enum ptx_use ptx_kernel_use(const struct ptx_kernel *kernel, uint32_t offset_bytes);

/* True if the kernel is understood and writes nothing but module variables and what its MAY_WRITE windows point to. */
bool ptx_kernel_confined(const struct ptx_kernel *kernel);

#endif

/* The functions behind the hooked entry points: hook_<name>(forward, per_thread, the entry's own parameters).
 *
 * `forward` is the driver's function of exactly the entry that was called (the _ptds or _ptsz twin when per_thread);
 * calling it with the unchanged arguments is always a right answer. A hook runs only while shim_active(), may be called
 * by any thread at any time, holds no lock when it calls forward, and touches outputs only on success. */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H
#include "shim/shim.h"

/* The type of a driver function. */
#define DRIVER(name) __typeof__(((struct driver *)0)->name)

/* The stream that a form without a stream parameter means. */
static inline CUstream default_stream(bool per_thread) { return per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY; }

/* What a stream handle means in a form with one: 0 is the legacy or, in the _ptsz forms, the per-thread stream. */
static inline CUstream named_stream(CUstream stream, bool per_thread)
{
    return stream ? stream : default_stream(per_thread);
}

/* The address to ask the driver about instead of this one (attributes.c): windows answer as device memory, what the
 * shim registered as the pageable memory that it is to the program; every other address is itself. Any thread. */
CUdeviceptr address_to_ask(CUdeviceptr ptr);

#define HOOKS_PARAMETERS(...) __VA_OPT__(, ) __VA_ARGS__
/* Only the base entries declare; a twin calls its base's function. */
#define HOOKS_DECLARE_0(name, base, parameters)                                                                        \
    CUresult hook_##base(DRIVER(base) forward, bool per_thread HOOKS_PARAMETERS parameters);
#define HOOKS_DECLARE_1(name, base, parameters)
#define HOOK_ENTRY(name, base, per_thread, parameters, arguments) HOOKS_DECLARE_##per_thread(name, base, parameters)
#include "shim/driver.def"
#endif

/* The exported entry points: each finds the driver, and calls its hook while the shim is at work. */
#include <string.h>
#include "shim/context.h"
#include "shim/entries.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/lend.h"
#include "shim/shim.h"

#define EXPORT          __attribute__((visibility("default")))
#define ENTRY_ARGS(...) __VA_OPT__(, ) __VA_ARGS__
#define ENTRY_FIND(name)                                                                                               \
    shim_start();                                                                                                      \
    if (!shim.real.name && (!driver_resolve(NULL) || !shim.real.name))                                                 \
        return shim.real.cuCtxGetCurrent ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NO_DEVICE;

#define HOOK_ENTRY(name, base, per_thread, parameters, arguments)                                                      \
    EXPORT CUresult CUDAAPI name parameters                                                                            \
    {                                                                                                                  \
        ENTRY_FIND(name)                                                                                               \
        if (!shim_active()) return shim.real.name arguments;                                                           \
        return hook_##base(shim.real.name, per_thread ENTRY_ARGS arguments);                                           \
    }

/* Of the entries below: makes a stream wait or call the program, and touches no device memory. */
static inline bool only_waits(const char *name)
{
    return strstr(name, "Wait") || strstr(name, "HostFunc") || strstr(name, "Callback");
}

/* Work for the GPU that may touch any buffer: no window moves while it is being submitted. */
#define SUBMIT_ENTRY(name, parameters, arguments)                                                                      \
    EXPORT CUresult CUDAAPI name parameters                                                                            \
    {                                                                                                                  \
        ENTRY_FIND(name)                                                                                               \
        if (!shim_active()) return shim.real.name arguments;                                                           \
        struct lend_work work = {.waits = only_waits(#name)};                                                          \
        lend_gate_enter(&work);                                                                                        \
        CUresult result = shim.real.name arguments;                                                                    \
        context_note(result);                                                                                          \
        gate_leave_submitted();                                                                                        \
        return result;                                                                                                 \
    }
/* Addresses may have been given out. */
#define MEMORY_ENTRY(name, parameters, arguments)                                                                      \
    EXPORT CUresult CUDAAPI name parameters                                                                            \
    {                                                                                                                  \
        ENTRY_FIND(name)                                                                                               \
        CUresult result = shim.real.name arguments;                                                                    \
        context_memory_changed();                                                                                      \
        return result;                                                                                                 \
    }
#include "shim/driver.def"

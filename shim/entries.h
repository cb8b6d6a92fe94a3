/* Declares the exported entry points themselves (cuda.h leaves the per-thread twins out). */
#ifndef SHIM_ENTRIES_H
#define SHIM_ENTRIES_H
#include <cuda.h>
#define HOOK_ENTRY(name, base, per_thread, parameters, arguments) CUresult CUDAAPI name parameters;
#define SUBMIT_ENTRY(name, parameters, arguments)                 CUresult CUDAAPI name parameters;
#define MEMORY_ENTRY(name, parameters, arguments)                 CUresult CUDAAPI name parameters;
#include "shim/driver.def"
#endif

/* The driver's own entry points, by name, typed from driver.def.
 *
 * They are looked up in libcuda the first time that the process looks up or calls any cu* function. A pointer that this
 * driver does not have stays NULL: code that needs one that old drivers lack tests it. Inside the shim only these are
 * called, never the exported names, so that the shim never sees itself. */
#ifndef SHIM_DRIVER_H
#define SHIM_DRIVER_H
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct driver {
#define HOOK_ENTRY(name, base, per_thread, parameters, arguments) CUresult(CUDAAPI *name) parameters;
#define SUBMIT_ENTRY(name, parameters, arguments)                 CUresult(CUDAAPI *name) parameters;
#define MEMORY_ENTRY(name, parameters, arguments)                 CUresult(CUDAAPI *name) parameters;
#define USE_ENTRY(name, parameters)                               CUresult(CUDAAPI *name) parameters;
#include "shim/driver.def"
};

/* Looks everything up if libcuda is loaded, or can be. Called by an exported entry point and by look-ups; takes no
 * lock: the result is the same whoever gets there first. False: there is no driver. */
bool driver_resolve(void *libcuda);
#endif

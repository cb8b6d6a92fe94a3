/* The three ways by which a program gets at a driver function: a symbol that this library exports, dlsym, and
 * cuGetProcAddress. All lead to one table made from driver.def; a pointer is replaced by identity, after libcuda or the
 * loader has chosen it (facts.md: every pointer that cuGetProcAddress returns is that of an exported symbol). */
#ifndef SHIM_ROUTE_H
#define SHIM_ROUTE_H
#include <stdbool.h>
#include <stddef.h>

/* The loader's own dlsym, for the shim's look-ups; RTLD_NEXT means after this library. NULL only if libc has none. */
void *route_real_dlsym(void *handle, const char *name);

/* The hook for a function of the driver, or `function` itself if it is not hooked. */
void *route_replace(void *function);

/* Is the address code of libcuda? False before libcuda was seen. */
bool route_in_driver(const void *address);
#endif

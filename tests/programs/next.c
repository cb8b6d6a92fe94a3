/* A library between the program and the rest: it wraps a function of its own name found by RTLD_NEXT, as OpenMP does.
 */
#include <dlfcn.h>
#include <stddef.h>

/* The next definition of this very function after this library: there is none, unless the look-up was made as if
 * another object had made it, which would find this one again. */
void *next_of_itself(void);
void *next_of_itself(void) { return dlsym(RTLD_NEXT, "next_of_itself"); }

/* The next malloc is somebody else's. */
void *next_malloc(void);
void *next_malloc(void) { return dlsym(RTLD_NEXT, "malloc"); }

void *next_driver(void);
void *next_driver(void) { return dlsym(RTLD_NEXT, "cuMemAlloc_v2"); }

/* A library between the program and the rest: it wraps a function of its own name found by RTLD_NEXT, as OpenMP does.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The next definition of this very function after this library: there is none, unless the look-up was made as if
 * another object had made it, which would find this one again. */
void *next_of_itself(void);
void *next_of_itself(void) { return dlsym(RTLD_NEXT, "next_of_itself"); }

/* The next malloc is somebody else's. */
void *next_malloc(void);
void *next_malloc(void) { return dlsym(RTLD_NEXT, "malloc"); }

void *next_driver(void);
void *next_driver(void) { return dlsym(RTLD_NEXT, "cuMemAlloc_v2"); }

/* Runs before the constructors of preloaded libraries. With PROGRAMS_EARLY set it allocates and uses the driver there.
 */
char next_early[100] = "not asked";

__attribute__((constructor)) static void start_early(void)
{
    if (!getenv("PROGRAMS_EARLY")) return;
    char *block = malloc(9 << 20), back[8] = "";
    memset(block, 'e', 9 << 20);
    block = realloc(block, 20 << 20);
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(libcuda, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(libcuda, "cuDevicePrimaryCtxRetain");
    int (*current)(void *) = (int (*)(void *))dlsym(libcuda, "cuCtxSetCurrent");
    int (*allocate)(unsigned long long *, size_t) =
        (int (*)(unsigned long long *, size_t))dlsym(libcuda, "cuMemAlloc_v2");
    int (*release)(unsigned long long) = (int (*)(unsigned long long))dlsym(libcuda, "cuMemFree_v2");
    int (*upload)(unsigned long long, const void *, size_t) =
        (int (*)(unsigned long long, const void *, size_t))dlsym(libcuda, "cuMemcpyHtoD_v2");
    int (*download)(void *, unsigned long long, size_t) =
        (int (*)(void *, unsigned long long, size_t))dlsym(libcuda, "cuMemcpyDtoH_v2");
    unsigned long long device = 0;
    void *context = NULL;
    int failed = init(0) || retain(&context, 0) || current(context) || allocate(&device, 4096) ||
                 upload(device, block, 4) || download(back, device, 4) || release(device);
    strcpy(next_early, failed ? "failed" : back);
    free(block);
}

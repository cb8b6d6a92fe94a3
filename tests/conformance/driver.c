#include <dlfcn.h>
#include <stdio.h>
#include "conformance.h"

struct driver d;

static CUresult function_missing(void) { return CUDA_ERROR_NOT_FOUND; }

void *driver_function(const char *name, int version, uint64_t flags)
{
    void *function = NULL;
    if (d.get_proc_address(name, &function, version, flags, NULL) != CUDA_SUCCESS) function = NULL;
    return function;
}

static void *function_or_missing(const char *name, int version, uint64_t flags)
{
    void *function = driver_function(name, version, flags);
    return function ? function : (void *)function_missing;
}

bool driver_load(void)
{
    d.library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!d.library) return false;
    d.get_proc_address = (__typeof__(d.get_proc_address))dlsym(d.library, "cuGetProcAddress_v2");
    if (!d.get_proc_address) return false;
#define X(name, version) *(void **)&d.name = function_or_missing(#name, version, 0);
#define XP(name, version, ending)                                                                                      \
    *(void **)&d.name##_##ending = function_or_missing(#name, version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
#include "driver.def"
#undef X
#undef XP
    return true;
}

const char *error_name(CUresult code)
{
    static char unnamed[32];
    const char *name = NULL;
    if (code == CUDA_SUCCESS) return "SUCCESS";
    if (d.cuGetErrorName(code, &name) == CUDA_SUCCESS && name) {
        return strncmp(name, "CUDA_ERROR_", 11) == 0 ? name + 11 : name;
    }
    snprintf(unnamed, sizeof unnamed, "code %d", (int)code);
    return unnamed;
}

/* What the driver API's programs share. */
#include "driver.h"
#include <dlfcn.h>

__asm__(".section .rodata\n.globl programs_ptx\nprograms_ptx:\n.incbin \"" PROGRAMS_PTX "\"\n.byte 0\n.previous\n");
extern const char programs_ptx[];

#ifdef DRIVER_DLOPEN
#define DRIVER_DEFINE(name)   DRIVER_DEFINE_(name)
#define DRIVER_DEFINE_(name)  __typeof__(name) *driver_##name;
#define DRIVER_RESOLVE(name)  DRIVER_RESOLVE_(name)
#define DRIVER_RESOLVE_(name) driver_##name = (__typeof__(name) *)driver_symbol(libcuda, #name);
DRIVER_FUNCTIONS(DRIVER_DEFINE)

static void *driver_symbol(void *libcuda, const char *name)
{
    void *symbol = dlsym(libcuda, name);
    if (symbol) return symbol;
    printf("%s is missing\n", name);
    exit(2);
}

__attribute__((constructor)) static void driver_resolve(void)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!libcuda) {
        printf("%s\n", dlerror());
        exit(2);
    }
    DRIVER_FUNCTIONS(DRIVER_RESOLVE)
}
#endif

const char *driver_error(CUresult status)
{
    static __thread char text[32];
    snprintf(text, sizeof(text), status ? "error %d" : "success", status);
    return text;
}

void must_driver(CUresult status, const char *call)
{
    if (!status) return;
    printf("%s: %s\n", call, driver_error(status));
    fflush(stdout);
    _exit(2);
}

void driver_start(void)
{
    CUdevice device;
    CUcontext context;
    MUST_DRIVER(D(cuInit)(0));
    MUST_DRIVER(D(cuDeviceGet)(&device, 0));
    MUST_DRIVER(D(cuDevicePrimaryCtxRetain)(&context, device));
    MUST_DRIVER(D(cuCtxSetCurrent)(context));
}

CUfunction driver_function(const char *name)
{
    enum { CONTEXTS = 8 };
    static struct {
        CUcontext context;
        CUmodule module;
    } loaded[CONTEXTS];
    static int count;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    CUcontext context;
    CUfunction function;
    int i = 0;
    pthread_mutex_lock(&mutex);
    MUST_DRIVER(D(cuCtxGetCurrent)(&context));
    while (i < count && loaded[i].context != context) i++;
    if (i == count) {
        loaded[i = count++ % CONTEXTS].context = context;
        MUST_DRIVER(D(cuModuleLoadData)(&loaded[i].module, programs_ptx));
    }
    MUST_DRIVER(D(cuModuleGetFunction)(&function, loaded[i].module, name));
    pthread_mutex_unlock(&mutex);
    return function;
}

void driver_add(CUdeviceptr device, unsigned value, int count, CUstream stream)
{
    void *arguments[] = {&device, &value, &count};
    MUST_DRIVER(D(cuLaunchKernel)(driver_function("programs_add"), (count + 127) / 128, 1, 1, 128, 1, 1, 0, stream,
                                  arguments, NULL));
}

/* The ways to libcuda's functions, and look-ups that have nothing to do with it. */
#include "programs.h"
#include <cuda.h>
#include <dlfcn.h>

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

void *next_of_itself(void);
void *next_malloc(void);
void *next_driver(void);

static void *driver_open(void)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (libcuda) return libcuda;
    printf("no libcuda\n");
    exit(2);
}

static const char *const driver_names[] = {"cuInit",
                                           "cuDriverGetVersion",
                                           "cuGetProcAddress",
                                           "cuGetProcAddress_v2",
                                           "cuDeviceGet",
                                           "cuDeviceGetCount",
                                           "cuDeviceGetAttribute",
                                           "cuCtxCreate_v2",
                                           "cuCtxDestroy_v2",
                                           "cuCtxPushCurrent_v2",
                                           "cuCtxPopCurrent_v2",
                                           "cuCtxSynchronize",
                                           "cuCtxSetCurrent",
                                           "cuDevicePrimaryCtxRetain",
                                           "cuDevicePrimaryCtxRelease_v2",
                                           "cuDevicePrimaryCtxReset_v2",
                                           "cuModuleLoadData",
                                           "cuModuleGetFunction",
                                           "cuLaunchKernel",
                                           "cuLaunchKernelEx",
                                           "cuMemAlloc_v2",
                                           "cuMemAllocPitch_v2",
                                           "cuMemFree_v2",
                                           "cuMemHostAlloc",
                                           "cuMemFreeHost",
                                           "cuMemHostRegister_v2",
                                           "cuMemHostUnregister",
                                           "cuMemHostGetDevicePointer_v2",
                                           "cuMemAllocManaged",
                                           "cuMemAllocAsync",
                                           "cuMemFreeAsync",
                                           "cuMemcpy",
                                           "cuMemcpyHtoD_v2",
                                           "cuMemcpyDtoH_v2",
                                           "cuMemcpyDtoD_v2",
                                           "cuMemcpyHtoDAsync_v2",
                                           "cuMemcpyDtoHAsync_v2",
                                           "cuMemcpy2D_v2",
                                           "cuMemcpy2DUnaligned_v2",
                                           "cuMemcpy3D_v2",
                                           "cuMemsetD8_v2",
                                           "cuMemsetD32_v2",
                                           "cuMemsetD8Async",
                                           "cuStreamCreate",
                                           "cuStreamDestroy_v2",
                                           "cuStreamSynchronize",
                                           "cuStreamQuery",
                                           "cuEventCreate",
                                           "cuEventRecord",
                                           "cuPointerGetAttribute",
                                           "cuPointerGetAttributes",
                                           "cuMemGetAddressRange_v2",
                                           "cuMemGetInfo_v2",
                                           "cuStreamBeginCapture_v2",
                                           "cuGraphLaunch",
                                           "cuGetExportTable"};
enum { NAMES = sizeof(driver_names) / sizeof(*driver_names) };

SNIPPET(lookup_answers, "", "dlsym finds what it finds bare, and nothing more")
{
    for (int initialized = 0; initialized < 2; initialized++) {
        void *libcuda = driver_open(), *libm = dlopen("libm.so.6", RTLD_NOW), *self = dlopen(NULL, RTLD_NOW);
        int found = 0, by_default = 0, next = 0, in_libm = 0, in_self = 0;
        for (int i = 0; i < NAMES; i++) {
            found += dlsym(libcuda, driver_names[i]) != NULL;
            by_default += dlsym(RTLD_DEFAULT, driver_names[i]) != NULL;
            next += dlsym(RTLD_NEXT, driver_names[i]) != NULL;
            in_libm += dlsym(libm, driver_names[i]) != NULL;
            in_self += dlsym(self, driver_names[i]) != NULL;
        }
        expect(found == NAMES, "%d of %d in libcuda", found, NAMES);
        printf("default %d, next %d, libm %d, program %d\n", by_default, next, in_libm, in_self);
        dlerror();
        printf("unknown: %s", dlsym(libcuda, "cuNoSuchFunction") ? "found" : "null");
        const char *error = dlerror();
        printf(", %s\n", error && strstr(error, "cuNoSuchFunction") ? "said so" : "silent");
        printf("null name in libm: %s\n", dlsym(libm, "") ? "found" : "null");
        expect(dlsym(RTLD_DEFAULT, "malloc") && dlsym(RTLD_NEXT, "malloc") && dlsym(RTLD_DEFAULT, "dlsym"),
               "libc's are there");
        expect(dlsym(libm, "cos") == dlsym(libm, "cos") && dlsym(self, "main") == NULL, "others are untouched");
        dlclose(libm);
        dlclose(self);
        MUST(cudaFree(0));
    }
}

SNIPPET(lookup_next, "", "RTLD_NEXT is looked up for the caller, not for the shim")
{
    expect(next_of_itself() == NULL, "a library does not find itself");
    expect(next_malloc() != NULL, "malloc is found");
    printf("driver %s\n", next_driver() ? "found" : "null");
}

SNIPPET(lookup_stable, "", "the same answer every time, from eight threads")
{
    void *libcuda = driver_open(), *first[NAMES];
    int changed = 0;
    for (int i = 0; i < NAMES; i++) first[i] = dlsym(libcuda, driver_names[i]);
    for (int round = 0; round < 100; round++)
        for (int i = 0; i < NAMES; i++) changed += dlsym(libcuda, driver_names[i]) != first[i];
    expect(!changed, "no answer changed");
}

typedef CUresult (*get_proc_address)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

SNIPPET(proc_address, "",
        "cuGetProcAddress before cuInit, of itself, of nothing, of the unknown; and its functions work")
{
    get_proc_address ask = (get_proc_address)dlsym(driver_open(), "cuGetProcAddress_v2");
    void *function = (void *)1;
    CUdriverProcAddressQueryResult status = 99;
    CUresult result = ask("", &function, 0, 0, NULL);
    printf("nothing: %d %s\n", result, function ? "set" : "null");
    function = NULL;
    result = ask("cuGetProcAddress", &function, 13000, 0, &status);
    printf("itself: %d %s, status %d\n", result, function ? "set" : "null", status);
    get_proc_address again = (get_proc_address)function;
    function = (void *)1;
    result = again("cuNoSuchFunction", &function, 13000, 0, &status);
    printf("unknown: %d, status %d\n", result, status);
    result = again("cuMemAlloc", &function, 100000, 0, &status);
    printf("future version: %d, status %d\n", result, status);

    CUresult (*init)(unsigned), (*allocate)(CUdeviceptr *, size_t), (*release)(CUdeviceptr),
        (*retain)(CUcontext *, CUdevice);
    CUresult (*current)(CUcontext), (*upload)(CUdeviceptr, const void *, size_t),
        (*download)(void *, CUdeviceptr, size_t);
    const struct {
        const char *name;
        void *into;
        int version;
    } wanted[] = {{"cuInit", &init, 2000},
                  {"cuMemAlloc", &allocate, 3020},
                  {"cuMemFree", &release, 3020},
                  {"cuDevicePrimaryCtxRetain", &retain, 7000},
                  {"cuCtxSetCurrent", &current, 4000},
                  {"cuMemcpyHtoD", &upload, 3020},
                  {"cuMemcpyDtoH", &download, 3020}};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        result = again(wanted[i].name, &function, wanted[i].version, 0, &status);
        if (result) expect(false, "%s: %d", wanted[i].name, result);
        memcpy(wanted[i].into, &function, sizeof(function));
    }
    CUdeviceptr device = 0;
    CUcontext context;
    printf("before cuInit: %d\n", allocate(&device, 100));
    printf("%d %d %d\n", init(0), retain(&context, 0), current(context));
    char host[100] = "words", back[100] = "";
    printf("%d %d ", allocate(&device, 100), upload(device, host, 100));
    printf("%d %s %d %d\n", download(back, device, 100), back, release(device), release(device));
    MUST(cudaFree(0));
}

SNIPPET(deepbind_plugin, "",
        "memory of a plugin that has libc's malloc to itself, freed here, and small ones the other way")
{
    char self[4096], path[4200];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = 0;
    snprintf(path, sizeof(path), "%.*s/plugin.so", (int)(strrchr(self, '/') - self), self);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    if (!expect(plugin != NULL, "the plugin opens")) return;
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_allocate");
    void (*release)(void *) = (void (*)(void *))dlsym(plugin, "plugin_release");
    MUST(cudaFree(0));
    static const size_t sizes[] = {10, 5000, 200000, 8 << 20};
    for (int k = 0; k < 4; k++) {
        unsigned char *memory = allocate(sizes[k]), *device;
        MUST(cudaMalloc((void **)&device, sizes[k]));
        MUST(cudaMemcpy(device, memory, sizes[k], cudaMemcpyHostToDevice));
        memory = realloc(memory, sizes[k] * 2);
        expect(memory[0] == 8 && memory[sizes[k] - 1] == 8, "%zu bytes survive realloc", sizes[k]);
        free(memory);
        if (k < 3) release(malloc(sizes[k]));
        MUST(cudaFree(device));
    }
    dlclose(plugin);
}

extern char next_early[];

SNIPPET(early_child, "", "what a library's constructor did before the shim's own ran")
{
    printf("%s\n", next_early);
    void *device;
    MUST(cudaMalloc(&device, 100));
    MUST(cudaMemset(device, 1, 100));
    MUST(cudaFree(device));
}

SNIPPET(early_constructor, "", "a constructor that runs before every other allocates, copies and frees")
{
    setenv("PROGRAMS_EARLY", "1", 1);
    printf("exit: %d\n", run_snippet("early_child"));
}

SNIPPET(no_cuda, "", "a program that makes no CUDA call")
{
    char *block = malloc(10 << 20);
    memset(block, 1, 10 << 20);
    block = realloc(block, 30 << 20);
    printf("%d\n", block[(10 << 20) - 1]);
    free(block);
}

/* Modules, libraries and their kernels: seen so that mode `auto` can tell what a kernel may do. The calls themselves
 * are the driver's. */
#include "shim/context.h"
#include "shim/hooks/hooks.h"
#include "shim/kernels.h"

/* The current context, which modules and their functions end with. */
static CUcontext current(void)
{
    CUcontext handle = NULL;
    context_current(); /* known from now on, so that its end is seen */
    shim.real.cuCtxGetCurrent(&handle);
    return handle;
}

static CUresult loaded(CUresult result, const void *owner, const void *image, bool library)
{
    context_memory_changed(); /* a module brings its variables */
    if (result == CUDA_SUCCESS && shim.options.mode == MODE_AUTO)
        kernels_loaded(owner, image, library ? NULL : current());
    return result;
}

/* Told how to choose between machine code and PTX, or what to compile for, the driver may run other code than it would
 * by itself. */
static bool tells_what_to_run(const CUjit_option *options, unsigned count)
{
    bool tells = false;
    for (unsigned i = 0; options && i < count; i++)
        tells |= options[i] == CU_JIT_FALLBACK_STRATEGY || options[i] == CU_JIT_TARGET;
    return tells;
}

CUresult hook_cuModuleLoadData(DRIVER(cuModuleLoadData) forward, bool per_thread, CUmodule *module, const void *image)
{
    (void)per_thread;
    CUresult result = forward(module, image);
    return loaded(result, result == CUDA_SUCCESS ? *module : NULL, image, false);
}

/* Its text is in a file. */
CUresult hook_cuModuleLoad(DRIVER(cuModuleLoad) forward, bool per_thread, CUmodule *module, const char *fname)
{
    (void)per_thread;
    CUresult result = forward(module, fname);
    return loaded(result, result == CUDA_SUCCESS ? *module : NULL, NULL, false);
}

CUresult hook_cuModuleLoadDataEx(DRIVER(cuModuleLoadDataEx) forward, bool per_thread, CUmodule *module,
                                 const void *image, unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    (void)per_thread;
    CUresult result = forward(module, image, numOptions, options, optionValues);
    return loaded(result, result == CUDA_SUCCESS ? *module : NULL,
                  tells_what_to_run(options, numOptions) ? NULL : image, false);
}

CUresult hook_cuModuleLoadFatBinary(DRIVER(cuModuleLoadFatBinary) forward, bool per_thread, CUmodule *module,
                                    const void *fatCubin)
{
    (void)per_thread;
    CUresult result = forward(module, fatCubin);
    return loaded(result, result == CUDA_SUCCESS ? *module : NULL, fatCubin, false);
}

CUresult hook_cuLibraryLoadData(DRIVER(cuLibraryLoadData) forward, bool per_thread, CUlibrary *library,
                                const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
                                unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                unsigned int numLibraryOptions)
{
    (void)per_thread;
    CUresult result = forward(library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
                              libraryOptionValues, numLibraryOptions);
    return loaded(result, result == CUDA_SUCCESS ? *library : NULL,
                  tells_what_to_run(jitOptions, numJitOptions) ? NULL : code, true);
}

CUresult hook_cuLibraryLoadFromFile(DRIVER(cuLibraryLoadFromFile) forward, bool per_thread, CUlibrary *library,
                                    const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
                                    unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                    void **libraryOptionValues, unsigned int numLibraryOptions)
{
    (void)per_thread;
    CUresult result = forward(library, fileName, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
                              libraryOptionValues, numLibraryOptions);
    return loaded(result, result == CUDA_SUCCESS ? *library : NULL, NULL, true);
}

CUresult hook_cuModuleUnload(DRIVER(cuModuleUnload) forward, bool per_thread, CUmodule hmod)
{
    (void)per_thread;
    if (shim.options.mode == MODE_AUTO) kernels_unloaded(hmod);
    return forward(hmod);
}

CUresult hook_cuLibraryUnload(DRIVER(cuLibraryUnload) forward, bool per_thread, CUlibrary library)
{
    (void)per_thread;
    if (shim.options.mode == MODE_AUTO) kernels_unloaded(library);
    return forward(library);
}

CUresult hook_cuModuleGetFunction(DRIVER(cuModuleGetFunction) forward, bool per_thread, CUfunction *hfunc,
                                  CUmodule hmod, const char *name)
{
    (void)per_thread;
    CUresult result = forward(hfunc, hmod, name);
    if (result == CUDA_SUCCESS && shim.options.mode == MODE_AUTO) kernels_named(*hfunc, hmod, name, current());
    return result;
}

CUresult hook_cuLibraryGetKernel(DRIVER(cuLibraryGetKernel) forward, bool per_thread, CUkernel *pKernel,
                                 CUlibrary library, const char *name)
{
    (void)per_thread;
    CUresult result = forward(pKernel, library, name);
    if (result == CUDA_SUCCESS && shim.options.mode == MODE_AUTO) kernels_named(*pKernel, library, name, NULL);
    return result;
}

CUresult hook_cuKernelGetFunction(DRIVER(cuKernelGetFunction) forward, bool per_thread, CUfunction *pFunc,
                                  CUkernel kernel)
{
    (void)per_thread;
    CUresult result = forward(pFunc, kernel);
    if (result == CUDA_SUCCESS && shim.options.mode == MODE_AUTO) kernels_same(*pFunc, kernel, current());
    return result;
}

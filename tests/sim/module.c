/* Modules, libraries, functions and kernels. Images are not read: a kernel is what a kernel file has under its name. */
#include "kernel.h"
#include "memory.h"

#define MODULE_MAGIC  0x4d4f4430u
#define LIBRARY_MAGIC 0x4c494230u
struct CUmod_st {
    uint32_t magic;
    CUcontext context; /* NULL: a library's, for all of them */
    uint64_t context_id;
    struct CUfunc_st *functions;
};
struct CUlib_st {
    uint32_t magic;
    struct CUfunc_st *functions;
    struct CUmod_st module;
};

/* The same function every time the same name is asked for. */
static CUresult function_get(struct CUfunc_st **list, const char *name, CUmodule module, CUlibrary library,
                             CUfunction *result)
{
    void (*bind)(struct zcsim_thread *);
    if (!result || !name) return CUDA_ERROR_INVALID_VALUE;
    const struct zcsim_kernel *kernel = kernel_find(name, &bind);
    if (!kernel) return CUDA_ERROR_NOT_FOUND;
    sim_lock();
    CUfunction function = *list;
    while (function && function->kernel != kernel) function = function->next;
    if (!function) {
        function = calloc(1, sizeof *function);
        *function = (struct CUfunc_st){FUNCTION_MAGIC, kernel, bind, module, library, 0, *list};
        *list = function;
    }
    sim_unlock();
    *result = function;
    return CUDA_SUCCESS;
}

/* Returns when the device is idle. */
static CUresult module_load(CUmodule *module, const void *image)
{
    CUcontext context;
    if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) context_drain(context);
    if (!result) {
        *module = calloc(1, sizeof **module);
        **module = (struct CUmod_st){MODULE_MAGIC, context, context->id, NULL};
    }
    sim_unlock();
    return result;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    SIM_ENTER(cuModuleLoad);
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    fclose(file);
    return module_load(module, path);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    SIM_ENTER(cuModuleLoadData);
    return module_load(module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values)
{
    SIM_ENTER(cuModuleLoadDataEx);
    (void)count, (void)options, (void)values;
    return module_load(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    SIM_ENTER(cuModuleLoadFatBinary);
    return module_load(module, image);
}

bool function_is_of(CUfunction function, CUcontext context)
{
    CUmodule module = function->module;
    return module->magic == MODULE_MAGIC &&
           (!module->context || (module->context == context && module->context_id == context->id));
}

static bool module_valid(CUmodule module) { return module && module->magic == MODULE_MAGIC; }
static bool library_valid(CUlibrary library) { return library && library->magic == LIBRARY_MAGIC; }

/* Structures stay, since what was launched may still run; only the handle ends. */
CUresult cuModuleUnload(CUmodule module)
{
    SIM_ENTER(cuModuleUnload);
    if (!module_valid(module)) return CUDA_ERROR_INVALID_HANDLE;
    module->magic = 0;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    SIM_ENTER(cuModuleGetFunction);
    if (!module_valid(module)) return CUDA_ERROR_INVALID_HANDLE;
    return function_get(&module->functions, name, module, NULL, function);
}

static CUresult variable_get(CUdeviceptr *address, size_t *bytes, const char *name)
{
    size_t size = 0;
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    char *inside = kernel_variable_find(name, &size);
    if (!inside) return CUDA_ERROR_NOT_FOUND;
    CUcontext context;
    struct allocation *allocation;
    sim_lock();
    CUresult result = context_current(&context);
    if (!result) result = allocation_name(context, inside, size, &allocation);
    if (!result && address) *address = allocation->address;
    if (!result && bytes) *bytes = size;
    sim_unlock();
    return result;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    SIM_ENTER(cuModuleGetGlobal_v2);
    if (!module_valid(module)) return CUDA_ERROR_INVALID_HANDLE;
    return variable_get(address, bytes, name);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    SIM_ENTER(cuModuleGetLoadingMode);
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

static CUresult library_load(CUlibrary *library)
{
    *library = calloc(1, sizeof **library);
    (*library)->magic = LIBRARY_MAGIC;
    (*library)->module.magic = MODULE_MAGIC;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values, unsigned count,
                           CUlibraryOption *library_options, void **library_values, unsigned library_count)
{
    SIM_ENTER(cuLibraryLoadData);
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    if (!library || !code) return CUDA_ERROR_INVALID_VALUE;
    return library_load(library);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values,
                               unsigned count, CUlibraryOption *library_options, void **library_values,
                               unsigned library_count)
{
    SIM_ENTER(cuLibraryLoadFromFile);
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    FILE *file = library && path ? fopen(path, "r") : NULL;
    if (!file) return library && path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    fclose(file);
    return library_load(library);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    SIM_ENTER(cuLibraryUnload);
    if (!library_valid(library)) return CUDA_ERROR_INVALID_HANDLE;
    library->magic = 0;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    SIM_ENTER(cuLibraryGetKernel);
    if (!library_valid(library)) return CUDA_ERROR_INVALID_HANDLE;
    return function_get(&library->functions, name, &library->module, library, (CUfunction *)kernel);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    SIM_ENTER(cuLibraryGetModule);
    if (!library_valid(library)) return CUDA_ERROR_INVALID_HANDLE;
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    *module = &library->module;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    SIM_ENTER(cuLibraryGetGlobal);
    if (!library_valid(library)) return CUDA_ERROR_INVALID_HANDLE;
    return variable_get(address, bytes, name);
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
    SIM_ENTER(cuLibraryGetKernelCount);
    if (!library_valid(library)) return CUDA_ERROR_INVALID_HANDLE;
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = (unsigned)kernel_list(NULL, 0);
    return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library)
{
    SIM_ENTER(cuLibraryEnumerateKernels);
    if (!library_valid(library)) return CUDA_ERROR_INVALID_HANDLE;
    if (!kernels || !count) return CUDA_ERROR_INVALID_VALUE;
    const struct zcsim_kernel *found[count];
    size_t all = kernel_list(found, count);
    CUresult result = all > count ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (size_t i = 0; i < all && !result; i++)
        result =
            function_get(&library->functions, found[i]->name, &library->module, library, (CUfunction *)&kernels[i]);
    return result;
}

static bool function_valid(CUfunction function) { return function && function->magic == FUNCTION_MAGIC; }

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    SIM_ENTER(cuKernelGetFunction);
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    if (!function_valid((CUfunction)kernel)) return CUDA_ERROR_INVALID_HANDLE;
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    SIM_ENTER(cuKernelGetLibrary);
    if (!library) return CUDA_ERROR_INVALID_VALUE;
    if (!function_valid((CUfunction)kernel)) return CUDA_ERROR_INVALID_HANDLE;
    *library = ((CUfunction)kernel)->library;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    SIM_ENTER(cuFuncGetModule);
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    if (!function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
    *module = function->module;
    return CUDA_SUCCESS;
}

static CUresult name_get(const char **name, CUfunction function)
{
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    if (!function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
    *name = function->kernel->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    SIM_ENTER(cuFuncGetName);
    return name_get(name, function);
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    SIM_ENTER(cuKernelGetName);
    return name_get(name, (CUfunction)kernel);
}

static CUresult parameter_get(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    if (!offset) return CUDA_ERROR_INVALID_VALUE;
    if (!function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (index >= function->kernel->argument_count) return CUDA_ERROR_INVALID_VALUE;
    size_t at = 0;
    for (size_t i = 0; i <= index; i++) {
        const struct zcsim_argument *argument = &function->kernel->arguments[i];
        at = (at + argument->alignment - 1) / argument->alignment * argument->alignment;
        if (i < index) at += argument->bytes;
    }
    *offset = at;
    if (bytes) *bytes = function->kernel->arguments[index].bytes;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    SIM_ENTER(cuFuncGetParamInfo);
    return parameter_get(function, index, offset, bytes);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    SIM_ENTER(cuKernelGetParamInfo);
    return parameter_get((CUfunction)kernel, index, offset, bytes);
}

static CUresult attribute_get(int *value, CUfunction_attribute attribute, CUfunction function)
{
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (!function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = 90;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->dynamic_shared_bytes ? function->dynamic_shared_bytes : 49152;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = -1;
        break;
    default:
        *value = 0;
    }
    return CUDA_SUCCESS;
}

static CUresult attribute_set(CUfunction_attribute attribute, int value, CUfunction function)
{
    if (!function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || value > 232448) return CUDA_ERROR_INVALID_VALUE;
        function->dynamic_shared_bytes = value;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    SIM_ENTER(cuFuncGetAttribute);
    return attribute_get(value, attribute, function);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    SIM_ENTER(cuFuncSetAttribute);
    return attribute_set(attribute, value, function);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    SIM_ENTER(cuKernelGetAttribute);
    (void)device;
    return attribute_get(value, attribute, (CUfunction)kernel);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    SIM_ENTER(cuKernelSetAttribute);
    (void)device;
    return attribute_set(attribute, value, (CUfunction)kernel);
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    SIM_ENTER(cuFuncSetCacheConfig);
    (void)config;
    return function_valid(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    SIM_ENTER(cuKernelSetCacheConfig);
    (void)config, (void)device;
    return function_valid((CUfunction)kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
    SIM_ENTER(cuFuncSetSharedMemConfig);
    (void)config;
    return function_valid(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncLoad(CUfunction function)
{
    SIM_ENTER(cuFuncLoad);
    return function_valid(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    SIM_ENTER(cuFuncIsLoaded);
    if (!state || !function_valid(function)) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

static CUresult blocks_per_multiprocessor(int *blocks, CUfunction function, int block_size)
{
    if (!blocks || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (!function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
    *blocks = block_size > 1024 ? 0 : 2048 / block_size < 32 ? 2048 / block_size : 32;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_size, size_t shared)
{
    SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    (void)shared;
    return blocks_per_multiprocessor(blocks, function, block_size);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int block_size,
                                                              size_t shared, unsigned flags)
{
    SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    (void)shared, (void)flags;
    return blocks_per_multiprocessor(blocks, function, block_size);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of,
                                          size_t shared, int limit)
{
    SIM_ENTER(cuOccupancyMaxPotentialBlockSize);
    (void)shared_of, (void)shared;
    if (!grid || !block) return CUDA_ERROR_INVALID_VALUE;
    if (!function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = 132 * (2048 / *block < 32 ? 2048 / *block : 32);
    return CUDA_SUCCESS;
}

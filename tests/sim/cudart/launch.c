/* What nvcc's host code calls: registered binaries, kernels, variables, launches. */
#include "cudart.h"

struct function {
    struct function *next;
    struct binary *binary;
    const void *host;
    const char *name;
    CUkernel kernel;
    bool looked_up;
};
struct variable {
    struct variable *next;
    struct binary *binary;
    const void *host;
    const char *name;
    size_t bytes;
    CUdeviceptr own; /* device memory that stands for a variable no kernel file has */
    CUcontext own_context;
};
struct binary {
    struct binary *next;
    void *image;
    CUlibrary library;
};
struct configuration {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};
static struct binary *binaries;
static struct function *functions;
static struct variable *variables;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread struct configuration pushed[16];
static __thread unsigned pushed_count;

EXPORT void **__cudaRegisterFatBinary(void *image)
{
    struct binary *binary = calloc(1, sizeof *binary);
    binary->image = image;
    pthread_mutex_lock(&mutex);
    binary->next = binaries;
    binaries = binary;
    pthread_mutex_unlock(&mutex);
    return (void **)binary;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
EXPORT char __cudaInitModule(void **handle) { return handle != NULL; }

/* The driver may be gone by now; its memory of the library goes with the process. */
EXPORT void __cudaUnregisterFatBinary(void **handle) { (void)handle; }

EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int thread_limit,
                                   uint3 *thread, uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp_size)
{
    (void)device, (void)thread_limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp_size;
    struct function *function = calloc(1, sizeof *function);
    function->binary = (struct binary *)handle;
    function->host = host;
    function->name = name;
    pthread_mutex_lock(&mutex);
    function->next = functions;
    functions = function;
    pthread_mutex_unlock(&mutex);
}

EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes,
                              int constant, int global)
{
    (void)device, (void)external, (void)constant, (void)global;
    struct variable *variable = calloc(1, sizeof *variable);
    variable->binary = (struct binary *)handle;
    variable->host = host;
    variable->name = name;
    variable->bytes = bytes;
    pthread_mutex_lock(&mutex);
    variable->next = variables;
    variables = variable;
    pthread_mutex_unlock(&mutex);
}

EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
                                     size_t bytes, int constant, int global)
{
    (void)handle, (void)host, (void)device, (void)name, (void)external, (void)bytes, (void)constant, (void)global;
}

static cudaError_t binary_load(struct binary *binary)
{
    if (binary->library) return cudaSuccess;
    return (cudaError_t)driver->cuLibraryLoadData(&binary->library, binary->image, NULL, NULL, 0, NULL, NULL, 0);
}

static cudaError_t function_kernel(const void *host, CUkernel *kernel)
{
    cudaError_t error = driver_open();
    if (error) return error;
    pthread_mutex_lock(&mutex);
    struct function *function = functions;
    while (function && function->host != host) function = function->next;
    error = function ? cudaSuccess : cudaErrorInvalidDeviceFunction;
    if (function && !function->looked_up) {
        error = binary_load(function->binary);
        if (!error && driver->cuLibraryGetKernel(&function->kernel, function->binary->library, function->name))
            function->kernel = NULL;
        function->looked_up = !error;
    }
    if (!error && !function->kernel) error = cudaErrorInvalidDeviceFunction;
    if (!error) *kernel = function->kernel;
    pthread_mutex_unlock(&mutex);
    return error;
}

/* A host function's address, or a kernel that was asked for before. */
cudaError_t kernel_of(const void *function, CUfunction *kernel)
{
    CUkernel found;
    if (!function) return cudaErrorInvalidDeviceFunction;
    cudaError_t error = function_kernel(function, &found);
    if (error != cudaErrorInvalidDeviceFunction) {
        if (!error) *kernel = (CUfunction)found;
        return error;
    }
    pthread_mutex_lock(&mutex);
    for (struct function *each = functions; each; each = each->next)
        if (each->kernel && each->kernel == (CUkernel)function) {
            *kernel = (CUfunction)each->kernel;
            error = cudaSuccess;
        }
    pthread_mutex_unlock(&mutex);
    return error;
}

EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    return remember(function_kernel(function, (CUkernel *)kernel));
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    return remember(kernel ? function_kernel(function, (CUkernel *)kernel) : cudaErrorInvalidValue);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    return remember(function ? kernel_of(symbol, function) : cudaErrorInvalidValue);
}

cudaError_t symbol_find(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
    cudaError_t error = context_ensure();
    if (error) return error;
    pthread_mutex_lock(&mutex);
    struct variable *variable = variables;
    while (variable && variable->host != symbol) variable = variable->next;
    error = variable ? binary_load(variable->binary) : cudaErrorInvalidSymbol;
    if (!error && driver->cuLibraryGetGlobal(address, bytes, variable->binary->library, variable->name)) {
        CUcontext context = NULL;
        driver->cuCtxGetCurrent(&context);
        if (!variable->own || variable->own_context != context) {
            error = (cudaError_t)driver->cuMemAlloc(&variable->own, variable->bytes);
            variable->own_context = context;
        }
        *address = variable->own;
    }
    if (!error) *bytes = variable->bytes;
    pthread_mutex_unlock(&mutex);
    return error;
}

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void *stream)
{
    if (pushed_count == 16) return 1;
    pushed[pushed_count++] = (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    if (!pushed_count) return remember(cudaErrorMissingConfiguration);
    struct configuration *top = &pushed[--pushed_count];
    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    *(cudaStream_t *)stream = top->stream;
    return cudaSuccess;
}

static cudaError_t configuration_check(dim3 grid, dim3 block)
{
    size_t threads = (size_t)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024) return cudaErrorInvalidConfiguration;
    if (block.z > 64 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidConfiguration;
    return cudaSuccess;
}

static cudaError_t launched(CUfunction kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                            cudaStream_t stream, int per_thread, bool cooperative)
{
    cudaError_t error = context_ensure();
    if (!error && !kernel) error = cudaErrorInvalidDeviceFunction;
    if (!error) error = configuration_check(grid, block);
    if (error) return remember(error);
    struct driver *to = &driver[per_thread];
    if (cooperative)
        return remember_result(to->cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                             (unsigned)shared_bytes, stream, arguments));
    return remember_result(to->cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                              (unsigned)shared_bytes, stream, arguments, NULL));
}

EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                                      cudaStream_t stream)
{
    return launched((CUfunction)kernel, grid, block, arguments, shared_bytes, stream, 0, false);
}

EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                           size_t shared_bytes, cudaStream_t stream)
{
    return launched((CUfunction)kernel, grid, block, arguments, shared_bytes, stream, 1, false);
}

static cudaError_t launched_by_address(const void *function, dim3 grid, dim3 block, void **arguments,
                                       size_t shared_bytes, cudaStream_t stream, int per_thread, bool cooperative)
{
    CUfunction kernel;
    cudaError_t error = kernel_of(function, &kernel);
    if (error) return remember(error);
    return launched(kernel, grid, block, arguments, shared_bytes, stream, per_thread, cooperative);
}

#define LAUNCH_TWINS(name, cooperative)                                                                                \
    cudaError_t name(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,               \
                     cudaStream_t stream)                                                                              \
    {                                                                                                                  \
        return launched_by_address(function, grid, block, arguments, shared_bytes, stream, 0, cooperative);            \
    }                                                                                                                  \
    EXPORT cudaError_t name##_ptsz(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, \
                                   cudaStream_t stream)                                                                \
    {                                                                                                                  \
        return launched_by_address(function, grid, block, arguments, shared_bytes, stream, 1, cooperative);            \
    }
LAUNCH_TWINS(cudaLaunchKernel, false)
LAUNCH_TWINS(cudaLaunchCooperativeKernel, true)

static cudaError_t launched_by_config(const cudaLaunchConfig_t *config, const void *function, void **arguments,
                                      int per_thread)
{
    CUfunction kernel;
    if (!config) return remember(cudaErrorInvalidValue);
    cudaError_t error = context_ensure();
    if (!error) error = kernel_of(function, &kernel);
    if (!error) error = configuration_check(config->gridDim, config->blockDim);
    if (error) return remember(error);
    CUlaunchConfig wanted = {.gridDimX = config->gridDim.x,
                             .gridDimY = config->gridDim.y,
                             .gridDimZ = config->gridDim.z,
                             .blockDimX = config->blockDim.x,
                             .blockDimY = config->blockDim.y,
                             .blockDimZ = config->blockDim.z,
                             .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
                             .hStream = config->stream,
                             .attrs = (CUlaunchAttribute *)config->attrs,
                             .numAttrs = config->numAttrs};
    return remember_result(driver[per_thread].cuLaunchKernelEx(&wanted, kernel, arguments, NULL));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
    return launched_by_config(config, function, arguments, 0);
}

EXPORT cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
    return launched_by_config(config, function, arguments, 1);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    CUfunction kernel;
    cudaError_t error = context_ensure();
    if (!error && !attributes) error = cudaErrorInvalidValue;
    if (!error) error = kernel_of(function, &kernel);
    if (error) return remember(error);
    memset(attributes, 0, sizeof *attributes);
    driver->cuFuncGetAttribute(&attributes->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel);
    driver->cuFuncGetAttribute(&attributes->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel);
    driver->cuFuncGetAttribute(&attributes->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel);
    driver->cuFuncGetAttribute(&attributes->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel);
    driver->cuFuncGetAttribute(&attributes->maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               kernel);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    CUfunction kernel;
    cudaError_t error = context_ensure();
    if (!error) error = kernel_of(function, &kernel);
    if (error) return remember(error);
    return remember_result(driver->cuFuncSetAttribute(kernel, (CUfunction_attribute)attribute, value));
}

cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config)
{
    CUfunction kernel;
    cudaError_t error = context_ensure();
    if (!error) error = kernel_of(function, &kernel);
    return remember(error ? error : (cudaError_t)driver->cuFuncSetCacheConfig(kernel, (CUfunc_cache)config));
}

cudaError_t cudaFuncGetName(const char **name, const void *function)
{
    CUfunction kernel;
    cudaError_t error = context_ensure();
    if (!error) error = kernel_of(function, &kernel);
    return remember(error ? error : (cudaError_t)driver->cuFuncGetName(name, kernel));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size,
                                                                   size_t shared_bytes, unsigned flags)
{
    CUfunction kernel;
    cudaError_t error = context_ensure();
    if (!error) error = kernel_of(function, &kernel);
    if (error) return remember(error);
    return remember_result(
        driver->cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block_size, shared_bytes, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                          size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, 0);
}

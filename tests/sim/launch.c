/* cuLaunchKernel and its kin. */
#include "kernel.h"
#include "memory.h"

size_t kernel_arguments_bytes(const struct zcsim_kernel *kernel)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < kernel->argument_count; i++) {
        unsigned alignment = kernel->arguments[i].alignment;
        bytes = (bytes + alignment - 1) / alignment * alignment + kernel->arguments[i].bytes;
    }
    return bytes;
}

void *kernel_arguments_duplicate(const struct launch *launch)
{
    size_t bytes = kernel_arguments_bytes(launch->function->kernel);
    void *copy = malloc(bytes + 1);
    if (copy) memcpy(copy, launch->arguments, bytes);
    return copy;
}

void **kernel_argument_pointers(const struct launch *launch)
{
    const struct zcsim_kernel *kernel = launch->function->kernel;
    void **pointers = malloc((kernel->argument_count + 1) * sizeof *pointers);
    size_t offset = 0;
    for (unsigned i = 0; pointers && i < kernel->argument_count; i++) {
        unsigned alignment = kernel->arguments[i].alignment;
        offset = (offset + alignment - 1) / alignment * alignment;
        pointers[i] = (char *)launch->arguments + offset;
        offset += kernel->arguments[i].bytes;
    }
    return pointers;
}

void *kernel_arguments_pack(const struct zcsim_kernel *kernel, void **values, void **extra, CUresult *result)
{
    size_t bytes = kernel_arguments_bytes(kernel), offset = 0, given = 0;
    const void *buffer = NULL;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            given = *(size_t *)extra[1];
    }
    *result = CUDA_ERROR_INVALID_VALUE;
    if (kernel->argument_count && !values && (!buffer || given < bytes)) return NULL;
    if (values && buffer) return NULL;
    char *packed = malloc(bytes + 1);
    *result = packed ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (!packed) return NULL;
    if (buffer) {
        memcpy(packed, buffer, bytes);
        return packed;
    }
    for (unsigned i = 0; i < kernel->argument_count; i++) {
        unsigned alignment = kernel->arguments[i].alignment;
        offset = (offset + alignment - 1) / alignment * alignment;
        memcpy(packed + offset, values[i], kernel->arguments[i].bytes);
        offset += kernel->arguments[i].bytes;
    }
    return packed;
}

CUresult launch_check(const struct launch *launch)
{
    CUfunction function = launch->function;
    if (!function || function->magic != FUNCTION_MAGIC) return CUDA_ERROR_INVALID_HANDLE;
    size_t threads = (size_t)launch->block[0] * launch->block[1] * launch->block[2];
    for (int i = 0; i < 3; i++)
        if (!launch->grid[i] || !launch->block[i]) return CUDA_ERROR_INVALID_VALUE;
    if (launch->grid[0] > 2147483647u || launch->grid[1] > 65535 || launch->grid[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > 1024 || launch->block[2] > 64) return CUDA_ERROR_INVALID_VALUE;
    int shared_limit = function->dynamic_shared_bytes > 49152 ? function->dynamic_shared_bytes : 49152;
    return (int)launch->shared_bytes > shared_limit ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult launched(struct launch launch, CUstream handle, void **values, void **extra, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result) result = launch_check(&launch);
    if (!result && !function_is_of(launch.function, stream->context)) result = CUDA_ERROR_INVALID_HANDLE;
    if (!result) launch.arguments = kernel_arguments_pack(launch.function->kernel, values, extra, &result);
    struct work work = {.kind = WORK_LAUNCH, .launch = launch};
    if (!result) result = stream_accept(stream, &work);
    sim_unlock();
    return result;
}

#define LAUNCH_PARAMETERS                                                                                              \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,       \
     unsigned block_z, unsigned shared_bytes, CUstream stream, void **values, void **extra)
#define LAUNCH                                                                                                         \
    ((struct launch){.function = function,                                                                             \
                     .grid = {grid_x, grid_y, grid_z},                                                                 \
                     .block = {block_x, block_y, block_z},                                                             \
                     .shared_bytes = shared_bytes})

CUresult cuLaunchKernel LAUNCH_PARAMETERS
{
    SIM_ENTER(cuLaunchKernel);
    return launched(LAUNCH, stream, values, extra, false);
}

CUresult cuLaunchKernel_ptsz LAUNCH_PARAMETERS
{
    SIM_ENTER(cuLaunchKernel_ptsz);
    return launched(LAUNCH, stream, values, extra, true);
}

static CUresult launched_by_config(const CUlaunchConfig *config, CUfunction function, void **values, void **extra,
                                   bool per_thread)
{
    if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
    return launched((struct launch){.function = function,
                                    .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                                    .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                                    .shared_bytes = config->sharedMemBytes},
                    config->hStream, values, extra, per_thread);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **values, void **extra)
{
    SIM_ENTER(cuLaunchKernelEx);
    return launched_by_config(config, function, values, extra, false);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **values, void **extra)
{
    SIM_ENTER(cuLaunchKernelEx_ptsz);
    return launched_by_config(config, function, values, extra, true);
}

#define COOPERATIVE_PARAMETERS                                                                                         \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,       \
     unsigned block_z, unsigned shared_bytes, CUstream stream, void **values)

CUresult cuLaunchCooperativeKernel COOPERATIVE_PARAMETERS
{
    SIM_ENTER(cuLaunchCooperativeKernel);
    return launched(LAUNCH, stream, values, NULL, false);
}

CUresult cuLaunchCooperativeKernel_ptsz COOPERATIVE_PARAMETERS
{
    SIM_ENTER(cuLaunchCooperativeKernel_ptsz);
    return launched(LAUNCH, stream, values, NULL, true);
}

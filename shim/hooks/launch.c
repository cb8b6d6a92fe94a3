/* Launches: work for the GPU that may touch any buffer, and what the policy wants to know of a loop. */
#include "shim/context.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/launch.h"
#include "shim/lend.h"
#include "shim/placement.h"

#define LAUNCH(launch, kernel, forward_call)                                                                           \
    do {                                                                                                               \
        struct lend_work work = {.launch = kernel};                                                                    \
        placement_launch(&launch);                                                                                     \
        lend_gate_enter(&work);                                                                                        \
        CUresult result = forward_call;                                                                                \
        context_note(result);                                                                                          \
        gate_leave_submitted();                                                                                        \
        return result;                                                                                                 \
    } while (0)

static uint64_t thread_count(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz)
{
    return (uint64_t)gx * gy * gz * bx * by * bz;
}

CUresult hook_cuLaunchKernel(DRIVER(cuLaunchKernel) forward, bool per_thread, CUfunction f, unsigned int gridDimX,
                             unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
                             unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
                             CUstream hStream, void **kernelParams, void **extra)
{
    (void)per_thread;
    const struct launch launch = {f, thread_count(gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ),
                                  kernelParams, extra};
    LAUNCH(launch, &launch,
           forward(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
                   kernelParams, extra));
}

CUresult hook_cuLaunchCooperativeKernel(DRIVER(cuLaunchCooperativeKernel) forward, bool per_thread, CUfunction f,
                                        unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams)
{
    (void)per_thread;
    const struct launch launch = {f, thread_count(gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ),
                                  kernelParams, NULL};
    LAUNCH(launch, &launch,
           forward(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
                   kernelParams));
}

CUresult hook_cuLaunchKernelEx(DRIVER(cuLaunchKernelEx) forward, bool per_thread, const CUlaunchConfig *config,
                               CUfunction f, void **kernelParams, void **extra)
{
    (void)per_thread;
    uint64_t threads = !config ? 0
                               : thread_count(config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                                              config->blockDimY, config->blockDimZ);
    const struct launch launch = {f, threads, kernelParams, extra};
    LAUNCH(launch, &launch, forward(config, f, kernelParams, extra));
}

/* Of these the arguments are set by other calls, or are those of several devices. */
static struct launch unseen(CUfunction function) { return (struct launch){function, UINT64_MAX, NULL, NULL}; }

CUresult hook_cuLaunchCooperativeKernelMultiDevice(DRIVER(cuLaunchCooperativeKernelMultiDevice) forward,
                                                   bool per_thread, CUDA_LAUNCH_PARAMS *launchParamsList,
                                                   unsigned int numDevices, unsigned int flags)
{
    (void)per_thread;
    const struct launch launch = unseen(launchParamsList && numDevices ? launchParamsList->function : NULL);
    LAUNCH(launch, NULL, forward(launchParamsList, numDevices, flags));
}

CUresult hook_cuLaunch(DRIVER(cuLaunch) forward, bool per_thread, CUfunction f)
{
    (void)per_thread;
    const struct launch launch = unseen(f);
    LAUNCH(launch, NULL, forward(f));
}

CUresult hook_cuLaunchGrid(DRIVER(cuLaunchGrid) forward, bool per_thread, CUfunction f, int grid_width, int grid_height)
{
    (void)per_thread;
    const struct launch launch = unseen(f);
    LAUNCH(launch, NULL, forward(f, grid_width, grid_height));
}

CUresult hook_cuLaunchGridAsync(DRIVER(cuLaunchGridAsync) forward, bool per_thread, CUfunction f, int grid_width,
                                int grid_height, CUstream hStream)
{
    (void)per_thread;
    const struct launch launch = unseen(f);
    LAUNCH(launch, NULL, forward(f, grid_width, grid_height, hStream));
}

CUresult hook_cuGraphLaunch(DRIVER(cuGraphLaunch) forward, bool per_thread, CUgraphExec hGraphExec, CUstream hStream)
{
    (void)per_thread;
    const struct launch launch = {hGraphExec, 1, NULL, NULL};
    LAUNCH(launch, NULL, forward(hGraphExec, hStream));
}

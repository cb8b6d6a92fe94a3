#include "shim/kernel.h"
#include "shim/report.h"
#include "shim/shim.h"

#define EMBED(name, path)                                                                                              \
    __asm__(".section .rodata\n.balign 16\n.globl " #name "\n.hidden " #name "\n" #name ":\n"                          \
            ".incbin \"" path "\"\n.byte 0\n.previous\n");                                                             \
    extern const char name[]
EMBED(copy_kernel_code, COPY_KERNELS ".fatbin");
EMBED(copy_kernel_ptx, COPY_KERNELS ".ptx");

void kernel_load(struct context *context)
{
    if (context->kernel_tried) return;
    context->kernel_tried = true;
    CUmodule module;
    CUfunction function;
    /* The driver compiles the text for a device, or in a driver, that the machine code is not for. */
    CUresult result = shim.real.cuModuleLoadData(&module, copy_kernel_code);
    if (result != CUDA_SUCCESS) result = shim.real.cuModuleLoadData(&module, copy_kernel_ptx);
    if (result == CUDA_SUCCESS) result = shim.real.cuModuleGetFunction(&function, module, "zc_copy");
    /* With lazy loading the code would else be loaded by the first launch, which may wait for running work. */
    if (result == CUDA_SUCCESS && shim.real.cuFuncLoad) result = shim.real.cuFuncLoad(function);
    if (result != CUDA_SUCCESS) {
        report_note("the copy kernel could not be loaded (CUDA error %d): small buffers stay on the device",
                    (int)result);
        return;
    }
    context->module = module;
    __atomic_store_n(&context->copy_kernel, function, __ATOMIC_RELEASE);
}

CUresult kernel_copy(struct context *context, const struct copy_request *request, CUdeviceptr host, CUstream stream)
{
    bool to_device = request->direction == COPY_H2D;
    CUdeviceptr to = to_device ? request->device : host, from = to_device ? host : request->device;
    unsigned long long width = request->width, height = request->height, depth = request->depth;
    unsigned long long to_pitch = to_device ? request->device_pitch : request->host_pitch;
    unsigned long long from_pitch = to_device ? request->host_pitch : request->device_pitch;
    unsigned long long to_slice = to_device ? request->device_slice : request->host_slice;
    unsigned long long from_slice = to_device ? request->host_slice : request->device_slice;
    void *parameters[] = {&to, &from, &width, &height, &depth, &to_pitch, &from_pitch, &to_slice, &from_slice};
    unsigned long long threads = (width * height * depth + 15) / 16;
    unsigned blocks = threads > 32 * 256 ? 32 : (unsigned)((threads + 255) / 256);
    STAT_ADD(copies_by_kernel, 1);
    return shim.real.cuLaunchKernel(context->copy_kernel, blocks, 1, 1,
                                    threads < 256 ? (unsigned)(threads + 31) / 32 * 32 : 256, 1, 1, 0, stream,
                                    parameters, NULL);
}

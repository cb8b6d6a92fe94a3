/* How a program reaches the driver's functions. */
#include <dlfcn.h>
#include <stdio.h>
#include "conformance.h"

static bool exported(const char *name, const void *function)
{
    static const char *const endings[] = {"",      "_v2",      "_v3",      "_v4",     "_ptds",
                                          "_ptsz", "_v2_ptds", "_v2_ptsz", "_v3_ptsz"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char symbol[128];
        snprintf(symbol, sizeof symbol, "%s%s", name, endings[i]);
        if (dlsym(d.library, symbol) == function) return true;
    }
    return false;
}

void routes(void)
{
    static const struct {
        const char *name;
        int version, flags;
    } asked[] = {
#define X(name, version, flags) {#name, version, flags},
#include "names.def"
#undef X
    };
    if (question("what cudart asks for and gets, but not as an exported symbol")) {
        int different = 0;
        for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
            void *function = driver_function(asked[i].name, asked[i].version, (uint64_t)asked[i].flags);
            if (function && !exported(asked[i].name, function)) different++;
        }
        answer("%d", different);
    }
    static const struct {
        const char *name;
        int version;
        uint64_t flags;
        const char *symbol;
    } known[] = {
        {"cuInit", 2000, 0, "cuInit"},
        {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
        {"cuMemFree", 3020, 0, "cuMemFree_v2"},
        {"cuMemcpyHtoD", 7000, 0, "cuMemcpyHtoD_v2"},
        {"cuMemcpyHtoD", 3020, 0, "cuMemcpyHtoD_v2"},
        {"cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds"},
        {"cuMemcpyDtoH", 7000, 2, "cuMemcpyDtoH_v2_ptds"},
        {"cuMemcpyHtoDAsync", 7000, 2, "cuMemcpyHtoDAsync_v2_ptsz"},
        {"cuMemcpy", 7000, 2, "cuMemcpy_ptds"},
        {"cuMemcpy2DUnaligned", 7000, 0, "cuMemcpy2DUnaligned_v2"},
        {"cuMemsetD8", 7000, 2, "cuMemsetD8_v2_ptds"},
        {"cuLaunchKernel", 7000, 0, "cuLaunchKernel"},
        {"cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz"},
        {"cuLaunchKernelEx", 11060, 2, "cuLaunchKernelEx_ptsz"},
        {"cuMemHostRegister", 6050, 0, "cuMemHostRegister_v2"},
        {"cuMemHostAlloc", 2020, 0, "cuMemHostAlloc"},
        {"cuMemFreeHost", 2000, 0, "cuMemFreeHost"},
        {"cuPointerGetAttributes", 7000, 0, "cuPointerGetAttributes"},
        {"cuMemAllocPitch", 3020, 0, "cuMemAllocPitch_v2"},
        {"cuMemGetInfo", 3020, 0, "cuMemGetInfo_v2"},
        {"cuStreamSynchronize", 7000, 2, "cuStreamSynchronize_ptsz"},
        {"cuStreamBeginCapture", 10010, 0, "cuStreamBeginCapture_v2"},
        {"cuMemFreeAsync", 11020, 0, "cuMemFreeAsync"},
        {"cuMemFreeAsync", 11020, 2, "cuMemFreeAsync_ptsz"},
        {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
        {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
        {"cuGetExportTable", 3000, 0, "cuGetExportTable"},
        {"cuCtxSynchronize", 2000, 0, "cuCtxSynchronize"},
        {"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2"},
        {"cuMemAdvise", 8000, 0, "cuMemAdvise"},
        {"cuMemAdvise", 12020, 0, "cuMemAdvise_v2"},
        {"cuMemPrefetchAsync", 12020, 2, "cuMemPrefetchAsync_v2_ptsz"},
        {"cuMemcpyBatchAsync", 12080, 0, "cuMemcpyBatchAsync"},
        {"cuMemcpyBatchAsync", 13000, 0, "cuMemcpyBatchAsync_v2"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!question("%s@%d/%d is the exported %s", known[i].name, known[i].version, (int)known[i].flags,
                      known[i].symbol)) {
            continue;
        }
        void *got = driver_function(known[i].name, known[i].version, known[i].flags);
        void *symbol = dlsym(d.library, known[i].symbol);
        answer("%s", !symbol ? "no such export" : !got ? "no answer" : got == symbol ? "yes" : "no");
    }
    if (question("empty name, version 0")) {
        void *function = (void *)1;
        CUresult code = d.get_proc_address("", &function, 0, 0, NULL);
        answer("%s, pointer %s", error_name(code), function == (void *)1 ? "untouched" : function ? "set" : "NULL");
    }
    if (question("unknown name")) {
        void *function = (void *)1;
        CUdriverProcAddressQueryResult status = 77;
        CUresult code = d.get_proc_address("cuNoSuchFunction", &function, 13000, 0, &status);
        answer("%s, pointer %s, status %d", error_name(code),
               function == (void *)1 ? "untouched"
               : function            ? "set"
                                     : "NULL",
               (int)status);
    }
    if (question("known name, version too old")) {
        void *function = (void *)1;
        CUdriverProcAddressQueryResult status = 77;
        CUresult code = d.get_proc_address("cuMemFreeAsync", &function, 10000, 0, &status);
        answer("%s, pointer %s, status %d", error_name(code),
               function == (void *)1 ? "untouched"
               : function            ? "set"
                                     : "NULL",
               (int)status);
    }
    if (question("known name, status")) {
        void *function = NULL;
        CUdriverProcAddressQueryResult status = 77;
        CUresult code = d.get_proc_address("cuMemAlloc", &function, 13000, 0, &status);
        answer("%s, pointer %s, status %d", error_name(code), function ? "set" : "NULL", (int)status);
    }
    if (question("cuGetProcAddress asked for itself works")) {
        __typeof__(d.get_proc_address) again = (__typeof__(again))driver_function("cuGetProcAddress", 12000, 0);
        void *function = NULL;
        CUresult code = again ? again("cuMemAlloc", &function, 13000, 0, NULL) : CUDA_ERROR_NOT_FOUND;
        answer("%s, same pointer %s", error_name(code), function == (void *)d.cuMemAlloc ? "yes" : "no");
    }
    if (question("cu name by RTLD_DEFAULT without a linked libcuda")) {
        answer("%s", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") ? "found" : "NULL");
    }
    if (question("cu name by RTLD_NEXT without a linked libcuda")) {
        answer("%s", dlsym(RTLD_NEXT, "cuMemAlloc_v2") ? "found" : "NULL");
    }
    if (question("cu name on the program's handle without a linked libcuda")) {
        void *self = dlopen(NULL, RTLD_NOW);
        answer("%s", dlsym(self, "cuMemAlloc_v2") ? "found" : "NULL");
    }
    if (question("cuMemAlloc before cuInit")) {
        CUdeviceptr device = 7;
        CUresult code = d.cuMemAlloc(&device, 256);
        answer("%s, output %s", error_name(code), device == 7 ? "untouched" : "touched");
    }
    ASK(d.cuMemFree(0), "cuMemFree of NULL before cuInit");
    ASK(d.cuMemFree(0x1000), "cuMemFree before cuInit");
    ASK(d.cuMemcpyHtoD(0x1000, known, 4), "cuMemcpyHtoD before cuInit");
    ASK(d.cuMemFreeHost((void *)0x1000), "cuMemFreeHost before cuInit");
    ASK(d.cuStreamSynchronize(NULL), "cuStreamSynchronize before cuInit");
    ASK(d.cuCtxSynchronize(), "cuCtxSynchronize before cuInit");
    if (question("cuInit")) answer("%s", error_name(d.cuInit(0)));
}

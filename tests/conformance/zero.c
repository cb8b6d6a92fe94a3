/* Nothing to do: sizes of 0, absurd sizes, contexts that are missing or others. */
#include <pthread.h>
#include "operations.h"

#define WILD      ((CUdeviceptr)0x123456789000ull)
#define WILD_HOST ((void *)0x123456789000ull)

void answers_zero(void)
{
    struct operands on;
    operands_new(&on, 256, NULL);
    CUstream stream;
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    static const size_t sizes[] = {0, 1, 255, 1ull << 40, 1ull << 46, 1ull << 62, SIZE_MAX, SIZE_MAX - 511};
    static const char *const names[] = {"0", "1", "255", "2^40", "2^46", "2^62", "2^64-1", "2^64-512"};
    for (int i = 0; i < 8; i++) {
        if (!question("cuMemAlloc of %s bytes", names[i])) continue;
        CUdeviceptr device = 7;
        CUresult code = d.cuMemAlloc(&device, sizes[i]);
        answer("%s, output %s", error_name(code), device == 7 ? "untouched" : device ? "set" : "0");
        if (!code) d.cuMemFree(device);
    }
    ASK(d.cuMemAlloc(NULL, 256), "cuMemAlloc with NULL output");
    ASK(d.cuMemAlloc(NULL, 0), "cuMemAlloc with NULL output of 0 bytes");
    if (question("cuMemAlloc alignment of 1 byte buffers")) {
        bool aligned_256 = true, aligned_512 = true;
        for (int i = 0; i < 16; i++) {
            CUdeviceptr device;
            MUST(d.cuMemAlloc(&device, 1));
            aligned_256 = aligned_256 && device % 256 == 0;
            aligned_512 = aligned_512 && device % 512 == 0;
        }
        answer("256 %s, 512 %s", aligned_256 ? "yes" : "no", aligned_512 ? "yes" : "no");
    }
    if (question("cuMemAllocPitch of 0 x 0")) {
        CUdeviceptr device = 7;
        size_t pitch = 7;
        CUresult code = d.cuMemAllocPitch(&device, &pitch, 0, 0, 4);
        answer("%s, output %s, pitch %zu", error_name(code), device == 7 ? "untouched" : device ? "set" : "0", pitch);
    }
    if (question("cuMemAllocPitch of 100 x 10")) {
        CUdeviceptr device = 7;
        size_t pitch = 7;
        CUresult code = d.cuMemAllocPitch(&device, &pitch, 100, 10, 4);
        answer("%s, pitch %zu", error_name(code), pitch);
        d.cuMemFree(device);
    }
    if (question("cuMemAllocPitch with element size 3")) {
        CUdeviceptr device = 7;
        size_t pitch = 7;
        CUresult code = d.cuMemAllocPitch(&device, &pitch, 100, 10, 3);
        answer("%s, pitch %zu", error_name(code), pitch);
    }
    if (question("cuMemHostAlloc of 0 bytes")) {
        void *host = (void *)7;
        CUresult code = d.cuMemHostAlloc(&host, 0, 0);
        answer("%s, output %s", error_name(code), host == (void *)7 ? "untouched" : host ? "set" : "NULL");
    }
    ASK(d.cuMemHostRegister(on.pageable, 0, 0), "cuMemHostRegister of 0 bytes");
    ASK(d.cuMemAllocAsync(&on.other, 0, stream), "cuMemAllocAsync of 0 bytes");
    ASK(d.cuMemcpyHtoD(on.device, on.pageable, 0), "HtoD of 0 bytes");
    ASK(d.cuMemcpyHtoD(WILD, WILD_HOST, 0), "HtoD of 0 bytes, wild pointers");
    ASK(d.cuMemcpyHtoD(0, NULL, 0), "HtoD of 0 bytes, NULL pointers");
    ASK(d.cuMemcpyHtoD(on.device, NULL, 0), "HtoD of 0 bytes, NULL source");
    ASK(d.cuMemcpyDtoH(WILD_HOST, WILD, 0), "DtoH of 0 bytes, wild pointers");
    ASK(d.cuMemcpyDtoH(NULL, 0, 0), "DtoH of 0 bytes, NULL pointers");
    ASK(d.cuMemcpyDtoD(WILD, WILD, 0), "DtoD of 0 bytes, wild pointers");
    ASK(d.cuMemcpy(WILD, WILD, 0), "cuMemcpy of 0 bytes, wild pointers");
    ASK(d.cuMemcpyPeer(WILD, fix.context, WILD, fix.context, 0), "cuMemcpyPeer of 0 bytes, wild pointers");
    ASK(d.cuMemcpyHtoDAsync(WILD, WILD_HOST, 0, stream), "HtoDAsync of 0 bytes, wild pointers");
    ASK(d.cuMemcpyDtoHAsync(WILD_HOST, WILD, 0, stream), "DtoHAsync of 0 bytes, wild pointers");
    ASK(d.cuMemcpyDtoDAsync(WILD, WILD, 0, stream), "DtoDAsync of 0 bytes, wild pointers");
    ASK(d.cuMemcpyAsync(WILD, WILD, 0, stream), "cuMemcpyAsync of 0 bytes, wild pointers");
    ASK(d.cuMemcpyHtoD_ptds(WILD, WILD_HOST, 0), "HtoD_ptds of 0 bytes, wild pointers");
    ASK(d.cuMemsetD8(WILD, 1, 0), "MemsetD8 of 0 bytes, wild pointer");
    ASK(d.cuMemsetD8(0, 1, 0), "MemsetD8 of 0 bytes, NULL");
    ASK(d.cuMemsetD8(on.device, 1, 0), "MemsetD8 of 0 bytes");
    ASK(d.cuMemsetD32(on.device + 1, 1, 4), "MemsetD32 misaligned");
    ASK(d.cuMemsetD16(on.device + 1, 1, 4), "MemsetD16 misaligned");
    ASK(d.cuMemsetD32Async(on.device + 2, 1, 4, stream), "MemsetD32Async misaligned");
    ASK(d.cuMemsetD32(on.device + 1, 1, 0), "MemsetD32 misaligned of 0");
    ASK(d.cuMemsetD8Async(WILD, 1, 0, stream), "MemsetD8Async of 0 bytes, wild pointer");
    ASK(d.cuMemsetD2D8(WILD, 16, 1, 0, 4), "MemsetD2D8 of width 0, wild pointer");
    ASK(d.cuMemsetD2D8(on.device, 4, 1, 8, 4), "MemsetD2D8 with a pitch below the width");
    ASK(d.cuMemsetD2D8(on.device, 0, 1, 8, 1), "MemsetD2D8 of one row with pitch 0");
    if (question("2D of 0 x 4, wild pointers")) {
        CUDA_MEMCPY2D copy = copy2d_host_to_device(&on, WILD_HOST);
        copy.dstDevice = WILD;
        copy.WidthInBytes = 0;
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    if (question("2D of 8 x 0, wild pointers")) {
        CUDA_MEMCPY2D copy = copy2d_host_to_device(&on, WILD_HOST);
        copy.dstDevice = WILD;
        copy.Height = 0;
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    if (question("2D with a pitch below the width")) {
        CUDA_MEMCPY2D copy = copy2d_host_to_device(&on, on.pageable);
        copy.dstPitch = 4;
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    if (question("2D with pitches 0 and one row")) {
        CUDA_MEMCPY2D copy = copy2d_host_to_device(&on, on.pageable);
        copy.dstPitch = copy.srcPitch = 0;
        copy.Height = 1;
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    if (question("2D with pitches 0 and two rows")) {
        CUDA_MEMCPY2D copy = copy2d_host_to_device(&on, on.pageable);
        copy.dstPitch = copy.srcPitch = 0;
        copy.Height = 2;
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    if (question("2D with memory type UNIFIED")) {
        CUDA_MEMCPY2D copy = copy2d_device_to_device(&on);
        copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    if (question("2D UNIFIED from pageable memory")) {
        CUDA_MEMCPY2D copy = copy2d_device_to_device(&on);
        copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        copy.srcDevice = (CUdeviceptr)(uintptr_t)on.pageable;
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    if (question("2D of type 0")) {
        CUDA_MEMCPY2D copy = copy2d_host_to_device(&on, on.pageable);
        copy.srcMemoryType = 0;
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    ASK(d.cuMemcpyHtoD(on.device, on.pageable, 1ull << 40), "HtoD of 2^40 bytes");
    ASK(d.cuMemcpyDtoH(on.pageable, on.device, 1ull << 40), "DtoH of 2^40 bytes");
    ASK(d.cuMemsetD8(on.device, 1, 1ull << 40), "MemsetD8 of 2^40 bytes");
    ASK(d.cuMemcpyHtoD(on.device, on.pageable, SIZE_MAX), "HtoD of 2^64-1 bytes");
    if (question("cuMemGetInfo sees 64 MiB come and go")) {
        bool less = false, back = false;
        for (int i = 0; i < 20 && !(less && back); i++) { /* other processes use the device, too */
            size_t before, during, after, all;
            CUdeviceptr large;
            MUST(d.cuMemGetInfo(&before, &all));
            MUST(d.cuMemAlloc(&large, 64 << 20));
            MUST(d.cuMemGetInfo(&during, &all));
            MUST(d.cuMemFree(large));
            MUST(d.cuMemGetInfo(&after, &all));
            less = before - during == 64 << 20;
            back = after == before;
        }
        answer("%s, %s", less ? "64 MiB less" : "other", back ? "as before" : "other");
    }
    ASK(d.cuMemGetInfo(NULL, NULL), "cuMemGetInfo with NULL outputs");
}

/* ------------------------------------------------------------------------------------------------ contexts */

static void *without_context(void *function) { return (void *)(intptr_t)(*(CUresult(**)(void))function)(); }

static struct operands at;
static CUdeviceptr fresh;
#define CALL(function, expression)                                                                                     \
    static CUresult function(void) { return expression; }
CALL(call_alloc, d.cuMemAlloc(&fresh, 256))
CALL(call_free, d.cuMemFree(at.device))
CALL(call_free_null, d.cuMemFree(0))
CALL(call_htod, d.cuMemcpyHtoD(at.device, at.pageable, 64))
CALL(call_dtoh, d.cuMemcpyDtoH(at.pageable, at.device, 64))
CALL(call_htod_zero, d.cuMemcpyHtoD(at.device, at.pageable, 0))
CALL(call_dtod, d.cuMemcpyDtoD(at.other, at.device, 64))
CALL(call_any, d.cuMemcpy(at.other, at.device, 64))
CALL(call_peer, d.cuMemcpyPeer(at.other, fix.context, at.device, fix.context, 64))
CALL(call_htod_async, d.cuMemcpyHtoDAsync(at.device, at.pageable, 64, at.stream))
CALL(call_htod_async_null, d.cuMemcpyHtoDAsync(at.device, at.pageable, 64, NULL))
CALL(call_htod_ptds, d.cuMemcpyHtoD_ptds(at.device, at.pageable, 64))
CALL(call_set, d.cuMemsetD8(at.device, 1, 64))
CALL(call_set_async, d.cuMemsetD8Async(at.device, 1, 64, at.stream))
CALL(call_free_async, d.cuMemFreeAsync(at.device, at.stream))
CALL(call_free_host, d.cuMemFreeHost(at.pinned))
CALL(call_unregister, d.cuMemHostUnregister(at.pageable))
CALL(call_register, d.cuMemHostRegister(pages_new(4096), 4096, 0))
CALL(call_range, ({
         size_t bytes;
         d.cuMemGetAddressRange(&fresh, &bytes, at.device);
     }))
CALL(call_attribute, ({
         unsigned type;
         d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at.device);
     }))
CALL(call_device_pointer, ({
         CUdeviceptr p;
         d.cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at.device);
     }))
CALL(call_ipc, ({
         CUipcMemHandle handle;
         d.cuIpcGetMemHandle(&handle, at.device);
     }))
CALL(call_info, ({
         size_t a, b;
         d.cuMemGetInfo(&a, &b);
     }))
CALL(call_query, (d.cuCtxSynchronize(), d.cuStreamQuery(NULL))) /* what the calls before left behind has ended */
CALL(call_sync, d.cuStreamSynchronize(NULL))
CALL(call_ctx_sync, d.cuCtxSynchronize())
CALL(call_host_alloc, ({
         void *p;
         d.cuMemHostAlloc(&p, 4096, 0);
     }))
CALL(call_map_pointer, d.cuMemHostGetDevicePointer(&fresh, at.pinned, 0))

static const struct {
    const char *name;
    CUresult (*run)(void);
} context_calls[] = {
    {"cuMemAlloc", call_alloc},
    {"cuMemFree", call_free},
    {"cuMemFree of NULL", call_free_null},
    {"HtoD", call_htod},
    {"DtoH", call_dtoh},
    {"HtoD of 0 bytes", call_htod_zero},
    {"DtoD", call_dtod},
    {"cuMemcpy", call_any},
    {"cuMemcpyPeer", call_peer},
    {"HtoDAsync", call_htod_async},
    {"HtoDAsync in the NULL stream", call_htod_async_null},
    {"HtoD_ptds", call_htod_ptds},
    {"MemsetD8", call_set},
    {"MemsetD8Async", call_set_async},
    {"cuMemFreeAsync", call_free_async},
    {"cuMemFreeHost", call_free_host},
    {"cuMemHostUnregister of pageable", call_unregister},
    {"cuMemHostRegister", call_register},
    {"cuMemGetAddressRange", call_range},
    {"MEMORY_TYPE", call_attribute},
    {"DEVICE_POINTER", call_device_pointer},
    {"cuIpcGetMemHandle", call_ipc},
    {"cuMemGetInfo", call_info},
    {"cuStreamQuery of NULL", call_query},
    {"cuStreamSynchronize of NULL", call_sync},
    {"cuCtxSynchronize", call_ctx_sync},
    {"cuMemHostAlloc", call_host_alloc},
    {"cuMemHostGetDevicePointer", call_map_pointer},
};

/* The calls where no context is current, and where another one is. */
void answers_context(void)
{
    for (size_t i = 0; i < sizeof context_calls / sizeof *context_calls; i++) {
        if (!question("%s, no context current", context_calls[i].name)) continue;
        operands_new(&at, 256, NULL);
        MUST(d.cuStreamCreate(&at.stream, CU_STREAM_NON_BLOCKING));
        pthread_t thread;
        void *code = NULL;
        pthread_create(&thread, NULL, without_context, (void *)&context_calls[i].run);
        pthread_join(thread, &code);
        answer("%s", error_name((CUresult)(intptr_t)code));
    }
    CUcontext other = NULL;
    CUresult created = d.cuCtxCreate(&other, NULL, 0, fix.device);
    d.cuCtxSetCurrent(fix.context);
    ASK(created, "cuCtxCreate");
    if (created) return;
    for (size_t i = 0; i < sizeof context_calls / sizeof *context_calls; i++) {
        if (!question("%s, another context current", context_calls[i].name)) continue;
        operands_new(&at, 256, NULL);
        MUST(d.cuStreamCreate(&at.stream, CU_STREAM_NON_BLOCKING));
        MUST(d.cuCtxSetCurrent(other));
        CUresult code = context_calls[i].run();
        MUST(d.cuCtxSetCurrent(fix.context));
        answer("%s", error_name(code));
    }
    if (question("buffer of a destroyed context, attribute and free")) {
        MUST(d.cuCtxSetCurrent(other));
        CUdeviceptr device;
        unsigned type = 77;
        MUST(d.cuMemAlloc(&device, 256));
        MUST(d.cuCtxDestroy(other));
        MUST(d.cuCtxSetCurrent(fix.context));
        CUresult code = d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device);
        answer("%s, %s", error_name(code), error_name(d.cuMemFree(device)));
    }
}

/* Reset and release of the primary context: each question ends with a context that is not the fixture's. */
void reset(void)
{
    CUdeviceptr address = 0, device = 0, again = 0;
    int *host = NULL;
    CUstream stream;
    struct operands on;
    static const char *const ways[] = {"cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxRelease to zero"};
    for (int way = 0; way < 2; way++) {
        static const char *const asked[] = {"registration",          "reservation", "buffer attribute",
                                            "buffer free",           "pinned free", "copy without retain",
                                            "copy after retain",     "stream",      "alloc after retain",
                                            "register after retain", "old data"};
        for (int i = 0; i < 11; i++) {
            if (!question("%s, %s", ways[way], asked[i])) continue;
            host = registered_new(2 << 20, &address);
            operands_new(&on, 256, NULL);
            device = on.device;
            MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
            MUST(way == 0 ? d.cuDevicePrimaryCtxReset(fix.device) : d.cuDevicePrimaryCtxRelease(fix.device));
            CUcontext context = NULL;
            CUresult code = CUDA_SUCCESS;
            unsigned type = 77;
            if (i != 5) {
                MUST(d.cuDevicePrimaryCtxRetain(&context, fix.device));
                MUST(d.cuCtxSetCurrent(context));
            }
            switch (i) {
            case 0:
                code = d.cuMemHostUnregister(host);
                break;
            case 1:
                code = d.cuMemAddressFree(address, 2 << 20);
                break;
            case 2:
                code = d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device);
                break;
            case 3:
                code = d.cuMemFree(device);
                break;
            case 4:
                code = d.cuMemFreeHost(on.pinned);
                break;
            case 5:
            case 6:
                code = d.cuMemcpyHtoD(device, on.pageable, 64);
                break;
            case 7:
                code = d.cuStreamSynchronize(stream);
                break;
            case 8:
                code = d.cuMemAlloc(&again, 256);
                break;
            case 9:
                code = d.cuMemHostRegister(host, 2 << 20, CU_MEMHOSTREGISTER_DEVICEMAP);
                break;
            case 10:
                code = host[0] == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
                break;
            }
            answer("%s", error_name(code));
            question_take_over();
        }
    }
}

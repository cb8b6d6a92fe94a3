/* The answers about a small buffer of cuMemAlloc: hooked calls x what their pointer points to. */
#include <stdlib.h>
#include "operations.h"
#include "places.h"

const char *const place_names[PLACES] = {"live", "interior", "freed", "malloc", "NULL"};

CUdeviceptr place_new(enum place place)
{
    CUdeviceptr first, second;
    if (place == NOTHING) return 0;
    if (place == FOREIGN) return (CUdeviceptr)(uintptr_t)malloc(BYTES);
    MUST(d.cuMemAlloc(&first, BYTES));
    if (place == LIVE) return first;
    if (place == INTERIOR) return first + 16;
    MUST(d.cuMemAlloc(&second, BYTES));
    MUST(d.cuMemFree(second));
    return second;
}

void answers_free(void)
{
    CUstream stream;
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EACH_PLACE_CODE("cuMemFree", d.cuMemFree(at));
    EACH_PLACE_CODE("cuMemFreeHost", d.cuMemFreeHost(H(at)));
    EACH_PLACE_CODE("cuMemHostUnregister", d.cuMemHostUnregister(H(at)));
    EACH_PLACE("cuMemFreeAsync", {
        CUresult code = d.cuMemFreeAsync(at, stream);
        answer("%s, synchronize %s", error_name(code), error_name(d.cuStreamSynchronize(stream)));
    });
    EACH_PLACE("cuMemFreeAsync in the legacy stream", {
        CUresult code = d.cuMemFreeAsync(at, NULL);
        answer("%s, synchronize %s", error_name(code), error_name(d.cuStreamSynchronize(NULL)));
    });
    EACH_PLACE_CODE("cuMemUnmap", d.cuMemUnmap(at, BYTES));
    EACH_PLACE_CODE("cuMemUnmap of 2 MiB", d.cuMemUnmap(at, 2 << 20));
    EACH_PLACE_CODE("cuMemAddressFree", d.cuMemAddressFree(at, BYTES));
    EACH_PLACE_CODE("cuMemAddressFree of 2 MiB", d.cuMemAddressFree(at, 2 << 20));
    EACH_PLACE_CODE("cuMemFree(pointer + 1)", d.cuMemFree(at + 1));
    EACH_PLACE_CODE("cuMemFree(pointer + size)", d.cuMemFree(at + BYTES));
    if (question("cuMemFree, then cuMemFree")) {
        CUdeviceptr at = place_new(LIVE);
        CUresult first = d.cuMemFree(at);
        answer("%s, %s", error_name(first), error_name(d.cuMemFree(at)));
    }
    if (question("cuMemFree, then cuMemFreeAsync")) {
        CUdeviceptr at = place_new(LIVE);
        CUresult first = d.cuMemFree(at);
        answer("%s, %s", error_name(first), error_name(d.cuMemFreeAsync(at, stream)));
    }
    if (question("interior cuMemFree, then cuMemFree")) {
        CUdeviceptr at = place_new(LIVE);
        CUresult first = d.cuMemFree(at + 16);
        answer("%s, %s", error_name(first), error_name(d.cuMemFree(at)));
    }
}

void answers_pinned(void)
{
    EACH_PLACE("cuMemHostGetDevicePointer", {
        CUdeviceptr device = 7;
        CUresult code = d.cuMemHostGetDevicePointer(&device, H(at), 0);
        answer("%s, output %s", error_name(code),
               device == 7    ? "untouched"
               : device == at ? "same"
               : device       ? "other"
                              : "0");
    });
    EACH_PLACE("cuMemHostGetFlags", {
        unsigned flags = 77;
        CUresult code = d.cuMemHostGetFlags(&flags, H(at));
        answer("%s, flags %u", error_name(code), flags);
    });
    EACH_PLACE_CODE("cuMemHostRegister, flags 0", d.cuMemHostRegister(H(at), BYTES, 0));
    EACH_PLACE_CODE("cuMemHostRegister, device map", d.cuMemHostRegister(H(at), BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
    EACH_PLACE_CODE("cuMemHostRegister of 0 bytes", d.cuMemHostRegister(H(at), 0, 0));
    EACH_PLACE("cuIpcGetMemHandle", {
        CUipcMemHandle handle;
        answer("%s", error_name(d.cuIpcGetMemHandle(&handle, at)));
    });
    EACH_PLACE("cuMemGetHandleForAddressRange, dma-buf, 256 bytes", {
        int handle = -7;
        CUresult code = d.cuMemGetHandleForAddressRange(&handle, at, BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
        answer("%s, handle %s", error_name(code), handle == -7 ? "untouched" : handle >= 0 ? "set" : "negative");
    });
    EACH_PLACE("cuMemGetHandleForAddressRange, dma-buf, 64 KiB", {
        int handle = -7;
        CUresult code =
            d.cuMemGetHandleForAddressRange(&handle, at & ~0xffffull, 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
        answer("%s", error_name(code));
    });
    EACH_PLACE("cuMemRetainAllocationHandle", {
        CUmemGenericAllocationHandle handle = 7;
        CUresult code = d.cuMemRetainAllocationHandle(&handle, H(at));
        answer("%s, handle %s", error_name(code), handle == 7 ? "untouched" : handle ? "set" : "0");
    });
    EACH_PLACE("cuMemSetAccess", {
        CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = fix.device},
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
        CUresult code = d.cuMemSetAccess(at, BYTES, &access, 1);
        answer("%s", error_name(code));
    });
    EACH_PLACE("cuMemGetAccess", {
        CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = fix.device};
        unsigned long long flags = 77;
        CUresult code = d.cuMemGetAccess(&flags, &location, at);
        answer("%s, %llu", error_name(code), flags);
    });
    static const CUmem_advise advices[] = {CU_MEM_ADVISE_SET_READ_MOSTLY, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                                           CU_MEM_ADVISE_SET_ACCESSED_BY};
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = fix.device};
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0};
    for (int i = 0; i < 3; i++) {
        for (enum place place = LIVE; place < PLACES; place++) {
            if (!question("cuMemAdvise %d, %s", (int)advices[i], place_names[place])) continue;
            answer("%s", error_name(d.cuMemAdvise(place_new(place), BYTES, advices[i], here)));
        }
    }
    EACH_PLACE_CODE("cuMemPrefetchAsync to the device", d.cuMemPrefetchAsync(at, BYTES, here, 0, NULL));
    EACH_PLACE_CODE("cuMemPrefetchAsync to the host", d.cuMemPrefetchAsync(at, BYTES, host, 0, NULL));
    EACH_PLACE("cuMemRangeGetAttribute", {
        int value = 77;
        CUresult code = d.cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, BYTES);
        answer("%s, %d", error_name(code), value);
    });
    EACH_PLACE("cuMemRangeGetAttributes", {
        int first = 77, second = 77;
        void *outputs[] = {&first, &second};
        size_t sizes[] = {4, 4};
        CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
        CUresult code = d.cuMemRangeGetAttributes(outputs, sizes, which, 2, at, BYTES);
        answer("%s, %d, %d", error_name(code), first, second);
    });
    CUresult (*prefetch_first)(CUdeviceptr, size_t, CUdevice, CUstream) =
        (__typeof__(prefetch_first))driver_function("cuMemPrefetchAsync", 8000, 0);
    CUresult (*advise_first)(CUdeviceptr, size_t, CUmem_advise, CUdevice) =
        (__typeof__(advise_first))driver_function("cuMemAdvise", 8000, 0);
    EACH_PLACE_CODE("cuMemPrefetchAsync of CUDA 8", prefetch_first(at, BYTES, fix.device, NULL));
    EACH_PLACE_CODE("cuMemAdvise of CUDA 8", advise_first(at, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, fix.device));
    CUstream stream;
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EACH_PLACE_CODE("cuStreamAttachMemAsync", d.cuStreamAttachMemAsync(stream, at, 0, CU_MEM_ATTACH_SINGLE));
    EACH_PLACE_CODE("cuStreamWriteValue32", d.cuStreamWriteValue32(stream, at, 0, 0));
    EACH_PLACE("cuStreamWaitValue32", {
        if (place <= INTERIOR) MUST(d.cuMemsetD8(at, 0, 16));
        answer("%s", error_name(d.cuStreamWaitValue32(stream, at, 0, CU_STREAM_WAIT_VALUE_GEQ)));
    });
    EACH_PLACE("linear texture", {
        CUDA_RESOURCE_DESC resource = {
            .resType = CU_RESOURCE_TYPE_LINEAR,
            .res.linear = {.devPtr = at, .format = CU_AD_FORMAT_FLOAT, .numChannels = 1, .sizeInBytes = BYTES}};
        CUDA_TEXTURE_DESC texture = {.filterMode = CU_TR_FILTER_MODE_POINT};
        CUtexObject object = 7;
        CUresult code = d.cuTexObjectCreate(&object, &resource, &texture, NULL);
        answer("%s", error_name(code));
    });
    EACH_PLACE("tensor map", {
        CUtensorMap map __attribute__((aligned(64)));
        cuuint64_t extent[] = {64};
        cuuint64_t strides[] = {0};
        cuuint32_t box[] = {32}, step[] = {1};
        CUresult code = d.cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, H(at), extent, strides, box,
                                                 step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                                 CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        answer("%s", error_name(code));
    });
}

/* ------------------------------------------------------------------------------------------------ copies */

void answers_arrays(void)
{
    CUDA_ARRAY_DESCRIPTOR kind = {.Width = 64, .Height = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUarray array;
    CUtexObject object;
    CUDA_TEXTURE_DESC texture = {.filterMode = CU_TR_FILTER_MODE_POINT};
    MUST(d.cuArrayCreate(&array, &kind));
    EACH_PLACE_CODE("DtoA", d.cuMemcpyDtoA(array, 0, at, 64));
    EACH_PLACE_CODE("AtoD", d.cuMemcpyAtoD(at, array, 0, 64));
    EACH_PLACE("pitch texture", {
        CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_PITCH2D,
                                       .res.pitch2D = {.devPtr = at,
                                                       .format = CU_AD_FORMAT_FLOAT,
                                                       .numChannels = 1,
                                                       .width = 8,
                                                       .height = 4,
                                                       .pitchInBytes = 64}};
        answer("%s", error_name(d.cuTexObjectCreate(&object, &resource, &texture, NULL)));
    });
    EACH_PLACE("2D from a buffer to an array", {
        CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = at,
                              .srcPitch = 64,
                              .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                              .dstArray = array,
                              .WidthInBytes = 64,
                              .Height = 1};
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    });
    EACH_PLACE("2DAsync from an array to a buffer", {
        CUDA_MEMCPY2D copy = {.dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = at,
                              .dstPitch = 64,
                              .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                              .srcArray = array,
                              .WidthInBytes = 64,
                              .Height = 1};
        answer("%s", error_name(d.cuMemcpy2DAsync(&copy, NULL)));
    });
}

/* Takes a freed pointer for a host pointer and reads or writes there with the CPU: nothing to compare. */
static bool dies_of_freed(const char *name)
{
    return strncmp(name, "cuMemcpy ", 9) == 0 || strncmp(name, "cuMemcpyAsync ", 14) == 0 ||
           strncmp(name, "cuMemcpy_ptds ", 14) == 0 || strncmp(name, "cuMemcpyAsync_ptsz ", 19) == 0 ||
           strncmp(name, "Batch_ptsz ", 11) == 0 || strncmp(name, "Batch ", 6) == 0 ||
           strncmp(name, "3DBatch ", 8) == 0;
}

static void ask_copies(const struct operation *list)
{
    struct operands on;
    operands_new(&on, BYTES, NULL);
    MUST(d.cuStreamCreate(&on.stream, CU_STREAM_NON_BLOCKING));
    for (; list->name; list++) {
        for (enum place place = LIVE; place < PLACES; place++) {
            if (place == INTERIOR || (place == FREED && dies_of_freed(list->name))) continue;
            if (!question("%s, %s", list->name, place_names[place])) continue;
            struct operands with = on;
            with.device = place_new(place);
            CUresult code = list->run(&with);
            answer("%s, synchronize %s", error_name(code), error_name(d.cuCtxSynchronize()));
        }
    }
}

void answers_sync(void) { ask_copies(operations_sync); }
void answers_async(void) { ask_copies(operations_async); }
void answers_ptds(void)
{
    ask_copies(operations_ptds);
    ask_copies(operations_ptsz);
}

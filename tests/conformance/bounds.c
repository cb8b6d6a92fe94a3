/* Past the end of a buffer; odd mixes of pointers; what registering refuses. */
#include <stdlib.h>
#include <sys/mman.h>
#include "operations.h"

/* A 256 byte buffer alone in its context, so that what lies behind it is the driver's own. */
void bounds(void)
{
    static const struct {
        const char *name;
        size_t bytes;
    } ends[] = {{"to its end", 256},        {"by 1 byte", 257},   {"to 512", 512},
                {"past 512", 513},          {"to 64 KiB", 65536}, {"beyond 2 MiB", (2 << 20) + 512},
                {"beyond 64 MiB", 64 << 20}};
    struct operands on;
    operands_new(&on, 256, NULL);
    char *host = pages_new(64 << 20);
    void *pinned;
    CUdeviceptr large;
    MUST(d.cuMemAlloc(&large, 64 << 20));
    MUST(d.cuMemHostAlloc(&pinned, 4 << 20, 0));
    for (int i = 0; i < 7; i++) {
        size_t bytes = ends[i].bytes;
        bool pinnable = bytes <= 4 << 20;
        ASK(d.cuMemcpyDtoH(host, on.device, bytes), "DtoH of a 256 byte buffer %s", ends[i].name);
        if (pinnable)
            ASK(d.cuMemcpyDtoH(pinned, on.device, bytes), "DtoH pinned of a 256 byte buffer %s", ends[i].name);
        ASK(d.cuMemcpyDtoD(large, on.device, bytes), "DtoD of a 256 byte buffer %s", ends[i].name);
        ASK(d.cuMemcpyDtoHAsync(host, on.device, bytes, NULL), "DtoHAsync of a 256 byte buffer %s", ends[i].name);
        ASK(d.cuMemcpy((CUdeviceptr)(uintptr_t)host, on.device, bytes), "cuMemcpy of a 256 byte buffer %s",
            ends[i].name);
    }
    for (int i = 0; i < 7; i++) {
        size_t bytes = ends[i].bytes;
        bool pinnable = bytes <= 4 << 20;
        ASK(d.cuMemcpyHtoD(on.device, host, bytes), "HtoD of a 256 byte buffer %s", ends[i].name);
        if (pinnable)
            ASK(d.cuMemcpyHtoD(on.device, pinned, bytes), "HtoD pinned of a 256 byte buffer %s", ends[i].name);
        ASK(d.cuMemcpyHtoDAsync(on.device, host, bytes, NULL), "HtoDAsync of a 256 byte buffer %s", ends[i].name);
        ASK(d.cuMemsetD8(on.device, 1, bytes), "MemsetD8 of a 256 byte buffer %s", ends[i].name);
        ASK(d.cuMemsetD8Async(on.device, 1, bytes, NULL), "MemsetD8Async of a 256 byte buffer %s", ends[i].name);
    }
    ASK(d.cuMemcpyDtoH(host, on.device - 1, 16), "DtoH from 1 byte before a buffer");
    ASK(d.cuMemcpyDtoH(host, on.device + 256, 16), "DtoH from the end of a buffer");
    ASK(d.cuMemcpyHtoD(on.device + 200, host, 56), "HtoD into the last 56 bytes");
    ASK(d.cuMemcpyHtoD(on.device + 200, host, 57), "HtoD over the end from within");
}

void mixes(void)
{
    struct operands on;
    operands_new(&on, 4096, NULL);
    CUdeviceptr pageable = (CUdeviceptr)(uintptr_t)on.pageable, pinned = (CUdeviceptr)(uintptr_t)on.pinned;
    void *device = (void *)on.device, *other = (void *)on.other;
    CUdeviceptr managed = 0, pool = 0, address;
    CUstream stream;
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    void *registered = registered_new(65536, &address);
    (void)registered;
    if (question("HtoD with a device pointer as host source")) {
        MUST(d.cuMemsetD32(on.other, 5, 16));
        MUST(d.cuMemsetD32(on.device, 1, 16));
        CUresult code = d.cuMemcpyHtoD(on.device, other, 64);
        answer("%s, then %d", error_name(code), int_at(on.device));
    }
    if (question("DtoH with a device pointer as host destination")) {
        MUST(d.cuMemsetD32(on.other, 5, 16));
        MUST(d.cuMemsetD32(on.device, 1, 16));
        CUresult code = d.cuMemcpyDtoH(device, on.other, 64);
        answer("%s, then %d", error_name(code), int_at(on.device));
    }
    if (question("HtoDAsync with a device pointer as host source")) {
        MUST(d.cuMemsetD32(on.other, 6, 16));
        CUresult code = d.cuMemcpyHtoDAsync(on.device, other, 64, NULL);
        answer("%s, then %d", error_name(code), int_at(on.device));
    }
    if (question("DtoHAsync with a device pointer as host destination")) {
        MUST(d.cuMemsetD32(on.other, 7, 16));
        CUresult code = d.cuMemcpyDtoHAsync(device, on.other, 64, NULL);
        answer("%s, then %d", error_name(code), int_at(on.device));
    }
    ASK(d.cuMemcpyHtoD(pageable, on.pinned, 64), "HtoD with a pageable destination");
    ASK(d.cuMemcpyHtoD(pinned, on.pageable, 64), "HtoD with a pinned destination");
    ASK(d.cuMemcpyDtoH(on.pageable, pinned, 64), "DtoH with a pinned source");
    ASK(d.cuMemcpyDtoH(on.pageable, pageable + 64, 64), "DtoH with a pageable source");
    ASK(d.cuMemcpyDtoD(pageable, on.device, 64), "DtoD with a pageable destination");
    ASK(d.cuMemcpyDtoD(on.device, pageable, 64), "DtoD with a pageable source");
    ASK(d.cuMemcpyDtoD(pinned, on.device, 64), "DtoD with a pinned destination");
    ASK(d.cuMemcpyDtoD(on.device, pinned, 64), "DtoD with a pinned source");
    ASK(d.cuMemcpy(pageable, pageable + 64, 64), "cuMemcpy pageable to pageable");
    ASK(d.cuMemcpy(pinned, pageable, 64), "cuMemcpy pageable to pinned");
    ASK(d.cuMemcpy(pinned, pinned + 64, 64), "cuMemcpy pinned to pinned");
    ASK(d.cuMemcpy(address, on.device, 64), "cuMemcpy device to registered");
    ASK(d.cuMemcpyAsync(pageable, pageable + 64, 64, stream), "cuMemcpyAsync pageable to pageable");
    ASK(d.cuMemsetD8(pageable, 1, 64), "MemsetD8 of pageable memory");
    ASK(d.cuMemsetD8(pinned, 1, 64), "MemsetD8 of pinned memory");
    ASK(d.cuMemcpyHtoD(on.device, NULL, 64), "HtoD from NULL");
    ASK(d.cuMemcpyDtoH(NULL, on.device, 64), "DtoH to NULL");
    ASK(d.cuMemcpyHtoDAsync(on.device, NULL, 64, stream), "HtoDAsync from NULL");
    ASK(d.cuMemcpyHtoD(on.device, (void *)0x123456789000, 64), "HtoD from an unmapped address");
    ASK(d.cuMemcpyDtoH((void *)0x123456789000, on.device, 64), "DtoH to an unmapped address");
    ASK(d.cuMemcpyDtoH((void *)"read only memory is no place for this text, which must be longer than sixty-four bytes",
                       on.device, 64),
        "DtoH to read-only memory");
    if (question("overlapping DtoD")) {
        int *host = on.pageable;
        for (int i = 0; i < 64; i++) host[i] = i;
        MUST(d.cuMemcpyHtoD(on.device, host, 256));
        answer("%s", error_name(d.cuMemcpyDtoD(on.device + 4, on.device, 128)));
    }
    ASK(d.cuMemcpyDtoD(on.device, on.device, 64), "DtoD onto itself");
    if (question("2D with a device pointer as host source")) {
        CUDA_MEMCPY2D copy = copy2d_host_to_device(&on, other);
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    if (question("2D with a pinned pointer as device source")) {
        CUDA_MEMCPY2D copy = copy2d_device_to_device(&on);
        copy.srcDevice = pinned;
        answer("%s", error_name(d.cuMemcpy2D(&copy)));
    }
    if (question("pool memory, HtoD, DtoH, address range, type")) {
        CUdeviceptr base = 0;
        size_t bytes = 0;
        unsigned type = 77;
        MUST(d.cuMemAllocAsync(&pool, 256, stream));
        MUST(d.cuStreamSynchronize(stream));
        CUresult to = d.cuMemcpyHtoD(pool, on.pageable, 64), from = d.cuMemcpyDtoH(on.pageable, pool, 64);
        CUresult range = d.cuMemGetAddressRange(&base, &bytes, pool + 16);
        d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pool);
        answer("%s, %s, %s base %s %zu bytes, type %u", error_name(to), error_name(from), error_name(range),
               base == pool ? "same" : "other", bytes, type);
    }
    if (question("managed memory, HtoD, DtoH, type")) {
        unsigned type = 77;
        MUST(d.cuMemAllocManaged(&managed, 256, CU_MEM_ATTACH_GLOBAL));
        CUresult to = d.cuMemcpyHtoD(managed, on.pageable, 64), from = d.cuMemcpyDtoH(on.pageable, managed, 64);
        d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, managed);
        answer("%s, %s, type %u", error_name(to), error_name(from), type);
    }
    if (question("array copies with a small buffer")) {
        CUDA_ARRAY_DESCRIPTOR kind = {.Width = 64, .Height = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
        CUarray array;
        MUST(d.cuArrayCreate(&array, &kind));
        CUresult to = d.cuMemcpyDtoA(array, 0, on.device, 256);
        answer("%s, %s", error_name(to), error_name(d.cuMemcpyAtoD(on.other, array, 0, 256)));
    }
}

/* cases.md: overlap, unregister of other memory, flags, two buffers on one page. */
void register_errors(void)
{
    char *pages = pages_new(1 << 20);
    void *pinned;
    MUST(d.cuMemHostAlloc(&pinned, 65536, 0));
    if (question("overlapping registration")) {
        CUresult first = d.cuMemHostRegister(pages, 65536, 0), second = d.cuMemHostRegister(pages + 32768, 65536, 0);
        answer("%s, %s", error_name(first), error_name(second));
        d.cuMemHostUnregister(pages + 32768);
        d.cuMemHostUnregister(pages);
    }
    ASK(d.cuMemHostUnregister(pinned), "unregister memory of cuMemHostAlloc");
    ASK(d.cuMemHostRegister(pinned, 4096, 0), "register memory of cuMemHostAlloc");
    ASK(d.cuMemHostUnregister(pages), "unregister memory that never was registered");
    ASK(d.cuMemHostUnregister(NULL), "unregister NULL");
    ASK(d.cuMemHostRegister(NULL, 4096, 0), "register NULL");
    ASK(d.cuMemHostRegister((void *)0x123456789000, 4096, 0), "register an unmapped address");
    if (question("register over the end of what may be accessed")) {
        char *guarded = pages_new(8192);
        mprotect(guarded + 4096, 4096, PROT_NONE);
        answer("%s", error_name(d.cuMemHostRegister(guarded, 8192, 0)));
    }
    ASK(d.cuMemHostRegister(pages, 4096, 0x80), "register with unknown flags");
    for (unsigned asked = 0; asked < 8; asked++) {
        if (!question("flags of cuMemHostAlloc with flags %u", asked)) continue;
        unsigned flags = 77;
        void *more = NULL;
        CUresult alloc = d.cuMemHostAlloc(&more, 4096, asked);
        CUresult code = d.cuMemHostGetFlags(&flags, more);
        answer("%s, %s, %u", error_name(alloc), error_name(code), flags);
    }
    for (unsigned asked = 0; asked < 4; asked++) {
        if (!question("flags of a registration with flags %u", asked)) continue;
        unsigned flags = 77;
        void *more = pages_new(4096);
        CUresult pin = d.cuMemHostRegister(more, 4096, asked);
        CUresult code = d.cuMemHostGetFlags(&flags, more);
        answer("%s, %s, %u", error_name(pin), error_name(code), flags);
    }
    if (question("two buffers on one page")) {
        char *page = pages_new(4096);
        CUresult first = d.cuMemHostRegister(page, 512, 0), second = d.cuMemHostRegister(page + 1024, 512, 0);
        CUresult out = d.cuMemHostUnregister(page), out_second = d.cuMemHostUnregister(page + 1024);
        answer("%s, %s, unregister %s, %s", error_name(first), error_name(second), error_name(out),
               error_name(out_second));
    }
    if (question("two buffers that share a page")) {
        char *page = pages_new(12288);
        CUresult first = d.cuMemHostRegister(page + 100, 5000, 0), second = d.cuMemHostRegister(page + 5100, 5000, 0);
        CUresult out = d.cuMemHostUnregister(page + 100), out_second = d.cuMemHostUnregister(page + 5100);
        answer("%s, %s, unregister %s, %s", error_name(first), error_name(second), error_name(out),
               error_name(out_second));
    }
    if (question("copy past the end of an unaligned registration, same page")) {
        char *page = pages_new(8192);
        CUdeviceptr device;
        MUST(d.cuMemAlloc(&device, 8192));
        MUST(d.cuMemHostRegister(page + 100, 1000, 0));
        CUresult inside = d.cuMemcpyHtoD(device, page + 100, 1000), past = d.cuMemcpyHtoD(device, page + 100, 3000);
        CUresult before = d.cuMemcpyHtoD(device, page + 50, 100);
        answer("inside %s, past %s, from before %s", error_name(inside), error_name(past), error_name(before));
    }
    if (question("device pointer of an unaligned registration")) {
        char *page = pages_new(8192);
        CUdeviceptr device = 0;
        MUST(d.cuMemHostRegister(page + 100, 1000, CU_MEMHOSTREGISTER_DEVICEMAP));
        CUresult code = d.cuMemHostGetDevicePointer(&device, page + 200, 0);
        answer("%s, same %s", error_name(code), device == (CUdeviceptr)(uintptr_t)(page + 200) ? "yes" : "no");
    }
    if (question("unregister twice")) {
        MUST(d.cuMemHostRegister(pages, 65536, 0));
        CUresult first = d.cuMemHostUnregister(pages);
        answer("%s, %s", error_name(first), error_name(d.cuMemHostUnregister(pages)));
    }
    if (question("register device memory of cuMemAlloc")) {
        CUdeviceptr device;
        MUST(d.cuMemAlloc(&device, 4 << 20));
        answer("%s", error_name(d.cuMemHostRegister((void *)device, 65536, 0)));
    }
}

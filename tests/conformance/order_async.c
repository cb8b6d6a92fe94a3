/* Asynchronous calls behind a busy stream; the frees; the same on registered memory. */
#include "operations.h"

static CUstream stream_new(unsigned flags)
{
    CUstream stream;
    MUST(d.cuStreamCreate(&stream, flags));
    return stream;
}

static const char *size_name(size_t bytes)
{
    return bytes == 64        ? "64 bytes"
           : bytes == 4096    ? "4 KiB"
           : bytes == 1 << 16 ? "64 KiB"
           : bytes == 1 << 20 ? "1 MiB"
           : bytes == 2 << 20 ? "2 MiB"
           : bytes == 4 << 20 ? "4 MiB"
                              : "8 MiB";
}

/* How far the driver's staging of pageable memory goes. */
void order_pageable(void)
{
    static const size_t sizes[] = {64, 4096, 1 << 16, 1 << 20, 2 << 20, 4 << 20, 8 << 20};
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    CUdeviceptr device;
    int *host = pages_new(16 << 20);
    MUST(d.cuMemAlloc(&device, 16 << 20));
    for (int i = 0; i < 7; i++) {
        size_t bytes = sizes[i], last = bytes / 4 - 1;
        CUdeviceptr sized;
        MUST(d.cuMemAlloc(&sized, bytes));
        ASK_BEHIND(stream, , d.cuMemcpyHtoDAsync(sized, host, bytes, stream), "HtoDAsync of %s", size_name(bytes));
        ASK_BEHIND(stream, , d.cuMemcpyDtoHAsync(host, sized, bytes, stream), "DtoHAsync of %s", size_name(bytes));
        if (question("HtoDAsync of %s, source overwritten after the return", size_name(bytes))) {
            host[0] = host[last] = 11;
            if (bytes <= 2 << 20) gate_close(stream);
            MUST(d.cuMemcpyHtoDAsync(sized, host, bytes, stream));
            host[0] = host[last] = 22;
            gate_open();
            MUST(d.cuStreamSynchronize(stream));
            answer("device saw %d %d", int_at(sized), int_at(sized + 4 * last));
        }
        if (question("DtoHAsync of %s, destination at the return", size_name(bytes))) {
            MUST(d.cuMemsetD32(sized, 5, bytes / 4));
            MUST(d.cuCtxSynchronize());
            host[0] = host[last] = 0;
            MUST(d.cuMemcpyDtoHAsync(host, sized, bytes, stream));
            answer("holds %d %d", host[0], host[last]);
            MUST(d.cuStreamSynchronize(stream));
        }
        ASK_BEHIND(NULL, , d.cuMemcpyHtoDAsync(sized, host, bytes, NULL), "HtoDAsync of %s in the legacy stream",
                   size_name(bytes));
        ASK_BEHIND(NULL, , d.cuMemcpyDtoHAsync(host, sized, bytes, NULL), "DtoHAsync of %s in the legacy stream",
                   size_name(bytes));
    }
    for (int copies = 1; copies <= 3; copies++) {
        ASK_BEHIND(stream, , ({
                       CUresult code = CUDA_SUCCESS;
                       for (int i = 0; i < copies && !code; i++) {
                           code = d.cuMemcpyHtoDAsync(device + ((size_t)i << 20), host + (i << 18), 1 << 20, stream);
                       }
                       code;
                   }),
                   "%d HtoDAsync of 1 MiB in a row", copies);
    }
    for (int copies = 8; copies <= 512; copies *= 8) {
        ASK_BEHIND(stream, , ({
                       CUresult code = CUDA_SUCCESS;
                       for (int i = 0; i < copies && !code; i++) {
                           code = d.cuMemcpyHtoDAsync(device + (size_t)i * 4096, host + i * 1024, 4096, stream);
                       }
                       code;
                   }),
                   "%d HtoDAsync of 4 KiB in a row", copies);
    }
}

/* Every asynchronous operation on ordinary device memory, in the stream that is busy. */
void order_pinned(void)
{
    CUstream streams[] = {stream_new(CU_STREAM_NON_BLOCKING), NULL, stream_new(CU_STREAM_DEFAULT)};
    static const char *const names[] = {"non-blocking", "legacy", "blocking stream, legacy busy"};
    struct operands on;
    operands_new(&on, 4096, NULL);
    for (int i = 0; i < 3; i++) {
        on.stream = streams[i];
        for (const struct operation *each = operations_async; each->name; each++) {
            ASK_BEHIND(i == 2 ? NULL : streams[i], , each->run(&on), "%s, 4 KiB, %s", each->name, names[i]);
        }
    }
    CUdeviceptr got = 0;
    ASK_BEHIND(NULL, , ({
                   CUresult code = d.cuMemAlloc(&got, 256);
                   code;
               }),
               "cuMemAlloc of 256 bytes, legacy busy");
    ASK_BEHIND(NULL, , ({
                   CUresult code = d.cuMemAlloc(&got, 8 << 20);
                   code;
               }),
               "cuMemAlloc of 8 MiB, legacy busy");
    void *host = NULL;
    ASK_BEHIND(NULL, , d.cuMemHostAlloc(&host, 1 << 20, 0), "cuMemHostAlloc of 1 MiB, legacy busy");
}

/* The same on registered memory that is used as a device pointer. */
void order_registered(void)
{
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    struct operands on;
    operands_new(&on, 4096, stream);
    on.device = (CUdeviceptr)(uintptr_t)registered_new(1 << 20, NULL);
    for (const struct operation *each = operations_async; each->name; each++) {
        ASK_BEHIND(stream, , each->run(&on), "%s, 4 KiB", each->name);
    }
    for (const struct operation *each = operations_sync; each->name; each++) {
        ASK_BEHIND(NULL, , each->run(&on), "%s, 4 KiB, legacy busy", each->name);
    }
    for (const struct operation *each = operations_ptds; each->name; each++) {
        ASK_BEHIND(NULL, , each->run(&on), "%s, 4 KiB, legacy busy", each->name);
    }
    on.other = on.device + 65536;
    ASK_BEHIND(stream, , d.cuMemcpyDtoDAsync(on.other, on.device, 4096, stream), "DtoDAsync registered to registered");
    ASK_BEHIND(NULL, , d.cuMemcpyDtoD(on.other, on.device, 4096), "DtoD registered to registered, legacy busy");
    int count = 1;
    ASK_BEHIND(
        stream, ,
        d.cuLaunchKernel(fix.ints_copy, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&on.device, &on.other, &count}, NULL),
        "copy kernel");
    void *more = NULL;
    ASK_BEHIND(stream, more = pages_new(65536), d.cuMemHostRegister(more, 65536, 0), "cuMemHostRegister");
    ASK_BEHIND(stream, more = pages_new(65536);
               MUST(d.cuMemHostRegister(more, 65536, 0)), d.cuMemHostUnregister(more), "cuMemHostUnregister");
}

/* The frees. */
void order_free(void)
{
    static const char *const names[] = {"legacy", "blocking", "non-blocking", "per-thread"};
    CUstream streams[] = {NULL, stream_new(CU_STREAM_DEFAULT), stream_new(CU_STREAM_NON_BLOCKING),
                          CU_STREAM_PER_THREAD};
    static const size_t sizes[] = {64, 1 << 20, 8 << 20};
    CUstream quiet = stream_new(CU_STREAM_NON_BLOCKING);
    CUdeviceptr device = 0;
    void *pinned = NULL;
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++) {
            ASK_BEHIND(streams[i], MUST(d.cuMemAlloc(&device, sizes[k])), d.cuMemFree(device),
                       "cuMemFree of %s, %s busy", size_name(sizes[k]), names[i]);
        }
        ASK_BEHIND(streams[i], MUST(d.cuMemHostAlloc(&pinned, 4096, 0)), d.cuMemFreeHost(pinned),
                   "cuMemFreeHost, %s busy", names[i]);
        ASK_BEHIND(streams[i], MUST(d.cuMemAlloc(&device, 64)), d.cuMemFreeAsync(device, streams[i]),
                   "cuMemFreeAsync of cuMemAlloc memory in the busy stream, %s busy", names[i]);
        ASK_BEHIND(streams[i], MUST(d.cuMemAlloc(&device, 64)), d.cuMemFreeAsync(device, quiet),
                   "cuMemFreeAsync of cuMemAlloc memory in an idle stream, %s busy", names[i]);
    }
    ASK_BEHIND(NULL, , d.cuMemFree(0), "cuMemFree of NULL, legacy busy");
    ASK_BEHIND(NULL, , d.cuMemFreeHost(NULL), "cuMemFreeHost of NULL, legacy busy");
    ASK_BEHIND(NULL, , d.cuMemFree(0x1234), "cuMemFree of an unknown pointer, legacy busy");
    ASK_BEHIND(NULL, MUST(d.cuMemAlloc(&device, 256)), d.cuMemFree(device + 16),
               "cuMemFree inside a buffer, legacy busy");
    ASK_BEHIND(streams[2], MUST(d.cuMemAllocAsync(&device, 256, quiet));
               MUST(d.cuStreamSynchronize(quiet)), d.cuMemFree(device), "cuMemFree of pool memory, non-blocking busy");
}

/* The per-thread default stream given as NULL to the forms that mean it. */
void order_ptsz(void)
{
    CUstream other = stream_new(CU_STREAM_DEFAULT);
    const struct {
        const char *name;
        CUstream stream;
    } busy[] = {{"legacy", NULL}, {"per-thread", CU_STREAM_PER_THREAD}, {"blocking", other}};
    struct operands on;
    CUdeviceptr device = 0;
    CUevent event;
    int count = 1, amount = 1;
    operands_new(&on, 4096, NULL);
    MUST(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 3; i++) {
        CUstream stream = busy[i].stream;
        for (const struct operation *each = operations_ptsz; each->name; each++) {
            ASK_BEHIND(stream, , each->run(&on), "%s, 4 KiB, %s busy", each->name, busy[i].name);
        }
        ASK_BEHIND(stream, , d.cuStreamQuery_ptsz(NULL), "cuStreamQuery_ptsz of NULL, %s busy", busy[i].name);
        ASK_BEHIND(stream, , d.cuStreamSynchronize_ptsz(NULL), "cuStreamSynchronize_ptsz of NULL, %s busy",
                   busy[i].name);
        ASK_BEHIND(stream, , ({
                       CUresult code = d.cuEventRecord_ptsz(event, NULL);
                       code ? code : d.cuEventQuery(event);
                   }),
                   "cuEventQuery after cuEventRecord_ptsz in NULL, %s busy", busy[i].name);
        ASK_BEHIND(stream, ,
                   d.cuLaunchKernel_ptsz(fix.ints_add, 1, 1, 1, 1, 1, 1, 0, NULL,
                                         (void *[]){&on.device, &count, &amount}, NULL),
                   "cuLaunchKernel_ptsz in NULL, %s busy", busy[i].name);
        ASK_BEHIND(stream, MUST(d.cuMemAlloc(&device, 64)), d.cuMemFreeAsync_ptsz(device, NULL),
                   "cuMemFreeAsync_ptsz of cuMemAlloc memory in NULL, %s busy", busy[i].name);
    }
}

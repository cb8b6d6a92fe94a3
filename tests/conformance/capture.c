/* What calls do and return while a stream captures, and whether the capture survives them. */
#include <pthread.h>
#include "operations.h"

static struct {
    struct operands on; /* its stream is the capturing one */
    CUstream other;
    CUevent before, during;
    CUdeviceptr spare;
    void *spare_pinned, *spare_registered, *fresh;
    CUdeviceptr reservation;
    CUmemGenericAllocationHandle chunk;
} cap;

static CUmemAllocationProp chunk_kind(void)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = fix.device}};
}

static CUresult chunk_map(void)
{
    CUmemAllocationProp kind = chunk_kind();
    CUmemAccessDesc access = {.location = kind.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address;
    CUmemGenericAllocationHandle chunk;
    CUresult code = d.cuMemAddressReserve(&address, 2 << 20, 0, 0, 0);
    if (!code) code = d.cuMemCreate(&chunk, 2 << 20, &kind, 0);
    if (!code) code = d.cuMemMap(address, 2 << 20, 0, chunk, 0);
    if (!code) code = d.cuMemSetAccess(address, 2 << 20, &access, 1);
    return code;
}

static CUresult chunk_unmap(void) { return d.cuMemUnmap(cap.reservation, 2 << 20); }

#define CALL(function, expression)                                                                                     \
    static CUresult function(void) { return expression; }
static CUdeviceptr got;
static void *got_host;
static size_t free_bytes, all_bytes;
static unsigned type;
static CUstream got_stream;
static CUevent got_event;
static int one = 1;

CALL(nothing, CUDA_SUCCESS)
CALL(mem_alloc, d.cuMemAlloc(&got, 256))
CALL(mem_alloc_large, d.cuMemAlloc(&got, 8 << 20))
CALL(mem_free, d.cuMemFree(cap.spare))
CALL(mem_free_null, d.cuMemFree(0))
CALL(mem_free_async, d.cuMemFreeAsync(cap.spare, cap.on.stream))
CALL(mem_free_async_other, d.cuMemFreeAsync(cap.spare, cap.other))
CALL(mem_alloc_async, d.cuMemAllocAsync(&got, 256, cap.on.stream))
CALL(host_alloc, d.cuMemHostAlloc(&got_host, 4096, 0))
CALL(free_host, d.cuMemFreeHost(cap.spare_pinned))
CALL(host_register, d.cuMemHostRegister(cap.fresh, 65536, CU_MEMHOSTREGISTER_DEVICEMAP))
CALL(host_unregister, d.cuMemHostUnregister(cap.spare_registered))
CALL(address_reserve, d.cuMemAddressReserve(&got, 2 << 20, 0, 0, 0))
CALL(htod, d.cuMemcpyHtoD(cap.on.device, cap.on.pageable, 64))
CALL(dtoh, d.cuMemcpyDtoH(cap.on.pageable, cap.on.device, 64))
CALL(dtod, d.cuMemcpyDtoD(cap.on.other, cap.on.device, 64))
CALL(htod_zero, d.cuMemcpyHtoD(cap.on.device, cap.on.pageable, 0))
CALL(any, d.cuMemcpy(cap.on.other, cap.on.device, 64))
CALL(htod_ptds, d.cuMemcpyHtoD_ptds(cap.on.device, cap.on.pageable, 64))
CALL(set8, d.cuMemsetD8(cap.on.device, 1, 64))
CALL(htod_async, d.cuMemcpyHtoDAsync(cap.on.device, cap.on.pageable, 64, cap.on.stream))
CALL(htod_async_pinned, d.cuMemcpyHtoDAsync(cap.on.device, cap.on.pinned, 64, cap.on.stream))
CALL(dtoh_async, d.cuMemcpyDtoHAsync(cap.on.pageable, cap.on.device, 64, cap.on.stream))
CALL(dtoh_async_pinned, d.cuMemcpyDtoHAsync(cap.on.pinned, cap.on.device, 64, cap.on.stream))
CALL(dtod_async, d.cuMemcpyDtoDAsync(cap.on.other, cap.on.device, 64, cap.on.stream))
CALL(set8_async, d.cuMemsetD8Async(cap.on.device, 1, 64, cap.on.stream))
CALL(htod_async_other, d.cuMemcpyHtoDAsync(cap.on.device, cap.on.pageable, 64, cap.other))
CALL(dtoh_async_other, d.cuMemcpyDtoHAsync(cap.on.pageable, cap.on.device, 64, cap.other))
CALL(htod_async_legacy, d.cuMemcpyHtoDAsync(cap.on.device, cap.on.pageable, 64, NULL))
CALL(stream_query, d.cuStreamQuery(cap.on.stream))
CALL(stream_query_legacy, d.cuStreamQuery(NULL))
CALL(stream_query_ptds, d.cuStreamQuery(CU_STREAM_PER_THREAD))
CALL(stream_query_other, d.cuStreamQuery(cap.other))
CALL(stream_sync, d.cuStreamSynchronize(cap.on.stream))
CALL(stream_sync_legacy, d.cuStreamSynchronize(NULL))
CALL(stream_sync_other, d.cuStreamSynchronize(cap.other))
CALL(ctx_sync, d.cuCtxSynchronize())
CALL(event_query, d.cuEventQuery(cap.before))
CALL(event_sync, d.cuEventSynchronize(cap.before))
CALL(event_record, d.cuEventRecord(cap.during, cap.on.stream))
CALL(event_record_query, ({
         CUresult c = d.cuEventRecord(cap.during, cap.on.stream);
         c ? c : d.cuEventQuery(cap.during);
     }))
CALL(event_record_legacy, d.cuEventRecord(cap.during, NULL))
CALL(event_record_other, d.cuEventRecord(cap.during, cap.other))
CALL(wait_event_before, d.cuStreamWaitEvent(cap.on.stream, cap.before, 0))
CALL(kernel,
     d.cuLaunchKernel(fix.ints_add, 1, 1, 1, 1, 1, 1, 0, cap.on.stream, (void *[]){&cap.on.device, &one, &one}, NULL))
CALL(kernel_legacy,
     d.cuLaunchKernel(fix.ints_add, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&cap.on.device, &one, &one}, NULL))
CALL(kernel_other,
     d.cuLaunchKernel(fix.ints_add, 1, 1, 1, 1, 1, 1, 0, cap.other, (void *[]){&cap.on.device, &one, &one}, NULL))
CALL(attribute, d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, cap.on.device))
CALL(address_range, d.cuMemGetAddressRange(&got, &all_bytes, cap.on.device))
CALL(mem_info, d.cuMemGetInfo(&free_bytes, &all_bytes))
CALL(stream_create, d.cuStreamCreate(&got_stream, CU_STREAM_NON_BLOCKING))
CALL(event_create, d.cuEventCreate(&got_event, CU_EVENT_DISABLE_TIMING))
CALL(event_destroy, d.cuEventDestroy(cap.before))
CALL(write_value, d.cuStreamWriteValue32(cap.on.stream, cap.on.device, 1, 0))

static const struct {
    const char *name;
    CUresult (*run)(void);
} calls[] = {
    {"nothing", nothing},
    {"cuMemAlloc of 256 bytes", mem_alloc},
    {"cuMemAlloc of 8 MiB", mem_alloc_large},
    {"cuMemFree", mem_free},
    {"cuMemFree of NULL", mem_free_null},
    {"cuMemFreeAsync of cuMemAlloc memory in it", mem_free_async},
    {"cuMemFreeAsync of cuMemAlloc memory in another", mem_free_async_other},
    {"cuMemAllocAsync in it", mem_alloc_async},
    {"cuMemHostAlloc", host_alloc},
    {"cuMemFreeHost", free_host},
    {"cuMemHostRegister", host_register},
    {"cuMemHostUnregister", host_unregister},
    {"cuMemAddressReserve", address_reserve},
    {"reserve, create, map, access", chunk_map},
    {"cuMemUnmap", chunk_unmap},
    {"HtoD", htod},
    {"DtoH", dtoh},
    {"DtoD", dtod},
    {"HtoD of 0 bytes", htod_zero},
    {"cuMemcpy", any},
    {"HtoD_ptds", htod_ptds},
    {"MemsetD8", set8},
    {"HtoDAsync pageable in it", htod_async},
    {"HtoDAsync pinned in it", htod_async_pinned},
    {"DtoHAsync pageable in it", dtoh_async},
    {"DtoHAsync pinned in it", dtoh_async_pinned},
    {"DtoDAsync in it", dtod_async},
    {"MemsetD8Async in it", set8_async},
    {"HtoDAsync in another", htod_async_other},
    {"DtoHAsync in another", dtoh_async_other},
    {"HtoDAsync in legacy", htod_async_legacy},
    {"cuStreamQuery of it", stream_query},
    {"cuStreamQuery of legacy", stream_query_legacy},
    {"cuStreamQuery of per-thread", stream_query_ptds},
    {"cuStreamQuery of another", stream_query_other},
    {"cuStreamSynchronize of it", stream_sync},
    {"cuStreamSynchronize of legacy", stream_sync_legacy},
    {"cuStreamSynchronize of another", stream_sync_other},
    {"cuCtxSynchronize", ctx_sync},
    {"cuEventQuery of an earlier event", event_query},
    {"cuEventSynchronize of an earlier event", event_sync},
    {"cuEventRecord in it", event_record},
    {"cuEventQuery of an event recorded in it", event_record_query},
    {"cuEventRecord in legacy", event_record_legacy},
    {"cuEventRecord in another", event_record_other},
    {"cuStreamWaitEvent for an earlier event", wait_event_before},
    {"launch in it", kernel},
    {"launch in legacy", kernel_legacy},
    {"launch in another", kernel_other},
    {"cuPointerGetAttribute", attribute},
    {"cuMemGetAddressRange", address_range},
    {"cuMemGetInfo", mem_info},
    {"cuStreamCreate", stream_create},
    {"cuEventCreate", event_create},
    {"cuEventDestroy", event_destroy},
    {"cuStreamWriteValue32 in it", write_value},
};

static const char *status_name(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult code = d.cuStreamIsCapturing(stream, &status);
    if (code) return error_name(code);
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? "active"
           : status == CU_STREAM_CAPTURE_STATUS_NONE ? "none"
                                                     : "invalidated";
}

static void *call_in_thread(void *run)
{
    d.cuCtxSetCurrent(fix.context);
    return (void *)(intptr_t)(*(CUresult(**)(void))run)();
}

static void prepare(unsigned stream_flags)
{
    operands_new(&cap.on, 4096, NULL);
    MUST(d.cuStreamCreate(&cap.on.stream, stream_flags));
    MUST(d.cuStreamCreate(&cap.other, CU_STREAM_NON_BLOCKING));
    MUST(d.cuEventCreate(&cap.during, CU_EVENT_DISABLE_TIMING));
}

/* Before each call: something to free, to unregister, to unmap. */
static void prepare_spares(void)
{
    CUmemAllocationProp kind = chunk_kind();
    MUST(d.cuEventCreate(&cap.before, CU_EVENT_DISABLE_TIMING));
    MUST(d.cuEventRecord(cap.before, cap.other));
    MUST(d.cuMemAlloc(&cap.spare, 256));
    MUST(d.cuMemHostAlloc(&cap.spare_pinned, 4096, 0));
    cap.fresh = pages_new(65536);
    cap.spare_registered = pages_new(65536);
    MUST(d.cuMemHostRegister(cap.spare_registered, 65536, CU_MEMHOSTREGISTER_DEVICEMAP));
    MUST(d.cuMemAddressReserve(&cap.reservation, 2 << 20, 0, 0, 0));
    MUST(d.cuMemCreate(&cap.chunk, 2 << 20, &kind, 0));
    MUST(d.cuMemMap(cap.reservation, 2 << 20, 0, cap.chunk, 0));
    MUST(d.cuCtxSynchronize());
}

static void ask_all(unsigned stream_flags, CUstreamCaptureMode mode, bool other_thread)
{
    prepare(stream_flags);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!question("%s", calls[i].name)) continue;
        prepare_spares();
        CUgraph graph = NULL;
        MUST(d.cuStreamBeginCapture(cap.on.stream, mode));
        CUresult code;
        if (other_thread) {
            pthread_t thread;
            void *result = NULL;
            pthread_create(&thread, NULL, call_in_thread, (void *)&calls[i].run);
            pthread_join(thread, &result);
            code = (CUresult)(intptr_t)result;
        } else {
            code = calls[i].run();
        }
        const char *status = status_name(cap.on.stream);
        const char *name = error_name(code);
        CUresult end = d.cuStreamEndCapture(cap.on.stream, &graph);
        size_t nodes = 0;
        if (!end) d.cuGraphGetNodes(graph, NULL, &nodes);
        answer("%s, capture %s, ends %s, %zu nodes", name, status, error_name(end), nodes);
        if (!end) d.cuGraphDestroy(graph);
    }
}

void capture_global(void) { ask_all(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_GLOBAL, false); }
void capture_global_other(void) { ask_all(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_GLOBAL, true); }
void capture_local(void) { ask_all(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false); }
void capture_local_other(void) { ask_all(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true); }
void capture_relaxed(void) { ask_all(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_RELAXED, false); }
void capture_nonblocking(void) { ask_all(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL, false); }
void capture_nonblocking_relaxed(void) { ask_all(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED, false); }

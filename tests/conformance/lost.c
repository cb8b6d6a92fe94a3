/* After the context is lost: every call reports it. Each question loses a context of its own. */
#include "backing.h"
#include "operations.h"

static struct operands on;
static CUdeviceptr got;
static CUevent event;
static CUgraphExec doomed;

#define CALL(function, expression)                                                                                     \
    static CUresult function(void) { return expression; }
CALL(call_alloc, d.cuMemAlloc(&got, 256))
CALL(call_free, d.cuMemFree(on.device))
CALL(call_free_null, d.cuMemFree(0))
CALL(call_free_async, d.cuMemFreeAsync(on.device, on.stream))
CALL(call_htod, d.cuMemcpyHtoD(on.device, on.pageable, 64))
CALL(call_htod_zero, d.cuMemcpyHtoD(on.device, on.pageable, 0))
CALL(call_dtoh, d.cuMemcpyDtoH(on.pageable, on.device, 64))
CALL(call_dtod, d.cuMemcpyDtoD(on.other, on.device, 64))
CALL(call_any, d.cuMemcpy(on.other, on.device, 64))
CALL(call_htod_ptds, d.cuMemcpyHtoD_ptds(on.device, on.pageable, 64))
CALL(call_htod_async, d.cuMemcpyHtoDAsync(on.device, on.pageable, 64, on.stream))
CALL(call_dtoh_async, d.cuMemcpyDtoHAsync(on.pageable, on.device, 64, on.stream))
CALL(call_set, d.cuMemsetD8(on.device, 1, 64))
CALL(call_set_async, d.cuMemsetD8Async(on.device, 1, 64, on.stream))
CALL(call_2d, ({
         CUDA_MEMCPY2D plane = copy2d_host_to_device(&on, on.pageable);
         d.cuMemcpy2D(&plane);
     }))
CALL(call_attribute, ({
         unsigned type;
         d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, on.device);
     }))
CALL(call_range, ({
         size_t bytes;
         d.cuMemGetAddressRange(&got, &bytes, on.device);
     }))
CALL(call_info, ({
         size_t a, b;
         d.cuMemGetInfo(&a, &b);
     }))
CALL(call_query, d.cuStreamQuery(on.stream))
CALL(call_sync, d.cuStreamSynchronize(on.stream))
CALL(call_event, d.cuEventQuery(event))
CALL(call_host_alloc, ({
         void *p;
         d.cuMemHostAlloc(&p, 4096, 0);
     }))
CALL(call_free_host, d.cuMemFreeHost(on.pinned))
CALL(call_register, d.cuMemHostRegister(pages_new(4096), 4096, 0))

void lost(void)
{
    static const struct {
        const char *name;
        CUresult (*run)(void);
    } calls[] = {{"cuMemAlloc", call_alloc},
                 {"cuMemFree", call_free},
                 {"cuMemFree of NULL", call_free_null},
                 {"cuMemFreeAsync", call_free_async},
                 {"HtoD", call_htod},
                 {"HtoD of 0 bytes", call_htod_zero},
                 {"DtoH", call_dtoh},
                 {"DtoD", call_dtod},
                 {"cuMemcpy", call_any},
                 {"HtoD_ptds", call_htod_ptds},
                 {"HtoDAsync", call_htod_async},
                 {"DtoHAsync", call_dtoh_async},
                 {"MemsetD8", call_set},
                 {"MemsetD8Async", call_set_async},
                 {"2D", call_2d},
                 {"MEMORY_TYPE", call_attribute},
                 {"cuMemGetAddressRange", call_range},
                 {"cuMemGetInfo", call_info},
                 {"cuStreamQuery", call_query},
                 {"cuStreamSynchronize", call_sync},
                 {"cuEventQuery", call_event},
                 {"cuMemHostAlloc", call_host_alloc},
                 {"cuMemFreeHost", call_free_host},
                 {"cuMemHostRegister", call_register}};
    CUdeviceptr address;
    CUgraph graph;
    operands_new(&on, 256, NULL);
    MUST(d.cuStreamCreate(&on.stream, CU_STREAM_NON_BLOCKING));
    MUST(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(d.cuEventRecord(event, on.stream));
    registered_new(2 << 20, &address);
    MUST(d.cuStreamBeginCapture(on.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(d.cuMemcpyHtoDAsync(address, on.pageable, 64, on.stream));
    MUST(d.cuStreamEndCapture(on.stream, &graph));
    MUST(d.cuGraphInstantiateWithFlags(&doomed, graph, 0));
    MUST(d.cuGraphLaunch(doomed, on.stream));
    MUST(d.cuCtxSynchronize());
    MUST(backing_to_device(address, 2 << 20));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!question("%s", calls[i].name)) continue;
        d.cuGraphLaunch(doomed, on.stream);
        CUresult end = d.cuStreamSynchronize(on.stream);
        CUresult code = calls[i].run();
        answer("%s, then %s", error_name(end), error_name(code));
        question_take_over();
    }
}

/* Replay: what graph nodes hold, and what happens when the memory behind an address changed. */
#include <sys/mman.h>
#include "backing.h"
#include "operations.h"

static CUstream stream;

static CUgraphExec capture_round(CUdeviceptr device, void *source, void *target)
{
    CUgraph graph;
    CUgraphExec exec;
    int count = 1, amount = 1;
    MUST(d.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(d.cuMemcpyHtoDAsync(device, source, 64, stream));
    launch(fix.ints_add, stream, (void *[]){&device, &count, &amount});
    MUST(d.cuMemcpyDtoHAsync(target, device, 64, stream));
    MUST(d.cuMemsetD32Async(device + 64, 7, 4, stream));
    MUST(d.cuStreamEndCapture(stream, &graph));
    MUST(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static void replay(CUgraphExec exec, int *source, int *target, int value)
{
    source[0] = value;
    target[0] = -1;
    CUresult code = d.cuGraphLaunch(exec, stream);
    CUresult end = d.cuStreamSynchronize(stream);
    answer("launch %s, synchronize %s, target %d", error_name(code), error_name(end), target[0]);
}

void graph_replay(void)
{
    struct operands on;
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    operands_new(&on, 4096, stream);
    CUdeviceptr address;
    int *host = registered_new(2 << 20, &address);
    if (question("pageable source and target on a device buffer, second replay")) {
        int *source = on.pageable, *target = source + 512;
        CUgraphExec exec = capture_round(on.device, source, target);
        MUST(d.cuGraphLaunch(exec, stream));
        MUST(d.cuStreamSynchronize(stream));
        replay(exec, source, target, 40);
    }
    if (question("pinned source and target on a device buffer, second replay")) {
        int *source = on.pinned, *target = source + 512;
        CUgraphExec exec = capture_round(on.device, source, target);
        MUST(d.cuGraphLaunch(exec, stream));
        MUST(d.cuStreamSynchronize(stream));
        replay(exec, source, target, 50);
    }
    if (question("pageable source and target on a registered pointer")) {
        int *source = on.pageable, *target = source + 512;
        replay(capture_round(address, source, target), source, target, 60);
    }
    if (question("memset node on a registered pointer")) answer("holds %d", host[16]);
    if (question("explicit memcpy and memset nodes on a device buffer")) {
        CUgraph graph;
        CUgraphExec exec;
        CUgraphNode first, second;
        int *source = on.pageable;
        source[0] = 70;
        CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = source,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = on.device,
                              .WidthInBytes = 64,
                              .Height = 1,
                              .Depth = 1};
        CUDA_MEMSET_NODE_PARAMS set = {.dst = on.device + 64, .value = 71, .elementSize = 4, .width = 4, .height = 1};
        MUST(d.cuGraphCreate(&graph, 0));
        MUST(d.cuGraphAddMemcpyNode(&first, graph, NULL, 0, &copy, fix.context));
        MUST(d.cuGraphAddMemsetNode(&second, graph, &first, 1, &set, fix.context));
        MUST(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
        CUresult code = d.cuGraphLaunch(exec, stream);
        MUST(d.cuStreamSynchronize(stream));
        answer("launch %s, %d %d", error_name(code), int_at(on.device), int_at(on.device + 64));
    }
}

/* The context is lost by the copy node: each case runs to its end in a process of its own. */
void graph_move(void)
{
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr address;
    int count = 1, amount = 1;
    int *target = pages_new(4096);
    if (question("kernel node, replay after the address moved to device memory")) {
        CUgraph graph;
        CUgraphExec exec;
        registered_new(2 << 20, &address);
        MUST(d.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        launch(fix.ints_add, stream, (void *[]){&address, &count, &amount});
        MUST(d.cuStreamEndCapture(stream, &graph));
        MUST(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
        MUST(d.cuGraphLaunch(exec, stream));
        MUST(d.cuStreamSynchronize(stream));
        MUST(backing_to_device(address, 2 << 20));
        CUresult code = d.cuGraphLaunch(exec, stream);
        CUresult end = d.cuStreamSynchronize(stream);
        answer("launch %s, synchronize %s, counter %d", error_name(code), error_name(end), int_at(address));
    }
    if (question("copy node, replay after the address moved to device memory")) {
        int *source = pages_new(4096);
        registered_new(2 << 20, &address);
        CUgraphExec exec = capture_round(address, source, target);
        MUST(d.cuGraphLaunch(exec, stream));
        MUST(d.cuStreamSynchronize(stream));
        MUST(backing_to_device(address, 2 << 20));
        CUresult code = d.cuGraphLaunch(exec, stream);
        CUresult end = d.cuStreamSynchronize(stream);
        answer("launch %s, synchronize %s", error_name(code), error_name(end));
    }
}

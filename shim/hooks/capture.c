/* Captures and graphs: while any capture is under way the shim keeps still, and an address that a graph holds keeps its
 * backing (a replay whose memcpy node names memory that has moved kills the context; facts.md). */
#include "shim/context.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/hostmem.h"
#include "shim/lend.h"
#include "shim/placement.h"

/* A move under way ends, and none begins; no block is tied to a buffer that a graph could write. */
static void capture_begins(void)
{
    struct lend_work work = {.launch = NULL};
    atomic_fetch_add(&context_captures, 1);
    gate_enter();
    while (lend_any() && !lend_admits(&work)) {
        gate_leave();
        atomic_fetch_sub(&context_captures, 1);
        lend_end_all();
        atomic_fetch_add(&context_captures, 1);
        work.asked = true;
        gate_enter();
    }
    gate_leave();
}

#define BEGIN_CAPTURE(forward_call)                                                                                    \
    do {                                                                                                               \
        capture_begins();                                                                                              \
        CUresult result = forward_call;                                                                                \
        CUcontext context = NULL;                                                                                      \
        if (result != CUDA_SUCCESS) {                                                                                  \
            atomic_fetch_sub(&context_captures, 1);                                                                    \
            return result;                                                                                             \
        }                                                                                                              \
        shim.real.cuCtxGetCurrent(&context);                                                                           \
        context_capture_began(named_stream(hStream, per_thread), context);                                             \
        return result;                                                                                                 \
    } while (0)

CUresult hook_cuStreamBeginCapture(DRIVER(cuStreamBeginCapture) forward, bool per_thread, CUstream hStream)
{
    BEGIN_CAPTURE(forward(hStream));
}

CUresult hook_cuStreamBeginCapture_v2(DRIVER(cuStreamBeginCapture_v2) forward, bool per_thread, CUstream hStream,
                                      CUstreamCaptureMode mode)
{
    BEGIN_CAPTURE(forward(hStream, mode));
}

CUresult hook_cuStreamBeginCaptureToGraph(DRIVER(cuStreamBeginCaptureToGraph) forward, bool per_thread,
                                          CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                          CUstreamCaptureMode mode)
{
    BEGIN_CAPTURE(forward(hStream, hGraph, dependencies, dependencyData, numDependencies, mode));
}

CUresult hook_cuStreamEndCapture(DRIVER(cuStreamEndCapture) forward, bool per_thread, CUstream hStream,
                                 CUgraph *phGraph)
{
    CUstream stream = named_stream(hStream, per_thread);
    CUresult result = forward(hStream, phGraph);
    /* An invalidated capture ends here too, with an error; one that may not be ended here goes on. */
    if (context_capturing() && !context_stream_capturing(stream)) context_capture_ended(stream);
    return result;
}

static void freeze(CUdeviceptr address) { placement_freeze(address, "named by a node of a graph"); }

/* A large host block that a node names stays as pageable as the graph saw it. */
static void keep_native(CUmemorytype type, const void *host, CUdeviceptr unified, size_t pitch, size_t rows,
                        const CUDA_MEMCPY3D *p)
{
    if (type == CU_MEMORYTYPE_ARRAY) return;
    if (!pitch) pitch = p->WidthInBytes;
    if (!rows) rows = p->Height;
    hostmem_make_native(type == CU_MEMORYTYPE_HOST ? host : (void *)unified, pitch * rows * p->Depth, true);
}

static void freeze_memcpy(const CUDA_MEMCPY3D *params)
{
    if (!params) return;
    freeze(params->dstDevice);
    freeze(params->srcDevice);
    keep_native(params->dstMemoryType, params->dstHost, params->dstDevice, params->dstPitch, params->dstHeight, params);
    keep_native(params->srcMemoryType, params->srcHost, params->srcDevice, params->srcPitch, params->srcHeight, params);
}

static void freeze_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    for (unsigned i = 0; params && i < params->count; i++) freeze(params->paramArray[i].writeValue.address);
}

static void freeze_node(const CUgraphNodeParams *params)
{
    if (!params) return;
    if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY) freeze_memcpy(&params->memcpy.copyParams);
    if (params->type == CU_GRAPH_NODE_TYPE_MEMSET) freeze(params->memset.dst);
    for (unsigned i = 0; params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && i < params->memOp.count; i++)
        freeze(params->memOp.paramArray[i].writeValue.address);
}

CUresult hook_cuGraphAddMemcpyNode(DRIVER(cuGraphAddMemcpyNode) forward, bool per_thread, CUgraphNode *phGraphNode,
                                   CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                   const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    (void)per_thread;
    freeze_memcpy(copyParams);
    return forward(phGraphNode, hGraph, dependencies, numDependencies, copyParams, ctx);
}

CUresult hook_cuGraphAddMemsetNode(DRIVER(cuGraphAddMemsetNode) forward, bool per_thread, CUgraphNode *phGraphNode,
                                   CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                   const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    (void)per_thread;
    if (memsetParams) freeze(memsetParams->dst);
    return forward(phGraphNode, hGraph, dependencies, numDependencies, memsetParams, ctx);
}

CUresult hook_cuGraphAddNode(DRIVER(cuGraphAddNode) forward, bool per_thread, CUgraphNode *phGraphNode, CUgraph hGraph,
                             const CUgraphNode *dependencies, size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    (void)per_thread;
    freeze_node(nodeParams);
    return forward(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult hook_cuGraphAddNode_v2(DRIVER(cuGraphAddNode_v2) forward, bool per_thread, CUgraphNode *phGraphNode,
                                CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
                                size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    (void)per_thread;
    freeze_node(nodeParams);
    return forward(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
}

CUresult hook_cuGraphMemcpyNodeSetParams(DRIVER(cuGraphMemcpyNodeSetParams) forward, bool per_thread, CUgraphNode hNode,
                                         const CUDA_MEMCPY3D *nodeParams)
{
    (void)per_thread;
    freeze_memcpy(nodeParams);
    return forward(hNode, nodeParams);
}

CUresult hook_cuGraphMemsetNodeSetParams(DRIVER(cuGraphMemsetNodeSetParams) forward, bool per_thread, CUgraphNode hNode,
                                         const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    (void)per_thread;
    if (nodeParams) freeze(nodeParams->dst);
    return forward(hNode, nodeParams);
}

CUresult hook_cuGraphNodeSetParams(DRIVER(cuGraphNodeSetParams) forward, bool per_thread, CUgraphNode hNode,
                                   CUgraphNodeParams *nodeParams)
{
    (void)per_thread;
    freeze_node(nodeParams);
    return forward(hNode, nodeParams);
}

CUresult hook_cuGraphExecMemcpyNodeSetParams(DRIVER(cuGraphExecMemcpyNodeSetParams) forward, bool per_thread,
                                             CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams,
                                             CUcontext ctx)
{
    (void)per_thread;
    freeze_memcpy(copyParams);
    return forward(hGraphExec, hNode, copyParams, ctx);
}

CUresult hook_cuGraphExecMemsetNodeSetParams(DRIVER(cuGraphExecMemsetNodeSetParams) forward, bool per_thread,
                                             CUgraphExec hGraphExec, CUgraphNode hNode,
                                             const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    (void)per_thread;
    if (memsetParams) freeze(memsetParams->dst);
    return forward(hGraphExec, hNode, memsetParams, ctx);
}

CUresult hook_cuGraphExecNodeSetParams(DRIVER(cuGraphExecNodeSetParams) forward, bool per_thread,
                                       CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    (void)per_thread;
    freeze_node(nodeParams);
    return forward(hGraphExec, hNode, nodeParams);
}

CUresult hook_cuGraphAddBatchMemOpNode(DRIVER(cuGraphAddBatchMemOpNode) forward, bool per_thread,
                                       CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                       size_t numDependencies, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    (void)per_thread;
    freeze_batch(nodeParams);
    return forward(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult hook_cuGraphBatchMemOpNodeSetParams(DRIVER(cuGraphBatchMemOpNodeSetParams) forward, bool per_thread,
                                             CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    (void)per_thread;
    freeze_batch(nodeParams);
    return forward(hNode, nodeParams);
}

CUresult hook_cuGraphExecBatchMemOpNodeSetParams(DRIVER(cuGraphExecBatchMemOpNodeSetParams) forward, bool per_thread,
                                                 CUgraphExec hGraphExec, CUgraphNode hNode,
                                                 const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    (void)per_thread;
    freeze_batch(nodeParams);
    return forward(hGraphExec, hNode, nodeParams);
}

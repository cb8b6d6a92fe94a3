/* Graphs made by hand, and what is done with any graph. */
#include "cudart.h"

cudaError_t copy_3d_convert(const struct cudaMemcpy3DParms *in, CUDA_MEMCPY3D *out);

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) { CALL(0, cuGraphCreate, graph, flags); }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { CALL(0, cuGraphDestroy, graph); }
cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) { CALL(0, cuGraphClone, clone, graph); }
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    CALL(0, cuGraphGetNodes, graph, nodes, count);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    CALL(0, cuGraphGetRootNodes, graph, nodes, count);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    CALL(0, cuGraphNodeGetType, node, (CUgraphNodeType *)type);
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) { CALL(0, cuGraphDestroyNode, node); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { CALL(0, cuGraphExecDestroy, exec); }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    CALL(0, cuGraphInstantiate, exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    CALL(0, cuGraphInstantiate, exec, graph, flags);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *information)
{
    CALL(0, cuGraphExecUpdate, exec, graph, (CUgraphExecUpdateResultInfo *)information);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t count)
{
    CALL(0, cuGraphAddDependencies, graph, from, to, (const CUgraphEdgeData *)edges, count);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count)
{
    CALL(0, cuGraphAddEmptyNode, node, graph, before, count);
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                       size_t count, cudaGraph_t child)
{
    CALL(0, cuGraphAddChildGraphNode, node, graph, before, count, child);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                 const struct cudaHostNodeParams *parameters)
{
    CALL(0, cuGraphAddHostNode, node, graph, before, count, (const CUDA_HOST_NODE_PARAMS *)parameters);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *parameters)
{
    CALL(0, cuGraphExecHostNodeSetParams, exec, node, (const CUDA_HOST_NODE_PARAMS *)parameters);
}

static cudaError_t kernel_convert(const struct cudaKernelNodeParams *in, CUDA_KERNEL_NODE_PARAMS *out)
{
    CUfunction function;
    cudaError_t error = context_ensure();
    if (!error && !in) error = cudaErrorInvalidValue;
    if (!error) error = kernel_of(in->func, &function);
    if (error) return error;
    *out = (CUDA_KERNEL_NODE_PARAMS){.func = function,
                                     .gridDimX = in->gridDim.x,
                                     .gridDimY = in->gridDim.y,
                                     .gridDimZ = in->gridDim.z,
                                     .blockDimX = in->blockDim.x,
                                     .blockDimY = in->blockDim.y,
                                     .blockDimZ = in->blockDim.z,
                                     .sharedMemBytes = in->sharedMemBytes,
                                     .kernelParams = in->kernelParams,
                                     .extra = in->extra};
    return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                   size_t count, const struct cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS wanted;
    cudaError_t error = kernel_convert(parameters, &wanted);
    return remember(error ? error : (cudaError_t)driver->cuGraphAddKernelNode(node, graph, before, count, &wanted));
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS wanted;
    cudaError_t error = kernel_convert(parameters, &wanted);
    return remember(error ? error : (cudaError_t)driver->cuGraphKernelNodeSetParams(node, &wanted));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS wanted;
    cudaError_t error = kernel_convert(parameters, &wanted);
    return remember(error ? error : (cudaError_t)driver->cuGraphExecKernelNodeSetParams(exec, node, &wanted));
}

static CUcontext context(void)
{
    CUcontext current = NULL;
    driver->cuCtxGetCurrent(&current);
    return current;
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                   size_t count, const struct cudaMemcpy3DParms *parameters)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = context_ensure();
    if (!error) error = copy_3d_convert(parameters, &copy);
    return remember(error ? error
                          : (cudaError_t)driver->cuGraphAddMemcpyNode(node, graph, before, count, &copy, context()));
}

static cudaError_t linear(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *copy)
{
    struct cudaMemcpy3DParms parameters = {.srcPtr = {(void *)from, bytes, bytes, 1},
                                           .dstPtr = {to, bytes, bytes, 1},
                                           .extent = {bytes, 1, 1},
                                           .kind = kind};
    cudaError_t error = context_ensure();
    return error ? error : copy_3d_convert(&parameters, copy);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                     size_t count, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = linear(to, from, bytes, kind, &copy);
    return remember(error ? error
                          : (cudaError_t)driver->cuGraphAddMemcpyNode(node, graph, before, count, &copy, context()));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                           enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = linear(to, from, bytes, kind, &copy);
    return remember(error ? error : (cudaError_t)driver->cuGraphMemcpyNodeSetParams(node, &copy));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *parameters)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = context_ensure();
    if (!error) error = copy_3d_convert(parameters, &copy);
    return remember(error ? error : (cudaError_t)driver->cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context()));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                               size_t bytes, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = linear(to, from, bytes, kind, &copy);
    return remember(error ? error : (cudaError_t)driver->cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context()));
}

static CUDA_MEMSET_NODE_PARAMS fill_convert(const struct cudaMemsetParams *in)
{
    return (CUDA_MEMSET_NODE_PARAMS){.dst = (CUdeviceptr)in->dst,
                                     .pitch = in->pitch,
                                     .value = in->value,
                                     .elementSize = in->elementSize,
                                     .width = in->width,
                                     .height = in->height};
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                   size_t count, const struct cudaMemsetParams *parameters)
{
    cudaError_t error = context_ensure();
    if (!error && !parameters) error = cudaErrorInvalidValue;
    if (error) return remember(error);
    CUDA_MEMSET_NODE_PARAMS fill = fill_convert(parameters);
    return remember_result(driver->cuGraphAddMemsetNode(node, graph, before, count, &fill, context()));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *parameters)
{
    cudaError_t error = context_ensure();
    if (!error && !parameters) error = cudaErrorInvalidValue;
    if (error) return remember(error);
    CUDA_MEMSET_NODE_PARAMS fill = fill_convert(parameters);
    return remember_result(driver->cuGraphExecMemsetNodeSetParams(exec, node, &fill, context()));
}

/* Nodes of every type by one pair of functions, and the types that have no file of their own: operations on values,
 * memory, events. */
#include "graph_node.h"
#include "kernel.h"
#include "memory.h"

static CUresult value_work(const CUstreamBatchMemOpParams *operation, struct work *work)
{
    enum work_kind kind =
        operation->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || operation->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64
            ? WORK_WAIT
            : WORK_WRITE;
    bool wide = operation->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                operation->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    struct location location;
    location_of(operation->waitValue.address, &location);
    if (location.place == PLACE_PAGEABLE || operation->waitValue.address % (wide ? 8 : 4))
        return CUDA_ERROR_INVALID_VALUE;
    *work = (struct work){.kind = kind,
                          .value = {operation->waitValue.address,
                                    wide ? operation->waitValue.value64 : operation->waitValue.value, wide ? 8 : 4,
                                    operation->waitValue.flags}};
    return CUDA_SUCCESS;
}

/* A node does one operation here; more become a child graph of one node each. */
static CUresult values_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                           const CUDA_BATCH_MEM_OP_NODE_PARAMS *parameters)
{
    if (!parameters || !parameters->count || !parameters->paramArray) return CUDA_ERROR_INVALID_VALUE;
    CUgraph child = graph_create();
    CUgraphNode last = NULL;
    for (unsigned i = 0; i < parameters->count; i++) {
        struct work work;
        CUresult result = value_work(&parameters->paramArray[i], &work);
        if (result) {
            graph_destroy(child);
            return result;
        }
        last = graph_add(child, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &work, &last, last != NULL);
    }
    struct work nothing = {.kind = WORK_EMPTY};
    CUresult result = node_add(node, graph, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &nothing, before, count);
    if (!result)
        (*node)->child = child;
    else
        graph_destroy(child);
    return result;
}

static CUresult plain_add(CUgraphNode *node, CUgraph graph, CUgraphNodeType type, const CUgraphNode *before,
                          size_t count)
{
    struct work nothing = {.kind = WORK_EMPTY};
    return node_add(node, graph, type, &nothing, before, count);
}

/* The memory is there from now on, and stays: freeing it is a node that does nothing. */
static CUresult memory_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count, size_t bytes,
                           CUdeviceptr *address)
{
    CUcontext context;
    struct allocation *allocation;
    CUresult result = context_current(&context);
    if (!result && !bytes) result = CUDA_ERROR_INVALID_VALUE;
    if (!result) result = allocation_create(context, bytes, ALLOCATION_POOL, &allocation);
    if (result) return result;
    result = plain_add(node, graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, before, count);
    allocation->in_graph = true;
    if (result)
        allocation_free(allocation);
    else
        *address = allocation->address;
    return result;
}

static CUresult memory_end_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                               CUdeviceptr address)
{
    struct allocation *allocation = allocation_at(address);
    if (!allocation || allocation->address != address || !allocation->in_graph) return CUDA_ERROR_INVALID_VALUE;
    return plain_add(node, graph, CU_GRAPH_NODE_TYPE_MEM_FREE, before, count);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphAddBatchMemOpNode);
    sim_lock();
    CUresult result = values_add(node, graph, before, count, parameters);
    sim_unlock();
    return result;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphAddMemAllocNode);
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = memory_add(node, graph, before, count, parameters->bytesize, &parameters->dptr);
    sim_unlock();
    return result;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                               CUdeviceptr address)
{
    SIM_ENTER(cuGraphAddMemFreeNode);
    sim_lock();
    CUresult result = memory_end_add(node, graph, before, count, address);
    sim_unlock();
    return result;
}

static CUresult work_of(const CUgraphNodeParams *parameters, struct work *work)
{
    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return node_kernel_work((const CUDA_KERNEL_NODE_PARAMS *)&parameters->kernel, work);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return node_copy_work(&parameters->memcpy.copyParams, work);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return node_fill_work((const CUDA_MEMSET_NODE_PARAMS *)&parameters->memset, work);
    case CU_GRAPH_NODE_TYPE_HOST:
        return node_host_work((const CUDA_HOST_NODE_PARAMS *)&parameters->host, work);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static void remember_parameters(CUgraphNode node, const CUgraphNodeParams *parameters)
{
    if (parameters->type == CU_GRAPH_NODE_TYPE_MEMCPY) node->parameters.copy = parameters->memcpy.copyParams;
    if (parameters->type == CU_GRAPH_NODE_TYPE_MEMSET) node->parameters.fill = parameters->memset;
}

static CUresult any_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                        CUgraphNodeParams *parameters)
{
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return plain_add(node, graph, CU_GRAPH_NODE_TYPE_EMPTY, before, count);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return memory_add(node, graph, before, count, parameters->alloc.bytesize, &parameters->alloc.dptr);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return memory_end_add(node, graph, before, count, parameters->free.dptr);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return values_add(node, graph, before, count, (const CUDA_BATCH_MEM_OP_NODE_PARAMS *)&parameters->memOp);
    case CU_GRAPH_NODE_TYPE_GRAPH: {
        if (!graph_valid(parameters->graph.graph) || parameters->graph.graph == graph) return CUDA_ERROR_INVALID_VALUE;
        CUresult result = plain_add(node, graph, CU_GRAPH_NODE_TYPE_GRAPH, before, count);
        if (!result) (*node)->child = graph_clone(parameters->graph.graph);
        return result;
    }
    default:
        break;
    }
    struct work work;
    CUresult result = work_of(parameters, &work);
    if (!result) result = node_add(node, graph, parameters->type, &work, before, count);
    if (!result) remember_parameters(*node, parameters);
    return result;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                        CUgraphNodeParams *parameters)
{
    SIM_ENTER(cuGraphAddNode);
    sim_lock();
    CUresult result = any_add(node, graph, before, count, parameters);
    sim_unlock();
    return result;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *edges,
                           size_t count, CUgraphNodeParams *parameters)
{
    SIM_ENTER(cuGraphAddNode_v2);
    (void)edges;
    sim_lock();
    CUresult result = any_add(node, graph, before, count, parameters);
    sim_unlock();
    return result;
}

static CUresult any_set(CUgraphNode node, const CUgraphNodeParams *parameters)
{
    struct work work;
    if (!parameters || !node_valid(node) || node->type != parameters->type) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = work_of(parameters, &work);
    if (result) return result;
    node_replace_work(node, &work);
    remember_parameters(node, parameters);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *parameters)
{
    SIM_ENTER(cuGraphNodeSetParams);
    sim_lock();
    CUresult result = any_set(node, parameters);
    sim_unlock();
    return result;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *parameters)
{
    SIM_ENTER(cuGraphExecNodeSetParams);
    sim_lock();
    bool valid = exec && exec->magic == EXEC_MAGIC;
    CUresult result = valid ? any_set(node_in_exec(exec->graph, node), parameters) : CUDA_ERROR_INVALID_VALUE;
    sim_unlock();
    return result;
}

/* ---- what a graph looks like ---- */

static CUresult edges_get(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    if (!graph_valid(graph) || !count || !from != !to) return CUDA_ERROR_INVALID_VALUE;
    size_t room = from ? *count : 0, found = 0;
    for (CUgraphNode node = graph->nodes; node; node = node->next)
        for (size_t i = 0; i < node->before_count; i++, found++)
            if (found < room) {
                from[found] = node->before[i];
                to[found] = node;
            }
    *count = from && room < found ? room : found;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    SIM_ENTER(cuGraphGetEdges);
    return edges_get(graph, from, to, count);
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count)
{
    SIM_ENTER(cuGraphGetEdges_v2);
    CUresult result = edges_get(graph, from, to, count);
    if (!result && edges) memset(edges, 0, *count * sizeof *edges);
    return result;
}

static CUresult dependents_get(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    if (!node_valid(node) || !count) return CUDA_ERROR_INVALID_VALUE;
    size_t room = nodes ? *count : 0, found = 0;
    for (CUgraphNode other = node->graph->nodes; other; other = other->next)
        for (size_t i = 0; i < other->before_count; i++)
            if (other->before[i] == node) {
                if (found < room) nodes[found] = other;
                found++;
            }
    *count = nodes && room < found ? room : found;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    SIM_ENTER(cuGraphNodeGetDependentNodes);
    return dependents_get(node, nodes, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
    SIM_ENTER(cuGraphNodeGetDependentNodes_v2);
    CUresult result = dependents_get(node, nodes, count);
    if (!result && edges) memset(edges, 0, *count * sizeof *edges);
    return result;
}

static CUresult dependencies_remove(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    if (!graph_valid(graph) || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (size_t k = 0; node_valid(to[i]) && k < to[i]->before_count && !found; k++)
            if (to[i]->before[k] == from[i]) {
                to[i]->before[k] = to[i]->before[--to[i]->before_count];
                found = true;
            }
        if (!found) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    SIM_ENTER(cuGraphRemoveDependencies);
    sim_lock();
    CUresult result = dependencies_remove(graph, from, to, count);
    sim_unlock();
    return result;
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edges, size_t count)
{
    SIM_ENTER(cuGraphRemoveDependencies_v2);
    (void)edges;
    sim_lock();
    CUresult result = dependencies_remove(graph, from, to, count);
    sim_unlock();
    return result;
}

/* The arguments of a kernel node live as long as the node; the program gets pointers into them. */
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphKernelNodeGetParams_v2);
    if (!parameters || !node_valid(node) || node->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
    const struct launch *launch = &node->work.launch;
    sim_lock();
    if (!node->argument_pointers) node->argument_pointers = kernel_argument_pointers(launch);
    *parameters = (CUDA_KERNEL_NODE_PARAMS){.func = launch->function,
                                            .gridDimX = launch->grid[0],
                                            .gridDimY = launch->grid[1],
                                            .gridDimZ = launch->grid[2],
                                            .blockDimX = launch->block[0],
                                            .blockDimY = launch->block[1],
                                            .blockDimZ = launch->block[2],
                                            .sharedMemBytes = launch->shared_bytes,
                                            .kernelParams = node->argument_pointers};
    sim_unlock();
    return CUDA_SUCCESS;
}

/* Graphs as the program makes them by hand. */
#include "copy.h"
#include "fill.h"
#include "graph.h"
#include "graph_node.h"
#include "kernel.h"

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    SIM_ENTER(cuGraphCreate);
    if (!graph || flags) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    *graph = graph_create();
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    SIM_ENTER(cuGraphDestroy);
    sim_lock();
    CUresult result = graph_valid(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!result) graph_destroy(graph);
    sim_unlock();
    return result;
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
    SIM_ENTER(cuGraphClone);
    if (!clone || !graph_valid(graph)) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    *clone = graph_clone(graph);
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
    SIM_ENTER(cuGraphNodeFindInClone);
    if (!node || !graph_valid(clone)) return CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode each = clone->nodes; each; each = each->next)
        if (each->original == original) {
            *node = each;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

/* Checks a new node's place, then adds it; takes the work over. */
CUresult node_add(CUgraphNode *result, CUgraph graph, CUgraphNodeType type, struct work *work,
                  const CUgraphNode *before, size_t count)
{
    bool valid = result && graph_valid(graph) && (before || !count);
    for (size_t i = 0; valid && i < count; i++) valid = node_valid(before[i]) && before[i]->graph == graph;
    if (valid)
        *result = graph_add(graph, type, work, before, count);
    else
        work_release(work);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count)
{
    SIM_ENTER(cuGraphAddEmptyNode);
    struct work work = {.kind = WORK_EMPTY};
    sim_lock();
    CUresult result = node_add(node, graph, CU_GRAPH_NODE_TYPE_EMPTY, &work, before, count);
    sim_unlock();
    return result;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                  CUgraph child)
{
    SIM_ENTER(cuGraphAddChildGraphNode);
    struct work work = {.kind = WORK_EMPTY};
    sim_lock();
    CUresult result = graph_valid(child) && child != graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!result) result = node_add(node, graph, CU_GRAPH_NODE_TYPE_GRAPH, &work, before, count);
    if (!result) (*node)->child = graph_clone(child);
    sim_unlock();
    return result;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    SIM_ENTER(cuGraphChildGraphNodeGetGraph);
    if (!graph || !node_valid(node) || !node->child) return CUDA_ERROR_INVALID_VALUE;
    *graph = node->child;
    return CUDA_SUCCESS;
}

CUresult node_host_work(const CUDA_HOST_NODE_PARAMS *parameters, struct work *work)
{
    if (!parameters || !parameters->fn) return CUDA_ERROR_INVALID_VALUE;
    *work = (struct work){.kind = WORK_HOST, .host = {parameters->fn, parameters->userData}};
    return CUDA_SUCCESS;
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                            const CUDA_HOST_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphAddHostNode);
    struct work work;
    sim_lock();
    CUresult result = node_host_work(parameters, &work);
    if (!result) result = node_add(node, graph, CU_GRAPH_NODE_TYPE_HOST, &work, before, count);
    sim_unlock();
    return result;
}

CUresult node_kernel_work(const CUDA_KERNEL_NODE_PARAMS *parameters, struct work *work)
{
    CUresult result;
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    struct launch launch = {.function = parameters->func ? parameters->func : (CUfunction)parameters->kern,
                            .grid = {parameters->gridDimX, parameters->gridDimY, parameters->gridDimZ},
                            .block = {parameters->blockDimX, parameters->blockDimY, parameters->blockDimZ},
                            .shared_bytes = parameters->sharedMemBytes};
    result = launch_check(&launch);
    if (result) return result;
    launch.arguments =
        kernel_arguments_pack(launch.function->kernel, parameters->kernelParams, parameters->extra, &result);
    *work = (struct work){.kind = WORK_LAUNCH, .launch = launch};
    return result;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphAddKernelNode_v2);
    struct work work;
    sim_lock();
    CUresult result = node_kernel_work(parameters, &work);
    if (!result) result = node_add(node, graph, CU_GRAPH_NODE_TYPE_KERNEL, &work, before, count);
    sim_unlock();
    return result;
}

CUresult node_copy_work(const CUDA_MEMCPY3D *parameters, struct work *work)
{
    struct copy_request request = {.async = true};
    CUresult result = request_from_3d(parameters, &request);
    if (!result && (!request.width || !request.height || !request.depth)) result = CUDA_ERROR_INVALID_VALUE;
    *work = (struct work){.kind = WORK_COPY};
    return result ? result : copy_canonical(&request, &work->copy);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                              const CUDA_MEMCPY3D *parameters, CUcontext context)
{
    SIM_ENTER(cuGraphAddMemcpyNode);
    struct work work;
    sim_lock();
    CUresult result = context_valid(context) ? node_copy_work(parameters, &work) : CUDA_ERROR_INVALID_CONTEXT;
    if (!result) result = node_add(node, graph, CU_GRAPH_NODE_TYPE_MEMCPY, &work, before, count);
    if (!result) (*node)->parameters.copy = *parameters;
    sim_unlock();
    return result;
}

CUresult node_fill_work(const CUDA_MEMSET_NODE_PARAMS *parameters, struct work *work)
{
    if (!parameters || !parameters->width || !parameters->height) return CUDA_ERROR_INVALID_VALUE;
    unsigned bytes = parameters->elementSize;
    if (bytes != 1 && bytes != 2 && bytes != 4) return CUDA_ERROR_INVALID_VALUE;
    *work = (struct work){.kind = WORK_FILL,
                          .fill = {parameters->dst, parameters->pitch, parameters->width, parameters->height, bytes,
                                   parameters->value, 0}};
    return fill_canonical(&work->fill);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context)
{
    SIM_ENTER(cuGraphAddMemsetNode);
    struct work work;
    sim_lock();
    CUresult result = context_valid(context) ? node_fill_work(parameters, &work) : CUDA_ERROR_INVALID_CONTEXT;
    if (!result) result = node_add(node, graph, CU_GRAPH_NODE_TYPE_MEMSET, &work, before, count);
    if (!result) memcpy(&(*node)->parameters.fill, parameters, sizeof *parameters);
    sim_unlock();
    return result;
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
    SIM_ENTER(cuGraphDestroyNode);
    if (!node_valid(node)) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUgraph graph = node->graph;
    for (CUgraphNode *link = &graph->nodes; *link; link = &(*link)->next) {
        if (*link == node) {
            *link = node->next;
            if (!*link) graph->last = link;
            graph->count--;
            if (!*link) break;
        }
        CUgraphNode other = *link;
        for (size_t i = 0; i < other->before_count; i++)
            if (other->before[i] == node) other->before[i--] = other->before[--other->before_count];
    }
    work_release(&node->work);
    if (node->child) graph_destroy(node->child);
    node->magic = 0;
    sim_unlock();
    return CUDA_SUCCESS;
}

static CUresult dependencies_add(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    if (!graph_valid(graph) || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!node_valid(from[i]) || !node_valid(to[i]) || from[i] == to[i]) return CUDA_ERROR_INVALID_VALUE;
        if (!node_add_dependency(to[i], from[i])) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    SIM_ENTER(cuGraphAddDependencies);
    sim_lock();
    CUresult result = dependencies_add(graph, from, to, count);
    sim_unlock();
    return result;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    SIM_ENTER(cuGraphAddDependencies_v2);
    (void)edges;
    sim_lock();
    CUresult result = dependencies_add(graph, from, to, count);
    sim_unlock();
    return result;
}

/* Writes up to *count of the nodes that `wanted` picks; *count becomes how many there are. */
static CUresult nodes_list(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots_only)
{
    if (!graph_valid(graph) || !count) return CUDA_ERROR_INVALID_VALUE;
    size_t room = nodes ? *count : 0, found = 0;
    for (CUgraphNode each = graph->nodes; each; each = each->next) {
        if (roots_only && each->before_count) continue;
        if (found < room) nodes[found] = each;
        found++;
    }
    for (size_t i = found; i < room; i++) nodes[i] = NULL;
    *count = nodes && room < found ? room : found;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    SIM_ENTER(cuGraphGetNodes);
    return nodes_list(graph, nodes, count, false);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    SIM_ENTER(cuGraphGetRootNodes);
    return nodes_list(graph, nodes, count, true);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    SIM_ENTER(cuGraphNodeGetType);
    if (!node_valid(node) || !type) return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

static CUresult dependencies_get(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    if (!node_valid(node) || !count) return CUDA_ERROR_INVALID_VALUE;
    size_t room = nodes ? *count : 0;
    for (size_t i = 0; i < room; i++) nodes[i] = i < node->before_count ? node->before[i] : NULL;
    *count = nodes && room < node->before_count ? room : node->before_count;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    SIM_ENTER(cuGraphNodeGetDependencies);
    return dependencies_get(node, nodes, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
    SIM_ENTER(cuGraphNodeGetDependencies_v2);
    if (edges && count) memset(edges, 0, *count * sizeof *edges);
    return dependencies_get(node, nodes, count);
}

/* ---- parameters of nodes, in the graph and in what was made of it ---- */

CUgraphNode node_in_exec(CUgraph graph, CUgraphNode original)
{
    for (CUgraphNode each = graph->nodes; each; each = each->next)
        if (each->original == original) return each;
    return NULL;
}

enum parameter_kind { PARAMETERS_KERNEL, PARAMETERS_COPY, PARAMETERS_FILL, PARAMETERS_HOST };

/* exec NULL: the node itself. */
static CUresult parameters_set(CUgraphExec exec, CUgraphNode node, const void *parameters, enum parameter_kind kind)
{
    static const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
                                            CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_HOST};
    struct work work;
    sim_lock();
    CUresult result = parameters ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!result && exec) {
        if (exec->magic != EXEC_MAGIC)
            result = CUDA_ERROR_INVALID_VALUE;
        else
            node = node_in_exec(exec->graph, node);
    }
    if (!result && (!node_valid(node) || node->type != types[kind])) result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = kind == PARAMETERS_KERNEL ? node_kernel_work(parameters, &work)
                 : kind == PARAMETERS_COPY ? node_copy_work(parameters, &work)
                 : kind == PARAMETERS_FILL ? node_fill_work(parameters, &work)
                                           : node_host_work(parameters, &work);
    if (!result) {
        node_replace_work(node, &work);
        if (kind == PARAMETERS_COPY) node->parameters.copy = *(const CUDA_MEMCPY3D *)parameters;
        if (kind == PARAMETERS_FILL) memcpy(&node->parameters.fill, parameters, sizeof(CUDA_MEMSET_NODE_PARAMS));
    }
    sim_unlock();
    return result;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphKernelNodeSetParams_v2);
    return parameters_set(NULL, node, parameters, PARAMETERS_KERNEL);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *parameters)
{
    SIM_ENTER(cuGraphMemcpyNodeSetParams);
    return parameters_set(NULL, node, parameters, PARAMETERS_COPY);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphMemsetNodeSetParams);
    return parameters_set(NULL, node, parameters, PARAMETERS_FILL);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphHostNodeSetParams);
    return parameters_set(NULL, node, parameters, PARAMETERS_HOST);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphExecKernelNodeSetParams_v2);
    return exec ? parameters_set(exec, node, parameters, PARAMETERS_KERNEL) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *parameters,
                                        CUcontext context)
{
    SIM_ENTER(cuGraphExecMemcpyNodeSetParams);
    (void)context;
    return exec ? parameters_set(exec, node, parameters, PARAMETERS_COPY) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters,
                                        CUcontext context)
{
    SIM_ENTER(cuGraphExecMemsetNodeSetParams);
    (void)context;
    return exec ? parameters_set(exec, node, parameters, PARAMETERS_FILL) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphExecHostNodeSetParams);
    return exec ? parameters_set(exec, node, parameters, PARAMETERS_HOST) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *parameters)
{
    SIM_ENTER(cuGraphMemcpyNodeGetParams);
    if (!parameters || !node_valid(node) || node->type != CU_GRAPH_NODE_TYPE_MEMCPY) return CUDA_ERROR_INVALID_VALUE;
    *parameters = node->parameters.copy;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphMemsetNodeGetParams);
    if (!parameters || !node_valid(node) || node->type != CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
    memcpy(parameters, &node->parameters.fill, sizeof *parameters);
    return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphHostNodeGetParams);
    if (!parameters || !node_valid(node) || node->type != CU_GRAPH_NODE_TYPE_HOST) return CUDA_ERROR_INVALID_VALUE;
    *parameters = (CUDA_HOST_NODE_PARAMS){node->work.host.function, node->work.host.data};
    return CUDA_SUCCESS;
}

/* Graphs made ready to run: instantiate, launch, update, destroy. */
#include "graph.h"
#include "memory.h"

static CUresult instantiated(CUgraphExec *result, CUgraph graph, unsigned long long flags)
{
    if (!result || !graph_valid(graph)) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUgraphExec exec = calloc(1, sizeof *exec);
    *exec = (struct CUgraphExec_st){.magic = EXEC_MAGIC, .references = 1, .flags = flags, .graph = graph_clone(graph)};
    sim_unlock();
    *result = exec;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    SIM_ENTER(cuGraphInstantiateWithFlags);
    return instantiated(exec, graph, flags);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t bytes)
{
    SIM_ENTER(cuGraphInstantiate_v2);
    if (failed) *failed = NULL;
    if (log && bytes) *log = 0;
    return instantiated(exec, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t bytes)
{
    SIM_ENTER(cuGraphInstantiate);
    if (failed) *failed = NULL;
    if (log && bytes) *log = 0;
    return instantiated(exec, graph, 0);
}

static CUresult instantiated_with(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    parameters->hErrNode_out = NULL;
    CUresult result = instantiated(exec, graph, parameters->flags);
    parameters->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return result;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphInstantiateWithParams);
    return instantiated_with(exec, graph, parameters);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    SIM_ENTER(cuGraphInstantiateWithParams_ptsz);
    return instantiated_with(exec, graph, parameters);
}

static bool exec_valid(CUgraphExec exec) { return exec && exec->magic == EXEC_MAGIC; }

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
    SIM_ENTER(cuGraphExecGetFlags);
    if (!flags || !exec_valid(exec)) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

/* A copy node whose registered memory has moved to the device since: the launch fails, and the context with it. */
static bool graph_is_broken(CUgraph graph)
{
    for (CUgraphNode node = graph->nodes; node; node = node->next)
        if (node->child ? graph_is_broken(node->child) : copy_registration_gone(&node->work)) return true;
    return false;
}

static CUresult launched(CUgraphExec exec, CUstream handle, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result && !exec_valid(exec)) result = CUDA_ERROR_INVALID_VALUE;
    if (!result && !stream->capture && graph_is_broken(exec->graph)) {
        context_lose(stream->context, CUDA_ERROR_LAUNCH_FAILED);
        result = stream->context->lost;
    }
    if (!result) {
        /* What is launched is the graph of now: later updates are for later launches. */
        CUgraphExec now = calloc(1, sizeof *now);
        *now = (struct CUgraphExec_st){.magic = EXEC_MAGIC, .references = 1, .graph = graph_clone(exec->graph)};
        struct work work = {.kind = WORK_GRAPH, .graph = {now}};
        result = stream_accept(stream, &work);
    }
    sim_unlock();
    return result;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    SIM_ENTER(cuGraphLaunch);
    return launched(exec, stream, false);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    SIM_ENTER(cuGraphLaunch_ptsz);
    return launched(exec, stream, true);
}

static CUresult uploaded(CUgraphExec exec, CUstream handle, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    if (!result && !exec_valid(exec)) result = CUDA_ERROR_INVALID_VALUE;
    sim_unlock();
    return result;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    SIM_ENTER(cuGraphUpload);
    return uploaded(exec, stream, false);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    SIM_ENTER(cuGraphUpload_ptsz);
    return uploaded(exec, stream, true);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    SIM_ENTER(cuGraphExecDestroy);
    sim_lock();
    CUresult result = exec_valid(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        exec->magic = 0;
        graph_exec_release(exec);
    }
    sim_unlock();
    return result;
}

/* The same nodes in the same order, of the same types; kernels may change their arguments only. */
static CUgraphExecUpdateResult update_check(CUgraph old, CUgraph new)
{
    if (old->count != new->count) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    CUgraphNode b = new->nodes;
    for (CUgraphNode a = old->nodes; a; a = a->next, b = b->next) {
        if (a->type != b->type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (a->before_count != b->before_count) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *information)
{
    SIM_ENTER(cuGraphExecUpdate_v2);
    if (!exec_valid(exec) || !graph_valid(graph) || !information) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    memset(information, 0, sizeof *information);
    information->result = update_check(exec->graph, graph);
    if (information->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        CUgraph old = exec->graph;
        exec->graph = graph_clone(graph);
        /* Nodes are still known by the graph that was instantiated first. */
        CUgraphNode before = old->nodes;
        for (CUgraphNode node = exec->graph->nodes; node; node = node->next, before = before->next)
            node->original = before->original;
        graph_destroy(old);
    }
    sim_unlock();
    return information->result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode original, unsigned enabled)
{
    SIM_ENTER(cuGraphNodeSetEnabled);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    for (CUgraphNode node = exec_valid(exec) ? exec->graph->nodes : NULL; node; node = node->next)
        if (node->original == original) {
            node->disabled = !enabled;
            result = CUDA_SUCCESS;
        }
    sim_unlock();
    return result;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode original, unsigned *enabled)
{
    SIM_ENTER(cuGraphNodeGetEnabled);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    for (CUgraphNode node = exec_valid(exec) && enabled ? exec->graph->nodes : NULL; node; node = node->next)
        if (node->original == original) {
            *enabled = !node->disabled;
            result = CUDA_SUCCESS;
        }
    sim_unlock();
    return result;
}

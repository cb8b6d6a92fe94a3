/* Graphs as structures: nodes, what they wait for, clones, and running them. */
#include "graph.h"
#include "memory.h"

bool graph_valid(CUgraph graph) { return graph && graph->magic == GRAPH_MAGIC; }
bool node_valid(CUgraphNode node) { return node && node->magic == NODE_MAGIC; }

CUgraph graph_create(void)
{
    CUgraph graph = calloc(1, sizeof *graph);
    graph->magic = GRAPH_MAGIC;
    graph->id = sim.next_id++;
    graph->last = &graph->nodes;
    return graph;
}

static void node_free(CUgraphNode node)
{
    work_release(&node->work);
    if (node->child) graph_destroy(node->child);
    free(node->before);
    free(node->argument_pointers);
    node->magic = 0;
    free(node);
}

void graph_destroy(CUgraph graph)
{
    for (CUgraphNode node = graph->nodes, next; node; node = next) {
        next = node->next;
        node_free(node);
    }
    graph->magic = 0;
    free(graph);
}

CUgraphNode graph_add(CUgraph graph, CUgraphNodeType type, struct work *work, const CUgraphNode *before, size_t count)
{
    CUgraphNode node = calloc(1, sizeof *node);
    node->magic = NODE_MAGIC;
    node->graph = graph;
    node->type = type;
    node->work = *work;
    node->before = malloc((count + 1) * sizeof *node->before);
    if (count) memcpy(node->before, before, count * sizeof *before);
    node->before_count = count;
    *graph->last = node;
    graph->last = &node->next;
    graph->count++;
    return node;
}

void node_replace_work(CUgraphNode node, const struct work *work)
{
    work_release(&node->work);
    free(node->argument_pointers);
    node->argument_pointers = NULL;
    node->work = *work;
}

bool node_add_dependency(CUgraphNode node, CUgraphNode before)
{
    for (size_t i = 0; i < node->before_count; i++)
        if (node->before[i] == before) return false;
    node->before = realloc(node->before, (node->before_count + 1) * sizeof *node->before);
    node->before[node->before_count++] = before;
    return true;
}

CUgraph graph_clone(CUgraph graph)
{
    CUgraph clone = graph_create();
    for (CUgraphNode node = graph->nodes; node; node = node->next) {
        struct work work;
        work_copy(&work, &node->work);
        CUgraphNode copy = graph_add(clone, node->type, &work, NULL, 0);
        copy->original = node;
        copy->parameters = node->parameters;
        copy->disabled = node->disabled;
        if (node->child) copy->child = graph_clone(node->child);
    }
    for (CUgraphNode copy = clone->nodes; copy; copy = copy->next)
        for (size_t i = 0; i < copy->original->before_count; i++)
            for (CUgraphNode other = clone->nodes; other; other = other->next)
                if (other->original == copy->original->before[i]) node_add_dependency(copy, other);
    return clone;
}

/* Nodes run one after another, in an order that their dependencies allow. */
static CUresult graph_run(CUgraph graph, CUcontext context)
{
    size_t count = graph->count, done = 0, i;
    CUgraphNode nodes[count + 1];
    bool finished[count + 1];
    i = 0;
    for (CUgraphNode node = graph->nodes; node; node = node->next, i++) {
        nodes[i] = node;
        finished[i] = false;
    }
    while (done < count) {
        size_t before = done;
        for (i = 0; i < count; i++) {
            bool ready = !finished[i];
            for (size_t k = 0; ready && k < nodes[i]->before_count; k++)
                for (size_t other = 0; other < count; other++)
                    if (nodes[other] == nodes[i]->before[k] && !finished[other]) ready = false;
            if (!ready) continue;
            CUresult result = CUDA_SUCCESS;
            if (nodes[i]->child)
                result = graph_run(nodes[i]->child, context);
            else if (!nodes[i]->disabled)
                result = work_run(&nodes[i]->work, context, true);
            if (result) return result;
            finished[i] = true;
            done++;
        }
        if (done == before) return CUDA_ERROR_UNKNOWN;
    }
    return CUDA_SUCCESS;
}

CUresult graph_exec_run(CUgraphExec exec, CUcontext context) { return graph_run(exec->graph, context); }
void graph_exec_retain(CUgraphExec exec) { exec->references++; }

void graph_exec_release(CUgraphExec exec)
{
    if (--exec->references) return;
    graph_destroy(exec->graph);
    free(exec);
}

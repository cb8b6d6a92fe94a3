/* Graphs: nodes of work and what each waits for. Structures of graphs are guarded by the lock. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "stream.h"

#define GRAPH_MAGIC 0x47525030u
#define NODE_MAGIC  0x4e4f4430u
#define EXEC_MAGIC  0x45584530u

struct CUgraphNode_st {
    uint32_t magic;
    CUgraph graph;
    CUgraphNodeType type;
    struct work work;
    CUgraph child; /* of a child graph node, owned */
    union {        /* as the program gave them, for the GetParams calls */
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS_v2 fill;
    } parameters;
    void **argument_pointers; /* of a kernel node, once asked for; owned */
    CUgraphNode original;     /* in a clone: the node it was made from */
    bool disabled;
    CUgraphNode *before; /* the nodes it waits for */
    size_t before_count;
    struct CUgraphNode_st *next;
};
struct CUgraph_st {
    uint32_t magic;
    uint64_t id;
    CUgraphNode nodes, *last; /* in order of creation */
    size_t count;
};
struct CUgraphExec_st {
    uint32_t magic;
    unsigned references; /* the handle and each launch in flight */
    unsigned long long flags;
    CUgraph graph; /* a clone */
};

/* Runs the nodes, each after those it waits for; without the lock. */
CUresult graph_exec_run(CUgraphExec exec, CUcontext context);
/* locked */
void graph_exec_retain(CUgraphExec exec);
void graph_exec_release(CUgraphExec exec);
bool graph_valid(CUgraph graph);
bool node_valid(CUgraphNode node);
CUgraph graph_create(void);
void graph_destroy(CUgraph graph);
CUgraph graph_clone(CUgraph graph);
/* Takes the work over. */
CUgraphNode graph_add(CUgraph graph, CUgraphNodeType type, struct work *work, const CUgraphNode *before, size_t count);
void node_replace_work(CUgraphNode node, const struct work *work);
bool node_add_dependency(CUgraphNode node, CUgraphNode before);

#endif

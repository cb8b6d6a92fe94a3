/* Nodes from the program's parameters. All locked. */
#ifndef SIM_GRAPH_NODE_H
#define SIM_GRAPH_NODE_H

#include "graph.h"

/* Work as the parameters ask, or why not. */
CUresult node_host_work(const CUDA_HOST_NODE_PARAMS *parameters, struct work *work);
CUresult node_kernel_work(const CUDA_KERNEL_NODE_PARAMS *parameters, struct work *work);
CUresult node_copy_work(const CUDA_MEMCPY3D *parameters, struct work *work);
CUresult node_fill_work(const CUDA_MEMSET_NODE_PARAMS *parameters, struct work *work);
/* Checks a new node's place, then adds it; takes the work over. */
CUresult node_add(CUgraphNode *result, CUgraph graph, CUgraphNodeType type, struct work *work,
                  const CUgraphNode *before, size_t count);
/* The copy of a graph's node in what was instantiated from the graph; NULL if there is none. */
CUgraphNode node_in_exec(CUgraph graph, CUgraphNode original);

#endif

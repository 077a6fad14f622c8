/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the graph of a program: made once, explicitly, with the addresses of the first launch; after that only
 * nodes whose parameters changed are updated. */
#include "cuda/program.h"

#include <string.h>

/* A chain in the order of the steps. From sm_90 on an edge is programmatic: a kernel starts when the one before it
 * triggers, fetches its constants, and waits for that one's end; every kernel of a chain waits, so the order of all is
 * kept. This is the one place that decides. */
uint32_t program_edges(const program *p, const kernel_target *t, program_edge *out)
{
    for (uint32_t i = 1; i < p->node_count; i++)
        out[i - 1] = (program_edge){ .from = i - 1, .to = i, .is_programmatic = t->isa >= 90 };
    return p->node_count ? p->node_count - 1 : 0;
}

static CUDA_KERNEL_NODE_PARAMS node_params(program_node *n)
{
    return (CUDA_KERNEL_NODE_PARAMS){ .func = n->code->function,
                                      .gridDimX = n->grid[0],
                                      .gridDimY = n->grid[1],
                                      .gridDimZ = n->grid[2],
                                      .blockDimX = n->block,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .sharedMemBytes = n->shared,
                                      .kernelParams = n->param };
}

static sinter_status add_node(env *e, device *d, program *p, program_node *n)
{
    const CUDA_KERNEL_NODE_PARAMS params = node_params(n);
    DEVICE_TRY(e, d, cuGraphAddKernelNode(&n->handle, p->graph, NULL, 0, &params), "adding a kernel to a graph");
    if (n->cluster == 1) return SINTER_OK;
    const CUlaunchAttributeValue value = { .clusterDim = { n->cluster, 1, 1 } };
    DEVICE_TRY(e, d, cuGraphKernelNodeSetAttribute(n->handle, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value),
               "giving a kernel of a graph its clusters");
    return SINTER_OK;
}

static sinter_status add_edges(env *e, device *d, const program *p, arena *t)
{
    program_edge *edge = ARENA_NEW(t, program_edge, p->node_count);
    CUgraphNode *from = ARENA_NEW(t, CUgraphNode, p->node_count), *to = ARENA_NEW(t, CUgraphNode, p->node_count);
    CUgraphEdgeData *data = ARENA_NEW(t, CUgraphEdgeData, p->node_count);
    if (!edge || !from || !to || !data) return FAIL_MEMORY(e, "a graph");
    const uint32_t count = program_edges(p, &d->target, edge);
    for (uint32_t i = 0; i < count; i++) {
        from[i] = p->node[edge[i].from].handle;
        to[i] = p->node[edge[i].to].handle;
        if (edge[i].is_programmatic)
            data[i] = (CUgraphEdgeData){ .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                         .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC };
    }
    if (count) DEVICE_TRY(e, d, cuGraphAddDependencies(p->graph, from, to, data, count), "ordering a graph");
    return SINTER_OK;
}

static sinter_status make(env *e, device *d, program *p, CUstream upload)
{
    DEVICE_TRY(e, d, cuGraphCreate(&p->graph, 0), "making a graph");
    for (uint32_t i = 0; i < p->node_count; i++)
        TRY(NOTE(e, add_node(e, d, p, &p->node[i]), "making a graph: kernel '%s'", p->name[p->node[i].step]));
    arena t;
    arena_init(&t, e);
    const sinter_status s = add_edges(e, d, p, &t);
    arena_deinit(&t);
    TRY(s);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = { .flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, .hUploadStream = upload };
    DEVICE_TRY(e, d, cuGraphInstantiateWithParams(&p->exec, p->graph, &params), "instantiating a graph");
    return SINTER_OK;
}

sinter_status program_graph_make(env *e, device *d, program *p, CUstream upload)
{
    const sinter_status s = make(e, d, p, upload);
    if (s != SINTER_OK) program_graph_drop(d, p);
    return s;
}

sinter_status program_graph_update(env *e, device *d, program *p, program_node *n)
{
    const CUDA_KERNEL_NODE_PARAMS params = node_params(n);
    DEVICE_TRY(e, d, cuGraphExecKernelNodeSetParams(p->exec, n->handle, &params), "updating a graph");
    return SINTER_OK;
}

/* A graph that is running ends in its own time: the driver frees it then. */
void program_graph_drop(device *d, program *p)
{
    if (p->exec) (void)d->driver.cuGraphExecDestroy(p->exec);
    if (p->graph) (void)d->driver.cuGraphDestroy(p->graph);
    p->exec = NULL;
    p->graph = NULL;
}

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

static sinter_status add_kernel(env *e, device *d, const program *p, CUgraph graph, program_node *n, CUgraphNode *out)
{
    const CUDA_KERNEL_NODE_PARAMS params = node_params(n);
    CUresult r = d->driver.cuGraphAddKernelNode(out, graph, NULL, 0, &params);
    const CUlaunchAttributeValue value = { .clusterDim = { n->cluster, 1, 1 } };
    if (r == CUDA_SUCCESS && n->cluster > 1)
        r = d->driver.cuGraphKernelNodeSetAttribute(*out, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
    if (r == CUDA_SUCCESS) return SINTER_OK;
    return NOTE(e, cuda_device_fail(e, d, r, "adding a kernel to a graph"), "making a graph: kernel '%s'",
                p->name[n->step]);
}

static const CUgraphEdgeData programmatic = { .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                              .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC };

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
        if (edge[i].is_programmatic) data[i] = programmatic;
    }
    if (count) DEVICE_TRY(e, d, cuGraphAddDependencies(p->graph, from, to, data, count), "ordering a graph");
    return SINTER_OK;
}

static sinter_status make(env *e, device *d, program *p, CUstream upload)
{
    DEVICE_TRY(e, d, cuGraphCreate(&p->graph, 0), "making a graph");
    for (uint32_t i = 0; i < p->node_count; i++) TRY(add_kernel(e, d, p, p->graph, &p->node[i], &p->node[i].handle));
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

/* ---- a graph with a clock ---- */

/* Events between the steps; inside a step edges are those of the program. */
static sinter_status fill_timed(env *e, device *d, program *p, CUgraph graph, arena *t)
{
    const uint32_t room = p->node_count + p->step_count + 1;
    CUgraphNode *node = ARENA_NEW(t, CUgraphNode, room);
    CUgraphEdgeData *into = ARENA_NEW(t, CUgraphEdgeData, room);
    if (!node || !into) return FAIL_MEMORY(e, "a graph");
    uint32_t count = 0, at = 0;
    DEVICE_TRY(e, d, cuGraphAddEventRecordNode(&node[count++], graph, NULL, 0, p->event[0]), "adding an event");
    for (uint32_t i = 0; i < p->step_count; i++) {
        for (bool follows = false; at < p->node_count && p->node[at].step == i; at++, follows = true) {
            if (follows && d->target.isa >= 90) into[count] = programmatic;
            TRY(add_kernel(e, d, p, graph, &p->node[at], &node[count++]));
        }
        DEVICE_TRY(e, d, cuGraphAddEventRecordNode(&node[count++], graph, NULL, 0, p->event[i + 1]), "adding an event");
    }
    if (count > 1)
        DEVICE_TRY(e, d, cuGraphAddDependencies(graph, node, node + 1, into + 1, count - 1), "ordering a graph");
    return SINTER_OK;
}

static sinter_status run_timed(env *e, device *d, program *p, CUstream s, CUgraph graph, CUgraphExec *exec)
{
    arena t;
    arena_init(&t, e);
    const sinter_status filled = fill_timed(e, d, p, graph, &t);
    arena_deinit(&t);
    TRY(filled);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = { .flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, .hUploadStream = s };
    DEVICE_TRY(e, d, cuGraphInstantiateWithParams(exec, graph, &params), "instantiating a graph");
    DEVICE_TRY(e, d, cuGraphLaunch(*exec, s), "launching a graph");
    DEVICE_TRY(e, d, cuStreamSynchronize(s), "waiting for the device");
    return SINTER_OK;
}

sinter_status program_graph_time(env *e, device *d, program *p, CUstream s)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    DEVICE_TRY(e, d, cuGraphCreate(&graph, 0), "making a graph");
    const sinter_status status = run_timed(e, d, p, s, graph, &exec);
    if (exec) (void)d->driver.cuGraphExecDestroy(exec);
    (void)d->driver.cuGraphDestroy(graph);
    return status;
}

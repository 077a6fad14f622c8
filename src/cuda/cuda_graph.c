/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_graph.c - the graph of a program: made once, explicitly, with the addresses of the first launch; after that only
 * nodes whose parameters changed are updated. */
#include "core/order.h"
#include "cuda/program.h"

#include <string.h>

/* ---- what waits for what ---- */

/* Where a launch finds the operands that it touches, at the addresses that the slots have now. */
static order_touch *touches(const program *p, const program_node *n, order_touch *next, view *v)
{
    for (uint32_t i = 0; i < n->touch_count; i++) {
        const program_extent *x = &p->extent[n->touch[i].slot];
        const uintptr_t at = (uintptr_t)p->slot[n->touch[i].slot].now;
        v[n->touch[i].slot].data = (void *)at;
        *next++ = (order_touch){ .v = x->is_vague ? NULL : &v[n->touch[i].slot],
                                 .begin = at + x->begin,
                                 .end = at + x->end,
                                 .is_written = n->touch[i].is_written };
    }
    return next;
}

/* It leaves no multiprocessor to another kernel: side by side both take as long as one after the other. */
static bool fills_device(const program_node *n, const kernel_target *t)
{
    return (uint64_t)n->grid[0] * n->grid[1] * n->grid[2] >= t->units;
}

static sinter_status find_edges(env *e, const program *p, const kernel_target *t, program_order order, arena *a,
                                order_edges *out)
{
    size_t count = 0;
    for (uint32_t i = 0; i < p->node_count; i++) count += p->node[i].touch_count;
    order_work *work = ARENA_NEW(a, order_work, p->node_count);
    order_touch *touch = ARENA_NEW(a, order_touch, count), *next = touch;
    view *v = ARENA_NEW(a, view, p->slot_count);
    if (!work || !v || (count && !touch)) return FAIL_MEMORY(e, "a graph");
    for (uint32_t i = 0; i < p->slot_count; i++) v[i] = p->extent[i].v;
    for (uint32_t i = 0; i < p->node_count; i++) {
        const program_node *n = &p->node[i];
        work[i] = (order_work){ .touch = next,
                                .count = n->touch_count,
                                .keeps_place = order == ORDER_SMALL && fills_device(n, t) };
        next = touches(p, n, next, v);
    }
    return order_find(e, a, work, p->node_count, out);
}

/* The one place that decides: a chain in the order of the steps, or a launch waits for those alone that touch what it
 * touches, and by way of these for all that they waited for.
 *
 * From sm_90 on every edge is programmatic, also where several leave a kernel or meet in one. An edge speaks for
 * itself: a kernel may start once all blocks of each kernel before it have triggered, which each of them does when it
 * likes, and its wait lasts until each of them has ended and what it wrote can be seen. A kernel reads nothing but
 * constants and writes nothing before that wait, so it does not matter how early it starts. And every kernel waits, so
 * one that has ended has seen the end of those before it: edges that follow from others can be left out as they could
 * be with plain ones, though a kernel may start before those further back have ended. None can keep another from
 * running, as what has started waits only for kernels all of whose blocks have started, too. */
sinter_status program_edges(env *e, const program *p, const kernel_target *t, program_order order, arena *a,
                            program_edge **out, uint32_t *count)
{
    const bool is_chain = order == ORDER_CHAIN || p->node_count > ORDER_WORKS_MAX;
    order_edges found = { 0 };
    if (!is_chain) TRY(find_edges(e, p, t, order, a, &found));
    *count = is_chain ? p->node_count - (p->node_count > 0) : found.count;
    *out = ARENA_NEW(a, program_edge, *count);
    if (*count && !*out) return FAIL_MEMORY(e, "a graph");
    for (uint32_t i = 0; i < *count; i++)
        (*out)[i] = (program_edge){ .from = is_chain ? i : found.at[i].from,
                                    .to = is_chain ? i + 1 : found.at[i].to,
                                    .is_programmatic = t->isa >= 90 };
    return SINTER_OK;
}

static bool edges_chain(const program *p, const program_edge *edge, uint32_t count)
{
    bool is = count + 1 == p->node_count;
    for (uint32_t i = 0; i < count && is; i++) is = edge[i].from == i && edge[i].to == i + 1;
    return is;
}

static bool meet(const program_extent *x, uint64_t x_at, const program_extent *y, uint64_t y_at)
{
    return (uintptr_t)x_at + x->begin < (uintptr_t)y_at + y->end &&
           (uintptr_t)y_at + y->begin < (uintptr_t)x_at + x->end;
}

/* Only what the caller gives moves, and values in one storage move together: what lies apart before and after, or moves
 * alike, is as it was. */
bool program_edges_may_change(const program *p, const uint64_t *next)
{
    for (uint32_t i = SLOT_WORKSPACE; i < p->slot_count; i++) {
        const program_extent *x = &p->extent[i];
        const uint64_t old = p->slot[i].now, by = next[i] - old;
        if (!by || !x->is_touched) continue;
        for (uint32_t k = 0; k < p->slot_count; k++) {
            const program_extent *y = &p->extent[k];
            if (!y->is_touched || (!x->is_written && !y->is_written) || next[k] - p->slot[k].now == by) continue;
            if (meet(x, old, y, p->slot[k].now) || meet(x, next[i], y, next[k])) return true;
        }
    }
    return false;
}

/* ---- the graph ---- */

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

static sinter_status add_edges(env *e, device *d, program *p, arena *t)
{
    program_edge *edge;
    uint32_t count;
    TRY(program_edges(e, p, &d->target, p->order, t, &edge, &count));
    CUgraphNode *from = ARENA_NEW(t, CUgraphNode, count), *to = ARENA_NEW(t, CUgraphNode, count);
    CUgraphEdgeData *data = ARENA_NEW(t, CUgraphEdgeData, count);
    if (count && (!from || !to || !data)) return FAIL_MEMORY(e, "a graph");
    for (uint32_t i = 0; i < count; i++) {
        from[i] = p->node[edge[i].from].handle;
        to[i] = p->node[edge[i].to].handle;
        if (edge[i].is_programmatic) data[i] = programmatic;
    }
    p->has_branches = !edges_chain(p, edge, count);
    if (count) DEVICE_TRY(e, d, cuGraphAddDependencies(p->graph, from, to, data, count), "ordering a graph");
    return SINTER_OK;
}

/* Without CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD: the first launch uploads the graph. A launch that followed an upload at
 * once never ended where the graph has many branches and other processes share the GPU (half of the runs on an H200,
 * driver 580; with plain edges, too). */
static sinter_status instantiate(env *e, device *d, CUgraph graph, CUgraphExec *exec)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = { 0 };
    DEVICE_TRY(e, d, cuGraphInstantiateWithParams(exec, graph, &params), "instantiating a graph");
    return SINTER_OK;
}

static sinter_status make(env *e, device *d, program *p)
{
    DEVICE_TRY(e, d, cuGraphCreate(&p->graph, 0), "making a graph");
    for (uint32_t i = 0; i < p->node_count; i++) TRY(add_kernel(e, d, p, p->graph, &p->node[i], &p->node[i].handle));
    arena t;
    arena_init(&t, e);
    const sinter_status s = add_edges(e, d, p, &t);
    arena_deinit(&t);
    TRY(s);
    return instantiate(e, d, p->graph, &p->exec);
}

sinter_status program_graph_make(env *e, device *d, program *p)
{
    const sinter_status s = make(e, d, p);
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
    TRY(instantiate(e, d, graph, exec));
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

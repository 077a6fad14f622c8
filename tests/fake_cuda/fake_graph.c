/* SPDX-License-Identifier: Apache-2.0 */
/* fake_graph.c - graphs of kernels: built, ordered, instantiated as a copy, updated node by node, launched in any order
 * that their edges permit. */
#include "fake_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct node {
    fake_object o;
    fake_work work; /* no kernel: an event is recorded */
    CUevent event;
    void *param[FAKE_PARAMS];
    uint8_t *bytes; /* what param points to */
} node;

typedef struct graph {
    fake_object o;
    node **node;
    fake_edge_info *edge;
    uint32_t node_count, edge_count;
} graph;

/* nodes in an order in which they can run; handle: the node of the graph that each is of */
typedef struct exec {
    fake_object o;
    node **node;
    const node **handle;
    uint32_t count;
    uint32_t side; /* kernels that run beside others: all but those of the longest way through */
} exec;

/* The last graph that was instantiated. */
static struct {
    pthread_mutex_t lock;
    uint32_t node_count, edge_count;
    fake_edge_info *edge;
} last = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint32_t fake_graph_nodes(void)
{
    return last.node_count;
}

uint32_t fake_graph_edges(fake_edge_info *out, uint32_t room)
{
    for (uint32_t i = 0; i < last.edge_count && i < room; i++) out[i] = last.edge[i];
    return last.edge_count;
}

void fake_graph_reset(void)
{
    pthread_mutex_lock(&last.lock);
    free(last.edge);
    last.edge = NULL;
    last.node_count = last.edge_count = 0;
    pthread_mutex_unlock(&last.lock);
}

CUresult fake_cuGraphCreate(CUgraph *out, unsigned flags);
CUresult fake_cuGraphDestroy(CUgraph handle);
CUresult fake_cuGraphAddKernelNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count,
                                   const CUDA_KERNEL_NODE_PARAMS *params);
CUresult fake_cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count,
                                   const CUDA_MEMCPY3D *params, CUcontext context);
CUresult fake_cuGraphAddMemsetNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count,
                                   const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context);
CUresult fake_cuGraphAddEmptyNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count);
CUresult fake_cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count,
                                        CUevent event);
CUresult fake_cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                     const CUgraphEdgeData *data, size_t count);
CUresult fake_cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count);
CUresult fake_cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUlaunchAttributeID which,
                                            const CUlaunchAttributeValue *value);
CUresult fake_cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS *params);
CUresult fake_cuGraphUpload(CUgraphExec handle, CUstream stream);
CUresult fake_cuGraphLaunch(CUgraphExec handle, CUstream stream);
CUresult fake_cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode of, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult fake_cuGraphExecMemcpyNodeSetParams(CUgraphExec handle, CUgraphNode of, const CUDA_MEMCPY3D *params,
                                             CUcontext context);
CUresult fake_cuGraphExecUpdate(CUgraphExec handle, CUgraph from, CUgraphExecUpdateResultInfo *info);
CUresult fake_cuGraphExecDestroy(CUgraphExec handle);

/* ---- building ---- */

CUresult fake_cuGraphCreate(CUgraph *out, unsigned flags)
{
    CALL("cuGraphCreate");
    if (flags) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a graph with flags %u", flags);
    *out = fake_make(FAKE_GRAPH, sizeof(graph));
    return CUDA_SUCCESS;
}

static void drop_node(node *n)
{
    free(n->bytes);
    fake_drop(n);
}

CUresult fake_cuGraphDestroy(CUgraph handle)
{
    const CUresult injected = fake_enter("cuGraphDestroy");
    graph *g = (graph *)(void *)handle;
    if (!fake_is(g, FAKE_GRAPH)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no graph is destroyed");
    for (uint32_t i = 0; i < g->node_count; i++) drop_node(g->node[i]);
    free(g->node);
    free(g->edge);
    fake_drop(g);
    return injected;
}

static CUresult fill(node *n, const CUDA_KERNEL_NODE_PARAMS *p, uint32_t cluster)
{
    if (p->extra || (p->func && p->kern)) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a node with extra parameters");
    const fake_work w = { .kernel = p->func ? (fake_kernel *)(void *)p->func : (fake_kernel *)(void *)p->kern,
                          .grid = { p->gridDimX, p->gridDimY, p->gridDimZ },
                          .block = { p->blockDimX, p->blockDimY, p->blockDimZ },
                          .cluster = cluster,
                          .shared = p->sharedMemBytes };
    const CUresult r = fake_check_work(&w);
    if (r != CUDA_SUCCESS) return r;
    free(n->bytes);
    n->work = w;
    n->bytes = fake_copy_params(w.kernel->image, p->kernelParams, n->param);
    return CUDA_SUCCESS;
}

static CUresult append(graph *g, node *n, CUgraphNode *out, const CUgraphNode *after, size_t after_count)
{
    g->node = realloc(g->node, (g->node_count + 1) * sizeof(node *));
    if (!g->node) abort();
    g->node[g->node_count++] = n;
    *out = (CUgraphNode)(void *)n;
    for (size_t i = 0; i < after_count; i++) {
        const CUresult edge = fake_cuGraphAddDependencies((CUgraph)(void *)g, &after[i], out, NULL, 1);
        if (edge != CUDA_SUCCESS) return edge;
    }
    return CUDA_SUCCESS;
}

CUresult fake_cuGraphAddKernelNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count,
                                   const CUDA_KERNEL_NODE_PARAMS *params)
{
    CALL("cuGraphAddKernelNode");
    graph *g = (graph *)(void *)handle;
    if (!fake_is(g, FAKE_GRAPH)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "a node of what is no graph");
    if (fake_current() < 0) return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "a node is added without a context");
    node *n = fake_make(FAKE_NODE, sizeof *n);
    const CUresult r = fill(n, params, 1);
    if (r != CUDA_SUCCESS) {
        drop_node(n);
        return r;
    }
    return append(g, n, out, after, after_count);
}

CUresult fake_cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count,
                                        CUevent event)
{
    CALL("cuGraphAddEventRecordNode");
    graph *g = (graph *)(void *)handle;
    if (!fake_is(g, FAKE_GRAPH) || !fake_is(event, FAKE_EVENT))
        return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "an event in a graph where one of them is none");
    node *n = fake_make(FAKE_NODE, sizeof *n);
    n->event = event;
    return append(g, n, out, after, after_count);
}

CUresult fake_cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count,
                                   const CUDA_MEMCPY3D *params, CUcontext context)
{
    CALL("cuGraphAddMemcpyNode");
    (void)out, (void)handle, (void)after, (void)after_count, (void)params, (void)context;
    return fake_wrong(CUDA_ERROR_NOT_SUPPORTED, "a copy in a graph breaks its chain of kernels");
}

CUresult fake_cuGraphAddMemsetNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count,
                                   const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    CALL("cuGraphAddMemsetNode");
    (void)out, (void)handle, (void)after, (void)after_count, (void)params, (void)context;
    return fake_wrong(CUDA_ERROR_NOT_SUPPORTED, "a memset in a graph breaks its chain of kernels");
}

CUresult fake_cuGraphAddEmptyNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *after, size_t after_count)
{
    CALL("cuGraphAddEmptyNode");
    (void)out, (void)handle, (void)after, (void)after_count;
    return fake_wrong(CUDA_ERROR_NOT_SUPPORTED, "empty nodes are not known here");
}

/* -1: not of this graph */
static int64_t index_of(const graph *g, CUgraphNode n)
{
    for (uint32_t i = 0; i < g->node_count; i++)
        if ((const void *)g->node[i] == (const void *)n) return i;
    return -1;
}

CUresult fake_cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                     const CUgraphEdgeData *data, size_t count)
{
    CALL("cuGraphAddDependencies");
    graph *g = (graph *)(void *)handle;
    if (!fake_is(g, FAKE_GRAPH)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "edges of what is no graph");
    for (size_t i = 0; i < count; i++) {
        const int64_t a = index_of(g, from[i]), b = index_of(g, to[i]);
        const CUgraphEdgeData none = { 0 }, *d = data ? &data[i] : &none;
        const bool is_programmatic = d->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        if (a < 0 || b < 0 || a == b) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "an edge between unknown nodes");
        if (d->type > 1 || d->to_port || d->from_port > 2 || is_programmatic != (d->from_port != 0))
            return fake_wrong(CUDA_ERROR_INVALID_VALUE, "an edge of type %u from port %u", d->type, d->from_port);
        if (is_programmatic && fake_sm() < 90)
            return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a programmatic edge on sm_%d", fake_sm());
        if (is_programmatic && (g->node[a]->event || g->node[b]->event))
            return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a programmatic edge at what is no kernel");
        g->edge = realloc(g->edge, (g->edge_count + 1) * sizeof *g->edge);
        if (!g->edge) abort();
        g->edge[g->edge_count++] = (fake_edge_info){ (uint32_t)a, (uint32_t)b, *d };
    }
    return CUDA_SUCCESS;
}

CUresult fake_cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
    CALL("cuGraphGetNodes");
    const graph *g = (const graph *)(const void *)handle;
    if (!fake_is(g, FAKE_GRAPH)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "nodes of what is no graph");
    for (size_t i = 0; nodes && i < *count && i < g->node_count; i++) nodes[i] = (CUgraphNode)(void *)g->node[i];
    *count = g->node_count;
    return CUDA_SUCCESS;
}

CUresult fake_cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUlaunchAttributeID which,
                                            const CUlaunchAttributeValue *value)
{
    CALL("cuGraphKernelNodeSetAttribute");
    node *n = (node *)(void *)handle;
    if (!fake_is(n, FAKE_NODE) || n->event)
        return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "an attribute of what is no kernel's node");
    if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY) return CUDA_SUCCESS;
    if (which != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || value->clusterDim.y != 1 || value->clusterDim.z != 1)
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "attribute %d of a node", (int)which);
    n->work.cluster = value->clusterDim.x;
    return fake_check_work(&n->work);
}

/* ---- instantiating ---- */

static uint32_t random_below(uint32_t *state, uint32_t count)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*state >> 8) * count >> 24);
}

/* The nodes in an order that the edges permit, chosen at random: what works in one order only lacks an edge. False:
 * there is a cycle. */
static bool sort(const graph *g, uint32_t *order)
{
    uint32_t done = 0, seed = fake_order();
    uint32_t *before = calloc(g->node_count + 1, sizeof *before), *ready = calloc(g->node_count + 1, sizeof *ready);
    if (!before || !ready) abort();
    for (uint32_t k = 0; k < g->edge_count; k++) before[g->edge[k].to]++;
    for (bool more = true; more;) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < g->node_count; i++)
            if (before[i] == 0) ready[count++] = i;
        more = count > 0;
        if (!more) break;
        const uint32_t i = ready[seed ? random_below(&seed, count) : 0];
        before[i] = UINT32_MAX;
        order[done++] = i;
        for (uint32_t k = 0; k < g->edge_count; k++)
            if (g->edge[k].from == i) before[g->edge[k].to]--;
    }
    free(before);
    free(ready);
    return done == g->node_count;
}

/* Kernels beside the longest way through the graph; `order` is one in which they can run. */
static uint32_t beside(const graph *g, const uint32_t *order)
{
    uint32_t *length = calloc(g->node_count + 1, sizeof *length), longest = 0, kernels = 0;
    if (!length) abort();
    for (uint32_t i = 0; i < g->node_count; i++) {
        const uint32_t at = order[i];
        for (uint32_t k = 0; k < g->edge_count; k++)
            if (g->edge[k].to == at && length[g->edge[k].from] > length[at]) length[at] = length[g->edge[k].from];
        length[at] += !g->node[at]->event;
        kernels += !g->node[at]->event;
        if (length[at] > longest) longest = length[at];
    }
    free(length);
    return kernels - longest;
}

static bool has_programmatic(const graph *g, uint32_t to)
{
    for (uint32_t k = 0; k < g->edge_count; k++)
        if (g->edge[k].to == to && g->edge[k].data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) return true;
    return false;
}

static void remember(const graph *g)
{
    pthread_mutex_lock(&last.lock);
    free(last.edge);
    last.edge = malloc((g->edge_count + 1) * sizeof *last.edge);
    if (!last.edge) abort();
    if (g->edge_count) memcpy(last.edge, g->edge, g->edge_count * sizeof *last.edge);
    last.node_count = g->node_count;
    last.edge_count = g->edge_count;
    pthread_mutex_unlock(&last.lock);
}

CUresult fake_cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    CALL("cuGraphInstantiateWithParams");
    const graph *g = (const graph *)(const void *)handle;
    if (!fake_is(g, FAKE_GRAPH)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no graph is instantiated");
    if (params->flags) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a graph is instantiated with flags");
    uint32_t *order = calloc(g->node_count + 1, sizeof *order);
    if (!order) abort();
    if (!sort(g, order)) {
        free(order);
        params->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a graph has a cycle");
    }
    exec *x = fake_make(FAKE_EXEC, sizeof *x);
    x->count = g->node_count;
    x->node = calloc(x->count + 1, sizeof *x->node);
    x->handle = calloc(x->count + 1, sizeof *x->handle);
    if (!x->node || !x->handle) abort();
    for (uint32_t i = 0; i < x->count; i++) {
        const node *from = g->node[order[i]];
        node *n = x->node[i] = fake_make(FAKE_NODE, sizeof *n);
        n->work = from->work;
        n->event = from->event;
        x->handle[i] = from;
        if (n->event) continue;
        n->work.is_programmatic = has_programmatic(g, order[i]);
        n->bytes = fake_copy_params(n->work.kernel->image, (void **)(uintptr_t)from->param, n->param);
    }
    x->side = beside(g, order);
    free(order);
    remember(g);
    params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    *out = (CUgraphExec)(void *)x;
    return CUDA_SUCCESS;
}

CUresult fake_cuGraphUpload(CUgraphExec handle, CUstream stream)
{
    CALL("cuGraphUpload");
    (void)stream;
    return fake_is(handle, FAKE_EXEC) ? CUDA_SUCCESS
                                      : fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is not instantiated is uploaded");
}

CUresult fake_cuGraphExecDestroy(CUgraphExec handle)
{
    const CUresult injected = fake_enter("cuGraphExecDestroy");
    exec *x = (exec *)(void *)handle;
    if (!fake_is(x, FAKE_EXEC)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is not instantiated is destroyed");
    for (uint32_t i = 0; i < x->count; i++) drop_node(x->node[i]);
    free(x->node);
    free(x->handle);
    fake_drop(x);
    return injected;
}

/* ---- updating and launching ---- */

CUresult fake_cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode of, const CUDA_KERNEL_NODE_PARAMS *params)
{
    CALL("cuGraphExecKernelNodeSetParams");
    exec *x = (exec *)(void *)handle;
    if (!fake_is(x, FAKE_EXEC) || !fake_is(of, FAKE_NODE))
        return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is not instantiated is updated");
    for (uint32_t i = 0; i < x->count; i++) {
        if ((const void *)x->handle[i] != (const void *)of) continue;
        node *n = x->node[i];
        if ((void *)n->work.kernel != (void *)params->func)
            return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a node gets another function");
        const bool is_programmatic = n->work.is_programmatic;
        const CUresult r = fill(n, params, n->work.cluster);
        n->work.is_programmatic = is_programmatic;
        return r;
    }
    return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a node of another graph is updated");
}

CUresult fake_cuGraphExecMemcpyNodeSetParams(CUgraphExec handle, CUgraphNode of, const CUDA_MEMCPY3D *params,
                                             CUcontext context)
{
    CALL("cuGraphExecMemcpyNodeSetParams");
    (void)handle, (void)of, (void)params, (void)context;
    return fake_wrong(CUDA_ERROR_NOT_SUPPORTED, "there are no copies in graphs here");
}

CUresult fake_cuGraphExecUpdate(CUgraphExec handle, CUgraph from, CUgraphExecUpdateResultInfo *info)
{
    CALL("cuGraphExecUpdate");
    (void)handle, (void)from;
    info->result = 1;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult fake_cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
    CALL("cuGraphLaunch");
    const exec *x = (const exec *)(const void *)handle;
    if (!fake_is(x, FAKE_EXEC)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is not instantiated is launched");
    if ((uintptr_t)stream > 2 && !fake_is(stream, FAKE_STREAM))
        return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "a graph is launched on what is no stream");
    if (fake_wants_context() && fake_current() < 0) return CUDA_ERROR_INVALID_CONTEXT;
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->node[i]->event) fake_record(x->node[i]->event);
        if (x->node[i]->event) continue;
        const CUresult r = fake_run(&x->node[i]->work, (void **)(uintptr_t)x->node[i]->param, true, stream);
        if (r != CUDA_SUCCESS) return r;
    }
    fake_clock_add(-1000.0 * x->side);
    return CUDA_SUCCESS;
}

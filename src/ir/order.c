/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - a topological order of a region's nodes.
 *
 * Kahn's algorithm with a heap of ids, so that the order is the same for the same graph whatever was edited before.
 * Besides data, a node waits for whoever binds a late symbol that its outputs, attributes, or the nodes of its regions
 * mention. */
#include "ir/graph.h"

#include <string.h>

sinter_status ir_binders(const ir_graph *g, ir_region_id region, arena *a, ir_node_id **out)
{
    ir_node_id *binder = ARENA_NEW(a, ir_node_id, (size_t)dim_symbol_count(g->dims) + 1);
    if (!binder) return FAIL_MEMORY(g->e, "the order of nodes");
    uint32_t symbol;
    for (ir_node_id id = 1; id < g->node.count; id++) {
        if (g->node.at[id].is_dead || g->node.at[id].parent != region) continue;
        for (ir_bound b = ir_bound_of(g, id); ir_bound_next(&b, &symbol);) binder[symbol] = id;
    }
    *out = binder;
    return SINTER_OK;
}

typedef struct order {
    const ir_graph *g;
    ir_region_id region;
    ir_node_id *binder;
    bool has_late;
    bool *mark;         /* a symbol each */
    ir_node_id *nested; /* next node of the same parent region, by node; heads by region */
    ir_node_id *head;
    VEC(ir_node_id) edge; /* pairs: before, after */
    arena *a;
} order;

static sinter_status edge_add(order *o, ir_node_id before, ir_node_id after)
{
    ir_node_id *x = VEC_PUSH(o->a, &o->edge);
    if (x) *x = before;
    ir_node_id *y = x ? VEC_PUSH(o->a, &o->edge) : NULL;
    if (!y) return FAIL_MEMORY(o->g->e, "the order of nodes");
    *y = after;
    return SINTER_OK;
}

static bool mark_dim(order *o, dim d)
{
    if (!dim_is_late(o->g->dims, d)) return false;
    ir_symbols_mark(o->g, d, o->mark);
    return true;
}

static bool mark_node(order *o, ir_node_id id, uint32_t depth)
{
    const ir_graph *g = o->g;
    const ir_node *n = &g->node.at[id];
    bool any = false;
    for (uint32_t i = 0; i < n->count_out; i++) {
        const ir_value *v = ir_value_at(g, n->out[i]);
        for (uint32_t k = 0; k < v->rank; k++) any |= mark_dim(o, v->dim[k]);
    }
    for (const attr_info *d = op_at(n->op)->attr; d->name; d++) {
        if (d->kind != ATTR_DIMS) continue;
        const attr_dims *list = (const attr_dims *)((const char *)n->attrs + d->at);
        for (uint32_t i = 0; i < list->count; i++) any |= mark_dim(o, (dim)list->at[i]);
    }
    for (uint32_t r = 0; depth < 64 && r < n->count_region; r++)
        for (ir_node_id inner = o->head[n->region[r]]; inner; inner = o->nested[inner])
            any |= mark_node(o, inner, depth + 1);
    return any;
}

static sinter_status edges_of(order *o, ir_node_id id)
{
    const ir_graph *g = o->g;
    const ir_node *n = &g->node.at[id];
    for (uint32_t i = 0; i < n->count_in; i++) {
        const ir_node_id p = ir_value_at(g, n->in[i])->producer;
        if (p && g->node.at[p].parent == o->region && !g->node.at[p].is_dead) TRY(edge_add(o, p, id));
    }
    if (!o->has_late || !mark_node(o, id, 0)) return SINTER_OK;
    const uint32_t count = dim_symbol_count(g->dims);
    for (uint32_t s = 0; s < count; s++) {
        if (!o->mark[s]) continue;
        o->mark[s] = false;
        if (o->binder[s] && o->binder[s] != id) TRY(edge_add(o, o->binder[s], id));
    }
    return SINTER_OK;
}

static void heap_push(ir_node_id *heap, uint32_t *count, ir_node_id id)
{
    uint32_t i = (*count)++;
    for (; i && heap[(i - 1) / 2] > id; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = id;
}

static ir_node_id heap_pop(ir_node_id *heap, uint32_t *count)
{
    const ir_node_id top = heap[0], last = heap[--*count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= *count) break;
        if (child + 1 < *count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* Sorts what `o` has collected into out. */
static sinter_status sort(order *o, uint32_t live, ir_node_id *out, uint32_t *count)
{
    const ir_graph *g = o->g;
    const uint32_t nodes = g->node.count;
    uint32_t *start = ARENA_NEW(o->a, uint32_t, (size_t)nodes + 2), *waits = ARENA_NEW(o->a, uint32_t, nodes);
    ir_node_id *after = ARENA_NEW(o->a, ir_node_id, (size_t)o->edge.count / 2 + 1),
               *heap = ARENA_NEW(o->a, ir_node_id, (size_t)live + 1);
    if (!start || !waits || !after || !heap) return FAIL_MEMORY(g->e, "the order of nodes");
    for (uint32_t i = 0; i < o->edge.count; i += 2) start[o->edge.at[i] + 2]++;
    for (uint32_t i = 2; i < nodes + 2; i++) start[i] += start[i - 1];
    for (uint32_t i = 0; i < o->edge.count; i += 2) {
        after[start[o->edge.at[i] + 1]++] = o->edge.at[i + 1];
        waits[o->edge.at[i + 1]]++;
    }
    uint32_t free_count = 0;
    for (ir_node_id id = o->head[o->region]; id; id = o->nested[id])
        if (!waits[id]) heap_push(heap, &free_count, id);
    while (free_count) {
        const ir_node_id id = heap_pop(heap, &free_count);
        out[(*count)++] = id;
        for (uint32_t i = start[id]; i < start[id + 1]; i++)
            if (--waits[after[i]] == 0) heap_push(heap, &free_count, after[i]);
    }
    if (*count == live) return SINTER_OK;
    for (ir_node_id id = o->head[o->region]; id; id = o->nested[id])
        if (waits[id])
            return FAIL(g->e, INVALID_MODEL, "node %s (%s) is part of a cycle", ir_node_label(g, id),
                        op_at(g->node.at[id].op)->name);
    return FAIL(g->e, INTERNAL, "the order of nodes is incomplete");
}

sinter_status ir_order(const ir_graph *g, ir_region_id region, arena *a, ir_node_id **out, uint32_t *count)
{
    *out = NULL;
    *count = 0;
    arena scratch;
    arena_init(&scratch, g->e);
    const uint32_t symbols = dim_symbol_count(g->dims);
    order o = { .g = g, .region = region, .a = &scratch };
    o.mark = ARENA_NEW(&scratch, bool, (size_t)symbols + 1);
    o.nested = ARENA_NEW(&scratch, ir_node_id, g->node.count);
    o.head = ARENA_NEW(&scratch, ir_node_id, g->region.count);
    uint32_t live = 0;
    if (o.head)
        for (ir_node_id id = g->node.count; id-- > 1;) {
            const ir_node *n = &g->node.at[id];
            if (n->is_dead || n->parent >= g->region.count) continue;
            o.nested[id] = o.head[n->parent];
            o.head[n->parent] = id;
            live += n->parent == region;
        }
    ir_node_id *at = ARENA_NEW(a, ir_node_id, live);
    sinter_status status = o.mark && o.nested && o.head && at ? SINTER_OK : FAIL_MEMORY(g->e, "the order of nodes");
    for (uint32_t s = 0; s < symbols; s++) o.has_late |= dim_symbol_at(g->dims, s)->is_late;
    if (!status) status = ir_binders(g, region, &scratch, &o.binder);
    for (ir_node_id id = status ? 0 : o.head[region]; id && !status; id = o.nested[id]) status = edges_of(&o, id);
    if (!status) status = sort(&o, live, at, count);
    arena_deinit(&scratch);
    if (!status) *out = at;
    return status;
}

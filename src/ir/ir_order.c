/* SPDX-License-Identifier: Apache-2.0 */
/* ir_order.c - a topological order of a region's nodes.
 *
 * Kahn's algorithm with a heap of ids, so that the order is the same for the same graph whatever was edited before.
 * Besides data, a node waits for whoever binds a late symbol that its outputs, attributes, or the nodes of its regions
 * mention. Arrays by node and by symbol belong to the graph and are all 0 between uses: ordering a small region of a
 * large graph costs no more than the region. */
#include "ir/graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct edge {
    uint32_t before, after; /* places in `live` */
} edge;

typedef struct order {
    const ir_graph *g;
    ir_region_id region;
    ir_node_id *live; /* of the region, by id */
    uint32_t count;
    ir_marks *m;
    VEC(uint32_t) claimed; /* symbols that have a binder */
    VEC(uint32_t) late;    /* symbols that the node at hand mentions */
    VEC(edge) edge;
    arena *a;
} order;

/* ---- the graph's marks ---- */

static bool grow(arena *a, uint32_t **at, uint32_t *size, uint32_t wanted)
{
    if (wanted <= *size) return true;
    const uint32_t fresh = wanted < UINT32_MAX / 2 ? wanted * 2 : wanted;
    *at = ARENA_NEW(a, uint32_t, fresh);
    *size = *at ? fresh : 0;
    return *at != NULL;
}

static bool marks_ready(const ir_graph *g)
{
    ir_marks *m = g->marks;
    uint32_t seen_size = m->symbol_size;
    const uint32_t symbols = dim_symbol_count(g->dims);
    return grow(m->a, &m->place, &m->node_size, g->node.count) && grow(m->a, &m->seen, &seen_size, symbols) &&
           grow(m->a, &m->binder, &m->symbol_size, symbols);
}

static void marks_clear(order *o)
{
    for (uint32_t i = 0; i < o->count; i++) o->m->place[o->live[i]] = 0;
    for (uint32_t i = 0; i < o->claimed.count; i++) o->m->binder[o->claimed.at[i]] = 0;
    for (uint32_t i = 0; i < o->late.count; i++) o->m->seen[o->late.at[i]] = 0;
}

static int by_id(const void *a, const void *b)
{
    const ir_node_id x = *(const ir_node_id *)a, y = *(const ir_node_id *)b;
    return (x > y) - (x < y);
}

static sinter_status find_live(order *o, arena *a)
{
    const ir_region *r = ir_region_at(o->g, o->region);
    bool is_sorted = true;
    o->live = ARENA_NEW(a, ir_node_id, r->node.count);
    if (!o->live) return FAIL_MEMORY(o->g->e, "the order of nodes");
    for (uint32_t i = 0; i < r->node.count; i++) {
        const ir_node *n = &o->g->node.at[r->node.at[i]];
        if (n->is_dead || n->parent != o->region) continue;
        is_sorted = is_sorted && (!o->count || o->live[o->count - 1] < r->node.at[i]);
        o->live[o->count++] = r->node.at[i];
    }
    if (!is_sorted) qsort(o->live, o->count, sizeof *o->live, by_id);
    for (uint32_t i = 0; i < o->count; i++) o->m->place[o->live[i]] = i + 1;
    return SINTER_OK;
}

/* ---- who binds a symbol ---- */

static void find_binders(order *o)
{
    uint32_t symbol;
    for (uint32_t k = 0; k < o->count; k++)
        for (ir_bound b = ir_bound_of(o->g, o->live[k]); ir_bound_next(&b, &symbol);) {
            uint32_t *slot = VEC_PUSH(o->a, &o->claimed);
            if (!slot) return; /* the arena remembers */
            *slot = symbol;
            o->m->binder[symbol] = o->live[k];
        }
}

/* ---- edges ---- */

/* Depth is that of the canonical form, which the dim table bounds. */
static void mention(order *o, dim d)
{
    const dim_node *x = dim_at(o->g->dims, d);
    if (!dim_is_late(o->g->dims, d)) return;
    if (x->kind != DIM_SYMBOL) {
        mention(o, x->a);
        mention(o, x->b);
        return;
    }
    if (o->m->seen[x->value]) return;
    uint32_t *slot = VEC_PUSH(o->a, &o->late);
    if (!slot) return;
    *slot = (uint32_t)x->value;
    o->m->seen[x->value] = 1;
}

static void mention_node(order *o, const ir_node *n)
{
    for (uint32_t i = 0; i < n->count_out; i++) {
        const ir_value *v = ir_value_at(o->g, n->out[i]);
        for (uint32_t k = 0; k < v->rank; k++) mention(o, v->dim[k]);
    }
    for (const attr_info *d = op_at(n->op)->attr; d->name; d++) {
        if (d->kind != ATTR_DIMS) continue;
        const attr_dims *list = (const attr_dims *)((const char *)n->attrs + d->at);
        for (uint32_t i = 0; i < list->count; i++) mention(o, (dim)list->at[i]);
    }
}

static void mention_all(order *o, ir_node_id id, uint32_t depth)
{
    const ir_graph *g = o->g;
    const ir_node *n = &g->node.at[id];
    mention_node(o, n);
    for (uint32_t r = 0; depth < 64 && r < n->count_region; r++) {
        const ir_region *body = ir_region_at(g, n->region[r]);
        for (uint32_t i = 0; i < body->node.count; i++) {
            const ir_node *inner = &g->node.at[body->node.at[i]];
            if (!inner->is_dead && inner->parent == n->region[r]) mention_all(o, body->node.at[i], depth + 1);
        }
    }
}

static void edge_add(order *o, ir_node_id before, uint32_t after)
{
    edge *x = VEC_PUSH(o->a, &o->edge);
    if (x) *x = (edge){ o->m->place[before] - 1, after };
}

static sinter_status find_edges(order *o, uint32_t k)
{
    const ir_graph *g = o->g;
    const ir_node *n = &g->node.at[o->live[k]];
    for (uint32_t i = 0; i < n->count_in; i++) {
        const ir_node_id p = ir_value_at(g, n->in[i])->producer;
        if (p && o->m->place[p]) edge_add(o, p, k);
    }
    if (dim_has_late(g->dims)) mention_all(o, o->live[k], 0);
    for (uint32_t i = 0; i < o->late.count; i++) {
        const ir_node_id binder = o->m->binder[o->late.at[i]];
        o->m->seen[o->late.at[i]] = 0;
        if (binder && binder != o->live[k]) edge_add(o, binder, k);
    }
    o->late.count = 0;
    return o->a->failed ? FAIL_MEMORY(g->e, "the order of nodes") : SINTER_OK;
}

/* ---- the order ---- */

static void heap_push(uint32_t *heap, uint32_t *count, uint32_t id)
{
    uint32_t i = (*count)++;
    for (; i && heap[(i - 1) / 2] > id; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = id;
}

static uint32_t heap_pop(uint32_t *heap, uint32_t *count)
{
    const uint32_t top = heap[0], last = heap[--*count];
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

/* Sorts what `o` has collected into `out`, which has room for all. */
static sinter_status sort(order *o, ir_node_id *out)
{
    const ir_graph *g = o->g;
    uint32_t *start = ARENA_NEW(o->a, uint32_t, (size_t)o->count + 2), *waits = ARENA_NEW(o->a, uint32_t, o->count),
             *after = ARENA_NEW(o->a, uint32_t, (size_t)o->edge.count + 1),
             *heap = ARENA_NEW(o->a, uint32_t, (size_t)o->count + 1);
    if (!start || !waits || !after || !heap) return FAIL_MEMORY(g->e, "the order of nodes");
    for (uint32_t i = 0; i < o->edge.count; i++) start[o->edge.at[i].before + 2]++;
    for (uint32_t i = 2; i < o->count + 2; i++) start[i] += start[i - 1];
    for (uint32_t i = 0; i < o->edge.count; i++) {
        after[start[o->edge.at[i].before + 1]++] = o->edge.at[i].after;
        waits[o->edge.at[i].after]++;
    }
    uint32_t free_count = 0, done = 0;
    for (uint32_t k = 0; k < o->count; k++)
        if (!waits[k]) heap_push(heap, &free_count, k);
    while (free_count) {
        const uint32_t k = heap_pop(heap, &free_count);
        out[done++] = o->live[k];
        for (uint32_t i = start[k]; i < start[k + 1]; i++)
            if (--waits[after[i]] == 0) heap_push(heap, &free_count, after[i]);
    }
    for (uint32_t k = 0; k < o->count && done < o->count; k++)
        if (waits[k])
            return FAIL(g->e, INVALID_MODEL, "node %s (%s) is part of a cycle", ir_node_label(g, o->live[k]),
                        op_at(g->node.at[o->live[k]].op)->name);
    return done == o->count ? SINTER_OK : FAIL(g->e, INTERNAL, "the order of nodes is incomplete");
}

static sinter_status run(order *o, ir_node_id *out)
{
    find_binders(o);
    for (uint32_t k = 0; k < o->count; k++) TRY(find_edges(o, k));
    return sort(o, out);
}

sinter_status ir_order(const ir_graph *g, ir_region_id region, arena *a, ir_node_id **out, uint32_t *count)
{
    *out = NULL;
    *count = 0;
    if (!marks_ready(g)) return FAIL_MEMORY(g->e, "the order of nodes");
    arena scratch;
    arena_init(&scratch, g->e);
    order o = { .g = g, .region = region, .a = &scratch, .m = g->marks };
    sinter_status status = find_live(&o, &scratch);
    ir_node_id *at = ARENA_NEW(a, ir_node_id, o.count);
    if (!status && !at) status = FAIL_MEMORY(g->e, "the order of nodes");
    if (!status) status = run(&o, at);
    marks_clear(&o);
    arena_deinit(&scratch);
    if (status) return status;
    *out = at;
    *count = o.count;
    return SINTER_OK;
}

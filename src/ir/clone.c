/* SPDX-License-Identifier: Apache-2.0 */
/* clone.c - a second graph with the same ids, so that a build can change one graph in several ways.
 *
 * What edits change in place is copied: values, nodes with their lists and attributes, readers, regions, dimension
 * expressions. What is only ever replaced is shared: the bytes of constants, names, origins, programs. Cost: that of
 * the graph without its weights. */
#include "ir/graph.h"

#include <string.h>

static void *list_copy(arena *a, const void *at, size_t size, uint32_t count)
{
    void *copy = arena_alloc(a, size_mul(size, count), _Alignof(max_align_t));
    if (copy && count) memcpy(copy, at, size * count);
    return copy;
}

static bool node_copy(arena *a, ir_node *n)
{
    n->in = list_copy(a, n->in, sizeof *n->in, n->count_in);
    n->out = list_copy(a, n->out, sizeof *n->out, n->count_out);
    n->region = list_copy(a, n->region, sizeof *n->region, n->count_region);
    if (n->attrs) n->attrs = op_attrs_copy(a, n->op, n->attrs);
    return n->in && n->out && n->region;
}

static bool tables_copy(ir_graph *g, const dim_table *dims)
{
    arena *a = &g->a;
    bool ok = VEC_COPY(a, &g->value) && VEC_COPY(a, &g->use) && VEC_COPY(a, &g->node) && VEC_COPY(a, &g->region) &&
              VEC_COPY(a, &g->origin_name) && VEC_COPY(a, &g->kept_origin) && VEC_COPY(a, &g->coded_origin);
    for (uint32_t i = 0; ok && i < g->use.count; i++) ok = VEC_COPY(a, &g->use.at[i]);
    for (uint32_t i = 0; ok && i < g->node.count; i++) ok = node_copy(a, &g->node.at[i]);
    for (uint32_t i = 0; ok && i < g->region.count; i++) {
        ir_region *r = &g->region.at[i];
        ok = VEC_COPY(a, &r->param) && VEC_COPY(a, &r->result) && VEC_COPY(a, &r->node);
    }
    g->dims = ok ? dim_table_copy(a, dims) : NULL;
    g->marks = ARENA_NEW(a, ir_marks, 1);
    if (g->marks) g->marks->a = a;
    return g->dims && g->marks && !a->failed;
}

sinter_status ir_graph_clone(const ir_graph *from, ir_graph **out)
{
    env *e = from->e;
    *out = NULL;
    ir_graph *g = mem_zalloc(e, sizeof(*g), _Alignof(ir_graph));
    if (!g) return FAIL_MEMORY(e, "a copy of the graph");
    /* The lists are those of `from` until tables_copy() has replaced each by its own. */
    *g = (ir_graph){ .e = e,
                     .value = from->value,
                     .use = from->use,
                     .node = from->node,
                     .region = from->region,
                     .origin_name = from->origin_name,
                     .kept_origin = from->kept_origin,
                     .coded_origin = from->coded_origin,
                     .states = from->states };
    arena_init(&g->a, e);
    if (!tables_copy(g, from->dims)) {
        ir_graph_destroy(g);
        return FAIL_MEMORY(e, "a copy of the graph");
    }
    *out = g;
    return SINTER_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - removes what nothing needs.
 *
 * A node is needed where one of its outputs is, or a late symbol that it binds, or where it is a guard. Needs are
 * followed from the main region's results to their makers with an explicit stack: graphs are as deep as models are
 * long. What is never reached is killed at the end. */
#include "ir/graph.h"

typedef struct sweep {
    ir_graph *g;
    arena a;
    bool *live;                     /* by node */
    ir_node_id *binder;             /* by late symbol */
    bool *dim;                      /* by expression: its symbols were marked */
    ir_node_id *guard, *next_guard; /* lists by region */
    VEC(ir_node_id) stack;          /* nodes that are live, whose needs are not marked yet */
} sweep;

static void need_node(sweep *s, ir_node_id id)
{
    if (!id || s->live[id] || s->g->node.at[id].is_dead) return;
    s->live[id] = true;
    ir_node_id *slot = VEC_PUSH(&s->a, &s->stack);
    if (slot) *slot = id;
}

static void need_symbols(sweep *s, dim d)
{
    if (s->dim[d]) return;
    s->dim[d] = true;
    const dim_node *x = dim_at(s->g->dims, d);
    if (x->kind == DIM_SYMBOL) need_node(s, s->binder[x->value]);
    if (x->kind < DIM_ADD) return;
    need_symbols(s, x->a); /* as deep as expressions nest, which the table bounds */
    need_symbols(s, x->b);
}

static void need_value(sweep *s, ir_value_id id)
{
    const ir_value *v = ir_value_at(s->g, id);
    need_node(s, v->producer);
    for (uint32_t i = 0; i < v->rank; i++) need_symbols(s, v->dim[i]);
    for (uint32_t i = 0; i < v->shape_count; i++) need_symbols(s, v->shape_value[i]);
}

static void need_region(sweep *s, ir_region_id id)
{
    const ir_region *r = ir_region_at(s->g, id);
    for (uint32_t i = 0; i < r->param.count; i++) need_value(s, r->param.at[i]);
    for (uint32_t i = 0; i < r->result.count; i++) need_value(s, r->result.at[i]);
    for (ir_node_id n = s->guard[id]; n; n = s->next_guard[n]) need_node(s, n);
}

static void need_inputs(sweep *s, ir_node_id id)
{
    const ir_node *n = &s->g->node.at[id];
    for (uint32_t i = 0; i < n->count_in; i++) need_value(s, n->in[i]);
    for (uint32_t i = 0; i < n->count_out; i++) {
        const ir_value *v = ir_value_at(s->g, n->out[i]);
        for (uint32_t k = 0; k < v->rank; k++) need_symbols(s, v->dim[k]);
    }
    for (const attr_info *x = op_at(n->op)->attr; x->name; x++) {
        if (x->kind != ATTR_DIMS) continue;
        const attr_dims *list = (const attr_dims *)((const char *)n->attrs + x->at);
        for (uint32_t i = 0; i < list->count; i++) need_symbols(s, (dim)list->at[i]);
    }
    for (uint32_t i = 0; i < n->count_region; i++) need_region(s, n->region[i]);
}

static sinter_status run(sweep *s)
{
    ir_graph *g = s->g;
    uint32_t symbol;
    s->live = ARENA_NEW(&s->a, bool, g->node.count);
    s->dim = ARENA_NEW(&s->a, bool, dim_count(g->dims));
    s->binder = ARENA_NEW(&s->a, ir_node_id, (size_t)dim_symbol_count(g->dims) + 1);
    s->guard = ARENA_NEW(&s->a, ir_node_id, g->region.count);
    s->next_guard = ARENA_NEW(&s->a, ir_node_id, g->node.count);
    if (!s->live || !s->dim || !s->binder || !s->guard || !s->next_guard) return FAIL_MEMORY(g->e, "dead code removal");
    for (ir_node_id id = 1; id < g->node.count; id++) {
        const ir_node *n = &g->node.at[id];
        if (n->is_dead) continue;
        for (ir_bound b = ir_bound_of(g, id); ir_bound_next(&b, &symbol);) s->binder[symbol] = id;
        const attrs_bind *at = n->attrs;
        if (n->op != OP_bind || at->kind != bind_kind_raw || !at->flag) continue;
        s->next_guard[id] = s->guard[n->parent];
        s->guard[n->parent] = id;
    }
    need_region(s, IR_MAIN);
    while (s->stack.count) need_inputs(s, s->stack.at[--s->stack.count]);
    if (s->a.failed) return FAIL_MEMORY(g->e, "dead code removal");
    ir_nodes_keep(g, s->live);
    return SINTER_OK;
}

sinter_status ir_sweep(ir_graph *g)
{
    sweep s = { .g = g };
    arena_init(&s.a, g->e);
    const sinter_status status = run(&s);
    arena_deinit(&s.a);
    return status ? status : g->a.failed ? FAIL_MEMORY(g->e, "the graph") : SINTER_OK;
}

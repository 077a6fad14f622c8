/* SPDX-License-Identifier: Apache-2.0 */
/* input_values.c - which numbers a graph's inputs may hold, from the tables that they index in the end.
 *
 * Readers come before what they read, so one walk against the order of the nodes has each value's range complete before
 * the node that makes the value is asked what it permits. */
#include "ir/graph.h"

#include <math.h>

/* Bodies of loops at this depth or less are walked twice: what they carry comes around. */
enum { TWICE_DEPTH = 2 };

typedef struct walk {
    ir_graph *g;
    arena a;
    value_range *range; /* by value */
    uint32_t depth;
} walk;

static void narrow(walk *w, ir_value_id v, value_range r)
{
    value_range *own = &w->range[v];
    if (!v) return;
    if (r.min > own->min) own->min = r.min;
    if (r.max < own->max) own->max = r.max;
}

static infer_value value_of(const ir_graph *g, ir_value_id id)
{
    const ir_value *v = ir_value_at(g, id);
    infer_value out = { .dtype = id ? v->dtype : SINTER_DTYPE_NONE,
                        .rank = v->rank,
                        .data = v->data,
                        .shape_value = v->shape_value,
                        .shape_count = v->shape_count };
    memcpy(out.dim, v->dim, sizeof out.dim);
    return out;
}

static sinter_status walk_node(walk *w, const ir_node *n)
{
    const arena_mark mark = arena_save(&w->a);
    const uint32_t count = n->count_in + n->count_out;
    infer_value *value = ARENA_NEW(&w->a, infer_value, count);
    value_range *range = ARENA_NEW(&w->a, value_range, count);
    if (!value || !range) return FAIL_MEMORY(w->g->e, "the inputs' values");
    for (uint32_t i = 0; i < count; i++) {
        const ir_value_id v = i < n->count_in ? n->in[i] : n->out[i - n->count_in];
        value[i] = value_of(w->g, v);
        range[i] = i < n->count_in ? (value_range){ -INFINITY, INFINITY } : w->range[v];
    }
    values_call c = { .dims = w->g->dims,
                      .op = n->op,
                      .attrs = n->attrs,
                      .count_in = n->count_in,
                      .count_out = n->count_out,
                      .in = value,
                      .out = value + n->count_in,
                      .result = range + n->count_in,
                      .operand = range };
    op_values(&c);
    for (uint32_t i = 0; i < n->count_in; i++) narrow(w, n->in[i], range[i]);
    arena_rewind(&w->a, mark);
    return SINTER_OK;
}

static sinter_status walk_region(walk *w, ir_region_id region);

/* Parameters [first, …) of a body are the inputs of its node from `from` on, and results [skipped, …) its outputs.
 * `carried` of the parameters from `back` on get the results with the same number. */
typedef struct body {
    uint32_t first, from, skipped, back, carried;
} body;

static sinter_status walk_body(walk *w, const ir_node *n, ir_region_id region, const body *b)
{
    const ir_region *r = ir_region_at(w->g, region);
    for (uint32_t i = 0; i < n->count_out && b->skipped + i < r->result.count; i++)
        narrow(w, r->result.at[b->skipped + i], w->range[n->out[i]]);
    TRY(walk_region(w, region));
    for (uint32_t i = 0; i < b->carried && b->skipped + i < r->result.count; i++)
        narrow(w, r->result.at[b->skipped + i], w->range[r->param.at[b->back + i]]);
    if (b->carried && w->depth <= TWICE_DEPTH) TRY(walk_region(w, region));
    for (uint32_t i = b->first; i < r->param.count && b->from + i - b->first < n->count_in; i++)
        narrow(w, n->in[b->from + i - b->first], w->range[r->param.at[i]]);
    return SINTER_OK;
}

static sinter_status walk_bodies(walk *w, const ir_node *n)
{
    body b = { .from = n->op == OP_if ? 1 : 0 };
    if (n->op == OP_loop)
        b = (body){
            .first = 2, .from = 2, .skipped = 1, .back = 2, .carried = (uint32_t)((const attrs_loop *)n->attrs)->carried
        };
    if (n->op == OP_scan) b.carried = (uint32_t)((const attrs_scan *)n->attrs)->carried;
    w->depth++;
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; i < n->count_region && s == SINTER_OK; i++) s = walk_body(w, n, n->region[i], &b);
    w->depth--;
    if (s != SINTER_OK || n->op != OP_loop) return s;
    /* The number of an iteration is one less than the trip count at most. */
    const ir_value_id iteration = ir_region_at(w->g, n->region[0])->param.at[0];
    narrow(w, n->in[0], (value_range){ 0, w->range[iteration].max + 1 });
    return SINTER_OK;
}

static sinter_status walk_region(walk *w, ir_region_id region)
{
    ir_node_id *order;
    uint32_t count;
    TRY(ir_order(w->g, region, &w->a, &order, &count));
    for (uint32_t i = count; i-- > 0;) {
        const ir_node *n = ir_node_at(w->g, order[i]);
        TRY(n->count_region ? walk_bodies(w, n) : walk_node(w, n));
    }
    return SINTER_OK;
}

sinter_status ir_input_values(ir_graph *g, arena *a, value_range **out)
{
    const ir_region *main = ir_region_at(g, IR_MAIN);
    walk w = { .g = g };
    arena_init(&w.a, g->e);
    w.range = ARENA_NEW(&w.a, value_range, g->value.count);
    value_range *list = *out = ARENA_NEW(a, value_range, main->param.count);
    for (uint32_t i = 0; w.range && i < g->value.count; i++) w.range[i] = (value_range){ -INFINITY, INFINITY };
    const sinter_status s = w.range && list ? walk_region(&w, IR_MAIN) : FAIL_MEMORY(g->e, "the inputs' values");
    for (uint32_t i = 0; s == SINTER_OK && i < main->param.count; i++) list[i] = w.range[main->param.at[i]];
    arena_deinit(&w.a);
    return s;
}

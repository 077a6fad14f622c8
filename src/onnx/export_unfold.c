/* SPDX-License-Identifier: Apache-2.0 */
/* export_unfold.c - constants that folding made larger than what they were made of become nodes again.
 *
 * Folding helps an engine, which packs its weights anyway. In a model it would undo what the author saved: weights of 8
 * bits behind DequantizeLinear would be stored as floats, and an expanded scalar as a tensor. Each such constant has a
 * recipe, the folded node; the nodes are made again from the initializers at its leaves. */
#include "onnx/exporter.h"

enum { NODES_MAX = 64 };

typedef struct unfold {
    exporter *x;
    ir_builder *b;
    ir_node_id node[NODES_MAX], again[NODES_MAX]; /* recipes of one constant, and their copies; 0: none yet */
    uint32_t count;
    uint64_t leaves; /* bytes of initializers */
    bool is_fit;
} unfold;

static bool may_repeat(const ir_node *n)
{
    const op_info *op = op_at(n->op);
    return !n->count_region && !n->prologue && !n->epilogue && !(op->traits & (LATE | VARIES)) && op->out_max;
}

/* The output of its recipe that a constant has the bytes of; a constant may be that output in another shape. */
static ir_value_id made_as(const exporter *x, ir_value_id v)
{
    const ir_value *value = ir_value_at(x->g, v);
    const ir_node *n = ir_node_at(x->g, value->recipe);
    for (uint32_t i = 0; value->recipe && i < n->count_out; i++) {
        const ir_value *made = ir_value_at(x->g, n->out[i]);
        if (n->out[i] == v || (made->data == value->data && made->dtype == value->dtype)) return n->out[i];
    }
    return 0;
}

/* The fewest bytes that the model stores for a constant: its own, or those of what its recipe reads. What others read
 * is in the model anyway. *steps: how many constants are looked at, at most. */
static size_t stored(const exporter *x, ir_value_id v, uint32_t *steps, bool *is_own)
{
    const ir_value *value = ir_value_at(x->g, v);
    const ir_node *n = ir_node_at(x->g, value->recipe);
    size_t size = 0;
    *is_own = true;
    if (value->use_count || !v) return 0;
    if (!*steps || !made_as(x, v)) return value->data_size;
    --*steps;
    for (uint32_t i = 0; i < n->count_in; i++) {
        bool is_its_own;
        size = size_add(size, stored(x, n->in[i], steps, &is_its_own));
    }
    *is_own = value->data && !value->is_released && value->data_size <= size;
    return *is_own ? value->data_size : size;
}

/* Is a constant inside of a recipe kept as it is, because making it would save nothing? */
static bool is_kept(const exporter *x, ir_value_id v)
{
    uint32_t steps = NODES_MAX;
    bool is_own = false;
    if (x->o->unfold_all || ir_value_at(x->g, v)->use_count) return false;
    (void)stored(x, v, &steps, &is_own);
    return is_own;
}

/* Collects the recipes behind a constant. is_fit: each can be made again, and there are not too many. */
static void collect(unfold *u, ir_value_id v)
{
    const ir_value *value = ir_value_at(u->x->g, v);
    if (!v || !u->is_fit) return;
    if (!made_as(u->x, v) || is_kept(u->x, v)) {
        if (!value->use_count) u->leaves += value->data_size; /* what others read is in the model anyway */
        u->is_fit = value->data && !value->is_released;
        return;
    }
    for (uint32_t i = 0; i < u->count; i++)
        if (u->node[i] == value->recipe) return;
    const ir_node *n = ir_node_at(u->x->g, value->recipe);
    u->is_fit = u->count < NODES_MAX && may_repeat(n);
    if (!u->is_fit) return;
    u->node[u->count++] = value->recipe;
    for (uint32_t i = 0; i < n->count_in; i++) collect(u, n->in[i]);
}

/* The value of a recipe's output, computed by the model. */
static ir_value_id remake(unfold *u, ir_value_id v)
{
    ir_graph *g = u->x->g;
    const ir_node_id id = ir_value_at(g, v)->recipe;
    const ir_value_id made = made_as(u->x, v);
    if (!made || u->b->status || is_kept(u->x, v)) return v;
    uint32_t at = 0;
    while (at < u->count && u->node[at] != id) at++;
    if (at == u->count) return v;
    if (!u->again[at]) {
        const ir_node from = *ir_node_at(g, id);
        ir_value_id *in = ARENA_NEW(&u->x->a, ir_value_id, (size_t)from.count_in + 1);
        if (!in) EXPORT_FAIL(u->x, NO_MEMORY, "out of memory for constants");
        for (uint32_t i = 0; in && i < from.count_in; i++) in[i] = from.in[i] ? remake(u, from.in[i]) : 0;
        if (!in) return v;
        u->b->name = from.name;
        u->again[at] = build_node(u->b, from.op, from.attrs, in, from.count_in, from.count_out);
    }
    uint32_t i = 0;
    while (ir_node_at(g, id)->out[i] != made) i++;
    const ir_value like = *ir_value_at(g, v);
    return build_shaped(u->b, build_result(u->b, u->again[at], i), like.dim, like.rank);
}

/* Constants belong to no region, and nodes do: what a subgraph reads stays a constant. */
static bool is_of_main(exporter *x, ir_value_id v)
{
    ir_node_id *reader = NULL;
    const arena_mark mark = arena_save(&x->a);
    const uint32_t count = ir_readers(x->g, v, &x->a, &reader);
    bool is_main = count > 0;
    for (uint32_t i = 0; i < count; i++) is_main = is_main && ir_node_at(x->g, reader[i])->parent == IR_MAIN;
    for (ir_region_id r = IR_MAIN + 1; r < x->g->region.count && is_main; r++) {
        const ir_region *region = ir_region_at(x->g, r);
        for (uint32_t i = 0; i < region->result.count; i++) is_main = is_main && region->result.at[i] != v;
    }
    arena_rewind(&x->a, mark);
    return is_main;
}

static void unfold_one(exporter *x, ir_value_id v)
{
    const size_t size = ir_value_at(x->g, v)->data_size;
    ir_builder b = { .g = x->g, .region = IR_MAIN };
    unfold u = { .x = x, .b = &b, .is_fit = true };
    collect(&u, v);
    if (!u.is_fit || (!x->o->unfold_all && size_mul(u.leaves, 3) >= size_mul(size, 2)) || !is_of_main(x, v)) return;
    const ir_value_id to = remake(&u, v);
    if (b.status) x->status = b.status;
    if (!x->status && to != v) ir_value_replace(x->g, v, to);
}

void export_unfold(exporter *x)
{
    const ir_value_id count = x->g->value.count;
    if (!x->o->unfold_min) return;
    for (ir_value_id v = 1; v < count && !x->status; v++) {
        const ir_value *value = ir_value_at(x->g, v);
        if (value->recipe && value->data && value->use_count && value->data_size > x->o->unfold_min) unfold_one(x, v);
    }
}

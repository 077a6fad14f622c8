/* SPDX-License-Identifier: Apache-2.0 */
/* cse.c - equal constants become one, then equal nodes do, in topological order. One hash table a region. */
#include "opt/pipeline.h"

#include "base/hash.h"

#include <string.h>

typedef struct table {
    uint64_t *hash;
    uint32_t *id;
    uint32_t size;
} table;

static bool table_init(table *t, arena *a, uint32_t count)
{
    t->size = 64;
    while (t->size < count * 2) t->size *= 2;
    t->hash = ARENA_NEW(a, uint64_t, t->size);
    t->id = ARENA_NEW(a, uint32_t, t->size);
    return t->hash && t->id;
}

static uint64_t const_hash(const ir_value *v)
{
    enum { LOOK = 4096 };
    const uint64_t seed = (uint64_t)v->dtype << 32 | v->rank;
    const uint64_t shape = hash64(v->dim, v->rank * sizeof(dim), seed);
    return hash64(v->data, v->data_size < LOOK ? v->data_size : LOOK, shape ^ v->data_size);
}

/* Constants that are equal by chance may not stay so, where one is open: then only the same bytes are one. */
static bool consts_equal(const ir_value *a, const ir_value *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->data_size == b->data_size &&
           !memcmp(a->dim, b->dim, a->rank * sizeof(dim)) &&
           (a->data == b->data || (!a->is_open && !b->is_open && !memcmp(a->data, b->data, a->data_size)));
}

static sinter_status merge_consts(ir_graph *g, arena *a)
{
    table t;
    if (!table_init(&t, a, g->value.count)) return FAIL_MEMORY(g->e, "common subexpressions");
    for (ir_value_id v = 1; v < g->value.count; v++) {
        const ir_value *x = &g->value.at[v];
        if (!x->data || !x->use_count || x->is_output) continue;
        const uint64_t h = const_hash(x);
        uint32_t i = (uint32_t)h & (t.size - 1);
        while (t.id[i] && !(t.hash[i] == h && consts_equal(&g->value.at[t.id[i]], x))) i = (i + 1) & (t.size - 1);
        const bool is_one = t.id[i] && (x->data == g->value.at[t.id[i]].data || (ir_look(g, v) && ir_look(g, t.id[i])));
        if (is_one) {
            if (!g->value.at[t.id[i]].name) g->value.at[t.id[i]].name = x->name;
            ir_value_replace(g, v, t.id[i]);
        } else if (!t.id[i]) {
            t.hash[i] = h;
            t.id[i] = v;
        }
    }
    return SINTER_OK;
}

static uint64_t node_hash(const ir_node *n)
{
    uint64_t h = hash64(n->in, n->count_in * sizeof(*n->in), (uint64_t)n->op << 32 | n->count_out);
    h = op_attrs_hash(n->op, n->attrs, h);
    if (n->prologue) h = expr_hash(n->prologue, h);
    return n->epilogue ? expr_hash(n->epilogue, h) : h;
}

static bool nodes_equal(const ir_node *a, const ir_node *b)
{
    return a->op == b->op && a->count_in == b->count_in && a->count_out == b->count_out &&
           a->count_anchor == b->count_anchor && !memcmp(a->in, b->in, a->count_in * sizeof(*a->in)) &&
           op_attrs_equal(a->op, a->attrs, b->attrs) && expr_equal(a->prologue, b->prologue) &&
           expr_equal(a->epilogue, b->epilogue);
}

/* Commuting operands in one order, so that a+b and b+a meet. */
static void sort_operands(ir_graph *g, ir_node_id id)
{
    const ir_node *n = &g->node.at[id];
    if (!(op_at(n->op)->traits & COMMUTES) || n->count_in != 2 || n->in[0] <= n->in[1]) return;
    if (ir_is_const(g, n->in[1])) return; /* a constant stays on the right, for readers' sake */
    const ir_value_id x = n->in[0], y = n->in[1];
    ir_node_set_in(g, id, 0, y);
    ir_node_set_in(g, id, 1, x);
}

static bool may_merge(const ir_graph *g, const ir_node *n, const ir_node *kept)
{
    for (uint32_t i = 0; i < n->count_out; i++)
        if (ir_value_at(g, n->out[i])->is_output &&
            (ir_value_at(g, kept->out[i])->is_output ||
             memcmp(ir_value_at(g, n->out[i])->dim, ir_value_at(g, kept->out[i])->dim,
                    ir_value_at(g, n->out[i])->rank * sizeof(dim))))
            return false;
    return true;
}

static sinter_status merge_nodes(ir_graph *g, ir_region_id region, arena *a)
{
    ir_node_id *at;
    uint32_t count;
    TRY(ir_order(g, region, a, &at, &count));
    table t;
    if (!table_init(&t, a, count)) return FAIL_MEMORY(g->e, "common subexpressions");
    for (uint32_t k = 0; k < count; k++) {
        const ir_node_id id = at[k];
        const op_info *op = op_at(g->node.at[id].op);
        if (op->regions || op->traits & (LATE | VARIES)) continue;
        sort_operands(g, id);
        const ir_node *n = &g->node.at[id];
        const uint64_t h = node_hash(n);
        uint32_t i = (uint32_t)h & (t.size - 1);
        while (t.id[i] && !(t.hash[i] == h && nodes_equal(&g->node.at[t.id[i]], n))) i = (i + 1) & (t.size - 1);
        if (!t.id[i]) {
            t.hash[i] = h;
            t.id[i] = id;
            continue;
        }
        const ir_node_id kept = t.id[i];
        if (!may_merge(g, n, &g->node.at[kept])) continue;
        TRY(ir_origin_unite(g, kept, id));
        for (uint32_t o = 0; o < g->node.at[id].count_out; o++)
            ir_value_replace(g, g->node.at[id].out[o], g->node.at[kept].out[o]);
        ir_node_kill(g, id);
    }
    return SINTER_OK;
}

sinter_status pass_cse(opt_state *s)
{
    ir_graph *g = s->g;
    arena a;
    arena_init(&a, s->e);
    sinter_status status = merge_consts(g, &a);
    for (ir_region_id r = 1; r < g->region.count && !status; r++)
        if (r == IR_MAIN || !ir_node_at(g, g->region.at[r].owner)->is_dead) status = merge_nodes(g, r, &a);
    arena_deinit(&a);
    return status ? status : ir_sweep(g);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* counts.c - integers that the host reads: sizes that are bound, trip counts, conditions, and what they are made of.
 *
 * Read where they are needed, each would be a copy from the device that the host waits for. So the arithmetic that
 * makes them of other small integers runs on the host, and what crosses is where it begins: a row of coordinates, once.
 * From a value that the host reads the search goes back to the nodes that make it, through carried values and captures.
 */
#include "tune/lower.h"

/* A list with at most this many integers may be a shape or a list of positions. */
static const int64_t list_most = 64;

typedef struct counting {
    lowering *l;
    ir_node_id *owner; /* by region: the node that it belongs to */
    VEC(ir_value_id) stack;
} counting;

static bool is_list(const lowering *l, ir_value_id v)
{
    const ir_value *x = ir_value_at(l->g, v);
    int64_t count = 1;
    if (dtype_is_float(x->dtype)) return false;
    for (uint32_t k = 0; k < x->rank; k++) {
        const int64_t most = dim_range_of(l->p->dims, x->dim[k]).max;
        if (!i64_mul(count, most > 0 ? most : 1, &count) || count > list_most) return false;
    }
    return true;
}

static void want(counting *c, ir_value_id v)
{
    if (!v || c->l->is_wanted[v] || ir_is_const(c->l->g, v)) return;
    c->l->is_wanted[v] = true;
    ir_value_id *slot = VEC_PUSH(c->l->a, &c->stack);
    if (slot) *slot = v;
}

/* Small integers of small integers. */
static bool is_arithmetic(const lowering *l, const ir_node *n)
{
    if (n->count_region || !n->count_out || op_has(n->op, HOST | LATE | VARIES)) return false;
    for (uint32_t i = 0; i < n->count_out; i++)
        if (n->out[i] && !is_list(l, n->out[i])) return false;
    for (uint32_t i = 0; i < n->count_in; i++) {
        const ir_value *x = ir_value_at(l->g, n->in[i]);
        if (n->in[i] && (dtype_is_float(x->dtype) || !work_is_small(l, x->rank, x->dim))) return false;
    }
    return true;
}

/* How many inputs come before the carried ones (first), how many values are carried, and how many results of the body
 * to skip. */
static void carried_of(const ir_node *n, uint32_t *first, uint32_t *count, uint32_t *skip)
{
    *first = *count = *skip = 0;
    if (n->op == OP_loop) {
        *first = 2;
        *skip = 1;
        *count = (uint32_t)((const attrs_loop *)n->attrs)->carried;
    } else if (n->op != OP_if) {
        *count = (uint32_t)((const attrs_scan *)n->attrs)->carried;
    }
}

/* If the host reads a carried value, the host also reads its initial value, its value after each turn, and its last
 * value. */
static void want_carried(counting *c, const ir_node *n, uint32_t i)
{
    uint32_t first, count, skip;
    carried_of(n, &first, &count, &skip);
    const ir_region *body = ir_region_at(c->l->g, n->region[0]);
    want(c, n->in[first + i]);
    want(c, body->param.at[first + i]);
    want(c, body->result.at[skip + i]);
    want(c, n->out[i]);
}

static void follow_param(counting *c, ir_value_id v)
{
    const ir_graph *g = c->l->g;
    for (ir_region_id r = IR_MAIN + 1; r < g->region.count; r++) {
        const ir_region *body = ir_region_at(g, r);
        const ir_node *n = ir_node_at(g, c->owner[r]);
        uint32_t first, count, skip;
        if (!c->owner[r]) continue;
        carried_of(n, &first, &count, &skip);
        for (uint32_t i = 0; i < body->param.count; i++) {
            if (body->param.at[i] != v) continue;
            const uint32_t input = i + (n->op == OP_if);
            if (i >= first && i < first + count) want_carried(c, n, i - first);
            else if (input < n->count_in) want(c, n->in[input]);
        }
    }
}

static void follow(counting *c, ir_value_id v)
{
    lowering *l = c->l;
    const ir_value *x = ir_value_at(l->g, v);
    const ir_node *n = ir_node_at(l->g, x->producer);
    if (!x->producer) {
        follow_param(c, v);
    } else if (n->count_region) {
        uint32_t first, count, skip;
        carried_of(n, &first, &count, &skip);
        if (x->producer_out < count) want_carried(c, n, x->producer_out);
        else
            for (uint32_t k = 0; k < n->count_region; k++)
                want(c, ir_region_at(l->g, n->region[k])->result.at[skip + x->producer_out]);
    } else if (is_arithmetic(l, n)) {
        l->is_counting[x->producer] = true;
        for (uint32_t i = 0; i < n->count_in; i++) want(c, n->in[i]);
    }
}

/* Marks the values that the executor reads for a call, and the values that ops on the host read. */
static void begin(counting *c, const ir_node *n)
{
    if (n->op == OP_loop) {
        want(c, n->in[0]);
        want(c, n->in[1]);
        want(c, ir_region_at(c->l->g, n->region[0])->result.at[0]);
    } else if (n->count_region) {
        if (n->count_region == 2) want(c, n->in[0]);
    } else if (op_has(n->op, HOST)) {
        for (uint32_t i = 0; i < n->count_in; i++)
            if (is_list(c->l, n->in[i])) want(c, n->in[i]);
    }
}

sinter_status lower_find_counts(lowering *l)
{
    const ir_graph *g = l->g;
    l->is_wanted = ARENA_NEW(l->a, bool, g->value.count);
    l->is_counting = ARENA_NEW(l->a, bool, g->node.count);
    counting c = { .l = l, .owner = ARENA_NEW(l->a, ir_node_id, g->region.count) };
    if (!l->is_wanted || !l->is_counting || !c.owner) return FAIL_MEMORY(l->e, "a plan");
    if (!l->o->backend->copy || l->o->reference_only) return SINTER_OK;
    for (ir_node_id id = 1; id < g->node.count; id++) {
        const ir_node *n = &g->node.at[id];
        for (uint32_t k = 0; k < n->count_region && !n->is_dead; k++) c.owner[n->region[k]] = id;
    }
    for (ir_node_id id = 1; id < g->node.count; id++)
        if (!g->node.at[id].is_dead && !g->node.at[id].is_folded) begin(&c, &g->node.at[id]);
    while (c.stack.count && !l->a->failed) follow(&c, c.stack.at[--c.stack.count]);
    return l->a->failed ? FAIL_MEMORY(l->e, "a plan") : SINTER_OK;
}

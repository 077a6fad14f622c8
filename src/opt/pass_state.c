/* SPDX-License-Identifier: Apache-2.0 */
/* pass_state.c - a state that grows gets a fixed size, so that no size depends on how many rows it holds.
 *
 * A model appends rows: present = concat(past, new), sizes P, S and T = P + S. Afterwards the state has room for C
 * rows, each axis of T elements has C, and what lies behind the first T elements of such an axis (the padding) has no
 * meaning. The new rows are written into the state (tensor_scatter). How many rows there are is data, the parameter
 * `rows`: it says where the new rows go, how many keys attention reads, and what positions the tokens have.
 *
 * A node is safe where the elements of its result that count depend on no padding. What is not known to be safe is
 * refused with the node's name. Sizes change last, all at once: P becomes C - S, and so T becomes C. */
#include "core/storage.h"
#include "ir/build.h"
#include "ops/padding.h"
#include "opt/pipeline.h"

#include <math.h>
#include <string.h>

typedef struct growth {
    opt_state *s;
    ir_graph *g;
    ir_builder b;
    arena a;
    uint32_t past;                        /* the symbol P */
    dim total;                            /* T */
    ir_value_id before, after, positions; /* P and T as data, i64[]; 0, 1, … C - 1, i64[C]; 0: not made so far */
    bool *is_zero;                        /* [values] of the graph as it was: what lies in its padding is 0 */
    uint32_t values;
} growth;

static sinter_status refuse(const growth *w, const ir_node *n, const char *why)
{
    return FAIL(w->s->e, UNSUPPORTED, "the state cannot have a fixed size: node '%s' (%s) %s", n->name ? n->name : "?",
                op_at(n->op)->name, why);
}

/* The first failure of the builder, which has been reported. */
static sinter_status made(const growth *w)
{
    return w->b.status;
}

/* ---- the number of rows, as data ---- */

static sinter_status make_rows(growth *w)
{
    dim_table *t = w->g->dims;
    const dim size = dim_const(t, STATE_ROWS), one = dim_const(t, 1);
    const ir_value_id rows = ir_param(w->g, IR_MAIN, "rows of the state", SINTER_DTYPE_I64, 1, &size);
    if (!rows) return FAIL_MEMORY(w->s->e, "the rows of a state");
    w->g->states.rows = rows;
    w->before = build_shaped(&w->b, build_part(&w->b, rows, 0, dim_const(t, ROWS_BEFORE), 1, one), NULL, 0);
    w->after = build_shaped(&w->b, build_part(&w->b, rows, 0, dim_const(t, ROWS_AFTER), 1, one), NULL, 0);
    return made(w);
}

/* `by` takes the place of the value `v` that node `old` made. */
static sinter_status replace(growth *w, ir_value_id v, ir_value_id by, ir_node_id old)
{
    TRY(made(w));
    const ir_node_id n = ir_value_at(w->g, by)->producer;
    TRY(ir_origin_unite(w->g, n, old));
    if (!ir_node_at(w->g, n)->name) ir_node_at(w->g, n)->name = ir_node_at(w->g, old)->name;
    TRY(ir_node_set_out(w->g, n, ir_value_at(w->g, by)->producer_out, v));
    ir_node_kill(w->g, old);
    w->s->fired++;
    return SINTER_OK;
}

/* ---- what is padded ---- */

static bool is_past(const growth *w, dim d)
{
    return dim_mentions(w->g->dims, d, w->past);
}

/* The axes of T elements as bits. False: another size depends on P. */
static bool padded_axes(const growth *w, ir_value_id v, uint32_t *out)
{
    const ir_value *x = ir_value_at(w->g, v);
    *out = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->dim[i] == w->total) *out |= 1u << i;
        else if (is_past(w, x->dim[i])) return false;
    }
    return true;
}

static bool is_zero(const growth *w, ir_value_id v)
{
    return v < w->values && w->is_zero[v];
}

static bool has_past_attribute(const growth *w, const ir_node *n)
{
    for (const attr_info *i = op_at(n->op)->attr; i->name; i++) {
        if (i->kind != ATTR_DIMS) continue;
        const attr_dims *d = (const attr_dims *)((const char *)n->attrs + i->at);
        for (uint32_t k = 0; k < d->count; k++)
            if (is_past(w, (dim)d->at[k])) return true;
    }
    return false;
}

/* ---- nodes that change ---- */

/* `by` behind the first T elements of `axis`. */
static ir_value_id masked(growth *w, ir_value_id v, uint32_t axis, double by)
{
    if (!w->positions) w->positions = build_iota(&w->b, w->total);
    const ir_value_id along = build_along(&w->b, w->positions, axis, ir_value_at(w->g, v)->rank);
    const ir_value_id behind = build_scalar_like(&w->b, v, by);
    return build_where(&w->b, build_lt(&w->b, along, w->after), v, behind);
}

/* Scores that do not count are -infinity, so their weights are 0. */
static sinter_status mask_softmax(growth *w, ir_node_id id, uint32_t padded)
{
    const ir_node n = *ir_node_at(w->g, id);
    const uint32_t axis = (uint32_t)((const attrs_softmax *)n.attrs)->axis;
    const ir_value_id scores = masked(w, n.in[0], axis, -INFINITY);
    TRY(made(w));
    ir_node_set_in(w->g, id, 0, scores);
    w->is_zero[n.out[0]] = padded == 1u << axis; /* of rows by rows, only one axis is masked */
    return SINTER_OK;
}

/* A sum over rows counts 0 for the padding of both factors: rows that were taken back may hold NaN. */
static sinter_status mask_factors(growth *w, ir_node_id id, const uint32_t *padded)
{
    const ir_node n = *ir_node_at(w->g, id);
    for (uint32_t i = 0; i < 2; i++) {
        if (is_zero(w, n.in[i])) continue;
        ir_value_id v = n.in[i];
        for (uint32_t axis = 0; axis < ir_value_at(w->g, n.in[i])->rank; axis++)
            if (padded[i] >> axis & 1) v = masked(w, v, axis, 0);
        TRY(made(w));
        ir_node_set_in(w->g, id, i, v);
    }
    return SINTER_OK;
}

/* Constant indices of which none is below 0. */
static bool is_from_start(const ir_value *v)
{
    if (!v->data) return false;
    const int64_t count = (int64_t)(v->data_size * 8 / sinter_dtype_bits(v->dtype));
    for (int64_t i = 0; i < count; i++)
        if (dtype_load_i64(v->dtype, v->data, i) < 0) return false;
    return true;
}

/* An index below 0 counts from the last row that there is. */
static sinter_status count_from_end(growth *w, ir_node_id id)
{
    const ir_node n = *ir_node_at(w->g, id);
    if (is_from_start(ir_value_at(w->g, n.in[1]))) return SINTER_OK;
    const ir_value_id at = build_typed(&w->b, n.in[1], SINTER_DTYPE_I64);
    const ir_value_id zero = build_scalar_like(&w->b, at, 0);
    const ir_value_id is_below = build_lt(&w->b, at, zero), from_end = build_add(&w->b, at, w->after);
    const ir_value_id from_start = build_where(&w->b, is_below, from_end, at);
    TRY(made(w));
    ir_node_set_in(w->g, id, 1, from_start);
    return SINTER_OK;
}

static sinter_status limit_attention(growth *w, ir_node_id id)
{
    const ir_node n = *ir_node_at(w->g, id);
    if (n.count_in > 4 && n.in[4]) return refuse(w, &n, "has a length of its own");
    const ir_value_id mask = n.count_in > 3 ? n.in[3] : 0;
    return replace(w, n.out[0], build_attended(&w->b, n.in[0], n.in[1], n.in[2], mask, w->after, n.attrs), id);
}

/* Rows [P, P + S) of an axis of T: where they begin is data. */
static sinter_status gather_rows(growth *w, ir_node_id id, uint32_t axis)
{
    const ir_node n = *ir_node_at(w->g, id);
    const ir_value x = *ir_value_at(w->g, n.in[0]);
    const attrs_slice *from = n.attrs;
    for (uint32_t i = 0; i < x.rank; i++)
        if (i != axis && (from->size.at[i] != x.dim[i] || !dim_is(w->g->dims, (dim)from->start.at[i], 0)))
            return refuse(w, &n, "cuts several axes, one of which is that of the state");
    const ir_value_id rows = build_add(&w->b, build_iota(&w->b, (dim)from->size.at[axis]), w->before);
    return replace(w, n.out[0], build_gather(&w->b, n.in[0], rows, &(attrs_gather){ .axis = axis }), id);
}

/* P, T and numbers that the state does not change, as data. */
static sinter_status number_of(growth *w, ir_node_id id)
{
    const ir_node n = *ir_node_at(w->g, id);
    const attrs_shape_value *a = n.attrs;
    ir_value_id part[SINTER_RANK_MAX];
    const dim one = dim_const(w->g->dims, 1);
    if (a->type != SINTER_DTYPE_I64 || a->value.count > SINTER_RANK_MAX || !a->value.count)
        return refuse(w, &n, "gives the state's size as data of another type, or with too many others");
    for (uint32_t i = 0; i < a->value.count; i++) {
        const dim d = (dim)a->value.at[i];
        uint32_t symbol;
        if (!is_past(w, d)) part[i] = build_sizes(&w->b, &d, 1, true);
        else if (d == w->total) part[i] = w->after;
        else if (dim_symbol_of(w->g->dims, d, &symbol)) part[i] = w->before;
        else return refuse(w, &n, "computes with the number of rows");
        if (!a->scalar) part[i] = build_shaped(&w->b, part[i], &one, 1);
    }
    /* A node of its own: `before` and `after` have other readers. */
    if (a->scalar) return replace(w, n.out[0], build_copy(&w->b, part[0], DEFAULTS(copy)), id);
    return replace(w, n.out[0], build_concat(&w->b, part, a->value.count, DEFAULTS(concat)), id);
}

static sinter_status cut(growth *w, ir_node_id id, uint32_t padded)
{
    const ir_node *n = ir_node_at(w->g, id);
    const attrs_slice *a = n->attrs;
    for (uint32_t i = 0; i < a->start.count; i++) {
        const dim start = (dim)a->start.at[i], size = (dim)a->size.at[i];
        uint32_t symbol;
        if (!(padded >> i & 1)) {
            if (is_past(w, start) || is_past(w, size)) return refuse(w, n, "cuts by the number of rows");
            continue;
        }
        if (dim_is(w->g->dims, start, 0) && a->step.at[i] == 1 && size == w->total) continue;
        if (dim_symbol_of(w->g->dims, start, &symbol) && symbol == w->past && a->step.at[i] == 1 &&
            size == w->g->states.append)
            return gather_rows(w, id, i);
        return refuse(w, n, "takes a part of the rows that is neither all of them nor the new ones");
    }
    return SINTER_OK;
}

/* Has the result another size than T where an operand has T? T may be 1 in a run, and then the operand is repeated. */
static bool meets_another_size(const growth *w, const ir_node *n, const uint32_t *padded)
{
    if (!op_is_scalar(n->op) && n->op != OP_expand) return false;
    const ir_value *y = ir_value_at(w->g, n->out[0]);
    for (uint32_t i = 0; i < n->count_in; i++) {
        const uint32_t rank = ir_value_at(w->g, n->in[i])->rank;
        for (uint32_t k = 0; k < rank; k++)
            if (padded[i] >> k & 1 && y->dim[y->rank - rank + k] != w->total) return true;
    }
    return false;
}

static sinter_status visit(growth *w, ir_node_id id)
{
    const ir_node *n = ir_node_at(w->g, id);
    uint32_t *padded = ARENA_NEW(&w->a, uint32_t, (size_t)n->count_in + 1),
             *rank = ARENA_NEW(&w->a, uint32_t, (size_t)n->count_in + 1), any = 0;
    if (!padded || !rank) return FAIL_MEMORY(w->s->e, "a state");
    for (uint32_t i = 0; i < n->count_in + n->count_out; i++) {
        uint32_t bits = 0;
        const ir_value_id v = i < n->count_in ? n->in[i] : n->out[i - n->count_in];
        if (v && !padded_axes(w, v, &bits)) return refuse(w, n, "has a size that depends on the number of rows");
        any |= bits;
        if (i >= n->count_in) continue;
        padded[i] = bits;
        rank[i] = ir_value_at(w->g, v)->rank;
    }
    if (!any && !has_past_attribute(w, n)) return SINTER_OK;
    if (n->count_region) return refuse(w, n, "has a body that sees the state");
    if (meets_another_size(w, n, padded)) return refuse(w, n, "spreads the rows over an axis of another size");
    padding_call c = { .op = n->op, .attrs = n->attrs, .count_in = n->count_in, .rank = rank, .padded = padded };
    const padding_fate fate = op_padding(&c);
    if (fate == PADDING_PASSES || fate == PADDING_IS_CUT) w->is_zero[n->out[0]] = is_zero(w, n->in[0]);
    if (fate == PADDING_REACHES) return refuse(w, n, c.why);
    if (fate == PADDING_IS_CUT) return cut(w, id, padded[0]);
    if (fate == PADDING_IS_SIZE) return number_of(w, id);
    if (fate == PADDING_MASKED) return mask_softmax(w, id, padded[0]);
    if (fate == PADDING_LIMITED) return limit_attention(w, id);
    if (fate == PADDING_COUNTED) return count_from_end(w, id);
    if (fate == PADDING_SUMMED) return mask_factors(w, id, padded);
    return SINTER_OK;
}

/* Nodes of bodies may know the number of rows, too, as a size. */
static sinter_status check_bodies(const growth *w)
{
    for (ir_node_id id = 1; id < w->g->node.count; id++) {
        const ir_node *n = ir_node_at(w->g, id);
        if (n->is_dead || n->parent == IR_MAIN) continue;
        bool is_sized = has_past_attribute(w, n);
        for (uint32_t i = 0; i < n->count_out; i++) {
            const ir_value *y = ir_value_at(w->g, n->out[i]);
            for (uint32_t k = 0; k < y->rank; k++) is_sized = is_sized || is_past(w, y->dim[k]);
        }
        if (is_sized) return refuse(w, n, "is in a body and has a size of the state");
    }
    return SINTER_OK;
}

/* ---- pairs ---- */

static sinter_status refuse_pair(const growth *w, const ir_value *past, const ir_value *present, const char *why)
{
    return FAIL(w->s->e, UNSUPPORTED, "input '%s' and output '%s' are no state: %s", past->name ? past->name : "?",
                present->name ? present->name : "?", why);
}

static bool is_same_shape(const ir_value *a, const ir_value *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, a->rank * sizeof(dim));
}

/* Finds P, S and T; all pairs have the same. */
static sinter_status check_growth(growth *w, const ir_value *past, const ir_value *present)
{
    ir_graph *g = w->g;
    const ir_node *n = ir_node_at(g, present->producer);
    if (n->op != OP_concat || n->count_in != 2 || ir_value_at(g, n->in[0]) != past)
        return refuse_pair(w, past, present, "the output is neither the input with rows behind it nor of its shape");
    const uint32_t axis = (uint32_t)((const attrs_concat *)n->attrs)->axis;
    const dim append = ir_value_at(g, n->in[1])->dim[axis];
    uint32_t symbol;
    if (past->use_count != 1) return refuse_pair(w, past, present, "other nodes read the input");
    if (!axis) return refuse_pair(w, past, present, "it grows along the first axis");
    if (!dim_symbol_of(g->dims, past->dim[axis], &symbol))
        return refuse_pair(w, past, present, "the number of its rows is fixed");
    for (uint32_t i = 0; i < past->rank; i++)
        if (i != axis && !dim_is_const(g->dims, past->dim[i], NULL))
            return refuse_pair(w, past, present, "another size than that of the rows is free: give it a number");
    if (dim_mentions(g->dims, append, symbol))
        return refuse_pair(w, past, present, "it grows by as many rows as it has");
    if (w->total && (symbol != w->past || append != g->states.append))
        return refuse_pair(w, past, present, "it grows by another number of rows than the others");
    w->past = symbol;
    g->states.append = append;
    w->total = present->dim[axis];
    return SINTER_OK;
}

/* The new rows are written where the state is. */
static sinter_status append_rows(growth *w, ir_value_id past, ir_value_id present)
{
    const ir_node_id id = ir_value_at(w->g, present)->producer;
    const ir_node n = *ir_node_at(w->g, id);
    const uint32_t axis = (uint32_t)((const attrs_concat *)n.attrs)->axis;
    const dim one = dim_const(w->g->dims, 1);
    const ir_value_id start = build_shaped(&w->b, w->before, &one, 1);
    const ir_value_id starts = build_expanded(&w->b, start, &ir_value_at(w->g, past)->dim[0], 1);
    ir_value_at(w->g, past)->dim[axis] = w->total;
    const attrs_tensor_scatter a = { .axis = axis };
    return replace(w, present, build_tensor_scatter(&w->b, past, n.in[1], starts, &a), id);
}

static void substitute(const growth *w, const attr_dims *d, dim by)
{
    int64_t *at = (int64_t *)(uintptr_t)d->at;
    for (uint32_t i = 0; i < d->count; i++) at[i] = dim_substitute(w->g->dims, (dim)at[i], w->past, by);
}

/* P is C - S from now on. */
static sinter_status fix_sizes(growth *w)
{
    ir_graph *g = w->g;
    const dim by = dim_sub(g->dims, dim_const(g->dims, g->states.capacity), g->states.append);
    for (ir_value_id v = 1; v < g->value.count; v++) {
        ir_value *x = &g->value.at[v];
        for (uint32_t i = 0; i < x->rank; i++) x->dim[i] = dim_substitute(g->dims, x->dim[i], w->past, by);
        bool is_stale = false;
        for (uint32_t i = 0; i < x->shape_count; i++) is_stale = is_stale || is_past(w, x->shape_value[i]);
        if (!is_stale) continue;
        x->shape_value = NULL;
        x->shape_count = 0;
    }
    for (ir_node_id id = 1; id < g->node.count; id++) {
        const ir_node *n = &g->node.at[id];
        if (n->is_dead || !n->attrs) continue;
        for (const attr_info *i = op_at(n->op)->attr; i->name; i++) {
            const attr_dims *d = (const attr_dims *)((const char *)n->attrs + i->at);
            if (i->kind == ATTR_DIMS) substitute(w, d, by);
        }
    }
    return dim_table_failed(g->dims) ? FAIL_MEMORY(w->s->e, "a state") : SINTER_OK;
}

static sinter_status check_outputs(const growth *w)
{
    const ir_region *main = ir_region_at(w->g, IR_MAIN);
    for (uint32_t i = 0; i < ir_output_count(w->g); i++) {
        const ir_value *x = ir_value_at(w->g, main->result.at[i]);
        uint32_t padded;
        if (!padded_axes(w, main->result.at[i], &padded) || padded)
            return FAIL(w->s->e, UNSUPPORTED, "output '%s' has a size that depends on the rows of the state",
                        x->name ? x->name : "?");
    }
    return SINTER_OK;
}

static sinter_status run(growth *w)
{
    ir_graph *g = w->g;
    const uint32_t count = g->states.count;
    bool *grows = ARENA_NEW(&w->a, bool, count);
    ir_value_id *pair = ARENA_NEW(&w->a, ir_value_id, 2 * (size_t)count);
    if (!grows || !pair) return FAIL_MEMORY(w->s->e, "a state");
    const ir_region *main = ir_region_at(g, IR_MAIN);
    for (uint32_t i = 0; i < count; i++) {
        pair[2 * i] = main->param.at[main->param.count - count + i];
        pair[2 * i + 1] = main->result.at[main->result.count - count + i];
        const ir_value *past = ir_value_at(g, pair[2 * i]), *present = ir_value_at(g, pair[2 * i + 1]);
        if (sinter_dtype_bits(past->dtype) < 8) return refuse_pair(w, past, present, "its type has less than a byte");
        grows[i] = !is_same_shape(past, present);
        if (grows[i]) TRY(check_growth(w, past, present));
        for (uint32_t k = 0; !grows[i] && k < past->rank; k++)
            if (!dim_is_const(g->dims, past->dim[k], NULL))
                return refuse_pair(w, past, present, "a size is free: give it a number");
    }
    if (!w->total) return SINTER_OK;
    const dim_range most = dim_range_of(g->dims, w->total);
    if (!g->states.capacity && most.max < INT64_MAX) g->states.capacity = most.max;
    if (!g->states.capacity)
        return FAIL(w->s->e, INVALID_ARG, "the state grows and no capacity is given: say how many rows it can hold");
    ir_node_id *order;
    uint32_t nodes;
    TRY(ir_order(g, IR_MAIN, &w->a, &order, &nodes));
    TRY(check_outputs(w));
    w->values = g->value.count;
    w->is_zero = ARENA_NEW(&w->a, bool, w->values);
    if (!w->is_zero) return FAIL_MEMORY(w->s->e, "a state");
    TRY(make_rows(w));
    for (uint32_t i = 0; i < count; i++)
        if (grows[i]) TRY(append_rows(w, pair[2 * i], pair[2 * i + 1]));
    for (uint32_t i = 0; i < nodes; i++)
        if (!ir_node_at(g, order[i])->is_dead) TRY(visit(w, order[i]));
    TRY(check_bodies(w));
    return fix_sizes(w);
}

sinter_status pass_state(opt_state *s)
{
    if (!s->g->states.count) return SINTER_OK;
    growth w = { .s = s, .g = s->g, .b = { .g = s->g, .region = IR_MAIN } };
    arena_init(&w.a, s->e);
    const sinter_status status = run(&w);
    arena_deinit(&w.a);
    return status;
}

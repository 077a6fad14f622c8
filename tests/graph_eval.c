/* SPDX-License-Identifier: Apache-2.0 */
/* graph_eval.c - a graph becomes one problem a node, and the oracle runs each. */
#include "graph_eval.h"

#include "ops/problem.h"
#include "test.h"

#include <math.h>

typedef struct eval {
    const ir_graph *g;
    arena *a;
    view *value;
    int64_t *size; /* of each dim id */
} eval;

static sinter_status shape_of(const eval *x, ir_value_id v, view *out)
{
    const ir_value *at = ir_value_at(x->g, v);
    int64_t d[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = 0; i < at->rank; i++) d[i] = x->size[at->dim[i]];
    if (!view_init(out, at->dtype, at->rank, d, NULL)) return FAIL(x->g->e, INVALID_ARG, "value %u has no size", v);
    out->data = arena_alloc(x->a, (size_t)view_count(out) * 8 + 8, 64);
    return out->data ? SINTER_OK : FAIL_MEMORY(x->g->e, "a value");
}

static sinter_status dims_known(eval *x)
{
    const ir_graph *g = x->g;
    const uint32_t count = dim_count(g->dims), symbols = dim_symbol_count(g->dims);
    dim_node *node = ARENA_NEW(x->a, dim_node, count + 1);
    int64_t *symbol = ARENA_NEW(x->a, int64_t, symbols + 1);
    x->size = ARENA_NEW(x->a, int64_t, count + 1);
    if (!node || !symbol || !x->size) return FAIL_MEMORY(g->e, "dims");
    for (uint32_t i = 0; i < count; i++) node[i] = *dim_at(g->dims, i);
    for (uint32_t i = 0; i < symbols; i++) symbol[i] = dim_symbol_at(g->dims, i)->opt;
    (void)dim_eval_all(node, count, symbol, symbols, x->size);
    return SINTER_OK;
}

static sinter_status run_node(eval *x, ir_node_id id)
{
    const ir_graph *g = x->g;
    const ir_node *n = &g->node.at[id];
    const op_info *op = op_at(n->op);
    if (op->regions || op->traits & LATE) return FAIL(g->e, UNSUPPORTED, "%s is not evaluated here", op->name);
    view *in = ARENA_NEW(x->a, view, n->count_in + 1), *out = ARENA_NEW(x->a, view, n->count_out + 1);
    problem_operand *pin = ARENA_NEW(x->a, problem_operand, n->count_in + 1),
                    *pout = ARENA_NEW(x->a, problem_operand, n->count_out + 1);
    void *attrs = op_attrs_copy(x->a, n->op, n->attrs);
    if (!in || !out || !pin || !pout || !attrs) return FAIL_MEMORY(g->e, "a node");
    for (const attr_info *d = op->attr; d->name; d++) {
        if (d->kind != ATTR_DIMS) continue;
        attr_dims *list = (attr_dims *)((char *)attrs + d->at);
        int64_t *at = ARENA_NEW(x->a, int64_t, list->count + 1);
        if (!at) return FAIL_MEMORY(g->e, "a node");
        for (uint32_t i = 0; i < list->count; i++) at[i] = x->size[list->at[i]];
        list->at = at;
    }
    for (uint32_t i = 0; i < n->count_in; i++) {
        in[i] = x->value[n->in[i]];
        if (n->in[i] && !in[i].data && view_count(&in[i]))
            return FAIL(g->e, INTERNAL, "value %u has not been made", n->in[i]);
    }
    for (uint32_t i = 0; i < n->count_out; i++) TRY(shape_of(x, n->out[i], &out[i]));
    for (uint32_t i = 0; i < n->count_in + n->count_out; i++) {
        const view *v = i < n->count_in ? &in[i] : &out[i - n->count_in];
        problem_operand *o = i < n->count_in ? &pin[i] : &pout[i - n->count_in];
        o->dtype = v->dtype;
        o->rank = (uint8_t)v->rank;
        for (uint32_t k = 0; k < v->rank; k++) {
            o->order[k] = (uint8_t)k;
            o->dim[k] = (dim_range){ v->dim[k], v->dim[k], v->dim[k], v->dim[k] ? v->dim[k] : 1 };
        }
    }
    const problem p = { .op = n->op,
                        .attrs = attrs,
                        .count_in = n->count_in,
                        .count_anchor = n->count_anchor,
                        .count_out = n->count_out,
                        .in = pin,
                        .out = pout,
                        .prologue = n->prologue,
                        .epilogue = n->epilogue };
    ref_call c = { .e = g->e,
                   .op = n->op,
                   .attrs = attrs,
                   .count_in = n->count_in,
                   .count_out = n->count_out,
                   .in = in,
                   .out = out,
                   .program = n->op == OP_pointwise ? n->epilogue : NULL,
                   .scratch = x->a };
    TRY(problem_reference(&p, &c));
    for (uint32_t i = 0; i < n->count_out; i++) x->value[n->out[i]] = out[i];
    return SINTER_OK;
}

sinter_status graph_eval(const ir_graph *g, const view *in, arena *a, view *out)
{
    eval x = { .g = g, .a = a, .value = ARENA_NEW(a, view, g->value.count) };
    if (!x.value) return FAIL_MEMORY(g->e, "values");
    TRY(dims_known(&x));
    const ir_region *r = ir_region_at(g, IR_MAIN);
    for (uint32_t i = 0; i < r->param.count; i++) x.value[r->param.at[i]] = in[i];
    for (ir_value_id v = 1; v < g->value.count; v++)
        if (ir_is_const(g, v)) (void)ir_const_view(g, v, &x.value[v]);
    ir_node_id *order;
    uint32_t count;
    TRY(ir_order(g, IR_MAIN, a, &order, &count));
    for (uint32_t i = 0; i < count; i++) TRY(run_node(&x, order[i]));
    for (uint32_t i = 0; i < r->result.count; i++) out[i] = x.value[r->result.at[i]];
    return SINTER_OK;
}

sinter_status graph_inputs(const ir_graph *g, uint64_t seed, arena *a, view *in)
{
    eval x = { .g = g, .a = a };
    TRY(dims_known(&x));
    const ir_region *r = ir_region_at(g, IR_MAIN);
    for (uint32_t i = 0; i < r->param.count; i++) {
        TRY(shape_of(&x, r->param.at[i], &in[i]));
        const char *name = ir_value_at(g, r->param.at[i])->name;
        const bool positive = name && !strncmp(name, "pos", 3);
        for (int64_t k = 0; k < view_count(&in[i]); k++) {
            const double unit = (double)(test_random(&seed) >> 11) * 0x1p-53;
            if (!dtype_is_float(in[i].dtype))
                view_store_i64(&in[i], k, in[i].dtype == SINTER_DTYPE_BOOL ? unit > 0.5 : (int64_t)(unit * 4));
            else view_store_f64(&in[i], k, positive ? 0.1 + 0.9 * unit : unit * 2 - 1);
        }
    }
    return SINTER_OK;
}

void graph_inputs_special(const ir_graph *g, uint64_t seed, bool far, view *in)
{
    static const double special[] = { 0,   -0.0, 1,    -1,       0.5,       -0.5,     2.5,      -2.5,
                                      3,   -6,   6,    0x1p-149, -0x1p-149, 0x1p-126, INFINITY, -INFINITY,
                                      NAN, 300,  1e10, -1e10,    3e38,      -3e38 };
    const uint32_t kinds = COUNT_OF(special) - (far ? 0 : 5);
    const ir_region *r = ir_region_at(g, IR_MAIN);
    for (uint32_t i = 0; i < r->param.count; i++) {
        for (int64_t k = 0; k < view_count(&in[i]); k++) {
            const uint64_t bits = test_random(&seed);
            if (!dtype_is_float(in[i].dtype) && sinter_dtype_bits(in[i].dtype) == 8 && in[i].dtype != SINTER_DTYPE_BOOL)
                view_store_i64(&in[i], k, (int64_t)(bits >> 32));
            else if (dtype_is_float(in[i].dtype) && bits % 3 == 0)
                view_store_f64(&in[i], k, special[(bits >> 32) % kinds]);
        }
    }
}

bool graph_same(const view *a, const view *b, bool signs)
{
    if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dim, b->dim, a->rank * sizeof(a->dim[0]))) return false;
    int64_t i[SINTER_RANK_MAX];
    for (bool more = view_first(a->dim, a->rank, i); more; more = view_next(a->dim, a->rank, i)) {
        if (!dtype_is_float(a->dtype)) {
            if (view_load_i64(a, view_offset(a, i)) != view_load_i64(b, view_offset(b, i))) return false;
            continue;
        }
        const double x = view_load_f64(a, view_offset(a, i)), y = view_load_f64(b, view_offset(b, i));
        if (isnan(x) && isnan(y)) continue;
        if (x != y || (signs && signbit(x) != signbit(y))) return false;
    }
    return true;
}

double graph_gap(const view *a, const view *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dim, b->dim, a->rank * sizeof(a->dim[0])))
        return INFINITY;
    double most = 0;
    int64_t i[SINTER_RANK_MAX];
    for (bool more = view_first(a->dim, a->rank, i); more; more = view_next(a->dim, a->rank, i)) {
        const double x = view_load_f64(a, view_offset(a, i)), y = view_load_f64(b, view_offset(b, i));
        if (isnan(x) != isnan(y)) return INFINITY;
        if (x == y || isnan(x)) continue;
        const double gap = fabs(x - y) / fmax(1, fabs(y));
        most = fmax(most, isnan(gap) ? INFINITY : gap);
    }
    return most;
}

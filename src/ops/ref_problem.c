/* SPDX-License-Identifier: Apache-2.0 */
/* ref_problem.c - the oracle: runs any problem on views, the anchor by its reference and the programs in double.
 *
 * What flows between prologue, anchor and epilogue is kept in double where it is a float, so that nothing is rounded
 * but the results. Everything fast is compared with this. As a step of an engine (in_f32) it is kept in f32: a model
 * may round or compare such a value, and 127.5 in double is 127.49999 in f32. */
#include "ops/problem.h"

#include <string.h>

/* A dense view of scratch memory. Floats become f64, or f32 at the least. */
static sinter_status scratch_view(ref_call *c, sinter_dtype dtype, uint32_t rank, const int64_t *dim_at, view *out)
{
    /* A gather copies elements as they are: there is nothing to keep unrounded. */
    const bool is_wide = dtype_is_float(dtype) && c->op != OP_gather, is_f32 = c->in_f32 && dtype != SINTER_DTYPE_F64;
    const sinter_dtype wide = !is_wide ? dtype : is_f32 ? SINTER_DTYPE_F32 : SINTER_DTYPE_F64;
    if (!view_init(out, wide, rank, dim_at, NULL)) return FAIL(c->e, NO_MEMORY, "an intermediate result is too large");
    sinter_tensor t = { .dtype = wide, .rank = rank };
    memcpy(t.dim, out->dim, sizeof(t.dim));
    out->data = arena_alloc(c->scratch, sinter_tensor_size(&t), 64);
    return out->data ? SINTER_OK : FAIL_MEMORY(c->e, "an intermediate result");
}

static const expr_instr *find(const expr *x, expr_op op)
{
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->at[i].op == op) return &x->at[i];
    }
    return NULL;
}

/* The anchor's input 0 from the prologue: its space is the broadcast of what it loads. */
static sinter_status run_prologue(const problem *p, ref_call *c, view *out)
{
    uint32_t rank = 0;
    int64_t dim_at[SINTER_RANK_MAX];
    const expr_instr *store = find(p->prologue, EXPR_STORE);
    if (!store) return FAIL(c->e, INVALID_ARG, "a prologue stores nothing");
    for (uint32_t i = 0; i < SINTER_RANK_MAX; i++) dim_at[i] = 1;
    for (uint32_t i = 0; i < p->prologue->count; i++) {
        const expr_instr *n = &p->prologue->at[i];
        if (n->op == EXPR_LOAD && c->in[n->operand].rank > rank) rank = c->in[n->operand].rank;
    }
    for (uint32_t i = 0; i < p->prologue->count; i++) {
        const expr_instr *n = &p->prologue->at[i];
        if (n->op != EXPR_LOAD) continue;
        const view *v = &c->in[n->operand];
        for (uint32_t k = 0; k < v->rank; k++) {
            if (v->dim[k] != 1) dim_at[rank - v->rank + k] = v->dim[k];
        }
    }
    TRY(scratch_view(c, (sinter_dtype)store->dtype, rank, dim_at, out));
    if (expr_run(p->prologue, rank, dim_at, NULL, c->in, out, c->in_f32) == SINTER_OK) return SINTER_OK;
    return FAIL(c->e, INVALID_ARG, "the operands of the prologue do not fit its space");
}

/* The anchor's input 1 as its program makes it. */
static sinter_status run_weight(const problem *p, ref_call *c, view *out)
{
    const view packed = c->in[1];
    const expr_instr *store = find(p->weight, EXPR_STORE);
    if (!store) return FAIL(c->e, INVALID_ARG, "the program of a weight stores nothing");
    TRY(scratch_view(c, (sinter_dtype)store->dtype, packed.rank, packed.dim, out));
    if (expr_run(p->weight, packed.rank, packed.dim, NULL, c->in, out, c->in_f32) == SINTER_OK) return SINTER_OK;
    return FAIL(c->e, INVALID_ARG, "the operands of a packed weight do not fit it");
}

/* Attributes as a shape function wants them: sizes as constant dims. */
static void *attrs_with_dims(const problem *p, const void *attrs, arena *a, dim_table *dims)
{
    char *own = op_attrs_copy(a, p->op, attrs);
    for (const attr_info *i = op_at(p->op)->attr; own && i->name; i++) {
        if (i->kind != ATTR_DIMS) continue;
        attr_dims d;
        memcpy(&d, own + i->at, sizeof(d));
        int64_t *at = ARENA_NEW(a, int64_t, d.count);
        if (!at) return NULL;
        for (uint32_t k = 0; k < d.count; k++) at[k] = dim_const(dims, d.at[k]);
        d.at = at;
        memcpy(own + i->at, &d, sizeof(d));
    }
    return own;
}

/* The shape of the anchor's result. A store of the epilogue has it; where there are only reductions it is inferred. */
static sinter_status anchor_shape(const problem *p, ref_call *c, const view *in, uint32_t *rank, int64_t *dim_at)
{
    const expr_instr *store = find(p->epilogue, EXPR_STORE);
    if (store) {
        *rank = c->out[store->operand].rank;
        memcpy(dim_at, c->out[store->operand].dim, sizeof(c->out->dim));
        return SINTER_OK;
    }
    dim_table *dims = dim_table_create(c->scratch);
    infer_value *value = ARENA_NEW(c->scratch, infer_value, (size_t)p->count_anchor + 1);
    void *attrs = dims ? attrs_with_dims(p, c->attrs ? c->attrs : p->attrs, c->scratch, dims) : NULL;
    if (!dims || !value || !attrs) return FAIL_MEMORY(c->e, "the shape of an anchor");
    for (uint32_t i = 0; i < p->count_anchor; i++) {
        value[1 + i].dtype = in[i].dtype == SINTER_DTYPE_NONE ? SINTER_DTYPE_NONE : p->in[i].dtype;
        if (i == 1 && p->weight) value[1 + i].dtype = value[1].dtype;
        value[1 + i].rank = in[i].rank;
        for (uint32_t k = 0; k < in[i].rank; k++) value[1 + i].dim[k] = dim_const(dims, in[i].dim[k]);
    }
    infer_ctx ctx = {
        .e = c->e,
        .a = c->scratch,
        .dims = dims,
        .op = p->op,
        .attrs = attrs,
        .count_in = p->count_anchor,
        .count_out = 1,
        .in = value + 1,
        .out = value,
    };
    TRY(op_infer(&ctx));
    *rank = value[0].rank;
    for (uint32_t k = 0; k < *rank; k++) {
        if (!dim_is_const(dims, value[0].dim[k], &dim_at[k])) {
            return FAIL(c->e, UNSUPPORTED, "axis %u of the result of op '%s' has no known size", k, op_at(p->op)->name);
        }
    }
    return SINTER_OK;
}

static sinter_status run_anchor(const problem *p, ref_call *c, const view *in, view *out, uint32_t count_out)
{
    ref_call anchor = *c;
    anchor.op = p->op;
    anchor.attrs = c->attrs ? c->attrs : p->attrs;
    anchor.in = in;
    anchor.count_in = p->count_anchor;
    anchor.out = out;
    anchor.count_out = count_out;
    anchor.program = NULL;
    return op_reference(&anchor);
}

sinter_status problem_reference(const problem *p, ref_call *c)
{
    if (c->count_in != p->count_in || c->count_out != p->count_out) {
        return FAIL(c->e, INVALID_ARG, "%u inputs and %u outputs for a problem with %u and %u", c->count_in,
                    c->count_out, p->count_in, p->count_out);
    }
    if (p->op == OP_pointwise) {
        ref_call all = *c;
        all.op = p->op;
        all.program = p->epilogue;
        return op_reference(&all);
    }
    view *in = ARENA_NEW(c->scratch, view, p->count_anchor);
    if (!in) return FAIL_MEMORY(c->e, "the operands of an anchor");
    if (p->count_anchor) memcpy(in, c->in, p->count_anchor * sizeof(*in));
    if (p->prologue) TRY(run_prologue(p, c, &in[0]));
    if (p->weight) TRY(run_weight(p, c, &in[1]));
    if (!p->epilogue) return run_anchor(p, c, in, c->out, c->count_out);

    uint32_t rank = 0;
    int64_t dim_at[SINTER_RANK_MAX] = { 0 };
    view result;
    const expr_instr *acc = find(p->epilogue, EXPR_ACC);
    c->op = p->op;
    TRY(anchor_shape(p, c, in, &rank, dim_at));
    const view *acc_view = NULL;
    if (acc) {
        TRY(scratch_view(c, (sinter_dtype)acc->dtype, rank, dim_at, &result));
        TRY(run_anchor(p, c, in, &result, 1));
        acc_view = &result;
    }
    if (expr_run(p->epilogue, rank, dim_at, acc_view, c->in, c->out, c->in_f32) == SINTER_OK) return SINTER_OK;
    return FAIL(c->e, INVALID_ARG, "the operands of the epilogue do not fit the result of op '%s'", op_at(p->op)->name);
}

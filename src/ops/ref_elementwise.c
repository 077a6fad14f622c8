/* SPDX-License-Identifier: Apache-2.0 */
/* ref_elementwise.c - reference kernels of scalar functions and of pointwise programs, on broadcast strided views. */
#include "ops/expr.h"

/* Most numbers are f32: constants of whole models are folded through here. */
static inline scalar load(const view *v, int64_t at)
{
    if (v->dtype == SINTER_DTYPE_F32) return (scalar){ .f = (double)((const float *)v->data)[at] };
    return scalar_load(v->dtype, v->data, at);
}

sinter_status reference_elementwise(ref_call *c)
{
    const view *out = &c->out[0];
    const uint32_t arity = scalar_at(c->op)->arity;
    const sinter_dtype from = c->in[c->op == OP_where ? 1 : 0].dtype;
    view in[3];
    for (uint32_t i = 0; i < arity; i++) {
        if (!view_broadcast(&c->in[i], out->rank, out->dim, &in[i])) {
            return FAIL(c->e, INVALID_ARG, "input %u does not broadcast to the shape of the result", i);
        }
    }
    /* One row of the innermost axis at a time: offsets are computed once a row, then stepped. */
    const uint32_t outer = out->rank ? out->rank - 1 : 0;
    const int64_t row = out->rank ? out->dim[outer] : 1;
    int64_t index[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(out->dim, outer, index); more; more = view_next(out->dim, outer, index)) {
        index[outer < SINTER_RANK_MAX ? outer : 0] = 0;
        int64_t at[3] = { 0 }, to = view_offset(out, index);
        for (uint32_t i = 0; i < arity; i++) at[i] = view_offset(&in[i], index);
        for (int64_t k = 0; k < row; k++) {
            scalar arg[3] = { { .i = 0 } };
            for (uint32_t i = 0; i < arity; i++) {
                arg[i] = load(&in[i], at[i]);
                at[i] += out->rank ? in[i].stride[outer] : 0;
            }
            const scalar y = scalar_eval(c->op, from, out->dtype, arg);
            if (out->dtype == SINTER_DTYPE_F32) ((float *)out->data)[to] = (float)y.f;
            else scalar_store(out->dtype, out->data, to, y);
            to += out->rank ? out->stride[outer] : 0;
        }
    }
    return SINTER_OK;
}

/* The broadcast of all inputs' dims: the space of a program that has no anchor. */
static sinter_status space_of(const ref_call *c, uint32_t *rank, int64_t *dim_at)
{
    *rank = 0;
    for (uint32_t i = 0; i < c->count_in; i++) {
        if (c->in[i].rank > *rank) *rank = c->in[i].rank;
    }
    for (uint32_t k = 0; k < *rank; k++) dim_at[k] = 1;
    for (uint32_t i = 0; i < c->count_in; i++) {
        const uint32_t lead = *rank - c->in[i].rank;
        for (uint32_t k = 0; k < c->in[i].rank; k++) {
            const int64_t own = c->in[i].dim[k];
            int64_t *all = &dim_at[lead + k];
            if (own == 1 || own == *all) continue;
            if (*all != 1) {
                return FAIL(c->e, INVALID_ARG, "axis %u of input %u has size %lld, that of others is %lld", k, i,
                            (long long)own, (long long)*all);
            }
            *all = own;
        }
    }
    return SINTER_OK;
}

sinter_status reference_pointwise(ref_call *c)
{
    if (!c->program) return FAIL(c->e, INVALID_ARG, "pointwise without a program");
    const char *why = expr_check(c->program, c->count_in, c->count_out, false);
    if (why) return FAIL(c->e, INVALID_ARG, "the program is malformed: %s", why);
    uint32_t rank;
    int64_t dim_at[SINTER_RANK_MAX];
    TRY(space_of(c, &rank, dim_at));
    if (expr_run(c->program, rank, dim_at, NULL, c->in, c->out, c->in_f32) == SINTER_OK) return SINTER_OK;
    return FAIL(c->e, INVALID_ARG, "the operands of the program do not fit its space");
}

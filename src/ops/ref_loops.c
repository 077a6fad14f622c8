/* SPDX-License-Identifier: Apache-2.0 */
/* ref_loops.c - what the reference kernels share: ref_loops.h has the contract. */
#include "ops/ref_loops.h"
#include <inttypes.h>

/* Attributes as a shape function wants them: sizes become dims. */
static void *attrs_with_dims(ref_call *c, dim_table *t)
{
    const op_info *op = op_at(c->op);
    void *attrs = op_attrs_copy(c->scratch, c->op, c->attrs);
    if (!attrs) return NULL;
    for (const attr_info *info = op->attr; info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        attr_dims *list = (attr_dims *)(void *)((char *)attrs + info->at);
        int64_t *ids = ARENA_NEW(c->scratch, int64_t, list->count);
        if (!ids) return NULL;
        for (uint32_t i = 0; i < list->count; i++) ids[i] = (int64_t)dim_const(t, list->at[i]);
        list->at = ids;
    }
    return attrs;
}

sinter_status ref_check(ref_call *c)
{
    dim_table *t = dim_table_create(c->scratch);
    infer_value *in = ARENA_NEW(c->scratch, infer_value, c->count_in);
    infer_value *out = ARENA_NEW(c->scratch, infer_value, c->count_out);
    void *attrs = t ? attrs_with_dims(c, t) : NULL;
    if (!in || !out || !attrs) return FAIL_MEMORY(c->e, "a reference kernel's check");
    for (uint32_t i = 0; i < c->count_in; i++) {
        const view *v = &c->in[i];
        /* A group hands over intermediate results in double, so float types may differ here; kernels load any of them.
         */
        in[i].dtype = dtype_is_float(v->dtype) ? SINTER_DTYPE_F32 : v->dtype;
        in[i].rank = v->rank;
        for (uint32_t k = 0; k < v->rank; k++) in[i].dim[k] = dim_const(t, v->dim[k]);
    }
    infer_ctx infer = { .e = c->e,
                        .a = c->scratch,
                        .dims = t,
                        .op = c->op,
                        .attrs = attrs,
                        .count_in = c->count_in,
                        .count_out = c->count_out,
                        .in = in,
                        .out = out,
                        .program = c->program };
    TRY(op_infer(&infer));
    for (uint32_t i = 0; i < c->count_out; i++) {
        const view *v = &c->out[i];
        if (v->dtype == SINTER_DTYPE_NONE) continue;
        bool is_same = v->rank == out[i].rank;
        for (uint32_t k = 0; is_same && k < v->rank; k++) is_same = dim_is(t, out[i].dim[k], v->dim[k]);
        if (is_same) continue;
        return FAIL(c->e, INTERNAL, "output %" PRIu32 " of %s was given another shape than its shape function says", i,
                    op_at(c->op)->name);
    }
    return SINTER_OK;
}

ref_walk ref_walk_axes(const view *v, uint32_t axes, int64_t at)
{
    ref_walk w = { .at = at, .count = 1 };
    for (uint32_t k = 0; k < v->rank; k++) {
        if (!(axes >> k & 1u)) continue;
        w.dim[w.rank] = v->dim[k];
        w.stride[w.rank++] = v->stride[k];
        w.count *= v->dim[k];
    }
    return w;
}

sinter_dtype ref_wide_of(sinter_dtype dtype)
{
    if (dtype == SINTER_DTYPE_F64) return SINTER_DTYPE_F64;
    return dtype_is_float(dtype) ? SINTER_DTYPE_F32 : SINTER_DTYPE_I64;
}

sinter_status ref_widen(ref_call *c, const view *v, sinter_dtype wide, const view *zero, view *out)
{
    *out = *v;
    if (v->dtype == wide && !zero) return SINTER_OK;
    const size_t size = wide == SINTER_DTYPE_F32 ? sizeof(float) : sizeof(double);
    void *data = arena_alloc(c->scratch, size_mul((size_t)view_count(v), size), 64);
    if (!data || !view_init(out, wide, v->rank, v->dim, data)) return FAIL_MEMORY(c->e, "a widened operand");
    int64_t index[SINTER_RANK_MAX];
    int64_t at = 0;
    for (bool more = view_first(v->dim, v->rank, index); more; more = view_next(v->dim, v->rank, index), at++) {
        const int64_t from = view_offset(v, index);
        if (zero || wide == SINTER_DTYPE_I64) {
            const uint64_t value = (uint64_t)view_load_i64(v, from);
            view_store_i64(out, at,
                           (int64_t)(value - (zero ? (uint64_t)view_load_i64(zero, view_offset(zero, index)) : 0)));
        } else {
            view_store_f64(out, at, view_load_f64(v, from));
        }
    }
    return SINTER_OK;
}

scalar ref_wide_load(const view *v, int64_t at)
{
    if (v->dtype == SINTER_DTYPE_F32) return (scalar){ .f = (double)((const float *)v->data)[at] };
    if (v->dtype == SINTER_DTYPE_F64) return (scalar){ .f = ((const double *)v->data)[at] };
    return (scalar){ .i = ((const int64_t *)v->data)[at] };
}

void ref_axpy(scalar *acc, int64_t acc_step, scalar w, const view *x, int64_t at, int64_t step, int64_t count)
{
    if (x->dtype == SINTER_DTYPE_F32) {
        const float *p = (const float *)x->data + at;
        if (acc_step == 1 && step == 1) { /* the loop that compilers vectorise */
            for (int64_t i = 0; i < count; i++) acc[i].f += w.f * (double)p[i];
        } else {
            for (int64_t i = 0; i < count; i++) acc[i * acc_step].f += w.f * (double)p[i * step];
        }
    } else if (x->dtype == SINTER_DTYPE_F64) {
        const double *p = (const double *)x->data + at;
        for (int64_t i = 0; i < count; i++) acc[i * acc_step].f += w.f * p[i * step];
    } else {
        const int64_t *p = (const int64_t *)x->data + at;
        for (int64_t i = 0; i < count; i++) {
            const uint64_t sum = (uint64_t)acc[i * acc_step].i + (uint64_t)w.i * (uint64_t)p[i * step];
            acc[i * acc_step].i = (int64_t)sum;
        }
    }
}

/* Four sums hide the latency of the addition. */
static double dot_f32(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t count)
{
    double sum[4] = { 0 };
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int64_t k = 0; k < 4; k++) sum[k] += (double)a[(i + k) * a_step] * (double)b[(i + k) * b_step];
    }
    for (; i < count; i++) sum[0] += (double)a[i * a_step] * (double)b[i * b_step];
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

scalar ref_dot(const view *a, int64_t a_at, int64_t a_step, const view *b, int64_t b_at, int64_t b_step, int64_t count)
{
    scalar sum = { .i = 0 };
    if (a->dtype == SINTER_DTYPE_F32) {
        sum.f = dot_f32((const float *)a->data + a_at, a_step, (const float *)b->data + b_at, b_step, count);
    } else if (a->dtype == SINTER_DTYPE_F64) {
        const double *pa = (const double *)a->data + a_at;
        const double *pb = (const double *)b->data + b_at;
        sum.f = 0;
        for (int64_t i = 0; i < count; i++) sum.f += pa[i * a_step] * pb[i * b_step];
    } else {
        const int64_t *pa = (const int64_t *)a->data + a_at;
        const int64_t *pb = (const int64_t *)b->data + b_at;
        uint64_t total = 0;
        for (int64_t i = 0; i < count; i++) total += (uint64_t)pa[i * a_step] * (uint64_t)pb[i * b_step];
        sum.i = (int64_t)total;
    }
    return sum;
}

void ref_store(const view *out, int64_t at, sinter_dtype wide, scalar value)
{
    if (wide == SINTER_DTYPE_I64) {
        view_store_i64(out, at, value.i);
    } else if (dtype_is_float(out->dtype)) {
        view_store_f64(out, at, value.f);
    } else {
        view_store_i64(out, at, (int64_t)value.f); /* sums of products of narrow integers: exact */
    }
}

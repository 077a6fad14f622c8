/* SPDX-License-Identifier: Apache-2.0 */
/* infer_reduce.c - shapes of reductions and of what works along lines: arg_reduce, top_k, normalisations, det, dft. */
#include "ops/infer_check.h"
#include <inttypes.h>

/* A reduction of a known list of sizes to one number is again a size. */
static void reduce_shape_value(infer_ctx *c, const attrs_reduce *a)
{
    const infer_value *x = &c->in[0];
    if (!x->shape_value || x->rank != 1 || a->axes.count != 1 || !x->shape_count || !c->count_out) return;
    dim *value = ARENA_NEW(c->a, dim, 1);
    if (!value) return;
    *value = x->shape_value[0];
    for (uint32_t i = 1; i < x->shape_count; i++) {
        const dim next = x->shape_value[i];
        switch (a->kind) {
        case reduce_kind_sum: *value = dim_add(c->dims, *value, next); break;
        case reduce_kind_prod: *value = dim_mul(c->dims, *value, next); break;
        case reduce_kind_max: *value = dim_max(c->dims, *value, next); break;
        case reduce_kind_min: *value = dim_min(c->dims, *value, next); break;
        default: return;
        }
    }
    const bool is_plain = a->kind == reduce_kind_sum || a->kind == reduce_kind_prod || a->kind == reduce_kind_max ||
                          a->kind == reduce_kind_min;
    if (!is_plain || *value == DIM_NONE) return;
    c->out[0].shape_value = value;
    c->out[0].shape_count = 1;
}

sinter_status infer_reduce(infer_ctx *c)
{
    const attrs_reduce *a = c->attrs;
    TRY(infer_want_in(c, 0, "input", 0, SINTER_RANK_MAX));
    const infer_value *x = &c->in[0];
    if (a->kind < 0 || a->kind >= reduce_kind_count) {
        return FAIL(c->e, INVALID_MODEL, "kind is %" PRId64 ", wanted 0 to %d", a->kind, reduce_kind_count - 1);
    }
    const bool takes_bool = a->kind == reduce_kind_max || a->kind == reduce_kind_min;
    if (!takes_bool || x->dtype != SINTER_DTYPE_BOOL) TRY(infer_want_numeric(c, x, "input"));
    uint32_t mask = 0;
    for (uint32_t i = 0; i < a->axes.count; i++) {
        TRY(infer_want_axis(c, a->axes.at[i], x->rank));
        const uint32_t bit = 1u << a->axes.at[i];
        if (mask & bit) return FAIL(c->e, INVALID_MODEL, "axis %" PRId64 " is named twice", a->axes.at[i]);
        mask |= bit;
    }
    dim d[SINTER_RANK_MAX] = { 0 };
    uint32_t rank = 0;
    for (uint32_t k = 0; k < x->rank; k++) {
        if (!(mask >> k & 1u)) d[rank++] = x->dim[k];
        else if (a->keep) d[rank++] = dim_const(c->dims, 1);
    }
    TRY(infer_set(c, 0, x->dtype, rank, d));
    reduce_shape_value(c, a);
    return SINTER_OK;
}

sinter_status infer_arg_reduce(infer_ctx *c)
{
    const attrs_arg_reduce *a = c->attrs;
    TRY(infer_want_in(c, 0, "input", 1, SINTER_RANK_MAX));
    const infer_value *x = &c->in[0];
    TRY(infer_want_numeric(c, x, "input"));
    TRY(infer_want_axis(c, a->axis, x->rank));
    bool is_empty = false; /* the result: then there is nothing to choose */
    for (uint32_t k = 0; k < x->rank; k++) is_empty |= (int64_t)k != a->axis && dim_is(c->dims, x->dim[k], 0);
    if (dim_is(c->dims, x->dim[a->axis], 0) && !is_empty) {
        return FAIL(c->e, INVALID_MODEL, "axis %" PRId64 " of input %s is empty, so it has no extreme", a->axis,
                    infer_shape_text(c, x));
    }
    dim d[SINTER_RANK_MAX] = { 0 };
    uint32_t rank = 0;
    for (uint32_t k = 0; k < x->rank; k++) {
        if ((int64_t)k != a->axis) d[rank++] = x->dim[k];
        else if (a->keep) d[rank++] = dim_const(c->dims, 1);
    }
    return infer_set(c, 0, SINTER_DTYPE_I64, rank, d);
}

sinter_status infer_top_k(infer_ctx *c)
{
    const attrs_top_k *a = c->attrs;
    TRY(infer_want_in(c, 0, "input", 1, SINTER_RANK_MAX));
    const infer_value *x = &c->in[0];
    TRY(infer_want_numeric(c, x, "input"));
    TRY(infer_want_axis(c, a->axis, x->rank));
    if (a->k.count != 1) return FAIL(c->e, INVALID_MODEL, "k has %" PRIu32 " values, wanted 1", a->k.count);
    const dim k = (dim)a->k.at[0];
    int64_t k_value;
    int64_t size;
    if (dim_is_const(c->dims, k, &k_value) &&
        (k_value < 0 || (dim_is_const(c->dims, x->dim[a->axis], &size) && k_value > size))) {
        return FAIL(c->e, INVALID_MODEL, "k is %" PRId64 ", wanted 0 to %s, the size of axis %" PRId64, k_value,
                    infer_dim_text(c, x->dim[a->axis]), a->axis);
    }
    dim d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < x->rank; i++) d[i] = (int64_t)i == a->axis ? k : x->dim[i];
    TRY(infer_set(c, 0, x->dtype, x->rank, d));
    return infer_set(c, 1, SINTER_DTYPE_I64, x->rank, d);
}

/* A scale or bias that broadcasts to the input without growing it. */
static sinter_status want_broadcast_to(infer_ctx *c, uint32_t i, const char *name)
{
    if (!infer_has(c, i)) return SINTER_OK;
    const infer_value *x = &c->in[0];
    const infer_value *v = &c->in[i];
    TRY(infer_want_in(c, i, name, 0, x->rank));
    TRY(infer_want_float(c, v, name));
    for (uint32_t k = 0; k < v->rank; k++) {
        const dim want = x->dim[x->rank - v->rank + k];
        if (dim_is(c->dims, v->dim[k], 1) || infer_agree(c->dims, v->dim[k], want)) continue;
        return FAIL(c->e, INVALID_MODEL, "%s has shape %s, wanted one that broadcasts to the input's %s", name,
                    infer_shape_text(c, v), infer_shape_text(c, x));
    }
    return SINTER_OK;
}

static sinter_status want_norm(infer_ctx *c, int64_t axis)
{
    TRY(infer_want_in(c, 0, "input", 1, SINTER_RANK_MAX));
    TRY(infer_want_float(c, &c->in[0], "input"));
    TRY(infer_want_axis(c, axis, c->in[0].rank));
    TRY(want_broadcast_to(c, 1, "scale"));
    return want_broadcast_to(c, 2, "bias");
}

sinter_status infer_layer_norm(infer_ctx *c)
{
    const attrs_layer_norm *a = c->attrs;
    TRY(want_norm(c, a->axis));
    const infer_value *x = &c->in[0];
    const sinter_dtype stats = x->dtype == SINTER_DTYPE_F64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    dim d[SINTER_RANK_MAX];
    for (uint32_t k = 0; k < x->rank; k++) d[k] = (int64_t)k < a->axis ? x->dim[k] : dim_const(c->dims, 1);
    TRY(infer_set(c, 0, x->dtype, x->rank, x->dim));
    TRY(infer_set(c, 1, stats, x->rank, d));
    return infer_set(c, 2, stats, x->rank, d);
}

sinter_status infer_rms_norm(infer_ctx *c)
{
    const attrs_rms_norm *a = c->attrs;
    TRY(want_norm(c, a->axis));
    return infer_set(c, 0, c->in[0].dtype, c->in[0].rank, c->in[0].dim);
}

sinter_status infer_group_norm(infer_ctx *c)
{
    const attrs_group_norm *a = c->attrs;
    TRY(infer_want_in(c, 0, "input", 2, SINTER_RANK_MAX));
    const infer_value *x = &c->in[0];
    TRY(infer_want_float(c, x, "input"));
    int64_t channels;
    const bool is_known = dim_is_const(c->dims, x->dim[1], &channels);
    if (a->groups < 0 || (a->groups && is_known && channels % a->groups)) {
        return FAIL(c->e, INVALID_MODEL, "groups is %" PRId64 ", wanted 0 or a divisor of the %s channels", a->groups,
                    infer_dim_text(c, x->dim[1]));
    }
    for (uint32_t i = 1; i < 3; i++) {
        if (!infer_has(c, i)) continue;
        const char *name = i == 1 ? "scale" : "bias";
        TRY(infer_want_in(c, i, name, 1, 1));
        TRY(infer_want_float(c, &c->in[i], name));
        TRY(infer_want_dim(c, i == 1 ? "size of scale" : "size of bias", c->in[i].dim[0], "count of channels",
                           x->dim[1]));
    }
    return infer_set(c, 0, x->dtype, x->rank, x->dim);
}

sinter_status infer_det(infer_ctx *c)
{
    TRY(infer_want_in(c, 0, "input", 2, SINTER_RANK_MAX));
    const infer_value *x = &c->in[0];
    TRY(infer_want_float(c, x, "input"));
    TRY(infer_want_dim(c, "count of columns", x->dim[x->rank - 1], "count of rows", x->dim[x->rank - 2]));
    return infer_set(c, 0, x->dtype, x->rank - 2, x->dim);
}

/* Full: [.., n, 2].  One-sided forward: real [.., n, 1] to [.., n / 2 + 1, 2].  One-sided inverse: the other way. */
sinter_status infer_dft(infer_ctx *c)
{
    const attrs_dft *a = c->attrs;
    dim_table *t = c->dims;
    TRY(infer_want_in(c, 0, "input", 2, SINTER_RANK_MAX));
    const infer_value *x = &c->in[0];
    TRY(infer_want_float(c, x, "input"));
    TRY(infer_want_axis(c, a->axis, x->rank - 1));
    int64_t parts;
    if (!dim_is_const(t, x->dim[x->rank - 1], &parts))
        return FAIL(c->e, UNSUPPORTED,
                    "last axis of input %s is not known before the model runs: 1 (real) or 2 (complex)",
                    infer_shape_text(c, x));
    if (parts != 1 && parts != 2) {
        return FAIL(c->e, INVALID_MODEL, "last axis of input %s is %s, wanted 1 (real) or 2 (complex)",
                    infer_shape_text(c, x), infer_dim_text(c, x->dim[x->rank - 1]));
    }
    if (a->onesided && (parts == 2) != (a->inverse != 0)) {
        return FAIL(c->e, INVALID_MODEL, "one-sided %s transform of a %s input, wanted a %s one",
                    a->inverse ? "inverse" : "forward", parts == 2 ? "complex" : "real",
                    a->inverse ? "complex" : "real");
    }
    if (a->length.count > 1)
        return FAIL(c->e, INVALID_MODEL, "length has %" PRIu32 " values, wanted 1", a->length.count);
    const dim one = dim_const(t, 1);
    const dim two = dim_const(t, 2);
    const dim along = x->dim[a->axis];
    dim n = along;
    if (a->length.count) n = (dim)a->length.at[0];
    else if (a->onesided && a->inverse) n = dim_mul(t, two, dim_sub(t, along, one));
    int64_t length;
    if (dim_is_const(t, n, &length) && length < 1) {
        return FAIL(c->e, INVALID_MODEL, "length is %" PRId64 ", wanted at least 1", length);
    }
    dim d[SINTER_RANK_MAX];
    for (uint32_t k = 0; k < x->rank; k++) d[k] = x->dim[k];
    d[a->axis] = a->onesided && !a->inverse ? dim_add(t, dim_floordiv(t, n, two), one) : n;
    d[x->rank - 1] = a->onesided && a->inverse ? one : two;
    return infer_set(c, 0, x->dtype, x->rank, d);
}

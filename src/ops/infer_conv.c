/* SPDX-License-Identifier: Apache-2.0 */
/* infer_conv.c - shapes of convolutions and pools: everything that slides a window.
 *
 *   out = floordiv(in + pad_begin + pad_end - (dilation * (kernel - 1) + 1), stride) + 1 */
#include "ops/infer_check.h"
#include <inttypes.h>

typedef struct window_attrs {
    const attr_ints *stride, *dilation, *pad;
} window_attrs;

static sinter_status want_window(infer_ctx *c, window_attrs w, uint32_t spatial, int64_t pad_min)
{
    TRY(infer_want_ints(c, "stride", w.stride, spatial, 1, INFER_STEP_MAX));
    TRY(infer_want_ints(c, "dilation", w.dilation, spatial, 1, INFER_STEP_MAX));
    return infer_want_ints(c, "pad", w.pad, 2 * spatial, pad_min, INFER_STEP_MAX);
}

/* dilation * (kernel - 1) + 1 */
static dim extent_of(infer_ctx *c, dim kernel, int64_t dilation)
{
    const dim one = dim_const(c->dims, 1);
    return dim_add(c->dims, dim_mul(c->dims, dim_const(c->dims, dilation), dim_sub(c->dims, kernel, one)), one);
}

/* One axis of a sliding window. ceil: the last window may stick out, but must start inside the input or its front
 * padding. */
static sinter_status slide(infer_ctx *c, window_attrs w, uint32_t axis, uint32_t spatial, dim in, dim kernel,
                           bool is_ceil, dim *out)
{
    dim_table *t = c->dims;
    const dim begin = dim_const(t, w.pad->at[axis]);
    const dim padded = dim_add(t, dim_add(t, in, begin), dim_const(t, w.pad->at[spatial + axis]));
    const dim extent = extent_of(c, kernel, w.dilation->at[axis]);
    const dim stride = dim_const(t, w.stride->at[axis]);
    const dim rest = dim_sub(t, padded, extent);
    int64_t value;
    int64_t size;
    if (dim_is_const(t, kernel, &value) && value < 1) {
        return FAIL(c->e, INVALID_MODEL, "kernel is %" PRId64 " along spatial axis %" PRIu32 ", wanted at least 1",
                    value, axis);
    }
    *out = dim_add(t, is_ceil ? dim_ceildiv(t, rest, stride) : dim_floordiv(t, rest, stride), dim_const(t, 1));
    if (is_ceil) *out = dim_min(t, *out, dim_ceildiv(t, dim_add(t, in, begin), stride));
    if (dim_is_const(t, in, &size) && size > 0 && dim_is_const(t, is_ceil ? *out : rest, &value) && value < 0) {
        return FAIL(c->e, INVALID_MODEL,
                    "window of %s is larger than the padded input of %s along spatial axis %" PRIu32,
                    infer_dim_text(c, extent), infer_dim_text(c, padded), axis);
    }
    if (dim_is_const(t, *out, &value) && value < 0) *out = dim_const(t, 0); /* an empty input */
    return SINTER_OK;
}

/* Groups against channels: each group takes channels / groups inputs, and gives filters / groups outputs. */
static sinter_status want_groups(infer_ctx *c, int64_t groups, dim count, const char *name)
{
    int64_t value;
    if (groups < 1 || groups > INFER_STEP_MAX)
        return FAIL(c->e, INVALID_MODEL, "groups is %" PRId64 ", wanted at least 1", groups);
    if (!dim_is_const(c->dims, count, &value) || value % groups == 0) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s is %" PRId64 ", wanted a multiple of groups, %" PRId64, name, value, groups);
}

static sinter_status infer_conv_shape(infer_ctx *c, window_attrs w, int64_t groups, sinter_dtype result)
{
    dim_table *t = c->dims;
    TRY(infer_want_in(c, 0, "input", 3, SINTER_RANK_MAX));
    const infer_value *x = &c->in[0];
    TRY(infer_want_in(c, 1, "weight", x->rank, x->rank));
    const infer_value *f = &c->in[1];
    const uint32_t spatial = x->rank - 2;
    TRY(want_window(c, w, spatial, 0));
    TRY(want_groups(c, groups, x->dim[1], "count of input channels"));
    TRY(want_groups(c, groups, f->dim[0], "count of filters"));
    const dim wanted = dim_mul(t, f->dim[1], dim_const(t, groups));
    TRY(infer_want_dim(c, "count of input channels", x->dim[1], "weight dim 1 times groups", wanted));
    dim d[SINTER_RANK_MAX] = { x->dim[0], f->dim[0] };
    for (uint32_t i = 0; i < spatial; i++) TRY(slide(c, w, i, spatial, x->dim[2 + i], f->dim[2 + i], false, &d[2 + i]));
    return infer_set(c, 0, result, x->rank, d);
}

static sinter_status want_float_pair(infer_ctx *c)
{
    TRY(infer_want_in(c, 0, "input", 3, SINTER_RANK_MAX));
    TRY(infer_want_in(c, 1, "weight", 3, SINTER_RANK_MAX));
    TRY(infer_want_float(c, &c->in[0], "input"));
    return infer_want_type(c, &c->in[1], "weight", c->in[0].dtype);
}

sinter_status infer_conv(infer_ctx *c)
{
    const attrs_conv *a = c->attrs;
    TRY(want_float_pair(c));
    return infer_conv_shape(c, (window_attrs){ &a->stride, &a->dilation, &a->pad }, a->groups, c->in[0].dtype);
}

sinter_status infer_conv_integer(infer_ctx *c)
{
    static const char *const name[] = { "input", "weight", "zero point of the input", "zero point of the weight" };
    const attrs_conv_integer *a = c->attrs;
    TRY(infer_conv_shape(c, (window_attrs){ &a->stride, &a->dilation, &a->pad }, a->groups, SINTER_DTYPE_I32));
    for (uint32_t i = 0; i < 4; i++) {
        if (!infer_has(c, i)) continue;
        const infer_value *v = &c->in[i];
        if (!dtype_is_int(v->dtype) || sinter_dtype_bits(v->dtype) > 8) {
            return FAIL(c->e, INVALID_MODEL, "%s has type %s, wanted an integer type of at most 8 bits", name[i],
                        sinter_dtype_name(v->dtype));
        }
        if (i < 2) continue;
        TRY(infer_want_type(c, v, name[i], c->in[i - 2].dtype));
        if (!v->rank || (v->rank == 1 && dim_is(c->dims, v->dim[0], 1))) continue;
        if (i == 3 && v->rank == 1 && infer_agree(c->dims, v->dim[0], c->in[1].dim[0])) continue;
        return FAIL(c->e, INVALID_MODEL, "%s has shape %s, wanted one value%s", name[i], infer_shape_text(c, v),
                    i == 3 ? ", or one for each filter" : "");
    }
    return SINTER_OK;
}

sinter_status infer_conv_transpose(infer_ctx *c)
{
    const attrs_conv_transpose *a = c->attrs;
    const window_attrs w = { &a->stride, &a->dilation, &a->pad };
    dim_table *t = c->dims;
    TRY(want_float_pair(c));
    const infer_value *x = &c->in[0];
    const infer_value *f = &c->in[1];
    TRY(infer_want_in(c, 1, "weight", x->rank, x->rank));
    const uint32_t spatial = x->rank - 2;
    TRY(want_window(c, w, spatial, -INFER_STEP_MAX)); /* output_shape may ask for more than there is: negative pads */
    TRY(infer_want_ints(c, "out_pad", &a->out_pad, spatial, 0, INFER_STEP_MAX));
    TRY(want_groups(c, a->groups, x->dim[1], "count of input channels"));
    TRY(infer_want_dim(c, "count of input channels", x->dim[1], "weight dim 0", f->dim[0]));
    dim d[SINTER_RANK_MAX] = { x->dim[0], dim_mul(t, f->dim[1], dim_const(t, a->groups)) };
    const dim one = dim_const(t, 1);
    for (uint32_t i = 0; i < spatial; i++) {
        int64_t value;
        if (dim_is_const(t, f->dim[2 + i], &value) && value < 1) {
            return FAIL(c->e, INVALID_MODEL, "kernel is %" PRId64 " along spatial axis %" PRIu32 ", wanted at least 1",
                        value, i);
        }
        const dim moved = dim_mul(t, dim_sub(t, x->dim[2 + i], one), dim_const(t, a->stride.at[i]));
        const int64_t pads = a->out_pad.at[i] - a->pad.at[i] - a->pad.at[spatial + i];
        d[2 + i] = dim_add(t, dim_add(t, moved, extent_of(c, f->dim[2 + i], a->dilation.at[i])), dim_const(t, pads));
    }
    return infer_set(c, 0, x->dtype, x->rank, d);
}

sinter_status infer_deform_conv(infer_ctx *c)
{
    const attrs_deform_conv *a = c->attrs;
    dim_table *t = c->dims;
    TRY(want_float_pair(c));
    TRY(infer_want_in(c, 0, "input", 4, 4));
    const infer_value *x = &c->in[0];
    const infer_value *f = &c->in[1];
    TRY(infer_conv_shape(c, (window_attrs){ &a->stride, &a->dilation, &a->pad }, a->groups, x->dtype));
    TRY(want_groups(c, a->offset_groups, x->dim[1], "count of input channels (by offset groups)"));
    const dim taps = dim_mul(t, dim_mul(t, f->dim[2], f->dim[3]), dim_const(t, a->offset_groups));
    for (uint32_t i = 2; i < 5; i += 2) {
        if (i == 4 && !infer_has(c, 4)) continue;
        const char *name = i == 2 ? "offset" : "mask";
        TRY(infer_want_in(c, i, name, 4, 4));
        const infer_value *v = &c->in[i];
        TRY(infer_want_type(c, v, name, x->dtype));
        const dim want[4] = { x->dim[0], i == 2 ? dim_mul(t, taps, dim_const(t, 2)) : taps, c->out[0].dim[2],
                              c->out[0].dim[3] };
        for (uint32_t k = 0; k < 4; k++) {
            if (infer_agree(t, v->dim[k], want[k])) continue;
            return FAIL(c->e, INVALID_MODEL, "axis %" PRIu32 " of %s is %s, wanted %s", k, name,
                        infer_dim_text(c, v->dim[k]), infer_dim_text(c, want[k]));
        }
    }
    if (!infer_has(c, 3)) return SINTER_OK;
    TRY(infer_want_in(c, 3, "bias", 1, 1));
    TRY(infer_want_type(c, &c->in[3], "bias", x->dtype));
    return infer_want_dim(c, "size of bias", c->in[3].dim[0], "count of filters", f->dim[0]);
}

static sinter_status infer_pool_shape(infer_ctx *c, window_attrs w, const attr_ints *kernel, bool is_ceil)
{
    TRY(infer_want_in(c, 0, "input", 3, SINTER_RANK_MAX));
    const infer_value *x = &c->in[0];
    const uint32_t spatial = x->rank - 2;
    TRY(infer_want_ints(c, "kernel", kernel, spatial, 1, INFER_STEP_MAX));
    TRY(want_window(c, w, spatial, 0));
    dim d[SINTER_RANK_MAX] = { x->dim[0], x->dim[1] };
    for (uint32_t i = 0; i < spatial; i++) {
        TRY(slide(c, w, i, spatial, x->dim[2 + i], dim_const(c->dims, kernel->at[i]), is_ceil, &d[2 + i]));
    }
    if (c->op == OP_max_pool) TRY(infer_set(c, 1, SINTER_DTYPE_I64, x->rank, d));
    return infer_set(c, 0, x->dtype, x->rank, d);
}

sinter_status infer_max_pool(infer_ctx *c)
{
    const attrs_max_pool *a = c->attrs;
    TRY(infer_want_in(c, 0, "input", 3, SINTER_RANK_MAX));
    TRY(infer_want_numeric(c, &c->in[0], "input"));
    return infer_pool_shape(c, (window_attrs){ &a->stride, &a->dilation, &a->pad }, &a->kernel, a->ceil != 0);
}

sinter_status infer_pool(infer_ctx *c)
{
    TRY(infer_want_in(c, 0, "input", 3, SINTER_RANK_MAX));
    TRY(infer_want_float(c, &c->in[0], "input"));
    if (c->op == OP_lp_pool) {
        const attrs_lp_pool *a = c->attrs;
        if (a->p < 1) return FAIL(c->e, INVALID_MODEL, "p is %" PRId64 ", wanted at least 1", a->p);
        return infer_pool_shape(c, (window_attrs){ &a->stride, &a->dilation, &a->pad }, &a->kernel, a->ceil != 0);
    }
    const attrs_avg_pool *a = c->attrs;
    return infer_pool_shape(c, (window_attrs){ &a->stride, &a->dilation, &a->pad }, &a->kernel, a->ceil != 0);
}

sinter_status infer_max_unpool(infer_ctx *c)
{
    const attrs_max_unpool *a = c->attrs;
    TRY(infer_want_in(c, 0, "input", 3, SINTER_RANK_MAX));
    const infer_value *x = &c->in[0];
    TRY(infer_want_in(c, 1, "indices", x->rank, x->rank));
    TRY(infer_want_type(c, &c->in[1], "indices", SINTER_DTYPE_I64));
    for (uint32_t k = 0; k < x->rank; k++)
        TRY(infer_want_dim(c, "an axis of indices", c->in[1].dim[k], "the input's", x->dim[k]));
    if (a->shape.count != x->rank) {
        return FAIL(c->e, INVALID_MODEL, "shape has %" PRIu32 " values, wanted %" PRIu32 ", the input's rank",
                    a->shape.count, x->rank);
    }
    dim d[SINTER_RANK_MAX] = { 0 };
    for (uint32_t k = 0; k < x->rank; k++) d[k] = (dim)a->shape.at[k];
    return infer_set(c, 0, x->dtype, x->rank, d);
}

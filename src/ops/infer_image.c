/* SPDX-License-Identifier: Apache-2.0 */
/* infer_image.c - shapes of the ops that sample: resize, roi_align, grid_sample, affine_grid, col2im, reverse_sequence.
 */
#include "ops/move.h"

#include <math.h>

sinter_status infer_resize(infer_ctx *c)
{
    const attrs_resize *a = c->attrs;
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    TRY(move_dims_check(c, "size", &a->size, in->rank));
    if (a->scale.count != 0 && a->scale.count != in->rank) {
        return FAIL(c->e, INVALID_MODEL, "attribute scale has %u entries, expected none or %u", a->scale.count,
                    in->rank);
    }
    for (uint32_t i = 0; i < a->scale.count; i++) {
        if (a->scale.at[i] > 0 && a->scale.at[i] <= 1e9) continue;
        return FAIL(c->e, INVALID_MODEL, "the scale of axis %u is %g, expected a number over 0", i, a->scale.at[i]);
    }
    if (a->coordinate == resize_coordinate_tf_crop_and_resize && a->roi.count != 2 * in->rank) {
        return FAIL(c->e, INVALID_MODEL, "attribute roi has %u entries, expected %u", a->roi.count, 2 * in->rank);
    }
    if (a->antialias && a->mode == resize_mode_nearest) {
        return FAIL(c->e, INVALID_MODEL, "antialias is for linear and cubic, not for nearest");
    }
    out->dtype = in->dtype;
    out->rank = in->rank;
    for (uint32_t i = 0; i < in->rank; i++) {
        out->dim[i] = move_dim(&a->size, i);
        TRY(move_dim_not_negative(c, "the new size", i, out->dim[i]));
        int64_t size = 0, wanted = 0;
        const double scale = a->scale.count ? a->scale.at[i] : 0.5;
        const bool is_whole = scale == floor(scale) && a->coordinate != resize_coordinate_tf_crop_and_resize;
        if (is_whole && dim_is_const(c->dims, in->dim[i], &size) && dim_is_const(c->dims, out->dim[i], &wanted) &&
            (double)size * scale != (double)wanted)
            return FAIL(c->e, INVALID_MODEL, "axis %u of %lld times %g is not %lld", i, (long long)size, scale,
                        (long long)wanted);
        if (dim_is(c->dims, in->dim[i], 0) && dim_range_of(c->dims, out->dim[i]).min > 0) {
            return FAIL(c->e, INVALID_MODEL, "axis %u is empty and cannot become %s", i,
                        infer_dim_text(c, out->dim[i]));
        }
    }
    return SINTER_OK;
}

sinter_status infer_reverse_sequence(infer_ctx *c)
{
    const attrs_reverse_sequence *a = c->attrs;
    const infer_value *in = &c->in[0];
    dim ignored = DIM_NONE;
    TRY(move_rank_check(c, 0, "the input", 2, SINTER_RANK_MAX));
    TRY(move_axis_check(c, "batch_axis", a->batch_axis, in->rank));
    TRY(move_axis_check(c, "time_axis", a->time_axis, in->rank));
    if (a->batch_axis == a->time_axis) {
        return FAIL(c->e, INVALID_MODEL, "batch_axis and time_axis are both %lld", (long long)a->time_axis);
    }
    TRY(move_int_check(c, 1, "the sequence lengths"));
    TRY(move_rank_check(c, 1, "the sequence lengths", 1, 1));
    TRY(move_same_check(c, "the sequence lengths", 0, in->dim[a->batch_axis], c->in[1].dim[0], &ignored));
    c->out[0].dtype = in->dtype;
    c->out[0].rank = in->rank;
    memcpy(c->out[0].dim, in->dim, sizeof(in->dim));
    return SINTER_OK;
}

sinter_status infer_roi_align(infer_ctx *c)
{
    const attrs_roi_align *a = c->attrs;
    const infer_value *in = &c->in[0], *rois = &c->in[1];
    infer_value *out = &c->out[0];
    dim ignored = DIM_NONE;
    TRY(move_rank_check(c, 0, "the input", 4, 4));
    TRY(move_rank_check(c, 1, "rois", 2, 2));
    TRY(move_rank_check(c, 2, "batch_indices", 1, 1));
    TRY(move_int_check(c, 2, "batch_indices"));
    TRY(move_same_check(c, "rois", 1, dim_const(c->dims, 4), rois->dim[1], &ignored));
    if (a->out_h < 1 || a->out_w < 1 || a->sampling < 0 || a->sampling > 1 << 20) {
        return FAIL(c->e, INVALID_MODEL, "output %lld x %lld with %lld samples, expected 1 or more, and 0 or more",
                    (long long)a->out_h, (long long)a->out_w, (long long)a->sampling);
    }
    out->dtype = in->dtype;
    out->rank = 4;
    TRY(move_same_check(c, "batch_indices", 0, rois->dim[0], c->in[2].dim[0], &out->dim[0]));
    out->dim[1] = in->dim[1];
    out->dim[2] = dim_const(c->dims, a->out_h);
    out->dim[3] = dim_const(c->dims, a->out_w);
    return SINTER_OK;
}

sinter_status infer_grid_sample(infer_ctx *c)
{
    const infer_value *in = &c->in[0], *grid = &c->in[1];
    infer_value *out = &c->out[0];
    dim ignored = DIM_NONE;
    TRY(move_rank_check(c, 0, "the input", 3, SINTER_RANK_MAX));
    TRY(move_rank_check(c, 1, "the grid", in->rank, in->rank));
    TRY(move_same_check(c, "the grid", in->rank - 1, dim_const(c->dims, (int64_t)in->rank - 2), grid->dim[in->rank - 1],
                        &ignored));
    if (!dtype_is_float(grid->dtype)) {
        return FAIL(c->e, INVALID_MODEL, "the grid has type %s, expected a float type", sinter_dtype_name(grid->dtype));
    }
    const attrs_grid_sample *a = c->attrs;
    if (a->padding == pad_mode_wrap)
        return FAIL(c->e, INVALID_MODEL, "padding is wrap, expected constant, edge or reflect");
    out->dtype = in->dtype;
    out->rank = in->rank;
    TRY(move_same_check(c, "the grid", 0, in->dim[0], grid->dim[0], &out->dim[0]));
    out->dim[1] = in->dim[1];
    for (uint32_t i = 2; i < in->rank; i++) out->dim[i] = grid->dim[i - 1];
    return SINTER_OK;
}

sinter_status infer_affine_grid(infer_ctx *c)
{
    const attrs_affine_grid *a = c->attrs;
    const infer_value *theta = &c->in[0];
    infer_value *out = &c->out[0];
    dim ignored = DIM_NONE;
    if (a->size.count != 4 && a->size.count != 5) {
        return FAIL(c->e, INVALID_MODEL, "attribute size has %u entries, expected 4 or 5", a->size.count);
    }
    const uint32_t spatial = a->size.count - 2;
    TRY(move_dims_check(c, "size", &a->size, a->size.count));
    TRY(move_rank_check(c, 0, "theta", 3, 3));
    TRY(move_same_check(c, "theta", 1, dim_const(c->dims, spatial), theta->dim[1], &ignored));
    TRY(move_same_check(c, "theta", 2, dim_const(c->dims, (int64_t)spatial + 1), theta->dim[2], &ignored));
    out->dtype = theta->dtype;
    out->rank = spatial + 2;
    TRY(move_same_check(c, "theta", 0, move_dim(&a->size, 0), theta->dim[0], &out->dim[0]));
    for (uint32_t i = 0; i < spatial; i++) {
        out->dim[i + 1] = move_dim(&a->size, i + 2);
        TRY(move_dim_not_negative(c, "the size", i + 2, out->dim[i + 1]));
    }
    out->dim[spatial + 1] = dim_const(c->dims, spatial);
    return SINTER_OK;
}

/* A list that may be empty, which means the default everywhere. */
static sinter_status list_check(infer_ctx *c, const char *name, const attr_ints *list, uint32_t count, int64_t min)
{
    return list->count == 0 ? SINTER_OK : infer_want_ints(c, name, list, count, min, INFER_STEP_MAX);
}

/* How many places the block has along each axis, times the next: the length of the input's last axis. */
static dim block_count(infer_ctx *c, const attrs_col2im *a)
{
    dim_table *t = c->dims;
    dim total = dim_const(t, 1);
    for (uint32_t i = 0; i < a->image.count; i++) {
        const int64_t pad = a->pad.count ? a->pad.at[i] + a->pad.at[i + a->image.count] : 0;
        const int64_t dilation = a->dilation.count ? a->dilation.at[i] : 1,
                      stride = a->stride.count ? a->stride.at[i] : 1;
        const dim room = dim_add(t, move_dim(&a->image, i), dim_const(t, pad - dilation * (a->block.at[i] - 1) - 1));
        total = dim_mul(t, total, dim_add(t, dim_floordiv(t, room, dim_const(t, stride)), dim_const(t, 1)));
    }
    return total;
}

sinter_status infer_col2im(infer_ctx *c)
{
    const attrs_col2im *a = c->attrs;
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    dim ignored = DIM_NONE;
    const uint32_t spatial = a->image.count;
    if (spatial < 1 || spatial > SINTER_RANK_MAX - 2) {
        return FAIL(c->e, UNSUPPORTED, "attribute image has %u entries, expected 1 to %d", spatial,
                    SINTER_RANK_MAX - 2);
    }
    TRY(move_rank_check(c, 0, "the input", 3, 3));
    TRY(move_dims_check(c, "image", &a->image, spatial));
    if (a->block.count != spatial) {
        return FAIL(c->e, INVALID_MODEL, "attribute block has %u entries, expected %u", a->block.count, spatial);
    }
    TRY(list_check(c, "block", &a->block, spatial, 1));
    TRY(list_check(c, "dilation", &a->dilation, spatial, 1));
    TRY(list_check(c, "stride", &a->stride, spatial, 1));
    TRY(list_check(c, "pad", &a->pad, 2 * spatial, 0));
    int64_t block = 1, channels = 0;
    for (uint32_t i = 0; i < spatial; i++) {
        if (!i64_mul(block, a->block.at[i], &block))
            return FAIL(c->e, INVALID_MODEL, "the block has too many elements");
    }
    if (dim_is_const(c->dims, in->dim[1], &channels) && channels % block != 0) {
        return FAIL(c->e, INVALID_MODEL, "axis 1 has %lld, expected a multiple of the block's %lld",
                    (long long)channels, (long long)block);
    }
    TRY(move_same_check(c, "the input", 2, block_count(c, a), in->dim[2], &ignored));
    out->dtype = in->dtype;
    out->rank = spatial + 2;
    out->dim[0] = in->dim[0];
    if (!dim_divide_exact(c->dims, in->dim[1], dim_const(c->dims, block), &out->dim[1])) {
        out->dim[1] = dim_floordiv(c->dims, in->dim[1], dim_const(c->dims, block));
    }
    for (uint32_t i = 0; i < spatial; i++) {
        out->dim[i + 2] = move_dim(&a->image, i);
        TRY(move_dim_not_negative(c, "the image", i, out->dim[i + 2]));
    }
    return SINTER_OK;
}

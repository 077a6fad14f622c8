/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_crop.c - parts of images, scaled, whose boxes are computed while the model runs: com.microsoft's
 * CropAndResize, and Resize with tf_crop_and_resize. Both sample a grid of points that the boxes give. */
#include "onnx/quirks.h"
#include "ops/infer_check.h"

#include <math.h>
#include <string.h>

/* Places from `low` to `high` of each box, [R, size], from -1 at the first pixel's centre to 1 at the last one's. */
static ir_value_id places(onnx_call *c, ir_value_id boxes, uint32_t low, uint32_t high, dim size)
{
    ir_builder *b = &c->b;
    const sinter_dtype f64 = SINTER_DTYPE_F64, type = call_type(c, boxes);
    const ir_value_id one = build_scalar(b, f64, 1), number = build_typed(b, build_iota(b, size), f64),
                      last = build_sub(b, quirk_size_real(c, size), one), is_one = build_lt(b, last, one),
                      middle = build_scalar(b, f64, 0.5),
                      at = build_where(b, is_one, middle, build_div(b, number, build_max(b, last, one)));
    const ir_value_id from = build_part(b, boxes, 1, call_k(c, low), 1, call_k(c, 1)),
                      to = build_part(b, boxes, 1, call_k(c, high), 1, call_k(c, 1)), span = build_sub(b, to, from),
                      part = build_typed(b, build_typed(b, at, SINTER_DTYPE_F32), type);
    const ir_value_id place = build_add(b, from, build_mul(b, span, part)), twice = build_add(b, place, place);
    return build_sub(b, twice, build_scalar_like(b, place, 1));
}

/* image [N, C, H, W] inside boxes [N or 1, 4] of (y, x, y, x), counted from 0 at the first pixel's centre to 1 at the
 * last one's, at size[0] × size[1] points; points outside the image are `outside`. */
static ir_value_id cropped(onnx_call *c, ir_value_id image, ir_value_id boxes, dim n, const dim *size, double outside,
                           resize_mode mode)
{
    const ir_value_id high = places(c, boxes, 0, 2, size[0]), wide = places(c, boxes, 1, 3, size[1]);
    const dim full[4] = { n, size[0], size[1], call_k(c, 1) };
    ir_value_id grid[2] = { build_unsqueezed(&c->b, build_unsqueezed(&c->b, wide, 1), 3) };
    grid[1] = build_unsqueezed(&c->b, build_unsqueezed(&c->b, high, 2), 3);
    for (uint32_t i = 0; i < 2; i++) grid[i] = build_expanded(&c->b, grid[i], full, 4);
    attrs_grid_sample *a = DEFAULTS(grid_sample);
    a->mode = mode;
    a->padding = pad_mode_edge;
    a->align_corners = 1;
    const ir_value_id y =
        build_grid_sample(&c->b, image, build_concat(&c->b, grid, 2, &(attrs_concat){ .axis = 3 }), a);
    const ir_value_id one = build_scalar_like(&c->b, high, 1);
    ir_value_id inside = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id near = build_le(&c->b, build_abs(&c->b, i ? wide : high), one),
                          flag = build_unsqueezed(&c->b, build_unsqueezed(&c->b, near, 1), i ? 2 : 3);
        inside = inside ? build_and(&c->b, inside, flag) : flag;
    }
    return build_where(&c->b, inside, y, build_scalar_like(&c->b, y, outside));
}

static bool size_fits(const onnx_call *c, const dim *size)
{
    for (uint32_t i = 0; i < 2; i++) {
        int64_t known = 1;
        (void)dim_is_const(c->b.g->dims, size[i], &known);
        if (known < 1 || known > 1 << 20) return false;
    }
    return true;
}

void convert_crop_and_resize(onnx_call *c)
{
    dim size[2] = { 0 };
    uint32_t count = 0;
    const ir_value_id x = call_in(c, 0), boxes = call_in(c, 1);
    const char *mode = call_text(c, "mode", "bilinear");
    for (uint32_t i = 0; i < 4; i++)
        if (!call_in(c, i)) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    const bool is_nearest = strcmp(mode, "nearest") == 0;
    if (!is_nearest && strcmp(mode, "bilinear") != 0) REJECT(c, INVALID_MODEL, "attribute mode is '%s'", mode);
    const ir_value_id list = call_of_length(c, call_in(c, 3), 2);
    if (c->b.status || !call_sizes(c, list, "crop_size", DIM_NONE, size, 2, &count)) return;
    if (count != 2 || !size_fits(c, size) || call_rank(c, x) != 4 || call_rank(c, boxes) != 2 ||
        !infer_agree(c->b.g->dims, call_dim(c, boxes, 1), call_k(c, 4)))
        REJECT(c, INVALID_MODEL, "boxes of rank %u in an image of rank %u", call_rank(c, boxes), call_rank(c, x));
    if (c->b.status) return;
    c->out[0] = cropped(c, build_gather(&c->b, x, call_in(c, 2), NULL), boxes, call_dim(c, boxes, 0), size,
                        call_real(c, "extrapolation_value", 0), is_nearest ? resize_mode_nearest : resize_mode_linear);
}

/* ---- MaxRoiPool ---- */
/* Which of `size` places along an axis each of `bins` parts of a region has, bool [R, bins, size]; is_none [R, bins]:
 * it has no place. Corners are rounded to the nearest place, and a region has at least one. */
static ir_value_id bins_of(onnx_call *c, ir_value_id rois, int64_t low, int64_t bins, dim size, ir_value_id *is_none)
{
    ir_builder *b = &c->b;
    const double scale = call_real(c, "spatial_scale", 1);
    if (call_type(c, rois) == SINTER_DTYPE_F16) rois = build_typed(b, rois, SINTER_DTYPE_F32); /* half places */
    ir_value_id corner[2];
    for (uint32_t i = 0; i < 2; i++) { /* the second one begins the next place */
        const ir_value_id at = build_part(b, rois, 1, call_k(c, low + 2 * i), 1, call_k(c, 1)),
                          scaled = build_mul(b, at, build_scalar_like(b, at, scale)), length = build_abs(b, scaled),
                          away = build_floor(b, build_add(b, length, build_scalar_like(b, at, 0.5)));
        corner[i] = build_mul(b, away, build_sign(b, scaled));
    }
    const ir_value_id one = build_scalar_like(b, corner[0], 1),
                      span = build_max(b, build_add(b, build_sub(b, corner[1], corner[0]), one), one),
                      part = build_div(b, span, build_scalar_like(b, span, (double)bins)),
                      number = build_typed(b, build_iota(b, call_k(c, bins)), call_type(c, span)),
                      from = build_add(b, build_floor(b, build_mul(b, part, number)), corner[0]),
                      to = build_add(b, build_ceil(b, build_mul(b, part, build_add(b, number, one))), corner[0]),
                      end = build_typed(b, build_sizes(b, &size, 1, true), call_type(c, span)),
                      first = build_max(b, from, build_scalar_like(b, from, 0)), behind = build_min(b, to, end),
                      place = build_typed(b, build_iota(b, size), call_type(c, span));
    *is_none = build_le(b, behind, first);
    const ir_value_id is_behind = build_ge(b, place, build_unsqueezed(b, first, 2));
    return build_and(b, is_behind, build_lt(b, place, build_unsqueezed(b, behind, 2)));
}

/* Along rows first, then along columns: the largest of a rectangle is that of its rows' largest. */
void convert_max_roi_pool(onnx_call *c)
{
    ir_builder *b = &c->b;
    const ir_value_id x = call_in(c, 0), rois = call_in(c, 1);
    attr_ints size = { 0 };
    ir_value_id none[2], seen[2];
    if (!x || !rois) REJECT(c, INVALID_MODEL, "an input is missing");
    if (!call_ints(c, "pooled_shape", &size) || size.count != 2 || size.at[0] < 1 || size.at[1] < 1)
        REJECT(c, INVALID_MODEL, "attribute pooled_shape is not two sizes");
    if (c->b.status) return;
    if (call_rank(c, x) != 4 || call_rank(c, rois) != 2 ||
        !infer_agree(c->b.g->dims, call_dim(c, rois, 1), call_k(c, 5)))
        REJECT(c, INVALID_MODEL, "regions of rank %u in an image of rank %u", call_rank(c, rois), call_rank(c, x));
    if (c->b.status) return;
    for (uint32_t i = 0; i < 2; i++) seen[i] = bins_of(c, rois, 2 - i, size.at[i], call_dim(c, x, 2 + i), &none[i]);
    const ir_value_id image =
                          build_typed(b, build_squeezed(b, build_part(b, rois, 1, call_k(c, 0), 1, call_k(c, 1)), 1),
                                      SINTER_DTYPE_I64),
                      least = build_scalar_like(b, x, -INFINITY);
    ir_value_id y = build_gather(b, x, image, NULL); /* [R, C, H, W] */
    const ir_value_id rows = build_unsqueezed(b, build_unsqueezed(b, seen[0], 1), 4),
                      columns = build_unsqueezed(b, build_unsqueezed(b, seen[1], 1), 1);
    y = build_where(b, rows, build_unsqueezed(b, y, 2), least);
    y = build_reduced(b, reduce_kind_max, y, (int64_t[]){ 3 }, 1, false); /* [R, C, bins, W] */
    y = build_where(b, columns, build_unsqueezed(b, y, 3), least);
    y = build_reduced(b, reduce_kind_max, y, (int64_t[]){ 4 }, 1, false); /* [R, C, bins, bins] */
    none[0] = build_unsqueezed(b, none[0], 2);
    const ir_value_id is_none = build_unsqueezed(b, build_or(b, none[0], build_unsqueezed(b, none[1], 1)), 1);
    c->out[0] = build_where(b, is_none, build_scalar_like(b, y, 0), y);
}

/* ---- Resize ---- */
/* Is element `at` of a list known to be `want`, though others may not be? */
static bool element_is(onnx_call *c, ir_value_id list, uint32_t at, double want)
{
    double all[2 * SINTER_RANK_MAX];
    uint32_t count = 0;
    if (ir_is_const(c->b.g, list))
        return call_const_reals(c, list, "roi", all, 2 * SINTER_RANK_MAX, &count) && at < count && all[at] == want;
    const ir_node_id maker = ir_value_at(c->b.g, list)->producer;
    const ir_node *n = maker ? ir_node_at(c->b.g, maker) : NULL;
    for (uint32_t i = 0; n && n->op == OP_concat && i < n->count_in; i++) {
        int64_t length = 0;
        if (!call_size(c, n->in[i], 0, &length)) return false;
        if (at < length) return element_is(c, n->in[i], at, want);
        at -= (uint32_t)length;
    }
    return false;
}

bool quirk_crop_late(onnx_call *c, const attrs_resize *a, const attr_ints *axes)
{
    const ir_value_id x = call_in(c, 0), roi = call_in(c, 1), sizes = call_in(c, 3);
    dim given[SINTER_RANK_MAX], part_dim[2] = { call_k(c, 1), call_k(c, 4) };
    dim size[2] = { 0 };
    uint32_t count = 0, found = 0;
    ir_value_id box[4];
    const sinter_dtype type = call_type(c, x);
    if (type != SINTER_DTYPE_F32 && (type != call_type(c, roi) || !dtype_is_float(type))) return false;
    if (ir_is_const(c->b.g, roi) || call_rank(c, x) != 4 || a->mode != resize_mode_linear || a->antialias || !sizes ||
        !call_known(c, sizes, given, SINTER_RANK_MAX, &count) || count != axes->count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t axis = axes->at[i];
        if (axis < 2) {
            if (given[i] != call_dim(c, x, (uint32_t)axis) || !element_is(c, roi, i, 0) ||
                !element_is(c, roi, count + i, 1))
                return false;
            continue;
        }
        size[axis - 2] = given[i];
        box[axis - 2] = build_part(&c->b, roi, 0, call_k(c, i), 1, call_k(c, 1));
        box[axis] = build_part(&c->b, roi, 0, call_k(c, (int64_t)count + i), 1, call_k(c, 1));
        found |= 1U << (axis - 2);
    }
    if (found != 3 || !size_fits(c, size)) return false;
    const ir_value_id list = build_concat(&c->b, box, 4, &(attrs_concat){ .axis = 0 }),
                      boxes = build_shaped(&c->b, build_typed(&c->b, list, type), part_dim, 2);
    c->out[0] = cropped(c, x, boxes, call_dim(c, x, 0), size, a->extrapolation, resize_mode_linear);
    return true;
}

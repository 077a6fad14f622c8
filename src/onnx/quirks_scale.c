/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_scale.c - Resize whose scales or whose box the run computes.
 *
 * The op resize has its scales as attributes, or takes them from the sizes before and after. Here scales are values.
 * Each axis is resized on its own: the places of its results are computed, then elements are gathered and weighed.
 * ref_resize.c has the same formulas. */
#include "onnx/quirks.h"
#include "ops/move.h"

static const sinter_dtype F64 = SINTER_DTYPE_F64;

static ir_value_id real(onnx_call *c, double value)
{
    return build_scalar(&c->b, F64, value);
}

ir_value_id quirk_size_real(onnx_call *c, dim size)
{
    return build_typed(&c->b, build_sizes(&c->b, &size, 1, true), F64);
}

/* resize_place of ops/taps.h. */
static ir_value_id place_rounded(onnx_call *c, ir_value_id at)
{
    const ir_value_id narrow = build_typed(&c->b, build_typed(&c->b, at, SINTER_DTYPE_F32), F64);
    return build_where(&c->b, build_lt(&c->b, at, real(c, 16384)), narrow, at);
}

typedef struct axis_late {
    const attrs_resize *a;
    uint32_t axis, rank;
    dim n, n_out;
    ir_value_id scale, low, high; /* scalars of f64 */
    bool is_upsample;
} axis_late;

/* Where each result lies among the elements, f64 [n_out]. *outside: which results lie outside of a box; 0: none. */
static ir_value_id places_of(onnx_call *c, const axis_late *x, ir_value_id *outside)
{
    ir_builder *b = &c->b;
    const bool is_nearest = x->a->mode == resize_mode_nearest;
    const ir_value_id at = build_typed(b, build_iota(b, x->n_out), F64), n = quirk_size_real(c, x->n),
                      n_out = quirk_size_real(c, x->n_out), one = real(c, 1), zero = real(c, 0), half = real(c, 0.5),
                      wanted = build_mul(b, x->scale, n), rest = build_sub(b, wanted, one), last = build_sub(b, n, one),
                      least = real(c, 1e-6), is_one = build_lt(b, build_abs(b, rest), least);
    ir_value_id from = build_div(b, at, x->scale), middle = build_div(b, build_add(b, at, half), x->scale);
    const ir_value_id exact = build_sub(b, middle, half);
    if (is_nearest) from = place_rounded(c, from);
    if (is_nearest) middle = place_rounded(c, middle);
    const ir_value_id pixel = build_sub(b, middle, half);
    *outside = 0;
    switch (x->a->coordinate) {
    case resize_coordinate_asymmetric: return from;
    case resize_coordinate_tf_half_pixel_for_nn: return build_where(b, build_eq(b, x->scale, one), at, middle);
    case resize_coordinate_pytorch_half_pixel: return build_where(b, build_gt(b, n_out, one), pixel, zero);
    case resize_coordinate_align_corners: {
        const ir_value_id is_first = build_or(b, is_one, build_eq(b, n_out, one));
        return build_where(b, is_first, zero, build_div(b, build_mul(b, at, last), rest));
    }
    case resize_coordinate_half_pixel_symmetric: {
        const ir_value_id left = build_sub(b, one, build_div(b, n_out, wanted)),
                          y = build_add(b, build_mul(b, build_mul(b, n, half), left), exact);
        return is_nearest ? place_rounded(c, y) : y;
    }
    case resize_coordinate_tf_crop_and_resize: {
        const ir_value_id span = build_mul(b, build_sub(b, x->high, x->low), last), centre = build_mul(b, span, half),
                          step = build_where(b, is_one, centre, build_div(b, build_mul(b, at, span), rest)),
                          y = build_add(b, step, build_mul(b, x->low, last)), slack = build_mul(b, n, real(c, 1e-6)),
                          is_behind = build_ge(b, y, build_neg(b, slack)),
                          is_inside = build_and(b, is_behind, build_le(b, y, build_add(b, last, slack)));
        *outside = build_not(b, is_inside);
        return build_where(b, is_inside, build_min(b, build_max(b, y, zero), last), zero);
    }
    default: return pixel;
    }
}

/* The last place of the axis. */
static ir_value_id last_of(onnx_call *c, const axis_late *x)
{
    const ir_value_id one = real(c, 1);
    return build_sub(&c->b, quirk_size_real(c, x->n), one);
}

/* The elements along the axis at these places, those outside moved to the nearest end. */
static ir_value_id picked(onnx_call *c, ir_value_id v, const axis_late *x, ir_value_id place)
{
    ir_builder *b = &c->b;
    const ir_value_id zero = real(c, 0), at = build_max(b, build_min(b, place, last_of(c, x)), zero);
    return build_gather(b, v, build_typed(b, at, SINTER_DTYPE_I64), &(attrs_gather){ .axis = x->axis });
}

static ir_value_id nearest(onnx_call *c, const axis_late *x, ir_value_id at)
{
    ir_builder *b = &c->b;
    const ir_value_id low = build_floor(b, at), ratio = build_sub(b, at, low), half = real(c, 0.5);
    if (x->is_upsample) {
        const ir_value_id shrinks = build_lt(b, x->scale, real(c, 1));
        return build_where(b, shrinks, build_ceil(b, at), low);
    }
    switch (x->a->nearest) {
    case resize_nearest_floor: return low;
    case resize_nearest_ceil: return build_ceil(b, at);
    case resize_nearest_round_prefer_ceil: return build_add(b, low, build_typed(b, build_ge(b, ratio, half), F64));
    default: return build_add(b, low, build_typed(b, build_gt(b, ratio, half), F64));
    }
}

/* kernel_at of ref_resize.c. */
static ir_value_id weight_at(onnx_call *c, const attrs_resize *a, ir_value_id distance)
{
    ir_builder *b = &c->b;
    const double k = a->cubic_a;
    const ir_value_id d = build_abs(b, distance), one = real(c, 1), zero = real(c, 0);
    if (a->mode == resize_mode_linear) return build_max(b, build_sub(b, one, d), zero);
    const ir_value_id square = build_mul(b, d, d), k3 = real(c, k + 3), k5 = real(c, 5 * k), k8 = real(c, 8 * k),
                      k4 = real(c, 4 * k), two = real(c, 2), near = build_sub(b, build_mul(b, d, real(c, k + 2)), k3),
                      far = build_mul(b, build_sub(b, build_mul(b, d, real(c, k)), k5), d),
                      here = build_add(b, build_mul(b, near, square), one),
                      there = build_sub(b, build_mul(b, build_add(b, far, k8), d), k4), is_near = build_le(b, d, one),
                      beyond = build_where(b, build_lt(b, d, two), there, zero);
    return build_where(b, is_near, here, beyond);
}

/* Weights of places outside become 0 where they are to be left out. */
static ir_value_id kept(onnx_call *c, const axis_late *x, ir_value_id place, ir_value_id weight)
{
    ir_builder *b = &c->b;
    if (!x->a->exclude_outside) return weight;
    const ir_value_id last = last_of(c, x), zero = real(c, 0), is_behind = build_ge(b, place, zero),
                      is_inside = build_and(b, is_behind, build_le(b, place, last));
    return build_where(b, is_inside, weight, zero);
}

/* Two or four elements around each place. */
static ir_value_id interpolated(onnx_call *c, ir_value_id v, const axis_late *x, ir_value_id at)
{
    enum { MOST = 4 };
    ir_builder *b = &c->b;
    const uint32_t taps = x->a->mode == resize_mode_linear ? 2 : MOST;
    const ir_value_id low = build_floor(b, at);
    ir_value_id place[MOST], weight[MOST], sum = 0, y = 0;
    for (uint32_t k = 0; k < taps; k++) {
        place[k] = build_add(b, low, real(c, (double)k - (double)(taps / 2 - 1)));
        weight[k] = kept(c, x, place[k], weight_at(c, x->a, build_sub(b, place[k], at)));
        sum = k ? build_add(b, sum, weight[k]) : weight[k];
    }
    for (uint32_t k = 0; k < taps; k++) { /* an infinity beside a place does not count */
        const ir_value_id part = x->a->exclude_outside ? build_div(b, weight[k], sum) : weight[k],
                          least = real(c, RESIZE_LEAST_WEIGHT),
                          none = build_along(b, build_lt(b, build_abs(b, part), least), x->axis, x->rank),
                          by = build_typed(b, build_along(b, part, x->axis, x->rank), call_type(c, v)),
                          product = build_mul(b, picked(c, v, x, place[k]), by),
                          term = build_where(b, none, build_scalar_like(b, product, 0), product);
        if (b->status) return 0;
        y = k ? build_add(b, y, term) : term;
    }
    return y;
}

/* Where the axis shrinks, each result has as many elements as the scale says: a matrix has their weights. Its columns
 * are the elements, with the first and the last one repeated beyond the ends. */
static ir_value_id antialiased(onnx_call *c, ir_value_id v, const axis_late *x, ir_value_id at)
{
    ir_builder *b = &c->b;
    dim reach = DIM_NONE;
    uint32_t count = 0;
    int64_t perm[SINTER_RANK_MAX];
    const ir_value_id shrink = build_min(b, x->scale, real(c, 1)),
                      support = real(c, x->a->mode == resize_mode_linear ? 1 : 2), one = real(c, 1),
                      more = build_add(b, build_ceil(b, build_div(b, support, shrink)), one);
    if (!call_sizes(c, build_typed(b, more, SINTER_DTYPE_I64), "the reach of a scale", DIM_NONE, &reach, 1, &count))
        return 0;
    const dim all = dim_add(c->b.g->dims, x->n, dim_mul(c->b.g->dims, reach, call_k(c, 2)));
    const ir_value_id beyond = quirk_size_real(c, reach),
                      place = build_sub(b, build_typed(b, build_iota(b, all), F64), beyond),
                      distance = build_sub(b, place, build_unsqueezed(b, at, 1)),
                      weight = kept(c, x, place, weight_at(c, x->a, build_mul(b, distance, shrink))),
                      sum = build_reduced(b, reduce_kind_sum, weight, (int64_t[]){ 1 }, 1, true),
                      matrix = build_typed(b, build_div(b, weight, sum), call_type(c, v));
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != x->axis) perm[n++] = i;
    perm[n] = x->axis;
    attrs_matmul *product = DEFAULTS(matmul);
    product->trans_b = 1;
    ir_value_id y = build_permuted(b, picked(c, v, x, place), perm, x->rank);
    if (x->rank == 1) y = build_unsqueezed(b, y, 0);
    y = build_matmul(b, y, matrix, product);
    if (x->rank == 1) return build_squeezed(b, y, 0);
    for (uint32_t i = 0; i < x->rank; i++) perm[i] = i < x->axis ? i : i == x->axis ? x->rank - 1 : i - 1;
    return build_permuted(b, y, perm, x->rank);
}

static ir_value_id scaled_by_parts(onnx_call *c, ir_value_id x, const attrs_resize *a, const quirk_scales *s)
{
    ir_builder *b = &c->b;
    const sinter_dtype type = call_type(c, x), in = !dtype_is_float(type) || type == F64 ? F64 : SINTER_DTYPE_F32;
    const bool is_nearest = a->mode == resize_mode_nearest;
    const uint32_t rank = call_rank(c, x);
    ir_value_id outside = 0;
    if (!is_nearest) x = build_typed(b, x, in);
    for (uint32_t i = 0; i < rank && !b->status; i++) {
        if (!s->scale[i]) continue;
        ir_value_id beyond;
        const axis_late axis = { .a = a,
                                 .axis = i,
                                 .rank = rank,
                                 .n = call_dim(c, x, i),
                                 .n_out = s->size[i],
                                 .scale = s->scale[i],
                                 .low = s->low[i],
                                 .high = s->high[i],
                                 .is_upsample = s->is_upsample };
        const ir_value_id at = places_of(c, &axis, &beyond);
        if (is_nearest) x = picked(c, x, &axis, nearest(c, &axis, at));
        else x = a->antialias ? antialiased(c, x, &axis, at) : interpolated(c, x, &axis, at);
        if (beyond) beyond = build_along(b, beyond, i, rank);
        outside = outside && beyond ? build_or(b, outside, beyond) : beyond ? beyond : outside;
    }
    if (outside) x = build_where(b, outside, build_scalar_like(b, x, a->extrapolation), x);
    if (!is_nearest && in == F64 && type != F64) x = build_round(b, x);
    return build_typed(b, x, type);
}

/* Do the sizes say all about the scales? Then the size of each axis times its scale is the new size. */
static ir_value_id are_whole(onnx_call *c, ir_value_id x, const quirk_scales *s)
{
    ir_builder *b = &c->b;
    ir_value_id all = 0;
    for (uint32_t i = 0; i < call_rank(c, x) && !b->status; i++) {
        if (!s->scale[i]) continue;
        const ir_value_id product = build_mul(b, quirk_size_real(c, call_dim(c, x, i)), s->scale[i]),
                          wanted = quirk_size_real(c, s->size[i]),
                          off = build_abs(b, build_sub(b, product, wanted)); /* scales are of f32 */
        ir_value_id fits = build_le(b, off, build_mul(b, wanted, real(c, 6e-8)));
        if (s->is_upsample) fits = build_and(b, fits, build_ge(b, s->scale[i], real(c, 1)));
        all = all ? build_and(b, all, fits) : fits;
    }
    return all;
}

/* v as a parameter of the region; an input of the node that the region belongs to. */
static ir_value_id inside(onnx_call *c, ir_region_id region, ir_value_id v)
{
    const ir_value from = *ir_value_at(c->b.g, v);
    const ir_value_id p = ir_param(c->b.g, region, NULL, from.dtype, from.rank, from.dim);
    if (!p && !c->b.status) c->b.status = FAIL_MEMORY(c->e, "a captured value");
    return p;
}

ir_value_id quirk_resize_scaled(onnx_call *c, ir_value_id x, attrs_resize *a, const quirk_scales *s)
{
    ir_builder *b = &c->b;
    const uint32_t rank = call_rank(c, x);
    const ir_value_id are_sizes = b->status || s->is_apart ? 0 : are_whole(c, x, s);
    double whole;
    if (b->status) return 0;
    if (!are_sizes || (ir_const_scalar(b->g, are_sizes, &whole) && whole == 0)) return scaled_by_parts(c, x, a, s);
    ir_value_id in[2 + SINTER_RANK_MAX] = { are_sizes, x };
    uint32_t count = 2;
    for (uint32_t i = 0; i < rank; i++)
        if (s->scale[i] && !ir_is_const(b->g, s->scale[i])) in[count++] = s->scale[i];
    const ir_node_id node = build_if(b, in, count, NULL, 1);
    for (uint32_t k = 0; k < 2 && !b->status; k++) {
        const ir_region_id around = b->region, region = ir_region_new(b->g, node);
        quirk_scales own = *s;
        if (!region) b->status = FAIL_MEMORY(c->e, "a branch");
        if (b->status) return 0;
        b->region = region;
        const ir_value_id image = inside(c, region, x);
        for (uint32_t i = 0; i < rank && !b->status; i++)
            if (s->scale[i] && !ir_is_const(b->g, s->scale[i])) own.scale[i] = inside(c, region, s->scale[i]);
        const ir_value_id y = b->status ? 0
                              : k       ? scaled_by_parts(c, image, a, &own)
                                        : quirk_resize(c, image, a, s->size, NULL);
        if (!b->status) ir_result(b->g, region, y);
        b->region = around;
    }
    if (b->status) return 0;
    build_close(b, node);
    return build_result(b, node, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_axes.c - axes that the model computes.
 *
 * How many there are is known; which ones, only when the model runs. So they become a list with an element for each
 * axis, and sizes that depend on them are bound. An axis that is out of range stops the run, and so does one that is
 * named twice. */
#include "onnx/quirks.h"

bool quirk_axes_late(onnx_call *c, ir_value_id axes)
{
    dim known[ATTR_INTS_MAX];
    uint32_t count = 0;
    if (!axes || c->b.status || ir_is_const(c->b.g, axes) || call_is_empty(c, axes)) return false;
    if (!call_known(c, axes, known, ATTR_INTS_MAX, &count)) return !c->b.status;
    int64_t value;
    for (uint32_t i = 0; i < count; i++)
        if (!dim_is_const(c->b.g->dims, known[i], &value)) return true;
    return false;
}

static ir_value_id filled(onnx_call *c, int64_t value, uint32_t count)
{
    const dim length = call_k(c, count);
    return build_expanded(&c->b, build_scalar_i64(&c->b, SINTER_DTYPE_I64, value), &length, 1);
}

uint32_t quirk_axes_count(onnx_call *c, ir_value_id axes, uint32_t rank)
{
    int64_t length = 1;
    if (call_rank(c, axes) > 1) REJECT(c, INVALID_MODEL, "the list of axes has rank %u", call_rank(c, axes));
    else if (call_rank(c, axes) == 1 && !call_size(c, axes, 0, &length))
        REJECT(c, UNSUPPORTED, "the number of axes is not known before the model runs");
    else if (length > (int64_t)rank)
        REJECT(c, INVALID_MODEL, "%lld axes of a tensor of rank %u", (long long)length, rank);
    return c->b.status ? 0 : (uint32_t)length;
}

ir_value_id quirk_axis_counted(onnx_call *c, ir_value_id axis, uint32_t rank)
{
    ir_builder *b = &c->b;
    const dim one = call_k(c, 1);
    const ir_value_id at = build_shaped(b, build_typed(b, axis, SINTER_DTYPE_I64), &one, 1),
                      zero = build_scalar_i64(b, SINTER_DTYPE_I64, 0),
                      all = build_scalar_i64(b, SINTER_DTYPE_I64, rank), is_back = build_lt(b, at, zero),
                      y = build_where(b, is_back, build_add(b, at, all), at), fits = build_ge(b, y, zero);
    quirk_guard(c, build_and(b, fits, build_lt(b, y, all)), true, GUARD_AXES);
    return y;
}

ir_value_id quirk_axes_spread(onnx_call *c, ir_value_id axes, uint32_t rank, ir_value_id values, int64_t others)
{
    const dim length = call_k(c, quirk_axes_count(c, axes, rank));
    const ir_value_id list = build_shaped(&c->b, build_typed(&c->b, axes, SINTER_DTYPE_I64), &length, 1),
                      each = build_shaped(&c->b, build_typed(&c->b, values, SINTER_DTYPE_I64), &length, 1);
    return build_scatter_elements(&c->b, filled(c, others, rank), list, each, DEFAULTS(scatter_elements));
}

/* [rank] of 1 for an axis that is named, and 0 for others. */
static ir_value_id flags_of(onnx_call *c, ir_value_id axes, uint32_t rank, uint32_t *count)
{
    *count = quirk_axes_count(c, axes, rank);
    const ir_value_id flags = quirk_axes_spread(c, axes, rank, filled(c, 1, *count), 0),
                      named = build_reduced(&c->b, reduce_kind_sum, flags, (int64_t[]){ 0 }, 1, false);
    quirk_guard(c, build_eq(&c->b, named, build_scalar_like(&c->b, named, *count)), true, GUARD_AXES);
    return flags;
}

static ir_value_id is_set(onnx_call *c, ir_value_id flags)
{
    return build_typed(&c->b, flags, SINTER_DTYPE_BOOL);
}

/* For each axis, how many axes before it are not named. *kept: 1 where the axis itself is not named, else 0. */
static ir_value_id place_of(onnx_call *c, ir_value_id flags, ir_value_id *kept)
{
    attrs_cumulate *a = DEFAULTS(cumulate);
    a->exclusive = 1;
    *kept = build_sub(&c->b, build_scalar_like(&c->b, flags, 1), flags);
    return build_cumulate(&c->b, *kept, a);
}

/* The sizes of the axes that are not named. */
static ir_value_id sizes_left(onnx_call *c, const dim *d, uint32_t rank, ir_value_id flags, uint32_t count)
{
    ir_value_id kept;
    const ir_value_id place = place_of(c, flags, &kept),
                      sizes = build_mul(&c->b, kept, build_sizes(&c->b, d, rank, false)),
                      number = build_unsqueezed(&c->b, build_iota(&c->b, call_k(c, rank - count)), 1),
                      here = build_typed(&c->b, build_eq(&c->b, place, number), SINTER_DTYPE_I64);
    return build_reduced(&c->b, reduce_kind_sum, build_mul(&c->b, here, sizes), (int64_t[]){ 1 }, 1, false);
}

ir_value_id quirk_squeeze_late(onnx_call *c, ir_value_id x, ir_value_id axes)
{
    dim d[SINTER_RANK_MAX];
    uint32_t count;
    const uint32_t rank = call_shape(c, x, d);
    const ir_value_id flags = flags_of(c, axes, rank, &count);
    if (c->b.status || count == rank) return build_shaped(&c->b, x, NULL, 0);
    return quirk_reshape_late(c, x, sizes_left(c, d, rank, flags, count), rank - count, true);
}

ir_value_id quirk_unsqueeze_late(onnx_call *c, ir_value_id x, ir_value_id axes)
{
    dim d[SINTER_RANK_MAX + 1];
    uint32_t count;
    const uint32_t rank = call_shape(c, x, d), more = quirk_axes_count(c, axes, SINTER_RANK_MAX), wide = rank + more;
    if (wide > SINTER_RANK_MAX) REJECT(c, UNSUPPORTED, "rank %u; up to %d is supported", wide, SINTER_RANK_MAX);
    if (c->b.status) return 0;
    ir_value_id kept;
    const ir_value_id flags = flags_of(c, axes, wide, &count), place = place_of(c, flags, &kept),
                      is_new = is_set(c, flags);
    d[rank] = call_k(c, 1); /* the size of a new axis, behind those of the others */
    const ir_value_id from = build_where(&c->b, is_new, build_scalar_like(&c->b, place, rank), place),
                      sizes = build_gather(&c->b, build_sizes(&c->b, d, rank + 1, false), from, DEFAULTS(gather));
    return quirk_reshape_late(c, x, sizes, wide, true);
}

/* ---- reductions ---- */
ir_value_id quirk_not_empty(onnx_call *c, ir_value_id x, uint32_t axis)
{
    dim_table *t = c->b.g->dims;
    dim d[SINTER_RANK_MAX], none[SINTER_RANK_MAX], more[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, d);
    if (c->b.status || dim_range_of(t, d[axis]).min >= 1) return x;
    for (uint32_t i = 0; i < rank; i++) none[i] = more[i] = call_k(c, 0);
    more[axis] = dim_sub(t, dim_max(t, d[axis], call_k(c, 1)), d[axis]);
    return build_padded(&c->b, x, pad_mode_constant, none, more, 0);
}

/* Where `flag` is set: x reduced along the axis, the result repeated over it. Else x. An axis without elements gets
 * one. */
static ir_value_id reduced_where(onnx_call *c, reduce_kind kind, ir_value_id x, uint32_t axis, ir_value_id flag)
{
    const ir_value_id y = build_reduced(&c->b, kind, x, (int64_t[]){ axis }, 1, true);
    return build_where(&c->b, flag, y, quirk_not_empty(c, x, axis));
}

/* Reduces one axis after another. All axes keep their size until the end; then those that are named are cut to one. */
ir_value_id quirk_reduce_late(onnx_call *c, reduce_kind kind, ir_value_id x, ir_value_id axes, bool keep)
{
    dim_table *t = c->b.g->dims;
    dim d[SINTER_RANK_MAX], left[SINTER_RANK_MAX];
    uint32_t count;
    const uint32_t rank = call_shape(c, x, d);
    const bool is_float = dtype_is_float(call_type(c, x)), is_mean = kind == reduce_kind_mean && !is_float,
               has_roots = kind == reduce_kind_l2 || kind == reduce_kind_log_sum || kind == reduce_kind_log_sum_exp;
    if (has_roots && !is_float) {
        const ir_value_id y = quirk_reduce_late(c, kind, build_typed(&c->b, x, SINTER_DTYPE_F64), axes, keep);
        return build_typed(&c->b, y, call_type(c, x));
    }
    const ir_value_id flags = flags_of(c, axes, rank, &count), flag = is_set(c, flags),
                      sizes = build_sizes(&c->b, d, rank, false), one = build_scalar_like(&c->b, flags, 1);
    /* Reductions whose result would differ when axes are taken one after another are made of sums. */
    const reduce_kind each =
        is_mean || kind == reduce_kind_sum_square || kind == reduce_kind_log_sum ? reduce_kind_sum : kind;
    ir_value_id y = kind == reduce_kind_sum_square ? build_mul(&c->b, x, x) : x;
    for (uint32_t i = 0; i < rank && !c->b.status; i++) {
        const ir_value_id here = build_part(&c->b, flag, 0, call_k(c, i), 1, call_k(c, 1));
        y = reduced_where(c, each, y, i, build_shaped(&c->b, here, NULL, 0));
        left[i] = dim_symbol_late(t, "n", dim_max(t, d[i], call_k(c, 1)));
    }
    attrs_bind *b = DEFAULTS(bind);
    b->symbols = build_dims(&c->b, left, rank);
    build_bind(&c->b, build_where(&c->b, flag, one, sizes), b);
    for (uint32_t i = 0; i < rank; i++) y = build_part(&c->b, y, i, call_k(c, 0), 1, left[i]);
    if (is_mean) {
        const ir_value_id of = build_where(&c->b, flag, sizes, one),
                          all = build_reduced(&c->b, reduce_kind_prod, of, (int64_t[]){ 0 }, 1, false);
        y = build_div(&c->b, y, build_typed(&c->b, all, call_type(c, x)));
    }
    if (kind == reduce_kind_log_sum) y = build_log(&c->b, y);
    if (keep || c->b.status) return y;
    if (count == rank) return build_shaped(&c->b, y, NULL, 0);
    return quirk_reshape_late(c, y, sizes_left(c, d, rank, flags, count), rank - count, true);
}

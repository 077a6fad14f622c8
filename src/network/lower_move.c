/* SPDX-License-Identifier: Apache-2.0 */
/* lower_move.c - layers that move elements: shuffle, slice, gather, concatenation, padding, resize, topk. */
#include "network/network.h"

void lower_concatenation(network_call *n)
{
    network_widen_sizes(n);
    const uint32_t rank = call_rank(&n->c, n->c.in[0]);
    const int64_t axis = call_axis(&n->c, network_int(n, "axis"), rank);
    n->c.out[0] = n->c.count_in == 1 ? build_identity(&n->c.b, n->c.in[0])
                                     : build_concat(&n->c.b, n->c.in, n->c.count_in, &(attrs_concat){ .axis = axis });
}

void lower_shape(network_call *n)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(&n->c, n->c.in[0], d);
    n->c.out[0] = build_sizes(&n->c.b, d, rank, false);
}

static ir_value_id transposed(network_call *n, const char *name, ir_value_id x)
{
    attr_ints perm;
    if (n->c.b.status || !network_ints(n, name, &perm)) return x;
    const onnx_attr a = network_attr_ints("perm", &perm);
    return network_op(n, "Transpose", &a, 1, &x, 1);
}

void lower_shuffle(network_call *n)
{
    attr_ints shape;
    ir_value_id in[2] = { transposed(n, "first_transpose", n->c.in[0]), call_in(&n->c, 1) };
    const bool is_set = network_param_of(n->layer, "reshape")->is_set;
    network_ints(n, "reshape", &shape);
    if (is_set && !in[1]) in[1] = network_i64s(n, shape.at, shape.count);
    const onnx_attr a = network_attr_int("allowzero", !network_int(n, "zero_is_placeholder"));
    if (in[1]) in[0] = network_op(n, "Reshape", &a, 1, in, 2);
    n->c.out[0] = transposed(n, "second_transpose", in[0]);
    if (n->c.out[0] == n->c.in[0]) n->c.out[0] = build_identity(&n->c.b, n->c.in[0]);
}

void lower_padding(network_call *n)
{
    attr_ints pre, post;
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    const ir_value_id x = n->c.in[0];
    const uint32_t rank = call_rank(&n->c, x);
    network_ints(n, "pre_padding", &pre);
    network_ints(n, "post_padding", &post);
    if (pre.count != post.count || pre.count > rank)
        REJECT(&n->c, INVALID_ARG, "%u and %u numbers for an input of rank %u", pre.count, post.count, rank);
    if (n->c.b.status) return;
    for (uint32_t i = 0; i < rank; i++) {
        const bool is_padded = i + pre.count >= rank;
        begin[i] = call_k(&n->c, is_padded ? pre.at[i + pre.count - rank] : 0);
        end[i] = call_k(&n->c, is_padded ? post.at[i + pre.count - rank] : 0);
    }
    n->c.out[0] = build_padded(&n->c.b, x, pad_mode_constant, begin, end, 0);
}

/* ---- slice ---- */

typedef struct slice_plan {
    uint32_t rank;
    dim start[SINTER_RANK_MAX], size[SINTER_RANK_MAX], from[SINTER_RANK_MAX];
    dim stride[SINTER_RANK_MAX];
} slice_plan;

/* A list of numbers for `want` axes: an input, or a parameter. */
static uint32_t slice_list(network_call *n, uint32_t input, const char *name, dim *out)
{
    uint32_t count = 0;
    attr_ints list;
    const ir_value_id v = call_in(&n->c, input);
    if (v) {
        if (input == 2) call_sizes(&n->c, v, name, DIM_NONE, out, SINTER_RANK_MAX, &count);
        else call_numbers(&n->c, v, name, out, SINTER_RANK_MAX, &count);
        return count;
    }
    network_ints(n, name, &list);
    if (list.count > SINTER_RANK_MAX) REJECT(&n->c, INVALID_ARG, "parameter %s has %u numbers", name, list.count);
    for (uint32_t i = 0; i < list.count && i < SINTER_RANK_MAX; i++) out[i] = call_k(&n->c, list.at[i]);
    return list.count;
}

static void slice_read(network_call *n, slice_plan *p)
{
    dim start[SINTER_RANK_MAX], size[SINTER_RANK_MAX];
    dim stride[SINTER_RANK_MAX];
    attr_ints axes;
    p->rank = call_shape(&n->c, n->c.in[0], p->from);
    if (call_in(&n->c, 5)) call_const_ints(&n->c, n->c.in[5], "the list of axes", axes.at, ATTR_INTS_MAX, &axes.count);
    else if (!network_ints(n, "axes", &axes))
        for (axes.count = 0; axes.count < p->rank; axes.count++) axes.at[axes.count] = axes.count;
    const uint32_t starts = slice_list(n, 1, "start", start), sizes = slice_list(n, 2, "size", size);
    uint32_t strides = slice_list(n, 3, "stride", stride);
    if (!strides && !call_in(&n->c, 3))
        while (strides < axes.count && strides < SINTER_RANK_MAX) stride[strides++] = call_k(&n->c, 1);
    if (starts != axes.count || sizes != axes.count || strides != axes.count)
        REJECT(&n->c, INVALID_ARG, "%u starts, %u sizes and %u strides for %u axes", starts, sizes, strides,
               axes.count);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < p->rank; i++) {
        p->start[i] = call_k(&n->c, 0);
        p->size[i] = p->from[i];
        p->stride[i] = call_k(&n->c, 1);
    }
    for (uint32_t i = 0; i < axes.count && !n->c.b.status; i++) {
        const int64_t axis = call_axis(&n->c, axes.at[i], p->rank);
        if (seen >> axis & 1) REJECT(&n->c, INVALID_ARG, "axis %lld is given twice", (long long)axis);
        seen |= UINT32_C(1) << axis;
        p->start[axis] = start[i];
        p->size[axis] = size[i];
        p->stride[axis] = stride[i];
    }
}

/* Refuses what can be seen to leave the input. */
static void slice_check(network_call *n, const slice_plan *p)
{
    for (uint32_t i = 0; i < p->rank; i++) {
        int64_t start, size, from, stride;
        dim_table *t = n->c.b.g->dims;
        if (!dim_is_const(t, p->start[i], &start) || !dim_is_const(t, p->size[i], &size) ||
            !dim_is_const(t, p->stride[i], &stride))
            continue;
        if (size < 0) REJECT(&n->c, INVALID_ARG, "axis %u has size %lld", i, (long long)size);
        if (!size || !dim_is_const(t, p->from[i], &from)) continue;
        int64_t last = 0;
        const bool fits = i64_mul(size - 1, stride, &last) && i64_add(last, start, &last) && start >= 0 &&
                          start < from && last >= 0 && last < from;
        if (!fits)
            REJECT(&n->c, INVALID_ARG, "axis %u of size %lld is sliced from %lld, %lld elements with stride %lld", i,
                   (long long)from, (long long)start, (long long)size, (long long)stride);
    }
}

static ir_value_id slice_inside(network_call *n, const slice_plan *p)
{
    attrs_slice *a = DEFAULTS(slice);
    dim size[SINTER_RANK_MAX];
    bool repeats = false;
    a->step.count = p->rank;
    for (uint32_t i = 0; i < p->rank; i++) {
        /* Stride 0: one element as often as the size says. */
        int64_t stride = 1;
        (void)dim_is_const(n->c.b.g->dims, p->stride[i], &stride);
        repeats |= !stride;
        size[i] = stride ? p->size[i] : call_k(&n->c, 1);
        a->step.at[i] = stride ? stride : 1;
    }
    a->start = build_dims(&n->c.b, p->start, p->rank);
    a->size = build_dims(&n->c.b, size, p->rank);
    const ir_value_id y = build_slice(&n->c.b, n->c.in[0], a);
    return repeats ? build_expanded(&n->c.b, y, p->size, p->rank) : y;
}

/* i64 in the form of an axis' sizes. */
static ir_value_id number(network_call *n, dim d)
{
    return build_sizes(&n->c.b, &d, 1, true);
}

/* Without an element there is none to clamp to: slice_outside adds one that no index inside meets. */
static bool may_be_empty(network_call *n, const slice_plan *p, uint32_t axis, int64_t mode)
{
    return mode == SINTER_SAMPLE_FILL && dim_range_of(n->c.b.g->dims, p->from[axis]).min < 1;
}

/* The indices that an axis takes, moved into the axis as the mode says; *inside: which of them were in it. */
static ir_value_id slice_indices(network_call *n, const slice_plan *p, uint32_t axis, int64_t mode, ir_value_id *inside)
{
    ir_builder *b = &n->c.b;
    dim_table *t = b->g->dims;
    const ir_value_id zero = build_scalar_i64(b, SINTER_DTYPE_I64, 0), length = number(n, p->from[axis]);
    const ir_value_id last =
        number(n, dim_sub(t, p->from[axis], call_k(&n->c, may_be_empty(n, p, axis, mode) ? 0 : 1)));
    attrs_range *a = DEFAULTS(range);
    a->count = build_dims(b, &p->size[axis], 1);
    const ir_value_id first = number(n, p->start[axis]), step = number(n, p->stride[axis]);
    const ir_value_id i = build_range(b, first, step, a);
    *inside = 0;
    if (mode == SINTER_SAMPLE_FILL) {
        const ir_value_id below = build_lt(b, i, length);
        *inside = build_and(b, build_ge(b, i, zero), below);
    }
    if (mode == SINTER_SAMPLE_WRAP) return build_mod(b, i, length);
    if (mode != SINTER_SAMPLE_REFLECT) return build_clip(b, i, zero, last);
    /* A walk there and back, without the ends twice: period 2 (length - 1), at least 1. */
    const dim period = dim_mul(t, call_k(&n->c, 2), dim_sub(t, p->from[axis], call_k(&n->c, 1)));
    const ir_value_id whole = number(n, call_clamp_max(&n->c, period, call_k(&n->c, 1)));
    const ir_value_id at = build_mod(b, i, whole);
    return build_min(b, at, build_sub(b, number(n, period), at));
}

static ir_value_id one_more(network_call *n, ir_value_id y, uint32_t axis)
{
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < SINTER_RANK_MAX; i++) {
        begin[i] = call_k(&n->c, 0);
        end[i] = call_k(&n->c, i == axis ? 1 : 0);
    }
    return build_padded(&n->c.b, y, pad_mode_constant, begin, end, 0);
}

/* A slice that only adds to the ends of axes, as a padding; 0: it is none. */
static ir_value_id slice_padded(network_call *n, const slice_plan *p, int64_t mode, ir_value_id fill)
{
    static const pad_mode modes[] = { [SINTER_SAMPLE_WRAP] = pad_mode_wrap,
                                      [SINTER_SAMPLE_CLAMP] = pad_mode_edge,
                                      [SINTER_SAMPLE_FILL] = pad_mode_constant,
                                      [SINTER_SAMPLE_REFLECT] = pad_mode_reflect };
    dim_table *t = n->c.b.g->dims;
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    if (mode == SINTER_SAMPLE_STRICT_BOUNDS) return 0;
    for (uint32_t i = 0; i < p->rank; i++) {
        int64_t before, behind, from;
        begin[i] = dim_sub(t, call_k(&n->c, 0), p->start[i]);
        end[i] = dim_sub(t, dim_add(t, p->start[i], p->size[i]), p->from[i]);
        if (!dim_is(t, p->stride[i], 1) || !dim_is_const(t, begin[i], &before) || !dim_is_const(t, end[i], &behind) ||
            before < 0 || behind < 0)
            return 0;
        if (mode == SINTER_SAMPLE_FILL || (!before && !behind)) continue;
        if (!dim_is_const(t, p->from[i], &from) || before >= from || behind >= from) return 0;
    }
    return build_padded(&n->c.b, n->c.in[0], modes[mode], begin, end, fill);
}

static ir_value_id slice_outside(network_call *n, const slice_plan *p, int64_t mode)
{
    ir_builder *b = &n->c.b;
    ir_value_id y = n->c.in[0], fill = call_in(&n->c, 4);
    if (mode == SINTER_SAMPLE_FILL && !fill) fill = build_scalar_like(b, y, 0);
    if (fill && call_rank(&n->c, fill)) fill = build_shaped(b, fill, NULL, 0);
    const ir_value_id padded = slice_padded(n, p, mode, fill);
    if (padded || b->status) return padded;
    for (uint32_t i = 0; i < p->rank && !b->status; i++) {
        const bool is_whole = dim_is(b->g->dims, p->stride[i], 1) && p->size[i] == p->from[i];
        if (is_whole && dim_is(b->g->dims, p->start[i], 0)) continue;
        ir_value_id inside = 0;
        const ir_value_id index = slice_indices(n, p, i, mode, &inside);
        if (may_be_empty(n, p, i, mode)) y = one_more(n, y, i);
        y = build_gather(b, y, index, &(attrs_gather){ .axis = i });
        if (inside) y = build_where(b, build_along(b, inside, i, p->rank), y, fill);
    }
    return y == n->c.in[0] ? build_identity(b, y) : y;
}

/* Are the strides numbers? Otherwise a run computes the indices. */
static bool strides_are_known(const network_call *n, const slice_plan *p)
{
    int64_t stride;
    for (uint32_t i = 0; i < p->rank; i++)
        if (!dim_is_const(n->c.b.g->dims, p->stride[i], &stride)) return false;
    return true;
}

void lower_slice(network_call *n)
{
    network_widen(n);
    slice_plan p;
    const int64_t mode = network_int(n, "mode");
    slice_read(n, &p);
    if (n->c.b.status) return;
    if (call_in(&n->c, 4) && mode != SINTER_SAMPLE_FILL)
        REJECT(&n->c, INVALID_ARG, "input 4 is the value for mode fill, and the mode is another one");
    if (mode == SINTER_SAMPLE_STRICT_BOUNDS) slice_check(n, &p);
    if (n->c.b.status) return;
    const bool is_inside = mode == SINTER_SAMPLE_STRICT_BOUNDS && strides_are_known(n, &p);
    n->c.out[0] = is_inside ? slice_inside(n, &p) : slice_outside(n, &p, mode);
}

/* ---- gather ---- */

/* Gather with one leading axis that data and indices share: the axis moves to place 1, where GatherND takes it. */
static ir_value_id gather_batched(network_call *n, int64_t axis, uint32_t batch)
{
    ir_builder *b = &n->c.b;
    const uint32_t rank = call_rank(&n->c, n->c.in[0]), wide = call_rank(&n->c, n->c.in[1]);
    int64_t perm[SINTER_RANK_MAX], back[SINTER_RANK_MAX];
    uint32_t k = 0;
    if (axis < (int64_t)batch || wide < batch || rank + wide - 1 - batch > SINTER_RANK_MAX) {
        REJECT(&n->c, INVALID_ARG, "axis %lld with %u shared axes", (long long)axis, batch);
        return 0;
    }
    for (uint32_t i = 0; i < batch; i++) perm[k++] = i;
    perm[k++] = axis;
    for (uint32_t i = batch; i < rank; i++)
        if (i != axis) perm[k++] = i;
    ir_value_id in[2] = { build_permuted(b, n->c.in[0], perm, rank) };
    in[1] = build_unsqueezed(b, n->c.in[1], wide);
    const onnx_attr a = network_attr_int("batch_dims", batch);
    const ir_value_id y = network_op(n, "GatherND", &a, 1, in, 2);
    /* Now: shared axes, axes of the indices, axes of the data. Those before `axis` go in front of the indices'. */
    const uint32_t between = (uint32_t)axis - batch, indices = wide - batch, all = rank + wide - 1 - batch;
    for (uint32_t i = 0; i < all; i++)
        back[i] = i < batch ? i : i < batch + between ? i + indices : i < batch + between + indices ? i - between : i;
    return build_permuted(b, y, back, all);
}

void lower_gather(network_call *n)
{
    const int64_t mode = network_int(n, "mode"), batch = network_int(n, "num_elementwise_dims");
    const ir_value_id *in = n->c.in;
    const uint32_t rank = call_rank(&n->c, in[0]);
    if (batch < 0 || batch > (int64_t)rank || (batch && mode == SINTER_GATHER_ELEMENT))
        REJECT(&n->c, INVALID_ARG, "parameter num_elementwise_dims is %lld", (long long)batch);
    if (n->c.b.status) return;
    if (mode == SINTER_GATHER_ND) {
        const onnx_attr a = network_attr_int("batch_dims", batch);
        n->c.out[0] = network_op(n, "GatherND", &a, 1, in, 2);
        return;
    }
    const int64_t axis = call_axis(&n->c, network_int(n, "axis"), rank);
    const onnx_attr a = network_attr_int("axis", axis);
    if (n->c.b.status) return;
    if (mode == SINTER_GATHER_ELEMENT) n->c.out[0] = network_op(n, "GatherElements", &a, 1, in, 2);
    else n->c.out[0] = batch ? gather_batched(n, axis, (uint32_t)batch) : network_op(n, "Gather", &a, 1, in, 2);
}

void lower_topk(network_call *n)
{
    attr_ints axes;
    ir_value_id out[2] = { 0 }, in[2] = { n->c.in[0], call_in(&n->c, 1) };
    const int64_t k = network_int(n, "k"), type = network_int(n, "indices_type");
    network_mask(n, "axes", call_rank(&n->c, in[0]), &axes);
    if (axes.count != 1) REJECT(&n->c, INVALID_ARG, "parameter axes has %u axes, wanted is one", axes.count);
    if (type != SINTER_DTYPE_I32 && type != SINTER_DTYPE_I64)
        REJECT(&n->c, INVALID_ARG, "indices of type %s", sinter_dtype_name((sinter_dtype)type));
    if (!in[1]) {
        if (k < 0) REJECT(&n->c, INVALID_ARG, "parameter k is %lld", (long long)k);
        in[1] = network_i64s(n, &k, 1);
    }
    const onnx_attr a[] = { network_attr_int("axis", axes.at[0]),
                            network_attr_int("largest", network_int(n, "op") == SINTER_TOPK_MAX) };
    network_ops(n, "TopK", a, 2, in, 2, out, 2);
    n->c.out[0] = out[0];
    n->c.out[1] = build_typed(&n->c.b, out[1], (sinter_dtype)type);
}

/* ---- resize ---- */

void lower_resize(network_call *n)
{
    static const char *const mode[] = { "nearest", "linear", "cubic" }, *const round[] = { "round_prefer_ceil",
                                                                                           "round_prefer_floor",
                                                                                           "floor", "ceil" };
    const bool is_upper = network_int(n, "selector_for_single_pixel") == SINTER_SELECTOR_UPPER;
    const char *const where[] = { "align_corners", "asymmetric", is_upper ? "pytorch_half_pixel" : "half_pixel" };
    attr_ints size;
    const network_param *scales = network_param_of(n->layer, "scales");
    ir_value_id in[4] = { n->c.in[0], 0, 0, call_in(&n->c, 1) };
    const uint32_t rank = call_rank(&n->c, in[0]);
    if (network_ints(n, "size", &size) && !in[3]) in[3] = network_i64s(n, size.at, size.count);
    if (!in[3] && scales->count) {
        float *at = ARENA_NEW(&n->c.b.g->a, float, scales->count);
        const int64_t count = scales->count;
        view v;
        for (uint32_t i = 0; at && i < scales->count; i++) at[i] = (float)scales->reals[i];
        if (!at || !view_init(&v, SINTER_DTYPE_F32, 1, &count, at)) REJECT(&n->c, NO_MEMORY, "out of memory");
        else in[2] = build_const(&n->c.b, NULL, &v);
    }
    if (!in[2] && !in[3] && !n->c.b.status) { /* As upstream: nothing is resized. */
        n->c.out[0] = build_identity(&n->c.b, in[0]);
        return;
    }
    if (scales->count && scales->count != rank)
        REJECT(&n->c, INVALID_ARG, "%u scales for an input of rank %u", scales->count, rank);
    const onnx_attr a[] = {
        network_attr_text("mode", mode[network_int(n, "mode")]),
        network_attr_text("coordinate_transformation_mode", where[network_int(n, "coordinate_transformation")]),
        network_attr_text("nearest_mode", round[network_int(n, "nearest_rounding")]),
        network_attr_real("cubic_coeff_a", network_real(n, "cubic_coeff", -0.75)),
        network_attr_int("exclude_outside", network_int(n, "exclude_outside")),
    };
    n->c.out[0] = network_op(n, "Resize", a, COUNT_OF(a), in, 4);
    if (!in[2] || network_int(n, "coordinate_transformation") != SINTER_COORDINATE_ALIGN_CORNERS) return;
    /* The last element of the output lies on the last of the input. ONNX has it at scale * size - 1, which may be a
     * fraction, so that the sizes are given instead of the scales. */
    dim made[SINTER_RANK_MAX];
    const uint32_t made_rank = call_shape(&n->c, n->c.out[0], made);
    if (n->c.b.status) return;
    in[2] = 0;
    in[3] = build_sizes(&n->c.b, made, made_rank, false);
    n->c.out[0] = network_op(n, "Resize", a, COUNT_OF(a), in, 4);
}

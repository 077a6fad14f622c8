/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_cut.c - Slice and Split: bounds counted from either end and clamped, parts that have to be the whole.
 *
 * Bounds that are known, as numbers or as expressions, become attributes; others are bound by a `bind` node when the
 * model runs. */
#include "onnx/quirks.h"
#include <string.h>

/* ---- Slice ---- */
typedef struct cut {
    dim start, size;
    int64_t step;
    ir_value_id late; /* the step [1] where the model computes it, else 0 */
} cut;

/* An end of a slice as ONNX counts it: negative from the back, then clamped to low … d + high_extra. False: its sign is
 * not known. */
static bool bound_known(onnx_call *c, dim d, dim at, int64_t low, int64_t extra, dim *out)
{
    dim_table *t = c->b.g->dims;
    const dim_range r = dim_range_of(t, at);
    if (r.min < 0 && r.max >= 0) return false;
    const dim high = dim_add(t, d, call_k(c, extra));
    if (r.min >= INT32_MAX) *out = high; /* "to the end" */
    else if (r.max <= -(int64_t)INT32_MAX) *out = call_k(c, low);
    else *out = call_clamp_max(c, call_clamp_min(c, r.max < 0 ? dim_add(t, at, d) : at, high), call_k(c, low));
    return true;
}

static bool cut_known(onnx_call *c, dim d, dim start, dim end, int64_t step, cut *out)
{
    dim_table *t = c->b.g->dims;
    dim first, last;
    const bool back = step < 0;
    if (!bound_known(c, d, start, 0, back ? -1 : 0, &first) ||
        !bound_known(c, d, end, back ? -1 : 0, back ? -1 : 0, &last))
        return false;
    const dim span = back ? dim_sub(t, first, last) : dim_sub(t, last, first);
    out->start = call_clamp_max(c, first, call_k(c, 0));
    out->size = call_clamp_max(c, dim_ceildiv(t, span, call_k(c, back ? -step : step)), call_k(c, 0));
    if (back && dim_range_of(t, d).min < 1) out->size = call_clamp_min(c, out->size, d); /* none of an empty axis */
    out->step = step;
    return true;
}

static ir_value_id element(onnx_call *c, ir_value_id list, uint32_t i)
{
    if (call_rank(c, list) == 0) return build_typed(&c->b, build_unsqueezed(&c->b, list, 0), SINTER_DTYPE_I64);
    return build_typed(&c->b, build_part(&c->b, list, 0, call_k(c, i), 1, call_k(c, 1)), SINTER_DTYPE_I64);
}

/* Starts or ends (`in` is their operand's number): true where they are known, in `at`. Else *count is the length of the
 * operand, UINT32_MAX where only the run knows it. */
static bool bounds_known(onnx_call *c, uint32_t in, dim *at, uint32_t *count)
{
    if (call_known(c, call_in(c, in), at, SINTER_RANK_MAX, count)) return true;
    int64_t length = 1;
    const bool is_list = call_rank(c, call_in(c, in)) == 1;
    *count = is_list && !call_size(c, call_in(c, in), 0, &length) ? UINT32_MAX : (uint32_t)length;
    return false;
}

/* The operand with the length that other lists have: a reshape says so, and the run checks it. */
static ir_value_id bounds_of_length(onnx_call *c, uint32_t in, uint32_t *count, uint32_t want)
{
    if (*count != UINT32_MAX || c->b.status) return call_in(c, in);
    *count = want;
    const dim length = call_k(c, want);
    return build_shaped(&c->b, call_in(c, in), &length, 1);
}

/* list: starts, ends and steps; without a list of steps, the step is `step`. */
static void cut_bind(onnx_call *c, dim d, const ir_value_id list[3], uint32_t i, int64_t step, cut *out)
{
    ir_value_id part[3] = { element(c, list[0], i) };
    part[1] = element(c, list[1], i);
    part[2] =
        list[2] ? element(c, list[2], i) : build_unsqueezed(&c->b, build_scalar_i64(&c->b, SINTER_DTYPE_I64, step), 0);
    const ir_value_id all = build_concat(&c->b, part, 3, &(attrs_concat){ .axis = 0 });
    const dim symbol[2] = { dim_symbol_late(c->b.g->dims, "start", d), dim_symbol_late(c->b.g->dims, "size", d) };
    attrs_bind *b = DEFAULTS(bind);
    b->kind = bind_kind_slice;
    b->symbols = build_dims(&c->b, symbol, 2);
    b->dims = build_dims(&c->b, &d, 1);
    build_bind(&c->b, all, b);
    *out = (cut){ symbol[0], symbol[1], step, list[2] ? part[2] : 0 };
}

static ir_value_id sliced(onnx_call *c, ir_value_id x, const cut *k)
{
    dim start[SINTER_RANK_MAX], size[SINTER_RANK_MAX], from[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, from);
    attrs_slice *a = DEFAULTS(slice);
    bool is_whole = true;
    a->step.count = rank;
    for (uint32_t i = 0; i < rank; i++) {
        start[i] = k[i].late ? call_k(c, 0) : k[i].start;
        size[i] = k[i].late ? from[i] : k[i].size;
        a->step.at[i] = k[i].late ? 1 : k[i].step;
        is_whole = is_whole && size[i] == from[i] && k[i].step == 1;
    }
    a->start = build_dims(&c->b, start, rank);
    a->size = build_dims(&c->b, size, rank);
    x = is_whole ? build_identity(&c->b, x) : build_slice(&c->b, x, a);
    for (uint32_t i = 0; i < rank; i++) { /* by steps that the model computes: gathered */
        if (!k[i].late) continue;
        const ir_value_id first = build_sizes(&c->b, &k[i].start, 1, true),
                          step = build_shaped(&c->b, k[i].late, NULL, 0);
        attrs_range *places = DEFAULTS(range);
        places->count = build_dims(&c->b, &k[i].size, 1);
        x = build_gather(&c->b, x, build_range(&c->b, first, step, places), &(attrs_gather){ .axis = i });
    }
    return x;
}

/* Axes that the model computes: those that are not among them are cut from 0 to the end. */
static void slice_late(onnx_call *c, ir_value_id x)
{
    dim d[SINTER_RANK_MAX];
    int64_t step[SINTER_RANK_MAX];
    uint32_t steps = 0;
    cut k[SINTER_RANK_MAX];
    const ir_value_id axes = call_in(c, 3), given = call_in(c, 4);
    const uint32_t rank = call_shape(c, x, d);
    bool is_plain = !given;
    if (given && ir_is_const(c->b.g, given)) {
        call_const_ints(c, given, "the list of steps", step, SINTER_RANK_MAX, &steps);
        is_plain = true;
        for (uint32_t i = 0; i < steps; i++) is_plain = is_plain && step[i] == 1;
    }
    if (c->b.status) return;
    ir_value_id list[3] = { quirk_axes_spread(c, axes, rank, call_in(c, 1), 0) };
    list[1] = quirk_axes_spread(c, axes, rank, call_in(c, 2), INT64_MAX);
    if (!is_plain) list[2] = quirk_axes_spread(c, axes, rank, given, 1);
    for (uint32_t i = 0; i < rank && !c->b.status; i++) cut_bind(c, d[i], list, i, 1, &k[i]);
    if (!c->b.status) c->out[0] = sliced(c, x, k);
}

void convert_slice(onnx_call *c) /* arg 1: DynamicSlice, whose lists are inputs in all versions */
{
    const ir_value_id x = call_in(c, 0);
    dim from[SINTER_RANK_MAX], starts[SINTER_RANK_MAX], ends[SINTER_RANK_MAX];
    attr_ints axes = { 0 }, steps = { 0 }, list;
    const uint32_t rank = call_shape(c, x, from);
    uint32_t count = 0, count_end = 0;
    bool know_start = true, know_end = true;
    ir_value_id bounds[3] = { 0 };
    cut k[SINTER_RANK_MAX];
    const bool has_lists = c->version < 10 && !c->arg;
    if (has_lists) {
        call_ints(c, "starts", &list);
        count = list.count;
        for (uint32_t i = 0; i < count && i < SINTER_RANK_MAX; i++) starts[i] = call_k(c, list.at[i]);
        call_ints(c, "ends", &list);
        count_end = list.count;
        for (uint32_t i = 0; i < count_end && i < SINTER_RANK_MAX; i++) ends[i] = call_k(c, list.at[i]);
        call_ints(c, "axes", &axes);
    } else {
        if (!call_in(c, 1) || !call_in(c, 2)) {
            REJECT(c, INVALID_MODEL, "starts or ends are missing");
            return;
        }
        know_start = bounds_known(c, 1, starts, &count);
        know_end = bounds_known(c, 2, ends, &count_end);
        if (quirk_axes_late(c, call_in(c, 3))) {
            slice_late(c, x);
            return;
        }
        if (call_in(c, 3)) call_const_ints(c, call_in(c, 3), "the list of axes", axes.at, SINTER_RANK_MAX, &axes.count);
        if (call_in(c, 4) && ir_is_const(c->b.g, call_in(c, 4)))
            call_const_ints(c, call_in(c, 4), "the list of steps", steps.at, SINTER_RANK_MAX, &steps.count);
        else bounds[2] = call_in(c, 4);
        const uint32_t other = axes.count ? axes.count : steps.count ? steps.count : UINT32_MAX;
        const uint32_t length = count != UINT32_MAX ? count : count_end != UINT32_MAX ? count_end : other;
        if (length == UINT32_MAX) REJECT(c, UNSUPPORTED, "the number of axes is not known before the model runs");
        bounds[0] = bounds_of_length(c, 1, &count, length);
        bounds[1] = bounds_of_length(c, 2, &count_end, length);
        if (bounds[2]) {
            const dim all = call_k(c, length);
            bounds[2] = build_shaped(&c->b, bounds[2], &all, 1);
        }
    }
    if (count > rank || count != count_end || (axes.count && axes.count != count) ||
        (steps.count && steps.count != count))
        REJECT(c, INVALID_MODEL, "%u starts, %u ends, %u axes and %u steps for rank %u", count, count_end, axes.count,
               steps.count, rank);
    for (uint32_t i = 0; i < rank; i++) k[i] = (cut){ call_k(c, 0), from[i], 1, 0 };
    for (uint32_t i = 0; i < count && !c->b.status; i++) {
        const int64_t axis = call_axis(c, axes.count ? axes.at[i] : (int64_t)i, rank);
        int64_t step = steps.count ? steps.at[i] : 1;
        if (step == 0) REJECT(c, INVALID_MODEL, "a step of 0");
        if (step > INT32_MAX) step = INT32_MAX; /* one element either way, and no overflow */
        if (step < -(int64_t)INT32_MAX) step = -(int64_t)INT32_MAX;
        if (c->b.status ||
            (!bounds[2] && know_start && know_end && cut_known(c, from[axis], starts[i], ends[i], step, &k[axis])))
            continue;
        if (has_lists) REJECT(c, INVALID_MODEL, "a bound of axis %lld is out of range", (long long)axis);
        cut_bind(c, from[axis], bounds, i, step, &k[axis]);
    }
    c->out[0] = sliced(c, x, k);
}

/* ---- Split ---- */
/* What the parts are cut from: the input, with the size that the parts have together. Where that is not known to be the
 * axis's, a reshape says so, and the run checks it. */
static ir_value_id split_whole(onnx_call *c, ir_value_id x, uint32_t axis, const dim *part, uint32_t count)
{
    dim_table *t = c->b.g->dims;
    dim sum = call_k(c, 0), d[SINTER_RANK_MAX];
    int64_t have = 0, want = 0;
    const uint32_t rank = call_shape(c, x, d);
    for (uint32_t i = 0; i < count; i++) {
        sum = dim_add(t, sum, part[i]);
        if (dim_is_const(t, part[i], &have) && have < 0)
            REJECT(c, INVALID_MODEL, "part %u has size %lld", i, (long long)have);
    }
    if (sum == d[axis] || c->b.status) return x;
    if (dim_is_const(t, sum, &have) && dim_is_const(t, d[axis], &want)) {
        REJECT(c, INVALID_MODEL, "the %u parts have %lld elements together, the axis has %lld", count, (long long)have,
               (long long)want);
        return 0;
    }
    d[axis] = sum;
    return build_shaped(&c->b, x, d, rank);
}

/* The sizes of the parts from input `sizes`: true where they are known, else they are bound while the model runs, which
 * checks their sum. */
static bool split_sizes(onnx_call *c, ir_value_id sizes, dim whole, dim *part, uint32_t n)
{
    uint32_t count = 0;
    int64_t length = (int64_t)n;
    if (call_known(c, sizes, part, n, &count)) {
        if (count != n) REJECT(c, INVALID_MODEL, "%u sizes for %u outputs", count, n);
        return true;
    }
    if (call_rank(c, sizes) != 1 || (call_size(c, sizes, 0, &length) && length != (int64_t)n)) {
        REJECT(c, INVALID_MODEL, "the sizes do not match %u outputs", n);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) part[i] = dim_symbol_late(c->b.g->dims, "part", whole);
    attrs_bind *b = DEFAULTS(bind);
    b->kind = bind_kind_split;
    b->symbols = build_dims(&c->b, part, n);
    b->dims = build_dims(&c->b, &whole, 1);
    build_bind(&c->b, sizes, b);
    return false;
}

void convert_split(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    const ir_value_id x = call_in(c, 0), sizes = c->version >= 13 || c->version == 1 ? call_in(c, 1) : 0;
    const int64_t axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, x));
    if (c->b.status) return;
    const dim whole = call_dim(c, x, (uint32_t)axis);
    const uint32_t n = c->count_out;
    dim *part = ARENA_NEW(&c->b.g->a, dim, n);
    attr_ints list = { 0 };
    bool is_known = true;
    if (!n || !part) {
        REJECT(c, INVALID_MODEL, "no outputs");
        return;
    }
    if (sizes) {
        is_known = split_sizes(c, sizes, whole, part, n);
    } else if (c->version < 13 && call_ints(c, "split", &list)) {
        if (list.count != n) REJECT(c, INVALID_MODEL, "%u sizes for %u outputs", list.count, n);
        for (uint32_t i = 0; i < list.count && i < n; i++) part[i] = call_k(c, list.at[i]);
    } else {
        const int64_t wanted = call_int(c, "num_outputs", (int64_t)n);
        if (wanted != (int64_t)n) REJECT(c, INVALID_MODEL, "num_outputs is %lld for %u outputs", (long long)wanted, n);
        const dim chunk = c->version < 18 ? call_quotient(c, whole, call_k(c, n)) : dim_ceildiv(t, whole, call_k(c, n));
        const bool is_full =
            c->version < 18 || n == 2 || dim_range_of(t, whole).min >= ((int64_t)n - 1) * ((int64_t)n - 1);
        dim rest = whole;
        for (uint32_t i = 0; i + 1 < n; i++) { /* the last ones may be smaller, or empty */
            part[i] = i == 0 || is_full ? chunk : call_clamp_min(c, chunk, rest);
            rest = dim_sub(t, rest, part[i]);
        }
        part[n - 1] = c->version < 18 ? chunk : rest;
    }
    const ir_value_id from = is_known && !c->b.status ? split_whole(c, x, (uint32_t)axis, part, n) : x;
    dim at = call_k(c, 0);
    for (uint32_t i = 0; i < n && !c->b.status; i++) {
        c->out[i] = n == 1 ? build_identity(&c->b, from) : build_part(&c->b, from, (uint32_t)axis, at, 1, part[i]);
        at = dim_add(t, at, part[i]);
    }
}

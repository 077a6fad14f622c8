/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_shape.c - operators that move elements without looking at them, and the sizes that they take as tensors.
 *
 * A size that is known, as a number or as an expression, becomes an attribute. One that is not is bound to a late
 * symbol by a `bind` node when the model runs. */
#include "onnx/quirks.h"
#include <string.h>

enum { SIZES = 64 };

/* ---- Reshape and its kin ---- */
static ir_value_id reshape_known(onnx_call *c, ir_value_id x, const dim *shape, uint32_t count, bool zero_is_zero)
{
    dim_table *t = c->b.g->dims;
    dim from[SINTER_RANK_MAX], to[SINTER_RANK_MAX], others = call_k(c, 1);
    const uint32_t rank = call_shape(c, x, from);
    const bool has_elements = dim_range_of(t, dim_product(t, from, rank)).min > 0;
    uint32_t open = UINT32_MAX;
    if (count > SINTER_RANK_MAX) {
        REJECT(c, UNSUPPORTED, "a shape of rank %u; up to %d is supported", count, SINTER_RANK_MAX);
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t value = 1;
        const bool is_const = dim_is_const(t, shape[i], &value);
        to[i] = shape[i];
        if (is_const && value == -1) {
            if (open != UINT32_MAX) REJECT(c, INVALID_MODEL, "the shape has two sizes of -1");
            open = i;
            continue;
        }
        if (is_const && value < 0) REJECT(c, INVALID_MODEL, "the shape has a size of %lld", (long long)value);
        if (is_const && value == 0 && !zero_is_zero) {
            if (i >= rank) REJECT(c, INVALID_MODEL, "the shape copies axis %u of a tensor of rank %u", i, rank);
            to[i] = i < rank ? from[i] : shape[i];
        }
        /* A size that turns out to be 0 while the model runs copies, too. It matters where x has elements. */
        if (!is_const && !zero_is_zero && i < rank && has_elements && dim_is_late(t, shape[i]) &&
            dim_range_of(t, shape[i]).min <= 0)
            to[i] =
                dim_add(t, shape[i], dim_mul(t, from[i], dim_sub(t, call_k(c, 1), dim_min(t, shape[i], call_k(c, 1)))));
        others = dim_mul(t, others, to[i]);
    }
    if (open != UINT32_MAX) {
        if (dim_is(t, others, 0)) REJECT(c, INVALID_MODEL, "the shape has a size of -1 beside one of 0");
        to[open] = call_quotient(c, dim_product(t, from, rank), others);
    }
    return build_shaped(&c->b, x, to, count);
}

ir_value_id quirk_reshape_late(onnx_call *c, ir_value_id x, ir_value_id shape, uint32_t rank, bool zero_is_zero)
{
    dim known[SINTER_RANK_MAX], from[SINTER_RANK_MAX];
    const uint32_t own = call_shape(c, x, from);
    const dim total = dim_product(c->b.g->dims, from, own);
    attrs_bind *b = DEFAULTS(bind);
    /* No size is larger than their product, unless another one is 0. */
    const bool is_bounded =
        !dim_is(c->b.g->dims, total, 0) && !(zero_is_zero && dim_range_of(c->b.g->dims, total).min == 0);
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t symbol;
        known[i] = dim_symbol_late(c->b.g->dims, "r", is_bounded ? total : DIM_NONE);
        /* What is usual has as many elements as the input: all of them on the first axis. */
        if (i && dim_symbol_of(c->b.g->dims, known[i], &symbol)) {
            dim_symbol s = *dim_symbol_at(c->b.g->dims, symbol);
            s.opt = s.max < 1 ? s.max : 1;
            dim_symbol_set(c->b.g->dims, symbol, &s);
        }
    }
    b->kind = bind_kind_reshape;
    b->symbols = build_dims(&c->b, known, rank);
    b->dims = build_dims(&c->b, from, own);
    b->flag = zero_is_zero;
    build_bind(&c->b, shape, b);
    return build_shaped(&c->b, x, known, rank);
}

/* Is there a size that is no constant and never above 0, such as a negated one? When the model runs it is 0 or -1, and
 * what these mean is decided then. */
static bool is_never_a_size(const onnx_call *c, const dim *list, uint32_t count)
{
    bool is = false;
    int64_t value;
    for (uint32_t i = 0; i < count; i++)
        is = is || (!dim_is_const(c->b.g->dims, list[i], &value) && dim_range_of(c->b.g->dims, list[i]).max <= 0);
    return is;
}

void convert_reshape(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0), shape = call_in(c, 1);
    dim known[SIZES];
    uint32_t count = 0;
    const bool zero_is_zero = call_int(c, "allowzero", 0) != 0;
    if (c->version < 5) {
        attr_ints list;
        if (!call_ints(c, "shape", &list)) REJECT(c, INVALID_MODEL, "attribute shape is missing");
        for (uint32_t i = 0; i < list.count; i++) known[i] = call_k(c, list.at[i]);
        c->out[0] = reshape_known(c, x, known, list.count, false);
        return;
    }
    if (!shape) REJECT(c, INVALID_MODEL, "input 1 is missing");
    if (call_known(c, shape, known, SIZES, &count) && !is_never_a_size(c, known, count)) {
        c->out[0] = reshape_known(c, x, known, count, zero_is_zero);
        return;
    }
    int64_t length = 0;
    if (!call_size(c, shape, 0, &length) || length > SINTER_RANK_MAX) {
        REJECT(c, UNSUPPORTED, "the rank of the result is not known before the model runs");
        return;
    }
    c->out[0] = quirk_reshape_late(c, x, shape, (uint32_t)length, zero_is_zero);
}

void convert_flatten(onnx_call *c)
{
    dim from[SINTER_RANK_MAX];
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_shape(c, x, from);
    int64_t axis = call_int(c, "axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > (int64_t)rank) {
        REJECT(c, INVALID_MODEL, "axis %lld of a tensor of rank %u", (long long)axis, rank);
        return;
    }
    const dim to[2] = { dim_product(c->b.g->dims, from, (uint32_t)axis),
                        dim_product(c->b.g->dims, from + axis, rank - (uint32_t)axis) };
    c->out[0] = build_shaped(&c->b, x, to, 2);
}

/* Axes from an attribute (before `version`) or from input `i`. False: none given. */
bool quirk_axes(onnx_call *c, int64_t version, uint32_t i, uint32_t rank, attr_ints *out)
{
    bool given;
    if (c->version < version) {
        given = call_ints(c, "axes", out);
    } else {
        out->count = 0;
        given =
            call_in(c, i) && call_const_ints(c, call_in(c, i), "the list of axes", out->at, ATTR_INTS_MAX, &out->count);
    }
    uint64_t seen = 0;
    for (uint32_t k = 0; k < out->count; k++) {
        out->at[k] = call_axis(c, out->at[k], rank);
        if (seen >> out->at[k] & 1) REJECT(c, INVALID_MODEL, "axis %lld is given twice", (long long)out->at[k]);
        seen |= UINT64_C(1) << out->at[k];
    }
    return given;
}

/* A Squeeze without axes drops each that is 1, but ranks are known when it is built: an axis of a free size stays, and
 * may not be 1. A size that data decides may: Squeeze(NonZero(x)) is written for a list of any length. */
static void keep_axis(onnx_call *c, dim size)
{
    const dim_range r = dim_range_of(c->b.g->dims, size);
    if (r.min > 1 || r.max < 1 || dim_is_late(c->b.g->dims, size)) return;
    const ir_value_id number = build_sizes(&c->b, &size, 1, false);
    quirk_guard(c, build_eq(&c->b, number, build_scalar_like(&c->b, number, 1)), false, GUARD_SQUEEZE);
}

void convert_squeeze(onnx_call *c)
{
    dim from[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    attr_ints axes;
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_shape(c, x, from);
    if (c->version >= 13 && quirk_axes_late(c, call_in(c, 1))) {
        c->out[0] = quirk_squeeze_late(c, x, call_in(c, 1));
        return;
    }
    const bool given = quirk_axes(c, 13, 1, rank, &axes);
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++) {
        bool drop = !given && dim_is(c->b.g->dims, from[i], 1);
        for (uint32_t k = 0; k < axes.count; k++) drop = drop || axes.at[k] == (int64_t)i;
        if (drop) continue;
        if (!given) keep_axis(c, from[i]);
        to[count++] = from[i];
    }
    c->out[0] = build_shaped(&c->b, x, to, count);
}

void convert_unsqueeze(onnx_call *c)
{
    dim from[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    attr_ints axes = { 0 };
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_shape(c, x, from);
    if (c->version >= 13 && quirk_axes_late(c, call_in(c, 1))) {
        c->out[0] = quirk_unsqueeze_late(c, x, call_in(c, 1));
        return;
    }
    if (c->version < 13) call_ints(c, "axes", &axes);
    else call_const_ints(c, call_in(c, 1), "the list of axes", axes.at, ATTR_INTS_MAX, &axes.count);
    const uint32_t wide = rank + axes.count;
    if (wide > SINTER_RANK_MAX) {
        REJECT(c, UNSUPPORTED, "rank %u; up to %d is supported", wide, SINTER_RANK_MAX);
        return;
    }
    for (uint32_t k = 0; k < axes.count; k++) axes.at[k] = call_axis(c, axes.at[k], wide);
    uint32_t used = 0;
    for (uint32_t i = 0; i < wide; i++) {
        bool is_new = false;
        for (uint32_t k = 0; k < axes.count; k++) is_new = is_new || axes.at[k] == (int64_t)i;
        if (!is_new && used >= rank) {
            REJECT(c, INVALID_MODEL, "an axis is given twice");
            return;
        }
        to[i] = is_new ? call_k(c, 1) : from[used++];
    }
    c->out[0] = build_shaped(&c->b, x, to, wide);
}

void convert_transpose(onnx_call *c)
{
    attr_ints perm;
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_rank(c, x);
    if (!call_ints(c, "perm", &perm)) {
        perm.count = rank;
        for (uint32_t i = 0; i < rank; i++) perm.at[i] = (int64_t)rank - 1 - i;
    }
    uint64_t seen = 0;
    for (uint32_t i = 0; i < perm.count && i < SINTER_RANK_MAX; i++) {
        perm.at[i] = call_axis(c, perm.at[i], rank);
        seen |= UINT64_C(1) << perm.at[i];
    }
    if (perm.count != rank || seen + 1 != UINT64_C(1) << rank)
        REJECT(c, INVALID_MODEL, "attribute perm is no permutation of %u axes", rank);
    c->out[0] = build_permuted(&c->b, x, perm.at, rank);
}

void convert_expand(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    const ir_value_id x = call_in(c, 0), shape = call_in(c, 1);
    dim from[SINTER_RANK_MAX], want[SIZES], to[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, from);
    uint32_t count = 0;
    int64_t length = 0;
    if (!shape) REJECT(c, INVALID_MODEL, "input 1 is missing");
    const bool is_known = call_known(c, shape, want, SIZES, &count);
    if (!is_known && (!call_size(c, shape, 0, &length) || length > SINTER_RANK_MAX))
        REJECT(c, UNSUPPORTED, "the rank of the result is not known before the model runs");
    if (!is_known) count = (uint32_t)length;
    const uint32_t wide = count > rank ? count : rank;
    if (wide > SINTER_RANK_MAX) REJECT(c, UNSUPPORTED, "rank %u; up to %d is supported", wide, SINTER_RANK_MAX);
    if (c->b.status) return;
    for (uint32_t i = 0; i < wide; i++) {
        const dim a = i + rank >= wide ? from[i + rank - wide] : call_k(c, 1);
        const dim b = is_known && i + count >= wide ? want[i + count - wide] : call_k(c, 1);
        to[i] = a;
        if (is_known && !infer_broadcast(t, a, b, &to[i])) REJECT(c, INVALID_MODEL, "axis %u cannot be expanded", i);
    }
    if (!is_known) {
        attrs_bind *b = DEFAULTS(bind);
        b->kind = bind_kind_expand;
        b->dims = build_dims(&c->b, to, wide);
        dim bound[SINTER_RANK_MAX];
        for (uint32_t i = 0; i < wide; i++) bound[i] = dim_symbol_late(t, "e", DIM_NONE);
        b->symbols = build_dims(&c->b, bound, wide);
        build_bind(&c->b, shape, b);
        for (uint32_t i = 0; i < wide; i++)
            if (dim_range_of(t, to[i]).min < 2) to[i] = bound[i]; /* more than one element stays as it is */
    }
    c->out[0] = build_expanded(&c->b, x, to, wide);
}

/* ---- Concat, Pad, Tile ---- */
void convert_concat(onnx_call *c)
{
    if (!c->count_in) REJECT(c, INVALID_MODEL, "no inputs");
    const int64_t axis = call_axis(c, call_int(c, "axis", 1), call_rank(c, call_in(c, 0)));
    if (c->version >= 4 && !call_attr(c, "axis")) REJECT(c, INVALID_MODEL, "attribute axis is missing");
    c->out[0] = c->count_in == 1 ? build_identity(&c->b, call_in(c, 0))
                                 : build_concat(&c->b, c->in, c->count_in, &(attrs_concat){ .axis = (uint32_t)axis });
}

static pad_mode pad_mode_of(onnx_call *c)
{
    static const char *const names[] = { "constant", "reflect", "edge", "wrap" };
    const char *mode = call_text(c, "mode", "constant");
    for (int64_t i = 0; i < 4; i++)
        if (strcmp(mode, names[i]) == 0) return (pad_mode)i;
    REJECT(c, UNSUPPORTED, "attribute mode is '%s'", mode);
    return pad_mode_constant;
}

/* The pads of axes that the model computes, as those of all axes. Where only the run knows how many axes there are, the
 * pads are two for each. */
static ir_value_id pads_spread(onnx_call *c, ir_value_id pads, uint32_t rank)
{
    int64_t length = 0;
    ir_value_id axes = call_in(c, 3);
    if (call_size(c, pads, 0, &length) && length % 2 == 0) axes = call_of_length(c, axes, (uint32_t)length / 2);
    const uint32_t count = quirk_axes_count(c, axes, rank);
    pads = call_of_length(c, pads, 2 * count);
    ir_value_id side[2];
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id part = build_part(&c->b, pads, 0, call_k(c, i * count), 1, call_k(c, count));
        side[i] = quirk_axes_spread(c, axes, rank, part, 0);
    }
    return build_concat(&c->b, side, 2, &(attrs_concat){ .axis = 0 });
}

void convert_pad(onnx_call *c) /* arg 1: com.microsoft's, with pads as an input */
{
    const bool has_inputs = c->version >= 11 || c->arg, is_late = has_inputs && quirk_axes_late(c, call_in(c, 3));
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_rank(c, x);
    const pad_mode mode = pad_mode_of(c);
    dim pads[2 * SINTER_RANK_MAX], begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    attr_ints list, axes = { 0 };
    uint32_t count = 0;
    ir_value_id value = 0;
    if (!has_inputs) {
        if (!call_ints(c, c->version < 2 ? "paddings" : "pads", &list))
            REJECT(c, INVALID_MODEL, "attribute pads is missing");
        count = list.count;
        for (uint32_t i = 0; i < count && i < COUNT_OF(pads); i++) pads[i] = call_k(c, list.at[i]);
        value = build_scalar_like(&c->b, x, call_real(c, "value", 0));
    } else {
        ir_value_id list_in = call_in(c, 1);
        if (!list_in) REJECT(c, INVALID_MODEL, "pads are missing");
        if (c->arg && call_rank(c, list_in) == 2) /* [1, 2 * rank] */
            list_in = build_shaped(&c->b, list_in, (dim[]){ call_dim(c, list_in, 1) }, 1);
        if (!is_late) quirk_axes(c, 1, 3, rank, &axes);
        if (c->b.status) return;
        list_in = is_late ? pads_spread(c, list_in, rank)
                          : call_of_length(c, list_in, 2 * (call_in(c, 3) ? axes.count : rank));
        call_numbers(c, list_in, "the list of pads", pads, COUNT_OF(pads), &count); /* negative ones crop */
        value = call_in(c, 2);
        if (value && call_rank(c, value)) value = build_shaped(&c->b, value, NULL, 0);
    }
    const bool has_axes = has_inputs && call_in(c, 3) && !is_late;
    const uint32_t half = has_axes ? axes.count : rank;
    if (count != 2 * half) REJECT(c, INVALID_MODEL, "%u pads for %u axes", count, half);
    for (uint32_t i = 0; i < rank; i++) begin[i] = end[i] = call_k(c, 0);
    for (uint32_t i = 0; i < half && !c->b.status; i++) {
        const uint32_t axis = has_axes ? (uint32_t)axes.at[i] : i;
        begin[axis] = pads[i];
        end[axis] = pads[half + i];
    }
    c->out[0] = build_padded(&c->b, x, mode, begin, end, mode == pad_mode_constant ? value : 0);
}

void convert_tile(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_rank(c, x);
    dim repeats[SINTER_RANK_MAX];
    uint32_t count = 0;
    if (c->version < 6) {
        if (!call_in(c, 1) || !call_in(c, 2)) REJECT(c, INVALID_MODEL, "the tiles or the axis are missing");
        if (c->b.status) return;
        const ir_value_id list = quirk_axes_spread(c, call_in(c, 2), rank, call_in(c, 1), 1);
        call_sizes(c, list, "the tiles", DIM_NONE, repeats, SINTER_RANK_MAX, &count);
    } else {
        if (!call_in(c, 1)) REJECT(c, INVALID_MODEL, "input 1 is missing");
        call_sizes(c, call_of_length(c, call_in(c, 1), rank), "the list of repeats", DIM_NONE, repeats, SINTER_RANK_MAX,
                   &count);
    }
    if (count != rank) REJECT(c, INVALID_MODEL, "%u repeats for rank %u", count, rank);
    attrs_tile *a = DEFAULTS(tile);
    a->repeats = build_dims(&c->b, repeats, count);
    c->out[0] = build_tile(&c->b, x, a);
}

/* ---- Shape, Size ---- */
void convert_shape(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    const int64_t rank = call_shape(c, quirk_text_index(c, call_in(c, 0)), d);
    int64_t start = call_int(c, "start", 0), end = call_int(c, "end", rank);
    if (start < 0) start += rank;
    if (end < 0) end += rank;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    if (!call_in(c, 0)) REJECT(c, INVALID_MODEL, "input 0 is missing");
    c->out[0] = build_sizes(&c->b, d + start, (uint32_t)(end - start), false);
}

void convert_size(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, quirk_text_index(c, call_in(c, 0)), d);
    const dim total = dim_product(c->b.g->dims, d, rank);
    if (!call_in(c, 0)) REJECT(c, INVALID_MODEL, "input 0 is missing");
    c->out[0] = build_sizes(&c->b, &total, 1, true);
}

/* ---- blocks ---- */
void convert_depth_to_space(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    dim_table *t = c->b.g->dims;
    const ir_value_id x = call_in(c, 0);
    const int64_t b = call_int(c, "blocksize", 0);
    const char *mode = call_text(c, "mode", "DCR");
    const bool crd = strcmp(mode, "CRD") == 0;
    if (call_shape(c, x, d) != 4 || b < 1 || b > INT16_MAX) {
        REJECT(c, INVALID_MODEL, "rank %u and blocksize %lld", call_rank(c, x), (long long)b);
        return;
    }
    if (!crd && strcmp(mode, "DCR") != 0) REJECT(c, INVALID_MODEL, "attribute mode is '%s'", mode);
    const dim k = call_k(c, b), depth = call_quotient(c, d[1], call_k(c, b * b));
    const dim split_dcr[6] = { d[0], k, k, depth, d[2], d[3] }, split_crd[6] = { d[0], depth, k, k, d[2], d[3] };
    static const int64_t perm_dcr[6] = { 0, 3, 4, 1, 5, 2 }, perm_crd[6] = { 0, 1, 4, 2, 5, 3 };
    const dim to[4] = { d[0], depth, dim_mul(t, d[2], k), dim_mul(t, d[3], k) };
    const ir_value_id split = build_shaped(&c->b, x, crd ? split_crd : split_dcr, 6);
    c->out[0] = build_shaped(&c->b, build_permuted(&c->b, split, crd ? perm_crd : perm_dcr, 6), to, 4);
}

void convert_space_to_depth(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    dim_table *t = c->b.g->dims;
    const ir_value_id x = call_in(c, 0);
    const int64_t b = call_int(c, "blocksize", 0);
    const char *mode = call_text(c, "mode", "DCR");
    const bool crd = strcmp(mode, "CRD") == 0;
    if (call_shape(c, x, d) != 4 || b < 1 || b > INT16_MAX) {
        REJECT(c, INVALID_MODEL, "rank %u and blocksize %lld", call_rank(c, x), (long long)b);
        return;
    }
    if (!crd && strcmp(mode, "DCR") != 0) REJECT(c, INVALID_MODEL, "attribute mode is '%s'", mode);
    const dim k = call_k(c, b), h = call_quotient(c, d[2], k), w = call_quotient(c, d[3], k);
    const dim split[6] = { d[0], d[1], h, k, w, k }, to[4] = { d[0], dim_mul(t, d[1], call_k(c, b * b)), h, w };
    static const int64_t perm_dcr[6] = { 0, 3, 5, 1, 2, 4 }, perm_crd[6] = { 0, 1, 3, 5, 2, 4 };
    const ir_value_id apart = build_shaped(&c->b, x, split, 6);
    c->out[0] = build_shaped(&c->b, build_permuted(&c->b, apart, crd ? perm_crd : perm_dcr, 6), to, 4);
}

void convert_center_crop_pad(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    const ir_value_id x = call_in(c, 0);
    dim from[SINTER_RANK_MAX], want[SINTER_RANK_MAX], begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    attr_ints axes;
    const uint32_t rank = call_shape(c, x, from);
    uint32_t count = 0;
    const bool given = call_ints(c, "axes", &axes);
    if (!call_in(c, 1)) REJECT(c, INVALID_MODEL, "the shape is missing");
    if (!call_sizes(c, call_of_length(c, call_in(c, 1), given ? axes.count : rank), "the shape", DIM_NONE, want,
                    SINTER_RANK_MAX, &count))
        REJECT(c, UNSUPPORTED, "a shape that long");
    if (count != (given ? axes.count : rank))
        REJECT(c, INVALID_MODEL, "%u sizes for %u axes", count, given ? axes.count : rank);
    for (uint32_t i = 0; i < rank; i++) begin[i] = end[i] = call_k(c, 0);
    for (uint32_t i = 0; i < count && !c->b.status; i++) {
        const int64_t axis = given ? call_axis(c, axes.at[i], rank) : (int64_t)i;
        /* The difference, halved towards zero on the leading side, whichever sign it has. */
        const dim more = dim_sub(t, want[i], from[axis]);
        const dim_range r = dim_range_of(t, more);
        const dim two = call_k(c, 2), zero = call_k(c, 0);
        const dim crop = dim_floordiv(t, dim_max(t, dim_sub(t, zero, more), zero), two);
        begin[axis] =
            r.min >= 0 ? dim_floordiv(t, more, two) : dim_sub(t, dim_floordiv(t, dim_max(t, more, zero), two), crop);
        end[axis] = dim_sub(t, more, begin[axis]);
    }
    c->out[0] = build_padded(&c->b, x, pad_mode_constant, begin, end, build_scalar_like(&c->b, x, 0));
}

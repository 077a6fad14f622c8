/* SPDX-License-Identifier: Apache-2.0 */
/* padding.c - see padding.h. What is not listed lets padding reach its results. */
#include "ops/padding.h"

static bool has_axis(uint32_t padded, int64_t axis)
{
    return axis >= 0 && axis < SINTER_RANK_MAX && padded >> axis & 1;
}

static padding_fate reaches(padding_call *c, const char *why)
{
    c->why = why;
    return PADDING_REACHES;
}

static padding_fate unless(padding_call *c, bool is_reached)
{
    return is_reached ? reaches(c, "works on all rows of the state at once") : PADDING_STAYS;
}

static padding_fate matmul(padding_call *c)
{
    const attrs_matmul *a = c->attrs;
    const uint32_t x = c->rank[0], y = c->rank[1];
    if (x < 2 || y < 2) return reaches(c, "multiplies vectors of the state's rows");
    if ((c->padded[0] & ((1u << (x - 2)) - 1)) || (c->padded[1] & ((1u << (y - 2)) - 1)))
        return reaches(c, "has a product for each row of the state");
    const bool sums_x = has_axis(c->padded[0], x - (a->trans_a ? 2 : 1)),
               sums_y = has_axis(c->padded[1], y - (a->trans_b ? 1 : 2));
    if (sums_x != sums_y) return reaches(c, "sums over another number of rows");
    return sums_x ? PADDING_SUMMED : PADDING_STAYS;
}

/* Keys and values have their rows on axis 2, the mask has them on its last. */
static padding_fate attention(padding_call *c)
{
    const bool has_mask = c->count_in > 3 && c->padded[3];
    const bool fits = !c->padded[0] && c->padded[1] == 4 && c->padded[2] == 4 &&
                      (!has_mask || c->padded[3] == 1u << (c->rank[3] - 1));
    return fits ? PADDING_LIMITED : reaches(c, "has rows on other axes");
}

static padding_fate reduce(padding_call *c)
{
    const attr_ints *axes = &((const attrs_reduce *)c->attrs)->axes;
    bool is_reached = false;
    for (uint32_t i = 0; i < axes->count; i++) is_reached = is_reached || has_axis(c->padded[0], axes->at[i]);
    return unless(c, is_reached);
}

padding_fate op_padding(padding_call *c)
{
    uint32_t any = 0;
    for (uint32_t i = 0; i < c->count_in; i++) any |= c->padded[i];
    if (c->op == OP_cast) return PADDING_PASSES;
    if (op_is_scalar(c->op)) return PADDING_STAYS;
    switch (c->op) {
    case OP_transpose:
    case OP_reshape:
    case OP_expand:
    case OP_copy: return PADDING_PASSES;
    case OP_slice: return PADDING_IS_CUT;
    case OP_range: return PADDING_STAYS;
    case OP_shape_value: return PADDING_IS_SIZE;
    case OP_softmax:
        return has_axis(c->padded[0], ((const attrs_softmax *)c->attrs)->axis) ? PADDING_MASKED : PADDING_STAYS;
    case OP_matmul: return matmul(c);
    case OP_attention: return attention(c);
    case OP_gather: /* rows that a model picks are rows that it has */
        if (c->padded[1]) return reaches(c, "picks by indices that are as many as the rows");
        return has_axis(c->padded[0], ((const attrs_gather *)c->attrs)->axis) ? PADDING_COUNTED : PADDING_STAYS;
    case OP_reduce: return reduce(c);
    case OP_concat: return unless(c, has_axis(any, ((const attrs_concat *)c->attrs)->axis));
    case OP_cumulate: {
        const attrs_cumulate *a = c->attrs;
        return unless(c, a->reverse && has_axis(any, a->axis));
    }
    case OP_layer_norm: return unless(c, any >> ((const attrs_layer_norm *)c->attrs)->axis);
    case OP_rms_norm: return unless(c, any >> ((const attrs_rms_norm *)c->attrs)->axis);
    default: return reaches(c, "is not known to leave rows apart");
    }
}

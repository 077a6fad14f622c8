/* SPDX-License-Identifier: Apache-2.0 */
/* infer_move.c - shapes of the ops that lay elements out anew: reshape, transpose, slice, expand, concat, pad, tile.
 *
 * Where the integers of a small tensor are known as expressions, they stay known through these ops: that is how a shape
 * that a model computes becomes a shape that the graph knows. */
#include "ops/move.h"

/* The product, where every dim is a constant. */
static bool product_const(const dim_table *t, const dim *d, uint32_t count, int64_t *out)
{
    *out = 1;
    for (uint32_t i = 0; i < count; i++) {
        int64_t value = 0;
        if (!dim_is_const(t, d[i], &value) || !i64_mul(*out, value, out)) return false;
    }
    return true;
}

sinter_status infer_reshape(infer_ctx *c)
{
    const attrs_reshape *a = c->attrs;
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    if (a->shape.count > SINTER_RANK_MAX) {
        return FAIL(c->e, UNSUPPORTED, "the new shape has rank %u, the most is %d", a->shape.count, SINTER_RANK_MAX);
    }
    TRY(move_dims_check(c, "shape", &a->shape, a->shape.count));
    out->dtype = in->dtype;
    out->rank = a->shape.count;
    for (uint32_t i = 0; i < out->rank; i++) {
        out->dim[i] = move_dim(&a->shape, i);
        TRY(move_dim_not_negative(c, "the new size", i, out->dim[i]));
    }
    int64_t before = 0, after = 0;
    if (product_const(c->dims, in->dim, in->rank, &before) && product_const(c->dims, out->dim, out->rank, &after) &&
        before != after) {
        return FAIL(c->e, INVALID_MODEL, "the input has %lld elements, the new shape has %lld", (long long)before,
                    (long long)after);
    }
    uint32_t count = 0;
    const dim *known = move_values(c, 0, &count);
    if (known && out->rank <= 1) move_values_set(c, 0, known, count);
    return SINTER_OK;
}

sinter_status infer_transpose(infer_ctx *c)
{
    const attrs_transpose *a = c->attrs;
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    if (a->perm.count != in->rank) {
        return FAIL(c->e, INVALID_MODEL, "perm has %u entries, the input has rank %u", a->perm.count, in->rank);
    }
    uint32_t seen = 0;
    out->dtype = in->dtype;
    out->rank = in->rank;
    for (uint32_t i = 0; i < in->rank; i++) {
        TRY(move_axis_check(c, "an entry of perm", a->perm.at[i], in->rank));
        if (seen >> a->perm.at[i] & 1u)
            return FAIL(c->e, INVALID_MODEL, "perm names axis %lld twice", (long long)a->perm.at[i]);
        seen |= 1u << a->perm.at[i];
        out->dim[i] = in->dim[a->perm.at[i]];
    }
    uint32_t count = 0;
    const dim *known = move_values(c, 0, &count);
    move_values_set(c, 0, known, count);
    return SINTER_OK;
}

/* Every element that a slice of constants reads lies inside a constant axis. */
static sinter_status slice_check(infer_ctx *c, uint32_t axis, dim d, dim start, int64_t step, dim size)
{
    int64_t first = 0, count = 0, limit = 0, span = 0, last = 0;
    if (!dim_is_const(c->dims, start, &first) || !dim_is_const(c->dims, size, &count)) return SINTER_OK;
    if (count <= 0) return SINTER_OK;
    if (first < 0)
        return FAIL(c->e, INVALID_MODEL, "start of axis %u is %lld, expected 0 or more", axis, (long long)first);
    const bool fits = i64_mul(count - 1, step, &span) && i64_add(first, span, &last);
    if (fits && last >= 0 && !dim_is_const(c->dims, d, &limit)) return SINTER_OK;
    if (fits && last >= 0 && last < limit && first < limit) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "axis %u has size %s, the slice takes %lld elements from %lld with step %lld",
                axis, infer_dim_text(c, d), (long long)count, (long long)first, (long long)step);
}

sinter_status infer_slice(infer_ctx *c)
{
    const attrs_slice *a = c->attrs;
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    TRY(move_dims_check(c, "start", &a->start, in->rank));
    TRY(move_dims_check(c, "size", &a->size, in->rank));
    if (a->step.count != in->rank) {
        return FAIL(c->e, INVALID_MODEL, "attribute step has %u entries, expected %u", a->step.count, in->rank);
    }
    out->dtype = in->dtype;
    out->rank = in->rank;
    for (uint32_t i = 0; i < in->rank; i++) {
        if (a->step.at[i] == 0) return FAIL(c->e, INVALID_MODEL, "step of axis %u is 0", i);
        out->dim[i] = move_dim(&a->size, i);
        TRY(move_dim_not_negative(c, "size", i, out->dim[i]));
        TRY(slice_check(c, i, in->dim[i], move_dim(&a->start, i), a->step.at[i], out->dim[i]));
    }
    uint32_t count = 0;
    const dim *known = move_values(c, 0, &count);
    if (!known) return SINTER_OK;
    if (in->rank == 0) {
        move_values_set(c, 0, known, count);
        return SINTER_OK;
    }
    int64_t start = 0, size = 0;
    if (!dim_is_const(c->dims, move_dim(&a->start, 0), &start) || !dim_is_const(c->dims, out->dim[0], &size))
        return SINTER_OK;
    if (size < 0 || size > MOVE_VALUES_MAX || start < 0) return SINTER_OK;
    dim *at = move_values_new(c, (uint32_t)size);
    for (int64_t i = 0; at && i < size; i++) {
        int64_t from = 0;
        if (!i64_mul(i, a->step.at[0], &from) || !i64_add(from, start, &from) || from < 0 || from >= (int64_t)count)
            return SINTER_OK;
        at[i] = known[from];
    }
    move_values_set(c, 0, at, (uint32_t)size);
    return SINTER_OK;
}

sinter_status infer_expand(infer_ctx *c)
{
    const attrs_expand *a = c->attrs;
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    if (a->shape.count > SINTER_RANK_MAX) {
        return FAIL(c->e, UNSUPPORTED, "the new shape has rank %u, the most is %d", a->shape.count, SINTER_RANK_MAX);
    }
    if (a->shape.count < in->rank) {
        return FAIL(c->e, INVALID_MODEL, "the input has rank %u, the new shape only %u", in->rank, a->shape.count);
    }
    TRY(move_dims_check(c, "shape", &a->shape, a->shape.count));
    out->dtype = in->dtype;
    out->rank = a->shape.count;
    const uint32_t lead = out->rank - in->rank;
    for (uint32_t i = 0; i < out->rank; i++) {
        dim ignored = DIM_NONE;
        out->dim[i] = move_dim(&a->shape, i);
        TRY(move_dim_not_negative(c, "the new size", i, out->dim[i]));
        if (i < lead || dim_is(c->dims, in->dim[i - lead], 1)) continue;
        const bool may_be_1 =
            !dim_is_const(c->dims, in->dim[i - lead], NULL) && dim_range_of(c->dims, in->dim[i - lead]).min <= 1;
        if (may_be_1) continue;
        TRY(move_same_check(c, "the new shape", i, in->dim[i - lead], out->dim[i], &ignored));
    }
    uint32_t count = 0;
    int64_t size = 1;
    const dim *known = move_values(c, 0, &count);
    if (!known || out->rank > 1) return SINTER_OK;
    if (out->rank == 1 && !dim_is_const(c->dims, out->dim[0], &size)) return SINTER_OK;
    if (size < 0 || size > MOVE_VALUES_MAX || (count != 1 && size != (int64_t)count)) return SINTER_OK;
    dim *at = move_values_new(c, (uint32_t)size);
    for (int64_t i = 0; at && i < size; i++) at[i] = known[count == 1 ? 0 : i];
    move_values_set(c, 0, at, (uint32_t)size);
    return SINTER_OK;
}

static void concat_values(infer_ctx *c)
{
    uint32_t total = 0;
    dim *at = move_values_new(c, MOVE_VALUES_MAX);
    for (uint32_t k = 0; at && k < c->count_in; k++) {
        uint32_t count = 0;
        const dim *known = move_values(c, k, &count);
        if (!known || count > MOVE_VALUES_MAX - total) return;
        memcpy(at + total, known, count * sizeof(*at));
        total += count;
    }
    move_values_set(c, 0, at, total);
}

sinter_status infer_concat(infer_ctx *c)
{
    const attrs_concat *a = c->attrs;
    const infer_value *first = &c->in[0];
    infer_value *out = &c->out[0];
    TRY(move_rank_check(c, 0, "the input", 1, SINTER_RANK_MAX));
    TRY(move_axis_check(c, "axis", a->axis, first->rank));
    *out = (infer_value){ .dtype = first->dtype, .rank = first->rank };
    memcpy(out->dim, first->dim, sizeof(out->dim));
    for (uint32_t k = 1; k < c->count_in; k++) {
        const infer_value *in = &c->in[k];
        if (in->dtype != first->dtype) {
            return FAIL(c->e, INVALID_MODEL, "input %u has type %s, input 0 has %s", k, sinter_dtype_name(in->dtype),
                        sinter_dtype_name(first->dtype));
        }
        if (in->rank != first->rank) {
            return FAIL(c->e, INVALID_MODEL, "input %u has rank %u, input 0 has rank %u", k, in->rank, first->rank);
        }
        for (uint32_t i = 0; i < out->rank; i++) {
            if (i == (uint32_t)a->axis) {
                out->dim[i] = dim_add(c->dims, out->dim[i], in->dim[i]);
                continue;
            }
            if (!move_same(c->dims, out->dim[i], in->dim[i], &out->dim[i])) {
                return FAIL(c->e, INVALID_MODEL, "input %u: axis %u has %s, the inputs before it have %s", k, i,
                            infer_dim_text(c, in->dim[i]), infer_dim_text(c, out->dim[i]));
            }
        }
    }
    if (out->rank == 1 && dtype_is_int(out->dtype)) concat_values(c);
    return SINTER_OK;
}

static void pad_values(infer_ctx *c, const attrs_pad *a)
{
    uint32_t count = 0, count_fill = 1;
    int64_t begin = 0, size = 0;
    const dim *known = move_values(c, 0, &count);
    if (!known || a->mode != pad_mode_constant || !dim_is_const(c->dims, move_dim(&a->begin, 0), &begin) ||
        !dim_is_const(c->dims, c->out[0].dim[0], &size) || size < 0 || size > MOVE_VALUES_MAX)
        return;
    const dim *value = infer_has(c, 1) ? move_values(c, 1, &count_fill) : NULL;
    if (infer_has(c, 1) && (!value || count_fill != 1)) return;
    const dim fill = value ? value[0] : dim_const(c->dims, 0);
    dim *at = move_values_new(c, (uint32_t)size);
    for (int64_t i = 0; at && i < size; i++) {
        int64_t from = 0;
        const bool is_inside = i64_sub(i, begin, &from) && from >= 0 && from < (int64_t)count;
        at[i] = is_inside ? known[from] : fill;
    }
    move_values_set(c, 0, at, (uint32_t)size);
}

sinter_status infer_pad(infer_ctx *c)
{
    const attrs_pad *a = c->attrs;
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    TRY(move_dims_check(c, "begin", &a->begin, in->rank));
    TRY(move_dims_check(c, "end", &a->end, in->rank));
    if (infer_has(c, 1)) {
        if (c->in[1].dtype != in->dtype) {
            return FAIL(c->e, INVALID_MODEL, "the pad value has type %s, the input has %s",
                        sinter_dtype_name(c->in[1].dtype), sinter_dtype_name(in->dtype));
        }
        TRY(move_rank_check(c, 1, "the pad value", 0, 1));
        if (c->in[1].rank == 1) {
            dim ignored = DIM_NONE;
            TRY(move_same_check(c, "the pad value", 0, dim_const(c->dims, 1), c->in[1].dim[0], &ignored));
        }
    }
    out->dtype = in->dtype;
    out->rank = in->rank;
    for (uint32_t i = 0; i < in->rank; i++) {
        const dim b = move_dim(&a->begin, i), e = move_dim(&a->end, i);
        out->dim[i] = dim_add(c->dims, dim_add(c->dims, in->dim[i], b), e);
        TRY(move_dim_not_negative(c, "the padded size", i, out->dim[i]));
        int64_t size = 1;
        if (a->mode != pad_mode_constant && dim_is(c->dims, in->dim[i], 0) &&
            dim_is_const(c->dims, out->dim[i], &size) && size > 0) {
            return FAIL(c->e, INVALID_MODEL, "axis %u is empty, so there is nothing to fill %lld elements from", i,
                        (long long)size);
        }
    }
    if (out->rank == 1) pad_values(c, a);
    return SINTER_OK;
}

sinter_status infer_tile(infer_ctx *c)
{
    const attrs_tile *a = c->attrs;
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    TRY(move_dims_check(c, "repeats", &a->repeats, in->rank));
    out->dtype = in->dtype;
    out->rank = in->rank;
    for (uint32_t i = 0; i < in->rank; i++) {
        TRY(move_dim_not_negative(c, "the number of repeats", i, move_dim(&a->repeats, i)));
        out->dim[i] = dim_mul(c->dims, in->dim[i], move_dim(&a->repeats, i));
    }
    uint32_t count = 0;
    int64_t size = 1;
    const dim *known = move_values(c, 0, &count);
    if (!known || (out->rank == 1 && !dim_is_const(c->dims, out->dim[0], &size))) return SINTER_OK;
    if (size < 0 || size > MOVE_VALUES_MAX || count == 0) return SINTER_OK;
    dim *at = move_values_new(c, (uint32_t)size);
    for (uint32_t i = 0; at && i < (uint32_t)size; i++) at[i] = known[i % count];
    move_values_set(c, 0, at, (uint32_t)size);
    return SINTER_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* infer_index.c - shapes of the ops that read or write where another tensor says: gather, scatter, one_hot. */
#include "ops/move.h"

static sinter_status gather_values(infer_ctx *c)
{
    uint32_t count = 0, picks = 0;
    const dim *known = move_values(c, 0, &count), *pick = move_values(c, 1, &picks);
    if (!known || !pick || c->in[0].rank != 1) return SINTER_OK;
    dim *at = move_values_new(c, picks);
    for (uint32_t i = 0; at && i < picks; i++) {
        int64_t k = 0;
        if (!dim_is_const(c->dims, pick[i], &k)) return SINTER_OK;
        if (k < -(int64_t)count || k >= (int64_t)count) {
            return FAIL(c->e, INVALID_MODEL, "index %lld is outside of an axis of %u", (long long)k, count);
        }
        at[i] = known[k < 0 ? k + count : k];
    }
    move_values_set(c, 0, at, picks);
    return SINTER_OK;
}

static sinter_status out_push(infer_ctx *c, infer_value *out, dim d)
{
    if (out->rank == SINTER_RANK_MAX) return FAIL(c->e, UNSUPPORTED, "the result has a rank over %d", SINTER_RANK_MAX);
    out->dim[out->rank++] = d;
    return SINTER_OK;
}

sinter_status infer_gather(infer_ctx *c)
{
    const attrs_gather *a = c->attrs;
    const infer_value *data = &c->in[0], *indices = &c->in[1];
    infer_value *out = &c->out[0];
    TRY(move_rank_check(c, 0, "the data", 1, SINTER_RANK_MAX));
    TRY(move_int_check(c, 1, "the indices"));
    TRY(move_axis_check(c, "axis", a->axis, data->rank));
    out->dtype = data->dtype;
    for (uint32_t i = 0; i < (uint32_t)a->axis; i++) TRY(out_push(c, out, data->dim[i]));
    for (uint32_t i = 0; i < indices->rank; i++) TRY(out_push(c, out, indices->dim[i]));
    for (uint32_t i = (uint32_t)a->axis + 1; i < data->rank; i++) TRY(out_push(c, out, data->dim[i]));
    return gather_values(c);
}

sinter_status infer_gather_elements(infer_ctx *c)
{
    const attrs_gather_elements *a = c->attrs;
    const infer_value *data = &c->in[0], *indices = &c->in[1];
    infer_value *out = &c->out[0];
    TRY(move_rank_check(c, 0, "the data", 1, SINTER_RANK_MAX));
    TRY(move_int_check(c, 1, "the indices"));
    TRY(move_rank_check(c, 1, "the indices", data->rank, data->rank));
    TRY(move_axis_check(c, "axis", a->axis, data->rank));
    bool is_empty = false; /* then nothing is read, whatever the other sizes are */
    for (uint32_t i = 0; i < indices->rank; i++) is_empty = is_empty || dim_is(c->dims, indices->dim[i], 0);
    for (uint32_t i = 0; i < data->rank && !is_empty; i++) {
        int64_t have = 0, want = 0;
        if (i == (uint32_t)a->axis || !dim_is_const(c->dims, data->dim[i], &have) ||
            !dim_is_const(c->dims, indices->dim[i], &want))
            continue;
        if (want > have) {
            return FAIL(c->e, INVALID_MODEL, "the indices have %lld at axis %u, the data only %lld", (long long)want, i,
                        (long long)have);
        }
    }
    out->dtype = data->dtype;
    out->rank = indices->rank;
    memcpy(out->dim, indices->dim, sizeof(out->dim));
    return SINTER_OK;
}

/* The length of an index tuple: the constant last dim of the indices. */
static sinter_status tuple_length(infer_ctx *c, const infer_value *indices, uint32_t max, uint32_t *out)
{
    const dim last = indices->dim[indices->rank - 1];
    int64_t length = 0;
    if (!dim_is_const(c->dims, last, &length)) {
        return FAIL(c->e, UNSUPPORTED, "the last axis of the indices is %s, expected a constant",
                    infer_dim_text(c, last));
    }
    if (length < 0 || length > (int64_t)max) {
        return FAIL(c->e, INVALID_MODEL, "an index has %lld parts, the data has %u axes for it", (long long)length,
                    max);
    }
    *out = (uint32_t)length;
    return SINTER_OK;
}

sinter_status infer_gather_nd(infer_ctx *c)
{
    const attrs_gather_nd *a = c->attrs;
    const infer_value *data = &c->in[0], *indices = &c->in[1];
    infer_value *out = &c->out[0];
    TRY(move_rank_check(c, 0, "the data", 1, SINTER_RANK_MAX));
    TRY(move_int_check(c, 1, "the indices"));
    TRY(move_rank_check(c, 1, "the indices", 1, SINTER_RANK_MAX));
    const uint32_t least = data->rank < indices->rank ? data->rank : indices->rank;
    TRY(move_axis_check(c, "batch_dims", a->batch_dims, least));
    const uint32_t batch = (uint32_t)a->batch_dims;
    uint32_t length = 0;
    TRY(tuple_length(c, indices, data->rank - batch, &length));
    out->dtype = data->dtype;
    for (uint32_t i = 0; i + 1 < indices->rank; i++) TRY(out_push(c, out, indices->dim[i]));
    for (uint32_t i = 0; i < batch; i++)
        TRY(move_same_check(c, "the indices", i, data->dim[i], indices->dim[i], &out->dim[i]));
    for (uint32_t i = batch + length; i < data->rank; i++) TRY(out_push(c, out, data->dim[i]));
    return SINTER_OK;
}

static sinter_status scatter_elements(infer_ctx *c)
{
    const attrs_scatter_elements *a = c->attrs;
    const infer_value *data = &c->in[0], *indices = &c->in[1], *updates = &c->in[2];
    TRY(move_rank_check(c, 0, "the data", 1, SINTER_RANK_MAX));
    TRY(move_axis_check(c, "axis", a->axis, data->rank));
    TRY(move_int_check(c, 1, "the indices"));
    TRY(move_rank_check(c, 1, "the indices", data->rank, data->rank));
    TRY(move_rank_check(c, 2, "the updates", data->rank, data->rank));
    for (uint32_t i = 0; i < data->rank; i++) {
        dim ignored = DIM_NONE;
        TRY(move_same_check(c, "the updates", i, indices->dim[i], updates->dim[i], &ignored));
        if (i != (uint32_t)a->axis &&
            dim_range_of(c->dims, indices->dim[i]).min > dim_range_of(c->dims, data->dim[i]).max)
            return FAIL(c->e, INVALID_MODEL, "the indices have %s at axis %u, the data only %s",
                        infer_dim_text(c, indices->dim[i]), i, infer_dim_text(c, data->dim[i]));
    }
    return SINTER_OK;
}

static sinter_status scatter_nd(infer_ctx *c)
{
    const infer_value *data = &c->in[0], *indices = &c->in[1], *updates = &c->in[2];
    TRY(move_rank_check(c, 0, "the data", 1, SINTER_RANK_MAX));
    TRY(move_int_check(c, 1, "the indices"));
    TRY(move_rank_check(c, 1, "the indices", 1, SINTER_RANK_MAX));
    uint32_t length = 0;
    TRY(tuple_length(c, indices, data->rank, &length));
    const uint32_t lead = indices->rank - 1, rank = lead + data->rank - length;
    TRY(move_rank_check(c, 2, "the updates", rank, rank));
    for (uint32_t i = 0; i < rank; i++) {
        dim ignored = DIM_NONE;
        const dim want = i < lead ? indices->dim[i] : data->dim[length + i - lead];
        TRY(move_same_check(c, "the updates", i, want, updates->dim[i], &ignored));
    }
    return SINTER_OK;
}

static sinter_status tensor_scatter(infer_ctx *c)
{
    const attrs_tensor_scatter *a = c->attrs;
    const infer_value *cache = &c->in[0], *update = &c->in[1];
    dim ignored = DIM_NONE;
    TRY(move_rank_check(c, 0, "the cache", 2, SINTER_RANK_MAX));
    TRY(move_rank_check(c, 1, "the update", cache->rank, cache->rank));
    TRY(move_axis_check(c, "axis", a->axis, cache->rank));
    if (a->axis == 0) return FAIL(c->e, INVALID_MODEL, "axis is 0, which is the batch");
    for (uint32_t i = 0; i < cache->rank; i++) {
        if (i != (uint32_t)a->axis) TRY(move_same_check(c, "the update", i, cache->dim[i], update->dim[i], &ignored));
    }
    if (dim_range_of(c->dims, update->dim[a->axis]).min > dim_range_of(c->dims, cache->dim[a->axis]).max) {
        return FAIL(c->e, INVALID_MODEL, "the update has %s at axis %lld, the cache only %s",
                    infer_dim_text(c, update->dim[a->axis]), (long long)a->axis,
                    infer_dim_text(c, cache->dim[a->axis]));
    }
    if (!infer_has(c, 2)) return SINTER_OK;
    TRY(move_int_check(c, 2, "the write indices"));
    TRY(move_rank_check(c, 2, "the write indices", 1, 1));
    return move_same_check(c, "the write indices", 0, cache->dim[0], c->in[2].dim[0], &ignored);
}

sinter_status infer_scatter(infer_ctx *c)
{
    if (c->op == OP_scatter_elements) TRY(scatter_elements(c));
    else if (c->op == OP_scatter_nd) TRY(scatter_nd(c));
    else TRY(tensor_scatter(c));
    const infer_value *updates = &c->in[c->op == OP_tensor_scatter ? 1 : 2];
    if (updates->dtype != c->in[0].dtype) {
        return FAIL(c->e, INVALID_MODEL, "the updates have type %s, the data has %s", sinter_dtype_name(updates->dtype),
                    sinter_dtype_name(c->in[0].dtype));
    }
    c->out[0].dtype = c->in[0].dtype;
    c->out[0].rank = c->in[0].rank;
    memcpy(c->out[0].dim, c->in[0].dim, sizeof(c->out[0].dim));
    return SINTER_OK;
}

sinter_status infer_one_hot(infer_ctx *c)
{
    const attrs_one_hot *a = c->attrs;
    const infer_value *indices = &c->in[0], *values = &c->in[1];
    infer_value *out = &c->out[0];
    dim ignored = DIM_NONE;
    TRY(move_rank_check(c, 0, "the indices", 0, SINTER_RANK_MAX));
    TRY(move_rank_check(c, 1, "the values", 1, 1));
    TRY(move_same_check(c, "the values", 0, dim_const(c->dims, 2), values->dim[0], &ignored));
    TRY(move_axis_check(c, "axis", a->axis, indices->rank + 1));
    TRY(move_dims_check(c, "depth", &a->depth, 1));
    TRY(move_dim_not_negative(c, "the depth", (uint32_t)a->axis, move_dim(&a->depth, 0)));
    out->dtype = values->dtype;
    for (uint32_t i = 0; i <= indices->rank; i++) {
        const dim d = i == (uint32_t)a->axis ? move_dim(&a->depth, 0) : indices->dim[i < (uint32_t)a->axis ? i : i - 1];
        TRY(out_push(c, out, d));
    }
    return SINTER_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* infer_late.c - the ops whose result has a size that data decides: each such size is a new late symbol with a bound.
 */
#include "ops/move.h"

sinter_status infer_bind(infer_ctx *c)
{
    const attrs_bind *a = c->attrs;
    const uint32_t count = a->symbols.count;
    if (count > MOVE_VALUES_MAX)
        return FAIL(c->e, UNSUPPORTED, "%u sizes are bound at once, the most is %d", count, MOVE_VALUES_MAX);
    TRY(move_dims_check(c, "symbols", &a->symbols, count));
    TRY(move_dims_check(c, "dims", &a->dims, a->dims.count));
    TRY(move_int_check(c, 0, "the sizes"));
    TRY(move_rank_check(c, 0, "the sizes", 0, 1));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t symbol = 0;
        if (!dim_symbol_of(c->dims, move_dim(&a->symbols, i), &symbol) || !dim_symbol_at(c->dims, symbol)->is_late) {
            return FAIL(c->e, INVALID_MODEL, "symbols[%u] is %s, expected a late symbol", i,
                        infer_dim_text(c, move_dim(&a->symbols, i)));
        }
    }
    int64_t given = 1;
    const bool is_known = c->in[0].rank == 0 || dim_is_const(c->dims, c->in[0].dim[0], &given);
    const int64_t want = a->kind == bind_kind_slice ? 3 : (int64_t)count;
    const bool is_exact = a->kind != bind_kind_expand;
    if (is_known && (is_exact ? given != want : given > want)) {
        return FAIL(c->e, INVALID_MODEL, "%lld sizes are given, expected %lld", (long long)given, (long long)want);
    }
    if (a->kind == bind_kind_slice && (count != 2 || a->dims.count != 1)) {
        return FAIL(c->e, INVALID_MODEL, "a slice binds %u symbols against %u dims, expected 2 and 1", count,
                    a->dims.count);
    }
    if (a->kind == bind_kind_split && a->dims.count != 1)
        return FAIL(c->e, INVALID_MODEL, "a split has %u axes, expected 1", a->dims.count);
    if (a->kind == bind_kind_expand && a->dims.count > count) {
        return FAIL(c->e, INVALID_MODEL, "an expansion to rank %u of rank %u", count, a->dims.count);
    }
    return SINTER_OK;
}

sinter_status infer_non_zero(infer_ctx *c)
{
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    out->dtype = SINTER_DTYPE_I64;
    out->rank = 2;
    out->dim[0] = dim_const(c->dims, in->rank);
    out->dim[1] = dim_symbol_late(c->dims, "nz", dim_product(c->dims, in->dim, in->rank));
    return SINTER_OK;
}

sinter_status infer_unique(infer_ctx *c)
{
    const attrs_unique *a = c->attrs;
    const infer_value *in = &c->in[0];
    if (a->axis != -1) TRY(move_axis_check(c, "axis", a->axis, in->rank));
    const dim all = a->axis == -1 ? dim_product(c->dims, in->dim, in->rank) : in->dim[a->axis];
    const dim late = dim_symbol_late(c->dims, "unique", all);
    c->out[0].dtype = in->dtype;
    c->out[0].rank = a->axis == -1 ? 1 : in->rank;
    if (a->axis == -1) {
        c->out[0].dim[0] = late;
    } else {
        memcpy(c->out[0].dim, in->dim, sizeof(in->dim));
        c->out[0].dim[a->axis] = late;
    }
    for (uint32_t k = 1; k < c->count_out; k++) {
        c->out[k].dtype = SINTER_DTYPE_I64;
        c->out[k].rank = 1;
        c->out[k].dim[0] = k == 2 ? all : late; /* the inverse has an entry for each thing that went in */
    }
    return SINTER_OK;
}

sinter_status infer_compress(infer_ctx *c)
{
    const attrs_compress *a = c->attrs;
    const infer_value *in = &c->in[0];
    infer_value *out = &c->out[0];
    TRY(move_rank_check(c, 0, "the input", a->axis == -1 ? 0 : 1, SINTER_RANK_MAX));
    TRY(move_rank_check(c, 1, "the condition", 1, 1));
    if (c->in[1].dtype != SINTER_DTYPE_BOOL) {
        return FAIL(c->e, INVALID_MODEL, "the condition has type %s, expected bool", sinter_dtype_name(c->in[1].dtype));
    }
    if (a->axis != -1) TRY(move_axis_check(c, "axis", a->axis, in->rank));
    const dim all = a->axis == -1 ? dim_product(c->dims, in->dim, in->rank) : in->dim[a->axis];
    out->dtype = in->dtype;
    out->rank = a->axis == -1 ? 1 : in->rank;
    if (a->axis != -1) memcpy(out->dim, in->dim, sizeof(in->dim));
    out->dim[a->axis == -1 ? 0 : a->axis] =
        dim_symbol_late(c->dims, "compress", dim_min(c->dims, all, c->in[1].dim[0]));
    return SINTER_OK;
}

static sinter_status nms_check(infer_ctx *c, dim *boxes_of_image)
{
    const infer_value *boxes = &c->in[0], *scores = &c->in[1];
    dim_table *t = c->dims;
    dim ignored = DIM_NONE;
    TRY(move_rank_check(c, 0, "boxes", 3, 3));
    TRY(move_rank_check(c, 1, "scores", 3, 3));
    TRY(move_same_check(c, "boxes", 2, dim_const(t, 4), boxes->dim[2], &ignored));
    TRY(move_same_check(c, "scores", 0, boxes->dim[0], scores->dim[0], &ignored));
    TRY(move_same_check(c, "scores", 2, boxes->dim[1], scores->dim[2], boxes_of_image));
    for (uint32_t k = 2; k < c->count_in; k++) {
        if (!infer_has(c, k)) continue;
        TRY(move_rank_check(c, k, "a limit", 0, 1));
        if (k == 2) TRY(move_int_check(c, k, "max_output_boxes_per_class"));
    }
    return SINTER_OK;
}

static void rows_of(infer_ctx *c, dim rows, dim columns)
{
    infer_value *out = &c->out[0];
    out->dtype = SINTER_DTYPE_I64;
    out->rank = 2;
    out->dim[0] = rows;
    out->dim[1] = columns;
}

/* `most` rows of each class of each image. */
static dim nms_rows(infer_ctx *c, dim most)
{
    const infer_value *scores = &c->in[1];
    return dim_mul(c->dims, dim_mul(c->dims, scores->dim[0], scores->dim[1]), most);
}

sinter_status infer_nms(infer_ctx *c)
{
    dim n = DIM_NONE;
    int64_t most = 0;
    TRY(nms_check(c, &n));
    if (infer_has(c, 2) && move_const_i64(c, 2, &most))
        n = dim_min(c->dims, n, dim_const(c->dims, most > 0 ? most : 0));
    if (!infer_has(c, 2)) n = dim_const(c->dims, 0);
    rows_of(c, dim_symbol_late(c->dims, "nms", nms_rows(c, n)), dim_const(c->dims, 3));
    return SINTER_OK;
}

/* ---- the same at their bounds, with the number of rows that are there ---- */

static void count_of(infer_ctx *c)
{
    c->out[1].dtype = SINTER_DTYPE_I64;
    c->out[1].rank = 1;
    c->out[1].dim[0] = dim_const(c->dims, 1);
}

sinter_status infer_nms_rows(infer_ctx *c)
{
    const attrs_nms_rows *a = c->attrs;
    dim n = DIM_NONE;
    TRY(nms_check(c, &n));
    TRY(move_dims_check(c, "most", &a->most, 1));
    TRY(move_dim_not_negative(c, "most", 0, move_dim(&a->most, 0)));
    rows_of(c, nms_rows(c, move_dim(&a->most, 0)), dim_const(c->dims, 3));
    count_of(c);
    return SINTER_OK;
}

sinter_status infer_non_zero_rows(infer_ctx *c)
{
    const infer_value *in = &c->in[0];
    rows_of(c, dim_product(c->dims, in->dim, in->rank), dim_const(c->dims, in->rank));
    count_of(c);
    return SINTER_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* infer_make.c - shapes of the ops that make tensors from attributes, and of the rows that inference leaves to the
 * graph. */
#include "ops/move.h"

sinter_status infer_range(infer_ctx *c)
{
    const attrs_range *a = c->attrs;
    infer_value *out = &c->out[0];
    TRY(move_dims_check(c, "count", &a->count, 1));
    TRY(move_dim_not_negative(c, "the count", 0, move_dim(&a->count, 0)));
    for (uint32_t k = 0; k < 2; k++) {
        TRY(move_rank_check(c, k, k ? "the step" : "the start", 0, 1));
        int64_t size = 1;
        if (c->in[k].rank == 1 && dim_is_const(c->dims, c->in[k].dim[0], &size) && size != 1) {
            return FAIL(c->e, INVALID_MODEL, "%s has %lld elements, expected one", k ? "the step" : "the start",
                        (long long)size);
        }
    }
    if (c->in[0].dtype != c->in[1].dtype) {
        return FAIL(c->e, INVALID_MODEL, "the start has type %s, the step has %s", sinter_dtype_name(c->in[0].dtype),
                    sinter_dtype_name(c->in[1].dtype));
    }
    out->dtype = c->in[0].dtype;
    out->rank = 1;
    out->dim[0] = move_dim(&a->count, 0);
    uint32_t starts = 0, steps = 0;
    int64_t count = 0;
    const dim *start = move_values(c, 0, &starts), *step = move_values(c, 1, &steps);
    if (!start || !step || starts != 1 || steps != 1 || !dim_is_const(c->dims, out->dim[0], &count)) return SINTER_OK;
    if (count < 0 || count > MOVE_VALUES_MAX) return SINTER_OK;
    dim *at = move_values_new(c, (uint32_t)count);
    for (int64_t i = 0; at && i < count; i++) {
        at[i] = dim_add(c->dims, start[0], dim_mul(c->dims, dim_const(c->dims, i), step[0]));
    }
    move_values_set(c, 0, at, (uint32_t)count);
    return SINTER_OK;
}

static sinter_status type_check(infer_ctx *c, int64_t type)
{
    if (type > 0 && type < SINTER_DTYPE_COUNT) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "attribute type is %lld, which is no element type", (long long)type);
}

sinter_status infer_bit_cast(infer_ctx *c)
{
    const attrs_bit_cast *a = c->attrs;
    const infer_value *in = &c->in[0];
    TRY(type_check(c, a->type));
    const sinter_dtype type = (sinter_dtype)a->type;
    if (sinter_dtype_bits(in->dtype) != sinter_dtype_bits(type))
        return FAIL(c->e, INVALID_MODEL, "the bits of %s, %u each, are no elements of %s", sinter_dtype_name(in->dtype),
                    (unsigned)sinter_dtype_bits(in->dtype), sinter_dtype_name(type));
    c->out[0].dtype = type;
    c->out[0].rank = in->rank;
    memcpy(c->out[0].dim, in->dim, sizeof in->dim);
    return SINTER_OK;
}

sinter_status infer_eye_like(infer_ctx *c)
{
    const attrs_eye_like *a = c->attrs;
    infer_value *out = &c->out[0];
    TRY(move_dims_check(c, "shape", &a->shape, 2));
    TRY(type_check(c, a->type));
    out->dtype = (sinter_dtype)a->type;
    out->rank = 2;
    for (uint32_t i = 0; i < 2; i++) {
        out->dim[i] = move_dim(&a->shape, i);
        TRY(move_dim_not_negative(c, "the size", i, out->dim[i]));
    }
    return SINTER_OK;
}

sinter_status infer_shape_value(infer_ctx *c)
{
    const attrs_shape_value *a = c->attrs;
    infer_value *out = &c->out[0];
    TRY(type_check(c, a->type));
    if (!dtype_is_int((sinter_dtype)a->type)) {
        return FAIL(c->e, INVALID_MODEL, "attribute type is %s, expected an integer type",
                    sinter_dtype_name((sinter_dtype)a->type));
    }
    if (a->value.count > MOVE_VALUES_MAX) {
        return FAIL(c->e, UNSUPPORTED, "a shape value has %u entries, the most is %d", a->value.count, MOVE_VALUES_MAX);
    }
    TRY(move_dims_check(c, "value", &a->value, a->scalar ? 1 : a->value.count));
    out->dtype = (sinter_dtype)a->type;
    out->rank = a->scalar ? 0 : 1;
    if (!a->scalar) out->dim[0] = dim_const(c->dims, a->value.count);
    dim *at = move_values_new(c, a->value.count);
    if (!at) return FAIL_MEMORY(c->e, "a shape value");
    for (uint32_t i = 0; i < a->value.count; i++) at[i] = move_dim(&a->value, i);
    move_values_set(c, 0, at, a->value.count);
    return SINTER_OK;
}

sinter_status infer_random(infer_ctx *c)
{
    const attrs_random *a = c->attrs;
    infer_value *out = &c->out[0];
    TRY(type_check(c, a->type));
    if (!dtype_is_float((sinter_dtype)a->type)) {
        return FAIL(c->e, INVALID_MODEL, "attribute type is %s, expected a float type",
                    sinter_dtype_name((sinter_dtype)a->type));
    }
    out->dtype = (sinter_dtype)a->type;
    if (a->shape.count == 0 && infer_has(c, 0)) {
        out->rank = c->in[0].rank;
        memcpy(out->dim, c->in[0].dim, sizeof(out->dim));
        return SINTER_OK;
    }
    if (a->shape.count > SINTER_RANK_MAX) {
        return FAIL(c->e, UNSUPPORTED, "the shape has rank %u, the most is %d", a->shape.count, SINTER_RANK_MAX);
    }
    TRY(move_dims_check(c, "shape", &a->shape, a->shape.count));
    out->rank = a->shape.count;
    for (uint32_t i = 0; i < out->rank; i++) {
        out->dim[i] = move_dim(&a->shape, i);
        TRY(move_dim_not_negative(c, "the size", i, out->dim[i]));
    }
    return SINTER_OK;
}

/* Types and dims of a region's results are the graph's business: only it sees the region. */
sinter_status infer_region(infer_ctx *c)
{
    const op_info *op = op_at(c->op);
    if (c->count_in < op->in_min || c->count_out < op->out_min) {
        return FAIL(c->e, INVALID_MODEL, "%u inputs and %u outputs, expected at least %u and %u", c->count_in,
                    c->count_out, op->in_min, op->out_min);
    }
    if (c->op == OP_if) return SINTER_OK;
    const bool is_loop = c->op == OP_loop;
    const int64_t carried = is_loop ? ((const attrs_loop *)c->attrs)->carried : ((const attrs_scan *)c->attrs)->carried;
    const int64_t scanned =
        is_loop ? 2 : ((const attrs_scan *)c->attrs)->scanned; /* of loop: trip count and condition */
    if (carried < 0 || carried > (int64_t)c->count_out || scanned < 0 || scanned > (int64_t)c->count_in ||
        carried > (int64_t)c->count_in - scanned) {
        return FAIL(c->e, INVALID_MODEL, "%lld values are carried, with %u inputs and %u outputs", (long long)carried,
                    c->count_in, c->count_out);
    }
    return SINTER_OK;
}

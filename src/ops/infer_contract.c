/* SPDX-License-Identifier: Apache-2.0 */
/* infer_contract.c - shapes of matrix products, einsum and attention. */
#include "ops/einsum.h"
#include "ops/infer_check.h"
#include <inttypes.h>

/* NumPy's rules: 1-D operands are a row and a column whose axis then goes away; batch axes broadcast. */
static sinter_status infer_product(infer_ctx *c, bool trans_a, bool trans_b, sinter_dtype result)
{
    TRY(infer_want_in(c, 0, "operand a", 1, SINTER_RANK_MAX));
    TRY(infer_want_in(c, 1, "operand b", 1, SINTER_RANK_MAX));
    const infer_value *a = &c->in[0];
    const infer_value *b = &c->in[1];
    const uint32_t ta = trans_a && a->rank > 1;
    const uint32_t tb = trans_b && b->rank > 1;
    const dim k_a = a->dim[a->rank - 1 - ta];
    const dim k_b = b->rank > 1 ? b->dim[b->rank - 2 + tb] : b->dim[0];
    if (!infer_agree(c->dims, k_a, k_b)) {
        return FAIL(c->e, INVALID_MODEL, "inner dims differ: a %s has %s, b %s has %s", infer_shape_text(c, a),
                    infer_dim_text(c, k_a), infer_shape_text(c, b), infer_dim_text(c, k_b));
    }
    const uint32_t batch_a = a->rank > 2 ? a->rank - 2 : 0;
    const uint32_t batch_b = b->rank > 2 ? b->rank - 2 : 0;
    const uint32_t batch = batch_a > batch_b ? batch_a : batch_b;
    dim d[SINTER_RANK_MAX] = { 0 };
    uint32_t rank = batch;
    for (uint32_t i = 0; i < batch; i++) { /* i counts from the right */
        const dim da = i < batch_a ? a->dim[batch_a - 1 - i] : dim_const(c->dims, 1);
        const dim db = i < batch_b ? b->dim[batch_b - 1 - i] : dim_const(c->dims, 1);
        if (infer_broadcast(c->dims, da, db, &d[batch - 1 - i])) continue;
        return FAIL(c->e, INVALID_MODEL, "batch dims of a %s and b %s do not broadcast: %s and %s",
                    infer_shape_text(c, a), infer_shape_text(c, b), infer_dim_text(c, da), infer_dim_text(c, db));
    }
    if (a->rank > 1) d[rank++] = a->dim[a->rank - 2 + ta];
    if (b->rank > 1) d[rank++] = b->dim[b->rank - 1 - tb];
    return infer_set(c, 0, result, rank, d);
}

sinter_status infer_matmul(infer_ctx *c)
{
    const attrs_matmul *attrs = c->attrs;
    TRY(infer_want_in(c, 0, "operand a", 1, SINTER_RANK_MAX));
    TRY(infer_want_in(c, 1, "operand b", 1, SINTER_RANK_MAX));
    TRY(infer_want_numeric(c, &c->in[0], "operand a"));
    const sinter_dtype from = c->in[0].dtype;
    TRY(infer_want_type(c, &c->in[1], "operand b", from));
    const sinter_dtype to = attrs->type == SINTER_DTYPE_NONE ? from : (sinter_dtype)attrs->type;
    if (to != from && (to != SINTER_DTYPE_F32 || (from != SINTER_DTYPE_F16 && from != SINTER_DTYPE_BF16))) {
        return FAIL(c->e, INVALID_MODEL,
                    "the result is to have type %s, the operands have %s: wanted the same, or f32 "
                    "of f16 or bf16",
                    sinter_dtype_name(to), sinter_dtype_name(from));
    }
    return infer_product(c, attrs->trans_a != 0, attrs->trans_b != 0, to);
}

/* A row of input 0 is normalised, and multiplied with a matrix. */
sinter_status infer_norm_matmul(infer_ctx *c)
{
    TRY(infer_want_in(c, 0, "input", 1, SINTER_RANK_MAX));
    TRY(infer_want_in(c, 1, "weight", 2, 2));
    const infer_value *x = &c->in[0];
    TRY(infer_want_float(c, x, "input"));
    TRY(infer_want_type(c, &c->in[1], "weight", x->dtype));
    for (uint32_t i = 2; i < 4; i++) {
        if (!infer_has(c, i)) continue;
        const char *name = i == 2 ? "scale" : "bias";
        TRY(infer_want_in(c, i, name, 1, 1));
        TRY(infer_want_float(c, &c->in[i], name));
        TRY(infer_want_dim(c, name, c->in[i].dim[0], "a row of the input", x->dim[x->rank - 1]));
    }
    return infer_product(c, false, ((const attrs_norm_matmul *)c->attrs)->trans_b != 0, x->dtype);
}

static sinter_status want_quantized(infer_ctx *c, uint32_t i, const char *name)
{
    const sinter_dtype dtype = c->in[i].dtype;
    if (dtype_is_int(dtype) && sinter_dtype_bits(dtype) <= 8) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s has type %s, wanted an integer type of at most 8 bits", name,
                sinter_dtype_name(dtype));
}

/* A zero point: one value, one for each of `lines` (a vector), or any shape of the operand's rank that broadcasts to
 * it. */
static sinter_status want_zero_point(infer_ctx *c, uint32_t i, uint32_t of, dim lines, const char *name)
{
    if (!infer_has(c, i)) return SINTER_OK;
    const infer_value *z = &c->in[i];
    const infer_value *x = &c->in[of];
    TRY(infer_want_type(c, z, name, x->dtype));
    if (!z->rank || (z->rank == 1 && dim_is(c->dims, z->dim[0], 1))) return SINTER_OK;
    bool is_right = z->rank == 1 ? infer_agree(c->dims, z->dim[0], lines) : z->rank == x->rank;
    for (uint32_t k = 0; is_right && z->rank > 1 && k < z->rank; k++) {
        is_right = dim_is(c->dims, z->dim[k], 1) || infer_agree(c->dims, z->dim[k], x->dim[k]);
    }
    if (is_right) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s has shape %s, wanted one value, [%s], or a shape that broadcasts to %s", name,
                infer_shape_text(c, z), infer_dim_text(c, lines), infer_shape_text(c, x));
}

sinter_status infer_matmul_integer(infer_ctx *c)
{
    TRY(infer_want_in(c, 0, "operand a", 1, SINTER_RANK_MAX));
    TRY(infer_want_in(c, 1, "operand b", 1, SINTER_RANK_MAX));
    TRY(want_quantized(c, 0, "operand a"));
    TRY(want_quantized(c, 1, "operand b"));
    const infer_value *a = &c->in[0];
    const infer_value *b = &c->in[1];
    const dim one = dim_const(c->dims, 1);
    TRY(want_zero_point(c, 2, 0, a->rank > 1 ? a->dim[a->rank - 2] : one, "zero point of a"));
    TRY(want_zero_point(c, 3, 1, b->rank > 1 ? b->dim[b->rank - 1] : one, "zero point of b"));
    return infer_product(c, false, false, SINTER_DTYPE_I32);
}

/* A label that an operand has twice is its diagonal: nothing is repeated there. */
static sinter_status want_diagonal(infer_ctx *c, const einsum_term *x, uint32_t operand, uint32_t axis)
{
    for (uint32_t k = 0; k < axis; k++)
        if (x->label[k] == x->label[axis] && !infer_agree(c->dims, c->in[operand].dim[k], c->in[operand].dim[axis]))
            return FAIL(c->e, INVALID_MODEL,
                        "axes %" PRIu32 " and %" PRIu32 " of operand %" PRIu32 " %s have one label", k, axis, operand,
                        infer_shape_text(c, &c->in[operand]));
    return SINTER_OK;
}

sinter_status infer_einsum(infer_ctx *c)
{
    const attrs_einsum *attrs = c->attrs;
    uint32_t rank[EINSUM_IN_MAX] = { 0 };
    for (uint32_t i = 0; i < c->count_in && i < EINSUM_IN_MAX; i++) {
        TRY(infer_want_in(c, i, "operand", 0, SINTER_RANK_MAX));
        TRY(infer_want_numeric(c, &c->in[i], "operand"));
        TRY(infer_want_type(c, &c->in[i], "operand", c->in[0].dtype));
        rank[i] = c->in[i].rank;
    }
    einsum x;
    TRY(einsum_parse(c->e, attrs->equation, c->count_in, rank, &x));
    dim of_label[EINSUM_LABELS] = { 0 };
    for (uint32_t i = 0; i < c->count_in; i++) {
        for (uint32_t k = 0; k < x.in[i].count; k++) {
            dim *d = &of_label[x.in[i].label[k]];
            const dim found = c->in[i].dim[k];
            TRY(want_diagonal(c, &x.in[i], i, k));
            if (*d == DIM_NONE) {
                *d = found;
            } else if (!infer_broadcast(c->dims, *d, found, d)) {
                return FAIL(c->e, INVALID_MODEL,
                            "axis %" PRIu32 " of operand %" PRIu32 " %s is %s, wanted %s, as elsewhere in '%s'", k, i,
                            infer_shape_text(c, &c->in[i]), infer_dim_text(c, found), infer_dim_text(c, *d),
                            attrs->equation);
            }
        }
    }
    dim d[SINTER_RANK_MAX] = { 0 };
    for (uint32_t k = 0; k < x.out.count; k++) d[k] = of_label[x.out.label[k]];
    return infer_set(c, 0, c->in[0].dtype, x.out.count, d);
}

/* Inputs 5 and 6 are rows that take places in the keys and values, at the place that input 7 names. */
static sinter_status infer_appended(infer_ctx *c)
{
    const bool appends = infer_has(c, 5);
    if (c->count_out != (appends ? 3u : 1u) || infer_has(c, 6) != appends || infer_has(c, 7) != appends)
        return FAIL(c->e, INVALID_MODEL,
                    "attention has %" PRIu32 " results; with new keys, new values and their place it has 3, else 1",
                    c->count_out);
    const attrs_tensor_scatter rows = { .axis = 2 };
    for (uint32_t i = 1; i < 3 && appends; i++) {
        infer_value in[3] = { c->in[i], c->in[4 + i], c->in[7] };
        infer_ctx own = *c;
        own.op = OP_tensor_scatter;
        own.attrs = &rows;
        own.in = in;
        own.count_in = 3;
        own.out = &c->out[i];
        TRY(infer_scatter(&own));
    }
    if (!appends) return SINTER_OK;
    return infer_want_dim(c, "new rows of value", c->in[6].dim[2], "new rows of key", c->in[5].dim[2]);
}

sinter_status infer_attention(infer_ctx *c)
{
    static const char *const name[] = { "query", "key", "value" };
    for (uint32_t i = 0; i < 3; i++) {
        TRY(infer_want_in(c, i, name[i], 4, 4));
        TRY(infer_want_float(c, &c->in[i], name[i]));
        TRY(infer_want_type(c, &c->in[i], name[i], c->in[0].dtype));
    }
    const infer_value *q = &c->in[0];
    const infer_value *k = &c->in[1];
    const infer_value *v = &c->in[2];
    TRY(infer_want_dim(c, "batch of key", k->dim[0], "batch of query", q->dim[0]));
    TRY(infer_want_dim(c, "batch of value", v->dim[0], "batch of query", q->dim[0]));
    TRY(infer_want_dim(c, "heads of value", v->dim[1], "heads of key", k->dim[1]));
    TRY(infer_want_dim(c, "head size of key", k->dim[3], "head size of query", q->dim[3]));
    TRY(infer_want_dim(c, "length of value", v->dim[2], "length of key", k->dim[2]));
    int64_t heads_q;
    int64_t heads_k;
    if (dim_is_const(c->dims, q->dim[1], &heads_q) && dim_is_const(c->dims, k->dim[1], &heads_k) &&
        heads_q != heads_k && (heads_k <= 0 || heads_q % heads_k)) {
        return FAIL(c->e, INVALID_MODEL, "query has %" PRId64 " heads, wanted a multiple of the key's %" PRId64,
                    heads_q, heads_k);
    }
    if (infer_has(c, 3)) {
        const infer_value *m = &c->in[3];
        const dim want[4] = { q->dim[0], q->dim[1], q->dim[2], k->dim[2] };
        if (m->dtype != SINTER_DTYPE_BOOL) TRY(infer_want_float(c, m, "mask"));
        TRY(infer_want_in(c, 3, "mask", 0, 4));
        for (uint32_t i = 0; i < m->rank; i++) {
            const dim wanted = want[4 - m->rank + i];
            if (!dim_is(c->dims, m->dim[i], 1) && !infer_agree(c->dims, m->dim[i], wanted)) {
                return FAIL(c->e, INVALID_MODEL, "axis %" PRIu32 " of mask %s is %s, wanted 1 or %s", i,
                            infer_shape_text(c, m), infer_dim_text(c, m->dim[i]), infer_dim_text(c, wanted));
            }
        }
    }
    if (infer_has(c, 4)) {
        TRY(infer_want_in(c, 4, "length", 0, 0));
        if (c->in[4].dtype != SINTER_DTYPE_I64)
            return FAIL(c->e, INVALID_MODEL, "the length is %s, wanted i64", sinter_dtype_name(c->in[4].dtype));
    }
    TRY(infer_appended(c));
    const dim d[4] = { infer_better(c->dims, q->dim[0], k->dim[0]), q->dim[1], q->dim[2], v->dim[3] };
    return infer_set(c, 0, q->dtype, 4, d);
}

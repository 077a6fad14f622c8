/* SPDX-License-Identifier: Apache-2.0 */
/* ref_attention.c - scaled dot product attention over q [B,Hq,S,D], k [B,Hk,T,D], v [B,Hk,T,Dv].
 *
 *   score = softcap(scale * q . k) + mask      softcap(x) = cap * tanh(x / cap)
 *   y     = softmax(score) v                   rows without an allowed key give 0
 *
 * Keys that causal or a mask of bool forbid are left out, so that nothing that is not a number gets through.
 *
 * Causal: key j is allowed for query i where j <= i + (T - S). A length (input 4) takes the place of T: the keys behind
 * it are never read.
 *
 * New rows (inputs 5 and 6) take their places in the keys and values first, from the row on that input 7 names for each
 * of the batch; outputs 1 and 2 are keys and values with them. */
#include "ops/ref_loops.h"
#include <math.h>

/* Turns scores into softmax's numerators; gives their sum, 0 where no key is allowed. */
static double soften(scalar *p, int64_t count)
{
    double max = -INFINITY;
    double sum = 0;
    for (int64_t j = 0; j < count; j++) {
        if (!(p[j].f <= max)) max = p[j].f;
        if (isnan(max)) break;
    }
    if (max == -INFINITY) return 0;
    for (int64_t j = 0; j < count; j++) {
        p[j].f = exp(p[j].f - max);
        sum += p[j].f;
    }
    return sum;
}

/* The keys that count. */
static sinter_status valid_keys(ref_call *c, int64_t most, int64_t *keys)
{
    *keys = most;
    if (!ref_has_in(c, 4)) return SINTER_OK;
    if (c->in[4].rank || c->in[4].dtype != SINTER_DTYPE_I64)
        return FAIL(c->e, INTERNAL, "the length of attention is no number");
    const int64_t length = view_load_i64(&c->in[4], 0);
    if (length < 0 || length > most) ref_fault(c, 0, length, most + 1);
    else *keys = length;
    return SINTER_OK;
}

static sinter_status append(ref_call *c)
{
    const attrs_tensor_scatter rows = { .axis = 2 };
    for (uint32_t i = 1; i < 3; i++) {
        if (i >= c->count_out || c->out[i].dtype == SINTER_DTYPE_NONE)
            return FAIL(c->e, INTERNAL, "attention has new rows, but no place for all keys and values");
        const view in[3] = { c->in[i], c->in[4 + i], c->in[7] };
        ref_call own = *c;
        own.op = OP_tensor_scatter;
        own.attrs = &rows;
        own.in = in;
        own.count_in = 3;
        own.out = &c->out[i];
        own.count_out = 1;
        TRY(reference_tensor_scatter(&own));
    }
    return SINTER_OK;
}

sinter_status reference_attention(ref_call *c)
{
    const attrs_attention *attrs = c->attrs;
    TRY(ref_check(c));
    const bool appends = ref_has_in(c, 5);
    if (appends) TRY(append(c));
    bool is_f64 = false;
    for (uint32_t i = 0; i < 3; i++) is_f64 = is_f64 || c->in[i].dtype == SINTER_DTYPE_F64;
    view in[3];
    for (uint32_t i = 0; i < 3; i++)
        TRY(ref_widen(c, i && appends ? &c->out[i] : &c->in[i], is_f64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32, NULL,
                      &in[i]));
    const view *q = &in[0];
    const view *k = &in[1];
    const view *v = &in[2];
    const view *y = &c->out[0];
    int64_t keys;
    TRY(valid_keys(c, k->dim[2], &keys));
    const int64_t groups = k->dim[1] ? q->dim[1] / k->dim[1] : 1;
    const int64_t ahead = keys - q->dim[2];
    view mask = { .dtype = SINTER_DTYPE_NONE };
    if (ref_has_in(c, 3) &&
        !view_broadcast(&c->in[3], 4, (const int64_t[]){ q->dim[0], q->dim[1], q->dim[2], k->dim[2] }, &mask)) {
        return FAIL(c->e, INTERNAL, "the mask of attention does not broadcast");
    }
    scalar *p = ARENA_NEW(c->scratch, scalar, (size_t)keys);
    bool *is_out = ARENA_NEW(c->scratch, bool, (size_t)keys);
    scalar *row = ARENA_NEW(c->scratch, scalar, (size_t)v->dim[3]);
    if (!p || !is_out || !row) return FAIL_MEMORY(c->e, "a row of attention");
    int64_t index[4];
    for (bool more = view_first(q->dim, 3, index); more; more = view_next(q->dim, 3, index)) {
        const int64_t head = groups ? index[1] / groups : 0;
        const int64_t at_q = index[0] * q->stride[0] + index[1] * q->stride[1] + index[2] * q->stride[2];
        const int64_t at_k = index[0] * k->stride[0] + head * k->stride[1];
        const int64_t at_v = index[0] * v->stride[0] + head * v->stride[1];
        const int64_t at_y = index[0] * y->stride[0] + index[1] * y->stride[1] + index[2] * y->stride[2];
        for (int64_t j = 0; j < keys; j++) {
            const double dot = ref_dot(q, at_q, q->stride[3], k, at_k + j * k->stride[2], k->stride[3], q->dim[3]).f;
            double score = attrs->scale * dot;
            is_out[j] = false;
            if (attrs->softcap > 0) score = attrs->softcap * tanh(score / attrs->softcap);
            if (mask.dtype != SINTER_DTYPE_NONE) {
                const double m = view_load_f64(&mask, index[0] * mask.stride[0] + index[1] * mask.stride[1] +
                                                          index[2] * mask.stride[2] + j * mask.stride[3]);
                if (mask.dtype != SINTER_DTYPE_BOOL) score += m;
                is_out[j] = mask.dtype == SINTER_DTYPE_BOOL && m == 0;
            }
            is_out[j] |= attrs->causal && j > index[2] + ahead;
            p[j].f = is_out[j] ? -INFINITY : score;
        }
        const double sum = soften(p, keys);
        for (int64_t d = 0; d < v->dim[3]; d++) row[d].f = 0;
        for (int64_t j = 0; j < keys && sum != 0; j++) {
            if (!is_out[j])
                ref_axpy(row, 1, (scalar){ .f = p[j].f / sum }, v, at_v + j * v->stride[2], v->stride[3], v->dim[3]);
        }
        for (int64_t d = 0; d < v->dim[3]; d++) view_store_f64(y, at_y + d * y->stride[3], row[d].f);
    }
    return SINTER_OK;
}

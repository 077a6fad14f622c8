/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_gate.c - com.microsoft's norms and sums with gates, of models that mix several streams or update a state, and
 * MurmurHash3. They compute in f32, whatever their types are. */
#include "onnx/quirks.h"

#include <string.h>

static ir_value_id wide(onnx_call *c, ir_value_id v)
{
    return v ? build_typed(&c->b, v, SINTER_DTYPE_F32) : 0;
}

static ir_value_id needed(onnx_call *c, uint32_t i)
{
    if (!call_in(c, i)) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    return call_in(c, i);
}

/* x with its last axis taken apart, [..., count, size]. */
static ir_value_id apart(onnx_call *c, ir_value_id x, dim count, dim size)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, d);
    if (rank < 1 || rank == SINTER_RANK_MAX) REJECT(c, UNSUPPORTED, "an input of rank %u", rank);
    if (c->b.status) return 0;
    d[rank - 1] = count;
    d[rank] = size;
    return build_shaped(&c->b, x, d, rank + 1);
}

static ir_value_id shaped_like(onnx_call *c, ir_value_id y, ir_value_id like)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, like, d);
    return build_shaped(&c->b, y, d, rank);
}

/* Each group of as many elements as `scale` has is divided by the root of its mean square. */
void convert_gated_rms_norm(onnx_call *c)
{
    const ir_value_id x = needed(c, 0), scale = needed(c, 1), gate = needed(c, 2);
    const char *how = call_text(c, "activation", "silu");
    const bool is_silu = strcmp(how, "silu") == 0 || strcmp(how, "swish") == 0;
    if (!is_silu && strcmp(how, "sigmoid") != 0) REJECT(c, INVALID_MODEL, "attribute activation is '%s'", how);
    if (!c->b.status && (!call_rank(c, x) || call_rank(c, scale) != 1))
        REJECT(c, INVALID_MODEL, "inputs 0 and 1 have ranks %u and %u", call_rank(c, x), call_rank(c, scale));
    if (c->b.status) return;
    const dim size = call_dim(c, scale, 0), count = call_quotient(c, call_dim(c, x, call_rank(c, x) - 1), size);
    const ir_value_id groups = apart(c, wide(c, x), count, size), z = wide(c, gate), factor = wide(c, scale);
    if (c->b.status) return;
    const ir_value_id y = quirk_rms_norm(c, groups, factor, call_rank(c, groups) - 1,
                                         call_real(c, "epsilon", (double)1e-5f)),
                      gated = is_silu ? build_silu(&c->b, z) : build_sigmoid(&c->b, z), flat = shaped_like(c, y, x);
    c->out[0] = build_typed(&c->b, build_mul(&c->b, flat, gated), call_type(c, x));
}

void convert_gated_add(onnx_call *c)
{
    const ir_value_id x = needed(c, 0), y = needed(c, 1), gate = needed(c, 2);
    if (call_in(c, 3)) REJECT(c, UNSUPPORTED, "gate_weight");
    c->out[0] = build_add(&c->b, x, build_mul(&c->b, y, gate));
}

void convert_scaled_silu(onnx_call *c)
{
    const ir_value_id x = needed(c, 0), scale = quirk_scalar_in(c, call_in(c, 1));
    if (c->b.status) return;
    const sinter_dtype type = call_type(c, x);
    const ir_value_id factor = scale ? wide(c, scale) : build_scalar(&c->b, SINTER_DTYPE_F32, call_real(c, "alpha", 1)),
                      z = build_typed(&c->b, build_mul(&c->b, wide(c, x), factor), type);
    c->out[0] = build_mul(&c->b, z, build_sigmoid(&c->b, z));
}

void convert_linear_attention_gate(onnx_call *c)
{
    const ir_value_id a = needed(c, 0), bias = needed(c, 1), scale = needed(c, 2), b = call_in(c, 3);
    if (c->b.status) return;
    const ir_value_id rate = build_softplus(&c->b, build_add(&c->b, wide(c, a), bias));
    c->out[0] = build_typed(&c->b, build_mul(&c->b, scale, rate), call_type(c, a));
    if (!call_wants(c, 1)) return;
    if (!b) REJECT(c, INVALID_MODEL, "input 3 is missing");
    else c->out[1] = build_typed(&c->b, build_sigmoid(&c->b, wide(c, b)), call_type(c, b));
}

/* ---- several streams, [..., C, H] or side by side in one axis ---- */

static ir_value_id streams(onnx_call *c, ir_value_id x)
{
    const int64_t count = call_int(c, "num_branches", 0);
    const uint32_t rank = call_rank(c, x);
    if (count < 0) REJECT(c, INVALID_MODEL, "attribute num_branches is %lld", (long long)count);
    if (!c->b.status && rank < (count ? 1U : 2U)) REJECT(c, INVALID_MODEL, "input 0 has rank %u", rank);
    if (c->b.status) return 0;
    if (!count) return wide(c, x);
    const dim each = call_k(c, count), size = call_quotient(c, call_dim(c, x, rank - 1), each);
    return apart(c, wide(c, x), each, size);
}

/* Gates [..., C], [..., C, 1], [..., C, H] or [..., C * H] of streams. */
static ir_value_id gates(onnx_call *c, ir_value_id v, ir_value_id of)
{
    const uint32_t rank = call_rank(c, of);
    if (c->b.status || call_rank(c, v) >= rank) return wide(c, v);
    const dim count = call_dim(c, of, rank - 2);
    if (call_rank(c, v) + 1 != rank) REJECT(c, INVALID_MODEL, "gates of rank %u", call_rank(c, v));
    if (c->b.status) return 0;
    const dim last = call_dim(c, v, rank - 2);
    return apart(c, wide(c, v), count, last == count ? call_k(c, 1) : call_quotient(c, last, count));
}

void convert_branchwise_rms_norm(onnx_call *c)
{
    const ir_value_id x = needed(c, 0), scale = call_in(c, 1), s = streams(c, x);
    if (c->b.status) return;
    const uint32_t rank = call_rank(c, s);
    const dim d[2] = { call_dim(c, s, rank - 2), call_dim(c, s, rank - 1) };
    ir_value_id factor = wide(c, scale);
    if (factor && call_rank(c, factor) == 1 && call_dim(c, factor, 0) != d[1])
        factor = build_shaped(&c->b, factor, d, 2);
    const ir_value_id y = quirk_rms_norm(c, s, factor, rank - 1, call_real(c, "epsilon", (double)1e-5f));
    c->out[0] = build_typed(&c->b, shaped_like(c, y, x), call_type(c, x));
}

void convert_hyper_pre_mix(onnx_call *c)
{
    const ir_value_id x = needed(c, 0), mix = needed(c, 1), s = streams(c, x), g = c->b.status ? 0 : gates(c, mix, s);
    if (c->b.status) return;
    const int64_t axis = (int64_t)call_rank(c, s) - 2;
    const double scale = call_real(c, "reduction_scale", 1);
    const ir_value_id sum = build_reduced(&c->b, reduce_kind_sum, build_mul(&c->b, s, g), &axis, 1, false),
                      y = scale == 1 ? sum : build_mul(&c->b, sum, build_scalar_like(&c->b, sum, scale));
    c->out[0] = build_typed(&c->b, y, call_type(c, x));
}

/* Y[k, h] = the sum of mix[c, k] s[c, h] over c, plus gate[k, h] block[h]. */
void convert_hyper_post_mix(onnx_call *c)
{
    const ir_value_id x = needed(c, 0), block = needed(c, 1), gate = needed(c, 2), mix = wide(c, call_in(c, 3)),
                      s = streams(c, x), g = c->b.status ? 0 : gates(c, gate, s);
    if (c->b.status) return;
    const ir_value_id mixed = mix ? build_matmul(&c->b, mix, s, &(attrs_matmul){ .trans_a = 1 }) : s,
                      each = build_unsqueezed(&c->b, wide(c, block), call_rank(c, s) - 2),
                      y = build_add(&c->b, mixed, build_mul(&c->b, g, each));
    c->out[0] = build_typed(&c->b, shaped_like(c, y, x), call_type(c, x));
}

/* Multiplies a value [B, S, H] by a gate of each stream, [B, S, C, H]: the more its key and query agree, the larger. */
void convert_engram_gate(onnx_call *c)
{
    ir_value_id in[5];
    for (uint32_t i = 0; i < 5; i++) in[i] = needed(c, i);
    if (!c->b.status && (call_rank(c, in[0]) != 4 || call_rank(c, in[2]) != 3))
        REJECT(c, INVALID_MODEL, "keys of rank %u and a value of rank %u, 4 and 3 are wanted", call_rank(c, in[0]),
               call_rank(c, in[2]));
    if (c->b.status) return;
    const int64_t last = 3;
    const double epsilon = call_real(c, "epsilon", (double)1e-5f);
    const sinter_dtype type = call_type(c, in[0]);
    for (uint32_t i = 0; i < 5; i++) in[i] = wide(c, in[i]);
    const ir_value_id key = quirk_rms_norm(c, in[0], in[3], last, epsilon),
                      query = quirk_rms_norm(c, in[1], in[4], last, epsilon),
                      sum = build_reduced(&c->b, reduce_kind_sum, build_mul(&c->b, key, query), &last, 1, true),
                      dot = build_mul(&c->b, sum, quirk_head_scale(c, call_dim(c, in[0], 3))),
                      least = build_scalar(&c->b, SINTER_DTYPE_F32, 1e-6),
                      size = build_sqrt(&c->b, build_max(&c->b, build_abs(&c->b, dot), least)),
                      gate = build_sigmoid(&c->b, build_mul(&c->b, build_sign(&c->b, dot), size)),
                      value = build_unsqueezed(&c->b, in[2], 2),
                      y = build_typed(&c->b, build_mul(&c->b, gate, value), type);
    c->out[0] = y;
    if (!call_wants(c, 1)) return;
    const ir_value_id scale = wide(c, needed(c, 5)), passed = wide(c, y);
    if (c->b.status) return;
    c->out[1] = build_typed(&c->b, quirk_rms_norm(c, passed, scale, last, epsilon), type);
}

/* ---- MurmurHash3 of 32 bits, of numbers of one or two words ---- */

static ir_value_id word(onnx_call *c, uint32_t value)
{
    return build_scalar_i64(&c->b, SINTER_DTYPE_U32, value);
}

static ir_value_id times(onnx_call *c, ir_value_id x, uint32_t by)
{
    return build_mul(&c->b, x, word(c, by));
}

static ir_value_id turned(onnx_call *c, ir_value_id x, uint32_t by)
{
    const ir_value_id left = build_shift_left(&c->b, x, word(c, by)),
                      right = build_shift_right(&c->b, x, word(c, 32 - by));
    return build_bit_or(&c->b, left, right);
}

static ir_value_id folded(onnx_call *c, ir_value_id x, uint32_t by)
{
    return build_bit_xor(&c->b, x, build_shift_right(&c->b, x, word(c, by)));
}

void convert_murmur_hash(onnx_call *c)
{
    const ir_value_id x = needed(c, 0);
    const bool is_positive = call_int(c, "positive", 1) != 0;
    if (c->b.status) return;
    const sinter_dtype type = call_type(c, x);
    const uint32_t words = sinter_dtype_bits(type) / 32;
    if (words != 1 && words != 2) REJECT(c, INVALID_MODEL, "an input of type %s", sinter_dtype_name(type));
    if (c->b.status) return;
    const attrs_bit_cast as = { .type = words == 2 ? SINTER_DTYPE_U64 : SINTER_DTYPE_U32 };
    const ir_value_id bits = type == as.type ? x : build_bit_cast(&c->b, x, &as);
    ir_value_id part[2] = { bits }, h = word(c, (uint32_t)call_int(c, "seed", 0));
    if (words == 2) {
        part[0] = build_bit_and(&c->b, bits, build_scalar_i64(&c->b, SINTER_DTYPE_U64, UINT32_MAX));
        part[1] = build_shift_right(&c->b, bits, build_scalar_i64(&c->b, SINTER_DTYPE_U64, 32));
    }
    for (uint32_t i = 0; i < words; i++) {
        const ir_value_id k = times(c, build_typed(&c->b, part[i], SINTER_DTYPE_U32), 0xcc9e2d51),
                          mixed = times(c, turned(c, k, 15), 0x1b873593),
                          both = times(c, turned(c, build_bit_xor(&c->b, h, mixed), 13), 5);
        h = build_add(&c->b, both, word(c, 0xe6546b64));
    }
    h = folded(c, build_bit_xor(&c->b, h, word(c, 4 * words)), 16);
    h = folded(c, times(c, h, 0x85ebca6b), 13);
    h = folded(c, times(c, h, 0xc2b2ae35), 16);
    c->out[0] = is_positive ? h : build_bit_cast(&c->b, h, &(attrs_bit_cast){ .type = SINTER_DTYPE_I32 });
}

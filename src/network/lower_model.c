/* SPDX-License-Identifier: Apache-2.0 */
/* lower_model.c - quantisation, attention, caches and mixtures of experts, as compositions. */
#include "network/network.h"
#include "onnx/quirks.h"

#include <math.h>

/* ---- quantisation ---- */

/* A scale shaped to broadcast against x: a scalar, [C] along `axis`, or blocks of any axes, which are repeated. */
static ir_value_id scale_wide(network_call *n, ir_value_id p, ir_value_id x, int64_t axis)
{
    ir_builder *b = &n->c.b;
    dim_table *t = b->g->dims;
    dim dx[SINTER_RANK_MAX], dp[SINTER_RANK_MAX], wide[SINTER_RANK_MAX + 1];
    if (!p || n->c.b.status) return p;
    const uint32_t rank = call_shape(&n->c, x, dx), count = call_shape(&n->c, p, dp);
    if (!count) return p;
    if (count == 1 && dim_is(t, dp[0], 1)) return quirk_scalar_in(&n->c, p);
    if (count == 1 && rank != 1) return build_along(b, p, (uint32_t)call_axis(&n->c, axis, rank), rank);
    if (count != rank || rank == SINTER_RANK_MAX) {
        REJECT(&n->c, INVALID_ARG, "a scale of rank %u for a tensor of rank %u", count, rank);
        return 0;
    }
    for (uint32_t i = 0; i < rank && !n->c.b.status; i++) {
        if (dp[i] == dx[i] || dim_is(t, dp[i], 1)) continue;
        const dim each = call_quotient(&n->c, dx[i], dp[i]);
        if (dim_mul(t, each, dp[i]) != dx[i]) REJECT(&n->c, INVALID_ARG, "axis %u is no whole number of blocks", i);
        for (uint32_t k = 0, m = 0; k < rank; k++) {
            wide[m++] = dp[k];
            if (k == i) wide[m++] = each;
        }
        p = build_expanded(b, build_unsqueezed(b, p, i + 1), wide, rank + 1);
        dp[i] = dx[i];
        p = build_shaped(b, p, dp, rank);
    }
    return p;
}

static void block_check(network_call *n, ir_value_id x, ir_value_id scale)
{
    attr_ints block;
    if (n->c.b.status || !network_ints(n, "block_shape", &block)) return;
    const uint32_t rank = call_rank(&n->c, x);
    if (block.count != rank || call_rank(&n->c, scale) != rank) {
        REJECT(&n->c, INVALID_ARG, "block_shape has %u numbers, input and scale have ranks %u and %u", block.count,
               rank, call_rank(&n->c, scale));
        return;
    }
    for (uint32_t i = 0; i < rank; i++) {
        const dim each = call_quotient(&n->c, call_dim(&n->c, x, i), call_dim(&n->c, scale, i));
        if (!dim_is(n->c.b.g->dims, each, block.at[i]))
            REJECT(&n->c, INVALID_ARG, "axis %u has other blocks than block_shape says, %lld", i,
                   (long long)block.at[i]);
    }
}

void lower_quantize(network_call *n)
{
    ir_builder *b = &n->c.b;
    const ir_value_id x = n->c.in[0];
    const int64_t axis = network_int(n, "axis");
    block_check(n, x, n->c.in[1]);
    ir_value_id scale = scale_wide(n, n->c.in[1], x, axis);
    const sinter_dtype type = (sinter_dtype)network_int(n, "to_type");
    ir_value_id zero = scale_wide(n, call_in(&n->c, 2), x, axis);
    if (n->c.b.status) return;
    scale = build_typed(b, scale, call_type(&n->c, x));
    if (zero) zero = build_typed(b, zero, type); /* upstream's is a float */
    n->c.out[0] = quirk_quantize(&n->c, x, scale, zero, type);
}

void lower_dequantize(network_call *n)
{
    ir_builder *b = &n->c.b;
    const ir_value_id x = n->c.in[0];
    const int64_t axis = network_int(n, "axis");
    block_check(n, x, n->c.in[1]);
    ir_value_id scale = scale_wide(n, n->c.in[1], x, axis);
    if (n->c.b.status) return;
    if (sinter_dtype_bits(call_type(&n->c, scale)) < 16) scale = build_typed(b, scale, SINTER_DTYPE_F32);
    ir_value_id zero = scale_wide(n, call_in(&n->c, 2), x, axis);
    if (zero) zero = build_typed(b, zero, call_type(&n->c, x));
    const ir_value_id y = quirk_dequantize(&n->c, x, scale, zero);
    n->c.out[0] = build_typed(b, y, (sinter_dtype)network_int(n, "to_type"));
}

void lower_dynamic_quantize(network_call *n)
{
    const quirk_blocks how = { .axis = network_int(n, "axis"),
                               .size = network_int(n, "block_size"),
                               .type = (sinter_dtype)network_int(n, "to_type"),
                               .scale_type = (sinter_dtype)network_int(n, "scale_type") };
    quirk_dynamic_blocks(&n->c, n->c.in[0], call_in(&n->c, 1), &how);
}

/* ---- attention ---- */

/* Which keys a query sees: bool, and what is added. */
typedef struct attention_mask {
    ir_value_id flags, added;
} attention_mask;

static ir_value_id both(network_call *n, ir_value_id a, ir_value_id b)
{
    return a && b ? build_and(&n->c.b, a, b) : a ? a : b;
}

/* [B] lengths as [B, 1, 1, 1] or [B, 1, N, 1]: positions of `axis` below the length. */
static ir_value_id below_length(network_call *n, ir_value_id lengths, dim size, bool is_row)
{
    ir_builder *b = &n->c.b;
    if (!lengths || b->status) return 0;
    const dim one = call_k(&n->c, 1), to[4] = { call_dim(&n->c, lengths, 0), one, one, one };
    if (call_rank(&n->c, lengths) != 1) {
        REJECT(&n->c, INVALID_ARG, "lengths of rank %u, wanted is [batch]", call_rank(&n->c, lengths));
        return 0;
    }
    const ir_value_id at = build_iota(b, size);
    const ir_value_id length = build_shaped(b, build_typed(b, lengths, SINTER_DTYPE_I64), to, 4);
    return build_lt(b, is_row ? build_unsqueezed(b, at, 1) : at, length);
}

static attention_mask attention_masks(network_call *n, ir_value_id q, ir_value_id k)
{
    ir_builder *b = &n->c.b;
    const dim rows = call_dim(&n->c, q, 2), columns = call_dim(&n->c, k, 2);
    const int64_t causal = network_int(n, "causal_kind");
    const ir_value_id mask = call_in(&n->c, 3);
    attention_mask m = { 0 };
    if (mask && call_type(&n->c, mask) == SINTER_DTYPE_BOOL) m.flags = mask;
    else if (mask) m.added = build_typed(b, mask, call_type(&n->c, q));
    m.flags = both(n, m.flags, below_length(n, call_in(&n->c, 6), columns, false));
    if (causal == SINTER_CAUSAL_NONE) return m;
    ir_value_id last = build_unsqueezed(b, build_iota(b, rows), 1);
    const dim more = dim_sub(b->g->dims, columns, rows);
    if (causal == SINTER_CAUSAL_LOWER_RIGHT) last = build_add(b, last, build_sizes(b, &more, 1, true));
    m.flags = both(n, m.flags, build_le(b, build_unsqueezed(b, build_iota(b, columns), 0), last));
    return m;
}

/* The product written out: without softmax, or with weights that are quantised. */
static ir_value_id attention_plain(network_call *n, ir_value_id q, ir_value_id k, ir_value_id v, attention_mask m)
{
    ir_builder *b = &n->c.b;
    const bool is_softmax = network_int(n, "norm_op") == SINTER_NORM_OP_SOFTMAX;
    k = quirk_repeat_heads(&n->c, k, q);
    v = quirk_repeat_heads(&n->c, v, q);
    ir_value_id y = build_matmul(b, q, k, &(attrs_matmul){ .trans_b = true });
    if (m.added) y = build_add(b, y, m.added);
    if (m.flags) y = build_where(b, m.flags, y, build_scalar_like(b, y, is_softmax ? -(double)INFINITY : 0));
    if (is_softmax) y = build_softmax(b, y, &(attrs_softmax){ .axis = 3 });
    if (network_param_of(n->layer, "normalization_quantize_to_type")->is_set) {
        const sinter_dtype type = (sinter_dtype)network_int(n, "normalization_quantize_to_type");
        const ir_value_id scale = quirk_scalar_in(&n->c, call_in(&n->c, 4));
        if (!scale) REJECT(&n->c, INVALID_ARG, "normalization_quantize_to_type without input 4, its scale");
        if (n->c.b.status) return 0;
        y = quirk_dequantize(&n->c, quirk_quantize(&n->c, y, scale, 0, type), scale, 0);
    }
    return build_matmul(b, y, v, NULL);
}

void lower_attention(network_call *n)
{
    ir_builder *b = &n->c.b;
    const ir_value_id q = n->c.in[0], k = n->c.in[1], v = n->c.in[2];
    for (uint32_t i = 0; i < 3; i++)
        if (call_rank(&n->c, n->c.in[i]) != 4)
            REJECT(&n->c, INVALID_ARG, "input %u has rank %u, wanted is 4", i, call_rank(&n->c, n->c.in[i]));
    if (network_int(n, "query_form") || network_int(n, "key_value_form"))
        REJECT(&n->c, UNSUPPORTED, "packed_nhd: give queries, keys and values padded");
    if (n->c.b.status) return;
    attention_mask m = attention_masks(n, q, k);
    const bool is_plain = network_int(n, "norm_op") == SINTER_NORM_OP_NONE ||
                          network_param_of(n->layer, "normalization_quantize_to_type")->is_set;
    ir_value_id y = 0;
    if (is_plain) {
        y = attention_plain(n, q, k, v, m);
    } else {
        const ir_value_id hidden = m.added ? build_scalar_like(b, m.added, -(double)INFINITY) : 0;
        const ir_value_id mask = m.flags && m.added ? build_where(b, m.flags, m.added, hidden)
                                 : m.flags          ? m.flags
                                                    : m.added;
        y = build_attended(b, q, k, v, mask, 0, DEFAULTS(attention));
    }
    const ir_value_id rows = below_length(n, call_in(&n->c, 5), call_dim(&n->c, q, 2), true);
    n->c.out[0] = rows ? build_where(b, rows, y, build_scalar_like(b, y, 0)) : y;
}

void lower_rotary_embedding(network_call *n)
{
    const onnx_attr a[] = { network_attr_int("interleaved", network_int(n, "interleaved")),
                            network_attr_int("rotary_embedding_dim", network_int(n, "rotary_embedding_dim")) };
    n->c.out[0] = network_op(n, "RotaryEmbedding", a, 2, n->c.in, n->c.count_in);
}

void lower_kv_cache_update(network_call *n)
{
    const onnx_attr a = network_attr_int("axis", 2);
    const ir_value_id in[3] = { n->c.in[0], n->c.in[1], build_typed(&n->c.b, n->c.in[2], SINTER_DTYPE_I64) };
    n->c.out[0] = network_op(n, "TensorScatter", &a, 1, in, 3);
}

/* ---- mixture of experts ---- */

/* x [E or 1, T, K] by the experts' matrices [E, K, N], and their biases [E, N]. */
static ir_value_id expert_product(network_call *n, ir_value_id x, uint32_t weight, uint32_t bias)
{
    ir_builder *b = &n->c.b;
    const ir_value_id y = build_matmul(b, x, n->c.in[weight], NULL);
    return call_in(&n->c, bias) ? build_add(b, y, build_unsqueezed(b, n->c.in[bias], 1)) : y;
}

/* How much of each expert each token gets: [E, T, 1]. */
static ir_value_id expert_shares(network_call *n, dim tokens, dim experts, sinter_dtype type)
{
    ir_builder *b = &n->c.b;
    dim d[SINTER_RANK_MAX];
    static const int64_t turned[2] = { 1, 0 }, picked = 1;
    const uint32_t rank = call_shape(&n->c, n->c.in[1], d);
    const dim each = d[rank - 1], flat[2] = { tokens, each };
    const ir_value_id index = build_shaped(b, n->c.in[1], flat, 2);
    const ir_value_id score = build_shaped(b, build_typed(b, n->c.in[2], type), flat, 2);
    const ir_value_id hot = quirk_one_hot(&n->c, build_typed(b, index, SINTER_DTYPE_I64), type, 2, experts);
    const ir_value_id share =
        build_reduced(b, reduce_kind_sum, build_mul(b, hot, build_unsqueezed(b, score, 2)), &picked, 1, false);
    return build_unsqueezed(b, build_permuted(b, share, turned, 2), 2);
}

void lower_moe(network_call *n)
{
    ir_builder *b = &n->c.b;
    dim d[SINTER_RANK_MAX];
    static const int64_t experts_axis = 0;
    const ir_value_id x = n->c.in[0];
    const uint32_t rank = call_shape(&n->c, x, d);
    for (uint32_t i = 3; i < 6; i++)
        if (!call_in(&n->c, i) || call_rank(&n->c, n->c.in[i]) != 3)
            REJECT(&n->c, INVALID_ARG, "input %u, weights of the experts, is missing or not of rank 3", i);
    if (rank < 2 || call_rank(&n->c, n->c.in[1]) != rank || call_rank(&n->c, n->c.in[2]) != rank)
        REJECT(&n->c, INVALID_ARG, "hidden states, experts and scores are not all of one rank, 2 or more");
    if (network_param_of(n->layer, "quantization_to_type")->is_set && !call_in(&n->c, 9))
        REJECT(&n->c, UNSUPPORTED, "quantization_to_type without input 9, the scale of the activations");
    if (n->c.b.status) return;
    const dim tokens = dim_product(b->g->dims, d, rank - 1), one = call_k(&n->c, 1);
    const dim rows[3] = { one, tokens, d[rank - 1] };
    const double limit = network_real(n, "swiglu_limit", INFINITY), alpha = network_real(n, "swiglu_alpha", 1);
    const ir_value_id flat = build_shaped(b, x, rows, 3);
    ir_value_id gate = expert_product(n, flat, 3, 6), up = expert_product(n, flat, 4, 7);
    if (isfinite(limit)) {
        gate = build_min(b, gate, build_scalar_like(b, gate, limit));
        const ir_value_id most = build_scalar_like(b, up, limit);
        up = build_clip(b, up, build_scalar_like(b, up, -limit), most);
    }
    if (network_int(n, "activation_type") == SINTER_MOE_SILU)
        gate = build_mul(b, gate, build_sigmoid(b, build_mul(b, gate, build_scalar_like(b, gate, alpha))));
    const double beta = network_real(n, "swiglu_beta", 0);
    if (beta != 0) up = build_add(b, up, build_scalar_like(b, up, beta));
    ir_value_id h = build_mul(b, gate, up);
    if (network_param_of(n->layer, "quantization_to_type")->is_set) {
        const ir_value_id scale = quirk_scalar_in(&n->c, n->c.in[9]);
        const sinter_dtype type = (sinter_dtype)network_int(n, "quantization_to_type");
        h = quirk_dequantize(&n->c, quirk_quantize(&n->c, h, scale, 0, type), scale, 0);
    }
    const ir_value_id y = expert_product(n, h, 5, 8);
    if (n->c.b.status) return;
    const ir_value_id share = expert_shares(n, tokens, call_dim(&n->c, n->c.in[3], 0), call_type(&n->c, x));
    const ir_value_id sum = build_reduced(b, reduce_kind_sum, build_mul(b, y, share), &experts_axis, 1, false);
    n->c.out[0] = build_shaped(b, sum, d, rank);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_contrib.c - rows of com.microsoft's rarer operators, which quantisers and the optimiser of ONNX Runtime
 * write: quantised layers, mixtures of experts, gathers of quantised tables, layouts with the channels last. */
#include "graph_ops.h"

static uint32_t weight(grow *g, int64_t a, int64_t b, uint32_t rank)
{
    return grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ a, b }, rank, 0.5);
}

/* A constant of whole numbers from `low` to `high`. */
static uint32_t whole(grow *g, sinter_dtype t, const int64_t *d, uint32_t rank, double low, double high)
{
    gsize s[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) s[i] = gsize_of(d[i]);
    return grow_leaf(g, t, s, rank, true, (gfill){ low, high, 1, grow_below(g, 9999) });
}

/* Positive scales. */
static uint32_t scales(grow *g, const int64_t *d, uint32_t rank)
{
    gsize s[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) s[i] = gsize_of(d[i]);
    return grow_leaf(g, SINTER_DTYPE_F32, s, rank, true, (gfill){ 0.0625, 0.25, 0.0625, grow_below(g, 9999) });
}

static uint32_t finish(grow *g, const gop *op, const uint32_t *in, uint32_t count)
{
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[i]);
    return n;
}

/* ---- quantised layers ---- */
static bool quantized_lstm(grow *g, const gop *op)
{
    static const char *const directions[] = { "forward", "reverse", "bidirectional" };
    const int64_t width = grow_between(g, 1, 6), hidden = grow_between(g, 1, 5);
    const uint32_t way = grow_below(g, 3);
    const int64_t dirs = way == 2 ? 2 : 1;
    const bool by_channel = grow_one_in(g, 2), has_state = grow_one_in(g, 2), has_lengths = grow_one_in(g, 4);
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const double low = t == SINTER_DTYPE_U8 ? 0 : -8, high = low + 16;
    const gsize time = grow_size(g), batch = grow_size(g), d[3] = { time, batch, gsize_of(width) },
                state[3] = { gsize_of(dirs), batch, gsize_of(hidden) };
    if (gsize_min(g, time) < 1 || gsize_min(g, batch) < 1) return false;
    const int64_t w[3] = { dirs, width, 4 * hidden }, r[3] = { dirs, hidden, 4 * hidden },
                  each[2] = { dirs, 4 * hidden };
    const uint32_t in[12] = {
        grow_shaped(g, SINTER_DTYPE_F32, d, 3),
        whole(g, t, w, 3, low, high),
        whole(g, t, r, 3, low, high),
        grow_one_in(g, 2) ? weight(g, dirs, 8 * hidden, 2) : G_ABSENT,
        has_lengths ? grow_leaf(g, SINTER_DTYPE_I32, &batch, 1, false,
                                (gfill){ 1, (double)gsize_min(g, time), 1, grow_below(g, 999) })
                    : G_ABSENT,
        has_state ? grow_shaped(g, SINTER_DTYPE_F32, state, 3) : G_ABSENT,
        has_state ? grow_shaped(g, SINTER_DTYPE_F32, state, 3) : G_ABSENT,
        grow_one_in(g, 4) ? weight(g, dirs, 3 * hidden, 2) : G_ABSENT,
        scales(g, each, by_channel ? 2 : 1),
        whole(g, t, each, by_channel ? 2 : 1, low + 8, low + 9),
        scales(g, each, by_channel ? 2 : 1),
        whole(g, t, each, by_channel ? 2 : 1, low + 8, low + 9),
    };
    const uint32_t n = finish(g, op, in, 12);
    grow_int(g, n, "hidden_size", hidden);
    if (way) grow_text(g, n, "direction", directions[way]);
    if (grow_one_in(g, 4)) grow_int(g, n, "input_forget", 1);
    return grow_end(g, n, 3) != G_NONE;
}

static bool quantized_embedding(grow *g, const gop *op)
{
    enum { WORDS = 7, PLACES = 12, SEGMENTS = 2 };
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const int64_t width = grow_between(g, 2, 6);
    const gsize d[2] = { grow_size(g), grow_size(g) };
    for (uint32_t k = 0; k < g->m->envs; k++)
        if (d[1].at[k] > PLACES) return false;
    const bool has_segments = grow_one_in(g, 2), has_mask = grow_one_in(g, 2);
    uint32_t in[18];
    for (uint32_t i = 0; i < 18; i++) in[i] = G_ABSENT;
    in[0] = grow_leaf(g, SINTER_DTYPE_I32, d, 2, false, (gfill){ 0, WORDS - 1, 1, grow_below(g, 999) });
    if (has_segments) in[1] = grow_leaf(g, SINTER_DTYPE_I32, d, 2, false, (gfill){ 0, 1, 1, 5 });
    if (has_mask) in[7] = grow_leaf(g, SINTER_DTYPE_I32, d, 2, false, (gfill){ 0, 1, 1, 6 });
    const int64_t rows[5] = { WORDS, PLACES, SEGMENTS, width, width };
    for (uint32_t i = 0; i < 5; i++) {
        if (i == 2 && !has_segments) continue;
        const int64_t shape[2] = { rows[i], width };
        in[2 + i] = whole(g, t, shape, i < 3 ? 2 : 1, t == SINTER_DTYPE_U8 ? 0 : -9, 9);
        in[8 + i] = grow_const_scalar(g, SINTER_DTYPE_F32, 0.0625 * (1 + i));
        in[13 + i] = grow_const_scalar(g, t, 1 + i % 3);
    }
    const uint32_t n = finish(g, op, in, 18);
    grow_real(g, n, "epsilon", 0.0625);
    return grow_end(g, n, 2) != G_NONE;
}

static bool fused_gemm(grow *g, const gop *op)
{
    static const struct {
        const char *name;
        double alpha, beta;
    } way[] = { { "Relu", 0, 0 },     { "Sigmoid", 0, 0 },           { "Tanh", 0, 0 },
                { "Softplus", 0, 0 }, { "Softsign", 0, 0 },          { "LeakyRelu", 0.25, 0 },
                { "Elu", 0.5, 0 },    { "ThresholdedRelu", 0.5, 0 }, { "HardSigmoid", 0.25, 0.5 } };
    const uint32_t k = grow_below(g, COUNT_OF(way));
    const int64_t depth = grow_between(g, 1, 6), width = grow_between(g, 1, 6);
    const bool ta = grow_one_in(g, 3), tb = grow_one_in(g, 2);
    const gsize rows = grow_size(g), a[2] = { ta ? gsize_of(depth) : rows, ta ? rows : gsize_of(depth) };
    const uint32_t in[3] = { grow_shaped(g, SINTER_DTYPE_F32, a, 2),
                             weight(g, tb ? width : depth, tb ? depth : width, 2),
                             grow_one_in(g, 3) ? G_ABSENT : weight(g, width, 0, 1) };
    const uint32_t n = finish(g, op, in, 3);
    grow_int(g, n, "transA", ta);
    grow_int(g, n, "transB", tb);
    if (grow_one_in(g, 2)) grow_real(g, n, "alpha", 0.5);
    if (grow_one_in(g, 2)) grow_real(g, n, "beta", 2);
    grow_text(g, n, "activation", way[k].name);
    if (way[k].alpha != 0) grow_real(g, n, "activation_alpha", way[k].alpha);
    if (way[k].beta != 0) grow_real(g, n, "activation_beta", way[k].beta);
    return grow_end(g, n, 1) != G_NONE;
}

static bool quantized_mean(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t x = grow_pick(g, (uint64_t)1 << t, 1, 4);
    if (x == G_NONE) return false;
    const int64_t axis = (int64_t)grow_below(g, grow_rank(g, x)) - (grow_one_in(g, 2) ? grow_rank(g, x) : 0);
    const uint32_t scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25), zero = grow_const_scalar(g, t, 2),
                   in[5] = { x, scale, zero, scale, zero };
    if (gsize_min(g, grow_dim(g, x, (uint32_t)(axis < 0 ? axis + grow_rank(g, x) : axis))) < 1) return false;
    const uint32_t n = finish(g, op, in, 5);
    grow_list(g, n, "axes", &axis, 1);
    grow_int(g, n, "keepdims", grow_one_in(g, 2));
    return grow_end(g, n, 1) != G_NONE;
}

/* ---- numbers packed in bytes ---- */

static bool packed_table(grow *g, const gop *op)
{
    const uint32_t way = grow_below(g, 4); /* i4, u4, bytes of 4 bits, bytes of 8 */
    const sinter_dtype t = way == 0 ? SINTER_DTYPE_I4 : way == 1 ? SINTER_DTYPE_U4 : SINTER_DTYPE_U8;
    const int64_t rows = grow_between(g, 1, 7), middle = grow_between(g, 1, 3), block = 16,
                  width = 16 * grow_between(g, 1, 3), pack = way == 2 ? 2 : 1,
                  last = way < 2 ? grow_below(g, 3) : 0; /* the axis that is gathered */
    const bool is_3d = grow_one_in(g, 3), has_zeros = grow_one_in(g, 2);
    const int64_t rank = is_3d ? 3 : 2, gather = last < rank ? last : 0, quantize = rank - 1;
    const int64_t d[3] = { rows, is_3d ? middle : width / pack, width / pack },
                  s[3] = { rows, is_3d ? middle : width / block, width / block },
                  z[3] = { rows, is_3d ? middle : (width / block + pack - 1) / pack,
                           (width / block + pack - 1) / pack };
    const int64_t size = gather == quantize ? width : gather == 0 ? rows : middle;
    if (way < 2) grow_since(g, 21);
    const double low = way == 0 ? -8 : 0, high = way == 3 ? 255 : way == 2 ? 255 : low + 15;
    const uint32_t i = grow_below(g, 3);
    const gsize at[2] = { grow_size(g), grow_size(g) };
    const uint32_t in[4] = {
        whole(g, t, d, (uint32_t)rank, low, high),
        grow_leaf(g, grow_one_in(g, 2) ? SINTER_DTYPE_I64 : SINTER_DTYPE_I32, at, i, false,
                  (gfill){ (double)-size, (double)size - 1, 1, grow_below(g, 999) }),
        scales(g, s, (uint32_t)rank),
        has_zeros ? whole(g, t, z, (uint32_t)rank, low, high) : G_ABSENT,
    };
    const uint32_t n = finish(g, op, in, has_zeros ? 4 : 3);
    grow_int(g, n, "bits", way == 3 ? 8 : 4);
    grow_int(g, n, "block_size", block);
    grow_int(g, n, "gather_axis", gather);
    grow_int(g, n, "quantize_axis", grow_one_in(g, 2) ? quantize : -1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool bitsandbytes(grow *g, const gop *op)
{
    const int64_t k = grow_between(g, 1, 9) * (grow_one_in(g, 2) ? 8 : 1), n = grow_between(g, 1, 9), block = 16;
    const bool is_turned = !grow_one_in(g, 4);
    const int64_t half = (n * k + 1) / 2, blocks = (n * k + block - 1) / block;
    const gsize d[2] = { grow_size(g), gsize_of(is_turned ? k : n) };
    const uint32_t in[3] = { grow_shaped(g, SINTER_DTYPE_F32, d, 2), whole(g, SINTER_DTYPE_U8, &half, 1, 0, 255),
                             scales(g, &blocks, 1) };
    const uint32_t node = finish(g, op, in, 3);
    grow_int(g, node, "K", k);
    grow_int(g, node, "N", n);
    grow_int(g, node, "block_size", block);
    grow_int(g, node, "quant_type", grow_below(g, 2));
    if (!is_turned) grow_int(g, node, "transB", 0);
    return grow_end(g, node, 1) != G_NONE;
}

/* ---- mixtures of experts; arg 1: with packed weights ---- */

static bool mixture(grow *g, const gop *op)
{
    static const char *const names[] = { "relu", "gelu", "silu", "identity", "swiglu", "swiglu", "swiglu", "relu2" };
    const bool is_packed = op->arg != 0, in_blocks = is_packed && grow_one_in(g, 2), has_zeros = grow_one_in(g, 3);
    const uint32_t what = grow_below(g, COUNT_OF(names)), fusion = what == 5 ? 1 : what == 6 ? 2 : 0;
    const bool has_third = what == 4 || (what < 3 && grow_one_in(g, 3)), has_bias = grow_one_in(g, 2),
               is_3d = grow_one_in(g, 2);
    const int64_t count = grow_between(g, 1, 4), step = is_packed ? (in_blocks ? 16 : 2) : 1,
                  hidden = step * grow_between(g, 1, 3), inner = step * grow_between(g, 1, 3),
                  bits = grow_one_in(g, 2) ? 4 : 8;
    gsize tokens = grow_size(g), lines = tokens;
    const gsize batch = grow_size(g), d2[2] = { tokens, gsize_of(hidden) }, d3[3] = { batch, tokens, gsize_of(hidden) };
    for (uint32_t k = 0; k < G_ENVS && is_3d; k++) lines.at[k] = batch.at[k] * tokens.at[k];
    const gsize r[2] = { lines, gsize_of(count) };
    uint32_t in[15];
    for (uint32_t i = 0; i < 15; i++) in[i] = G_ABSENT;
    in[0] = is_3d ? grow_shaped(g, SINTER_DTYPE_F32, d3, 3) : grow_shaped(g, SINTER_DTYPE_F32, d2, 2);
    in[1] = grow_leaf(g, SINTER_DTYPE_F32, r, 2, false, (gfill){ -2, 2, 0, grow_below(g, 999) });
    const int64_t rows[3] = { fusion ? 2 * inner : inner, hidden, inner }, columns[3] = { hidden, inner, hidden };
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t at = is_packed ? 2 + 3 * i : 2 + 2 * i, bias = is_packed ? at + 2 : at + 1;
        if (i == 2 && !has_third) continue;
        if (has_bias) in[bias] = weight(g, count, rows[i], 2);
        if (!is_packed) {
            in[at] = grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ count, rows[i], columns[i] }, 3, 0.5);
            continue;
        }
        const int64_t w[3] = { count, rows[i], columns[i] * bits / 8 }, blocks = columns[i] / 16,
                      s[3] = { count, rows[i], blocks }, wide = in_blocks ? blocks : rows[i],
                      few = (wide * bits + 7) / 8, z[3] = { count, in_blocks ? rows[i] : few, few };
        in[at] = whole(g, SINTER_DTYPE_U8, w, 3, 0, 255);
        in[at + 1] = scales(g, s, in_blocks ? 3 : 2);
        if (has_zeros) in[11 + i] = whole(g, SINTER_DTYPE_U8, z, in_blocks ? 3 : 2, 0, 255);
    }
    if (is_packed && grow_one_in(g, 4)) in[14] = grow_leaf(g, SINTER_DTYPE_F32, r, 2, false, (gfill){ 0.25, 1, 0, 3 });
    const uint32_t n = finish(g, op, in, is_packed ? 15 : 8);
    grow_int(g, n, "k", grow_between(g, 1, count));
    grow_text(g, n, "activation_type", names[what]);
    if (fusion) grow_int(g, n, "swiglu_fusion", fusion);
    if (grow_one_in(g, 2)) grow_int(g, n, "normalize_routing_weights", 1);
    if (what >= 4 && what < 7 && grow_one_in(g, 2)) {
        grow_real(g, n, "activation_alpha", 1.702);
        grow_real(g, n, "activation_beta", 1);
        grow_real(g, n, "swiglu_limit", 1.5);
    }
    if (is_packed) grow_int(g, n, "expert_weight_bits", bits);
    if (in_blocks) grow_int(g, n, "block_size", 16);
    return grow_end(g, n, 1) != G_NONE;
}

/* ---- norms and sums with gates, of one stream or of several ---- */
static uint32_t rows_of(grow *g, gsize rows, int64_t a, int64_t b) /* b 0: one axis behind the rows */
{
    const gsize d[3] = { rows, gsize_of(a), gsize_of(b) };
    return grow_shaped(g, SINTER_DTYPE_F32, d, b ? 3 : 2);
}

static bool gated(grow *g, const gop *op) /* arg: how many more operands as wide as the first; 3: GatedRMSNorm */
{
    static const char *const activations[] = { "silu", "swish", "sigmoid" };
    const gsize rows = grow_size(g);
    const int64_t size = grow_between(g, 1, 5), groups = op->arg == 3 ? grow_between(g, 1, 3) : 1;
    const uint32_t x = rows_of(g, rows, groups * size, 0),
                   in[4] = { x,
                             op->arg == 3 ? weight(g, size, 1, 1)
                             : op->arg    ? rows_of(g, rows, size, 0)
                                          : G_ABSENT,
                             op->arg == 3 ? rows_of(g, rows, groups * size, 0) : rows_of(g, rows, 1, 0) };
    const uint32_t n = finish(g, op, in, op->arg ? 3 : 1);
    if (op->arg == 3) grow_text(g, n, "activation", activations[grow_below(g, 3)]);
    if (!op->arg) grow_real(g, n, "alpha", (double)grow_between(g, 1, 5) / 2);
    return grow_end(g, n, 1) != G_NONE;
}

static bool attention_gate(grow *g, const gop *op)
{
    const gsize d[3] = { grow_size(g), grow_size(g), gsize_of(grow_between(g, 1, 5)) };
    const bool has_rate = grow_one_in(g, 2);
    const uint32_t in[4] = { grow_shaped(g, SINTER_DTYPE_F32, d, 3), weight(g, d[2].at[0], 1, 1),
                             weight(g, d[2].at[0], 1, 1),
                             has_rate ? grow_shaped(g, SINTER_DTYPE_F32, d, 3) : G_ABSENT };
    return grow_end(g, finish(g, op, in, has_rate ? 4 : 3), has_rate ? 2 : 1) != G_NONE;
}

/* The gate jumps where the product of key and query passes 0, and sums in another order give 0 or next to it. So all
 * terms of a product have one sign. */
static bool engram(grow *g, const gop *op)
{
    const int64_t count = grow_between(g, 1, 3), size = grow_between(g, 1, 5), norm[2] = { count, size };
    const gsize d[4] = { grow_size(g), grow_size(g), gsize_of(count), gsize_of(size) }, v[3] = { d[0], d[1], d[3] };
    const bool has_normed = grow_one_in(g, 2);
    const double sign = grow_one_in(g, 2) ? -1 : 1;
    const gfill key = { sign < 0 ? -4 : 0.25, sign < 0 ? -0.25 : 4, 0, grow_below(g, 9999) },
                query = { 0.25, 4, 0, grow_below(g, 9999) };
    const uint32_t in[6] = { grow_leaf(g, SINTER_DTYPE_F32, d, 4, false, key),
                             grow_leaf(g, SINTER_DTYPE_F32, d, 4, false, query),
                             grow_shaped(g, SINTER_DTYPE_F32, v, 3),
                             scales(g, norm, 2),
                             scales(g, norm, 2),
                             weight(g, count, size, 2) };
    return grow_end(g, finish(g, op, in, has_normed ? 6 : 5), has_normed ? 2 : 1) != G_NONE;
}

static bool router(grow *g, const gop *op)
{
    const int64_t groups = grow_between(g, 1, 3), each = grow_between(g, 1, 4), kept = grow_between(g, 1, groups);
    const gsize d[2] = { grow_size(g), gsize_of(groups * each) };
    const uint32_t in[2] = { grow_leaf(g, SINTER_DTYPE_F32, d, 2, false, (gfill){ -2, 2, 0, grow_below(g, 999) }),
                             weight(g, groups * each, 0, 1) },
                   n = finish(g, op, in, 2);
    grow_int(g, n, "n_group", groups);
    grow_int(g, n, "topk_group", kept);
    grow_int(g, n, "top_k", grow_between(g, 1, kept * each));
    if (grow_one_in(g, 2)) grow_int(g, n, "group_topk", grow_between(g, 1, 3));
    return grow_end(g, n, 1) != G_NONE;
}

enum { BRANCH_NORM, BRANCH_BEFORE, BRANCH_BEHIND };

static bool branches(grow *g, const gop *op)
{
    const gsize rows = grow_size(g);
    const int64_t count = grow_between(g, 2, 3), size = grow_between(g, 2, 5);
    const bool is_flat = grow_one_in(g, 2);
    const uint32_t how = grow_below(g, 3);
    uint32_t in[4] = { is_flat ? rows_of(g, rows, count * size, 0) : rows_of(g, rows, count, size) }, counts = 2;
    if (op->arg == BRANCH_NORM) {
        in[1] = how == 0 ? weight(g, size, 1, 1) : how == 1 ? weight(g, count * size, 1, 1) : weight(g, count, size, 2);
    } else {
        const uint32_t gate = op->arg == BRANCH_BEFORE ? 1 : 2;
        in[gate] = rows_of(g, rows, count, how == 0 ? 0 : how == 1 ? 1 : size);
        counts = gate + 1;
        if (gate == 2) in[1] = rows_of(g, rows, size, 0);
        if (gate == 2 && grow_one_in(g, 2)) in[counts++] = rows_of(g, rows, count, count);
    }
    const uint32_t n = finish(g, op, in, counts);
    if (is_flat) grow_int(g, n, "num_branches", count);
    if (op->arg == BRANCH_BEFORE && grow_one_in(g, 2)) grow_real(g, n, "reduction_scale", 0.5);
    return grow_end(g, n, 1) != G_NONE;
}

static bool hash(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t n = finish(g, op, &x, 1);
    if (grow_one_in(g, 2)) grow_int(g, n, "positive", 0);
    if (grow_one_in(g, 2)) grow_int(g, n, "seed", grow_between(g, 1, 1 << 30));
    return grow_end(g, n, 1) != G_NONE;
}

/* clang-format off */
#define MICROSOFT "com.microsoft."
const gop gops_contrib[] = {
    { MICROSOFT "DynamicQuantizeLSTM", 1, 0, 1, quantized_lstm, 0, 0, 0 },
    { MICROSOFT "QEmbedLayerNormalization", 1, 0, 1, quantized_embedding, 0, 0, 0 },
    { MICROSOFT "FusedGemm", 1, 0, 1, fused_gemm, 0, 0, 0 },
    { MICROSOFT "QLinearReduceMean", 1, 0, 1, quantized_mean, 0, 0, 0 },
    { MICROSOFT "GatherBlockQuantized", 1, 0, 1, packed_table, 0, 0, 0 },
    { MICROSOFT "MatMulBnb4", 1, 0, 1, bitsandbytes, 0, 0, 0 },
    { MICROSOFT "MoE", 1, 0, 1, mixture, 0, 0, 0 },
    { MICROSOFT "MoEGroupRouter", 1, 0, 1, router, 0, 0, 0 },
    { MICROSOFT "QMoE", 1, 14628, 1, mixture, 1, 0, 0 },
    { MICROSOFT "GatedRMSNorm", 1, 2, 1, gated, 3, 0, 0 },
    { MICROSOFT "GatedAdd", 1, 0, 1, gated, 2, 0, 0 },
    { MICROSOFT "ScaledSiLU", 1, 0, 1, gated, 0, 0, 0 },
    { MICROSOFT "LinearAttentionGate", 1, 6, 1, attention_gate, 0, 0, 0 },
    { MICROSOFT "EngramGate", 1, 0, 1, engram, 0, 0, 0 },
    { MICROSOFT "BranchwiseRMSNorm", 1, 2, 1, branches, BRANCH_NORM, 0, 0 },
    { MICROSOFT "HyperConnectionPreMix", 1, 0, 1, branches, BRANCH_BEFORE, 0, 0 },
    { MICROSOFT "HyperConnectionPostMix", 1, 0, 1, branches, BRANCH_BEHIND, 0, 0 },
    { MICROSOFT "MurmurHash3", 1, 0, 1, hash, 0, T_OF(I32) | T_OF(I64), 0 },
    { 0 },
};
/* clang-format on */

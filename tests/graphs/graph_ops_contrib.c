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
    const int64_t w[3] = { dirs, width, 4 * hidden }, r[3] = { dirs, hidden, 4 * hidden }, each[2] = { dirs, 4 * hidden };
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
    } way[] = { { "Relu", 0, 0 },         { "Sigmoid", 0, 0 },   { "Tanh", 0, 0 },
                { "Softplus", 0, 0 },     { "Softsign", 0, 0 },  { "LeakyRelu", 0.25, 0 },
                { "Elu", 0.5, 0 },        { "ThresholdedRelu", 0.5, 0 },
                { "HardSigmoid", 0.25, 0.5 } };
    const uint32_t k = grow_below(g, COUNT_OF(way));
    const int64_t depth = grow_between(g, 1, 6), width = grow_between(g, 1, 6);
    const bool ta = grow_one_in(g, 3), tb = grow_one_in(g, 2);
    const gsize rows = grow_size(g), a[2] = { ta ? gsize_of(depth) : rows, ta ? rows : gsize_of(depth) };
    const uint32_t in[3] = { grow_shaped(g, SINTER_DTYPE_F32, a, 2), weight(g, tb ? width : depth, tb ? depth : width, 2),
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

/* clang-format off */
#define MICROSOFT "com.microsoft."
const gop gops_contrib[] = {
    { MICROSOFT "DynamicQuantizeLSTM", 1, 0, 1, quantized_lstm, 0, 0, 0 },
    { MICROSOFT "QEmbedLayerNormalization", 1, 0, 1, quantized_embedding, 0, 0, 0 },
    { MICROSOFT "FusedGemm", 1, 0, 1, fused_gemm, 0, 0, 0 },
    { MICROSOFT "QLinearReduceMean", 1, 0, 1, quantized_mean, 0, 0, 0 },
    { 0 },
};
/* clang-format on */

/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_fused.c - rows of the fused operators of com.microsoft. */
#include "graph_ops.h"

static uint32_t weight(grow *g, int64_t a, int64_t b, uint32_t rank)
{
    return grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ a, b }, rank, 0.5);
}

/* arg: operands along the last axis behind the first (and the second) */
static bool along_last(grow *g, const gop *op)
{
    const bool skips = op->arg >= 10;
    const uint32_t x = grow_pick(g, T_F32, skips ? 3 : 1, skips ? 3 : 5);
    if (x == G_NONE) return false;
    const gsize last = grow_dim(g, x, grow_rank(g, x) - 1);
    const int64_t width = last.at[0];
    if (!gsize_is_const(g, last) || width < 2) return false;
    uint32_t in[4] = { x }, count = 1;
    gsize d[3];
    for (uint32_t i = 0; i < 3 && skips; i++) d[i] = grow_dim(g, x, i);
    if (skips) in[count++] = grow_one_in(g, 4) ? x : grow_shaped(g, SINTER_DTYPE_F32, d, 3);
    for (int64_t i = 0; i < op->arg % 10; i++) in[count++] = weight(g, width, 0, 1);
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[i]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool fused_matmul(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 2, 4);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x);
    const bool ta = grow_one_in(g, 2), tb = grow_one_in(g, 2);
    const gsize depth = grow_dim(g, x, ta ? rank - 2 : rank - 1), width = grow_size(g),
                d[2] = { tb ? width : depth, tb ? depth : width };
    const uint32_t y = grow_shaped(g, SINTER_DTYPE_F32, d, 2), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, y);
    grow_int(g, n, "transA", ta);
    grow_int(g, n, "transB", tb);
    grow_real(g, n, "alpha", 0.5);
    if (op->arg) {
        grow_text(g, n, "activation", "LeakyRelu");
        grow_real(g, n, "activation_alpha", 0.25);
    }
    return grow_end(g, n, 1) != G_NONE;
}

/* What says which keys count: numbers [B, T], how many [B], or from where to where [2 B]. */
static uint32_t padding(grow *g, gsize batch, gsize keys)
{
    const int64_t form = grow_between(g, 0, 3);
    const uint64_t seed = grow_below(g, 999);
    const gsize d[2] = { batch, keys };
    if (form == 0 || gsize_min(g, keys) < 2) return G_ABSENT;
    if (form == 1) return grow_leaf(g, SINTER_DTYPE_I32, d, 2, false, (gfill){ 0, 3, 1, seed });
    gsize count = batch;
    if (form == 3 && gsize_is_const(g, batch))
        for (uint32_t i = 0; i < G_ENVS; i++) count.at[i] *= 2;
    return grow_leaf(g, SINTER_DTYPE_I32, &count, 1, false, (gfill){ 1, (double)gsize_min(g, keys), 1, seed });
}

/* What is added to the scores, for all of the batch and all heads, or for each. */
static uint32_t score_bias(grow *g, gsize batch, int64_t heads, gsize queries, gsize keys)
{
    if (grow_one_in(g, 2)) return G_ABSENT;
    const gsize d[4] = { grow_one_in(g, 2) ? batch : gsize_of(1), gsize_of(grow_one_in(g, 2) ? heads : 1), queries,
                         keys };
    return grow_shaped(g, SINTER_DTYPE_F32, d, 4);
}

static void inputs(grow *g, uint32_t n, const uint32_t *in, uint32_t count)
{
    while (count && in[count - 1] == G_ABSENT) count--;
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[i]);
}

static bool multi_head(grow *g, const gop *op)
{
    const int64_t heads = grow_between(g, 1, 3), width = heads * grow_between(g, 1, 5);
    const gsize batch = grow_size(g), s = grow_size(g), t = grow_one_in(g, 2) ? s : grow_size(g);
    if (gsize_min(g, t) < 1) return false;
    const gsize q[3] = { batch, s, gsize_of(width) }, k[3] = { batch, t, gsize_of(width) };
    const uint32_t query = grow_shaped(g, SINTER_DTYPE_F32, q, 3), key = grow_shaped(g, SINTER_DTYPE_F32, k, 3),
                   value = grow_shaped(g, SINTER_DTYPE_F32, k, 3),
                   bias = grow_one_in(g, 2) ? G_ABSENT : weight(g, 3 * width, 0, 1), mask = padding(g, batch, t),
                   added = score_bias(g, batch, heads, s, t), n = grow_begin(g, op->name);
    inputs(g, n, (const uint32_t[]){ query, key, value, bias, mask, added }, 6);
    grow_int(g, n, "num_heads", heads);
    grow_real(g, n, "mask_filter_value", -8);
    if (grow_one_in(g, 3)) grow_int(g, n, "unidirectional", 1);
    return grow_end(g, n, 1) != G_NONE;
}

/* Queries, keys and values by one weight. */
static bool packed_attention(grow *g, const gop *op)
{
    const int64_t heads = grow_between(g, 1, 3), width = heads * grow_between(g, 1, 5), from = grow_between(g, 1, 9);
    const gsize d[3] = { grow_size(g), grow_size(g), gsize_of(from) };
    if (gsize_min(g, d[1]) < 1) return false;
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 3), w = weight(g, from, 3 * width, 2),
                   bias = grow_one_in(g, 3) ? G_ABSENT : weight(g, 3 * width, 0, 1), mask = padding(g, d[0], d[1]),
                   added = score_bias(g, d[0], heads, d[1], d[1]), n = grow_begin(g, op->name);
    inputs(g, n, (const uint32_t[]){ x, w, bias, mask, G_ABSENT, added }, 6);
    grow_int(g, n, "num_heads", heads);
    grow_real(g, n, "mask_filter_value", -8);
    if (grow_one_in(g, 2)) grow_int(g, n, "unidirectional", 1);
    return grow_end(g, n, 1) != G_NONE;
}

/* Caches by position. */
static bool rotary(grow *g, const gop *op) /* arg 1: three positions of each token */
{
    const int64_t heads = grow_between(g, 1, 3), half = grow_between(g, 1, 4), places = 12;
    const gsize batch = grow_size(g), s = grow_size(g), d3[3] = { batch, s, gsize_of(heads * 2 * half) },
                d4[4] = { batch, gsize_of(heads), s, gsize_of(2 * half) }, at[3] = { gsize_of(3), batch, s };
    const bool has_heads = grow_one_in(g, 2);
    const uint32_t x = has_heads ? grow_shaped(g, SINTER_DTYPE_F32, d4, 4) : grow_shaped(g, SINTER_DTYPE_F32, d3, 3),
                   place = grow_leaf(g, SINTER_DTYPE_I64, at + !op->arg, op->arg ? 3 : 2, false,
                                     (gfill){ 0, (double)places - 1, 1, grow_below(g, 999) }),
                   cosine = weight(g, places, half, 2), sine = weight(g, places, half, 2), n = grow_begin(g, op->name);
    const uint32_t in[4] = { x, place, cosine, sine };
    for (uint32_t i = 0; i < 4; i++) grow_in(g, n, in[i]);
    if (grow_one_in(g, 2)) grow_int(g, n, "interleaved", 1);
    if (op->arg) {
        const int64_t second = grow_between(g, 0, half / 2), third = grow_between(g, 0, half / 3);
        grow_list(g, n, "mrope_section", (const int64_t[]){ half - second - third, second, third }, 3);
        if (grow_one_in(g, 2)) grow_int(g, n, "mrope_layout", 1);
        if (!has_heads) grow_int(g, n, "num_heads", heads);
    }
    return grow_end(g, n, 1) != G_NONE;
}

static bool grouped(grow *g, const gop *op)
{
    const int64_t groups = grow_between(g, 1, 2), heads = groups * grow_between(g, 1, 2),
                  half = 4 * grow_between(g, 1, 2), tokens = grow_between(g, 1, 5),
                  past = grow_one_in(g, 2) ? grow_between(g, 1, 4) : 0,
                  room = past && grow_one_in(g, 2) ? grow_between(g, 1, 9) : 0; /* of the caches, that stays */
    /* A code may be the next one where the new keys are rounded to a narrower type. */
    const bool turns = grow_one_in(g, 2), is_coded = past && grow_one_in(g, 3) && !g->m->allow;
    gsize width = gsize_of(2 * half), wide = width, few;
    const bool is_normed = grow_one_in(g, 3);
    if (!turns && !is_normed && !is_coded && grow_one_in(g, 2)) width = grow_size(g); /* a run knows it, perhaps */
    if (gsize_min(g, width) < 1) return false;
    wide = few = width;
    for (uint32_t i = 0; i < G_ENVS; i++) wide.at[i] *= heads, few.at[i] *= groups;
    const gsize batch = grow_size(g), t = gsize_of(tokens), q[3] = { batch, t, wide }, k[3] = { batch, t, few },
                c[4] = { batch, gsize_of(groups), gsize_of(past + room), width };
    const uint32_t query = grow_shaped(g, SINTER_DTYPE_F32, q, 3), key = grow_shaped(g, SINTER_DTYPE_F32, k, 3),
                   value = grow_one_in(g, 3) ? key : grow_shaped(g, SINTER_DTYPE_F32, k, 3),
                   cache = past ? grow_shaped(g, is_coded ? SINTER_DTYPE_I8 : SINTER_DTYPE_F32, c, 4) : G_ABSENT,
                   other = past ? grow_shaped(g, is_coded ? SINTER_DTYPE_I8 : SINTER_DTYPE_F32, c, 4) : G_ABSENT,
                   lengths = grow_leaf(g, SINTER_DTYPE_I32, &batch, 1, false,
                                       (gfill){ (double)(tokens - 1), (double)(past + tokens - 1), 1, 7 }),
                   total = grow_const_scalar(g, SINTER_DTYPE_I32, (double)(past + tokens));
    const uint32_t cosine = turns ? weight(g, past + tokens, half, 2) : G_ABSENT,
                   sine = turns ? weight(g, past + tokens, half, 2) : G_ABSENT,
                   added = score_bias(g, batch, heads, t, gsize_of(past + tokens)),
                   sink = grow_one_in(g, 3) ? weight(g, heads, 0, 1) : G_ABSENT,
                   first = is_normed ? weight(g, 2 * half, 0, 1) : G_ABSENT,
                   second = is_normed ? weight(g, 2 * half, 0, 1) : G_ABSENT,
                   step = is_coded ? grow_const_scalar(g, SINTER_DTYPE_F32, 0.0625) : G_ABSENT,
                   n = grow_begin(g, op->name);
    const uint32_t in[16] = { query, key,      value, cache, other, lengths, total, cosine,
                              sine,  G_ABSENT, added, sink,  step,  step,    first, second };
    inputs(g, n, in, is_normed ? 16 : is_coded ? 14 : 12);
    if (is_coded) {
        grow_text(g, n, "k_quant_type", "PER_TENSOR");
        grow_text(g, n, "v_quant_type", "PER_TENSOR");
        grow_int(g, n, "kv_cache_bit_width", 8);
    }
    grow_int(g, n, "num_heads", heads);
    grow_int(g, n, "kv_num_heads", groups);
    if (grow_one_in(g, 4)) grow_int(g, n, "causal", 0);
    if (turns) grow_int(g, n, "do_rotary", 1);
    return grow_end(g, n, past ? 3 : 1) != G_NONE;
}

static bool fused_conv(grow *g, const gop *op)
{
    static const char *const names[] = { "Relu", "Sigmoid", "Tanh" };
    const int64_t channels = grow_between(g, 1, 5), outs = grow_between(g, 1, 5);
    const gsize d[4] = { grow_size(g), gsize_of(channels), gsize_of(grow_between(g, 1, 6)), grow_size(g) },
                o[4] = { d[0], gsize_of(outs), d[2], d[3] };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4),
                   w = grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ outs, channels, 1, 1 }, 4, 1),
                   bias = weight(g, outs, 0, 1),
                   sum = grow_one_in(g, 2) ? G_ABSENT : grow_shaped(g, SINTER_DTYPE_F32, o, 4),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, w);
    grow_in(g, n, bias);
    if (sum != G_ABSENT) grow_in(g, n, sum);
    grow_text(g, n, "activation", names[grow_below(g, 3)]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool embedded(grow *g, const gop *op)
{
    enum { WORDS = 7, PLACES = 12, SEGMENTS = 2 };
    const int64_t width = grow_between(g, 2, 6);
    const gsize d[2] = { grow_size(g), grow_size(g) };
    for (uint32_t k = 0; k < g->m->envs; k++)
        if (d[1].at[k] > PLACES) return false;
    const bool has_segments = grow_one_in(g, 2), has_mask = grow_one_in(g, 2);
    const uint32_t ids = grow_leaf(g, SINTER_DTYPE_I32, d, 2, false, (gfill){ 0, WORDS - 1, 1, grow_below(g, 999) }),
                   of = has_segments ? grow_leaf(g, SINTER_DTYPE_I32, d, 2, false, (gfill){ 0, 1, 1, 5 }) : G_ABSENT,
                   word = weight(g, WORDS, width, 2), place = weight(g, PLACES, width, 2),
                   segment = has_segments ? weight(g, SEGMENTS, width, 2) : G_ABSENT, scale = weight(g, width, 0, 1),
                   bias = weight(g, width, 0, 1),
                   mask = has_mask ? grow_leaf(g, SINTER_DTYPE_I32, d, 2, false, (gfill){ 0, 1, 1, 6 }) : G_ABSENT,
                   n = grow_begin(g, op->name), in[8] = { ids, of, word, place, segment, scale, bias, mask };
    for (uint32_t i = 0; i < (has_mask ? 8u : 7u); i++) grow_in(g, n, in[i]);
    grow_real(g, n, "epsilon", 0.0625);
    return grow_end(g, n, has_mask ? 2 : 1) != G_NONE;
}

/* clang-format off */
#define MICROSOFT "com.microsoft."
const gop gops_fused[] = {
    { MICROSOFT "MultiHeadAttention", 1, 0, 2, multi_head, 0, 0, 0 },
    { MICROSOFT "Attention", 1, 0, 2, packed_attention, 0, 0, 0 },
    { MICROSOFT "RotaryEmbedding", 1, 0, 2, rotary, 0, 0, 0 },
    { MICROSOFT "MRotaryEmbedding", 1, 0, 1, rotary, 1, 0, 0 },
    { MICROSOFT "GroupQueryAttention", 1, 64, 2, grouped, 0, 0, 0 },
    { MICROSOFT "FusedConv", 1, 0, 2, fused_conv, 0, 0, 0 },
    { MICROSOFT "BiasGelu", 1, 0, 1, along_last, 1, 0, 0 }, { MICROSOFT "FastGelu", 1, 0, 1, along_last, 1, 0, 0 },
    { MICROSOFT "Gelu", 1, 0, 1, along_last, 0, 0, 0 },     { MICROSOFT "QuickGelu", 1, 0, 1, along_last, 0, 0, 0 },
    { MICROSOFT "SkipLayerNormalization", 1, 0, 2, along_last, 12, 0, 0 },
    { MICROSOFT "SkipSimplifiedLayerNormalization", 1, 0, 2, along_last, 11, 0, 0 },
    { "SimplifiedLayerNormalization", 1, 0, 1, along_last, 1, 0, 0 },
    { MICROSOFT "SimplifiedLayerNormalization", 1, 0, 1, along_last, 1, 0, 0 },
    { MICROSOFT "LayerNormalization", 1, 0, 1, along_last, 2, 0, 0 },
    { MICROSOFT "FusedMatMul", 1, 0, 2, fused_matmul, 0, 0, 0 },
    { MICROSOFT "TransposeMatMul", 1, 0, 1, fused_matmul, 0, 0, 0 },
    { MICROSOFT "FusedMatMulActivation", 1, 0, 1, fused_matmul, 1, 0, 0 },
    { MICROSOFT "EmbedLayerNormalization", 1, 0, 1, embedded, 0, 0, 0 },
    { 0 },
};
/* clang-format on */

/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_layers.c - rows of whole layers: recurrent ones, attention, images, signals, quantised and fused operators.
 */
#include "graph_ops.h"

/* A value of these constant sizes and type F32. */
static uint32_t weight(grow *g, int64_t a, int64_t b, int64_t c, uint32_t rank)
{
    return grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ a, b, c }, rank, 0.5);
}

/* The last axis where it is a number; 0: it is not. */
static int64_t width_of(const grow *g, uint32_t x)
{
    if (x == G_NONE || !grow_rank(g, x)) return 0;
    const gsize d = grow_dim(g, x, grow_rank(g, x) - 1);
    return gsize_is_const(g, d) ? d.at[0] : 0;
}

/* ---- recurrent; arg: gates ---- */
static bool recurrent(grow *g, const gop *op)
{
    static const char *const directions[] = { "forward", "reverse", "bidirectional" };
    const uint32_t x = grow_pick(g, T_F32, 3, 3), way = grow_below(g, 3);
    const int64_t width = width_of(g, x), hidden = grow_between(g, 1, 5), dirs = way == 2 ? 2 : 1;
    if (!width || gsize_min(g, grow_dim(g, x, 1)) < 1 || gsize_min(g, grow_dim(g, x, 0)) < 1) return false;
    const gsize batch = grow_dim(g, x, 1), state[3] = { gsize_of(dirs), batch, gsize_of(hidden) };
    const bool has_lengths = grow_one_in(g, 4), has_state = grow_one_in(g, 2);
    const uint32_t in[7] = {
        x,
        weight(g, dirs, op->arg * hidden, width, 3),
        weight(g, dirs, op->arg * hidden, hidden, 3),
        grow_one_in(g, 2) ? weight(g, dirs, 2 * op->arg * hidden, 0, 2) : G_ABSENT,
        has_lengths ? grow_leaf(g, SINTER_DTYPE_I32, &batch, 1, false,
                                (gfill){ 1, (double)gsize_min(g, grow_dim(g, x, 0)), 1, grow_below(g, 999) })
                    : G_ABSENT,
        has_state ? grow_shaped(g, SINTER_DTYPE_F32, state, 3) : G_ABSENT,
        has_state && op->arg == 4 ? grow_shaped(g, SINTER_DTYPE_F32, state, 3) : G_ABSENT,
    };
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < (op->arg == 4 ? 7u : 6u); i++) grow_in(g, n, in[i]);
    grow_int(g, n, "hidden_size", hidden);
    if (way) grow_text(g, n, "direction", directions[way]);
    if (op->arg == 3 && grow_one_in(g, 2)) grow_int(g, n, "linear_before_reset", 1);
    return grow_end(g, n, op->arg == 4 ? 3 : 2) != G_NONE;
}

/* ---- attention ---- */
static bool attention(grow *g, const gop *op)
{
    const int64_t groups = grow_between(g, 1, 2), heads = groups * grow_between(g, 1, 2), depth = grow_between(g, 1, 8);
    const gsize batch = grow_size(g), s = grow_size(g), t = grow_one_in(g, 2) ? s : grow_size(g);
    if (gsize_min(g, t) < 1) return false;
    const sinter_dtype type = SINTER_DTYPE_F32;
    const gsize q[4] = { batch, gsize_of(heads), s, gsize_of(depth) },
                k[4] = { batch, gsize_of(groups), t, gsize_of(depth) }, mask[2] = { s, t };
    const uint32_t key = grow_shaped(g, type, k, 4), query = grow_shaped(g, type, q, 4),
                   value = grow_one_in(g, 3) ? key : grow_shaped(g, type, k, 4),
                   masked = grow_one_in(g, 2) ? G_ABSENT : grow_shaped(g, type, mask, 2), n = grow_begin(g, op->name);
    grow_in(g, n, query);
    grow_in(g, n, key);
    grow_in(g, n, value);
    if (masked != G_ABSENT) grow_in(g, n, masked);
    else if (gsize_same(g, s, t) && grow_one_in(g, 2)) grow_int(g, n, "is_causal", 1);
    if (grow_one_in(g, 3)) grow_real(g, n, "scale", 0.5);
    return grow_end(g, n, 1) != G_NONE;
}

static bool multi_head(grow *g, const gop *op)
{
    const int64_t heads = grow_between(g, 1, 3), width = heads * grow_between(g, 1, 5);
    const gsize batch = grow_size(g), s = grow_size(g), t = grow_one_in(g, 2) ? s : grow_size(g);
    if (gsize_min(g, t) < 1) return false;
    const gsize q[3] = { batch, s, gsize_of(width) }, k[3] = { batch, t, gsize_of(width) };
    const uint32_t query = grow_shaped(g, SINTER_DTYPE_F32, q, 3), key = grow_shaped(g, SINTER_DTYPE_F32, k, 3),
                   value = grow_shaped(g, SINTER_DTYPE_F32, k, 3), n = grow_begin(g, op->name);
    grow_in(g, n, query);
    grow_in(g, n, key);
    grow_in(g, n, value);
    grow_int(g, n, "num_heads", heads);
    return grow_end(g, n, 1) != G_NONE;
}

static bool rotary(grow *g, const gop *op)
{
    const int64_t half = grow_between(g, 1, 4);
    const gsize batch = grow_size(g), s = grow_size(g),
                d[4] = { batch, gsize_of(grow_between(g, 1, 3)), s, gsize_of(2 * half) },
                c[3] = { batch, s, gsize_of(half) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4), cosine = grow_shaped(g, SINTER_DTYPE_F32, c, 3),
                   sine = grow_one_in(g, 3) ? cosine : grow_shaped(g, SINTER_DTYPE_F32, c, 3),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, cosine);
    grow_in(g, n, sine);
    if (grow_one_in(g, 2)) grow_int(g, n, "interleaved", 1);
    return grow_end(g, n, 1) != G_NONE;
}

/* ---- fused operators of com.microsoft; arg: operands along the last axis behind the first (and the second) ---- */
static bool along_last(grow *g, const gop *op)
{
    const bool skips = op->arg >= 10;
    const uint32_t x = grow_pick(g, T_F32, skips ? 3 : 1, skips ? 3 : 5);
    const int64_t width = width_of(g, x);
    if (width < 2) return false;
    uint32_t in[4] = { x }, count = 1;
    gsize d[3];
    for (uint32_t i = 0; i < 3 && skips; i++) d[i] = grow_dim(g, x, i);
    if (skips) in[count++] = grow_one_in(g, 4) ? x : grow_shaped(g, SINTER_DTYPE_F32, d, 3);
    for (int64_t i = 0; i < op->arg % 10; i++) in[count++] = weight(g, width, 0, 0, 1);
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
    return grow_end(g, n, 1) != G_NONE;
}

/* ---- quantised operators ---- */
static bool qlinear_matmul(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t x = grow_pick(g, (uint64_t)1 << t, 2, 3);
    if (x == G_NONE) return false;
    const gsize d[2] = { grow_dim(g, x, grow_rank(g, x) - 1), grow_size(g) };
    const uint32_t scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25), zero = grow_const_scalar(g, t, 2),
                   y = grow_shaped(g, t, d, 2), n = grow_begin(g, op->name);
    const uint32_t in[8] = { x, scale, zero, y, scale, zero, scale, zero };
    for (uint32_t i = 0; i < 8; i++) grow_in(g, n, in[i]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool qlinear_binary(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t x = grow_pick(g, (uint64_t)1 << t, 0, 5);
    if (x == G_NONE) return false;
    const uint32_t scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25), zero = grow_const_scalar(g, t, 2),
                   y = grow_fellow(g, x, t), n = grow_begin(g, op->name);
    const uint32_t in[8] = { x, scale, zero, y, scale, zero, scale, zero };
    for (uint32_t i = 0; i < 8; i++) grow_in(g, n, in[i]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool qlinear_unary(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t x = grow_pick(g, (uint64_t)1 << t, 0, 5);
    const uint32_t scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25), zero = grow_const_scalar(g, t, 2),
                   n = grow_begin(g, op->name);
    const uint32_t in[5] = { x, scale, zero, scale, zero };
    for (uint32_t i = 0; i < 5; i++) grow_in(g, n, in[i]);
    return grow_end(g, n, 1) != G_NONE;
}

/* arg 1: with scales and zero points. */
static bool conv_integer(grow *g, const gop *op)
{
    const sinter_dtype t = SINTER_DTYPE_U8;
    const int64_t channels = grow_between(g, 1, 5), outs = grow_between(g, 1, 5), side = grow_between(g, 1, 3);
    const gsize d[4] = { grow_size(g), gsize_of(channels), gsize_of(grow_between(g, 3, 8)),
                         gsize_of(grow_between(g, 3, 8)) };
    const uint32_t x = grow_shaped(g, t, d, 4), scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25),
                   zero = grow_const_scalar(g, t, 2),
                   w = grow_weight(g, grow_one_in(g, 2) ? SINTER_DTYPE_I8 : t,
                                   (const int64_t[]){ outs, channels, side, side }, 4, 1);
    if (x == G_NONE || w == G_NONE) return false;
    const uint32_t w_zero = grow_const_scalar(g, grow_type(g, w), 0), n = grow_begin(g, op->name);
    const uint32_t plain[4] = { x, w, zero, w_zero }, scaled[8] = { x, scale, zero, w, scale, w_zero, scale, zero };
    for (uint32_t i = 0; i < (op->arg ? 8u : 4u); i++) grow_in(g, n, op->arg ? scaled[i] : plain[i]);
    if (grow_one_in(g, 2)) grow_list(g, n, "pads", (const int64_t[]){ side / 2, side / 2, side / 2, side / 2 }, 4);
    return grow_end(g, n, 1) != G_NONE;
}

static bool dynamic_quantize(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 1, 5), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    return grow_end(g, n, 3) != G_NONE;
}

/* ---- images and signals ---- */
static bool grid_sample(grow *g, const gop *op)
{
    static const char *const modes[] = { "linear", "nearest", "cubic" }, *const pads[] = { "zeros", "border",
                                                                                           "reflection" };
    const gsize batch = grow_size(g);
    const gsize d[4] = { batch, gsize_of(grow_between(g, 1, 4)), gsize_of(grow_between(g, 2, 6)),
                         gsize_of(grow_between(g, 2, 6)) },
                s[4] = { batch, grow_size(g), grow_size(g), gsize_of(2) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4), at = grow_shaped(g, SINTER_DTYPE_F32, s, 4),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, at);
    grow_text(g, n, "mode", modes[grow_below(g, 3)]);
    grow_text(g, n, "padding_mode", pads[grow_below(g, 3)]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool affine_grid(grow *g, const gop *op)
{
    const gsize batch = grow_size(g), d[3] = { batch, gsize_of(2), gsize_of(3) },
                size[4] = { batch, gsize_of(2), gsize_of(grow_between(g, 2, 5)), gsize_of(grow_between(g, 2, 5)) };
    return grow_2(g, op->name, grow_shaped(g, SINTER_DTYPE_F32, d, 3), grow_ints(g, size, 4, false)) != G_NONE;
}

static bool roi_align(grow *g, const gop *op)
{
    const gsize count = grow_size(g),
                d[4] = { gsize_of(2), gsize_of(grow_between(g, 1, 4)), gsize_of(grow_between(g, 3, 8)),
                         gsize_of(grow_between(g, 3, 8)) },
                b[2] = { count, gsize_of(4) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4),
                   boxes = grow_leaf(g, SINTER_DTYPE_F32, b, 2, false, (gfill){ 0, 3, 0.25, grow_below(g, 999) }),
                   at = grow_leaf(g, SINTER_DTYPE_I64, &count, 1, false, (gfill){ 0, 1, 1, grow_below(g, 999) }),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, boxes);
    grow_in(g, n, at);
    grow_int(g, n, "output_height", 2);
    grow_int(g, n, "output_width", 3);
    grow_int(g, n, "sampling_ratio", 2);
    return grow_end(g, n, 1) != G_NONE;
}

static bool nms(grow *g, const gop *op)
{
    const gsize n_boxes = gsize_of(grow_between(g, 1, 9)), batch = gsize_of(grow_between(g, 1, 2)),
                b[3] = { batch, n_boxes, gsize_of(4) }, s[3] = { batch, gsize_of(grow_between(g, 1, 3)), n_boxes };
    const uint32_t boxes = grow_leaf(g, SINTER_DTYPE_F32, b, 3, false, (gfill){ 0, 4, 0, grow_below(g, 999) }),
                   scores = grow_leaf(g, SINTER_DTYPE_F32, s, 3, false, (gfill){ 0, 1, 0, grow_below(g, 999) }),
                   most = grow_const_scalar(g, SINTER_DTYPE_I64, 3), n = grow_begin(g, op->name);
    grow_in(g, n, boxes);
    grow_in(g, n, scores);
    grow_in(g, n, most);
    return grow_end(g, n, 1) != G_NONE;
}

static bool col2im(grow *g, const gop *op)
{
    const int64_t h = grow_between(g, 2, 5), w = grow_between(g, 2, 5), block = grow_between(g, 1, 2);
    const gsize d[3] = { grow_size(g), gsize_of(block * block * grow_between(g, 1, 3)),
                         gsize_of((h - block + 1) * (w - block + 1)) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 3), image = grow_const_ints(g, (const int64_t[]){ h, w }, 2),
                   sides = grow_const_ints(g, (const int64_t[]){ block, block }, 2);
    return grow_3(g, op->name, x, image, sides) != G_NONE;
}

static bool det(grow *g, const gop *op)
{
    const gsize side = gsize_of(grow_between(g, 1, 3)), d[3] = { grow_size(g), side, side };
    return grow_1(g, op->name, grow_shaped(g, SINTER_DTYPE_F32, d, 3)) != G_NONE;
}

static bool dft(grow *g, const gop *op)
{
    const gsize d[3] = { grow_size(g), gsize_of(grow_between(g, 1, 9)), gsize_of(grow_between(g, 1, 2)) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 3), axis = grow_const_scalar(g, SINTER_DTYPE_I64, 1),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, G_ABSENT);
    grow_in(g, n, axis);
    if (gsize_is(g, d[2], 1) && grow_one_in(g, 2)) grow_int(g, n, "onesided", 1);
    else if (gsize_is(g, d[2], 2) && grow_one_in(g, 2)) grow_int(g, n, "inverse", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool stft(grow *g, const gop *op)
{
    const int64_t length = grow_between(g, 2, 6);
    const gsize d[3] = { grow_size(g), gsize_of(length * 3), gsize_of(1) }, frame = gsize_of(length);
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 3), step = grow_const_scalar(g, SINTER_DTYPE_I64, 2);
    return grow_3(g, op->name, x, step, grow_shaped(g, SINTER_DTYPE_F32, &frame, 1)) != G_NONE;
}

static bool window(grow *g, const gop *op)
{
    const gsize size = gsize_of(grow_between(g, 1, 20));
    return grow_1(g, op->name, grow_ints(g, &size, 1, true)) != G_NONE;
}

/* ---- others ---- */
static bool simple(grow *g, const gop *op)
{
    const uint32_t rank = op->arg ? (uint32_t)op->arg : 1, x = grow_pick(g, op->types, rank, op->arg ? rank : 5);
    for (uint32_t i = 0; x != G_NONE && i < grow_rank(g, x); i++)
        if (gsize_min(g, grow_dim(g, x, i)) < 1) return false;
    return grow_1(g, op->name, x) != G_NONE;
}

static bool loss(grow *g, const gop *op)
{
    static const char *const reductions[] = { "none", "sum", "mean" };
    const int64_t classes = grow_between(g, 1, 5);
    const gsize d[3] = { grow_size(g), gsize_of(classes), grow_size(g) }, t[2] = { d[0], d[2] };
    if (gsize_min(g, d[0]) < 1 || gsize_min(g, d[2]) < 1) return false;
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 3),
                   target = grow_leaf(g, SINTER_DTYPE_I64, t, 2, false,
                                      (gfill){ 0, (double)classes - 1, 1, grow_below(g, 999) }),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, target);
    grow_text(g, n, "reduction", reductions[grow_below(g, 3)]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool bit_cast(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_OF(I32) | T_OF(U8), 0, 5);
    if (x == G_NONE) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_int(g, n, "to", onnx_type_of(grow_type(g, x) == SINTER_DTYPE_U8 ? SINTER_DTYPE_I8 : SINTER_DTYPE_U32));
    return grow_end(g, n, 1) != G_NONE;
}

static bool tensor_scatter(grow *g, const gop *op)
{
    const gsize batch = grow_size(g), heads = grow_size(g), width = grow_size(g),
                d[4] = { batch, heads, gsize_of(6), width }, u[4] = { batch, heads, gsize_of(2), width };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4), y = grow_shaped(g, SINTER_DTYPE_F32, u, 4),
                   at = grow_one_in(g, 3)
                            ? G_ABSENT
                            : grow_leaf(g, SINTER_DTYPE_I64, &batch, 1, false, (gfill){ 0, 4, 1, grow_below(g, 999) });
    return grow_3(g, op->name, x, y, at) != G_NONE;
}

static bool causal_conv(grow *g, const gop *op)
{
    const int64_t channels = grow_between(g, 1, 5), k = grow_between(g, 1, 4);
    const gsize d[3] = { grow_size(g), gsize_of(channels), grow_size(g) };
    if (gsize_min(g, d[2]) < 1) return false;
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 3), w = weight(g, channels, 1, k, 3),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, w);
    if (grow_one_in(g, 2)) grow_text(g, n, "activation", "silu");
    return grow_end(g, n, 1) != G_NONE;
}

static bool deform_conv(grow *g, const gop *op)
{
    const int64_t channels = grow_between(g, 1, 4), outs = grow_between(g, 1, 4), k = 2, side = 5;
    const gsize batch = grow_size(g), d[4] = { batch, gsize_of(channels), gsize_of(side), gsize_of(side) },
                o[4] = { batch, gsize_of(2 * k * k), gsize_of(side - k + 1), gsize_of(side - k + 1) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4),
                   w = grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ outs, channels, k, k }, 4, 1),
                   offset = grow_shaped(g, SINTER_DTYPE_F32, o, 4), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, w);
    grow_in(g, n, offset);
    grow_list(g, n, "kernel_shape", (const int64_t[]){ k, k }, 2);
    return grow_end(g, n, 1) != G_NONE;
}

#define NO(name, why)                                                                                                  \
    {                                                                                                                  \
        name, 0, 0, 0, NULL, 0, 0, why                                                                                 \
    }
#define MICROSOFT "com.microsoft."
/* clang-format off */
const gop gops_layers[] = {
    { "LSTM", 14, 0, 2, recurrent, 4, 0, 0 },      { "GRU", 14, 0, 2, recurrent, 3, 0, 0 },
    { "RNN", 14, 0, 2, recurrent, 1, 0, 0 },
    { "Attention", 23, 0, 2, attention, 0, 0, 0 }, { "RotaryEmbedding", 23, 0, 2, rotary, 0, 0, 0 },
    { MICROSOFT "MultiHeadAttention", 1, 0, 2, multi_head, 0, 0, 0 },
    { MICROSOFT "BiasGelu", 1, 0, 1, along_last, 1, 0, 0 }, { MICROSOFT "FastGelu", 1, 0, 1, along_last, 1, 0, 0 },
    { MICROSOFT "Gelu", 1, 0, 1, along_last, 0, 0, 0 },     { MICROSOFT "QuickGelu", 1, 0, 1, along_last, 0, 0, 0 },
    { MICROSOFT "SkipLayerNormalization", 1, 0, 2, along_last, 12, 0, 0 },
    { MICROSOFT "SkipSimplifiedLayerNormalization", 1, 0, 2, along_last, 11, 0, 0 },
    { "SimplifiedLayerNormalization", 1, 0, 1, along_last, 1, 0, 0 },
    { MICROSOFT "SimplifiedLayerNormalization", 1, 0, 1, along_last, 1, 0, 0 },
    { MICROSOFT "LayerNormalization", 1, 0, 1, along_last, 2, 0, 0 },
    { MICROSOFT "FusedMatMul", 1, 0, 2, fused_matmul, 0, 0, 0 },
    { "QLinearMatMul", 10, 0, 2, qlinear_matmul, 0, 0, 0 }, { "QLinearConv", 10, 0, 2, conv_integer, 1, 0, 0 },
    { "ConvInteger", 10, 0, 2, conv_integer, 0, 0, 0 },
    { "DynamicQuantizeLinear", 11, 0, 2, dynamic_quantize, 0, 0, 0 },
    { MICROSOFT "QLinearAdd", 1, 0, 1, qlinear_binary, 0, 0, 0 },
    { MICROSOFT "QLinearMul", 1, 0, 1, qlinear_binary, 0, 0, 0 },
    { MICROSOFT "QLinearSigmoid", 1, 0, 1, qlinear_unary, 0, 0, 0 },
    { MICROSOFT "QLinearLeakyRelu", 1, 0, 1, qlinear_unary, 0, 0, 0 },
    { "GridSample", 20, 0, 2, grid_sample, 0, 0, 0 },       { "AffineGrid", 20, 2, 1, affine_grid, 0, 0, 0 },
    { "RoiAlign", 16, 0, 1, roi_align, 0, 0, 0 },           { "NonMaxSuppression", 11, 0, 1, nms, 0, 0, 0 },
    { "Col2Im", 18, 6, 1, col2im, 0, 0, 0 },                { "Det", 11, 0, 1, det, 0, 0, 0 },
    { "DFT", 20, 4, 1, dft, 0, 0, 0 },                      { "STFT", 17, 2, 1, stft, 0, 0, 0 },
    { "HannWindow", 17, 1, 1, window, 0, 0, 0 },            { "HammingWindow", 17, 1, 1, window, 0, 0, 0 },
    { "BlackmanWindow", 17, 1, 1, window, 0, 0, 0 },
    { "Dropout", 13, 0, 1, simple, 0, T_F32, 0 },           { "Hardmax", 13, 0, 1, simple, 0, T_F32, 0 },
    { "MeanVarianceNormalization", 13, 0, 1, simple, 4, T_F32, 0 },
    { "GlobalLpPool", 2, 0, 1, simple, 4, T_F32, 0 },
    { "ai.onnx.ml.Binarizer", 1, 0, 1, simple, 0, T_F32, 0 },
    { "NegativeLogLikelihoodLoss", 13, 0, 1, loss, 0, 0, 0 }, { "SoftmaxCrossEntropyLoss", 13, 0, 1, loss, 0, 0, 0 },
    { "BitCast", 26, 0, 1, bit_cast, 0, 0, 0 },             { "TensorScatter", 24, 0, 1, tensor_scatter, 0, 0, 0 },
    { "CausalConvWithState", 27, 0, 1, causal_conv, 0, 0, 0 }, { "DeformConv", 19, 0, 1, deform_conv, 0, 0, 0 },
    NO("Bernoulli", "random"), NO("RandomNormal", "random"), NO("RandomNormalLike", "random"),
    NO("RandomUniform", "random"), NO("RandomUniformLike", "random"),
    NO("ConcatFromSequence", "takes a sequence, no tensor"), NO("SequenceAt", "takes a sequence, no tensor"),
    NO("SequenceConstruct", "gives a sequence, no tensor"), NO("SequenceEmpty", "gives a sequence, no tensor"),
    NO("SequenceErase", "takes a sequence, no tensor"), NO("SequenceInsert", "takes a sequence, no tensor"),
    NO("SequenceLength", "takes a sequence, no tensor"), NO("SequenceMap", "takes a sequence, no tensor"),
    NO("SplitToSequence", "gives a sequence, no tensor"), NO("Optional", "gives an optional, no tensor"),
    NO("OptionalGetElement", "takes an optional, no tensor"), NO("OptionalHasElement", "takes an optional, no tensor"),
    NO("Constant", "an initializer says the same"), NO("Scatter", "the old name of ScatterElements"),
    NO("Upsample", "the old name of Resize"), NO("MaxUnpool", "wants the indices of a MaxPool"),
    NO("MelWeightMatrix", "its operands are constants"), NO("LinearAttention", "not grown yet"),
    NO("ai.onnx.ml.ArrayFeatureExtractor", "not grown yet"),
    NO(MICROSOFT "DequantizeLinear", "as in the default domain"),
    NO(MICROSOFT "QuantizeLinear", "as in the default domain"), NO(MICROSOFT "DynamicQuantizeMatMul", "not grown yet"),
    NO(MICROSOFT "FusedConv", "not grown yet"), NO(MICROSOFT "GroupQueryAttention", "not grown yet"),
    NO(MICROSOFT "MatMulIntegerToFloat", "not grown yet"), NO(MICROSOFT "MatMulNBits", "not grown yet"),
    NO(MICROSOFT "QLinearAveragePool", "not grown yet"), NO(MICROSOFT "QLinearConcat", "not grown yet"),
    NO(MICROSOFT "QLinearGlobalAveragePool", "not grown yet"), NO(MICROSOFT "RotaryEmbedding", "not grown yet"),
    { 0 },
};
/* clang-format on */

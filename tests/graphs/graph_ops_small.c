/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_small.c - rows of com.microsoft's small operators, and of those that the default domain once tried. */
#include "graph_ops.h"

static uint32_t weight(grow *g, int64_t a, int64_t b, uint32_t rank)
{
    return grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ a, b }, rank, 0.5);
}

static uint32_t finish(grow *g, const gop *op, const uint32_t *in, uint32_t count)
{
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[i]);
    return n;
}

/* ---- a bias and something behind it ---- */

static bool bias_softmax(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 2, 4);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), axis = 1 + grow_below(g, rank - 1), cut = grow_below(g, axis);
    const bool is_inner = grow_one_in(g, 2);
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        d[i] = grow_dim(g, x, i);
        if (gsize_min(g, d[i]) < 1) return false;
        if (is_inner ? i >= cut && i < axis : i < cut) d[i] = gsize_of(1);
    }
    const uint32_t in[2] = { x, grow_shaped(g, SINTER_DTYPE_F32, d, rank) }, n = finish(g, op, in, 2);
    grow_int(g, n, "axis", axis);
    grow_int(g, n, "is_inner_broadcast", is_inner);
    return grow_end(g, n, 1) != G_NONE;
}

static bool bias_dropout(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 1, 4);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x);
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) d[i] = grow_dim(g, x, i);
    const bool is_wide = grow_one_in(g, 4);
    const uint32_t in[3] = { x,
                             is_wide ? grow_shaped(g, SINTER_DTYPE_F32, d, rank)
                                     : grow_shaped(g, SINTER_DTYPE_F32, d + rank - 1, 1),
                             grow_one_in(g, 3) ? G_ABSENT : grow_shaped(g, SINTER_DTYPE_F32, d, rank) },
                   n = finish(g, op, in, 3);
    return grow_end(g, n, 2) != G_NONE;
}

/* arg 0: BiasAdd, 1: BiasSplitGelu */
static bool bias_third(grow *g, const gop *op)
{
    const int64_t width = 2 * grow_between(g, 1, 4);
    const gsize d[3] = { grow_size(g), grow_size(g), gsize_of(width) };
    const uint32_t in[3] = { grow_shaped(g, SINTER_DTYPE_F32, d, 3), weight(g, width, 0, 1),
                             op->arg ? G_ABSENT : grow_shaped(g, SINTER_DTYPE_F32, d, 3) };
    return grow_end(g, finish(g, op, in, op->arg ? 2 : 3), 1) != G_NONE;
}

static bool gemm_gelu(grow *g, const gop *op)
{
    const int64_t depth = grow_between(g, 1, 6), width = grow_between(g, 1, 6);
    const gsize d[3] = { grow_size(g), grow_size(g), gsize_of(depth) };
    const uint32_t in[3] = { grow_shaped(g, SINTER_DTYPE_F32, d, 3), weight(g, depth, width, 2),
                             grow_one_in(g, 2) ? G_ABSENT : weight(g, width, 0, 1) };
    return grow_end(g, finish(g, op, in, 3), 1) != G_NONE;
}

/* ---- images ---- */

/* arg 1: SkipGroupNorm */
static bool group_norm(grow *g, const gop *op)
{
    const bool is_last = grow_one_in(g, 2);
    const int64_t groups = grow_between(g, 1, 3), channels = groups * grow_between(g, 1, 3);
    const gsize n = grow_size(g), h = gsize_of(grow_between(g, 2, 4)), w = gsize_of(grow_between(g, 2, 4)),
                c = gsize_of(channels), one = gsize_of(1);
    const gsize last[4] = { n, h, w, c }, first[4] = { n, c, h, w }, flat[2] = { n, c }, small[4] = { n, one, one, c };
    const gsize *d = is_last ? last : first;
    const uint32_t way = grow_below(g, is_last ? 3 : 2);
    uint32_t in[5] = { grow_shaped(g, SINTER_DTYPE_F32, d, 4), weight(g, channels, 0, 1), weight(g, channels, 0, 1) };
    if (op->arg) {
        in[3] = way == 0   ? grow_shaped(g, SINTER_DTYPE_F32, d, 4)
                : way == 1 ? grow_shaped(g, SINTER_DTYPE_F32, flat, 2)
                           : grow_shaped(g, SINTER_DTYPE_F32, small, 4);
        in[4] = grow_one_in(g, 2) ? G_ABSENT : weight(g, channels, 0, 1);
    }
    const uint32_t node = finish(g, op, in, op->arg ? 5 : 3);
    grow_int(g, node, "groups", groups);
    grow_int(g, node, "activation", grow_below(g, 2));
    grow_real(g, node, "epsilon", 0.0625);
    if (!is_last) grow_int(g, node, "channels_last", 0);
    return grow_end(g, node, op->arg ? 2 : 1) != G_NONE;
}

/* arg 1: with an activation and a sum */
static bool nhwc_conv(grow *g, const gop *op)
{
    const int64_t channels = grow_between(g, 1, 5), outs = grow_between(g, 1, 5), side = grow_between(g, 1, 3);
    const gsize d[4] = { grow_size(g), gsize_of(grow_between(g, 3, 6)), gsize_of(grow_between(g, 3, 6)),
                         gsize_of(channels) },
                o[4] = { d[0], gsize_of(d[1].at[0] - side + 1), gsize_of(d[2].at[0] - side + 1), gsize_of(outs) };
    uint32_t in[4] = { grow_shaped(g, SINTER_DTYPE_F32, d, 4),
                       grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ outs, channels, side, side }, 4, 1),
                       grow_one_in(g, 2) ? G_ABSENT : weight(g, outs, 0, 1), G_ABSENT };
    if (op->arg && grow_one_in(g, 2)) in[3] = grow_shaped(g, SINTER_DTYPE_F32, o, 4);
    const uint32_t n = finish(g, op, in, op->arg ? 4 : 3);
    if (op->arg && grow_one_in(g, 2)) grow_text(g, n, "activation", "Relu");
    grow_list(g, n, "kernel_shape", (const int64_t[]){ side, side }, 2);
    return grow_end(g, n, 1) != G_NONE;
}

static bool nhwc_pool(grow *g, const gop *op)
{
    const gsize d[4] = { grow_size(g), gsize_of(grow_between(g, 3, 6)), gsize_of(grow_between(g, 3, 6)), grow_size(g) };
    const uint32_t x = grow_shaped(g, grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8, d, 4),
                   n = finish(g, op, &x, 1);
    grow_list(g, n, "kernel_shape", (const int64_t[]){ 2, 3 }, 2);
    if (grow_one_in(g, 2)) grow_list(g, n, "strides", (const int64_t[]){ 2, 1 }, 2);
    if (grow_one_in(g, 2)) grow_list(g, n, "pads", (const int64_t[]){ 1, 0, 1, 1 }, 4);
    return grow_end(g, n, 1) != G_NONE;
}

static bool transposed_conv(grow *g, const gop *op)
{
    const int64_t channels = grow_between(g, 1, 4), outs = grow_between(g, 1, 4);
    const gsize pads[4] = { gsize_of(grow_below(g, 2)), gsize_of(1), gsize_of(0), gsize_of(grow_below(g, 2)) };
    const gsize d[4] = { grow_size(g), gsize_of(channels), gsize_of(grow_between(g, 2, 5)), grow_size(g) };
    if (gsize_min(g, d[3]) < 1) return false;
    const uint32_t in[4] = { grow_shaped(g, SINTER_DTYPE_F32, d, 4),
                             grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ channels, outs, 3, 3 }, 4, 1),
                             grow_ints(g, pads, 4, false), grow_one_in(g, 2) ? G_ABSENT : weight(g, outs, 0, 1) },
                   n = finish(g, op, in, 4);
    if (grow_one_in(g, 2)) grow_list(g, n, "strides", (const int64_t[]){ 2, 1 }, 2);
    return grow_end(g, n, 1) != G_NONE;
}

static bool crop_and_resize(grow *g, const gop *op)
{
    const int64_t images = grow_between(g, 1, 3);
    const gsize sizes[2] = { gsize_of(grow_between(g, 1, 4)), gsize_of(grow_between(g, 1, 4)) };
    const gsize d[4] = { gsize_of(images), grow_size(g), gsize_of(grow_between(g, 2, 6)),
                         gsize_of(grow_between(g, 2, 6)) },
                boxes = grow_size(g), b[2] = { boxes, gsize_of(4) };
    uint32_t in[4] = { grow_shaped(g, SINTER_DTYPE_F32, d, 4), G_NONE,
                       grow_leaf(g, SINTER_DTYPE_I32, &boxes, 1, false,
                                 (gfill){ 0, (double)images - 1, 1, grow_below(g, 999) }),
                       G_NONE };
    in[1] = grow_leaf(g, SINTER_DTYPE_F32, b, 2, false, (gfill){ -0.3, 1.2, 0.0731, grow_below(g, 999) });
    in[3] = grow_cast(g, grow_ints(g, sizes, 2, false), SINTER_DTYPE_I32);
    const uint32_t n = finish(g, op, in, 4);
    if (grow_one_in(g, 2)) grow_real(g, n, "extrapolation_value", 0.5);
    if (grow_one_in(g, 3)) grow_text(g, n, "mode", "nearest");
    return grow_end(g, n, 1) != G_NONE;
}

static bool crop(grow *g, const gop *op)
{
    const gsize d[4] = { grow_size(g), grow_size(g), gsize_of(grow_between(g, 4, 6)), gsize_of(grow_between(g, 4, 6)) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4), n = finish(g, op, &x, 1);
    const int64_t border[4] = { grow_below(g, 2), grow_below(g, 3), grow_below(g, 3), grow_below(g, 2) };
    grow_list(g, n, "border", border, 4);
    if (grow_one_in(g, 2)) grow_list(g, n, "scale", (const int64_t[]){ 2, 1 }, 2);
    return grow_end(g, n, 1) != G_NONE;
}

static bool image_scaler(grow *g, const gop *op)
{
    const uint32_t count = 1 + grow_below(g, 3);
    const gsize d[4] = { grow_size(g), gsize_of(count), grow_size(g), grow_size(g) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4), n = finish(g, op, &x, 1);
    if (x == G_NONE) return false;
    gattr *a = gnode_attr(&g->m->node.at[n], "bias", GA_REALS);
    if (!a) return false;
    a->count = count;
    for (uint32_t i = 0; i < count; i++) a->reals[i] = 0.25 * (double)grow_between(g, -3, 3);
    grow_real(g, n, "scale", 0.5);
    return grow_end(g, n, 1) != G_NONE;
}

/* ---- element by element ---- */

static bool scaled(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 0, 4), n = finish(g, op, &x, 1);
    if (x == G_NONE) return false;
    grow_real(g, n, "alpha", 0.5 * (double)grow_between(g, 1, 3));
    grow_real(g, n, "beta", 0.5 * (double)grow_between(g, 1, 3));
    return grow_end(g, n, 1) != G_NONE;
}

static bool complex_product(grow *g, const gop *op)
{
    gsize d[4];
    const uint32_t rank = 1 + grow_below(g, 3);
    for (uint32_t i = 0; i < rank; i++) d[i] = grow_size(g);
    d[rank] = gsize_of(2);
    const uint32_t in[2] = { grow_shaped(g, SINTER_DTYPE_F32, d, rank + 1),
                             grow_one_in(g, 3) ? grow_shaped(g, SINTER_DTYPE_F32, d + 1, rank)
                                               : grow_shaped(g, SINTER_DTYPE_F32, d, rank + 1) };
    return grow_end(g, finish(g, op, in, 2), 1) != G_NONE;
}

static bool mul_integer(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t x = grow_pick(g, (uint64_t)1 << t, 0, 4), y = grow_fellow(g, x, t);
    if (x == G_NONE || y == G_NONE) return false;
    const uint32_t in[4] = { x, grow_one_in(g, 2) ? G_ABSENT : grow_const_scalar(g, t, 3), y,
                             grow_one_in(g, 2) ? G_ABSENT : grow_const_scalar(g, t, 2) };
    return grow_end(g, finish(g, op, in, 4), 1) != G_NONE;
}

static bool matmul_integer16(grow *g, const gop *op)
{
    const gsize d[3] = { grow_size(g), grow_size(g), grow_size(g) };
    const uint32_t in[2] = { grow_shaped(g, SINTER_DTYPE_I16, d, 2), grow_shaped(g, SINTER_DTYPE_I16, d + 1, 2) };
    return grow_end(g, finish(g, op, in, 2), 1) != G_NONE;
}

static bool sum_integer(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_OF(U8) | T_OF(I8), 1, 4);
    if (x == G_NONE) return false;
    const int64_t axis = grow_below(g, grow_rank(g, x));
    const uint32_t n = finish(g, op, &x, 1);
    grow_list(g, n, "axes", &axis, 1);
    grow_int(g, n, "keepdims", grow_one_in(g, 2));
    return grow_end(g, n, 1) != G_NONE;
}

static bool all_finite(grow *g, const gop *op)
{
    uint32_t in[3];
    const uint32_t count = 1 + grow_below(g, 3), way = grow_below(g, 3);
    for (uint32_t i = 0; i < count; i++)
        if ((in[i] = grow_pick(g, T_F32, 0, 4)) == G_NONE) return false;
    const uint32_t n = finish(g, op, in, count);
    if (way) grow_int(g, n, way == 1 ? "isnan_only" : "isinf_only", 1);
    return grow_end(g, n, 1) != G_NONE;
}

/* ---- shapes, matrices, signals ---- */

static bool expand_dims(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 0, 5);
    if (x == G_NONE) return false;
    const uint32_t places = grow_rank(g, x) + 1;
    const int64_t axis = (int64_t)grow_below(g, places) - (grow_one_in(g, 2) ? places : 0);
    const uint32_t in[2] = { x, grow_const_scalar(g, SINTER_DTYPE_I32, (double)axis) };
    return grow_end(g, finish(g, op, in, 2), 1) != G_NONE;
}

static bool unfold(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 1, 4);
    if (x == G_NONE) return false;
    const uint32_t axis = grow_below(g, grow_rank(g, x));
    const int64_t least = gsize_min(g, grow_dim(g, x, axis));
    if (least < 1) return false;
    const uint32_t n = finish(g, op, &x, 1);
    grow_int(g, n, "dim", grow_one_in(g, 2) ? (int64_t)axis : (int64_t)axis - grow_rank(g, x));
    grow_int(g, n, "size", grow_between(g, 1, least));
    grow_int(g, n, "step", grow_between(g, 1, 3));
    return grow_end(g, n, 1) != G_NONE;
}

static bool distances(grow *g, const gop *op)
{
    static const char *const names[] = { "sqeuclidean", "euclidean", "cityblock", "chebyshev" };
    const gsize width = grow_size(g), a[2] = { grow_size(g), width }, b[2] = { grow_size(g), width };
    if (gsize_min(g, width) < 1) return false;
    const uint32_t in[2] = { grow_shaped(g, SINTER_DTYPE_F32, a, 2), grow_shaped(g, SINTER_DTYPE_F32, b, 2) },
                   n = finish(g, op, in, 2);
    grow_text(g, n, "metric", names[grow_below(g, 4)]);
    return grow_end(g, n, 1) != G_NONE;
}

/* Of matrices whose diagonal is the larger part. */
static bool inverse(grow *g, const gop *op)
{
    const int64_t size = grow_between(g, 1, 5);
    const gsize d[3] = { grow_size(g), gsize_of(size), gsize_of(size) };
    const uint32_t noise = grow_leaf(g, SINTER_DTYPE_F32, d, 3, false, (gfill){ -1, 1, 0, grow_below(g, 999) });
    if (noise == G_NONE) return false;
    const uint32_t e = grow_begin(g, "EyeLike");
    grow_in(g, e, grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ size, size }, 2, 1));
    const uint32_t unit = grow_cast(g, grow_end(g, e, 1), SINTER_DTYPE_F32); /* extras may give it another type */
    if (unit == G_NONE) return false;
    const uint32_t x = grow_2(g, "Add", noise, grow_2(g, "Mul", unit, grow_const_scalar(g, SINTER_DTYPE_F32, 8)));
    return x != G_NONE && grow_end(g, finish(g, op, &x, 1), 1) != G_NONE;
}

/* arg 1: the inverse */
static bool spectrum(grow *g, const gop *op)
{
    const int64_t half = grow_between(g, 1, 4);
    const gsize a[2] = { grow_size(g), gsize_of(2 * half) }, b[3] = { a[0], gsize_of(half + 1), gsize_of(2) };
    const uint32_t x = op->arg ? grow_shaped(g, SINTER_DTYPE_F32, b, 3) : grow_shaped(g, SINTER_DTYPE_F32, a, 2),
                   n = finish(g, op, &x, 1);
    grow_int(g, n, "signal_ndim", 1);
    grow_int(g, n, "onesided", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool ngrams(grow *g, const gop *op)
{
    enum { WORDS = 4 };
    const int64_t size = grow_between(g, 1, 3);
    const gsize batch = grow_size(g), length = gsize_of(grow_between(g, 1, 9)), ids[2] = { batch, length },
                scores[2] = { batch, gsize_of(WORDS) };
    const uint32_t in[2] = { grow_leaf(g, SINTER_DTYPE_I64, ids, 2, false,
                                       (gfill){ 0, WORDS - 1, 1, grow_below(g, 999) }),
                             grow_shaped(g, SINTER_DTYPE_F32, scores, 2) },
                   n = finish(g, op, in, 2);
    grow_int(g, n, "ngram_size", size);
    return grow_end(g, n, 1) != G_NONE;
}

/* Costs of few values, so that ways are equally long. */
static bool warping(grow *g, const gop *op)
{
    const gsize d[3] = { gsize_of(1), grow_size(g), grow_size(g) };
    const uint32_t skipped = grow_below(g, 2);
    if (gsize_min(g, d[1]) < 1 || gsize_min(g, d[2]) < 1) return false;
    const gfill fill = { 0, (double)grow_between(g, 1, 9), 1, grow_below(g, 999) };
    const uint32_t in[1] = { grow_leaf(g, SINTER_DTYPE_F32, d + skipped, 3 - skipped, false, fill) },
                   n = finish(g, op, in, 1);
    return grow_end(g, n, 1) != G_NONE;
}

/* ---- positions ---- */

static bool position_bias(grow *g, const gop *op)
{
    const int64_t heads = grow_between(g, 1, 3), buckets = 2 * grow_between(g, 2, 4);
    const gsize length = grow_size(g);
    if (gsize_min(g, length) < 1) return false;
    const uint32_t at = grow_ints(g, &length, 1, true), in[3] = { weight(g, buckets, heads, 2), at, at },
                   n = finish(g, op, in, 3);
    grow_int(g, n, "max_distance", buckets + grow_below(g, 20));
    if (grow_one_in(g, 2)) grow_int(g, n, "is_bidirectional", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool gated_bias(grow *g, const gop *op)
{
    const int64_t heads = grow_between(g, 1, 3), each = grow_between(g, 1, 4), wide = 2 * grow_between(g, 1, 3);
    const gsize s = grow_size(g), d[3] = { grow_size(g), s, gsize_of(heads * each) },
                r[4] = { gsize_of(1), gsize_of(heads), s, s };
    const uint32_t in[6] = { grow_shaped(g, SINTER_DTYPE_F32, d, 3),
                             weight(g, heads * each, 0, 1),
                             grow_shaped(g, SINTER_DTYPE_F32, r, 4),
                             weight(g, each, wide, 2),
                             weight(g, wide, 0, 1),
                             grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ 1, heads, 1, 1 }, 4, 0.5) },
                   n = finish(g, op, in, 6);
    grow_int(g, n, "num_heads", heads);
    return grow_end(g, n, 1) != G_NONE;
}

/* clang-format off */
#define MICROSOFT "com.microsoft."
const gop gops_small[] = {
    { MICROSOFT "BiasSoftmax", 1, 0, 1, bias_softmax, 0, 0, 0 },
    { MICROSOFT "BiasDropout", 1, 0, 1, bias_dropout, 0, 0, 0 },
    { MICROSOFT "BiasAdd", 1, 0, 1, bias_third, 0, 0, 0 },
    { MICROSOFT "BiasSplitGelu", 1, 0, 1, bias_third, 1, 0, 0 },
    { MICROSOFT "GemmFastGelu", 1, 0, 1, gemm_gelu, 0, 0, 0 },
    { MICROSOFT "GroupNorm", 1, 0, 1, group_norm, 0, 0, 0 },
    { MICROSOFT "SkipGroupNorm", 1, 0, 1, group_norm, 1, 0, 0 },
    { MICROSOFT "NhwcConv", 1, 0, 1, nhwc_conv, 0, 0, 0 },
    { MICROSOFT "NhwcFusedConv", 1, 0, 1, nhwc_conv, 1, 0, 0 },
    { MICROSOFT "NhwcMaxPool", 1, 0, 1, nhwc_pool, 0, 0, 0 },
    { MICROSOFT "ConvTransposeWithDynamicPads", 1, 4, 1, transposed_conv, 0, 0, 0 },
    { MICROSOFT "CropAndResize", 1, 8, 1, crop_and_resize, 0, 0, 0 },
    { "Crop", 1, 0, 1, crop, 0, 0, 0 },
    { "ImageScaler", 1, 0, 1, image_scaler, 0, 0, 0 },
    { "Affine", 1, 0, 1, scaled, 0, 0, 0 },
    { "ParametricSoftplus", 1, 0, 1, scaled, 0, 0, 0 },
    { "ScaledTanh", 1, 0, 1, scaled, 0, 0, 0 },
    { MICROSOFT "ComplexMul", 1, 0, 1, complex_product, 0, 0, 0 },
    { MICROSOFT "ComplexMulConj", 1, 0, 1, complex_product, 0, 0, 0 },
    { MICROSOFT "MatMulInteger16", 1, 0, 1, matmul_integer16, 0, 0, 0 },
    { MICROSOFT "MulInteger", 1, 0, 1, mul_integer, 0, 0, 0 },
    { MICROSOFT "ReduceSumInteger", 1, 0, 1, sum_integer, 0, 0, 0 },
    { MICROSOFT "IsAllFinite", 1, 0, 1, all_finite, 0, 0, 0 },
    { MICROSOFT "ExpandDims", 1, 2, 1, expand_dims, 0, 0, 0 },
    { MICROSOFT "UnfoldTensor", 1, 0, 1, unfold, 0, 0, 0 },
    { MICROSOFT "CDist", 1, 0, 1, distances, 0, 0, 0 },
    { MICROSOFT "Inverse", 1, 0, 1, inverse, 0, 0, 0 },
    { MICROSOFT "Rfft", 1, 0, 1, spectrum, 0, 0, 0 },
    { MICROSOFT "Irfft", 1, 0, 1, spectrum, 1, 0, 0 },
    { MICROSOFT "NGramRepeatBlock", 1, 0, 1, ngrams, 0, 0, 0 },
    { MICROSOFT "DynamicTimeWarping", 1, 0, 1, warping, 0, 0, 0 },
    { MICROSOFT "RelativePositionBias", 1, 0, 1, position_bias, 0, 0, 0 },
    { MICROSOFT "GatedRelativePositionBias", 1, 0, 1, gated_bias, 0, 0, 0 },
    { 0 },
};
/* clang-format on */

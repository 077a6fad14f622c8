/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_qdq.c - layers of Q/DQ networks: quantised data, quantised weights, a bias, a residual, an activation, and
 * the next quantising. Zero points stand at the ends of their ranges, too, and pads differ from side to side. */
#include "graph_ops.h"

/* One scale and one zero point. */
typedef struct steps {
    uint32_t scale, zero;
} steps;

static sinter_dtype byte_of(grow *g)
{
    return grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
}

static steps steps_of(grow *g, sinter_dtype t)
{
    static const double scale[] = { 0.0625, 0.03125, 0.021, 0.11 };
    static const double zero[] = { 0, 255, 127, 128, 120, 1 };
    const double z = zero[grow_below(g, COUNT_OF(zero))] - (t == SINTER_DTYPE_I8 ? 128 : 0);
    return (steps){ grow_const_scalar(g, SINTER_DTYPE_F32, scale[grow_below(g, COUNT_OF(scale))]),
                    grow_const_scalar(g, t, z) };
}

static uint32_t through(grow *g, uint32_t x, steps s)
{
    if (x == G_NONE || g->is_refused) return G_NONE;
    const uint32_t q = grow_3(g, "QuantizeLinear", x, s.scale, s.zero);
    return q == G_NONE ? G_NONE : grow_3(g, "DequantizeLinear", q, s.scale, s.zero);
}

static uint32_t through_any(grow *g, uint32_t x)
{
    return through(g, x, steps_of(g, byte_of(g)));
}

/* Constant codes with one scale, or one for each index of `axis`. */
static uint32_t weight(grow *g, const int64_t *d, uint32_t rank, int64_t axis)
{
    const sinter_dtype t = grow_one_in(g, 3) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const bool is_low = grow_one_in(g, 3), each = grow_one_in(g, 2), has_zero = grow_one_in(g, 3);
    const double least = t == SINTER_DTYPE_I8 ? -128 : 0, width = is_low ? 7 : 255, unit = is_low ? 0.125 : 0.0078125;
    gsize size[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) size[i] = gsize_of(d[i]);
    const uint64_t seed = grow_below(g, 9999);
    const double from = is_low && t == SINTER_DTYPE_I8 ? -3 : least;
    const uint32_t w = grow_leaf(g, t, size, rank, true, (gfill){ from, from + width, 1, seed }),
                   scale = grow_leaf(g, SINTER_DTYPE_F32, &size[axis], each, true,
                                     (gfill){ unit / 2, unit * 2, unit / 4, seed + 1 });
    uint32_t zero = G_ABSENT;
    if (t == SINTER_DTYPE_U8 || has_zero) {
        const double at = has_zero ? least + (grow_one_in(g, 2) ? 255 : 0) : least + 128;
        zero = grow_leaf(g, t, &size[axis], each, true, (gfill){ at, at, 1, seed });
        if (has_zero && grow_one_in(g, 2))
            zero = grow_leaf(g, t, &size[axis], each, true, (gfill){ least, least + 255, 1, seed });
    }
    if (w == G_NONE || scale == G_NONE || zero == G_NONE) return G_NONE;
    const uint32_t n = grow_begin(g, "DequantizeLinear");
    grow_in(g, n, w);
    grow_in(g, n, scale);
    if (zero != G_ABSENT) grow_in(g, n, zero);
    if (each) grow_since(g, 13);
    grow_int(g, n, "axis", each ? axis : 0);
    return grow_end(g, n, 1);
}

static uint32_t activated(grow *g, uint32_t x)
{
    if (x == G_NONE) return G_NONE;
    switch (grow_below(g, 6)) {
    case 0: return grow_1(g, "Relu", x);
    case 1:
        return grow_3(g, "Clip", x, grow_const_scalar(g, SINTER_DTYPE_F32, 0),
                      grow_const_scalar(g, SINTER_DTYPE_F32, 6));
    case 2: return grow_1(g, "HardSwish", x);
    case 3: return grow_1(g, "Sigmoid", x);
    default: return x;
    }
}

/* What follows a product: a residual before or behind an activation, and quantising unless floats are wanted. */
static bool finish(grow *g, uint32_t y)
{
    if (y != G_NONE && grow_one_in(g, 2)) y = activated(g, y);
    if (y != G_NONE && grow_one_in(g, 2)) y = through_any(g, y);
    if (y != G_NONE && grow_one_in(g, 3)) {
        const gsize d[4] = { grow_dim(g, y, 0), grow_dim(g, y, 1),
                             grow_rank(g, y) > 2 ? grow_dim(g, y, 2) : gsize_of(1),
                             grow_rank(g, y) > 3 ? grow_dim(g, y, 3) : gsize_of(1) };
        const uint32_t other = through_any(g, grow_shaped(g, SINTER_DTYPE_F32, d, grow_rank(g, y)));
        if (other == G_NONE) return false;
        y = grow_2(g, "Add", y, other);
        if (grow_one_in(g, 2)) y = activated(g, y);
    }
    if (y != G_NONE && !grow_one_in(g, 4)) y = through_any(g, y);
    return y != G_NONE;
}

static uint32_t bias_of(grow *g, int64_t n)
{
    const gsize d = gsize_of(n);
    const gfill fill = { -1, 1, 0.01, grow_below(g, 999) };
    if (grow_one_in(g, 3)) return G_ABSENT;
    if (grow_one_in(g, 2)) return grow_leaf(g, SINTER_DTYPE_F32, &d, 1, true, fill);
    const uint32_t code = grow_leaf(g, SINTER_DTYPE_I32, &d, 1, true, (gfill){ -900, 900, 1, fill.seed });
    return code == G_NONE ? G_NONE
                          : grow_2(g, "DequantizeLinear", code, grow_const_scalar(g, SINTER_DTYPE_F32, 0.0009765625));
}

static bool conv(grow *g, const gop *op)
{
    (void)op;
    const uint32_t x = grow_pick(g, T_F32, 4, 4);
    if (x == G_NONE) return false;
    const gsize depth = grow_dim(g, x, 1);
    if (!gsize_is_const(g, depth) || depth.at[0] < 1) return false;
    const int64_t c = depth.at[0];
    int64_t kernel[2], stride[2], dilation[2], pad[4], groups = grow_one_in(g, 3) ? c : 1;
    if (groups == 1 && c % 2 == 0 && grow_one_in(g, 4)) groups = 2;
    static const int64_t usual[] = { 1, 2, 3, 8, 15, 16, 17, 33, 64, 70 };
    const int64_t outs = groups == 1 ? usual[grow_below(g, COUNT_OF(usual))] : groups * grow_between(g, 1, 2);
    for (uint32_t i = 0; i < 2; i++) {
        kernel[i] = grow_one_in(g, 2) ? 3 : grow_between(g, 1, 5);
        stride[i] = grow_between(g, 1, 2);
        dilation[i] = grow_one_in(g, 5) ? 2 : 1;
        pad[i] = grow_below(g, (uint32_t)kernel[i]);
        pad[2 + i] = grow_below(g, (uint32_t)kernel[i]);
        const int64_t wanted = (kernel[i] - 1) * dilation[i] + 1 - pad[i] - pad[2 + i];
        if (gsize_min(g, grow_dim(g, x, 2 + i)) < wanted) kernel[i] = 1;
    }
    const uint32_t q = through_any(g, x), w = weight(g, (int64_t[]){ outs, c / groups, kernel[0], kernel[1] }, 4, 0),
                   b = bias_of(g, outs);
    if (q == G_NONE || w == G_NONE || b == G_NONE) return false;
    const uint32_t n = grow_begin(g, "Conv");
    grow_in(g, n, q);
    grow_in(g, n, w);
    if (b != G_ABSENT) grow_in(g, n, b);
    grow_int(g, n, "group", groups);
    grow_list(g, n, "strides", stride, 2);
    grow_list(g, n, "dilations", dilation, 2);
    grow_list(g, n, "pads", pad, 4);
    return finish(g, grow_end(g, n, 1));
}

/* arg 1: both factors are computed. */
static bool product(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 2, 4);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x);
    const gsize depth = grow_dim(g, x, rank - 1);
    uint32_t w, y = G_NONE, q = through_any(g, x);
    if (op->arg) {
        gsize d[4];
        for (uint32_t i = 0; i < rank; i++) d[i] = grow_dim(g, x, i);
        const bool is_turned = grow_one_in(g, 2);
        d[rank - 1] = is_turned ? depth : grow_size(g);
        d[rank - 2] = is_turned ? grow_size(g) : depth;
        w = through_any(g, grow_shaped(g, SINTER_DTYPE_F32, d, rank));
        int64_t perm[4] = { 0, 1, 2, 3 };
        perm[rank - 1] = rank - 2;
        perm[rank - 2] = rank - 1;
        if (w != G_NONE && is_turned) w = grow_transpose(g, w, perm);
        if (q != G_NONE && w != G_NONE) y = grow_2(g, "MatMul", q, w);
    } else {
        if (!gsize_is_const(g, depth) || depth.at[0] < 1) return false;
        const int64_t k = depth.at[0], n = grow_between(g, 1, 80);
        const bool is_gemm = rank == 2 && grow_one_in(g, 2), is_turned = is_gemm && grow_one_in(g, 2);
        w = weight(g, (int64_t[]){ is_turned ? n : k, is_turned ? k : n }, 2, !is_turned);
        const uint32_t b = bias_of(g, n);
        if (q == G_NONE || w == G_NONE || b == G_NONE) return false;
        if (is_gemm) {
            const uint32_t node = grow_begin(g, "Gemm");
            grow_in(g, node, q);
            grow_in(g, node, w);
            if (b != G_ABSENT) grow_in(g, node, b);
            grow_int(g, node, "transB", is_turned);
            y = grow_end(g, node, 1);
        } else {
            y = grow_2(g, "MatMul", q, w);
            if (y != G_NONE && b != G_ABSENT) y = grow_2(g, "Add", y, b);
        }
    }
    return finish(g, y);
}

/* Windows, means, images and parts, in steps that are the same before and behind, or others. */
static bool moved(grow *g, const gop *op)
{
    (void)op;
    const uint32_t x = grow_pick(g, T_F32, 4, 4), way = grow_below(g, 5);
    if (x == G_NONE) return false;
    const steps s = steps_of(g, byte_of(g));
    const uint32_t q = through(g, x, s);
    if (q == G_NONE) return false;
    uint32_t y = G_NONE;
    if (way < 2) {
        const uint32_t n = grow_begin(g, way ? "MaxPool" : "AveragePool");
        int64_t kernel[2], stride[2], pad[4];
        for (uint32_t i = 0; i < 2; i++) {
            kernel[i] = grow_between(g, 1, 3);
            if (gsize_min(g, grow_dim(g, x, 2 + i)) < kernel[i]) kernel[i] = 1;
            stride[i] = grow_between(g, 1, 2);
            pad[i] = grow_below(g, (uint32_t)kernel[i]);
            pad[2 + i] = grow_below(g, (uint32_t)kernel[i]);
        }
        grow_in(g, n, q);
        grow_list(g, n, "kernel_shape", kernel, 2);
        grow_list(g, n, "strides", stride, 2);
        grow_list(g, n, "pads", pad, 4);
        if (!way && grow_one_in(g, 2)) grow_int(g, n, "count_include_pad", 1);
        y = grow_end(g, n, 1);
    } else if (way == 2) {
        y = grow_1(g, "GlobalAveragePool", q);
    } else if (way == 3) {
        const gop *resize = gop_find("Resize");
        return resize->add(g, resize);
    } else {
        gsize d[4];
        for (uint32_t i = 0; i < 4; i++) d[i] = grow_dim(g, x, i);
        d[1] = grow_size(g);
        const uint32_t other = grow_shaped(g, SINTER_DTYPE_F32, d, 4), r = other == G_NONE     ? G_NONE
                                                                           : grow_one_in(g, 2) ? through(g, other, s)
                                                                                               : through_any(g, other);
        if (r == G_NONE) return false;
        const uint32_t n = grow_begin(g, "Concat");
        grow_in(g, n, q);
        grow_in(g, n, r);
        grow_int(g, n, "axis", 1);
        y = grow_end(g, n, 1);
    }
    if (y == G_NONE) return false;
    return (grow_one_in(g, 2) ? through(g, y, s) : through_any(g, y)) != G_NONE;
}

/* clang-format off */
const gop gops_qdq[] = {
    { "qdq_conv", 0, 0, 4, conv, 0, 0, 0 },
    { "qdq_product", 0, 0, 3, product, 0, 0, 0 },
    { "qdq_both", 0, 0, 2, product, 1, 0, 0 },
    { "qdq_moved", 0, 0, 2, moved, 0, 0, 0 },
    { 0 },
};

/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_quant.c - rows of numbers in few bits: quantising by tensor, axis and block, and what computes with it. */
#include "graph_ops.h"

static void since_quantized(grow *g, sinter_dtype t)
{
    grow_since_type(g, t);
    if (((uint64_t)1 << t) & (T_OF(I16) | T_OF(U16))) grow_since(g, 21);
}

static sinter_dtype any_of(grow *g, uint64_t types)
{
    sinter_dtype found = SINTER_DTYPE_NONE;
    for (uint32_t i = 1, count = 0; i < SINTER_DTYPE_COUNT; i++)
        if (types >> i & 1 && grow_below(g, ++count) == 0) found = (sinter_dtype)i;
    return found;
}

/* How numbers are scaled: all alike, along an axis, or in blocks of it. */
typedef struct scaling {
    uint32_t scale, zero; /* zero may be G_ABSENT */
    int64_t axis, block;
    bool has_axis;
    bool wraps; /* what is too large for an 8-bit float becomes no number */
} scaling;

/* Both are constants mostly, as exporters have them. Where runs give the scales, some may be 0, infinite or no numbers.
 */
static scaling scaling_of(grow *g, uint32_t x, sinter_dtype real, sinter_dtype quantized)
{
    scaling s = { G_NONE, G_ABSENT, 0, 0, false, false };
    gsize d[SINTER_RANK_MAX];
    const uint32_t rank = grow_rank(g, x), way = grow_below(g, 4);
    uint32_t count = 0;
    s.axis = rank ? grow_below(g, rank) : 0;
    const gsize size = rank ? grow_dim(g, x, (uint32_t)s.axis) : gsize_of(1);
    s.has_axis =
        rank && (way == 2 || (way == 3 && rank < SINTER_RANK_MAX)) && gsize_is_const(g, size) && size.at[0] > 0;
    if (s.has_axis && way == 2) d[count++] = size;
    if (s.has_axis && way == 3) {
        s.block = grow_between(g, 1, size.at[0]);
        if (size.at[0] > 2 && s.block == size.at[0]) s.block = 2;
        for (uint32_t i = 0; i < rank; i++) {
            d[i] = grow_dim(g, x, i);
            if (!gsize_is_const(g, d[i])) return s;
        }
        d[s.axis] = gsize_of((size.at[0] + s.block - 1) / s.block);
        count = rank;
        grow_since(g, 21);
    }
    if (s.has_axis) grow_since(g, 13);
    const bool is_const = !grow_one_in(g, g->has_specials ? 2 : 6);
    gfill scales = { 0.125, 0.5, 0.125, grow_below(g, 9999) };
    const bool is_odd = g->has_specials && !is_const && grow_one_in(g, 2);
    if (is_odd) scales = (gfill){ grow_one_in(g, 2) ? 0 : -0.25, 0.5, 0.25, scales.seed | G_SPECIAL };
    s.scale = grow_leaf(g, real, d, count, is_const, scales);
    const bool is_real = dtype_is_float(quantized);
    const gfill zeros = { is_real                      ? 0
                          : dtype_is_signed(quantized) ? -2
                                                       : 1,
                          is_real ? 0 : 5, 1, (scales.seed & ~G_SPECIAL) + 1 };
    if (!grow_one_in(g, 4) || quantized != SINTER_DTYPE_U8) s.zero = grow_leaf(g, quantized, d, count, is_const, zeros);
    return s;
}

static uint32_t scaled(grow *g, const char *name, uint32_t x, const scaling *s)
{
    if (g->is_refused) return G_NONE;
    const uint32_t n = grow_begin(g, name);
    grow_in(g, n, x);
    grow_in(g, n, s->scale);
    if (s->zero != G_ABSENT) grow_in(g, n, s->zero);
    if (s->has_axis) grow_int(g, n, "axis", s->axis);
    if (s->block) grow_int(g, n, "block_size", s->block);
    if (s->wraps) grow_int(g, n, "saturate", 0);
    return grow_end(g, n, 1);
}

#define T_QUANTIZED (T_OF(U8) | T_OF(I8) | T_OF(U16) | T_OF(I16) | T_I4 | T_I2 | T_F8 | T_F4)

static bool quantize(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? any_of(g, T_OF(U8) | T_OF(I8)) : any_of(g, T_QUANTIZED);
    const uint32_t x = grow_pick(g, g->m->opset >= 19 ? op->types : T_F32, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    if (grow_type(g, x) != SINTER_DTYPE_F32) grow_since(g, 19);
    since_quantized(g, t);
    const scaling s = scaling_of(g, x, grow_type(g, x), t);
    scaling wrapped = s;
    wrapped.wraps = ((uint64_t)1 << t) & T_F8 && grow_one_in(g, 4);
    const uint32_t y = scaled(g, op->name, x, &wrapped);
    if (y == G_NONE || grow_one_in(g, 3)) return y != G_NONE;
    return scaled(g, "DequantizeLinear", y, &s) != G_NONE;
}

static bool dequantize(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, grow_one_in(g, 2) ? T_OF(U8) | T_OF(I8) : T_QUANTIZED, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    since_quantized(g, grow_type(g, x));
    const scaling s = scaling_of(g, x, SINTER_DTYPE_F32, grow_type(g, x));
    return scaled(g, op->name, x, &s) != G_NONE;
}

/* ---- products and windows between quantising ones ---- */

static uint32_t through(grow *g, uint32_t x, uint32_t scale, uint32_t zero)
{
    return grow_3(g, "DequantizeLinear", grow_3(g, "QuantizeLinear", x, scale, zero), scale, zero);
}

/* A constant of 8 or 4 bits, with a scale for each of its rows, columns or blocks. */
static uint32_t quantized_weight(grow *g, const int64_t *d, uint32_t rank, int64_t axis)
{
    const sinter_dtype t = g->m->opset >= 21 && grow_one_in(g, 3) ? any_of(g, T_I4) : SINTER_DTYPE_I8;
    const uint32_t w = grow_weight(g, t, d, rank, 3);
    if (w == G_NONE) return G_NONE;
    scaling s = { G_NONE, G_ABSENT, axis, 0, true, false };
    gsize size[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) size[i] = gsize_of(d[i]);
    const bool in_blocks = g->m->opset >= 21 && grow_one_in(g, 3) && d[0] > 1;
    if (in_blocks) {
        s.axis = 0;
        s.block = 2;
        size[0] = gsize_of((d[0] + 1) / 2);
    }
    grow_since_type(g, t);
    s.scale = grow_leaf(g, SINTER_DTYPE_F32, in_blocks ? size : &size[axis], in_blocks ? rank : 1, true,
                        (gfill){ 0.0625, 0.25, 0.0625, grow_below(g, 999) });
    return scaled(g, "DequantizeLinear", w, &s);
}

/* A product with a weight that is dequantised: by one scale, by one a column, or in blocks along the sum; as it is, or
 * transposed. */
static bool packed_product(grow *g, const gop *op)
{
    (void)op;
    const int64_t k = grow_between(g, 1, 70), n = grow_between(g, 1, 70), block = 16 * grow_between(g, 1, 2);
    const bool is_turned = grow_one_in(g, 3), in_blocks = grow_one_in(g, 4) || k > block, is_narrow = grow_one_in(g, 4);
    const int64_t k_axis = is_turned, d[2] = { is_turned ? n : k, is_turned ? k : n };
    const gsize rows[2] = { grow_size(g), gsize_of(k) };
    const sinter_dtype t = any_of(g, T_I4 | T_OF(I8) | T_OF(U8) | T_F8 | (g->m->opset >= 23 ? T_F4 : 0)),
                       wide = is_narrow ? any_of(g, T_OF(F16) | T_OF(BF16)) : SINTER_DTYPE_F32;
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, rows, 2), w = grow_weight(g, t, d, 2, 8);
    if (x == G_NONE || w == G_NONE) return false;
    grow_since(g, 21);
    scaling s = { G_NONE, G_ABSENT, k_axis, 0, true, false };
    gsize size[2] = { gsize_of(d[0]), gsize_of(d[1]) };
    uint32_t rank = 2;
    if (in_blocks) {
        s.block = block;
        size[k_axis] = gsize_of((k + block - 1) / block);
    } else {
        s.axis = 1 - k_axis;
        size[0] = gsize_of(n);
        rank = grow_one_in(g, 3) ? 0 : 1;
    }
    s.scale = grow_leaf(g, wide, size, rank, true, (gfill){ 0.0625, 0.25, 0.0625, grow_below(g, 999) });
    if (!dtype_is_float(t) && grow_one_in(g, 2))
        s.zero = grow_leaf(g, t, size, rank, true, (gfill){ 0, 5, 1, grow_below(g, 999) });
    uint32_t made = scaled(g, "DequantizeLinear", w, &s);
    if (made != G_NONE && is_turned) made = grow_transpose(g, made, (const int64_t[]){ 1, 0 });
    const bool is_wide = is_narrow && grow_one_in(g, 2); /* the product is in f32 */
    if (made != G_NONE && is_wide) made = grow_cast(g, made, SINTER_DTYPE_F32);
    const uint32_t data = is_narrow && !is_wide ? grow_cast(g, x, wide) : x;
    if (made == G_NONE || data == G_NONE) return false;
    const uint32_t y = grow_begin(g, "MatMul");
    grow_in(g, y, data);
    grow_in(g, y, made);
    return grow_end(g, y, 1) != G_NONE;
}

static bool chain(grow *g, const gop *op)
{
    (void)op;
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t way = grow_below(g, 4), x = grow_pick(g, T_F32, way == 1 ? 4 : 2, 4);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.0625),
                   zero = grow_const_scalar(g, t, t == SINTER_DTYPE_U8 ? 120 : 3);
    const gsize depth = grow_dim(g, x, way == 1 ? 1 : rank - 1);
    if (!gsize_is_const(g, depth) || depth.at[0] < 1) return false;
    const int64_t outs = grow_between(g, 1, 9), image[4] = { outs, depth.at[0], 1, 1 },
                  plain[2] = { depth.at[0], outs };
    const uint32_t q = through(g, x, scale, zero);
    uint32_t y = G_NONE;
    if (way == 1) y = grow_2(g, "Conv", q, quantized_weight(g, image, 4, 0));
    else if (way == 2)
        y = grow_2(g, grow_one_in(g, 2) ? "Add" : "Mul", q,
                   through(g, grow_fellow(g, x, SINTER_DTYPE_F32), scale, zero));
    else y = grow_2(g, "MatMul", q, quantized_weight(g, plain, 2, 1));
    if (y != G_NONE && way == 1 && grow_one_in(g, 2)) y = grow_2(g, "Add", y, through(g, y, scale, zero));
    if (y == G_NONE) return false;
    return through(g, grow_one_in(g, 2) ? grow_1(g, "Relu", y) : y, scale, zero) != G_NONE;
}

/* ---- integer products ---- */

/* A weight of 8 bits: small numbers, all that there are, or those that pairs of products just fit in 16 bits with. */
static uint32_t coded_weight(grow *g, sinter_dtype t, const gsize *d, uint32_t rank)
{
    static const gfill ranges[] = {
        { -64, 64, 1, 0 },   { -64, 64, 128, 0 },   { -65, 65, 1, 0 },    { -80, 80, 1, 0 },
        { -128, 127, 1, 0 }, { -128, 127, 255, 0 }, { -128, -128, 1, 0 },
    };
    if (grow_one_in(g, 2)) return grow_shaped(g, t, d, rank);
    gfill f = ranges[grow_below(g, COUNT_OF(ranges))];
    if (t == SINTER_DTYPE_U8) f = (gfill){ 0, 255, 1, 0 };
    f.seed = grow_below(g, 9999);
    return grow_leaf(g, t, d, rank, true, f);
}

/* Codes of 8 bits over their whole range. */
static uint32_t coded_data(grow *g, sinter_dtype t, const gsize *d, uint32_t rank)
{
    const bool is_signed = t == SINTER_DTYPE_I8;
    return grow_leaf(g, t, d, rank, false,
                     (gfill){ is_signed ? -128 : 0, is_signed ? 127 : 255, 1, grow_below(g, 99) });
}

static bool matmul_integer(grow *g, const gop *op)
{
    const gsize all[2] = { grow_size(g), gsize_of(grow_between(g, 1, 40)) };
    const uint32_t x =
        grow_one_in(g, 2) ? grow_pick(g, op->types, 2, 4) : coded_data(g, any_of(g, T_OF(U8) | T_OF(I8)), all, 2);
    if (x == G_NONE) return false;
    const gsize d[2] = { grow_dim(g, x, grow_rank(g, x) - 1),
                         grow_one_in(g, 2) ? grow_size(g) : gsize_of(grow_between(g, 1, 40)) };
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t w = coded_weight(g, t, d, 2), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, w);
    return grow_end(g, n, 1) != G_NONE;
}

/* arg 1: the first operand is quantised by the operator itself. */
static bool matmul_scaled(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->arg ? T_F32 : T_OF(U8) | T_OF(I8), 2, 4);
    if (x == G_NONE) return false;
    const gsize depth = grow_dim(g, x, grow_rank(g, x) - 1), width = gsize_of(grow_between(g, 1, 9)),
                d[2] = { depth, width };
    if (gsize_min(g, depth) < 1) return false;
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t w = grow_shaped(g, t, d, 2), a = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25),
                   b = grow_one_in(g, 2) ? grow_const_scalar(g, SINTER_DTYPE_F32, 0.125)
                                         : grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ width.at[0] }, 1, 0.5),
                   a_zero = op->arg ? G_ABSENT : grow_const_scalar(g, grow_type(g, x), 2),
                   b_zero = grow_const_scalar(g, t, 1),
                   bias = grow_one_in(g, 2) ? G_ABSENT : grow_shaped(g, SINTER_DTYPE_F32, &width, 1),
                   n = grow_begin(g, op->name);
    const uint32_t full[7] = { x, w, a, b, a_zero, b_zero, bias }, dynamic[5] = { x, w, b, b_zero, bias };
    for (uint32_t i = 0; i < (op->arg ? 5u : 7u); i++) grow_in(g, n, op->arg ? dynamic[i] : full[i]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool matmul_nbits(grow *g, const gop *op)
{
    const gsize whole[2] = { grow_size(g), gsize_of(16 * grow_between(g, 1, 4)) };
    const uint32_t x = grow_one_in(g, 2) ? grow_shaped(g, SINTER_DTYPE_F32, whole, 2) : grow_pick(g, T_F32, 1, 4);
    if (x == G_NONE) return false;
    const gsize depth = grow_dim(g, x, grow_rank(g, x) - 1);
    if (!gsize_is_const(g, depth) || depth.at[0] < 1) return false;
    const int64_t k = depth.at[0], n = grow_between(g, 1, 9), block = 16, blocks = (k + block - 1) / block,
                  bits = 2 << grow_between(g, 0, 2);
    const gsize w[3] = { gsize_of(n), gsize_of(blocks), gsize_of(block * bits / 8) }, s[2] = { w[0], w[1] },
                z[2] = { w[0], gsize_of((blocks * bits + 7) / 8) };
    const gfill bytes_of = { 0, 255, 1, grow_below(g, 9999) }, scales = { 0.0625, 0.25, 0.0625, bytes_of.seed + 1 };
    const uint32_t weight = grow_leaf(g, SINTER_DTYPE_U8, w, 3, true, bytes_of),
                   scale = grow_leaf(g, SINTER_DTYPE_F32, s, 2, true, scales),
                   zero = grow_one_in(g, 2) ? G_ABSENT : grow_leaf(g, SINTER_DTYPE_U8, z, 2, true, bytes_of),
                   order = grow_one_in(g, 3) ? grow_leaf(g, SINTER_DTYPE_I32, &depth, 1, true,
                                                         (gfill){ 0, (double)(blocks - 1), 1, bytes_of.seed + 2 })
                                             : G_ABSENT,
                   node = grow_begin(g, op->name);
    grow_in(g, node, x);
    grow_in(g, node, weight);
    grow_in(g, node, scale);
    if (zero != G_ABSENT || order != G_ABSENT) grow_in(g, node, zero);
    if (order != G_ABSENT) grow_in(g, node, order);
    grow_int(g, node, "K", k);
    grow_int(g, node, "N", n);
    grow_int(g, node, "bits", bits);
    grow_int(g, node, "block_size", block);
    return grow_end(g, node, 1) != G_NONE;
}

/* ---- operators on quantised tensors ---- */

static bool qlinear_matmul(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t x = grow_pick(g, (uint64_t)1 << t, 2, 3);
    if (x == G_NONE) return false;
    const gsize d[2] = { grow_dim(g, x, grow_rank(g, x) - 1), grow_size(g) };
    const uint32_t scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25), zero = grow_const_scalar(g, t, 2),
                   y = coded_weight(g, t, d, 2), n = grow_begin(g, op->name);
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

/* arg: the rank that is wanted, 0: any; windows of 2 by 2 where it is 5. */
static bool qlinear_unary(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const bool pools = op->arg == 4 || op->arg == 5;
    const uint32_t x = grow_pick(g, (uint64_t)1 << t, pools ? 4 : op->arg ? 1 : 0, pools ? 4 : 5);
    if (x == G_NONE) return false;
    for (uint32_t i = 0; i < grow_rank(g, x) && pools; i++)
        if (gsize_min(g, grow_dim(g, x, i)) < 2 * (i > 1)) return false;
    const uint32_t scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25), zero = grow_const_scalar(g, t, 2),
                   n = grow_begin(g, op->name);
    const uint32_t in[5] = { x, scale, zero, scale, zero };
    for (uint32_t i = 0; i < 5; i++) grow_in(g, n, in[i]);
    if (op->arg == 6) grow_int(g, n, "axis", grow_below(g, grow_rank(g, x)));
    if (op->arg == 6) grow_int(g, n, "opset", grow_one_in(g, 2) ? 11 : 13);
    if (op->arg == 5) grow_list(g, n, "kernel_shape", (const int64_t[]){ 2, 2 }, 2);
    return grow_end(g, n, 1) != G_NONE;
}

static bool qlinear_where(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t x = grow_pick(g, (uint64_t)1 << t, 0, 4), y = grow_fellow(g, x, t),
                   which = grow_fellow(g, x, SINTER_DTYPE_BOOL);
    if (x == G_NONE || y == G_NONE || which == G_NONE || !grow_broadcasts(g, y, which)) return false;
    const uint32_t scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25), zero = grow_const_scalar(g, t, 2),
                   n = grow_begin(g, op->name), in[9] = { which, x, scale, zero, y, scale, zero, scale, zero };
    for (uint32_t i = 0; i < 9; i++) grow_in(g, n, in[i]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool qgemm(grow *g, const gop *op)
{
    const int64_t depth = grow_between(g, 1, 6), width = grow_between(g, 1, 6);
    const bool ta = grow_one_in(g, 3), tb = grow_one_in(g, 2), is_float = grow_one_in(g, 3);
    const gsize rows = grow_size(g), a[2] = { ta ? gsize_of(depth) : rows, ta ? rows : gsize_of(depth) };
    const sinter_dtype t = SINTER_DTYPE_U8, tw = grow_one_in(g, 2) ? t : SINTER_DTYPE_I8;
    const gsize w[2] = { gsize_of(tb ? width : depth), gsize_of(tb ? depth : width) }, o = gsize_of(width);
    const uint32_t x = grow_shaped(g, t, a, 2),
                   weight = grow_leaf(g, tw, w, 2, true, (gfill){ 0, 9, 1, grow_below(g, 999) }),
                   bias = grow_leaf(g, SINTER_DTYPE_I32, &o, 1, true, (gfill){ -9, 9, 1, grow_below(g, 999) }),
                   scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25), zero = grow_const_scalar(g, t, 2),
                   zero_w = grow_const_scalar(g, tw, 1), wide = grow_const_scalar(g, SINTER_DTYPE_F32, 2),
                   n = grow_begin(g, op->name), in[9] = { x, scale, zero, weight, scale, zero_w, bias, wide, zero };
    for (uint32_t i = 0; i < (is_float ? 7u : 9u); i++) grow_in(g, n, in[i]);
    grow_int(g, n, "transA", ta);
    grow_int(g, n, "transB", tb);
    return grow_end(g, n, 1) != G_NONE;
}

static bool qattention(grow *g, const gop *op)
{
    const int64_t heads = grow_between(g, 1, 2), width = heads * grow_between(g, 1, 3), from = grow_between(g, 1, 5);
    const gsize d[3] = { grow_size(g), grow_size(g), gsize_of(from) }, w[2] = { gsize_of(from), gsize_of(3 * width) };
    if (gsize_min(g, d[1]) < 1) return false;
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_U8, d, 3),
                   weight = grow_leaf(g, SINTER_DTYPE_I8, w, 2, true, (gfill){ -3, 3, 1, grow_below(g, 999) }),
                   bias = grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ 3 * width }, 1, 0.5),
                   scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.0625),
                   zero = grow_const_scalar(g, SINTER_DTYPE_U8, 2), zero_w = grow_const_scalar(g, SINTER_DTYPE_I8, 0);
    const bool has_past = grow_one_in(g, 2);
    const gsize c[5] = { gsize_of(2), d[0], gsize_of(heads), grow_size(g), gsize_of(width / heads) };
    const uint32_t past = has_past ? grow_shaped(g, SINTER_DTYPE_F32, c, 5) : G_ABSENT, n = grow_begin(g, op->name),
                   in[9] = { x, weight, bias, scale, scale, G_ABSENT, zero, zero_w, past };
    for (uint32_t i = 0; i < (has_past ? 9U : 8U); i++) grow_in(g, n, in[i]);
    grow_int(g, n, "num_heads", heads);
    return grow_end(g, n, has_past ? 2 : 1) != G_NONE;
}

static bool qlinear_concat(grow *g, const gop *op)
{
    const sinter_dtype t = grow_one_in(g, 2) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
    const uint32_t x = grow_pick(g, (uint64_t)1 << t, 1, 4), parts = 1 + grow_below(g, 3);
    if (x == G_NONE) return false;
    const uint32_t axis = grow_below(g, grow_rank(g, x)), scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25),
                   other = grow_const_scalar(g, SINTER_DTYPE_F32, 0.5), zero = grow_const_scalar(g, t, 2),
                   n = grow_begin(g, op->name);
    grow_in(g, n, scale);
    grow_in(g, n, zero);
    for (uint32_t i = 0; i < parts; i++) {
        grow_in(g, n, x);
        grow_in(g, n, i ? other : scale);
        grow_in(g, n, zero);
    }
    grow_int(g, n, "axis", axis);
    return grow_end(g, n, 1) != G_NONE;
}

/* arg 1: with scales and zero points. */
static bool conv_integer(grow *g, const gop *op)
{
    const sinter_dtype t = SINTER_DTYPE_U8;
    const int64_t channels = grow_between(g, 1, 5), outs = grow_between(g, 1, 5), side = grow_between(g, 1, 3);
    const bool is_last = op->since == 1 && !grow_one_in(g, 3); /* com.microsoft's, with the channels last */
    const gsize high = gsize_of(grow_between(g, 3, 8)), wide = gsize_of(grow_between(g, 3, 8)), c = gsize_of(channels),
                d[4] = { grow_size(g), is_last ? high : c, is_last ? wide : high, is_last ? c : wide };
    const gsize filter[4] = { gsize_of(outs), c, gsize_of(side), gsize_of(side) };
    const uint32_t x = grow_one_in(g, 2) ? grow_shaped(g, t, d, 4) : coded_data(g, t, d, 4),
                   scale = grow_const_scalar(g, SINTER_DTYPE_F32, 0.25), zero = grow_const_scalar(g, t, 2),
                   w = coded_weight(g, grow_one_in(g, 2) ? SINTER_DTYPE_I8 : t, filter, 4);
    if (x == G_NONE || w == G_NONE) return false;
    const uint32_t w_zero = grow_const_scalar(g, grow_type(g, w), 0), n = grow_begin(g, op->name);
    const uint32_t plain[4] = { x, w, zero, w_zero },
                   with_scales[8] = { x, scale, zero, w, scale, w_zero, scale, zero };
    for (uint32_t i = 0; i < (op->arg ? 8u : 4u); i++) grow_in(g, n, op->arg ? with_scales[i] : plain[i]);
    if (grow_one_in(g, 2)) grow_list(g, n, "pads", (const int64_t[]){ side / 2, side / 2, side / 2, side / 2 }, 4);
    if (is_last) grow_int(g, n, "channels_last", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool dynamic_quantize(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 1, 5), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    return grow_end(g, n, 3) != G_NONE;
}

/* clang-format off */
#define MICROSOFT "com.microsoft."
const gop gops_quant[] = {
    { "QuantizeLinear", 10, 0, 4, quantize, 0, T_F32 | T_OF(F16) | T_OF(BF16), 0 },
    { "DequantizeLinear", 10, 0, 3, dequantize, 0, 0, 0 },
    { MICROSOFT "QuantizeLinear", 1, 0, 1, quantize, 0, T_F32, 0 },
    { MICROSOFT "DequantizeLinear", 1, 0, 1, dequantize, 0, 0, 0 },
    { "qdq", 0, 0, 5, chain, 0, 0, 0 },
    { "packed_product", 0, 0, 4, packed_product, 0, 0, 0 },
    { "MatMulInteger", 10, 0, 2, matmul_integer, 0, T_OF(U8) | T_OF(I8), 0 },
    { MICROSOFT "MatMulIntegerToFloat", 1, 0, 1, matmul_scaled, 0, 0, 0 },
    { MICROSOFT "DynamicQuantizeMatMul", 1, 0, 1, matmul_scaled, 1, 0, 0 },
    { MICROSOFT "MatMulNBits", 1, 14, 2, matmul_nbits, 0, 0, 0 },
    { "QLinearMatMul", 10, 0, 2, qlinear_matmul, 0, 0, 0 }, { "QLinearConv", 10, 0, 2, conv_integer, 1, 0, 0 },
    { "ConvInteger", 10, 0, 2, conv_integer, 0, 0, 0 },
    { "DynamicQuantizeLinear", 11, 0, 2, dynamic_quantize, 0, 0, 0 },
    { MICROSOFT "QLinearAdd", 1, 0, 1, qlinear_binary, 0, 0, 0 },
    { MICROSOFT "QLinearMul", 1, 0, 1, qlinear_binary, 0, 0, 0 },
    { MICROSOFT "QLinearSoftmax", 1, 0, 1, qlinear_unary, 6, 0, 0 },
    { MICROSOFT "QLinearWhere", 1, 0, 1, qlinear_where, 0, 0, 0 },
    { MICROSOFT "QGemm", 1, 0, 2, qgemm, 0, 0, 0 },
    { MICROSOFT "QAttention", 1, 0, 1, qattention, 0, 0, 0 },
    { MICROSOFT "QLinearSigmoid", 1, 0, 1, qlinear_unary, 0, 0, 0 },
    { MICROSOFT "QLinearLeakyRelu", 1, 0, 1, qlinear_unary, 0, 0, 0 },
    { MICROSOFT "QLinearGlobalAveragePool", 1, 0, 1, qlinear_unary, 4, 0, 0 },
    { MICROSOFT "QLinearAveragePool", 1, 0, 1, qlinear_unary, 5, 0, 0 },
    { MICROSOFT "QLinearConv", 1, 0, 1, conv_integer, 1, 0, 0 },
    { MICROSOFT "QLinearConcat", 1, 0, 1, qlinear_concat, 0, 0, 0 },
    { 0 },
};
/* clang-format on */

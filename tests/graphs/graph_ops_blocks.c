/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_blocks.c - blocks of networks as exporters write them, with random sizes: sizes that are read from shapes
 * and computed with, masks, windows, detection heads, convolutions with what stands between them. */
#include "graph_ops.h"

#define F32 SINTER_DTYPE_F32
#define I64 SINTER_DTYPE_I64

/* ---- sizes as exporters compute them ---- */

static uint32_t with_axis(grow *g, uint32_t n, int64_t axis)
{
    grow_int(g, n, "axis", axis);
    return grow_end(g, n, 1);
}

static uint32_t concat(grow *g, const uint32_t *in, uint32_t count, int64_t axis)
{
    const uint32_t n = grow_begin(g, "Concat");
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[i]);
    return with_axis(g, n, axis);
}

static uint32_t int_const(grow *g, int64_t x)
{
    return grow_const_ints(g, &x, 1);
}

/* Size `axis` of x as one number: from an index or from a cut of the shape. */
static uint32_t size_of(grow *g, uint32_t x, int64_t axis)
{
    if (x == G_NONE) return G_NONE;
    const uint32_t shape = grow_1(g, "Shape", x);
    if (grow_one_in(g, 2)) return grow_2(g, "Gather", shape, grow_const_scalar(g, I64, (double)axis));
    const uint32_t n = grow_begin(g, "Slice");
    grow_in(g, n, shape);
    grow_in(g, n, int_const(g, axis));
    grow_in(g, n, int_const(g, axis + 1));
    grow_in(g, n, int_const(g, 0));
    return grow_2(g, "Squeeze", grow_end(g, n, 1), int_const(g, 0));
}

static uint32_t as_list(grow *g, uint32_t scalar)
{
    return grow_2(g, "Unsqueeze", scalar, int_const(g, 0));
}

/* Reshape to sizes that are numbers (0 or above, -1) or scalars of the graph. */
typedef struct part {
    bool is_number;
    int64_t size;
    uint32_t scalar;
} part;
#define NUMBER(x) ((part){ true, x, G_NONE })
#define SCALAR(v) ((part){ false, 0, v })

static uint32_t list_of(grow *g, const part *p, uint32_t count)
{
    uint32_t in[8];
    for (uint32_t i = 0; i < count; i++) in[i] = p[i].is_number ? int_const(g, p[i].size) : as_list(g, p[i].scalar);
    return concat(g, in, count, 0);
}

static uint32_t reshape(grow *g, uint32_t x, const part *p, uint32_t count)
{
    return grow_2(g, "Reshape", x, list_of(g, p, count));
}

/* y / by as whole numbers: as a division, or as floats that are rounded. */
static uint32_t quotient(grow *g, uint32_t scalar, int64_t by)
{
    if (grow_one_in(g, 2)) return grow_2(g, "Div", scalar, grow_const_scalar(g, I64, (double)by));
    /* Away from whole numbers: the judge moves floats a little. */
    const uint32_t f = grow_2(g, "Div", grow_cast(g, scalar, F32), grow_const_scalar(g, F32, (double)by));
    return grow_cast(g, grow_1(g, "Floor", grow_2(g, "Add", f, grow_const_scalar(g, F32, 0.125))), I64);
}

static uint32_t cut(grow *g, uint32_t x, uint32_t from, uint32_t to, int64_t axis)
{
    const uint32_t n = grow_begin(g, "Slice");
    grow_in(g, n, x);
    grow_in(g, n, from);
    grow_in(g, n, to);
    grow_in(g, n, int_const(g, axis));
    return grow_end(g, n, 1);
}

static bool has_all(grow *g, const gsize *d, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++)
        if (gsize_min(g, d[i]) < 1) return false;
    return true;
}

/* ---- masks ---- */

/* The mask of a decoder: lower triangle of [s, s] by comparing ranges, or by Trilu, with the padding of [batch, s]. */
static uint32_t causal_mask(grow *g, uint32_t ids)
{
    const uint32_t s = size_of(g, ids, 1), batch = size_of(g, ids, 0);
    uint32_t allowed;
    if (grow_one_in(g, 2)) {
        const uint32_t place = grow_3(g, "Range", grow_const_scalar(g, I64, 0), s, grow_const_scalar(g, I64, 1)),
                       row = grow_2(g, "Unsqueeze", place, int_const(g, 1)),
                       column = grow_2(g, "Unsqueeze", place, int_const(g, 0));
        allowed = grow_2(g, grow_one_in(g, 2) ? "GreaterOrEqual" : "Greater", row, column);
        if (grow_one_in(g, 3)) {
            const uint32_t near = grow_2(g, "Less", grow_2(g, "Sub", row, column), grow_const_scalar(g, I64, 3));
            allowed = grow_2(g, "And", allowed, near);
        }
    } else {
        const uint32_t sides = concat(g, (uint32_t[]){ as_list(g, s), as_list(g, s) }, 2, 0),
                       n = grow_begin(g, "ConstantOfShape");
        grow_in(g, n, sides);
        gattr *a = gnode_attr(&g->m->node.at[n], "value", GA_TENSOR);
        a->dtype = F32;
        a->f = 1;
        const uint32_t ones = grow_end(g, n, 1), lower = grow_begin(g, "Trilu");
        grow_in(g, lower, ones);
        grow_int(g, lower, "upper", 0);
        allowed = grow_cast(g, grow_end(g, lower, 1), SINTER_DTYPE_BOOL);
    }
    const uint32_t four[4] = { as_list(g, batch), int_const(g, 1), as_list(g, s), as_list(g, s) };
    allowed = grow_2(g, "Expand", allowed, concat(g, four, 4, 0));
    static const double masked[] = { -100, -10000, -1e9, -0x1.fffffep127 };
    const uint32_t hidden = grow_const_scalar(g, F32, masked[grow_between(g, 0, 3)]),
                   none = grow_const_scalar(g, F32, 0);
    if (grow_one_in(g, 2)) {
        const uint32_t counts = grow_2(g, "Greater", ids, grow_const_scalar(g, I64, 0)),
                       axes = grow_const_ints(g, (const int64_t[]){ 1, 2 }, 2);
        allowed = grow_2(g, "And", allowed, grow_2(g, "Unsqueeze", counts, axes));
    }
    return grow_3(g, "Where", allowed, none, hidden);
}

/* ---- a decoder's layer ---- */

static uint32_t linear(grow *g, uint32_t x, int64_t from, int64_t to)
{
    const bool is_narrow = grow_one_in(g, 5);
    uint32_t w = grow_weight(g, is_narrow ? SINTER_DTYPE_F16 : F32, (const int64_t[]){ from, to }, 2, 0.5);
    if (is_narrow) w = grow_cast(g, w, F32);
    const uint32_t y = grow_2(g, "MatMul", x, w);
    return y == G_NONE || grow_one_in(g, 2) ? y : grow_2(g, "Add", y, grow_weight(g, F32, &to, 1, 0.5));
}

/* x / sqrt(mean(x^2) + e) * w, with the casts of a 16-bit model around it. */
static uint32_t rms_norm(grow *g, uint32_t x, int64_t width)
{
    const bool is_narrow = grow_one_in(g, 4);
    if (is_narrow) x = grow_cast(g, grow_cast(g, x, SINTER_DTYPE_F16), F32);
    const uint32_t square = grow_2(g, "Pow", x, grow_const_scalar(g, F32, 2)),
                   mean = grow_2(g, "ReduceMean", square, int_const(g, -1)),
                   root = grow_1(g, "Sqrt", grow_2(g, "Add", mean, grow_const_scalar(g, F32, 0.25))),
                   y = grow_one_in(g, 2) ? grow_2(g, "Div", x, root)
                                         : grow_2(g, "Mul", x, grow_1(g, "Reciprocal", root));
    return grow_2(g, "Mul", grow_weight(g, F32, &width, 1, 1), y);
}

/* Keys of few heads, each for several heads of queries: [b, h, s, d] -> [b, h * by, s, d] by Unsqueeze, Expand,
 * Reshape. */
static uint32_t repeat_heads(grow *g, uint32_t x, int64_t heads, int64_t by, int64_t size)
{
    if (by == 1 && grow_one_in(g, 2)) return x;
    const uint32_t b = size_of(g, x, 0), s = size_of(g, x, 2), wide = grow_2(g, "Unsqueeze", x, int_const(g, 2));
    uint32_t sizes = list_of(g, (const part[]){ SCALAR(b), NUMBER(heads), NUMBER(by), SCALAR(s), NUMBER(size) }, 5);
    if (grow_one_in(g, 2)) { /* as torch.expand is written */
        const uint32_t minus = grow_2(g, "Mul", sizes, int_const(g, -1));
        const uint32_t asked =
            grow_2(g, "Equal", minus, grow_const_ints(g, (const int64_t[]){ -1, -1, -1, -1, -1 }, 5));
        const uint32_t n = grow_begin(g, "ConstantOfShape");
        grow_in(g, n, int_const(g, 5));
        gattr *a = gnode_attr(&g->m->node.at[n], "value", GA_TENSOR);
        a->dtype = I64;
        a->f = 1;
        sizes = grow_3(g, "Where", asked, grow_end(g, n, 1), sizes);
    }
    const uint32_t y = grow_2(g, "Expand", wide, sizes);
    return reshape(g, y, (const part[]){ SCALAR(b), NUMBER(heads * by), SCALAR(s), NUMBER(size) }, 4);
}

/* Halves of heads, turned by angles of positions that start behind the cache. */
static uint32_t turned(grow *g, uint32_t x, uint32_t cosine, uint32_t sine, int64_t size)
{
    uint32_t a, b;
    if (grow_one_in(g, 2)) {
        a = cut(g, x, int_const(g, 0), int_const(g, size / 2), 3);
        b = cut(g, x, int_const(g, size / 2), int_const(g, INT64_MAX), 3);
    } else {
        const uint32_t n = grow_begin(g, "Split");
        grow_in(g, n, x);
        grow_in(g, n, grow_const_ints(g, (const int64_t[]){ size / 2, size / 2 }, 2));
        grow_int(g, n, "axis", -1);
        a = grow_end(g, n, 2);
        if (a == G_NONE) return G_NONE;
        b = g->m->node.at[n].out[1];
    }
    const uint32_t half = concat(g, (uint32_t[]){ grow_1(g, "Neg", b), a }, 2, -1);
    return grow_2(g, "Add", grow_2(g, "Mul", x, cosine), grow_2(g, "Mul", half, sine));
}

static uint32_t heads_of(grow *g, uint32_t x, uint32_t b, uint32_t s, int64_t heads, int64_t size)
{
    const part way[3][4] = { { SCALAR(b), SCALAR(s), NUMBER(heads), NUMBER(size) },
                             { NUMBER(0), NUMBER(0), NUMBER(heads), NUMBER(size) },
                             { SCALAR(b), NUMBER(-1), NUMBER(heads), NUMBER(size) } };
    return grow_transpose(g, reshape(g, x, way[grow_below(g, 3)], 4), (const int64_t[]){ 0, 2, 1, 3 });
}

/* Tokens, a cache, rotary positions, grouped heads, a mask, and a gated network behind it. */
static bool decoder(grow *g, const gop *op)
{
    (void)op;
    const int64_t groups = grow_between(g, 1, 2), by = grow_between(g, 1, 2), size = 2 * grow_between(g, 1, 4),
                  heads = groups * by, width = heads * size, words = grow_between(g, 3, 9);
    const gsize batch = grow_size(g), tokens = grow_size(g), past = grow_size(g), d[2] = { batch, tokens },
                c[4] = { batch, gsize_of(groups), past, gsize_of(size) };
    if (!has_all(g, d, 2)) return false;
    const bool has_cache = grow_one_in(g, 2), turns = grow_one_in(g, 2);
    const uint32_t ids = grow_leaf(g, I64, d, 2, false, (gfill){ 0, (double)words - 1, 1, grow_below(g, 999) }),
                   x = grow_2(g, "Gather", grow_weight(g, F32, (const int64_t[]){ words, width }, 2, 1), ids),
                   b = size_of(g, ids, 0), s = size_of(g, ids, 1), y = rms_norm(g, x, width);
    uint32_t q = heads_of(g, linear(g, y, width, width), b, s, heads, size),
             k = heads_of(g, linear(g, y, width, groups * size), b, s, groups, size),
             v = heads_of(g, linear(g, y, width, groups * size), b, s, groups, size);
    if (q == G_NONE || k == G_NONE || v == G_NONE || g->is_refused) return false;
    const uint32_t old = has_cache ? grow_shaped(g, F32, c, 4) : G_NONE;
    if (turns) {
        uint32_t from = grow_const_scalar(g, I64, 0), to = s;
        if (has_cache) from = size_of(g, old, 2), to = grow_2(g, "Add", from, s);
        const uint32_t place = grow_cast(g, grow_3(g, "Range", from, to, grow_const_scalar(g, I64, 1)), F32);
        const int64_t half = size / 2;
        const uint32_t speed = grow_weight(g, F32, (const int64_t[]){ 1, half }, 2, 0.5),
                       angle = grow_2(g, "MatMul", grow_2(g, "Unsqueeze", place, int_const(g, 1)), speed),
                       all = concat(g, (uint32_t[]){ angle, angle }, 2, -1),
                       axes = grow_const_ints(g, (const int64_t[]){ 0, 1 }, 2),
                       cosine = grow_2(g, "Unsqueeze", grow_1(g, "Cos", all), axes),
                       sine = grow_2(g, "Unsqueeze", grow_1(g, "Sin", all), axes);
        q = turned(g, q, cosine, sine, size);
        k = turned(g, k, cosine, sine, size);
    }
    if (has_cache) {
        k = concat(g, (uint32_t[]){ old, k }, 2, 2);
        v = concat(g, (uint32_t[]){ grow_one_in(g, 2) ? old : grow_shaped(g, F32, c, 4), v }, 2, 2);
    }
    if (k == G_NONE || v == G_NONE || q == G_NONE) return false;
    const uint32_t keys = repeat_heads(g, k, groups, by, size), values = repeat_heads(g, v, groups, by, size);
    if (keys == G_NONE || values == G_NONE) return false;
    uint32_t scores = grow_2(g, "MatMul", q, grow_transpose(g, keys, (const int64_t[]){ 0, 1, 3, 2 }));
    scores = grow_2(g, "Mul", scores, grow_const_scalar(g, F32, 0.5));
    if (!has_cache) scores = grow_2(g, "Add", scores, causal_mask(g, ids));
    const uint32_t n = grow_begin(g, "Softmax");
    grow_in(g, n, scores);
    uint32_t p = with_axis(g, n, -1);
    if (grow_one_in(g, 3)) p = grow_3(g, "Where", grow_1(g, "IsNaN", p), grow_const_scalar(g, F32, 0), p);
    uint32_t z = grow_transpose(g, grow_2(g, "MatMul", p, values), (const int64_t[]){ 0, 2, 1, 3 });
    z = reshape(g, z, (const part[]){ SCALAR(b), SCALAR(s), NUMBER(width) }, 3);
    z = grow_2(g, "Add", x, linear(g, z, width, width));
    const uint32_t gate = linear(g, z, width, 2 * width), up = linear(g, z, width, 2 * width),
                   on = grow_2(g, "Mul", gate, grow_1(g, "Sigmoid", gate));
    z = grow_2(g, "Add", linear(g, grow_2(g, "Mul", on, up), 2 * width, width), z);
    if (z == G_NONE || grow_one_in(g, 2)) return z != G_NONE;
    return linear(g, cut(g, z, int_const(g, -1), int_const(g, INT64_MAX), 1), width, words) != G_NONE;
}

/* ---- an encoder's layer ---- */

static uint32_t layer_norm(grow *g, uint32_t x, int64_t width)
{
    const uint32_t scale = grow_weight(g, F32, &width, 1, 1), bias = grow_weight(g, F32, &width, 1, 1),
                   n = grow_begin(g, "LayerNormalization");
    grow_in(g, n, x);
    grow_in(g, n, scale);
    grow_in(g, n, bias);
    return with_axis(g, n, -1);
}

static uint32_t gelu(grow *g, uint32_t x)
{
    if (grow_one_in(g, 3)) return grow_1(g, "com.microsoft.Gelu", x);
    const uint32_t e = grow_1(g, "Erf", grow_2(g, "Div", x, grow_const_scalar(g, F32, 1.4142135)));
    const uint32_t y = grow_2(g, "Mul", x, grow_2(g, "Add", e, grow_const_scalar(g, F32, 1)));
    return grow_2(g, "Mul", y, grow_const_scalar(g, F32, 0.5));
}

/* Norms before the products, queries, keys and values from one product, rows joined by a product of sizes, and a
 * second network. */
static bool encoder(grow *g, const gop *op)
{
    (void)op;
    const int64_t heads = grow_between(g, 1, 2), size = grow_between(g, 1, 4), width = heads * size;
    const gsize d[3] = { grow_size(g), grow_size(g), gsize_of(width) };
    if (!has_all(g, d, 3) || width < 2) return false;
    const uint32_t x = grow_shaped(g, F32, d, 3), b = size_of(g, x, 0), s = size_of(g, x, 1);
    uint32_t y = layer_norm(g, x, width);
    if (grow_one_in(g, 2)) { /* as Gemm on joined rows */
        const uint32_t rows =
                           grow_2(g, "Gather", grow_1(g, "Shape", y), grow_const_ints(g, (const int64_t[]){ 0, 1 }, 2)),
                       count = grow_begin(g, "ReduceProd");
        grow_in(g, count, rows);
        grow_int(g, count, "keepdims", 0);
        const uint32_t all = grow_end(g, count, 1),
                       flat = reshape(g, y, (const part[]){ SCALAR(all), NUMBER(width) }, 2);
        y = grow_3(g, "Gemm", flat, grow_weight(g, F32, (const int64_t[]){ width, 3 * width }, 2, 0.5),
                   grow_weight(g, F32, (const int64_t[]){ 3 * width }, 1, 0.5));
    } else y = linear(g, y, width, 3 * width);
    y = reshape(g, y, (const part[]){ SCALAR(b), SCALAR(s), NUMBER(3), NUMBER(heads), NUMBER(size) }, 5);
    y = grow_transpose(g, y, (const int64_t[]){ 2, 0, 3, 1, 4 });
    if (y == G_NONE) return false;
    uint32_t part_of[3];
    for (uint32_t i = 0; i < 3; i++) part_of[i] = grow_2(g, "Gather", y, grow_const_scalar(g, I64, i));
    uint32_t scores = grow_2(g, "MatMul", part_of[0], grow_transpose(g, part_of[1], (const int64_t[]){ 0, 1, 3, 2 }));
    scores = grow_2(g, "Mul", scores, grow_const_scalar(g, F32, 0.5));
    const uint32_t n = grow_begin(g, "Softmax");
    grow_in(g, n, scores);
    y = grow_transpose(g, grow_2(g, "MatMul", with_axis(g, n, -1), part_of[2]), (const int64_t[]){ 0, 2, 1, 3 });
    y = reshape(g, y, (const part[]){ SCALAR(b), SCALAR(s), NUMBER(-1) }, 3);
    y = grow_2(g, "Add", linear(g, y, width, width), x);
    const uint32_t wide = gelu(g, linear(g, layer_norm(g, y, width), width, 2 * width));
    y = grow_2(g, "Add", y, linear(g, wide, 2 * width, width));
    return (grow_one_in(g, 2) ? layer_norm(g, y, width) : y) != G_NONE;
}

/* A norm of one row, mostly, before products, as decoders have them. */
static bool normed(grow *g, const gop *op)
{
    (void)op;
    const int64_t width = grow_one_in(g, 4) ? grow_between(g, 1, 20) : 4 * grow_between(g, 1, 12);
    gsize d[3] = { gsize_of(1), gsize_of(1), gsize_of(width) };
    if (grow_one_in(g, 3)) d[grow_below(g, 2)] = grow_size(g);
    if (!has_all(g, d, 3)) return false;
    const uint32_t x = grow_shaped(g, F32, d, 3), b = size_of(g, x, 0), s = size_of(g, x, 1);
    uint32_t y = grow_one_in(g, 2) ? layer_norm(g, x, width) : rms_norm(g, x, width);
    if (grow_one_in(g, 4)) { /* a scale of another shape */
        const int64_t all[3] = { 1, 1, width };
        const uint32_t rank = 2 * grow_below(g, 2) + 1, scale = grow_weight(g, F32, all, rank, 1),
                       n = grow_begin(g, "LayerNormalization");
        grow_in(g, n, x);
        grow_in(g, n, scale);
        y = with_axis(g, n, -1);
    }
    if (grow_one_in(g, 3)) y = reshape(g, y, (const part[]){ NUMBER(-1), NUMBER(width) }, 2);
    else if (grow_one_in(g, 4)) y = reshape(g, y, (const part[]){ SCALAR(s), SCALAR(b), NUMBER(width) }, 3);
    if (y == G_NONE) return false;
    if (grow_one_in(g, 4)) (void)grow_1(g, "Neg", y);
    uint32_t z = G_NONE;
    for (uint32_t i = grow_below(g, 3) + 1; i > 0; i--) z = gelu(g, linear(g, y, width, grow_between(g, 1, 40)));
    return z != G_NONE;
}

/* ---- windows of an image, rolled ---- */

static uint32_t rolled(grow *g, uint32_t x, int64_t by, int64_t axis)
{
    const uint32_t tail = cut(g, x, int_const(g, by), int_const(g, INT64_MAX), axis),
                   head = cut(g, x, int_const(g, 0), int_const(g, by), axis);
    return concat(g, (uint32_t[]){ tail, head }, 2, axis);
}

/* Attention in windows: padded to whole windows, rolled, cut, attended, put together, rolled back, cropped. */
static bool windows(grow *g, const gop *op)
{
    (void)op;
    const int64_t side = grow_between(g, 2, 3), depth = grow_between(g, 1, 4) * 2;
    const gsize d[4] = { grow_size(g), grow_size(g), grow_size(g), gsize_of(depth) };
    if (!has_all(g, d, 4)) return false;
    const uint32_t x = grow_shaped(g, F32, d, 4);
    if (x == G_NONE) return false;
    uint32_t b = size_of(g, x, 0), h = size_of(g, x, 1), w = size_of(g, x, 2), y = x;
    const bool pads = grow_one_in(g, 2) || !gsize_is_const(g, d[1]) || !gsize_is_const(g, d[2]);
    if (!pads && (d[1].at[0] % side || d[2].at[0] % side)) return false;
    uint32_t high = h, wide = w;
    if (pads) {
        uint32_t more[2];
        const uint32_t whole = grow_const_scalar(g, I64, (double)side), size[2] = { h, w };
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t left = grow_2(g, "Mod", size[i], whole);
            more[i] = grow_2(g, "Mod", grow_2(g, "Sub", whole, left), whole);
        }
        const part list[8] = { NUMBER(0), NUMBER(0),       NUMBER(0),       NUMBER(0),
                               NUMBER(0), SCALAR(more[0]), SCALAR(more[1]), NUMBER(0) };
        y = grow_2(g, "Pad", x, list_of(g, list, 8));
        if (y == G_NONE) return false;
        high = size_of(g, y, 1);
        wide = size_of(g, y, 2);
    }
    const bool rolls = grow_one_in(g, 2);
    if (rolls) y = rolled(g, rolled(g, y, 1, 1), 1, 2);
    const uint32_t rows = quotient(g, high, side), columns = quotient(g, wide, side);
    y = reshape(
        g, y, (const part[]){ SCALAR(b), SCALAR(rows), NUMBER(side), SCALAR(columns), NUMBER(side), NUMBER(depth) }, 6);
    y = grow_transpose(g, y, (const int64_t[]){ 0, 1, 3, 2, 4, 5 });
    y = reshape(g, y, (const part[]){ NUMBER(-1), NUMBER(side * side), NUMBER(depth) }, 3);
    const uint32_t q = linear(g, y, depth, depth), k = linear(g, y, depth, depth), v = linear(g, y, depth, depth);
    uint32_t scores = grow_2(g, "MatMul", q, grow_transpose(g, k, (const int64_t[]){ 0, 2, 1 }));
    if (grow_one_in(g, 2))
        scores = grow_2(g, "Add", scores, grow_weight(g, F32, (const int64_t[]){ 1, side * side, side * side }, 3, 1));
    y = grow_2(g, "MatMul", grow_1(g, "Softmax", scores), v);
    y = reshape(
        g, y, (const part[]){ SCALAR(b), SCALAR(rows), SCALAR(columns), NUMBER(side), NUMBER(side), NUMBER(depth) }, 6);
    y = grow_transpose(g, y, (const int64_t[]){ 0, 1, 3, 2, 4, 5 });
    y = reshape(g, y, (const part[]){ SCALAR(b), SCALAR(high), SCALAR(wide), NUMBER(-1) }, 4);
    if (rolls) y = rolled(g, rolled(g, y, -1, 1), -1, 2);
    if (pads) y = cut(g, cut(g, y, int_const(g, 0), as_list(g, h), 1), int_const(g, 0), as_list(g, w), 2);
    return grow_2(g, "Add", x, y) != G_NONE;
}

/* ---- convolutions ---- */

static uint32_t convolved(grow *g, uint32_t x, int64_t from, int64_t to, int64_t kernel, int64_t stride, int64_t groups)
{
    const uint32_t w = grow_weight(g, F32, (const int64_t[]){ to, from / groups, kernel, kernel }, 4, 0.5),
                   bias = grow_one_in(g, 2) ? G_ABSENT : grow_weight(g, F32, &to, 1, 1), n = grow_begin(g, "Conv");
    grow_in(g, n, x);
    grow_in(g, n, w);
    if (bias != G_ABSENT) grow_in(g, n, bias);
    grow_list(g, n, "kernel_shape", (const int64_t[]){ kernel, kernel }, 2);
    grow_list(g, n, "strides", (const int64_t[]){ stride, stride }, 2);
    grow_list(g, n, "pads", (const int64_t[]){ kernel / 2, kernel / 2, kernel / 2, kernel / 2 }, 4);
    if (groups > 1) grow_int(g, n, "group", groups);
    const uint32_t y = grow_end(g, n, 1);
    if (y == G_NONE || !grow_one_in(g, 3)) return y;
    uint32_t in[5] = { y };
    for (uint32_t i = 1; i < 5; i++) {
        const gsize c = gsize_of(to);
        in[i] = grow_leaf(g, F32, &c, 1, true, (gfill){ i == 4 ? 0.5 : -1, 2, 0.25, grow_below(g, 999) });
    }
    const uint32_t norm = grow_begin(g, "BatchNormalization");
    for (uint32_t i = 0; i < 5; i++) grow_in(g, norm, in[i]);
    return grow_end(g, norm, 1);
}

static uint32_t activated(grow *g, uint32_t x)
{
    switch (grow_below(g, 7)) {
    case 0: return grow_1(g, "Relu", x);
    case 1: return grow_1(g, "HardSwish", x);
    case 2: return grow_2(g, "Mul", x, grow_1(g, "Sigmoid", x));
    case 3: return grow_3(g, "Clip", x, grow_const_scalar(g, F32, 0), grow_const_scalar(g, F32, 6));
    case 4: return grow_1(g, "LeakyRelu", x);
    case 5: return grow_2(g, "Mul", x, grow_1(g, "HardSigmoid", x));
    default: return x;
    }
}

static uint32_t picture(grow *g, int64_t *channels)
{
    *channels = 2 * grow_between(g, 1, 4);
    const gsize d[4] = { grow_size(g), gsize_of(*channels), grow_size(g), grow_size(g) };
    return has_all(g, d, 4) ? grow_shaped(g, F32, d, 4) : G_NONE;
}

/* Expand, depthwise or in groups of 2 to 16 channels, squeeze and excite, project, and the way around. */
static bool inverted(grow *g, const gop *op)
{
    (void)op;
    int64_t c;
    const uint32_t x = picture(g, &c);
    if (x == G_NONE) return false;
    const int64_t group = grow_one_in(g, 3) ? (int64_t)1 << grow_between(g, 1, 4) : 1;
    const int64_t wide = group > 1 ? group * grow_between(g, 2, 3) : c * grow_between(g, 1, 3);
    const int64_t few = grow_between(g, 1, 3), kernel = 2 * grow_between(g, 0, 2) + 1;
    uint32_t y = activated(g, convolved(g, x, c, wide, 1, 1, 1));
    const int64_t stride = grow_between(g, 1, 2);
    y = activated(g, convolved(g, y, wide, wide, kernel, stride, wide / group));
    if (y == G_NONE) return false;
    if (grow_one_in(g, 2)) {
        const bool reduces = grow_one_in(g, 2);
        uint32_t s = reduces ? grow_2(g, "ReduceMean", y, grow_const_ints(g, (const int64_t[]){ 2, 3 }, 2))
                             : grow_1(g, "GlobalAveragePool", y);
        if (grow_one_in(g, 3)) { /* as matrices */
            s = linear(g, activated(g, linear(g, grow_1(g, "Flatten", s), wide, few)), few, wide);
            s = grow_2(g, "Unsqueeze", s, grow_const_ints(g, (const int64_t[]){ 2, 3 }, 2));
        } else s = convolved(g, activated(g, convolved(g, s, wide, few, 1, 1, 1)), few, wide, 1, 1, 1);
        y = grow_2(g, "Mul", grow_1(g, grow_one_in(g, 2) ? "Sigmoid" : "HardSigmoid", s), y);
    }
    y = convolved(g, y, wide, c, 1, 1, 1);
    if (y == G_NONE) return false;
    return stride == 1 ? grow_2(g, "Add", x, y) != G_NONE : true;
}

/* Each step sees all that was made before it, joined, and all of it is joined at the end; parts may come twice. */
static bool dense(grow *g, const gop *op)
{
    (void)op;
    int64_t channels;
    uint32_t made[8] = { picture(g, &channels) }, count = 1;
    if (made[0] == G_NONE) return false;
    const int64_t width = grow_between(g, 1, 9), kernel = grow_one_in(g, 2) ? 3 : 1;
    for (int64_t left = grow_between(g, 2, 5); left > 0; left--, channels += width) {
        const uint32_t all = count == 1 ? made[0] : concat(g, made, count, 1);
        made[count] = activated(g, convolved(g, activated(g, all), channels, width, kernel, 1, 1));
        if (made[count++] == G_NONE) return false;
    }
    if (grow_one_in(g, 3)) {
        made[count] = made[grow_below(g, count)];
        count++;
    }
    return concat(g, made, count, 1) != G_NONE;
}

/* Down by a pool, up again by Resize or ConvTranspose, made as large as what is joined, joined and convolved. */
static bool unet(grow *g, const gop *op)
{
    (void)op;
    int64_t c;
    const uint32_t x = picture(g, &c), way = grow_below(g, 4);
    if (x == G_NONE || gsize_min(g, grow_dim(g, x, 2)) < 2 || gsize_min(g, grow_dim(g, x, 3)) < 2) return false;
    const uint32_t skip = activated(g, convolved(g, x, c, c, 3, 1, 1)), n = grow_begin(g, "MaxPool");
    grow_in(g, n, skip);
    grow_list(g, n, "kernel_shape", (const int64_t[]){ 2, 2 }, 2);
    grow_list(g, n, "strides", (const int64_t[]){ 2, 2 }, 2);
    grow_int(g, n, "ceil_mode", 0);
    uint32_t y = activated(g, convolved(g, grow_end(g, n, 1), c, 2 * c, 3, 1, 1));
    if (y == G_NONE || skip == G_NONE || g->is_refused) return false;
    const uint32_t h = size_of(g, skip, 2), w = size_of(g, skip, 3);
    if (way == 0) { /* to the sizes of the other one */
        const uint32_t head = cut(g, grow_1(g, "Shape", y), int_const(g, 0), int_const(g, 2), 0),
                       sizes = concat(g, (uint32_t[]){ head, as_list(g, h), as_list(g, w) }, 3, 0),
                       r = grow_begin(g, "Resize");
        grow_in(g, r, y);
        grow_in(g, r, G_ABSENT);
        grow_in(g, r, G_ABSENT);
        grow_in(g, r, sizes);
        grow_text(g, r, "mode", grow_one_in(g, 2) ? "nearest" : "linear");
        grow_text(g, r, "coordinate_transformation_mode", grow_one_in(g, 2) ? "asymmetric" : "pytorch_half_pixel");
        grow_text(g, r, "nearest_mode", "floor");
        y = grow_end(g, r, 1);
    } else {
        if (way == 1) {
            const uint32_t weight = grow_weight(g, F32, (const int64_t[]){ 2 * c, 2 * c, 2, 2 }, 4, 0.5),
                           t = grow_begin(g, "ConvTranspose");
            grow_in(g, t, y);
            grow_in(g, t, weight);
            grow_list(g, t, "kernel_shape", (const int64_t[]){ 2, 2 }, 2);
            grow_list(g, t, "strides", (const int64_t[]){ 2, 2 }, 2);
            y = grow_end(g, t, 1);
        } else {
            const gsize four = gsize_of(4);
            const uint32_t scales = grow_leaf(g, F32, &four, 1, true, (gfill){ 1, 1, 1, 0 }),
                           r = grow_begin(g, "Resize");
            gvalue *v = &g->m->value.at[scales];
            v->is_explicit = true;
            v->data[0] = gtensor_new(g->m->a, F32, 1, (const int64_t[]){ 4 });
            for (int64_t i = 0; i < 4; i++) dtype_store_f64(F32, v->data[0]->data, i, i < 2 ? 1 : 2);
            judge_leaf(g->m, scales);
            grow_in(g, r, y);
            grow_in(g, r, G_ABSENT);
            grow_in(g, r, scales);
            grow_text(g, r, "mode", way == 2 ? "nearest" : "linear");
            grow_text(g, r, "coordinate_transformation_mode", way == 2 ? "asymmetric" : "half_pixel");
            grow_text(g, r, "nearest_mode", "floor");
            y = grow_end(g, r, 1);
        }
        if (y == G_NONE) return false;
        const uint32_t down = grow_2(g, "Sub", h, size_of(g, y, 2)), right = grow_2(g, "Sub", w, size_of(g, y, 3));
        if (grow_one_in(g, 2)) {
            const part list[8] = { NUMBER(0), NUMBER(0), NUMBER(0),    NUMBER(0),
                                   NUMBER(0), NUMBER(0), SCALAR(down), SCALAR(right) };
            y = grow_2(g, "Pad", y, list_of(g, list, 8));
        } else { /* the other one is cut */
            const uint32_t to_h = as_list(g, size_of(g, y, 2)), to_w = as_list(g, size_of(g, y, 3)),
                           zero = int_const(g, 0);
            const uint32_t cropped = cut(g, cut(g, skip, zero, to_h, 2), zero, to_w, 3);
            y = concat(g, (uint32_t[]){ cropped, y }, 2, 1);
            return convolved(g, y, 3 * c, c, 3, 1, 1) != G_NONE;
        }
    }
    y = concat(g, (uint32_t[]){ skip, y }, 2, 1);
    return convolved(g, y, 3 * c, c, 3, 1, 1) != G_NONE;
}

/* ---- detection ---- */

/* Scores and boxes from a feature map: the best of them, those above a limit, and what NonMaxSuppression keeps. */
static bool detection(grow *g, const gop *op)
{
    (void)op;
    int64_t c;
    const int64_t classes = grow_between(g, 1, 3);
    const uint32_t x = picture(g, &c);
    if (x == G_NONE) return false;
    uint32_t y = convolved(g, x, c, 4 + classes, 1, 1, 1);
    const uint32_t b = size_of(g, x, 0);
    y = grow_transpose(g, y, (const int64_t[]){ 0, 2, 3, 1 });
    y = reshape(g, y, (const part[]){ SCALAR(b), NUMBER(-1), NUMBER(4 + classes) }, 3);
    const uint32_t boxes = cut(g, y, int_const(g, 0), int_const(g, 4), 2),
                   scores = grow_1(g, "Sigmoid", cut(g, y, int_const(g, 4), int_const(g, INT64_MAX), 2));
    if (boxes == G_NONE || scores == G_NONE) return false;
    if (grow_one_in(g, 3)) { /* the best of all */
        const uint32_t flat = reshape(g, scores, (const part[]){ SCALAR(b), NUMBER(-1) }, 2);
        const uint32_t count = grow_2(g, "Min", as_list(g, size_of(g, flat, 1)), int_const(g, 3)),
                       n = grow_begin(g, "TopK");
        grow_in(g, n, flat);
        grow_in(g, n, count);
        grow_int(g, n, "axis", 1);
        const uint32_t best = grow_end(g, n, 2);
        if (best == G_NONE) return false;
        const uint32_t row = grow_2(g, "Div", g->m->node.at[n].out[1], grow_const_scalar(g, I64, (double)classes)),
                       wide = grow_2(g, "Expand", grow_2(g, "Unsqueeze", row, int_const(g, 2)),
                                     grow_const_ints(g, (const int64_t[]){ 1, 1, 4 }, 3)),
                       e = grow_begin(g, "GatherElements");
        grow_in(g, e, boxes);
        grow_in(g, e, wide);
        return with_axis(g, e, 1) != G_NONE;
    }
    if (grow_one_in(g, 2)) { /* those above a limit, of the first image */
        const uint32_t first = grow_2(g, "Gather", scores, grow_const_scalar(g, I64, 0)),
                       top = grow_2(g, "ReduceMax", first, int_const(g, 1)), n0 = grow_begin(g, "Squeeze");
        grow_in(g, n0, top);
        grow_in(g, n0, int_const(g, 1));
        const uint32_t above = grow_2(g, "Greater", grow_end(g, n0, 1), grow_const_scalar(g, F32, 0.5)),
                       found = grow_1(g, "NonZero", above), rows = grow_transpose(g, found, (const int64_t[]){ 1, 0 }),
                       at = grow_2(g, "Squeeze", rows, int_const(g, 1)),
                       of = grow_2(g, "Gather", boxes, grow_const_scalar(g, I64, 0));
        const uint32_t kept = grow_2(g, "Gather", of, at);
        return grow_2(g, "Mul", kept, grow_const_scalar(g, F32, 0.5)) != G_NONE;
    }
    const uint32_t by_class = grow_transpose(g, scores, (const int64_t[]){ 0, 2, 1 }),
                   most = grow_const_scalar(g, I64, 3), iou = grow_const_scalar(g, F32, 0.5),
                   least = grow_const_scalar(g, F32, 0.25), node = grow_begin(g, "NonMaxSuppression");
    const uint32_t in[5] = { boxes, by_class, most, iou, least };
    for (uint32_t i = 0; i < 5; i++) grow_in(g, node, in[i]);
    if (grow_one_in(g, 2)) grow_int(g, node, "center_point_box", 1);
    const uint32_t chosen = grow_end(g, node, 1);
    if (chosen == G_NONE) return false;
    const uint32_t columns = grow_const_ints(g, (const int64_t[]){ 0, 2 }, 2), gather = grow_begin(g, "Gather");
    grow_in(g, gather, chosen);
    grow_in(g, gather, columns);
    const uint32_t at = with_axis(g, gather, 1);
    return grow_2(g, "GatherND", boxes, at) != G_NONE;
}

/* ---- experts ---- */

/* A router, the best experts, and each expert on all rows with its weight, or on the rows that it was given. */
static bool experts(grow *g, const gop *op)
{
    (void)op;
    const int64_t width = grow_between(g, 2, 8), count = grow_between(g, 2, 3);
    const gsize d[2] = { grow_size(g), gsize_of(width) };
    if (!has_all(g, d, 2)) return false;
    const uint32_t x = grow_shaped(g, F32, d, 2);
    if (x == G_NONE) return false;
    const uint32_t p = grow_1(g, "Softmax", linear(g, x, width, count)), n = grow_begin(g, "TopK");
    grow_in(g, n, p);
    grow_in(g, n, int_const(g, 1));
    uint32_t best = grow_end(g, n, 2);
    if (best == G_NONE || g->m->node.count <= n) return false;
    const uint32_t who = g->m->node.at[n].out[1];
    uint32_t sum = grow_2(g, "Mul", x, grow_const_scalar(g, F32, 0));
    for (int64_t i = 0; i < count && sum != G_NONE && !g->is_refused; i++) {
        const uint32_t is_mine = grow_2(g, "Equal", who, grow_const_scalar(g, I64, (double)i));
        if (grow_one_in(g, 2)) {
            const uint32_t y = linear(g, x, width, width), share = grow_2(g, "Mul", best, grow_cast(g, is_mine, F32));
            sum = grow_2(g, "Add", sum, grow_2(g, "Mul", y, share));
            continue;
        }
        const uint32_t found = grow_1(g, "NonZero", is_mine),
                       row = grow_2(g, "Gather", found, grow_const_scalar(g, I64, 0)),
                       y = linear(g, grow_2(g, "Gather", x, row), width, width),
                       share = grow_2(g, "Mul", y, grow_2(g, "Gather", best, row)),
                       at = grow_2(g, "Unsqueeze", row, int_const(g, 1)), s = grow_begin(g, "ScatterND");
        grow_in(g, s, sum);
        grow_in(g, s, at);
        grow_in(g, s, share);
        if (g->m->opset >= 16) grow_text(g, s, "reduction", "add");
        sum = grow_end(g, s, 1);
    }
    return sum != G_NONE;
}

/* ---- a tagger ---- */

/* Words, an LSTM or a GRU both ways, its directions put beside each other, and a product. */
static bool tagger(grow *g, const gop *op)
{
    (void)op;
    const int64_t words = 7, width = grow_between(g, 1, 5), hidden = grow_between(g, 1, 4),
                  gates = grow_one_in(g, 2) ? 4 : 3, dirs = grow_between(g, 1, 2);
    const gsize d[2] = { grow_size(g), grow_size(g) };
    if (!has_all(g, d, 2)) return false;
    const uint32_t ids = grow_leaf(g, I64, d, 2, false, (gfill){ 0, (double)words - 1, 1, grow_below(g, 999) }),
                   table = grow_weight(g, F32, (const int64_t[]){ words, width }, 2, 1),
                   x = grow_transpose(g, grow_2(g, "Gather", table, ids), (const int64_t[]){ 1, 0, 2 });
    if (x == G_NONE) return false;
    const uint32_t batch = size_of(g, ids, 0),
                   sizes = list_of(g, (const part[]){ NUMBER(dirs), SCALAR(batch), NUMBER(hidden) }, 3),
                   w = grow_weight(g, F32, (const int64_t[]){ dirs, gates * hidden, width }, 3, 0.5),
                   r = grow_weight(g, F32, (const int64_t[]){ dirs, gates * hidden, hidden }, 3, 0.5),
                   bias = grow_weight(g, F32, (const int64_t[]){ dirs, 2 * gates * hidden }, 2, 0.5),
                   zeros = grow_1(g, "ConstantOfShape", sizes), n = grow_begin(g, gates == 4 ? "LSTM" : "GRU");
    const uint32_t in[7] = { x, w, r, bias, G_ABSENT, zeros, zeros };
    for (uint32_t i = 0; i < (gates == 4 ? 7u : 6u); i++) grow_in(g, n, in[i]);
    grow_int(g, n, "hidden_size", hidden);
    if (dirs == 2) grow_text(g, n, "direction", "bidirectional");
    if (gates == 3) grow_int(g, n, "linear_before_reset", 1);
    uint32_t y = grow_end(g, n, gates == 4 ? 3 : 2);
    if (y == G_NONE) return false;
    if (dirs == 1) y = grow_2(g, "Squeeze", y, int_const(g, 1));
    else {
        y = grow_transpose(g, y, (const int64_t[]){ 0, 2, 1, 3 });
        y = reshape(g, y, (const part[]){ NUMBER(0), NUMBER(0), NUMBER(-1) }, 3);
    }
    return linear(g, grow_transpose(g, y, (const int64_t[]){ 1, 0, 2 }), dirs * hidden, 3) != G_NONE;
}

/* clang-format off */
const gop gops_blocks[] = {
    { "decoder", 0, 0, 2, decoder, 0, 0, 0 },     { "encoder", 0, 0, 3, encoder, 0, 0, 0 },
    { "normed", 0, 0, 3, normed, 0, 0, 0 },
        { "windows", 0, 0, 3, windows, 0, 0, 0 },
    { "inverted", 0, 0, 3, inverted, 0, 0, 0 },   { "unet", 0, 0, 3, unet, 0, 0, 0 },
    { "dense", 0, 0, 3, dense, 0, 0, 0 },
    { "detection", 0, 0, 3, detection, 0, 0, 0 }, { "experts", 0, 0, 2, experts, 0, 0, 0 },
    { "tagger", 0, 0, 2, tagger, 0, 0, 0 },
    { 0 },
};
/* clang-format on */

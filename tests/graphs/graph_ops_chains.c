/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_chains.c - several operators as models have them: what rules, groups and layouts are made for. */
#include "graph_ops.h"

static uint32_t activation(grow *g, uint32_t x)
{
    static const char *const names[] = { "Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Erf" };
    if (x == G_NONE || !dtype_is_float(grow_type(g, x))) return x;
    const uint32_t y = grow_1(g, names[grow_below(g, COUNT_OF(names))], x);
    if (y == G_NONE || !grow_one_in(g, 3)) return y;
    return grow_2(g, "Mul", x, y);
}

/* An anchor, a bias, a residual, an activation, and readers in between. */
static bool anchor(grow *g, const gop *op)
{
    (void)op;
    static const char *const anchors[] = {
        "MatMul",     "Conv",        "Gemm",          "Softmax", "LayerNormalization",
        "ReduceMean", "AveragePool", "ConvTranspose", "Gather",  "Resize"
    };
    const gop *a = gop_find(anchors[grow_below(g, COUNT_OF(anchors))]);
    const uint32_t before = g->m->node.count;
    if (!a->add(g, a) || g->m->node.count == before) return false;
    uint32_t x = g->m->node.at[g->m->node.count - 1].out[0];
    for (uint32_t i = 1 + grow_below(g, 4); i-- > 0 && x != G_NONE && !g->is_refused;) {
        const sinter_dtype t = grow_type(g, x);
        if (!dtype_is_float(t)) break;
        const uint32_t way = grow_below(g, 5);
        uint32_t next = way < 2 ? activation(g, x) : grow_2(g, way == 2 ? "Mul" : "Add", x, grow_fellow(g, x, t));
        if (next != G_NONE) x = next;
    }
    return true;
}

static bool softmax(grow *g, const gop *op)
{
    (void)op;
    const uint32_t x = grow_pick(g, T_F32 | T_OF(F16), 1, 5);
    if (x == G_NONE) return false;
    const int64_t axis = (int64_t)grow_below(g, grow_rank(g, x));
    if (gsize_min(g, grow_dim(g, x, (uint32_t)axis)) < 1) return false;
    const uint32_t axes = grow_const_ints(g, &axis, 1), top = grow_2(g, "ReduceMax", x, axes),
                   e = grow_1(g, "Exp", grow_2(g, "Sub", x, top)), sum = grow_2(g, "ReduceSum", e, axes);
    return grow_2(g, "Div", e, sum) != G_NONE;
}

static bool norm(grow *g, const gop *op)
{
    (void)op;
    const uint32_t x = grow_pick(g, T_F32, 1, 4);
    if (x == G_NONE) return false;
    const uint32_t last = grow_rank(g, x) - 1;
    const gsize d = grow_dim(g, x, last);
    if (gsize_min(g, d) < 2) return false;
    const uint32_t axes = grow_const_ints(g, (const int64_t[]){ -1 }, 1), mean = grow_2(g, "ReduceMean", x, axes),
                   c = grow_2(g, "Sub", x, mean),
                   square = grow_one_in(g, 2) ? grow_2(g, "Mul", c, c)
                                              : grow_2(g, "Pow", c, grow_const_scalar(g, SINTER_DTYPE_F32, 2)),
                   v = grow_2(g, "ReduceMean", square, axes),
                   s = grow_1(g, "Sqrt", grow_2(g, "Add", v, grow_const_scalar(g, SINTER_DTYPE_F32, 0.25))),
                   y = grow_2(g, "Div", c, s), scaled = grow_2(g, "Mul", y, grow_shaped(g, SINTER_DTYPE_F32, &d, 1));
    if (scaled == G_NONE) return false;
    (void)grow_2(g, "Add", scaled, grow_shaped(g, SINTER_DTYPE_F32, &d, 1));
    return true;
}

/* Halves of the last axis, turned; the same angle twice. */
static bool rotary(grow *g, const gop *op)
{
    (void)op;
    const uint32_t x = grow_pick(g, T_F32 | T_OF(F16), 2, 4);
    if (x == G_NONE) return false;
    const uint32_t last = grow_rank(g, x) - 1;
    const gsize size = grow_dim(g, x, last);
    if (!gsize_is_const(g, size) || size.at[0] % 2 || size.at[0] < 2) return false;
    const int64_t axis = last, zero = 0, half = size.at[0] / 2, all = INT64_MAX;
    uint32_t part[2];
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t s = grow_const_ints(g, i ? &half : &zero, 1), e = grow_const_ints(g, i ? &all : &half, 1),
                       a = grow_const_ints(g, &axis, 1), n = grow_begin(g, "Slice");
        grow_in(g, n, x);
        grow_in(g, n, s);
        grow_in(g, n, e);
        grow_in(g, n, a);
        part[i] = grow_end(g, n, 1);
        if (part[i] == G_NONE) return false;
    }
    const uint32_t minus = grow_1(g, "Neg", part[1]);
    const gsize angles[2] = { grow_dim(g, x, last - 1), gsize_of(half) };
    const uint32_t angle = grow_shaped(g, grow_type(g, x), angles, 2), both = grow_begin(g, "Concat");
    grow_in(g, both, angle);
    grow_in(g, both, angle);
    grow_int(g, both, "axis", -1);
    const uint32_t doubled = grow_end(g, both, 1), c = grow_1(g, "Cos", doubled), s = grow_1(g, "Sin", doubled);
    if (minus == G_NONE || g->is_refused) return false;
    const uint32_t join = grow_begin(g, "Concat");
    grow_in(g, join, minus);
    grow_in(g, join, part[0]);
    grow_int(g, join, "axis", -1);
    const uint32_t turned = grow_end(g, join, 1);
    return grow_2(g, "Add", grow_2(g, "Mul", x, c), grow_2(g, "Mul", turned, s)) != G_NONE;
}

/* Heads by reshape and transpose, scores, mask, softmax, sum, and back. */
static bool attention(grow *g, const gop *op)
{
    (void)op;
    const sinter_dtype t = SINTER_DTYPE_F32;
    const int64_t heads = grow_between(g, 1, 3), width = grow_between(g, 1, 5) * 2, total = heads * width;
    const gsize d[3] = { grow_size(g), grow_size(g), gsize_of(total) };
    if (gsize_min(g, d[1]) < 1) return false;
    const uint32_t x = grow_shaped(g, t, d, 3);
    if (x == G_NONE) return false;
    uint32_t part[3];
    const bool is_tied = grow_one_in(g, 4);
    for (uint32_t i = 0; i < 3; i++) {
        if (i && is_tied) {
            part[i] = part[0];
            continue;
        }
        const uint32_t w = grow_weight(g, t, (const int64_t[]){ total, total }, 2, 0.5), y = grow_2(g, "MatMul", x, w);
        part[i] = grow_reshape(g, y, (const gsize[]){ d[0], d[1], gsize_of(heads), gsize_of(width) }, 4);
        part[i] = grow_transpose(g, part[i], (const int64_t[]){ 0, 2, 1, 3 });
        if (part[i] == G_NONE) return false;
    }
    const uint32_t k = grow_transpose(g, part[1], (const int64_t[]){ 0, 1, 3, 2 });
    uint32_t scores = grow_2(g, "MatMul", part[0], k);
    scores = grow_2(g, grow_one_in(g, 2) ? "Mul" : "Div", scores, grow_const_scalar(g, t, 2));
    if (scores != G_NONE && grow_one_in(g, 2)) {
        const gsize mask[2] = { grow_one_in(g, 2) ? d[1] : gsize_of(1), d[1] };
        scores = grow_2(g, "Add", scores, grow_shaped(g, t, mask, 2));
    }
    const uint32_t y = grow_2(g, "MatMul", grow_1(g, "Softmax", scores), part[2]),
                   back = grow_transpose(g, y, (const int64_t[]){ 0, 2, 1, 3 });
    return grow_reshape(g, back, (const gsize[]){ d[0], d[1], gsize_of(total) }, 3) != G_NONE;
}

static gsize gsize_times(gsize a, gsize b)
{
    for (uint32_t i = 0; i < G_ENVS; i++) a.at[i] *= b.at[i];
    return a;
}

static uint32_t linear(grow *g, uint32_t x, int64_t from, int64_t to)
{
    const gsize bias = gsize_of(to);
    const uint32_t w = grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ from, to }, 2, 0.5),
                   y = grow_2(g, "MatMul", x, w);
    if (y == G_NONE || grow_one_in(g, 4)) return y;
    const uint32_t b = grow_leaf(g, SINTER_DTYPE_F32, &bias, 1, !grow_one_in(g, 4), grow_fill(g, SINTER_DTYPE_F32));
    return grow_one_in(g, 2) ? grow_2(g, "Add", y, b) : grow_2(g, "Add", b, y);
}

/* Attention as modules of [tokens, batch, size] are exported: rows are turned before the first product and behind the
 * last one, batch and heads are one axis, which scores may take apart. */
static bool tokens_first(grow *g, const gop *op)
{
    (void)op;
    const int64_t count = grow_between(g, 1, 3), width = grow_between(g, 1, 5) * 2, total = count * width;
    const gsize batch = grow_size(g), tokens = grow_size(g), heads = gsize_of(count), size = gsize_of(width),
                all = gsize_times(batch, heads), rows = gsize_times(tokens, batch);
    if (gsize_min(g, tokens) < 1) return false;
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, (const gsize[]){ batch, tokens, gsize_of(total) }, 3);
    if (x == G_NONE) return false;
    const uint32_t turned = grow_transpose(g, x, (const int64_t[]){ 1, 0, 2 });
    const bool is_apart = grow_one_in(g, 2), turns_joined = grow_one_in(g, 2), is_flat = grow_one_in(g, 2);
    uint32_t part[3];
    for (uint32_t i = 0; i < 3; i++) {
        part[i] = grow_reshape(g, linear(g, turned, total, total), (const gsize[]){ tokens, all, size }, 3);
        const bool is_turned_key = i == 1 && turns_joined;
        part[i] =
            grow_transpose(g, part[i], is_turned_key ? (const int64_t[]){ 1, 2, 0 } : (const int64_t[]){ 1, 0, 2 });
        const gsize d[4] = { batch, heads, is_turned_key ? size : tokens, is_turned_key ? tokens : size };
        if (is_apart) part[i] = grow_reshape(g, part[i], d, 4);
        if (i == 1 && !is_turned_key)
            part[i] =
                grow_transpose(g, part[i], is_apart ? (const int64_t[]){ 0, 1, 3, 2 } : (const int64_t[]){ 0, 2, 1 });
        if (part[i] == G_NONE) return false;
    }
    uint32_t scores = grow_2(g, "MatMul", part[0], part[1]);
    scores = grow_2(g, "Mul", scores, grow_const_scalar(g, SINTER_DTYPE_F32, 0.5));
    if (scores != G_NONE && is_apart && grow_one_in(g, 2)) { /* of keys */
        const gsize mask[4] = { grow_one_in(g, 2) ? batch : gsize_of(1), gsize_of(1), gsize_of(1), tokens };
        scores = grow_2(g, "Add", scores, grow_shaped(g, SINTER_DTYPE_F32, mask, 4));
    }
    uint32_t y = grow_2(g, "MatMul", grow_1(g, "Softmax", scores), part[2]);
    y = is_apart ? grow_transpose(g, y, (const int64_t[]){ 2, 0, 1, 3 })
                 : grow_transpose(g, y, (const int64_t[]){ 1, 0, 2 });
    y = is_flat ? grow_reshape(g, y, (const gsize[]){ rows, gsize_of(total) }, 2)
                : grow_reshape(g, y, (const gsize[]){ tokens, batch, gsize_of(total) }, 3);
    y = linear(g, y, total, grow_one_in(g, 4) ? total * 2 : total);
    if (y == G_NONE) return false;
    if (is_flat) y = grow_reshape(g, y, (const gsize[]){ tokens, batch, grow_dim(g, y, 1) }, 3);
    return grow_transpose(g, y, (const int64_t[]){ 1, 0, 2 }) != G_NONE;
}

/* Tokens are mixed: a transposition, one or two products with weights, the transposition back. Now and then another
 * node reads the value between. */
static bool mixer(grow *g, const gop *op)
{
    (void)op;
    const int64_t tokens = grow_between(g, 1, 9), wide = grow_between(g, 1, 9);
    const uint32_t rank = 2 + grow_below(g, 3);
    gsize d[4];
    for (uint32_t i = 0; i < rank; i++) d[i] = grow_size(g);
    d[rank - 2] = gsize_of(tokens);
    int64_t perm[4] = { 0, 1, 2, 3 };
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, rank);
    if (x != G_NONE && !grow_one_in(g, 3)) x = grow_1(g, grow_one_in(g, 2) ? "Softmax" : "Abs", x);
    uint32_t y = grow_transpose(g, x, perm);
    y = linear(g, y, tokens, wide);
    if (!grow_one_in(g, 3)) y = linear(g, activation(g, y), wide, tokens);
    if (y != G_NONE && grow_one_in(g, 2)) y = grow_2(g, "Mul", y, grow_const_scalar(g, SINTER_DTYPE_F32, 2));
    if (y == G_NONE || grow_transpose(g, y, perm) == G_NONE) return false;
    return !grow_one_in(g, 5) || grow_1(g, "Neg", y) != G_NONE;
}

/* A chain of views of one value, read at the end and on the way. */
static bool views(grow *g, const gop *op)
{
    (void)op;
    static const char *const names[] = { "Transpose", "Slice",   "Reshape", "Expand", "Split",
                                         "Unsqueeze", "Squeeze", "Flatten", "Concat" };
    uint32_t made = 0;
    for (uint32_t i = 0; i < 5 && !g->is_refused; i++) {
        const gop *a = gop_find(names[grow_below(g, COUNT_OF(names))]);
        made += a->add(g, a);
    }
    return made > 0;
}

/* One over a root: as a division, a reciprocal or a power. */
static bool root(grow *g, const gop *op)
{
    (void)op;
    const uint32_t x = grow_pick(g, T_F32 | T_OF(F16), 0, 5);
    if (x == G_NONE) return false;
    const sinter_dtype t = grow_type(g, x);
    const uint32_t positive = grow_2(g, "Add", grow_1(g, "Abs", x), grow_const_scalar(g, t, 0.5)),
                   way = grow_below(g, 3);
    if (way == 0) return grow_2(g, "Pow", positive, grow_const_scalar(g, t, -0.5)) != G_NONE;
    const uint32_t r = grow_1(g, "Sqrt", positive);
    return (way == 1 ? grow_1(g, "Reciprocal", r) : grow_2(g, "Div", grow_fellow(g, x, t), r)) != G_NONE;
}

/* A value of these sizes that a list gives while the model runs. What a size is at most, is then known of all of them
 * together, and of each one alone. */
static uint32_t sized_late(grow *g, const gsize *d, uint32_t rank)
{
    gsize count = gsize_of(1);
    for (uint32_t i = 0; i < rank; i++)
        for (uint32_t k = 0; k < G_ENVS; k++) count.at[k] *= d[i].at[k];
    if (gsize_min(g, count) < 1) return G_NONE;
    uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, &count, 1);
    if (x != G_NONE && grow_one_in(g, 2)) x = activation(g, x);
    uint32_t shape = grow_one_in(g, 2) ? grow_computed(g, d, rank, false) : G_NONE;
    if (shape == G_NONE) shape = grow_input_ints(g, SINTER_DTYPE_I64, d, rank, false);
    x = x == G_NONE || shape == G_NONE ? G_NONE : grow_2(g, "Reshape", x, shape);
    return x != G_NONE && grow_one_in(g, 4) ? grow_1(g, "Abs", x) : x;
}

/* Layers whose operands have sizes that data decides. */
static bool late(grow *g, const gop *op)
{
    (void)op;
    const uint32_t way = grow_below(g, 8), rank = 2 + grow_below(g, 3);
    gsize d[5];
    for (uint32_t i = 0; i < rank + 1; i++)
        for (uint32_t k = 0; k < G_ENVS; k++) d[i].at[k] = grow_between(g, 1, i + 1 < rank ? 5 : 8);
    const uint32_t last = rank - 1;
    const gsize wide = gsize_of(grow_between(g, 1, 33)), axis = gsize_of(grow_between(g, 1, 8));
    if (way < 3) { /* a product with a weight, with another such value, or with itself */
        if (way == 0) d[last] = axis;
        const uint32_t x = sized_late(g, d, rank);
        if (x == G_NONE) return false;
        const gsize w[2] = { d[last], wide };
        int64_t perm[4] = { 0, 1, 2, 3 };
        perm[last - 1] = last;
        perm[last] = last - 1;
        gsize other[4];
        for (uint32_t i = 0; i < rank; i++) other[i] = i == last ? d[rank] : i + 1 == last ? d[last] : d[i];
        const uint32_t y = way == 0
                               ? grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ w[0].at[0], wide.at[0] }, 2, 1)
                           : way == 1 ? sized_late(g, other, rank)
                                      : grow_transpose(g, x, perm);
        return y != G_NONE && activation(g, grow_2(g, "MatMul", x, y)) != G_NONE;
    }
    if (way == 3) { /* Gemm */
        d[1] = axis;
        const uint32_t x = sized_late(g, d, 2);
        if (x == G_NONE) return false;
        return grow_3(g, "Gemm", x, grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ axis.at[0], wide.at[0] }, 2, 1),
                      grow_weight(g, SINTER_DTYPE_F32, &wide.at[0], 1, 1)) != G_NONE;
    }
    if (way == 4) { /* Conv */
        for (uint32_t i = 2; i < 4; i++)
            for (uint32_t k = 0; k < G_ENVS; k++) d[i].at[k] = grow_between(g, 3, 8);
        d[1] = axis;
        const uint32_t x = sized_late(g, d, 4);
        return x != G_NONE && grow_2(g, "Conv", x,
                                     grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ wide.at[0], axis.at[0], 3, 3 },
                                                 4, 0.5)) != G_NONE;
    }
    if (way == 5) { /* Attention */
        const gsize q[4] = { d[0], gsize_of(2), d[1], axis }, k[4] = { d[0], gsize_of(2), d[2], axis };
        const uint32_t a = sized_late(g, q, 4), b = sized_late(g, k, 4), c = sized_late(g, k, 4);
        return a != G_NONE && b != G_NONE && c != G_NONE && grow_3(g, "Attention", a, b, c) != G_NONE;
    }
    const uint32_t x = sized_late(g, d, rank);
    if (x == G_NONE) return false;
    if (way == 6) return grow_1(g, grow_one_in(g, 2) ? "Softmax" : "LogSoftmax", x) != G_NONE;
    const gsize k = gsize_of(gsize_min(g, d[last]));
    const uint32_t most = grow_ints(g, &k, 1, false), n = grow_begin(g, "TopK");
    grow_in(g, n, x);
    grow_in(g, n, most);
    return grow_end(g, n, 2) != G_NONE;
}

/* clang-format off */
const gop gops_chains[] = {
    { "anchor", 0, 0, 14, anchor, 0, 0, 0 },   { "softmax", 0, 0, 3, softmax, 0, 0, 0 },
    { "norm", 0, 0, 3, norm, 0, 0, 0 },        { "rotary", 0, 0, 4, rotary, 0, 0, 0 },
    { "root", 0, 0, 2, root, 0, 0, 0 },
    { "attention", 0, 0, 4, attention, 0, 0, 0 }, { "tokens_first", 0, 0, 4, tokens_first, 0, 0, 0 },
    { "mixer", 0, 0, 3, mixer, 0, 0, 0 },      { "views", 0, 0, 8, views, 0, 0, 0 },
    { "late", 0, 0, 4, late, 0, 0, 0 },
    { 0 },
};
/* clang-format on */

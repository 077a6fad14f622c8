/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_elementwise.c - rows of operators that work on single elements. */
#include "graph_ops.h"

static bool unary(grow *g, const gop *op)
{
    return grow_1(g, op->name, grow_pick(g, op->types, 0, SINTER_RANK_MAX)) != G_NONE;
}

/* arg: 1: alpha, 2: alpha and beta. */
static bool with_alpha(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (grow_one_in(g, 2)) grow_real(g, n, "alpha", 0.125 * (double)grow_between(g, 1, 12));
    if (op->arg == 2 && grow_one_in(g, 2)) grow_real(g, n, "beta", 0.25 * (double)grow_between(g, 0, 4));
    return grow_end(g, n, 1) != G_NONE;
}

/* One tensor as both operands, an operand of the same shape, or one that is broadcast, on either side. */
static bool binary(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t y = grow_fellow(g, x, grow_type(g, x));
    return grow_one_in(g, 2) ? grow_2(g, op->name, x, y) != G_NONE : grow_2(g, op->name, y, x) != G_NONE;
}

static bool variadic(grow *g, const gop *op)
{
    uint32_t in[4];
    const uint32_t count = 1 + grow_below(g, 4);
    in[0] = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (in[0] == G_NONE) return false;
    for (uint32_t i = 1; i < count; i++) in[i] = grow_fellow(g, in[0], grow_type(g, in[0]));
    /* Each must broadcast with the others. */
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (in[i] == G_NONE || !grow_broadcasts(g, in[i], in[k])) in[i] = in[0];
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[i]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool division(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    uint32_t y = grow_fellow(g, x, grow_type(g, x));
    if (y == G_NONE) return false;
    for (uint32_t k = 0; k < g->m->envs; k++)
        for (int64_t i = 0; i < grow_data(g, y, k)->count; i++)
            if (gtensor_at(grow_data(g, y, k), i) == 0) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, y);
    if (op->arg) grow_int(g, n, "fmod", dtype_is_float(grow_type(g, x)) || grow_one_in(g, 2));
    return grow_end(g, n, 1) != G_NONE;
}

static bool bit_shift(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t y = grow_fellow(g, x, grow_type(g, x)), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, y);
    grow_text(g, n, "direction", grow_one_in(g, 2) ? "LEFT" : "RIGHT");
    return grow_end(g, n, 1) != G_NONE;
}

static bool where(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t c = grow_fellow(g, x, SINTER_DTYPE_BOOL);
    uint32_t y = grow_fellow(g, x, grow_type(g, x));
    if (c == G_NONE || y == G_NONE || !grow_broadcasts(g, c, y)) y = x;
    return (grow_one_in(g, 2) ? grow_3(g, op->name, c, x, y) : grow_3(g, op->name, c, y, x)) != G_NONE;
}

static bool clip(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const sinter_dtype t = grow_type(g, x);
    const uint32_t low = grow_one_in(g, 3) ? G_ABSENT : grow_const_scalar(g, t, dtype_is_signed(t) ? -1 : 1),
                   high = grow_one_in(g, 3)   ? G_ABSENT
                          : grow_one_in(g, 4) ? grow_leaf(g, t, NULL, 0, false, (gfill){ 1, 4, 1, grow_below(g, 1000) })
                                              : grow_const_scalar(g, t, 3),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, low);
    if (high != G_ABSENT) grow_in(g, n, high);
    return grow_end(g, n, 1) != G_NONE;
}

/* What a negative float becomes as an unsigned integer, ONNX leaves open; so what is too large for the type. */
static bool holds(grow *g, sinter_dtype t, uint32_t x)
{
    int64_t low, high;
    dtype_int_range(t, &low, &high);
    for (uint32_t k = 0; k < g->m->envs; k++)
        for (int64_t i = 0; i < grow_data(g, x, k)->count; i++) {
            const double at = gtensor_at(grow_data(g, x, k), i);
            if (!(at > (double)low - 1 && at < (double)high + 1)) return false;
        }
    return true;
}

static bool cast(grow *g, const gop *op)
{
    static const sinter_dtype to[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F16, SINTER_DTYPE_BF16,
                                       SINTER_DTYPE_F64, SINTER_DTYPE_I32, SINTER_DTYPE_I64,
                                       SINTER_DTYPE_I8,  SINTER_DTYPE_U8,  SINTER_DTYPE_BOOL },
                              small[] = { SINTER_DTYPE_F8E4M3FN,   SINTER_DTYPE_F8E4M3FNUZ, SINTER_DTYPE_F8E5M2,
                                          SINTER_DTYPE_F8E5M2FNUZ, SINTER_DTYPE_I4,         SINTER_DTYPE_U4,
                                          SINTER_DTYPE_F4E2M1,     SINTER_DTYPE_I2,         SINTER_DTYPE_U2 };
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const bool is_small = grow_one_in(g, 4);
    const sinter_dtype t = is_small            ? small[grow_below(g, COUNT_OF(small))]
                           : grow_one_in(g, 5) ? SINTER_DTYPE_F32
                                               : to[grow_below(g, COUNT_OF(to))];
    if (dtype_is_int(t) && (dtype_is_float(grow_type(g, x)) || sinter_dtype_bits(t) < 8) && !holds(g, t, x))
        return false;
    grow_since_type(g, t);
    grow_since_type(g, grow_type(g, x));
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_int(g, n, "to", onnx_type_of(t));
    if (((uint64_t)1 << t) & T_F8 && grow_one_in(g, 3)) grow_int(g, n, "saturate", 0);
    return grow_end(g, n, 1) != G_NONE;
}

static bool cast_like(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F | T_B, 0, SINTER_RANK_MAX), y = grow_find(g, T_F | T_B, 0, SINTER_RANK_MAX);
    return grow_2(g, op->name, x, y) != G_NONE;
}

static bool prelu(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), from = grow_below(g, rank + 1);
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = from; i < rank; i++) d[i - from] = grow_one_in(g, 3) ? gsize_of(1) : grow_dim(g, x, i);
    return grow_2(g, op->name, x, grow_shaped(g, grow_type(g, x), d, rank - from)) != G_NONE;
}

static bool is_inf(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (grow_one_in(g, 2)) grow_int(g, n, grow_one_in(g, 2) ? "detect_negative" : "detect_positive", 0);
    return grow_end(g, n, 1) != G_NONE;
}

static bool gelu(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (grow_one_in(g, 2)) grow_text(g, n, "approximate", "tanh");
    return grow_end(g, n, 1) != G_NONE;
}

static bool shrink(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_real(g, n, "lambd", 0.5);
    if (grow_one_in(g, 2)) grow_real(g, n, "bias", 0.25);
    return grow_end(g, n, 1) != G_NONE;
}

static bool gated(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < grow_rank(g, x); i++) d[i] = grow_dim(g, x, i);
    return grow_2(g, op->name, x, grow_shaped(g, grow_type(g, x), d, grow_rank(g, x))) != G_NONE;
}

/* clang-format off */
#define TF (T_F32 | T_OF(F64) | T_OF(F16) | T_OF(BF16))
#define TS (T_OF(I32) | T_OF(I64) | T_OF(I8))
/* A plugin of tests/plugin_set.c: any layout, a state, tactics. */
static bool plugin(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (grow_one_in(g, 2)) grow_real(g, n, "scale", 0.25 * (double)grow_between(g, -6, 6));
    if (grow_one_in(g, 2)) grow_real(g, n, "bias", 0.5 * (double)grow_between(g, -3, 3));
    return grow_end(g, n, 1) != G_NONE;
}

/* Another: rows, row-major alone, a workspace. */
static bool plugin_of_rows(grow *g, const gop *op)
{
    return grow_1(g, op->name, grow_pick(g, op->types, 1, SINTER_RANK_MAX)) != G_NONE;
}

/* Several types, scales that matter to bytes alone. */
static bool plugin_of_bytes(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (grow_one_in(g, 2)) grow_real(g, n, "scale_in", 0.25 * (double)grow_between(g, 1, 6));
    if (grow_one_in(g, 2)) grow_real(g, n, "scale_out", 0.5 * (double)grow_between(g, 1, 3));
    return grow_end(g, n, 1) != G_NONE;
}

/* Results of other sizes than the operand's, one of which may be absent; an operand that need not be given. */
static bool plugin_of_pairs(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 2, 2), y = grow_one_in(g, 3) ? grow_find(g, T_ALL, 0, 4) : G_NONE;
    if (x == G_NONE) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (y != G_NONE) grow_in(g, n, y);
    if (grow_one_in(g, 2)) grow_int(g, n, "k", grow_between(g, 1, 4));
    if (grow_one_in(g, 3)) grow_text(g, n, "mode", "wrap");
    if (grow_one_in(g, 3)) grow_list(g, n, "axes", (const int64_t[]){ 2, -5 }, 2);
    return grow_end(g, n, 1 + grow_below(g, 2)) != G_NONE;
}

const gop gops_elementwise[] = {
    { "Abs", 13, 0, 3, unary, 0, T_N, 0 },        { "Neg", 13, 0, 4, unary, 0, TF | TS, 0 },
    { "Relu", 14, 0, 6, unary, 0, TF | TS, 0 },   { "Sigmoid", 13, 0, 5, unary, 0, TF, 0 },
    { "Tanh", 13, 0, 4, unary, 0, TF, 0 },        { "Exp", 13, 0, 3, unary, 0, TF, 0 },
    { "Log", 13, 0, 2, unary, 0, TF, 0 },         { "Sqrt", 13, 0, 3, unary, 0, TF, 0 },
    { "Erf", 13, 0, 2, unary, 0, TF, 0 },         { "Floor", 13, 0, 2, unary, 0, TF, 0 },
    { "Ceil", 13, 0, 2, unary, 0, TF, 0 },        { "Round", 11, 0, 2, unary, 0, TF, 0 },
    { "Sign", 13, 0, 2, unary, 0, T_N, 0 },       { "Reciprocal", 13, 0, 2, unary, 0, TF, 0 },
    { "Softplus", 1, 0, 2, unary, 0, TF, 0 },     { "Softsign", 1, 0, 2, unary, 0, TF, 0 },
    { "HardSwish", 14, 0, 2, unary, 0, TF, 0 },   { "Mish", 18, 0, 2, unary, 0, TF, 0 },
    { "Sin", 7, 0, 2, unary, 0, TF, 0 },          { "Cos", 7, 0, 2, unary, 0, TF, 0 },
    { "Tan", 7, 0, 2, unary, 0, TF, 0 },          { "Asin", 7, 0, 2, unary, 0, TF, 0 },
    { "Acos", 7, 0, 2, unary, 0, TF, 0 },         { "Atan", 7, 0, 2, unary, 0, TF, 0 },
    { "Sinh", 9, 0, 2, unary, 0, TF, 0 },         { "Cosh", 9, 0, 2, unary, 0, TF, 0 },
    { "Asinh", 9, 0, 2, unary, 0, TF, 0 },        { "Acosh", 9, 0, 2, unary, 0, TF, 0 },
    { "Atanh", 9, 0, 2, unary, 0, TF, 0 },        { "Not", 1, 0, 2, unary, 0, T_B, 0 },
    { "BitwiseNot", 18, 0, 2, unary, 0, T_I, 0 }, { "IsNaN", 9, 0, 2, unary, 0, TF, 0 },
    { "Identity", 1, 0, 3, unary, 0, T_ALL | T_SMALL, 0 },
    { "IsInf", 10, 0, 2, is_inf, 0, T_F32 | T_OF(F64), 0 },
    { "Elu", 6, 0, 2, with_alpha, 1, TF, 0 },     { "Celu", 12, 0, 2, with_alpha, 1, T_F32, 0 },
    { "LeakyRelu", 6, 0, 3, with_alpha, 1, TF, 0 }, { "ThresholdedRelu", 10, 0, 2, with_alpha, 1, TF, 0 },
    { "HardSigmoid", 6, 0, 2, with_alpha, 2, TF, 0 }, { "Selu", 6, 0, 2, unary, 0, TF, 0 },
    { "SwiGLU", 28, 0, 1, gated, 0, TF, 0 },
    { "Swish", 24, 0, 1, with_alpha, 1, TF, 0 },  { "Gelu", 20, 0, 2, gelu, 0, TF, 0 },
    { "Shrink", 9, 0, 2, shrink, 0, TF, 0 },      { "PRelu", 16, 0, 2, prelu, 0, TF | T_OF(I32), 0 },
    { "Add", 14, 0, 12, binary, 0, T_N, 0 },      { "Sub", 14, 0, 8, binary, 0, T_N, 0 },
    { "Mul", 14, 0, 12, binary, 0, T_N, 0 },      { "Div", 14, 0, 5, division, 0, T_N, 0 },
    { "Mod", 13, 0, 2, division, 1, T_N, 0 },     { "Pow", 15, 0, 2, binary, 0, TF, 0 },
    { "Equal", 13, 0, 3, binary, 0, T_ALL, 0 },   { "Greater", 13, 0, 3, binary, 0, T_N, 0 },
    { "Less", 13, 0, 3, binary, 0, T_N, 0 },      { "GreaterOrEqual", 16, 0, 2, binary, 0, T_N, 0 },
    { "LessOrEqual", 16, 0, 2, binary, 0, T_N, 0 }, { "And", 7, 0, 2, binary, 0, T_B, 0 },
    { "Or", 7, 0, 2, binary, 0, T_B, 0 },         { "Xor", 7, 0, 2, binary, 0, T_B, 0 },
    { "BitwiseAnd", 18, 0, 2, binary, 0, T_I, 0 }, { "BitwiseOr", 18, 0, 2, binary, 0, T_I, 0 },
    { "BitwiseXor", 18, 0, 2, binary, 0, T_I, 0 },
    { "BitShift", 11, 0, 2, bit_shift, 0, T_OF(U8) | T_OF(U16) | T_OF(U32) | T_OF(U64), 0 },
    { "Max", 13, 0, 4, variadic, 0, T_N, 0 },     { "Min", 13, 0, 4, variadic, 0, T_N, 0 },
    { "Sum", 13, 0, 3, variadic, 0, TF, 0 },      { "Mean", 13, 0, 3, variadic, 0, TF, 0 },
    { "Where", 16, 0, 5, where, 0, T_ALL, 0 },    { "Clip", 13, 0, 4, clip, 0, T_N, 0 },
    { "Cast", 13, 0, 6, cast, 0, T_ALL | T_SMALL, 0 },      { "CastLike", 15, 0, 2, cast_like, 0, 0, 0 },
    { "CustomPlugin", 7, 0, 2, plugin, 0, T_F32 | T_OF(F16), 0 },
    { "CustomKernel", 7, 0, 1, plugin_of_rows, 0, T_F32, 0 },
    { "quant.CustomQuantized", 7, 0, 1, plugin_of_bytes, 0, T_F32 | T_OF(F16) | T_OF(I8), 0 },
    { "CustomPairs", 7, 0, 1, plugin_of_pairs, 0, T_F32, 0 },
    { 0 },
};
/* clang-format on */

/* SPDX-License-Identifier: Apache-2.0 */
/* rules_arith.c - arithmetic with constants, and functions spelled in other functions. */
#include "opt/rewrite.h"

#include <math.h>

enum { X, S, T };

/* x op c -> x where c is neutral. The driver refuses where c broadcasts x to another shape. */
static ir_value_id drop_neutral(rewriter *r, const match *m, double neutral)
{
    double c;
    return rw_scalar(r, m->v[S], &c) && c == neutral ? m->v[X] : 0;
}

/* x + 0 is x but for the sign of a zero: -0 + 0 is 0. */
static ir_value_id drop_zero(rewriter *r, const match *m)
{
    return drop_neutral(r, m, 0);
}

static ir_value_id drop_subtracted_zero(rewriter *r, const match *m)
{
    double c;
    return rw_scalar(r, m->v[S], &c) && c == 0 && !signbit(c) ? m->v[X] : 0;
}

static ir_value_id drop_one(rewriter *r, const match *m)
{
    return drop_neutral(r, m, 1);
}

static ir_value_id fold_mul_mul(rewriter *r, const match *m)
{
    return build_mul(r->b, m->v[X], build_mul(r->b, m->v[S], m->v[T]));
}

static ir_value_id fold_add_add(rewriter *r, const match *m)
{
    return build_add(r->b, m->v[X], build_add(r->b, m->v[S], m->v[T]));
}

/* x - c -> x + (-c): one form for constants. */
static ir_value_id sub_to_add(rewriter *r, const match *m)
{
    if (!dtype_is_signed(rw_value(r, m->v[X])->dtype)) return 0;
    return build_add(r->b, m->v[X], build_neg(r->b, m->v[S]));
}

/* x / c -> x * (1/c) where every element's reciprocal is exact. */
static ir_value_id div_to_mul(rewriter *r, const match *m)
{
    view c;
    if (!rw_is_float(r, m->v[S]) || !ir_const_view(r->g, m->v[S], &c)) return 0;
    const int64_t count = view_count(&c);
    if (count > 1 << 16) return 0;
    for (int64_t i = 0; i < count; i++) {
        int exponent;
        const double x = view_load_f64(&c, i);
        if (fabs(frexp(x, &exponent)) != 0.5 || exponent > 14 || exponent < -12) return 0;
    }
    if (!ir_look(r->g, m->v[S])) return 0;
    return build_mul(r->b, m->v[X], build_reciprocal(r->b, m->v[S]));
}

/* Is v known to be 0 or more, or NaN? Then its root is its power of a half: of minus infinity that is infinity. */
static bool is_not_negative(const rewriter *r, ir_value_id v, int depth)
{
    double c;
    if (rw_scalar(r, v, &c)) return c >= 0;
    const ir_node *n = rw_node(r, rw_value(r, v)->producer);
    if (!rw_value(r, v)->producer || depth > 4) return false;
    switch (n->op) {
    case OP_abs:
    case OP_relu:
    case OP_exp:
    case OP_sqrt:
    case OP_sigmoid:
    case OP_softmax: return true;
    case OP_mul:
        if (n->in[0] == n->in[1]) return true;
        return is_not_negative(r, n->in[0], depth + 1) && is_not_negative(r, n->in[1], depth + 1);
    case OP_pow: return rw_scalar(r, n->in[1], &c) && c == 2;
    case OP_max: return is_not_negative(r, n->in[0], depth + 1) || is_not_negative(r, n->in[1], depth + 1);
    case OP_add:
    case OP_div: return is_not_negative(r, n->in[0], depth + 1) && is_not_negative(r, n->in[1], depth + 1);
    case OP_cast: return rw_is_float(r, n->in[0]) && is_not_negative(r, n->in[0], depth + 1);
    case OP_reduce: {
        const int64_t kind = ((const attrs_reduce *)n->attrs)->kind;
        if (kind == reduce_kind_sum_square || kind == reduce_kind_l1 || kind == reduce_kind_l2) return true;
        return (kind == reduce_kind_mean || kind == reduce_kind_sum || kind == reduce_kind_max) &&
               is_not_negative(r, n->in[0], depth + 1);
    }
    default: return false;
    }
}

static ir_value_id power(rewriter *r, const match *m)
{
    double p;
    if (!rw_is_float(r, m->v[X]) || !rw_scalar(r, m->v[S], &p)) return 0;
    if (p == 1) return m->v[X];
    if (p == 2) return build_mul(r->b, m->v[X], m->v[X]);
    const bool is_root = (p == 0.5 || p == -0.5) && is_not_negative(r, m->v[X], 0);
    if (p == 0.5 && is_root) return build_sqrt(r->b, m->v[X]);
    if (p == -0.5 && is_root) return build_rsqrt(r->b, m->v[X]);
    if (p == -1) return build_reciprocal(r->b, m->v[X]);
    return 0;
}

/* pow(x, 3) -> x * x * x, once nothing looks for the pow any more. */
static ir_value_id cube(rewriter *r, const match *m)
{
    if (!rw_is_float(r, m->v[X]) || !rw_is_scalar(r, m->v[S], 3)) return 0;
    return build_mul(r->b, build_mul(r->b, m->v[X], m->v[X]), m->v[X]);
}

static ir_value_id div_one(rewriter *r, const match *m)
{
    double c;
    return rw_is_float(r, m->v[X]) && rw_scalar(r, m->v[S], &c) && c == 1 ? build_reciprocal(r->b, m->v[X]) : 0;
}

static ir_value_id to_rsqrt(rewriter *r, const match *m)
{
    return build_rsqrt(r->b, m->v[X]);
}

static ir_value_id take_x(rewriter *r, const match *m)
{
    (void)r;
    return m->v[X];
}

static ir_value_id max_to_relu(rewriter *r, const match *m)
{
    double c;
    return rw_scalar(r, m->v[S], &c) && c == 0 ? build_relu(r->b, m->v[X]) : 0;
}

static ir_value_id to_clip(rewriter *r, ir_value_id x, double low, double high)
{
    if (!(low <= high)) return 0;
    const sinter_dtype t = rw_value(r, x)->dtype;
    const ir_value_id least = build_scalar(r->b, t, low), most = build_scalar(r->b, t, high);
    return build_clip(r->b, x, least, most);
}

/* min(max(x, lo), hi) or max(min(x, hi), lo) -> clip(x, lo, hi). */
static ir_value_id min_max(rewriter *r, const match *m)
{
    double low, high;
    const bool ok = rw_scalar(r, m->v[S], &low) && rw_scalar(r, m->v[T], &high);
    return ok && dtype_is_float(rw_value(r, m->v[X])->dtype) ? to_clip(r, m->v[X], low, high) : 0;
}

static ir_value_id min_relu(rewriter *r, const match *m)
{
    double high;
    return rw_scalar(r, m->v[T], &high) && high >= 0 && rw_is_float(r, m->v[X]) ? to_clip(r, m->v[X], 0, high) : 0;
}

/* Limits of a clip node with uniform bounds. */
static bool limits(const rewriter *r, const ir_node *clip, double *low, double *high)
{
    return rw_scalar(r, clip->in[1], low) && rw_scalar(r, clip->in[2], high) &&
           dtype_is_float(rw_value(r, clip->in[0])->dtype);
}

/* clip(relu(x)) or relu(clip(x)) -> clip. */
static ir_value_id clip_relu(rewriter *r, const match *m)
{
    const ir_node *outer = rw_node(r, m->root), *inner = rw_node(r, m->node[1]);
    double low, high;
    if (!limits(r, outer->op == OP_clip ? outer : inner, &low, &high) || high < 0) return 0;
    return to_clip(r, m->v[X], low > 0 ? low : 0, high);
}

static ir_value_id clip_clip(rewriter *r, const match *m)
{
    double low, high, low_in, high_in;
    if (!limits(r, rw_node(r, m->root), &low, &high) || !limits(r, rw_node(r, m->node[1]), &low_in, &high_in)) return 0;
    if (low > high || low_in > high_in || low > high_in || high < low_in) return 0;
    return to_clip(r, m->v[X], low > low_in ? low : low_in, high < high_in ? high : high_in);
}

enum { ANY2 = 3, ANY3 = 4 };
/* clang-format off */
const rule rules_arith[] = {
    { "add-zero",        MATCH(add, ANY(X), CONST(S)),                             drop_zero,    REASSOC },
    { "sub-zero",        MATCH(sub, ANY(X), CONST(S)),                             drop_subtracted_zero, EXACT },
    { "mul-one",         MATCH(mul, ANY(X), CONST(S)),                             drop_one,     EXACT },
    { "div-one",         MATCH(div, ANY(X), CONST(S)),                             drop_one,     EXACT },
    { "sub-const",       MATCH(sub, ANY(X), CONST(S)),                             sub_to_add,   EXACT },
    { "div-power-of-two", MATCH(div, ANY(X), CONST(S)),                            div_to_mul,   EXACT },
    { "mul-mul-const",   MATCH(mul, ONLY(mul, ANY(X), CONST(S)), CONST(T)),        fold_mul_mul, REASSOC },
    { "add-add-const",   MATCH(add, ONLY(add, ANY(X), CONST(S)), CONST(T)),        fold_add_add, REASSOC },
    { "pow-const",       MATCH(pow, ANY(X), CONST(S)),                             power,        REASSOC },
    { "reciprocal-div",  MATCH(div, CONST(S), ANY(X)),                             div_one,      EXACT },
    { "reciprocal-sqrt", MATCH(reciprocal, ONLY(sqrt, ANY(X))),                    to_rsqrt,     REASSOC },
    { "neg-neg",         MATCH(neg, MATCH(neg, ANY(X))),                           take_x,       EXACT },
    { "max-zero",        MATCH(max, ANY(X), CONST(S)),                             max_to_relu,  EXACT },
    { "min-max",         MATCH(min, ONLY(max, ANY(X), CONST(S)), CONST(T)),        min_max,      EXACT },
    { "max-min",         MATCH(max, ONLY(min, ANY(X), CONST(T)), CONST(S)),        min_max,      EXACT },
    { "min-relu",        MATCH(min, ONLY(relu, ANY(X)), CONST(T)),                 min_relu,     EXACT },
    { "clip-relu",       MATCH(clip, ONLY(relu, ANY(X)), ANY(ANY2), ANY(ANY3)),    clip_relu,    EXACT },
    { "relu-clip",       MATCH(relu, ONLY(clip, ANY(X), ANY(ANY2), ANY(ANY3))),    clip_relu,    EXACT },
    { "clip-clip",       MATCH(clip, ONLY(clip, ANY(X), ANY(5), ANY(6)), ANY(ANY2), ANY(ANY3)), clip_clip, EXACT },
    { .name = NULL },
};

const rule rules_strength[] = {
    { "pow-three",       MATCH(pow, ANY(X), CONST(S)),                             cube,         REASSOC },
    { .name = NULL },
};
/* clang-format on */

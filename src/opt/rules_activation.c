/* SPDX-License-Identifier: Apache-2.0 */
/* rules_activation.c - activations and softmax that exporters spelled out.
 *
 * Products are compared flattened (rw_product), so that the order in which x, 1/2 and the rest are multiplied does not
 * matter. */
#include "opt/rewrite.h"

#include <math.h>

enum { X, S, T };

static bool is_close(double found, double want)
{
    return fabs(found - want) <= 2e-3 * fabs(want);
}

/* v = scale * x^power, products flattened; pow with a constant exponent counts. */
static bool is_monomial(const rewriter *r, ir_value_id v, ir_value_id x, double power, double *scale)
{
    rw_product p;
    if (!rw_product_of(r, v, true, &p)) return false;
    double total = 0;
    for (uint32_t i = 0; i < p.count; i++) {
        double exponent;
        const ir_node *n = rw_def(r, p.factor[i], OP_pow);
        if (p.factor[i] == x) total += 1;
        else if (n && n->in[0] == x && rw_scalar(r, n->in[1], &exponent)) total += exponent;
        else return false;
    }
    *scale = p.scale;
    return total == power;
}

/* The t of 1 + f(t). */
static ir_value_id one_plus(const rewriter *r, ir_value_id v, op_id f)
{
    const ir_node *n = rw_def(r, v, OP_add);
    double one;
    const ir_value_id y = n ? rw_other_scalar(r, n, &one) : 0;
    if (!y || one != 1) return 0;
    const ir_node *inner = rw_def(r, y, f);
    return inner ? inner->in[0] : 0;
}

/* t = x / sqrt 2 */
static bool is_erf_argument(const rewriter *r, ir_value_id t, ir_value_id x)
{
    double scale;
    return is_monomial(r, t, x, 1, &scale) && is_close(scale, sqrt(0.5));
}

/* t = sqrt(2/pi) * (x + 0.044715 x^3), or with x taken out of the sum. */
static bool is_tanh_argument(const rewriter *r, ir_value_id t, ir_value_id x)
{
    rw_product p;
    if (!rw_product_of(r, t, true, &p) || !is_close(p.scale, sqrt(2 / 3.14159265358979323846))) return false;
    if (p.count == 1) {
        const ir_node *sum = rw_def(r, p.factor[0], OP_add);
        double c;
        if (!sum) return false;
        const ir_value_id other = sum->in[0] == x ? sum->in[1] : sum->in[1] == x ? sum->in[0] : 0;
        return other && is_monomial(r, other, x, 3, &c) && is_close(c, 0.044715);
    }
    if (p.count != 2) return false;
    const ir_value_id rest = p.factor[0] == x ? p.factor[1] : p.factor[1] == x ? p.factor[0] : 0;
    const ir_node *sum = rest ? rw_def(r, rest, OP_add) : NULL;
    double one, c;
    const ir_value_id square = sum ? rw_other_scalar(r, sum, &one) : 0;
    return square && one == 1 && is_monomial(r, square, x, 2, &c) && is_close(c, 0.044715);
}

static ir_value_id gelu_of(rewriter *r, const match *m, op_id f, op_id gelu)
{
    rw_product p;
    if (!rw_product_of(r, rw_node(r, m->root)->out[0], false, &p) || p.count != 2 || !is_close(p.scale, 0.5)) return 0;
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id t = one_plus(r, p.factor[i], f), x = p.factor[1 - i];
        if (t && (f == OP_erf ? is_erf_argument(r, t, x) : is_tanh_argument(r, t, x)))
            return build_unary(r->b, gelu, x);
    }
    return 0;
}

static ir_value_id gelu_erf(rewriter *r, const match *m)
{
    return gelu_of(r, m, OP_erf, OP_gelu);
}

static ir_value_id gelu_tanh(rewriter *r, const match *m)
{
    return gelu_of(r, m, OP_tanh, OP_gelu_tanh);
}

static ir_value_id to_silu(rewriter *r, const match *m)
{
    return build_silu(r->b, m->v[X]);
}

static ir_value_id to_mish(rewriter *r, const match *m)
{
    return build_mish(r->b, m->v[X]);
}

/* 1 / (1 + exp(-x)); t is exp's argument. */
static ir_value_id sigmoid_of(rewriter *r, ir_value_id sum)
{
    const ir_node *add = rw_def(r, sum, OP_add);
    double one;
    const ir_value_id e = add ? rw_other_scalar(r, add, &one) : 0;
    const ir_node *power = e && one == 1 ? rw_def(r, e, OP_exp) : NULL;
    if (!power) return 0;
    const ir_node *neg = rw_def(r, power->in[0], OP_neg);
    if (neg) return build_sigmoid(r->b, neg->in[0]);
    const ir_node *mul = rw_def(r, power->in[0], OP_mul);
    double minus;
    const ir_value_id x = mul ? rw_other_scalar(r, mul, &minus) : 0;
    return x && minus == -1 ? build_sigmoid(r->b, x) : 0;
}

static ir_value_id sigmoid_div(rewriter *r, const match *m)
{
    double one;
    return rw_scalar(r, m->v[S], &one) && one == 1 ? sigmoid_of(r, m->v[X]) : 0;
}

static ir_value_id sigmoid_reciprocal(rewriter *r, const match *m)
{
    return sigmoid_of(r, m->v[X]);
}

/* The x of clip(x + 3, 0, 6). */
static ir_value_id clipped_plus_three(const rewriter *r, ir_value_id v)
{
    const ir_node *clip = rw_def(r, v, OP_clip);
    if (!clip || !rw_is_scalar(r, clip->in[1], 0) || !rw_is_scalar(r, clip->in[2], 6)) return 0;
    const ir_node *add = rw_def(r, clip->in[0], OP_add);
    double three;
    const ir_value_id x = add ? rw_other_scalar(r, add, &three) : 0;
    return x && three == 3 ? x : 0;
}

/* clip(x + 3, 0, 6) / 6 -> hard_sigmoid(x, 1/6, 1/2);  x * clip(x + 3, 0, 6) / 6 -> hardswish(x). */
static ir_value_id hard(rewriter *r, const match *m)
{
    rw_product p;
    const ir_node *root = rw_node(r, m->root);
    if (!rw_is_float(r, root->out[0])) return 0;
    if (!rw_product_of(r, root->out[0], false, &p) || !is_close(p.scale, 1.0 / 6)) return 0;
    if (p.count == 1) {
        const ir_value_id x = clipped_plus_three(r, p.factor[0]);
        const sinter_dtype t = rw_value(r, root->out[0])->dtype;
        if (!x) return 0;
        const ir_value_id slope = build_scalar(r->b, t, 1.0 / 6), half = build_scalar(r->b, t, 0.5);
        return build_hard_sigmoid(r->b, x, slope, half);
    }
    if (p.count != 2) return 0;
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id x = clipped_plus_three(r, p.factor[i]);
        if (x && x == p.factor[1 - i]) return build_hardswish(r->b, x);
    }
    return 0;
}

static ir_value_id hardswish(rewriter *r, const match *m)
{
    if (!rw_is_scalar(r, m->v[S], 1.0 / 6) || !rw_is_scalar(r, m->v[T], 0.5)) return 0;
    return build_hardswish(r->b, m->v[X]);
}

/* The input of a reduction over exactly one axis, kept. */
static ir_value_id reduced(const rewriter *r, ir_value_id v, reduce_kind kind, int64_t *axis)
{
    const ir_node *n = rw_def(r, v, OP_reduce);
    if (!n) return 0;
    const attrs_reduce *at = n->attrs;
    if (at->kind != kind || at->axes.count != 1 || !at->keep) return 0;
    *axis = at->axes.at[0];
    return n->in[0];
}

/* e / sum(e) with e = exp(x - max x) or exp(x). */
static ir_value_id softmax(rewriter *r, const match *m)
{
    int64_t axis, axis_max;
    const ir_node *root = rw_node(r, m->root), *power = rw_def(r, root->in[0], OP_exp);
    if (!power || reduced(r, root->in[1], reduce_kind_sum, &axis) != root->in[0]) return 0;
    ir_value_id x = power->in[0];
    const ir_node *sub = rw_def(r, x, OP_sub);
    if (sub && reduced(r, sub->in[1], reduce_kind_max, &axis_max) == sub->in[0] && axis_max == axis) x = sub->in[0];
    return build_softmax(r->b, x, &(attrs_softmax){ .axis = axis });
}

/* clang-format off */
const rule rules_activation[] = {
    { "gelu-erf",           ROOT(mul),                                                   gelu_erf,           REASSOC },
    { "gelu-erf-div",       MATCH(div, ANY(X), CONST(S)),                                gelu_erf,           REASSOC },
    { "gelu-tanh",          ROOT(mul),                                                   gelu_tanh,          REASSOC },
    { "gelu-tanh-div",      MATCH(div, ANY(X), CONST(S)),                                gelu_tanh,          REASSOC },
    { "silu",               MATCH(mul, ANY(X), MATCH(sigmoid, ANY(X))),                  to_silu,            REASSOC },
    { "mish",               MATCH(mul, ANY(X), ONLY(tanh, ONLY(softplus, ANY(X)))),      to_mish,            REASSOC },
    { "sigmoid-div",        MATCH(div, CONST(S), ANY(X)),                                sigmoid_div,        REASSOC },
    { "sigmoid-reciprocal", MATCH(reciprocal, ANY(X)),                                   sigmoid_reciprocal, REASSOC },
    { "hard-mul",           ROOT(mul),                                                   hard,               REASSOC },
    { "hard-div",           MATCH(div, ANY(X), CONST(S)),                                hard,               REASSOC },
    { "hardswish",          MATCH(mul, ANY(X), MATCH(hard_sigmoid, ANY(X), CONST(S), CONST(T))), hardswish,  REASSOC },
    { "softmax",            ROOT(div),                                                   softmax,            REASSOC },
    { .name = NULL },
};
/* clang-format on */

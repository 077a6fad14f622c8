/* SPDX-License-Identifier: Apache-2.0 */
/* rules_norm.c - layer and RMS normalisation from their parts.
 *
 *   d / sqrt(mean(d^2) + eps)             d = x - mean(x): layer_norm(x);  any other d: rms_norm(d)
 *   layer_norm(x) * g + b                 g, b go into the op where they have the shape of the normalised axes
 *   x * k + (b - mean(x) * k)             k = g * rsqrt(mean((x - mean x)^2) + eps): TensorFlow's form
 * The square may be a pow or a product, the root a sqrt, a pow, or a reciprocal of either; casts to f32 inside are
 * looked through. */
#include "opt/rewrite.h"

enum { X, S };

/* Looks through casts between float types that widen. */
static ir_value_id skip_casts(const rewriter *r, ir_value_id v)
{
    for (const ir_node *n; (n = rw_def(r, v, OP_cast)) != NULL && rw_is_float(r, n->in[0]) && rw_is_float(r, v);)
        v = n->in[0];
    return v;
}

/* The input of a mean over the last axes from *axis on. */
static ir_value_id mean_of(const rewriter *r, ir_value_id v, int64_t *axis)
{
    const ir_node *n = rw_def(r, v, OP_reduce);
    if (!n) return 0;
    const attrs_reduce *at = n->attrs;
    const uint32_t rank = rw_value(r, n->in[0])->rank;
    if (at->kind != reduce_kind_mean || !at->axes.count || !at->keep || at->axes.count > rank) return 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < at->axes.count; i++) {
        if (at->axes.at[i] < (int64_t)(rank - at->axes.count) || at->axes.at[i] >= (int64_t)rank) return 0;
        seen |= 1u << at->axes.at[i];
    }
    for (uint32_t i = rank - at->axes.count; i < rank; i++)
        if (!(seen >> i & 1u)) return 0;
    *axis = (int64_t)(rank - at->axes.count);
    return n->in[0];
}

/* The y of y^2. */
static ir_value_id square_of(const rewriter *r, ir_value_id v)
{
    const ir_node *n = rw_def(r, v, OP_mul);
    if (n) return n->in[0] == n->in[1] ? n->in[0] : 0;
    n = rw_def(r, v, OP_pow);
    return n && rw_is_scalar(r, n->in[1], 2) ? n->in[0] : 0;
}

/* v = mean(y^2) + eps: y. */
static ir_value_id variance_of(const rewriter *r, ir_value_id v, double *epsilon, int64_t *axis)
{
    const ir_node *add = rw_def(r, v, OP_add);
    const ir_value_id mean = add ? rw_other_scalar(r, add, epsilon) : 0;
    const ir_value_id square = mean ? mean_of(r, mean, axis) : 0;
    return square ? square_of(r, square) : 0;
}

/* v = sqrt(w): w. */
static ir_value_id root_of(const rewriter *r, ir_value_id v)
{
    const ir_node *n = rw_def(r, v, OP_sqrt);
    if (n) return n->in[0];
    n = rw_def(r, v, OP_pow);
    return n && rw_is_scalar(r, n->in[1], 0.5) ? n->in[0] : 0;
}

/* v = 1 / sqrt(w): w. */
static ir_value_id inverse_root_of(const rewriter *r, ir_value_id v)
{
    const ir_node *n = rw_def(r, v, OP_rsqrt);
    if (n) return n->in[0];
    n = rw_def(r, v, OP_reciprocal);
    if (n) return root_of(r, n->in[0]);
    n = rw_def(r, v, OP_pow);
    if (n) return rw_is_scalar(r, n->in[1], -0.5) ? n->in[0] : 0;
    n = rw_def(r, v, OP_div);
    return n && rw_is_scalar(r, n->in[0], 1) ? root_of(r, n->in[1]) : 0;
}

/* d = x - mean(x) over the axes from `axis` on: x. */
static ir_value_id centred(const rewriter *r, ir_value_id d, int64_t axis)
{
    const ir_node *n = rw_def(r, d, OP_sub);
    int64_t own;
    return n && mean_of(r, n->in[1], &own) == n->in[0] && own == axis ? n->in[0] : 0;
}

static ir_value_id norm(rewriter *r, op_id op, ir_value_id x, ir_value_id scale, ir_value_id bias, int64_t axis,
                        double epsilon)
{
    if (op == OP_rms_norm) return build_rms_norm(r->b, x, scale, &(attrs_rms_norm){ .axis = axis, .epsilon = epsilon });
    const attrs_layer_norm at = { .axis = axis, .epsilon = epsilon };
    return build_result(r->b, build_layer_norm(r->b, x, scale, bias, &at, 1), 0);
}

/* d normalised by w = mean(y^2) + eps. */
static ir_value_id normalised(rewriter *r, ir_value_id d, ir_value_id w, sinter_dtype to)
{
    double epsilon;
    int64_t axis;
    if (!rw_is_float(r, d)) return 0;
    const ir_value_id y = variance_of(r, skip_casts(r, w), &epsilon, &axis);
    if (!y || rw_value(r, y)->rank != rw_value(r, d)->rank || skip_casts(r, y) != skip_casts(r, d)) return 0;
    const ir_value_id x = centred(r, skip_casts(r, d), axis);
    const ir_value_id base = x ? x : y;
    const ir_value_id z = norm(r, x ? OP_layer_norm : OP_rms_norm, base, 0, 0, axis, epsilon);
    return z ? build_typed(r->b, z, to) : 0;
}

static ir_value_id norm_div(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const ir_value_id w = root_of(r, skip_casts(r, n->in[1]));
    return w ? normalised(r, n->in[0], w, rw_value(r, n->out[0])->dtype) : 0;
}

static ir_value_id norm_mul(rewriter *r, const match *m)
{
    const sinter_dtype to = rw_value(r, rw_node(r, m->root)->out[0])->dtype;
    for (uint32_t i = 0; i < 2; i++) {
        const ir_node *n = rw_node(r, m->root);
        const ir_value_id w = inverse_root_of(r, skip_casts(r, n->in[i]));
        const ir_value_id y = w ? normalised(r, n->in[1 - i], w, to) : 0;
        if (y) return y;
    }
    return 0;
}

/* Does c have the shape of x's axes from `axis` on (ones in front may be there)? */
static bool fits_norm(const rewriter *r, ir_value_id x, int64_t axis, ir_value_id c)
{
    const ir_value *a = rw_value(r, x), *b = rw_value(r, c);
    const uint32_t count = a->rank - (uint32_t)axis;
    if (b->rank < count || b->rank > a->rank) return false;
    for (uint32_t i = 0; i < b->rank; i++) {
        const uint32_t back = b->rank - i;
        if (back > count ? !dim_is(r->g->dims, b->dim[i], 1) : b->dim[i] != a->dim[a->rank - back]) return false;
    }
    return true;
}

static ir_value_id shaped(rewriter *r, ir_value_id x, int64_t axis, ir_value_id c)
{
    const ir_value *a = rw_value(r, x);
    const uint32_t count = a->rank - (uint32_t)axis;
    return rw_value(r, c)->rank == count ? c : build_shaped(r->b, c, a->dim + axis, count);
}

static ir_value_id scale_layer_norm(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, rw_value(r, m->v[X])->producer);
    const bool is_layer = n->op == OP_layer_norm, is_rms = n->op == OP_rms_norm;
    if (!rw_value(r, m->v[X])->producer || (!is_layer && !is_rms) || n->is_dead || !rw_only(r, m->v[X])) return 0;
    if (n->count_in != 1 || n->count_out != 1) return 0;
    const int64_t axis =
        is_layer ? ((const attrs_layer_norm *)n->attrs)->axis : ((const attrs_rms_norm *)n->attrs)->axis;
    const double epsilon =
        is_layer ? ((const attrs_layer_norm *)n->attrs)->epsilon : ((const attrs_rms_norm *)n->attrs)->epsilon;
    const ir_value_id x = n->in[0];
    if (!fits_norm(r, x, axis, m->v[S]) || rw_value(r, x)->dtype != rw_value(r, m->v[S])->dtype) return 0;
    return norm(r, is_layer ? OP_layer_norm : OP_rms_norm, x, shaped(r, x, axis, m->v[S]), 0, axis, epsilon);
}

static ir_value_id bias_layer_norm(rewriter *r, const match *m)
{
    const ir_node *n = rw_def(r, m->v[X], OP_layer_norm);
    if (!n || !rw_only(r, m->v[X]) || n->count_out != 1 || n->count_in > 2) return 0;
    const attrs_layer_norm *at = n->attrs;
    const ir_value_id x = n->in[0], scale = n->count_in > 1 ? n->in[1] : 0;
    if (!fits_norm(r, x, at->axis, m->v[S]) || rw_value(r, x)->dtype != rw_value(r, m->v[S])->dtype) return 0;
    return norm(r, OP_layer_norm, x, scale, shaped(r, x, at->axis, m->v[S]), at->axis, at->epsilon);
}

/* x * k + (b - mean(x) * k) */
static ir_value_id layer_norm_tf(rewriter *r, const match *m)
{
    for (uint32_t i = 0; i < 2; i++) {
        const ir_node *add = rw_node(r, m->root), *xk = rw_def(r, add->in[i], OP_mul),
                      *rest = rw_def(r, add->in[1 - i], OP_sub);
        const ir_node *mk = rest ? rw_def(r, rest->in[1], OP_mul) : NULL;
        if (!xk || !mk || !ir_is_const(r->g, rest->in[0])) continue;
        for (uint32_t j = 0; j < 4; j++) {
            const ir_value_id x = xk->in[j & 1], k = xk->in[1 - (j & 1)], mean = mk->in[j >> 1];
            int64_t axis, axis_var;
            double epsilon;
            if (mk->in[1 - (j >> 1)] != k || mean_of(r, mean, &axis) != x) continue;
            /* k = g * 1/sqrt(var + eps), or without g */
            ir_value_id inverse = k, g = 0;
            const ir_node *mul = rw_def(r, k, OP_mul);
            if (mul && ir_is_const(r->g, mul->in[1])) inverse = mul->in[0], g = mul->in[1];
            else if (mul && ir_is_const(r->g, mul->in[0])) inverse = mul->in[1], g = mul->in[0];
            const ir_value_id w = inverse_root_of(r, inverse), d = w ? variance_of(r, w, &epsilon, &axis_var) : 0;
            if (!d || axis_var != axis || centred(r, d, axis) != x) continue;
            const ir_value_id b = rest->in[0];
            if ((g && !fits_norm(r, x, axis, g)) || !fits_norm(r, x, axis, b)) continue;
            const ir_value_id bias = shaped(r, x, axis, b), scale = g ? shaped(r, x, axis, g) : 0;
            return norm(r, OP_layer_norm, x, scale, bias, axis, epsilon);
        }
    }
    return 0;
}

/* clang-format off */
const rule rules_norm[] = {
    { "norm-div",         ROOT(div),                         norm_div,         REASSOC },
    { "norm-mul",         ROOT(mul),                         norm_mul,         REASSOC },
    { "layer-norm-tf",    ROOT(add),                         layer_norm_tf,    REASSOC },
    { "norm-scale",       MATCH(mul, ANY(X), CONST(S)),      scale_layer_norm, REASSOC },
    { "layer-norm-bias",  MATCH(add, ANY(X), CONST(S)),      bias_layer_norm,  REASSOC },
    { .name = NULL },
};
/* clang-format on */

/* SPDX-License-Identifier: Apache-2.0 */
/* rules_linear.c - scales after a linear op go into its weights, so that a batch normalisation folds away.
 *
 *   linear(x, w) * s       -> linear(x, w * s)                     s: one value, or one each output channel
 *   (linear(x, w) + b) * s -> linear(x, w * s) + b * s
 * A linear op is conv, conv_transpose or matmul with constant weights. */
#include "opt/rewrite.h"

enum { X, S, B };

/* Which axis of the output is the channel: 1 of images, the last of a matrix product. */
static uint32_t channel_axis(const rewriter *r, const ir_node *n)
{
    return n->op == OP_matmul ? rw_value(r, n->out[0])->rank - 1 : 1;
}

/* Is s constant along all axes but the channel's? *is_one: along that too. */
static bool is_per_channel(const rewriter *r, const ir_node *n, ir_value_id s, bool *is_one)
{
    const ir_value *y = rw_value(r, n->out[0]), *v = rw_value(r, s);
    *is_one = true;
    if (v->rank > y->rank || y->rank < 1) return false;
    for (uint32_t i = 0; i < v->rank; i++) {
        if (dim_is(r->g->dims, v->dim[i], 1)) continue;
        const uint32_t axis = y->rank - v->rank + i;
        if (axis != channel_axis(r, n) || v->dim[i] != y->dim[axis]) return false;
        *is_one = false;
    }
    return true;
}

/* The scale in the shape in which it multiplies the weights; 0 where weights cannot take it. */
static ir_value_id scale_for_weights(rewriter *r, const ir_node *n, ir_value_id s)
{
    const ir_value *w = rw_value(r, n->in[1]);
    bool is_one;
    if (!w->data || !dtype_is_float(w->dtype) || rw_value(r, s)->dtype != w->dtype || !is_per_channel(r, n, s, &is_one))
        return 0;
    if (is_one) return build_shaped(r->b, s, NULL, 0);
    const dim channels = rw_value(r, n->out[0])->dim[channel_axis(r, n)], one = dim_const(r->g->dims, 1);
    dim d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < w->rank; i++) d[i] = one;
    if (n->op == OP_matmul) {
        if (w->rank < 2) return 0;
        const bool trans = ((const attrs_matmul *)n->attrs)->trans_b != 0;
        d[w->rank - (trans ? 2 : 1)] = channels;
    } else if (n->op == OP_conv) {
        d[0] = channels;
    } else {
        if (((const attrs_conv_transpose *)n->attrs)->groups != 1) return 0;
        d[1] = channels;
    }
    return build_shaped(r->b, s, d, w->rank);
}

static bool is_linear(const rewriter *r, ir_value_id v)
{
    const ir_node *n = rw_node(r, rw_value(r, v)->producer);
    if (!rw_value(r, v)->producer || n->is_dead || !rw_only(r, v)) return false;
    return (n->op == OP_conv || n->op == OP_conv_transpose || n->op == OP_matmul) && n->count_in == 2 &&
           ir_is_const(r->g, n->in[1]);
}

/* linear(x, w * s) for the linear op that makes v. */
static ir_value_id scaled(rewriter *r, ir_value_id v, ir_value_id s)
{
    const ir_node_id id = rw_value(r, v)->producer;
    const ir_value_id k = scale_for_weights(r, rw_node(r, id), s);
    if (!k) return 0;
    const ir_node *n = rw_node(r, id);
    const ir_value_id x = n->in[0], w = n->in[1];
    const ir_value_id scaled_w = build_mul(r->b, w, k);
    return build_again(r->b, id, (ir_value_id[]){ x, scaled_w }, 2);
}

static ir_value_id fold_scale(rewriter *r, const match *m)
{
    return is_linear(r, m->v[X]) ? scaled(r, m->v[X], m->v[S]) : 0;
}

static ir_value_id fold_divisor(rewriter *r, const match *m)
{
    return is_linear(r, m->v[X]) && rw_is_float(r, m->v[S]) ? scaled(r, m->v[X], build_reciprocal(r->b, m->v[S])) : 0;
}

static ir_value_id fold_scale_past_bias(rewriter *r, const match *m)
{
    bool is_one;
    if (!is_linear(r, m->v[X])) return 0;
    const ir_node *n = rw_node(r, rw_value(r, m->v[X])->producer);
    if (!is_per_channel(r, n, m->v[B], &is_one) || !is_per_channel(r, n, m->v[S], &is_one)) return 0;
    const ir_value_id y = scaled(r, m->v[X], m->v[S]);
    return y ? build_add(r->b, y, build_mul(r->b, m->v[B], m->v[S])) : 0;
}

static ir_value_id fold_neg(rewriter *r, const match *m)
{
    return is_linear(r, m->v[X]) && rw_is_float(r, m->v[X])
               ? scaled(r, m->v[X], build_scalar(r->b, rw_value(r, m->v[X])->dtype, -1))
               : 0;
}

/* clang-format off */
const rule rules_linear[] = {
    { "linear-scale",      MATCH(mul, ANY(X), CONST(S)),                      fold_scale,           REASSOC },
    { "linear-div",        MATCH(div, ANY(X), CONST(S)),                      fold_divisor,         REASSOC },
    { "linear-bias-scale", MATCH(mul, ONLY(add, ANY(X), CONST(B)), CONST(S)), fold_scale_past_bias, REASSOC },
    { "linear-neg",        MATCH(neg, ANY(X)),                                fold_neg,             REASSOC },
    { .name = NULL },
};
/* clang-format on */

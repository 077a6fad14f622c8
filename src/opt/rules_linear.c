/* SPDX-License-Identifier: Apache-2.0 */
/* rules_linear.c - scales after a linear op go into its weights, so that a batch normalisation folds away.
 *
 *   linear(x, w) * s       -> linear(x, w * s)                     s: one value, or one each output channel
 *   (linear(x, w) + b) * s -> linear(x, w * s) + b * s
 * A linear op is conv, conv_transpose or matmul with constant weights.
 *
 * Sums of linear ops of one value become one op. Some networks are trained with several branches that are one
 * convolution when they run (RepVGG, MobileOne), and are often exported with all branches:
 *
 *   linear(x, v) + linear(x, w) -> linear(x, v + w)               of two kernel sizes the smaller lies in the larger
 *   conv(x, w) + x * s          -> conv(x, w + s in its centre)
 *
 * A constant may be added to either operand, and z + linear(x, v) may stand in the place of the first. */
#include "opt/rewrite.h"

#include <string.h>

enum { X, S, B, U, V };

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

/* ---- sums of linear ops ---- */

/* An operand of a sum: the result of a linear op, or its input times a scale; and a constant that is added. */
typedef struct term {
    ir_node_id linear;          /* 0: `x` itself */
    ir_value_id x, scale, bias; /* 0: none */
} term;

/* Where v is a sum with a constant that nothing else reads: the other operand, and the constant in *bias. Else v. */
static ir_value_id without_bias(const rewriter *r, ir_value_id v, ir_value_id *bias)
{
    const ir_node *n = rw_def(r, v, OP_add);
    *bias = 0;
    for (uint32_t i = 0; n && i < 2; i++) {
        if (!ir_is_const(r->g, n->in[i]) || ir_is_const(r->g, n->in[1 - i])) continue;
        if (!rw_only(r, v) || !rw_same_shape(r, v, n->in[1 - i])) return v;
        *bias = n->in[i];
        return n->in[1 - i];
    }
    return v;
}

static bool is_linear_term(const rewriter *r, ir_value_id v, term *t)
{
    *t = (term){ 0 };
    const ir_value_id sum = without_bias(r, v, &t->bias);
    if (!is_linear(r, sum)) return false;
    t->linear = rw_value(r, sum)->producer;
    t->x = rw_node(r, t->linear)->in[0];
    return rw_node(r, t->linear)->op != OP_conv_transpose;
}

/* Is v the value x, or x times a constant? A constant may be added. */
static bool is_scaled_term(const rewriter *r, ir_value_id v, ir_value_id x, term *t)
{
    *t = (term){ .x = x };
    const ir_value_id product = without_bias(r, v, &t->bias);
    if (product == x) return true;
    const ir_node *n = rw_def(r, product, OP_mul);
    if (!n || !rw_only(r, product) || (n->in[0] != x && n->in[1] != x)) return false;
    t->scale = n->in[n->in[0] == x];
    return ir_is_const(r->g, t->scale);
}

static int64_t int_at(const attr_ints *a, uint32_t i, int64_t otherwise)
{
    return i < a->count ? a->at[i] : otherwise;
}

static int64_t size_of(const rewriter *r, ir_value_id v, uint32_t axis)
{
    int64_t d = 0;
    return dim_is_const(r->g->dims, rw_value(r, v)->dim[axis], &d) ? d : -1;
}

/* As build_folded, without its limit on how much larger than its operands a result may be: the results here are
 * kernels, and the model holds one of the same size. */
static ir_value_id computed(rewriter *r, ir_value_id v)
{
    bool is_folded;
    if (r->b->status || !v || !rw_value(r, v)->producer) return r->b->status ? 0 : v;
    build_fail(r->b, ir_fold(r->g, rw_value(r, v)->producer, SIZE_MAX, &is_folded));
    return r->b->status ? 0 : v;
}

/* `small` with zeros around it: a kernel of `large`'s size that reads the same places; 0 where there is none. */
static ir_value_id kernel_within(rewriter *r, ir_value_id small, const attrs_conv *s, ir_value_id large,
                                 const attrs_conv *l)
{
    const uint32_t rank = rw_value(r, small)->rank;
    if (rank != rw_value(r, large)->rank || s->groups != l->groups) return 0;
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    bool is_same = true;
    for (uint32_t i = 0; i < rank; i++) {
        begin[i] = end[i] = dim_const(r->g->dims, 0);
        const int64_t few = size_of(r, small, i), many = size_of(r, large, i);
        if (few < 1 || many < few || (i < 2 && few != many)) return 0;
        if (i < 2) continue;
        const uint32_t k = i - 2;
        const int64_t apart = int_at(&l->dilation, k, 1), shift = int_at(&l->pad, k, 0) - int_at(&s->pad, k, 0);
        if (int_at(&s->stride, k, 1) != int_at(&l->stride, k, 1)) return 0;
        if (few > 1 && int_at(&s->dilation, k, 1) != apart) return 0;
        if (shift < 0 || shift % apart || shift / apart + few > many) return 0;
        begin[i] = dim_const(r->g->dims, shift / apart);
        end[i] = dim_const(r->g->dims, many - few - shift / apart);
        is_same = is_same && few == many;
    }
    return is_same ? small : computed(r, build_padded(r->b, small, pad_mode_constant, begin, end, 0));
}

/* The 1x1 kernel that multiplies each channel by s (s 0: by 1). 0 where `n` is no convolution that could have it; a
 * convolution of several channels takes no plain x, since adding it as a residual costs no more. */
static ir_value_id kernel_of_scale(rewriter *r, const ir_node *n, ir_value_id s)
{
    const ir_value w = *rw_value(r, n->in[1]);
    const bool is_depthwise = size_of(r, n->in[1], 1) == 1;
    if (n->op != OP_conv || rw_value(r, n->in[0])->dim[1] != w.dim[0]) return 0;
    if (!is_depthwise && (!s || ((const attrs_conv *)n->attrs)->groups != 1)) return 0;
    dim d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < w.rank; i++) d[i] = i < 2 ? w.dim[i] : dim_const(r->g->dims, 1);
    const ir_value_id k = s ? scale_for_weights(r, n, s) : build_scalar(r->b, (sinter_dtype)w.dtype, 1);
    if (!k || is_depthwise) return k ? computed(r, build_expanded(r->b, k, d, w.rank)) : 0;
    const attrs_eye_like eye = { .shape = build_dims(r->b, d, 2), .type = w.dtype };
    const ir_value_id one = computed(r, build_eye_like(r->b, &eye));
    return computed(r, build_mul(r->b, computed(r, build_shaped(r->b, one, d, w.rank)), k));
}

/* The kernel of `large` with that of `small` in it; 0 where it cannot be. */
static ir_value_id kernel_sum(rewriter *r, const ir_node *large, const ir_node *small)
{
    ir_value_id w = small->in[1];
    if (large->op == OP_conv) w = kernel_within(r, w, small->attrs, large->in[1], large->attrs);
    else if (memcmp(large->attrs, small->attrs, sizeof(attrs_matmul)) != 0 || !rw_same_shape(r, w, large->in[1])) w = 0;
    return w ? build_add(r->b, large->in[1], w) : 0;
}

/* The sum of two terms without their constants; 0 where one op cannot have it. */
static ir_value_id linear_sum(rewriter *r, const term *a, const term *b)
{
    const ir_node n = *rw_node(r, a->linear);
    const sinter_dtype type = rw_value(r, n.in[1])->dtype;
    ir_node_id large = a->linear;
    ir_value_id w = 0;
    if (!dtype_is_float(type)) return 0;
    if (!b->linear) {
        const attrs_conv point = { .groups = n.op == OP_conv ? ((const attrs_conv *)n.attrs)->groups : 0 };
        const ir_value_id scale = kernel_of_scale(r, &n, b->scale);
        w = scale ? kernel_within(r, scale, &point, n.in[1], n.attrs) : 0;
        if (w) w = build_add(r->b, n.in[1], w);
    } else {
        const ir_node m = *rw_node(r, b->linear);
        if (b->x != a->x || m.op != n.op || rw_value(r, m.in[1])->dtype != type) return 0;
        w = kernel_sum(r, &n, &m);
        if (!w) {
            large = b->linear;
            w = kernel_sum(r, &m, &n);
        }
    }
    if (w) w = computed(r, w);
    return w && ir_is_const(r->g, w) ? build_again(r->b, large, (ir_value_id[]){ n.in[0], w }, 2) : 0;
}

/* u + v as one linear op and its constant; 0 where it is none. */
static ir_value_id pair_sum(rewriter *r, ir_value_id u, ir_value_id v)
{
    term a, b;
    ir_value_id y = 0;
    if (!rw_same_shape(r, u, v)) return 0;
    for (int turn = 0; turn < 2 && !y; turn++) {
        const ir_value_id other = turn ? u : v;
        if (!is_linear_term(r, turn ? v : u, &a)) continue;
        if (is_linear_term(r, other, &b) || is_scaled_term(r, other, a.x, &b)) y = linear_sum(r, &a, &b);
    }
    if (y && a.bias && b.bias) return build_add(r->b, y, build_add(r->b, a.bias, b.bias));
    return y && (a.bias || b.bias) ? build_add(r->b, y, a.bias ? a.bias : b.bias) : y;
}

/* u + v, or z + u + v where z stands in either operand. */
static ir_value_id fold_sum(rewriter *r, const match *m)
{
    const ir_value_id u = m->v[U], v = m->v[V];
    ir_value_id y = pair_sum(r, u, v);
    for (int turn = 0; turn < 2 && !y; turn++) {
        const ir_value_id sum = turn ? u : v, other = turn ? v : u;
        const ir_node *n = rw_def(r, sum, OP_add);
        if (!n || !rw_only(r, sum) || !rw_same_shape(r, sum, other)) continue;
        const ir_value_id in[2] = { n->in[0], n->in[1] };
        for (int i = 0; i < 2 && !y; i++) {
            if (ir_is_const(r->g, in[1 - i])) continue;
            const ir_value_id part = pair_sum(r, other, in[i]);
            y = part ? build_add(r->b, in[1 - i], part) : 0;
        }
    }
    return y;
}

/* clang-format off */
const rule rules_linear[] = {
    { "linear-scale",      MATCH(mul, ANY(X), CONST(S)),                      fold_scale,           REASSOC },
    { "linear-div",        MATCH(div, ANY(X), CONST(S)),                      fold_divisor,         REASSOC },
    { "linear-bias-scale", MATCH(mul, ONLY(add, ANY(X), CONST(B)), CONST(S)), fold_scale_past_bias, REASSOC },
    { "linear-neg",        MATCH(neg, ANY(X)),                                fold_neg,             REASSOC },
    { "linear-sum",        MATCH(add, ANY(U), ANY(V)),                        fold_sum,             REASSOC },
    { .name = NULL },
};
/* clang-format on */

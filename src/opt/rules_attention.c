/* SPDX-License-Identifier: Apache-2.0 */
/* rules_attention.c - scaled dot product attention from its parts.
 *
 *   softmax(q k^T * scale + mask) v       q [B,H,S,D], k [B,H,T,D], v [B,H,T,E]; or without B
 * The scale may multiply or divide the scores, q or k. The mask is added, or chosen by where(mask, scores, -inf). Keys
 * and values that are repeated for groups of heads are taken before the repetition. Casts to wider floats around the
 * softmax are looked through: the op keeps its inner values in f32 anyway.
 *
 * The op saves the way of the scores through memory. Where heads are long and keys few (attention over channels, whose
 * heads are as long as an image has places) scores are small beside q, k and v: then it stays two products. */
#include "opt/rewrite.h"

#include <math.h>

enum { LONG_HEAD = 256 }; /* elements: more, and few kernels of attention take them */

typedef struct scores {
    ir_value_id q, k;
    bool k_is_transposed; /* [B,H,D,T] */
    double scale;
    ir_value_id mask, second; /* 0: none; two added ones become one */
    bool mask_is_forbidden;   /* a bool that says where not to look */
    bool mask_is_choice;      /* a bool condition; else added */
    double fill;              /* what the condition puts in place: -inf, or so little that adding it is the same */
} scores;

static bool is_widening(const rewriter *r, const ir_node *cast)
{
    return rw_is_float(r, cast->in[0]) && rw_is_float(r, cast->out[0]);
}

/* Takes a uniform scale off v, and casts with it. */
static ir_value_id unscaled(const rewriter *r, ir_value_id v, double *scale)
{
    for (uint32_t depth = 0; depth < 8; depth++) {
        double c;
        const ir_node *n = rw_def(r, v, OP_mul);
        const ir_value_id x = n && rw_only(r, v) ? rw_other_scalar(r, n, &c) : 0;
        if (x && rw_same_shape(r, x, v)) {
            *scale *= c;
            v = x;
            continue;
        }
        n = rw_def(r, v, OP_div);
        if (n && rw_only(r, v) && rw_scalar(r, n->in[1], &c) && c != 0 && rw_same_shape(r, n->in[0], v)) {
            *scale /= c;
            v = n->in[0];
            continue;
        }
        break;
    }
    return v;
}

static bool peel(const rewriter *r, ir_value_id v, uint32_t depth, scores *out)
{
    if (depth > 8 || !rw_only(r, v)) return false;
    const ir_node *n = rw_def(r, v, OP_matmul);
    double c;
    if (n) {
        const attrs_matmul *at = n->attrs;
        if (at->trans_a) return false;
        out->q = unscaled(r, n->in[0], &out->scale);
        out->k = unscaled(r, n->in[1], &out->scale);
        out->k_is_transposed = !at->trans_b;
        return true;
    }
    n = rw_def(r, v, OP_cast);
    if (n) return is_widening(r, n) && peel(r, n->in[0], depth + 1, out);
    n = rw_def(r, v, OP_mul);
    const ir_value_id x = n ? rw_other_scalar(r, n, &c) : 0;
    if (x) {
        out->scale *= c;
        return peel(r, x, depth + 1, out);
    }
    n = rw_def(r, v, OP_div);
    if (n && rw_scalar(r, n->in[1], &c) && c != 0) {
        out->scale /= c;
        return peel(r, n->in[0], depth + 1, out);
    }
    if (out->second || out->mask_is_choice || out->scale != 1) return false;
    n = rw_def(r, v, OP_add);
    for (uint32_t i = 0; n && i < 2; i++) {
        scores tried = *out;
        *(out->mask ? &tried.second : &tried.mask) = n->in[1 - i];
        if (!rw_same_shape(r, n->in[i], v) || !peel(r, n->in[i], depth + 1, &tried)) continue;
        *out = tried;
        return true;
    }
    if (out->mask) return false;
    n = rw_def(r, v, OP_where);
    for (uint32_t i = 1; n && i < 3; i++) {
        scores tried = *out;
        if (!rw_scalar(r, n->in[i], &c) || c > -1e30) continue;
        tried.mask = n->in[0];
        tried.fill = c;
        tried.mask_is_choice = true;
        tried.mask_is_forbidden = i == 1;
        if (!rw_same_shape(r, n->in[3 - i], v) || !peel(r, n->in[3 - i], depth + 1, &tried)) continue;
        *out = tried;
        return true;
    }
    return false;
}

/* [B,G,1,T,D] expanded to [B,G,n,T,D] and reshaped to [B,G*n,T,D]: the value before, in [B,G,T,D]. */
static ir_value_id ungrouped(rewriter *r, ir_value_id v)
{
    const ir_node *outer = rw_def(r, v, OP_reshape), *expand = outer ? rw_def(r, outer->in[0], OP_expand) : NULL;
    if (!expand || rw_value(r, v)->rank != 4) return v;
    const ir_value_id x = expand->in[0];
    const ir_value *a = rw_value(r, x), *b = rw_value(r, outer->in[0]), *y = rw_value(r, v);
    if (a->rank != 5 || b->rank != 5 || !dim_is(r->g->dims, a->dim[2], 1)) return v;
    if (a->dim[0] != b->dim[0] || a->dim[1] != b->dim[1] || a->dim[3] != b->dim[3] || a->dim[4] != b->dim[4]) return v;
    if (y->dim[0] != a->dim[0] || y->dim[2] != a->dim[3] || y->dim[3] != a->dim[4]) return v;
    if (dim_mul(r->g->dims, b->dim[1], b->dim[2]) != y->dim[1]) return v;
    int64_t heads;
    if (!dim_is_const(r->g->dims, a->dim[1], &heads)) return v;
    return build_shaped(r->b, x, (dim[]){ a->dim[0], a->dim[1], a->dim[3], a->dim[4] }, 4);
}

/* Rank 3 gets a batch of one in front. */
static ir_value_id with_batch(rewriter *r, ir_value_id v)
{
    const ir_value *x = rw_value(r, v);
    if (x->rank == 4) return v;
    return build_shaped(r->b, v, (dim[]){ dim_const(r->g->dims, 1), x->dim[0], x->dim[1], x->dim[2] }, 4);
}

/* Whether scores are small beside what they are made of; or not large, where heads are so long that few kernels of
 * attention take them. */
static bool has_few_scores(const rewriter *r, dim depth, dim keys)
{
    int64_t d, k;
    if (!dim_is_const(r->g->dims, depth, &d) || !dim_is_const(r->g->dims, keys, &k)) return false;
    return (d > LONG_HEAD / 2 && 4 * k <= d) || (d > LONG_HEAD && k <= 8 * d);
}

static bool mask_fits(const rewriter *r, ir_value_id mask, const ir_value *q, dim keys)
{
    const ir_value *m = rw_value(r, mask);
    const dim want[4] = { q->dim[0], q->dim[1], q->dim[2], keys };
    if (m->rank > 4 || !(dtype_is_float(m->dtype) || m->dtype == SINTER_DTYPE_BOOL)) return false;
    for (uint32_t i = 0; i < m->rank; i++)
        if (!dim_is(r->g->dims, m->dim[i], 1) && m->dim[i] != want[4 - m->rank + i]) return false;
    return true;
}

/* The softmax behind casts and the guard where(isnan(p), 0, p). */
static ir_value_id softmax_input(const rewriter *r, ir_value_id p)
{
    const ir_node *n = rw_def(r, p, OP_cast);
    if (n && is_widening(r, n) && rw_only(r, p)) p = n->in[0];
    n = rw_def(r, p, OP_where);
    if (n && rw_only(r, p)) {
        const ir_node *nan = rw_def(r, n->in[0], OP_is_nan);
        if (!nan || nan->in[0] != n->in[2] || !rw_is_scalar(r, n->in[1], 0) || rw_value(r, n->in[2])->use_count != 2)
            return 0;
        p = n->in[2];
    } else if (!rw_only(r, p)) {
        return 0;
    }
    n = rw_def(r, p, OP_cast);
    if (n && is_widening(r, n)) {
        p = n->in[0];
        if (!rw_only(r, p)) return 0;
    }
    n = rw_def(r, p, OP_softmax);
    if (!n || ((const attrs_softmax *)n->attrs)->axis != (int64_t)rw_value(r, p)->rank - 1) return 0;
    return n->in[0];
}

static ir_value_id attention(rewriter *r, const match *m)
{
    const ir_node *root = rw_node(r, m->root);
    const attrs_matmul *at = root->attrs;
    const ir_value_id y = root->out[0], x = softmax_input(r, root->in[0]);
    const uint32_t rank = rw_value(r, y)->rank;
    scores s = { .scale = 1 };
    if (at->trans_a || !x || !rw_is_float(r, y) || (rank != 3 && rank != 4) || !peel(r, x, 0, &s)) return 0;
    ir_value_id v = root->in[1];
    const sinter_dtype t = rw_value(r, v)->dtype;
    const ir_value *q = rw_value(r, s.q), *k = rw_value(r, s.k);
    if (q->rank != rank || k->rank != rank || rw_value(r, v)->rank != rank || q->dtype != t || k->dtype != t) return 0;
    for (uint32_t i = 0; i + 2 < rank; i++)
        if (q->dim[i] != k->dim[i] || q->dim[i] != rw_value(r, v)->dim[i]) return 0;
    if (has_few_scores(r, q->dim[rank - 1], k->dim[s.k_is_transposed ? rank - 1 : rank - 2])) return 0;
    if (at->trans_b) v = rw_swap_last(r, v);
    s.k = s.k_is_transposed ? rw_swap_last(r, s.k) : s.k;
    if (!v || !s.k) return 0;
    if (rank == 4) {
        const ir_value_id k0 = ungrouped(r, s.k), v0 = ungrouped(r, v);
        if (k0 && v0 && rw_value(r, k0)->dim[1] == rw_value(r, v0)->dim[1]) s.k = k0, v = v0;
    }
    const ir_value_id in_q = with_batch(r, s.q), in_k = with_batch(r, s.k), in_v = with_batch(r, v);
    if (!in_q || !in_k || !in_v) return 0;
    if (s.mask) {
        if (!mask_fits(r, s.mask, rw_value(r, in_q), rw_value(r, in_k)->dim[2])) return 0;
        if (s.second) {
            if (!mask_fits(r, s.second, rw_value(r, in_q), rw_value(r, in_k)->dim[2])) return 0;
            s.mask = build_add(r->b, s.mask, s.second);
        } else if (s.mask_is_choice && s.fill != -INFINITY) {
            const ir_value_id low = build_scalar(r->b, t, s.fill), zero = build_scalar(r->b, t, 0);
            s.mask = build_where(r->b, s.mask, s.mask_is_forbidden ? low : zero, s.mask_is_forbidden ? zero : low);
        } else if (s.mask_is_forbidden) {
            s.mask = build_not(r->b, s.mask);
        }
        if (!s.mask) return 0;
    }
    const ir_value_id z = build_attended(r->b, in_q, in_k, in_v, s.mask, 0, &(attrs_attention){ .scale = s.scale });
    if (!z || rank == 4) return z;
    return build_shaped(r->b, z, rw_value(r, y)->dim, 3);
}

/* A mask that a constant without effect has made as high as there are queries: attention broadcasts it anyway. */
static ir_value_id mask_rows(rewriter *r, const match *m)
{
    const ir_node *root = rw_node(r, m->root);
    const ir_node *choice = root->count_in > 3 && root->in[3] ? rw_def(r, root->in[3], OP_where) : NULL;
    double value;
    if (!choice || !rw_scalar(r, choice->in[1], &value) || !rw_scalar(r, choice->in[2], &value)) return 0;
    const ir_node *both = rw_def(r, choice->in[0], OP_and);
    for (uint32_t i = 0; both && i < 2; i++) {
        const ir_value_id other = both->in[1 - i];
        if (!rw_scalar(r, both->in[i], &value) || value == 0 || rw_same_shape(r, other, both->out[0])) continue;
        const ir_value_id mask = build_where(r->b, other, choice->in[1], choice->in[2]);
        const ir_value_id in[] = { root->in[0], root->in[1], root->in[2], mask, root->count_in > 4 ? root->in[4] : 0 };
        return build_again(r->b, m->root, in, root->count_in);
    }
    return 0;
}

/* Keys and values that are repeated for groups of heads: attention shares them by itself. */
static ir_value_id shared_heads(rewriter *r, const match *m)
{
    const ir_node n = *rw_node(r, m->root);
    const ir_value_id k = ungrouped(r, n.in[1]), v = ungrouped(r, n.in[2]);
    if (k == n.in[1] || v == n.in[2] || rw_value(r, k)->dim[1] != rw_value(r, v)->dim[1]) return 0;
    const ir_value_id in[] = { n.in[0], k, v, n.count_in > 3 ? n.in[3] : 0, n.count_in > 4 ? n.in[4] : 0 };
    return build_again(r->b, m->root, in, n.count_in);
}

const rule rules_attention[] = {
    { "attention", ROOT(matmul), attention, REASSOC },
    { "mask-rows", ROOT(attention), mask_rows, EXACT },
    { "shared-heads", ROOT(attention), shared_heads, EXACT },
    { .name = NULL },
};

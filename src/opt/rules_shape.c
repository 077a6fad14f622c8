/* SPDX-License-Identifier: Apache-2.0 */
/* rules_shape.c - data movement that moves nothing, or that its neighbour can do on the way. All of it is exact. */
#include "opt/rewrite.h"

#include <math.h>
#include <string.h>

enum { X };
enum { ASKED = 64 }; /* nodes that are asked what made a value */

static ir_value_id take_x(rewriter *r, const match *m)
{
    (void)r;
    return m->v[X];
}

/* The driver refuses where x has another type or shape, so these fire for the no-ops only. */
static ir_value_id take_input(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const ir_value *x = rw_value(r, n->in[0]), *y = rw_value(r, n->out[0]);
    return n->in[0] && x->dtype == y->dtype && rw_same_shape(r, n->in[0], n->out[0]) ? n->in[0] : 0;
}

/* Bits that an integer or float type represents exactly as an integer. */
static int exact_bits(sinter_dtype t)
{
    switch (t) {
    case SINTER_DTYPE_F64: return 53;
    case SINTER_DTYPE_F32: return 24;
    case SINTER_DTYPE_F16: return 11;
    case SINTER_DTYPE_BF16: return 8;
    case SINTER_DTYPE_BOOL: return 1;
    default: return dtype_is_int(t) ? (int)sinter_dtype_bits(t) - dtype_is_signed(t) : 0;
    }
}

static bool is_plain_float(sinter_dtype t)
{
    return t == SINTER_DTYPE_F64 || t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16;
}

static bool cast_is_lossless(sinter_dtype from, sinter_dtype to)
{
    if (from == to) return true;
    if (is_plain_float(from)) {
        if (to == SINTER_DTYPE_F64) return true;
        return to == SINTER_DTYPE_F32 && from != SINTER_DTYPE_F64;
    }
    if (!dtype_is_int(from) && from != SINTER_DTYPE_BOOL) return false;
    if (!is_plain_float(to) && !dtype_is_int(to)) return false;
    if (dtype_is_signed(from) && !dtype_is_signed(to)) return false;
    return exact_bits(from) <= exact_bits(to);
}

/* cast(cast(x, wider), t) -> cast(x, t). An integer that passes through a float saturates in the end where a direct
 * cast wraps. */
static ir_value_id fold_casts(rewriter *r, const match *m)
{
    const sinter_dtype from = rw_value(r, m->v[X])->dtype;
    const sinter_dtype middle = (sinter_dtype)((const attrs_typed *)rw_node(r, m->node[1])->attrs)->type;
    const sinter_dtype to = (sinter_dtype)((const attrs_typed *)rw_node(r, m->root)->attrs)->type;
    if (!cast_is_lossless(from, middle)) return 0;
    if (from != to && !dtype_is_float(from) && dtype_is_float(middle) && !dtype_is_float(to)) return 0;
    return build_typed(r->b, m->v[X], to);
}

static ir_value_id fold_reshapes(rewriter *r, const match *m)
{
    return build_again(r->b, m->root, &m->v[X], 1);
}

static ir_value_id fold_transposes(rewriter *r, const match *m)
{
    const attr_ints *p = &((const attrs_transpose *)rw_node(r, m->node[1])->attrs)->perm;
    const attr_ints *q = &((const attrs_transpose *)rw_node(r, m->root)->attrs)->perm;
    int64_t both[SINTER_RANK_MAX];
    if (p->count != q->count) return 0;
    for (uint32_t i = 0; i < q->count; i++) both[i] = p->at[q->at[i]];
    return build_permuted(r->b, m->v[X], both, q->count);
}

/* Does a transposition of x move axes of size 1 alone? */
static bool moves_ones(const rewriter *r, const ir_value *x, const int64_t *perm)
{
    int64_t last = -1;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (dim_is(r->g->dims, x->dim[perm[i]], 1)) continue;
        if (perm[i] < last) return false;
        last = perm[i];
    }
    return true;
}

/* A transpose that only moves axes of size 1 is a reshape, one that moves none is nothing. */
static ir_value_id transpose_to_reshape(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const attr_ints *p = &((const attrs_transpose *)n->attrs)->perm;
    const ir_value *x = rw_value(r, n->in[0]);
    bool is_identity = true;
    for (uint32_t i = 0; i < p->count; i++) is_identity &= p->at[i] == (int64_t)i;
    if (is_identity) return n->in[0];
    if (!moves_ones(r, x, p->at)) return 0;
    return build_shaped(r->b, n->in[0], rw_value(r, n->out[0])->dim, rw_value(r, n->out[0])->rank);
}

/* The first of x's axes behind those, from `at` on, whose sizes make up `size`, ones among them; 0: there are none. */
static uint32_t axes_of(const rewriter *r, const ir_value *x, uint32_t at, dim size)
{
    dim all = dim_const(r->g->dims, 1);
    while (at < x->rank && (all != size || dim_is(r->g->dims, x->dim[at], 1)))
        all = dim_mul(r->g->dims, all, x->dim[at++]);
    return all == size ? at : 0;
}

/* Is each axis of x one of y's, or several next to each other? */
static bool is_split(const rewriter *r, const ir_value *x, const ir_value *y)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!dim_is(r->g->dims, x->dim[i], 1) && !(at = axes_of(r, y, at, x->dim[i]))) return false;
    return at == y->rank;
}

/* reshape(transpose(reshape(x))), where the first joins axes and the last takes them apart again, needs no joined axes:
 * exporters turn keys as matrices of all heads, and tokens first as [tokens, batch * heads, size]. */
static ir_value_id transpose_joined(rewriter *r, const match *m)
{
    const ir_node *turned = rw_node(r, m->node[1]);
    const attr_ints *p = &((const attrs_transpose *)turned->attrs)->perm;
    const ir_value x = *rw_value(r, m->v[X]), joined = *rw_value(r, turned->in[0]);
    const ir_value y = *rw_value(r, rw_node(r, m->root)->out[0]);
    if (is_split(r, &x, &joined)) return 0;
    /* Axes of y that a joined axis becomes. */
    uint32_t from[SINTER_RANK_MAX] = { 0 }, to[SINTER_RANK_MAX] = { 0 }, at = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const uint32_t axis = (uint32_t)p->at[i];
        if (dim_is(r->g->dims, joined.dim[axis], 1)) continue;
        from[axis] = at;
        at = to[axis] = axes_of(r, &y, at, joined.dim[axis]);
        if (!at) return 0;
    }
    if (at != y.rank) return 0;
    ir_value apart = { .rank = y.rank };
    int64_t perm[SINTER_RANK_MAX];
    at = 0;
    for (uint32_t i = 0; i < joined.rank; i++)
        for (uint32_t k = from[i]; k < to[i]; k++) {
            perm[k] = at;
            apart.dim[at++] = y.dim[k];
        }
    if (!is_split(r, &x, &apart)) return 0;
    const ir_value_id whole = build_shaped(r->b, m->v[X], apart.dim, apart.rank);
    return whole ? build_permuted(r->b, whole, perm, apart.rank) : 0;
}

static ir_value_id drop_slice(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const attrs_slice *at = n->attrs;
    for (uint32_t i = 0; i < at->start.count; i++)
        if (!dim_is(r->g->dims, (dim)at->start.at[i], 0) || (i < at->step.count && at->step.at[i] != 1)) return 0;
    return take_input(r, m);
}

static ir_value_id drop_tile(rewriter *r, const match *m)
{
    const attrs_tile *at = rw_node(r, m->root)->attrs;
    for (uint32_t i = 0; i < at->repeats.count; i++)
        if (!dim_is(r->g->dims, (dim)at->repeats.at[i], 1)) return 0;
    return take_input(r, m);
}

/* Repeated axes of one element, as exporters repeat keys and values for the heads that share them. */
static ir_value_id tile_to_expand(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const attrs_tile *at = n->attrs;
    const ir_value x = *rw_value(r, m->v[X]), y = *rw_value(r, n->out[0]);
    for (uint32_t i = 0; i < at->repeats.count; i++)
        if (!dim_is(r->g->dims, (dim)at->repeats.at[i], 1) && !dim_is(r->g->dims, x.dim[i], 1)) return 0;
    return build_expanded(r->b, m->v[X], y.dim, y.rank);
}

/* Of one part, or of parts of which one alone has elements. */
static ir_value_id drop_concat(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const attrs_concat *at = n->attrs;
    if (n->count_in == 1) return take_input(r, m);
    ir_value_id part = 0;
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (dim_is(r->g->dims, rw_value(r, n->in[i])->dim[at->axis], 0)) continue;
        if (part) return 0;
        part = n->in[i];
    }
    return part;
}

static bool pad_at(const rewriter *r, const attrs_pad *at, uint32_t i, int64_t *begin, int64_t *end)
{
    return dim_is_const(r->g->dims, (dim)at->begin.at[i], begin) && dim_is_const(r->g->dims, (dim)at->end.at[i], end);
}

static ir_value_id drop_pad(rewriter *r, const match *m)
{
    const attrs_pad *at = rw_node(r, m->root)->attrs;
    for (uint32_t i = 0; i < at->begin.count; i++) {
        int64_t begin, end;
        if (!pad_at(r, at, i, &begin, &end) || begin || end) return 0;
    }
    return take_input(r, m);
}

/* The spatial pads of a constant pad node before a window op, appended to the op's own. `wants` is what the op pads
 * with. */
static bool add_pads(const rewriter *r, ir_value_id padded, double wants, attr_ints *pad, ir_value_id *x)
{
    const ir_node *n = rw_def(r, padded, OP_pad);
    if (!n || !rw_only(r, padded)) return false;
    const attrs_pad *at = n->attrs;
    double value = 0;
    if (at->mode != pad_mode_constant || (n->count_in > 1 && n->in[1] && !ir_const_scalar(r->g, n->in[1], &value)))
        return false;
    if (!(value == wants || (wants == -INFINITY && value <= -3.4e38))) return false;
    const uint32_t rank = rw_value(r, padded)->rank;
    if (rank < 3 || at->begin.count != rank || at->end.count != rank || pad->count != 2 * (rank - 2)) return false;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t begin, end;
        if (!pad_at(r, at, i, &begin, &end) || begin < 0 || end < 0 || (i < 2 && (begin || end))) return false;
        if (i < 2) continue;
        if (!i64_add(pad->at[i - 2], begin, &pad->at[i - 2]) ||
            !i64_add(pad->at[rank - 4 + i], end, &pad->at[rank - 4 + i]))
            return false;
    }
    *x = n->in[0];
    return true;
}

static ir_value_id pad_into_conv(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    attrs_conv at = *(const attrs_conv *)n->attrs;
    ir_value_id x;
    return add_pads(r, n->in[0], 0, &at.pad, &x) ? build_conv(r->b, x, n->in[1], &at) : 0;
}

/* Pools pad less than their kernel: an average over nothing but padding is not one of theirs. */
static bool pads_fit(const attr_ints *kernel, const attr_ints *pad)
{
    for (uint32_t i = 0; i < pad->count; i++)
        if (pad->at[i] >= kernel->at[i % kernel->count]) return false;
    return kernel->count * 2 == pad->count;
}

static ir_value_id pad_into_avg_pool(rewriter *r, const match *m)
{
    attrs_avg_pool at = *(const attrs_avg_pool *)rw_node(r, m->root)->attrs;
    ir_value_id x;
    if (at.ceil) return 0;
    bool pads = false;
    for (uint32_t i = 0; i < at.pad.count; i++) pads |= at.pad.at[i] != 0;
    if (!at.count_pad && pads) return 0;
    if (!add_pads(r, rw_node(r, m->root)->in[0], 0, &at.pad, &x) || !pads_fit(&at.kernel, &at.pad)) return 0;
    at.count_pad = 1;
    return build_avg_pool(r->b, x, &at);
}

static ir_value_id pad_into_max_pool(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    attrs_max_pool at = *(const attrs_max_pool *)n->attrs;
    ir_value_id x;
    if (at.ceil || n->count_out > 1) return 0;
    if (!add_pads(r, n->in[0], -INFINITY, &at.pad, &x) || !pads_fit(&at.kernel, &at.pad)) return 0;
    return build_result(r->b, build_max_pool(r->b, x, &at, 1), 0);
}

/* f(expand(x), y) -> f(x, y) where broadcasting gives the same shape. */
static ir_value_id expand_into_scalar(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    ir_value_id in[3];
    bool found = false;
    if (n->count_in > COUNT_OF(in) || n->count_in < 2) return 0;
    for (uint32_t i = 0; i < n->count_in; i++) {
        const ir_node *expand = rw_def(r, n->in[i], OP_expand);
        in[i] = expand ? expand->in[0] : n->in[i];
        found |= expand != NULL;
    }
    if (!found) return 0;
    const ir_value *y = rw_value(r, n->out[0]);
    for (uint32_t axis = 0; axis < y->rank; axis++) {
        bool covered = dim_is(r->g->dims, y->dim[axis], 1);
        for (uint32_t i = 0; i < n->count_in && !covered; i++) {
            const ir_value *x = rw_value(r, in[i]);
            covered = x->rank >= y->rank - axis && x->dim[x->rank - (y->rank - axis)] == y->dim[axis];
        }
        if (!covered) return 0;
    }
    return build_again(r->b, m->root, in, n->count_in);
}

/* matmul(transpose(x), y) -> matmul(x, y, trans_a) where the last two axes are what it swaps. */
static ir_value_id transpose_into_matmul(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    attrs_matmul at = *(const attrs_matmul *)n->attrs;
    ir_value_id in[2] = { n->in[0], n->in[1] };
    bool found = false;
    for (uint32_t i = 0; i < 2; i++) {
        const ir_node *t = rw_def(r, in[i], OP_transpose);
        if (!t || !rw_swaps_last(t)) continue;
        in[i] = t->in[0];
        if (i == 0) at.trans_a = !at.trans_a;
        else at.trans_b = !at.trans_b;
        found = true;
    }
    return found ? build_matmul(r->b, in[0], in[1], &at) : 0;
}

/* matmul(x, w) where w has leading axes of 1 -> the same without them: weights of rank 2 are what kernels pack, and
 * what is quantised. */
static ir_value_id matmul_weight_rank(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const ir_value *w = rw_value(r, n->in[1]);
    if (!ir_is_const(r->g, n->in[1]) || w->rank < 3 || rw_value(r, n->in[0])->rank < w->rank) return 0;
    for (uint32_t i = 0; i + 2 < w->rank; i++)
        if (!dim_is(r->g->dims, w->dim[i], 1)) return 0;
    const ir_value_id plain = build_shaped(r->b, n->in[1], w->dim + w->rank - 2, 2);
    return build_again(r->b, m->root, (ir_value_id[]){ n->in[0], plain }, 2);
}

/* Known neighbouring indices choose a slice, which costs nothing where a gather copies. */
static ir_value_id gather_to_slice(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const int64_t axis = ((const attrs_gather *)n->attrs)->axis;
    const ir_value *x = rw_value(r, n->in[0]), *y = rw_value(r, n->out[0]);
    const ir_value_id data = n->in[0];
    const ir_value shape = *y;
    view index;
    int64_t size;
    if (!ir_const_view(r->g, n->in[1], &index) || index.rank > 1 || view_count(&index) < 1 ||
        !dim_is_const(r->g->dims, x->dim[axis], &size))
        return 0;
    int64_t first = view_load_i64(&index, 0);
    first += first < 0 ? size : 0;
    if (first < 0 || view_count(&index) > size || first > size - view_count(&index)) return 0;
    for (int64_t i = 1; i < view_count(&index); i++) {
        const int64_t at = view_load_i64(&index, i);
        if ((at < 0 ? at + size : at) != first + i) return 0;
    }
    if (!ir_look(r->g, n->in[1])) return 0;
    const ir_value_id part = build_part(r->b, data, (uint32_t)axis, dim_const(r->g->dims, first), 1,
                                        dim_const(r->g->dims, view_count(&index)));
    return index.rank ? part : build_shaped(r->b, part, shape.dim, shape.rank);
}

/* Do the two shapes differ in axes of size 1 alone? */
static bool same_but_ones(const rewriter *r, const ir_value *a, const ir_value *b)
{
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < a->rank && dim_is(r->g->dims, a->dim[i], 1)) i++;
        while (k < b->rank && dim_is(r->g->dims, b->dim[k], 1)) k++;
        if (i == a->rank || k == b->rank) return i == a->rank && k == b->rank;
        if (a->dim[i++] != b->dim[k++]) return false;
    }
}

/* Would a reshape of v be one that sinks? */
static bool sinks_from(const rewriter *r, ir_value_id v)
{
    const ir_node *maker = rw_node(r, rw_value(r, v)->producer);
    return rw_only(r, v) && rw_value(r, v)->producer &&
           (op_is_scalar(maker->op) || op_at(maker->op)->traits & FUSES_AFTER);
}

/* Other operand `v` of an op in shape y, as it must be in shape x, which has the same elements in the same order; 0: it
 * cannot. */
static ir_value_id operand_before(rewriter *r, ir_value_id v, const ir_value *x, const ir_value *y)
{
    const ir_value *c = rw_value(r, v);
    bool is_one = true, is_last = true;
    for (uint32_t i = 0; i < c->rank; i++) {
        const bool one = dim_is(r->g->dims, c->dim[i], 1);
        is_one &= one;
        is_last &= one || i + 1 == c->rank;
    }
    if (is_one) return c->rank <= x->rank ? v : build_shaped(r->b, v, NULL, 0);
    if (c->rank == y->rank && !memcmp(c->dim, y->dim, y->rank * sizeof(dim))) {
        /* Of two reshapes the other may be the one to sink: only where both come from one shape is there no question.
         */
        const ir_node *other = rw_def(r, v, OP_reshape);
        if (!other) return sinks_from(r, v) ? 0 : build_shaped(r->b, v, x->dim, x->rank);
        const ir_value *from = rw_value(r, other->in[0]);
        return from->rank == x->rank && !memcmp(from->dim, x->dim, x->rank * sizeof(dim)) ? other->in[0] : 0;
    }
    if (is_last && x->rank && x->dim[x->rank - 1] == y->dim[y->rank - 1] && c->dim[c->rank - 1] == x->dim[x->rank - 1])
        return c->rank <= x->rank ? v : build_shaped(r->b, v, &c->dim[c->rank - 1], 1);
    if (!same_but_ones(r, x, y)) return 0;
    /* Each axis of y that is not 1 has its axis in x: carry the operand's sizes over. */
    dim d[SINTER_RANK_MAX];
    for (uint32_t i = 0, k = 0; i < x->rank; i++) {
        d[i] = dim_const(r->g->dims, 1);
        if (dim_is(r->g->dims, x->dim[i], 1)) continue;
        while (dim_is(r->g->dims, y->dim[k], 1)) k++;
        const uint32_t back = y->rank - k++;
        if (back <= c->rank) d[i] = c->dim[c->rank - back];
    }
    return build_shaped(r->b, v, d, x->rank);
}

/* f(reshape(x), c) -> reshape(f(x, c)) behind an op that takes an epilogue, so that f can become part of it. */
static ir_value_id sink_reshape(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const uint32_t count = n->count_in;
    if (count > 3) return 0;
    for (uint32_t i = 0; i < count; i++) {
        n = rw_node(r, m->root);
        const ir_node *reshape = rw_def(r, n->in[i], OP_reshape);
        if (!reshape || !rw_only(r, n->in[i]) || !rw_same_shape(r, n->in[i], n->out[0]) ||
            !sinks_from(r, reshape->in[0]))
            continue;
        const ir_value_id source = reshape->in[0];
        const ir_value x = *rw_value(r, source), y = *rw_value(r, n->out[0]);
        ir_value_id in[3];
        bool ok = true;
        for (uint32_t k = 0; k < count && ok; k++) {
            in[k] = k == i ? source : operand_before(r, rw_node(r, m->root)->in[k], &x, &y);
            ok = in[k] != 0;
        }
        if (!ok) continue;
        const ir_value_id z = build_again(r->b, m->root, in, count);
        if (!z || rw_value(r, z)->rank != x.rank || memcmp(rw_value(r, z)->dim, x.dim, x.rank * sizeof(dim))) return 0;
        return build_shaped(r->b, z, y.dim, y.rank);
    }
    return 0;
}

/* Is v made by an op with one of the traits, and then perhaps by functions of single elements? only: each of these
 * values has one reader. left: how many nodes are asked. */
static bool is_made_by(const rewriter *r, ir_value_id v, uint32_t traits, bool only, uint32_t *left)
{
    if ((only && !rw_only(r, v)) || !rw_value(r, v)->producer || !*left) return false;
    const ir_node *n = rw_node(r, rw_value(r, v)->producer);
    --*left;
    if (op_has(n->op, traits)) return true;
    for (uint32_t i = 0; op_is_scalar(n->op) && i < n->count_in; i++)
        if (rw_same_shape(r, n->in[i], v) && is_made_by(r, n->in[i], traits, only, left)) return true;
    return false;
}

/* Does a transposition move the channels from the last axis to the second? */
static bool is_channels_first(const int64_t *perm, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++)
        if (perm[i] != (i == 1 ? rank - 1 : i ? i - 1 : 0)) return false;
    return rank > 2;
}

/* Operand v of an op, as it must be for the op to come before a transposition to `rank` axes and not behind it;
 * 0: that would take a copy. takes_images: an image may be turned for it. */
static ir_value_id operand_unturned(rewriter *r, ir_value_id v, const int64_t *perm, uint32_t rank, bool takes_images)
{
    const ir_value c = *rw_value(r, v);
    const ir_node *other = rw_def(r, v, OP_transpose);
    int64_t back[SINTER_RANK_MAX];
    dim d[SINTER_RANK_MAX];
    uint32_t left = ASKED;
    for (uint32_t i = 0; i < rank; i++) back[perm[i]] = i;
    for (uint32_t i = 0; i < rank; i++) d[i] = i + c.rank < rank ? dim_const(r->g->dims, 1) : c.dim[i + c.rank - rank];
    ir_value whole = c;
    whole.rank = rank;
    memcpy(whole.dim, d, sizeof d);
    const bool cancels = other && !memcmp(((const attrs_transpose *)other->attrs)->perm.at, perm, rank * sizeof *perm);
    if (!cancels && !ir_is_const(r->g, v) && !moves_ones(r, &whole, back) &&
        !(takes_images && c.rank == rank && is_channels_first(perm, rank) && is_made_by(r, v, IMAGE, false, &left)))
        return 0;
    return build_permuted(r->b, build_shaped(r->b, v, d, rank), back, rank);
}

/* f(transpose(x), c) -> transpose(f(x, c)) behind an op that takes an epilogue, so that f can become part of it. Of two
 * images neither is turned for the other. */
static ir_value_id sink_transpose(rewriter *r, const match *m)
{
    const ir_node_id root = m->root;
    const uint32_t count = rw_node(r, root)->count_in;
    for (uint32_t i = 0; count <= 3 && i < count; i++) {
        const ir_value_id turned = rw_node(r, root)->in[i];
        const ir_node *t = rw_def(r, turned, OP_transpose);
        uint32_t left = ASKED;
        if (!t || !rw_only(r, turned) || !rw_same_shape(r, turned, rw_node(r, root)->out[0]) ||
            !is_made_by(r, t->in[0], FUSES_AFTER, true, &left))
            continue;
        const ir_value_id x = t->in[0];
        const attr_ints p = ((const attrs_transpose *)t->attrs)->perm;
        if (moves_ones(r, rw_value(r, x), p.at)) continue; /* a reshape */
        left = ASKED;
        const bool takes_images = !is_made_by(r, x, IMAGE, false, &left) && left;
        ir_value_id in[3];
        bool ok = true;
        for (uint32_t k = 0; k < count && ok; k++) {
            in[k] = k == i ? x : operand_unturned(r, rw_node(r, root)->in[k], p.at, p.count, takes_images);
            ok = in[k] != 0;
        }
        if (ok) return build_permuted(r->b, build_again(r->b, root, in, count), p.at, p.count);
    }
    return 0;
}

/* clang-format off */
const rule rules_shape[] = {
    { "identity",             MATCH(identity, ANY(X)),                take_x,                 EXACT },
    { "copy",                 MATCH(copy, ANY(X)),                    take_x,                 EXACT },
    { "cast-noop",            MATCH(cast, ANY(X)),                    take_input,             EXACT },
    { "cast-cast",            MATCH(cast, MATCH(cast, ANY(X))),       fold_casts,             EXACT },
    { "reshape-noop",         MATCH(reshape, ANY(X)),                 take_input,             EXACT },
    { "reshape-reshape",      MATCH(reshape, MATCH(reshape, ANY(X))), fold_reshapes,          EXACT },
    { "transpose-transpose",  MATCH(transpose, MATCH(transpose, ANY(X))), fold_transposes,    EXACT },
    { "transpose-reshape",    MATCH(transpose, ANY(X)),               transpose_to_reshape,   EXACT },
    { "transpose-joined",     MATCH(reshape, MATCH(transpose, MATCH(reshape, ANY(X)))), transpose_joined, EXACT },
    { "slice-noop",           MATCH(slice, ANY(X)),                   drop_slice,             EXACT },
    { "expand-noop",          MATCH(expand, ANY(X)),                  take_input,             EXACT },
    { "tile-noop",            MATCH(tile, ANY(X)),                    drop_tile,              EXACT },
    { "tile-expand",          MATCH(tile, ANY(X)),                    tile_to_expand,         EXACT },
    { "concat-one",           ROOT(concat),                           drop_concat,            EXACT },
    { "pad-noop",             ROOT(pad),                              drop_pad,               EXACT },
    { "pad-conv",             ROOT(conv),                             pad_into_conv,          EXACT },
    { "pad-avg-pool",         ROOT(avg_pool),                         pad_into_avg_pool,      EXACT },
    { "pad-max-pool",         ROOT(max_pool),                         pad_into_max_pool,      EXACT },
    { "expand-scalar",        SCALARS,                                expand_into_scalar,     EXACT },
    { "transpose-matmul",     ROOT(matmul),                           transpose_into_matmul,  EXACT },
    { "matmul-weight-rank",   ROOT(matmul),                           matmul_weight_rank,     EXACT },
    { "gather-slice",         ROOT(gather),                           gather_to_slice,        EXACT },
    { .name = NULL },
};

/* Late, so that what is recognised by its shape has been recognised. */
const rule rules_sink[] = {
    { "reshape-sink",         SCALARS,                                sink_reshape,           EXACT },
    { .name = NULL },
};
/* Later still: products of turned matrices are turned first. */
const rule rules_sink_turned[] = {
    { "transpose-sink",       SCALARS,                                sink_transpose,         EXACT },
    { .name = NULL },
};
/* clang-format on */

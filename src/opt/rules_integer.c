/* SPDX-License-Identifier: Apache-2.0 */
/* rules_integer.c - products of dequantised numbers become products of the integers themselves.
 *
 *   product(dequantize(q, s, z), dequantize(w, t, u)) -> cast(product_integer(q, w, z, u)) * (s * t)    w constant
 *   matmul(dequantize(q, s, z), dequantize(k, t, u))  -> matmul(f16(q - z), f16(k - u)) in f32 * (s * t)
 *                                                     or cast(matmul_integer(q, k, z, u)) * (s * t)
 *   dequantize(quantize(x, s, z), s, z)               -> the same without a sign, where z is i8
 *   move(dequantize(q, s, z))                         -> dequantize(move(q), s, z)
 *   quantize(move(x), s, z)                           -> move(quantize(x, s, z))
 *   quantize(concat(x, ...), s, z)                    -> concat(quantize(x, s, z), ...)
 *   quantize(dequantize(q, s, z), s, z)               -> q
 *   quantize(f(dequantize(q, s, z)), s, z)            -> clip(q, quantize(f(-inf), s, z), quantize(f(inf), s, z))
 *                                                        f: relu, clip
 *   cast(product_integer) * (c * s)                   -> cast(product_integer) * c * s    c constant, s one number
 * Sums of integers are exact, so that only the rounding of floats differs. Between two computed factors zero points
 * would want sums of rows and columns; but the difference of two numbers of 8 bits is a number that f16 holds, so their
 * products are exact in f32, and so are sums up to 2^24: never worse than in f32 from the start. These rules are asked
 * for: not every backend multiplies integers faster than floats. What dequantised a weight has been folded by now: its
 * recipe is looked at. */
#include "opt/rewrite.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CONCAT_MAX = 32 };

typedef struct quantized {
    ir_value_id q, scale, zero;
} quantized;

static bool is_byte(const rewriter *r, ir_value_id v)
{
    const sinter_dtype t = rw_value(r, v)->dtype;
    return t == SINTER_DTYPE_I8 || t == SINTER_DTYPE_U8;
}

/* One scale, larger than 0, and one zero point, both constants. */
static bool is_uniform(const rewriter *r, const quantized *x)
{
    double scale, zero;
    return rw_scalar(r, x->scale, &scale) && scale > 0 && (!x->zero || rw_scalar(r, x->zero, &zero));
}

/* A constant whose elements are all equal, as one number. */
static ir_value_id as_scalar(rewriter *r, ir_value_id v)
{
    double x;
    if (!v || !rw_value(r, v)->rank) return v;
    return rw_scalar(r, v, &x) ? build_scalar(r->b, rw_value(r, v)->dtype, x) : 0;
}

static bool dequantized(const rewriter *r, ir_value_id v, quantized *out)
{
    const ir_node *n = rw_def(r, v, OP_dequantize);
    if (!n || rw_value(r, v)->dtype != SINTER_DTYPE_F32) return false;
    *out = (quantized){ n->in[0], n->in[1], n->count_in > 2 ? n->in[2] : 0 };
    /* A scale of more axes gives the result more axes than the codes have. */
    return is_byte(r, out->q) && rw_same_shape(r, out->q, v) && rw_value(r, out->scale)->dtype == SINTER_DTYPE_F32 &&
           is_uniform(r, out);
}

/* ---- weights ---- */

/* The node that made a constant, or makes it where it was too large to fold. */
static ir_node_id maker_of(const rewriter *r, ir_value_id v)
{
    const ir_value *x = rw_value(r, v);
    return x->producer_out ? 0 : x->producer ? x->producer : x->recipe;
}

static ir_value_id transposed(rewriter *r, ir_value_id v, uint32_t rank, const int64_t *perm)
{
    if (!v || rw_value(r, v)->rank != rank) return v && rw_value(r, v)->rank == 0 ? v : 0;
    return build_permuted(r->b, v, perm, rank);
}

static bool weight_of(rewriter *r, ir_value_id v, uint32_t depth, quantized *out)
{
    const ir_node_id id = maker_of(r, v);
    const ir_node *n = rw_node(r, id);
    if (!id || depth > 2 || (n->is_dead && !n->is_folded)) return false;
    if (n->op == OP_transpose) {
        int64_t perm[SINTER_RANK_MAX];
        const uint32_t rank = rw_value(r, v)->rank;
        memcpy(perm, ((const attrs_transpose *)n->attrs)->perm.at, sizeof(perm));
        if (!weight_of(r, n->in[0], depth + 1, out)) return false;
        const bool has_zero = out->zero != 0;
        out->q = transposed(r, out->q, rank, perm);
        out->scale = transposed(r, out->scale, rank, perm);
        if (has_zero) out->zero = transposed(r, out->zero, rank, perm);
        return out->q && out->scale && (out->zero || !has_zero);
    }
    if (n->op != OP_dequantize || rw_value(r, v)->dtype != SINTER_DTYPE_F32) return false;
    *out = (quantized){ n->in[0], n->in[1], n->count_in > 2 ? n->in[2] : 0 };
    double zero;
    if (out->zero && rw_scalar(r, out->zero, &zero) && zero == 0) out->zero = 0;
    return is_byte(r, out->q) && rw_same_shape(r, out->q, v) && ir_is_const(r->g, out->q) &&
           ir_is_const(r->g, out->scale) && rw_value(r, out->scale)->dtype == SINTER_DTYPE_F32 &&
           (!out->zero || ir_is_const(r->g, out->zero));
}

/* Does v vary along no axis of the weight but `axis`? */
static bool is_along(const rewriter *r, ir_value_id v, ir_value_id w, uint32_t axis, bool *is_one)
{
    const ir_value *x = rw_value(r, v), *y = rw_value(r, w);
    *is_one = true;
    if (x->rank > y->rank) return false;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (dim_is(r->g->dims, x->dim[i], 1)) continue;
        if (y->rank - x->rank + i != axis || x->dim[i] != y->dim[axis]) return false;
        *is_one = false;
    }
    return true;
}

/* Zero points as products of integers take them: absent, one, or a row. false: they are neither. */
static bool zero_for(rewriter *r, const quantized *x, uint32_t axis, ir_value_id *out)
{
    double all;
    bool is_one;
    *out = 0;
    if (!x->zero || (rw_scalar(r, x->zero, &all) && all == 0)) return true;
    if (!is_along(r, x->zero, x->q, axis, &is_one)) return false;
    *out = build_shaped(r->b, x->zero, &rw_value(r, x->q)->dim[is_one ? 0 : axis], is_one ? 0 : 1);
    return *out != 0;
}

/* The sums times both scales. along: the axis of channels, from the end, in `rank` axes. */
static ir_value_id scaled(rewriter *r, ir_value_id sum, const quantized *x, const quantized *w, uint32_t axis,
                          uint32_t behind)
{
    bool is_one;
    if (!sum || !is_along(r, w->scale, w->q, axis, &is_one)) return 0;
    dim d[SINTER_RANK_MAX];
    const dim channels = rw_value(r, w->q)->dim[axis];
    for (uint32_t i = 0; i <= behind; i++) d[i] = i ? dim_const(r->g->dims, 1) : channels;
    const ir_value_id each = build_shaped(r->b, w->scale, d, is_one ? 0 : behind + 1);
    const ir_value_id scale = build_mul(r->b, as_scalar(r, x->scale), each);
    return build_mul(r->b, build_typed(r->b, sum, SINTER_DTYPE_F32), scale);
}

static ir_value_id product(rewriter *r, op_id op, const void *attrs, const quantized *x, const quantized *w,
                           uint32_t axis)
{
    ir_value_id zx, zw;
    if (!zero_for(r, x, UINT32_MAX, &zx) || !zero_for(r, w, axis, &zw)) return 0;
    return build_emit(r->b, op, attrs, (ir_value_id[]){ x->q, w->q, zx, zw }, 4);
}

/* Groups of a few channels each: too little for a product of integers to gain, and more than one multiplication. */
static bool is_narrow(const rewriter *r, const ir_node *n)
{
    int64_t filters = 0, channels = 0;
    const ir_value *w = rw_value(r, n->in[1]);
    const int64_t groups = ((const attrs_conv *)n->attrs)->groups;
    if (groups == 1 || !dim_is_const(r->g->dims, w->dim[0], &filters)) return false;
    return dim_is_const(r->g->dims, w->dim[1], &channels) && channels > 1 &&
           (channels < 16 || filters / groups % 8 != 0);
}

static ir_value_id integer_conv(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    quantized x, w;
    if (is_narrow(r, n) || !dequantized(r, n->in[0], &x) || !weight_of(r, n->in[1], 0, &w)) return 0;
    const uint32_t rank = rw_value(r, x.q)->rank;
    const attrs_conv *from = rw_node(r, m->root)->attrs;
    if (rank < 3) return 0;
    const attrs_conv_integer at = {
        .stride = from->stride, .dilation = from->dilation, .pad = from->pad, .groups = from->groups
    };
    return scaled(r, product(r, OP_conv_integer, &at, &x, &w, 0), &x, &w, 0, rank - 2);
}

static ir_value_id integer_matmul(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const attrs_matmul at = *(const attrs_matmul *)n->attrs;
    quantized x, w;
    if (at.trans_a || !dequantized(r, n->in[0], &x) || !weight_of(r, n->in[1], 0, &w)) return 0;
    const uint32_t rank = rw_value(r, w.q)->rank;
    if (rank < 2 || rw_value(r, x.q)->rank < 2) return 0;
    if (at.trans_b) {
        int64_t perm[SINTER_RANK_MAX];
        for (uint32_t i = 0; i < rank; i++) perm[i] = i + 2 < rank ? i : i + 2 == rank ? i + 1 : i - 1;
        const bool has_zero = w.zero != 0;
        w.q = transposed(r, w.q, rank, perm);
        w.scale = transposed(r, w.scale, rank, perm);
        if (has_zero) w.zero = transposed(r, w.zero, rank, perm);
        if (!w.q || !w.scale || (has_zero && !w.zero)) return 0;
    }
    return scaled(r, product(r, OP_matmul_integer, NULL, &x, &w, rank - 1), &x, &w, rank - 1, 0);
}

/* A value of 8 bits, what moves it once it is dequantised, and the scale. */
typedef struct half {
    quantized x;
    double scale;
    ir_node_id move[4]; /* the last first */
    uint32_t count;
} half;

static bool half_of(const rewriter *r, ir_value_id v, half *out)
{
    *out = (half){ .count = 0 };
    while (!dequantized(r, v, &out->x)) {
        const ir_node *n = rw_def(r, v, OP_reshape);
        if (!n) n = rw_def(r, v, OP_transpose);
        if (!n) n = rw_def(r, v, OP_slice);
        if (!n || !rw_only(r, v) || out->count == COUNT_OF(out->move)) return false;
        out->move[out->count++] = rw_value(r, v)->producer;
        v = n->in[0];
    }
    return rw_scalar(r, out->x.scale, &out->scale);
}

/* The number less its zero point, which f16 holds. */
static ir_value_id half_made(rewriter *r, const half *h)
{
    const ir_value_id one = build_scalar(r->b, SINTER_DTYPE_F16, 1), zero = build_shaped(r->b, h->x.zero, NULL, 0);
    ir_value_id y = build_dequantize(r->b, h->x.q, one, zero, SINTER_DTYPE_F16);
    for (uint32_t i = h->count; y && i-- > 0;) y = build_again(r->b, h->move[i], &y, 1);
    return y;
}

/* Both factors are computed. */
static ir_value_id half_matmul(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    half x, y;
    if (!half_of(r, n->in[0], &x) || !half_of(r, n->in[1], &y)) return 0;
    attrs_matmul at = *(const attrs_matmul *)n->attrs;
    at.type = SINTER_DTYPE_F32;
    const ir_value_id a = half_made(r, &x), sum = build_matmul(r->b, a, half_made(r, &y), &at);
    return build_mul(r->b, sum, build_scalar(r->b, SINTER_DTYPE_F32, x.scale * y.scale));
}

/* The codes, moved as the numbers are. */
static ir_value_id codes_made(rewriter *r, const half *h)
{
    ir_value_id y = h->x.q;
    for (uint32_t i = h->count; y && i-- > 0;) y = build_again(r->b, h->move[i], &y, 1);
    return y;
}

/* Both factors are computed, and zero points of both cost little. */
static ir_value_id both_matmul(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const attrs_matmul at = *(const attrs_matmul *)n->attrs;
    const uint32_t rank = rw_value(r, n->in[1])->rank;
    half x, y;
    if (at.trans_a || rank < 2 || rw_value(r, n->in[0])->rank < 2) return 0;
    if (!half_of(r, n->in[0], &x) || !half_of(r, n->in[1], &y)) return 0;
    const ir_value_id a = codes_made(r, &x);
    ir_value_id b = codes_made(r, &y);
    if (at.trans_b) {
        int64_t perm[SINTER_RANK_MAX];
        for (uint32_t i = 0; i < rank; i++) perm[i] = i + 2 < rank ? i : i + 2 == rank ? i + 1 : i - 1;
        b = transposed(r, b, rank, perm);
    }
    if (!a || !b) return 0;
    ir_value_id in[4] = { a, b, as_scalar(r, x.x.zero) };
    in[3] = as_scalar(r, y.x.zero);
    const ir_value_id sum = build_emit(r->b, OP_matmul_integer, NULL, in, 4);
    const ir_value_id scale = build_scalar(r->b, SINTER_DTYPE_F32, x.scale * y.scale);
    return build_mul(r->b, build_typed(r->b, sum, SINTER_DTYPE_F32), scale);
}

/* Codes with a sign are 128 more without one, and so is their zero point. */
static ir_value_id unsigned_data(rewriter *r, const match *m)
{
    enum { CLIPS = 4 };
    const double more = 128;
    quantized x;
    double bound[CLIPS][2], zero = 0, own_zero = 0;
    uint32_t clips = 0;
    if (!dequantized(r, rw_node(r, m->root)->out[0], &x) || rw_value(r, x.q)->dtype != SINTER_DTYPE_I8) return 0;
    ir_value_id v = x.q;
    for (const ir_node *c = rw_def(r, v, OP_clip); c && clips < CLIPS; c = rw_def(r, v, OP_clip)) {
        if (!rw_scalar(r, c->in[1], &bound[clips][0]) || !rw_scalar(r, c->in[2], &bound[clips][1])) return 0;
        clips++;
        v = c->in[0];
    }
    const ir_node *q = rw_def(r, v, OP_quantize);
    if (!q) return 0;
    const quantized own = { v, q->in[1], q->count_in > 2 ? q->in[2] : 0 };
    if (!is_uniform(r, &own)) return 0;
    if ((x.zero && !rw_scalar(r, x.zero, &zero)) || (own.zero && !rw_scalar(r, own.zero, &own_zero))) return 0;
    const sinter_dtype type = SINTER_DTYPE_U8;
    const ir_value_id from = q->in[0], own_moved = build_scalar(r->b, type, own_zero + more);
    ir_value_id y = build_quantize(r->b, from, as_scalar(r, own.scale), own_moved, type);
    while (y && clips-- > 0) {
        const ir_value_id most = build_scalar(r->b, type, bound[clips][1] + more);
        y = build_clip(r->b, y, build_scalar(r->b, type, bound[clips][0] + more), most);
    }
    const ir_value_id moved = build_scalar(r->b, type, zero + more);
    return build_dequantize(r->b, y, as_scalar(r, x.scale), moved, SINTER_DTYPE_F32);
}

/* Scales that are computed while the model runs multiply the sums in the product's epilogue. */
static ir_value_id scale_late(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id x = n->in[i], s = n->in[1 - i];
        const ir_node *cast = rw_def(r, x, OP_cast), *scale = rw_def(r, s, OP_mul);
        if (!cast || !scale || !rw_only(r, s)) continue;
        const ir_node *sum = rw_def(r, cast->in[0], OP_matmul_integer);
        if (!sum && !rw_def(r, cast->in[0], OP_conv_integer)) continue;
        for (uint32_t k = 0; k < 2; k++) {
            const ir_value_id c = scale->in[k], one = scale->in[1 - k];
            if (!ir_is_const(r->g, c) || ir_is_const(r->g, one) || rw_value(r, one)->rank) continue;
            return build_mul(r->b, build_mul(r->b, x, c), one);
        }
    }
    return 0;
}

/* ---- what moves numbers, or picks the largest ---- */

static ir_value_id again(rewriter *r, ir_value_id q, const quantized *x)
{
    const ir_value_id scale = as_scalar(r, x->scale), zero = as_scalar(r, x->zero);
    return build_dequantize(r->b, q, scale, zero, SINTER_DTYPE_F32);
}

/* The one node that reads v; NULL: none, or several. */
static const ir_node *reader_of(const rewriter *r, ir_value_id v)
{
    if (!rw_only(r, v)) return NULL;
    const ir_use_list use = r->g->use.at[v];
    for (uint32_t i = 0; i < use.count; i++) {
        const ir_node *n = rw_node(r, use.at[i] >> 1);
        if (use.at[i] & 1u || n->is_dead) continue;
        for (uint32_t k = 0; k < n->count_in; k++)
            if (n->in[k] == v) return n;
    }
    return NULL;
}

/* Does v end in a product of floats that neither of these rules nor an epilogue reaches? Then it is best dequantised
 * where it was quantised, in front of what moves it. */
static bool ends_in_floats(const rewriter *r, ir_value_id v)
{
    const ir_node *n = reader_of(r, v);
    for (uint32_t depth = 0; n && depth < 8 && (n->op == OP_reshape || n->op == OP_transpose); depth++)
        n = reader_of(r, n->out[0]);
    return n && (n->op == OP_attention ||
                 (n->op == OP_matmul && !ir_is_const(r->g, n->in[0]) && !ir_is_const(r->g, n->in[1])));
}

static ir_value_id move_integers(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    quantized x;
    if (n->count_out > 1 || !dequantized(r, n->in[0], &x) || ends_in_floats(r, n->out[0])) return 0;
    return again(r, build_again(r->b, m->root, &x.q, 1), &x);
}

/* Only the nearest element is taken, and always one of the image. */
static ir_value_id resize_integers(rewriter *r, const match *m)
{
    const attrs_resize *at = rw_node(r, m->root)->attrs;
    if (at->mode != resize_mode_nearest || at->antialias || at->coordinate == resize_coordinate_tf_crop_and_resize)
        return 0;
    return move_integers(r, m);
}

static bool same_scalar(const rewriter *r, ir_value_id a, ir_value_id b)
{
    double x = 0, y = 0;
    return (!a || rw_scalar(r, a, &x)) && (!b || rw_scalar(r, b, &y)) && x == y;
}

static bool same_numbers(const rewriter *r, const quantized *a, const quantized *b)
{
    return rw_value(r, a->q)->dtype == rw_value(r, b->q)->dtype && same_scalar(r, a->scale, b->scale) &&
           same_scalar(r, a->zero, b->zero);
}

static ir_value_id join_integers(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const uint32_t count = n->count_in;
    ir_value_id part[CONCAT_MAX];
    quantized first, x;
    if (count > CONCAT_MAX || !dequantized(r, n->in[0], &first)) return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!dequantized(r, n->in[i], &x) || !same_numbers(r, &first, &x)) return 0;
        part[i] = x.q;
    }
    return again(r, build_again(r->b, m->root, part, count), &first);
}

/* The node that moves v and does nothing else, where only one reads it. */
static ir_node_id mover_of(const rewriter *r, ir_value_id v)
{
    const ir_node *n = rw_def(r, v, OP_reshape);
    if (!n) n = rw_def(r, v, OP_transpose);
    return n && rw_only(r, v) ? rw_value(r, v)->producer : 0;
}

/* f(move(x), one scale, one zero point) -> move(f(x, …)) */
static ir_value_id before_move(rewriter *r, ir_node_id root)
{
    const ir_node *n = rw_node(r, root);
    const ir_node_id mover = mover_of(r, n->in[0]);
    const quantized x = { rw_node(r, mover)->in[0], n->in[1], n->count_in > 2 ? n->in[2] : 0 };
    if (!is_uniform(r, &x)) return 0;
    const uint32_t count = n->count_in;
    ir_value_id in[3] = { x.q, as_scalar(r, x.scale) };
    in[2] = as_scalar(r, x.zero);
    const ir_value_id y = build_again(r->b, root, in, count);
    return build_again(r->b, mover, &y, 1);
}

/* What computes x takes the rounding as its epilogue, and bytes are moved. */
static ir_value_id quantize_early(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const ir_node_id mover = mover_of(r, n->in[0]);
    if (!mover || !rw_only(r, n->in[0])) return 0;
    const ir_node *maker = rw_node(r, rw_value(r, rw_node(r, mover)->in[0])->producer);
    const bool is_move = maker->op == OP_reshape || maker->op == OP_transpose;
    if (!rw_value(r, rw_node(r, mover)->in[0])->producer || maker->op == OP_dequantize ||
        !(is_move || op_is_scalar(maker->op) || op_at(maker->op)->traits & FUSES_AFTER))
        return 0;
    return before_move(r, m->root);
}

/* What computes each part rounds it. */
static ir_value_id quantize_parts(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root), *c = rw_def(r, n->in[0], OP_concat);
    const quantized x = { n->in[0], n->in[1], n->count_in > 2 ? n->in[2] : 0 };
    if (!c || c->count_in > CONCAT_MAX || !rw_only(r, x.q) || !is_uniform(r, &x)) return 0;
    ir_value_id part[CONCAT_MAX];
    const uint32_t count = c->count_in, count_in = n->count_in;
    const ir_node_id concat = rw_value(r, x.q)->producer;
    memcpy(part, c->in, count * sizeof *part);
    for (uint32_t i = 0; i < count; i++)
        if (ir_is_const(r->g, part[i])) return 0;
    const ir_value_id scale = as_scalar(r, x.scale), zero = as_scalar(r, x.zero);
    for (uint32_t i = 0; i < count; i++)
        part[i] = build_again(r->b, m->root, (ir_value_id[]){ part[i], scale, zero }, count_in);
    return build_again(r->b, concat, part, count);
}

static ir_value_id dequantize_early(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    return mover_of(r, n->in[0]) && ends_in_floats(r, n->out[0]) ? before_move(r, m->root) : 0;
}

/* Does quantize node n round v, which is dequantised with the same numbers? Exact then: the quotient is a few roundings
 * from an integer below 256, unless the product is infinite. */
static bool rounds_again(const rewriter *r, const ir_node *n, ir_value_id v, quantized *x)
{
    double scale;
    if (!dequantized(r, v, x) || !rw_scalar(r, x->scale, &scale) || scale > FLT_MAX / 512) return false;
    const quantized own = { n->out[0], n->in[1], n->count_in > 2 ? n->in[2] : 0 };
    return same_numbers(r, x, &own);
}

static ir_value_id quantize_again(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    quantized x;
    return rounds_again(r, n, n->in[0], &x) ? x.q : 0;
}

/* Rounding to steps and cutting off may change places, for both keep the order of numbers. */
static ir_value_id quantize_cut(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root), *f = rw_def(r, n->in[0], OP_relu);
    double cut[2] = { 0, INFINITY }, scale, zero = 0;
    if (!f && (f = rw_def(r, n->in[0], OP_clip)) &&
        (!rw_scalar(r, f->in[1], &cut[0]) || !rw_scalar(r, f->in[2], &cut[1])))
        return 0;
    quantized x;
    if (!f || isnan(cut[0]) || isnan(cut[1]) || !rounds_again(r, n, f->in[0], &x)) return 0;
    if (!rw_scalar(r, x.scale, &scale) || (x.zero && !rw_scalar(r, x.zero, &zero))) return 0;
    const sinter_dtype type = rw_value(r, x.q)->dtype;
    ir_value_id in[3] = { x.q };
    for (int i = 0; i < 2; i++) {
        const scalar arg[3] = { { .f = cut[i] }, { .f = scale }, { .i = (int64_t)zero } };
        in[i + 1] = build_scalar(r->b, type, (double)scalar_eval(OP_quantize, SINTER_DTYPE_F32, type, arg).i);
    }
    return build_clip(r->b, in[0], in[1], in[2]);
}

/* Between integers, samples are blended as f32 and rounded: no kernel blends integers. 16 bits are exact in f32. */
static ir_value_id resize_floats(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    const attrs_resize *a = n->attrs;
    const sinter_dtype type = rw_value(r, n->in[0])->dtype;
    if (a->mode == resize_mode_nearest || !dtype_is_int(type) || sinter_dtype_bits(type) > 16) return 0;
    const ir_value_id x = build_typed(r->b, n->in[0], SINTER_DTYPE_F32), y = build_again(r->b, m->root, &x, 1);
    return build_typed(r->b, build_round(r->b, y), type);
}

/* clang-format off */
const rule rules_requantize[] = {
    { "integer-again",     ROOT(quantize),  quantize_again, EXACT },
    { "integer-cut",       ROOT(quantize),  quantize_cut,   EXACT },
    { "integer-blend",     ROOT(resize),    resize_floats,  REASSOC },
    { .name = NULL },
};
const rule rules_unsigned[] = {
    { "integer-unsigned",  ROOT(dequantize), unsigned_data, EXACT },
    { "integer-both",      ROOT(matmul),    both_matmul,    REASSOC },
    { .name = NULL },
};
const rule rules_integer[] = {
    { "integer-conv",      ROOT(conv),      integer_conv,   REASSOC },
    { "integer-matmul",    ROOT(matmul),    integer_matmul, REASSOC },
    { "integer-half",      ROOT(matmul),    half_matmul,    REASSOC },
    { "integer-scale",     ROOT(mul),       scale_late,     REASSOC },
    { "integer-max-pool",  ROOT(max_pool),  move_integers,  EXACT },
    { "integer-reshape",   ROOT(reshape),   move_integers,  EXACT },
    { "integer-transpose", ROOT(transpose), move_integers,  EXACT },
    { "integer-slice",     ROOT(slice),     move_integers,  EXACT },
    { "integer-expand",    ROOT(expand),    move_integers,  EXACT },
    { "integer-resize",    ROOT(resize),    resize_integers, EXACT },
    { "integer-concat",    ROOT(concat),    join_integers,  EXACT },
    { "integer-early",     ROOT(quantize),  quantize_early, EXACT },
    { "integer-parts",     ROOT(quantize),  quantize_parts, EXACT },
    { "integer-back",      ROOT(dequantize), dequantize_early, EXACT },
    { .name = NULL },
};
/* clang-format on */

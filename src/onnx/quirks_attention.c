/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_attention.c - Attention with its heads, caches and masks, and rotary embeddings.
 *
 * All masks become one, boolean as long as possible. The canonical op's own causal mask is used where its corner is the
 * same: where the keys before the first query are exactly the cached ones. */
#include "onnx/quirks_attention.h"
#include "ops/infer_check.h"
#include <math.h>
#include <string.h>

/* [B, S, H*D] to [B, H, S, D] */
ir_value_id quirk_heads_apart(onnx_call *c, ir_value_id v, int64_t heads)
{
    static const int64_t perm[4] = { 0, 2, 1, 3 };
    dim d[SINTER_RANK_MAX];
    if (!v || call_shape(c, v, d) != 3) return v;
    if (heads < 1) {
        REJECT(c, INVALID_MODEL, "an input of rank 3 and no number of heads");
        return 0;
    }
    const dim split[4] = { d[0], d[1], call_k(c, heads), call_quotient(c, d[2], call_k(c, heads)) };
    return build_permuted(&c->b, build_shaped(&c->b, v, split, 4), perm, 4);
}

ir_value_id quirk_heads_together(onnx_call *c, ir_value_id v)
{
    static const int64_t perm[4] = { 0, 2, 1, 3 };
    dim d[SINTER_RANK_MAX];
    if (call_shape(c, v, d) != 4) return v;
    const dim flat[3] = { d[0], d[2], dim_mul(c->b.g->dims, d[1], d[3]) };
    return build_shaped(&c->b, build_permuted(&c->b, v, perm, 4), flat, 3);
}

ir_value_id quirk_masks_joined(onnx_call *c, ir_value_id a,
                               ir_value_id b) /* both masks: boolean, or one with a number */
{
    if (!a || !b) return a ? a : b;
    const bool bool_a = call_type(c, a) == SINTER_DTYPE_BOOL, bool_b = call_type(c, b) == SINTER_DTYPE_BOOL;
    if (bool_a && bool_b) return build_and(&c->b, a, b);
    if (!bool_a && !bool_b) return build_add(&c->b, a, b);
    const ir_value_id flag = bool_a ? a : b, number = bool_a ? b : a;
    return build_where(&c->b, flag, number, build_scalar_like(&c->b, number, -(double)INFINITY));
}

ir_value_id quirk_repeat_heads(onnx_call *c, ir_value_id k, ir_value_id q)
{
    dim dk[SINTER_RANK_MAX], dq[SINTER_RANK_MAX];
    call_shape(c, k, dk);
    call_shape(c, q, dq);
    if (dk[1] == dq[1]) return k;
    const dim wide[5] = { dk[0], dk[1], call_quotient(c, dq[1], dk[1]), dk[2], dk[3] };
    dk[1] = dq[1];
    return build_shaped(&c->b, build_expanded(&c->b, build_unsqueezed(&c->b, k, 2), wide, 5), dk, 4);
}

/* j <= i + offset, in [S, T], or [B, 1, S, T] where the offset is one of each batch; or j >= i + offset. */
static ir_value_id band(onnx_call *c, ir_value_id rows, ir_value_id columns, ir_value_id offset, int64_t shift,
                        bool below)
{
    ir_value_id at = build_add(&c->b, rows, offset);
    if (shift) at = build_add(&c->b, at, build_scalar_i64(&c->b, SINTER_DTYPE_I64, shift));
    return build_binary(&c->b, below ? OP_le : OP_ge, columns, at);
}

static void masks(onnx_call *c, quirk_heads *h, dim past, ir_value_id lengths)
{
    dim_table *t = c->b.g->dims;
    const dim s = call_dim(c, h->q, 2), total = call_dim(c, h->k, 2);
    const int64_t left = call_int(c, "left_window_size", -1), right = call_int(c, "right_window_size", -1);
    if (h->mask && call_rank(c, h->mask)) {
        dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
        const uint32_t rank = call_rank(c, h->mask);
        for (uint32_t i = 0; i < rank; i++) begin[i] = end[i] = call_k(c, 0);
        const dim last = call_dim(c, h->mask, rank - 1);
        end[rank - 1] = dim_sub(t, total, last);
        const bool is_bool = call_type(c, h->mask) == SINTER_DTYPE_BOOL;
        int64_t more = 0;
        const bool is_short = dim_is_const(t, end[rank - 1], &more) ? more > 0 : dim_is_const(t, last, NULL);
        if (is_short && !dim_is(t, last, 1))
            h->mask = build_padded(&c->b, h->mask, pad_mode_constant, begin, end,
                                   build_scalar_like(&c->b, h->mask, is_bool ? 0 : -(double)INFINITY));
    }
    h->causal = call_int(c, "is_causal", 0) != 0;
    const bool same_corner = dim_sub(t, total, s) == past && !lengths;
    const bool windows = left >= 0 || right >= 0;
    if (!windows && !lengths && (!h->causal || same_corner)) return;
    const ir_value_id rows = build_unsqueezed(&c->b, build_iota(&c->b, s), 1),
                      columns = build_unsqueezed(&c->b, build_iota(&c->b, total), 0);
    ir_value_id offset = build_sizes(&c->b, &past, 1, true);
    if (lengths) {
        dim d[4] = { call_dim(c, lengths, 0), call_k(c, 1), call_k(c, 1), call_k(c, 1) };
        if (call_rank(c, lengths) == 0) d[0] = call_k(c, 1);
        lengths = build_shaped(&c->b, build_typed(&c->b, lengths, SINTER_DTYPE_I64), d, 4);
        offset = build_sub(&c->b, lengths, build_sizes(&c->b, &s, 1, true));
        h->mask = quirk_masks_joined(c, h->mask, build_lt(&c->b, columns, lengths));
    }
    if (h->causal) h->mask = quirk_masks_joined(c, h->mask, band(c, rows, columns, offset, 0, true));
    if (right >= 0) h->mask = quirk_masks_joined(c, h->mask, band(c, rows, columns, offset, right, true));
    if (left >= 0) h->mask = quirk_masks_joined(c, h->mask, band(c, rows, columns, offset, -left, false));
    h->causal = false;
}

ir_value_id quirk_head_scale(onnx_call *c, dim size)
{
    const ir_value_id number = build_sizes(&c->b, &size, 1, true);
    return build_rsqrt(&c->b, build_typed(&c->b, number, SINTER_DTYPE_F32));
}

/* The default scale. If only a run knows the size of a head, the query takes the scale up. */
void quirk_scale_default(onnx_call *c, quirk_heads *h)
{
    int64_t size = 0;
    h->scale = 1;
    if (c->b.status) return;
    if (!call_size(c, h->q, 3, &size))
        h->q =
            build_mul(&c->b, h->q, build_typed(&c->b, quirk_head_scale(c, call_dim(c, h->q, 3)), call_type(c, h->q)));
    else if (size > 0) h->scale = 1 / sqrt((double)size);
}

ir_value_id quirk_attended(onnx_call *c, const quirk_heads *h)
{
    attrs_attention *a = DEFAULTS(attention);
    a->scale = h->scale;
    a->causal = h->causal;
    a->softcap = h->softcap;
    return build_attended(&c->b, h->q, h->k, h->v, h->mask, 0, a);
}

/* The scores, at one of four stages, for those who ask to see them. */
ir_value_id quirk_scores(onnx_call *c, const quirk_heads *h, int64_t mode, dim past)
{
    const ir_value_id k = quirk_repeat_heads(c, h->k, h->q);
    const double root = sqrt(h->scale);
    const ir_value_id keys = build_mul(&c->b, k, build_scalar_like(&c->b, k, root));
    const ir_value_id queries = build_mul(&c->b, h->q, build_scalar_like(&c->b, h->q, root));
    ir_value_id y = build_matmul(&c->b, queries, keys, &(attrs_matmul){ .trans_b = true });
    if (mode == 0) return y;
    if (h->softcap > 0) {
        const ir_value_id cap = build_scalar_like(&c->b, y, h->softcap);
        y = build_mul(&c->b, build_tanh(&c->b, build_div(&c->b, y, cap)), cap);
    }
    if (mode == 1) return y;
    ir_value_id mask = h->mask;
    if (h->causal) {
        const ir_value_id rows = build_unsqueezed(&c->b, build_iota(&c->b, call_dim(c, h->q, 2)), 1);
        const ir_value_id columns = build_unsqueezed(&c->b, build_iota(&c->b, call_dim(c, h->k, 2)), 0);
        mask = quirk_masks_joined(c, mask, band(c, rows, columns, build_sizes(&c->b, &past, 1, true), 0, true));
    }
    const bool is_bool = mask && call_type(c, mask) == SINTER_DTYPE_BOOL;
    if (is_bool) y = build_where(&c->b, mask, y, build_scalar_like(&c->b, y, -(double)INFINITY));
    else if (mask) y = build_add(&c->b, y, build_typed(&c->b, mask, call_type(c, y)));
    if (mode == 2 || c->b.status) return y;
    const ir_value_id p = build_softmax(&c->b, y, &(attrs_softmax){ .axis = 3 });
    if (!mask) return p;
    /* A row without an allowed key is all zero. */
    const int64_t last = 3;
    const ir_value_id best = build_reduced(&c->b, reduce_kind_max, y, &last, 1, true);
    const ir_value_id zero = build_scalar_like(&c->b, p, 0);
    return build_where(&c->b, build_is_inf_neg(&c->b, best), zero, p);
}

void convert_attention(onnx_call *c)
{
    const bool flat = call_rank(c, call_in(c, 0)) == 3;
    const int64_t q_heads = call_int(c, "q_num_heads", 0), kv_heads = call_int(c, "kv_num_heads", q_heads);
    quirk_heads h = { .q = quirk_heads_apart(c, call_in(c, 0), q_heads), .mask = call_in(c, 3) };
    h.k = quirk_heads_apart(c, call_in(c, 1), kv_heads);
    h.v = quirk_heads_apart(c, call_in(c, 2), kv_heads);
    h.softcap = call_real(c, "softcap", 0);
    if (h.mask && call_type(c, h.mask) != SINTER_DTYPE_BOOL)
        h.mask = build_typed(&c->b, h.mask, call_type(c, h.q)); /* is added */
    if (!h.q || !h.k || !h.v || call_rank(c, h.q) != 4 || call_rank(c, h.k) != 4 || call_rank(c, h.v) != 4)
        REJECT(c, INVALID_MODEL, "query, key and value are not all of rank 3 or 4");
    if (!call_in(c, 4) != !call_in(c, 5)) REJECT(c, INVALID_MODEL, "past_key and past_value do not come together");
    if (c->b.status) return;
    dim past = call_k(c, 0);
    if (call_in(c, 4)) {
        past = call_dim(c, call_in(c, 4), 2);
        h.k = build_concat(&c->b, (ir_value_id[]){ call_in(c, 4), h.k }, 2, &(attrs_concat){ .axis = 2 });
        h.v = build_concat(&c->b, (ir_value_id[]){ call_in(c, 5), h.v }, 2, &(attrs_concat){ .axis = 2 });
    }
    const ir_value_id values = h.v; /* may have a type of their own */
    h.v = build_typed(&c->b, h.v, call_type(c, h.q));
    if (call_attr(c, "scale")) h.scale = call_real(c, "scale", 1);
    else quirk_scale_default(c, &h);
    if (c->b.status) return;
    masks(c, &h, past, call_in(c, 6));
    const ir_value_id y = quirk_attended(c, &h);
    c->out[0] = flat ? quirk_heads_together(c, y) : y;
    if (c->count_out > 1) c->out[1] = h.k;
    if (c->count_out > 2) c->out[2] = values;
    if (call_wants(c, 3)) c->out[3] = quirk_scores(c, &h, call_int(c, "qk_matmul_output_mode", 0), past);
}

/* A mask of keys: true before `ends` and, where `starts` is given, from there on. Both have a number for each of the
 * batch. */
static ir_value_id between(onnx_call *c, ir_value_id starts, ir_value_id ends, dim total)
{
    const ir_value_id place =
        build_typed(&c->b, build_unsqueezed(&c->b, build_iota(&c->b, total), 0), call_type(c, ends));
    for (uint32_t axis = 1; axis < 4; axis++) { /* [B, 1, 1, 1] */
        ends = build_unsqueezed(&c->b, ends, axis);
        if (starts) starts = build_unsqueezed(&c->b, starts, axis);
    }
    const ir_value_id is_before = build_lt(&c->b, place, ends);
    return starts ? build_and(&c->b, is_before, build_ge(&c->b, place, starts)) : is_before;
}

/* A padding mask of com.microsoft's operators as numbers that are added: integers that say of each key whether it
 * counts, [B, T] or [B, S, T]; or how many of the keys count, [B]; or where those that count end, and then where they
 * begin, [2 B]; or how many count, and then where queries and keys begin among those of all the batch, [3 B + 2]. Keys
 * that do not count get mask_filter_value. */
ir_value_id quirk_padding(onnx_call *c, ir_value_id mask, const quirk_heads *h)
{
    dim_table *t = c->b.g->dims;
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = mask ? call_shape(c, mask, d) : 0;
    const dim total = call_dim(c, h->k, 2), batch = call_dim(c, h->q, 0), twice = dim_mul(t, batch, call_k(c, 2));
    if (!mask || c->b.status) return 0;
    const bool has_starts = rank == 1 && d[0] == twice,
               has_sums = rank == 1 && d[0] == dim_add(t, dim_add(t, twice, batch), call_k(c, 2));
    if (has_sums) mask = build_part(&c->b, mask, 0, call_k(c, 0), 1, batch);
    if (rank < 1 || rank > 3 || (!has_starts && !has_sums && !infer_agree(t, d[0], batch)) ||
        (rank > 1 && !infer_agree(t, d[rank - 1], total))) {
        REJECT(c, UNSUPPORTED, "a padding mask of another shape than [B], [2 B], [3 B + 2], [B, T] or [B, S, T]");
        return 0;
    }
    ir_value_id counts;
    if (has_starts) {
        const ir_value_id ends = build_part(&c->b, mask, 0, call_k(c, 0), 1, batch),
                          starts = build_part(&c->b, mask, 0, batch, 1, batch);
        counts = between(c, starts, ends, total);
    } else if (rank == 1) {
        counts = between(c, 0, mask, total);
    } else {
        ir_value_id wide = build_unsqueezed(&c->b, mask, 1);
        if (rank == 2) wide = build_unsqueezed(&c->b, wide, 2);
        counts = build_gt(&c->b, wide, build_scalar_like(&c->b, mask, 0));
    }
    const double hidden = call_real(c, "mask_filter_value", -10000);
    const ir_value_id masked = build_scalar_like(&c->b, h->q, hidden);
    return build_where(&c->b, counts, build_scalar_like(&c->b, h->q, 0), masked);
}

void convert_multi_head_attention(onnx_call *c) /* com.microsoft's */
{
    for (uint32_t i = 8; i < c->count_in; i++)
        if (call_in(c, i)) REJECT(c, UNSUPPORTED, "input %u is not supported", i);
    const int64_t n = call_int(c, "num_heads", 0);
    ir_value_id in[3] = { call_in(c, 0), call_in(c, 1), call_in(c, 2) };
    dim at = call_k(c, 0);
    for (uint32_t i = 0; i < 3; i++) {
        if (!in[i]) REJECT(c, UNSUPPORTED, "packed query, key and value are not supported");
        if (c->b.status) return;
        if (call_in(c, 3) && call_rank(c, in[i]) == 3) { /* one bias for the three, one after the other */
            const dim width = call_dim(c, in[i], 2);
            in[i] = build_add(&c->b, in[i], build_part(&c->b, call_in(c, 3), 0, at, 1, width));
            at = dim_add(c->b.g->dims, at, width);
        } else if (call_in(c, 3) && i == 0) { /* keys and values with heads apart have their bias already */
            REJECT(c, UNSUPPORTED, "a bias for queries of rank %u", call_rank(c, in[0]));
        }
        in[i] = quirk_heads_apart(c, in[i], n);
    }
    quirk_heads h = { in[0], in[1], in[2], call_in(c, 5), 0, 0, false };
    if (!call_in(c, 6) != !call_in(c, 7)) REJECT(c, INVALID_MODEL, "past_key and past_value do not come together");
    if (c->b.status || call_rank(c, h.q) != 4 || call_rank(c, h.k) != 4 || call_rank(c, h.v) != 4) {
        REJECT(c, INVALID_MODEL, "query, key and value are not all of rank 3 or 4");
        return;
    }
    dim past = call_k(c, 0);
    if (call_in(c, 6)) {
        past = call_dim(c, call_in(c, 6), 2);
        h.k = build_concat(&c->b, (ir_value_id[]){ call_in(c, 6), h.k }, 2, &(attrs_concat){ .axis = 2 });
        h.v = build_concat(&c->b, (ir_value_id[]){ call_in(c, 7), h.v }, 2, &(attrs_concat){ .axis = 2 });
    }
    h.scale = call_real(c, "scale", 0);
    if (h.scale == 0) quirk_scale_default(c, &h);
    h.causal = call_int(c, "unidirectional", 0) != 0;
    h.mask = quirk_masks_joined(c, h.mask, quirk_padding(c, call_in(c, 4), &h));
    if (c->b.status) return;
    const dim tokens = call_dim(c, h.q, 2), total = call_dim(c, h.k, 2);
    if (h.causal && dim_sub(c->b.g->dims, total, tokens) != past) { /* the corner is not the op's own */
        const ir_value_id rows = build_unsqueezed(&c->b, build_iota(&c->b, tokens), 1),
                          columns = build_unsqueezed(&c->b, build_iota(&c->b, total), 0);
        h.mask = quirk_masks_joined(c, h.mask, band(c, rows, columns, build_sizes(&c->b, &past, 1, true), 0, true));
        h.causal = false;
    }
    c->out[0] = quirk_heads_together(c, quirk_attended(c, &h));
    if (c->count_out > 1) c->out[1] = h.k;
    if (c->count_out > 2) c->out[2] = h.v;
}

/* com.microsoft's Attention: the three products with one matrix of weights, then attention with padding and caches. */
void convert_attention_packed(onnx_call *c)
{
    const int64_t n = call_int(c, "num_heads", 0);
    attr_ints sizes = { 0 };
    int64_t all = 0, size = 0;
    if (call_int(c, "do_rotary", 0)) REJECT(c, UNSUPPORTED, "attribute do_rotary");
    if (call_in(c, 6)) REJECT(c, UNSUPPORTED, "caches that the keys are written into");
    if (!call_in(c, 0) || !call_in(c, 1) || call_rank(c, call_in(c, 0)) != 3 || n < 1)
        REJECT(c, INVALID_MODEL, "an input that is not of rank 3, or no weights or heads");
    if (!c->b.status && !call_size(c, call_in(c, 1), 1, &all)) REJECT(c, UNSUPPORTED, "weights of a size that varies");
    if (!call_ints(c, "qkv_hidden_sizes", &sizes) || !sizes.count) {
        sizes.count = 3;
        for (uint32_t i = 0; i < 3; i++) sizes.at[i] = all / 3;
    }
    if (sizes.count != 3 || sizes.at[0] + sizes.at[1] + sizes.at[2] != all || sizes.at[0] % n || sizes.at[2] % n)
        REJECT(c, INVALID_MODEL, "heads of sizes that the weights do not have");
    if (c->b.status) return;
    ir_value_id x = build_matmul(&c->b, call_in(c, 0), call_in(c, 1), NULL), part[3];
    if (call_in(c, 2)) x = build_add(&c->b, x, call_in(c, 2));
    int64_t from = 0;
    for (uint32_t i = 0; i < 3; from += sizes.at[i++])
        part[i] = quirk_heads_apart(c, build_part(&c->b, x, 2, call_k(c, from), 1, call_k(c, sizes.at[i])), n);
    quirk_heads h = {
        part[0], part[1], part[2], call_in(c, 5), call_real(c, "scale", 0), 0, call_int(c, "unidirectional", 0) != 0
    };
    for (uint32_t i = 0; i < 2 && call_in(c, 4); i++) { /* [2, B, H, P, D] */
        const ir_value_id past =
            build_squeezed(&c->b, build_part(&c->b, call_in(c, 4), 0, call_k(c, i), 1, call_k(c, 1)), 0);
        if (i == 0) h.k = build_concat(&c->b, (ir_value_id[]){ past, h.k }, 2, &(attrs_concat){ .axis = 2 });
        else h.v = build_concat(&c->b, (ir_value_id[]){ past, h.v }, 2, &(attrs_concat){ .axis = 2 });
    }
    if (!c->b.status && call_size(c, h.q, 3, &size) && h.scale == 0) h.scale = 1 / sqrt((double)size);
    h.mask = quirk_masks_joined(c, h.mask, quirk_padding(c, call_in(c, 3), &h));
    c->out[0] = quirk_heads_together(c, quirk_attended(c, &h));
    if (call_wants(c, 1)) {
        const ir_value_id k = build_unsqueezed(&c->b, h.k, 0), v = build_unsqueezed(&c->b, h.v, 0);
        c->out[1] = build_concat(&c->b, (ir_value_id[]){ k, v }, 2, &(attrs_concat){ .axis = 0 });
    }
}

/* The same on quantised numbers: what they stand for goes in. */
void convert_qattention(onnx_call *c)
{
    const ir_value_id *given = c->in;
    const uint32_t count = c->count_in;
    for (uint32_t i = 0; i < 5; i++)
        if (!call_in(c, i) && i != 2) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    if (c->b.status) return;
    const ir_value_id zero = quirk_scalar_in(c, call_in(c, 6)), scale = quirk_scalar_in(c, call_in(c, 3));
    const ir_value_id x = quirk_dequantize(c, call_in(c, 0), scale, zero);
    const ir_value_id w = quirk_dequantize(c, call_in(c, 1), call_in(c, 4), call_in(c, 7));
    const ir_value_id in[5] = { x, w, call_in(c, 2), call_in(c, 5), call_in(c, 8) };
    c->in = in;
    c->count_in = COUNT_OF(in);
    if (!c->b.status) convert_attention_packed(c);
    c->in = given;
    c->count_in = count;
}

/* ---- rotary embedding: x in [B, S, H, D]; caches in [B, S, D/2], or [P, D/2] picked by position ---- */
/* x cos + x' sin: in x' the two elements of each pair have changed places, and sin is negative for the first of them.
 * So what is as long as x is read and written once. */
static ir_value_id rotated(onnx_call *c, ir_value_id x, ir_value_id cosine, ir_value_id sine, dim half,
                           bool interleaved)
{
    dim d[SINTER_RANK_MAX];
    const dim zero = call_k(c, 0), one = call_k(c, 1), two = call_k(c, 2), width = dim_mul(c->b.g->dims, half, two);
    call_shape(c, x, d);
    const uint32_t axis = interleaved ? 4 : 3; /* of a pair */
    const dim paired[5] = { d[0], d[1], d[2], interleaved ? half : two, interleaved ? two : half },
              whole[4] = { d[0], d[1], d[2], width };
    const bool is_whole = d[3] == width;
    const ir_value_id turning =
        build_shaped(&c->b, is_whole ? x : build_part(&c->b, x, 3, zero, 1, width), paired, COUNT_OF(paired));
    const ir_value_id other = build_part(&c->b, turning, axis, one, -1, two);
    cosine = build_unsqueezed(&c->b, cosine, axis);
    sine = build_unsqueezed(&c->b, sine, axis);
    const attrs_concat both = { .axis = (int64_t)axis };
    cosine = build_concat(&c->b, (ir_value_id[]){ cosine, cosine }, 2, &both);
    sine = build_concat(&c->b, (ir_value_id[]){ build_neg(&c->b, sine), sine }, 2, &both);
    const ir_value_id own = build_mul(&c->b, turning, cosine), others = build_mul(&c->b, other, sine);
    const ir_value_id y = build_add(&c->b, own, others);
    const ir_value_id turned = build_shaped(&c->b, y, whole, COUNT_OF(whole));
    if (is_whole) return turned;
    const dim rest = dim_sub(c->b.g->dims, d[3], width);
    return build_concat(&c->b, (ir_value_id[]){ turned, build_part(&c->b, x, 3, width, 1, rest) }, 2,
                        &(attrs_concat){ .axis = 3 });
}

/* A cache [P, D/2] for tokens that have three positions, [3, B, S]: mrope_section says how many of the angles belong to
 * each. They lie one behind the other (mrope_layout 0), or the second and third have each third angle (1). */
static ir_value_id sectioned(onnx_call *c, ir_value_id cache, ir_value_id place)
{
    attr_ints part = { 0 };
    int64_t half = 0;
    view v;
    const int64_t layout = call_int(c, "mrope_layout", 0);
    if (!call_ints(c, "mrope_section", &part) || part.count != 3 || part.at[0] < 0 || part.at[1] < 0 || part.at[2] < 0)
        REJECT(c, INVALID_MODEL, "attribute mrope_section is not three sizes");
    if (layout != 0 && layout != 1) REJECT(c, INVALID_MODEL, "attribute mrope_layout is %lld", (long long)layout);
    if (!place || call_rank(c, place) != 3 || !infer_agree(c->b.g->dims, call_dim(c, place, 0), call_k(c, 3)))
        REJECT(c, INVALID_MODEL, "positions of rank %u, [3, B, S] is wanted", call_rank(c, place));
    if (!c->b.status && !call_size(c, cache, 1, &half)) REJECT(c, UNSUPPORTED, "a cache of a size that is not known");
    if (!c->b.status && (half < 1 || half > INT16_MAX || part.at[0] > half || part.at[1] > half ||
                         part.at[0] + part.at[1] + part.at[2] != half))
        REJECT(c, INVALID_MODEL, "mrope_section does not add up to the %lld angles of the caches", (long long)half);
    if (c->b.status) return 0;
    const ir_value_id all = build_gather(&c->b, cache, place, NULL); /* [3, B, S, D/2] */
    ir_value_id y = 0;
    for (int64_t i = 0; i < 3; i++) {
        bool *is_own = ARENA_NEW(&c->b.g->a, bool, (size_t)half);
        if (!is_own || !view_init(&v, SINTER_DTYPE_BOOL, 1, &half, is_own)) {
            c->b.status = FAIL_MEMORY(c->e, "the graph");
            return 0;
        }
        for (int64_t k = 0; k < half; k++)
            is_own[k] = layout ? k % 3 == i && k < 3 * part.at[i]
                               : k >= part.at[0] + (i > 1 ? part.at[1] : 0); /* later sections replace earlier ones */
        const ir_value_id own = build_squeezed(&c->b, build_part(&c->b, all, 0, call_k(c, i), 1, call_k(c, 1)), 0);
        y = i ? build_where(&c->b, build_const(&c->b, "section", &v), own, y) : own;
    }
    return y;
}

void convert_rotary_embedding(onnx_call *c) /* arg: com.microsoft, whose positions come before the caches; 2: three of
                                               each token */
{
    static const int64_t perm[4] = { 0, 2, 1, 3 };
    const ir_value_id x = call_in(c, 0), place = call_in(c, c->arg ? 1 : 3);
    ir_value_id cache[2] = { call_in(c, c->arg ? 2 : 1), call_in(c, c->arg ? 3 : 2) };
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, d);
    const int64_t heads_given = call_int(c, "num_heads", 0);
    const int64_t width = call_int(c, "rotary_embedding_dim", 0);
    int64_t known = 0;
    if (!cache[0] || !cache[1] || (rank != 3 && rank != 4)) REJECT(c, INVALID_MODEL, "an input of rank %u", rank);
    if (!c->b.status && !call_rank(c, cache[0])) REJECT(c, INVALID_MODEL, "a cache of rank 0");
    if (c->b.status) return;
    const uint32_t last = call_rank(c, cache[0]) - 1;
    const dim half = width ? call_k(c, width / 2) : call_dim(c, cache[0], last);
    if (call_size(c, cache[0], last, &known) && (known < 1 || known > INT32_MAX || (width && width != 2 * known)))
        REJECT(c, INVALID_MODEL, "rotary_embedding_dim is %lld for caches of width %lld", (long long)width,
               (long long)known);
    if (c->b.status) return;
    ir_value_id in = x;
    if (rank == 4) {
        in = build_permuted(&c->b, x, perm, 4);
    } else {
        const dim n = heads_given > 0 ? call_k(c, heads_given)
                                      : call_quotient(c, d[2], dim_mul(c->b.g->dims, half, call_k(c, 2)));
        const dim split[4] = { d[0], d[1], n, call_quotient(c, d[2], n) };
        in = build_shaped(&c->b, x, split, 4);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (c->arg == 2) {
            cache[i] = sectioned(c, cache[i], place);
        } else if (place) {
            ir_value_id at = place;
            if (c->arg && call_rank(c, place) == 1) { /* one offset for all */
                at = build_typed(&c->b, place, SINTER_DTYPE_I64);
                at = build_add(&c->b, build_unsqueezed(&c->b, build_iota(&c->b, call_dim(c, in, 1)), 0), at);
            }
            cache[i] = build_gather(&c->b, cache[i], at, NULL);
        }
        if (call_rank(c, cache[i]) != 3) REJECT(c, INVALID_MODEL, "a cache of rank %u", call_rank(c, cache[i]));
        cache[i] = build_unsqueezed(&c->b, cache[i], 2);
    }
    const ir_value_id y = rotated(c, in, cache[0], cache[1], half, call_int(c, "interleaved", 0) != 0);
    c->out[0] = rank == 4 ? build_permuted(&c->b, y, perm, 4) : build_shaped(&c->b, y, d, 3);
}

/* ---- com.microsoft's GroupQueryAttention: a cache of each of the batch, filled as far as seqlens_k says ---- */
typedef struct cache {
    dim batch, tokens, length; /* length: of the caches that come out */
    ir_value_id start, last;   /* [B]: where the new tokens go; the last token that counts */
} cache;

/* The scale of a cache of 8 bits, for keys (0) or values (1): one, or one for each element of each head. 0: the cache
 * has numbers of the queries' type. */
static ir_value_id cache_scale(onnx_call *c, uint32_t i, int64_t heads, dim size)
{
    const char *how = call_text(c, i ? "v_quant_type" : "k_quant_type", "NONE");
    const int64_t bits = call_int(c, "kv_cache_bit_width", 0);
    const bool is_each = strcmp(how, "PER_CHANNEL") == 0;
    const ir_value_id scale = call_in(c, 12 + i);
    if (strcmp(how, "NONE") == 0) return 0;
    if (!is_each && strcmp(how, "PER_TENSOR") != 0)
        REJECT(c, INVALID_MODEL, "attribute %c_quant_type is '%s'", "kv"[i], how);
    if (bits != 8) REJECT(c, UNSUPPORTED, "attribute kv_cache_bit_width is %lld; 8 is supported", (long long)bits);
    if (!scale || !call_in(c, 3) || call_type(c, call_in(c, 3 + i)) != SINTER_DTYPE_I8)
        REJECT(c, UNSUPPORTED, "a quantised cache without a scale, or that is not of i8");
    if (c->b.status) return 0;
    const dim each[4] = { call_k(c, 1), call_k(c, heads), call_k(c, 1), size };
    return is_each ? build_shaped(&c->b, scale, each, 4) : quirk_scalar_in(c, scale);
}

static ir_value_id cached(onnx_call *c, const cache *at, ir_value_id past, ir_value_id x)
{
    dim d[SINTER_RANK_MAX], begin[4], end[4];
    call_shape(c, x, d);
    if (at->length == at->tokens && !past) return x;
    if (past) {
        for (uint32_t i = 0; i < 4; i++) begin[i] = end[i] = call_k(c, 0);
        end[2] = dim_sub(c->b.g->dims, at->length, call_dim(c, past, 2));
        if (!dim_is(c->b.g->dims, end[2], 0))
            past = build_padded(&c->b, past, pad_mode_constant, begin, end, build_scalar_like(&c->b, x, 0));
    } else {
        d[2] = at->length;
        past = build_expanded(&c->b, build_scalar_like(&c->b, x, 0), d, 4);
    }
    attrs_tensor_scatter *a = DEFAULTS(tensor_scatter);
    a->axis = 2;
    return build_tensor_scatter(&c->b, past, x, at->start, a);
}

static cache cache_of(onnx_call *c)
{
    cache at = { .batch = call_dim(c, call_in(c, 0), 0), .tokens = call_dim(c, call_in(c, 0), 1) };
    dim total = DIM_NONE;
    uint32_t count = 0;
    if (!call_sizes(c, call_in(c, 6), "total_sequence_length", DIM_NONE, &total, 1, &count)) return at;
    at.length = call_in(c, 3) ? call_clamp_max(c, total, call_dim(c, call_in(c, 3), 2)) : total;
    at.last = build_typed(&c->b, build_shaped(&c->b, call_in(c, 5), &at.batch, 1), SINTER_DTYPE_I64);
    const dim before = dim_sub(c->b.g->dims, at.tokens, call_k(c, 1));
    const ir_value_id zero = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 0);
    at.start = build_max(&c->b, build_sub(&c->b, at.last, build_sizes(&c->b, &before, 1, true)), zero);
    return at;
}

/* The bias of the scores, [.., total_sequence_length], as wide as caches that have room for more. */
static ir_value_id bias_filled(onnx_call *c, const cache *at, ir_value_id bias)
{
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    const uint32_t rank = call_rank(c, bias);
    if (!bias || !rank || !call_in(c, 3)) return bias;
    for (uint32_t i = 0; i < rank; i++) begin[i] = end[i] = call_k(c, 0);
    end[rank - 1] = dim_sub(c->b.g->dims, at->length, call_dim(c, bias, rank - 1));
    if (dim_is(c->b.g->dims, end[rank - 1], 0)) return bias;
    return build_padded(&c->b, bias, pad_mode_constant, begin, end, build_scalar_like(&c->b, bias, 0));
}

/* v with one more place at the end of an axis, of the number. */
static ir_value_id one_more(onnx_call *c, ir_value_id v, uint32_t axis, double number)
{
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < SINTER_RANK_MAX; i++) begin[i] = end[i] = call_k(c, 0);
    end[axis] = call_k(c, 1);
    return build_padded(&c->b, v, pad_mode_constant, begin, end, build_scalar_like(&c->b, v, number));
}

/* A key and a value of zeros behind the others: the score of the key, which takes its part of the softmax, is 0, or
 * that of the head's sink [H]. */
static void sink_add(onnx_call *c, quirk_heads *h, ir_value_id sink)
{
    const uint32_t last = call_rank(c, h->mask) - 1;
    const sinter_dtype type = call_type(c, h->q);
    h->k = one_more(c, h->k, 2, 0);
    h->v = one_more(c, h->v, 2, 0);
    if (c->b.status) return;
    if (!sink) {
        h->mask = one_more(c, h->mask, last, call_type(c, h->mask) == SINTER_DTYPE_BOOL);
        return;
    }
    if (call_type(c, h->mask) == SINTER_DTYPE_BOOL) {
        const ir_value_id zero = build_scalar(&c->b, type, 0);
        h->mask = build_where(&c->b, h->mask, zero, build_scalar(&c->b, type, -(double)INFINITY));
    }
    const dim each[4] = { call_k(c, 1), call_dim(c, h->q, 1), call_k(c, 1), call_k(c, 1) };
    const ir_value_id first = build_sizes(&c->b, &(dim){ call_dim(c, h->k, 2) }, 1, true),
                      place = build_iota(&c->b, call_dim(c, h->k, 2)),
                      is_sink =
                          build_eq(&c->b, place, build_sub(&c->b, first, build_scalar_i64(&c->b, SINTER_DTYPE_I64, 1))),
                      score = build_shaped(&c->b, build_typed(&c->b, sink, type), each, 4);
    h->mask = build_where(&c->b, is_sink, score, one_more(c, h->mask, last, 0));
}

/* The heads [B, S, heads, D] of the queries (0) or the keys (1), each normalised by itself. */
static ir_value_id head_normed(onnx_call *c, ir_value_id x, uint32_t i)
{
    const double both = call_real(c, "qk_norm_epsilon", (double)1e-6f);
    return quirk_rms_norm(c, x, call_in(c, 14 + i), 3, call_real(c, i ? "k_norm_epsilon" : "q_norm_epsilon", both));
}

void convert_group_query_attention(onnx_call *c)
{
    static const int64_t perm[4] = { 0, 2, 1, 3 };
    const int64_t n[3] = { call_int(c, "num_heads", 0), call_int(c, "kv_num_heads", 0),
                           call_int(c, "kv_num_heads", 0) };
    if (call_int(c, "sliding_window_cache", 0)) REJECT(c, UNSUPPORTED, "attribute sliding_window_cache");
    const int64_t window = call_int(c, "local_window_size", -1);
    const bool is_causal = call_int(c, "causal", 1) != 0;
    for (uint32_t i = 16; i < c->count_in; i++)
        if (call_in(c, i)) REJECT(c, UNSUPPORTED, "input %u is not supported", i);
    if (!call_in(c, 14) != !call_in(c, 15))
        REJECT(c, INVALID_MODEL, "q_norm_weight and k_norm_weight do not come together");
    if (call_rank(c, call_in(c, 0)) != 3 || n[0] < 1 || n[1] < 1 || n[0] % n[1] || n[0] > INT16_MAX)
        REJECT(c, INVALID_MODEL, "%lld heads of queries for %lld of keys, in rank %u", (long long)n[0], (long long)n[1],
               call_rank(c, call_in(c, 0)));
    if (!call_in(c, 5) || !call_in(c, 6)) REJECT(c, INVALID_MODEL, "seqlens_k or total_sequence_length is missing");
    if (!call_in(c, 1) != !call_in(c, 2) || !call_in(c, 3) != !call_in(c, 4))
        REJECT(c, INVALID_MODEL, "key and value, or their caches, do not come together");
    if (c->b.status) return;
    const cache at = cache_of(c);
    if (c->b.status) return;
    const bool is_packed = !call_in(c, 1);
    const dim all = call_k(c, is_packed ? n[0] + 2 * n[1] : n[0]),
              size = call_quotient(c, call_dim(c, call_in(c, 0), 2), all);
    int64_t width = 0, half = 0;
    const bool is_known = dim_is_const(c->b.g->dims, size, &width);
    if (is_known && width < 1) REJECT(c, INVALID_MODEL, "a head has no elements");
    const bool turns = call_int(c, "do_rotary", 0) != 0;
    ir_value_id angle[2] = { call_in(c, 7), call_in(c, 8) }, x[3];
    if (turns && (!angle[0] || !angle[1] || call_rank(c, angle[0]) != 2))
        REJECT(c, INVALID_MODEL, "do_rotary without caches that fit");
    if (c->b.status) return;
    if (turns && call_size(c, angle[0], 1, &half) && (half < 1 || half > INT32_MAX || (is_known && 2 * half > width)))
        REJECT(c, INVALID_MODEL, "do_rotary without caches that fit");
    if (c->b.status) return;
    const dim turning = turns ? call_dim(c, angle[0], 1) : call_k(c, 0);
    const dim column[2] = { at.batch, call_k(c, 1) };
    ir_value_id place = call_in(c, 9);
    if (turns && !place) {
        place = build_unsqueezed(&c->b, build_iota(&c->b, at.tokens), 0);
        place = build_add(&c->b, build_shaped(&c->b, at.start, column, 2), place);
    }
    for (uint32_t i = 0; i < 2 && turns; i++)
        angle[i] = build_unsqueezed(&c->b, build_gather(&c->b, angle[i], place, NULL), 2);
    dim from = call_k(c, 0);
    for (uint32_t i = 0; i < 3 && !c->b.status; i++) {
        const dim wide = dim_mul(c->b.g->dims, call_k(c, n[i]), size),
                  apart[4] = { at.batch, at.tokens, call_k(c, n[i]), size };
        x[i] = is_packed ? build_part(&c->b, call_in(c, 0), 2, from, 1, wide) : call_in(c, i);
        from = dim_add(c->b.g->dims, from, wide);
        x[i] = build_shaped(&c->b, x[i], apart, 4);
        if (call_in(c, 14) && i < 2) x[i] = head_normed(c, x[i], i);
        if (turns && i < 2)
            x[i] = rotated(c, x[i], angle[0], angle[1], turning, call_int(c, "rotary_interleaved", 0) != 0);
        x[i] = build_permuted(&c->b, x[i], perm, 4);
    }
    if (c->b.status) return;
    ir_value_id filled[2], seen[2];
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id scale = cache_scale(c, i, n[1], size),
                          in = scale ? quirk_quantize(c, x[1 + i], build_typed(&c->b, scale, call_type(c, x[1 + i])), 0,
                                                      SINTER_DTYPE_I8)
                                     : x[1 + i];
        filled[i] = cached(c, &at, call_in(c, 3 + i), in);
        seen[i] = scale ? build_typed(&c->b, quirk_dequantize(c, filled[i], scale, 0), call_type(c, x[0])) : filled[i];
    }
    quirk_heads h = { .q = x[0], .k = seen[0], .v = seen[1] };
    h.scale = call_real(c, "scale", 0);
    h.softcap = call_real(c, "softcap", 0);
    if (h.scale == 0) quirk_scale_default(c, &h);
    if (c->b.status) return;
    const dim each[4] = { at.batch, call_k(c, 1), call_k(c, 1), call_k(c, 1) };
    const ir_value_id start = build_shaped(&c->b, at.start, each, 4), last = build_shaped(&c->b, at.last, each, 4);
    const ir_value_id columns = build_unsqueezed(&c->b, build_iota(&c->b, at.length), 0);
    const ir_value_id rows = build_unsqueezed(&c->b, build_iota(&c->b, at.tokens), 1);
    h.mask = is_causal ? band(c, rows, columns, start, 0, true) : build_le(&c->b, columns, last);
    if (window > 0) h.mask = quirk_masks_joined(c, h.mask, band(c, rows, columns, start, 1 - window, false));
    h.mask = quirk_masks_joined(c, h.mask, bias_filled(c, &at, call_in(c, 10)));
    if (c->count_out > 1) c->out[1] = filled[0];
    if (c->count_out > 2) c->out[2] = filled[1];
    const int64_t scores = call_int(c, "qk_output", 0);
    if (scores < 0 || scores > 2) REJECT(c, INVALID_MODEL, "attribute qk_output is %lld", (long long)scores);
    if (call_wants(c, 3) && scores) c->out[3] = quirk_scores(c, &h, 1 + scores, call_k(c, 0));
    if (!c->b.status && (call_in(c, 11) || call_int(c, "smooth_softmax", 0) > 0)) sink_add(c, &h, call_in(c, 11));
    c->out[0] = quirk_heads_together(c, quirk_attended(c, &h));
}

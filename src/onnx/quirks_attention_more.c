/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_attention_more.c - com.microsoft's attention for decoders, with layouts of blocks, and on tokens without their
 * padding. */
#include "onnx/quirks_attention.h"
#include <string.h>

/* ---- SparseAttention: GroupQueryAttention with a mask of blocks ---- */

/* Which blocks of keys each block of queries sees, bool [layouts, blocks, blocks], of the two lists that say so. */
static ir_value_id layout_of(onnx_call *c, ir_value_id starts, ir_value_id places, int64_t layouts, int64_t blocks)
{
    int64_t most = 0;
    uint32_t count = 0;
    const int64_t d[3] = { layouts, blocks, blocks };
    view v;
    if (!call_size(c, places, 1, &most) || most < 0 || most > 1 << 24 ||
        !dim_is(c->b.g->dims, call_dim(c, places, 0), layouts))
        REJECT(c, UNSUPPORTED, "block_col_indices of a size that is not known, or of other layouts");
    if (c->b.status) return 0;
    const size_t row = (size_t)blocks + 1, lines = (size_t)layouts;
    int64_t *from = ARENA_NEW(&c->b.g->a, int64_t, lines * row),
            *at = ARENA_NEW(&c->b.g->a, int64_t, lines * (size_t)most + 1);
    bool *seen = ARENA_NEW(&c->b.g->a, bool, lines *(size_t)blocks *(size_t)blocks);
    if (!from || !at || !seen || !view_init(&v, SINTER_DTYPE_BOOL, 3, d, seen)) {
        c->b.status = FAIL_MEMORY(c->e, "the graph");
        return 0;
    }
    memset(seen, 0, lines * (size_t)blocks * (size_t)blocks);
    if (!call_const_ints(c, starts, "block_row_indices", from, (uint32_t)(lines * row), &count)) return 0;
    if (most && !call_const_ints(c, places, "block_col_indices", at, (uint32_t)(lines * (size_t)most), &count))
        return 0;
    for (int64_t l = 0; l < layouts; l++)
        for (int64_t i = 0; i < blocks; i++)
            for (int64_t k = from[l * (blocks + 1) + i]; k < from[l * (blocks + 1) + i + 1]; k++) {
                const int64_t to = k >= 0 && k < most ? at[l * most + k] : -1;
                if (to < 0 || to >= blocks) {
                    REJECT(c, INVALID_MODEL, "block_col_indices has no block for entry %lld of layout %lld",
                           (long long)k, (long long)l);
                    return 0;
                }
                seen[(l * blocks + i) * blocks + to] = true;
            }
    return build_const(&c->b, "layout", &v);
}

/* The block that each position is in. */
static ir_value_id block_of(onnx_call *c, ir_value_id position, int64_t size, int64_t blocks)
{
    const ir_value_id at = build_div(&c->b, position, build_scalar_i64(&c->b, SINTER_DTYPE_I64, size));
    return build_min(&c->b, at, build_scalar_i64(&c->b, SINTER_DTYPE_I64, blocks - 1));
}

void convert_sparse_attention(onnx_call *c)
{
    static const int64_t batch_first[4] = { 1, 0, 2, 3 };
    const int64_t n = call_int(c, "num_heads", 0), size = call_int(c, "sparse_block_size", 0);
    int64_t layouts = 0, row = 0;
    for (uint32_t i = 0; i < 9; i++)
        if (!call_in(c, i) && i != 1 && i != 2) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    if (c->b.status) return;
    const ir_value_id starts = call_in(c, 5), past = call_in(c, 3);
    if (call_rank(c, call_in(c, 0)) != 3 || call_rank(c, past) != 4 || call_rank(c, starts) != 2 ||
        call_rank(c, call_in(c, 6)) != 2)
        REJECT(c, INVALID_MODEL, "queries, caches or blocks of another rank than 3, 4 and 2");
    if (!c->b.status && (!call_size(c, starts, 0, &layouts) || !call_size(c, starts, 1, &row)))
        REJECT(c, UNSUPPORTED, "block_row_indices of a size that is not known");
    if (!c->b.status && (layouts < 1 || row < 2 || layouts > 1 << 12 || row > 1 << 12 || n < 1 || n % layouts ||
                         size < 1 || size > 1 << 20))
        REJECT(c, INVALID_MODEL, "%lld heads with %lld layouts of %lld blocks of %lld", (long long)n,
               (long long)layouts, (long long)row - 1, (long long)size);
    if (c->b.status) return;
    const ir_value_id layout = layout_of(c, starts, call_in(c, 6), layouts, row - 1);
    if (c->b.status) return;
    const dim batch = call_dim(c, call_in(c, 0), 0), tokens = call_dim(c, call_in(c, 0), 1),
              length = call_dim(c, past, 2);
    const dim column[2] = { batch, call_k(c, 1) };
    const ir_value_id lengths = build_shaped(&c->b, build_typed(&c->b, call_in(c, 8), SINTER_DTYPE_I64), &batch, 1),
                      zero = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 0),
                      before = build_sub(&c->b, lengths, build_sizes(&c->b, &tokens, 1, true)),
                      start = build_shaped(&c->b, build_max(&c->b, before, zero), column, 2),
                      query = build_add(&c->b, build_unsqueezed(&c->b, build_iota(&c->b, tokens), 0), start),
                      lines =
                          build_gather(&c->b, layout, block_of(c, query, size, row - 1), &(attrs_gather){ .axis = 1 }),
                      keys = block_of(c, build_iota(&c->b, length), size, row - 1);
    ir_value_id mask = build_gather(&c->b, lines, keys, &(attrs_gather){ .axis = 3 }); /* [layouts, B, S, T] */
    mask = build_permuted(&c->b, mask, batch_first, 4);
    const dim wide[5] = { batch, call_k(c, n / layouts), call_k(c, layouts), tokens, length },
              all[4] = { batch, call_k(c, n), tokens, length };
    mask = build_shaped(&c->b, build_expanded(&c->b, build_unsqueezed(&c->b, mask, 1), wide, 5), all, 4);
    const ir_value_id *given = c->in, one = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 1),
                      last = build_sub(&c->b, lengths, one), room = build_sizes(&c->b, &length, 1, true);
    const uint32_t count = c->count_in;
    const ir_value_id in[11] = { call_in(c, 0), call_in(c, 1), call_in(c, 2),  past, call_in(c, 4), last,
                                 room,          call_in(c, 9), call_in(c, 10), 0,    mask };
    if (c->b.status) return;
    c->in = in;
    c->count_in = 11;
    convert_group_query_attention(c);
    c->in = given;
    c->count_in = count;
}

/* ---- attention of one token, with caches that grow or that are written into ---- */
typedef struct decoder {
    ir_value_id part[3];             /* query, key, value [B, S, H * D] */
    ir_value_id past[2], past_count; /* caches [B, H, P, D]; how many of their rows there are, of shared ones */
    ir_value_id mask, added;
    bool is_shared;
} decoder;

/* Adds the parts of one bias, one behind the other. */
static void biased(onnx_call *c, ir_value_id bias, ir_value_id *part, uint32_t count)
{
    dim at = call_k(c, 0);
    for (uint32_t i = 0; i < count && bias && !c->b.status; i++) {
        const dim width = call_dim(c, part[i], 2);
        part[i] = build_add(&c->b, part[i], build_part(&c->b, bias, 0, at, 1, width));
        at = dim_add(c->b.g->dims, at, width);
    }
}

/* The new rows go behind the past ones of each cache; keys behind them do not count. */
static void shared_caches(onnx_call *c, const decoder *d, quirk_heads *h)
{
    const dim batch = call_dim(c, h->q, 0), tokens = call_dim(c, h->q, 2), length = call_dim(c, d->past[0], 2);
    const ir_value_id past = build_typed(&c->b, quirk_scalar_in(c, d->past_count), SINTER_DTYPE_I64),
                      start = build_expanded(&c->b, past, &batch, 1);
    attrs_tensor_scatter *a = DEFAULTS(tensor_scatter);
    a->axis = 2;
    h->k = build_tensor_scatter(&c->b, d->past[0], h->k, start, a);
    h->v = build_tensor_scatter(&c->b, d->past[1], h->v, start, a);
    const ir_value_id end = build_add(&c->b, past, build_sizes(&c->b, &tokens, 1, true)),
                      columns = build_unsqueezed(&c->b, build_iota(&c->b, length), 0);
    h->mask = build_lt(&c->b, columns, end);
}

/* A mask or a bias of that rank with zeros at its end, for the rows of a cache that are not filled yet. */
static ir_value_id widened(onnx_call *c, ir_value_id v, uint32_t rank, dim length)
{
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    if (c->b.status || !v || call_rank(c, v) != rank) return v;
    for (uint32_t i = 0; i < rank; i++) begin[i] = end[i] = call_k(c, 0);
    end[rank - 1] = dim_sub(c->b.g->dims, length, call_dim(c, v, rank - 1));
    return dim_is(c->b.g->dims, end[rank - 1], 0) ? v : build_padded(&c->b, v, pad_mode_constant, begin, end, 0);
}

static void decode(onnx_call *c, decoder *d, quirk_heads *h, int64_t n)
{
    for (uint32_t i = 0; i < 3; i++) d->part[i] = quirk_heads_apart(c, d->part[i], n);
    h->q = d->part[0];
    h->k = d->part[1];
    h->v = d->part[2];
    if (!d->past[0] != !d->past[1]) REJECT(c, INVALID_MODEL, "past_key and past_value do not come together");
    if (d->is_shared && (!d->past[0] || !d->past_count))
        REJECT(c, INVALID_MODEL, "past_present_share_buffer without caches or past_sequence_length");
    if (c->b.status) return;
    if (d->is_shared) {
        shared_caches(c, d, h);
        d->mask = widened(c, d->mask, 2, call_dim(c, h->k, 2));
        d->added = widened(c, d->added, 4, call_dim(c, h->k, 2));
    } else if (d->past[0]) {
        h->k = build_concat(&c->b, (ir_value_id[]){ d->past[0], h->k }, 2, &(attrs_concat){ .axis = 2 });
        h->v = build_concat(&c->b, (ir_value_id[]){ d->past[1], h->v }, 2, &(attrs_concat){ .axis = 2 });
    }
}

static void decoded(onnx_call *c, const decoder *d, quirk_heads *h)
{
    h->scale = call_real(c, "scale", 0);
    if (h->scale == 0) quirk_scale_default(c, h);
    const ir_value_id hidden = quirk_padding(c, d->mask, h);
    h->mask = quirk_masks_joined(c, h->mask, hidden);
    h->mask = quirk_masks_joined(c, h->mask, d->added);
    if (!c->b.status) c->out[0] = quirk_heads_together(c, quirk_attended(c, h));
}

void convert_decoder_attention(onnx_call *c) /* DecoderMaskedMultiHeadAttention */
{
    const int64_t n = call_int(c, "num_heads", 0);
    const ir_value_id key = call_in(c, 1), value = call_in(c, 2);
    quirk_heads h = { 0 };
    decoder d = { .part = { call_in(c, 0), key, value },
                  .past = { call_in(c, 5), call_in(c, 6) },
                  .past_count = call_in(c, 7),
                  .mask = call_in(c, 3),
                  .added = call_in(c, 4),
                  .is_shared = call_int(c, "past_present_share_buffer", 0) != 0 };
    if (call_in(c, 9)) REJECT(c, UNSUPPORTED, "cache_indirection, caches of several beams");
    if (n < 1 || call_rank(c, call_in(c, 0)) != 3 || !key != !value)
        REJECT(c, INVALID_MODEL, "%lld heads, queries of rank %u, or a key without a value", (long long)n,
               call_rank(c, call_in(c, 0)));
    if (c->b.status) return;
    const bool is_cross = key && call_rank(c, key) == 4; /* its keys are a cache already */
    if (is_cross) {
        biased(c, call_in(c, 10), d.part, 1);
        h.q = quirk_heads_apart(c, d.part[0], n);
        h.k = key;
        h.v = value;
    } else {
        if (!key) {
            const dim third = call_quotient(c, call_dim(c, d.part[0], 2), call_k(c, 3));
            const ir_value_id all = d.part[0];
            for (uint32_t i = 0; i < 3; i++)
                d.part[i] = build_part(&c->b, all, 2, dim_mul(c->b.g->dims, third, call_k(c, i)), 1, third);
        }
        biased(c, call_in(c, 10), d.part, 3);
        decode(c, &d, &h, n);
        if (c->count_out > 1) c->out[1] = h.k;
        if (c->count_out > 2) c->out[2] = h.v;
    }
    if (c->b.status) return;
    decoded(c, &d, &h);
    if (call_wants(c, 3) && !c->b.status) c->out[3] = quirk_scores(c, &h, 3, call_k(c, 0));
}

void convert_decoder_self_attention(onnx_call *c) /* DecoderMaskedSelfAttention: with the product of Attention */
{
    const int64_t n = call_int(c, "num_heads", 0);
    attr_ints sizes = { 0 };
    int64_t all = 0, from = 0;
    quirk_heads h = { 0 };
    decoder d = { .past_count = call_in(c, 6),
                  .mask = call_in(c, 3),
                  .added = call_in(c, 5),
                  .is_shared = call_int(c, "past_present_share_buffer", 0) != 0 };
    if (call_int(c, "do_rotary", 0)) REJECT(c, UNSUPPORTED, "attribute do_rotary");
    if (call_in(c, 8)) REJECT(c, UNSUPPORTED, "cache_indirection, caches of several beams");
    for (uint32_t i = 0; i < 5; i++)
        if (!call_in(c, i) && i != 3) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    if (n < 1 || call_rank(c, call_in(c, 0)) != 3 || call_rank(c, call_in(c, 4)) != 5)
        REJECT(c, INVALID_MODEL, "%lld heads, an input of rank %u, or a cache of rank %u", (long long)n,
               call_rank(c, call_in(c, 0)), call_rank(c, call_in(c, 4)));
    if (!c->b.status && !call_size(c, call_in(c, 1), 1, &all)) REJECT(c, UNSUPPORTED, "weights of a size that varies");
    if (!call_ints(c, "qkv_hidden_sizes", &sizes) || !sizes.count) {
        sizes.count = 3;
        for (uint32_t i = 0; i < 3; i++) sizes.at[i] = all / 3;
    }
    if (!c->b.status &&
        (sizes.count != 3 || sizes.at[0] + sizes.at[1] + sizes.at[2] != all || sizes.at[0] % n || sizes.at[2] % n))
        REJECT(c, INVALID_MODEL, "heads of sizes that the weights do not have");
    if (c->b.status) return;
    const ir_value_id x = build_add(&c->b, build_matmul(&c->b, call_in(c, 0), call_in(c, 1), NULL), call_in(c, 2));
    for (uint32_t i = 0; i < 3; from += sizes.at[i++])
        d.part[i] = build_part(&c->b, x, 2, call_k(c, from), 1, call_k(c, sizes.at[i]));
    for (uint32_t i = 0; i < 2; i++)
        d.past[i] = build_squeezed(&c->b, build_part(&c->b, call_in(c, 4), 0, call_k(c, i), 1, call_k(c, 1)), 0);
    decode(c, &d, &h, n);
    if (c->b.status) return;
    decoded(c, &d, &h);
    if (call_wants(c, 1)) {
        const ir_value_id k = build_unsqueezed(&c->b, h.k, 0), v = build_unsqueezed(&c->b, h.v, 0);
        c->out[1] = build_concat(&c->b, (ir_value_id[]){ k, v }, 2, &(attrs_concat){ .axis = 0 });
    }
}

/* ---- tokens without their padding ---- */

/* Where the tokens [T] are among all places, of token_offset [B, S], whose first T are theirs. */
static ir_value_id places_of(onnx_call *c, ir_value_id offset, dim tokens)
{
    const dim all = dim_mul(c->b.g->dims, call_dim(c, offset, 0), call_dim(c, offset, 1));
    return build_part(&c->b, build_shaped(&c->b, offset, &all, 1), 0, call_k(c, 0), 1, tokens);
}

/* [T, W] to [B, S, W], with zeros where there is padding. */
static ir_value_id restored(onnx_call *c, ir_value_id x, ir_value_id offset)
{
    dim d[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    call_shape(c, offset, d);
    call_shape(c, x, to);
    const dim full[2] = { dim_mul(c->b.g->dims, d[0], d[1]), to[1] }, apart[3] = { d[0], d[1], to[1] };
    const ir_value_id at =
                          build_unsqueezed(&c->b, build_typed(&c->b, places_of(c, offset, to[0]), SINTER_DTYPE_I64), 1),
                      none = build_expanded(&c->b, build_scalar_like(&c->b, x, 0), full, 2);
    return build_shaped(&c->b, build_scatter_nd(&c->b, none, at, x, NULL), apart, 3);
}

static bool are_packed(onnx_call *c, ir_value_id x, ir_value_id offset)
{
    if (!x || !offset) REJECT(c, INVALID_MODEL, "the tokens or token_offset are missing");
    if (!c->b.status && (call_rank(c, x) != 2 || call_rank(c, offset) != 2))
        REJECT(c, INVALID_MODEL, "tokens of rank %u and token_offset of rank %u, 2 and 2 are wanted", call_rank(c, x),
               call_rank(c, offset));
    return !c->b.status;
}

void convert_restore_padding(onnx_call *c)
{
    if (are_packed(c, call_in(c, 0), call_in(c, 1))) c->out[0] = restored(c, call_in(c, 0), call_in(c, 1));
}

/* How many tokens there are, a run knows. */
void convert_remove_padding(onnx_call *c)
{
    static const int64_t first = 0;
    const ir_value_id x = call_in(c, 0), counts = call_in(c, 1);
    dim d[SINTER_RANK_MAX];
    if (!x || !counts || call_shape(c, x, d) != 3 || call_rank(c, counts) != 1)
        REJECT(c, INVALID_MODEL, "an input of rank %u with counts of rank %u, 3 and 1 are wanted", call_rank(c, x),
               call_rank(c, counts));
    if (c->b.status) return;
    const dim all = dim_mul(c->b.g->dims, d[0], d[1]), flat[2] = { all, d[2] };
    const sinter_dtype type = call_type(c, counts);
    const ir_value_id wide = build_unsqueezed(&c->b, build_typed(&c->b, counts, SINTER_DTYPE_I64), 1),
                      is_token = build_lt(&c->b, build_unsqueezed(&c->b, build_iota(&c->b, d[1]), 0), wide),
                      keep = build_shaped(&c->b, is_token, &all, 1);
    attrs_compress *a = DEFAULTS(compress);
    a->axis = 0;
    c->out[0] = build_compress(&c->b, build_shaped(&c->b, x, flat, 2), keep, a);
    if (call_wants(c, 1)) { /* places in order, those of padding behind all others */
        const ir_value_id zero = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 0),
                          behind = build_sizes(&c->b, &all, 1, true), more = build_where(&c->b, keep, zero, behind),
                          key = build_add(&c->b, build_iota(&c->b, all), more);
        attrs_top_k *top = DEFAULTS(top_k);
        top->largest = 0;
        top->k = build_dims(&c->b, &all, 1);
        const ir_value_id at = build_result(&c->b, build_top_k(&c->b, key, top, 2), 1);
        c->out[1] = build_shaped(&c->b, build_typed(&c->b, at, type), d, 2);
    }
    if (call_wants(c, 2)) {
        const ir_value_id sum = build_cumulate(&c->b, counts, DEFAULTS(cumulate)),
                          none = build_unsqueezed(&c->b, build_scalar(&c->b, type, 0), 0);
        c->out[2] = build_concat(&c->b, (ir_value_id[]){ none, sum }, 2, &(attrs_concat){ .axis = 0 });
    }
    if (call_wants(c, 3)) c->out[3] = build_reduced(&c->b, reduce_kind_max, counts, &first, 1, true);
}

/* Attention of tokens [T, W] whose padding comes back for it: part 0 to 2 are query, key and value. */
static void packed_attended(onnx_call *c, ir_value_id *part, ir_value_id offset, ir_value_id sums, ir_value_id added)
{
    const int64_t n = call_int(c, "num_heads", 0);
    if (n < 1) REJECT(c, INVALID_MODEL, "attribute num_heads is %lld", (long long)n);
    for (uint32_t i = 0; i < 3; i++)
        if (!are_packed(c, part[i], offset)) return;
    if (!sums || call_rank(c, sums) != 1)
        REJECT(c, INVALID_MODEL, "cumulative_sequence_length is missing, or of another rank than 1");
    if (c->b.status) return;
    const dim tokens = call_dim(c, part[0], 0), batch = call_dim(c, offset, 0), length = call_dim(c, offset, 1),
              one = call_k(c, 1), all = dim_mul(c->b.g->dims, batch, length);
    for (uint32_t i = 0; i < 3; i++) part[i] = quirk_heads_apart(c, restored(c, part[i], offset), n);
    const ir_value_id before = build_part(&c->b, sums, 0, call_k(c, 0), 1, batch),
                      count = build_sub(&c->b, build_part(&c->b, sums, 0, one, 1, batch), before),
                      wide = build_shaped(&c->b, build_typed(&c->b, count, SINTER_DTYPE_I64),
                                          (dim[]){ batch, one, one, one }, 4),
                      columns = build_unsqueezed(&c->b, build_iota(&c->b, length), 0);
    quirk_heads h = { part[0], part[1], part[2], build_lt(&c->b, columns, wide), call_real(c, "scale", 0), 0, false };
    if (c->b.status) return;
    if (h.scale == 0) quirk_scale_default(c, &h);
    h.mask = quirk_masks_joined(c, h.mask, added);
    const ir_value_id y = quirk_heads_together(c, quirk_attended(c, &h));
    if (c->b.status) return;
    const dim flat[2] = { all, call_dim(c, y, 2) };
    const ir_value_id at = places_of(c, offset, tokens);
    c->out[0] = build_gather(&c->b, build_shaped(&c->b, y, flat, 2), at, NULL);
}

void convert_packed_attention(onnx_call *c)
{
    attr_ints sizes = { 0 };
    int64_t all = 0, from = 0;
    ir_value_id part[3];
    if (!call_in(c, 0) || !call_in(c, 1) || call_rank(c, call_in(c, 0)) != 2 || call_rank(c, call_in(c, 1)) != 2)
        REJECT(c, INVALID_MODEL, "tokens or weights that are no matrix");
    if (!c->b.status && !call_size(c, call_in(c, 1), 1, &all)) REJECT(c, UNSUPPORTED, "weights of a size that varies");
    if (!call_ints(c, "qkv_hidden_sizes", &sizes) || !sizes.count) {
        sizes.count = 3;
        for (uint32_t i = 0; i < 3; i++) sizes.at[i] = all / 3;
    }
    if (!c->b.status && (sizes.count != 3 || sizes.at[0] + sizes.at[1] + sizes.at[2] != all))
        REJECT(c, INVALID_MODEL, "heads of sizes that the weights do not have");
    if (c->b.status) return;
    ir_value_id x = build_matmul(&c->b, call_in(c, 0), call_in(c, 1), NULL);
    if (call_in(c, 2)) x = build_add(&c->b, x, call_in(c, 2));
    for (uint32_t i = 0; i < 3; from += sizes.at[i++])
        part[i] = build_part(&c->b, x, 1, call_k(c, from), 1, call_k(c, sizes.at[i]));
    packed_attended(c, part, call_in(c, 3), call_in(c, 4), call_in(c, 5));
}

void convert_packed_multi_head_attention(onnx_call *c)
{
    dim d[SINTER_RANK_MAX], at = call_k(c, 0);
    ir_value_id part[3] = { call_in(c, 0), call_in(c, 1), call_in(c, 2) };
    if (!part[0] || !part[1] != !part[2]) REJECT(c, INVALID_MODEL, "query, key and value do not come together");
    if (c->b.status) return;
    if (!part[1]) { /* [T, H, 3, D] */
        const ir_value_id all = part[0];
        if (call_shape(c, all, d) != 4)
            REJECT(c, INVALID_MODEL, "packed tokens of rank %u, 4 is wanted", call_rank(c, all));
        if (c->b.status) return;
        const dim flat[2] = { d[0], dim_mul(c->b.g->dims, d[1], d[3]) };
        for (uint32_t i = 0; i < 3; i++)
            part[i] = build_shaped(&c->b, build_part(&c->b, all, 2, call_k(c, i), 1, call_k(c, 1)), flat, 2);
    }
    for (uint32_t i = 0; i < 3 && call_in(c, 3) && !c->b.status; i++) {
        if (call_rank(c, part[i]) != 2)
            REJECT(c, INVALID_MODEL, "tokens of rank %u, 2 is wanted", call_rank(c, part[i]));
        if (c->b.status) return;
        const dim width = call_dim(c, part[i], 1);
        part[i] = build_add(&c->b, part[i], build_part(&c->b, call_in(c, 3), 0, at, 1, width));
        at = dim_add(c->b.g->dims, at, width);
    }
    packed_attended(c, part, call_in(c, 4), call_in(c, 5), call_in(c, 6));
}

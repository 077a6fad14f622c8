/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_decoders.c - rows of com.microsoft's attention of decoders, and of tokens without their padding. */
#include "graph_ops.h"

static uint32_t weight(grow *g, int64_t a, int64_t b, uint32_t rank)
{
    return grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ a, b }, rank, 0.5);
}

static uint32_t finish(grow *g, const gop *op, const uint32_t *in, uint32_t count)
{
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[i]);
    return n;
}

/* A constant of these integers. */
static uint32_t listed(grow *g, const int64_t *at, uint32_t count, const gsize *d, uint32_t rank)
{
    const uint32_t id = grow_const_ints(g, at, count);
    int64_t size[SINTER_RANK_MAX];
    if (id == G_NONE) return G_NONE;
    gvalue *v = &g->m->value.at[id];
    for (uint32_t i = 0; i < rank; i++) {
        size[i] = d[i].at[0];
        v->dim[i] = (gdim){ G_NONE, size[i] };
    }
    v->dtype = SINTER_DTYPE_I32;
    v->rank = rank;
    v->data[0] = gtensor_new(g->m->a, SINTER_DTYPE_I32, rank, size);
    for (uint32_t i = 0; i < count; i++) dtype_store_i64(SINTER_DTYPE_I32, v->data[0]->data, i, at[i]);
    judge_leaf(g->m, id);
    return id;
}

static bool sparse(grow *g, const gop *op)
{
    enum { BLOCKS = 2, BLOCK = 16 };
    static const int64_t rows[2][BLOCKS + 1] = { { 0, 1, 2 }, { 0, 1, 3 } },
                                          columns[2][3] = { { 0, 1, -1 }, { 0, 0, 1 } };
    const int64_t layouts = grow_between(g, 1, 2), groups = grow_between(g, 1, 2), heads = 2 * groups, width = 8,
                  tokens = grow_one_in(g, 2) ? 1 : grow_between(g, 2, 30),
                  past = tokens == 1 ? grow_between(g, 1, 30) : 0;
    const gsize batch = grow_size(g), t = gsize_of(tokens), q[3] = { batch, t, gsize_of(heads * width) },
                k[3] = { batch, t, gsize_of(groups * width) },
                cache[4] = { batch, gsize_of(groups), gsize_of(BLOCKS * BLOCK), gsize_of(width) },
                r[2] = { gsize_of(layouts), gsize_of(BLOCKS + 1) }, s[2] = { gsize_of(layouts), gsize_of(3) };
    if (gsize_min(g, batch) < 1) return false;
    const uint32_t in[9] = {
        grow_shaped(g, SINTER_DTYPE_F32, q, 3),
        grow_shaped(g, SINTER_DTYPE_F32, k, 3),
        grow_shaped(g, SINTER_DTYPE_F32, k, 3),
        grow_shaped(g, SINTER_DTYPE_F32, cache, 4),
        grow_shaped(g, SINTER_DTYPE_F32, cache, 4),
        listed(g, rows[0], (uint32_t)layouts * (BLOCKS + 1), r, 2),
        listed(g, columns[0], (uint32_t)layouts * 3, s, 2),
        grow_const_scalar(g, SINTER_DTYPE_I32, (double)(past + tokens)),
        grow_leaf(g, SINTER_DTYPE_I32, &batch, 1, false,
                  (gfill){ (double)(past + tokens), (double)(past + tokens), 1, 7 }),
    };
    const uint32_t n = finish(g, op, in, 9);
    grow_int(g, n, "num_heads", heads);
    grow_int(g, n, "kv_num_heads", groups);
    grow_int(g, n, "sparse_block_size", BLOCK);
    return grow_end(g, n, 3) != G_NONE;
}

/* Caches that grow, that are written into, or that stand for all keys. */
static bool decoder(grow *g, const gop *op)
{
    const int64_t heads = grow_between(g, 1, 3), width = 4 * grow_between(g, 1, 2), past = grow_between(g, 1, 5),
                  room = past + grow_between(g, 1, 4);
    const uint32_t way = grow_below(g, 3); /* 0 grows, 1 shared, 2 of other tokens */
    const gsize batch = grow_size(g), x[3] = { batch, gsize_of(1), gsize_of(heads * width) },
                c[4] = { batch, gsize_of(heads), gsize_of(way == 1 ? room : past), gsize_of(width) },
                m[2] = { batch, gsize_of(way == 2 ? past : past + 1) },
                b[4] = { batch, gsize_of(heads), gsize_of(1), m[1] };
    if (gsize_min(g, batch) < 1) return false;
    uint32_t in[11];
    for (uint32_t i = 0; i < 11; i++) in[i] = G_ABSENT;
    in[0] = grow_shaped(g, SINTER_DTYPE_F32, x, 3);
    for (uint32_t i = 1; i < 3; i++)
        in[i] = way == 2 ? grow_shaped(g, SINTER_DTYPE_F32, c, 4) : grow_shaped(g, SINTER_DTYPE_F32, x, 3);
    for (uint32_t i = 5; i < 7 && way < 2; i++) in[i] = grow_shaped(g, SINTER_DTYPE_F32, c, 4);
    if (way < 2) in[7] = grow_const_scalar(g, SINTER_DTYPE_I32, (double)past);
    if (gsize_is_const(g, batch) && grow_one_in(g, 2))
        in[3] = grow_leaf(g, SINTER_DTYPE_I32, m, 2, false, (gfill){ 0, 1, 1, grow_below(g, 999) });
    if (grow_one_in(g, 3) && way != 1) in[4] = grow_shaped(g, SINTER_DTYPE_F32, b, 4);
    if (grow_one_in(g, 2)) in[10] = weight(g, 3 * heads * width, 0, 1);
    const uint32_t n = finish(g, op, in, 11);
    grow_int(g, n, "num_heads", heads);
    grow_real(g, n, "mask_filter_value", -8); /* where no key counts, scores do not lose their bits */
    if (way == 1) grow_int(g, n, "past_present_share_buffer", 1);
    return grow_end(g, n, way < 2 ? 3 : 1) != G_NONE;
}

static bool self_decoder(grow *g, const gop *op)
{
    const int64_t heads = grow_between(g, 1, 3), width = grow_between(g, 1, 4), from = grow_between(g, 1, 5),
                  past = grow_between(g, 1, 5), room = past + grow_between(g, 1, 4);
    const bool is_shared = grow_one_in(g, 2);
    const gsize batch = grow_size(g), x[3] = { batch, gsize_of(1), gsize_of(from) },
                m[2] = { batch, gsize_of(past + 1) },
                c[5] = { gsize_of(2), batch, gsize_of(heads), gsize_of(is_shared ? room : past), gsize_of(width) };
    const uint32_t in[7] = { grow_shaped(g, SINTER_DTYPE_F32, x, 3),
                             weight(g, from, 3 * heads * width, 2),
                             weight(g, 3 * heads * width, 0, 1),
                             grow_one_in(g, 2) ? G_ABSENT
                                               : grow_leaf(g, SINTER_DTYPE_I32, m, 2, false, (gfill){ 0, 1, 1, 5 }),
                             grow_shaped(g, SINTER_DTYPE_F32, c, 5),
                             G_ABSENT,
                             grow_const_scalar(g, SINTER_DTYPE_I32, (double)past) },
                   n = finish(g, op, in, 7);
    grow_int(g, n, "num_heads", heads);
    grow_real(g, n, "mask_filter_value", -8);
    if (is_shared) grow_int(g, n, "past_present_share_buffer", 1);
    return grow_end(g, n, 2) != G_NONE;
}

/* Tokens [B, S, heads, width], whose gates are given as they are, or as what a_log and dt_bias turn into gates. */
static bool delta_net(grow *g, const gop *op)
{
    static const char *const rules[] = { "linear", "gated", "delta", "gated_delta" }, *const gates[] = { "none",
                                                                                                         "softplus",
                                                                                                         "sigmoid" };
    const uint32_t rule = grow_below(g, 4), gate = rule & 1 ? grow_below(g, 3) : 0;
    const int64_t heads = grow_between(g, 1, 2), groups = grow_between(g, 1, 2), k = grow_between(g, 1, 4),
                  v = grow_between(g, 1, 4);
    const bool is_wide = grow_one_in(g, 2), has_state = grow_one_in(g, 2);
    const gsize batch = grow_size(g), time = grow_size(g), all = gsize_of(heads * groups),
                q[4] = { batch, time, gsize_of(heads), gsize_of(k) }, w[4] = { batch, time, all, gsize_of(v) },
                d[4] = { batch, time, all, gsize_of(k) }, s[4] = { batch, all, gsize_of(v), gsize_of(k) };
    uint32_t in[9];
    for (uint32_t i = 0; i < 9; i++) in[i] = G_ABSENT;
    for (uint32_t i = 0; i < 3; i++) in[i] = grow_shaped(g, SINTER_DTYPE_F32, i < 2 ? q : w, 4);
    if (rule & 1)
        in[4] = grow_leaf(g, SINTER_DTYPE_F32, d, is_wide ? 4 : 3, false, (gfill){ -1, 0, 0, grow_below(g, 999) });
    if (rule & 2) in[5] = grow_leaf(g, SINTER_DTYPE_F32, d, 3, false, (gfill){ 0, 0.5, 0, grow_below(g, 999) });
    if (has_state) in[6] = grow_shaped(g, SINTER_DTYPE_F32, s, 4);
    for (uint32_t i = 7; i < 9 && gate; i++) in[i] = weight(g, heads * groups, 0, 1);
    const uint32_t n = finish(g, op, in, 9);
    grow_text(g, n, "update_rule", rules[rule]);
    if (gate) grow_text(g, n, "gate_activation", gates[gate]);
    if (grow_one_in(g, 2)) grow_text(g, n, "beta_activation", "sigmoid");
    if (grow_one_in(g, 2)) grow_int(g, n, "qk_l2_norm", 1);
    return grow_end(g, n, 2) != G_NONE;
}

/* Two sequences of `length` places, of which `a` and `b` are tokens. */
typedef struct padded {
    int64_t a, b, length;
    uint32_t offset, sums;
} padded;

static padded padded_of(grow *g)
{
    padded p = { grow_between(g, 1, 4), grow_between(g, 1, 4), 4, G_NONE, G_NONE };
    int64_t at[8];
    uint32_t n = 0;
    for (int64_t pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < 8; i++)
            if ((i % 4 < (i < 4 ? p.a : p.b)) == !pass) at[n++] = i;
    const gsize d[2] = { gsize_of(2), gsize_of(4) }, three = gsize_of(3);
    p.offset = listed(g, at, 8, d, 2);
    p.sums = listed(g, (const int64_t[]){ 0, p.a, p.a + p.b }, 3, &three, 1);
    return p;
}

/* arg 0: with weights, 1: query, key and value, 2: the padding comes back */
static bool unpadded(grow *g, const gop *op)
{
    const padded p = padded_of(g);
    const int64_t heads = grow_between(g, 1, 2), width = heads * grow_between(g, 1, 3), from = grow_between(g, 1, 5);
    const gsize t = gsize_of(p.a + p.b), x[2] = { t, gsize_of(op->arg == 0 ? from : width) },
                all[4] = { t, gsize_of(heads), gsize_of(3), gsize_of(width / heads) },
                b[4] = { gsize_of(grow_between(g, 1, 2)), gsize_of(heads), gsize_of(4), gsize_of(4) };
    const bool is_one = op->arg == 1 && grow_one_in(g, 3);
    const uint32_t data = is_one ? grow_shaped(g, SINTER_DTYPE_F32, all, 4) : grow_shaped(g, SINTER_DTYPE_F32, x, 2),
                   added = op->arg < 2 && grow_one_in(g, 2) ? grow_shaped(g, SINTER_DTYPE_F32, b, 4) : G_ABSENT;
    uint32_t n;
    if (op->arg == 0) {
        const uint32_t in[6] = { data, weight(g, from, 3 * width, 2), weight(g, 3 * width, 0, 1), p.offset, p.sums,
                                 added };
        n = finish(g, op, in, 6);
    } else if (op->arg == 1) {
        const uint32_t in[7] = { data,
                                 is_one ? G_ABSENT : grow_shaped(g, SINTER_DTYPE_F32, x, 2),
                                 is_one ? G_ABSENT : grow_shaped(g, SINTER_DTYPE_F32, x, 2),
                                 grow_one_in(g, 2) ? G_ABSENT : weight(g, 3 * width, 0, 1),
                                 p.offset,
                                 p.sums,
                                 added };
        n = finish(g, op, in, 7);
    } else {
        const uint32_t in[2] = { data, p.offset };
        n = finish(g, op, in, 2);
    }
    if (op->arg < 2) grow_int(g, n, "num_heads", heads);
    return grow_end(g, n, 1) != G_NONE;
}

static bool remove_padding(grow *g, const gop *op)
{
    const gsize batch = grow_size(g), d[3] = { batch, gsize_of(grow_between(g, 1, 5)), grow_size(g) };
    if (gsize_min(g, batch) < 1) return false;
    const uint32_t in[2] = { grow_shaped(g, SINTER_DTYPE_F32, d, 3),
                             grow_leaf(g, SINTER_DTYPE_I32, &batch, 1, false,
                                       (gfill){ 0, (double)d[1].at[0], 1, grow_below(g, 999) }) };
    return grow_end(g, finish(g, op, in, 2), 4) != G_NONE;
}

/* clang-format off */
#define MICROSOFT "com.microsoft."
const gop gops_decoders[] = {
    { MICROSOFT "SparseAttention", 1, 96, 1, sparse, 0, 0, 0 },
    { MICROSOFT "DecoderMaskedMultiHeadAttention", 1, 0, 1, decoder, 0, 0, 0 },
    { MICROSOFT "DecoderMaskedSelfAttention", 1, 0, 1, self_decoder, 0, 0, 0 },
    { MICROSOFT "PackedAttention", 1, 0, 1, unpadded, 0, 0, 0 },
    { MICROSOFT "PackedMultiHeadAttention", 1, 0, 1, unpadded, 1, 0, 0 },
    { MICROSOFT "RestorePadding", 1, 0, 1, unpadded, 2, 0, 0 },
    { MICROSOFT "RemovePadding", 1, 0, 1, remove_padding, 0, 0, 0 },
    { MICROSOFT "GatedDeltaNet", 1, 0, 1, delta_net, 0, 0, 0 },
    { 0 },
};
/* clang-format on */

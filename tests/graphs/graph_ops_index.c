/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_index.c - rows of operators that look at indices, order or conditions, and of sizes that data decides. */
#include "graph_ops.h"

/* Indices below `size` in each environment: an input or a constant, of these sizes. */
static uint32_t indices(grow *g, gsize size, const gsize *d, uint32_t rank)
{
    const int64_t least = gsize_min(g, size);
    bool is_const = grow_one_in(g, 2);
    if (least < 1) return G_NONE;
    for (uint32_t i = 0; i < rank; i++) is_const &= gsize_is_const(g, d[i]);
    const gfill f = { grow_one_in(g, 3) ? (double)-least : 0, (double)least - 1, 1, grow_below(g, 9999) };
    return grow_leaf(g, grow_one_in(g, 4) ? SINTER_DTYPE_I32 : SINTER_DTYPE_I64, d, rank, is_const, f);
}

static bool gather(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), axis = grow_below(g, rank), most = SINTER_RANK_MAX + 1 - rank;
    gsize d[SINTER_RANK_MAX];
    const uint32_t count = grow_below(g, most < 3 ? most : 3);
    for (uint32_t i = 0; i < count; i++) d[i] = grow_size(g);
    gsize all[2 * SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank + count - 1; i++)
        all[i] = i < count ? d[i] : grow_dim(g, x, i - count + (i - count >= axis));
    if (!grow_fits(g, all, rank + count - 1)) return false;
    const uint32_t at = indices(g, grow_dim(g, x, axis), d, count), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, at);
    if (axis || grow_one_in(g, 2)) grow_int(g, n, "axis", grow_one_in(g, 3) ? (int64_t)axis - rank : axis);
    return grow_end(g, n, 1) != G_NONE;
}

/* Of the sizes d: indices of their own, or one list along the axis, the same for all others. */
static uint32_t spread_indices(grow *g, gsize size, const gsize *d, uint32_t rank, uint32_t axis)
{
    gsize one[SINTER_RANK_MAX];
    if (grow_one_in(g, 2)) return indices(g, size, d, rank);
    for (uint32_t i = 0; i < rank; i++) one[i] = i == axis ? d[i] : gsize_of(1);
    const uint32_t list = indices(g, size, one, rank), shape = grow_ints(g, d, rank, false);
    return list == G_NONE ? G_NONE : grow_2(g, "Expand", list, shape);
}

static bool gather_elements(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), axis = grow_below(g, rank);
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) d[i] = grow_dim(g, x, i);
    d[axis] = grow_size(g);
    const uint32_t at = spread_indices(g, grow_dim(g, x, axis), d, rank, axis), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, at);
    grow_int(g, n, "axis", axis);
    return grow_end(g, n, 1) != G_NONE;
}

/* So many tuples, which name places in the first `depth` axes of x. */
static uint32_t tuples(grow *g, uint32_t x, gsize count, uint32_t depth)
{
    const gsize d[2] = { count, gsize_of(depth) };
    gsize least = gsize_of(INT32_MAX);
    for (uint32_t i = 0; i < depth; i++)
        for (uint32_t k = 0; k < G_ENVS; k++)
            if (grow_dim(g, x, i).at[k] < least.at[k]) least.at[k] = grow_dim(g, x, i).at[k];
    return grow_cast(g, indices(g, least, d, 2), SINTER_DTYPE_I64);
}

static bool gather_nd(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, 6);
    if (x == G_NONE) return false;
    const uint32_t depth = 1 + grow_below(g, grow_rank(g, x) < 3 ? grow_rank(g, x) : 3);
    return grow_2(g, op->name, x, tuples(g, x, grow_size(g), depth)) != G_NONE;
}

static void reduction(grow *g, uint32_t n)
{
    static const char *const kinds[] = { "add", "mul", "max", "min" };
    if (grow_one_in(g, 5)) return;
    grow_text(g, n, "reduction", kinds[grow_below(g, 4)]);
}

/* How many updates: now and then more than a thread loads at once. */
static gsize update_count(grow *g)
{
    return grow_one_in(g, 4) ? gsize_of(grow_between(g, 40, 120)) : grow_size(g);
}

/* Places repeat: updates count in their order. */
static bool scatter_elements(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, 5);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), axis = grow_below(g, rank);
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) d[i] = grow_dim(g, x, i);
    d[axis] = update_count(g);
    if (!grow_fits(g, d, rank)) return false;
    const uint32_t at = spread_indices(g, grow_dim(g, x, axis), d, rank, axis),
                   updates = grow_shaped(g, grow_type(g, x), d, rank), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, at);
    grow_in(g, n, updates);
    grow_int(g, n, "axis", axis);
    reduction(g, n);
    return grow_end(g, n, 1) != G_NONE;
}

static bool scatter_nd(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, 5);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), depth = 1 + grow_below(g, rank < 3 ? rank : 3);
    gsize d[SINTER_RANK_MAX];
    d[0] = update_count(g);
    for (uint32_t i = depth; i < rank; i++) d[i - depth + 1] = grow_dim(g, x, i);
    if (!grow_fits(g, d, rank - depth + 1)) return false;
    const uint32_t at = tuples(g, x, d[0], depth), updates = grow_shaped(g, grow_type(g, x), d, rank - depth + 1),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, at);
    grow_in(g, n, updates);
    reduction(g, n);
    return grow_end(g, n, 1) != G_NONE;
}

static bool one_hot(grow *g, const gop *op)
{
    const gsize depth = grow_size(g);
    gsize d[3];
    const uint32_t rank = 1 + grow_below(g, 3);
    for (uint32_t i = 0; i < rank; i++) d[i] = grow_size(g);
    const uint32_t at = indices(g, depth, d, rank), size = grow_ints(g, &depth, 1, true),
                   values = grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ 2 }, 1, 1), n = grow_begin(g, op->name);
    grow_in(g, n, at);
    grow_in(g, n, size);
    grow_in(g, n, values);
    if (grow_one_in(g, 2)) grow_int(g, n, "axis", grow_between(g, 0, rank));
    return grow_end(g, n, 1) != G_NONE;
}

static bool eye_like(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 2, 2), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_int(g, n, "k", grow_between(g, -1, 1));
    return grow_end(g, n, 1) != G_NONE;
}

/* Now and then a line so long that a GPU takes it in parts. */
static uint32_t line_of_top_k(grow *g, uint64_t types)
{
    const gsize d[2] = { gsize_of(grow_between(g, 1, 2)), gsize_of(grow_between(g, 1100, 2600)) };
    const sinter_dtype dtype = grow_one_in(g, 2) ? SINTER_DTYPE_F32 : SINTER_DTYPE_I64;
    if (!grow_one_in(g, 8) || !grow_fits(g, d, 2)) return grow_pick(g, types, 1, SINTER_RANK_MAX);
    return grow_leaf(g, dtype, d, 2, false, grow_fill(g, dtype));
}

static bool top_k(grow *g, const gop *op)
{
    const uint32_t x = line_of_top_k(g, op->types);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), axis = grow_below(g, rank);
    const gsize size = grow_dim(g, x, axis);
    const gsize k = grow_one_in(g, 4) ? size : gsize_of(grow_between(g, !g->has_zeros, gsize_min(g, size)));
    if (gsize_min(g, size) < 1) return false;
    const uint32_t count = grow_ints(g, &k, 1, false), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, count);
    grow_int(g, n, "axis", axis);
    if (grow_one_in(g, 2)) grow_int(g, n, "largest", 0);
    return grow_end(g, n, 2) != G_NONE;
}

static bool arg_max(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), axis = grow_below(g, rank);
    if (gsize_min(g, grow_dim(g, x, axis)) < 1) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_int(g, n, "axis", grow_one_in(g, 3) ? (int64_t)axis - rank : axis);
    if (grow_one_in(g, 2)) grow_int(g, n, "keepdims", 0);
    if (grow_one_in(g, 3)) grow_int(g, n, "select_last_index", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool cumulate(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    /* The axis is a constant mostly, or data decide it. */
    const uint32_t rank = grow_rank(g, x);
    const gfill any = { -(double)rank, (double)rank - 1, 1, grow_below(g, 999) };
    const bool is_computed = rank < SINTER_RANK_MAX && grow_one_in(g, 4);
    const uint32_t axis = is_computed ? grow_leaf(g, SINTER_DTYPE_I64, NULL, 0, false, any)
                                      : grow_const_scalar(g, SINTER_DTYPE_I64, grow_below(g, rank)),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, axis);
    if (grow_one_in(g, 3)) grow_int(g, n, "exclusive", 1);
    if (grow_one_in(g, 3)) grow_int(g, n, "reverse", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool reverse_sequence(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 2, 5);
    if (x == G_NONE) return false;
    const gsize time = grow_dim(g, x, 0), batch = grow_dim(g, x, 1);
    if (gsize_min(g, time) < 1) return false;
    const uint32_t lengths = grow_leaf(g, SINTER_DTYPE_I64, &batch, 1, false,
                                       (gfill){ 1, (double)gsize_min(g, time), 1, grow_below(g, 999) });
    return grow_2(g, op->name, x, lengths) != G_NONE;
}

/* ---- sizes that data decides ---- */

static bool non_zero(grow *g, const gop *op)
{
    return grow_1(g, op->name, grow_pick(g, op->types, 1, 5)) != G_NONE;
}

static bool compress(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, 6);
    if (x == G_NONE) return false;
    const uint32_t axis = grow_below(g, grow_rank(g, x));
    const bool is_flat = grow_one_in(g, 3);
    /* Now and then of another length than the axis. */
    const gsize d = grow_one_in(g, 4) ? grow_size(g) : grow_dim(g, x, axis);
    const bool is_mask = is_flat && grow_one_in(g, 3); /* of the input's shape: read as it lies */
    const uint32_t condition =
                       is_mask ? grow_fellow(g, x, SINTER_DTYPE_BOOL) : grow_shaped(g, SINTER_DTYPE_BOOL, &d, 1),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, condition);
    if (!is_flat) grow_int(g, n, "axis", axis);
    return grow_end(g, n, 1) != G_NONE;
}

static bool unique(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, op->arg ? 1 : 4), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (op->arg) return grow_end(g, n, 1 + grow_below(g, 3)) != G_NONE; /* com.microsoft's */
    if (x != G_NONE && grow_one_in(g, 3)) grow_int(g, n, "axis", grow_below(g, grow_rank(g, x)));
    if (grow_one_in(g, 3)) grow_int(g, n, "sorted", 0);
    return grow_end(g, n, 1 + grow_below(g, 4)) != G_NONE;
}

/* clang-format off */
#define TS (T_F | T_OF(I32) | T_OF(I64))
const gop gops_index[] = {
    { "Gather", 13, 0, 6, gather, 0, T_ALL, 0 },     { "GatherElements", 13, 0, 2, gather_elements, 0, T_ALL, 0 },
    { "GatherND", 13, 0, 2, gather_nd, 0, T_ALL, 0 }, { "com.microsoft.GatherND", 1, 0, 1, gather_nd, 0, T_F32, 0 },
    { "ScatterElements", 18, 0, 2, scatter_elements, 0, T_N, 0 },
    { "ScatterND", 18, 0, 2, scatter_nd, 0, T_N, 0 }, { "OneHot", 11, 2, 2, one_hot, 0, 0, 0 },
    { "EyeLike", 9, 0, 1, eye_like, 0, T_N, 0 },
    { "TopK", 11, 2, 3, top_k, 0, TS, 0 },            { "ArgMax", 13, 0, 2, arg_max, 0, TS, 0 },
    { "ArgMin", 13, 0, 2, arg_max, 0, TS, 0 },        { "CumSum", 14, 2, 2, cumulate, 0, TS, 0 },
    { "CumProd", 26, 2, 1, cumulate, 0, T_F, 0 },
    { "ReverseSequence", 10, 0, 2, reverse_sequence, 0, T_ALL, 0 },
    { "NonZero", 13, 0, 2, non_zero, 0, T_ALL, 0 },   { "Compress", 11, 0, 2, compress, 0, T_ALL, 0 },
    { "Unique", 11, 0, 2, unique, 0, TS, 0 }, { "com.microsoft.Unique", 1, 0, 1, unique, 1, T_F32, 0 },
    { 0 },
};
/* clang-format on */

/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_move.c - rows of operators that move elements: views, parts, copies. */
#include "graph_ops.h"

static bool transpose(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    int64_t perm[SINTER_RANK_MAX];
    const uint32_t rank = grow_rank(g, x);
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t at = grow_below(g, i + 1);
        perm[i] = perm[at];
        perm[at] = i;
    }
    if (grow_one_in(g, 8)) return grow_1(g, "Transpose", x) != G_NONE;
    return grow_transpose(g, x, perm) != G_NONE;
}

/* Joins neighbours and cuts axes by factors of constant sizes. */
static bool reshape(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    gsize d[SINTER_RANK_MAX + 1];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < grow_rank(g, x); i++) {
        const gsize size = grow_dim(g, x, i);
        if (rank && grow_one_in(g, 3)) {
            for (uint32_t k = 0; k < G_ENVS; k++) d[rank - 1].at[k] *= size.at[k];
            continue;
        }
        if (rank == SINTER_RANK_MAX) return false;
        d[rank++] = size;
        const int64_t by = grow_between(g, 2, 4);
        bool can = rank < SINTER_RANK_MAX && grow_one_in(g, 3);
        for (uint32_t k = 0; k < g->m->envs && can; k++) can = size.at[k] % by == 0;
        if (!can) continue;
        for (uint32_t k = 0; k < G_ENVS; k++) d[rank - 1].at[k] /= by;
        d[rank++] = gsize_of(by);
        if (grow_one_in(g, 2)) {
            const gsize t = d[rank - 1];
            d[rank - 1] = d[rank - 2];
            d[rank - 2] = t;
        }
    }
    if (rank < SINTER_RANK_MAX && grow_one_in(g, 5)) d[rank++] = gsize_of(1);
    bool has_zero = false;
    for (uint32_t i = 0; i < grow_rank(g, x); i++) has_zero |= gsize_min(g, grow_dim(g, x, i)) == 0;
    /* -1 and 0 where they mean the same. */
    if (rank && !has_zero && grow_one_in(g, 2)) d[grow_below(g, rank)] = gsize_of(-1);
    for (uint32_t i = 0; i < rank && i < grow_rank(g, x) && !has_zero; i++)
        if (gsize_same(g, d[i], grow_dim(g, x, i)) && grow_one_in(g, 3)) d[i] = gsize_of(0);
    const uint32_t shape = grow_ints(g, d, rank, false), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, shape);
    if (has_zero) grow_int(g, n, "allowzero", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool flatten(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const int64_t rank = grow_rank(g, x);
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (!rank) grow_int(g, n, "axis", 0);
    else if (!grow_one_in(g, 4)) grow_int(g, n, "axis", grow_between(g, -rank, rank));
    return grow_end(g, n, 1) != G_NONE;
}

/* Is it said of each axis whether its size is 1? Where only a run knows, the rank of a Squeeze without axes is open.
 * Graphs without symbols get some later (test_graph_matrix.c), which may be 1. */
static bool is_one_said(const grow *g, uint32_t x)
{
    const gvalue *v = &g->m->value.at[x];
    if (!g->has_symbols || (v->kind != G_INPUT && v->kind != G_CONST)) return false;
    for (uint32_t i = 0; i < v->rank; i++)
        for (uint32_t k = 0; k < g->m->envs && v->dim[i].symbol != G_NONE; k++)
            if (grow_dim(g, x, i).at[k] == 1) return false;
    return true;
}

static bool squeeze(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    if (is_one_said(g, x) && grow_one_in(g, 4)) return grow_1(g, op->name, x) != G_NONE;
    int64_t axes[SINTER_RANK_MAX];
    uint32_t count = 0;
    const uint32_t rank = grow_rank(g, x);
    for (uint32_t i = 0; i < rank; i++)
        if (gsize_is(g, grow_dim(g, x, i), 1) && !grow_one_in(g, 3))
            axes[count++] = grow_one_in(g, 3) ? (int64_t)i - rank : i;
    if (!count) return false;
    return grow_2(g, op->name, x, grow_axes(g, axes, count)) != G_NONE;
}

static bool unsqueeze(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX - 1);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x);
    const uint32_t count = rank < SINTER_RANK_MAX - 1 && grow_one_in(g, 3) ? 2 : 1;
    int64_t axes[2] = { grow_between(g, 0, rank), 0 };
    axes[1] = axes[0] + 1;
    return grow_2(g, op->name, x, grow_axes(g, axes, count)) != G_NONE;
}

/* The same list, of a length that only the run knows: all of it is kept. */
static uint32_t list_of_unknown_length(grow *g, uint32_t list, uint32_t count)
{
    const gsize length = gsize_of(count);
    const uint32_t any = grow_leaf(g, SINTER_DTYPE_BOOL, &length, 1, false, grow_fill(g, SINTER_DTYPE_BOOL));
    return grow_2(g, "Compress", list, grow_2(g, "Or", any, grow_1(g, "Not", any)));
}

/* Starts, ends, axes and steps of every kind, also such that nothing is left. */
static bool slice(grow *g, const gop *op) /* arg 1: DynamicSlice, which has no steps */
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    gsize start[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    int64_t axes[SINTER_RANK_MAX], step[SINTER_RANK_MAX];
    uint32_t count = 0;
    const uint32_t rank = grow_rank(g, x);
    for (uint32_t i = 0; i < rank; i++) {
        if (!grow_one_in(g, 2) && !(i + 1 == rank && !count)) continue;
        const gsize size = grow_dim(g, x, i);
        const int64_t least = gsize_min(g, size);
        axes[count] = grow_one_in(g, 4) ? (int64_t)i - rank : i;
        step[count] = op->arg ? 1 : grow_one_in(g, 3) ? -1 : grow_one_in(g, 3) ? 2 : grow_one_in(g, 8) ? -2 : 1;
        const bool is_back = step[count] < 0;
        start[count] =
            gsize_of(is_back ? (grow_one_in(g, 2) ? -1 : INT64_MAX) : grow_between(g, 0, least - (least > 1)));
        end[count] = gsize_of(is_back             ? (grow_one_in(g, 2) ? INT64_MIN : -least - 1)
                              : grow_one_in(g, 3) ? INT64_MAX
                                                  : grow_between(g, start[count].at[0] + !g->has_zeros, least));
        if (!is_back && grow_one_in(g, 6)) end[count] = size;
        if (!is_back && grow_one_in(g, 8)) end[count] = gsize_of(-1);
        count++;
    }
    uint32_t starts = grow_ints(g, start, count, false);
    if (count && grow_one_in(g, 12)) starts = list_of_unknown_length(g, starts, count);
    gsize by[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < count; i++) by[i] = gsize_of(step[i]);
    const uint32_t ends = grow_ints(g, end, count, false), axis = grow_axes(g, axes, count),
                   steps = op->arg             ? G_NONE
                           : grow_one_in(g, 4) ? grow_ints(g, by, count, false)
                                               : grow_const_ints(g, step, count),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, starts);
    grow_in(g, n, ends);
    grow_in(g, n, axis);
    if (!op->arg) grow_in(g, n, steps);
    return grow_end(g, n, 1) != G_NONE;
}

static bool expand(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    gsize d[SINTER_RANK_MAX + 1], made[SINTER_RANK_MAX + 1];
    const uint32_t rank = grow_rank(g, x), more = rank < SINTER_RANK_MAX ? grow_below(g, 2) : 0;
    for (uint32_t i = 0; i < more; i++) d[i] = made[i] = grow_size(g);
    for (uint32_t i = 0; i < rank; i++) {
        const gsize size = grow_dim(g, x, i);
        const bool can_grow = gsize_is(g, size, 1);
        d[more + i] = can_grow ? grow_size(g) : grow_one_in(g, 4) ? gsize_of(1) : size;
        made[more + i] = can_grow ? d[more + i] : size;
    }
    if (!grow_fits(g, made, rank + more)) return false;
    return grow_2(g, op->name, x, grow_ints(g, d, rank + more, false)) != G_NONE;
}

/* Parts that exist, the same one several times, constants; from axes of size 0 to many parts. */
static bool concat(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), axis = grow_below(g, rank), count = 1 + grow_below(g, 4);
    uint32_t in[5] = { x };
    for (uint32_t i = 1; i < count; i++) {
        in[i] = in[grow_below(g, i)];
        if (grow_one_in(g, 3)) continue;
        gsize d[SINTER_RANK_MAX];
        for (uint32_t k = 0; k < rank; k++) d[k] = grow_dim(g, x, k);
        if (grow_one_in(g, 2)) d[axis] = grow_size(g);
        const uint32_t made = grow_shaped(g, grow_type(g, x), d, rank);
        if (made != G_NONE) in[i] = made;
    }
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[(i + 1) % count]);
    grow_int(g, n, "axis", grow_one_in(g, 3) ? (int64_t)axis - rank : axis);
    return grow_end(g, n, 1) != G_NONE;
}

static bool split(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), axis = grow_below(g, rank);
    const gsize size = grow_dim(g, x, axis);
    const int64_t least = gsize_min(g, size);
    const uint32_t parts = 2 + grow_below(g, 3);
    if (least < (int64_t)parts) return false;
    uint32_t sizes = G_ABSENT;
    if (!gsize_is_const(g, size) || grow_one_in(g, 2)) {
        gsize d[4], left = size;
        for (uint32_t i = 0; i + 1 < parts; i++) {
            d[i] = gsize_of(grow_between(g, g->has_zeros ? 0 : 1, least / parts));
            for (uint32_t k = 0; k < G_ENVS; k++) left.at[k] -= d[i].at[k];
        }
        if (!gsize_is_const(g, left)) return false;
        d[parts - 1] = left;
        sizes = grow_ints(g, d, parts, false);
    } else if (size.at[0] % parts && (size.at[0] + parts - 1) / parts * (parts - 1) >= size.at[0]) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (sizes != G_ABSENT) grow_in(g, n, sizes);
    else grow_int(g, n, "num_outputs", parts);
    grow_int(g, n, "axis", grow_one_in(g, 3) ? (int64_t)axis - rank : axis);
    return grow_end(g, n, parts) != G_NONE;
}

static bool tile(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < grow_rank(g, x); i++)
        d[i] = gsize_of(grow_one_in(g, 2) ? 1 : grow_between(g, !g->has_zeros, 3));
    return grow_2(g, op->name, x, grow_ints(g, d, grow_rank(g, x), false)) != G_NONE;
}

static bool pad(grow *g, const gop *op)
{
    static const char *const modes[] = { "constant", "constant", "reflect", "edge", "wrap" };
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), mode = grow_below(g, g->m->opset >= 19 && op->since > 1 ? 5 : 4);
    gsize d[2 * SINTER_RANK_MAX];
    int64_t axes[SINTER_RANK_MAX];
    uint32_t count = 0;
    const bool has_axes = op->since >= 18 && grow_one_in(g, 3);
    for (uint32_t i = 0; i < rank; i++)
        if (!has_axes || !count || grow_one_in(g, 2))
            axes[count++] = has_axes && grow_one_in(g, 3) ? (int64_t)i - rank : i;
    for (uint32_t i = 0; i < 2 * count; i++) {
        const uint32_t axis = (uint32_t)(axes[i % count] + rank) % rank;
        const int64_t least = gsize_min(g, grow_dim(g, x, axis)), most = mode == 2 ? least - 1 : mode == 4 ? least : 2;
        const bool can_crop = mode == 0 && least > 3 && grow_one_in(g, 4);
        d[i] = gsize_of(grow_one_in(g, 2) || (mode && least == 0) ? 0
                        : can_crop                                ? -1
                                                                  : grow_between(g, 0, most > 2 ? 2 : most));
    }
    const uint32_t pads = grow_ints(g, d, 2 * count, false), list = has_axes ? grow_axes(g, axes, count) : G_ABSENT,
                   value = mode < 2 && grow_one_in(g, 2) && grow_type(g, x) != SINTER_DTYPE_BOOL
                               ? grow_const_scalar(g, grow_type(g, x), 2)
                               : G_ABSENT,
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, pads);
    if (value != G_ABSENT || has_axes) grow_in(g, n, value);
    if (has_axes) grow_in(g, n, list);
    if (mode) grow_text(g, n, "mode", modes[mode]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool depth_to_space(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 4, 4);
    if (x == G_NONE) return false;
    bool can = true;
    const int64_t by = 2;
    for (uint32_t i = op->arg ? 2 : 1; i < (op->arg ? 4u : 2u); i++)
        for (uint32_t k = 0; k < g->m->envs; k++) can &= grow_dim(g, x, i).at[k] % (op->arg ? by : by * by) == 0;
    if (!can) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_int(g, n, "blocksize", by);
    const bool is_crd = grow_one_in(g, op->arg ? 4 : 2);
    if (is_crd) grow_text(g, n, "mode", "CRD");
    if (is_crd && op->arg) grow_since(g, 28);
    return grow_end(g, n, 1) != G_NONE;
}

static bool center_crop_pad(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, 5);
    if (x == G_NONE) return false;
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < grow_rank(g, x); i++) d[i] = grow_size(g);
    if (!grow_fits(g, d, grow_rank(g, x))) return false;
    return grow_2(g, op->name, x, grow_ints(g, d, grow_rank(g, x), false)) != G_NONE;
}

static bool shape(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    return grow_end(g, n, 1) != G_NONE;
}

static bool constant_of_shape(grow *g, const gop *op)
{
    gsize d[4];
    const uint32_t rank = grow_below(g, 5);
    for (uint32_t i = 0; i < rank; i++) d[i] = grow_size(g);
    if (!grow_fits(g, d, rank)) return false;
    const uint32_t s = grow_ints(g, d, rank, false), n = grow_begin(g, op->name);
    grow_in(g, n, s);
    if (grow_one_in(g, 2)) {
        gattr *a = gnode_attr(&g->m->node.at[n], "value", GA_TENSOR);
        a->dtype = grow_one_in(g, 2) ? SINTER_DTYPE_F32 : SINTER_DTYPE_I64;
        a->f = 3;
    }
    return grow_end(g, n, 1) != G_NONE;
}

static bool trilu(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 2, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t k = grow_one_in(g, 2) ? G_ABSENT
                                         : grow_ints(g, (const gsize[]){ gsize_of(grow_between(g, -2, 2)) }, 1, true),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (k != G_ABSENT) grow_in(g, n, k);
    if (grow_one_in(g, 2)) grow_int(g, n, "upper", 0);
    return grow_end(g, n, 1) != G_NONE;
}

static bool range(grow *g, const gop *op)
{
    const gsize count = grow_size(g);
    const bool has_step = !op->arg || grow_one_in(g, 2); /* com.microsoft's is 1 where it is not there */
    const int64_t step = has_step && grow_one_in(g, 3) ? (grow_one_in(g, 2) ? -2 : 3) : 1,
                  first = grow_one_in(g, 3) ? grow_between(g, -5, 5) : 0;
    uint32_t stop = grow_ints(g, &count, 1, true), start = grow_const_scalar(g, SINTER_DTYPE_I64, (double)first);
    uint32_t by = grow_const_scalar(g, SINTER_DTYPE_I64, (double)step);
    if (step != 1) stop = grow_2(g, "Mul", stop, by);
    if (first) stop = grow_2(g, "Add", stop, start);
    if (grow_one_in(g, 4)) {
        const sinter_dtype type = grow_one_in(g, 2) ? SINTER_DTYPE_F32 : SINTER_DTYPE_I32;
        start = grow_cast(g, start, type);
        stop = grow_cast(g, stop, type);
        by = grow_cast(g, by, type);
    }
    return (has_step ? grow_3(g, op->name, start, stop, by) : grow_2(g, op->name, start, stop)) != G_NONE;
}

/* clang-format off */
const gop gops_move[] = {
    { "Transpose", 13, 0, 14, transpose, 0, T_ALL | T_SMALL, 0 },
    { "Reshape", 14, 2, 12, reshape, 0, T_ALL | T_SMALL, 0 },
    { "Flatten", 13, 0, 3, flatten, 0, T_ALL | T_SMALL, 0 },
    { "Squeeze", 13, 2, 4, squeeze, 0, T_ALL | T_SMALL, 0 },
    { "Unsqueeze", 13, 2, 4, unsqueeze, 0, T_ALL | T_SMALL, 0 },  { "Slice", 13, 30, 12, slice, 0, T_ALL, 0 },
    { "DynamicSlice", 1, 14, 2, slice, 1, T_ALL, 0 },
    { "Expand", 13, 2, 6, expand, 0, T_ALL, 0 },        { "Concat", 13, 0, 12, concat, 0, T_ALL, 0 },
    { "Split", 18, 2, 8, split, 0, T_ALL, 0 },          { "Tile", 13, 2, 3, tile, 0, T_ALL, 0 },
    { "com.microsoft.Pad", 1, 2, 1, pad, 0, T_F32, 0 }, { "com.microsoft.Trilu", 1, 2, 1, trilu, 0, T_F32, 0 },
    { "Pad", 18, 10, 5, pad, 0, T_N, 0 },               { "DepthToSpace", 13, 0, 3, depth_to_space, 0, T_F, 0 },
    { "SpaceToDepth", 13, 0, 3, depth_to_space, 1, T_F, 0 },
    { "CenterCropPad", 18, 2, 2, center_crop_pad, 0, T_ALL, 0 },
    { "Shape", 15, 0, 3, shape, 0, T_ALL | T_SMALL, 0 },          { "Size", 13, 0, 2, shape, 0, T_ALL | T_SMALL, 0 },
    { "ConstantOfShape", 9, 1, 3, constant_of_shape, 0, 0, 0 },
    { "Trilu", 14, 2, 3, trilu, 0, T_ALL, 0 },          { "Range", 11, 7, 2, range, 0, 0, 0 },
    { "com.microsoft.Range", 1, 0, 1, range, 1, 0, 0 },
    { 0 },
};
/* clang-format on */

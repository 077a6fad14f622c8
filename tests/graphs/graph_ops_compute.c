/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_compute.c - rows of products, convolutions, pools, reductions and norms. */
#include "graph_ops.h"

/* The right side of a product over `depth`: a weight, or a value with batch axes. */
static bool matmul(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, 6);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x);
    const gsize depth = grow_dim(g, x, rank - 1);
    if (rank >= 2 && grow_one_in(g, 5)) {
        /* With itself, turned. */
        int64_t perm[SINTER_RANK_MAX];
        for (uint32_t i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
        const uint32_t t = grow_transpose(g, x, perm);
        return (grow_one_in(g, 2) ? grow_2(g, op->name, x, t) : grow_2(g, op->name, t, x)) != G_NONE;
    }
    gsize d[SINTER_RANK_MAX] = { depth };
    uint32_t to = 1;
    if (!grow_one_in(g, 8)) {
        const uint32_t batch = rank > 2 && grow_one_in(g, 2) ? rank - 2 : 0;
        for (uint32_t i = 0; i < batch; i++) d[i] = grow_one_in(g, 4) ? gsize_of(1) : grow_dim(g, x, i);
        d[batch] = depth;
        d[batch + 1] = grow_size(g);
        to = batch + 2;
    }
    return grow_2(g, op->name, x, grow_shaped(g, grow_type(g, x), d, to)) != G_NONE;
}

static bool gemm(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 2, 2);
    if (x == G_NONE) return false;
    const bool ta = grow_one_in(g, 3), tb = grow_one_in(g, 2);
    const gsize m = grow_dim(g, x, ta), k = grow_dim(g, x, !ta), n = grow_size(g);
    const gsize w[2] = { tb ? n : k, tb ? k : n }, c[3] = { m, n, gsize_of(1) };
    const sinter_dtype t = grow_type(g, x);
    const uint32_t b = grow_shaped(g, t, w, 2), way = grow_below(g, 4),
                   bias = way == 0   ? G_ABSENT
                          : way == 1 ? grow_shaped(g, t, &c[1], 1)
                          : way == 2 ? grow_shaped(g, t, c, 2)
                                     : grow_shaped(g, t, (const gsize[]){ c[0], c[2] }, 2),
                   node = grow_begin(g, op->name);
    grow_in(g, node, x);
    grow_in(g, node, b);
    if (bias != G_ABSENT) grow_in(g, node, bias);
    if (ta) grow_int(g, node, "transA", 1);
    if (tb) grow_int(g, node, "transB", 1);
    if (grow_one_in(g, 3)) grow_real(g, node, "alpha", 0.5);
    if (grow_one_in(g, 3)) grow_real(g, node, "beta", 2);
    return grow_end(g, node, 1) != G_NONE;
}

/* An image of channels: one that exists, or a new one. */
static uint32_t image(grow *g, uint64_t types, uint32_t spatial_min, uint32_t spatial_max)
{
    const uint32_t x = grow_find(g, types, 2 + spatial_min, 2 + spatial_max);
    if (x != G_NONE && !grow_one_in(g, 5) && gsize_is_const(g, grow_dim(g, x, 1))) return x;
    const uint32_t spatial = (uint32_t)grow_between(g, spatial_min, spatial_max);
    gsize d[5] = { grow_size(g), gsize_of(grow_between(g, 1, 8)) };
    for (uint32_t i = 0; i < spatial; i++) d[2 + i] = grow_size(g);
    const sinter_dtype type = types & T_OF(BF16) && grow_one_in(g, 6) ? SINTER_DTYPE_BF16
                              : types & T_F32                         ? SINTER_DTYPE_F32
                                                                      : SINTER_DTYPE_F16;
    return grow_leaf(g, type, d, 2 + spatial, false, grow_fill(g, SINTER_DTYPE_F32));
}

/* Groups of a convolution: a divisor of the channels. */
static int64_t groups_of(grow *g, int64_t channels)
{
    if (grow_one_in(g, 4)) return channels;
    if (!grow_one_in(g, 4)) return 1;
    const int64_t wanted = grow_between(g, 2, 4);
    return channels % wanted ? 1 : wanted;
}

/* Kernel, strides, dilations and pads such that each axis fits everywhere. False where none does. */
static bool window(grow *g, uint32_t x, int64_t *kernel, int64_t *stride, int64_t *dilation, int64_t *pads)
{
    const uint32_t spatial = grow_rank(g, x) - 2;
    for (uint32_t i = 0; i < spatial; i++) {
        const int64_t least = gsize_min(g, grow_dim(g, x, 2 + i));
        kernel[i] = grow_one_in(g, 8) ? grow_between(g, 4, 7) : grow_between(g, 1, 3);
        dilation[i] = grow_one_in(g, 5) ? grow_between(g, 2, 5) : 1;
        stride[i] = grow_one_in(g, 3) ? 2 : grow_one_in(g, 10) ? grow_between(g, 3, 7) : 1;
        pads[i] = kernel[i] > 1 ? grow_below(g, 2) : 0;
        pads[spatial + i] = kernel[i] > 1 ? grow_one_in(g, 4) ? grow_below(g, 2) : pads[i] : 0;
        if (spatial == 1 && grow_one_in(g, 6)) { /* a long filter, as along sound */
            const int64_t half = grow_between(g, 6, 10);
            kernel[0] = 2 * half + 1;
            pads[0] = pads[1] = half;
            dilation[0] = 1;
        }
        if (least + pads[i] + pads[spatial + i] < (kernel[i] - 1) * dilation[i] + 1 || least < 1) return false;
    }
    return true;
}

static bool conv(grow *g, const gop *op)
{
    const uint32_t x = image(g, op->types, 1, 3);
    if (x == G_NONE || !gsize_is_const(g, grow_dim(g, x, 1))) return false;
    int64_t kernel[3], stride[3], dilation[3], pads[6], w[5];
    const uint32_t spatial = grow_rank(g, x) - 2;
    const int64_t channels = grow_dim(g, x, 1).at[0];
    if (!channels || !window(g, x, kernel, stride, dilation, pads)) return false;
    const int64_t groups = groups_of(g, channels), outs = groups * grow_between(g, 1, groups > 1 ? 3 : 9);
    const bool is_turned = op->arg == 1;
    w[0] = is_turned ? channels : outs;
    w[1] = (is_turned ? outs : channels) / groups;
    for (uint32_t i = 0; i < spatial; i++) w[2 + i] = kernel[i];
    const uint32_t weight = grow_weight(g, grow_type(g, x), w, 2 + spatial, 1),
                   bias = grow_one_in(g, 2) ? G_ABSENT : grow_weight(g, grow_type(g, x), &outs, 1, 1),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, weight);
    if (bias != G_ABSENT) grow_in(g, n, bias);
    grow_list(g, n, "strides", stride, spatial);
    grow_list(g, n, "dilations", dilation, spatial);
    if (grow_one_in(g, 6) && !is_turned) grow_text(g, n, "auto_pad", grow_one_in(g, 2) ? "SAME_UPPER" : "SAME_LOWER");
    else grow_list(g, n, "pads", pads, 2 * spatial);
    if (groups > 1) grow_int(g, n, "group", groups);
    if (grow_type(g, x) == SINTER_DTYPE_BF16) grow_since(g, 22);
    return grow_end(g, n, 1) != G_NONE;
}

static bool pool(grow *g, const gop *op)
{
    const uint32_t x = image(g, op->types, 1, 3);
    if (x == G_NONE) return false;
    int64_t kernel[3], stride[3], dilation[3], pads[6];
    const uint32_t spatial = grow_rank(g, x) - 2;
    if (!window(g, x, kernel, stride, dilation, pads)) return false;
    /* A window has an element of the image at least. */
    for (uint32_t i = 0; i < spatial; i++)
        if (pads[i] >= kernel[i] || pads[spatial + i] >= kernel[i] || dilation[i] > 1) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_list(g, n, "kernel_shape", kernel, spatial);
    grow_list(g, n, "strides", stride, spatial);
    grow_list(g, n, "pads", pads, 2 * spatial);
    if (op->arg == 1 && grow_one_in(g, 2)) grow_int(g, n, "count_include_pad", 1);
    if (op->arg == 2 && grow_one_in(g, 2)) grow_int(g, n, "p", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool global_pool(grow *g, const gop *op)
{
    const uint32_t x = image(g, op->types, 1, 3);
    if (x == G_NONE) return false;
    for (uint32_t i = 2; i < grow_rank(g, x); i++)
        if (gsize_min(g, grow_dim(g, x, i)) < 1) return false;
    return grow_1(g, op->name, x) != G_NONE;
}

/* arg 1: axes of size 0 have a result, too. */
static bool reduce(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 0, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    int64_t axes[SINTER_RANK_MAX];
    uint32_t count = 0;
    const uint32_t rank = grow_rank(g, x);
    for (uint32_t i = 0; i < rank; i++) {
        if (!grow_one_in(g, 2)) continue;
        axes[count++] = grow_one_in(g, 4) ? (int64_t)i - rank : i;
    }
    for (uint32_t i = 0; i < rank && !op->arg; i++)
        if (gsize_min(g, grow_dim(g, x, i)) < 1) return false;
    const bool is_none = !count && grow_one_in(g, 2);
    const uint32_t list = count || is_none ? grow_axes(g, axes, count) : G_ABSENT, n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (list != G_ABSENT) grow_in(g, n, list);
    if (grow_one_in(g, 2)) grow_int(g, n, "keepdims", 0);
    if (!count && grow_one_in(g, 2)) grow_int(g, n, "noop_with_empty_axes", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool softmax(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, SINTER_RANK_MAX);
    if (x == G_NONE) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    const int64_t rank = grow_rank(g, x);
    if (!grow_one_in(g, 3)) grow_int(g, n, "axis", grow_between(g, -rank, rank - 1));
    if (op->arg) grow_int(g, n, "p", 1 + grow_below(g, 2));
    return grow_end(g, n, 1) != G_NONE;
}

static bool layer_norm(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, 6);
    if (x == G_NONE) return false;
    const uint32_t rank = grow_rank(g, x), axis = grow_one_in(g, 2) ? rank - 1 : grow_below(g, rank);
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = axis; i < rank; i++) {
        d[i - axis] = grow_dim(g, x, i);
        if (gsize_min(g, d[i - axis]) < 2) return false;
    }
    const uint32_t scale = grow_shaped(g, grow_type(g, x), d, rank - axis),
                   bias = op->arg || grow_one_in(g, 2) ? G_ABSENT : grow_shaped(g, grow_type(g, x), d, rank - axis),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, scale);
    if (bias != G_ABSENT) grow_in(g, n, bias);
    grow_int(g, n, "axis", axis);
    return grow_end(g, n, 1) != G_NONE;
}

/* arg: 0 instance, 1 group, 2 batch. */
static bool channel_norm(grow *g, const gop *op)
{
    const uint32_t x = image(g, op->types, 1, 3);
    if (x == G_NONE || !gsize_is_const(g, grow_dim(g, x, 1))) return false;
    const int64_t channels = grow_dim(g, x, 1).at[0];
    for (uint32_t i = 1; i < grow_rank(g, x); i++)
        if (gsize_min(g, grow_dim(g, x, i)) < 1 + (i > 1)) return false;
    uint32_t in[5] = { x };
    const uint32_t count = op->arg == 2 ? 5 : 3;
    for (uint32_t i = 1; i < count; i++) {
        const gsize c = gsize_of(channels);
        const gfill f = { i == 4 ? 0.5 : -1, 2, i == 4 ? 0.25 : 0, grow_below(g, 9999) };
        in[i] = grow_leaf(g, grow_type(g, x), &c, 1, !grow_one_in(g, 5), f);
    }
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[i]);
    if (op->arg == 1) grow_int(g, n, "num_groups", channels % 2 ? 1 : 2);
    return grow_end(g, n, 1) != G_NONE;
}

static bool lrn(grow *g, const gop *op)
{
    const uint32_t x = image(g, op->types, 1, 2), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_int(g, n, "size", grow_between(g, 1, 4));
    return grow_end(g, n, 1) != G_NONE;
}

/* The part of an image that is resized, which the run may compute: axes 0 and 1 are kept. */
static uint32_t crop_of(grow *g)
{
    const gsize two = gsize_of(2);
    const gfill low = { -0.2, 0.5, 0.0371, grow_below(g, 999) }, high = { 0.5, 1.3, 0.0371, grow_below(g, 999) };
    const bool is_const = grow_one_in(g, 3);
    const uint32_t part[4] = { grow_leaf(g, SINTER_DTYPE_F32, &two, 1, true, (gfill){ 0, 0, 1, 0 }),
                               grow_leaf(g, SINTER_DTYPE_F32, &two, 1, is_const, low),
                               grow_leaf(g, SINTER_DTYPE_F32, &two, 1, true, (gfill){ 1, 1, 1, 0 }),
                               grow_leaf(g, SINTER_DTYPE_F32, &two, 1, is_const, high) },
                   n = grow_begin(g, "Concat");
    for (uint32_t i = 0; i < 4; i++) grow_in(g, n, part[i]);
    grow_int(g, n, "axis", 0);
    return grow_end(g, n, 1);
}

/* Integers, three times as large: blends are ninths, so none lies in the middle of two integers, where rounding goes
 * either way. */
static bool resize_integers(grow *g, const gop *op, uint32_t x)
{
    const gsize kept = gsize_of(2), moved = gsize_of(grow_rank(g, x) - 2);
    const uint32_t one = grow_leaf(g, SINTER_DTYPE_F32, &kept, 1, true, (gfill){ 1, 1, 1, 0 }),
                   three = grow_leaf(g, SINTER_DTYPE_F32, &moved, 1, true, (gfill){ 3, 3, 1, 0 }),
                   joined = grow_begin(g, "Concat");
    grow_in(g, joined, one);
    grow_in(g, joined, three);
    grow_int(g, joined, "axis", 0);
    const uint32_t scales = grow_end(g, joined, 1), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, G_ABSENT);
    grow_in(g, n, scales);
    grow_text(g, n, "mode", grow_one_in(g, 4) ? "nearest" : "linear");
    grow_text(g, n, "coordinate_transformation_mode", grow_one_in(g, 2) ? "half_pixel" : "asymmetric");
    return grow_end(g, n, 1) != G_NONE;
}

/* Scales that are halves of integers, made of constants, inputs or shapes. */
static uint32_t scales_of(grow *g, uint32_t rank)
{
    gsize twice[5];
    for (uint32_t i = 0; i < rank; i++) twice[i] = gsize_of(i < 2 ? 2 : grow_between(g, 1, 5));
    const uint32_t list = grow_cast(g, grow_ints(g, twice, rank, false), SINTER_DTYPE_F32);
    return grow_2(g, "Mul", list, grow_const_scalar(g, SINTER_DTYPE_F32, 0.5));
}

static bool resize(grow *g, const gop *op)
{
    static const char *const modes[] = { "nearest", "linear", "cubic" }, *const coords[] = { "half_pixel", "asymmetric",
                                                                                             "align_corners",
                                                                                             "pytorch_half_pixel" };
    const uint32_t x = image(g, op->types, 1, 2);
    if (x == G_NONE) return false;
    if (!dtype_is_float(grow_type(g, x))) return resize_integers(g, op, x);
    const uint32_t rank = grow_rank(g, x), crop = rank == 4 && grow_one_in(g, 4) ? crop_of(g) : G_ABSENT,
                   mode = crop != G_ABSENT && !grow_one_in(g, 4) ? 1 : grow_below(g, 3);
    gsize d[5];
    for (uint32_t i = 0; i < rank; i++) {
        d[i] = grow_dim(g, x, i);
        if (gsize_min(g, d[i]) < 1) return false;
        if (i >= 2) d[i] = gsize_of(grow_between(g, 1, 9));
    }
    const bool is_scaled = crop == G_ABSENT && grow_one_in(g, 3);
    const uint32_t list = is_scaled ? scales_of(g, rank) : grow_ints(g, d, rank, false), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, crop);
    grow_in(g, n, is_scaled ? list : G_ABSENT);
    if (!is_scaled) grow_in(g, n, list);
    grow_text(g, n, "mode", modes[mode]);
    grow_text(g, n, "coordinate_transformation_mode",
              crop == G_ABSENT ? coords[grow_below(g, 4)] : "tf_crop_and_resize");
    if (crop != G_ABSENT && grow_one_in(g, 2)) grow_real(g, n, "extrapolation_value", 0.5);
    if (mode == 0) grow_text(g, n, "nearest_mode", "floor");
    return grow_end(g, n, 1) != G_NONE;
}

/* The labels of an operand's axes: letters, and '.' for the axes of an ellipsis, which come first. */
typedef struct einsum_labels {
    uint32_t rank;
    char at[4];
} einsum_labels;

static void einsum_term(const einsum_labels *l, char *to, size_t room)
{
    size_t n = strlen(to);
    for (uint32_t i = 0; i < l->rank && n + 4 < room; i++) {
        const bool is_dots = l->at[i] == '.';
        if (is_dots && i && l->at[i - 1] == '.') continue;
        n += (size_t)snprintf(to + n, room - n, is_dots ? "..." : "%c", l->at[i]);
    }
}

/* Random equations over one or two operands: shared axes in any places, sums over either alone, ellipses, and results
 * that are not written. */
static bool einsum(grow *g, const gop *op)
{
    enum { RANK = 4 };
    const uint32_t x = grow_pick(g, op->types, 0, RANK);
    if (x == G_NONE) return false;
    char equation[64] = "", next = 'a';
    einsum_labels a = { .rank = grow_rank(g, x) }, b = { .rank = grow_below(g, RANK + 1) };
    gsize d[RANK];
    const uint32_t dots = grow_one_in(g, 3) ? grow_below(g, a.rank + 1) : 0;
    for (uint32_t i = 0; i < a.rank; i++) a.at[i] = i < dots ? '.' : next++;
    bool is_taken[RANK] = { 0 };
    const bool both_dots = dots && b.rank >= dots && !grow_one_in(g, 3);
    for (uint32_t i = 0; i < b.rank; i++) {
        const uint32_t from = grow_below(g, a.rank + 1);
        if (both_dots && i < dots) {
            b.at[i] = '.';
            d[i] = grow_dim(g, x, i);
        } else if (from < a.rank && a.at[from] != '.' && !is_taken[from]) {
            is_taken[from] = true;
            b.at[i] = a.at[from];
            d[i] = grow_dim(g, x, from);
        } else {
            b.at[i] = next++;
            d[i] = grow_size(g);
        }
    }
    const bool is_one = grow_one_in(g, 4);
    const uint32_t y = is_one ? G_ABSENT : grow_shaped(g, grow_type(g, x), d, b.rank);
    einsum_term(&a, equation, sizeof equation);
    if (!is_one) {
        (void)strcat(equation, ",");
        einsum_term(&b, equation, sizeof equation);
    }
    if (!grow_one_in(g, 5)) {
        (void)strcat(equation, dots ? "->..." : "->");
        const char last = is_one ? (char)('a' + (int)(a.rank - dots)) : next;
        const uint32_t turn = grow_below(g, 8);
        for (char i = 0, count = (char)(last - 'a'); i < count; i++) {
            const char label = (char)('a' + (i + (int)turn) % count);
            if (strlen(equation) + 2 < sizeof equation && !grow_one_in(g, 3)) (void)strncat(equation, &label, 1);
        }
    }
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (!is_one) grow_in(g, n, y);
    grow_text(g, n, "equation", equation);
    return grow_end(g, n, 1) != G_NONE;
}

/* clang-format off */
#define TS (T_F | T_OF(I32) | T_OF(I64))
#define TC (T_F32 | T_OF(F16))
const gop gops_compute[] = {
    { "MatMul", 13, 0, 12, matmul, 0, TS | T_OF(U32) | T_OF(U64), 0 }, { "Gemm", 13, 0, 6, gemm, 0, T_F, 0 },
    { "Einsum", 12, 0, 3, einsum, 0, T_F, 0 },
    { "Conv", 11, 0, 10, conv, 0, TC | T_OF(BF16), 0 },            { "ConvTranspose", 11, 0, 3, conv, 1, TC, 0 },
    { "MaxPool", 12, 0, 4, pool, 0, TC, 0 },                { "AveragePool", 19, 0, 4, pool, 1, TC, 0 },
    { "LpPool", 18, 0, 1, pool, 2, T_F32, 0 },
    { "GlobalAveragePool", 1, 0, 3, global_pool, 0, TC, 0 }, { "GlobalMaxPool", 1, 0, 2, global_pool, 0, TC, 0 },
    { "ReduceSum", 13, 2, 4, reduce, 1, TS, 0 },            { "ReduceMean", 18, 2, 5, reduce, 0, TS, 0 },
    { "ReduceMax", 18, 2, 3, reduce, 0, TS, 0 },            { "ReduceMin", 18, 2, 2, reduce, 0, TS, 0 },
    { "ReduceProd", 18, 2, 2, reduce, 1, T_F, 0 },          { "ReduceL1", 18, 2, 2, reduce, 1, T_F, 0 },
    { "ReduceL2", 18, 2, 2, reduce, 1, T_F, 0 },            { "ReduceLogSum", 18, 2, 1, reduce, 0, T_F, 0 },
    { "ReduceLogSumExp", 18, 2, 2, reduce, 0, T_F, 0 },     { "ReduceSumSquare", 18, 2, 2, reduce, 1, TS, 0 },
    { "Softmax", 13, 0, 5, softmax, 0, T_F, 0 },            { "LogSoftmax", 13, 0, 2, softmax, 0, T_F, 0 },
    { "LpNormalization", 1, 0, 1, softmax, 1, T_F32, 0 },
    { "LayerNormalization", 17, 0, 4, layer_norm, 0, T_F32 | T_OF(F16), 0 },
    { "RMSNormalization", 23, 0, 2, layer_norm, 1, T_F32 | T_OF(F16), 0 },
    { "InstanceNormalization", 6, 0, 2, channel_norm, 0, T_F32, 0 },
    { "GroupNormalization", 21, 0, 2, channel_norm, 1, T_F32, 0 },
    { "BatchNormalization", 15, 0, 3, channel_norm, 2, T_F32, 0 },
    { "LRN", 13, 0, 1, lrn, 0, T_F32, 0 },
    { "Resize", 19, 14, 3, resize, 0, T_F32 | T_OF(U8) | T_OF(I8), 0 },
    { 0 },
};
/* clang-format on */

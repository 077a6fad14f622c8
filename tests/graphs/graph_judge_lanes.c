/* SPDX-License-Identifier: Apache-2.0 */
/* graph_judge_lanes.c - how far rounding may move what a node gives: each lane but the first is moved by so much. */
#include "graph_judge.h"

#include "graph_ops.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

/* ---- rounding ---- */

/* Of 8 bits for the largest of a tensor and of a channel's weights, which may be cut off. */
#define INT8_UNIT 0x1p-6

sinter_dtype judge_type(const gmodel *m, sinter_dtype dtype)
{
    if (dtype != SINTER_DTYPE_F32 || !m->allow) return dtype;
    /* tf32 has as many bits as f16 */
    return m->allow & (SINTER_ALLOW_BF16 | SINTER_ALLOW_INT8) ? SINTER_DTYPE_BF16 : SINTER_DTYPE_F16;
}

double judge_unit(const gmodel *m, sinter_dtype dtype)
{
    if (dtype == SINTER_DTYPE_F32 && m->allow & SINTER_ALLOW_INT8) return INT8_UNIT;
    switch (judge_type(m, dtype)) {
    case SINTER_DTYPE_F64: return 0x1p-53;
    case SINTER_DTYPE_F32: return 0x1p-24;
    case SINTER_DTYPE_F16: return 0x1p-11;
    case SINTER_DTYPE_BF16: return 0x1p-8;
    case SINTER_DTYPE_F8E4M3FN:
    case SINTER_DTYPE_F8E4M3FNUZ: return 0x1p-4;
    default: return 0x1p-3;
    }
}

/* What exporters write for a key that is masked: nothing is computed of it, and what is small beside it is lost in it.
 */
static bool is_mask(double x)
{
    return x == -0x1.fffffep127 || x == -0x1.fep127 || x == -65504 || x == -1e9;
}

/* Small multiples of 1/16 come from sums and products that are exact in any order. */
static bool is_exact(double x, sinter_dtype dtype)
{
    if (is_mask(x)) return true;
    const double most = dtype == SINTER_DTYPE_F32 || dtype == SINTER_DTYPE_F64 ? 65536
                        : dtype == SINTER_DTYPE_F16                            ? 64
                                                                               : 8;
    return fabs(x) <= most && x * 16 == rint(x * 16);
}

/* Operators that give exact results where their operands and results are such numbers. */
static bool is_exact_op(const char *op)
{
    static const char *const names[] = {
        "Abs",    "Neg",    "Relu",       "Floor",  "Ceil",          "Round",     "Sign",      "Identity",
        "Add",    "Sub",    "Mul",        "Max",    "Min",           "Sum",       "Where",     "Clip",
        "Cast",   "MatMul", "Gemm",       "Einsum", "Conv",          "MaxPool",   "ReduceSum", "ConvTranspose",
        "CumSum", "Trilu",  "ReduceProd", "OneHot", "GlobalMaxPool", "ReduceMax", "ReduceMin", "DequantizeLinear",
    };
    for (uint32_t i = 0; i < COUNT_OF(names); i++)
        if (!strcmp(op, names[i])) return true;
    return gop_moves(op);
}

/* Operators whose results are sums: where one of them is rounded, the others are so by chance only. */
static bool is_sum(const char *op)
{
    static const char *const names[] = { "MatMul",    "Gemm",   "Einsum", "Conv",    "ConvTranspose",
                                         "ReduceSum", "CumSum", "Resize", "Upsample" };
    for (uint32_t i = 0; i < COUNT_OF(names); i++)
        if (!strcmp(op, names[i])) return true;
    return false;
}

static bool all_exact(const gmodel *m, const gtensor *t)
{
    for (int64_t i = 0; i < t->count; i++)
        if (isfinite(gtensor_at(t, i)) && !is_exact(gtensor_at(t, i), judge_type(m, t->dtype))) return false;
    return true;
}

/* Can a build know the value: is it a constant, or computed from constants, shapes or what a body is given? */
static bool is_known(const gmodel *m, uint32_t value)
{
    static const char *const opaque[] = { "Shape", "Size", "If", "Loop", "Scan" };
    if (m->value.at[value].kind != G_RESULT) return m->value.at[value].kind != G_INPUT;
    for (uint32_t i = 0; i < m->node.count; i++) {
        const gnode *n = &m->node.at[i];
        bool makes = false, is = true;
        for (uint32_t k = 0; k < n->count_out; k++) makes = makes || n->out[k] == value;
        if (!makes || n->is_dead) continue;
        for (uint32_t k = 0; k < COUNT_OF(opaque); k++)
            if (!strcmp(n->op, opaque[k])) return true;
        for (uint32_t k = 0; k < n->count_in; k++) is = is && (n->in[k] == G_NONE || is_known(m, n->in[k]));
        return is;
    }
    return true;
}

/* May the permit for int8 make this a product of integers with scales? Round numbers are no multiples of such scales,
 * so the result is not exact. A product of two values that the run computes stays as it is. */
static bool is_of_bytes(const gmodel *m, const gnode *n, sinter_dtype dtype)
{
    static const char *const names[] = { "MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose" };
    if (!(m->allow & SINTER_ALLOW_INT8) || dtype != SINTER_DTYPE_F32) return false;
    bool is_product = false, has_weight = false;
    for (uint32_t i = 0; i < COUNT_OF(names); i++) is_product = is_product || !strcmp(n->op, names[i]);
    for (uint32_t i = 0; i < n->count_in && is_product; i++)
        has_weight = has_weight || (n->in[i] != G_NONE && is_known(m, n->in[i]));
    return has_weight;
}

double judge_largest(const gtensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < t->count; i++)
        if (isfinite(gtensor_at(t, i))) most = fmax(most, fabs(gtensor_at(t, i)));
    return most;
}

gtensor *judge_moved(gmodel *m, const gtensor *t, const gtensor *first, uint32_t lane, uint32_t salt, bool all)
{
    if (!dtype_is_float(t->dtype) || sinter_dtype_bits(t->dtype) <= 8) return (gtensor *)(uintptr_t)t;
    gtensor *to = gtensor_new(m->a, t->dtype, t->rank, t->dim);
    memcpy(to->data, t->data, t->size);
    uint64_t seed = salt * 31 + (uint64_t)t->count;
    const sinter_dtype type = judge_type(m, t->dtype);
    const double largest = all ? judge_largest(t) : 0,
                 most = (all ? 12 : 4) * (lane == 1 ? 1 : -1) * judge_unit(m, t->dtype);
    for (int64_t i = 0; i < t->count; i++) {
        const double x = gtensor_at(t, i);
        if (!isfinite(x) || (!all && is_exact(x, type))) continue;
        const uint64_t random = test_random(&seed);
        double by = (random & 1 ? most : -most) * (0.5 + 0.5 * (double)(random >> 11) * 0x1p-53);
        /* What the operands' lanes have moved far already is moved further: back again, it might be as if nothing was.
         */
        const double own = first ? x - gtensor_at(first, i) : 0;
        /* Of a number near 0 the lanes may have both signs: the first lane's says which way is up. */
        const double up = copysign(1, first ? gtensor_at(first, i) : x);
        if (own * by * up < 0 && fabs(own) > fabs(by) * (fabs(x) + largest / 4) / 2) by = -by;
        /* Away from 0 or towards it, both parts: they must not cancel. */
        dtype_store_f64(t->dtype, to->data, i, x + by * up * (fabs(x) + largest / 4));
    }
    return to;
}

/* ---- numbers too small for their type ---- */

/* Below this a function of f32 may give 0 (scalar_error.c). The root of a sum of powers may be 0 where the powers, up
 * to the third, are as small. */
static double faint_of(const char *op)
{
    return judge_is_norm(op) ? 0x1p-39 : 0x1p-119;
}

static double smallest_of(sinter_dtype dtype)
{
    return dtype == SINTER_DTYPE_F16 ? 0x1p-24 : dtype == SINTER_DTYPE_BF16 ? 0x1p-133 : 0x1p-149;
}

/* Has an operand numbers whose products may be too small for the type? */
static bool has_faint(const gmodel *m, const gnode *n, uint32_t k)
{
    for (uint32_t i = 0; i < n->count_in; i++) {
        const gtensor *t = n->in[i] == G_NONE ? NULL : m->value.at[n->in[i]].at[k][0];
        const double least = t && judge_type(m, t->dtype) == SINTER_DTYPE_F16 ? 0x1p-12 : 0x1p-60;
        for (int64_t j = 0; t && dtype_is_float(t->dtype) && j < t->count; j++)
            if (gtensor_at(t, j) != 0 && fabs(gtensor_at(t, j)) < least) return true;
    }
    return false;
}

/* A 0 may be a number too small for the type, which a kernel that keeps more bits still sees; and a number that is
 * nearly too small may become 0. Where the lane's operands gave another number already (`own`), that number stays: Sign
 * of a product that is 0 here and 2^-24 in the lane is 1. */
static void move_faint(const gmodel *m, const gnode *n, uint32_t k, const gtensor *from, const gtensor *own,
                       gtensor *to, uint32_t lane)
{
    const sinter_dtype dtype = to->dtype, type = judge_type(m, dtype);
    if (dtype == SINTER_DTYPE_F64 || !dtype_is_float(dtype) || sinter_dtype_bits(dtype) <= 8 || gop_moves(n->op))
        return;
    /* What f32 work allowed to be in f16 loses to subnormal numbers. */
    const double faint = dtype != type && type == SINTER_DTYPE_F16 ? 0x1p-14 : faint_of(n->op);
    const bool zeros = has_faint(m, n, k) || (sinter_dtype_bits(type) == 16 && !is_exact_op(n->op));
    for (int64_t i = 0; i < to->count; i++) {
        const double x = gtensor_at(from, i);
        if (fabs(gtensor_at(own, i)) >= faint) continue;
        const bool is_moved = fabs(gtensor_at(to, i)) >= faint; /* with what is small beside others */
        if (x == 0 && zeros && !is_moved) dtype_store_f64(dtype, to->data, i, smallest_of(type) * (lane == 1 ? 1 : -1));
        else if (x != 0 && fabs(x) < faint && (lane == 1 || !is_moved))
            dtype_store_f64(dtype, to->data, i, lane == 1 ? 0 : 2 * x);
    }
}

bool judge_is_norm(const char *op)
{
    return !strcmp(op, "ReduceL2") || !strcmp(op, "LpPool") || !strcmp(op, "GlobalLpPool") ||
           !strcmp(op, "LpNormalization");
}

bool judge_is_open_norm(const gtensor *t)
{
    for (int64_t i = 0; dtype_is_float(t->dtype) && i < t->count; i++)
        if (isfinite(gtensor_at(t, i)) && fabs(gtensor_at(t, i)) > 0x1p40) return true;
    return false;
}

bool judge_is_flushed(const gmodel *m, const gnode *n, uint32_t k)
{
    bool is_subnormal = false, is_large = false;
    for (uint32_t i = 0; is_sum(n->op) && i < n->count_in; i++) {
        const gtensor *t = n->in[i] == G_NONE ? NULL : m->value.at[n->in[i]].at[k][0];
        if (!t || (t->dtype != SINTER_DTYPE_BF16 && t->dtype != SINTER_DTYPE_F32)) continue;
        /* In f32 that is so for matrix registers, and shows beside what is infinite. */
        const double large = t->dtype == SINTER_DTYPE_BF16 ? 0x1p60 : INFINITY;
        for (int64_t j = 0; j < t->count; j++) {
            const double x = fabs(gtensor_at(t, j));
            is_subnormal = is_subnormal || (x > 0 && x < 0x1p-126);
            is_large = is_large || !(x < large);
        }
    }
    return is_subnormal && is_large;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool judge_may_join(gmodel *m, gtensor *const *lanes)
{
    const gtensor *t = lanes[0];
    if (!dtype_is_float(t->dtype) || sinter_dtype_bits(t->dtype) <= 8) return false;
    double *x = ARENA_NEW(m->a, double, (size_t)t->count + 1), spread = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < t->count; i++) {
        if (!isfinite(gtensor_at(t, i))) continue;
        x[count++] = gtensor_at(t, i);
        for (uint32_t lane = 1; lane < G_LANES; lane++)
            spread = fmax(spread, fabs(gtensor_at(lanes[lane], i) - gtensor_at(t, i)));
    }
    qsort(x, (size_t)count, sizeof *x, compare_numbers);
    for (int64_t i = 1; i < count; i++)
        if (x[i] != x[i - 1] && x[i] - x[i - 1] <= 8 * spread) return true;
    return false;
}

/* How far rounding may move an element. */
static double reach_of(gtensor *const *lanes, int64_t i)
{
    double most = 0;
    for (uint32_t lane = 1; lane < G_LANES; lane++)
        most = fmax(most, fabs(gtensor_at(lanes[lane], i) - gtensor_at(lanes[0], i)));
    return most;
}

/* An element of a row, and how far rounding may move it. */
typedef struct mover {
    double x, reach;
} mover;

static int by_falling(const void *a, const void *b)
{
    const double x = ((const mover *)a)->x, y = ((const mover *)b)->x;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* A row of which the `taken` largest are taken, in their order. A NaN is larger than all, and near to nothing. */
static bool may_swap(mover *row, int64_t count, int64_t taken)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, row[i].reach);
    if (most == 0) return false;
    qsort(row, (size_t)count, sizeof *row, by_falling);
    for (int64_t i = 0, first = 0; i < count; i++) {
        if (row[i].x != row[first].x) first = i;
        if (first >= taken) return false;
        for (int64_t j = i + 1; j < count && !(row[i].x - row[j].x > row[i].reach + most); j++) {
            const double both = row[i].reach + row[j].reach;
            if (both > 0 && row[i].x - row[j].x <= both) return true;
        }
    }
    return false;
}

bool judge_may_swap(const gmodel *m, const gnode *n, uint32_t k)
{
    const bool is_top = !strcmp(n->op, "TopK"), is_least = !strcmp(n->op, "ArgMin");
    if (!is_top && !is_least && strcmp(n->op, "ArgMax") != 0) return false;
    gtensor *const *lanes = m->value.at[n->in[0]].at[k];
    const gtensor *t = lanes[0];
    const uint32_t out = is_top && n->out[0] == G_NONE ? n->out[1] : n->out[0];
    if (!dtype_is_float(t->dtype) || !t->rank || !t->count) return false;
    const gattr *named = gnode_find(n, "axis"), *largest = gnode_find(n, "largest");
    const int64_t given = named ? named->i : is_top ? -1 : 0;
    const uint32_t axis = (uint32_t)(given < 0 ? given + t->rank : given);
    const int64_t taken = is_top ? m->value.at[out].at[k][0]->dim[axis] : 1, count = t->dim[axis];
    int64_t step = 1;
    for (uint32_t i = axis + 1; i < t->rank; i++) step *= t->dim[i];
    const double sign = is_least || (largest && !largest->i) ? -1 : 1;
    mover *row = malloc((size_t)count * sizeof *row);
    bool found = !row;
    for (int64_t i = 0; i < t->count / count && !found; i++) {
        for (int64_t j = 0; j < count; j++) {
            const int64_t at = i / step * step * count + i % step + j * step;
            const double x = sign * gtensor_at(t, at);
            row[j] = (mover){ isnan(x) ? sign * INFINITY : x, reach_of(lanes, at) };
        }
        found = may_swap(row, count, taken);
    }
    free(row);
    return found;
}

bool judge_may_be_zero(gtensor *const *lanes)
{
    for (int64_t i = 0; i < lanes[0]->count; i++) {
        const double x = gtensor_at(lanes[0], i);
        double spread = 0;
        for (uint32_t lane = 1; lane < G_LANES; lane++) spread = fmax(spread, fabs(gtensor_at(lanes[lane], i) - x));
        if (spread > 0 && fabs(x) <= 8 * spread) return true;
    }
    return false;
}

bool judge_is_open_product(const gtensor *small, const gtensor *large)
{
    for (int64_t i = 0; i < small->count; i++) {
        const double a = fabs(gtensor_at(small, i)), b = fabs(gtensor_at(large, i));
        if ((a < 0x1p-126 && b > 1) || b > 0x1p127) return true;
    }
    return false;
}

gtensor *judge_factors(gmodel *m, const gtensor *t, bool small)
{
    gtensor *to = gtensor_new(m->a, t->dtype, t->rank, t->dim);
    for (int64_t i = 0; i < t->count; i++) {
        const double x = gtensor_at(t, i), size = fabs(x);
        dtype_store_f64(t->dtype, to->data, i, x == 0 || (size < 1) != small ? 1 : x);
    }
    return to;
}

/* What the terms of a sum may leave where they cancel: nothing where they are exact; else a unit of the largest
 * product. */
static double left_of_terms(const gmodel *m, const gnode *n, uint32_t k, sinter_dtype dtype)
{
    double most = judge_unit(m, dtype);
    bool is_rounded = is_of_bytes(m, n, dtype);
    for (uint32_t i = 0; i < 2 && i < n->count_in; i++) {
        const gtensor *t = n->in[i] == G_NONE ? NULL : m->value.at[n->in[i]].at[k][0];
        if (!t || t->dtype != dtype) continue;
        is_rounded = is_rounded || !all_exact(m, t);
        most *= judge_largest(t);
    }
    return is_rounded ? most : 0;
}

/* What rounding inside a node may leave of numbers that cancel. A norm of equal numbers divides that by nearly nothing;
 * Gelu multiplies with 1 + erf(x), and erf(x) is nearly -1; a loss near 0 is the logarithm of a sum near 1; the sums in
 * a recurrent layer, in a product with packed weights, behind attention and over support vectors may be small although
 * their terms are not. */
static double cancelled(const gmodel *m, const gnode *n, uint32_t k, sinter_dtype dtype)
{
    static const struct {
        const char *part;
        double units, least;
    } row[] = { { "Normalization", 256, 0 },
                { "Gelu", 1, 0 },
                { "Mean", 1, 0 },
                { "Average", 1, 0 },
                { "LogSoftmax", 1, 0 },
                { "CrossEntropyLoss", 1, 0 },
                { "LSTM", 1, 0 },
                { "GRU", 1, 0 },
                { "RNN", 1, 0 },
                { "MatMulNBits", 16, 0 },
                { "MaskedSelfAttention", 4, 0 },
                { "QAttention", 1, 0 },
                { "SVM", 4, 1 } };
    if (is_sum(n->op) && dtype_is_float(dtype)) return left_of_terms(m, n, k, dtype);
    for (uint32_t i = 0; i < COUNT_OF(row) && dtype_is_float(dtype); i++)
        if (strstr(n->op, row[i].part))
            return row[i].units * judge_unit(m, dtype) *
                   fmax(row[i].least, judge_largest(m->value.at[n->in[0]].at[k][0]));
    return 0;
}

/* The group of element i: its index without the axes over which MeanVarianceNormalization takes means. */
static int64_t group_of(const gtensor *t, const gattr *axes, int64_t i)
{
    int64_t group = 0, step = 1;
    for (uint32_t d = t->rank; d-- > 0; i /= t->dim[d]) {
        bool is_axis = !axes && d != 1; /* the default: [0, 2, 3] */
        for (uint32_t a = 0; axes && a < axes->count; a++)
            is_axis = is_axis || axes->ints[a] == (int64_t)d || axes->ints[a] == (int64_t)d - (int64_t)t->rank;
        if (is_axis) continue;
        group += i % t->dim[d] * step;
        step *= t->dim[d];
    }
    return group;
}

/* Element i of a result of `shape`, of what was broadcast to it. */
static double broadcast_at(const gtensor *t, const gtensor *shape, int64_t i)
{
    int64_t at = 0, step = 1;
    for (uint32_t d = 0; d < shape->rank && d < t->rank; d++) {
        const int64_t size = shape->dim[shape->rank - 1 - d], own = t->dim[t->rank - 1 - d];
        if (own != 1) at += i % size * step;
        step *= own;
        i /= size;
    }
    return gtensor_at(t, at);
}

/* Element i of what a norm sees: its input, to which SkipLayerNormalization adds others. */
static double normed_at(const gmodel *m, const gnode *n, uint32_t k, bool is_skip, int64_t i)
{
    const gtensor *x = m->value.at[n->in[0]].at[k][0];
    double sum = gtensor_at(x, i);
    for (uint32_t in = 1; is_skip && in < n->count_in; in++) {
        const bool is_term = in == 1 || in == 4; /* 2 and 3: gamma and beta */
        if (is_term && n->in[in] != G_NONE) sum += broadcast_at(m->value.at[n->in[in]].at[k][0], x, i);
    }
    return sum;
}

/* The rounding of a mean moves all elements of its group alike. These norms divide that by the deviation, to which they
 * add hardly anything. */
static void move_mean(gmodel *m, const gnode *n, uint32_t k, gtensor *to, uint32_t lane)
{
    const bool is_skip = strstr(n->op, "SkipLayerNormalization") != NULL;
    if (!is_skip && strcmp(n->op, "MeanVarianceNormalization") != 0) return;
    const gtensor *x = m->value.at[n->in[0]].at[k][0];
    const gattr *axes = gnode_find(n, "axes");
    const double scale = is_skip ? judge_largest(m->value.at[n->in[2]].at[k][0]) : 1;
    double *sum = ARENA_NEW(m->a, double, 4 * ((size_t)x->count + 1));
    double *squares = sum + x->count + 1, *count = squares + x->count + 1, *largest = count + x->count + 1;
    int64_t *group = ARENA_NEW(m->a, int64_t, (size_t)x->count + 1);
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t g = is_skip ? i / x->dim[x->rank - 1] : group_of(x, axes, i);
        const double v = normed_at(m, n, k, is_skip, i);
        group[i] = g;
        sum[g] += v;
        count[g] += 1;
        largest[g] = fmax(largest[g], fabs(v));
    }
    for (int64_t i = 0; i < x->count; i++) {
        const double d = normed_at(m, n, k, is_skip, i) - sum[group[i]] / count[group[i]];
        squares[group[i]] += d * d;
    }
    for (int64_t i = 0; i < x->count && x->count == to->count; i++) {
        const int64_t g = group[i];
        const double by = scale * judge_unit(m, x->dtype) * largest[g] / (sqrt(squares[g] / count[g]) + 1e-9);
        dtype_store_f64(to->dtype, to->data, i, gtensor_at(to, i) + (lane == 1 ? by : -by));
    }
}

/* Where a number lies on different sides of another one in two lanes, rounding may leave it the same. */
static void move_equal(const gmodel *m, const gnode *n, uint32_t k, gtensor *to, uint32_t lane)
{
    const bool is_equal = !strcmp(n->op, "Equal");
    const bool is_cast = !strcmp(n->op, "Cast") || !strcmp(n->op, "CastLike");
    if (to->dtype != SINTER_DTYPE_BOOL || (!is_equal && !is_cast)) return;
    gtensor *const *a = m->value.at[n->in[0]].at[k], *const *b = is_equal ? m->value.at[n->in[1]].at[k] : NULL;
    if (!dtype_is_float(a[0]->dtype) || a[0]->count != a[lane]->count || (b && b[0]->count != b[lane]->count)) return;
    for (int64_t i = 0; i < to->count; i++) {
        const double one = broadcast_at(a[0], to, i) - (b ? broadcast_at(b[0], to, i) : 0);
        const double two = broadcast_at(a[lane], to, i) - (b ? broadcast_at(b[lane], to, i) : 0);
        if ((one < 0 && two > 0) || (one > 0 && two < 0)) dtype_store_f64(to->dtype, to->data, i, is_equal);
    }
}

gtensor *judge_lane(gmodel *m, const gnode *n, uint32_t output, uint32_t k, uint32_t lane, gtensor *t)
{
    const gtensor *first = m->value.at[n->out[output]].at[k][0];
    const double by = cancelled(m, n, k, t->dtype);
    for (int64_t j = 0; j < t->count && by > 0; j++)
        dtype_store_f64(t->dtype, t->data, j, gtensor_at(t, j) + (j % 2 == lane % 2 ? by : -by));
    const bool all = !is_exact_op(n->op) || is_of_bytes(m, n, t->dtype) ||
                     (is_sum(n->op) && dtype_is_float(t->dtype) && !all_exact(m, first));
    gtensor *to = judge_moved(m, t, first->count == t->count ? first : NULL, lane, n->out[output], all);
    if (first->count == t->count) move_faint(m, n, k, first, t, to, lane);
    if (first->count == t->count) move_equal(m, n, k, to, lane);
    if (output == 0) move_mean(m, n, k, to, lane);
    return to;
}

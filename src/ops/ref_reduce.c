/* SPDX-License-Identifier: Apache-2.0 */
/* ref_reduce.c - reduce, arg_reduce and cumulate.
 *
 * Floats are reduced in double, integers in wrapping 64 bits (norms and logarithms of integers in double, then
 * truncated). Of nothing: sums 0, products 1, extremes the type's own ends, the mean NaN (integers: 0), logarithms
 * minus infinity. */
#include "ops/ref_loops.h"
#include <math.h>

static double reduce_f64(const view *x, ref_walk w, int64_t kind)
{
    double max = -INFINITY;
    double sum = kind == reduce_kind_max    ? -INFINITY
                 : kind == reduce_kind_min  ? INFINITY
                 : kind == reduce_kind_prod ? 1
                                            : 0;
    for (int64_t i = 0; kind == reduce_kind_log_sum_exp && i < w.count; i++, ref_walk_next(&w)) {
        const double v = view_load_f64(x, w.at);
        if (!(v <= max)) max = v; /* NaN stays: nothing is <= NaN, and NaN is not <= anything */
        if (isnan(max)) return max;
    }
    for (int64_t i = 0; i < w.count; i++, ref_walk_next(&w)) {
        const double v = view_load_f64(x, w.at);
        switch (kind) {
        case reduce_kind_max: sum = isnan(sum) || v <= sum ? sum : v; break;
        case reduce_kind_min: sum = isnan(sum) || v >= sum ? sum : v; break;
        case reduce_kind_prod: sum *= v; break;
        case reduce_kind_l1: sum += fabs(v); break;
        case reduce_kind_l2:
        case reduce_kind_sum_square: sum += v * v; break;
        case reduce_kind_log_sum_exp: sum += isinf(max) ? v == max : exp(v - max); break;
        default: sum += v; break; /* sum, mean, log_sum */
        }
    }
    switch (kind) {
    case reduce_kind_mean: return sum / (double)w.count;
    case reduce_kind_l2: return sqrt(sum);
    case reduce_kind_log_sum: return log(sum);
    case reduce_kind_log_sum_exp: return isinf(max) ? max : max + log(sum);
    default: return sum;
    }
}

static int64_t reduce_i64(const view *x, ref_walk w, int64_t kind)
{
    const bool is_u64 = x->dtype == SINTER_DTYPE_U64;
    int64_t min = 0;
    int64_t max = 0;
    dtype_int_range(x->dtype, &min, &max);
    if (is_u64) max = -1;
    uint64_t sum = kind == reduce_kind_prod  ? 1
                   : kind == reduce_kind_max ? (uint64_t)min
                   : kind == reduce_kind_min ? (uint64_t)max
                                             : 0;
    const int64_t count = w.count;
    for (int64_t i = 0; i < count; i++, ref_walk_next(&w)) {
        const int64_t v = view_load_i64(x, w.at);
        const uint64_t u = (uint64_t)v;
        switch (kind) {
        case reduce_kind_max: sum = (is_u64 ? u > sum : v > (int64_t)sum) ? u : sum; break;
        case reduce_kind_min: sum = (is_u64 ? u < sum : v < (int64_t)sum) ? u : sum; break;
        case reduce_kind_prod: sum *= u; break;
        case reduce_kind_l1: sum += v < 0 && !is_u64 ? 0 - u : u; break;
        case reduce_kind_sum_square: sum += u * u; break;
        default: sum += u; break; /* sum, mean */
        }
    }
    if (kind != reduce_kind_mean) return (int64_t)sum;
    if (!count) return 0;
    return is_u64 ? (int64_t)(sum / (uint64_t)count) : (int64_t)sum / count;
}

/* Integers take the whole part of a real result, as a Cast does. */
static void store_real(const view *y, int64_t at, double value)
{
    view_store_f64(y, at, dtype_is_float(y->dtype) ? value : trunc(value));
}

sinter_status reference_reduce(ref_call *c)
{
    const attrs_reduce *a = c->attrs;
    TRY(ref_check(c));
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    uint32_t axes = 0;
    for (uint32_t i = 0; i < a->axes.count; i++) axes |= 1u << a->axes.at[i];
    const bool in_double = dtype_is_float(x->dtype) || a->kind == reduce_kind_l2 || a->kind == reduce_kind_log_sum ||
                           a->kind == reduce_kind_log_sum_exp;
    ref_walk outer = ref_walk_axes(x, ~axes, 0);
    ref_walk to = ref_walk_axes(y, a->keep ? ~axes : ~0u, 0);
    for (int64_t i = 0; i < outer.count; i++, ref_walk_next(&outer), ref_walk_next(&to)) {
        const ref_walk inner = ref_walk_axes(x, axes, outer.at);
        if (in_double) store_real(y, to.at, reduce_f64(x, inner, a->kind));
        else view_store_i64(y, to.at, reduce_i64(x, inner, a->kind));
    }
    return SINTER_OK;
}

/* Whether a beats b as the extreme: NaN beats all numbers. */
static bool is_beyond(const view *x, int64_t at_a, int64_t at_b, bool is_max, bool or_equal)
{
    if (dtype_is_float(x->dtype)) {
        const double a = view_load_f64(x, at_a);
        const double b = view_load_f64(x, at_b);
        if (isnan(a) || isnan(b)) return isnan(a) && (or_equal || !isnan(b));
        return (is_max ? a > b : a < b) || (or_equal && a == b);
    }
    const int64_t a = view_load_i64(x, at_a);
    const int64_t b = view_load_i64(x, at_b);
    if (a == b) return or_equal;
    const bool is_greater = x->dtype == SINTER_DTYPE_U64 ? (uint64_t)a > (uint64_t)b : a > b;
    return is_greater == is_max;
}

sinter_status reference_arg_reduce(ref_call *c)
{
    const attrs_arg_reduce *a = c->attrs;
    TRY(ref_check(c));
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    const uint32_t axis = 1u << a->axis;
    const int64_t step = x->stride[a->axis];
    ref_walk outer = ref_walk_axes(x, ~axis, 0);
    ref_walk to = ref_walk_axes(y, a->keep ? ~axis : ~0u, 0);
    for (int64_t i = 0; i < outer.count; i++, ref_walk_next(&outer), ref_walk_next(&to)) {
        int64_t best = 0;
        for (int64_t j = 1; j < x->dim[a->axis]; j++) {
            if (is_beyond(x, outer.at + j * step, outer.at + best * step, a->is_max != 0, a->last != 0)) best = j;
        }
        view_store_i64(y, to.at, best);
    }
    return SINTER_OK;
}

sinter_status reference_cumulate(ref_call *c)
{
    const attrs_cumulate *a = c->attrs;
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    TRY(ref_check(c));
    const bool is_float = dtype_is_float(x->dtype);
    const int64_t count = x->dim[a->axis];
    ref_walk from = ref_walk_axes(x, ~(1u << a->axis), 0);
    ref_walk to = ref_walk_axes(y, ~(1u << a->axis), 0);
    for (int64_t i = 0; i < from.count; i++, ref_walk_next(&from), ref_walk_next(&to)) {
        double sum = a->is_product ? 1 : 0;
        uint64_t sum_int = a->is_product ? 1 : 0;
        for (int64_t k = 0; k < count; k++) {
            const int64_t j = a->reverse ? count - 1 - k : k;
            const int64_t at_x = from.at + j * x->stride[a->axis];
            const int64_t at_y = to.at + j * y->stride[a->axis];
            const double v = is_float ? view_load_f64(x, at_x) : 0;
            const uint64_t u = is_float ? 0 : (uint64_t)view_load_i64(x, at_x);
            const double before = sum;
            const uint64_t before_int = sum_int;
            sum = a->is_product ? sum * v : sum + v;
            sum_int = a->is_product ? sum_int * u : sum_int + u;
            if (is_float) view_store_f64(y, at_y, a->exclusive ? before : sum);
            else view_store_i64(y, at_y, (int64_t)(a->exclusive ? before_int : sum_int));
        }
    }
    return SINTER_OK;
}

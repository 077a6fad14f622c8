/* SPDX-License-Identifier: Apache-2.0 */
/* dim_range.c - interval arithmetic over 64-bit integers: saturating, so that no bound stays no bound.
 *
 * Results enclose every value that the operation can take; divisors are those known for certain. */
#include "core/dim_range.h"

/* INT64_MIN is only ever infinity: a finite result stays above it. */
static int64_t sat_add(int64_t a, int64_t b, int64_t end)
{
    int64_t sum;
    if (a == end || b == end) return end;
    if (!i64_add(a, b, &sum)) return a < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static int64_t sat_mul(int64_t a, int64_t b)
{
    int64_t product;
    if (!i64_mul(a, b, &product)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return product == -INT64_MAX ? INT64_MIN : product;
}

static int64_t sat_neg(int64_t a)
{
    return a == INT64_MIN ? INT64_MAX : a == INT64_MAX ? INT64_MIN : -a;
}

/* a and b are not both extreme: -INT64_MIN never arises because callers treat INT64_MIN as infinite. */
static int64_t sat_floor_div(int64_t a, int64_t b)
{
    if (a == INT64_MAX || a == INT64_MIN) {
        const bool is_up = (a == INT64_MAX) == (b > 0);
        return is_up ? INT64_MAX : INT64_MIN;
    }
    if (b == INT64_MAX || b == INT64_MIN) return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
    return i64_floor_div(a, b);
}

dim_range dim_range_add(dim_range a, dim_range b)
{
    return (dim_range){
        .min = sat_add(a.min, b.min, INT64_MIN),
        .max = sat_add(a.max, b.max, INT64_MAX),
        .opt = sat_add(a.opt, b.opt, INT64_MAX),
        .divisor = i64_gcd(a.divisor, b.divisor),
    };
}

dim_range dim_range_mul(dim_range a, dim_range b)
{
    const int64_t p[4] = { sat_mul(a.min, b.min), sat_mul(a.min, b.max), sat_mul(a.max, b.min), sat_mul(a.max, b.max) };
    const int64_t d = sat_mul(a.divisor, b.divisor);
    return (dim_range){
        .min = i64_min(i64_min(p[0], p[1]), i64_min(p[2], p[3])),
        .max = i64_max(i64_max(p[0], p[1]), i64_max(p[2], p[3])),
        .opt = sat_mul(a.opt, b.opt),
        .divisor = d == INT64_MAX ? a.divisor : d,
    };
}

dim_range dim_range_floordiv(dim_range a, dim_range b)
{
    dim_range r = { .opt = b.opt ? sat_floor_div(a.opt, b.opt) : 0, .divisor = 1 };
    if (b.min >= 1) {
        r.min = sat_floor_div(a.min, a.min >= 0 ? b.max : b.min);
        r.max = sat_floor_div(a.max, a.max >= 0 ? b.min : b.max);
    } else {
        r.max = a.min == INT64_MIN ? INT64_MAX : i64_max(a.min < 0 ? -a.min : a.min, a.max);
        r.min = r.max == INT64_MAX ? INT64_MIN : -r.max;
        if (r.min > -1) r.min = -1;
    }
    if (b.min == b.max && b.min > 0 && a.divisor % b.min == 0) r.divisor = a.divisor / b.min;
    return r;
}

dim_range dim_range_neg(dim_range a)
{
    return (dim_range){ .min = sat_neg(a.max), .max = sat_neg(a.min), .opt = sat_neg(a.opt), .divisor = a.divisor };
}

dim_range dim_range_mod(dim_range a, dim_range b)
{
    dim_range r = { .opt = 0, .divisor = i64_gcd(a.divisor, b.divisor) };
    if (b.opt) {
        r.opt = b.opt == -1 ? 0 : a.opt % b.opt;
        if (r.opt && (r.opt < 0) != (b.opt < 0)) r.opt += b.opt;
    }
    r.max = b.max == INT64_MAX ? INT64_MAX : b.max > 0 ? b.max - 1 : 0;
    r.min = b.min == INT64_MIN ? INT64_MIN : b.min < 0 ? b.min + 1 : 0;
    if (a.min >= 0 && b.min >= 0) r.max = i64_min(r.max, a.max);
    return r;
}

/* At least the larger, unless that one is 1 where the other is less. */
dim_range dim_range_broadcast(dim_range a, dim_range b)
{
    dim_range r = dim_range_pick(a, b, i64_max);
    if (r.min <= 1) r.min = i64_min(a.min, b.min);
    r.opt = i64_broadcast(a.opt, b.opt);
    return r;
}

dim_range dim_range_pick(dim_range a, dim_range b, int64_t (*pick)(int64_t, int64_t))
{
    return (dim_range){ .min = pick(a.min, b.min),
                        .max = pick(a.max, b.max),
                        .opt = pick(a.opt, b.opt),
                        .divisor = i64_gcd(a.divisor, b.divisor) };
}

dim_range dim_range_apply(uint32_t kind, dim_range a, dim_range b)
{
    switch ((dim_kind)kind) {
    case DIM_ADD: return dim_range_add(a, b);
    case DIM_MUL: return dim_range_mul(a, b);
    case DIM_FLOORDIV: return dim_range_floordiv(a, b);
    case DIM_CEILDIV: return dim_range_neg(dim_range_floordiv(dim_range_neg(a), b));
    case DIM_MOD: return dim_range_mod(a, b);
    case DIM_MIN: return dim_range_pick(a, b, i64_min);
    case DIM_MAX: return dim_range_pick(a, b, i64_max);
    case DIM_BROADCAST: return dim_range_broadcast(a, b);
    default: return (dim_range){ .divisor = 1 };
    }
}

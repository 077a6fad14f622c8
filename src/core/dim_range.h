/* SPDX-License-Identifier: Apache-2.0 */
/* dim_range.h - interval arithmetic with a known divisor, as dim.c uses it.
 *
 * INT64_MAX and INT64_MIN stand for infinity. A divisor of 0 is that of the constant 0, which everything divides. */
#ifndef CORE_DIM_RANGE_H
#define CORE_DIM_RANGE_H

#include "core/dim.h"

static inline int64_t i64_floor_div(int64_t a, int64_t b)
{
    const int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static inline uint64_t i64_size(int64_t a)
{
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

static inline int64_t i64_gcd(int64_t a, int64_t b)
{
    uint64_t x = i64_size(a), y = i64_size(b);
    while (y) {
        const uint64_t r = x % y;
        x = y;
        y = r;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

static inline int64_t i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t i64_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The value of DIM_BROADCAST. */
static inline int64_t i64_broadcast(int64_t a, int64_t b)
{
    return a == 1 ? b : b == 1 || a > b ? a : b;
}

dim_range dim_range_add(dim_range a, dim_range b);
dim_range dim_range_neg(dim_range a);
dim_range dim_range_mul(dim_range a, dim_range b);
dim_range dim_range_floordiv(dim_range a, dim_range b);
dim_range dim_range_mod(dim_range a, dim_range b);
dim_range dim_range_broadcast(dim_range a, dim_range b);
dim_range dim_range_pick(dim_range a, dim_range b, int64_t (*pick)(int64_t, int64_t));   /* min or max */
/* The range of an expression of this kind (dim_kind) whose operands have these ranges. */
dim_range dim_range_apply(uint32_t kind, dim_range a, dim_range b);

#endif

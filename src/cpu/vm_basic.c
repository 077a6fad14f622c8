/* SPDX-License-Identifier: Apache-2.0 */
/* vm_basic.c - instructions that need no instruction set of their own: f64, int32 and int64 loops, and the general loop
 * that hands each element to scalar_eval. */
#include "cpu/vm.h"

#include "core/dtype.h"
#include <float.h>
#include <math.h>
#include <string.h>

#define ARGS const vm_op *op, void *d_, const void *a_, const void *b_, const void *c_, int64_t n

vm_class vm_class_of(sinter_dtype dtype)
{
    switch (dtype) {
    case SINTER_DTYPE_F64: return VM_F64;
    case SINTER_DTYPE_I64:
    case SINTER_DTYPE_U32:
    case SINTER_DTYPE_U64: return VM_I64;
    default: return dtype_is_float(dtype) ? VM_F32 : VM_I32;
    }
}

static scalar get(vm_class cls, const void *at, int64_t i)
{
    switch (cls) {
    case VM_F64: return (scalar){ .f = ((const double *)at)[i] };
    case VM_I32: return (scalar){ .i = ((const int32_t *)at)[i] };
    case VM_I64: return (scalar){ .i = ((const int64_t *)at)[i] };
    default: return (scalar){ .f = (double)((const float *)at)[i] };
    }
}

static void put(sinter_dtype type, void *at, int64_t i, scalar v)
{
    switch (vm_class_of(type)) {
    case VM_F64: ((double *)at)[i] = v.f; break;
    case VM_I32: ((int32_t *)at)[i] = (int32_t)v.i; break;
    case VM_I64: ((int64_t *)at)[i] = v.i; break;
    default: ((float *)at)[i] = (float)v.f; break;
    }
}

static void general(ARGS)
{
    const void *at[3] = { a_, b_, c_ };
    const bool is_narrow = (op->op == OP_cast || op->op == OP_cast_wrap || op->op == OP_quantize) &&
                           op->to != SINTER_DTYPE_F32 && op->to != SINTER_DTYPE_F64 &&
                           dtype_is_float((sinter_dtype)op->to);
    for (int64_t i = 0; i < n; i++) {
        scalar arg[3];
        for (uint32_t k = 0; k < op->arity; k++) arg[k] = get(vm_class_of((sinter_dtype)op->arg_type[k]), at[k], i);
        scalar v = scalar_eval((op_id)op->op, (sinter_dtype)op->from, (sinter_dtype)op->to, arg);
        if (is_narrow) {
            uint64_t bits = 0;
            scalar_store((sinter_dtype)op->to, &bits, 0, v);
            v = scalar_load((sinter_dtype)op->to, &bits, 0);
        }
        put((sinter_dtype)op->to, d_, i, v);
    }
}

/* ---- narrow floats, which registers hold as f32 ---- */

static bool is_f8(sinter_dtype type)
{
    return type == SINTER_DTYPE_F8E4M3FN || type == SINTER_DTYPE_F8E4M3FNUZ || type == SINTER_DTYPE_F8E5M2 ||
           type == SINTER_DTYPE_F8E5M2FNUZ;
}

typedef struct narrow {
    sinter_dtype type;
    bool saturates, has_negative_zero;
    uint32_t mantissa, lowest; /* bits; of the exponent of the least normal number, where f32 has it */
    float max;
} narrow;

static narrow narrow_of(sinter_dtype type, bool saturates)
{
    const bool is_e4m3 = type == SINTER_DTYPE_F8E4M3FN || type == SINTER_DTYPE_F8E4M3FNUZ;
    if (type == SINTER_DTYPE_F16) return (narrow){ type, false, true, 10, (127 - 14) << 23, 65504 };
    narrow f = { type, saturates, type == SINTER_DTYPE_F8E4M3FN || type == SINTER_DTYPE_F8E5M2, is_e4m3 ? 3 : 2, 0, 0 };
    uint8_t code = 1;
    const float least = (float)dtype_load_f64(type, &code, 0);
    memcpy(&f.lowest, &least, sizeof least);
    f.lowest += f.mantissa << 23;
    dtype_store_f8(type, &code, 0, (double)INFINITY, true);
    f.max = (float)dtype_load_f64(type, &code, 0);
    return f;
}

/* One rounding: a sum with 3/2 times a power of two keeps as many bits behind the leading one as the type has. */
static inline float narrow_round(const narrow *f, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t own = bits & 0x7f800000u, exponent = own < f->lowest ? f->lowest : own;
    if (fabsf(x) <= f->max) {
        const uint32_t sum_bits = (exponent + ((23 - f->mantissa) << 23)) | 0x400000u;
        float sum;
        memcpy(&sum, &sum_bits, sizeof sum);
        const float r = (x + sum) - sum;
        return f->has_negative_zero ? copysignf(r, x) : r;
    }
    if (f->saturates && fabsf(x) <= FLT_MAX) return copysignf(f->max, x);
    uint16_t code;
    dtype_store_f8(f->type, &code, 0, (double)x, f->saturates);
    return (float)dtype_load_f64(f->type, &code, 0);
}

static void cast_f8(ARGS)
{
    (void)b_, (void)c_;
    const narrow f = narrow_of((sinter_dtype)op->to, op->op == OP_cast);
    float *d = d_;
    const float *a = a_;
    for (int64_t i = 0; i < n; i++) d[i] = narrow_round(&f, a[i]);
}

static void quantize_f8(ARGS)
{
    const narrow f = narrow_of((sinter_dtype)op->to, true);
    float *d = d_;
    const float *a = a_, *b = b_, *c = c_;
    for (int64_t i = 0; i < n; i++) {
        const float q = a[i] / b[i];
        d[i] = narrow_round(&f, c[i] == 0 ? q : (float)((double)q + (double)c[i]));
    }
}

static void dequantize_f8(ARGS)
{
    (void)op;
    float *d = d_;
    const float *a = a_, *b = b_, *c = c_;
    for (int64_t i = 0; i < n; i++) d[i] = (float)(((double)a[i] - (double)c[i]) * (double)b[i]);
}

static vm_fn *of_codes(const vm_op *op)
{
    const bool is_f32 = vm_class_of((sinter_dtype)op->from) == VM_F32 &&
                        vm_class_of((sinter_dtype)op->arg_type[1]) == VM_F32 &&
                        vm_class_of((sinter_dtype)op->arg_type[2]) == VM_F32;
    if (is_f32 && op->op == OP_quantize && is_f8((sinter_dtype)op->to)) return quantize_f8;
    if (is_f32 && op->op == OP_dequantize && op->to == SINTER_DTYPE_F32) return dequantize_f8;
    return general;
}

#define LOOP1(name, type, result, value)                                                                               \
    static void name(ARGS)                                                                                             \
    {                                                                                                                  \
        (void)op, (void)b_, (void)c_;                                                                                  \
        result *d = d_;                                                                                                \
        const type *a = a_;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const type x = a[i];                                                                                       \
            d[i] = (result)(value);                                                                                    \
        }                                                                                                              \
    }
#define LOOP2(name, type, result, value)                                                                               \
    static void name(ARGS)                                                                                             \
    {                                                                                                                  \
        (void)op, (void)c_, (void)b_;                                                                                  \
        result *d = d_;                                                                                                \
        const type *a = a_, *b = b_;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const type x = a[i], y = b[i];                                                                             \
            d[i] = (result)(value);                                                                                    \
        }                                                                                                              \
    }
#define LOOP3(name, type, value)                                                                                       \
    static void name(ARGS)                                                                                             \
    {                                                                                                                  \
        (void)op;                                                                                                      \
        type *d = d_;                                                                                                  \
        const type *a = a_, *b = b_, *c = c_;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const type x = a[i], y = b[i], z = c[i];                                                                   \
            d[i] = (type)(value);                                                                                      \
        }                                                                                                              \
    }
#define COPY(name, from, to) LOOP1(name, from, to, x)

/* Integers that a register has wrapped to their own type, where that is narrower. */
static void wrap(sinter_dtype type, void *d_, int64_t n)
{
    int32_t *d = d_;
    int64_t *wide = d_;
    switch (type) {
    case SINTER_DTYPE_I8:
        for (int64_t i = 0; i < n; i++) d[i] = (int8_t)d[i];
        break;
    case SINTER_DTYPE_U8:
        for (int64_t i = 0; i < n; i++) d[i] = (uint8_t)d[i];
        break;
    case SINTER_DTYPE_I16:
        for (int64_t i = 0; i < n; i++) d[i] = (int16_t)d[i];
        break;
    case SINTER_DTYPE_U16:
        for (int64_t i = 0; i < n; i++) d[i] = (uint16_t)d[i];
        break;
    case SINTER_DTYPE_U32:
        for (int64_t i = 0; i < n; i++) wide[i] = (uint32_t)wide[i];
        break;
    default: break;
    }
}
/* `name`, whose results may not be of the type. */
#define WRAPPED(name)                                                                                                  \
    static void name##_wrapped(ARGS)                                                                                   \
    {                                                                                                                  \
        name(op, d_, a_, b_, c_, n);                                                                                   \
        wrap((sinter_dtype)op->to, d_, n);                                                                             \
    }

#define SHIFT(name, type, value)                                                                                       \
    static void name(ARGS)                                                                                             \
    {                                                                                                                  \
        (void)c_;                                                                                                      \
        type *d = d_;                                                                                                  \
        const type *a = a_, *b = b_, bits = (type)sinter_dtype_bits((sinter_dtype)op->from);                           \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const type x = a[i], y = b[i];                                                                             \
            d[i] = (type)(value);                                                                                      \
        }                                                                                                              \
    }

/* Sums wrap, so they are formed without sign. All but sums, differences, products, bits and shifts to the left are
 * those of signed numbers, which narrow numbers without sign are, too. */
#define INTEGER(t, type, wide)                                                                                         \
    LOOP1(neg_##t, type, type, 0 - (wide)x)                                                                            \
    LOOP1(abs_##t, type, type, x < 0 ? 0 - (wide)x : (wide)x)                                                          \
    LOOP1(sign_##t, type, type, (x > 0) - (x < 0))                                                                     \
    LOOP1(relu_##t, type, type, x > 0 ? x : 0)                                                                         \
    LOOP1(bit_not_##t, type, type, ~(wide)x)                                                                           \
    LOOP2(add_##t, type, type, (wide)x + (wide)y)                                                                      \
    LOOP2(sub_##t, type, type, (wide)x - (wide)y)                                                                      \
    LOOP2(mul_##t, type, type, (wide)x *(wide)y)                                                                       \
    LOOP2(min_##t, type, type, x < y ? x : y)                                                                          \
    LOOP2(max_##t, type, type, x > y ? x : y)                                                                          \
    LOOP2(and_##t, type, type, x &y)                                                                                   \
    LOOP2(or_##t, type, type, x | y)                                                                                   \
    LOOP2(xor_##t, type, type, x ^ y)                                                                                  \
    SHIFT(left_##t, type, y < 0 || y >= bits ? 0 : (wide)x << y)                                                       \
    SHIFT(right_##t, type, y < 0 || y >= bits ? (x < 0 ? -1 : 0) : x >> y)                                             \
    LOOP3(clip_##t, type, x > y ? (x < z ? x : z) : y < z ? y : z)                                                     \
    WRAPPED(neg_##t)                                                                                                   \
    WRAPPED(abs_##t)                                                                                                   \
    WRAPPED(bit_not_##t)                                                                                               \
    WRAPPED(add_##t)                                                                                                   \
    WRAPPED(sub_##t)                                                                                                   \
    WRAPPED(mul_##t)                                                                                                   \
    WRAPPED(left_##t)
#define COMPARE(t, type)                                                                                               \
    LOOP2(eq_##t, type, int32_t, x == y)                                                                               \
    LOOP2(lt_##t, type, int32_t, x < y)                                                                                \
    LOOP2(le_##t, type, int32_t, x <= y)                                                                               \
    LOOP2(gt_##t, type, int32_t, x > y)                                                                                \
    LOOP2(ge_##t, type, int32_t, x >= y)
INTEGER(i32, int32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)
COMPARE(i32, int32_t)
COMPARE(i64, int64_t)
COMPARE(f64, double)

/* What is not the same of numbers without sign. */
LOOP1(sign_u64, uint64_t, uint64_t, x != 0)
LOOP2(min_u64, uint64_t, uint64_t, x < y ? x : y)
LOOP2(max_u64, uint64_t, uint64_t, x > y ? x : y)
LOOP3(clip_u64, uint64_t, x > y ? (x < z ? x : z) : y < z ? y : z)
SHIFT(right_u64, uint64_t, y >= bits ? 0 : x >> y)
LOOP2(lt_u64, uint64_t, int32_t, x < y)
LOOP2(le_u64, uint64_t, int32_t, x <= y)
LOOP2(gt_u64, uint64_t, int32_t, x > y)
LOOP2(ge_u64, uint64_t, int32_t, x >= y)
LOOP2(div_u64, uint64_t, uint64_t, !((x | y) >> 32) ? (y ? (uint32_t)x / (uint32_t)y : 0) : y ? x / y : 0)
LOOP2(mod_u64, uint64_t, uint64_t, !((x | y) >> 32) ? (y ? (uint32_t)x % (uint32_t)y : 0) : y ? x % y : 0)

/* A NaN wins. */
static inline double lesser(double x, double y)
{
    return x != x ? x : y != y || y < x ? y : x;
}
static inline double greater(double x, double y)
{
    return x != x ? x : y != y || y > x ? y : x;
}
LOOP1(neg_f64, double, double, -x)
LOOP1(abs_f64, double, double, fabs(x))
LOOP1(sign_f64, double, double, x != x ? x : (double)((x > 0) - (x < 0)))
LOOP1(ceil_f64, double, double, ceil(x))
LOOP1(floor_f64, double, double, floor(x))
LOOP1(round_f64, double, double, nearbyint(x))
LOOP1(sqrt_f64, double, double, sqrt(x))
LOOP1(rsqrt_f64, double, double, 1 / sqrt(x))
LOOP1(reciprocal_f64, double, double, 1 / x)
LOOP1(relu_f64, double, double, greater(x, 0))
LOOP1(exp_f64, double, double, exp(x))
LOOP1(log_f64, double, double, log(x))
LOOP1(tanh_f64, double, double, tanh(x))
LOOP2(add_f64, double, double, x + y)
LOOP2(sub_f64, double, double, x - y)
LOOP2(mul_f64, double, double, x *y)
LOOP2(div_f64, double, double, x / y)
LOOP2(min_f64, double, double, lesser(x, y))
LOOP2(max_f64, double, double, greater(x, y))
LOOP2(fmod_f64, double, double, fmod(x, y))
LOOP3(clip_f64, double, lesser(greater(x, y), z))
#define SPECIAL(t, type, most)                                                                                         \
    LOOP1(is_nan_##t, type, int32_t, x != x)                                                                           \
    LOOP1(is_inf_##t, type, int32_t, (x > most) | (x < -most))                                                         \
    LOOP1(is_inf_pos_##t, type, int32_t, x > most)                                                                     \
    LOOP1(is_inf_neg_##t, type, int32_t, x < -most)
LOOP2(fmod_f32, float, float, fmodf(x, y))
SPECIAL(f32, float, FLT_MAX)
SPECIAL(f64, double, DBL_MAX)

/* Cut towards zero; of 0: 0. Numbers that fit in 32 bits divide several times as fast. */
static inline int64_t quotient(int64_t x, int64_t y)
{
    if (!(((uint64_t)x | (uint64_t)y) >> 32)) return y ? (uint32_t)x / (uint32_t)y : 0;
    return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
/* What is left of the division; `mod` takes the sign of the divisor. */
static inline int64_t rest_of(int64_t x, int64_t y)
{
    if (!(((uint64_t)x | (uint64_t)y) >> 32)) return y ? (uint32_t)x % (uint32_t)y : 0;
    return y == 0 || y == -1 ? 0 : x % y;
}
static inline int64_t mod_of(int64_t x, int64_t y)
{
    const int64_t r = rest_of(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
LOOP2(div_i32, int32_t, int32_t, quotient(x, y))
WRAPPED(div_i32)
LOOP2(div_each, int64_t, int64_t, quotient(x, y))
LOOP2(mod_i32, int32_t, int32_t, mod_of(x, y))
LOOP2(mod_each, int64_t, int64_t, mod_of(x, y))
LOOP2(fmod_i32, int32_t, int32_t, rest_of(x, y))
LOOP2(fmod_each, int64_t, int64_t, rest_of(x, y))

/* Division by one number for all, |y| >= 2, by a product: with 2^(bits - 1) < |y| <= 2^bits and
 * factor = floor(2^(63 + bits) / |y|) + 1, |x| * factor / 2^(63 + bits) is off by less than 1 / |y| for |x| <= 2^63
 * (Granlund and Montgomery). */
__extension__ typedef unsigned __int128 wide;
typedef struct divisor {
    uint64_t factor, y;
    int shift; /* bits - 1 */
    bool is_negative;
} divisor;

static divisor divisor_of(int64_t y)
{
    divisor d = { .y = y < 0 ? 0 - (uint64_t)y : (uint64_t)y, .is_negative = y < 0 };
    while (d.shift < 62 && (uint64_t)2 << d.shift < d.y) d.shift++;
    d.factor = (uint64_t)(((wide)1 << (64 + d.shift)) / d.y) + 1;
    return d;
}

static inline uint64_t size_of(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}
static inline uint64_t quotient_by(uint64_t x, divisor d)
{
    return (uint64_t)((wide)x * d.factor >> 64) >> d.shift;
}
static inline int64_t signed_of(uint64_t x, bool is_negative)
{
    return (int64_t)(is_negative ? 0 - x : x);
}
static inline int64_t rest_by(int64_t x, divisor d)
{
    const uint64_t size = size_of(x);
    return signed_of(size - quotient_by(size, d) * d.y, x < 0);
}

/* The rest with the sign of the divisor. */
static inline int64_t mod_by(int64_t x, divisor d)
{
    const int64_t r = rest_by(x, d), is_other = ((r < 0) != d.is_negative) & (r != 0);
    return r + (signed_of(d.y, d.is_negative) & -is_other);
}

/* Whether all n divisors are one that has a factor. */
static bool is_one_divisor(const int64_t *y, int64_t n)
{
    int64_t others = 0;
    for (int64_t i = 1; i < n; i++) others |= y[i] ^ y[0];
    return n > 8 && !others && (y[0] < -1 || y[0] > 1);
}

/* x / y in the loop `each`, or by one divisor d. */
#define DIVISION(name, each, value)                                                                                    \
    void name(ARGS)                                                                                                    \
    {                                                                                                                  \
        int64_t *to = d_;                                                                                              \
        const int64_t *a = a_, *b = b_;                                                                                \
        if (!is_one_divisor(b, n)) {                                                                                   \
            each(op, d_, a_, b_, c_, n);                                                                               \
            return;                                                                                                    \
        }                                                                                                              \
        const divisor d = divisor_of(b[0]);                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const int64_t x = a[i];                                                                                    \
            to[i] = value;                                                                                             \
        }                                                                                                              \
    }
DIVISION(vm_div_i64, div_each, signed_of(quotient_by(size_of(x), d), (x < 0) != d.is_negative))
DIVISION(vm_fmod_i64, fmod_each, rest_by(x, d))
DIVISION(vm_mod_i64, mod_each, mod_by(x, d))

LOOP1(not_i32, int32_t, int32_t, !x)
LOOP1(bool_i32, int32_t, int32_t, x != 0)
LOOP1(bool_i64, int64_t, int32_t, ((uint32_t)x | (uint32_t)((uint64_t)x >> 32)) != 0) /* no comparison of 64 bits */
LOOP1(bool_f64, double, int32_t, x != 0)
COPY(copy_i32, int32_t, int32_t)
COPY(copy_64, int64_t, int64_t)
COPY(i32_to_i64, int32_t, int64_t)
COPY(i64_to_f32, int64_t, float)
COPY(f32_to_f64, float, double)
COPY(f64_to_f32, double, float)
COPY(i64_to_i32, int64_t, int32_t)
COPY(i32_to_f64, int32_t, double)
COPY(i64_to_f64, int64_t, double)
COPY(u64_to_f32, uint64_t, float)
COPY(u64_to_f64, uint64_t, double)
WRAPPED(copy_i32)
WRAPPED(copy_64)
WRAPPED(i32_to_i64)
WRAPPED(i64_to_i32)

/* A float as an integer: cut towards zero, kept within the type; a NaN is 0. `least` and `most` are floats whose
 * integers the type has; `above` is the integer of everything beyond `most`. */
#define CUT(name, from, to, least, most, above)                                                                        \
    static void name(ARGS)                                                                                             \
    {                                                                                                                  \
        (void)op, (void)b_, (void)c_;                                                                                  \
        const from *a = a_;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const from x = a[i], low = x > (least) ? x : (least), kept = low < (most) ? low : (most);                  \
            const to v = x > (most) ? (above) : (to)kept;                                                              \
            ((to *)d_)[i] = x == x ? v : 0;                                                                            \
        }                                                                                                              \
    }
CUT(f32_to_i64, float, int64_t, -9223372036854775808.0f, 9223371487098961920.0f, INT64_MAX)
CUT(f64_to_i64, double, int64_t, -9223372036854775808.0, 9223372036854774784.0, INT64_MAX)
CUT(f64_to_i32, double, int32_t, -2147483648.0, 2147483647.0, INT32_MAX)

void vm_float_to_i64(ARGS)
{
    f32_to_i64(op, d_, a_, b_, c_, n);
}

LOOP1(f32_to_u64, float, uint64_t, !(x > 0) ? 0 : x >= 18446744073709551616.0f ? UINT64_MAX : (uint64_t)x)
LOOP1(f64_to_u64, double, uint64_t, !(x > 0) ? 0 : x >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)x)
LOOP1(f32_to_u32, float, int64_t, !(x > 0) ? 0 : x >= 4294967296.0f ? UINT32_MAX : (int64_t)x)
LOOP1(f64_to_u32, double, int64_t, !(x > 0) ? 0 : x >= 4294967296.0 ? UINT32_MAX : (int64_t)x)

/* x as f16 has it: as narrow_round, of f64. Half a unit above the largest number is infinity. */
static inline float half_of(double x)
{
    const uint64_t lowest = (uint64_t)(1023 - 14) << 52;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t own = bits & (uint64_t)0x7ff << 52, exponent = own < lowest ? lowest : own;
    const uint64_t sum_bits = (exponent + ((uint64_t)(52 - 10) << 52)) | (uint64_t)1 << 51;
    double sum;
    memcpy(&sum, &sum_bits, sizeof sum);
    const double r = fabs(x) < 65520 ? (x + sum) - sum : x + copysign(INFINITY, x);
    return copysignf((float)r, (float)x);
}
LOOP1(i32_to_f16, int32_t, float, half_of((double)x))
LOOP1(i64_to_f16, int64_t, float, half_of((double)x))
LOOP1(u64_to_f16, uint64_t, float, half_of((double)x))
LOOP1(f64_to_f16, double, float, half_of(x))

/* Floats as integers of at most 16 bits. */
#define CUT_SHORT(name, from)                                                                                          \
    static void name(ARGS)                                                                                             \
    {                                                                                                                  \
        (void)b_, (void)c_;                                                                                            \
        const from *a = a_;                                                                                            \
        int64_t min, max;                                                                                              \
        dtype_int_range((sinter_dtype)op->to, &min, &max);                                                             \
        const from least = (from)min, most = (from)max;                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const from x = a[i], low = x > least ? x : least, kept = low < most ? low : most;                          \
            ((int32_t *)d_)[i] = x == x ? (int32_t)kept : 0;                                                           \
        }                                                                                                              \
    }
CUT_SHORT(f32_to_short, float)
CUT_SHORT(f64_to_short, double)

#define WHERE(name, type)                                                                                              \
    static void name(ARGS)                                                                                             \
    {                                                                                                                  \
        (void)op;                                                                                                      \
        const type *b = b_, *c = c_;                                                                                   \
        for (int64_t i = 0; i < n; i++) ((type *)d_)[i] = ((const int32_t *)a_)[i] ? b[i] : c[i];                      \
    }
WHERE(where_i32, int32_t)
WHERE(where_64, int64_t)

static vm_fn *of_f32(const vm_op *op)
{
    switch (op->op) {
    case OP_fmod: return op->to == SINTER_DTYPE_F32 ? fmod_f32 : general;
    case OP_is_nan: return is_nan_f32;
    case OP_is_inf: return is_inf_f32;
    case OP_is_inf_pos: return is_inf_pos_f32;
    case OP_is_inf_neg: return is_inf_neg_f32;
    default: return general;
    }
}

static vm_fn *of_i32(const vm_op *op)
{
    switch (op->op) {
    case OP_neg: return neg_i32_wrapped;
    case OP_abs: return abs_i32_wrapped;
    case OP_sign: return sign_i32;
    case OP_relu: return relu_i32;
    case OP_bit_not: return bit_not_i32_wrapped;
    case OP_add: return add_i32_wrapped;
    case OP_sub: return sub_i32_wrapped;
    case OP_mul: return mul_i32_wrapped;
    case OP_div: return div_i32_wrapped;
    case OP_mod: return mod_i32;
    case OP_fmod: return fmod_i32;
    case OP_min: return min_i32;
    case OP_max: return max_i32;
    case OP_clip: return clip_i32;
    case OP_eq: return eq_i32;
    case OP_lt: return lt_i32;
    case OP_le: return le_i32;
    case OP_gt: return gt_i32;
    case OP_ge: return ge_i32;
    case OP_and:
    case OP_bit_and: return and_i32;
    case OP_or:
    case OP_bit_or: return or_i32;
    case OP_xor:
    case OP_bit_xor: return xor_i32;
    case OP_shift_left: return left_i32_wrapped;
    case OP_shift_right: return right_i32;
    case OP_not: return not_i32;
    case OP_where: return where_i32;
    case OP_identity: return copy_i32;
    default: return general;
    }
}

static vm_fn *of_i64(const vm_op *op)
{
    const bool is_signed = op->from != SINTER_DTYPE_U64; /* u32 is, in 64 bits */
    switch (op->op) {
    case OP_neg: return neg_i64_wrapped;
    case OP_abs: return is_signed ? abs_i64_wrapped : copy_64;
    case OP_sign: return is_signed ? sign_i64 : sign_u64;
    case OP_relu: return is_signed ? relu_i64 : copy_64;
    case OP_bit_not: return bit_not_i64_wrapped;
    case OP_add: return add_i64_wrapped;
    case OP_sub: return sub_i64_wrapped;
    case OP_mul: return mul_i64_wrapped;
    case OP_div: return is_signed ? vm_div_i64 : div_u64;
    case OP_mod: return is_signed ? vm_mod_i64 : mod_u64;
    case OP_fmod: return is_signed ? vm_fmod_i64 : mod_u64;
    case OP_min: return is_signed ? min_i64 : min_u64;
    case OP_max: return is_signed ? max_i64 : max_u64;
    case OP_clip: return is_signed ? clip_i64 : clip_u64;
    case OP_eq: return eq_i64;
    case OP_lt: return is_signed ? lt_i64 : lt_u64;
    case OP_le: return is_signed ? le_i64 : le_u64;
    case OP_gt: return is_signed ? gt_i64 : gt_u64;
    case OP_ge: return is_signed ? ge_i64 : ge_u64;
    case OP_bit_and: return and_i64;
    case OP_bit_or: return or_i64;
    case OP_bit_xor: return xor_i64;
    case OP_shift_left: return left_i64_wrapped;
    case OP_shift_right: return is_signed ? right_i64 : right_u64;
    case OP_where: return where_64;
    case OP_identity: return copy_64;
    default: return general;
    }
}

static vm_fn *of_f64(const vm_op *op)
{
    switch (op->op) {
    case OP_neg: return neg_f64;
    case OP_abs: return abs_f64;
    case OP_sign: return sign_f64;
    case OP_ceil: return ceil_f64;
    case OP_floor: return floor_f64;
    case OP_round: return round_f64;
    case OP_sqrt: return sqrt_f64;
    case OP_rsqrt: return rsqrt_f64;
    case OP_reciprocal: return reciprocal_f64;
    case OP_relu: return relu_f64;
    case OP_exp: return exp_f64;
    case OP_log: return log_f64;
    case OP_tanh: return tanh_f64;
    case OP_add: return add_f64;
    case OP_sub: return sub_f64;
    case OP_mul: return mul_f64;
    case OP_div: return div_f64;
    case OP_min: return min_f64;
    case OP_max: return max_f64;
    case OP_fmod: return fmod_f64;
    case OP_clip: return clip_f64;
    case OP_is_nan: return is_nan_f64;
    case OP_is_inf: return is_inf_f64;
    case OP_is_inf_pos: return is_inf_pos_f64;
    case OP_is_inf_neg: return is_inf_neg_f64;
    case OP_eq: return eq_f64;
    case OP_lt: return lt_f64;
    case OP_le: return le_f64;
    case OP_gt: return gt_f64;
    case OP_ge: return ge_f64;
    case OP_where: return where_64;
    case OP_identity: return copy_64;
    default: return general;
    }
}

static vm_fn *of_cast(const vm_op *op)
{
    const vm_class from = vm_class_of((sinter_dtype)op->from);
    const bool is_u64 = op->from == SINTER_DTYPE_U64;
    switch (op->to) {
    case SINTER_DTYPE_BOOL:
        return from == VM_I32 ? bool_i32 : from == VM_I64 ? bool_i64 : from == VM_F64 ? bool_f64 : general;
    case SINTER_DTYPE_F16:
        return from == VM_I32   ? i32_to_f16
               : is_u64         ? u64_to_f16
               : from == VM_I64 ? i64_to_f16
               : from == VM_F64 ? f64_to_f16
                                : general;
    case SINTER_DTYPE_I8:
    case SINTER_DTYPE_U8:
    case SINTER_DTYPE_I16:
    case SINTER_DTYPE_U16:
        return from == VM_I32   ? copy_i32_wrapped
               : from == VM_I64 ? i64_to_i32_wrapped
               : from == VM_F32 ? f32_to_short
                                : f64_to_short;
    case SINTER_DTYPE_I32:
        return from == VM_I32 ? copy_i32 : from == VM_I64 ? i64_to_i32 : from == VM_F64 ? f64_to_i32 : general;
    case SINTER_DTYPE_I64:
        return from == VM_I32 ? i32_to_i64 : from == VM_I64 ? copy_64 : from == VM_F32 ? f32_to_i64 : f64_to_i64;
    case SINTER_DTYPE_F32:
        return from == VM_F64 ? f64_to_f32 : is_u64 ? u64_to_f32 : from == VM_I64 ? i64_to_f32 : general;
    case SINTER_DTYPE_U32:
        return from == VM_I32   ? i32_to_i64_wrapped
               : from == VM_I64 ? copy_64_wrapped
               : from == VM_F32 ? f32_to_u32
                                : f64_to_u32;
    case SINTER_DTYPE_U64:
        return from == VM_I32 ? i32_to_i64 : from == VM_I64 ? copy_64 : from == VM_F32 ? f32_to_u64 : f64_to_u64;
    case SINTER_DTYPE_F64:
        return from == VM_F64   ? copy_64
               : from == VM_F32 ? f32_to_f64
               : from == VM_I32 ? i32_to_f64
               : is_u64         ? u64_to_f64
                                : i64_to_f64;
    default: return from == VM_F32 && is_f8((sinter_dtype)op->to) ? cast_f8 : general;
    }
}

vm_fn *vm_basic_of(const vm_op *op)
{
    if (op->op == OP_quantize || op->op == OP_dequantize) return of_codes(op);
    if (op->op == OP_cast || op->op == OP_cast_wrap) return of_cast(op);
    switch (vm_class_of((sinter_dtype)op->from)) {
    case VM_F64: return of_f64(op);
    case VM_I32: return of_i32(op);
    case VM_I64: return of_i64(op);
    default: return of_f32(op);
    }
}

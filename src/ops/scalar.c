/* SPDX-License-Identifier: Apache-2.0 */
/* scalar.c - the meaning of every scalar function: the reference of everything elementwise.
 *
 * Floats are computed in double whatever their type, integers in 64 bits and then wrapped to theirs. Casts and
 * quantisation round to the type that they name; all other results are rounded when they are stored. */
#include "ops/ops.h"

#include <math.h>

static const scalar_info info_at[OP_SCALAR_COUNT] = {
#define S(op_name, op_arity, op_types, op_result, traits)                                                              \
    [OP_##op_name] = { .name = #op_name, .arity = (op_arity), .types = #op_types, .result = #op_result },
#include "ops/scalar.def"
#undef S
};

const scalar_info *scalar_at(op_id op)
{
    return &info_at[op];
}

scalar scalar_load(sinter_dtype dtype, const void *base, int64_t index)
{
    if (dtype_is_float(dtype)) return (scalar){ .f = dtype_load_f64(dtype, base, index) };
    return (scalar){ .i = dtype_load_i64(dtype, base, index) };
}

void scalar_store(sinter_dtype dtype, void *base, int64_t index, scalar value)
{
    /* Saturation belongs to the cast; here an infinity that a type can hold is kept. */
    if (dtype_is_float(dtype)) dtype_store_f8(dtype, base, index, value.f, false);
    else dtype_store_i64(dtype, base, index, value.i);
}

/* Wraps to an integer type or bool. */
static scalar wrapped(sinter_dtype to, int64_t value)
{
    int64_t cell = 0;
    dtype_store_i64(to, &cell, 0, value);
    return (scalar){ .i = dtype_load_i64(to, &cell, 0) };
}

static scalar real(double value)
{
    return (scalar){ .f = value };
}

static scalar truth(bool value)
{
    return (scalar){ .i = value };
}

static scalar cast(sinter_dtype from, sinter_dtype to, scalar x, bool saturate)
{
    int64_t cell = 0;
    if (dtype_is_float(to)) {
        const double whole = from == SINTER_DTYPE_U64 ? (double)(uint64_t)x.i : (double)x.i;
        if (dtype_is_float(from)) dtype_store_f8(to, &cell, 0, x.f, saturate);
        else if (from == SINTER_DTYPE_U64 && to == SINTER_DTYPE_F32) return real((double)(float)(uint64_t)x.i);
        else if (from == SINTER_DTYPE_U64 || sinter_dtype_bits(to) == 8) dtype_store_f8(to, &cell, 0, whole, saturate);
        else dtype_store_i64(to, &cell, 0, x.i); /* one rounding, of all 64 bits */
        return real(dtype_load_f64(to, &cell, 0));
    }
    if (!dtype_is_float(from)) return wrapped(to, x.i);
    dtype_store_f64(to, &cell, 0, x.f);
    return (scalar){ .i = dtype_load_i64(to, &cell, 0) };
}

/* ---- floats ---- */

static double sigmoid(double x)
{
    if (x >= 0) return 1 / (1 + exp(-x));
    const double e = exp(x);
    return e / (1 + e);
}

static double softplus(double x)
{
    return isnan(x) ? x : (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double lesser(double a, double b)
{
    if (isnan(a)) return a;
    return isnan(b) || b < a ? b : a;
}

static double greater(double a, double b)
{
    if (isnan(a)) return a;
    return isnan(b) || b > a ? b : a;
}

static double floored_mod(double a, double b)
{
    const double r = fmod(a, b);
    if (r == 0) return copysign(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static double eval_f64(op_id op, double x, double y, double z)
{
    switch (op) {
    case OP_neg: return -x;
    case OP_abs: return fabs(x);
    case OP_sign: return isnan(x) ? x : (double)((x > 0) - (x < 0));
    case OP_ceil: return ceil(x);
    case OP_floor: return floor(x);
    case OP_round: return nearbyint(x);
    case OP_sqrt: return sqrt(x);
    case OP_rsqrt: return 1 / sqrt(x);
    case OP_reciprocal: return 1 / x;
    case OP_exp: return exp(x);
    case OP_log: return log(x);
    case OP_sin: return sin(x);
    case OP_cos: return cos(x);
    case OP_tan: return tan(x);
    case OP_asin: return asin(x);
    case OP_acos: return acos(x);
    case OP_atan: return atan(x);
    case OP_sinh: return sinh(x);
    case OP_cosh: return cosh(x);
    case OP_tanh: return tanh(x);
    case OP_asinh: return asinh(x);
    case OP_acosh: return acosh(x);
    case OP_atanh: return atanh(x);
    case OP_erf: return erf(x);
    case OP_sigmoid: return sigmoid(x);
    case OP_relu: return greater(x, 0);
    case OP_softplus: return softplus(x);
    case OP_softsign: return x / (1 + fabs(x));
    case OP_hardswish: return x * greater(0, lesser(1, x / 6 + 0.5));
    case OP_mish: return x * tanh(softplus(x));
    case OP_silu: return x * sigmoid(x);
    case OP_gelu: return 0.5 * x * erfc(-x * 0.70710678118654752440);
    case OP_gelu_tanh: return x * sigmoid(1.59576912160573071176 * (x + 0.044715 * x * x * x)); /* (1 + tanh(u)) / 2 */
    case OP_add: return x + y;
    case OP_sub: return x - y;
    case OP_mul: return x * y;
    case OP_div: return x / y;
    case OP_pow: return pow(x, y);
    case OP_mod: return floored_mod(x, y);
    case OP_fmod: return fmod(x, y);
    case OP_min: return lesser(x, y);
    case OP_max: return greater(x, y);
    case OP_prelu: return x < 0 ? y * x : x;
    case OP_elu: return x < 0 ? y * expm1(x) : x;
    case OP_celu: return isnan(x) ? x : greater(0, x) + lesser(0, y * expm1(x / y));
    case OP_thresholded_relu: return x > y ? x : 0;
    case OP_clip: return lesser(greater(x, y), z);
    case OP_selu: return z * (x <= 0 ? y * expm1(x) : x);
    case OP_hard_sigmoid: return greater(0, lesser(1, y * x + z));
    case OP_shrink: return x < -z ? x + y : x > z ? x - y : 0;
    default: return NAN; /* not a function of floats: types are checked before */
    }
}

static bool compare(op_id op, bool is_equal, bool is_less, bool is_greater)
{
    switch (op) {
    case OP_eq: return is_equal;
    case OP_lt: return is_less;
    case OP_le: return is_less || is_equal;
    case OP_gt: return is_greater;
    default: return is_greater || is_equal;
    }
}

/* ---- integers: x, y and z hold values of the type; u64 in its bits ---- */

static int64_t int_div(int64_t x, int64_t y, bool is_u64)
{
    if (y == 0) return 0;
    if (is_u64) return (int64_t)((uint64_t)x / (uint64_t)y);
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static int64_t int_rem(int64_t x, int64_t y, bool is_u64)
{
    if (y == 0) return 0;
    if (is_u64) return (int64_t)((uint64_t)x % (uint64_t)y);
    return y == -1 ? 0 : x % y;
}

static int64_t int_mod(int64_t x, int64_t y, bool is_u64)
{
    const int64_t r = int_rem(x, y, is_u64);
    return !is_u64 && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* Exact modulo 2^64. A negative power of anything but 1 and -1 truncates to 0. */
static int64_t int_pow(int64_t x, int64_t y, bool is_u64)
{
    if (y < 0 && !is_u64) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    uint64_t power = 1, base = (uint64_t)x;
    for (uint64_t n = (uint64_t)y; n; n >>= 1) {
        if (n & 1u) power *= base;
        base *= base;
    }
    return (int64_t)power;
}

static int64_t int_shift(op_id op, sinter_dtype dtype, int64_t x, int64_t y)
{
    const bool is_out = y < 0 || y >= (int64_t)sinter_dtype_bits(dtype);
    if (op == OP_shift_left) return is_out ? 0 : (int64_t)((uint64_t)x << y);
    if (dtype_is_signed(dtype)) return is_out ? (x < 0 ? -1 : 0) : x >> y;
    return is_out ? 0 : (int64_t)((uint64_t)x >> y);
}

static bool int_less(int64_t x, int64_t y, bool is_u64)
{
    return is_u64 ? (uint64_t)x < (uint64_t)y : x < y;
}

static int64_t int_min(int64_t x, int64_t y, bool is_u64)
{
    return int_less(y, x, is_u64) ? y : x;
}

static int64_t int_max(int64_t x, int64_t y, bool is_u64)
{
    return int_less(x, y, is_u64) ? y : x;
}

static int64_t eval_i64(op_id op, sinter_dtype dtype, int64_t x, int64_t y, int64_t z)
{
    const bool is_u64 = dtype == SINTER_DTYPE_U64;
    const uint64_t a = (uint64_t)x, b = (uint64_t)y;
    switch (op) {
    case OP_neg: return (int64_t)(0 - a);
    case OP_abs: return !is_u64 && x < 0 ? (int64_t)(0 - a) : x;
    case OP_sign: return is_u64 ? x != 0 : (x > 0) - (x < 0);
    case OP_relu: return is_u64 || x > 0 ? x : 0;
    case OP_bit_not: return (int64_t)~a;
    case OP_add: return (int64_t)(a + b);
    case OP_sub: return (int64_t)(a - b);
    case OP_mul: return (int64_t)(a * b);
    case OP_div: return int_div(x, y, is_u64);
    case OP_pow: return int_pow(x, y, is_u64);
    case OP_mod: return int_mod(x, y, is_u64);
    case OP_fmod: return int_rem(x, y, is_u64);
    case OP_min: return int_min(x, y, is_u64);
    case OP_max: return int_max(x, y, is_u64);
    case OP_bit_and: return (int64_t)(a & b);
    case OP_bit_or: return (int64_t)(a | b);
    case OP_bit_xor: return (int64_t)(a ^ b);
    case OP_shift_left:
    case OP_shift_right: return int_shift(op, dtype, x, y);
    case OP_prelu: return !is_u64 && x < 0 ? (int64_t)(a * b) : x;
    case OP_clip: return int_min(int_max(x, y, is_u64), z, is_u64);
    case OP_shrink:
        if (!is_u64 && z != INT64_MIN && x < -z) return (int64_t)(a + b);
        return int_less(z, x, is_u64) ? (int64_t)(a - b) : 0;
    default: return 0; /* not a function of integers: types are checked before */
    }
}

static scalar lowest(sinter_dtype dtype)
{
    int64_t min, max;
    dtype_int_range(dtype, &min, &max);
    return (scalar){ .i = min };
}

/* ---- quantisation: scales are floats, zero points have the type of the quantised side ---- */

static scalar quantize(sinter_dtype from, sinter_dtype to, const scalar *arg)
{
    const double x = dtype_is_float(from)       ? arg[0].f
                     : from == SINTER_DTYPE_U64 ? (double)(uint64_t)arg[0].i
                                                : (double)arg[0].i;
    /* The quotient has x's precision, at least that of f32: what a tie is depends on it. */
    const double q = from == SINTER_DTYPE_F64 ? x / arg[1].f : (double)(float)(x / arg[1].f);
    if (dtype_is_float(to)) return cast(SINTER_DTYPE_F64, to, real(q + arg[2].f), true);
    if (isnan(q)) return lowest(to);
    const double zero = to == SINTER_DTYPE_U64 ? (double)(uint64_t)arg[2].i : (double)arg[2].i;
    return cast(SINTER_DTYPE_F64, to, real(nearbyint(q) + zero), true);
}

static scalar dequantize(sinter_dtype from, sinter_dtype to, const scalar *arg)
{
    double q;
    if (dtype_is_float(from)) q = arg[0].f - arg[2].f;
    else if (from == SINTER_DTYPE_U64) q = (double)(uint64_t)arg[0].i - (double)(uint64_t)arg[2].i;
    else q = (double)arg[0].i - (double)arg[2].i;
    /* The product has the precision of f32, too, before it is rounded to fewer bits. */
    const double product = q * arg[1].f;
    return cast(SINTER_DTYPE_F64, to, real(to == SINTER_DTYPE_F64 ? product : (double)(float)product), true);
}

scalar scalar_eval(op_id op, sinter_dtype from, sinter_dtype to, const scalar *arg)
{
    const uint32_t arity = info_at[op].arity;
    const bool is_float = dtype_is_float(from), is_u64 = from == SINTER_DTYPE_U64;
    const scalar none = { .i = 0 }; /* also 0.0 */
    const scalar x = arg[0], y = arity > 1 ? arg[1] : none, z = arity > 2 ? arg[2] : none;
    switch (op) {
    case OP_identity: return x;
    case OP_cast: return cast(from, to, x, true);
    case OP_cast_wrap: return cast(from, to, x, false);
    case OP_where: return x.i ? y : z;
    case OP_quantize: return quantize(from, to, arg);
    case OP_dequantize: return dequantize(from, to, arg);
    case OP_not: return truth(!x.i);
    case OP_and: return truth(x.i && y.i);
    case OP_or: return truth(x.i || y.i);
    case OP_xor: return truth(!x.i != !y.i);
    case OP_is_nan: return truth(isnan(x.f));
    case OP_is_inf: return truth(isinf(x.f));
    case OP_is_inf_pos: return truth(isinf(x.f) && x.f > 0);
    case OP_is_inf_neg: return truth(isinf(x.f) && x.f < 0);
    case OP_eq:
    case OP_lt:
    case OP_le:
    case OP_gt:
    case OP_ge:
        if (is_float) return truth(compare(op, x.f == y.f, x.f<y.f, x.f> y.f));
        return truth(compare(op, x.i == y.i, int_less(x.i, y.i, is_u64), int_less(y.i, x.i, is_u64)));
    default: break;
    }
    if (is_float) return real(eval_f64(op, x.f, y.f, z.f));
    return wrapped(to, eval_i64(op, from, x.i, y.i, z.i));
}

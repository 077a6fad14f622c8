/* SPDX-License-Identifier: Apache-2.0 */
/* emit.cuh - the vocabulary of generated text (cuda/cuda_emit.c): rows of elements as raw words, casts, scalar functions.
 *
 * A value is carried as float (f16, bf16, f32), double, i32 (bool and integers up to i32), u32, i64 or u64, the integers
 * wrapped to their type. Elements travel as 32-bit words, so that 16 bytes are one instruction whatever their type is.
 * Meaning of each function: ops/scalar.c. */
#ifndef EMIT_CUH
#define EMIT_CUH

#include "prelude.cuh"

/* ---- elements of S bytes in words ---- */

#define EMIT_WORDS(S, V) (((S) * (V) + 3) / 4)

template <int S, int N> DEVICE void emit_read(u32 (&w)[N], int k, const u8 *p)
{
    if constexpr (S == 1) w[k / 4] |= (u32)*p << 8 * (k & 3);
    else if constexpr (S == 2) w[k / 2] |= (u32)*(const u16 *)p << 16 * (k & 1);
    else if constexpr (S == 4) w[k] = *(const u32 *)p;
    else {
        const u32x2 t = *(const u32x2 *)p;
        w[2 * k] = t.x;
        w[2 * k + 1] = t.y;
    }
}
template <int S, int N> DEVICE void emit_write(const u32 (&w)[N], int k, u8 *p)
{
    if constexpr (S == 1) *p = (u8)(w[k / 4] >> 8 * (k & 3));
    else if constexpr (S == 2) *(u16 *)p = (u16)(w[k / 2] >> 16 * (k & 1));
    else if constexpr (S == 4) *(u32 *)p = w[k];
    else *(u32x2 *)p = u32x2{ w[2 * k], w[2 * k + 1] };
}

/* n of V elements, `step` bytes apart; M adjacent ones may be read at once. */
template <int S, int V, int M, int N> DEVICE void emit_load(u32 (&w)[N], const u8 *p, i64 step, i32 n)
{
    constexpr int B = (M < V ? M : V) * S;
    if constexpr (B >= 4 && M > 1) {
        if (n >= V) {
#pragma unroll
            for (int k = 0; k < S * V / B; k++) {
                if constexpr (B == 16) {
                    const u32x4 t = *(const u32x4 *)(p + 16 * k);
                    w[4 * k] = t.x, w[4 * k + 1] = t.y, w[4 * k + 2] = t.z, w[4 * k + 3] = t.w;
                } else if constexpr (B == 8) {
                    const u32x2 t = *(const u32x2 *)(p + 8 * k);
                    w[2 * k] = t.x, w[2 * k + 1] = t.y;
                } else {
                    w[k] = *(const u32 *)(p + 4 * k);
                }
            }
            return;
        }
    }
#pragma unroll
    for (int k = 0; k < N; k++) w[k] = 0;
#pragma unroll
    for (int k = 0; k < V; k++)
        if (k < n) emit_read<S>(w, k, p + k * step);
}
template <int S, int V, int M, int N> DEVICE void emit_store(const u32 (&w)[N], u8 *p, i64 step, i32 n)
{
    constexpr int B = (M < V ? M : V) * S;
    if constexpr (B >= 4 && M > 1) {
        if (n >= V) {
#pragma unroll
            for (int k = 0; k < S * V / B; k++) {
                if constexpr (B == 16) *(u32x4 *)(p + 16 * k) = u32x4{ w[4 * k], w[4 * k + 1], w[4 * k + 2], w[4 * k + 3] };
                else if constexpr (B == 8) *(u32x2 *)(p + 8 * k) = u32x2{ w[2 * k], w[2 * k + 1] };
                else *(u32 *)(p + 4 * k) = w[k];
            }
            return;
        }
    }
#pragma unroll
    for (int k = 0; k < V; k++)
        if (k < n) emit_write<S>(w, k, p + k * step);
}

/* ---- floats of 8 bits: M bits of mantissa; TOP is the largest finite code, INF that of infinity (0: none); FNUZ: no minus
 * zero, whose code is NaN ---- */

template <int M, int BIAS, int INF, bool FNUZ> DEVICE float emit_f8_decode(u32 code)
{
    const u32 size = code & 0x7f, sign = (code & 0x80) << 24;
    const i32 exponent = (i32)(size >> M), mantissa = (i32)(size & ((1 << M) - 1));
    if (FNUZ && code == 0x80) return float_of_bits(0x7fc00000);
    if (INF && size == INF) return float_of_bits(sign | 0x7f800000);
    if (!FNUZ && size > (INF ? (u32)INF : 0x7eu)) return float_of_bits(0x7fc00000);
    const float units = (float)(exponent ? mantissa | 1 << M : mantissa);
    const float value = units * float_of_bits((u32)((exponent ? exponent : 1) - BIAS - M + 127) << 23);
    return sign ? -value : value;
}
template <int M, int BIAS, u32 TOP, int INF, bool FNUZ> DEVICE u32 emit_f8_encode(float x, bool saturates)
{
    const u32 sign = bits_of_float(x) >> 24 & 0x80, over = INF ? sign | INF : FNUZ ? 0x80 : sign | 0x7f;
    if (x != x) return FNUZ ? 0x80 : sign | 0x7f;
    const float size = fabsf(x);
    i32 exponent = (i32)(bits_of_float(size) >> 23) - 127;
    if (exponent == 128) return saturates ? sign | TOP : over;
    if (exponent < 1 - BIAS) exponent = 1 - BIAS;
    if (exponent > 32) return saturates ? sign | TOP : over;
    const u32 units = (u32)rintf(size * float_of_bits((u32)(M - exponent + 127) << 23));
    const u32 code = ((u32)(exponent - 1 + BIAS) << M) + units;
    if (code > TOP) return saturates ? sign | TOP : over;
    return code == 0 && FNUZ ? 0 : sign | code;
}
#define EMIT_F8(name, M, BIAS, TOP, INF, FNUZ)                                                                      \
    DEVICE float emit_f8_##name(u32 code) { return emit_f8_decode<M, BIAS, INF, FNUZ>(code & 0xff); }               \
    DEVICE u32 emit_f8_of_##name(float x, bool saturates) { return emit_f8_encode<M, BIAS, TOP, INF, FNUZ>(x, saturates); }
EMIT_F8(f8e4m3fn, 3, 7, 0x7e, 0, false)
EMIT_F8(f8e4m3fnuz, 3, 8, 0x7f, 0, true)
EMIT_F8(f8e5m2, 2, 15, 0x7b, 0x7c, false)
EMIT_F8(f8e5m2fnuz, 2, 16, 0x7f, 0, true)

/* ---- words to values ---- */

#define EMIT_GET(name, carrier, expression)                                          \
    template <int N> DEVICE carrier emit_get_##name(const u32 (&w)[N], int k) { return expression; }
EMIT_GET(f32, float, float_of_bits(w[k]))
EMIT_GET(f16, float, to_float(f16{ (u16)(w[k / 2] >> 16 * (k & 1)) }))
EMIT_GET(bf16, float, float_of_bits(k & 1 ? w[k / 2] & 0xffff0000u : w[k / 2] << 16))
EMIT_GET(f64, double, double_of_bits((u64)w[2 * k + 1] << 32 | w[2 * k]))
EMIT_GET(f8e4m3fn, float, emit_f8_f8e4m3fn(w[k / 4] >> 8 * (k & 3)))
EMIT_GET(f8e4m3fnuz, float, emit_f8_f8e4m3fnuz(w[k / 4] >> 8 * (k & 3)))
EMIT_GET(f8e5m2, float, emit_f8_f8e5m2(w[k / 4] >> 8 * (k & 3)))
EMIT_GET(f8e5m2fnuz, float, emit_f8_f8e5m2fnuz(w[k / 4] >> 8 * (k & 3)))
EMIT_GET(i8, i32, (i8)(w[k / 4] >> 8 * (k & 3)))
EMIT_GET(u8, i32, (u8)(w[k / 4] >> 8 * (k & 3)))
EMIT_GET(bool, i32, (u8)(w[k / 4] >> 8 * (k & 3)) != 0)
EMIT_GET(i16, i32, (i16)(w[k / 2] >> 16 * (k & 1)))
EMIT_GET(u16, i32, (u16)(w[k / 2] >> 16 * (k & 1)))
EMIT_GET(i32, i32, (i32)w[k])
EMIT_GET(u32, u32, w[k])
EMIT_GET(i64, i64, (i64)((u64)w[2 * k + 1] << 32 | w[2 * k]))
EMIT_GET(u64, u64, (u64)w[2 * k + 1] << 32 | w[2 * k])

/* ---- values to words ---- */

#define EMIT_PACK(name, carrier, size, body)                                                      \
    template <int V> DEVICE void emit_pack_##name(u32 (&w)[EMIT_WORDS(size, V)], const carrier (&y)[V]) \
    {                                                                                             \
        _Pragma("unroll") for (int k = 0; k < V; k++) body                                        \
    }
#define EMIT_PACK_BYTE(x) { if (k % 4 == 0) w[k / 4] = 0; w[k / 4] |= (u32)(u8)(x) << 8 * (k & 3); }
#define EMIT_PACK_HALF(x) { if (k % 2 == 0) w[k / 2] = 0; w[k / 2] |= (u32)(u16)(x) << 16 * (k & 1); }
#define EMIT_PACK_WIDE(x) { const u64 t = x; w[2 * k] = (u32)t; w[2 * k + 1] = (u32)(t >> 32); }
EMIT_PACK(f32, float, 4, w[k] = bits_of_float(y[k]);)
EMIT_PACK(f16, float, 2, { if (V == 1) w[0] = to_f16(y[0]).bits; else if (k % 2 == 0) w[k / 2] = pack_f16(y[k], y[k + 1 < V ? k + 1 : 0]); })
EMIT_PACK(bf16, float, 2, { if (V == 1) w[0] = to_bf16(y[0]).bits; else if (k % 2 == 0) w[k / 2] = pack_bf16(y[k], y[k + 1 < V ? k + 1 : 0]); })
EMIT_PACK(f64, double, 8, EMIT_PACK_WIDE(bits_of_double(y[k])))
EMIT_PACK(f8e4m3fn, float, 1, EMIT_PACK_BYTE(emit_f8_of_f8e4m3fn(y[k], false)))
EMIT_PACK(f8e4m3fnuz, float, 1, EMIT_PACK_BYTE(emit_f8_of_f8e4m3fnuz(y[k], false)))
EMIT_PACK(f8e5m2, float, 1, EMIT_PACK_BYTE(emit_f8_of_f8e5m2(y[k], false)))
EMIT_PACK(f8e5m2fnuz, float, 1, EMIT_PACK_BYTE(emit_f8_of_f8e5m2fnuz(y[k], false)))
EMIT_PACK(i8, i32, 1, EMIT_PACK_BYTE(y[k]))
EMIT_PACK(u8, i32, 1, EMIT_PACK_BYTE(y[k]))
EMIT_PACK(bool, i32, 1, EMIT_PACK_BYTE(y[k] != 0))
EMIT_PACK(i16, i32, 2, EMIT_PACK_HALF(y[k]))
EMIT_PACK(u16, i32, 2, EMIT_PACK_HALF(y[k]))
EMIT_PACK(i32, i32, 4, w[k] = (u32)y[k];)
EMIT_PACK(u32, u32, 4, w[k] = y[k];)
EMIT_PACK(i64, i64, 8, EMIT_PACK_WIDE((u64)y[k]))
EMIT_PACK(u64, u64, 8, EMIT_PACK_WIDE(y[k]))

/* ---- casts: floats with one rounding; to integers towards zero, saturating, NaN is 0; integers wrap ---- */

/* A double as a float from which another rounding gives what one rounding of the double gives: rounded to odd. */
DEVICE float emit_odd(double x)
{
    const float y = (float)x;
    const u32 b = bits_of_float(y);
    if (y != y || (double)y == x || b & 1) return y;
    return float_of_bits(fabs((double)y) > fabs(x) ? b - 1 : b + 1);
}
/* lo and hi: from here on the least and the most are the result. */
#define EMIT_TRUNCATE(to, lo, hi, least, most)                                       \
    DEVICE to emit_cast_##to(float x) { return x != x ? 0 : x <= lo##f ? least : x >= hi##f ? most : (to)x; } \
    DEVICE to emit_cast_##to(double x) { return x != x ? 0 : x <= lo ? least : x >= hi ? most : (to)x; }
#define EMIT_TRUNCATE_SMALL(to, least, most)                                         \
    template <class T> DEVICE i32 emit_cast_##to(T x) { return x != x ? 0 : x <= (T)(least) ? least : x >= (T)(most) ? most : (i32)x; } \
    DEVICE i32 emit_cast_##to(i32 x) { return (to)x; }                               \
    DEVICE i32 emit_cast_##to(u32 x) { return (to)x; }                               \
    DEVICE i32 emit_cast_##to(i64 x) { return (to)x; }                               \
    DEVICE i32 emit_cast_##to(u64 x) { return (to)x; }
#define EMIT_WRAP(to)                                                                \
    DEVICE to emit_cast_##to(i32 x) { return (to)x; }                                \
    DEVICE to emit_cast_##to(u32 x) { return (to)x; }                                \
    DEVICE to emit_cast_##to(i64 x) { return (to)x; }                                \
    DEVICE to emit_cast_##to(u64 x) { return (to)x; }
/* What quantisation rounded: saturated, and NaN is the least. */
#define EMIT_QUANTIZED(to, carrier, least)                                           \
    template <class T> DEVICE carrier emit_quantized_##to(T x) { return x != x ? least : emit_cast_##to(x); }
#define EMIT_QUANTIZED_SMALL(to, least, most)                                        \
    template <class T> DEVICE i32 emit_quantized_##to(T x) { return !(x > (T)(least)) ? least : x >= (T)(most) ? most : (i32)x; }
EMIT_QUANTIZED_SMALL(i8, -128, 127)
EMIT_QUANTIZED_SMALL(u8, 0, 255)
EMIT_QUANTIZED_SMALL(i16, -32768, 32767)
EMIT_QUANTIZED_SMALL(u16, 0, 65535)
EMIT_TRUNCATE_SMALL(i8, -128, 127)
EMIT_TRUNCATE_SMALL(u8, 0, 255)
EMIT_TRUNCATE_SMALL(i16, -32768, 32767)
EMIT_TRUNCATE_SMALL(u16, 0, 65535)
EMIT_TRUNCATE(i32, -2147483648.0, 2147483648.0, (i32)0x80000000, 0x7fffffff)
EMIT_TRUNCATE(u32, 0.0, 4294967296.0, 0u, 0xffffffffu)
EMIT_TRUNCATE(i64, -9223372036854775808.0, 9223372036854775808.0, (i64)0x8000000000000000ull, 0x7fffffffffffffffll)
EMIT_TRUNCATE(u64, 0.0, 18446744073709551616.0, 0ull, 0xffffffffffffffffull)
EMIT_QUANTIZED(i32, i32, (i32)0x80000000)
EMIT_QUANTIZED(u32, u32, 0u)
EMIT_QUANTIZED(i64, i64, (i64)0x8000000000000000ull)
EMIT_QUANTIZED(u64, u64, 0ull)
EMIT_WRAP(i32)
EMIT_WRAP(u32)
EMIT_WRAP(i64)
EMIT_WRAP(u64)
template <class T> DEVICE i32 emit_cast_bool(T x) { return x != 0; }
template <class T> DEVICE float emit_cast_f32(T x) { return (float)x; }
/* x / d by r, 1 / d rounded: with one correction the quotient is rounded as a division's (Brisebarre, Muller and Raina,
 * "Accelerating Correctly Rounded Floating-Point Division when the Divisor Is Known in Advance", 2004), where d is far
 * from the ends of f32 and the quotient is above 2^-60. Below, it is near it; from 1e9 on, it is near it or infinite:
 * enough for what is rounded to an integer of 16 bits. */
DEVICE float emit_quotient(float x, float d, float r)
{
    const float q = x * r;
    return fabsf(q) < 1e9f ? fmaf(fmaf(q, -d, x), r, q) : q;
}
/* x / d rounded to an integer, halves to even, behind a large number, as emit_quotient rounds it (cuda/emit_codes.h). lo
 * and hi: what the least and the most code stand for. */
DEVICE float emit_code(float x, float lo, float hi, float d, float r, float large)
{
    const float c = fminf(fmaxf(x, lo), hi), q = c * r;
    return fmaf(fmaf(q, -d, c), r, q) + large; /* of -q the compiler would make another product */
}
/* 2^23 and the byte; of i8, and 128. */
template <int N> DEVICE float emit_code_u8(const u32 (&w)[N], int k)
{
    return float_of_bits(permute_bytes(w[k / 4], 0x4b000000u, 0x7440u + (u32)(k & 3)));
}
template <int N> DEVICE float emit_code_i8(const u32 (&w)[N], int k)
{
    return float_of_bits(permute_bytes(w[k / 4] ^ 0x80808080u, 0x4b000000u, 0x7440u + (u32)(k & 3)));
}
template <int V> DEVICE void emit_pack_code(u32 (&w)[EMIT_WORDS(1, V)], const float (&y)[V])
{
#pragma unroll
    for (int k = 0; k < V; k += 4) {
        u32 low = bits_of_float(y[k]), high = 0;
        if constexpr (V > 1) low = permute_bytes(low, bits_of_float(y[k + 1]), 0x0040u);
        if constexpr (V > 2) high = permute_bytes(bits_of_float(y[k + 2]), bits_of_float(y[k + 3]), 0x0040u);
        w[k / 4] = V > 2 ? permute_bytes(low, high, 0x5410u) : low;
    }
}
template <class T> DEVICE double emit_cast_f64(T x) { return (double)x; }
template <class T> DEVICE float emit_cast_f16(T x) { return to_float(to_f16((float)x)); }
DEVICE float emit_cast_f16(double x) { return to_float(to_f16(emit_odd(x))); }
template <class T> DEVICE float emit_cast_bf16(T x) { return to_float(to_bf16(emit_odd((double)x))); }
DEVICE float emit_cast_bf16(float x) { return to_float(to_bf16(x)); }
#define EMIT_CAST_F8(name)                                                                                          \
    DEVICE float emit_cast_##name(float x) { return emit_f8_##name(emit_f8_of_##name(x, true)); }                   \
    template <class T> DEVICE float emit_cast_##name(T x) { return emit_cast_##name(emit_odd((double)x)); }         \
    DEVICE float emit_wrap_##name(float x) { return emit_f8_##name(emit_f8_of_##name(x, false)); }                  \
    template <class T> DEVICE float emit_wrap_##name(T x) { return emit_wrap_##name(emit_odd((double)x)); }
EMIT_CAST_F8(f8e4m3fn)
EMIT_CAST_F8(f8e4m3fnuz)
EMIT_CAST_F8(f8e5m2)
EMIT_CAST_F8(f8e5m2fnuz)

/* ---- functions of floats: F is float or double; the builtins are those of C ---- */

#define EMIT_FLOAT1(name, f, d)                                                      \
    DEVICE float op_##name(float x) { return f; }                                    \
    DEVICE double op_##name(double x) { return d; }
EMIT_FLOAT1(abs, fabsf(x), fabs(x))
EMIT_FLOAT1(ceil, ceilf(x), ceil(x))
EMIT_FLOAT1(floor, floorf(x), floor(x))
EMIT_FLOAT1(round, rintf(x), rint(x))
EMIT_FLOAT1(sqrt, sqrtf(x), sqrt(x))
EMIT_FLOAT1(rsqrt, 1 / sqrtf(x), 1 / sqrt(x))
EMIT_FLOAT1(reciprocal, 1 / x, 1 / x)
EMIT_FLOAT1(exp, expf(x), exp(x))
EMIT_FLOAT1(log, logf(x), log(x))
EMIT_FLOAT1(sin, sinf(x), sin(x))
EMIT_FLOAT1(cos, cosf(x), cos(x))
EMIT_FLOAT1(tan, tanf(x), tan(x))
EMIT_FLOAT1(asin, asinf(x), asin(x))
EMIT_FLOAT1(acos, acosf(x), acos(x))
EMIT_FLOAT1(atan, atanf(x), atan(x))
EMIT_FLOAT1(sinh, sinhf(x), sinh(x))
EMIT_FLOAT1(cosh, coshf(x), cosh(x))
EMIT_FLOAT1(tanh, tanhf(x), tanh(x))
EMIT_FLOAT1(asinh, asinhf(x), asinh(x))
EMIT_FLOAT1(acosh, acoshf(x), acosh(x))
EMIT_FLOAT1(atanh, atanhf(x), atanh(x))
EMIT_FLOAT1(erf, erff(x), erf(x))
EMIT_FLOAT1(erfc, erfcf(x), erfc(x))
EMIT_FLOAT1(expm1, expm1f(x), expm1(x))
EMIT_FLOAT1(log1p, log1pf(x), log1p(x))
DEVICE float op_pow(float x, float y) { return powf(x, y); }
DEVICE double op_pow(double x, double y) { return pow(x, y); }
DEVICE float op_fmod(float x, float y) { return fmodf(x, y); }
DEVICE double op_fmod(double x, double y) { return fmod(x, y); }
template <class F> DEVICE F op_sigmoid(F x)
{
    const F e = op_exp(-op_abs(x)), r = 1 / (1 + e);
    return x < 0 ? e * r : r;
}
template <class F> DEVICE F op_silu(F x) { return x * op_sigmoid(x); }
template <class F> DEVICE F op_softplus(F x) { return x != x ? x : (x > 0 ? x : (F)0) + op_log1p(op_exp(-op_abs(x))); }
template <class F> DEVICE F op_softsign(F x) { return x / (1 + op_abs(x)); }
template <class F> DEVICE F op_mish(F x) { return x * op_tanh(op_softplus(x)); }
template <class F> DEVICE F op_gelu(F x) { return (F)0.5 * x * op_erfc(x * (F)-0.70710678118654752440); }
/* erfc(z) exp(z * z) as a polynomial in t = 1 / (1 + 0.3 z), to 3e-8: little over half of erfcf's instructions. What the
 * exponent loses in rounding counts where it is large, so it is put back. From 15 on the tail is nothing. */
DEVICE float op_gelu(float x)
{
    const float y = fminf(fabsf(x), 15.0f), t = reciprocal_normal(fmaf(0.212132034f, y, 1.0f));
    float c = -0.130875313f;
    c = fmaf(c, t, 0.492426395f);
    c = fmaf(c, t, -0.527127987f);
    c = fmaf(c, t, 0.565572838f);
    c = fmaf(c, t, -0.107663993f);
    c = fmaf(c, t, 0.220801936f);
    c = fmaf(c, t, 0.146737549f);
    c = fmaf(c, t, 0.170955771f);
    c = fmaf(c, t, 0.169172781f);
    const float s = y * y, high = s * -0.721347511f;
    const float low = fmaf(s, -9.62981495e-09f, fmaf(fmaf(y, y, -s), -0.721347511f, fmaf(s, -0.721347511f, -high)));
    const float e = exp2_fast(high), q = 0.5f * c * t * fmaf(e, low * 0.693147181f, e);
    return x > 0 ? x * (1 - q) : x * q;
}
/* (1 + tanh u) / 2 is the sigmoid of 2 u. */
template <class F> DEVICE F op_gelu_tanh(F x)
{
    return x * op_sigmoid((F)1.59576912160573071176 * (x + (F)0.044715 * x * x * x));
}
template <class F> DEVICE F op_elu(F x, F y) { return x < 0 ? y * op_expm1(x) : x; }
template <class F> DEVICE F op_thresholded_relu(F x, F y) { return x > y ? x : (F)0; }
template <class F> DEVICE F op_selu(F x, F y, F z) { return z * (x <= 0 ? y * op_expm1(x) : x); }
template <class F> DEVICE i32 op_is_nan(F x) { return x != x; }
template <class F> DEVICE i32 op_is_inf_pos(F x) { return x > 0 && x - x != x - x && x == x; }
template <class F> DEVICE i32 op_is_inf_neg(F x) { return x < 0 && x - x != x - x && x == x; }
template <class F> DEVICE i32 op_is_inf(F x) { return x - x != x - x && x == x; }

/* Where the result is f16 or bf16: errors below a quarter of f16's last place. What is subnormal in f32 counts as 0, which
 * takes three instructions less for each exponential and reciprocal. */
DEVICE float op_exp_narrow(float x) { return exp2_fast(x * 1.44269504f); }
DEVICE float op_sigmoid_narrow(float x) { return reciprocal_normal(1 + exp2_flush(x * -1.44269504f)); }
DEVICE float op_silu_narrow(float x) { return x * op_sigmoid_narrow(x); }
DEVICE float op_gelu_tanh_narrow(float x)
{
    return x * op_sigmoid_narrow(1.59576912f * (x + 0.044715f * x * x * x));
}
/* erfc(z) exp(z * z) / 2, for z = |x| / sqrt(2), as a polynomial in 1 / (1 + z / 2), to 9e-5 of it. */
DEVICE float op_gelu_narrow(float x)
{
    const float t = reciprocal_normal(1 + 0.35355339f * fabsf(x));
    const float c = (((-0.0842668265f * t + 0.233101815f) * t + 0.0563632435f) * t + 0.154819593f) * t + 0.140025318f;
    const float q = c * t * exp2_flush(x * x * -0.72134752f);
    return x > 0 ? x * (1 - q) : x * q;
}
DEVICE float op_tanh_narrow(float x)
{
    const float s = x * x;
    const float small = x + x * s * (-0.33333333f + s * (0.13333333f - 0.05396825f * s));
    const float e = exp2_flush(fabsf(x) * -2.88539008f), large = (1 - e) * reciprocal_normal(1 + e);
    return s < 0.09f ? small : x < 0 ? -large : large;
}

/* ---- functions of any carrier ---- */

template <class T> DEVICE T op_min(T x, T y) { return x != x ? x : y != y || y < x ? y : x; }
template <class T> DEVICE T op_max(T x, T y) { return x != x ? x : y != y || y > x ? y : x; }
template <class T> DEVICE T op_clip(T x, T lo, T hi) { return op_min(op_max(x, lo), hi); }
template <class T> DEVICE T op_relu(T x) { return x < 0 ? (T)0 : x; }
template <class T> DEVICE T op_sign(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }
template <class F> DEVICE F op_hardswish(F x) { return x * op_max((F)0, op_min((F)1, x / 6 + (F)0.5)); }
template <class F> DEVICE F op_hard_sigmoid(F x, F y, F z) { return op_max((F)0, op_min((F)1, y * x + z)); }
/* The error of the quotient would grow in the exponential. */
DEVICE double op_celu(double x, double y)
{
    return x != x ? x : op_max(0.0, x) + op_min(0.0, y * expm1(x / y));
}
DEVICE float op_celu(float x, float y) { return (float)op_celu((double)x, (double)y); }
DEVICE float op_neg(float x) { return -x; }
DEVICE double op_neg(double x) { return -x; }
DEVICE float op_prelu(float x, float y) { return x < 0 ? y * x : x; }
DEVICE double op_prelu(double x, double y) { return x < 0 ? y * x : x; }
template <class F> DEVICE F emit_shrink(F x, F y, F z) { return x < -z ? x + y : x > z ? x - y : (F)0; }
DEVICE float op_shrink(float x, float y, float z) { return emit_shrink(x, y, z); }
DEVICE double op_shrink(double x, double y, double z) { return emit_shrink(x, y, z); }
template <class F> DEVICE F emit_mod(F x, F y)
{
    const F r = op_fmod(x, y);
    if (r == 0) return y < 0 || 1 / y < 0 ? (F)-0.0 : (F)0;
    return (r < 0) != (y < 0) ? r + y : r;
}
DEVICE float op_mod(float x, float y) { return emit_mod(x, y); }
DEVICE double op_mod(double x, double y) { return emit_mod(x, y); }
#define EMIT_ARITHMETIC(name, sign)                                                  \
    DEVICE float op_##name(float x, float y) { return x sign y; }                    \
    DEVICE double op_##name(double x, double y) { return x sign y; }                 \
    DEVICE i32 op_##name(i32 x, i32 y) { return (i32)((u32)x sign (u32)y); }         \
    DEVICE u32 op_##name(u32 x, u32 y) { return x sign y; }                          \
    DEVICE i64 op_##name(i64 x, i64 y) { return (i64)((u64)x sign (u64)y); }         \
    DEVICE u64 op_##name(u64 x, u64 y) { return x sign y; }
EMIT_ARITHMETIC(add, +)
EMIT_ARITHMETIC(sub, -)
EMIT_ARITHMETIC(mul, *)
DEVICE float op_div(float x, float y) { return x / y; }
DEVICE double op_div(double x, double y) { return x / y; }

/* ---- integers: S signed, U unsigned of the same size ---- */

#define EMIT_INTEGER(S, U)                                                                                  \
    DEVICE S op_neg(S x) { return (S)(0 - (U)x); }                                                          \
    DEVICE U op_neg(U x) { return 0 - x; }                                                                  \
    DEVICE S op_abs(S x) { return x < 0 ? op_neg(x) : x; }                                                  \
    DEVICE U op_abs(U x) { return x; }                                                                      \
    DEVICE S op_div(S x, S y) { return y == 0 ? 0 : y == -1 ? op_neg(x) : x / y; }                          \
    DEVICE U op_div(U x, U y) { return y == 0 ? 0 : x / y; }                                                \
    DEVICE S op_fmod(S x, S y) { return y == 0 || y == -1 ? 0 : x % y; }                                    \
    DEVICE U op_fmod(U x, U y) { return y == 0 ? 0 : x % y; }                                               \
    DEVICE S op_mod(S x, S y) { const S r = op_fmod(x, y); return r != 0 && (r < 0) != (y < 0) ? r + y : r; } \
    DEVICE U op_mod(U x, U y) { return op_fmod(x, y); }                                                     \
    DEVICE U op_pow(U x, U y) { U r = 1; for (; y; y >>= 1, x *= x) if (y & 1) r *= x; return r; }          \
    DEVICE S op_pow(S x, S y) { return y >= 0 ? (S)op_pow((U)x, (U)y) : x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0; } \
    DEVICE S op_prelu(S x, S y) { return x < 0 ? op_mul(x, y) : x; }                                        \
    DEVICE U op_prelu(U x, U y) { return x; }                                                               \
    DEVICE S op_shift_left(S x, S y, int bits) { return y < 0 || y >= bits ? 0 : (S)((U)x << y); }          \
    DEVICE U op_shift_left(U x, U y, int bits) { return y >= (U)bits ? 0 : x << y; }                        \
    DEVICE S op_shift_right(S x, S y, int bits) { return y < 0 || y >= bits ? (x < 0 ? -1 : 0) : x >> y; }  \
    DEVICE U op_shift_right(U x, U y, int bits) { return y >= (U)bits ? 0 : x >> y; }
EMIT_INTEGER(i32, u32)
EMIT_INTEGER(i64, u64)
/* -z must not wrap. */
DEVICE i64 op_shrink(i64 x, i64 y, i64 z) { return z != (i64)0x8000000000000000ull && x < -z ? op_add(x, y) : z < x ? op_sub(x, y) : 0; }
DEVICE i32 op_shrink(i32 x, i32 y, i32 z) { return (i32)op_shrink((i64)x, (i64)y, (i64)z); }
DEVICE u32 op_shrink(u32 x, u32 y, u32 z) { return (u32)op_shrink((i64)x, (i64)y, (i64)z); }
DEVICE u64 op_shrink(u64 x, u64 y, u64 z) { return z < x ? x - y : 0; }

#endif

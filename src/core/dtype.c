/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c - reading and writing single elements of every type.
 *
 * All floats narrower than f32 go through one encoder and one decoder, driven by a row that describes the format: bits
 * of mantissa, bias, largest finite code, and what stands for infinity and NaN. Memory is read by memcpy because
 * constants may lie unaligned in a mapped model. */
#include "core/dtype.h"

#include <math.h>
#include <string.h>

/* Codes are without the sign bit, except nan of the fnuz formats, which is the whole byte (the code of minus zero). */
typedef struct small_float {
    int mantissa, bias, sign_bit;
    uint32_t max, inf, nan; /* inf 0: the format has none; nan 0: it has none, NaN becomes the largest value */
    bool is_unsigned_zero;  /* fnuz: no minus zero, and its code is NaN */
    bool is_power;          /* e8m0: an exponent alone, without a sign and without a zero */
} small_float;

static const small_float format_f16 = {
    .mantissa = 10, .bias = 15, .sign_bit = 15, .max = 0x7bff, .inf = 0x7c00, .nan = 0x7e00
};
static const small_float format_bf16 = {
    .mantissa = 7, .bias = 127, .sign_bit = 15, .max = 0x7f7f, .inf = 0x7f80, .nan = 0x7fc0
};
static const small_float format_e4m3fn = { .mantissa = 3, .bias = 7, .sign_bit = 7, .max = 0x7e, .nan = 0x7f };
static const small_float format_e4m3fnuz = {
    .mantissa = 3, .bias = 8, .sign_bit = 7, .max = 0x7f, .nan = 0x80, .is_unsigned_zero = true
};
static const small_float format_e5m2 = {
    .mantissa = 2, .bias = 15, .sign_bit = 7, .max = 0x7b, .inf = 0x7c, .nan = 0x7f
};
static const small_float format_e5m2fnuz = {
    .mantissa = 2, .bias = 16, .sign_bit = 7, .max = 0x7f, .nan = 0x80, .is_unsigned_zero = true
};
static const small_float format_e2m1 = { .mantissa = 1, .bias = 1, .sign_bit = 3, .max = 0x7 };

static const small_float format_e8m0 = { .bias = 127, .sign_bit = 8, .max = 0xfe, .nan = 0xff, .is_power = true };

static const small_float *format_of(sinter_dtype dtype)
{
    switch (dtype) {
    case SINTER_DTYPE_F16: return &format_f16;
    case SINTER_DTYPE_BF16: return &format_bf16;
    case SINTER_DTYPE_F8E4M3FN: return &format_e4m3fn;
    case SINTER_DTYPE_F8E4M3FNUZ: return &format_e4m3fnuz;
    case SINTER_DTYPE_F8E5M2: return &format_e5m2;
    case SINTER_DTYPE_F8E5M2FNUZ: return &format_e5m2fnuz;
    case SINTER_DTYPE_F4E2M1: return &format_e2m1;
    case SINTER_DTYPE_F8E8M0: return &format_e8m0;
    default: return NULL;
    }
}

/* The power of two that the magnitude is, or the next one above; what is below the least (zero, too) is the least. */
static uint32_t power_encode(const small_float *f, double value, bool saturate)
{
    int exponent = 0;
    if (isnan(value) || isinf(value)) return f->nan;
    const double part = frexp(fabs(value), &exponent); /* in [1/2, 1) */
    const int code = exponent + f->bias - (part == 0.5);
    if (part == 0 || code < 0) return 0;
    return code <= (int)f->max ? (uint32_t)code : saturate ? f->max : f->nan;
}

/* One rounding to nearest even: the magnitude is counted in units of the last place of its binade, and a carry out of
 * the mantissa lands in the exponent by itself. */
static inline uint32_t small_encode(const small_float *f, double value, bool saturate)
{
    if (f->is_power) return power_encode(f, value, saturate);
    const uint32_t sign = signbit(value) ? 1u << f->sign_bit : 0;
    if (isnan(value)) {
        if (f->nan == 0) return sign; /* nothing stands for it: a zero */
        return f->is_unsigned_zero ? f->nan : sign | f->nan;
    }
    const uint32_t over = f->inf ? sign | f->inf : f->is_unsigned_zero ? f->nan : sign | f->nan;
    const bool clamps = saturate || (f->inf == 0 && f->nan == 0);
    if (isinf(value)) return clamps ? sign | f->max : over;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int exponent_min = 1 - f->bias, exponent_own = (int)(bits >> 52 & 0x7ff) - 1023;
    const int exponent = exponent_own < exponent_min ? exponent_min : exponent_own;
    const uint64_t mantissa = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)(exponent_own > -1023) << 52;
    /* Below half of the least code all is zero, denormal doubles, too. */
    const int lost = 52 - f->mantissa + exponent - exponent_own, drop = lost < 54 ? lost : 54;
    const uint64_t units = (mantissa + ((uint64_t)1 << (drop - 1)) - 1 + (mantissa >> drop & 1)) >> drop;
    const int64_t code = ((int64_t)(exponent - exponent_min) << f->mantissa) + (int64_t)units;
    if (code > (int64_t)f->max) return clamps ? sign | f->max : over;
    return code == 0 && f->is_unsigned_zero ? 0 : sign | (uint32_t)code;
}

static double small_decode(const small_float *f, uint32_t code)
{
    if (f->is_power) return code == f->nan ? (double)NAN : ldexp(1, (int)code - f->bias);
    const uint32_t size = code & ((1u << f->sign_bit) - 1);
    const bool is_negative = code >> f->sign_bit & 1u;
    if (f->is_unsigned_zero && code == f->nan) return NAN;
    if (size > f->max) return f->inf && size == f->inf ? (is_negative ? -INFINITY : INFINITY) : NAN;
    const uint32_t exponent = size >> f->mantissa;
    const uint32_t mantissa = size & ((1u << f->mantissa) - 1);
    const double units = exponent ? (double)(mantissa | 1u << f->mantissa) : (double)mantissa;
    const double value = ldexp(units, (exponent ? (int)exponent : 1) - f->bias - f->mantissa);
    return is_negative ? -value : value;
}

bool dtype_is_valid(int dtype)
{
    return dtype > SINTER_DTYPE_NONE && dtype < SINTER_DTYPE_COUNT;
}

bool dtype_is_float(sinter_dtype dtype)
{
    return dtype == SINTER_DTYPE_F32 || dtype == SINTER_DTYPE_F64 || format_of(dtype) != NULL;
}

bool dtype_is_int(sinter_dtype dtype)
{
    return dtype_is_valid((int)dtype) && dtype != SINTER_DTYPE_BOOL && !dtype_is_float(dtype);
}

bool dtype_is_signed(sinter_dtype dtype)
{
    switch (dtype) {
    case SINTER_DTYPE_F8E8M0: return false;
    case SINTER_DTYPE_I2:
    case SINTER_DTYPE_I4:
    case SINTER_DTYPE_I8:
    case SINTER_DTYPE_I16:
    case SINTER_DTYPE_I32:
    case SINTER_DTYPE_I64: return true;
    default: return dtype_is_float(dtype);
    }
}

bool dtype_parse(const char *name, size_t length, sinter_dtype *out)
{
    for (int i = SINTER_DTYPE_NONE + 1; i < SINTER_DTYPE_COUNT; i++) {
        const char *own = sinter_dtype_name((sinter_dtype)i);
        if (strlen(own) == length && memcmp(own, name, length) == 0) {
            *out = (sinter_dtype)i;
            return true;
        }
    }
    return false;
}

void dtype_int_range(sinter_dtype dtype, int64_t *min, int64_t *max)
{
    const uint32_t bits = dtype == SINTER_DTYPE_BOOL ? 1 : sinter_dtype_bits(dtype);
    if (dtype_is_signed(dtype)) {
        *max = bits >= 64 ? INT64_MAX : (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
        *min = -*max - 1;
    } else {
        *max = bits >= 64 ? INT64_MAX : (int64_t)(((uint64_t)1 << bits) - 1);
        *min = 0;
    }
}

/* One case an element size: T is the C type in memory. memcpy of a fixed size compiles to one load or store. */
#define LOAD(T)                                                                                                        \
    T value;                                                                                                           \
    memcpy(&value, (const char *)base + index * (int64_t)sizeof(value), sizeof(value))
#define STORE(T, v)                                                                                                    \
    do {                                                                                                               \
        const T store_ = (T)(v);                                                                                       \
        memcpy((char *)base + index * (int64_t)sizeof(store_), &store_, sizeof(store_));                               \
    } while (0)

/* Elements of 2 or 4 bits, the first in the lowest bits of a byte. */
static uint32_t part_load(uint32_t bits, const void *base, int64_t index)
{
    const int64_t bit = index * bits;
    return ((const uint8_t *)base)[bit >> 3] >> (bit & 7) & ((1u << bits) - 1);
}

static void part_store(uint32_t bits, void *base, int64_t index, uint32_t value)
{
    const int64_t bit = index * bits;
    uint8_t *byte = (uint8_t *)base + (bit >> 3);
    const uint32_t mask = ((1u << bits) - 1) << (bit & 7);
    *byte = (uint8_t)((*byte & ~mask) | (value << (bit & 7) & mask));
}

/* Bits of an element of a small float type. */
static uint32_t code_load(sinter_dtype dtype, const void *base, int64_t index)
{
    switch (sinter_dtype_bits(dtype)) {
    case 16: {
        LOAD(uint16_t);
        return value;
    }
    case 8: return ((const uint8_t *)base)[index];
    default: return part_load(sinter_dtype_bits(dtype), base, index);
    }
}

static void code_store(sinter_dtype dtype, void *base, int64_t index, uint32_t code)
{
    switch (sinter_dtype_bits(dtype)) {
    case 16: STORE(uint16_t, code); break;
    case 8: ((uint8_t *)base)[index] = (uint8_t)code; break;
    default: part_store(sinter_dtype_bits(dtype), base, index, code); break;
    }
}

static int64_t i64_of_f64(double value)
{
    if (isnan(value)) return 0;
    if (value >= 9223372036854775808.0) return INT64_MAX;
    if (value <= -9223372036854775808.0) return INT64_MIN;
    return (int64_t)value;
}

static uint64_t u64_of_f64(double value)
{
    if (!(value > 0)) return 0;
    return value >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)value;
}

double dtype_load_f64(sinter_dtype dtype, const void *base, int64_t index)
{
    switch (dtype) {
    case SINTER_DTYPE_F32: {
        LOAD(float);
        return (double)value;
    }
    case SINTER_DTYPE_F64: {
        LOAD(double);
        return value;
    }
    case SINTER_DTYPE_F16: {
        LOAD(uint16_t);
        return (double)dtype_f16_to_f32(value);
    }
    case SINTER_DTYPE_BF16: {
        LOAD(uint16_t);
        return (double)dtype_bf16_to_f32(value);
    }
    case SINTER_DTYPE_U64: return (double)(uint64_t)dtype_load_i64(dtype, base, index);
    default: break;
    }
    const small_float *f = format_of(dtype);
    return f ? small_decode(f, code_load(dtype, base, index)) : (double)dtype_load_i64(dtype, base, index);
}

int64_t dtype_load_i64(sinter_dtype dtype, const void *base, int64_t index)
{
    switch (dtype) {
    case SINTER_DTYPE_I8: return ((const int8_t *)base)[index];
    case SINTER_DTYPE_U8: return ((const uint8_t *)base)[index];
    case SINTER_DTYPE_BOOL: return ((const uint8_t *)base)[index] != 0;
    case SINTER_DTYPE_I16: {
        LOAD(int16_t);
        return value;
    }
    case SINTER_DTYPE_U16: {
        LOAD(uint16_t);
        return value;
    }
    case SINTER_DTYPE_I32: {
        LOAD(int32_t);
        return value;
    }
    case SINTER_DTYPE_U32: {
        LOAD(uint32_t);
        return (int64_t)value;
    }
    case SINTER_DTYPE_I64:
    case SINTER_DTYPE_U64: {
        LOAD(int64_t);
        return value;
    }
    case SINTER_DTYPE_U4: return (int64_t)part_load(4, base, index);
    case SINTER_DTYPE_I4: return (int64_t)(part_load(4, base, index) ^ 8u) - 8;
    case SINTER_DTYPE_U2: return (int64_t)part_load(2, base, index);
    case SINTER_DTYPE_I2: return (int64_t)(part_load(2, base, index) ^ 2u) - 2;
    case SINTER_DTYPE_NONE: return 0;
    default: return i64_of_f64(dtype_load_f64(dtype, base, index));
    }
}

void dtype_store_f64(sinter_dtype dtype, void *base, int64_t index, double value)
{
    if (dtype == SINTER_DTYPE_F32) {
        STORE(float, value);
    } else if (dtype == SINTER_DTYPE_F64) {
        STORE(double, value);
    } else if (dtype == SINTER_DTYPE_BOOL) {
        ((uint8_t *)base)[index] = value != 0;
    } else if (dtype == SINTER_DTYPE_U64) {
        STORE(uint64_t, u64_of_f64(value));
    } else if (format_of(dtype)) {
        const bool is_wide = sinter_dtype_bits(dtype) == 16;
        code_store(dtype, base, index, small_encode(format_of(dtype), value, !is_wide));
    } else {
        int64_t min, max;
        dtype_int_range(dtype, &min, &max);
        const int64_t i = i64_of_f64(value);
        dtype_store_i64(dtype, base, index, i < min ? min : i > max ? max : i);
    }
}

void dtype_store_i64(sinter_dtype dtype, void *base, int64_t index, int64_t value)
{
    switch (dtype) {
    case SINTER_DTYPE_I8:
    case SINTER_DTYPE_U8: ((uint8_t *)base)[index] = (uint8_t)value; break;
    case SINTER_DTYPE_BOOL: ((uint8_t *)base)[index] = value != 0; break;
    case SINTER_DTYPE_I16:
    case SINTER_DTYPE_U16: STORE(uint16_t, value); break;
    case SINTER_DTYPE_I32:
    case SINTER_DTYPE_U32: STORE(uint32_t, value); break;
    case SINTER_DTYPE_I64:
    case SINTER_DTYPE_U64: STORE(int64_t, value); break;
    case SINTER_DTYPE_I4:
    case SINTER_DTYPE_U4:
    case SINTER_DTYPE_I2:
    case SINTER_DTYPE_U2: part_store(sinter_dtype_bits(dtype), base, index, (uint32_t)((uint64_t)value & 15u)); break;
    case SINTER_DTYPE_NONE: break;
    case SINTER_DTYPE_F32: STORE(float, value); break; /* not by way of double: that would round twice */
    default: dtype_store_f64(dtype, base, index, (double)value); break;
    }
}

void dtype_move(sinter_dtype dtype, void *to_base, int64_t to, const void *from_base, int64_t from)
{
    const uint32_t bits = sinter_dtype_bits(dtype);
    switch (bits) { /* a copy of a fixed size is one load and one store */
    case 64: memcpy((char *)to_base + to * 8, (const char *)from_base + from * 8, 8); break;
    case 32: memcpy((char *)to_base + to * 4, (const char *)from_base + from * 4, 4); break;
    case 16: memcpy((char *)to_base + to * 2, (const char *)from_base + from * 2, 2); break;
    case 8: ((char *)to_base)[to] = ((const char *)from_base)[from]; break;
    default: part_store(bits, to_base, to, part_load(bits, from_base, from)); break;
    }
}

void dtype_store_f8(sinter_dtype dtype, void *base, int64_t index, double value, bool saturate)
{
    const small_float *f = format_of(dtype);
    if (f && sinter_dtype_bits(dtype) <= 8) code_store(dtype, base, index, small_encode(f, value, saturate));
    else dtype_store_f64(dtype, base, index, value);
}

float dtype_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t size = h & 0x7fffu;
    if (size < 0x0400u) {
        const float value = (float)size * 0x1p-24f;
        return sign ? -value : value;
    }
    const uint32_t bits = sign | (size >= 0x7c00u ? 0x7f800000u | (size & 0x3ffu) << 13 : (size << 13) + (112u << 23));
    float out;
    memcpy(&out, &bits, sizeof(out));
    return out;
}

uint16_t dtype_f16_of_f64(double value)
{
    return (uint16_t)small_encode(&format_f16, value, false);
}

float dtype_bf16_to_f32(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float out;
    memcpy(&out, &bits, sizeof(out));
    return out;
}

uint16_t dtype_bf16_of_f64(double value)
{
    return (uint16_t)small_encode(&format_bf16, value, false);
}

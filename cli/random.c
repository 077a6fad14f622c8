/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - one number a draw, written as each type wants it.
 *
 * Values of the small floats are multiples of 1/16, 1/8 or 1/2, so that each type holds them exactly and no rounding
 * has to be spelled out here. */
#include "random.h"

#include "print.h"
#include <string.h>

/* k / 1024 for k in 0 … 1023 as f16: the exponent is where k's highest bit is. */
static uint16_t f16_of_1024th(uint32_t k)
{
    if (!k) return 0;
    uint32_t exponent = 0;
    while (k >> (exponent + 1)) exponent++;
    return (uint16_t)((exponent + 15 - 10) << 10 | (k << (10 - exponent) & 1023));
}

static uint16_t bf16_of(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

typedef struct bounds {
    int64_t min;
    uint64_t count;
} bounds;

/* The numbers to draw from. A range without an end is cut to ten numbers, a type may be too narrow for a range. */
static bounds bounds_of(uint32_t bits, int64_t min, int64_t max)
{
    enum { DIGITS = 10 };
    const int64_t most = bits >= 16 ? (INT64_C(1) << (bits < 40 ? bits - 1 : 40)) - 1 : bits == 8 ? 127 : 7;
    if (min < 0) min = max >= 0 ? 0 : max > INT64_MIN + DIGITS && min < max - DIGITS ? max - (DIGITS - 1) : min;
    if (min > most) min = most;
    if (max == INT64_MAX) max = min + (DIGITS - 1);
    if (max > most) max = most;
    return (bounds){ min, max > min ? (uint64_t)(max - min) + 1 : 1 };
}

void random_fill(const sinter_tensor *tensor, uint64_t seed, int64_t min, int64_t max)
{
    uint64_t state = seed;
    const uint32_t bits = sinter_dtype_bits(tensor->dtype);
    const size_t size = sinter_tensor_size(tensor);
    if (size == SIZE_MAX || !bits) return;
    uint8_t *data = tensor->data;
    const bounds of = bounds_of(bits, min, max);
    const size_t count = bits < 8 ? size : size / (bits / 8);
    for (size_t i = 0; i < count; i++) {
        const uint64_t x = cli_random(&state);
        const int64_t whole = of.min + (int64_t)((x >> 16) % of.count);
        switch (tensor->dtype) {
        case SINTER_DTYPE_F32: {
            const float value = (float)(x >> 40) * 0x1p-24f;
            memcpy(data + 4 * i, &value, 4);
            break;
        }
        case SINTER_DTYPE_F64: {
            const double value = (double)(x >> 11) * 0x1p-53;
            memcpy(data + 8 * i, &value, 8);
            break;
        }
        case SINTER_DTYPE_F16: {
            const uint16_t value = f16_of_1024th((uint32_t)(x >> 54));
            memcpy(data + 2 * i, &value, 2);
            break;
        }
        case SINTER_DTYPE_BF16: {
            const uint16_t value = bf16_of((float)(x >> 56) * 0x1p-8f);
            memcpy(data + 2 * i, &value, 2);
            break;
        }
        case SINTER_DTYPE_BOOL: data[i] = (uint8_t)(x >> 63); break;
        /* 0, 1/2, 1 and 3/2 in steps of the exponent's and the mantissa's highest bits. */
        case SINTER_DTYPE_F8E4M3FN: data[i] = (uint8_t)(0x30 + (x >> 60) % 8); break;
        case SINTER_DTYPE_F8E4M3FNUZ: data[i] = (uint8_t)(0x38 + (x >> 60) % 8); break;
        case SINTER_DTYPE_F8E5M2: data[i] = (uint8_t)(0x38 + (x >> 60) % 4); break;
        case SINTER_DTYPE_F8E5M2FNUZ: data[i] = (uint8_t)(0x3C + (x >> 60) % 4); break;
        case SINTER_DTYPE_I4:
        case SINTER_DTYPE_U4:
            data[i] = (uint8_t)((whole & 15) | (of.min + (int64_t)((x >> 8 & 255) % of.count)) << 4);
            break;
        case SINTER_DTYPE_I2:
        case SINTER_DTYPE_U2: data[i] = (uint8_t)(x >> 40 & 0x55); break; /* 0 and 1 */
        case SINTER_DTYPE_F8E8M0: data[i] = (uint8_t)(125 + (x >> 60) % 4); break;
        case SINTER_DTYPE_F4E2M1: data[i] = (uint8_t)((x >> 62) | ((x >> 32) & 3) << 4); break;
        default: /* little-endian integers of any width */
            for (uint32_t k = 0; k < bits / 8; k++) data[i * (bits / 8) + k] = (uint8_t)((uint64_t)whole >> 8 * k);
        }
    }
}

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

void random_fill(const sinter_tensor *tensor, uint64_t seed)
{
    uint64_t state = seed;
    const uint32_t bits = sinter_dtype_bits(tensor->dtype);
    const size_t size = sinter_tensor_size(tensor);
    if (size == SIZE_MAX || !bits) return;
    uint8_t *data = tensor->data;
    const size_t count = bits < 8 ? size : size / (bits / 8);
    for (size_t i = 0; i < count; i++) {
        const uint64_t x = cli_random(&state);
        const uint64_t digit = (x >> 32) % 10;
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
        case SINTER_DTYPE_U4: data[i] = (uint8_t)((x >> 61) | ((x >> 32) & 7) << 4); break;
        case SINTER_DTYPE_F4E2M1: data[i] = (uint8_t)((x >> 62) | ((x >> 32) & 3) << 4); break;
        default: {
            /* Little-endian integers of any width. */
            memset(data + i * (bits / 8), 0, bits / 8);
            data[i * (bits / 8)] = (uint8_t)digit;
        }
        }
    }
}

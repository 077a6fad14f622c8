/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - include/sinter/tensor.h: names and sizes of element types, bytes of a dense tensor. */
#include "sinter/tensor.h"

#include "base/env.h"

typedef struct dtype_row {
    const char *name;
    uint32_t bits;
} dtype_row;

static const dtype_row row_at[SINTER_DTYPE_COUNT] = {
#define SINTER_X(name, value, bits, text) [value] = { text, bits },
    SINTER_DTYPE_MAP(SINTER_X)
#undef SINTER_X
};

static const dtype_row *row_of(sinter_dtype dtype)
{
    return &row_at[(unsigned)dtype < SINTER_DTYPE_COUNT ? (unsigned)dtype : 0u];
}

const char *sinter_dtype_name(sinter_dtype dtype)
{
    return row_of(dtype)->name;
}

uint32_t sinter_dtype_bits(sinter_dtype dtype)
{
    return row_of(dtype)->bits;
}

size_t sinter_tensor_size(const sinter_tensor *tensor)
{
    if (tensor->rank > SINTER_RANK_MAX) return SIZE_MAX;
    size_t count = 1;
    bool is_empty = false;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->dim[i] < 0) return SIZE_MAX;
        if (tensor->dim[i] == 0) is_empty = true;
        count = size_mul(count, (size_t)tensor->dim[i]);
    }
    if (is_empty) return 0;
    const uint32_t bits = sinter_dtype_bits(tensor->dtype);
    if (bits >= 8) return size_mul(count, bits / 8);
    if (count == SIZE_MAX) return SIZE_MAX;
    const size_t per_byte = bits ? 8 / bits : 1;
    return bits ? count / per_byte + (count % per_byte != 0) : 0;
}

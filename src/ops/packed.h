/* SPDX-License-Identifier: Apache-2.0 */
/* packed.h - what the program of a packed weight says: (code - zero point) * scale, with one scale and zero point for
 * all, for each column, or for each column and block of terms. Kernels that read codes begin here. */
#ifndef OPS_PACKED_H
#define OPS_PACKED_H

#include "ops/problem.h"

/* A weight of k terms and n columns. Inputs are those of the problem; 0: none. */
typedef struct packed_form {
    int64_t k, n;
    int64_t block, blocks;              /* terms with one scale; k and 1 where nothing varies along the terms */
    sinter_dtype type, scale_type;      /* of codes: 4 or 8 bits; f32, f16 or bf16 */
    sinter_dtype product;               /* of the weight that the program makes */
    uint32_t bits;                      /* of a code */
    uint32_t scale, zero;               /* inputs; zero 0: `zero_point` for all */
    bool scale_varies, zero_varies;     /* from block to block */
    int32_t zero_point;
} packed_form;

/* NULL: `f` says what the problem's weight is made of; else why this is no such weight. */
const char *packed_form_of(const problem *p, packed_form *f);
/* The axis of input 1 that is summed over. */
uint32_t packed_axis(const problem *p);
/* Element `index` of codes of `bits` bits, 4 or 8. */
static inline uint32_t packed_code(const uint8_t *codes, uint32_t bits, int64_t index)
{
    return bits == 8 ? codes[index] : (uint32_t)codes[index / 2] >> (index % 2 * 4) & 15u;
}

#endif

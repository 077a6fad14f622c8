/* SPDX-License-Identifier: Apache-2.0 */
/* emit_codes.h - numbers of 8 bits that a program only quantises, dequantises and stores: carried as floats, so that no
 * element is converted to an integer and back.
 *
 * From 2^23 to 2^24 the floats are the integers, and the low byte of a float's bits is that of its integer. So the code
 * of x, for a scale and a zero point that are known, is 1.5 * 2^23 + z + x / scale, where the sum rounds to an integer,
 * halves to even. (z is the zero point, or the even number below it: an odd one would round halves the other way, so
 * that the one that is missing is added later.) A stored byte becomes 2^23 + byte by putting bytes together. */
#ifndef CUDA_EMIT_CODES_H
#define CUDA_EMIT_CODES_H

#include "cuda/cuda_emit.h"

/* By instruction of a program: it is a code, as a float. */
typedef struct emit_codes {
    bool is_code[EXPR_MAX];
} emit_codes;

/* stores: whether a result may be such a code. */
void emit_codes_find(const expr *x, bool stores, emit_codes *out);
void emit_code_quantize(const expr *x, const expr_instr *n, text *out);
/* Of an argument that is a code. */
void emit_code_dequantize(const expr *x, const expr_instr *n, text *out);
/* The float whose low byte is stored. */
void emit_code_store(const expr *x, const expr_instr *n, text *out);
/* The number that would be stored, as a float. */
void emit_code_value(const expr *x, const expr_instr *n, text *out);

/* Is a scale a constant by whose reciprocal emit_quotient and emit_code divide as exactly as a division? */
bool emit_has_reciprocal(const expr_instr *scale, float *reciprocal);
/* Integers of the type are exact in f32, and floats are f32 or less. */
bool emit_is_exact_in_f32(sinter_dtype dtype);

#endif

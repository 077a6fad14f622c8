/* SPDX-License-Identifier: Apache-2.0 */
/* requant.h - the usual end of a product of 8-bit integers, as one loop over sums that are still in the L1 cache.
 *
 *   t = f32(sum - less) * factor * scale + bias      scale and bias: one each, or one a column
 *   t = gelu or silu of t                            without factor, trip and residual, and y is quantised
 *   t = round trip of t                              where the model quantises before the residual
 *   t = t + (residual - zero) * step                 a residual of 8 bits
 *   y = t, clipped; in f32 or quantised to 8 bits, also with a scale and zero point a column: then without all others
 *
 * Epilogues of another form run as programs (vm.h). */
#ifndef CPU_REQUANT_H
#define CPU_REQUANT_H

#include "backend/kernel.h"
#include "cpu/isa.h"
#include "cpu/round_trip.h"

typedef enum requant_act { REQUANT_PLAIN, REQUANT_GELU, REQUANT_GELU_TANH, REQUANT_SILU } requant_act;

typedef struct requant_block {
    const int32_t *sum;    /* element (0, 0); rows `ld` apart */
    const int32_t *less;   /* NULL or [cols]: taken off each sum first */
    const float *scale, *bias;
    const float *end_scale;  /* NULL, or of each column: instead of `end` */
    const uint8_t *end_zero; /* with end_scale: NULL (`zero`), or of each column, in the type of the result */
    const uint8_t *add;    /* NULL or the residual */
    void *y;
    int64_t ld, ld_add, ldy;
    int64_t rows, cols;
    bool scale_each, bias_each; /* one for each column */
    bool has_trip, to_f32;
    uint8_t act;           /* requant_act */
    uint8_t add_flip;      /* 128: codes of the residual have a sign; `add_zero` is 128 more then */
    uint8_t flip;          /* 128: codes of the result have a sign */
    uint8_t low_code, high_code; /* the least and the largest result, plus flip */
    int32_t add_zero, zero;
    float factor, add_scale;
    round_trip trip, end;  /* end: only low and high count where y is f32 */
} requant_block;

typedef void requant_fn(const requant_block *b);

/* An epilogue of this form. Operands are inputs of the problem; 0: none. */
typedef struct requant {
    bool is_on;
    uint16_t scale, bias, add, factor, end_scale, end_zero;
    float scale_imm, bias_imm;
    uint8_t size;          /* bytes of an element of the result */
    requant_block block;   /* all but addresses and counts */
} requant;

/* Recognises the program of `p` over result 0, whose axes are walked in `order`, columns last. */
void requant_bind(const problem *p, const view *in, const view *out, const uint8_t *order, requant *r);
/* Rows and columns of the result from (row, col) on, whose sums are at `sum`. less: NULL or for these columns. */
void requant_run(const requant *r, requant_fn *fn, void *const *in, void *const *out, int64_t row, int64_t rows,
                 int64_t col, int64_t cols, const int32_t *sum, int64_t ld, const int32_t *less);

#endif

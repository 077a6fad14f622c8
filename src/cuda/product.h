/* SPDX-License-Identifier: Apache-2.0 */
/* product.h - what a matrix product or a convolution is made of, read once for all rows that take one: its factors,
 * their types, axes and zero points, and what slides. What a row makes of it is the row's own to judge. */
#ifndef CUDA_PRODUCT_H
#define CUDA_PRODUCT_H

#include "ops/problem.h"

typedef enum product_kind { PRODUCT_MATRICES, PRODUCT_CONV, PRODUCT_TRANSPOSED } product_kind;
/* Of a factor: absent, one, one for each column in a row, any other. */
typedef enum product_zero { ZERO_NONE, ZERO_ONE, ZERO_ROW, ZERO_MANY } product_zero;

/* What conv, conv_integer and conv_transpose have in common. */
typedef struct product_slide {
    const attr_ints *stride, *dilation, *pad;
    int64_t groups;
} product_slide;

typedef struct product {
    product_kind kind;
    bool         is_integer;            /* of integers of 8 bits, with zero points */
    sinter_dtype type_x, type_w;        /* of the factors; x: behind the prologue */
    product_zero zero_x, zero_w;        /* operands 2 and 3; of the factor's type */
    uint8_t      x_m, x_k, w_k, w_n;    /* axes: rows (matrices), depth, columns */
    uint8_t      spatial;               /* axes along which a filter slides; 0: matrices */
    bool         is_w_fixed, is_w_empty; /* w is a constant whose sizes are known; one of them is 0 */
    product_slide slide;
} product;

/* Phase q of a transposed convolution along an axis: the filter's taps first, first + by, …, of which tap j reads the
 * image, for result number o of the phase, at o + start - j * back. */
typedef struct product_phase { int64_t first, by, count, start, back; } product_phase;

/* A constant side as the kernels on tensor cores read it: tiles of bn columns, each as steps of 128 bytes of depth: bn
 * rows of 8 chunks of 16 bytes, chunk c of row n at place c ^ (n & 7), so that what is read at once falls on all banks.
 * Dealt: in each 32 columns, column 8 q + 2 j + e is row 8 j + 2 q + e.
 * Depth is runs, each of `inner` taps by channels and padded to `run` elements. */
typedef struct product_columns {
    uint32_t element;                   /* bytes */
    bool     is_unsigned, is_tf32;      /* tf32: rounded */
    bool     is_dealt;                  /* bn is a multiple of 32: 8 columns in a row go to one thread of a warpgroup */
    int64_t  bn, cols, inner, channels, run;
    int64_t  taps[3];                                              /* innermost last, which inner is, or 1 */
    int64_t  stride_n, stride_c, stride_tap[3];                    /* of elements */
} product_columns;

/* NULL, or why it is none. */
const char   *product_of(const problem *p, product *d);
/* The attributes; where there are views, the resolved ones. */
product_slide product_slide_of(op_id op, const void *attrs);
product_zero  product_zero_of(const problem *p, uint32_t input);
product_phase product_phase_at(const product_slide *s, uint32_t axis, int64_t taps, int64_t q);
/* One matrix into zeroed bytes; sums (NULL: none): of each column, in i32. */
void          product_pack(const product_columns *x, const uint8_t *src, uint8_t *dst, int32_t *sums);
/* To nearest, ties away: as the device rounds. */
void          product_round_tf32(uint8_t *at);

#endif

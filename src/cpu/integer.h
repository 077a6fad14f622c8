/* SPDX-License-Identifier: Apache-2.0 */
/* integer.h - products of 8-bit integers, summed in 32 bits: (a - za) (b - zb), exactly.
 *
 * a - za fits 16 bits, and two such products at a time are what every vector unit sums. B is packed as it is: its zero
 * points come off the sums afterwards, as zb times the sum of a row of A, which holds modulo 2^32. A convolution is the
 * same product; its rows are gathered. */
#ifndef CPU_INTEGER_H
#define CPU_INTEGER_H

#include "core/view.h"
#include "cpu/isa.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INTEGER_ROWS = 32, INTEGER_TERMS_MAX = 32768 }; /* of a work tile; so that sums fit */

/* The loops of one instruction set. */
typedef struct integer_set {
    int64_t width; /* columns of a panel */
    /* c[rows][width] = a[rows][lda] times the panel b[pairs][width][2]. */
    void (*tile)(int32_t *c, const int16_t *a, int64_t lda, const int16_t *b, int64_t pairs, int64_t rows);
    /* dst[i] = src[i] - zero; returns their sum. */
    int32_t (*widen_u8)(int16_t *dst, const uint8_t *src, int64_t n, int32_t zero);
    int32_t (*widen_i8)(int16_t *dst, const int8_t *src, int64_t n, int32_t zero);
    /* c[j] -= zero[j] * sum, modulo 2^32. */
    void (*finish)(int32_t *c, const int32_t *zero, uint32_t sum, int64_t n);
} integer_set;

/* Takes finished sums of rows [row, row + rows) x columns [col, col + cols) of a matrix. */
typedef void integer_post_fn(void *user, int64_t matrix, int64_t row, int64_t rows, int64_t col, int64_t cols,
                             const int32_t *sums, int64_t ld);

/* Strides are in elements. Terms of a sum are walked as three loops, of which a matrix product has the last alone. */
typedef struct integer_params {
    const integer_set *set;
    bool a_signed, b_signed, b_raw; /* b_raw: packed by whoever computes with it */
    int64_t n, terms[3], a_term[3], b_term[3], b_col;
    /* Matrices of B: a batch, or the groups of a convolution. */
    uint32_t matrix_rank, row_rank;
    int64_t matrix[SINTER_RANK_MAX], a_matrix[SINTER_RANK_MAX], b_matrix[SINTER_RANK_MAX], y_matrix[SINTER_RANK_MAX];
    int64_t zero_matrix; /* of the zero points of B, by the last axis of matrices */
    int64_t row[SINTER_RANK_MAX], a_row[SINTER_RANK_MAX], y_row[SINTER_RANK_MAX];
    int64_t y_col;
    int64_t za_row, zb_col; /* 0: one zero point; za: by the last axis of rows */
    /* Padding: of the last two axes of rows and the first two of terms. */
    bool has_window;
    int64_t limit[2], step[2], dilation[2], before[2];
    const uint8_t *a, *b, *za, *zb; /* b: packed or not; zero points may be NULL */
    int32_t *y;
    integer_post_fn *post; /* NULL: the sums are the result */
} integer_params;

int64_t integer_matrix_count(const integer_params *p);
size_t integer_pack_size(const integer_set *set, int64_t terms, int64_t n); /* of one matrix; SIZE_MAX: too large */
void integer_pack(const integer_params *p, const uint8_t *src, int16_t *dst);
size_t integer_scratch_size(const integer_set *set, int64_t terms, int64_t n, bool b_raw);
int64_t integer_tile_count(const integer_params *p);
void integer_run(const integer_params *p, int64_t begin, int64_t end, void *scratch, void *user);

#endif

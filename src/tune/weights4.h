/* SPDX-License-Identifier: Apache-2.0 */
/* weights4.h - a weight as numbers of 4 bits, with a scale for each block of terms of each column.
 *
 * A code times its scale stands for the weight. Codes are -8 to 7, zero points 0. All functions here are sums over
 * arrays: they know neither graphs nor models. */
#ifndef TUNE_WEIGHTS4_H
#define TUNE_WEIGHTS4_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct weight4 {
    const float *w;                     /* [terms, columns]; is_turned: [columns, terms] */
    int64_t terms, columns, block;
    bool is_turned;
    /* Rows of the data that the product reads, [rows, terms]. */
    const float *data;
    int64_t rows;
} weight4;

/* Blocks of a column; the last one may be short. */
int64_t weight4_blocks(const weight4 *w);

/* The codes, in the order of the weight with terms padded to whole blocks with 0, and the scales: [blocks, columns], or
 * [columns, blocks]. A block is rounded so that its largest magnitude is 7.
 *   by    each term is multiplied by this first; NULL: by 1
 *   clip  the largest magnitude may become less than it is, down to half, where that brings the product's result on the
 *         data nearer
 * False: no memory. */
bool weight4_make(const weight4 *w, const float *by, bool clip, arena *scratch, int8_t *code, float *scale);

/* What rounding to nearest does to the product on the data: the sum of its squared errors. by: as above; data is
 * divided by it. Below 0: no memory. */
double weight4_error(const weight4 *w, const float *by, arena *scratch);

#endif

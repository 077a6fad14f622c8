/* SPDX-License-Identifier: Apache-2.0 */
/* choose.h - loops that look for the place of an extreme, one set an instruction set. A NaN beats all numbers. */
#ifndef CPU_CHOOSE_H
#define CPU_CHOOSE_H

#include "sinter/tensor.h"

#include <stdbool.h>
#include <stdint.h>

/* The first i of [from, n) whose x may go before x[least] in the order of the largest (smallest): a NaN, or above it
 * (below it). n: there is none. */
typedef int64_t choose_seek_fn(const void *x, int64_t n, int64_t from, int64_t least, bool largest);

/* Columns: place[i * step] = the first (last) of `rows` rows, `along` apart, whose number i is best[i]. One is. */
typedef void choose_places_fn(int64_t *place, int64_t step, const void *x, int64_t along, const void *best,
                              int64_t rows, int64_t n, bool last);

typedef struct choose_set {
    /* The place of the extreme of x[0, n), n from 1 to INT32_MAX: the first one of equals, or the last one. */
    int64_t (*run)(const float *x, int64_t n, bool is_max, bool last);
    /* Columns: where x[k * step + i] beats best[i], best[i] is that and place[i] = row + k, for `rows` rows k. last: an
     * equal one counts, too. best and place are read and written as whole vectors. */
    void (*rows)(float *best, int32_t *place, const float *x, int64_t step, int32_t row, int32_t rows, int64_t n,
                 bool is_max, bool last);
    choose_seek_fn *(*seek)(sinter_dtype type); /* of f32, f64, i32 or i64 */
    /* Adjacent columns x, ..., x + cols - 1 of n rows, `step` apart: the rows of the k largest (smallest) of column i,
     * in order, are place[j * CHOOSE_COLS + i]. k: at most CHOOSE_TOP and n; cols: at most CHOOSE_COLS. */
    void (*top)(int32_t *place, const void *x, int64_t n, int64_t step, int64_t cols, int64_t k, bool largest,
                sinter_dtype type); /* f32, f64, i32 or i64 */
    /* As `top` for any k, of f32 or i32, and for at most CHOOSE_SORT_COLS columns: the row of result j of column i is
     * the lower half of keys[j * CHOOSE_SORT_COLS + i]. Twice choose_sort_rows(k) rows of keys are written. */
    void (*sort)(int64_t *keys, const void *x, int64_t n, int64_t step, int64_t cols, int64_t k, bool largest,
                 sinter_dtype type);
    choose_places_fn *places_f64, *places_8, *places_32, *places_64; /* integers by their bits */
} choose_set;

enum { CHOOSE_TOP = 16, CHOOSE_COLS = 16, CHOOSE_SORT_COLS = 8, CHOOSE_SORT_LEAST = 8 };

static inline int64_t choose_sort_rows(int64_t k)
{
    int64_t rows = CHOOSE_SORT_LEAST;
    while (rows < k) rows *= 2;
    return rows;
}

#endif

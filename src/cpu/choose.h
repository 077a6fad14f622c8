/* SPDX-License-Identifier: Apache-2.0 */
/* choose.h - loops that look for the place of an extreme, one set an instruction set. A NaN beats all numbers. */
#ifndef CPU_CHOOSE_H
#define CPU_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct choose_set {
    /* The place of the extreme of x[0, n), n from 1 to INT32_MAX: the first one of equals, or the last one. */
    int64_t (*run)(const float *x, int64_t n, bool is_max, bool last);
    /* Columns: where x[i] beats best[i], best[i] = x[i] and place[i] = row. last: an equal x[i] counts, too. */
    void (*row)(float *best, int32_t *place, const float *x, int32_t row, int64_t n, bool is_max, bool last);
    /* The first i of [from, n) whose x may go before `least` in the order of the largest (smallest): a NaN, or above it
     * (below it). n: there is none. */
    int64_t (*seek)(const float *x, int64_t n, int64_t from, float least, bool largest);
    /* Adjacent columns x, ..., x + cols - 1 of n rows, `step` apart: the rows of the k largest (smallest) of column i,
     * in order, are place[j * CHOOSE_COLS + i]. k: at most CHOOSE_TOP and n; cols: at most CHOOSE_COLS. */
    void (*top)(int32_t *place, const float *x, int64_t n, int64_t step, int64_t cols, int64_t k, bool largest);
} choose_set;

enum { CHOOSE_TOP = 16, CHOOSE_COLS = 16 };

#endif

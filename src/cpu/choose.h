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
} choose_set;

#endif

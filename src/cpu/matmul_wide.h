/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_wide.h - products of matrices of f64 and of integers, and of f32 with a vector, one set an instruction set.
 * Integers wrap. */
#ifndef CPU_MATMUL_WIDE_H
#define CPU_MATMUL_WIDE_H

#include <stdint.h>

/* y[m, n] = sum over k of a[m, k] * b[k, n]; steps are elements, of any size and sign. */
typedef struct matmul_wide {
    const void *a, *b;
    void *y;
    int64_t m, k, n;
    int64_t a_row, a_col, b_row, b_col, y_row, y_col;
} matmul_wide;

typedef void matmul_wide_fn(const matmul_wide *p);
/* thin: of f32, where m or n is 1. */
typedef struct matmul_wide_set { matmul_wide_fn *f64, *of_32, *of_64, *thin; } matmul_wide_set;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - kernels on rows of floats: softmax, normalisation, reductions, pools and blends, one set an instruction set.
 *
 * Rows are contiguous; strides and shapes are the business of who calls. Sums run in a fixed order. */
#ifndef CPU_ROWS_H
#define CPU_ROWS_H

#include "cpu/isa.h"
#include <stddef.h>
#include <stdint.h>

typedef enum rows_fold { ROWS_SUM, ROWS_ABS, ROWS_SQUARE, ROWS_MAX, ROWS_MIN, ROWS_PROD } rows_fold;

typedef struct rows_set {
    /* y = softmax(x), or its logarithm, over one row. */
    void (*softmax)(float *y, const float *x, int64_t n, bool is_log);
    /* The same over the axis of `n` steps `stride` apart, for `cols` adjacent columns. */
    void (*softmax_cols)(float *y, const float *x, int64_t n, int64_t y_stride, int64_t x_stride, int64_t cols,
                         bool is_log);
    /* y = (x - mean) / sqrt(variance + epsilon) * scale + bias; NULL scale and bias: none. stats: mean, then 1 /
     * deviation. */
    void (*layer_norm)(float *y, const float *x, int64_t n, const float *scale, const float *bias, float epsilon,
                       float stats[2]);
    void (*rms_norm)(float *y, const float *x, int64_t n, const float *scale, float epsilon);
    /* y = (x - centre) * scale + bias, the same for all. */
    void (*affine)(float *y, const float *x, int64_t n, float centre, float scale, float bias);
    /* y[i] = (x[i] - centre[i]) * scale[i] + bias[i]. */
    void (*affine_each)(float *y, const float *x, int64_t n, const float *centre, const float *scale,
                        const float *bias);
    /* sum of x and of (x - shift)^2. */
    void (*moments)(const float *x, int64_t n, float shift, double *sum, double *square);
    /* Folds a run to one value. */
    float (*fold)(rows_fold kind, const float *x, int64_t n);
    /* acc[i] folds with `rows` rows of x, `stride` apart. */
    void (*fold_cols)(rows_fold kind, float *acc, const float *x, int64_t rows, int64_t stride, int64_t n);
    /* y[i] = the largest x[k][i]; a NaN wins. y[i] = scale * sum of x[k][i]. */
    void (*max_of)(float *y, const float *const *x, int64_t count, int64_t n);
    void (*sum_of)(float *y, const float *const *x, int64_t count, int64_t n, float scale);
    /* y[i] = sum of w[k] * x[k][i] over four rows. */
    void (*blend4)(float *y, const float *const x[4], const float w[4], int64_t n);
} rows_set;

#endif

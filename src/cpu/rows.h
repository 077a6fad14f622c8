/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - kernels on rows of floats: softmax, normalisation, reductions, pools and blends, one set an instruction set.
 *
 * Rows are contiguous; strides and shapes are the business of who calls. Sums run in a fixed order. */
#ifndef CPU_ROWS_H
#define CPU_ROWS_H

#include "core/dtype.h"
#include "cpu/isa.h"
#include <stddef.h>
#include <stdint.h>

/* POOL_COLS: numbers of a line of a pool. POOL_SPARE: what a line has behind its numbers. */
enum { ROWS_SHORT = 32, ROWS_CUMULATED = 256, POOL_COLS = 2048, POOL_SPARE = 80 };
typedef enum rows_fold { ROWS_SUM, ROWS_ABS, ROWS_SQUARE, ROWS_MAX, ROWS_MIN, ROWS_PROD } rows_fold;

/* Rows of one plane that are pooled, where widths are adjacent. Result row i folds the input rows that begin with the
 * elements row[first[i]], ..., row[first[i + 1] - 1] of x: `read` numbers of each, which become line[before], and so
 * on. Result [i][j] is the fold of `taps` numbers of the line from j * step on, `dilation` apart, times scale[i][j].
 * The caller fills the rest of the line with the fold's seed. The line goes on for 2 vectors of 16 behind the last
 * window. */
typedef struct rows_pool {
    const char *x;
    char *y;
    sinter_dtype type;          /* of x and y: f32, f16, bf16, u8 or i8 */
    const int64_t *row;
    const int32_t *first;
    const int64_t *y_row;       /* where result row i begins */
    const float *const *scale;  /* NULL: none */
    int64_t rows, n, read, before, taps, dilation, step;
    float *line;                /* `lines` lines, `pitch` apart */
    int64_t pitch, lines;
    float *wide;                /* n results, where the type is not f32 */
    float seed;
} rows_pool;

/* acc[c] folds with x[c * col + i * row], i below `rows`; row or col is 1. */
typedef void rows_fold_fn(void *acc, const void *x, int64_t rows, int64_t row, int64_t cols, int64_t col);

/* to[i] = x[i * step], of another type. */
typedef void rows_widen_fn(void *to, const void *x, int64_t n, int64_t step);

/* Of each of `rows` rows of n numbers in turn: y[i] = the sum of x[i] so far, or what it was before. */
typedef void rows_cumulate_fn(void *y, int64_t y_row, const void *x, int64_t x_row, int64_t rows, int64_t n,
                              bool is_before);

/* Linear samples of images of width x height elements, whose rows are `row` apart: zeros outside, or the edges. */
typedef struct rows_grid {
    int64_t width, height, row;
    bool align, is_edge;
} rows_grid;

typedef struct rows_set {
    /* y = softmax(x), or its logarithm, over one row. */
    void (*softmax)(float *y, const float *x, int64_t n, bool is_log);
    /* The same of `rows` rows behind each other, of 1 to ROWS_SHORT numbers: lanes are rows. */
    void (*softmax_short)(float *y, const float *x, int64_t rows, int64_t n, bool is_log);
    /* The same over the axis of `n` steps `stride` apart, for `cols` adjacent columns. */
    void (*softmax_cols)(float *y, const float *x, int64_t n, int64_t y_stride, int64_t x_stride, int64_t cols,
                         bool is_log);
    /* As the three above, of f64; both strides are the same. */
    void (*softmax_f64)(double *y, const double *x, int64_t n, bool is_log);
    void (*softmax_short_f64)(double *y, const double *x, int64_t rows, int64_t n, bool is_log);
    void (*softmax_cols_f64)(double *y, const double *x, int64_t n, int64_t stride, int64_t cols, bool is_log);
    /* y = (x - mean) / sqrt(variance + epsilon) * scale + bias; NULL scale and bias: none. stats: mean, then 1 /
     * deviation. */
    void (*layer_norm)(float *y, const float *x, int64_t n, const float *scale, const float *bias, float epsilon,
                       float stats[2]);
    void (*rms_norm)(float *y, const float *x, int64_t n, const float *scale, float epsilon);
    /* The two above of `rows` rows behind each other, of 1 to ROWS_SHORT numbers: lanes are rows. mean, inverse: of
     * each row; NULL: not wanted. */
    void (*norm_short)(float *y, const float *x, int64_t rows, int64_t n, const float *scale, const float *bias,
                       float epsilon, float *mean, float *inverse);
    void (*rms_short)(float *y, const float *x, int64_t rows, int64_t n, const float *scale, float epsilon);
    /* y = (x - centre) * scale + bias, the same for all. */
    void (*affine)(float *y, const float *x, int64_t n, float centre, float scale, float bias);
    /* y[i] = (x[i] - centre[i]) * scale[i] + bias[i]. */
    void (*affine_each)(float *y, const float *x, int64_t n, const float *centre, const float *scale,
                        const float *bias);
    /* y[i] = centre[i] * (bias + alpha * sum of x[k][i]^2 over k)^-beta; bias > 0, alpha >= 0. */
    void (*lrn)(float *y, const float *centre, const float *const *x, int64_t count, int64_t n, float alpha, float bias,
                float beta);
    /* sum of x and of (x - shift)^2. */
    void (*moments)(const float *x, int64_t n, float shift, double *sum, double *square);
    /* y[i] = the fold of n numbers at x + i * stride. */
    void (*fold_rows)(rows_fold kind, float *y, const float *x, int64_t rows, int64_t stride, int64_t n);
    /* sum of exp(x - top); no x is above `top`. */
    float (*sum_exp)(const float *x, int64_t n, float top);
    /* acc[i] folds with `rows` rows of x, `stride` apart. */
    void (*fold_cols)(rows_fold kind, float *acc, const float *x, int64_t rows, int64_t stride, int64_t n);
    /* The fold of a type: f64, i32, i64 or u64; of i8 and u8, the largest and the smallest alone. NULL: there is none.
     */
    rows_fold_fn *(*fold_of)(rows_fold kind, sinter_dtype type);
    /* Sums of integers of at most 32 bits, in i64; else NULL. */
    rows_fold_fn *(*sum_widened_of)(sinter_dtype type);
    /* From an integer type to a wider one or to itself: to i64 or f64, or the same. */
    rows_widen_fn *(*widen_of)(sinter_dtype type, sinter_dtype to);
    void (*pool_max)(const rows_pool *p);       /* a NaN wins */
    void (*pool_sum)(const rows_pool *p);
    void (*pool_abs)(const rows_pool *p);       /* sums of |x| */
    void (*pool_squares)(const rows_pool *p);   /* sums of x^2 */
    void (*root)(float *y, int64_t n);          /* y = the square root of y */
    /* y[i] = the largest x[k][i]; a NaN wins. y[i] = scale * sum of x[k][i]. */
    void (*max_of)(float *y, const float *const *x, int64_t count, int64_t n, float scale);
    void (*sum_of)(float *y, const float *const *x, int64_t count, int64_t n, float scale);
    /* As max_of or sum_of, of f16 or bf16; sums are in f32. */
    void (*fold_narrow)(char *y, const char *const *x, int64_t count, int64_t n, bool is_max, float scale,
                        sinter_dtype type);
    /* As max_of, of codes of 8 bits. flip: 0x80 where codes have no sign, else 0. */
    void (*max_bytes)(uint8_t *y, const uint8_t *const *x, int64_t count, int64_t n, uint8_t flip);
    /* y[i] = x[at[i]]: `at` rises, and lies in [0, width). The same in each of `rows` rows, `y_row` apart. twice: at[i]
     * is i / 2. */
    void (*pick)(float *y, int64_t y_row, int64_t rows, const float *x, int64_t width, const int32_t *at, int64_t n,
                 bool twice);
    /* Each number of `rows` rows twice in each of two rows: y[2 r + j][2 i + k] = x[r][i]. */
    void (*twice)(float *y, int64_t y_row, const float *x, int64_t x_row, int64_t rows, int64_t width);
    /* y[i] = x[at[0][i]] * (1 - weight[i]) + x[at[1][i]] * weight[i]; the first alone where its weight is 1. Both `at`
     * rise, and lie in [0, width). */
    void (*pick2)(float *y, const float *x, int64_t width, const int32_t *const at[2], const float *weight, int64_t n);
    /* y = a * (1 - weight) + b * weight */
    void (*blend2)(float *y, const float *a, const float *b, float weight, int64_t n);
    /* bf16 to f32, and back, rounded to nearest, ties to even. */
    void (*widen_bf16)(float *y, const uint16_t *x, int64_t n);
    void (*narrow_bf16)(uint16_t *y, const float *x, int64_t n);
    /* y[i] = sum of w[k] * x[k][i] over four rows. */
    void (*blend4)(float *y, const float *const x[4], const float w[4], int64_t n);
    /* y[i] = sum of weight[k] * x[k][i] over `count` rows; 0 without any. */
    void (*blend_of)(float *y, const float *const *x, const float *weight, int64_t count, int64_t n);
    /* y[i] = sum of x[k][i] * w[k][i] over `count` rows; 0 without any. */
    void (*products_of)(float *y, const float *const *x, const float *const *w, int64_t count, int64_t n);
    /* y[i] = sum of weight[k * pitch + i] * x[at[k * pitch + i]] over `taps`; those of weight 0 are left out, whatever
     * x is. Both arrays are read up to a whole vector of 16, where `at` must be valid. */
    void (*gather_blend)(float *y, const float *x, const int32_t *at, const float *weight, int64_t pitch, int64_t taps,
                         int64_t n);
    /* The same of two taps, the second of which is read right behind the first. */
    void (*gather_two)(float *y, const float *x, const int32_t *at, const float *weight, int64_t pitch, int64_t n);
    /* y[i] = the sum of weight[2 k + j][i] * x[at[k][i] + j], k and j below 2, else as gather_blend. */
    void (*gather_pairs)(float *y, const float *x, const int32_t *at, const float *weight, int64_t pitch, int64_t n);
    /* Places of gather_pairs for n samples at x[i] and y[i], which are -1 to 1 from end to end and are overwritten. All
     * arrays go on to a whole vector of 16. */
    void (*grid_pairs)(const rows_grid *of, int32_t *at, float *weight, int64_t pitch, float *x, float *y, int64_t n);
    /* Sums of f32 are double. Integers: by their bits. */
    rows_cumulate_fn *cumulate_f32, *cumulate_f64, *cumulate_32, *cumulate_64;
} rows_set;

#endif

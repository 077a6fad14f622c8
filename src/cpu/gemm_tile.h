/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile.h - the micro-kernels under every dense product: one register tile of C, summed over taps and all of K.
 *
 * C[r][j] = clip(alpha * sum over taps t, k of a[t][r][k] * b[t][k][j]  + bias[j] + residual[r][j])
 *
 * The rows of A are pointers, one per tap and row. That one indirection is what makes a matrix product, a strided or
 * padded convolution and a gathered product the same kernel: who calls decides where the rows lie, and rows that fall
 * into padding point to zeros. B is a packed panel. There is one function for each count of rows and of vectors. */
#ifndef CPU_GEMM_TILE_H
#define CPU_GEMM_TILE_H

#include "cpu/isa.h"
#include <stdint.h>

enum { GEMM_ROWS_MAX = 14, GEMM_VECTORS_MAX = 4, GEMM_LANES_MAX = 16 };

enum { GEMM_TILE_ALPHA = 1, GEMM_TILE_CLIP = 2 };

typedef struct gemm_tile {
    const float *const *a; /* [taps][rows]: where the k values of each tap and row begin              */
    const float *b;        /* panel [taps][k][vectors * lanes]; lanes past `cols` hold zeros          */
    float *c;
    const float *bias;     /* NULL or [cols]                                                          */
    const float *residual; /* NULL or rows of `ldr`                                                   */
    int64_t ldc, ldr;
    int64_t taps, k;
    int64_t ahead; /* 0, or how far from each row lies one that is wanted soon                */
    int32_t cols;  /* columns to write, in the last vector of the panel                       */
    uint32_t flags;
    float alpha, lo, hi;
} gemm_tile;

typedef void gemm_tile_fn(const gemm_tile *t);

/* The kernels of one instruction set. */
typedef struct gemm_tile_set {
    int32_t lanes;                      /* floats in a vector */
    int32_t rows_max[GEMM_VECTORS_MAX]; /* the largest tile for each count of vectors (index: vectors - 1) */
    gemm_tile_fn *run[GEMM_VECTORS_MAX][GEMM_ROWS_MAX];
    /* Packs b[k][j] at src[k * row_stride + j * col_stride] into dst[k][width], zeros past `cols`. */
    void (*pack)(float *dst, const float *src, int64_t k, int32_t cols, int32_t width, int64_t row_stride,
                 int64_t col_stride);
} gemm_tile_set;


#endif

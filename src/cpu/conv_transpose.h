/* SPDX-License-Identifier: Apache-2.0 */
/* conv_transpose.h - fp32 transposed convolution by gathering, channels-last, on the batch-reduce product.
 *
 * Output pixels whose coordinates leave the same remainders modulo the strides see the same subset of taps: each such
 * class is an ordinary stride-1 convolution. No zeros are multiplied and nothing is scattered. A tile is one output row
 * for a block of channels; there is one phase. */
#ifndef CPU_CONV_TRANSPOSE_H
#define CPU_CONV_TRANSPOSE_H

#include "cpu/conv.h"

/* As conv_params: shape.in is what is read, shape.out what is written, shape.pad what is cut off before the full
 * output. Needs shape.x_c == 1. */
typedef struct conv_transpose_params {
    isa_level isa;
    gemm_tactic tactic;
    conv_shape shape;
    const float *x;
    const float *w;
    float *y;
    int64_t ldy;
    gemm_epilogue epilogue;
} conv_transpose_params;

int conv_transpose_tactics(isa_level isa, const conv_shape *s, gemm_tactic out[GEMM_TACTICS_MAX]);
const char *conv_transpose_tactic_check(isa_level isa, const conv_shape *s, gemm_tactic tactic);
double conv_transpose_cost(isa_level isa, const conv_shape *s, gemm_tactic tactic);

/* Weights w[i][o][d][h][w] (o within the group) at strides {i, o, d, h, w}. `dst` 64-byte aligned. */
size_t conv_transpose_pack_size(isa_level isa, const conv_shape *s, gemm_tactic tactic);
void conv_transpose_pack(isa_level isa, const conv_shape *s, gemm_tactic tactic, const float *w,
                         const int64_t w_stride[5], float *dst);

size_t conv_transpose_scratch_size(const conv_transpose_params *p);
int64_t conv_transpose_tile_count(const conv_transpose_params *p);
void conv_transpose_run(const conv_transpose_params *p, int64_t begin, int64_t end, void *scratch, void *post_user);

#endif

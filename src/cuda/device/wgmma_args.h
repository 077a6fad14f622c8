/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma_args.h - parameters of wgmma.cu. */
#ifndef CUDA_DEVICE_WGMMA_ARGS_H
#define CUDA_DEVICE_WGMMA_ARGS_H

#include "args.h"

enum { WGMMA_ROW_AXES = 6 };
struct wgmma_args {
    ALIGNED(64) unsigned char map_a[128];       /* rows of a: a box of 64 elements by BM rows or pixels */
    ALIGNED(64) unsigned char map_b[128];       /* rows of b (n x k), where it is not packed: 64 elements by BN rows */
    address b;                                  /* packed: [tiles_n][steps][BN][64], swizzled */
    small m, n, steps;                          /* rows, columns, steps of 64 along k */
    small tiles_m, tiles_n, tiles;
    /* A row's position: quotients from the innermost of its axes outward; the last needs none. */
    struct fast_div row_div[WGMMA_ROW_AXES];
    small stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;     /* of a convolution */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma_args.h - parameters of wgmma.cu and wgmma_once.cu. */
#ifndef CUDA_DEVICE_WGMMA_ARGS_H
#define CUDA_DEVICE_WGMMA_ARGS_H

#include "device_args.h"

/* TYPE: of both sides; or of a, with b s8. */
#define WGMMA_F16 0
#define WGMMA_BF16 1
#define WGMMA_S8 2
#define WGMMA_U8_S8 3

enum { WGMMA_ROW_AXES = 6 };
struct wgmma_args {
    ALIGNED(64) unsigned char map_a[128];       /* rows of a: a box of 128 bytes by TM rows or pixels */
    ALIGNED(64) unsigned char map_b[128];       /* rows of b (n x k), where it is not packed: 128 bytes by TN rows */
    /* Results, and what is added to them: 16 rows by as many columns as go at once (wgmma_staged.cuh). */
    ALIGNED(64) unsigned char map_d[128];
    ALIGNED(64) unsigned char map_r[128];
    address b;                                  /* packed: [batch][tiles_n][steps][TN][128 bytes], swizzled */
    address zero_x;                             /* a's zero point: one element */
    wide sums;                                  /* where in b its sums along k are, i32 [batch][tiles_n][TN] */
    small m, n, steps;                          /* rows and columns of one product, steps of 128 bytes along k */
    small tiles_m, tiles_n, tiles;
    struct fast_div tile_div;                   /* tiles of one product of a batch */
    /* A row's position: quotients from the innermost of its axes outward; the last needs none. */
    struct fast_div row_div[WGMMA_ROW_AXES];
    /* Of a convolution: steps of a tap; along each axis, innermost first, taps and how the filter slides. */
    struct fast_div chunk_div, tap_div[3];
    small stride[3], pad[3], dilation[3];
    /* wgmma_once.cu: steps in shared memory at once; where what follows lies; 2^split_log blocks share the steps */
    small stages, sums_at, barriers_at, split_log, trigger;
};

#endif

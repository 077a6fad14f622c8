/* SPDX-License-Identifier: Apache-2.0 */
/* mma_args.h - parameters of mma.cu: D[m, n] = sum of X[m, k] W[n, k], m over rows of a result, k over taps and
 * channels in units of 16 bytes. A convolution and a product of matrices differ in how a row's address is made. */
#ifndef MMA_ARGS_H
#define MMA_ARGS_H

#include "device_args.h"

enum { MMA_ROW_AXES = 7, MMA_BATCH_AXES = 6, MMA_SPATIAL = 3, MMA_STEP_BYTES = 128, MMA_STAGES_MAX = 32 };

/* -DTYPE: of the factors; sums are f32 or i32. */
#define MMA_F16 0
#define MMA_BF16 1
#define MMA_TF32 2
#define MMA_S8 3
#define MMA_U8 4
#define MMA_S8_U8 5                     /* of X, of W */
#define MMA_U8_S8 6

/* -DB_KIND: how W lies. */
#define MMA_B_PACKED 0                  /* tiles of BN rows of 128 bytes, in the order of reading, swizzled */
#define MMA_B_NK 1                      /* rows of n, k adjacent */
#define MMA_B_KN 2                      /* rows of k, n adjacent */

/* -DTRANSPOSED: along each axis result o of a transposed convolution is number o / stride of phase o % stride, and a
 * phase is a convolution of the image by some of the filter's taps. Here is what differs from phase to phase; each is a
 * product of its own, by a matrix of its own. */
enum { MMA_PHASES = 8 };                /* along an axis */
typedef struct mma_phase {
    struct fast_div taps, run;          /* run: chunks of a row of taps, where this axis is the innermost */
    small start;                        /* of the image: where tap 0 of result 0 is */
} mma_phase;

typedef struct mma_phases {
    struct fast_div stride[MMA_SPATIAL];
    small out[MMA_SPATIAL];             /* sizes of the result */
    mma_phase at[MMA_SPATIAL][MMA_PHASES];
} mma_phases;

/* What every kernel reads stands first: parameters come in lines of 64 bytes, each of which is fetched once. */
typedef struct mma_args {
    address x, w;
    small rows, cols;                   /* of one product */
    small chunks, steps;                /* of 16 bytes, of 128 bytes: along k */
    small stages, split_log, trigger;   /* 1: at the top, 2: when the rows' loads are issued, 3: behind the main loop */
    small barriers_at;                  /* in shared memory */
    /* order of tiles: bands of 1 << band_log tiles of rows, by columns inside */
    small m_tiles, band_log;
    struct fast_div band_div;           /* tiles of a full band */
    /* a row's coordinates, and what a step along each is in X, in units of what is read at once (A_VEC elements) */
    small x_base, x_step[MMA_ROW_AXES];
    struct fast_div row_div[MMA_ROW_AXES];
    /* taps, outermost axis first */
    small stride[MMA_SPATIAL], pad[MMA_SPATIAL], dilation[MMA_SPATIAL], in[MMA_SPATIAL], tap_step[MMA_SPATIAL];
    struct fast_div kernel_div[MMA_SPATIAL];
    struct fast_div run_div;            /* chunks of a tap, or of a row of taps where elements are gathered */
    struct fast_div channel_div;        /* channels: where elements are gathered */
    small taps_inner, x_channel;        /* taps of a row; units */
    struct fast_div tile_div;           /* tiles of one product */
    struct fast_div batch_div[MMA_BATCH_AXES];                  /* at 0: of phases */
    wide x_batch[MMA_BATCH_AXES], w_batch[MMA_BATCH_AXES];      /* bytes; of groups, of phases: at 0 */
    wide w_pitch;                       /* bytes between rows of W where it is not packed */
    address zero_x, zero_w;             /* integers: zero points, of X one (16 copies where it pads), of W by column */
    small zero_w_step, terms;           /* 0: one for all columns; terms of a sum */
    small pro_row[MMA_ROW_AXES], pro_batch[MMA_BATCH_AXES];     /* prologue: X's coordinates, a step; 0: repeated */
    wide w_sums;                        /* bytes from a packed matrix to the sums of its columns, i32 */
} mma_args;

#endif

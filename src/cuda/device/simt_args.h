/* SPDX-License-Identifier: Apache-2.0 */
/* simt_args.h - parameters of simt.cu and simt_reduce.cu: a sum of products over axes.
 *
 *   D[batch, row, col] = sum over depth of P[batch, row, depth] * Q[batch, col, depth]
 *
 * Rows, columns, batch and depth are each a few axes, the last one innermost; an operand steps by a stride along every
 * one of them. One of the operands may be a window that slides over an image: its row is a position of the result, and
 * depth is a tap and a channel. */
#ifndef CUDA_DEVICE_SIMT_ARGS_H
#define CUDA_DEVICE_SIMT_ARGS_H

#include "device_args.h"

enum { SIMT_AXES = 6, SIMT_SPATIAL = 3, SIMT_PHASES = 8 };

/* Sizes of some axes, and by how much each moves a coordinate of the result. */
struct simt_lines {
    struct fast_div div[SIMT_AXES];
    small out_step[SIMT_AXES];
    small count;                                    /* of all positions */
};

struct simt_operand {
    address data, zero;                             /* zero: its zero points */
    wide line[SIMT_AXES], batch[SIMT_AXES], depth[SIMT_AXES];
    wide zero_line[SIMT_AXES], zero_batch[SIMT_AXES];
    wide depth_flat;                                /* packed: between positions of depth; lines are adjacent */
};

/* Coordinates of what a prologue makes, for one step along each axis. */
struct simt_prologue { small line[SIMT_AXES], batch[SIMT_AXES], depth[SIMT_AXES]; };

/* Of rows that are normalised before; 0: no scale, no bias. */
struct simt_norm { address scale, bias; float epsilon; };

struct simt_args {
    struct simt_operand p, q;
    struct simt_lines row, col, batch;
    struct fast_div depth_div[SIMT_AXES], row_tiles, col_tiles, split;
    small depth;
    /* The window: position * line_step + start + tap * tap_step is a coordinate of the image. A transposed convolution
     * has a start for each phase. */
    small in_size[SIMT_SPATIAL], out_size[SIMT_SPATIAL], line_step[SIMT_SPATIAL], tap_step[SIMT_SPATIAL];
    small start[SIMT_SPATIAL][SIMT_PHASES];
    wide in_stride[SIMT_SPATIAL];
    address part;                                   /* sums of a slice of depth: [split][batch][row][col_pitch] */
    small col_pitch;
    struct fast_div quads, rows;                    /* col_pitch / 4, row.count */
    struct simt_prologue pro;
    struct simt_norm norm;                          /* gemv of normalised rows */
    small trigger;                                  /* gemv, packed_product: 1: at the top, 3: behind the main loop */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* copy_args.h - parameters of copy.cu, concat.cu and transpose.cu: the same elements in two places, axes from
 * outermost to innermost of the destination, steps in bytes. */
#ifndef CUDA_DEVICE_COPY_ARGS_H
#define CUDA_DEVICE_COPY_ARGS_H

#include "device_args.h"

#define COPY_AXES 16
#define BLOCK_AXES 4

struct copy_job {
    address         src, dst;
    wide            src_step[COPY_AXES], dst_step[COPY_AXES];
    struct fast_div dim[COPY_AXES];
    struct fast_div src_dim[COPY_AXES]; /* where is_split: the source has axes of its own, in the same order */
    wide            total;              /* units */
    tiny            axes, src_axes, is_split, is_dense; /* dense: the result runs on from unit to unit */
    tiny            unit, each;         /* bytes at once: 1 to 16; units a thread: 1, 4, or 16 bytes of small */
    /* Where the result is dense and units are under 8 bytes: units of the innermost axis, and what all of the source
     * but its first address is a multiple of. */
    small           inner;
    tiny            piece;
};

/* A part of a concatenation: rows of units, dense on both sides. */
struct copy_part {
    address         src, dst;
    wide            src_step, dst_step;
    struct fast_div row;                /* units of a row, as long as they count in 32 bits */
    wide            units, total;       /* of a row; in all */
    small           unit, each;
};

/* Axes of a block from the innermost on, in the order of one of its sides. The outermost may be cut: then `cut`
 * elements of its `size` are in a block, and `inner` places are in each. */
struct block_side {
    wide            src_step[BLOCK_AXES], dst_step[BLOCK_AXES];
    struct fast_div dim[BLOCK_AXES];
    small           axes, count;                    /* places in a block */
    small           cut_axis, cut, size, inner;     /* which axis of the grid counts the cuts; -1: none */
};

struct block_args {
    address           src, dst;
    wide              src_step[COPY_AXES], dst_step[COPY_AXES];   /* of the grid: from block to block */
    struct fast_div   dim[COPY_AXES];
    struct block_side x, y;
    struct fast_div   z;
    small             axes, pitch, is_wide_in, is_wide_out;
    small             in_log, out_log, in_vector_log, out_vector_log;   /* of the threads along a row */
};

#endif

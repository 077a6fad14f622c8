/* SPDX-License-Identifier: Apache-2.0 */
/* copy_args.h - parameters of copy.cu, concat.cu and transpose.cu: the same elements in two places, axes from
 * outermost to innermost of the destination, steps in bytes. */
#ifndef CUDA_DEVICE_COPY_ARGS_H
#define CUDA_DEVICE_COPY_ARGS_H

#include "device_args.h"

#define COPY_AXES 16

struct copy_job {
    address         src, dst;
    wide            src_step[COPY_AXES], dst_step[COPY_AXES];
    struct fast_div dim[COPY_AXES];
    struct fast_div src_dim[COPY_AXES]; /* where is_split: the source has axes of its own, in the same order */
    wide            total;              /* units */
    tiny            axes, src_axes, is_split;
    tiny            unit, each;         /* bytes at once: 1 to 16; units a thread: 1 or 4 */
};

/* A part of a concatenation: rows of units, dense on both sides. */
struct copy_part {
    address         src, dst;
    wide            src_step, dst_step;
    struct fast_div row;                /* units of a row, as long as they count in 32 bits */
    wide            units, total;       /* of a row; in all */
    small           unit, each;
};

struct transpose_args {
    address         src, dst;
    wide            src_x, src_y, dst_x, dst_y;     /* steps: x is the innermost axis of the source, y the result's */
    wide            src_step[COPY_AXES], dst_step[COPY_AXES];
    struct fast_div dim[COPY_AXES];                 /* of the other axes */
    struct fast_div tiles_x, tiles_y;
    small           x, y, axes, is_wide_in, is_wide_out;
};

#endif

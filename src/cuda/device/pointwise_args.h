/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_args.h - the space of pointwise.cu: rows of vectors, axes from outermost to innermost. */
#ifndef CUDA_DEVICE_POINTWISE_ARGS_H
#define CUDA_DEVICE_POINTWISE_ARGS_H

#include "device_args.h"

struct pointwise_args {
    wide            total;      /* vectors in all; at most 2^31 unless WIDE */
    small           inner;      /* elements of a row */
    struct fast_div row;        /* vectors of a row */
    struct fast_div dim[16];
    /* Across: tiles of XT elements of the innermost axis by vectors along another. */
    small           across;     /* elements of that axis */
    struct fast_div tiles_x, tiles_y;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* stem_args.h - parameters of stem.cu. */
#ifndef STEM_ARGS_H
#define STEM_ARGS_H

#include "device_args.h"

/* -DTYPE: of the factors; sums are f32. */
#define STEM_F16 0
#define STEM_BF16 1
#define STEM_TF32 2

/* -DFROM: the image's elements. Bytes become f16 without their zero point. */
#define STEM_FROM_FLOAT 0
#define STEM_FROM_U8 1
#define STEM_FROM_I8 2

typedef struct stem_args {
    address x, w, zero;
    wide x_image, x_channel, x_row, x_step;     /* elements */
    small in_h, in_line;                        /* rows of the image; elements of a line that is read */
    small out_h, out_w;
    small pad_y, line_from;                     /* where the patch of pixel 0 begins: rows above, elements before */
    small tiles, loops, trigger;                /* 1: at the top, 2: when the last patch is under way, 3: at the end */
    struct fast_div n_blocks, tiles_x, tiles_y;
} stem_args;

#endif

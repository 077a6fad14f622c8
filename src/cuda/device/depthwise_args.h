/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_args.h - parameters of depthwise.cu. */
#ifndef CUDA_DEVICE_DEPTHWISE_ARGS_H
#define CUDA_DEVICE_DEPTHWISE_ARGS_H

#include "device_args.h"

struct depthwise_args {
    address x, w;                                   /* w: packed [tap][w_pitch] */
    address zero_x, zero_w;                         /* integers: of X one, of W by channel of the result */
    wide x_image, x_row, x_col, x_channel;          /* elements */
    small channels, in_h, in_w, out_h, out_w;       /* channels: of the result */
    small stride_h, dilation_h, pad_h, pad_w, w_pitch, zero_w_step;
    struct fast_div tiles_c, tiles_x, tiles_y, multiplier;
};

#endif

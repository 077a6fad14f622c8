/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_args.h - parameters of depthwise.cu. */
#ifndef CUDA_DEVICE_DEPTHWISE_ARGS_H
#define CUDA_DEVICE_DEPTHWISE_ARGS_H

#include "device_args.h"

struct depthwise_args {
    address x, w;                                   /* w: packed [tap][w_pitch] */
    address zero_x, zero_w;                         /* integers: of X one, of W by channel of the result */
    wide x_image, x_plane, x_row, x_col, x_channel; /* elements */
    small channels, in_d, in_h, in_w, rows, out_w;  /* channels: of the result; rows: its planes by their height */
    small stride_d, stride_h, dilation_d, dilation_h, pad_d, pad_h, pad_w, w_pitch, zero_w_step;
    struct fast_div tiles_c, tiles_x, tiles_y, out_h, multiplier;
};

#endif

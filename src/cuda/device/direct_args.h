/* SPDX-License-Identifier: Apache-2.0 */
/* direct_args.h - parameters of einsum.cu and conv_transpose.cu. */
#ifndef CUDA_DEVICE_DIRECT_ARGS_H
#define CUDA_DEVICE_DIRECT_ARGS_H

#include "device_args.h"

enum { DIRECT_AXES = 16, DIRECT_OPERANDS = 4, DIRECT_SPATIAL = 3 };

struct einsum_args {
    address in[DIRECT_OPERANDS];
    wide out_stride[DIRECT_OPERANDS][DIRECT_AXES], sum_stride[DIRECT_OPERANDS][DIRECT_AXES];
    struct fast_div out_div[DIRECT_AXES], sum_div[DIRECT_AXES];
    wide count;                                     /* of results */
    small terms;                                    /* of each sum */
};

struct transpose_args {
    address x, w;
    wide x_image, x_channel, w_channel, w_filter, x_step[DIRECT_SPATIAL], w_step[DIRECT_SPATIAL];
    struct fast_div channels_out, group, out[DIRECT_SPATIAL], stride[DIRECT_SPATIAL];   /* group: results a group */
    small in[DIRECT_SPATIAL], kernel[DIRECT_SPATIAL], dilation[DIRECT_SPATIAL], pad[DIRECT_SPATIAL];
    small channels;                                 /* of the image in a group */
    wide count;
};

#endif

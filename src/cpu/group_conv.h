/* SPDX-License-Identifier: Apache-2.0 */
/* group_conv.h - convolutions of groups of a few channels, channels-last, by 3 taps along the width.
 *
 * A vector of results holds whole groups. The inputs of a pixel are as many numbers in the same lanes; each result
 * wants all of its group, so an input is spread over its group's lanes and multiplied with a vector of weights. */
#ifndef CPU_GROUP_CONV_H
#define CPU_GROUP_CONV_H

#include "cpu/gemm.h"

enum { GROUP_WIDTH = 3, GROUP_MOST = 16, GROUP_STRIDE_MAX = 2 };

/* A row of results. */
typedef struct group_conv {
    const float *const *x; /* [rows][columns]: where the pixels of rows begin; those outside are zeros */
    const float *w;        /* [vector of channels][row][input of a group][GROUP_WIDTH][lane], from the first row on */
    const int32_t *spread; /* [input of a group][GROUP_MOST]: the lane that each lane reads */
    float *y;
    const float *residual;
    int64_t rows, columns;      /* of x */
    int64_t pixels, channels;   /* of y */
    int64_t group, stride;      /* channels of a group; along the width */
    int64_t w_vector, ldy, ldr; /* floats from one vector of channels to the next; from pixel to pixel */
    const gemm_epilogue *epilogue; /* its residual is not read */
    /* What the next row reads and writes, which is asked for meanwhile; sizes 0: it is near. */
    const char *next_x, *next_y;
    int64_t next_x_size, next_y_size;
} group_conv;

typedef void group_conv_fn(const group_conv *g);

#endif

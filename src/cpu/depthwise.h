/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise.h - fp32 depthwise convolution, channels-last: every channel is filtered by itself.
 *
 * Vectors run along channels; several output pixels of a row are computed at once, so that an input pixel is loaded
 * once for all outputs that see it. Nothing is copied: taps outside the image are left out. */
#ifndef CPU_DEPTHWISE_H
#define CPU_DEPTHWISE_H

#include "cpu/gemm.h"

/* Spatial arrays are height, width; one dimension has height 1. Output channel c reads input channel c / multiplier. */
typedef struct depthwise_shape {
    int64_t images, channels, multiplier; /* channels of the input */
    int64_t in[2], out[2];
    int64_t kernel[2], stride[2], dilation[2];
    int64_t pad[2];            /* before each axis; what follows is implied by `out` */
    int64_t x_image, x_dim[2]; /* strides in elements; channels are adjacent         */
} depthwise_shape;

typedef struct depthwise_params {
    isa_level isa;
    depthwise_shape shape;
    const float *x;
    const float *w; /* packed by depthwise_pack                           */
    float *y;       /* pixels in order (image, height, width), `ldy` apart */
    int64_t ldy;
    gemm_epilogue epilogue; /* bias [channels * multiplier]; hook as for conv      */
} depthwise_params;

/* NULL where the sizes are sound: to be asked before anything else about a shape that comes from outside. */
const char *depthwise_shape_check(const depthwise_shape *s);

size_t depthwise_pack_size(const depthwise_shape *s);
/* Weights w[o][h][w] at strides {o, h, w}, to [tap][o]. */
void depthwise_pack(const depthwise_shape *s, const float *w, const int64_t w_stride[3], float *dst);

/* One tile is one output row of one image. No scratch. */
int64_t depthwise_tile_count(const depthwise_params *p);
void depthwise_run(const depthwise_params *p, int64_t begin, int64_t end, void *post_user);

/* One instruction set's kernel: `pixels` output pixels of one row, from out_x on, all channels. */
typedef struct depthwise_row {
    const depthwise_params *p;
    const float *x;        /* the image                        */
    float *y;              /* output pixel (out_y, out_x)      */
    const float *residual; /* NULL or what is added there      */
    int64_t out_y, out_x, pixels;
} depthwise_row;
typedef void depthwise_row_fn(const depthwise_row *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise.h - depthwise convolution in fp32, channels-last: every channel is filtered by itself. Operands of bf16 are
 * widened in registers, and results narrowed there.
 *
 * Vectors run along channels; blocks of one or two rows of output pixels are computed at once, so that an input pixel
 * is loaded once for all outputs of a block that see it. Nothing is copied: taps outside the image are left out. */
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

/* The block of outputs: 1 or 2 rows, 4 or 7 pixels of each. ahead: 1 where inputs and results are prefetched, which
 * pays where they come from beyond the L2 cache. */
typedef struct depthwise_tactic {
    uint8_t rows, cols, ahead;
    uint8_t zero[5]; /* always 0 */
} depthwise_tactic;

enum { DEPTHWISE_TACTICS_MAX = 3 };

typedef struct depthwise_params {
    isa_level isa;
    depthwise_tactic tactic;
    depthwise_shape shape;
    bool is_narrow; /* x is bf16; y too, unless the hook writes it. Wants depthwise_has_blocks, one result a channel and
                     * scratch */
    const void *x;
    const float *w; /* packed by depthwise_pack                           */
    void *y;        /* pixels in order (image, height, width), `ldy` apart */
    int64_t ldy;
    gemm_epilogue epilogue; /* bias [channels * multiplier]; hook as for conv; no residual where is_narrow */
} depthwise_params;

/* NULL where the sizes are sound: to be asked before anything else about a shape that comes from outside. */
const char *depthwise_shape_check(const depthwise_shape *s);

/* Outputs so many pixels apart along an axis have windows that share inputs. */
static inline int64_t depthwise_step(const depthwise_shape *s, int axis)
{
    int64_t a = s->stride[axis], b = s->dilation[axis];
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return s->dilation[axis] / a;
}

/* Whether outputs are computed in blocks, so that the tactic matters. */
static inline bool depthwise_has_blocks(const depthwise_shape *s)
{
    const int64_t width = s->kernel[1], stride = s->stride[1] * depthwise_step(s, 1) / s->dilation[1];
    return (width == 3 || width == 5 || width == 7) && stride <= 2;
}

/* Lists the tactics. Returns their number, at least 1. cache: bytes of the L2 cache. Whether prefetching pays is not
 * left to the clock: a kernel that is measured finds its operands nearer than a network's step does. check: NULL where
 * the tactic can run the shape, or why not. */
int depthwise_tactics(const depthwise_shape *s, uint64_t cache, depthwise_tactic out[DEPTHWISE_TACTICS_MAX]);
const char *depthwise_tactic_check(const depthwise_shape *s, depthwise_tactic t);
int depthwise_tactic_print(char *text, size_t size, depthwise_tactic t);

size_t depthwise_pack_size(isa_level isa, const depthwise_shape *s);
/* Weights w[o][h][w] at strides {o, h, w}, in f32 or bf16, to [vector of channels][tap][lane] in f32; zeros behind the
 * last channel. */
void depthwise_pack(isa_level isa, const depthwise_shape *s, const void *w, bool is_narrow, const int64_t w_stride[3],
                    float *dst);

/* One tile is a run of pixels of one or two output rows of one image that share input rows. */
int64_t depthwise_tile_count(const depthwise_params *p);
/* Bytes of scratch that a run wants, for any sizes of image and result: 0 unless is_narrow. */
size_t depthwise_scratch_size(const depthwise_params *p);
void depthwise_run(const depthwise_params *p, int64_t begin, int64_t end, void *scratch, void *post_user);

/* One instruction set's kernel: `pixels` output pixels of each of `rows` rows, from out_x on, all channels. The rows
 * are depthwise_step pixels apart. */
typedef struct depthwise_rows {
    const depthwise_params *p;
    const void *x;         /* the image                        */
    void *y;               /* output pixel (out_y, out_x)      */
    bool narrow_y;         /* y is bf16                        */
    int64_t y_row;         /* pixels from a row of y to the next */
    const float *residual; /* NULL or what is added there      */
    int64_t out_y, out_x, rows, pixels;
} depthwise_rows;
typedef void depthwise_rows_fn(const depthwise_rows *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h - convolution of one to three spatial dimensions, channels-last out, by taps on the batch-reduce product.
 *
 * Nothing is unrolled into columns. Path `taps`: every output pixel's input rows are pointers, one a tap; taps that
 * fall into the padding point to zeros. Path `rows`: the input is first copied into a zero-padded channels-last image
 * (from any strides, so a graph input in NCHW needs no transpose), and the taps of one kernel row become one long run:
 * what a first layer of three channels needs. Path `lines` does the same with a few lines of each channel at a time
 * (conv_lines.h). One and two dimensions have the outer sizes 1. Work is phases of
 * independent tiles, fixed by problem and tactic alone. */
#ifndef CPU_CONV_H
#define CPU_CONV_H

#include "cpu/gemm.h"

typedef enum conv_path { CONV_TAPS, CONV_ROWS, CONV_LINES } conv_path;

typedef struct conv_tactic {
    gemm_tactic gemm;
    uint8_t path;    /* conv_path */
    uint8_t zero[7]; /* always 0  */
} conv_tactic;

enum { CONV_TACTICS_MAX = 2 * GEMM_TACTICS_MAX + GEMM_VECTORS_MAX };

/* Sizes; spatial arrays are depth, height, width. Channels are totals over all groups. */
typedef struct conv_shape {
    int64_t images, groups, c_in, c_out;
    int64_t in[3], out[3];
    int64_t kernel[3], stride[3], dilation[3];
    int64_t pad[3];                 /* before each axis; what follows is implied by `out`        */
    int64_t x_image, x_dim[3], x_c; /* strides of the input in elements                          */
    gemm_unit unit;                 /* that tactics are listed for                               */
    uint64_t cache;                 /* as gemm_shape.cache                                       */
    bool is_converted;              /* the input is in another type than the unit's terms        */
    bool has_zeros;                 /* a packed filter has zeros to the end of each row's last word: whole words of
                                     * padded rows are read, whatever bytes follow a row's terms */
} conv_shape;

typedef struct conv_params {
    isa_level isa;
    conv_tactic tactic;
    conv_shape shape;
    sinter_dtype x_type; /* in memory; NONE: as the terms of the tactic's unit. Others are converted by path `rows`,
                          * and by taps that copy */
    uint8_t pad_byte;    /* what padding is filled with: the zero point of 8-bit integers */
    bool narrow_y;       /* bf16, as gemm_params.narrow_c                                 */
    const void *x;
    const void *w; /* packed by conv_pack                                       */
    void *y;       /* pixels in order (image, depth, height, width), `ldy` apart */
    int64_t ldy;
    gemm_epilogue epilogue; /* bias [c_out]; residual laid out as y with stride ldr      */
} conv_params;

/* NULL where the sizes are sound: to be asked before anything else about a shape that comes from outside. */
const char *conv_shape_check(const conv_shape *s);
/* Lists the sensible tactics, the one expected to be fastest first. Returns their number, at least 1. */
int conv_tactics(isa_level isa, const conv_shape *s, conv_tactic out[CONV_TACTICS_MAX]);
const char *conv_tactic_check(isa_level isa, const conv_shape *s, conv_tactic tactic);
int conv_tactic_print(char *text, size_t size, isa_level isa, conv_tactic tactic);
double conv_cost(isa_level isa, const conv_shape *s, conv_tactic tactic);

/* Weights w[o][i][d][h][w] (i within the group), in the type of the terms (s8 for u8), at strides {o, i, d, h, w} of
 * `w_stride`. `dst`: 64-byte aligned. */
size_t conv_pack_size(isa_level isa, const conv_shape *s, conv_tactic tactic);
void conv_pack(isa_level isa, const conv_shape *s, conv_tactic tactic, const void *w, const int64_t w_stride[5],
               void *dst);

/* Memory that all workers share over all phases, and memory of each worker; both 64-byte aligned. */
size_t conv_workspace_size(const conv_params *p);
size_t conv_scratch_size(const conv_params *p);
/* A phase begins when all tiles of the one before have ended. */
int conv_phase_count(const conv_params *p);
int64_t conv_tile_count(const conv_params *p, int phase);
void conv_run(const conv_params *p, int phase, int64_t begin, int64_t end, void *workspace, void *scratch,
              void *post_user);

#endif

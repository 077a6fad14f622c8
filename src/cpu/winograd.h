/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.h - fp32 convolution with filters of three or five taps along an axis or two, at stride 1, by Winograd's
 * minimal filtering, channels-last.
 *
 * Y = At [ (G g Gt) . (Bt d B) ] A, summed over channels before the outer transform (Lavin and Gray, "Fast Algorithms
 * for Convolutional Neural Networks", arXiv 1509.09308, equation 12): tiles of out x out results take (out + 2)^2
 * multiplications a channel instead of 9 out^2, that is 2.25 (2x2) and 4 (4x4) times fewer. The products at one of the
 * (out + 2)^2 points are an ordinary matrix product: tiles x input channels x output channels. Filters of five taps
 * use the points of 4x4 for 2x2 results: 2.8 times fewer products. An axis along which the filter has one tap is not
 * transformed: tiles are lines. Three taps then take 1.5 (2 results) or 2 times (4 results) fewer products, five taps
 * 1.7 times fewer (2 results).
 *
 * The points of 4x4 are 0, +-5/8, +-3/2 and infinity, not the usual 0, +-1, +-2: the transforms of data and results
 * stay exact constants, and the error is 2.5 times smaller. Filters are transformed in double, once. The rms of the
 * error, where that of plain sums is 1 (16 to 512 channels, normal data): 0.6 to 0.9 for 2x2, 1.6 to 2.5 for 4x4. It
 * goes with the largest operands of a tile rather than with those of one result; an infinite operand makes all of its
 * tile NaN. Work is independent tiles in phases, fixed by problem and tactic alone. */
#ifndef CPU_WINOGRAD_H
#define CPU_WINOGRAD_H

#include "cpu/gemm.h"

typedef struct winograd_tactic {
    gemm_tactic gemm;   /* of the product at each point; block_m is not read             */
    uint8_t     out;    /* 2 or 4: a tile has out + 2 points along an axis, and out results of three taps */
    uint8_t     phased; /* 1: all tiles pass each stage before the next one begins       */
    uint16_t    tiles;  /* tiles that pass all stages together, at most; 0 where phased  */
    uint8_t     zero[4];
} winograd_tactic;

enum { WINOGRAD_TACTICS_MAX = 12, WINOGRAD_POINTS_MAX = 36, WINOGRAD_STEP_MAX = 64 };

/* Sizes; spatial arrays are height, width. Strides are 1, one group. A dilated filter is a plain one on each of the
 * images that every dilation-th pixel makes. */
typedef struct winograd_shape {
    int64_t images, c_in, c_out;
    int64_t in[2], out[2];
    int64_t filter[2];          /* 3 or 5 along both axes, or along one and 1 along the other */
    int64_t pad[2];             /* before each axis; what follows is implied by `out`   */
    int64_t x_image, x_dim[2];  /* strides of the input in elements; channels adjacent  */
    int64_t dilation[2];        /* 0 is 1                                               */
} winograd_shape;

static inline int64_t winograd_step(const winograd_shape *s, int axis)
{
    return s->dilation[axis] > 1 ? s->dilation[axis] : 1;
}

/* Points of a tile along an axis, which are also the pixels that it reads there. */
static inline int64_t winograd_points_along(const winograd_shape *s, int axis, int64_t out)
{
    return s->filter[axis] == 1 ? 1 : out + 2;
}

/* Results of a tile along an axis. */
static inline int64_t winograd_out_along(const winograd_shape *s, int axis, int64_t out)
{
    return winograd_points_along(s, axis, out) + 1 - s->filter[axis];
}

static inline int64_t winograd_points(const winograd_shape *s, int64_t out)
{
    return winograd_points_along(s, 0, out) * winograd_points_along(s, 1, out);
}

static inline bool winograd_is_line(const winograd_shape *s)
{
    return s->filter[0] == 1 || s->filter[1] == 1;
}

/* Of the filter, along an axis that is transformed. */
static inline int64_t winograd_taps(const winograd_shape *s)
{
    return s->filter[s->filter[0] == 1];
}

/* Tiles along an axis, in the largest of its images. */
static inline int64_t winograd_tiles_along(const winograd_shape *s, int axis, int64_t out)
{
    const int64_t step = winograd_step(s, axis), along = winograd_out_along(s, axis, out);
    return ((s->out[axis] + step - 1) / step + along - 1) / along;
}

typedef struct winograd_params {
    isa_level       isa;
    winograd_tactic tactic;
    winograd_shape  shape;
    const float    *x;
    const float    *w;          /* packed by winograd_pack                                   */
    float          *y;          /* pixels in order (image, height, width), `ldy` apart       */
    int64_t         ldy;
    gemm_epilogue   epilogue;   /* bias [c_out]; residual laid out as y; hook as for conv; no scale */
} winograd_params;

/* NULL where the sizes are sound: to be asked before anything else about a shape that comes from outside. */
const char *winograd_shape_check(const winograd_shape *s);
/* Lists the sensible tactics, the one expected to be fastest first. Returns their number, at least 1. `most`: the sizes
 * that memory must hold. */
int winograd_tactics(isa_level isa, const winograd_shape *s, const winograd_shape *most, uint32_t threads,
                     winograd_tactic out[WINOGRAD_TACTICS_MAX]);
const char *winograd_tactic_check(isa_level isa, const winograd_shape *s, winograd_tactic tactic);
int winograd_tactic_print(char *text, size_t size, isa_level isa, winograd_tactic tactic);
/* In the unit of gemm_cost, for so many threads. */
double winograd_cost(isa_level isa, const winograd_shape *s, winograd_tactic tactic, uint32_t threads);
/* Floats from one tile's data or products to the next tile's. */
int64_t winograd_row_size(int64_t channels);

/* Weights w[o][i][h][w] at strides {o, i, h, w}, to [point][panel][i][width]. `dst` 64-byte aligned. */
size_t winograd_pack_size(isa_level isa, const winograd_shape *s, winograd_tactic tactic);
void winograd_pack(isa_level isa, const winograd_shape *s, winograd_tactic tactic, const float *w,
                   const int64_t w_stride[4], float *dst);

/* Memory that all workers share over all phases, and memory of each worker; both 64-byte aligned. */
size_t winograd_workspace_size(const winograd_params *p);
size_t winograd_scratch_size(const winograd_params *p);
/* A phase begins when all tiles of the one before have ended. */
int winograd_phase_count(const winograd_params *p);
int64_t winograd_tile_count(const winograd_params *p, int phase);
void winograd_run(const winograd_params *p, int phase, int64_t begin, int64_t end, void *workspace, void *scratch,
                  void *post_user);

/* ---- the transforms of one instruction set ---- */

typedef struct winograd_out {
    const float *m;             /* the products of a tile: points `m_point` apart, all channels adjacent */
    int64_t m_point;
    float *y;                   /* the tile's first pixel                                                */
    const float *bias, *residual;
    int64_t channels;
    int64_t y_row, y_pixel, r_row, r_pixel;
    int32_t rows, cols;         /* pixels of the tile that exist; a line is a row */
    bool clip;
    float lo, hi;
} winograd_out;

typedef struct winograd_set {
    /* The first index: 0 squares, 1 lines. The second: 0 for out 2, 1 for out 4, and of results 2 for out 4 and five
     * taps. pixels[points], row by row; input writes whole vectors: up to 15 floats beyond the channels. */
    void (*input[2][2])(const float *const *pixels, int64_t channels, float *v, int64_t v_point);
    void (*output[2][3])(const winograd_out *o);
} winograd_set;

#endif

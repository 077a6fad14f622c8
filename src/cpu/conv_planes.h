/* SPDX-License-Identifier: Apache-2.0 */
/* conv_planes.h - loops for convolutions of row-major planes, along the width. */
#ifndef CPU_CONV_PLANES_H
#define CPU_CONV_PLANES_H

#include <stdbool.h>
#include <stdint.h>

/* Results in a block of packed weights. The last block has what is left. */
enum { PLANES_BLOCK = 4 };

/* y[o * y_c + i] = bias[o] + the sum of w(o, t, c) * x[c * x_c + at[t] + i] over t and c, perhaps clipped. x is read up
 * to a whole vector of 16. w: [block of o][t][c][o of the block]. */
typedef struct conv_planes {
    const float *x, *w, *bias; /* bias: NULL for zeros */
    float *y;
    const int64_t *at;
    int64_t taps, channels, outs, n, x_c, y_c;
    float lo, hi;
    bool has_clip;
} conv_planes;

#endif

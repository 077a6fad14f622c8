/* SPDX-License-Identifier: Apache-2.0 */
/* plane_filter.h - loops for filters over one plane, along the width. */
#ifndef CPU_PLANE_FILTER_H
#define CPU_PLANE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

/* y[r * n + i] = bias + the sum of w[t] * x[r * x_row + at[t] + i] over t, perhaps clipped. x is read up to a whole
 * vector of 16. */
typedef struct plane_filter {
    const float *x, *w;
    float *y;
    const int64_t *at;
    int64_t taps, rows, n, x_row;
    float bias, lo, hi;
    bool has_clip;
} plane_filter;

struct conv_planes;

typedef struct plane_set {
    void (*filter)(const plane_filter *f);
    void (*conv)(const struct conv_planes *p);
    /* Rows of less than 16 may be followed by zeros, up to 16. */
    void (*copy)(float *to, int64_t to_row, const float *x, int64_t x_row, int64_t rows, int64_t n);
    /* Every second element, from the first and from the second on. Either may be followed by zeros, up to 16. */
    void (*split)(float *even, float *odd, int64_t to_row, const float *x, int64_t x_row, int64_t rows, int64_t n);
    /* Every fourth element: to[c] has those from c on. Nothing is written behind them. */
    void (*split4)(float *const *to, int64_t to_row, const float *x, int64_t x_row, int64_t rows, int64_t n);
    /* to[i * step + c] = part[c][i], c below step. Parts are read up to a whole vector of 16. */
    void (*join)(float *to, const float *const *part, int64_t step, int64_t n);
    /* to[i * to_row + c] = x[c * x_plane + i] for i below n and c below `planes`, which is at most a vector's lanes;
     * zeros behind the last plane, to a whole vector. At least as many rows as it has lanes are written, and read on
     * the way back. */
    void (*to_lanes)(float *to, int64_t to_row, const float *x, int64_t x_plane, int64_t planes, int64_t n);
    void (*from_lanes)(float *y, int64_t y_plane, const float *from, int64_t from_row, int64_t planes, int64_t n);
} plane_set;

#endif

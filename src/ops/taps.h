/* SPDX-License-Identifier: Apache-2.0 */
/* taps.h - which elements of an axis resize and grid_sample read, and their weights. The references and the kernels
 * share these functions. */
#ifndef OPS_TAPS_H
#define OPS_TAPS_H

#include "ops/ops.h"

/* An element of an axis, and its weight. */
typedef struct resize_tap {
    int64_t index;
    double  weight;
} resize_tap;

/* An axis of `n` elements that becomes `n_out`. reach: `resize_reach`, at most RESIZE_TAPS_MAX. */
typedef struct resize_axis {
    const attrs_resize *a;
    uint32_t axis, rank;
    int64_t  n, n_out;
    double   scale, reach;
} resize_axis;
enum { RESIZE_TAPS_MAX = 1 << 16 };

/* A place in the input that nearest rounds to an element. Scales are f32, so a place that should be 5 may be a little
 * less; rounded to f32 it is 5. From 16384 on an f32 has too few digits for that, and the place stays as it is. */
static inline double resize_place(double x) { return x < 16384 ? (double)(float)x : x; }
/* How many elements to the left of the nearest one an output coordinate reads. */
double   resize_reach(const attrs_resize *a, double scale);
/* Taps that a coordinate has room for. */
uint32_t resize_taps_most(const resize_axis *x);
/* The taps of output coordinate i; returns how many. 0: it lies outside, and the extrapolation value is the result. */
uint32_t resize_taps(const resize_axis *x, int64_t i, resize_tap *out);

/* Up to four elements of an axis around a place. An index of -1 is a zero. */
typedef struct grid_axis {
    uint32_t count;
    int64_t  index[4];
    double   weight[4];
} grid_axis;

/* is_narrow: the place was not stored in f64. */
grid_axis grid_axis_of(const attrs_grid_sample *a, double place, int64_t n, bool is_narrow);

#endif

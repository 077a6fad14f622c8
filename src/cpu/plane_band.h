/* SPDX-License-Identifier: Apache-2.0 */
/* plane_band.h - a copy of a part of a plane, between zeros, that filters over row-major planes read.
 *
 * A stride of the width is taken apart: padded column c lies in part c % stride at c / stride. So a tap of a whole
 * result row is a run of adjacent numbers. */
#ifndef CPU_PLANE_BAND_H
#define CPU_PLANE_BAND_H

#include "cpu/conv.h"
#include "cpu/plane_filter.h"

/* PLANE_SLACK: floats behind a part. Loops read whole vectors. */
enum { PLANE_SLACK = 16 };

/* The copy for `out` results along the depth and the height. */
typedef struct plane_band {
    int64_t out[2], rows[2], part, row; /* part, row: floats from one to the next */
} plane_band;

plane_band plane_band_of(const conv_shape *s, int64_t deep, int64_t high);
/* The band of the whole plane, or of as much of it as `most` floats hold. At least one row of results. */
plane_band plane_band_find(const conv_shape *s, int64_t most);
static inline int64_t plane_band_size(const plane_band *b) { return b->rows[0] * b->rows[1] * b->row; }
/* Where the numbers of a tap begin. */
int64_t plane_band_tap(const conv_shape *s, const plane_band *b, int64_t deep, int64_t high, int64_t wide);
/* Copies what the results from (deep, high) on read of plane x. Padding is not written: `to` has zeros there. */
void plane_band_copy(const plane_set *set, const conv_shape *s, const plane_band *b, const float *x, int64_t deep,
                     int64_t high, float *to);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* row_conv_shape.h - the conv_shape of a problem and of a run, for convolutions of floats and of integers. */
#ifndef CPU_ROW_CONV_SHAPE_H
#define CPU_ROW_CONV_SHAPE_H

#include "cpu/conv.h"
#include "cpu/row.h"

/* For choosing (AT_OPT) and for memory (AT_MAX), of a problem with a filter of a fixed size. Strides are not exact:
 * they say whether channels are adjacent. unit and is_converted are left 0. */
conv_shape row_conv_shape(const problem *p, row_bound b);
/* Of a run: sizes and strides are those of the views. The filter is packed, so its sizes are the problem's. */
conv_shape row_conv_bind(const problem *p, const void *attrs, const view *x, const view *y);
/* Why a problem is no convolution into a channels-last result, of a filter of a fixed size; why that is no constant. */
const char *row_conv_reject(const problem *p);
const char *row_filter_reject(const problem *p);
/* Strides of a filter [o, i, spatial...] as {o, i, depth, height, width}; 0 for an axis that it lacks. */
void       row_filter_strides(const view *w, int64_t stride[5]);
static inline int64_t row_conv_taps(const conv_shape *s) { return s->kernel[0] * s->kernel[1] * s->kernel[2]; }

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_lines.h - the lines of a tensor along some axis, for kernels that work on one or a few of them at a time. */
#ifndef CPU_LINES_H
#define CPU_LINES_H

#include "core/view.h"

enum { LINES_VIEWS = 3 };

/* The axes that are not along a line, in falling order of the first view's strides, without those of one element.
 * Axes that lie behind each other in all views are one axis. */
typedef struct lines {
    uint32_t rank;      /* at least 1 */
    int64_t count;      /* of lines */
    int64_t dim[SINTER_RANK_MAX];
    int64_t stride[LINES_VIEWS][SINTER_RANK_MAX]; /* of each view */
} lines;

/* along: a bit for each axis of the first view that lies along a line. Other views have the same axes, or those but
 * `along`; NULL: strides of 0. */
void lines_init(lines *l, const view *const *views, uint32_t count, uint32_t along);
/* Where line number i begins in each view. */
void lines_at(const lines *l, int64_t i, int64_t offset[LINES_VIEWS]);
/* The distance of adjacent lines in a view. */
static inline int64_t lines_step(const lines *l, uint32_t v) { return l->stride[v][l->rank - 1]; }

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* line_order.h - what top_k and cumulate have in common: lines along one axis, whichever way they lie. */
#ifndef CUDA_LINE_ORDER_H
#define CUDA_LINE_ORDER_H

#include "cuda/lines.h"

#include "cuda/device/line_args.h"
#include "cuda/device/order_args.h"

typedef struct order_args order_args;

/* Why not, or NULL; then `l` is there. */
const char *order_reject(const problem *p, lines *l);
/* The size of the axis in an operand of `l`. */
dim_range   order_range(const lines *l, const problem_operand *o);
double      order_lines(const lines *l);        /* lines at opt */
/* Everything about lines and steps; false where sizes are too large. indices: NULL: there are none. */
bool        order_set(const lines *l, const view *x, const view *values, const view *indices, order_args *a);

#endif

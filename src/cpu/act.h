/* SPDX-License-Identifier: Apache-2.0 */
/* act.h - activations over a finished block of a contraction's result, in place, while it is still in the L1 cache.
 *
 * What most networks put behind bias and residual needs no interpreter: one loop a function and instruction set, over
 * any block of rows, that may add a second block of the same layout on the way out. */
#ifndef CPU_ACT_H
#define CPU_ACT_H

#include "cpu/isa.h"
#include "cpu/round_trip.h"
#include "ops/ops.h"

typedef struct act_block {
    float *c;
    const float *added; /* NULL or what is added to the function's value */
    int64_t ldc, ld_added;
    int64_t rows, cols;
    float y, z; /* the function's second and third arguments */
    round_trip trip;
} act_block;

/* c = f(c, y, z) [+ added] */
typedef void act_fn(const act_block *b);
/* The loops of one instruction set by op; NULL where there is none. OP_dequantize: a round trip by the inverse. */
typedef struct act_set {
    act_fn *run[OP_COUNT];
} act_set;

#endif

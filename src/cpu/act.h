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
typedef act_fn *act_find(op_id op);

act_find act_of_plain;
#if CPU_HAS_X86
act_find act_of_avx2, act_of_avx512;
#endif
/* NULL where there is no such loop. OP_dequantize: a round trip by the inverse. */
act_fn *act_of(isa_level isa, op_id op);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* ranking.h - the tactics of a row that its cost model likes best, cheapest first; and what cost models of kernels on
 * tensor cores share. */
#ifndef CUDA_RANKING_H
#define CUDA_RANKING_H

#include "cuda/fields.h"

enum { RANKING_MAX = 256 };
typedef struct ranking {
    uint32_t most, count;               /* most <= RANKING_MAX */
    double   cost[RANKING_MAX + 1];
    tactic   at[RANKING_MAX + 1];       /* the last is room for one that is too dear */
} ranking;

/* Puts the tactic (TACTIC_SIZE bytes) behind those of the same cost. */
void ranking_add(ranking *r, double cost, const void *tactic_bytes);
/* Appends them to `out` as far as there is room. */
void ranking_take(const ranking *r, tactic_sink *out);

/* What is known of the chip, or guessed. */
typedef struct machine {
    double units, ghz, shared;
    double flops;                       /* of tensor cores by mma.sync, a clock and multiprocessor, in f16 */
    double bandwidth;                   /* bytes a ns */
} machine;
machine machine_of(const kernel_target *t);

/* Blocks of a tile in waves: each waits for its first data, takes its steps, and finishes: sums of `groups` groups of
 * warps meet in shared memory, and those of a cluster there at a fraction of its speed. Times in ns. */
typedef struct tile_cost {
    double latency, late, ready;        /* of the first data; before the first step besides; of finishing anything */
    double ghz, waves, resident, share; /* resident: blocks of a multiprocessor; share: turns that those take */
    double steps, busy;                 /* of a block; a step of all residents */
    double sums, stored, memory;        /* bytes that meet; what results take to be stored; what all bytes take */
    uint32_t groups, split_log;
} tile_cost;
double tile_cost_ns(const tile_cost *x);

#endif

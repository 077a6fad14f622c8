/* SPDX-License-Identifier: Apache-2.0 */
/* ranking.h - the tactics of a row that its cost model likes best, cheapest first. */
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


#endif

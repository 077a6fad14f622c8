/* SPDX-License-Identifier: Apache-2.0 */
/* gaps.h - the free parts of a slab that has no end: the lowest one that is large enough is taken, neighbours join.
 * Each call takes the logarithm of the number of gaps. */
#ifndef PLAN_GAPS_H
#define PLAN_GAPS_H

#include "base/arena.h"

typedef struct gap gap;
typedef struct gaps {
    arena *a;
    gap   *root, *spare;
} gaps;

void     gaps_init(gaps *g, arena *a);                          /* all is free; the arena remembers a failure */
uint64_t gaps_take(gaps *g, uint64_t size);                     /* the offset */
void     gaps_give(gaps *g, uint64_t at, uint64_t size);

#endif

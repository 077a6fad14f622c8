/* SPDX-License-Identifier: Apache-2.0 */
/* trees.inc.h - the walks of trees.h, for features of f32 and of f64. */

INLINE void tree_fold(trees_fold fold, double *sum, double weight)
{
    if (fold == TREES_SUM) *sum += weight;
    else if (*sum != *sum || (fold == TREES_MIN ? weight < *sum : weight > *sum)) *sum = weight;
}

#define TREES_T float
#define TREES_NAME(name) name##_f32
#include "cpu/trees_walk.inc.h"
#undef TREES_T
#undef TREES_NAME
#define TREES_T double
#define TREES_NAME(name) name##_f64
#include "cpu/trees_walk.inc.h"
#undef TREES_T
#undef TREES_NAME

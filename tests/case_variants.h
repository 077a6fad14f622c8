/* SPDX-License-Identifier: Apache-2.0 */
/* case_variants.h - problems made of a problem: each axis of size 0, 1 or more, alone and with the axes that go with
 * it; orders permuted, gaps; and sizes as ranges, so that a kernel is chosen for one size and bound at another.
 *
 * What the op's shape function refuses is left out, so a variant is a problem that a model can have. */
#ifndef CASE_VARIANTS_H
#define CASE_VARIANTS_H

#include "case_rig.h"

typedef struct case_variant {
    const problem *sized;               /* as a run sees it */
    const problem *chosen;              /* what kernels are asked about: the same, or with ranges that hold the sizes */
} case_variant;

typedef struct case_variants case_variants;
/* All in the rig's arena. */
case_variants *case_variants_of(case_rig *r, const problem *p);
/* The systematic ones come first: sizes alone, each once; then random ones without end. False: there is none. */
bool           case_variants_next(case_variants *v, case_variant *out);
uint32_t       case_variants_systematic(const case_variants *v);
/* A random one whose kernel is chosen for the problem's own sizes, but which has sizes near what 32 bits count: to be
 * bound, there is no memory for it. False: the op refuses this one. */
bool           case_variants_huge(case_variants *v, case_variant *out);

#endif

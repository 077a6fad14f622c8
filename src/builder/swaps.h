/* SPDX-License-Identifier: Apache-2.0 */
/* swaps.h - the kernels and tactics that a search over a whole program tries in a step (descent.c). */
#ifndef BUILD_SWAPS_H
#define BUILD_SWAPS_H

#include "tune/tune.h"

/* clang-format off */
enum { ALTERNATIVES = 6, LET_INS = 3, SWAPS = (ALTERNATIVES + 1) * (LET_INS + 1) };
/* clang-format on */

bool   swaps_on_device(const plan_step *s);
bool   swaps_equal(const choice *a, const choice *b);
choice swaps_now(const plan_step *s);
/* Lists the choice with each possible start time of the next kernel, its own included, earliest first. */
uint32_t swaps_let_in(const tune_result *t, const plan_step *s, const choice *c, choice list[LET_INS]);
/* Other kernels and tactics that are nearly as fast by themselves: at most ALTERNATIVES. */
sinter_status swaps_others(env *e, const tune_options *o, const tune_result *t, const plan_step *s, choice *list,
                           uint32_t *count);
/* All of these, each with all start times of the next kernel: at most SWAPS. */
sinter_status swaps_all(env *e, const tune_options *o, const tune_result *t, const plan_step *s, choice *list,
                        uint32_t *count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* fit.h - does a tactic bind at all sizes in the ranges of its problem? */
#ifndef CUDA_FIT_H
#define CUDA_FIT_H

#include "backend/kernel.h"

/* NULL, or why `bind` refuses the tactic at sizes in range: the text of `error`. A size without a bound counts as its
 * usual one: more is refused when it comes. For tactics that the kernel's `check` accepts. */
const char *cuda_fit(const kernel *k, const problem *p, const tactic *t, sinter_error *error);

#endif

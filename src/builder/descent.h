/* SPDX-License-Identifier: Apache-2.0 */
/* descent.h - tactics tried out in the whole program. A kernel that is fastest in a chain of its own launches is not
 * always fastest among the kernels of a network. So, after the choice, steps get other tactics, one group of equal
 * problems at a time, and what makes the program faster stays. */
#ifndef BUILD_DESCENT_H
#define BUILD_DESCENT_H

#include "run/context.h"
#include "tune/tune.h"

/* For how long one profile's programs may be tried, in seconds; 0: they are not. */
double        descent_seconds(const tune_options *o);
/* Puts in what the timing cache says was found for this plan. *is_known false: it says nothing. *is_changed: steps have
 * other kernels or tactics now. */
sinter_status descent_find(env *e, const tune_options *o, tune_result *t, bool *is_known, bool *is_changed);
/* Tries them in the programs of a context of an engine that was made of the plan, at the shape that is set, and adds
 * what it found to the timing cache. */
sinter_status descent_measure(env *e, const tune_options *o, context *c, tune_result *t, bool *is_changed);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* branches.h - decides whether the steps of a profile run side by side or one after the other. Whole programs are timed
 * by the device's clock, because the gain of one branch depends on the other. */
#ifndef BUILD_BRANCHES_H
#define BUILD_BRANCHES_H

#include "tune/tune.h"

/* Sets t->order to the order that the timing cache has for this plan. Leaves t->order alone if the cache has none. */
sinter_status branches_find(env *e, const tune_options *o, tune_result *t, bool *is_known);
/* For each profile, what to measure, and the result. */
typedef struct branches_work {
    bool wants_order, wants_descent;    /* descent.h */
    bool is_changed;                    /* steps have other tactics now */
} branches_work;
/* Times the programs of the profiles that need it, in an engine made of the bytes (the call takes ownership). Adds the
 * results to the timing cache. */
sinter_status branches_measure(env *e, const tune_options *o, const device_options *wanted, uint8_t *bytes, size_t size,
                               tune_result *t, branches_work *work, uint32_t profiles);
/* A hash of the plan: its kernels, their arguments, and which arguments share bytes. */
sinter_status branches_hash(env *e, const tune_options *o, const plan *p, uint64_t *out);

#endif

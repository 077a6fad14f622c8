/* SPDX-License-Identifier: Apache-2.0 */
/* branches.h - whether the steps of a profile run side by side or one after the other: decided by whole programs, on
 * the device's clock, since what a branch gains beside another depends on both. */
#ifndef BUILD_BRANCHES_H
#define BUILD_BRANCHES_H

#include "tune/tune.h"

/* What the timing cache says of this plan; t->order is left alone where it does not know. */
sinter_status branches_find(env *e, const tune_options *o, tune_result *t, bool *is_known);
/* What is to be measured of each profile, and what came of it. */
typedef struct branches_work {
    bool wants_order, wants_descent;    /* descent.h */
    bool is_changed;                    /* steps have other tactics now */
} branches_work;
/* Times the programs of all profiles of which something is wanted, in an engine that was made of them (taken over), and
 * adds what it found to the timing cache. */
sinter_status branches_measure(env *e, const tune_options *o, const device_options *wanted, uint8_t *bytes, size_t size,
                               tune_result *t, branches_work *work, uint32_t profiles);
/* A number for the plan: its kernels, what they are given, and which of their bytes are the same. */
sinter_status branches_hash(env *e, const tune_options *o, const plan *p, uint64_t *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* apart.h - storages that may share bytes though steps that do not need each other run at the same time. */
#ifndef PLAN_APART_H
#define PLAN_APART_H

#include "plan/plan.h"

typedef struct plan_apart plan_apart;
/* After plan_in_place; sets of steps by steps and storages, in `a`. */
sinter_status plan_apart_create(env *e, arena *a, const plan *p, plan_apart **out);
/* Does some step of main not need the step before it, both being kernels? */
bool          plan_apart_has_branches(const plan_apart *x);
bool          plan_apart_may_share(const plan_apart *x, const plan *p, uint32_t a, uint32_t b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - the parts of the verifier. */
#ifndef ENGINE_VERIFY_H
#define ENGINE_VERIFY_H

#include "core/storage.h"
#include "engine/engine.h"

/* verify_step.c: parses problems, asks kernels, compares operands with values; fills g->code, g->dims, g->workspace.
 * All references have been checked. */
sinter_status engine_verify_steps(env *e, engine *g);
/* verify_scope.c: late symbols have one binder, and are known where they are needed; fills g->binder. */
sinter_status engine_verify_scopes(env *e, engine *g);
/* verify_plan.c: the data flow of each profile, in some of its shapes. Steps have been verified. */
sinter_status engine_verify_plan(env *e, const engine *g);

#endif

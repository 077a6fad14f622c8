/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - the data flow of a plan: is every byte written before it is read, and still there when it is? */
#ifndef ENGINE_FLOW_H
#define ENGINE_FLOW_H

#include "engine/engine.h"

/* verify_flow.c: for one shape. dim_at: the value of each expression, INT64_MIN where it has none. Steps have been
 * verified. Fails with INVALID_MODEL, naming the value and the steps. */
sinter_status engine_check_flow(env *e, const engine *g, const engine_profile *p, arena *scratch,
                                const int64_t *dim_at);

#endif

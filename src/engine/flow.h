/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - the data flow of a plan: is every byte written before it is read, and still there when it is? */
#ifndef ENGINE_FLOW_H
#define ENGINE_FLOW_H

#include "core/storage.h"
#include "engine/engine.h"

/* verify_flow.c: for one shape. dim_at: the value of each expression, INT64_MIN where it has none. Steps have been
 * verified. Fails with INVALID_MODEL, naming the value and the steps. */
sinter_status engine_check_flow(env *e, const engine *g, const engine_profile *p, arena *scratch,
                                const int64_t *dim_at);

/* verify_places.c: which storages of the slab are in use. Slab storages of each place by offset, and a tree over them:
 * the furthest end of those in use. */
#define NOBODY UINT32_MAX
typedef struct flow_places {
    const engine_storage *storage;          /* of the profile */
    uint32_t *sorted[PLACE_COUNT], *position;
    uint32_t  count[PLACE_COUNT], leaves[PLACE_COUNT];
    uint64_t *end[PLACE_COUNT];
} flow_places;
sinter_status flow_places_init(flow_places *x, env *e, const engine *g, const engine_profile *p, arena *a);
void          flow_place_set(flow_places *x, uint32_t storage, bool is_used);
/* Another storage in use with bytes where `storage` lies, which is not in use itself afterwards; NOBODY: none. */
uint32_t      flow_place_other(flow_places *x, uint32_t storage);

#endif

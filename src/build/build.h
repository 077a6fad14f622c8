/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - the builder: import, optimise, tune, plan, write. */
#ifndef BUILD_BUILD_H
#define BUILD_BUILD_H

#include "sinter/build.h"
#include "base/env.h"

typedef struct build_model {
    const uint8_t *bytes;
    size_t         size;
    const char    *folder;              /* where external data may lie; NULL: nowhere */
    const char    *name;
} build_model;

/* Which of the ops that could be lowered to a narrower type are; by their order in the graph. */
typedef struct build_lowering {
    uint8_t *is_kept;                   /* [count]: stays in f32; NULL: none does */
    uint32_t count;                     /* how many there are; build_once sets it */
} build_lowering;

sinter_status build_engine(env *e, const build_model *m, const sinter_build_options *o, uint8_t **out,
                           size_t *out_size);
/* The same without a look at what the lowering did to the results. */
sinter_status build_once(env *e, const build_model *m, const sinter_build_options *o, build_lowering *lowering,
                         uint8_t **out, size_t *out_size);

/* budget.c: marks the ops that may not be lowered if the outputs are to stay within the budget. */
sinter_status build_budget(env *e, const build_model *m, const sinter_build_options *o, build_lowering *lowering);

#endif

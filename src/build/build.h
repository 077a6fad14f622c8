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
    bool           is_mapped;           /* bytes are a mapped file */
} build_model;

/* Which of the ops that could be lowered are; by their order in the graph. */
typedef struct build_choice {
    uint8_t *is_kept;                   /* [size]: stays in f32; NULL: none does */
    uint32_t size, count;               /* count: how many there are; build_once sets it */
} build_choice;

/* Products whose data become outputs, behind the model's own: [first, end) of `count`; build_once sets the last two. */
typedef struct build_taps {
    size_t   size_max;                  /* bytes of all of them; one is always taken */
    uint32_t first, end, count;
} build_taps;

/* How a graph is lowered, and what is known of it. */
typedef struct build_lowering {
    build_choice narrow, quantize;      /* to a narrower float; products with constant weights to 8 bits */
    float       *range;                 /* [range_count], of all such products: what 8 bits are to hold of the data */
    uint32_t     range_count;
    build_taps  *taps;                  /* NULL: none */
    bool         is_trial;              /* what the data's choices are made from is put out too */
    bool         has_integers;          /* products of quantised numbers are done on the integers, as the target does */
    double       moved, limit;          /* how far the outputs moved, and might have; < 0: nothing was compared */
} build_lowering;

sinter_status build_engine(env *e, const build_model *m, const sinter_build_options *o, uint8_t **out,
                           size_t *out_size);
/* The same without a look at what the lowering did to the results. */
sinter_status build_once(env *e, const build_model *m, const sinter_build_options *o, build_lowering *lowering,
                         uint8_t **out, size_t *out_size);

/* timings.c: INVALID_ARG where the path holds something else than a timing cache. */
sinter_status build_timings_check(env *e, const char *path);
/* Writes what was measured to the timing cache that the options name. `report` (may be NULL) says why that failed. */
struct timing_cache;
sinter_status build_timings_keep(env *e, struct timing_cache *cache, const sinter_build_options *o,
                                 sinter_build_report *report);

/* calibrate.c: the ranges. */
sinter_status build_calibrate(env *e, const build_model *m, const sinter_build_options *o, build_lowering *lowering);
/* budget.c: marks what may not be lowered if the outputs are to stay within the budget. */
sinter_status build_budget(env *e, const build_model *m, const sinter_build_options *o, build_lowering *lowering);

#endif

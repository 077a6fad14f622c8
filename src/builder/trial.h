/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h - the model built for the CPU and run on the caller's samples, to see what a lowering does or what numbers
 * there are. */
#ifndef BUILD_TRIAL_H
#define BUILD_TRIAL_H

#include "builder/begin.h"
#include "base/arena.h"
#include "core/view.h"

typedef struct trial {
    env                 *e;
    const build_model   *m;
    const sinter_build_options *asked;  /* the caller's */
    sinter_build_options o;             /* of the CPU's builds; .sample: the inputs; none: one run on seeded inputs */
    uint32_t             samples;       /* runs of an engine in a pass, at least one */
    uint32_t             passes, pass;  /* how often an engine runs all samples, and which time it is */
    const char          *phase;         /* of progress */
    double               jitter;        /* float inputs are changed by this share of themselves */
    uint32_t             builds;
    build_base          *base;          /* the base of all builds; NULL: none was made */
    const sinter_profile *profile;      /* the caller's, where a smaller one is tried */
    arena                a;
} trial;

/* One output after a run. comes_last: how many outputs there are behind it; is_compared: floats, of a size that the
 * inputs decide. */
typedef sinter_status (*trial_see)(void *user, uint32_t sample, uint32_t output, uint32_t comes_last, bool is_compared,
                                   const view *v);

/* The most samples that are run; UINT32_MAX: all. */
sinter_status trial_init(trial *t, env *e, const build_model *m, const sinter_build_options *o, uint32_t samples_max);
void          trial_deinit(trial *t);
/* Builds with these permissions and runs each sample `passes` times, in order. */
sinter_status trial_run(trial *t, uint32_t allow, build_lowering *lowering, trial_see see, void *user);
/* The same, but a model that refuses its inputs is no failure: `why` gets its message, or stays empty. */
sinter_status trial_try(trial *t, uint32_t allow, build_lowering *lowering, trial_see see, void *user,
                        sinter_error *why);
/* The first trial, of the unlowered model. If all inputs are seeded, a refusal is no failure (trial_try). Samples and
 * promised values that do not fit are the caller's mistake (trial_run). */
sinter_status trial_first(trial *t, uint32_t allow, build_lowering *lowering, trial_see see, void *user,
                          sinter_error *why);

#endif

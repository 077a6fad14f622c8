/* SPDX-License-Identifier: Apache-2.0 */
/* builder.h - the builder: import, optimise, tune, plan, write. */
#ifndef BUILD_BUILD_H
#define BUILD_BUILD_H

#include "sinter/calibrate.h"
#include "base/arena.h"

typedef struct build_model {
    const uint8_t *bytes;
    size_t         size;
    const char    *folder;              /* where external data may lie; NULL: nowhere */
    const char    *name;
    bool           is_mapped;           /* bytes are a mapped file */
    struct sinter_network *network;     /* instead of bytes; NULL: none */
} build_model;

/* Which of the ops that could be lowered are lowered, in graph order. */
typedef struct build_choice {
    uint8_t *is_kept;                   /* [size]: stays in f32; NULL: none does */
    uint32_t size, count;               /* count: how many there are; build_once sets it */
    const struct tune_gains *gains;     /* why ops that would not be faster stay; NULL: nobody asked */
    bool     is_cut;                    /* others stay because they change the outputs too much */
} build_choice;

/* The device that the engine is for, and the measurements on it. Lives from the first question to the last build. */
typedef struct build_target {
    const struct backend *backend;
    struct device        *device;
    struct timing_cache  *cache;
    arena                 a;
} build_target;

/* A build that only asks: the passes run up to the lowering of types, and the device is asked which ops gain. Products
 * are asked about first. If some are to be quantised, the other ops are asked about afterwards. */
typedef struct build_asking {
    bool               wants_quantize, wants_narrow;
    struct tune_gains *quantize, *narrow;
} build_asking;

/* The imported model after the passes that all of its builds share (begin.h). */
typedef struct build_base build_base;

/* How a graph is lowered, and what is known of it. */
typedef struct build_lowering {
    build_base  *base;                  /* of builds for the target */
    build_choice narrow, quantize;      /* to a narrower float; products with constant weights to 8 bits */
    const sinter_calibration *calibration; /* ranges for 8 bits; NULL: nothing is quantised */
    sinter_calibration *found;          /* the calibration if the build made it */
    double      *range;                 /* [range_count], of all such products: build_ranges; NULL: not looked up yet */
    uint32_t     range_count;
    struct tune_taps *taps;             /* tensors that become outputs; NULL: none */
    build_target *target;               /* NULL: build_once opens its own, as it does for trials and taps */
    build_asking *asking;               /* NULL: it is a build */
    bool         is_last;               /* the build takes the base's graph: no other follows */
    bool         is_trial;              /* inputs of data-dependent selections become outputs too */
    bool         has_integers;          /* quantised products use integer kernels, as on the target */
    bool         is_judged;             /* the budget was looked at: something is lowered */
    uint32_t     rounding, contractions; /* steps with kernels that round f32 operands, of all products */
    char         unrun[256];            /* why the model refused seeded inputs; "": it ran, or had no need to */
    double       moved, limit;          /* change of the outputs, and its limit; < 0: nothing was compared */
} build_lowering;

/* Where the engine goes: bytes, or a file that is written as weights are packed. */
typedef struct build_output {
    uint8_t          *bytes;            /* the caller's to free; NULL where there is a file */
    size_t            size;
    struct os_output *file;             /* NULL: bytes */
} build_output;
sinter_status build_engine(env *e, const build_model *m, const sinter_build_options *o, build_output *out);
/* A build from a base, lowered as `lowering` says. */
sinter_status build_once(env *e, build_base *base, const sinter_build_options *o, build_lowering *lowering,
                         build_output *out);
/* Reports progress; CANCELLED where the caller stops the build. */
sinter_status build_progress(env *e, const sinter_build_options *o, const char *phase, double done);
/* Adds the seconds since `start`, which begins anew. */
void          build_time_add(uint64_t *start, double *to);

/* The backend and the device that the options name. */
sinter_status build_backend(env *e, const sinter_build_options *o, const struct backend **out);
bool          build_has(const sinter_build_options *o, uint32_t trait);     /* BACKEND_… of that backend */
bool          build_is_reference(const sinter_build_options *o);
struct device_options build_device_wanted(const sinter_build_options *o);

/* timings.c: INVALID_ARG where the path holds something else than a timing cache. */
sinter_status build_timings_check(env *e, const char *path);
/* Writes what was measured to the timing cache that the options name. `report` (may be NULL) says why that failed. */
struct timing_cache;
sinter_status build_timings_keep(env *e, struct timing_cache *cache, const sinter_build_options *o,
                                 sinter_build_report *report);

/* Adds the time of choosing kernels, which has its own clocks, to the report. */
struct tune_stats;
void          build_timings_report(env *e, const struct tune_stats *s, sinter_build_report *r);

/* permit.c: decides which of the permitted ops are lowered: those that are faster, as far as the budget allows. */
sinter_status build_permit(env *e, const build_model *m, const sinter_build_options *o, build_lowering *lowering);
struct ir_graph;
sinter_status build_check_samples(env *e, const struct ir_graph *g, const sinter_build_options *o);
void          build_permit_end(env *e, build_lowering *lowering);       /* gives the target back */
/* Asks which ops gain by the narrower float beside the products that are quantised by now. */
sinter_status build_ask_narrow(env *e, const sinter_build_options *o, build_lowering *lowering);
/* How many ops of a choice are lowered. 0 where the marks do not belong to this graph. */
uint32_t      build_choice_lowered(const build_choice *c);
uint32_t      build_quantized(const build_lowering *lowering);
/* Text for the engine's notes: the permissions and their result. */
const char   *build_permit_text(arena *a, const sinter_build_options *o, const build_lowering *lowering);
/* Counts the products whose kernels round operands. */
struct plan;
void          build_permit_count(const struct plan *p, build_lowering *lowering);
/* A line for each permitted type: how many ops use it, and why the others do not. */
void          build_permit_print(const sinter_build_options *o, const build_lowering *lowering, char *out, size_t size);

/* calibrate.c: runs the samples of `o` and adds ranges to `out`: those of all tensors, or of what products read. */
sinter_status build_calibrate(env *e, const build_model *m, const sinter_build_options *o,
                              const sinter_calibrate_options *how, bool is_whole, sinter_calibration *out);
/* The same with the batches of `how` and the options of how->build. */
sinter_status build_calibration(env *e, const build_model *m, const sinter_calibrate_options *how,
                                sinter_calibration *out);
/* Looks up what the products of a graph read. */
struct ir_graph;
sinter_status build_ranges(env *e, struct ir_graph *g, build_lowering *lowering);
/* budget.c: marks the ops that must not be lowered, so that the outputs stay within the budget. allow: the permissions
 * that are left. */
sinter_status build_budget(env *e, const build_model *m, const sinter_build_options *o, uint32_t allow,
                           build_lowering *lowering);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* bench_runs.h - runs an engine again and again, in one or several contexts at the same time, and keeps the times of
 * each run. `sinter bench` and `sinter exec` report them. */
#ifndef CLI_BENCH_RUNS_H
#define CLI_BENCH_RUNS_H

#include "cli_model.h"

/* One run. Times in seconds since the measurement began; the last three are durations by the device's clock, if phases
 * are measured. Where a run cannot be started without waiting for it, `enqueued` is `end`. */
typedef struct query {
    double start, enqueued, end, copy_in, compute, copy_out;
} query;

typedef struct measure_plan {
    uint32_t streams;           /* contexts, at least 1 */
    bool     has_threads;       /* each context has a thread; else one thread starts the runs of all */
    bool     is_spinning;       /* polls for the end of a run */
    bool     has_phases;        /* measures copies and computation apart */
    bool     has_transfers;     /* inputs and outputs are in pinned host memory; else in the device's */
    double   warm_up_s, duration_s, sleep_s, idle_s;
    uint64_t iterations;        /* rounds at least, of one run in each context */
    uint32_t warm_up_least;     /* rounds of the warm-up at least */
    uint64_t seed;              /* of random inputs; all contexts have the same */
    progress *bar;              /* NULL: none */
} measure_plan;

typedef struct measured {
    query   *at;                /* in the order of their start, of all contexts */
    uint32_t count;
    bool     is_async;          /* the host starts runs and waits for them later */
    double   ready_s;           /* of making the first context */
    double   first_s;           /* of its first run */
    double   wall_s;            /* from the first start to the last end */
    double   warm_up_s;
    uint32_t warm_up_runs;
    size_t   memory;            /* bytes of one context */
} measured;

/* Contexts with their memory. */
typedef struct measure_set measure_set;
/* Makes the contexts, runs each once, and measures. The set keeps the contexts, for what their last runs have left. */
sinter_status measure(const model_engine *m, const measure_plan *plan, measure_set **set, measured *out,
                      sinter_error *error);
sinter_context *measure_context(const measure_set *set, uint32_t index);
const model_inputs *measure_inputs(const measure_set *set);     /* random ones, which all contexts have */
void measure_close(measure_set *set);           /* NULL is accepted */
void measured_free(measured *out);

/* One more run of a context, with room made in its state for as many rows as it takes. */
sinter_status measure_once(sinter_context *c, sinter_error *error);

/* The steps of the chosen profile in the order of their execution, with their times. The names belong to the engine. */
typedef struct step_list { sinter_step_time *at; sinter_step_work *work; uint32_t count; uint64_t total_ns; } step_list;
/* Runs in a context of its own for a second at least, or until three runs of `run_s` seconds are over. The caller frees
 * out->at and out->work. */
sinter_status measure_steps(const model_engine *m, uint64_t seed, double run_s, step_list *out, sinter_error *error);
double        step_mean_us(const sinter_step_time *t);
double        step_share(const step_list *p, const sinter_step_time *t);

/* Sorted numbers. */
typedef struct series { double *at; uint32_t count; } series;
void   series_sort(series *s);
double series_mean(const series *s);
double series_percentile(const series *s, double share);        /* linear between the two nearest */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* roofline.h - each step's time beside the least time that its work could take: `sinter bench --roofline`. */
#ifndef CLI_ROOFLINE_H
#define CLI_ROOFLINE_H

#include "bench_runs.h"
#include "print.h"

typedef struct roof_step {
    sinter_step_time step;
    sinter_step_work work;
    double      us, floor_us, share;    /* us: least of all runs; share: floor over time; 0: the step did not run */
    const char *bound;                  /* what the floor comes from: "compute", "memory", "" where there is no work */
} roof_step;

typedef struct roofline {
    roof_step   *at;                    /* in the order of execution */
    uint32_t     count;
    sinter_rates rates;
    double       us, floor_us, share;   /* sums, and their ratio */
} roofline;

/* Measures the machine. */
sinter_status roofline_make(const model_engine *m, const step_list *list, roofline *out, sinter_error *error);
void          roofline_free(roofline *r);
void          roofline_print(const roofline *r);
void          roofline_json(const roofline *r, json *j);
bool          roofline_page(const roofline *r, const char *title, const char *path);    /* false: reported */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* html_report.h - what the page of `sinter report` shows, and its drawings. */
#ifndef CLI_HTML_REPORT_H
#define CLI_HTML_REPORT_H

#include "bench_runs.h"
#include "html_page.h"

/* A storage that a step reads or writes. */
typedef struct report_use { uint32_t storage; bool is_result, is_weight; } report_use;

typedef struct report_step {
    char       *name, *kernel, *tactic, *problem, *where;
    report_use *use;
    uint32_t    uses;
    double      mean_us, share;         /* 0 without times */
} report_step;

/* A result in the slab: bytes [at, at + size) in steps [first, last]. */
typedef struct report_block { uint32_t storage, first, last; double at, size; bool is_used; } report_block;

typedef struct report_page {
    FILE         *to;
    report_step  *step;
    uint32_t      steps;
    report_block *block;
    uint32_t      blocks;
    double        slab;                 /* bytes */
    double        most_share;           /* of a step */
    bool          has_times;
} report_page;

/* SVG: boxes for steps, lines from the step that writes a storage to those that read it; at most GRAPH_MAX steps. */
enum { GRAPH_MAX = 1500 };
void report_graph(const report_page *p);
/* SVG: what the slab holds at each step, and where. */
void report_memory(const report_page *p);
/* SVG: how often runs took how long. */
void report_histogram(FILE *to, const series *run);

#endif

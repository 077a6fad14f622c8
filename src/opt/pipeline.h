/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - the optimiser: an ordered list of passes over a graph, none of which looks at a backend. */
#ifndef OPT_PIPELINE_H
#define OPT_PIPELINE_H

#include "ir/graph.h"

typedef enum opt_math { OPT_MATH_EXACT, OPT_MATH_FP32, OPT_MATH_RELAXED } opt_math;

typedef struct opt_options {
    opt_math    math;
    const char *disabled;               /* "-conv-scale,-gelu-erf" (the minus may be left out); NULL: none */
    uint64_t    rule_limit;             /* rules stop to fire after so many; 0: no limit */
    const char *stop_after;             /* name of the last pass to run; NULL: all */
    bool        integers;               /* products of quantised numbers are done on the integers */
    bool        prologues;              /* contractions take them, too */
    bool        verify;                 /* after each pass */
    void      (*dump)(void *user, const char *pass, const ir_graph *g);   /* after each pass; NULL: none */
    void       *dump_user;
    void      (*fired)(void *user, const char *rule);                     /* each firing; NULL: nobody listens */
    void       *fired_user;
} opt_options;

struct rule;
typedef struct opt_state { env *e; ir_graph *g; const opt_options *o; uint64_t fired; } opt_state;
enum { PASS_TABLES = 8 };
typedef struct pass {
    const char         *name;
    const struct rule  *rules[PASS_TABLES];      /* either these… */
    sinter_status     (*run)(opt_state *s);      /* …or this */
    ir_stage            stage;                   /* what the graph satisfies afterwards */
    bool                is_for_integers;         /* only where the options ask for them */
} pass;
extern const pass opt_pipeline[];                /* ends with name NULL */

sinter_status opt_run(env *e, ir_graph *g, const opt_options *options);
/* Does each word of `disabled` name a rule? INVALID_ARG names the first that does not. */
sinter_status opt_rules_check(env *e, const char *list);
/* Runs the pass of this name alone, as the pipeline would. INVALID_ARG where there is none. */
sinter_status opt_run_pass(env *e, ir_graph *g, const opt_options *options, const char *name);
/* Runs these rule tables (ends with NULL) until none fires: what a rule pass does. */
sinter_status opt_rules_run(opt_state *s, const struct rule *const *tables);

sinter_status pass_cse(opt_state *s);
sinter_status pass_horizontal(opt_state *s);
sinter_status pass_groups(opt_state *s);

#endif

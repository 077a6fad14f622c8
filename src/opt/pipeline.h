/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - the optimiser: an ordered list of passes over a graph, none of which looks at a backend. pipeline.c
 * shows the whole order, with the points where the builder lowers types. */
#ifndef OPT_PIPELINE_H
#define OPT_PIPELINE_H

#include "ir/graph.h"

typedef enum opt_math { OPT_MATH_EXACT, OPT_MATH_FP32, OPT_MATH_RELAXED } opt_math;

struct opt_state;
/* The points of the pipeline at which somebody else changes the graph. */
typedef enum opt_point { OPT_PASS, OPT_QUANTIZE, OPT_LOWER } opt_point;

typedef struct opt_options {
    opt_math    math;
    const char *disabled;               /* "-conv-scale,-gelu-erf" (the minus may be left out); NULL: none */
    uint64_t    rule_limit;             /* rules stop to fire after so many; 0: no limit */
    uint64_t    fired_before;           /* so many fired in passes before `after` */
    uint64_t   *fired_count;            /* how many fired, with those; may be NULL */
    const char *after;                  /* the passes up to this one have run before; NULL: none has */
    const char *stop_after;             /* name of the last pass to run; NULL: all */
    /* Called at each point but OPT_PASS. *is_changed: the graph was, so passes that follow up are needed. It may set
     * s->integers. NULL: the points are passed over. */
    sinter_status (*at_point)(void *user, opt_point point, struct opt_state *s, bool *is_changed);
    void       *point_user;
    bool        integers;               /* products of quantised numbers are done on the integers */
    bool        is_unsigned;            /* where integers: data without a sign, and zero points of both factors */
    bool        prologues;              /* contractions take them, too */
    bool        is_portable;            /* runs opt_portable in the place of opt_pipeline */
    bool        verify;                 /* after each pass */
    void      (*dump)(void *user, const char *pass, const ir_graph *g);   /* after each pass; NULL: none */
    void       *dump_user;
    void      (*fired)(void *user, const char *rule);                     /* each firing; NULL: nobody listens */
    void       *fired_user;
} opt_options;

struct rule;
typedef struct opt_state {
    env *e;
    ir_graph *g;
    const opt_options *o;
    uint64_t fired;
    bool integers;                               /* of the options, or as a point sets it */
    bool is_lowered;                             /* OPT_LOWER changed the graph */
} opt_state;
typedef enum pass_when { ALWAYS, FOR_INTEGERS, FOR_UNSIGNED, WHEN_LOWERED } pass_when;
enum { PASS_TABLES = 8 };
typedef struct pass {
    const char         *name;
    const struct rule  *rules[PASS_TABLES];      /* either these… */
    sinter_status     (*run)(opt_state *s);      /* …or this… */
    opt_point           point;                   /* …or what is done here */
    pass_when           when;
    ir_stage            stage;                   /* what the graph satisfies afterwards */
} pass;
extern const pass opt_pipeline[];                /* ends with name NULL */
/* The passes that make a graph smaller on every runtime: what a simplified model is made by. */
extern const pass opt_portable[];
/* The last pass that depends on no device and no lowering: what builds of one model have in common ends here. */
extern const char opt_common_end[];

sinter_status opt_run(env *e, ir_graph *g, const opt_options *options);
/* Does each word of `disabled` name a rule? INVALID_ARG names the first that does not. */
sinter_status opt_rules_check(env *e, const char *list);
/* Runs these rule tables (ends with NULL) until none fires: what a rule pass does. */
sinter_status opt_rules_run(opt_state *s, const struct rule *const *tables);

sinter_status pass_state(opt_state *s);
sinter_status pass_cse(opt_state *s);
sinter_status pass_horizontal(opt_state *s);
sinter_status pass_rows(opt_state *s);
/* Does `v` reach attention through what moves numbers or works on each alone? Found within some steps, or not. */
bool          opt_reaches_attention(const ir_graph *g, ir_value_id v, arena *a);
sinter_status pass_groups(opt_state *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - what the optimiser does, in order. */
#include "opt/rewrite.h"

#include <string.h>

/* clang-format off */
const pass opt_pipeline[] = {
    { "canonicalize", { rules_shape }, NULL, IR_STAGE_OPTIMIZED, false },
    { "cse",          { NULL }, pass_cse, IR_STAGE_OPTIMIZED, false },
    { "recognize",    { rules_activation, rules_norm, rules_attention, rules_shape }, NULL, IR_STAGE_OPTIMIZED, false },
    { "linear",       { rules_arith, rules_linear, rules_activation, rules_shape }, NULL, IR_STAGE_OPTIMIZED, false },
    { "norm",         { rules_norm, rules_attention, rules_arith, rules_shape }, NULL, IR_STAGE_OPTIMIZED, false },
    { "strength",     { rules_strength, rules_sink, rules_arith, rules_linear, rules_requantize, rules_shape }, NULL,
      IR_STAGE_OPTIMIZED, false },
    { "integers",     { rules_integer, rules_requantize, rules_shape }, NULL, IR_STAGE_OPTIMIZED, true },
    { "horizontal",   { NULL }, pass_horizontal, IR_STAGE_OPTIMIZED, false },
    { "cse-again",    { NULL }, pass_cse, IR_STAGE_OPTIMIZED, false },
    { "groups",       { NULL }, pass_groups, IR_STAGE_GROUPED, false },
    { .name = NULL },
};
/* clang-format on */

static sinter_status run_one(opt_state *s, const pass *p)
{
    if (p->is_for_integers && !s->o->integers) return SINTER_OK;
    const sinter_status status = p->run ? p->run(s) : opt_rules_run(s, p->rules);
    if (status) return NOTE(s->e, status, "while optimising (pass %s)", p->name);
    if (env_logs(s->e, LOG_OPT))
        env_log(s->e, LOG_OPT, "pass %s done, %llu rules fired so far", p->name, (unsigned long long)s->fired);
    if (s->o->verify) {
        const sinter_status verified = ir_verify(s->g, p->stage);
        if (verified) return NOTE(s->e, verified, "while checking the graph after pass %s", p->name);
    }
    if (s->o->dump) s->o->dump(s->o->dump_user, p->name, s->g);
    return SINTER_OK;
}

sinter_status opt_run(env *e, ir_graph *g, const opt_options *options)
{
    opt_state s = { .e = e, .g = g, .o = options };
    if (options->stop_after) {
        const pass *p = opt_pipeline;
        while (p->name && strcmp(p->name, options->stop_after)) p++;
        if (!p->name) return FAIL(e, INVALID_ARG, "there is no pass named %s", options->stop_after);
    }
    for (const pass *p = opt_pipeline; p->name; p++) {
        TRY(run_one(&s, p));
        if (options->stop_after && !strcmp(p->name, options->stop_after)) break;
    }
    return SINTER_OK;
}

sinter_status opt_run_pass(env *e, ir_graph *g, const opt_options *options, const char *name)
{
    opt_state s = { .e = e, .g = g, .o = options };
    for (const pass *p = opt_pipeline; p->name; p++)
        if (!strcmp(p->name, name)) return run_one(&s, p);
    return FAIL(e, INVALID_ARG, "there is no pass named %s", name);
}

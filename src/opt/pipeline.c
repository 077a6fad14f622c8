/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - what happens to a graph between the importer and the choice of kernels, in order.
 *
 * Rows with a point are the builder's: it quantises products before the rules for integers, and lowers other types
 * between all rules and the groups, so that the casts that are left fuse. */
#include "opt/rewrite.h"

#include <string.h>

const char opt_common_end[] = "state";

/* clang-format off */
const pass opt_pipeline[] = {
    { "canonicalize",         .rules = { rules_shape } },
    { "cse",                  .run = pass_cse },
    { "recognize",            .rules = { rules_activation, rules_norm, rules_attention, rules_shape } },
    { "linear",               .rules = { rules_arith, rules_linear, rules_activation, rules_shape } },
    { "norm",                 .rules = { rules_norm, rules_attention, rules_arith, rules_shape } },
    { "rows",                 .run = pass_rows },
    { "strength",             .rules = { rules_strength, rules_sink, rules_arith, rules_linear, rules_requantize,
                                         rules_attention, rules_shape } },
    { "state",                .run = pass_state },
    { "quantize",             .point = OPT_QUANTIZE },
    { "unsigned",             .rules = { rules_unsigned, rules_requantize, rules_shape }, .when = FOR_UNSIGNED },
    { "integers",             .rules = { rules_integer, rules_requantize, rules_shape }, .when = FOR_INTEGERS },
    { "moves",                .rules = { rules_move, rules_sink } },
    { "turns",                .rules = { rules_turn, rules_shape } },
    { "sinks",                .rules = { rules_sink_turned, rules_sink, rules_shape } },
    { "horizontal",           .run = pass_horizontal },
    { "cse-again",            .run = pass_cse },
    { "lower",                .point = OPT_LOWER },
    { "canonicalize-lowered", .rules = { rules_shape }, .when = WHEN_LOWERED },
    { "cse-lowered",          .run = pass_cse, .when = WHEN_LOWERED },
    { "groups",               .run = pass_groups, .stage = IR_STAGE_GROUPED },
    { .name = NULL },
};

const pass opt_portable[] = {
    { "canonicalize",         .rules = { rules_shape } },
    { "cse",                  .run = pass_cse },
    { "recognize",            .rules = { rules_activation, rules_norm, rules_shape } },
    { "linear",               .rules = { rules_arith, rules_linear, rules_activation, rules_shape } },
    { "norm",                 .rules = { rules_norm, rules_arith, rules_shape } },
    { "cse-again",            .run = pass_cse },
    { .name = NULL },
};
/* clang-format on */

static bool is_wanted(const opt_state *s, const pass *p)
{
    if (p->point) return s->o->at_point != NULL;
    if (p->when == FOR_UNSIGNED) return s->integers && s->o->is_unsigned;
    return p->when == ALWAYS || (p->when == FOR_INTEGERS ? s->integers : s->is_lowered);
}

static sinter_status run_one(opt_state *s, const pass *p)
{
    bool is_changed = !p->point;
    sinter_status status;
    if (p->point) status = s->o->at_point(s->o->point_user, p->point, s, &is_changed);
    else status = p->run ? p->run(s) : opt_rules_run(s, p->rules);
    if (status) return NOTE(s->e, status, "while optimising (pass %s)", p->name);
    if (!is_changed) return SINTER_OK;
    s->is_lowered = s->is_lowered || p->point == OPT_LOWER;
    if (env_logs(s->e, LOG_OPT))
        env_log(s->e, LOG_OPT, "pass %s done, %llu rules fired so far", p->name, (unsigned long long)s->fired);
    const ir_stage stage = p->stage ? p->stage : IR_STAGE_OPTIMIZED;
    if (s->o->verify) {
        const sinter_status verified = ir_verify(s->g, stage);
        if (verified) return NOTE(s->e, verified, "while checking the graph after pass %s", p->name);
    }
    if (s->o->dump) s->o->dump(s->o->dump_user, p->name, s->g);
    return SINTER_OK;
}

static const pass *pass_find(const pass *p, const char *name)
{
    while (p->name && strcmp(p->name, name)) p++;
    return p->name ? p : NULL;
}

sinter_status opt_run(env *e, ir_graph *g, const opt_options *options)
{
    const pass *list = options->is_portable ? opt_portable : opt_pipeline, *first = list, *last = NULL;
    if (options->after) first = pass_find(list, options->after);
    if (options->stop_after) last = pass_find(list, options->stop_after);
    if (!first) return FAIL(e, INVALID_ARG, "there is no pass named %s", options->after);
    if (options->stop_after && !last) return FAIL(e, INVALID_ARG, "there is no pass named %s", options->stop_after);
    opt_state s = { .e = e, .g = g, .o = options, .integers = options->integers, .fired = options->fired_before };
    for (const pass *p = options->after ? first + 1 : first; p->name; p++) {
        if (is_wanted(&s, p)) TRY(run_one(&s, p));
        if (p == last) break;
    }
    if (options->fired_count) *options->fired_count = s.fired;
    return SINTER_OK;
}

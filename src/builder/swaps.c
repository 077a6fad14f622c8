/* SPDX-License-Identifier: Apache-2.0 */
/* swaps.c - see swaps.h. */
#include "builder/swaps.h"

#include <string.h>

static const double worth = 1.3;

bool swaps_on_device(const plan_step *s)
{
    const kernel *k = s->kernel;
    return s->kind == STEP_KERNEL && k->where == KERNEL_ON_DEVICE;
}

/* Is the step's time independent of a state's length? Else it is not swapped: the state is empty in the measurement. */
static bool may_swap(const plan_step *s)
{
    const problem *p = s->problem;
    return p->op != OP_attention || p->count_in < 5 || p->in[4].dtype == SINTER_DTYPE_NONE;
}

bool swaps_equal(const choice *a, const choice *b)
{
    return a->kernel == b->kernel && !memcmp(a->tactic.at, b->tactic.at, sizeof a->tactic.at);
}

choice swaps_now(const plan_step *s)
{
    choice own = { .kernel = s->kernel };
    memcpy(own.tactic.at, s->tactic, sizeof own.tactic.at);
    return own;
}

/* Lists the choice with each possible start time of the next kernel, its own included, earliest first. */
uint32_t swaps_let_in(const tune_result *t, const plan_step *s, const choice *c, choice list[LET_INS])
{
    tactic_sink sink = { .count = 0 };
    uint32_t count = 0;
    if (c->kernel->lets_in) c->kernel->lets_in(&c->tactic, &sink);
    for (uint32_t i = 0; i < sink.count && count < LET_INS; i++)
        if (tune_swap_fits(t, s, c->kernel, &sink.at[i]))
            list[count++] = (choice){ .kernel = c->kernel, .tactic = sink.at[i] };
    return count;
}

sinter_status swaps_others(env *e, const tune_options *o, const tune_result *t, const plan_step *s, choice *list,
                           uint32_t *count)
{
    choice all[ALTERNATIVES + 2];
    const choice own = swaps_now(s);
    uint32_t found = 0;
    *count = 0;
    if (!may_swap(s)) return SINTER_OK;
    TRY(tune_alternatives(e, s->problem, o, worth, all, ALTERNATIVES + 2, &found));
    for (uint32_t i = 0; i < found && *count < ALTERNATIVES; i++)
        if (!swaps_equal(&all[i], &own) && tune_swap_fits(t, s, all[i].kernel, &all[i].tactic))
            list[(*count)++] = all[i];
    return SINTER_OK;
}

/* All that a search may put into a step. */
sinter_status swaps_all(env *e, const tune_options *o, const tune_result *t, const plan_step *s, choice *list,
                        uint32_t *count)
{
    choice other[ALTERNATIVES + 1] = { swaps_now(s) }, all[LET_INS];
    uint32_t others = 0;
    *count = 0;
    TRY(swaps_others(e, o, t, s, other + 1, &others));
    for (uint32_t i = 0; i <= others; i++) {
        const uint32_t known = swaps_let_in(t, s, &other[i], all);
        if (i) list[(*count)++] = other[i];
        for (uint32_t k = 0; k < known; k++)
            if (!swaps_equal(&all[k], &other[i]) && !swaps_equal(&all[k], &other[0])) list[(*count)++] = all[k];
    }
    return SINTER_OK;
}

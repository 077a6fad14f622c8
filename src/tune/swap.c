/* SPDX-License-Identifier: Apache-2.0 */
/* swap.c - another kernel or tactic for a step of a finished plan: which there are, and putting one in.
 *
 * The problem stays, and with it all layouts and places: only the packed weights differ. */
#include "tune/tune.h"

#include <string.h>

uint32_t tune_swap_source(const tune_result *t, uint32_t value)
{
    const plan_storage *s = &t->plan->storage.at[t->plan->value.at[value].storage];
    if (s->kind != STORAGE_WEIGHT || !s->recipe) return value;
    const weight_recipe *r = &t->recipe.at[s->recipe];
    return r->step ? r->value : value;
}

bool tune_swap_fits(const tune_result *t, const plan_step *s, const kernel *k, const tactic *x)
{
    const kernel *now = s->kernel;
    const problem *p = s->problem;
    if (k->where != now->where || k->is_in_place != now->is_in_place || k->out_strides != now->out_strides ||
        k->updates_in_place != now->updates_in_place || !k->check(p, x))
        return false;
    for (uint32_t i = 0; i < p->count_in && i < s->count_in; i++) {
        view unused;
        if (!p->in[i].is_const || !s->in[i]) continue;
        const uint32_t source = tune_swap_source(t, s->in[i]);
        const bool was_packed = source != s->in[i], is_packed = k->pack_size && k->pack_size(p, x, i);
        /* A weight that was packed may lie on the device as the kernel packed it alone. */
        if (was_packed != is_packed || (is_packed && !tune_const_view(t->plan, source, &unused))) return false;
    }
    return true;
}

bool tune_lets_in_alone(const kernel *k, const tactic *a, const tactic *b)
{
    tactic_sink list = { .count = 0 };
    if (k->lets_in) k->lets_in(a, &list);
    for (uint32_t i = 0; i < list.count; i++)
        if (!memcmp(list.at[i].at, b->at, sizeof b->at)) return true;
    return false;
}

/* Packs a separate weight for the step, because another step may use the old one. */
static sinter_status pack_again(env *e, tune_result *t, uint32_t step, uint32_t input, size_t size, uint32_t *value)
{
    plan *p = t->plan;
    const plan_value old = p->value.at[*value];
    const weight_recipe recipe = t->recipe.at[p->storage.at[old.storage].recipe];
    const uint32_t storage = plan_storage_new(p, STORAGE_WEIGHT, dim_const(p->dims, (int64_t)size));
    weight_recipe *r = VEC_PUSH(p->a, &t->recipe);
    const uint8_t *stand_in = ARENA_NEW(p->a, uint8_t, 1); /* weights are told apart by their data */
    plan_value *slot = storage && r && stand_in ? VEC_PUSH(p->a, &p->value) : NULL;
    if (!slot || dim_table_failed(p->dims)) return FAIL_MEMORY(e, "packed weights");
    *r = recipe;
    r->step = step;
    r->input = input;
    p->storage.at[storage].data = stand_in;
    p->storage.at[storage].recipe = t->recipe.count - 1;
    *slot = old;
    slot->storage = storage;
    *value = p->value.count - 1;
    return SINTER_OK;
}

sinter_status tune_swap(env *e, tune_result *t, uint32_t step, const kernel *k, const tactic *x)
{
    plan_step *s = &t->plan->step.at[step];
    const problem *p = s->problem;
    tactic now;
    memcpy(now.at, s->tactic, sizeof now.at);
    if (k == s->kernel && tune_lets_in_alone(k, &now, x)) {
        memcpy(s->tactic, x->at, sizeof s->tactic);
        return SINTER_OK;
    }
    uint32_t *in = ARENA_NEW(t->plan->a, uint32_t, s->count_in);
    if (!in) return FAIL_MEMORY(e, "a step");
    memcpy(in, s->in, s->count_in * sizeof *in);
    for (uint32_t i = 0; i < p->count_in && i < s->count_in; i++) {
        if (!p->in[i].is_const || !in[i] || tune_swap_source(t, in[i]) == in[i]) continue;
        TRY(pack_again(e, t, step, i, k->pack_size(p, x, i), &in[i]));
    }
    s->in = in;
    s->kernel = k;
    memcpy(s->tactic, x->at, sizeof s->tactic);
    return SINTER_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* apart.c - decides which storages may share bytes where independent steps run at the same time.
 *
 * If a storage's bytes are used again as soon as its last reader's position has passed, nearly every step has to wait
 * for the one before it. Here two storages share bytes only if all steps that touch the first have ended, by data
 * dependencies, before any step that writes the second can start. Only storages of the main region are considered:
 * other regions run one after the other. */
#include "plan/apart.h"

#include "core/storage.h"

/* Sets of steps of main, by position in it. */
typedef struct use {
    uint64_t *touch, *write;
    uint64_t *before; /* steps that have ended when its writers start */
    bool is_written, is_elsewhere;
} use;

struct plan_apart {
    uint32_t words;
    use *use; /* by storage */
    bool has_branches;
};

static void unite(uint64_t *to, const uint64_t *from, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++) to[i] |= from[i];
}

static void meet(uint64_t *to, const uint64_t *from, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++) to[i] &= from[i];
}

/* Adds the steps of a set, and all steps that ended before them, to the ended steps. */
static void wait_for(uint64_t *mine, const uint64_t *set, const uint64_t *ended, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        for (uint64_t left = set[w] & ~mine[w]; left; left &= ~mine[w]) {
            const uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(left);
            unite(mine, ended + (size_t)i * words, words);
            mine[w] |= (uint64_t)1 << i % 64;
        }
}

static bool has(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> i % 64 & 1;
}

static void put(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << i % 64;
}

/* Marks the storages that steps of other regions, or their callers, touch. */
static void mark_elsewhere(const plan *p, use *u)
{
    for (uint32_t r = 1; r < p->region.count; r++) {
        const plan_region *x = &p->region.at[r];
        for (uint32_t i = 0; i < x->step.count; i++) {
            const plan_step *s = &p->step.at[x->step.at[i]];
            if (r == 1 && s->kind == STEP_KERNEL) continue;
            for (uint32_t k = 0; k < s->count_in; k++) u[p->value.at[s->in[k]].storage].is_elsewhere = true;
            for (uint32_t k = 0; k < s->count_out; k++) u[p->value.at[s->out[k]].storage].is_elsewhere = true;
        }
        for (uint32_t k = 0; k < x->count_param; k++) u[p->value.at[x->param[k]].storage].is_elsewhere = true;
        for (uint32_t k = 0; k < x->count_result; k++) u[p->value.at[x->result[k]].storage].is_elsewhere = true;
    }
}

/* `ended` of a step: all steps of main that it waits for, by values. */
static void walk(const plan *p, plan_apart *x, uint64_t *ended)
{
    const plan_region *main = &p->region.at[1];
    const uint32_t words = x->words;
    for (uint32_t i = 0; i < main->step.count; i++) {
        const plan_step *s = &p->step.at[main->step.at[i]];
        uint64_t *mine = ended + (size_t)i * words;
        for (uint32_t k = 0; k < s->count_in; k++)
            if (s->in[k]) wait_for(mine, x->use[p->value.at[s->in[k]].storage].write, ended, words);
        if (i && s->kind == STEP_KERNEL && p->step.at[main->step.at[i - 1]].kind == STEP_KERNEL && !has(mine, i - 1))
            x->has_branches = true;
        for (uint32_t k = 0; k < s->count_out; k++) {
            use *u = &x->use[p->value.at[s->out[k]].storage];
            if (u->is_written) meet(u->before, mine, words);
            else unite(u->before, mine, words);
            u->is_written = true;
            put(u->touch, i);
            if (s->out[k]) put(u->write, i);
        }
        for (uint32_t k = 0; k < s->count_in; k++) put(x->use[p->value.at[s->in[k]].storage].touch, i);
    }
}

sinter_status plan_apart_create(env *e, arena *a, const plan *p, plan_apart **out)
{
    const uint32_t steps = p->region.at[1].step.count, storages = p->storage.count;
    plan_apart *x = *out = ARENA_NEW(a, plan_apart, 1);
    if (!x) return FAIL_MEMORY(e, "planning memory");
    x->words = (steps + 63) / 64;
    x->use = ARENA_NEW(a, use, storages);
    uint64_t *ended = ARENA_NEW(a, uint64_t, size_mul(steps, x->words)),
             *sets = ARENA_NEW(a, uint64_t, size_mul(3 * (size_t)storages, x->words));
    if (!x->use || (steps && (!ended || !sets))) return FAIL_MEMORY(e, "planning memory");
    for (uint32_t i = 0; i < storages; i++) {
        x->use[i].touch = sets + 3 * (size_t)i * x->words;
        x->use[i].write = x->use[i].touch + x->words;
        x->use[i].before = x->use[i].write + x->words;
    }
    mark_elsewhere(p, x->use);
    walk(p, x, ended);
    return SINTER_OK;
}

bool plan_apart_has_branches(const plan_apart *x)
{
    return x->has_branches;
}

static bool follows(const plan_apart *x, const use *first, const use *second)
{
    if (first->is_elsewhere || second->is_elsewhere || !second->is_written) return true;
    for (uint32_t i = 0; i < x->words; i++)
        if (first->touch[i] & ~second->before[i]) return false;
    return true;
}

bool plan_apart_may_share(const plan_apart *x, const plan *p, uint32_t a, uint32_t b)
{
    const plan_storage *s = &p->storage.at[a], *t = &p->storage.at[b];
    if (s->last < t->first) return follows(x, &x->use[a], &x->use[b]);
    return t->last < s->first && follows(x, &x->use[b], &x->use[a]);
}

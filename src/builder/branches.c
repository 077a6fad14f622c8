/* SPDX-License-Identifier: Apache-2.0 */
/* branches.c - times a profile's programs in each order that a backend knows, at the opt shapes, on zeros. Rounds take
 * turns, so that a clock that changes treats all alike; the best round of each counts. */
#include "builder/branches.h"

#include "base/hash.h"
#include "builder/descent.h"
#include "engine/engine.h"
#include "run/context.h"

#include <string.h>

enum { ROUNDS = 4 };
static const double round_ns = 2e6, worth = 0.99; /* anything but a chain has to be faster by one per cent */

static const char *const order_names[ORDER_COUNT] = { "chain", "small", "free" };

static void choose(const double *ns, tune_result *t)
{
    uint32_t best = ORDER_CHAIN;
    for (uint32_t i = 1; i < ORDER_COUNT; i++)
        if (ns[i] < ns[best] * (best == ORDER_CHAIN ? worth : 1)) best = i;
    t->order = (program_order)best;
}

/* ---- the timing cache ---- */

sinter_status branches_hash(env *e, const tune_options *o, const plan *p, uint64_t *out)
{
    uint64_t hash = 0;
    bool has_failed = false;
    text line;
    text_init(&line, e);
    for (uint32_t i = 1; i < p->step.count && !has_failed; i++) {
        const plan_step *s = &p->step.at[i];
        text_clear(&line);
        if (s->kind == STEP_KERNEL) {
            const kernel_use use = { .kernel = s->kernel, .problem = s->problem, .tactic = (const tactic *)s->tactic };
            problem_print(s->problem, &line);
            text_printf(&line, " %s.%u ", use.kernel->name, use.kernel->abi);
            if (o->backend->describe_use && use.kernel->where == KERNEL_ON_DEVICE)
                o->backend->describe_use(o->device, &use, &line);
            hash = hash64(s->tactic, sizeof s->tactic, hash);
        }
        for (uint32_t k = 0; k < s->count_in + s->count_out; k++) {
            const uint32_t v = k < s->count_in ? s->in[k] : s->out[k - s->count_in];
            const plan_storage *at = &p->storage.at[p->value.at[v].storage];
            text_printf(&line, " %u.%u@%llu", v, at->kind, at->kind == STORAGE_SLAB ? (unsigned long long)at->at : 0);
        }
        has_failed = line.failed;
        if (!has_failed) hash = hash64(line.at, line.length, hash);
    }
    text_deinit(&line);
    *out = hash;
    return has_failed ? FAIL_MEMORY(e, "a timing key") : SINTER_OK;
}

static sinter_status key_print(env *e, const tune_options *o, uint64_t hash, uint32_t order, text *key)
{
    text_clear(key);
    text_printf(key, "program %016llx | ", (unsigned long long)hash);
    o->backend->describe(o->device, key);
    text_printf(key, " | %u threads | order %s", o->threads, order_names[order]);
    return key->failed ? FAIL_MEMORY(e, "a timing key") : SINTER_OK;
}

static sinter_status find(env *e, const tune_options *o, const tune_result *t, text *key, double *ns, bool *is_known)
{
    uint64_t hash;
    TRY(branches_hash(e, o, t->plan, &hash));
    *is_known = true;
    for (uint32_t i = 0; i < ORDER_COUNT; i++) {
        TRY(key_print(e, o, hash, i, key));
        if (timing_cache_find(o->cache, key->at, &ns[i])) continue;
        *is_known = false;
        if (o->cache_only)
            return FAIL(e, INVALID_ARG, "the timing cache has no entry for '%s', and measuring is not permitted",
                        key->at);
    }
    return SINTER_OK;
}

sinter_status branches_find(env *e, const tune_options *o, tune_result *t, bool *is_known)
{
    double ns[ORDER_COUNT];
    text key;
    text_init(&key, e);
    const sinter_status s = find(e, o, t, &key, ns, is_known);
    if (s == SINTER_OK && *is_known) choose(ns, t);
    text_deinit(&key);
    return s;
}

static sinter_status keep(env *e, const tune_options *o, const tune_result *t, const double *ns)
{
    uint64_t hash;
    TRY(branches_hash(e, o, t->plan, &hash));
    text key;
    text_init(&key, e);
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; i < ORDER_COUNT && s == SINTER_OK; i++) {
        s = key_print(e, o, hash, i, &key);
        if (s == SINTER_OK) s = timing_cache_add(o->cache, key.at, ns[i]);
    }
    text_deinit(&key);
    return s;
}

/* ---- measuring ---- */

static sinter_status set_shape(context *c)
{
    for (uint32_t i = 0; i < c->g->input_count; i++) {
        sinter_io io;
        TRY(engine_io_describe(c->g, i, c->profile, &io));
        memcpy(c->input[i].dim, io.opt, sizeof io.opt);
    }
    return context_set_shape(c);
}

static sinter_status measure(context *c, double *ns)
{
    double once = 0;
    TRY(context_time(c, ORDER_CHAIN, 2, &once)); /* the first launches make what is needed */
    TRY(context_time(c, ORDER_CHAIN, 2, &once));
    const double wanted = round_ns / (once + 1);
    const uint32_t repeats = wanted < 2 ? 2 : wanted > 100 ? 100 : (uint32_t)wanted;
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < ORDER_COUNT; i++) {
            double took = 0;
            TRY(context_time(c, (program_order)i, 1, &took)); /* makes the graph */
            TRY(context_time(c, (program_order)i, repeats, &took));
            if (!round || took < ns[i]) ns[i] = took;
        }
    return SINTER_OK;
}

static sinter_status measure_order(env *e, const tune_options *o, context *c, tune_result *t)
{
    double ns[ORDER_COUNT] = { 0 };
    TRY(measure(c, ns));
    choose(ns, t);
    env_log(e, LOG_SELECT, "profile %u: one after the other %.1f us, small steps side by side %.1f, all %.1f: %s",
            c->profile, ns[ORDER_CHAIN] / 1e3, ns[ORDER_SMALL] / 1e3, ns[ORDER_FREE] / 1e3, order_names[t->order]);
    return keep(e, o, t, ns);
}

static sinter_status measure_profile(env *e, const tune_options *o, engine *g, uint32_t profile, tune_result *t,
                                     branches_work *w)
{
    context *c = NULL;
    TRY(context_create(g, &(context_options){ .profile = profile, .is_lazy = true }, &c, e->error));
    sinter_error *const own = c->e.error;
    c->e.error = e->error;
    sinter_status s = set_shape(c);
    if (s == SINTER_OK && w->wants_order) s = measure_order(e, o, c, t);
    if (s == SINTER_OK && w->wants_descent) s = descent_measure(e, o, c, t, &w->is_changed);
    c->e.error = own;
    context_destroy(c);
    return s;
}

sinter_status branches_measure(env *e, const tune_options *o, const device_options *wanted, uint8_t *bytes, size_t size,
                               tune_result *t, branches_work *work, uint32_t profiles)
{
    engine *g = NULL;
    device_options trusting = *wanted; /* the code was measured just now */
    trusting.trusts_code = true;
    sinter_status s = engine_open(e, bytes, size, o->backend, &trusting, 0, &g, e->error);
    for (uint32_t i = 0; i < profiles && s == SINTER_OK; i++)
        if (work[i].wants_order || work[i].wants_descent) s = measure_profile(e, o, g, i, &t[i], &work[i]);
    engine_release(g);
    return NOTE(e, s, "measuring whole programs");
}

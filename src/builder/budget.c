/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - which ops a narrower type would hurt: the model is run as it is and lowered, and the outputs compared.
 *
 * Both runs are on the CPU, of the very graphs that the target gets, on the caller's samples or on seeded inputs. Where
 * the difference is within the budget, which is the rule, nothing is kept. Else parts of the graph are lowered one at a
 * time, the dearest of them in halves again and again. Then as many of the cheapest are taken together as stay within
 * the budget; what was not tried is not taken.
 * Products are chosen for 8 bits first, then other ops for narrower floats beside them. Ranges that the caller gives
 * without samples are taken: seeded inputs would say nothing of them.
 *
 * Models that round their data to a few bits move by themselves: where the last bit of an input changes, some of these
 * roundings flip, and flips beget flips. No run of such a model is nearer to another one than that, so that half as
 * much again is permitted, unless the caller stated a budget.
 * Without samples a model may refuse its inputs: a seeded number is no shape, for example. Then nothing is compared,
 * and all that may be lowered is lowered. Where data decide how many results there are, what these choices are made
 * from is compared (selections.c). A verdict without anything kept goes into the timing cache. */
#include "base/hash.h"
#include "builder/calibration.h"
#include "builder/trial.h"
#include "tune/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* rms(difference) / rms(want), the largest of all outputs and samples. */
static const double budget_fp16 = 1e-2, budget_bf16 = 6e-2, budget_int8 = 1e-1, last_bit = 1e-6, margin = 1.5;
enum { QUARTERS = 4, PARTS_MAX = 16, OUTPUTS_MAX = 64, SAMPLES_MAX = 4 };

typedef struct budget {
    env *e;
    trial t;
    arena a;
    view want[SAMPLES_MAX][OUTPUTS_MAX];
    double limit, worst;
    uint32_t compared; /* outputs of the first run, the reference */
    bool is_wanted;    /* true: keeps outputs as reference; false: compares with them */
    uint32_t given;    /* INT8 where the caller gave ranges but no samples: then the reference has it too */
} budget;

/* ---- one run ---- */

static double distance(const view *got, const view *want)
{
    const int64_t count = view_count(want);
    double gap = 0, size = 0;
    if (view_count(got) != count) return INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double x = view_load_f64(got, i), y = view_load_f64(want, i);
        if (!isfinite(y)) continue;
        gap += (x - y) * (x - y);
        size += y * y;
    }
    return gap == 0 ? 0 : isfinite(gap) ? sqrt(gap / (size > 0 ? size : 1)) : INFINITY;
}

static sinter_status see(void *user, uint32_t sample, uint32_t output, uint32_t comes_last, bool is_compared,
                         const view *v)
{
    budget *b = user;
    (void)comes_last;
    if (!is_compared || output >= OUTPUTS_MAX) return SINTER_OK;
    view *want = &b->want[sample][output];
    if (!b->is_wanted) {
        const double d = want->data ? distance(v, want) : 0;
        if (!(d <= b->worst)) b->worst = d;
        return SINTER_OK;
    }
    sinter_tensor t = { .dtype = v->dtype, .rank = v->rank };
    memcpy(t.dim, v->dim, sizeof t.dim);
    const size_t size = sinter_tensor_size(&t);
    *want = *v;
    want->data = arena_alloc(&b->a, size + 1, 64);
    if (!want->data) return FAIL_MEMORY(b->e, "a trial's outputs");
    b->compared++;
    memcpy(want->data, v->data, size);
    return SINTER_OK;
}

/* The change of the outputs that a lowering causes. */
static sinter_status spend(budget *b, uint32_t allow, build_lowering *l, double *out)
{
    sinter_error why;
    b->worst = 0;
    TRY(trial_try(&b->t, allow, l, see, b, &why));
    *out = why.length ? INFINITY : b->worst;
    return SINTER_OK;
}

/* ---- the search ---- */

typedef struct range {
    uint32_t first, end;
    double spent;
} range;

/* The change of the outputs if only the ops [first, end) of a choice are lowered, without those that are kept. */
static sinter_status spend_part(budget *b, uint32_t allow, build_lowering *l, build_choice *which, range *r)
{
    const build_choice all = *which;
    which->is_kept = ARENA_NEW(&b->a, uint8_t, all.size);
    if (!which->is_kept) {
        *which = all;
        return FAIL_MEMORY(b->e, "a trial");
    }
    for (uint32_t i = 0; i < all.size; i++) which->is_kept[i] = i < r->first || i >= r->end || all.is_kept[i];
    const sinter_status s = spend(b, allow, l, &r->spent);
    *which = all;
    return s;
}

/* The cost of one op. Errors of parts add up roughly in squares, so each op gets its share of the square. */
static double price(const range *r)
{
    return r->spent * r->spent / (r->end - r->first);
}

static int by_price(const void *x, const void *y)
{
    const double a = price(x), b = price(y);
    return a < b ? -1 : a > b;
}

static sinter_status measure(budget *b, uint32_t allow, build_lowering *l, build_choice *which, range *part,
                             uint32_t *parts, uint32_t first, uint32_t end)
{
    if (first == end) return SINTER_OK;
    part[*parts] = (range){ .first = first, .end = end };
    TRY(spend_part(b, allow, l, which, &part[*parts]));
    (*parts)++;
    return SINTER_OK;
}

/* Divides a choice into parts. A part with a larger error is divided further. */
static sinter_status divide(budget *b, uint32_t allow, build_lowering *l, build_choice *which, range *part,
                            uint32_t *parts)
{
    for (uint32_t i = 0; i < QUARTERS; i++)
        TRY(measure(b, allow, l, which, part, parts, which->size * i / QUARTERS, which->size * (i + 1) / QUARTERS));
    while (*parts < PARTS_MAX) {
        uint32_t dearest = UINT32_MAX;
        for (uint32_t i = 0; i < *parts; i++) {
            if (part[i].end - part[i].first < 2 || part[i].spent < b->limit / 4) continue;
            if (dearest == UINT32_MAX || part[i].spent > part[dearest].spent) dearest = i;
        }
        if (dearest == UINT32_MAX) break;
        const range whole = part[dearest];
        const uint32_t middle = whole.first + (whole.end - whole.first) / 2;
        part[dearest] = part[--*parts];
        TRY(measure(b, allow, l, which, part, parts, whole.first, middle));
        TRY(measure(b, allow, l, which, part, parts, middle, whole.end));
    }
    return SINTER_OK;
}

/* Lowers only these parts, and in them only the ops that are faster. */
static void take(build_choice *which, const range *part, uint32_t parts)
{
    memset(which->is_kept, 1, which->size);
    for (uint32_t i = 0; i < parts; i++) memset(which->is_kept + part[i].first, 0, part[i].end - part[i].first);
    const tune_gains *g = which->gains;
    for (uint32_t i = 0; g && i < which->size && i < g->count; i++) which->is_kept[i] |= g->is_slow[i];
}

/* Finds by halving how many of the cheapest parts stay within the limit together. */
static sinter_status search(budget *b, uint32_t allow, build_lowering *l, build_choice *which)
{
    range part[PARTS_MAX];
    uint32_t parts = 0, fits = 0;
    TRY(divide(b, allow, l, which, part, &parts));
    qsort(part, parts, sizeof *part, by_price);
    for (uint32_t i = 0; i < parts; i++)
        env_log(b->e, LOG_OPT, "part %u to %u alone: outputs move by %.2g", part[i].first, part[i].end - 1,
                part[i].spent);
    uint32_t fails = parts + 1;
    while (fits + 1 < fails) {
        const uint32_t tried = (fits + fails) / 2;
        range all = { .end = which->size };
        take(which, part, tried);
        TRY(spend_part(b, allow, l, which, &all));
        if (all.spent <= b->limit) fits = tried;
        else fails = tried;
    }
    take(which, part, fits);
    return spend(b, allow, l, &l->moved);
}

/* ---- the verdict ---- */

/* Raises the limit to the change that the last bit of the inputs causes, or a rounding of integer sums. */
static sinter_status raise_limit(budget *b, build_lowering *l)
{
    build_lowering as_floats = { .is_trial = true, .moved = -1 },
                   as_it_is = { .is_trial = true, .has_integers = l->has_integers, .moved = -1 };
    double floor = 0, other = 0;
    b->t.jitter = last_bit;
    const sinter_status s = spend(b, b->given, b->given ? l : &as_it_is, &floor);
    b->t.jitter = 0;
    TRY(s);
    if (l->has_integers && !b->given) TRY(spend(b, 0, &as_floats, &other));
    if (other > floor) floor = other;
    env_log(b->e, LOG_OPT, "outputs move by %.2g as the last bits of inputs do", floor);
    if (margin * floor > b->limit) b->limit = margin * floor;
    return SINTER_OK;
}

/* Lowers one choice, whole or in part. */
static sinter_status choose(budget *b, uint32_t allow, build_lowering *l, build_choice *which, const char *what,
                            bool *is_raised)
{
    TRY(spend(b, allow, l, &l->moved));
    env_log(b->e, LOG_OPT, "%s lowered whole: outputs move by %.2g of their size, the budget is %.2g", what, l->moved,
            b->limit);
    if (l->moved > b->limit && which->count && !*is_raised && !(b->t.o.budget > 0)) {
        *is_raised = true;
        TRY(raise_limit(b, l));
    }
    if (l->moved <= b->limit || !which->count) return SINTER_OK;
    if (!which->is_kept) {
        which->is_kept = mem_zalloc(b->e, which->count, 1);
        if (!which->is_kept) return FAIL_MEMORY(b->e, "lowering types");
        which->size = which->count;
    }
    which->is_cut = true;
    TRY(search(b, allow, l, which));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < which->size; i++) kept += which->is_kept[i];
    env_log(b->e, LOG_OPT, "%u of %u %s stay in f32, found in %u trials: outputs move by %.2g", kept, which->size, what,
            b->t.builds, l->moved);
    return SINTER_OK;
}

static sinter_status judge(budget *b, uint32_t allow, build_lowering *l)
{
    build_lowering as_it_is = { .is_trial = true, .has_integers = l->has_integers, .moved = -1 };
    bool is_raised = false;
    sinter_error why = { 0 };
    b->is_wanted = l->is_trial = true;
    sinter_status s = trial_first(&b->t, b->given, b->given ? l : &as_it_is, see, b, &why);
    b->is_wanted = false;
    if (why.length) {
        (void)snprintf(l->unrun, sizeof l->unrun, "%.*s", (int)strcspn(why.text, "\n"), why.text);
        l->is_trial = false;
        return SINTER_OK;
    }
    if (s == SINTER_OK && (allow & SINTER_ALLOW_INT8) && !b->given)
        s = choose(b, SINTER_ALLOW_INT8, l, &l->quantize, "products", &is_raised);
    /* Which ops lie between integers, and so which ops gain, changes if some products stay in floats. */
    const bool is_other = l->quantize.is_cut && l->narrow.gains;
    if (s == SINTER_OK && is_other) {
        l->is_trial = false;
        s = build_ask_narrow(b->e, b->t.asked, l);
        l->is_trial = true;
    }
    if (s == SINTER_OK && allow & ~(uint32_t)SINTER_ALLOW_INT8) s = choose(b, allow, l, &l->narrow, "ops", &is_raised);
    l->is_trial = false;
    l->limit = b->limit;
    if (!b->compared) l->moved = -1;
    return s;
}

static void hash_values(sha256 *h, const sinter_input_value *value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sinter_tensor *x = value[i].value;
        /* What is no tensor of the host is refused when it is used. */
        if (!value[i].input || !x || !x->data || x->rank > SINTER_RANK_MAX || x->place == SINTER_PLACE_DEVICE) continue;
        const uint32_t face[] = { (uint32_t)x->dtype, x->rank };
        sha256_update(h, value[i].input, strlen(value[i].input) + 1);
        sha256_update(h, face, sizeof face);
        sha256_update(h, x->dim, x->rank * sizeof *x->dim);
        const size_t size = sinter_tensor_size(x);
        if (size != SIZE_MAX) sha256_update(h, x->data, size);
    }
}

static sinter_status key_of(budget *b, uint32_t allow, const build_lowering *l, text *key)
{
    sha256 h;
    uint8_t digest[32];
    const sinter_build_options *o = &b->t.o;
    sha256_init(&h);
    sha256_update(&h, b->t.m->bytes, b->t.m->size);
    hash_values(&h, o->value, o->value_count);
    for (uint32_t i = 0; i < b->t.samples && i < o->sample_count; i++)
        hash_values(&h, o->sample[i].value, o->sample[i].count);
    text ranges;
    text_init(&ranges, b->e);
    if (l->calibration) calibration_write(l->calibration, &ranges);
    if (ranges.length) sha256_update(&h, ranges.at, ranges.length);
    const bool is_short = ranges.failed;
    text_deinit(&ranges);
    if (is_short) return FAIL_MEMORY(b->e, "a key");
    if (l->narrow.is_kept) sha256_update(&h, l->narrow.is_kept, l->narrow.size);
    if (l->quantize.is_kept) sha256_update(&h, l->quantize.is_kept, l->quantize.size);
    sha256_final(&h, digest);
    text_init(key, b->e);
    text_printf(key, "lowered to %s%s%s whole within %.3g | ", allow & SINTER_ALLOW_FP16 ? "f16" : "",
                allow & SINTER_ALLOW_BF16 ? "bf16" : "", allow & SINTER_ALLOW_INT8 ? "i8" : "", b->limit);
    if (l->has_integers) text_printf(key, "integers ");
    for (uint32_t i = 0; i < 16; i++) text_printf(key, "%02x", digest[i]);
    for (uint32_t i = 0; i < o->profile_count; i++)
        for (uint32_t k = 0; k < o->profile[i].count; k++)
            for (uint32_t d = 0; d < o->profile[i].shape[k].rank; d++)
                text_printf(key, " %lld", (long long)o->profile[i].shape[k].opt[d]);
    return key->failed ? FAIL_MEMORY(b->e, "a key") : SINTER_OK;
}

static sinter_status look_up(budget *b, const sinter_build_options *o, uint32_t allow, build_lowering *l)
{
    timing_cache *cache = NULL;
    text key = { 0 };
    TRY(timing_cache_create(b->e, &cache));
    sinter_status s = timing_cache_read(cache, o->timing_cache);
    l->limit = b->limit;
    if (s == SINTER_OK) s = key_of(b, allow, l, &key);
    if (s == SINTER_OK && !timing_cache_find(cache, key.at, &l->moved)) {
        s = judge(b, allow, l);
        const bool is_whole = !l->narrow.is_cut && !l->quantize.is_cut && l->moved <= b->limit && !l->unrun[0];
        if (s == SINTER_OK && is_whole) s = timing_cache_add(cache, key.at, l->moved);
        if (s == SINTER_OK && is_whole) s = build_timings_keep(b->e, cache, o, o->report);
    }
    if (key.at) text_deinit(&key);
    timing_cache_destroy(cache);
    return s;
}

sinter_status build_budget(env *e, const build_model *m, const sinter_build_options *o, uint32_t allow,
                           build_lowering *lowering)
{
    budget *b = mem_zalloc(e, sizeof *b, 64);
    if (!b) return FAIL_MEMORY(e, "looking at what narrower types do to the outputs");
    b->e = e;
    b->given = o->calibration && !o->sample_count ? allow & SINTER_ALLOW_INT8 : 0;
    b->limit = o->budget > 0                  ? o->budget
               : o->allow & SINTER_ALLOW_INT8 ? budget_int8
               : o->allow & SINTER_ALLOW_FP16 ? budget_fp16
                                              : budget_bf16;
    if (allow == b->given) {
        mem_free(e, b, sizeof *b, 64);
        return SINTER_OK;
    }
    lowering->is_judged = true;
    arena_init(&b->a, e);
    sinter_status s = trial_init(&b->t, e, m, o, SAMPLES_MAX);
    if (s == SINTER_OK) s = o->timing_cache ? look_up(b, o, allow, lowering) : judge(b, allow, lowering);
    trial_deinit(&b->t);
    arena_deinit(&b->a);
    mem_free(e, b, sizeof *b, 64);
    return NOTE(e, s, "looking at what narrower types do to the outputs");
}

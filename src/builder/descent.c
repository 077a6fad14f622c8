/* SPDX-License-Identifier: Apache-2.0 */
/* descent.c - coordinate descent over the steps' tactics, by the time of whole programs.
 *
 * A variant of a program is bound beside it, on the same memory: the same steps, some of which have another tactic and
 * weights packed for it. Variant and program are timed in turns. Steps of the same problem are swapped together first,
 * the dearest problems before others; then single steps of them, as long as there is time. Trials end where the time is
 * over, so what is found depends on the machine; the timing cache keeps it, and the same cache makes the same engine.
 *
 * When a kernel lets in the one behind it is tried first, for all steps at once: a kernel that comes early brings its
 * weights while others work, and it can only come early where all those before it let it.
 */
#include "builder/descent.h"

#include "base/hash.h"
#include "base/os.h"
#include "builder/branches.h"
#include "builder/swaps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7, ROUNDS_QUICK = 2 };
static const double batch_ns = 1e6, hopeless = 1.01, gain_least = 0.003, gain_least_on_cpu = 0.01;

double descent_seconds(const tune_options *o)
{
    const bool has_clock = o->backend->program_time != NULL;
    if (o->reference_only || o->mode == TUNE_OFF) return 0;
    return o->mode == TUNE_FULL ? (has_clock ? 10 : 5) : has_clock ? 2 : 0;
}

/* ---- the timing cache ---- */

static sinter_status hash_of(env *e, const tune_options *o, const tune_result *t, uint64_t *out)
{
    const uint64_t order = (uint64_t)t->order;
    TRY(branches_hash(e, o, t->plan, out));
    *out = hash64(&order, sizeof order, *out);
    return SINTER_OK;
}

static sinter_status key_begin(env *e, const tune_options *o, uint64_t hash, text *key)
{
    text_clear(key);
    text_printf(key, "descent %016llx %s | ", (unsigned long long)hash, o->mode == TUNE_FULL ? "full" : "fast");
    o->backend->describe(o->device, key);
    text_printf(key, " | %u threads | ", o->threads);
    return key->failed ? FAIL_MEMORY(e, "a timing key") : SINTER_OK;
}

static sinter_status key_of_swap(env *e, const tune_options *o, uint64_t hash, uint32_t step, const choice *c,
                                 text *key)
{
    TRY(key_begin(e, o, hash, key));
    text_printf(key, "step %u %s.%u ", step, c->kernel->name, c->kernel->abi);
    for (uint32_t i = 0; i < TACTIC_SIZE; i++) text_printf(key, "%02x", c->tactic.at[i]);
    return key->failed ? FAIL_MEMORY(e, "a timing key") : SINTER_OK;
}

static sinter_status find(env *e, const tune_options *o, tune_result *t, text *key, bool *is_known, bool *is_changed)
{
    uint64_t hash;
    double unused;
    bool has_any = false;
    TRY(hash_of(e, o, t, &hash));
    TRY(key_begin(e, o, hash, key));
    text_printf(key, "done");
    *is_known = timing_cache_find(o->cache, key->at, &unused);
    for (uint32_t i = 1; i < t->plan->step.count && (*is_known || !has_any); i++) {
        choice list[SWAPS];
        uint32_t count;
        if (!swaps_on_device(&t->plan->step.at[i])) continue;
        TRY(swaps_all(e, o, t, &t->plan->step.at[i], list, &count));
        has_any = has_any || count;
        for (uint32_t k = 0; k < count && *is_known; k++) {
            TRY(key_of_swap(e, o, hash, i, &list[k], key));
            if (!timing_cache_find(o->cache, key->at, &unused)) continue;
            TRY(tune_swap(e, t, i, list[k].kernel, &list[k].tactic));
            *is_changed = true;
            break;
        }
    }
    if (*is_known || has_any) return SINTER_OK;
    *is_known = true; /* there is nothing to try */
    return SINTER_OK;
}

sinter_status descent_find(env *e, const tune_options *o, tune_result *t, bool *is_known, bool *is_changed)
{
    text key;
    *is_known = true;
    *is_changed = false;
    if (descent_seconds(o) <= 0) return SINTER_OK;
    text_init(&key, e);
    sinter_status s = find(e, o, t, &key, is_known, is_changed);
    if (s == SINTER_OK && !*is_known && o->cache_only)
        s = FAIL(e, INVALID_ARG, "the timing cache has no entry for '%s', and measuring is not permitted", key.at);
    text_deinit(&key);
    return s;
}

/* ---- programs ---- */

typedef struct weight_copy {
    void *at;
    size_t size;
    uint32_t input;
} weight_copy;

/* One item of the main region, and what stands in each of its steps now. */
typedef struct trial_step {
    uint32_t plan;   /* the plan's step; 0: no swaps */
    uint64_t number; /* of the problem: equal problems, equal numbers */
    program_step s;
    bool is_changed;
    choice now;
} trial_step;

typedef struct descent {
    env *e;
    const tune_options *o;
    context *c;
    tune_result *t;
    arena a;
    uint64_t end_ns; /* when the time is over */
    trial_step *step;
    uint32_t count, tried, taken;
    bool is_whole; /* all addresses are known */
    bool is_soon;  /* every step lets in the one behind it as soon as it can */
    program *base;
    double base_ns;
    VEC(void *) address;
    VEC(weight_copy) copy;
    buffer workspace;
    data_fault fault;
    arena scratch;
} descent;

static sinter_status room(const descent *d, size_t size, void **out)
{
    *out = d->o->backend->memory_alloc(d->e, d->o->device, size);
    return *out ? SINTER_OK : NOTE(d->e, d->e->error->status, "trying tactics in the whole program");
}

static sinter_status copy(descent *d, copy_kind kind, void *to, const void *from, size_t size)
{
    const backend *b = d->o->backend;
    if (!b->copy) return memcpy(to, from, size), SINTER_OK;
    TRY(b->copy(d->e, d->o->device, d->c->stream, kind, to, from, size));
    if (kind == COPY_ON_DEVICE) return SINTER_OK;
    return b->stream_wait(d->e, d->o->device, d->c->stream, NULL);
}

/* Packs a weight for another tactic; *id: of its address. Only the first step's weight of a trial is packed, the other
 * steps get copies of it: what the weights are decides no time, where they are does. */
static sinter_status pack(descent *d, const plan_step *s, const choice *x, uint32_t input, uint32_t trial, uint32_t *id)
{
    view source;
    const size_t size = x->kernel->pack_size(s->problem, &x->tactic, input);
    weight_copy *w = VEC_PUSH(&d->a, &d->copy);
    void **slot = VEC_PUSH(&d->a, &d->address);
    if (!w || !slot) return FAIL_MEMORY(d->e, "packed weights");
    *w = (weight_copy){ .size = size, .input = input };
    TRY(room(d, size, &w->at));
    *slot = w->at;
    *id = d->address.count - 1;
    for (uint32_t i = trial; i + 1 < d->copy.count; i++)
        if (d->copy.at[i].input == input && d->copy.at[i].size == size)
            return copy(d, COPY_ON_DEVICE, w->at, d->copy.at[i].at, size);
    if (!tune_const_view(d->t->plan, tune_swap_source(d->t, s->in[input]), &source))
        return FAIL(d->e, INTERNAL, "a weight of unknown shape cannot be packed");
    void *bytes = mem_zalloc(d->e, size, 64);
    if (!bytes) return FAIL_MEMORY(d->e, "packed weights");
    x->kernel->pack(s->problem, &x->tactic, input, &source, bytes);
    const sinter_status sent = copy(d, COPY_TO_DEVICE, w->at, bytes, size);
    mem_free(d->e, bytes, size, 64);
    return sent;
}

/* The weights that a trial packed. */
static void forget(descent *d, uint32_t copies, uint32_t addresses)
{
    for (uint32_t i = copies; i < d->copy.count; i++)
        if (d->copy.at[i].at) d->o->backend->memory_free(d->e, d->o->device, d->copy.at[i].at, d->copy.at[i].size);
    d->copy.count = copies;
    d->address.count = addresses;
}

/* The step with another tactic, and its weights packed for it. */
static sinter_status variant_of(descent *d, const trial_step *from, const choice *x, uint32_t trial, trial_step *out)
{
    const plan_step *s = &d->t->plan->step.at[from->plan];
    uint32_t *id = ARENA_NEW(&d->a, uint32_t, from->s.count_in);
    choice *own = ARENA_NEW(&d->a, choice, 1);
    if (!id || !own) return FAIL_MEMORY(d->e, "a step");
    *own = *x;
    *out = *from;
    out->now = *x;
    out->is_changed = true;
    out->s.kernel = x->kernel;
    out->s.tactic = &own->tactic;
    if (x->kernel == from->now.kernel && tune_lets_in_alone(x->kernel, &from->now.tactic, &x->tactic)) return SINTER_OK;
    out->s.in_id = id;
    memcpy(id, from->s.in_id, from->s.count_in * sizeof *id);
    for (uint32_t i = 0; i < s->count_in && i < from->s.count_in; i++)
        if (s->in[i] && tune_swap_source(d->t, s->in[i]) != s->in[i]) TRY(pack(d, s, x, i, trial, &id[i]));
    const size_t wanted = x->kernel->workspace ? x->kernel->workspace(s->problem, &x->tactic, d->o->threads) + 64 : 0;
    if (wanted <= d->workspace.size) return SINTER_OK;
    if (d->workspace.at) d->o->backend->memory_free(d->e, d->o->device, d->workspace.at, d->workspace.size);
    d->workspace.size = 0;
    TRY(room(d, wanted, &d->workspace.at));
    d->workspace.size = wanted;
    return SINTER_OK;
}

static sinter_status bind(descent *d, const trial_step *step, program **out)
{
    program_step *list = ARENA_NEW(&d->a, program_step, d->count);
    if (!list) return FAIL_MEMORY(d->e, "a program");
    for (uint32_t i = 0; i < d->count; i++) list[i] = step[i].s;
    return d->o->backend->program_create(d->e, d->o->device, list, d->count, false, NULL, out);
}

static void drop(descent *d, program *p)
{
    if (p) d->o->backend->program_destroy(d->e, d->o->device, p);
}

/* The mean of `repeats` runs. */
static sinter_status clock_of(descent *d, program *p, uint32_t repeats, double *ns)
{
    const backend *b = d->o->backend;
    const program_run run = { .address = d->address.at,
                              .workspace = d->workspace.at ? d->workspace.at : d->c->workspace,
                              .fault = &d->fault,
                              .e = d->e,
                              .scratch = &d->scratch,
                              .stream = d->c->stream,
                              .order = d->t->order };
    if (b->program_time) return b->program_time(d->o->device, p, &run, repeats, ns);
    const bool is_alone = d->o->threads == 1;
    const uint64_t start = is_alone ? os_busy_ns() : os_time_ns();
    for (uint32_t i = 0; i < repeats; i++) TRY(b->program_launch(d->o->device, p, &run));
    *ns = (double)((is_alone ? os_busy_ns() : os_time_ns()) - start) / repeats;
    return SINTER_OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static uint32_t repeats_of(const descent *d)
{
    const double wanted = batch_ns / (d->base_ns + 1);
    return wanted < 1 ? 1 : (uint32_t)wanted + 1;
}

/* Is the variant faster than what there is? In turns: it has to win nearly each of them. */
static sinter_status compare(descent *d, program *p, bool *is_faster, double *ratio)
{
    double part[ROUNDS], unused;
    const double least = d->o->backend->program_time ? gain_least : gain_least_on_cpu;
    const uint32_t repeats = repeats_of(d);
    uint32_t won = 0, round = 0;
    *is_faster = false;
    TRY(clock_of(d, p, 1, &unused)); /* makes the graph */
    for (; round < ROUNDS; round++) {
        double old_ns = 0, new_ns = 0;
        TRY(clock_of(d, d->base, 1, &unused));
        TRY(clock_of(d, d->base, repeats, &old_ns));
        TRY(clock_of(d, p, 1, &unused));
        TRY(clock_of(d, p, repeats, &new_ns));
        part[round] = new_ns / (old_ns + 1e-3);
        won += part[round] < 1 - least / 2;
        *ratio = part[round];
        if (round + 1 >= ROUNDS_QUICK && part[round] > hopeless && part[round - 1] > hopeless) return SINTER_OK;
        if (round + 1 - won > 2) return SINTER_OK;
    }
    qsort(part, ROUNDS, sizeof *part, by_size);
    *ratio = part[ROUNDS / 2];
    *is_faster = *ratio < 1 - least && won + 1 >= ROUNDS;
    return SINTER_OK;
}

/* ---- trying ---- */

/* What is tried: `x` in the steps of the problem, or in `only` alone where that is a step. x NULL: each step as it is,
 * with the one behind it let in as soon as can be. */
typedef struct trial {
    uint64_t number;
    uint32_t only;
    const choice *x;
} trial;

/* What the trial puts into the step; false: it stays. */
static bool trial_at(const descent *d, const trial *x, uint32_t step, choice *out)
{
    const trial_step *now = &d->step[step];
    choice list[LET_INS];
    if (!now->plan) return false;
    const plan_step *s = &d->t->plan->step.at[now->plan];
    if (!x->x) {
        if (!swaps_let_in(d->t, s, &now->now, list)) return false;
        *out = list[0];
    } else {
        if (now->number != x->number || (x->only != UINT32_MAX && x->only != step)) return false;
        if (!tune_swap_fits(d->t, s, x->x->kernel, &x->x->tactic)) return false;
        *out = *x->x;
    }
    return !swaps_equal(out, &now->now);
}

/* Keeps what is tried if it is faster. What cannot be bound or launched, or has no memory, is not. */
static sinter_status try_one(descent *d, const trial *x, bool *is_taken)
{
    program *p = NULL;
    bool is_faster = false, is_other = false;
    double ratio = 1;
    const uint32_t copies = d->copy.count, addresses = d->address.count;
    trial_step *step = ARENA_NEW(&d->a, trial_step, d->count);
    if (!step) return FAIL_MEMORY(d->e, "a program");
    sinter_error own = { 0 }, *const error = d->e->error;
    sinter_status s = SINTER_OK;
    d->e->error = &own;
    for (uint32_t i = 0; i < d->count && s == SINTER_OK; i++) {
        choice other;
        step[i] = d->step[i];
        if (!trial_at(d, x, i, &other)) continue;
        is_other = true;
        s = variant_of(d, &d->step[i], &other, copies, &step[i]);
    }
    if (s == SINTER_OK && is_other) s = bind(d, step, &p);
    if (s == SINTER_OK && is_other) s = compare(d, p, &is_faster, &ratio);
    d->e->error = error;
    d->tried += is_other;
    *is_taken = s == SINTER_OK && is_faster;
    if (!x->x && is_other)
        env_log(d->e, LOG_SELECT, "in the whole program: kernels let in as soon as can be: %s, %.3f of the time",
                *is_taken ? "taken" : "not taken", ratio);
    if (s == SINTER_OK && is_faster) {
        drop(d, d->base);
        d->base = p;
        d->step = step;
        d->base_ns *= ratio;
        d->taken++;
        return SINTER_OK;
    }
    drop(d, p);
    forget(d, copies, addresses);
    if (s == SINTER_OK || s == SINTER_INTERNAL || s == SINTER_UNSUPPORTED || s == SINTER_NO_MEMORY) return SINTER_OK;
    *error = own;
    return s;
}

static bool is_over(const descent *d)
{
    return os_time_ns() >= d->end_ns;
}

/* The steps' alternatives, one group of equal problems after the other. */
typedef struct group {
    uint64_t number; /* of the problem */
    uint32_t first, steps;
    double ns; /* of all its steps */
} group;

static int by_price(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->ns != y->ns) return x->ns > y->ns ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static sinter_status try_group(descent *d, const group *g, bool is_single)
{
    choice list[ALTERNATIVES + LET_INS], soon[LET_INS];
    const plan_step *s = &d->t->plan->step.at[d->step[g->first].plan];
    uint32_t count = 0, others = 0;
    bool is_taken = false;
    if (!is_single) count = swaps_let_in(d->t, s, &d->step[g->first].now, list);
    TRY(swaps_others(d->e, d->o, d->t, s, list + count, &others));
    for (uint32_t k = count; k < count + others; k++)
        if (d->is_soon && swaps_let_in(d->t, s, &list[k], soon)) list[k] = soon[0];
    count += others;
    for (uint32_t k = 0; k < count; k++) {
        trial x = { .number = g->number, .only = UINT32_MAX, .x = &list[k] };
        if (!is_single && !is_over(d)) TRY(try_one(d, &x, &is_taken));
        for (x.only = 0; is_single && x.only < d->count && !is_over(d); x.only++) TRY(try_one(d, &x, &is_taken));
        if (d->o->progress && d->o->progress(d->o->user, "descent", 0))
            return FAIL(d->e, CANCELLED, "the build was cancelled");
    }
    return SINTER_OK;
}

static sinter_status list_groups(descent *d, group **out, uint32_t *count)
{
    group *list = ARENA_NEW(&d->a, group, d->count);
    if (!list) return FAIL_MEMORY(d->e, "groups of steps");
    *count = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        choice best;
        uint32_t known = 0, k = 0;
        if (!d->step[i].plan) continue;
        while (k < *count && list[k].number != d->step[i].number) k++;
        if (k == *count) {
            TRY(tune_alternatives(d->e, d->step[i].s.problem, d->o, 1, &best, 1, &known));
            list[(*count)++] = (group){ .number = d->step[i].number, .first = i };
        } else {
            best.ns = list[k].ns / list[k].steps;
            known = 1;
        }
        list[k].steps++;
        list[k].ns += known ? best.ns : 0;
    }
    qsort(list, *count, sizeof *list, by_price);
    *out = list;
    return SINTER_OK;
}

/* Every step lets in the one behind it as soon as it can. Code that this wants is compiled at once. */
static sinter_status try_soon(descent *d)
{
    const trial x = { .x = NULL };
    kernel_use *use = ARENA_NEW(&d->a, kernel_use, d->count);
    choice *own = ARENA_NEW(&d->a, choice, d->count);
    uint32_t count = 0;
    if (d->count && (!use || !own)) return FAIL_MEMORY(d->e, "a program");
    for (uint32_t i = 0; i < d->count; i++) {
        if (!trial_at(d, &x, i, &own[i])) continue;
        bool is_there = false;
        for (uint32_t k = 0; k < i && !is_there; k++)
            is_there = d->step[k].number == d->step[i].number && swaps_equal(&own[k], &own[i]);
        if (!is_there) use[count++] = (kernel_use){ own[i].kernel, d->step[i].s.problem, &own[i].tactic };
    }
    if (!count) return SINTER_OK;
    if (d->o->backend->prepare) TRY(tune_compile(d->e, d->o, use, count));
    return try_one(d, &x, &d->is_soon);
}

static sinter_status run(descent *d)
{
    group *list = NULL;
    uint32_t count = 0;
    double once = 0;
    TRY(bind(d, d->step, &d->base));
    TRY(clock_of(d, d->base, 1, &once));
    TRY(clock_of(d, d->base, 2, &once));
    TRY(clock_of(d, d->base, 2, &d->base_ns));
    TRY(try_soon(d));
    TRY(list_groups(d, &list, &count));
    for (uint32_t i = 0; i < count && !is_over(d); i++) TRY(try_group(d, &list[i], false));
    for (uint32_t i = 0; i < count && !is_over(d); i++)
        if (list[i].steps > 1) TRY(try_group(d, &list[i], true));
    return SINTER_OK;
}

/* ---- one item ---- */

static sinter_status problem_number(env *e, const problem *p, uint64_t *out)
{
    text line;
    text_init(&line, e);
    problem_print(p, &line);
    *out = line.failed ? 0 : hash64(line.at, line.length, 0);
    const bool has_failed = line.failed;
    text_deinit(&line);
    return has_failed ? FAIL_MEMORY(e, "a problem's text") : SINTER_OK;
}

/* Memory for a value that the caller of a run would give, of its size now: the bound of a size that data decide may be
 * more than there is. Values that run backwards are left alone. */
static sinter_status fill_address(descent *d, uint32_t value)
{
    const context *c = d->c;
    const storage_kind kind = (storage_kind)context_storage(c, context_value(c, value)->storage)->kind;
    view v = c->now->value[value];
    uintptr_t begin = 0, end = 0;
    if (d->address.at[value] || (kind != STORAGE_INPUT && kind != STORAGE_OUTPUT)) return SINTER_OK;
    for (uint32_t k = 0; k < v.rank; k++)
        if (v.stride[k] < 0) return SINTER_OK;
    v.data = NULL;
    (void)view_span(&v, &begin, &end);
    weight_copy *w = VEC_PUSH(&d->a, &d->copy);
    if (!w) return FAIL_MEMORY(d->e, "inputs and outputs");
    *w = (weight_copy){ .size = end + 64, .input = UINT32_MAX };
    TRY(room(d, w->size, &w->at));
    d->address.at[value] = w->at;
    return SINTER_OK;
}

static sinter_status fill_addresses(descent *d, const uint32_t *id, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!id[i]) continue;
        TRY(fill_address(d, id[i]));
        d->is_whole = d->is_whole && d->address.at[id[i]];
    }
    return SINTER_OK;
}

/* The engine's steps are those of the plan's regions, the main region's first. */
static sinter_status fill(descent *d, const run_item *item)
{
    const plan *p = d->t->plan;
    const plan_region *main = &p->region.at[1];
    d->count = item->count;
    d->step = ARENA_NEW(&d->a, trial_step, d->count);
    if (!d->step) return FAIL_MEMORY(d->e, "a program");
    for (uint32_t i = 0; i < d->c->p->value_count; i++) {
        void **slot = VEC_PUSH(&d->a, &d->address);
        if (!slot) return FAIL_MEMORY(d->e, "addresses");
        *slot = d->c->address[i];
    }
    for (uint32_t i = 0; i < d->count; i++) {
        trial_step *x = &d->step[i];
        const uint32_t at = item->first + i;
        x->s = d->c->now->step[at];
        TRY(fill_addresses(d, x->s.in_id, x->s.count_in));
        TRY(fill_addresses(d, x->s.out_id, x->s.count_out));
        if (at >= main->step.count) return FAIL(d->e, INTERNAL, "a program of other steps than the plan's");
        const plan_step *s = &p->step.at[main->step.at[at]];
        if (s->kernel != x->s.kernel || !swaps_on_device(s)) continue;
        TRY(problem_number(d->e, s->problem, &x->number));
        x->now = swaps_now(s);
        x->plan = main->step.at[at];
    }
    return SINTER_OK;
}

static sinter_status keep(descent *d, uint64_t hash, text *key, bool *is_changed)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const trial_step *x = &d->step[i];
        if (!x->is_changed) continue;
        TRY(key_of_swap(d->e, d->o, hash, x->plan, &x->now, key));
        TRY(timing_cache_add(d->o->cache, key->at, d->base_ns + 1));
        TRY(tune_swap(d->e, d->t, x->plan, x->now.kernel, &x->now.tactic));
        *is_changed = true;
    }
    return SINTER_OK;
}

static sinter_status descend(env *e, const tune_options *o, context *c, const run_item *item, tune_result *t,
                             uint64_t end_ns, uint64_t hash, text *key, bool *is_changed)
{
    descent d = { .e = e, .o = o, .c = c, .t = t, .end_ns = end_ns, .is_whole = true };
    arena_init(&d.a, e);
    arena_init(&d.scratch, e);
    d.workspace.size = c->g->workspace[c->profile];
    sinter_status s = fill(&d, item);
    if (s == SINTER_OK && d.is_whole) s = run(&d);
    c->is_busy = c->stream != NULL;
    if (s == SINTER_OK) s = keep(&d, hash, key, is_changed);
    drop(&d, d.base);
    forget(&d, 0, 0);
    if (d.workspace.at) o->backend->memory_free(e, o->device, d.workspace.at, d.workspace.size);
    if (s == SINTER_OK)
        env_log(e, LOG_SELECT, "in the whole program: %u tactics tried, %u taken, %.1f us", d.tried, d.taken,
                d.base_ns / 1e3);
    arena_deinit(&d.scratch);
    arena_deinit(&d.a);
    return s;
}

static sinter_status measure(env *e, const tune_options *o, context *c, tune_result *t, text *key, bool *is_changed)
{
    uint64_t hash;
    const uint64_t end_ns = os_time_ns() + (uint64_t)(1e9 * descent_seconds(o));
    TRY(hash_of(e, o, t, &hash));
    for (uint32_t i = 0; i < c->region[1].count; i++) {
        const run_item *item = &c->region[1].item[i];
        if (item->kind != ITEM_PROGRAM || item->is_late || !c->now->program[item->program]) continue;
        TRY(descend(e, o, c, item, t, end_ns, hash, key, is_changed));
    }
    TRY(key_begin(e, o, hash, key));
    text_printf(key, "done");
    return key->failed ? FAIL_MEMORY(e, "a timing key") : timing_cache_add(o->cache, key->at, 1);
}

sinter_status descent_measure(env *e, const tune_options *o, context *c, tune_result *t, bool *is_changed)
{
    text key;
    text_init(&key, e);
    const sinter_status s = measure(e, o, c, t, &key, is_changed);
    text_deinit(&key);
    return NOTE(e, s, "trying tactics in the whole program");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - which kernel, with which tactic: every row is asked, the model orders, the clock decides.
 *
 * A time is taken from the cache or measured and put there before it is used, so the same model, options and cache make
 * the same choices. Times within 1 % go to the earlier candidate: noise must not decide. */
#include "base/os.h"
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>

typedef struct candidate {
    const kernel *kernel;
    tactic tactic;
    double model_ns, ns;
    uint32_t id;
} candidate;

/* TUNE_FAST measures so many of the model's best, and the best few of each kernel: models of different kernels err in
 * different ways. */
enum { CANDIDATES_MAX = 96, FAST_LEAST = 2, FAST_MAX = 6, FAST_EACH = 3 };
static const double worth_trying = 6, worth_nothing = 20; /* times the model's best */
/* Below this the clock's resolution and the caches' state decide more than the tactic does. A device that times whole
 * chains resolves less, and small products are where models are furthest off. */
static const double worth_measuring_ns = 3000, worth_measuring_chains_ns = 2000;

static int by_model(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->model_ns != y->model_ns) return x->model_ns < y->model_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Workspace is booked for the largest sizes of all axes at once. Where sizes are known late, or profiles are wide, that
 * can be more than a machine has, and another kernel needs less. */
static const char *workspace_reason(const kernel *k, const problem *p, const tactic *t, const tune_options *o)
{
    const bool is_limited = k->workspace && o->workspace_max;
    return is_limited && k->workspace(p, t, o->threads) > o->workspace_max ? "wants too large a workspace" : NULL;
}

/* All tactics of the kernels that take the problem, best by the model first; the reference only where nothing else
 * does. */
static uint32_t collect(env *e, const problem *p, const tune_options *o, candidate *list)
{
    uint32_t count = 0, kernels = 0;
    kernel_target target;
    o->backend->target(o->device, &target);
    target.threads = o->threads;
    const kernel *const *kernel_at = o->backend->kernels(&kernels);
    const uint32_t fast = o->reference_only ? 0 : kernels - 1;
    for (uint32_t i = 0; i < fast; i++) {
        const kernel *k = kernel_at[i];
        const char *why = o->exact && k->numerics == KERNEL_TRANSFORMED  ? "transforms its sums"
                          : !o->relaxed && k->numerics == KERNEL_RELAXED ? "rounds operands, which is not permitted"
                                                                         : k->reject(p, &target);
        if (why) {
            if (e && env_logs(e, LOG_SELECT)) env_log(e, LOG_SELECT, "rejected %s: %s", k->name, why);
            continue;
        }
        tactic_sink sink = { .count = 0 };
        k->tactics(p, &target, &sink);
        for (uint32_t j = 0; j < sink.count && count < CANDIDATES_MAX; j++) {
            sinter_error error;
            why = workspace_reason(k, p, &sink.at[j], o);
            if (!why && o->backend->fit) why = o->backend->fit(k, p, &sink.at[j], &error);
            if (why) {
                if (e && env_logs(e, LOG_SELECT)) env_log(e, LOG_SELECT, "rejected %s, tactic %u: %s", k->name, j, why);
                continue;
            }
            list[count] = (candidate){ .kernel = k, .tactic = sink.at[j], .id = count };
            list[count].model_ns = k->cost_ns(p, &sink.at[j], &target);
            count++;
        }
    }
    qsort(list, count, sizeof *list, by_model);
    return count;
}

static const kernel *reference_of(const tune_options *o)
{
    uint32_t kernels = 0;
    const kernel *const *kernel_at = o->backend->kernels(&kernels);
    return kernel_at[kernels - 1];
}

/* What the reference would cost: about 20 ns an element of the largest operand. Only a last resort needs an estimate at
 * all. */
static double reference_ns(const problem *p)
{
    double most = 1;
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        const problem_operand *o = i < p->count_in ? &p->in[i] : &p->out[i - p->count_in];
        double count = 1;
        for (uint32_t k = 0; k < o->rank; k++) count *= (double)o->dim[k].opt;
        if (count > most) most = count;
    }
    return 20 * most + 500;
}

void tune_estimate(const problem *p, const tune_options *o, bool want_fast, choice *out)
{
    candidate list[CANDIDATES_MAX];
    *out = (choice){ 0 };
    if (collect(NULL, p, o, list)) {
        *out = (choice){ .kernel = list[0].kernel, .tactic = list[0].tactic, .ns = list[0].model_ns };
    } else if (!want_fast) {
        *out = (choice){ .kernel = reference_of(o), .ns = reference_ns(p) };
    }
}

/* All that the time of a candidate depends on. */
static void key_print(const problem *p, const candidate *c, const tune_options *o, const char *problem_text, text *key)
{
    text_printf(key, "%s | ", problem_text);
    o->backend->describe(o->device, key);
    if (o->backend->program_time) text_printf(key, " %s weights", tune_weights_are_cold(o) ? "cold" : "warm");
    text_printf(key, " | %u threads | %s.%u", o->threads, c->kernel->name, c->kernel->abi);
    if (c->kernel->print) {
        text_append(key, " ", 1);
        c->kernel->print(&c->tactic, key);
    }
    if (!o->backend->describe_use) return;
    const kernel_use use = { .kernel = c->kernel, .problem = p, .tactic = &c->tactic };
    text_append(key, " ", 1);
    o->backend->describe_use(o->device, &use, key);
}

/* What is asked about one problem: operands are made when the first time is missing. */
typedef struct asking {
    env *e;
    const problem *p;
    const tune_options *o;
    const char *text;
    double estimate_ns;
    tune_bench *bench;
} asking;

/* Only what can be run at opt is measured, and what fits into memory beside all else. */
static bool is_measurable(const env *e, const problem *p)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        const problem_operand *o = i < p->count_in ? &p->in[i] : &p->out[i - p->count_in];
        sinter_tensor t = { .dtype = o->dtype, .rank = o->rank };
        for (uint32_t k = 0; k < o->rank; k++) t.dim[k] = o->dim[k].opt;
        if (o->dtype != SINTER_DTYPE_NONE) bytes = size_add(bytes, sinter_tensor_size(&t));
    }
    return bytes <= e->limits.memory_max / 2 && problem_sizes_agree(e, p);
}

static sinter_status measure(asking *a, const candidate *c, double best_ns, double *ns)
{
    if (!a->bench) TRY(tune_bench_create(a->e, a->p, a->o, a->estimate_ns, &a->bench));
    return tune_bench_time(a->bench, c->kernel, &c->tactic, best_ns, ns);
}

static sinter_status time_of(asking *a, const candidate *c, double best_ns, double *ns)
{
    env *e = a->e;
    const tune_options *o = a->o;
    text key;
    text_init(&key, e);
    key_print(a->p, c, o, a->text, &key);
    sinter_status s = key.failed ? FAIL_MEMORY(e, "a timing key") : SINTER_OK;
    if (s == SINTER_OK && !timing_cache_find(o->cache, key.at, ns)) {
        if (o->cache_only)
            s = FAIL(e, INVALID_ARG, "the timing cache has no entry for '%s', and measuring is not permitted", key.at);
        if (s == SINTER_OK) s = measure(a, c, best_ns, ns);
        if (s == SINTER_OK) s = timing_cache_add(o->cache, key.at, *ns);
    }
    if (s == SINTER_OK) env_log(e, LOG_SELECT, "%s | %.1f us", key.at, *ns / 1e3);
    text_deinit(&key);
    return s;
}

/* Moves those that are worth measuring to the front, in order; how many. */
static uint32_t most_promising(candidate *list, uint32_t count)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; k < taken; k++) same += list[k].kernel == list[i].kernel;
        const double times = list[i].model_ns / (list[0].model_ns + 1);
        if (taken >= FAST_MAX && (same >= FAST_EACH || times > worth_trying)) continue;
        if (taken >= FAST_LEAST && times > worth_nothing) continue;
        const candidate c = list[i];
        list[i] = list[taken];
        list[taken++] = c;
    }
    return taken;
}

/* The code of all candidates that are to be measured at once, where it has to be made. */
static sinter_status prepare(env *e, const problem *p, const tune_options *o, const char *problem_text,
                             const candidate *list, uint32_t count)
{
    kernel_use use[CANDIDATES_MAX];
    uint32_t missing = 0;
    text key;
    if (!o->backend->prepare || o->cache_only) return SINTER_OK;
    text_init(&key, e);
    for (uint32_t i = 0; i < count; i++) {
        double known;
        text_clear(&key);
        key_print(p, &list[i], o, problem_text, &key);
        if (!key.failed && timing_cache_find(o->cache, key.at, &known)) continue;
        use[missing++] = (kernel_use){ .kernel = list[i].kernel, .problem = p, .tactic = &list[i].tactic };
    }
    text_deinit(&key);
    const uint64_t start = os_time_ns();
    const sinter_status s = missing ? o->backend->prepare(e, o->device, use, missing) : SINTER_OK;
    if (o->stats) o->stats->compile_ns += os_time_ns() - start;
    return s;
}

/* ---- the dry pass ---- */

static sinter_status note_use(env *e, const problem *p, const candidate *c, tune_scout *s)
{
    tactic *t = ARENA_NEW(s->a, tactic, 1);
    kernel_use *use = t ? VEC_PUSH(s->a, &s->use) : NULL;
    if (!use) return FAIL_MEMORY(e, "kernels to compile");
    *t = c->tactic;
    *use = (kernel_use){ .kernel = c->kernel, .problem = p, .tactic = t };
    return SINTER_OK;
}

/* Candidates whose times are not known; where all are, the best one, which is the choice. */
static sinter_status note_uses(env *e, const problem *p, const tune_options *o, candidate *list, uint32_t asked,
                               choice *out)
{
    uint32_t best = 0;
    text problem_text, key;
    uint32_t missing = 0;
    text_init(&problem_text, e);
    text_init(&key, e);
    problem_print(p, &problem_text);
    sinter_status s = problem_text.failed ? FAIL_MEMORY(e, "a problem's text") : SINTER_OK;
    for (uint32_t i = 0; i < asked && s == SINTER_OK; i++) {
        text_clear(&key);
        key_print(p, &list[i], o, problem_text.at, &key);
        if (!key.failed && timing_cache_find(o->cache, key.at, &list[i].ns)) {
            if (list[i].ns < list[best].ns * 0.99) best = i;
            continue;
        }
        missing++;
        s = note_use(e, p, &list[i], o->scout);
    }
    text_deinit(&key);
    text_deinit(&problem_text);
    if (missing) return s;
    *out =
        (choice){ .kernel = list[best].kernel, .tactic = list[best].tactic, .ns = list[best].ns, .is_measured = true };
    return s == SINTER_OK ? note_use(e, p, &list[best], o->scout) : s;
}

static void log_choice(env *e, const problem *p, const tune_options *o, uint32_t count, const choice *c)
{
    text line;
    if (o->scout || !env_logs(e, LOG_SELECT)) return;
    text_init(&line, e);
    if (c->kernel->print) c->kernel->print(&c->tactic, &line);
    text_printf(&line, ", %.1f us %s, of %u tactics, for ", c->ns / 1e3,
                c->is_measured ? "measured" : "by the cost model", count);
    problem_print(p, &line);
    if (!line.failed) env_log(e, LOG_SELECT, "taken %s %s", c->kernel->name, line.at);
    text_deinit(&line);
}

static bool is_worth_measuring(const problem *p, const tune_options *o, double model_ns)
{
    const bool in_chains = o->backend->program_time && op_has(p->op, CONTRACTION);
    return o->mode != TUNE_FAST || model_ns >= (in_chains ? worth_measuring_chains_ns : worth_measuring_ns);
}

static sinter_status choose(env *e, const problem *p, const tune_options *o, candidate *list, uint32_t count,
                            choice *out)
{
    *out = (choice){ .kernel = list[0].kernel, .tactic = list[0].tactic, .ns = list[0].model_ns };
    const bool is_clear =
        o->mode == TUNE_OFF || count == 1 || !is_worth_measuring(p, o, list[0].model_ns) || !is_measurable(e, p);
    if (is_clear) return o->scout ? note_use(e, p, &list[0], o->scout) : SINTER_OK;
    const uint32_t asked = o->mode == TUNE_FAST ? most_promising(list, count) : count;
    uint32_t best = 0;
    if (o->scout) return note_uses(e, p, o, list, asked, out);
    text problem_text;
    text_init(&problem_text, e);
    problem_print(p, &problem_text);
    sinter_status s = problem_text.failed ? FAIL_MEMORY(e, "a problem's text") : SINTER_OK;
    if (s == SINTER_OK) s = prepare(e, p, o, problem_text.at, list, asked);
    asking a = { .e = e, .p = p, .o = o, .text = problem_text.at, .estimate_ns = list[0].model_ns };
    for (uint32_t i = 0; i < asked && s == SINTER_OK; i++) {
        s = time_of(&a, &list[i], list[best].ns, &list[i].ns);
        if (list[i].ns < list[best].ns * 0.99) best = i;
    }
    tune_bench_destroy(a.bench);
    text_deinit(&problem_text);
    TRY(s);
    *out =
        (choice){ .kernel = list[best].kernel, .tactic = list[best].tactic, .ns = list[best].ns, .is_measured = true };
    return SINTER_OK;
}

sinter_status tune_choose(env *e, const problem *p, const tune_options *o, choice *out)
{
    candidate list[CANDIDATES_MAX];
    const uint32_t count = collect(o->scout ? NULL : e, p, o, list);
    *out = (choice){ .kernel = reference_of(o), .ns = count ? 0 : reference_ns(p) };
    if (count) TRY(choose(e, p, o, list, count, out));
    log_choice(e, p, o, count, out);
    return SINTER_OK;
}

sinter_status tune_choice_time(env *e, const problem *p, const tune_options *o, choice *c)
{
    if (c->is_measured || o->mode == TUNE_OFF || !is_measurable(e, p)) return SINTER_OK;
    text problem_text, key;
    text_init(&problem_text, e);
    text_init(&key, e);
    problem_print(p, &problem_text);
    const candidate own = { .kernel = c->kernel, .tactic = c->tactic, .model_ns = c->ns };
    sinter_status s = problem_text.failed ? FAIL_MEMORY(e, "a problem's text") : SINTER_OK;
    if (s == SINTER_OK && o->scout) {
        key_print(p, &own, o, problem_text.at, &key);
        c->is_measured = !key.failed && timing_cache_find(o->cache, key.at, &c->ns);
    } else if (s == SINTER_OK) {
        asking a = { .e = e, .p = p, .o = o, .text = problem_text.at, .estimate_ns = c->ns };
        s = time_of(&a, &own, 0, &c->ns);
        tune_bench_destroy(a.bench);
        c->is_measured = s == SINTER_OK;
    }
    text_deinit(&key);
    text_deinit(&problem_text);
    return s;
}

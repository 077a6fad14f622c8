/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - which kernel, with which tactic: every row is asked, the model orders, the clock decides.
 *
 * A time is taken from the cache or measured and put there before it is used, so the same model, options and cache make
 * the same choices. Candidates that are about as fast as the best one are measured again, in turns. A candidate is
 * preferred to one that the model puts before it only if it is faster by more than the noise of the clock. A candidate
 * that cannot be compiled or launched is named in the log and skipped; the cache remembers it. */
#include "base/os.h"
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>

typedef struct candidate {
    const kernel *kernel;
    tactic tactic;
    double model_ns;
    tune_time time;
    uint32_t id;
} candidate;

/* TUNE_FAST measures so many of the model's best, and the best few of each kernel: models of different kernels err in
 * different ways. */
enum { CANDIDATES_MAX = 96, FAST_LEAST = 2, FAST_MAX = 6, FAST_EACH = 3 };
static const double worth_trying = 6, worth_nothing = 20; /* times the model's best */
/* What is slower than the best one by more than this is not measured again; long kernels are timed well at once. */
static const double worth_a_race = 1.1, worth_a_long_race = 1.04, long_ns = 1e6;
/* Limits how many candidates are measured: one run of each must not take longer than this in sum, by the cost model. A
 * problem's largest sizes may be far above those of any run. */
static const double patience_fast_ns = 1e9, patience_full_ns = 1e10;

static int by_model(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->model_ns != y->model_ns) return x->model_ns < y->model_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Returns the workspace in bytes at the sizes that kernels are chosen for. SIZE_MAX: the problem has too many operands.
 */
static size_t workspace_usual(const kernel *k, const problem *p, const tactic *t, uint32_t threads)
{
    enum { OPERANDS = 24 };
    problem_operand list[OPERANDS];
    problem usual = *p;
    if (p->count_in + p->count_out > OPERANDS) return SIZE_MAX;
    usual.in = list;
    usual.out = list + p->count_in;
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        problem_operand *x = &list[i];
        *x = i < p->count_in ? p->in[i] : p->out[i - p->count_in];
        for (uint32_t j = 0; j < x->rank; j++) x->dim[j].min = x->dim[j].max = x->dim[j].opt;
    }
    return k->workspace(&usual, t, threads);
}

static bool has_late(const problem *p)
{
    for (uint32_t i = 0; i < p->count_in; i++)
        if (p->in[i].is_late) return true;
    return false;
}

/* Refuses a kernel that wants more workspace than the options permit. The workspace is booked for the largest sizes of
 * all axes. With data-dependent sizes or wide profiles that can exceed the machine's memory, while another kernel needs
 * less. Also refuses a kernel whose workspace grows out of proportion with data-dependent sizes: each size of an
 * operand can be as large as all its elements, but not all sizes at once. */
static const char *workspace_reason(const kernel *k, const problem *p, const tactic *t, const tune_options *o)
{
    enum { LATE_LEAST = 1 << 22, LATE_TIMES = 16 };
    const size_t wanted = k->workspace ? k->workspace(p, t, o->threads) : 0;
    if (o->workspace_max && wanted > o->workspace_max) return "wants too large a workspace";
    if (wanted <= LATE_LEAST || !has_late(p)) return NULL;
    return wanted / LATE_TIMES > workspace_usual(k, p, t, o->threads)
               ? "wants a workspace for data-dependent sizes that cannot all be at their largest"
               : NULL;
}

/* Lists all tactics of the kernels that accept the problem, the fastest by the cost model first. The reference is
 * listed only if no other kernel accepts the problem. */
static uint32_t collect(env *e, const problem *p, const tune_options *o, candidate *list)
{
    uint32_t count = 0, kernels = 0;
    kernel_target target;
    o->backend->target(o->device, &target);
    target.threads = o->threads;
    target.is_exact = o->exact;
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

/* The reference's time: about 20 ns for each element of the largest operand. A rough estimate is enough for a kernel of
 * last resort. */
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

/* Prints the timing cache's key: everything that a candidate's time depends on. */
static void key_print(const problem *p, const candidate *c, const tune_options *o, const char *problem_text, text *key)
{
    text_printf(key, "%s | ", problem_text);
    o->backend->describe(o->device, key);
    const bool is_cold = tune_weights_are_cold(o);
    if (o->backend->program_time || is_cold)
        text_printf(key, " %s weights", !is_cold ? "warm" : o->backend->program_time ? "cold" : "evicted");
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

/* The state of one choice. The operands are made only if a time is missing from the cache. */
typedef struct asking {
    env *e;
    const problem *p;
    const tune_options *o;
    const char *text;
    double estimate_ns;
    tune_bench *bench;
    bool is_new;          /* something was measured */
    sinter_status failed; /* of the first candidate that failed */
    sinter_error why;
} asking;

/* Can the problem be measured? Its opt shapes must be runnable, and its operands must fit into memory beside everything
 * else. */
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

static sinter_status measure(asking *a, const candidate *c, double best_ns, tune_time *out)
{
    if (!a->bench) TRY(tune_bench_create(a->e, a->p, a->o, a->estimate_ns, &a->bench));
    return tune_bench_time(a->bench, c->kernel, &c->tactic, best_ns, out);
}

/* Does the failure end the build? Yes where it says nothing about the candidate: no memory, cancelled by the user, no
 * compiler. */
static bool ends_build(sinter_status s)
{
    return s == SINTER_NO_MEMORY || s == SINTER_CANCELLED || s == SINTER_INCOMPATIBLE;
}

/* Measured, or INFINITY where the candidate cannot run. */
static sinter_status measure_or_skip(asking *a, const candidate *c, double best_ns, const char *key, tune_time *out)
{
    env *e = a->e;
    sinter_error own = { 0 }, *const error = e->error;
    e->error = &own;
    const sinter_status s = measure(a, c, best_ns, out);
    e->error = error;
    if (s == SINTER_OK) return SINTER_OK;
    if (ends_build(s)) {
        *error = own;
        return s;
    }
    env_log(e, LOG_SELECT, "skipped %s: %s", key, own.text);
    if (!a->failed) a->why = own;
    if (!a->failed) a->failed = s;
    out->ns = INFINITY;
    out->spread = 0;
    return SINTER_OK;
}

static sinter_status time_of(asking *a, candidate *c, double best_ns)
{
    env *e = a->e;
    const tune_options *o = a->o;
    text key;
    text_init(&key, e);
    key_print(a->p, c, o, a->text, &key);
    sinter_status s = key.failed ? FAIL_MEMORY(e, "a timing key") : SINTER_OK;
    if (s == SINTER_OK && !timing_cache_find_time(o->cache, key.at, &c->time)) {
        if (o->cache_only)
            s = FAIL(e, INVALID_ARG, "the timing cache has no entry for '%s', and measuring is not permitted", key.at);
        if (s == SINTER_OK) s = measure_or_skip(a, c, best_ns, key.at, &c->time);
        if (s == SINTER_OK) s = timing_cache_add_time(o->cache, key.at, c->time);
        a->is_new = true;
    }
    if (s == SINTER_OK) env_log(e, LOG_SELECT, "%s | %.1f us", key.at, c->time.ns / 1e3);
    text_deinit(&key);
    return s;
}

/* The candidate that the cost model prefers, unless another one is faster by more than the noise. `count` is not 0. */
static uint32_t fastest(const candidate *list, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        const tune_time t = list[i].time, b = list[best].time;
        if (isinf(t.ns)) continue;
        if (isinf(b.ns) || t.ns < b.ns - tune_margin(b, t)) best = i;
    }
    return best;
}

static sinter_status keep_time(const asking *a, const candidate *c)
{
    text key;
    text_init(&key, a->e);
    key_print(a->p, c, a->o, a->text, &key);
    const sinter_status s =
        key.failed ? FAIL_MEMORY(a->e, "a timing key") : timing_cache_add_time(a->o->cache, key.at, c->time);
    if (s == SINTER_OK)
        env_log(a->e, LOG_SELECT, "%s | %.2f us +- %.2f in turns", key.at, c->time.ns / 1e3, c->time.spread / 1e3);
    text_deinit(&key);
    return s;
}

/* Measures the best candidates again, in turns, if their times are close. */
static sinter_status run_race(asking *a, candidate *list, uint32_t count)
{
    tune_entrant at[TUNE_RACE_MAX];
    candidate *of[TUNE_RACE_MAX];
    uint32_t entrants = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < count; i++) least = fmin(least, list[i].time.ns);
    const double most = least * (least >= long_ns ? worth_a_long_race : worth_a_race);
    for (uint32_t i = 0; i < count; i++) {
        candidate *c = &list[i];
        if (!(c->time.ns <= most)) continue;
        uint32_t k = entrants < TUNE_RACE_MAX ? entrants++ : TUNE_RACE_MAX;
        /* The fastest ones have a place; equal ones in the order of the model. */
        for (; k > 0 && of[k - 1]->time.ns > c->time.ns; k--)
            if (k < TUNE_RACE_MAX) of[k] = of[k - 1];
        if (k < TUNE_RACE_MAX) of[k] = c;
    }
    if (entrants < 2) return SINTER_OK;
    for (uint32_t i = 0; i < entrants; i++)
        at[i] = (tune_entrant){ .kernel = of[i]->kernel, .tactic = &of[i]->tactic, .time = of[i]->time };
    if (!a->bench) TRY(tune_bench_create(a->e, a->p, a->o, a->estimate_ns, &a->bench));
    TRY(tune_bench_race(a->bench, at, entrants));
    for (uint32_t i = 0; i < entrants; i++) {
        of[i]->time = at[i].time;
        TRY(keep_time(a, of[i]));
    }
    return SINTER_OK;
}

/* Fills the times of all in the list. */
static sinter_status times_of(asking *a, candidate *list, uint32_t count)
{
    double best = INFINITY; /* 0 where there is nothing to do */
    for (uint32_t i = 0; i < count; i++) {
        TRY(time_of(a, &list[i], isfinite(best) ? best : 0));
        best = fmin(best, list[i].time.ns);
    }
    if (isfinite(best)) return a->is_new && best > 0 && best < TUNE_HUGE_NS ? run_race(a, list, count) : SINTER_OK;
    if (a->failed) {
        *a->e->error = a->why;
        return NOTE(a->e, a->failed, "each of the %u kernels that were tried for '%s' failed", count, a->text);
    }
    return FAIL(a->e, INTERNAL, "the timing cache says that each kernel for '%s' fails", a->text);
}

/* Moves the candidates worth measuring to the front, in order, and returns their number. */
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

/* How many candidates, in the cost model's order, there is time to measure. */
static uint32_t affordable(const candidate *list, uint32_t count, tune_mode mode)
{
    double patience_ns = mode == TUNE_FAST ? patience_fast_ns : patience_full_ns;
    uint32_t taken = 0;
    while (taken < count && (patience_ns -= list[taken].model_ns) >= 0) taken++;
    return taken;
}

sinter_status tune_compile(env *e, const tune_options *o, const kernel_use *use, uint32_t count)
{
    sinter_error own = { 0 }, *const error = e->error;
    e->error = &own;
    const sinter_status s = o->backend->prepare(e, o->device, use, count);
    e->error = error;
    if (s == SINTER_OK) return SINTER_OK;
    if (ends_build(s)) {
        *error = own;
        return s;
    }
    env_log(e, LOG_SELECT, "compiling ahead: %s", own.text);
    return SINTER_OK;
}

/* Compiles together the missing code of all candidates that are going to be measured. */
static sinter_status prepare(env *e, const problem *p, const tune_options *o, const char *problem_text,
                             const candidate *list, uint32_t count)
{
    kernel_use use[CANDIDATES_MAX];
    uint32_t missing = 0;
    text key;
    if (!o->backend->prepare || o->cache_only) return SINTER_OK;
    text_init(&key, e);
    for (uint32_t i = 0; i < count; i++) {
        tune_time known;
        text_clear(&key);
        key_print(p, &list[i], o, problem_text, &key);
        if (!key.failed && timing_cache_find_time(o->cache, key.at, &known)) continue;
        use[missing++] = (kernel_use){ .kernel = list[i].kernel, .problem = p, .tactic = &list[i].tactic };
    }
    text_deinit(&key);
    const uint64_t start = os_time_ns();
    const sinter_status s = missing ? tune_compile(e, o, use, missing) : SINTER_OK;
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

static choice measured(const candidate *c)
{
    return (choice){ .kernel = c->kernel, .tactic = c->tactic, .ns = c->time.ns, .is_measured = true };
}

/* Dry run: notes the candidates whose times are unknown. If all times are known, notes only the best candidate, which
 * is going to be chosen. */
static sinter_status note_uses(env *e, const problem *p, const tune_options *o, candidate *list, uint32_t asked,
                               choice *out)
{
    text problem_text, key;
    uint32_t missing = 0;
    text_init(&problem_text, e);
    text_init(&key, e);
    problem_print_timed(p, &problem_text);
    sinter_status s = problem_text.failed ? FAIL_MEMORY(e, "a problem's text") : SINTER_OK;
    for (uint32_t i = 0; i < asked && s == SINTER_OK; i++) {
        text_clear(&key);
        key_print(p, &list[i], o, problem_text.at, &key);
        if (!key.failed && timing_cache_find_time(o->cache, key.at, &list[i].time)) continue;
        missing++;
        s = note_use(e, p, &list[i], o->scout);
    }
    text_deinit(&key);
    text_deinit(&problem_text);
    if (missing || s != SINTER_OK) return s;
    const candidate *c = &list[fastest(list, asked)];
    *out = measured(c);
    return note_use(e, p, c, o->scout);
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

static sinter_status choose(env *e, const problem *p, const tune_options *o, candidate *list, uint32_t count,
                            choice *out)
{
    *out = (choice){ .kernel = list[0].kernel, .tactic = list[0].tactic, .ns = list[0].model_ns };
    const uint32_t worthy = o->mode == TUNE_FAST ? most_promising(list, count) : count;
    const uint32_t asked = affordable(list, worthy, o->mode);
    const bool is_clear = o->mode == TUNE_OFF || count == 1 || asked < 2 || !is_measurable(e, p);
    if (is_clear) return o->scout ? note_use(e, p, &list[0], o->scout) : SINTER_OK;
    if (o->scout) return note_uses(e, p, o, list, asked, out);
    text problem_text;
    text_init(&problem_text, e);
    problem_print_timed(p, &problem_text);
    sinter_status s = problem_text.failed ? FAIL_MEMORY(e, "a problem's text") : SINTER_OK;
    if (s == SINTER_OK) s = prepare(e, p, o, problem_text.at, list, asked);
    asking a = { .e = e, .p = p, .o = o, .text = problem_text.at, .estimate_ns = list[0].model_ns };
    if (s == SINTER_OK) s = times_of(&a, list, asked);
    tune_bench_destroy(a.bench);
    text_deinit(&problem_text);
    TRY(s);
    *out = measured(&list[fastest(list, asked)]);
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
    problem_print_timed(p, &problem_text);
    candidate own = { .kernel = c->kernel, .tactic = c->tactic, .model_ns = c->ns };
    sinter_status s = problem_text.failed ? FAIL_MEMORY(e, "a problem's text") : SINTER_OK;
    if (s == SINTER_OK && o->scout) {
        key_print(p, &own, o, problem_text.at, &key);
        c->is_measured = !key.failed && timing_cache_find_time(o->cache, key.at, &own.time);
    } else if (s == SINTER_OK) {
        asking a = { .e = e, .p = p, .o = o, .text = problem_text.at, .estimate_ns = c->ns };
        s = times_of(&a, &own, 1);
        tune_bench_destroy(a.bench);
        c->is_measured = s == SINTER_OK;
    }
    if (c->is_measured) c->ns = own.time.ns;
    text_deinit(&key);
    text_deinit(&problem_text);
    return s;
}

static int by_time(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->time.ns != y->time.ns) return x->time.ns < y->time.ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

sinter_status tune_alternatives(env *e, const problem *p, const tune_options *o, double worth, choice *out,
                                uint32_t room, uint32_t *count)
{
    candidate list[CANDIDATES_MAX];
    const uint32_t all = collect(NULL, p, o, list);
    uint32_t known = 0;
    text problem_text, key;
    *count = 0;
    text_init(&problem_text, e);
    text_init(&key, e);
    problem_print_timed(p, &problem_text);
    for (uint32_t i = 0; i < all && !problem_text.failed; i++) {
        text_clear(&key);
        key_print(p, &list[i], o, problem_text.at, &key);
        tune_time time;
        if (key.failed || !timing_cache_find_time(o->cache, key.at, &time) || isinf(time.ns)) continue;
        list[i].time = time;
        list[known++] = list[i];
    }
    const bool has_failed = problem_text.failed || key.failed;
    text_deinit(&key);
    text_deinit(&problem_text);
    if (has_failed) return FAIL_MEMORY(e, "a timing key");
    qsort(list, known, sizeof *list, by_time);
    for (uint32_t i = 0; i < known && *count < room && list[i].time.ns <= worth * list[0].time.ns; i++)
        out[(*count)++] = measured(&list[i]);
    return SINTER_OK;
}

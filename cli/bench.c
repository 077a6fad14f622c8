/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - `sinter bench`: how long a run takes, and where the time goes.
 *
 * Phases (of a GPU) and steps are timed in contexts of their own after the measurement, so that their clocks cost the
 * figures nothing. */
#include "cli_model.h"

#include <stdlib.h>
#include <string.h>

static const double warm_up_s = 0.2, phases_s = 1;
enum { WARM_UP_MIN = 2, SAMPLES_MAX = 1 << 22, PROBLEM_SHOWN = 110 };

/* Seconds, sorted in the end. */
typedef struct series {
    double *at;
    uint32_t count;
} series;

/* Where the time of a run goes; empty where the device is the host. */
typedef enum phase { PHASE_LATENCY, PHASE_ENQUEUE, PHASE_COPY_IN, PHASE_COMPUTE, PHASE_COPY_OUT, PHASES } phase;
static const char *const phase_title[PHASES] = { "latency", "enqueue", "H2D", "GPU compute", "D2H" };
static const char *const phase_key[PHASES] = { "latency", "enqueue", "h2d", "gpu_compute", "d2h" };

typedef struct figures {
    double first_s, ready_s, median, min, p99, mean, per_second;
    uint32_t runs;
    size_t memory;
    series phase[PHASES];
} figures;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between the two nearest. */
static double percentile(const series *s, double share)
{
    const double at = share * (double)(s->count - 1);
    const uint32_t low = (uint32_t)at;
    const uint32_t high = low + 1 < s->count ? low + 1 : low;
    return s->at[low] + (at - (double)low) * (s->at[high] - s->at[low]);
}

static double mean_of(const series *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->count; i++) sum += s->at[i];
    return s->count ? sum / s->count : 0;
}

static int64_t rows_of(const sinter_context *c)
{
    sinter_state_info state = { 0 };
    return sinter_context_state(c, &state) == SINTER_OK ? state.rows : 0;
}

/* After a run of an engine with a state, which had `before` rows: as many rows as leave room for one more such run. So
 * all runs but the first do the same, with the state as full as it gets. */
static sinter_status make_room(sinter_context *c, int64_t before, sinter_error *error)
{
    sinter_state_info state = { 0 };
    if (sinter_context_state(c, &state) != SINTER_OK || !state.capacity) return SINTER_OK;
    return sinter_context_set_rows(c, state.capacity - (state.rows - before), error);
}

static sinter_status run_once(sinter_context *c, sinter_error *error)
{
    const int64_t before = rows_of(c);
    const sinter_status s = sinter_context_run(c, error);
    return s == SINTER_OK ? make_room(c, before, error) : s;
}

static sinter_status warm_up(sinter_context *c, sinter_error *error)
{
    const double start = cli_seconds();
    for (uint32_t i = 0; i < WARM_UP_MIN || cli_seconds() - start < warm_up_s; i++) {
        if (i && cli_seconds() - start > 10 * warm_up_s) break;
        const sinter_status s = run_once(c, error);
        if (s != SINTER_OK) return s;
    }
    return SINTER_OK;
}

static sinter_status measure(sinter_context *c, double duration, progress *bar, figures *out, sinter_error *error)
{
    sinter_status s = warm_up(c, error);
    if (s != SINTER_OK) return s;

    series sample = { .at = cli_alloc(SAMPLES_MAX, sizeof *sample.at) };
    const double start = cli_seconds();
    double before = start;
    do {
        s = run_once(c, error);
        if (s != SINTER_OK) break;
        const double now = cli_seconds();
        sample.at[sample.count++] = now - before;
        before = now;
        if (now - start > 1) {
            progress_show(bar, "measuring", (now - start) / duration);
            before = cli_seconds();
        }
    } while (before - start < duration && sample.count < SAMPLES_MAX);
    progress_end(bar);
    if (s == SINTER_OK) {
        qsort(sample.at, sample.count, sizeof *sample.at, by_size);
        out->runs = sample.count;
        out->median = percentile(&sample, 0.5);
        out->min = sample.at[0];
        out->p99 = percentile(&sample, 0.99);
        out->mean = mean_of(&sample);
        out->per_second = out->mean > 0 ? 1 / out->mean : 0;
        out->memory = sinter_context_memory(c);
    }
    free(sample.at);
    return s;
}

/* ---- memory of the device ---- */

/* What a context is given: pinned memory, from which inputs are copied fastest, or that of the device. It outlives the
 * context. */
typedef struct lent {
    sinter_engine *engine;
    sinter_place place;
    struct {
        void *at;
        size_t size;
    } * list;
    uint32_t count;
} lent;

static sinter_place place_of(const args *a)
{
    return a->no_data_transfers ? SINTER_PLACE_DEVICE : SINTER_PLACE_PINNED;
}

static sinter_status lend(lent *l, size_t size, void **out, sinter_error *error)
{
    const sinter_status s = sinter_engine_alloc(l->engine, l->place, size, out, error);
    if (s != SINTER_OK) return s;
    l->list = cli_grow(l->list, l->count + 1, sizeof *l->list);
    l->list[l->count].at = *out;
    l->list[l->count++].size = size;
    return SINTER_OK;
}

static void lent_free(lent *l)
{
    for (uint32_t i = 0; i < l->count; i++) sinter_engine_free(l->engine, l->place, l->list[i].at, l->list[i].size);
    free(l->list);
    *l = (lent){ 0 };
}

static sinter_status lend_input(lent *l, const model_input *in, sinter_context *c, sinter_error *error)
{
    sinter_tensor t = in->tensor;
    const size_t size = sinter_tensor_size(&t);
    sinter_status s = lend(l, size, &t.data, error);
    if (s == SINTER_OK)
        s = sinter_engine_copy(l->engine, t.data, l->place, in->tensor.data, SINTER_PLACE_HOST, size, error);
    t.place = l->place;
    return s == SINTER_OK ? sinter_context_set_input(c, in->name, &t, error) : s;
}

static sinter_status lend_inputs(const model_engine *m, const model_inputs *made, sinter_place place, sinter_context *c,
                                 lent *l, sinter_error *error)
{
    sinter_status s = SINTER_OK;
    *l = (lent){ .engine = m->engine, .place = place };
    for (uint32_t i = 0; s == SINTER_OK && i < m->inputs.count; i++) s = lend_input(l, &m->inputs.at[i], c, error);
    for (uint32_t i = 0; s == SINTER_OK && i < made->count; i++) s = lend_input(l, &made->at[i], c, error);
    return s;
}

/* As large as those of the last run. */
static sinter_status lend_outputs(lent *l, sinter_context *c, sinter_error *error)
{
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; s == SINTER_OK && i < sinter_engine_io_count(l->engine); i++) {
        sinter_io io;
        sinter_tensor t;
        void *at = NULL;
        s = sinter_engine_io(l->engine, i, 0, &io);
        if (s != SINTER_OK || io.is_input) continue;
        s = sinter_context_output(c, io.name, &t, error);
        if (s == SINTER_OK) s = lend(l, sinter_tensor_size(&t), &at, error);
        if (s == SINTER_OK) s = sinter_context_set_output(c, io.name, at, sinter_tensor_size(&t), l->place, error);
    }
    return s;
}

/* ---- phases ---- */

/* The host's part of a run is what it takes to begin it, where a run can be begun. */
static sinter_status run_phases(sinter_context *c, bool *is_async, double *at, sinter_error *error)
{
    sinter_error quiet = { 0 };
    sinter_run_time t = { 0 };
    const int64_t before = rows_of(c);
    const double start = cli_seconds();
    sinter_status s = *is_async ? sinter_context_run_async(c, &quiet) : sinter_context_run(c, error);
    const double enqueued = cli_seconds();
    if (s == SINTER_UNSUPPORTED && *is_async) {
        *is_async = false;
        return run_phases(c, is_async, at, error);
    }
    if (*is_async && s != SINTER_OK) *error = quiet;
    if (*is_async && s == SINTER_OK) s = sinter_context_wait(c, error);
    const double end = cli_seconds();
    if (s == SINTER_OK) s = sinter_context_run_time(c, &t);
    at[PHASE_LATENCY] = end - start;
    at[PHASE_ENQUEUE] = enqueued - start;
    at[PHASE_COPY_IN] = 1e-9 * (double)t.copy_in_ns;
    at[PHASE_COMPUTE] = 1e-9 * (double)t.compute_ns;
    at[PHASE_COPY_OUT] = 1e-9 * (double)t.copy_out_ns;
    return s == SINTER_OK ? make_room(c, before, error) : s;
}

static sinter_status measure_phases(const args *a, const model_engine *m, double duration, series *out,
                                    sinter_error *error)
{
    sinter_context *c = NULL;
    model_inputs made;
    lent memory = { 0 };
    bool is_async = true;
    double at[PHASES];
    sinter_status s = model_context(m, a->seed, MODEL_PHASES, &made, &c, error);
    if (s == SINTER_OK) s = lend_inputs(m, &made, place_of(a), c, &memory, error);
    if (s == SINTER_OK) s = warm_up(c, error);
    if (s == SINTER_OK && a->no_data_transfers) s = lend_outputs(&memory, c, error);
    if (s == SINTER_OK) s = run_phases(c, &is_async, at, error);
    for (uint32_t k = 0; k < PHASES; k++) out[k].at = cli_alloc(SAMPLES_MAX / 8, sizeof *out[k].at);
    const double start = cli_seconds();
    while (s == SINTER_OK && out[0].count < SAMPLES_MAX / 8) {
        s = run_phases(c, &is_async, at, error);
        for (uint32_t k = 0; s == SINTER_OK && k < PHASES; k++) out[k].at[out[k].count++] = at[k];
        if (cli_seconds() - start > duration) break;
    }
    if (!is_async) out[PHASE_ENQUEUE].count = 0; /* the host works along */
    if (a->no_data_transfers) out[PHASE_COPY_IN].count = out[PHASE_COPY_OUT].count = 0;
    for (uint32_t k = 0; k < PHASES; k++) qsort(out[k].at, out[k].count, sizeof *out[k].at, by_size);
    sinter_context_destroy(c);
    lent_free(&memory);
    model_inputs_free(&made);
    return s;
}

static void phases_json(const series *list, json *j)
{
    for (uint32_t k = 0; k < PHASES; k++) {
        const series *s = &list[k];
        if (!s->count) continue;
        json_open(j, phase_key[k], '{');
        json_real(j, "min_ms", 1e3 * s->at[0]);
        json_real(j, "mean_ms", 1e3 * mean_of(s));
        json_real(j, "median_ms", 1e3 * percentile(s, 0.5));
        json_real(j, "p90_ms", 1e3 * percentile(s, 0.90));
        json_real(j, "p95_ms", 1e3 * percentile(s, 0.95));
        json_real(j, "p99_ms", 1e3 * percentile(s, 0.99));
        json_real(j, "max_ms", 1e3 * s->at[s->count - 1]);
        json_close(j, '}');
    }
}

static void phases_print(const series *list)
{
    static const char *const title[] = { "ms", ">median", ">min", ">mean", ">p90", ">p95", ">p99", ">max" };
    table t;
    if (!list[PHASE_LATENCY].count) return;
    table_begin(&t, title, 8);
    for (uint32_t k = 0; k < PHASES; k++) {
        const series *s = &list[k];
        if (!s->count) continue;
        const double shown[] = { percentile(s, 0.5),  s->at[0],
                                 mean_of(s),          percentile(s, 0.90),
                                 percentile(s, 0.95), percentile(s, 0.99),
                                 s->at[s->count - 1] };
        table_cell(&t, 0, "%s", phase_title[k]);
        for (uint32_t i = 0; i < 7; i++) table_cell(&t, i + 1, "%.4f", 1e3 * shown[i]);
        table_row(&t);
    }
    table_end(&t, stdout);
}

/* ---- steps ---- */

typedef struct steps {
    sinter_step_time *at;
    uint32_t count;
    uint64_t total_ns;
} steps;

static int by_total(const void *a, const void *b)
{
    const sinter_step_time *x = a, *y = b;
    return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

/* The names belong to the engine. */
static sinter_status measure_steps(const args *a, const model_engine *m, double run_s, steps *out, sinter_error *error)
{
    sinter_context *c = NULL;
    model_inputs made;
    sinter_status s = model_context(m, a->seed, MODEL_STEPS, &made, &c, error);
    const double duration = run_s * 20 < 1 ? 1 : 3 * run_s, start = cli_seconds();
    while (s == SINTER_OK) {
        s = run_once(c, error);
        if (cli_seconds() - start > duration) break;
    }
    out->count = s == SINTER_OK ? sinter_context_step_count(c) : 0;
    out->at = cli_alloc(out->count, sizeof *out->at);
    for (uint32_t i = 0; s == SINTER_OK && i < out->count; i++) {
        s = sinter_context_step(c, i, &out->at[i]);
        out->total_ns += out->at[i].total_ns;
    }
    qsort(out->at, out->count, sizeof *out->at, by_total);
    sinter_context_destroy(c);
    model_inputs_free(&made);
    return s;
}

static double mean_us(const sinter_step_time *t)
{
    return t->runs ? 1e-3 * (double)t->total_ns / (double)t->runs : 0;
}

static double share_of(const steps *p, const sinter_step_time *t)
{
    return p->total_ns ? (double)t->total_ns / (double)p->total_ns : 0;
}

static void steps_json(const steps *p, json *j)
{
    json_open(j, "steps", '[');
    for (uint32_t i = 0; i < p->count; i++) {
        const sinter_step_time *t = &p->at[i];
        json_open(j, NULL, '{');
        json_text(j, "name", t->name);
        json_text(j, "problem", t->problem);
        json_text(j, "kernel", t->kernel);
        json_count(j, "runs", (int64_t)t->runs);
        json_real(j, "mean_us", mean_us(t));
        json_real(j, "min_us", 1e-3 * (double)t->min_ns);
        json_real(j, "share", share_of(p, t));
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void steps_print(const steps *p)
{
    static const char *const title[] = { ">mean us", ">min us", ">share", "kernel", "node", "problem" };
    table t;
    table_begin(&t, title, 6);
    for (uint32_t i = 0; i < p->count; i++) {
        const sinter_step_time *step = &p->at[i];
        if (!step->runs) continue;
        table_cell(&t, 0, "%.1f", mean_us(step));
        table_cell(&t, 1, "%.1f", 1e-3 * (double)step->min_ns);
        table_cell(&t, 2, "%.1f %%", 100 * share_of(p, step));
        table_cell(&t, 3, "%s", step->kernel);
        table_cell(&t, 4, "%s", step->name);
        table_cell(&t, 5, strlen(step->problem) > PROBLEM_SHOWN ? "%.*s..." : "%.*s", PROBLEM_SHOWN, step->problem);
        table_row(&t);
    }
    (void)putchar('\n');
    table_end(&t, stdout);
}

/* ---- the report ---- */

/* What was timed: the profile and the shape of each input. */
static void shapes_print(const model_engine *m)
{
    sinter_io io;
    (void)printf("profile %u", m->profile);
    for (uint32_t i = 0; sinter_engine_io(m->engine, i, m->profile, &io) == SINTER_OK && io.is_input; i++)
        (void)printf("%s %s %s %s%s", i ? "," : ":", io.name, sinter_dtype_name(io.dtype),
                     cli_shape(m->shape[i].rank, m->shape[i].dim).at,
                     model_inputs_find(&m->inputs, io.name) ? "" : " (random)");
    (void)putchar('\n');
}

static void shapes_json(const model_engine *m, json *j)
{
    sinter_io io;
    json_count(j, "profile", m->profile);
    json_open(j, "inputs", '[');
    for (uint32_t i = 0; sinter_engine_io(m->engine, i, m->profile, &io) == SINTER_OK && io.is_input; i++) {
        json_open(j, NULL, '{');
        json_text(j, "name", io.name);
        json_text(j, "type", sinter_dtype_name(io.dtype));
        json_dims(j, "shape", m->shape[i].rank, m->shape[i].dim);
        json_text(j, "data", model_inputs_find(&m->inputs, io.name) ? "given" : "random");
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void print_json(const model_engine *m, const figures *f, const steps *p)
{
    json j = { .to = stdout };
    json_open(&j, NULL, '{');
    json_real(&j, "median_ms", 1e3 * f->median);
    json_real(&j, "min_ms", 1e3 * f->min);
    json_real(&j, "p99_ms", 1e3 * f->p99);
    json_real(&j, "mean_ms", 1e3 * f->mean);
    json_real(&j, "per_second", f->per_second);
    json_count(&j, "runs", f->runs);
    if (m->was_built) json_real(&j, "build_ms", 1e3 * m->build_s);
    json_real(&j, "open_ms", 1e3 * (m->open_s + f->ready_s));
    json_real(&j, "first_ms", 1e3 * f->first_s);
    json_count(&j, "engine_bytes", (int64_t)m->size);
    json_count(&j, "context_bytes", (int64_t)f->memory);
    shapes_json(m, &j);
    phases_json(f->phase, &j);
    steps_json(p, &j);
    json_close(&j, '}');
}

static void print_text(const model_engine *m, const figures *f, const steps *p)
{
    if (m->was_built) (void)printf("built in %.2f s, ", m->build_s);
    (void)printf("opened in %.1f ms (engine %s, context %s), first run %.3f ms\n", 1e3 * (m->open_s + f->ready_s),
                 cli_bytes((double)m->size).at, cli_bytes((double)f->memory).at, 1e3 * f->first_s);
    shapes_print(m);
    (void)printf("median %.4f ms   min %.4f ms   p99 %.4f ms   %.1f runs/s   (%u runs)\n", 1e3 * f->median,
                 1e3 * f->min, 1e3 * f->p99, f->per_second, f->runs);
    phases_print(f->phase);
    if (p->count) steps_print(p);
}

/* A context made, its first run, and many. */
static sinter_status measure_runs(const args *a, const model_engine *m, double duration, progress *bar, figures *f,
                                  sinter_error *error)
{
    sinter_context *c = NULL;
    model_inputs made;
    lent memory = { 0 };
    const double start = cli_seconds();
    sinter_status s = model_context(m, a->seed, MODEL_OFTEN, &made, &c, error);
    f->ready_s = cli_seconds() - start;
    progress_begin(bar);
    if (s == SINTER_OK) s = lend_inputs(m, &made, place_of(a), c, &memory, error);
    const double first = cli_seconds();
    if (s == SINTER_OK) s = run_once(c, error);
    f->first_s = cli_seconds() - first;
    if (s == SINTER_OK && a->no_data_transfers) s = lend_outputs(&memory, c, error);
    if (s == SINTER_OK) s = measure(c, duration, bar, f, error);
    sinter_context_destroy(c);
    lent_free(&memory);
    model_inputs_free(&made);
    return s;
}

int verb_bench(const args *a)
{
    model_setup setup;
    model_engine m;
    if (!model_setup_make(a, &setup)) return STATUS_USAGE;
    bool is_good = model_engine_open(a, &setup, &m) && model_choose(a, &m);
    if (is_good) {
        sinter_error error = { 0 };
        figures f = { 0 };
        steps p = { 0 };
        const double duration = a->has_duration ? a->duration : 3;
        const bool is_host = strcmp(sinter_engine_device(m.engine), "cpu") == 0;
        sinter_status s = measure_runs(a, &m, duration, &setup.bar, &f, &error);
        if (s == SINTER_OK && !is_host)
            s = measure_phases(a, &m, duration < phases_s ? duration : phases_s, f.phase, &error);
        if (s == SINTER_OK && (a->json || a->steps)) s = measure_steps(a, &m, f.median, &p, &error);
        if (s == SINTER_OK && a->json) print_json(&m, &f, &p);
        else if (s == SINTER_OK) print_text(&m, &f, &p);
        error.status = s;
        if (s != SINTER_OK) (void)cli_error(&error);
        is_good = s == SINTER_OK;
        free(p.at);
        for (uint32_t k = 0; k < PHASES; k++) free(f.phase[k].at);
    }
    model_engine_close(&m);
    return is_good ? STATUS_OK : STATUS_FAILED;
}

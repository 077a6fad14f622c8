/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - `sinter bench`: how long a run takes, and where the time goes.
 *
 * Phases (of a GPU) and steps are timed in contexts of their own after the measurement, so that their clocks cost the
 * figures nothing. */
#include "bench_runs.h"
#include "roofline.h"

#include <stdlib.h>
#include <string.h>

static const double warm_up_s = 0.2, phases_s = 1;
enum { WARM_UP_MIN = 2, PROBLEM_SHOWN = 110, STREAMS_MAX = 1024 };

/* Where the time of a run goes; empty where the device is the host. */
typedef enum phase { PHASE_LATENCY, PHASE_ENQUEUE, PHASE_COPY_IN, PHASE_COMPUTE, PHASE_COPY_OUT, PHASES } phase;
static const char *const phase_title[PHASES] = { "latency", "enqueue", "H2D", "GPU compute", "D2H" };
static const char *const phase_key[PHASES] = { "latency", "enqueue", "h2d", "gpu_compute", "d2h" };

typedef struct figures {
    double first_s, ready_s, median, min, p99, mean, per_second;
    uint32_t runs, streams;
    size_t memory;
    series run, phase[PHASES];
} figures;

/* ---- runs ---- */

static measure_plan plan_of(const args *a, double duration, progress *bar)
{
    return (measure_plan){ .streams = a->has_streams ? (uint32_t)a->streams : 1,
                           .has_threads = true,
                           .has_transfers = !a->no_data_transfers,
                           .warm_up_s = a->has_warmup ? a->warmup : warm_up_s,
                           .warm_up_least = a->has_warmup ? 0 : WARM_UP_MIN,
                           .duration_s = duration,
                           .iterations = a->has_iterations ? a->iterations : 1,
                           .seed = a->seed,
                           .bar = bar };
}

static double part_of(const query *q, phase which)
{
    const double at[PHASES] = { q->end - q->start, q->enqueued - q->start, q->copy_in, q->compute, q->copy_out };
    return at[which];
}

static series series_of(const measured *r, phase which)
{
    series s = { .at = cli_alloc(r->count, sizeof *s.at), .count = r->count };
    for (uint32_t i = 0; i < r->count; i++) s.at[i] = part_of(&r->at[i], which);
    series_sort(&s);
    return s;
}

/* A context or several, their first run, and many. */
static sinter_status measure_runs(const args *a, const model_engine *m, double duration, progress *bar, figures *f,
                                  sinter_error *error)
{
    const measure_plan plan = plan_of(a, duration, bar);
    measure_set *set = NULL;
    measured r;
    progress_begin(bar);
    const sinter_status s = measure(m, &plan, &set, &r, error);
    if (s == SINTER_OK && r.count) {
        f->run = series_of(&r, PHASE_LATENCY);
        *f = (figures){ .first_s = r.first_s,
                        .ready_s = r.ready_s,
                        .runs = r.count,
                        .streams = plan.streams,
                        .median = series_percentile(&f->run, 0.5),
                        .min = f->run.at[0],
                        .p99 = series_percentile(&f->run, 0.99),
                        .mean = series_mean(&f->run),
                        .per_second = r.wall_s > 0 ? r.count / r.wall_s : 0,
                        .memory = r.memory,
                        .run = f->run };
    }
    measure_close(set);
    measured_free(&r);
    return s;
}

static sinter_status measure_phases(const args *a, const model_engine *m, double duration, figures *f,
                                    sinter_error *error)
{
    measure_plan plan = plan_of(a, duration, NULL);
    measure_set *set = NULL;
    measured r;
    plan.has_phases = true;
    plan.iterations = 1;
    const sinter_status s = measure(m, &plan, &set, &r, error);
    for (uint32_t k = 0; s == SINTER_OK && k < PHASES; k++) {
        if (k == PHASE_ENQUEUE && !r.is_async) continue; /* the host works along */
        if (a->no_data_transfers && (k == PHASE_COPY_IN || k == PHASE_COPY_OUT)) continue;
        f->phase[k] = series_of(&r, (phase)k);
    }
    measure_close(set);
    measured_free(&r);
    return s;
}

static void phases_json(const series *list, json *j)
{
    for (uint32_t k = 0; k < PHASES; k++) {
        const series *s = &list[k];
        if (!s->count) continue;
        json_open(j, phase_key[k], '{');
        json_real(j, "min_ms", 1e3 * s->at[0]);
        json_real(j, "mean_ms", 1e3 * series_mean(s));
        json_real(j, "median_ms", 1e3 * series_percentile(s, 0.5));
        json_real(j, "p90_ms", 1e3 * series_percentile(s, 0.90));
        json_real(j, "p95_ms", 1e3 * series_percentile(s, 0.95));
        json_real(j, "p99_ms", 1e3 * series_percentile(s, 0.99));
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
        const double shown[] = { series_percentile(s, 0.5),
                                 s->at[0],
                                 series_mean(s),
                                 series_percentile(s, 0.90),
                                 series_percentile(s, 0.95),
                                 series_percentile(s, 0.99),
                                 s->at[s->count - 1] };
        table_cell(&t, 0, "%s", phase_title[k]);
        for (uint32_t i = 0; i < 7; i++) table_cell(&t, i + 1, "%.4f", 1e3 * shown[i]);
        table_row(&t);
    }
    table_end(&t, stdout);
}

/* ---- steps ---- */

static int by_total(const void *a, const void *b)
{
    const sinter_step_time *x = a, *y = b;
    return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

static void steps_json(const step_list *p, json *j)
{
    json_open(j, "steps", '[');
    for (uint32_t i = 0; i < p->count; i++) {
        const sinter_step_time *t = &p->at[i];
        json_open(j, NULL, '{');
        json_text(j, "name", t->name);
        json_text(j, "problem", t->problem);
        json_text(j, "kernel", t->kernel);
        json_count(j, "runs", (int64_t)t->runs);
        json_real(j, "mean_us", step_mean_us(t));
        json_real(j, "min_us", 1e-3 * (double)t->min_ns);
        json_real(j, "share", step_share(p, t));
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void steps_print(const step_list *p)
{
    static const char *const title[] = { ">mean us", ">min us", ">share", "kernel", "node", "problem" };
    table t;
    table_begin(&t, title, 6);
    for (uint32_t i = 0; i < p->count; i++) {
        const sinter_step_time *step = &p->at[i];
        if (!step->runs) continue;
        table_cell(&t, 0, "%.1f", step_mean_us(step));
        table_cell(&t, 1, "%.1f", 1e-3 * (double)step->min_ns);
        table_cell(&t, 2, "%.1f %%", 100 * step_share(p, step));
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

/* Calls with each number of --percentile, from 0 to 100. False: it is malformed. */
static bool percents_read(const char *text, void (*use)(void *user, const series *s, double percent), void *user,
                          const series *s)
{
    while (text && *text) {
        char *end = NULL;
        if (text[strspn(text, "0123456789.,")] || *text == ',') return false;
        const double percent = strtod(text, &end);
        if (end == text || percent > 100 || (*end && (*end != ',' || !end[1]))) return false;
        if (use) use(user, s, percent);
        text = *end ? end + 1 : end;
    }
    return true;
}

static void percent_json(void *user, const series *s, double percent)
{
    char key[40];
    (void)snprintf(key, sizeof key, "p%g_ms", percent);
    json_real(user, key, 1e3 * series_percentile(s, percent / 100));
}

static void percent_print(void *user, const series *s, double percent)
{
    (void)user;
    (void)printf("p%g %.4f ms   ", percent, 1e3 * series_percentile(s, percent / 100));
}

static void print_json(const args *a, const model_engine *m, const figures *f, const step_list *p, const roofline *roof)
{
    json j = { .to = stdout };
    json_open(&j, NULL, '{');
    json_real(&j, "median_ms", 1e3 * f->median);
    json_real(&j, "min_ms", 1e3 * f->min);
    json_real(&j, "p99_ms", 1e3 * f->p99);
    json_real(&j, "mean_ms", 1e3 * f->mean);
    json_real(&j, "per_second", f->per_second);
    json_count(&j, "runs", f->runs);
    json_count(&j, "streams", f->streams);
    json_open(&j, "percentiles", '{');
    (void)percents_read(a->percentile, percent_json, &j, &f->run);
    json_close(&j, '}');
    if (m->was_built) json_real(&j, "build_ms", 1e3 * m->build_s);
    json_real(&j, "open_ms", 1e3 * (m->open_s + f->ready_s));
    json_real(&j, "first_ms", 1e3 * f->first_s);
    json_count(&j, "engine_bytes", (int64_t)m->size);
    json_count(&j, "context_bytes", (int64_t)f->memory);
    shapes_json(m, &j);
    phases_json(f->phase, &j);
    steps_json(p, &j);
    if (roof) roofline_json(roof, &j);
    json_close(&j, '}');
}

static void print_text(const args *a, const model_engine *m, const figures *f, const step_list *p, const roofline *roof)
{
    if (m->was_built) (void)printf("built in %.2f s, ", m->build_s);
    (void)printf("opened in %.1f ms (engine %s, context %s), first run %.3f ms\n", 1e3 * (m->open_s + f->ready_s),
                 cli_bytes((double)m->size).at, cli_bytes((double)f->memory).at, 1e3 * f->first_s);
    shapes_print(m);
    (void)printf("median %.4f ms   min %.4f ms   p99 %.4f ms   %.1f runs/s   (%u runs)\n", 1e3 * f->median,
                 1e3 * f->min, 1e3 * f->p99, f->per_second, f->runs);
    if (percents_read(a->percentile, percent_print, NULL, &f->run) && a->percentile) (void)putchar('\n');
    phases_print(f->phase);
    if (a->steps && p->count) steps_print(p);
    if (roof) roofline_print(roof);
}

int verb_bench(const args *a)
{
    model_setup setup;
    model_engine m;
    if (!model_setup_make(a, &setup)) return STATUS_USAGE;
    if (a->has_streams && (a->streams < 1 || a->streams > STREAMS_MAX)) {
        (void)cli_fail("--streams: expected 1 to %d", STREAMS_MAX);
        return STATUS_USAGE;
    }
    if (a->output && !a->roofline) {
        (void)cli_fail("-o is the page of --roofline");
        return STATUS_USAGE;
    }
    if (!percents_read(a->percentile, NULL, NULL, NULL)) {
        (void)cli_fail("--percentile: expected numbers from 0 to 100 with commas");
        return STATUS_USAGE;
    }
    bool is_good = model_engine_open(a, &setup, &m) && model_choose(a, &m);
    if (is_good) {
        sinter_error error = { 0 };
        figures f = { 0 };
        step_list p = { 0 };
        roofline roof = { 0 };
        const double duration = a->has_duration ? a->duration : 3;
        const bool is_host = strcmp(sinter_engine_device(m.engine), "cpu") == 0;
        sinter_status s = measure_runs(a, &m, duration, &setup.bar, &f, &error);
        if (s == SINTER_OK && !is_host)
            s = measure_phases(a, &m, duration < phases_s ? duration : phases_s, &f, &error);
        if (s == SINTER_OK && (a->json || a->steps || a->roofline))
            s = measure_steps(&m, a->seed, f.median, &p, &error);
        if (s == SINTER_OK && a->roofline) s = roofline_make(&m, &p, &roof, &error);
        const roofline *shown = s == SINTER_OK && a->roofline ? &roof : NULL;
        if (p.count) qsort(p.at, p.count, sizeof *p.at, by_total);
        if (s == SINTER_OK && a->json) print_json(a, &m, &f, &p, shown);
        else if (s == SINTER_OK) print_text(a, &m, &f, &p, shown);
        error.status = s;
        if (s != SINTER_OK) (void)cli_error(&error);
        is_good = s == SINTER_OK && (!shown || !a->output || roofline_page(shown, a->file.at[0], a->output));
        roofline_free(&roof);
        free(p.at);
        free(p.work);
        free(f.run.at);
        for (uint32_t k = 0; k < PHASES; k++) free(f.phase[k].at);
    }
    model_engine_close(&m);
    return is_good ? STATUS_OK : STATUS_FAILED;
}

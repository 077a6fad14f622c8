/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - `sinter bench`: how long a run takes, and where the time goes.
 *
 * Steps are timed in a second context after the measurement, so that their clocks cost the figures nothing. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

static const double warm_up_s = 0.2;
enum { WARM_UP_MIN = 2, SAMPLES_MAX = 1 << 22, PROBLEM_SHOWN = 110 };

typedef struct figures {
    double first_s, ready_s, median, min, p99, mean, per_second;
    uint32_t runs;
    size_t memory;
} figures;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between the two nearest. */
static double percentile(const double *sorted, uint32_t count, double share)
{
    const double at = share * (double)(count - 1);
    const uint32_t low = (uint32_t)at;
    const uint32_t high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

static sinter_status measure(sinter_context *c, double duration, progress *bar, figures *out, sinter_error *error)
{
    double start = cli_seconds();
    sinter_status s = sinter_context_run(c, error);
    out->first_s = cli_seconds() - start;
    start = cli_seconds();
    for (uint32_t i = 0; s == SINTER_OK && (i < WARM_UP_MIN || cli_seconds() - start < warm_up_s); i++) {
        if (i && cli_seconds() - start > 10 * warm_up_s) break;
        s = sinter_context_run(c, error);
    }
    if (s != SINTER_OK) return s;

    double *sample = cli_alloc(SAMPLES_MAX, sizeof *sample);
    uint32_t count = 0;
    start = cli_seconds();
    double before = start;
    do {
        s = sinter_context_run(c, error);
        if (s != SINTER_OK) break;
        const double now = cli_seconds();
        sample[count++] = now - before;
        before = now;
        if (now - start > 1) {
            progress_show(bar, "measuring", (now - start) / duration);
            before = cli_seconds();
        }
    } while (before - start < duration && count < SAMPLES_MAX);
    progress_end(bar);
    if (s == SINTER_OK) {
        double sum = 0;
        for (uint32_t i = 0; i < count; i++) sum += sample[i];
        qsort(sample, count, sizeof *sample, by_size);
        out->runs = count;
        out->median = percentile(sample, count, 0.5);
        out->min = sample[0];
        out->p99 = percentile(sample, count, 0.99);
        out->mean = sum / count;
        out->per_second = sum > 0 ? count / sum : 0;
        out->memory = sinter_context_memory(c);
    }
    free(sample);
    return s;
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
        s = sinter_context_run(c, error);
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
    steps_json(p, &j);
    json_close(&j, '}');
}

static void print_text(const model_engine *m, const figures *f, const steps *p)
{
    if (m->was_built) (void)printf("built in %.2f s, ", m->build_s);
    (void)printf("opened in %.1f ms (engine %s, context %s), first run %.3f ms\n", 1e3 * (m->open_s + f->ready_s),
                 cli_bytes((double)m->size).at, cli_bytes((double)f->memory).at, 1e3 * f->first_s);
    (void)printf("median %.4f ms   min %.4f ms   p99 %.4f ms   %.1f runs/s   (%u runs)\n", 1e3 * f->median,
                 1e3 * f->min, 1e3 * f->p99, f->per_second, f->runs);
    if (p->count) steps_print(p);
}

int verb_bench(const args *a)
{
    model_setup setup;
    model_engine m;
    if (!model_setup_make(a, SINTER_TUNE_FAST, &setup)) return STATUS_USAGE;
    bool is_good = model_engine_open(a, &setup, &m);
    if (is_good) {
        sinter_context *c = NULL;
        model_inputs made;
        sinter_error error = { 0 };
        figures f = { 0 };
        steps p = { 0 };
        const double start = cli_seconds();
        sinter_status s = model_context(&m, a->seed, MODEL_OFTEN, &made, &c, &error);
        f.ready_s = cli_seconds() - start;
        progress_begin(&setup.bar);
        if (s == SINTER_OK) s = measure(c, a->has_duration ? a->duration : 3, &setup.bar, &f, &error);
        if (s == SINTER_OK && (a->json || a->steps)) s = measure_steps(a, &m, f.median, &p, &error);
        if (s == SINTER_OK && a->json) print_json(&m, &f, &p);
        else if (s == SINTER_OK) print_text(&m, &f, &p);
        error.status = s;
        if (s != SINTER_OK) (void)cli_error(&error);
        is_good = s == SINTER_OK;
        free(p.at);
        sinter_context_destroy(c);
        model_inputs_free(&made);
    }
    model_engine_close(&m);
    return is_good ? STATUS_OK : STATUS_FAILED;
}

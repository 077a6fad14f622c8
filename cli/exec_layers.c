/* SPDX-License-Identifier: Apache-2.0 */
/* exec_layers.c - steps as trtexec's layers: what they are, and how long they take.
 *
 * A step has its node's name, or its kernel's; a name that an earlier step has gets " #2" behind it. The files of
 * layers and of times name the same step alike. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static bool is_taken(char *const *name, uint32_t count, const char *text)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(name[i], text)) return true;
    return false;
}

static char *unique_name(char *const *name, uint32_t count, const char *text, uint32_t profile)
{
    const size_t size = strlen(text) + 48;
    char *out = cli_alloc(size, 1), suffix[32] = { 0 };
    if (profile) (void)snprintf(suffix, sizeof suffix, " [profile %u]", profile);
    (void)snprintf(out, size, "%s%s", text, suffix);
    for (uint32_t k = 2; is_taken(name, count, out); k++) (void)snprintf(out, size, "%s #%u%s", text, k, suffix);
    return out;
}

static void names_free(char **name, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) free(name[i]);
    free(name);
}

/* ---- layers ---- */

static bool layers_export(const exec *e, const char *path)
{
    FILE *file = exec_file_open(path);
    if (!file) return false;
    sinter_error error = { 0 };
    kept_text text = { 0 };
    const sinter_status s =
        sinter_engine_print_layers(e->m.engine, SINTER_ALL_LAYERS, SINTER_PRINT_JSON, cli_write_kept, &text, &error);
    const bool is_good = s == SINTER_OK || cli_error(&error) == 0;
    if (is_good) (void)fwrite(text.at, 1, text.length, file);
    free(text.at);
    return exec_file_close(file, path) && is_good;
}

static bool layers_dump(const exec *e)
{
    sinter_error error = { 0 };
    kept_text text = { 0 };
    const sinter_status s =
        sinter_engine_print_layers(e->m.engine, SINTER_ALL_LAYERS, SINTER_PRINT_TEXT, cli_write_kept, &text, &error);
    const bool is_good = s == SINTER_OK || cli_error(&error) == 0;
    if (is_good) cli_say(LOG_INFO, "Layer Information:");
    for (char *line = text.at; is_good && line && *line;) {
        char *end = line + strcspn(line, "\n");
        const bool is_last = !*end;
        *end = 0;
        cli_say(LOG_INFO, "%s", line);
        line = is_last ? end : end + 1;
    }
    free(text.at);
    return is_good;
}

static void profiles_dump(const exec *e)
{
    sinter_io io;
    for (uint32_t p = 0; p < sinter_engine_profile_count(e->m.engine); p++) {
        cli_say(LOG_INFO, "Optimization Profile %u:", p);
        for (uint32_t i = 0; sinter_engine_io(e->m.engine, i, p, &io) == SINTER_OK && io.is_input; i++)
            cli_say(LOG_INFO, "  %s: min = %s, opt = %s, max = %s", io.name, cli_shape(io.rank, io.min).at,
                    cli_shape(io.rank, io.opt).at, cli_shape(io.rank, io.max).at);
    }
}

static int say_weight(void *user, const sinter_weight_info *w)
{
    (void)user;
    if (!w->is_fixed)
        cli_say(LOG_INFO, "%s: %s, %llu bytes", w->name, sinter_dtype_name(w->dtype), (unsigned long long)w->size);
    return 0;
}

bool exec_layers(exec *e)
{
    const exec_args *x = &e->x;
    sinter_error error = { 0 };
    if (exec_has(x, FLAG_dumpOptimizationProfile)) profiles_dump(e);
    if (exec_has(x, FLAG_dumpRefit)) {
        cli_say(LOG_INFO, "Refittable weights:");
        if (sinter_engine_weights(e->m.engine, say_weight, NULL, &error) != SINTER_OK) return cli_error(&error) == 0;
    }
    if (!exec_has(x, FLAG_dumpLayerInfo) && !exec_has(x, FLAG_exportLayerInfo)) return true;
    if (sinter_engine_detail(e->m.engine) == SINTER_DETAIL_NONE)
        cli_say(LOG_WARNING, "--profilingVerbosity=none leaves nothing to tell of layers");
    if (exec_has(x, FLAG_dumpLayerInfo) && !layers_dump(e)) return false;
    return !exec_has(x, FLAG_exportLayerInfo) || layers_export(e, exec_text(x, FLAG_exportLayerInfo));
}

/* ---- times ---- */

enum { RUNS_MAX = 4096, SAMPLES_MAX = 1 << 24 };

/* Times of each step in each run, in ms: sample[step * capacity + run]. */
typedef struct step_times {
    char **name;
    double *sample;
    uint32_t steps, runs, capacity;
    double total;
} step_times;

static sinter_status steps_measure(const exec *e, sinter_context *c, step_times *t, sinter_error *error)
{
    const double start = cli_seconds(), least = exec_number(&e->x, FLAG_iterations, 10),
                 duration = exec_number(&e->x, FLAG_duration, 3);
    uint64_t *before = cli_alloc(t->steps, sizeof *before);
    sinter_status s = measure_once(c, error);
    for (uint32_t k = 0; s == SINTER_OK && k < t->steps; k++) {
        sinter_step_time step;
        s = sinter_context_step(c, k, &step);
        before[k] = step.total_ns;
    }
    while (s == SINTER_OK && t->runs < t->capacity) {
        const double spent = cli_seconds() - start;
        if (t->runs >= least && (spent > 1 || spent > duration)) break;
        s = measure_once(c, error);
        for (uint32_t k = 0; s == SINTER_OK && k < t->steps; k++) {
            sinter_step_time step;
            s = sinter_context_step(c, k, &step);
            t->sample[(size_t)k * t->capacity + t->runs] = 1e-6 * (double)(step.total_ns - before[k]);
            before[k] = step.total_ns;
        }
        t->runs += s == SINTER_OK;
    }
    free(before);
    return s;
}

/* A row of the profile: sum, mean, median and share of one step. */
typedef struct step_row {
    double sum, mean, median, percent;
} step_row;

static double sum_of(const step_times *t, uint32_t step)
{
    double sum = 0;
    for (uint32_t i = 0; i < t->runs; i++) sum += t->sample[(size_t)step * t->capacity + i];
    return sum;
}

static step_row row_of(const step_times *t, uint32_t step)
{
    series s = { .at = t->sample + (size_t)step * t->capacity, .count = t->runs };
    step_row r = { .sum = sum_of(t, step) };
    series_sort(&s);
    r.mean = r.sum / t->runs;
    r.median = series_percentile(&s, 0.5);
    r.percent = t->total > 0 ? 100 * r.sum / t->total : 0;
    return r;
}

static void profile_dump(const step_times *t)
{
    double mean = 0, median = 0;
    cli_say(LOG_INFO, "%s", "");
    cli_say(LOG_INFO, "=== Profile (%u iterations ) ===", t->runs);
    cli_say(LOG_INFO, "%12s %12s %12s %10s   %s", "Time(ms)", "Avg.(ms)", "Median(ms)", "Time(%)", "Layer");
    for (uint32_t k = 0; k < t->steps; k++) {
        const step_row r = row_of(t, k);
        cli_say(LOG_INFO, "%12.2f %12.4f %12.4f %10.1f   %s", r.sum, r.mean, r.median, r.percent, t->name[k]);
        mean += r.mean;
        median += r.median;
    }
    cli_say(LOG_INFO, "%12.2f %12.4f %12.4f %10.1f   %s", t->total, mean, median, 100.0, "Total");
    cli_say(LOG_INFO, "%s", "");
}

static bool profile_export(const step_times *t, const char *path)
{
    FILE *file = exec_file_open(path);
    if (!file) return false;
    json j = { .to = file };
    json_open(&j, NULL, '[');
    json_open(&j, NULL, '{');
    json_count(&j, "count", t->runs);
    json_close(&j, '}');
    for (uint32_t k = 0; k < t->steps; k++) {
        const step_row r = row_of(t, k);
        json_open(&j, NULL, '{');
        json_text(&j, "name", t->name[k]);
        json_real(&j, "timeMs", r.sum);
        json_real(&j, "averageMs", r.mean);
        json_real(&j, "medianMs", r.median);
        json_real(&j, "percentage", r.percent);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    return exec_file_close(file, path);
}

static sinter_status times_make(const exec *e, sinter_context *c, step_times *t)
{
    sinter_status s = SINTER_OK;
    const uint32_t steps = sinter_context_step_count(c);
    t->name = cli_alloc(steps, sizeof *t->name);
    t->capacity = steps && SAMPLES_MAX / steps < RUNS_MAX ? SAMPLES_MAX / steps + 1 : RUNS_MAX;
    t->sample = cli_alloc((size_t)steps * t->capacity, sizeof *t->sample);
    for (; s == SINTER_OK && t->steps < steps; t->steps++) {
        sinter_step_time step;
        s = sinter_context_step(c, t->steps, &step);
        if (s != SINTER_OK) break;
        t->name[t->steps] = unique_name(t->name, t->steps, *step.name ? step.name : step.kernel, e->m.profile);
    }
    return s;
}

bool exec_profile_steps(exec *e)
{
    const exec_args *x = &e->x;
    if (!exec_has(x, FLAG_dumpProfile) && !exec_has(x, FLAG_exportProfile)) return true;
    sinter_context *c = NULL;
    sinter_error error = { 0 };
    model_inputs made = { 0 };
    step_times t = { 0 };
    sinter_status s = model_context(&e->m, 0, MODEL_STEPS, &made, &c, &error);
    if (s == SINTER_OK) s = times_make(e, c, &t);
    if (s == SINTER_OK) s = steps_measure(e, c, &t, &error);
    error.status = s;
    bool is_good = s == SINTER_OK || cli_error(&error) == 0;
    for (uint32_t k = 0; is_good && k < t.steps; k++) t.total += sum_of(&t, k);
    if (is_good && exec_has(x, FLAG_dumpProfile)) profile_dump(&t);
    if (is_good && exec_has(x, FLAG_exportProfile)) is_good = profile_export(&t, exec_text(x, FLAG_exportProfile));
    sinter_context_destroy(c);
    model_inputs_free(&made);
    names_free(t.name, t.steps);
    free(t.sample);
    return is_good;
}

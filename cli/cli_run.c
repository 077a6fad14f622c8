/* SPDX-License-Identifier: Apache-2.0 */
/* cli_run.c - `sinter run`: one run, and a short table of what came out. */
#include "cli_model.h"

#include <math.h>
#include <stdlib.h>

typedef struct summary {
    double min, max, mean;
    int64_t count, odd;
} summary; /* odd: NaN or infinite */

static summary summarize(const sinter_tensor *t)
{
    summary s = { .min = INFINITY, .max = -INFINITY, .count = 1 };
    for (uint32_t i = 0; i < t->rank; i++) s.count *= t->dim[i];
    double sum = 0;
    for (int64_t i = 0; i < s.count; i++) {
        const double value = sinter_tensor_value(t, i);
        if (!isfinite(value)) {
            s.odd++;
            continue;
        }
        if (value < s.min) s.min = value;
        if (value > s.max) s.max = value;
        sum += value;
    }
    if (s.odd == s.count) s.min = s.max = NAN;
    s.mean = s.odd == s.count ? NAN : sum / (double)(s.count - s.odd);
    return s;
}

typedef struct report {
    table t;
    json j;
    bool is_json;
} report;

static void report_output(report *r, const sinter_io *io, const sinter_tensor *t, const char *file)
{
    const summary s = summarize(t);
    if (r->is_json) {
        json_open(&r->j, NULL, '{');
        json_text(&r->j, "name", io->name);
        json_text(&r->j, "type", sinter_dtype_name(t->dtype));
        json_dims(&r->j, "shape", t->rank, t->dim);
        json_real(&r->j, "min", s.min);
        json_real(&r->j, "max", s.max);
        json_real(&r->j, "mean", s.mean);
        json_count(&r->j, "not_finite", s.odd);
        if (file) json_text(&r->j, "file", file);
        json_close(&r->j, '}');
        return;
    }
    table_cell(&r->t, 0, "%s", io->name);
    table_cell(&r->t, 1, "%s", sinter_dtype_name(t->dtype));
    table_cell(&r->t, 2, "%s", cli_shape(t->rank, t->dim).at);
    table_cell(&r->t, 3, "%.6g", s.min);
    table_cell(&r->t, 4, "%.6g", s.max);
    table_cell(&r->t, 5, "%.6g", s.mean);
    if (s.odd) table_cell(&r->t, 6, "%lld not finite %s", (long long)s.odd, file ? file : "");
    else table_cell(&r->t, 6, "%s", file ? file : "");
    table_row(&r->t);
}

static sinter_status run(const args *a, const model_engine *m, const char *const *names, sinter_context *c, report *r,
                         sinter_error *error)
{
    sinter_status s = sinter_context_run(c, error);
    uint32_t index = 0;
    const uint32_t count = sinter_engine_io_count(m->engine);
    for (uint32_t i = 0; s == SINTER_OK && i < count; i++) {
        sinter_io io;
        s = sinter_engine_io(m->engine, i, 0, &io);
        if (s != SINTER_OK || io.is_input) continue;
        sinter_tensor t;
        s = sinter_context_output(c, io.name, &t, error);
        char *file = NULL;
        if (s == SINTER_OK && a->output_dir) {
            file = outputs_path(a, names, index);
            s = sinter_tensor_write(file, &t, error);
        }
        if (s == SINTER_OK) report_output(r, &io, &t, file);
        free(file);
        index++;
    }
    return s;
}

/* The outputs' names, which belong to the engine. The caller frees the list. */
static const char **outputs_of(const sinter_engine *engine, uint32_t *count)
{
    sinter_io io;
    const char **names = cli_alloc(sinter_engine_io_count(engine), sizeof *names);
    *count = 0;
    for (uint32_t i = 0; sinter_engine_io(engine, i, 0, &io) == SINTER_OK; i++)
        if (!io.is_input) names[(*count)++] = io.name;
    return names;
}

/* A model may take long to build: what it will write is looked at before. */
static bool check_outputs(const args *a, const model_setup *setup)
{
    model_face face = { 0 };
    sinter_error error = { 0 };
    if (!a->output_dir || model_is_engine(a->file.at[0])) return true;
    const bool is_read = model_face_read(a->file.at[0], &setup->env, &face, &error) == SINTER_OK;
    const char **names = cli_alloc(face.count, sizeof *names);
    uint32_t count = 0;
    for (uint32_t i = 0; i < face.count; i++)
        if (!face.at[i].io.is_input) names[count++] = face.at[i].name;
    const bool is_good = is_read ? outputs_check_folder(a, names, count) : cli_error(&error) == 0;
    free(names);
    model_face_free(&face);
    return is_good;
}

int verb_run(const args *a)
{
    model_setup setup;
    model_engine m;
    if (!model_setup_make(a, &setup)) return STATUS_USAGE;
    if (!check_outputs(a, &setup)) return STATUS_FAILED;
    bool is_good = model_engine_open(a, &setup, &m);
    if (is_good) is_good = model_choose(a, &m);
    uint32_t outputs = 0;
    const char **names = is_good ? outputs_of(m.engine, &outputs) : NULL;
    if (is_good) is_good = outputs_check_folder(a, names, outputs);
    if (is_good) {
        static const char *const title[] = { "output", "type", "shape", ">min", ">max", ">mean", "" };
        report r = { .is_json = a->json, .j.to = stdout };
        if (a->json) {
            json_open(&r.j, NULL, '{');
            json_open(&r.j, "outputs", '[');
        } else {
            table_begin(&r.t, title, 7);
        }
        sinter_context *c = NULL;
        model_inputs made;
        sinter_error error = { 0 };
        sinter_status s = model_context(&m, a->seed, MODEL_ONCE, &made, &c, &error);
        if (s == SINTER_OK) s = run(a, &m, names, c, &r, &error);
        error.status = s;
        if (a->json) {
            json_close(&r.j, ']');
            json_text(&r.j, "error", s == SINTER_OK ? NULL : error.text);
            json_close(&r.j, '}');
        } else if (s == SINTER_OK) {
            table_end(&r.t, stdout);
        }
        if (s != SINTER_OK) (void)cli_error(&error);
        is_good = s == SINTER_OK;
        sinter_context_destroy(c);
        model_inputs_free(&made);
    }
    free(names);
    model_engine_close(&m);
    return is_good ? STATUS_OK : STATUS_FAILED;
}

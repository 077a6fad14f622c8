/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.c - `sinter inspect`: what an engine is made of, and how a model became it. */
#include "cli_model.h"

#include <stdlib.h>
#include <string.h>

typedef struct watch {
    const char *stage;     /* wanted; NULL: none */
    kept_text text, names; /* of the stage after its last run; of all stages, one a line */
    kept_text why;
    progress *bar;
} watch;

static void on_stage(void *user, const char *stage, const char *text, size_t length)
{
    watch *w = user;
    char line[128];
    (void)snprintf(line, sizeof line, "%s\n", stage);
    if (!w->names.at || !strstr(w->names.at, line)) cli_write_kept(&w->names, line, strlen(line));
    if (!w->stage || strcmp(stage, w->stage) != 0) return;
    w->text.length = 0;
    cli_write_kept(&w->text, text, length);
}

static int on_progress(void *user, const char *phase, double done)
{
    progress_show(((watch *)user)->bar, phase, done);
    return build_is_interrupted();
}

static void on_log(void *user, const char *topic, const char *line)
{
    watch *w = user;
    if (strcmp(topic, "select") != 0) return;
    cli_write_kept(&w->why, line, strlen(line));
    cli_write_kept(&w->why, "\n", 1);
}

static void face_print(const model_face *face)
{
    static const char *const title[] = { "model", "name", "type", "shape" };
    table t;
    table_begin(&t, title, 4);
    for (uint32_t i = 0; i < face->count; i++) {
        const model_io *m = &face->at[i];
        char shape[512] = "scalar";
        size_t at = 0;
        for (uint32_t k = 0; k < m->io.rank && at < sizeof shape; k++) {
            const char *sep = k ? "x" : "";
            at += (size_t)(m->io.dim[k] >= 0
                               ? snprintf(shape + at, sizeof shape - at, "%s%lld", sep, (long long)m->io.dim[k])
                               : snprintf(shape + at, sizeof shape - at, "%s%s", sep,
                                          m->dim_name[k] ? m->dim_name[k] : "?"));
        }
        table_cell(&t, 0, "%s", m->io.is_input ? "input" : "output");
        table_cell(&t, 1, "%s", m->name);
        table_cell(&t, 2, "%s", sinter_dtype_name(m->io.dtype));
        table_cell(&t, 3, "%s", shape);
        table_row(&t);
    }
    table_end(&t, stdout);
    (void)putchar('\n');
}

static void face_json(const model_face *face, json *j)
{
    json_open(j, "model", '[');
    for (uint32_t i = 0; i < face->count; i++) {
        const model_io *m = &face->at[i];
        json_open(j, NULL, '{');
        json_text(j, "kind", m->io.is_input ? "input" : "output");
        json_text(j, "name", m->name);
        json_text(j, "type", sinter_dtype_name(m->io.dtype));
        json_open(j, "shape", '[');
        for (uint32_t k = 0; k < m->io.rank; k++) {
            if (m->io.dim[k] >= 0) json_count(j, NULL, m->io.dim[k]);
            else json_text(j, NULL, m->dim_name[k]);
        }
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
}

static bool print_why(const watch *w)
{
    const char *line = w->why.at ? w->why.at : "";
    (void)printf("\nkernels considered:\n%s", *line ? line : "  (none)\n");
    return true;
}

static void why_json(const watch *w, json *j)
{
    json_open(j, "why", '[');
    char *at = w->why.at;
    while (at && *at) {
        char *end = strchr(at, '\n');
        if (end) *end = 0;
        json_text(j, NULL, at);
        at = end ? end + 1 : NULL;
    }
    json_close(j, ']');
}

static bool print_engine(const args *a, const model_engine *m, const model_face *face, const watch *w)
{
    sinter_error error = { 0 };
    kept_text text = { 0 };
    const sinter_print format = a->json ? SINTER_PRINT_JSON : SINTER_PRINT_TEXT;
    const sinter_status s = sinter_engine_print(m->engine, format, cli_write_kept, &text, &error);
    if (s != SINTER_OK) {
        (void)cli_error(&error);
    } else if (a->json) {
        json j = { .to = stdout };
        json_open(&j, NULL, '{');
        if (face) face_json(face, &j);
        json_raw(&j, "engine", text.at ? text.at : "null");
        if (a->why) why_json(w, &j);
        json_close(&j, '}');
    } else {
        if (face) face_print(face);
        if (text.at) (void)fputs(text.at, stdout);
        if (a->why) (void)print_why(w);
    }
    free(text.at);
    return s == SINTER_OK;
}

static bool print_stage(const args *a, const watch *w)
{
    if (w->text.at) {
        if (!a->json) return fputs(w->text.at, stdout) >= 0;
        json j = { .to = stdout };
        json_open(&j, NULL, '{');
        json_text(&j, "stage", a->stage);
        json_text(&j, "graph", w->text.at);
        json_close(&j, '}');
        return true;
    }
    for (size_t i = 0; i < w->names.length; i++) {
        if (w->names.at[i] == '\n') w->names.at[i] = ' ';
    }
    return cli_fail("no stage '%s'; there are: %s", a->stage, w->names.at ? w->names.at : "none") == 0;
}

int verb_inspect(const args *a)
{
    model_setup setup;
    if (!model_setup_make(a, &setup)) return STATUS_USAGE;
    const bool is_model = !model_is_engine(a->file.at[0]);
    if (!is_model && (a->why || a->stage)) {
        (void)cli_fail("--%s needs a model: an engine does not keep how it was made", a->why ? "why" : "stage");
        return STATUS_USAGE;
    }
    setup.load.no_device = 1;
    watch w = { .stage = a->stage, .bar = &setup.bar };
    setup.build.user = &w;
    setup.build.progress = on_progress;
    if (a->stage) setup.build.stage = on_stage;
    if (a->why) {
        setup.env.log = on_log;
        setup.env.log_user = &w;
        setup.env.log_topics = "select";
    }
    sinter_error error = { 0 };
    model_face face = { 0 };
    model_engine m = { 0 };
    bool is_good = true;
    if (is_model && model_face_read(a->file.at[0], &setup.env, &face, &error) != SINTER_OK) {
        (void)cli_error(&error);
        is_good = false;
    }
    is_good = is_good && model_engine_open(a, &setup, &m);
    if (a->stage && (is_good || w.text.at)) is_good = print_stage(a, &w) && is_good;
    else if (is_good) is_good = print_engine(a, &m, is_model ? &face : NULL, &w);
    model_engine_close(&m);
    model_face_free(&face);
    free(w.text.at);
    free(w.names.at);
    free(w.why.at);
    return is_good ? STATUS_OK : STATUS_FAILED;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* html_report.c - `sinter report`: an engine as one page of HTML, with style, drawings and script inside.
 *
 * Steps, tensors and memory come from the engine's own report as JSON; times are measured here. All text of the file is
 * escaped: a model's names are the model's. */
#include "html_report.h"

#include "compare_page.h"
#include "html_page.h"
#include "json_text.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the engine says ---- */

static char *member_text(json_value object, const char *key)
{
    json_value v;
    return json_member(object, key, &v) ? json_copy_text(v) : cli_copy("");
}

static double member_number(json_value object, const char *key)
{
    json_value v;
    double number = 0;
    return json_member(object, key, &v) && json_number(v, &number) ? number : 0;
}

static void uses_read(json_value step, const char *key, bool is_result, report_step *out)
{
    json_value list, tensor, kind;
    bool has_tensor = json_member(step, key, &list) && json_item(list, 0, &tensor);
    for (; has_tensor; has_tensor = json_next(tensor, &tensor)) {
        out->use = cli_grow(out->use, out->uses + 1, sizeof *out->use);
        out->use[out->uses++] =
            (report_use){ .storage = (uint32_t)member_number(tensor, "storage"),
                          .is_result = is_result,
                          .is_weight = json_member(tensor, "kind", &kind) && json_is_text(kind, "weight") };
    }
}

static void steps_read(json_value profile, report_page *p)
{
    json_value list, step;
    bool has_step = json_member(profile, "steps", &list) && json_item(list, 0, &step);
    for (; has_step; has_step = json_next(step, &step)) {
        p->step = cli_grow(p->step, p->steps + 1, sizeof *p->step);
        report_step *s = &p->step[p->steps++];
        *s = (report_step){ .name = member_text(step, "name"),
                            .kernel = member_text(step, "kernel"),
                            .tactic = member_text(step, "tactic"),
                            .problem = member_text(step, "problem"),
                            .where = member_text(step, "where") };
        uses_read(step, "in", false, s);
        uses_read(step, "out", true, s);
    }
}

/* A block lives from the first step that touches it to the last. */
static void blocks_read(json_value profile, report_page *p)
{
    json_value list, block, place;
    bool has_block = json_member(profile, "slab", &list) && json_item(list, 0, &block);
    for (; has_block; has_block = json_next(block, &block)) {
        if (json_member(block, "place", &place) && json_is_text(place, "host")) continue;
        p->block = cli_grow(p->block, p->blocks + 1, sizeof *p->block);
        report_block *b = &p->block[p->blocks++];
        *b = (report_block){ .storage = (uint32_t)member_number(block, "storage"),
                             .at = member_number(block, "at"),
                             .size = member_number(block, "bytes") };
        for (uint32_t i = 0; i < p->steps; i++) {
            for (uint32_t k = 0; k < p->step[i].uses; k++) {
                if (p->step[i].use[k].storage != b->storage) continue;
                if (!b->is_used) b->first = i;
                b->is_used = true;
                b->last = i;
            }
        }
    }
}

static void page_free(report_page *p)
{
    for (uint32_t i = 0; i < p->steps; i++) {
        free(p->step[i].name);
        free(p->step[i].kernel);
        free(p->step[i].tactic);
        free(p->step[i].problem);
        free(p->step[i].where);
        free(p->step[i].use);
    }
    free(p->step);
    free(p->block);
}

/* ---- parts of the page ---- */

static void card(FILE *to, const char *title, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void card(FILE *to, const char *title, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    (void)fprintf(to, "<div class=\"card\">%s<b>", title);
    html_text(to, text);
    (void)fprintf(to, "</b></div>\n");
}

static void head_print(const args *a, const model_engine *m, json_value engine, FILE *to)
{
    static const char *const key[] = { "model", "version", "target" };
    static const char *const title[] = { "Model", "Written by sinter", "Built for" };
    sinter_io io;
    html_begin(to, a->file.at[0]);
    (void)fprintf(to, "<table><tbody>\n");
    for (uint32_t i = 0; i < 3; i++) {
        char *text = member_text(engine, key[i]);
        (void)fprintf(to, "<tr><td>%s</td><td>", title[i]);
        html_text(to, text);
        (void)fprintf(to, "</td></tr>\n");
        free(text);
    }
    for (uint32_t i = 0; sinter_engine_io(m->engine, i, m->profile, &io) == SINTER_OK; i++) {
        (void)fprintf(to, "<tr><td>%s</td><td>", io.is_input ? "Input" : "Output");
        html_text(to, io.name);
        (void)fprintf(to, " %s [", sinter_dtype_name(io.dtype));
        for (uint32_t k = 0; k < io.rank; k++) {
            if (k) (void)fputs(", ", to);
            html_text(to, io.dim_text[k]);
        }
        (void)fprintf(to, "]");
        if (io.is_input && m->shape) (void)fprintf(to, ", here %s", cli_shape(m->shape[i].rank, m->shape[i].dim).at);
        (void)fprintf(to, "</td></tr>\n");
    }
    (void)fprintf(to, "</tbody></table>\n");
}

static void cards_print(const report_page *p, json_value engine, json_value profile, const series *run,
                        double per_second)
{
    FILE *to = p->to;
    (void)fprintf(to, "<h2>Summary</h2>\n<div class=\"cards\">\n");
    if (run->count) {
        card(to, "Median", "%.4f ms", 1e3 * series_percentile(run, 0.5));
        card(to, "Least", "%.4f ms", 1e3 * run->at[0]);
        card(to, "99th percentile", "%.4f ms", 1e3 * series_percentile(run, 0.99));
        card(to, "Runs per second", "%.1f", per_second);
    }
    card(to, "Steps", "%u", p->steps);
    card(to, "Engine file", "%s", cli_bytes(member_number(engine, "file_bytes")).at);
    card(to, "Weights", "%s", cli_bytes(member_number(profile, "weight_bytes")).at);
    card(to, "Results between steps", "%s", cli_bytes(member_number(profile, "slab_bytes")).at);
    card(to, "Scratch memory", "%s", cli_bytes(member_number(profile, "workspace_bytes")).at);
    (void)fprintf(to, "</div>\n");
    if (run->count) (void)fprintf(to, "<h2>Times of %u runs</h2>\n", run->count), report_histogram(to, run);
}

static void steps_print(const report_page *p)
{
    (void)fprintf(p->to, "<h2>Steps</h2>\n<div class=\"scroll\"><table><thead><tr><th class=\"n\">#</th>");
    if (p->has_times) (void)fprintf(p->to, "<th class=\"n\">mean us</th><th class=\"n\">share %%</th><th></th>");
    (void)fprintf(p->to, "<th>node</th><th>kernel</th><th>problem</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < p->steps; i++) {
        const report_step *s = &p->step[i];
        (void)fprintf(p->to, "<tr><td class=\"n\">%u</td>", i);
        if (p->has_times)
            (void)fprintf(p->to,
                          "<td class=\"n\">%.2f</td><td class=\"n\">%.2f</td><td><span class=\"meter\" "
                          "style=\"width:%.0fpx\"></span></td>",
                          s->mean_us, 100 * s->share, p->most_share > 0 ? 120 * s->share / p->most_share : 0);
        (void)fprintf(p->to, "<td>");
        html_text(p->to, s->name);
        (void)fprintf(p->to, "</td><td>");
        html_text(p->to, s->kernel);
        (void)fprintf(p->to, " ");
        html_text(p->to, s->tactic);
        (void)fprintf(p->to, "</td><td class=\"p\">");
        html_text(p->to, s->problem);
        (void)fprintf(p->to, "</td></tr>\n");
    }
    (void)fprintf(p->to, "</tbody></table></div>\n");
}

static void kernels_print(const report_page *p)
{
    (void)fprintf(p->to,
                  "<h2>Kernels</h2>\n<table><thead><tr><th>kernel</th><th class=\"n\">steps</th>%s</tr></thead>"
                  "<tbody>\n",
                  p->has_times ? "<th class=\"n\">mean us</th><th class=\"n\">share %</th>" : "");
    for (uint32_t i = 0; i < p->steps; i++) {
        uint32_t before = 0, count = 0;
        double us = 0, share = 0;
        for (uint32_t k = 0; k < p->steps; k++) {
            if (strcmp(p->step[k].kernel, p->step[i].kernel) != 0) continue;
            before += k < i;
            count++;
            us += p->step[k].mean_us;
            share += p->step[k].share;
        }
        if (before) continue;
        (void)fprintf(p->to, "<tr><td>");
        html_text(p->to, p->step[i].kernel);
        (void)fprintf(p->to, "</td><td class=\"n\">%u</td>", count);
        if (p->has_times) (void)fprintf(p->to, "<td class=\"n\">%.2f</td><td class=\"n\">%.2f</td>", us, 100 * share);
        (void)fprintf(p->to, "</tr>\n");
    }
    (void)fprintf(p->to, "</tbody></table>\n");
}

/* ---- accuracy ---- */

/* One line of the table: the largest difference, and the root of the mean of squares over that of what is wanted. */
static void output_print(FILE *to, const char *name, const sinter_tensor *got, const sinter_tensor *want)
{
    const int64_t count = compare_count(got);
    double most = 0, square = 0, size = 0;
    int64_t odd = 0;
    (void)fprintf(to, "<tr><td>");
    html_text(to, name);
    if (compare_count(want) != count || want->dtype != got->dtype) {
        (void)fprintf(to, "</td><td class=\"bad\" colspan=\"3\">%s %s, wanted %s %s</td></tr>\n",
                      sinter_dtype_name(got->dtype), cli_shape(got->rank, got->dim).at, sinter_dtype_name(want->dtype),
                      cli_shape(want->rank, want->dim).at);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const double a = sinter_tensor_value(got, i), b = sinter_tensor_value(want, i), d = fabs(a - b);
        if (a == b || (isnan(a) && isnan(b))) {
            size += isfinite(b) ? b * b : 0;
            continue;
        }
        if (!isfinite(d)) {
            odd++;
            continue;
        }
        if (d > most) most = d;
        square += d * d;
        size += b * b;
    }
    (void)fprintf(to, "</td><td class=\"n\">%.3g</td><td class=\"n\">%.3g</td><td class=\"n\">%lld</td></tr>\n", most,
                  size > 0 ? sqrt(square / size) : sqrt(square), (long long)odd);
}

static sinter_status accuracy_print(const args *a, const model_engine *m, const model_inputs *want, FILE *to,
                                    sinter_error *error)
{
    sinter_context *c = NULL;
    model_inputs made = { 0 };
    if (!a->expect.count && !a->against) {
        (void)fprintf(to, "<h2>Accuracy</h2>\n<p>Nothing was given to compare with: --against or --expect.</p>\n");
        return SINTER_OK;
    }
    if (!want->count) return SINTER_OK;
    sinter_status s = model_context(m, a->seed, MODEL_ONCE, &made, &c, error);
    if (s == SINTER_OK) s = sinter_context_run(c, error);
    (void)fprintf(to, "<h2>Accuracy</h2>\n<table><thead><tr><th>output</th><th class=\"n\">largest difference</th>"
                      "<th class=\"n\">rms over rms of what is wanted</th><th class=\"n\">not finite</th></tr></thead>"
                      "<tbody>\n");
    for (uint32_t i = 0; s == SINTER_OK && i < want->count; i++) {
        sinter_tensor got;
        s = sinter_context_output(c, want->at[i].name, &got, error);
        if (s == SINTER_OK) output_print(to, want->at[i].name, &got, &want->at[i].tensor);
    }
    (void)fprintf(to, "</tbody></table>\n");
    sinter_context_destroy(c);
    model_inputs_free(&made);
    return s;
}

/* The comparison with another side, with an engine of its own. */
static bool against_print(const args *a, FILE *to)
{
    const char *const text[SIDES] = { a->file.at[0], a->against };
    comparison c;
    const bool is_good = !a->against || compare_make(a, text, &c);
    if (!a->against) return true;
    if (is_good) {
        (void)fprintf(to, "<h2>Accuracy</h2>\n");
        compare_page_body(&c, to);
    }
    compare_free(&c);
    return is_good;
}

/* ---- the whole ---- */

static sinter_status times_make(const args *a, const model_engine *m, report_page *p, series *run, double *per_second,
                                sinter_error *error)
{
    const measure_plan plan = { .streams = 1,
                                .has_transfers = true,
                                .warm_up_s = 0.1,
                                .warm_up_least = 2,
                                .duration_s = a->has_duration ? a->duration : 1,
                                .iterations = 10,
                                .seed = a->seed };
    measure_set *set = NULL;
    measured r;
    step_list list = { 0 };
    sinter_status s = measure(m, &plan, &set, &r, error);
    run->at = cli_alloc(r.count, sizeof *run->at);
    for (uint32_t i = 0; s == SINTER_OK && i < r.count; i++) run->at[run->count++] = r.at[i].end - r.at[i].start;
    series_sort(run);
    if (r.wall_s > 0) *per_second = r.count / r.wall_s;
    if (s == SINTER_OK) s = measure_steps(m, a->seed, run->count ? run->at[0] : 0, &list, error);
    p->has_times = s == SINTER_OK && list.count == p->steps;
    for (uint32_t i = 0; p->has_times && i < list.count; i++) {
        p->step[i].mean_us = step_mean_us(&list.at[i]);
        p->step[i].share = step_share(&list, &list.at[i]);
        if (p->step[i].share > p->most_share) p->most_share = p->step[i].share;
    }
    free(list.at);
    free(list.work);
    measure_close(set);
    measured_free(&r);
    return s;
}

static sinter_status page_make(const args *a, const model_engine *m, const model_inputs *want, report_page *p,
                               bool *has_failed, sinter_error *error)
{
    kept_text text = { 0 };
    series run = { 0 };
    double per_second = 0;
    json_value profiles, profile;
    sinter_status s = sinter_engine_print(m->engine, SINTER_PRINT_JSON, cli_write_kept, &text, error);
    const json_value engine = json_value_of(s == SINTER_OK && text.at ? text.at : "{}");
    if (s == SINTER_OK && json_member(engine, "profiles", &profiles) && json_item(profiles, m->profile, &profile)) {
        steps_read(profile, p);
        blocks_read(profile, p);
        p->slab = member_number(profile, "slab_bytes");
        if (!a->no_run) s = times_make(a, m, p, &run, &per_second, error);
        head_print(a, m, engine, p->to);
        cards_print(p, engine, profile, &run, per_second);
        if (s == SINTER_OK) s = accuracy_print(a, m, want, p->to, error);
        if (s == SINTER_OK && !against_print(a, p->to)) *has_failed = true;
        kernels_print(p);
        (void)fprintf(p->to, "<h2>Memory over the steps</h2>\n");
        report_memory(p);
        (void)fprintf(p->to, "<h2>Graph</h2>\n");
        report_graph(p);
        steps_print(p);
        html_end(p->to);
    }
    free(run.at);
    free(text.at);
    return s;
}

int verb_report(const args *a)
{
    model_setup setup;
    model_engine m = { 0 };
    model_inputs want = { 0 };
    sinter_error error = { 0 };
    if (!a->output) {
        (void)cli_fail("where to? -o FILE.html is missing");
        return STATUS_USAGE;
    }
    if (a->no_run && (a->expect.count || a->against)) {
        (void)cli_fail("--%s needs a run, --no-run has none", a->against ? "against" : "expect");
        return STATUS_USAGE;
    }
    if (!model_setup_make(a, &setup)) return STATUS_USAGE;
    if (a->no_run) setup.load.no_device = 1;
    bool is_good =
        model_inputs_read(&a->expect, &setup.env, &want) && model_engine_open(a, &setup, &m) && model_choose(a, &m);
    report_page p = { .to = is_good ? html_open(a->output) : NULL };
    if (p.to) {
        bool has_failed = false;
        error.status = page_make(a, &m, &want, &p, &has_failed, &error);
        is_good = (error.status == SINTER_OK || cli_error(&error) == 0) && !has_failed;
        is_good = html_close(p.to, a->output) && is_good;
    }
    page_free(&p);
    model_engine_close(&m);
    model_inputs_free(&want);
    return is_good && p.to ? STATUS_OK : STATUS_FAILED;
}

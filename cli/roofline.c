/* SPDX-License-Identifier: Apache-2.0 */
/* roofline.c - floors of steps, from the machine's rates and each step's work, as text, JSON and a page.
 *
 * Weights come from memory, other operands from the caches: the step before has just written them. The two, and the
 * operations, may overlap, so the larger of both times is the floor. */
#include "roofline.h"

#include "html_page.h"

#include <stdlib.h>
#include <string.h>

enum { PROBLEM_SHOWN = 90 };

static double rate_of(const sinter_rates *r, const sinter_step_work *w)
{
    if (!w->products) return r->f32;
    switch (w->dtype) {
    case SINTER_DTYPE_F16:
    case SINTER_DTYPE_BF16: return r->f16;
    case SINTER_DTYPE_I8:
    case SINTER_DTYPE_U8: return r->int8;
    default: return r->f32;
    }
}

static void floor_of(const sinter_rates *r, roof_step *s)
{
    const double rate = rate_of(r, &s->work), compute = rate > 0 ? s->work.operations / rate : 0;
    const double near = s->work.read_bytes + s->work.written_bytes;
    const double memory = (r->memory > 0 ? s->work.weight_bytes / r->memory : 0) + (r->cache > 0 ? near / r->cache : 0);
    s->floor_us = 1e6 * (compute > memory ? compute : memory);
    s->bound = s->floor_us <= 0 ? "" : compute > memory ? "compute" : "memory";
    s->share = s->us > 0 ? s->floor_us / s->us : 0;
}

sinter_status roofline_make(const model_engine *m, const step_list *list, roofline *out, sinter_error *error)
{
    double touched = 0;
    *out = (roofline){ .at = cli_alloc(list->count, sizeof *out->at), .count = list->count };
    for (uint32_t i = 0; i < list->count; i++) {
        out->at[i].step = list->at[i];
        out->at[i].work = list->work[i];
        out->at[i].us = 1e-3 * (double)list->at[i].min_ns;
        touched += list->work[i].weight_bytes + list->work[i].written_bytes;
    }
    const sinter_status s = sinter_engine_rates(m->engine, (size_t)touched, &out->rates, error);
    for (uint32_t i = 0; s == SINTER_OK && i < out->count; i++) {
        floor_of(&out->rates, &out->at[i]);
        if (!out->at[i].step.runs) continue;
        out->us += out->at[i].us;
        out->floor_us += out->at[i].floor_us;
    }
    out->share = out->us > 0 ? out->floor_us / out->us : 0;
    return s;
}

void roofline_free(roofline *r)
{
    free(r->at);
    *r = (roofline){ 0 };
}

void roofline_print(const roofline *r)
{
    static const char *const title[] = { ">us",        ">floor us", ">share", "bound",  ">MFLOP",
                                         ">weight KB", ">other KB", "kernel", "problem" };
    table t;
    (void)printf("\nrates: %.1f GFLOP/s in f32, %.1f GB/s from memory, %.1f GB/s from the caches\n",
                 1e-9 * r->rates.f32, 1e-9 * r->rates.memory, 1e-9 * r->rates.cache);
    table_begin(&t, title, 9);
    for (uint32_t i = 0; i < r->count; i++) {
        const roof_step *s = &r->at[i];
        if (!s->step.runs) continue;
        table_cell(&t, 0, "%.1f", s->us);
        table_cell(&t, 1, "%.1f", s->floor_us);
        table_cell(&t, 2, "%.1f %%", 100 * s->share);
        table_cell(&t, 3, "%s", s->bound);
        table_cell(&t, 4, "%.2f", 1e-6 * s->work.operations);
        table_cell(&t, 5, "%.1f", 1e-3 * s->work.weight_bytes);
        table_cell(&t, 6, "%.1f", 1e-3 * (s->work.read_bytes + s->work.written_bytes));
        table_cell(&t, 7, "%s", s->step.kernel);
        table_cell(&t, 8, strlen(s->step.problem) > PROBLEM_SHOWN ? "%.*s..." : "%.*s", PROBLEM_SHOWN, s->step.problem);
        table_row(&t);
    }
    table_end(&t, stdout);
    (void)printf("all steps: %.1f us, floor %.1f us, share %.1f %%\n", r->us, r->floor_us, 100 * r->share);
}

void roofline_json(const roofline *r, json *j)
{
    json_open(j, "roofline", '{');
    json_real(j, "f32_per_second", r->rates.f32);
    json_real(j, "f16_per_second", r->rates.f16);
    json_real(j, "int8_per_second", r->rates.int8);
    json_real(j, "memory_bytes_per_second", r->rates.memory);
    json_real(j, "cache_bytes_per_second", r->rates.cache);
    json_real(j, "us", r->us);
    json_real(j, "floor_us", r->floor_us);
    json_real(j, "share", r->share);
    json_open(j, "steps", '[');
    for (uint32_t i = 0; i < r->count; i++) {
        const roof_step *s = &r->at[i];
        json_open(j, NULL, '{');
        json_text(j, "name", s->step.name);
        json_text(j, "kernel", s->step.kernel);
        json_text(j, "problem", s->step.problem);
        json_real(j, "us", s->us);
        json_real(j, "floor_us", s->floor_us);
        json_real(j, "share", s->share);
        json_text(j, "bound", s->bound);
        json_real(j, "operations", s->work.operations);
        json_real(j, "weight_bytes", s->work.weight_bytes);
        json_real(j, "read_bytes", s->work.read_bytes);
        json_real(j, "written_bytes", s->work.written_bytes);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void number_cell(FILE *to, double value)
{
    (void)fprintf(to, "<td class=\"n\">%.1f</td>", value);
}

bool roofline_page(const roofline *r, const char *title, const char *path)
{
    FILE *to = html_open(path);
    double most = 0;
    if (!to) return false;
    for (uint32_t i = 0; i < r->count; i++)
        if (r->at[i].us > most) most = r->at[i].us;
    html_begin(to, title);
    (void)fprintf(
        to,
        "<h2>Roofline</h2>\n<p>All steps take %.1f us. Their floors are %.1f us, %.1f %% of that. A floor is the "
        "time that a step's operations take at %.1f GFLOP/s (f32), or its weights at %.1f GB/s and its other "
        "operands at %.1f GB/s, whichever is longer.</p>\n",
        r->us, r->floor_us, 100 * r->share, 1e-9 * r->rates.f32, 1e-9 * r->rates.memory, 1e-9 * r->rates.cache);
    (void)fprintf(to, "<div class=\"scroll\"><table><thead><tr><th class=\"n\">#</th><th class=\"n\">us</th>"
                      "<th class=\"n\">floor us</th><th class=\"n\">share %%</th><th></th><th>bound</th>"
                      "<th class=\"n\">MFLOP</th><th class=\"n\">weight KB</th><th class=\"n\">other KB</th>"
                      "<th>node</th><th>kernel</th><th>problem</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < r->count; i++) {
        const roof_step *s = &r->at[i];
        if (!s->step.runs) continue;
        (void)fprintf(to, "<tr><td class=\"n\">%u</td>", i);
        number_cell(to, s->us);
        number_cell(to, s->floor_us);
        number_cell(to, 100 * s->share);
        (void)fprintf(to, "<td><span class=\"meter\" style=\"width:%.0fpx\"></span></td><td>%s</td>",
                      most > 0 ? 120 * s->us / most : 0, s->bound);
        number_cell(to, 1e-6 * s->work.operations);
        number_cell(to, 1e-3 * s->work.weight_bytes);
        number_cell(to, 1e-3 * (s->work.read_bytes + s->work.written_bytes));
        (void)fprintf(to, "<td>");
        html_text(to, s->step.name);
        (void)fprintf(to, "</td><td>");
        html_text(to, s->step.kernel);
        (void)fprintf(to, "</td><td class=\"p\">");
        html_text(to, s->step.problem);
        (void)fprintf(to, "</td></tr>\n");
    }
    (void)fprintf(to, "</tbody></table></div>\n");
    html_end(to);
    return html_close(to, path);
}

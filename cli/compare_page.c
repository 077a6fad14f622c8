/* SPDX-License-Identifier: Apache-2.0 */
/* compare_page.c - a comparison as HTML: a table, the error over the layers, and the sizes of each output's errors. */
#include "compare_page.h"

#include "html_page.h"
#include <math.h>

enum { WIDTH = 1000, HEIGHT = 200, MARGIN = 60, PLOTS_MOST = 40 };

/* Errors that are shown: from 1e-12 to 1e6, on a scale of decades. */
static const double least_shown = 1e-12, most_shown = 1e6;

static double height_of(double error)
{
    const double cut = !(error > least_shown) ? least_shown : error > most_shown ? most_shown : error;
    return HEIGHT * (log10(cut) - log10(least_shown)) / (log10(most_shown) - log10(least_shown));
}

static void cell(FILE *to, const char *format, double value)
{
    (void)fprintf(to, "<td class=\"n\">");
    (void)fprintf(to, format, value);
    (void)fprintf(to, "</td>");
}

static void row_print(const compare_row *r, FILE *to)
{
    (void)fprintf(to, "<tr><td>");
    html_text(to, r->name);
    if (r->op) {
        (void)fprintf(to, "</td><td>");
        html_text(to, r->node);
        (void)fprintf(to, " (");
        html_text(to, r->op);
        (void)fprintf(to, ")");
    } else (void)fprintf(to, "</td><td>");
    if (r->only) {
        (void)fprintf(to, "</td><td colspan=\"8\">only %s has it</td></tr>\n", r->only == 1 ? "A" : "B");
        return;
    }
    (void)fprintf(to, "</td><td class=\"w\">%s %s</td>", sinter_dtype_name(r->type.dtype),
                  cli_shape(r->type.rank, r->type.dim).at);
    cell(to, "%.3g", r->d.absolute.max);
    cell(to, "%.3g", r->d.absolute.mean);
    cell(to, "%.3g", r->d.absolute.median);
    cell(to, "%.3g", r->d.relative.max);
    cell(to, "%.7g", r->d.cosine);
    cell(to, "%.4g", r->d.psnr);
    (void)fprintf(to, "<td class=\"%s\">", r->d.is_good ? "w" : "bad");
    html_text(to, r->d.is_good ? "passed" : r->d.why);
    (void)fprintf(to, "</td></tr>\n");
}

/* The largest absolute error of each row, on a scale of decades. */
static void layers_plot(const comparison *c, FILE *to)
{
    const double across = (double)WIDTH / c->rows;
    (void)fprintf(to, "<h2>Largest absolute error of each value</h2>\n<svg class=\"plot\" viewBox=\"0 0 %d %d\">\n",
                  WIDTH + MARGIN + 10, HEIGHT + 24);
    for (int decade = -12; decade <= 6; decade += 3) {
        const double y = HEIGHT - height_of(pow(10, decade));
        (void)fprintf(to,
                      "<text x=\"0\" y=\"%.0f\">1e%+03d</text><line class=\"frame\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
                      "y2=\"%.1f\"/>\n",
                      y < 12 ? 12 : y, decade, MARGIN, MARGIN + WIDTH, y, y);
    }
    for (uint32_t i = 0; i < c->rows; i++) {
        const compare_row *r = &c->row[i];
        if (r->only) continue;
        const double height = height_of(r->d.absolute.max);
        (void)fprintf(to, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>",
                      r->d.is_good ? "bar" : "wrong", MARGIN + i * across, HEIGHT - height,
                      across > 3 ? across - 1 : across, height);
        html_text(to, r->name);
        (void)fprintf(to, ": %.3g</title></rect>\n", r->d.absolute.max);
    }
    (void)fprintf(to, "<text x=\"%d\" y=\"%d\">%s</text></svg>\n", MARGIN, HEIGHT + 18,
                  c->first ? "red: outside the tolerances" : "all are within the tolerances");
}

/* How many values have an error of which size. */
static void decades_plot(const compare_row *r, FILE *to)
{
    enum { BAR = WIDTH / DIFFERENCE_DECADES, TALL = 110 };
    int64_t most = 1;
    for (uint32_t i = 0; i < DIFFERENCE_DECADES; i++) most = r->d.decade[i] > most ? r->d.decade[i] : most;
    (void)fprintf(to, "<h3>");
    html_text(to, r->name);
    (void)fprintf(to,
                  "</h3>\n<p>A from %.5g to %.5g, mean %.5g, %lld NaN, %lld infinite; B from %.5g to %.5g, mean %.5g, "
                  "%lld NaN, %lld infinite. %lld of %lld values are outside the tolerances.</p>\n",
                  r->d.least[0], r->d.most[0], r->d.mean[0], (long long)r->d.nans[0], (long long)r->d.infinities[0],
                  r->d.least[1], r->d.most[1], r->d.mean[1], (long long)r->d.nans[1], (long long)r->d.infinities[1],
                  (long long)r->d.mismatched, (long long)r->d.count);
    (void)fprintf(to, "<svg class=\"plot\" viewBox=\"0 0 %d %d\">\n", WIDTH + 20, TALL + 24);
    for (uint32_t i = 0; i < DIFFERENCE_DECADES; i++) {
        const double height = (double)TALL * (double)r->d.decade[i] / (double)most;
        (void)fprintf(to, "<rect class=\"bar\" x=\"%u\" y=\"%.2f\" width=\"%d\" height=\"%.2f\"><title>", i * BAR,
                      TALL - height, BAR - 2, height);
        html_text(to, difference_decade(i).at);
        (void)fprintf(to, ": %lld</title></rect><text class=\"small\" x=\"%u\" y=\"%d\">", (long long)r->d.decade[i],
                      i * BAR, TALL + 16);
        html_text(to, difference_decade(i).at);
        (void)fprintf(to, "</text>\n");
    }
    (void)fprintf(to, "</svg>\n");
}

/* Outputs that differ come first. */
static void plots_print(const comparison *c, FILE *to)
{
    uint32_t shown = 0;
    (void)fprintf(to, "<h2>Absolute errors by size</h2>\n");
    for (uint32_t good = 0; good < 2; good++) {
        for (uint32_t i = 0; i < c->rows && shown < PLOTS_MOST; i++) {
            const compare_row *r = &c->row[i];
            if (r->only || r->d.is_good != (good != 0) || !r->d.count) continue;
            decades_plot(r, to);
            shown++;
        }
    }
    if (shown < c->compared) (void)fprintf(to, "<p>%u of %u values are drawn.</p>\n", shown, c->compared);
}

void compare_page_body(const comparison *c, FILE *to)
{
    (void)fprintf(to, "<p>A: ");
    html_text(to, c->side[0].text);
    (void)fprintf(to, ". B, what is right: ");
    html_text(to, c->side[1].text);
    (void)fprintf(to, ". %u of %u outputs are within the tolerances.</p>\n", c->compared - c->differing, c->compared);
    if (c->first) {
        (void)fprintf(to, "<p class=\"bad\">The first that diverges: ");
        if (c->first->op) {
            (void)fprintf(to, "node ");
            html_text(to, c->first->node);
            (void)fprintf(to, " (");
            html_text(to, c->first->op);
            (void)fprintf(to, "), value ");
        }
        html_text(to, c->first->name);
        (void)fprintf(to, "</p>\n");
    }
    (void)fprintf(to,
                  "<div class=\"scroll\"><table><thead><tr><th>output</th><th>node</th><th class=\"w\">type</th>"
                  "<th class=\"n\">max abs</th><th class=\"n\">mean abs</th><th class=\"n\">median</th>"
                  "<th class=\"n\">max rel</th><th class=\"n\">cosine</th><th class=\"n\">PSNR dB</th><th></th></tr>"
                  "</thead><tbody>\n");
    for (uint32_t i = 0; i < c->rows; i++) row_print(&c->row[i], to);
    (void)fprintf(to, "</tbody></table></div>\n");
    if (c->compared > 1) layers_plot(c, to);
    plots_print(c, to);
}

bool compare_page(const comparison *c, const char *path)
{
    FILE *to = html_open(path);
    if (!to) return false;
    html_begin(to, "comparison");
    compare_page_body(c, to);
    html_end(to);
    return html_close(to, path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* html_svg.c - the drawings of `sinter report`. */
#include "html_report.h"

#include <stdlib.h>
#include <string.h>

/* ---- graph ---- */

enum { BOX_WIDTH = 190, BOX_HEIGHT = 36, GAP_X = 44, GAP_Y = 26, LABEL_MAX = 23 };

/* Row and column of a step's box. */
typedef struct place {
    uint32_t row, column;
} place;

/* The last step before `step` that writes the storage; UINT32_MAX: none. */
static uint32_t writer_of(const report_page *p, uint32_t step, uint32_t storage)
{
    for (uint32_t k = step; k-- > 0;)
        for (uint32_t i = 0; i < p->step[k].uses; i++)
            if (p->step[k].use[i].is_result && p->step[k].use[i].storage == storage) return k;
    return UINT32_MAX;
}

/* A step stands below all whose results it reads. */
static place *places_make(const report_page *p, uint32_t count, uint32_t *rows, uint32_t *columns)
{
    place *at = cli_alloc(count, sizeof *at);
    uint32_t *filled = cli_alloc(count, sizeof *filled);
    *rows = *columns = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < p->step[i].uses; k++) {
            const report_use *u = &p->step[i].use[k];
            const uint32_t from = u->is_result || u->is_weight ? UINT32_MAX : writer_of(p, i, u->storage);
            if (from != UINT32_MAX && at[from].row + 1 > at[i].row) at[i].row = at[from].row + 1;
        }
        at[i].column = filled[at[i].row]++;
        if (at[i].row + 1 > *rows) *rows = at[i].row + 1;
        if (at[i].column + 1 > *columns) *columns = at[i].column + 1;
    }
    free(filled);
    return at;
}

/* A line over several rows passes the boxes between in the gap beside their column. */
static void edge_draw(FILE *to, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t rows, uint32_t step)
{
    const uint32_t aside = (x0 > x1 ? x0 : x1) + BOX_WIDTH / 2 + 6 + 6 * (step % 6);
    (void)fprintf(to, "<path class=\"edge\" d=\"M%u %uC%u %u ", x0, y0, x0, y0 + GAP_Y);
    if (rows > 1)
        (void)fprintf(to, "%u %u %u %uL%u %uC%u %u %u %u ", aside, y0, aside, y0 + 2 * GAP_Y, aside, y1 - 2 * GAP_Y,
                      aside, y1, x1, y1 - GAP_Y);
    else (void)fprintf(to, "%u %u ", x1, y1 - GAP_Y);
    (void)fprintf(to, "%u %u\"/>\n", x1, y1);
}

static void edges_draw(const report_page *p, const place *at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < p->step[i].uses; k++) {
            const report_use *u = &p->step[i].use[k];
            const uint32_t from = u->is_result || u->is_weight ? UINT32_MAX : writer_of(p, i, u->storage);
            if (from == UINT32_MAX) continue;
            const uint32_t x0 = at[from].column * (BOX_WIDTH + GAP_X) + BOX_WIDTH / 2,
                           y0 = at[from].row * (BOX_HEIGHT + GAP_Y) + BOX_HEIGHT,
                           x1 = at[i].column * (BOX_WIDTH + GAP_X) + BOX_WIDTH / 2,
                           y1 = at[i].row * (BOX_HEIGHT + GAP_Y);
            edge_draw(p->to, x0, y0, x1, y1, at[i].row - at[from].row, i);
        }
    }
}

/* From pale to strong with the share of the time. */
static void box_draw(const report_page *p, const place *at, uint32_t i)
{
    const report_step *s = &p->step[i];
    const uint32_t x = at[i].column * (BOX_WIDTH + GAP_X), y = at[i].row * (BOX_HEIGHT + GAP_Y);
    const double strength = s->share > 0.25 ? 1 : 4 * s->share;
    const uint32_t cut = html_cut(s->name, LABEL_MAX);
    char label[4 * LABEL_MAX + 4];
    (void)snprintf(label, sizeof label, s->name[cut] ? "%.*s..." : "%.*s", (int)cut, s->name);
    (void)fprintf(p->to, "<g><title>%u: ", i);
    html_text(p->to, s->name);
    (void)fprintf(p->to, "\n%s ", s->kernel);
    html_text(p->to, s->tactic);
    (void)fprintf(p->to, "\n");
    html_text(p->to, s->problem);
    if (p->has_times) (void)fprintf(p->to, "\n%.1f us, %.1f %%", s->mean_us, 100 * s->share);
    (void)fprintf(
        p->to,
        "</title><rect class=\"paper\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"5\"/><rect class=\"box\" "
        "x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"5\" fill-opacity=\"%.3f\"/><text x=\"%u\" y=\"%u\">",
        x, y, BOX_WIDTH, BOX_HEIGHT, x, y, BOX_WIDTH, BOX_HEIGHT, 0.08 + 0.6 * strength, x + 8, y + 15);
    html_text(p->to, label);
    (void)fprintf(p->to, "</text><text class=\"small\" x=\"%u\" y=\"%u\">", x + 8, y + 29);
    html_text(p->to, s->kernel);
    if (p->has_times) (void)fprintf(p->to, " %.1f us", s->mean_us);
    (void)fprintf(p->to, "</text></g>\n");
}

void report_graph(const report_page *p)
{
    uint32_t rows = 0, columns = 0;
    const uint32_t count = p->steps < GRAPH_MAX ? p->steps : GRAPH_MAX;
    place *at = places_make(p, count, &rows, &columns);
    if (count < p->steps) (void)fprintf(p->to, "<p>The first %u of %u steps are drawn.</p>\n", count, p->steps);
    (void)fprintf(p->to, "<div class=\"scroll\"><svg class=\"graph\" width=\"%u\" height=\"%u\">\n",
                  columns * (BOX_WIDTH + GAP_X), rows * (BOX_HEIGHT + GAP_Y));
    edges_draw(p, at, count);
    for (uint32_t i = 0; i < count; i++) box_draw(p, at, i);
    (void)fprintf(p->to, "</svg></div>\n");
    free(at);
}

/* ---- memory ---- */

enum { PLOT_WIDTH = 1000, PLOT_HEIGHT = 260, MARGIN = 70 };

void report_memory(const report_page *p)
{
    if (!p->steps || p->slab <= 0) {
        (void)fprintf(p->to, "<p>Nothing is kept between steps.</p>\n");
        return;
    }
    const double across = (double)PLOT_WIDTH / p->steps, up = PLOT_HEIGHT / p->slab;
    (void)fprintf(p->to, "<svg class=\"plot\" viewBox=\"0 0 %d %d\">\n", PLOT_WIDTH + MARGIN + 10, PLOT_HEIGHT + 40);
    (void)fprintf(p->to, "<text x=\"0\" y=\"14\">%s</text><text x=\"0\" y=\"%d\">0</text>", cli_bytes(p->slab).at,
                  PLOT_HEIGHT + 4);
    (void)fprintf(p->to, "<text x=\"%d\" y=\"%d\">step 0</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%u</text>\n",
                  MARGIN, PLOT_HEIGHT + 24, MARGIN + PLOT_WIDTH, PLOT_HEIGHT + 24, p->steps - 1);
    (void)fprintf(p->to, "<rect class=\"frame\" x=\"%d\" y=\"0\" width=\"%d\" height=\"%d\"/>\n", MARGIN, PLOT_WIDTH,
                  PLOT_HEIGHT);
    for (uint32_t i = 0; i < p->blocks; i++) {
        const report_block *b = &p->block[i];
        if (!b->is_used) continue;
        (void)fprintf(
            p->to,
            "<rect class=\"block\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>storage %u: %s "
            "at %.0f, steps %u to %u</title></rect>\n",
            MARGIN + b->first * across, PLOT_HEIGHT - (b->at + b->size) * up, (b->last - b->first + 1) * across,
            b->size * up, b->storage, cli_bytes(b->size).at, b->at, b->first, b->last);
    }
    (void)fprintf(p->to, "<polyline class=\"live\" points=\"");
    for (uint32_t k = 0; k < p->steps; k++) {
        double live = 0;
        for (uint32_t i = 0; i < p->blocks; i++)
            if (p->block[i].is_used && p->block[i].first <= k && k <= p->block[i].last) live += p->block[i].size;
        (void)fprintf(p->to, "%.2f,%.2f %.2f,%.2f ", MARGIN + k * across, PLOT_HEIGHT - live * up,
                      MARGIN + (k + 1) * across, PLOT_HEIGHT - live * up);
    }
    (void)fprintf(p->to, "\"/>\n</svg>\n<p>Boxes: a result, the steps that it lives in, its place in the memory of a "
                         "context. Red: the bytes that are in use.</p>\n");
}

/* ---- times ---- */

void report_histogram(FILE *to, const series *run)
{
    enum { BARS = 60, HEIGHT = 160, WIDTH = 1000 };
    uint32_t count[BARS] = { 0 }, most = 1;
    if (!run->count) return;
    /* Up to the 99th percentile: a rare run that takes long would press all others into one bar. */
    const double low = run->at[0], high = series_percentile(run, 0.99), step = (high - low) / BARS;
    for (uint32_t i = 0; i < run->count && run->at[i] <= high; i++) {
        uint32_t k = step > 0 ? (uint32_t)((run->at[i] - low) / step) : 0;
        if (k >= BARS) k = BARS - 1;
        if (++count[k] > most) most = count[k];
    }
    (void)fprintf(to, "<svg class=\"plot\" viewBox=\"0 0 %d %d\">\n", WIDTH, HEIGHT + 24);
    for (uint32_t k = 0; k < BARS; k++) {
        const double height = (double)HEIGHT * count[k] / most, width = (double)WIDTH / BARS;
        (void)fprintf(
            to,
            "<rect class=\"bar\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>%.4f to %.4f ms: %u "
            "runs</title></rect>\n",
            k * width, HEIGHT - height, width - 1, height, 1e3 * (low + k * step), 1e3 * (low + (k + 1) * step),
            count[k]);
    }
    (void)fprintf(to,
                  "<text x=\"0\" y=\"%d\">%.4f ms</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.4f ms (99th "
                  "percentile)</text>\n</svg>\n",
                  HEIGHT + 18, 1e3 * low, WIDTH, HEIGHT + 18, 1e3 * high);
}

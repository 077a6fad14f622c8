/* SPDX-License-Identifier: Apache-2.0 */
/* cli_compare.c - `sinter compare`: two sides, the same inputs, and how far their outputs are apart. */
#include "compare_page.h"

#include "onnx_file.h"
#include <stdlib.h>
#include <string.h>

/* ---- what is compared ---- */

static bool side_has(const side *s, const char *name)
{
    for (uint32_t i = 0; i < s->names; i++)
        if (!strcmp(s->name[i], name)) return true;
    return false;
}

/* The node that makes a value; f->nodes: an input, or nobody knows. */
static uint32_t maker_of(const onnx_file *f, const char *name)
{
    uint32_t i = 0;
    while (i < f->nodes && !onnx_names_have(&f->node[i].out, name)) i++;
    return i;
}

static void row_add(comparison *c, const args *a, const onnx_file *f, const char *name, uint32_t index)
{
    const sinter_tensor *got = side_result(&c->side[0], name, index);
    const sinter_tensor *want = got ? side_result(&c->side[1], name, index) : NULL;
    c->row = cli_grow(c->row, c->rows + 1, sizeof *c->row);
    compare_row *r = &c->row[c->rows];
    *r = (compare_row){ .name = cli_copy(name), .maker = maker_of(f, name) };
    if (!got || !want) {
        r->only = got || side_has(&c->side[0], name) ? 1 : 2;
        c->alone++;
    } else {
        r->type = *got;
        r->type.data = NULL;
        difference_make(a, name, got, want, &r->d);
        c->differing += !r->d.is_good;
        c->compared++;
    }
    if (r->maker < f->nodes) {
        r->node = cli_copy(f->node[r->maker].name);
        r->op = cli_copy(f->node[r->maker].op);
    }
    c->rows++;
}

static int by_maker(const void *x, const void *y)
{
    const compare_row *a = x, *b = y;
    return a->maker < b->maker ? -1 : a->maker > b->maker ? 1 : strcmp(a->name, b->name);
}

/* In the order of the model's nodes where all layers are compared. */
static void rows_make(const args *a, comparison *c)
{
    onnx_file f = { 0 };
    const char *model = side_model(&c->side[0]) ? side_model(&c->side[0]) : side_model(&c->side[1]);
    if (a->all_layers && model && !onnx_file_read(model, &f)) onnx_file_free(&f);
    /* A folder's own names are those of its files: the other side knows better. */
    const uint32_t first = c->side[0].kind == SIDE_SAVED && c->side[1].kind != SIDE_SAVED;
    const side *x = &c->side[first], *y = &c->side[!first];
    for (uint32_t i = 0; i < x->names; i++) row_add(c, a, &f, x->name[i], i);
    for (uint32_t i = 0; i < y->names && (y->kind != SIDE_SAVED || x->kind == SIDE_SAVED); i++)
        if (!side_has(x, y->name[i])) row_add(c, a, &f, y->name[i], UINT32_MAX);
    if (f.nodes) qsort(c->row, c->rows, sizeof *c->row, by_maker);
    for (uint32_t i = 0; i < c->rows && !c->first; i++)
        if (!c->row[i].only && !c->row[i].d.is_good) c->first = &c->row[i];
    onnx_file_free(&f);
}

/* ---- as text ---- */

static void first_text(const compare_row *r, FILE *to)
{
    if (r->op)
        (void)fprintf(to, "the first layer that diverges: node '%s' (%s), value '%s'\n", r->node, r->op, r->name);
    else (void)fprintf(to, "the first output that diverges: '%s'\n", r->name);
}

static void text_print(const args *a, const comparison *c)
{
    enum { BARS_MOST = 3 };
    static const char *const title[] = { "output",  "type",     "shape",   ">max abs", ">mean abs",
                                         ">median", ">max rel", ">cosine", ">psnr dB", "" };
    table t;
    uint32_t bars = 0;
    table_begin(&t, title, 10);
    for (uint32_t i = 0; i < c->rows; i++) {
        const compare_row *r = &c->row[i];
        table_cell(&t, 0, "%s", r->name);
        if (r->only) {
            table_cell(&t, 9, "only %s has it", r->only == 1 ? "A" : "B");
            table_row(&t);
            continue;
        }
        table_cell(&t, 1, "%s", sinter_dtype_name(r->type.dtype));
        table_cell(&t, 2, "%s", cli_shape(r->type.rank, r->type.dim).at);
        table_cell(&t, 3, "%.3g", r->d.absolute.max);
        table_cell(&t, 4, "%.3g", r->d.absolute.mean);
        table_cell(&t, 5, "%.3g", r->d.absolute.median);
        table_cell(&t, 6, "%.3g", r->d.relative.max);
        table_cell(&t, 7, "%.7g", r->d.cosine);
        table_cell(&t, 8, "%.4g", r->d.psnr);
        table_cell(&t, 9, "%s", r->d.is_good ? "passed" : "FAILED");
        table_row(&t);
    }
    table_end(&t, stdout);
    for (uint32_t i = 0; i < c->rows; i++) {
        const compare_row *r = &c->row[i];
        if (r->only || r->d.is_good) continue;
        (void)printf("'%s' %s\n", r->name, r->d.why);
        if (bars++ < BARS_MOST) difference_bars(&r->d, stdout);
    }
    if (c->first) first_text(c->first, stdout);
    (void)printf("%s: %u of %u outputs are within the tolerances\n", compare_passes(a, c) ? "passed" : "FAILED",
                 c->compared - c->differing, c->compared);
}

/* ---- as JSON ---- */

static void json_print(const args *a, const comparison *c)
{
    json j = { .to = stdout };
    json_open(&j, NULL, '{');
    json_text(&j, "a", c->side[0].text);
    json_text(&j, "b", c->side[1].text);
    json_text(&j, "verdict", compare_passes(a, c) ? "passed" : "failed");
    json_open(&j, "outputs", '[');
    for (uint32_t i = 0; i < c->rows; i++) {
        const compare_row *r = &c->row[i];
        json_open(&j, NULL, '{');
        json_text(&j, "name", r->name);
        if (r->op) json_text(&j, "node", r->node), json_text(&j, "operator", r->op);
        if (r->only) {
            json_text(&j, "only", r->only == 1 ? "a" : "b");
        } else {
            json_text(&j, "type", sinter_dtype_name(r->type.dtype));
            json_dims(&j, "shape", r->type.rank, r->type.dim);
            difference_json(&j, &r->d);
        }
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_text(&j, "first_divergence", c->first ? c->first->name : NULL);
    json_close(&j, '}');
}

/* ---- the verb ---- */

/* Values of layers may be missing on one side; outputs may not. */
bool compare_passes(const args *a, const comparison *c)
{
    return c->compared && !c->differing && (a->all_layers || !c->alone);
}

bool compare_make(const args *a, const char *const text[SIDES], comparison *out)
{
    *out = (comparison){ .rows = 0 };
    if (!sides_run(a, text, a->all_layers, out->side)) return false;
    rows_make(a, out);
    return out->compared || cli_fail("'%s' and '%s' have no output of one name", text[0], text[1]) == 0;
}

void compare_free(comparison *c)
{
    for (uint32_t i = 0; i < c->rows; i++) {
        free(c->row[i].name);
        free(c->row[i].node);
        free(c->row[i].op);
    }
    free(c->row);
    sides_close(c->side);
}

int verb_compare(const args *a)
{
    comparison c;
    bool is_good = compare_make(a, a->file.at, &c);
    if (is_good) {
        if (a->json) json_print(a, &c);
        else text_print(a, &c);
        is_good = compare_passes(a, &c);
        if (a->output && !compare_page(&c, a->output)) is_good = false;
    }
    compare_free(&c);
    return is_good ? STATUS_OK : STATUS_FAILED;
}

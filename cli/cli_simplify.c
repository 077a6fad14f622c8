/* SPDX-License-Identifier: Apache-2.0 */
/* cli_simplify.c - `sinter simplify`: a smaller model, a table of operators before and after, and a comparison of both
 * models on the same data. */
#include "compare.h"
#include "sides.h"
#include <stdlib.h>
#include <string.h>

/* ---- the table of operators ---- */

typedef struct op_table {
    table t;
    json j;
    bool is_json;
    uint64_t before, after;
} op_table;

static void on_counted(void *user, const char *op, uint64_t before, uint64_t after)
{
    op_table *o = user;
    o->before += before;
    o->after += after;
    if (o->is_json) {
        json_open(&o->j, NULL, '{');
        json_text(&o->j, "operator", op);
        json_count(&o->j, "before", (int64_t)before);
        json_count(&o->j, "after", (int64_t)after);
        json_close(&o->j, '}');
        return;
    }
    table_cell(&o->t, 0, "%s", op);
    table_cell(&o->t, 1, "%llu", (unsigned long long)before);
    table_cell(&o->t, 2, "%llu", (unsigned long long)after);
    table_row(&o->t);
}

static uint64_t file_size(const char *path)
{
    FILE *f = fopen(path, "rbe");
    const long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    if (f) (void)fclose(f);
    return size > 0 ? (uint64_t)size : 0;
}

/* ---- N: a comparison ---- */

/* Compares all outputs of both models. Fusions and foldings add up in other orders. */
static bool outputs_agree(side s[SIDES], uint64_t round)
{
    for (uint32_t i = 0; i < s[0].names; i++) {
        sinter_tensor got, want;
        char why[512];
        double worst = 0;
        const sinter_tensor *t = side_result(&s[1], s[0].name[i], i);
        if (!t) return cli_fail("check %llu: output '%s' is gone", (unsigned long long)round + 1, s[0].name[i]) == 0;
        got = *t;
        want = *side_result(&s[0], s[0].name[i], i);
        tolerance limit = tolerance_of(want.dtype);
        if (limit.atol < 1e-5) limit.atol = 1e-5;
        if (!compare_tensors(&got, &want, 1, &limit, why, sizeof why, &worst))
            return cli_fail("check %llu: output '%s' differs: %s", (unsigned long long)round + 1, s[0].name[i], why) ==
                   0;
    }
    return true;
}

static bool check(const args *a, const char *output, uint64_t rounds)
{
    const char *const text[SIDES] = { a->file.at[0], output };
    args own = *a;
    side s[SIDES];
    own.input = a->input_data_path;
    own.build.tune = SINTER_TUNE_OFF;
    own.verb_bit = V_COMPARE;
    bool is_good = sides_run(&own, text, false, s) && outputs_agree(s, 0);
    for (uint64_t i = 1; i < rounds && is_good; i++)
        is_good = sides_again(s, a->seed + 1000 * i) && outputs_agree(s, i);
    sides_close(s);
    return is_good;
}

/* ---- the verb ---- */

static sinter_shape_range *shapes_of(const args *a)
{
    const arg_list *list = &a->overwrite_input_shape;
    sinter_shape_range *out = cli_alloc(list->count, sizeof *out);
    for (uint32_t i = 0; i < list->count; i++) {
        char *name = cli_copy(list->at[i]);
        int64_t dim[SINTER_RANK_MAX];
        (void)args_colons_read(list->at[i], &out[i].rank, dim);
        *strrchr(name, ':') = 0;
        out[i].input = name;
        for (uint32_t k = 0; k < out[i].rank; k++) out[i].min[k] = out[i].opt[k] = out[i].max[k] = dim[k];
    }
    return out;
}

static void report_end(op_table *o, const args *a, const char *output, uint64_t rounds, FILE *to)
{
    const uint64_t before = file_size(a->file.at[0]), after = file_size(output);
    if (o->is_json) {
        json_close(&o->j, ']');
        json_count(&o->j, "nodes_before", (int64_t)o->before);
        json_count(&o->j, "nodes_after", (int64_t)o->after);
        json_count(&o->j, "bytes_before", (int64_t)before);
        json_count(&o->j, "bytes_after", (int64_t)after);
        json_count(&o->j, "checked", (int64_t)rounds);
        json_close(&o->j, '}');
        return;
    }
    table_cell(&o->t, 0, "all");
    table_cell(&o->t, 1, "%llu", (unsigned long long)o->before);
    table_cell(&o->t, 2, "%llu", (unsigned long long)o->after);
    table_row(&o->t);
    table_end(&o->t, to);
    (void)fprintf(to, "%s: %s", a->file.at[0], cli_bytes((double)before).at);
    (void)fprintf(to, "; %s: %s\n", output, cli_bytes((double)after).at);
    if (rounds)
        (void)fprintf(to, "both models give the same outputs on %llu sets of inputs\n", (unsigned long long)rounds);
}

int verb_simplify(const args *a)
{
    static const char *const title[] = { "operator", ">before", ">after" };
    const char *output = a->output ? a->output : a->file.count > 1 ? a->file.at[1] : NULL;
    uint64_t rounds = 0;
    if (!output) {
        (void)cli_fail("where to? -o OUT.onnx is missing");
        return STATUS_USAGE;
    }
    if (a->output && a->file.count > 1) {
        (void)cli_fail("too many files: '%s' stands beside -o %s", a->file.at[1], a->output);
        return STATUS_USAGE;
    }
    if (a->file.count == 3) {
        char *end = NULL;
        rounds = strtoull(a->file.at[2], &end, 10);
        if (*a->file.at[2] < '0' || *a->file.at[2] > '9' || *end || strlen(a->file.at[2]) > 9) {
            (void)cli_fail("'%s' is no number of checks", a->file.at[2]);
            return STATUS_USAGE;
        }
    }
    model_setup setup;
    if (!model_setup_make(a, &setup)) return STATUS_USAGE;
    if (!outputs_check_model(a, output)) return STATUS_FAILED;
    FILE *to = outputs_is_stdout(output) ? stderr : stdout;
    sinter_simplify_options options = a->simplify;
    sinter_shape_range *shape = shapes_of(a);
    op_table o = { .is_json = a->json, .j.to = to };
    if (o.is_json) {
        json_open(&o.j, NULL, '{');
        json_text(&o.j, "model", output);
        json_open(&o.j, "operators", '[');
    } else {
        table_begin(&o.t, title, 3);
    }
    options.env = &setup.env;
    options.shape = shape;
    options.shape_count = a->overwrite_input_shape.count;
    options.counted = on_counted;
    options.user = &o;
    sinter_error error = { 0 };
    const sinter_status s = sinter_simplify_file(a->file.at[0], &options, output, &error);
    for (uint32_t i = 0; i < options.shape_count; i++) free((void *)(uintptr_t)shape[i].input);
    free(shape);
    if (s != SINTER_OK) return cli_error(&error);
    const bool is_same = !rounds || check(a, output, rounds);
    report_end(&o, a, output, is_same ? rounds : 0, to);
    return is_same ? STATUS_OK : STATUS_FAILED;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cli_simplify.c - `sinter simplify`: a smaller model, a table of operators before and after, and a comparison of both
 * models on the same data. */
#include "cli_model.h"

#include "compare.h"
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

/* ---- --check ---- */

typedef struct side {
    args a;
    model_setup setup;
    model_engine m;
    bool is_open;
} side;

static bool side_open(const args *a, const char *path, side *out)
{
    *out = (side){ .a = *a };
    out->a.file = (arg_list){ .at = { path }, .count = 1 };
    out->a.input = a->input_data_path;
    out->a.build.tune = SINTER_TUNE_OFF;
    out->a.verb_bit = V_RUN;
    if (!model_setup_make(&out->a, &out->setup)) return false;
    out->is_open = model_engine_open(&out->a, &out->setup, &out->m);
    return out->is_open && model_choose(&out->a, &out->m);
}

/* Compares all outputs of two contexts that have run. */
static bool outputs_agree(const side *first, sinter_context *want_of, sinter_context *got_of, uint64_t round)
{
    sinter_io io;
    for (uint32_t i = 0; sinter_engine_io(first->m.engine, i, 0, &io) == SINTER_OK; i++) {
        sinter_tensor want, got;
        sinter_error error = { 0 };
        char why[512];
        double worst = 0;
        if (io.is_input) continue;
        if (sinter_context_output(want_of, io.name, &want, &error) != SINTER_OK ||
            sinter_context_output(got_of, io.name, &got, &error) != SINTER_OK)
            return cli_error(&error) == 0;
        tolerance t = tolerance_of(want.dtype);
        if (t.atol < 1e-5) t.atol = 1e-5;
        if (!compare_tensors(&got, &want, 1, &t, why, sizeof why, &worst))
            return cli_fail("check %llu: output '%s' differs: %s", (unsigned long long)round + 1, io.name, why) == 0;
    }
    return true;
}

static bool round_agrees(const side *first, const side *second, uint64_t seed, uint64_t round)
{
    model_inputs made, none;
    sinter_context *want = NULL, *got = NULL;
    sinter_error error = { 0 };
    sinter_status s = model_context(&first->m, seed, MODEL_ONCE, &made, &want, &error);
    model_engine other = second->m; /* the same data: none of its inputs is left to be made */
    other.inputs = (model_inputs){ .count = made.count + first->m.inputs.count };
    other.inputs.at = cli_alloc(other.inputs.count, sizeof *other.inputs.at);
    for (uint32_t i = 0; i < other.inputs.count; i++)
        other.inputs.at[i] = i < made.count ? made.at[i] : first->m.inputs.at[i - made.count];
    if (s == SINTER_OK) s = model_context(&other, seed, MODEL_ONCE, &none, &got, &error);
    else none = (model_inputs){ 0 };
    if (s == SINTER_OK) s = sinter_context_run(want, &error);
    if (s == SINTER_OK) s = sinter_context_run(got, &error);
    const bool is_good = s == SINTER_OK ? outputs_agree(first, want, got, round) : cli_error(&error) == 0;
    sinter_context_destroy(want);
    sinter_context_destroy(got);
    free(other.inputs.at);
    model_inputs_free(&made);
    model_inputs_free(&none);
    return is_good;
}

static bool check(const args *a, const char *output, uint64_t rounds)
{
    side first, second = { .is_open = false };
    bool is_good = side_open(a, a->file.at[0], &first) && side_open(a, output, &second);
    for (uint64_t i = 0; i < rounds && is_good; i++) is_good = round_agrees(&first, &second, a->seed + 1000 * i, i);
    if (first.is_open) model_engine_close(&first.m);
    if (second.is_open) model_engine_close(&second.m);
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
    uint64_t rounds = a->has_check ? a->check : 0;
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

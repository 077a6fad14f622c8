/* SPDX-License-Identifier: Apache-2.0 */
/* debug_reduce.c - `sinter debug reduce`: the smallest part of a model that still fails in the same way.
 *
 * A part is a set of the model's nodes. What they read of nodes that are gone becomes an input, with the type, the
 * shape and the data that the reference kernels computed for it. Each part is written to a file and tried in a process
 * of its own, so crashes count as failures, too. */
#include "cli_debug.h"

#include "onnx_file.h"
#include "process.h"
#include "shrink.h"
#include "sides.h"
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_SIZE = 256, LOG_MAX = 1 << 24 };

typedef struct reducer {
    const args *a;
    onnx_file f;
    side values; /* the model with all values as outputs, on the reference kernels */
    bool has_values;
    char *folder, *model, *log;
    char wanted[KIND_SIZE]; /* how the whole model fails */
    regex_t regex;          /* --fail-regex */
    uint32_t trials;
    onnx_typed *input, *output; /* of the part that was written last */
    uint32_t inputs, outputs;
} reducer;

/* ---- parts ---- */

static uint32_t made_by(const reducer *r, const char *name)
{
    uint32_t i = 0;
    while (i < r->f.nodes && !onnx_names_have(&r->f.node[i].out, name)) i++;
    return i;
}

static void typed_add(onnx_typed **list, uint32_t *count, const char *name, const sinter_tensor *type)
{
    for (uint32_t i = 0; i < *count; i++)
        if (!strcmp((*list)[i].name, name)) return;
    *list = cli_grow(*list, *count + 1, sizeof **list);
    (*list)[(*count)++] = (onnx_typed){ .name = name, .type = type ? *type : (sinter_tensor){ 0 } };
}

/* A node that reads it, other than in the part; the part's nodes alone count. */
static bool is_read(const reducer *r, const bool *is_kept, const char *name)
{
    for (uint32_t i = 0; i < r->f.nodes; i++)
        if (is_kept[i] && onnx_names_have(&r->f.node[i].in, name)) return true;
    return false;
}

/* Inputs of the part. False: nobody knows the type of one. */
static bool inputs_find(reducer *r, const bool *is_kept)
{
    r->inputs = 0;
    for (uint32_t i = 0; i < r->f.nodes; i++) {
        for (uint32_t k = 0; is_kept[i] && k < r->f.node[i].in.count; k++) {
            const char *name = r->f.node[i].in.at[k];
            const uint32_t maker = made_by(r, name);
            if (maker == r->f.nodes) {
                if (onnx_values_find(&r->f.input, name)) typed_add(&r->input, &r->inputs, name, NULL);
            } else if (!is_kept[maker]) {
                const sinter_tensor *t = r->has_values ? side_result(&r->values, name, 0) : NULL;
                if (!t) return false;
                typed_add(&r->input, &r->inputs, name, t);
            }
        }
    }
    return true;
}

/* What nobody in the part reads, and the model's own outputs. */
static bool outputs_find(reducer *r, const bool *is_kept)
{
    r->outputs = 0;
    for (uint32_t i = 0; i < r->f.nodes; i++) {
        for (uint32_t k = 0; is_kept[i] && k < r->f.node[i].out.count; k++) {
            const char *name = r->f.node[i].out.at[k];
            const bool is_own = onnx_values_find(&r->f.output, name) != NULL;
            if (!*name || (!is_own && is_read(r, is_kept, name))) continue;
            typed_add(&r->output, &r->outputs, name,
                      !is_own && r->has_values ? side_result(&r->values, name, 0) : NULL);
        }
    }
    return r->outputs > 0;
}

static char *input_path(const reducer *r, uint32_t index)
{
    char name[32];
    (void)snprintf(name, sizeof name, "input_%u.pb", index);
    return cli_join(r->folder, name);
}

/* The data of an input in the run of the whole model; NULL: it was not run. */
static const sinter_tensor *data_of(reducer *r, const char *name)
{
    if (!r->has_values) return NULL;
    const model_input *in = model_inputs_find(&r->values.m.inputs, name);
    if (!in) in = model_inputs_find(&r->values.made, name);
    return in ? &in->tensor : side_result(&r->values, name, 0);
}

static bool part_write(reducer *r, const bool *is_kept)
{
    if (!inputs_find(r, is_kept) || !outputs_find(r, is_kept)) return false;
    const onnx_part part = { is_kept, r->input, r->output, r->inputs, r->outputs };
    bool is_good = onnx_file_write(&r->f, &part, r->model);
    for (uint32_t i = 0; i < r->inputs && is_good; i++) {
        const sinter_tensor *t = data_of(r, r->input[i].name);
        char *path = input_path(r, i);
        is_good = !t || onnx_tensor_write(t, path);
        free(path);
    }
    return is_good;
}

/* ---- one trial ---- */

typedef struct words {
    char **at;
    uint32_t count;
} words;

static void word_add(words *w, char *text)
{
    w->at = cli_grow(w->at, w->count + 2, sizeof *w->at);
    w->at[w->count++] = text;
    w->at[w->count] = NULL;
}

static void words_free(words *w)
{
    for (uint32_t i = 0; i < w->count; i++) free(w->at[i]);
    free(w->at);
}

static char *pair(const char *a, const char *between, const char *b)
{
    char *text = cli_alloc(strlen(a) + strlen(between) + strlen(b) + 1, 1);
    (void)sprintf(text, "%s%s%s", a, between, b);
    return text;
}

/* Options of the reduction itself, and those that name inputs of the whole model. */
static bool is_own(const reducer *r, const char *option)
{
    static const char *const own[] = { "--output=",    "--check=",     "--fail-regex=", "--mode=",
                                       "--dir=",       "--precision=", "--input=",      "--json",
                                       "--log-level=", "--log-file=",  "--log-times" };
    for (uint32_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (!strncmp(option, own[i], strlen(own[i]))) return true;
    return r->has_values && !strncmp(option, "--shape=", 8);
}

/* `sinter compare MODEL reference:MODEL` with the options that were given. */
static words compare_words(const reducer *r, bool has_data)
{
    words w = { 0 };
    word_add(&w, cli_copy(process_self()));
    word_add(&w, cli_copy("compare"));
    word_add(&w, cli_copy(r->model));
    word_add(&w, pair("reference:", "", r->model));
    for (uint32_t i = 0; i < r->a->said.count; i++)
        if (!is_own(r, r->a->said.at[i])) word_add(&w, cli_copy(r->a->said.at[i]));
    for (uint32_t i = 0; i < r->inputs && has_data && r->has_values; i++) {
        char *path = input_path(r, i), *value = pair(r->input[i].name, "=", path);
        word_add(&w, pair("--input", "=", value));
        free(value);
        free(path);
    }
    return w;
}

/* `text` with {} and {data} replaced; for a shell. */
static char *command_text(const reducer *r)
{
    kept_text out = { 0 };
    const char *text = r->a->check_with;
    bool has_model = false;
    for (; *text; text++) {
        const bool is_model = !strncmp(text, "{}", 2), is_data = !strncmp(text, "{data}", 6);
        const char *put = is_model ? r->model : is_data ? r->folder : NULL;
        if (!put) {
            cli_write_kept(&out, text, 1);
            continue;
        }
        cli_write_kept(&out, "'", 1);
        cli_write_kept(&out, put, strlen(put));
        cli_write_kept(&out, "'", 1);
        has_model |= is_model;
        text += is_model ? 1 : 5;
    }
    if (!has_model) {
        cli_write_kept(&out, " '", 2);
        cli_write_kept(&out, r->model, strlen(r->model));
        cli_write_kept(&out, "'", 1);
    }
    return out.at;
}

/* The first error of a log, without numbers and names; "differs" where there is none. */
static void kind_of(const char *log, char *out)
{
    const char *at = log && !strncmp(log, "error: ", 7) ? log : log ? strstr(log, "\nerror: ") : NULL;
    size_t n = 0;
    bool is_quoted = false;
    if (!at) {
        (void)snprintf(out, KIND_SIZE, "differs");
        return;
    }
    for (at += *at == '\n'; *at && *at != '\n' && *at != '[' && n + 1 < KIND_SIZE; at++) {
        if (*at == '\'') is_quoted = !is_quoted;
        if (!is_quoted && !isdigit((unsigned char)*at) && *at != '\'') out[n++] = *at;
    }
    out[n] = 0;
}

/* How the part that was written fails; "": it does not. */
static void try(reducer *r, bool has_data, char *kind)
{
    words w = { 0 };
    if (r->a->check_with) {
        word_add(&w, cli_copy("sh"));
        word_add(&w, cli_copy("-c"));
        word_add(&w, command_text(r));
    } else w = compare_words(r, has_data);
    const int status = process_run(w.at, r->log);
    char *log = cli_read(r->log, LOG_MAX);
    words_free(&w);
    r->trials++;
    *kind = 0;
    if (status < 0) (void)snprintf(kind, KIND_SIZE, "cannot be run");
    else if (status > 128) (void)snprintf(kind, KIND_SIZE, "signal %d", status - 128);
    else if (status && r->a->check_with) (void)snprintf(kind, KIND_SIZE, "fails");
    else if (status) kind_of(log, kind);
    if (*kind && r->a->fail_regex && (!log || regexec(&r->regex, log, 0, NULL, 0) != 0)) *kind = 0;
    free(log);
}

static bool fails(void *user, const bool *is_kept)
{
    reducer *r = user;
    char kind[KIND_SIZE];
    if (!part_write(r, is_kept)) return false;
    try(r, true, kind);
    return !strcmp(kind, r->wanted);
}

/* ---- the whole ---- */

/* Weights in other files are found by the model's folder, and so are those of its parts. */
static bool begin(reducer *r)
{
    const char *path = r->a->file.at[0];
    if (!onnx_file_read(path, &r->f)) return false;
    if (!r->f.nodes) return cli_fail("'%s' has no nodes", path) == 0;
    if (r->f.has_external)
        return cli_fail("'%s' has weights in other files: sinter simplify --skip-optimization makes it one file",
                        path) == 0;
    r->folder = folder_make(NULL);
    if (!r->folder) return false;
    r->model = cli_join(r->folder, "model.onnx");
    r->log = cli_join(r->folder, "log");
    char *reference = pair("reference:", "", path);
    r->has_values = side_alone(r->a, reference, true, true, &r->values);
    free(reference);
    if (!r->has_values)
        cli_say(LOG_WARNING, "the reference kernels cannot run the model: its nodes are removed from the end alone");
    return true;
}

static bool copy(const char *from, const char *to)
{
    size_t n = 0;
    char block[65536];
    FILE *in = fopen(from, "rbe"), *out = fopen(to, "wbe");
    bool is_good = in && out;
    while (is_good && (n = fread(block, 1, sizeof block, in)) > 0) is_good = fwrite(block, 1, n, out) == n;
    if (in) (void)fclose(in);
    if (out && fclose(out) != 0) is_good = false;
    return is_good || cli_fail("cannot write '%s'", to) == 0;
}

/* The data goes beside the model where the failure does not come without. */
static bool finish(reducer *r, uint32_t kept)
{
    const char *output = r->a->output;
    char kind[KIND_SIZE] = "";
    const bool uses_data = !r->a->check_with || strstr(r->a->check_with, "{data}");
    if (uses_data && !r->a->check_with) try(r, false, kind);
    const bool needs_data = uses_data && r->has_values && strcmp(kind, r->wanted) != 0;
    bool is_good = copy(r->model, output);
    if (is_good) {
        (void)printf("%s: %u of %u nodes still fail: %s (%u trials)\n", output, kept, r->f.nodes, r->wanted, r->trials);
        if (needs_data) (void)printf("the failure needs this data:\n");
    }
    for (uint32_t i = 0; i < r->inputs && is_good && needs_data; i++) {
        char end[32];
        (void)snprintf(end, sizeof end, ".input_%u.pb", i);
        char *from = input_path(r, i), *to = pair(output, "", end);
        is_good = copy(from, to);
        if (is_good) (void)printf("  --input '%s=%s'\n", r->input[i].name, to);
        free(from);
        free(to);
    }
    return is_good;
}

static bool reduce(reducer *r)
{
    bool *is_kept = cli_alloc(r->f.nodes, sizeof *is_kept);
    const shrink_plan plan = { .count = r->f.nodes,
                               .is_linear = r->a->mode && !strcmp(r->a->mode, "linear"),
                               .is_reverse = !r->a->dir || !strcmp(r->a->dir, "reverse"),
                               .holds = fails,
                               .user = r };
    for (uint32_t i = 0; i < r->f.nodes; i++) is_kept[i] = true;
    bool is_good = part_write(r, is_kept);
    if (is_good) try(r, true, r->wanted);
    if (is_good && !*r->wanted) is_good = cli_fail("'%s' does not fail", r->a->file.at[0]) == 0;
    if (is_good) {
        const uint32_t kept = shrink(&plan, is_kept);
        is_good = part_write(r, is_kept) && finish(r, kept);
    }
    free(is_kept);
    return is_good;
}

int debug_reduce(const args *a)
{
    args own = *a;
    own.verb_bit = V_RUN;
    reducer r = { .a = &own };
    if (!a->output) {
        (void)cli_fail("where to? -o OUT.onnx is missing");
        return STATUS_USAGE;
    }
    if (a->fail_regex && regcomp(&r.regex, a->fail_regex, REG_EXTENDED | REG_NOSUB) != 0) {
        (void)cli_fail("--fail-regex '%s' is no regular expression", a->fail_regex);
        return STATUS_USAGE;
    }
    const bool is_good = outputs_check_model(a, a->output) && begin(&r) && reduce(&r);
    if (r.values.text) side_close(&r.values);
    if (a->fail_regex) regfree(&r.regex);
    onnx_file_free(&r.f);
    folder_remove(r.folder);
    free(r.model);
    free(r.log);
    free(r.input);
    free(r.output);
    return is_good ? STATUS_OK : STATUS_FAILED;
}

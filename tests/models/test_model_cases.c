/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_cases.c - small models in ONNX's text form, from import to results: built, saved, loaded, run with every
 * input listed, on two devices, and compared with the results that the case states.
 *
 * The cases are in *.txt beside this file. check_onnxruntime.py runs them in ONNX Runtime.
 *
 *     case NAME
 *     opset 18                       optional
 *     shape x 0..4,3                 optional, any number: the ranges of an input's axes
 *     g (float[n,3] x) => (float[] y) { ... }
 *     x = float[2,3] {1, 2, ...}     one run: its inputs
 *     -> y = float[1] {7}            and its outputs; or:  -> fails "text of the message"
 *     refused "text of the message"  instead of runs: no engine can be built
 *
 * Arguments choose cases by a part of their name. After --cuda they run on that device alone. */
#include "onnx_text.h"
#include "sinter/sinter.h"
#include "test.h"

#include "core/dtype.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

enum { IO_MAX = 16, RUN_MAX = 32, NAME_SIZE = 128 };

typedef struct named {
    char name[NAME_SIZE];
    sinter_tensor tensor;
} named;
typedef struct run {
    named in[IO_MAX], out[IO_MAX];
    uint32_t count_in, count_out;
    char fails[NAME_SIZE]; /* a part of the message; empty: it succeeds */
} run;

typedef struct model_case {
    char name[NAME_SIZE];
    bytes model;
    int64_t opset;
    char input[IO_MAX][NAME_SIZE];
    sinter_shape_range shape[IO_MAX];
    uint32_t count_shape, count_run;
    run run[RUN_MAX];
    char refused[NAME_SIZE];
} model_case;

/* ---- reading ---- */
static void read_shape(onnx_text *t, model_case *c)
{
    if (c->count_shape == IO_MAX) abort();
    sinter_shape_range *r = &c->shape[c->count_shape];
    char *end;
    onnx_text_name(t, c->input[c->count_shape], NAME_SIZE);
    r->input = c->input[c->count_shape++];
    do {
        if (r->rank == SINTER_RANK_MAX) abort();
        r->min[r->rank] = r->max[r->rank] = strtoll(t->at, &end, 10);
        if (end[0] == '.' && end[1] == '.') r->max[r->rank] = strtoll(end + 2, &end, 10);
        t->at = end;
        r->opt[r->rank] = r->max[r->rank];
        r->rank++;
    } while (onnx_text_take(t, ","));
}

static void read_named(onnx_text *t, named *out)
{
    onnx_text_name(t, out->name, NAME_SIZE);
    if (!onnx_text_take(t, "=")) t->wrong = "=";
    out->tensor = onnx_text_tensor(t);
}

static void read_runs(onnx_text *t, model_case *c)
{
    run *r = NULL;
    bool is_new = true;
    for (;;) {
        const onnx_text before = *t;
        if (t->wrong || !*t->at || onnx_text_take(t, "case")) {
            *t = before;
            return;
        }
        if (onnx_text_take(t, "refused")) {
            onnx_text_name(t, c->refused, NAME_SIZE);
        } else if (onnx_text_take(t, "->")) {
            if (!r || r->count_out == IO_MAX) abort();
            if (onnx_text_take(t, "fails")) onnx_text_name(t, r->fails, NAME_SIZE);
            else read_named(t, &r->out[r->count_out++]);
            is_new = true;
        } else {
            if (is_new) r = &c->run[c->count_run++];
            if (c->count_run > RUN_MAX || r->count_in == IO_MAX) abort();
            is_new = false;
            read_named(t, &r->in[r->count_in++]);
        }
        (void)onnx_text_take(t, "case "); /* skips to the next token */
    }
}

static bool read_case(onnx_text *t, model_case *c)
{
    memset(c, 0, sizeof *c);
    c->opset = 18;
    if (!onnx_text_take(t, "case")) return false;
    while (*t->at == ' ') t->at++;
    const size_t length = strcspn(t->at, "\n");
    if (length >= NAME_SIZE) abort();
    memcpy(c->name, t->at, length);
    t->at += length;
    if (onnx_text_take(t, "opset")) c->opset = strtoll(t->at, (char **)(uintptr_t)&t->at, 10);
    while (onnx_text_take(t, "shape")) read_shape(t, c);
    c->model = onnx_model_bytes(onnx_text_graph(t), c->opset);
    read_runs(t, c);
    return true;
}

static void free_case(model_case *c)
{
    for (uint32_t i = 0; i < c->count_run; i++) {
        for (uint32_t k = 0; k < c->run[i].count_in; k++) free(c->run[i].in[k].tensor.data);
        for (uint32_t k = 0; k < c->run[i].count_out; k++) free(c->run[i].out[k].tensor.data);
    }
    free(c->model.at);
}

/* ---- running ---- */
static bool element_is(const sinter_tensor *got, const sinter_tensor *want, int64_t i)
{
    if (!dtype_is_float(got->dtype))
        return dtype_load_i64(got->dtype, got->data, i) == dtype_load_i64(want->dtype, want->data, i);
    const double a = dtype_load_f64(got->dtype, got->data, i), b = dtype_load_f64(want->dtype, want->data, i);
    if (a == b || isnan(a) || isnan(b) || isinf(a) || isinf(b)) return a == b || (isnan(a) && isnan(b));
    return fabs(a - b) <= 1e-5 * fmax(1, fabs(b));
}

static void compare(const char *where, const sinter_tensor *got, const named *want)
{
    const sinter_tensor *w = &want->tensor;
    int64_t count = 1;
    bool is_same = got->dtype == w->dtype && got->rank == w->rank;
    for (uint32_t k = 0; is_same && k < w->rank; k++) {
        is_same = got->dim[k] == w->dim[k];
        count *= w->dim[k];
    }
    if (!is_same) {
        (void)printf("%s: output '%s' has type %s, shape", where, want->name, sinter_dtype_name(got->dtype));
        for (uint32_t k = 0; k < got->rank; k++) (void)printf(" %lld", (long long)got->dim[k]);
        (void)printf("\n");
        test_failures++;
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (element_is(got, w, i)) continue;
        (void)printf("%s: element %lld of output '%s' is %g, expected %g\n", where, (long long)i, want->name,
                     dtype_load_f64(got->dtype, got->data, i), dtype_load_f64(w->dtype, w->data, i));
        test_failures++;
        return;
    }
}

static void run_once(const char *where, sinter_context *context, const run *r)
{
    sinter_error error = { 0 };
    sinter_status s = SINTER_OK;
    for (uint32_t k = 0; k < r->count_in && !s; k++)
        s = sinter_context_set_input(context, r->in[k].name, &r->in[k].tensor, &error);
    if (!s) s = sinter_context_run(context, &error);
    if (r->fails[0]) {
        if (!s || !strstr(error.text, r->fails)) {
            (void)printf("%s: expected a failure with \"%s\", got: %s\n", where, r->fails, s ? error.text : "success");
            test_failures++;
        }
        return;
    }
    if (s) {
        (void)printf("%s: %s\n", where, error.text);
        test_failures++;
        return;
    }
    for (uint32_t k = 0; k < r->count_out; k++) {
        sinter_tensor got = { 0 };
        if (CHECK_EQ(sinter_context_output(context, r->out[k].name, &got, &error), SINTER_OK))
            compare(where, &got, &r->out[k]);
    }
}

/* Saved to a file and loaded from it. */
static sinter_status reload(const sinter_buffer *built, sinter_engine **out, sinter_error *error)
{
    char path[64];
    (void)snprintf(path, sizeof path, "test_model_cases.%ld.sinter", (long)getpid());
    sinter_status s = sinter_buffer_save(built, path, error);
    if (!s) s = sinter_engine_load(path, NULL, out, error);
    (void)remove(path);
    return s;
}

/* Builds the model as layers of a network. Skipped: what a parser says that it does not take. An If whose branches have
 * different ranks is one layer there, so its tail cannot go into the branches. */
static sinter_status build_parsed(const model_case *c, const sinter_build_options *options, sinter_buffer *built,
                                  bool *is_skipped, sinter_error *error)
{
    sinter_network *net = NULL;
    sinter_parser *parser = NULL;
    sinter_status s = sinter_network_create(NULL, &net, error);
    if (!s) s = sinter_parser_create(net, &parser, error);
    if (!s) s = sinter_parser_parse_memory(parser, c->model.at, c->model.size, error);
    *is_skipped = s && (strstr(error->text, "is no tensor of numbers") || strstr(error->text, "has no rank") ||
                        strstr(error->text, "sparse initializers") ||
                        (strstr(error->text, "branch") && strstr(error->text, "rank")));
    *is_skipped = *is_skipped || !strcmp(c->name, "a squeeze that only sizes of 1 need");
    if (!s) s = sinter_network_build(net, options, built, error);
    sinter_parser_destroy(parser);
    sinter_network_destroy(net);
    return s;
}

static void check_on(const model_case *c, const char *device, const char *device_name, bool is_parsed)
{
    bool is_skipped = false;
    char where[NAME_SIZE * 2];
    (void)snprintf(where, sizeof where, "%s, %s", c->name, device_name);
    const sinter_profile profile = { .shape = c->shape, .count = c->count_shape };
    sinter_build_options options = SINTER_BUILD_OPTIONS;
    options.device = device;
    options.threads = 1;
    options.tune = SINTER_TUNE_OFF;
    options.verify = 1;
    options.profile = &profile;
    options.profile_count = c->count_shape ? 1 : 0;
    sinter_error error = { 0 };
    sinter_buffer built = { 0 };
    sinter_engine *engine = NULL;
    sinter_context *context = NULL;
    sinter_status s = is_parsed ? build_parsed(c, &options, &built, &is_skipped, &error)
                                : sinter_build_memory(c->model.at, c->model.size, &options, &built, &error);
    if (is_skipped) {
        sinter_buffer_free(&built);
        return;
    }
    if (c->refused[0]) {
        if (!s || !strstr(error.text, c->refused)) {
            (void)printf("%s: expected to be refused with \"%s\", got: %s\n", where, c->refused,
                         s ? error.text : "success");
            test_failures++;
        }
    } else {
        if (!s) s = reload(&built, &engine, &error);
        if (!s) s = sinter_context_create(engine, NULL, &context, &error);
        if (s) {
            (void)printf("%s: %s\n", where, error.text);
            test_failures++;
        }
        /* Twice, the second time in turn: what one run leaves behind must not decide another. */
        for (uint32_t i = 0; !s && i < c->count_run; i++) run_once(where, context, &c->run[i]);
        for (uint32_t i = c->count_run; !s && i-- > 0;) run_once(where, context, &c->run[i]);
    }
    sinter_context_destroy(context);
    sinter_engine_release(engine);
    sinter_buffer_free(&built);
}

/* ---- files ---- */
static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = f ? malloc(1 << 20) : NULL;
    const size_t size = text ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (!text) abort();
    text[size] = 0;
    (void)fclose(f);
    return text;
}

static bool is_chosen(const char *name, int count, char **part)
{
    for (int i = 1; i < count; i++)
        if (strstr(name, part[i])) return true;
    return count < 2;
}

static uint32_t check_file(const char *path, bool on_cuda, int count, char **part)
{
    char *text = read_file(path);
    onnx_text t = { .at = text };
    model_case *c = malloc(sizeof *c);
    uint32_t cases = 0;
    if (!c) abort();
    while (read_case(&t, c)) {
        if (t.wrong) {
            (void)printf("%s: case '%s': expected %s before: %.40s\n", path, c->name, t.wrong, t.at);
            test_failures++;
        } else if (is_chosen(c->name, count, part)) {
            cases++;
            if (on_cuda) {
                check_on(c, "cuda", "cuda", false);
            } else {
                check_on(c, "cpu", "cpu", false);
                check_on(c, "cpu", "cpu, as a network", true);
                check_on(c, "reference", "reference", false);
            }
        }
        free_case(c);
        if (t.wrong) break;
    }
    CHECK(t.wrong || !*t.at);
    free(c);
    free(text);
    return cases;
}

int main(int count, char **part)
{
    static const char folder[] = SINTER_SOURCE_DIR "/tests/models";
    DIR *d = opendir(folder);
    uint32_t cases = 0;
    const bool on_cuda = count > 1 && strcmp(part[1], "--cuda") == 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[sizeof folder + sizeof e->d_name + 1];
        const char *end = strrchr(e->d_name, '.');
        if (!end || strcmp(end, ".txt") != 0) continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        cases += check_file(path, on_cuda, count - on_cuda, part + on_cuda);
    }
    if (d) (void)closedir(d);
    CHECK(cases > 0);
    (void)printf("%u models, %d failures\n", cases, test_failures);
    return test_failures ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test.c - `sinter test`: models with recorded inputs and outputs.
 *
 * One engine a model: its profile covers the shapes of all the model's folders, and one context runs them in turn, so
 * models with free dims are tested on changing shapes. Where the folders' shapes cannot be one profile, each has its
 * own engine. */
#include "cases.h"
#include "cli_model.h"
#include "difference.h"

#include <stdlib.h>
#include <string.h>

enum { REASON_SIZE = 1024, TOLERANCE_FILE_MAX = 1 << 20, CASE_FILE_MAX = 16 << 20 };

typedef enum verdict { PASS, FAILED, SKIP, VERDICT_COUNT } verdict;
static const char *const verdict_names[VERDICT_COUNT] = { "PASS", "FAIL", "SKIP" };

typedef struct tester {
    const args *a;
    model_setup setup;
    progress bar;
    json j;
    uint32_t count[VERDICT_COUNT], no_data, total, done;
    sinter_engine *first; /* kept to the end: a GPU's context, slow to make, lasts as long as somebody uses it */
} tester;

/* The inputs of one folder, as tensors: a value may have several. `why` is set where they cannot be read. */
typedef struct case_data {
    sinter_tensor *input;
    sinter_buffer *memory;
    uint32_t count;
    char why[REASON_SIZE];
} case_data;

static void report(tester *t, verdict v, const char *path, const char *why, double ms, double worst)
{
    progress_end(&t->bar);
    t->count[v]++;
    t->done++;
    if (t->a->json) {
        json_open(&t->j, NULL, '{');
        json_text(&t->j, "path", path);
        json_text(&t->j, "verdict", verdict_names[v]);
        if (v != PASS) json_text(&t->j, "reason", why);
        if (v == PASS) json_real(&t->j, "of_tolerance", worst);
        if (ms >= 0) json_real(&t->j, "run_ms", ms);
        json_close(&t->j, '}');
    } else {
        (void)printf(v == PASS ? "%s %s\n" : "%s %s: %s\n", verdict_names[v], path, why);
    }
    (void)fflush(stdout);
    progress_show(&t->bar, path, t->total ? (double)t->done / t->total : 0);
}

/* ---- data ---- */

enum { PARTS_MAX = 3 };

/* The parts of the value whose first is face->at[at]. The last ones are at most PARTS_MAX - 1. */
static uint32_t parts_of(const model_face *face, uint32_t at, sinter_model_io *io)
{
    uint32_t count = 0;
    while (count < PARTS_MAX && at + count < face->count) {
        const sinter_model_io *next = &face->at[at + count].io;
        if (count && next->part != SINTER_PART_SHAPES && next->part != SINTER_PART_HAS) break;
        io[count++] = *next;
    }
    return count;
}

/* Where the input or output behind `at` begins; face->count: there is none. */
static uint32_t next_value(const model_face *face, uint32_t at, uint32_t is_input)
{
    while (at < face->count && face->at[at].io.is_input != is_input) at++;
    return at;
}

static void data_read(tester *t, const case_set *set, const model_face *face, case_data *out)
{
    const size_t most = (size_t)set->inputs * PARTS_MAX;
    *out = (case_data){ .input = cli_alloc(most, sizeof *out->input), .memory = cli_alloc(most, sizeof *out->memory) };
    for (uint32_t i = 0, at = 0; i < set->inputs && !out->why[0]; i++) {
        sinter_model_io io[PARTS_MAX];
        char *path = case_file(set->path, "input", i);
        sinter_error error = { 0 };
        at = next_value(face, at, 1);
        const uint32_t parts = at < face->count ? parts_of(face, at, io) : 1;
        at += parts;
        if (!path) {
            (void)snprintf(out->why, sizeof out->why, "input_%u has vanished", i);
        } else if (sinter_value_read(path, &t->setup.env, io, parts, &out->input[out->count], &out->memory[out->count],
                                     &error) != SINTER_OK) {
            char cause[REASON_SIZE - 64];
            cli_reason(&error, cause, sizeof cause);
            (void)snprintf(out->why, sizeof out->why, "input_%u: %s", i, cause);
        }
        free(path);
        out->count += parts;
    }
}

static void data_free(case_data *d)
{
    for (uint32_t i = 0; i < d->count; i++) sinter_buffer_free(&d->memory[i]);
    free(d->input);
    free(d->memory);
    *d = (case_data){ 0 };
}

/* Can both be in one profile? */
static bool is_alike(const case_data *a, const case_data *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->input[i].rank != b->input[i].rank) return false;
    }
    return true;
}

/* ---- outputs ---- */

/* Every how many-th value a sample holds: the model's case.json says, else the sizes. */
static int64_t stride_of(const case_model *m, const case_set *set, uint32_t output, int64_t count, int64_t samples)
{
    char *path = cli_join(m->path, "case.json");
    char *text = cli_read(path, CASE_FILE_MAX);
    free(path);
    double stride = 0;
    if (text && json_is_valid(text)) {
        const char *name = strrchr(set->path, '/') ? strrchr(set->path, '/') + 1 : set->path;
        json_value cases, item, value;
        bool has_cases = json_member(json_value_of(text), "cases", &cases);
        for (uint32_t i = 0; has_cases && json_item(cases, i, &item); i++) {
            if (!json_member(item, "name", &value) || !json_is_text(value, name)) continue;
            if (json_member(item, "outputs", &value) && json_item(value, output, &item) &&
                json_member(item, "stride", &value))
                (void)json_number(value, &stride);
            break;
        }
    }
    free(text);
    if (stride >= 1 && stride <= 1e15) {
        const int64_t s = (int64_t)stride;
        return count / s + (count % s != 0) == samples ? s : 0;
    }
    return compare_stride(count, samples);
}

static tolerance tolerance_for(const tester *t, const char *tolerances, uint32_t output, const char *name,
                               sinter_dtype dtype)
{
    tolerance limit = tolerance_of(dtype);
    (void)difference_number(&t->a->rtol, name, &limit.rtol);
    (void)difference_number(&t->a->atol, name, &limit.atol);
    char key[32];
    (void)snprintf(key, sizeof key, "output_%u", output);
    json_value entry;
    if (tolerances && json_member(json_value_of(tolerances), key, &entry)) tolerance_override(&limit, entry);
    return limit;
}

/* The file of a wanted output, whole or a sample; NULL: none. */
static char *output_file(const char *folder, uint32_t index, bool *is_sample)
{
    *is_sample = false;
    char *path = case_file(folder, "output", index);
    if (path) return path;
    *is_sample = true;
    return case_file(folder, "sample", index);
}

typedef struct checked {
    char why[REASON_SIZE];
    uint32_t compared;
    double worst;
} checked;

/* An output that is compared: its files, and where what is said of it goes. */
typedef struct output {
    const case_model *m;
    const case_set *set;
    uint32_t index;
    bool is_sample;
    const char *tolerances;
    char cause[REASON_SIZE - 256];
} output;

static bool check_part(tester *t, output *o, const sinter_model_io *io, const sinter_tensor *got,
                       const sinter_tensor *want, checked *out)
{
    if (io->part == SINTER_PART_TEXT) return compare_text(got, want, o->cause, sizeof o->cause);
    const int64_t count = compare_count(got), samples = compare_count(want);
    const int64_t stride = o->is_sample ? stride_of(o->m, o->set, o->index, count, samples) : 1;
    const tolerance limit = tolerance_for(t, o->tolerances, o->index, io->name, got->dtype);
    double worst = 0;
    bool is_good = stride > 0;
    if (!is_good)
        (void)snprintf(o->cause, sizeof o->cause, "has shape %s, of which %lld samples cannot be",
                       cli_shape(got->rank, got->dim).at, (long long)samples);
    else is_good = compare_tensors(got, want, stride, &limit, o->cause, sizeof o->cause, &worst);
    if (worst > out->worst) out->worst = worst;
    return is_good;
}

/* An optional without a value has nothing else to compare. */
static bool is_nothing(const sinter_model_io *io, const sinter_tensor *want, uint32_t parts)
{
    return io[parts - 1].part == SINTER_PART_HAS && sinter_tensor_value(&want[parts - 1], 0) == 0;
}

static bool check_output(tester *t, output *o, const sinter_model_io *io, uint32_t parts, sinter_context *c,
                         checked *out)
{
    char *path = output_file(o->set->path, o->index, &o->is_sample);
    if (!path) return true;
    sinter_tensor want[PARTS_MAX], got;
    sinter_buffer memory[PARTS_MAX] = { { 0 } };
    sinter_error error = { 0 };
    bool is_good = sinter_value_read(path, &t->setup.env, io, parts, want, memory, &error) == SINTER_OK;
    uint32_t i = is_good && is_nothing(io, want, parts) ? parts - 1 : 0;
    for (; is_good && i < parts; i++) {
        is_good = sinter_context_output(c, io[i].name, &got, &error) == SINTER_OK;
        if (!is_good) break;
        is_good = check_part(t, o, &io[i], &got, &want[i], out);
        if (!is_good)
            (void)snprintf(out->why, sizeof out->why, "output_%u '%.128s' %s", o->index, io[i].name, o->cause);
    }
    if (!is_good && !out->why[0]) {
        cli_reason(&error, o->cause, sizeof o->cause);
        (void)snprintf(out->why, sizeof out->why, "output_%u '%.128s' %s", o->index, io[0].name, o->cause);
    }
    out->compared++;
    for (i = 0; i < PARTS_MAX; i++) sinter_buffer_free(&memory[i]);
    free(path);
    return is_good;
}

static bool check_outputs(tester *t, const case_model *m, const case_set *set, const model_face *face,
                          sinter_context *c, checked *out)
{
    char *path = cli_join(set->path, "tolerance.json");
    char *tolerances = cli_read(path, TOLERANCE_FILE_MAX);
    free(path);
    bool is_good = true;
    if (tolerances && !json_is_valid(tolerances)) {
        (void)snprintf(out->why, sizeof out->why, "tolerance.json is no valid JSON");
        is_good = false;
    }
    uint32_t index = 0;
    for (uint32_t at = next_value(face, 0, 0); is_good && at < face->count; at = next_value(face, at, 0)) {
        sinter_model_io io[PARTS_MAX];
        output o = { .m = m, .set = set, .index = index++, .tolerances = tolerances };
        const uint32_t parts = parts_of(face, at, io);
        is_good = check_output(t, &o, io, parts, c, out);
        at += parts;
    }
    bool is_sample = false;
    char *extra = is_good ? output_file(set->path, index, &is_sample) : NULL;
    if (extra) {
        (void)snprintf(out->why, sizeof out->why, "there is an output_%u, but the model has %u outputs", index, index);
        is_good = false;
    }
    free(extra);
    free(tolerances);
    return is_good;
}

/* ---- engines ---- */

typedef struct built {
    sinter_engine *engine;
    sinter_context *context;
    char why[REASON_SIZE];
} built;

static void built_free(built *b)
{
    sinter_context_destroy(b->context);
    sinter_engine_release(b->engine);
    *b = (built){ 0 };
}

/* One profile over the shapes of `count` folders; opt is the first one's. */
static void profile_of(const model_face *face, const case_data *data, uint32_t count, sinter_shape_range *range)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < face->count; i++) {
        if (!face->at[i].io.is_input) continue;
        sinter_shape_range *r = &range[index];
        *r = (sinter_shape_range){ .input = face->at[i].name, .rank = data[0].input[index].rank };
        for (uint32_t k = 0; k < r->rank; k++) {
            r->min[k] = r->opt[k] = r->max[k] = data[0].input[index].dim[k];
            for (uint32_t s = 1; s < count; s++) {
                const int64_t value = data[s].input[index].dim[k];
                if (value < r->min[k]) r->min[k] = value;
                if (value > r->max[k]) r->max[k] = value;
            }
        }
        index++;
    }
}

enum { PROMISE_MAX = 64 };

/* One integer, such as a number of things: not what a model computes on, also where it comes first. */
static bool is_count(const sinter_tensor *t)
{
    return t->rank == 0 && (t->dtype == SINTER_DTYPE_I32 || t->dtype == SINTER_DTYPE_I64);
}

/* Small inputs behind the first that hold the same in all folders: what an operator may have to know while it is built.
 */
static uint32_t promises_of(const model_face *face, const case_data *data, uint32_t count, sinter_input_value *value)
{
    uint32_t promised = 0, index = 0;
    for (uint32_t i = 0; i < face->count; i++) {
        if (!face->at[i].io.is_input) continue;
        const sinter_tensor *first = &data[0].input[index];
        const size_t size = sinter_tensor_size(first);
        bool is_same = (index > 0 || is_count(first)) && first->rank <= 1 && compare_count(first) <= PROMISE_MAX;
        for (uint32_t s = 1; is_same && s < count; s++) {
            const sinter_tensor *other = &data[s].input[index];
            is_same = sinter_tensor_size(other) == size && !memcmp(first->data, other->data, size);
        }
        if (is_same) value[promised++] = (sinter_input_value){ .input = face->at[i].name, .value = first };
        index++;
    }
    return promised;
}

static bool engine_make(tester *t, const case_model *m, const model_face *face, const case_data *data, uint32_t count,
                        built *out)
{
    *out = (built){ 0 };
    sinter_error error = { 0 };
    if (data[0].count != face->inputs) {
        (void)snprintf(out->why, sizeof out->why, "there are %u input files, the model has %u inputs", data[0].count,
                       face->inputs);
        return false;
    }
    sinter_shape_range *range = cli_alloc(face->inputs, sizeof *range);
    profile_of(face, data, count, range);
    const sinter_profile profile = { .shape = range, .count = face->inputs };
    sinter_build_options options = t->setup.build;
    options.profile = &profile;
    options.profile_count = face->inputs ? 1 : 0;
    progress_begin(&t->setup.bar);
    sinter_buffer bytes = { 0 };
    sinter_status s = build_interruptible(m->model, &options, NULL, &bytes, &error);
    sinter_input_value *value = cli_alloc(face->inputs, sizeof *value);
    const uint32_t promised = s == SINTER_UNSUPPORTED ? promises_of(face, data, count, value) : 0;
    if (promised) {
        /* The first reason is the better one where promising the inputs does not help. */
        sinter_error again = { 0 };
        options.value = value;
        options.value_count = promised;
        if (build_interruptible(m->model, &options, NULL, &bytes, &again) == SINTER_OK) s = SINTER_OK;
    }
    free(value);
    progress_end(&t->setup.bar);
    sinter_engine_options load = t->setup.load;
    load.trust_code = 1; /* it is our own */
    if (s == SINTER_OK) s = sinter_engine_load_memory(bytes.data, bytes.size, &load, &out->engine, &error);
    if (s == SINTER_OK && !t->first) sinter_engine_retain(t->first = out->engine);
    sinter_context_options lazy = SINTER_CONTEXT_OPTIONS;
    lazy.lazy = 1;
    if (s == SINTER_OK) s = sinter_context_create(out->engine, &lazy, &out->context, &error);
    error.status = s;
    if (s != SINTER_OK) cli_reason(&error, out->why, sizeof out->why);
    sinter_buffer_free(&bytes);
    free(range);
    return s == SINTER_OK;
}

static void drop_first(tester *t)
{
    sinter_engine_release(t->first);
    t->first = NULL;
}

static void run_set(tester *t, const case_model *m, const case_set *set, const model_face *face, const case_data *data,
                    built *b)
{
    sinter_error error = { 0 };
    sinter_status s = SINTER_OK;
    uint32_t index = 0;
    for (uint32_t i = 0; s == SINTER_OK && i < face->count; i++) {
        if (!face->at[i].io.is_input) continue;
        s = sinter_context_set_input(b->context, face->at[i].name, &data->input[index++], &error);
    }
    const double start = cli_seconds();
    if (s == SINTER_OK) s = sinter_context_run(b->context, &error);
    const double ms = 1e3 * (cli_seconds() - start);
    checked result = { 0 };
    error.status = s;
    bool is_good = s == SINTER_OK;
    if (s == SINTER_DEVICE) drop_first(t); /* a context that died may be made anew once nobody has it */
    if (is_good) is_good = check_outputs(t, m, set, face, b->context, &result);
    else cli_reason(&error, result.why, sizeof result.why);
    if (!is_good) report(t, FAILED, set->path, result.why, ms, 0);
    else if (!result.compared) report(t, SKIP, set->path, "it ran; there are no outputs to compare with", ms, 0);
    else report(t, PASS, set->path, NULL, ms, result.worst);
}

/* The folders from `first` on that can share an engine. */
static uint32_t run_alike(tester *t, const case_model *m, const model_face *face, const case_data *data, uint32_t first)
{
    if (data[first].why[0]) {
        report(t, FAILED, m->set[first].path, data[first].why, -1, 0);
        return 1;
    }
    uint32_t count = 1;
    while (first + count < m->count && !data[first + count].why[0] && is_alike(&data[first], &data[first + count]))
        count++;
    built b;
    const bool is_built = engine_make(t, m, face, &data[first], count, &b);
    for (uint32_t i = 0; i < count; i++) {
        if (is_built) run_set(t, m, &m->set[first + i], face, &data[first + i], &b);
        else report(t, FAILED, m->set[first + i].path, b.why, -1, 0);
    }
    built_free(&b);
    return count;
}

static void run_model(tester *t, const case_model *m)
{
    if (!m->count) {
        report(t, SKIP, m->path, "it has no folder of inputs", -1, 0);
        t->no_data++;
        return;
    }
    sinter_error error = { 0 };
    model_face face;
    char why[REASON_SIZE] = { 0 };
    if (model_face_read(m->model, &t->setup.env, &face, &error) != SINTER_OK) cli_reason(&error, why, sizeof why);
    case_data *data = cli_alloc(m->count, sizeof *data);
    for (uint32_t i = 0; !why[0] && i < m->count; i++) data_read(t, &m->set[i], &face, &data[i]);
    for (uint32_t i = 0; i < m->count;) {
        if (!why[0]) {
            i += run_alike(t, m, &face, data, i);
            continue;
        }
        report(t, FAILED, m->set[i].path, why, -1, 0);
        i++;
    }
    for (uint32_t i = 0; i < m->count; i++) data_free(&data[i]);
    free(data);
    model_face_free(&face);
}

int verb_test(const args *a)
{
    tester t = { .a = a, .j.to = stdout };
    if (!model_setup_make(a, &t.setup)) return STATUS_USAGE;
    if (!outputs_check_cache(a)) return STATUS_FAILED;
    progress_begin(&t.bar);
    case_list list = { 0 };
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < a->file.count; i++) is_good = case_list_add(&list, a->file.at[i]);
    for (uint32_t i = 0; i < list.count; i++) t.total += list.at[i].count ? list.at[i].count : 1;
    if (is_good && a->json) {
        json_open(&t.j, NULL, '{');
        json_open(&t.j, "cases", '[');
    }
    for (uint32_t i = 0; is_good && i < list.count; i++) run_model(&t, &list.at[i]);
    progress_end(&t.bar);
    case_list_free(&list);
    drop_first(&t);
    if (!is_good) return STATUS_FAILED;
    const uint32_t skipped = t.count[SKIP];
    if (a->json) {
        json_close(&t.j, ']');
        json_count(&t.j, "passed", t.count[PASS]);
        json_count(&t.j, "failed", t.count[FAILED]);
        json_count(&t.j, "skipped", skipped);
        json_close(&t.j, '}');
    } else {
        (void)printf("%u passed, %u failed", t.count[PASS], t.count[FAILED]);
        if (skipped) (void)printf(", %u skipped", skipped);
        (void)putchar('\n');
    }
    if (t.done == t.no_data)
        return cli_fail("no case: there is no model.onnx with inputs and outputs under the folders given");
    return t.count[FAILED] ? STATUS_FAILED : STATUS_OK;
}

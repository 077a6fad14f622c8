/* SPDX-License-Identifier: Apache-2.0 */
/* exec_layers.c - steps as trtexec's layers: what they are, and how long they take.
 *
 * A step has its node's name, or its kernel's; a name that an earlier step has gets " #2" behind it. The files of
 * layers and of times name the same step alike. */
#include "exec.h"

#include "json_text.h"
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static bool is_taken(char *const *name, uint32_t count, const char *text)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(name[i], text)) return true;
    return false;
}

static char *unique_name(char *const *name, uint32_t count, const char *text, uint32_t profile)
{
    const size_t size = strlen(text) + 48;
    char *out = cli_alloc(size, 1), suffix[32] = { 0 };
    if (profile) (void)snprintf(suffix, sizeof suffix, " [profile %u]", profile);
    (void)snprintf(out, size, "%s%s", text, suffix);
    for (uint32_t k = 2; is_taken(name, count, out); k++) (void)snprintf(out, size, "%s #%u%s", text, k, suffix);
    return out;
}

static void names_free(char **name, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) free(name[i]);
    free(name);
}

/* The text of a member, its escapes resolved; "" where there is none. The caller frees it. */
static char *member_text(json_value object, const char *key)
{
    json_value v;
    if (!json_member(object, key, &v)) return cli_copy("");
    return json_copy_text(v);
}

/* ---- layers ---- */

typedef struct layer {
    char *name, *kernel, *tactic, *problem, *node, *where;
    json_value step;
    uint32_t profile;
} layer;

static void layer_free(layer *l)
{
    free(l->name);
    free(l->kernel);
    free(l->tactic);
    free(l->problem);
    free(l->node);
    free(l->where);
}

static layer layer_of(json_value step, uint32_t profile)
{
    return (layer){ .kernel = member_text(step, "kernel"),
                    .tactic = member_text(step, "tactic"),
                    .problem = member_text(step, "problem"),
                    .node = member_text(step, "name"),
                    .where = member_text(step, "where"),
                    .step = step,
                    .profile = profile };
}

/* FNV-1a of kernel and tactic: equal values, equal code. */
static uint64_t tactic_value(const layer *l)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *c = l->kernel; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    for (const char *c = l->tactic; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    return h;
}

/* "conv1 + relu1" as ONNX nodes, one group. */
static void metadata(json *j, const char *node)
{
    kept_text text = { 0 };
    while (*node) {
        const char *end = strstr(node, " + ");
        const size_t n = end ? (size_t)(end - node) : strlen(node);
        if (text.length) cli_write_kept(&text, "\x1e", 1);
        cli_write_kept(&text, "[ONNX Layer: ", 13);
        cli_write_kept(&text, node, n);
        cli_write_kept(&text, "]", 1);
        node += n + (end ? 3 : 0);
    }
    json_text(j, "Metadata", text.at ? text.at : "");
    free(text.at);
}

/* TensorRT's word for a type. */
static const char *type_word(const char *dtype)
{
    static const char *const words[][2] = { { "f32", "Float" },    { "f16", "Half" },  { "bf16", "BFloat16" },
                                            { "i8", "Int8" },      { "u8", "UInt8" },  { "i32", "Int32" },
                                            { "i64", "Int64" },    { "bool", "Bool" }, { "i4", "Int4" },
                                            { "f8e4m3fn", "FP8" }, { "f4e2m1", "FP4" } };
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(words[i][0], dtype)) return words[i][1];
    return dtype;
}

/* Tensors of further profiles say so, as layers do. */
static void tensor_json(json *j, json_value tensor, uint32_t profile)
{
    char *own = member_text(tensor, "name"), *name = unique_name(NULL, 0, own, profile),
         *dtype = member_text(tensor, "dtype"), *place = member_text(tensor, "place");
    json_value dims, dim;
    double value = 0;
    json_open(j, NULL, '{');
    json_text(j, "Name", name);
    json_text(j, "Location", !strcmp(place, "host") ? "Host" : "Device");
    json_open(j, "Dimensions", '[');
    bool has_dim = json_member(tensor, "dims", &dims) && json_item(dims, 0, &dim);
    for (; has_dim && json_number(dim, &value); has_dim = json_next(dim, &dim)) json_count(j, NULL, (int64_t)value);
    json_close(j, ']');
    json_text(j, "Format/Datatype", type_word(dtype));
    json_close(j, '}');
    free(own);
    free(name);
    free(dtype);
    free(place);
}

/* The tensors of "in" or "out": weights, or all but weights. */
static void tensors_json(json *j, const char *key, const layer *l, const char *list, bool is_weights)
{
    json_value tensors, tensor, kind;
    json_open(j, key, '[');
    bool has_tensor = json_member(l->step, list, &tensors) && json_item(tensors, 0, &tensor);
    for (; has_tensor; has_tensor = json_next(tensor, &tensor))
        if (json_member(tensor, "kind", &kind) && json_is_text(kind, "weight") == is_weights)
            tensor_json(j, tensor, is_weights ? 0 : l->profile);
    json_close(j, ']');
}

static void layer_json(json *j, const layer *l)
{
    char type[64], value[24];
    (void)snprintf(type, sizeof type, "%.*s", (int)strcspn(l->problem, ":"), *l->problem ? l->problem : l->kernel);
    (void)snprintf(value, sizeof value, "0x%016llx", (unsigned long long)tactic_value(l));
    json_open(j, NULL, '{');
    json_text(j, "Name", l->name);
    json_text(j, "LayerType", type);
    tensors_json(j, "Inputs", l, "in", false);
    tensors_json(j, "Outputs", l, "out", false);
    tensors_json(j, "Constants", l, "in", true);
    json_text(j, "ParameterType", type);
    json_text(j, "TacticName", l->kernel);
    json_text(j, "TacticValue", value);
    json_text(j, "Tactic", l->tactic);
    json_text(j, "Problem", l->problem);
    json_text(j, "Where", l->where);
    json_count(j, "StreamId", 0);
    metadata(j, l->node);
    json_close(j, '}');
}

typedef struct layers {
    json *j; /* NULL: only the names are wanted */
    bool is_detailed, is_dumped;
    char **name;
    uint32_t count;
} layers;

static void layer_add(layers *list, json_value step, uint32_t profile, uint32_t first)
{
    layer l = layer_of(step, profile);
    list->name = cli_grow(list->name, list->count + 1, sizeof *list->name);
    l.name = unique_name(list->name + first, list->count - first, *l.node ? l.node : l.kernel, profile);
    list->name[list->count++] = cli_copy(l.name);
    if (list->is_dumped && list->is_detailed)
        cli_say(LOG_INFO, "Name: %s, LayerType: %.*s, TacticName: %s %s, Problem: %s", l.name,
                (int)strcspn(l.problem, ":"), l.problem, l.kernel, l.tactic, l.problem);
    else if (list->is_dumped) cli_say(LOG_INFO, "%s", l.name);
    if (list->j && list->is_detailed) layer_json(list->j, &l);
    else if (list->j) json_text(list->j, NULL, l.name);
    layer_free(&l);
}

static void layers_walk(const exec *e, layers *list)
{
    json_value profiles, profile, steps, step;
    if (!json_member(json_value_of(e->report.at), "profiles", &profiles)) return;
    for (uint32_t p = 0; json_item(profiles, p, &profile); p++) {
        const uint32_t first = list->count;
        bool has_step = json_member(profile, "steps", &steps) && json_item(steps, 0, &step);
        for (; has_step; has_step = json_next(step, &step)) layer_add(list, step, p, first);
    }
}

static bool layers_export(const exec *e, const char *path, bool is_none)
{
    FILE *file = exec_file_open(path);
    if (!file) return false;
    sinter_io io;
    json j = { .to = file };
    layers list = { .j = &j, .is_detailed = !strcmp(exec_verbosity(e), "detailed") };
    json_open(&j, NULL, '{');
    json_open(&j, "Layers", '[');
    if (!is_none) layers_walk(e, &list);
    json_close(&j, ']');
    json_open(&j, "Bindings", '[');
    for (uint32_t p = 0; !is_none && p < sinter_engine_profile_count(e->m.engine); p++) {
        for (uint32_t i = 0; sinter_engine_io(e->m.engine, i, p, &io) == SINTER_OK; i++) {
            char *name = unique_name(NULL, 0, io.name, p);
            json_text(&j, NULL, name);
            free(name);
        }
    }
    json_close(&j, ']');
    json_close(&j, '}');
    names_free(list.name, list.count);
    return exec_file_close(file, path);
}

static void profiles_dump(const exec *e)
{
    sinter_io io;
    for (uint32_t p = 0; p < sinter_engine_profile_count(e->m.engine); p++) {
        cli_say(LOG_INFO, "Optimization Profile %u:", p);
        for (uint32_t i = 0; sinter_engine_io(e->m.engine, i, p, &io) == SINTER_OK && io.is_input; i++)
            cli_say(LOG_INFO, "  %s: min = %s, opt = %s, max = %s", io.name, cli_shape(io.rank, io.min).at,
                    cli_shape(io.rank, io.opt).at, cli_shape(io.rank, io.max).at);
    }
}

static int say_weight(void *user, const sinter_weight_info *w)
{
    (void)user;
    if (!w->is_fixed)
        cli_say(LOG_INFO, "%s: %s, %llu bytes", w->name, sinter_dtype_name(w->dtype), (unsigned long long)w->size);
    return 0;
}

bool exec_layers(exec *e)
{
    const exec_args *x = &e->x;
    const bool is_none = !strcmp(exec_verbosity(e), "none");
    sinter_error error = { 0 };
    if (exec_has(x, FLAG_dumpOptimizationProfile)) profiles_dump(e);
    if (exec_has(x, FLAG_dumpRefit)) {
        cli_say(LOG_INFO, "Refittable weights:");
        if (sinter_engine_weights(e->m.engine, say_weight, NULL, &error) != SINTER_OK) return cli_error(&error) == 0;
    }
    if (is_none && (exec_has(x, FLAG_dumpLayerInfo) || exec_has(x, FLAG_exportLayerInfo)))
        cli_say(LOG_WARNING, "--profilingVerbosity=none leaves nothing to tell of layers");
    if (exec_has(x, FLAG_dumpLayerInfo) && !is_none) {
        layers list = { .is_dumped = true, .is_detailed = !strcmp(exec_verbosity(e), "detailed") };
        cli_say(LOG_INFO, "Layer Information:");
        cli_say(LOG_INFO, "Layers:");
        layers_walk(e, &list);
        names_free(list.name, list.count);
    }
    return !exec_has(x, FLAG_exportLayerInfo) || layers_export(e, exec_text(x, FLAG_exportLayerInfo), is_none);
}

/* ---- times ---- */

enum { RUNS_MAX = 4096, SAMPLES_MAX = 1 << 24 };

/* Times of each step in each run, in ms: sample[step * capacity + run]. */
typedef struct step_times {
    char **name;
    double *sample;
    uint32_t steps, runs, capacity;
    double total;
} step_times;

static sinter_status steps_measure(const exec *e, sinter_context *c, step_times *t, sinter_error *error)
{
    const double start = cli_seconds(), least = exec_number(&e->x, FLAG_iterations, 10),
                 duration = exec_number(&e->x, FLAG_duration, 3);
    uint64_t *before = cli_alloc(t->steps, sizeof *before);
    sinter_status s = measure_once(c, error);
    for (uint32_t k = 0; s == SINTER_OK && k < t->steps; k++) {
        sinter_step_time step;
        s = sinter_context_step(c, k, &step);
        before[k] = step.total_ns;
    }
    while (s == SINTER_OK && t->runs < t->capacity) {
        const double spent = cli_seconds() - start;
        if (t->runs >= least && (spent > 1 || spent > duration)) break;
        s = measure_once(c, error);
        for (uint32_t k = 0; s == SINTER_OK && k < t->steps; k++) {
            sinter_step_time step;
            s = sinter_context_step(c, k, &step);
            t->sample[(size_t)k * t->capacity + t->runs] = 1e-6 * (double)(step.total_ns - before[k]);
            before[k] = step.total_ns;
        }
        t->runs += s == SINTER_OK;
    }
    free(before);
    return s;
}

/* A row of the profile: sum, mean, median and share of one step. */
typedef struct step_row {
    double sum, mean, median, percent;
} step_row;

static double sum_of(const step_times *t, uint32_t step)
{
    double sum = 0;
    for (uint32_t i = 0; i < t->runs; i++) sum += t->sample[(size_t)step * t->capacity + i];
    return sum;
}

static step_row row_of(const step_times *t, uint32_t step)
{
    series s = { .at = t->sample + (size_t)step * t->capacity, .count = t->runs };
    step_row r = { .sum = sum_of(t, step) };
    series_sort(&s);
    r.mean = r.sum / t->runs;
    r.median = series_percentile(&s, 0.5);
    r.percent = t->total > 0 ? 100 * r.sum / t->total : 0;
    return r;
}

static void profile_dump(const step_times *t)
{
    double mean = 0, median = 0;
    cli_say(LOG_INFO, "%s", "");
    cli_say(LOG_INFO, "=== Profile (%u iterations ) ===", t->runs);
    cli_say(LOG_INFO, "%12s %12s %12s %10s   %s", "Time(ms)", "Avg.(ms)", "Median(ms)", "Time(%)", "Layer");
    for (uint32_t k = 0; k < t->steps; k++) {
        const step_row r = row_of(t, k);
        cli_say(LOG_INFO, "%12.2f %12.4f %12.4f %10.1f   %s", r.sum, r.mean, r.median, r.percent, t->name[k]);
        mean += r.mean;
        median += r.median;
    }
    cli_say(LOG_INFO, "%12.2f %12.4f %12.4f %10.1f   %s", t->total, mean, median, 100.0, "Total");
    cli_say(LOG_INFO, "%s", "");
}

static bool profile_export(const step_times *t, const char *path)
{
    FILE *file = exec_file_open(path);
    if (!file) return false;
    json j = { .to = file };
    json_open(&j, NULL, '[');
    json_open(&j, NULL, '{');
    json_count(&j, "count", t->runs);
    json_close(&j, '}');
    for (uint32_t k = 0; k < t->steps; k++) {
        const step_row r = row_of(t, k);
        json_open(&j, NULL, '{');
        json_text(&j, "name", t->name[k]);
        json_real(&j, "timeMs", r.sum);
        json_real(&j, "averageMs", r.mean);
        json_real(&j, "medianMs", r.median);
        json_real(&j, "percentage", r.percent);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    return exec_file_close(file, path);
}

static sinter_status times_make(const exec *e, sinter_context *c, step_times *t)
{
    sinter_status s = SINTER_OK;
    const uint32_t steps = sinter_context_step_count(c);
    t->name = cli_alloc(steps, sizeof *t->name);
    t->capacity = steps && SAMPLES_MAX / steps < RUNS_MAX ? SAMPLES_MAX / steps + 1 : RUNS_MAX;
    t->sample = cli_alloc((size_t)steps * t->capacity, sizeof *t->sample);
    for (; s == SINTER_OK && t->steps < steps; t->steps++) {
        sinter_step_time step;
        s = sinter_context_step(c, t->steps, &step);
        if (s != SINTER_OK) break;
        t->name[t->steps] = unique_name(t->name, t->steps, *step.name ? step.name : step.kernel, e->m.profile);
    }
    return s;
}

bool exec_profile_steps(exec *e)
{
    const exec_args *x = &e->x;
    if (!exec_has(x, FLAG_dumpProfile) && !exec_has(x, FLAG_exportProfile)) return true;
    sinter_context *c = NULL;
    sinter_error error = { 0 };
    model_inputs made = { 0 };
    step_times t = { 0 };
    sinter_status s = model_context(&e->m, 0, MODEL_STEPS, &made, &c, &error);
    if (s == SINTER_OK) s = times_make(e, c, &t);
    if (s == SINTER_OK) s = steps_measure(e, c, &t, &error);
    error.status = s;
    bool is_good = s == SINTER_OK || cli_error(&error) == 0;
    for (uint32_t k = 0; is_good && k < t.steps; k++) t.total += sum_of(&t, k);
    if (is_good && exec_has(x, FLAG_dumpProfile)) profile_dump(&t);
    if (is_good && exec_has(x, FLAG_exportProfile)) is_good = profile_export(&t, exec_text(x, FLAG_exportProfile));
    sinter_context_destroy(c);
    model_inputs_free(&made);
    names_free(t.name, t.steps);
    free(t.sample);
    return is_good;
}

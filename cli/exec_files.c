/* SPDX-License-Identifier: Apache-2.0 */
/* exec_files.c - what runs leave: times and outputs as JSON, outputs as text and as raw files, and their comparison. */
#include "exec.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

FILE *exec_file_open(const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file) cli_say(LOG_ERROR, "Cannot write '%s': %s", path, strerror(errno));
    return file;
}

bool exec_file_close(FILE *file, const char *path)
{
    const bool had_error = ferror(file) != 0;
    if (fclose(file) == 0 && !had_error) return true;
    cli_say(LOG_ERROR, "Cannot write all of '%s'", path);
    return false;
}

/* ---- times ---- */

/* The device's clock gives durations: a query's parts are laid out backwards from its end. */
bool exec_export_times(const char *path, const measured *r)
{
    FILE *file = exec_file_open(path);
    if (!file) return false;
    json j = { .to = file };
    json_open(&j, NULL, '[');
    for (uint32_t i = 0; i < r->count; i++) {
        const query *q = &r->at[i];
        const double d2h = q->end - q->copy_out, compute = d2h - q->compute, h2d = compute - q->copy_in;
        const double at[8] = { q->start, q->enqueued, h2d, compute, compute, d2h, d2h, q->end };
        static const char *const key[8] = { "startEnqMs",     "endEnqMs",     "startH2dMs", "endH2dMs",
                                            "startComputeMs", "endComputeMs", "startD2hMs", "endD2hMs" };
        json_open(&j, NULL, '{');
        for (uint32_t k = 0; k < 8; k++) json_real(&j, key[k], 1e3 * at[k]);
        json_real(&j, "h2dMs", exec_time_of(q, EXEC_H2D));
        json_real(&j, "computeMs", exec_time_of(q, EXEC_COMPUTE));
        json_real(&j, "d2hMs", exec_time_of(q, EXEC_D2H));
        json_real(&j, "latencyMs", exec_time_of(q, EXEC_LATENCY));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    return exec_file_close(file, path);
}

/* ---- outputs ---- */

/* On the host; the caller frees `own`. False: reported. */
static bool tensor_get(const exec *e, sinter_context *c, const char *name, sinter_tensor *t, void **own)
{
    sinter_error error = { 0 };
    *own = NULL;
    sinter_status s = sinter_context_output(c, name, t, &error);
    if (s == SINTER_OK && t->place == SINTER_PLACE_DEVICE) {
        const size_t size = sinter_tensor_size(t);
        *own = cli_alloc(size, 1);
        s = sinter_engine_copy(e->m.engine, *own, SINTER_PLACE_HOST, t->data, SINTER_PLACE_DEVICE, size, &error);
        t->data = *own;
        t->place = SINTER_PLACE_HOST;
    }
    return s == SINTER_OK || cli_error(&error) == 0;
}

static int64_t count_of(const sinter_tensor *t)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++) count *= t->dim[i];
    return count;
}

/* Integers of 64 bits are exact; a number that JSON does not have is null. */
static void value_text(const sinter_tensor *t, int64_t i, bool is_json, char *out, size_t size)
{
    const double value = sinter_tensor_value(t, i);
    if (t->dtype == SINTER_DTYPE_I64) (void)snprintf(out, size, "%" PRId64, ((const int64_t *)t->data)[i]);
    else if (t->dtype == SINTER_DTYPE_U64) (void)snprintf(out, size, "%" PRIu64, ((const uint64_t *)t->data)[i]);
    else if (is_json && !isfinite(value)) (void)snprintf(out, size, "null");
    else (void)snprintf(out, size, t->dtype == SINTER_DTYPE_F64 ? "%.17g" : "%.9g", value);
}

static void output_json(json *j, const char *name, const sinter_tensor *t)
{
    char text[40];
    json_open(j, NULL, '{');
    json_text(j, "name", name);
    json_text(j, "dimensions", t->rank ? cli_shape(t->rank, t->dim).at : "");
    json_open(j, "values", '[');
    for (int64_t i = 0; i < count_of(t); i++) {
        value_text(t, i, true, text, sizeof text);
        json_raw(j, NULL, text);
    }
    json_close(j, ']');
    json_close(j, '}');
}

/* One line for each row of the last axis. */
static void output_dump(const char *name, const sinter_tensor *t)
{
    const int64_t count = count_of(t), row = t->rank && t->dim[t->rank - 1] ? t->dim[t->rank - 1] : 1;
    cli_say(LOG_INFO, "%s: (%s)", name, t->rank ? cli_shape(t->rank, t->dim).at : "");
    for (int64_t i = 0; i < count; i += row) {
        kept_text line = { 0 };
        for (int64_t k = i; k < i + row && k < count; k++) {
            char text[40];
            value_text(t, k, false, text, sizeof text);
            if (k > i) cli_write_kept(&line, " ", 1);
            cli_write_kept(&line, text, strlen(text));
        }
        cli_say(LOG_INFO, "%s", line.at ? line.at : "");
        free(line.at);
    }
}

static const char *raw_type(sinter_dtype dtype)
{
    switch (dtype) {
    case SINTER_DTYPE_F32: return "Float";
    case SINTER_DTYPE_F16: return "Half";
    case SINTER_DTYPE_BF16: return "BFloat16";
    case SINTER_DTYPE_I8: return "Int8";
    case SINTER_DTYPE_U8: return "UInt8";
    case SINTER_DTYPE_I32: return "Int32";
    case SINTER_DTYPE_I64: return "Int64";
    case SINTER_DTYPE_BOOL: return "Bool";
    case SINTER_DTYPE_I4: return "Int4";
    case SINTER_DTYPE_F8E4M3FN: return "FP8";
    default: return sinter_dtype_name(dtype);
    }
}

static bool bytes_write(const char *name, const char *path, const sinter_tensor *t)
{
    FILE *file = exec_file_open(path);
    if (!file) return false;
    (void)fwrite(t->data, 1, sinter_tensor_size(t), file);
    if (!exec_file_close(file, path)) return false;
    cli_say(LOG_INFO, "Dumped tensor %s to %s", name, path);
    return true;
}

/* NAME.ENDING, with '_' for what a file's name should not hold. */
static void safe_path(char *path, size_t size, const char *name, const char *ending)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    (void)snprintf(path, size, "%.300s.%s", name, ending);
    for (char *c = path; *c; c++)
        if (!strchr(safe, *c)) *c = '_';
    if (path[0] == '.' || path[0] == '-') path[0] = '_';
}

/* NAME.output.1.10.Float.raw */
static bool raw_write(const char *name, const char *kind, const sinter_tensor *t)
{
    char dims[256] = { 0 }, ending[300], path[640];
    for (uint32_t i = 0; i < t->rank; i++) {
        const size_t at = strlen(dims);
        (void)snprintf(dims + at, sizeof dims - at, ".%" PRId64, t->dim[i]);
    }
    (void)snprintf(ending, sizeof ending, "%s%s.%s.raw", kind, dims, raw_type(t->dtype));
    safe_path(path, sizeof path, name, ending);
    return bytes_write(name, path, t);
}

static bool raw_inputs(const model_inputs *in)
{
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < in->count; i++) is_good = raw_write(in->at[i].name, "input", &in->at[i].tensor);
    return is_good;
}

/* --saveDebugTensors: the bytes of outputs, each to a file of its own. */
static bool debug_save(const exec *e, sinter_context *c)
{
    exec_pairs files = { 0 };
    bool is_good = true;
    sinter_io io;
    for (uint32_t i = 0; is_good && i < e->x.count; i++)
        if (e->x.given[i].id == FLAG_saveDebugTensors)
            is_good = exec_pairs_read(FLAG_saveDebugTensors, e->x.given[i].value, &files);
    for (uint32_t i = 0; is_good && files.count && sinter_engine_io(e->m.engine, i, 0, &io) == SINTER_OK; i++) {
        const exec_pair *pair = io.is_input ? NULL : exec_pairs_find(&files, io.name);
        sinter_tensor t;
        void *own = NULL;
        if (!pair) continue;
        is_good = tensor_get(e, c, io.name, &t, &own) && bytes_write(io.name, pair->value, &t);
        free(own);
    }
    for (uint32_t i = 0; is_good && i < files.count; i++) {
        is_good = files.at[i].is_used;
        if (!is_good)
            cli_say(LOG_ERROR, "--saveDebugTensors: the engine has no debug tensor '%s': --markDebug",
                    files.at[i].name);
    }
    exec_pairs_free(&files);
    return is_good;
}

/* NAME.txt: one number a line. */
static bool text_write(const char *name, const char *path, const sinter_tensor *t)
{
    char text[40];
    FILE *file = exec_file_open(path);
    if (!file) return false;
    for (int64_t i = 0; i < count_of(t); i++) {
        value_text(t, i, false, text, sizeof text);
        (void)fprintf(file, "%s\n", text);
    }
    if (!exec_file_close(file, path)) return false;
    cli_say(LOG_INFO, "Dumped tensor %s to %s", name, path);
    return true;
}

/* The formats of --saveAllDebugTensors. */
enum { RAW, NUMPY, STRING, SUMMARY, FORMATS };
static const char *const format_name[FORMATS] = { "raw", "numpy", "string", "summary" };
static const char *const format_ending[FORMATS] = { "raw", "npy", "txt" };

/* The number of the format that begins at `at` and has n letters; FORMATS: there is none of that name. */
static int format_of(const char *at, size_t n)
{
    int i = 0;
    while (i < FORMATS && (strlen(format_name[i]) != n || strncmp(at, format_name[i], n) != 0)) i++;
    return i;
}

static void json_statistic(json *j, const char *key, double value)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.9g", value);
    if (isfinite(value)) json_raw(j, key, text);
    else json_text(j, key, text);
}

/* What tensor_summary.json has of a tensor: least, largest and mean value, the first and last elements, its files. */
static void summary_write(json *j, const char *name, const sinter_tensor *t, const char *formats)
{
    enum { SHOWN = 5 };
    const int64_t count = count_of(t);
    double least = HUGE_VAL, most = -HUGE_VAL, sum = 0;
    char text[40], path[640], type[24];
    kept_text elements = { 0 };
    for (int64_t i = 0; i < count; i++) {
        const double value = sinter_tensor_value(t, i);
        least = fmin(least, value);
        most = fmax(most, value);
        sum += value;
        if (i >= SHOWN && i < count - SHOWN) continue;
        value_text(t, i, false, text, sizeof text);
        if (i) cli_write_kept(&elements, ", ", 2);
        if (i == count - SHOWN && i > SHOWN) cli_write_kept(&elements, "..., ", 5);
        cli_write_kept(&elements, text, strlen(text));
    }
    (void)snprintf(type, sizeof type, "%s", t->dtype == SINTER_DTYPE_BF16 ? "BF16" : raw_type(t->dtype));
    for (char *c = type; *c; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    json_open(j, NULL, '{');
    json_text(j, "name", name);
    json_dims(j, "shape", t->rank, t->dim);
    json_text(j, "type", type);
    json_open(j, "statistics", '{');
    if (count) {
        json_statistic(j, "min", least);
        json_statistic(j, "max", most);
        json_statistic(j, "avg", sum / (double)count);
    }
    json_text(j, "elements", elements.at ? elements.at : "");
    json_close(j, '}');
    json_open(j, "files", '{');
    for (const char *at = formats; *at;) {
        const size_t n = strcspn(at, ",");
        const int format = format_of(at, n);
        if (format < SUMMARY) {
            safe_path(path, sizeof path, name, format_ending[format]);
            json_text(j, format_name[format], path);
        }
        at += n + (at[n] == ',');
    }
    json_close(j, '}');
    json_close(j, '}');
    free(elements.at);
}

/* summary: where tensor_summary.json goes, if one of the formats is that. */
static bool debug_write(const char *name, const sinter_tensor *t, const char *formats, json *summary)
{
    sinter_error error = { 0 };
    char path[640];
    for (const char *at = formats; *at;) {
        const size_t n = strcspn(at, ",");
        const int format = format_of(at, n);
        const bool is_raw = format == RAW, is_text = format == STRING, is_numpy = format == NUMPY;
        if (format == SUMMARY) summary_write(summary, name, t, formats);
        else safe_path(path, sizeof path, name, format_ending[format]);
        if (is_raw && !bytes_write(name, path, t)) return false;
        if (is_text && !text_write(name, path, t)) return false;
        if (is_numpy && sinter_tensor_write(path, t, &error) != SINTER_OK) return cli_error(&error) == 0;
        if (is_numpy) cli_say(LOG_INFO, "Dumped tensor %s to %s", name, path);
        at += n + (at[n] == ',');
    }
    return true;
}

static bool debug_save_one(const exec *e, sinter_context *c, const char *name, const char *formats, json *summary)
{
    sinter_tensor t;
    void *own = NULL;
    const bool is_good = tensor_get(e, c, name, &t, &own) && debug_write(name, &t, formats, summary);
    free(own);
    return is_good;
}

/* --saveAllDebugTensors: those of --markDebug and unfused ones. An engine does not tell them from outputs. */
static bool debug_save_all(const exec *e, sinter_context *c)
{
    static const char path[] = "tensor_summary.json";
    const char *marked = exec_text(&e->x, FLAG_markDebug), *const formats = exec_text(&e->x, FLAG_saveAllDebugTensors);
    json summary = { 0 };
    const bool is_unfused = e->m.was_built && exec_has(&e->x, FLAG_markUnfusedTensorsAsDebugTensors);
    bool is_good = *marked != 0 || is_unfused, has_summary = false;
    if (!is_good)
        cli_say(LOG_ERROR, "--saveAllDebugTensors needs --markDebug, which names the tensors, or "
                           "--markUnfusedTensorsAsDebugTensors");
    for (const char *at = formats; is_good && *at;) {
        const size_t n = strcspn(at, ",");
        const int format = format_of(at, n);
        is_good = format < FORMATS;
        has_summary = has_summary || format == SUMMARY;
        if (!is_good)
            cli_say(LOG_ERROR, "--saveAllDebugTensors: '%.*s' is refused: wanted is summary, numpy, string or raw",
                    (int)n, at);
        at += n + (at[n] == ',');
    }
    if (is_good && has_summary) {
        summary.to = exec_file_open(path);
        is_good = summary.to != NULL;
    }
    if (is_good && has_summary) {
        json_open(&summary, NULL, '{');
        json_open(&summary, "tensors", '[');
    }
    while (is_good && *marked) {
        char name[1024];
        const size_t n = strcspn(marked, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)n, marked);
        is_good = debug_save_one(e, c, name, formats, &summary);
        marked += n + (marked[n] == ',');
    }
    for (uint32_t i = 0; is_good && i < e->unfused.count; i++)
        is_good = debug_save_one(e, c, e->unfused.at[i], formats, &summary);
    if (!summary.to) return is_good;
    json_close(&summary, ']');
    json_close(&summary, '}');
    if (!exec_file_close(summary.to, path)) return false;
    if (is_good) cli_say(LOG_INFO, "Writing tensor summary to file: %s", path);
    return is_good;
}

bool exec_outputs(const exec *e, const measure_set *set)
{
    if (exec_has(&e->x, FLAG_saveAllDebugTensors) && !debug_save_all(e, measure_context(set, 0))) return false;
    if (exec_has(&e->x, FLAG_saveDebugTensors) && !debug_save(e, measure_context(set, 0))) return false;
    sinter_context *c = measure_context(set, 0);
    const exec_args *x = &e->x;
    const bool is_dumped = exec_has(x, FLAG_dumpOutput), is_raw = exec_has(x, FLAG_dumpRawBindingsToFile);
    const char *path = exec_has(x, FLAG_exportOutput) ? exec_text(x, FLAG_exportOutput) : NULL;
    sinter_io io;
    FILE *file = path ? exec_file_open(path) : NULL;
    bool is_good = !path || file;
    json j = { .to = file };
    if (!is_dumped && !is_raw && !file) return is_good;
    if (file) json_open(&j, NULL, '[');
    if (is_dumped) cli_say(LOG_INFO, "Output Tensors:");
    for (uint32_t i = 0; is_good && sinter_engine_io(e->m.engine, i, 0, &io) == SINTER_OK; i++) {
        sinter_tensor t;
        void *own = NULL;
        if (io.is_input || exec_is_mark(io.name)) continue;
        is_good = tensor_get(e, c, io.name, &t, &own);
        if (is_good && is_raw) is_good = raw_write(io.name, "output", &t);
        if (is_good) (void)exec_format_unpack(e, io.name, &t, &own);
        if (is_good && is_dumped) output_dump(io.name, &t);
        if (is_good && file) output_json(&j, io.name, &t);
        free(own);
    }
    if (file) json_close(&j, ']');
    if (file) is_good = exec_file_close(file, path) && is_good;
    return is_good && (!is_raw || (raw_inputs(&e->m.inputs) && raw_inputs(measure_inputs(set))));
}

/* ---- accuracy ---- */

typedef struct figures {
    double l0, l1, l2, most, cosine;
} figures;

static figures compare(const sinter_tensor *got, const sinter_tensor *want, double atol, double rtol)
{
    figures f = { 0 };
    const int64_t count = count_of(got);
    double dot = 0, got_square = 0, want_square = 0;
    for (int64_t i = 0; i < count; i++) {
        const double a = sinter_tensor_value(got, i), b = sinter_tensor_value(want, i);
        const bool is_same = a == b || (isnan(a) && isnan(b));
        const double difference = is_same ? 0 : fabs(a - b);
        if (!(difference <= atol + rtol * fabs(b))) f.l0 += 1.0 / (double)count;
        f.l1 += difference / (double)count;
        f.l2 += difference * difference / (double)count;
        if (!(difference <= f.most)) f.most = difference;
        dot += a * b;
        got_square += a * a;
        want_square += b * b;
    }
    f.l2 = sqrt(f.l2);
    f.cosine = got_square == 0 && want_square == 0 ? 0 : 1 - dot / sqrt(got_square * want_square);
    return f;
}

static bool output_compare(const exec *e, const char *name, const sinter_tensor *got, const char *path)
{
    const exec_args *x = &e->x;
    const double limit = exec_number(x, FLAG_accuracyThreshold, 0);
    model_input want = { .tensor = *got };
    bool is_good = exec_tensor_read(e, name, path, &want);
    if (is_good) {
        const figures f = compare(got, &want.tensor, exec_number(x, FLAG_atol, 1e-5), exec_number(x, FLAG_rtol, 1e-5));
        const double value = exec_is(x, FLAG_accuracyAlgorithm, "l0")     ? f.l0
                             : exec_is(x, FLAG_accuracyAlgorithm, "l1")   ? f.l1
                             : exec_is(x, FLAG_accuracyAlgorithm, "l2")   ? f.l2
                             : exec_is(x, FLAG_accuracyAlgorithm, "lInf") ? f.most
                                                                          : f.cosine;
        const char *algorithm = exec_has(x, FLAG_accuracyAlgorithm) ? exec_text(x, FLAG_accuracyAlgorithm) : "l0";
        is_good = value <= limit;
        cli_say(is_good ? LOG_INFO : LOG_ERROR, "Accuracy of output %s: %s = %g, threshold %g: %s", name, algorithm,
                value, limit, is_good ? "passed" : "failed");
    }
    sinter_buffer_free(&want.memory);
    free(want.own);
    free(want.name);
    return is_good;
}

bool exec_compare(const exec *e, sinter_context *c)
{
    exec_pairs files = { 0 };
    bool is_good = true, all_pass = true;
    sinter_io io;
    for (uint32_t i = 0; is_good && i < e->x.count; i++)
        if (e->x.given[i].id == FLAG_loadRefOutputs)
            is_good = exec_pairs_read(FLAG_loadRefOutputs, e->x.given[i].value, &files);
    for (uint32_t i = 0; is_good && files.count && sinter_engine_io(e->m.engine, i, 0, &io) == SINTER_OK; i++) {
        const exec_pair *pair = io.is_input ? NULL : exec_pairs_find(&files, io.name);
        sinter_tensor t;
        void *own = NULL;
        if (!pair) continue;
        is_good = tensor_get(e, c, io.name, &t, &own);
        if (is_good) (void)exec_format_unpack(e, io.name, &t, &own);
        if (is_good) all_pass = output_compare(e, io.name, &t, pair->value) && all_pass;
        free(own);
    }
    for (uint32_t i = 0; is_good && i < files.count; i++) {
        is_good = files.at[i].is_used;
        if (!is_good) cli_say(LOG_ERROR, "--loadRefOutputs: there is no output '%s'", files.at[i].name);
    }
    exec_pairs_free(&files);
    return is_good && all_pass;
}

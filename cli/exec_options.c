/* SPDX-License-Identifier: Apache-2.0 */
/* exec_options.c - what is about to be done: flags that go together, the device, and the blocks of options that
 * trtexec prints before its work. Labels and their order are trtexec's. */
#include "exec.h"

#include "json_text.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void item(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void item(const char *label, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    cli_say(LOG_INFO, "%s: %s", label, text);
}

static const char *enabled(bool is_on)
{
    return is_on ? "Enabled" : "Disabled";
}

/* ---- flags together ---- */

static bool refuse(const char *text)
{
    cli_say(LOG_ERROR, "%s", text);
    return false;
}

static bool check_devices(const exec *e)
{
    exec_pairs pairs = { 0 };
    const char *text = exec_text(&e->x, FLAG_layerDeviceTypes);
    bool is_good = !*text || exec_pairs_read(FLAG_layerDeviceTypes, text, &pairs);
    for (uint32_t i = 0; is_good && i < pairs.count; i++) {
        is_good = !strcmp(pairs.at[i].value, "GPU");
        if (!is_good)
            cli_say(LOG_ERROR,
                    "--layerDeviceTypes: '%s' of layer '%s' is refused: there is no backend for it, only GPU",
                    pairs.at[i].value, pairs.at[i].name);
    }
    exec_pairs_free(&pairs);
    return is_good;
}

static bool check_accuracy(const exec_args *x)
{
    if (exec_has(x, FLAG_loadRefOutputs) && !exec_has(x, FLAG_accuracyThreshold))
        return refuse("--loadRefOutputs needs --accuracyThreshold");
    for (exec_id id = FLAG_accuracyAlgorithm; id <= FLAG_rtol; id++)
        if (exec_has(x, id) && !exec_has(x, FLAG_loadRefOutputs)) {
            cli_say(LOG_ERROR, "--%s needs --loadRefOutputs", exec_flags[id].name);
            return false;
        }
    return true;
}

static bool check_budget(const exec_args *x)
{
    const char *text = exec_text(x, FLAG_weightStreamingBudget);
    char *end = NULL;
    if (!*text || !strcmp(text, "-1") || !strcmp(text, "-2")) return true;
    const double value = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;
    const bool is_share = end && !strcmp(end, "%") && value <= 100;
    if (is_share || (end && value < 1e18 && (!*end || (strchr("BKMG", *end) && !end[1])))) return true;
    cli_say(LOG_ERROR, "--weightStreamingBudget=%s: expected -2, -1, 0%% to 100%%, or bytes as in 512M", text);
    return false;
}

static bool check_inference(const exec_args *x)
{
    if (exec_has(x, FLAG_noDataTransfers) && exec_has(x, FLAG_includeDataTransfers))
        return refuse("--noDataTransfers and --includeDataTransfers exclude each other");
    if (exec_has(x, FLAG_useSpinWait) && exec_has(x, FLAG_noSpinWait))
        return refuse("--useSpinWait and --noSpinWait exclude each other");
    if (exec_has(x, FLAG_infStreams) && exec_has(x, FLAG_streams))
        return refuse("--streams is the old name of --infStreams");
    for (exec_id id = FLAG_infStreams; id <= FLAG_streams; id++) {
        const double n = exec_number(x, id, 1);
        if (n < 1 || n > 1024) {
            cli_say(LOG_ERROR, "--%s=%s: expected 1 to 1024", exec_flags[id].name, exec_text(x, id));
            return false;
        }
    }
    if (exec_number(x, FLAG_avgRuns, 10) < 1) return refuse("--avgRuns: expected 1 or more");
    return check_budget(x) && check_accuracy(x);
}

/* Numbers that have a largest value, even where the flag changes nothing. */
static bool check_limits(const exec_args *x)
{
    static const struct {
        exec_id id;
        double most;
    } limits[] = { { FLAG_builderOptimizationLevel, 5 },
                   { FLAG_tilingOptimizationLevel, 3 },
                   { FLAG_persistentCacheRatio, 1 } };
    for (uint32_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const exec_id id = limits[i].id;
        if (exec_number(x, id, 0) <= limits[i].most) continue;
        cli_say(LOG_ERROR, "--%s=%s: expected 0 to %g", exec_flags[id].name, exec_text(x, id), limits[i].most);
        return false;
    }
    return true;
}

/* Pairs whose values are types, of which + makes one. */
static bool check_types(exec_id id, const char *text)
{
    exec_pairs pairs = { 0 };
    bool is_good = exec_pairs_read(id, text, &pairs);
    for (uint32_t i = 0; is_good && i < pairs.count; i++) {
        const char *at = pairs.at[i].value;
        for (size_t n; is_good; at += n + 1) {
            sinter_dtype type;
            n = strcspn(at, "+");
            is_good = exec_type_read(at, n, &type);
            if (!is_good)
                cli_say(LOG_ERROR, "--%s: '%.*s' of layer '%s', expected %s", exec_flags[id].name, (int)n, at,
                        pairs.at[i].name,
                        id == FLAG_layerPrecisions ? "fp32, fp16, bf16 or int8"
                                                   : "a type: fp32, fp16, bf16, int32, int64, int8, uint8 or bool");
            if (!at[n]) break;
        }
    }
    exec_pairs_free(&pairs);
    return is_good;
}

static bool check_words(const exec_args *x)
{
    exec_pairs pairs = { 0 };
    bool is_good = true;
    for (exec_id id = FLAG_layerPrecisions; is_good && id <= FLAG_layerOutputTypes; id++)
        if (exec_has(x, id)) is_good = check_types(id, exec_text(x, id));
    if (!is_good || !exec_has(x, FLAG_tempfileControls)) return is_good;
    is_good = exec_pairs_read(FLAG_tempfileControls, exec_text(x, FLAG_tempfileControls), &pairs);
    for (uint32_t i = 0; is_good && i < pairs.count; i++) {
        const exec_pair *p = &pairs.at[i];
        is_good = (!strcmp(p->name, "in_memory") || !strcmp(p->name, "temporary")) &&
                  (!strcmp(p->value, "allow") || !strcmp(p->value, "deny"));
        if (!is_good)
            cli_say(LOG_ERROR, "--tempfileControls: '%s:%s', expected in_memory or temporary, with allow or deny",
                    p->name, p->value);
    }
    exec_pairs_free(&pairs);
    return is_good;
}

static bool check_engine(const exec_args *x)
{
    const bool has_model = exec_has(x, FLAG_onnx), has_engine = exec_has(x, FLAG_loadEngine);
    if (!has_model && !has_engine) return refuse("Model missing: --onnx=FILE or --loadEngine=FILE is needed");
    if (has_model && has_engine && !exec_has(x, FLAG_timeRefit))
        return refuse("--onnx and --loadEngine exclude each other, except for --timeRefit");
    if (exec_has(x, FLAG_getPlanVersionOnly) && !has_engine) return refuse("--getPlanVersionOnly needs --loadEngine");
    if (exec_has(x, FLAG_refitFromOnnx) && !has_engine) return refuse("--refitFromOnnx needs --loadEngine");
    if (exec_has(x, FLAG_timeRefit) && !has_model && !exec_has(x, FLAG_refitFromOnnx))
        return refuse("--timeRefit needs the weights of a model: --refitFromOnnx or --onnx");
    if (exec_has(x, FLAG_errorOnTimingCacheMiss) && !exec_has(x, FLAG_timingCacheFile))
        return refuse("--errorOnTimingCacheMiss needs --timingCacheFile");
    if (exec_has(x, FLAG_workspace) && exec_has(x, FLAG_memPoolSize) &&
        strstr(exec_text(x, FLAG_memPoolSize), "workspace"))
        return refuse("--workspace=N is --memPoolSize=workspace:N: both are given");
    return true;
}

/* Of a build alone: an engine has it, or has it not. */
static bool check_loaded(const exec_args *x)
{
    static const exec_id of_building[] = {
        FLAG_minShapes, FLAG_optShapes,    FLAG_maxShapes, FLAG_profile,         FLAG_fp16,
        FLAG_bf16,      FLAG_int8,         FLAG_best,      FLAG_stronglyTyped,   FLAG_calib,
        FLAG_refit,     FLAG_sparsity,     FLAG_heuristic, FLAG_timingCacheFile, FLAG_builderOptimizationLevel,
        FLAG_noTF32,    FLAG_maxAuxStreams
    };
    if (!exec_has(x, FLAG_loadEngine)) return true;
    for (uint32_t i = 0; i < sizeof of_building / sizeof of_building[0]; i++)
        if (exec_has(x, of_building[i]))
            cli_say(LOG_WARNING, "--%s changes nothing: --loadEngine builds no engine",
                    exec_flags[of_building[i]].name);
    return true;
}

bool exec_check(const exec *e)
{
    const exec_args *x = &e->x;
    return check_engine(x) && check_limits(x) && check_words(x) && check_inference(x) && check_loaded(x) &&
           check_devices(e);
}

bool exec_skips_inference(const exec *e)
{
    return exec_has(&e->x, FLAG_skipInference) || exec_has(&e->x, FLAG_buildOnly);
}

sinter_detail exec_detail(const exec *e)
{
    const exec_id id = exec_has(&e->x, FLAG_nvtxMode) ? FLAG_nvtxMode : FLAG_profilingVerbosity;
    if (exec_is(&e->x, id, "none")) return SINTER_DETAIL_NONE;
    return exec_is(&e->x, id, "detailed") || exec_is(&e->x, id, "verbose") ? SINTER_DETAIL_ALL : SINTER_DETAIL_NAMES;
}

double exec_percent(const char **at)
{
    char *end = NULL;
    const double value = strtod(*at, &end);
    *at = *end ? end + 1 : end;
    return value;
}

/* ---- the device ---- */

/* "NAME, sm_90, 143771 MiB, 132 multiprocessors", as `sinter doctor` says it. Empty: there is no such GPU. */
typedef struct gpu_line {
    char name[128], sm[16], memory[32], count[32];
} gpu_line;

static void part(const char **at, char *out, size_t size)
{
    const size_t n = strcspn(*at, ",\"");
    (void)snprintf(out, size, "%.*s", (int)n, *at);
    *at += n;
    while (**at == ',' || **at == ' ') (*at)++;
}

static bool gpu_find(const exec *e, int index, gpu_line *out)
{
    char key[16];
    json_value v;
    *out = (gpu_line){ 0 };
    (void)snprintf(key, sizeof key, "gpu%d", index);
    if (!e->machine.at || !json_member(json_value_of(e->machine.at), key, &v) || *v.at != '"') return false;
    const char *at = v.at + 1;
    part(&at, out->name, sizeof out->name);
    part(&at, out->sm, sizeof out->sm);
    part(&at, out->memory, sizeof out->memory);
    part(&at, out->count, sizeof out->count);
    return !strstr(out->count, "too old");
}

bool exec_device(exec *e)
{
    gpu_line gpu;
    const char *text = exec_text(&e->x, FLAG_device);
    const bool is_number = *text >= '0' && *text <= '9';
    e->gpu = -1;
    if (sinter_print_machine(SINTER_PRINT_JSON, cli_write_kept, &e->machine) != SINTER_OK)
        return refuse("out of memory");
    if (!*text || is_number) {
        const int index = is_number ? (int)strtol(text, NULL, 10) : 0;
        if (gpu_find(e, index, &gpu)) e->gpu = index;
        else if (index || gpu_find(e, 0, &gpu)) {
            cli_say(LOG_ERROR, "--device: Cannot find device with ID %d!", index);
            return false;
        } else if (is_number) {
            cli_say(LOG_WARNING, "--device=0: there is no GPU, the CPU serves");
        }
        if (e->gpu >= 0) (void)snprintf(e->device, sizeof e->device, "cuda:%d", e->gpu);
    } else {
        if (!strncmp(text, "cuda", 4) && strncmp(text, "cuda:sm_", 8) != 0)
            e->gpu = text[4] ? (int)strtol(text + 5, NULL, 10) : 0;
        (void)snprintf(e->device, sizeof e->device, "%.60s", text);
    }
    return true;
}

void exec_print_device(const exec *e)
{
    gpu_line gpu;
    json_value v;
    cli_say(LOG_INFO, "=== Device Information ===");
    cli_say(LOG_INFO, "Available Devices:");
    for (int i = 0; gpu_find(e, i, &gpu) || *gpu.name; i++) cli_say(LOG_INFO, "  Device %d: \"%s\"", i, gpu.name);
    if (e->gpu >= 0 && gpu_find(e, e->gpu, &gpu)) {
        const char *sm = gpu.sm + strcspn(gpu.sm, "0123456789");
        item("Selected Device", "%s", gpu.name);
        item("Selected Device ID", "%d", e->gpu);
        item("Compute Capability", "%.*s.%s", (int)strlen(sm) - 1, sm, *sm ? sm + strlen(sm) - 1 : "");
        item("SMs", "%d", (int)strtol(gpu.count, NULL, 10));
        item("Device Global Memory", "%s", gpu.memory);
    } else {
        const bool has_cpu = e->machine.at && json_member(json_value_of(e->machine.at), "cpu", &v) && *v.at == '"';
        item("Selected Device", "%.*s", has_cpu ? (int)strcspn(v.at + 1, "\"") : 3, has_cpu ? v.at + 1 : "CPU");
        double number = 0;
        if (e->machine.at && json_member(json_value_of(e->machine.at), "cpus", &v) && json_number(v, &number))
            item("CPUs", "%.0f", number);
        if (e->machine.at && json_member(json_value_of(e->machine.at), "memory", &v) && json_number(v, &number))
            item("Device Global Memory", "%.0f MiB", number);
    }
    cli_say(LOG_INFO, "%s", "");
    item("sinter version", "%s", sinter_version());
}

/* ---- the blocks ---- */

static void print_precision(const exec *e)
{
    const exec_args *x = &e->x;
    char text[64] = "FP32";
    const bool is_best = exec_has(x, FLAG_best), is_strict = exec_has(x, FLAG_stronglyTyped);
    if (is_strict) (void)snprintf(text, sizeof text, "Strongly Typed");
    else
        (void)snprintf(text, sizeof text, "FP32%s%s%s", is_best || exec_has(x, FLAG_fp16) ? "+FP16" : "",
                       is_best || exec_has(x, FLAG_bf16) ? "+BF16" : "",
                       is_best || exec_has(x, FLAG_int8) ? "+INT8" : "");
    const char *constraints =
        exec_is(x, FLAG_precisionConstraints, "none") ? "" : exec_text(x, FLAG_precisionConstraints);
    if (*constraints) item("Precision", "%s (%s precision constraints)", text, constraints);
    else item("Precision", "%s", text);
    if (exec_has(x, FLAG_layerPrecisions)) item("LayerPrecisions", "%s", exec_text(x, FLAG_layerPrecisions));
    if (exec_has(x, FLAG_layerOutputTypes)) item("LayerOutputTypes", "%s", exec_text(x, FLAG_layerOutputTypes));
}

static void print_shapes(const exec *e, const char *label, exec_id first, exec_id last)
{
    bool is_said = false;
    for (uint32_t i = 0; i < e->x.count; i++) {
        const exec_given *g = &e->x.given[i];
        if (g->id < first || g->id > last) continue;
        cli_say(LOG_INFO, "%s (--%s): %s", label, exec_flags[g->id].name, g->value);
        is_said = true;
    }
    if (!is_said) item(label, "model");
}

static void print_build(const exec *e)
{
    const exec_args *x = &e->x;
    const char *pools = exec_text(x, FLAG_memPoolSize);
    cli_say(LOG_INFO, "=== Build Options ===");
    if (exec_has(x, FLAG_workspace)) item("Memory Pools", "workspace: %s MiB", exec_text(x, FLAG_workspace));
    else item("Memory Pools", "%s", *pools ? pools : "workspace: default");
    item("avgTiming", "%s", exec_has(x, FLAG_avgTiming) ? exec_text(x, FLAG_avgTiming) : "8");
    print_precision(e);
    item("Calibration", "%s",
         exec_has(x, FLAG_int8) && exec_has(x, FLAG_calib)  ? exec_text(x, FLAG_calib)
         : exec_has(x, FLAG_int8) || exec_has(x, FLAG_best) ? "Dynamic"
                                                            : "");
    item("Refit", "%s", enabled(exec_has(x, FLAG_refit)));
    item("Strip weights", "%s",
         enabled(exec_has(x, FLAG_stripWeights) || exec_has(x, FLAG_stripAllWeights) || exec_has(x, FLAG_weightless)));
    item("Sparsity", "%s", exec_is(x, FLAG_sparsity, "disable") ? "Disabled" : exec_text(x, FLAG_sparsity));
    item("Safe mode", "Disabled");
    item("DirectIO mode", "%s", enabled(exec_has(x, FLAG_directIO)));
    item("Skip inference", "%s", enabled(exec_skips_inference(e)));
    item("Save engine", "%s", exec_text(x, FLAG_saveEngine));
    item("Load engine", "%s", exec_text(x, FLAG_loadEngine));
    static const char *const detail[] = { "detailed", "names", "none" };
    item("Profiling verbosity", "%s", detail[exec_detail(e)]);
    item("Tactic sources", "Using default tactic sources");
    item("timingCacheMode", "%s", exec_has(x, FLAG_timingCacheFile) ? "global" : "disable");
    item("timingCacheFile", "%s", exec_text(x, FLAG_timingCacheFile));
    item("errorOnTimingCacheMiss", "%s", enabled(exec_has(x, FLAG_errorOnTimingCacheMiss)));
    item("Enable Compilation Cache", "%s", enabled(!exec_has(x, FLAG_noCompilationCache)));
    item("MaxAuxStreams", "%s", exec_has(x, FLAG_maxAuxStreams) ? exec_text(x, FLAG_maxAuxStreams) : "-1");
    item("BuilderOptimizationLevel", "%g", exec_number(x, FLAG_builderOptimizationLevel, 3));
    item("Input(s)s format", "%s", exec_has(x, FLAG_inputIOFormats) ? exec_text(x, FLAG_inputIOFormats) : "model:chw");
    item("Output(s)s format", "%s",
         exec_has(x, FLAG_outputIOFormats) ? exec_text(x, FLAG_outputIOFormats) : "model:chw");
    print_shapes(e, "Input build shapes", FLAG_minShapes, FLAG_maxShapes);
}

static void print_inference(const exec *e)
{
    const exec_args *x = &e->x;
    const double streams = exec_number(x, exec_has(x, FLAG_streams) ? FLAG_streams : FLAG_infStreams, 1);
    cli_say(LOG_INFO, "=== Inference Options ===");
    item("Batch", "Explicit");
    print_shapes(e, "Input inference shapes", FLAG_shapes, FLAG_shapes);
    item("Iterations", "%g", exec_number(x, FLAG_iterations, 10));
    item("Duration", "%gs (+ %gms warm up)", exec_number(x, FLAG_duration, 3), exec_number(x, FLAG_warmUp, 200));
    item("Sleep time", "%gms", exec_number(x, FLAG_sleepTime, 0));
    item("Idle time", "%gms", exec_number(x, FLAG_idleTime, 0));
    item("Inference Streams", "%g", streams);
    item("ExposeDMA", "Enabled");
    item("Data transfers", "%s", enabled(!exec_has(x, FLAG_noDataTransfers)));
    item("Spin-wait", "%s", enabled(exec_has(x, FLAG_useSpinWait)));
    item("Multithreading", "%s", enabled(exec_has(x, FLAG_threads)));
    item("CUDA Graph", "%s", enabled(e->gpu >= 0));
    item("Separate profiling", "Enabled");
    item("Time Deserialize", "%s", enabled(exec_has(x, FLAG_timeDeserialize)));
    item("Time Refit", "%s", enabled(exec_has(x, FLAG_timeRefit)));
    item("Optimization Profile Index", "%g", exec_number(x, FLAG_useProfile, 0));
    cli_say(LOG_INFO, "Inputs:");
    for (uint32_t i = 0; i < x->count; i++)
        if (x->given[i].id == FLAG_loadInputs) cli_say(LOG_INFO, "%s", x->given[i].value);
}

static void print_reporting(const exec *e)
{
    const exec_args *x = &e->x;
    cli_say(LOG_INFO, "=== Reporting Options ===");
    item("Verbose", "%s", enabled(exec_has(x, FLAG_verbose)));
    item("Averages", "%g inferences", exec_number(x, FLAG_avgRuns, 10));
    item("Percentiles", "%s", exec_has(x, FLAG_percentile) ? exec_text(x, FLAG_percentile) : "90,95,99");
    item("Dump refittable layers", "%s", enabled(exec_has(x, FLAG_dumpRefit)));
    item("Dump output", "%s", enabled(exec_has(x, FLAG_dumpOutput)));
    item("Profile", "%s", enabled(exec_has(x, FLAG_dumpProfile)));
    item("Export timing to JSON file", "%s", exec_text(x, FLAG_exportTimes));
    item("Export output to JSON file", "%s", exec_text(x, FLAG_exportOutput));
    item("Export profile to JSON file", "%s", exec_text(x, FLAG_exportProfile));
    cli_say(LOG_INFO, "%s", "");
}

void exec_print_options(const exec *e)
{
    const exec_args *x = &e->x;
    cli_say(LOG_INFO, "=== Model Options ===");
    item("Format", "%s", exec_has(x, FLAG_onnx) ? "ONNX" : "*");
    item("Model", "%s", exec_text(x, FLAG_onnx));
    item("Output", "%s", "");
    print_build(e);
    cli_say(LOG_INFO, "=== System Options ===");
    item("Device", "%s", *e->device ? e->device : "cpu");
    item("DLACore", "%s", "");
    item("Plugins", "%s", exec_text(x, FLAG_plugins));
    print_inference(e);
    print_reporting(e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* exec_build.c - an engine from --onnx or --loadEngine: what the flags say, as options of the builder. */
#include "cli_plugin.h"
#include "exec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static bool fail(const sinter_error *error)
{
    return cli_error(error) == 0;
}

/* ---- options ---- */

static bool is_stripping(const exec_args *x)
{
    return exec_has(x, FLAG_stripWeights) || exec_has(x, FLAG_stripAllWeights) || exec_has(x, FLAG_weightless);
}

static uint32_t allowed(const exec *e)
{
    const exec_args *x = &e->x;
    static const exec_id flag[] = { FLAG_fp16, FLAG_bf16, FLAG_int8 };
    static const uint32_t bit[] = { SINTER_ALLOW_FP16, SINTER_ALLOW_BF16, SINTER_ALLOW_INT8 };
    uint32_t allow = 0;
    for (uint32_t i = 0; i < 3; i++) {
        if (!exec_has(x, flag[i]) && !exec_has(x, FLAG_best)) continue;
        if (exec_has(x, FLAG_stronglyTyped)) {
            if (exec_has(x, flag[i]))
                cli_say(LOG_WARNING, "--%s is disabled: --stronglyTyped keeps the types of the model",
                        exec_flags[flag[i]].name);
        } else {
            allow |= bit[i];
        }
    }
    const bool is_cuda = !strncmp(e->device, "cuda", 4);
    if (is_cuda && !exec_has(x, FLAG_noTF32) && !exec_has(x, FLAG_stronglyTyped)) allow |= SINTER_ALLOW_TF32;
    return allow;
}

static sinter_tune tune_of(const exec *e)
{
    const double level = exec_number(&e->x, FLAG_builderOptimizationLevel, 3);
    if (exec_has(&e->x, FLAG_heuristic) || level < 2 || !strcmp(e->device, "reference") ||
        !strncmp(e->device, "cuda:sm_", 8))
        return SINTER_TUNE_OFF;
    return level < 4 ? SINTER_TUNE_FAST : SINTER_TUNE_FULL;
}

/* The bytes of the pool "workspace": a size in MiB, or with B, K, M, G, KiB, MiB or GiB behind it. 0: not given.
 * False: malformed. */
static bool workspace_of(const exec *e, uint64_t *out)
{
    exec_pairs pools = { 0 };
    bool is_good = true, is_given = exec_has(&e->x, FLAG_workspace);
    double bytes = exec_number(&e->x, FLAG_workspace, 0) * 1048576;
    for (uint32_t i = 0; is_good && i < e->x.count; i++)
        if (e->x.given[i].id == FLAG_memPoolSize)
            is_good = exec_pairs_read(FLAG_memPoolSize, e->x.given[i].value, &pools);
    for (uint32_t i = 0; is_good && i < pools.count; i++) {
        static const char *const known[] = { "workspace", "dlaSRAM", "dlaLocalDRAM", "dlaGlobalDRAM",
                                             "tacticSharedMem" };
        uint32_t k = 0;
        char *end = NULL;
        const char *text = pools.at[i].value;
        while (k < 5 && strcmp(known[k], pools.at[i].name) != 0) k++;
        const double size = strtod(text, &end);
        const char *unit = end && *end ? strchr("BKMG", *end) : "M";
        const bool is_unit = end && unit && (!*end || !end[1] || (*end != 'B' && !strcmp(end + 1, "iB")));
        is_good = k < 5 && *text >= '0' && *text <= '9' && is_unit && size <= 1e15;
        if (!is_good) {
            cli_say(LOG_ERROR, "--memPoolSize: '%s:%s', expected workspace:SIZE[B|K|M|G]", pools.at[i].name, text);
        } else if (k) {
            cli_say(LOG_WARNING,
                    "--memPoolSize: %s changes nothing: there is no such memory, or it is the kernels' own", known[k]);
        } else {
            bytes = size;
            is_given = true;
            for (const char *c = "BKMG"; *c != *unit; c++) bytes *= 1024;
        }
    }
    exec_pairs_free(&pools);
    *out = !is_given ? 0 : bytes < 1 ? 1 : bytes < 1e18 ? (uint64_t)bytes : (uint64_t)1e18; /* 0 would be no limit */
    return is_good;
}

/* A library of TensorRT's own, whose plugins are operators of sinter. */
static bool is_shipped(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    static const char stem[] = "libnvinfer_plugin.so";
    if (strncmp(name, stem, sizeof stem - 1) != 0) return false;
    cli_say(LOG_INFO, "%s is not loaded: operators of sinter stand for its plugins", path);
    return true;
}

static bool plugins_open(const exec_args *x)
{
    arg_list paths = { 0 };
    for (uint32_t i = 0; i < x->count; i++) {
        const exec_id id = x->given[i].id;
        const bool is_one = id == FLAG_plugins || id == FLAG_staticPlugins || id == FLAG_dynamicPlugins;
        if (is_one && !is_shipped(x->given[i].value) && paths.count < ARG_LIST_MAX)
            paths.at[paths.count++] = x->given[i].value;
    }
    return cli_plugins_open(&paths, false);
}

static bool options_make(exec *e)
{
    const exec_args *x = &e->x;
    args *a = &e->a;
    a->verb = "exec";
    a->verb_bit = V_BUILD;
    a->build = (sinter_build_options)SINTER_BUILD_OPTIONS;
    a->load = (sinter_engine_options)SINTER_ENGINE_OPTIONS;
    a->build.device = *e->device ? e->device : NULL;
    a->build.allow = allowed(e);
    a->build.tune = tune_of(e);
    a->build.refittable = exec_has(x, FLAG_refit) || is_stripping(x);
    a->build.detail = exec_detail(e);
    a->build.cache_only = exec_has(x, FLAG_errorOnTimingCacheMiss);
    if (exec_has(x, FLAG_timingCacheFile)) a->build.timing_cache = exec_text(x, FLAG_timingCacheFile);
    if (exec_has(x, FLAG_noCompilationCache)) a->build.kernel_cache = a->load.kernel_cache = "";
    if (exec_has(x, FLAG_maxAuxStreams) && exec_number(x, FLAG_maxAuxStreams, 0) < 1)
        a->build.branches = SINTER_BRANCHES_OFF;
    if (exec_has(x, FLAG_calib) && a->build.allow & SINTER_ALLOW_INT8) a->calib = exec_text(x, FLAG_calib);
    else if (exec_has(x, FLAG_calib)) cli_say(LOG_WARNING, "--calib changes nothing without --int8 or --best");
    if (exec_has(x, FLAG_saveEngine)) a->output = exec_text(x, FLAG_saveEngine);
    if (exec_is(x, FLAG_allocationStrategy, "static")) e->m.memory = SINTER_MEMORY_STATIC;
    if (exec_is(x, FLAG_allocationStrategy, "runtime")) e->m.memory = SINTER_MEMORY_USER;
    if (exec_has(x, FLAG_onnx)) a->file.at[a->file.count++] = exec_text(x, FLAG_onnx);
    if (exec_has(x, FLAG_loadEngine)) a->file.at[a->file.count++] = exec_text(x, FLAG_loadEngine);
    a->load.trust_code = exec_has(x, FLAG_trustCode);
    if (!workspace_of(e, &a->build.workspace) || !plugins_open(x)) return false;
    if (!model_setup_make(a, &e->setup)) return false;
    if (exec_has(x, FLAG_verbose)) e->setup.env.log_topics = "all";
    return true;
}

/* ---- what is said of files ---- */

/* --inputIOFormats: the type of each input, in its order; one for all. */
static bool types_check(const exec *e, exec_id id, bool is_input)
{
    const char *text = exec_text(&e->x, id), *at = text;
    sinter_io io;
    uint32_t ios = 0;
    for (uint32_t i = 0; *text && sinter_engine_io(e->m.engine, i, 0, &io) == SINTER_OK; i++) {
        if ((io.is_input != 0) != is_input || exec_is_mark(io.name)) continue;
        const size_t n = strcspn(at, ":");
        sinter_dtype type;
        if (!exec_type_read(at, n, &type)) {
            cli_say(LOG_ERROR,
                    "--%s: '%.*s' of '%s', expected fp32, fp16, bf16, int32, int64, int8, uint8, bool or fp8",
                    exec_flags[id].name, (int)n, at, io.name);
            return false;
        }
        if (type != io.dtype) {
            cli_say(LOG_ERROR, "--%s: '%.*s' is refused: '%s' has type %s in the model, and keeps it",
                    exec_flags[id].name, (int)n, at, io.name, sinter_dtype_name(io.dtype));
            return false;
        }
        ios++;
        if (strchr(text, ',')) at += strcspn(at, ",") + (strchr(at, ',') != NULL);
    }
    uint32_t given = 1;
    for (const char *c = text; *c; c++) given += *c == ',';
    if (!*text || given == 1 || given == ios) return true;
    cli_say(LOG_ERROR, "--%s has %u entries, expected one, or %u", exec_flags[id].name, given, ios);
    return false;
}

/* ---- engines ---- */

/* Where the engine is to be loaded. NULL: the engine knows its kind, and the first device of the kind serves. */
static const char *device_to_load(const exec *e)
{
    const char *text = exec_text(&e->x, FLAG_device);
    if (exec_has(&e->x, FLAG_loadEngine)) return e->gpu > 0 || !strcmp(text, "cpu") ? e->device : NULL;
    return e->gpu >= 0 ? e->device : NULL;
}

/* --weightStreamingBudget: -2 none, -1 chosen here, a share of the weights, or bytes. */
static bool budget_set(const exec *e)
{
    const char *text = exec_text(&e->x, FLAG_weightStreamingBudget);
    sinter_engine_info info = SINTER_ENGINE_INFO;
    sinter_error error = { 0 };
    uint64_t budget = 0;
    char *end = NULL;
    if (!*text || !strcmp(text, "-2") || exec_skips_inference(e) || exec_has(&e->x, FLAG_getPlanVersionOnly))
        return true;
    if (sinter_engine_describe(e->m.engine, &info, &error) != SINTER_OK) return fail(&error);
    if (!info.streamable_size) {
        cli_say(LOG_WARNING, "--weightStreamingBudget changes nothing: the engine has no weights in a GPU's memory");
        return true;
    }
    if (!strcmp(text, "-1")) {
        if (sinter_engine_automatic_weight_budget(e->m.engine, &budget, &error) != SINTER_OK) return fail(&error);
    } else {
        double bytes = strtod(text, &end);
        if (*end == '%') bytes *= (double)info.streamable_size / 100;
        else
            for (const char *c = "BKMG"; *end && *c != *end; c++) bytes *= 1024;
        budget = bytes < 1 ? 1 : bytes < (double)info.streamable_size ? (uint64_t)bytes : info.streamable_size;
    }
    if (sinter_engine_set_weight_budget(e->m.engine, budget, &error) != SINTER_OK) return fail(&error);
    cli_say(LOG_INFO, "Weight streaming budget: %.3f of %.3f MiB", (double)budget / 1048576,
            (double)info.streamable_size / 1048576);
    return true;
}

static bool engine_open(exec *e, const sinter_buffer *bytes, const char *path, bool is_own)
{
    sinter_error error = { 0 };
    sinter_engine_options options = e->setup.load;
    options.device = device_to_load(e);
    options.trust_code = options.trust_code || is_own;
    options.no_device = exec_skips_inference(e) || exec_has(&e->x, FLAG_getPlanVersionOnly);
    if (options.no_device) options.device = NULL;
    const double start = cli_seconds();
    const sinter_status s = bytes ? sinter_engine_load_memory(bytes->data, bytes->size, &options, &e->m.engine, &error)
                                  : sinter_engine_load(path, &options, &e->m.engine, &error);
    e->m.open_s = cli_seconds() - start;
    if (s != SINTER_OK) return fail(&error);
    cli_say(LOG_INFO, "Engine deserialized in %g sec.", e->m.open_s);
    exec_layouts_read(e);
    if (!budget_set(e)) return false;
    if (strcmp(sinter_engine_device(e->m.engine), "cuda") != 0) {
        if (e->gpu >= 0 && exec_has(&e->x, FLAG_device))
            cli_say(LOG_WARNING, "--device=%s changes nothing: the engine is for the CPU",
                    exec_text(&e->x, FLAG_device));
        e->gpu = -1;
    }
    return true;
}

static void say_report(const exec *e)
{
    const sinter_build_report *r = &e->setup.report;
    const char *at = r->lowered;
    cli_say(LOG_INFO, "Finished parsing network model. Parse time: %g", r->import_s);
    while (*at) {
        const size_t n = strcspn(at, "\n");
        cli_say(LOG_INFO, "%.*s", (int)n, at);
        at += n + (at[n] == '\n');
    }
    cli_say(LOG_VERBOSE,
            "import %.3f s, optimise %.3f, budget of errors %.3f, compile %.3f, measure %.3f, plan %.3f, pack "
            "%.3f, write %.3f",
            r->import_s, r->optimise_s, r->budget_s, r->compile_s, r->measure_s, r->plan_s, r->pack_s, r->write_s);
}

/* The engine without its weights. */
static bool strip(exec *e, const sinter_buffer *bytes)
{
    sinter_error error = { 0 };
    sinter_engine *engine = NULL;
    sinter_engine_options options = e->setup.load;
    sinter_buffer stripped = { 0 };
    options.no_device = 1;
    sinter_status s = sinter_engine_load_memory(bytes->data, bytes->size, &options, &engine, &error);
    if (s == SINTER_OK) s = sinter_engine_strip(engine, &stripped, &error);
    if (s == SINTER_OK) s = sinter_buffer_save(&stripped, e->a.output, &error);
    if (s == SINTER_OK)
        cli_say(LOG_INFO, "Saved the engine without its weights: %.3f MiB", (double)stripped.size / 1048576);
    sinter_buffer_free(&stripped);
    sinter_engine_release(engine);
    return s == SINTER_OK || fail(&error);
}

/* A first build, whose engine tells what it keeps between its steps. */
static bool unfused_find(exec *e)
{
    sinter_buffer bytes = { 0 };
    sinter_error error = { 0 };
    sinter_engine *engine = NULL;
    sinter_engine_options options = e->setup.load;
    options.no_device = 1;
    bool is_good = model_build(&e->a, &e->setup, NULL, NULL, &bytes, &e->m.build_s);
    if (is_good && sinter_engine_load_memory(bytes.data, bytes.size, &options, &engine, &error) != SINTER_OK)
        is_good = fail(&error);
    is_good = is_good && exec_unfused_mark(e, engine);
    sinter_engine_release(engine);
    sinter_buffer_free(&bytes);
    return is_good;
}

/* Straight into the file where nothing has to be looked at before; else `bytes` has the engine. */
static bool build(exec *e, bool is_saved, sinter_buffer *bytes)
{
    sinter_error error = { 0 };
    model_face face = { 0 };
    if (e->a.output && !outputs_check_engine(&e->a)) return false;
    if (!e->a.output && !outputs_check_cache(&e->a)) return false;
    cli_say(LOG_INFO, "Start parsing network model.");
    bool is_good = model_face_read(e->a.file.at[0], &e->setup.env, &face, &error) == SINTER_OK;
    if (!is_good) cli_say(LOG_ERROR, "%s", error.text), cli_say(LOG_ERROR, "Failed to parse onnx file");
    is_good = is_good && exec_network_make(e) && exec_profiles_make(e, &face);
    const char *to = is_saved ? e->a.output : NULL;
    const bool is_twice = exec_has(&e->x, FLAG_markUnfusedTensorsAsDebugTensors);
    if (is_good && ((is_twice && !unfused_find(e)) || !model_build(&e->a, &e->setup, NULL, to, bytes, &e->m.build_s))) {
        cli_say(LOG_ERROR, "Engine could not be created from network");
        is_good = false;
    }
    if (is_good) {
        e->m.was_built = true;
        e->m.size = bytes->size;
        say_report(e);
        cli_say(LOG_INFO, "Engine built in %g sec.", e->m.build_s);
        cli_say(LOG_INFO, "Created engine with size: %g MiB", (double)bytes->size / 1048576);
    }
    is_good = is_good && engine_open(e, is_saved ? NULL : bytes, to, true);
    model_face_free(&face);
    return is_good;
}

/* What was built into memory, once it has passed the checks. */
static bool save(exec *e, const sinter_buffer *bytes)
{
    sinter_error error = { 0 };
    if (!e->a.output || !bytes->data) return true;
    if (is_stripping(&e->x)) return strip(e, bytes);
    return sinter_buffer_save(bytes, e->a.output, &error) == SINTER_OK || fail(&error);
}

static bool refit(exec *e)
{
    sinter_error error = { 0 };
    sinter_buffer bytes = { 0 };
    const char *path = exec_text(&e->x, exec_has(&e->x, FLAG_refitFromOnnx) ? FLAG_refitFromOnnx : FLAG_onnx);
    const double start = cli_seconds();
    if (sinter_engine_refit_file(e->m.engine, path, &bytes, &error) != SINTER_OK) return fail(&error);
    sinter_engine_release(e->m.engine);
    e->m.engine = NULL;
    const bool is_good = engine_open(e, &bytes, NULL, false);
    if (is_good) cli_say(LOG_INFO, "Engine refitted in %g ms.", 1e3 * (cli_seconds() - start));
    sinter_buffer_free(&bytes);
    return is_good;
}

static void say_memory(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) == 0)
        cli_say(LOG_INFO, "Peak memory of the process: %.1f MiB", (double)used.ru_maxrss / 1024);
}

static bool engine_check(exec *e)
{
    sinter_error error = { 0 };
    if (sinter_engine_print(e->m.engine, SINTER_PRINT_JSON, cli_write_kept, &e->report, &error) != SINTER_OK)
        return fail(&error);
    return types_check(e, FLAG_inputIOFormats, true) && types_check(e, FLAG_outputIOFormats, false);
}

bool exec_engine_make(exec *e)
{
    const exec_args *x = &e->x;
    sinter_buffer bytes = { 0 };
    if (!options_make(e)) return false;
    const bool is_checked = exec_has(x, FLAG_inputIOFormats) || exec_has(x, FLAG_outputIOFormats);
    const bool is_saved = e->a.output && !is_stripping(x) && !is_checked;
    const char *path = exec_text(x, FLAG_loadEngine);
    bool is_good = exec_has(x, FLAG_loadEngine) ? engine_open(e, NULL, path, false) : build(e, is_saved, &bytes);
    is_good = is_good && engine_check(e) && save(e, &bytes);
    sinter_buffer_free(&bytes);
    if (is_good && exec_has(x, FLAG_monitorMemory)) say_memory();
    const bool is_refitted = exec_has(x, FLAG_refitFromOnnx) || exec_has(x, FLAG_timeRefit);
    return is_good && (!is_refitted || refit(e));
}

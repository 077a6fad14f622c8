/* SPDX-License-Identifier: Apache-2.0 */
/* cli_model.c - options into build options, files into engines, engines into contexts that are ready to run. */
#include "cli_model.h"
#include "cli_plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool model_is_engine(const char *path)
{
    static const char magic[8] = { '\x89', 'S', 'I', 'N', 'T', 'E', 'R', '\n' };
    char first[8] = { 0 };
    FILE *file = fopen(path, "rbe");
    if (!file) return false;
    const bool is_engine = fread(first, 1, sizeof first, file) == sizeof first && !memcmp(first, magic, sizeof magic);
    (void)fclose(file);
    return is_engine;
}

/* ---- inputs and outputs of a model ---- */

static int face_add(void *user, const sinter_model_io *io)
{
    model_face *f = user;
    f->at = cli_grow(f->at, f->count + 1, sizeof *f->at);
    model_io *m = &f->at[f->count++];
    *m = (model_io){ .name = cli_copy(io->name), .io = *io };
    m->io.name = m->name;
    for (uint32_t i = 0; i < SINTER_RANK_MAX; i++) {
        m->io.dim_name[i] = NULL;
        m->usual[i] = 1;
        if (i >= io->rank || !io->dim_name[i]) continue;
        m->io.dim_name[i] = m->dim_name[i] = cli_copy(io->dim_name[i]);
    }
    f->inputs += io->is_input ? 1 : 0;
    return 0;
}

sinter_status model_face_read(const char *path, const sinter_env_options *env, model_face *out, sinter_error *error)
{
    *out = (model_face){ 0 };
    return sinter_model_inputs(path, env, face_add, out, error);
}

void model_face_free(model_face *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        free(f->at[i].name);
        for (uint32_t k = 0; k < SINTER_RANK_MAX; k++) free(f->at[i].dim_name[k]);
    }
    free(f->at);
    *f = (model_face){ 0 };
}

/* ---- inputs given as files ---- */

bool model_npz_read(const char *path, const char *name, const sinter_env_options *env, model_inputs *out)
{
    sinter_error error = { 0 };
    sinter_buffer memory;
    const sinter_named_tensor *list;
    uint32_t count, first = 0;
    if (sinter_npz_read(path, env, &list, &count, &memory, &error) != SINTER_OK) return cli_error(&error) == 0;
    while (name && first < count && strcmp(list[first].name, name) != 0) first++;
    if (name && first == count && count == 1) first = 0;
    const uint32_t end = name && first < count ? first + 1 : count;
    if (first == end) sinter_buffer_free(&memory);
    if (name && first == end) return cli_fail("'%s' has %u arrays, and none is called '%s'", path, count, name) == 0;
    out->at = cli_grow(out->at, (size_t)out->count + end - first, sizeof *out->at);
    for (uint32_t i = first; i < end; i++) {
        /* The first one owns the memory of all. */
        out->at[out->count++] = (model_input){ .name = cli_copy(name ? name : list[i].name),
                                               .tensor = list[i].tensor,
                                               .memory = i == first ? memory : (sinter_buffer){ 0 } };
    }
    return true;
}

bool model_inputs_read(const arg_list *list, const sinter_env_options *env, model_inputs *out)
{
    bool is_good = true;
    for (uint32_t i = 0; i < list->count && is_good; i++) {
        char *name = cli_copy(list->at[i]), *equals = strrchr(name, '=');
        sinter_error error = { 0 };
        if (equals) *equals = 0;
        const char *path = equals ? equals + 1 : name;
        if (args_is_npz(path)) {
            is_good = model_npz_read(path, equals ? name : NULL, env, out);
            free(name);
            continue;
        }
        out->at = cli_grow(out->at, (size_t)out->count + 1, sizeof *out->at);
        model_input *in = &out->at[out->count++];
        *in = (model_input){ .name = name };
        is_good =
            sinter_tensor_read(path, env, &in->tensor, &in->memory, &error) == SINTER_OK || cli_error(&error) == 0;
    }
    return is_good;
}

void model_inputs_free(model_inputs *in)
{
    for (uint32_t i = 0; i < in->count; i++) {
        free(in->at[i].name);
        sinter_buffer_free(&in->at[i].memory);
        free(in->at[i].own);
    }
    free(in->at);
    *in = (model_inputs){ 0 };
}

const model_input *model_inputs_find(const model_inputs *in, const char *name)
{
    for (uint32_t i = 0; i < in->count; i++) {
        if (!strcmp(in->at[i].name, name)) return &in->at[i];
    }
    return NULL;
}

/* ---- options ---- */

static void log_line(void *user, const char *topic, const char *line)
{
    (void)user;
    cli_say(LOG_VERBOSE, "%s: %s", topic, line);
}

static int on_progress(void *user, const char *phase, double done)
{
    progress_show(user, phase, done);
    return build_is_interrupted();
}

/* Devices on which nothing is loaded. */
static bool is_of_building(const char *device)
{
    return device && (!strcmp(device, "reference") || !strncmp(device, "cuda:sm_", 8));
}

/* What only a build can honour is refused where the file is an engine. */
static bool engine_takes(const args *a, const sinter_build_options *build)
{
    if (a->verb_bit == V_BUILD || a->verb_bit == V_TEST || !a->file.count || !model_is_engine(a->file.at[0]))
        return true;
    const char *wrong = a->building                                  ? a->building
                        : is_of_building(build->device)              ? "device"
                        : a->verb_bit == V_INSPECT && a->shape.count ? "shape"
                                                                     : NULL;
    if (!wrong) return true;
    const char *value = strcmp(wrong, "device") != 0 ? "" : build->device;
    return cli_fail("--%s%s%s goes with a model: '%s' is an engine", wrong, *value ? " " : "", value, a->file.at[0]) ==
           0;
}

bool model_setup_make(const args *a, model_setup *out)
{
    *out = (model_setup){ .env = SINTER_ENV_OPTIONS, .limits = a->limit, .build = a->build, .load = a->load };
    if (!engine_takes(a, &out->build)) return false;
    out->env.log = log_line;
    out->env.limits = &out->limits;
    if (a->log_level && !strcmp(a->log_level, "verbose")) out->env.log_topics = "all";
    out->env.plugins = cli_plugins();
    out->report = (sinter_build_report)SINTER_BUILD_REPORT;
    out->build.env = out->load.env = &out->env;
    out->build.report = &out->report;
    out->build.progress = on_progress;
    out->build.user = &out->bar;
    if (is_of_building(out->load.device)) out->load.device = NULL;
    progress_begin(&out->bar);
    return true;
}

/* ---- engines ---- */

/* The model's file, or the network that was made of it. */
static sinter_status build_made(const char *path, const model_setup *setup, const char *engine, sinter_buffer *out,
                                sinter_error *error)
{
    if (!setup->network) return build_interruptible(path, &setup->build, engine, out, error);
    sinter_status s = sinter_network_build(setup->network, &setup->build, out, error);
    if (s == SINTER_OK && engine) {
        s = sinter_buffer_save(out, engine, error);
        sinter_buffer_free(out);
    }
    return s;
}

bool model_build(const args *a, model_setup *setup, const model_inputs *given, const char *engine, sinter_buffer *out,
                 double *seconds)
{
    model_given g;
    sinter_error error = { 0 };
    bool is_good = model_given_make(a, setup, given, &g);
    if (is_good) {
        if ((setup->build.allow & SINTER_ALLOW_INT8) && !setup->build.sample_count && !setup->build.calibration)
            cli_say(LOG_INFO, "8 bits hold what seeded inputs need, which may be far from yours: --data, --calib");
        const double start = cli_seconds();
        is_good = build_made(a->file.at[0], setup, engine, out, &error) == SINTER_OK;
        *seconds = cli_seconds() - start;
        progress_end(&setup->bar);
        if (!is_good) (void)cli_error(&error);
        if (*setup->report.cache_warning) cli_say(LOG_WARNING, "%s", setup->report.cache_warning);
    }
    model_given_free(&g, setup);
    return is_good;
}

void model_report_print(const sinter_build_report *r, FILE *to)
{
    (void)fprintf(to, "  import %.2f s, optimise %.2f", r->import_s, r->optimise_s);
    if (r->budget_s > 0) (void)fprintf(to, ", budget of errors %.2f", r->budget_s);
    if (r->compile_s > 0) (void)fprintf(to, ", compile %.2f", r->compile_s);
    if (r->measured) (void)fprintf(to, ", measure %.2f (%u tactics)", r->measure_s, r->measured);
    (void)fprintf(to, ", plan %.2f, pack %.2f, write %.2f\n", r->plan_s, r->pack_s, r->write_s);
    for (const char *at = r->lowered; *at; at += strspn(at, "\n")) {
        const size_t length = strcspn(at, "\n");
        (void)fprintf(to, "  %.*s\n", (int)length, at);
        at += length;
    }
    /* A steady clock is no news. */
    if (r->clock_repeats || r->was_throttled)
        (void)fprintf(to, "  the device's clock varied from %u to %u MHz%s: %u batches were measured again%s\n",
                      r->clock_low, r->clock_high, r->was_throttled ? " (throttled)" : "", r->clock_repeats,
                      r->clock_doubtful ? ", some at a low clock all the same" : "");
}

void model_report_json(const sinter_build_report *r, json *j)
{
    json_real(j, "import_ms", 1e3 * r->import_s);
    json_real(j, "optimise_ms", 1e3 * r->optimise_s);
    json_real(j, "budget_ms", 1e3 * r->budget_s);
    json_real(j, "compile_ms", 1e3 * r->compile_s);
    json_real(j, "measure_ms", 1e3 * r->measure_s);
    json_real(j, "plan_ms", 1e3 * r->plan_s);
    json_real(j, "pack_ms", 1e3 * r->pack_s);
    json_real(j, "write_ms", 1e3 * r->write_s);
    json_count(j, "measured", r->measured);
    json_text(j, "lowered", r->lowered);
    json_count(j, "clock_low_mhz", r->clock_low);
    json_count(j, "clock_high_mhz", r->clock_high);
    json_count(j, "clock_repeats", r->clock_repeats);
    json_count(j, "clock_doubtful", r->clock_doubtful);
    json_text(j, "cache_warning", *r->cache_warning ? r->cache_warning : NULL);
}

bool model_engine_open(const args *a, model_setup *setup, model_engine *out)
{
    return model_engine_open_given(a, setup, NULL, out);
}

/* What is not given is read from the files of --input. */
static bool inputs_make(const args *a, const model_setup *setup, const model_inputs *given, model_engine *out)
{
    if (!given) return model_inputs_read(&a->input, &setup->env, &out->inputs);
    out->is_given = true;
    out->inputs = (model_inputs){ .at = cli_alloc(given->count, sizeof *given->at), .count = given->count };
    if (given->count) memcpy(out->inputs.at, given->at, given->count * sizeof *given->at);
    return true;
}

bool model_engine_open_given(const args *a, model_setup *setup, const model_inputs *given, model_engine *out)
{
    *out = (model_engine){ 0 };
    if (!inputs_make(a, setup, given, out)) return false;
    const char *path = a->file.at[0];
    sinter_engine_options options = setup->load;
    sinter_error error = { 0 };
    sinter_status s = SINTER_OK;
    if (!model_is_engine(path) && !outputs_check_cache(a)) return false;
    if (model_is_engine(path)) {
        FILE *file = fopen(path, "rbe");
        if (file && fseek(file, 0, SEEK_END) == 0) out->size = (size_t)ftell(file);
        if (file) (void)fclose(file);
        const double start = cli_seconds();
        s = sinter_engine_load(path, &options, &out->engine, &error);
        out->open_s = cli_seconds() - start;
    } else {
        sinter_buffer bytes = { 0 };
        if (!given && !model_inputs_read(&a->value, &setup->env, &out->inputs))
            return false; /* runs must hold what is promised */
        if (!model_build(a, setup, a->input.count || given ? &out->inputs : NULL, NULL, &bytes, &out->build_s))
            return false;
        out->was_built = true;
        options.trust_code = 1; /* it is our own */
        out->size = bytes.size;
        const double start = cli_seconds();
        s = sinter_engine_load_memory(bytes.data, bytes.size, &options, &out->engine, &error);
        out->open_s = cli_seconds() - start;
        sinter_buffer_free(&bytes);
    }
    if (s != SINTER_OK) (void)cli_error(&error);
    return s == SINTER_OK;
}

void model_engine_close(model_engine *m)
{
    sinter_engine_release(m->engine);
    if (m->is_given) free(m->inputs.at);
    else model_inputs_free(&m->inputs);
    free(m->shape);
    *m = (model_engine){ 0 };
}

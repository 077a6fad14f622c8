/* SPDX-License-Identifier: Apache-2.0 */
/* api_build.c - sinter/build.h: arguments are checked here, the work is in build/. */
#include "sinter/build.h"

#include "api/handle.h"
#include "api/model_file.h"
#include "base/options.h"
#include "base/os.h"
#include "builder/builder.h"
#include "engine/format.h"
#include "network/network.h"
#include "onnx/import.h"
#include "base/name_map.h"

#include <string.h>

static sinter_status begin(env *e, const sinter_build_options *from, sinter_build_options *o, sinter_buffer *out,
                           sinter_error *error)
{
    env_init(e, NULL, error);
    *o = (sinter_build_options)SINTER_BUILD_OPTIONS;
    if (!out) return FAIL(e, INVALID_ARG, "out is NULL");
    *out = (sinter_buffer){ 0 };
    TRY(api_options(e, o, sizeof *o, from));
    env_init(e, o->env, error);
    TRY(env_check(e));
    TRY(options_check(e, build_option_rows, o));
    if ((o->allow & SINTER_ALLOW_INT8) && o->math == SINTER_MATH_EXACT)
        return FAIL(e, INVALID_ARG, "math is exact and int8 is allowed: exact products cannot be of 8 bits");
    if (o->calibration && !(o->allow & SINTER_ALLOW_INT8))
        return FAIL(e, INVALID_ARG, "a calibration is given and int8 is not allowed");
    if (o->sample_count && !o->sample) return FAIL(e, INVALID_ARG, "%u samples at NULL", o->sample_count);
    if (o->replaceable_count && !o->replaceable)
        return FAIL(e, INVALID_ARG, "%u names of weights at NULL", o->replaceable_count);
    for (uint32_t i = 0; i < o->replaceable_count; i++)
        if (!o->replaceable[i]) return FAIL(e, INVALID_ARG, "the name of weight %u is NULL", i);
    if (o->value_count && !o->value) return FAIL(e, INVALID_ARG, "%u values of inputs at NULL", o->value_count);
    if (o->report && o->report->struct_size < sizeof o->report->struct_size)
        return FAIL(e, INVALID_ARG, "the report's struct_size is %zu: start with SINTER_BUILD_REPORT",
                    o->report->struct_size);
    if (o->profile_count && !o->profile) return FAIL(e, INVALID_ARG, "%u profiles at NULL", o->profile_count);
    return SINTER_OK;
}

static sinter_status finish(env *e, sinter_status s, const build_output *got, sinter_buffer *out)
{
    if (s == SINTER_OK) *out = (sinter_buffer){ .data = got->bytes, .size = got->size, .allocator = e->alloc };
    return s;
}

sinter_status sinter_build_memory(const void *model, size_t size, const sinter_build_options *options,
                                  sinter_buffer *out, sinter_error *error)
{
    env e;
    sinter_build_options o;
    TRY(begin(&e, options, &o, out, error));
    env_budget budget = { 0 };
    e.budget = &budget;
    if (!model) return FAIL(&e, INVALID_ARG, "model is NULL");
    build_output got = { 0 };
    const build_model m = { .bytes = model, .size = size, .name = "" };
    const sinter_status s = build_engine(&e, &m, &o, &got);
    return finish(&e, s, &got, out);
}

sinter_status sinter_network_build(sinter_network *network, const sinter_build_options *options, sinter_buffer *out,
                                   sinter_error *error)
{
    env e;
    sinter_build_options o;
    TRY(begin(&e, options, &o, out, error));
    env_budget budget = { 0 };
    e.budget = &budget;
    if (!network) return FAIL(&e, INVALID_ARG, "network is NULL");
    if (network->is_strongly_typed && o.allow & ~(uint32_t)SINTER_ALLOW_TF32)
        return FAIL(&e, INVALID_ARG, "the network is strongly typed, and options.allow permits narrower types");
    if (!e.plugins) e.plugins = network->e.plugins;
    build_output got = { 0 };
    const build_model m = { .name = network->name, .network = network };
    const sinter_status s = build_engine(&e, &m, &o, &got);
    return finish(&e, s, &got, out);
}

sinter_status api_model_file(env *e, const char *path, sinter_status (*use)(void *user, const build_model *m),
                             void *user)
{
    os_file file = { 0 };
    if (!path) return FAIL(e, INVALID_ARG, "path is NULL");
    TRY(os_file_map(e, path, &file));
    const char *slash = strrchr(path, '/');
    const size_t length = !slash || slash == path ? 1 : (size_t)(slash - path);
    char *folder = mem_zalloc(e, length + 1, 1);
    if (folder) memcpy(folder, slash ? path : ".", length);
    const build_model m = {
        .bytes = file.data, .size = file.size, .folder = folder, .name = slash ? slash + 1 : path, .is_mapped = true
    };
    const sinter_status s = folder ? use(user, &m) : FAIL_MEMORY(e, "a path");
    if (folder) mem_free(e, folder, length + 1, 1);
    os_file_close(e, &file);
    return s;
}

typedef struct to_build {
    env *e;
    const sinter_build_options *o;
    build_output *out;
} to_build;

static sinter_status build_mapped(void *user, const build_model *m)
{
    const to_build *t = user;
    return build_engine(t->e, m, t->o, t->out);
}

static sinter_status build_path(env *e, const char *path, const sinter_build_options *o, build_output *out)
{
    to_build t = { e, o, out };
    return NOTE(e, api_model_file(e, path, build_mapped, &t), "building '%s'", path ? path : "");
}

sinter_status sinter_build_file(const char *path, const sinter_build_options *options, sinter_buffer *out,
                                sinter_error *error)
{
    env e;
    sinter_build_options o;
    TRY(begin(&e, options, &o, out, error));
    env_budget budget = { 0 };
    e.budget = &budget;
    build_output got = { 0 };
    const sinter_status s = build_path(&e, path, &o, &got);
    return finish(&e, s, &got, out);
}

sinter_status sinter_build_save(const char *path, const sinter_build_options *options, const char *engine,
                                uint64_t *size, sinter_error *error)
{
    env e;
    sinter_build_options o;
    sinter_buffer unused;
    build_output got = { 0 };
    if (size) *size = 0;
    TRY(begin(&e, options, &o, &unused, error));
    env_budget budget = { 0 };
    e.budget = &budget;
    if (!engine) return FAIL(&e, INVALID_ARG, "engine is NULL");
    const os_file_kind *kind = &api_file_kind[SINTER_FILE_ENGINE];
    TRY(os_output_open(&e, engine, kind, &got.file));
    sinter_status s = build_path(&e, path, &o, &got);
    if (s == SINTER_OK)
        s = got.file ? os_output_done(&e, got.file) : os_file_write(&e, engine, kind, got.bytes, got.size);
    if (s == SINTER_OK && size) *size = got.size;
    if (got.bytes) mem_free(&e, got.bytes, got.size, ENGINE_ALIGN);
    os_output_close(&e, got.file);
    return s;
}

/* ---- interface of a model ---- */

static bool visit_one(const onnx_value_info *v, bool is_input, int (*visit)(void *, const sinter_model_io *),
                      void *user)
{
    sinter_model_io io = { .name = v->name,
                           .is_input = is_input,
                           .part = (sinter_part)v->part,
                           .rank = v->rank < SINTER_RANK_MAX ? v->rank : SINTER_RANK_MAX };
    if (!onnx_dtype_of(v->type, &io.dtype)) io.dtype = SINTER_DTYPE_NONE;
    for (uint32_t k = 0; k < io.rank; k++) {
        io.dim[k] = v->dim[k].has_value ? v->dim[k].value : -1;
        if (onnx_dim_is_named(&v->dim[k])) io.dim_name[k] = v->dim[k].param;
    }
    return visit(user, &io) == 0;
}

sinter_status sinter_model_inputs(const char *path, const sinter_env_options *options,
                                  int (*visit)(void *user, const sinter_model_io *io), void *user, sinter_error *error)
{
    env e;
    env_init(&e, options, error);
    TRY(env_check(&e));
    if (!path || !visit) return FAIL(&e, INVALID_ARG, "%s is NULL", path ? "visit" : "path");
    os_file file = { 0 };
    TRY(os_file_map(&e, path, &file));
    arena a;
    arena_init(&a, &e);
    onnx_model m = { 0 };
    sinter_status s = NOTE(&e, onnx_model_read(&e, &a, file.data, file.size, &m), "reading '%s'", path);
    name_map initialized = { .a = &a };
    if (s == SINTER_OK && !onnx_graph_initialized(&m.graph, &initialized)) s = FAIL_MEMORY(&e, "names");
    bool more = s == SINTER_OK;
    for (uint32_t i = 0; more && i < m.graph.in.count; i++)
        if (!name_map_find(&initialized, m.graph.in.at[i].name)) more = visit_one(&m.graph.in.at[i], true, visit, user);
    for (uint32_t i = 0; more && i < m.graph.out.count; i++) more = visit_one(&m.graph.out.at[i], false, visit, user);
    arena_deinit(&a);
    os_file_close(&e, &file);
    return s;
}

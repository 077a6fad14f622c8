/* SPDX-License-Identifier: Apache-2.0 */
/* api_calibrate.c - sinter/calibrate.h: arguments are checked here, the work is in builder/. */
#include "api/handle.h"
#include "api/model_file.h"
#include "base/options.h"
#include "builder/builder.h"
#include "builder/calibration.h"
#include "engine/format.h"
#include "network/network.h"

/* ---- the ranges ---- */

/* The calibration's env, which reports to the caller's `error` during one call. */
static env env_of(const sinter_calibration *c, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    e.alloc = c->e.alloc;
    e.limits = c->e.limits;
    return e;
}

static sinter_status env_make(env *e, const sinter_env_options *options, sinter_calibration **out, sinter_error *error)
{
    env_init(e, NULL, error);
    if (!out) return FAIL(e, INVALID_ARG, "out is NULL");
    *out = NULL;
    env_init(e, options, error);
    return env_check(e);
}

sinter_status sinter_calibration_create(const sinter_env_options *options, sinter_calibration **out,
                                        sinter_error *error)
{
    env e;
    TRY(env_make(&e, options, out, error));
    return calibration_create(&e, SINTER_CALIBRATION_ENTROPY_2, out);
}

sinter_status sinter_calibration_read(const void *cache, size_t size, const sinter_env_options *options,
                                      sinter_calibration **out, sinter_error *error)
{
    env e;
    TRY(env_make(&e, options, out, error));
    if (!cache && size) return FAIL(&e, INVALID_ARG, "the cache of %zu bytes is at NULL", size);
    TRY(calibration_create(&e, SINTER_CALIBRATION_ENTROPY_2, out));
    const sinter_status s = calibration_read(*out, &e, cache, size);
    if (s == SINTER_OK) return s;
    sinter_calibration_destroy(*out);
    *out = NULL;
    return s;
}

sinter_status sinter_calibration_write(const sinter_calibration *c, sinter_buffer *out, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!out) return FAIL(&e, INVALID_ARG, "out is NULL");
    *out = (sinter_buffer){ 0 };
    if (!c) return FAIL(&e, INVALID_ARG, "the calibration is NULL");
    e = env_of(c, error);
    text t;
    text_init(&t, &e);
    calibration_write(c, &t);
    void *data = t.failed ? NULL : mem_alloc(&e, t.length, ENGINE_ALIGN);
    if (data) {
        memcpy(data, t.at, t.length);
        *out = (sinter_buffer){ .data = data, .size = t.length, .allocator = e.alloc };
    }
    text_deinit(&t);
    return data ? SINTER_OK : FAIL_MEMORY(&e, "a calibration cache");
}

sinter_status sinter_calibration_load(const char *path, const sinter_env_options *options, sinter_calibration **out,
                                      sinter_error *error)
{
    env e;
    os_file file = { 0 };
    TRY(env_make(&e, options, out, error));
    if (!path) return FAIL(&e, INVALID_ARG, "path is NULL");
    TRY(os_file_map(&e, path, &file));
    const sinter_status s = sinter_calibration_read(file.data, file.size, options, out, error);
    os_file_close(&e, &file);
    return NOTE(&e, s, "reading '%s'", path);
}

sinter_status sinter_calibration_save(const sinter_calibration *c, const char *path, sinter_error *error)
{
    env e;
    sinter_buffer cache;
    env_init(&e, NULL, error);
    if (!path) return FAIL(&e, INVALID_ARG, "path is NULL");
    TRY(sinter_calibration_write(c, &cache, error));
    const sinter_status s = os_file_write(&e, path, &api_file_kind[SINTER_FILE_CALIBRATION], cache.data, cache.size);
    sinter_buffer_free(&cache);
    return s;
}

const char *sinter_calibration_header(const sinter_calibration *c)
{
    return c ? c->header : "";
}

uint32_t sinter_calibration_count(const sinter_calibration *c)
{
    return c ? c->row.count : 0;
}

sinter_status sinter_calibration_get(const sinter_calibration *c, uint32_t index, const char **name, float *scale,
                                     sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!name || !scale) return FAIL(&e, INVALID_ARG, "%s is NULL", name ? "scale" : "name");
    *name = NULL;
    *scale = 0;
    if (!c) return FAIL(&e, INVALID_ARG, "the calibration is NULL");
    if (index >= c->row.count) return FAIL(&e, INVALID_ARG, "range %u of %u", index, c->row.count);
    *name = c->row.at[index].name;
    *scale = c->row.at[index].scale;
    return SINTER_OK;
}

sinter_status sinter_calibration_set(sinter_calibration *c, const char *name, double range, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!c) return FAIL(&e, INVALID_ARG, "the calibration is NULL");
    if (!name) return FAIL(&e, INVALID_ARG, "the name is NULL");
    e = env_of(c, error);
    return calibration_set(c, &e, name, range);
}

/* ---- finding them ---- */

typedef struct calibrating {
    env e;
    env_budget budget;
    sinter_build_options build;
    sinter_calibrate_options how;
} calibrating;

static sinter_status options_take(calibrating *c, const sinter_calibrate_options *from, sinter_calibration **out,
                                  sinter_error *error)
{
    env *e = &c->e;
    env_init(e, NULL, error);
    if (!out) return FAIL(e, INVALID_ARG, "out is NULL");
    *out = NULL;
    c->how = (sinter_calibrate_options)SINTER_CALIBRATE_OPTIONS;
    TRY(api_options(e, &c->how, sizeof c->how, from));
    c->build = (sinter_build_options)SINTER_BUILD_OPTIONS;
    TRY(api_options(e, &c->build, sizeof c->build, c->how.build));
    c->how.build = &c->build;
    env_init(e, c->build.env, error);
    TRY(env_check(e));
    TRY(options_check(e, build_option_rows, &c->build));
    TRY(options_check(e, calibrate_option_rows, &c->how));
    if (c->build.sample_count && !c->build.sample)
        return FAIL(e, INVALID_ARG, "%u samples at NULL", c->build.sample_count);
    if (c->build.value_count && !c->build.value)
        return FAIL(e, INVALID_ARG, "%u values of inputs at NULL", c->build.value_count);
    if (c->build.profile_count && !c->build.profile)
        return FAIL(e, INVALID_ARG, "%u profiles at NULL", c->build.profile_count);
    c->budget = (env_budget){ 0 };
    e->budget = &c->budget;
    return SINTER_OK;
}

static sinter_status find(calibrating *c, const build_model *m, sinter_calibration **out)
{
    TRY(calibration_create(&c->e, c->how.method, out));
    const sinter_status s = build_calibration(&c->e, m, &c->how, *out);
    if (s == SINTER_OK) return s;
    sinter_calibration_destroy(*out);
    *out = NULL;
    return s;
}

sinter_status sinter_calibrate_memory(const void *model, size_t size, const sinter_calibrate_options *options,
                                      sinter_calibration **out, sinter_error *error)
{
    calibrating c;
    TRY(options_take(&c, options, out, error));
    if (!model) return FAIL(&c.e, INVALID_ARG, "model is NULL");
    return find(&c, &(build_model){ .bytes = model, .size = size, .name = "" }, out);
}

sinter_status sinter_calibrate_network(sinter_network *network, const sinter_calibrate_options *options,
                                       sinter_calibration **out, sinter_error *error)
{
    calibrating c;
    TRY(options_take(&c, options, out, error));
    if (!network) return FAIL(&c.e, INVALID_ARG, "network is NULL");
    return find(&c, &(build_model){ .name = network->name, .network = network }, out);
}

typedef struct in_file {
    calibrating *c;
    sinter_calibration **out;
} in_file;

static sinter_status find_in_file(void *user, const build_model *m)
{
    const in_file *f = user;
    return find(f->c, m, f->out);
}

sinter_status sinter_calibrate_file(const char *path, const sinter_calibrate_options *options, sinter_calibration **out,
                                    sinter_error *error)
{
    calibrating c;
    TRY(options_take(&c, options, out, error));
    return NOTE(&c.e, api_model_file(&c.e, path, find_in_file, &(in_file){ &c, out }), "calibrating '%s'",
                path ? path : "");
}

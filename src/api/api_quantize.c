/* SPDX-License-Identifier: Apache-2.0 */
/* api_quantize.c - sinter/quantize.h: arguments are checked here, the work is in builder/quantize.c. */
#include "api/handle.h"
#include "api/model_file.h"
#include "base/options.h"
#include "builder/quantize.h"

typedef struct to_file {
    env *e;
    const sinter_quantize_options *o;
    const char *path;
} to_file;

static sinter_status quantize_mapped(void *user, const build_model *m)
{
    const to_file *t = user;
    return quantize_model(t->e, m, t->o, t->path);
}

static sinter_status weights_check(env *e, const sinter_quantize_options *o)
{
    const bool has_data = o->build && o->build->sample_count;
    if (o->block_size < 16 || (o->block_size & (o->block_size - 1)))
        return FAIL(e, INVALID_ARG, "block_size is %u, a power of 2 from 16 to 65536 is wanted", o->block_size);
    if (o->weight_method >= SINTER_WEIGHT_AWQ_CLIP && !has_data)
        return FAIL(e, INVALID_ARG, "the method looks at data, and there are no samples; rtn_dq needs none");
    return SINTER_OK;
}

sinter_status sinter_quantize_file(const char *path, const sinter_quantize_options *options, const char *to,
                                   sinter_error *error)
{
    env e;
    sinter_quantize_options o = SINTER_QUANTIZE_OPTIONS;
    env_budget budget = { 0 };
    env_init(&e, NULL, error);
    TRY(api_options(&e, &o, sizeof o, options));
    env_init(&e, o.env, error);
    TRY(env_check(&e));
    TRY(options_check(&e, quantize_option_rows, &o));
    if (!path || !to) return FAIL(&e, INVALID_ARG, "%s is NULL", path ? "to" : "path");
    if (o.quantize_mode == SINTER_QUANTIZE_INT4) TRY(weights_check(&e, &o));
    else if (!o.calibration) return FAIL(&e, INVALID_ARG, "the calibration is NULL: sinter_calibrate_file finds one");
    if (o.shape_count && !o.shape) return FAIL(&e, INVALID_ARG, "%u shapes at NULL", o.shape_count);
    e.budget = &budget;
    to_file t = { &e, &o, to };
    return NOTE(&e, api_model_file(&e, path, quantize_mapped, &t), "quantising '%s'", path);
}

typedef struct to_check {
    env *e;
    void (*told)(void *user, const char *rule, const char *node, const char *text);
    void *user;
} to_check;

static sinter_status check_mapped(void *user, const build_model *m)
{
    const to_check *t = user;
    return quantize_check(t->e, m, t->told, t->user);
}

sinter_status sinter_quantize_check_file(const char *path, const sinter_env_options *options,
                                         void (*told)(void *user, const char *rule, const char *node, const char *text),
                                         void *user, sinter_error *error)
{
    env e;
    env_budget budget = { 0 };
    env_init(&e, options, error);
    TRY(env_check(&e));
    if (!path || !told) return FAIL(&e, INVALID_ARG, "%s is NULL", path ? "told" : "path");
    e.budget = &budget;
    to_check t = { &e, told, user };
    return NOTE(&e, api_model_file(&e, path, check_mapped, &t), "looking at '%s'", path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* api_simplify.c - sinter/simplify.h: arguments are checked here, the work is in builder/simplify.c. */
#include "sinter/simplify.h"

#include "api/handle.h"
#include "api/model_file.h"
#include "base/options.h"
#include "builder/simplify.h"
#include "engine/format.h"

#include <string.h>

static sinter_status begin(env *e, const sinter_simplify_options *from, sinter_simplify_options *o, env_budget *budget,
                           sinter_error *error)
{
    env_init(e, NULL, error);
    *o = (sinter_simplify_options)SINTER_SIMPLIFY_OPTIONS;
    TRY(api_options(e, o, sizeof *o, from));
    env_init(e, o->env, error);
    TRY(env_check(e));
    TRY(options_check(e, simplify_option_rows, o));
    if (o->shape_count && !o->shape) return FAIL(e, INVALID_ARG, "%u shapes at NULL", o->shape_count);
    *budget = (env_budget){ 0 };
    e->budget = budget;
    return SINTER_OK;
}

typedef struct to_file {
    env *e;
    const sinter_simplify_options *o;
    const char *path;
} to_file;

static sinter_status simplify_mapped(void *user, const build_model *m)
{
    const to_file *t = user;
    return simplify_model(t->e, m, t->o, NULL, t->path, NULL);
}

sinter_status sinter_simplify_file(const char *path, const sinter_simplify_options *options, const char *to,
                                   sinter_error *error)
{
    env e;
    sinter_simplify_options o;
    env_budget budget;
    TRY(begin(&e, options, &o, &budget, error));
    if (!path || !to) return FAIL(&e, INVALID_ARG, "%s is NULL", path ? "to" : "path");
    to_file t = { &e, &o, to };
    return NOTE(&e, api_model_file(&e, path, simplify_mapped, &t), "simplifying '%s'", path);
}

/* ---- to memory ---- */

typedef struct memory {
    env *e;
    uint8_t *at;
    size_t size, capacity;
} memory;

static sinter_status memory_put(void *user, const void *data, size_t size)
{
    memory *m = user;
    const size_t wanted = size_add(m->size, size);
    if (wanted > m->capacity) {
        const size_t capacity = wanted > SIZE_MAX / 2 ? wanted : wanted * 2;
        uint8_t *grown = mem_resize(m->e, m->at, m->capacity, capacity, ENGINE_ALIGN);
        if (!grown) return FAIL_MEMORY(m->e, "a model");
        m->at = grown;
        m->capacity = capacity;
    }
    memcpy(m->at + m->size, data, size);
    m->size = wanted;
    return SINTER_OK;
}

sinter_status sinter_simplify_memory(const void *model, size_t size, const sinter_simplify_options *options,
                                     sinter_buffer *out, sinter_error *error)
{
    env e;
    sinter_simplify_options o;
    env_budget budget;
    TRY(begin(&e, options, &o, &budget, error));
    if (!out) return FAIL(&e, INVALID_ARG, "out is NULL");
    *out = (sinter_buffer){ 0 };
    if (!model) return FAIL(&e, INVALID_ARG, "model is NULL");
    if (o.external_data) return FAIL(&e, INVALID_ARG, "external_data is set, and a model in memory has no folder");
    memory got = { .e = &e };
    const onnx_sink to = { memory_put, &got };
    const build_model m = { .bytes = model, .size = size, .name = "" };
    sinter_status s = simplify_model(&e, &m, &o, NULL, NULL, &to);
    uint8_t *exact = s == SINTER_OK ? mem_resize(&e, got.at, got.capacity, got.size, ENGINE_ALIGN) : NULL;
    if (s == SINTER_OK && !exact) s = FAIL_MEMORY(&e, "a model");
    if (s == SINTER_OK) *out = (sinter_buffer){ .data = exact, .size = got.size, .allocator = e.alloc };
    else if (got.at) mem_free(&e, got.at, got.capacity, ENGINE_ALIGN);
    return s;
}

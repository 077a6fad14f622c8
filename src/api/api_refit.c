/* SPDX-License-Identifier: Apache-2.0 */
/* api_refit.c - sinter/refit.h: names, types and sizes are checked here, the work is in engine/refit.c. */
#include "sinter/refit.h"

#include "base/os.h"
#include "engine/refit.h"
#include "onnx/weights.h"

#include <string.h>

static const engine *inner(const sinter_engine *g)
{
    return (const engine *)(const void *)g;
}

/* An error chain of the caller's for an engine that others use as well. */
static sinter_status begin(env *e, const sinter_engine *g, env_budget *budget, sinter_buffer *out, sinter_error *error)
{
    env_init(e, NULL, error);
    if (out) *out = (sinter_buffer){ 0 };
    if (!g || !out) return FAIL(e, INVALID_ARG, "%s is NULL", g ? "out" : "engine");
    *e = inner(g)->e;
    e->error = error ? error : &e->error_own;
    *e->error = (sinter_error){ 0 };
    *budget = (env_budget){ 0 };
    e->budget = budget;
    return SINTER_OK;
}

static sinter_status finish(env *e, const sinter_engine *g, const refit_options *o, sinter_buffer *out)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    const sinter_status s = engine_refit(e, inner(g), o, &bytes, &size);
    if (s == SINTER_OK) *out = (sinter_buffer){ .data = bytes, .size = size, .allocator = e->alloc };
    return s;
}

static sinter_weight_info info_of(const engine *g, const engine_recipe *r)
{
    return (sinter_weight_info){
        .name = engine_text(g, r->text), .dtype = (sinter_dtype)r->dtype, .size = r->data.size, .is_fixed = r->is_fixed
    };
}

sinter_status sinter_engine_weights(const sinter_engine *g, int (*visit)(void *, const sinter_weight_info *),
                                    void *user, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!g || !visit) return FAIL(&e, INVALID_ARG, "%s is NULL", g ? "visit" : "engine");
    const engine *x = inner(g);
    for (uint32_t i = 0; i < x->recipe_count; i++) {
        const sinter_weight_info info = info_of(x, &x->recipe[i]);
        if (x->recipe[i].kind == RECIPE_INITIALIZER && visit(user, &info) != 0) break;
    }
    return SINTER_OK;
}

typedef struct name_list {
    const char *const *at;
    uint32_t count;
} name_list;

/* refit_options.find where only names count: not NULL if the list has the name. */
static const void *find_name(void *user, const char *name, uint64_t digest, uint64_t size)
{
    const name_list *list = user;
    (void)digest, (void)size;
    for (uint32_t i = 0; i < list->count; i++)
        if (!strcmp(list->at[i], name)) return name;
    return NULL;
}

sinter_status sinter_engine_weights_missing(const sinter_engine *g, const char *const *name, uint32_t count,
                                            int (*visit)(void *, const sinter_weight_info *), void *user,
                                            sinter_error *error)
{
    env e;
    env_budget budget = { 0 };
    env_init(&e, NULL, error);
    if (!g || !visit) return FAIL(&e, INVALID_ARG, "%s is NULL", g ? "visit" : "engine");
    for (uint32_t i = 0; i < count; i++)
        if (!name || !name[i]) return FAIL(&e, INVALID_ARG, "name %u of %u is NULL", i, count);
    const engine *x = inner(g);
    e = x->e;
    e.error = error ? error : &e.error_own;
    e.budget = &budget;
    arena a;
    arena_init(&a, &e);
    uint8_t *missing = ARENA_NEW(&a, uint8_t, x->recipe_count);
    name_list list = { name, count };
    const refit_options o = { .find = find_name, .user = &list };
    const sinter_status s = missing ? engine_refit_missing(&e, x, &o, missing) : FAIL_MEMORY(&e, "weights");
    for (uint32_t i = 0; s == SINTER_OK && i < x->recipe_count; i++) {
        const sinter_weight_info info = info_of(x, &x->recipe[i]);
        if (missing[i] && visit(user, &info) != 0) break;
    }
    arena_deinit(&a);
    return s;
}

int sinter_engine_is_stripped(const sinter_engine *handle)
{
    return handle && inner(handle)->is_stripped;
}

/* ---- by name ---- */

typedef struct named {
    const sinter_weight *at;
    uint32_t count;
} named;

static const void *find_named(void *user, const char *name, uint64_t digest, uint64_t size)
{
    static const uint8_t none;
    const named *list = user;
    (void)digest;
    for (uint32_t i = 0; i < list->count; i++)
        if (!strcmp(list->at[i].name, name) && sinter_tensor_size(list->at[i].value) == size)
            return size ? list->at[i].value->data : &none;
    return NULL;
}

/* A tensor that is one of the engine's initializers: each of that name has its type and size. */
static sinter_status check_weight(env *e, const engine *g, const sinter_weight *w)
{
    const sinter_tensor *t = w->value;
    if (!w->name || !t)
        return FAIL(e, INVALID_ARG, "%s is NULL", w->name ? "the value of a weight" : "a weight's name");
    if (t->place == SINTER_PLACE_DEVICE) return FAIL(e, INVALID_ARG, "weight '%s' lies on the device", w->name);
    bool is_known = false;
    for (uint32_t i = 0; i < g->recipe_count; i++) {
        const engine_recipe *r = &g->recipe[i];
        if (r->kind != RECIPE_INITIALIZER || strcmp(engine_text(g, r->text), w->name) != 0) continue;
        is_known = true;
        if ((sinter_dtype)r->dtype != t->dtype || sinter_tensor_size(t) != r->data.size || (r->data.size && !t->data))
            return FAIL(e, INVALID_ARG, "weight '%s' is %zu bytes of %s, the engine has %llu bytes of %s", w->name,
                        sinter_tensor_size(t), sinter_dtype_name(t->dtype), (unsigned long long)r->data.size,
                        sinter_dtype_name((sinter_dtype)r->dtype));
    }
    return is_known ? SINTER_OK : FAIL(e, INVALID_ARG, "the engine has no weight '%s'", w->name);
}

sinter_status sinter_engine_refit(const sinter_engine *g, const sinter_weight *weight, uint32_t count,
                                  sinter_buffer *out, sinter_error *error)
{
    env e;
    env_budget budget;
    TRY(begin(&e, g, &budget, out, error));
    if (count && !weight) return FAIL(&e, INVALID_ARG, "%u weights at NULL", count);
    for (uint32_t i = 0; i < count; i++) TRY(check_weight(&e, inner(g), &weight[i]));
    named list = { weight, count };
    const refit_options o = { .find = find_named, .user = &list };
    return finish(&e, g, &o, out);
}

sinter_status sinter_engine_strip(const sinter_engine *g, sinter_buffer *out, sinter_error *error)
{
    env e;
    env_budget budget;
    TRY(begin(&e, g, &budget, out, error));
    const refit_options o = { .strip = true };
    return finish(&e, g, &o, out);
}

/* ---- from a model ---- */

/* Of several tensors of one name, which subgraphs may have, only the one that the engine has is known to be meant. */
static const void *find_in_model(void *user, const char *name, uint64_t digest, uint64_t size)
{
    static const uint8_t none;
    const onnx_weights *list = user;
    const view *found = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const view *v = &list->at[i].value;
        if (strcmp(list->at[i].name, name) != 0) continue;
        const uint64_t bytes = ((uint64_t)view_count(v) * sinter_dtype_bits(v->dtype) + 7) / 8;
        if (bytes != size) continue;
        if (count++ && hash64(v->data, (size_t)size, 0) != digest) continue;
        if (count > 1 && hash64(found->data, (size_t)size, 0) == digest) continue;
        found = v;
    }
    if (count > 1 && hash64(found->data, (size_t)size, 0) != digest) return NULL;
    return !found ? NULL : size ? found->data : &none;
}

static sinter_status refit_mapped(env *e, const sinter_engine *g, const char *path, const os_file *file,
                                  sinter_buffer *out)
{
    arena a;
    onnx_model m;
    onnx_files files = { 0 };
    onnx_weights list = { 0 };
    uint8_t digest[32];
    arena_init(&a, e);
    sha256 h;
    sha256_init(&h);
    sha256_update(&h, file->data, file->size);
    sha256_final(&h, digest);
    const char *slash = strrchr(path, '/');
    const char *folder = !slash ? "." : arena_text(&a, path, slash == path ? 1 : (size_t)(slash - path));
    sinter_status s = folder ? onnx_model_read(e, &a, file->data, file->size, &m) : FAIL_MEMORY(e, "a path");
    if (s == SINTER_OK) s = onnx_weights_read(e, &a, &m, folder, &files, &list);
    const refit_options o = { .find = find_in_model, .user = &list, .digest = digest };
    if (s == SINTER_OK) s = finish(e, g, &o, out);
    onnx_files_close(e, &files);
    arena_deinit(&a);
    return s;
}

sinter_status sinter_engine_refit_file(const sinter_engine *g, const char *path, sinter_buffer *out,
                                       sinter_error *error)
{
    env e;
    env_budget budget;
    os_file file = { 0 };
    TRY(begin(&e, g, &budget, out, error));
    if (!path) return FAIL(&e, INVALID_ARG, "path is NULL");
    TRY(NOTE(&e, os_file_map(&e, path, &file), "refitting from '%s'", path));
    const sinter_status s = refit_mapped(&e, g, path, &file, out);
    os_file_close(&e, &file);
    return NOTE(&e, s, "refitting from '%s'", path);
}

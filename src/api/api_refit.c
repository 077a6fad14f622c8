/* SPDX-License-Identifier: Apache-2.0 */
/* api_refit.c - sinter/refit.h: names, types and sizes are checked here, the work is in engine/refit.c. */
#include "sinter/refit.h"

#include "base/name_map.h"
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

/* refit_options.find where only names count: not NULL if the map has the name. */
static const void *find_name(void *user, const char *name, uint64_t digest, uint64_t size)
{
    (void)digest, (void)size;
    return name_map_find(user, name) ? name : NULL;
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
    name_map names = { .a = &a };
    bool is_new, has_room = missing != NULL;
    for (uint32_t i = 0; has_room && i < count; i++) has_room = name_map_add(&names, name[i], &is_new) != NULL;
    const refit_options o = { .find = find_name, .user = &names };
    const sinter_status s = has_room ? engine_refit_missing(&e, x, &o, missing) : FAIL_MEMORY(&e, "weights");
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

/* Weights by name. Of several with one name the first counts. */
typedef struct named {
    const sinter_weight *at;
    name_map index;
} named;

static const sinter_tensor *tensor_of(const named *list, const char *name)
{
    const uint32_t *i = name_map_find(&list->index, name);
    return i ? list->at[*i].value : NULL;
}

static const void *find_named(void *user, const char *name, uint64_t digest, uint64_t size)
{
    static const uint8_t none;
    const sinter_tensor *t = tensor_of(user, name);
    (void)digest;
    return !t || sinter_tensor_size(t) != size ? NULL : size ? t->data : &none;
}

/* Fills list->index. Each weight is a tensor of the host. */
static sinter_status list_weights(env *e, uint32_t count, named *list)
{
    for (uint32_t i = 0; i < count; i++) {
        const sinter_weight *w = &list->at[i];
        if (!w->name || !w->value)
            return FAIL(e, INVALID_ARG, "%s is NULL", w->name ? "the value of a weight" : "a weight's name");
        if (w->value->place == SINTER_PLACE_DEVICE)
            return FAIL(e, INVALID_ARG, "weight '%s' lies on the device", w->name);
        bool is_new;
        uint32_t *at = name_map_add(&list->index, w->name, &is_new);
        if (!at) return FAIL_MEMORY(e, "weights");
        if (is_new) *at = i;
    }
    return SINTER_OK;
}

/* Each weight is an initializer of the engine, and each initializer of that name has the weight's type and size. */
static sinter_status check_weights(env *e, const engine *g, const named *list, uint32_t count, uint8_t *is_known)
{
    for (uint32_t i = 0; i < g->recipe_count; i++) {
        const engine_recipe *r = &g->recipe[i];
        const uint32_t *at =
            r->kind == RECIPE_INITIALIZER ? name_map_find(&list->index, engine_text(g, r->text)) : NULL;
        if (!at) continue;
        const sinter_tensor *t = list->at[*at].value;
        is_known[*at] = 1;
        if ((sinter_dtype)r->dtype != t->dtype || sinter_tensor_size(t) != r->data.size || (r->data.size && !t->data))
            return FAIL(e, INVALID_ARG, "weight '%s' is %zu bytes of %s, the engine has %llu bytes of %s",
                        list->at[*at].name, sinter_tensor_size(t), sinter_dtype_name(t->dtype),
                        (unsigned long long)r->data.size, sinter_dtype_name((sinter_dtype)r->dtype));
    }
    for (uint32_t i = 0; i < count; i++)
        if (!is_known[*name_map_find(&list->index, list->at[i].name)])
            return FAIL(e, INVALID_ARG, "the engine has no weight '%s'", list->at[i].name);
    return SINTER_OK;
}

sinter_status sinter_engine_refit(const sinter_engine *g, const sinter_weight *weight, uint32_t count,
                                  sinter_buffer *out, sinter_error *error)
{
    env e;
    env_budget budget;
    TRY(begin(&e, g, &budget, out, error));
    if (count && !weight) return FAIL(&e, INVALID_ARG, "%u weights at NULL", count);
    arena a;
    arena_init(&a, &e);
    named list = { .at = weight, .index = { .a = &a } };
    uint8_t *is_known = ARENA_NEW(&a, uint8_t, count);
    sinter_status s = is_known ? list_weights(&e, count, &list) : FAIL_MEMORY(&e, "weights");
    if (s == SINTER_OK) s = check_weights(&e, inner(g), &list, count, is_known);
    const refit_options o = { .find = find_named, .user = &list };
    if (s == SINTER_OK) s = finish(&e, g, &o, out);
    arena_deinit(&a);
    return s;
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

/* A model's tensors by name: the place of the last one plus 1, then before[] it, until 0. */
typedef struct modelled {
    onnx_weights list;
    name_map last;
    uint32_t *before;
} modelled;

static sinter_status index_model(env *e, arena *a, modelled *m)
{
    m->last.a = a;
    m->before = ARENA_NEW(a, uint32_t, m->list.count);
    bool is_new, has_room = m->before != NULL;
    for (uint32_t i = 0; has_room && i < m->list.count; i++) {
        uint32_t *last = name_map_add(&m->last, m->list.at[i].name, &is_new);
        has_room = last != NULL;
        if (!has_room) break;
        m->before[i] = *last;
        *last = i + 1;
    }
    return has_room ? SINTER_OK : FAIL_MEMORY(e, "weights");
}

/* Of several tensors of one name, which subgraphs may have, only the one that the engine has is known to be meant. */
static const void *find_in_model(void *user, const char *name, uint64_t digest, uint64_t size)
{
    static const uint8_t none;
    const modelled *m = user;
    const view *found = NULL;
    uint32_t count = 0;
    const uint32_t *last = name_map_find(&m->last, name);
    for (uint32_t i = last ? *last : 0; i; i = m->before[i - 1]) {
        const view *v = &m->list.at[i - 1].value;
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
    modelled list = { 0 };
    uint8_t digest[32];
    arena_init(&a, e);
    sha256 h;
    sha256_init(&h);
    sha256_update(&h, file->data, file->size);
    sha256_final(&h, digest);
    const char *slash = strrchr(path, '/');
    const char *folder = !slash ? "." : arena_text(&a, path, slash == path ? 1 : (size_t)(slash - path));
    sinter_status s = folder ? onnx_model_read(e, &a, file->data, file->size, &m) : FAIL_MEMORY(e, "a path");
    if (s == SINTER_OK) s = onnx_weights_read(e, &a, &m, folder, &files, &list.list);
    if (s == SINTER_OK) s = index_model(e, &a, &list);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* recipes.c - plays the recipes of an engine. The initializers are read from the model by name. */
#include "recipes.h"

#include "engine/engine.h"
#include "base/hash.h"
#include "onnx/weights.h"

#include <stdio.h>
#include <string.h>

static const void *find(void *user, const char *name, uint64_t digest, uint64_t size)
{
    static const uint8_t none;
    const onnx_weights *list = user;
    for (uint32_t i = 0; i < list->count; i++) {
        const view *v = &list->at[i].value;
        const uint64_t bytes = ((uint64_t)view_count(v) * sinter_dtype_bits(v->dtype) + 7) / 8;
        if (!strcmp(list->at[i].name, name) && bytes == size && hash64(v->data, (size_t)bytes, 0) == digest)
            return size ? v->data : &none;
    }
    return NULL;
}

static bool play_all(env *e, const engine *g, const onnx_weights *from, recipes_count *count, char *why,
                     size_t why_size)
{
    const recipe_source source = { find, (void *)(uintptr_t)from };
    recipe_player *r;
    if (recipe_player_create(e, g, &source, &r) != SINTER_OK) return false;
    bool ok = true;
    for (uint32_t i = 0; i < g->storage_count && ok; i++) {
        const engine_storage *s = &g->storage[i];
        if (s->kind != STORAGE_WEIGHT) continue;
        count->weights++;
        count->without += !s->recipe;
        const uint8_t *bytes;
        uint64_t size, at = 0;
        if (!s->recipe) continue;
        const engine_recipe *x = &g->recipe[s->recipe - 1];
        if (recipe_play(r, s->recipe, &bytes, &size) != SINTER_OK) {
            (void)snprintf(why, why_size, "weight %u (%.100s): %.400s", i, engine_text(g, x->text), e->error->text);
            ok = false;
        } else if (size != s->bound) {
            (void)snprintf(why, why_size, "weight %u (%.300s): %llu bytes instead of %llu", i, engine_text(g, x->text),
                           (unsigned long long)size, (unsigned long long)s->bound);
            ok = false;
        } else if (memcmp(bytes, g->weights + s->at, size) != 0) {
            while (bytes[at] == g->weights[s->at + at]) at++;
            (void)snprintf(why, why_size, "weight %u (%.300s): byte %llu of %llu differs", i, engine_text(g, x->text),
                           (unsigned long long)at, (unsigned long long)size);
            ok = false;
        }
    }
    recipe_player_destroy(r);
    return ok;
}

bool recipes_hold(const sinter_engine *engine_at, const void *model, size_t size, const char *folder,
                  recipes_count *count, char *why, size_t why_size)
{
    const engine *g = (const engine *)(const void *)engine_at;
    env e;
    sinter_error error = { 0 };
    env_init(&e, NULL, &error);
    onnx_model m;
    onnx_weights list = { 0 };
    onnx_files files = { 0 };
    arena a;
    arena_init(&a, &e);
    *count = (recipes_count){ 0 };
    bool ok = onnx_model_read(&e, &a, model, size, &m) == SINTER_OK &&
              onnx_weights_read(&e, &a, &m, folder, &files, &list) == SINTER_OK;
    if (!ok) (void)snprintf(why, why_size, "the model: %.400s", error.text);
    ok = ok && play_all(&e, g, &list, count, why, why_size);
    onnx_files_close(&e, &files);
    arena_deinit(&a);
    return ok;
}

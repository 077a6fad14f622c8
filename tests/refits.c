/* SPDX-License-Identifier: Apache-2.0 */
/* refits.c - changes every weight of a model that may change: floats are multiplied by numbers from 0.9 to 1.1, so that
 * variances stay positive. */
#include "plugin_set.h"
#include "refits.h"

#include "base/env.h"
#include "onnx/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 16, FIXED_MAX = 1 << 16 };

typedef struct part {
    uint8_t *at;         /* a copy, which changes */
    const uint8_t *from; /* what the model's weights point into */
    size_t size;
    const char *name;
} part;

typedef struct other {
    env e;
    arena a;
    onnx_files files;
    onnx_weights weights;
    part part[FILES_MAX];
    uint32_t parts;
    const char **fixed;
    uint32_t fixed_count, changed;
    bool wants_all; /* of the names of weights, not only those that are fixed */
    char *why;
    size_t why_size;
} other;

static bool fail(other *x, const char *what, const char *detail)
{
    (void)snprintf(x->why, x->why_size, "%s: %.400s", what, detail);
    return false;
}

static uint8_t *read_all(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    (void)fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *at = malloc(*size ? *size : 1);
    if (at && fread(at, 1, *size, f) != *size) abort();
    (void)fclose(f);
    return at;
}

static bool write_all(const char *folder, const char *name, const uint8_t *at, size_t size)
{
    char path[1200];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    const bool ok = f && fwrite(at, 1, size, f) == size;
    return f && fclose(f) == 0 && ok;
}

static int note_fixed(void *user, const sinter_weight_info *w)
{
    other *x = user;
    if ((w->is_fixed || x->wants_all) && x->fixed_count < FIXED_MAX) x->fixed[x->fixed_count++] = w->name;
    return 0;
}

static bool is_fixed(const other *x, const char *name)
{
    for (uint32_t i = 0; i < x->fixed_count; i++)
        if (!strcmp(x->fixed[i], name)) return true;
    return false;
}

static bool may_change(const other *x, const onnx_weight *w)
{
    const sinter_dtype t = w->value.dtype;
    return (t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16) && view_count(&w->value) > 1 &&
           !is_fixed(x, w->name);
}

/* Where the file has the elements, of any alignment: where they were read, or where the tensor says. */
static const uint8_t *place_of(const onnx_model *m, const onnx_weight *w)
{
    for (uint32_t i = 0; i < m->graph.initializer.count; i++) {
        const onnx_tensor *t = &m->graph.initializer.at[i];
        if (t->has_raw && !t->is_external && !strcmp(t->name, w->name)) return t->raw;
    }
    return w->value.data;
}

static void change(other *x, const onnx_model *m)
{
    uint64_t seed = 1;
    for (uint32_t i = 0; i < x->weights.count; i++) {
        const onnx_weight *w = &x->weights.at[i];
        const uint8_t *data = place_of(m, w);
        const size_t size = sinter_dtype_bits(w->value.dtype) / 8;
        if (!may_change(x, w)) continue;
        for (uint32_t k = 0; k < x->parts; k++) {
            const part *p = &x->part[k];
            if (data < p->from || data >= p->from + p->size) continue;
            for (int64_t at = 0; at < view_count(&w->value); at++) {
                uint64_t cell = 0;
                uint8_t *to = p->at + (data - p->from) + (size_t)at * size;
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                memcpy(&cell, to, size);
                dtype_store_f64(w->value.dtype, &cell, 0,
                                dtype_load_f64(w->value.dtype, &cell, 0) *
                                    (0.9 + 0.2 * (double)(seed >> 40) / 16777216.0));
                memcpy(to, &cell, size);
            }
            x->changed++;
        }
    }
}

/* The model and its files, copied, changed and written. */
static bool make_other(other *x, const uint8_t *model, size_t size, const char *from, const char *folder)
{
    onnx_model m;
    if (onnx_model_read(&x->e, &x->a, model, size, &m) != SINTER_OK ||
        onnx_weights_read(&x->e, &x->a, &m, from, &x->files, &x->weights) != SINTER_OK)
        return fail(x, "reading the model", x->e.error->text);
    if (x->files.count + 1 > FILES_MAX) return fail(x, "reading the model", "too many files");
    x->part[x->parts++] = (part){ malloc(size), model, size, "model.onnx" };
    for (uint32_t i = 0; i < x->files.count; i++) {
        const onnx_file *f = &x->files.at[i];
        x->part[x->parts++] = (part){ malloc(f->file.size), f->file.data, f->file.size, f->name };
    }
    for (uint32_t i = 0; i < x->parts; i++) memcpy(x->part[i].at, x->part[i].from, x->part[i].size);
    change(x, &m);
    for (uint32_t i = 0; i < x->parts; i++)
        if (!write_all(folder, x->part[i].name, x->part[i].at, x->part[i].size))
            return fail(x, "cannot write", x->part[i].name);
    return true;
}

static bool same(other *x, const char *what, const sinter_buffer *a, const sinter_buffer *b)
{
    char text[120];
    size_t at = 0;
    if (a->size == b->size && !memcmp(a->data, b->data, a->size)) return true;
    while (at < a->size && at < b->size && ((uint8_t *)a->data)[at] == ((uint8_t *)b->data)[at]) at++;
    (void)snprintf(text, sizeof text, "%zu and %zu bytes, the first that differs is at %zu", a->size, b->size, at);
    return fail(x, what, text);
}

static bool compare(other *x, sinter_engine *first, const sinter_buffer *fresh, const char *path, refits_size *out)
{
    sinter_error error = { 0 };
    sinter_engine_options offline = SINTER_ENGINE_OPTIONS;
    const sinter_env_options given = { .struct_size = sizeof given, .plugins = plugin_set_shared() };
    sinter_buffer refitted = { 0 }, stripped = { 0 }, filled = { 0 };
    sinter_engine *bare = NULL;
    offline.env = &given;
    offline.no_device = 1;
    bool ok = sinter_engine_refit_file(first, path, &refitted, &error) == SINTER_OK &&
              sinter_engine_strip(first, &stripped, &error) == SINTER_OK &&
              sinter_engine_load_memory(stripped.data, stripped.size, &offline, &bare, &error) == SINTER_OK &&
              sinter_engine_refit_file(bare, path, &filled, &error) == SINTER_OK;
    if (!ok) (void)fail(x, "refitting", error.text);
    out->stripped = stripped.size;
    ok = ok && same(x, "refitted", &refitted, fresh) && same(x, "stripped and refitted", &filled, fresh);
    sinter_engine_release(bare);
    sinter_buffer_free(&refitted);
    sinter_buffer_free(&stripped);
    sinter_buffer_free(&filled);
    return ok;
}

bool refits_hold(const char *path, const char *folder, const sinter_build_options *options, refits_size *out, char *why,
                 size_t why_size)
{
    other x = { .why = why, .why_size = why_size };
    sinter_error error = { 0 }, own = { 0 };
    sinter_build_options o = *options;
    sinter_engine_options offline = SINTER_ENGINE_OPTIONS;
    sinter_buffer built = { 0 }, fresh = { 0 };
    sinter_engine *first = NULL;
    char from[1000], changed[1200];
    size_t size = 0;
    *out = (refits_size){ 0 };
    env_init(&x.e, NULL, &own);
    arena_init(&x.a, &x.e);
    x.fixed = calloc(FIXED_MAX, sizeof *x.fixed);
    o.refittable = 1;
    offline.no_device = 1;
    (void)snprintf(from, sizeof from, "%s", path);
    char *slash = strrchr(from, '/');
    if (slash) *slash = 0;
    (void)snprintf(changed, sizeof changed, "%s/model.onnx", folder);
    (void)mkdir(folder, 0777);
    uint8_t *model = read_all(path, &size);
    bool ok = model != NULL || fail(&x, "cannot read", path);
    if (ok && (sinter_build_file(path, &o, &built, &error) != SINTER_OK ||
               sinter_engine_load_memory(built.data, built.size, &offline, &first, &error) != SINTER_OK ||
               sinter_engine_weights(first, note_fixed, &x, &error) != SINTER_OK))
        ok = fail(&x, "building", error.text);
    ok = ok && make_other(&x, model, size, slash ? from : ".", folder);
    if (ok && sinter_build_file(changed, &o, &fresh, &error) != SINTER_OK) ok = fail(&x, "building anew", error.text);
    ok = ok && compare(&x, first, &fresh, changed, out);
    out->full = built.size;
    out->changed = x.changed;
    out->fixed = x.fixed_count;
    for (uint32_t i = 0; i < x.parts; i++) free(x.part[i].at);
    sinter_engine_release(first);
    sinter_buffer_free(&built);
    sinter_buffer_free(&fresh);
    onnx_files_close(&x.e, &x.files);
    arena_deinit(&x.a);
    free(x.fixed);
    free(model);
    return ok;
}

/* ---- in memory ---- */

/* The weights of the changed model that the engine has, each name once. */
static uint32_t list_weights(other *x, const sinter_engine *g, const onnx_weights *from, sinter_weight *list,
                             sinter_tensor *tensor)
{
    uint32_t count = 0;
    x->fixed_count = 0;
    x->wants_all = true;
    sinter_error error;
    if (sinter_engine_weights(g, note_fixed, x, &error) != SINTER_OK) return 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const onnx_weight *w = &from->at[i];
        bool is_new = is_fixed(x, w->name); /* now the names of all that the engine has */
        for (uint32_t k = 0; k < count && is_new; k++) is_new = strcmp(list[k].name, w->name) != 0;
        if (!is_new) continue;
        tensor[count] = (sinter_tensor){ .dtype = w->value.dtype, .rank = w->value.rank, .data = w->value.data };
        memcpy(tensor[count].dim, w->value.dim, sizeof tensor[count].dim);
        list[count] = (sinter_weight){ w->name, &tensor[count] };
        count++;
    }
    return count;
}

/* But for the digest of the model, and the sum over that. */
static bool same_engine(other *x, const sinter_buffer *a, const sinter_buffer *b)
{
    enum { DIGEST_AT = 32, DIGEST_END = 64 };
    uint8_t *const at[] = { a->data, b->data };
    for (uint32_t i = 0; i < 2; i++) memset(at[i] + DIGEST_AT, 0, DIGEST_END - DIGEST_AT);
    return same(x, "refitted", a, b);
}

static bool refit_named(other *x, const sinter_engine *g, const uint8_t *model, size_t size, const sinter_buffer *fresh)
{
    onnx_model m;
    onnx_weights all = { 0 };
    sinter_error error = { 0 };
    sinter_buffer refitted = { 0 };
    if (onnx_model_read(&x->e, &x->a, model, size, &m) != SINTER_OK ||
        onnx_weights_read(&x->e, &x->a, &m, NULL, &x->files, &all) != SINTER_OK)
        return fail(x, "reading the changed model", x->e.error->text);
    sinter_weight *list = calloc(all.count + 1u, sizeof *list);
    sinter_tensor *tensor = calloc(all.count + 1u, sizeof *tensor);
    const uint32_t count = list_weights(x, g, &all, list, tensor);
    bool ok = sinter_engine_refit(g, list, count, &refitted, &error) == SINTER_OK || fail(x, "refitting", error.text);
    ok = ok && same_engine(x, &refitted, fresh);
    sinter_buffer_free(&refitted);
    free(list);
    free(tensor);
    return ok;
}

bool refits_hold_memory(const sinter_engine *g, const void *model, size_t size, refits_build build, void *user,
                        uint32_t *changed, char *why, size_t why_size)
{
    other x = { .why = why, .why_size = why_size };
    sinter_error error = { 0 }, own = { 0 };
    sinter_buffer fresh = { 0 };
    onnx_model m;
    env_init(&x.e, NULL, &own);
    arena_init(&x.a, &x.e);
    x.fixed = calloc(FIXED_MAX, sizeof *x.fixed);
    bool ok = sinter_engine_weights(g, note_fixed, &x, &error) == SINTER_OK &&
              onnx_model_read(&x.e, &x.a, model, size, &m) == SINTER_OK &&
              onnx_weights_read(&x.e, &x.a, &m, NULL, &x.files, &x.weights) == SINTER_OK;
    if (!ok) (void)fail(&x, "reading the model", own.text);
    x.part[x.parts++] = (part){ malloc(size ? size : 1), model, size, "" };
    memcpy(x.part[0].at, model, size);
    if (ok) change(&x, &m);
    if (ok && build(user, x.part[0].at, size, &fresh, &error) != SINTER_OK) ok = fail(&x, "building anew", error.text);
    ok = ok && refit_named(&x, g, x.part[0].at, size, &fresh);
    *changed = x.changed;
    sinter_buffer_free(&fresh);
    free(x.part[0].at);
    onnx_files_close(&x.e, &x.files);
    arena_deinit(&x.a);
    free(x.fixed);
    return ok;
}

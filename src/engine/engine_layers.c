/* SPDX-License-Identifier: Apache-2.0 */
/* engine_layers.c - steps as TensorRT's inspector shows layers, for C, C++, Python and `sinter exec`.
 *
 * A layer has its node's name, or its kernel's; a name that an earlier layer of the profile has gets " #2" behind it.
 * Layers, tensors and bindings of profiles after the first say so: "conv1 [profile 1]". */
#include "base/name_map.h"
#include "core/storage.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

enum { SUFFIX_MAX = 32, METADATA_SEPARATOR = 0x1e };

typedef struct layers {
    const engine *g;
    const engine_layers *o;
    text *out;
    arena a;
    name_map taken;       /* of the profile */
    const uint32_t *name; /* of its storages */
    uint32_t profile;
    char suffix[SUFFIX_MAX];
} layers;

typedef struct layer {
    uint32_t id; /* of the step */
    const char *name;
    text type, tactic;
} layer;

/* ---- text and JSON ---- */

static void put(text *out, const char *s)
{
    text_append(out, s, strlen(s));
}

/* `"key": ` or `key: ` */
static void put_key(layers *x, const char *key, bool is_first)
{
    if (!is_first) put(x->out, ", ");
    if (x->o->is_json) engine_json_text(x->out, key);
    else put(x->out, key);
    put(x->out, ": ");
}

static void put_value(layers *x, const char *value)
{
    if (x->o->is_json) engine_json_text(x->out, value);
    else put(x->out, value);
}

static void put_member(layers *x, const char *key, const char *value)
{
    put_key(x, key, false);
    put_value(x, value);
}

/* ---- names ---- */

static void *room(layers *x, size_t size)
{
    void *made = arena_alloc(&x->a, size, 1);
    x->out->failed = x->out->failed || !made;
    return made;
}

/* The name with the profile's suffix, and before that a number where it is taken. "" without memory. */
static const char *layer_name(layers *x, const char *name)
{
    const size_t size = strlen(name) + 2 * SUFFIX_MAX;
    char *made = room(x, size);
    bool is_new = false;
    for (uint32_t k = 1; made && !is_new && k; k++) {
        if (k == 1) (void)snprintf(made, size, "%s%s", name, x->suffix);
        else (void)snprintf(made, size, "%s #%u%s", name, k, x->suffix);
        if (!name_map_add(&x->taken, made, &is_new)) made = NULL;
    }
    x->out->failed = x->out->failed || !made;
    return made ? made : "";
}

static void begin_profile(layers *x, uint32_t profile)
{
    x->profile = profile;
    x->taken = (name_map){ .a = &x->a };
    x->name = engine_storage_names(x->g, profile, &x->a);
    x->suffix[0] = 0;
    if (profile) (void)snprintf(x->suffix, sizeof x->suffix, " [profile %u]", profile);
}

/* ---- tensors ---- */

/* TensorRT's word for a type; sinter's, where that has none. */
static const char *type_word(sinter_dtype type)
{
    static const char *const words[SINTER_DTYPE_COUNT] = {
        [SINTER_DTYPE_F32] = "Float",    [SINTER_DTYPE_F16] = "Half",  [SINTER_DTYPE_BF16] = "BFloat16",
        [SINTER_DTYPE_I8] = "Int8",      [SINTER_DTYPE_U8] = "UInt8",  [SINTER_DTYPE_I32] = "Int32",
        [SINTER_DTYPE_I64] = "Int64",    [SINTER_DTYPE_BOOL] = "Bool", [SINTER_DTYPE_I4] = "Int4",
        [SINTER_DTYPE_F8E4M3FN] = "FP8", [SINTER_DTYPE_F4E2M1] = "FP4"
    };
    return words[type] ? words[type] : sinter_dtype_name(type);
}

/* -1 where each run chooses, or data decide, unless the context's shapes say it. */
static int64_t size_of(const layers *x, uint32_t d)
{
    const dim_range r = engine_range_of(x->g, d, x->profile);
    if (r.min == r.max) return r.min;
    const int64_t now = x->o->dim && x->o->profile == x->profile ? x->o->dim[d] : -1;
    return now < 0 ? -1 : now;
}

static void put_tensor(layers *x, uint32_t value, const char *suffix)
{
    const engine_profile *p = &x->g->profile[x->profile];
    const engine_value *v = &x->g->value[p->value_first + value];
    const engine_storage *s = &x->g->storage[p->storage_first + v->storage];
    const char *known = x->name && x->name[v->storage] ? engine_text(x->g, x->name[v->storage]) : "";
    const size_t size = strlen(known) + 2 * SUFFIX_MAX;
    char *name = room(x, size);
    if (!name) return;
    if (*known) (void)snprintf(name, size, "%s%s", known, suffix);
    else (void)snprintf(name, size, "t%u%s", v->storage, suffix);
    put(x->out, "{ ");
    put_key(x, "Name", true);
    put_value(x, name);
    put_member(x, "Location", s->place == PLACE_HOST ? "Host" : "Device");
    put_key(x, "Dimensions", false);
    put(x->out, "[");
    for (uint32_t k = 0; k < v->rank; k++)
        text_printf(x->out, "%s%lld", k ? "," : "", (long long)size_of(x, v->dim[k]));
    put(x->out, "]");
    put_member(x, "Format/Datatype", type_word((sinter_dtype)v->dtype));
    put(x->out, " }");
}

/* Weights, or all but weights. */
static void put_tensors(layers *x, const char *key, uint32_t at, uint32_t count, bool is_weights)
{
    const engine_profile *p = &x->g->profile[x->profile];
    bool is_first = true;
    put_key(x, key, false);
    put(x->out, "[");
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t value = x->g->arg[at + i];
        if (!value) continue;
        const uint32_t storage = x->g->value[p->value_first + value].storage;
        if ((x->g->storage[p->storage_first + storage].kind == STORAGE_WEIGHT) != is_weights) continue;
        put(x->out, is_first ? " " : ", ");
        put_tensor(x, value, is_weights ? "" : x->suffix);
        is_first = false;
    }
    put(x->out, is_first ? "]" : " ]");
}

/* ---- layers ---- */

/* FNV-1a of a kernel and its tactic: equal values, equal code. */
static uint64_t tactic_value(const char *code, const char *how)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *c = code; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    for (const char *c = how; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    return h;
}

static const char *text_of(const text *t)
{
    return t->length && !t->failed ? t->at : "";
}

/* "conv1 + relu1" as ONNX nodes. */
static void put_metadata(layers *x, const char *node)
{
    text t;
    text_init(&t, x->out->e);
    for (bool is_first = true; *node; is_first = false) {
        const char *end = strstr(node, " + ");
        const size_t n = end ? (size_t)(end - node) : strlen(node);
        if (!is_first) text_printf(&t, "%c", x->o->is_json ? METADATA_SEPARATOR : ' ');
        text_printf(&t, "[ONNX Layer: %.*s]", (int)n, node);
        node += n + (end ? 3 : 0);
    }
    put_member(x, "Metadata", text_of(&t));
    x->out->failed = x->out->failed || t.failed;
    text_deinit(&t);
}

static void put_details(layers *x, const layer *l)
{
    const engine_step *s = &x->g->step[l->id];
    const char *code = engine_step_kernel(x->g, l->id);
    char value[24];
    (void)snprintf(value, sizeof value, "0x%016llx", (unsigned long long)tactic_value(code, text_of(&l->tactic)));
    put(x->out, x->o->is_json ? "{ " : "");
    put_key(x, "Name", true);
    put_value(x, l->name);
    put_member(x, "LayerType", text_of(&l->type));
    put_tensors(x, "Inputs", s->in_at, s->in_count, false);
    put_tensors(x, "Outputs", s->out_at, s->out_count, false);
    put_tensors(x, "Constants", s->in_at, s->in_count, true);
    put_member(x, "ParameterType", text_of(&l->type));
    put_member(x, "TacticName", code);
    put_member(x, "TacticValue", value);
    put_member(x, "Tactic", text_of(&l->tactic));
    put_member(x, "Where", engine_step_where(x->g, &x->g->profile[x->profile], l->id));
    put_key(x, "StreamId", false);
    put(x->out, "0");
    put_metadata(x, engine_text(x->g, s->name));
    put_member(x, "Problem", engine_text(x->g, s->problem));
    put(x->out, x->o->is_json ? " }" : "");
}

static void put_layer(layers *x, const layer *l)
{
    const sinter_detail detail = engine_detail(x->g);
    if (detail == SINTER_DETAIL_ALL) put_details(x, l);
    else put_value(x, detail == SINTER_DETAIL_NAMES ? l->name : "");
}

static void layer_do(layers *x, uint32_t step, bool is_put)
{
    layer l = { .id = x->g->profile[x->profile].step_first + step };
    const engine_step *s = &x->g->step[l.id];
    const char *code = engine_step_kernel(x->g, l.id), *line = engine_text(x->g, s->problem),
               *node = engine_text(x->g, s->name);
    l.name = layer_name(x, *node ? node : code);
    if (!is_put) return;
    text_init(&l.type, x->out->e);
    text_init(&l.tactic, x->out->e);
    text_printf(&l.type, "%.*s", (int)strcspn(line, ":"), *line ? line : code);
    engine_step_tactic(x->g, l.id, &l.tactic);
    put_layer(x, &l);
    x->out->failed = x->out->failed || l.type.failed || l.tactic.failed;
    text_deinit(&l.type);
    text_deinit(&l.tactic);
}

/* ---- the engine ---- */

/* Outputs in square brackets are marks that sinter.tensorrt and sinter/compat make; they are left out. */
static void put_bindings(layers *x)
{
    bool is_first = true;
    for (uint32_t p = 0; p < x->g->profile_count; p++) {
        begin_profile(x, p);
        for (uint32_t i = 0; i < x->g->io_count; i++) {
            const char *io = engine_text(x->g, x->g->io[i].name);
            if (*io == '[' && !x->g->io[i].is_input) continue;
            const size_t size = strlen(io) + SUFFIX_MAX;
            char *name = room(x, size);
            if (!name) return;
            (void)snprintf(name, size, "%s%s", io, x->suffix);
            if (!is_first) put(x->out, x->o->is_json ? ", " : "\n");
            put_value(x, name);
            is_first = false;
        }
    }
}

static void put_all(layers *x)
{
    const bool is_none = engine_detail(x->g) == SINTER_DETAIL_NONE, is_json = x->o->is_json;
    bool is_first = true;
    put(x->out, is_json ? "{\"Layers\": [" : "Layers:\n");
    for (uint32_t p = 0; p < x->g->profile_count && !is_none; p++) {
        begin_profile(x, p);
        for (uint32_t i = 0; i < x->g->profile[p].step_count; i++, is_first = false) {
            put(x->out, !is_json || is_first ? "" : ",");
            put(x->out, is_json ? "\n" : "");
            layer_do(x, i, true);
            put(x->out, is_json ? "" : "\n");
        }
    }
    put(x->out, is_json ? "],\n\"Bindings\": [" : "\nBindings:\n");
    if (!is_none) put_bindings(x);
    put(x->out, is_json ? "]}\n" : "\n");
}

static void put_one(layers *x)
{
    uint32_t first = 0, p = 0;
    while (x->o->index - first >= x->g->profile[p].step_count) first += x->g->profile[p++].step_count;
    begin_profile(x, p);
    for (uint32_t i = 0; i <= x->o->index - first; i++) layer_do(x, i, i == x->o->index - first);
}

sinter_status engine_print_layers(env *e, const engine *g, const engine_layers *o, sinter_write_fn write, void *user)
{
    if (o->index != SINTER_ALL_LAYERS && o->index >= g->step_count)
        return FAIL(e, INVALID_ARG, "layer %u of an engine that has %u", o->index, g->step_count);
    text out;
    text_init(&out, e);
    layers x = { .g = g, .o = o, .out = &out };
    arena_init(&x.a, e);
    if (o->index == SINTER_ALL_LAYERS) put_all(&x);
    else put_one(&x);
    arena_deinit(&x.a);
    const sinter_status s = out.failed ? FAIL_MEMORY(e, "a description") : SINTER_OK;
    if (s == SINTER_OK) write(user, text_of(&out), out.length);
    text_deinit(&out);
    return s;
}

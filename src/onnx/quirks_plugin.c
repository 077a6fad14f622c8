/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_plugin.c - a node whose operator the importer does not have, as a call of a plugin of that name.
 *
 * plugin_version and plugin_namespace say which plugin, where several have the name; the node's other attributes are
 * the plugin's fields. */
#include "onnx/quirks.h"
#include "ops/plugin.h"

#include <string.h>

/* A one-dimensional tensor of numbers as a list. */
static bool tensor_field(onnx_call *c, const onnx_attr *a, sinter_plugin_field *out)
{
    view v;
    if (!call_tensor(c, a->t, &v)) return false;
    const int64_t count = view_count(&v);
    const bool ints = dtype_is_int(v.dtype) || v.dtype == SINTER_DTYPE_BOOL;
    int64_t *i64 = ints ? ARENA_NEW(&c->b.g->a, int64_t, (size_t)count + 1) : NULL;
    double *f64 = ints ? NULL : ARENA_NEW(&c->b.g->a, double, (size_t)count + 1);
    if (!i64 && !f64) {
        REJECT(c, NO_MEMORY, "no memory for the attribute %s", a->name);
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        if (ints) i64[i] = dtype_load_i64(v.dtype, v.data, i);
        else f64[i] = dtype_load_f64(v.dtype, v.data, i);
    }
    out->type = ints ? SINTER_PLUGIN_INTS : SINTER_PLUGIN_REALS;
    out->count = (uint64_t)count;
    out->data = ints ? (const void *)i64 : (const void *)f64;
    return true;
}

static bool field_of(onnx_call *c, const onnx_attr *a, sinter_plugin_field *out)
{
    arena *room = &c->b.g->a;
    double *real = NULL;
    switch (a->type) {
    case ONNX_INT:
        out->type = SINTER_PLUGIN_INT;
        out->count = 1;
        out->data = &a->i;
        return true;
    case ONNX_INTS:
        out->type = SINTER_PLUGIN_INTS;
        out->count = a->ints.count;
        out->data = a->ints.count ? (const void *)a->ints.at : "";
        return true;
    case ONNX_STRING:
        out->type = SINTER_PLUGIN_TEXT;
        out->count = a->s.length;
        out->data = a->s.at;
        return true;
    case ONNX_FLOAT:
    case ONNX_FLOATS: {
        const bool is_list = a->type == ONNX_FLOATS;
        const uint32_t count = is_list ? a->floats.count : 1;
        real = ARENA_NEW(room, double, (size_t)count + 1);
        for (uint32_t i = 0; real && i < count; i++) real[i] = (double)(is_list ? a->floats.at[i] : a->f);
        out->type = is_list ? SINTER_PLUGIN_REALS : SINTER_PLUGIN_REAL;
        out->count = count;
        out->data = real;
        if (!real) REJECT(c, NO_MEMORY, "no memory for the attribute %s", a->name);
        return real != NULL;
    }
    case ONNX_TENSOR:
        if (!a->t) break;
        return tensor_field(c, a, out);
    default: break;
    }
    REJECT(c, UNSUPPORTED, "attribute %s has type %d, and a plugin takes numbers, lists of numbers and text", a->name,
           a->type);
    return false;
}

/* A version may be written as a number. */
static const char *words(onnx_call *c, const char *name)
{
    const onnx_attr *a = call_attr(c, name);
    return a && a->type == ONNX_INT ? arena_printf(&c->b.g->a, "%lld", (long long)a->i) : call_text(c, name, NULL);
}

void quirk_plugin(onnx_call *c)
{
    const onnx_node *n = c->node;
    sinter_plugin_field *field = ARENA_NEW(&c->b.g->a, sinter_plugin_field, n->attr.count);
    plugin_request r = { .name = n->type,
                         .domain = n->domain,
                         .version = words(c, "plugin_version"),
                         .space = words(c, "plugin_namespace"),
                         .field = field };
    if (!field) REJECT(c, NO_MEMORY, "no memory for the fields of a plugin");
    for (uint32_t i = 0; i < n->attr.count && !c->b.status; i++) {
        const char *name = n->attr.at[i].name;
        if (strcmp(name, "plugin_version") == 0 || strcmp(name, "plugin_namespace") == 0) continue;
        const onnx_attr *a = call_attr(c, name); /* NULL: it refers to one that the function's caller leaves out */
        field[r.count_field].name = name;
        if (a && field_of(c, a, &field[r.count_field])) r.count_field++;
    }
    attrs_plugin attrs;
    if (!c->b.status) build_fail(&c->b, plugin_attrs(c->e, &c->b.g->a, &r, &attrs));
    if (c->b.status) return;
    const ir_node_id node = build_plugin(&c->b, c->in, c->count_in, &attrs, c->count_out);
    for (uint32_t i = 0; i < c->count_out; i++) c->out[i] = build_result(&c->b, node, i);
}

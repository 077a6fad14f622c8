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

/* ---- the call ---- */

/* Cuts an output that has room for the largest sizes down to those that it has. */
static ir_value_id cut_to(onnx_call *c, ir_value_id v, const infer_value *want)
{
    bool is_whole = true;
    attrs_slice *a = DEFAULTS(slice);
    dim start[SINTER_RANK_MAX];
    const ir_value x = *ir_value_at(c->b.g, v);
    a->step.count = x.rank;
    for (uint32_t i = 0; i < x.rank; i++) {
        start[i] = call_k(c, 0);
        a->step.at[i] = 1;
        is_whole = is_whole && x.dim[i] == want->dim[i];
    }
    if (is_whole) return v;
    a->start = build_dims(&c->b, start, x.rank);
    a->size = build_dims(&c->b, want->dim, x.rank);
    return build_slice(&c->b, v, a);
}

/* Sizes that the run tells are read from the outputs that have them; the other outputs are cut to them. */
static void cut_outputs(onnx_call *c, const attrs_plugin *attrs)
{
    infer_value in[PLUGIN_OPERANDS_MAX], out[PLUGIN_OPERANDS_MAX] = { { 0 } };
    plugin_sizes sizes = { 0 };
    plugin_use u = { 0 };
    ir_graph *g = c->b.g;
    for (uint32_t i = 0; i < c->count_in; i++) {
        const ir_value *v = c->in[i] ? ir_value_at(g, c->in[i]) : NULL;
        in[i] = (infer_value){ .dtype = v ? v->dtype : SINTER_DTYPE_NONE, .rank = v ? v->rank : 0 };
        if (v) memcpy(in[i].dim, v->dim, v->rank * sizeof *v->dim);
    }
    build_fail(&c->b, plugin_resolve(c->e, &g->a, attrs, &u));
    if (c->b.status) return;
    build_fail(&c->b, plugin_shapes_of(c->e, g->dims, &u, in, c->count_in, out, c->count_out, &sizes));
    if (c->b.status || !sizes.count) return;
    for (uint32_t i = 0; i < sizes.count; i++) {
        uint32_t count = 0;
        const uint32_t k = sizes.at[i].output;
        if (!call_sizes(c, c->out[k], "a plugin's size", sizes.at[i].most, &sizes.at[i].size, 1, &count)) return;
    }
    build_fail(&c->b, plugin_shapes_of(c->e, g->dims, &u, in, c->count_in, out, c->count_out, &sizes));
    for (uint32_t i = 0; i < c->count_out && !c->b.status; i++) c->out[i] = cut_to(c, c->out[i], &out[i]);
}

void call_plugin(onnx_call *c, const plugin_request *r)
{
    attrs_plugin attrs;
    if (!c->b.status) build_fail(&c->b, plugin_attrs(c->e, &c->b.g->a, r, &attrs));
    if (c->b.status) return;
    const ir_node_id node = build_plugin(&c->b, c->in, c->count_in, &attrs, c->count_out);
    for (uint32_t i = 0; i < c->count_out; i++) c->out[i] = build_result(&c->b, node, i);
    if (!c->b.status) cut_outputs(c, &attrs);
}

/* ---- nodes of models ---- */

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
                         .field = field,
                         .node = *n->name       ? n->name
                                 : n->out.count ? n->out.at[0]
                                                : "" };
    if (!field) REJECT(c, NO_MEMORY, "no memory for the fields of a plugin");
    for (uint32_t i = 0; i < n->attr.count && !c->b.status; i++) {
        const char *name = n->attr.at[i].name;
        if (strcmp(name, "plugin_version") == 0 || strcmp(name, "plugin_namespace") == 0) continue;
        const onnx_attr *a = call_attr(c, name); /* NULL: it refers to one that the function's caller leaves out */
        field[r.count_field].name = name;
        if (a && field_of(c, a, &field[r.count_field])) r.count_field++;
    }
    call_plugin(c, &r);
}

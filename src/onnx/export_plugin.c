/* SPDX-License-Identifier: Apache-2.0 */
/* export_plugin.c - calls of plugins: a node of the plugin's name, whose attributes are the fields. */
#include "onnx/exporter.h"
#include "ops/plugin.h"

/* Attributes have 32 bits: what does not fit is refused, not rounded. */
static bool fits(const double *at, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (at[i] == at[i] && (double)(float)at[i] != at[i]) return false;
    return true;
}

static void field(exporter *x, export_node *to, const sinter_plugin_field *f)
{
    const bool is_real = f->type == SINTER_PLUGIN_REAL || f->type == SINTER_PLUGIN_REALS;
    if (is_real && !fits(f->data, f->count)) {
        EXPORT_FAIL(x, UNSUPPORTED, "the field '%s' of a plugin has a number that is none of 32 bits", f->name);
        return;
    }
    switch (f->type) {
    case SINTER_PLUGIN_INT: node_int(x, to, f->name, *(const int64_t *)f->data); break;
    case SINTER_PLUGIN_REAL: node_float(x, to, f->name, *(const double *)f->data); break;
    case SINTER_PLUGIN_TEXT:
    case SINTER_PLUGIN_BYTES: node_bytes(x, to, f->name, f->data, (size_t)f->count); break;
    case SINTER_PLUGIN_INTS: node_ints(x, to, f->name, f->data, (uint32_t)f->count); break;
    case SINTER_PLUGIN_REALS: node_reals(x, to, f->name, f->data, (uint32_t)f->count); break;
    }
}

void export_plugin(exporter *x, const ir_node *n, const export_row *row)
{
    (void)row;
    plugin_use u = { 0 };
    x->status = plugin_resolve(x->e, &x->a, n->attrs, &u);
    if (x->status) return;
    export_node to = node_begin(x, u.plugin->name);
    node_ins(x, &to, n, 0);
    node_outs(x, &to, n);
    node_text(x, &to, "plugin_version", u.plugin->version);
    node_text(x, &to, "plugin_namespace", u.plugin->space);
    for (uint32_t i = 0; i < u.plugin->count_field; i++) field(x, &to, &u.field[i]);
    node_end(x, &to, x->scope);
}

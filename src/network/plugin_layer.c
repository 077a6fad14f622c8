/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_layer.c - layers that call a plugin: what they call, the values of fields, and the node. */
#include "network/lowering.h"

#include "onnx/quirks.h"
#include "ops/plugin.h"

#include <string.h>

/* Fields count against the limit as text; a number has at most so many characters. */
static size_t field_size(const sinter_plugin_field *f)
{
    const bool is_text = f->type == SINTER_PLUGIN_TEXT || f->type == SINTER_PLUGIN_BYTES;
    const bool is_one = f->type == SINTER_PLUGIN_INT || f->type == SINTER_PLUGIN_REAL;
    return size_mul(is_one ? 1 : f->count, is_text ? 1 : 8);
}

static sinter_status copy_field(sinter_network *net, env *e, const sinter_plugin_field *from, sinter_plugin_field *out)
{
    if (!from || !from->name || !*from->name) return FAIL(e, INVALID_ARG, "a field without a name");
    if (!plugin_type_name(from->type))
        return FAIL(e, INVALID_ARG, "the field '%.64s' has type %d, which is no sinter_plugin_type", from->name,
                    (int)from->type);
    const size_t size = field_size(from);
    if (size > PLUGIN_FIELDS_MAX)
        return FAIL(e, INVALID_ARG, "the field '%.64s' has %zu bytes, the most is %d", from->name, size,
                    PLUGIN_FIELDS_MAX);
    if (size && !from->data) return FAIL(e, INVALID_ARG, "the field '%.64s' has no value", from->name);
    *out = *from;
    if (from->type == SINTER_PLUGIN_INT || from->type == SINTER_PLUGIN_REAL) out->count = 1;
    char *data = arena_alloc(&net->a, size + 1, 8); /* a text ends with a NUL */
    out->name = network_text(net, from->name);
    out->data = data;
    if (!data || !out->name) return FAIL_MEMORY(e, "a field");
    if (size) memcpy(data, from->data, size);
    data[size] = 0;
    return SINTER_OK;
}

sinter_status network_set_field(sinter_layer *layer, env *e, const sinter_plugin_field *field)
{
    TRY(network_layer_check(e, layer));
    if (layer->kind != SINTER_LAYER_PLUGIN)
        return FAIL(e, INVALID_ARG, "layer '%s' (%s) has no fields: it calls no plugin", layer->name, layer->row->name);
    network_plugin_info *p = &layer->plugin;
    sinter_plugin_field own;
    TRY(copy_field(layer->net, e, field, &own));
    uint32_t at = 0;
    while (at < p->count_field && strcmp(p->field[at].name, own.name) != 0) at++;
    if (at == PLUGIN_FIELD_COUNT_MAX)
        return FAIL(e, INVALID_ARG, "layer '%s' has more than %d fields", layer->name, PLUGIN_FIELD_COUNT_MAX);
    if (!p->field) p->field = ARENA_NEW(&layer->net->a, sinter_plugin_field, PLUGIN_FIELD_COUNT_MAX);
    if (!p->field) return FAIL_MEMORY(e, "fields");
    p->field[at] = own;
    if (at == p->count_field) p->count_field++;
    network_layer_changed(layer);
    return SINTER_OK;
}

static bool copy_text(sinter_network *net, const char *from, const char **out)
{
    *out = from ? network_text(net, from) : NULL;
    return *out || !from;
}

sinter_layer *network_add_plugin(sinter_network *net, env *e, const network_plugin_info *plugin,
                                 sinter_network_tensor *const *in, uint32_t count, uint32_t count_out)
{
    network_plugin_info own = { 0 };
    if (!plugin->name || !*plugin->name) return (void)FAIL(e, INVALID_ARG, "the plugin's name is NULL or empty"), NULL;
    if (count_out < 1 || count_out > PLUGIN_OPERANDS_MAX || count > PLUGIN_OPERANDS_MAX)
        return (void)FAIL(e, INVALID_ARG,
                          "a call of plugin '%.64s' with %u inputs and %u outputs; at most %d each, "
                          "and one output at least",
                          plugin->name, count, count_out, PLUGIN_OPERANDS_MAX),
               NULL;
    if (!copy_text(net, plugin->name, &own.name) || !copy_text(net, plugin->version, &own.version) ||
        !copy_text(net, plugin->space, &own.space))
        return (void)FAIL_MEMORY(e, "a layer"), NULL;
    sinter_layer *layer = network_make(net, e, SINTER_LAYER_PLUGIN, in, count, count_out);
    if (layer) layer->plugin = own;
    return layer;
}

void lower_plugin(network_call *n)
{
    const network_plugin_info *p = &n->layer->plugin;
    const plugin_request r = { .name = p->name,
                               .version = p->version,
                               .space = p->space,
                               .field = p->field,
                               .count_field = p->count_field,
                               .node = n->layer->name };
    for (uint32_t i = 0; i < n->c.count_in; i++)
        if (name_is_list(n->c.in[i])) REJECT(&n->c, UNSUPPORTED, "input %u is no tensor of numbers", i);
    if (!n->c.b.status) call_plugin(&n->c, &r);
}

void network_hash_plugin(sha256 *h, const network_plugin_info *plugin)
{
    network_hash_text(h, plugin->name);
    network_hash_text(h, plugin->version ? plugin->version : "");
    network_hash_text(h, plugin->space ? plugin->space : "");
    for (uint32_t i = 0; i < plugin->count_field; i++) {
        const sinter_plugin_field *f = &plugin->field[i];
        network_hash_text(h, f->name);
        sha256_update(h, &f->type, sizeof f->type);
        sha256_update(h, &f->count, sizeof f->count);
        sha256_update(h, f->data, field_size(f));
    }
}

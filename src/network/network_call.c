/* SPDX-License-Identifier: Apache-2.0 */
/* network_call.c - what lowering functions share: weights as constants, and conversions of ONNX's operators. */
#include "network/network.h"

#include <string.h>

static bool is_plain_float(sinter_dtype type)
{
    return type == SINTER_DTYPE_F32 || network_is_narrower(type);
}

/* The type of weights before they are widened: a layer that obeys a narrower type takes f32 weights in that type. */
static sinter_dtype obeyed_by(const sinter_layer *layer, sinter_dtype weights)
{
    const sinter_dtype obeyed = network_obeyed(layer);
    return weights == SINTER_DTYPE_F32 && network_is_narrower(obeyed) ? obeyed : weights;
}

/* The narrowest type that holds both. NONE: no type yet. */
static sinter_dtype wider(sinter_dtype a, sinter_dtype b)
{
    return !a || a == b ? b : !b ? a : SINTER_DTYPE_F32;
}

void network_widen(network_call *n)
{
    sinter_dtype type = SINTER_DTYPE_NONE;
    if (n->layer->net->is_strongly_typed || n->c.b.status) return;
    for (uint32_t i = 0; i < n->c.count_in; i++) {
        if (!n->in[i] || name_is_list(n->in[i])) continue;
        const sinter_dtype own = call_type(&n->c, n->in[i]);
        if (is_plain_float(own)) type = wider(type, own);
        else if (dtype_is_float(own)) return;
    }
    for (uint32_t i = 0; i < n->layer->count_param; i++) {
        const sinter_weights *w = &n->layer->param[i].weights;
        if (w->count && is_plain_float(w->dtype)) type = wider(type, obeyed_by(n->layer, w->dtype));
    }
    n->type = type;
    for (uint32_t i = 0; i < n->c.count_in; i++)
        if (n->in[i] && !name_is_list(n->in[i]) && is_plain_float(call_type(&n->c, n->in[i])))
            n->in[i] = build_typed(&n->c.b, n->in[i], type);
}

void network_widen_sizes(network_call *n)
{
    uint32_t narrow = 0, wide = 0;
    network_widen(n);
    if (n->layer->net->is_strongly_typed || n->c.b.status) return;
    for (uint32_t i = 0; i < n->c.count_in; i++) {
        if (!n->in[i] || name_is_list(n->in[i])) continue;
        narrow += call_type(&n->c, n->in[i]) == SINTER_DTYPE_I32;
        wide += call_type(&n->c, n->in[i]) == SINTER_DTYPE_I64;
    }
    for (uint32_t i = 0; i < n->c.count_in && narrow && wide; i++)
        if (n->in[i] && !name_is_list(n->in[i]) && call_type(&n->c, n->in[i]) == SINTER_DTYPE_I32)
            n->in[i] = build_typed(&n->c.b, n->in[i], SINTER_DTYPE_I64);
}

ir_value_id network_weights(network_call *n, const char *name, uint32_t rank, const int64_t *d)
{
    const sinter_weights *w = &network_param_of(n->layer, name)->weights;
    if (!w->count || n->c.b.status) return 0;
    view v;
    if (!view_init(&v, w->dtype, rank, d, (void *)(uintptr_t)w->data) || view_count(&v) != w->count) {
        REJECT(&n->c, INVALID_ARG, "parameter %s has %lld elements, the layer's shape needs %lld", name,
               (long long)w->count, (long long)view_count(&v));
        return 0;
    }
    const char *given = network_param_of(n->layer, name)->name;
    const char *own = given ? given : arena_printf(&n->c.b.g->a, "%s.%s", n->layer->name, name);
    const ir_value_id id = build_const(&n->c.b, own, &v);
    if (id) ir_value_at(n->c.b.g, id)->initializer = w->dtype;
    const sinter_dtype type = n->type && is_plain_float(w->dtype) ? n->type : obeyed_by(n->layer, w->dtype);
    return id && type != w->dtype ? build_folded(&n->c.b, build_cast(&n->c.b, id, type)) : id;
}

ir_value_id network_i64s(network_call *n, const int64_t *at, uint32_t count)
{
    if (n->c.b.status) return 0;
    const ir_value_id id = ir_const_i64s(n->c.b.g, at, count);
    if (!id) n->c.b.status = FAIL_MEMORY(n->c.e, "a constant");
    return id;
}

/* ---- attributes ---- */

onnx_attr network_attr_int(const char *name, int64_t value)
{
    return (onnx_attr){ .name = name, .ref = "", .type = ONNX_INT, .i = value };
}

onnx_attr network_attr_real(const char *name, double value)
{
    return (onnx_attr){ .name = name, .ref = "", .type = ONNX_FLOAT, .f = (float)value };
}

onnx_attr network_attr_ints(const char *name, const attr_ints *list)
{
    onnx_attr a = { .name = name, .ref = "", .type = ONNX_INTS };
    a.ints.at = (int64_t *)(uintptr_t)list->at;
    a.ints.count = a.ints.capacity = list->count;
    return a;
}

onnx_attr network_attr_text(const char *name, const char *value)
{
    return (onnx_attr){ .name = name, .ref = "", .type = ONNX_STRING, .s = { value, strlen(value) } };
}

/* ---- operators ---- */

void network_ops(network_call *n, const char *type, const onnx_attr *attr, uint32_t count_attr, const ir_value_id *in,
                 uint32_t count_in, ir_value_id *out, uint32_t count_out)
{
    enum { OUT_MAX = 8 };
    static const char *const named[OUT_MAX] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    bool is_known = false;
    if (n->c.b.status) return;
    const op_row *row = importer_row(n->c.im, "", type, ONNX_OPSET_MAX, &is_known);
    if (!row || count_out > OUT_MAX) {
        REJECT(&n->c, INTERNAL, "operator %s is unknown", type);
        return;
    }
    onnx_node node = { .name = "", .type = type, .domain = "", .overload = "" };
    node.attr.at = (onnx_attr *)(uintptr_t)attr;
    node.attr.count = node.attr.capacity = count_attr;
    node.out.at = (const char **)(uintptr_t)named;
    node.out.count = node.out.capacity = count_out;
    ir_value_id made[2 * OUT_MAX] = { 0 };
    onnx_call one = n->c;
    one.node = &node;
    one.arg = row->arg;
    one.in = in;
    one.count_in = count_in;
    one.out = made;
    one.count_out = count_out;
    row->convert(&one);
    n->c.b.status = one.b.status;
    for (uint32_t i = 0; i < count_out; i++) out[i] = n->c.b.status ? 0 : made[i];
}

ir_value_id network_op(network_call *n, const char *type, const onnx_attr *attr, uint32_t count_attr,
                       const ir_value_id *in, uint32_t count_in)
{
    ir_value_id out = 0;
    network_ops(n, type, attr, count_attr, in, count_in, &out, 1);
    return out;
}

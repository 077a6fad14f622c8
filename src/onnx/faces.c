/* SPDX-License-Identifier: Apache-2.0 */
/* faces.c - a model's inputs and outputs as tensors of numbers. Text x is its bytes. A sequence x of tensors of rank R
 * is two tensors: x.values, the elements of all of them, one after the other, and x.shapes [N, R], their sizes. An
 * optional has one tensor more: x.has, whether there is a value. A sequence of maps is x.keys [K] and x.values [N, K];
 * a map is one of them.
 */
#include "onnx/model.h"

#include "base/text.h"

static bool push(arena *a, onnx_values *out, const onnx_value_info *v)
{
    onnx_value_info *slot = VEC_PUSH(a, out);
    if (slot) *slot = *v;
    return slot != NULL;
}

static onnx_value_info part_of(arena *a, const onnx_value_info *v, onnx_part part, const char *suffix, int32_t type)
{
    onnx_value_info p = { .name = arena_printf(a, "%s.%s", v->name, suffix), .is_tensor = true, .has_shape = true };
    p.part = part;
    p.of = v->name;
    p.type = type;
    if (!p.name) p.name = "";
    return p;
}

/* Text comes and goes as bytes, filled up with zeros: the last axis is the width. */
static void text_as_bytes(onnx_value_info *v)
{
    if (v->type != ONNX_TYPE_STRING || (v->has_shape && v->rank >= SINTER_RANK_MAX)) return;
    v->part = ONNX_TEXT;
    v->type = onnx_dtype_to(SINTER_DTYPE_U8);
    if (v->has_shape) v->dim[v->rank++] = (onnx_dim){ .param = "" };
}

static bool sequence_parts(arena *a, onnx_values *out, const onnx_value_info *v)
{
    onnx_value_info values = part_of(a, v, ONNX_VALUES, "values", v->type),
                    shapes = part_of(a, v, ONNX_SHAPES, "shapes", onnx_dtype_to(SINTER_DTYPE_I64));
    values.rank = 1;
    values.dim[0] = (onnx_dim){ .param = "" };
    shapes.rank = 2;
    shapes.dim[0] = (onnx_dim){ .param = "" };
    shapes.dim[1] = (onnx_dim){ .has_value = v->has_shape, .value = v->rank, .param = "" };
    shapes.is_last = !v->is_optional;
    return push(a, out, &values) && push(a, out, &shapes);
}

static bool map_parts(arena *a, onnx_values *out, const onnx_value_info *v)
{
    onnx_value_info keys = part_of(a, v, ONNX_KEYS, "keys", v->key_type),
                    values = part_of(a, v, ONNX_VALUES, "values", v->type);
    keys.rank = 1;
    keys.dim[0] = (onnx_dim){ .param = "" };
    text_as_bytes(&keys);
    keys.part = ONNX_KEYS;
    values.rank = 2;
    values.dim[0] = values.dim[1] = (onnx_dim){ .param = "" };
    keys.key_type = values.key_type = v->key_type;
    if (!v->is_sequence) { /* both have as many entries */
        values.dim[0] = (onnx_dim){ .has_value = true, .value = 1, .param = "" };
        keys.dim[0].param = values.dim[1].param = arena_printf(a, "%s.entries", v->name);
        values.is_last = true;
        if (!keys.dim[0].param) keys.dim[0].param = values.dim[1].param = "";
    }
    return push(a, out, &keys) && push(a, out, &values);
}

static bool value_parts(arena *a, onnx_values *out, const onnx_value_info *v)
{
    onnx_value_info own = *v;
    sinter_dtype known;
    const bool is_unknown =
        !v->has_type || (v->is_sequence && (!onnx_dtype_of(v->type, &known) || v->rank > SINTER_RANK_MAX));
    if (!is_unknown && !v->is_sequence && !v->key_type) text_as_bytes(&own);
    if (v->key_type && !is_unknown) return map_parts(a, out, v);
    if (is_unknown || (!v->is_sequence && !v->is_optional)) return push(a, out, &own);
    if (v->is_sequence) {
        if (!sequence_parts(a, out, v)) return false;
    } else {
        own.is_tensor = true;
        own.of = v->name;
        if (!push(a, out, &own)) return false;
    }
    onnx_value_info has = part_of(a, v, ONNX_HAS, "has", onnx_dtype_to(SINTER_DTYPE_BOOL));
    has.is_last = true;
    return !v->is_optional || push(a, out, &has);
}

bool onnx_values_expand(arena *a, onnx_values *list)
{
    bool has_more = false;
    for (uint32_t i = 0; i < list->count; i++) {
        const onnx_value_info *v = &list->at[i];
        has_more = has_more || v->is_sequence || v->is_optional || v->key_type || v->type == ONNX_TYPE_STRING;
    }
    if (!has_more) return true;
    onnx_values out = { 0 };
    for (uint32_t i = 0; i < list->count; i++)
        if (!value_parts(a, &out, &list->at[i])) return false;
    *list = out;
    return !a->failed;
}

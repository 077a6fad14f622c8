/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_label.c - LabelEncoder, CategoryMapper: each element is looked up in a list of keys, and gives the value
 * beside it. Keys and values are numbers or text. */
#include "onnx/importer.h"
#include "onnx/quirks.h"

#include <stdio.h>
#include <string.h>

enum { LABELS_MAX = 1 << 20 };

/* Keys or values: `word` where they are text, else `number`, dense. */
typedef struct labels {
    uint32_t count;
    const onnx_text *word;
    view number;
} labels;

static bool has(onnx_call *c, const char *prefix, const char *suffix, const onnx_attr **out)
{
    char name[48];
    (void)snprintf(name, sizeof name, "%s_%s", prefix, suffix);
    *out = call_attr(c, name);
    return *out && (*out)->type != 0;
}

static void view_of(onnx_call *c, sinter_dtype type, const void *data, uint32_t count, labels *out)
{
    const size_t size = (size_t)count * (sinter_dtype_bits(type) / 8);
    void *copy = arena_alloc(&c->b.g->a, size + 1, 16);
    if (!copy || !view_init(&out->number, type, 1, (const int64_t[]){ count }, copy))
        REJECT(c, NO_MEMORY, "out of memory");
    else memcpy(copy, data, size);
    out->count = count;
}

/* From PREFIX_strings, _int64s, _floats or _tensor. */
static bool labels_read(onnx_call *c, const char *prefix, labels *out)
{
    const onnx_attr *a;
    *out = (labels){ 0 };
    if (has(c, prefix, "strings", &a) && a->type == ONNX_STRINGS) {
        out->count = a->strings.count;
        out->word = a->strings.at;
    } else if (has(c, prefix, "int64s", &a) && a->type == ONNX_INTS) {
        view_of(c, SINTER_DTYPE_I64, a->ints.at, a->ints.count, out);
    } else if (has(c, prefix, "floats", &a) && a->type == ONNX_FLOATS) {
        view_of(c, SINTER_DTYPE_F32, a->floats.at, a->floats.count, out);
    } else if (has(c, prefix, "tensor", &a) && a->type == ONNX_TENSOR && a->t && a->t->type == ONNX_TYPE_STRING) {
        call_strings s;
        c->b.status = call_strings_read(c->im, a->t, &s);
        out->count = c->b.status ? 0 : s.count;
        out->word = c->b.status ? NULL : s.at;
    } else if (has(c, prefix, "tensor", &a) && a->type == ONNX_TENSOR && a->t && call_tensor(c, a->t, &out->number)) {
        out->count = (uint32_t)view_count(&out->number);
    } else {
        return false;
    }
    if (out->count > LABELS_MAX)
        REJECT(c, UNSUPPORTED, "%u labels; up to %d are supported", out->count, (int)LABELS_MAX);
    return !c->b.status;
}

/* The value of what is no key: one element like the values. */
static void default_read(onnx_call *c, const labels *values, labels *out)
{
    static const onnx_text unused = { "_Unused", 7 };
    const onnx_attr *a = call_attr(c, "default_tensor");
    *out = (labels){ .count = 1 };
    if (a && a->t && values->word) {
        call_strings s;
        c->b.status = call_strings_read(c->im, a->t, &s);
        if (!c->b.status && s.count != 1) REJECT(c, INVALID_MODEL, "default_tensor has %u elements", s.count);
        if (!c->b.status) out->word = s.at;
    } else if (a && a->t) {
        if (call_tensor(c, a->t, &out->number) &&
            (view_count(&out->number) != 1 || out->number.dtype != values->number.dtype))
            REJECT(c, INVALID_MODEL, "default_tensor is not one element like the values");
    } else if (values->word) {
        const onnx_attr *given = call_attr(c, "default_string");
        out->word = given && given->type == ONNX_STRING ? &given->s : &unused;
    } else {
        const sinter_dtype type = values->number.dtype;
        uint8_t *at = arena_alloc(&c->b.g->a, 8, 8);
        if (!at || !view_init(&out->number, type, 0, NULL, at)) REJECT(c, NO_MEMORY, "out of memory");
        else if (dtype_is_float(type)) dtype_store_f64(type, at, 0, call_real(c, "default_float", -0.0));
        else dtype_store_i64(type, at, 0, call_int(c, "default_int64", -1));
    }
}

/* The place among the keys, or their number where there is none. */
static ir_value_id place_of(onnx_call *c, ir_value_id x, const labels *keys)
{
    ir_value_id found = 0, at;
    if (keys->word) {
        at = quirk_text_find(c, quirk_text_bytes(c, x), keys->word, keys->count, &found);
    } else {
        if (call_list_at(c, x) || call_strings_at(c, x)) REJECT(c, INVALID_MODEL, "keys that are numbers, for text");
        if (c->b.status) return 0;
        const uint32_t rank = call_rank(c, x);
        const ir_value_id list = build_typed(&c->b, build_const(&c->b, NULL, &keys->number), call_type(c, x)),
                          wide = build_unsqueezed(&c->b, x, rank);
        ir_value_id same = build_eq(&c->b, wide, list);
        if (!c->b.status && dtype_is_float(call_type(c, x))) {
            const ir_value_id is_nan = build_is_nan(&c->b, list);
            same = build_or(&c->b, same, build_and(&c->b, build_is_nan(&c->b, wide), is_nan));
        }
        found = quirk_text_any(c, same, false);
        attrs_arg_reduce *a = DEFAULTS(arg_reduce);
        a->axis = rank;
        a->keep = 0;
        const ir_value_id n = build_typed(&c->b, same, SINTER_DTYPE_U8);
        at = build_emit(&c->b, OP_arg_reduce, a, &n, 1);
    }
    return build_where(&c->b, found, at, build_scalar_i64(&c->b, SINTER_DTYPE_I64, keys->count));
}

/* Values with the default behind them, picked. */
static void pick(onnx_call *c, const labels *values, const labels *other, ir_value_id at)
{
    const uint32_t count = values->count;
    if (values->word) {
        onnx_text *all = ARENA_NEW(&c->im->a, onnx_text, (size_t)count + 1);
        if (!all || c->b.status) return;
        memcpy(all, values->word, count * sizeof *all);
        all[count] = other->word[0];
        const call_strings s = { .rank = 1, .dim = { count + 1 }, .count = count + 1, .at = all };
        const ir_value_id table = quirk_text_bytes(c, call_strings_new(c->im, &s));
        c->out[0] = quirk_text_new(c, build_gather(&c->b, table, at, NULL));
        return;
    }
    view flat = values->number, last = other->number;
    const bool fits = view_init(&flat, flat.dtype, 1, (const int64_t[]){ count }, flat.data) &&
                      view_init(&last, flat.dtype, 1, (const int64_t[]){ 1 }, last.data);
    if (!fits) REJECT(c, NO_MEMORY, "out of memory");
    ir_value_id part[2] = { build_const(&c->b, NULL, &flat) };
    part[1] = build_const(&c->b, NULL, &last);
    const ir_value_id table = build_concat(&c->b, part, 2, &(attrs_concat){ .axis = 0 });
    c->out[0] = build_gather(&c->b, table, at, NULL);
}

void convert_label_encoder(onnx_call *c) /* arg 1: CategoryMapper */
{
    labels keys, values, other;
    const ir_value_id x = call_in(c, 0);
    if (c->arg) { /* cats_strings beside cats_int64s: which are the keys, the input says */
        const bool from_text = call_strings_at(c, x) != NULL;
        const onnx_attr *words = NULL, *ints = NULL;
        if (!has(c, "cats", "strings", &words) || !has(c, "cats", "int64s", &ints))
            REJECT(c, INVALID_MODEL, "cats_strings or cats_int64s is missing");
        if (c->b.status) return;
        labels texts = { .count = words->strings.count, .word = words->strings.at }, numbers = { 0 };
        view_of(c, SINTER_DTYPE_I64, ints->ints.at, ints->ints.count, &numbers);
        keys = from_text ? texts : numbers;
        values = from_text ? numbers : texts;
    } else if (c->version < 2) { /* classes_strings stand for 0, 1, 2 … */
        const bool from_text = call_strings_at(c, x) != NULL;
        labels words;
        if (!labels_read(c, "classes", &words) || !words.word) REJECT(c, INVALID_MODEL, "classes_strings is missing");
        int64_t *number = c->b.status ? NULL : ARENA_NEW(&c->b.g->a, int64_t, (size_t)words.count + 1);
        if (!number) return;
        for (uint32_t i = 0; i < words.count; i++) number[i] = i;
        labels numbers = { .count = words.count };
        if (!view_init(&numbers.number, SINTER_DTYPE_I64, 1, (const int64_t[]){ words.count }, number)) return;
        keys = from_text ? words : numbers;
        values = from_text ? numbers : words;
    } else {
        if (!labels_read(c, "keys", &keys)) REJECT(c, UNSUPPORTED, "there are no keys of a known kind");
        if (!c->b.status && !labels_read(c, "values", &values))
            REJECT(c, UNSUPPORTED, "there are no values of a known kind");
    }
    if (!c->b.status && (keys.count != values.count || !keys.count))
        REJECT(c, INVALID_MODEL, "%u keys for %u values", keys.count, values.count);
    if (!c->b.status) default_read(c, &values, &other);
    if (c->b.status) return;
    pick(c, &values, &other, place_of(c, x, &keys));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_map.c - operators on a map from labels or numbers to numbers: its keys [K] and its values [1, K] (faces.c). */
#include "onnx/quirks.h"

#include <string.h>

static const call_list *map_of(onnx_call *c)
{
    const call_list *m = call_list_at(c, call_in(c, 0));
    if (!m || !m->keys || !dim_is(c->b.g->dims, call_dim(c, m->item[0], 0), 1))
        REJECT(c, INVALID_MODEL, "input 0 is not one map");
    return c->b.status ? NULL : m;
}

/* The sum, for each row of flags [N, K], of the values that they choose: [1, N]. */
static ir_value_id chosen(onnx_call *c, ir_value_id flags, ir_value_id values)
{
    const ir_value_id part = build_where(&c->b, flags, values, build_scalar_like(&c->b, values, 0));
    return build_unsqueezed(&c->b, build_reduced(&c->b, reduce_kind_sum, part, (int64_t[]){ 1 }, 1, false), 0);
}

/* A constant of the graph's own. */
static ir_value_id integers(onnx_call *c, const int64_t *at, uint32_t count)
{
    view v;
    int64_t *copy = ARENA_NEW(&c->b.g->a, int64_t, count);
    if (!copy || !view_init(&v, SINTER_DTYPE_I64, 1, (const int64_t[]){ count }, copy))
        REJECT(c, NO_MEMORY, "out of memory for a vocabulary");
    if (c->b.status) return 0;
    memcpy(copy, at, count * sizeof *copy);
    return build_const(&c->b, NULL, &v);
}

/* The values of the keys in the vocabulary, in its order; 0 where there is none. */
void convert_dict_vectorizer(onnx_call *c)
{
    const onnx_attr *words = call_attr(c, "string_vocabulary"), *ints = call_attr(c, "int64_vocabulary");
    const call_list *m = map_of(c);
    if (!m) return;
    const ir_value_id keys = build_unsqueezed(&c->b, m->keys, 0), values = m->item[0];
    const bool is_text = call_type(c, keys) == SINTER_DTYPE_U8;
    ir_value_id known = 0, flags;
    if (is_text && words && words->type == ONNX_STRINGS && words->strings.count) {
        const call_strings s = {
            .rank = 1, .dim = { words->strings.count }, .count = words->strings.count, .at = words->strings.at
        };
        known = quirk_text_bytes(c, call_strings_new(c->im, &s));
    } else if (!is_text && ints && ints->type == ONNX_INTS && ints->ints.count) {
        known = integers(c, ints->ints.at, ints->ints.count);
    }
    if (!known) REJECT(c, INVALID_MODEL, "there is no vocabulary of the keys' type");
    if (c->b.status) return;
    known = build_unsqueezed(&c->b, known, 1);
    flags = is_text ? quirk_text_same(c, known, keys) : build_eq(&c->b, known, keys);
    c->out[0] = chosen(c, flags, values);
}

/* DENSE: the values in the order of their keys. SPARSE: each at the place that its key is. */
void convert_cast_map(onnx_call *c)
{
    ir_builder *b = &c->b;
    const bool is_sparse = strcmp(call_text(c, "map_form", "DENSE"), "SPARSE") == 0;
    const char *type = call_text(c, "cast_to", "TO_FLOAT");
    const call_list *m = map_of(c);
    if (!m) return;
    const ir_value_id keys = m->keys, values = m->item[0];
    const int64_t most = call_int(c, "max_map", 1);
    if (call_type(c, keys) != SINTER_DTYPE_I64) REJECT(c, INVALID_MODEL, "its keys are no integers");
    if (strcmp(type, "TO_FLOAT") != 0 && strcmp(type, "TO_INT64") != 0)
        REJECT(c, UNSUPPORTED, "attribute cast_to is '%s'", type);
    if (is_sparse && most < 1) REJECT(c, INVALID_MODEL, "attribute max_map is %lld", (long long)most);
    if (c->b.status) return;
    ir_value_id place = build_unsqueezed(b, keys, 0);
    if (!is_sparse) { /* how many keys are less */
        const ir_value_id less = build_typed(b, build_lt(b, build_unsqueezed(b, keys, 1), place), SINTER_DTYPE_I64);
        place = build_reduced(b, reduce_kind_sum, less, (int64_t[]){ 0 }, 1, true);
    }
    const dim count = is_sparse ? call_k(c, most) : call_dim(c, keys, 0);
    const ir_value_id flags = build_eq(b, build_unsqueezed(b, build_iota(b, count), 1), place);
    c->out[0] = build_typed(b, chosen(c, flags, values), type[3] == 'F' ? SINTER_DTYPE_F32 : SINTER_DTYPE_I64);
}

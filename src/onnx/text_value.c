/* SPDX-License-Identifier: Apache-2.0 */
/* text_value.c - text while a model runs. A tensor of text [N, M] is bytes: u8 [N, M, W], UTF-8, each filled up with
 * zeros to one width W. So a graph has numbers alone, and operators on text are made of operators on bytes. Operators
 * that move elements move the elements' places instead, and the bytes follow. */
#include "onnx/importer.h"
#include "onnx/quirks.h"

#include <string.h>

ir_value_id quirk_text_new(onnx_call *c, ir_value_id bytes)
{
    const ir_value_id v = c->b.status ? 0 : call_strings_new(c->im, &(call_strings){ .bytes = bytes });
    if (!v) REJECT(c, NO_MEMORY, "out of memory for text");
    return v;
}

static ir_value_id bytes_of_const(onnx_call *c, const call_strings *s)
{
    int64_t d[SINTER_RANK_MAX], width = 1;
    if (s->rank >= SINTER_RANK_MAX) REJECT(c, UNSUPPORTED, "text of rank %u", s->rank);
    for (uint32_t i = 0; i < s->count && !c->b.status; i++) {
        if ((int64_t)s->at[i].length > width) width = (int64_t)s->at[i].length;
        if (memchr(s->at[i].at, 0, s->at[i].length)) REJECT(c, UNSUPPORTED, "text with a zero byte");
    }
    if (c->b.status) return 0;
    memcpy(d, s->dim, sizeof d);
    d[s->rank] = width;
    uint8_t *at = ir_blob(c->b.g, size_mul(s->count ? s->count : 1, (size_t)width));
    if (!at) REJECT(c, NO_MEMORY, "out of memory for text");
    for (uint32_t i = 0; i < s->count && at; i++) memcpy(at + (size_t)i * (size_t)width, s->at[i].at, s->at[i].length);
    return at ? ir_const(c->b.g, NULL, SINTER_DTYPE_U8, s->rank + 1, d, at) : 0;
}

ir_value_id quirk_text_bytes(onnx_call *c, ir_value_id x)
{
    const call_strings *s = call_strings_at(c, x);
    if (!s) REJECT(c, INVALID_MODEL, "an input is no text");
    else if (s->number) REJECT(c, UNSUPPORTED, "text that is made of computed numbers");
    if (c->b.status) return 0;
    return s->bytes ? s->bytes : bytes_of_const(c, s);
}

ir_value_id quirk_text_wide(onnx_call *c, ir_value_id bytes, dim width)
{
    dim d[SINTER_RANK_MAX], begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, bytes, d);
    if (!rank || d[rank - 1] == width) return bytes;
    for (uint32_t i = 0; i < rank; i++) begin[i] = end[i] = call_k(c, 0);
    end[rank - 1] = dim_sub(c->b.g->dims, width, d[rank - 1]);
    return build_padded(&c->b, bytes, pad_mode_constant, begin, end, build_scalar_like(&c->b, bytes, 0));
}

dim quirk_text_width(const onnx_call *c, ir_value_id bytes)
{
    const uint32_t rank = call_rank(c, bytes);
    return rank ? call_dim(c, bytes, rank - 1) : DIM_NONE;
}

ir_value_id quirk_text_same(onnx_call *c, ir_value_id a, ir_value_id b)
{
    const dim width = dim_max(c->b.g->dims, quirk_text_width(c, a), quirk_text_width(c, b));
    const ir_value_id second = quirk_text_wide(c, b, width);
    const ir_value_id same = build_eq(&c->b, quirk_text_wide(c, a, width), second);
    return quirk_text_any(c, same, true);
}

ir_value_id quirk_text_any(onnx_call *c, ir_value_id flags, bool all)
{
    const int64_t last = c->b.status ? 0 : (int64_t)call_rank(c, flags) - 1;
    const ir_value_id n = build_typed(&c->b, flags, SINTER_DTYPE_U8);
    return build_typed(&c->b, build_reduced(&c->b, all ? reduce_kind_min : reduce_kind_max, n, &last, 1, false),
                       SINTER_DTYPE_BOOL);
}

ir_value_id quirk_text_there(onnx_call *c, ir_value_id bytes)
{
    return build_not(&c->b, build_eq(&c->b, bytes, build_scalar_like(&c->b, bytes, 0)));
}

ir_value_id quirk_text_sum(onnx_call *c, ir_value_id x, bool keeps)
{
    const int64_t last = c->b.status ? 0 : (int64_t)call_rank(c, x) - 1;
    return build_reduced(&c->b, reduce_kind_sum, x, &last, 1, keeps);
}

/* ---- places instead of elements ---- */
ir_value_id quirk_text_index(onnx_call *c, ir_value_id x)
{
    const call_strings *s = call_strings_at(c, x);
    dim d[SINTER_RANK_MAX];
    if (!s || c->b.status) return x;
    if (s->number) return s->number;
    uint32_t rank = s->rank;
    if (s->bytes) rank = call_shape(c, s->bytes, d) - 1;
    else
        for (uint32_t i = 0; i < rank; i++) d[i] = call_k(c, s->dim[i]);
    return build_shaped(&c->b, build_iota(&c->b, dim_product(c->b.g->dims, d, rank)), d, rank);
}

void quirk_move_bytes(onnx_call *c, onnx_convert convert)
{
    dim_table *t = c->b.g->dims;
    const ir_value_id *given = c->in;
    ir_value_id *in = ARENA_NEW(&c->im->a, ir_value_id, c->count_in),
                *part = ARENA_NEW(&c->im->a, ir_value_id, c->count_in);
    dim width = call_k(c, 1), count = call_k(c, 0);
    uint32_t parts = 0;
    if (!in || !part) REJECT(c, NO_MEMORY, "out of memory for text");
    for (uint32_t i = 0; i < c->count_in && !c->b.status; i++) {
        in[i] = given[i];
        if (!call_strings_at(c, given[i])) continue;
        const ir_value_id bytes = quirk_text_bytes(c, given[i]), at = quirk_text_index(c, given[i]);
        if (c->b.status) return;
        part[parts++] = bytes;
        width = dim_max(t, width, quirk_text_width(c, bytes));
        in[i] = parts == 1 ? at : build_add(&c->b, at, build_sizes(&c->b, &count, 1, true));
        dim d[SINTER_RANK_MAX];
        count = dim_add(t, count, dim_product(t, d, call_shape(c, bytes, d) - 1));
    }
    for (uint32_t i = 0; i < parts && !c->b.status; i++) {
        dim d[SINTER_RANK_MAX];
        const uint32_t rank = call_shape(c, part[i], d) - 1;
        part[i] = build_shaped(&c->b, quirk_text_wide(c, part[i], width), (dim[]){ dim_product(t, d, rank), width }, 2);
    }
    if (c->b.status) return;
    const ir_value_id all = parts == 1 ? part[0] : build_concat(&c->b, part, parts, &(attrs_concat){ .axis = 0 });
    c->in = in;
    convert(c);
    c->in = given;
    for (uint32_t i = 0; i < c->count_out && !c->b.status; i++)
        if (c->out[i]) c->out[i] = quirk_text_new(c, build_gather(&c->b, all, c->out[i], NULL));
}

/* ---- a vocabulary ---- */
ir_value_id quirk_text_which(onnx_call *c, ir_value_id bytes, const onnx_text *word, uint32_t count)
{
    const call_strings s = { .rank = 1, .dim = { count }, .count = count, .at = word };
    const ir_value_id words = bytes_of_const(c, &s);
    if (c->b.status) return 0;
    const uint32_t rank = call_rank(c, bytes);
    if (rank >= SINTER_RANK_MAX) REJECT(c, UNSUPPORTED, "text of rank %u", rank - 1);
    return quirk_text_same(c, build_unsqueezed(&c->b, bytes, rank - 1), words);
}

ir_value_id quirk_text_find(onnx_call *c, ir_value_id bytes, const onnx_text *word, uint32_t count,
                            ir_value_id *is_found)
{
    const ir_value_id same = quirk_text_which(c, bytes, word, count);
    if (c->b.status) return 0;
    *is_found = quirk_text_any(c, same, false);
    attrs_arg_reduce *a = DEFAULTS(arg_reduce);
    a->axis = call_rank(c, same) - 1;
    a->keep = 0;
    const ir_value_id n = build_typed(&c->b, same, SINTER_DTYPE_U8);
    return build_emit(&c->b, OP_arg_reduce, a, &n, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_words.c - operators on text: comparing, joining and cleaning. See text_value.c for what text is.
 *
 * What depends on the case of letters knows ASCII alone: other letters make the run fail. */
#include "onnx/importer.h"
#include "onnx/quirks.h"

#include <string.h>

void convert_equal(onnx_call *c)
{
    if (!call_strings_at(c, call_in(c, 0)) && !call_strings_at(c, call_in(c, 1))) {
        convert_binary(c);
        return;
    }
    const ir_value_id a = quirk_text_bytes(c, call_in(c, 0)), b = quirk_text_bytes(c, call_in(c, 1));
    c->out[0] = quirk_text_same(c, a, b);
}

static ir_value_id lookup(onnx_call *c, ir_value_id x, ir_value_id at)
{
    attrs_gather_elements *a = DEFAULTS(gather_elements);
    a->axis = c->b.status ? 0 : call_rank(c, x) - 1;
    return build_emit(&c->b, OP_gather_elements, a, (ir_value_id[]){ x, at }, 2);
}

/* Both with the shape of both. */
static void broadcast(onnx_call *c, ir_value_id *a, ir_value_id *b)
{
    dim da[SINTER_RANK_MAX], db[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    const uint32_t ra = call_shape(c, *a, da) - 1, rb = call_shape(c, *b, db) - 1, rank = ra > rb ? ra : rb;
    const dim wa = da[ra], wb = db[rb];
    for (uint32_t i = 0; i < rank; i++) {
        const dim x = i + ra >= rank ? da[i + ra - rank] : call_k(c, 1),
                  y = i + rb >= rank ? db[i + rb - rank] : call_k(c, 1);
        to[i] = dim_broadcast(c->b.g->dims, x, y);
    }
    to[rank] = wa;
    *a = build_expanded(&c->b, *a, to, rank + 1);
    to[rank] = wb;
    *b = build_expanded(&c->b, *b, to, rank + 1);
}

/* The j-th byte of the result is the j-th of the first, or behind its end one of the second. */
void convert_string_concat(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    ir_value_id a = quirk_text_bytes(c, call_in(c, 0)), b = quirk_text_bytes(c, call_in(c, 1));
    if (c->b.status) return;
    broadcast(c, &a, &b);
    const dim wa = quirk_text_width(c, a), wb = quirk_text_width(c, b), width = dim_add(t, wa, wb);
    if (c->b.status) return;
    const ir_value_id both = quirk_text_wide(c,
                                             build_concat(&c->b, (ir_value_id[]){ a, b }, 2,
                                                          &(attrs_concat){ .axis = call_rank(c, a) - 1 }),
                                             dim_add(t, width, call_k(c, 1))), /* with a zero at the end */
        length = quirk_text_sum(c, build_typed(&c->b, quirk_text_there(c, a), SINTER_DTYPE_I64), true),
                      at = build_iota(&c->b, width), wide = build_sizes(&c->b, &wa, 1, true),
                      behind = build_add(&c->b, build_sub(&c->b, at, length), wide),
                      end = build_sizes(&c->b, &width, 1, true), second = build_min(&c->b, behind, end),
                      from = build_where(&c->b, build_lt(&c->b, at, length), at, second);
    c->out[0] = quirk_text_new(c, lookup(c, both, from));
}

/* ---- StringNormalizer ---- */
static ir_value_id cased(onnx_call *c, ir_value_id x, bool is_upper)
{
    const ir_value_id low = build_scalar_like(&c->b, x, is_upper ? 'a' : 'A'),
                      high = build_scalar_like(&c->b, x, is_upper ? 'z' : 'Z'), is_not_above = build_le(&c->b, x, high),
                      is_letter = build_and(&c->b, build_ge(&c->b, x, low), is_not_above),
                      other = build_bit_xor(&c->b, x, build_scalar_like(&c->b, x, 32));
    return build_where(&c->b, is_letter, other, x);
}

void quirk_text_ascii(onnx_call *c, ir_value_id x)
{
    dim d[SINTER_RANK_MAX];
    const int64_t first = 0;
    const dim all = dim_product(c->b.g->dims, d, call_shape(c, x, d));
    const ir_value_id bytes = build_shaped(&c->b, x, &all, 1),
                      zero = build_unsqueezed(&c->b, build_scalar_like(&c->b, x, 0), 0),
                      flat = build_concat(&c->b, (ir_value_id[]){ bytes, zero }, 2, &(attrs_concat){ .axis = 0 }),
                      top = build_reduced(&c->b, reduce_kind_max, flat, &first, 1, false);
    quirk_guard(c, build_lt(&c->b, top, build_scalar_like(&c->b, x, 128)), true, GUARD_ASCII);
}

/* The same words in capital letters or in small ones, of constants. */
static const onnx_text *cased_words(onnx_call *c, const onnx_attr *a, bool is_lower)
{
    onnx_text *all = ARENA_NEW(&c->im->a, onnx_text, a->strings.count);
    for (uint32_t i = 0; all && i < a->strings.count; i++) {
        const onnx_text *from = &a->strings.at[i];
        char *copy = arena_text(&c->im->a, from->at, from->length);
        if (!copy) return NULL;
        for (size_t k = 0; k < from->length; k++) {
            if ((uint8_t)copy[k] >= 128) REJECT(c, UNSUPPORTED, "stop words that are not ASCII, in any case");
            if (is_lower && copy[k] >= 'A' && copy[k] <= 'Z') copy[k] = (char)(copy[k] + 32);
        }
        all[i] = (onnx_text){ copy, from->length };
    }
    return all;
}

void convert_string_normalizer(onnx_call *c)
{
    const onnx_attr *stop = call_attr(c, "stopwords");
    const char *action = call_text(c, "case_change_action", "NONE");
    const bool is_upper = strcmp(action, "UPPER") == 0, is_lower = strcmp(action, "LOWER") == 0,
               minds_case = call_int(c, "is_case_sensitive", 0) != 0, has_stop = stop && stop->strings.count;
    ir_value_id x = quirk_text_bytes(c, call_in(c, 0));
    dim d[SINTER_RANK_MAX];
    if (c->b.status) return;
    const uint32_t rank = call_shape(c, x, d);
    if (rank < 2 || rank > 3 || (rank == 3 && !dim_is(c->b.g->dims, d[0], 1)))
        REJECT(c, INVALID_MODEL, "the text is neither [C] nor [1, C]");
    if (!is_upper && !is_lower && strcmp(action, "NONE") != 0)
        REJECT(c, INVALID_MODEL, "attribute case_change_action is '%s'", action);
    if (c->b.status) return;
    if (rank == 3) x = build_squeezed(&c->b, x, 0);
    if (is_upper || is_lower || (has_stop && !minds_case)) quirk_text_ascii(c, x);
    if (has_stop) {
        const onnx_text *words = minds_case ? stop->strings.at : cased_words(c, stop, true);
        ir_value_id found = 0;
        if (!words) REJECT(c, NO_MEMORY, "out of memory for text");
        quirk_text_find(c, minds_case ? x : cased(c, x, false), words, stop->strings.count, &found);
        /* Where nothing is left, one text without letters is. */
        const ir_value_id keep = build_not(&c->b, found), n = build_typed(&c->b, keep, SINTER_DTYPE_I64),
                          left = quirk_text_sum(c, n, true),
                          none = build_eq(&c->b, left, build_scalar_like(&c->b, left, 0)),
                          row = build_expanded(&c->b, build_scalar_like(&c->b, x, 0),
                                               (dim[]){ call_k(c, 1), quirk_text_width(c, x) }, 2);
        attrs_compress *a = DEFAULTS(compress);
        a->axis = 0;
        ir_value_id in[2] = { build_concat(&c->b, (ir_value_id[]){ x, row }, 2, &(attrs_concat){ .axis = 0 }) };
        in[1] = build_concat(&c->b, (ir_value_id[]){ keep, none }, 2, &(attrs_concat){ .axis = 0 });
        x = build_emit(&c->b, OP_compress, a, in, 2);
    }
    if (is_upper || is_lower) x = cased(c, x, is_upper);
    c->out[0] = quirk_text_new(c, rank == 3 ? build_unsqueezed(&c->b, x, 0) : x);
}

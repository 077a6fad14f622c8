/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_words.c - operators on text: comparing, joining, splitting, and cleaning. See text_value.c for what text is.
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

static ir_value_id is_there(onnx_call *c, ir_value_id bytes) /* no filling */
{
    return build_not(&c->b, build_eq(&c->b, bytes, build_scalar_like(&c->b, bytes, 0)));
}

static ir_value_id sum_along(onnx_call *c, ir_value_id x, bool keeps)
{
    const int64_t last = c->b.status ? 0 : (int64_t)call_rank(c, x) - 1;
    return build_reduced(&c->b, reduce_kind_sum, x, &last, 1, keeps);
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
        length = sum_along(c, build_typed(&c->b, is_there(c, a), SINTER_DTYPE_I64), true),
                      at = build_iota(&c->b, width), wide = build_sizes(&c->b, &wa, 1, true),
                      behind = build_add(&c->b, build_sub(&c->b, at, length), wide),
                      end = build_sizes(&c->b, &width, 1, true), second = build_min(&c->b, behind, end),
                      from = build_where(&c->b, build_lt(&c->b, at, length), at, second);
    c->out[0] = quirk_text_new(c, lookup(c, both, from));
}

/* ---- StringSplit ---- */
typedef struct pieces {
    ir_value_id bytes;       /* [..., W] */
    ir_value_id kept, piece; /* [..., W]: bytes that come into a piece, and into which (from 0) */
    ir_value_id count;       /* [...] i64 */
} pieces;

static ir_value_id running(onnx_call *c, ir_value_id flags)
{
    attrs_cumulate *a = DEFAULTS(cumulate);
    const ir_value_id n = build_typed(&c->b, flags, SINTER_DTYPE_I64);
    a->axis = c->b.status ? 0 : call_rank(c, n) - 1;
    return build_emit(&c->b, OP_cumulate, a, &n, 1);
}

/* x, moved along the last axis by `by` places to the right (to the left where it is negative), filled with zeros. */
static ir_value_id moved(onnx_call *c, ir_value_id x, int64_t by)
{
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    const uint32_t rank = call_rank(c, x);
    for (uint32_t i = 0; i < rank; i++) begin[i] = end[i] = call_k(c, 0);
    begin[rank - 1] = call_k(c, by);
    end[rank - 1] = call_k(c, -by);
    return by ? build_padded(&c->b, x, pad_mode_constant, begin, end, build_scalar_like(&c->b, x, 0)) : x;
}

static ir_value_id one_of(onnx_call *c, ir_value_id x, const char *bytes, uint32_t count)
{
    ir_value_id any = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ir_value_id same = build_eq(&c->b, x, build_scalar_like(&c->b, x, (double)(uint8_t)bytes[i]));
        any = any ? build_or(&c->b, any, same) : same;
    }
    return any;
}

/* Runs of white space are between the pieces. Behind the last split that is allowed, it is part of the piece. */
static void split_at_space(onnx_call *c, pieces *p, int64_t most)
{
    static const char space[] = { ' ', '\t', '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x1f };
    const ir_value_id there = is_there(c, p->bytes), blank = one_of(c, p->bytes, space, sizeof space),
                      word = build_and(&c->b, there, build_not(&c->b, blank)),
                      before =
                          build_typed(&c->b, moved(c, build_typed(&c->b, word, SINTER_DTYPE_U8), 1), SINTER_DTYPE_BOOL),
                      starts = running(c, build_and(&c->b, word, build_not(&c->b, before)));
    ir_value_id last = starts;
    p->kept = word;
    if (most >= 0) {
        const ir_value_id limit = build_scalar_i64(&c->b, SINTER_DTYPE_I64, most + 1);
        last = build_min(&c->b, starts, limit);
        p->kept = build_or(&c->b, word, build_and(&c->b, there, build_ge(&c->b, starts, limit)));
    }
    p->piece = build_sub(&c->b, last, build_scalar_i64(&c->b, SINTER_DTYPE_I64, 1));
    const int64_t axis = c->b.status ? 0 : (int64_t)call_rank(c, last) - 1;
    const ir_value_id zero = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 0);
    p->count = build_max(&c->b, build_reduced(&c->b, reduce_kind_max, last, &axis, 1, false), zero);
}

/* Can one occurrence begin inside another? */
static bool overlaps_itself(const char *word, size_t length)
{
    for (size_t by = 1; by < length; by++)
        if (memcmp(word, word + by, length - by) == 0) return true;
    return false;
}

static void split_at_word(onnx_call *c, pieces *p, const onnx_text *word, int64_t most)
{
    ir_value_id found = 0, inside = 0;
    for (size_t i = 0; i < word->length && !c->b.status; i++) {
        const ir_value_id same = one_of(c, moved(c, p->bytes, -(int64_t)i), word->at + i, 1);
        found = found ? build_and(&c->b, found, same) : same;
    }
    ir_value_id number = running(c, found);
    if (most >= 0) {
        const ir_value_id limit = build_scalar_i64(&c->b, SINTER_DTYPE_I64, most);
        found = build_and(&c->b, found, build_le(&c->b, number, limit));
        number = build_min(&c->b, number, limit);
    }
    const ir_value_id flags = build_typed(&c->b, found, SINTER_DTYPE_U8);
    for (size_t i = 0; i < word->length && !c->b.status; i++) {
        const ir_value_id more = build_typed(&c->b, moved(c, flags, (int64_t)i), SINTER_DTYPE_BOOL);
        inside = inside ? build_or(&c->b, inside, more) : more;
    }
    const ir_value_id outside = build_not(&c->b, inside);
    p->kept = build_and(&c->b, is_there(c, p->bytes), outside);
    p->piece = number;
    const ir_value_id one = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 1);
    p->count = build_add(&c->b, sum_along(c, build_typed(&c->b, found, SINTER_DTYPE_I64), false), one);
}

/* [..., S, W]: the bytes of each piece from its own beginning on. */
static ir_value_id gathered(onnx_call *c, const pieces *p, dim most)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, p->bytes, d);
    const dim width = d[rank - 1];
    const ir_value_id number = build_unsqueezed(&c->b, build_iota(&c->b, most), 1),
                      same = build_eq(&c->b, build_unsqueezed(&c->b, p->piece, rank - 1), number),
                      own = build_and(&c->b, build_unsqueezed(&c->b, p->kept, rank - 1), same),
                      one = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 1), at = build_sub(&c->b, running(c, own), one),
                      aside = build_sizes(&c->b, &width, 1, true);
    d[rank - 1] = most;
    d[rank] = width;
    const ir_value_id bytes = build_expanded(&c->b, build_unsqueezed(&c->b, p->bytes, rank - 1), d, rank + 1);
    d[rank] = dim_add(c->b.g->dims, width, call_k(c, 1));
    attrs_scatter_elements *a = DEFAULTS(scatter_elements);
    a->axis = rank;
    const ir_value_id filling = build_expanded(&c->b, build_scalar_like(&c->b, p->bytes, 0), d, rank + 1),
                      place = build_where(&c->b, own, at, aside),
                      all = build_emit(&c->b, OP_scatter_elements, a, (ir_value_id[]){ filling, place, bytes }, 3);
    return build_part(&c->b, all, rank, call_k(c, 0), 1, width);
}

void convert_string_split(onnx_call *c)
{
    pieces p = { .bytes = quirk_text_bytes(c, call_in(c, 0)) };
    const onnx_attr *between = call_attr(c, "delimiter");
    const int64_t most = call_attr(c, "maxsplit") ? call_int(c, "maxsplit", 0) : -1;
    const bool at_space = !between || between->type == 0 || !between->s.length;
    if (c->b.status) return;
    if (call_rank(c, p.bytes) + 1 > SINTER_RANK_MAX) REJECT(c, UNSUPPORTED, "text of this rank");
    if (!at_space && overlaps_itself(between->s.at, between->s.length))
        REJECT(c, UNSUPPORTED, "the delimiter '%.40s', one of which may begin inside another", between->s.at);
    if (c->b.status) return;
    /* One byte more, so that there is one. */
    p.bytes = quirk_text_wide(c, p.bytes, dim_add(c->b.g->dims, quirk_text_width(c, p.bytes), call_k(c, 1)));
    if (at_space) split_at_space(c, &p, most);
    else split_at_word(c, &p, &between->s, most);
    if (c->b.status) return;
    dim d[SINTER_RANK_MAX], size = DIM_NONE;
    const uint32_t rank = call_shape(c, p.count, d);
    const dim all = dim_product(c->b.g->dims, d, rank), bound = quirk_text_width(c, p.bytes);
    const int64_t first = 0;
    uint32_t sizes = 0;
    const ir_value_id counts = build_shaped(&c->b, p.count, &all, 1),
                      zero = build_unsqueezed(&c->b, build_scalar_i64(&c->b, SINTER_DTYPE_I64, 0), 0),
                      flat = build_concat(&c->b, (ir_value_id[]){ counts, zero }, 2, &(attrs_concat){ .axis = 0 }),
                      longest = build_reduced(&c->b, reduce_kind_max, flat, &first, 1, false);
    if (!call_sizes(c, longest, "the number of pieces", bound, &size, 1, &sizes)) return;
    c->out[0] = quirk_text_new(c, gathered(c, &p, size));
    c->out[1] = p.count;
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

static void ascii_only(onnx_call *c, ir_value_id x)
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
    if (is_upper || is_lower || (has_stop && !minds_case)) ascii_only(c, x);
    if (has_stop) {
        const onnx_text *words = minds_case ? stop->strings.at : cased_words(c, stop, true);
        ir_value_id found = 0;
        if (!words) REJECT(c, NO_MEMORY, "out of memory for text");
        quirk_text_find(c, minds_case ? x : cased(c, x, false), words, stop->strings.count, &found);
        /* Where nothing is left, one text without letters is. */
        const ir_value_id keep = build_not(&c->b, found), n = build_typed(&c->b, keep, SINTER_DTYPE_I64),
                          left = sum_along(c, n, true), none = build_eq(&c->b, left, build_scalar_like(&c->b, left, 0)),
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

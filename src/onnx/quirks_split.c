/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_split.c - text in pieces: StringSplit, and ONNX Runtime's Tokenizer, which knows sets of characters instead of
 * regular expressions. See text_value.c for what text is. */
#include "onnx/importer.h"
#include "onnx/quirks.h"

#include <string.h>

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
    const ir_value_id there = quirk_text_there(c, p->bytes), blank = one_of(c, p->bytes, space, sizeof space),
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
    p->kept = build_and(&c->b, quirk_text_there(c, p->bytes), outside);
    p->piece = number;
    const ir_value_id one = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 1);
    p->count = build_add(&c->b, quirk_text_sum(c, build_typed(&c->b, found, SINTER_DTYPE_I64), false), one);
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

/* [..., S, W]: the pieces, where S is the largest number of them, and *most is S. */
static ir_value_id pieces_put(onnx_call *c, const pieces *p, dim *most)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, p->count, d);
    const dim all = dim_product(c->b.g->dims, d, rank), bound = quirk_text_width(c, p->bytes);
    const int64_t first = 0;
    uint32_t sizes = 0;
    const ir_value_id counts = build_shaped(&c->b, p->count, &all, 1),
                      zero = build_unsqueezed(&c->b, build_scalar_i64(&c->b, SINTER_DTYPE_I64, 0), 0),
                      flat = build_concat(&c->b, (ir_value_id[]){ counts, zero }, 2, &(attrs_concat){ .axis = 0 }),
                      longest = build_reduced(&c->b, reduce_kind_max, flat, &first, 1, false);
    return call_sizes(c, longest, "the number of pieces", bound, most, 1, &sizes) ? gathered(c, p, *most) : 0;
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
    dim most_pieces;
    const ir_value_id y = pieces_put(c, &p, &most_pieces);
    if (c->b.status) return;
    c->out[0] = quirk_text_new(c, y);
    c->out[1] = p.count;
}

/* ---- Tokenizer ---- */

enum { SET_BYTES = 256 };

/* What a regular expression of one set of characters matches: one of them, or a run of at least `least`. */
typedef struct token_set {
    uint8_t has[SET_BYTES]; /* bytes of 128 and more are all in it, or none is */
    uint32_t least;
    bool is_run;
} token_set;

static void set_range(uint8_t *has, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i <= to && i < SET_BYTES; i++) has[i] = 1;
}

static void set_invert(uint8_t *has)
{
    for (uint32_t i = 1; i < SET_BYTES; i++) has[i] = !has[i];
}

/* What follows a backslash: a class of ASCII, or a character that stands for itself. false: something else. */
static bool set_escaped(uint8_t *has, char which)
{
    static const char white[] = { '\t', '\n', '\f', '\r', ' ' };
    uint8_t part[SET_BYTES] = { 0 };
    const char small = (char)(which | 32);
    if (which == 't' || which == 'n' || which == 'r' || which == 'f' || which == 'v') {
        static const char from[] = "tnrfv", to[] = { '\t', '\n', '\r', '\f', '\v' };
        has[(uint8_t)to[strchr(from, which) - from]] = 1;
        return true;
    }
    const bool is_letter = (small >= 'a' && small <= 'z') || (which >= '0' && which <= '9') || (uint8_t)which >= 128;
    if (!is_letter) {
        has[(uint8_t)which] = 1;
        return which != 0;
    }
    if (small == 'd' || small == 'w') set_range(part, '0', '9');
    if (small == 'w') {
        set_range(part, 'a', 'z');
        set_range(part, 'A', 'Z');
        part['_'] = 1;
    }
    for (uint32_t i = 0; small == 's' && i < sizeof white; i++) part[(uint8_t)white[i]] = 1;
    if (small != which) set_invert(part);
    for (uint32_t i = 0; i < SET_BYTES; i++) has[i] |= part[i];
    return small == 'd' || small == 'w' || small == 's';
}

/* A set in brackets, behind the first of them. NULL: none that is known. */
static const char *set_bracket(uint8_t *has, const char *at)
{
    const bool is_not = *at == '^';
    const char *const first = at += is_not;
    for (; *at && (*at != ']' || at == first); at++) {
        if ((uint8_t)*at >= 128 || (*at == '[' && at[1] == ':')) return NULL;
        if (*at == '\\') {
            if (!set_escaped(has, *++at)) return NULL;
        } else if (at[1] == '-' && at[2] && at[2] != ']') {
            if ((uint8_t)at[2] >= 128 || at[2] == '\\' || at[2] < *at) return NULL;
            set_range(has, (uint8_t)at[0], (uint8_t)at[2]);
            at += 2;
        } else {
            has[(uint8_t)*at] = 1;
        }
    }
    if (is_not) set_invert(has);
    return *at == ']' ? at + 1 : NULL;
}

/* One character of an expression. NULL: something else. */
static const char *set_one(uint8_t *has, const char *at)
{
    if (*at == '[') return set_bracket(has, at + 1);
    if (*at == '\\') return set_escaped(has, at[1]) ? at + 2 : NULL;
    if (*at == '.') {
        set_invert(has);
        has['\n'] = 0;
        return at + 1;
    }
    if (!*at || strchr("*+?()|^${}", *at) || (uint8_t)*at >= 128) return NULL;
    has[(uint8_t)*at] = 1;
    return at + 1;
}

/* `s`, `s+` or `sss+` of one set s; `\b` around words. */
static bool set_read(const char *at, token_set *s)
{
    uint8_t word[SET_BYTES] = { 0 };
    (void)set_escaped(word, 'w');
    *s = (token_set){ 0 };
    const bool is_word = strncmp(at, "\\b", 2) == 0;
    for (at += 2 * is_word; *at && *at != '+' && strcmp(at, "\\b") != 0; s->least++) {
        uint8_t has[SET_BYTES] = { 0 };
        at = set_one(has, at);
        if (!at || (s->least && memcmp(has, s->has, sizeof has) != 0)) return false;
        memcpy(s->has, has, sizeof has);
    }
    s->is_run = *at == '+';
    at += s->is_run;
    if (is_word) at += strcmp(at, "\\b") == 0 ? 2 : 0;
    if (is_word && (!s->is_run || memcmp(word, s->has, sizeof word) != 0)) return false;
    return !*at && s->least && (s->is_run || s->least == 1);
}

static ir_value_id in_set(onnx_call *c, ir_value_id bytes, const uint8_t *has)
{
    uint8_t *copy = ir_blob(c->b.g, SET_BYTES);
    if (!copy) REJECT(c, NO_MEMORY, "out of memory for text");
    if (c->b.status) return 0;
    memcpy(copy, has, SET_BYTES);
    const ir_value_id table = ir_const(c->b.g, NULL, SINTER_DTYPE_U8, 1, (const int64_t[]){ SET_BYTES }, copy);
    return build_gather(&c->b, table, build_typed(&c->b, bytes, SINTER_DTYPE_I32), &(attrs_gather){ .axis = 0 });
}

/* Runs of bytes in the set that are at least so long: what is left of it where it is made smaller, then larger. */
static ir_value_id long_runs(onnx_call *c, ir_value_id in, uint32_t least)
{
    ir_value_id first = in, all = 0;
    for (uint32_t i = 1; i < least; i++) first = build_min(&c->b, first, moved(c, in, -(int64_t)i));
    for (uint32_t i = 0; i < least; i++) {
        const ir_value_id more = moved(c, first, (int64_t)i);
        all = all ? build_max(&c->b, all, more) : more;
    }
    return all;
}

static void tokens_of(onnx_call *c, pieces *p, const token_set *s, uint32_t least)
{
    const int64_t last = (int64_t)call_rank(c, p->bytes) - 1;
    const ir_value_id in = long_runs(c, in_set(c, p->bytes, s->has), least), one = build_scalar_like(&c->b, in, 1);
    ir_value_id starts;
    if (s->is_run) {
        starts = build_gt(&c->b, in, moved(c, in, 1));
    } else { /* the first byte of each character */
        uint8_t first[SET_BYTES] = { 0 };
        set_range(first, 1, 127);
        set_range(first, 192, 255);
        starts = build_eq(&c->b, build_min(&c->b, in, in_set(c, p->bytes, first)), one);
    }
    const ir_value_id number = running(c, starts), unit = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 1);
    p->kept = build_eq(&c->b, in, one);
    p->piece = build_sub(&c->b, number, unit);
    p->count = c->b.status ? 0 : build_reduced(&c->b, reduce_kind_max, number, &last, 1, false);
}

/* What lies between separators, or what an expression matches; an empty separator: each character. */
static void token_set_of(onnx_call *c, token_set *s)
{
    const onnx_attr *between = call_attr(c, "separators");
    const char *match = call_text(c, "tokenexp", "");
    *s = (token_set){ .least = 1 };
    if (between && between->strings.count == 1 && !between->strings.at[0].length) {
        set_range(s->has, 1, SET_BYTES - 1);
    } else if (between && between->strings.count) {
        s->is_run = true;
        for (uint32_t i = 0; i < between->strings.count; i++) {
            token_set one;
            if (!set_read(between->strings.at[i].at, &one) || one.least > 1)
                REJECT(c, UNSUPPORTED, "the separator '%.40s', which is no set of characters",
                       between->strings.at[i].at);
            if (c->b.status) return;
            for (uint32_t k = 0; k < SET_BYTES; k++) s->has[k] |= one.has[k];
        }
        set_invert(s->has);
    } else if (!set_read(match, s)) {
        REJECT(c, UNSUPPORTED, "the expression '%.40s', which is no run of one set of characters", match);
    }
}

static ir_value_id one_text(onnx_call *c, const char *at, size_t length)
{
    uint8_t *copy = ir_blob(c->b.g, length + 1);
    if (!copy) REJECT(c, NO_MEMORY, "out of memory for text");
    if (c->b.status) return 0;
    memcpy(copy, at, length);
    return ir_const(c->b.g, NULL, SINTER_DTYPE_U8, 1, (const int64_t[]){ (int64_t)length }, copy);
}

/* Texts `with` where a flag, [..., S], is true. */
static ir_value_id replaced(onnx_call *c, ir_value_id texts, ir_value_id flag, ir_value_id with)
{
    const dim width = dim_max(c->b.g->dims, quirk_text_width(c, texts), quirk_text_width(c, with));
    const ir_value_id other = quirk_text_wide(c, with, width), wide = quirk_text_wide(c, texts, width);
    return build_where(&c->b, build_unsqueezed(&c->b, flag, c->b.status ? 0 : call_rank(c, flag)), other, wide);
}

/* A mark before the first token, and one behind the last. */
static ir_value_id marked(onnx_call *c, ir_value_id y, const pieces *p, dim *most)
{
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    const uint32_t rank = call_rank(c, y);
    for (uint32_t i = 0; i < rank; i++) begin[i] = end[i] = call_k(c, 0);
    begin[rank - 2] = end[rank - 2] = call_k(c, 1);
    y = build_padded(&c->b, y, pad_mode_constant, begin, end, build_scalar_like(&c->b, y, 0));
    *most = dim_add(c->b.g->dims, *most, call_k(c, 2));
    const ir_value_id at = build_iota(&c->b, *most), one = build_scalar_like(&c->b, at, 1),
                      behind = build_add(&c->b, build_unsqueezed(&c->b, p->count, rank - 2), one),
                      is_first = build_eq(&c->b, at, build_scalar_like(&c->b, at, 0)),
                      is_behind = build_eq(&c->b, at, behind);
    y = replaced(c, y, is_first, one_text(c, "\x02", 1));
    return replaced(c, y, is_behind, one_text(c, "\x03", 1));
}

void convert_tokenizer(onnx_call *c)
{
    pieces p = { .bytes = quirk_text_bytes(c, call_in(c, 0)) };
    token_set set;
    const char *filling = call_text(c, "pad_value", "");
    const int64_t least = call_int(c, "mincharnum", 1);
    const bool is_marked = call_int(c, "mark", 0) != 0;
    if (c->b.status) return;
    const uint32_t rank = call_rank(c, p.bytes);
    token_set_of(c, &set);
    if (rank != 2 && rank != 3) REJECT(c, INVALID_MODEL, "the text is neither [C] nor [N, C]");
    if (least < 1 || least > SET_BYTES || set.least > SET_BYTES || (!set.is_run && least > 1))
        REJECT(c, UNSUPPORTED, "tokens of at least %lld characters", (long long)least);
    if (c->b.status) return;
    if (least > 1 && set.has[SET_BYTES - 1]) quirk_text_ascii(c, p.bytes);
    /* One byte more, so that there is one. */
    p.bytes = quirk_text_wide(c, p.bytes, dim_add(c->b.g->dims, quirk_text_width(c, p.bytes), call_k(c, 1)));
    tokens_of(c, &p, &set, least > set.least ? (uint32_t)least : set.least);
    if (c->b.status) return;
    dim most;
    ir_value_id y = pieces_put(c, &p, &most);
    if (c->b.status) return;
    ir_value_id count = build_unsqueezed(&c->b, p.count, rank - 1);
    if (is_marked) {
        y = marked(c, y, &p, &most);
        count = build_add(&c->b, count, build_scalar_like(&c->b, count, 2));
    }
    if (c->b.status) return;
    if (*filling) {
        const ir_value_id is_empty = build_ge(&c->b, build_iota(&c->b, most), count);
        y = replaced(c, y, is_empty, one_text(c, filling, strlen(filling)));
    }
    c->out[0] = quirk_text_new(c, y);
}

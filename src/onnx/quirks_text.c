/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_text.c - text. Graphs and engines have numbers alone, so text exists only while the model is read. Constant
 * text becomes numbers by a Cast, and constant numbers become text. Text that a Cast makes of computed numbers stands
 * for these numbers: a Cast back is a Cast of the numbers themselves, and operators that move elements move the
 * numbers. */
#include "onnx/importer.h"
#include "onnx/quirks.h"
#include "onnx/wire.h"

#include <math.h>
#include <string.h>

enum { STRINGS_MAX = 1 << 20, STRING_FIELD = 6 };

ir_value_id call_strings_new(importer *im, const call_strings *s)
{
    call_strings *copy = ARENA_NEW(&im->a, call_strings, 1);
    call_list *l = copy && im->list.count < NAME_INDEX - 2 ? VEC_PUSH(&im->a, &im->list) : NULL;
    if (!l) return 0;
    *copy = *s;
    *l = (call_list){ .strings = copy };
    return NAME_LIST | (im->list.count - 1);
}

sinter_status call_strings_read(importer *im, const onnx_tensor *t, call_strings *out)
{
    int64_t count = 1;
    *out = (call_strings){ .rank = t->rank };
    for (uint32_t i = 0; i < t->rank; i++) {
        out->dim[i] = t->dim[i];
        if (t->dim[i] < 0 || !i64_mul(count, t->dim[i], &count) || count > STRINGS_MAX)
            return FAIL(im->e, UNSUPPORTED, "text of more than %d elements", (int)STRINGS_MAX);
    }
    onnx_text *at = ARENA_NEW(&im->a, onnx_text, (size_t)count);
    if (!at) return FAIL_MEMORY(im->e, "text");
    wire w = wire_of(t->span, t->span_size);
    for (wire_field f; wire_next(&w, &f);) {
        if (f.number != STRING_FIELD || f.type != WIRE_BYTES) continue;
        if (out->count == (uint32_t)count) return FAIL(im->e, INVALID_MODEL, "more texts than the shape says");
        const char *copy = arena_text(&im->a, (const char *)f.at, f.size);
        if (!copy) return FAIL_MEMORY(im->e, "text");
        at[out->count++] = (onnx_text){ copy, f.size };
    }
    out->at = at;
    if (w.is_bad || out->count != (uint32_t)count)
        return FAIL(im->e, INVALID_MODEL, "%u texts, the shape wants %lld", out->count, (long long)count);
    return SINTER_OK;
}

ir_value_id quirk_constant_text(onnx_call *c, const onnx_attr *a)
{
    call_strings s = { .count = 1, .at = &a->s };
    if (a->type == ONNX_TENSOR) c->b.status = call_strings_read(c->im, a->t, &s);
    else if (a->type == ONNX_STRINGS)
        s = (call_strings){ .rank = 1, .dim = { a->strings.count }, .count = a->strings.count, .at = a->strings.at };
    const ir_value_id v = c->b.status ? 0 : call_strings_new(c->im, &s);
    if (!v && !c->b.status) c->b.status = FAIL_MEMORY(c->e, "text");
    return v;
}

static bool is_word(const char *at, const char *word)
{
    for (; *at && *word; at++, word++)
        if ((*at | 32) != *word) return false;
    return !*at && !*word;
}

/* "3.14", "1e-5", "-INF", "nan": as ONNX's Cast has it. */
static bool number_of(const char *word, double *real, int64_t *integer)
{
    const char *digits = word + (*word == '+' || *word == '-');
    scan s = scan_of(word + (*word == '+'), strlen(word + (*word == '+')));
    const double sign = *word == '-' ? -1 : 1;
    *real = is_word(digits, "inf") ? sign * (double)INFINITY : (double)NAN;
    *integer = 0;
    if (is_word(digits, "inf") || is_word(digits, "nan")) return true;
    if (!scan_f64(&s, real) || s.at != s.end) return false;
    s = scan_of(word + (*word == '+'), strlen(word + (*word == '+')));
    if (!scan_i64(&s, integer) || s.at != s.end) *integer = fabs(*real) < 0x1p63 ? (int64_t)*real : 0;
    return true;
}

static ir_value_id numbers_of(onnx_call *c, const call_strings *s, sinter_dtype type)
{
    view v;
    void *at = arena_alloc(&c->b.g->a, (size_t)s->count * 8 + 8, 64);
    if (!at || !view_init(&v, type, s->rank, s->dim, at)) {
        REJECT(c, NO_MEMORY, "out of memory for text");
        return 0;
    }
    for (uint32_t i = 0; i < s->count && !c->b.status; i++) {
        double real;
        int64_t integer;
        if (!number_of(s->at[i].at, &real, &integer))
            REJECT(c, INVALID_MODEL, "text '%.60s' is no number", s->at[i].at);
        else if (dtype_is_float(type)) dtype_store_f64(type, at, i, real);
        else dtype_store_i64(type, at, i, integer);
    }
    return build_const(&c->b, NULL, &v);
}

/* Shortest text that reads as the same number: 9 digits of a float, 17 of a double. */
static ir_value_id text_of(onnx_call *c, const view *v)
{
    call_strings s = { .rank = v->rank, .count = (uint32_t)view_count(v) };
    onnx_text *at = view_count(v) <= STRINGS_MAX ? ARENA_NEW(&c->im->a, onnx_text, s.count) : NULL;
    if (!at) {
        REJECT(c, NO_MEMORY, "out of memory for text");
        return 0;
    }
    memcpy(s.dim, v->dim, sizeof s.dim);
    for (uint32_t i = 0; i < s.count; i++) {
        const double x = dtype_load_f64(v->dtype, v->data, i);
        const char *made = !dtype_is_float(v->dtype)
                               ? arena_printf(&c->im->a, "%lld", (long long)dtype_load_i64(v->dtype, v->data, i))
                           : isnan(x) ? "NaN"
                           : isinf(x) ? (x > 0 ? "INF" : "-INF")
                                      : arena_printf(&c->im->a, "%.*g", v->dtype == SINTER_DTYPE_F64 ? 17 : 9, x);
        if (!made) break;
        at[i] = (onnx_text){ made, strlen(made) };
    }
    s.at = at;
    const ir_value_id value = c->im->a.failed ? 0 : call_strings_new(c->im, &s);
    if (!value) REJECT(c, NO_MEMORY, "out of memory for text");
    return value;
}

ir_value_id quirk_text_numbers(const onnx_call *c, ir_value_id x)
{
    const call_strings *s = call_strings_at(c, x);
    return s && s->number ? s->number : x;
}

static ir_value_id text_later(onnx_call *c, ir_value_id number)
{
    const ir_value_id value = c->b.status ? 0 : call_strings_new(c->im, &(call_strings){ .number = number });
    if (!value) REJECT(c, NO_MEMORY, "out of memory for text");
    return value;
}

bool quirk_cast_text(onnx_call *c, ir_value_id x, int64_t to)
{
    const call_strings *s = call_strings_at(c, x);
    view v;
    if (!s && to != ONNX_TYPE_STRING) return false;
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    if (s && s->bytes && to != ONNX_TYPE_STRING) REJECT(c, UNSUPPORTED, "numbers of text that the run has");
    if (c->b.status) return true;
    if (s) c->out[0] = to == ONNX_TYPE_STRING ? x : numbers_of(c, s, call_dtype(c, to));
    else c->out[0] = ir_const_view(c->b.g, x, &v) && ir_look(c->b.g, x) ? text_of(c, &v) : text_later(c, x);
    return true;
}

void quirk_move_text(onnx_call *c, onnx_convert convert)
{
    const ir_value_id *given = c->in;
    ir_value_id *in = ARENA_NEW(&c->im->a, ir_value_id, c->count_in);
    sinter_dtype type = SINTER_DTYPE_NONE;
    if (!in) REJECT(c, NO_MEMORY, "out of memory for text");
    for (uint32_t i = 0; i < c->count_in; i++) {
        const call_strings *s = call_strings_at(c, given[i]);
        if (!s || s->number) continue;
        quirk_move_bytes(c, convert);
        return;
    }
    for (uint32_t i = 0; i < c->count_in && !c->b.status; i++) {
        in[i] = quirk_text_numbers(c, given[i]);
        if (in[i] == given[i]) continue;
        if (type && call_type(c, in[i]) != type)
            REJECT(c, UNSUPPORTED, "text that was cast from %s, with text that was cast from %s",
                   sinter_dtype_name(type), sinter_dtype_name(call_type(c, in[i])));
        type = call_type(c, in[i]);
    }
    if (c->b.status) return;
    c->in = in;
    convert(c);
    c->in = given;
    for (uint32_t i = 0; i < c->count_out && !c->b.status; i++)
        if (c->out[i]) c->out[i] = text_later(c, c->out[i]);
}

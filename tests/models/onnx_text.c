/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_text.c - a recursive-descent reader of ONNX's text form. */
#include "onnx_text.h"

#include "core/dtype.h"
#include "test.h"

#include <ctype.h>
#include <math.h>

enum { NAME_SIZE = 128 };

static const struct type_name {
    const char *name;
    int64_t onnx;
    sinter_dtype dtype;
} types[] = { { "float", 1, SINTER_DTYPE_F32 },
              { "uint8", 2, SINTER_DTYPE_U8 },
              { "int8", 3, SINTER_DTYPE_I8 },
              { "uint16", 4, SINTER_DTYPE_U16 },
              { "int16", 5, SINTER_DTYPE_I16 },
              { "int32", 6, SINTER_DTYPE_I32 },
              { "int64", 7, SINTER_DTYPE_I64 },
              { "string", 8, SINTER_DTYPE_NONE },
              { "bool", 9, SINTER_DTYPE_BOOL },
              { "float16", 10, SINTER_DTYPE_F16 },
              { "double", 11, SINTER_DTYPE_F64 },
              { "uint32", 12, SINTER_DTYPE_U32 },
              { "uint64", 13, SINTER_DTYPE_U64 },
              { "bfloat16", 16, SINTER_DTYPE_BF16 },
              { "float8e4m3fn", 17, SINTER_DTYPE_F8E4M3FN },
              { "float8e5m2", 19, SINTER_DTYPE_F8E5M2 },
              { "uint4", 21, SINTER_DTYPE_U4 },
              { "int4", 22, SINTER_DTYPE_I4 } };

static void skip(onnx_text *t)
{
    while (isspace((unsigned char)*t->at) || *t->at == '#') {
        if (*t->at == '#') t->at += strcspn(t->at, "\n");
        else t->at++;
    }
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

bool onnx_text_take(onnx_text *t, const char *word)
{
    skip(t);
    const size_t length = strlen(word);
    if (t->wrong || strncmp(t->at, word, length) != 0) return false;
    if (is_word_char(word[0]) && is_word_char(t->at[length])) return false;
    t->at += length;
    return true;
}

static void want(onnx_text *t, const char *word)
{
    if (!onnx_text_take(t, word) && !t->wrong) t->wrong = word;
}

void onnx_text_name(onnx_text *t, char *out, size_t size)
{
    skip(t);
    size_t n = 0;
    const bool is_quoted = *t->at == '"';
    if (is_quoted) t->at++;
    while (*t->at && (is_quoted ? *t->at != '"' : is_word_char(*t->at)) && n + 1 < size) out[n++] = *t->at++;
    out[n] = 0;
    if (is_quoted) want(t, "\"");
    else if (!n && !t->wrong) t->wrong = "a name";
}

static bool next_is(onnx_text *t, char c)
{
    skip(t);
    return !t->wrong && *t->at == c;
}

static double number(onnx_text *t, int64_t *integer)
{
    skip(t);
    char *end, *end_integer;
    const double value = strtod(t->at, &end);
    const bool is_negative = *t->at == '-';
    *integer = is_negative ? strtoll(t->at, &end_integer, 10) : (int64_t)strtoull(t->at, &end_integer, 10);
    if (end != end_integer && isfinite(value)) *integer = (int64_t)value;
    if (end == t->at && !t->wrong) t->wrong = "a number";
    t->at = end;
    return value;
}

static const struct type_name *type_name(onnx_text *t)
{
    skip(t);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (onnx_text_take(t, types[i].name)) return &types[i];
    if (!t->wrong) t->wrong = "a type";
    return &types[0];
}

/* ---- types of values ---- */
static bytes tensor_type(onnx_text *t)
{
    bytes out = { 0 }, shape = { 0 };
    bytes_int(&out, 1, type_name(t)->onnx);
    bool has_shape = true;
    if (onnx_text_take(t, "[")) {
        has_shape = !next_is(t, ']');
        while (has_shape && !next_is(t, ']') && !t->wrong) {
            bytes d = { 0 };
            char name[NAME_SIZE];
            int64_t size;
            skip(t);
            if (isdigit((unsigned char)*t->at)) {
                (void)number(t, &size);
                bytes_int(&d, 1, size);
            } else if (!onnx_text_take(t, "?")) {
                onnx_text_name(t, name, sizeof name);
                bytes_text(&d, 2, name);
            }
            bytes_put(&shape, 1, d);
            if (!next_is(t, ']')) want(t, ",");
        }
        want(t, "]");
    }
    if (has_shape) bytes_put(&out, 2, shape);
    return out;
}

static bytes value_type(onnx_text *t)
{
    bytes out = { 0 };
    const uint32_t field = onnx_text_take(t, "seq") ? 4 : onnx_text_take(t, "optional") ? 9 : 1;
    if (field == 1) {
        bytes_put(&out, 1, tensor_type(t));
        return out;
    }
    bytes inner = { 0 };
    want(t, "(");
    bytes_put(&inner, 1, value_type(t));
    want(t, ")");
    bytes_put(&out, field, inner);
    return out;
}

static void values(onnx_text *t, bytes *graph, uint32_t field)
{
    char name[NAME_SIZE];
    want(t, "(");
    while (!next_is(t, ')') && !t->wrong) {
        bytes value = { 0 }, type = value_type(t);
        onnx_text_name(t, name, sizeof name);
        bytes_text(&value, 1, name);
        bytes_put(&value, 2, type);
        bytes_put(graph, field, value);
        if (!next_is(t, ')')) want(t, ",");
    }
    want(t, ")");
}

/* ---- tensors ---- */
static const struct type_name *tensor_head(onnx_text *t, sinter_tensor *out)
{
    const struct type_name *type = type_name(t);
    *out = (sinter_tensor){ .dtype = type->dtype };
    if (!onnx_text_take(t, "[")) return type;
    while (!next_is(t, ']') && !t->wrong && out->rank < SINTER_RANK_MAX) {
        (void)number(t, &out->dim[out->rank++]);
        if (!next_is(t, ']')) want(t, ",");
    }
    want(t, "]");
    return type;
}

static void tensor_elements(onnx_text *t, sinter_tensor *out)
{
    int64_t count = 1, at = 0, integer;
    for (uint32_t i = 0; i < out->rank; i++) count *= out->dim[i];
    out->data = calloc(1, sinter_tensor_size(out) + 1);
    if (!out->data) abort();
    const bool is_iota = onnx_text_take(t, "iota");
    for (; is_iota && at < count; at++) dtype_store_f64(out->dtype, out->data, at, (double)at);
    if (is_iota) return;
    want(t, "{");
    while (!next_is(t, '}') && !t->wrong && at < count) {
        const double value = number(t, &integer);
        if (dtype_is_float(out->dtype)) dtype_store_f64(out->dtype, out->data, at++, value);
        else dtype_store_i64(out->dtype, out->data, at++, integer);
        if (!next_is(t, '}')) want(t, ",");
    }
    want(t, "}");
    if (at != count && !t->wrong) t->wrong = "as many elements as the shape says";
}

sinter_tensor onnx_text_tensor(onnx_text *t)
{
    sinter_tensor out;
    (void)tensor_head(t, &out);
    tensor_elements(t, &out);
    return out;
}

static void text_elements(onnx_text *t, bytes *out)
{
    char text[NAME_SIZE];
    want(t, "{");
    while (!next_is(t, '}') && !t->wrong) {
        onnx_text_name(t, text, sizeof text);
        bytes_text(out, 6, text);
        if (!next_is(t, '}')) want(t, ",");
    }
    want(t, "}");
}

static bytes tensor_bytes(onnx_text *t, bool is_named)
{
    char name[NAME_SIZE] = "";
    sinter_tensor x;
    const struct type_name *type = tensor_head(t, &x);
    if (is_named) {
        onnx_text_name(t, name, sizeof name);
        want(t, "=");
    }
    if (type->dtype != SINTER_DTYPE_NONE) tensor_elements(t, &x);
    bytes out = onnx_tensor_bytes(name, type->onnx, x.dim, x.rank, x.data, x.data ? sinter_tensor_size(&x) : 0);
    if (type->dtype == SINTER_DTYPE_NONE) text_elements(t, &out);
    free(x.data);
    return out;
}

/* ---- attributes, nodes, graphs ---- */
static bool next_is_real(const char *p)
{
    p += strspn(p, "+-");
    if (isalpha((unsigned char)*p)) return true; /* inf, nan */
    p += strspn(p, "0123456789");
    return *p == '.' || *p == 'e';
}

static bool next_is_number(onnx_text *t)
{
    skip(t);
    const char *p = t->at + strspn(t->at, "+-");
    return isdigit((unsigned char)*p) || *p == '.' || !strncmp(p, "inf", 3) || !strncmp(p, "nan", 3);
}

static void put_real(bytes *out, uint32_t field, double value)
{
    const float f = (float)value;
    bytes_varint(out, (uint64_t)field << 3 | 5);
    bytes_add(out, &f, sizeof f);
}

/* One value, or one of a list: returns the attribute's type as ONNX numbers it. */
static int64_t scalar_value(onnx_text *t, bytes *a, bool is_listed)
{
    char text[NAME_SIZE];
    int64_t integer;
    if (next_is(t, '"')) {
        onnx_text_name(t, text, sizeof text);
        bytes_text(a, is_listed ? 9 : 4, text);
        return is_listed ? 8 : 3;
    }
    const bool is_real = next_is_real(t->at);
    const double value = number(t, &integer);
    if (is_real) put_real(a, is_listed ? 7 : 2, value);
    else bytes_int(a, is_listed ? 8 : 3, integer);
    return is_listed ? (is_real ? 6 : 7) : is_real ? 1 : 2;
}

static bool next_is_graph(onnx_text *t)
{
    onnx_text ahead = *t;
    char name[NAME_SIZE];
    onnx_text_name(&ahead, name, sizeof name);
    return next_is(&ahead, '(');
}

static bytes attribute(onnx_text *t)
{
    bytes a = { 0 };
    char name[NAME_SIZE];
    int64_t type = 7; /* of a list without elements */
    onnx_text_name(t, name, sizeof name);
    bytes_text(&a, 1, name);
    want(t, "=");
    if (next_is(t, '"') || next_is_number(t)) {
        type = scalar_value(t, &a, false);
    } else if (onnx_text_take(t, "[")) {
        while (!next_is(t, ']') && !t->wrong) {
            type = scalar_value(t, &a, true);
            if (!next_is(t, ']')) want(t, ",");
        }
        want(t, "]");
    } else if (next_is_graph(t)) {
        type = 5;
        bytes_put(&a, 6, onnx_text_graph(t));
    } else {
        type = 4;
        bytes_put(&a, 5, tensor_bytes(t, false));
    }
    bytes_int(&a, 20, type);
    return a;
}

static void attributes(onnx_text *t, bytes *node)
{
    if (!onnx_text_take(t, "<")) return;
    while (!next_is(t, '>') && !t->wrong) {
        bytes_put(node, 5, attribute(t));
        if (!next_is(t, '>')) want(t, ",");
    }
    want(t, ">");
}

static bytes node(onnx_text *t)
{
    bytes n = { 0 };
    char name[NAME_SIZE];
    do {
        onnx_text_name(t, name, sizeof name);
        bytes_text(&n, 2, name);
    } while (onnx_text_take(t, ","));
    want(t, "=");
    onnx_text_name(t, name, sizeof name);
    char *domain_end = strrchr(name, '.');
    bytes_text(&n, 4, domain_end ? domain_end + 1 : name);
    if (domain_end) {
        *domain_end = 0;
        bytes_text(&n, 7, name);
    }
    attributes(t, &n);
    want(t, "(");
    while (!next_is(t, ')') && !t->wrong) {
        onnx_text_name(t, name, sizeof name);
        bytes_text(&n, 1, name);
        if (!next_is(t, ')')) want(t, ",");
    }
    want(t, ")");
    attributes(t, &n);
    return n;
}

bytes onnx_text_graph(onnx_text *t)
{
    bytes g = { 0 };
    char name[NAME_SIZE];
    onnx_text_name(t, name, sizeof name);
    bytes_text(&g, 2, name);
    values(t, &g, 11);
    want(t, "=>");
    values(t, &g, 12);
    if (onnx_text_take(t, "<")) {
        while (!next_is(t, '>') && !t->wrong) {
            bytes_put(&g, 5, tensor_bytes(t, true));
            if (!next_is(t, '>')) want(t, ",");
        }
        want(t, ">");
    }
    want(t, "{");
    while (!next_is(t, '}') && !t->wrong) bytes_put(&g, 1, node(t));
    want(t, "}");
    return g;
}

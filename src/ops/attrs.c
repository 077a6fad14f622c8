/* SPDX-License-Identifier: Apache-2.0 */
/* attrs.c - attribute structs as data: default, equal, hash, copy, print and parse by their descriptors.
 *
 * Attributes of NULL stand for the defaults everywhere. Only what differs from the default is printed, so reading what
 * was printed into defaults gives the same struct. */
#include "ops/ops.h"

#include "base/hash.h"

#include <string.h>

enum { DIMS_MAX = 4096 };

static int64_t get_int(const attr_info *i, const void *attrs)
{
    int64_t value = (int64_t)i->initial;
    if (attrs) memcpy(&value, (const char *)attrs + i->at, sizeof(value));
    return value;
}

static double get_real(const attr_info *i, const void *attrs)
{
    double value = i->initial;
    if (attrs) memcpy(&value, (const char *)attrs + i->at, sizeof(value));
    return value;
}

static const void *field(const attr_info *i, const void *attrs)
{
    return (const char *)attrs + i->at;
}

/* Every list kind as one thing: a count and 8-byte elements. Text counts bytes. */
typedef struct list {
    const void *at;
    size_t count, size;
    bool is_dynamic;
} list;

static list get_list(const attr_info *i, const void *attrs)
{
    list l = { .at = "", .size = 8 };
    if (i->kind == ATTR_TEXT) l.size = 1;
    if (!attrs) return l;
    if (i->kind == ATTR_INTS) {
        const attr_ints *x = field(i, attrs);
        l.at = x->at;
        l.count = x->count;
    } else if (i->kind == ATTR_REALS) {
        const attr_reals *x = field(i, attrs);
        l.at = x->at;
        l.count = x->count;
    } else if (i->kind == ATTR_DIMS) {
        const attr_dims *x = field(i, attrs);
        l.at = x->at;
        l.count = x->count;
        l.is_dynamic = x->is_dynamic;
    } else {
        const char *const *x = field(i, attrs);
        l.at = *x ? *x : "";
        l.count = strlen(l.at);
    }
    return l;
}

static bool is_int(attr_kind kind)
{
    return kind == ATTR_INT || kind == ATTR_TYPE || kind == ATTR_NAME;
}

void *op_attrs_new(arena *a, op_id op)
{
    const op_info *row = op_at(op);
    char *attrs = arena_alloc(a, row->attrs_size, _Alignof(max_align_t));
    if (!attrs) return NULL;
    for (const attr_info *i = row->attr; i->name; i++) {
        if (is_int(i->kind)) {
            const int64_t value = (int64_t)i->initial;
            memcpy(attrs + i->at, &value, sizeof(value));
        } else if (i->kind == ATTR_REAL) {
            memcpy(attrs + i->at, &i->initial, sizeof(i->initial));
        } else if (i->kind == ATTR_TEXT) {
            const char *empty = "";
            memcpy(attrs + i->at, &empty, sizeof(empty));
        }
    }
    return attrs;
}

static bool attr_equal(const attr_info *i, const void *a, const void *b)
{
    if (is_int(i->kind)) return get_int(i, a) == get_int(i, b);
    if (i->kind == ATTR_REAL) { /* by bits: -0 and NaN are values like others */
        const double x = get_real(i, a), y = get_real(i, b);
        return memcmp(&x, &y, sizeof(x)) == 0;
    }
    const list x = get_list(i, a), y = get_list(i, b);
    if (x.count != y.count || x.is_dynamic != y.is_dynamic) return false;
    return x.count == 0 || memcmp(x.at, y.at, x.count * x.size) == 0;
}

bool op_attrs_equal(op_id op, const void *a, const void *b)
{
    for (const attr_info *i = op_at(op)->attr; i->name; i++) {
        if (!attr_equal(i, a, b)) return false;
    }
    return true;
}

uint64_t op_attrs_hash(op_id op, const void *attrs, uint64_t seed)
{
    uint64_t h = seed;
    for (const attr_info *i = op_at(op)->attr; i->name; i++) {
        if (is_int(i->kind)) {
            const int64_t value = get_int(i, attrs);
            h = hash64(&value, sizeof(value), h);
        } else if (i->kind == ATTR_REAL) {
            const double value = get_real(i, attrs);
            h = hash64(&value, sizeof(value), h);
        } else {
            const list l = get_list(i, attrs);
            const uint64_t head = (uint64_t)l.count * 2 + l.is_dynamic;
            h = hash64(&head, sizeof(head), h);
            if (l.count) h = hash64(l.at, l.count * l.size, h);
        }
    }
    return h;
}

void *op_attrs_copy(arena *a, op_id op, const void *attrs)
{
    const op_info *row = op_at(op);
    char *copy = op_attrs_new(a, op);
    if (!copy || !attrs) return copy;
    if (row->attrs_size) memcpy(copy, attrs, row->attrs_size);
    for (const attr_info *i = row->attr; i->name; i++) {
        const list l = i->kind == ATTR_DIMS || i->kind == ATTR_TEXT ? get_list(i, attrs) : (list){ .at = NULL };
        if (i->kind == ATTR_DIMS) {
            int64_t *at = ARENA_NEW(a, int64_t, l.count);
            if (!at) return NULL;
            if (l.count) memcpy(at, l.at, l.count * sizeof(*at));
            const attr_dims dims = { .count = (uint32_t)l.count, .is_dynamic = l.is_dynamic, .at = at };
            memcpy(copy + i->at, &dims, sizeof(dims));
        } else if (i->kind == ATTR_TEXT) {
            const char *own = arena_text(a, l.at, l.count);
            if (!own) return NULL;
            memcpy(copy + i->at, &own, sizeof(own));
        }
    }
    return copy;
}

static void print_list(const attr_info *i, const void *attrs, const dim_table *dims, text *out)
{
    const list l = get_list(i, attrs);
    if (i->kind == ATTR_TEXT) {
        text_quoted(out, l.at, l.count);
        return;
    }
    if (l.is_dynamic && !dims) text_append(out, "?", 1);
    text_append(out, "[", 1);
    for (size_t k = 0; k < l.count; k++) {
        if (k) text_append(out, ",", 1);
        if (i->kind == ATTR_REALS) text_f64(out, ((const double *)l.at)[k]);
        else if (i->kind == ATTR_DIMS && dims) dim_print(dims, (dim)((const int64_t *)l.at)[k], out);
        else text_printf(out, "%lld", (long long)((const int64_t *)l.at)[k]);
    }
    text_append(out, "]", 1);
}

/* Names of a NAME kind, or of types; NULL beyond the last. */
static const char *name_of(const attr_info *i, int64_t value)
{
    if (i->kind == ATTR_TYPE)
        return value >= 0 && value < SINTER_DTYPE_COUNT ? sinter_dtype_name((sinter_dtype)value) : NULL;
    for (int64_t k = 0; i->item && i->item[k]; k++) {
        if (k == value) return i->item[k];
    }
    return NULL;
}

void op_attrs_print(op_id op, const void *attrs, const dim_table *dims, text *out)
{
    for (const attr_info *i = op_at(op)->attr; i->name; i++) {
        if (attr_equal(i, attrs, NULL)) continue;
        text_printf(out, " %s=", i->name);
        if (i->kind == ATTR_REAL) {
            text_f64(out, get_real(i, attrs));
        } else if (is_int(i->kind)) {
            const int64_t value = get_int(i, attrs);
            const char *name = i->kind == ATTR_INT ? NULL : name_of(i, value);
            if (name) text_append(out, name, strlen(name));
            else text_printf(out, "%lld", (long long)value);
        } else {
            print_list(i, attrs, dims, out);
        }
    }
}

/* ---- parse ---- */

static bool parse_dims(const attr_info *i, char *attrs, arena *a, dim_table *dims, scan *s)
{
    VEC(int64_t) v = { 0 };
    const bool is_dynamic = !dims && scan_char(s, '?');
    if (!scan_char(s, '[')) return false;
    for (bool more = !scan_char(s, ']'); more; more = scan_char(s, ',')) {
        int64_t value;
        if (dims) {
            dim d;
            if (!dim_parse(dims, s, &d)) return false;
            value = d;
        } else if (!scan_i64(s, &value)) {
            return false;
        }
        int64_t *own = v.count < DIMS_MAX ? VEC_PUSH(a, &v) : NULL;
        if (!own) return false;
        *own = value;
    }
    if (v.count && !scan_char(s, ']')) return false;
    const attr_dims out = { .count = v.count, .is_dynamic = is_dynamic, .at = v.at };
    memcpy(attrs + i->at, &out, sizeof(out));
    return true;
}

static bool parse_ints(attr_ints *out, scan *s)
{
    *out = (attr_ints){ 0 };
    if (!scan_char(s, '[')) return false;
    if (scan_char(s, ']')) return true;
    do {
        if (out->count == ATTR_INTS_MAX || !scan_i64(s, &out->at[out->count++])) return false;
    } while (scan_char(s, ','));
    return scan_char(s, ']');
}

static bool parse_reals(attr_reals *out, scan *s)
{
    *out = (attr_reals){ 0 };
    if (!scan_char(s, '[')) return false;
    if (scan_char(s, ']')) return true;
    do {
        if (out->count == ATTR_REALS_MAX || !scan_f64(s, &out->at[out->count++])) return false;
    } while (scan_char(s, ','));
    return scan_char(s, ']');
}

static bool parse_name(const attr_info *i, int64_t *out, scan *s)
{
    const char *at;
    size_t length;
    if (!scan_name(s, &at, &length)) return false;
    const char *name;
    for (int64_t k = 0; (name = name_of(i, k)); k++) {
        if (strlen(name) == length && memcmp(name, at, length) == 0) {
            *out = k;
            return true;
        }
    }
    return false;
}

static bool parse_value(const attr_info *i, char *attrs, arena *a, dim_table *dims, scan *s)
{
    switch (i->kind) {
    case ATTR_INT: return scan_i64(s, (int64_t *)(void *)(attrs + i->at));
    case ATTR_REAL: return scan_f64(s, (double *)(void *)(attrs + i->at));
    case ATTR_INTS: return parse_ints((attr_ints *)(void *)(attrs + i->at), s);
    case ATTR_REALS: return parse_reals((attr_reals *)(void *)(attrs + i->at), s);
    case ATTR_DIMS: return parse_dims(i, attrs, a, dims, s);
    case ATTR_TEXT: {
        char *own;
        if (!scan_quoted(s, a, &own)) return false;
        memcpy(attrs + i->at, &own, sizeof(own));
        return true;
    }
    case ATTR_TYPE:
    case ATTR_NAME: return parse_name(i, (int64_t *)(void *)(attrs + i->at), s);
    }
    return false;
}

static const char *const wanted[] = {
    [ATTR_INT] = "an integer",
    [ATTR_REAL] = "a number",
    [ATTR_INTS] = "a list of at most 32 integers",
    [ATTR_REALS] = "a list of at most 16 numbers",
    [ATTR_DIMS] = "a list of sizes",
    [ATTR_TEXT] = "a quoted text",
    [ATTR_TYPE] = "a type",
    [ATTR_NAME] = "one of its names",
};

bool op_attrs_parse(op_id op, void *attrs, arena *a, dim_table *dims, scan *s, const char **why)
{
    for (;;) {
        scan ahead = *s;
        const char *at;
        size_t length;
        scan_space(&ahead);
        if (!scan_name(&ahead, &at, &length) || !scan_char(&ahead, '=')) return true;
        const attr_info *i = op_at(op)->attr;
        while (i->name && (strlen(i->name) != length || memcmp(i->name, at, length) != 0)) i++;
        if (!i->name) return true;
        if (!parse_value(i, attrs, a, dims, &ahead)) {
            const char *own =
                arena_printf(a, "attribute '%s' of op '%s' wants %s", i->name, op_at(op)->name, wanted[i->kind]);
            *why = own ? own : "out of memory";
            return false;
        }
        *s = ahead;
    }
}

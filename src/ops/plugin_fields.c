/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_fields.c - the fields of a plugin's call as text, both ways.
 *
 *     alpha=0.5 axes=[1,2] mode="edge" table=x00ff
 *
 * The plugin's declaration decides how a value reads. Written are all fields, defaults too: a plugin whose default
 * changes does not change an engine. The text may come from a hostile file: its length bounds what reading it costs. */
#include "ops/plugin.h"

#include <stdlib.h>
#include <string.h>

const char *plugin_type_name(sinter_plugin_type type)
{
    switch (type) {
    case SINTER_PLUGIN_INT: return "an integer";
    case SINTER_PLUGIN_REAL: return "a number";
    case SINTER_PLUGIN_TEXT: return "a text";
    case SINTER_PLUGIN_BYTES: return "bytes";
    case SINTER_PLUGIN_INTS: return "a list of integers";
    case SINTER_PLUGIN_REALS: return "a list of numbers";
    }
    return NULL;
}

static uint32_t find(const sinter_plugin *p, const char *name, size_t length)
{
    uint32_t i = 0;
    while (i < p->count_field && (strlen(p->field[i].name) != length || memcmp(p->field[i].name, name, length) != 0))
        i++;
    return i;
}

/* ---- write ---- */

static bool is_bytes(sinter_plugin_type t)
{
    return t == SINTER_PLUGIN_TEXT || t == SINTER_PLUGIN_BYTES;
}

static bool is_ints(sinter_plugin_type t)
{
    return t == SINTER_PLUGIN_INT || t == SINTER_PLUGIN_INTS;
}

static bool is_one(sinter_plugin_type t)
{
    return t == SINTER_PLUGIN_INT || t == SINTER_PLUGIN_REAL;
}

/* A value of one type as the declared type: numbers become wider, lists of one and scalars are alike. */
static bool fits(const sinter_plugin_field *want, const sinter_plugin_field *v)
{
    if (!v->data || !plugin_type_name(v->type)) return false;
    if (is_bytes(want->type)) return is_bytes(v->type);
    if (is_bytes(v->type) || (is_ints(want->type) && !is_ints(v->type))) return false;
    return !is_one(want->type) || is_one(v->type) || v->count == 1;
}

static void write_number(const sinter_plugin_field *want, const sinter_plugin_field *v, uint64_t i, text *t)
{
    if (!is_ints(v->type)) text_f64(t, ((const double *)v->data)[i]);
    else if (is_ints(want->type)) text_printf(t, "%lld", (long long)((const int64_t *)v->data)[i]);
    else text_f64(t, (double)((const int64_t *)v->data)[i]);
}

static void write_value(const sinter_plugin_field *want, const sinter_plugin_field *v, text *t)
{
    text_printf(t, "%s%s=", t->length ? " " : "", want->name);
    if (want->type == SINTER_PLUGIN_TEXT) {
        text_quoted(t, v->data, (size_t)v->count);
    } else if (want->type == SINTER_PLUGIN_BYTES) {
        text_append(t, "x", 1);
        for (uint64_t i = 0; i < v->count; i++) text_printf(t, "%02x", ((const uint8_t *)v->data)[i]);
    } else if (is_one(want->type)) {
        write_number(want, v, 0, t);
    } else {
        const uint64_t count = is_one(v->type) ? 1 : v->count;
        text_append(t, "[", 1);
        for (uint64_t i = 0; i < count; i++) {
            if (i) text_append(t, ",", 1);
            write_number(want, v, i, t);
        }
        text_append(t, "]", 1);
    }
}

static sinter_status write_all(env *e, const sinter_plugin *p, const sinter_plugin_field *const *value, text *t)
{
    for (uint32_t i = 0; i < p->count_field; i++) {
        const sinter_plugin_field *want = &p->field[i], *v = value[i];
        if (!v || !v->data) return FAIL(e, INVALID_MODEL, "the field '%s' is missing", want->name);
        if (!fits(want, v))
            return FAIL(e, INVALID_MODEL, "the field '%s' is %s, wanted is %s", want->name,
                        plugin_type_name(v->type) ? plugin_type_name(v->type) : "of no type",
                        plugin_type_name(want->type));
        if (want->type == SINTER_PLUGIN_TEXT && memchr(v->data, 0, (size_t)v->count))
            return FAIL(e, INVALID_MODEL, "the field '%s' is a text with a NUL in it", want->name);
        if (v->count > PLUGIN_FIELDS_MAX || t->length > PLUGIN_FIELDS_MAX)
            return FAIL(e, UNSUPPORTED, "the fields are longer than %d bytes", PLUGIN_FIELDS_MAX);
        write_value(want, v, t);
    }
    if (t->failed) return FAIL_MEMORY(e, "fields");
    if (t->length > PLUGIN_FIELDS_MAX)
        return FAIL(e, UNSUPPORTED, "the fields have %zu bytes, the most is %d", t->length, PLUGIN_FIELDS_MAX);
    return SINTER_OK;
}

sinter_status plugin_fields_write(env *e, arena *a, const sinter_plugin *plugin, const sinter_plugin_field *given,
                                  uint32_t count, const char **out)
{
    const sinter_plugin_field *value[PLUGIN_FIELD_COUNT_MAX];
    for (uint32_t i = 0; i < plugin->count_field; i++) value[i] = &plugin->field[i];
    for (uint32_t i = 0; i < count; i++) {
        const char *name = given[i].name ? given[i].name : "";
        const uint32_t k = find(plugin, name, strlen(name));
        if (k == plugin->count_field) return FAIL(e, INVALID_MODEL, "it has no field '%.128s'", name);
        value[k] = &given[i];
    }
    text t;
    text_init(&t, e);
    const sinter_status s = write_all(e, plugin, value, &t);
    const char *own = s ? NULL : arena_text(a, t.at ? t.at : "", t.length);
    text_deinit(&t);
    TRY(s);
    *out = own ? own : "";
    return own ? SINTER_OK : FAIL_MEMORY(e, "fields");
}

/* ---- read ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_bytes(scan *s, arena *a, sinter_plugin_field *out)
{
    if (!scan_char(s, 'x')) return false;
    const char *end = s->at;
    while (end < s->end && hex(*end) >= 0) end++;
    const size_t digits = (size_t)(end - s->at);
    uint8_t *own = digits % 2 ? NULL : arena_alloc(a, digits / 2 + 1, 1);
    if (!own) return false;
    for (size_t i = 0; i < digits / 2; i++) own[i] = (uint8_t)(hex(s->at[2 * i]) * 16 + hex(s->at[2 * i + 1]));
    s->at = end;
    out->data = own;
    out->count = digits / 2;
    return true;
}

static bool read_list(scan *s, arena *a, sinter_plugin_field *out)
{
    const bool ints = out->type == SINTER_PLUGIN_INTS;
    uint64_t room = 1;
    for (const char *at = s->at; at < s->end && *at != ']'; at++) room += *at == ',';
    int64_t *i64 = ints ? ARENA_NEW(a, int64_t, room) : NULL;
    double *f64 = ints ? NULL : ARENA_NEW(a, double, room);
    if ((!i64 && !f64) || !scan_char(s, '[')) return false;
    out->count = 0;
    out->data = ints ? (const void *)i64 : (const void *)f64;
    if (scan_char(s, ']')) return true;
    do {
        if (out->count == room) return false;
        if (ints ? !scan_i64(s, &i64[out->count]) : !scan_f64(s, &f64[out->count])) return false;
        out->count++;
    } while (scan_char(s, ','));
    return scan_char(s, ']');
}

static bool read_value(scan *s, arena *a, sinter_plugin_field *out)
{
    if (out->type == SINTER_PLUGIN_BYTES) return read_bytes(s, a, out);
    if (out->type == SINTER_PLUGIN_TEXT) {
        char *own = NULL;
        if (!scan_quoted(s, a, &own)) return false;
        out->data = own;
        out->count = strlen(own);
        return true;
    }
    if (!is_one(out->type)) return read_list(s, a, out);
    void *own = arena_alloc(a, 8, 8);
    out->data = own;
    out->count = 1;
    return own && (out->type == SINTER_PLUGIN_INT ? scan_i64(s, own) : scan_f64(s, own));
}

sinter_status plugin_fields_read(env *e, arena *a, const sinter_plugin *plugin, const char *words,
                                 const sinter_plugin_field **out)
{
    const size_t size = strlen(words);
    if (size > PLUGIN_FIELDS_MAX)
        return FAIL(e, INVALID_MODEL, "the fields of plugin '%s' have %zu bytes, the most is %d", plugin->name, size,
                    PLUGIN_FIELDS_MAX);
    sinter_plugin_field *field = ARENA_NEW(a, sinter_plugin_field, plugin->count_field);
    if (!field) return FAIL_MEMORY(e, "fields");
    bool is_given[PLUGIN_FIELD_COUNT_MAX] = { false };
    for (uint32_t i = 0; i < plugin->count_field; i++) field[i] = plugin->field[i];
    scan s = scan_of(words, size);
    for (scan_space(&s); s.at < s.end; scan_space(&s)) {
        const char *name;
        size_t length;
        if (!scan_name(&s, &name, &length) || !scan_char(&s, '='))
            return FAIL(e, INVALID_MODEL, "the fields of plugin '%s' are no list of NAME=VALUE at '%.32s'",
                        plugin->name, s.at);
        const uint32_t k = find(plugin, name, length);
        if (k == plugin->count_field || is_given[k])
            return FAIL(e, INVALID_MODEL, "plugin '%s' has no field '%.*s', or it is given twice", plugin->name,
                        length > 64 ? 64 : (int)length, name);
        if (!read_value(&s, a, &field[k])) {
            if (a->failed) return FAIL_MEMORY(e, "fields");
            return FAIL(e, INVALID_MODEL, "the field '%s' of plugin '%s' is not %s", field[k].name, plugin->name,
                        plugin_type_name(field[k].type));
        }
        is_given[k] = true;
    }
    for (uint32_t i = 0; i < plugin->count_field; i++)
        if (!field[i].data)
            return FAIL(e, INVALID_MODEL, "the field '%s' of plugin '%s' is missing", field[i].name, plugin->name);
    *out = field;
    return SINTER_OK;
}

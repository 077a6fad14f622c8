/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.c - values are skipped by one recursive scanner of bounded depth; members are found by scanning again,
 * which for files of a few kilobytes costs nothing. */
#include "json_text.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

static const char *blank(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') p++;
    return p;
}

/* Past a string, or NULL. Escapes are stepped over, not decoded. */
static const char *skip_string(const char *p)
{
    if (*p++ != '"') return NULL;
    for (; *p && *p != '"'; p++) {
        if (*p == '\\' && !*++p) return NULL;
    }
    return *p ? p + 1 : NULL;
}

static const char *skip_word(const char *p)
{
    static const char *const words[] = { "true", "false", "null", "NaN", "Infinity", "-Infinity" };
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i]);
        if (!strncmp(p, words[i], n)) return p + n;
    }
    if (*p != '-' && (*p < '0' || *p > '9')) return NULL;
    char *end = NULL;
    (void)strtod(p, &end);
    return end == p ? NULL : end;
}

/* Past a value, or NULL. */
static const char *skip_value(const char *p, int depth)
{
    p = blank(p);
    if (*p == '"') return skip_string(p);
    if (*p != '{' && *p != '[') return skip_word(p);
    if (depth == DEPTH_MAX) return NULL;
    const bool is_object = *p == '{';
    const char close = is_object ? '}' : ']';
    p = blank(p + 1);
    if (*p == close) return p + 1;
    while (true) {
        if (is_object) {
            p = skip_string(blank(p));
            if (!p) return NULL;
            p = blank(p);
            if (*p++ != ':') return NULL;
        }
        p = skip_value(p, depth + 1);
        if (!p) return NULL;
        p = blank(p);
        if (*p == close) return p + 1;
        if (*p++ != ',') return NULL;
    }
}

json_value json_value_of(const char *text)
{
    return (json_value){ blank(text) };
}

bool json_is_valid(const char *text)
{
    const char *end = skip_value(text, 0);
    return end && !*blank(end);
}

bool json_member(json_value object, const char *key, json_value *out)
{
    const size_t length = strlen(key);
    const char *p = object.at;
    if (*p != '{') return false;
    p = blank(p + 1);
    while (*p == '"') {
        const char *name = p + 1;
        p = skip_string(p);
        if (!p) return false;
        const bool is_it = (size_t)(p - 1 - name) == length && !memcmp(name, key, length);
        p = blank(p);
        if (*p++ != ':') return false;
        if (is_it) {
            *out = (json_value){ blank(p) };
            return true;
        }
        p = skip_value(p, 0);
        if (!p) return false;
        p = blank(p);
        if (*p++ != ',') return false;
        p = blank(p);
    }
    return false;
}

bool json_item(json_value array, uint32_t index, json_value *out)
{
    const char *p = array.at;
    if (*p != '[') return false;
    p = blank(p + 1);
    if (*p == ']') return false;
    for (uint32_t i = 0; i < index; i++) {
        p = skip_value(p, 0);
        if (!p) return false;
        p = blank(p);
        if (*p++ != ',') return false;
    }
    *out = (json_value){ blank(p) };
    return true;
}

bool json_number(json_value v, double *out)
{
    if (*v.at != '-' && (*v.at < '0' || *v.at > '9')) return false;
    char *end = NULL;
    *out = strtod(v.at, &end);
    return end != v.at;
}

bool json_is_text(json_value v, const char *text)
{
    const size_t length = strlen(text);
    return *v.at == '"' && !strncmp(v.at + 1, text, length) && v.at[1 + length] == '"';
}

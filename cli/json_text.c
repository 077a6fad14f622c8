/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.c - values are skipped by one recursive scanner of bounded depth; members are found by scanning again,
 * which for files of a few kilobytes costs nothing. */
#include "json_text.h"

#include "print.h"
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

bool json_next(json_value item, json_value *out)
{
    const char *p = skip_value(item.at, 0);
    if (!p) return false;
    p = blank(p);
    if (*p != ',') return false;
    *out = (json_value){ blank(p + 1) };
    return true;
}

static char *put_utf8(char *to, unsigned long c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

char *json_copy_text(json_value v)
{
    static const char from[] = "bfnrt", as[] = "\b\f\n\r\t";
    const char *end = *v.at == '"' ? skip_string(v.at) : NULL;
    char *out = cli_alloc(end ? (size_t)(end - v.at) : 1, 1), *to = out;
    for (const char *p = v.at + 1; end && p < end - 1; p++) {
        if (*p != '\\') {
            *to++ = *p;
            continue;
        }
        p++;
        const char *known = strchr(from, *p);
        char digits[5] = { 0 };
        if (*p == 'u' && end - p > 5) {
            memcpy(digits, p + 1, 4);
            to = put_utf8(to, strtoul(digits, NULL, 16));
            p += 4;
        } else {
            *to++ = known ? as[known - from] : *p;
        }
    }
    return out;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - building and scanning text.
 *
 * Numbers are printed and read the same in every locale: a host program may have set one with a decimal comma, and
 * engines, caches and problem strings must not notice. */
#include "base/text.h"
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_init(text *t, env *e)
{
    *t = (text){ .e = e, .at = "" }; /* with capacity 0 it is never written to */
}

void text_deinit(text *t)
{
    if (t->capacity) mem_free(t->e, t->at, t->capacity, 1);
    text_init(t, t->e);
}

void text_clear(text *t)
{
    t->length = 0;
    if (t->capacity) t->at[0] = 0;
}

/* Makes room for `extra` bytes and the NUL. */
static bool text_reserve(text *t, size_t extra)
{
    if (t->failed) return false;
    const size_t need = size_add(size_add(t->length, extra), 1);
    if (need <= t->capacity) return true;
    size_t capacity = t->capacity ? size_mul(t->capacity, 2) : 64;
    if (capacity < need) capacity = need;
    const bool is_over = capacity > t->e->limits.memory_max;
    t->e->met_limit = t->e->met_limit || is_over;
    char *at = is_over ? NULL : mem_resize(t->e, t->capacity ? t->at : NULL, t->capacity, capacity, 1);
    if (!at) {
        t->failed = true;
        return false;
    }
    t->at = at;
    t->capacity = capacity;
    return true;
}

void text_append(text *t, const char *bytes, size_t length)
{
    if (!text_reserve(t, length)) return;
    if (length) memcpy(t->at + t->length, bytes, length);
    t->length += length;
    t->at[t->length] = 0;
}

void text_printf(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        t->failed = true;
        return;
    }
    if (!text_reserve(t, (size_t)length)) return;
    va_start(args, format);
    (void)vsnprintf(t->at + t->length, (size_t)length + 1, format, args);
    va_end(args);
    t->length += (size_t)length;
}

/* strtod as in the C locale; `text_at` is NUL-terminated and already known to be a number. */
static double number_read(const char *text_at)
{
    const locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!c) return strtod(text_at, NULL);
    const double value = strtod_l(text_at, NULL, c);
    freelocale(c);
    return value;
}

/* The significant digits and the decimal exponent of %.*e, without the locale's point between them. */
static int digits_of(double value, int digits, char out[static 20])
{
    char buffer[48];
    (void)snprintf(buffer, sizeof buffer, "%.*e", digits - 1, value);
    int count = 0;
    const char *at = buffer;
    for (; *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9' && count < 19) out[count++] = *at;
    }
    out[count] = 0;
    return atoi(at + 1);
}

void text_f64(text *t, double value)
{
    if (isnan(value)) {
        text_append(t, "nan", 3);
        return;
    }
    if (signbit(value)) text_append(t, "-", 1);
    value = fabs(value);
    if (isinf(value)) {
        text_append(t, "inf", 3);
        return;
    }
    /* The first precision that reads back; most numbers in models need few digits. */
    char digits[20];
    int exponent = 0;
    for (int count = 1; count <= 17; count++) {
        exponent = digits_of(value, count, digits);
        char probe[32];
        (void)snprintf(probe, sizeof probe, "%se%d", digits, exponent - (count - 1));
        if (number_read(probe) == value) break;
    }
    const int length = (int)strlen(digits);
    if (exponent < -5 || exponent > 15) {
        text_append(t, digits, 1);
        if (length > 1) text_printf(t, ".%s", digits + 1);
        text_printf(t, "e%d", exponent);
    } else if (exponent < 0) {
        text_printf(t, "0.%.*s%s", -exponent - 1, "00000", digits);
    } else if (length <= exponent + 1) {
        text_printf(t, "%s%.*s", digits, exponent + 1 - length, "0000000000000000");
    } else {
        text_printf(t, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
    }
}

void text_quoted(text *t, const char *bytes, size_t length)
{
    text_append(t, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\') text_printf(t, "\\%c", c);
        else if (c == '\n') text_append(t, "\\n", 2);
        else if (c < 0x20 || c == 0x7F) text_printf(t, "\\x%02x", c);
        else text_append(t, &bytes[i], 1);
    }
    text_append(t, "\"", 1);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void scan_space(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t')) s->at++;
}

bool scan_char(scan *s, char c)
{
    if (s->at >= s->end || *s->at != c) return false;
    s->at++;
    return true;
}

bool scan_word(scan *s, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length)) return false;
    const char *after = s->at + length;
    if (after < s->end && (is_name_start(*after) || is_digit(*after))) return false;
    s->at = after;
    return true;
}

bool scan_name(scan *s, const char **at, size_t *length)
{
    const char *p = s->at;
    if (p >= s->end || !is_name_start(*p)) return false;
    while (p < s->end && (is_name_start(*p) || is_digit(*p) || *p == '.')) p++;
    *at = s->at;
    *length = (size_t)(p - s->at);
    s->at = p;
    return true;
}

bool scan_i64(scan *s, int64_t *value)
{
    const char *p = s->at;
    const bool is_negative = p < s->end && *p == '-';
    if (p < s->end && (*p == '-' || *p == '+')) p++;
    if (p >= s->end || !is_digit(*p)) return false;
    int64_t sum = 0;
    for (; p < s->end && is_digit(*p); p++) {
        const int64_t digit = *p - '0';
        if (!i64_mul(sum, 10, &sum) || !i64_add(sum, is_negative ? -digit : digit, &sum)) return false;
    }
    *value = sum;
    s->at = p;
    return true;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p)) p++;
    return p;
}

bool scan_f64(scan *s, double *value)
{
    scan rest = *s;
    const bool is_negative = scan_char(&rest, '-');
    if (!is_negative) (void)scan_char(&rest, '+');
    if (scan_word(&rest, "inf")) {
        *value = is_negative ? -INFINITY : INFINITY;
        *s = rest;
        return true;
    }
    if (scan_word(&rest, "nan")) {
        *value = NAN;
        *s = rest;
        return true;
    }
    const char *p = skip_digits(rest.at, rest.end);
    bool has_digits = p > rest.at;
    if (p < rest.end && *p == '.') {
        const char *fraction = p + 1;
        p = skip_digits(fraction, rest.end);
        has_digits = has_digits || p > fraction;
    }
    if (!has_digits) return false;
    if (p < rest.end && (*p == 'e' || *p == 'E')) {
        const char *power = p + 1;
        if (power < rest.end && (*power == '-' || *power == '+')) power++;
        if (power < rest.end && is_digit(*power)) p = skip_digits(power, rest.end);
    }
    char buffer[512];
    const size_t length = (size_t)(p - rest.at);
    if (length >= sizeof buffer) return false;
    memcpy(buffer, rest.at, length);
    buffer[length] = 0;
    const double read = number_read(buffer);
    if (isinf(read)) return false; /* digits that no double holds */
    *value = is_negative ? -read : read;
    s->at = p;
    return true;
}

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* One character after a backslash; -1 where it is none. NUL is none: the result is a C string. */
static int scan_escape(scan *s)
{
    if (scan_char(s, 'n')) return '\n';
    if (scan_char(s, '"')) return '"';
    if (scan_char(s, '\\')) return '\\';
    if (!scan_char(s, 'x') || s->end - s->at < 2) return -1;
    const int high = hex_digit(s->at[0]);
    const int low = hex_digit(s->at[1]);
    if (high < 0 || low < 0 || high + low == 0) return -1;
    s->at += 2;
    return high * 16 + low;
}

bool scan_quoted(scan *s, arena *a, char **out)
{
    scan rest = *s;
    if (!scan_char(&rest, '"')) return false;
    /* The decoded text is never longer than its source: find the end first, then decode into one piece. */
    const char *end = rest.at;
    while (end < rest.end && *end != '"') end += *end == '\\' && end + 1 < rest.end ? 2 : 1;
    if (end >= rest.end) return false;
    const arena_mark mark = arena_save(a);
    char *copy = arena_alloc(a, (size_t)(end - rest.at) + 1, 1);
    if (!copy) return false;
    size_t length = 0;
    while (rest.at < end) {
        int c = (unsigned char)*rest.at++;
        if (c == '\\') c = scan_escape(&rest);
        if (c <= 0) {
            arena_rewind(a, mark);
            return false;
        }
        copy[length++] = (char)(unsigned char)c;
    }
    copy[length] = 0;
    rest.at = end + 1;
    *s = rest;
    *out = copy;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - see options.h. */
#include "base/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define ROW(owner, kind, type, field, initial, most, words, text) \
    { #field, SINTER_OPTION_##kind, offsetof(owner, field), sizeof(type), (double)(initial), (double)(most), words, \
      text },
#define BUILD_ROW(...) ROW(sinter_build_options, __VA_ARGS__)
#define ENGINE_ROW(...) ROW(sinter_engine_options, __VA_ARGS__)
#define CONTEXT_ROW(...) ROW(sinter_context_options, __VA_ARGS__)
#define SIMPLIFY_ROW(...) ROW(sinter_simplify_options, __VA_ARGS__)
#define QUANTIZE_ROW(...) ROW(sinter_quantize_options, __VA_ARGS__)
#define CALIBRATE_ROW(...) ROW(sinter_calibrate_options, __VA_ARGS__)
const sinter_option build_option_rows[] = { SINTER_BUILD_SCALARS(BUILD_ROW) { 0 } };
const sinter_option engine_option_rows[] = { SINTER_ENGINE_SCALARS(ENGINE_ROW) { 0 } };
const sinter_option context_option_rows[] = { SINTER_CONTEXT_SCALARS(CONTEXT_ROW) { 0 } };
const sinter_option simplify_option_rows[] = { SINTER_SIMPLIFY_SCALARS(SIMPLIFY_ROW) { 0 } };
const sinter_option quantize_option_rows[] = { SINTER_QUANTIZE_SCALARS(QUANTIZE_ROW) { 0 } };
const sinter_option calibrate_option_rows[] = { SINTER_CALIBRATE_SCALARS(CALIBRATE_ROW) { 0 } };
/* clang-format on */

static const sinter_option *row_at(const sinter_option *rows, uint32_t index)
{
    while (rows->name && index--) rows++;
    return rows->name ? rows : NULL;
}

const sinter_option *sinter_build_option(uint32_t index)
{
    return row_at(build_option_rows, index);
}

const sinter_option *sinter_engine_option(uint32_t index)
{
    return row_at(engine_option_rows, index);
}

const sinter_option *sinter_context_option(uint32_t index)
{
    return row_at(context_option_rows, index);
}

const sinter_option *sinter_simplify_option(uint32_t index)
{
    return row_at(simplify_option_rows, index);
}

const sinter_option *sinter_calibrate_option(uint32_t index)
{
    return row_at(calibrate_option_rows, index);
}

const sinter_option *sinter_quantize_option(uint32_t index)
{
    return row_at(quantize_option_rows, index);
}

/* ---- values as text ---- */

bool device_words_read(const char *given, device_words *out)
{
    *out = (device_words){ .backend = "cpu" };
    if (!given || !strcmp(given, "cpu")) return true;
    if (!strcmp(given, "reference")) {
        out->is_reference = true;
        return true;
    }
    out->backend = "cuda";
    if (!strcmp(given, "cuda")) return true;
    if (strncmp(given, "cuda:", 5) != 0) return false;
    const char *which = out->which = given + 5;
    const size_t digits = strspn(which, "0123456789");
    if (digits) return digits <= 3 && !which[digits];
    if (strncmp(which, "sm_", 3) != 0) return false;
    const size_t chip = strspn(which + 3, "0123456789");
    const char *variant = which + 3 + chip;
    return chip >= 2 && chip <= 3 && (!*variant || (strchr("af", *variant) && !variant[1]));
}

/* The index of the word in "a|b|c"; -1: none. */
static int word_index(const char *words, const char *word, size_t length)
{
    for (int i = 0; *words; i++) {
        const size_t n = strcspn(words, "|");
        if (n == length && !memcmp(words, word, n)) return i;
        words += n + (words[n] == '|');
    }
    return -1;
}

/* A list of words with commas, as bits. */
static bool set_read(const char *words, const char *given, uint32_t *out)
{
    *out = 0;
    for (const char *at = given;; at++) {
        const size_t length = strcspn(at, ",");
        const int index = word_index(words, at, length);
        if (index < 0) return false;
        *out |= 1u << index;
        at += length;
        if (!*at) return true;
    }
}

/* "-name,-name"; which names exist is known where rules are. */
static bool is_rules(const char *given)
{
    for (const char *at = given;; at++) {
        const size_t length = strcspn(at, ",");
        if (length <= (*at == '-')) return false;
        at += length;
        if (!*at) return true;
    }
}

static bool count_read(const char *given, double most, uint64_t *out)
{
    if (!*given || given[strspn(given, "0123456789")] || strlen(given) > 18) return false;
    *out = strtoull(given, NULL, 10);
    return (double)*out <= most;
}

/* strtod takes more than decimal numbers: spaces, hexadecimal, words. */
static bool real_read(const char *given, double most, double *out)
{
    char *end = NULL;
    if (!*given || *given == '+' || given[strspn(given, "0123456789.eE+-")]) return false;
    *out = strtod(given, &end);
    return end != given && !*end && *out >= 0 && *out <= most;
}

static bool is_text(const sinter_option *o, const char *given)
{
    device_words unused;
    switch (o->kind) {
    case SINTER_OPTION_ANY: return true;
    case SINTER_OPTION_TEXT: return *given != 0;
    case SINTER_OPTION_WORD: return word_index(o->words, given, strlen(given)) >= 0;
    case SINTER_OPTION_DEVICE: return device_words_read(given, &unused);
    case SINTER_OPTION_RULES: return is_rules(given);
    default: return false;
    }
}

/* What `given` stands for, as the bytes of a field. False: it is no value of this option. */
typedef union option_value {
    const char *text;
    double real;
    uint64_t count;
    uint32_t word;
} option_value;

static bool value_read(const sinter_option *o, const char *given, option_value *out)
{
    switch (o->kind) {
    case SINTER_OPTION_FLAG: out->word = *given == '1'; return (*given == '0' || *given == '1') && !given[1];
    case SINTER_OPTION_COUNT: {
        uint64_t count = 0;
        if (!count_read(given, o->most, &count)) return false;
        if (o->size == sizeof out->word) out->word = (uint32_t)count;
        else out->count = count;
        return true;
    }
    case SINTER_OPTION_REAL: return real_read(given, o->most, &out->real);
    case SINTER_OPTION_CHOICE: {
        const int index = word_index(o->words, given, strlen(given));
        out->word = (uint32_t)index;
        return index >= 0;
    }
    case SINTER_OPTION_SET: return set_read(o->words, given, &out->word);
    default: out->text = given; return is_text(o, given);
    }
}

static sinter_status refuse(env *e, const sinter_option *o, const char *found)
{
    const bool is_real = o->kind == SINTER_OPTION_REAL;
    if (o->kind == SINTER_OPTION_COUNT || is_real)
        return FAIL(e, INVALID_ARG, "%s is %.100s, expected a %snumber from 0 to %.0f", o->name, found,
                    is_real ? "" : "whole ", o->most);
    const char *expected = o->kind == SINTER_OPTION_FLAG ? "0 or 1" : *o->words ? o->words : "a name";
    return FAIL(e, INVALID_ARG, "%s is '%.100s', expected %s%s", o->name, found, expected,
                o->kind == SINTER_OPTION_SET ? " (several with commas)" : "");
}

sinter_status sinter_option_set(const sinter_option *option, void *options, const char *value, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!option || !options || !value)
        return FAIL(&e, INVALID_ARG, "%s is NULL", !option ? "option" : !options ? "options" : "text");
    option_value v = { 0 };
    if (!value_read(option, value, &v)) return refuse(&e, option, value);
    memcpy((char *)options + option->offset, &v, option->size);
    return SINTER_OK;
}

/* ---- values of a struct ---- */

static option_value value_of(const sinter_option *o, const void *options)
{
    option_value v = { 0 };
    memcpy(&v, (const char *)options + o->offset, o->size);
    return v;
}

static double number_of(const sinter_option *o, const option_value *v)
{
    if (o->kind == SINTER_OPTION_REAL) return v->real;
    return o->size == sizeof v->word ? (double)v->word : (double)v->count;
}

static bool is_text_kind(const sinter_option *o)
{
    return o->kind >= SINTER_OPTION_TEXT;
}

sinter_status options_check(env *e, const sinter_option *rows, const void *options)
{
    for (const sinter_option *o = rows; o->name; o++) {
        const option_value v = value_of(o, options);
        if (is_text_kind(o)) {
            if (v.text && !is_text(o, v.text)) return refuse(e, o, v.text);
            continue;
        }
        const double x = number_of(o, &v);
        if (o->kind == SINTER_OPTION_FLAG || (x >= 0 && x <= o->most)) continue;
        if (o->kind == SINTER_OPTION_CHOICE || o->kind == SINTER_OPTION_SET)
            return FAIL(e, INVALID_ARG, "%s is %u, expected 0 to %.0f: %s", o->name, v.word, o->most, o->words);
        return FAIL(e, INVALID_ARG, "%s is %g, expected 0 to %g", o->name, x, o->most);
    }
    return SINTER_OK;
}

static void value_print(text *t, const sinter_option *o, const option_value *v)
{
    if (is_text_kind(o)) {
        text_printf(t, " %s=%s", o->name, v->text ? v->text : "");
    } else if (o->kind != SINTER_OPTION_CHOICE && o->kind != SINTER_OPTION_SET) {
        text_printf(t, " %s=%g", o->name, number_of(o, v));
    } else {
        const char *at = o->words, *between = "";
        text_printf(t, " %s=", o->name);
        for (uint32_t i = 0; *at; i++) {
            const size_t n = strcspn(at, "|");
            const bool has = o->kind == SINTER_OPTION_SET ? v->word >> i & 1 : v->word == i;
            if (has) text_printf(t, "%s%.*s", between, (int)n, at);
            if (has) between = ",";
            at += n + (at[n] == '|');
        }
    }
}

void options_print(text *t, const sinter_option *rows, const void *options, const char *const *fields)
{
    for (; *fields; fields++)
        for (const sinter_option *o = rows; o->name; o++) {
            const option_value v = value_of(o, options);
            if (!strcmp(o->name, *fields)) value_print(t, o, &v);
        }
}

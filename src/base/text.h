/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - building and scanning text. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"

/* A string under construction: always NUL-terminated; a failed append sets `failed` and is otherwise ignored. */
typedef struct text {
    env   *e;
    char  *at;
    size_t length, capacity;
    bool   failed;
} text;

void text_init(text *t, env *e);
void text_deinit(text *t);
void text_clear(text *t);
void text_append(text *t, const char *bytes, size_t length);
void text_printf(text *t, const char *format, ...) ENV_PRINTF(2, 3);
/* Shortest decimal that reads back as the same double (or float): the canonical print of every number we store. */
void text_f64(text *t, double value);

/* A cursor over text that is not NUL-terminated. Every function leaves the cursor alone when it returns false. */
typedef struct scan { const char *at, *end; } scan;
static inline scan scan_of(const char *text_at, size_t length) { return (scan){ text_at, text_at + length }; }
void scan_space(scan *s);                                        /* skips spaces and tabs */
bool scan_char(scan *s, char c);
bool scan_word(scan *s, const char *word);                       /* exactly this word, not followed by [A-Za-z0-9_] */
bool scan_name(scan *s, const char **at, size_t *length);        /* [A-Za-z_][A-Za-z0-9_.]* */
bool scan_i64(scan *s, int64_t *value);                          /* optional sign, decimal, checked */
bool scan_f64(scan *s, double *value);                           /* decimal, inf, nan, 0x hex bits are not accepted */
bool scan_quoted(scan *s, arena *a, char **out);                 /* "..." with \" \\ \n \xHH */
void text_quoted(text *t, const char *bytes, size_t length);     /* the inverse */

#endif

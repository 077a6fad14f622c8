/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - what the command writes: errors, tables, JSON, progress; and the few helpers that every verb needs. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "log.h"
#include "sinter/sinter.h"
#include <stdbool.h>
#include <stdio.h>

/* ---- memory: a command that has none ends ---- */
void *cli_alloc(size_t count, size_t size);                     /* zeroed; never NULL */
void *cli_grow(void *ptr, size_t count, size_t size);           /* not cleared */
char *cli_copy(const char *text);
char *cli_join(const char *folder, const char *name);           /* folder/name */

double   cli_seconds(void);                                     /* monotonic */
uint64_t cli_random(uint64_t *state);                           /* splitmix64 */
/* A small text file, NUL-terminated; NULL where it is missing, unreadable or larger than `max`. */
char    *cli_read(const char *path, size_t max);

/* ---- errors ---- */
/* "error: …" and its causes to stderr. Returns the exit status of a failure. */
int  cli_error(const sinter_error *error);
int  cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The deepest cause on one line, without the place in the source. */
void cli_reason(const sinter_error *error, char *out, size_t size);

/* ---- progress: one line on a terminal, only after a second ---- */
typedef struct progress { double start, shown; bool is_terminal, is_on; } progress;
void progress_begin(progress *p);
void progress_show(progress *p, const char *what, double done);
void progress_end(progress *p);

/* ---- shapes and numbers ---- */
typedef struct shape_text { char at[192]; } shape_text;
shape_text cli_shape(uint32_t rank, const int64_t *dim);        /* 1x3x224x224; "scalar" */
typedef struct number_text { char at[40]; } number_text;
number_text cli_bytes(double bytes);                            /* 12.3 MB */

/* ---- tables: columns as wide as their widest cell; numbers to the right ---- */
enum { TABLE_COLUMNS = 10 };
typedef struct table { uint32_t columns, rows, capacity; bool is_right[TABLE_COLUMNS]; char **cell; } table;
void table_begin(table *t, const char *const *title, uint32_t columns); /* a title that begins with '>' aligns right */
void table_cell(table *t, uint32_t column, const char *format, ...) __attribute__((format(printf, 3, 4)));
void table_row(table *t);
void table_end(table *t, FILE *to);                                            /* prints and frees */

void cli_cell(FILE *to, const char *text);                                     /* of a table in Markdown */

/* ---- JSON ---- */
typedef struct json { FILE *to; uint32_t depth; bool has_member[32]; } json;
void json_open(json *j, const char *key, char bracket);         /* '{' or '[' */
void json_close(json *j, char bracket);
void json_text(json *j, const char *key, const char *value);    /* NULL: null */
void json_real(json *j, const char *key, double value);         /* null where it is not finite */
void json_count(json *j, const char *key, int64_t value);
void json_raw(json *j, const char *key, const char *text);      /* JSON already */
void json_dims(json *j, const char *key, uint32_t rank, const int64_t *dim);

/* What sinter's print functions write to: a FILE, or text kept in memory. */
void cli_write_file(void *user, const char *text, size_t length);
typedef struct kept_text { char *at; size_t length; } kept_text;
void cli_write_kept(void *user, const char *text, size_t length);

#endif

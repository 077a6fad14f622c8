/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - errors, tables, JSON and progress. Reports go to stdout; everything about the work itself to stderr. */
#include "print.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- memory, files, time ---- */

static void *checked(void *ptr)
{
    if (ptr) return ptr;
    (void)fprintf(stderr, "error: out of memory\n");
    exit(1);
}

void *cli_alloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size));
}

void *cli_grow(void *ptr, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) return checked(NULL);
    return checked(realloc(ptr, count && size ? count * size : 1));
}

char *cli_copy(const char *text)
{
    return checked(strdup(text));
}

char *cli_join(const char *folder, const char *name)
{
    const size_t a = strlen(folder), b = strlen(name);
    const bool has_slash = a && folder[a - 1] == '/';
    char *path = cli_alloc(a + b + 2, 1);
    memcpy(path, folder, a);
    if (!has_slash) path[a] = '/';
    memcpy(path + a + !has_slash, name, b);
    return path;
}

double cli_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

uint64_t cli_random(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

char *cli_read(const char *path, size_t max)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > max) return NULL;
    FILE *file = fopen(path, "rbe");
    if (!file) return NULL;
    const size_t size = (size_t)st.st_size;
    char *text = cli_alloc(size + 1, 1);
    const size_t got = fread(text, 1, size, file);
    (void)fclose(file);
    if (got == size) return text;
    free(text);
    return NULL;
}

/* ---- errors ---- */

int cli_error(const sinter_error *error)
{
    cli_say(LOG_ERROR, "%s", error->length ? error->text : sinter_status_text(error->status));
    return 1;
}

int cli_fail(const char *format, ...)
{
    char text[4096];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    cli_say(LOG_ERROR, "%s", text);
    return 1;
}

/* A line without the " [file:line]" at its end. */
static size_t line_length(const char *line)
{
    const size_t n = strcspn(line, "\n");
    if (!n || line[n - 1] != ']') return n;
    for (size_t i = n - 1; i > 1; i--) {
        if (line[i] == '[' && line[i - 1] == ' ') return i - 1;
    }
    return n;
}

void cli_reason(const sinter_error *error, char *out, size_t size)
{
    const char *line = error->length ? error->text : sinter_status_text(error->status);
    const int first = (int)line_length(line);
    /* Many causes at once: the first of them says more than their number. */
    static const char many[] = "cannot be imported";
    const char *next = strchr(line, '\n');
    const bool has_many = first >= (int)sizeof many && !memcmp(line + first - (sizeof many - 1), many, sizeof many - 1);
    if (next && has_many) {
        next++;
        while (*next == ' ') next++;
        static const char lead[] = "while importing ";
        if (!strncmp(next, lead, sizeof lead - 1)) next += sizeof lead - 1;
        (void)snprintf(out, size, "%.*s (one of several)", (int)line_length(next), next);
    } else {
        (void)snprintf(out, size, "%.*s", first, line);
    }
}

/* ---- progress ---- */

void progress_begin(progress *p)
{
    *p = (progress){ .start = cli_seconds(), .is_terminal = isatty(STDERR_FILENO) == 1 };
}

void progress_show(progress *p, const char *what, double done)
{
    if (!p->is_terminal) return;
    const double now = cli_seconds();
    if (now - p->start < 1 || now - p->shown < 0.1) return;
    p->shown = now;
    p->is_on = true;
    (void)fprintf(stderr, "\r\033[K%s %.0f %%", what, 100 * done);
    (void)fflush(stderr);
}

void progress_end(progress *p)
{
    if (p->is_on) (void)fprintf(stderr, "\r\033[K");
    p->is_on = false;
}

/* ---- shapes and numbers ---- */

shape_text cli_shape(uint32_t rank, const int64_t *dim)
{
    shape_text out = { "scalar" };
    size_t at = 0;
    for (uint32_t i = 0; i < rank && i < SINTER_RANK_MAX; i++) {
        const int n = dim[i] < 0 ? snprintf(out.at + at, sizeof out.at - at, "%s?", i ? "x" : "")
                                 : snprintf(out.at + at, sizeof out.at - at, "%s%lld", i ? "x" : "", (long long)dim[i]);
        at += (size_t)n;
    }
    return out;
}

number_text cli_bytes(double bytes)
{
    static const char *const unit[] = { "B", "kB", "MB", "GB", "TB" };
    number_text out;
    uint32_t i = 0;
    for (; bytes >= 999.5 && i + 1 < sizeof unit / sizeof unit[0]; i++) bytes /= 1000;
    (void)snprintf(out.at, sizeof out.at, i && bytes < 99.5 ? "%.1f %s" : "%.0f %s", bytes, unit[i]);
    return out;
}

/* ---- tables ---- */

void table_begin(table *t, const char *const *title, uint32_t columns)
{
    *t = (table){ .columns = columns };
    for (uint32_t i = 0; i < columns; i++) {
        t->is_right[i] = title[i][0] == '>';
        table_cell(t, i, "%s", title[i] + t->is_right[i]);
    }
    table_row(t);
}

void table_cell(table *t, uint32_t column, const char *format, ...)
{
    if (t->rows == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 32;
        t->cell = cli_grow(t->cell, (size_t)t->capacity * t->columns, sizeof *t->cell);
        memset(t->cell + (size_t)t->rows * t->columns, 0,
               (size_t)(t->capacity - t->rows) * t->columns * sizeof *t->cell);
    }
    char text[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    char **cell = &t->cell[(size_t)t->rows * t->columns + column];
    free(*cell);
    *cell = cli_copy(text);
}

void table_row(table *t)
{
    t->rows++;
}

void table_end(table *t, FILE *to)
{
    int width[TABLE_COLUMNS] = { 0 };
    for (uint32_t i = 0; i < t->rows * t->columns; i++) {
        const int n = t->cell[i] ? (int)strlen(t->cell[i]) : 0;
        if (n > width[i % t->columns]) width[i % t->columns] = n;
    }
    for (uint32_t i = 0; i < t->rows * t->columns; i++) {
        const uint32_t column = i % t->columns;
        const bool is_last = column + 1 == t->columns;
        const char *cell = t->cell[i] ? t->cell[i] : "";
        if (t->is_right[column]) (void)fprintf(to, "%*s", width[column], cell);
        else (void)fprintf(to, "%-*s", is_last ? 0 : width[column], cell);
        (void)fprintf(to, "%s", is_last ? "\n" : "  ");
    }
    for (uint32_t i = 0; i < t->rows * t->columns; i++) free(t->cell[i]);
    free(t->cell);
    *t = (table){ 0 };
}

/* A '|' would end the cell. */
void cli_cell(FILE *to, const char *text)
{
    for (; *text; text++) (void)fprintf(to, *text == '|' ? "\\%c" : "%c", *text);
}

/* ---- JSON ---- */

static void json_string(FILE *to, const char *text)
{
    (void)fputc('"', to);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') (void)fprintf(to, "\\%c", c);
        else if (c < 0x20) (void)fprintf(to, "\\u%04x", c);
        else (void)fputc(c, to);
    }
    (void)fputc('"', to);
}

static void json_key(json *j, const char *key)
{
    if (j->depth) {
        (void)fprintf(j->to, "%s%*s", j->has_member[j->depth] ? ",\n" : "\n", (int)j->depth, "");
        j->has_member[j->depth] = true;
    }
    if (!key) return;
    json_string(j->to, key);
    (void)fprintf(j->to, ": ");
}

void json_open(json *j, const char *key, char bracket)
{
    json_key(j, key);
    (void)fputc(bracket, j->to);
    j->has_member[++j->depth] = false;
}

void json_close(json *j, char bracket)
{
    (void)fputc(bracket, j->to);
    if (--j->depth == 0) (void)fputc('\n', j->to);
}

void json_text(json *j, const char *key, const char *value)
{
    json_key(j, key);
    if (value) json_string(j->to, value);
    else (void)fprintf(j->to, "null");
}

void json_real(json *j, const char *key, double value)
{
    json_key(j, key);
    (void)fprintf(j->to, isfinite(value) ? "%.9g" : "null", value);
}

void json_count(json *j, const char *key, int64_t value)
{
    json_key(j, key);
    (void)fprintf(j->to, "%lld", (long long)value);
}

void json_raw(json *j, const char *key, const char *text)
{
    json_key(j, key);
    size_t length = strlen(text);
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' ')) length--;
    (void)fwrite(text, 1, length, j->to);
}

void json_dims(json *j, const char *key, uint32_t rank, const int64_t *dim)
{
    json_key(j, key);
    (void)fputc('[', j->to);
    for (uint32_t i = 0; i < rank; i++) (void)fprintf(j->to, "%s%lld", i ? ", " : "", (long long)dim[i]);
    (void)fputc(']', j->to);
}

/* ---- writers ---- */

void cli_write_file(void *user, const char *text, size_t length)
{
    (void)fwrite(text, 1, length, user);
}

void cli_write_kept(void *user, const char *text, size_t length)
{
    kept_text *kept = user;
    kept->at = cli_grow(kept->at, kept->length + length + 1, 1);
    memcpy(kept->at + kept->length, text, length);
    kept->length += length;
    kept->at[kept->length] = 0;
}

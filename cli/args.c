/* SPDX-License-Identifier: Apache-2.0 */
/* args.c - the option table at work: parsing, --help, the options page. */
#include "args.h"

#include "print.h"
#include <stdlib.h>
#include <string.h>

typedef struct option {
    const char *name;
    arg_kind kind;
    unsigned verbs;
    const char *value, *help;
    size_t at, extra; /* offsets in args: the field, and its has_… or …_at */
    /* Rows of the library, whose names these are; NULL: the option is the command's own. */
    const sinter_option *build, *load, *simplify, *calibrate, *quantize;
} option;

/* clang-format off */
#define EXTRA_FLAG(field) 0
#define EXTRA_TEXT(field) 0
#define EXTRA_WORD(field) 0
#define EXTRA_PATHS(field) 0
#define EXTRA_PAIRS(field) 0
#define EXTRA_FILES(field) 0
#define EXTRA_DIMS(field) 0
#define EXTRA_COLONS(field) 0
#define EXTRA_RANGES(field) 0
#define EXTRA_LIMITS(field) 0
#define EXTRA_NUMBERS(field) 0
#define EXTRA_WORDS(field) 0
#define EXTRA_COUNT(field) offsetof(args, has_##field)
#define EXTRA_REAL(field) offsetof(args, has_##field)
#define X(field, kind, name, verbs, value, help) \
    { name, ARG_##kind, verbs, value, help, offsetof(args, field), EXTRA_##kind(field), NULL, NULL, NULL, NULL, NULL },
static const option own[] = { CLI_OPTIONS(X) };
#undef X
/* clang-format on */

/* Verbs that take an option of the library; the others of a build go with every verb that builds. */
static const struct {
    const char *name;
    unsigned verbs;
} placed[] = {
    { "device", V_MODEL | V_TEST },
    { "threads", V_MODEL | V_TEST | V_GIVEN },
    { "spin", V_RUN | V_BENCH | V_TEST | V_COMPARE },
    { "pin", V_RUN | V_BENCH | V_TEST | V_COMPARE },
    { "kernel-cache", V_MODEL | V_TEST },
    { "isa", V_MODEL | V_TEST | V_GIVEN },
    { "trust-code", V_RUN | V_BENCH | V_REPORT | V_COMPARE },
    { "weight-budget", V_RUN | V_BENCH | V_TEST | V_COMPARE },
    { "no-code", V_BUILD },
};

enum { OPTIONS_MAX = 128, WORD_MAX = 64 };
static option options[OPTIONS_MAX];
static uint32_t option_count;
static char names[OPTIONS_MAX][WORD_MAX], values[OPTIONS_MAX][WORD_MAX];

/* `text` with every `from` as `to`. */
static void translate(char *out, const char *text, char from, char to)
{
    uint32_t i = 0;
    for (; text[i] && i + 1 < WORD_MAX; i++) out[i] = text[i] == from ? to : text[i];
    out[i] = 0;
}

static bool is_library(const option *o)
{
    return o->build || o->load || o->simplify || o->calibrate || o->quantize;
}

static option *library_option(const sinter_option *row)
{
    char *name = names[option_count];
    translate(name, row->name, '_', '-');
    for (uint32_t i = 0; i < option_count; i++)
        if (is_library(&options[i]) && !strcmp(options[i].name, name)) return &options[i];
    option *o = &options[option_count];
    translate(values[option_count], row->words, row->kind == SINTER_OPTION_SET ? '|' : 0, ',');
    *o = (option){ .name = name,
                   .kind = row->kind == SINTER_OPTION_FLAG ? ARG_FLAG : ARG_TEXT,
                   .value = values[option_count],
                   .help = row->text };
    option_count++;
    return o;
}

static void options_init(void)
{
    memcpy(options, own, sizeof own);
    option_count = sizeof own / sizeof own[0];
    const sinter_option *row;
    for (uint32_t i = 0; (row = sinter_build_option(i)) != NULL; i++) {
        option *o = library_option(row);
        o->build = row;
        o->verbs = V_MADE;
    }
    for (uint32_t i = 0; (row = sinter_engine_option(i)) != NULL; i++) library_option(row)->load = row;
    for (uint32_t i = 0; (row = sinter_simplify_option(i)) != NULL; i++) {
        option *o = library_option(row);
        o->simplify = row;
        o->verbs = V_SIMPLIFY;
    }
    for (uint32_t i = 0; (row = sinter_calibrate_option(i)) != NULL; i++) {
        option *o = library_option(row);
        o->calibrate = row;
        o->verbs = V_GIVEN;
    }
    for (uint32_t i = 0; (row = sinter_quantize_option(i)) != NULL; i++) {
        option *o = library_option(row);
        o->quantize = row;
        o->verbs = V_QUANTIZE;
    }
    for (uint32_t i = 0; i < option_count; i++)
        for (uint32_t k = 0; k < sizeof placed / sizeof placed[0]; k++)
            if (!strcmp(options[i].name, placed[k].name)) options[i].verbs = placed[k].verbs;
}

static void *field_of(args *a, size_t at)
{
    return (char *)a + at;
}

/* ---- the nearest word ---- */

static uint32_t distance(const char *a, const char *b)
{
    uint32_t row[WORD_MAX + 1];
    const size_t n = strlen(b);
    if (n > WORD_MAX) return UINT32_MAX;
    for (uint32_t j = 0; j <= n; j++) row[j] = j;
    for (uint32_t i = 1; *a; a++, i++) {
        uint32_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const uint32_t change = corner + (*a != b[j - 1]);
            corner = row[j];
            uint32_t best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = change < best ? change : best;
        }
    }
    return row[n];
}

const char *args_nearest(const char *word, const char *const *candidate, uint32_t count)
{
    const char *found = NULL;
    const size_t length = strlen(word);
    uint32_t best = (uint32_t)(length > WORD_MAX ? 0 : length / 3 + 2);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t d = distance(word, candidate[i]);
        if (d >= best) continue;
        best = d;
        found = candidate[i];
    }
    return found;
}

/* ---- parsing ---- */

static bool complain(const cli_verb *verb, const char *what, const char *word, const char *wanted)
{
    (void)fprintf(stderr, "sinter %s: %s '%s'%s%s\n", verb->name, what, word, wanted ? ": " : "", wanted ? wanted : "");
    (void)fprintf(stderr, "sinter %s --help lists the options\n", verb->name);
    return false;
}

/* Of an option's value; `word` may be "--option=value". */
static bool complain_of(const cli_verb *verb, const char *word, const char *value, const char *wanted)
{
    char name[WORD_MAX + 8];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    return complain(verb, name, value, wanted);
}

static bool unknown(const cli_verb *verb, const char *word)
{
    const char *name[OPTIONS_MAX + 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < option_count; i++) {
        if (options[i].verbs & verb->bit) name[count++] = options[i].name;
    }
    name[count++] = "help";
    const char *near = args_nearest(word + (word[1] == '-' ? 2 : 1), name, count);
    char hint[WORD_MAX + 32] = { 0 };
    if (near) (void)snprintf(hint, sizeof hint, "did you mean --%s?", near);
    return complain(verb, "unknown option", word, near ? hint : NULL);
}

static bool store_count(const char *value, uint64_t *out)
{
    if (*value < '0' || *value > '9' || strlen(value) > 18) return false;
    char *end = NULL;
    *out = strtoull(value, &end, 10);
    return !*end;
}

/* strtod takes more than numbers in decimal: spaces, hexadecimal, words. */
static bool store_real(const char *value, double *out)
{
    char *end = NULL;
    if (value[strspn(value, "0123456789.eE+-")]) return false;
    *out = strtod(value, &end);
    return *value != '+' && end != value && !*end && *out >= 0 && *out <= 1e18;
}

static bool dims_read(const char **text, uint32_t *rank, int64_t *dim)
{
    *rank = 0;
    while (true) {
        if (**text < '0' || **text > '9' || *rank == SINTER_RANK_MAX) return false;
        char *end = NULL;
        const unsigned long long value = strtoull(*text, &end, 10);
        if (end - *text > 12) return false;
        dim[(*rank)++] = (int64_t)value;
        *text = end;
        if (**text != 'x') return true;
        (*text)++;
    }
}

bool args_dims_read(const char *text, args_dims *out)
{
    *out = (args_dims){ 0 };
    while (out->count < 3) {
        uint32_t rank = 0;
        if (!dims_read(&text, &rank, out->at[out->count]) || (out->count && rank != out->rank)) return false;
        out->rank = rank;
        out->count++;
        if (!*text) return out->count != 2;
        if (*text++ != ',') return false;
    }
    return false;
}

bool args_colons_read(const char *text, uint32_t *rank, int64_t *dim)
{
    const char *colon = strrchr(text, ':');
    *rank = 0;
    if (!colon || colon == text) return false;
    for (const char *p = colon + 1; *p;) {
        char *end = NULL;
        if (*p < '0' || *p > '9' || *rank == SINTER_RANK_MAX) return false;
        dim[(*rank)++] = (int64_t)strtoull(p, &end, 10);
        if (end - p > 12 || (*end && *end != ',' && *end != 'x') || (*end && !end[1])) return false;
        p = *end ? end + 1 : end;
    }
    return true;
}

bool args_is_word_of(const char *list, const char *word)
{
    const size_t length = strlen(word);
    while (*list) {
        const size_t n = strcspn(list, "|");
        if (n == length && !memcmp(list, word, n)) return true;
        list += n + (list[n] == '|');
    }
    return false;
}

static bool is_ascending(const args_dims *d)
{
    for (uint32_t k = 0; k < d->rank; k++) {
        if (d->at[0][k] > d->at[1][k] || d->at[1][k] > d->at[2][k]) return false;
    }
    return true;
}

bool args_is_npz(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".npz");
}

/* "NAME=..." in the form of its kind. Names may hold '=', values do not: the last one divides. A scalar has no dims. */
static bool is_item(const option *o, const char *text)
{
    const arg_kind kind = o->kind;
    const char *equals = strrchr(text, '=');
    args_dims dims;
    int64_t dim[SINTER_RANK_MAX];
    if (kind == ARG_COLONS) return args_colons_read(text, &dims.rank, dim);
    if (kind == ARG_PATHS) return *text != 0;
    if (kind == ARG_NUMBERS || kind == ARG_WORDS) {
        const char *colon = strrchr(text, ':'), *last = colon ? colon + 1 : text;
        double number = 0;
        return colon != text && (kind == ARG_WORDS ? args_is_word_of(o->value, last) : store_real(last, &number));
    }
    if (kind == ARG_FILES && args_is_npz(text) && !equals) return true;
    if (!equals || equals == text) return false;
    const char *value = equals + 1;
    if (kind == ARG_DIMS) return !*value || (args_dims_read(value, &dims) && dims.count == 1);
    if (kind == ARG_RANGES) return args_dims_read(value, &dims) && dims.count == 3 && is_ascending(&dims);
    return *value != 0;
}

static bool store_item(const cli_verb *verb, const option *o, const char *word, const char *value, arg_list *list)
{
    char wanted[128];
    const char *also = o->kind == ARG_DIMS || o->kind == ARG_COLONS ? " (whole numbers)"
                       : o->kind == ARG_RANGES                      ? " (whole numbers, min <= opt <= max)"
                                                                    : "";
    (void)snprintf(wanted, sizeof wanted, "expected %s%s", o->value, also);
    if (!is_item(o, value)) return complain_of(verb, word, value, wanted);
    if (list->count == ARG_LIST_MAX) return complain(verb, "given too often:", word, NULL);
    list->at[list->count++] = value;
    return true;
}

/* Into the library's own structs. */
static bool store_library(const cli_verb *verb, const option *o, const char *word, const char *value, args *a)
{
    sinter_error error = { 0 };
    sinter_status s = SINTER_OK;
    if (o->build) s = sinter_option_set(o->build, &a->build, value, &error);
    if (o->load && s == SINTER_OK) s = sinter_option_set(o->load, &a->load, value, &error);
    if (o->simplify && s == SINTER_OK) s = sinter_option_set(o->simplify, &a->simplify, value, &error);
    if (o->calibrate && s == SINTER_OK) s = sinter_option_set(o->calibrate, &a->calibrate, value, &error);
    if (o->quantize && s == SINTER_OK) s = sinter_option_set(o->quantize, &a->quantize, value, &error);
    return s == SINTER_OK || complain_of(verb, word, value, error.text);
}

static bool store_word(const cli_verb *verb, const option *o, const char *word, const char *value, const char **out)
{
    char wanted[128];
    (void)snprintf(wanted, sizeof wanted, "expected one of %s", o->value);
    *out = value;
    return args_is_word_of(o->value, value) || complain_of(verb, word, value, wanted);
}

static bool store(const cli_verb *verb, const option *o, const char *word, const char *value, args *a)
{
    if (is_library(o)) return store_library(verb, o, word, o->kind == ARG_FLAG ? "1" : value, a);
    void *field = field_of(a, o->at);
    switch (o->kind) {
    case ARG_FLAG: *(bool *)field = true; return true;
    case ARG_TEXT: *(const char **)field = value; return *value || complain_of(verb, word, value, o->value);
    case ARG_WORD: return store_word(verb, o, word, value, field);
    case ARG_PATHS:
    case ARG_PAIRS:
    case ARG_FILES:
    case ARG_DIMS:
    case ARG_COLONS:
    case ARG_RANGES:
    case ARG_NUMBERS:
    case ARG_WORDS: return store_item(verb, o, word, value, field);
    case ARG_LIMITS: {
        char wanted[256];
        return args_limit_read(value, field, wanted, sizeof wanted) || complain_of(verb, word, value, wanted);
    }
    case ARG_COUNT:
        *(bool *)field_of(a, o->extra) = true;
        return store_count(value, field) || complain_of(verb, word, value, "expected a whole number");
    case ARG_REAL:
        *(bool *)field_of(a, o->extra) = true;
        return store_real(value, field) || complain_of(verb, word, value, "expected a number, 0 or more");
    }
    return false;
}

/* Other tools write --calibration_method where this one has --calibration-method: both serve. */
static bool is_name(const char *name, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (word[i] != name[i] && !(name[i] == '-' && word[i] == '_')) return false;
    return true;
}

static const option *option_find(const cli_verb *verb, const char *name, size_t length)
{
    for (uint32_t i = 0; i < option_count; i++) {
        const option *o = &options[i];
        if ((o->verbs & verb->bit) && strlen(o->name) == length && is_name(o->name, name, length)) return o;
    }
    return NULL;
}

/* Options for another run of this command. The text lives as long as the command. */
static void said_add(const option *o, const char *value, args *out)
{
    if (out->said.count == ARG_LIST_MAX) return;
    const size_t size = strlen(o->name) + (value ? strlen(value) : 0) + sizeof "--=";
    char *text = cli_alloc(size, 1);
    (void)snprintf(text, size, "--%s%s%s", o->name, value ? "=" : "", value ? value : "");
    out->said.at[out->said.count++] = text;
}

bool args_parse(const cli_verb *verb, int argc, char **argv, args *out)
{
    options_init();
    memset(out, 0, sizeof *out);
    out->build = (sinter_build_options)SINTER_BUILD_OPTIONS;
    out->build.tune = verb->tune;
    out->load = (sinter_engine_options)SINTER_ENGINE_OPTIONS;
    out->simplify = (sinter_simplify_options)SINTER_SIMPLIFY_OPTIONS;
    out->calibrate = (sinter_calibrate_options)SINTER_CALIBRATE_OPTIONS;
    out->quantize = (sinter_quantize_options)SINTER_QUANTIZE_OPTIONS;
    out->verb = verb->name;
    out->verb_bit = verb->bit;
    bool is_over = false;
    for (int i = 2; i < argc; i++) {
        const char *word = argv[i];
        if (is_over || word[0] != '-' || !word[1]) {
            if (out->file.count == ARG_LIST_MAX) return complain(verb, "too many files:", word, NULL);
            out->file.at[out->file.count++] = word;
            continue;
        }
        if (!strcmp(word, "--")) {
            is_over = true;
            continue;
        }
        if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            out->help = true;
            return true;
        }
        const bool is_o = !strcmp(word, "-o");
        const char *name = is_o ? "output" : word + 2;
        const char *equals = is_o ? NULL : strchr(word, '=');
        const size_t length = equals ? (size_t)(equals - name) : strlen(name);
        const option *o = is_o || word[1] == '-' ? option_find(verb, name, length) : NULL;
        if (!o) return unknown(verb, word);
        if (o->kind == ARG_FLAG && equals) return complain(verb, "takes no value:", word, NULL);
        const char *value = equals ? equals + 1 : NULL;
        if (o->kind != ARG_FLAG && !equals) {
            /* A file whose name begins so is ./--name, or stands behind a '='. */
            if (i + 1 >= argc || !strncmp(argv[i + 1], "--", 2))
                return complain(verb, "wants a value:", word, o->value);
            value = argv[++i];
        }
        if ((o->verbs & V_BUILDING) && !out->building) out->building = o->name;
        if (!store(verb, o, word, value, out)) return false;
        said_add(o, value, out);
    }
    if (out->file.count < verb->file_min || out->file.count > verb->file_max) {
        (void)fprintf(stderr, "sinter %s: %s\nusage: sinter %s %s\n", verb->name,
                      out->file.count < verb->file_min ? "a file is missing" : "too many files", verb->name,
                      verb->usage);
        return false;
    }
    return true;
}

/* ---- pages ---- */

/* Text in lines of at most 76 columns after an indent. */
static void wrap(FILE *to, const char *text, int indent)
{
    int column = 0;
    while (*text) {
        const int n = (int)strcspn(text, " ");
        if (column && column + 1 + n > 100 - indent) {
            (void)fprintf(to, "\n%*s", indent, "");
            column = 0;
        }
        (void)fprintf(to, "%s%.*s", column ? " " : "", n, text);
        column += n + (column > 0);
        text += n;
        while (*text == ' ') text++;
    }
    (void)fputc('\n', to);
}

bool args_info(uint32_t index, arg_info *out)
{
    if (!option_count) options_init();
    if (index >= option_count) return false;
    const option *o = &options[index];
    *out = (arg_info){ .name = o->name, .value = o->value, .help = o->help, .verbs = o->verbs };
    return true;
}

void args_help(const cli_verb *verb, FILE *to)
{
    enum { INDENT = 30 };
    (void)fprintf(to, "usage: sinter %s %s\n\n%s\n\noptions:\n", verb->name, verb->usage, verb->about);
    for (uint32_t i = 0; i < option_count; i++) {
        const option *o = &options[i];
        if (!(o->verbs & verb->bit)) continue;
        const int n = fprintf(to, "  --%s%s%s", o->name, *o->value ? " " : "", o->value);
        (void)fprintf(to, n < INDENT ? "%*s" : "\n%*s", n < INDENT ? INDENT - n : INDENT, "");
        wrap(to, o->help, INDENT);
    }
    (void)fprintf(to, "  %-*s%s\n", INDENT - 2, "--help", "Prints this.");
}

void args_markdown(const cli_verb *verb, uint32_t count, FILE *to)
{
    options_init();
    (void)fprintf(to, "| option | verbs | what it does |\n|---|---|---|\n");
    for (uint32_t i = 0; i < option_count; i++) {
        const option *o = &options[i];
        (void)fprintf(to, "| `--%s", o->name);
        if (*o->value) (void)fputc(' ', to);
        cli_cell(to, o->value);
        (void)fprintf(to, "` | ");
        bool is_first = true;
        for (uint32_t v = 0; v < count; v++) {
            if (!(o->verbs & verb[v].bit)) continue;
            (void)fprintf(to, "%s%s", is_first ? "" : ", ", verb[v].name);
            is_first = false;
        }
        (void)fprintf(to, " | ");
        cli_cell(to, o->help);
        (void)fprintf(to, " |\n");
    }
}

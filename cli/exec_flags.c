/* SPDX-License-Identifier: Apache-2.0 */
/* exec_flags.c - the flags of `sinter exec`: parsing, what becomes of each, --help and the page. */
#include "exec_flags.h"

#include "args.h"
#include "log.h"
#include "print.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const exec_flag exec_flags[EXEC_FLAGS] = {
#define FLAG(name, kind, value, effect, group, versions, text) \
    { #name, EXEC_##kind, value, EXEC_##effect, EXEC_##group, versions, text },
#define WORD_IS(flag, word, effect, text)
#include "exec_flags.def"
#undef FLAG
#undef WORD_IS
};

typedef struct word_row { exec_id id; const char *word; exec_effect effect; const char *text; } word_row;
static const word_row words[] = {
#define FLAG(name, kind, value, effect, group, versions, text)
#define WORD_IS(flag, word, effect, text) { FLAG_##flag, #word, EXEC_##effect, text },
#include "exec_flags.def"
#undef FLAG
#undef WORD_IS
};
/* clang-format on */
enum { WORDS = sizeof words / sizeof words[0] };

/* ---- values ---- */

bool exec_has(const exec_args *x, exec_id id)
{
    return x->value[id] != NULL;
}

const char *exec_text(const exec_args *x, exec_id id)
{
    return x->value[id] ? x->value[id] : "";
}

double exec_number(const exec_args *x, exec_id id, double otherwise)
{
    return x->value[id] ? strtod(x->value[id], NULL) : otherwise;
}

bool exec_is(const exec_args *x, exec_id id, const char *word)
{
    if (x->value[id]) return !strcmp(x->value[id], word);
    const char *first = exec_flags[id].value;
    const size_t length = strcspn(first, "|");
    return strlen(word) == length && !memcmp(first, word, length);
}

/* ---- parsing ---- */

/* Decimal digits, with a point and an exponent where is_real; `least`: -1 permits -1 alone below 0. */
static bool is_number(const char *text, bool is_real, int least)
{
    if (least < 0 && !strcmp(text, "-1")) return true;
    if (!*text || text[strspn(text, is_real ? "0123456789.e-+" : "0123456789")] || *text == '+') return false;
    char *end = NULL;
    const double value = strtod(text, &end);
    return end != text && !*end && value >= 0 && value <= (is_real ? 1e15 : 4294967295.0);
}

static bool is_percents(const char *text)
{
    while (true) {
        char *end = NULL;
        if (text[strspn(text, "0123456789.,")] || *text == ',' || !*text) return false;
        const double value = strtod(text, &end);
        if (end == text || value > 100) return false;
        if (!*end) return true;
        if (*end != ',') return false;
        text = end + 1;
    }
}

static bool is_device(const char *text)
{
    static const char *const kinds[] = { "cpu", "reference", "cuda" };
    if (is_number(text, false, 0)) return true;
    for (uint32_t i = 0; i < 3; i++)
        if (!strcmp(text, kinds[i])) return true;
    return !strncmp(text, "cuda:", 5);
}

/* "+WORD,-WORD"; `list` begins with a +. */
static bool is_signed_words(const char *list, const char *text)
{
    char word[64];
    while (true) {
        const size_t n = strcspn(text, ",");
        if ((*text != '+' && *text != '-') || n > sizeof word) return false;
        (void)snprintf(word, sizeof word, "%.*s", (int)n - 1, text + 1);
        bool is_known = args_is_word_of(list + 1, word);
        for (char *c = word; !is_known && *c; c++)
            if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
        if (!is_known && !args_is_word_of(list + 1, word)) return false;
        if (!text[n]) return true;
        text += n + 1;
    }
}

/* NULL: the value has the flag's form. SHAPES, FILES and SIZES are read where they are used. */
static const char *wrong_value(const exec_flag *f, const char *value)
{
    switch (f->kind) {
    case EXEC_BARE: return value ? "takes no value" : NULL;
    case EXEC_ANY: return NULL;
    case EXEC_COUNT: return value && is_number(value, false, 0) ? NULL : "expected a whole number";
    case EXEC_WHOLE: return value && is_number(value, false, -1) ? NULL : "expected a whole number, or -1";
    case EXEC_REAL: return value && is_number(value, true, 0) ? NULL : "expected a number, 0 or more";
    case EXEC_SECONDS: return value && is_number(value, true, -1) ? NULL : "expected a number, 0 or more, or -1";
    case EXEC_PERCENTS: return value && is_percents(value) ? NULL : "expected numbers from 0 to 100 with commas";
    case EXEC_DEVICE: return value && is_device(value) ? NULL : "expected the number of a GPU, or a device of sinter's";
    case EXEC_WORD: return value && args_is_word_of(f->value, value) ? NULL : "expected one of";
    case EXEC_SIGNED:
        return value && is_signed_words(f->value, value) ? NULL
                                                         : "expected, with + or - before each and commas between,";
    case EXEC_TEXT:
    case EXEC_SHAPES:
    case EXEC_FILES:
    case EXEC_SIZES: return value && *value ? NULL : "wants a value:";
    }
    return NULL;
}

static void add_wrong(kept_text *wrong, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_wrong(kept_text *wrong, const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (wrong->length) cli_write_kept(wrong, "\n", 1);
    cli_write_kept(wrong, line, strlen(line));
}

static exec_id flag_find(const char *name, size_t length)
{
    for (uint32_t i = 0; i < EXEC_FLAGS; i++)
        if (strlen(exec_flags[i].name) == length && !memcmp(exec_flags[i].name, name, length)) return (exec_id)i;
    return EXEC_FLAGS;
}

/* Flags of which several in a row mean something. */
static bool may_repeat(exec_id id)
{
    return id == FLAG_profile || exec_flags[id].kind == EXEC_SHAPES || exec_flags[id].kind == EXEC_FILES ||
           id == FLAG_memPoolSize || id == FLAG_plugins || id == FLAG_staticPlugins || id == FLAG_dynamicPlugins ||
           exec_flags[id].effect == EXEC_REFUSED;
}

static void one_word(const char *word, exec_args *out, kept_text *wrong)
{
    const char *equals = strchr(word, '=');
    const char *name = word + (word[0] == '-' ? 1 + (word[1] == '-') : 0);
    const size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const char *value = equals ? equals + 1 : NULL;
    const bool is_h = !strcmp(word, "-h");
    const exec_id id = is_h ? FLAG_help : word[0] == '-' && word[1] == '-' ? flag_find(name, length) : EXEC_FLAGS;
    if (id == EXEC_FLAGS) {
        add_wrong(wrong, "Unknown option: %.*s %s", equals ? (int)(equals - word) : 512, word, value ? value : "");
        return;
    }
    const exec_flag *f = &exec_flags[id];
    const char *why = f->effect == EXEC_REFUSED ? NULL : wrong_value(f, value);
    const bool names_form = f->kind == EXEC_WORD || f->kind == EXEC_SIGNED || (f->kind != EXEC_BARE && why && !value);
    if (why)
        add_wrong(wrong, "--%s%s%.256s: %s%s%s", f->name, value ? "=" : "", value ? value : "", why,
                  names_form ? " " : "", names_form ? f->value : "");
    if (!value) value = "";
    if (out->value[id] && !may_repeat(id) && strcmp(out->value[id], value) != 0)
        add_wrong(wrong, "--%s is given twice: %.256s and %.256s", f->name, out->value[id], value);
    out->value[id] = value;
    out->given[out->count++] = (exec_given){ id, value };
}

bool exec_parse(int argc, char **argv, int first, exec_args *out, kept_text *wrong)
{
    *out = (exec_args){ .given = cli_alloc((size_t)(argc > 0 ? argc : 1), sizeof *out->given) };
    for (int i = first; i < argc; i++) one_word(argv[i], out, wrong);
    return !wrong->length;
}

void exec_args_free(exec_args *x)
{
    free(x->given);
    *x = (exec_args){ 0 };
}

/* ---- what becomes of them ---- */

static bool explain(const exec_flag *f, const char *word, exec_effect effect, const char *text)
{
    const char *equals = word ? "=" : "";
    if (!word) word = "";
    if (effect == EXEC_REFUSED) cli_say(LOG_ERROR, "--%s%s%s is refused. %s", f->name, equals, word, text);
    if (effect == EXEC_NOTHING) cli_say(LOG_WARNING, "--%s%s%s changes nothing: %s", f->name, equals, word, text);
    if (effect == EXEC_ALWAYS) cli_say(LOG_INFO, "--%s is always so: %s", f->name, text);
    return effect != EXEC_REFUSED;
}

bool exec_explain(const exec_args *x)
{
    bool is_good = true;
    for (uint32_t i = 0; i < EXEC_FLAGS; i++) {
        const exec_flag *f = &exec_flags[i];
        if (!x->value[i]) continue;
        if (f->effect != EXEC_WORKS) is_good = explain(f, NULL, f->effect, f->text) && is_good;
        for (uint32_t k = 0; k < WORDS; k++)
            if (words[k].id == i && !strcmp(words[k].word, x->value[i]))
                is_good = explain(f, words[k].word, words[k].effect, words[k].text) && is_good;
    }
    return is_good;
}

/* ---- pages ---- */

static const char *const group_title[EXEC_GROUPS] = {
    "Model", "Build", "System", "Inference", "Accuracy", "Reporting", "Search over builds"
};
static const char *const effect_lead[] = { "", "Always so: ", "Changes nothing: ", "Refused. " };

static void flag_print(const exec_flag *f, FILE *to)
{
    const bool has_value = *f->value != 0;
    (void)fprintf(to, "  --%s%s%s\n        %s%s\n", f->name, has_value ? "=" : "", f->value, effect_lead[f->effect],
                  f->text);
}

void exec_help(FILE *to)
{
    (void)fprintf(to, "usage: sinter exec --onnx=MODEL.onnx|--loadEngine=ENGINE [flags]\n\n"
                      "Builds an engine, times its runs and reports both, with the flags and in the words of "
                      "TensorRT's trtexec.\nThe command does the same when it is called trtexec.\n");
    for (uint32_t g = 0; g < EXEC_GROUPS; g++) {
        (void)fprintf(to, "\n=== %s ===\n", group_title[g]);
        for (uint32_t i = 0; i < EXEC_FLAGS; i++)
            if (exec_flags[i].group == g) flag_print(&exec_flags[i], to);
    }
}

static void row_print(const exec_flag *f, FILE *to)
{
    static const char *const effect_word[] = { "works", "always so", "changes nothing", "refused" };
    (void)fprintf(to, "| `--%s%s", f->name, *f->value ? "=" : "");
    cli_cell(to, f->value);
    (void)fprintf(to, "` | %s | %s | ", f->versions, effect_word[f->effect]);
    cli_cell(to, f->text);
    (void)fprintf(to, " |\n");
    for (uint32_t k = 0; k < WORDS; k++) {
        if (&exec_flags[words[k].id] != f) continue;
        (void)fprintf(to, "| `--%s=%s` | %s | %s | ", f->name, words[k].word, f->versions,
                      effect_word[words[k].effect]);
        cli_cell(to, words[k].text);
        (void)fprintf(to, " |\n");
    }
}

void exec_page(FILE *to)
{
    uint32_t count[4] = { 0 }, own = 0;
    for (uint32_t i = 0; i < EXEC_FLAGS; i++) {
        if (!strcmp(exec_flags[i].versions, "own")) own++;
        else count[exec_flags[i].effect]++;
    }
    (void)fprintf(
        to,
        "# The flags of trtexec\n\nWhat `sinter exec --flags` prints.\n\n"
        "`sinter exec` takes the command lines of TensorRT's trtexec and answers in its words; so does the command "
        "when "
        "it is called\n`trtexec`, which is a link that the installation makes. Of the %u flags of the trtexec of "
        "TensorRT "
        "8.6, 10.16 and 11.1, %u work, %u\nask for what is always so, %u are accepted and change nothing, and %u are "
        "refused. Each of the last three says so, with the\nreason; %u flags are sinter's own. Defaults are those of "
        "10.16: data transfers are on, TF32 is permitted.\n\n"
        "A line of the log begins with `[MM/DD/YYYY-HH:MM:SS] [I]`. Information goes to stdout, warnings `[W]` and "
        "errors "
        "`[E]` to stderr. The\nexit status is 0 behind `&&&& PASSED` and 1 behind `&&&& FAILED`. On the CPU the "
        "enqueue "
        "time is the time of the run, and nothing is\ncopied. Of several values of one flag that differ, the command "
        "says "
        "so and ends.\n",
        count[0] + count[1] + count[2] + count[3], count[0], count[1], count[2], count[3], own);
    for (uint32_t g = 0; g < EXEC_GROUPS; g++) {
        (void)fprintf(to, "\n## %s\n\n| flag | versions | here | what it does, or why not |\n|---|---|---|---|\n",
                      group_title[g]);
        for (uint32_t i = 0; i < EXEC_FLAGS; i++)
            if (exec_flags[i].group == g) row_print(&exec_flags[i], to);
    }
}

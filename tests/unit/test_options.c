/* SPDX-License-Identifier: Apache-2.0 */
/* test_options.c - every row of the tables of options: each of its values as text and back, and text that is no value.
 */
#include "base/options.h"
#include "test.h"

typedef const sinter_option *(*row_fn)(uint32_t index);
typedef union any_options {
    sinter_build_options build;
    sinter_engine_options engine;
    sinter_context_options context;
    sinter_simplify_options simplify;
    sinter_calibrate_options calibrate;
    sinter_quantize_options quantize;
} any_options;

static const struct {
    const char *name;
    row_fn at;
    const sinter_option *rows;
} tables[] = { { "build", sinter_build_option, build_option_rows },
               { "engine", sinter_engine_option, engine_option_rows },
               { "context", sinter_context_option, context_option_rows },
               { "simplify", sinter_simplify_option, simplify_option_rows },
               { "calibrate", sinter_calibrate_option, calibrate_option_rows },
               { "quantize", sinter_quantize_option, quantize_option_rows } };

static any_options initial(uint32_t table)
{
    any_options o;
    memset(&o, 0, sizeof o);
    if (table == 0) o.build = (sinter_build_options)SINTER_BUILD_OPTIONS;
    if (table == 1) o.engine = (sinter_engine_options)SINTER_ENGINE_OPTIONS;
    if (table == 2) o.context = (sinter_context_options)SINTER_CONTEXT_OPTIONS;
    if (table == 3) o.simplify = (sinter_simplify_options)SINTER_SIMPLIFY_OPTIONS;
    if (table == 4) o.calibrate = (sinter_calibrate_options)SINTER_CALIBRATE_OPTIONS;
    if (table == 5) o.quantize = (sinter_quantize_options)SINTER_QUANTIZE_OPTIONS;
    return o;
}

/* Sets the option and says what the struct then holds, as options_print has it. */
static sinter_status set(uint32_t table, const sinter_option *o, const char *value, char *out, size_t size)
{
    any_options options = initial(table);
    const any_options before = options;
    sinter_error error = { 0 };
    const sinter_status s = sinter_option_set(o, &options, value, &error);
    if (s != SINTER_OK) {
        CHECK_EQ(s, SINTER_INVALID_ARG);
        CHECK_HAS(error.text, o->name);
        CHECK(memcmp(&options, &before, sizeof options) == 0);
        return s;
    }
    env e;
    env_init(&e, NULL, NULL);
    CHECK_EQ(options_check(&e, tables[table].rows, &options), SINTER_OK);
    text t;
    text_init(&t, &e);
    options_print(&t, tables[table].rows, &options, (const char *const[]){ o->name, NULL });
    (void)snprintf(out, size, "%s", t.at);
    text_deinit(&t);
    return s;
}

static void takes(uint32_t table, const sinter_option *o, const char *value)
{
    char got[256] = "", wanted[256];
    (void)snprintf(wanted, sizeof wanted, " %s=%s", o->name, value);
    if (!CHECK_EQ(set(table, o, value, got, sizeof got), SINTER_OK) || strcmp(got, wanted) != 0) {
        (void)printf("%s.%s of '%s': got '%s'\n", tables[table].name, o->name, value, got);
        test_failures++;
    }
}

static void refuses(uint32_t table, const sinter_option *o, const char *value)
{
    char unused[256];
    if (!CHECK_EQ(set(table, o, value, unused, sizeof unused), SINTER_INVALID_ARG))
        (void)printf("%s.%s takes '%s'\n", tables[table].name, o->name, value);
}

/* What is no value of any kind but TEXT and ANY. */
static const char *const malformed[] = {
    "",           "-1",       "+1",   "1.5.2", "0x1", " 1",  "1 ",
    "1x",         "two",      "nan",  "|",     ",",   "inf", "off|fast",
    "fp16,,int8", "1,2",      "OFF",  "1e999", "2e",  ".",   "99999999999999999999",
    "cuda:",      "cuda:sm_", "cpu:0"
};

static void words_of(uint32_t table, const sinter_option *o)
{
    char all[256] = "", word[64];
    for (const char *at = o->words; *at;) {
        const size_t n = strcspn(at, "|");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, at);
        takes(table, o, word);
        (void)snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", *all ? "," : "", word);
        word[0] = (char)(word[0] + 1);
        refuses(table, o, word);
        at += n + (at[n] == '|');
    }
    if (o->kind == SINTER_OPTION_SET) takes(table, o, all);
    else refuses(table, o, all);
}

static void numbers_of(uint32_t table, const sinter_option *o)
{
    char number[64];
    takes(table, o, "0");
    takes(table, o, "1");
    (void)snprintf(number, sizeof number, "%.0f", o->most < 1e5 ? o->most : 1e5);
    takes(table, o, number);
    (void)snprintf(number, sizeof number, "%.0f", o->most * 2 + 1);
    refuses(table, o, number);
    if (o->kind == SINTER_OPTION_REAL) takes(table, o, "0.25");
    else refuses(table, o, "0.25");
}

static void devices_of(uint32_t table, const sinter_option *o)
{
    static const char *const good[] = { "cpu", "reference", "cuda", "cuda:0", "cuda:15", "cuda:sm_75", "cuda:sm_90a" };
    static const char *const bad[] = { "cud",       "cudas",        "cuda:1x",    "cuda:9999",
                                       "cuda:sm_9", "cuda:sm_90ab", "reference:1" };
    for (uint32_t i = 0; i < COUNT_OF(good); i++) takes(table, o, good[i]);
    for (uint32_t i = 0; i < COUNT_OF(bad); i++) refuses(table, o, bad[i]);
}

static void each_option_takes_its_values_and_no_others(void)
{
    for (uint32_t table = 0; table < COUNT_OF(tables); table++) {
        const sinter_option *o;
        for (uint32_t i = 0; (o = tables[table].at(i)) != NULL; i++) {
            const bool is_free = o->kind == SINTER_OPTION_TEXT || o->kind == SINTER_OPTION_ANY;
            if (is_free) takes(table, o, "some/file");
            if (o->kind == SINTER_OPTION_ANY) takes(table, o, "");
            else refuses(table, o, "");
            for (uint32_t k = 1; k < COUNT_OF(malformed) && !is_free; k++)
                if (o->kind != SINTER_OPTION_RULES) refuses(table, o, malformed[k]);
            switch (o->kind) {
            case SINTER_OPTION_CHOICE:
            case SINTER_OPTION_SET:
            case SINTER_OPTION_WORD: words_of(table, o); break;
            case SINTER_OPTION_COUNT:
            case SINTER_OPTION_REAL: numbers_of(table, o); break;
            case SINTER_OPTION_FLAG:
                takes(table, o, "0");
                takes(table, o, "1");
                break;
            case SINTER_OPTION_DEVICE: devices_of(table, o); break;
            case SINTER_OPTION_RULES:
                takes(table, o, "-add-zero,-no-such");
                refuses(table, o, "-a,,-b");
                break;
            default: break;
            }
        }
    }
}

/* A struct that was filled by hand. */
static void a_build_refuses_what_no_text_could_give(void)
{
    const sinter_option *o;
    for (uint32_t i = 0; (o = sinter_build_option(i)) != NULL; i++) {
        any_options options = initial(0);
        uint8_t *field = (uint8_t *)&options + o->offset;
        const double nan = __builtin_nan("");
        static const char *const nonsense = "no:such,word";
        if (o->kind == SINTER_OPTION_REAL) memcpy(field, &nan, sizeof nan);
        else if (o->kind < SINTER_OPTION_TEXT) memset(field, 0xff, o->size);
        else memcpy(field, &nonsense, sizeof(char *));
        sinter_error error = { 0 };
        sinter_buffer out;
        const sinter_status s = sinter_build_memory("", 0, &options.build, &out, &error);
        const bool takes_all = o->kind == SINTER_OPTION_FLAG || o->kind == SINTER_OPTION_TEXT ||
                               o->kind == SINTER_OPTION_ANY || o->kind == SINTER_OPTION_RULES;
        CHECK(s != SINTER_OK);
        if (!takes_all && CHECK_EQ(s, SINTER_INVALID_ARG)) CHECK_HAS(error.text, o->name);
    }
}

static void null_is_refused(void)
{
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    sinter_error error = { 0 };
    CHECK_EQ(sinter_option_set(NULL, &o, "1", &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_option_set(sinter_build_option(0), NULL, "cpu", &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_option_set(sinter_build_option(0), &o, NULL, &error), SINTER_INVALID_ARG);
    CHECK(sinter_build_option(1000) == NULL);
}

static const test tests[] = {
    T(each_option_takes_its_values_and_no_others), T(a_build_refuses_what_no_text_could_give), T(null_is_refused), { 0 }
};
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_text.c - building and scanning text; numbers survive a round trip in every locale. */
#include "base/text.h"
#include "faulty.h"
#include "test.h"
#include <locale.h>
#include <math.h>

static void appends(void)
{
    faulty f = { .budget = -1 };
    const sinter_allocator allocator = { &f, faulty_resize };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.allocator = &allocator;
    env e;
    env_init(&e, &options, NULL);
    text t;
    text_init(&t, &e);
    CHECK_STR(t.at, "");
    for (int i = 0; i < 100; i++) text_printf(&t, "%d,", i);
    text_append(&t, "xyz", 2);
    CHECK_EQ(t.length, 10 * 2 + 90 * 3 + 2);
    CHECK_STR(t.at + t.length - 5, "99,xy");
    text_clear(&t);
    CHECK_STR(t.at, "");
    CHECK(!t.failed);
    text_deinit(&t);
    CHECK_EQ(f.live, 0);
}

static void remembers_failure(void)
{
    faulty f = { .budget = 1 };
    const sinter_allocator allocator = { &f, faulty_resize };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.allocator = &allocator;
    env e;
    env_init(&e, &options, NULL);
    text t;
    text_init(&t, &e);
    text_append(&t, "kept", 4);
    for (int i = 0; i < 100; i++) text_printf(&t, "%d", i);
    CHECK(t.failed);
    CHECK_EQ(strlen(t.at), t.length);
    CHECK_EQ(strncmp(t.at, "kept", 4), 0);
    text_deinit(&t);
    CHECK_EQ(f.live, 0);
    CHECK_EQ(f.misuse, 0);
}

static const char *print(text *t, double value)
{
    text_clear(t);
    text_f64(t, value);
    return t->at;
}

static void prints_shortest_numbers(void)
{
    env e;
    env_init(&e, NULL, NULL);
    text t;
    text_init(&t, &e);
    CHECK_STR(print(&t, 0.0), "0");
    CHECK_STR(print(&t, -0.0), "-0");
    CHECK_STR(print(&t, 1), "1");
    CHECK_STR(print(&t, -12.5), "-12.5");
    CHECK_STR(print(&t, 0.1), "0.1");
    CHECK_STR(print(&t, 1e-5), "0.00001");
    CHECK_STR(print(&t, 1.5e-6), "1.5e-6");
    CHECK_STR(print(&t, 1234567), "1234567");
    CHECK_STR(print(&t, 1e15), "1000000000000000");
    CHECK_STR(print(&t, 1e16), "1e16");
    CHECK_STR(print(&t, 1.7976931348623157e308), "1.7976931348623157e308");
    CHECK_STR(print(&t, 5e-324), "5e-324");
    CHECK_STR(print(&t, (double)0.1f), "0.10000000149011612");
    CHECK_STR(print(&t, INFINITY), "inf");
    CHECK_STR(print(&t, -INFINITY), "-inf");
    CHECK_STR(print(&t, NAN), "nan");
    text_deinit(&t);
}

static void round_trips(const char *where)
{
    env e;
    env_init(&e, NULL, NULL);
    text t;
    text_init(&t, &e);
    uint64_t seed = 7;
    long wrong = 0;
    const long count = test_scale(20000, 1000000);
    for (long i = 0; i < count; i++) {
        const uint64_t bits = test_random(&seed);
        double value = 0;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value)) continue;
        (void)print(&t, value);
        scan s = scan_of(t.at, t.length);
        double read = 0;
        const bool is_read = scan_f64(&s, &read) && s.at == s.end;
        if (!is_read || memcmp(&read, &value, sizeof value)) wrong++;
    }
    if (!CHECK_EQ(wrong, 0)) (void)printf("in locale %s\n", where);
    text_deinit(&t);
}

static void round_trips_numbers(void)
{
    round_trips("C");
    /* Where the machine has a locale with a decimal comma, it must make no difference. */
    const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR" };
    for (size_t i = 0; i < COUNT_OF(locales); i++) {
        if (!setlocale(LC_NUMERIC, locales[i])) continue;
        round_trips(locales[i]);
        break;
    }
    (void)setlocale(LC_NUMERIC, "C");
}

static bool reads_i64(const char *source, int64_t want, const char *rest)
{
    scan s = scan_of(source, strlen(source));
    int64_t value = 0;
    return scan_i64(&s, &value) && value == want && !strcmp(s.at, rest);
}

static bool refuses_i64(const char *source)
{
    scan s = scan_of(source, strlen(source));
    int64_t value = 0;
    return !scan_i64(&s, &value) && s.at == source;
}

static void scans_integers(void)
{
    CHECK(reads_i64("0", 0, ""));
    CHECK(reads_i64("-17x3", -17, "x3"));
    CHECK(reads_i64("+4 ", 4, " "));
    CHECK(reads_i64("9223372036854775807", INT64_MAX, ""));
    CHECK(reads_i64("-9223372036854775808", INT64_MIN, ""));
    CHECK(refuses_i64("9223372036854775808"));
    CHECK(refuses_i64("-9223372036854775809"));
    CHECK(refuses_i64(""));
    CHECK(refuses_i64("-"));
    CHECK(refuses_i64("x"));
}

static bool reads_f64(const char *source, double want, const char *rest)
{
    scan s = scan_of(source, strlen(source));
    double value = 0;
    return scan_f64(&s, &value) && (value == want || (isnan(want) && isnan(value))) && !strcmp(s.at, rest);
}

static bool refuses_f64(const char *source)
{
    scan s = scan_of(source, strlen(source));
    double value = 0;
    return !scan_f64(&s, &value) && s.at == source;
}

static void scans_reals(void)
{
    CHECK(reads_f64("1", 1, ""));
    CHECK(reads_f64("-.5,", -0.5, ","));
    CHECK(reads_f64("3.", 3, ""));
    CHECK(reads_f64("1e3", 1000, ""));
    CHECK(reads_f64("1E-3x", 0.001, "x"));
    CHECK(reads_f64("2e", 2, "e"));
    CHECK(reads_f64("0x10", 0, "x10"));
    CHECK(reads_f64("-inf", -INFINITY, ""));
    CHECK(reads_f64("nan]", NAN, "]"));
    CHECK(refuses_f64("infinity"));
    CHECK(refuses_f64("1e999"));
    CHECK(refuses_f64("."));
    CHECK(refuses_f64("-"));
    CHECK(refuses_f64("e5"));
    CHECK(refuses_f64(""));
}

static void scans_words(void)
{
    const char source[] = " \tconv.weight_1:f32";
    scan s = scan_of(source, sizeof source - 1);
    scan_space(&s);
    CHECK(!scan_word(&s, "con"));
    CHECK(!scan_char(&s, 'x'));
    const char *at = NULL;
    size_t length = 0;
    CHECK(scan_name(&s, &at, &length));
    CHECK_EQ(length, 13);
    CHECK(scan_char(&s, ':'));
    CHECK(!scan_word(&s, "f3"));
    CHECK(scan_word(&s, "f32"));
    CHECK(s.at == s.end);
    CHECK(!scan_name(&s, &at, &length));
    CHECK(!scan_char(&s, 'x'));
}

static void quotes(void)
{
    env e;
    env_init(&e, NULL, NULL);
    arena a;
    arena_init(&a, &e);
    text t;
    text_init(&t, &e);
    char all[256];
    for (int i = 1; i < 256; i++) all[i - 1] = (char)(unsigned char)i;
    all[255] = 0;
    text_quoted(&t, all, 255);
    scan s = scan_of(t.at, t.length);
    char *back = NULL;
    CHECK(scan_quoted(&s, &a, &back));
    CHECK_STR(back, all);
    CHECK(s.at == s.end);
    const char *const bad[] = { "\"", "\"a", "\"\\\"", "\"\\q\"", "\"\\x0\"", "\"\\x00\"", "\"\\xg1\"", "a\"", "" };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        scan b = scan_of(bad[i], strlen(bad[i]));
        CHECK(!scan_quoted(&b, &a, &back));
        CHECK(b.at == bad[i]);
    }
    text_deinit(&t);
    arena_deinit(&a);
}

static const test tests[] = {
    T(appends),
    T(remembers_failure),
    T(prints_shortest_numbers),
    T(round_trips_numbers),
    T(scans_integers),
    T(scans_reals),
    T(scans_words),
    T(quotes),
    { 0 },
};
TEST_MAIN(tests)

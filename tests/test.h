/* SPDX-License-Identifier: Apache-2.0 */
/* test.h - a unit test runner in one header.
 *
 * Tests are static functions named in a table at the bottom of each file, so that the compiler reports a forgotten one:
 *
 *     static void adds(void) { CHECK_EQ(1 + 1, 2); }
 *     static const test tests[] = { T(adds), { 0 } };
 *     TEST_MAIN(tests)
 *
 * A failed check prints its operands and goes on. A program's arguments choose tests by name; the exit status is 1 when
 * anything failed. SINTER_TEST_SCALE=full asks for the long form of tests that have one. */
#ifndef TEST_H
#define TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test {
    const char *name;
    void (*run)(void);
} test;
#define T(function) { #function, function }

/* One program has one: each test file is an executable of its own. */
static int test_failures;

static inline bool test_true(bool is_true, const char *what, const char *file, int line)
{
    if (is_true) return true;
    test_failures++;
    (void)printf("%s:%d: failed: %s\n", file, line, what);
    return false;
}

static inline bool test_eq_i64(long long a, long long b, const char *what, const char *file, int line)
{
    if (a == b) return true;
    test_failures++;
    (void)printf("%s:%d: failed: %s: %lld (0x%llx) != %lld (0x%llx)\n", file, line, what, a, (unsigned long long)a, b,
                 (unsigned long long)b);
    return false;
}

static inline bool test_eq_f64(double a, double b, const char *what, const char *file, int line)
{
    if (a == b || (a != a && b != b)) return true;
    test_failures++;
    (void)printf("%s:%d: failed: %s: %.17g != %.17g\n", file, line, what, a, b);
    return false;
}

static inline bool test_near(double a, double b, double within, const char *what, const char *file, int line)
{
    const double gap = a > b ? a - b : b - a;
    if (gap <= within) return true;
    test_failures++;
    (void)printf("%s:%d: failed: %s: %.9g and %.9g differ by %.3g, not %.3g\n", file, line, what, a, b, gap, within);
    return false;
}

static inline bool test_str(const char *a, const char *b, const char *what, const char *file, int line)
{
    if (a && b && !strcmp(a, b)) return true;
    test_failures++;
    (void)printf("%s:%d: failed: %s: \"%s\" != \"%s\"\n", file, line, what, a ? a : "(null)", b ? b : "(null)");
    return false;
}

static inline bool test_contains(const char *a, const char *part, const char *what, const char *file, int line)
{
    if (a && strstr(a, part)) return true;
    test_failures++;
    (void)printf("%s:%d: failed: %s: \"%s\" has no \"%s\"\n", file, line, what, a ? a : "(null)", part);
    return false;
}

/* Each gives whether it held, so that a test can stop where going on makes no sense. */
#define CHECK(condition) test_true((condition) ? true : false, #condition, __FILE__, __LINE__)
#define CHECK_EQ(a, b) test_eq_i64((long long)(a), (long long)(b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_EQ_F(a, b) test_eq_f64((double)(a), (double)(b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, within) test_near((double)(a), (double)(b), (within), #a " ~ " #b, __FILE__, __LINE__)
#define CHECK_STR(a, b) test_str((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_HAS(a, part) test_contains((a), (part), #a " has " #part, __FILE__, __LINE__)

static inline bool test_is_full(void)
{
    const char *scale = getenv("SINTER_TEST_SCALE");
    return scale && !strcmp(scale, "full");
}

/* A count for a long loop: `quick` by default, `full` where the long form was asked for, a third of `quick` where
 * SINTER_TEST_SCALE is "third": ./check asks for that under AddressSanitizer, for tests that it also runs without. */
static inline long test_scale(long quick, long full)
{
    const char *scale = getenv("SINTER_TEST_SCALE");
    if (scale && !strcmp(scale, "full")) return full;
    return scale && !strcmp(scale, "third") ? (quick + 2) / 3 : quick;
}

/* Is number i of a long list to be taken? Each third one is, where test_scale gives a third. */
static inline bool test_takes(uint32_t i)
{
    return test_scale(3, 3) == 3 || i % 3 == 0;
}

/* Random bits that are the same everywhere (splitmix64); `state` is any seed. */
static inline uint64_t test_random(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static inline uint64_t test_below(uint64_t *state, uint64_t limit)
{
    return limit ? test_random(state) % limit : 0;
}

static inline bool test_is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], name)) return true;
    }
    return argc < 2;
}

static inline int test_run_all(const test *tests, int argc, char **argv)
{
    int ran = 0;
    int failed = 0;
    for (const test *t = tests; t->name; t++) {
        if (!test_is_wanted(t->name, argc, argv)) continue;
        const int before = test_failures;
        t->run();
        ran++;
        if (test_failures == before) continue;
        failed++;
        (void)printf("FAIL %s\n", t->name);
    }
    (void)printf("%d passed, %d failed\n", ran - failed, failed);
    return failed || !ran ? 1 : 0;
}

#define TEST_MAIN(table)                                                                                             \
    int main(int argc, char **argv)                                                                                  \
    {                                                                                                                \
        return test_run_all((table), argc, argv);                                                                    \
    }

#endif

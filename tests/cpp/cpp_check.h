/* SPDX-License-Identifier: Apache-2.0 */
/* cpp_check.h - what the programs of tests/cpp check with: main returns failures != 0. */
#ifndef CPP_CHECK_H
#define CPP_CHECK_H

#include <cstdio>

static int failures;

static void check_that(bool is_true, const char *what, int line)
{
    if (is_true) return;
    std::printf("line %d: %s\n", line, what);
    failures++;
}
#define CHECK(x) check_that((x), #x, __LINE__)

#endif

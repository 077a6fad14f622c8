/* SPDX-License-Identifier: Apache-2.0 */
/* args_limits.c - "NAME=N" of --limit: the names and bounds are those of sinter_limits. */
#include "args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct limit_row {
    const char *name;
    uint64_t least, most;
    size_t at;
} limit_row;

static const limit_row rows[] = {
#define SINTER_X(name, initial, min, max, text) { #name, (min) > 1 ? (min) : 1, (max), offsetof(sinter_limits, name) },
    SINTER_LIMITS(SINTER_X)
#undef SINTER_X
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool is_unknown(char *wanted, size_t size)
{
    int length = snprintf(wanted, size, "expected NAME=N, where NAME is one of");
    for (uint32_t i = 0; i < ROWS && (size_t)length < size; i++)
        length += snprintf(wanted + length, size - (size_t)length, " %s", rows[i].name);
    return false;
}

bool args_limit_read(const char *text, sinter_limits *out, char *wanted, size_t size)
{
    const char *equals = strrchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : 0;
    const limit_row *row = rows;
    while (row < rows + ROWS && (strlen(row->name) != length || memcmp(row->name, text, length) != 0)) row++;
    if (row == rows + ROWS) return is_unknown(wanted, size);
    char *end = NULL;
    errno = 0;
    const uint64_t value = strtoull(equals + 1, &end, 10);
    memcpy((char *)out + row->at, &value, sizeof value);
    if (equals[1] >= '0' && equals[1] <= '9' && !*end && !errno && value >= row->least && value <= row->most)
        return true;
    (void)snprintf(wanted, size, "expected a whole number from %llu to %llu", (unsigned long long)row->least,
                   (unsigned long long)row->most);
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cli_debug.c - `sinter debug`: finds what a failure comes from. */
#include "cli_debug.h"

#include "print.h"
#include <string.h>

int verb_debug(const args *a)
{
    args own = *a;
    own.file = (arg_list){ .at = { a->file.at[1] }, .count = 1 };
    if (!strcmp(a->file.at[0], "precision")) return debug_precision(&own);
    if (!strcmp(a->file.at[0], "reduce")) return debug_reduce(&own);
    (void)cli_fail("debug: '%s', expected precision or reduce", a->file.at[0]);
    return STATUS_USAGE;
}

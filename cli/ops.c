/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - `sinter ops`: the operators that are taken; --markdown prints docs/ops.md. */
#include "args.h"
#include "print.h"

int verb_ops(const args *a)
{
    const int format = a->json ? 2 : a->markdown ? 1 : 0;
    return sinter_print_operators(format, cli_write_file, stdout) == SINTER_OK ? STATUS_OK : cli_fail("out of memory");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - `sinter doctor`: the machine, what is missing and what to do; --markdown prints docs/options.md. */
#include "args.h"
#include "print.h"

#include <inttypes.h>

static void page(void)
{
    (void)printf(
        "# Options, limits, variables\n\nWhat `sinter doctor --markdown` prints.\n\n## Options of the command\n\n");
    args_markdown(cli_verbs, cli_verb_count, stdout);
    (void)printf("\n## Limits\n\nWhat a model may cost at most: `--limit NAME=N`, or `sinter_limits` in C.\n\n"
                 "| name | default | least | most | meaning |\n|---|---|---|---|---|\n");
#define SINTER_X(name, initial, min, max, text)                                                                        \
    (void)printf("| %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %s |\n", #name, (uint64_t)(initial),                \
                 (uint64_t)(min), (uint64_t)(max), text);
    SINTER_LIMITS(SINTER_X)
#undef SINTER_X
    (void)printf("\n## Environment variables\n\n| name | meaning |\n|---|---|\n");
#define SINTER_X(name, text) (void)printf("| %s | %s |\n", #name, text);
    SINTER_VARIABLES(SINTER_X)
#undef SINTER_X
}

int verb_doctor(const args *a)
{
    if (a->markdown) {
        page();
        return STATUS_OK;
    }
    const sinter_print format = a->json ? SINTER_PRINT_JSON : SINTER_PRINT_TEXT;
    return sinter_print_machine(format, cli_write_file, stdout) == SINTER_OK ? STATUS_OK : cli_fail("out of memory");
}

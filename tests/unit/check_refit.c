/* SPDX-License-Identifier: Apache-2.0 */
/* check_refit.c - models refitted with other weights are what a fresh build with these weights is.
 *
 *   check_refit FOLDER [--allow fp16|int8] MODEL.onnx …       FOLDER takes the changed models; on the CPU, not measured
 *
 * A model that is not built without further options is left out. */
#include "refits.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    int failed = 0;
    o.tune = SINTER_TUNE_OFF;
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--allow") && i + 1 < argc) {
            o.allow |= strcmp(argv[++i], "fp16") == 0 ? SINTER_ALLOW_FP16 : SINTER_ALLOW_INT8;
            o.lower = SINTER_LOWER_ALWAYS;
            continue;
        }
        refits_size s;
        char why[600] = "";
        const bool ok = refits_hold(argv[i], argv[1], &o, &s, why, sizeof why);
        const bool is_skipped = !ok && !strncmp(why, "building: ", 10);
        printf("%s %s: %u tensors changed, %u fixed; stripped %.2f %% of %zu bytes%s%s\n",
               ok           ? "PASS"
               : is_skipped ? "SKIP"
                            : "FAIL",
               argv[i], s.changed, s.fixed, s.full ? 100.0 * (double)s.stripped / (double)s.full : 0, s.full,
               *why ? "; " : "", why);
        (void)fflush(stdout);
        failed += !ok && !is_skipped;
    }
    printf("%d failed\n", failed);
    return failed != 0;
}

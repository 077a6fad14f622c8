/* SPDX-License-Identifier: Apache-2.0 */
/* cli_build.c - `sinter build`: a model into an engine file. */
#include "cli_model.h"

int verb_build(const args *a)
{
    if (!a->output) {
        (void)cli_fail("where to? -o ENGINE is missing");
        return STATUS_USAGE;
    }
    if (model_is_engine(a->file.at[0])) return cli_fail("'%s' is an engine already", a->file.at[0]);
    model_setup setup;
    if (!model_setup_make(a, &setup)) return STATUS_USAGE;
    if (!outputs_check_engine(a)) return STATUS_FAILED;
    FILE *to = outputs_is_stdout(a->output) ? stderr : stdout;
    sinter_buffer bytes = { 0 };
    double seconds = 0;
    const bool is_good = model_build(a, &setup, NULL, a->output, &bytes, &seconds);
    if (is_good && a->json) {
        json j = { .to = to };
        json_open(&j, NULL, '{');
        json_text(&j, "engine", a->output);
        json_count(&j, "bytes", (int64_t)bytes.size);
        json_real(&j, "build_ms", 1e3 * seconds);
        model_report_json(&setup.report, &j);
        json_close(&j, '}');
    } else if (is_good) {
        (void)fprintf(to, "built %s: %s in %.2f s\n", a->output, cli_bytes((double)bytes.size).at, seconds);
        model_report_print(&setup.report, to);
    }
    return is_good ? STATUS_OK : STATUS_FAILED;
}

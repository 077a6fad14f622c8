/* SPDX-License-Identifier: Apache-2.0 */
/* cli_calibrate.c - `sinter calibrate`: a calibration cache from a model and data. */
#include "cli_model.h"

static void report(const args *a, const sinter_calibration *c, uint32_t samples, double seconds, FILE *to)
{
    const uint32_t count = sinter_calibration_count(c);
    if (a->json) {
        json j = { .to = to };
        json_open(&j, NULL, '{');
        json_text(&j, "calibration", a->output);
        json_text(&j, "header", sinter_calibration_header(c));
        json_count(&j, "tensors", count);
        json_count(&j, "samples", samples);
        json_real(&j, "calibrate_ms", 1e3 * seconds);
        json_close(&j, '}');
        return;
    }
    (void)fprintf(to, "wrote %s: the ranges of %u tensors from %u %s in %.2f s\n", a->output, count, samples,
                  samples == 1 ? "sample" : "samples", seconds);
}

int verb_calibrate(const args *a)
{
    if (!a->output || !a->data.count) {
        (void)cli_fail(a->output ? "with which data? --data NAME=FILE is missing" : "where to? -o CACHE is missing");
        return STATUS_USAGE;
    }
    if (model_is_engine(a->file.at[0]))
        return cli_fail("'%s' is an engine: ranges are found on a model", a->file.at[0]);
    model_setup setup;
    if (!model_setup_make(a, &setup)) return STATUS_USAGE;
    if (!outputs_check_calibration(a)) return STATUS_FAILED;
    FILE *to = outputs_is_stdout(a->output) ? stderr : stdout;
    model_given g;
    sinter_error error = { 0 };
    sinter_calibration *c = NULL;
    bool is_good = model_given_make(a, &setup, NULL, &g);
    if (is_good) {
        sinter_calibrate_options how = a->calibrate;
        how.build = &setup.build;
        const double start = cli_seconds();
        sinter_status s = sinter_calibrate_file(a->file.at[0], &how, &c, &error);
        progress_end(&setup.bar);
        if (s == SINTER_OK) s = sinter_calibration_save(c, a->output, &error);
        is_good = s == SINTER_OK;
        if (is_good) report(a, c, g.samples, cli_seconds() - start, to);
        else (void)cli_error(&error);
    }
    sinter_calibration_destroy(c);
    model_given_free(&g, &setup);
    return is_good ? STATUS_OK : STATUS_FAILED;
}

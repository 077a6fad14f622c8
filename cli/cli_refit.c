/* SPDX-License-Identifier: Apache-2.0 */
/* cli_refit.c - `sinter refit`: an engine with other weights, or without. No device is needed. */
#include "cli_model.h"
#include "cli_plugin.h"

int verb_refit(const args *a)
{
    if (!a->output) {
        (void)cli_fail("where to? -o ENGINE is missing");
        return STATUS_USAGE;
    }
    if (!a->strip && !a->weights) {
        (void)cli_fail("--weights MODEL.onnx or --strip is missing");
        return STATUS_USAGE;
    }
    if (a->strip && a->weights) return cli_fail("--weights gives an engine weights, --strip takes them away: not both");
    if (!outputs_check_engine(a)) return STATUS_FAILED;
    FILE *to = outputs_is_stdout(a->output) ? stderr : stdout;
    sinter_error error = { 0 };
    sinter_engine_options options = SINTER_ENGINE_OPTIONS;
    sinter_engine *engine = NULL;
    sinter_buffer bytes = { 0 };
    sinter_env_options env = SINTER_ENV_OPTIONS;
    env.plugins = cli_plugins();
    options.env = &env;
    options.no_device = 1;
    sinter_status s = sinter_engine_load(a->file.at[0], &options, &engine, &error);
    if (s == SINTER_OK)
        s = a->strip ? sinter_engine_strip(engine, &bytes, &error)
                     : sinter_engine_refit_file(engine, a->weights, &bytes, &error);
    if (s == SINTER_OK) s = sinter_buffer_save(&bytes, a->output, &error);
    if (s == SINTER_OK && a->json) {
        json j = { .to = to };
        json_open(&j, NULL, '{');
        json_text(&j, "engine", a->output);
        json_count(&j, "bytes", (int64_t)bytes.size);
        json_close(&j, '}');
    } else if (s == SINTER_OK) {
        (void)fprintf(to, "%s %s: %s\n", a->strip ? "stripped" : "refitted", a->output,
                      cli_bytes((double)bytes.size).at);
    }
    sinter_buffer_free(&bytes);
    sinter_engine_release(engine);
    return s == SINTER_OK ? STATUS_OK : cli_error(&error);
}

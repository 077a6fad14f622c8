/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - `sinter exec`, which also is the command where it is called trtexec: the phases in their order, between the
 * lines that say which command ran and whether it passed. */
#include "exec.h"

#include "json_text.h"
#include <stdlib.h>
#include <string.h>

/* The release of TensorRT whose defaults and words these are. Parsers look for a number here. */
static const char release[] = "101600";

static void say_test(const char *state, const char *command)
{
    (void)fflush(stderr);
    (void)printf("&&&& %s TensorRT.trtexec [TensorRT v%s] [sinter %s] # %s\n", state, release, sinter_version(),
                 command);
    (void)fflush(stdout);
}

static char *command_of(int argc, char **argv)
{
    kept_text text = { 0 };
    for (int i = 0; i < argc; i++) {
        if (i) cli_write_kept(&text, " ", 1);
        cli_write_kept(&text, argv[i], strlen(argv[i]));
    }
    return text.at ? text.at : cli_copy("");
}

static bool print_version_of_plan(const exec *e)
{
    json_value v;
    if (!json_member(json_value_of(e->report.at), "version", &v)) return false;
    char *text = json_copy_text(v);
    cli_say(LOG_INFO, "The engine was written by sinter %s", text);
    free(text);
    return true;
}

static const char *skipped(const exec *e)
{
    const exec_args *x = &e->x;
    if (exec_has(x, FLAG_skipInference)) return "--skipInference";
    if (exec_has(x, FLAG_buildOnly)) return "--buildOnly";
    return exec_has(x, FLAG_timeDeserialize) ? "--timeDeserialize" : exec_has(x, FLAG_timeRefit) ? "--timeRefit" : NULL;
}

static bool work(exec *e)
{
    if (!exec_explain(&e->x) || !exec_check(e) || !exec_device(e)) return false;
    if (exec_has(&e->x, FLAG_getPlanVersionOnly)) return exec_engine_make(e) && print_version_of_plan(e);
    const bool is_loaded = exec_has(&e->x, FLAG_loadEngine); /* then the engine says which kind of device serves */
    exec_print_options(e);
    if (!is_loaded) exec_print_device(e);
    if (!exec_engine_make(e)) return false;
    if (is_loaded) exec_print_device(e);
    if (!exec_layers(e)) return false;
    if (!skipped(e)) return exec_infer(e);
    cli_say(LOG_INFO, "Skipped inference phase since %s is added.", skipped(e));
    return true;
}

static void exec_free(exec *e)
{
    model_engine_close(&e->m);
    sinter_network_destroy(e->setup.network);
    for (uint32_t i = 0; i < e->a.profile.count; i++) free((void *)(uintptr_t)e->a.profile.at[i]);
    for (uint32_t i = 0; i < e->a.shape.count; i++) free((void *)(uintptr_t)e->a.shape.at[i]);
    exec_layouts_free(&e->layouts);
    for (uint32_t i = 0; i < e->unfused.count; i++) free(e->unfused.at[i]);
    free(e->unfused.at);
    exec_args_free(&e->x);
    free(e->machine.at);
    free(e->report.at);
    free(e);
}

/* A page and nothing else. */
static bool print_page(const exec *e)
{
    if (exec_has(&e->x, FLAG_help)) exec_help(stdout);
    else if (exec_has(&e->x, FLAG_flags)) exec_page(stdout);
    else if (exec_has(&e->x, FLAG_version))
        (void)printf("sinter %s, with the flags of trtexec of TensorRT 8.6, 10.16 and 11.1\n", sinter_version());
    else return false;
    return true;
}

int verb_exec(int argc, char **argv, int first)
{
    exec *e = cli_alloc(1, sizeof *e);
    kept_text wrong = { 0 };
    const bool is_parsed = exec_parse(argc, argv, first, &e->x, &wrong);
    bool is_good = true;
    if (is_parsed && print_page(e)) {
        exec_free(e);
        return STATUS_OK;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* so that lines of both streams stay whole where they share a pipe */
    log_style style = *log_get();
    style.has_time = style.is_split = true;
    style.most = exec_has(&e->x, FLAG_verbose) ? LOG_VERBOSE : LOG_INFO;
    log_set(&style);
    char *command = command_of(argc, argv);
    say_test("RUNNING", command);
    if (!is_parsed || !e->x.count) exec_help(stdout);
    (void)fflush(stdout);
    if (!is_parsed) cli_say(LOG_ERROR, "%s", wrong.at);
    if (!is_parsed) is_good = false;
    else if (e->x.count) is_good = work(e);
    say_test(is_good ? "PASSED" : "FAILED", command);
    free(command);
    free(wrong.at);
    exec_free(e);
    return is_good ? STATUS_OK : STATUS_FAILED;
}

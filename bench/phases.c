/* SPDX-License-Identifier: Apache-2.0 */
/* phases.c - processor time and peak memory of each phase between a model and its first run, for bench/growth.
 *
 * phases MODEL.onnx ENGINE [off|fast]
 *
 * Builds the engine in one process; loads, prints and runs it in another, with one thread. Prints a line a phase: its
 * name, its seconds of processor time and the peak resident memory in MB of its process so far. */
#include "sinter/sinter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void need(sinter_status status, const sinter_error *error, const char *what)
{
    if (status == SINTER_OK) return;
    fprintf(stderr, "phases: %s: %s\n", what, error->length ? error->text : sinter_status_text(status));
    exit(1);
}

static void line(const char *phase, double seconds)
{
    struct rusage usage = { 0 };
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%s %.6f %.1f\n", phase, seconds, (double)usage.ru_maxrss / 1024.0);
    fflush(stdout);
}

typedef struct progress {
    char phase[16];
    double start;
} progress;

/* The lines of import and optimise, when the next phase begins. Choosing and planning alternate: they are one. */
static int seen(void *user, const char *phase, double done)
{
    (void)done;
    progress *p = user;
    const char *name = strcmp(phase, "import") == 0     ? "import"
                       : strcmp(phase, "optimise") == 0 ? "optimise"
                       : strcmp(phase, "write") == 0    ? "write"
                                                        : "plan";
    if (strcmp(name, p->phase) == 0) return 0;
    if (p->phase[0]) line(p->phase, now() - p->start);
    snprintf(p->phase, sizeof p->phase, "%s", name);
    p->start = now();
    return 0;
}

static void build(const char *model, const char *path, sinter_tune tune)
{
    sinter_error error = { 0 };
    progress p = { .start = now() };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = tune;
    o.threads = 1;
    o.progress = seen;
    o.user = &p;
    sinter_buffer buffer = { 0 };
    const double start = now();
    need(sinter_build_file(model, &o, &buffer, &error), &error, model);
    need(sinter_buffer_save(&buffer, path, &error), &error, path);
    line(p.phase, now() - p.start);
    line("build", now() - start);
    sinter_buffer_free(&buffer);
}

static void set_inputs(const sinter_engine *g, sinter_context *c)
{
    sinter_error error = { 0 };
    for (uint32_t i = 0; i < sinter_engine_io_count(g); i++) {
        sinter_io io;
        need(sinter_engine_io(g, i, 0, &io), &error, "input");
        if (!io.is_input) continue;
        sinter_tensor t = { .dtype = io.dtype, .rank = io.rank };
        memcpy(t.dim, io.opt, sizeof t.dim);
        const size_t size = sinter_tensor_size(&t);
        t.data = calloc(1, size + 64);
        if (!t.data) exit(1);
        need(sinter_context_set_input(c, io.name, &t, &error), &error, io.name);
    }
}

static void count_bytes(void *user, const char *text, size_t length)
{
    (void)text;
    *(size_t *)user += length;
}

static void run(const char *path)
{
    sinter_error error = { 0 };
    sinter_engine_options eo = SINTER_ENGINE_OPTIONS;
    const sinter_context_options co = SINTER_CONTEXT_OPTIONS;
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    size_t printed = 0;
    eo.threads = 1;
    double start = now();
    need(sinter_engine_load(path, &eo, &g, &error), &error, "loading");
    line("load", now() - start);
    start = now();
    need(sinter_context_create(g, &co, &c, &error), &error, "a context");
    set_inputs(g, c);
    line("context", now() - start);
    start = now();
    need(sinter_context_run(c, &error), &error, "run");
    line("run", now() - start);
    start = now();
    need(sinter_engine_print(g, SINTER_PRINT_TEXT, count_bytes, &printed, &error), &error, "inspect");
    line("inspect", now() - start);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    const sinter_tune tune = argc > 3 && strcmp(argv[3], "fast") == 0 ? SINTER_TUNE_FAST : SINTER_TUNE_OFF;
    for (int part = 0; part < 2; part++) {
        const pid_t child = fork();
        if (child == 0) {
            if (part == 0) build(argv[1], argv[2], tune);
            else run(argv[2]);
            return 0;
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
    }
    return 0;
}

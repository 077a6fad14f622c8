/* SPDX-License-Identifier: Apache-2.0 */
/* check_phases.c - what each phase between a model and its first run costs, for test_growth.py and bench/growth.
 *
 * check_phases MODEL.onnx ENGINE
 *
 * Builds the engine in one process; loads, runs and prints it in another, with one thread. Prints a line a phase: its
 * name, its seconds of processor time, the peak resident memory in MB of its process so far, and its work: the bytes
 * that it allocated, and its instructions, 0 where the system does not count them. */
#include "sinter/sinter.h"
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct cost {
    double seconds;
    uint64_t bytes, instructions;
} cost;

static uint64_t allocated;
static int counter = -1;

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)user;
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    allocated += new_size;
    const size_t rounded = (new_size + align - 1) / align * align;
    void *fresh = aligned_alloc(align < 16 ? 16 : align, align < 16 ? (new_size + 15) / 16 * 16 : rounded);
    if (fresh && old_size) {
        memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
        free(ptr);
    }
    return fresh;
}

static void counter_open(void)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
                                    .size = sizeof attr,
                                    .config = PERF_COUNT_HW_INSTRUCTIONS,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1 };
    counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static cost now(void)
{
    struct timespec t;
    cost c = { .bytes = allocated };
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    c.seconds = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (counter < 0 || read(counter, &c.instructions, sizeof c.instructions) != sizeof c.instructions)
        c.instructions = 0;
    return c;
}

static void need(sinter_status status, const sinter_error *error, const char *what)
{
    if (status == SINTER_OK) return;
    fprintf(stderr, "check_phases: %s: %s\n", what, error->length ? error->text : sinter_status_text(status));
    exit(1);
}

/* The line of a phase that began at *start, which begins anew. */
static void line(const char *phase, cost *start)
{
    struct rusage usage = { 0 };
    const cost end = now();
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%s %.6f %.1f %" PRIu64 " %" PRIu64 "\n", phase, end.seconds - start->seconds,
           (double)usage.ru_maxrss / 1024.0, end.bytes - start->bytes, end.instructions - start->instructions);
    fflush(stdout);
    *start = now();
}

typedef struct progress {
    const char *phase;
    cost start;
} progress;

/* Choosing and planning take turns: they are one phase. */
static int seen(void *user, const char *phase, double done)
{
    static const char *const known[] = { "import", "optimise", "write", "plan" };
    (void)done;
    progress *p = user;
    uint32_t i = 0;
    while (i < 3 && strcmp(phase, known[i]) != 0) i++;
    if (p->phase && strcmp(known[i], p->phase) != 0) line(p->phase, &p->start);
    p->phase = known[i];
    return 0;
}

static const sinter_allocator counting = { .resize = resize };
static const sinter_env_options env = { .struct_size = sizeof env, .allocator = &counting };

static void build(const char *model, const char *path)
{
    sinter_error error = { 0 };
    progress p = { .start = now() };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.env = &env;
    o.tune = SINTER_TUNE_OFF;
    o.threads = 1;
    o.progress = seen;
    o.user = &p;
    sinter_buffer buffer = { 0 };
    need(sinter_build_file(model, &o, &buffer, &error), &error, model);
    need(sinter_buffer_save(&buffer, path, &error), &error, path);
    line(p.phase, &p.start);
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
        t.data = calloc(1, sinter_tensor_size(&t) + 64);
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
    eo.env = &env;
    eo.threads = 1;
    cost start = now();
    need(sinter_engine_load(path, &eo, &g, &error), &error, "loading");
    line("load", &start);
    need(sinter_context_create(g, &co, &c, &error), &error, "a context");
    set_inputs(g, c);
    line("context", &start);
    need(sinter_context_run(c, &error), &error, "run");
    line("run", &start);
    need(sinter_engine_print(g, SINTER_PRINT_TEXT, count_bytes, &printed, &error), &error, "inspect");
    line("inspect", &start);
    sinter_context_destroy(c);
    sinter_engine_release(g);
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    for (int part = 0; part < 2; part++) {
        const pid_t child = fork();
        if (child == 0) {
            counter_open();
            if (part == 0) build(argv[1], argv[2]);
            else run(argv[2]);
            (void)fflush(stdout);
            _exit(0); /* the inputs go with the process */
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
    }
    return 0;
}

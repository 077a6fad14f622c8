/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - what an engine costs around its kernels: build, open, first run, memory, and the executor's time a step.
 *
 * engine [--threads N] [--tune off|fast|full] [--repeat R] [--clock wall|cpu] [MODEL.onnx]
 *
 * `--clock cpu` counts processor time: for one thread on a machine that others use too.
 * The time a step is that of a run of 210 tiny steps less that of 10, over 200: whatever a run costs once falls out.
 * The tiny step is a softmax over 4 values, which nothing fuses with another softmax (the count of steps is checked).
 * Its own arithmetic is in the figure, so the executor costs less than what is printed. */
#include "sinter/sinter.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SHORT_CHAIN = 10, LONG_CHAIN = 210, CHAIN_VALUES = 4, CHAIN_RUNS = 2000, RUNS_MAX = 4096 };

static clockid_t clock_used = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static _Noreturn void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_engine: %s: %s\n", what, why);
    exit(1);
}

static void need(sinter_status status, const sinter_error *error, const char *what)
{
    if (status != SINTER_OK) stop(what, error->length ? error->text : sinter_status_text(status));
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *time, uint32_t count)
{
    qsort(time, count, sizeof *time, by_value);
    return time[count / 2];
}

/* Peak resident memory of this process so far, in MB. */
static double peak_memory(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0.0;
    return (double)usage.ru_maxrss / 1024.0;
}

/* ---- a model of one chain, written as protobuf ---- */

typedef struct bytes {
    uint8_t at[32768];
    size_t size;
} bytes;

static void put(bytes *b, const void *from, size_t size)
{
    if (size > sizeof b->at - b->size) stop("chain", "the model does not fit its buffer");
    memcpy(b->at + b->size, from, size);
    b->size += size;
}

static void put_varint(bytes *b, uint64_t value)
{
    do {
        const uint8_t byte = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        put(b, &byte, 1);
        value >>= 7;
    } while (value);
}

static void put_number(bytes *b, uint32_t field, uint64_t value)
{
    put_varint(b, field << 3);
    put_varint(b, value);
}

static void put_field(bytes *b, uint32_t field, const void *from, size_t size)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, size);
    put(b, from, size);
}

static void put_text(bytes *b, uint32_t field, const char *text)
{
    put_field(b, field, text, strlen(text));
}

static void put_inner(bytes *b, uint32_t field, const bytes *inner)
{
    put_field(b, field, inner->at, inner->size);
}

/* ValueInfoProto of f32[4]. */
static void put_value(bytes *graph, uint32_t field, const char *name)
{
    static bytes dim, shape, tensor, type, value;
    dim.size = shape.size = tensor.size = type.size = value.size = 0;
    put_number(&dim, 1, CHAIN_VALUES);
    put_inner(&shape, 1, &dim);
    put_number(&tensor, 1, 1);
    put_inner(&tensor, 2, &shape);
    put_inner(&type, 1, &tensor);
    put_text(&value, 1, name);
    put_inner(&value, 2, &type);
    put_inner(graph, field, &value);
}

/* x -> Softmax -> ... -> y, `count` of them. */
static void make_chain(uint32_t count, bytes *model)
{
    static bytes graph, node, opset;
    graph.size = 0;
    model->size = 0;
    for (uint32_t i = 0; i < count; i++) {
        char in[16] = "x", out[16] = "y";
        if (i) snprintf(in, sizeof in, "v%" PRIu32, i);
        if (i + 1 < count) snprintf(out, sizeof out, "v%" PRIu32, i + 1);
        node.size = 0;
        put_text(&node, 1, in);
        put_text(&node, 2, out);
        put_text(&node, 4, "Softmax");
        put_inner(&graph, 1, &node);
    }
    put_text(&graph, 2, "chain");
    put_value(&graph, 11, "x");
    put_value(&graph, 12, "y");
    opset.size = 0;
    put_number(&opset, 2, 17);
    put_number(model, 1, 8);
    put_inner(model, 7, &graph);
    put_inner(model, 8, &opset);
}

/* ---- engines ---- */

typedef struct settings {
    uint32_t threads, repeat;
    sinter_tune tune;
} settings;

static sinter_build_options build_options(const settings *s)
{
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.threads = s->threads;
    o.tune = s->tune;
    return o;
}

static sinter_engine_options engine_options(const settings *s)
{
    sinter_engine_options o = SINTER_ENGINE_OPTIONS;
    o.threads = s->threads;
    return o;
}

/* Gives every input a block of small values; the blocks live as long as the program. */
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
        if (!t.data || size == SIZE_MAX) stop(io.name, "no memory");
        if (io.dtype == SINTER_DTYPE_F32)
            for (size_t k = 0; k < size / 4; k++)
                ((float *)t.data)[k] = (float)((k * 2654435761u >> 8) % 1000) / 1000.0f - 0.5f;
        need(sinter_context_set_input(c, io.name, &t, &error), &error, io.name);
    }
}

static double timed_run(sinter_context *c)
{
    sinter_error error = { 0 };
    const double start = now();
    need(sinter_context_run(c, &error), &error, "run");
    return now() - start;
}

/* Seconds of one run of a chain (the median), and how many steps it has. */
static double chain_time(uint32_t count, const settings *s, uint32_t *steps)
{
    static bytes model;
    static double time[CHAIN_RUNS];
    sinter_error error = { 0 };
    make_chain(count, &model);
    const sinter_build_options bo = build_options(s);
    const sinter_engine_options eo = engine_options(s);
    const sinter_context_options co = SINTER_CONTEXT_OPTIONS;
    sinter_buffer buffer = { 0 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    need(sinter_build_memory(model.at, model.size, &bo, &buffer, &error), &error, "building the chain");
    need(sinter_engine_load_memory(buffer.data, buffer.size, &eo, &g, &error), &error, "loading the chain");
    need(sinter_context_create(g, &co, &c, &error), &error, "a context of the chain");
    set_inputs(g, c);
    *steps = sinter_context_step_count(c);
    for (uint32_t i = 0; i < CHAIN_RUNS / 10; i++) (void)timed_run(c);
    for (uint32_t i = 0; i < CHAIN_RUNS; i++) time[i] = timed_run(c);
    sinter_context_destroy(c);
    sinter_engine_release(g);
    sinter_buffer_free(&buffer);
    return median(time, CHAIN_RUNS);
}

static void bench_steps(const settings *s)
{
    double step[5], once[5];
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t few, many;
        const double a = chain_time(SHORT_CHAIN, s, &few), b = chain_time(LONG_CHAIN, s, &many);
        if (many - few != LONG_CHAIN - SHORT_CHAIN) stop("chain", "the optimiser joined steps that should stay apart");
        step[i] = (b - a) / (LONG_CHAIN - SHORT_CHAIN);
        once[i] = a - SHORT_CHAIN * step[i];
    }
    printf("  a tiny step        %9.3f us   softmax of %d values and the executor, %d against %d steps\n",
           1e6 * median(step, 5), CHAIN_VALUES, LONG_CHAIN, SHORT_CHAIN);
    printf("  a run, once        %9.3f us   what is left at no steps\n", 1e6 * median(once, 5));
}

/* Opens the file and makes a context; returns seconds from the first to the second, and the split. */
static double open_engine(const char *path, const settings *s, sinter_engine **g, sinter_context **c, double *load)
{
    sinter_error error = { 0 };
    const sinter_engine_options eo = engine_options(s);
    const sinter_context_options co = SINTER_CONTEXT_OPTIONS;
    const double start = now();
    need(sinter_engine_load(path, &eo, g, &error), &error, "loading");
    *load = now() - start;
    need(sinter_context_create(*g, &co, c, &error), &error, "a context");
    return now() - start;
}

static void bench_open(const char *path, const settings *s)
{
    double ready[RUNS_MAX], load[RUNS_MAX], first[RUNS_MAX], steady[RUNS_MAX];
    size_t memory = 0;
    uint32_t steps = 0;
    for (uint32_t i = 0; i < s->repeat; i++) {
        sinter_engine *g = NULL;
        sinter_context *c = NULL;
        ready[i] = open_engine(path, s, &g, &c, &load[i]);
        set_inputs(g, c);
        first[i] = timed_run(c);
        double later[8];
        for (uint32_t k = 0; k < 8; k++) later[k] = timed_run(c);
        steady[i] = median(later, 8);
        memory = sinter_context_memory(c);
        steps = sinter_context_step_count(c);
        sinter_context_destroy(c);
        sinter_engine_release(g);
    }
    const double least = (qsort(ready, s->repeat, sizeof *ready, by_value), ready[0]);
    const double later = median(steady, s->repeat), once = median(first, s->repeat);
    printf("  open to ready      %9.1f ms   least %.1f; of it reading and verifying %.1f (file in the page cache)\n",
           1e3 * median(ready, s->repeat), 1e3 * least, 1e3 * median(load, s->repeat));
    printf("  first run          %9.2f ms   %.2f of a steady one\n", 1e3 * once, once / later);
    printf("  steady run         %9.2f ms   %" PRIu32 " steps\n", 1e3 * later, steps);
    printf("  a context          %9.1f MB\n", (double)memory / 1e6);
}

static void bench_model(const char *model, const settings *s)
{
    sinter_error error = { 0 };
    const sinter_build_options o = build_options(s);
    sinter_buffer buffer = { 0 };
    const double start = now();
    need(sinter_build_file(model, &o, &buffer, &error), &error, model);
    const double built = now() - start;
    const char *folder = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/bench_engine.%ld", folder ? folder : "/tmp", (long)getpid());
    need(sinter_buffer_save(&buffer, path, &error), &error, path);
    printf("%s, %" PRIu32 " thread%s, %s time\n", model, s->threads, s->threads == 1 ? "" : "s",
           clock_used == CLOCK_MONOTONIC ? "wall" : "cpu");
    printf("  build              %9.2f s\n", built);
    printf("  engine             %9.1f MB   peak memory of the build %.1f MB\n", (double)buffer.size / 1e6,
           peak_memory());
    sinter_buffer_free(&buffer);
    bench_open(path, s);
    (void)remove(path);
}

static uint32_t number(const char *text, uint32_t max)
{
    char *end = NULL;
    const unsigned long value = text ? strtoul(text, &end, 10) : 0;
    if (!text || *end || value < 1 || value > max) stop(text ? text : "the last option", "expected a number");
    return (uint32_t)value;
}

/* Which of `count` words `text` is. */
static uint32_t choice(const char *option, const char *text, const char *const *word, uint32_t count)
{
    for (uint32_t i = 0; text && i < count; i++)
        if (strcmp(text, word[i]) == 0) return i;
    stop(option, text ? text : "a value is missing");
}

int main(int argc, char **argv)
{
    static const char *const tune[] = { "off", "fast", "full" };
    static const char *const clocks[] = { "wall", "cpu" };
    settings s = { .threads = 1, .repeat = 15, .tune = SINTER_TUNE_FAST };
    const char *model = NULL;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--threads") == 0) s.threads = number(next, 1024), i++;
        else if (strcmp(argv[i], "--repeat") == 0) s.repeat = number(next, RUNS_MAX), i++;
        else if (strcmp(argv[i], "--tune") == 0) s.tune = (sinter_tune)choice(argv[i], next, tune, 3), i++;
        else if (strcmp(argv[i], "--clock") == 0)
            clock_used = choice(argv[i], next, clocks, 2) ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, i++;
        else model = argv[i];
    }
    if (model) bench_model(model, &s);
    printf("executor, %" PRIu32 " thread%s\n", s.threads, s.threads == 1 ? "" : "s");
    bench_steps(&s);
    return 0;
}

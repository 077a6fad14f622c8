/* SPDX-License-Identifier: Apache-2.0 */
/* several_devices.c - one process, several devices: a thread for each builds the model for its own, runs it again and
 * again while the others do, and all must agree with the first.
 *
 *     several_devices MODEL.onnx [DEVICE...]        such as cpu cuda:0 cuda:1; default: cpu reference
 *
 * Inputs are of the sizes that the model takes where nobody says otherwise, f32 ones filled with seeded numbers. */
#include "sinter/sinter.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 8, TENSORS = 16, RUNS = 200 };

typedef struct worker {
    const char *model, *device;
    pthread_t thread;
    sinter_error error;
    const char *what; /* was being done when it failed; NULL: all went well */
    float *y;         /* the first output of the last run, as the last of all */
    size_t count;
    int changes; /* runs that gave something else than the one before */
} worker;

static sinter_status load(worker *w, sinter_engine **engine)
{
    sinter_build_options b = SINTER_BUILD_OPTIONS;
    sinter_engine_options o = SINTER_ENGINE_OPTIONS;
    sinter_buffer file = { 0 };
    b.tune = SINTER_TUNE_OFF;
    b.threads = o.threads = 1;
    b.device = w->device;
    if (!strncmp(w->device, "cuda", 4)) o.device = w->device;
    w->what = "build";
    sinter_status s = sinter_build_file(w->model, &b, &file, &w->error);
    if (s != SINTER_OK) return s;
    w->what = "load";
    s = sinter_engine_load_memory(file.data, file.size, &o, engine, &w->error);
    sinter_buffer_free(&file);
    return s;
}

static sinter_status fill(sinter_context *context, const sinter_io *io, sinter_tensor *x, sinter_error *error)
{
    *x = (sinter_tensor){ .dtype = io->dtype, .rank = io->rank };
    for (uint32_t i = 0; i < io->rank; i++) x->dim[i] = io->opt[i];
    const size_t size = sinter_tensor_size(x);
    x->data = calloc(size ? size : 1, 1);
    if (!x->data) return SINTER_NO_MEMORY;
    uint32_t seed = 1;
    for (size_t i = 0; x->dtype == SINTER_DTYPE_F32 && i < size / sizeof(float); i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)x->data)[i] = (float)(seed >> 8) / (float)(1 << 24);
    }
    return sinter_context_set_input(context, io->name, x, error);
}

/* Keeps the first output of this run. */
static sinter_status keep(worker *w, sinter_context *context, const char *output)
{
    sinter_tensor y;
    const sinter_status s = sinter_context_output(context, output, &y, &w->error);
    if (s != SINTER_OK) return s;
    if (y.dtype != SINTER_DTYPE_F32) return SINTER_UNSUPPORTED;
    const size_t size = sinter_tensor_size(&y);
    if (w->y && memcmp(w->y, y.data, size) != 0) w->changes++;
    if (!w->y) w->y = malloc(size ? size : 1);
    if (!w->y) return SINTER_NO_MEMORY;
    memcpy(w->y, y.data, size);
    w->count = size / sizeof(float);
    return SINTER_OK;
}

static sinter_status run(worker *w, sinter_engine *engine, sinter_tensor *x)
{
    const char *output = NULL;
    sinter_context *context = NULL;
    w->what = "context";
    sinter_status s = sinter_context_create(engine, NULL, &context, &w->error);
    w->what = "inputs";
    for (uint32_t i = 0, inputs = 0; s == SINTER_OK && i < sinter_engine_io_count(engine); i++) {
        sinter_io io;
        s = sinter_engine_io(engine, i, 0, &io);
        if (s == SINTER_OK && io.is_input)
            s = inputs < TENSORS ? fill(context, &io, &x[inputs++], &w->error) : SINTER_UNSUPPORTED;
        else if (!output) output = io.name;
    }
    for (int i = 0; s == SINTER_OK && i < RUNS; i++) {
        w->what = "run";
        s = sinter_context_run(context, &w->error);
        w->what = "output";
        if (s == SINTER_OK) s = keep(w, context, output);
    }
    sinter_context_destroy(context);
    return s;
}

static void *work(void *user)
{
    worker *w = user;
    sinter_engine *engine = NULL;
    sinter_tensor x[TENSORS] = { 0 };
    sinter_status s = load(w, &engine);
    if (s == SINTER_OK) s = run(w, engine, x);
    for (int i = 0; i < TENSORS; i++) free(x[i].data);
    sinter_engine_release(engine);
    if (s == SINTER_OK) w->what = NULL;
    else if (!w->error.text[0]) (void)snprintf(w->error.text, sizeof w->error.text, "%s", sinter_status_text(s));
    return NULL;
}

/* The largest difference between two results, over the largest value of the first. */
static double distance(const worker *a, const worker *b)
{
    double most = 0, scale = 1e-30;
    if (a->count != b->count) return INFINITY;
    for (size_t i = 0; i < a->count; i++) {
        most = fmax(most, fabs((double)a->y[i] - (double)b->y[i]));
        scale = fmax(scale, fabs((double)a->y[i]));
    }
    return most / scale;
}

int main(int argc, char **argv)
{
    char *both[] = { "cpu", "reference" };
    const int count = argc > 2 ? argc - 2 : 2;
    char **device = argc > 2 ? argv + 2 : both;
    worker w[WORKERS] = { 0 };
    int failed = 0;
    if (argc < 2 || count > WORKERS) {
        (void)fprintf(stderr, "usage: several_devices MODEL.onnx [DEVICE...]    at most %d devices\n", WORKERS);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        w[i].model = argv[1];
        w[i].device = device[i];
        if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0) return 1;
    }
    for (int i = 0; i < count; i++) (void)pthread_join(w[i].thread, NULL);
    for (int i = 0; i < count; i++) {
        const double away = w[i].what || w[0].what ? 0 : distance(&w[0], &w[i]);
        if (w[i].what) (void)printf("%-10s failed: %s: %s\n", w[i].device, w[i].what, w[i].error.text);
        else (void)printf("%-10s %d runs, %d changed, %.1e from the first\n", w[i].device, RUNS, w[i].changes, away);
        failed += w[i].what || w[i].changes || !(away < 1e-3);
    }
    for (int i = 0; i < count; i++) free(w[i].y);
    return failed > 0;
}

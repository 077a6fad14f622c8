/* SPDX-License-Identifier: Apache-2.0 */
/* classify.c - the public API from end to end: an ONNX model becomes an engine, reads an image and names what it sees.
 *
 *     classify examples/digits/digits.onnx [IMAGE.npy]
 *
 * Without an image it takes seven.npy from the model's folder, and fails unless the answer is 7. */
#include "sinter/sinter.h"

#include <stdio.h>
#include <string.h>

static int fail(const char *what, const sinter_error *error)
{
    (void)fprintf(stderr, "%s: %s\n", what, error->text);
    return 1;
}

/* The class with the highest score of one run. */
static int classify(sinter_context *context, const sinter_tensor *image, int *best, sinter_error *error)
{
    sinter_tensor scores;
    if (sinter_context_set_input(context, "image", image, error) != SINTER_OK) return fail("input", error);
    if (sinter_context_run(context, error) != SINTER_OK) return fail("run", error);
    if (sinter_context_output(context, "scores", &scores, error) != SINTER_OK) return fail("output", error);
    const float *score = (const float *)scores.data;
    *best = 0;
    for (int i = 0; i < 10; i++) {
        (void)printf("%d  %.4f\n", i, (double)score[i]);
        if (score[i] > score[*best]) *best = i;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: classify MODEL.onnx [IMAGE.npy]\n");
        return 2;
    }
    char path[4096];
    const char *slash = strrchr(argv[1], '/');
    const int folder = slash ? (int)(slash - argv[1]) + 1 : 0;
    (void)snprintf(path, sizeof path, "%.*sseven.npy", folder, argv[1]);

    sinter_error error = { 0 };
    sinter_buffer file = { 0 }, memory = { 0 };
    sinter_tensor image;
    sinter_engine *engine = NULL;
    sinter_context *context = NULL;
    int status = 1, best = -1;

    /* One image at a time: the model's batch is free, and is 1 where nobody says otherwise. */
    sinter_build_options options = SINTER_BUILD_OPTIONS;
    options.tune = SINTER_TUNE_OFF;
    if (sinter_build_file(argv[1], &options, &file, &error) != SINTER_OK) {
        (void)fail("build", &error);
        goto done;
    }
    if (sinter_engine_load_memory(file.data, file.size, NULL, &engine, &error) != SINTER_OK) {
        (void)fail("load", &error);
        goto done;
    }
    if (sinter_context_create(engine, NULL, &context, &error) != SINTER_OK) {
        (void)fail("context", &error);
        goto done;
    }
    if (sinter_tensor_read(argc > 2 ? argv[2] : path, NULL, &image, &memory, &error) != SINTER_OK) {
        (void)fail("image", &error);
        goto done;
    }
    status = classify(context, &image, &best, &error);
    if (status == 0) (void)printf("this is a %d\n", best);
    if (status == 0 && argc == 2 && best != 7) status = 1;
done:
    sinter_context_destroy(context);
    sinter_engine_release(engine);
    sinter_buffer_free(&memory);
    sinter_buffer_free(&file);
    return status;
}

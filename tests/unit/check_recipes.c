/* SPDX-License-Identifier: Apache-2.0 */
/* check_recipes.c - builds the models given as arguments and makes each weight of the engines again.
 *
 *   check_recipes [--allow fp16|int8] [--isa NAME] MODEL.onnx …          without measuring, on the CPU
 *
 * A model that is not built without further options is left out. */
#include "recipes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *read_all(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    (void)fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    void *at = malloc(*size ? *size : 1);
    if (!at || fread(at, 1, *size, f) != *size) exit(2);
    (void)fclose(f);
    return at;
}

static int check(const char *path, const sinter_build_options *o)
{
    sinter_error error = { 0 };
    sinter_buffer built;
    sinter_engine *g = NULL;
    char why[600] = "", folder[1000];
    size_t size = 0;
    void *model = read_all(path, &size);
    (void)snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
    if (!model || sinter_build_file(path, o, &built, &error) != SINTER_OK) {
        printf("%s %s: %s\n", model ? "SKIP" : "FAIL", path, model ? error.text : "cannot be read");
        free(model);
        return !model;
    }
    recipes_count count = { 0 };
    sinter_engine_options load = SINTER_ENGINE_OPTIONS;
    load.isa = o->isa;
    bool ok = sinter_engine_load_memory(built.data, built.size, &load, &g, &error) == SINTER_OK;
    if (!ok) (void)snprintf(why, sizeof why, "%.500s", error.text);
    ok = ok && recipes_hold(g, model, size, slash ? folder : ".", &count, why, sizeof why);
    printf("%s %s: %u weights, %u without a recipe; %s\n", ok ? "PASS" : "FAIL", path, count.weights, count.without,
           ok ? "the others are the same" : why);
    (void)fflush(stdout);
    sinter_engine_release(g);
    sinter_buffer_free(&built);
    free(model);
    return !ok;
}

int main(int argc, char **argv)
{
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    int failed = 0;
    o.tune = SINTER_TUNE_OFF;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--isa") && i + 1 < argc) o.isa = argv[++i];
        else if (!strcmp(argv[i], "--allow") && i + 1 < argc) {
            const char *word = argv[++i];
            o.allow |= strcmp(word, "fp16") == 0   ? SINTER_ALLOW_FP16
                       : strcmp(word, "bf16") == 0 ? SINTER_ALLOW_BF16
                                                   : SINTER_ALLOW_INT8;
            o.lower = SINTER_LOWER_ALWAYS;
        } else {
            failed += check(argv[i], &o);
        }
    }
    printf("%d failed\n", failed);
    return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_recipes.c - the recipe of every weight makes the bytes that the engine holds, and says so where it cannot. */
#include "base/env.h"
#include "model_text.h"
#include "recipes.h"
#include "samples.h"
#include "test.h"
#include "isas.h"

static const char *const isas[] = { TEST_ISAS };

/* True where every weight has a recipe, and each makes the same bytes. */
static bool holds(const bytes *model, const sinter_build_options *o, uint32_t *weights)
{
    sinter_error error = { 0 };
    sinter_buffer built = { 0 };
    sinter_engine *g = NULL;
    char why[600] = "";
    sinter_engine_options load = SINTER_ENGINE_OPTIONS;
    load.isa = o->isa;
    recipes_count count = { 0 };
    bool ok = sinter_build_memory(model->at, model->size, o, &built, &error) == SINTER_OK &&
              sinter_engine_load_memory(built.data, built.size, &load, &g, &error) == SINTER_OK;
    if (!ok) printf("%s\n", error.text);
    ok = ok && recipes_hold(g, model->at, model->size, NULL, &count, why, sizeof why);
    if (!ok || count.without) printf("%s; %u without a recipe\n", why, count.without);
    *weights += count.weights;
    sinter_engine_release(g);
    sinter_buffer_free(&built);
    return ok && !count.without;
}

static sinter_build_options options_of(uint32_t allow, const char *isa)
{
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = SINTER_TUNE_OFF;
    o.threads = 1;
    o.allow = allow;
    o.lower = SINTER_LOWER_ALWAYS;
    o.isa = isa;
    return o;
}

static const uint32_t allowed[] = { 0, SINTER_ALLOW_FP16, SINTER_ALLOW_BF16, SINTER_ALLOW_INT8,
                                    SINTER_ALLOW_INT8 | SINTER_ALLOW_FP16 };

static void samples(void)
{
    uint32_t weights = 0;
    for (uint32_t s = 0; s < SAMPLE_COUNT; s++) {
        bytes model = sample_model((sample)s);
        for (uint32_t i = 0; i < COUNT_OF(isas) * COUNT_OF(allowed); i++) {
            sinter_build_options o = options_of(allowed[i / COUNT_OF(isas)], isas[i % COUNT_OF(isas)]);
            o.profile = sample_profiles((sample)s, &o.profile_count);
            if (!CHECK(holds(&model, &o, &weights)))
                printf("%s, allow %u, %s\n", sample_name((sample)s), o.allow, o.isa);
        }
        free(model.at);
    }
    CHECK(weights > 100);
}

/* Joined, narrowed, saturated, quantised and widened weights. */
static const char *const models[] = {
    "in x f32 2,8,32; q = MatMul x %32,32; k = MatMul x %32,32; v = MatMul x %32,32; t = Transpose k perm=[0,2,1];"
    "s = MatMul q t; p = Softmax s axis=2; a = MatMul p v; y = MatMul a %32,32; out y",
    "in x f32 1,16,12,12; a = Conv x %24,16,3,3 %24; b = Clip a #-70000 #70000; c = Conv b %16,24,1,1; y = Mul c #1e30;"
    "out y",
    "in x f16 4,24; w = Cast %24,40 to=10; a = MatMul x w; y = Softmax a axis=1; out y",
    "in x f32 4,24; a = MatMul x %24,40; b = Mul a %40; c = Add b %40; y = Softmax c axis=1; out y",
};

static void made_weights(void)
{
    uint32_t weights = 0;
    for (uint32_t m = 0; m < COUNT_OF(models); m++) {
        model_text text;
        model_read(models[m], &text);
        const bytes model = text.model;
        for (uint32_t i = 0; i < COUNT_OF(isas) * COUNT_OF(allowed); i++) {
            const sinter_build_options o = options_of(allowed[i / COUNT_OF(isas)], isas[i % COUNT_OF(isas)]);
            if (!CHECK(holds(&model, &o, &weights))) printf("model %u, allow %u, %s\n", m, o.allow, o.isa);
        }
        free(model.at);
    }
    CHECK(weights > 100);
}

/* Folds that each read the fold before twice, and a first constant that no recipe makes: it is large and no
 * initializer. Looked for by every way, its recipe would be looked for 2^60 times. */
static void folds_without_recipe(void)
{
    char line[8192] = "in x f32 2,257; v0 = MelWeightMatrix {128} {512} {16000} #20 #8000;";
    size_t at = strlen(line);
    for (int i = 0; i < 60; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, "a%d = Tanh v%d; b%d = Sigmoid v%d; v%d = Add a%d b%d;", i,
                               i, i, i, i + 1, i, i);
    (void)snprintf(line + at, sizeof line - at, "y = MatMul x v60; out y");
    sinter_buffer built = model_build(line, (model_device){ .kind = "cpu" });
    CHECK(built.size > 0);
    sinter_buffer_free(&built);
}

static const test tests[] = {
    T(samples),
    T(made_weights),
    T(folds_without_recipe),
    { 0 },
};
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_refit.c - engines with other weights, all or some of them, and engines without. */
#include "base/env.h"
#include "model_text.h"
#include "refits.h"
#include "samples.h"
#include "test.h"
#include "isas.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *scratch(const char *name)
{
    static char path[600];
    (void)snprintf(path, sizeof path, "test_refit.%ld.%s", (long)getpid(), name);
    return path;
}

static bool save(const char *path, const void *at, size_t size)
{
    FILE *f = fopen(path, "wb");
    const bool ok = f && fwrite(at, 1, size, f) == size;
    return f && fclose(f) == 0 && ok;
}

static void remove_scratch(void)
{
    static const char *const name[] = { "one/model.onnx", "one", "other/model.onnx", "other" };
    for (uint32_t i = 0; i < COUNT_OF(name); i++) (void)remove(scratch(name[i]));
}

static bool holds(const bytes *model, const sinter_build_options *o, refits_size *size)
{
    char why[600] = "", path[600], folder[600];
    (void)mkdir(scratch("one"), 0777);
    (void)snprintf(path, sizeof path, "%s", scratch("one/model.onnx"));
    (void)snprintf(folder, sizeof folder, "%s", scratch("other"));
    const bool ok = save(path, model->at, model->size) && refits_hold(path, folder, o, size, why, sizeof why);
    if (!ok) printf("%s\n", why);
    remove_scratch();
    return ok;
}

static void samples(void)
{
    static const char *const isas[] = { TEST_ISAS };
    uint32_t changed = 0;
    for (uint32_t s = 0; s < SAMPLE_COUNT; s++) {
        bytes model = sample_model((sample)s);
        for (uint32_t i = 0; i < COUNT_OF(isas); i++) {
            sinter_build_options o = SINTER_BUILD_OPTIONS;
            refits_size size;
            o.tune = SINTER_TUNE_OFF;
            o.threads = 1;
            o.isa = isas[i];
            o.profile = sample_profiles((sample)s, &o.profile_count);
            if (!CHECK(holds(&model, &o, &size))) printf("%s, %s\n", sample_name((sample)s), isas[i]);
            changed += size.changed;
        }
        free(model.at);
    }
    CHECK(changed > 20);
}

/* ---- by name ---- */

typedef struct bench {
    bytes model;
    sinter_buffer built;
    sinter_engine *engine;
    sinter_weight_info info[8];
    uint32_t count;
} bench;

static int note(void *user, const sinter_weight_info *w)
{
    bench *b = user;
    if (b->count < COUNT_OF(b->info)) b->info[b->count++] = *w;
    return 0;
}

static bool open_bench(bench *b, const char *text, uint32_t refittable)
{
    sinter_error error = { 0 };
    model_text m;
    model_read(text, &m);
    *b = (bench){ .model = m.model };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = SINTER_TUNE_OFF;
    o.threads = 1;
    o.refittable = refittable;
    const bool ok = sinter_build_memory(b->model.at, b->model.size, &o, &b->built, &error) == SINTER_OK &&
                    sinter_engine_load_memory(b->built.data, b->built.size, NULL, &b->engine, &error) == SINTER_OK &&
                    sinter_engine_weights(b->engine, note, b, &error) == SINTER_OK;
    if (!ok) printf("%s\n", error.text);
    return ok;
}

static void close_bench(bench *b)
{
    sinter_engine_release(b->engine);
    sinter_buffer_free(&b->built);
    free(b->model.at);
}

/* What the engine computes for an input of ones. */
static bool run(const sinter_buffer *built, float *out, size_t count)
{
    sinter_error error = { 0 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    float ones[64];
    for (uint32_t i = 0; i < COUNT_OF(ones); i++) ones[i] = 1;
    sinter_tensor x = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 2, 4 }, .data = ones }, y;
    const bool ok = sinter_engine_load_memory(built->data, built->size, NULL, &g, &error) == SINTER_OK &&
                    sinter_context_create(g, NULL, &c, &error) == SINTER_OK &&
                    sinter_context_set_input(c, "x", &x, &error) == SINTER_OK &&
                    sinter_context_run(c, &error) == SINTER_OK &&
                    sinter_context_output(c, "y", &y, &error) == SINTER_OK && sinter_tensor_size(&y) == count * 4;
    if (ok) memcpy(out, y.data, count * 4);
    else printf("%s\n", error.text);
    sinter_context_destroy(c);
    sinter_engine_release(g);
    return ok;
}

static const char product[] = "in x f32 2,4; a = MatMul x %4,3; y = Add a %3; out y";

/* The names that a refit wants beside `names`, which it then gets: each of them changes what is wanted to nothing. */
static uint32_t missing_with(const bench *b, const char *const *names, uint32_t count, bench *found)
{
    sinter_error error = { 0 };
    *found = (bench){ 0 };
    CHECK_EQ(sinter_engine_weights_missing(b->engine, names, count, note, found, &error), SINTER_OK);
    return found->count;
}

static void missing_by_name(void)
{
    bench b, found, none;
    sinter_error error = { 0 };
    /* s is in two weights, and brings the one that only the second needs: giving a wants b. */
    if (!CHECK(open_bench(
            &b, "in x f32 2,4; s = Mul %1 %1; w = Mul %4,3 s; v = Mul %3 s; a = MatMul x w; y = Add a v; out y", 1)))
        return;
    const char *names[8] = { NULL };
    uint32_t matrix = 0;
    for (uint32_t i = 0; i < b.count; i++)
        if (b.info[i].size == 48) matrix = i;
    CHECK_EQ(missing_with(&b, NULL, 0, &found), 0);
    names[0] = b.info[matrix].name;
    const uint32_t wanted = missing_with(&b, names, 1, &found);
    CHECK(wanted == b.count - 1);
    for (uint32_t i = 0; i < found.count; i++) names[1 + i] = found.info[i].name;
    CHECK_EQ(missing_with(&b, names, 1 + found.count, &none), 0);
    names[0] = "no weight of this engine";
    CHECK_EQ(missing_with(&b, names, 1, &none), 0);
    names[0] = NULL;
    CHECK_EQ(sinter_engine_weights_missing(b.engine, names, 1, note, &none, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_engine_weights_missing(NULL, NULL, 0, note, &none, &error), SINTER_INVALID_ARG);
    sinter_buffer slim = { 0 };
    sinter_engine *stripped = NULL;
    CHECK_EQ(sinter_engine_strip(b.engine, &slim, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_load_memory(slim.data, slim.size, NULL, &stripped, &error), SINTER_OK);
    none = (bench){ 0 };
    CHECK_EQ(sinter_engine_weights_missing(stripped, NULL, 0, note, &none, &error), SINTER_OK);
    CHECK_EQ(none.count, b.count);
    sinter_engine_release(stripped);
    sinter_buffer_free(&slim);
    close_bench(&b);
}

static void some_by_name(void)
{
    bench b;
    sinter_error error = { 0 };
    sinter_buffer out = { 0 };
    float w[12], y[6];
    if (!CHECK(open_bench(&b, product, 1))) return;
    CHECK_EQ(b.count, 2);
    for (uint32_t i = 0; i < 12; i++) w[i] = (float)(i % 3);
    const uint32_t matrix = b.info[0].size == sizeof w ? 0 : 1;
    CHECK_EQ(b.info[matrix].size, sizeof w);
    CHECK(!b.info[0].is_fixed && !b.info[1].is_fixed);
    const sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 4, 3 }, .data = w };
    const float zero[3] = { 0 };
    const sinter_tensor bias = { .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { 3 }, .data = (void *)(uintptr_t)zero };
    const sinter_weight both[] = { { b.info[matrix].name, &t }, { b.info[1 - matrix].name, &bias } };
    if (!CHECK_EQ(sinter_engine_refit(b.engine, both, 2, &out, &error), SINTER_OK)) printf("%s\n", error.text);
    if (CHECK(run(&out, y, 6)))
        for (uint32_t i = 0; i < 6; i++) CHECK_NEAR(y[i], 4. * (i % 3), 1e-6);
    sinter_engine *g = NULL;
    sinter_buffer again = { 0 };
    const float ten[3] = { 10, 20, 30 };
    const sinter_tensor other = { .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { 3 }, .data = (void *)(uintptr_t)ten };
    CHECK_EQ(sinter_engine_load_memory(out.data, out.size, NULL, &g, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_refit(g, &(sinter_weight){ b.info[1 - matrix].name, &other }, 1, &again, &error), SINTER_OK);
    if (CHECK(run(&again, y, 6)))
        for (uint32_t i = 0; i < 6; i++) CHECK_NEAR(y[i], 4. * (i % 3) + 10. * (i % 3 + 1), 1e-6);
    sinter_engine_release(g);
    sinter_buffer_free(&again);
    sinter_buffer_free(&out);
    close_bench(&b);
}

static void refusals(void)
{
    bench b;
    sinter_error error = { 0 };
    sinter_buffer out = { 0 };
    float w[12] = { 1 };
    if (!CHECK(open_bench(&b, product, 1))) return;
    const uint32_t matrix = b.info[0].size == sizeof w ? 0 : 1;
    sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 4, 3 }, .data = w };
    CHECK_EQ(sinter_engine_refit(b.engine, &(sinter_weight){ "nobody", &t }, 1, &out, &error), SINTER_INVALID_ARG);
    CHECK(strstr(error.text, "no weight 'nobody'"));
    t.dim[0] = 5;
    CHECK_EQ(sinter_engine_refit(b.engine, &(sinter_weight){ b.info[matrix].name, &t }, 1, &out, &error),
             SINTER_INVALID_ARG);
    CHECK(strstr(error.text, "60 bytes of f32, the engine has 48"));
    t.dim[0] = 4;
    t.dtype = SINTER_DTYPE_I32;
    CHECK_EQ(sinter_engine_refit(b.engine, &(sinter_weight){ b.info[matrix].name, &t }, 1, &out, &error),
             SINTER_INVALID_ARG);
    CHECK(!out.data);
    close_bench(&b);
    /* A weight that a scale was folded into needs both. */
    if (!CHECK(open_bench(&b, "in x f32 1,4,5,5; a = Conv x %3,4,1,1; y = Mul a %3,1,1; out y", 1))) return;
    t.dtype = SINTER_DTYPE_F32;
    const uint32_t product_at = b.info[0].size == sizeof w ? 0 : 1;
    CHECK_EQ(sinter_engine_refit(b.engine, &(sinter_weight){ b.info[product_at].name, &t }, 1, &out, &error),
             SINTER_INVALID_ARG);
    if (!CHECK(strstr(error.text, "is wanted") && strstr(error.text, b.info[1 - product_at].name)))
        printf("%s\n", error.text);
    close_bench(&b);
    /* A factor of one element decides that the product goes into the weight as a number. */
    if (!CHECK(open_bench(&b, "in x f32 2,4; a = Mul x #0.5; b = Exp a; y = MatMul b %4,3; out y", 1))) return;
    uint32_t fixed = 0;
    for (uint32_t i = 0; i < b.count; i++) {
        const float two = 2;
        const sinter_tensor v = { .dtype = SINTER_DTYPE_F32, .data = (void *)(uintptr_t)&two };
        if (!b.info[i].is_fixed || b.info[i].size != 4) continue;
        fixed++;
        CHECK_EQ(sinter_engine_refit(b.engine, &(sinter_weight){ b.info[i].name, &v }, 1, &out, &error),
                 SINTER_INVALID_ARG);
        CHECK(strstr(error.text, "build it anew"));
    }
    CHECK_EQ(fixed, 1);
    close_bench(&b);
}

/* Weights of 8 bits that pairs of products fit in 16 bits with, then others, then such again: what they are multiplied
 * by is chosen anew. */
static void narrow_and_wide(void)
{
    bench b;
    sinter_error error = { 0 };
    sinter_buffer out = { 0 }, again = { 0 };
    float w[12], y[6];
    if (!CHECK(open_bench(&b,
                          "in x f32 2,4; a = Mul x #255; c = Cast a to=2; w = Cast %4,3 to=3; d = MatMulInteger c w; "
                          "y = Cast d to=1; out y",
                          1)))
        return;
    uint32_t matrix = 0;
    for (uint32_t i = 0; i < b.count; i++)
        if (b.info[i].size == sizeof w) matrix = i;
    for (uint32_t i = 0; i < 12; i++) w[i] = i % 3 == 0 ? 127 : i % 3 == 1 ? -128 : 64;
    const sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 4, 3 }, .data = w };
    const sinter_weight weight = { b.info[matrix].name, &t };
    if (!CHECK_EQ(sinter_engine_refit(b.engine, &weight, 1, &out, &error), SINTER_OK)) printf("%s\n", error.text);
    if (CHECK(out.data && run(&out, y, 6)))
        for (uint32_t i = 0; i < 6; i++) CHECK_EQ(y[i], 255 * 4 * w[i % 3]);
    sinter_engine *g = NULL;
    CHECK_EQ(sinter_engine_load_memory(out.data, out.size, NULL, &g, &error), SINTER_OK);
    for (uint32_t i = 0; i < 12; i++) w[i] = i % 3 == 0 ? 64 : i % 3 == 1 ? -64 : 3;
    CHECK_EQ(sinter_engine_refit(g, &weight, 1, &again, &error), SINTER_OK);
    if (CHECK(again.data && run(&again, y, 6)))
        for (uint32_t i = 0; i < 6; i++) CHECK_EQ(y[i], 255 * 4 * w[i % 3]);
    sinter_engine_release(g);
    sinter_buffer_free(&again);
    sinter_buffer_free(&out);
    close_bench(&b);
}

static void stripped(void)
{
    bench b;
    sinter_error error = { 0 };
    sinter_buffer out = { 0 }, full = { 0 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    if (!CHECK(open_bench(&b, "in x f32 2,4; a = MatMul x %4,4096; b = Relu a; y = MatMul b %4096,3; out y", 0)))
        return;
    CHECK_EQ(sinter_engine_strip(b.engine, &out, &error), SINTER_OK);
    CHECK(out.size * 20 < b.built.size);
    if (!CHECK_EQ(sinter_engine_load_memory(out.data, out.size, NULL, &g, &error), SINTER_OK))
        printf("%s\n", error.text);
    CHECK_EQ(sinter_context_create(g, NULL, &c, &error), SINTER_INVALID_ARG);
    CHECK(strstr(error.text, "stripped"));
    CHECK_EQ(sinter_engine_refit(g, NULL, 0, &full, &error), SINTER_INVALID_ARG);
    CHECK(strstr(error.text, "is wanted"));
    (void)mkdir(scratch("one"), 0777);
    CHECK(save(scratch("one/model.onnx"), b.model.at, b.model.size));
    CHECK_EQ(sinter_engine_refit_file(g, scratch("one/model.onnx"), &full, &error), SINTER_OK);
    CHECK_EQ(full.size, b.built.size);
    remove_scratch();
    sinter_engine_release(g);
    sinter_buffer_free(&out);
    sinter_buffer_free(&full);
    close_bench(&b);
}

static const test tests[] = {
    T(samples), T(some_by_name), T(missing_by_name), T(refusals), T(narrow_and_wide), T(stripped), { 0 },
};
TEST_MAIN(tests)

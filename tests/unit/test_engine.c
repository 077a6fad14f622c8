/* SPDX-License-Identifier: Apache-2.0 */
/* test_engine.c - engines through the public interface: the same bytes each time, clear errors, shapes that change,
 * buffers of the caller's, several contexts, and no allocation once a shape is known. */
#include "faulty.h"
#include "model_text.h"
#include "samples.h"
#include "test.h"

#include <stdio.h>

/* ---- the same bytes ---- */

static void same_bytes(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        sinter_buffer a = { 0 }, b = { 0 };
        sinter_error error = { 0 };
        if (!CHECK_EQ(sample_build((sample)i, NULL, &a, &error), SINTER_OK))
            printf("%s: %s\n", sample_name((sample)i), error.text);
        CHECK_EQ(sample_build((sample)i, NULL, &b, &error), SINTER_OK);
        if (!CHECK(a.size == b.size && a.size && !memcmp(a.data, b.data, a.size)))
            printf("%s\n", sample_name((sample)i));
        sinter_buffer_free(&a);
        sinter_buffer_free(&b);
    }
}

/* Large enough that there is something to choose. */
static bytes product_model(void)
{
    bytes g = { 0 };
    float *w = calloc(128 * 96, sizeof *w);
    if (!w) abort();
    bytes_put(&g, 11, onnx_value("x", 1, (const int64_t[]){ 64, 128 }, 2, ""));
    bytes_put(&g, 5, onnx_tensor_bytes("w", 1, (const int64_t[]){ 128, 96 }, 2, w, 128 * 96 * sizeof *w));
    free(w);
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "product", "x,w", "y"));
    bytes_put(&g, 12, onnx_value("y", 1, (const int64_t[]){ 64, 96 }, 2, ""));
    return onnx_model_bytes(g, 18);
}

static void same_bytes_with_a_cache(void)
{
    char path[] = "test_engine_cache_XXXXXX";
    const bytes model = product_model();
    sinter_build_options o = { .struct_size = sizeof o, .threads = 1, .tune = SINTER_TUNE_FULL, .timing_cache = path };
    sinter_buffer first = { 0 }, a = { 0 }, b = { 0 };
    sinter_error error = { 0 };
    (void)snprintf(path, sizeof path, "test_engine_cache_%06x", (unsigned)((uintptr_t)&error >> 4 & 0xffffff));
    (void)remove(path);
    o.cache_only = 1;
    CHECK(sinter_build_memory(model.at, model.size, &o, &a, &error) != SINTER_OK);
    CHECK_EQ(a.size, 0);
    o.cache_only = 0;
    error = (sinter_error){ 0 };
    if (!CHECK_EQ(sinter_build_memory(model.at, model.size, &o, &first, &error), SINTER_OK)) printf("%s\n", error.text);
    o.cache_only = 1; /* everything was measured */
    if (!CHECK_EQ(sinter_build_memory(model.at, model.size, &o, &a, &error), SINTER_OK)) printf("%s\n", error.text);
    CHECK_EQ(sinter_build_memory(model.at, model.size, &o, &b, NULL), SINTER_OK);
    CHECK(first.size == a.size && !memcmp(first.data, a.data, a.size));
    CHECK(a.size == b.size && !memcmp(a.data, b.data, a.size));
    (void)remove(path);
    sinter_buffer_free(&first);
    sinter_buffer_free(&a);
    sinter_buffer_free(&b);
    free(model.at);
}

/* Two products of other sizes pack one weight alike, and a sum reads a constant as it is. */
static bytes shared_weight_model(void)
{
    bytes g = { 0 };
    static float w[128 * 96], c[96];
    for (uint32_t i = 0; i < 128 * 96; i++) w[i] = (float)(i % 101) - 50;
    for (uint32_t i = 0; i < 96; i++) c[i] = (float)i;
    for (uint32_t i = 0; i < 2; i++) {
        const char *const in[] = { "x", "z" }, *const node[] = { "x,w", "z,w" }, *const sum[] = { "p,c", "q,c" };
        const int64_t rows = i ? 32 : 64;
        bytes_put(&g, 11, onnx_value(in[i], 1, (const int64_t[]){ rows, 128 }, 2, ""));
        bytes_put(&g, 1, onnx_node_bytes("MatMul", in[i], node[i], i ? "q" : "p"));
        bytes_put(&g, 1, onnx_node_bytes("Pow", "", sum[i], i ? "v" : "u"));
        bytes_put(&g, 12, onnx_value(i ? "v" : "u", 1, (const int64_t[]){ rows, 96 }, 2, ""));
    }
    bytes_put(&g, 5, onnx_tensor_bytes("w", 1, (const int64_t[]){ 128, 96 }, 2, w, sizeof w));
    bytes_put(&g, 5, onnx_tensor_bytes("c", 1, (const int64_t[]){ 96 }, 1, c, sizeof c));
    return onnx_model_bytes(g, 18);
}

static void same_bytes_in_a_file(void)
{
    static const char model_path[] = "test_engine_saved.onnx", path[] = "test_engine_saved.sinter";
    const bytes model = shared_weight_model();
    sinter_build_options o = { .struct_size = sizeof o, .threads = 1, .tune = SINTER_TUNE_OFF };
    sinter_error error = { 0 };
    sinter_buffer want = { 0 }, refused = { 0 };
    uint64_t size = 0;
    FILE *f = fopen(model_path, "wb");
    CHECK(f && fwrite(model.at, 1, model.size, f) == model.size && fclose(f) == 0);
    if (!CHECK_EQ(sinter_build_file(model_path, &o, &want, &error), SINTER_OK)) printf("%s\n", error.text);
    if (!CHECK_EQ(sinter_build_save(model_path, &o, path, &size, &error), SINTER_OK)) printf("%s\n", error.text);
    uint8_t *got = calloc(1, want.size + 1);
    f = fopen(path, "rb");
    CHECK(f && got && fread(got, 1, want.size + 1, f) == want.size && size == want.size);
    CHECK(want.size > 2 * 128 * 96 ? want.size < 2 * 128 * 96 * sizeof(float) : false); /* the weight is there once */
    CHECK(got && !memcmp(got, want.data, want.size));
    if (f) (void)fclose(f);
    /* What fails leaves the file as it was; a file of another kind stays. */
    CHECK(sinter_build_save("no_such.onnx", &o, path, &size, NULL) == SINTER_IO && size == 0);
    CHECK_EQ(sinter_build_save(model_path, &o, model_path, NULL, NULL), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_build_file(path, &o, &refused, NULL), SINTER_INVALID_MODEL);
    (void)remove(model_path);
    (void)remove(path);
    free(got);
    sinter_buffer_free(&want);
    free(model.at);
}

/* ---- a rig ---- */

typedef struct rig {
    faulty f;
    sinter_engine *g;
    sinter_context *c;
    sinter_error error;
    float x[8 * 3 * 8 * 8];
} rig;

static void rig_open(rig *r, sample s, uint32_t profile)
{
    *r = (rig){ .f = { .budget = -1 } };
    const sinter_allocator allocator = { &r->f, faulty_resize };
    const sinter_env_options given = { .struct_size = sizeof given, .allocator = &allocator };
    const sinter_engine_options o = { .struct_size = sizeof o, .env = &given, .threads = 1 };
    const sinter_context_options co = { .struct_size = sizeof co, .profile = profile };
    sinter_buffer engine = { 0 };
    for (size_t i = 0; i < sizeof r->x / sizeof *r->x; i++) r->x[i] = (float)(i % 13) / 7.0f - 0.8f;
    CHECK_EQ(sample_build(s, NULL, &engine, &r->error), SINTER_OK);
    CHECK_EQ(sinter_engine_load_memory(engine.data, engine.size, &o, &r->g, &r->error), SINTER_OK);
    CHECK_EQ(sinter_context_create(r->g, &co, &r->c, &r->error), SINTER_OK);
    if (r->error.length) printf("%s\n", r->error.text);
    sinter_buffer_free(&engine);
}

static void rig_close(rig *r)
{
    sinter_context_destroy(r->c);
    sinter_engine_release(r->g);
    CHECK_EQ(r->f.live, 0);
    CHECK_EQ(r->f.misuse, 0);
}

static sinter_tensor image_of(rig *r, int64_t n)
{
    return (sinter_tensor){ .dtype = SINTER_DTYPE_F32, .rank = 4, .dim = { n, 3, 8, 8 }, .data = r->x };
}

static sinter_status run_images(rig *r, int64_t n, sinter_tensor *y)
{
    const sinter_tensor x = image_of(r, n);
    r->error = (sinter_error){ 0 };
    sinter_status s = sinter_context_set_input(r->c, "x", &x, &r->error);
    if (s == SINTER_OK) s = sinter_context_run(r->c, &r->error);
    return s == SINTER_OK ? sinter_context_output(r->c, "y", y, &r->error) : s;
}

/* ---- errors ---- */

static void refuse(rig *r, const char *name, sinter_tensor t, const char *one, const char *two)
{
    sinter_error error = { 0 };
    CHECK_EQ(sinter_context_set_input(r->c, name, &t, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, one);
    CHECK_HAS(error.text, two);
}

static void wrong_inputs(void)
{
    rig r;
    sinter_tensor y;
    rig_open(&r, SAMPLE_CONV, 0);
    sinter_error error = { 0 };
    CHECK_EQ(sinter_context_run(r.c, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "'x'");
    CHECK(sinter_context_output(r.c, "y", &y, NULL) != SINTER_OK);
    refuse(&r, "z", image_of(&r, 2), "'z'", "'x'");
    refuse(&r, "y", image_of(&r, 2), "'y'", "'x'");
    sinter_tensor t = image_of(&r, 2);
    t.dtype = SINTER_DTYPE_I64;
    refuse(&r, "x", t, "i64", "f32");
    t = image_of(&r, 2);
    t.rank = 3;
    refuse(&r, "x", t, "rank 3", "4");
    refuse(&r, "x", image_of(&r, 5), "axis 0 of input 'x' is 5", "1 to 4");
    refuse(&r, "x", image_of(&r, 0), "axis 0 of input 'x' is 0", "1 to 4");
    refuse(&r, "x", image_of(&r, -1), "axis 0 of input 'x' is -1", "");
    t = image_of(&r, 2);
    t.dim[2] = 9;
    refuse(&r, "x", t, "axis 2 of input 'x' is 9", "8");
    t = image_of(&r, 2);
    t.data = NULL;
    refuse(&r, "x", t, "'x'", "");
    CHECK_EQ(sinter_context_set_input(r.c, NULL, &t, NULL), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_context_set_input(r.c, "x", NULL, NULL), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_context_set_input(NULL, "x", &t, NULL), SINTER_INVALID_ARG);
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_context_set_output(r.c, "x", r.x, sizeof r.x, SINTER_PLACE_HOST, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "'y'");
    const sinter_context_options o = { .struct_size = sizeof o, .profile = 1 };
    sinter_context *none = NULL;
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_context_create(r.g, &o, &none, &error), SINTER_INVALID_ARG);
    CHECK(none == NULL);
    CHECK_HAS(error.text, "profile 1");
    CHECK_EQ(run_images(&r, 2, &y), SINTER_OK); /* the context is none the worse */
    rig_close(&r);
}

/* Two inputs that share a free dim must agree on it; indices out of range are told by step and value. */
static void data_that_is_wrong(void)
{
    rig r;
    rig_open(&r, SAMPLE_GATHER, 0);
    int64_t id[4] = { 1, 2, 10, 3 };
    const sinter_tensor t = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { 4 }, .data = id };
    CHECK_EQ(sinter_context_set_input(r.c, "id", &t, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_INVALID_MODEL);
    CHECK_HAS(r.error.text, "index 10");
    CHECK_HAS(r.error.text, "limit is 10");
    id[2] = -10; /* the last row but nine: legal */
    r.error = (sinter_error){ 0 };
    CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
    rig_close(&r);
}

/* ---- shapes ---- */

static void shapes_change_and_come_back(void)
{
    rig r;
    float one[5], four[4 * 5];
    sinter_tensor y;
    rig_open(&r, SAMPLE_CONV, 0);
    CHECK_EQ(run_images(&r, 4, &y), SINTER_OK);
    CHECK_EQ(y.rank, 2);
    CHECK_EQ(y.dim[0], 4);
    CHECK_EQ(y.dim[1], 5);
    memcpy(four, y.data, sizeof four);
    CHECK_EQ(run_images(&r, 1, &y), SINTER_OK);
    CHECK_EQ(y.dim[0], 1);
    memcpy(one, y.data, sizeof one);
    for (int i = 0; i < 5; i++) CHECK_NEAR(one[i], four[i], 1e-6);
    for (int round = 0; round < 3; round++) {
        for (int64_t n = 1; n <= 4; n++) {
            CHECK_EQ(run_images(&r, n, &y), SINTER_OK);
            CHECK(!memcmp(y.data, n == 4 ? four : n == 1 ? one : y.data, (n == 4 ? 20 : 5) * sizeof(float)));
        }
    }
    rig_close(&r);
}

static void two_profiles(void)
{
    rig r;
    sinter_tensor y;
    sinter_io io;
    float one[5], two[10];
    rig_open(&r, SAMPLE_PROFILES, 0);
    CHECK_EQ(sinter_engine_profile_count(r.g), 2);
    CHECK_EQ(sinter_engine_io(r.g, 0, 1, &io), SINTER_OK);
    CHECK_STR(io.name, "x");
    CHECK(io.dim[0] == -1 && io.min[0] == 2 && io.opt[0] == 4 && io.max[0] == 8);
    CHECK_EQ(sinter_engine_io(r.g, 0, 0, &io), SINTER_OK);
    CHECK(io.min[0] == 1 && io.max[0] == 1);
    CHECK_EQ(sinter_engine_io(r.g, 2, 0, &io), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_engine_io(r.g, 0, 2, &io), SINTER_INVALID_ARG);
    CHECK_EQ(run_images(&r, 1, &y), SINTER_OK);
    memcpy(one, y.data, sizeof one);
    CHECK_EQ(run_images(&r, 2, &y), SINTER_INVALID_ARG);
    const sinter_context_options o = { .struct_size = sizeof o, .profile = 1 };
    sinter_context *const first = r.c;
    CHECK_EQ(sinter_context_create(r.g, &o, &r.c, &r.error), SINTER_OK);
    CHECK_EQ(run_images(&r, 1, &y), SINTER_INVALID_ARG);
    CHECK_EQ(run_images(&r, 2, &y), SINTER_OK);
    memcpy(two, y.data, sizeof two);
    for (int i = 0; i < 5; i++) CHECK_NEAR(one[i], two[i], 1e-6);
    sinter_context_destroy(first);
    rig_close(&r);
}

/* ---- the caller's buffers ---- */

static void own_buffers(void)
{
    rig r;
    sinter_tensor y;
    float want[10], mine[12];
    rig_open(&r, SAMPLE_CONV, 0);
    CHECK_EQ(run_images(&r, 2, &y), SINTER_OK);
    memcpy(want, y.data, sizeof want);
    for (int i = 0; i < 12; i++) mine[i] = 77;
    CHECK_EQ(sinter_context_set_output(r.c, "y", mine, sizeof want, SINTER_PLACE_HOST, NULL), SINTER_OK);
    CHECK_EQ(run_images(&r, 2, &y), SINTER_OK);
    CHECK(y.data == mine && !memcmp(mine, want, sizeof want) && mine[10] == 77);
    r.error = (sinter_error){ 0 };
    CHECK_EQ(sinter_context_set_output(r.c, "y", (char *)mine + 1, sizeof want, SINTER_PLACE_HOST, &r.error),
             SINTER_INVALID_ARG);
    CHECK_HAS(r.error.text, "'y' is not aligned");
    /* One that is too small says what was wanted, and is left alone. */
    for (int i = 0; i < 12; i++) mine[i] = 77;
    CHECK_EQ(sinter_context_set_output(r.c, "y", mine, sizeof want - 1, SINTER_PLACE_HOST, NULL), SINTER_OK);
    CHECK_EQ(run_images(&r, 2, &y), SINTER_INVALID_ARG);
    CHECK_HAS(r.error.text, "'y' needs 40 bytes");
    CHECK_HAS(r.error.text, "39");
    CHECK(mine[0] == 77 && sinter_context_output(r.c, "y", &y, NULL) != SINTER_OK);
    CHECK_EQ(run_images(&r, 1, &y), SINTER_OK); /* a smaller result fits */
    CHECK_EQ(sinter_context_set_output(r.c, "y", NULL, 0, SINTER_PLACE_HOST, NULL), SINTER_OK);
    CHECK_EQ(run_images(&r, 2, &y), SINTER_OK);
    CHECK(y.data != mine && !memcmp(y.data, want, sizeof want));
    rig_close(&r);
}

/* Where a device works in host memory all places are one, and what they hold is the caller's as anywhere. */
static void memory_of_the_engine(void)
{
    rig r;
    void *at[3] = { 0 }, *none = &r;
    rig_open(&r, SAMPLE_CONV, 0);
    CHECK_STR(sinter_engine_device(r.g), "cpu");
    CHECK_STR(sinter_engine_device(NULL), "");
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sinter_engine_alloc(r.g, (sinter_place)i, i ? sizeof r.x : 0, &at[i], &r.error), SINTER_OK);
        CHECK(at[i] && (uintptr_t)at[i] % 64 == 0);
    }
    CHECK_EQ(sinter_engine_copy(r.g, at[1], SINTER_PLACE_DEVICE, r.x, SINTER_PLACE_HOST, sizeof r.x, NULL), SINTER_OK);
    CHECK_EQ(sinter_engine_copy(r.g, at[2], SINTER_PLACE_PINNED, at[1], SINTER_PLACE_DEVICE, sizeof r.x, NULL),
             SINTER_OK);
    CHECK(!memcmp(at[2], r.x, sizeof r.x));
    sinter_tensor x = image_of(&r, 1), y;
    x.data = at[1];
    x.place = SINTER_PLACE_DEVICE;
    CHECK_EQ(sinter_context_set_input(r.c, "x", &x, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_set_output(r.c, "y", at[2], sizeof r.x, SINTER_PLACE_PINNED, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
    CHECK(sinter_context_output(r.c, "y", &y, NULL) == SINTER_OK && y.data == at[2]);
    for (int i = 0; i < 3; i++) sinter_engine_free(r.g, (sinter_place)i, at[i], i ? sizeof r.x : 0);
    sinter_engine_free(r.g, SINTER_PLACE_HOST, NULL, 1);
    CHECK_EQ(sinter_engine_alloc(r.g, SINTER_PLACE_HOST, SIZE_MAX, &none, &r.error), SINTER_NO_MEMORY);
    CHECK(!none);
    CHECK_EQ(sinter_engine_alloc(NULL, SINTER_PLACE_HOST, 1, &none, NULL), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_engine_copy(r.g, NULL, SINTER_PLACE_HOST, NULL, SINTER_PLACE_HOST, 0, NULL), SINTER_OK);
    CHECK_EQ(sinter_engine_copy(r.g, r.x, SINTER_PLACE_HOST, NULL, SINTER_PLACE_HOST, 1, NULL), SINTER_INVALID_ARG);
    rig_close(&r);
}

/* The host's clock serves where a device has none of its own. */
static void phases_of_a_run(void)
{
    rig r;
    sinter_tensor y;
    sinter_run_time t;
    sinter_context_options o = SINTER_CONTEXT_OPTIONS;
    rig_open(&r, SAMPLE_CONV, 0);
    CHECK_EQ(run_images(&r, 1, &y), SINTER_OK);
    CHECK_EQ(sinter_context_run_time(r.c, &t), SINTER_INVALID_ARG); /* nobody asked for them */
    sinter_context_destroy(r.c);
    o.phases = 1;
    CHECK_EQ(sinter_context_create(r.g, &o, &r.c, &r.error), SINTER_OK);
    CHECK_EQ(sinter_context_run_time(r.c, &t), SINTER_INVALID_ARG); /* there was no run */
    CHECK_EQ(run_images(&r, 1, &y), SINTER_OK);
    CHECK_EQ(sinter_context_run_time(r.c, &t), SINTER_OK);
    CHECK(t.compute_ns > 0);
    CHECK_EQ(sinter_context_run_time(r.c, NULL), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_context_run_time(NULL, &t), SINTER_INVALID_ARG);
    rig_close(&r);
}

/* Any alignment works for inputs. */
static void odd_addresses(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        rig r;
        sample_data d;
        rig_open(&r, (sample)i, 0);
        if (!r.c || !CHECK(sample_data_make(r.g, 0, SAMPLE_MAX, 3, 1u << 20, &d))) continue;
        CHECK_EQ(sample_data_set(&d, r.c, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
        const uint64_t want = sample_results(r.g, r.c);
        uint8_t *moved[SAMPLE_IO_MAX] = { 0 };
        for (uint32_t k = 0; k < d.count; k++) {
            const size_t size = sinter_tensor_size(&d.at[k]);
            moved[k] = malloc(size + 1);
            if (!moved[k]) abort();
            memcpy(moved[k] + 1, d.at[k].data, size);
            sinter_tensor t = d.at[k];
            t.data = moved[k] + 1;
            CHECK_EQ(sinter_context_set_input(r.c, d.name[k], &t, NULL), SINTER_OK);
        }
        CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
        if (!CHECK_EQ(sample_results(r.g, r.c), want)) printf("%s %s\n", sample_name((sample)i), r.error.text);
        for (uint32_t k = 0; k < SAMPLE_IO_MAX; k++) free(moved[k]);
        sample_data_free(&d);
        rig_close(&r);
    }
}

/* Inputs and outputs stay as they are set, run after run; a call that fails takes back what was there before. */
static void what_persists(void)
{
    rig r;
    sample_data d;
    float out[15];
    rig_open(&r, SAMPLE_CONV, 0);
    CHECK(sample_data_make(r.g, 0, SAMPLE_OPT, 5, 1u << 20, &d));
    CHECK_EQ(sample_data_set(&d, r.c, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_set_output(r.c, "y", out, sizeof out, SINTER_PLACE_HOST, NULL), SINTER_OK);
    for (int i = 0; i < 2; i++) {
        out[0] = -1;
        CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
        CHECK(out[0] >= 0);
    }
    out[0] = -1;
    CHECK_EQ(sinter_context_set_output(r.c, "y", (char *)out + 1, 8, SINTER_PLACE_HOST, NULL), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_context_run(r.c, NULL), SINTER_OK);
    CHECK(out[0] == -1);
    sinter_tensor wrong = d.at[0];
    wrong.dim[0] = 1000;
    CHECK_EQ(sinter_context_set_input(r.c, d.name[0], &wrong, NULL), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_INVALID_ARG);
    CHECK_HAS(r.error.text, "input 'x' has not been set");
    CHECK_EQ(sample_data_set(&d, r.c, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_run(r.c, NULL), SINTER_OK);
    sample_data_free(&d);
    rig_close(&r);
}

/* ---- contexts ---- */

static void several_contexts(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        rig r;
        sample_data d[3];
        sinter_context *c[3] = { NULL };
        uint64_t want[3];
        rig_open(&r, (sample)i, 0);
        for (int k = 0; k < 3; k++) {
            CHECK_EQ(sinter_context_create(r.g, NULL, &c[k], NULL), SINTER_OK);
            CHECK(sample_data_make(r.g, 0, (sample_size)k, (uint64_t)k, 1u << 20, &d[k]));
            CHECK_EQ(sample_data_set(&d[k], r.c, NULL), SINTER_OK);
            CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
            want[k] = sample_results(r.g, r.c);
        }
        for (int k = 0; k < 3; k++) CHECK_EQ(sample_data_set(&d[k], c[k], NULL), SINTER_OK);
        for (int round = 0; round < 2; round++) {
            for (int k = 0; k < 3; k++) CHECK_EQ(sinter_context_run(c[k], NULL), SINTER_OK);
            for (int k = 0; k < 3; k++) CHECK_EQ(sample_results(r.g, c[k]), want[k]);
        }
        for (int k = 0; k < 3; k++) {
            sinter_context_destroy(c[k]);
            sample_data_free(&d[k]);
        }
        rig_close(&r);
    }
}

/* The first run with a shape may allocate; no later one does, also when it takes turns with another. */
static void steady_runs_allocate_nothing(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        rig r;
        sample_data d[2];
        rig_open(&r, (sample)i, 0);
        for (int k = 0; k < 2; k++) CHECK(sample_data_make(r.g, 0, k ? SAMPLE_MAX : SAMPLE_OPT, 9, 1u << 20, &d[k]));
        for (int round = 0; round < 4; round++) {
            const long before = r.f.requests;
            for (int k = 0; k < 2; k++) {
                CHECK_EQ(sample_data_set(&d[k], r.c, NULL), SINTER_OK);
                CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
                CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
            }
            if (round && !CHECK_EQ(r.f.requests, before)) printf("%s, round %d\n", sample_name((sample)i), round);
        }
        CHECK(sinter_context_memory(r.c) > 0 && sinter_context_memory(r.c) <= (size_t)r.f.live_bytes);
        for (int k = 0; k < 2; k++) sample_data_free(&d[k]);
        rig_close(&r);
    }
}

/* Many shapes one after the other do not pile up memory. */
static void shapes_are_forgotten(void)
{
    rig r;
    sample_data d;
    long most = 0;
    rig_open(&r, SAMPLE_GATHER, 0);
    for (int64_t n = 0; n < 40; n++) {
        int64_t id[9] = { 0 };
        const sinter_tensor t = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { 1 + n % 9 }, .data = id };
        CHECK_EQ(sinter_context_set_input(r.c, "id", &t, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
        if (n == 19) most = r.f.live_bytes;
    }
    CHECK(r.f.live_bytes <= most);
    CHECK(sample_data_make(r.g, 0, SAMPLE_MIN, 1, 64, &d));
    sample_data_free(&d);
    rig_close(&r);
}

/* A window of 2 does not fit in a size that nobody gave. The error says that this size counts as 1. */
static void free_sizes_are_named(void)
{
    model_text m;
    model_read("sym N 1 8 8; in x f32 1,1,N; y = MaxPool x kernel_shape=[2]; out y", &m);
    sinter_buffer engine = { 0 };
    sinter_error error = { 0 };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = SINTER_TUNE_OFF;
    CHECK_EQ(sinter_build_memory(m.model.at, m.model.size, &o, &engine, &error), SINTER_INVALID_MODEL);
    CHECK_HAS(error.text, "taking free sizes without a range as 1, such as axis 2 of 'x'");
    const sinter_shape_range range = {
        .input = "x", .rank = 3, .min = { 1, 1, 2 }, .opt = { 1, 1, 8 }, .max = { 1, 1, 8 }
    };
    const sinter_profile profile = { .shape = &range, .count = 1 };
    o.profile = &profile;
    o.profile_count = 1;
    CHECK_EQ(sinter_build_memory(m.model.at, m.model.size, &o, &engine, &error), SINTER_OK);
    sinter_buffer_free(&engine);
    free(m.model.at);
}

static const test tests[] = { T(same_bytes),
                              T(same_bytes_in_a_file),
                              T(same_bytes_with_a_cache),
                              T(wrong_inputs),
                              T(free_sizes_are_named),
                              T(data_that_is_wrong),
                              T(shapes_change_and_come_back),
                              T(two_profiles),
                              T(own_buffers),
                              T(memory_of_the_engine),
                              T(phases_of_a_run),
                              T(odd_addresses),
                              T(what_persists),
                              T(several_contexts),
                              T(steady_runs_allocate_nothing),
                              T(shapes_are_forgotten),
                              { 0 } };
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_calibrate.c - calibration through the C API: batches of a function against the same batches at once, what is
 * refused, memory that is refused, and damaged caches in buffers of their exact size (for ASan). Which range each
 * method gives is compared with NumPy in tests/python/test_calibrate.py. */
#include "faulty.h"
#include "onnx_bytes.h"
#include "sinter/sinter.h"
#include "test.h"

#include <math.h>

enum { ROWS = 4, WIDTH = 32, BATCHES = 5 };

/* y = relu(x W) */
static bytes model_bytes(void)
{
    static float w[WIDTH * WIDTH];
    for (uint32_t i = 0; i < WIDTH * WIDTH; i++) w[i] = 0.02f * (float)((i * 7919u) % 101) - 1;
    bytes g = { 0 };
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "first", "x,w", "a"));
    bytes_put(&g, 1, onnx_node_bytes("Relu", "relu", "a", "y"));
    bytes_text(&g, 2, "g");
    bytes_put(&g, 5, onnx_tensor_bytes("w", 1, (int64_t[]){ WIDTH, WIDTH }, 2, w, sizeof w));
    bytes_put(&g, 11, onnx_value("x", 1, (int64_t[]){ ROWS, WIDTH }, 2, ""));
    bytes_put(&g, 12, onnx_value("y", 1, (int64_t[]){ ROWS, WIDTH }, 2, ""));
    return onnx_model_bytes(g, 17);
}

/* Gives each batch in the same memory. */
typedef struct source {
    float x[ROWS * WIDTH];
    sinter_tensor tensor;
    sinter_input_value value;
    int given, end; /* end < 0: it stops with a failure behind so many */
} source;

static void fill(float *x, int batch)
{
    for (uint32_t i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)(batch + 1) * ((float)((i * 7907u + (uint32_t)batch) % 1009) / 500 - 1);
}

static int next(void *user, sinter_sample *batch)
{
    source *s = user;
    if (s->given == abs(s->end)) return s->end < 0 ? -1 : 0;
    fill(s->x, s->given++);
    s->tensor = (sinter_tensor){ .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { ROWS, WIDTH }, .data = s->x };
    s->value = (sinter_input_value){ .input = "x", .value = &s->tensor };
    *batch = (sinter_sample){ &s->value, 1 };
    return 1;
}

static sinter_status calibrate(const sinter_calibrate_options *o, sinter_buffer *cache, sinter_error *error)
{
    bytes m = model_bytes();
    sinter_calibration *c = NULL;
    *cache = (sinter_buffer){ 0 };
    sinter_status s = sinter_calibrate_memory(m.at, m.size, o, &c, error);
    CHECK((s == SINTER_OK) == (c != NULL));
    if (s == SINTER_OK) s = sinter_calibration_write(c, cache, error);
    sinter_calibration_destroy(c);
    free(m.at);
    return s;
}

static void a_function_gives_batches(void)
{
    static source all[BATCHES];
    sinter_sample sample[BATCHES];
    sinter_build_options build = SINTER_BUILD_OPTIONS;
    for (int i = 0; i < BATCHES; i++) {
        all[i] = (source){ .given = i, .end = BATCHES };
        CHECK_EQ(next(&all[i], &sample[i]), 1);
    }
    for (int method = 0; method <= SINTER_CALIBRATION_ERROR; method++) {
        sinter_error error = { 0 };
        sinter_buffer at_once, in_turn;
        source s = { .end = BATCHES };
        sinter_calibrate_options o = SINTER_CALIBRATE_OPTIONS;
        o.method = (sinter_calibration_method)method;
        build.sample = sample;
        build.sample_count = BATCHES;
        o.build = &build;
        CHECK_EQ(calibrate(&o, &at_once, &error), SINTER_OK);
        build.sample_count = 0;
        o.next = next;
        o.user = &s;
        CHECK_EQ(calibrate(&o, &in_turn, &error), SINTER_OK);
        CHECK_EQ(s.given, BATCHES);
        CHECK_EQ(at_once.size, in_turn.size);
        CHECK(at_once.size == in_turn.size && memcmp(at_once.data, in_turn.data, at_once.size) == 0);
        sinter_buffer_free(&at_once);
        sinter_buffer_free(&in_turn);
    }
}

static void refused(const sinter_calibrate_options *o, sinter_status status, const char *why)
{
    sinter_error error = { 0 };
    sinter_buffer cache;
    CHECK_EQ(calibrate(o, &cache, &error), status);
    CHECK_HAS(error.text, why);
}

static void refuses(void)
{
    source none = { .end = 0 }, stops = { .end = -2 };
    sinter_calibrate_options o = SINTER_CALIBRATE_OPTIONS;
    refused(NULL, SINTER_INVALID_ARG, "no batch to calibrate with");
    o.next = next;
    o.user = &none;
    refused(&o, SINTER_INVALID_ARG, "`next` gave none");
    o.user = &stops;
    refused(&o, SINTER_CANCELLED, "at batch 2");
    o.percentile = 200;
    refused(&o, SINTER_INVALID_ARG, "percentile");
    o.struct_size = 1;
    refused(&o, SINTER_INVALID_ARG, "struct_size");
    sinter_error error = { 0 };
    sinter_calibration *c = NULL;
    const char *name;
    float scale;
    CHECK_EQ(sinter_calibrate_file(NULL, NULL, &c, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_calibrate_network(NULL, NULL, &c, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_calibration_create(NULL, &c, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_get(c, 0, &name, &scale, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_calibration_set(c, NULL, 1, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_calibration_count(c), 0);
    sinter_calibration_destroy(c);
    CHECK_EQ(sinter_calibration_set(NULL, "x", 1, &error), SINTER_INVALID_ARG);
}

static void out_of_memory(void)
{
    enum { TRIES = 100 };
    long requests = 1;
    for (long i = 0; i <= TRIES; i++) {
        faulty f = { .budget = i ? (i - 1) * requests / TRIES : -1 };
        const sinter_allocator allocator = { &f, faulty_resize };
        const sinter_env_options e = { .struct_size = sizeof e, .allocator = &allocator };
        source s = { .end = BATCHES };
        sinter_build_options build = SINTER_BUILD_OPTIONS;
        build.env = &e;
        build.threads = 1;
        sinter_calibrate_options o = SINTER_CALIBRATE_OPTIONS;
        o.build = &build;
        o.next = next;
        o.user = &s;
        sinter_error error = { 0 };
        sinter_buffer cache;
        const sinter_status status = calibrate(&o, &cache, &error);
        if (!CHECK(status == SINTER_OK || (i && status == SINTER_NO_MEMORY))) printf("%s\n", error.text);
        sinter_buffer_free(&cache);
        CHECK_EQ(f.live, 0);
        CHECK_EQ(f.misuse, 0);
        if (!i) requests = f.requests;
    }
}

/* ---- quantising ---- */

typedef struct said {
    uint32_t quantized, left, broken;
} said;

static void told(void *user, const char *op, const char *node, const char *why)
{
    said *s = user;
    CHECK(strcmp(op, "matmul") == 0 && strcmp(node, "first") == 0);
    if (why) s->left++;
    else s->quantized++;
}

static void on_broken(void *user, const char *rule, const char *node, const char *what)
{
    CHECK(*rule && *node && *what);
    ((said *)user)->broken++;
}

/* Memory is refused at each of some requests: no file is left, nothing is lost. */
static void quantizes(void)
{
    enum { TRIES = 60 };
    static const char path[] = "test_calibrate.onnx", to[] = "test_calibrate_q.onnx";
    sinter_error error = { 0 };
    sinter_calibration *c = NULL;
    bytes m = model_bytes();
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(m.at, 1, m.size, f) == m.size && fclose(f) == 0);
    CHECK_EQ(sinter_calibration_create(NULL, &c, &error), SINTER_OK);
    sinter_quantize_options o = SINTER_QUANTIZE_OPTIONS;
    CHECK_EQ(sinter_quantize_file(path, &o, to, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "calibration is NULL");
    o.calibration = c;
    CHECK_EQ(sinter_quantize_file(path, &o, to, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "of 1 products with constant weights none is quantised");
    CHECK_EQ(sinter_quantize_file(NULL, &o, to, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_quantize_check_file(path, NULL, NULL, NULL, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_calibration_set(c, "x", 3, &error), SINTER_OK);
    long requests = 1;
    for (long i = 0; i <= TRIES; i++) {
        faulty memory = { .budget = i ? (i - 1) * requests / TRIES : -1 };
        const sinter_allocator allocator = { &memory, faulty_resize };
        const sinter_env_options e = { .struct_size = sizeof e, .allocator = &allocator };
        said s = { 0 };
        o.env = &e;
        o.told = told;
        o.user = &s;
        (void)remove(to);
        sinter_status status = sinter_quantize_file(path, &o, to, &error);
        f = fopen(to, "rb");
        CHECK((f != NULL) == (status == SINTER_OK));
        if (f) CHECK(fclose(f) == 0);
        if (status == SINTER_OK) {
            CHECK(s.quantized == 1 && s.left == 0);
            status = sinter_quantize_check_file(to, &e, on_broken, &s, &error);
            CHECK_EQ(s.broken, 0);
        }
        if (!CHECK(status == SINTER_OK || (i && status == SINTER_NO_MEMORY))) printf("%s\n", error.text);
        CHECK_EQ(memory.live, 0);
        CHECK_EQ(memory.misuse, 0);
        if (!i) requests = memory.requests;
    }
    sinter_calibration_destroy(c);
    free(m.at);
    (void)remove(path);
    (void)remove(to);
}

/* The same of weights alone, with the data looked at. */
static void quantizes_weights(void)
{
    enum { TRIES = 60 };
    static const char path[] = "test_calibrate_w.onnx", to[] = "test_calibrate_w4.onnx";
    static source data = { .end = 1 };
    sinter_error error = { 0 };
    sinter_sample sample;
    sinter_build_options build = SINTER_BUILD_OPTIONS;
    sinter_quantize_options o = SINTER_QUANTIZE_OPTIONS;
    bytes m = model_bytes();
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(m.at, 1, m.size, f) == m.size && fclose(f) == 0);
    o.quantize_mode = SINTER_QUANTIZE_INT4;
    o.weight_method = SINTER_WEIGHT_AWQ_FULL;
    CHECK_EQ(sinter_quantize_file(path, &o, to, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "there are no samples");
    CHECK_EQ(next(&data, &sample), 1);
    build.sample = &sample;
    build.sample_count = 1;
    build.threads = 1;
    o.build = &build;
    o.block_size = 8;
    CHECK_EQ(sinter_quantize_file(path, &o, to, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "block_size is 8");
    o.block_size = 16;
    long requests = 1;
    for (long i = 0; i <= TRIES; i++) {
        faulty memory = { .budget = i ? (i - 1) * requests / TRIES : -1 };
        const sinter_allocator allocator = { &memory, faulty_resize };
        const sinter_env_options e = { .struct_size = sizeof e, .allocator = &allocator };
        said s = { 0 };
        o.env = &e;
        o.told = told;
        o.user = &s;
        (void)remove(to);
        const sinter_status status = sinter_quantize_file(path, &o, to, &error);
        f = fopen(to, "rb");
        CHECK((f != NULL) == (status == SINTER_OK));
        if (f) CHECK(fclose(f) == 0);
        CHECK(status != SINTER_OK || (s.quantized == 1 && s.left == 0));
        if (!CHECK(status == SINTER_OK || (i && status == SINTER_NO_MEMORY))) printf("%s\n", error.text);
        CHECK_EQ(memory.live, 0);
        CHECK_EQ(memory.misuse, 0);
        if (!i) requests = memory.requests;
    }
    free(m.at);
    (void)remove(path);
    (void)remove(to);
}

/* ---- damaged caches ---- */

static size_t cache_make(char *out, size_t size, uint64_t *random)
{
    static const char *const header[] = { "TRT-8601-EntropyCalibration2", "TRT-101600-MinMaxCalibration", "TRT-1-X" };
    static const char *const name[] = { "x", "a:b", "(Unnamed Layer* 3) [Convolution]_output", " y ", "a: 3f800000" };
    size_t at = (size_t)snprintf(out, size, "%s\n", header[test_below(random, 3)]);
    for (uint64_t i = 0, rows = test_below(random, 6); i < rows; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%u: %08x%s\n", name[test_below(random, 5)], (unsigned)i,
                               (unsigned)test_below(random, 0x7f800000), test_below(random, 8) ? "" : "\r");
    return at;
}

/* Cut, bytes changed, and lines moved where they do not belong. */
static size_t cache_damage(char *text, size_t size, uint64_t *random)
{
    static const char usual[] = "0123456789abcdefFgG:: \n\r-T#\xff";
    for (uint64_t k = test_below(random, 4); k && size; k--) {
        const size_t at = test_below(random, (uint32_t)size);
        const uint64_t kind = test_below(random, 8);
        if (kind == 0) size = at;
        else if (kind == 1) text[at] = 0;
        else if (kind == 2) memmove(text, text + at, size -= at);
        else if (kind == 3) memmove(text + at, text, size - at);
        else text[at] = usual[test_below(random, sizeof usual - 1)];
    }
    return size;
}

static void damaged_caches(void)
{
    const long rounds = test_scale(20000, 2000000);
    long taken = 0;
    for (long k = 0; k < rounds; k++) {
        uint64_t random = (uint64_t)k * 0x9E37u + 11;
        char text[1024];
        const size_t size = cache_damage(text, cache_make(text, sizeof text, &random), &random);
        char *exact = malloc(size ? size : 1);
        if (!exact) abort();
        memcpy(exact, text, size);
        sinter_calibration *c = NULL, *again = NULL;
        sinter_error error = { 0 };
        const sinter_status s = sinter_calibration_read(exact, size, NULL, &c, &error);
        free(exact);
        CHECK(s == SINTER_OK ? c != NULL : s == SINTER_INVALID_MODEL && !c && error.length);
        if (!c) continue;
        taken++;
        sinter_buffer first, second;
        CHECK_EQ(sinter_calibration_write(c, &first, &error), SINTER_OK);
        CHECK_EQ(sinter_calibration_read(first.data, first.size, NULL, &again, &error), SINTER_OK);
        CHECK_EQ(sinter_calibration_write(again, &second, &error), SINTER_OK);
        CHECK(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        for (uint32_t i = 0; i < sinter_calibration_count(c); i++) {
            const char *name;
            float scale;
            CHECK_EQ(sinter_calibration_get(c, i, &name, &scale, &error), SINTER_OK);
            CHECK(*name && isfinite(scale) && scale >= 0);
        }
        sinter_buffer_free(&first);
        sinter_buffer_free(&second);
        sinter_calibration_destroy(again);
        sinter_calibration_destroy(c);
    }
    CHECK(taken > rounds / 8 && taken < rounds);
}

static void files(void)
{
    static const char path[] = "test_calibrate.cache", other[] = "test_calibrate.text";
    sinter_error error = { 0 };
    sinter_calibration *c = NULL, *again = NULL;
    sinter_buffer first, second;
    (void)remove(path);
    CHECK_EQ(sinter_calibration_load(path, NULL, &c, &error), SINTER_IO);
    CHECK_EQ(sinter_calibration_create(NULL, &c, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_set(c, "x", 3, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_save(c, path, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_save(c, path, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_load(path, NULL, &again, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_write(c, &first, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_write(again, &second, &error), SINTER_OK);
    CHECK(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    FILE *f = fopen(other, "wb");
    CHECK(f && fwrite("notes\n", 1, 6, f) == 6 && fclose(f) == 0);
    CHECK_EQ(sinter_calibration_save(c, other, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "a calibration cache");
    sinter_calibration_destroy(again);
    CHECK_EQ(sinter_calibration_load(other, NULL, &again, &error), SINTER_INVALID_MODEL);
    CHECK_HAS(error.text, other);
    sinter_buffer_free(&first);
    sinter_buffer_free(&second);
    sinter_calibration_destroy(again);
    sinter_calibration_destroy(c);
    (void)remove(path);
    (void)remove(other);
}

static const test tests[] = { T(files),     T(a_function_gives_batches), T(refuses),        T(out_of_memory),
                              T(quantizes), T(quantizes_weights),        T(damaged_caches), { 0 } };
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_descent.c - steps that get other tactics after all is planned: whatever the timing cache says was found in the
 * whole program is put in, weights are packed anew, and the results are the same. The clock has no part in it. */
#include "backend/backend.h"
#include "engine/engine.h"
#include "onnx_bytes.h"
#include "sinter/build.h"
#include "sinter/engine.h"
#include "sinter/run.h"
#include "test.h"
#include "tune/tune.h"

#include <math.h>
#include <unistd.h>

enum { ROWS = 60, WIDE = 128, SWAPS = 64 };
static const char path[] = "test_descent.timings", other_path[] = "test_descent.swapped";

/* Three products, two of them of one weight, the second's result an output as well. The output `t` is of a shape that
 * the input `s` says: the bound of its bytes is more than any machine has. */
static bytes model(void)
{
    bytes g = { 0 };
    static float w[WIDE * WIDE], v[WIDE * WIDE];
    for (uint32_t i = 0; i < WIDE * WIDE; i++) {
        w[i] = (float)((int)(i * 7 % 23) - 11) / 64;
        v[i] = (float)((int)(i * 5 % 19) - 9) / 64;
    }
    const int64_t x[] = { ROWS, WIDE }, square[] = { WIDE, WIDE }, four[] = { 4 },
                  free[] = { INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN };
    bytes_put(&g, 11, onnx_value("x", 1, x, 2, ""));
    bytes_put(&g, 11, onnx_value("s", 7, four, 1, ""));
    bytes_put(&g, 5, onnx_tensor_bytes("w", 1, square, 2, w, sizeof w));
    bytes_put(&g, 5, onnx_tensor_bytes("v", 1, square, 2, v, sizeof v));
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "one", "x,w", "a"));
    bytes_put(&g, 1, onnx_node_bytes("Softmax", "", "a", "b"));
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "two", "b,v", "c"));
    bytes_put(&g, 1, onnx_node_bytes("Softmax", "", "c", "d"));
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "three", "d,w", "y"));
    bytes_put(&g, 1, onnx_node_bytes("Reshape", "shaped", "d,s", "r"));
    bytes_put(&g, 1, onnx_node_bytes("Transpose", "turned", "r", "t"));
    bytes_put(&g, 12, onnx_value("y", 1, x, 2, ""));
    bytes_put(&g, 12, onnx_value("t", 1, free, 4, ""));
    bytes_put(&g, 12, onnx_value("c", 1, x, 2, ""));
    return onnx_model_bytes(g, 18);
}

static sinter_status build(const char *cache, bool only, sinter_buffer *out, sinter_error *error)
{
    const bytes m = model();
    const sinter_build_options o = {
        .struct_size = sizeof o, .threads = 1, .tune = SINTER_TUNE_FULL, .timing_cache = cache, .cache_only = only
    };
    const sinter_status s = sinter_build_memory(m.at, m.size, &o, out, error);
    free(m.at);
    return s;
}

static void run(const sinter_buffer *file, float *out)
{
    static float x[ROWS * WIDE];
    int64_t shape[] = { 2, ROWS / 2, 4, WIDE / 4 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    sinter_error error = { 0 };
    for (uint32_t i = 0; i < ROWS * WIDE; i++) x[i] = (float)((int)(i * 3 % 17) - 8) / 8;
    sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { ROWS, WIDE }, .data = x };
    sinter_tensor sizes = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { 4 }, .data = shape };
    sinter_tensor y = { 0 }, mid = { 0 };
    sinter_status s = sinter_engine_load_memory(file->data, file->size, NULL, &g, &error);
    if (s == SINTER_OK) s = sinter_context_create(g, NULL, &c, &error);
    if (s == SINTER_OK) s = sinter_context_set_input(c, "x", &t, &error);
    if (s == SINTER_OK) s = sinter_context_set_input(c, "s", &sizes, &error);
    if (s == SINTER_OK) s = sinter_context_run(c, &error);
    if (s == SINTER_OK) s = sinter_context_output(c, "y", &y, &error);
    if (s == SINTER_OK) s = sinter_context_output(c, "c", &mid, &error);
    if (!CHECK_EQ(s, SINTER_OK)) printf("%s\n", error.text);
    for (uint32_t i = 0; s == SINTER_OK && i < ROWS * WIDE; i++) {
        out[i] = ((const float *)y.data)[i];
        out[ROWS * WIDE + i] = ((const float *)mid.data)[i];
    }
    sinter_context_destroy(c);
    sinter_engine_release(g);
}

/* Rewrites the cache: all kernels get one time, so that which of them are near the best does not depend on the machine.
 * Swaps that a search has taken are left out, and with `is_new` also that it is over. */
static void rewrite_cache(bool is_new)
{
    static const char rewritten[] = "test_descent.equal";
    char line[4096];
    FILE *from = fopen(path, "rb"), *to = fopen(rewritten, "wb");
    while (CHECK(from && to) && fgets(line, sizeof line, from)) {
        char *number = strrchr(line, '|');
        const bool is_descent = !strncmp(line, "descent ", 8);
        if (is_descent && (is_new || !strstr(line, "done | "))) continue;
        if (number && !is_descent) memcpy(number, "| 1000 0\n", sizeof "| 1000 0\n");
        (void)fputs(line, to);
    }
    if (from) (void)fclose(from);
    if (to) CHECK(fclose(to) == 0);
    CHECK(rename(rewritten, path) == 0);
}

/* What a line of a swap begins with: the line that says the search is over, up to its last word. */
static bool prefix_of(char *out, size_t size)
{
    char line[4096];
    bool is_found = false;
    FILE *f = fopen(path, "rb");
    while (f && fgets(line, sizeof line, f)) {
        char *end = strstr(line, "done | ");
        if (strncmp(line, "descent ", 8) != 0 || !end) continue;
        *end = 0;
        (void)snprintf(out, size, "%s", line);
        is_found = true;
    }
    if (f) (void)fclose(f);
    return is_found;
}

/* A copy of the cache in which each step has swapped, to the n-th other tactic that is known of its problem; how many
 * steps have. */
static uint32_t write_swaps(const sinter_buffer *file, uint32_t n)
{
    env e;
    sinter_error error = { 0 };
    device *d = NULL;
    timing_cache *cache = NULL;
    engine *g = NULL;
    char prefix[4096];
    uint32_t swaps = 0;
    const device_options wanted = { .threads = 1 };
    const backend *b = backend_find("cpu");
    env_init(&e, NULL, &error);
    uint8_t *bytes_at = mem_alloc(&e, file->size, ENGINE_ALIGN);
    if (!CHECK(bytes_at != NULL) || !CHECK(prefix_of(prefix, sizeof prefix))) return 0;
    memcpy(bytes_at, file->data, file->size);
    CHECK_EQ(engine_open(&e, bytes_at, file->size, b, &wanted, 0, &g, &error), SINTER_OK);
    CHECK_EQ(b->open(&e, &wanted, &d), SINTER_OK);
    CHECK_EQ(timing_cache_create(&e, &cache), SINTER_OK);
    CHECK_EQ(timing_cache_read(cache, path), SINTER_OK);
    const tune_options o = { .backend = b,
                             .device = d,
                             .mode = TUNE_FULL,
                             .threads = 1,
                             .cache = cache,
                             .weights = (uint64_t)2 * WIDE * WIDE * 4 };
    for (uint32_t i = 0; i < g->step_count; i++) {
        choice list[SWAPS];
        uint32_t count = 0, seen = 0;
        const problem *p = g->code[i].problem;
        if (g->step[i].kind != STEP_KERNEL || p->op != OP_matmul) continue;
        CHECK_EQ(tune_alternatives(&e, p, &o, 1.3, list, SWAPS, &count), SINTER_OK);
        for (uint32_t k = 0; k < count; k++) {
            const bool is_there =
                list[k].kernel == g->code[i].kernel && !memcmp(list[k].tactic.at, g->step[i].tactic, TACTIC_SIZE);
            if (is_there || seen++ != n) continue;
            text key;
            text_init(&key, &e);
            text_printf(&key, "%sstep %u %s.%u ", prefix, i + 1, list[k].kernel->name, list[k].kernel->abi);
            for (uint32_t c = 0; c < TACTIC_SIZE; c++) text_printf(&key, "%02x", list[k].tactic.at[c]);
            CHECK_EQ(timing_cache_add(cache, key.at, 1), SINTER_OK);
            text_deinit(&key);
            swaps++;
        }
    }
    (void)unlink(other_path);
    CHECK_EQ(timing_cache_write(cache, other_path), SINTER_OK);
    timing_cache_destroy(cache);
    b->close(&e, d);
    engine_release(g);
    return swaps;
}

/* The steps whose kernel or tactic differs. */
static uint32_t changed(const sinter_buffer *a, const sinter_buffer *b)
{
    engine *g[2] = { NULL, NULL };
    env e;
    uint32_t count = 0;
    const device_options wanted = { .threads = 1 };
    env_init(&e, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        const sinter_buffer *f = i ? b : a;
        uint8_t *own = mem_alloc(&e, f->size, ENGINE_ALIGN);
        if (own) memcpy(own, f->data, f->size);
        CHECK_EQ(engine_open(&e, own, f->size, backend_find("cpu"), &wanted, 0, &g[i], NULL), SINTER_OK);
    }
    for (uint32_t i = 0; i < g[0]->step_count; i++)
        count += g[0]->code[i].kernel != g[1]->code[i].kernel ||
                 memcmp(g[0]->step[i].tactic, g[1]->step[i].tactic, TACTIC_SIZE) != 0;
    for (int i = 0; i < 2; i++) engine_release(g[i]);
    return count;
}

static void swapped_steps_compute_the_same(void)
{
    static float first[2 * ROWS * WIDE], then[2 * ROWS * WIDE];
    sinter_buffer file = { 0 }, again = { 0 }, swapped = { 0 };
    sinter_error error = { 0 };
    uint32_t swaps = 1, tried = 0;
    (void)unlink(path);
    if (!CHECK_EQ(build(path, false, &file, &error), SINTER_OK)) printf("%s\n", error.text);
    sinter_buffer_free(&file);
    file = (sinter_buffer){ 0 };
    rewrite_cache(true);
    if (!CHECK_EQ(build(path, false, &file, &error), SINTER_OK)) printf("%s\n", error.text);
    CHECK_EQ(build(path, true, &again, &error), SINTER_OK);
    CHECK(file.size == again.size && !memcmp(file.data, again.data, file.size));
    run(&file, first);
    rewrite_cache(false);
    for (uint32_t n = 0; n < 6 && swaps; n++) {
        swaps = write_swaps(&file, n);
        if (!swaps) break;
        if (!CHECK_EQ(build(other_path, true, &swapped, &error), SINTER_OK)) printf("%s\n", error.text);
        tried += changed(&file, &swapped);
        run(&swapped, then);
        for (uint32_t i = 0; i < 2 * ROWS * WIDE; i++)
            if (!CHECK(fabsf(first[i] - then[i]) <= 1e-5f * (1 + fabsf(first[i])))) break;
        sinter_buffer_free(&swapped);
        swapped = (sinter_buffer){ 0 };
    }
    CHECK(tried > 0); /* how many depends on the kernels of the machine */
    sinter_buffer_free(&file);
    sinter_buffer_free(&again);
    (void)unlink(path);
    (void)unlink(other_path);
}

static const test tests[] = { T(swapped_steps_compute_the_same), { 0 } };
TEST_MAIN(tests)

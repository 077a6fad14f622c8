/* SPDX-License-Identifier: Apache-2.0 */
/* test_emulated_models.c - whole small models on the emulated GPU against the reference, at sizes of which only a run
 * knows whether they are equal, 1 or 0. */
#include "backend/backend.h"
#include "emulate.h"
#include "engine/engine.h"
#include "model_text.h"
#include "onnx_bytes.h"
#include "sinter/build.h"
#include "sinter/engine.h"
#include "sinter/run.h"
#include "test.h"

#include <math.h>
#include <unistd.h>

static void same(const char *line, long least)
{
    char why[1024];
    long runs = 0;
    const char *wrong = model_compare(line, (model_device){ .kind = "cuda" }, why, &runs);
    if (!CHECK(!wrong)) printf("%s\n  %s\n", line, wrong);
    CHECK(runs >= least);
}

static void broadcasts(void)
{
    same("sym N 0 3 4; sym M 0 4 4; in x f32 N,4; in w f32 M,4; s = Shape w; e = Expand x s; y = Add e w; out y; out e",
         8);
    same("sym N 0 3 4; sym M 0 4 4; in x f32 4,N; in w f32 4,M; a = Exp x; b = Neg w; y = Mul a b; out y; out a", 8);
}

static void concats(void)
{
    same("sym N 0 2 3; sym M 0 1 5; in x f32 2,4,N; in w f32 2,4,M; a = Exp x; b = Neg w; y = Concat a b a b axis=2;"
         "out y; z = Concat y y axis=2; out z",
         12);
}

static void nothing(void)
{
    same("sym N 0 3 4; sym K 0 5 9; in x f32 2,N,K; in w f32 2,K,7; y = MatMul x w; out y", 16);
    same("sym N 0 2 4; in x f32 2,N; y = Slice x {0} {-1} {1}; z = Neg y; out y; out z", 4);
}

/* A body's results are seen on the host. What is moved there has to hold the whole slice, not one operand of the
 * Concat. */
static void slices_of_concats(void)
{
    same("sym N 1 4 9; in k i64 ; in c bool ; in x f32 N,5; in w f32 N,5; s = Loop k c body=(in i i64 ; in p bool ;"
         "q = Identity p; a = Concat x w x axis=0; b = Slice a {2} {9223372036854775807} {1} {2}; out q; out b); out s",
         3);
    same("in k i64 ; in c bool ; in x f32 4,5; in w f32 4,5; s = Loop k c body=(in i i64 ; in p bool ;"
         "q = Identity p; a = Concat x w axis=0; b = Slice a {0} {4} {1}; out q; out b); out s",
         1);
}

/* ---- numbers of 8 bits ---- */

enum { VALUES = 4096 };

/* x quantised, and that dequantised and quantised again with another scale. */
static bytes code_model(float scale, int zero, int type, float other)
{
    bytes g = { 0 };
    const int64_t size[] = { VALUES };
    const int8_t z = (int8_t)zero;
    bytes_put(&g, 11, onnx_value("x", 1, size, 1, ""));
    bytes_put(&g, 5, onnx_tensor_bytes("s", 1, NULL, 0, &scale, sizeof scale));
    bytes_put(&g, 5, onnx_tensor_bytes("t", 1, NULL, 0, &other, sizeof other));
    bytes_put(&g, 5, onnx_tensor_bytes("z", type, NULL, 0, &z, 1));
    bytes_put(&g, 1, onnx_node_bytes("QuantizeLinear", "", "x,s,z", "a"));
    bytes_put(&g, 1, onnx_node_bytes("DequantizeLinear", "", "a,s,z", "b"));
    bytes_put(&g, 1, onnx_node_bytes("Add", "", "b,x", "c"));
    bytes_put(&g, 1, onnx_node_bytes("QuantizeLinear", "", "c,t,z", "d"));
    bytes_put(&g, 12, onnx_value("a", type, size, 1, ""));
    bytes_put(&g, 12, onnx_value("b", 1, size, 1, ""));
    bytes_put(&g, 12, onnx_value("d", type, size, 1, ""));
    return onnx_model_bytes(g, 18);
}

static bool run_codes(bytes model, const char *kind, float *x, uint8_t *a, float *b, uint8_t *d)
{
    const sinter_build_options o = { .struct_size = sizeof o, .device = kind, .threads = 1, .tune = SINTER_TUNE_OFF };
    sinter_buffer file = { 0 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    sinter_error error = { 0 };
    sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { VALUES }, .data = x }, y = { 0 };
    sinter_status s = sinter_build_memory(model.at, model.size, &o, &file, &error);
    if (s == SINTER_OK) s = sinter_engine_load_memory(file.data, file.size, NULL, &g, &error);
    if (s == SINTER_OK) s = sinter_context_create(g, NULL, &c, &error);
    if (s == SINTER_OK) s = sinter_context_set_input(c, "x", &t, &error);
    if (s == SINTER_OK) s = sinter_context_run(c, &error);
    if (s == SINTER_OK) s = sinter_context_output(c, "a", &y, &error);
    if (s == SINTER_OK) memcpy(a, y.data, VALUES);
    if (s == SINTER_OK) s = sinter_context_output(c, "b", &y, &error);
    if (s == SINTER_OK) memcpy(b, y.data, VALUES * sizeof *b);
    if (s == SINTER_OK) s = sinter_context_output(c, "d", &y, &error);
    if (s == SINTER_OK) memcpy(d, y.data, VALUES);
    if (!CHECK_EQ(s, SINTER_OK)) printf("%s: %s\n", kind, error.text);
    sinter_context_destroy(c);
    sinter_engine_release(g);
    sinter_buffer_free(&file);
    return s == SINTER_OK;
}

/* Halves, their neighbours, the ends of the range and what is no number: all bytes are the reference's. */
static void codes_of_hard_values(void)
{
    static const float scales[] = { 0.0263466015458107f, 1, 0.3f, 7.1e-5f, 3e10f };
    static const struct {
        int type, zero;
    } kinds[] = { { 2, 0 }, { 2, 127 }, { 2, 120 }, { 2, 255 }, { 3, 0 }, { 3, -3 }, { 3, -128 }, { 3, 127 } };
    static const float special[] = { NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f, -1e-40f, 0, -0.0f, 1e9f, -1e9f };
    static float x[VALUES], b[2][VALUES];
    static uint8_t a[2][VALUES], d[2][VALUES];
    for (size_t i = 0; i < COUNT_OF(scales) * COUNT_OF(kinds); i++) {
        const float scale = scales[i / COUNT_OF(kinds)];
        const int zero = kinds[i % COUNT_OF(kinds)].zero, type = kinds[i % COUNT_OF(kinds)].type;
        for (int k = 0; k < VALUES; k++) {
            const float n = (float)(k / 7 - 290), part = k % 7 < 3 ? 0 : 0.5f;
            const float near = (n + part) * scale;
            x[k] = k % 7 == 1 || k % 7 == 4   ? nextafterf(near, INFINITY)
                   : k % 7 == 2 || k % 7 == 5 ? nextafterf(near, -INFINITY)
                   : k % 7 == 6               ? near * (1 + 1e-6f)
                                              : near;
        }
        memcpy(x, special, sizeof special);
        const bytes m = code_model(scale, zero, type, scale * 1.7f);
        if (run_codes(m, "reference", x, a[0], b[0], d[0]) && run_codes(m, "cuda", x, a[1], b[1], d[1])) {
            int wrong = 0;
            for (int k = 0; k < VALUES; k++) {
                const bool is_same = a[0][k] == a[1][k] && b[0][k] == b[1][k] && d[0][k] == d[1][k];
                if (!is_same && !wrong++)
                    printf("scale %g, zero %d, type %d, x %.9g: %d %g %d, wanted %d %g %d\n", (double)scale, zero, type,
                           (double)x[k], a[1][k], (double)b[1][k], d[1][k], a[0][k], (double)b[0][k], d[0][k]);
            }
            CHECK_EQ(wrong, 0);
        }
        free(m.at);
    }
}

/* ---- when the next kernel is let in ---- */

enum { FEW = 2, DEEP = 64 };
static const char timings[] = "test_emulated_models.timings";

/* Two products of few rows, a softmax and a norm: four kernels that can let the next one in at several times. */
static bytes chain_model(void)
{
    bytes g = { 0 };
    static float w[DEEP * DEEP], ones[DEEP];
    const int64_t x[] = { FEW, DEEP }, square[] = { DEEP, DEEP }, line[] = { DEEP };
    for (uint32_t i = 0; i < DEEP * DEEP; i++) w[i] = (float)((int)(i * 7 % 23) - 11) / 64;
    for (uint32_t i = 0; i < DEEP; i++) ones[i] = 1;
    bytes_put(&g, 11, onnx_value("x", 1, x, 2, ""));
    bytes_put(&g, 5, onnx_tensor_bytes("w", 1, square, 2, w, sizeof w));
    bytes_put(&g, 5, onnx_tensor_bytes("s", 1, line, 1, ones, sizeof ones));
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "", "x,w", "a"));
    bytes_put(&g, 1, onnx_node_bytes("Softmax", "", "a", "b"));
    bytes_put(&g, 1, onnx_node_bytes("LayerNormalization", "", "b,s,s", "c"));
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "", "c,w", "y"));
    bytes_put(&g, 12, onnx_value("y", 1, x, 2, ""));
    return onnx_model_bytes(g, 18);
}

static bool build_chain(bool only, sinter_buffer *out)
{
    const bytes m = chain_model();
    sinter_error error = { 0 };
    const sinter_build_options o = { .struct_size = sizeof o,
                                     .device = "cuda",
                                     .threads = 1,
                                     .tune = SINTER_TUNE_FAST,
                                     .timing_cache = timings,
                                     .cache_only = only };
    const sinter_status s = sinter_build_memory(m.at, m.size, &o, out, &error);
    free(m.at);
    if (!CHECK_EQ(s, SINTER_OK)) printf("%s\n", error.text);
    return s == SINTER_OK;
}

static bool run_chain(const sinter_buffer *file, float *out)
{
    static float x[FEW * DEEP];
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    sinter_error error = { 0 };
    for (uint32_t i = 0; i < FEW * DEEP; i++) x[i] = (float)((int)(i * 3 % 17) - 8) / 8;
    sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { FEW, DEEP }, .data = x }, y = { 0 };
    sinter_status s = sinter_engine_load_memory(file->data, file->size, NULL, &g, &error);
    if (s == SINTER_OK) s = sinter_context_create(g, NULL, &c, &error);
    if (s == SINTER_OK) s = sinter_context_set_input(c, "x", &t, &error);
    if (s == SINTER_OK) s = sinter_context_run(c, &error);
    if (s == SINTER_OK) s = sinter_context_output(c, "y", &y, &error);
    if (s == SINTER_OK) memcpy(out, y.data, FEW * DEEP * sizeof *out);
    if (!CHECK_EQ(s, SINTER_OK)) printf("%s\n", error.text);
    sinter_context_destroy(c);
    sinter_engine_release(g);
    return s == SINTER_OK;
}

static engine *open_chain(env *e, const sinter_buffer *file)
{
    engine *g = NULL;
    sinter_error error = { 0 };
    const device_options wanted = { .threads = 1 };
    uint8_t *own = mem_alloc(e, file->size, ENGINE_ALIGN);
    if (!CHECK(own != NULL)) return NULL;
    memcpy(own, file->data, file->size);
    if (!CHECK_EQ(engine_open(e, own, file->size, backend_find("cuda"), &wanted, 0, &g, &error), SINTER_OK))
        printf("%s\n", error.text);
    return g;
}

/* Writes behind the cache's line that a search is over that it has found each step's n-th other time; how many steps
 * have one. */
static uint32_t write_let_ins(const engine *g, uint32_t n)
{
    static char line[4096], prefix[4096];
    uint32_t count = 0;
    FILE *f = fopen(timings, "rb");
    while (f && fgets(line, sizeof line, f)) {
        char *end = strstr(line, "done | ");
        if (strncmp(line, "descent ", 8) != 0 || !end) continue;
        *end = 0;
        (void)snprintf(prefix, sizeof prefix, "%s", line);
    }
    if (f) (void)fclose(f);
    f = fopen(timings, "ab");
    if (!CHECK(f && *prefix)) return 0;
    for (uint32_t i = 0; i < g->step_count; i++) {
        const kernel *k = g->code[i].kernel;
        tactic now;
        tactic_sink list = { .count = 0 };
        uint32_t seen = 0;
        if (g->step[i].kind != STEP_KERNEL || !k->lets_in) continue;
        memcpy(now.at, g->step[i].tactic, sizeof now.at);
        k->lets_in(&now, &list);
        for (uint32_t t = 0; t < list.count; t++) {
            const bool is_other = memcmp(list.at[t].at, now.at, sizeof now.at) != 0;
            if (!is_other || !k->check(g->code[i].problem, &list.at[t]) || seen++ != n) continue;
            (void)fprintf(f, "%sstep %u %s.%u ", prefix, i + 1, k->name, k->abi);
            for (uint32_t b = 0; b < TACTIC_SIZE; b++) (void)fprintf(f, "%02x", list.at[t].at[b]);
            (void)fprintf(f, " | 1\n");
            count++;
        }
    }
    (void)fclose(f);
    return count;
}

/* What the timing cache says was found is put in, and nothing else changes: weights and results are the same. */
static void kernels_that_come_at_another_time(void)
{
    static float first[FEW * DEEP], then[FEW * DEEP];
    uint32_t swaps = 0;
    env e;
    env_init(&e, NULL, NULL);
    for (uint32_t n = 0; n < 2; n++) {
        sinter_buffer file = { 0 }, other = { 0 };
        (void)unlink(timings);
        if (!build_chain(false, &file) || !run_chain(&file, first)) return;
        engine *g = open_chain(&e, &file), *h = NULL;
        const uint32_t count = g ? write_let_ins(g, n) : 0;
        if (g && build_chain(true, &other)) h = open_chain(&e, &other);
        uint32_t changed = 0;
        for (uint32_t i = 0; h && i < g->step_count; i++) {
            const bool is_same = !memcmp(g->step[i].tactic, h->step[i].tactic, TACTIC_SIZE);
            CHECK(g->code[i].kernel == h->code[i].kernel);
            changed += !is_same;
        }
        CHECK_EQ(changed, count);
        CHECK_EQ(file.size, other.size);
        if (h && run_chain(&other, then)) CHECK(!memcmp(first, then, sizeof first));
        swaps += changed;
        engine_release(g);
        engine_release(h);
        sinter_buffer_free(&file);
        sinter_buffer_free(&other);
    }
    CHECK(swaps >= 4);
    (void)unlink(timings);
}

static const test tests[] = { T(codes_of_hard_values),
                              T(broadcasts),
                              T(concats),
                              T(nothing),
                              T(slices_of_concats),
                              T(kernels_that_come_at_another_time),
                              { 0 } };

int main(int argc, char **argv)
{
    char path[1024];
    if (!emulate_is_possible()) return 77;
    if (!getcwd(path, sizeof path - 64)) return 2;
    (void)strcat(path, "/tests/libsinter_emulated_cuda.so");
    (void)setenv("SINTER_LIBCUDA", path, 1);
    (void)setenv("SINTER_LIBNVRTC", path, 1);
    (void)setenv("SINTER_KERNEL_CACHE", "emulated/cache", 1);
    (void)setenv("SINTER_FAKE_SM", "90", 1);
    (void)setenv("SINTER_FAKE_DEVICES", "1", 1);
    return test_run_all(tests, argc, argv);
}

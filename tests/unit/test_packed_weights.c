/* SPDX-License-Identifier: Apache-2.0 */
/* test_packed_weights.c - products whose constant weight is stored in 4 or 8 bits: a run is the one product, with the
 * results that the packed numbers say. A weight that a kernel reads as it is takes no more room than in the model; any
 * other is dequantised when the engine is built. */
#include "onnx_bytes.h"
#include "sinter/sinter.h"
#include "test.h"

#include <math.h>

/* The f32 weight is larger than 1 MB and 8 times as large as its 4 bits. */
enum { K = 520, N = 520, BLOCK = 32, BLOCKS = (K + BLOCK - 1) / BLOCK, PADDED = BLOCKS * BLOCK };
enum { ONNX_FLOAT = 1, ONNX_UINT8 = 2, ONNX_UINT4 = 21, ONNX_INT4 = 22, ONNX_FP8 = 17 };

typedef struct packed {
    uint8_t q[K * N], zero[BLOCKS * N];
    float scale[BLOCKS * N], x[K], want[N];
    float unit; /* of x */
} packed;
static packed p = { .unit = 1 };

static uint32_t nibble(const uint8_t *at, uint32_t i)
{
    return ((uint32_t)at[i / 2] >> (i % 2 * 4)) & 15u;
}

static void fill(void)
{
    for (uint32_t i = 0; i < K * N; i++) p.q[i] = (uint8_t)(i * 7919u >> 5);
    for (uint32_t i = 0; i < BLOCKS * N; i++) p.zero[i] = (uint8_t)(i * 104729u >> 7);
    for (uint32_t i = 0; i < BLOCKS * N; i++) p.scale[i] = 0.01f + 0.001f * (float)(i % 13);
    for (uint32_t i = 0; i < K; i++) p.x[i] = p.unit * (0.1f * (float)(i % 17) - 0.8f);
}

static void count_steps(void *user, const char *text, size_t length)
{
    char *said = user;
    const size_t at = strlen(said);
    if (at + length < 1 << 16) {
        memcpy(said + at, text, length);
        said[at + length] = 0;
    }
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) count++;
    return count;
}

/* Builds the graph, whose input is x and whose output y, and compares y with p.want. is_packed: the engine has no f32
 * weight. */
static void runs_as_one_product(bytes graph, const char *what, bool is_packed)
{
    bytes_text(&graph, 2, "g");
    bytes_put(&graph, 11, onnx_value("x", ONNX_FLOAT, (int64_t[]){ 1, K }, 2, ""));
    bytes_put(&graph, 12, onnx_value("y", ONNX_FLOAT, (int64_t[]){ 1, N }, 2, ""));
    bytes m = onnx_model_bytes(graph, 21), domain = { 0 };
    bytes_text(&domain, 1, "com.microsoft");
    bytes_int(&domain, 2, 1);
    bytes_put(&m, 8, domain);
    /* A limit on what folding creates is none on weights that have their elements already. */
    const sinter_limits limits = { .fold_max = 1 << 12 };
    sinter_env_options e = SINTER_ENV_OPTIONS;
    e.limits = &limits;
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.env = &e;
    o.tune = SINTER_TUNE_OFF;
    sinter_error error = { 0 };
    sinter_buffer built = { 0 };
    sinter_engine *engine = NULL;
    sinter_context *context = NULL;
    const sinter_engine_options load = SINTER_ENGINE_OPTIONS;
    const sinter_tensor x = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 1, K }, .data = p.x };
    sinter_tensor y = { 0 };
    static char said[1 << 16];
    said[0] = 0;
    const bool ok = sinter_build_memory(m.at, m.size, &o, &built, &error) == SINTER_OK &&
                    sinter_engine_load_memory(built.data, built.size, &load, &engine, &error) == SINTER_OK &&
                    sinter_engine_print(engine, SINTER_PRINT_TEXT, count_steps, said, &error) == SINTER_OK &&
                    sinter_context_create(engine, NULL, &context, &error) == SINTER_OK &&
                    sinter_context_set_input(context, "x", &x, &error) == SINTER_OK &&
                    sinter_context_run(context, &error) == SINTER_OK &&
                    sinter_context_output(context, "y", &y, &error) == SINTER_OK;
    if (!CHECK(ok)) printf("%s: %s\n", what, error.text);
    if (!CHECK(count_of(said, ": 1 steps in") == 1)) printf("%s: %s\n", what, said);
    CHECK_EQ(count_of(said, "cpu_gemm_codes"), is_packed);
    if (is_packed) CHECK(built.size < 2 * K * N); /* 8 bits at most, and scales */
    for (uint32_t i = 0; ok && i < N; i++) {
        const double gap = fabs((double)((const float *)y.data)[i] - (double)p.want[i]);
        if (!CHECK(gap < 1e-4 * (double)p.unit)) printf("%s: element %u is off by %g\n", what, i, gap);
    }
    sinter_context_destroy(context);
    sinter_engine_release(engine);
    sinter_buffer_free(&built);
    free(m.at);
}

static bytes dequantize_graph(const char *in, int64_t axis, int64_t block)
{
    bytes g = { 0 }, n = onnx_node_bytes("DequantizeLinear", "unpack", in, "w");
    bytes_put(&n, 5, onnx_attr_int("axis", axis));
    bytes_put(&n, 5, onnx_attr_int("block_size", block));
    bytes_put(&g, 1, n);
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "product", "x,w", "y"));
    return g;
}

/* [K, N] in blocks along K, the last of them short; with zero points and without. */
static void blocks_of_4_bits(void)
{
    fill();
    for (uint32_t is_signed = 0; is_signed < 2; is_signed++) {
        bytes g = dequantize_graph(is_signed ? "q,s" : "q,s,z", 0, BLOCK);
        const int64_t type = is_signed ? ONNX_INT4 : ONNX_UINT4;
        bytes_put(&g, 5, onnx_tensor_bytes("q", type, (int64_t[]){ K, N }, 2, p.q, K * N / 2));
        bytes_put(&g, 5, onnx_tensor_bytes("s", ONNX_FLOAT, (int64_t[]){ BLOCKS, N }, 2, p.scale, sizeof p.scale));
        if (!is_signed)
            bytes_put(&g, 5, onnx_tensor_bytes("z", type, (int64_t[]){ BLOCKS, N }, 2, p.zero, BLOCKS * N / 2));
        for (uint32_t n = 0; n < N; n++) {
            double sum = 0;
            for (uint32_t k = 0; k < K; k++) {
                const uint32_t at = k / BLOCK * N + n, code = nibble(p.q, k * N + n);
                const int32_t q = is_signed ? (int32_t)(code ^ 8u) - 8 : (int32_t)code - (int32_t)nibble(p.zero, at);
                sum += (double)p.x[k] * (double)p.scale[at] * q;
            }
            p.want[n] = (float)sum;
        }
        runs_as_one_product(g, is_signed ? "int4 in blocks" : "uint4 in blocks", true);
    }
}

/* A kernel that divides small activations by powers of 2 would lose their last bits. */
static void small_activations(void)
{
    p.unit = 0x1p-116f;
    blocks_of_4_bits();
    p.unit = 1;
}

/* One scale for each column. */
static void columns_of_8_bits(void)
{
    fill();
    bytes g = dequantize_graph("q,s", 1, 0);
    for (uint32_t i = 0; i < K * N; i++) p.q[i] = (uint8_t)(0x38 | (p.q[i] & 0x87)); /* exponent 2^0 */
    bytes_put(&g, 5, onnx_tensor_bytes("q", ONNX_FP8, (int64_t[]){ K, N }, 2, p.q, K * N));
    bytes_put(&g, 5, onnx_tensor_bytes("s", ONNX_FLOAT, (int64_t[]){ N }, 1, p.scale, N * sizeof *p.scale));
    for (uint32_t n = 0; n < N; n++) {
        double sum = 0;
        for (uint32_t k = 0; k < K; k++) {
            const uint8_t code = p.q[k * N + n];
            sum += (double)p.x[k] * (double)p.scale[n] * (1 + (code & 7) / 8.) * (code & 0x80 ? -1 : 1);
        }
        p.want[n] = (float)sum;
    }
    runs_as_one_product(g, "f8 by columns", true);
}

/* [N, K] in blocks along K, as com.microsoft packs it; zero points 8. Its rows end with numbers that are not K's, which
 * no kernel skips. */
static void product_of_nbits(void)
{
    fill();
    bytes g = { 0 }, n = onnx_node_bytes("MatMulNBits", "product", "x,q,s", "y");
    bytes_text(&n, 7, "com.microsoft");
    bytes_put(&n, 5, onnx_attr_int("K", K));
    bytes_put(&n, 5, onnx_attr_int("N", N));
    bytes_put(&n, 5, onnx_attr_int("bits", 4));
    bytes_put(&n, 5, onnx_attr_int("block_size", BLOCK));
    bytes_put(&g, 1, n);
    const int64_t size[3] = { N, BLOCKS, BLOCK / 2 };
    bytes_put(&g, 5, onnx_tensor_bytes("q", ONNX_UINT8, size, 3, p.q, N * PADDED / 2));
    bytes_put(&g, 5, onnx_tensor_bytes("s", ONNX_FLOAT, (int64_t[]){ N * BLOCKS }, 1, p.scale, sizeof p.scale));
    for (uint32_t i = 0; i < N; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < K; k++)
            sum +=
                (double)p.x[k] * (double)p.scale[i * BLOCKS + k / BLOCK] * ((int32_t)nibble(p.q, i * PADDED + k) - 8);
        p.want[i] = (float)sum;
    }
    runs_as_one_product(g, "MatMulNBits", false);
}

static const test tests[] = {
    T(blocks_of_4_bits), T(small_activations), T(columns_of_8_bits), T(product_of_nbits), { 0 }
};
TEST_MAIN(tests)

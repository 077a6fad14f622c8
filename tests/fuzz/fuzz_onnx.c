/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_onnx.c - hostile models under tight limits: refused, or imported into a graph that verifies, and that can be
 * written as ONNX unless ONNX cannot express it.
 *
 * With libFuzzer, define FUZZ_LIBRARY. By itself the program damages models of its own and those named as arguments,
 * with seeds that are the same everywhere. */
#include "onnx/export.h"
#include "onnx/import.h"
#include "onnx_bytes.h"
#include "test.h"

static sinter_status swallow(void *user, const void *data, size_t size)
{
    (void)user;
    (void)data;
    (void)size;
    return SINTER_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sinter_limits limits = { .nodes_max = 10000, .memory_max = 256u << 20 };
    sinter_error error = { 0 };
    env e;
    ir_graph *g = NULL;
    env_init(&e, &(sinter_env_options){ .struct_size = sizeof(sinter_env_options), .limits = &limits }, &error);
    const sinter_status s = onnx_import(&e, NULL, data, size, &g);
    if (s == SINTER_OK) {
        const onnx_write_options o = { .unfold_min = 1, .unfold_all = true };
        const onnx_sink nowhere = { swallow, NULL };
        (void)CHECK_EQ(ir_verify(g, IR_STAGE_IMPORTED), SINTER_OK);
        const sinter_status written = onnx_write(&e, g, &o, &nowhere, NULL);
        if (!CHECK(written == SINTER_OK || written == SINTER_UNSUPPORTED || written == SINTER_NO_MEMORY))
            printf("%s\n", error.text);
    }
    if (g) ir_graph_destroy(g);
    return 0;
}

#ifndef FUZZ_LIBRARY
static bytes seed_model(void)
{
    bytes g = { 0 };
    const float w[6] = { 1, 2, 3, 4, 5, 6 };
    const int64_t shape[2] = { 0, -1 };
    bytes_put(&g, 11, onnx_value("x", 1, (int64_t[]){ INT64_MIN, 3 }, 2, "n"));
    bytes_put(&g, 5, onnx_tensor_bytes("w", 1, (int64_t[]){ 3, 2 }, 2, w, sizeof w));
    bytes_put(&g, 5, onnx_tensor_bytes("s", 7, (int64_t[]){ 2 }, 1, shape, sizeof shape));
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "m", "x,w", "a"));
    bytes n = onnx_node_bytes("Softmax", "p", "a", "b");
    bytes_put(&n, 5, onnx_attr_int("axis", -1));
    bytes_put(&g, 1, n);
    bytes_put(&g, 1, onnx_node_bytes("Reshape", "r", "b,s", "c"));
    bytes_put(&g, 1, onnx_node_bytes("TopK", "t", "c,k", "v,i"));
    bytes_put(&g, 5, onnx_tensor_bytes("k", 7, (int64_t[]){ 1 }, 1, &(int64_t){ 1 }, 8));
    bytes_put(&g, 1, onnx_node_bytes("Slice", "u", "v,k,s", "y"));
    bytes_put(&g, 12, onnx_value("y", 1, (int64_t[]){ INT64_MIN, 2 }, 2, "n"));
    return onnx_model_bytes(g, 17);
}

static void damage(const uint8_t *seed, size_t size, long rounds)
{
    uint8_t *copy = malloc(size + 1);
    uint64_t state = 1;
    if (!CHECK(copy != NULL)) return;
    for (long round = 0; round < rounds; round++) {
        memcpy(copy, seed, size);
        size_t length = size;
        for (uint64_t k = 1 + test_random(&state) % 4; k && length; k--) {
            const size_t at = (size_t)(test_random(&state) % length), from = (size_t)(test_random(&state) % length);
            const size_t run = (size_t)(test_random(&state) % 16);
            switch (test_random(&state) % 4) {
            case 0: copy[at] ^= (uint8_t)(1u << test_random(&state) % 8); break;
            case 1: copy[at] = (uint8_t)test_random(&state); break;
            case 2: length = k == 1 ? at : length; break;
            default:
                if (at + run <= length && from + run <= length) memmove(copy + at, copy + from, run);
                break;
            }
        }
        uint8_t *exact = malloc(length ? length : 1); /* so that a sanitizer sees a byte too far */
        if (!CHECK(exact != NULL)) break;
        memcpy(exact, copy, length);
        (void)LLVMFuzzerTestOneInput(exact, length);
        free(exact);
    }
    free(copy);
}

int main(int argc, char **argv)
{
    const bytes own = seed_model();
    damage(own.at, own.size, test_scale(3000, 100000));
    free(own.at);
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) continue;
        uint8_t *at = malloc(1 << 20);
        const size_t size = at ? fread(at, 1, 1 << 20, file) : 0;
        (void)fclose(file);
        damage(at, size, test_scale(50, 5000));
        free(at);
    }
    return test_failures ? 1 : 0;
}
#endif

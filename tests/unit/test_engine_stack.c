/* SPDX-License-Identifier: Apache-2.0 */
/* test_engine_stack.c - hostile nesting costs an error, never the stack: models nested as deep as the limits permit,
 * and deeper, are imported on a thread with a small one: 64 KiB for the default limit, 128 KiB for the highest.
 * Sanitizers enlarge frames many times over, so their builds get more. */
#include "base/asan.h"
#include "onnx/import.h"
#include "onnx_bytes.h"
#include "test.h"

#include <pthread.h>

#if defined(BASE_ASAN) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
enum { STACK = 4 << 20 };
#else
enum { STACK = 64 << 10 };
#endif

typedef struct job {
    bytes model;
    uint64_t depth_max;
    sinter_status status;
} job;

static void *body(void *arg)
{
    job *j = arg;
    static const uint64_t nodes = 10000;
    const sinter_limits limits = { .nodes_max = nodes, .depth_max = j->depth_max };
    env *e = malloc(sizeof *e);
    sinter_error *error = calloc(1, sizeof *error);
    ir_graph *g = NULL;
    if (!e || !error) abort();
    env_init(e, &(sinter_env_options){ .struct_size = sizeof(sinter_env_options), .limits = &limits }, error);
    j->status = onnx_import(e, NULL, j->model.at, j->model.size, &g);
    if (j->status == SINTER_OK) j->status = ir_verify(g, IR_STAGE_IMPORTED);
    if (g) ir_graph_destroy(g);
    free(error);
    free(e);
    return NULL;
}

static bytes nested(uint32_t depth)
{
    bytes g = { 0 };
    if (depth == 0) {
        bytes_put(&g, 1, onnx_node_bytes("Relu", "relu", "x", "y"));
    } else {
        bytes n = onnx_node_bytes("If", "if", "c", "y");
        bytes_put(&n, 5, onnx_attr_graph("then_branch", nested(depth - 1)));
        bytes_put(&n, 5, onnx_attr_graph("else_branch", nested(0)));
        bytes_put(&g, 1, n);
    }
    bytes_put(&g, 12, onnx_value("y", 1, (const int64_t[]){ 4 }, 1, ""));
    return g;
}

static sinter_status import_nested(uint32_t depth, uint64_t depth_max)
{
    bytes g = nested(depth);
    bytes_put(&g, 11, onnx_value("x", 1, (const int64_t[]){ 4 }, 1, ""));
    bytes_put(&g, 11, onnx_value("c", 9, NULL, 0, ""));
    job j = { .model = onnx_model_bytes(g, 17), .depth_max = depth_max, .status = SINTER_INTERNAL };
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, (size_t)STACK * (depth_max > 32 ? 2 : 1)), 0);
    if (CHECK_EQ(pthread_create(&thread, &attributes, body, &j), 0)) CHECK_EQ(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attributes);
    free(j.model.at);
    return j.status;
}

static void deep_models(void)
{
    CHECK_EQ(import_nested(1, 32), SINTER_OK);
    CHECK_EQ(import_nested(8, 32), SINTER_OK);
    CHECK(import_nested(30, 32) == SINTER_OK);
    CHECK(import_nested(40, 32) != SINTER_OK);
    CHECK(import_nested(500, 32) != SINTER_OK);
    CHECK(import_nested(500, 64) != SINTER_OK);
}

static const test tests[] = { T(deep_models), { 0 } };
TEST_MAIN(tests)

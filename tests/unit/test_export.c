/* SPDX-License-Identifier: Apache-2.0 */
/* test_export.c - models that are written: names, opsets, external data, sizes that the model computes, and failures of
 * memory and of whoever receives the bytes. */
#include "base/os.h"
#include "faulty.h"
#include "graph_eval.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

static ir_graph *parsed(env *e, const char *s)
{
    ir_graph *g = NULL;
    if (!CHECK_EQ(ir_parse(e, s, strlen(s), &g), SINTER_OK)) printf("%s\n", e->error->text);
    return g;
}

static sinter_status swallow(void *user, const void *data, size_t size)
{
    (void)data;
    *(size_t *)user += size;
    return SINTER_OK;
}

static sinter_status written(env *e, const ir_graph *g, const onnx_write_options *o)
{
    size_t size = 0;
    return onnx_write(e, g, o, &(onnx_sink){ swallow, &size }, NULL);
}

static void keeps_names_and_sizes(void)
{
    sinter_error error = { 0 };
    env e;
    arena a;
    env_init(&e, NULL, &error);
    arena_init(&a, &e);
    ir_graph *g =
        parsed(&e, "input %1: f32[N,4,H] name=\"left\"\ninput %2: f32[N,1] name=\"right\"\n"
                   "%3 = reshape(%1) shape=[4*H,N]\n%4 = slice(%1) start=[0,1,0] step=[1,2,1] size=[N,2,H]\n"
                   "%5 = expand(%2) shape=[N,N*H+floordiv(H,2)]\n%6 = shape_value() value=[N,7,ceildiv(H,3)]\n"
                   "output %3 name=\"a\"\noutput %4 name=\"b\"\noutput %5 name=\"c\"\noutput %6 name=\"d\"\n");
    ir_graph *again = NULL;
    if (!CHECK_EQ(graph_written(g, &a, &again), SINTER_OK)) printf("%s\n", error.text);
    static const char *const names[] = { "left", "right", "a", "b", "c", "d" };
    const ir_region *r = ir_region_at(again, IR_MAIN), *s = ir_region_at(g, IR_MAIN);
    for (uint32_t i = 0; again && i < 6; i++) {
        const ir_value *v = ir_value_at(again, i < 2 ? r->param.at[i] : r->result.at[i - 2]);
        const ir_value *w = ir_value_at(g, i < 2 ? s->param.at[i] : s->result.at[i - 2]);
        CHECK_STR(v->name, names[i]);
        for (uint32_t k = 0; k < w->rank; k++) {
            text x, y;
            text_init(&x, &e);
            text_init(&y, &e);
            dim_print(again->dims, v->dim[k], &x);
            dim_print(g->dims, w->dim[k], &y);
            CHECK_STR(x.at, y.at);
            text_deinit(&x);
            text_deinit(&y);
        }
    }
    ir_graph_destroy(again);
    ir_graph_destroy(g);
    arena_deinit(&a);
}

static void says_which_opset_is_needed(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    ir_graph *g = parsed(&e, "input %1: f32[4] name=\"x\"\n%2 = bit_cast(%1) type=i32\noutput %2 name=\"y\"\n");
    CHECK_EQ(written(&e, g, NULL), SINTER_OK);
    CHECK_EQ(written(&e, g, &(onnx_write_options){ .opset = 26 }), SINTER_OK);
    CHECK_EQ(written(&e, g, &(onnx_write_options){ .opset = 25 }), SINTER_UNSUPPORTED);
    CHECK_HAS(error.text, "opset 25 is asked for, and the model needs 26");
    error = (sinter_error){ 0 };
    CHECK_EQ(written(&e, g, &(onnx_write_options){ .opset = 20 }), SINTER_UNSUPPORTED);
    CHECK_HAS(error.text, "21 to 28 can be written");
    ir_graph_destroy(g);
}

static void external_data_is_read_again(void)
{
    sinter_error error = { 0 };
    env e;
    arena a;
    char folder[] = "/tmp/sinter_export_XXXXXX", path[64], data[64];
    env_init(&e, NULL, &error);
    arena_init(&a, &e);
    if (!CHECK(mkdtemp(folder) != NULL)) return;
    (void)snprintf(path, sizeof path, "%s/m.onnx", folder);
    (void)snprintf(data, sizeof data, "%s/m.onnx.data", folder);
    ir_graph *g =
        parsed(&e, "input %1: f32[2,3] name=\"x\"\nconst %2: f32[3,2] = {1,2,3,4,5,6}\nconst %3: f32[2] = {7,8}\n"
                   "%4 = matmul(%1, %2)\n%5 = sub(%3, %4)\noutput %5 name=\"y\"\n");
    const onnx_write_options o = { .data_min = 9 };
    for (int round = 0; round < 2; round++) /* the second time over existing files */
        CHECK_EQ(onnx_write_file(&e, g, &o, true, path), SINTER_OK);
    os_file file = { 0 }, outside = { 0 };
    CHECK_EQ(os_file_read(&e, path, 1 << 20, &file), SINTER_OK);
    CHECK_EQ(os_file_read(&e, data, 1 << 20, &outside), SINTER_OK);
    CHECK_EQ(outside.size, 24); /* the small constant is in the model */
    ir_graph *again = NULL;
    onnx_files files = { 0 };
    const onnx_import_options import = { .folder = folder, .files = &files };
    if (!CHECK_EQ(onnx_import(&e, &import, file.data, file.size, &again), SINTER_OK)) printf("%s\n", error.text);
    view in[1] = { { 0 } }, x[1] = { { 0 } }, y[1] = { { 0 } };
    if (again && CHECK_EQ(graph_inputs(g, 1, &a, in), SINTER_OK) && CHECK_EQ(graph_eval(g, in, &a, x), SINTER_OK) &&
        CHECK_EQ(graph_eval(again, in, &a, y), SINTER_OK))
        CHECK(graph_same(&x[0], &y[0], true));
    ir_graph_destroy(again);
    onnx_files_close(&e, &files);
    os_file_close(&e, &file);
    os_file_close(&e, &outside);
    ir_graph_destroy(g);
    (void)unlink(path);
    (void)unlink(data);
    (void)rmdir(folder);
    arena_deinit(&a);
}

static void replaces_models_alone(void)
{
    sinter_error error = { 0 };
    env e;
    char path[] = "/tmp/sinter_export_XXXXXX";
    env_init(&e, NULL, &error);
    const int fd = mkstemp(path);
    if (!CHECK(fd >= 0) || !CHECK_EQ(write(fd, "text", 4), 4)) return;
    ir_graph *g = parsed(&e, "input %1: f32[4] name=\"x\"\n%2 = relu(%1)\noutput %2 name=\"y\"\n");
    CHECK_EQ(onnx_write_file(&e, g, NULL, false, path), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "is not an ONNX model");
    ir_graph_destroy(g);
    (void)close(fd);
    (void)unlink(path);
}

/* ---- failures ---- */

static const char model[] =
    "input %1: f32[N,4] name=\"x\"\nconst %2: f32[4,4] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}\n"
    "%3 = matmul(%1, %2) trans_b=1\n%4 = silu(%3)\n%5 = layer_norm(%4) axis=1\n"
    "%6 = reshape(%5) shape=[2*N,2]\noutput %6 name=\"y\"\n";

static void survives_any_failure(void)
{
    for (long budget = 0;; budget++) {
        faulty f = { .budget = -1 };
        const sinter_allocator allocator = { &f, faulty_resize };
        const sinter_env_options options = { .struct_size = sizeof options, .allocator = &allocator };
        sinter_error error = { 0 };
        env e;
        env_init(&e, &options, &error);
        ir_graph *g = parsed(&e, model);
        f.budget = budget + f.requests;
        const sinter_status s = written(&e, g, NULL);
        ir_graph_destroy(g);
        CHECK_EQ(f.live, 0);
        CHECK_EQ(f.misuse, 0);
        if (s == SINTER_OK) break;
        if (!CHECK_EQ(s, SINTER_NO_MEMORY)) break;
    }
}

typedef struct narrow {
    env *e;
    long left; /* calls that succeed */
} narrow;

static sinter_status narrow_put(void *user, const void *data, size_t size)
{
    narrow *n = user;
    (void)data;
    (void)size;
    return n->left-- > 0 ? SINTER_OK : FAIL(n->e, IO, "the disk is full");
}

static void passes_on_what_the_receiver_says(void)
{
    for (long calls = 0;; calls++) {
        sinter_error error = { 0 };
        env e;
        env_init(&e, NULL, &error);
        ir_graph *g = parsed(&e, model);
        narrow n = { &e, calls };
        const sinter_status s = onnx_write(&e, g, NULL, &(onnx_sink){ narrow_put, &n }, NULL);
        ir_graph_destroy(g);
        if (s == SINTER_OK) break;
        if (!CHECK_EQ(s, SINTER_IO) || !CHECK(calls < 100)) break;
        CHECK_HAS(error.text, "the disk is full");
    }
}

static const test tests[] = {
    T(keeps_names_and_sizes),
    T(says_which_opset_is_needed),
    T(external_data_is_read_again),
    T(replaces_models_alone),
    T(survives_any_failure),
    T(passes_on_what_the_receiver_says),
    { 0 },
};
TEST_MAIN(tests)

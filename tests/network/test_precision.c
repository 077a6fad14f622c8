/* SPDX-License-Identifier: Apache-2.0 */
/* test_precision.c - types of layers: what a build may not lower, what it has to, and strongly typed networks. */
#include "net_rig.h"
#include "test.h"

#include <math.h>

static sinter_error error;
static const int64_t square[2] = { 8, 8 };

/* A product of numbers that f16 rounds. */
static sinter_network *product(sinter_layer **layer)
{
    static float w[64];
    sinter_network *net = NULL;
    for (int i = 0; i < 64; i++) w[i] = 1 + (float)i / 65536;
    const sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 8, 8 }, .data = w };
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_create(NULL, &net, &error), SINTER_OK);
    sinter_network_tensor *x = sinter_network_add_input(net, "x", SINTER_DTYPE_F32, 2, square, NULL, &error);
    sinter_network_tensor *c = sinter_layer_output(sinter_add_constant(net, &t, 1, &error), 0);
    *layer = sinter_add_matrix_multiply(net, x, SINTER_MATRIX_NONE, c, SINTER_MATRIX_NONE, &error);
    CHECK_EQ(sinter_network_mark_output(net, sinter_layer_output(*layer, 0), &error), SINTER_OK);
    return net;
}

/* How far the product is from the one in f32. */
static double moved(sinter_dtype precision, sinter_precision_mode mode, uint32_t allow)
{
    sinter_layer *layer;
    sinter_network *net = product(&layer);
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    float x[64];
    for (int i = 0; i < 64; i++) x[i] = 1 + (float)(i % 7) / 32768;
    const net_data data = { "x", { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 8, 8 }, .data = x } };
    net_result r;
    double most = 0;
    o.allow = allow;
    o.lower = SINTER_LOWER_ALWAYS;
    o.budget = 100;
    CHECK_EQ(sinter_layer_set_precision(layer, precision, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_precision(layer), precision);
    CHECK_EQ(sinter_network_set_precision_mode(net, mode, &error), SINTER_OK);
    if (!CHECK_EQ(net_run(net, &o, "cpu", &data, 1, 1, &r, &error), SINTER_OK)) printf("%s\n", error.text);
    else CHECK_EQ(r.out[0].dtype, SINTER_DTYPE_F32);
    for (int i = 0; i < 64 && r.count; i++) {
        double want = 0;
        for (int k = 0; k < 8; k++) want += (double)x[i / 8 * 8 + k] * (1 + (double)(k * 8 + i % 8) / 65536);
        most = fmax(most, fabs(net_value(&r.out[0], i) - want));
    }
    net_result_free(&r);
    sinter_network_destroy(net);
    return most;
}

static void layers_that_stay(void)
{
    const double exact = 1e-5, rounded = 1e-4;
    CHECK(moved(SINTER_DTYPE_NONE, SINTER_PRECISION_OBEY, 0) < exact);
    CHECK(moved(SINTER_DTYPE_NONE, SINTER_PRECISION_OBEY, SINTER_ALLOW_FP16) > rounded);
    CHECK(moved(SINTER_DTYPE_F32, SINTER_PRECISION_OBEY, SINTER_ALLOW_FP16) < exact);
    CHECK(moved(SINTER_DTYPE_F32, SINTER_PRECISION_PREFER, SINTER_ALLOW_FP16) < exact);
    CHECK(moved(SINTER_DTYPE_F32, SINTER_PRECISION_IGNORE, SINTER_ALLOW_FP16) > rounded);
    CHECK(moved(SINTER_DTYPE_F32, SINTER_PRECISION_OBEY, SINTER_ALLOW_INT8) < exact);
}

static void layers_that_are_lowered(void)
{
    CHECK(moved(SINTER_DTYPE_F16, SINTER_PRECISION_OBEY, 0) > 1e-4);
    CHECK(moved(SINTER_DTYPE_F16, SINTER_PRECISION_OBEY, 0) < 0.1);
    CHECK(moved(SINTER_DTYPE_BF16, SINTER_PRECISION_OBEY, 0) > 1e-3);
    CHECK(moved(SINTER_DTYPE_F16, SINTER_PRECISION_PREFER, 0) < 1e-5);
    CHECK(moved(SINTER_DTYPE_F16, SINTER_PRECISION_PREFER, SINTER_ALLOW_FP16) > 1e-4);
}

static void strongly_typed_networks(void)
{
    sinter_layer *layer;
    sinter_network *net = product(&layer);
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    sinter_buffer file = { 0 };
    CHECK_EQ(sinter_layer_set_precision(layer, SINTER_DTYPE_I8, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_layer_set_precision(layer, SINTER_DTYPE_F16, &error), SINTER_OK);
    CHECK_EQ(sinter_network_set_strongly_typed(net, 1, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_layer_set_precision(layer, SINTER_DTYPE_NONE, &error), SINTER_OK);
    CHECK_EQ(sinter_network_set_strongly_typed(net, 1, &error), SINTER_OK);
    CHECK_EQ(sinter_network_is_strongly_typed(net), 1);
    CHECK_EQ(sinter_layer_set_precision(layer, SINTER_DTYPE_F16, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_layer_set_output_type(layer, 0, SINTER_DTYPE_F16, &error), SINTER_INVALID_ARG);
    o.allow = SINTER_ALLOW_FP16;
    o.tune = SINTER_TUNE_OFF;
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_build(net, &o, &file, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "strongly typed");
    o.allow = 0;
    CHECK_EQ(sinter_network_build(net, &o, &file, &error), SINTER_OK);
    sinter_buffer_free(&file);
    sinter_network_destroy(net);
}

static const test tests[] = { T(layers_that_stay), T(layers_that_are_lowered), T(strongly_typed_networks), { 0 } };
TEST_MAIN(tests)

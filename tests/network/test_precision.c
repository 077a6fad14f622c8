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

/* ---- products in 8 bits ---- */

enum { ROWS = 4, TERMS = 32, COLUMNS = 16 };

/* y = relu(x w1) w2, both products of random numbers. */
static sinter_network *two_products(uint64_t seed, sinter_layer *layer[2], float *w[2], const char *name)
{
    static float memory[2][TERMS * TERMS];
    const int64_t face[2] = { ROWS, TERMS };
    sinter_network *net = NULL;
    uint64_t random = seed;
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_create(NULL, &net, &error), SINTER_OK);
    sinter_network_tensor *x = sinter_network_add_input(net, name, SINTER_DTYPE_F32, 2, face, NULL, &error);
    for (int k = 0; k < 2; k++) {
        const int64_t columns = k ? COLUMNS : TERMS;
        w[k] = memory[k];
        for (int i = 0; i < TERMS * columns; i++) w[k][i] = (float)test_below(&random, 2001) / 1000 - 1;
        const sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { TERMS, columns }, .data = w[k] };
        sinter_network_tensor *c = sinter_layer_output(sinter_add_constant(net, &t, 1, &error), 0);
        layer[k] = sinter_add_matrix_multiply(net, x, SINTER_MATRIX_NONE, c, SINTER_MATRIX_NONE, &error);
        x = sinter_layer_output(layer[k], 0);
        if (!k) x = sinter_layer_output(sinter_add_activation(net, x, SINTER_ACTIVATION_RELU, &error), 0);
    }
    CHECK_EQ(sinter_network_mark_output(net, x, &error), SINTER_OK);
    CHECK_EQ(sinter_network_set_precision_mode(net, SINTER_PRECISION_OBEY, &error), SINTER_OK);
    return net;
}

/* A product; codes > 0: of data rounded to multiples of range / codes (255: of numbers that are not negative), and of
 * weights rounded to those of the largest magnitude of a column / 127. */
static void multiply(const double *x, const float *w, int columns, double range, int codes, double *y)
{
    for (int c = 0; c < columns; c++) {
        double most = 0;
        for (int t = 0; t < TERMS; t++) most = fmax(most, fabs((double)w[t * columns + c]));
        for (int r = 0; r < ROWS; r++) {
            double sum = 0;
            for (int t = 0; t < TERMS; t++) {
                double a = x[r * TERMS + t], b = (double)w[t * columns + c];
                if (codes) a = rint(fmin(fmax(a / range * codes, codes == 255 ? 0 : -128), codes)) * range / codes;
                if (codes) b = rint(b / most * 127) * most / 127;
                sum += a * b;
            }
            y[r * columns + c] = sum;
        }
    }
}

/* Layer `which` in i8: with OBEY what comes out is what 8 bits of that layer alone give, whatever the device finds
 * faster and however small the budget is; with PREFER such a budget keeps it in f32. */
static void in_8_bits(uint64_t seed, int which, sinter_precision_mode mode, double budget)
{
    sinter_layer *layer[2];
    float *w[2], x[ROWS * TERMS];
    double in[ROWS * TERMS], middle[ROWS * TERMS], want[ROWS * COLUMNS], exact[ROWS * COLUMNS];
    sinter_network *net = two_products(seed, layer, w, "x");
    sinter_calibration *c = NULL;
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    net_result r;
    uint64_t random = seed + 77;
    double most = 0, worst = 0, range = 0, moved_by = 0;
    for (int i = 0; i < ROWS * TERMS; i++) {
        x[i] = (float)test_below(&random, 2001) / 1000 - 1;
        in[i] = (double)x[i];
    }
    multiply(in, w[0], TERMS, 1, 0, middle);
    for (int i = 0; i < ROWS * TERMS; i++) middle[i] = fmax(middle[i], 0);
    multiply(middle, w[1], COLUMNS, 1, 0, exact);
    const bool is_obeyed = mode == SINTER_PRECISION_OBEY;
    multiply(in, w[0], TERMS, 1, is_obeyed && which == 0 ? 127 : 0, middle);
    for (int i = 0; i < ROWS * TERMS; i++) range = fmax(range, middle[i] = fmax(middle[i], 0));
    multiply(middle, w[1], COLUMNS, range, is_obeyed && which == 1 ? 255 : 0, want);
    CHECK_EQ(sinter_calibration_create(NULL, &c, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_set(c, "x", 1, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_set(c, sinter_network_tensor_name(sinter_layer_input(layer[1], 0)), range, &error),
             SINTER_OK);
    CHECK_EQ(sinter_layer_set_precision(layer[which], SINTER_DTYPE_I8, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_precision(layer[which]), SINTER_DTYPE_I8);
    CHECK_EQ(sinter_network_set_precision_mode(net, mode, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_precision(layer[!which], SINTER_DTYPE_F32, &error), SINTER_OK);
    o.allow = SINTER_ALLOW_INT8;
    o.calibration = c;
    o.budget = budget;
    const net_data data = { "x", { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { ROWS, TERMS }, .data = x } };
    if (!CHECK_EQ(net_run(net, &o, "cpu", &data, 1, 1, &r, &error), SINTER_OK)) printf("%s\n", error.text);
    for (int i = 0; i < ROWS * COLUMNS && r.count; i++) {
        most = fmax(most, fabs(want[i]));
        worst = fmax(worst, fabs(net_value(&r.out[0], i) - want[i]));
        moved_by = fmax(moved_by, fabs(net_value(&r.out[0], i) - exact[i]));
    }
    /* The rounding of a number that lies between two codes may go either way. */
    const double step = is_obeyed ? 2.0 / 127 * (which ? range : 2) : 0;
    CHECK(worst <= 1e-5 * most + step * 1e-2);
    CHECK((moved_by > 1e-4 * most) == is_obeyed);
    net_result_free(&r);
    sinter_calibration_destroy(c);
    sinter_network_destroy(net);
}

static void layers_in_8_bits(void)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        in_8_bits(seed, 0, SINTER_PRECISION_OBEY, 0);
        in_8_bits(seed, 0, SINTER_PRECISION_OBEY, 1e-9);
        in_8_bits(seed, 1, SINTER_PRECISION_OBEY, 1e-9);
        in_8_bits(seed, 0, SINTER_PRECISION_PREFER, 1e-9);
    }
}

static void refused_8_bits(void)
{
    sinter_layer *layer[2];
    float *w[2];
    sinter_network *net = two_products(1, layer, w, "x");
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    sinter_buffer file = { 0 };
    sinter_calibration *c = NULL;
    sinter_layer *relu = sinter_network_tensor_producer(sinter_layer_input(layer[1], 0));
    CHECK_EQ(sinter_layer_set_precision(relu, SINTER_DTYPE_I8, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "convolution");
    CHECK_EQ(sinter_layer_set_precision(layer[1], SINTER_DTYPE_I8, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_name(layer[1], "second", &error), SINTER_OK);
    o.tune = SINTER_TUNE_OFF;
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_build(net, &o, &file, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "second");
    CHECK_HAS(error.text, "int8");
    CHECK_EQ(sinter_calibration_create(NULL, &c, &error), SINTER_OK);
    CHECK_EQ(sinter_calibration_set(c, "x", 1, &error), SINTER_OK);
    o.allow = SINTER_ALLOW_INT8;
    o.calibration = c;
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_build(net, &o, &file, &error), SINTER_UNSUPPORTED);
    CHECK_HAS(error.text, "second");
    CHECK_HAS(error.text, "no range");
    o.calibration = NULL;
    CHECK_EQ(sinter_network_build(net, &o, &file, &error), SINTER_OK);
    sinter_buffer_free(&file);
    sinter_calibration_destroy(c);
    sinter_network_destroy(net);
}

static void strongly_typed_networks(void)
{
    sinter_layer *layer;
    sinter_network *net = product(&layer);
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    sinter_buffer file = { 0 };
    CHECK_EQ(sinter_layer_set_precision(layer, SINTER_DTYPE_U8, &error), SINTER_INVALID_ARG);
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

/* Floats of several types in one layer: the widest; a strongly typed network refuses them. */
static void mixed_types(void)
{
    static const struct {
        sinter_dtype a, b, both;
    } row[] = { { SINTER_DTYPE_F16, SINTER_DTYPE_F32, SINTER_DTYPE_F32 },
                { SINTER_DTYPE_F16, SINTER_DTYPE_BF16, SINTER_DTYPE_F32 },
                { SINTER_DTYPE_BF16, SINTER_DTYPE_BF16, SINTER_DTYPE_BF16 },
                { SINTER_DTYPE_F32, SINTER_DTYPE_F64, SINTER_DTYPE_NONE } };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        for (uint32_t strong = 0; strong < 2; strong++) {
            sinter_network *net;
            sinter_network_shape shape = { 0 };
            CHECK_EQ(sinter_network_create(NULL, &net, &error), SINTER_OK);
            CHECK_EQ(sinter_network_set_strongly_typed(net, strong, &error), SINTER_OK);
            sinter_network_tensor *x =
                sinter_network_add_input(net, "x", row[i].a, 2, (int64_t[]){ 2, 3 }, NULL, &error);
            sinter_network_tensor *y =
                sinter_network_add_input(net, "y", row[i].b, 2, (int64_t[]){ 2, 3 }, NULL, &error);
            sinter_layer *l = sinter_add_elementwise(net, x, y, SINTER_ELEMENTWISE_SUM, &error);
            const bool is_good = row[i].a == row[i].b || (!strong && row[i].both != SINTER_DTYPE_NONE);
            CHECK_EQ(sinter_network_tensor_shape(sinter_layer_output(l, 0), &shape, &error),
                     is_good ? SINTER_OK : SINTER_INVALID_ARG);
            if (is_good) CHECK_EQ(shape.dtype, row[i].both);
            error = (sinter_error){ 0 };
            sinter_network_destroy(net);
        }
    }
}

static const test tests[] = { T(layers_that_stay),
                              T(layers_that_are_lowered),
                              T(layers_in_8_bits),
                              T(refused_8_bits),
                              T(strongly_typed_networks),
                              T(mixed_types),
                              { 0 } };
TEST_MAIN(tests)

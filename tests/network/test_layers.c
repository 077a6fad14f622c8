/* SPDX-License-Identifier: Apache-2.0 */
/* test_layers.c - single layers against values computed here, and what the network refuses. */
#include "layer_rig.h"

static void convolution(void)
{
    begin();
    float x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, w[] = { 1, 0, 0, 1 }, bias[] = { 10 };
    const sinter_weights kernel = { F32, 0, 4, w }, b = { F32, 0, 1, bias };
    sinter_layer *conv =
        sinter_add_convolution(net, input("x", 4, DIMS(1, 1, 3, 3)), 1, 2, DIMS(2, 2), &kernel, &b, &error);
    w[0] = 99; /* copied */
    sinter_network_shape shape;
    CHECK_EQ(sinter_network_tensor_shape(out(conv), &shape, &error), SINTER_OK);
    CHECK_EQ(shape.dim[2], 2);
    /* Parameters are set behind the question. */
    CHECK_EQ(sinter_layer_set_ints(conv, "stride", DIMS(2, 2), 2, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_ints(conv, "pre_padding", DIMS(1, 1), 2, &error), SINTER_OK);
    CHECK_EQ(sinter_network_tensor_shape(out(conv), &shape, &error), SINTER_OK);
    CHECK_EQ(shape.dim[2], 2);
    const net_data data = data_of("x", 4, DIMS(1, 1, 3, 3), x);
    EXPECT(out(conv), &data, 1, 4, DIMS(1, 1, 2, 2), 11, 13, 17, 24);
    end();
}

static void convolution_rounds_up(void)
{
    begin();
    float x[] = { 1, 2, 3, 4 }, w[] = { 1, 1 };
    const sinter_weights kernel = { F32, 0, 2, w };
    sinter_layer *conv =
        sinter_add_convolution(net, input("x", 3, DIMS(1, 1, 4)), 1, 1, DIMS(2), &kernel, NULL, &error);
    CHECK_EQ(sinter_layer_set_ints(conv, "stride", DIMS(3), 1, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_text(conv, "padding_mode", "explicit_round_up", &error), SINTER_OK);
    const net_data data = data_of("x", 3, DIMS(1, 1, 4), x);
    EXPECT(out(conv), &data, 1, 3, DIMS(1, 1, 2), 3, 4);
    end();
}

/* Zeros as before the axis lie behind it, too; a pool that would begin in those is none. */
static void pad_as_caffe(int is_pool, int64_t stride, const char *mode, int64_t count, const double *want)
{
    begin();
    float x[] = { 1, 2, 3, 4 }, w[] = { 1, 10, 100 };
    const sinter_weights kernel = { F32, 0, 3, w };
    sinter_network_tensor *in = input("x", 3, DIMS(1, 1, 4));
    sinter_layer *l = is_pool ? sinter_add_pooling(net, in, SINTER_POOLING_MAX, 1, DIMS(2), &error)
                              : sinter_add_convolution(net, in, 1, 1, DIMS(3), &kernel, NULL, &error);
    CHECK_EQ(sinter_layer_set_ints(l, "pre_padding", DIMS(1), 1, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_ints(l, "post_padding", DIMS(0), 1, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_ints(l, "stride", &stride, 1, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_text(l, "padding_mode", mode, &error), SINTER_OK);
    const net_data data = data_of("x", 3, DIMS(1, 1, 4), x);
    expect_at(out(l), &data, 1, 3, DIMS(1, 1, count), want, 0, __LINE__);
    end();
}

static void paddings_of_caffe(void)
{
    const double conv[] = { 210, 432, 4 }, pool[] = { 1, 4 };
    pad_as_caffe(0, 2, "caffe_round_down", 2, conv);
    pad_as_caffe(0, 2, "caffe_round_up", 3, conv);
    pad_as_caffe(1, 5, "caffe_round_down", 1, pool);
    pad_as_caffe(1, 5, "caffe_round_up", 1, pool);
    pad_as_caffe(1, 3, "caffe_round_up", 2, pool);
}

static void deconvolution(void)
{
    begin();
    float x[] = { 1, 2 }, w[] = { 1, 10, 100 };
    const sinter_weights kernel = { F32, 0, 3, w };
    sinter_layer *l = sinter_add_deconvolution(net, input("x", 3, DIMS(1, 1, 2)), 1, 1, DIMS(3), &kernel, NULL, &error);
    CHECK_EQ(sinter_layer_set_ints(l, "stride", DIMS(2), 1, &error), SINTER_OK);
    const net_data data = data_of("x", 3, DIMS(1, 1, 2), x);
    EXPECT(out(l), &data, 1, 3, DIMS(1, 1, 5), 1, 10, 102, 20, 200);
    CHECK_EQ(sinter_layer_set_text(l, "padding_mode", "explicit_round_up", &error), SINTER_OK);
    EXPECT(NULL, &data, 1, 3, DIMS(1, 1, 5), 1, 10, 102, 20, 200);
    end();
}

static void kernel_as_input(void)
{
    begin();
    float x[] = { 1, 2, 3 }, w[] = { 2, 1 };
    sinter_layer *l = sinter_add_convolution(net, input("x", 3, DIMS(1, 1, 3)), 1, 1, DIMS(2), NULL, NULL, &error);
    sinter_network_shape shape;
    CHECK_EQ(sinter_network_tensor_shape(out(l), &shape, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "there is no kernel");
    CHECK_EQ(sinter_layer_set_input(l, 1, input("w", 3, DIMS(1, 1, 2)), &error), SINTER_OK);
    const net_data data[] = { data_of("x", 3, DIMS(1, 1, 3), x), data_of("w", 3, DIMS(1, 1, 2), w) };
    EXPECT(out(l), data, 2, 3, DIMS(1, 1, 2), 4, 7);
    end();
}

static void pooling(void)
{
    for (int type = 0; type < 3; type++) {
        begin();
        float x[] = { 1, 3, 5, 8 };
        sinter_layer *l =
            sinter_add_pooling(net, input("x", 3, DIMS(1, 1, 4)), (sinter_pooling)type, 1, DIMS(2), &error);
        CHECK_EQ(sinter_layer_set_ints(l, "stride", DIMS(2), 1, &error), SINTER_OK);
        CHECK_EQ(sinter_layer_set_real(l, "blend_factor", 0.25, &error), SINTER_OK);
        const net_data data = data_of("x", 3, DIMS(1, 1, 4), x);
        if (type == 0) EXPECT(out(l), &data, 1, 3, DIMS(1, 1, 2), 3, 8);
        if (type == 1) EXPECT(out(l), &data, 1, 3, DIMS(1, 1, 2), 2, 6.5);
        if (type == 2) EXPECT(out(l), &data, 1, 3, DIMS(1, 1, 2), 2.75, 7.625);
        end();
    }
}

static double activated(int type, double x)
{
    switch (type) {
    case SINTER_ACTIVATION_RELU: return x > 0 ? x : 0;
    case SINTER_ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
    case SINTER_ACTIVATION_TANH: return tanh(x);
    case SINTER_ACTIVATION_LEAKY_RELU: return x > 0 ? x : 0.5 * x;
    case SINTER_ACTIVATION_ELU: return x > 0 ? x : 0.5 * (exp(x) - 1);
    case SINTER_ACTIVATION_SELU: return 0.75 * (x > 0 ? x : 0.5 * exp(x) - 0.5);
    case SINTER_ACTIVATION_SOFTSIGN: return x / (1 + fabs(x));
    case SINTER_ACTIVATION_SOFTPLUS: return 0.5 * log(exp(0.75 * x) + 1);
    case SINTER_ACTIVATION_CLIP: return fmax(0.5, fmin(x, 0.75));
    case SINTER_ACTIVATION_HARD_SIGMOID: return fmax(0, fmin(1, 0.5 * x + 0.75));
    case SINTER_ACTIVATION_SCALED_TANH: return 0.5 * tanh(0.75 * x);
    case SINTER_ACTIVATION_THRESHOLDED_RELU: return x > 0.5 ? x : 0;
    case SINTER_ACTIVATION_GELU_ERF: return 0.5 * x * (1 + erf(x / sqrt(2)));
    default: return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    }
}

static void activations(void)
{
    float x[] = { -2, -0.25f, 0, 0.6f, 3 };
    for (int type = 0; type < 14; type++) {
        begin();
        double want[5];
        for (int i = 0; i < 5; i++) want[i] = activated(type, (double)x[i]);
        sinter_layer *l = sinter_add_activation(net, input("x", 1, DIMS(5)), (sinter_activation)type, &error);
        CHECK_EQ(sinter_layer_set_real(l, "alpha", 0.5, &error), SINTER_OK);
        CHECK_EQ(sinter_layer_set_real(l, "beta", 0.75, &error), SINTER_OK);
        const net_data data = data_of("x", 1, DIMS(5), x);
        expect_at(out(l), &data, 1, 1, DIMS(5), want, 1e-5, __LINE__);
        end();
    }
}

static double operated(int op, double a, double b)
{
    const double v[] = { a + b, a * b, fmax(a, b), fmin(a, b), a - b, a / b, pow(a, b), floor(a / b) };
    return v[op];
}

static void elementwise(void)
{
    float x[] = { 1, 2.5f, 3, 7 }, y[] = { 2, 0.5f };
    for (int op = 0; op < 14; op++) {
        begin();
        tensor a = input("x", 2, DIMS(2, 2)), b = input("y", 2, DIMS(1, 2));
        const bool is_logic = op >= SINTER_ELEMENTWISE_AND && op <= SINTER_ELEMENTWISE_XOR;
        if (is_logic) {
            a = out(sinter_add_elementwise(net, a, b, SINTER_ELEMENTWISE_GREATER, &error));
            b = out(sinter_add_cast(net, b, SINTER_DTYPE_BOOL, &error));
        }
        double want[4];
        for (int i = 0; i < 4; i++) {
            const double p = (double)x[i], q = (double)y[i % 2];
            const bool g = p > q;
            want[i] = op < 8                             ? operated(op, p, q)
                      : op == SINTER_ELEMENTWISE_AND     ? g
                      : op == SINTER_ELEMENTWISE_OR      ? 1
                      : op == SINTER_ELEMENTWISE_XOR     ? !g
                      : op == SINTER_ELEMENTWISE_EQUAL   ? p == q
                      : op == SINTER_ELEMENTWISE_GREATER ? p > q
                                                         : p < q;
        }
        const net_data data[] = { data_of("x", 2, DIMS(2, 2), x), data_of("y", 2, DIMS(1, 2), y) };
        expect_at(out(sinter_add_elementwise(net, a, b, (sinter_elementwise)op, &error)), data, 2, 2, DIMS(2, 2), want,
                  1e-4, __LINE__);
        end();
    }
}

static void floor_division_of_integers(void)
{
    begin();
    const int64_t a[] = { 7, -7, 7, -7, 6 }, b[] = { 2, 2, -2, -2, -3 };
    tensor x = constant(I64, 1, DIMS(5), a), y = constant(I64, 1, DIMS(5), b);
    EXPECT(out(sinter_add_elementwise(net, x, y, SINTER_ELEMENTWISE_FLOOR_DIV, &error)), NULL, 0, 1, DIMS(5), 3, -4, -4,
           3, -2);
    end();
}

static void unary(void)
{
    static double (*const f[])(double) = { exp,  log,  sqrt, NULL, fabs,  NULL,  sin,   cos,  tan,   sinh,
                                           cosh, asin, acos, atan, asinh, acosh, atanh, ceil, floor, erf };
    for (int op = 0; op < 25; op++) {
        if (op == SINTER_UNARY_NOT) continue;
        begin();
        float x[] = { 0.25f, 0.5f, 0.75f };
        if (op == SINTER_UNARY_ACOSH) x[0] = 1.5f, x[1] = 2, x[2] = 3;
        double want[3];
        for (int i = 0; i < 3; i++) {
            const double p = (double)x[i];
            want[i] = op == SINTER_UNARY_RECIP   ? 1 / p
                      : op == SINTER_UNARY_NEG   ? -p
                      : op == SINTER_UNARY_SIGN  ? 1
                      : op == SINTER_UNARY_ROUND ? nearbyint(p)
                      : op >= SINTER_UNARY_ISINF ? 0
                                                 : f[op](p);
        }
        const net_data data = data_of("x", 1, DIMS(3), x);
        expect_at(out(sinter_add_unary(net, input("x", 1, DIMS(3)), (sinter_unary)op, &error)), &data, 1, 1, DIMS(3),
                  want, 1e-4, __LINE__);
        end();
    }
}

static void products(void)
{
    float a[] = { 1, 2, 3, 4, 5, 6 }, b[] = { 1, 0, 2, 1, 0, 1 }, v[] = { 1, 10, 100 };
    begin();
    const net_data data[] = { data_of("a", 2, DIMS(2, 3), a), data_of("b", 2, DIMS(2, 3), b) };
    EXPECT(out(sinter_add_matrix_multiply(net, input("a", 2, DIMS(2, 3)), SINTER_MATRIX_NONE, input("b", 2, DIMS(2, 3)),
                                          SINTER_MATRIX_TRANSPOSE, &error)),
           data, 2, 2, DIMS(2, 2), 7, 4, 16, 10);
    end();
    begin();
    const net_data two[] = { data_of("a", 2, DIMS(2, 3), a), data_of("v", 1, DIMS(3), v) };
    EXPECT(out(sinter_add_matrix_multiply(net, input("a", 2, DIMS(2, 3)), SINTER_MATRIX_NONE, input("v", 1, DIMS(3)),
                                          SINTER_MATRIX_VECTOR, &error)),
           two, 2, 1, DIMS(2), 321, 654);
    end();
    begin();
    EXPECT(out(sinter_add_matrix_multiply(net, input("v", 1, DIMS(3)), SINTER_MATRIX_VECTOR, input("a", 2, DIMS(2, 3)),
                                          SINTER_MATRIX_TRANSPOSE, &error)),
           two, 2, 1, DIMS(2), 321, 654);
    end();
    begin();
    const net_data one = data_of("v", 1, DIMS(3), v);
    tensor x = input("v", 1, DIMS(3));
    EXPECT(out(sinter_add_matrix_multiply(net, x, SINTER_MATRIX_VECTOR, x, SINTER_MATRIX_VECTOR, &error)), &one, 1, 0,
           NULL, 10101);
    end();
}

static void reductions(void)
{
    static const double want[5][2] = { { 6, 15 }, { 6, 120 }, { 3, 6 }, { 1, 4 }, { 2, 5 } };
    float x[] = { 1, 2, 3, 4, 5, 6 };
    const net_data data = data_of("x", 2, DIMS(2, 3), x);
    for (int op = 0; op < 5; op++) {
        begin();
        expect_at(out(sinter_add_reduce(net, input("x", 2, DIMS(2, 3)), (sinter_reduction)op, 2, 0, &error)), &data, 1,
                  1, DIMS(2), want[op], 1e-5, __LINE__);
        end();
    }
}

static void softmax(void)
{
    float x[] = { 0, 0, 0, 0 };
    const net_data data = data_of("x", 2, DIMS(2, 2), x);
    begin();
    EXPECT(out(sinter_add_softmax(net, input("x", 2, DIMS(2, 2)), 2, &error)), &data, 1, 2, DIMS(2, 2), .5, .5, .5, .5);
    end();
    begin();
    EXPECT(out(sinter_add_softmax(net, input("x", 2, DIMS(2, 2)), 3, &error)), &data, 1, 2, DIMS(2, 2), .25, .25, .25,
           .25);
    end();
}

static void moves(void)
{
    float x[] = { 1, 2, 3, 4, 5, 6 };
    const net_data data = data_of("x", 2, DIMS(2, 3), x);
    begin();
    tensor t = input("x", 2, DIMS(2, 3));
    EXPECT(out(sinter_add_concatenation(net, (tensor[]){ t, t }, 2, 0, &error)), &data, 1, 2, DIMS(4, 3), 1, 2, 3, 4, 5,
           6, 1, 2, 3, 4, 5, 6);
    end();
    begin();
    sinter_layer *l = sinter_add_shuffle(net, input("x", 2, DIMS(2, 3)), &error);
    CHECK_EQ(sinter_layer_set_ints(l, "first_transpose", DIMS(1, 0), 2, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_ints(l, "reshape", DIMS(1, -1, 2), 3, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_ints(l, "second_transpose", DIMS(2, 1, 0), 3, &error), SINTER_OK);
    EXPECT(out(l), &data, 1, 3, DIMS(2, 3, 1), 1, 2, 3, 4, 5, 6);
    end();
    begin();
    EXPECT(out(sinter_add_padding(net, input("x", 2, DIMS(2, 3)), 2, DIMS(0, 1), DIMS(-1, 0), &error)), &data, 1, 2,
           DIMS(1, 4), 0, 1, 2, 3);
    end();
    begin();
    EXPECT(out(sinter_add_shape(net, input("x", 2, DIMS(2, 3)), &error)), NULL, 0, 1, DIMS(2), 2, 3);
    end();
}

static void slices(void)
{
    static const double want[5][5] = {
        { 2, 3, 4 }, { 4, 1, 2, 3, 4 }, { 1, 1, 2, 3, 4 }, { 0, 1, 2, 3, 4 }, { 2, 1, 2, 3, 4 }
    };
    float x[] = { 1, 2, 3, 4 };
    const net_data data = data_of("x", 1, DIMS(4), x);
    for (int mode = 0; mode < 5; mode++) {
        begin();
        const bool strict = mode == SINTER_SAMPLE_STRICT_BOUNDS;
        sinter_layer *l = sinter_add_slice(net, input("x", 1, DIMS(4)), 1, DIMS(strict ? 1 : -1), DIMS(strict ? 3 : 5),
                                           DIMS(1), &error);
        CHECK_EQ(sinter_layer_set_int(l, "mode", mode, &error), SINTER_OK);
        expect_at(out(l), &data, 1, 1, DIMS(strict ? 3 : 5), want[mode], 1e-6, __LINE__);
        end();
    }
    begin();
    EXPECT(out(sinter_add_slice(net, input("x", 1, DIMS(4)), 1, DIMS(3), DIMS(2), DIMS(-2), &error)), &data, 1, 1,
           DIMS(2), 4, 2);
    end();
    begin(); /* stride 0 repeats an element */
    EXPECT(out(sinter_add_slice(net, input("x", 1, DIMS(4)), 1, DIMS(2), DIMS(3), DIMS(0), &error)), &data, 1, 1,
           DIMS(3), 3, 3, 3);
    end();
    begin();
    sinter_network_shape shape;
    tensor t = out(sinter_add_slice(net, input("x", 1, DIMS(4)), 1, DIMS(3), DIMS(2), DIMS(1), &error));
    CHECK_EQ(sinter_network_tensor_shape(t, &shape, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "axis 0 of size 4 is sliced from 3");
    end();
}

static void gathers(void)
{
    float x[] = { 1, 2, 3, 4, 5, 6 };
    const int64_t row[] = { 1, 0 }, column[] = { 2, 0 };
    const net_data data = data_of("x", 2, DIMS(2, 3), x);
    begin();
    EXPECT(out(sinter_add_gather(net, input("x", 2, DIMS(2, 3)), constant(I64, 1, DIMS(2), row), SINTER_GATHER_DEFAULT,
                                 0, &error)),
           &data, 1, 2, DIMS(2, 3), 4, 5, 6, 1, 2, 3);
    end();
    begin();
    EXPECT(out(sinter_add_gather(net, input("x", 2, DIMS(2, 3)), constant(I64, 2, DIMS(2, 1), column),
                                 SINTER_GATHER_ELEMENT, 1, &error)),
           &data, 1, 2, DIMS(2, 1), 3, 4);
    end();
    begin();
    EXPECT(out(sinter_add_gather(net, input("x", 2, DIMS(2, 3)), constant(I64, 2, DIMS(1, 2), row), SINTER_GATHER_ND, 0,
                                 &error)),
           &data, 1, 1, DIMS(1), 4);
    end();
}

static void gather_with_shared_axes(void)
{
    float x[12];
    for (int i = 0; i < 12; i++) x[i] = (float)i;
    const int64_t at[] = { 2, 0, 1, 1 };
    const net_data data = data_of("x", 3, DIMS(2, 2, 3), x);
    begin();
    sinter_layer *l = sinter_add_gather(net, input("x", 3, DIMS(2, 2, 3)), constant(I64, 2, DIMS(2, 2), at),
                                        SINTER_GATHER_DEFAULT, 2, &error);
    CHECK_EQ(sinter_layer_set_int(l, "num_elementwise_dims", 1, &error), SINTER_OK);
    EXPECT(out(l), &data, 1, 3, DIMS(2, 2, 2), 2, 0, 5, 3, 7, 7, 10, 10);
    end();
}

static void topk(void)
{
    float x[] = { 3, 1, 4, 1.5f };
    const net_data data = data_of("x", 1, DIMS(4), x);
    begin();
    sinter_layer *l = sinter_add_topk(net, input("x", 1, DIMS(4)), SINTER_TOPK_MAX, 2, 1, SINTER_DTYPE_I32, &error);
    EXPECT(out(l), &data, 1, 1, DIMS(2), 4, 3);
    end();
    begin();
    l = sinter_add_topk(net, input("x", 1, DIMS(4)), SINTER_TOPK_MIN, 2, 1, SINTER_DTYPE_I64, &error);
    EXPECT(sinter_layer_output(l, 1), &data, 1, 1, DIMS(2), 1, 3);
    end();
}

static void resizes(void)
{
    float x[] = { 1, 3 };
    const net_data data = data_of("x", 3, DIMS(1, 1, 2), x);
    begin();
    sinter_layer *l = sinter_add_resize(net, input("x", 3, DIMS(1, 1, 2)), &error);
    CHECK_EQ(sinter_layer_set_ints(l, "size", DIMS(1, 1, 3), 3, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_text(l, "mode", "linear", &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_text(l, "coordinate_transformation", "align_corners", &error), SINTER_OK);
    EXPECT(out(l), &data, 1, 3, DIMS(1, 1, 3), 1, 2, 3);
    end();
    begin();
    l = sinter_add_resize(net, input("x", 3, DIMS(1, 1, 2)), &error);
    CHECK_EQ(sinter_layer_set_reals(l, "scales", (double[]){ 1, 1, 2 }, 3, &error), SINTER_OK);
    EXPECT(out(l), &data, 1, 3, DIMS(1, 1, 4), 1, 1, 3, 3);
    end();
}

static void scales(void)
{
    float x[] = { 1, 2, 3, 4 }, k[] = { 2, 3 }, s[] = { 1 }, p[] = { 2 };
    const net_data data = data_of("x", 3, DIMS(1, 2, 2), x);
    const sinter_weights scale = { F32, 0, 2, k }, shift = { F32, 0, 1, s }, power = { F32, 0, 1, p };
    begin();
    EXPECT(
        out(sinter_add_scale(net, input("x", 3, DIMS(1, 2, 2)), SINTER_SCALE_CHANNEL, NULL, &scale, NULL, 1, &error)),
        &data, 1, 3, DIMS(1, 2, 2), 2, 4, 9, 12);
    end();
    begin();
    EXPECT(
        out(sinter_add_scale(net, input("x", 3, DIMS(1, 2, 2)), SINTER_SCALE_UNIFORM, &shift, NULL, &power, 1, &error)),
        &data, 1, 3, DIMS(1, 2, 2), 4, 9, 16, 25);
    end();
}

static void normalizations(void)
{
    float x[] = { 1, 3, 2, 6 }, two[] = { 2, 2 }, one[] = { 1, 1 };
    const net_data data = data_of("x", 3, DIMS(1, 2, 2), x);
    for (int mask = 4; mask <= 6; mask += 2) {
        for (int form = 0; form < 2; form++) {
            begin();
            const int64_t *d = form ? DIMS(1, 2, 1) : DIMS(1, 1, 2);
            tensor scale = constant(F32, 3, d, two), bias = constant(F32, 3, d, one);
            sinter_layer *l =
                sinter_add_normalization(net, input("x", 3, DIMS(1, 2, 2)), scale, bias, (uint32_t)mask, &error);
            CHECK_EQ(sinter_layer_set_real(l, "epsilon", 0, &error), SINTER_OK);
            const double q = sqrt(3.5);
            if (mask == 4) EXPECT(out(l), &data, 1, 3, DIMS(1, 2, 2), -1, 3, -1, 3);
            else EXPECT(out(l), &data, 1, 3, DIMS(1, 2, 2), 1 - 4 / q, 1, 1 - 2 / q, 1 + 6 / q);
            end();
        }
    }
}

static void types(void)
{
    float x[] = { 1.5f, -2.5f };
    const net_data data = data_of("x", 1, DIMS(2), x);
    begin();
    tensor t = input("x", 1, DIMS(2));
    sinter_layer *l = sinter_add_identity(net, t, &error);
    CHECK_EQ(sinter_layer_set_output_type(l, 0, SINTER_DTYPE_I32, &error), SINTER_OK);
    sinter_network_shape shape;
    CHECK_EQ(sinter_network_tensor_shape(out(l), &shape, &error), SINTER_OK);
    CHECK_EQ(shape.dtype, SINTER_DTYPE_I32);
    EXPECT(out(l), &data, 1, 1, DIMS(2), 1, -2);
    end();
    begin();
    t = input("x", 1, DIMS(2));
    tensor above = out(sinter_add_elementwise(net, t, out(sinter_add_unary(net, t, SINTER_UNARY_NEG, &error)),
                                              SINTER_ELEMENTWISE_GREATER, &error));
    EXPECT(out(sinter_add_select(net, above, t, out(sinter_add_unary(net, t, SINTER_UNARY_ABS, &error)), &error)),
           &data, 1, 1, DIMS(2), 1.5, 2.5);
    end();
}

/* Free sizes: names, profiles, and values that follow from shapes. */
static void free_sizes(void)
{
    begin();
    const char *const names[] = { "N", NULL };
    tensor x = sinter_network_add_input(net, "x", F32, 2, DIMS(-1, 3), names, &error);
    tensor y = sinter_network_add_input(net, "y", F32, 2, DIMS(-1, 3), names, &error);
    tensor sum = out(sinter_add_elementwise(net, x, y, SINTER_ELEMENTWISE_SUM, &error));
    tensor both = out(sinter_add_concatenation(net, (tensor[]){ sum, x }, 2, 0, &error));
    sinter_network_shape shape;
    CHECK_EQ(sinter_network_tensor_shape(both, &shape, &error), SINTER_OK);
    CHECK_EQ(shape.dim[0], -1);
    CHECK_STR(shape.dim_name[0], "2*N");
    CHECK_EQ(shape.dim[1], 3);
    int64_t values[2] = { 0 };
    CHECK_EQ(sinter_network_tensor_values(out(sinter_add_shape(net, both, &error)), values, 2, &error), SINTER_OK);
    CHECK_EQ(values[0], -1);
    CHECK_EQ(values[1], 3);
    CHECK_EQ(sinter_network_mark_output(net, both, &error), SINTER_OK);
    CHECK_EQ(sinter_network_mark_shape_output(net, both, 1, &error), SINTER_OK);
    CHECK_EQ(sinter_network_mark_debug(net, sum, 1, &error), SINTER_OK);
    const sinter_shape_range range[] = { { "x", 2, { 1, 3 }, { 2, 3 }, { 4, 3 } },
                                         { "y", 2, { 1, 3 }, { 2, 3 }, { 4, 3 } } };
    const sinter_profile profile = { range, 2 };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.profile = &profile;
    o.profile_count = 1;
    net_result a, b;
    CHECK_EQ(net_run(net, &o, "cpu", NULL, 0, 7, &a, &error), SINTER_OK);
    CHECK_EQ(net_run(net, &o, "reference", NULL, 0, 7, &b, &error), SINTER_OK);
    char why[256];
    CHECK_EQ(a.count, 3);
    CHECK_STR(a.name[1], "concatenation_1.0.shape");
    CHECK_EQ_F(net_value(&a.out[1], 0), 4);
    CHECK(net_difference(&a, &b, why) == 0);
    net_result_free(&a);
    net_result_free(&b);
    end();
}

/* A sum that is used for each element is in memory. What it is the sum of is not. */
static void unfused(void)
{
    begin();
    tensor x = input("x", 2, DIMS(2, 3)),
           square = out(sinter_add_elementwise(net, x, x, SINTER_ELEMENTWISE_PROD, &error));
    tensor sum = out(sinter_add_reduce(net, square, SINTER_REDUCTION_SUM, 2, 1, &error));
    tensor y = out(sinter_add_elementwise(net, sum, x, SINTER_ELEMENTWISE_PROD, &error));
    CHECK_EQ(sinter_network_mark_output(net, y, &error), SINTER_OK);
    sinter_buffer bytes = { 0 };
    sinter_engine *engine = NULL;
    CHECK_EQ(sinter_network_set_name(net, "sums", &error), SINTER_OK);
    CHECK_EQ(sinter_network_build(net, NULL, &bytes, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_load_memory(bytes.data, bytes.size, NULL, &engine, &error), SINTER_OK);
    CHECK_STR(sinter_engine_name(engine), sinter_network_name(net));
    CHECK_STR(sinter_engine_name(NULL), "");
    tensor found[1] = { NULL };
    uint32_t count = 0;
    CHECK_EQ(sinter_network_unfused(net, engine, found, 1, &count, &error), SINTER_OK);
    CHECK_EQ(count, 1);
    CHECK(found[0] == sum);
    CHECK_EQ(sinter_network_mark_debug(net, sum, 1, &error), SINTER_OK);
    CHECK_EQ(sinter_network_unfused(net, engine, NULL, 0, &count, &error), SINTER_OK);
    CHECK_EQ(count, 0);
    CHECK_EQ(sinter_network_unfused(net, NULL, NULL, 0, &count, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_network_unfused(net, engine, NULL, 1, &count, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_network_unfused(NULL, engine, NULL, 0, &count, &error), SINTER_INVALID_ARG);
    sinter_engine_release(engine);
    sinter_buffer_free(&bytes);
    end();
}

/* ---- what is refused ---- */

#define REFUSED(call, part)                                                                                            \
    do {                                                                                                               \
        error = (sinter_error){ 0 };                                                                                   \
        CHECK(!(call));                                                                                                \
        CHECK_HAS(error.text, part);                                                                                   \
    } while (0)
#define BAD(call, part)                                                                                                \
    do {                                                                                                               \
        error = (sinter_error){ 0 };                                                                                   \
        CHECK_EQ((call), SINTER_INVALID_ARG);                                                                          \
        CHECK_HAS(error.text, part);                                                                                   \
    } while (0)

static void refuses_handles(void)
{
    sinter_network *other = NULL;
    begin();
    CHECK_EQ(sinter_network_create(NULL, &other, &error), SINTER_OK);
    tensor x = input("x", 1, DIMS(2)), far = sinter_network_add_input(other, "x", F32, 1, DIMS(2), NULL, &error);
    REFUSED(sinter_add_unary(net, NULL, SINTER_UNARY_ABS, &error), "is NULL");
    REFUSED(sinter_add_unary(net, far, SINTER_UNARY_ABS, &error), "of another network");
    REFUSED(sinter_add_unary(NULL, x, SINTER_UNARY_ABS, &error), "is NULL");
    REFUSED(sinter_add_unary(net, x, (sinter_unary)25, &error), "wanted is one of exp|log");
    REFUSED(sinter_add_concatenation(net, NULL, 2, 0, &error), "is NULL");
    REFUSED(sinter_add_concatenation(net, &x, 0, 0, &error), "0 inputs");
    REFUSED(sinter_network_add(net, SINTER_LAYER_RECURRENCE, &x, 1, &error), "is made by sinter_loop_add_recurrence");
    REFUSED(sinter_network_add(net, (sinter_layer_kind)77, &x, 1, &error), "is no kind");
    REFUSED(sinter_network_add_input(net, "x", F32, 1, DIMS(2), NULL, &error), "another input");
    REFUSED(sinter_network_add_input(net, NULL, F32, 1, DIMS(2), NULL, &error), "is NULL");
    REFUSED(sinter_network_add_input(net, "y", F32, 17, DIMS(2), NULL, &error), "rank 17");
    REFUSED(sinter_network_add_input(net, "y", F32, 1, DIMS(-2), NULL, &error), "size -2");
    REFUSED(sinter_network_add_input(net, "y", (sinter_dtype)99, 1, DIMS(2), NULL, &error), "no type");
    BAD(sinter_network_mark_output(net, far, &error), "of another network");
    BAD(sinter_network_mark_output(net, NULL, &error), "is NULL");
    BAD(sinter_network_unmark_output(net, x, &error), "is not an output");
    CHECK_EQ(sinter_network_layer_count(net), 0);
    sinter_network_destroy(other);
    end();
}

static void refuses_changes(void)
{
    begin();
    tensor x = input("x", 1, DIMS(2));
    sinter_layer *a = sinter_add_unary(net, x, SINTER_UNARY_ABS, &error),
                 *b = sinter_add_unary(net, out(a), SINTER_UNARY_NEG, &error);
    BAD(sinter_layer_set_int(a, "nothing", 1, &error), "has no parameter 'nothing'");
    BAD(sinter_layer_set_int(a, NULL, 1, &error), "is NULL");
    BAD(sinter_layer_set_ints(a, "op", DIMS(1), 1, &error), "is no list");
    BAD(sinter_layer_set_input(a, 1, x, &error), "at most 1");
    BAD(sinter_layer_set_input(a, 0, NULL, &error), "is NULL");
    BAD(sinter_network_remove_layer(net, a, &error), "is read by another layer");
    BAD(sinter_network_remove_input(net, x, &error), "a layer reads it");
    BAD(sinter_network_tensor_set_type(out(a), F32, &error), "is no input");
    CHECK_EQ(sinter_network_mark_output(net, out(b), &error), SINTER_OK);
    BAD(sinter_network_mark_output(net, out(b), &error), "already an output");
    BAD(sinter_network_remove_layer(net, b, &error), "is an output");
    BAD(sinter_network_tensor_set_name(out(b), "x", &error), "another input");
    /* A cycle. */
    CHECK_EQ(sinter_layer_set_input(a, 0, out(b), &error), SINTER_OK);
    sinter_network_shape shape;
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_tensor_shape(out(b), &shape, &error), SINTER_INVALID_MODEL);
    CHECK_HAS(error.text, "depend on each other");
    CHECK_EQ(sinter_layer_set_input(a, 0, x, &error), SINTER_OK);
    CHECK_EQ(sinter_network_unmark_output(net, out(b), &error), SINTER_OK);
    CHECK_EQ(sinter_network_remove_layer(net, b, &error), SINTER_OK);
    BAD(sinter_layer_set_int(b, "op", 1, &error), "was removed");
    BAD(sinter_network_mark_output(net, sinter_layer_output(b, 0), &error), "was removed");
    CHECK_EQ(sinter_network_remove_layer(net, a, &error), SINTER_OK);
    CHECK_EQ(sinter_network_remove_input(net, x, &error), SINTER_OK);
    CHECK_EQ(sinter_network_layer_count(net), 0);
    end();
}

/* A build says everything that is wrong. */
static void refuses_builds(void)
{
    sinter_buffer file = { 0 };
    begin();
    tensor x = input("x", 2, DIMS(2, 3)), y = input("y", 1, DIMS(4));
    CHECK_EQ(sinter_network_build(net, NULL, &file, &error), SINTER_INVALID_MODEL);
    CHECK_HAS(error.text, "no outputs");
    sinter_layer *first = sinter_add_elementwise(net, x, y, SINTER_ELEMENTWISE_SUM, &error);
    sinter_layer *second = sinter_add_reduce(net, x, SINTER_REDUCTION_SUM, 8, 0, &error);
    sinter_layer *third = sinter_add_unary(net, out(first), SINTER_UNARY_ABS, &error);
    CHECK_EQ(sinter_layer_set_name(first, "first", &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_name(second, "second", &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_name(third, "third", &error), SINTER_OK);
    CHECK_EQ(sinter_network_mark_output(net, out(third), &error), SINTER_OK);
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_build(net, NULL, &file, &error), SINTER_INVALID_MODEL);
    CHECK_HAS(error.text, "2 things");
    CHECK_HAS(error.text, "layer 'first' (elementwise)");
    CHECK_HAS(error.text, "layer 'second' (reduce)");
    CHECK(!strstr(error.text, "third"));
    end();
}

static void rewires(void)
{
    begin();
    float x[] = { 1, -2 };
    tensor t = input("x", 1, DIMS(2));
    sinter_layer *a = sinter_add_unary(net, t, SINTER_UNARY_ABS, &error);
    sinter_layer *b = sinter_add_unary(net, out(a), SINTER_UNARY_NEG, &error);
    sinter_layer *c = sinter_add_activation(net, t, SINTER_ACTIVATION_RELU, &error);
    CHECK_EQ(sinter_layer_set_input(b, 0, out(c), &error), SINTER_OK); /* of a layer behind it */
    CHECK_EQ(sinter_network_remove_layer(net, a, &error), SINTER_OK);
    CHECK_EQ(sinter_network_layer_count(net), 2);
    CHECK_EQ(sinter_network_tensor_set_name(out(b), "result", &error), SINTER_OK);
    CHECK(sinter_network_find_tensor(net, "result") == out(b));
    CHECK(sinter_network_find_layer(net, sinter_layer_name(c)) == c);
    const net_data data = data_of("x", 1, DIMS(2), x);
    EXPECT(out(b), &data, 1, 1, DIMS(2), -1, 0);
    end();
}

/* The table: kinds have names, and defaults can be read and set again. */
static void table_of_kinds(void)
{
    uint32_t kinds = 0;
    for (int kind = 0; kind < 128; kind++) {
        if (!*sinter_layer_kind_name((sinter_layer_kind)kind)) continue;
        kinds++;
        for (uint32_t i = 0; i < 64; i++) {
            const sinter_param *p = sinter_layer_kind_param((sinter_layer_kind)kind, i);
            if (!p) break;
            CHECK(p->name && *p->text);
            CHECK((p->kind == SINTER_PARAM_CHOICE) == (p->words != NULL));
        }
    }
    CHECK(kinds > 50);
    begin();
    sinter_layer *l = sinter_add_activation(net, input("x", 1, DIMS(2)), SINTER_ACTIVATION_ELU, &error);
    const char *word = NULL;
    int64_t number = -1;
    CHECK_EQ(sinter_layer_get_text(l, "type", &word, &error), SINTER_OK);
    CHECK_STR(word, "elu");
    CHECK_EQ(sinter_layer_set_text(l, "type", "gelu_tanh", &error), SINTER_OK);
    CHECK_EQ(sinter_layer_get_int(l, "type", &number, &error), SINTER_OK);
    CHECK_EQ(number, SINTER_ACTIVATION_GELU_TANH);
    BAD(sinter_layer_set_text(l, "type", "gelu_", &error), "wanted is one of relu|");
    end();
}

static const test tests[] = { T(convolution),
                              T(convolution_rounds_up),
                              T(paddings_of_caffe),
                              T(deconvolution),
                              T(kernel_as_input),
                              T(pooling),
                              T(activations),
                              T(elementwise),
                              T(floor_division_of_integers),
                              T(unary),
                              T(products),
                              T(reductions),
                              T(softmax),
                              T(moves),
                              T(slices),
                              T(gathers),
                              T(gather_with_shared_axes),
                              T(topk),
                              T(resizes),
                              T(scales),
                              T(normalizations),
                              T(types),
                              T(free_sizes),
                              T(unfused),
                              T(unfused),
                              T(refuses_handles),
                              T(refuses_changes),
                              T(refuses_builds),
                              T(rewires),
                              T(table_of_kinds),
                              { 0 } };
TEST_MAIN(tests)

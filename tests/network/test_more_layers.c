/* SPDX-License-Identifier: Apache-2.0 */
/* test_more_layers.c - indices, quantisation, attention, loops and conditionals, against values computed here. */
#include "layer_rig.h"

static float six[] = { 1, 2, 3, 4, 5, 6 };

static void one_operator_layers(void)
{
    const net_data data = data_of("x", 2, DIMS(2, 3), six);
    float slope[] = { 0.5f };
    begin();
    tensor x = input("x", 2, DIMS(2, 3)), neg = out(sinter_add_unary(net, x, SINTER_UNARY_NEG, &error));
    EXPECT(out(sinter_add_parametric_relu(net, neg, constant(F32, 2, DIMS(1, 1), slope), &error)), &data, 1, 2,
           DIMS(2, 3), -.5, -1, -1.5, -2, -2.5, -3);
    end();
    begin();
    EXPECT(out(sinter_add_cumulative(net, input("x", 2, DIMS(2, 3)), number(1), SINTER_CUMULATIVE_SUM, 0, 1, &error)),
           &data, 1, 2, DIMS(2, 3), 6, 5, 3, 15, 11, 6);
    end();
    begin();
    EXPECT(out(sinter_add_cumulative(net, input("x", 2, DIMS(2, 3)), number(0), SINTER_CUMULATIVE_PROD, 0, 0, &error)),
           &data, 1, 2, DIMS(2, 3), 1, 2, 3, 4, 10, 18);
    end();
    begin();
    x = input("x", 2, DIMS(2, 3));
    EXPECT(out(sinter_add_einsum(net, (tensor[]){ x, x }, 2, "ij,kj->ik", &error)), &data, 1, 2, DIMS(2, 2), 14, 32, 32,
           77);
    end();
    begin();
    const int64_t axes[] = { 0, 3 };
    tensor wide = out(sinter_add_unsqueeze(net, input("x", 2, DIMS(2, 3)), constant(I64, 1, DIMS(2), axes), &error));
    sinter_network_shape shape;
    CHECK_EQ(sinter_network_tensor_shape(wide, &shape, &error), SINTER_OK);
    CHECK_EQ(shape.rank, 4);
    EXPECT(out(sinter_add_squeeze(net, wide, NULL, &error)), &data, 1, 2, DIMS(2, 3), 1, 2, 3, 4, 5, 6);
    end();
    begin();
    const net_data deep = data_of("x", 3, DIMS(1, 3, 2), six);
    EXPECT(out(sinter_add_lrn(net, input("x", 3, DIMS(1, 3, 2)), 3, 3, 1, 1, &error)), &deep, 1, 3, DIMS(1, 3, 2),
           1. / 11, 2. / 21, 3. / 36, 4. / 57, 5. / 35, 6. / 53);
    end();
}

static void ragged_softmax(void)
{
    float x[] = { 0, 0, 9, 1, 1, 1 };
    const int32_t bounds[] = { 2, 0 };
    const net_data data = data_of("x", 2, DIMS(2, 3), x);
    begin();
    EXPECT(out(sinter_add_ragged_softmax(net, input("x", 2, DIMS(2, 3)),
                                         constant(SINTER_DTYPE_I32, 2, DIMS(2, 1), bounds), &error)),
           &data, 1, 2, DIMS(2, 3), .5, .5, 0, 0, 0, 0);
    end();
}

static void scatters(void)
{
    const int64_t at[] = { 2, 0 }, row[] = { 1 };
    float up[] = { 10, 20 }, line[] = { 7, 8, 9 };
    const net_data data = data_of("x", 2, DIMS(2, 3), six);
    begin();
    sinter_layer *l = sinter_add_scatter(net, input("x", 2, DIMS(2, 3)), constant(I64, 2, DIMS(2, 1), at),
                                         constant(F32, 2, DIMS(2, 1), up), SINTER_SCATTER_ELEMENT, &error);
    CHECK_EQ(sinter_layer_set_int(l, "axis", 1, &error), SINTER_OK);
    EXPECT(out(l), &data, 1, 2, DIMS(2, 3), 1, 2, 10, 20, 5, 6);
    end();
    begin();
    EXPECT(out(sinter_add_scatter(net, input("x", 2, DIMS(2, 3)), constant(I64, 2, DIMS(1, 1), row),
                                  constant(F32, 2, DIMS(1, 3), line), SINTER_SCATTER_ND, &error)),
           &data, 1, 2, DIMS(2, 3), 1, 2, 3, 7, 8, 9);
    end();
}

static void picks(void)
{
    const int64_t at[] = { 2, 0 }, lengths[] = { 2, 3 };
    float pair[] = { 0, 5 };
    const net_data data = data_of("x", 2, DIMS(2, 3), six);
    begin();
    EXPECT(out(sinter_add_one_hot(net, constant(I64, 1, DIMS(2), at), constant(F32, 1, DIMS(2), pair), number(3), -1,
                                  &error)),
           NULL, 0, 2, DIMS(2, 3), 0, 0, 5, 5, 0, 0);
    end();
    begin();
    float x[] = { 0, 3, 0, 4 };
    const net_data some = data_of("x", 2, DIMS(2, 2), x);
    EXPECT(out(sinter_add_non_zero(net, input("x", 2, DIMS(2, 2)), SINTER_DTYPE_I32, &error)), &some, 1, 2, DIMS(2, 2),
           0, 1, 1, 1);
    end();
    begin();
    sinter_layer *l =
        sinter_add_reverse_sequence(net, input("x", 2, DIMS(2, 3)), constant(I64, 1, DIMS(2), lengths), &error);
    CHECK_EQ(sinter_layer_set_int(l, "batch_axis", 0, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_int(l, "sequence_axis", 1, &error), SINTER_OK);
    EXPECT(out(l), &data, 1, 2, DIMS(2, 3), 2, 1, 3, 6, 5, 4);
    end();
}

static void nms(void)
{
    float boxes[] = { 0, 0, 1, 1, 0, 0, 1, 1.1f, 5, 5, 6, 6 }, scores[] = { .9f, .8f, .7f };
    const net_data data[] = { data_of("b", 3, DIMS(1, 3, 4), boxes), data_of("s", 3, DIMS(1, 3, 1), scores) };
    for (int which = 0; which < 2; which++) {
        begin();
        sinter_layer *l = sinter_add_nms(net, input("b", 3, DIMS(1, 3, 4)), input("s", 3, DIMS(1, 3, 1)), number(3),
                                         SINTER_DTYPE_I64, &error);
        CHECK_EQ(sinter_layer_set_input(l, 3, real(0.5f), &error), SINTER_OK);
        if (which) EXPECT(sinter_layer_output(l, 1), data, 2, 0, NULL, 2);
        else EXPECT(out(l), data, 2, 2, DIMS(2, 3), 0, 0, 0, 0, 0, 2);
        end();
    }
}

static void grid_sample(void)
{
    float x[] = { 1, 2, 3, 4 }, grid[] = { -1, -1, 1, 1, 0, 0, 5, 0 };
    const net_data data[] = { data_of("x", 4, DIMS(1, 1, 2, 2), x), data_of("g", 4, DIMS(1, 1, 4, 2), grid) };
    begin();
    sinter_layer *l =
        sinter_add_grid_sample(net, input("x", 4, DIMS(1, 1, 2, 2)), input("g", 4, DIMS(1, 1, 4, 2)), &error);
    CHECK_EQ(sinter_layer_set_int(l, "align_corners", 1, &error), SINTER_OK);
    EXPECT(out(l), data, 2, 4, DIMS(1, 1, 1, 4), 1, 4, 2.5, 0);
    end();
}

static void fills(void)
{
    const int64_t shape[] = { 2, 3 };
    float steps[] = { 10, 1 };
    begin();
    sinter_layer *l = sinter_add_fill(net, 1, DIMS(3), SINTER_FILL_LINSPACE, F32, &error);
    CHECK_EQ(sinter_layer_set_real(l, "alpha", 2, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_real(l, "beta", 0.5, &error), SINTER_OK);
    EXPECT(out(l), NULL, 0, 1, DIMS(3), 2, 2.5, 3);
    end();
    begin();
    l = sinter_add_fill(net, 0, NULL, SINTER_FILL_LINSPACE, F32, &error);
    CHECK_EQ(sinter_layer_set_input(l, 0, constant(I64, 1, DIMS(2), shape), &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_input(l, 2, constant(F32, 1, DIMS(2), steps), &error), SINTER_OK);
    EXPECT(out(l), NULL, 0, 2, DIMS(2, 3), 0, 1, 2, 10, 11, 12);
    end();
    begin();
    net_result r;
    l = sinter_add_fill(net, 1, DIMS(1000), SINTER_FILL_RANDOM_UNIFORM, F32, &error);
    CHECK_EQ(sinter_layer_set_real(l, "alpha", 4, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_real(l, "beta", 6, &error), SINTER_OK);
    CHECK_EQ(sinter_network_mark_output(net, out(l), &error), SINTER_OK);
    if (CHECK_EQ(net_run(net, NULL, "cpu", NULL, 0, 1, &r, &error), SINTER_OK)) {
        double sum = 0;
        for (int64_t i = 0; i < 1000; i++) {
            CHECK(net_value(&r.out[0], i) >= 4 && net_value(&r.out[0], i) <= 6);
            sum += net_value(&r.out[0], i) / 1000;
        }
        CHECK_NEAR(sum, 5, 0.2);
        net_result_free(&r);
    } else {
        printf("%s\n", error.text);
    }
    end();
}

static void assertions(void)
{
    for (int holds = 0; holds < 2; holds++) {
        begin();
        float x[] = { 1, 2 };
        net_result r;
        tensor t = input("x", 1, DIMS(2));
        tensor above = out(sinter_add_elementwise(net, t, constant(F32, 1, DIMS(1), (float[]){ holds ? 0.f : 1.5f }),
                                                  SINTER_ELEMENTWISE_GREATER, &error));
        CHECK(sinter_add_assertion(net, above, "x is above", &error));
        CHECK_EQ(sinter_network_mark_output(net, out(sinter_add_unary(net, t, SINTER_UNARY_NEG, &error)), &error),
                 SINTER_OK);
        const net_data data = data_of("x", 1, DIMS(2), x);
        const sinter_status s = net_run(net, NULL, "cpu", &data, 1, 1, &r, &error);
        CHECK_EQ(s, holds ? SINTER_OK : SINTER_INVALID_MODEL);
        if (!holds) CHECK_HAS(error.text, "an assertion of the network does not hold");
        net_result_free(&r);
        end();
    }
    begin();
    sinter_buffer file = { 0 };
    tensor t = input("x", 1, DIMS(2));
    tensor rank = out(sinter_add_shape(net, t, &error));
    CHECK(sinter_add_assertion(
        net,
        out(sinter_add_elementwise(net, rank, constant(I64, 1, DIMS(1), DIMS(3)), SINTER_ELEMENTWISE_EQUAL, &error)),
        "three elements", &error));
    CHECK_EQ(sinter_network_mark_output(net, t, &error), SINTER_OK);
    CHECK_EQ(sinter_network_build(net, NULL, &file, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "does not hold: three elements");
    end();
}

static void quantisation(void)
{
    float x[] = { 1, -2.4f, 300, 0.26f }, scale[] = { 2, 0.5f }, blocks[] = { 1, 2, 0.5f, 1 };
    const net_data data = data_of("x", 2, DIMS(2, 2), x);
    begin();
    sinter_layer *q = sinter_add_quantize(net, input("x", 2, DIMS(2, 2)), real(2), SINTER_DTYPE_I8, &error);
    EXPECT(out(q), &data, 1, 2, DIMS(2, 2), 0, -1, 127, 0);
    end();
    begin();
    q = sinter_add_quantize(net, input("x", 2, DIMS(2, 2)), constant(F32, 1, DIMS(2), scale), SINTER_DTYPE_I8, &error);
    CHECK_EQ(sinter_layer_set_int(q, "axis", 1, &error), SINTER_OK);
    sinter_layer *d = sinter_add_dequantize(net, out(q), constant(F32, 1, DIMS(2), scale), F32, &error);
    CHECK_EQ(sinter_layer_set_int(d, "axis", 1, &error), SINTER_OK);
    EXPECT(out(d), &data, 1, 2, DIMS(2, 2), 0, -2.5, 254, 0.5);
    end();
    begin(); /* blocks of 2 along the last axis */
    float wide[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    const net_data more = data_of("x", 2, DIMS(2, 4), wide);
    tensor steps = constant(F32, 2, DIMS(2, 2), blocks);
    q = sinter_add_quantize(net, input("x", 2, DIMS(2, 4)), steps, SINTER_DTYPE_I8, &error);
    CHECK_EQ(sinter_layer_set_ints(q, "block_shape", DIMS(1, 2), 2, &error), SINTER_OK);
    EXPECT(out(q), &more, 1, 2, DIMS(2, 4), 1, 2, 2, 2, 10, 12, 7, 8);
    end();
    for (int which = 0; which < 2; which++) {
        begin();
        float block[] = { 6, 3, -1.4f, 0, 0, 0, 0, 0 };
        const net_data one = data_of("x", 1, DIMS(8), block);
        sinter_layer *l = sinter_add_dynamic_quantize(net, input("x", 1, DIMS(8)), NULL, 0, 4, SINTER_DTYPE_F4E2M1,
                                                      SINTER_DTYPE_F8E4M3FN, &error);
        if (which) EXPECT(out(sinter_add_cast(net, sinter_layer_output(l, 1), F32, &error)), &one, 1, 1, DIMS(2), 1, 0);
        else EXPECT(out(sinter_add_cast(net, out(l), F32, &error)), &one, 1, 1, DIMS(8), 6, 3, -1.5, 0, 0, 0, 0, 0);
        end();
    }
}

static void softmax_of(double *p, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += p[i] = exp(p[i]);
    for (int i = 0; i < count; i++) p[i] /= sum;
}

/* 1 head, 2 queries, 3 keys, width 1. */
static void attention(void)
{
    float q[] = { 1, 2 }, k[] = { 0.5f, -1, 1.5f }, v[] = { 1, 10, 100 };
    for (int causal = 0; causal < 3; causal++) {
        for (int op = 0; op < 2; op++) {
            begin();
            double want[2];
            for (int i = 0; i < 2; i++) {
                double p[3];
                int seen = causal == 0 ? 3 : causal == 1 ? i + 1 : i + 2;
                for (int j = 0; j < seen; j++) p[j] = (double)q[i] * (double)k[j];
                if (op) softmax_of(p, seen);
                want[i] = 0;
                for (int j = 0; j < seen; j++) want[i] += p[j] * (double)v[j];
            }
            const net_data data[] = { data_of("q", 4, DIMS(1, 1, 2, 1), q), data_of("k", 4, DIMS(1, 1, 3, 1), k),
                                      data_of("v", 4, DIMS(1, 1, 3, 1), v) };
            expect_at(out(sinter_add_attention(net, input("q", 4, DIMS(1, 1, 2, 1)), input("k", 4, DIMS(1, 1, 3, 1)),
                                               input("v", 4, DIMS(1, 1, 3, 1)), (sinter_norm_op)op,
                                               (sinter_causal)causal, &error)),
                      data, 3, 4, DIMS(1, 1, 2, 1), want, 1e-3, __LINE__);
            end();
        }
    }
}

static void caches_and_positions(void)
{
    float cache[] = { 0, 0, 0, 0, 0, 0 }, row[] = { 1, 2 };
    const int64_t at[] = { 1 };
    begin();
    const net_data data[] = { data_of("c", 4, DIMS(1, 1, 3, 2), cache), data_of("u", 4, DIMS(1, 1, 1, 2), row) };
    EXPECT(out(sinter_add_kv_cache_update(net, input("c", 4, DIMS(1, 1, 3, 2)), input("u", 4, DIMS(1, 1, 1, 2)),
                                          constant(I64, 1, DIMS(1), at), SINTER_CACHE_MODE_LINEAR, &error)),
           data, 2, 4, DIMS(1, 1, 3, 2), 0, 0, 1, 2, 0, 0);
    end();
    begin();
    float x[] = { 1, 2, 3, 4 }, cosine[] = { 1, 0 }, sine[] = { 0, 1 };
    const net_data one = data_of("x", 4, DIMS(1, 1, 1, 4), x);
    EXPECT(
        out(sinter_add_rotary_embedding(net, input("x", 4, DIMS(1, 1, 1, 4)), constant(F32, 3, DIMS(1, 1, 2), cosine),
                                        constant(F32, 3, DIMS(1, 1, 2), sine), 0, 0, &error)),
        &one, 1, 4, DIMS(1, 1, 1, 4), 1, -4, 3, 2);
    end();
}

/* 1 token of width 1, 2 experts of width 1, both chosen. */
static void experts(void)
{
    float x[] = { 2 }, score[] = { 0.25f, 0.75f }, gate[] = { 1, -1 }, up[] = { 3, 4 }, down[] = { 5, 6 };
    const int64_t chosen[] = { 1, 0 };
    begin();
    sinter_layer *l = sinter_add_moe(net, input("x", 3, DIMS(1, 1, 1)), constant(I64, 3, DIMS(1, 1, 2), chosen),
                                     constant(F32, 3, DIMS(1, 1, 2), score), &error);
    float *const weights[] = { gate, up, down };
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(sinter_layer_set_input(l, 3 + i, constant(F32, 3, DIMS(2, 1, 1), weights[i]), &error), SINTER_OK);
    double want = 0;
    for (int e = 0; e < 2; e++) {
        const double g = 2 * (double)gate[e];
        want += (e ? 0.25 : 0.75) * g / (1 + exp(-g)) * 2 * (double)up[e] * (double)down[e];
    }
    const net_data data = data_of("x", 3, DIMS(1, 1, 1), x);
    expect_at(out(l), &data, 1, 3, DIMS(1, 1, 1), &want, 1e-4, __LINE__);
    end();
}

static void constants_without_elements(void)
{
    begin();
    tensor none = constant(I64, 1, DIMS(0), NULL);
    sinter_network_shape shape;
    CHECK_EQ(sinter_network_tensor_shape(none, &shape, &error), SINTER_OK);
    CHECK_EQ(shape.dtype, I64);
    CHECK_EQ(shape.dim[0], 0);
    EXPECT(out(sinter_add_op(net, "", "ConstantOfShape", 0, &none, 1, 1, &error)), NULL, 0, 0, NULL, 0);
    end();
}

static void operators(void)
{
    const net_data data = data_of("x", 2, DIMS(2, 3), six);
    begin();
    tensor x = input("x", 2, DIMS(2, 3));
    sinter_layer *l = sinter_add_op(net, "", "ReduceL1", 0, &x, 1, 1, &error);
    CHECK_EQ(sinter_layer_set_int(l, "keepdims", 0, &error), SINTER_OK);
    EXPECT(out(l), &data, 1, 0, NULL, 21);
    int64_t keep = 1;
    CHECK_EQ(sinter_layer_get_int(l, "keepdims", &keep, &error), SINTER_OK);
    CHECK_EQ(keep, 0);
    end();
    begin();
    x = input("x", 2, DIMS(2, 3));
    sinter_network_shape shape;
    tensor t = out(sinter_add_op(net, "my.own", "Nothing", 1, &x, 1, 1, &error));
    CHECK_EQ(sinter_network_tensor_shape(t, &shape, &error), SINTER_UNSUPPORTED);
    CHECK_HAS(error.text, "the operator is not supported");
    CHECK(!sinter_network_add(net, SINTER_LAYER_DIST_COLLECTIVE, &x, 1, &error));
    CHECK_HAS(error.text, "one device");
    end();
}

/* ---- loops ---- */

static void loop_that_counts(void)
{
    float x[] = { 1, 2 };
    const net_data data = data_of("x", 1, DIMS(2), x);
    for (int kind = 0; kind < 3; kind++) {
        begin();
        tensor t = input("x", 1, DIMS(2));
        tensor outside = out(sinter_add_unary(net, t, SINTER_UNARY_NEG, &error)); /* captured */
        sinter_loop *loop = sinter_network_add_loop(net, &error);
        CHECK(sinter_loop_add_trip_limit(loop, number(3), SINTER_TRIP_LIMIT_COUNT, &error));
        sinter_layer *sum = sinter_loop_add_recurrence(loop, t, &error);
        tensor next = out(sinter_add_elementwise(net, out(sum), outside, SINTER_ELEMENTWISE_SUB, &error));
        CHECK_EQ(sinter_layer_set_input(sum, 1, next, &error), SINTER_OK);
        sinter_layer *result =
            sinter_loop_add_output(loop, kind ? next : out(sum), (sinter_loop_output)kind, kind == 2, &error);
        CHECK(sinter_layer_loop(sum) == loop && !sinter_layer_conditional(sum));
        if (kind) CHECK_EQ(sinter_layer_set_input(result, 1, number(kind == 1 ? 4 : 3), &error), SINTER_OK);
        if (kind == 0) EXPECT(out(result), &data, 1, 1, DIMS(2), 4, 8);
        if (kind == 1) EXPECT(out(result), &data, 1, 2, DIMS(4, 2), 2, 4, 3, 6, 4, 8, 0, 0);
        if (kind == 2) EXPECT(out(result), &data, 1, 2, DIMS(2, 3), 4, 3, 2, 8, 6, 4);
        end();
    }
}

/* Doubles x until it is above 100: with a condition alone, and with both limits. */
static void loop_with_a_condition(void)
{
    float x[] = { 3 };
    const net_data data = data_of("x", 0, NULL, x);
    for (int both = 0; both < 2; both++) {
        begin();
        tensor t = input("x", 0, NULL);
        sinter_loop *loop = sinter_network_add_loop(net, &error);
        sinter_layer *value = sinter_loop_add_recurrence(loop, t, &error);
        tensor low = out(sinter_add_elementwise(net, out(value), real(100), SINTER_ELEMENTWISE_LESS, &error));
        CHECK(sinter_loop_add_trip_limit(loop, low, SINTER_TRIP_LIMIT_WHILE, &error));
        if (both) CHECK(sinter_loop_add_trip_limit(loop, number(2), SINTER_TRIP_LIMIT_COUNT, &error));
        tensor next = out(sinter_add_elementwise(net, out(value), out(value), SINTER_ELEMENTWISE_SUM, &error));
        CHECK_EQ(sinter_layer_set_input(value, 1, next, &error), SINTER_OK);
        tensor last = out(sinter_loop_add_output(loop, out(value), SINTER_LOOP_OUTPUT_LAST_VALUE, 0, &error));
        if (both) EXPECT(last, &data, 1, 0, NULL, 12);
        else EXPECT(last, &data, 1, 0, NULL, 192);
        end();
    }
}

static void loop_over_slices(void)
{
    const net_data data = data_of("x", 2, DIMS(2, 3), six);
    for (int reverse = 0; reverse < 2; reverse++) {
        begin();
        tensor t = input("x", 2, DIMS(2, 3));
        const float zero[] = { 0, 0 };
        sinter_loop *loop = sinter_network_add_loop(net, &error);
        CHECK(sinter_loop_add_trip_limit(loop, number(3), SINTER_TRIP_LIMIT_COUNT, &error));
        sinter_layer *each = sinter_loop_add_iterator(loop, t, 1, (uint32_t)reverse, &error);
        sinter_layer *sum = sinter_loop_add_recurrence(loop, constant(F32, 1, DIMS(2), zero), &error);
        tensor next = out(sinter_add_elementwise(net, out(sum), out(each), SINTER_ELEMENTWISE_SUM, &error));
        CHECK_EQ(sinter_layer_set_input(sum, 1, next, &error), SINTER_OK);
        tensor all = out(sinter_loop_add_output(loop, next, SINTER_LOOP_OUTPUT_CONCATENATE, 1, &error));
        if (reverse) EXPECT(all, &data, 1, 2, DIMS(2, 3), 3, 5, 6, 6, 11, 15);
        else EXPECT(all, &data, 1, 2, DIMS(2, 3), 1, 3, 6, 4, 9, 15);
        end();
    }
}

static void loop_in_a_loop(void)
{
    float x[] = { 1 };
    const net_data data = data_of("x", 0, NULL, x);
    begin();
    tensor t = input("x", 0, NULL);
    sinter_loop *outer = sinter_network_add_loop(net, &error), *inner = sinter_network_add_loop(net, &error);
    CHECK(sinter_loop_add_trip_limit(outer, number(2), SINTER_TRIP_LIMIT_COUNT, &error));
    CHECK(sinter_loop_add_trip_limit(inner, number(3), SINTER_TRIP_LIMIT_COUNT, &error));
    sinter_layer *a = sinter_loop_add_recurrence(outer, t, &error),
                 *b = sinter_loop_add_recurrence(inner, out(a), &error);
    tensor next = out(sinter_add_elementwise(net, out(b), t, SINTER_ELEMENTWISE_SUM, &error));
    CHECK_EQ(sinter_layer_set_input(b, 1, next, &error), SINTER_OK);
    tensor last = out(sinter_loop_add_output(inner, out(b), SINTER_LOOP_OUTPUT_LAST_VALUE, 0, &error));
    tensor twice = out(sinter_add_elementwise(net, last, out(a), SINTER_ELEMENTWISE_SUM, &error));
    CHECK_EQ(sinter_layer_set_input(a, 1, twice, &error), SINTER_OK);
    EXPECT(out(sinter_loop_add_output(outer, out(a), SINTER_LOOP_OUTPUT_LAST_VALUE, 0, &error)), &data, 1, 0, NULL, 13);
    end();
}

static void conditionals(void)
{
    for (int way = 0; way < 2; way++) {
        begin();
        float x[] = { 1, 2 }, go[] = { (float)way };
        const net_data data[] = { data_of("x", 1, DIMS(2), x), data_of("go", 0, NULL, go) };
        tensor t = input("x", 1, DIMS(2)),
               flag = out(sinter_add_cast(net, input("go", 0, NULL), SINTER_DTYPE_BOOL, &error));
        sinter_conditional *c = sinter_network_add_conditional(net, &error);
        CHECK(sinter_conditional_set_condition(c, flag, &error));
        CHECK(!sinter_conditional_set_condition(c, flag, &error));
        tensor in = out(sinter_conditional_add_input(c, t, &error));
        tensor yes = out(sinter_add_unary(net, in, SINTER_UNARY_NEG, &error));
        tensor no = out(sinter_add_elementwise(net, in, t, SINTER_ELEMENTWISE_SUM, &error));
        tensor y = out(sinter_conditional_add_output(c, yes, no, &error));
        if (way) EXPECT(y, data, 2, 1, DIMS(2), -1, -2);
        else EXPECT(y, data, 2, 1, DIMS(2), 2, 4);
        end();
    }
}

static void incomplete_loops(void)
{
    sinter_buffer file = { 0 };
    begin();
    tensor t = input("x", 1, DIMS(2));
    sinter_loop *loop = sinter_network_add_loop(net, &error);
    sinter_layer *sum = sinter_loop_add_recurrence(loop, t, &error);
    tensor last = out(sinter_loop_add_output(loop, out(sum), SINTER_LOOP_OUTPUT_LAST_VALUE, 0, &error));
    CHECK_EQ(sinter_network_mark_output(net, last, &error), SINTER_OK);
    CHECK_EQ(sinter_network_build(net, NULL, &file, &error), SINTER_INVALID_MODEL);
    CHECK_HAS(error.text, "no trip limit");
    CHECK(sinter_loop_add_trip_limit(loop, number(3), SINTER_TRIP_LIMIT_COUNT, &error));
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_build(net, NULL, &file, &error), SINTER_INVALID_MODEL);
    CHECK_HAS(error.text, "the value of the next turn");
    tensor wide = out(sinter_add_concatenation(net, (tensor[]){ out(sum), out(sum) }, 2, 0, &error));
    CHECK_EQ(sinter_layer_set_input(sum, 1, wide, &error), SINTER_OK);
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_build(net, NULL, &file, &error), SINTER_INVALID_MODEL);
    CHECK_HAS(error.text, "begins with 2 elements and gets 4");
    CHECK_EQ(sinter_layer_set_input(sum, 1, last, &error), SINTER_OK); /* what comes out goes in */
    error = (sinter_error){ 0 };
    CHECK(sinter_network_build(net, NULL, &file, &error) != SINTER_OK);
    CHECK(!sinter_network_add(net, SINTER_LAYER_RECURRENCE, &t, 1, &error));
    CHECK_HAS(error.text, "sinter_loop_add_recurrence");
    end();
}

/* Of every format, from the tensor to its memory and back; of one with groups, the memory. */
static void memory_formats(void)
{
    float values[] = { 1, 2, 3, 4, 5, 6 };
    const net_data wide = data_of("x", 5, DIMS(1, 3, 1, 1, 2), values),
                   flat = data_of("x", 4, DIMS(1, 3, 1, 2), values);
#define SINTER_X(name, value, ...) SINTER_FORMAT_##name,
    static const sinter_format formats[] = { SINTER_FORMAT_MAP(SINTER_X) };
#undef SINTER_X
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        begin();
        const bool is_3d =
            formats[i] == SINTER_FORMAT_DHWC || formats[i] == SINTER_FORMAT_DHWC8 || formats[i] == SINTER_FORMAT_CDHW32;
        sinter_network_tensor *x = is_3d ? input("x", 5, DIMS(1, 3, 1, 1, 2)) : input("x", 4, DIMS(1, 3, 1, 2));
        const uint32_t rank = is_3d ? 5 : 4;
        sinter_network_tensor *y = sinter_network_add_format(net, x, formats[i], rank, 3, 1, &error);
        y = sinter_network_add_format(net, y, formats[i], rank, 3, 0, &error);
        EXPECT(y, is_3d ? &wide : &flat, 1, rank, is_3d ? DIMS(1, 3, 1, 1, 2) : DIMS(1, 3, 1, 2), 1, 2, 3, 4, 5, 6);
        end();
    }
    begin();
    EXPECT(sinter_network_add_format(net, input("x", 4, DIMS(1, 3, 1, 2)), SINTER_FORMAT_CHW2, 4, 3, 1, &error), &flat,
           1, 5, DIMS(1, 2, 1, 2, 2), 1, 3, 2, 4, 5, 0, 6, 0);
    end();
    begin();
    sinter_network_tensor *x = input("x", 2, DIMS(3, 2));
    CHECK(!sinter_network_add_format(net, x, SINTER_FORMAT_HWC, 2, 3, 1, &error));
    CHECK(!sinter_network_add_format(net, x, SINTER_FORMAT_HWC, 3, 0, 1, &error));
    CHECK(!sinter_network_add_format(net, x, (sinter_format)0, 3, 3, 1, &error));
    CHECK(!sinter_network_add_format(net, NULL, SINTER_FORMAT_HWC8, 4, 3, 1, &error));
    CHECK_EQ(sinter_network_layer_count(net), 0);
    end();
}

static const test tests[] = { T(one_operator_layers),
                              T(memory_formats),
                              T(ragged_softmax),
                              T(scatters),
                              T(picks),
                              T(nms),
                              T(grid_sample),
                              T(fills),
                              T(assertions),
                              T(quantisation),
                              T(attention),
                              T(caches_and_positions),
                              T(experts),
                              T(constants_without_elements),
                              T(operators),
                              T(loop_that_counts),
                              T(loop_with_a_condition),
                              T(loop_over_slices),
                              T(loop_in_a_loop),
                              T(conditionals),
                              T(incomplete_loops),
                              { 0 } };
TEST_MAIN(tests)

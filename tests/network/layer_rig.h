/* SPDX-License-Identifier: Apache-2.0 */
/* layer_rig.h - a network of few layers, built and compared with values computed in the test. */
#ifndef LAYER_RIG_H
#define LAYER_RIG_H

#include "net_rig.h"
#include "test.h"

#include <math.h>

#define F32 SINTER_DTYPE_F32
#define I64 SINTER_DTYPE_I64
#define DIMS(...)                                                                                                      \
    (int64_t[])                                                                                                        \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static sinter_network *net;
static sinter_error error;
typedef sinter_network_tensor *tensor;

static inline void begin(void)
{
    error = (sinter_error){ 0 };
    CHECK_EQ(sinter_network_create(NULL, &net, &error), SINTER_OK);
}

static inline void end(void)
{
    sinter_network_destroy(net);
    net = NULL;
}

static inline tensor input(const char *name, uint32_t rank, const int64_t *d)
{
    return sinter_network_add_input(net, name, F32, rank, d, NULL, &error);
}

static inline tensor out(sinter_layer *layer)
{
    if (!CHECK(layer)) printf("%s\n", error.text);
    return sinter_layer_output(layer, 0);
}

static inline tensor constant(sinter_dtype dtype, uint32_t rank, const int64_t *d, const void *data)
{
    sinter_tensor t = { .dtype = dtype, .rank = rank, .data = (void *)(uintptr_t)data };
    for (uint32_t i = 0; i < rank; i++) t.dim[i] = d[i];
    return out(sinter_add_constant(net, &t, 0, &error));
}

static inline tensor number(int64_t value)
{
    return constant(I64, 0, NULL, &value);
}

static inline tensor real(float value)
{
    return constant(F32, 0, NULL, &value);
}

static inline net_data data_of(const char *name, uint32_t rank, const int64_t *d, float *at)
{
    net_data x = { .name = name, .tensor = { .dtype = F32, .rank = rank, .data = at } };
    for (uint32_t i = 0; i < rank; i++) x.tensor.dim[i] = d[i];
    return x;
}

/* Runs the network and compares its only output with `want`, on both devices. The shape that the network said before
 * the build must be right, too. t: the output; NULL: it is marked already. */
static inline void expect_at(tensor t, const net_data *data, uint32_t count, uint32_t rank, const int64_t *d,
                      const double *want, double within, int line)
{
    static const char *const device[] = { "cpu", "reference" };
    sinter_network_shape shape = { 0 };
    error = (sinter_error){ 0 };
    if (t) CHECK_EQ(sinter_network_mark_output(net, t, &error), SINTER_OK);
    else t = sinter_network_output(net, 0);
    if (!CHECK_EQ(sinter_network_tensor_shape(t, &shape, &error), SINTER_OK)) printf("line %d: %s\n", line, error.text);
    CHECK_EQ(shape.rank, rank);
    for (uint32_t i = 0; i < rank; i++)
        if (shape.dim[i] != -1) CHECK_EQ(shape.dim[i], d[i]);
    for (int k = 0; k < 2; k++) {
        net_result r;
        if (!CHECK_EQ(net_run(net, NULL, device[k], data, count, 1, &r, &error), SINTER_OK)) {
            printf("line %d: %s\n", line, error.text);
            return;
        }
        bool same = CHECK_EQ(r.out[0].rank, rank);
        for (uint32_t i = 0; i < rank && same; i++) same = CHECK_EQ(r.out[0].dim[i], d[i]);
        for (int64_t i = 0; same && i < net_count(&r.out[0]); i++)
            same = CHECK_NEAR(net_value(&r.out[0], i), want[i], within);
        if (!same) printf("line %d, device %s\n", line, device[k]);
        net_result_free(&r);
    }
}
#define EXPECT(t, data, count, rank, d, ...)                                                                           \
    expect_at(t, data, count, rank, d, (const double[]){ __VA_ARGS__ }, 1e-5, __LINE__)

#endif

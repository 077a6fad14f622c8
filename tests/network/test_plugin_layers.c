/* SPDX-License-Identifier: Apache-2.0 */
/* test_plugin_layers.c - calls of plugins as layers of a network: values of fields by the call and one by one, what is
 * refused and when, loops, and which registry is asked. */
#include "net_rig.h"
#include "plugin_set.h"
#include "test.h"

#include <stdlib.h>

typedef sinter_network_tensor *tensor;

static const int64_t two = 2, three = 3;
static const double quarter = 0.25, reals[] = { 0.1, 0.2, 0.3 };

static sinter_network *network(const sinter_plugins *plugins, tensor *x)
{
    sinter_env_options env = SINTER_ENV_OPTIONS;
    sinter_network *net = NULL;
    sinter_error error = { 0 };
    env.plugins = plugins;
    CHECK_EQ(sinter_network_create(&env, &net, &error), SINTER_OK);
    *x = sinter_network_add_input(net, "x", SINTER_DTYPE_F32, 2, (int64_t[]){ 3, 4 }, NULL, &error);
    return net;
}

/* Builds with the network's own registry, and runs. */
static sinter_status run(sinter_network *net, net_result *out, sinter_error *error)
{
    sinter_env_options env = SINTER_ENV_OPTIONS;
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    env.plugins = plugin_set_shared();
    o.env = &env;
    return net_run(net, &o, "cpu", NULL, 0, 7, out, error);
}

static double at(const net_result *r, uint32_t output, int64_t i)
{
    return net_value(&r->out[output], i);
}

/* The last row of CustomPairs' first output is the sum of its fields: 'edge' is 413, table is 256, weights are 1. */
static void fields_arrive(void)
{
    tensor x;
    sinter_error error = { 0 };
    net_result got;
    sinter_network *net = network(plugin_set_shared(), &x);
    const sinter_plugin_field field[] = { { "k", SINTER_PLUGIN_INT, 1, &three },
                                          { "mode", SINTER_PLUGIN_TEXT, 1, "a" },
                                          { "weights", SINTER_PLUGIN_REALS, 3, reals } };
    sinter_layer *l = sinter_add_plugin(net, "CustomPairs", NULL, NULL, &x, 1, 2, field, 3, &error);
    CHECK_EQ(sinter_layer_get_kind(l), SINTER_LAYER_PLUGIN);
    CHECK_EQ(sinter_layer_output_count(l), 2);
    sinter_network_shape shape;
    if (!CHECK_EQ(sinter_network_tensor_shape(sinter_layer_output(l, 0), &shape, &error), SINTER_OK))
        printf("%s\n", error.text);
    CHECK_EQ(shape.dim[0], 7), CHECK_EQ(shape.dim[1], 2);
    /* a value that is set again, one that is new, and numbers with all of their bits */
    const sinter_plugin_field again = { "k", SINTER_PLUGIN_INT, 1, &two },
                              table = { "table", SINTER_PLUGIN_BYTES, 2, "\0\x05" };
    CHECK_EQ(sinter_layer_set_field(l, &again, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_field(l, &table, &error), SINTER_OK);
    CHECK_STR(sinter_layer_field(l, 3)->name, "table");
    CHECK_EQ(*(const int64_t *)sinter_layer_field(l, 0)->data, 2);
    CHECK(!sinter_layer_field(l, 4) && !sinter_layer_field(NULL, 0));
    const char *name = NULL, *version = "", *space = "";
    CHECK_EQ(sinter_layer_plugin(l, &name, &version, &space), SINTER_OK);
    CHECK(!strcmp(name, "CustomPairs") && !version && !space);
    CHECK_EQ(sinter_network_mark_output(net, sinter_layer_output(l, 0), &error), SINTER_OK);
    CHECK_EQ(sinter_network_mark_output(net, sinter_layer_output(l, 1), &error), SINTER_OK);
    if (CHECK_EQ(run(net, &got, &error), SINTER_OK)) {
        CHECK_EQ(net_count(&got.out[0]), 14), CHECK_EQ(net_count(&got.out[1]), 3);
        CHECK_EQ(at(&got, 0, 0), at(&got, 1, 0)); /* x[0][0] */
        CHECK_EQ(at(&got, 0, 2), -at(&got, 0, 0));
        CHECK_EQ((float)at(&got, 0, 12), (float)('a' + 5 + (0.1 + 0.2 + 0.3)));
        net_result_free(&got);
    } else {
        printf("%s\n", error.text);
    }
    sinter_network_destroy(net);
}

/* Engines of equal networks are equal; one field makes another engine. */
static void fields_decide(void)
{
    sinter_buffer file[3] = { 0 };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = SINTER_TUNE_OFF;
    for (int i = 0; i < 3; i++) {
        tensor x;
        sinter_error error = { 0 };
        sinter_network *net = network(plugin_set_shared(), &x);
        const double scale = i == 2 ? 0.5 : 0.25;
        const sinter_plugin_field field = { "scale", SINTER_PLUGIN_REAL, 1, &scale };
        sinter_layer *l = sinter_add_plugin(net, "CustomPlugin", "1", "", &x, 1, 1, &field, 1, &error);
        CHECK_EQ(sinter_network_mark_output(net, sinter_layer_output(l, 0), &error), SINTER_OK);
        /* the build names no registry: the network's is asked */
        if (!CHECK_EQ(sinter_network_build(net, &o, &file[i], &error), SINTER_OK)) printf("%s\n", error.text);
        sinter_network_destroy(net);
    }
    CHECK(file[0].size == file[1].size && !memcmp(file[0].data, file[1].data, file[0].size));
    CHECK(file[0].size != file[2].size || memcmp(file[0].data, file[2].data, file[0].size) != 0);
    for (int i = 0; i < 3; i++) sinter_buffer_free(&file[i]);
}

/* y = x * 0.25 three times over, by a loop. */
static void in_a_loop(void)
{
    tensor x;
    sinter_error error = { 0 };
    sinter_network *net = network(plugin_set_shared(), &x);
    const int32_t turns = 3;
    const sinter_tensor count = { .dtype = SINTER_DTYPE_I32, .data = (void *)&turns };
    const sinter_plugin_field field = { "scale", SINTER_PLUGIN_REAL, 1, &quarter };
    sinter_loop *loop = sinter_network_add_loop(net, &error);
    tensor limit = sinter_layer_output(sinter_add_constant(net, &count, 0, &error), 0);
    (void)sinter_loop_add_trip_limit(loop, limit, SINTER_TRIP_LIMIT_COUNT, &error);
    sinter_layer *turn = sinter_loop_add_recurrence(loop, x, &error);
    tensor in = sinter_layer_output(turn, 0);
    sinter_layer *l = sinter_add_plugin(net, "CustomPlugin", NULL, NULL, &in, 1, 1, &field, 1, &error);
    CHECK_EQ(sinter_layer_set_input(turn, 1, sinter_layer_output(l, 0), &error), SINTER_OK);
    sinter_layer *out = sinter_loop_add_output(loop, in, SINTER_LOOP_OUTPUT_LAST_VALUE, 0, &error);
    CHECK_EQ(sinter_network_mark_output(net, sinter_layer_output(out, 0), &error), SINTER_OK);
    CHECK_EQ(sinter_network_mark_output(net, sinter_layer_output(sinter_add_unary(net, x, SINTER_UNARY_NEG, &error), 0),
                                        &error),
             SINTER_OK);
    net_result got;
    if (CHECK_EQ(run(net, &got, &error), SINTER_OK)) {
        for (int64_t i = 0; i < 12; i++) CHECK_EQ(at(&got, 0, i) * 64, -at(&got, 1, i));
        net_result_free(&got);
    } else {
        printf("%s\n", error.text);
    }
    sinter_network_destroy(net);
}

static void add_refused(const char *name, uint32_t count, uint32_t count_out, const sinter_plugin_field *field,
                        uint32_t count_field, const char *why)
{
    tensor x, in[40];
    sinter_error error = { 0 };
    sinter_network *net = network(plugin_set_shared(), &x);
    for (int i = 0; i < 40; i++) in[i] = x;
    CHECK(!sinter_add_plugin(net, name, NULL, NULL, in, count, count_out, field, count_field, &error));
    CHECK_EQ(error.status, SINTER_INVALID_ARG);
    CHECK_HAS(error.text, why);
    CHECK_EQ(sinter_network_layer_count(net), 0);
    sinter_network_destroy(net);
}

/* What only the plugin can refuse is found when a shape is asked for, and at the build. */
static void build_refused(const sinter_plugins *plugins, const char *name, const char *version, uint32_t count,
                          uint32_t count_out, const sinter_plugin_field *field, const char *why)
{
    tensor x, in[4];
    sinter_error error = { 0 };
    sinter_buffer file = { 0 };
    sinter_network_shape shape;
    sinter_network *net = network(plugins, &x);
    for (int i = 0; i < 4; i++) in[i] = x;
    sinter_layer *l = sinter_add_plugin(net, name, version, NULL, in, count, count_out, field, field != NULL, &error);
    if (!CHECK(l != NULL)) printf("%s\n", error.text);
    CHECK(sinter_network_tensor_shape(sinter_layer_output(l, 0), &shape, &error) != SINTER_OK);
    CHECK_HAS(error.text, why);
    CHECK_EQ(sinter_network_mark_output(net, sinter_layer_output(l, 0), &error), SINTER_OK);
    CHECK(sinter_network_build(net, NULL, &file, &error) != SINTER_OK);
    CHECK_HAS(error.text, why);
    sinter_buffer_free(&file);
    sinter_network_destroy(net);
}

static void refusals(void)
{
    const sinter_plugin_field none = { "scale", SINTER_PLUGIN_REAL, 1, NULL }, odd = { "scale", 99, 1, &quarter },
                              huge = { "scale", SINTER_PLUGIN_REALS, UINT64_MAX / 4, &quarter },
                              nameless = { NULL, SINTER_PLUGIN_REAL, 1, &quarter },
                              other = { "weight", SINTER_PLUGIN_REAL, 1, &quarter },
                              text = { "scale", SINTER_PLUGIN_TEXT, 1, "x" },
                              negative = { "k", SINTER_PLUGIN_INT, 1, &(int64_t){ -1 } };
    add_refused(NULL, 1, 1, NULL, 0, "name is NULL or empty");
    add_refused("", 1, 1, NULL, 0, "name is NULL or empty");
    add_refused("CustomPlugin", 1, 0, NULL, 0, "0 outputs");
    add_refused("CustomPlugin", 33, 1, NULL, 0, "33 inputs");
    add_refused("CustomPlugin", 1, 1, NULL, 2, "2 fields at NULL");
    add_refused("CustomPlugin", 1, 1, &none, 1, "'scale' has no value");
    add_refused("CustomPlugin", 1, 1, &odd, 1, "type 99");
    add_refused("CustomPlugin", 1, 1, &huge, 1, "the most is");
    add_refused("CustomPlugin", 1, 1, &nameless, 1, "without a name");
    build_refused(plugin_set_shared(), "Nothing", NULL, 1, 1, NULL, "plugin 'Nothing'");
    build_refused(plugin_set_shared(), "CustomPlugin", "9", 1, 1, NULL, "version '9'");
    build_refused(plugin_set_shared(), "CustomPlugin", NULL, 2, 1, NULL, "the node has 2");
    build_refused(plugin_set_shared(), "CustomPlugin", NULL, 1, 3, NULL, "the node has 3");
    build_refused(plugin_set_shared(), "CustomPlugin", NULL, 1, 1, &other, "no field 'weight'");
    build_refused(plugin_set_shared(), "CustomPlugin", NULL, 1, 1, &text, "is a text, wanted is a number");
    build_refused(plugin_set_shared(), "CustomPairs", NULL, 1, 1, &negative, "k=-1");
    build_refused(NULL, "CustomPlugin", NULL, 1, 1, NULL, "no plugins were given");
    tensor x;
    sinter_error error = { 0 };
    sinter_network *net = network(plugin_set_shared(), &x);
    sinter_layer *l = sinter_add_unary(net, x, SINTER_UNARY_NEG, &error);
    CHECK_EQ(sinter_layer_set_field(l, &other, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "calls no plugin");
    CHECK_EQ(sinter_layer_plugin(l, NULL, NULL, NULL), SINTER_INVALID_ARG);
    CHECK(!sinter_network_add(net, SINTER_LAYER_PLUGIN, &x, 1, &error));
    CHECK_HAS(error.text, "sinter_add_plugin");
    sinter_network_destroy(net);
}

static const test tests[] = { T(fields_arrive), T(fields_decide), T(in_a_loop), T(refusals), { 0 } };
TEST_MAIN(tests)

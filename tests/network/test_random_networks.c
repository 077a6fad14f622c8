/* SPDX-License-Identifier: Apache-2.0 */
/* test_random_networks.c - random layers with random parameters: built and run on the CPU and on the reference device,
 * which must agree with each other, with the network written as ONNX, and with the same network that has layers in the
 * place of its plugins; and random orders of calls with arguments that are often wrong, which must be refused. */
#include "net_rig.h"
#include "plugin_set.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { POOL = 48 };
typedef sinter_network_tensor *tensor;

typedef struct grower {
    sinter_network *net;
    uint64_t seed;
    tensor pool[POOL]; /* f32, finite for the data that tests use */
    uint32_t count;
    uint32_t added, refused;
    int is_plain; /* layers in the place of plugins, f32 in the place of bf16 */
} grower;

static uint32_t below(grower *g, uint32_t limit)
{
    return (uint32_t)test_below(&g->seed, limit);
}

static tensor pick(grower *g)
{
    return g->pool[below(g, g->count)];
}

static sinter_network_shape shape_of(tensor t)
{
    sinter_network_shape s = { 0 };
    sinter_error error = { 0 };
    if (sinter_network_tensor_shape(t, &s, &error) != SINTER_OK) printf("%s\n", error.text);
    return s;
}

/* Now and then in bf16, which holds these numbers: layers compute in the widest type of what they read. */
static sinter_dtype narrowed(grower *g, float *data, int64_t count)
{
    uint16_t *half = (uint16_t *)(void *)data;
    if (below(g, 3) || g->is_plain) return SINTER_DTYPE_F32;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &data[i], sizeof bits);
        const uint16_t top = (uint16_t)(bits >> 16);
        memcpy(&half[i], &top, sizeof top);
    }
    return SINTER_DTYPE_BF16;
}

static tensor constant(grower *g, uint32_t rank, const int64_t *d)
{
    float data[4096];
    sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = rank, .data = data };
    for (uint32_t i = 0; i < rank; i++) t.dim[i] = d[i];
    if (net_count(&t) > 4096) return NULL;
    for (int64_t i = 0; i < net_count(&t); i++) data[i] = (float)below(g, 17) / 8 - 1;
    t.dtype = narrowed(g, data, net_count(&t));
    return sinter_layer_output(sinter_add_constant(g->net, &t, 0, NULL), 0);
}

static void random_weights(grower *g, sinter_weights *w, int64_t count, float *room)
{
    for (int64_t i = 0; i < count && i < 4096; i++) room[i] = (float)below(g, 17) / 16 - 0.5f;
    *w = (sinter_weights){ narrowed(g, room, count < 4096 ? count : 4096), 0, count, room };
}

static sinter_layer *add_window(grower *g, tensor t, const sinter_network_shape *s, uint32_t what)
{
    static float room[4096], bias_room[64];
    const uint32_t spatial = s->rank > 2 ? s->rank - 2 : 1;
    const int64_t maps = 2 * (1 + below(g, 3)), channels = s->rank > 1 ? s->dim[1] : 1;
    const int64_t groups = channels % 2 == 0 && below(g, 3) == 0 ? 2 : 1;
    int64_t size[3], list[3], total = maps * channels / groups;
    sinter_weights kernel, bias;
    for (uint32_t i = 0; i < spatial && i < 3; i++) total *= size[i] = 1 + below(g, 3);
    if (spatial > 3 || total > 4096 || total < 1) return NULL;
    random_weights(g, &kernel, total, room);
    random_weights(g, &bias, maps, bias_room);
    const sinter_weights *b = below(g, 2) ? &bias : NULL;
    sinter_layer *l = what == 0   ? sinter_add_convolution(g->net, t, maps, spatial, size, &kernel, b, NULL)
                      : what == 1 ? sinter_add_deconvolution(g->net, t, maps, spatial, size, &kernel, b, NULL)
                                  : sinter_add_pooling(g->net, t, (sinter_pooling)below(g, 3), spatial, size, NULL);
    if (!l) return NULL;
    if (what < 2) (void)sinter_layer_set_int(l, "groups", groups, NULL);
    else (void)sinter_layer_set_real(l, "blend_factor", 0.25, NULL);
    static const char *const name[] = { "stride", "pre_padding", "post_padding", "dilation" };
    for (uint32_t k = 0; k < (what < 2 ? 4u : 3u); k++) {
        if (below(g, 2)) continue;
        for (uint32_t i = 0; i < spatial; i++) list[i] = (k == 0 || k == 3) + below(g, 2);
        (void)sinter_layer_set_ints(l, name[k], list, spatial, NULL);
    }
    (void)sinter_layer_set_int(l, "padding_mode", below(g, 6), NULL);
    if (what == 2) (void)sinter_layer_set_int(l, "average_count_excludes_padding", below(g, 2), NULL);
    return l;
}

static sinter_layer *add_move(grower *g, tensor t, const sinter_network_shape *s)
{
    int64_t a[SINTER_RANK_MAX], b[SINTER_RANK_MAX], c[SINTER_RANK_MAX];
    sinter_layer *l = NULL;
    const uint32_t rank = s->rank;
    switch (below(g, 5)) {
    case 0:
        for (uint32_t i = 0; i < rank; i++) a[i] = i;
        for (uint32_t i = 0; i + 1 < rank; i++) {
            const uint32_t k = i + below(g, rank - i);
            const int64_t kept = a[i];
            a[i] = a[k];
            a[k] = kept;
        }
        l = sinter_add_shuffle(g->net, t, NULL);
        (void)sinter_layer_set_ints(l, "first_transpose", a, rank, NULL);
        if (below(g, 2)) (void)sinter_layer_set_ints(l, "reshape", (int64_t[]){ -1, 2 }, 2, NULL);
        return l;
    case 1:
    case 2: {
        const int64_t mode = below(g, 5);
        for (uint32_t i = 0; i < rank; i++) {
            a[i] = mode ? (int64_t)below(g, 5) - 2 : (int64_t)below(g, 2);
            c[i] = mode ? (int64_t)below(g, 3) : below(g, 4) != 0;
            b[i] = mode || !c[i] ? 1 + (int64_t)below(g, 6) : s->dim[i] - a[i];
        }
        l = sinter_add_slice(g->net, t, rank, a, b, c, NULL);
        (void)sinter_layer_set_int(l, "mode", mode, NULL);
        return l;
    }
    case 3:
        for (uint32_t i = 0; i < rank; i++) {
            a[i] = (int64_t)below(g, 4) - 1;
            b[i] = below(g, 2);
        }
        return sinter_add_padding(g->net, t, below(g, rank + 1), a, b, NULL);
    default:
        for (uint32_t i = 0; i < rank; i++) a[i] = i < 2 ? s->dim[i] : 1 + (int64_t)below(g, 6);
        l = sinter_add_resize(g->net, t, NULL);
        (void)sinter_layer_set_ints(l, "size", a, rank, NULL);
        (void)sinter_layer_set_int(l, "mode", below(g, 2), NULL);
        (void)sinter_layer_set_int(l, "coordinate_transformation", below(g, 2), NULL);
        return l;
    }
}

static sinter_layer *add_norm(grower *g, tensor t, const sinter_network_shape *s)
{
    int64_t d[SINTER_RANK_MAX];
    const bool by_channel = below(g, 2) && s->rank > 2;
    for (uint32_t i = 0; i < s->rank; i++) d[i] = by_channel == (i == 1) ? s->dim[i] : 1;
    if (!by_channel)
        for (uint32_t i = 0; i + 1 < s->rank; i++) d[i] = 1;
    const uint32_t axes = by_channel ? (1u << s->rank) - 4 : 1u << (s->rank - 1);
    sinter_layer *l = sinter_add_normalization(g->net, t, constant(g, s->rank, d), constant(g, s->rank, d), axes, NULL);
    (void)sinter_layer_set_real(l, "epsilon", 0.01, NULL);
    return l;
}

static sinter_layer *add_plugin(grower *g, tensor t, const sinter_network_shape *s)
{
    const double scale = (double)below(g, 9) / 4 - 1, bias = (double)below(g, 5) / 8;
    const float scale_plain = (float)scale, bias_plain = (float)bias;
    const sinter_plugin_field field[] = { { "bias", SINTER_PLUGIN_REAL, 1, &bias },
                                          { "scale", SINTER_PLUGIN_REALS, 1, &scale } };
    const sinter_weights w = { SINTER_DTYPE_F32, 0, 1, &scale_plain }, b = { SINTER_DTYPE_F32, 0, 1, &bias_plain };
    switch (below(g, 3)) {
    case 0:
        if (g->is_plain) return sinter_add_scale(g->net, t, SINTER_SCALE_UNIFORM, &b, &w, NULL, 1, NULL);
        return sinter_add_plugin(g->net, "CustomPlugin", NULL, NULL, &t, 1, 1, field, 2, NULL);
    case 1: {
        if (!g->is_plain) return sinter_add_plugin(g->net, "CustomKernel", "2", "", &t, 1, 1, NULL, 0, NULL);
        const uint32_t last = s->rank ? 1u << (s->rank - 1) : 0;
        sinter_layer *mean = sinter_add_reduce(g->net, t, SINTER_REDUCTION_AVG, last, 1, NULL);
        return sinter_add_elementwise(g->net, t, sinter_layer_output(mean, 0), SINTER_ELEMENTWISE_SUB, NULL);
    }
    default:
        if (g->is_plain) return sinter_add_activation(g->net, t, SINTER_ACTIVATION_RELU, NULL);
        return sinter_add_plugin(g->net, "CustomQuantized", NULL, "quant", &t, 1, 1, NULL, 0, NULL);
    }
}

static sinter_layer *add_random(grower *g)
{
    static const sinter_activation smooth[] = { SINTER_ACTIVATION_RELU,     SINTER_ACTIVATION_SIGMOID,
                                                SINTER_ACTIVATION_TANH,     SINTER_ACTIVATION_LEAKY_RELU,
                                                SINTER_ACTIVATION_SOFTSIGN, SINTER_ACTIVATION_SOFTPLUS,
                                                SINTER_ACTIVATION_CLIP,     SINTER_ACTIVATION_GELU_ERF };
    static const sinter_unary unary[] = { SINTER_UNARY_ABS, SINTER_UNARY_NEG, SINTER_UNARY_SIN, SINTER_UNARY_ATAN,
                                          SINTER_UNARY_ERF };
    static const sinter_elementwise binary[] = { SINTER_ELEMENTWISE_SUM, SINTER_ELEMENTWISE_SUB,
                                                 SINTER_ELEMENTWISE_PROD, SINTER_ELEMENTWISE_MAX,
                                                 SINTER_ELEMENTWISE_MIN };
    tensor t = pick(g), u = pick(g);
    const sinter_network_shape s = shape_of(t);
    const uint32_t mask = s.rank ? 1u << below(g, s.rank) : 0;
    const int64_t wide[2] = { s.rank ? s.dim[s.rank - 1] : 1, 1 + (int64_t)below(g, 6) };
    switch (below(g, 16)) {
    case 0:
    case 1: return add_window(g, t, &s, below(g, 2));
    case 2: return add_window(g, t, &s, 2);
    case 3: return sinter_add_activation(g->net, t, smooth[below(g, 8)], NULL);
    case 4: return sinter_add_unary(g->net, t, unary[below(g, 5)], NULL);
    case 5: return sinter_add_elementwise(g->net, t, u, binary[below(g, 5)], NULL);
    case 6: return sinter_add_reduce(g->net, t, (sinter_reduction)(below(g, 2) * 4), mask, below(g, 2), NULL);
    case 7: return sinter_add_softmax(g->net, t, mask, NULL);
    case 8: return sinter_add_concatenation(g->net, (tensor[]){ t, u, t }, 3, below(g, 4), NULL);
    case 9:
        return sinter_add_matrix_multiply(g->net, t, SINTER_MATRIX_NONE, below(g, 2) ? u : constant(g, 2, wide),
                                          (sinter_matrix)below(g, 3), NULL);
    case 10: return s.rank ? add_norm(g, t, &s) : NULL;
    case 11: return sinter_add_topk(g->net, t, SINTER_TOPK_MAX, 1, mask, SINTER_DTYPE_I32, NULL);
    case 12:
    case 13: return s.rank ? add_plugin(g, t, &s) : NULL;
    default: return s.rank ? add_move(g, t, &s) : NULL;
    }
}

/* Adds a layer, and takes it out again if it has no valid shape. */
static void grow(grower *g)
{
    sinter_layer *l = add_random(g);
    sinter_network_shape s;
    sinter_error error = { 0 };
    if (!l) return;
    bool fits = sinter_network_tensor_shape(sinter_layer_output(l, 0), &s, &error) == SINTER_OK;
    if (!fits) CHECK(error.text[0] != 0);
    int64_t total = 1;
    for (uint32_t i = 0; fits && i < s.rank; i++) total *= s.dim[i];
    if (!fits || total < 1 || total > 4096 || g->count == POOL) {
        if (!CHECK_EQ(sinter_network_remove_layer(g->net, l, &error), SINTER_OK)) printf("%s\n", error.text);
        g->refused++;
        return;
    }
    g->added++;
    g->pool[g->count++] = sinter_layer_output(l, 0);
}

/* As ONNX and back: the reference computes the same. */
static void check_written(const grower *g, long n, const sinter_build_options *o, const net_result *plain)
{
    char path[] = "/tmp/sinter_network_XXXXXX", why[256] = "";
    sinter_error error = { 0 };
    const int file = mkstemp(path);
    if (!CHECK(file >= 0)) return;
    (void)close(file);
    (void)unlink(path);
    net_result again;
    sinter_status s = sinter_network_write_onnx(g->net, path, &error);
    if (s == SINTER_OK) s = net_run_file(path, o, "reference", g->seed, &again, &error);
    if (CHECK_EQ(s, SINTER_OK)) {
        const double gap = net_difference(&again, plain, why);
        if (!CHECK(gap < 1e-5)) printf("network %ld, written: %g at %s\n", n, gap, why);
        net_result_free(&again);
    } else {
        printf("network %ld, written: %s\n", n, error.text);
    }
    (void)unlink(path);
}

/* A network with its last layers marked; returns how many. */
static uint32_t grown(grower *g, long n, int is_plain, const sinter_env_options *env)
{
    sinter_error error = { 0 };
    *g = (grower){ .seed = (uint64_t)n * 977 + 5, .is_plain = is_plain };
    CHECK_EQ(sinter_network_create(env, &g->net, &error), SINTER_OK);
    const int64_t image[] = { 1 + below(g, 2), 2, 3 + below(g, 4), 4 }, rows[] = { 2, 4 };
    g->pool[g->count++] = sinter_network_add_input(g->net, "x", SINTER_DTYPE_F32, 4, image, NULL, &error);
    g->pool[g->count++] = sinter_network_add_input(g->net, "y", SINTER_DTYPE_F32, 2, rows, NULL, &error);
    for (int i = 0; i < 10; i++) grow(g);
    uint32_t marked = 0;
    for (uint32_t i = g->count; i-- > 2 && marked < 4;)
        marked += sinter_network_mark_output(g->net, g->pool[i], &error) == SINTER_OK;
    return marked;
}

/* The network runs like `plain`, up to the names of layers. */
static void check_runs(const grower *g, long n, const sinter_build_options *o, const char *device, net_result *plain)
{
    net_result got;
    sinter_error error = { 0 };
    char why[256] = "";
    if (!CHECK_EQ(net_run(g->net, o, device, NULL, 0, g->seed, &got, &error), SINTER_OK)) {
        printf("network %ld, %s: %s\n", n, device, error.text);
        return;
    }
    const double gap = net_difference(&got, plain, why);
    if (!CHECK(gap < 1e-3)) printf("network %ld, %s: %g at %s\n", n, device, gap, why);
    net_result_free(&got);
}

static void random_networks(void)
{
    uint32_t added = 0, refused = 0;
    sinter_env_options env = SINTER_ENV_OPTIONS;
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    env.plugins = plugin_set_shared();
    o.env = &env;
    const long networks = test_scale(120, 3000);
    for (long n = 0; n < networks; n++) {
        grower g, same;
        net_result plain;
        sinter_error error = { 0 };
        if (grown(&g, n, 0, &env)) {
            (void)grown(&same, n, 1, NULL);
            CHECK_EQ(g.count, same.count);
            if (CHECK_EQ(net_run(same.net, NULL, "reference", NULL, 0, g.seed, &plain, &error), SINTER_OK)) {
                check_runs(&g, n, &o, "cpu", &plain);
                check_runs(&g, n, &o, "reference", &plain);
                check_written(&g, n, &o, &plain);
                net_result_free(&plain);
            } else {
                printf("network %ld: %s\n", n, error.text);
            }
            sinter_network_destroy(same.net);
        }
        sinter_network_destroy(g.net);
        added += g.added;
        refused += g.refused;
    }
    CHECK(added > networks * 3);
    CHECK(refused > 0);
    printf("%u layers, %u refused\n", added, refused);
}

/* ---- orders of calls ---- */

enum { HANDLES = 24 };
typedef struct caller {
    uint64_t seed;
    sinter_network *net[2];
    tensor t[HANDLES];
    sinter_layer *layer[HANDLES];
    sinter_loop *loop[2];
    sinter_conditional *conditional[2];
} caller;

static uint32_t any(caller *c, uint32_t limit)
{
    return (uint32_t)test_below(&c->seed, limit);
}

static void keep(caller *c, sinter_layer *l)
{
    if (!l) return;
    c->layer[any(c, HANDLES)] = l;
    if (sinter_layer_output_count(l)) c->t[any(c, HANDLES)] = sinter_layer_output(l, 0);
}

/* One call; its arguments are NULL, foreign, removed or out of range now and then. */
static void call(caller *c)
{
    static const char *const name[] = { "op", "type", "axes", "stride", "kernel", "nothing", "shape", "reshape", "k" };
    sinter_error error = { 0 };
    sinter_network *net = any(c, 12) ? c->net[any(c, 8) == 0] : NULL;
    tensor in[3] = { c->t[any(c, HANDLES)], c->t[any(c, HANDLES)], c->t[any(c, HANDLES)] };
    sinter_layer *l = c->layer[any(c, HANDLES)];
    const int64_t d[4] = { (int64_t)any(c, 6) - 2, (int64_t)any(c, 6), 2, 3 };
    const char *what = any(c, 20) ? name[any(c, 9)] : NULL;
    float data[64] = { 0 };
    const sinter_weights w = { (sinter_dtype)any(c, 3), any(c, 2), any(c, 64), any(c, 9) ? data : NULL };
    sinter_network_shape shape;
    sinter_buffer file = { 0 };
    int64_t out[2];
    const sinter_plugin_field field = { any(c, 9) ? "k" : what, (sinter_plugin_type)any(c, 8), any(c, 3),
                                        any(c, 9) ? d : NULL };
    const uint32_t k = any(c, HANDLES);
    switch (any(c, 28)) {
    case 0:
        c->t[k] = sinter_network_add_input(net, any(c, 9) ? "x" : "y", SINTER_DTYPE_F32, any(c, 4), d, NULL, &error);
        break;
    case 1: keep(c, sinter_network_add(net, (sinter_layer_kind)any(c, 60), in, any(c, 4), &error)); break;
    case 2: keep(c, sinter_add_activation(net, in[0], (sinter_activation)any(c, 16), &error)); break;
    case 3: keep(c, sinter_add_elementwise(net, in[0], in[1], (sinter_elementwise)any(c, 16), &error)); break;
    case 4:
        keep(c, sinter_add_op(net, "", any(c, 2) ? "Relu" : "Pad", any(c, 30), in, any(c, 4), any(c, 3), &error));
        break;
    case 5: (void)sinter_network_mark_output(net, in[0], &error); break;
    case 6: (void)sinter_network_unmark_output(net, in[0], &error); break;
    case 7: (void)sinter_network_mark_debug(net, in[0], any(c, 2), &error); break;
    case 8: (void)sinter_network_mark_shape_output(net, in[0], any(c, 2), &error); break;
    case 9: (void)sinter_network_remove_layer(net, l, &error); break;
    case 10: (void)sinter_network_remove_input(net, in[0], &error); break;
    case 11: (void)sinter_layer_set_input(l, any(c, 4), in[0], &error); break;
    case 12: (void)sinter_layer_set_int(l, what, (int64_t)any(c, 40) - 4, &error); break;
    case 13: (void)sinter_layer_set_ints(l, what, d, any(c, 5), &error); break;
    case 14: (void)sinter_layer_set_weights(l, what, &w, &error); break;
    case 15: (void)sinter_layer_set_text(l, what, "tanh", &error); break;
    case 16:
        if (sinter_network_tensor_shape(in[0], &shape, &error) == SINTER_OK) CHECK(shape.rank <= SINTER_RANK_MAX);
        break;
    case 17:
        if (sinter_network_tensor_values(in[0], out, 2, &error) != SINTER_OK) CHECK(error.text[0]);
        break;
    case 18: (void)sinter_network_tensor_set_name(in[0], any(c, 5) ? "x" : "", &error); break;
    case 19: (void)sinter_network_tensor_set_shape(in[0], any(c, 4), d, &error); break;
    case 20: (void)sinter_layer_set_output_type(l, any(c, 2), (sinter_dtype)any(c, 26), &error); break;
    case 21: keep(c, sinter_loop_add_recurrence(c->loop[any(c, 2)], in[0], &error)); break;
    case 22:
        keep(c, sinter_loop_add_output(c->loop[any(c, 2)], in[0], (sinter_loop_output)any(c, 4), 0, &error));
        break;
    case 23:
        keep(c, sinter_loop_add_trip_limit(c->loop[any(c, 2)], in[0], (sinter_trip_limit)any(c, 3), &error));
        break;
    case 24:
        keep(c, any(c, 3)   ? sinter_conditional_add_input(c->conditional[any(c, 2)], in[0], &error)
                : any(c, 2) ? sinter_conditional_set_condition(c->conditional[any(c, 2)], in[0], &error)
                            : sinter_conditional_add_output(c->conditional[any(c, 2)], in[0], in[1], &error));
        break;
    case 25:
        keep(c, sinter_add_plugin(net, any(c, 5) ? "CustomPairs" : "", any(c, 3) ? NULL : "1", any(c, 2) ? NULL : "",
                                  in, any(c, 4), any(c, 4), &field, any(c, 2), &error));
        break;
    case 26: (void)sinter_layer_set_field(l, any(c, 9) ? &field : NULL, &error); break;
    default:
        if (any(c, 4)) break;
        if (sinter_network_build(net, NULL, &file, &error) != SINTER_OK) CHECK(error.text[0] != 0);
        sinter_buffer_free(&file);
    }
}

static void orders_of_calls(void)
{
    sinter_env_options env = SINTER_ENV_OPTIONS;
    env.plugins = plugin_set_shared();
    const long rounds = test_scale(150, 5000);
    for (long n = 0; n < rounds; n++) {
        caller c = { .seed = (uint64_t)n };
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(sinter_network_create(i ? NULL : &env, &c.net[i], NULL), SINTER_OK);
            c.t[i] = sinter_network_add_input(c.net[i], "first", SINTER_DTYPE_F32, 2, (int64_t[]){ 2, 3 }, NULL, NULL);
            c.loop[i] = sinter_network_add_loop(c.net[i], NULL);
            c.conditional[i] = sinter_network_add_conditional(c.net[i], NULL);
        }
        for (int i = 0; i < 60; i++) call(&c);
        for (int i = 0; i < 2; i++) sinter_network_destroy(c.net[i]);
    }
}

static const test tests[] = { T(random_networks), T(orders_of_calls), { 0 } };
TEST_MAIN(tests)

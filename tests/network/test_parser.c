/* SPDX-License-Identifier: Apache-2.0 */
/* test_parser.c - models as networks: names, kinds and parameters; networks that are copied call by call; everything
 * that is wrong at once. */
#include "model_text.h"
#include "net_rig.h"
#include "test.h"

#include <math.h>

static sinter_error error;

static sinter_network *parsed(const char *text, sinter_parser **parser)
{
    model_text m;
    sinter_network *net = NULL;
    error = (sinter_error){ 0 };
    model_read(text, &m);
    CHECK_EQ(sinter_network_create(NULL, &net, &error), SINTER_OK);
    CHECK_EQ(sinter_parser_create(net, parser, &error), SINTER_OK);
    const sinter_status s = sinter_parser_parse_memory(*parser, m.model.at, m.model.size, &error);
    if (s && !sinter_parser_error_count(*parser)) CHECK_EQ(s, SINTER_OK);
    free(m.model.at); /* the network has a copy */
    return net;
}

/* ---- a copy by calls ---- */

static bool copy_param(const sinter_layer *from, sinter_layer *to, const sinter_param *p)
{
    int64_t i = 0, list[SINTER_PARAM_INTS_MAX];
    double r = 0, reals[SINTER_PARAM_INTS_MAX];
    const char *text = NULL;
    sinter_weights w;
    uint32_t count = 0;
    switch (p->kind) {
    case SINTER_PARAM_REAL:
        if (sinter_layer_get_real(from, p->name, &r, &error)) return false;
        return r == p->initial || sinter_layer_set_real(to, p->name, r, &error) == SINTER_OK;
    case SINTER_PARAM_INTS:
        if (sinter_layer_get_ints(from, p->name, list, SINTER_PARAM_INTS_MAX, &count, &error)) return false;
        return (!count && *p->name != 's') || sinter_layer_set_ints(to, p->name, list, count, &error) == SINTER_OK;
    case SINTER_PARAM_REALS:
        if (sinter_layer_get_reals(from, p->name, reals, SINTER_PARAM_INTS_MAX, &count, &error)) return false;
        return !count || sinter_layer_set_reals(to, p->name, reals, count, &error) == SINTER_OK;
    case SINTER_PARAM_TEXT:
        if (sinter_layer_get_text(from, p->name, &text, &error)) return false;
        return sinter_layer_set_text(to, p->name, text, &error) == SINTER_OK;
    case SINTER_PARAM_WEIGHTS:
        if (sinter_layer_get_weights(from, p->name, &w, &error)) return false;
        return sinter_layer_set_weights(to, p->name, &w, &error) == SINTER_OK;
    default:
        if (sinter_layer_get_int(from, p->name, &i, &error)) return false;
        return (p->kind == SINTER_PARAM_TYPE && !i) || sinter_layer_set_int(to, p->name, i, &error) == SINTER_OK;
    }
}

enum { TENSORS = 4096 };
typedef struct pair {
    sinter_network_tensor *from, *to;
} pair;
static pair known[TENSORS];
static uint32_t known_count;

static sinter_network_tensor *copy_of(const sinter_network_tensor *t)
{
    for (uint32_t i = 0; i < known_count; i++)
        if (known[i].from == t) return known[i].to;
    return NULL;
}

static sinter_network *copied(sinter_network *from)
{
    sinter_network *to = NULL;
    known_count = 0;
    CHECK_EQ(sinter_network_create(NULL, &to, &error), SINTER_OK);
    for (uint32_t i = 0; i < sinter_network_input_count(from); i++) {
        sinter_network_tensor *t = sinter_network_input(from, i);
        sinter_network_shape s;
        CHECK_EQ(sinter_network_tensor_shape(t, &s, &error), SINTER_OK);
        sinter_network_tensor *made =
            sinter_network_add_input(to, sinter_network_tensor_name(t), s.dtype, s.rank, s.dim, s.dim_name, &error);
        known[known_count++] = (pair){ t, made };
    }
    for (uint32_t i = 0; i < sinter_network_layer_count(from); i++) {
        sinter_layer *layer = sinter_network_layer(from, i), *made;
        sinter_network_tensor *in[16];
        const uint32_t count = sinter_layer_input_count(layer);
        for (uint32_t k = 0; k < count && k < 16; k++) in[k] = copy_of(sinter_layer_input(layer, k));
        const char *type = NULL, *domain = NULL;
        int64_t version = 0;
        if (sinter_layer_operator(layer, &domain, &type, &version) == SINTER_OK)
            made = sinter_add_op(to, domain, type, version, in, count, sinter_layer_output_count(layer), &error);
        else made = sinter_network_add(to, sinter_layer_get_kind(layer), in, count, &error);
        if (!CHECK(made)) printf("%s: %s\n", sinter_layer_name(layer), error.text);
        const sinter_param *p;
        for (uint32_t k = 0; made && (p = sinter_layer_param(layer, k)); k++)
            if (!CHECK(copy_param(layer, made, p)))
                printf("%s.%s: %s\n", sinter_layer_name(layer), p->name, error.text);
        for (uint32_t k = 0; k < sinter_layer_output_count(layer); k++) {
            sinter_network_tensor *t = sinter_layer_output(layer, k), *twin = sinter_layer_output(made, k);
            CHECK_EQ(sinter_network_tensor_set_name(twin, sinter_network_tensor_name(t), &error), SINTER_OK);
            known[known_count++] = (pair){ t, twin };
        }
    }
    for (uint32_t i = 0; i < sinter_network_output_count(from); i++)
        CHECK_EQ(sinter_network_mark_output(to, copy_of(sinter_network_output(from, i)), &error), SINTER_OK);
    return to;
}

/* The model, the parsed network and a copy of that by calls give the same numbers. */
static void same(const char *text)
{
    model_text m;
    sinter_parser *parser = NULL;
    sinter_network *net = parsed(text, &parser), *twin = copied(net);
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    net_result direct, layers, calls;
    char why[256];
    model_read(text, &m);
    const sinter_profile profile = { m.range, m.count_input };
    o.profile = &profile;
    o.profile_count = m.count_symbol ? 1 : 0;
    CHECK_EQ(net_run_model(m.model.at, m.model.size, &o, "cpu", 5, &direct, &error), SINTER_OK);
    if (!CHECK_EQ(net_run(net, &o, "cpu", NULL, 0, 5, &layers, &error), SINTER_OK)) printf("%s\n", error.text);
    if (!CHECK_EQ(net_run(twin, &o, "cpu", NULL, 0, 5, &calls, &error), SINTER_OK)) printf("%s\n", error.text);
    if (!CHECK(net_difference(&direct, &layers, why) < 1e-6)) printf("%s: %s\n", text, why);
    if (!CHECK(net_difference(&direct, &calls, why) < 1e-6)) printf("%s: %s\n", text, why);
    net_result_free(&direct);
    net_result_free(&layers);
    net_result_free(&calls);
    sinter_parser_destroy(parser);
    sinter_network_destroy(net);
    sinter_network_destroy(twin);
    free(m.model.at);
}

/* A bottleneck with a shortcut that is projected, and the classifier of a network of such blocks. */
static void residual_network(void)
{
    same(
        "in x f32 1,3,8,8; a = Conv x %8,3,3,3 %8 pads=[1,1,1,1] strides=[2,2]; b = Relu a;"
        "p = MaxPool b kernel_shape=[2,2] strides=[2,2]; c = Conv p %4,8,1,1 %4; d = Relu c;"
        "e = Conv d %4,4,3,3 %4 pads=[1,1,1,1]; f = Relu e; g = Conv f %16,4,1,1 %16; s = Conv p %16,8,1,1;"
        "h = Add g s; i = Relu h; j = GlobalAveragePool i; k = Flatten j; y = Gemm k %16,10 %10; z = Softmax y axis=-1;"
        "out y; out z");
}

/* A block with attention, as exporters write one of BERT and one of GPT-2: a causal mask and both norms. */
static void transformer_block(void)
{
    same("sym S 1 4 6; in x f32 1,S,8; n = LayerNormalization x %8 %8 axis=-1;"
         "q = MatMul n %8,8; k = MatMul n %8,8; v = MatMul n %8,8; qb = Add q %8;"
         "q4 = Reshape qb {0,0,2,4}; k4 = Reshape k {0,0,2,4}; v4 = Reshape v {0,0,2,4};"
         "qt = Transpose q4 perm=[0,2,1,3]; kt = Transpose k4 perm=[0,2,3,1]; vt = Transpose v4 perm=[0,2,1,3];"
         "w = MatMul qt kt; c = Div w #2; p = Softmax c axis=-1; o = MatMul p vt;"
         "ot = Transpose o perm=[0,2,1,3]; of = Reshape ot {0,0,8}; pr = MatMul of %8,8; r = Add pr x;"
         "m = LayerNormalization r %8 %8 axis=-1; u = MatMul m %8,16; e = Div u #1.4142135; f = Erf e; g = Add f #1;"
         "h = Mul u g; i = Mul h #0.5; d = MatMul i %16,8; y = Add d r; t = Tanh y; out y; out t");
}

/* Quantised weights and activations, a convolution whose kernel is computed, activations with parameters. */
static void quantised_network(void)
{
    const struct {
        const char *name;
        sinter_layer_kind kind;
    } rows[] = { { "q", SINTER_LAYER_QUANTIZE },      { "d", SINTER_LAYER_DEQUANTIZE },
                 { "wq", SINTER_LAYER_QUANTIZE },     { "c", SINTER_LAYER_CONVOLUTION },
                 { "e", SINTER_LAYER_ACTIVATION },    { "f", SINTER_LAYER_PARAMETRIC_RELU },
                 { "g", SINTER_LAYER_ELEMENTWISE },   { "h", SINTER_LAYER_ACTIVATION },
                 { "i", SINTER_LAYER_ACTIVATION },    { "t", SINTER_LAYER_TOPK },
                 { "u", SINTER_LAYER_DECONVOLUTION }, { "y", SINTER_LAYER_SHUFFLE } };
    const char *const text =
        "sym N 1 2 3; in x f32 N,3,6,6; z = Cast {3} to=3; q = QuantizeLinear x #0.02 z; d = DequantizeLinear q #0.02 "
        "z;"
        "one = Cast {1,1,1,1} to=1; s = Mul one #0.01; wq = QuantizeLinear %4,3,3,3 s axis=0; wd = DequantizeLinear wq "
        "s "
        "axis=0; c = Conv d wd %4 pads=[1,1,1,1] strides=[2,2]; e = Clip c #-1 #6; f = PRelu e %4,1,1; g = Pow f #2; "
        "h = Selu g gamma=1.25; i = Softplus h; t, k = TopK i {2} axis=1; v = Mul wd #0.5; u = ConvTranspose i v;"
        "y = Flatten t; out y; out k; out u";
    sinter_parser *parser = NULL;
    same(text);
    sinter_network *net = parsed(text, &parser);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const sinter_layer_kind kind =
            sinter_layer_get_kind(sinter_network_tensor_producer(sinter_network_find_tensor(net, rows[i].name)));
        if (!CHECK_EQ(kind, rows[i].kind)) printf("%s\n", rows[i].name);
    }
    sinter_parser_destroy(parser);
    sinter_network_destroy(net);
}

/* Products with a sum behind them, and what stays an operator but is called as TensorRT's parser calls it. */
static void products_and_names_of_kinds(void)
{
    const struct {
        const char *name;
        sinter_layer_kind kind, nearest;
    } rows[] = { { "a", SINTER_LAYER_ELEMENTWISE, SINTER_LAYER_ELEMENTWISE },
                 { "b", SINTER_LAYER_MATRIX_MULTIPLY, SINTER_LAYER_MATRIX_MULTIPLY },
                 { "c", SINTER_LAYER_OP, SINTER_LAYER_MATRIX_MULTIPLY },
                 { "d", SINTER_LAYER_SLICE, SINTER_LAYER_SLICE },
                 { "e", SINTER_LAYER_RESIZE, SINTER_LAYER_RESIZE },
                 { "y", SINTER_LAYER_OP, SINTER_LAYER_OP } };
    const char *const text = "in x f32 3,4; a = Gemm x %5,4 %5 transB=1; b = Gemm a %5,2; c = Gemm b %2,3 alpha=0.5;"
                             "d = Slice c {0} {2} {1}; e = Resize d - - {6,3} mode=nearest; y = Det c; out e; out y";
    const char *const run = "in x f32 3,4; a = Gemm x %5,4 %5 transB=1; b = Gemm a %3,2 %2 transA=1;"
                            "c = Gemm b %2,3 alpha=0.5; out c";
    sinter_parser *parser = NULL;
    same(run);
    sinter_network *net = parsed(text, &parser);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const sinter_layer *layer = sinter_network_tensor_producer(sinter_network_find_tensor(net, rows[i].name));
        if (!CHECK_EQ(sinter_layer_get_kind(layer), rows[i].kind)) printf("%s\n", rows[i].name);
        if (!CHECK_EQ(sinter_layer_nearest_kind(layer), rows[i].nearest)) printf("%s\n", rows[i].name);
    }
    CHECK_EQ(sinter_layer_nearest_kind(NULL), SINTER_LAYER_OP);
    sinter_parser_destroy(parser);
    sinter_network_destroy(net);
}

/* Slices and resizes by numbers, of an input with fixed sizes and of one with a size that is free. */
static void slices_and_resizes(void)
{
    static const char *const slices[] = { "{1} {9} {2}",
                                          "{-3,1} {-1,99} {2,-1} {1,2}",
                                          "{5,-1} {-99,0} {2,1} {-2,-1}",
                                          "{4} {2} {2}",
                                          "{3} {-1} {-2} {9}",
                                          "{0,9} {2,-7} {1,3} {2,-3}",
                                          "{-99,2} {-1,4} {3,1}" },
                             *const modes[] = { "nearest", "linear", "cubic" },
                             *const rounds[] = { "floor", "ceil", "round_prefer_floor", "round_prefer_ceil" },
                             *const wheres[] = { "align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel" };
    static const char *const inputs[] = { "in x f32 2,4,6,5", "sym N 1 2 3; in x f32 N,4,6,5" };
    char text[256];
    for (uint32_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        for (uint32_t k = 0; k < sizeof slices / sizeof *slices; k++) {
            snprintf(text, sizeof text, "%s; y = Slice x %s; out y", inputs[i], slices[k]);
            same(text);
        }
    }
    for (uint32_t k = 0; k < 48; k++) {
        snprintf(text, sizeof text,
                 "%s; s = Abs {2,4,9,3}; y = Resize x - - %s antialias=0 mode=%s nearest_mode=%s "
                 "coordinate_transformation_mode=%s "
                 "exclude_outside=%u; out y",
                 inputs[0], k & 4 ? "s" : "{2,4,9,3}", modes[k % 3], rounds[k / 3 % 4], wheres[k / 12], k & 1);
        same(text);
    }
}

static void other_operators(void)
{
    same("in x f32 2,6; a, b = Split x axis=1 num_outputs=2; c = Clip a #-1 #1; d = ReduceL2 b {1}; e = Mul c d;"
         "f = Selu e gamma=1.25; g = HardSigmoid f alpha=0.25; h = Pad g {0,1,0,1}; y = Concat h x axis=1; out y");
    same("sym N 1 3 5; in x f32 N,4; s = Shape x; z = ConstantOfShape s; a = Add x z; r = ReduceMean a {1} keepdims=0;"
         "t = Unsqueeze r {1}; y = Sub a t; w = Cast y to=1; out y; out w");
}

/* ---- names, parameters, errors ---- */

static void names_and_kinds(void)
{
    sinter_parser *parser = NULL;
    sinter_network *net = parsed("in x f32 1,3,4,4; a = Conv x %2,3,3,3 %2 strides=[2,2]; y = LeakyRelu a alpha=0.25;"
                                 "z = ReduceLogSum y; out y; out z",
                                 &parser);
    CHECK_EQ(sinter_network_layer_count(net), 3);
    sinter_layer *conv = sinter_network_layer(net, 0), *leaky = sinter_network_layer(net, 1),
                 *other = sinter_network_layer(net, 2);
    int64_t list[4];
    uint32_t count = 0;
    double alpha = 0;
    sinter_weights kernel;
    CHECK_EQ(sinter_layer_get_kind(conv), SINTER_LAYER_CONVOLUTION);
    CHECK_EQ(sinter_layer_get_ints(conv, "stride", list, 4, &count, &error), SINTER_OK);
    CHECK_EQ(count, 2);
    CHECK_EQ(list[0], 2);
    CHECK_EQ(sinter_layer_get_weights(conv, "kernel", &kernel, &error), SINTER_OK);
    CHECK_EQ(kernel.count, 54);
    CHECK_STR(sinter_network_tensor_name(sinter_layer_output(conv, 0)), "a");
    CHECK_EQ(sinter_layer_get_kind(leaky), SINTER_LAYER_ACTIVATION);
    CHECK_EQ(sinter_layer_get_real(leaky, "alpha", &alpha, &error), SINTER_OK);
    CHECK_EQ_F(alpha, 0.25);
    CHECK_EQ(sinter_layer_get_kind(other), SINTER_LAYER_OP);
    CHECK_STR(sinter_network_tensor_name(sinter_network_output(net, 0)), "y");
    CHECK_EQ(sinter_parser_subgraph_count(parser), 1);
    uint32_t nodes[8], is_supported = 0;
    CHECK_EQ(sinter_parser_subgraph(parser, 0, nodes, 8, &count, &is_supported), SINTER_OK);
    CHECK_EQ(count, 3);
    CHECK_EQ(is_supported, 1);
    sinter_parser_destroy(parser);
    sinter_network_destroy(net);
}

static void everything_that_is_wrong(void)
{
    sinter_parser *parser = NULL;
    sinter_network *net =
        parsed("in x f32 2,3; a = Relu x; b = Nonsense a; c = Neg b; d = Exp x; e = Concat d x axis=7;"
               "y = Abs a; out y",
               &parser);
    sinter_parser_error e;
    CHECK_HAS(error.text, "2 problems in the model");
    CHECK_EQ(sinter_parser_error_count(parser), 2);
    CHECK_EQ(sinter_parser_error_at(parser, 0, &e), SINTER_OK);
    CHECK_EQ(e.status, SINTER_UNSUPPORTED);
    CHECK_EQ(e.node, 1);
    CHECK_STR(e.op_type, "Nonsense");
    CHECK_HAS(e.message, "the operator is not supported");
    CHECK_EQ(sinter_parser_error_at(parser, 1, &e), SINTER_OK);
    CHECK_STR(e.op_type, "Concat");
    CHECK_EQ(sinter_parser_error_at(parser, 2, &e), SINTER_INVALID_ARG);
    uint32_t first = 0, bad = 0, good = 0;
    for (uint32_t i = 0; i < sinter_parser_subgraph_count(parser); i++) {
        uint32_t count = 0, is_supported = 0;
        CHECK_EQ(sinter_parser_subgraph(parser, i, &first, 1, &count, &is_supported), SINTER_OK);
        *(is_supported ? &good : &bad) += count;
    }
    CHECK_EQ(bad, 3); /* b, c that reads it, and e */
    CHECK_EQ(good, 3);
    sinter_parser_clear_errors(parser);
    CHECK_EQ(sinter_parser_error_count(parser), 0);
    sinter_parser_destroy(parser);
    sinter_network_destroy(net);
}

/* Layers of a model can be changed and removed as others can. */
static void a_model_that_is_changed(void)
{
    sinter_parser *parser = NULL;
    sinter_network *net = parsed("in x f32 2,3; a = Relu x; b = Exp a; y = Neg b; out y", &parser);
    sinter_layer *relu = sinter_network_layer(net, 0), *middle = sinter_network_layer(net, 1),
                 *last = sinter_network_layer(net, 2);
    CHECK_EQ(sinter_layer_set_input(last, 0, sinter_layer_output(relu, 0), &error), SINTER_OK);
    CHECK_EQ(sinter_network_remove_layer(net, middle, &error), SINTER_OK);
    CHECK_EQ(sinter_layer_set_text(relu, "type", "sigmoid", &error), SINTER_OK);
    float x[6] = { 0, 1, -1, 2, -2, 3 };
    const net_data data = { "x", { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 2, 3 }, .data = x } };
    net_result r;
    if (CHECK_EQ(net_run(net, NULL, "cpu", &data, 1, 1, &r, &error), SINTER_OK))
        for (int i = 0; i < 6; i++) CHECK_NEAR(net_value(&r.out[0], i), -1 / (1 + exp(-(double)x[i])), 1e-6);
    net_result_free(&r);
    sinter_parser_destroy(parser);
    sinter_network_destroy(net);
}

static void damaged_models(void)
{
    model_text m;
    model_read("in x f32 1,3,4,4; a = Conv x %2,3,3,3 %2; y = Relu a; out y", &m);
    uint64_t seed = 11;
    for (uint32_t i = 0; i < 300; i++) {
        sinter_network *net = NULL;
        sinter_parser *parser = NULL;
        uint8_t *copy = malloc(m.model.size);
        memcpy(copy, m.model.at, m.model.size);
        for (uint32_t k = 0; k < 1 + i % 4; k++)
            copy[test_below(&seed, m.model.size)] ^= (uint8_t)(1u << test_below(&seed, 8));
        CHECK_EQ(sinter_network_create(NULL, &net, &error), SINTER_OK);
        CHECK_EQ(sinter_parser_create(net, &parser, &error), SINTER_OK);
        error = (sinter_error){ 0 };
        const sinter_status s = sinter_parser_parse_memory(parser, copy, m.model.size - i % 3, &error);
        if (s) CHECK(error.text[0] != 0);
        free(copy);
        sinter_parser_destroy(parser);
        sinter_network_destroy(net);
    }
    free(m.model.at);
}

static const test tests[] = { T(residual_network),
                              T(transformer_block),
                              T(quantised_network),
                              T(products_and_names_of_kinds),
                              T(slices_and_resizes),
                              T(other_operators),
                              T(names_and_kinds),
                              T(everything_that_is_wrong),
                              T(a_model_that_is_changed),
                              T(damaged_models),
                              { 0 } };
TEST_MAIN(tests)

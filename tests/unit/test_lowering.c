/* SPDX-License-Identifier: Apache-2.0 */
/* test_lowering.c - products in 8 bits by permission: what is inserted around them, and through the builder with
 * samples, ranges, a budget that is kept, and one that permits nothing. */
#include "faulty.h"
#include "graph_eval.h"
#include "model_text.h"
#include "onnx_bytes.h"
#include "opt/pipeline.h"
#include "sinter/sinter.h"
#include "test.h"
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>

static const char *const net = "input %1: f32[2,3,6,6] name=\"x\"\n"
                               "const %2: f32[8,3,3,3] = {FILTER}\n"
                               "const %3: f32[16,8] = {MATRIX}\n"
                               "%4 = conv(%1, %2) stride=[1,1] dilation=[1,1] pad=[1,1,1,1]\n"
                               "%5 = relu(%4)\n"
                               "%6 = reshape(%5) shape=[36,16]\n"
                               "%7 = matmul(%6, %3)\n"
                               "%8 = matmul(%6, %3)\n"
                               "output %7 name=\"y\"\noutput %8 name=\"z\"\n";

static void put_numbers(text *t, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) text_printf(t, "%s%g", i ? "," : "", 0.05 * ((i * 7919u) % 41) - 1);
}

static void parse(env *e, ir_graph **g)
{
    text t;
    text_init(&t, e);
    const char *filter = strstr(net, "FILTER"), *matrix = strstr(net, "MATRIX");
    text_printf(&t, "%.*s", (int)(filter - net), net);
    put_numbers(&t, 8 * 3 * 9);
    text_printf(&t, "%.*s", (int)(matrix - filter - 6), filter + 6);
    put_numbers(&t, 16 * 8);
    text_printf(&t, "%s", matrix + 6);
    if (!CHECK(ir_parse(e, t.at, t.length, g) == SINTER_OK)) printf("%s\n", e->error->text);
    text_deinit(&t);
}

static uint32_t count_of(const ir_graph *g, op_id op)
{
    uint32_t count = 0;
    for (ir_node_id id = 1; id < g->node.count; id++)
        count += !ir_node_at(g, id)->is_dead && ir_node_at(g, id)->op == op;
    return count;
}

/* Three products of two values; the second value cannot be negative. */
static void quantizes(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    ir_graph *before, *g;
    parse(&e, &before);
    parse(&e, &g);
    const double range[3] = { 1, 20, 20 };
    uint32_t count = 3;
    CHECK(tune_quantize(&e, g, TUNE_CODES_ENGINE, range, NULL, &count) == SINTER_OK);
    CHECK_EQ(count, 3);
    uint32_t data = 0;
    for (ir_node_id id = 1; id < g->node.count; id++) {
        const ir_node *n = ir_node_at(g, id);
        if (n->op != OP_quantize || ir_is_const(g, n->in[0])) continue; /* weights fold later */
        double scale = 0;
        data++;
        CHECK(ir_const_scalar(g, n->in[1], &scale));
        const bool is_first = ir_value_at(g, n->in[0])->is_input;
        CHECK_EQ(ir_value_at(g, n->out[0])->dtype, is_first ? SINTER_DTYPE_I8 : SINTER_DTYPE_U8);
        CHECK_NEAR(scale, is_first ? 1. / 127 : 20. / 255, 1e-7);
    }
    CHECK_EQ(data, 2);
    const opt_options o = { .math = OPT_MATH_FP32, .integers = true, .verify = true };
    CHECK(opt_run(&e, g, &o) == SINTER_OK);
    CHECK_EQ(count_of(g, OP_conv), 0);
    CHECK_EQ(count_of(g, OP_matmul), 0);
    CHECK_EQ(count_of(g, OP_conv_integer), 1);
    CHECK(count_of(g, OP_matmul_integer) >= 1);
    /* Between integers nothing is in memory: nothing gains by a narrower float. */
    uint32_t narrow = 0;
    ir_graph *h;
    parse(&e, &h);
    CHECK(tune_quantize(&e, h, TUNE_CODES_ENGINE, range, NULL, &count) == SINTER_OK);
    opt_options all_but_groups = o;
    all_but_groups.stop_after = "cse-again";
    CHECK(opt_run(&e, h, &all_but_groups) == SINTER_OK);
    CHECK_EQ(count_of(h, OP_relu), 1);
    CHECK(tune_narrow(&e, h, SINTER_DTYPE_F16, NULL, &narrow) == SINTER_OK);
    CHECK_EQ(narrow, 0);
    ir_graph_destroy(h);

    arena a;
    arena_init(&a, &e);
    view in[1], x[2], y[2];
    CHECK(graph_inputs(before, 3, &a, in) == SINTER_OK);
    CHECK(graph_eval(before, in, &a, x) == SINTER_OK);
    CHECK(graph_eval(g, in, &a, y) == SINTER_OK);
    double gap = 0, size = 0;
    for (int64_t i = 0; i < view_count(&x[0]); i++) {
        gap += pow(view_load_f64(&x[0], i) - view_load_f64(&y[0], i), 2);
        size += pow(view_load_f64(&x[0], i), 2);
    }
    CHECK(gap > 0 && sqrt(gap / size) < 0.02);
    arena_deinit(&a);
    ir_graph_destroy(before);
    ir_graph_destroy(g);
}

typedef struct asked {
    tune_gains narrow, quantize;
    char why[256];
} asked;

/* What a device is found to gain, by its cost model. */
static void ask(const char *backend_name, const char *device_name, ir_graph *g, env *e, asked *out)
{
    const backend *b = backend_find(backend_name);
    const device_options wanted = { .threads = 1, .name = device_name, .kernel_cache = "" };
    device *d = NULL;
    timing_cache *cache = NULL;
    arena a;
    arena_init(&a, e);
    *out = (asked){ 0 };
    if (CHECK(b && b->open(e, &wanted, &d) == SINTER_OK && timing_cache_create(e, &cache) == SINTER_OK)) {
        const tune_options o = { .backend = b, .device = d, .mode = TUNE_OFF, .threads = 1, .cache = cache };
        CHECK(tune_narrow_gains(e, &a, g, SINTER_DTYPE_F16, &o, &out->narrow) == SINTER_OK);
        CHECK(tune_quantize_gains(e, &a, g, SINTER_DTYPE_NONE, &o, &out->quantize) == SINTER_OK);
        (void)snprintf(out->why, sizeof out->why, "%s", out->narrow.why ? out->narrow.why : "");
        out->narrow.why = out->quantize.why = NULL;
        out->narrow.is_slow = out->quantize.is_slow = NULL;
    }
    timing_cache_destroy(cache);
    if (d) b->close(e, d);
    arena_deinit(&a);
}

/* The same graph on a device that multiplies f16 faster, and on one that only multiplies f32. What stands between the
 * products goes with them. */
static void lowers_what_is_faster(void)
{
    static const char *const products = "input %1: f32[512,1024] name=\"a\"\ninput %2: f32[1024,1024] name=\"b\"\n"
                                        "%3 = matmul(%1, %2)\n%4 = relu(%3)\n%5 = matmul(%4, %2)\n"
                                        "%6 = exp(%5)\noutput %6 name=\"y\"\n";
    static const char *const no_product = "input %1: f32[512,1024] name=\"a\"\n"
                                          "%2 = exp(%1)\n%3 = relu(%2)\n%4 = exp(%3)\noutput %4 name=\"y\"\n";
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    ir_graph *g = NULL;
    asked on_cpu, on_gpu;
    CHECK(ir_parse(&e, products, strlen(products), &g) == SINTER_OK);
    ask("cpu", NULL, g, &e, &on_cpu);
    CHECK_EQ(on_cpu.narrow.count, 3);
    CHECK_EQ(on_cpu.narrow.lowered, 0);
    CHECK_EQ(on_cpu.narrow.slower, 2);
    CHECK(strstr(on_cpu.why, "matmul 512x1024 by 1024x1024: f16") != NULL);
    CHECK(strstr(on_cpu.why, "with conversions, f32") != NULL);
    ask("cuda", "sm_90a", g, &e, &on_gpu);
    CHECK_EQ(on_gpu.narrow.count, 3);
    CHECK_EQ(on_gpu.narrow.lowered, 3);
    ir_graph_destroy(g);

    CHECK(ir_parse(&e, no_product, strlen(no_product), &g) == SINTER_OK);
    ask("cuda", "sm_90a", g, &e, &on_gpu);
    CHECK_EQ(on_gpu.narrow.count, 1);
    CHECK_EQ(on_gpu.narrow.lowered, 0);
    ir_graph_destroy(g);

    parse(&e, &g);
    ask("cpu", NULL, g, &e, &on_cpu);
    CHECK_EQ(on_cpu.quantize.count, 3);
    CHECK_EQ(on_cpu.quantize.lowered, 0);
    CHECK(!on_cpu.quantize.integers_pay);
    ir_graph_destroy(g);
}

/* Kept ones, a range of 0, and fewer ranges than products stay in f32; taps show the data in parts. */
static void keeps_and_taps(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    ir_graph *g;
    parse(&e, &g);
    uint32_t count = 2;
    CHECK(tune_quantize(&e, g, TUNE_CODES_ENGINE, (double[]){ 1, 0 }, (uint8_t[]){ 1, 0 }, &count) == SINTER_OK);
    CHECK_EQ(count, 3);
    CHECK_EQ(count_of(g, OP_quantize), 0);

    uint32_t rounds = 0;
    const uint32_t outputs = ir_region_at(g, IR_MAIN)->result.count;
    arena a;
    arena_init(&a, &e);
    tune_taps taps = { .a = &a, .size_max = 2 * 3 * 36 * 4 };
    while ((!taps.count || taps.end < taps.count) && rounds++ < 4) {
        taps.first = taps.end;
        CHECK(tune_tap(&e, g, &taps) == SINTER_OK);
        CHECK(taps.end == taps.first + 1 && taps.count == 2); /* two products read the same tensor */
    }
    CHECK(strcmp(taps.name[0], "x") == 0 && strcmp(taps.name[1], "_input") == 0);
    CHECK_EQ(ir_region_at(g, IR_MAIN)->result.count, outputs + 2);
    arena_deinit(&a);
    ir_graph_destroy(g);
}

/* ---- through the builder ---- */

enum { ROWS = 4, WIDTH = 32, COLUMNS = 16 };

typedef struct result {
    float y[ROWS * COLUMNS];
    char options[256];
} result;

/* y = relu(x W) V */
static bytes model_bytes(void)
{
    static float w[WIDTH * WIDTH], v[WIDTH * COLUMNS];
    for (uint32_t i = 0; i < WIDTH * WIDTH; i++) w[i] = 0.02f * (float)((i * 7919u) % 101) - 1;
    for (uint32_t i = 0; i < WIDTH * COLUMNS; i++) v[i] = 0.02f * (float)((i * 104729u) % 97) - 1;
    bytes g = { 0 };
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "first", "x,w", "a"));
    bytes_put(&g, 1, onnx_node_bytes("Relu", "relu", "a", "b"));
    bytes_put(&g, 1, onnx_node_bytes("MatMul", "second", "b,v", "y"));
    bytes_text(&g, 2, "g");
    bytes_put(&g, 5, onnx_tensor_bytes("w", 1, (int64_t[]){ WIDTH, WIDTH }, 2, w, sizeof w));
    bytes_put(&g, 5, onnx_tensor_bytes("v", 1, (int64_t[]){ WIDTH, COLUMNS }, 2, v, sizeof v));
    bytes_put(&g, 11, onnx_value("x", 1, (int64_t[]){ ROWS, WIDTH }, 2, ""));
    bytes_put(&g, 12, onnx_value("y", 1, (int64_t[]){ ROWS, COLUMNS }, 2, ""));
    return onnx_model_bytes(g, 17);
}

static bool build_and_run(const sinter_build_options *o, const float *x, result *out)
{
    sinter_error error = { 0 };
    sinter_buffer built = { 0 };
    sinter_engine *engine = NULL;
    sinter_context *context = NULL;
    const sinter_engine_options load = SINTER_ENGINE_OPTIONS;
    sinter_tensor in = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { ROWS, WIDTH } }, y = { 0 };
    in.data = (void *)(uintptr_t)x;
    bytes m = model_bytes();
    const bool ok = sinter_build_memory(m.at, m.size, o, &built, &error) == SINTER_OK &&
                    sinter_engine_load_memory(built.data, built.size, &load, &engine, &error) == SINTER_OK &&
                    sinter_context_create(engine, NULL, &context, &error) == SINTER_OK &&
                    sinter_context_set_input(context, "x", &in, &error) == SINTER_OK &&
                    sinter_context_run(context, &error) == SINTER_OK &&
                    sinter_context_output(context, "y", &y, &error) == SINTER_OK;
    if (ok) memcpy(out->y, y.data, sizeof out->y);
    else printf("%s\n", error.text);
    out->options[0] = 0;
    for (size_t i = 0; ok && i + 7 < built.size && !out->options[0]; i++)
        if (!memcmp((const char *)built.data + i, "device=", 7))
            (void)snprintf(out->options, sizeof out->options, "%s", (const char *)built.data + i);
    sinter_context_destroy(context);
    sinter_engine_release(engine);
    sinter_buffer_free(&built);
    free(m.at);
    return ok;
}

static double moved(const result *x, const result *want)
{
    double gap = 0, size = 0;
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
        gap += pow((double)x->y[i] - (double)want->y[i], 2);
        size += pow((double)want->y[i], 2);
    }
    return sqrt(gap / size);
}

static void says(const result *r, const char *part)
{
    if (!CHECK(strstr(r->options, part) != NULL)) printf("'%s' in '%s'\n", part, r->options);
}

/* Data a thousand times as large as what is seeded: ranges must come from the samples, from all of them. */
static void samples_and_budget(void)
{
    static float x[ROWS * WIDTH], less[ROWS * WIDTH];
    for (uint32_t i = 0; i < ROWS * WIDTH; i++) {
        x[i] = 10 * (float)((i * 31u) % 200) - 1000;
        less[i] = x[i] / 10;
    }
    sinter_tensor data = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { ROWS, WIDTH }, .data = x }, second = data;
    second.data = less;
    const sinter_input_value value[2] = { { .input = "x", .value = &data }, { .input = "x", .value = &second } };
    const sinter_sample sample[2] = { { .value = &value[1], .count = 1 }, { .value = &value[0], .count = 1 } };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = SINTER_TUNE_OFF;
    result want, got;
    if (!CHECK(build_and_run(&o, x, &want))) return;

    sinter_build_report report = SINTER_BUILD_REPORT;
    o.report = &report;
    o.allow = SINTER_ALLOW_INT8 | SINTER_ALLOW_FP16;
    CHECK(build_and_run(&o, x, &got));
    CHECK(memcmp(got.y, want.y, sizeof got.y) == 0);
    says(&got, "allow=fp16,int8 (0 of 3 ops) (0 of 2 products in 8 bits)");
    CHECK(strstr(got.options, "moved") == NULL);
    CHECK(!strncmp(report.lowered, "fp16: 0 of 3 ops, 2 not faster, 1 beside them (matmul ", 54));
    CHECK(strstr(report.lowered, "\nint8: 0 of 2 products, ") != NULL);
    o.report = NULL;
    o.lower = SINTER_LOWER_ALWAYS; /* in 8 bits, though the CPU is slower at it */
    o.allow = SINTER_ALLOW_INT8;
    CHECK(build_and_run(&o, x, &got));
    CHECK(moved(&got, &want) > 0.5);
    says(&got, "allow=int8 (2 of 2 products in 8 bits)");
    says(&got, "on seeded inputs");
    o.sample = sample;
    o.sample_count = 2;
    o.budget = 0.3; /* of the smaller sample, whose numbers get few steps */
    CHECK(build_and_run(&o, x, &got));
    CHECK(moved(&got, &want) > 0 && moved(&got, &want) < 0.03);
    says(&got, "allow=int8 (2 of 2 products in 8 bits)");
    says(&got, "on samples");
    o.allow |= SINTER_ALLOW_FP16;
    CHECK(build_and_run(&o, x, &got));
    CHECK(moved(&got, &want) > 0 && moved(&got, &want) < 0.03);
    says(&got, "allow=fp16,int8 (");

    /* Nothing may move: nothing is lowered. */
    o.budget = 1e-12;
    for (uint32_t fp16 = 0; fp16 < 2; fp16++) {
        o.allow = fp16 ? SINTER_ALLOW_FP16 | SINTER_ALLOW_INT8 : SINTER_ALLOW_INT8;
        CHECK(build_and_run(&o, x, &got));
        CHECK_NEAR(moved(&got, &want), 0, 1e-6);
        says(&got, "(0 of 2 products in 8 bits)");
    }
    /* And in between some is, within what was stated. */
    o.sample_count = 1;
    o.allow = SINTER_ALLOW_INT8;
    o.budget = 0.3;
    CHECK(build_and_run(&o, less, &got));
    CHECK(build_and_run(&(sinter_build_options)SINTER_BUILD_OPTIONS, less, &want));
    o.budget = moved(&got, &want) * 0.9;
    CHECK(build_and_run(&o, less, &got));
    says(&got, "(1 of 2 products in 8 bits)");
    CHECK(moved(&got, &want) > 0 && moved(&got, &want) <= o.budget);
}

/* Calibration, the search and the build that follows, with some of their allocations refused: nothing is left behind.
 */
static void out_of_memory(void)
{
    enum { TRIES = 200 };
    static float x[ROWS * WIDTH];
    for (uint32_t i = 0; i < ROWS * WIDTH; i++) x[i] = (float)((i * 31u) % 200) - 100;
    const sinter_tensor data = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { ROWS, WIDTH }, .data = x };
    const sinter_input_value value = { .input = "x", .value = &data };
    const sinter_sample sample = { .value = &value, .count = 1 };
    bytes m = model_bytes();
    long requests = 1;
    for (long i = 0; i <= TRIES; i++) {
        faulty f = { .budget = i ? (i - 1) * requests / TRIES : -1 };
        const sinter_allocator allocator = { &f, faulty_resize };
        const sinter_env_options e = { .struct_size = sizeof e, .allocator = &allocator };
        sinter_build_options o = SINTER_BUILD_OPTIONS;
        o.env = &e;
        o.tune = SINTER_TUNE_OFF;
        o.threads = 1;
        o.lower = i % 2 ? SINTER_LOWER_ALWAYS : SINTER_LOWER_FASTER;
        o.allow = SINTER_ALLOW_INT8 | SINTER_ALLOW_FP16;
        o.budget = 0.002;
        o.sample = &sample;
        o.sample_count = 1;
        sinter_error error = { 0 };
        sinter_buffer built = { 0 };
        const sinter_status s = sinter_build_memory(m.at, m.size, &o, &built, &error);
        if (!CHECK(s == SINTER_OK || (i && s == SINTER_NO_MEMORY))) printf("%s\n", error.text);
        sinter_buffer_free(&built);
        CHECK_EQ(f.live, 0);
        CHECK_EQ(f.misuse, 0);
        if (!i) requests = f.requests;
    }
    free(m.at);
}

static void refused(const sinter_build_options *o, const char *why)
{
    sinter_error error = { 0 };
    sinter_buffer out;
    CHECK(sinter_build_file(SINTER_SOURCE_DIR "/examples/digits/digits.onnx", o, &out, &error) != SINTER_OK);
    if (!CHECK(strstr(error.text, why) != NULL)) printf("'%s' in '%s'\n", why, error.text);
}

static void refuses(void)
{
    float image[784] = { 0 };
    sinter_tensor data = { .dtype = SINTER_DTYPE_F32, .rank = 4, .dim = { 1, 1, 28, 28 }, .data = image };
    sinter_input_value value = { .input = "picture", .value = &data };
    const sinter_sample sample = { .value = &value, .count = 1 };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = SINTER_TUNE_OFF;
    o.allow = SINTER_ALLOW_INT8;
    o.sample = &sample;
    o.sample_count = 1;
    o.lower = SINTER_LOWER_ALWAYS;
    refused(&o, "'picture'");
    value.input = "image";
    data.dtype = SINTER_DTYPE_I32;
    refused(&o, "has i32 of rank 4");
    data.dtype = SINTER_DTYPE_F32;
    data.data = NULL;
    refused(&o, "NULL");
    data.data = image;
    data.place = SINTER_PLACE_DEVICE;
    refused(&o, "sample 0 of input 'image' lies on the device");
    o.sample_count = 0;
    o.value = &value;
    o.value_count = 1;
    refused(&o, "input 'image' lies on the device");
    data.place = SINTER_PLACE_HOST;
    /* Also where nothing runs on the data, since nothing is faster in 8 bits. */
    o.lower = SINTER_LOWER_FASTER;
    o.value_count = 0;
    o.sample_count = 1;
    data.rank = 3;
    refused(&o, "has f32 of rank 3");
    value.input = "picture";
    refused(&o, "'picture'");
    value.input = "image";
    data.rank = 4;
    o.lower = SINTER_LOWER_ALWAYS;
    o.value_count = 1;
    o.sample_count = 0;
    /* Fewer bytes are promised than the profile wants. */
    const sinter_shape_range two = {
        .input = "image", .rank = 4, .min = { 2, 1, 28, 28 }, .opt = { 2, 1, 28, 28 }, .max = { 4, 1, 28, 28 }
    };
    const sinter_profile profile = { .shape = &two, .count = 1 };
    o.profile = &profile;
    o.profile_count = 1;
    refused(&o, "axis 0 of input 'image' is 1");
    o.profile_count = 0;
    o.value_count = 0;
    o.sample_count = 1;
    data.dim[2] = 27;
    refused(&o, "672");
    data.dim[2] = 28;
    o.math = SINTER_MATH_EXACT;
    refused(&o, "exact");
    o.math = SINTER_MATH_FP32;
    o.budget = -1;
    refused(&o, "budget");
}

/* A shape among the inputs, and no samples: seeded numbers are no shapes. What is allowed is done, and the report says
 * that nothing was compared. Samples that do not run are the caller's mistake. */
static void goes_on_where_seeded_inputs_do_not_run(void)
{
    model_text m;
    sinter_error error = { 0 };
    sinter_build_report report = SINTER_BUILD_REPORT;
    model_read("in x f32 4,32; in s i64 2; a = MatMul x %32,32; y = Reshape a s; out y", &m);
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = SINTER_TUNE_OFF;
    o.allow = SINTER_ALLOW_FP16 | SINTER_ALLOW_INT8;
    o.lower = SINTER_LOWER_ALWAYS;
    o.report = &report;
    sinter_buffer out = { 0 };
    CHECK_EQ(sinter_build_memory(m.model.at, m.model.size, &o, &out, &error), SINTER_OK);
    if (!CHECK(strstr(report.lowered, "not compared with f32: the model does not run on seeded inputs") != NULL))
        printf("%s\n", report.lowered);
    sinter_buffer_free(&out);
    int64_t shape[] = { 5, 5 };
    const sinter_tensor wrong = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { 2 }, .data = shape };
    const sinter_input_value value = { "s", &wrong };
    const sinter_sample sample = { &value, 1 };
    o.sample = &sample;
    o.sample_count = 1;
    CHECK_EQ(sinter_build_memory(m.model.at, m.model.size, &o, &out, &error), SINTER_INVALID_ARG);
    CHECK(strstr(error.text, "running sample 0") != NULL);
    free(m.model.at);
}

/* Where data decide how many results there are, what the choice is made from is put out: here the sums before top-k
 * and the rows that are gathered by it, not what is picked from them. A model without such results stays as it is. */
static void taps_selections(void)
{
    static const char *const detector = "input %1: f32[8,6] name=\"x\"\n"
                                        "const %2: f32[] = {0.5}\n"
                                        "const %3: i64[1] = {4}\n"
                                        "%4 = exp(%1)\n"
                                        "%5 = reduce(%4) kind=sum axes=[1] keep=0\n"
                                        "%6, %7 = top_k(%5) k=[4] axis=0 largest=1 sorted=1\n"
                                        "%8 = gather(%4, %7) axis=0\n"
                                        "%9 = gt(%6, %2)\n"
                                        "%10 = non_zero(%9)\n";
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    for (int is_late = 0; is_late < 2; is_late++) {
        text t;
        ir_graph *g = NULL;
        text_init(&t, &e);
        text_printf(&t, "%s%s", detector, is_late ? "output %10 name=\"y\"\n" : "output %8 name=\"y\"\n");
        if (CHECK(ir_parse(&e, t.at, t.length, &g) == SINTER_OK)) {
            CHECK(tune_tap_selections(&e, g) == SINTER_OK);
            CHECK_EQ(g->region.at[IR_MAIN].result.count, is_late ? 3 : 1);
            CHECK_EQ(ir_value_at(g, 4)->is_output, is_late);
            CHECK_EQ(ir_value_at(g, 5)->is_output, is_late);
            CHECK_EQ(ir_value_at(g, 6)->is_output, 0);
            ir_graph_destroy(g);
        } else {
            printf("%s\n", error.text);
        }
        text_deinit(&t);
    }
}

/* Scores of non-maximum suppression count as far as they are above its limit, for what is gathered by it, too. A limit
 * that is not known is no limit, and a comparison of them looks at all. */
static void taps_scores_above_a_limit(void)
{
    static const char *const head = "input %1: f32[1,8,4] name=\"boxes\"\n"
                                    "input %2: f32[1,2,8] name=\"x\"\n"
                                    "const %3: i64[1] = {4}\n"
                                    "const %4: f32[] = {0.5}\n"
                                    "%6 = exp(%2)\n";
    static const struct {
        const char *limit, *more;
        uint32_t results;
        bool is_whole;
    } at[] = { { "const %5: f32[1] = {0.25}\n", "", 2, false },
               { "input %5: f32[1] name=\"limit\"\n", "", 2, true },
               { "const %5: f32[1] = {0.25}\n", "%9 = gt(%6, %4)\n%10 = non_zero(%9)\noutput %10 name=\"z\"\n", 4,
                 true } };
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    for (uint32_t i = 0; i < COUNT_OF(at); i++) {
        text t;
        ir_graph *g = NULL;
        text_init(&t, &e);
        text_printf(&t, "%s%s%%7 = nms(%%1, %%6, %%3, %%4, %%5)\n%%8 = gather_nd(%%6, %%7)\noutput %%8 name=\"y\"\n%s",
                    at[i].limit, head, at[i].more);
        if (CHECK(ir_parse(&e, t.at, t.length, &g) == SINTER_OK)) {
            CHECK(tune_tap_selections(&e, g) == SINTER_OK);
            CHECK_EQ(g->region.at[IR_MAIN].result.count, at[i].results);
            CHECK_EQ(ir_value_at(g, 6)->is_output, at[i].is_whole);
            ir_graph_destroy(g);
        } else {
            printf("%s\n", error.text);
        }
        text_deinit(&t);
    }
}

/* Layers of clips, each of three values of the layer before, between integers. */
static uint32_t narrowed_between_integers(uint32_t layers, uint32_t width)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    text t;
    ir_graph *g = NULL;
    uint32_t count = 0, id = 10;
    text_init(&t, &e);
    text_printf(&t, "input %%1: u8[4] name=\"x\"\nconst %%2: f32[] = {0.1}\nconst %%3: u8[] = {0}\n");
    for (uint32_t i = 0; i < width; i++) text_printf(&t, "%%%u: f32[4] = dequantize(%%1, %%2, %%3)\n", id++);
    for (uint32_t layer = 0; layer < layers; layer++)
        for (uint32_t i = 0, from = id - width; i < width; i++)
            text_printf(&t, "%%%u = clip(%%%u, %%%u, %%%u)\n", id++, from + i, from + (i + 1) % width,
                        from + (i + 2) % width);
    for (uint32_t i = 0, from = id - width; i < width; i++) {
        text_printf(&t, "%%%u: u8[4] = quantize(%%%u, %%2, %%3)\n", id, from + i);
        text_printf(&t, "output %%%u name=\"y%u\"\n", id++, i);
    }
    if (CHECK(ir_parse(&e, t.at, t.length, &g) == SINTER_OK)) {
        CHECK(tune_narrow(&e, g, SINTER_DTYPE_F16, NULL, &count) == SINTER_OK);
        ir_graph_destroy(g);
    } else {
        printf("%s\n", error.text);
    }
    text_deinit(&t);
    return count;
}

/* Chains that meet again and again have paths without number. */
static void looks_at_no_more_than_it_must(void)
{
    CHECK_EQ(narrowed_between_integers(3, 5), 0);
    CHECK(narrowed_between_integers(10, 20) > 0);
}

static const test tests[] = { T(quantizes),
                              T(lowers_what_is_faster),
                              T(keeps_and_taps),
                              T(taps_selections),
                              T(taps_scores_above_a_limit),
                              T(samples_and_budget),
                              T(out_of_memory),
                              T(refuses),
                              T(goes_on_where_seeded_inputs_do_not_run),
                              T(looks_at_no_more_than_it_must),
                              { 0 } };
TEST_MAIN(tests)

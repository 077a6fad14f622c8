/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt_integers.c - what becomes of quantised networks where products are done on integers: the groups that form,
 * and that results are as before but for a step of the last rounding. */
#include "graph_eval.h"
#include "opt/pipeline.h"
#include "test.h"

static uint32_t count_of(const text *t, const char *word)
{
    uint32_t count = 0;
    for (const char *at = t->at; at && (at = strstr(at, word)); at++) count++;
    return count;
}

/* Optimises with and without integers, compares both with the graph as it is, and gives the text of the first. Results
 * in f32 are dequantised: they may be one step of `step` apart. */
typedef struct outcome {
    sinter_error error;
    env e;
    text t; /* the graph, printed; the caller frees it */
} outcome;

static void optimized(const char *s, double step, outcome *o)
{
    env *e = &o->e;
    text *out = &o->t;
    arena a;
    view in[8] = { { 0 } }, x[8] = { { 0 } }, y[8] = { { 0 } };
    ir_graph *before;
    o->error = (sinter_error){ 0 };
    env_init(e, NULL, &o->error);
    text_init(out, e);
    if (!CHECK(ir_parse(e, s, strlen(s), &before) == SINTER_OK)) {
        printf("%s\n%s\n", e->error->text, s);
        return;
    }
    for (int integers = 0; integers < 2; integers++)
        for (uint64_t seed = 1; seed < 8; seed++) {
            ir_graph *g;
            arena_init(&a, e);
            const opt_options options = { .math = OPT_MATH_FP32, .integers = integers, .verify = true };
            const bool ok =
                CHECK(ir_parse(e, s, strlen(s), &g) == SINTER_OK) && CHECK(opt_run(e, g, &options) == SINTER_OK) &&
                CHECK(graph_inputs(before, seed, &a, in) == SINTER_OK) &&
                CHECK(graph_eval(before, in, &a, x) == SINTER_OK) && CHECK(graph_eval(g, in, &a, y) == SINTER_OK);
            if (!ok) printf("%s\n", e->error->text);
            for (uint32_t i = 0; ok && i < ir_region_at(g, IR_MAIN)->result.count; i++)
                CHECK_NEAR(graph_gap(&y[i], &x[i]), 0, step * 1.001);
            text_deinit(out);
            text_init(out, e);
            ir_print(g, out);
            if (!integers) CHECK_EQ(count_of(out, "conv_integer("), 0);
            ir_graph_destroy(g);
            arena_deinit(&a);
        }
    ir_graph_destroy(before);
}

/* Two convolutions, the second with a residual, a pool of either kind, a product: one node each. */
static void residual_network(void)
{
    static const char *const net =
        "input %1: f32[2,2,6,6] name=\"x\"\n"
        "const %2: f32[] = {0.01}\nconst %3: u8[] = {120}\nconst %4: f32[] = {0.02}\nconst %5: u8[] = {0}\n"
        "const %6: i8[2,2,3,3] = {1,-20,3,4,50,-6,7,8,-90,10,11,12,-13,14,15,-16,17,18,19,-20,21,22,23,24,25,26,27,"
        "28,-29,30,31,-32,33,34,35,36}\n"
        "const %7: f32[2,1,1,1] = {0.01,0.02}\nconst %8: i8[2,1,1,1] = {0,0}\n"
        "const %9: u8[2,2,1,1] = {100,140,120,160}\nconst %10: f32[] = {0.03}\nconst %11: u8[] = {128}\n"
        "const %12: f32[1,2,1,1] = {0.1,-0.2}\n"
        "const %13: i8[2,3] = {1,2,-3,4,-50,60}\nconst %14: f32[3] = {0.1,0.2,0.3}\nconst %15: i8[3] = {0,0,0}\n"
        "%20: u8[2,2,6,6] = quantize(%1, %2, %3)\n%21: f32[2,2,6,6] = dequantize(%20, %2, %3)\n"
        "%22: f32[2,2,3,3] = dequantize(%6, %7, %8)\n"
        "%23 = conv(%21, %22) stride=[1,1] dilation=[1,1] pad=[1,1,1,1]\n%24 = add(%23, %12)\n%25 = relu(%24)\n"
        "%26: u8[2,2,6,6] = quantize(%25, %4, %5)\n%27: f32[2,2,6,6] = dequantize(%26, %4, %5)\n"
        "%28: f32[2,2,1,1] = dequantize(%9, %10, %11)\n"
        "%29 = conv(%27, %28) stride=[1,1] dilation=[1,1] pad=[0,0,0,0]\n"
        "%30: u8[2,2,6,6] = quantize(%29, %4, %3)\n%31: f32[2,2,6,6] = dequantize(%30, %4, %3)\n"
        "%32 = add(%31, %27)\n%33 = relu(%32)\n"
        "%34: u8[2,2,6,6] = quantize(%33, %4, %5)\n%35: f32[2,2,6,6] = dequantize(%34, %4, %5)\n"
        "%36 = max_pool(%35) kernel=[2,2] stride=[2,2] dilation=[1,1] pad=[0,0,0,0]\n"
        "%37: u8[2,2,3,3] = quantize(%36, %4, %5)\n%38: f32[2,2,3,3] = dequantize(%37, %4, %5)\n"
        "%39 = reduce(%38) kind=mean axes=[2,3]\n"
        "%40: u8[2,2,1,1] = quantize(%39, %4, %5)\n%41: f32[2,2,1,1] = dequantize(%40, %4, %5)\n"
        "%42 = reshape(%41) shape=[2,2]\n%43: f32[2,3] = dequantize(%13, %14, %15)\n"
        "%44 = matmul(%42, %43)\n%45: u8[2,3] = quantize(%44, %2, %3)\n%46: f32[2,3] = dequantize(%45, %2, %3)\n"
        "output %35 name=\"y\"\noutput %46 name=\"z\"\n";
    outcome o;
    optimized(net, 0.02, &o);
    CHECK_EQ(count_of(&o.t, "conv_integer("), 2);
    CHECK_EQ(count_of(&o.t, "matmul_integer("), 1);
    CHECK_EQ(count_of(&o.t, "conv("), 0);
    CHECK_EQ(count_of(&o.t, "u8[2,2,3,3] = max_pool("), 1);
    CHECK_EQ(count_of(&o.t, "pointwise("), 1); /* what quantises the input */
    text_deinit(&o.t);
}

/* Where a dequantised value feeds a product of floats it is dequantised before it is moved. */
static void attention_of_floats(void)
{
    static const char *const net =
        "input %1: u8[1,4,4] name=\"x\"\ninput %17: f32[1,2,2,4] name=\"z\"\n"
        "const %2: f32[] = {0.05}\nconst %3: u8[] = {2}\n"
        "const %4: i8[4,4] = {1,-2,3,4,50,-6,7,8,-9,10,11,-12,13,14,-15,16}\nconst %5: f32[] = {0.1}\n"
        "const %6: i8[] = {0}\nconst %7: f32[] = {0.04}\nconst %8: u8[] = {128}\n"
        "%10: f32[1,4,4] = dequantize(%1, %2, %3)\n%11: f32[4,4] = dequantize(%4, %5, %6)\n"
        "%12 = matmul(%10, %11)\n%13 = reshape(%12) shape=[1,4,2,2]\n%14 = transpose(%13) perm=[0,2,1,3]\n"
        "%15: u8[1,2,4,2] = quantize(%14, %7, %8)\n%16: f32[1,2,4,2] = dequantize(%15, %7, %8)\n"
        "%18 = matmul(%16, %17)\n%19 = softmax(%18) axis=3\n"
        "output %19 name=\"y\"\n";
    outcome o;
    optimized(net, 0.05, &o);
    CHECK_EQ(count_of(&o.t, "matmul_integer("), 1);
    CHECK_EQ(count_of(&o.t, " matmul("), 1);
    CHECK_EQ(count_of(&o.t, "pointwise("), 0);
    text_deinit(&o.t);
}

/* Two computed factors: the numbers less their zero points in f16, sums in f32, whatever moves them; the products' own
 * kernels make them, and what follows stands behind the sums. */
static void attention_of_integers(void)
{
    static const char *const net =
        "input %1: u8[1,4,4] name=\"x\"\n"
        "const %2: f32[] = {0.05}\nconst %3: u8[] = {120}\n"
        "const %4: i8[4,4] = {1,-2,3,4,50,-6,7,8,-9,10,11,-12,13,14,-15,16}\nconst %5: f32[] = {0.1}\n"
        "const %6: i8[] = {0}\nconst %7: f32[] = {0.2}\nconst %8: u8[] = {117}\n"
        "const %9: i8[4,4] = {-11,2,37,40,5,-64,72,8,-95,10,111,-12,13,1,15,-16}\n"
        "const %30: f32[] = {0.7}\nconst %31: f32[] = {0.004}\nconst %32: u8[] = {0}\nconst %33: f32[4] = {0,0,-3,0}\n"
        "%10: f32[1,4,4] = dequantize(%1, %2, %3)\n%11: f32[4,4] = dequantize(%4, %5, %6)\n"
        "%12 = matmul(%10, %11)\n%13 = reshape(%12) shape=[1,4,2,2]\n%14 = transpose(%13) perm=[0,2,1,3]\n"
        "%15: u8[1,2,4,2] = quantize(%14, %7, %8)\n%16: f32[1,2,4,2] = dequantize(%15, %7, %8)\n"
        "%17: f32[4,4] = dequantize(%9, %5, %6)\n%36: f32[4,4] = dequantize(%4, %30, %6)\n"
        "%37 = matmul(%10, %36)\n%38 = reshape(%37) shape=[1,4,2,2]\n%39 = transpose(%38) perm=[0,2,1,3]\n"
        "%40: u8[1,2,4,2] = quantize(%39, %30, %8)\n%41: f32[1,2,4,2] = dequantize(%40, %30, %8)\n"
        "%18 = matmul(%10, %17)\n%19 = reshape(%18) shape=[1,4,2,2]\n%20 = transpose(%19) perm=[0,2,3,1]\n"
        "%21: u8[1,2,2,4] = quantize(%20, %5, %8)\n%22: f32[1,2,2,4] = dequantize(%21, %5, %8)\n"
        "%23 = matmul(%16, %22)\n%24 = mul(%23, %30)\n%25 = add(%24, %33)\n%26 = softmax(%25) axis=3\n"
        "%27: u8[1,2,4,4] = quantize(%26, %31, %32)\n%28: f32[1,2,4,4] = dequantize(%27, %31, %32)\n"
        "%29 = matmul(%28, %41)\n%34: u8[1,2,4,2] = quantize(%29, %5, %8)\n%35: f32[1,2,4,2] = dequantize(%34, %5, "
        "%8)\n"
        "output %35 name=\"y\"\n";
    outcome o;
    optimized(net, 0.2, &o);
    CHECK_EQ(count_of(&o.t, "matmul_integer("), 2); /* queries and values have one weight */
    CHECK_EQ(count_of(&o.t, " matmul("), 2);
    CHECK_EQ(count_of(&o.t, "type=f32"), 2);
    CHECK_EQ(count_of(&o.t, "f16[1,2,4,4] = softmax("), 1);
    CHECK_EQ(count_of(&o.t, "f32[1,2,4,2] = matmul("), 1);
    CHECK_EQ(count_of(&o.t, "pointwise("), 0);
    text_deinit(&o.t);
}

/* Products of one value that go the same way become one, with rows for what differs. */
static void products_of_one_value(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    text net;
    text_init(&net, &e);
    text_printf(&net, "input %%1: u8[1,3,2] name=\"x\"\nconst %%2: f32[] = {0.05}\nconst %%3: u8[] = {2}\n"
                      "const %%4: f32[] = {0.1}\nconst %%5: i8[] = {0}\n%%6: f32[1,3,2] = dequantize(%%1, %%2, %%3)\n");
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t at = 10 + 20 * i;
        text_printf(&net, "const %%%u: i8[2,16] = {", at);
        for (int k = 0; k < 32; k++) text_printf(&net, "%s%d", k ? "," : "", k * 37 % 255 - 127 + (int)i);
        text_printf(&net, "}\nconst %%%u: f32[16] = {", at + 1);
        for (int k = 0; k < 16; k++) text_printf(&net, "%s%d", k ? "," : "", k - 8 + (int)i);
        text_printf(
            &net,
            "}\nconst %%%u: f32[] = {%s}\nconst %%%u: u8[] = {%u}\n%%%u: f32[2,16] = dequantize(%%%u, %%4, %%5)\n"
            "%%%u = matmul(%%6, %%%u)\n%%%u = add(%%%u, %%%u)\n%%%u: u8[1,3,16] = quantize(%%%u, %%%u, %%%u)\n"
            "%%%u: f32[1,3,16] = dequantize(%%%u, %%%u, %%%u)\n"
            "%%%u = reshape(%%%u) shape=[3,4,4]\n%%%u = softmax(%%%u) axis=2\noutput %%%u name=\"y%u\"\n",
            at + 2, i ? "0.1" : "0.2", at + 3, 100 + i, at + 4, at, at + 5, at + 4, at + 6, at + 5, at + 1, at + 7,
            at + 6, at + 2, at + 3, at + 8, at + 7, at + 2, at + 3, at + 9, at + 8, at + 10, at + 9, at + 10, i);
    }
    outcome o;
    optimized(net.at, 0.05, &o);
    CHECK_EQ(count_of(&o.t, "matmul_integer("), 1);
    CHECK_EQ(count_of(&o.t, "slice("), 2);
    text_deinit(&o.t);
    text_deinit(&net);
}

/* Scales that are computed: everything of one number is done by the reductions. */
static void dynamic_quantization(void)
{
    static const char *const net =
        "input %1: f32[3,4] name=\"x\"\n"
        "const %2: f32[] = {0}\nconst %3: f32[] = {255}\nconst %4: f32[] = {1}\n"
        "const %5: i8[4,2] = {1,-2,3,4,-5,6,7,-8}\nconst %6: f32[2] = {0.1,0.2}\n"
        "%10 = reduce(%1) kind=min axes=[0,1] keep=0\n%11 = min(%10, %2)\n"
        "%12 = reduce(%1) kind=max axes=[0,1] keep=0\n%13 = max(%12, %2)\n%14 = sub(%13, %11)\n"
        "%15 = eq(%14, %2)\n%16 = div(%14, %3)\n%17 = where(%15, %4, %16)\n%18 = sub(%2, %11)\n%19 = div(%18, %17)\n"
        "%20 = round(%19)\n%21 = clip(%20, %2, %3)\n%22 = cast(%21) type=u8\n"
        "%23: u8[3,4] = quantize(%1, %17, %22)\n%24 = matmul_integer(%23, %5, %22)\n%25 = cast(%24)\n"
        "%26 = mul(%17, %6)\n%27 = mul(%25, %26)\noutput %27 name=\"y\"\n";
    outcome o;
    optimized(net, 1e-5, &o);
    CHECK_EQ(count_of(&o.t, "reduce("), 2);
    CHECK_EQ(count_of(&o.t, "matmul_integer("), 1);
    CHECK_EQ(count_of(&o.t, "pointwise("), 1);
    CHECK_EQ(count_of(&o.t, "eq("), 0);
    text_deinit(&o.t);
}

/* Parts of a concat are rounded where they are computed, and bytes are joined. */
static void concat_of_floats(void)
{
    static const char *const net = "input %1: f32[2,3,4,4] name=\"x\"\ninput %2: f32[2,5,4,4] name=\"y\"\n"
                                   "const %3: f32[] = {0.01}\nconst %4: u8[] = {100}\n"
                                   "%5 = relu(%1)\n%6 = sigmoid(%2)\n%7 = concat(%5, %6) axis=1\n"
                                   "%8: u8[2,8,4,4] = quantize(%7, %3, %4)\n"
                                   "output %8 name=\"q\"\noutput %6 name=\"z\"\n";
    outcome o;
    optimized(net, 1, &o);
    CHECK_EQ(count_of(&o.t, "u8[2,8,4,4] = concat("), 1);
    text_deinit(&o.t);
}

static const test tests[] = { T(residual_network),
                              T(attention_of_floats),
                              T(attention_of_integers),
                              T(products_of_one_value),
                              T(dynamic_quantization),
                              T(concat_of_floats),
                              { 0 } };
TEST_MAIN(tests)

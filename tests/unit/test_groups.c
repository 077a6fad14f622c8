/* SPDX-License-Identifier: Apache-2.0 */
/* test_groups.c - which groups form, that they are legal, and that they compute what their nodes did. */
#include "graph_eval.h"
#include "opt/pipeline.h"
#include "test.h"

#define CONV "conv(%1, %2) stride=[1,1] dilation=[1,1] pad=[0,0,0,0]\n"
#define HEAD                                                                                                           \
    "input %1: f32[1,2,3,3] name=\"x\"\nconst %2: f32[2,2,1,1] = {1,2,-3,4}\nconst %3: f32[1,2,1,1] = {0.5,-1}\n"

/* Forms groups, checks that results stay, and gives the text. */
static void grouped(const char *s, text *out, env *e)
{
    ir_graph *before, *g, *written = NULL;
    text_init(out, e);
    const bool parsed =
        CHECK(ir_parse(e, s, strlen(s), &before) == SINTER_OK) && CHECK(ir_parse(e, s, strlen(s), &g) == SINTER_OK);
    if (!parsed) {
        printf("%s\n%s\n", e->error->text, s);
        return;
    }
    const opt_options o = { .math = OPT_MATH_FP32 };
    opt_state state = { .e = e, .g = g, .o = &o };
    if (!CHECK(pass_groups(&state) == SINTER_OK) || !CHECK(ir_verify(g, IR_STAGE_GROUPED) == SINTER_OK))
        printf("%s\n", e->error->text);
    arena a;
    arena_init(&a, e);
    view in[8] = { { 0 } }, x[8] = { { 0 } }, y[8] = { { 0 } };
    CHECK(graph_inputs(before, 3, &a, in) == SINTER_OK);
    if (!CHECK(graph_eval(before, in, &a, x) == SINTER_OK) || !CHECK(graph_eval(g, in, &a, y) == SINTER_OK))
        printf("%s\n", e->error->text);
    for (uint32_t i = 0; i < ir_region_at(g, IR_MAIN)->result.count; i++) CHECK_NEAR(graph_gap(&y[i], &x[i]), 0, 1e-6);
    if (!CHECK(graph_written(g, &a, &written) == SINTER_OK) || !CHECK(graph_eval(written, in, &a, y) == SINTER_OK))
        printf("%s\n", e->error->text);
    for (uint32_t i = 0; i < ir_region_at(g, IR_MAIN)->result.count; i++) CHECK_NEAR(graph_gap(&y[i], &x[i]), 0, 1e-6);
    ir_print(g, out);
    ir_graph_destroy(written);
    arena_deinit(&a);
    ir_graph_destroy(before);
    ir_graph_destroy(g);
}

static uint32_t count_of(const text *t, const char *word)
{
    uint32_t count = 0;
    for (const char *at = t->at; at && (at = strstr(at, word)); at++) count++;
    return count;
}

static void chain_becomes_epilogue(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    text t;
    grouped(HEAD "%4 = " CONV "%5 = add(%4, %3)\n%6 = sigmoid(%5)\n%7 = mul(%5, %6)\noutput %7 name=\"y\"\n", &t, &e);
    CHECK_EQ(count_of(&t, "conv("), 1);
    CHECK_EQ(count_of(&t, "pointwise("), 0);
    CHECK_HAS(t.at, "anchor=2 epi=\"a=acc");
    text_deinit(&t);
}

static void residual_goes_to_the_later_producer(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    text t;
    grouped(HEAD "%4 = " CONV "%5 = add(%4, %3)\n%6 = relu(%5)\n%7 = conv(%6, %2) stride=[1,1] dilation=[1,1] "
                 "pad=[0,0,0,0]\n%8 = add(%7, %6)\n"
                 "%9 = relu(%8)\noutput %9 name=\"y\"\n",
            &t, &e);
    CHECK_EQ(count_of(&t, "conv("), 2);
    CHECK_EQ(count_of(&t, "pointwise("), 0);
    CHECK_EQ(count_of(&t, "epi="), 2);
    text_deinit(&t);
}

static void anchor_read_elsewhere_stays_bare(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    text t;
    grouped(HEAD "%4 = " CONV "%5 = relu(%4)\n%6 = max_pool(%4) kernel=[1,1] stride=[1,1] dilation=[1,1] "
                 "pad=[0,0,0,0]\n%7 = add(%5, %6)\noutput %7 name=\"y\"\n",
            &t, &e);
    CHECK_EQ(count_of(&t, "anchor=2"), 0);
    text_deinit(&t);
}

static void several_results(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    text t;
    grouped(HEAD "%4 = " CONV "%5 = add(%4, %3)\n%6 = relu(%5)\noutput %5 name=\"y\"\noutput %6 name=\"z\"\n", &t, &e);
    CHECK_EQ(count_of(&t, "epi="), 1);
    CHECK_HAS(t.at, "store 1");
    text_deinit(&t);
}

static void elementwise_alone(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    text t;
    grouped("input %1: f32[2,3] name=\"x\"\ninput %2: f32[3] name=\"b\"\nconst %3: f32[] = {2}\n%4 = mul(%1, %3)\n%5 = "
            "add(%4, %2)\n%6 = tanh(%5)\noutput %6 name=\"y\"\n",
            &t, &e);
    CHECK_EQ(count_of(&t, "pointwise("), 1);
    CHECK_HAS(t.at, "imm");
    text_deinit(&t);
}

static void prologue_of_a_row(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    text t;
    grouped("input %1: f32[2,3] name=\"x\"\ninput %2: f32[3] name=\"b\"\n%4 = add(%2, %1)\n%6 = softmax(%4) "
            "axis=1\noutput %6 name=\"y\"\n",
            &t, &e);
    CHECK_EQ(count_of(&t, "pro="), 1);
    text_deinit(&t);
}

/* Two chains that feed each other through a product: any grouping that joins them whole would be a cycle. */
static void no_cycles(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    text t;
    grouped("input %1: f32[2,2] name=\"x\"\n%2 = relu(%1)\n%3 = matmul(%2, %2)\n%4 = add(%3, %2)\n%5 = neg(%4)\n%6 = "
            "matmul(%5, %4)\n%7 = mul(%6, %2)\n%8 = add(%7, %5)\noutput %8 name=\"y\"\n",
            &t, &e);
    CHECK_EQ(count_of(&t, "matmul("), 2);
    text_deinit(&t);
}

/* Anchors of every kind with something behind them, through the oracle. */
static void each_kind_of_anchor(void)
{
    static const char *const graphs[] = {
        "input %1: f32[4,3] name=\"x\"\ninput %2: i64[2] name=\"i\"\n%3 = gather(%1, %2)\n%4 = neg(%3)\noutput %4 "
        "name=\"y\"\n",
        "input %1: f32[1,2,4,4] name=\"x\"\n%3 = max_pool(%1) kernel=[2,2] stride=[2,2] dilation=[1,1] "
        "pad=[0,0,0,0]\n%4 = relu(%3)\noutput %4 name=\"y\"\n",
        "input %1: f32[1,2,4,4] name=\"x\"\n%3 = avg_pool(%1) kernel=[2,2] stride=[2,2] dilation=[1,1] "
        "pad=[0,0,0,0]\n%4 = relu(%3)\noutput %4 name=\"y\"\n",
        "input %1: f32[2,3,4] name=\"x\"\n%2 = relu(%1)\n%3 = reduce(%2) kind=max axes=[1]\n%4 = tanh(%3)\noutput %4 "
        "name=\"y\"\n",
        "input %1: f32[2,3,4] name=\"x\"\n%2 = relu(%1)\n%3 = layer_norm(%2) axis=2\n%4 = tanh(%3)\noutput %4 "
        "name=\"y\"\n",
        "input %1: f32[2,3,4] name=\"x\"\n%2 = relu(%1)\n%3 = rms_norm(%2) axis=2\n%4 = tanh(%3)\noutput %4 "
        "name=\"y\"\n",
        "input %1: f32[2,3,4] name=\"x\"\n%2 = relu(%1)\n%3 = log_softmax(%2) axis=1\n%4 = tanh(%3)\noutput %4 "
        "name=\"y\"\n",
        "input %1: f32[2,4,3] name=\"x\"\nconst %2: f32[4] = {1,2,3,4}\n%3 = group_norm(%1, %2, %2) groups=2\n%4 = "
        "tanh(%3)\noutput %4 name=\"y\"\n",
        "input %1: f32[1,2,4,4] name=\"x\"\n%3 = resize(%1) mode=linear size=[1,2,8,8] scale=[1,1,2,2]\n%4 = "
        "tanh(%3)\noutput %4 name=\"y\"\n",
        "input %1: f32[1,2,2,2] name=\"x\"\nconst %2: f32[2,1,2,2] = {1,2,3,4,5,6,7,8}\n%3 = conv_transpose(%1, %2) "
        "stride=[2,2] dilation=[1,1] pad=[0,0,0,0] out_pad=[0,0]\n"
        "%4 = tanh(%3)\noutput %4 name=\"y\"\n",
    };
    for (size_t i = 0; i < COUNT_OF(graphs); i++) {
        sinter_error error = { 0 };
        env e;
        env_init(&e, NULL, &error);
        text t;
        grouped(graphs[i], &t, &e);
        if (!CHECK_EQ(count_of(&t, "epi="), 1)) printf("%s\n", t.at);
        text_deinit(&t);
    }
}

static const test tests[] = { T(chain_becomes_epilogue),
                              T(residual_goes_to_the_later_producer),
                              T(anchor_read_elsewhere_stays_bare),
                              T(several_results),
                              T(elementwise_alone),
                              T(prologue_of_a_row),
                              T(no_cycles),
                              T(each_kind_of_anchor),
                              { 0 } };
TEST_MAIN(tests)

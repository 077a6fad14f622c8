/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir.c - graphs as text and under edits: print and parse are inverses, use counts stay right, orders are stable,
 * broken graphs are refused. */
#include "ir/build.h"
#include "test.h"

static const char *const round_trips[] = {
    "symbol \"N\" 1..8/1@4\ninput %1: f32[N,3] name=\"x\"\n%2: f32[N,3] = relu(%1) name=\"Relu_0\"\noutput %2 "
    "name=\"y\"\n",
    "const %1: f32[2,2] = {1,-2.5,inf,0.1}\nconst %2: i64[3] = {1,2,-3} name=\"shape\"\ninput %3: f32[2,2] name=\"x\"\n"
    "%4: f32[2,2] = add(%3, %1)\n%5: i64[3] = neg(%2)\noutput %4 name=\"y\"\noutput %5 name=\"z\"\n",
    "const %1: f32[3] = {1,2,3}\ninput %2: f32[2,3] name=\"x\"\n%3: f32[2,3] = pointwise(%2, %1) "
    "epi=\"a=load 0; b=load 1; c=add a b : f32; store 0 c\"\noutput %3 name=\"y\"\n",
    "input %1: bool[] name=\"c\"\ninput %2: f32[2] name=\"x\"\n%3: f32[2] = if(%1, %2) name=\"If_0\"\n  {\n  input %4: "
    "f32[2]\n"
    "  %5: f32[2] = neg(%4)\n  output %5\n  }\n  {\n  input %6: f32[2]\n  output %6\n  }\noutput %3 name=\"y\"\n",
    "const %1: i64[] = {5}\ninput %2: f32[2] name=\"x\"\n%3: f32[2], %4: f32[5,2] = loop(%1, -, %2) carried=1\n  {\n  "
    "input %5: i64[]\n"
    "  input %6: bool[]\n  input %7: f32[2]\n  %8: f32[2] = add(%7, %7)\n  output %6\n  output %8\n  output %7\n  }\n"
    "output %3 name=\"y\"\noutput %4 name=\"z\"\n",
    "input %1: f32[2,3] name=\"x\"\ninput %2: f32[3,4] name=\"w\"\ninput %3: f32[4] name=\"b\"\n"
    "%4: f32[2,4] = matmul(%1, %2, %3) anchor=2 epi=\"a=acc; b=load 2; c=add a b : f32; store 0 c\"\noutput %4 "
    "name=\"y\"\n",
};

static void print_of(env *e, const char *from, text *out)
{
    ir_graph *g;
    text_clear(out);
    if (!CHECK(ir_parse(e, from, strlen(from), &g) == SINTER_OK)) {
        printf("%s\n%s\n", e->error->text, from);
        return;
    }
    ir_print(g, out);
    ir_graph_destroy(g);
}

static void round_trip(void)
{
    for (size_t i = 0; i < COUNT_OF(round_trips); i++) {
        sinter_error error = { 0 };
        env e;
        env_init(&e, NULL, &error);
        text one, two;
        text_init(&one, &e);
        text_init(&two, &e);
        print_of(&e, round_trips[i], &one);
        if (one.length) print_of(&e, one.at, &two);
        CHECK_STR(one.at, two.at);
        text_deinit(&one);
        text_deinit(&two);
    }
}

static void large_constants_are_seeded(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    const char *s = "const %1: f32[10,10] hash=0x00ff name=\"w\"\ninput %2: f32[10] name=\"x\"\n%3: f32[10,10] = "
                    "add(%1, %2)\noutput %3 name=\"y\"\n";
    ir_graph *a, *b;
    if (CHECK(ir_parse(&e, s, strlen(s), &a) == SINTER_OK) && CHECK(ir_parse(&e, s, strlen(s), &b) == SINTER_OK)) {
        CHECK(!memcmp(ir_value_at(a, 1)->data, ir_value_at(b, 1)->data, 400));
        ir_graph_destroy(b);
        ir_graph_destroy(a);
    }
}

static void refuses(void)
{
    static const struct {
        const char *s, *why;
    } bad[] = {
        { "%1 = relu(%2)\n", "not defined" },
        { "input %1: f32[2]\n%2 = no_such_op(%1)\n", "an op is missing" },
        { "input %1: f32[2]\n%1 = relu(%1)\n", "defined twice" },
        { "input %1: f32[2]\n%2: f32[3,3] = relu(%1)\n", "inferred as" },
        { "input %1: f32[2]\n%2 = add(%1)\n", "number of inputs" },
        { "input %1: f32[2\n", "']' is missing" },
        { "input %1: f33[2]\n", "a type is missing" },
        { "const %1: f32[2] = {1}\n", "an element is missing" },
        { "input %1: bool[]\ninput %2: f32[2]\n%3 = if(%1, %2)\n  {\n  output %2\n  }\n  {\n  output %2\n  }\noutput "
          "%3\n",
          "not visible" },
        { "input %1: f32[2]\n%2: f32[2] = relu(%1) epi=\"a=acc; store 0 a\"\noutput %2\n", "epilogue" },
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        sinter_error error = { 0 };
        env e;
        env_init(&e, NULL, &error);
        ir_graph *g;
        CHECK_EQ(ir_parse(&e, bad[i].s, strlen(bad[i].s), &g), SINTER_INVALID_MODEL);
        CHECK_HAS(error.text, bad[i].why);
    }
}

static void edits_keep_counts(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    const char *s = "input %1: f32[2] name=\"x\"\n%2 = relu(%1)\n%3 = neg(%2)\n%4 = add(%3, %3)\n%5 = mul(%2, "
                    "%4)\noutput %5 name=\"y\"\noutput %3 name=\"z\"\n";
    ir_graph *g;
    if (!CHECK(ir_parse(&e, s, strlen(s), &g) == SINTER_OK)) return;
    CHECK_EQ(ir_value_at(g, 3)->use_count, 3);
    arena a;
    arena_init(&a, &e);
    ir_node_id *reader;
    CHECK_EQ(ir_readers(g, 3, &a, &reader), 1);
    CHECK_EQ(ir_readers(g, 2, &a, &reader), 2);
    /* An output keeps its id: abs takes over value 5, and the mul gets a value of its own. */
    ir_builder b = { .g = g, .region = IR_MAIN };
    const ir_value_id y = build_abs(&b, 4);
    ir_value_replace(g, 5, y);
    CHECK_EQ(ir_node_at(g, ir_value_at(g, 5)->producer)->op, OP_abs);
    CHECK(ir_sweep(g) == SINTER_OK);
    CHECK(ir_verify(g, IR_STAGE_IMPORTED) == SINTER_OK);
    /* An input in the place of an output needs a copy. */
    ir_value_replace(g, 5, 1);
    CHECK_EQ(ir_node_at(g, ir_value_at(g, 5)->producer)->op, OP_copy);
    CHECK(ir_sweep(g) == SINTER_OK);
    CHECK(ir_verify(g, IR_STAGE_IMPORTED) == SINTER_OK);
    ir_node_id *order;
    uint32_t count;
    CHECK(ir_order(g, IR_MAIN, &a, &order, &count) == SINTER_OK);
    CHECK_EQ(count, 3);
    /* A wrong use count is what the verifier is for. */
    g->value.at[1].use_count++;
    CHECK_EQ(ir_verify(g, IR_STAGE_IMPORTED), SINTER_INTERNAL);
    arena_deinit(&a);
    ir_graph_destroy(g);
}

static void cycles_are_found(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    const char *s = "input %1: f32[2] name=\"x\"\n%2 = relu(%1)\n%3 = add(%2, %1)\noutput %3 name=\"y\"\n";
    ir_graph *g;
    if (!CHECK(ir_parse(&e, s, strlen(s), &g) == SINTER_OK)) return;
    ir_node_set_in(g, ir_value_at(g, 2)->producer, 0, 3);
    CHECK_EQ(ir_verify(g, IR_STAGE_IMPORTED), SINTER_INTERNAL);
    CHECK_HAS(error.text, "cycle");
    ir_graph_destroy(g);
}

static void known_without_folding(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    const char *s =
        "symbol \"N\" 1..8/1@4\ninput %1: f32[N,3] name=\"x\"\nconst %2: i64[1] = {3}\n%3 = shape_value() value=[N,3]\n"
        "%4 = slice(%3) start=[1] step=[1] size=[1]\n%5 = eq(%4, %2)\n%6 = slice(%3) start=[0] step=[1] size=[1]\n%7 = "
        "eq(%6, %2)\n"
        "output %5 name=\"a\"\noutput %7 name=\"b\"\n";
    ir_graph *g;
    if (!CHECK(ir_parse(&e, s, strlen(s), &g) == SINTER_OK)) {
        printf("%s\n", error.text);
        return;
    }
    double x = -1;
    CHECK(ir_known_scalar(g, ir_region_at(g, IR_MAIN)->result.at[0], &x));
    CHECK_EQ_F(x, 1);
    CHECK(!ir_known_scalar(g, ir_region_at(g, IR_MAIN)->result.at[1], &x));
    ir_graph_destroy(g);
}

static const test tests[] = { T(round_trip),       T(large_constants_are_seeded), T(refuses), T(edits_keep_counts),
                              T(cycles_are_found), T(known_without_folding),      { 0 } };
TEST_MAIN(tests)

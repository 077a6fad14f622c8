/* SPDX-License-Identifier: Apache-2.0 */
/* test_expr.c - expression programs: text both ways, what is refused, canonical order, and the reference. */
#include "ops/expr.h"
#include "test.h"

#include <math.h>

typedef struct fixture {
    env e;
    arena a;
} fixture;

static void setup(fixture *f)
{
    env_init(&f->e, NULL, NULL);
    arena_init(&f->a, &f->e);
}

static expr *parse(fixture *f, const char *s, const char **why)
{
    scan at = scan_of(s, strlen(s));
    expr *x = NULL;
    *why = NULL;
    return expr_parse(&f->a, &at, &x, why) && at.at == at.end ? x : NULL;
}

static const char *print(fixture *f, const expr *x)
{
    text t;
    text_init(&t, &f->e);
    expr_print(x, &t);
    const char *own = arena_text(&f->a, t.at, t.length);
    text_deinit(&t);
    return own;
}

static void text_round_trips(void)
{
    static const char *const form[] = {
        "a=acc; b=load 2; c=add a b : f32; d=relu c : f32; store 0 d",
        "a=load 0 : i64; b=imm 3 : i64; c=mul a b : i64; store 0 c",
        "a=load 0; b=imm 0.1; c=imm -inf; d=clip a b c : f32; reduce max [0,2] 0 d; store 1 d",
        "a=acc : f16; b=cast a : f32; c=load 1; d=load 2 : u8; e=quantize b c d : u8; store 0 e",
    };
    for (size_t i = 0; i < sizeof(form) / sizeof(*form); i++) {
        fixture f;
        const char *why;
        setup(&f);
        expr *x = parse(&f, form[i], &why);
        if (CHECK(x != NULL)) {
            CHECK_STR(print(&f, x), form[i]);
            const expr *copy = expr_copy(&f.a, x);
            CHECK(expr_equal(x, copy) && expr_hash(x, 1) == expr_hash(copy, 1));
            CHECK(expr_check(x, 3, i == 2 ? 2 : 1, true) == NULL);
            expr_canonicalize(x);
            CHECK(expr_equal(x, copy));
            x->at[0].operand ^= 1u;
            CHECK(expr_equal(x, copy) == (x->at[0].op == EXPR_ACC));
        } else {
            (void)printf("%s: %s\n", form[i], why);
        }
        arena_deinit(&f.a);
    }
    CHECK(expr_equal(NULL, NULL));
}

static void what_is_wrong_is_said(void)
{
    static const char *const syntax[][2] = {
        { "a=add b c : f32", "not given" },
        { "a=foo : f32", "no scalar function" },
        { "a=load x", "number of an operand" },
        { "a=acc; b=relu a; store 0 b", "no type" },
        { "a=imm 0.5 : i32; store 0 a", "no integer" },
        { "store 0", "name of a value" },
        { "", "an instruction is" },
        { "a=acc; reduce some [0] 0 a", "no known kind" },
        { "a=acc; reduce sum [16] 0 a", "no axis" },
        { "a=acc : f33", "type is none" },
    };
    fixture f;
    const char *why;
    setup(&f);
    for (size_t i = 0; i < sizeof(syntax) / sizeof(*syntax); i++) {
        CHECK(parse(&f, syntax[i][0], &why) == NULL);
        CHECK_HAS(why, syntax[i][1]);
    }
    static const char *const meaning[][2] = {
        { "a=acc; store 0 a; store 0 a", "twice" },
        { "a=acc; b=relu a : f32", "never stored" },
        { "a=load 7; store 0 a", "not there" },
        { "a=acc; store 1 a", "not there" },
        { "a=acc; b=load 0 : f16; c=add a b : f32; store 0 c", "different types" },
        { "a=acc; b=relu a : f16; store 0 b", "type of its arguments" },
        { "a=load 0 : i32; b=exp a : i32; store 0 b", "does not take" },
        { "a=acc; b=where a a a : f32; store 0 b", "not bool" },
        { "a=acc; b=eq a a : f32; store 0 b", "not bool" },
    };
    for (size_t i = 0; i < sizeof(meaning) / sizeof(*meaning); i++) {
        const expr *x = parse(&f, meaning[i][0], &why);
        if (CHECK(x != NULL)) CHECK_HAS(expr_check(x, 2, 1, true), meaning[i][1]);
    }
    const expr *x = parse(&f, "a=acc; store 0 a", &why);
    CHECK_HAS(expr_check(x, 2, 1, false), "no anchor");
    arena_deinit(&f.a);
}

static void canonical_order(void)
{
    static const char *const pair[][2] = {
        { "a=load 1; b=load 0; c=exp a : f32; d=add b b : f32; e=load 0; f=mul d e : f32; store 0 f",
          "a=load 0; b=add a a : f32; c=mul a b : f32; store 0 c" },
        { "a=load 0; b=relu a : f32; c=load 0; d=relu c : f32; e=sub b d : f32; store 1 e; store 0 a",
          "a=load 0; store 0 a; b=relu a : f32; c=sub b b : f32; store 1 c" },
        { "a=load 1; b=load 0; c=add b a : f32; d=add a b : f32; e=sub c d : f32; store 0 e",
          "a=load 0; b=load 1; c=add a b : f32; d=sub c c : f32; store 0 d" },
    };
    for (size_t i = 0; i < sizeof(pair) / sizeof(*pair); i++) {
        fixture f;
        const char *why;
        setup(&f);
        expr *x = parse(&f, pair[i][0], &why);
        if (CHECK(x != NULL)) {
            expr_canonicalize(x);
            CHECK_STR(print(&f, x), pair[i][1]);
        }
        arena_deinit(&f.a);
    }
}

static void the_reference_runs(void)
{
    fixture f;
    const char *why;
    setup(&f);
    float x[6] = { 1, -2, 3, -4, 5, -6 }, bias[3] = { 10, 20, 30 }, y[6] = { 0 }, sum[3] = { 0 }, lse[2] = { 0 };
    int8_t q[6] = { 0 };
    const int64_t space[2] = { 2, 3 };
    view in[2], out[4];
    CHECK(view_init(&in[0], SINTER_DTYPE_F32, 2, space, x) && view_init(&in[1], SINTER_DTYPE_F32, 1, &space[1], bias));
    CHECK(view_init(&out[0], SINTER_DTYPE_F32, 2, space, y));
    CHECK(view_init(&out[1], SINTER_DTYPE_F32, 2, (const int64_t[]){ 1, 3 }, sum));
    CHECK(view_init(&out[2], SINTER_DTYPE_F32, 2, (const int64_t[]){ 2, 1 }, lse));
    CHECK(view_init(&out[3], SINTER_DTYPE_I8, 2, space, q));
    const expr *p =
        parse(&f,
              "a=acc; b=load 1; c=add a b : f32; store 0 c; reduce sum [0] 1 c; reduce log_sum_exp [1] 2 a; "
              "d=imm 10; e=mul c d : f32; f=cast e : i8; store 3 f",
              &why);
    if (CHECK(p != NULL) && CHECK(expr_check(p, 2, 4, true) == NULL)) {
        CHECK_EQ(expr_run(p, 2, space, &in[0], in, out, false), SINTER_OK);
        CHECK(y[0] == 11 && y[4] == 25 && y[5] == 24);
        CHECK(sum[0] == 17 && sum[2] == 57);
        CHECK_NEAR(lse[0], log(exp(1) + exp(-2) + exp(3)), 1e-6);
        CHECK(q[0] == 110 && q[1] == 127);
        CHECK_EQ(expr_run(p, 2, space, NULL, in, out, false), SINTER_INVALID_ARG);
        out[0].dim[1] = 2;
        CHECK_EQ(expr_run(p, 2, space, &in[0], in, out, false), SINTER_INVALID_ARG);
    }
    int32_t n[3] = { 7, -3, 2 }, least = 0, mean = 0, none = 0;
    view v, r[3];
    CHECK(view_init(&v, SINTER_DTYPE_I32, 1, &space[1], n));
    int32_t *const at[3] = { &least, &mean, &none };
    for (uint32_t i = 0; i < 3; i++) CHECK(view_init(&r[i], SINTER_DTYPE_I32, 1, (const int64_t[]){ 1 }, at[i]));
    p = parse(&f, "a=load 0 : i32; reduce min [0] 0 a; reduce mean [0] 1 a; reduce l1 [0] 2 a", &why);
    if (CHECK(p != NULL)) {
        CHECK_EQ(expr_run(p, 1, &space[1], NULL, &v, r, false), SINTER_OK);
        CHECK(least == -3 && mean == 2 && none == 12);
    }
    arena_deinit(&f.a);
}

/* One element for each two of the space, along either axis; the last block is short. */
static void loads_in_blocks(void)
{
    static const struct {
        const char *text;
        int64_t size[2];
        float want[6];
    } at[] = {
        { "a=load 0; b=load 1 / 1:2; c=mul a b : f32; store 0 c", { 2, 2 }, { 1, 2, 30, 400, 500, 6000 } },
        { "a=load 0; b=load 1 / 1:2; c=mul a b : f32; store 0 c", { 1, 2 }, { 1, 2, 30, 4, 5, 60 } },
        { "a=load 0; b=load 1 / 0:2; c=mul a b : f32; store 0 c", { 1, 3 }, { 1, 20, 300, 4, 50, 600 } },
    };
    fixture f;
    const char *why;
    setup(&f);
    const int64_t space[2] = { 2, 3 };
    float x[6] = { 1, 2, 3, 4, 5, 6 }, scale[4] = { 1, 10, 100, 1000 }, y[6];
    view in[2], out;
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const expr *p = parse(&f, at[i].text, &why);
        if (!CHECK(p != NULL)) continue;
        CHECK(view_init(&in[0], SINTER_DTYPE_F32, 2, space, x));
        CHECK(view_init(&in[1], SINTER_DTYPE_F32, 2, at[i].size, scale));
        CHECK(view_init(&out, SINTER_DTYPE_F32, 2, space, y));
        CHECK_EQ(expr_run(p, 2, space, NULL, in, &out, false), SINTER_OK);
        for (uint32_t k = 0; k < 6; k++) CHECK_NEAR(y[k], at[i].want[k], 0);
        in[1].dim[1] = 4;
        CHECK_EQ(expr_run(p, 2, space, NULL, in, &out, false), SINTER_INVALID_ARG);
        CHECK_HAS(expr_check(p, 2, 1, false), "outside the program of a weight");
    }
    arena_deinit(&f.a);
}

/* 2 / (4 / 255) is 127.5 in double, and less in f32. */
static void f32_after_each_instruction(void)
{
    fixture f;
    const char *why;
    setup(&f);
    float span = 4, at_zero = 2, y = 0;
    view in[2], out;
    const expr *p =
        parse(&f, "a=load 0; b=imm 255; c=div a b : f32; d=load 1; e=div d c : f32; f=round e : f32; store 0 f", &why);
    CHECK(view_init(&in[0], SINTER_DTYPE_F32, 0, NULL, &span) &&
          view_init(&in[1], SINTER_DTYPE_F32, 0, NULL, &at_zero));
    CHECK(view_init(&out, SINTER_DTYPE_F32, 0, NULL, &y));
    if (CHECK(p != NULL)) {
        CHECK_EQ(expr_run(p, 0, NULL, NULL, in, &out, false), SINTER_OK);
        CHECK_NEAR(y, 128, 0);
        CHECK_EQ(expr_run(p, 0, NULL, NULL, in, &out, true), SINTER_OK);
        CHECK_NEAR(y, 127, 0);
    }
    arena_deinit(&f.a);
}

static const test tests[] = {
    T(text_round_trips),
    T(what_is_wrong_is_said),
    T(canonical_order),
    T(the_reference_runs),
    T(loads_in_blocks),
    T(f32_after_each_instruction),
    { 0 },
};
TEST_MAIN(tests)

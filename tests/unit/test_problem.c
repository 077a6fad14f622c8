/* SPDX-License-Identifier: Apache-2.0 */
/* test_problem.c - problems as text both ways, what is refused, and the oracle on a group with both programs. */
#include "ops/problem.h"
#include "test.h"

typedef struct fixture {
    env e;
    sinter_error error;
    arena a;
} fixture;

static void setup(fixture *f)
{
    memset(f, 0, sizeof(*f));
    env_init(&f->e, NULL, &f->error);
    arena_init(&f->a, &f->e);
}

static problem *parse(fixture *f, const char *s, const char **why)
{
    scan at = scan_of(s, strlen(s));
    problem *p = NULL;
    if (!problem_parse(&f->a, &at, &p, why)) return NULL;
    CHECK(at.at == at.end);
    return p;
}

static const char *print(fixture *f, const problem *p)
{
    text t;
    text_init(&t, &f->e);
    problem_print(p, &t);
    const char *own = arena_text(&f->a, t.at, t.length);
    text_deinit(&t);
    return own;
}

static bool times_alike(const char *first, const char *second)
{
    fixture f;
    const char *why = "";
    text t[2];
    setup(&f);
    for (int i = 0; i < 2; i++) {
        const problem *p = parse(&f, i ? second : first, &why);
        text_init(&t[i], &f.e);
        if (CHECK(p != NULL)) problem_print_timed(p, &t[i]);
    }
    const bool is_same = !strcmp(t[0].at, t[1].at);
    for (int i = 0; i < 2; i++) text_deinit(&t[i]);
    arena_deinit(&f.a);
    return is_same;
}

/* Layers that differ in their scales alone are timed once. */
static void times_do_not_depend_on_scales(void)
{
#define SCALED(scale, zero)                                                                                            \
    "pointwise:f32[64] -> u8[64] epi=\"a=load 0; b=imm " scale "; c=imm " zero                                         \
    " : u8; d=quantize a b c : u8; store 0 d\""
#define POWER(exponent) "pointwise:f32[64] -> f32[64] epi=\"a=load 0; b=imm " exponent "; c=pow a b : f32; store 0 c\""
    CHECK(times_alike(SCALED("0.25", "7"), SCALED("0.125", "130")));
    CHECK(!times_alike(SCALED("0.25", "7"), SCALED("0.25", "0")));
    CHECK(times_alike(POWER("2"), POWER("2")));
    CHECK(!times_alike(POWER("2"), POWER("2.5")));
}

static void text_round_trips(void)
{
    static const char *const form[] = {
        "conv:f32[1,64,56,56]{0,2,3,1} w:f32[64,64,3,3] -> f32[1,64,56,56]{0,2,3,1} pad=[1,1,1,1] epi=\"a=acc; store 0 "
        "a\"",
        "matmul:f32[1..4096/1@128,512] w:f32[512,8] + w:f32[8] -> f32[1..4096/1@128,8] epi=\"a=acc; b=load 2; c=add a "
        "b : f32; store 0 c\"",
        "pointwise:f32[0..?/1@1,3]* f32[] -> f32[0..?/1@1,3] epi=\"a=load 0; b=load 1; c=mul a b : f32; store 0 c\"",
        "matmul:f32[1,64] w:u4[64,48] + w:f16[2,48] -> f32[1,48] weight=\"a=load 1 : u4; b=load 2 / 0:32 : f16; c=imm "
        "8 : "
        "u4; d=dequantize a b c : f32; store 0 d\"",
        "softmax:f16[8,128] -> f16[8,128] axis=1 pro=\"a=load 0 : f16; b=neg a : f16; store 0 b\"",
        "matmul_integer:u8[2,3] w:i8[3,4] - w:i8[] -> i32[2,4]",
        "eye_like: -> f32[2,2] shape=[2,2]",
        "bind:i64[1] -> symbols=[4]",
        "reshape:f32[6] -> f32[2,3] shape=?[2,3]",
        "quantize:f32[4] w:f32[] w:i8[] -> i8[4] type=i8",
    };
    for (size_t i = 0; i < sizeof(form) / sizeof(*form); i++) {
        fixture f;
        const char *why = "";
        setup(&f);
        const problem *p = parse(&f, form[i], &why);
        if (CHECK(p != NULL)) CHECK_STR(print(&f, p), form[i]);
        else (void)printf("%s: %s\n", form[i], why);
        if (p) CHECK_EQ(problem_is_static(p), i != 1 && i != 2);
        arena_deinit(&f.a);
    }
}

static void what_is_wrong_is_said(void)
{
    static const char *const bad[][2] = {
        { "nothing:f32[1] -> f32[1]", "name of an op" },
        { "relu f32[1] -> f32[1]", "':'" },
        { "relu:f32[1] f32[1] -> f32[1]", "number of inputs" },
        { "relu:f3[1] -> f32[1]", "type" },
        { "relu:f32[1 -> f32[1]", "dim" },
        { "relu:f32[5..3/1@4] -> f32[1]", "dim" },
        { "relu:f32[2,2]{0,0} -> f32[1]", "order" },
        { "relu:f32[1]", "type" },
        { "relu:f32[1] -> f32[1] f32[1]", "number of outputs" },
        { "pointwise:f32[1] -> f32[1]", "program" },
        { "relu:f32[1] -> f32[1] epi=\"a=acc; store 0 a\" ", NULL },
        { "relu:f32[1] -> f32[1] epi=\"a=load 3; store 0 a\"", "not there" },
        { "relu:f32[1] -> epi=\"a=acc\"", "1 to 32 results" },
        { "relu:f32[1] + f16[1] -> f32[1] epi=\"a=load 1; store 0 a\"", "another type" },
        { "relu:f32[-1] -> f32[1]", "dim" },
        { "relu:f32[4] w:f32[2] -> f32[4] weight=\"a=load 1; store 0 a\"", "number of inputs" },
        { "add:f32[4] w:f32[4] -> f32[4] weight=\"a=load 1; store 0 a\"", "no packed weight" },
        { "matmul:f32[1,2] u8[2,2] -> f32[1,2] weight=\"a=load 1 : u8; b=cast a : f32; store 0 b\"", "no constant" },
        { "matmul:f32[1,2] w:u8[2,1..2/1@2] -> f32[1,2] weight=\"a=load 1 : u8; b=cast a : f32; store 0 b\"",
          "not known" },
        { "matmul:f32[1,2] w:u8[2,2] + w:f32[2] -> f32[1,2] weight=\"a=load 2; store 0 a\"", "does not read it" },
        { "matmul:f32[1,2] w:f32[2,2] -> f32[1,2] weight=\"a=load 1 / 0:2; store 0 a\"", "does not read it" },
        { "matmul:f32[1,2] w:f32[2,2] -> f32[1,2] weight=\"a=load 1; b=load 0; c=add a b : f32; store 0 c\"",
          "no constant" },
        { "matmul:f32[1,2] w:f32[2,2] -> f32[1,2] weight=\"a=load 1; reduce sum [0] 0 a\"", "reduces" },
        { "matmul:f32[1,2] w:f32[2,2] -> f32[1,2] epi=\"a=acc; b=load 1 / 0:2; c=add a b : f32; store 0 c\"",
          "outside" },
        { "matmul:f32[1,2] w:f32[2,2] -> f32[1,2] weight=\"a=load 1 / 0:1; store 0 a\"", "AXIS:SIZE" },
        { "relu:f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] -> f32[1]", "dim" },
        { "relu:f32[33,4611686018427387904] -> f32[1]", "more elements than 2^50" },
        { "relu:f32[1125899906842624] -> f32[1125899906842624]", NULL },
        { "relu:f32[0,72057594037927936] -> f32[0,72057594037927936]", NULL },
        { "relu:f32[0,72057594037927937] -> f32[1]", "its axes of size 0 aside, multiply to more than 2^56" },
        { "conv:f32[1,1,9,9] w:f32[1,1,3,3] -> f32[1,1,7,7] dilation=[2147483648,1]", "passes 2147483647" },
        { "conv:f32[1,1,9,9] w:f32[1,1,3,3] -> f32[1,1,7,7] dilation=[2147483647,1]", NULL },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        fixture f;
        const char *why = "";
        setup(&f);
        scan s = scan_of(bad[i][0], strlen(bad[i][0]));
        problem *p;
        const bool is_fine = problem_parse(&f.a, &s, &p, &why);
        CHECK_EQ(is_fine, bad[i][1] == NULL);
        if (!is_fine && bad[i][1]) CHECK_HAS(why, bad[i][1]);
        arena_deinit(&f.a);
    }
}

/* Nothing is rounded between prologue, anchor and epilogue: f16 would lose the small term. */
static void the_oracle_keeps_precision(void)
{
    fixture f;
    const char *why = "";
    setup(&f);
    const problem *p =
        parse(&f,
              "identity:f16[2] + f16[1] -> f16[2] pro=\"a=load 0 : f16; b=load 1 : f16; c=add a b : f16; store 0 c\" "
              "epi=\"a=acc : f16; b=load 0 : f16; c=sub a b : f16; store 0 c\"",
              &why);
    if (!CHECK(p != NULL)) {
        (void)printf("%s\n", why);
        arena_deinit(&f.a);
        return;
    }
    uint16_t x[2] = { dtype_f16_of_f64(2048), dtype_f16_of_f64(1) }, small = dtype_f16_of_f64(0.25), y[2] = { 0, 0 };
    view in[2], out;
    CHECK(view_init(&in[0], SINTER_DTYPE_F16, 1, (const int64_t[]){ 2 }, x));
    CHECK(view_init(&in[1], SINTER_DTYPE_F16, 1, (const int64_t[]){ 1 }, &small));
    CHECK(view_init(&out, SINTER_DTYPE_F16, 1, (const int64_t[]){ 2 }, y));
    ref_call c = {
        .e = &f.e, .op = p->op, .attrs = p->attrs, .count_in = 2, .count_out = 1, .in = in, .out = &out, .scratch = &f.a
    };
    CHECK_EQ(problem_reference(p, &c), SINTER_OK);
    CHECK_EQ(y[0], small);
    CHECK_EQ(y[1], small);
    c.count_in = 1;
    CHECK_EQ(problem_reference(p, &c), SINTER_INVALID_ARG);
    /* An epilogue of reductions alone: the space comes from the anchor's shape function. */
    p = parse(&f, "mul:f32[2,3] f32[3] -> f32[2,1] epi=\"a=acc; reduce sum [1] 0 a\"", &why);
    if (CHECK(p != NULL)) {
        float m[6] = { 1, 2, 3, 4, 5, 6 }, w[3] = { 1, 10, 100 }, r[2] = { 0, 0 };
        CHECK(view_init(&in[0], SINTER_DTYPE_F32, 2, (const int64_t[]){ 2, 3 }, m));
        CHECK(view_init(&in[1], SINTER_DTYPE_F32, 1, (const int64_t[]){ 3 }, w));
        CHECK(view_init(&out, SINTER_DTYPE_F32, 2, (const int64_t[]){ 2, 1 }, r));
        c.count_in = 2;
        c.attrs = NULL;
        CHECK_EQ(problem_reference(p, &c), SINTER_OK);
        CHECK(r[0] == 321 && r[1] == 654);
    }
    arena_deinit(&f.a);
}

/* Random ranges of the two sizes that the op wants equal, `times` the second one: both become what they have in common.
 * The weight stays constant where there is something in common. */
static void unify_one(const char *form, uint32_t axis_x, uint32_t axis_w, int64_t times)
{
    uint64_t seed = 1;
    for (int i = 0; i < 500; i++) {
        fixture f;
        setup(&f);
        char line[256], size[2][80];
        int64_t n[4];
        for (int k = 0; k < 2; k++) {
            n[2 * k] = (int64_t)(test_random(&seed) % 12);
            n[2 * k + 1] = n[2 * k] + (times > 1 && k ? 0 : (int64_t)(test_random(&seed) % 12));
            const int64_t opt = n[2 * k] + (int64_t)(test_random(&seed) % (uint64_t)(n[2 * k + 1] - n[2 * k] + 1));
            const char *as = n[2 * k] == n[2 * k + 1] ? "%ld" : "%ld..%ld/1@%ld";
            (void)snprintf(size[k], sizeof size[k], as, (long)n[2 * k], (long)n[2 * k + 1], (long)opt);
        }
        (void)snprintf(line, sizeof line, form, size[0], size[1]);
        const char *why = NULL;
        problem *p = parse(&f, line, &why);
        if (!p) printf("%s: %s\n", line, why);
        if (CHECK(p != NULL)) {
            const dim_range *x = &p->in[0].dim[axis_x], *w = &p->in[1].dim[axis_w], before = *x;
            problem_unify(p);
            const int64_t min = n[0] > times * n[2] ? n[0] : times * n[2],
                          max = n[1] < times * n[3] ? n[1] : times * n[3];
            CHECK_EQ(x->min, min <= max ? min : before.min);
            CHECK_EQ(x->max, min <= max ? max : before.max);
            CHECK(x->min <= x->opt && x->opt <= x->max && w->min <= w->opt && w->opt <= w->max);
            CHECK_EQ(p->in[1].is_const, min <= max);
            if (min <= max && times == 1) CHECK(w->min == min && w->max == max);
        }
        arena_deinit(&f.a);
    }
}

static void equal_sizes_have_one_range(void)
{
    unify_one("matmul:f32[2,%s] w:f32[%s,3] -> f32[2,3]", 1, 0, 1);
    unify_one("matmul:f32[2,%s] w:f32[%s,3] -> f32[2,3] pro=\"a=load 0 : f32; b=neg a : f32; store 0 b\"", 1, 0, 1);
    unify_one("matmul:f32[%s,2] w:f32[3,%s] -> f32[2,3] trans_a=1 trans_b=1", 0, 1, 1);
    unify_one("conv:f32[1,%s,5] w:f32[4,%s,1] -> f32[1,4,5]", 1, 1, 1);
    unify_one("conv:f32[1,%s,5] w:f32[4,%s,1] -> f32[1,4,5] groups=2", 1, 1, 2);
    unify_one("conv_transpose:f32[1,%s,5] w:f32[%s,4,1] -> f32[1,4,5]", 1, 0, 1);
    unify_one("gru:f32[2,1,%s] w:f32[1,9,%s] w:f32[1,9,3] -> f32[2,1,1,3]", 2, 2, 1);
}

static const test tests[] = { T(equal_sizes_have_one_range),    T(text_round_trips),
                              T(times_do_not_depend_on_scales), T(what_is_wrong_is_said),
                              T(the_oracle_keeps_precision),    { 0 } };
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_models.c - small models that are hard to lower, each at every instruction set of this machine against the
 * reference: operands that are tied or views of each other, sizes that are equal or 1 only when a run says so. */
#include "model_text.h"
#include "cpu/isa.h"
#include "test.h"

#include <stdarg.h>

static long all_runs; /* those that were not refused, at all instruction sets */

static long same(const char *text)
{
    char why[1024];
    long runs = 0;
    const char *wrong = NULL;
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT && !wrong; isa = isa_level_next(isa)) {
        wrong = model_compare(text, (model_device){ .kind = "cpu", .isa = isa_level_name(isa) }, why, &runs);
        if (!CHECK(!wrong)) printf("%s\n  %s: %s\n", text, isa_level_name(isa), wrong);
    }
    all_runs += runs;
    return runs;
}

/* Since the last time this many ran at each instruction set. */
static void enough(long least)
{
    long levels = 0;
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) levels++;
    CHECK(all_runs >= least * levels);
    all_runs = 0;
}

static void text_of(char *to, const char *pattern, ...)
{
    va_list list;
    va_start(list, pattern);
    (void)vsnprintf(to, 1024, pattern, list);
    va_end(list);
}

/* ---- concatenation ---- */

/* Operands from one set, in every choice of three; along each axis, with and without other readers. */
static void concat_of_tied_operands(void)
{
    const char *const made = "in x f32 4,4,4; a = Relu x; b = Transpose a perm=[0,2,1]; c = Exp x;"
                             "e = Slice a {3} {-5} {1} {-1}; f = Add x c; g = Slice c {0} {0} {%d}; ";
    static const char *const name = "xabcefg";
    char text[1024], first[1024];
    for (int axis = 0; axis < 3; axis++) {
        text_of(first, made, axis);
        for (const char *p = name; *p; p++)
            for (const char *q = name; *q; q++) {
                text_of(text, "%sy = Concat %c %c %c axis=%d; out y", first, *p, *q, name[(p - name + axis) % 7], axis);
                (void)same(text);
                text_of(text, "%sy = Concat %c %c axis=%d; z = Concat y %c axis=%d; v = Neg z; out y; out v; out a",
                        first, *p, *q, axis, *p, axis);
                (void)same(text);
                text_of(text,
                        "%sy = Concat %c %c axis=%d; z, w = Split y axis=%d num_outputs=2; v = Neg z; out v; out w",
                        first, *p, *q, axis, 2 - axis);
                (void)same(text);
            }
    }
    enough(440);
}

/* Parts of sizes that a run decides, some of them 0; parts that are results, are read elsewhere, or lie in bodies. */
static void concat_of_sizes(void)
{
    static const char *const part[] = { "a", "b", "a b", "b a b", "a a", "e a e", "t a", "v v", "s s" };
    char text[1024];
    for (int axis = 0; axis < 3; axis++)
        for (uint32_t i = 0; i < 9; i++)
            for (uint32_t k = 0; k < 9; k++) {
                static const char *const dims[3][2] = { { "N,2,4", "M,2,4" },
                                                        { "2,N,4", "2,M,4" },
                                                        { "2,4,N", "2,4,M" } };
                text_of(
                    text,
                    "sym N 0 2 3; sym M 0 1 5; in x f32 %s; in w f32 %s; a = Exp x; b = Neg w; t = Relu a;"
                    "e = Slice b {0} {0} {%d}; v = Slice x {-1} {-9} {%d} {-1}; s, u = Split b axis=%d num_outputs=2;"
                    "y = Concat %s %s axis=%d; out y%s",
                    dims[axis][0], dims[axis][1], axis, axis, axis, part[i], part[k], axis,
                    k % 3 == 1   ? "; out a"
                    : k % 3 == 2 ? "; z = Concat y y axis=2; out z; q = Mul y y; out q"
                                 : "");
                (void)same(text);
            }
    enough(2700);
}

static void concat_in_bodies(void)
{
    (void)same("sym N 0 2 3; in c bool ; in x f32 2,N; a = Exp x; y = If c then_branch=(b = Neg x; r = Concat b b "
               "axis=1; out r)"
               "else_branch=(r = Concat a a axis=1; out r); z = Concat a a axis=1; out y; out z");
    (void)same("sym N 0 2 3; in c bool ; in x f32 2,N; a = Exp x; y, w = If c "
               "then_branch=(b = Neg x; r = Concat b b axis=1; out b; out r)"
               "else_branch=(b = Neg a; r = Concat b a axis=1; out b; out r); z = Concat a y w axis=1; out z");
    (void)same("in k i64 ; in c bool ; in x f32 2,4; y, s = Loop k c x body=(in i i64 ; in p bool ; in v f32 2,4;"
               "b = Neg v; r = Concat b b axis=1; d = Slice r {0} {4} {1}; e = Slice r {4} {8} {1}; f = Add d e; q = "
               "Identity p;"
               "out q; out f; out r); out y; out s");
    (void)same("in k i64 ; in c bool ; in x f32 2,4; y, z, s = Loop k c x x body=(in i i64 ; in p bool ; in v f32 2,4; "
               "in w f32 2,4;"
               "q = Identity p; r = Concat v v axis=0; out q; out w; out v; out r); out y; out z; out s");
    enough(10);
}

/* ---- broadcasts of sizes that may be equal or 1 ---- */

static void broadcasts(void)
{
    static const char *const use[] = {
        "y = Expand x s; out y",
        "e = Expand x s; y = Add e w; out y",
        "e = Expand x s; y = Neg e; out y; out e",
        "a = Exp x; e = Expand a s; y = Concat e e axis=1; out y",
        "a = Exp x; e = Expand a s; t = Transpose e perm=[1,0]; y = MatMul t e; out y",
        "e = Expand x s; y = Reshape e {-1}; out y",
        "e = Expand x s; y = ReduceSum e {0} keepdims=0; out y",
        "e = Expand x s; y = Softmax e axis=1; out y",
        "a = Exp x; e = Expand a s; b = Slice e {0} {1} {0}; c = Slice e {-3} {-1} {1}; d = Neg c; out b; out d",
        "y = Add x w; out y",
        "y = Add x w; z = Add y x; q = Mul w z; out q",
        "a = Exp x; b = Neg w; y = Mul a b; out y; out a; out b",
        "a = Exp x; y = Mul a w; z = ReduceSum y {1}; q = Div y z; out q",
        "y = Where p x w; out y",
        "t = Transpose x perm=[1,0]; v = Transpose w perm=[1,0]; y = Add t v; z = Softmax y axis=0; out z",
        "y = Concat x w axis=0; out y",
    };
    static const char *const shape[][2] = { { "N,4", "M,4" }, { "4,N", "4,M" }, { "N,M", "M,N" }, { "N,N", "M,M" },
                                            { "N,1", "1,M" }, { "N,4", "4,4" }, { "N,M", "M,4" }, { "N,1", "M,4" } };
    char text[1024];
    for (uint32_t i = 0; i < sizeof use / sizeof *use; i++)
        for (uint32_t k = 0; k < sizeof shape / sizeof *shape; k++)
            for (int low = 0; low < 2; low++) {
                text_of(text, "sym N %d 3 4; sym M %d 4 4; in x f32 %s; in w f32 %s; in p bool 1,1; s = Shape w; %s",
                        low, low, shape[k][0], shape[k][1], use[i]);
                if (k < 6 || strncmp(use[i], "y = Concat", 10) != 0) (void)same(text);
            }
    /* 0 beside 1, 1 beside 1, and those that are alike. */
    CHECK_EQ(same("sym N 0 3 4; sym M 0 4 4; in x f32 N,4; in w f32 M,4; y = Add x w; out y") % 8, 0);
    enough(1600);
}

/* ---- views ---- */

/* Chains of three views, then an op that reads the last one and the first. */
static void views_of_views(void)
{
    static const char *const step[] = { "Transpose %c perm=[1,0]",     "Slice %c {1} {3} {0}",
                                        "Slice %c {-1} {-9} {1} {-1}", "Slice %c {0} {9} {1} {2}",
                                        "Reshape %c {-1,2}",           "Reshape %c {2,-1}",
                                        "Reshape %c {-1,1}",           "Expand %c {1,1}",
                                        "Slice %c {0} {1} {0}" };
    static const char *const last[] = { "y = Neg d; out y", "y = Mul d d; out y; out d; out a",
                                        "y = ReduceMax d {1}; out y",
                                        "t = Transpose d perm=[1,0]; y = MatMul t d; out y",
                                        "y = Concat d d axis=1; out y" };
    enum { STEPS = sizeof step / sizeof *step };
    char text[1024], part[3][128];
    for (uint32_t i = 0; i < STEPS * STEPS * STEPS; i++) {
        const uint32_t at[3] = { i % STEPS, i / STEPS % STEPS, i / STEPS / STEPS };
        for (uint32_t k = 0; k < 3; k++) (void)snprintf(part[k], sizeof part[k], step[at[k]], 'a' + (int)k);
        text_of(text, "sym N 2 4 6; in x f32 N,4; a = Exp x; b = %s; c = %s; d = %s; %s", part[0], part[1], part[2],
                last[i % 5]);
        (void)same(text);
    }
    enough(2100);
}

/* Results that are inputs, views of inputs, views of each other, or the same value; tied operands of what works in
 * place. */
static void results_that_share(void)
{
    static const char *const made[] = { "a = Identity x",
                                        "a = Exp x",
                                        "a = Transpose x perm=[1,0]",
                                        "a = Slice x {0} {1} {0}",
                                        "a = Expand x {3,1,1}",
                                        "a = Concat x x axis=0" };
    static const char *const then[] = { "b = Identity a",
                                        "b = Mul a a",
                                        "b = Where p a a",
                                        "b = Neg a",
                                        "b = Max a a a",
                                        "b = Reshape a {-1}",
                                        "b, e = Split a axis=-1 num_outputs=2" };
    static const char *const out[] = { "out x; out a; out b", "out b; out a", "c = Add b b; out c; out b",
                                       "c = Mul b b; d = Add c b; out d",
                                       "c = Add b b; d = Mul c c; q = Add d d; out q; out a" };
    char text[1024];
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t k = 0; k < 7; k++)
            for (uint32_t j = 0; j < 5; j++) {
                text_of(text, "sym N 1 2 4; in x f32 N,4; in p bool 1; %s; %s; %s", made[i], then[k], out[j]);
                (void)same(text);
            }
    enough(500);
}

static const test tests[] = { T(concat_of_tied_operands),
                              T(concat_of_sizes),
                              T(concat_in_bodies),
                              T(broadcasts),
                              T(views_of_views),
                              T(results_that_share),
                              { 0 } };
TEST_MAIN(tests)

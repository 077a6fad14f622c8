/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_emit.c - generated text: what is a number and what a field, how wide vectors are, what is refused, and that
 * the parameters which bind fills are those that the text declares. What the text computes is tested in tests/cuda. */
#include "cuda/cuda_emit.h"
#include "test.h"

typedef struct fixture {
    env e;
    sinter_error error;
    arena a;
    problem *p;
    emit_space s;
    text t;
} fixture;

static bool setup(fixture *f, const char *line)
{
    memset(f, 0, sizeof *f);
    env_init(&f->e, NULL, &f->error);
    arena_init(&f->a, &f->e);
    text_init(&f->t, &f->e);
    scan at = scan_of(line, strlen(line));
    const char *why = NULL;
    if (!CHECK(problem_parse(&f->a, &at, &f->p, &why))) return false;
    emit_space_of(f->p, &f->s);
    return true;
}

static void teardown(fixture *f)
{
    text_deinit(&f->t);
    arena_deinit(&f->a);
}

static void emit(fixture *f)
{
    CHECK(!emit_reject(&f->s));
    emit_text(&f->s, &f->t);
    CHECK(!f->t.failed);
}

static bool has(const fixture *f, const char *part)
{
    return strstr(f->t.at, part) != NULL;
}

/* Numbers of 8 bits that are only quantised, dequantised and stored are never integers. */
static void codes_are_floats(void)
{
    static const struct {
        const char *program, *has, *has_not;
    } cases[] = {
        { "a=acc : i32; b=cast a : f32; c=imm 0.05; d=imm 11 : u8; e=quantize b c d : u8; store 0 e",
          "y0[k] = t4 + 1.0f;", "emit_quantized" },
        { "a=load 2 : u8; b=imm 0.05; c=imm 120 : u8; d=dequantize a b c : f32; e=quantize d b c : u8; f=dequantize e "
          "b "
          "c : f32; g=quantize f b c : u8; store 0 g",
          "emit_code_u8(x.w0, k)", "emit_quantized" },
        /* It is the operand of a maximum, too. */
        { "a=load 2 : u8; b=imm 0.05; c=imm 120 : u8; d=dequantize a b c : f32; e=quantize d b c : u8; f=max e a : u8; "
          "store 0 f",
          "emit_get_u8(x.w0, k)", "emit_code" },
        /* A scale that only a run knows; a zero point that is an operand. */
        { "a=acc : i32; b=cast a : f32; c=load 3; d=imm 11 : u8; e=quantize b c d : u8; store 0 e", "emit_quantized_u8",
          "emit_code" },
        { "a=acc : i32; b=cast a : f32; c=imm 0.05; d=load 2 : u8; e=quantize b c d : u8; store 0 e",
          "emit_quantized_u8", "emit_code" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char line[1024];
        fixture f;
        (void)snprintf(line, sizeof line,
                       "matmul_integer:u8[8,32] w:i8[32,16] + u8[8,16] f32[16] -> u8[8,16] epi=\"%s\"",
                       cases[i].program);
        if (!setup(&f, line)) return;
        emit(&f);
        const bool is_there = CHECK(has(&f, cases[i].has)), is_alone = CHECK(!has(&f, cases[i].has_not));
        if (!is_there || !is_alone) printf("%s\n", f.t.at);
        teardown(&f);
    }
}

static void static_shapes_are_numbers(void)
{
    fixture f;
    if (!setup(&f, "conv:f16[1,64,56,56]{0,2,3,1} w:f16[64,64,3,3] + w:f32[64,1,1] f16[1,64,56,56]{0,2,3,1} -> "
                   "f16[1,64,56,56]{0,2,3,1} stride=[1,1] pad=[1,1,1,1] dilation=[1,1] epi=\"a=acc; b=load 2; c=add a "
                   "b : f32; d=load 3 : f16; f=cast d : f32; e=add c f : f32; g=relu e : f32; h=cast g : f16; store 0 "
                   "h\""))
        return;
    emit(&f);
    CHECK_EQ(f.s.inner, 1);
    CHECK_EQ(f.s.acc, SINTER_DTYPE_F32);
    CHECK(has(&f, "typedef float epi_acc;"));
    CHECK(has(&f, "#define EPI_RANK 4"));
    CHECK(has(&f, "at[1] * 2 + at[2] * 7168 + at[3] * 128"));
    CHECK(!has(&f, "wide s"));
    /* 16 bytes at once: 4 floats, 8 halves. */
    CHECK(has(&f, "emit_load<4, V, 4>(x.w0"));
    CHECK(has(&f, "emit_load<2, V, 8>(x.w1"));
    CHECK(has(&f, "emit_store<2, V, 8>"));
    /* What is stored as f16 is not rounded twice. */
    CHECK(has(&f, "y2[k] = t6;"));
    text again;
    text_init(&again, &f.e);
    emit_text(&f.s, &again);
    CHECK_EQ(strcmp(again.at, f.t.at), 0);
    text_deinit(&again);
    teardown(&f);
}

static void sizes_that_vary_are_fields(void)
{
    fixture f;
    if (!setup(&f, "pointwise:f32[1..64/1@3,1..4096/1@37] f32[1..64/1@3,1..4096/1@37] -> f32[1..64/1@3,1..4096/1@37] "
                   "epi=\"a=load 0; b=load 1; c=imm 0.5; d=mul a c : f32; e=add d b : f32; store 0 e\""))
        return;
    emit(&f);
    CHECK(has(&f, "small s0_0;"));
    CHECK(has(&f, "float_of_bits(0x3f000000u)"));
    CHECK(has(&f, "emit_load<4, V, 1>"));
    cuda_record r = { 0 };
    view v;
    const int64_t size_at[] = { 5, 100 }, repeated_at[] = { 1, 100 };
    CHECK(view_init(&v, SINTER_DTYPE_F32, 2, size_at, NULL));
    view in[2] = { v, v };
    CHECK(view_init(&in[1], SINTER_DTYPE_F32, 2, repeated_at, NULL));
    CHECK(cuda_launch_add(&r, 0, 1, 1, 1, 32, 0) != NULL);
    CHECK_EQ(emit_bind(&f.e, &f.s, in, &v, &r), SINTER_OK);
    CHECK_EQ(r.patch_count, 3);
    CHECK_EQ(r.patch[2].kind, PATCH_OUT);
    CHECK_EQ(r.at[0].param[0].size, 3 * 8 + 3 * 4 + 4);
    int32_t field[3];
    memcpy(field, r.args + 24, sizeof field);
    CHECK_EQ(field[0], 400);
    CHECK_EQ(field[1], 0); /* one row, repeated */
    CHECK_EQ(field[2], 400);
    /* Along the vectors sizes were taken to be equal. */
    const int64_t column_at[] = { 5, 1 };
    CHECK(view_init(&in[1], SINTER_DTYPE_F32, 2, column_at, NULL));
    CHECK_EQ(emit_bind(&f.e, &f.s, in, &v, &r), SINTER_INVALID_ARG);
    teardown(&f);
}

static void broadcasts_are_read_once(void)
{
    fixture f;
    if (!setup(&f, "pointwise:f16[20,64] f16[20,1] f64[] -> f64[20,64] epi=\"a=load 0 : f16; b=load 1 : f16; c=add a b "
                   ": f16; d=cast c : f64; e=load 2 : f64; g=mul d e : f64; store 0 g\""))
        return;
    emit(&f);
    CHECK(has(&f, "emit_load<2, 1, 1>(x.w1, r.p1, 0, n)"));
    CHECK(has(&f, "r.p2 = (const u8 *)a.p2;"));
    CHECK(has(&f, "const double t"));
    teardown(&f);
}

static void strides_are_not_guessed(void)
{
    fixture f;
    if (!setup(&f, "pointwise:f16[20,60]* f16[20,60]** -> f16[20,60] epi=\"a=load 0 : f16; b=load 1 : f16; c=add a b : "
                   "f16; store 0 c\""))
        return;
    emit(&f);
    CHECK(has(&f, "wide s0_0;"));
    CHECK(!has(&f, "wide s0_1;"));
    CHECK(has(&f, "wide s1_1;"));
    CHECK(has(&f, "emit_load<2, V, 8>(x.w0"));
    CHECK(has(&f, "emit_load<2, V, 1>(x.w1"));
    CHECK(has(&f, "emit_store<2, V, 4>"));
    teardown(&f);
}

static void what_cannot_be_said_is_refused(void)
{
    fixture f;
    if (setup(&f, "pointwise:f32[4,5] -> f32[4,1] epi=\"a=load 0; reduce sum [1] 0 a\"")) {
        CHECK(emit_reject(&f.s) != NULL);
        teardown(&f);
    }
    if (setup(&f, "pointwise:u4[4,5] -> f32[4,5] epi=\"a=load 0 : u4; b=cast a : f32; store 0 b\"")) {
        CHECK(emit_reject(&f.s) != NULL);
        teardown(&f);
    }
}

static const test tests[] = { T(codes_are_floats),
                              T(static_shapes_are_numbers),
                              T(sizes_that_vary_are_fields),
                              T(broadcasts_are_read_once),
                              T(strides_are_not_guessed),
                              T(what_cannot_be_said_is_refused),
                              { 0 } };
TEST_MAIN(tests)

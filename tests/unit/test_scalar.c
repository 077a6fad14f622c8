/* SPDX-License-Identifier: Apache-2.0 */
/* test_scalar.c - scalar functions at the places where they are easily wrong: NaN, ties, wrap-around, division by zero,
 * unsigned 64 bits, saturation; and elementwise inference with symbolic sizes and known values. */
#include "ops/ops.h"
#include "test.h"

#include <math.h>

static double real1(op_id op, double x)
{
    return scalar_eval(op, SINTER_DTYPE_F32, SINTER_DTYPE_F32, &(scalar){ .f = x }).f;
}

static double real2(op_id op, double x, double y)
{
    return scalar_eval(op, SINTER_DTYPE_F32, SINTER_DTYPE_F32, (const scalar[]){ { .f = x }, { .f = y } }).f;
}

static double real3(op_id op, double x, double y, double z)
{
    return scalar_eval(op, SINTER_DTYPE_F32, SINTER_DTYPE_F32, (const scalar[]){ { .f = x }, { .f = y }, { .f = z } })
        .f;
}

static int64_t int2(op_id op, sinter_dtype t, int64_t x, int64_t y)
{
    return scalar_eval(op, t, t, (const scalar[]){ { .i = x }, { .i = y } }).i;
}

static void known_floats(void)
{
    CHECK_EQ_F(real1(OP_round, 2.5), 2);
    CHECK_EQ_F(real1(OP_round, -1.5), -2);
    CHECK_EQ_F(real2(OP_mod, -7, 3), 2);
    CHECK_EQ_F(real2(OP_mod, 7, -3), -2);
    CHECK_EQ_F(real2(OP_fmod, -7, 3), -1);
    CHECK_NEAR(real1(OP_gelu, 1), 0.8413447460685429, 1e-15);
    CHECK_NEAR(real1(OP_gelu, -10), -7.61985302416e-23, 1e-30);
    CHECK_NEAR(real1(OP_gelu_tanh, 1), 0.8411919906082768, 1e-15);
    CHECK_NEAR(real1(OP_softplus, 1000), 1000, 0);
    CHECK_NEAR(real1(OP_sigmoid, -1000), 0, 0);
    CHECK_NEAR(real3(OP_hard_sigmoid, 1, 0.2, 0.5), 0.7, 1e-15);
    CHECK_EQ_F(real1(OP_hardswish, 4), 4);
    CHECK_EQ_F(real2(OP_celu, -1e9, 2), -2);
    CHECK_EQ_F(real2(OP_div, 1, 0), INFINITY);
    CHECK_EQ_F(real3(OP_clip, 5, 0, 3), 3);
}

static void integers_wrap(void)
{
    CHECK_EQ(int2(OP_add, SINTER_DTYPE_I8, 127, 1), -128);
    CHECK_EQ(int2(OP_mul, SINTER_DTYPE_U8, 16, 16), 0);
    CHECK_EQ(int2(OP_div, SINTER_DTYPE_I32, 7, 0), 0);
    CHECK_EQ(int2(OP_div, SINTER_DTYPE_I32, -7, 2), -3);
    CHECK_EQ(int2(OP_div, SINTER_DTYPE_I32, INT32_MIN, -1), INT32_MIN);
    CHECK_EQ(int2(OP_div, SINTER_DTYPE_I64, INT64_MIN, -1), INT64_MIN);
    CHECK_EQ(int2(OP_mod, SINTER_DTYPE_I64, INT64_MIN, -1), 0);
    CHECK_EQ(int2(OP_mod, SINTER_DTYPE_I32, -7, 3), 2);
    CHECK_EQ(int2(OP_fmod, SINTER_DTYPE_I32, -7, 3), -1);
    CHECK_EQ(int2(OP_div, SINTER_DTYPE_U64, -1, 2), INT64_MAX);
    CHECK_EQ(int2(OP_max, SINTER_DTYPE_U64, -1, 2), -1);
    CHECK_EQ(int2(OP_lt, SINTER_DTYPE_U64, -1, 2), 0);
    CHECK_EQ(int2(OP_pow, SINTER_DTYPE_I64, 3, 39), 4052555153018976267);
    CHECK_EQ(int2(OP_pow, SINTER_DTYPE_I32, 2, -1), 0);
    CHECK_EQ(int2(OP_shift_left, SINTER_DTYPE_U8, 0xff, 4), 0xf0);
    CHECK_EQ(int2(OP_shift_right, SINTER_DTYPE_U64, -1, 63), 1);
    CHECK_EQ(int2(OP_shift_right, SINTER_DTYPE_U32, 8, 40), 0);
    CHECK_EQ(scalar_eval(OP_neg, SINTER_DTYPE_U8, SINTER_DTYPE_U8, &(scalar){ .i = 1 }).i, 255);
    CHECK_EQ(scalar_eval(OP_bit_not, SINTER_DTYPE_U16, SINTER_DTYPE_U16, &(scalar){ .i = 1 }).i, 0xfffe);
    CHECK_EQ(scalar_eval(OP_abs, SINTER_DTYPE_I8, SINTER_DTYPE_I8, &(scalar){ .i = -128 }).i, -128);
}

static void casts(void)
{
    CHECK_EQ(scalar_eval(OP_cast, SINTER_DTYPE_F32, SINTER_DTYPE_I8, &(scalar){ .f = 200.5 }).i, 127);
    CHECK_EQ(scalar_eval(OP_cast, SINTER_DTYPE_I64, SINTER_DTYPE_I8, &(scalar){ .i = 200 }).i, -56);
    CHECK_EQ(scalar_eval(OP_cast, SINTER_DTYPE_F32, SINTER_DTYPE_BOOL, &(scalar){ .f = 0.25 }).i, 1);
    CHECK_EQ_F(scalar_eval(OP_cast, SINTER_DTYPE_U64, SINTER_DTYPE_F32, &(scalar){ .i = -1 }).f, 0x1p64);
    CHECK_EQ_F(scalar_eval(OP_cast, SINTER_DTYPE_F32, SINTER_DTYPE_F16, &(scalar){ .f = 1.0001 }).f, 1.0);
    CHECK_EQ_F(scalar_eval(OP_cast, SINTER_DTYPE_F32, SINTER_DTYPE_F8E5M2, &(scalar){ .f = 1e9 }).f, 57344.0);
    CHECK_EQ_F(scalar_eval(OP_cast_wrap, SINTER_DTYPE_F32, SINTER_DTYPE_F8E5M2, &(scalar){ .f = 1e9 }).f, INFINITY);
    CHECK_EQ_F(scalar_eval(OP_cast_wrap, SINTER_DTYPE_F32, SINTER_DTYPE_F8E4M3FN, &(scalar){ .f = 1e9 }).f, NAN);
    uint8_t b;
    scalar_store(SINTER_DTYPE_F8E5M2, &b, 0, (scalar){ .f = INFINITY });
    CHECK_EQ(b, 0x7c);
}

static int64_t quantized(double x, double scale, int64_t zero, sinter_dtype to)
{
    return scalar_eval(OP_quantize, SINTER_DTYPE_F32, to, (const scalar[]){ { .f = x }, { .f = scale }, { .i = zero } })
        .i;
}

static void quantisation(void)
{
    CHECK_EQ(quantized(2.5, 1, 0, SINTER_DTYPE_U8), 2);
    CHECK_EQ(quantized(3.5, 1, 10, SINTER_DTYPE_U8), 14);
    CHECK_EQ(quantized(-1000, 0.5, 128, SINTER_DTYPE_U8), 0);
    CHECK_EQ(quantized(1e30, 0.5, 3, SINTER_DTYPE_I8), 127);
    CHECK_EQ(quantized(-9, 1, 0, SINTER_DTYPE_I4), -8);
    CHECK_EQ(quantized(70000, 1, 0, SINTER_DTYPE_U16), 65535);
    CHECK_EQ_F(scalar_eval(OP_dequantize, SINTER_DTYPE_U8, SINTER_DTYPE_F32,
                           (const scalar[]){ { .i = 3 }, { .f = 0.5 }, { .i = 128 } })
                   .f,
               -62.5);
}

/* ---- inference ---- */

typedef struct fixture {
    env e;
    sinter_error error;
    arena a;
    infer_ctx c;
    infer_value in[3], out[1];
} fixture;

static void setup(fixture *f, op_id op)
{
    memset(f, 0, sizeof(*f));
    env_init(&f->e, NULL, &f->error);
    arena_init(&f->a, &f->e);
    f->c = (infer_ctx){ .e = &f->e,
                        .a = &f->a,
                        .dims = dim_table_create(&f->a),
                        .op = op,
                        .count_in = op_at(op)->in_min,
                        .count_out = 1,
                        .in = f->in,
                        .out = f->out };
}

static void set(fixture *f, uint32_t i, sinter_dtype dtype, uint32_t rank, const char *a, const char *b)
{
    f->in[i] = (infer_value){ .dtype = dtype, .rank = rank };
    for (uint32_t k = 0; k < rank; k++) {
        const char *text_at = k ? b : a;
        scan s = scan_of(text_at, strlen(text_at));
        CHECK(dim_parse(f->c.dims, &s, &f->in[i].dim[k]));
    }
}

static void shapes_broadcast_symbolically(void)
{
    fixture f;
    setup(&f, OP_add);
    set(&f, 0, SINTER_DTYPE_F32, 2, "N", "1");
    set(&f, 1, SINTER_DTYPE_F32, 1, "5", NULL);
    CHECK_EQ(op_infer(&f.c), SINTER_OK);
    CHECK(f.out[0].rank == 2 && f.out[0].dim[0] == f.in[0].dim[0] && dim_is(f.c.dims, f.out[0].dim[1], 5));
    set(&f, 1, SINTER_DTYPE_F32, 2, "2", "3");
    f.out[0] = (infer_value){ .rank = 0 };
    CHECK_EQ(op_infer(&f.c), SINTER_OK);
    CHECK(dim_is(f.c.dims, f.out[0].dim[0], 2) && dim_is(f.c.dims, f.out[0].dim[1], 3));
    set(&f, 0, SINTER_DTYPE_F32, 2, "4", "3");
    f.out[0] = (infer_value){ .rank = 0 };
    CHECK_EQ(op_infer(&f.c), SINTER_INVALID_MODEL);
    CHECK_HAS(f.error.text, "[2,3]");
    CHECK_HAS(f.error.text, "op 'add'");
    set(&f, 1, SINTER_DTYPE_F16, 2, "4", "3");
    CHECK_EQ(op_infer(&f.c), SINTER_INVALID_MODEL);
    CHECK_HAS(f.error.text, "f16");
    f.c.count_in = 1;
    CHECK_EQ(op_infer(&f.c), SINTER_INVALID_MODEL);
    CHECK_HAS(f.error.text, "1 inputs where 2 are wanted");
    arena_deinit(&f.a);
}

static void typed_results(void)
{
    fixture f;
    setup(&f, OP_cast);
    set(&f, 0, SINTER_DTYPE_F32, 1, "N", NULL);
    attrs_typed *attrs = op_attrs_new(&f.a, OP_cast);
    CHECK_EQ(attrs->type, SINTER_DTYPE_F32);
    attrs->type = SINTER_DTYPE_I64;
    f.c.attrs = attrs;
    CHECK_EQ(op_infer(&f.c), SINTER_OK);
    CHECK_EQ(f.out[0].dtype, SINTER_DTYPE_I64);
    CHECK_EQ(((attrs_typed *)op_attrs_new(&f.a, OP_quantize))->type, SINTER_DTYPE_U8);
    arena_deinit(&f.a);
}

/* The result of `op` on known values, printed; "?" where it is not known. */
static void known(op_id op, const char *x, const char *y, const char *want)
{
    fixture f;
    setup(&f, op);
    const char *const at[2] = { x, y };
    dim value[2];
    for (uint32_t i = 0; i < 2; i++) {
        set(&f, i, SINTER_DTYPE_I64, 0, NULL, NULL);
        scan s = scan_of(at[i], strlen(at[i]));
        CHECK(dim_parse(f.c.dims, &s, &value[i]));
        f.in[i].shape_value = &value[i];
        f.in[i].shape_count = 1;
    }
    CHECK_EQ(op_infer(&f.c), SINTER_OK);
    text t;
    text_init(&t, &f.e);
    if (f.out[0].shape_value) dim_print(f.c.dims, f.out[0].shape_value[0], &t);
    CHECK_STR(f.out[0].shape_value ? t.at : "?", want);
    text_deinit(&t);
    arena_deinit(&f.a);
}

static void known_values(void)
{
    known(OP_add, "N", "3", "N+3");
    known(OP_mul, "N+1", "2", "2*N+2");
    known(OP_div, "N", "2", "floordiv(N,2)");
    known(OP_div, "N-3", "2", "-floordiv(max(0,-N+3),2)+floordiv(max(N-3,0),2)"); /* towards zero on either side */
    known(OP_div, "-N", "2", "-floordiv(N,2)");
    known(OP_div, "N", "-2", "-floordiv(N,2)");
    known(OP_div, "4*N-8", "4", "N-2");
    known(OP_div, "-7", "2", "-3");
    known(OP_div, "N", "0", "?");
    known(OP_mod, "N", "4", "mod(N,4)");
    known(OP_fmod, "N-1", "4", "?");
    known(OP_max, "N", "-1", "N");
    known(OP_eq, "N", "-1", "0");
    known(OP_eq, "N", "N", "1");
    known(OP_eq, "N", "4", "?");
    known(OP_ge, "N", "0", "1");
    known(OP_lt, "N", "S", "?");
}

static const test tests[] = {
    T(known_floats),  T(integers_wrap), T(casts), T(quantisation), T(shapes_broadcast_symbolically),
    T(typed_results), T(known_values),  { 0 },
};
TEST_MAIN(tests)

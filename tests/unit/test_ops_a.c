/* SPDX-License-Identifier: Apache-2.0 */
/* test_ops_a.c - contractions, windows, reductions, normalisations and recurrent layers: shapes and references.
 *
 * Values are small enough to check by hand. Each case runs several times: on dense operands, on strided ones (axes
 * reversed in memory, gaps, negative strides), and with float results in f64. Blocks have exactly the size they need,
 * so that a sanitizer sees every step outside. */
#include "faulty.h"
#include "ops/problem.h"
#include "test.h"
#include <math.h>

#define D(...) ((const double[]){ __VA_ARGS__ })
#define IN(...) ((const double *const[]){ __VA_ARGS__, NULL })
#define WANT(...) ((const double *const[]){ __VA_ARGS__, NULL })

typedef enum mode { DENSE, REVERSED, GAPS, NEGATIVE, RESULT_F64, MODE_COUNT } mode;

/* A view of the operand's shape over a block of its own. The block is what free() takes. */
static view place(const problem_operand *o, mode m, bool is_result, void **block)
{
    int64_t dim_of[SINTER_RANK_MAX];
    view v;
    for (uint32_t k = 0; k < o->rank; k++) dim_of[k] = o->dim[k].opt;
    const bool is_wide = m == RESULT_F64 && is_result && dtype_is_float(o->dtype);
    (void)view_init(&v, is_wide ? SINTER_DTYPE_F64 : o->dtype, o->rank, dim_of, NULL);
    int64_t step = m == GAPS ? 3 : 1;
    int64_t start = 0;
    for (uint32_t j = 0; j < v.rank && m != DENSE && m != RESULT_F64; j++) {
        const uint32_t k = m == GAPS ? v.rank - 1 - j : j;
        v.stride[k] = step;
        step *= v.dim[k];
        if (m == NEGATIVE && v.dim[k] > 0) {
            start += v.stride[k] * (v.dim[k] - 1);
            v.stride[k] = -v.stride[k];
        }
    }
    const size_t element = sinter_dtype_bits(v.dtype) / 8;
    int64_t last = start; /* the highest offset in use */
    for (uint32_t k = 0; k < v.rank; k++) {
        if (v.stride[k] > 0 && v.dim[k] > 0) last += v.stride[k] * (v.dim[k] - 1);
    }
    const size_t size = (size_t)(last + 1) * element;
    *block = malloc(size);
    if (!*block) exit(2);
    memset(*block, 0x5A, size);
    v.data = (char *)*block + (size_t)start * element;
    return v;
}

static void fill(const view *v, const double *from)
{
    int64_t index[SINTER_RANK_MAX];
    int64_t at = 0;
    for (bool more = view_first(v->dim, v->rank, index); more; more = view_next(v->dim, v->rank, index)) {
        view_store_f64(v, view_offset(v, index), from[at++]);
    }
}

static void compare(const char *line, mode m, uint32_t output, const view *v, const double *want)
{
    int64_t index[SINTER_RANK_MAX];
    int64_t at = 0;
    for (bool more = view_first(v->dim, v->rank, index); more; more = view_next(v->dim, v->rank, index), at++) {
        const double got = view_load_f64(v, view_offset(v, index));
        const double within = 1e-5 * (1 + fabs(want[at]));
        if (got == want[at] || fabs(got - want[at]) <= within || (isnan(got) && isnan(want[at]))) continue;
        test_failures++;
        (void)printf("%s\n  mode %d, output %u, element %lld: %.9g, wanted %.9g\n", line, (int)m, output, (long long)at,
                     got, want[at]);
    }
}

static sinter_status run_once(const char *line, mode m, const double *const *in, const double *const *want,
                              sinter_error *error, data_fault *fault, faulty *f)
{
    env e;
    env e_call;
    arena a;
    arena scratch;
    const sinter_allocator allocator = { f, faulty_resize };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    if (f) options.allocator = &allocator;
    env_init(&e, NULL, error);
    env_init(&e_call, &options, error);
    arena_init(&a, &e);
    arena_init(&scratch, &e_call);
    scan s = scan_of(line, strlen(line));
    problem *p = NULL;
    const char *why = "";
    sinter_status status = SINTER_INTERNAL;
    if (!problem_parse(&a, &s, &p, &why)) {
        test_failures++;
        (void)printf("%s\n  does not parse: %s\n", line, why);
        arena_deinit(&a);
        return status;
    }
    view ins[16];
    view outs[4];
    void *block[20] = { NULL };
    uint32_t given = 0;
    for (uint32_t i = 0; i < p->count_in; i++) {
        if (p->in[i].dtype == SINTER_DTYPE_NONE) {
            ins[i] = (view){ .dtype = SINTER_DTYPE_NONE };
            continue;
        }
        ins[i] = place(&p->in[i], m, false, &block[i]);
        if (in[given]) fill(&ins[i], in[given++]);
    }
    for (uint32_t i = 0; i < p->count_out; i++) outs[i] = place(&p->out[i], m, true, &block[16 + i]);
    ref_call c = { .e = &e_call,
                   .op = p->op,
                   .attrs = p->attrs,
                   .count_in = p->count_in,
                   .count_out = p->count_out,
                   .in = ins,
                   .out = outs,
                   .scratch = &scratch,
                   .fault = fault };
    status = op_reference(&c);
    for (uint32_t i = 0; status == SINTER_OK && want && i < p->count_out && want[i]; i++)
        compare(line, m, i, &outs[i], want[i]);
    for (uint32_t i = 0; i < 20; i++) free(block[i]);
    arena_deinit(&scratch);
    arena_deinit(&a);
    return status;
}

/* Runs a problem in every mode. in: the values of each operand that is there; want: of each result. */
static void expect(const char *line, const double *const *in, const double *const *want)
{
    for (int m = 0; m < MODE_COUNT; m++) {
        sinter_error error = { 0 };
        if (run_once(line, (mode)m, in, want, &error, NULL, NULL) == SINTER_OK) continue;
        test_failures++;
        (void)printf("%s\n  failed: %s\n", line, error.text);
    }
}

/* Runs a problem whose reference must refuse it with this part of a message. */
static void refuses(const char *line, const char *part)
{
    static const double zeros[256];
    const double *const in[17] = { zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros };
    sinter_error error = { 0 };
    if (run_once(line, DENSE, in, NULL, &error, NULL, NULL) != SINTER_OK && strstr(error.text, part)) return;
    test_failures++;
    (void)printf("%s\n  wanted an error with \"%s\", got: %s\n", line, part, error.text);
}

/* Shapes of an op's results as text, "f32[N,4] i64[N]", or the first line of the error. `line` is "conv f32[N,3,H,W] -
 * … ; attrs". */
static const char *shapes(const char *line)
{
    static char result[SINTER_ERROR_TEXT_SIZE];
    sinter_error error = { 0 };
    env e;
    arena a;
    env_init(&e, NULL, &error);
    arena_init(&a, &e);
    dim_table *t = dim_table_create(&a);
    scan s = scan_of(line, strlen(line));
    const char *name;
    size_t length;
    infer_value in[16] = { 0 };
    infer_value out[4] = { 0 };
    infer_ctx c = { .e = &e, .a = &a, .dims = t, .in = in, .out = out, .count_out = 1 };
    const char *why = "the line does not parse";
    bool ok = scan_name(&s, &name, &length) && op_parse(name, length, &c.op);
    scan_space(&s);
    while (ok && !scan_char(&s, ';')) {
        infer_value *v = &in[c.count_in++];
        if (!scan_char(&s, '-')) {
            ok = scan_name(&s, &name, &length) && dtype_parse(name, length, &v->dtype) && scan_char(&s, '[');
            while (ok && !scan_char(&s, ']')) {
                ok = dim_parse(t, &s, &v->dim[v->rank++]);
                (void)scan_char(&s, ',');
            }
        }
        scan_space(&s);
    }
    scan_space(&s);
    int64_t outs;
    if (ok && scan_i64(&s, &outs)) c.count_out = (uint32_t)outs;
    scan_space(&s);
    void *attrs = op_attrs_new(&a, c.op);
    c.attrs = attrs;
    text made;
    text_init(&made, &e);
    if (!ok || !op_attrs_parse(c.op, attrs, &a, t, &s, &why)) {
        text_printf(&made, "bad test: %s", why);
    } else if (op_infer(&c) != SINTER_OK) {
        text_printf(&made, "%s", error.text);
    } else {
        for (uint32_t i = 0; i < c.count_out; i++) {
            text_printf(&made, "%s%s[", i ? " " : "", sinter_dtype_name(out[i].dtype));
            for (uint32_t k = 0; k < out[i].rank; k++) {
                if (k) text_printf(&made, ",");
                dim_print(t, out[i].dim[k], &made);
            }
            text_printf(&made, "]");
            if (!out[i].shape_value) continue;
            text_printf(&made, "=");
            dim_print(t, out[i].shape_value[0], &made);
        }
    }
    (void)snprintf(result, sizeof(result), "%.*s",
                   (int)(made.length < sizeof(result) - 1 ? made.length : sizeof(result) - 1), made.at);
    text_deinit(&made);
    arena_deinit(&a);
    return result;
}

static void multiplies(void)
{
    expect("matmul:f32[2,3] f32[3,2] -> f32[2,2]", IN(D(1, 2, 3, 4, 5, 6), D(1, 0, 0, 1, 1, 1)), WANT(D(4, 5, 10, 11)));
    expect("matmul:i32[2,3] i32[3,2] -> i32[2,2]", IN(D(1, 2, 3, 4, 5, 6), D(1, 0, 0, 1, 1, 1)), WANT(D(4, 5, 10, 11)));
    expect("matmul:f16[2,3] f16[3,2] -> f16[2,2]", IN(D(1, 2, 3, 4, 5, 6), D(1, 0, 0, 1, 1, 1)), WANT(D(4, 5, 10, 11)));
    expect("matmul:f16[1,2] f16[2,1] -> f32[1,1] type=f32", IN(D(255, 255), D(255, 254)), WANT(D(129795)));
    expect("matmul:f64[3,2] f64[2,3] -> f64[2,2] trans_a=1 trans_b=1", IN(D(1, 4, 2, 5, 3, 6), D(1, 0, 1, 0, 1, 1)),
           WANT(D(4, 5, 10, 11)));
    expect("matmul:f32[3] f32[3] -> f32[]", IN(D(1, 2, 3), D(4, 5, 6)), WANT(D(32)));
    expect("matmul:f32[2] f32[2,3] -> f32[3]", IN(D(1, 2), D(1, 2, 3, 4, 5, 6)), WANT(D(9, 12, 15)));
    expect("matmul:f32[2,2,1] f32[1,1,2] -> f32[2,2,2]", IN(D(1, 2, 3, 4), D(5, 7)),
           WANT(D(5, 7, 10, 14, 15, 21, 20, 28)));
    expect("matmul:f32[1,0] f32[0,2] -> f32[1,2]", IN(D(0), D(0)), WANT(D(0, 0)));
    expect("matmul:i64[1,1] i64[1,1] -> i64[1,1]", IN(D(4611686018427387904.0), D(4)), WANT(D(0))); /* wraps */
}

static void multiplies_integers(void)
{
    expect("matmul_integer:u8[2,2] i8[2,2] u8[] i8[] -> i32[2,2]", IN(D(1, 2, 255, 4), D(1, -1, 2, 3), D(1), D(1)),
           WANT(D(1, 2, 3, -502)));
    expect("matmul_integer:u8[2,2] u8[2,2] u8[2] u8[2] -> i32[2,2]", IN(D(1, 2, 3, 4), D(1, 2, 3, 4), D(1, 2), D(0, 1)),
           WANT(D(3, 3, 7, 7)));
    expect("matmul_integer:u8[2,2] u8[2,2] - u8[1] -> i32[2,2]", IN(D(1, 2, 3, 4), D(1, 2, 3, 4), D(1)),
           WANT(D(4, 7, 8, 15)));
}

static void sums_by_equation(void)
{
    expect("einsum:f32[2,3] f32[3,2] -> f32[2,2] equation=\"ij,jk->ik\"", IN(D(1, 2, 3, 4, 5, 6), D(1, 0, 0, 1, 1, 1)),
           WANT(D(4, 5, 10, 11)));
    expect("einsum:f32[2,2] -> f32[] equation=\"ii->\"", IN(D(1, 2, 3, 4)), WANT(D(5)));
    expect("einsum:i32[2,2] -> i32[2] equation=\"ii->i\"", IN(D(1, 2, 3, 4)), WANT(D(1, 4)));
    expect("einsum:f32[2,1,2] f32[2,2] -> f32[2,1,2] equation=\"...i,ji->...j\"", IN(D(1, 2, 3, 4), D(1, 0, 1, 1)),
           WANT(D(1, 3, 3, 7)));
    expect("einsum:f32[2,2] -> f32[2,2] equation=\"...ij->...ji\"", IN(D(1, 2, 3, 4)), WANT(D(1, 3, 2, 4)));
    expect("einsum:f32[2] f32[2] f32[2] -> f32[2] equation=\"i,j,i->j\"", IN(D(1, 2), D(3, 4), D(5, 6)),
           WANT(D(51, 68)));
    expect("einsum:f32[0] -> f32[] equation=\"i->\"", IN(D(0)), WANT(D(0)));
}

static void convolves(void)
{
    const double *image = D(1, 2, 3, 4, 5, 6, 7, 8, 9);
    expect("conv:f32[1,1,3,3] f32[1,1,2,2] -> f32[1,1,2,2] stride=[1,1] dilation=[1,1] pad=[0,0,0,0]",
           IN(image, D(1, 0, 0, 1)), WANT(D(6, 8, 12, 14)));
    expect("conv:f32[1,1,3,3] f32[1,1,2,2] -> f32[1,1,2,2] stride=[2,2] dilation=[2,2] pad=[1,1,1,1]",
           IN(image, D(1, 0, 0, 1)), WANT(D(5, 0, 0, 5)));
    expect("conv:f16[1,2,3] f16[2,1,1] -> f16[1,2,3] stride=[1] dilation=[1] pad=[0,0] groups=2",
           IN(D(1, 2, 3, 4, 5, 6), D(2, 3)), WANT(D(2, 4, 6, 12, 15, 18)));
    expect("conv:f64[1,2,1,1,2] f64[1,2,1,1,2] -> f64[1,1,1,1,1] stride=[1,1,1] dilation=[1,1,1] pad=[0,0,0,0,0,0]",
           IN(D(1, 2, 3, 4), D(5, 6, 7, 8)), WANT(D(70)));
    expect("conv:f32[0,1,3] f32[1,1,1] -> f32[0,1,3] stride=[1] dilation=[1] pad=[0,0]", IN(D(0), D(1)), NULL);
    expect("conv_integer:u8[1,1,3] u8[1,1,3] u8[] u8[1] -> i32[1,1,3] stride=[1] dilation=[1] pad=[1,1]",
           IN(D(1, 2, 3), D(2, 3, 4), D(1), D(1)), WANT(D(3, 8, 5)));
    expect("conv_transpose:f32[1,1,2] f32[1,1,3] -> f32[1,1,6] stride=[2] dilation=[1] pad=[0,0] out_pad=[1]",
           IN(D(1, 2), D(1, 2, 3)), WANT(D(1, 2, 5, 4, 6, 0)));
    expect("conv_transpose:f32[1,1,2,2] f32[1,1,2,2] -> f32[1,1,1,1] stride=[1,1] dilation=[1,1] pad=[1,1,1,1] "
           "out_pad=[0,0]",
           IN(D(1, 2, 3, 4), D(1, 1, 1, 1)), WANT(D(10)));
    expect(
        "conv_transpose:f32[1,2,1] f32[2,1,1] -> f32[1,2,3] stride=[1] dilation=[1] pad=[-1,-1] out_pad=[0] groups=2",
        IN(D(1, 2), D(3, 4)), WANT(D(0, 3, 0, 0, 8, 0)));
    /* The second tap is moved half a column, the third out of the image. */
    expect("deform_conv:f32[1,1,1,3] f32[1,1,1,3] f32[1,6,1,1] f32[1] f32[1,3,1,1] -> f32[1,1,1,1] stride=[1,1] "
           "dilation=[1,1] "
           "pad=[0,0,0,0]",
           IN(D(1, 2, 4), D(1, 10, 100), D(0, 0, 0, 0.5, 5, 0), D(0.25), D(1, 2, 1)), WANT(D(1 + 2 * 30 + 0.25)));
}

static void pools(void)
{
    const double *image = D(1, 2, 3, 4, 5, 6, 7, 8, 9);
    expect("max_pool:f32[1,1,3,3] -> f32[1,1,2,2] i64[1,1,2,2] kernel=[2,2] stride=[1,1] dilation=[1,1] pad=[0,0,0,0]",
           IN(image), WANT(D(5, 6, 8, 9), D(4, 5, 7, 8)));
    expect("max_pool:f32[1,1,3,3] -> f32[1,1,2,2] i64[1,1,2,2] kernel=[2,2] stride=[1,1] dilation=[1,1] pad=[0,0,0,0] "
           "column_major=1",
           IN(image), WANT(D(5, 6, 8, 9), D(4, 7, 5, 8)));
    expect("max_pool:i8[1,1,4] -> i8[1,1,2] kernel=[3] stride=[2] dilation=[1] pad=[0,0] ceil=1", IN(D(-5, -6, -7, -9)),
           WANT(D(-5, -7)));
    expect("max_pool:f32[1,1,3] -> f32[1,1,2] i64[1,1,2] kernel=[2] stride=[1] dilation=[1] pad=[0,0]",
           IN(D(1, NAN, 2)), WANT(D(NAN, NAN), D(1, 1)));
    expect("max_pool:f32[1,2,2] -> f32[1,2,1] i64[1,2,1] kernel=[2] stride=[1] dilation=[1] pad=[0,0]",
           IN(D(3, 3, 1, 4)), WANT(D(3, 4), D(0, 3)));
    expect("avg_pool:f32[1,1,4] -> f32[1,1,2] kernel=[3] stride=[2] dilation=[1] pad=[1,1]", IN(D(1, 2, 3, 4)),
           WANT(D(1.5, 3)));
    expect("avg_pool:f32[1,1,4] -> f32[1,1,2] kernel=[3] stride=[2] dilation=[1] pad=[1,1] count_pad=1",
           IN(D(1, 2, 3, 4)), WANT(D(1, 3)));
    /* The last window sticks out by one: of its three places two are real, or two in the padded extent. */
    expect("avg_pool:f32[1,1,4] -> f32[1,1,2] kernel=[3] stride=[2] dilation=[1] pad=[0,0] ceil=1 count_pad=1",
           IN(D(1, 2, 3, 4)), WANT(D(2, 3.5)));
    expect("lp_pool:f32[1,1,2,2] -> f32[1,1,1,1] kernel=[2,2] stride=[1,1] dilation=[1,1] pad=[0,0,0,0] p=2",
           IN(D(1, -1, 1, 1)), WANT(D(2)));
    expect("max_unpool:f32[1,1,2] i64[1,1,2] -> f32[1,1,4] shape=[1,1,4]", IN(D(5, 6), D(3, 0)), WANT(D(6, 0, 0, 5)));
    sinter_error error = { 0 };
    data_fault fault = { 0 };
    CHECK_EQ(run_once("max_unpool:f32[1,1,2] i64[1,1,2] -> f32[1,1,4] shape=[1,1,4]", DENSE, IN(D(5, 6), D(3, 4)),
                      WANT(D(0, 0, 0, 5)), &error, &fault, NULL),
             SINTER_OK);
    CHECK(fault.is_set && fault.index == 1 && fault.value == 4 && fault.limit == 4);
}

static void reduces(void)
{
    const double *x = D(1, -2, 3, 4, 5, -6);
    static const struct {
        const char *kind;
        double rows[2], columns[3];
    } row[] = {
        { "sum", { 2, 3 }, { 5, 3, -3 } },
        { "mean", { 2.0 / 3, 1 }, { 2.5, 1.5, -1.5 } },
        { "max", { 3, 5 }, { 4, 5, 3 } },
        { "min", { -2, -6 }, { 1, -2, -6 } },
        { "prod", { -6, -120 }, { 4, -10, -18 } },
        { "l1", { 6, 15 }, { 5, 7, 9 } },
        { "sum_square", { 14, 77 }, { 17, 29, 45 } },
    };
    for (size_t i = 0; i < COUNT_OF(row); i++) {
        char line[128];
        (void)snprintf(line, sizeof(line), "reduce:f32[2,3] -> f32[2,1] kind=%s axes=[1]", row[i].kind);
        expect(line, IN(x), WANT(row[i].rows));
        (void)snprintf(line, sizeof(line), "reduce:f32[2,3] -> f32[3] kind=%s axes=[0] keep=0", row[i].kind);
        expect(line, IN(x), WANT(row[i].columns));
        if (i == 1) continue;
        (void)snprintf(line, sizeof(line), "reduce:i32[2,3] -> i32[3] kind=%s axes=[0] keep=0", row[i].kind);
        expect(line, IN(x), WANT(row[i].columns));
    }
    expect("reduce:i32[2,3] -> i32[2,1] kind=mean axes=[1]", IN(x), WANT(D(0, 1)));
    expect("reduce:f32[2] -> f32[1] kind=l2 axes=[0]", IN(D(3, 4)), WANT(D(5)));
    expect("reduce:i64[2] -> i64[1] kind=l2 axes=[0]", IN(D(3, 4)), WANT(D(5)));
    expect("reduce:f32[2] -> f32[1] kind=log_sum axes=[0]", IN(D(1, 1)), WANT(D(0.693147181)));
    expect("reduce:f32[2] -> f32[1] kind=log_sum_exp axes=[0]", IN(D(1000, 1000)), WANT(D(1000.693147181)));
    expect("reduce:f32[2] -> f32[1] kind=log_sum_exp axes=[0]", IN(D(-INFINITY, -INFINITY)), WANT(D(-INFINITY)));
    expect("reduce:f32[2,3] -> f32[] kind=sum axes=[0,1] keep=0", IN(x), WANT(D(5)));
    expect("reduce:f32[3] -> f32[3] kind=sum_square", IN(D(1, 2, 3)), WANT(D(1, 4, 9)));
    expect("reduce:f32[2] -> f32[1] kind=max axes=[0]", IN(D(NAN, 1)), WANT(D(NAN)));
    expect("reduce:bool[3] -> bool[1] kind=min axes=[0]", IN(D(1, 0, 1)), WANT(D(0)));
}

static void reduces_nothing(void)
{
    static const struct {
        const char *kind;
        double f32, i32;
    } row[] = {
        { "sum", 0, 0 },
        { "prod", 1, 1 },
        { "max", -INFINITY, INT32_MIN },
        { "min", INFINITY, INT32_MAX },
        { "mean", NAN, 0 },
        { "l1", 0, 0 },
        { "l2", 0, 0 },
        { "sum_square", 0, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(row); i++) {
        char line[128];
        (void)snprintf(line, sizeof(line), "reduce:f32[0,2] -> f32[1,2] kind=%s axes=[0]", row[i].kind);
        expect(line, IN(D(0)), WANT(D(row[i].f32, row[i].f32)));
        (void)snprintf(line, sizeof(line), "reduce:i32[0,2] -> i32[1,2] kind=%s axes=[0]", row[i].kind);
        expect(line, IN(D(0)), WANT(D(row[i].i32, row[i].i32)));
    }
    expect("reduce:f32[0] -> f32[1] kind=log_sum axes=[0]", IN(D(0)), WANT(D(-INFINITY)));
    expect("reduce:f32[0] -> f32[1] kind=log_sum_exp axes=[0]", IN(D(0)), WANT(D(-INFINITY)));
}

static void orders(void)
{
    const double *x = D(1, 3, 3, 2, NAN, 0);
    expect("arg_reduce:f32[2,3] -> i64[2,1] axis=1", IN(x), WANT(D(1, 1)));
    expect("arg_reduce:f32[2,3] -> i64[2] axis=1 keep=0 last=1", IN(x), WANT(D(2, 1)));
    expect("arg_reduce:u8[2,3] -> i64[1,3] axis=0 is_max=0", IN(D(1, 255, 3, 1, 2, 0)), WANT(D(0, 1, 1)));
    expect("top_k:f32[6] -> f32[4] i64[4] k=[4] axis=0", IN(x), WANT(D(NAN, 3, 3, 2), D(4, 1, 2, 3)));
    expect("top_k:f32[6] -> f32[6] i64[6] k=[6] axis=0 largest=0", IN(x),
           WANT(D(0, 1, 2, 3, 3, NAN), D(5, 0, 3, 1, 2, 4)));
    expect("top_k:i8[2,3] -> i8[2,2] i64[2,2] k=[2] axis=1", IN(D(-1, -128, 127, 5, 5, 5)),
           WANT(D(127, -1, 5, 5), D(2, 0, 0, 1)));
    expect("top_k:f32[2] -> f32[0] i64[0] k=[0] axis=0", IN(D(1, 2)), NULL);
    expect("top_k:f32[3] -> f32[3] i64[3] k=[3] axis=0", IN(D(-0.0, 0.0, -INFINITY)),
           WANT(D(0, 0, -INFINITY), D(0, 1, 2)));
    expect("cumulate:f32[4] -> f32[4] axis=0", IN(D(1, 2, 3, 4)), WANT(D(1, 3, 6, 10)));
    expect("cumulate:i32[4] -> i32[4] axis=0 exclusive=1 reverse=1", IN(D(1, 2, 3, 4)), WANT(D(9, 7, 4, 0)));
    expect("cumulate:f32[2,2] -> f32[2,2] axis=0 is_product=1", IN(D(1, 2, 3, 4)), WANT(D(1, 2, 3, 8)));
}

static void normalises(void)
{
    expect("softmax:f32[2,2] -> f32[2,2] axis=1", IN(D(1000, 1000, 0, 1.0986122887)), WANT(D(0.5, 0.5, 0.25, 0.75)));
    expect("log_softmax:f32[2,2] -> f32[2,2] axis=0", IN(D(1000, 0, 1000, 0)),
           WANT(D(-0.693147181, -0.693147181, -0.693147181, -0.693147181)));
    expect("lp_norm:f32[2,2] -> f32[2,2] axis=1", IN(D(3, 4, 0, 0)), WANT(D(0.6, 0.8, 0, 0)));
    expect("lp_norm:f32[2] -> f32[2] axis=0 p=1", IN(D(-1, 3)), WANT(D(-0.25, 0.75)));
    expect("layer_norm:f32[2,2] f32[2] f32[2] -> f32[2,2] f32[2,1] f32[2,1] axis=1 epsilon=0",
           IN(D(1, 3, 5, 9), D(1, 2), D(0, 1)), WANT(D(-1, 3, -1, 3), D(2, 7), D(1, 0.5)));
    expect("layer_norm:f32[1,2,2] -> f32[1,2,2] axis=1 epsilon=0", IN(D(1, 1, 3, 3)), WANT(D(-1, -1, 1, 1)));
    expect("rms_norm:f32[1,2] f32[2] -> f32[1,2] axis=1 epsilon=0", IN(D(1, 7), D(5, 10)), WANT(D(1, 14)));
    expect("group_norm:f32[1,4,1] f32[4] f32[4] -> f32[1,4,1] groups=2 epsilon=0",
           IN(D(1, 3, 5, 9), D(1, 2, 3, 4), D(0, 0, 0, 1)), WANT(D(-1, 2, -3, 5)));
    expect("group_norm:f32[1,2,2] -> f32[1,2,2] groups=0 epsilon=0", IN(D(1, 3, 5, 9)), WANT(D(-1, 1, -1, 1)));
    expect("lrn:f32[1,3,1] -> f32[1,3,1] size=2 alpha=2 beta=1 bias=1", IN(D(1, 2, 3)),
           WANT(D(1.0 / 6, 2.0 / 14, 0.3)));
}

static void transforms(void)
{
    expect("det:f32[2,2,2] -> f32[2]", IN(D(0, 2, 3, 4, 1, 2, 2, 4)), WANT(D(-6, 0)));
    expect("det:f32[0,0] -> f32[]", IN(D(0)), WANT(D(1)));
    expect("dft:f32[4,1] -> f32[4,2] axis=0", IN(D(1, 2, 3, 4)), WANT(D(10, 0, -2, 2, -2, 0, -2, -2)));
    expect("dft:f32[4,1] -> f32[3,2] axis=0 onesided=1", IN(D(1, 2, 3, 4)), WANT(D(10, 0, -2, 2, -2, 0)));
    expect("dft:f32[4,2] -> f32[4,2] axis=0 inverse=1", IN(D(10, 0, -2, 2, -2, 0, -2, -2)),
           WANT(D(1, 0, 2, 0, 3, 0, 4, 0)));
    expect("dft:f32[3,2] -> f32[4,1] axis=0 inverse=1 onesided=1", IN(D(10, 0, -2, 2, -2, 0)), WANT(D(1, 2, 3, 4)));
    expect("dft:f32[4,1] -> f32[2,2] axis=0 length=[2]", IN(D(1, 2, 3, 4)), WANT(D(3, 0, -1, 0)));
}

static void attends(void)
{
    /* Equal scores: the mean of the values that are allowed. */
    expect("attention:f32[1,1,2,1] f32[1,1,2,1] f32[1,1,2,1] -> f32[1,1,2,1]", IN(D(0, 0), D(1, 1), D(2, 4)),
           WANT(D(3, 3)));
    expect("attention:f32[1,1,2,1] f32[1,1,2,1] f32[1,1,2,1] -> f32[1,1,2,1] causal=1", IN(D(0, 0), D(1, 1), D(2, 4)),
           WANT(D(2, 3)));
    expect("attention:f32[1,1,2,1] f32[1,1,1,1] f32[1,1,1,1] -> f32[1,1,2,1] causal=1", IN(D(0, 0), D(1), D(2)),
           WANT(D(0, 2)));
    expect("attention:f32[1,2,1,1] f32[1,1,2,1] f32[1,1,2,1] bool[2,1,2] -> f32[1,2,1,1]",
           IN(D(0, 0), D(1, 1), D(2, 4), D(1, 0, 0, 0)), WANT(D(2, 0)));
    expect("attention:f32[1,1,1,1] f32[1,1,2,1] f32[1,1,2,1] f32[2] -> f32[1,1,1,1] scale=2",
           IN(D(0.5), D(0, 1), D(4, 8), D(1, 1.0986122887)), WANT(D(4 + 4 * 3 / (3 + 1.0))));
}

static void recurs(void)
{
    /* One unit, weights 1, f the identity: h = x + h. */
    const char *tail = " activations=\"Affine\" alpha=[1] beta=[0]";
    char line[256];
    (void)snprintf(line, sizeof(line), "rnn:f32[3,1,1] f32[1,1,1] f32[1,1,1] -> f32[3,1,1,1] f32[1,1,1]%s", tail);
    expect(line, IN(D(1, 2, 3), D(1), D(1)), WANT(D(1, 3, 6), D(6)));
    (void)snprintf(line, sizeof(line),
                   "rnn:f32[3,1,1] f32[1,1,1] f32[1,1,1] -> f32[3,1,1,1] f32[1,1,1] direction=reverse%s", tail);
    expect(line, IN(D(1, 2, 3), D(1), D(1)), WANT(D(6, 5, 3), D(6)));
    (void)snprintf(line, sizeof(line),
                   "rnn:f32[3,2,1] f32[1,1,1] f32[1,1,1] f32[1,2] i32[2] f32[1,2,1] -> f32[3,1,2,1] f32[1,2,1]%s",
                   tail);
    expect(line, IN(D(1, 1, 2, 2, 3, 3), D(1), D(1), D(0.25, 0.25), D(3, 1), D(10, 20)),
           WANT(D(11.5, 21.5, 14, 0, 17.5, 0), D(17.5, 21.5)));
    /* Zero weights: gates are 1/2, the new state 0. */
    expect("lstm:f32[1,1,1] f32[1,4,1] f32[1,4,1] - - f32[1,1,1] f32[1,1,1] -> f32[1,1,1,1] f32[1,1,1] f32[1,1,1]",
           IN(D(5), D(0, 0, 0, 0), D(0, 0, 0, 0), D(7), D(2)), WANT(D(0.380797078), D(0.380797078), D(1)));
    expect("gru:f32[2,1,1] f32[1,3,1] f32[1,3,1] - - f32[1,1,1] -> f32[2,1,1,1] f32[1,1,1]",
           IN(D(5, 6), D(0, 0, 0), D(0, 0, 0), D(8)), WANT(D(4, 2), D(2)));
    /* z = r = 1/2, n = clip(h * (weight 1)) = clip(1/2 * 8): 3. */
    expect(
        "gru:f32[1,1,1] f32[1,3,1] f32[1,3,1] - - f32[1,1,1] -> f32[1,1,1,1] f32[1,1,1] linear_before_reset=1 clip=3 "
        "activations=\"Sigmoid,Relu\"",
        IN(D(5), D(0, 0, 0), D(0, 0, 1), D(8)), WANT(D(5.5), D(5.5)));
}

static void infers(void)
{
    CHECK_STR(shapes("matmul f32[N,S,64] f32[64,32] ;"), "f32[N,S,32]");
    CHECK_STR(shapes("matmul f32[N,64,S] f32[N,32,64] ; trans_a=1 trans_b=1"), "f32[N,S,32]");
    CHECK_STR(shapes("matmul f32[S] f32[T] ;"), "f32[]");
    CHECK_STR(shapes("matmul bf16[N,S] bf16[S,2] ; type=f32"), "f32[N,2]");
    CHECK_STR(shapes("matmul_integer u8[M,K] i8[K,N] u8[M] i8[] ;"), "i32[M,N]");
    CHECK_STR(shapes("einsum f32[B,S,8] f32[8,H] ; equation=\"...i,ij->...j\""), "f32[B,S,H]");
    CHECK_STR(shapes("conv f32[N,3,224,W] f32[64,3,7,7] ; stride=[2,1] dilation=[1,1] pad=[3,3,3,3]"),
              "f32[N,64,112,W]");
    CHECK_STR(shapes("conv_transpose f32[N,8,H] f32[8,2,3] ; stride=[2] dilation=[1] pad=[1,1] out_pad=[1] groups=2"),
              "f32[N,4,2*H]");
    CHECK_STR(shapes("max_pool f32[N,C,9,9] ; 2 kernel=[2,2] stride=[2,2] dilation=[1,1] pad=[0,0,0,0] ceil=1"),
              "f32[N,C,5,5] i64[N,C,5,5]");
    CHECK_STR(shapes("avg_pool f32[1,1,4] ; kernel=[2] stride=[3] dilation=[1] pad=[0,2] ceil=1"), "f32[1,1,2]");
    CHECK_STR(shapes("max_unpool f32[N,C,4] i64[N,C,4] ; shape=[N,C,8]"), "f32[N,C,8]");
    CHECK_STR(shapes("reduce f32[N,C,H] ; axes=[0,2] keep=0"), "f32[C]");
    CHECK_STR(shapes("reduce f32[N,C,H] ; axes=[1]"), "f32[N,1,H]");
    CHECK_STR(shapes("arg_reduce f32[N,C] ; axis=1"), "i64[N,1]");
    CHECK_STR(shapes("arg_reduce f32[0,0] ; axis=1"), "i64[0,1]");
    CHECK_STR(shapes("top_k f32[N,C] ; 2 axis=1 k=[K]"), "f32[N,K] i64[N,K]");
    CHECK_STR(shapes("layer_norm f16[N,S,8] f16[8] ; 3 axis=2"), "f16[N,S,8] f32[N,S,1] f32[N,S,1]");
    CHECK_STR(shapes("attention f32[B,8,S,64] f32[B,2,T,64] f32[B,2,T,32] bool[S,T] ;"), "f32[B,8,S,32]");
    CHECK_STR(shapes("lstm f32[T,B,4] f32[2,12,4] f32[2,12,3] ; 3 direction=bidirectional"),
              "f32[T,2,B,3] f32[2,B,3] f32[2,B,3]");
    CHECK_STR(shapes("dft f32[N,S,1] ; axis=1"), "f32[N,S,2]");
    CHECK_STR(shapes("det f32[N,S,S] ;"), "f32[N]");
}

static void names_what_is_wrong(void)
{
    CHECK_HAS(shapes("matmul f32[2,3] f32[4,5] ;"), "inner dims differ: a [2,3] has 3, b [4,5] has 4");
    CHECK_HAS(shapes("matmul f32[2,2,3] f32[3,3,5] ;"), "do not broadcast: 2 and 3");
    CHECK_HAS(shapes("matmul f32[2,3] f64[3,5] ;"), "operand b has type f64, wanted f32");
    CHECK_HAS(shapes("matmul f32[] f64[3,5] ;"), "operand a [] has rank 0, wanted 1 to 16");
    CHECK_HAS(shapes("matmul_integer f32[2,3] u8[3,5] ;"), "wanted an integer type of at most 8 bits");
    CHECK_HAS(shapes("einsum f32[2,3] ; equation=\"ij\""), "has no '->'");
    CHECK_HAS(shapes("einsum f32[2,3] ; equation=\"ij->ik\""), "is in no operand");
    CHECK_HAS(shapes("einsum f32[2,3] ; equation=\"ijk->i\""), "has rank 2");
    CHECK_HAS(shapes("einsum f32[2,3] f32[4,5] ; equation=\"ij,jk->ik\""), "is 4, wanted 3");
    CHECK_HAS(shapes("conv f32[1,4,5] f32[8,3,3] ; stride=[1] dilation=[1] pad=[0,0]"),
              "count of input channels is 4, wanted 3");
    CHECK_HAS(shapes("conv f32[1,4,5] f32[8,4,3] ; stride=[0] dilation=[1] pad=[0,0]"), "stride[0] is 0, wanted 1 to");
    CHECK_HAS(shapes("conv f32[1,4,5] f32[8,4,3] ; stride=[1] dilation=[-1] pad=[0,0]"), "dilation[0] is -1");
    CHECK_HAS(shapes("conv f32[1,4,5] f32[8,4,3] ; stride=[1] dilation=[1] pad=[0,9223372036854775807]"), "pad[1] is");
    CHECK_HAS(shapes("conv f32[1,4,5] f32[8,4,3] ; stride=[1] dilation=[1] pad=[0]"), "pad has 1 values, wanted 2");
    CHECK_HAS(shapes("conv f32[1,4,5] f32[8,4,3] ; stride=[1] dilation=[1] pad=[0,0] groups=0"),
              "groups is 0, wanted at least 1");
    CHECK_HAS(shapes("conv f32[1,4,5] f32[8,4,7] ; stride=[1] dilation=[1] pad=[0,0]"),
              "window of 7 is larger than the padded input of 5");
    CHECK_HAS(shapes("conv_transpose f32[1,4,1] f32[4,1,1] ; stride=[1] dilation=[1] pad=[1,1] out_pad=[0]"), "-1");
    CHECK_HAS(shapes("max_pool f32[1,4,5] ; kernel=[0] stride=[1] dilation=[1] pad=[0,0]"), "kernel[0] is 0");
    CHECK_HAS(shapes("reduce f32[2,3] ; axes=[2]"), "axis is 2, wanted 0 to 1");
    CHECK_HAS(shapes("reduce f32[2,3] ; axes=[1,1]"), "axis 1 is named twice");
    CHECK_HAS(shapes("reduce bool[2,3] ; axes=[1]"), "has type bool");
    CHECK_HAS(shapes("top_k f32[3] ; 2 axis=0 k=[4]"), "k is 4, wanted 0 to 3");
    CHECK_HAS(shapes("layer_norm f32[2,3] f32[4] ; axis=1"), "scale has shape [4]");
    CHECK_HAS(shapes("group_norm f32[1,4,5] ; groups=3"), "groups is 3");
    CHECK_HAS(shapes("attention f32[1,3,4,8] f32[1,2,4,8] f32[1,2,4,8] ;"),
              "query has 3 heads, wanted a multiple of the key's 2");
    CHECK_HAS(shapes("lstm f32[5,1,4] f32[1,12,4] f32[1,13,3] ; 1"),
              "axis 1 of recurrence weight [1,13,3] is 13, wanted 12");
    CHECK_HAS(shapes("rnn f32[5,1,4] f32[1,3,4] f32[1,3,3] ; 1 activations=\"Swish\""),
              "activation 'Swish' is not known");
    CHECK_HAS(shapes("arg_reduce f32[2,0] ; axis=1"), "is empty, so it has no extreme");
    CHECK_HAS(shapes("dft f32[4,3] ; axis=0"), "wanted 1 (real) or 2 (complex)");
    CHECK_HAS(shapes("dft f32[4,C] ; axis=0"), "not known before the model runs: 1 (real) or 2 (complex)");
    CHECK_HAS(shapes("det f32[4,3] ;"), "count of columns is 3, wanted 4");
}

static void references_check_shapes(void)
{
    refuses("matmul:f32[2,3] f32[3,2] -> f32[2,3]", "another shape");
    refuses("conv:f32[1,1,3] f32[1,1,2] -> f32[1,1,9] stride=[1] dilation=[1] pad=[0,0]", "another shape");
    refuses("conv:f32[1,1,3] f32[1,1,2] -> f32[1,1,2] stride=[0] dilation=[1] pad=[0,0]", "stride[0] is 0");
    refuses("softmax:f32[2] -> f32[2] axis=1", "axis 1 of an input of rank 1");
    refuses("cumulate:f32[2] -> f32[2] axis=-1", "axis -1");
    refuses("lrn:f32[2,2] -> f32[2,2] size=0", "size of lrn is 0");
    refuses("top_k:f32[2] -> f32[3] i64[3] k=[3] axis=0", "k is 3");
}

/* Each allocation fails in turn: an error, nothing leaked, and in the end the result. */
static void survives_any_failure(void)
{
    static const double zeros[40000];
    static const char *const line[] = {
        "matmul:f16[100,100] f16[100,100] -> f16[100,100]",
        "matmul_integer:u8[100,100] u8[100,100] -> i32[100,100]",
        "einsum:f16[100,100] f16[100,100] -> f16[100] equation=\"ij,ij->i\"",
        "conv:f16[1,10,1000] f16[8,10,3] -> f16[1,8,998] stride=[1] dilation=[1] pad=[0,0]",
        ("deform_conv:f16[1,90,9,9] f16[1,90,1,1] f16[1,2,9,9] -> f16[1,1,9,9] stride=[1,1] dilation=[1,1] "
         "pad=[0,0,0,0]"),
        "attention:f16[1,1,10,100] f16[1,1,10,100] f16[1,1,10,100] -> f16[1,1,10,100]",
        "max_pool:f32[1,1,200,200] -> f32[1,1,1,1] kernel=[200,200] stride=[1,1] dilation=[1,1] pad=[0,0,0,0]",
        "top_k:f32[20000] -> f32[1] i64[1] k=[1] axis=0",
        "reduce:f32[10,10] -> f32[10,1] axes=[1]",
        "det:f32[100,100] -> f32[]",
        "dft:f32[100,2] -> f32[100,2] axis=0",
        "lstm:f16[4,4,40] f16[1,160,40] f16[1,160,40] -> f16[4,1,4,40]",
    };
    const double *const in[] = { zeros, zeros, zeros, NULL };
    for (size_t i = 0; i < COUNT_OF(line); i++) {
        sinter_status status = SINTER_INTERNAL;
        for (long budget = 0; status != SINTER_OK && budget < 100; budget++) {
            sinter_error error = { 0 };
            faulty f = { .budget = budget };
            status = run_once(line[i], DENSE, in, NULL, &error, NULL, &f);
            CHECK_EQ(f.live, 0);
            CHECK_EQ(f.misuse, 0);
            if (status != SINTER_OK && !CHECK_EQ(status, SINTER_NO_MEMORY))
                (void)printf("%s: %s\n", line[i], error.text);
        }
        if (!CHECK_EQ(status, SINTER_OK)) (void)printf("%s\n", line[i]);
    }
}

static const test tests[] = {
    T(multiplies),
    T(multiplies_integers),
    T(sums_by_equation),
    T(convolves),
    T(pools),
    T(reduces),
    T(reduces_nothing),
    T(orders),
    T(normalises),
    T(transforms),
    T(attends),
    T(recurs),
    T(infers),
    T(names_what_is_wrong),
    T(references_check_shapes),
    T(survives_any_failure),
    { 0 },
};
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_work.c - what problems count as work: random sizes against loops that count one by one, and known cases. */
#include "ops/problem.h"
#include "test.h"

typedef struct fixture {
    env e;
    sinter_error error;
    arena a;
    uint64_t state;
} fixture;

static void setup(fixture *f, uint64_t seed)
{
    memset(f, 0, sizeof *f);
    env_init(&f->e, NULL, &f->error);
    arena_init(&f->a, &f->e);
    f->state = seed * 2654435761u + 1;
}

static int64_t draw(fixture *f, int64_t least, int64_t most)
{
    f->state = f->state * 6364136223846793005u + 1442695040888963407u;
    return least + (int64_t)(f->state >> 33) % (most - least + 1);
}

/* The work of a problem's text, with dense operands of its sizes at opt. */
static bool work_of(fixture *f, const char *form, work_counts *w)
{
    scan at = scan_of(form, strlen(form));
    problem *p = NULL;
    const char *why = "";
    if (!problem_parse(&f->a, &at, &p, &why)) {
        printf("%s: %s\n", form, why);
        return false;
    }
    view in[8], out[8];
    for (uint32_t side = 0; side < 2; side++) {
        const problem_operand *o = side ? p->out : p->in;
        for (uint32_t i = 0; i < (side ? p->count_out : p->count_in); i++) {
            int64_t size[SINTER_RANK_MAX];
            view *v = side ? &out[i] : &in[i];
            *v = (view){ 0 };
            for (uint32_t k = 0; k < o[i].rank; k++) size[k] = o[i].dim[k].opt;
            if (o[i].dtype != SINTER_DTYPE_NONE && !view_init(v, o[i].dtype, o[i].rank, size, NULL)) return false;
        }
    }
    problem_work(p, in, out, w);
    return true;
}

static void counts_products(void)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        fixture f;
        char form[400];
        work_counts w;
        setup(&f, seed);
        const int64_t b = draw(&f, 1, 4), m = draw(&f, 1, 40), k = draw(&f, 1, 40), n = draw(&f, 1, 40);
        const bool ta = draw(&f, 0, 1), tb = draw(&f, 0, 1), shared = draw(&f, 0, 1);
        (void)snprintf(form, sizeof form, "matmul:f32[%lld,%lld,%lld] w:f32[%lld,%lld,%lld] -> f32[%lld,%lld,%lld]%s%s",
                       (long long)b, (long long)(ta ? k : m), (long long)(ta ? m : k), (long long)(shared ? 1 : b),
                       (long long)(tb ? n : k), (long long)(tb ? k : n), (long long)b, (long long)m, (long long)n,
                       ta ? " trans_a=1" : "", tb ? " trans_b=1" : "");
        double operations = 0;
        for (int64_t i = 0; i < b * m * n; i++)
            for (int64_t j = 0; j < k; j++) operations += 2;
        if (!CHECK(work_of(&f, form, &w))) return;
        CHECK(w.operations == operations && w.products && w.dtype == SINTER_DTYPE_F32);
        CHECK(w.read == 4.0 * (double)(b * m * k) && w.weights == 4.0 * (double)((shared ? 1 : b) * k * n));
        CHECK(w.written == 4.0 * (double)(b * m * n));
        arena_deinit(&f.a);
    }
}

static void counts_convolutions(void)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        fixture f;
        char form[400];
        work_counts w;
        setup(&f, seed);
        const int64_t images = draw(&f, 1, 3), groups = draw(&f, 1, 3), in = groups * draw(&f, 1, 5),
                      out = groups * draw(&f, 1, 5), kernel = draw(&f, 1, 3), stride = draw(&f, 1, 3),
                      size = draw(&f, kernel, 12), result = (size - kernel) / stride + 1;
        (void)snprintf(form, sizeof form,
                       "conv:f32[%lld,%lld,%lld,%lld] w:f32[%lld,%lld,%lld,%lld] -> f32[%lld,%lld,%lld,%lld] "
                       "stride=[%lld,%lld] groups=%lld epi=\"a=acc; b=relu a : f32; store 0 b\"",
                       (long long)images, (long long)in, (long long)size, (long long)size, (long long)out,
                       (long long)(in / groups), (long long)kernel, (long long)kernel, (long long)images,
                       (long long)out, (long long)result, (long long)result, (long long)stride, (long long)stride,
                       (long long)groups);
        double operations = 0;
        for (int64_t i = 0; i < images * out * result * result; i++) {
            for (int64_t c = 0; c < in / groups; c++)
                for (int64_t t = 0; t < kernel * kernel; t++) operations += 2;
            operations += 1; /* relu */
        }
        if (!CHECK(work_of(&f, form, &w))) return;
        CHECK(w.operations == operations);
        CHECK(w.weights == 4.0 * (double)(out * in / groups * kernel * kernel));
        const double all = 4.0 * (double)(images * in * size * size);
        CHECK(kernel < stride ? w.read < all : w.read == all);
        arena_deinit(&f.a);
    }
}

static void counts_known_cases(void)
{
    static const struct {
        const char *form;
        double operations, weights, read, written;
    } known[] = {
        { "attention:f32[1,2,8,4] f32[1,2,16,4] f32[1,2,16,5] -> f32[1,2,8,5]", 2 * 2 * 8 * 16 * 9, 0,
          4 * (64 + 128 + 160), 4 * 80 },
        { "conv_transpose:f32[1,3,4,4] w:f32[3,2,2,2] -> f32[1,2,8,8] stride=[2,2]", 2 * 48 * 8, 96, 192, 512 },
        { "max_pool:f32[1,2,4,4] -> f32[1,2,2,2] kernel=[2,2] stride=[2,2]", 8 * 4, 0, 128, 32 },
        { "transpose:f32[3,5] -> f32[5,3] perm=[1,0]", 0, 0, 60, 60 },
        { "gather:w:f32[1000,8] i64[4] -> f32[4,8]", 0, 4 * 32, 32, 128 },
        { "pointwise:f32[6,4] f32[4] -> f32[6,4] epi=\"a=load 0; b=load 1; c=mul a b : f32; d=exp c : f32; store 0 d\"",
          2 * 24, 0, 4 * 28, 96 },
        { "matmul_integer:u8[2,3] w:i8[3,4] - w:i8[] -> i32[2,4]", 2 * 2 * 3 * 4, 13, 6, 32 },
        { "eye_like: -> f32[2,2] shape=[2,2]", 0, 0, 0, 16 },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        fixture f;
        work_counts w;
        setup(&f, 0);
        if (!CHECK(work_of(&f, known[i].form, &w))) continue;
        if (!CHECK(w.operations == known[i].operations && w.weights == known[i].weights && w.read == known[i].read &&
                   w.written == known[i].written))
            printf("%s: %g operations, %g, %g, %g bytes\n", known[i].form, w.operations, w.weights, w.read, w.written);
        arena_deinit(&f.a);
    }
}

static const test tests[] = { T(counts_products), T(counts_convolutions), T(counts_known_cases), { 0 } };
TEST_MAIN(tests)

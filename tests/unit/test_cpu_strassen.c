/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_strassen.c - Strassen's products of every level and tactic against sums in double. */
#include "../cpu_numeric.h"
#include "cpu/strassen.h"

typedef struct product {
    int64_t m, n, k;
    bool turned, bias, residual, clip, post;
} product;

/* Errors go with the largest operands: all values are below 1, so a sum of k products errs by less than this. */
static double limit_of(int64_t k)
{
    return 1e-7 * (8 + 6 * (double)k);
}

static void product_check(isa_level isa, const product *s, gemm_tactic tactic, numbers *r)
{
    const int64_t pad_a = numbers_in(r, 0, 5), ldc = s->n + numbers_in(r, 0, 5), a_row = s->k + pad_a;
    guarded a = guarded_random(r, (size_t)(s->m * a_row), (size_t)numbers_in(r, 0, 3));
    guarded b = guarded_random(r, (size_t)(s->k * s->n), 1), bias = guarded_random(r, (size_t)s->n, 1);
    guarded residual = guarded_random(r, (size_t)(s->m * ldc), 0), c = guarded_create((size_t)(s->m * ldc), 3);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = s->k; j < a_row; j++) a.data[i * a_row + j] = NAN;
    const int64_t b_row = s->turned ? 1 : s->n, b_col = s->turned ? s->k : 1;
    strassen_params p = { .isa = isa, .tactic = tactic, .m = s->m, .n = s->n, .k = s->k, .a = a.data, .a_row = a_row };
    guarded packed = guarded_create(strassen_pack_size(isa, tactic, s->n, s->k) / sizeof(float), 0);
    strassen_pack(isa, tactic, s->n, s->k, b.data, b_row, b_col, packed.data);
    p.b = packed.data;
    p.c = c.data;
    p.ldc = ldc;
    p.epilogue = (gemm_epilogue){ .clip = s->clip, .lo = -0.5f, .hi = 1.5f, .ldr = ldc };
    if (s->bias) p.epilogue.bias = bias.data;
    if (s->residual) p.epilogue.residual = residual.data;
    if (s->post) p.epilogue.post = post_negate;
    guarded workspace = guarded_create(strassen_workspace_size(&p) / sizeof(float), 0);
    guarded scratch = guarded_create(strassen_scratch_size(&p) / sizeof(float), 0);
    post_seen seen = { .y = c.data };
    for (int phase = 0; phase < STRASSEN_PHASES; phase++) {
        const int64_t tiles = strassen_tile_count(&p, phase), cut = numbers_in(r, 0, tiles);
        strassen_run(&p, phase, cut, tiles, workspace.data, scratch.data, &seen);
        strassen_run(&p, phase, 0, cut, workspace.data, scratch.data, &seen);
    }
    CHECK(guarded_intact(&c) && guarded_intact(&packed) && guarded_intact(&workspace) && guarded_intact(&scratch));
    if (s->post) CHECK(!seen.wrong && seen.elements == s->m * s->n);
    int bad = 0;
    for (int64_t i = 0; i < s->m; i++) {
        for (int64_t j = 0; j < ldc; j++) {
            const double got = (double)c.data[i * ldc + j];
            if (j >= s->n) {
                bad += !isnan(got);
                continue;
            }
            double want = s->bias ? (double)bias.data[j] : 0.0;
            for (int64_t k = 0; k < s->k; k++)
                want += (double)a.data[i * a_row + k] * (double)b.data[k * b_row + j * b_col];
            if (s->residual) want += (double)residual.data[i * ldc + j];
            if (s->clip) want = want < -0.5 ? -0.5 : want > 1.5 ? 1.5 : want;
            if (s->post) want = -want;
            if (!(fabs(got - want) <= limit_of(s->k)) && bad++ == 0)
                printf("%s %dx%dx%d (%d, %d): %g, not %g\n", isa_level_name(isa), (int)s->m, (int)s->n, (int)s->k,
                       (int)i, (int)j, got, want);
        }
    }
    CHECK_EQ(bad, 0);
    guarded *all[] = { &a, &b, &bias, &residual, &c, &packed, &workspace, &scratch };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) guarded_destroy(all[i]);
}

static void random_products(void)
{
    numbers r = { .state = 31 };
    for (int i = 0; i < (test_is_full() ? 400 : 60); i++) {
        const uint32_t bits = numbers_next(&r);
        const product s = { .m = numbers_in(&r, i % 9 == 0 ? 0 : 1, i % 5 ? 70 : 300),
                            .n = 2 * numbers_in(&r, 1, i % 4 ? 60 : 150),
                            .k = 2 * numbers_in(&r, 1, 90),
                            .turned = bits & 1,
                            .bias = bits >> 1 & 1,
                            .residual = bits >> 2 & 1,
                            .clip = bits >> 3 & 1,
                            .post = bits >> 4 & 1 };
        for (int isa = ISA_PLAIN; isa <= (int)isa_level_detect(); isa++) {
            gemm_tactic list[STRASSEN_TACTICS_MAX];
            const int count = strassen_tactics((isa_level)isa, s.m ? s.m : 1, s.n, s.k, list);
            CHECK(strassen_check(s.m, s.n, s.k) == NULL && count > 0);
            for (int t = 0; t < count; t++) {
                gemm_tactic tactic = list[t];
                if (bits >> 5 & 1) tactic.block_m = 1 + (bits >> 6 & 1);
                if (bits >> 7 & 1) tactic.block_n = 1 + (bits >> 8 & 1);
                CHECK(strassen_tactic_check((isa_level)isa, s.m, s.n, s.k, tactic) == NULL);
                product_check((isa_level)isa, &s, tactic, &r);
            }
        }
    }
}

static void refuses_odd_sizes(void)
{
    CHECK(strassen_check(4, 3, 4) && strassen_check(4, 4, 3) && strassen_check(4, 0, 4) && strassen_check(-1, 4, 4));
    CHECK(strassen_check(4, (int64_t)1 << 40, (int64_t)1 << 40));
    CHECK(!strassen_check(3, 4, 4));
}

static const test tests[] = { T(random_products), T(refuses_odd_sizes), { 0 } };
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_gemm.c - matrix products of every level and tactic against sums in double. */
#include "../cpu_numeric.h"
#include "cpu/gemm.h"
#include "cpu/level.h"

typedef struct product {
    int64_t m, n, k, batch, heads;
    bool raw, a_turned, b_turned, bias, residual, in_place, clip, scale, post;
} product;

static float c_reference(const gemm_params *p, const float *residual, int64_t batch, int64_t head, int64_t i, int64_t j,
                         const float *a, const float *b, float got, bool *good)
{
    exact x = { 0 };
    a += batch * p->a_batch[1] + head * p->a_batch[2];
    b += batch * p->b_batch[1] + head * p->b_batch[2];
    for (int64_t k = 0; k < p->k; k++) {
        exact_add(&x, (double)a[i * p->a_row + k * p->a_col], (double)b[k * p->b_row + j * p->b_col]);
    }
    const int64_t at = batch * p->residual_batch[1] + head * p->residual_batch[2] + i * p->epilogue.ldr + j;
    x = exact_finish(x, &p->epilogue, j, residual ? (double)residual[at] : 0.0);
    *good = exact_near(x, got);
    return (float)x.sum;
}

static void product_check(isa_level isa, const product *s, gemm_tactic tactic, numbers *r)
{
    const int64_t pad_a = numbers_in(r, 0, 5), pad_c = numbers_in(r, 0, 5), count = s->batch * s->heads;
    gemm_params p = { .isa = isa, .tactic = tactic, .m = s->m, .n = s->n, .k = s->k, .b_raw = s->raw };
    p.a_row = s->a_turned ? 1 : s->k + pad_a;
    p.a_col = s->a_turned ? s->m + pad_a : 1;
    p.b_row = s->b_turned ? 1 : s->n;
    p.b_col = s->b_turned ? s->k : 1;
    p.ldc = s->n + pad_c;
    const int64_t a_size = (s->a_turned ? s->k : s->m) * (s->a_turned ? p.a_col : p.a_row);
    const int64_t b_size = s->n * s->k, c_size = s->m * p.ldc;
    p.batch[0] = 0;
    p.batch[1] = s->batch;
    p.batch[2] = s->heads;
    p.a_batch[1] = s->heads * a_size;
    p.a_batch[2] = a_size;
    p.c_batch[1] = s->heads * c_size;
    p.c_batch[2] = c_size;
    guarded a = guarded_random(r, (size_t)(a_size * count), (size_t)numbers_in(r, 0, 3));
    guarded b = guarded_random(r, (size_t)(b_size * (s->raw ? s->heads : 1)), (size_t)numbers_in(r, 0, 3));
    guarded c = guarded_create((size_t)(c_size * count), (size_t)numbers_in(r, 0, 3));
    guarded bias = guarded_random(r, (size_t)s->n, 1);
    guarded residual = guarded_create((size_t)(c_size * count), 0);
    /* What lies between rows stays NaN everywhere. */
    for (int64_t i = 0; i < s->m * count; i++) {
        for (int64_t j = 0; j < s->n; j++) residual.data[i * p.ldc + j] = numbers_float(r);
    }
    if (!s->a_turned) {
        for (int64_t i = 0; i < s->m * count; i++) {
            for (int64_t j = s->k; j < p.a_row; j++) a.data[i * p.a_row + j] = NAN;
        }
    }
    if (s->residual && s->in_place) memcpy(c.data, residual.data, c.count * sizeof(float));
    p.a = a.data;
    p.c = c.data;
    p.epilogue = (gemm_epilogue){ .scale = s->scale, .alpha = 0.37f, .clip = s->clip, .lo = -0.5f, .hi = 1.5f };
    if (s->bias) p.epilogue.bias = bias.data;
    if (s->residual) {
        p.epilogue.residual = s->in_place ? c.data : residual.data;
        p.epilogue.ldr = p.ldc;
        p.residual_batch[1] = p.c_batch[1];
        p.residual_batch[2] = p.c_batch[2];
    }
    if (s->post) p.epilogue.post = post_negate;
    const size_t pack_size = gemm_pack_size(isa, tactic, 1, s->k, s->n);
    guarded packed = guarded_create(pack_size / sizeof(float), 0);
    int64_t b_head = 0;
    if (s->raw) {
        p.b = b.data;
        p.b_batch[2] = b_head = b_size;
    } else {
        gemm_pack(isa, tactic, 1, s->k, s->n, b.data, 0, p.b_row, p.b_col, packed.data);
        CHECK(guarded_intact(&packed));
        p.b = packed.data;
    }
    guarded scratch = guarded_create(gemm_scratch_size(&p) / sizeof(float), 0);
    guarded copied = guarded_create(gemm_copied_size(&p) / sizeof(float), 0);
    if (tactic.copy_a == GEMM_COPY_FIRST) {
        gemm_copy(&p, 0, gemm_copy_count(&p), copied.data, scratch.data);
        CHECK(guarded_intact(&copied));
        p.copied = copied.data;
    }
    const int64_t tiles = gemm_tile_count(&p), cut = tiles ? numbers_in(r, 0, tiles) : 0;
    post_seen seen = { .y = c.data };
    gemm_run(&p, cut, tiles, scratch.data, &seen);
    gemm_run(&p, 0, cut, scratch.data, &seen);
    CHECK(guarded_intact(&c) && guarded_intact(&scratch));
    if (s->post) CHECK(seen.elements == count * s->m * s->n && !seen.wrong);

    gemm_params view = p;
    view.b_batch[2] = b_head;
    int bad = 0;
    for (int64_t at = 0; at < count * s->m; at++) {
        const int64_t i = at % s->m, head = at / s->m % s->heads, batch = at / s->m / s->heads;
        for (int64_t j = 0; j < p.ldc; j++) {
            const float got = c.data[batch * p.c_batch[1] + head * p.c_batch[2] + i * p.ldc + j];
            if (j >= s->n) {
                bad += s->residual && s->in_place ? 0 : !isnan(got);
                continue;
            }
            bool good = false;
            const float want = c_reference(&view, s->residual ? residual.data : NULL, batch, head, i, j, a.data, b.data,
                                           s->post ? -got : got, &good);
            if (!good && bad++ == 0) {
                char text[64];
                (void)gemm_tactic_print(text, sizeof text, isa, tactic);
                printf("%s %s m%d n%d k%d at %d,%d: %g, not %g\n", isa_level_name(isa), text, (int)s->m, (int)s->n,
                       (int)s->k, (int)i, (int)j, (double)got, (double)want);
            }
        }
    }
    CHECK_EQ(bad, 0);
    guarded_destroy(&a);
    guarded_destroy(&b);
    guarded_destroy(&c);
    guarded_destroy(&bias);
    guarded_destroy(&residual);
    guarded_destroy(&packed);
    guarded_destroy(&scratch);
    guarded_destroy(&copied);
}

static void product_check_all(const product *s, numbers *r)
{
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const gemm_shape shape = { .m = s->m,
                                   .n = s->n,
                                   .k = s->k,
                                   .taps = 1,
                                   .a_row = s->a_turned ? 1 : s->k,
                                   .a_col = s->a_turned ? s->m + 1 : 1,
                                   .b_raw = s->raw,
                                   .is_whole = true };
        gemm_tactic list[GEMM_TACTICS_MAX];
        const int count = gemm_tactics(isa, &shape, list);
        CHECK(count >= 1);
        for (int i = 0; i < count; i++) {
            CHECK(gemm_tactic_check(isa, &shape, list[i]) == NULL);
            product_check(isa, s, list[i], r);
        }
    }
}

/* Every register tile and every number of columns in the last vector. */
static void every_tile(void)
{
    numbers r = { .state = 1 };
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const gemm_tile_set *set = level_of(isa)->gemm;
        for (int v = 1; v <= GEMM_VECTORS_MAX; v++) {
            for (int rows = 1; rows <= set->rows_max[v - 1]; rows++) {
                const gemm_tactic t = { .vectors = (uint8_t)v & 15u,
                                        .rows = (uint8_t)rows,
                                        .block_m = 1,
                                        .block_n = 1,
                                        .copy_a = (uint8_t)(rows % 2) & 1u,
                                        .ahead = (uint8_t)(rows / 2 % 3) & 3u };
                for (int64_t tail = 1; tail <= set->lanes; tail += 3) {
                    const product s = { .m = rows,
                                        .n = (v - 1) * set->lanes + tail,
                                        .k = numbers_in(&r, 1, 19),
                                        .batch = 1,
                                        .heads = 1,
                                        .bias = tail % 2,
                                        .residual = rows % 3 == 1,
                                        .clip = tail % 3 == 1,
                                        .scale = rows % 4 == 2,
                                        .post = rows % 2 == 1 };
                    product_check(isa, &s, t, &r);
                }
            }
        }
    }
}

static void random_products(void)
{
    numbers r = { .state = 2 };
    for (int i = 0; i < (test_is_full() ? 400 : 60); i++) {
        const uint32_t bits = numbers_next(&r);
        const product s = {
            .m = numbers_in(&r, 1, i % 3 ? 20 : 90),
            .n = numbers_in(&r, 1, i % 4 ? 50 : 300),
            .k = numbers_in(&r, 1, i % 5 ? 40 : 200),
            .batch = numbers_in(&r, 1, 2),
            .heads = numbers_in(&r, 1, 3),
            .raw = bits & 1,
            .a_turned = bits >> 1 & 1,
            .b_turned = bits >> 2 & 1,
            .bias = bits >> 3 & 1,
            .residual = bits >> 4 & 1,
            .in_place = bits >> 5 & 1,
            .clip = bits >> 6 & 1,
            .scale = bits >> 7 & 1,
            .post = bits >> 8 & 1,
        };
        product_check_all(&s, &r);
    }
}

/* Row strides that collide in the cache, more than one block of panels, and sums of parts of K. */
static void larger_products(void)
{
    numbers r = { .state = 3 };
    const product list[] = {
        { .m = 33, .n = 130, .k = 1024, .batch = 1, .heads = 1, .bias = true, .clip = true, .post = true },
        { .m = 5, .n = 700, .k = 600, .batch = 1, .heads = 1, .residual = true, .in_place = true },
        { .m = 1, .n = 1000, .k = 515, .batch = 1, .heads = 1, .bias = true },
        { .m = 40, .n = 700, .k = 300, .batch = 1, .heads = 2, .raw = true, .b_turned = true, .post = true },
        { .m = 19, .n = 37, .k = 1537, .batch = 2, .heads = 1, .residual = true, .scale = true, .clip = true },
        { .m = 210, .n = 70, .k = 2305, .batch = 1, .heads = 1, .bias = true, .residual = true, .in_place = true },
        { .m = 23, .n = 290, .k = 1600, .batch = 1, .heads = 1, .a_turned = true, .bias = true, .post = true },
    };
    for (size_t i = 0; i < COUNT_OF(list); i++) product_check_all(&list[i], &r);
}

static void infinities_and_nan(void)
{
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const gemm_tactic t = { .vectors = 1, .rows = 2, .block_m = 1, .block_n = 1 };
        const float a[3] = { 1.0f, NAN, -5.0f }, one = 1.0f;
        float c[3] = { 0 };
        guarded packed = guarded_create(gemm_pack_size(isa, t, 1, 1, 1) / sizeof(float), 0);
        gemm_pack(isa, t, 1, 1, 1, &one, 0, 1, 1, packed.data);
        const gemm_params p = { .isa = isa,
                                .tactic = t,
                                .m = 3,
                                .n = 1,
                                .k = 1,
                                .a = a,
                                .a_row = 1,
                                .a_col = 1,
                                .b = packed.data,
                                .c = c,
                                .ldc = 1,
                                .epilogue = { .clip = true, .hi = INFINITY } };
        guarded scratch = guarded_create(gemm_scratch_size(&p) / sizeof(float), 0);
        gemm_run(&p, 0, gemm_tile_count(&p), scratch.data, NULL);
        CHECK_EQ_F(c[0], 1.0f);
        CHECK(isnan(c[1]));
        CHECK_EQ_F(c[2], 0.0f);
        guarded_destroy(&packed);
        guarded_destroy(&scratch);
    }
}

static void levels_have_names(void)
{
    isa_level level = ISA_PLAIN;
    CHECK(isa_level_parse("avx2", &level) && level == ISA_AVX2);
    CHECK(!isa_level_parse("sse9", &level));
    CHECK_STR(isa_level_name(ISA_AVX512), "avx512");
}

static const test tests[] = { T(every_tile),         T(random_products),   T(larger_products),
                              T(infinities_and_nan), T(levels_have_names), { 0 } };
TEST_MAIN(tests)

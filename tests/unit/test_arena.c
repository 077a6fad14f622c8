/* SPDX-License-Identifier: Apache-2.0 */
/* test_arena.c - growth, alignment, marks, sticky failure, growing arrays. */
#include "base/arena.h"
#include "base/asan.h"
#include "faulty.h"
#include "test.h"

typedef struct fixture {
    faulty f;
    sinter_allocator allocator;
    env e;
    arena a;
} fixture;

static void setup(fixture *x, long budget, uint64_t memory_max)
{
    *x = (fixture){ .f = { .budget = budget } };
    x->allocator = (sinter_allocator){ &x->f, faulty_resize };
    const sinter_limits limits = { .memory_max = memory_max };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.allocator = &x->allocator;
    options.limits = &limits;
    env_init(&x->e, &options, NULL);
    arena_init(&x->a, &x->e);
}

static void teardown(fixture *x)
{
    arena_deinit(&x->a);
    CHECK_EQ(x->f.live, 0);
    CHECK_EQ(x->f.misuse, 0);
}

static void gives_zeroed_aligned_pieces(void)
{
    fixture x;
    setup(&x, -1, 0);
    for (size_t i = 0; i < 2000; i++) {
        const size_t align = (size_t)1 << i % 8;
        const size_t size = i * 37 % 3000;
        unsigned char *at = arena_alloc(&x.a, size, align);
        if (!CHECK(at != NULL)) break;
        CHECK_EQ((uintptr_t)at % align, 0);
        unsigned char any = 0;
        for (size_t k = 0; k < size; k++) any |= at[k];
        CHECK_EQ(any, 0);
        memset(at, 0xFF, size);
    }
    CHECK(x.f.live < 20); /* blocks grow: few of them */
    CHECK_EQ(x.a.total, x.f.live_bytes);
    CHECK(arena_alloc(&x.a, 10u << 20, 4096) != NULL); /* larger than any block */
    teardown(&x);
}

static void rewinds(void)
{
    fixture x;
    setup(&x, -1, 0);
    const arena_mark empty = arena_save(&x.a);
    unsigned char *first = arena_alloc(&x.a, 100, 8);
    const arena_mark mark = arena_save(&x.a);
    unsigned char *second = arena_alloc(&x.a, 100, 8);
    memset(second, 1, 100);
    for (int i = 0; i < 100; i++) (void)arena_alloc(&x.a, 50000, 8);
    arena_rewind(&x.a, mark);
    CHECK_EQ(x.f.live, 2); /* the mark's block, and a spare one */
    unsigned char *again = arena_alloc(&x.a, 100, 8);
    CHECK(again == second);
    CHECK_EQ(again[0] | again[99], 0);
    first[99] = 1;
    arena_rewind(&x.a, empty);
    CHECK_EQ(x.f.live, 1); /* the spare one */
    CHECK_EQ(x.a.total, x.f.live_bytes);
    teardown(&x);
}

/* Scratch memory that crosses the end of a block, again and again, allocates a block once. */
static void reuses_the_spare_block(void)
{
    fixture x;
    setup(&x, -1, 0);
    (void)arena_alloc(&x.a, 60000, 8);
    const arena_mark mark = arena_save(&x.a);
    (void)arena_alloc(&x.a, 50000, 8);
    arena_rewind(&x.a, mark);
    const long calls = x.f.requests;
    for (int i = 0; i < 100; i++) {
        unsigned char *at = arena_alloc(&x.a, 50000, 8);
        if (!CHECK(at != NULL)) break;
        CHECK_EQ(at[0] | at[49999], 0);
        memset(at, 0xFF, 50000);
        arena_rewind(&x.a, mark);
    }
    CHECK_EQ(x.f.requests, calls);
    CHECK_EQ(x.a.total, x.f.live_bytes);
    CHECK(arena_alloc(&x.a, 8u << 20, 8) != NULL); /* larger than any spare block */
    arena_rewind(&x.a, mark);
    CHECK(x.f.live_bytes < 8u << 20);
    teardown(&x);
}

static void fails_for_good(void)
{
    fixture x;
    setup(&x, 1, 0);
    CHECK(arena_alloc(&x.a, 100, 8) != NULL);
    CHECK(arena_alloc(&x.a, 1u << 20, 8) == NULL);
    CHECK(x.a.failed);
    CHECK(arena_alloc(&x.a, 1, 1) == NULL);
    CHECK(arena_text(&x.a, "a", 1) == NULL);
    CHECK(arena_printf(&x.a, "%d", 1) == NULL);
    teardown(&x);
    setup(&x, -1, 0);
    CHECK(ARENA_NEW(&x.a, int64_t, SIZE_MAX / 4) == NULL);
    CHECK(x.a.failed);
    teardown(&x);
}

static void keeps_the_limit(void)
{
    fixture x;
    setup(&x, -1, 1u << 20);
    while (arena_alloc(&x.a, 1000, 8)) {}
    CHECK(x.f.peak_bytes <= 1 << 20);
    CHECK(x.f.peak_bytes > 1 << 19);
    teardown(&x);
}

static void copies_text(void)
{
    fixture x;
    setup(&x, -1, 0);
    CHECK_STR(arena_text(&x.a, "conv_1xyz", 6), "conv_1");
    CHECK_STR(arena_text(&x.a, NULL, 0), "");
    CHECK_STR(arena_printf(&x.a, "%s/%d", "a", 42), "a/42");
    teardown(&x);
}

static void grows_arrays(void)
{
    fixture x;
    setup(&x, -1, 0);
    VEC(uint32_t) v = { 0 };
    for (uint32_t i = 0; i < 10000; i++) {
        uint32_t *at = VEC_PUSH(&x.a, &v);
        if (!CHECK(at != NULL)) break;
        CHECK_EQ(*at, 0);
        *at = i;
    }
    CHECK_EQ(v.count, 10000);
    CHECK_EQ(v.at[9999], 9999);
    v.count = 5;
    CHECK_EQ(*VEC_PUSH(&x.a, &v), 0); /* zeroed though the place was used before */
    teardown(&x);
}

#if defined(BASE_ASAN)
static void poisons_what_is_not_given_out(void)
{
    fixture x;
    setup(&x, -1, 0);
    char *a = arena_alloc(&x.a, 13, 1);
    char *b = arena_alloc(&x.a, 8, 8);
    CHECK(!__asan_address_is_poisoned(a + 12));
    CHECK(__asan_address_is_poisoned(a + 13));
    CHECK(__asan_address_is_poisoned(b + 8));
    CHECK(__asan_address_is_poisoned(b - 1));
    const arena_mark after = arena_save(&x.a);
    char *c = arena_alloc(&x.a, 8, 8);
    arena_rewind(&x.a, after);
    CHECK(__asan_address_is_poisoned(c));
    teardown(&x);
}
#else
static void poisons_what_is_not_given_out(void)
{
    CHECK_EQ(ASAN_REDZONE, 0);
}
#endif

static void deinits_a_zeroed_arena(void)
{
    arena a = { 0 };
    arena_deinit(&a);
    CHECK(a.block == NULL);
}

static const test tests[] = {
    T(gives_zeroed_aligned_pieces),
    T(rewinds),
    T(reuses_the_spare_block),
    T(fails_for_good),
    T(keeps_the_limit),
    T(copies_text),
    T(grows_arrays),
    T(poisons_what_is_not_given_out),
    T(deinits_a_zeroed_arena),
    { 0 },
};
TEST_MAIN(tests)

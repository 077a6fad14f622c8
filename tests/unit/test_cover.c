/* SPDX-License-Identifier: Apache-2.0 */
/* test_cover.c - sets of boxes against bitmaps. */
#include "core/cover.h"
#include "test.h"

enum { SIZE = 512 };

typedef struct map {
    uint8_t is_set[SIZE * 8];
} map;

/* A random view inside SIZE elements of `bits` bits; its bits are set in `m`. */
static bool random_view(uint64_t *random, uint32_t bits, cover_box *b, map *m)
{
    int64_t dim_at[3], stride[3], offset = (int64_t)test_below(random, 16), end = offset;
    const uint32_t rank = (uint32_t)test_below(random, 4);
    for (uint32_t i = 0; i < rank; i++) {
        static const int64_t steps[] = { 1, 1, 2, 4, 8, 16, 32, 3, 0, -1 };
        dim_at[i] = (int64_t)test_below(random, 5) + (test_below(random, 20) > 0);
        stride[i] = steps[test_below(random, 10)];
        if (stride[i] < 0 && dim_at[i]) offset += dim_at[i] - 1, end = offset;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (stride[i] > 0 && dim_at[i]) end += (dim_at[i] - 1) * stride[i];
    *m = (map){ { 0 } };
    if (end >= SIZE || !cover_box_of(bits, rank, dim_at, stride, offset, b)) return false;
    for (int64_t x = 0; x < (rank > 0 ? dim_at[0] : 1); x++)
        for (int64_t y = 0; y < (rank > 1 ? dim_at[1] : 1); y++)
            for (int64_t z = 0; z < (rank > 2 ? dim_at[2] : 1); z++) {
                const int64_t at = offset + (rank > 0 ? x * stride[0] : 0) + (rank > 1 ? y * stride[1] : 0) +
                                   (rank > 2 ? z * stride[2] : 0);
                for (uint32_t k = 0; k < bits; k++) m->is_set[at * bits + k] = 1;
            }
    return true;
}

static void as_bitmaps_say(void)
{
    env e;
    arena a;
    uint64_t random = 5, work = 0;
    long has = 0, touches = 0;
    env_init(&e, NULL, NULL);
    arena_init(&a, &e);
    for (long round = 0; round < test_scale(3000, 100000); round++) {
        const arena_mark mark = arena_save(&a);
        cover_set s = { .a = &a };
        map all = { { 0 } }, m;
        cover_box b, last = { 0 };
        const uint32_t bits = round % 3 ? 8 : 4;
        map before = { { 0 } };
        bool has_last = false;
        for (uint64_t n = test_below(&random, 24); n; n--) {
            if (!random_view(&random, bits, &b, &m)) continue;
            bool overlaps = false, inside = true, both = false;
            for (size_t i = 0; i < sizeof all.is_set; i++) {
                overlaps = overlaps || (all.is_set[i] && m.is_set[i]);
                inside = inside && (all.is_set[i] || !m.is_set[i]);
                both = both || (before.is_set[i] && m.is_set[i]);
            }
            has += inside, touches += overlaps;
            CHECK_EQ(cover_has(&s, &b, &work), inside);
            CHECK_EQ(cover_touches(&s, &b, &work), overlaps);
            if (has_last) CHECK_EQ(cover_boxes_touch(&last, &b), both);
            if (test_below(&random, 4) == 0) continue;
            CHECK(cover_add(&s, &b));
            for (size_t i = 0; i < sizeof all.is_set; i++) all.is_set[i] |= m.is_set[i];
            last = b, before = m, has_last = true;
        }
        arena_rewind(&a, mark);
    }
    CHECK(has > 0 && touches > has);
    arena_deinit(&a);
}

/* Parts of one tensor along an axis, in any order, are one box in the end. */
static void parts_join(void)
{
    env e;
    arena a;
    env_init(&e, NULL, NULL);
    arena_init(&a, &e);
    enum { PARTS = 3000 };
    for (uint32_t axis = 0; axis < 3; axis++) {
        cover_set s = { .a = &a };
        cover_box whole, part;
        uint64_t random = axis, work = 0;
        uint32_t order[PARTS];
        int64_t dim_at[3] = { 2, 3, 4 };
        dim_at[axis] = PARTS;
        const int64_t stride[3] = { dim_at[1] * dim_at[2], dim_at[2], 1 };
        CHECK(cover_box_of(32, 3, dim_at, stride, 0, &whole));
        for (uint32_t i = 0; i < PARTS; i++) {
            const uint32_t k = (uint32_t)test_below(&random, i + 1);
            order[i] = order[k];
            order[k] = i;
        }
        dim_at[axis] = 1;
        for (uint32_t i = 0; i < PARTS; i++) {
            if (i % 500 == 0) CHECK(!cover_has(&s, &whole, &work));
            CHECK(cover_box_of(32, 3, dim_at, stride, order[i] * stride[axis], &part));
            CHECK(cover_add(&s, &part));
        }
        CHECK(cover_has(&s, &whole, &work));
        CHECK_EQ(s.box.count, 1);
    }
    arena_deinit(&a);
}

/* A file can state sizes that no memory holds. The answer comes soon all the same. */
static void huge_runs_end(void)
{
    env e;
    arena a;
    uint64_t work = 0;
    env_init(&e, NULL, NULL);
    arena_init(&a, &e);
    cover_set s = { .a = &a };
    const int64_t size = (int64_t)1 << 38;
    cover_box b;
    CHECK(cover_box_of(8, 2, (int64_t[]){ size / 8, 5 }, (int64_t[]){ 8, 1 }, 0, &b) && cover_add(&s, &b));
    CHECK(cover_box_of(8, 2, (int64_t[]){ size / 16, 12 }, (int64_t[]){ 16, 1 }, 4, &b) && cover_add(&s, &b));
    CHECK(cover_box_of(8, 1, &size, (int64_t[]){ 1 }, 0, &b));
    (void)cover_has(&s, &b, &work);
    CHECK(work < 100000000);
    arena_deinit(&a);
}

static const test tests[] = { T(as_bitmaps_say), T(parts_join), T(huge_runs_end), { 0 } };
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_view.c - dense views, strides, broadcasts and copies. */
#include "core/view.h"
#include "test.h"

static void dense_views(void)
{
    view v;
    CHECK(view_init(&v, SINTER_DTYPE_F32, 3, (const int64_t[]){ 2, 3, 4 }, NULL));
    CHECK(v.stride[0] == 12 && v.stride[1] == 4 && v.stride[2] == 1 && view_count(&v) == 24 && view_is_dense(&v));
    v.dim[1] = 1;
    CHECK(!view_is_dense(&v)); /* the gap that axis 1 left */
    v.stride[0] = 4;
    v.stride[1] = 99; /* of no matter on an axis of size 1 */
    CHECK(view_is_dense(&v));
    v.dim[0] = 0;
    v.stride[2] = 7;
    CHECK(view_is_dense(&v));
    CHECK(view_init(&v, SINTER_DTYPE_F32, 0, NULL, NULL) && view_count(&v) == 1 && view_is_dense(&v));
    CHECK(!view_init(&v, SINTER_DTYPE_F32, 2, (const int64_t[]){ INT64_MAX, 2 }, NULL));
    CHECK(!view_init(&v, SINTER_DTYPE_F32, 1, (const int64_t[]){ -1 }, NULL));
    CHECK(!view_init(&v, SINTER_DTYPE_F32, SINTER_RANK_MAX + 1, (const int64_t[9]){ 0 }, NULL));
}

static void stepping(void)
{
    int64_t dim_at[2] = { 2, 3 }, index[2];
    int count = 0;
    for (bool more = view_first(dim_at, 2, index); more; more = view_next(dim_at, 2, index)) {
        CHECK_EQ(index[0] * 3 + index[1], count);
        count++;
    }
    CHECK_EQ(count, 6);
    dim_at[1] = 0;
    CHECK(!view_first(dim_at, 2, index));
    CHECK(view_first(dim_at, 0, index) && !view_next(dim_at, 0, index));
}

static void copies_between_strides(void)
{
    int16_t from[12], to[12];
    for (int16_t i = 0; i < 12; i++) from[i] = (int16_t)(i * 7);
    view a, b;
    CHECK(view_init(&a, SINTER_DTYPE_I16, 2, (const int64_t[]){ 3, 4 }, from));
    b = a;
    b.data = to;
    b.stride[0] = 1;
    b.stride[1] = 3;
    view_copy(&b, &a); /* transposed memory */
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) CHECK_EQ(to[k * 3 + i], from[i * 4 + k]);
    }
    a.stride[1] = -1; /* reversed rows */
    a.data = from + 3;
    b.stride[0] = 4;
    b.stride[1] = 1;
    view_copy(&b, &a);
    CHECK(to[0] == from[3] && to[3] == from[0] && to[4] == from[7]);
    uint8_t nibbles[2] = { 0x21, 0x43 }, out[2] = { 0, 0 };
    CHECK(view_init(&a, SINTER_DTYPE_F4E2M1, 2, (const int64_t[]){ 2, 2 }, nibbles));
    b = a;
    b.data = out;
    b.stride[0] = 1;
    b.stride[1] = 2;
    view_copy(&b, &a);
    CHECK(out[0] == 0x31 && out[1] == 0x42);
}

static void broadcasts(void)
{
    float data[3] = { 1, 2, 3 };
    view v, b;
    CHECK(view_init(&v, SINTER_DTYPE_F32, 2, (const int64_t[]){ 3, 1 }, data));
    CHECK(view_broadcast(&v, 3, (const int64_t[]){ 2, 3, 5 }, &b));
    CHECK(b.stride[0] == 0 && b.stride[1] == 1 && b.stride[2] == 0 && b.dim[2] == 5);
    CHECK_EQ_F(view_load_f64(&b, view_offset(&b, (const int64_t[]){ 1, 2, 4 })), 3.0);
    CHECK(!view_broadcast(&v, 2, (const int64_t[]){ 4, 1 }, &b));
    CHECK(!view_broadcast(&v, 1, (const int64_t[]){ 3 }, &b));
    CHECK(view_broadcast(&v, 2, (const int64_t[]){ 3, 0 }, &b));
}

/* ---- overlap ---- */

enum { BYTES = 512 };

static void mark(const view *v, uint8_t *map, const uint8_t *base)
{
    int64_t i[SINTER_RANK_MAX];
    const size_t size = sinter_dtype_bits(v->dtype) / 8;
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i))
        memset(map + ((const uint8_t *)v->data - base) + (ptrdiff_t)size * view_offset(v, i), 1, size);
}

static bool share_a_byte(const view *a, const view *b, const uint8_t *base)
{
    uint8_t map[2][BYTES] = { { 0 } };
    mark(a, map[0], base);
    mark(b, map[1], base);
    for (int i = 0; i < BYTES; i++)
        if (map[0][i] && map[1][i]) return true;
    return false;
}

/* A part of a tensor [2..3][2..3][4..6] somewhere in memory: some of each axis, in either direction. */
static view part_of(const view *whole, uint64_t *seed)
{
    view v = *whole;
    for (uint32_t i = 0; i < v.rank; i++) {
        const int64_t from = (int64_t)(test_random(seed) % (uint64_t)whole->dim[i]);
        const bool is_back = test_random(seed) % 4 == 0;
        v.dim[i] = (int64_t)(test_random(seed) % (uint64_t)(whole->dim[i] - from + 1));
        if (test_random(seed) % 3 == 0) v.dim[i] = whole->dim[i] - from;
        if (v.dim[i] == 0) continue;
        v.data = (uint8_t *)v.data + 4 * v.stride[i] * (is_back ? from + v.dim[i] - 1 : from);
        if (is_back) v.stride[i] = -v.stride[i];
    }
    return v;
}

static void overlaps(void)
{
    static uint8_t memory[BYTES];
    uint64_t seed = 1;
    long apart = 0, found = 0;
    for (int n = 0; n < 20000; n++) {
        view whole;
        const int64_t size[3] = { 2 + (int64_t)(test_random(&seed) % 2), 2 + (int64_t)(test_random(&seed) % 2),
                                  4 + (int64_t)(test_random(&seed) % 3) };
        CHECK(view_init(&whole, SINTER_DTYPE_F32, 3, size, memory + 4 * (test_random(&seed) % 20)));
        const view a = part_of(&whole, &seed), b = part_of(&whole, &seed);
        const bool is_shared = share_a_byte(&a, &b, memory), is_said = view_overlaps(&a, &b);
        CHECK(!is_shared || is_said);
        CHECK(is_said == view_overlaps(&b, &a));
        apart += !is_shared;
        found += !is_said;
        /* Two columns of one tensor, wherever it lies. */
        view left = whole, right = whole;
        left.dim[2] = 1 + (int64_t)(test_random(&seed) % (uint64_t)(size[2] - 1));
        right.dim[2] = size[2] - left.dim[2];
        right.data = (uint8_t *)whole.data + 4 * left.dim[2];
        CHECK(!view_overlaps(&left, &right));
    }
    CHECK(found * 100 > apart * 90);
}

/* Numbers of 4 bits reach half as many bytes as elements, rounded up. */
static void nibbles_overlap(void)
{
    static uint8_t memory[64];
    view a, b;
    CHECK(view_init(&a, SINTER_DTYPE_I4, 1, (const int64_t[]){ 31 }, memory));
    CHECK(view_init(&b, SINTER_DTYPE_U4, 1, (const int64_t[]){ 32 }, memory + 16));
    CHECK(!view_overlaps(&a, &b) && !view_overlaps(&b, &a));
    b.data = memory + 15;
    CHECK(view_overlaps(&a, &b) && view_overlaps(&b, &a));
    CHECK(view_init(&b, SINTER_DTYPE_U8, 1, (const int64_t[]){ 4 }, memory + 12));
    CHECK(view_overlaps(&a, &b));
}

static const test tests[] = { T(dense_views), T(nibbles_overlap), T(stepping), T(copies_between_strides),
                              T(broadcasts),  T(overlaps),        { 0 } };
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_dtype.c - every code of every small type survives a round trip; roundings and limits are the known ones. */
#include "core/dtype.h"
#include "test.h"

#include <math.h>

static void codes_round_trip(void)
{
    static const sinter_dtype type[] = {
        SINTER_DTYPE_F16,    SINTER_DTYPE_BF16,       SINTER_DTYPE_F8E4M3FN, SINTER_DTYPE_F8E4M3FNUZ,
        SINTER_DTYPE_F8E5M2, SINTER_DTYPE_F8E5M2FNUZ, SINTER_DTYPE_F4E2M1,   SINTER_DTYPE_F8E8M0,
    };
    for (size_t k = 0; k < sizeof(type) / sizeof(*type); k++) {
        const uint32_t bits = sinter_dtype_bits(type[k]);
        for (uint32_t code = 0; code < 1u << bits; code++) {
            uint16_t in = (uint16_t)code, out = 0;
            const double value = dtype_load_f64(type[k], &in, 0);
            dtype_store_f8(type[k], &out, 0, value, false);
            if (isnan(value)) CHECK(isnan(dtype_load_f64(type[k], &out, 0)));
            else CHECK_EQ(out, code);
        }
    }
}

/* Between two neighbours the nearer is chosen, and the even one in the middle. */
static void halves_round_to_nearest_even(void)
{
    for (uint16_t h = 0; h < 0x7bff; h++) {
        const double low = (double)dtype_f16_to_f32(h), high = (double)dtype_f16_to_f32((uint16_t)(h + 1));
        const double middle = (low + high) / 2;
        CHECK_EQ(dtype_f16_of_f64(middle), (h & 1) ? h + 1 : h);
        CHECK_EQ(dtype_f16_of_f64(nextafter(middle, low)), h);
        CHECK_EQ(dtype_f16_of_f64(-nextafter(middle, high)), 0x8000 | (h + 1));
    }
}

static void known_values(void)
{
    CHECK_EQ(dtype_f16_of_f64(1.0), 0x3c00);
    CHECK_EQ(dtype_f16_of_f64(65504.0), 0x7bff);
    CHECK_EQ(dtype_f16_of_f64(65519.9), 0x7bff);
    CHECK_EQ(dtype_f16_of_f64(65520.0), 0x7c00);
    CHECK_EQ(dtype_f16_of_f64(-1e300), 0xfc00);
    CHECK_EQ(dtype_f16_of_f64(0x1p-24), 1);
    CHECK_EQ(dtype_f16_of_f64(0x1p-25), 0);
    CHECK_EQ(dtype_f16_of_f64(-0.0), 0x8000);
    CHECK_EQ(dtype_bf16_of_f64(1.0), 0x3f80);
    CHECK_EQ(dtype_bf16_of_f64(3.4e38), 0x7f80);
    CHECK_EQ(dtype_bf16_of_f64(1e-40), 0x0001);
    uint8_t b = 0;
    dtype_store_f64(SINTER_DTYPE_F8E4M3FN, &b, 0, 1e9);
    CHECK_EQ(b, 0x7e);
    dtype_store_f8(SINTER_DTYPE_F8E4M3FN, &b, 0, 1e9, false);
    CHECK_EQ(b, 0x7f);
    dtype_store_f8(SINTER_DTYPE_F8E4M3FN, &b, 0, 464, false); /* half way to the next: even is 448 */
    CHECK_EQ(b, 0x7e);
    dtype_store_f8(SINTER_DTYPE_F8E5M2, &b, 0, -1e9, false);
    CHECK_EQ(b, 0xfc);
    dtype_store_f64(SINTER_DTYPE_F8E5M2, &b, 0, -INFINITY);
    CHECK_EQ(b, 0xfb);
    dtype_store_f64(SINTER_DTYPE_F8E4M3FNUZ, &b, 0, -0.0);
    CHECK_EQ(b, 0);
    dtype_store_f64(SINTER_DTYPE_F8E4M3FNUZ, &b, 0, 1000);
    CHECK_EQ_F(dtype_load_f64(SINTER_DTYPE_F8E4M3FNUZ, &b, 0), 240.0);
    dtype_store_f64(SINTER_DTYPE_F8E5M2FNUZ, &b, 0, NAN);
    CHECK_EQ(b, 0x80);
    dtype_store_f64(SINTER_DTYPE_F4E2M1, &b, 0, -5.1);
    CHECK_EQ_F(dtype_load_f64(SINTER_DTYPE_F4E2M1, &b, 0), -6.0);
}

static void integers_saturate_and_wrap(void)
{
    int64_t cell = 0;
    dtype_store_f64(SINTER_DTYPE_I8, &cell, 0, -300.7);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I8, &cell, 0), -128);
    dtype_store_f64(SINTER_DTYPE_U8, &cell, 0, NAN);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_U8, &cell, 0), 0);
    dtype_store_f64(SINTER_DTYPE_I32, &cell, 0, -2.9);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I32, &cell, 0), -2);
    dtype_store_f64(SINTER_DTYPE_U64, &cell, 0, 1e19);
    CHECK_EQ_F(dtype_load_f64(SINTER_DTYPE_U64, &cell, 0), 1e19);
    dtype_store_f64(SINTER_DTYPE_I64, &cell, 0, 1e30);
    CHECK_EQ(cell, INT64_MAX);
    dtype_store_i64(SINTER_DTYPE_I16, &cell, 0, 0x12345);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I16, &cell, 0), 0x2345);
    dtype_store_i64(SINTER_DTYPE_BOOL, &cell, 0, 256);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_BOOL, &cell, 0), 1);
    float f = 0;
    dtype_store_i64(SINTER_DTYPE_F32, &f, 0,
                    (1ll << 62) + (1ll << 38) + 1); /* just above a tie of f32, a tie after f64 */
    CHECK_EQ_F((double)f, 0x1.000002p62);
}

static void nibbles_do_not_touch_their_neighbour(void)
{
    uint8_t at[2] = { 0, 0 };
    dtype_store_i64(SINTER_DTYPE_I4, at, 1, -3);
    dtype_store_i64(SINTER_DTYPE_I4, at, 0, 5);
    dtype_store_i64(SINTER_DTYPE_U4, at, 2, 15);
    CHECK_EQ(at[0], 0xd5);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I4, at, 1), -3);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I4, at, 0), 5);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_U4, at, 2), 15);
}

static void pairs_of_bits_do_not_touch_their_neighbours(void)
{
    uint8_t at[2] = { 0xff, 0 };
    dtype_store_i64(SINTER_DTYPE_I2, at, 1, -2);
    dtype_store_i64(SINTER_DTYPE_U2, at, 2, 5);
    dtype_store_f64(SINTER_DTYPE_I2, at, 4, 1e9);
    CHECK_EQ(at[0], 0xdb);
    CHECK_EQ(at[1], 1);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I2, at, 0), -1);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_I2, at, 1), -2);
    CHECK_EQ(dtype_load_i64(SINTER_DTYPE_U2, at, 2), 1);
    dtype_move(SINTER_DTYPE_U2, at, 7, at, 3);
    CHECK_EQ(at[1], 0xc1);
}

static void powers_round_up(void)
{
    static const struct {
        double in, out;
    } each[] = { { 1, 1 },
                 { 1.01, 2 },
                 { -3, 4 },
                 { 0, 0x1p-127 },
                 { 0x1p-127, 0x1p-127 },
                 { 0x1.8p-127, 0x1p-126 },
                 { 0x1p127, 0x1p127 },
                 { 1e300, 0x1p127 } };
    uint8_t at = 0;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        dtype_store_f64(SINTER_DTYPE_F8E8M0, &at, 0, each[i].in);
        CHECK_EQ_F(dtype_load_f64(SINTER_DTYPE_F8E8M0, &at, 0), each[i].out);
    }
    dtype_store_f8(SINTER_DTYPE_F8E8M0, &at, 0, 1e300, false);
    CHECK_EQ(at, 0xff);
    dtype_store_f64(SINTER_DTYPE_F8E8M0, &at, 0, -(double)INFINITY);
    CHECK_EQ(at, 0xff);
}

static void names_and_sizes(void)
{
    sinter_dtype d;
    for (int i = 1; i < SINTER_DTYPE_COUNT; i++) {
        const char *name = sinter_dtype_name((sinter_dtype)i);
        CHECK(dtype_parse(name, strlen(name), &d) && (int)d == i);
    }
    CHECK(!dtype_parse("none", 4, &d));
    CHECK(!dtype_parse("f3", 2, &d));
    sinter_tensor t = { .dtype = SINTER_DTYPE_I4, .rank = 2, .dim = { 3, 3 } };
    CHECK_EQ(sinter_tensor_size(&t), 5);
    t = (sinter_tensor){ .dtype = SINTER_DTYPE_F32, .rank = 3, .dim = { INT64_MAX, 4, 0 } };
    CHECK_EQ(sinter_tensor_size(&t), 0);
    t.dim[2] = 9;
    CHECK(sinter_tensor_size(&t) == SIZE_MAX);
    CHECK_STR(sinter_status_text(SINTER_OK), "ok");
    CHECK_STR(sinter_status_text((sinter_status)99), "not a status");
}

static const test tests[] = {
    T(codes_round_trip),
    T(halves_round_to_nearest_even),
    T(known_values),
    T(integers_saturate_and_wrap),
    T(nibbles_do_not_touch_their_neighbour),
    T(pairs_of_bits_do_not_touch_their_neighbours),
    T(powers_round_up),
    T(names_and_sizes),
    { 0 },
};
TEST_MAIN(tests)

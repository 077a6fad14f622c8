/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_integer_sums.c - the loops over codes of 8 bits and their sums, at every level, against plain arithmetic. */
#include "../cpu_numeric.h"
#include "cpu/integer.h"
#include "cpu/level.h"

/* Codes of every value, of odd counts. */
static void sums_of(const integer_set *set, numbers *n)
{
    enum { MOST = 150 };
    uint8_t from[MOST] = { 0 }, to[MOST + 1];
    int32_t sum[MOST] = { 0 }, c[MOST] = { 0 }, a[MOST] = { 0 }, b[MOST] = { 0 }, want[MOST];
    const int64_t count = numbers_in(n, 0, MOST);
    const uint8_t flip = numbers_in(n, 0, 1) ? 128 : 0;
    int32_t all = 0;
    uint32_t plain = 0;
    for (int64_t i = 0; i < count; i++) {
        from[i] = (uint8_t)numbers_in(n, 0, 255);
        sum[i] = (int32_t)numbers_in(n, -1000, 1000);
        want[i] = sum[i] + (int8_t)(from[i] ^ flip);
        all += (int8_t)(from[i] ^ flip);
        plain += (uint8_t)(from[i] ^ flip);
    }
    memset(to, 0xA5, sizeof to);
    CHECK_EQ(set->copy(to, from, count, flip), all);
    for (int64_t i = 0; i < count; i++) CHECK_EQ(to[i], from[i] ^ flip);
    memset(to, 0xA5, sizeof to);
    set->add(to, from, count, flip, sum);
    for (int64_t i = 0; i < count; i++) CHECK(to[i] == (from[i] ^ flip) && sum[i] == want[i]);
    CHECK_EQ(to[count], 0xA5);
    CHECK_EQ(set->sum(from, count, flip), plain);
    const bool has_b = numbers_in(n, 0, 1);
    const uint32_t by = numbers_next(n), other = numbers_next(n);
    for (int64_t i = 0; i < count; i++) {
        c[i] = (int32_t)numbers_next(n);
        a[i] = (int32_t)numbers_next(n);
        b[i] = (int32_t)numbers_next(n);
        want[i] = (int32_t)((uint32_t)c[i] - by * (uint32_t)a[i] - (has_b ? other * (uint32_t)b[i] : 0));
    }
    set->take_off(c, a, by, has_b ? b : NULL, other, count);
    for (int64_t i = 0; i < count; i++) CHECK_EQ(c[i], want[i]);
}

static void sums(void)
{
    const isa_level have = isa_detect().level;
    numbers n = { .state = 3 };
    for (int level = ISA_PLAIN; level < ISA_LEVEL_COUNT; level++)
        for (int i = 0; i < 300 && isa_level_runs(have, (isa_level)level); i++)
            sums_of(level_of((isa_level)level)->integer, &n);
}

static const test tests[] = { T(sums), { 0 } };
TEST_MAIN(tests)

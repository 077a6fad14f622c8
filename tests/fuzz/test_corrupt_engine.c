/* SPDX-License-Identifier: Apache-2.0 */
/* test_corrupt_engine.c - damaged engines are refused or run safely. Run under ASan and UBSan, which decide what is
 * safe.
 *
 * CORRUPT_ENGINE=round repeats that case alone. */
#include "campaign.h"
#include "seeds.h"
#include "test.h"

typedef struct seeds {
    image at[SEED_MAX];
    uint32_t count;
} seeds;

static void try_round(void *user, long round, rig_count *count)
{
    const seeds *s = user;
    uint64_t random = (uint64_t)round * 0x9E37u + 7;
    const image a = s->at[round / 8 % s->count], b = s->at[test_below(&random, s->count)];
    const image f = rig_damage(a, b, round % 8 != 0, &random);
    rig_try(f.at, f.size, (uint64_t)round, count);
    free(f.at);
}

static void damaged_engines(void)
{
    seeds s = { 0 };
    s.count = seed_engines(s.at);
    CHECK(s.count > 0);
    rig_count whole = { 0 };
    for (uint32_t i = 0; i < s.count; i++) {
        const rig_count before = whole;
        rig_try(s.at[i].at, s.at[i].size, 1, &whole);
        if (!CHECK(whole.loaded == before.loaded + 1 && whole.ran > before.ran))
            printf("whole: seed %u: %s\n", i, whole.last.text);
    }
    campaign c = { .name = "CORRUPT_ENGINE", .rounds = test_scale(8000, 1000000), .round = try_round, .user = &s };
    campaign_run(&c);
    CHECK_EQ(c.died, 0);
    CHECK_EQ(whole.failed + c.count.failed, 0);
    if (!getenv(c.name)) CHECK(c.count.loaded > 0 && c.count.ran > 0);
    for (uint32_t i = 0; i < s.count; i++) free(s.at[i].at);
}

static const test tests[] = { T(damaged_engines), { 0 } };
TEST_MAIN(tests)

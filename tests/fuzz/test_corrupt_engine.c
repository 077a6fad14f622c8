/* SPDX-License-Identifier: Apache-2.0 */
/* test_corrupt_engine.c - damaged engines are refused or run safely. Run under ASan and UBSan, which decide what is
 * safe.
 *
 * CORRUPT_ENGINE=round repeats that case alone; CORRUPT_TRACE=1 prints each before it is tried. */
#include "engine_rig.h"
#include "samples.h"
#include "test.h"

static void damaged_engines(void)
{
    sinter_buffer engine[SAMPLE_COUNT] = { { 0 } };
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        sinter_error error = { 0 };
        if (!CHECK_EQ(sample_build((sample)i, NULL, &engine[i], &error), SINTER_OK))
            printf("%s: %s\n", sample_name((sample)i), error.text);
    }
    rig_count whole = { 0 }, count[2] = { { 0 } };
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        const rig_count before = whole;
        if (!engine[i].size) continue;
        rig_try(engine[i].data, engine[i].size, 1, &whole);
        if (!CHECK(whole.loaded == before.loaded + 1 && whole.refused_runs == before.refused_runs))
            printf("whole: %s: %s\n", sample_name((sample)i), whole.last.text);
    }
    const long rounds = test_scale(4000, 100000);
    const char *one = getenv("CORRUPT_ENGINE");
    for (long round = one ? atol(one) : 0; round < rounds; round++) {
        uint64_t random = (uint64_t)round * 0x9E37u + 7;
        const sinter_buffer *a = &engine[round / 2 % SAMPLE_COUNT], *b = &engine[test_random(&random) % SAMPLE_COUNT];
        if (!a->size || !b->size) continue;
        const bool sealed = round & 1;
        if (getenv("CORRUPT_TRACE"))
            printf("round %ld %s\n", round, sample_name((sample)(round / 2 % SAMPLE_COUNT))), (void)fflush(stdout);
        const image f = rig_damage((image){ a->data, a->size }, (image){ b->data, b->size }, sealed, &random);
        const int failures = test_failures;
        rig_try(f.at, f.size, (uint64_t)round, &count[sealed]);
        if (test_failures != failures) printf("round %ld\n", round);
        free(f.at);
        if (one) break;
    }
    for (int i = 0; i < 2; i++)
        printf("%s: %ld tried, %ld loaded, %ld contexts, %ld runs, %ld runs refused, slowest %.1f s\n",
               i ? "checksums repaired" : "as damaged", count[i].tried, count[i].loaded, count[i].contexts,
               count[i].ran, count[i].refused_runs, count[i].slowest_s);
    CHECK(count[0].slowest_s < 60 && count[1].slowest_s < 60);
    CHECK(whole.failed + count[0].failed + count[1].failed == 0);
    if (!one) CHECK(count[1].loaded > 0 && count[1].ran > 0);
    for (int i = 0; i < SAMPLE_COUNT; i++) sinter_buffer_free(&engine[i]);
}

static const test tests[] = { T(damaged_engines), { 0 } };
TEST_MAIN(tests)

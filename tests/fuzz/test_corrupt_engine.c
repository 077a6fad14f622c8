/* SPDX-License-Identifier: Apache-2.0 */
/* test_corrupt_engine.c - damaged engines are refused or run safely. Run under ASan and UBSan, which decide what is
 * safe.
 *
 * CORRUPT_ENGINE=round or CORRUPT_CUDA=round repeats that case alone. */
#include "campaign.h"
#include "cuda_fake.h"
#include "seeds.h"
#include "sinter/sinter.h"
#include "test.h"

typedef struct seeds {
    image at[SEED_MAX];
    uint32_t count;
    bool is_cuda;
} seeds;

static void try_round(void *user, long round, rig_count *count)
{
    const seeds *s = user;
    uint64_t random = (uint64_t)round * 0x9E37u + 7;
    const image a = s->at[round / 8 % s->count], b = s->at[test_below(&random, s->count)];
    const image f = rig_damage(a, b, round % 8 != 0, &random);
    if (s->is_cuda) cuda_fake()->reset();
    rig_try(f.at, f.size, (uint64_t)round, count);
    free(f.at);
    if (!s->is_cuda) return;
    count->failed += !CHECK_EQ(cuda_fake()->live(), 0) || !CHECK_EQ(cuda_fake()->misuse(), 0);
    if (cuda_fake()->misuse()) printf("%s\n", cuda_fake()->misuse_text());
}

static void damaged(seeds *s, const char *name, long rounds)
{
    CHECK(s->count > 0);
    rig_count whole = { 0 };
    for (uint32_t i = 0; i < s->count; i++) {
        const rig_count before = whole; /* kernels that do nothing give sizes that make no sense, and runs fail */
        rig_try(s->at[i].at, s->at[i].size, 1, &whole);
        if (!CHECK(whole.loaded == before.loaded + 1 && (s->is_cuda || whole.ran > before.ran)))
            printf("whole: seed %u: %s\n", i, whole.last.text);
    }
    campaign c = { .name = name, .rounds = rounds, .round = try_round, .user = s };
    campaign_run(&c);
    CHECK_EQ(c.died, 0);
    CHECK_EQ(whole.failed + c.count.failed, 0);
    if (!getenv(c.name)) CHECK(c.count.loaded > 0 && c.count.ran > 0);
    for (uint32_t i = 0; i < s->count; i++) free(s->at[i].at);
}

/* Kernels are asked whether they take problems that no builder would give them. */
static void each_step_for_each_kernel(void)
{
    image s[2 * SEED_MAX];
    uint32_t count = seed_engines(s);
    long tried = 0, loaded = 0;
    count += seed_engines_cuda(s + count);
    for (uint32_t i = 0; i < count; i++) {
        parts p = parts_of(s[i]);
        const uint32_t steps = parts_count(&p, SECTION_STEPS), kernels = parts_count(&p, SECTION_KERNELS);
        parts_free(&p);
        for (uint32_t k = 0; k < steps * kernels; k++) {
            const sinter_engine_options o = { .struct_size = sizeof o, .threads = 1, .kernel_cache = "" };
            sinter_engine *g = NULL;
            p = parts_of(s[i]);
            ((engine_step *)parts_record(&p, SECTION_STEPS, k / kernels))->kernel = 1 + k % kernels;
            const image f = parts_together(&p);
            parts_seal(f.at, f.size);
            const sinter_status status = sinter_engine_load_memory(f.at, f.size, &o, &g, NULL);
            CHECK(status == SINTER_OK || status == SINTER_INVALID_MODEL || status == SINTER_INCOMPATIBLE);
            tried++;
            loaded += g != NULL;
            sinter_engine_release(g);
            free(f.at);
        }
        free(s[i].at);
    }
    CHECK(loaded > 0 && loaded < tried);
}

static void damaged_engines(void)
{
    seeds s = { 0 };
    s.count = seed_engines(s.at);
    damaged(&s, "CORRUPT_ENGINE", test_scale(8000, 1000000));
}

/* The driver that is none has the memory of a device on the host, and checks what it is asked. */
static void damaged_engines_cuda(void)
{
    seeds s = { .is_cuda = true };
    s.count = seed_engines_cuda(s.at);
    damaged(&s, "CORRUPT_CUDA", test_scale(2000, 200000));
}

static const test tests[] = { T(each_step_for_each_kernel), T(damaged_engines), T(damaged_engines_cuda), { 0 } };
TEST_MAIN(tests)

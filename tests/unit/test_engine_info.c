/* SPDX-License-Identifier: Apache-2.0 */
/* test_engine_info.c - what an engine says of its sizes: consistent for every sample, the same with and without
 * weights, and bounded by the limit of a build. */
#include "base/env.h"
#include "samples.h"
#include "sinter/refit.h"
#include "test.h"

static bool build(sample s, uint64_t workspace, sinter_buffer *out)
{
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    sinter_error error = { 0 };
    o.tune = SINTER_TUNE_OFF;
    o.threads = 2;
    o.workspace = workspace;
    o.profile = sample_profiles(s, &o.profile_count);
    const bytes model = sample_model(s);
    const bool ok = CHECK_EQ(sinter_build_memory(model.at, model.size, &o, out, &error), SINTER_OK);
    if (!ok) printf("%s: %s\n", sample_name(s), error.text);
    free(model.at);
    return ok;
}

static sinter_engine *load(const sinter_buffer *file)
{
    sinter_engine *g = NULL;
    CHECK_EQ(sinter_engine_load_memory(file->data, file->size, NULL, &g, NULL), SINTER_OK);
    return g;
}

static bool describe(const sinter_engine *g, sinter_engine_info *out)
{
    *out = (sinter_engine_info)SINTER_ENGINE_INFO;
    return CHECK_EQ(sinter_engine_describe(g, out, NULL), SINTER_OK);
}

static void check_profiles(const sinter_engine *g, const sinter_engine_info *info)
{
    uint64_t memory = 0, weights = 0, steps = 0;
    for (uint32_t i = 0; i < info->profile_count; i++) {
        sinter_profile_info p = SINTER_PROFILE_INFO;
        if (!CHECK_EQ(sinter_engine_describe_profile(g, i, &p, NULL), SINTER_OK)) continue;
        CHECK(p.memory_size >= p.slab_size + p.workspace_size);
        CHECK(p.memory_size <= p.slab_size + p.workspace_size + 256);
        CHECK(p.weights_size <= info->weights_size + 64);
        CHECK(p.program_count <= p.step_count);
        if (p.memory_size > memory) memory = p.memory_size;
        weights += p.weights_size;
        steps += p.step_count;
    }
    CHECK_EQ(info->memory_size, memory);
    CHECK_EQ(info->step_count, steps);
    CHECK(info->weights_size <= weights);
    CHECK(info->kernel_count <= info->tactic_count && info->tactic_count <= info->step_count);
}

static void sizes_agree(void)
{
    for (int s = 0; s < SAMPLE_COUNT; s++) {
        sinter_buffer file = { 0 }, stripped = { 0 };
        sinter_engine_info whole, bare;
        if (!build((sample)s, 0, &file)) continue;
        sinter_engine *g = load(&file);
        if (g && describe(g, &whole)) {
            check_profiles(g, &whole);
            CHECK_EQ(whole.file_size, file.size);
            CHECK_EQ(whole.stripped_size, 0);
            CHECK_EQ(whole.device_weights_size, 0);
            CHECK(whole.weights_size < whole.file_size);
            CHECK_EQ(sinter_engine_profile_count(g), whole.profile_count);
        }
        if (g && CHECK_EQ(sinter_engine_strip(g, &stripped, NULL), SINTER_OK)) {
            sinter_engine *h = load(&stripped);
            if (h && describe(h, &bare)) {
                /* Only equal bytes show that profiles share a weight. */
                if (whole.profile_count == 1) CHECK_EQ(bare.weights_size, whole.weights_size);
                CHECK(bare.weights_size >= whole.weights_size);
                CHECK_EQ(bare.memory_size, whole.memory_size);
                CHECK(bare.stripped_size <= bare.weights_size);
                CHECK(whole.weights_size < 4096 || bare.stripped_size > 0);
                CHECK(bare.file_size < whole.file_size + 64);
            }
            sinter_engine_release(h);
        }
        sinter_engine_release(g);
        sinter_buffer_free(&file);
        sinter_buffer_free(&stripped);
    }
}

/* A caller that was compiled with fewer fields gets those, and nothing behind them is touched. */
static void older_callers_get_less(void)
{
    sinter_buffer file = { 0 };
    if (!build(SAMPLE_CONV, 0, &file)) return;
    sinter_engine *g = load(&file);
    sinter_engine_info info;
    memset(&info, 0x5a, sizeof info);
    info.struct_size = offsetof(sinter_engine_info, stripped_size);
    CHECK_EQ(sinter_engine_describe(g, &info, NULL), SINTER_OK);
    CHECK_EQ(info.file_size, file.size);
    CHECK_EQ(info.stripped_size, 0x5a5a5a5a5a5a5a5au);
    sinter_error error;
    info.struct_size = 4;
    CHECK_EQ(sinter_engine_describe(g, &info, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "struct_size is 4");
    sinter_profile_info p = SINTER_PROFILE_INFO;
    CHECK_EQ(sinter_engine_describe_profile(g, 7, &p, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "profile 7, the engine has 1");
    CHECK_EQ(sinter_engine_state_count(g), 0);
    sinter_engine_release(g);
    sinter_buffer_free(&file);
}

/* Whatever the limit is, no step needs more; and an engine of small scratch memory still gives the results. */
static void no_tactic_passes_the_limit(void)
{
    static const uint64_t limits[] = { 1, 64, 1000, 4096, 1 << 16 };
    uint64_t least = UINT64_MAX, most = 0;
    for (int s = 0; s < SAMPLE_COUNT; s++) {
        for (size_t i = 0; i < COUNT_OF(limits); i++) {
            sinter_buffer file = { 0 };
            if (!build((sample)s, limits[i], &file)) continue;
            sinter_engine *g = load(&file);
            for (uint32_t k = 0; k < sinter_engine_profile_count(g); k++) {
                sinter_profile_info p = SINTER_PROFILE_INFO;
                CHECK_EQ(sinter_engine_describe_profile(g, k, &p, NULL), SINTER_OK);
                if (!CHECK(p.workspace_size <= limits[i])) printf("%s\n", sample_name((sample)s));
                if (p.workspace_size < least) least = p.workspace_size;
                if (p.workspace_size > most) most = p.workspace_size;
            }
            sinter_engine_release(g);
            sinter_buffer_free(&file);
        }
    }
    CHECK_EQ(least, 0);
    CHECK(most > 1000); /* the limit has decided something */
}

static const test tests[] = { T(sizes_agree), T(older_callers_get_less), T(no_tactic_passes_the_limit), { 0 } };
TEST_MAIN(tests)

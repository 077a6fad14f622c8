/* SPDX-License-Identifier: Apache-2.0 */
/* test_alloc_failures.c - every allocation of build, load, context and runs fails in turn, alone or with all that
 * follow: each time the work ends with NO_MEMORY, or succeeds because it could do without, and nothing is left behind.
 */
#include "faulty.h"
#include "samples.h"
#include "test.h"

/* A faulty allocator that can also fail one request only. */
typedef struct failing {
    faulty f;
    long alone; /* this request fails, counted from 1; 0: none */
} failing;

static void *failing_resize(void *user, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    failing *x = user;
    if (new_size && x->alone && x->f.requests + 1 == x->alone) {
        x->f.requests++;
        return NULL;
    }
    return faulty_resize(&x->f, ptr, old_size, new_size, align);
}

static sinter_status run_sized(sinter_engine *g, sinter_context *c, sample_size size, sinter_error *error)
{
    sample_data d;
    if (!CHECK(sample_data_make(g, 0, size, 5, 1u << 20, &d))) return SINTER_INTERNAL;
    sinter_status s = sample_data_set(&d, c, error);
    if (s == SINTER_OK) s = sinter_context_run(c, error);
    sample_data_free(&d);
    return s;
}

/* Sizes told before a run, memory of the caller, and a change of profile. After a change that failed, the context says
 * so in every run, and another change mends it. */
static sinter_status move_on(sinter_engine *g, sinter_error *error)
{
    sinter_context *c = NULL;
    sinter_context_options o = SINTER_CONTEXT_OPTIONS;
    const size_t room = sinter_engine_memory_size(g, SINTER_ALL_PROFILES);
    const uint32_t last = sinter_engine_profile_count(g) - 1;
    size_t wanted = 0;
    sample_data d;
    void *memory = aligned_alloc(64, room);
    sinter_engine_info info = SINTER_ENGINE_INFO;
    o.memory = SINTER_MEMORY_USER;
    sinter_status s = sinter_engine_describe(g, &info, error);
    if (s == SINTER_OK) s = sinter_context_create(g, &o, &c, error);
    if (s == SINTER_OK) s = sinter_context_set_memory(c, memory, room, error);
    if (s == SINTER_OK) s = run_sized(g, c, SAMPLE_OPT, error);
    if (s == SINTER_OK && CHECK(sample_data_make(g, 0, SAMPLE_MAX, 5, 1u << 20, &d))) {
        s = sample_data_set(&d, c, error);
        if (s == SINTER_OK) s = sinter_context_memory_size(c, &wanted, error);
        CHECK(s != SINTER_OK || (wanted > 0 && wanted <= room));
        sample_data_free(&d);
    }
    if (s == SINTER_OK && last) {
        s = sinter_context_set_profile(c, last, error);
        sinter_error why = { 0 };
        if (s != SINTER_OK) CHECK_EQ(sinter_context_run(c, &why), SINTER_INVALID_ARG);
        if (s != SINTER_OK) CHECK_HAS(why.text, "a change of profile failed");
    }
    if (c && s == SINTER_NO_MEMORY && last && sinter_context_set_profile(c, 0, NULL) == SINTER_OK)
        CHECK_EQ(sinter_context_profile(c), 0);
    sinter_context_destroy(c);
    free(memory);
    return s;
}

static sinter_status work_on(sinter_engine *g, sinter_error *error)
{
    sinter_context *c = NULL;
    sinter_status s = sinter_context_create(g, NULL, &c, error);
    if (!CHECK_EQ(s == SINTER_OK, c != NULL) || s != SINTER_OK) return s;
    s = run_sized(g, c, SAMPLE_OPT, error);
    if (s == SINTER_OK) s = run_sized(g, c, SAMPLE_MAX, error);
    if (s == SINTER_OK) s = run_sized(g, c, SAMPLE_OPT, error);
    sinter_context_destroy(c);
    return s == SINTER_OK ? move_on(g, error) : s;
}

/* One whole life. Builds, or loads `engine` and runs it. */
static sinter_status live(sample which, const sinter_buffer *engine, failing *x, sinter_error *error)
{
    const sinter_allocator allocator = { x, failing_resize };
    const sinter_env_options env = { .struct_size = sizeof env, .allocator = &allocator };
    if (!engine) {
        sinter_buffer made = { 0 };
        const sinter_status s = sample_build(which, &env, &made, error);
        (void)CHECK_EQ(s == SINTER_OK, made.size != 0);
        sinter_buffer_free(&made);
        return s;
    }
    const sinter_engine_options o = { .struct_size = sizeof o, .env = &env, .threads = 1 };
    sinter_engine *g = NULL;
    sinter_status s = sinter_engine_load_memory(engine->data, engine->size, &o, &g, error);
    (void)CHECK_EQ(s == SINTER_OK, g != NULL);
    if (g) s = work_on(g, error);
    sinter_buffer bare = { 0 }, again = { 0 };
    if (s == SINTER_OK) s = sinter_engine_strip(g, &bare, error);
    if (s == SINTER_OK) s = sinter_engine_refit(g, NULL, 0, &again, error);
    sinter_buffer_free(&bare);
    sinter_buffer_free(&again);
    sinter_engine_release(g);
    return s;
}

static void fail_each(sample which, const sinter_buffer *engine, const char *what)
{
    failing whole = { .f = { .budget = -1 } };
    sinter_error error = { 0 };
    if (!CHECK_EQ(live(which, engine, &whole, &error), SINTER_OK))
        printf("%s %s: %s\n", what, sample_name(which), error.text);
    (void)CHECK_EQ(whole.f.live, 0);
    (void)CHECK_EQ(whole.f.misuse, 0);
    long survived = 0, tried = 0;
    for (long n = 1; n <= whole.f.requests; n++) {
        for (int alone = 0; alone < 2; alone++) {
            failing x = { .f = { .budget = alone ? -1 : n - 1 }, .alone = alone ? n : 0 };
            error = (sinter_error){ 0 };
            const sinter_status s = live(which, engine, &x, &error);
            const int held = CHECK(s == SINTER_OK || s == SINTER_NO_MEMORY) + CHECK_EQ(x.f.live, 0) +
                             CHECK_EQ(x.f.misuse, 0) + CHECK(s == SINTER_OK || error.length > 0);
            if (held < 4)
                printf("%s %s: request %ld of %ld %s: %s\n", what, sample_name(which), n, whole.f.requests,
                       alone ? "alone" : "and later", error.text);
            survived += s == SINTER_OK;
            tried++;
        }
    }
    printf("%s %s: %ld requests, %ld failures tried, %ld survived, peak %ld KiB\n", what, sample_name(which),
           whole.f.requests, tried, survived, whole.f.peak_bytes / 1024);
}

static void building(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++)
        if (test_is_full() || i != SAMPLE_PROFILES) fail_each((sample)i, NULL, "build");
}

static void loading_and_running(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        sinter_buffer engine = { 0 };
        if (!CHECK_EQ(sample_build((sample)i, NULL, &engine, NULL), SINTER_OK)) continue;
        fail_each((sample)i, &engine, "load and run");
        sinter_buffer_free(&engine);
    }
}

/* A run that failed for want of memory does not spoil its context. */
static void contexts_recover(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        sinter_buffer engine = { 0 };
        failing x = { .f = { .budget = -1 } };
        const sinter_allocator allocator = { &x, failing_resize };
        const sinter_env_options env = { .struct_size = sizeof env, .allocator = &allocator };
        const sinter_engine_options o = { .struct_size = sizeof o, .env = &env, .threads = 1 };
        sinter_engine *g = NULL;
        sinter_context *c = NULL;
        if (!CHECK_EQ(sample_build((sample)i, NULL, &engine, NULL), SINTER_OK)) continue;
        CHECK_EQ(sinter_engine_load_memory(engine.data, engine.size, &o, &g, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_create(g, NULL, &c, NULL), SINTER_OK);
        CHECK_EQ(run_sized(g, c, SAMPLE_OPT, NULL), SINTER_OK);
        const uint64_t wanted = sample_results(g, c);
        sinter_status s = SINTER_NO_MEMORY;
        for (long n = 1; n < 1000 && s != SINTER_OK; n++) {
            x.alone = x.f.requests + n;
            s = run_sized(g, c, SAMPLE_MAX, NULL);
            x.alone = 0;
            (void)CHECK(s == SINTER_OK || s == SINTER_NO_MEMORY);
            CHECK_EQ(run_sized(g, c, SAMPLE_OPT, NULL), SINTER_OK);
            if (!CHECK_EQ(sample_results(g, c), wanted)) printf("%s: after failure %ld\n", sample_name((sample)i), n);
        }
        sinter_context_destroy(c);
        sinter_engine_release(g);
        sinter_buffer_free(&engine);
        CHECK_EQ(x.f.live, 0);
    }
}

static const test tests[] = { T(building), T(loading_and_running), T(contexts_recover), { 0 } };
TEST_MAIN(tests)

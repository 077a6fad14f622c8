/* SPDX-License-Identifier: Apache-2.0 */
/* test_env.c - defaults, limits, the chain of causes, the log, and the allocator's uses. */
#include "base/env.h"
#include "base/os.h"
#include "faulty.h"
#include "test.h"

static void fills_defaults(void)
{
    env e;
    env_init(&e, NULL, NULL);
    CHECK(e.error == &e.error_own);
    CHECK(e.alloc.resize != NULL);
    CHECK_EQ(e.limits.nodes_max, 1u << 20);
    CHECK_EQ(e.limits.depth_max, 32);
    CHECK_EQ(e.log_topics, 0);
}

static void clamps_limits(void)
{
    const sinter_limits limits = { .depth_max = 1000, .memory_max = 1, .fold_max = 7 };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.limits = &limits;
    env e;
    env_init(&e, &options, NULL);
    CHECK_EQ(e.limits.depth_max, 64);
    CHECK_EQ(e.limits.memory_max, 1u << 16);
    CHECK_EQ(e.limits.fold_max, 7);
    CHECK_EQ(e.limits.nodes_max, 1u << 20);
}

static void ignores_fields_past_struct_size(void)
{
    const sinter_limits limits = { .depth_max = 3 };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.limits = &limits;
    options.struct_size = offsetof(sinter_env_options, limits);
    env e;
    env_init(&e, &options, NULL);
    CHECK_EQ(e.limits.depth_max, 32);
}

static void chains_causes(void)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    const sinter_status status = FAIL(&e, IO, "cannot read '%s'", "a\nb");
    CHECK_EQ(status, SINTER_IO);
    CHECK_EQ(NOTE(&e, status, "loading %s", "weights"), SINTER_IO);
    CHECK_EQ(NOTE(&e, SINTER_OK, "nothing"), SINTER_OK);
    CHECK_EQ(error.status, SINTER_IO);
    CHECK_EQ(error.length, strlen(error.text));
    CHECK_HAS(error.text, "cannot read 'a b'");
    CHECK_HAS(error.text, "\n  while loading weights");
    CHECK(strstr(error.text, "nothing") == NULL);
    (void)FAIL(&e, INTERNAL, "fresh");
    CHECK(strstr(error.text, "weights") == NULL);
}

static void cuts_long_chains(void)
{
    char name[4000];
    for (size_t i = 0; i + 1 < sizeof name; i += 2) { /* two-byte characters: a cut must fall between them */
        name[i] = (char)0xC3;
        name[i + 1] = (char)0xA9;
    }
    name[sizeof name - 2] = 0;
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    (void)FAIL(&e, IO, "%s", name);
    CHECK_EQ(error.length, strlen(error.text));
    CHECK(error.length < SINTER_ERROR_TEXT_SIZE);
    CHECK(((unsigned char)error.text[error.length - 1] & 0xC0) != 0xC0);
    for (int i = 0; i < 50; i++) (void)NOTE(&e, SINTER_IO, "step %d", i);
    CHECK_EQ(error.length, strlen(error.text));
    CHECK(error.length < SINTER_ERROR_TEXT_SIZE);
}

typedef struct heard {
    int lines;
    char topic[16], line[64];
} heard;
static void listen(void *user, const char *topic, const char *line)
{
    heard *h = user;
    h->lines++;
    (void)snprintf(h->topic, sizeof h->topic, "%s", topic);
    (void)snprintf(h->line, sizeof h->line, "%s", line);
}

static void logs_chosen_topics(void)
{
    heard h = { 0 };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.log = listen;
    options.log_user = &h;
    options.log_topics = "plan,run,unheard-of";
    env e;
    env_init(&e, &options, NULL);
    CHECK(env_logs(&e, LOG_PLAN) && env_logs(&e, LOG_RUN) && !env_logs(&e, LOG_OPT));
    env_log(&e, LOG_OPT, "no");
    CHECK_EQ(h.lines, 0);
    env_log(&e, LOG_RUN, "step %d", 3);
    CHECK_EQ(h.lines, 1);
    CHECK_STR(h.topic, "run");
    CHECK_STR(h.line, "step 3");
    CHECK_EQ(env_check(&e), SINTER_INVALID_ARG);
    CHECK_HAS(e.error->text, "no log topic 'unheard-of' (log_topics)");
    options.log_topics = "all,plan";
    env_init(&e, &options, NULL);
    CHECK_EQ(env_check(&e), SINTER_OK);
}

static void reads_topics_from_environment(void)
{
    heard h = { 0 };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.log = listen;
    options.log_user = &h;
    env e;
    (void)setenv("SINTER_LOG", "all", 1);
    env_init(&e, &options, NULL);
    CHECK_EQ(e.log_topics, (1u << LOG_TOPIC_COUNT) - 1u);
    (void)setenv("SINTER_LOG", "plan,,run", 1);
    env_init(&e, &options, NULL);
    CHECK_EQ(env_check(&e), SINTER_INVALID_ARG);
    CHECK_HAS(e.error->text, "no log topic '' (SINTER_LOG)");
    options.log = NULL;
    env_init(&e, &options, NULL);
    CHECK_EQ(e.log_topics, 0);
    CHECK_EQ(env_check(&e), SINTER_OK); /* nobody listens */
    (void)unsetenv("SINTER_LOG");
}

static void uses_the_given_allocator(void)
{
    faulty f = { .budget = 2 };
    const sinter_allocator allocator = { &f, faulty_resize };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.allocator = &allocator;
    env e;
    env_init(&e, &options, NULL);
    unsigned char *at = mem_zalloc(&e, 100, 64);
    CHECK_EQ((uintptr_t)at % 64, 0);
    CHECK_EQ(at[0] | at[99], 0);
    at[99] = 7;
    at = mem_resize(&e, at, 100, 200, 64);
    CHECK_EQ(at[99], 7);
    CHECK(mem_resize(&e, at, 200, 300, 64) == NULL); /* over budget: the block is untouched */
    CHECK_EQ(at[99], 7);
    CHECK(mem_alloc(&e, SIZE_MAX, 8) == NULL);
    CHECK(mem_alloc(&e, 0, 8) == NULL);
    mem_free(&e, at, 200, 64);
    CHECK_EQ(f.live, 0);
    CHECK_EQ(f.live_bytes, 0);
    CHECK_EQ(f.misuse, 0);
}

static void aligns_by_default(void)
{
    env e;
    env_init(&e, NULL, NULL);
    for (size_t align = 1; align <= 4096; align *= 2) {
        unsigned char *at = mem_alloc(&e, 33, align);
        CHECK_EQ((uintptr_t)at % align, 0);
        at[32] = 5;
        at = mem_resize(&e, at, 33, 5000, align);
        CHECK_EQ((uintptr_t)at % align, 0);
        CHECK_EQ(at[32], 5);
        mem_free(&e, at, 5000, align);
    }
    CHECK(mem_alloc(&e, PTRDIFF_MAX, 4096) == NULL);
}

static void saturates_sizes(void)
{
    CHECK_EQ(size_add(SIZE_MAX - 1, 2), SIZE_MAX);
    CHECK_EQ(size_mul(SIZE_MAX / 2, 3), SIZE_MAX);
    CHECK_EQ(size_mul(0, SIZE_MAX), 0);
    CHECK_EQ(size_align(SIZE_MAX - 3, 64), SIZE_MAX);
    CHECK_EQ(size_align(65, 64), 128);
    int64_t out = 0;
    CHECK(!i64_add(INT64_MAX, 1, &out));
    CHECK(!i64_mul(INT64_MIN, -1, &out));
    CHECK(i64_sub(5, 7, &out));
    CHECK_EQ(out, -2);
}

static const test tests[] = {
    T(fills_defaults),
    T(clamps_limits),
    T(ignores_fields_past_struct_size),
    T(chains_causes),
    T(cuts_long_chains),
    T(logs_chosen_topics),
    T(reads_topics_from_environment),
    T(uses_the_given_allocator),
    T(aligns_by_default),
    T(saturates_sizes),
    { 0 },
};
TEST_MAIN(tests)

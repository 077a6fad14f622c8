/* SPDX-License-Identifier: Apache-2.0 */
/* test_engine_threads.c - one engine, several threads with a context each, a pool that they all want: the results are
 * those of one thread, bit for bit. */
#include "base/os.h"
#include "samples.h"
#include "test.h"

enum { THREADS = 4, ROUNDS = 12 };

typedef struct job {
    sinter_engine *g;
    uint32_t index;
    uint64_t want[3];
    int wrong, failed;
} job;

static uint64_t once(sinter_engine *g, sinter_context *c, sample_size size, uint32_t seed)
{
    sample_data d;
    uint64_t sum = 0;
    if (!sample_data_make(g, 0, size, seed, 1u << 20, &d)) return 0;
    if (sample_data_set(&d, c, NULL) == SINTER_OK && sinter_context_run(c, NULL) == SINTER_OK)
        sum = sample_results(g, c);
    sample_data_free(&d);
    return sum;
}

static void body(void *arg)
{
    job *j = arg;
    sinter_context *c = NULL;
    sinter_engine_retain(j->g);
    if (sinter_context_create(j->g, NULL, &c, NULL) != SINTER_OK) {
        j->failed++;
        sinter_engine_release(j->g);
        return;
    }
    for (uint32_t i = 0; i < ROUNDS; i++) j->wrong += once(j->g, c, (sample_size)(i % 3), j->index) != j->want[i % 3];
    sinter_context_destroy(c);
    sinter_engine_release(j->g);
}

static void try(sample s, uint32_t pool)
{
    sinter_buffer bytes_of = { 0 };
    sinter_engine *alone = NULL, *g = NULL;
    sinter_context *c = NULL;
    const sinter_engine_options one = { .struct_size = sizeof one, .threads = 1 },
                                many = { .struct_size = sizeof many, .threads = pool };
    if (!CHECK_EQ(sample_build(s, NULL, &bytes_of, NULL), SINTER_OK)) return;
    CHECK_EQ(sinter_engine_load_memory(bytes_of.data, bytes_of.size, &one, &alone, NULL), SINTER_OK);
    CHECK_EQ(sinter_engine_load_memory(bytes_of.data, bytes_of.size, &many, &g, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_create(alone, NULL, &c, NULL), SINTER_OK);
    job jobs[THREADS] = { 0 };
    os_thread *thread[THREADS] = { NULL };
    env e;
    env_init(&e, NULL, NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        jobs[i] = (job){ .g = g, .index = i };
        for (uint32_t k = 0; k < 3; k++) {
            jobs[i].want[k] = once(alone, c, (sample_size)k, i);
            CHECK(jobs[i].want[k] != 0);
        }
    }
    for (uint32_t i = 0; i < THREADS; i++) CHECK_EQ(os_thread_start(&e, body, &jobs[i], &thread[i]), SINTER_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (thread[i]) os_thread_join(&e, thread[i]);
        if (!CHECK_EQ(jobs[i].wrong, 0) + !CHECK_EQ(jobs[i].failed, 0))
            printf("%s, pool of %u\n", sample_name(s), pool);
    }
    sinter_context_destroy(c);
    sinter_engine_release(alone);
    sinter_engine_release(g);
    sinter_buffer_free(&bytes_of);
}

static void contexts_on_threads(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) try((sample)i, 1);
}

static void a_shared_pool(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) try((sample)i, 2);
    try(SAMPLE_CONV, 4);
}

static const test tests[] = { T(contexts_on_threads), T(a_shared_pool), { 0 } };
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_threads.c - the pool: every tile once, workers apart, busy pools and sleepers. */
#include "cpu/threads.h"

#include "base/os.h"
#include "test.h"

enum { TILES = 1000, CALLERS = 3 };

typedef struct job {
    uint32_t seen[TILES];
    uint32_t active[16];
    uint32_t bad;
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    job *j = arg;
    if (worker >= 16 || __atomic_add_fetch(&j->active[worker], 1, __ATOMIC_RELAXED) != 1)
        __atomic_add_fetch(&j->bad, 1, __ATOMIC_RELAXED);
    for (uint32_t i = begin; i < end; i++) j->seen[i]++;
    __atomic_sub_fetch(&j->active[worker], 1, __ATOMIC_RELAXED);
}

static bool run_once(const parallel *p, job *j, uint32_t count)
{
    *j = (job){ 0 };
    p->run(p, count, body, j);
    if (j->bad) return false;
    for (uint32_t i = 0; i < TILES; i++)
        if (j->seen[i] != (i < count)) return false;
    return true;
}

typedef struct caller {
    const parallel *p;
    bool ok;
    job j;
} caller;

static void caller_main(void *arg)
{
    caller *c = arg;
    c->ok = true;
    for (uint32_t i = 0; i < 300; i++) c->ok = run_once(c->p, &c->j, 1 + i % 97) && c->ok;
}

static void covers_every_tile_once(void)
{
    env e;
    env_init(&e, NULL, NULL);
    static job j;
    static caller callers[CALLERS];
    const uint64_t spins[] = { 0, 50000 };
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t threads = 1; threads <= 4; threads++) {
            cpu_pool *pool = NULL;
            if (!CHECK(cpu_pool_create(&e, threads, spins[s], &pool) == SINTER_OK)) return;
            const parallel *p = cpu_pool_parallel(pool);
            CHECK_EQ(p->threads, threads);
            for (uint32_t i = 0; i < 200; i++) CHECK(run_once(p, &j, i % 50 ? i : TILES));
            CHECK(run_once(p, &j, 0));
            os_thread *thread[CALLERS] = { 0 };
            for (uint32_t i = 0; i < CALLERS; i++) {
                callers[i].p = p;
                CHECK(os_thread_start(&e, caller_main, &callers[i], &thread[i]) == SINTER_OK);
            }
            for (uint32_t i = 0; i < CALLERS; i++) {
                os_thread_join(&e, thread[i]);
                CHECK(callers[i].ok);
            }
            cpu_pool_wake(pool);
            CHECK(run_once(p, &j, TILES));
            cpu_pool_destroy(&e, pool);
        }
    }
}

static void refuses_too_many(void)
{
    env e;
    env_init(&e, NULL, NULL);
    cpu_pool *pool = NULL;
    CHECK_EQ(cpu_pool_create(&e, CPU_POOL_THREADS_MAX + 1, 0, &pool), SINTER_INVALID_ARG);
    cpu_pool_destroy(&e, pool);
}

static const test tests[] = { T(covers_every_tile_once), T(refuses_too_many), { 0 } };
TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_threads.c - the pool: every tile once and workers apart, for random counts, threads and loads; callers at
 * the same time, bodies that hand out work, callers that end at once, sleepers, shared pools, a fork. */
#include "cpu/threads.h"

#include "base/os.h"
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

enum { TILES = 1000, CALLERS = 4, WORKERS = 16 };

/* How long a tile takes. */
typedef enum load { LOAD_NONE, LOAD_EVEN, LOAD_LAST, LOAD_ONE_SLEEPS, LOAD_RANDOM, LOADS } load;

typedef struct job {
    const parallel *p;
    uint32_t seen[TILES];
    uint32_t active[WORKERS];
    uint32_t bad, seed;
    uint32_t came; /* a bit for each worker that took a tile */
    load load;
    struct job *inner; /* handed out by each tile that 37 divides */
} job;

static uint32_t next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void spend(uint32_t turns)
{
    for (volatile uint32_t i = 0; i < turns; i++) {}
}

static void tile_spend(const job *j, uint32_t tile, uint32_t worker)
{
    uint32_t state = j->seed + 7919 * tile + 1;
    switch (j->load) {
    case LOAD_EVEN: spend(50); break;
    case LOAD_LAST: spend(tile % 97 == 96 ? 5000 : 5); break;
    case LOAD_ONE_SLEEPS:
        if (worker == 1 && tile % 61 == 60) (void)usleep(200);
        break;
    case LOAD_RANDOM: spend(next(&state) % 400); break;
    default: break;
    }
}

static bool run_once(job *j, const parallel *p, uint32_t count, load l, uint32_t seed);

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    job *j = arg;
    if (worker >= WORKERS || worker >= j->p->threads ||
        __atomic_add_fetch(&j->active[worker], 1, __ATOMIC_RELAXED) != 1)
        __atomic_add_fetch(&j->bad, 1, __ATOMIC_RELAXED);
    if (begin >= end) __atomic_add_fetch(&j->bad, 1, __ATOMIC_RELAXED);
    __atomic_or_fetch(&j->came, 1u << worker % WORKERS, __ATOMIC_RELAXED);
    for (uint32_t i = begin; i < end; i++) {
        j->seen[i]++;
        tile_spend(j, i, worker);
        if (j->inner && i % 37 == 0 && !run_once(&j->inner[worker], j->p, 1 + i % 50, LOAD_NONE, i))
            __atomic_add_fetch(&j->bad, 1, __ATOMIC_RELAXED);
    }
    if (worker < WORKERS) __atomic_sub_fetch(&j->active[worker], 1, __ATOMIC_RELAXED);
}

static bool run_once(job *j, const parallel *p, uint32_t count, load l, uint32_t seed)
{
    job *inner = j->inner;
    *j = (job){ .p = p, .load = l, .seed = seed, .inner = inner };
    p->run(p, count, body, j);
    if (j->bad) return false;
    for (uint32_t i = 0; i < TILES; i++)
        if (j->seen[i] != (i < count)) return false;
    return true;
}

/* ---- one caller ---- */

static void covers_every_tile_once(void)
{
    env e;
    env_init(&e, NULL, NULL);
    static job j;
    uint32_t state = 1;
    for (uint32_t round = 0; round < 40; round++) {
        const cpu_pool_options o = { .threads = 1 + next(&state) % 9,
                                     .spin_ns = next(&state) % 2 ? 50000 : 0,
                                     .is_pinned = next(&state) % 4 == 0 };
        cpu_pool *pool = NULL;
        if (!CHECK(cpu_pool_create(&e, &o, &pool) == SINTER_OK)) return;
        const parallel *p = cpu_pool_parallel(pool);
        CHECK_EQ(p->threads, o.threads);
        for (uint32_t i = 0; i < 30; i++) {
            const bool is_run = next(&state) % 2;
            if (is_run) CHECK(cpu_pool_begin(pool) == (o.threads > 1 ? p : NULL));
            const uint32_t most = next(&state) % 3 ? 20 : TILES;
            CHECK(run_once(&j, p, next(&state) % (most + 1), (load)(next(&state) % LOADS), state));
            if (is_run) cpu_pool_end(pool);
            if (next(&state) % 8 == 0) (void)usleep(300); /* workers sleep */
        }
        cpu_pool_destroy(&e, pool);
    }
}

/* Bodies that hand out work, at more levels than there are workers. */
static void nests(void)
{
    env e;
    env_init(&e, NULL, NULL);
    static job outer, inner[WORKERS], last[WORKERS][WORKERS];
    for (uint32_t threads = 1; threads <= 5; threads++) {
        cpu_pool *pool = NULL;
        if (!CHECK(cpu_pool_create(&e, &(cpu_pool_options){ .threads = threads }, &pool) == SINTER_OK)) return;
        outer.inner = inner;
        for (uint32_t i = 0; i < WORKERS; i++) inner[i].inner = last[i];
        for (uint32_t i = 0; i < 6; i++)
            CHECK(run_once(&outer, cpu_pool_parallel(pool), 150 * i, (load)(i % LOADS), i));
        cpu_pool_destroy(&e, pool);
    }
}

/* ---- several callers ---- */

typedef struct caller {
    cpu_pool *pool;
    uint32_t seed, runs;
    bool ok;
    job j;
} caller;

static void caller_main(void *arg)
{
    caller *c = arg;
    uint32_t state = c->seed;
    const parallel *p = cpu_pool_parallel(c->pool);
    c->ok = true;
    for (uint32_t i = 0; i < c->runs; i++) {
        const parallel *given = cpu_pool_begin(c->pool);
        c->ok = (given == p || p->threads == 1) && c->ok;
        for (uint32_t k = next(&state) % 6; k-- > 0;)
            c->ok = run_once(&c->j, p, 1 + next(&state) % 97, (load)(next(&state) % LOADS), state) && c->ok;
        cpu_pool_end(c->pool);
        if (next(&state) % 8 == 0) (void)usleep(next(&state) % 300);
    }
}

static void callers_run(env *e, cpu_pool *pool, uint32_t runs, uint32_t seed)
{
    static caller callers[CALLERS];
    os_thread *thread[CALLERS] = { 0 };
    for (uint32_t i = 0; i < CALLERS; i++) {
        callers[i].pool = pool;
        callers[i].seed = seed + i;
        callers[i].runs = runs;
        CHECK(os_thread_start(e, caller_main, &callers[i], &thread[i]) == SINTER_OK);
    }
    for (uint32_t i = 0; i < CALLERS; i++) {
        os_thread_join(e, thread[i]);
        CHECK(callers[i].ok);
    }
}

static void serves_several_callers(void)
{
    env e;
    env_init(&e, NULL, NULL);
    static job j;
    const uint64_t spins[] = { 0, 50000 };
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t threads = 1; threads <= 8; threads++) {
            const cpu_pool_options o = { .threads = threads, .spin_ns = spins[s] };
            cpu_pool *pool = NULL;
            if (!CHECK(cpu_pool_create(&e, &o, &pool) == SINTER_OK)) return;
            callers_run(&e, pool, 40, 100 * threads + 1);
            CHECK(run_once(&j, cpu_pool_parallel(pool), TILES, LOAD_EVEN, 0)); /* after runs that stood workers down */
            cpu_pool_destroy(&e, pool);
        }
    }
}

/* Threads that use the pool once and end, and pools that end right after. */
static void outlives_its_callers(void)
{
    env e;
    env_init(&e, NULL, NULL);
    for (uint32_t round = 0; round < 40; round++) {
        const cpu_pool_options o = { .threads = 1 + round % 5, .spin_ns = round % 2 ? 100000 : 0 };
        cpu_pool *pool = NULL;
        if (!CHECK(cpu_pool_create(&e, &o, &pool) == SINTER_OK)) return;
        if (round % 3) callers_run(&e, pool, 1, round + 1);
        cpu_pool_destroy(&e, pool);
    }
}

/* ---- pools that are shared ---- */

static void taker_main(void *arg)
{
    caller *c = arg;
    env e;
    env_init(&e, NULL, NULL);
    uint32_t state = c->seed;
    bool ok = true;
    for (uint32_t i = 0; i < 25; i++) {
        const cpu_pool_options o = { .threads = 2 + next(&state) % 2, .spin_ns = 20000 };
        if (cpu_pool_take(&e, &o, &c->pool) != SINTER_OK) {
            ok = false;
            break;
        }
        c->runs = 1 + next(&state) % 4;
        caller_main(c);
        ok = ok && c->ok;
        cpu_pool_give(c->pool);
    }
    c->ok = ok;
}

static void is_shared(void)
{
    env e;
    env_init(&e, NULL, NULL);
    cpu_pool *a = NULL, *b = NULL, *other = NULL;
    const cpu_pool_options o = { .threads = 2, .spin_ns = 1000 };
    CHECK_EQ(cpu_pool_take(&e, &o, &a), SINTER_OK);
    CHECK_EQ(cpu_pool_take(&e, &o, &b), SINTER_OK);
    CHECK(a == b);
    CHECK_EQ(cpu_pool_take(&e, &(cpu_pool_options){ .threads = 3, .spin_ns = 1000 }, &other), SINTER_OK);
    CHECK(other != a);
    cpu_pool_give(a);
    static job j;
    CHECK(run_once(&j, cpu_pool_parallel(b), 100, LOAD_EVEN, 1));
    cpu_pool_give(b);
    cpu_pool_give(other);
    cpu_pool_give(NULL);

    static caller takers[CALLERS];
    os_thread *thread[CALLERS] = { 0 };
    for (uint32_t i = 0; i < CALLERS; i++) {
        takers[i].seed = i + 1;
        CHECK(os_thread_start(&e, taker_main, &takers[i], &thread[i]) == SINTER_OK);
    }
    for (uint32_t i = 0; i < CALLERS; i++) {
        os_thread_join(&e, thread[i]);
        CHECK(takers[i].ok);
    }
}

/* Runs jobs until every worker has taken a tile of one. */
static void wait_for_workers(job *j, cpu_pool *pool)
{
    const parallel *p = cpu_pool_parallel(pool);
    for (uint32_t came = 0; came != (1u << p->threads) - 1; came |= j->came) {
        CHECK(run_once(j, p, 100, LOAD_EVEN, 1));
        (void)usleep(100);
    }
}

/* A child has none of its parent's workers: the caller does all, and a new pool is made. No worker may still be
 * starting at the fork: AddressSanitizer allocates there, and a child never gets a lock that its allocator held. */
static void survives_a_fork(void)
{
    env e;
    env_init(&e, NULL, NULL);
    cpu_pool *pool = NULL;
    static job j;
    const cpu_pool_options o = { .threads = 3, .spin_ns = 1000 };
    if (!CHECK_EQ(cpu_pool_take(&e, &o, &pool), SINTER_OK)) return;
    wait_for_workers(&j, pool);
    const pid_t child = fork();
    if (child == 0) {
        bool ok = cpu_pool_begin(pool) == NULL;
        cpu_pool_end(pool);
#if !defined(__SANITIZE_THREAD__) /* which starts no threads after a fork of many */
        cpu_pool *own = NULL;
        ok = cpu_pool_take(&e, &o, &own) == SINTER_OK && own != pool && ok;
        ok = ok && run_once(&j, cpu_pool_parallel(own), 100, LOAD_EVEN, 1);
        cpu_pool_give(own);
#endif
        cpu_pool_give(pool);
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(run_once(&j, cpu_pool_parallel(pool), 100, LOAD_EVEN, 1));
    cpu_pool_give(pool);
}

static void refuses_too_many(void)
{
    env e;
    env_init(&e, NULL, NULL);
    cpu_pool *pool = NULL;
    CHECK_EQ(cpu_pool_create(&e, &(cpu_pool_options){ .threads = CPU_POOL_THREADS_MAX + 1 }, &pool),
             SINTER_INVALID_ARG);
    cpu_pool_destroy(&e, pool);
    CHECK_EQ(cpu_pool_take(&e, &(cpu_pool_options){ .threads = CPU_POOL_THREADS_MAX + 1 }, &pool), SINTER_INVALID_ARG);
    cpu_pool_give(pool);
}

static const test tests[] = { T(covers_every_tile_once), T(nests),     T(serves_several_callers),
                              T(outlives_its_callers),   T(is_shared), T(survives_a_fork),
                              T(refuses_too_many),       { 0 } };
TEST_MAIN(tests)

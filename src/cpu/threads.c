/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - the pool: a sequence number to start, a counter to join, and a futex for whoever waits too long.
 *
 * The fields of a job are plain: they are written before the release store of `sequence` and read after its acquire,
 * and written again only after every worker has counted down `pending`. Sleeping uses sequentially consistent
 * operations on both sides (announce, then look again; publish, then look for sleepers), so that no wake is lost. */
#include "cpu/threads.h"

#include "base/os.h"

enum { LINE = 64, SPINS_PER_LOOK = 64, JOIN_SPIN_NS = 200000 };

typedef struct worker {
    cpu_pool *pool;
    uint32_t index;
    os_thread *thread;
} worker;

struct cpu_pool {
    parallel p; /* first: run is given a pointer to it */
    uint64_t spin_ns;
    worker *workers; /* [p.threads]; 0 is the caller's and has no thread */
    void (*body)(void *arg, uint32_t begin, uint32_t end, uint32_t worker);
    void *arg;
    uint32_t count;
    _Alignas(LINE) uint32_t busy;
    _Alignas(LINE) uint32_t sequence;
    uint32_t is_stopping;
    _Alignas(LINE) uint32_t sleepers;
    _Alignas(LINE) uint32_t pending;
    uint32_t is_joining;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void run_range(const cpu_pool *pool, uint32_t index)
{
    const uint64_t count = pool->count, threads = pool->p.threads;
    const uint32_t begin = (uint32_t)(count * index / threads), end = (uint32_t)(count * (index + 1) / threads);
    if (begin < end) pool->body(pool->arg, begin, end, index);
}

/* Waits until the sequence is not `seen`; returns it. Whoever is woken without work watches again before it sleeps. */
static uint32_t await(cpu_pool *pool, uint32_t seen)
{
    for (;;) {
        uint64_t since = 0;
        for (uint32_t spins = 0;; spins++) {
            const uint32_t now = __atomic_load_n(&pool->sequence, __ATOMIC_ACQUIRE);
            if (now != seen) return now;
            if (spins % SPINS_PER_LOOK == 0) {
                const uint64_t at = os_time_ns();
                if (!since) since = at;
                if (at - since >= pool->spin_ns) break;
            }
            relax();
        }
        __atomic_add_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&pool->sequence, __ATOMIC_SEQ_CST) == seen) os_wait(&pool->sequence, seen, 0);
        __atomic_sub_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    }
}

static void worker_main(void *arg)
{
    const worker *w = arg;
    cpu_pool *pool = w->pool;
    for (uint32_t seen = 0;;) {
        seen = await(pool, seen);
        if (__atomic_load_n(&pool->is_stopping, __ATOMIC_ACQUIRE)) return;
        run_range(pool, w->index);
        if (__atomic_sub_fetch(&pool->pending, 1, __ATOMIC_SEQ_CST) == 0 &&
            __atomic_load_n(&pool->is_joining, __ATOMIC_SEQ_CST)) {
            os_wake_all(&pool->pending);
        }
    }
}

/* Starts every worker on what the job fields say. */
static void publish(cpu_pool *pool)
{
    __atomic_add_fetch(&pool->sequence, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST)) os_wake_all(&pool->sequence);
}

static void join(cpu_pool *pool)
{
    uint64_t since = 0;
    for (uint32_t spins = 0; __atomic_load_n(&pool->pending, __ATOMIC_ACQUIRE); spins++) {
        if (spins % SPINS_PER_LOOK == 0) {
            const uint64_t at = os_time_ns();
            if (!since) since = at;
            if (at - since >= JOIN_SPIN_NS) break;
        }
        relax();
    }
    if (!__atomic_load_n(&pool->pending, __ATOMIC_ACQUIRE)) return;
    __atomic_store_n(&pool->is_joining, 1, __ATOMIC_SEQ_CST);
    for (uint32_t left; (left = __atomic_load_n(&pool->pending, __ATOMIC_SEQ_CST)) != 0;)
        os_wait(&pool->pending, left, 0);
    __atomic_store_n(&pool->is_joining, 0, __ATOMIC_SEQ_CST);
}

static void run(const parallel *p, uint32_t count,
                void (*body)(void *arg, uint32_t begin, uint32_t end, uint32_t worker), void *arg)
{
    if (!count) return;
    cpu_pool *pool = (cpu_pool *)(uintptr_t)p;
    uint32_t expected = 0;
    if (count == 1 || p->threads == 1 ||
        !__atomic_compare_exchange_n(&pool->busy, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        body(arg, 0, count, 0);
        return;
    }
    pool->body = body;
    pool->arg = arg;
    pool->count = count;
    __atomic_store_n(&pool->pending, p->threads - 1, __ATOMIC_RELAXED);
    publish(pool);
    run_range(pool, 0);
    join(pool);
    __atomic_store_n(&pool->busy, 0, __ATOMIC_RELEASE);
}

void cpu_pool_wake(cpu_pool *pool)
{
    if (__atomic_load_n(&pool->sleepers, __ATOMIC_RELAXED)) os_wake_all(&pool->sequence);
}

sinter_status cpu_pool_create(env *e, uint32_t threads, uint64_t spin_ns, cpu_pool **out)
{
    *out = NULL;
    if (!threads) threads = os_cpu_count();
    if (threads > CPU_POOL_THREADS_MAX)
        return FAIL(e, INVALID_ARG, "%u threads were asked for; at most %d are possible", threads,
                    CPU_POOL_THREADS_MAX);
    cpu_pool *pool = mem_zalloc(e, sizeof *pool, LINE);
    if (!pool) return FAIL_MEMORY(e, "the thread pool");
    pool->p.run = run;
    pool->p.threads = threads;
    pool->spin_ns = spin_ns;
    pool->workers = mem_zalloc(e, size_mul(threads, sizeof *pool->workers), LINE);
    if (!pool->workers) {
        mem_free(e, pool, sizeof *pool, LINE);
        return FAIL_MEMORY(e, "the thread pool");
    }
    for (uint32_t i = 0; i < threads; i++) pool->workers[i] = (worker){ .pool = pool, .index = i };
    for (uint32_t i = 1; i < threads; i++) {
        const sinter_status s = os_thread_start(e, worker_main, &pool->workers[i], &pool->workers[i].thread);
        if (s != SINTER_OK) {
            cpu_pool_destroy(e, pool);
            return NOTE(e, s, "starting worker %u of %u", i, threads);
        }
    }
    *out = pool;
    return SINTER_OK;
}

void cpu_pool_destroy(env *e, cpu_pool *pool)
{
    if (!pool) return;
    __atomic_store_n(&pool->is_stopping, 1, __ATOMIC_RELEASE);
    publish(pool);
    for (uint32_t i = 1; i < pool->p.threads; i++)
        if (pool->workers[i].thread) os_thread_join(e, pool->workers[i].thread);
    mem_free(e, pool->workers, size_mul(pool->p.threads, sizeof *pool->workers), LINE);
    mem_free(e, pool, sizeof *pool, LINE);
}

const parallel *cpu_pool_parallel(const cpu_pool *pool)
{
    return &pool->p;
}

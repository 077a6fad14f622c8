/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - the pool: jobs in slots, a range of tiles for each worker, stealing at the tail, futexes for sleepers.
 *
 * A caller fills a free slot, opens the slot's gate and raises `sequence`. Workers watch `sequence`, enter the gates
 * that are open, and count themselves in and out there. The caller works too. Once no range has a tile left it closes
 * the gate and waits for those inside. The fields of a job are plain: they are written before the gate opens and read
 * after it was entered, and written again only after the last worker has left.
 *
 * A range is one word, begin and end, changed by compare-and-swap alone. Its owner takes from the front, thieves from
 * the back. Sleeping uses sequentially consistent operations on both sides (announce, then look again; publish, then
 * look for sleepers), so that no wake is lost. */
#include "cpu/threads.h"

#include "base/os.h"

enum { LINE = 64, SPINS_PER_LOOK = 64, JOBS = 16, JOIN_SPIN_NS = 200000, RUN_SPIN_NS = 20000000 };
enum { NEIGHBOURS = 8, STAND_DOWN_NS = 2000000 };

/* The gate: open or not, workers wanted besides the caller, workers inside. */
enum { GATE_INSIDE = 0xffff, GATE_WANTED_SHIFT = 16 };
#define GATE_OPEN 0x80000000u

typedef struct tiles {
    _Alignas(LINE) uint64_t at;
} tiles; /* begin in the high half, end in the low one */

typedef struct job {
    _Alignas(LINE) uint32_t is_taken;
    void (*body)(void *arg, uint32_t begin, uint32_t end, uint32_t worker);
    void *arg;
    uint32_t parts; /* ranges in use */
    tiles *range;   /* [threads] */
    _Alignas(LINE) uint32_t gate;
    uint32_t is_joining;
} job;

typedef struct worker {
    cpu_pool *pool;
    uint32_t index, cpu; /* cpu: UINT32_MAX: any */
    os_thread *thread;
} worker;

struct cpu_pool {
    parallel p; /* first: run is given a pointer to it */
    cpu_pool_options options;
    worker *workers; /* [p.threads]; 0 is the caller's and has no thread */
    tiles *ranges;
    uint32_t process;
    cpu_pool *next; /* of the shared ones */
    uint32_t takers;
    job jobs[JOBS];
    _Alignas(LINE) uint32_t sequence;
    uint32_t is_stopping;
    uint32_t newest; /* the slot that was filled last: a hint */
    _Alignas(LINE) uint32_t runs;
    uint32_t sleepers;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- ranges ---- */

static uint64_t range_of(uint64_t begin, uint64_t end)
{
    return begin << 32 | end;
}

/* Most of what is left, so that a body is called a few times for a range of any length, and a thief finds something
 * where this worker is slow. */
static uint32_t portion(uint32_t left)
{
    return left < 8 ? (left + 1) / 2 : left - left / 4;
}

static bool take(tiles *own, uint32_t *begin, uint32_t *end)
{
    uint64_t old = __atomic_load_n(&own->at, __ATOMIC_RELAXED);
    do {
        *begin = (uint32_t)(old >> 32);
        if (*begin >= (uint32_t)old) return false;
        *end = *begin + portion((uint32_t)old - *begin);
    } while (!__atomic_compare_exchange_n(&own->at, &old, range_of(*end, (uint32_t)old), false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return true;
}

/* Moves the back half of another's range to the own one, which is empty. */
static bool steal_from(tiles *from, tiles *own)
{
    uint64_t old = __atomic_load_n(&from->at, __ATOMIC_RELAXED);
    uint32_t end = 0, cut = 0;
    do {
        const uint32_t begin = (uint32_t)(old >> 32);
        end = (uint32_t)old;
        if (begin >= end) return false;
        cut = end - (end - begin + 1) / 2;
    } while (!__atomic_compare_exchange_n(&from->at, &old, range_of(old >> 32, cut), false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    __atomic_store_n(&own->at, range_of(cut, end), __ATOMIC_RELAXED);
    return true;
}

/* A worker looks at a few neighbours: many thieves at every range would slow the owners down. The caller looks at all,
 * for some may have no worker. */
static bool steal(const job *j, uint32_t index)
{
    const uint32_t looks = index && j->parts - 1 > NEIGHBOURS ? NEIGHBOURS : j->parts - 1;
    for (uint32_t i = 1; i <= looks; i++)
        if (steal_from(&j->range[(index + i) % j->parts], &j->range[index])) return true;
    return false;
}

static void work(const job *j, uint32_t index)
{
    uint32_t begin = 0, end = 0;
    do {
        while (take(&j->range[index], &begin, &end)) j->body(j->arg, begin, end, index);
    } while (steal(j, index));
}

/* ---- workers ---- */

/* May this worker use a core? Callers have cores of their own. */
static bool is_wanted(const cpu_pool *pool, uint32_t index, uint32_t runs)
{
    return runs < 2 || index + runs <= pool->p.threads;
}

static void leave(job *j)
{
    const uint32_t gate = __atomic_sub_fetch(&j->gate, 1, __ATOMIC_SEQ_CST);
    if (!(gate & GATE_INSIDE) && !(gate & GATE_OPEN) && __atomic_load_n(&j->is_joining, __ATOMIC_SEQ_CST))
        os_wake_all(&j->gate);
}

static void help(cpu_pool *pool, uint32_t index)
{
    const uint32_t first = __atomic_load_n(&pool->newest, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < JOBS; i++) {
        job *j = &pool->jobs[(first + i) % JOBS];
        const uint32_t gate = __atomic_load_n(&j->gate, __ATOMIC_ACQUIRE);
        if (!(gate & GATE_OPEN) || index > ((gate & ~GATE_OPEN) >> GATE_WANTED_SHIFT)) continue;
        /* The job may be another one by now: what it wants is asked again. */
        const uint32_t entered = __atomic_fetch_add(&j->gate, 1, __ATOMIC_SEQ_CST);
        if (entered & GATE_OPEN && index < j->parts) work(j, index);
        leave(j);
    }
}

/* Waits until the sequence is not `seen`; returns it. A worker that is woken without work watches again before it
 * sleeps. */
static uint32_t await(cpu_pool *pool, uint32_t index, uint32_t seen)
{
    for (;;) {
        uint64_t since = 0;
        uint32_t runs = 0;
        for (uint32_t spins = 0;; spins++) {
            const uint32_t now = __atomic_load_n(&pool->sequence, __ATOMIC_ACQUIRE);
            runs = __atomic_load_n(&pool->runs, __ATOMIC_RELAXED);
            if (!is_wanted(pool, index, runs) && !__atomic_load_n(&pool->is_stopping, __ATOMIC_RELAXED)) break;
            if (now != seen) return now;
            if (spins % SPINS_PER_LOOK == 0) {
                const uint64_t at = os_time_ns();
                if (!since) since = at;
                if (at - since >= (runs ? RUN_SPIN_NS : pool->options.spin_ns)) break;
            }
            relax();
        }
        if (!is_wanted(pool, index, runs)) {
            /* No caller wakes this worker, which would cost a call of the system in every step. */
            os_wait(&pool->runs, runs, STAND_DOWN_NS);
            continue;
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
    os_thread_pin(w->cpu);
    for (uint32_t seen = 0;;) {
        seen = await(pool, w->index, seen);
        if (__atomic_load_n(&pool->is_stopping, __ATOMIC_ACQUIRE)) return;
        help(pool, w->index);
    }
}

/* ---- callers ---- */

/* Has every worker look at the jobs. */
static void publish(cpu_pool *pool)
{
    __atomic_add_fetch(&pool->sequence, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST)) os_wake_all(&pool->sequence);
}

/* Waits for the workers inside a gate that is closed. They do their last tiles. */
static void join(job *j)
{
    uint64_t since = 0;
    for (uint32_t spins = 0; __atomic_load_n(&j->gate, __ATOMIC_ACQUIRE) & GATE_INSIDE; spins++) {
        if (spins % SPINS_PER_LOOK == 0) {
            const uint64_t at = os_time_ns();
            if (!since) since = at;
            if (at - since >= JOIN_SPIN_NS) break;
        }
        relax();
    }
    if (!(__atomic_load_n(&j->gate, __ATOMIC_ACQUIRE) & GATE_INSIDE)) return;
    __atomic_store_n(&j->is_joining, 1, __ATOMIC_SEQ_CST);
    for (uint32_t gate; (gate = __atomic_load_n(&j->gate, __ATOMIC_SEQ_CST)) & GATE_INSIDE;) os_wait(&j->gate, gate, 0);
    __atomic_store_n(&j->is_joining, 0, __ATOMIC_SEQ_CST);
}

static job *job_take(cpu_pool *pool)
{
    for (uint32_t i = 0; i < JOBS; i++) {
        uint32_t expected = 0;
        job *j = &pool->jobs[i];
        if (!__atomic_load_n(&j->is_taken, __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(&j->is_taken, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return j;
    }
    return NULL;
}

static void run(const parallel *p, uint32_t count,
                void (*body)(void *arg, uint32_t begin, uint32_t end, uint32_t worker), void *arg)
{
    if (!count) return;
    cpu_pool *pool = (cpu_pool *)(uintptr_t)p;
    const uint32_t runs = __atomic_load_n(&pool->runs, __ATOMIC_RELAXED);
    const bool is_alone = count == 1 || p->threads == 1 || !is_wanted(pool, 1, runs);
    job *j = is_alone ? NULL : job_take(pool);
    if (!j) {
        body(arg, 0, count, 0);
        return;
    }
    const uint32_t helpers = runs < 2 ? p->threads - 1 : p->threads - runs;
    const uint32_t parts = count <= helpers ? count : helpers + 1;
    j->body = body;
    j->arg = arg;
    j->parts = parts;
    for (uint32_t i = 0; i < parts; i++)
        __atomic_store_n(&j->range[i].at, range_of((uint64_t)count * i / parts, (uint64_t)count * (i + 1) / parts),
                         __ATOMIC_RELAXED);
    /* Added, not stored: a worker that found the gate closed may still be on its way out. */
    const uint32_t open = GATE_OPEN | (parts - 1) << GATE_WANTED_SHIFT;
    __atomic_add_fetch(&j->gate, open, __ATOMIC_SEQ_CST);
    __atomic_store_n(&pool->newest, (uint32_t)(j - pool->jobs), __ATOMIC_RELAXED);
    publish(pool);
    work(j, 0);
    __atomic_sub_fetch(&j->gate, open, __ATOMIC_SEQ_CST);
    join(j);
    __atomic_store_n(&j->is_taken, 0, __ATOMIC_RELEASE);
}

const parallel *cpu_pool_begin(cpu_pool *pool)
{
    __atomic_add_fetch(&pool->runs, 1, __ATOMIC_SEQ_CST);
    if (pool->p.threads == 1 || pool->process != os_process_id()) return NULL;
    if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST)) os_wake_all(&pool->sequence);
    return &pool->p;
}

void cpu_pool_end(cpu_pool *pool)
{
    __atomic_sub_fetch(&pool->runs, 1, __ATOMIC_SEQ_CST);
}

/* ---- making ---- */

/* Where workers are pinned: the caller is thought to be on the first core. */
static void choose_cpus(env *e, cpu_pool *pool)
{
    const uint32_t most = pool->p.threads;
    uint32_t *cpu = mem_zalloc(e, size_mul(most, sizeof *cpu), _Alignof(uint32_t));
    const unsigned count = cpu ? os_core_list(cpu, most) : 0, cores = count < most ? count : most;
    for (uint32_t i = 0; cores && i < most; i++) pool->workers[i].cpu = cpu[i % cores];
    if (cpu) mem_free(e, cpu, size_mul(most, sizeof *cpu), _Alignof(uint32_t));
}

sinter_status cpu_pool_create(env *e, const cpu_pool_options *o, cpu_pool **out)
{
    *out = NULL;
    const uint32_t threads = o->threads ? o->threads : os_cpu_count();
    if (threads > CPU_POOL_THREADS_MAX)
        return FAIL(e, INVALID_ARG, "%u threads were asked for; at most %d are possible", threads,
                    CPU_POOL_THREADS_MAX);
    cpu_pool *pool = mem_zalloc(e, sizeof *pool, LINE);
    if (!pool) return FAIL_MEMORY(e, "the thread pool");
    pool->p.run = run;
    pool->p.threads = threads;
    pool->options = *o;
    pool->process = os_process_id();
    pool->workers = mem_zalloc(e, size_mul(threads, sizeof *pool->workers), LINE);
    pool->ranges = mem_zalloc(e, size_mul((size_t)threads * JOBS, sizeof *pool->ranges), LINE);
    if (!pool->workers || !pool->ranges) {
        cpu_pool_destroy(e, pool);
        return FAIL_MEMORY(e, "the thread pool");
    }
    for (uint32_t i = 0; i < JOBS; i++) pool->jobs[i].range = pool->ranges + (size_t)i * threads;
    for (uint32_t i = 0; i < threads; i++) pool->workers[i] = (worker){ .pool = pool, .index = i, .cpu = UINT32_MAX };
    if (o->is_pinned) choose_cpus(e, pool);
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
    const bool has_workers = pool->workers && pool->process == os_process_id();
    for (uint32_t i = 1; has_workers && i < pool->p.threads; i++)
        if (pool->workers[i].thread) os_thread_join(e, pool->workers[i].thread);
    mem_free(e, pool->ranges, size_mul((size_t)pool->p.threads * JOBS, sizeof *pool->ranges), LINE);
    mem_free(e, pool->workers, size_mul(pool->p.threads, sizeof *pool->workers), LINE);
    mem_free(e, pool, sizeof *pool, LINE);
}

uint32_t cpu_pool_threads(const cpu_pool *pool)
{
    return pool->p.threads;
}

const parallel *cpu_pool_parallel(const cpu_pool *pool)
{
    return &pool->p;
}

/* ---- pools that devices share ---- */

/* The one mutable global of this folder: two engines of a process must not keep two pools that fight for the cores. The
 * lock holds the id of the process that took it: a fork while another thread held it does not block the child. */
static uint32_t shared_lock;
static cpu_pool *shared_first;

static void shared_enter(void)
{
    const uint32_t mine = os_process_id();
    for (uint32_t held = 0;
         !__atomic_compare_exchange_n(&shared_lock, &held, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);) {
        if (held == mine) held = 0;
        if (!held) os_thread_yield();
    }
}

static void shared_leave(void)
{
    __atomic_store_n(&shared_lock, 0, __ATOMIC_RELEASE);
}

sinter_status cpu_pool_take(env *e, const cpu_pool_options *o, cpu_pool **out)
{
    cpu_pool_options wanted = *o;
    if (!wanted.threads) wanted.threads = os_cpu_count();
    sinter_status s = SINTER_OK;
    shared_enter();
    cpu_pool *pool = shared_first;
    while (pool && (pool->process != os_process_id() || pool->p.threads != wanted.threads ||
                    pool->options.spin_ns != wanted.spin_ns || pool->options.is_pinned != wanted.is_pinned))
        pool = pool->next;
    if (!pool) {
        env own;
        env_init(&own, NULL, e->error);
        s = cpu_pool_create(&own, &wanted, &pool);
        if (s == SINTER_OK) {
            pool->next = shared_first;
            shared_first = pool;
        }
    }
    if (s == SINTER_OK) pool->takers++;
    shared_leave();
    *out = pool;
    return s;
}

void cpu_pool_give(cpu_pool *pool)
{
    if (!pool) return;
    shared_enter();
    const bool is_last = --pool->takers == 0;
    cpu_pool **at = &shared_first;
    while (is_last && *at && *at != pool) at = &(*at)->next;
    if (is_last && *at) *at = pool->next;
    shared_leave();
    env own;
    env_init(&own, NULL, NULL);
    if (is_last) cpu_pool_destroy(&own, pool);
}

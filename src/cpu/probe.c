/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - the rates of the machine with the threads of a device. The best of a few times: what is slower was
 * disturbed. */
#include "cpu/probe.h"

#include "base/os.h"
#include "cpu/cpu_device.h"
#include "cpu/level.h"

enum { REPEATS = 5, TURNS = 1 << 18, PIECE = 1 << 16, LEAST_TOUCHED = 1 << 20, MOST_TOUCHED = 1 << 28 };

typedef struct probe {
    const probe_set *set;
    const float *at;
    size_t piece, passes; /* floats that a thread reads in one go, and how often */
    float sink;           /* what keeps the results alive */
} probe;

static void multiply(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    probe *p = arg;
    (void)worker;
    for (uint32_t i = begin; i < end; i++) {
        float sum = p->set->multiply(TURNS / 8);
        __atomic_store(&p->sink, &sum, __ATOMIC_RELAXED);
    }
}

static void read(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    probe *p = arg;
    (void)worker;
    for (uint32_t i = begin; i < end; i++) {
        for (size_t pass = 0; pass < p->passes; pass++) {
            float sum = p->set->read(p->at + i * p->piece, p->piece);
            __atomic_store(&p->sink, &sum, __ATOMIC_RELAXED);
        }
    }
}

/* Seconds of the best of some repeats, after one that warms up. */
static double best_of(const parallel *pool, uint32_t count, void (*body)(void *, uint32_t, uint32_t, uint32_t),
                      probe *p)
{
    double best = 0;
    for (uint32_t i = 0; i <= REPEATS; i++) {
        const uint64_t start = os_time_ns();
        if (pool) pool->run(pool, count, body, p);
        else body(p, 0, count, 0);
        const double took = 1e-9 * (double)(os_time_ns() - start);
        if (i && (best <= 0 || took < best)) best = took;
    }
    return best > 0 ? best : 1e-9;
}

sinter_status cpu_rates(env *e, const cpu_device *d, size_t touched, device_rates *out)
{
    const uint32_t threads = cpu_pool_threads(d->pool);
    probe p = { .set = level_of(d->isa.level)->probe };
    touched = touched < LEAST_TOUCHED ? LEAST_TOUCHED : touched > MOST_TOUCHED ? MOST_TOUCHED : touched;
    const size_t unit = PIECE / sizeof(float) / p.set->unit * p.set->unit, unit_size = unit * sizeof(float);
    const uint32_t pieces = (uint32_t)(touched / unit_size) + threads;
    const size_t size = size_mul(pieces, unit_size);
    float *block = mem_alloc(e, size, 64);
    if (!block) return FAIL_MEMORY(e, "a measurement of the machine");
    os_memory_hint_large(block, size);
    for (size_t i = 0; i < size / sizeof(float); i++) block[i] = 1;
    p.at = block;

    const parallel *pool = cpu_pool_begin(d->pool);
    const uint32_t tiles = 8 * threads;
    out->f32 = 2.0 * (TURNS / 8) * p.set->width * tiles / best_of(pool, tiles, multiply, &p);
    out->f16 = 2 * out->f32; /* what instructions for dot products give */
    out->int8 = 4 * out->f32;
    p.piece = unit;
    p.passes = 1;
    out->memory = (double)size / best_of(pool, pieces, read, &p);
    /* Half of L2 a thread, again and again. */
    p.passes = 64;
    const size_t near = (size_t)d->target.cache_l2 / 2 / unit_size, shared = pieces / threads;
    p.piece = unit * (near < 1 ? 1 : near < shared ? near : shared);
    out->cache = (double)(p.piece * sizeof(float)) * (double)p.passes * threads / best_of(pool, threads, read, &p);
    if (out->cache < out->memory) out->cache = out->memory;
    cpu_pool_end(d->pool);
    mem_free(e, block, size, 64);
    return SINTER_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - the pool of workers that CPU devices share.
 *
 * Each worker has a range of the tiles, the same for the same count, so it touches the same rows every time. A worker
 * that has done its range takes half of what another has left. The caller is worker 0. It never waits for a worker that
 * has not begun: it takes that worker's tiles too. So sleeping workers, several callers at once, and bodies that hand
 * out work themselves cost time at most. */
#ifndef CPU_THREADS_H
#define CPU_THREADS_H

#include "backend/kernel.h"

enum { CPU_POOL_THREADS_MAX = 1024 };

typedef struct cpu_pool cpu_pool;

typedef struct cpu_pool_options {
    uint32_t threads;                   /* with the caller; 0: one a usable core */
    uint64_t spin_ns;                   /* how long an idle worker watches after a run before it sleeps */
    bool     is_pinned;                 /* each worker stays on a core of its own */
} cpu_pool_options;

sinter_status cpu_pool_create(env *e, const cpu_pool_options *o, cpu_pool **out);
void          cpu_pool_destroy(env *e, cpu_pool *pool);                  /* NULL too */

/* The pool of this process with these options, made where there is none. Whoever takes a pool gives it back; the last
 * one destroys it. Memory of such a pool comes from malloc, since it may outlive the object of the first taker. */
sinter_status cpu_pool_take(env *e, const cpu_pool_options *o, cpu_pool **out);
void          cpu_pool_give(cpu_pool *pool);                             /* NULL too */

uint32_t        cpu_pool_threads(const cpu_pool *pool);
/* How kernels use it; valid as long as the pool. Any number of threads may call run at once, bodies too. */
const parallel *cpu_pool_parallel(const cpu_pool *pool);
/* Brackets of a run: workers are woken at its begin and watch without sleeping until its end. With as many runs at the
 * same time as there are threads, workers sleep and leave the cores to the callers. NULL: the caller works alone, for
 * the process was forked and the workers are its parent's; cpu_pool_end is called either way. */
const parallel *cpu_pool_begin(cpu_pool *pool);
void            cpu_pool_end(cpu_pool *pool);

#endif

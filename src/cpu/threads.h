/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - the pool of workers that belongs to a CPU device.
 *
 * Persistent workers wait on one sequence number: one store starts them, one counter joins them. They spin for a
 * bounded time after each run and then sleep. Ranges are static, so the same worker touches the same rows every time. A
 * run that finds the pool busy goes on alone, in the calling thread. */
#ifndef CPU_THREADS_H
#define CPU_THREADS_H

#include "backend/kernel.h"

enum { CPU_POOL_SPIN_NS = 100000, CPU_POOL_THREADS_MAX = 1024 };

typedef struct cpu_pool cpu_pool;

/* threads counts the caller, who is worker 0; 0: one a usable CPU. spin_ns: how long an idle worker watches before it
 * sleeps. */
sinter_status cpu_pool_create(env *e, uint32_t threads, uint64_t spin_ns, cpu_pool **out);
void          cpu_pool_destroy(env *e, cpu_pool *pool);                  /* NULL too */
/* How kernels use it; valid as long as the pool. Any number of threads may call run at once. */
const parallel *cpu_pool_parallel(const cpu_pool *pool);
/* Wakes sleeping workers ahead of a run, so that the first parallel step need not wait for them. */
void          cpu_pool_wake(cpu_pool *pool);

#endif

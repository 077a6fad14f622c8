/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h - a lock of one word: free, taken, or taken with somebody asleep before it. */
#ifndef CUDA_LOCK_H
#define CUDA_LOCK_H

#include "base/os.h"

typedef struct cuda_lock { uint32_t state; } cuda_lock;
enum { LOCK_FREE, LOCK_TAKEN, LOCK_CONTENDED };

static inline void cuda_lock_take(cuda_lock *l)
{
    uint32_t seen = LOCK_FREE;
    if (__atomic_compare_exchange_n(&l->state, &seen, LOCK_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&l->state, LOCK_CONTENDED, __ATOMIC_ACQUIRE) != LOCK_FREE)
        os_wait(&l->state, LOCK_CONTENDED, 0);
}

static inline void cuda_lock_give(cuda_lock *l)
{
    if (__atomic_exchange_n(&l->state, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_CONTENDED) os_wake_all(&l->state);
}

#endif

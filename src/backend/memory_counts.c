/* SPDX-License-Identifier: Apache-2.0 */
/* memory_counts.c - how much of a device's memory is in use: see backend.h. */
#include "backend/backend.h"

void memory_count_take(memory_counts *c, size_t size)
{
    const uint64_t live = __atomic_add_fetch(&c->live, size, __ATOMIC_RELAXED);
    uint64_t peak = __atomic_load_n(&c->peak, __ATOMIC_RELAXED);
    while (live > peak && !__atomic_compare_exchange_n(&c->peak, &peak, live, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    (void)__atomic_add_fetch(&c->total, size, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&c->allocations, 1, __ATOMIC_RELAXED);
}

void memory_count_give(memory_counts *c, size_t size)
{
    (void)__atomic_sub_fetch(&c->live, size, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&c->frees, 1, __ATOMIC_RELAXED);
}

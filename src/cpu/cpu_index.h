/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_index.h - indices that are data: reading them, and reporting one that lies outside its axis. */
#ifndef CPU_INDEX_H
#define CPU_INDEX_H

#include "backend/kernel.h"
#include "core/dtype.h"

static inline int64_t index_load(sinter_dtype type, const void *data, int64_t at)
{
    if (type == SINTER_DTYPE_I64) return ((const int64_t *)data)[at];
    if (type == SINTER_DTYPE_I32) return ((const int32_t *)data)[at];
    return dtype_load_i64(type, data, at);
}

/* The first fault of a run stays; workers may race for it. index: the row-major position among all indices. */
static inline void index_fault(const kernel_run *k, int64_t index, int64_t value, int64_t limit)
{
    uint32_t none = 0;
    if (!k->fault ||
        !__atomic_compare_exchange_n(&k->fault->is_set, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    k->fault->index = index;
    k->fault->value = value;
    k->fault->limit = limit;
}

/* Index number `at`, negative ones counted from the end. Outside [0, limit): false, and a fault. */
static inline bool index_pick(const kernel_run *k, sinter_dtype type, const void *data, int64_t at, int64_t limit,
                              int64_t *out)
{
    const int64_t value = index_load(type, data, at);
    *out = value < 0 ? value + limit : value;
    if (*out >= 0 && *out < limit) return true;
    index_fault(k, at, value, limit);
    return false;
}

#endif

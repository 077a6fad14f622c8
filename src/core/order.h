/* SPDX-License-Identifier: Apache-2.0 */
/* order.h - which works of a list have to wait for which earlier ones, found from the bytes that they touch.
 *
 * Two works conflict where one writes a byte that the other reads or writes. Memory that is used again for something
 * else, and values that lie in one storage, need no rule of their own. */
#ifndef CORE_ORDER_H
#define CORE_ORDER_H

#include "base/arena.h"
#include "core/view.h"

typedef struct order_touch {
    const view *v;                      /* with its address; NULL: only the bytes are known */
    uintptr_t   begin, end;             /* bytes; of a view: view_span */
    bool        is_written;
} order_touch;

typedef struct order_work {
    const order_touch *touch;
    uint32_t           count;
    bool               keeps_place;     /* waits for all before it, and all after it wait */
} order_work;

typedef struct order_edge { uint32_t from, to; } order_edge;
typedef VEC(order_edge) order_edges;

/* Memory grows with the square of the works: lists longer than this are for the caller to run one after the other. */
enum { ORDER_WORKS_MAX = 4096 };

/* Works may touch thousands of values, and a file says how many: so many pairs of touches are looked at in all. What is
 * not looked at keeps its place among the others. */
enum { ORDER_LOOKS_MAX = 1 << 26 };

/* Appends the fewest edges from which every order that is needed follows, by the work that they lead to, to edges whose
 * array is in `a`. Errors: NO_MEMORY, INTERNAL (more works than ORDER_WORKS_MAX). */
sinter_status order_find(env *e, arena *a, const order_work *work, uint32_t count, order_edges *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - works are looked at in their order, each against those before it, the last first: what is known to have
 * ended by then, because something that was found before waits for it, is not looked at. So the edges are the fewest
 * that do, and a list that is nearly a chain costs little more than its length. */
#include "core/order.h"

#include "core/dtype.h"

/* Of elements smaller than a byte only the bytes between the first and the last count. */
static bool has_rows(const view *v)
{
    return v && sinter_dtype_bits(v->dtype) >= 8;
}

static bool may_meet(const order_touch *x, const order_touch *y)
{
    if (!x->is_written && !y->is_written) return false;
    if (x->end <= y->begin || y->end <= x->begin) return false;
    if (!has_rows(x->v) || !has_rows(y->v)) return true;
    return view_overlaps(x->v, y->v);
}

/* looks: how many touches may still be compared with touches. Beyond that works are taken to conflict, which is always
 * right, only slower. */
static bool conflicts(const order_work *a, const order_work *b, uint64_t *looks)
{
    const uint64_t pairs = (uint64_t)a->count * b->count;
    if (a->keeps_place || b->keeps_place || pairs > *looks) return true;
    *looks -= pairs;
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < b->count; k++)
            if (may_meet(&a->touch[i], &b->touch[k])) return true;
    return false;
}

static sinter_status find(env *e, arena *a, const order_work *work, uint32_t count, order_edges *out, uint64_t *ended)
{
    const uint32_t words = (count + 63) / 64;
    uint64_t looks = ORDER_LOOKS_MAX;
    for (uint32_t i = 1; i < count; i++) {
        uint64_t *const mine = ended + (size_t)i * words; /* works that have ended when this one may start */
        for (uint32_t w = (i - 1) / 64 + 1; w-- > 0;) {
            const uint32_t inside = i - w * 64;
            uint64_t left = ~mine[w] & (inside >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << inside) - 1);
            while (left) {
                const uint32_t bit = 63 - (uint32_t)__builtin_clzll(left), k = w * 64 + bit;
                left &= ~((uint64_t)1 << bit);
                if (!conflicts(&work[k], &work[i], &looks)) continue;
                order_edge *edge = VEC_PUSH(a, out);
                if (!edge) return FAIL_MEMORY(e, "an order");
                *edge = (order_edge){ .from = k, .to = i };
                const uint64_t *const before = ended + (size_t)k * words;
                for (uint32_t j = 0; j <= w; j++) mine[j] |= before[j];
                mine[w] |= (uint64_t)1 << bit;
                left &= ~mine[w];
            }
        }
    }
    return SINTER_OK;
}

sinter_status order_find(env *e, arena *a, const order_work *work, uint32_t count, order_edges *out)
{
    if (count > ORDER_WORKS_MAX) return FAIL(e, INTERNAL, "an order of %u works, at most %u", count, ORDER_WORKS_MAX);
    arena scratch;
    arena_init(&scratch, e);
    uint64_t *ended = ARENA_NEW(&scratch, uint64_t, (size_t)count * ((count + 63) / 64));
    const sinter_status s = count && !ended ? FAIL_MEMORY(e, "an order") : find(e, a, work, count, out, ended);
    arena_deinit(&scratch);
    return s;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c - the shape program as numbers: all of it where a shape is set, and where a step binds a late symbol, what
 * depends on the symbol.
 *
 * Operands come before their users, so expressions that wait for evaluation are taken in the order of their ids. */
#include "run/context.h"

#include <string.h>

/* Lists by key, one after the other: counts at first, then where each list begins. */
static void counts_to_ends(uint32_t *first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) first[i + 1] += first[i];
}

static uint32_t operands(const dim_node *n, uint32_t *of)
{
    if (n->kind < DIM_ADD) return 0;
    of[0] = n->a;
    of[1] = n->b;
    return n->a == n->b ? 1 : 2;
}

sinter_status context_make_users(context *c)
{
    const engine *g = c->g;
    run_users *u = &c->users;
    bool has_late = false;
    for (uint32_t i = 0; i < g->symbol_count && !has_late; i++) has_late = g->symbol[i].is_late;
    if (!has_late) return SINTER_OK;
    uint32_t of[2];
    u->first = ARENA_NEW(&c->a, uint32_t, (size_t)g->dim_count + 1);
    u->list = ARENA_NEW(&c->a, uint32_t, 2 * (size_t)g->dim_count);
    u->symbol_first = ARENA_NEW(&c->a, uint32_t, (size_t)g->symbol_count + 1);
    u->symbol_list = ARENA_NEW(&c->a, uint32_t, g->dim_count);
    u->heap = ARENA_NEW(&c->a, uint32_t, g->dim_count);
    u->is_waiting = ARENA_NEW(&c->a, uint8_t, g->dim_count);
    if (c->a.failed) return FAIL_MEMORY(&c->e, "a context");
    for (uint32_t i = 1; i < g->dim_count; i++) {
        for (uint32_t k = operands(&g->dim[i], of); k-- > 0;) u->first[of[k]]++;
        if (g->dim[i].kind == DIM_SYMBOL) u->symbol_first[g->dim[i].value]++;
    }
    counts_to_ends(u->first, g->dim_count);
    counts_to_ends(u->symbol_first, g->symbol_count);
    for (uint32_t i = g->dim_count; i-- > 1;) { /* from the ends to the beginnings */
        for (uint32_t k = operands(&g->dim[i], of); k-- > 0;) u->list[--u->first[of[k]]] = i;
        if (g->dim[i].kind == DIM_SYMBOL) u->symbol_list[--u->symbol_first[g->dim[i].value]] = i;
    }
    return SINTER_OK;
}

static void wait_add(run_users *u, uint32_t id)
{
    if (u->is_waiting[id]) return;
    u->is_waiting[id] = 1;
    uint32_t i = u->waiting++;
    for (; i && u->heap[(i - 1) / 2] > id; i = (i - 1) / 2) u->heap[i] = u->heap[(i - 1) / 2];
    u->heap[i] = id;
}

static uint32_t wait_take(run_users *u)
{
    const uint32_t top = u->heap[0], last = u->heap[--u->waiting];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < u->waiting; i = child) {
        if (child + 1 < u->waiting && u->heap[child + 1] < u->heap[child]) child++;
        if (u->heap[child] >= last) break;
        u->heap[i] = u->heap[child];
    }
    u->heap[i] = last;
    u->is_waiting[top] = 0;
    return top;
}

void context_symbol_set(context *c, uint32_t symbol, int64_t value)
{
    run_users *u = &c->users;
    c->now->symbol[symbol] = value;
    for (uint32_t i = u->symbol_first[symbol]; i < u->symbol_first[symbol + 1]; i++) wait_add(u, u->symbol_list[i]);
}

void context_evaluate(context *c)
{
    run_users *u = &c->users;
    int64_t *const dim_at = c->now->dim;
    while (u->waiting) {
        const uint32_t id = wait_take(u);
        const int64_t before = dim_at[id];
        (void)dim_eval_at(c->g->dim, id, c->now->symbol, c->g->symbol_count, dim_at);
        if (dim_at[id] == before) continue;
        for (uint32_t i = u->first[id]; i < u->first[id + 1]; i++) wait_add(u, u->list[i]);
    }
}

void context_evaluate_all(context *c)
{
    while (c->users.waiting) (void)wait_take(&c->users); /* left by a run that failed */
    (void)dim_eval_all(c->g->dim, c->g->dim_count, c->now->symbol, c->g->symbol_count, c->now->dim);
}

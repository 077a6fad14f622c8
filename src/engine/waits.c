/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - which steps of a program have to wait for which, as `inspect` shows it: at the opt shapes, by the bytes of
 * each storage. A device finds the same from addresses, for the shape that it runs. */
#include "core/order.h"
#include "core/storage.h"
#include "engine/engine.h"

#include <string.h>

typedef struct waits {
    env *e;
    const engine *g;
    const engine_profile *p;
    arena *a;
    int64_t *dim; /* every expression at opt */
    order_work *work;
} waits;

enum { ROOM = 44 }; /* bits: storages that are not in the slab lie so far apart */

/* Where storage `s` would begin; offsets in the slab are taken as they are. */
static uintptr_t begin_of(const engine_storage *s, uint32_t id)
{
    return s->kind == STORAGE_SLAB ? (uintptr_t)s->at : (uintptr_t)(id + 1) << ROOM;
}

/* False where the value is not known, or reaches outside its storage, at opt. */
static bool view_of(const waits *x, const engine_value *v, uint64_t bound, uintptr_t base, view *out)
{
    const int64_t bits = sinter_dtype_bits((sinter_dtype)v->dtype), offset = x->dim[v->offset];
    int64_t low = offset, high = offset, end;
    *out = (view){ .dtype = (sinter_dtype)v->dtype, .rank = v->rank };
    if (bits < 8) return false;
    for (uint32_t i = 0; i < v->rank; i++) {
        const int64_t d = out->dim[i] = x->dim[v->dim[i]];
        const int64_t stride = out->stride[i] = d > 1 ? x->dim[v->stride[i]] : 0;
        int64_t span;
        if (d < 0 || stride == INT64_MIN || !i64_mul(d ? d - 1 : 0, stride, &span)) return false;
        if (!i64_add(span < 0 ? low : high, span, span < 0 ? &low : &high)) return false;
    }
    if (offset < 0 || low < 0 || !i64_add(high, 1, &end) || !i64_mul(end, bits / 8, &end) || (uint64_t)end > bound)
        return false;
    out->data = (void *)(base + (uintptr_t)(offset * (bits / 8)));
    return true;
}

static sinter_status add_touch(waits *x, uint32_t value, bool is_written, order_touch *to, uint32_t *count)
{
    const engine_value *v = &x->g->value[x->p->value_first + value];
    const engine_storage *s = &x->g->storage[x->p->storage_first + v->storage];
    const uint64_t most = ((uint64_t)1 << ROOM) - 1, bound = s->bound < most ? s->bound : most;
    const uintptr_t base = begin_of(s, v->storage);
    view *at = ARENA_NEW(x->a, view, 1);
    if (!at) return FAIL_MEMORY(x->e, "the order of steps");
    order_touch t = { .v = at, .begin = base, .end = base + (uintptr_t)bound, .is_written = is_written };
    if (!view_of(x, v, bound, base, at)) t.v = NULL;
    else if (!view_span(at, &t.begin, &t.end)) return SINTER_OK;
    to[(*count)++] = t;
    return SINTER_OK;
}

static sinter_status fill(waits *x, uint32_t id, order_work *w)
{
    const engine_step *s = &x->g->step[id];
    const engine_code *code = &x->g->code[id];
    order_touch *to = ARENA_NEW(x->a, order_touch, s->in_count + s->out_count + 1);
    if (!to) return FAIL_MEMORY(x->e, "the order of steps");
    for (uint32_t i = 0; i < s->in_count; i++) {
        const uint32_t v = x->g->arg[s->in_at + i];
        const bool is_const = i < code->problem->count_in && code->problem->in[i].is_const;
        if (v && !is_const) TRY(add_touch(x, v, false, to, &w->count));
    }
    for (uint32_t i = 0; i < s->out_count; i++) {
        const uint32_t v = x->g->arg[s->out_at + i];
        if (v) TRY(add_touch(x, v, true, to, &w->count));
    }
    tactic t;
    memcpy(t.at, s->tactic, sizeof t.at);
    if (code->kernel->workspace && code->kernel->workspace(code->problem, &t, x->g->threads))
        to[w->count++] = (order_touch){ .begin = UINTPTR_MAX - 1, .end = UINTPTR_MAX, .is_written = true };
    w->touch = to;
    return SINTER_OK;
}

sinter_status engine_waits(env *e, const engine *g, uint32_t profile, uint32_t first, uint32_t count, arena *a,
                           order_edges *out)
{
    waits x = { .e = e, .g = g, .p = &g->profile[profile], .a = a };
    int64_t *symbol = ARENA_NEW(a, int64_t, g->symbol_count);
    x.dim = ARENA_NEW(a, int64_t, g->dim_count);
    x.work = ARENA_NEW(a, order_work, count);
    if ((g->symbol_count && !symbol) || !x.dim || (count && !x.work)) return FAIL_MEMORY(e, "the order of steps");
    for (uint32_t i = 0; i < g->symbol_count; i++) symbol[i] = g->range[(size_t)profile * g->symbol_count + i].opt;
    (void)dim_eval_all(g->dim, g->dim_count, symbol, g->symbol_count, x.dim);
    for (uint32_t i = 0; i < count; i++) TRY(fill(&x, x.p->step_first + first + i, &x.work[i]));
    const uint32_t before = out->count;
    TRY(order_find(e, a, x.work, count, out));
    for (uint32_t i = before; i < out->count; i++) {
        out->at[i].from += first;
        out->at[i].to += first;
    }
    return SINTER_OK;
}

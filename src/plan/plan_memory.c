/* SPDX-License-Identifier: Apache-2.0 */
/* plan_memory.c - the arrays of a plan, the lifetimes of storages, and results that take the memory of an input.
 *
 * Steps get positions in execution order; the body of a region gets its positions where it is called. */
#include "plan/plan.h"

#include <string.h>

sinter_status plan_create(env *e, arena *a, dim_table *dims, plan **out)
{
    plan *p = ARENA_NEW(a, plan, 1);
    *out = p;
    if (!p) return FAIL_MEMORY(e, "a plan");
    p->a = a;
    p->dims = dims;
    const bool ok =
        VEC_PUSH(a, &p->storage) && VEC_PUSH(a, &p->value) && VEC_PUSH(a, &p->step) && VEC_PUSH(a, &p->region);
    return ok ? SINTER_OK : FAIL_MEMORY(e, "a plan");
}

uint32_t plan_storage_new(plan *p, storage_kind kind, dim size)
{
    plan_storage *s = VEC_PUSH(p->a, &p->storage);
    if (!s) return 0;
    s->kind = kind;
    s->size = size;
    const dim_range r = dim_range_of(p->dims, size);
    s->bound = r.max < 0 ? 0 : r.max == INT64_MAX ? UINT64_MAX : (uint64_t)r.max;
    s->first = UINT32_MAX;
    return p->storage.count - 1;
}

dim plan_dense_size(plan *p, sinter_dtype dtype, uint32_t rank, const dim *d)
{
    dim count = dim_const(p->dims, 1);
    for (uint32_t i = rank; i-- > 0;) count = dim_mul(p->dims, count, d[i]);
    const uint32_t bits = sinter_dtype_bits(dtype);
    return bits >= 8 ? dim_mul(p->dims, count, dim_const(p->dims, bits / 8))
                     : dim_ceildiv(p->dims, dim_mul(p->dims, count, dim_const(p->dims, bits)), dim_const(p->dims, 8));
}

uint32_t plan_value_dense(plan *p, storage_kind kind, const char *name, sinter_dtype dtype, uint32_t rank, const dim *d,
                          const uint8_t *order)
{
    plan_value v = { .name = name, .dtype = dtype, .rank = rank, .offset = dim_const(p->dims, 0) };
    dim run = dim_const(p->dims, 1);
    for (uint32_t i = rank; i-- > 0;) {
        const uint32_t axis = order ? order[i] : i;
        v.dim[axis] = d[axis];
        v.stride[axis] = run;
        run = dim_mul(p->dims, run, d[axis]);
    }
    v.storage = plan_storage_new(p, kind, plan_dense_size(p, dtype, rank, d));
    plan_value *slot = v.storage ? VEC_PUSH(p->a, &p->value) : NULL;
    if (!slot) return 0;
    *slot = v;
    return p->value.count - 1;
}

/* ---- lifetimes ---- */

/* A loop or scan, and the one around it. */
typedef struct loop {
    uint32_t step, around; /* around: 1 + index; 0: none */
} loop;

typedef struct walk {
    env *e;
    plan *p;
    arena a;
    uint32_t at;
    VEC(loop) loop;
    uint32_t inside;       /* 1 + index of the loop whose body is walked; 0: none */
    VEC(uint32_t) loop_at; /* by position: the loop that runs then */
} walk;

static void touch(plan *p, uint32_t value, uint32_t first, uint32_t last)
{
    plan_storage *s = &p->storage.at[p->value.at[value].storage];
    if (first < s->first) s->first = first;
    if (last > s->last) s->last = last;
}

static uint32_t next_position(walk *w)
{
    uint32_t *slot = VEC_PUSH(&w->a, &w->loop_at);
    if (slot) *slot = w->inside;
    return ++w->at;
}

static sinter_status walk_region(walk *w, uint32_t region, uint32_t depth)
{
    if (depth > w->e->limits.depth_max) return FAIL(w->e, UNSUPPORTED, "regions nest deeper than %u", depth - 1);
    const plan_region r = w->p->region.at[region];
    for (uint32_t i = 0; i < r.step.count; i++) {
        plan_step *s = &w->p->step.at[r.step.at[i]];
        const uint32_t around = w->inside;
        if (s->kind >= STEP_LOOP) {
            loop *l = VEC_PUSH(&w->a, &w->loop);
            if (!l) return FAIL_MEMORY(w->e, "planning memory");
            *l = (loop){ r.step.at[i], around };
            w->inside = w->loop.count;
        }
        s->first = next_position(w);
        for (uint32_t k = 0; k < 2; k++)
            if (s->region[k]) TRY(walk_region(w, s->region[k], depth + 1));
        w->inside = around;
        s->last = s->kind >= STEP_IF ? next_position(w) : s->first;
        for (uint32_t k = 0; k < s->count_in; k++)
            if (s->in[k]) touch(w->p, s->in[k], s->first, s->last);
        for (uint32_t k = 0; k < s->count_out; k++)
            if (s->out[k]) touch(w->p, s->out[k], s->first, s->last);
        /* Parameters and results are copied in and out by the executor around the body. */
        for (uint32_t k = 0; k < 2; k++) {
            if (!s->region[k]) continue;
            const plan_region *body = &w->p->region.at[s->region[k]];
            for (uint32_t j = 0; j < body->count_param; j++)
                if (body->param[j]) touch(w->p, body->param[j], s->first, s->last);
            for (uint32_t j = 0; j < body->count_result; j++)
                if (body->result[j]) touch(w->p, body->result[j], s->last, s->last);
        }
    }
    return w->a.failed ? FAIL_MEMORY(w->e, "planning memory") : SINTER_OK;
}

/* Inside a loop, what a body reads in one iteration must still be there in the next: a storage that is touched in a
 * body but first written before the call lives through the call. */
static void extend_over_calls(const walk *w)
{
    plan *p = w->p;
    for (uint32_t i = 1; i < p->storage.count; i++) {
        plan_storage *t = &p->storage.at[i];
        uint32_t l = t->first < t->last && t->last <= w->at ? w->loop_at.at[t->last - 1] : 0;
        for (; l; l = w->loop.at[l - 1].around) {
            const plan_step *s = &p->step.at[w->loop.at[l - 1].step];
            if (t->first >= s->first) break;
            t->last = s->last;
        }
    }
}

sinter_status plan_lifetimes(env *e, plan *p)
{
    walk w = { .e = e, .p = p };
    arena_init(&w.a, e);
    const sinter_status status = walk_region(&w, 1, 0);
    if (status == SINTER_OK) extend_over_calls(&w);
    arena_deinit(&w.a);
    TRY(status);
    const plan_region *main = &p->region.at[1];
    for (uint32_t i = 0; i < main->count_result; i++)
        if (main->result[i]) touch(p, main->result[i], w.at + 1, w.at + 1);
    return SINTER_OK;
}

/* ---- in place ---- */

static bool same_view(const plan_value *a, const plan_value *b)
{
    return a->rank == b->rank && a->offset == b->offset && sinter_dtype_bits(a->dtype) == sinter_dtype_bits(b->dtype) &&
           memcmp(a->dim, b->dim, a->rank * sizeof(dim)) == 0 &&
           memcmp(a->stride, b->stride, a->rank * sizeof(dim)) == 0;
}

/* Merged storages: for each storage, the one that it was merged into, or itself. */
typedef struct merging {
    plan *p;
    uint32_t *into;
} merging;

static uint32_t storage_of(const merging *m, uint32_t value)
{
    uint32_t s = m->p->value.at[value].storage;
    while (m->into[s] != s) s = m->into[s] = m->into[m->into[s]];
    return s;
}

static void merge(merging *m, uint32_t from, uint32_t to)
{
    plan_storage *f = &m->p->storage.at[from], *t = &m->p->storage.at[to];
    m->into[from] = to;
    if (f->last > t->last) t->last = f->last;
    f->kind = STORAGE_NONE;
}

/* Does the step read the storage through another operand? The write would overwrite it while it is read, unless the
 * operand has the same view as the result. */
static bool is_read_otherwise(const merging *m, const plan_step *s, uint32_t storage, const plan_value *out)
{
    for (uint32_t i = 0; i < s->count_in; i++)
        if (s->in[i] && storage_of(m, s->in[i]) == storage &&
            (i < s->in_place_from || !same_view(&m->p->value.at[s->in[i]], out)))
            return true;
    return false;
}

static void step_in_place(merging *m, const plan_step *s)
{
    plan *p = m->p;
    for (uint32_t k = s->in_place_from; s->count_out == 1 && s->out[0] && k < s->count_in; k++) {
        if (!s->in[k]) continue;
        const plan_value *in = &p->value.at[s->in[k]], *out = &p->value.at[s->out[0]];
        const uint32_t in_storage = storage_of(m, s->in[k]), out_storage = storage_of(m, s->out[0]);
        const plan_storage *from = &p->storage.at[out_storage], *to = &p->storage.at[in_storage];
        if (from->kind != STORAGE_SLAB || to->kind != STORAGE_SLAB || from == to) continue;
        /* The result may be a part of something larger, of which no better bound may be known. */
        if (from->size != to->size || from->bound != to->bound) continue;
        if (to->last != s->first || from->first != s->first || !same_view(in, out)) continue;
        if (is_read_otherwise(m, s, in_storage, out)) continue;
        merge(m, out_storage, in_storage);
        break;
    }
}

void plan_in_place(plan *p)
{
    merging m = { .p = p, .into = ARENA_NEW(p->a, uint32_t, p->storage.count) };
    if (!m.into) return; /* the arena remembers */
    for (uint32_t i = 0; i < p->storage.count; i++) m.into[i] = i;
    for (uint32_t i = 1; i < p->step.count; i++) step_in_place(&m, &p->step.at[i]);
    for (uint32_t i = 1; i < p->value.count; i++) p->value.at[i].storage = storage_of(&m, i);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - lifetimes of storages and their places in the slab.
 *
 * Steps get positions in the order in which they run, bodies of regions where they are called. Offsets are given to the
 * largest storages first, each in the lowest gap between those already placed that live at the same time: within a few
 * per cent of the lower bound on real networks, and activations of neighbouring layers end up in the same hot bytes. */
#include "plan/apart.h"

#include <stdlib.h>
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
    const uint32_t bits = sinter_dtype_bits(dtype);
    const dim size = bits >= 8
                         ? dim_mul(p->dims, run, dim_const(p->dims, bits / 8))
                         : dim_ceildiv(p->dims, dim_mul(p->dims, run, dim_const(p->dims, bits)), dim_const(p->dims, 8));
    v.storage = plan_storage_new(p, kind, size);
    plan_value *slot = v.storage ? VEC_PUSH(p->a, &p->value) : NULL;
    if (!slot) return 0;
    *slot = v;
    return p->value.count - 1;
}

/* ---- lifetimes ---- */

typedef struct walk {
    env *e;
    plan *p;
    uint32_t at;
} walk;

static void touch(plan *p, uint32_t value, uint32_t first, uint32_t last)
{
    plan_storage *s = &p->storage.at[p->value.at[value].storage];
    if (first < s->first) s->first = first;
    if (last > s->last) s->last = last;
}

static sinter_status walk_region(walk *w, uint32_t region, uint32_t depth)
{
    if (depth > w->e->limits.depth_max) return FAIL(w->e, UNSUPPORTED, "regions nest deeper than %u", depth - 1);
    const plan_region r = w->p->region.at[region];
    for (uint32_t i = 0; i < r.step.count; i++) {
        plan_step *s = &w->p->step.at[r.step.at[i]];
        s->first = ++w->at;
        for (uint32_t k = 0; k < 2; k++)
            if (s->region[k]) TRY(walk_region(w, s->region[k], depth + 1));
        s->last = s->kind >= STEP_IF ? ++w->at : s->first;
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
    return SINTER_OK;
}

/* Inside a loop, what a body reads in one iteration must still be there in the next: a storage that is touched in a
 * body but first written before the call lives through the call. */
static void extend_over_calls(plan *p)
{
    for (uint32_t i = 1; i < p->step.count; i++) {
        const plan_step *s = &p->step.at[i];
        if (s->kind < STEP_LOOP) continue;
        for (uint32_t k = 1; k < p->storage.count; k++) {
            plan_storage *t = &p->storage.at[k];
            if (t->first < s->first && t->last >= s->first && t->last < s->last) t->last = s->last;
        }
    }
}

sinter_status plan_lifetimes(env *e, plan *p)
{
    walk w = { .e = e, .p = p };
    TRY(walk_region(&w, 1, 0));
    extend_over_calls(p);
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

static void merge(plan *p, uint32_t from, uint32_t to)
{
    for (uint32_t i = 1; i < p->value.count; i++)
        if (p->value.at[i].storage == from) p->value.at[i].storage = to;
    if (p->storage.at[from].last > p->storage.at[to].last) p->storage.at[to].last = p->storage.at[from].last;
    p->storage.at[from].kind = STORAGE_NONE;
}

/* Every other operand in that storage would be overwritten while it is read, unless it too is seen as the result is. */
static bool is_read_otherwise(const plan *p, const plan_step *s, uint32_t storage, const plan_value *out)
{
    for (uint32_t i = 0; i < s->count_in; i++) {
        const plan_value *in = &p->value.at[s->in[i]];
        if (s->in[i] && in->storage == storage && (i < s->in_place_from || !same_view(in, out))) return true;
    }
    return false;
}

void plan_in_place(plan *p)
{
    for (uint32_t i = 1; i < p->step.count; i++) {
        const plan_step *s = &p->step.at[i];
        for (uint32_t k = s->in_place_from; s->count_out == 1 && s->out[0] && k < s->count_in; k++) {
            const plan_value *in = &p->value.at[s->in[k]], *out = &p->value.at[s->out[0]];
            const plan_storage *from = &p->storage.at[out->storage], *to = &p->storage.at[in->storage];
            if (!s->in[k] || from->kind != STORAGE_SLAB || to->kind != STORAGE_SLAB || from == to ||
                from->bound != to->bound)
                continue;
            if (to->last != s->first || from->first != s->first || !same_view(in, out)) continue;
            if (is_read_otherwise(p, s, in->storage, out)) continue;
            merge(p, out->storage, in->storage);
            break;
        }
    }
}

/* ---- offsets ---- */

typedef struct slot {
    uint64_t size;
    uint32_t storage, first, last;
} slot;

static int larger_first(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->storage < y->storage ? -1 : x->storage > y->storage;
}

static int by_offset(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* The lowest offset at which `size` bytes fit between the taken intervals {begin, end}, sorted by begin. */
static uint64_t lowest_gap(uint64_t (*taken)[2], size_t count, uint64_t size)
{
    qsort(taken, count, sizeof *taken, by_offset);
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (taken[i][0] >= at && taken[i][0] - at >= size) return at;
        if (taken[i][1] > at) at = taken[i][1];
    }
    return at;
}

/* apart: NULL where steps run one after the other. */
static bool may_share(const plan *p, const plan_apart *apart, const slot *x, const slot *y)
{
    if (apart) return plan_apart_may_share(apart, p, x->storage, y->storage);
    return x->last < y->first || x->first > y->last;
}

static sinter_status give_offsets(env *e, plan *p, uint64_t limit, const plan_apart *apart)
{
    arena scratch;
    arena_init(&scratch, e);
    slot *order = ARENA_NEW(&scratch, slot, p->storage.count);
    uint64_t(*taken)[2] = arena_alloc(&scratch, size_mul(sizeof *taken, p->storage.count), 8);
    if (!order || !taken) {
        arena_deinit(&scratch);
        return FAIL_MEMORY(e, "planning memory");
    }
    uint32_t count = 0;
    for (uint32_t i = 1; i < p->storage.count; i++) {
        plan_storage *s = &p->storage.at[i];
        if (s->kind != STORAGE_SLAB) continue;
        if (s->first == UINT32_MAX) {
            s->kind = STORAGE_NONE; /* its writer was moved elsewhere */
            continue;
        }
        if (s->bound > limit) {
            s->kind = STORAGE_GROWN;
            continue;
        }
        const uint64_t size = size_align(s->bound ? s->bound : 1, PLAN_ALIGN);
        order[count++] = (slot){ .size = size, .storage = i, .first = s->first, .last = s->last };
    }
    qsort(order, count, sizeof *order, larger_first);
    memset(p->slab_size, 0, sizeof p->slab_size);
    for (uint32_t i = 0; i < count; i++) {
        size_t live = 0;
        plan_storage *s = &p->storage.at[order[i].storage];
        for (uint32_t k = 0; k < i; k++) {
            if (p->storage.at[order[k].storage].place != s->place) continue;
            if (may_share(p, apart, &order[k], &order[i])) continue;
            const uint64_t at = p->storage.at[order[k].storage].at;
            taken[live][0] = at;
            taken[live++][1] = at + order[k].size;
        }
        s->at = lowest_gap(taken, live, order[i].size);
        const uint64_t end = size_add(s->at, order[i].size);
        if (end > p->slab_size[s->place]) p->slab_size[s->place] = end;
    }
    arena_deinit(&scratch);
    return SINTER_OK;
}

static sinter_status check_size(env *e, const plan *p)
{
    for (storage_place i = PLACE_DEVICE; i < PLACE_COUNT; i++)
        if (p->slab_size[i] > e->limits.memory_max)
            return FAIL(e, NO_MEMORY, "activations need %llu bytes, the limit is %llu",
                        (unsigned long long)p->slab_size[i], (unsigned long long)e->limits.memory_max);
    return SINTER_OK;
}

sinter_status plan_offsets(env *e, plan *p, uint64_t limit)
{
    TRY(give_offsets(e, p, limit, NULL));
    return check_size(e, p);
}

/* Memory that is in no cache costs more than branches gain. */
static bool is_worth(uint64_t size, uint64_t least)
{
    static const uint64_t always = (uint64_t)16 << 20;
    return size <= always || size <= least + least / 4;
}

sinter_status plan_offsets_apart(env *e, plan *p, uint64_t limit)
{
    enum { STEPS_MAX = 4096 };
    TRY(give_offsets(e, p, limit, NULL));
    const uint64_t least = p->slab_size[PLACE_DEVICE];
    p->has_branches = false;
    if (p->region.at[1].step.count > STEPS_MAX) return check_size(e, p);
    arena scratch;
    arena_init(&scratch, e);
    plan_apart *apart;
    sinter_status s = plan_apart_create(e, &scratch, p, &apart);
    p->has_branches = s == SINTER_OK && plan_apart_has_branches(apart);
    if (p->has_branches) s = give_offsets(e, p, limit, apart);
    if (s == SINTER_OK && !is_worth(p->slab_size[PLACE_DEVICE], least)) s = give_offsets(e, p, limit, NULL);
    arena_deinit(&scratch);
    TRY(s);
    return check_size(e, p);
}

uint64_t plan_lower_bound(const plan *p, arena *a)
{
    uint32_t end = 0;
    for (uint32_t i = 1; i < p->storage.count; i++)
        if (p->storage.at[i].kind == STORAGE_SLAB && p->storage.at[i].last > end) end = p->storage.at[i].last;
    int64_t *change = ARENA_NEW(a, int64_t, (size_t)end + 2);
    if (!change) return 0;
    for (uint32_t i = 1; i < p->storage.count; i++) {
        const plan_storage *s = &p->storage.at[i];
        if (s->kind != STORAGE_SLAB || s->place != PLACE_DEVICE || s->first == UINT32_MAX) continue;
        change[s->first] += (int64_t)s->bound;
        change[s->last + 1] -= (int64_t)s->bound;
    }
    int64_t live = 0, peak = 0;
    for (uint32_t i = 0; i <= end + 1; i++) {
        live += change[i];
        if (live > peak) peak = live;
    }
    return (uint64_t)peak;
}

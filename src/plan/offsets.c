/* SPDX-License-Identifier: Apache-2.0 */
/* offsets.c - where each storage lies in the slab.
 *
 * Offsets are given to the largest storages first, each in the lowest gap between those already placed that live at the
 * same time: within a few per cent of the lower bound on real networks, and activations of neighbouring layers end up
 * in the same hot bytes. Those that live at the same time are found by an index over time, so the cost is that of the
 * pairs that do. Graphs of thousands of values that all live together have too many pairs; there, storages are placed
 * in the order of time, each in the lowest gap that is free then (gaps.c), which takes n log n. */
#include "plan/apart.h"
#include "plan/gaps.h"

#include <stdlib.h>
#include <string.h>

/* The number of pairs that are compared: all pairs of about 3000 storages, and 64 for each storage beyond. */
enum { PAIRS_FREE = 1 << 22, PAIRS_EACH = 64 };

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

static int earlier_first(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return larger_first(a, b);
}

static int by_offset(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* ---- who lives when ---- */

typedef struct entry {
    uint32_t slot, next; /* next: 1 + index; 0: the last */
} entry;

/* Index of the placed slots: each slot is listed at the tree nodes that together cover its lifetime, and at its first
 * position. */
typedef struct timeline {
    arena *a;
    uint32_t leaves;       /* a power of two */
    uint32_t *node, *from; /* lists: 1 + index of an entry */
    VEC(entry) entry;
} timeline;

static bool timeline_init(timeline *t, arena *a, uint32_t positions)
{
    *t = (timeline){ .a = a, .leaves = 1 };
    while (t->leaves < positions && t->leaves < UINT32_MAX / 4) t->leaves *= 2;
    t->node = ARENA_NEW(a, uint32_t, 2 * (size_t)t->leaves);
    t->from = ARENA_NEW(a, uint32_t, t->leaves);
    return t->node && t->from;
}

static void list_add(timeline *t, uint32_t *list, uint32_t id)
{
    entry *e = VEC_PUSH(t->a, &t->entry);
    if (!e) return; /* the arena remembers */
    *e = (entry){ id, *list };
    *list = t->entry.count;
}

static void timeline_add(timeline *t, uint32_t id, const slot *s)
{
    list_add(t, &t->from[s->first], id);
    uint32_t low = s->first + t->leaves, high = s->last + t->leaves + 1;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1u) list_add(t, &t->node[low++], id);
        if (high & 1u) list_add(t, &t->node[--high], id);
    }
}

/* ---- the largest first ---- */

typedef struct placing {
    env *e;
    plan *p;
    const plan_apart *apart; /* NULL where steps run one after the other */
    arena a;
    slot *slot;
    uint32_t count;
    uint64_t (*taken)[2]; /* intervals {begin, end} that a slot must not touch */
    size_t live;
    uint64_t pairs; /* looked at */
} placing;

static void take(placing *x, storage_place place, uint32_t k)
{
    const plan_storage *s = &x->p->storage.at[x->slot[k].storage];
    x->pairs++;
    if (s->place != place) return;
    x->taken[x->live][0] = s->at;
    x->taken[x->live++][1] = s->at + x->slot[k].size;
}

static void take_alive(placing *x, const timeline *t, const slot *s, storage_place place)
{
    for (uint32_t n = s->first + t->leaves; n; n /= 2)
        for (uint32_t i = t->node[n]; i; i = t->entry.at[i - 1].next) take(x, place, t->entry.at[i - 1].slot);
    for (uint32_t at = s->first + 1; at <= s->last; at++, x->pairs++)
        for (uint32_t i = t->from[at]; i; i = t->entry.at[i - 1].next) take(x, place, t->entry.at[i - 1].slot);
}

static void take_apart(placing *x, uint32_t id, storage_place place)
{
    for (uint32_t k = 0; k < id; k++)
        if (!plan_apart_may_share(x->apart, x->p, x->slot[k].storage, x->slot[id].storage)) take(x, place, k);
}

/* The lowest offset at which `size` bytes fit between the taken intervals. */
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

static void put(placing *x, const slot *s, uint64_t at)
{
    plan_storage *storage = &x->p->storage.at[s->storage];
    storage->at = at;
    const uint64_t end = size_add(at, s->size);
    if (end > x->p->slab_size[storage->place]) x->p->slab_size[storage->place] = end;
}

/* False where that takes too long. */
static bool place_largest_first(placing *x, uint32_t positions)
{
    timeline t;
    const uint64_t most = PAIRS_FREE + PAIRS_EACH * (uint64_t)x->count;
    if (!timeline_init(&t, &x->a, positions)) return true;
    qsort(x->slot, x->count, sizeof *x->slot, larger_first);
    for (uint32_t i = 0; i < x->count; i++) {
        const slot *s = &x->slot[i];
        const storage_place place = x->p->storage.at[s->storage].place;
        x->live = 0;
        if (x->apart) take_apart(x, i, place);
        else take_alive(x, &t, s, place);
        put(x, s, lowest_gap(x->taken, x->live, s->size));
        if (x->apart) continue;
        timeline_add(&t, i, s);
        if (x->a.failed) return true;
        if (x->pairs > most) return false;
    }
    return true;
}

/* ---- in the order of time ---- */

/* Slots whose life has begun, the one that ends first on top. */
static void heap_push(const slot *s, uint32_t *heap, uint32_t count, uint32_t id)
{
    uint32_t i = count;
    for (; i && s[heap[(i - 1) / 2]].last > s[id].last; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = id;
}

static uint32_t heap_pop(const slot *s, uint32_t *heap, uint32_t count)
{
    const uint32_t top = heap[0], last = heap[count - 1];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < count - 1; i = child) {
        if (child + 1 < count - 1 && s[heap[child + 1]].last < s[heap[child]].last) child++;
        if (s[heap[child]].last >= s[last].last) break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

static void place_by_time(placing *x)
{
    gaps free_at[PLACE_COUNT];
    uint32_t *heap = ARENA_NEW(&x->a, uint32_t, x->count), alive = 0;
    for (uint32_t i = 0; i < PLACE_COUNT; i++) gaps_init(&free_at[i], &x->a);
    if (!heap || x->a.failed) return;
    qsort(x->slot, x->count, sizeof *x->slot, earlier_first);
    for (uint32_t i = 0; i < x->count && !x->a.failed; i++) {
        const slot *s = &x->slot[i];
        while (alive && x->slot[heap[0]].last < s->first) {
            const slot *gone = &x->slot[heap_pop(x->slot, heap, alive--)];
            const plan_storage *from = &x->p->storage.at[gone->storage];
            gaps_give(&free_at[from->place], from->at, gone->size);
        }
        put(x, s, gaps_take(&free_at[x->p->storage.at[s->storage].place], s->size));
        heap_push(x->slot, heap, alive++, i);
    }
}

/* ---- */

static sinter_status place_all(placing *x, uint64_t limit)
{
    plan *p = x->p;
    uint32_t end = 0;
    x->slot = ARENA_NEW(&x->a, slot, p->storage.count);
    x->taken = arena_alloc(&x->a, size_mul(sizeof *x->taken, p->storage.count), 8);
    if (!x->slot || !x->taken) return FAIL_MEMORY(x->e, "planning memory");
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
        x->slot[x->count++] = (slot){ .size = size, .storage = i, .first = s->first, .last = s->last };
        if (s->last > end) end = s->last;
    }
    memset(p->slab_size, 0, sizeof p->slab_size);
    if (!place_largest_first(x, end + 1)) {
        memset(p->slab_size, 0, sizeof p->slab_size);
        place_by_time(x);
    }
    return x->a.failed ? FAIL_MEMORY(x->e, "planning memory") : SINTER_OK;
}

static sinter_status give_offsets(env *e, plan *p, uint64_t limit, const plan_apart *apart)
{
    placing x = { .e = e, .p = p, .apart = apart };
    arena_init(&x.a, e);
    const sinter_status s = place_all(&x, limit);
    arena_deinit(&x.a);
    return s;
}

static sinter_status check_size(env *e, const plan *p)
{
    for (storage_place i = PLACE_DEVICE; i < PLACE_COUNT; i++)
        if (p->slab_size[i] > e->limits.memory_max)
            return FAIL(e, NO_MEMORY, "activations need %llu bytes, the limit memory_max is %llu",
                        (unsigned long long)p->slab_size[i], (unsigned long long)e->limits.memory_max);
    return SINTER_OK;
}

sinter_status plan_offsets(env *e, plan *p, uint64_t limit)
{
    TRY(give_offsets(e, p, limit, NULL));
    return check_size(e, p);
}

/* Is a larger slab worth it? Memory outside the cache costs more than branches gain. */
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

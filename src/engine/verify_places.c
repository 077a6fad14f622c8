/* SPDX-License-Identifier: Apache-2.0 */
/* verify_places.c - which storages of the slab are in use: a tree over their places answers in log n time. */
#include "engine/flow.h"

#include <string.h>

static bool has_place(const engine_storage *s)
{
    return s->kind == STORAGE_SLAB && s->bound;
}

void flow_place_set(flow_places *x, uint32_t storage, bool is_used)
{
    const engine_storage *s = &x->storage[storage];
    if (!has_place(s)) return;
    uint64_t *tree = x->end[s->place];
    uint32_t i = x->leaves[s->place] + x->position[storage];
    tree[i] = is_used ? s->at + s->bound : 0;
    for (i /= 2; i; i /= 2) tree[i] = tree[2 * i] > tree[2 * i + 1] ? tree[2 * i] : tree[2 * i + 1];
}

/* The last of the first `count` that reaches beyond `at`. */
static uint32_t find(const flow_places *x, uint32_t place, uint32_t count, uint64_t at)
{
    const uint64_t *tree = x->end[place];
    const uint32_t leaves = x->leaves[place];
    uint32_t i = leaves + count; /* one behind the range */
    if (!count || tree[1] <= at) return NOBODY;
    if (count == leaves) {
        i = 1;
    } else {
        for (;; i /= 2) {
            if (i <= 1) return NOBODY;
            if (i & 1 && tree[i - 1] > at) break;
        }
        i--;
    }
    while (i < leaves) i = tree[2 * i + 1] > at ? 2 * i + 1 : 2 * i;
    return tree[i] > at ? x->sorted[place][i - leaves] : NOBODY;
}

/* How many storages of the place begin before `at`. */
static uint32_t count_before(const flow_places *x, uint32_t place, uint64_t at)
{
    uint32_t low = 0, high = x->count[place];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (x->storage[x->sorted[place][middle]].at < at) low = middle + 1;
        else high = middle;
    }
    return low;
}

uint32_t flow_place_other(flow_places *x, uint32_t storage)
{
    const engine_storage *s = &x->storage[storage];
    if (!has_place(s)) return NOBODY;
    flow_place_set(x, storage, false);
    return find(x, s->place, count_before(x, s->place, s->at + s->bound), s->at);
}

/* By offset; merges sorted halves. */
static void sort(const flow_places *x, uint32_t *at, uint32_t *spare, uint32_t count)
{
    if (count < 2) return;
    const uint32_t half = count / 2;
    sort(x, at, spare, half);
    sort(x, at + half, spare, count - half);
    memcpy(spare, at, half * sizeof *at);
    for (uint32_t i = 0, k = half, n = 0; i < half; n++)
        at[n] = k < count && x->storage[at[k]].at < x->storage[spare[i]].at ? at[k++] : spare[i++];
}

sinter_status flow_places_init(flow_places *x, env *e, const engine *g, const engine_profile *p, arena *a)
{
    uint32_t *spare = ARENA_NEW(a, uint32_t, p->storage_count);
    x->storage = g->storage + p->storage_first;
    x->position = ARENA_NEW(a, uint32_t, p->storage_count);
    if (!x->position || !spare) return FAIL_MEMORY(e, "checking a plan");
    for (uint32_t place = 0; place < PLACE_COUNT; place++) {
        uint32_t *list = x->sorted[place] = ARENA_NEW(a, uint32_t, p->storage_count);
        if (!list) return FAIL_MEMORY(e, "checking a plan");
        for (uint32_t i = 1; i < p->storage_count; i++)
            if (has_place(&x->storage[i]) && x->storage[i].place == place) list[x->count[place]++] = i;
        sort(x, list, spare, x->count[place]);
        for (uint32_t i = 0; i < x->count[place]; i++) x->position[list[i]] = i;
        x->leaves[place] = 1;
        while (x->leaves[place] < x->count[place]) x->leaves[place] *= 2;
        x->end[place] = ARENA_NEW(a, uint64_t, (size_t)2 * x->leaves[place]);
        if (!x->end[place]) return FAIL_MEMORY(e, "checking a plan");
    }
    return SINTER_OK;
}

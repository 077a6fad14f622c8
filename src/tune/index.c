/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - what a lowering knows of the plan that it makes: who writes a value, who reads a storage, which values lie
 * on it, where else an input or weight lies.
 *
 * Values and storages are made in many places, so facts about them are brought up to date when they are asked for: by
 * then each lies on the storage that it stays on. */
#include "tune/lower.h"

bool lower_facts(lowering *l)
{
    const plan *p = l->p;
    while (l->storage.count < p->storage.count)
        if (!VEC_PUSH(l->a, &l->storage)) return false;
    while (l->value.count < p->value.count) {
        const uint32_t id = l->value.count;
        if (!VEC_PUSH(l->a, &l->value)) return false;
        storage_facts *s = &l->storage.at[p->value.at[id].storage];
        if (s->last) l->value.at[s->last].next = id;
        else s->first = id;
        s->last = id;
        s->views++;
    }
    return true;
}

uint32_t lower_current(const lowering *l, uint32_t value)
{
    while (value < l->value.count && l->value.at[value].moved) value = l->value.at[value].moved;
    return value;
}

uint32_t lower_step_new(lowering *l, const plan_step *s)
{
    plan_step *slot = VEC_PUSH(l->a, &l->p->step);
    uint32_t *entry = slot ? VEC_PUSH(l->a, &l->p->region.at[l->region].step) : NULL;
    if (!entry || !lower_facts(l)) return 0;
    const uint32_t id = *entry = l->p->step.count - 1;
    *slot = *s;
    for (uint32_t i = 0; i < s->count_in; i++) l->storage.at[l->p->value.at[s->in[i]].storage].reads += s->in[i] != 0;
    for (uint32_t i = 0; i < s->count_out; i++) {
        l->value.at[s->out[i]].writer = id;
        l->value.at[s->out[i]].region = l->region;
    }
    return id;
}

void lower_forget(lowering *l, uint32_t converted, uint32_t placed)
{
    while (l->converted.count > converted) {
        const conversion *c = &l->converted.at[--l->converted.count];
        l->value.at[c->value].converted = c->before;
    }
    while (l->placed.count > placed) l->value.at[l->placed.at[--l->placed.count].value].placed = 0;
}

/* ---- the same input or weight in another place ---- */

static uint32_t twin_hash(const plan_storage *s)
{
    uint64_t h = (uint64_t)(uintptr_t)s->data ^ ((uint64_t)s->io << 32 | (uint64_t)s->kind << 8 | (uint64_t)s->place);
    h *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

/* Where a storage of this kind, place, input and data is, or would be. */
static uint32_t *twin_slot(const lowering *l, const plan_storage *wanted)
{
    uint32_t i = twin_hash(wanted) & (l->twin_size - 1);
    for (; l->twin[i]; i = (i + 1) & (l->twin_size - 1)) {
        const plan_storage *s = &l->p->storage.at[l->twin[i]];
        if (s->kind == wanted->kind && s->place == wanted->place && s->io == wanted->io && s->data == wanted->data)
            break;
    }
    return &l->twin[i];
}

static void twin_add(lowering *l, uint32_t id)
{
    uint32_t *slot = twin_slot(l, &l->p->storage.at[id]);
    if (*slot) return;
    *slot = id;
    l->twin_count++;
}

static bool twin_grow(lowering *l)
{
    const uint32_t *old = l->twin, old_size = l->twin_size;
    l->twin_size = old_size ? old_size * 2 : 64;
    l->twin = ARENA_NEW(l->a, uint32_t, l->twin_size);
    l->twin_count = 0;
    for (uint32_t i = 0; l->twin && i < old_size; i++)
        if (old[i]) twin_add(l, old[i]);
    return l->twin != NULL;
}

uint32_t lower_twin(lowering *l, uint32_t storage, storage_place place)
{
    for (; l->twin_seen < l->p->storage.count; l->twin_seen++) {
        const storage_kind kind = l->p->storage.at[l->twin_seen].kind;
        if (l->twin_count * 2 >= l->twin_size && !twin_grow(l)) return 0;
        if (kind == STORAGE_INPUT || kind == STORAGE_WEIGHT || kind == STORAGE_ROWS) twin_add(l, l->twin_seen);
    }
    plan_storage wanted = l->p->storage.at[storage];
    wanted.place = place;
    return l->twin_size ? *twin_slot(l, &wanted) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* name_map.c - a hash table of borrowed names. */
#include "base/name_map.h"
#include "base/hash.h"
#include <string.h>

static uint32_t hash_of(const char *name)
{
    return (uint32_t)hash64(name, strlen(name), 0);
}

static name_slot *slot_of(const name_map *m, const char *name, uint32_t hash)
{
    uint32_t i = hash & (m->capacity - 1);
    while (m->slot[i].name && (m->slot[i].hash != hash || strcmp(m->slot[i].name, name) != 0))
        i = (i + 1) & (m->capacity - 1);
    return &m->slot[i];
}

uint32_t *name_map_find(const name_map *m, const char *name)
{
    if (!m->count) return NULL;
    name_slot *s = slot_of(m, name, hash_of(name));
    return s->name ? &s->value : NULL;
}

static bool grow(name_map *m)
{
    name_map larger = { .a = m->a, .capacity = m->capacity ? m->capacity * 2 : 16 };
    if (larger.capacity < m->capacity) return false;
    larger.slot = ARENA_NEW(m->a, name_slot, larger.capacity);
    if (!larger.slot) return false;
    for (uint32_t i = 0; i < m->capacity; i++) {
        uint32_t to = m->slot[i].hash & (larger.capacity - 1);
        if (!m->slot[i].name) continue;
        while (larger.slot[to].name) to = (to + 1) & (larger.capacity - 1);
        larger.slot[to] = m->slot[i];
    }
    larger.count = m->count;
    *m = larger;
    return true;
}

uint32_t *name_map_add(name_map *m, const char *name, bool *is_new)
{
    *is_new = false;
    if (m->count >= m->capacity / 4 * 3 && !grow(m)) return NULL;
    const uint32_t hash = hash_of(name);
    name_slot *s = slot_of(m, name, hash);
    if (!s->name) {
        s->name = name;
        s->hash = hash;
        m->count++;
        *is_new = true;
    }
    return &s->value;
}

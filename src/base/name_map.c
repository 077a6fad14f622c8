/* SPDX-License-Identifier: Apache-2.0 */
/* name_map.c - a hash table of borrowed names. */
#include "base/name_map.h"
#include "base/hash.h"
#include <string.h>

static name_slot *slot_of(const name_map *m, const char *name)
{
    if (!m->capacity) return NULL;
    uint32_t i = (uint32_t)hash64(name, strlen(name), 0) & (m->capacity - 1);
    while (m->slot[i].name && strcmp(m->slot[i].name, name) != 0) i = (i + 1) & (m->capacity - 1);
    return &m->slot[i];
}

uint32_t *name_map_find(const name_map *m, const char *name)
{
    name_slot *s = slot_of(m, name);
    return s && s->name ? &s->value : NULL;
}

static bool grow(name_map *m)
{
    name_map larger = { .a = m->a, .capacity = m->capacity ? m->capacity * 2 : 16 };
    if (larger.capacity < m->capacity) return false;
    larger.slot = ARENA_NEW(m->a, name_slot, larger.capacity);
    if (!larger.slot) return false;
    for (uint32_t i = 0; i < m->capacity; i++)
        if (m->slot[i].name) *slot_of(&larger, m->slot[i].name) = m->slot[i];
    larger.count = m->count;
    *m = larger;
    return true;
}

uint32_t *name_map_add(name_map *m, const char *name, bool *is_new)
{
    *is_new = false;
    if (m->count >= m->capacity / 4 * 3 && !grow(m)) return NULL;
    name_slot *s = slot_of(m, name);
    if (!s->name) {
        s->name = name;
        m->count++;
        *is_new = true;
    }
    return &s->value;
}

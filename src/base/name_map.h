/* SPDX-License-Identifier: Apache-2.0 */
/* name_map.h - names to numbers, in an arena: open addressing, no removal. Names are borrowed. */
#ifndef BASE_NAME_MAP_H
#define BASE_NAME_MAP_H

#include "base/arena.h"

/* With the hash beside it, a name is read only where it is most likely the one that is looked for. */
typedef struct name_slot { const char *name; uint32_t value, hash; } name_slot;
typedef struct name_map {
    arena     *a;
    name_slot *slot;
    uint32_t   count, capacity;     /* capacity: 0 or a power of two */
} name_map;

/* The number's place, to read or to change; NULL where the name is unknown. Dies with the next name_map_add. */
uint32_t *name_map_find(const name_map *m, const char *name);
/* The name's place, made where it is new (`*is_new`). NULL: out of memory, which the arena remembers. */
uint32_t *name_map_add(name_map *m, const char *name, bool *is_new);

#endif

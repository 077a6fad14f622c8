/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory with one lifetime: allocated piece by piece, freed at once.
 *
 * Building works in arenas; nothing in onnx, ir, opt, plan or tune frees anything. Failure is sticky: the arena
 * remembers (`failed`), every later call returns NULL too, and whoever drives the phase checks once more at its end. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/env.h"
#include <string.h>

typedef struct arena_block arena_block;
typedef struct arena {
    env         *e;
    arena_block *block;       /* the newest; blocks form a list to the oldest */
    size_t       used;        /* bytes in the newest block */
    size_t       total;       /* bytes in all blocks, against limits.memory_max */
    bool         failed;
    bool         is_kept;     /* rewinding keeps all blocks, for an arena that is filled again and again */
    arena_block *spare;       /* blocks that rewinding kept: one at most where is_kept is false */
} arena;

void  arena_init(arena *a, env *e);
void  arena_deinit(arena *a);                                   /* a zeroed arena too */
void *arena_alloc(arena *a, size_t size, size_t align);         /* zeroed; NULL on failure; size 0 is fine */
char *arena_text(arena *a, const char *text, size_t length);    /* copy, NUL-terminated */
char *arena_printf(arena *a, const char *format, ...) ENV_PRINTF(2, 3);
#define ARENA_NEW(a, type, count) ((type *)arena_alloc((a), size_mul(sizeof(type), (count)), _Alignof(type)))

/* Scratch use: all that was allocated after the mark goes away. One block may stay allocated. ASan poisons it. */
typedef struct arena_mark { arena_block *block; size_t used; } arena_mark;
arena_mark arena_save(const arena *a);
void       arena_rewind(arena *a, arena_mark mark);

/* Growing arrays: a struct { T *at; uint32_t count, capacity; } in an arena. VEC_PUSH gives a pointer to a new zeroed
 * element, or NULL. Pointers into the array die with the next push; ids do not. */
#define VEC(T) struct { T *at; uint32_t count, capacity; }
#define VEC_PUSH(a, v)                                                                                              \
    ((v)->count < (v)->capacity ||                                                                                  \
     arena_vec_grow((a), (void **)&(v)->at, &(v)->capacity, sizeof(*(v)->at), (v)->count)                           \
         ? (memset(&(v)->at[(v)->count], 0, sizeof(*(v)->at)), &(v)->at[(v)->count++])                              \
         : NULL)
bool arena_vec_grow(arena *a, void **at, uint32_t *capacity, size_t size, uint32_t count);
/* Replaces the elements of a copied struct by a copy of their own. False: no memory. */
#define VEC_COPY(a, v) arena_vec_copy((a), (void **)&(v)->at, &(v)->capacity, sizeof(*(v)->at), (v)->count)
bool arena_vec_copy(arena *a, void **at, uint32_t *capacity, size_t size, uint32_t count);

#endif

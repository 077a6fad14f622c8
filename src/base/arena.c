/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - blocks that grow from 64 KiB to 4 MiB, handed out from the front.
 *
 * Under ASan everything that is not handed out is poisoned, with a gap after each piece, so that an overrun inside a
 * block is caught like one of malloc's. */
#include "base/arena.h"
#include "base/asan.h"
#include "base/os.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_ALIGN = 64, BLOCK_MIN = 64 * 1024, BLOCK_MAX = 4 * 1024 * 1024 };

struct arena_block {
    _Alignas(BLOCK_ALIGN) arena_block *older;
    size_t size; /* bytes, this header included */
};

void arena_init(arena *a, env *e)
{
    *a = (arena){ .e = e };
}

static void block_drop(arena *a, arena_block **list)
{
    arena_block *block = *list;
    ASAN_UNPOISON(block, block->size);
    *list = block->older;
    a->total -= block->size;
    mem_free(a->e, block, block->size, BLOCK_ALIGN);
}

/* Frees the newest block, or puts it on the list of spare blocks. Without is_kept one block is spare, the largest:
 * where a mark lies near the end of its block, each use of scratch memory needs a further block, and would allocate
 * one. */
static void block_leave(arena *a)
{
    arena_block *block = a->block;
    const bool is_spare = block->size <= BLOCK_MAX && (!a->spare || a->spare->size < block->size);
    if (!a->is_kept && !is_spare) {
        block_drop(a, &a->block);
        return;
    }
    while (!a->is_kept && a->spare) block_drop(a, &a->spare);
    ASAN_POISON((char *)block + sizeof *block, block->size - sizeof *block);
    a->block = block->older;
    block->older = a->spare;
    a->spare = block;
}

/* The smallest spare block with room, taken off its list; NULL where there is none. */
static arena_block *spare_take(arena *a, size_t least)
{
    arena_block **best = NULL;
    for (arena_block **at = &a->spare; *at; at = &(*at)->older)
        if ((*at)->size >= least && (!best || (*at)->size < (*best)->size)) best = at;
    if (!best) return NULL;
    arena_block *block = *best;
    *best = block->older;
    return block;
}

void arena_deinit(arena *a)
{
    while (a->block) block_drop(a, &a->block);
    while (a->spare) block_drop(a, &a->spare);
    *a = (arena){ .e = a->e, .is_kept = a->is_kept };
}

/* A new block with room for `need` bytes; what is left of the old one is given up. */
static bool block_add(arena *a, size_t need)
{
    const size_t least = size_add(sizeof(arena_block), need);
    arena_block *kept = spare_take(a, least);
    if (kept) {
        kept->older = a->block;
        a->block = kept;
        a->used = sizeof *kept;
        return true;
    }
    const uint64_t limit = a->e->limits.memory_max;
    while (a->spare && (a->total > limit || least > limit - a->total)) block_drop(a, &a->spare);
    const uint64_t room = limit > a->total ? limit - a->total : 0;
    size_t size = a->block ? size_mul(a->block->size, 2) : BLOCK_MIN;
    if (size > BLOCK_MAX) size = BLOCK_MAX;
    if (size < least) size = least;
    if (size > room) size = least;
    a->e->met_limit = a->e->met_limit || size > room;
    arena_block *block = size > room ? NULL : mem_alloc(a->e, size, BLOCK_ALIGN);
    if (!block) {
        a->failed = true;
        return false;
    }
    *block = (arena_block){ .older = a->block, .size = size };
    ASAN_POISON((char *)block + sizeof *block, size - sizeof *block);
    a->block = block;
    a->used = sizeof *block;
    a->total += size;
    return true;
}

/* Where the next piece starts, as an offset in the newest block. */
static size_t piece_start(const arena *a, size_t align)
{
    const uintptr_t at = (uintptr_t)a->block + a->used;
    return a->used + (size_t)(-at & (align - 1));
}

void *arena_alloc(arena *a, size_t size, size_t align)
{
    if (a->failed) return NULL;
    if (ASAN_REDZONE > 0 && align < 8) align = 8; /* the grain of ASan's shadow */
    const size_t need = size_add(size, ASAN_REDZONE);
    size_t start = a->block ? piece_start(a, align) : 0;
    if (!a->block || start > a->block->size || need > a->block->size - start) {
        const size_t slack = align > BLOCK_ALIGN ? align : 0;
        if (!block_add(a, size_add(need, slack))) return NULL;
        start = piece_start(a, align);
    }
    char *at = (char *)a->block + start;
    a->used = start + need;
    ASAN_UNPOISON(at, size);
    os_memory_hint_large(at, size); /* all of it is touched at once */
    memset(at, 0, size);
    return at;
}

char *arena_text(arena *a, const char *text, size_t length)
{
    char *copy = arena_alloc(a, size_add(length, 1), 1);
    if (copy && length) memcpy(copy, text, length);
    return copy;
}

char *arena_printf(arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        a->failed = true;
        return NULL;
    }
    char *text = arena_alloc(a, (size_t)length + 1, 1);
    if (!text) return NULL;
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

arena_mark arena_save(const arena *a)
{
    return (arena_mark){ a->block, a->used };
}

void arena_rewind(arena *a, arena_mark mark)
{
    while (a->block != mark.block) block_leave(a);
    a->used = mark.used;
    if (a->block) ASAN_POISON((char *)a->block + a->used, a->block->size - a->used);
}

bool arena_vec_grow(arena *a, void **at, uint32_t *capacity, size_t size, uint32_t count)
{
    if (*capacity > UINT32_MAX / 2) {
        a->failed = true;
        return false;
    }
    /* The first elements take 512 bytes at most: of large ones there is often one. */
    enum { FIRST_BYTES = 512, FIRST_MOST = 8 };
    const size_t fits = FIRST_BYTES / size, first = fits < 1 ? 1 : fits > FIRST_MOST ? FIRST_MOST : fits;
    const uint32_t want = *capacity ? *capacity * 2 : (uint32_t)first;
    void *fresh = arena_alloc(a, size_mul(size, want), _Alignof(max_align_t));
    if (!fresh) return false;
    if (count) memcpy(fresh, *at, size * count);
    *at = fresh;
    *capacity = want;
    return true;
}

bool arena_vec_copy(arena *a, void **at, uint32_t *capacity, size_t size, uint32_t count)
{
    void *fresh = arena_alloc(a, size_mul(size, count), _Alignof(max_align_t));
    if (!fresh) return false;
    if (count) memcpy(fresh, *at, size * count);
    *at = fresh;
    *capacity = count;
    return true;
}

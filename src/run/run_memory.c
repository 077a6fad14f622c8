/* SPDX-License-Identifier: Apache-2.0 */
/* run_memory.c - activation memory: one block, [workspace | slots | slab], of the context or of the caller.
 *
 * In a block of the context, storages lie where the plan has put them, for the largest sizes. In a caller's block they
 * move down as far as the sizes in use permit: a storage lies behind all those that the plan has put wholly below it.
 * So storages that the plan keeps apart stay apart, and a small shape needs a small block. */
#include "run/context.h"

#include <stdlib.h>
#include <string.h>

/* ---- the block ---- */

static size_t wanted_of(const context *c)
{
    size_t most = engine_memory_size(c->g, c->profile);
    for (uint32_t i = 0; i < c->g->profile_count && c->strategy == MEMORY_STATIC; i++)
        if (engine_memory_size(c->g, i) > most) most = engine_memory_size(c->g, i);
    return most;
}

static void place_block(context *c)
{
    c->workspace = c->memory.at;
    c->slab = c->memory.at ? (uint8_t *)c->memory.at + engine_slab_at(c->g, c->profile) : NULL;
}

static bool is_planned(const context *c, uint32_t storage)
{
    const engine_storage *s = context_storage(c, storage);
    return s->kind == STORAGE_SLAB && (!context_has_places(c) || s->place == PLACE_DEVICE);
}

/* ---- layouts for the sizes in use ---- */

typedef struct ordered {
    uint64_t key;
    uint32_t storage;
} ordered;

static int by_key(const void *a, const void *b)
{
    const ordered *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->storage < y->storage ? -1 : x->storage > y->storage;
}

static void sort_into(const context *c, ordered *list, bool by_end, uint32_t *out)
{
    for (uint32_t i = 0; i < c->slab_count; i++) {
        const engine_storage *s = context_storage(c, out[i]);
        list[i] = (ordered){ .key = s->at + (by_end ? s->bound : 0), .storage = out[i] };
    }
    qsort(list, c->slab_count, sizeof *list, by_key);
    for (uint32_t i = 0; i < c->slab_count; i++) out[i] = list[i].storage;
}

static sinter_status make_orders(context *c)
{
    c->slab_count = 0;
    c->slab_by_at = ARENA_NEW(&c->a, uint32_t, c->p->storage_count);
    c->slab_by_end = ARENA_NEW(&c->a, uint32_t, c->p->storage_count);
    if (!c->slab_by_at || !c->slab_by_end) return FAIL_MEMORY(&c->e, "a context");
    for (uint32_t i = 1; i < c->p->storage_count; i++) {
        if (!is_planned(c, i)) continue;
        c->slab_by_at[c->slab_count] = i;
        c->slab_by_end[c->slab_count++] = i;
    }
    const arena_mark mark = arena_save(&c->scratch);
    ordered *list = ARENA_NEW(&c->scratch, ordered, c->slab_count);
    if (list) {
        sort_into(c, list, false, c->slab_by_at);
        sort_into(c, list, true, c->slab_by_end);
    }
    const bool failed = c->slab_count && !list;
    arena_rewind(&c->scratch, mark);
    return failed ? FAIL_MEMORY(&c->e, "a context") : SINTER_OK;
}

/* Bytes of a storage with these sizes, with its padding. Sizes that only the run will know count as the largest. */
static uint64_t size_of(const context *c, uint32_t storage, const int64_t *dim_at)
{
    const engine_storage *s = context_storage(c, storage);
    const int64_t real = dim_at[s->size_dim];
    const uint64_t size = real >= 0 && (uint64_t)real < s->bound ? (uint64_t)real : s->bound;
    return (size + ENGINE_ALIGN - 1) / ENGINE_ALIGN * ENGINE_ALIGN;
}

/* Fills `at` by storage; returns the bytes of the slab. Never more than the plan's. */
static uint64_t lay_out(const context *c, const int64_t *dim_at, uint64_t *at)
{
    uint64_t below = 0, most = 0;
    uint32_t ended = 0;
    for (uint32_t i = 0; i < c->slab_count; i++) {
        const uint32_t storage = c->slab_by_at[i];
        const uint64_t planned = context_storage(c, storage)->at;
        for (; ended < c->slab_count; ended++) {
            const uint32_t other = c->slab_by_end[ended];
            const engine_storage *s = context_storage(c, other);
            if (s->at + s->bound > planned) break;
            const uint64_t end = at[other] + (s->bound ? size_of(c, other, dim_at) : 0);
            if (end > below) below = end;
        }
        at[storage] = below;
        const uint64_t end = below + size_of(c, storage, dim_at);
        if (end > most) most = end;
    }
    return most;
}

static size_t block_of(const context *c, uint64_t slab)
{
    return size_add(engine_slab_at(c->g, c->profile), size_add((size_t)slab, ENGINE_ALIGN));
}

sinter_status context_memory_wanted(context *c, size_t *out)
{
    const arena_mark mark = arena_save(&c->scratch);
    int64_t *symbol = ARENA_NEW(&c->scratch, int64_t, c->g->symbol_count),
            *dim_at = ARENA_NEW(&c->scratch, int64_t, c->g->dim_count);
    uint64_t *at = ARENA_NEW(&c->scratch, uint64_t, c->p->storage_count);
    sinter_status s = (symbol || !c->g->symbol_count) && dim_at && at ? SINTER_OK : FAIL_MEMORY(&c->e, "a shape");
    if (s == SINTER_OK) s = context_eval_inputs(c, symbol, dim_at, true);
    if (s == SINTER_OK) *out = c->strategy == MEMORY_CALLER ? block_of(c, lay_out(c, dim_at, at)) : wanted_of(c);
    arena_rewind(&c->scratch, mark);
    return s;
}

/* ---- shapes ---- */

/* Values that were prepared for another place of the memory go with it. */
static void move_shape(context *c, shape *s)
{
    uint8_t *const block = c->memory.at;
    for (uint32_t i = 1; i < c->p->value_count && s->block != block; i++) {
        const uint32_t storage = context_value(c, i)->storage;
        if (!s->value[i].data || !(is_planned(c, storage) || context_is_streamed(c, storage))) continue;
        s->value[i].data = block + ((uint8_t *)s->value[i].data - s->block);
        if (s == c->now) c->address[i] = s->value[i].data;
    }
    s->block = block;
}

sinter_status context_lay_out(context *c, shape *s)
{
    if (c->strategy != MEMORY_CALLER) return SINTER_OK;
    if (!s->slab_at) {
        s->slab_at = ARENA_NEW(&s->a, uint64_t, c->p->storage_count);
        if (!s->slab_at) return FAIL_MEMORY(&c->e, "a shape");
        s->slab_size = lay_out(c, s->dim, s->slab_at);
        s->block = c->memory.at;
    }
    if (c->memory.size < block_of(c, s->slab_size))
        return FAIL(&c->e, INVALID_ARG, "the context has %zu bytes of memory, these shapes need %zu", c->memory.size,
                    block_of(c, s->slab_size));
    for (uint32_t i = 0; i < c->slab_count; i++) {
        const uint32_t storage = c->slab_by_at[i];
        c->base[storage] = c->slab + s->slab_at[storage];
    }
    for (uint32_t i = 1; i < c->p->storage_count && c->weight.count; i++)
        if (context_is_streamed(c, i)) c->base[i] = context_weight_base(c, i);
    move_shape(c, s);
    return SINTER_OK;
}

/* ---- whose it is ---- */

sinter_status context_make_memory(context *c)
{
    if (c->strategy == MEMORY_CALLER) {
        TRY(make_orders(c));
        place_block(c);
        return SINTER_OK;
    }
    const size_t wanted = wanted_of(c);
    if (!c->memory.at || c->memory.size < wanted) {
        context_drop_memory(c, false);
        c->memory.at = context_alloc(c, PLACE_DEVICE, wanted);
        if (!c->memory.at)
            return NOTE(&c->e, c->e.error->status, "making a context of %llu bytes of activations and %zu of workspace",
                        (unsigned long long)c->p->slab_size, c->g->workspace[c->profile]);
        c->memory.size = wanted;
    }
    place_block(c);
    return SINTER_OK;
}

void context_drop_memory(context *c, bool is_kept)
{
    if (is_kept) return;
    if (c->strategy != MEMORY_CALLER) context_free(c, PLACE_DEVICE, c->memory.at, c->memory.size);
    c->memory = (buffer){ 0 };
    c->slab = NULL;
    c->workspace = NULL;
}

sinter_status context_set_memory(context *c, void *data, size_t size)
{
    if (c->strategy != MEMORY_CALLER)
        return FAIL(&c->e, INVALID_ARG, "the context has memory of its own: create it with memory=user");
    const sinter_status ended = context_end(c);
    TRY(context_settle(c));
    context_give_memory(c);
    c->memory = (buffer){ 0 };
    place_block(c);
    if (!data) return ended;
    const size_t least = block_of(c, 0);
    if ((uintptr_t)data % ENGINE_ALIGN)
        return FAIL(&c->e, INVALID_ARG, "the memory for activations begins at %p, expected a multiple of %d bytes",
                    data, ENGINE_ALIGN);
    if (size < least)
        return FAIL(&c->e, INVALID_ARG, "the memory for activations has %zu bytes, the least is %zu", size, least);
    c->memory = (buffer){ .at = data, .size = size };
    place_block(c);
    return ended;
}

sinter_status context_take_memory(context *c)
{
    if (c->strategy != MEMORY_CALLER) return SINTER_OK;
    if (!c->memory.at)
        return FAIL(&c->e, INVALID_ARG,
                    "the context has no memory for activations: sinter_context_set_memory gives it");
    c->block.at = c->memory.at;
    c->block.size = c->memory.size;
    c->block.stream = c->stream;
    if (engine_block_take(c->g, &c->block)) return SINTER_OK;
    return FAIL(&c->e, INVALID_ARG,
                "the memory for activations overlaps that of another context of this engine, which is running");
}

void context_give_memory(context *c)
{
    engine_block_give(c->g, &c->block);
}

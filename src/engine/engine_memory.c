/* SPDX-License-Identifier: Apache-2.0 */
/* engine_memory.c - memory of an engine's device, for callers who have no other way to it; and who uses which memory of
 * theirs at the moment. */
#include "base/os.h"
#include "engine/engine.h"

#include <string.h>

/* ---- memory of callers in use ---- */

static void lock(engine *g)
{
    while (__atomic_exchange_n(&g->lock, 1, __ATOMIC_ACQUIRE)) os_wait(&g->lock, 1, 0);
}

static void unlock(engine *g)
{
    __atomic_store_n(&g->lock, 0, __ATOMIC_RELEASE);
    os_wake_all(&g->lock);
}

/* The stream cannot go away: who destroys it gives the block back before. */
static bool is_idle(const engine *g, const engine_block *b)
{
    return b->stream && g->backend->stream_is_done && g->backend->stream_is_done(g->device, b->stream);
}

static bool is_in_the_way(const engine *g, const engine_block *b, const engine_block *other)
{
    const uintptr_t first = (uintptr_t)b->at, second = (uintptr_t)other->at;
    if (first >= second + other->size || second >= first + b->size) return false;
    return !(b->native && b->native == other->native) && !is_idle(g, other);
}

bool engine_block_take(engine *g, engine_block *b)
{
    bool is_free = true;
    if (b->is_taken) return true;
    lock(g);
    for (const engine_block *x = g->taken; x && is_free; x = x->next) is_free = !is_in_the_way(g, b, x);
    if (is_free) {
        b->next = g->taken;
        g->taken = b;
        b->is_taken = true;
    }
    unlock(g);
    return is_free;
}

void engine_block_give(engine *g, engine_block *b)
{
    if (!b->is_taken) return;
    lock(g);
    engine_block **at = &g->taken;
    while (*at != b) at = &(*at)->next;
    *at = b->next;
    b->is_taken = false;
    unlock(g);
}

/* ---- memory for callers ---- */

static sinter_status begin(const engine *g, env *e, sinter_error *error)
{
    *e = g->e;
    e->budget = NULL; /* it is the caller's */
    e->error = error ? error : &e->error_own;
    return g->is_offline ? FAIL(e, INVALID_ARG, "the engine was opened without a device: it has no memory") : SINTER_OK;
}

static bool is_pinned(const engine *g, sinter_place place)
{
    return place != SINTER_PLACE_DEVICE && g->backend->host_alloc;
}

sinter_status engine_memory_alloc(engine *g, sinter_place place, size_t size, void **out, sinter_error *error)
{
    env e;
    TRY(begin(g, &e, error));
    *out = (is_pinned(g, place) ? g->backend->host_alloc : g->backend->memory_alloc)(&e, g->device, size ? size : 1);
    if (*out) return SINTER_OK;
    return NOTE(&e, e.error->status, "allocating %zu bytes %s", size,
                place == SINTER_PLACE_DEVICE ? "of the device" : "of the host");
}

void engine_memory_free(engine *g, sinter_place place, void *data, size_t size)
{
    env e = g->e;
    e.budget = NULL;
    e.error = &e.error_own;
    if (data)
        (is_pinned(g, place) ? g->backend->host_free : g->backend->memory_free)(&e, g->device, data, size ? size : 1);
}

static sinter_status copy(env *e, engine *g, copy_kind kind, void *to, const void *from, size_t size)
{
    const backend *b = g->backend;
    stream *s = NULL;
    TRY(b->stream_create(e, g->device, NULL, &s));
    sinter_status status = b->copy(e, g->device, s, kind, to, from, size);
    if (status == SINTER_OK) status = b->stream_wait(e, g->device, s, NULL);
    b->stream_destroy(e, g->device, s);
    return status;
}

sinter_status engine_memory_copy(engine *g, void *to, sinter_place to_place, const void *from, sinter_place from_place,
                                 size_t size, sinter_error *error)
{
    env e;
    TRY(begin(g, &e, error));
    const bool is_up = to_place == SINTER_PLACE_DEVICE, is_down = from_place == SINTER_PLACE_DEVICE;
    if (size && g->backend->copy && (is_up || is_down))
        return copy(&e, g, !is_down ? COPY_TO_DEVICE : is_up ? COPY_ON_DEVICE : COPY_FROM_DEVICE, to, from, size);
    if (size) memmove(to, from, size);
    return SINTER_OK;
}

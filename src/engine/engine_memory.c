/* SPDX-License-Identifier: Apache-2.0 */
/* engine_memory.c - memory of an engine's device, for callers who have no other way to it. */
#include "engine/engine.h"

#include <string.h>

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

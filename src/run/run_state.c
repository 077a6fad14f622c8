/* SPDX-License-Identifier: Apache-2.0 */
/* run_state.c - what a context keeps from run to run, and how many rows of it count.
 *
 * The host knows the number: it tells each run before the run begins, and a run that ended well has appended its rows.
 * A run that failed half-way may have overwritten a part of the state, so the next run wants a state that was reset. */
#include "run/context.h"

#include <string.h>

enum { ZEROS = 1 << 20 }; /* bytes that are copied to a device at once */

static bool is_kept(const engine_storage *s)
{
    return s->kind == STORAGE_STATE || s->kind == STORAGE_ROWS;
}

sinter_status context_make_state(context *c)
{
    for (uint32_t i = 1; i < c->p->storage_count; i++) {
        const engine_storage *s = context_storage(c, i);
        if (!is_kept(s)) continue;
        c->has_state = true;
        const size_t size = size_align(size_add((size_t)s->bound, !s->bound), 64);
        c->own[i].at = context_alloc(c, (storage_place)s->place, size);
        if (!c->own[i].at) return NOTE(&c->e, c->e.error->status, "making room for a state of %zu bytes", size);
        c->own[i].size = size;
        c->base[i] = c->own[i].at;
        if (s->kind == STORAGE_ROWS && context_has_places(c) && s->place == PLACE_DEVICE)
            TRY(context_ensure_stage(c, i, size));
    }
    return SINTER_OK;
}

static int64_t appended(const context *c)
{
    return c->g->state ? c->now->dim[c->g->state->append] : 0;
}

static sinter_status tell_rows(context *c, int64_t before, int64_t after)
{
    for (uint32_t i = 1; c->g->state && i < c->p->storage_count; i++) {
        const engine_storage *s = context_storage(c, i);
        if (s->kind != STORAGE_ROWS) continue;
        const bool is_sent = c->stage[i].at != NULL;
        /* A copy of the run before may not have ended. */
        TRY(is_sent ? context_settle(c) : context_before_host(c));
        int64_t *to = is_sent ? c->stage[i].at : c->own[i].at;
        to[ROWS_BEFORE] = before;
        to[ROWS_AFTER] = after;
        if (is_sent) TRY(context_copy(c, COPY_TO_DEVICE, c->own[i].at, to, STATE_ROWS * sizeof *to));
    }
    return SINTER_OK;
}

sinter_status context_begin_state(context *c)
{
    if (!c->has_state) return SINTER_OK;
    if (c->is_state_torn)
        return FAIL(&c->e, INVALID_ARG, "a run that failed has left a state that is neither old nor new: reset it");
    const int64_t more = appended(c), capacity = c->g->state ? (int64_t)c->g->state->capacity : 0;
    int64_t after;
    if (more < 0 || !i64_add(c->rows, more, &after) || after > capacity)
        return FAIL(&c->e, INVALID_ARG, "the state has %lld rows and the run appends %lld: its capacity is %lld",
                    (long long)c->rows, (long long)more, (long long)capacity);
    TRY(tell_rows(c, c->rows, after));
    c->is_state_torn = true;
    return SINTER_OK;
}

void context_end_state(context *c)
{
    if (!c->has_state) return;
    c->rows += appended(c);
    c->is_state_torn = false;
}

static sinter_status fill_zeros(context *c, uint32_t storage)
{
    const size_t size = (size_t)context_storage(c, storage)->bound;
    if (!context_has_places(c) || context_storage(c, storage)->place == PLACE_HOST) {
        if (size) memset(c->own[storage].at, 0, size);
        return SINTER_OK;
    }
    const size_t part = size < ZEROS ? size : ZEROS;
    if (!part) return SINTER_OK;
    TRY(context_ensure_stage(c, storage, part));
    memset(c->stage[storage].at, 0, part);
    for (size_t at = 0; at < size; at += part)
        TRY(context_copy(c, COPY_TO_DEVICE, (char *)c->own[storage].at + at, c->stage[storage].at,
                         size - at < part ? size - at : part));
    return SINTER_OK;
}

sinter_status context_reset_state(context *c)
{
    TRY(context_settle(c));
    c->is_state_torn = true;
    for (uint32_t i = 1; i < c->p->storage_count; i++)
        if (context_storage(c, i)->kind == STORAGE_STATE) TRY(fill_zeros(c, i));
    TRY(context_settle(c));
    c->rows = 0;
    c->is_state_torn = false;
    return SINTER_OK;
}

sinter_status context_set_rows(context *c, int64_t rows)
{
    const int64_t capacity = c->g->state ? (int64_t)c->g->state->capacity : 0;
    if (rows < 0 || rows > capacity)
        return FAIL(&c->e, INVALID_ARG, "%lld rows, the state has 0 to %lld", (long long)rows, (long long)capacity);
    TRY(context_end(c));
    c->rows = rows;
    return SINTER_OK;
}

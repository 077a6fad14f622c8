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
    c->has_state = false;
    if (!c->is_state_kept) {
        c->rows = 0;
        c->is_state_torn = false;
    }
    c->is_state_fresh = !c->is_state_kept;
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
    c->is_state_fresh = false;
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
    if (!c->is_ready && !c->own)
        return FAIL(&c->e, INVALID_ARG, "the context has no profile: a change of profile failed");
    TRY(context_settle(c));
    c->is_state_torn = true;
    for (uint32_t i = 1; i < c->p->storage_count; i++)
        if (context_storage(c, i)->kind == STORAGE_STATE) TRY(fill_zeros(c, i));
    TRY(context_settle(c));
    c->rows = 0;
    c->is_state_torn = false;
    c->is_state_fresh = true;
    return SINTER_OK;
}

/* ---- from one profile to another ---- */

static const engine_storage *state_of(const context *c, uint32_t profile, uint32_t i, uint32_t *storage)
{
    const engine_profile *p = &c->g->profile[profile];
    *storage = c->g->value[c->g->state_value[c->g->state_first[profile] + i]].storage;
    return &c->g->storage[p->storage_first + *storage];
}

sinter_status context_keep_states(context *c, uint32_t profile, kept_states *out)
{
    const uint32_t count = engine_state_count(c->g, c->profile);
    uint32_t here, there;
    *out = (kept_states){ 0 };
    if (!c->is_ready || !c->has_state || (c->is_state_fresh && !c->rows)) return SINTER_OK;
    bool is_same = count == engine_state_count(c->g, profile);
    for (uint32_t i = 0; i < count && is_same; i++) {
        const engine_storage *a = state_of(c, c->profile, i, &here), *b = state_of(c, profile, i, &there);
        is_same = a->bound == b->bound && a->place == b->place;
    }
    if (!is_same)
        return FAIL(&c->e, INVALID_ARG, "profile %u has states of other sizes than profile %u: reset the state first",
                    profile, c->profile);
    out->at = mem_zalloc(&c->e, size_mul(count, sizeof *out->at + sizeof *out->place), _Alignof(buffer));
    if (!out->at) return FAIL_MEMORY(&c->e, "states");
    out->place = (storage_place *)(void *)(out->at + count);
    out->count = count;
    for (uint32_t i = 0; i < count; i++) {
        out->place[i] = (storage_place)state_of(c, c->profile, i, &here)->place;
        out->at[i] = c->own[here];
        c->own[here] = (buffer){ 0 };
    }
    return SINTER_OK;
}

void context_adopt_states(context *c, kept_states *kept)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        uint32_t storage;
        (void)state_of(c, c->profile, i, &storage);
        const buffer made = c->own[storage];
        c->own[storage] = kept->at[i];
        c->base[storage] = kept->at[i].at;
        kept->at[i] = made;
    }
}

void context_free_states(context *c, kept_states *kept)
{
    for (uint32_t i = 0; i < kept->count; i++) context_free(c, kept->place[i], kept->at[i].at, kept->at[i].size);
    if (kept->at) mem_free(&c->e, kept->at, kept->count * (sizeof *kept->at + sizeof *kept->place), _Alignof(buffer));
    *kept = (kept_states){ 0 };
}

sinter_status context_set_rows(context *c, int64_t rows)
{
    const int64_t capacity = c->g->state ? (int64_t)c->g->state->capacity : 0;
    if (rows < 0 || rows > capacity)
        return FAIL(&c->e, INVALID_ARG, "%lld rows, the state has 0 to %lld", (long long)rows, (long long)capacity);
    TRY(context_end(c));
    if (!c->is_ready) return FAIL(&c->e, INVALID_ARG, "the context has no profile: a change of profile failed");
    c->rows = rows;
    return SINTER_OK;
}

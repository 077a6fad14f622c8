/* SPDX-License-Identifier: Apache-2.0 */
/* engine_weights.c - weights on a device with memory of its own: all of them, or as many as a budget permits.
 *
 * Small weights stay on the device first. The others are streamed: they stay in pinned memory of the host, and each run
 * copies them into one of two slots of the context before the steps that read them. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

/* A slot holds the weights of a few steps: enough that a launch is small beside its copy, little enough that copies
 * begin early. */
enum { SLOT_MOST = 4 << 20, SLOT_PARTS = 8, HALF = 4 << 20 };

static bool is_on_device(const engine *g, const engine_storage *s)
{
    return g->backend->copy && s->kind == STORAGE_WEIGHT && s->place == PLACE_DEVICE && s->at != WEIGHT_ABSENT;
}

static uint64_t aligned(uint64_t size)
{
    return (size + ENGINE_ALIGN - 1) / ENGINE_ALIGN * ENGINE_ALIGN;
}

/* ---- which of them ---- */

typedef struct candidate {
    uint64_t size, at;
    uint32_t storage;
} candidate;

static int by_place(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->storage < y->storage ? -1 : x->storage > y->storage;
}

static int by_size(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return by_place(a, b);
}

/* One for each weight, the largest where several lie at one offset. */
static uint32_t list_weights(const engine *g, candidate *list)
{
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < g->storage_count; i++) {
        const engine_storage *s = &g->storage[i];
        if (is_on_device(g, s)) list[count++] = (candidate){ .size = aligned(s->bound), .at = s->at, .storage = i };
    }
    qsort(list, count, sizeof *list, by_place);
    for (uint32_t i = 0; i < count; i++)
        if (!i || list[i].at != list[i - 1].at) list[kept++] = list[i];
    return kept;
}

/* All storages have the place of the weight at their offset. */
static void spread(const engine *g, const candidate *list, uint32_t count, engine_weight_place *place)
{
    for (uint32_t i = 0; i < g->storage_count; i++) {
        if (!is_on_device(g, &g->storage[i])) continue;
        const uint64_t at = g->storage[i].at;
        uint32_t low = 0, high = count;
        while (high - low > 1) {
            const uint32_t mid = low + (high - low) / 2;
            if (list[mid].at <= at) low = mid;
            else high = mid;
        }
        place[i] = place[list[low].storage];
    }
}

static void choose(const engine *g, candidate *list, uint32_t count, uint64_t budget, engine_weight_place *place,
                   uint64_t *resident, uint64_t *streamed)
{
    *resident = *streamed = 0;
    qsort(list, count, sizeof *list, by_size);
    for (uint32_t i = 0; i < count; i++) {
        const bool stays = !budget || list[i].size <= budget - *resident;
        place[list[i].storage].is_streamed = !stays;
        if (stays) *resident += list[i].size;
    }
    qsort(list, count, sizeof *list, by_place);
    *resident = 0;
    for (uint32_t i = 0; i < count; i++) {
        engine_weight_place *p = &place[list[i].storage];
        uint64_t *const total = p->is_streamed ? streamed : resident;
        p->at = *total;
        *total += list[i].size;
    }
    spread(g, list, count, place);
}

/* ---- slots ---- */

static uint64_t step_bytes(const engine *g, const engine_profile *p, const engine_step *s)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < s->in_count; i++) {
        const uint32_t v = g->arg[s->in_at + i];
        const uint32_t storage = v ? p->storage_first + g->value[p->value_first + v].storage : 0;
        if (v && g->weight_place[storage].is_streamed) size += aligned(g->storage[storage].bound);
    }
    return size;
}

static void size_slots(engine *g)
{
    for (uint32_t k = 0; k < g->profile_count; k++) {
        const engine_profile *p = &g->profile[k];
        uint64_t most = 0, total = 0;
        for (uint32_t i = 0; i < p->step_count; i++) {
            const uint64_t size = step_bytes(g, p, &g->step[p->step_first + i]);
            total += size;
            if (size > most) most = size;
        }
        const uint64_t part = aligned(total / SLOT_PARTS < SLOT_MOST ? total / SLOT_PARTS : SLOT_MOST);
        g->slot_size[k] = (size_t)(most > part ? most : part);
    }
}

/* ---- to the device ---- */

/* Copies through two halves of pinned memory: one is filled while the other is under way. */
typedef struct pump {
    engine *g;
    stream *s;
    uint8_t *stage;
    size_t half, filled;
    uint32_t turn;
    uint64_t to; /* in device_weights */
} pump;

static sinter_status pump_send(pump *p)
{
    data_fault none = { 0 };
    const engine *g = p->g;
    if (!p->filled) return SINTER_OK;
    TRY(g->backend->stream_wait(&p->g->e, g->device, p->s, &none));
    TRY(g->backend->copy(&p->g->e, g->device, p->s, COPY_TO_DEVICE, g->device_weights + p->to,
                         p->stage + p->turn * p->half, p->filled));
    p->to += p->filled;
    p->filled = 0;
    p->turn = !p->turn;
    return SINTER_OK;
}

/* `size` bytes, then zeros up to `padded`. */
static sinter_status pump_put(pump *p, const uint8_t *from, uint64_t size, uint64_t padded)
{
    for (uint64_t at = 0; at < padded;) {
        const uint64_t left = at < size ? size - at : padded - at;
        const size_t part = left < p->half - p->filled ? (size_t)left : p->half - p->filled;
        uint8_t *to = p->stage + p->turn * p->half + p->filled;
        if (at < size) memcpy(to, from + at, part);
        else memset(to, 0, part);
        at += part;
        p->filled += part;
        if (p->filled == p->half) TRY(pump_send(p));
    }
    return SINTER_OK;
}

static sinter_status copy_all(engine *g, stream *s, const candidate *list, uint32_t count, pump *p)
{
    data_fault none = { 0 };
    for (uint32_t i = 0; i < count; i++) {
        const engine_weight_place *to = &g->weight_place[list[i].storage];
        const uint64_t size = g->storage[list[i].storage].bound;
        const uint8_t *from = g->weights + list[i].at;
        if (to->is_streamed && g->host_weights && size) memcpy(g->host_weights + to->at, from, (size_t)size);
        if (to->is_streamed || !size) continue;
        if (p->stage) TRY(pump_put(p, from, size, list[i].size));
        else TRY(g->backend->copy(&g->e, g->device, s, COPY_TO_DEVICE, g->device_weights + to->at, from, (size_t)size));
    }
    if (p->stage) TRY(pump_send(p));
    return g->backend->stream_wait(&g->e, g->device, s, &none);
}

static sinter_status copy_staged(engine *g, stream *s, const candidate *list, uint32_t count)
{
    const size_t half = size_align(g->device_size < HALF ? (size_t)g->device_size : HALF, ENGINE_ALIGN);
    pump p = { .g = g, .s = s, .half = half };
    env quiet = g->e; /* it goes without, too */
    quiet.error = &quiet.error_own;
    if (half) p.stage = g->backend->host_alloc(&quiet, g->device, 2 * half);
    const sinter_status status = copy_all(g, s, list, count, &p);
    if (p.stage) g->backend->host_free(&g->e, g->device, p.stage, 2 * half);
    return status;
}

void engine_drop_weights(engine *g)
{
    env quiet = g->e;
    quiet.error = &quiet.error_own;
    if (g->device_weights) {
        g->backend->memory_free(&quiet, g->device, g->device_weights, (size_t)g->device_size);
        env_give(&g->e, (size_t)g->device_size);
    }
    if (g->host_weights) {
        g->backend->host_free(&quiet, g->device, g->host_weights, (size_t)g->streamed_size);
        env_give(&g->e, (size_t)g->streamed_size);
    }
    g->device_weights = g->host_weights = NULL;
    g->device_size = g->streamed_size = 0;
}

static sinter_status take_memory(engine *g, uint64_t resident, uint64_t streamed)
{
    if (resident > SIZE_MAX || (resident && !env_take(&g->e, (size_t)resident)))
        return FAIL(&g->e, NO_MEMORY, "%llu bytes of weights pass the limit memory_max, %llu",
                    (unsigned long long)resident, (unsigned long long)g->e.limits.memory_max);
    if (resident) {
        g->device_weights = g->backend->memory_alloc(&g->e, g->device, (size_t)resident);
        if (!g->device_weights) {
            env_give(&g->e, (size_t)resident);
            return NOTE(&g->e, g->e.error->status, "moving %llu bytes of weights to the device",
                        (unsigned long long)resident);
        }
    }
    g->device_size = resident;
    if (!streamed || !env_take(&g->e, (size_t)streamed)) return SINTER_OK;
    env quiet = g->e; /* it goes without, too: copies are slower then */
    quiet.error = &quiet.error_own;
    g->host_weights = g->backend->host_alloc(&quiet, g->device, (size_t)streamed);
    if (!g->host_weights) env_give(&g->e, (size_t)streamed);
    return SINTER_OK;
}

static sinter_status place_all(engine *g, candidate *list, uint64_t budget)
{
    uint64_t resident, streamed;
    const uint32_t count = list_weights(g, list);
    choose(g, list, count, budget, g->weight_place, &resident, &streamed);
    if (streamed && (!g->backend->stream_order || streamed > SIZE_MAX))
        return FAIL(&g->e, UNSUPPORTED, "the device '%s' has no streaming of weights", g->backend->name);
    TRY(take_memory(g, resident, streamed));
    g->streamed_size = streamed;
    g->weight_budget = budget;
    size_slots(g);
    stream *s = NULL;
    if (!count) return SINTER_OK;
    TRY(g->backend->stream_create(&g->e, g->device, NULL, &s));
    const sinter_status status = copy_staged(g, s, list, count);
    g->backend->stream_destroy(&g->e, g->device, s);
    return NOTE(&g->e, status, "copying %llu bytes of weights to the device", (unsigned long long)resident);
}

sinter_status engine_place_weights(engine *g, uint64_t budget)
{
    engine_drop_weights(g);
    candidate *list = mem_alloc(&g->e, size_mul(g->storage_count + 1u, sizeof *list), _Alignof(candidate));
    if (!list) return FAIL_MEMORY(&g->e, "an engine");
    const sinter_status s = place_all(g, list, budget);
    mem_free(&g->e, list, (g->storage_count + 1u) * sizeof *list, _Alignof(candidate));
    return s;
}

uint64_t engine_streamable_size(env *e, const engine *g)
{
    uint64_t size = 0;
    candidate *list = mem_alloc(e, size_mul(g->storage_count + 1u, sizeof *list), _Alignof(candidate));
    const uint32_t count = list ? list_weights(g, list) : 0;
    for (uint32_t i = 0; i < count; i++) size += list[i].size;
    if (list) mem_free(e, list, (g->storage_count + 1u) * sizeof *list, _Alignof(candidate));
    return size;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* run_weights.c - weights that do not stay on the device: copied into one of two slots before the item that reads them,
 * while the item before it still runs.
 *
 * Copies have a stream of their own. Before a slot is filled, that stream waits for all that was launched so far: among
 * it is what has read the slot last. Before an item is launched, its stream waits for the copies. So an item runs
 * beside the copies of the next one, and any order of items is right, also that of branches and loops. */
#include "run/context.h"

static uint64_t aligned(uint64_t size)
{
    return (size + ENGINE_ALIGN - 1) / ENGINE_ALIGN * ENGINE_ALIGN;
}

static uint8_t *slot_of(const context *c, uint32_t slot)
{
    if (!c->memory.at) return NULL;
    return (uint8_t *)c->memory.at + engine_slots_at(c->g, c->profile) + slot * c->g->slot_size[c->profile];
}

bool context_is_streamed(const context *c, uint32_t storage)
{
    return c->g->weight_place[c->p->storage_first + storage].is_streamed;
}

uint8_t *context_weight_base(const context *c, uint32_t storage)
{
    const engine_weight_place *w = &c->g->weight_place[c->p->storage_first + storage];
    if (!w->is_streamed) return c->g->device_weights ? c->g->device_weights + w->at : NULL;
    const run_place first = c->weight_first[storage];
    uint8_t *const slot = slot_of(c, first.slot);
    return slot ? slot + first.at : NULL;
}

static const run_weight *find(const context *c, const run_item *item, uint32_t storage)
{
    for (uint32_t i = 0; i < item->weight_count; i++)
        if (c->weight.at[item->weight_first + i].storage == storage) return &c->weight.at[item->weight_first + i];
    return NULL;
}

/* The storage of a step's operand that is streamed; 0: it is not. */
static uint32_t streamed_of(const context *c, const engine_step *s, uint32_t i)
{
    const uint32_t v = context_args(c, s->in_at)[i];
    const uint32_t storage = v ? context_value(c, v)->storage : 0;
    return storage && context_is_streamed(c, storage) ? storage : 0;
}

bool context_weights_fit(const context *c, const run_item *item, uint32_t step)
{
    const engine_step *s = context_step(c, step);
    uint64_t size = 0, more = 0;
    if (!c->g->slot_size || !c->g->slot_size[c->profile]) return true;
    for (uint32_t i = 0; i < item->weight_count; i++) {
        const run_weight *w = &c->weight.at[item->weight_first + i];
        size = w->at + aligned(context_storage(c, w->storage)->bound);
    }
    for (uint32_t i = 0; i < s->in_count; i++) {
        const uint32_t storage = streamed_of(c, s, i);
        if (storage && !find(c, item, storage)) more += aligned(context_storage(c, storage)->bound);
    }
    return size + more <= c->g->slot_size[c->profile];
}

static sinter_status add_weight(context *c, run_item *item, uint32_t storage)
{
    uint64_t at = 0;
    if (item->weight_count) {
        const run_weight *last = &c->weight.at[item->weight_first + item->weight_count - 1];
        at = last->at + aligned(context_storage(c, last->storage)->bound);
    } else {
        item->weight_first = c->weight.count;
        item->slot = c->slots_used++ % 2;
    }
    run_weight *w = VEC_PUSH(&c->a, &c->weight);
    if (!w) return FAIL_MEMORY(&c->e, "a context");
    *w = (run_weight){ .storage = storage, .at = at };
    item->weight_count++;
    run_place *first = &c->weight_first[storage];
    if (!first->is_set) *first = (run_place){ .slot = item->slot, .at = at, .is_set = true };
    return SINTER_OK;
}

sinter_status context_weights_add(context *c, run_item *item, uint32_t step)
{
    const engine_step *s = context_step(c, step);
    if (!c->g->slot_size || !c->g->slot_size[c->profile]) return SINTER_OK;
    for (uint32_t i = 0; i < s->in_count; i++) {
        const uint32_t storage = streamed_of(c, s, i);
        if (storage && !find(c, item, storage)) TRY(add_weight(c, item, storage));
    }
    return SINTER_OK;
}

/* ---- running ---- */

void context_weights_address(context *c, const run_item *item)
{
    for (uint32_t i = item->first; i < item->first + item->count && item->weight_count; i++) {
        const engine_step *s = context_step(c, i);
        for (uint32_t k = 0; k < s->in_count; k++) {
            const uint32_t storage = streamed_of(c, s, k), v = context_args(c, s->in_at)[k];
            if (!storage) continue;
            const uint8_t *data = c->now->value[v].data;
            c->address[v] = slot_of(c, item->slot) + find(c, item, storage)->at + (data - (uint8_t *)c->base[storage]);
        }
    }
}

static const uint8_t *source_of(const context *c, uint32_t storage)
{
    if (!c->g->host_weights) return c->g->weights + context_storage(c, storage)->at;
    return c->g->host_weights + c->g->weight_place[c->p->storage_first + storage].at;
}

static sinter_status fetch(context *c, const run_item *item)
{
    const backend *b = c->g->backend;
    if (!c->weight_stream) TRY(b->stream_create(&c->e, c->g->device, NULL, &c->weight_stream));
    c->is_busy = c->is_fetching = true;
    TRY(b->stream_order(&c->e, c->g->device, c->weight_stream, c->stream));
    for (uint32_t i = 0; i < item->weight_count; i++) {
        const run_weight *w = &c->weight.at[item->weight_first + i];
        const size_t size = (size_t)context_storage(c, w->storage)->bound;
        if (size)
            TRY(b->copy(&c->e, c->g->device, c->weight_stream, COPY_TO_DEVICE, slot_of(c, item->slot) + w->at,
                        source_of(c, w->storage), size));
    }
    c->fetched = item;
    return SINTER_OK;
}

sinter_status context_weights_take(context *c, const run_region *r, uint32_t i)
{
    const run_item *item = &r->item[i];
    if (!item->weight_count) return SINTER_OK;
    if (c->fetched != item) TRY(fetch(c, item));
    c->fetched = NULL;
    TRY(c->g->backend->stream_order(&c->e, c->g->device, c->stream, c->weight_stream));
    context_weights_address(c, item);
    for (i++; i < r->count && !r->item[i].weight_count; i++) continue;
    return i < r->count && r->item[i].slot != item->slot ? fetch(c, &r->item[i]) : SINTER_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* run_place.c - whose memory a value lies in, and the copies between host and device.
 *
 * A caller's memory is used where it lies if kernels can reach it there. Host memory goes to and from a device through
 * pinned memory of the context, so that copies are asynchronous; it is made once for the largest size seen. */
#include "run/context.h"

#include <string.h>

static void *take(context *c, storage_place place, size_t size, bool grows)
{
    const backend *b = c->g->backend;
    if (place == PLACE_HOST) return b->host_alloc(&c->e, c->g->device, size);
    if (grows && b->memory_grow) return b->memory_grow(&c->e, c->g->device, NULL, 0, size);
    return b->memory_alloc(&c->e, c->g->device, size);
}

/* What a driver gives is counted here, what the caller's allocator gives where it is asked. */
static void *alloc(context *c, storage_place place, size_t size, bool grows)
{
    const backend *b = c->g->backend;
    if (!b->copy) return b->memory_alloc(&c->e, c->g->device, size);
    if (!env_take(&c->e, size)) {
        (void)FAIL_MEMORY(&c->e, "a context");
        return NULL;
    }
    void *at = take(c, place, size, grows);
    if (!at) env_give(&c->e, size);
    return at;
}

void *context_alloc(context *c, storage_place place, size_t size)
{
    return alloc(c, place, size, false);
}

void *context_alloc_growing(context *c, storage_place place, size_t size)
{
    return alloc(c, place, size, true);
}

void *context_grow(context *c, storage_place place, void *at, size_t old_size, size_t size)
{
    const backend *b = c->g->backend;
    if (!b->memory_grow || place == PLACE_HOST || !env_take(&c->e, size - old_size)) return NULL;
    sinter_error quiet = { 0 }, *const error = c->e.error;
    c->e.error = &quiet;
    void *grown = b->memory_grow(&c->e, c->g->device, at, old_size, size);
    c->e.error = error;
    if (!grown) env_give(&c->e, size - old_size);
    return grown;
}

void context_free(context *c, storage_place place, void *at, size_t size)
{
    const backend *b = c->g->backend;
    if (!at) return;
    if (place == PLACE_HOST && b->copy) b->host_free(&c->e, c->g->device, at, size);
    else b->memory_free(&c->e, c->g->device, at, size);
    if (b->copy) env_give(&c->e, size);
}

sinter_status context_settle(context *c)
{
    if (!c->is_busy) return SINTER_OK;
    data_fault fault = { 0 };
    const bool is_fetching = c->is_fetching;
    c->is_busy = c->is_copying = c->is_receiving = c->is_fetching = false;
    sinter_status s = c->g->backend->stream_wait(&c->e, c->g->device, c->stream, &fault);
    /* Copies for a step that was not reached. */
    if (is_fetching) {
        data_fault none = { 0 };
        const sinter_status fetched = c->g->backend->stream_wait(&c->e, c->g->device, c->weight_stream, &none);
        if (s == SINTER_OK) s = fetched;
    }
    if (fault.is_set && !c->fault.is_set) c->fault = fault;
    return s;
}

void context_finish(context *c)
{
    const backend *b = c->g->backend;
    if (c->is_busy) b->stream_finish(&c->e, c->g->device, c->stream);
    if (c->is_busy && c->is_fetching) b->stream_finish(&c->e, c->g->device, c->weight_stream);
    c->is_busy = c->is_copying = c->is_receiving = c->is_fetching = false;
}

sinter_status context_copy(context *c, copy_kind kind, void *to, const void *from, size_t size)
{
    if (!size) return SINTER_OK;
    c->is_busy = true;
    c->is_copying = c->is_copying || kind != COPY_ON_DEVICE;
    c->is_receiving = c->is_receiving || kind == COPY_FROM_DEVICE;
    return c->g->backend->copy(&c->e, c->g->device, c->stream, kind, to, from, size);
}

sinter_status context_ensure_stage(context *c, uint32_t storage, size_t size)
{
    buffer *b = &c->stage[storage];
    if (size <= b->size) return SINTER_OK;
    TRY(context_settle(c));
    context_free(c, PLACE_HOST, b->at, b->size);
    *b = (buffer){ 0 };
    const size_t wanted = size_align(size, 4096);
    void *at = context_alloc(c, PLACE_HOST, wanted);
    if (!at)
        return NOTE(&c->e, c->e.error->status, "making room for copies of %zu bytes from and to the device", wanted);
    *b = (buffer){ .at = at, .size = wanted };
    return SINTER_OK;
}

/* ---- inputs ---- */

static sinter_place given_place(const context *c, sinter_place place)
{
    return context_has_places(c) && place == SINTER_PLACE_DEVICE ? place : SINTER_PLACE_HOST;
}

static sinter_place place_of(const context *c, uint32_t storage)
{
    const bool is_host = !context_has_places(c) || context_storage(c, storage)->place == PLACE_HOST;
    return is_host ? SINTER_PLACE_HOST : SINTER_PLACE_DEVICE;
}

/* Kernels on the host read elements where elements may lie, those of a device more at once. */
static bool is_aligned(const context *c, const void *at, sinter_place place, uint32_t dtype)
{
    const uint32_t element = sinter_dtype_bits((sinter_dtype)dtype) / 8;
    const uint32_t align = place == SINTER_PLACE_DEVICE ? c->g->backend->alignment : element;
    return align < 2 || (uintptr_t)at % align == 0;
}

static size_t input_size(const context *c, uint32_t io)
{
    sinter_tensor t = { .dtype = (sinter_dtype)c->g->io[io].dtype, .rank = c->g->io[io].rank };
    memcpy(t.dim, c->input[io].dim, sizeof t.dim);
    return sinter_tensor_size(&t);
}

sinter_status context_place_inputs(context *c)
{
    for (uint32_t i = 0; i < c->feed_count; i++) {
        const run_feed *f = &c->feed[i];
        const sinter_place from = given_place(c, c->input[f->io].place), to = place_of(c, f->storage);
        c->base[f->storage] = c->input[f->io].data;
        if (from == to && is_aligned(c, c->input[f->io].data, to, c->g->io[f->io].dtype)) continue;
        const size_t size = input_size(c, f->io);
        TRY(NOTE(&c->e, context_ensure(c, f->storage, size, false), "making room for input '%s'",
                 engine_text(c->g, c->g->io[f->io].name)));
        const bool is_pinned = c->input[f->io].place == SINTER_PLACE_PINNED;
        if (from == SINTER_PLACE_HOST && to == SINTER_PLACE_DEVICE && !is_pinned)
            TRY(context_ensure_stage(c, f->storage, size));
        c->base[f->storage] = c->own[f->storage].at;
    }
    return SINTER_OK;
}

sinter_status context_feed(context *c)
{
    for (uint32_t i = 0; i < c->feed_count; i++) {
        const run_feed *f = &c->feed[i];
        const void *from = c->input[f->io].data;
        void *to = c->base[f->storage];
        const size_t size = from == to ? 0 : input_size(c, f->io);
        if (!size) continue;
        const sinter_place given = given_place(c, c->input[f->io].place), wanted = place_of(c, f->storage);
        if (given == SINTER_PLACE_DEVICE) {
            TRY(context_copy(c, wanted == SINTER_PLACE_DEVICE ? COPY_ON_DEVICE : COPY_FROM_DEVICE, to, from, size));
        } else if (wanted == SINTER_PLACE_HOST) {
            memcpy(to, from, size);
        } else if (c->input[f->io].place == SINTER_PLACE_PINNED) {
            TRY(context_copy(c, COPY_TO_DEVICE, to, from, size));
        } else {
            memcpy(c->stage[f->storage].at, from, size);
            TRY(context_copy(c, COPY_TO_DEVICE, to, c->stage[f->storage].at, size));
        }
    }
    return SINTER_OK;
}

sinter_status context_feed_zeros(context *c)
{
    for (uint32_t i = 0; i < c->feed_count; i++) {
        const uint32_t storage = c->feed[i].storage;
        const buffer *from = &c->stage[storage];
        const size_t size = input_size(c, c->feed[i].io);
        if (!from->at || from->size < size || c->own[storage].size < size) continue;
        memset(from->at, 0, size);
        TRY(context_copy(c, COPY_TO_DEVICE, c->own[storage].at, from->at, size));
    }
    return SINTER_OK;
}

sinter_status context_read_input(context *c, uint32_t io, size_t size, const void **out)
{
    *out = c->input[io].data;
    if (given_place(c, c->input[io].place) == SINTER_PLACE_HOST) return SINTER_OK;
    for (uint32_t i = 0; i < c->feed_count; i++) {
        const uint32_t storage = c->feed[i].storage;
        if (c->feed[i].io != io) continue;
        TRY(context_ensure_stage(c, storage, size));
        TRY(context_copy(c, COPY_FROM_DEVICE, c->stage[storage].at, c->input[io].data, size));
        *out = c->stage[storage].at;
        return context_settle(c);
    }
    return FAIL(&c->e, INTERNAL, "input '%s' has no storage", engine_text(c->g, c->g->io[io].name));
}

/* ---- transfers between steps ---- */

static size_t dense_bytes(const view *v)
{
    return ((size_t)view_count(v) * sinter_dtype_bits(v->dtype) + 7) / 8;
}

/* Counters and sizes: each goes through a slot of its own, so that the host need not wait before it writes the value
 * again. */
enum { MAIL_SLOT = 64, MAIL_SLOTS = 2048 };

static sinter_status send_small(context *c, void *to, const void *from, size_t size)
{
    if (!c->mail.at) {
        void *at = context_alloc(c, PLACE_HOST, (size_t)MAIL_SLOT * MAIL_SLOTS);
        if (!at) return NOTE(&c->e, c->e.error->status, "making room for small values that go to the device");
        c->mail = (buffer){ .at = at, .size = (size_t)MAIL_SLOT * MAIL_SLOTS };
    }
    if (c->mail_at == c->mail.size) {
        TRY(context_settle(c));
        c->mail_at = 0;
    }
    uint8_t *slot = (uint8_t *)c->mail.at + c->mail_at;
    c->mail_at += MAIL_SLOT;
    memcpy(slot, from, size);
    c->is_busy = true;
    return c->g->backend->copy(&c->e, c->g->device, c->stream, COPY_TO_DEVICE, to, slot, size);
}

sinter_status context_transfer(context *c, uint32_t step)
{
    const program_step *s = &c->now->step[step];
    const uint32_t in = s->in_id[0], out = s->out_id[0];
    const bool is_up = context_storage(c, context_value(c, in)->storage)->place == PLACE_HOST;
    const size_t size = dense_bytes(&c->now->value[out]);
    if (is_up && size && size <= MAIL_SLOT) {
        if (c->is_receiving) TRY(context_settle(c)); /* perhaps what is sent */
        return send_small(c, c->address[out], c->address[in], size);
    }
    return context_copy(c, is_up ? COPY_TO_DEVICE : COPY_FROM_DEVICE, c->address[out], c->address[in], size);
}

/* ---- outputs ---- */

enum { ALIGN_HOST = 64, ALIGN_DEVICE = 256 };

/* Once a run, as soon as the size is known. */
static sinter_status ask_allocator(context *c, uint32_t io, size_t bytes)
{
    run_output *o = &c->output[io - c->g->input_count];
    const char *name = engine_text(c->g, c->g->io[io].name);
    const size_t size = bytes ? bytes : 1, align = o->place == SINTER_PLACE_HOST ? ALIGN_HOST : ALIGN_DEVICE;
    const uint32_t element = sinter_dtype_bits((sinter_dtype)c->g->io[io].dtype) / 8;
    void *const native = c->stream && c->g->backend->stream_native ? c->g->backend->stream_native(c->stream) : NULL;
    if (o->data) TRY(context_settle(c)); /* a copy of the run before may still go there */
    o->is_asked = true;
    o->data = o->allocator.resize(o->allocator.user, name, o->data, size, align, native);
    o->size = o->data ? size : 0;
    if (!o->data) return FAIL(&c->e, NO_MEMORY, "the allocator of output '%s' gives no %zu bytes", name, size);
    if (element < 2 || (uintptr_t)o->data % element == 0) return SINTER_OK;
    o->data = NULL;
    return FAIL(&c->e, INVALID_ARG, "the memory for output '%s' is not aligned to its elements of %u bytes", name,
                element);
}

sinter_status context_place_output(context *c, uint32_t storage, size_t bytes)
{
    const uint32_t io = (uint32_t)context_storage(c, storage)->at, out = io - c->g->input_count;
    if (c->output[out].allocator.resize && c->is_beginning &&
        !(c->output[out].is_asked && c->output[out].size >= bytes))
        TRY(ask_allocator(c, io, bytes));
    void *const data = c->output[out].data;
    const sinter_place place = place_of(c, storage);
    if (data && c->output[out].size < bytes)
        return FAIL(&c->e, INVALID_ARG, "output '%s' needs %zu bytes, the buffer given has %zu",
                    engine_text(c->g, c->g->io[io].name), bytes, c->output[out].size);
    if (data && given_place(c, c->output[out].place) == place && is_aligned(c, data, place, c->g->io[io].dtype)) {
        c->base[storage] = data;
        return SINTER_OK;
    }
    TRY(context_ensure(c, storage, bytes, false));
    c->base[storage] = c->own[storage].at;
    /* What collecting wants, made before the run is under way. */
    const bool is_pinned = data && c->output[out].place == SINTER_PLACE_PINNED;
    const bool comes_down =
        place == SINTER_PLACE_DEVICE && !is_pinned && (!data || given_place(c, c->output[out].place) != place);
    return comes_down ? context_ensure_stage(c, storage, bytes) : SINTER_OK;
}

sinter_status context_collect(context *c, uint32_t output)
{
    run_result *r = &c->result[output];
    void *const data = c->output[output].data, *const from = c->base[r->storage];
    const sinter_place place = place_of(c, r->storage),
                       wanted = data ? given_place(c, c->output[output].place) : SINTER_PLACE_HOST;
    r->at = data ? data : from;
    r->place = wanted;
    r->deliver = NULL;
    const view *v = &c->now->value[context_args(c, c->p->io_first)[c->g->input_count + output]];
    r->size = dense_bytes(v);
    const sinter_output_allocator *a = &c->output[output].allocator;
    if (a->resize && a->notify && c->is_beginning)
        a->notify(a->user, engine_text(c->g, c->g->io[c->g->input_count + output].name), v->dim, v->rank);
    if (from == data || !context_has_places(c)) return SINTER_OK;
    if (wanted == SINTER_PLACE_DEVICE)
        return context_copy(c, place == SINTER_PLACE_DEVICE ? COPY_ON_DEVICE : COPY_TO_DEVICE, data, from, r->size);
    if (place == SINTER_PLACE_DEVICE && data && c->output[output].place == SINTER_PLACE_PINNED)
        return context_copy(c, COPY_FROM_DEVICE, data, from, r->size);
    if (place == SINTER_PLACE_DEVICE) {
        TRY(context_ensure_stage(c, r->storage, r->size));
        r->at = c->stage[r->storage].at;
        TRY(context_copy(c, COPY_FROM_DEVICE, r->at, from, r->size));
    }
    if (data) r->deliver = data;
    return SINTER_OK;
}

void context_deliver(context *c)
{
    for (uint32_t i = 0; i < c->g->io_count - c->g->input_count; i++) {
        run_result *r = &c->result[i];
        r->is_ready = true;
        if (!r->deliver) continue;
        if (r->size) memcpy(r->deliver, r->at, r->size);
        r->at = r->deliver;
        r->deliver = NULL;
    }
}
